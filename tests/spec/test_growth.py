"""How cost grows with size: Python instructions are counted, not seconds, and an exponent is fitted; 1 is linear"""
import math, sys, warnings

import pytest, torch
from torch import nn

from learnkit.all import (Callback, CheckpointCallback, CombinedLoader, DataLoaders, EMACallback, History, Learner, ParamScheduler, SkipNaN,
                          TorchScheduler, one_cycle)
from toys import few

def count(f):
    "The number of Python instructions that `f` executes, in all frames that begin meanwhile"
    n = 0
    def trace(frame, event, arg):
        nonlocal n
        if event=='call': frame.f_trace_opcodes,frame.f_trace_lines = True,False
        else: n += event=='opcode'
        return trace
    before = sys.gettrace()
    sys.settrace(trace)
    try: f()
    finally: sys.settrace(before)
    return n

def exponent(make, sizes):
    "The slope of log(instructions) over log(size) between the two larger sizes"
    n0,n1 = sizes[-2:]
    count(make(sizes[0]))   # runs what is done once per process
    c0,c1 = count(make(n0)),count(make(n1))
    return math.log(c1/c0)/math.log(n1/n0)

class Many(nn.Module):
    def __init__(self, n): super().__init__(); self.layers = nn.ModuleList(nn.Linear(2, 2, bias=False) for _ in range(n))
    def forward(self, x): return self.layers[0](x)
b = torch.ones(2, 2),torch.zeros(2, 2)
def quiet(learn):
    learn.logger = lambda row: None
    return learn.remove_cb(learn.progress)
def learner(n_batches=1, n_layers=1, path='.', **kw): return quiet(Learner(DataLoaders([b]*n_batches), Many(n_layers), nn.MSELoss(), torch.optim.SGD, lr=1e-3, path=path, **kw))
def each(model): return [[p] for p in model.parameters()]
def grouped(n, **kw): return learner(2, n, splitter=each, **kw)
def step_lr(): return TorchScheduler(lambda opt: torch.optim.lr_scheduler.LambdaLR(opt, lambda i: 1/(1+i)), interval='step')
def fitted(n):
    learn = grouped(n)
    learn.fit(1)
    return learn

def new_class(i): return type(f'Cb{i}', (Callback,), {})
class Namesake(Callback): pass
class Other(Callback): pass
def namesakes(n): return [Namesake() for _ in range(n)]
def of_two_names(n): return [cls() for cls in (Namesake, Other) for _ in range(n//2)]
def without(learn):
    with learn.removed_cbs(Namesake): pass
def rows(n): return History(dict(epoch=i, train_loss=.5, time='00:01') for i in range(n))
def metric(i):
    def f(pred, y): return (pred-y).abs().mean()
    f.__name__ = f'm{i}'
    return f

cases = dict(   # name -> the function to measure for a size; a whole fit, so that its setup and cleanup count too
    groups=lambda n: partial_fit(grouped(n)), groups_and_schedule=lambda n: partial_fit(grouped(n), cbs=ParamScheduler(one_cycle(1e-3))), groups_and_torch_schedule=lambda n: partial_fit(grouped(n), cbs=step_lr()),
    second_fit=lambda n: partial_fit(fitted(n)), repr_of_the_optimizer=lambda n: (lambda learn: lambda: repr(learn.opt))(fitted(n)), hypers=lambda n: (lambda learn: lambda: [h['lr'] for h in learn.opt.hypers])(fitted(n)),
    layers=lambda n: partial_fit(learner(2, n)), layers_and_averages=lambda n: partial_fit(learner(2, n), cbs=[EMACallback(), SkipNaN()]),
    batches=lambda n: partial_fit(learner(n)), epochs=lambda n: (lambda learn: lambda: learn.fit(n))(learner()), metrics=lambda n: partial_fit(with_valid(metrics=[metric(i) for i in range(n)])),
    fits=lambda n: (lambda learn: lambda: [learn.fit(1) for _ in range(n)])(learner()), predictions=lambda n: (lambda learn: lambda: learn.get_preds(dl=[b]*n))(learner()),
    callbacks=lambda n: (lambda learn, cbs: lambda: learn.add_cbs(cbs))(learner(), [new_class(i)() for i in range(n)]), fit_with_callbacks=lambda n: partial_fit(learner(), cbs=[new_class(i)() for i in range(n)]),
    namesakes=lambda n: (lambda learn, cbs: lambda: learn.add_cbs(cbs))(learner(), namesakes(n)), namesakes_of_two=lambda n: (lambda learn, cbs: lambda: learn.add_cbs(cbs))(learner(), of_two_names(n)),
    fit_with_namesakes=lambda n: partial_fit(learner(), cbs=namesakes(n)), namesakes_removed_for_a_while=lambda n: (lambda learn: lambda: without(learn))(learner(cbs=namesakes(n))), namesakes_removed=lambda n: (lambda learn: lambda: learn.remove_cb(Namesake))(learner(cbs=namesakes(n))),
    len_of_combined=lambda n: lambda: len(CombinedLoader(dict(a=range(n), b=range(n//2)), weights=dict(a=.7, b=.3))), combined=lambda n: (lambda dl: lambda: [*dl])(CombinedLoader(dict(a=range(n), b=range(n//2)))),
    repr_of_the_history=lambda n: (lambda h: lambda: repr(h))(rows(n)), html_of_the_history=lambda n: (lambda h: lambda: h._repr_html_())(rows(n)), logged_values=lambda n: partial_fit(learner(), cbs=Callback(before_batch=log_many(n))))

def with_valid(**kw): return quiet(Learner(DataLoaders([b], [b]), Many(1), nn.MSELoss(), torch.optim.SGD, **kw))
def partial_fit(learn, **kw): return lambda: learn.fit(1, **kw)
def log_many(n):
    def log(self): self.learn.log_numbers({f'x{i}':1. for i in range(n)})
    return log

sizes = dict(metrics=(10, 20, 40), callbacks=(50, 100, 200), fit_with_callbacks=(20, 40, 80), len_of_combined=(1000, 2000, 4000))
@few(6)
@pytest.mark.parametrize('what', cases)
def test_linear(what):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        e = exponent(cases[what], sizes.get(what, (25, 50, 100)))
    assert e<1.15, f'{what}: exponent {e:.2f}'

def saved(path):
    "A Learner and the callback that saves it"
    save = CheckpointCallback('1000000ep', keep=None)
    learn = learner(path=path)
    learn.add_cb(save)
    return learn,save

@pytest.mark.filterwarnings('ignore')
def test_a_checkpoint_of_a_long_run_costs_what_one_of_a_short_run_does(tmp_path):
    "The number of instructions does not depend on the number of rows; each row takes fewer than 100 bytes"
    costs,sizes = {},{}
    for n in (50, 100, 200):
        learn,save = saved(tmp_path/f'{n}')
        def measure(cb):
            if cb.epoch!=n-1: return
            for part in ('first','second'): costs[n],sizes[n] = count(lambda: save.save(n, 0, part)),[*save.folder.glob('*second*.pth')]
            sizes[n] = sizes[n][0].stat().st_size
        look = Callback(after_epoch=measure)
        look.order = 200
        learn.fit(n, cbs=look)
        assert len(learn.recorder.history)==n
    assert costs[200]<1.02*costs[50], costs
    assert (sizes[200]-sizes[100])/100<100, sizes

@pytest.mark.filterwarnings('ignore')
@pytest.mark.slow
def test_checkpoints_of_each_epoch_are_linear(tmp_path):
    def fit(n): return lambda: learner(path=tmp_path/f'{n}', cbs=CheckpointCallback('1ep')).fit(n)
    assert exponent(fit, (10, 20, 40))<1.1

def test_quadratic_growth_is_found():
    def pairs(n): return lambda: [i for i in range(n) for _ in range(n)]
    assert 1.8<exponent(pairs, (25, 50, 100))<2.2
