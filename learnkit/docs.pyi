# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`doc(learn.fit)`, `learn.fit?` and `help` show what each parameter means"""
from typing import Any

__all__ = ['Doc', 'doc']
class _gone: ...
def complete_docs(only: str|None = None) -> None:
    """Adds to docstrings what the parameters mean and what is raised, unless Python removed them (`-OO`)

    Args:
        only: the name of a module; None: all that are imported
    """
    ...
heading: Any
def meanings(lines: str) -> dict[Any, Any]:
    """Returns the meanings of parameters, by their names

    Args:
        lines: the lines below `Args:`
    """
    ...
def as_source(t: Any) -> str:
    """Returns an annotation as the sources have it, without the names of modules

    Args:
        t: an annotation

    Returns:
        '' if it says nothing
    """
    ...
def shown_default(v: Any) -> str:
    """Returns a default, shortened; a function or class by its name

    Args:
        v: a default
    """
    ...
stars: dict[Any, Any]
def is_about(args: str, cls: type[Any]) -> bool:
    """Returns whether the parameters are those of the constructor of `cls`

    Args:
        args: the heading above the parameters in a docstring
        cls: a class that has this docstring, perhaps from a base
    """
    ...
class Doc:
    """A page about a function, a class or a method: text in a terminal, with tables in a notebook"""
    name: Any
    module: Any
    about: Any
    returned: Any
    raises: Any
    result: Any
    params: list[Any]
    call: str
    def __init__(self, f: Any) -> None:
        """A page about a function, a class or a method: text in a terminal, with tables in a notebook

        Args:
            f: what it is about
        """
        ...
    def _chapter(self) -> Any:
        """The notebook that explains it, and what this is about"""
        ...
    def _end(self) -> list[Any]:
        """What is returned, and where it is explained"""
        ...
    def __repr__(self) -> str: ...
    def _repr_html_(self) -> Any: ...
def doc(f: Any) -> Doc:
    """Returns the page about `f`, which a notebook or a prompt shows: parameters, result, errors, chapter

    Args:
        f: a function, class, method, property or module; of a `partial` its function, of another object its class

    Returns:
        its `repr` is the page as text

    Raises:
        TypeError: `doc` takes what it is about, not its name: write `doc(learn.fit)`
    """
    ...
