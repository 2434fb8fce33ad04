# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""What a model that computes its loss itself returns: its loss, its predictions, and what they are about"""
from collections.abc import Callable, Iterator
from torch import Tensor, nn
from typing import Any

__all__ = ['shifts_labels']
def shifts_labels(model: nn.Module) -> bool:
    """Returns whether the logits of `model` at each position are compared with the label of the next one

    Args:
        model: a model, perhaps wrapped
    """
    ...
def is_of_transformers(model: nn.Module) -> bool:
    """Returns whether `model` is one of the transformers library, or behaves as those do

    Args:
        model: a model, perhaps wrapped
    """
    ...
def next_tokens(yb: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the targets without the first position, which no logits are compared with

    Args:
        yb: the targets of a batch: token numbers
    """
    ...
def with_first(yb: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the targets with a first position that does not count, as the model wants them

    Args:
        yb: targets without their first position
    """
    ...
def main_part(out: Any) -> Any:
    """Returns the predictions in an output: its `logits`, those of several kinds as a dictionary, or all of it

    Args:
        out: what a model returned
    """
    ...
class OwnOutput:
    """Reads the output of a model that computes its loss itself, or that returns its predictions among other things"""
    asks: Any
    shifts: Any
    is_tuple: Any
    name: Any
    def __init__(self, model: nn.Module, loss_func: Callable[..., Any]|None) -> None:
        """Reads the output of a model that computes its loss itself, or that returns its predictions among other things

        Args:
            model: the model
            loss_func: the Learner's; None: the model's own

        Raises:
            ValueError: … predicts the next token, but `…` would compare each prediction with the token itself: leave out …
        """
        ...
    def split(self, b: Any, n_inp: int|None) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Returns inputs and targets, which are those that predictions are compared with

        Args:
            b: a batch
            n_inp: how many of its elements are inputs; None: as `split_batch` does
        """
        ...
    def inputs(self, x: dict[Any, Any], yb: tuple[Any, ...]) -> dict[Any, Any]:
        """Returns the arguments of the model: with the targets, if it is to compute its loss

        Args:
            x: the inputs by name, as `Inputs`
            yb: the targets, as `split` gave them
        """
        ...
    def read(self, out: Any, yb: tuple[Any, ...]) -> tuple[Tensor|None, Any]:
        """Returns the loss in the output, if any, and the predictions for the targets `yb`

        Args:
            out: what the model returned
            yb: the targets, as `split` gave them
        """
        ...
def own_output(model: nn.Module, loss_func: Callable[..., Any]|None) -> OwnOutput|None:
    """Returns what reads the model's outputs; None where they are predictions, or are for a function that knows them

    Args:
        model: the model
        loss_func: the Learner's; None: the model's own
    """
    ...
just_split: Any
def check_shift(own: OwnOutput, out: Any, yb: tuple[Any, ...], loss: Tensor|None) -> None:
    """Raises ValueError if the model's loss says that labels are shifted where `own` does not, or the other way round

    Args:
        own: what has read the output
        out: the output of the model
        yb: its targets, as `own.split` gave them
        loss: its loss

    Raises:
        ValueError: … … its labels by one position, so metrics would be wrong: set `model.shifts_labels = …`
    """
    ...
def each_loss(pred: Any, targ: Any) -> Iterator[tuple[Tensor, Tensor|int]]:
    """Gives the losses, one for each target, that a model may have computed its own from, and how many count

    Args:
        pred: the predictions
        targ: their targets
    """
    ...
class OutputLoss:
    """The loss that a model computes itself, where that of each item is asked for"""
    reduction: str
    learn: Any
    def __init__(self, learn: Any) -> None:
        """The loss that a model computes itself, where that of each item is asked for

        Args:
            learn: the Learner
        """
        ...
    def __call__(self, pred: Any, *targs: Any) -> Tensor:
        """Returns a loss for each target; raises ValueError if their mean is not the model's own

        Args:
            pred: the predictions
            targs: their targets

        Raises:
            ValueError: the loss of each item needs a loss function: pass `loss_func=` to the Learner
            ValueError: the loss of each item cannot be told from what the model gives: its loss is not the mean of cross …
        """
        ...
_of_items: tuple[Any, ...]
def answer_kind(model: nn.Module) -> str|None:
    """Returns what the logits of `model` are: of 'classes', 'binary', or 'numbers'; None if it does not say

    Args:
        model: a model of transformers, or another one
    """
    ...
_by_position: tuple[Any, ...]
def output_decodes(model: nn.Module) -> Callable[..., Any]:
    """Returns the function from predictions to answers: the best class, or which logits are above 0

    Args:
        model: a model that computes its loss itself
    """
    ...
def output_vocab(model: nn.Module) -> list[Any]|None:
    """Returns the names of the classes by the model's configuration; None if it is no classifier

    Args:
        model: a model of transformers, or another one
    """
    ...
