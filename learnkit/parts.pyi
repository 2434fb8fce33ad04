# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Are data, model, loss function, optimizer and splitter what they should be? Asked when a Learner is made"""
from typing import Any

def check_parts(dls: Any, model: Any, loss_func: Any) -> None:
    """Raise TypeError if a part of a Learner is none, and say what to write

    Args:
        dls: what should be the data
        model: what should be the model
        loss_func: what should be the loss function, or None
    """
    ...
def check_dls(dls: Any) -> None:
    """Raise TypeError if it is not a `DataLoaders`, or what another library calls so

    Args:
        dls: what should be the data of a Learner, which may have been replaced
    """
    ...
def check_recipe(opt_func: Any, splitter: Any, wd: Any, moms: Any) -> None:
    """Raise TypeError or ValueError if no optimizer can be made of these, and say what to write

    Args:
        opt_func: what should make the optimizer
        splitter: what should give the groups of parameters
        wd: what should be the weight decay, or None
        moms: what should be the momentums for `fit_one_cycle`, or None
    """
    ...
