# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""What a resumed run needs of an object: the attributes that it names in `saves`"""
from typing import Any

__all__ = ['Stateful']
class Stateful:
    """Has a state: the attributes that `saves` names"""
    saves: tuple[Any, ...]
    """names of attributes"""
    def state_dict(self) -> dict[Any, Any]:
        """Return the attributes that `saves` names; of one that has a `state_dict` itself, its state"""
        ...
    def load_state_dict(self, state: dict[Any, Any]) -> None:
        """Set the attributes to what `state_dict` returned; raises ValueError if `state` has other names

        Args:
            state: from `state_dict`

        Raises:
            ValueError: this is not the state of a …, which has …: … differs
        """
        ...
