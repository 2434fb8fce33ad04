"""Fused steps: what is compiled gives the numbers of the loop, and whatever it can't do goes the long way, with nothing lost"""
import os, re, shutil, subprocess, sys, warnings
from copy import deepcopy
from functools import partial
from pathlib import Path
from types import SimpleNamespace
import numpy as np, pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD, Adagrad, Adam, Adamax, AdamW, NAdam, RMSprop, Rprop
from learnkit.callbacks.cycles import ValidateEvery
from learnkit.callbacks.accumulate import GradientAccumulation
from learnkit.callbacks.averages import EMACallback
from learnkit.callbacks.gradients import GradientClip
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.loop.callback import Callback
from learnkit.loop.events import CancelBatch, CancelFit, CancelStep
from learnkit.data.nested import leaves
from learnkit.speed import train_step
from learnkit.speed.compiled import compile_config, compile_options
from learnkit.speed.fused import FusedStep
from learnkit.speed.updates import FunctionalOptim, functional_optim, functional_optims
from learnkit.speed.train_step import StepCompiler
from learnkit.speed.train_step import make_train_step, make_update
from learnkit.callbacks.precision import MixedPrecision
from learnkit.callbacks.schedules import ParamScheduler
from learnkit.callbacks.schedules import one_cycle
from learnkit.callbacks.schedules import TorchScheduler
from learnkit.data.loaders import DataLoaders
from learnkit.learner.learner import Learner
from learnkit.optim.optimizer import OptimWrapper
from toys import at, few, slow, throw

dynamo = pytest.importorskip('torch._dynamo')
pytestmark = [pytest.mark.slow,   # the first compiled step costs 15 seconds; the notebooks compile some in `make test`
              few(0, 2),   # so many cases of each test; all with LEARNKIT_SWEEP=1
              pytest.mark.skipif(compile_config() is None, reason='this PyTorch compiles no backward pass'),
              pytest.mark.skipif(not shutil.which(os.environ.get('CXX', 'g++')), reason='there is no C++ compiler'),
              pytest.mark.filterwarnings('error:this fit')]

def with_headers(options=None):
    """Options that precompile PyTorch's headers: this pays off for a hundred compiled functions, not for the one or
    two of a fit"""
    return [{**o, 'cpp_cache_precompile_headers':True} for o in compile_options(options)]

@pytest.fixture(scope='module', autouse=True)
def cache(tmp_path_factory):
    "What is compiled lands in a folder of this test session, and is compiled once; without vector instructions, the headers of which take the compiler half its time"
    from torch._inductor import config   # which a monkeypatch would leave without what it set: nothing was compiled any more
    folder = tmp_path_factory.getbasetemp()
    if 'PYTEST_XDIST_WORKER' in os.environ: folder = folder.parent   # one for all workers
    with pytest.MonkeyPatch.context() as m, config.patch({'cpp.simdlen':1}):   # not in `test_later_processes_find_the_program`, the notebooks, and the benchmarks
        m.setenv('TORCHINDUCTOR_CACHE_DIR', str(folder/'inductor'))
        m.setattr(train_step, 'compile_options', with_headers)
        yield

def data(n=8, bs=16, last=None, seed=0):
    g = torch.Generator().manual_seed(seed)
    sizes = [bs]*(n-1) + [last or bs]
    return [(torch.randn(k, 4, generator=g), torch.randint(0, 3, (k,), generator=g)) for k in sizes]

def net(*more):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 8), *more, nn.ReLU(), nn.Linear(8, 3))
def rich(): return net(nn.BatchNorm1d(8), nn.Dropout(.3))

def learner(batches=None, model=None, opt_func=SGD, lr=.1, **kw):
    return Learner(DataLoaders(batches or data(), data(2, seed=1)), model or net(), F.cross_entropy, opt_func, lr=lr, **kw)

def state(learn): return {k:v.clone() for k,v in learn.model.state_dict().items()}
def close(a, b, tol=2e-6): return a.keys()==b.keys() and all(torch.allclose(a[k].double(), b[k].double(), rtol=tol, atol=tol) for k in a)
def same(a, b): return a.keys()==b.keys() and all(torch.equal(a[k], b[k]) for k in a)

class CountingCompiler(StepCompiler):
    "Counts the batches that were fused, and the times that something was compiled"
    n,n_compiled = 0,0
    def __call__(self, *args):
        res = super().__call__(*args)
        self.n += 1
        return res
    def _compile(self, *args): self.n_compiled += 1; return super()._compile(*args)

class EagerCompiler(CountingCompiler):
    "The same, but what was traced is run as it is, without a C++ compiler: for what has nothing to do with numbers"
    def _make_step(self, inputs, options):
        with pytest.MonkeyPatch.context() as m:
            compiled = torch.compile
            m.setattr(torch, 'compile', lambda f, options, **kw: compiled(f, backend='aot_eager', **kw))
            return super()._make_step(inputs, options)

class Count(FusedStep):
    "A `FusedStep` that counts"
    name,make = 'fused_step',CountingCompiler
    def __init__(self, *args, **kw): super().__init__(*args, **kw); self.compiler = self.make(self.compiler.limit, self.compiler.options)
    n = property(lambda self: self.compiler.n)
    n_compiled = property(lambda self: self.compiler.n_compiled)

class Quick(Count): make = EagerCompiler

def test_quick_needs_no_compiler():
    "What most of these tests use writes no library: else each would take seconds more, and none would fail"
    folder = Path(os.environ['TORCHINDUCTOR_CACHE_DIR'])
    before = {*folder.rglob('*.so')}
    learner().fit(1, cbs=(cb := Quick()))
    assert cb.n==7 and {*folder.rglob('*.so')}==before

def graphs(): return dynamo.utils.counters['stats']['unique_graphs']

# the numbers
def one(p): return {'params':list(p)}
def two(m): return [list(m[0].parameters()), list(m[1:].parameters())]
def trained(m): return [p for p in m.parameters() if p.requires_grad]
sched = one_cycle(.1, moms=(.95,.85,.95))

configs = {
    'SGD, momentum, schedule': (rich, partial(SGD, momentum=.9, weight_decay=.01), {}, [partial(ParamScheduler, sched)], None),
    'SGD, nesterov, clipped':  (net,  partial(SGD, momentum=.9, nesterov=True), {}, [partial(GradientClip, .1)], None),
    'Adam, groups, schedule':  (net,  Adam, dict(splitter=two, wd=.1), [partial(ParamScheduler, one_cycle([1e-3,1e-1], moms=(.95,.85,.95)))], None),
    'AdamW, clipped, frozen':  (rich, partial(AdamW, eps=1e-6), dict(splitter=two, lr=.01, wd=.1), [partial(GradientClip, value=.01)], 'freeze'),
}

@pytest.mark.parametrize('how', ['Quick','Count'])
@pytest.mark.parametrize('name', configs)
def test_equals_eager(name, how):
    make,opt_func,kw,cbs,act = configs[name]
    def run(*more):
        torch.manual_seed(3)
        learn = learner(model=make(), opt_func=opt_func, **kw)
        if act: getattr(learn, act)()
        learn.fit(3, cbs=[*(cb() for cb in cbs), *more])
        return learn,torch.rand(1)
    cb = globals()[how]()
    eager,r0 = run()
    before = graphs()
    fused,r1 = run(cb)
    assert cb.n==3*7 and cb.n_compiled==1 and graphs()==before+1      # all but each epoch's first, and nothing was compiled twice
    assert close(state(eager), state(fused)) and torch.equal(r0, r1)  # and as many random numbers were drawn
    assert not close(state(fused), make().state_dict())
    osd = [l.opt.state_dict() for l in (eager, fused)]
    assert osd[0]['param_groups']==osd[1]['param_groups'] and osd[0]['state'].keys()==osd[1]['state'].keys()
    for a,b in zip(*(o['state'].values() for o in osd)):
        assert close({k:v for k,v in a.items() if v is not None}, {k:v for k,v in b.items() if v is not None})
    for a,b in zip(eager.recorder.history, fused.recorder.history):
        assert all(a[k]==pytest.approx(b[k], rel=1e-4) for k in ('epoch','train_loss','valid_loss'))
    assert torch.allclose(*(torch.stack(list(l.recorder.losses)) for l in (eager, fused)), rtol=1e-5)
    assert eager.recorder.lrs==fused.recorder.lrs and (eager.train_iter, eager.pct_train)==(fused.train_iter, fused.pct_train)==(24, 1.)

@pytest.mark.slow
def test_bfloat16():
    "The same types in the same places; sums of 16-bit numbers may be rounded elsewhere"
    def run(*cbs):
        learn = learner(lr=.01)
        learn.fit(2, cbs=[MixedPrecision('bf16'), *cbs])
        return learn
    def plain():
        learn = learner(lr=.01)
        learn.fit(2)
        return learn
    cb,types = Count(),set()
    eager,fused,exact = run(),run(cb, at('after_batch', lambda cb: types.add(cb.learn.pred.dtype))),plain()
    off = [max((state(a)[k]-state(b)[k]).abs().max().item() for k in state(a)) for a,b in ((eager, fused), (eager, exact))]
    assert cb.n==14 and types=={torch.float32} and off[1]>1e-4 and off[0]<off[1]/4, off

@pytest.mark.slow
def test_equals_by_hand():
    "Would fail if the compiler lost the learning rate, which is what happens to `alpha`"
    learn,model = learner(lr=.01),net()
    learn.fit(2, cbs=FusedStep())
    opt = SGD(model.parameters(), lr=.01)
    for xb,yb in data()*2:
        F.cross_entropy(model(xb), yb).backward()
        opt.step()
        opt.zero_grad()
    assert close(state(learn), model.state_dict(), 1e-6)

more_optims = [RMSprop, partial(RMSprop, centered=True, weight_decay=.1), partial(RMSprop, momentum=.9), Adagrad, partial(Adagrad, lr_decay=.1, weight_decay=.1),
               NAdam, partial(NAdam, weight_decay=.1), partial(NAdam, weight_decay=.1, decoupled_weight_decay=True), Adamax, partial(Adamax, weight_decay=.1)]

@pytest.mark.parametrize('opt_func, make', [(o, 'Quick') for o in more_optims] + [(partial(RMSprop, momentum=.9, centered=True), 'Count'), (NAdam, 'Count')])
def test_more_optimizers(opt_func, make):
    "The whole step is one compiled function, with a schedule; state and hyperparameters are those of the optimizer"
    def run(*cbs):
        learn = learner(opt_func=opt_func, lr=.01)
        learn.fit_one_cycle(2, .01, cbs=cbs)
        return learn
    cb,a = globals()[make](),run()
    b = run(cb)
    assert cb.n==14 and cb.n_compiled==1 and cb.compiled_part=='whole' and close(state(a), state(b), 1e-5)
    for s,t in zip(a.opt.opt.state.values(), b.opt.opt.state.values()): assert close(s, t, 1e-5)

@pytest.mark.skipif(not hasattr(torch.optim, 'Muon'), reason='this PyTorch has no Muon')
@pytest.mark.parametrize('kw', [{}, dict(nesterov=False, adjust_lr_fn='match_rms_adamw', weight_decay=.2, ns_steps=3)])
@pytest.mark.parametrize('make', ['Quick', 'Count'])
def test_muon(make, kw):
    "Muon computes in 16 bits, and a compiled step rounds less; with `emulate_precision_casts` it is the same"
    class Matrices(nn.Sequential):
        def __init__(self):
            with torch.random.fork_rng(): torch.manual_seed(0); super().__init__(nn.Linear(4, 24, bias=False), nn.ReLU(), nn.Linear(24, 3, bias=False))
    def run(*cbs):
        learn = learner(model=Matrices(), opt_func=partial(torch.optim.Muon, **kw), lr=.02)
        learn.fit_one_cycle(2, .02, cbs=cbs)
        return learn
    cb,a = globals()[make](options={'cpp_wrapper':True, 'emulate_precision_casts':True}),run()
    b = run(cb)
    assert cb.n==14 and cb.n_compiled==1 and cb.compiled_part=='whole' and close(state(a), state(b), 1e-5)
    for s,t in zip(a.opt.opt.state.values(), b.opt.opt.state.values()): assert close(s, t, 1e-5)

def test_an_optimizer_of_ones_own(monkeypatch):
    "What is put into the table is what a fused batch does"
    class Signs(SGD):
        @torch.no_grad()
        def step(self, closure=None):
            for pg in self.param_groups:
                for p in pg['params']: p.sub_(pg['lr']*p.grad.sign())
    def signs(p, grad, state, hypers, options): p.sub_(hypers[0]*grad.sign())
    def run(*cbs):
        learn = learner(opt_func=Signs, lr=.01)
        learn.fit(1, cbs=cbs)
        return state(learn)
    monkeypatch.setitem(functional_optims, Signs, FunctionalOptim(signs, ('lr','weight_decay'), has_state=False))
    assert close(run(), run(cb := Quick())) and cb.n==7 and cb.compiled_part=='whole'

def test_functional_optimizers():
    "Uncompiled, in double precision: the optimizers' own numbers"
    for opt_func in (SGD, partial(SGD, momentum=.9), partial(SGD, momentum=.9, nesterov=True, weight_decay=.1), partial(SGD, momentum=.8, dampening=.3),
                     Adam, partial(Adam, weight_decay=.1), AdamW, partial(AdamW, betas=(.8,.9), eps=1e-3), *more_optims):
        a,b = net().double(),net().double()
        oa,ob = opt_func(a.parameters(), lr=.1),opt_func(b.parameters(), lr=.1)
        for i,(xb,yb) in enumerate(data()):
            xb = xb.double()
            for m,o in ((a, oa), (b, ob)):
                if m is b and i: continue
                F.cross_entropy(m(xb), yb).backward()
                o.step()
                o.zero_grad()
            if not i: continue
            optim,ps = functional_optim(ob),list(b.parameters())
            hypers = torch.tensor(list(leaves(optim.hypers(ob))), dtype=torch.double)
            train_step = make_train_step(b, F.cross_entropy, make_update(optim, optim.options(ob), (0,)*len(ps)))
            train_step((xb,), (yb,), ps, [dict(ob.state.get(p, {})) for p in ps], hypers)
        assert all(torch.allclose(p, q, rtol=1e-12, atol=1e-14) for p,q in zip(a.parameters(), b.parameters()))

def test_a_scheduler_of_pytorch():
    "The scheduler takes a step after each step of the optimizer, and no more"
    def run(*cbs):
        learn = learner(data(last=5))
        learn.fit(2, cbs=[TorchScheduler(partial(torch.optim.lr_scheduler.ExponentialLR, gamma=.9), 'step'), *cbs])
        return learn
    a,b = run(),run(cb := Quick())
    assert cb.n==12 and cb.compiled_part=='whole' and close(state(a), state(b)) and a.recorder.lrs==b.recorder.lrs and a.recorder.lrs[-1]<.03

def test_a_hook_of_the_optimizer_that_comes_in_the_middle():
    "The hook is called, even after a change that compiles the step again"
    learn,seen = learner(),[]
    def add(cb): cb.learn.opt.opt.register_step_post_hook(lambda *args: seen.append(cb.learn.iter))
    def freeze(cb): cb.learn.model[0].weight.requires_grad_(False)
    with pytest.warns(UserWarning, match='a hook would not be called'):
        learn.fit(1, cbs=[cb := Quick(), *(at('after_batch', f, lambda cb, i=i: cb.learn.training and cb.learn.iter==i) for f,i in ((add, 3), (freeze, 5)))])
    assert cb.n==3 and seen==[4, 5, 6, 7]

on_device = [pytest.param('cpu'), pytest.param('cuda', marks=pytest.mark.skipif(not torch.cuda.is_available(), reason='there is no CUDA device'))]

@pytest.mark.parametrize('device', on_device)
@pytest.mark.parametrize('opt_func', [partial(SGD, momentum=.9), NAdam])
def test_on_a_device(device, opt_func):
    "With what could go wrong there: dropout, a schedule, averages, a batch of another size, results that are kept, and counts that the optimizer has on the CPU"
    def run(*cbs):
        torch.manual_seed(3)
        learn,preds = learner(data(last=5), net(nn.Dropout(.3)), opt_func, lr=.01),[]
        learn.dls.device = torch.device(device)
        learn.fit_one_cycle(3, .01, cbs=[EMACallback(decay=.5, at_end=False), GradientClip(.5), at('after_batch', lambda cb: preds.append(cb.learn.pred.detach())), *cbs])
        return learn,preds
    cb = Count(options=None if device=='cpu' else {'triton.cudagraphs':True})
    (a,p),(b,q) = run(),run(cb)
    assert next(b.model.parameters()).device.type==device and cb.n==18 and cb.compiled_part=='whole'
    assert close(state(a), state(b), 1e-4) and all(torch.allclose(x, y, atol=1e-3) for x,y in zip(p, q)) and len({float(x.sum()) for x in q})>20
    for s,t in zip(a.opt.opt.state.values(), b.opt.opt.state.values()): assert close(s, t, 1e-3) and {k:v.device for k,v in s.items()}=={k:v.device for k,v in t.items()}

@pytest.mark.parametrize('kw', [{}, dict(every=2, start=3, at_end=False), dict(decay=.5, warmup=False, buffers=False)])
def test_averaged_weights(kw):
    "The averages are those of eager steps, in a validation within the epoch and in a resumed run too"
    def run(*cbs, **more):
        torch.manual_seed(3)
        learn,ema = learner(model=rich()),EMACallback(**kw)
        learn.fit(3, cbs=[ema, ValidateEvery('5ba'), *cbs], **more)
        return learn,ema
    cb = Quick()
    (a,x),(b,y) = run(),run(cb)
    assert cb.n==21 and cb.compiled_part=='whole' and (x.n_avg, x.n_step)==(y.n_avg, y.n_step) and x.n_avg>0
    assert close(state(a), state(b), 1e-5) and close(x.averages, y.averages, 1e-5)
    assert not close(x.averages, {k:v for k,v in state(learner(model=rich())).items() if k in x.averages})
    for r,s in zip(a.recorder.history, b.recorder.history): assert r.get('valid_loss')==pytest.approx(s.get('valid_loss'), rel=1e-4)

class Sum(nn.CrossEntropyLoss):
    def __init__(self): super().__init__(reduction='sum')

@pytest.mark.parametrize('more', [[], [partial(GradientClip, .05)], [partial(EMACallback, decay=.5)], [lambda: MixedPrecision('bf16')], [partial(ValidateEvery, '3ba')]])
@pytest.mark.parametrize('loss_func', [F.cross_entropy, nn.CrossEntropyLoss(weight=torch.tensor([1.,2.,5.]), ignore_index=1), Sum()])
def test_accumulation(loss_func, more):
    """Groups of three batches, of which the last of an epoch has two and fewer samples: losses, gradients and steps
    are those of eager batches"""
    def run(*cbs):
        torch.manual_seed(3)
        learn = Learner(DataLoaders(data(last=5), data(2, seed=1)), rich(), loss_func, partial(SGD, momentum=.9), lr=.01)
        grads = Callback(after_backward=lambda cb: seen.append((cb.learn.loss_grad.item(), cb.learn.model[0].weight.grad.clone())))
        seen,grads.order = [],5
        learn.fit(3, cbs=[GradientAccumulation(48), grads, *(f() for f in more), *cbs])
        return learn,seen
    a,x = run()
    with pytest.warns(UserWarning, match='up to the gradients: Callback has'): b,y = run(cb := Quick(2))
    tol = 5e-2 if 'lambda' in str(more) else 1e-5   # of 16-bit numbers, and others
    assert cb.n==3*7 and cb.compiled_part=='gradients' and cb.n_compiled==2 and close(state(a), state(b), tol)
    for (l,g),(m,h) in zip(x, y, strict=True): assert l==pytest.approx(m, rel=tol) and torch.allclose(g, h, atol=tol*max(1, h.abs().max()))
    assert [r.get('valid_loss') for r in a.recorder.history]==pytest.approx([r.get('valid_loss') for r in b.recorder.history], rel=10*tol)

def test_accumulation_says_nothing():
    "All that it needs is done: no warning, and it is forgotten when the fit ends"
    learn,cb = learner(),Quick()
    learn.fit(1, cbs=[cb, GradientAccumulation(32)])
    assert cb.n==7 and cb.accumulation is None
    learn.fit(1, cbs=cb)
    assert cb.n==14 and cb.n_compiled==2   # another compiled step, without a share

def test_cancelled_batches_of_an_accumulation():
    "Cancelled before their gradients, and after: those that are there count"
    def run(*cbs):
        learn = learner()
        acc = GradientAccumulation(48)
        cancel = [at('before_batch', throw(CancelBatch), lambda cb: cb.learn.training and cb.learn.iter in (2, 5)),
                  at('after_backward', throw(CancelBatch), lambda cb: cb.learn.iter==3), at('before_step', throw(CancelStep), lambda cb: cb.learn.iter==4)]
        learn.fit(2, cbs=[acc, *cancel, *cbs])
        return learn
    with pytest.warns(UserWarning, match='up to the gradients'): b = run(cb := Quick())
    assert cb.n==2*5 and close(state(run()), state(b))

def test_accumulated_gradients_are_those_of_a_resumed_run(tmp_path):
    "Killed in the middle of a group"
    def run(path, epochs=2, resume=None, die=None, **kw):
        torch.manual_seed(5)
        learn = learner(data(10, last=5), rich(), Adam, lr=.01, path=path)
        cbs = [CheckpointCallback('1ba', keep=100), GradientAccumulation(64), GradientClip(.5), cb := Quick()]
        if die: cbs.append(at('after_batch', throw(KeyboardInterrupt), lambda cb: cb.learn.training and cb.learn.train_iter==die))
        try: learn.fit(epochs, cbs=cbs, resume=resume)
        except KeyboardInterrupt: pass
        return learn,cb.n
    whole,n_whole = run(tmp_path/'a')
    for i,die in enumerate((6, 13)):
        run(tmp_path/f'b{i}', die=die)
        again,n = run(tmp_path/f'b{i}', resume='auto')
        assert 0<n<n_whole==16 and again.train_iter==20 and same(state(whole), state(again))

class Alike(nn.Module):
    "Two parameters have the same gradient, and another the same number everywhere"
    def __init__(self): super().__init__(); self.net,self.a,self.b,self.c = net(),nn.Parameter(torch.zeros(3)),nn.Parameter(torch.zeros(3)),nn.Parameter(torch.ones(5, 3))
    def forward(self, x): return self.net(x) + self.a + self.b + F.pad(self.c.sum().view(1), (0, 2))

@pytest.mark.parametrize('make', [*slow('Count'), 'Quick'])
def test_gradients_have_memory_of_their_own(make):
    "What is done to one in place is done to no other: clipping failed"
    def run(*cbs):
        learn = learner(model=Alike())
        learn.fit(2, cbs=[GradientClip(.1), GradientAccumulation(32), *cbs])
        return learn
    torch.manual_seed(0)
    cb,a = globals()[make](),run()
    assert close(state(a), state(run(cb)), 1e-5) and cb.n==14 and not torch.equal(a.model.c, torch.ones(5, 3))

def test_averages_and_gradients():
    "With a callback that reads the gradients the loop takes the step, and updates the averages once"
    def run(*cbs):
        learn,ema = learner(),EMACallback(decay=.5)
        learn.fit(1, cbs=[ema, Last(), *cbs])
        return learn,ema
    with pytest.warns(UserWarning, match='up to the gradients: Last has'): b,y = run(cb := Quick())
    a,x = run()
    assert cb.n==7 and x.n_avg==y.n_avg==8 and close(x.averages, y.averages) and close(state(a), state(b))

# who listens
class Last(Callback):
    def __init__(self): self.seen = []
    def after_step(self): self.seen.append([p.grad.clone() for p in self.learn.model.parameters()])

def test_gradients_exist_for_handlers_of_the_step():
    def run(*cbs):
        learn,last = learner(),Last()
        learn.fit(2, cbs=[last, *cbs])
        return learn,last.seen
    cb = Quick()
    eager,grads0 = run()
    with pytest.warns(UserWarning, match='is fused up to the gradients: Last has a handler for `after_step`'): fused,grads1 = run(cb)
    assert cb.n==14 and close(state(eager), state(fused))
    assert len(grads0)==len(grads1)==16 and all(torch.allclose(p, q, atol=1e-6) for a,b in zip(grads0, grads1) for p,q in zip(a, b))

def test_cancels_of_the_step_are_honoured():
    "A step that is skipped, and a whole fit that ends in a batch, where only the gradients are compiled"
    def run(*cbs):
        learn = learner()
        skip = at('before_step', throw(CancelStep), lambda cb: cb.learn.train_iter in (3, 4))
        stop = at('after_backward', throw(CancelFit), lambda cb: cb.learn.train_iter==13)
        learn.fit(2, cbs=[skip, stop, *cbs])
        return learn
    cb = Quick()
    with pytest.warns(UserWarning, match='up to the gradients'): fused = run(cb)
    eager = run()
    assert cb.n==12 and close(state(eager), state(fused)) and fused.train_iter==eager.train_iter==13

def test_odd_optimizer_steps_itself():
    cb = Quick()
    with pytest.warns(UserWarning, match='Rprop has no functional form here'): a = learner(opt_func=Rprop, lr=.01); a.fit(1, cbs=cb)
    b = learner(opt_func=Rprop, lr=.01)
    b.fit(1)
    assert cb.n==7 and close(state(a), state(b), 1e-5)

@pytest.mark.parametrize('opt_func', [partial(Adam, amsgrad=True), partial(SGD, maximize=True), partial(Adam, fused=True), partial(SGD, lr=torch.tensor(.1))])
def test_options_without_functional_form(opt_func): assert functional_optim(opt_func(net().parameters())) is None

def test_optimizer_with_hooks_has_no_functional_form():
    opt = SGD(net().parameters(), .1)
    opt.register_step_post_hook(lambda *args: None)
    assert functional_optim(opt) is None

def test_falls_back_at_the_next_batch():
    "A callback that comes in the middle, and goes again"
    cb,heard = Quick(),[]
    spy = Callback(after_pred=lambda self: heard.append((self.learn.iter, self.learn.pred.requires_grad)))
    class Come(Callback):
        def after_batch(self):
            if self.learn.training and self.learn.iter==3: self.learn.add_cb(spy)
            if self.learn.training and self.learn.iter==5: self.learn.remove_cb(spy)
    a,b = learner(),learner()
    with pytest.warns(UserWarning, match='is not fused: Callback has a handler for `after_pred`'): a.fit(1, cbs=[cb, Come()])
    b.fit(1)
    assert heard==[(4, True), (5, True)] and cb.n==5 and close(state(a), state(b))

class Wraps(Callback):
    "Wraps a batch"
    def wrap(self, what, do): return (lambda: do()) if what=='batch' else do

@pytest.mark.parametrize('cbs', [[Wraps], [partial(Callback, before_loss=lambda self: None)]])
def test_handlers_make_it_eager_bit_for_bit(cbs):
    a,b,cb = learner(),learner(),Quick()
    with pytest.warns(UserWarning, match='is not fused'): a.fit(2, cbs=[cb, *(f() for f in cbs)])
    b.fit(2, cbs=[f() for f in cbs])
    assert cb.n==0 and same(state(a), state(b))

def test_a_later_handler_of_before_batch_is_called():
    late,seen = Callback(before_batch=lambda self: seen.append(self.learn.iter)),[]
    late.order = 2000
    learner().fit(1, cbs=[late, cb := Quick()])
    assert seen==[*range(8), 0, 1] and cb.n==7

def test_what_is_replaced_as_an_epoch_begins():
    "No event reports it, and the table of handlers is that of the epoch before"
    def adam(learn): learn.opt = OptimWrapper(learn.model.parameters(), Adam, lr=.01)
    def run(*cbs):
        learn = learner()
        learn.fit(3, cbs=[at('before_epoch', lambda cb: adam(cb.learn), lambda cb: cb.learn.epoch==1), *cbs])
        return learn
    a,b = run(),run(cb := Quick())
    assert cb.n==21 and cb.compiled_part=='whole' and close(state(a), state(b))

def test_a_fused_batch_is_no_cancelled_one():
    heard,cb = [],Quick()
    learner().fit(1, cbs=[cb, Callback(after_cancel_batch=lambda self: heard.append(self.learn.iter))])
    assert cb.n==7 and not heard

class Factor(nn.Module):
    "A module with a number that is compiled into the graph as a constant"
    def __init__(self): super().__init__(); self.net,self.factor = net(),1
    def forward(self, x): return self.net(x)*self.factor

def test_what_the_model_has_besides_weights():
    "The code is called without the function that `torch.compile` made, but not without its guards"
    def run(*cbs):
        learn = learner(data(12), Factor())
        def act(cb): cb.learn.model.factor = 1 + (cb.learn.train_iter//4)%2
        learn.fit(1, cbs=[at('after_batch', act, lambda cb: cb.learn.training), *cbs])
        return learn
    cb,before,a = Quick(),graphs(),run()
    b = run(cb)
    step, = cb.compiler.steps.values()
    assert cb.n==11 and graphs()==before+2 and close(state(a), state(b)) and len(step.codes)==1

def test_batch_norm_has_other_buffers():
    "They are read where the model has them"
    def run(*cbs):
        learn = learner(model=rich())
        def act(cb): cb.learn.model[1].running_mean = torch.zeros(8)
        learn.fit(1, cbs=[at('after_batch', act, lambda cb: cb.learn.training and cb.learn.iter==4), *cbs])
        return learn
    torch.manual_seed(1); a = run()
    torch.manual_seed(1); b = run(cb := Quick())
    assert cb.n==7 and close(state(a), state(b))

def test_no_compiled_code_where_none_is_wanted():
    "`torch.compiler.set_stance` is respected: the step runs eagerly"
    def run(*cbs):
        learn = learner()
        learn.fit(1, cbs=cbs)
        with torch.compiler.set_stance('force_eager'): learn.fit(1, cbs=cbs)
        return learn
    cb = Quick()
    calls,b = [],None
    def act(o): calls.append(o.learn.iter)
    b = run(cb, at('after_batch', act, lambda o: o.learn.training))
    assert cb.n==14 and len(calls)==16 and close(state(run()), state(b))

def test_hooks_are_called():
    learn,cb,seen = learner(),Quick(),[]
    h = learn.model[0].register_forward_hook(lambda *args: seen.append(1))
    with pytest.warns(UserWarning, match='a hook would not be called'): learn.fit(1, cbs=cb)
    assert cb.n==0 and len(seen)==8+2
    h.remove()
    learn.fit(1, cbs=cb)
    assert cb.n==7 and len(seen)==10

# batches, modes, runs
def test_ragged_batch_is_eager():
    cb,a,b = Quick(),learner(data(last=5)),learner(data(last=5))
    a.fit(3, cbs=cb)
    b.fit(3)
    assert cb.n==3*6 and cb.n_compiled==1 and close(state(a), state(b))

def test_several_shapes():
    batches = data(4) + data(4, 8) + data(4, 6)
    cb,a,b = Quick(max_shapes=2),learner(batches),learner(batches)
    a.fit(2, cbs=cb)
    b.fit(2)
    assert cb.n==2*7 and cb.n_compiled==2 and close(state(a), state(b))

def test_many_shapes():
    "It stops compiling, and warns"
    batches = [b for i in range(2, 8) for b in data(1, i)]
    cb = Quick()
    with pytest.warns(UserWarning, match=re.escape('4 batches had other shapes than [3, 4], [3]. Write FusedStep(dynamic=True)')): learner(batches).fit(1, cbs=cb)
    assert (cb.counts, cb.n_compiled)==(dict(fused=1, other=4), 1)

@pytest.mark.parametrize('more', [[], [partial(EMACallback, decay=.5)], [lambda: MixedPrecision('bf16')]])
def test_beside_a_compiled_model(more):
    """`learn.compile()` is for validation and predictions, of all loaders and sizes; a batch is still one compiled
    function, with the same results"""
    def run(comp, *cbs):
        torch.manual_seed(3)
        learn,calls = Learner(DataLoaders(data(last=5), data(2, last=7, seed=1), data(3, 8, seed=2)), rich(), F.cross_entropy, SGD, lr=.01, cbs=[f() for f in more]),[]
        def backend(gm, inputs): calls.append(gm); return gm
        if comp: learn.compile(backend=backend)
        learn.fit(2, cbs=cbs)
        assert bool(calls)==comp
        return learn,[learn.recorder.history['valid_loss'], *learn.validate(), *learn.validate(2), learn.get_preds()[0], learn.get_preds(2)[0]]
    (a,x),(b,y) = run(False),run(True, cb := Quick())
    tol = 2e-2 if 'lambda' in str(more) else 1e-5
    assert cb.n==12 and cb.compiled_part=='whole' and cb.n_compiled==1 and close(state(a), state(b), tol)
    assert all(torch.allclose(torch.as_tensor(p), torch.as_tensor(q), atol=tol) for p,q in zip(x, y, strict=True))

class Words(nn.Module):
    "Sentences of any length"
    def __init__(self):
        super().__init__()
        with torch.random.fork_rng(): torch.manual_seed(0); self.emb,self.norm,self.out = nn.Embedding(20, 8),nn.LayerNorm(8),nn.Linear(8, 3)
    def forward(self, x): return self.out(F.dropout(self.norm(self.emb(x)), .2, self.training).mean(1))

def sentences(n=12, last=3):
    g = torch.Generator().manual_seed(0)
    return [(torch.randint(0, 20, (bs, 3+i*7%11), generator=g), torch.randint(0, 3, (bs,), generator=g)) for i,bs in enumerate([16]*(n-1) + [last])]

@pytest.mark.parametrize('make, opt_func, more', [('Quick', SGD, [partial(GradientAccumulation, 32)]), ('Count', Adam, [partial(GradientClip, .5)]), ('Quick', Adam, [])])
def test_batches_of_any_length(make, opt_func, more):
    "One graph for sentences of all lengths, another one for all numbers of sentences; a continued run is the same"
    def run(*cbs):
        torch.manual_seed(3)
        learn = learner(sentences(), Words(), opt_func, lr=.01)
        learn.dls.loaders[1:] = [sentences(3, 5)]
        learn.fit(3, cbs=[*(f() for f in more), *cbs])
        return learn
    a,b = run(),run(cb := globals()[make](dynamic=True))
    assert cb.n==3*11 and cb.n_compiled==2 and cb.counts['other']==0 and close(state(a), state(b), 1e-5)
    for r,s in zip(a.recorder.history, b.recorder.history): assert r['valid_loss']==pytest.approx(s['valid_loss'], rel=1e-4)

def test_a_ragged_batch_is_fused():
    "The full batches keep their graph; a batch of one sample is eager, and so is one of other dimensions"
    batches = data(6, last=5) + data(2, 1) + data(2, 9)
    cb,a,b = Quick(dynamic=True),learner(batches),learner(batches)
    before = graphs()
    a.fit(2, cbs=cb)
    b.fit(2)
    assert cb.n==2*7 and cb.counts['other']==4 and cb.n_compiled==2 and graphs()==before+2 and close(state(a), state(b))
    assert not any(k.startswith('_dynamo') for xb,yb in batches for t in (xb, yb) for k in vars(t))

class Sevens(nn.Module):
    "Knows one size"
    def __init__(self): super().__init__(); self.net = net()
    def forward(self, x): return self.net(x)*(2 if len(x)==7 else 1)

def test_a_model_for_one_size():
    "The size is a constant in the model: a warning says that it could not be compiled, and the rest is eager"
    batches = data(2) + data(2, 7) + data(2, 9)
    a,b = (learner(batches, Sevens()) for _ in range(2))
    with pytest.warns(UserWarning, match='it could not be compiled'): a.fit(1, cbs=(cb := Quick(dynamic=True)))
    b.fit(1)
    assert cb.n==1 and close(state(a), state(b))

@pytest.mark.parametrize('die', [7, 2, 14])
def test_resumed_with_other_lengths(tmp_path, die):
    def run(path, resume=None, die=None):
        torch.manual_seed(5)
        learn = learner(sentences(), Words(), Adam, lr=.01, path=path)
        learn.dls.loaders[1:] = []
        cbs = [CheckpointCallback('1ba', keep=100), cb := Quick(dynamic=True)]
        if die: cbs.append(at('after_batch', throw(KeyboardInterrupt), lambda cb: cb.learn.train_iter==die))
        try: learn.fit(2, cbs=cbs, resume=resume)
        except KeyboardInterrupt: pass
        return learn,cb
    whole,cb = run(tmp_path/'a')
    run(tmp_path/'b', die=die)
    again,c = run(tmp_path/'b', resume='auto')
    assert 0<c.n<=cb.n==22 and same(state(whole), state(again))

class Two(nn.Module):
    def __init__(self): super().__init__(); self.net = net()
    def forward(self, x): return self.net(x['a'])

@pytest.mark.parametrize('make, why', [
    (lambda: learner([({'a':x}, y) for x,y in data()], Two()), 'not plain tensors'),
    (lambda: learner([(x, y.to_sparse().to_dense().as_subclass(type('Mine', (torch.Tensor,), {}))) for x,y in data()]), 'not plain tensors'),
    (lambda: learner(model=nn.DataParallel(net())), 'wrapped in DataParallel')])
def test_other_batches_and_models(make, why):
    a,b,cb = make(),make(),Quick()
    a.dls.loaders[1:] = b.dls.loaders[1:] = []
    with pytest.warns(UserWarning, match=why): a.fit(1, cbs=cb)
    b.fit(1)
    assert cb.n==0 and same(state(a), state(b))

def test_learner_with_a_step_of_its_own():
    class Mine(Learner):
        def _step(self): self.opt.step(); self.mine = getattr(self, 'mine', 0) + 1
    learn = Mine(DataLoaders(data()), net(), F.cross_entropy, SGD, lr=.1)
    with pytest.warns(UserWarning, match='has its own `_step`'): learn.fit(1, cbs=Quick())
    assert learn.mine==8

def test_a_loss_of_a_callback():
    class Mixes(Callback):
        def before_train(self): self.learn.loss_func = self.lf
        def lf(self, pred, y): return F.cross_entropy(pred, y)*(1 + self.learn.iter)
    with pytest.warns(UserWarning, match='the loss function belongs to Mixes'): learner().fit(1, cbs=[Quick(), Mixes()])

def test_a_program_is_used_again():
    "In the next fit, frozen and unfrozen, with other numbers"
    learn,before,quick = learner(opt_func=Adam, splitter=two, lr=.01),graphs(),Quick()
    other = learner(opt_func=Adam, splitter=two, lr=.01)
    for l,kw in ((learn, dict(cbs=quick)), (other, {})):
        l.fit(1, **kw)
        l.fit(1, lr=.02, **kw)
        l.freeze(); l.fit(1, **kw)
        l.unfreeze(); l.fit(1, **kw)
    assert graphs()==before+2 and close(state(learn), state(other), 1e-5) and not [cb for cb in learn.cbs if isinstance(cb, FusedStep)]

def test_what_a_trial_compiled_is_used_afterwards():
    "`lr_find` restored the compiled steps too, and the next fit traced the model again"
    learn,before = learner(data(40), cbs=Quick()),graphs()
    learn.lr_find(num_it=30)
    with learn.unchanged(): learn.fit(1)
    learn.fit(1)
    assert graphs()==before+1 and learn.fused_step.counts['fused']==39

# what changes under its feet
class Scaled(nn.Module):
    "With a weight that is not for the Learner's optimizer"
    def __init__(self): super().__init__(); self.net,self.scale = net(),nn.Parameter(torch.ones(3))
    def forward(self, x): return self.net(x)*self.scale

class Weighted(nn.Module):
    "A loss with a weight of its own"
    def __init__(self): super().__init__(); self.s = nn.Parameter(torch.zeros(1))
    def forward(self, pred, y): return (F.cross_entropy(pred, y)*torch.exp(-self.s) + self.s).sum()

@pytest.mark.parametrize('ev', ['after_step','after_batch'])
@pytest.mark.parametrize('where', ['model','loss'])
def test_a_second_optimizer_gets_its_gradients(ev, where):
    def run(*cbs):
        model,loss = (Scaled(),F.cross_entropy) if where=='model' else (net(),Weighted())
        other = model.scale if where=='model' else loss.s
        learn = Learner(DataLoaders(data()), model, loss, SGD, lr=.1, splitter=lambda m: trained(getattr(m, 'net', m)))
        second = SGD([other], lr=.1)
        def step(cb): second.step(); second.zero_grad()
        trains_other = at(ev, step)
        trains_other.second = second   # an attribute, where the Learner finds it
        learn.fit(2, cbs=[trains_other, *cbs])
        return learn,other
    a,p = run()
    with warnings.catch_warnings(record=True) as w: warnings.simplefilter('always'); b,q = run(Quick())
    assert any('weights with gradients that are not in the optimizer' in str(o.message) for o in w)
    assert same(state(a), state(b)) and torch.equal(p, q) and not torch.equal(p, torch.ones(3) if where=='model' else torch.zeros(1))

def add_group(learn): learn.opt.opt.add_param_group(dict(params=list(learn.model[2].parameters())))
def new_weight(learn):
    learn.model[2].weight = new = nn.Parameter(torch.full((3,8), .1))
    learn.opt.opt.param_groups[0]['params'][2] = new
def new_state(learn): s,p = learn.opt.opt.state,learn.model[0].weight; s[p] = {k:torch.zeros_like(v) for k,v in s[p].items()}
def new_average(learn): p = learn.model[0].weight; learn.opt.opt.state[p]['exp_avg'] = torch.zeros_like(p)
def clear_state(learn): learn.opt.clear_state()
def freeze(learn): learn.freeze()

@pytest.mark.parametrize('change', [add_group, new_weight, new_state, new_average, clear_state, freeze])
def test_changes_in_the_middle(change):
    "Of the optimizer's groups, parameters and states: the next batch knows"
    def run(*cbs):
        learn = learner(opt_func=Adam, lr=.01, splitter=(lambda m: list(m[0].parameters())) if change is add_group else two if change is freeze else trained)
        if change is add_group: learn.model[2].requires_grad_(False)
        def act(cb): cb.learn.model.requires_grad_(True); change(cb.learn)
        learn.fit(2, cbs=[at('after_batch', act, lambda cb: cb.learn.training and cb.learn.train_iter==4), *cbs])
        return learn
    cb,a = Quick(),run()
    b = run(cb)
    assert close(state(a), state(b), 1e-5) and cb.n>=10

# whatever changes between two batches, from inside the loader
def grads(l):
    for p in l.model.parameters(): p.grad = torch.ones_like(p)
def hook(l): l.model[1].register_forward_hook(lambda m, args, out: out*1.5)
def global_hook(l): l.handle = nn.modules.module.register_module_forward_hook(lambda m, args, out: out*1.5 if isinstance(m, nn.ReLU) else None)
def param_hook(l): l.model[0].weight.register_hook(lambda g: g*2)
def double_grad(p): p.grad.mul_(2)
def grad_hook(l): l.model[0].weight.register_post_accumulate_grad_hook(double_grad)
def step_hook(l): l.opt.opt.register_step_pre_hook(lambda opt, *args: [pg.update(lr=.2) for pg in opt.param_groups] and None)
def frozen(l): l.model[0].weight.requires_grad_(False)
def weight(l): l.model[0].weight = l.opt.opt.param_groups[0]['params'][0] = nn.Parameter(torch.full((8,4), .1))
def values(l):
    with torch.no_grad(): l.model[0].weight.mul_(2)
def other_state(l): s,p = l.opt.opt.state,l.model[0].weight; s[p] = {k:torch.zeros_like(v) for k,v in s[p].items()}
def entry(l): p = l.model[0].weight; l.opt.opt.state[p]['momentum_buffer'] = torch.ones_like(p)
def no_state(l): l.opt.clear_state()
def rate(l): l.opt.set_hyper('lr', .01)
def momentum(l): l.opt.opt.param_groups[0]['momentum'] = .5
def no_momentum(l): l.opt.opt.param_groups[0]['momentum'] = 0
def nesterov(l): l.opt.opt.param_groups[0]['nesterov'] = True
def uphill(l): l.opt.opt.param_groups[0]['maximize'] = True
def other_model(l): l.model = net(nn.Tanh()); l.create_opt()
def other_loss(l): l.loss_func = nn.CrossEntropyLoss(label_smoothing=.3)
def other_opt(l): l.opt = OptimWrapper(l.model.parameters(), partial(Adam, eps=1.), lr=.01)
def inner_opt(l): l.opt.opt = SGD(l.model.parameters(), lr=.02)
def mode(l): l.model[1].eval()
def number(l): l.model[2].p = .9
def buffer(l): l.model[1].running_mean.fill_(3.)
def new_buffer(l): l.model[1].running_var = torch.full((8,), 2.)
def forward(l): l.model[3].forward = lambda x: torch.tanh(x)
def layer(l): l.model[3] = nn.Tanh()
def listener(l): l.add_cb(Callback(after_pred=lambda cb: setattr(cb.learn, 'pred', cb.learn.pred*2)))
def clip(l): l.add_cb(GradientClip(.01))
def moved(l): l.model[0].weight.data = torch.full((4, 8), .1).t()
def double(b): return b[0].double().float()[:, :4],b[1].int().long()
def fewer(b): return b[0][:7],b[1][:7]
def strided(b): return b[0].t().contiguous().t(),b[1]
def wants_grad(b): return b[0].clone().requires_grad_(),b[1]
def as_parameter(b): return nn.Parameter(b[0], requires_grad=False),b[1]

class Changing(list):
    "Changes something of the Learner, or the batch, before batch 4"
    learn = None
    def __init__(self, change): super().__init__(data(9)); self.change = change
    def __iter__(self):
        for i,b in enumerate(super().__iter__()):
            if i==4 and self.learn.training and not self.learn.epoch: b = self.change(b) if self.change.__code__.co_varnames[0]=='b' else self.change(self.learn) or b
            yield b

everything = [grads, hook, global_hook, param_hook, grad_hook, step_hook, frozen, weight, values, other_state, entry, no_state, rate, momentum,
              no_momentum, nesterov, uphill, other_model, other_loss, other_opt, inner_opt, mode, number, buffer, new_buffer, forward, layer, listener, clip, moved, double, fewer, strided, wants_grad, as_parameter]

@pytest.mark.parametrize('change', everything, ids=lambda f: f.__name__)
def test_what_changes_between_two_batches(change):
    "The very next batch knows, whatever it is: weights, predictions and losses are those of the eager run"
    def run(*cbs):
        torch.manual_seed(3)
        dl,seen = Changing(change),[]
        learn = dl.learn = Learner(DataLoaders(dl), rich(), F.cross_entropy, partial(SGD, momentum=.9), lr=.05)
        try: learn.fit(2, cbs=[at('after_batch', lambda cb: seen.append((cb.learn.pred.detach().clone(), cb.learn.loss.clone()))), *cbs])
        finally: getattr(learn, 'handle', SimpleNamespace(remove=lambda: None)).remove()
        return learn,seen
    with warnings.catch_warnings(): warnings.simplefilter('ignore'); (a,x),(b,y) = run(),run(cb := Quick())
    assert cb.n>=3 and close(state(a), state(b), 1e-5) and len(x)==len(y)==18
    for (p,l),(q,m) in zip(x, y): assert torch.allclose(p, q, atol=1e-5) and torch.allclose(l, m, atol=1e-5)

def test_a_loss_with_numbers_of_its_own():
    "What is compiled in, in the loss as in the model, is looked at before each batch"
    class Scaled(nn.Module):
        factor = 1.
        def forward(self, pred, y): return F.cross_entropy(pred, y)*self.factor
    def run(*cbs):
        learn = Learner(DataLoaders(data(), data(2, seed=1)), net(), Scaled(), SGD, lr=.1)
        def act(cb): cb.learn.loss_func.factor = 3.
        learn.fit(1, cbs=[at('after_batch', act, lambda cb: cb.learn.training and cb.learn.iter==4), *cbs])
        return learn
    cb,before = Quick(),graphs()
    assert close(state(run()), state(run(cb))) and cb.n==7 and graphs()==before+2

def test_gradients_of_inputs():
    def run(*cbs):
        learn,seen = learner(),[]
        want = at('before_batch', lambda cb: setattr(cb.learn, 'xb', (cb.learn.xb[0].clone().requires_grad_(),)), lambda cb: cb.learn.training)
        learn.fit(1, cbs=[want, at('after_batch', lambda cb: seen.append(cb.learn.xb[0].grad), lambda cb: cb.learn.training), *cbs])
        return seen
    with pytest.warns(UserWarning, match='or require gradients'): seen = run(Quick())
    assert all(torch.equal(p, q) for p,q in zip(run(), seen))

@pytest.mark.parametrize('how', ['subclass','instance'])
def test_a_wrapper_with_a_step_of_its_own(how):
    calls = []
    class Mine(OptimWrapper):
        def step(self, closure=None): calls.append(1); return super().step(closure)
    learn = learner(opt_func=(lambda ps, lr: Mine(ps, SGD, lr=lr)) if how=='subclass' else SGD)
    learn.create_opt()
    if how=='instance': step = learn.opt.step; learn.opt.step = lambda: (calls.append(1), step())
    cb = Quick()
    with pytest.warns(UserWarning, match='up to the gradients'): learn.fit(1, cbs=cb)
    assert len(calls)==8 and cb.n==7

def test_complex_weights():
    class Complex(nn.Module):
        def __init__(self): super().__init__(); self.w = nn.Parameter(torch.ones(4, 3, dtype=torch.complex64)*(1+.5j))
        def forward(self, x): return (x.to(torch.complex64)@self.w).abs()
    a,b = (learner(model=Complex(), opt_func=Adam, lr=.05) for _ in range(2))
    a.fit(1)
    with pytest.warns(UserWarning, match='no functional form'): b.fit(1, cbs=Quick())
    assert torch.allclose(a.model.w, b.model.w, atol=1e-5)

def test_it_comes_in_the_middle():
    from torch._dynamo import config
    a,b,cb = learner(),learner(),Quick()
    a.fit(2, cbs=at('after_batch', lambda o: o.learn.add_cb(cb), lambda o: o.learn.training and o.learn.train_iter==4))
    b.fit(2)
    assert cb.n==7 and cb.counts==dict(fused=7, other=0) and close(state(a), state(b)) and not config.trace_autograd_ops

def test_it_goes_in_the_middle():
    from torch._dynamo import config
    a,b,cb = learner(),learner(),Quick()
    a.fit(2, cbs=[cb, at('after_batch', lambda o: o.learn.remove_cb(cb), lambda o: o.learn.training and o.learn.train_iter==4)])
    b.fit(2)
    assert cb.n==3 and close(state(a), state(b)) and not config.trace_autograd_ops

def test_models_of_before_are_let_go():
    import gc, weakref
    learn,quick = learner(),Quick()
    learn.fit(1, cbs=quick)
    gone,learn.model = weakref.ref(learn.model),net(nn.Tanh())
    learn.create_opt()
    learn.fit(1, cbs=quick)
    gc.collect()
    assert gone() is None

def test_programs_of_learners_that_ended_are_let_go():
    """PyTorch stops compiling a code object after 256 graphs, and kept them all: in a long search, and in these tests,
    each further fit was eager"""
    import gc, weakref
    codes = []
    learner().fit(1, cbs=Quick())   # PyTorch keeps the first graph of a process
    with dynamo.config.patch(accumulated_recompile_limit=3):
        for i in range(5):
            learner().fit(1, cbs=(cb := Quick()))
            assert cb.n==7, f'fit {i}'
            codes += [weakref.ref(p.f.__code__) for p in cb.compiler.steps.values()]
    del cb
    gc.collect()
    assert len(codes)==5 and not any(c() for c in codes)

def test_left_gradients_count():
    "Gradients that a callback left are part of the step, as in the loop"
    def leave(cb):
        for p in cb.learn.model.parameters(): p.grad = torch.ones_like(p)
    def run(*cbs):
        learn = learner()
        learn.fit(1, cbs=[at('after_batch', leave, lambda cb: cb.learn.training and cb.learn.iter==3), *cbs])
        return learn
    cb = Quick()
    assert close(state(run()), state(run(cb))) and cb.n==6

def test_weights_frozen_in_the_middle():
    def freeze(cb): cb.learn.model[0].weight.requires_grad_(False)
    def run(*cbs):
        learn = learner()
        learn.fit(1, cbs=[at('after_batch', freeze, lambda cb: cb.learn.training and cb.learn.iter==3), *cbs])
        return learn
    cb,a = Quick(),run()
    b = run(cb)
    assert close(state(a), state(b)) and cb.n==7

@pytest.mark.parametrize('opt_func', [*slow(SGD), Adam])
def test_resumed_run_is_the_same_bit_for_bit(tmp_path, opt_func):
    def run(path, epochs=3, resume=None, die=None):
        torch.manual_seed(5)
        learn = learner(data(last=5), rich(), opt_func, lr=.01, path=path)
        cbs = [CheckpointCallback('3ba', keep=100), cb := Quick()]
        if die: cbs.append(at('after_batch', throw(KeyboardInterrupt), lambda cb: cb.learn.training and cb.learn.train_iter==die))
        try: learn.fit(epochs, cbs=cbs, resume=resume)
        except KeyboardInterrupt: pass
        return learn,cb.n
    whole,n_whole = run(tmp_path/'a')
    run(tmp_path/'b', die=13)
    again,n_again = run(tmp_path/'b', resume='auto')
    assert (n_whole, n_again)==(3*6, 3+6) and again.train_iter==24 and same(state(whole), state(again))

def test_nothing_is_left_behind():
    from torch._dynamo import config
    for e in (CancelFit(), ValueError('mine'), KeyboardInterrupt()):
        learn,cb = learner(),Quick()
        try: learn.fit(1, cbs=[cb, at('after_batch', throw(e), lambda cb: cb.learn.iter==3)])
        except (ValueError, KeyboardInterrupt): pass
        assert not config.trace_autograd_ops and cb.inputs is None and cb.shapes==[] and cb.learn is None
        assert all(p.grad is None for p in learn.model.parameters())
    deepcopy(cb)

def test_on_a_gpu_it_says_what_to_write_instead(monkeypatch):
    "With options, which are experimental there, it compiles"
    (learn := learner()).create_opt()
    monkeypatch.setattr(Learner, 'device', torch.device('cuda'))
    def run(options):
        (cb := Quick(options=options)).learn = learn
        cb._choose_part(learn._do_one_batch)
        cb.cleanup()
        return cb.compiled_part
    with pytest.warns(UserWarning, match=r"is not fused: FusedStep is for CPUs, and the model is on 'cuda'. Write `learn.compile\(\)` instead"): assert run(None) is None
    assert run({'triton.cudagraphs':True})=='whole'

def test_settings():
    for v in (0, -1, 1.5, 'all', True):
        with pytest.raises(ValueError, match='`max_shapes` must be a number of batch shapes, 1 or more'): FusedStep(max_shapes=v)

# what can't be compiled
class Branches(nn.Module):
    "Decides by looking at the numbers, which no compiler can foresee"
    def __init__(self): super().__init__(); self.net = rich()
    def forward(self, x): return self.net(x) if x.sum()>0 else self.net(-x)

class Refuses(nn.Module):
    "Now and then it ends the batch itself"
    def __init__(self): super().__init__(); self.net,self.n = net(),0
    def forward(self, x):
        self.n += 1
        if self.n%3==0: raise CancelBatch
        return self.net(x)

class Counts(nn.Module):
    "Something about it is another in each batch"
    def __init__(self): super().__init__(); self.net,self.n = rich(),0
    def forward(self, x):
        self.n += 1
        return self.net(x)*(1 + self.n/100)

@pytest.mark.parametrize('model', [Branches, Refuses, Counts])
def test_what_cannot_be_compiled_is_run_eagerly(model):
    def run(*cbs):
        torch.manual_seed(3)
        with torch.random.fork_rng(): torch.manual_seed(0); m = model()
        learn = learner(model=m)
        learn.fit(2, cbs=cbs)
        return learn
    cb,a = Quick(),run()
    with pytest.warns(UserWarning, match='this fit is not fused: it could not be compiled') as w: b = run(cb)
    assert len([o for o in w if 'this fit' in str(o.message)])==1
    assert model is not Counts or any('recompiled too often' in str(o.message) for o in w)
    assert same(state(a), state(b)) if model is Branches else close(state(a), state(b))

def test_without_compiler():
    from torch._inductor import config
    def run(*cbs):
        torch.manual_seed(3)
        learn = learner(model=net(nn.Dropout(.5), nn.Tanh()))
        learn.fit(1, cbs=cbs)
        return learn
    a,cb = run(),Count()
    with config.patch({'cpp.cxx':('no-such-compiler',)}), pytest.warns(UserWarning, match='could not be compiled') as w: b = run(cb)
    assert cb.n==0 and same(state(a), state(b)) and len([o for o in w if 'this fit' in str(o.message)])==1

def test_mistakes_are_reported_as_before():
    batches = data(3) + [(torch.randn(16, 5), torch.zeros(16).long())]
    with pytest.raises(RuntimeError, match='shapes') as e: learner(batches).fit(1, cbs=Quick())
    assert any('The model was called with' in n for n in e.value.__notes__)

def test_it_says_that_it_compiles(capfd):
    learn,quick = learner(),Quick()
    learn.fit(1, cbs=quick)
    learn.fit(1, cbs=quick)
    assert capfd.readouterr().err.count('compiling the step for batches of [16, 4], [16]: 2 to 30 s, or 1 s from')==1

# what is kept on disk
in_a_process = """
from learnkit.all import *
from torch._dynamo.utils import counters
def fit(*cbs):
    torch.manual_seed(0)
    data = [(torch.randn(16, 40), torch.randint(0, 3, (16,))) for _ in range(6)]
    learn = Learner([data], nn.Sequential(nn.Linear(40, 24), nn.ReLU(), nn.Linear(24, 3)), F.cross_entropy, partial(torch.optim.SGD, momentum=.9), lr=.1)
    with learn.no_logging(), learn.no_bar(): learn.fit(2, cbs=cbs)
    return learn
a,b = fit(),fit(cb := FusedStep())
assert cb.counts['fused']==10
for p,q in zip(a.model.parameters(), b.model.parameters()): torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-5)
print(counters['aot_autograd']['autograd_cache_hit'], compile_cache().folder)
"""

def process(folder, **env):
    """Return whether the compiled step was found on disk; raise if the fused fit of another process has other weights
    than the eager one"""
    env = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=str(folder), **env)
    res = subprocess.run([sys.executable, '-c', in_a_process], env=env, capture_output=True, text=True)
    assert res.returncode==0, res.stderr
    hit,where = res.stdout.split()
    assert where==str(folder)
    return hit=='1'

@few(0, 0)
def test_later_processes_find_the_program(tmp_path):
    def programs(): return {p for p in tmp_path.rglob('*.so')}
    assert not process(tmp_path) and (before := programs())
    assert process(tmp_path) and programs()==before

@few(0, 0)
@pytest.mark.skipif(torch.backends.cpu.get_cpu_capability()!='AVX512', reason='it needs a processor with AVX-512')
def test_a_processor_with_other_vectors_makes_its_own(tmp_path):
    "Code that was compiled for one used to compute NaN on the other"
    assert not process(tmp_path) and not process(tmp_path, ATEN_CPU_CAPABILITY='avx2')

def test_what_is_damaged_is_made_anew(monkeypatch, tmp_path):
    from torch._inductor.utils import clear_caches
    monkeypatch.setenv('TORCHINDUCTOR_CACHE_DIR', str(tmp_path))
    def run(*cbs):
        clear_caches()   # those in memory: as in a later process
        learn = learner()
        learn.fit(1, cbs=cbs)
        return state(learn)
    eager,_ = run(),run(Count())
    assert {p.suffix for p in tmp_path.rglob('*')} >= {'.so','.py',''}
    for suffix in ('.so','.py',''):
        for p in tmp_path.rglob('*'):
            if p.is_file() and p.suffix==suffix: p.unlink(); p.touch()   # a new file, as the old one is in use
    assert close(eager, run(cb := Count())) and cb.n==7

# is it worth it?
def test_profile_of_both_ways():
    "It leaves the Learner as it was, even one that fuses already, and gives the reason if a step is not fused"
    learn = learner(data(24), rich(), cbs=FusedStep())
    before,rng = state(learn),torch.get_rng_state()
    res = learn.profile(fused=True)
    assert same(before, state(learn)) and torch.equal(rng, torch.get_rng_state()) and type(learn.fused_step) is FusedStep and len(learn.cbs.filter(lambda o: isinstance(o, FusedStep)))==1
    assert res.fused>0 and res.compiling>res.fused and res.reason==''
    res = learner(data(12), cbs=Last()).profile(fused=True)
    assert res.fused>0 and res.reason=='is fused up to the gradients: Last has a handler for `after_step`'
    assert learner(data(6, last=5), Branches()).profile(3, fused=True).reason.startswith('is not fused: it could not be compiled')
    with pytest.raises(ValueError, match='too few batches to compare'): learner(data(2)).profile(fused=True)
    learn = learner(cbs=at('after_batch', throw(ZeroDivisionError), lambda cb: cb.learn.training and cb.learn.iter==3))
    with pytest.raises(ZeroDivisionError): learn.profile(fused=True)
    assert same(state(learn), state(learner())) and len(learn.cbs)==len(learner().cbs)+1

@pytest.mark.parametrize('fit', [lambda l,cb: l.fit(1, cbs=cb), lambda l,cb: l.fit_one_cycle(1, cbs=cb),
                                 lambda l,cb: l.fit_flat_cos(1, cbs=cb), lambda l,cb: l.fit_sgdr(1, 1, cbs=cb)],
                         ids=['fit','fit_one_cycle','fit_flat_cos','fit_sgdr'])
def test_each_way_to_fit_can_be_fused(fit):
    quick,learn = Quick(),learner()
    with learn.no_logging(), learn.no_bar(): fit(learn, quick)
    assert quick.n>0

class NumpyNoise(nn.Linear):
    def __init__(self): super().__init__(8, 3)
    def forward(self, x): return super().forward(x + torch.from_numpy(np.random.rand(8).astype('float32')))

@pytest.mark.slow
def test_numpy_draws_from_its_own_generator():
    "`np.random` in `forward` drew from PyTorch's generator once the step was compiled: such a step is not fused"
    def run(*cbs):
        learn = Learner(DataLoaders([(torch.ones(4,8), torch.zeros(4, dtype=torch.long))]*3), NumpyNoise(), F.cross_entropy, SGD, lr=.1)
        nn.init.ones_(learn.model.weight); nn.init.zeros_(learn.model.bias)
        np.random.seed(1); torch.manual_seed(2)
        learn.fit(2, cbs=cbs)
        return learn.model.weight.tolist(),np.random.rand(),torch.rand(1).item()
    plain = run()
    with pytest.warns(UserWarning, match='this fit is not fused: it could not be compiled .*numpy'): fused = run(FusedStep())
    assert fused==plain

def test_why_what_logs_is_not_fused():
    "The reason is named, instead of the compiler's message; no compiler is needed to find out"
    from learnkit.all import Logged, log_value
    class Logs(nn.Linear):
        def forward(self, x): log_value('first', x.mean()); return super().forward(x)
    def parts(pred, y): return dict(a=F.mse_loss(pred, y), b=F.l1_loss(pred, y))
    x = torch.randn(4, 3)
    for model,loss,names,why in ((Logs(3, 1), F.mse_loss, ['first'], 'calls `log_value`'), (nn.Linear(3, 1), parts, ['a','b'], 'a dictionary of parts')):
        learn = Learner(DataLoaders([(x, x[:,:1])]*3), model, loss, SGD, lr=.1, metrics=[*map(Logged, names)], cbs=FusedStep())
        with learn.no_bar(), learn.no_logging(), pytest.warns(UserWarning, match=f'this fit is not fused: .*{why}'): learn.fit(1)
        assert None not in [learn.recorder.history[0][k] for k in names]

def test_why_the_compiler_failed_is_reported():
    "Only the first line of its message was: of a `print` in the model `Failed to trace builtin operator`, of a backend or g++ nothing at all"
    from torch._dynamo.exc import BackendCompilerFailed
    from torch._inductor.exc import CppCompileError
    from learnkit.speed.train_step import describe_compile_error
    class Prints(nn.Linear):
        def forward(self, x): print(x.shape); return super().forward(x)
    def fails(graph, inputs): raise BackendCompilerFailed(fails, OSError('the disk is full'), None)
    with pytest.raises(dynamo.exc.Unsupported) as e: torch.compile(Prints(4, 3).forward, fullgraph=True, backend='eager')(torch.ones(2, 4))
    assert 'operator: Dynamo does not know how to trace builtin operator `print`' in describe_compile_error(e.value)
    with pytest.raises(BackendCompilerFailed) as e: fails(None, None)
    assert 'raised: OSError: the disk is full' in describe_compile_error(e.value)
    failed = CppCompileError(['g++', '-o', 'x.so'], "x.cpp: In function\nx.cpp:3:1: error: 'y' was not declared\nx.cpp:9:1: error: another")
    assert describe_compile_error(failed)=="CppCompileError: C++ compile error: 'y' was not declared"

def test_where_the_compiler_failed_is_reported():
    with pytest.warns(UserWarning, match=r'could not be compiled \(.* in .*test_fused.py, line \d+\)'): learner(model=Branches()).fit(1, cbs=Quick())
