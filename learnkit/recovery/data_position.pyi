# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""The same batches again in the same order, from any batch of an epoch on"""
from ..callback import Callback
from pathlib import Path
from typing import Any

_old_keys: dict[Any, Any]
class DataPosition(Callback):
    """Gives the data of a fit in an order that depends on a seed and the epoch alone, and finds a position in it again"""
    seeded: list[Any]
    """the loaders of the training and the validation data in this order, once they were needed"""
    seed: Any
    data_state: Any
    resume_state: Any
    kept: Any
    asks_data: bool
    parts: Any
    unkept: Any
    parts_state: Any
    def begin_data(self) -> None:
        """Begin at the beginning; to be called when a fit begins"""
        ...
    def resume_data(self, path: Path, state: dict[Any, Any]) -> None:
        """Continue at the position of `state`; raises ValueError if it has a wrong one

        Args:
            path: of a checkpoint
            state: of the run, which is restored again when its epoch begins

        Raises:
            ValueError: … is not the checkpoint of a run: its `place` in the data is …
            ValueError: … is not the checkpoint of a run: `skipped`, the batches that were never fetched, is …
        """
        ...
    def before_train(self) -> None: ...
    def before_validate(self) -> None: ...
    def _seeded_loader(self, i: Any, dl: Any) -> Any:
        """The loader `dl`, number `i` of `dls`, in an order that depends on the seed and the epoch alone"""
        ...
    def _begin_parts(self, data: Any) -> None: ...
    def data_position(self, done: int) -> dict[Any, Any]|None:
        """Return the position that the training data itself reports; None if counting finds it

        Args:
            done: how many batches of this epoch are done
        """
        ...
