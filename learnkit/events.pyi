# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""What the training loop announces, and the Cancels that end a part of it early"""
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ['event', 'CancelBatchException', 'CancelBackwardException', 'CancelStepException', 'CancelZeroGradException',
           'CancelTrainException', 'CancelValidException', 'CancelEpochException', 'CancelFitException', 'nearest',
           'Events', 'Cancel', 'CancelBatch', 'CancelBackward', 'CancelStep', 'CancelZeroGrad', 'CancelTrain',
           'CancelValid', 'CancelEpoch', 'CancelFit', 'cancel_types', 'cancelled']
def nearest(name: str, known: Iterable[str]) -> str:
    """Returns the part of an error message that proposes the name that was probably meant

    Args:
        name: a name that is not known
        known: all names that are
    """
    ...
class Events:
    """Holds every event as an attribute, so that an editor completes its name and a typo is an error"""
    after_create: str
    """the Learner is complete: the last line of its constructor"""
    before_evaluate: str
    """`learn.validate()` was called, outside of any other run"""
    before_predict: str
    """`learn.get_preds()` was called, outside of any other run"""
    before_fit: str
    """set up here: the optimizer is made, `n_epoch` is known"""
    before_epoch: str
    """an epoch begins"""
    before_train: str
    """its training phase begins: change `batches`, the stream of its batches, here"""
    before_fetch: str
    """the loader is about to be asked for a batch (and once more, when it has none left)"""
    after_fetch: str
    """`batch` is what the loader gave, untouched"""
    before_batch: str
    """`xb` and `yb` are on the model's device: change them here"""
    before_pred: str
    """the model is about to be called"""
    after_pred: str
    """`pred` is the model's output"""
    before_loss: str
    """the loss is about to be computed"""
    after_loss: str
    """`loss_grad` is what goes backward, `loss` is what is recorded"""
    before_backward: str
    """training only, as all that follows up to `after_zero_grad`"""
    after_cancel_backward: str
    after_backward: str
    """the gradients are there"""
    before_step: str
    """change the gradients here"""
    after_cancel_step: str
    after_step: str
    """the weights are new, the gradients are still there"""
    before_zero_grad: str
    """the gradients are about to go"""
    after_cancel_zero_grad: str
    after_zero_grad: str
    """the gradients are gone"""
    after_cancel_batch: str
    after_batch: str
    """the counters `train_iter` and `pct_train` have moved on"""
    after_exhaust: str
    """the loader has no batch left"""
    after_cancel_train: str
    after_train: str
    """the training phase is over"""
    before_validate: str
    """the validation phase begins: no gradients, the model in evaluation mode"""
    after_cancel_validate: str
    after_validate: str
    """the validation phase is over"""
    after_cancel_epoch: str
    after_epoch: str
    """the epoch is over, its row is recorded"""
    after_cancel_fit: str
    after_fit: str
    """the fit is over"""
    after_evaluate: str
    """the end of `learn.validate()`"""
    after_predict: str
    """the end of `learn.get_preds()`"""
    after_exception: str
    """something that is no Cancel was raised: it is in `exc`, and is raised again afterwards"""
    cleanup: str
    """always last, however the run ended: give back here what was taken"""
    before_save_model: str
    """`learn.save` is about to write"""
    after_save_model: str
    """the file is written, or could not be"""
    before_load_model: str
    """`learn.load` is about to read"""
    after_load_model: str
    """model (and optimizer) are restored"""
    before_save_checkpoint: str
    """the whole run is about to be saved"""
    after_save_checkpoint: str
    """it is saved, or being written"""
    before_load_checkpoint: str
    """a run is about to be resumed, from the file `path`"""
    after_load_checkpoint: str
    """the run is where that file says, and trains on from there"""
    before_train_batch: str
    """an attempt at a training batch; `attempt` counts from 0"""
    after_train_batch: str
    """the gradients are as the optimizer will use them"""
    before_replay: str
    """the batch did not fit into memory and is done in parts"""
    batch_checkpoint: str
    """a training batch is over for all callbacks"""
    epoch_checkpoint: str
    """an epoch is over for all callbacks"""
    before_cycle: str
    """a cycle begins; `cycle` is its number"""
    after_cycle: str
    """the cycle has its length"""
    cycle_checkpoint: str
    """the cycle is over for all callbacks"""
    after_cancel_valid: str
    """another name of `after_cancel_validate`"""
    nonfinite_loss: str
    """training losses are NaN or infinite; callbacks that hear this deal with them"""
    before_validate_all: str
    """evaluations begin; `due` has the names of the loaders"""
    after_validate_all: str
    """evaluations are done; `results` has them, `{name: {'loss':…, metric: …}}`"""
    log_metrics: str
    """numbers were logged: `metrics` by name, at batch `step` of all fits"""
    log_media: str
    """texts, images, histograms or tables (`kind`) were logged: `media` by name, at `step`"""
    before_sanity: str
    """a few batches are validated next, before training begins"""
    after_sanity: str
    """`results` holds their loss and metrics"""
    before_micro_batch: str
    """`xb` and `yb` are a part of the batch: the slice `items`"""
    after_micro_batch: str
    """the gradient of the part is there"""
    after_read_losses: str
    """the Recorder has read `losses`, of the training batches from number `start` on"""
    after_row: str
    """a validation gave `row`, for the history; if `epoch`, a part of the row of the epoch"""
    before_close: str
    """the Learner is closed: release what you keep for longer than a run"""
    after_close: str
    """every callback has handled `before_close`; the last event of all"""
    docs: dict[Any, Any]
    depth: dict[Any, Any]
    by: dict[Any, Any]
    also: dict[Any, Any]
    declared: tuple[Any, ...]
    def __init__(self, table: str) -> None:
        """Holds every event as an attribute, so that an editor completes its name and a typo is an error

        Args:
            table: a line per event: its name, indented by two spaces per level of the loop, then its documentation
        """
        ...
    def register(self, name: str, doc: str = '', depth: int = 0, after: str|None = None, by: str = '') -> str:
        """Adds event `name` unless it exists, and returns it; raises ValueError if the name is not free

        Args:
            name: the new event; `learn(name)` then calls the callbacks that have a method of this name
            doc: what it announces
            depth: its level in the loop; from 3 on it is part of a batch, so `run_train` and `run_valid` apply
            after: the event that it follows where events are listed; None: the last one
            by: the class of the callback that fires it; '': the Learner

        Raises:
            ValueError: an event's name must be a free Python identifier such as 'before_sanity'
        """
        ...
    def alias(self, name: str, of: str) -> None:
        """Lets callbacks call an event by another name too. Raises ValueError if there is no event `of`.

        Args:
            name: another name
            of: for this event: a method called `name` handles it
        """
        ...
    def check(self, name: str) -> str:
        """Returns `name`; raises ValueError, with the nearest known name, if there is no such event

        Args:
            name: an event, or not

        Raises:
            ValueError: there is no event `…`: … (`event.register` adds new ones)
        """
        ...
    def in_batch(self, name: str) -> bool:
        """Returns whether event `name` belongs to a single batch

        Args:
            name: an event
        """
        ...
    def __iter__(self) -> Iterator[str]: ...
    def __contains__(self, name: object) -> bool: ...
    def __repr__(self) -> str: ...
event: Events
class Cancel(Exception):
    """Ends one scope of the loop; raise one of its subclasses"""
    scope: str|None
    def __init__(self, *args: Any) -> None:
        """Ends one scope of the loop; raise one of its subclasses

        Args:
            args: the reason; by default it says which scope ends
        """
        ...
class CancelBatch(Cancel):
    """Skips the rest of this batch"""
class CancelBackward(Cancel):
    """Skips the backward pass; the optimizer still steps"""
class CancelStep(Cancel):
    """Skips the optimizer's step; the gradients are still zeroed"""
class CancelZeroGrad(Cancel):
    """Keeps the gradients for the next batch"""
class CancelTrain(Cancel):
    """Ends this epoch's training phase; validation follows"""
class CancelValid(Cancel):
    """Ends this validation phase"""
class CancelEpoch(Cancel):
    """Ends this epoch; the next one follows"""
class CancelFit(Cancel):
    """Ends the whole run"""
CancelBatchException = CancelBatch
CancelBackwardException = CancelBackward
CancelStepException = CancelStep
CancelZeroGradException = CancelZeroGrad
CancelTrainException = CancelTrain
CancelValidException = CancelValid
CancelEpochException = CancelEpoch
CancelFitException = CancelFit
_cancels: dict[Any, Any]
def _cancels_in(cls: Any) -> list[Any]: ...
def cancel_types(e: BaseException) -> list[type[Cancel]]:
    """Returns the Cancels that `e` is, by the names of its class and of its bases: mostly one, or none

    Args:
        e: an exception of any library
    """
    ...
def cancelled(cancel: type[Cancel]) -> type[BaseException]|tuple[type[BaseException], ...]:
    """Returns what `except` has to catch: the exception at hand if it is a `cancel` of any library, else nothing

    Args:
        cancel: the Cancel of the scope at hand
    """
    ...
