# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Are data, model, loss function, optimizer and splitter what they should be? Asked when a Learner is made"""
from typing import Any

def check_parts(dls: Any, model: Any, loss_func: Any) -> None:
    """Raise TypeError if a part of a Learner is none, and say what to write

    Args:
        dls: what should be the data
        model: what should be the model
        loss_func: what should be the loss function, or None

    Raises:
        TypeError: the data come first, then the model: `Learner(DataLoaders(…), model)`
        TypeError: model is the class …: pass an instance of it, `…(...)`
        TypeError: model must be an nn.Module
        TypeError: loss_func must be a function of (pred, *targets) such as `F.mse_loss`
    """
    ...
def check_dls(dls: Any) -> None:
    """Raise TypeError if it is not a `DataLoaders`, or what another library calls so

    Args:
        dls: what should be the data of a Learner, which may have been replaced

    Raises:
        TypeError: `learn.dls` must be a `DataLoaders`, not a …: write `learn.dls = DataLoaders(train, valid)`
    """
    ...
def check_recipe(opt_func: Any, splitter: Any, wd: Any, moms: Any) -> None:
    """Raise TypeError or ValueError if no optimizer can be made of these, and say what to write

    Args:
        opt_func: what should make the optimizer
        splitter: what should give the groups of parameters
        wd: what should be the weight decay, or None
        moms: what should be the momentums for `fit_one_cycle`, or None

    Raises:
        TypeError: An optimizer is a class such as torch.optim.AdamW, a partial of one, a function of parameter …
        TypeError: `opt_func` is the class …, which is no optimizer: write one, such as `opt_func=torch.optim.AdamW`…
        TypeError: splitter must be a function of the model that returns its parameters, or a list of them for each …
        ValueError: the weight decay `wd` must be 0 or more
        ValueError: moms are three numbers from 0 to less than 1: at the start, at the highest learning rate and at the …
    """
    ...
