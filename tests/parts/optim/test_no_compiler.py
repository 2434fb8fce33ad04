"PyTorch loads its compiler with the first optimizer, for a second and some fifty megabytes, only to keep methods out of it: here it is not loaded"
import sys
from functools import partial
from types import SimpleNamespace

import pytest, torch
from torch import nn
from torch.optim import SGD, Adadelta, AdamW

from learnkit.all import CheckpointCallback, DataLoaders, Learner
from learnkit.optim.groups import no_compiler

methods = [getattr(torch.optim.Optimizer, n).__wrapped__ for n in ('add_param_group','state_dict','load_state_dict')]

@pytest.fixture
def not_there(monkeypatch):
    "A process in which it is not loaded, and cannot be"
    for f in methods: monkeypatch.delattr(f, '__dynamo_disable', raising=False)
    monkeypatch.setitem(sys.modules, 'torch._dynamo', None)

@pytest.mark.parametrize('opt_func', [partial(SGD, momentum=.9), AdamW, Adadelta])
def test_a_run_with_checkpoints_and_files(opt_func, tmp_path, not_there):
    with pytest.raises(ImportError): opt_func([torch.ones(1)])   # by hand it is loaded
    data = [(torch.ones(2, 3), torch.ones(2, 1))]*4
    def trained(n, **kw):
        torch.manual_seed(0)
        learn = Learner(DataLoaders(data, data), nn.Linear(3, 1), nn.MSELoss(), opt_func, path=tmp_path, cbs=CheckpointCallback('3ba'), lr=.1)
        with learn.no_bar(), learn.no_logging(): learn.fit(n, **kw)
        return learn
    learn = trained(1)
    with learn.no_bar(), learn.no_logging(): trained(2, resume='auto')
    learn.save('all'); learn.load('all')
    with pytest.warns(UserWarning, match='nothing is frozen'): learn.freeze()
    learn.validate(); learn.get_preds()

def test_all_is_as_it_was(not_there):
    with no_compiler():
        assert all(f.__dynamo_disable is f for f in methods)
        with no_compiler(): pass
    assert not any(hasattr(f, '__dynamo_disable') for f in methods)
    with pytest.raises(ZeroDivisionError), no_compiler(): 1/0
    assert not any(hasattr(f, '__dynamo_disable') for f in methods)

def test_where_the_compiler_is_loaded_it_is_queried(not_there, monkeypatch):
    asked = []
    compiler = SimpleNamespace(disable=lambda f, *args, **kw: asked.append(f) or f)
    monkeypatch.setitem(sys.modules, 'torch._dynamo', compiler)
    monkeypatch.setattr(torch, '_dynamo', compiler, raising=False)
    with no_compiler(): SGD([torch.ones(1)])
    assert asked==[methods[0]]
    del methods[0].__dynamo_disable
