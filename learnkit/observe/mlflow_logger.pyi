# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Logs to MLflow: numbers, hyper-parameters, images, texts, tables, models"""
from .services import ServiceLogger
from typing import Any

__all__ = ['MLflowLogger']
def _name(k: Any) -> Any: ...
class MLflowLogger(ServiceLogger):
    """Logs to MLflow (needs the package `mlflow`, or `mlflow-skinny` for a server); `client` is MLflow's"""
    name: str
    _client: Any
    experiment: str
    uri: str|None
    run_name: str|None
    tags: dict[Any, Any]|None
    def __init__(
        self,
        experiment: str = 'Default',
        uri: str|None = None,
        run_name: str|None = None,
        tags: dict[Any, Any]|None = None,
        files: bool = False,
    ) -> None:
        """Logs to MLflow (needs the package `mlflow`, or `mlflow-skinny` for a server); `client` is MLflow's

        Args:
            experiment: the experiment; it is made if there is none of this name
            uri: of the server or store, such as 'http://localhost:5000'; None: MLflow's default
            run_name: the name of the run; None: MLflow makes one up
            tags: tags of the run, texts by name
            files: keep saved models and checkpoints as artifacts?
        """
        ...
    @property
    def client(self) -> Any:
        """The `MlflowClient`"""
        ...
    def open(self, id: Any) -> Any: ...
    def last_step(self, name: Any) -> Any: ...
    def write(self, metrics: Any, step: Any) -> None: ...
    def write_steps(self, rows: Any) -> None: ...
    def write_hparams(self, hparams: Any) -> None: ...
    def write_media(self, kind: Any, media: Any, step: Any) -> None: ...
    def write_file(self, path: Any) -> None: ...
    def close(self, status: Any) -> None: ...
    def __getstate__(self) -> dict[Any, Any]: ...
