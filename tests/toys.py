"Small models, data and Learners for tests: the same data and weights each time"
import gc, os, sys, weakref
from functools import partial
import torch
from torch import nn
from torch.optim import SGD
from learnkit.loop.callback import Callback
from learnkit.data.loaders import DataLoaders
from learnkit.learner.learner import Learner
from learnkit.callbacks.accumulate import GradientAccumulation

class Reg(nn.Linear):
    "A linear model with four inputs and one output"
    def __init__(self): super().__init__(4, 1)

class Overlay:
    "A stand-in for a module with some attributes replaced; all other users of the module see the original"
    def __init__(self, of, **own): vars(self).update(of=of, **own)
    def __getattr__(self, k): return getattr(vars(self)['of'], k)

def pretend_cuda(monkeypatch, module, there=True):
    "Make `torch.cuda.is_available` return `there` in `module` only; PyTorch and its default device are unchanged"
    monkeypatch.setattr(module, 'torch', Overlay(torch, cuda=Overlay(torch.cuda, is_available=lambda: there)))

def batches(n, bs=4, seed=0):
    "`n` batches of `bs` rows"
    g = torch.Generator().manual_seed(seed)
    xs = torch.randn(n, bs, 4, generator=g)
    return [(x, x.sum(1, keepdim=True)) for x in xs]

def model(seed=0, cls=Reg):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return cls()

def learner(n=3, nv=2, bs=4, loss_func=nn.MSELoss(), opt_func=SGD, lr=.05, quiet=True, valid=True, **kw):
    "A Learner on `n` batches for training and `nv` for validation"
    kw.setdefault('model', model())
    dls = kw.pop('dls', None) or DataLoaders(batches(n, bs), *[batches(nv, bs, 1)]*bool(nv))
    learn = Learner(dls, loss_func=loss_func, opt_func=opt_func, lr=lr, **kw)
    return learn

def at(ev, f, when=lambda cb: True, **kw):
    "A callback that calls `f(cb)` at event `ev`"
    cb = Callback(**{ev: lambda self: f(self) if when(self) else None})
    cb.acts = 'nothing'
    for k,v in kw.items(): setattr(cb, k, v)
    return cb

class UnreadAccumulation(GradientAccumulation):
    "Accumulates as on an accelerator, where reading how many targets of a batch count waits for the device"
    def _waits(self, t): return True

def count_calls(f, n=None):
    """The number of Python functions that `f()` calls; `n[0]` has the count meanwhile. Garbage collection is off: it
    would add finalizers of earlier tests, and `gc.callbacks`, to which Hypothesis adds one in its first test"""
    n = [0] if n is None else n
    def count(frame, what, arg): n[0] += what=='call'
    gc.collect()
    gc.disable()
    sys.setprofile(count)
    try: f()
    finally: sys.setprofile(None); gc.enable()
    return n[0]

def throw(e):
    def f(*args): raise e
    return f

def weights(learn): return torch.cat([p.detach().flatten().clone() for p in learn.model.parameters()])

def big_model(most):
    "A model without memory for more than `most` samples, and a list of the earlier activations alive at each call"
    alive,refs = [],[]   # not attributes of the model, which may be restored
    class Big(nn.Module):
        def __init__(self): super().__init__(); self.w = nn.Linear(4, 1)
        def forward(self, x):
            big = torch.zeros(10)
            alive.append(sum(r() is not None for r in refs)); refs.append(weakref.ref(big))
            if len(x)>most: raise torch.OutOfMemoryError('no memory')
            return self.w(x) + 0*big.sum()
    return Big(),alive

def few(n, m=None):
    """A mark for a test: `make test` runs `n` of its cases, spread evenly, and `make test-all` `m` more, or all others;
    with LEARNKIT_SWEEP=1 in the environment `make test-all` runs all"""
    import pytest
    return pytest.mark.few(n, m)

def draws(n):
    "A setting of Hypothesis: draw `n` examples; with LEARNKIT_SWEEP=1 in the environment 20 times as many"
    from hypothesis import settings
    return settings(max_examples=20*n if 'LEARNKIT_SWEEP' in os.environ else n, deadline=None)

def slow(*cases):
    "Cases for `parametrize` that only `make test-all` runs; a tuple holds one value for each parameter"
    import pytest
    return [pytest.param(*(c if isinstance(c, tuple) else (c,)), marks=pytest.mark.slow) for c in cases]

def equal(a, b):
    "Whether two states are the same, tensors and NaN included"
    if isinstance(a, torch.Tensor): return torch.equal(a, b) or torch.allclose(a, b, rtol=0, atol=0, equal_nan=True)
    if isinstance(a, dict): return a.keys()==b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, (list,tuple)): return len(a)==len(b) and all(map(equal, a, b))
    return a==b or (a!=a and b!=b)
