# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Data, model, loss function and optimizer around the loop"""
import torch
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from fastcore.foundation import L as _L
from ._fastcore import AttrDict, L
from .agreement import Agreement
from .callback import Callback
from .compat.fastai import CastToTensor
from .compat.names import CollectDataCallback
from .control.batch_events import BatchEvents
from .control.clock import Clock, Timestamp
from .control.cycle import CheckpointEvents, Cycles
from .control.early_stopping import EarlyStoppingCallback, TerminateOnNaNCallback, ThresholdStopper
from .control.every_callback import EveryCallback
from .control.plateau import ReduceLROnPlateau
from .control.save_model import SaveModelCallback
from .control.stop_after import StopAfter
from .control.stopwatch import StopwatchCallback
from .control.tracker import OnBetter, TrackerCallback
from .control.validate_every import ValidateEvery
from .distributed import DistributedTrainer, GradientExchange
from .duration import Time
from .feed.item_indices import ItemIndices
from .feed.mapping import MapInputs, MapOutputs
from .feed.move_modules import MoveModules
from .feed.overfit import OverfitBatches
from .feed.prefetch import Prefetch
from .feed.steps_per_epoch import StepsPerEpoch
from .gather_preds import FetchPredsCallback, GatherPredsCallback
from .limit import LimitBatches, ShortEpochCallback
from .modules import trainable_params
from .nonfinite_check import NonFiniteCheck
from .observe.activation_stats import ActivationStats
from .observe.check_events import CheckEvents
from .observe.csv_logger import CSVLogger
from .observe.hook_callback import HookCallback
from .observe.images import ImageLogger
from .observe.loggers import FileLogger, JsonLogger, MetricsLogger
from .observe.mc_dropout import MCDropoutCallback
from .observe.memory_snapshot import MemorySnapshot
from .observe.mlflow_logger import MLflowLogger
from .observe.observer import LRMonitor, LossMonitor, Observer
from .observe.optimizer_monitor import OptimizerMonitor
from .observe.outbox import Outbox
from .observe.profile import Profile
from .observe.profiler import ProfileCallback
from .observe.sanity import SanityCheck
from .observe.search import OptunaPruning, RayTuneReport
from .observe.services import Service, ServiceLogger
from .observe.show_graph import ShowGraphCallback
from .observe.speed import RuntimeEstimator, SpeedMonitor
from .observe.step_lines import StepLines
from .observe.system import MemoryMonitor, SystemMetrics
from .observe.tensorboard import TensorBoardLogger
from .observe.timer import TimerCallback
from .observe.tta import AugmentCallback
from .observe.wandb_logger import WandbLogger
from .opt_steps import OptSteps
from .optim.accumulate import GradientAccumulation
from .optim.bn_freeze import BnFreeze
from .optim.clip import GradientClip
from .optim.ema import EMACallback
from .optim.lr_find import LRFinder
from .optim.lr_suggest import valley
from .optim.micro_batch import MicroBatch
from .optim.mix_handler import MixHandler
from .optim.mixup import CutMix, MixUp
from .optim.param_scheduler import ParamScheduler, Scheduler
from .optim.precision import MixedPrecision
from .optim.rnn import ModelResetter, RNNCallback, RNNRegularizer
from .optim.torch_scheduler import TorchScheduler
from .progress import ProgressCallback
from .recorder import Recorder
from .recovery.checkpoint import CheckpointCallback
from .recovery.close import RefuseRuns
from .recovery.replay_oom import ReplayOnOOM
from .recovery.roll_back import RollBackOnNaN
from .recovery.signals import StopOnSignal
from .recovery.skip_nan import SkipNaN
from .recovery.torch_export import ExportAtEnd
from .share_batches import ShareBatches
from .snapshot import Snapshot
from .speed.free_outputs import FreeOutputs
from .speed.fully_shard import FullyShard
from .speed.fused_step import FusedStep
from .speed.memory_format import ChannelsLast
from .speed.recompute import RecomputeActivations
from .speed.virtual_shards import VirtualShards
from .train_eval import TrainEvalCallback
from .train_for import TrainFor
from .training_loop import Text
from pathlib import Path
from torch import nn
from torch.optim import Adam
from typing import Any, BinaryIO, Self

__all__ = ['Learner']
_moving: Any
class Learner(OptSteps):
    """Trains `model` on `dls`, calling the callbacks at every event"""
    on_create: list[Callable[..., Any]]
    """called with each new Learner; each returns callbacks for it: see `Learner.on`"""
    distributed: bool
    """train together with the other processes that a launcher started?"""
    n_draws: int
    dl_name: Any
    state: AttrDict
    _lock: Any
    path: Path
    model_dir: str|Path
    moms: tuple[Any, ...]
    wd: float|None
    _metrics: Any
    _smooth_loss: torch.Tensor
    resume: Any
    final_record: Any
    _open: Any
    cycle: Any
    non_finite_check: NonFiniteCheck
    """The `NonFiniteCheck`, if it is among the callbacks"""
    progress: ProgressCallback
    """The `ProgressCallback`, if it is among the callbacks"""
    recorder: Recorder
    """The `Recorder`, if it is among the callbacks"""
    share_batches: ShareBatches
    """The `ShareBatches`, if it is among the callbacks"""
    train_eval: TrainEvalCallback
    """The `TrainEvalCallback`, if it is among the callbacks"""
    agreement: Agreement
    """The `Agreement`, if it is among the callbacks"""
    cast_to_tensor: CastToTensor
    """The `CastToTensor`, if it is among the callbacks"""
    collect_data: CollectDataCallback
    """The `CollectDataCallback`, if it is among the callbacks"""
    batch_events: BatchEvents
    """The `BatchEvents`, if it is among the callbacks"""
    clock: Clock
    """The `Clock`, if it is among the callbacks"""
    checkpoint_events: CheckpointEvents
    """The `CheckpointEvents`, if it is among the callbacks"""
    cycles: Cycles
    """The `Cycles`, if it is among the callbacks"""
    early_stopping: EarlyStoppingCallback
    """The `EarlyStoppingCallback`, if it is among the callbacks"""
    threshold_stopper: ThresholdStopper
    """The `ThresholdStopper`, if it is among the callbacks"""
    terminate_on_na_n: TerminateOnNaNCallback
    """The `TerminateOnNaNCallback`, if it is among the callbacks"""
    every: EveryCallback
    """The `EveryCallback`, if it is among the callbacks"""
    reduce_lr_on_plateau: ReduceLROnPlateau
    """The `ReduceLROnPlateau`, if it is among the callbacks"""
    save_model: SaveModelCallback
    """The `SaveModelCallback`, if it is among the callbacks"""
    stop_after: StopAfter
    """The `StopAfter`, if it is among the callbacks"""
    stopwatch: StopwatchCallback
    """The `StopwatchCallback`, if it is among the callbacks"""
    tracker: TrackerCallback
    """The `TrackerCallback`, if it is among the callbacks"""
    on_better: OnBetter
    """The `OnBetter`, if it is among the callbacks"""
    validate_every: ValidateEvery
    """The `ValidateEvery`, if it is among the callbacks"""
    distributed_trainer: DistributedTrainer
    """The `DistributedTrainer`, if it is among the callbacks"""
    gradient_exchange: GradientExchange
    """The `GradientExchange`, if it is among the callbacks"""
    item_indices: ItemIndices
    """The `ItemIndices`, if it is among the callbacks"""
    map_inputs: MapInputs
    """The `MapInputs`, if it is among the callbacks"""
    map_outputs: MapOutputs
    """The `MapOutputs`, if it is among the callbacks"""
    move_modules: MoveModules
    """The `MoveModules`, if it is among the callbacks"""
    overfit_batches: OverfitBatches
    """The `OverfitBatches`, if it is among the callbacks"""
    prefetch: Prefetch
    """The `Prefetch`, if it is among the callbacks"""
    steps_per_epoch: StepsPerEpoch
    """The `StepsPerEpoch`, if it is among the callbacks"""
    gather_preds: GatherPredsCallback
    """The `GatherPredsCallback`, if it is among the callbacks"""
    fetch_preds: FetchPredsCallback
    """The `FetchPredsCallback`, if it is among the callbacks"""
    limit_batches: LimitBatches
    """The `LimitBatches`, if it is among the callbacks"""
    short_epoch: ShortEpochCallback
    """The `ShortEpochCallback`, if it is among the callbacks"""
    activation_stats: ActivationStats
    """The `ActivationStats`, if it is among the callbacks"""
    check_events: CheckEvents
    """The `CheckEvents`, if it is among the callbacks"""
    csv_logger: CSVLogger
    """The `CSVLogger`, if it is among the callbacks"""
    hook: HookCallback
    """The `HookCallback`, if it is among the callbacks"""
    image_logger: ImageLogger
    """The `ImageLogger`, if it is among the callbacks"""
    metrics_logger: MetricsLogger
    """The `MetricsLogger`, if it is among the callbacks"""
    file_logger: FileLogger
    """The `FileLogger`, if it is among the callbacks"""
    json_logger: JsonLogger
    """The `JsonLogger`, if it is among the callbacks"""
    mc_dropout: MCDropoutCallback
    """The `MCDropoutCallback`, if it is among the callbacks"""
    memory_snapshot: MemorySnapshot
    """The `MemorySnapshot`, if it is among the callbacks"""
    mlflow_logger: MLflowLogger
    """The `MLflowLogger`, if it is among the callbacks"""
    observer: Observer
    """The `Observer`, if it is among the callbacks"""
    loss_monitor: LossMonitor
    """The `LossMonitor`, if it is among the callbacks"""
    lr_monitor: LRMonitor
    """The `LRMonitor`, if it is among the callbacks"""
    optimizer_monitor: OptimizerMonitor
    """The `OptimizerMonitor`, if it is among the callbacks"""
    profiler: ProfileCallback
    """The `ProfileCallback`, if it is among the callbacks"""
    sanity_check: SanityCheck
    """The `SanityCheck`, if it is among the callbacks"""
    optuna_pruning: OptunaPruning
    """The `OptunaPruning`, if it is among the callbacks"""
    ray_tune_report: RayTuneReport
    """The `RayTuneReport`, if it is among the callbacks"""
    service: Service
    """The `Service`, if it is among the callbacks"""
    service_logger: ServiceLogger
    """The `ServiceLogger`, if it is among the callbacks"""
    show_graph: ShowGraphCallback
    """The `ShowGraphCallback`, if it is among the callbacks"""
    speed_monitor: SpeedMonitor
    """The `SpeedMonitor`, if it is among the callbacks"""
    runtime_estimator: RuntimeEstimator
    """The `RuntimeEstimator`, if it is among the callbacks"""
    step_lines: StepLines
    """The `StepLines`, if it is among the callbacks"""
    memory_monitor: MemoryMonitor
    """The `MemoryMonitor`, if it is among the callbacks"""
    system_metrics: SystemMetrics
    """The `SystemMetrics`, if it is among the callbacks"""
    tensor_board_logger: TensorBoardLogger
    """The `TensorBoardLogger`, if it is among the callbacks"""
    timer: TimerCallback
    """The `TimerCallback`, if it is among the callbacks"""
    augment: AugmentCallback
    """The `AugmentCallback`, if it is among the callbacks"""
    wandb_logger: WandbLogger
    """The `WandbLogger`, if it is among the callbacks"""
    gradient_accumulation: GradientAccumulation
    """The `GradientAccumulation`, if it is among the callbacks"""
    bn_freeze: BnFreeze
    """The `BnFreeze`, if it is among the callbacks"""
    gradient_clip: GradientClip
    """The `GradientClip`, if it is among the callbacks"""
    ema: EMACallback
    """The `EMACallback`, if it is among the callbacks"""
    lr_finder: LRFinder
    """The `LRFinder`, if it is among the callbacks"""
    micro_batch: MicroBatch
    """The `MicroBatch`, if it is among the callbacks"""
    mix_handler: MixHandler
    """The `MixHandler`, if it is among the callbacks"""
    mix_up: MixUp
    """The `MixUp`, if it is among the callbacks"""
    cut_mix: CutMix
    """The `CutMix`, if it is among the callbacks"""
    scheduler: Scheduler
    """The `Scheduler`, if it is among the callbacks"""
    param_scheduler: ParamScheduler
    """The `ParamScheduler`, if it is among the callbacks"""
    mixed_precision: MixedPrecision
    """The `MixedPrecision`, if it is among the callbacks"""
    model_resetter: ModelResetter
    """The `ModelResetter`, if it is among the callbacks"""
    rnn: RNNCallback
    """The `RNNCallback`, if it is among the callbacks"""
    rnn_regularizer: RNNRegularizer
    """The `RNNRegularizer`, if it is among the callbacks"""
    torch_scheduler: TorchScheduler
    """The `TorchScheduler`, if it is among the callbacks"""
    checkpoint: CheckpointCallback
    """The `CheckpointCallback`, if it is among the callbacks"""
    refuse_runs: RefuseRuns
    """The `RefuseRuns`, if it is among the callbacks"""
    replay_on_oom: ReplayOnOOM
    """The `ReplayOnOOM`, if it is among the callbacks"""
    roll_back_on_nan: RollBackOnNaN
    """The `RollBackOnNaN`, if it is among the callbacks"""
    stop_on_signal: StopOnSignal
    """The `StopOnSignal`, if it is among the callbacks"""
    skip_nan: SkipNaN
    """The `SkipNaN`, if it is among the callbacks"""
    export_at_end: ExportAtEnd
    """The `ExportAtEnd`, if it is among the callbacks"""
    free_outputs: FreeOutputs
    """The `FreeOutputs`, if it is among the callbacks"""
    fully_shard: FullyShard
    """The `FullyShard`, if it is among the callbacks"""
    fused_step: FusedStep
    """The `FusedStep`, if it is among the callbacks"""
    channels_last: ChannelsLast
    """The `ChannelsLast`, if it is among the callbacks"""
    recompute_activations: RecomputeActivations
    """The `RecomputeActivations`, if it is among the callbacks"""
    virtual_shards: VirtualShards
    """The `VirtualShards`, if it is among the callbacks"""
    train_for: TrainFor
    """The `TrainFor`, if it is among the callbacks"""
    def __init__(
        self,
        dls: Any,
        model: nn.Module,
        loss_func: Callable[..., Any]|None = None,
        opt_func: Any = Adam,
        lr: float|slice|list[Any]|None = None,
        splitter: Callable[..., Any] = trainable_params,
        cbs: Any = None,
        metrics: Any = None,
        path: str|Path|None = None,
        model_dir: str|Path = 'models',
        wd: float|None = None,
        wd_bn_bias: bool = False,
        train_bn: bool = True,
        moms: tuple[Any, ...] = (0.95, 0.85, 0.95),
        default_cbs: bool = True,
    ) -> None:
        """Trains `model` on `dls`, calling the callbacks at every event

        Args:
            dls: the data: a `DataLoaders`, or a pair of iterables of batches
            model: the model to train
            loss_func: (pred, *yb) -> tensor; None: that of the data set or in the model's output
            opt_func: a torch optimizer: class, `partial` of one, instance, or function of groups
            lr: learning rate; a slice spreads it over the groups; None: `opt_func`'s, or 1e-3
            splitter: model -> parameters, or a list of lists of them: the parameter groups
            cbs: callbacks; one of a default's class takes the place of the default
            metrics: functions of (pred, *yb), `Metric`s, torchmetrics or scikit-learn metrics
            path: where files go; None: the path of `dls`, or the current folder
            model_dir: the folder in it for saved models
            wd: weight decay; None: as the optimizer has it
            wd_bn_bias: should weight decay apply to norm layers and biases too?
            train_bn: should norm layers of frozen groups be trained?
            moms: momentums for `fit_one_cycle`
            default_cbs: add the default callbacks?

        Raises:
            TypeError: the data come first, then the model: `Learner(DataLoaders(…), model)`
            TypeError: model is the class …: pass an instance of it, `…(...)`
            TypeError: model must be an nn.Module
            TypeError: loss_func must be a function of (pred, *targets) such as `F.mse_loss`
            TypeError: splitter must be a function of the model that returns its parameters, or a list of them for each …
        """
        ...
    def add_cb(self, cb: Callback|type[Callback]) -> Learner:
        """Add a callback; raises TypeError if it is none, ValueError if its name is taken. See `Dispatcher.add_cb`.

        Args:
            cb: a callback, or a class of which an instance is made; those of fastai will do
        """
        ...
    @property
    def metrics(self) -> L:
        """The metrics, as `Metric` objects"""
        ...
    @metrics.setter
    def metrics(self, v: Any) -> None: ...
    @property
    def x(self) -> Any:
        """The input of the batch: a tensor if there is just one"""
        ...
    @property
    def y(self) -> Any:
        """The target of the batch: a tensor if there is just one, None if there is none"""
        ...
    @property
    def smooth_loss(self) -> torch.Tensor:
        """The smoothed training loss so far

        Raises:
            AttributeError: there is no smoothed loss before the first batch
        """
        ...
    @smooth_loss.setter
    def smooth_loss(self, v: torch.Tensor) -> None: ...
    @property
    def device(self) -> torch.device:
        """The device to train on: that of `dls`; else the model's, or the accelerator if that is the CPU

        Raises:
            RuntimeError: the data's device is '…', but … is not available here; `DataLoaders(..., device=None)` takes what …
        """
        ...
    def __repr__(self) -> str: ...
    def __getstate__(self) -> dict[Any, Any]: ...
    def __setstate__(self, d: dict[Any, Any]) -> None: ...
    @property
    def time(self) -> Timestamp:
        """How far the run is, as counted by a `Clock` among the callbacks. Raises AttributeError if there is none.

        Raises:
            AttributeError: the time of this Learner is not counted: add the callback `Clock()`
        """
        ...
    @classmethod
    def on(
        cls,
        name: str,
        every: Any = None,
        once: int|None = None,
        when: Callable[..., Any]|None = None,
        marker: str|None = None,
    ) -> Callable[..., Any]:
        """Decorate a function of the Learner, to be called at event `name`. The conditions are those of `Filter`.

        Args:
            name: the event, such as 'after_batch' or `event.after_batch`
            every: a number of calls, or an interval of training such as '500ba'
            once: call number `once` only, counted from 1; True is the first
            when: when `when(filter, learn)` is true
            marker: on the class: which Learners; None is the next one, 'all' is all of them

        Raises:
            TypeError: `on` takes the event first: `@learn.on("after_batch")`
            TypeError: `marker` is for `Learner.on`: `learn.on` adds to this Learner
        """
        ...
    @classmethod
    def off(cls, f: Callable[..., Any]|None = None) -> Any:
        """Remove what `on` added, and return the Learner. Raises ValueError if there is no such function.

        Args:
            f: a function that `on` was given; None: all of them

        Raises:
            ValueError: … was not added here by `on`
        """
        ...
    @property
    def indices(self) -> list[Any]|None:
        """The indices of the items of the batch in the data set, with `ItemIndices`; `None` if they are not known"""
        ...
    def fit(
        self,
        n_epoch: int|str|Time,
        lr: float|slice|list[Any]|None = None,
        wd: float|None = None,
        cbs: Any = None,
        reset_opt: bool = False,
        start_epoch: int = 0,
        resume: str|Path|None = None,
    ) -> None:
        """Train for `n_epoch` epochs, or so long; with an `LRFinder`, which is for mode 'lr_find' only, it is a range test

        Args:
            n_epoch: epochs, those before `start_epoch` included; or an amount: '2000ba', '30m' …
            lr: learning rate; None: the Learner's
            wd: weight decay; None: the Learner's
            cbs: callbacks for this fit only
            reset_opt: begin with a fresh optimizer?
            start_epoch: the number of the first epoch, if those before it are done
            resume: a checkpoint to go on from; 'auto': the newest, if any

        Raises:
            ValueError: start_epoch must be from 0 to n_epoch (…), not …: n_epoch is the total
            ValueError: resume=… needs a `CheckpointCallback` among the callbacks: it knows where the checkpoints are
        """
        ...
    def _train(
        self,
        mode: Any,
        n_epoch: Any,
        lr: Any = None,
        wd: Any = None,
        cbs: Any = None,
        reset_opt: bool = False,
        start_epoch: Any = 0,
        resume: Any = None,
    ) -> None:
        """A `fit`, or in mode 'lr_find' one without validation

        Raises:
            TypeError: `learn.dls` must be a `DataLoaders`, not a …: write `learn.dls = DataLoaders(train, valid)`
            TypeError: the data come first, then the model: `Learner(DataLoaders(…), model)`
            TypeError: model is the class …: pass an instance of it, `…(...)`
            TypeError: model must be an nn.Module
            TypeError: loss_func must be a function of (pred, *targets) such as `F.mse_loss`
            ValueError: `start_epoch` must be a whole number, 0 or more
            ValueError: start_epoch must be from 0 to n_epoch (…), not …: n_epoch is the total
            ValueError: the learning rate `lr` must be 0 or more
            ValueError: the weight decay `wd` must be 0 or more
            ValueError: resume=… needs a `CheckpointCallback` among the callbacks: it knows where the checkpoints are
            ValueError: `learn.opt` has none of the model's parameters (…): build it from `learn.model.parameters()`, or …
            TypeError: … makes a step by evaluating the model several times, which the loop does not: let a callback do …
        """
        ...
    def freeze_to(self, n: int) -> None:
        """Freeze the parameter groups before number `n`, train the others

        Args:
            n: the first parameter group to be trained; negative counts from the end

        Raises:
            ValueError: `learn.opt` has none of the model's parameters (…): build it from `learn.model.parameters()`, or …
        """
        ...
    def freeze(self) -> None:
        """Train the last parameter group only

        Raises:
            ValueError: `learn.opt` has none of the model's parameters (…): build it from `learn.model.parameters()`, or …
        """
        ...
    def unfreeze(self) -> None:
        """Train all parameter groups"""
        ...
    @contextmanager
    def no_logging(self) -> Iterator[Self]:
        """Silence the Learner's logger: no rows of the history are printed"""
        ...
    @contextmanager
    def no_mbar(self) -> Iterator[Self]:
        """Hide the progress bar over epochs"""
        ...
    def no_bar(self) -> AbstractContextManager[Any]:
        """Hide all progress bars, by removing the ProgressCallback"""
        ...
    @contextmanager
    def loss_not_reduced(self) -> Iterator[Self]:
        """Make the loss function (None: the model) return the loss of each item; raises TypeError or ValueError if it cannot"""
        ...
    def _look(self, dl: Any, cbs: Any) -> Snapshot:
        """Take a snapshot of all that inference on `dl` with the callbacks `cbs` changes"""
        ...
    def _infer(self, before: Any, after: Any, nested: Any, dl: Any) -> Any:
        """Run the validation phase on `dl`, between the events `before` and `after` if it is not nested in another run"""
        ...
    def _loader(self, ds_idx: Any, dl: Any) -> Any:
        """The loader `dl`, or number `ds_idx` of `dls`; raises ValueError if there is none

        Raises:
            TypeError: ds_idx is the number of a loader in `dls`, not a …: pass a loader as `dl=`
            ValueError: there is no loader number … (`ds_idx`): `dls` has …. Pass the data as `dl=`…
        """
        ...
    def _numbered_loader(self, ds_idx: Any) -> Any: ...
    def validate(self, ds_idx: int = 1, dl: Any = None, cbs: Any = None) -> L:
        """Evaluate the model: returns the loss and the metrics on a data set, `[loss, *metrics]`

        Args:
            ds_idx: number of the loader in `dls`: 0 is the training set, 1 the validation set
            dl: the loader, any iterable of batches; None: the one of `ds_idx`
            cbs: callbacks for this run only
        """
        ...
    @contextmanager
    def _opened(self, agree: Any) -> Iterator[Self]:
        """A run whose phases are those of a `with` block"""
        ...
    def __enter__(self) -> Self:
        """Open a run: `before_fit` and `before_epoch`; raises RuntimeError inside another run

        Raises:
            RuntimeError: `with learn:` opens a run, but a `…` is running already…
        """
        ...
    def __exit__(self, *exc: Any) -> None:
        """Close the run: `after_epoch` and `after_fit` if nothing was raised, and `cleanup` always"""
        ...
    def to_detach(self, b: Any, cpu: bool = True, gather: bool = True) -> Any:
        """Return the batch `b` without gradients, on the CPU, gathered from all processes

        Args:
            b: nested tensors
            cpu: bring them to the CPU?
            gather: join the parts of all processes?
        """
        ...
    def _run(self, mode: Any, cbs: Any = None) -> Any:
        """A run, in which a Learner that is not `distributed` does not know of other processes

        Args:
            mode: 'fit', 'validate', 'predict', 'lr_find' or 'sanity'
            cbs: callbacks for this run only
        """
        ...
    def _meet(self, what: Any) -> list[Any]:
        """Wait for the other processes, which all do `what`; returns callbacks by which they agree in it, if they do not yet"""
        ...
    @contextmanager
    def named(self, name: str, metrics: L|_L|None = None) -> Iterator[Self]:
        """Set `learn.dl_name`, and metrics for one loader, for a `with` block

        Args:
            name: the name of the loader that is validated in this block
            metrics: its `Metric`s; None: those of the Learner
        """
        ...
    def _evaluate(self, name: str, dl: Any, metrics: L|_L|None = None) -> dict[Any, Any]:
        """The loss and the metrics on one loader, by name"""
        ...
    def validate_all(self, **dls: Any) -> dict[Any, Any]:
        """Validate several data sets: returns `{name: {'loss':…, metric: …}}`; raises ValueError if there are none

        Args:
            dls: loaders by name; none: the validation set as 'valid', and those of the `Evaluator`s

        Raises:
            ValueError: there is nothing to validate: pass loaders by name, as in `learn.validate_all(test=dl)`
        """
        ...
    def hparams(self, **more: Any) -> dict[str, Any]:
        """Return what the Learner trains with: names, numbers, and the settings of callbacks that do more than look on

        Args:
            more: hyper-parameters that only you know, to be kept with the others from now on

        Returns:
            numbers and short texts by name
        """
        ...
    gather_args = hparams
    @property
    def outbox(self) -> Outbox:
        """Rows of numbers on their way to the loggers"""
        ...
    def log_numbers(self, metrics: dict[Any, Any]) -> None:
        """Log numbers of now; the loggers among the callbacks write them, with the number of batches so far as `step`

        Args:
            metrics: numbers by name: Python numbers, or tensors of one element, which are read later
        """
        ...
    def log_objects(self, media: dict[Any, Any]) -> None:
        """Log texts, images, histograms and tables of now; a logger writes what its file or service can hold

        Args:
            media: by name: texts, images (n, channels, height, width), flat tensors for histograms, tables
        """
        ...
    def profile(
        self,
        n_epoch: int = 1,
        n_batches: int|None = None,
        fname: str|Path|None = None,
        max_slices: int = 100000,
        cbs: Any = None,
        fused: bool = False,
    ) -> Profile|Any:
        """Measure where the time of a fit goes; the Learner stays as it was. Raises ValueError for a bad `n_batches`

        Args:
            n_epoch: epochs to train
            n_batches: batches per epoch to train on, and to validate on; None: all
            fname: a file for the trace; None: no file
            max_slices: the number of slices (loop actions, callbacks, batches) to keep for the trace
            cbs: more callbacks for this run only
            fused: compare eager steps with fused ones instead, of 200 batches if not said: no trace

        Returns:
            with `fused` a `FusedProfile`

        Raises:
            ValueError: `n_batches` must be a whole number of batches, 1 or more
            TypeError: `fname` must be a path
        """
        ...
    def show_results(
        self,
        ds_idx: int = 1,
        dl: Any = None,
        n: int = 10,
        decode: Callable[..., Any]|None = None,
        stats: tuple[Any, ...]|None = None,
        **kwargs: Any,
    ) -> Any:
        """Show the items of the first batch with targets and predictions: images are drawn, other items listed in a table

        Args:
            ds_idx: number of the loader in `dls`: 1 is the validation set
            dl: the loader, any iterable of batches; None: the one of `ds_idx`
            n: how many items, at most those of a batch
            decode: from a list of token numbers to text, such as `tokenizer.decode`
            stats: mean and standard deviation by which images were normalized; None: as transforms say
            kwargs: `ncols` and `figsize`, for images
        """
        ...
    def tta(
        self,
        ds_idx: int = 1,
        dl: Any = None,
        n: int|None = None,
        aug: Callable[..., Any]|list[Any]|None = None,
        beta: float|None = 0.25,
        use_max: bool = False,
        act: Callable[..., Any]|None = None,
        cbs: Any = None,
    ) -> tuple[Any, ...]:
        """Test-time augmentation: returns predictions from several augmented views of each item, and the targets

        Args:
            ds_idx: number of the loader in `dls`: 0 is the training set, 1 the validation set
            dl: the loader, read n+1 times; None: the one of `ds_idx`
            n: number of augmented passes; None: one for each function in the list `aug`, else 4
            aug: a random function from inputs to inputs, or a list of functions that take turns
            beta: weight of the plain predictions; None: return both, as `(augmented, plain)`
            use_max: return the largest prediction of all passes instead of the mean
            act: function from outputs to predictions; None: the loss function's `activation`
            cbs: callbacks for these runs only

        Raises:
            ValueError: tta needs a function that augments the inputs: pass `aug=`, such as `aug=lambda x: x.flip(-1)`, or …
            TypeError: tta reads the data …1 times, which a … cannot: pass a list of batches or a DataLoader
            ValueError: `beta` must be a fraction
            ValueError: the targets of two passes differ: the loader gives its items in another order each time, and …
        """
        ...
    @property
    def is_update(self) -> bool:
        """Whether the optimizer steps in this training batch; False while `GradientAccumulation` waits for more items"""
        ...
    def lr_find(
        self,
        start_lr: float|list[Any] = 1e-07,
        end_lr: float|list[Any] = 10,
        num_it: int = 100,
        stop_div: bool = True,
        show_plot: bool = True,
        suggest_funcs: Any = valley,
    ) -> Any:
        """Find a learning rate by a range test (Smith 2015), and restore the Learner afterwards

        Args:
            start_lr: the learning rate of the first batch; a list has one for each parameter group
            end_lr: the learning rate that is approached by the last batch
            num_it: number of batches, at least 6
            stop_div: stop when the loss is above four times its minimum?
            show_plot: plot the curve?
            suggest_funcs: one or several of `valley`, `slide`, `minimum`, `steep` or your own; None: no suggestion

        Returns:
            a named tuple of suggested learning rates; None without `suggest_funcs`

        Raises:
            ValueError: start_epoch must be from 0 to n_epoch (…), not …: n_epoch is the total
            ValueError: resume=… needs a `CheckpointCallback` among the callbacks: it knows where the checkpoints are
        """
        ...
    def fit_one_cycle(
        self,
        n_epoch: int|str|Time,
        lr_max: float|slice|list[Any]|None = None,
        div: float = 25.0,
        div_final: float = 100000.0,
        pct_start: float = 0.25,
        *,
        moms: tuple[Any, ...]|None = None,
        wd: float|None = None,
        cbs: Any = None,
        reset_opt: bool = False,
        start_epoch: int = 0,
        resume: str|Path|None = None,
    ) -> None:
        """Train for `n_epoch` epochs with the one-cycle policy (Smith 2018)

        Args:
            n_epoch: number of epochs, or an amount such as '2000ba'
            lr_max: the highest learning rate; None: the Learner's
            div: the initial learning rate is `lr_max/div`
            div_final: the final learning rate is `lr_max/div_final`
            pct_start: the fraction of the training in which the rate rises, 0 to 1
            moms: momentum at the start, at the highest rate and at the end; None: the Learner's
            wd: weight decay; None: the Learner's
            cbs: callbacks for this fit only
            reset_opt: begin with a fresh optimizer?
            start_epoch: the number of the first epoch, if those before it are done
            resume: a checkpoint to go on from; 'auto': the newest, if any

        Raises:
            ValueError: learning rates must be 0 or more
            TypeError: this policy has no `lr`: give the highest learning rate as `lr_max`
        """
        ...
    def fit_flat_cos(
        self,
        n_epoch: int|str|Time,
        lr: float|slice|list[Any]|None = None,
        div_final: float = 100000.0,
        pct_start: float = 0.75,
        *,
        wd: float|None = None,
        cbs: Any = None,
        reset_opt: bool = False,
        start_epoch: int = 0,
        resume: str|Path|None = None,
    ) -> None:
        """Train for `n_epoch` epochs with a constant learning rate that falls along a cosine at the end

        Args:
            n_epoch: number of epochs, or an amount such as '2000ba'
            lr: the initial learning rate; None: the Learner's
            div_final: the final learning rate is `lr/div_final`
            pct_start: the fraction of the training in which the rate is constant, 0 to 1
            wd: weight decay; None: the Learner's
            cbs: callbacks for this fit only
            reset_opt: begin with a fresh optimizer?
            start_epoch: the number of the first epoch, if those before it are done
            resume: a checkpoint to go on from; 'auto': the newest, if any

        Raises:
            TypeError: this policy has no `lr`: give the highest learning rate as `lr_max`
            ValueError: learning rates must be 0 or more
        """
        ...
    def fit_sgdr(
        self,
        n_cycles: int,
        cycle_len: int|str|Time,
        lr_max: float|slice|list[Any]|None = None,
        cycle_mult: int = 2,
        *,
        wd: float|None = None,
        cbs: Any = None,
        reset_opt: bool = False,
        start_epoch: int = 0,
        resume: str|Path|None = None,
    ) -> None:
        """Train for `n_cycles` cycles with warm restarts (Loshchilov and Hutter 2016)

        Args:
            n_cycles: number of cycles
            cycle_len: epochs of the first cycle, or an amount such as '500ba'
            lr_max: the learning rate at the start of each cycle; None: the Learner's
            cycle_mult: how many times longer each cycle is than the one before
            wd: weight decay; None: the Learner's
            cbs: callbacks for this fit only
            reset_opt: begin with a fresh optimizer?
            start_epoch: the number of the first epoch, if those before it are done
            resume: a checkpoint to go on from; 'auto': the newest, if any

        Raises:
            ValueError: `n_cycles` must be a whole number, 1 or more
            ValueError: `cycle_mult` must be a whole number, 1 or more
            ValueError: `cycle_len` must be a whole number, 1 or more
            TypeError: this policy has no `lr`: give the highest learning rate as `lr_max`
            ValueError: learning rates must be 0 or more
        """
        ...
    def fine_tune(
        self,
        epochs: int|str|Time,
        base_lr: float = 0.002,
        freeze_epochs: int|str|Time = 1,
        lr_mult: float = 100,
        pct_start: float = 0.3,
        div: float = 5.0,
        start_epoch: int = 0,
        *,
        div_final: float = 100000.0,
        moms: tuple[Any, ...]|None = None,
        wd: float|None = None,
        cbs: Any = None,
        reset_opt: bool = False,
        resume: str|Path|None = None,
    ) -> None:
        """Train the last parameter group, then the whole model, with one cycle each (fastai's name and learning rates)

        Args:
            epochs: epochs for the whole model, or an amount such as '2000ba'
            base_lr: the highest learning rate of the head while the body is frozen; half of it after that
            freeze_epochs: epochs for the head alone, before those for the whole model; or an amount
            lr_mult: the head's learning rate divided by that of the first layers
            pct_start: the fraction of the second part in which the rate rises, 0 to 1
            div: the initial learning rate of the second part is its highest divided by `div`
            start_epoch: the number of the first epoch, if earlier ones are done; it counts through both parts
            div_final: the final learning rate is `lr_max/div_final`
            moms: momentum at the start, at the highest rate and at the end; None: the Learner's
            wd: weight decay; None: the Learner's
            cbs: callbacks for this fit only
            reset_opt: begin with a fresh optimizer?
            resume: a checkpoint to go on from; 'auto': the newest, if any

        Raises:
            ValueError: `…` must be a number above 0
            ValueError: `…` must be a whole number, 0 or more
            ValueError: start_epoch counts the epochs of both parts, so it needs both of them in epochs, not as amounts
            ValueError: start_epoch must be from 0 to the … frozen epochs and … more
        """
        ...
    def to_fp16(self, **kwargs: Any) -> Learner:
        """Train and predict in mixed precision with float16 from now on (fastai's name)

        Args:
            kwargs: passed on to `torch.amp.GradScaler`: `init_scale`, `growth_interval` …

        Returns:
            the Learner itself
        """
        ...
    def to_bf16(self) -> Learner:
        """Train and predict in mixed precision with bfloat16 from now on (fastai's name)"""
        ...
    def to_fp32(self) -> Learner:
        """Train and predict without mixed precision from now on (fastai's name)"""
        ...
    def get_preds(
        self,
        ds_idx: int = 1,
        dl: Any = None,
        with_input: bool = False,
        with_decoded: bool = False,
        with_loss: bool = False,
        act: Callable[..., Any]|None = None,
        inner: bool = False,
        reorder: bool = True,
        cbs: Any = None,
        mmap: str|Path|None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Predict a data set: returns `([inputs], preds, targs, [decoded], [losses])`; those in brackets only if asked for

        Args:
            ds_idx: number of the loader in `dls`: 0 is the training set, 1 the validation set
            dl: the loader, any iterable of batches; None: the one of `ds_idx`
            with_input: return the inputs too
            with_decoded: return `loss_func.decodes` of the predictions too, such as the most likely class
            with_loss: return the loss of each item too
            act: function from the model's outputs to predictions; None: the loss function's `activation`
            inner: accepted because fastai's callbacks pass it; a call inside a run is detected
            reorder: return everything in the order of the data set; False: in the order of the loader
            cbs: callbacks for this run only
            mmap: folder for memory-mapped results; `act` is then called batch by batch; None: in memory
            kwargs: arguments of `GatherPredsCallback`: `dtype`, `with_preds`, `with_targs`, `save_preds`, …

        Raises:
            TypeError: act must be a function of the outputs, such as `torch.sigmoid`
            TypeError: `mmap` must be a path
            ValueError: the predictions of the parts of a `DistributedSampler` are joined in memory: leave out `mmap`, or …
        """
        ...
    def _batch_of(self, items: Any) -> Any:
        """The inputs of `items` as a batch"""
        ...
    def test_dl(self, items: list[Any], bs: int = 64) -> Any:
        """Returns a loader of items, with the `collate_fn` of the data: `learn.get_preds(dl=learn.test_dl(items))`

        Args:
            items: inputs as the data set returns them, without target
            bs: items in a batch

        Raises:
            ValueError: `bs` must be a batch size, 1 or more
        """
        ...
    def class_names(self) -> Any:
        """Returns the names of the classes: those of the data, else those that the model knows; None if there are none"""
        ...
    def _item_loader(self, item: Any) -> tuple[Any, ...]:
        """A loader of one batch with one item, and what `decode_batch` the data has"""
        ...
    def _answer(self, preds: Any, decoded: Any, decode: Any, inp: Any = None) -> tuple[Any, ...]:
        """Input, label, decoded and raw prediction of a batch of one item

        Raises:
            RuntimeError: a callback has cancelled the batch of this item, so there is no prediction
        """
        ...
    def predict(self, item: Any, with_input: bool = False) -> tuple[Any, ...]:
        """Predict one item: returns `(label, decoded, prediction)`, after the input if `with_input`; see also `Predictor`

        Args:
            item: one input as the data set returns it, without target; a tuple for several inputs
            with_input: return the input too: as a batch, or as `decode_batch` gives it

        Raises:
            RuntimeError: a callback has cancelled the batch of this item, so there is no prediction
        """
        ...
    @contextmanager
    def _kept_open(self, cbs: Any) -> Iterator[None]:
        """A run to predict in, which holds the lock only when it begins and ends"""
        ...
    @property
    def closed(self) -> bool:
        """Whether `close` was called; then the Learner refuses every run"""
        ...
    def close(self) -> None:
        """Let the callbacks release what they keep, and refuse further runs; raises RuntimeError in a run

        Raises:
            RuntimeError: a `…` is running…: close the Learner when it has ended
        """
        ...
    def close_at_exit(self) -> Self:
        """Close this Learner when Python exits, if it still exists; returns it"""
        ...
    def export(self, file: str|Path = 'export', inputs: Any = None, **about: Any) -> Path:
        """Export the model for inference: weights and a description, no code; `load_learner` reads it. Raises TypeError.

        Args:
            file: a name in `path/model_dir`, or a path
            inputs: what the inputs look like, a text for people; None: describe a batch of the training data
            about: what else the description contains: numbers, strings, lists and dicts of them

        Raises:
            TypeError: the description of an exported Learner is text, and cannot hold this: …
        """
        ...
    def identity(self) -> dict[str, str|None]:
        """Return what this run trains with, in words; to be asked for in `before_fit`"""
        ...
    def save_pretrained(self, folder: str|Path, *others: Any, **kwargs: Any) -> Path:
        """Save the model by its own `save_pretrained`; returns the folder; raises TypeError for a model that has none

        Args:
            folder: name of the folder, in `learn.path/learn.model_dir`, or a path
            others: what is kept beside the model: a tokenizer, an image processor
            kwargs: arguments of the model's `save_pretrained`

        Raises:
            TypeError: `folder` must be a path
            TypeError: a … has no `save_pretrained`: write `learn.save(…)` for its weights
        """
        ...
    def run_state(self, epoch: int, done: int = 0, copy: bool = False) -> dict[str, Any]:
        """Return everything that this run needs to resume; raises TypeError if a checkpoint cannot hold a part of it

        Args:
            epoch: the epoch to resume in
            done: how many of its batches are done
            copy: copy all tensors to the CPU
        """
        ...
    def _check_run_state(self, state: Any) -> None:
        """Check that `state` is from a run with this model and this kind of optimizer; raises ValueError if not

        Raises:
            ValueError: this checkpoint has format …, and this learnkit reads up to …: it was written by a newer one
            ValueError: this is not the checkpoint of a run: it lacks ……
            ValueError: this is not the checkpoint of a run: …
            ValueError: this checkpoint lacks random numbers: …
            ValueError: expected weights by name
            ValueError: these weights are of another model: ……
            ValueError: this checkpoint is of another model: the gradient of … …
            ValueError: this is not a state of the optimizer (…): …
        """
        ...
    def _try_callbacks(self, state: Any) -> None:
        """Load the states of callbacks and random numbers on trial; raises ValueError if that fails, with the old ones back

        Raises:
            ValueError: this checkpoint does not fit: …: …
        """
        ...
    def restore(self, state: dict[Any, Any]) -> None:
        """Restore the state of a run; raises ValueError if it does not fit this Learner, and then changes nothing

        Args:
            state: what `run_state` returned

        Raises:
            ValueError: this checkpoint is of another model: the gradient of … …
            ValueError: this checkpoint does not fit: …: …
        """
        ...
    def _restore_cbs(self, states: Any) -> None: ...
    def file_path(self, file: str|Path) -> Path:
        """Returns the path of a model file: in `path/model_dir`, ending in .pth unless it ends in .safetensors

        Args:
            file: a name, or a path

        Raises:
            TypeError: file is a name such as 'best' or a path
        """
        ...
    def save(self, file: str|Path|BinaryIO, with_opt: bool = True, **kwargs: Any) -> Path:
        """Save the model (and optimizer); returns the path of the file; raises TypeError for what `load` could not read

        Args:
            file: a name, a path, or an open binary file
            with_opt: save the optimizer's state too (not in .safetensors); False: only the model's `state_dict`
            kwargs: arguments of `torch.save`, such as `pickle_protocol`

        Raises:
            ValueError: … is an open file: pass its path instead, which the .safetensors format needs
        """
        ...
    def load(
        self,
        file: str|Path|BinaryIO,
        device: Any = None,
        with_opt: bool = True,
        strict: bool = True,
        weights_only: bool = True,
    ) -> Self:
        """Load the model (and optimizer); raises FileNotFoundError or ValueError, and changes nothing then

        Args:
            file: a name, a path, or an open binary file
            device: the device to move the model to; None: leave it where it is
            with_opt: load the optimizer's state too, if the file has it
            strict: refuse a file whose weights are not exactly those of the model
            weights_only: accepted because fastai's callbacks pass it; code from a file is never run

        Raises:
            ValueError: … is a checkpoint of a whole run: resume from it with `fit(..., resume=path)`
            ValueError: … was written by `learn.export`: read it with `load_learner`
            ValueError: expected weights by name
            ValueError: these weights are of another model: ……
            ValueError: `learn.opt` has none of the model's parameters (…): build it from `learn.model.parameters()`, or …
            ValueError: this is not a state of the optimizer (…): …
        """
        ...
    def _take_weights(self, weights: Any, opt: Any, strict: Any) -> None: ...
    @contextmanager
    def distrib_ctx(self, sync_bn: bool = False, **kwargs: Any) -> Iterator[Self]:
        """Train in this block with all processes that a launcher started; alone if there is only this one (fastai's name)

        Args:
            sync_bn: average batch norms over all processes? (not on the CPU)
            kwargs: passed on to `DistributedTrainer`
        """
        ...
    def compile(self, **kwargs: Any) -> Self:
        """Compile the model with `torch.compile`, in place and at its next call, and return the Learner

        Args:
            kwargs: passed on to `torch.compile`: `mode`, `dynamic`, `backend`, …
        """
        ...
    def to_channelslast(self, use_amp: bool = False, amp_mode: str = 'fp16', **kwargs: Any) -> Learner:
        """Convert the model to channels last order from now on, and return the Learner (fastai's name)

        Args:
            use_amp: add mixed precision too?
            amp_mode: its 16-bit type: 'fp16' or 'bf16'
            kwargs: passed on to `torch.amp.GradScaler`
        """
        ...
    def to_contiguous(self, to_fp32: bool = False) -> Learner:
        """Convert the model back to the default order, and return the Learner (fastai's name)

        Args:
            to_fp32: remove mixed precision too?
        """
        ...
    def _profile_fused(self, n_epoch: Any, n_batches: Any, cbs: Any) -> Any: ...
    def _layer_info(self) -> tuple[Any, ...]:
        """The model (a copy, if it is lazy), its `layer_info`, and the shapes of its input

        Raises:
            ValueError: weights of the model are on the device 'meta', where they have no values: write …
        """
        ...
    def summary(self) -> Text:
        """Summarize the model: layers with output shapes and parameters, optimizer, loss function and callbacks"""
        ...
    def show_training_loop(self) -> Text:
        """Show the training loop: every event in its place, with the callbacks that handle it in order"""
        ...
    @contextmanager
    def unchanged(self) -> Iterator[Learner]:
        """Undo whatever is trained in the block, however it ends; raises RuntimeError in a run, ValueError for lazy layers

        Raises:
            RuntimeError: a trial inside a running `…`… would overwrite its counters and its history: make it before or …
        """
        ...
@contextmanager
def _apart(run: Any) -> Iterator[None]: ...
