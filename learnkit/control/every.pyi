# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""One argument for every interval: '2ep', '500ba', '10000sp', '0.1dur', '30m'"""
from typing import Any

__all__ = ['parse_every', 'Every']
def parse_every(every: Any) -> tuple[Any, ...]:
    """Return `(value, unit)`; a function has the unit 'call', never is None and None. Raises ValueError or TypeError.

    Args:
        every: as in the table above

    Raises:
        ValueError: every=…: a number of epochs is 1 or more, and 0 or None is never
        TypeError: every=…: write an amount such as '2ep', '500ba' or '30m', a whole number of epochs, a function of …
        ValueError: every=…: the number must be more than 0; None is for never
        ValueError: every=…: 'dur' is a fraction of the run, so at most 1; for epochs write '…ep'
    """
    ...
class Every:
    """Says when an interval of training is over: 2 epochs ('2ep'), 500 batches ('500ba'), half an hour ('30m')"""
    spec: Any
    value: Any
    unit: Any
    together: bool
    fresh: bool
    count: Any
    times: Any
    since: Any
    loaded: bool
    asked: Any
    n: int
    ask_at: Any
    def __init__(self, every: Any = None, together: bool = False) -> None:
        """Says when an interval of training is over: 2 epochs ('2ep'), 500 batches ('500ba'), half an hour ('30m')

        Args:
            every: text such as '500ba', a number of epochs, a function of the Learner, or None for never
            together: must it be due at the same batch in all processes, which are asked then?
        """
        ...
    def __bool__(self) -> bool: ...
    @property
    def in_batches(self) -> bool:
        """Whether it can be due within an epoch; if not, there is no need to ask at the end of each batch"""
        ...
    def __repr__(self) -> str: ...
    def __str__(self) -> str: ...
    def reset(self) -> None:
        """Set the count to zero"""
        ...
    def start(self, learn: Any) -> None:
        """Begin a fit: count from zero, or from the state that was loaded

        Args:
            learn: the Learner, in `before_fit`
        """
        ...
    def __call__(self, learn: Any, epoch: bool = False) -> bool:
        """Whether it is due now

        Args:
            learn: the Learner, in a fit
            epoch: True at the end of an epoch, False at the end of a training batch

        Raises:
            ValueError: … goes by the fraction of the run that is done, but the training loader has no `len`: say how many …
        """
        ...
    def _multiples(self, amount: Any) -> Any:
        """How many times the value fits into `amount`"""
        ...
    def _before(self, learn: Any) -> Any:
        """How much was done before this epoch, when the run begins with it"""
        ...
    def _amount(self, learn: Any) -> Any:
        """How much is done by now"""
        ...
    @property
    def elapsed(self) -> float:
        """Seconds of training so far"""
        ...
    def _agreed(self, own: Any) -> Any:
        """The most that any process has done, as of the batch where all were last asked"""
        ...
    def state_dict(self) -> dict[Any, Any]:
        """Return the count"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Continue the count of `state`: in the fit that has just begun, else also in the one that `start` begins next

        Args:
            state: what `state_dict` returned
        """
        ...
