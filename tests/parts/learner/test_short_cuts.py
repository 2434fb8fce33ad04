"""A wrong short cut is found where it is taken; a right one changes nothing, and neither does the comparison"""
import os, shutil, subprocess, sys, warnings
from functools import partial, wraps
from pathlib import Path
from types import MethodType
import pytest, torch
from torch import nn
from torch.optim import SGD, Adagrad, Adam, AdamW, RMSprop
from learnkit.all import (CheckShortCuts, EMACallback, FusedStep, GradientAccumulation, GradientClip, Learner, MicroBatch, MixedPrecision, ParamScheduler, SkipNaN, TorchScheduler,
                          WrongShortCut, one_cycle)
from learnkit.loop.callback import Callback
from learnkit.loop.events import CancelStep
from learnkit.optim import optimizer
from learnkit.speed import train_step, updates
from learnkit.speed.compiled import compile_config
from toys import at, batches, few, learner, throw, weights

def net():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(.2), nn.Linear(8, 1))

def trained(*cbs, n=4, epochs=2, **kw):
    torch.manual_seed(1)
    learn = learner(n, model=net(), cbs=[*cbs], **kw)
    with learn.no_bar(), learn.no_logging(): learn.fit(epochs)
    return learn

OPTS = dict(sgd=partial(SGD, momentum=.9), adam=Adam, adamw=partial(AdamW, weight_decay=.1, foreach=False), adagrad=Adagrad, rmsprop=RMSprop)
CBS = dict(none=lambda: (), clip=lambda: (GradientClip(.1),), accumulate=lambda: (GradientAccumulation(8),), micro=lambda: (MicroBatch(2),), ema=lambda: (EMACallback(.9),),
           skip=lambda: (SkipNaN(),), fp16=lambda: (MixedPrecision('fp16'),), schedule=lambda: (ParamScheduler(one_cycle(.1)),),
           torch=lambda: (TorchScheduler(partial(torch.optim.lr_scheduler.StepLR, step_size=3)),))

@few(8)
@pytest.mark.parametrize('opt', OPTS)
@pytest.mark.parametrize('cbs', CBS)
def test_to_compare_changes_nothing(opt, cbs):
    a,b = trained(*CBS[cbs](), opt_func=OPTS[opt]),trained(*CBS[cbs](), CheckShortCuts(), opt_func=OPTS[opt])
    assert torch.equal(weights(a), weights(b))
    assert [{**r, 'time':0} for r in a.recorder.history]==[{**r, 'time':0} for r in b.recorder.history]
    n = b.check_short_cuts.n
    assert n['handlers']==2*6 and (cbs=='fp16' or n['step']==dict(accumulate=4, torch=0).get(cbs, 8))   # a hook is not called twice; with fp16 some steps are cancelled

# the optimizer's step

class Signs(SGD):
    "It says by `functools.wraps` that its step is PyTorch's"
    @wraps(SGD.step)
    def step(self, closure=None):
        for pg in self.param_groups:
            for p in pg['params']: p.grad.sign_()
        return super().step(closure)

def test_a_step_of_its_own_is_no_short_cut():
    assert torch.equal(weights(trained(opt_func=Signs)), weights(trained(CheckShortCuts(), opt_func=Signs)))

def test_a_step_that_is_passed_over_is_found(monkeypatch):
    "As it was: names were asked, which `wraps` copies"
    monkeypatch.setattr(optimizer, 'unwrap_step', lambda step: SGD.step.__wrapped__.__wrapped__)
    with pytest.raises(WrongShortCut, match=r'(?s)the optimizer.s fast step.*epoch 0, batch 0.*`0.weight` differs in \d+ of 32 elements, most at \[\d, \d\]: -?[\d.e-]+ instead of -?[\d.e-]+.*Signs.step'):
        trained(CheckShortCuts(), opt_func=Signs)

def test_a_state_that_differs_is_found(monkeypatch):
    def update(opt):
        Adam.step.__wrapped__.__wrapped__(opt)
        if opt.state[p := opt.param_groups[0]['params'][1]]['step']==3: opt.state[p]['exp_avg'][2] += 1e-3
    monkeypatch.setattr(optimizer, 'unwrap_step', lambda step: update)
    with pytest.raises(WrongShortCut, match='batch 2.*`exp_avg` of `0.bias` differs in 1 of 8 elements, most at .2.'): trained(CheckShortCuts(), opt_func=Adam)

def test_gradients_that_stay_are_found(monkeypatch):
    monkeypatch.setattr(optimizer.OptimWrapper, 'zero_grad', lambda self, **kw: None)
    with pytest.raises(WrongShortCut, match='zero_grad.*`0.weight`.*has a gradient'): trained(CheckShortCuts())

def test_a_zero_grad_that_is_replaced_is_called(monkeypatch):
    "Also where the class of all optimizers was given another one, as profilers do"
    n,zero = [],torch.optim.Optimizer.zero_grad
    monkeypatch.setattr(torch.optim.Optimizer, 'zero_grad', lambda self, *a, **k: (n.append(1), zero(self, *a, **k)))
    trained()
    assert len(n)==1+8   # before the first batch, too

class Fading(SGD):
    "Keeps a half of each gradient"
    def zero_grad(self, set_to_none=True): [p.grad.mul_(.5) for pg in self.param_groups for p in pg['params'] if p.grad is not None]

def test_to_compare_writes_into_no_gradient():
    assert torch.equal(weights(trained(opt_func=Fading)), weights(trained(CheckShortCuts(), opt_func=Fading)))

# bound handlers

def test_a_handler_that_is_changed_behind_the_table_is_found():
    class Late(Callback):
        def before_batch(self):
            if self.learn.train_iter==2: type(self).after_loss = lambda self: None
    with pytest.raises(WrongShortCut, match='table of handlers.*epoch 0, batch 3: at `after_loss` .* of none, but .* of `Late`.*not to its class'): trained(CheckShortCuts(), Late())

def test_an_order_that_is_changed_behind_the_table_is_found():
    class A(Callback):
        def before_batch(self): vars(self)['order'] = 5 if self.learn.train_iter==1 else 0
    class B(Callback):
        def before_batch(self): pass
    with pytest.raises(WrongShortCut, match='table of handlers.*batch 2: at `before_batch` .* of `A`, `B`, but .* of `B`, `A`'): trained(CheckShortCuts(), A(), B())

def test_what_is_changed_as_it_should_be_is_right():
    class Late(Callback):
        def before_batch(self):
            if self.learn.train_iter==2: self.after_loss = lambda: None; self.order = 3
            if self.learn.train_iter==3: self.run_train = False
    assert trained(CheckShortCuts(), Late(), Late()).check_short_cuts.n['handlers']==12

# the fused step, with programs that are not compiled

class Uncompiled:
    "Runs the function that would be compiled"
    def __init__(self, f, **kw): self.f,self.shapes = f,set()
    def __call__(self, shape, *args): return self.f(*args)

@pytest.fixture
def uncompiled(monkeypatch): monkeypatch.setattr(train_step, 'CompiledStep', Uncompiled)

fusable = pytest.mark.skipif(compile_config() is None, reason='this PyTorch compiles no backward pass')
# a bias before a batch norm has a gradient of rounding alone, by which Adam makes whole steps
def plain(): return nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.Dropout(.2), nn.Tanh(), nn.Linear(8, 1))
def fused(*cbs, n=6, **kw):
    torch.manual_seed(0)
    learn = Learner((batches(n, 8), batches(2, 8, 1)), plain(), nn.MSELoss(), **{'opt_func':AdamW, 'lr':.01, **kw}, cbs=[cb := FusedStep(), *cbs])
    with learn.no_bar(), learn.no_logging(), warnings.catch_warnings():
        warnings.filterwarnings('error', 'this fit is not')
        warnings.filterwarnings('ignore', 'this fit is fused up to')
        learn.fit(2)
    return learn,cb

@few(6)
@fusable
@pytest.mark.parametrize('cbs', ['none','clip','accumulate','ema','schedule'])
@pytest.mark.parametrize('opt', OPTS)
def test_to_compare_a_fused_step_changes_nothing(opt, cbs, uncompiled):
    (a,x),(b,y) = (fused(*CBS[cbs](), *more, opt_func=OPTS[opt]) for more in ((), (CheckShortCuts(),)))
    assert x.counts==y.counts and x.counts['fused']==10 and torch.equal(weights(a), weights(b))
    assert b.check_short_cuts.n['fused']==10

def doubled(step): return lambda self, *a, **k: (step(self, *a, **k), step(self, *a, **k))[1]
def in_class(opt, undo): undo.setattr(type(opt), 'step', doubled(type(opt).step))
def in_instance(opt, undo): opt.step = MethodType(doubled(type(opt).step), opt)
def no_zero(opt, undo): opt.zero_grad = lambda *a, **k: None

@fusable
@pytest.mark.parametrize('replace', [in_class, in_instance, no_zero])
def test_what_is_replaced_between_fused_steps_is_called(replace, uncompiled, monkeypatch):
    def run(*cbs):
        torch.manual_seed(0)
        learn = Learner((batches(6, 8), None), plain(), nn.MSELoss(), opt_func=SGD, lr=.01, cbs=[*cbs])
        late = iter(range(99))
        with learn.no_bar(), learn.no_logging(), monkeypatch.context() as undo, warnings.catch_warnings():
            warnings.simplefilter('ignore')
            swap = Callback(after_batch=lambda cb: next(late)==3 and replace(cb.learn.opt.opt, undo))
            swap.acts = 'nothing'
            learn.fit(1, cbs=swap)
        return weights(learn)
    assert torch.allclose(run(), run(FusedStep()), atol=1e-6)

@fusable
@pytest.mark.parametrize('wrong,said', [('p', 'weight` differs in .* elements'), ('state', '`exp_avg` of `0.weight`'), ('forgot', 'weight` differs')])
def test_a_wrong_program_is_found(wrong, said, uncompiled, monkeypatch):
    true = updates.adam_step
    def step(p, grad, state, hypers, options):
        if wrong=='forgot': options = {**options, 'has_wd':False}
        true(p, grad, state, hypers, options)
        if wrong=='p': p.mul_(1+1e-5)
        if wrong=='state': state['exp_avg'].mul_(1+1e-3)
    monkeypatch.setitem(updates.functional_optims, AdamW, updates.FunctionalOptim(step, ('lr','betas','eps','weight_decay'), ('decoupled_weight_decay',)))
    with pytest.raises(WrongShortCut, match=f'(?s)fused step.*epoch 0, batch.*{said}'): fused(CheckShortCuts())
    fused()

@fusable
def test_a_wrong_gradient_is_found(uncompiled, monkeypatch):
    def wrong(self, shape, *args):
        pred,loss,grads = self.f(*args)
        return pred,loss,[g*(1+1e-2*(g.ndim>1)) for g in grads]
    monkeypatch.setattr(Uncompiled, '__call__', wrong)
    see = at('before_step', lambda cb: None)   # so only the gradients are compiled
    with pytest.raises(WrongShortCut, match='(?s)fused step.*the gradient of `0.weight`'): fused(CheckShortCuts(), see)

@pytest.mark.slow
@fusable
@pytest.mark.skipif(not shutil.which(os.environ.get('CXX', 'g++')), reason='there is no C++ compiler')
def test_a_compiled_program_is_right():
    learn,cb = fused(CheckShortCuts(), n=12)
    assert cb.counts['fused']==learn.check_short_cuts.n['fused']==22

def test_a_step_that_is_cancelled_at_the_last_moment_is_not_compared():
    learn = trained(CheckShortCuts(), at('before_step', lambda cb: throw(CancelStep)(), when=lambda cb: cb.train_iter==2, order=20_000))
    assert learn.check_short_cuts.n['step']==7

# the switch

SCRIPT = '''
import torch; from torch import nn; from learnkit.all import *
x = torch.randn(8, 4)
learn = Learner(([(x, x[:,:1])]*2, None), nn.Linear(4, 1), nn.MSELoss())
class See(Callback):
    def after_fit(self): print([type(cb).__name__ for cb in self.learn.cbs if 'Short' in type(cb).__name__], self.learn.check_short_cuts.n['step'])
with learn.no_bar(), learn.no_logging(): learn.fit(1, cbs=See); learn.fit(1, cbs=[See, CheckShortCuts])
'''
@pytest.mark.slow
def test_a_variable_puts_it_into_every_fit():
    run = subprocess.run([sys.executable, '-c', SCRIPT], env={**os.environ, 'LEARNKIT_CHECK_SHORT_CUTS':'1'}, capture_output=True, text=True)
    assert run.stdout.splitlines()==["['CheckShortCuts'] 2","['CheckShortCuts', 'CheckShortCuts'] 2"], run.stderr

UNDER_IT = 'parts/callbacks/test_before_step.py','spec/test_raw_loop.py','parts/optim/test_opt_modes.py','parts/callbacks/test_schedule.py'
@few(0, 0)
@pytest.mark.slow
@pytest.mark.parametrize('file', UNDER_IT)
def test_other_tests_pass_under_it(file):
    "Those that compare with loops by hand, to the bit"
    tests = Path(__file__).resolve().parents[2]
    run = subprocess.run([sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-m', 'not slow', '-k', 'not memory', tests/file], env={**os.environ, 'LEARNKIT_CHECK_SHORT_CUTS':'1'},
                         capture_output=True, text=True)
    assert run.returncode==0, run.stdout[-3000:]
