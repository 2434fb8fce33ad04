"Mixed precision, memory layout and compilation equal plain PyTorch loops and leave nothing behind"
import pickle, shutil
from copy import deepcopy

import pytest, torch
from hypothesis import given, settings, strategies as st
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD, Adam

from learnkit.callbacks.accumulate import GradientAccumulation
from learnkit.callbacks.gradients import GradientClip
from learnkit.callbacks.averages import EMACallback
from learnkit.callbacks.accumulate import MicroBatch
from learnkit.loop.events import *
from learnkit.loop.callback import *
from learnkit.loop.dispatcher import *
from learnkit.learner.results import *
from learnkit.learner.learner import *
from learnkit.learner.predict import *
from learnkit.processes.shard import *
from learnkit.speed.memory import ChannelsLast, set_memory_format
from learnkit.callbacks.precision import AMPMode, MixedPrecision
from learnkit.data.loaders import DataLoaders
import learnkit.learner.predict
from learnkit.learner.learner import Learner
from learnkit.learner.save import *
from toys import at, few, slow, throw

pytestmark = pytest.mark.filterwarnings('error::UserWarning')
TYPES = dict(fp16=torch.float16, bf16=torch.bfloat16)

def images(n, seed=0, bs=4):
    g = torch.Generator().manual_seed(seed)
    return [(torch.randn(bs,2,6,6, generator=g), torch.randint(3, (bs,), generator=g)) for _ in range(n)]
def conv(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Conv2d(2,4,3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64,3))
train,valid = images(6),images(2, 1)
def mk(cbs=None, model=None, opt_func=SGD, lr=.1, **kw):
    return Learner(DataLoaders(train, valid), model or conv(), nn.CrossEntropyLoss(), opt_func=opt_func, lr=lr, cbs=cbs, **kw)
def fit(learn, n=2, **kw):
    with learn.no_logging(), learn.no_bar(): learn.fit(n, **kw)
    return learn
def ws(m): return [p.detach().clone() for p in getattr(m, 'model', m).state_dict().values()]
def same(a, b): return len(a)==len(b) and all(map(torch.equal, a, b))
def auto(): return torch.is_autocast_enabled('cpu')

# compared with a plain torch.amp loop
def plain_loop(mode, epochs=2, clip=None, acc=1, opt_func=SGD, parts=1, **kw):
    model = conv()
    opt,scaler = opt_func(model.parameters(), lr=.1),torch.amp.GradScaler('cpu', enabled=mode=='fp16', **kw)
    losses = []
    for _ in range(epochs):
        model.train()
        for i,(x,y) in enumerate(train):
            for xp,yp in zip(x.chunk(parts), y.chunk(parts)):
                with torch.autocast('cpu', dtype=TYPES[mode]): loss = F.cross_entropy(model(xp), yp)
                losses.append(loss.item())
                scaler.scale(loss/acc/parts).backward()
            if (i+1)%acc: continue
            scaler.unscale_(opt)
            if clip: nn.utils.clip_grad_norm_(model.parameters(), clip)
            scaler.step(opt); scaler.update(); opt.zero_grad()
    return model,scaler,losses

@pytest.mark.parametrize('mode', ['fp16','bf16'])
@pytest.mark.parametrize('opt_func', [SGD, Adam])
@pytest.mark.parametrize('clip,acc,parts', [(None,1,1), (.1,1,1), (None,2,1), (.1,3,1), (.1,1,2), (.1,2,2)])
def test_equals_a_plain_loop_bit_for_bit(mode, opt_func, clip, acc, parts):
    model,scaler,losses = plain_loop(mode, clip=clip, acc=acc, opt_func=opt_func, parts=parts)
    cbs = [MicroBatch(n=parts)]*(parts>1) + [GradientAccumulation(4*acc)]*(acc>1) + ([GradientClip(clip)] if clip else []) + [MixedPrecision(mode)]
    learn = fit(mk(cbs, opt_func=opt_func))
    if acc==3: assert all(torch.allclose(a.float(), b.float(), atol=1e-6) for a,b in zip(ws(model), ws(learn)))   # x/3 and x*(1/3) differ in the last bit
    else: assert same(ws(model), ws(learn))
    if parts==1: assert [float(l) for l in learn.recorder.train.metrics[0].raw]==losses
    assert learn.mixed_precision.scaler.state_dict()==scaler.state_dict()

@pytest.mark.parametrize('kw', [dict(init_scale=2.**40), dict(init_scale=4., growth_interval=2), dict(init_scale=2.**24, backoff_factor=.25)])
def test_scale_changes_as_in_a_plain_loop(kw):
    model,scaler,_ = plain_loop('fp16', epochs=3, **kw)
    cancelled = []
    learn = fit(mk(at('after_cancel_step', lambda cb: cancelled.append(1))).to_fp16(**kw), 3)
    assert same(ws(model), ws(learn)) and learn.mixed_precision.scaler.state_dict()==scaler.state_dict()
    assert bool(cancelled)==(kw['init_scale']>2**20)

def test_scale_stays_over_fits_and_resumes():
    learn = fit(mk().to_fp16(init_scale=2.**30))
    scaler,state = learn.mixed_precision.scaler,deepcopy(learn.mixed_precision.state_dict())
    assert state['scaler']['scale']<2**30
    fit(learn)
    assert learn.mixed_precision.scaler is scaler
    other = mk(model=learn.model).to_fp16()
    other.mixed_precision.load_state_dict(state)   # before its first fit
    assert other.mixed_precision.scaler.get_scale()==state['scaler']['scale']
    bf = fit(mk().to_bf16())
    bf.mixed_precision.load_state_dict(bf.mixed_precision.state_dict())

# where autocast is on
@pytest.mark.parametrize('mode', ['fp16','bf16'])
def test_on_for_model_and_loss_only(mode):
    seen = {}
    cb = Callback(**{e: lambda self, e=e: seen.setdefault(e, set()).add(auto()) for e in event if e not in ('after_create',)})
    cb.order = 50
    class Seen(nn.Module):
        def __init__(self): super().__init__(); self.m = conv()
        def forward(self, x): on.append(auto()); return self.m(x)
    def loss(p, y): on.append(auto()); types.add(p.dtype); return F.cross_entropy(p, y)
    on,types = [],set()
    learn = Learner(DataLoaders(train, valid), Seen(), loss, opt_func=SGD, cbs=[cb, MixedPrecision(mode)])
    fit(learn, 1); learn.validate(); learn.get_preds()
    assert all(on) and types=={torch.float32}
    assert {e for e,v in seen.items() if True in v}=={'before_pred','after_pred','before_loss'}
    assert learn.get_preds()[0].dtype==torch.float32 and learn.model.m[0].weight.dtype==torch.float32

@few(20, 30)
@pytest.mark.parametrize('ev', ['before_pred','after_pred','before_loss','after_loss','before_batch','after_batch','before_step'])
@pytest.mark.parametrize('exc', [CancelBatch, CancelTrain, CancelValid, CancelEpoch, CancelFit, CancelBackward, CancelStep, KeyError])
@pytest.mark.parametrize('order', [0, 50])
def test_autocast_is_off_after_any_exception(ev, exc, order):
    learn = mk().to_fp16()
    def run(f):
        try: f()
        except (KeyError, RuntimeError): pass
        assert not auto() and not learn.mixed_precision.contexts
    run(lambda: fit(learn, 1, cbs=at(ev, throw(exc), lambda cb: cb.learn.iter==1, order=order)))
    run(lambda: learn.validate(cbs=at(ev, throw(exc), order=order)))
    run(lambda: learn.get_preds(cbs=at(ev, throw(exc), order=order)))
    start = deepcopy(learn.model.state_dict())
    learn.to_fp32()
    fresh = mk(); fresh.model.load_state_dict(start)
    assert same(ws(fit(learn, 1)), ws(fit(fresh, 1)))

def test_a_nested_run_has_its_own_autocast():
    def peek(cb):
        cb.learn.get_preds()
        now.append(auto())
        try: cb.learn.get_preds(cbs=Callback(after_pred=throw(KeyError())))
        except KeyError: pass
    now = []
    for ev in ('after_pred','before_loss','after_loss','after_backward','before_step'):
        now.clear()
        a,b = fit(mk(at(ev, peek, modes=('fit',), order=20)).to_bf16(), 1),fit(mk().to_bf16(), 1)
        assert same(ws(a), ws(b)) and not auto(), ev
        assert set(now)=={ev in ('after_pred','before_loss')}

@pytest.mark.parametrize('exc', [CancelStep, CancelBatch])
@pytest.mark.parametrize('order', [0, 50])
def test_steps_that_others_cancel(exc, order):
    learn = fit(mk(at('before_step', throw(exc), lambda cb: cb.learn.iter%2==0, order=order)).to_fp16(), 2)
    assert all(torch.isfinite(o).all() for o in ws(learn))
    if exc is CancelStep:
        plain = fit(mk(at('before_step', throw(exc), lambda cb: cb.learn.iter%2==0, order=order)), 2)
        assert all(torch.allclose(a.float(), b.float(), atol=.02) for a,b in zip(ws(learn), ws(plain)))

@pytest.mark.parametrize('mode', ['fp16','bf16'])
def test_on_in_every_training_run(mode):
    "The learning-rate finder trains in the same precision as a fit"
    learn = mk(MixedPrecision(mode))
    with learn.no_logging(), learn.no_bar(): learn._train('lr_find', 2)
    assert same(ws(learn), ws(plain_loop(mode)[0]))

def test_no_gradient_at_all():
    start = conv()[0].weight
    assert torch.equal(fit(mk(Callback(before_backward=throw(CancelBackward))).to_fp16(), 1).model[0].weight, start)

# settings
def test_one_at_a_time():
    learn = mk().to_fp16().to_bf16()
    assert [cb.amp_mode for cb in learn.cbs if isinstance(cb, MixedPrecision)]==['bf16']
    assert not any(isinstance(cb, MixedPrecision) for cb in learn.to_fp32().cbs)
    assert MixedPrecision(AMPMode.BF16).dtype==torch.bfloat16
    assert same(ws(fit(learn)), ws(fit(mk())))

def test_bad_settings_raise():
    with pytest.raises(ValueError, match="'fp16', 'bf16' or 'fp8'"): MixedPrecision('half')
    with pytest.raises(TypeError, match='scale'): MixedPrecision(scale=2)
    with pytest.raises(ValueError, match='model.float'): fit(mk(model=conv().half()).to_fp16())

# layout
def test_layout_is_for_the_run():
    seen = []
    cb = at('after_pred', lambda cb: seen.append(cb.learn.model[0].weight.stride()))
    learn = fit(mk([ChannelsLast, cb]), 1)
    assert set(seen)=={(18,1,6,2)} and learn.model[0].weight.is_contiguous()
    with pytest.raises(KeyError): fit(learn, 1, cbs=at('after_pred', throw(KeyError)))
    assert learn.model[0].weight.is_contiguous()
    assert all(torch.allclose(a.float(), b.float(), atol=1e-4) for a,b in zip(ws(fit(mk(), 1)), ws(fit(mk(ChannelsLast), 1))))

def test_layout_for_good():
    learn = mk().to_channelslast().to_channelslast(use_amp=True, amp_mode='bf16')
    assert sum(isinstance(cb, ChannelsLast) for cb in learn.cbs)==1 and learn.mixed_precision.amp_mode=='bf16'
    w = learn.model[0].weight
    fit(learn, 1)
    assert learn.model[0].weight is w and w.stride()==(18,1,6,2)
    learn.to_contiguous(to_fp32=True)
    assert w.is_contiguous() and not any(isinstance(cb, (ChannelsLast, MixedPrecision)) for cb in learn.cbs)

def test_layout_of_volumes():
    m = nn.Sequential(nn.Conv3d(2,3,3), nn.Conv1d(2,3,3))
    set_memory_format(m)
    assert m[0].weight.is_contiguous(memory_format=torch.channels_last_3d) and m[1].weight.is_contiguous()

# compilation
def counting():
    calls = []
    def backend(gm, inputs): calls.append(gm); return gm
    return calls,backend

@pytest.mark.filterwarnings('ignore')
def test_compiled_is_the_same_model(tmp_path):
    calls,backend = counting()
    learn = mk(path=tmp_path, splitter=lambda m: [list(m[:3].parameters()), list(m[3:].parameters())]).compile(backend=backend)
    plain = mk(path=tmp_path, splitter=learn.splitter)
    for l in (learn, plain):
        l.freeze(); fit(l, 1)
        l.unfreeze(); fit(l, 1, cbs=[GradientAccumulation(8), MicroBatch(2)])
    assert calls and same(ws(learn), ws(plain))
    assert list(learn.model.state_dict())==list(plain.model.state_dict())
    learn.save('c'); plain.load('c')
    assert torch.equal(plain.get_preds()[0], learn.get_preds()[0])
    assert deepcopy(learn.model)._compiled_call_impl is None
    copy = pickle.loads(pickle.dumps(learn.model))
    assert same(ws(copy), ws(learn))

@pytest.mark.filterwarnings('ignore')
def test_a_compiled_model_calls_new_hooks():
    calls,backend = counting()
    learn,hook_calls = fit(mk().compile(backend=backend), 1),[]
    hooks = [m.register_forward_hook(lambda *args: hook_calls.append(1)) for m in (learn.model, learn.model[0])]
    learn.validate()
    assert len(hook_calls)==2*len(valid)
    for h in hooks: h.remove()
    learn.validate()
    assert len(hook_calls)==2*len(valid)

def test_many_compiled_models():
    "Each model has its own recompile count; with PyTorch's limit per code object, later models were never compiled"
    from torch._dynamo import config
    x = torch.randn(2, 4)
    with config.patch(accumulated_recompile_limit=5):
        for n in range(1, 11):
            calls,backend = counting()
            learn = Learner([[(x, x)]], nn.Linear(4, 4), nn.MSELoss()).compile(backend=backend)
            for _ in range(2): learn.model(x)
            assert len(calls)==1, f'model {n}'

@pytest.mark.filterwarnings('ignore')
@pytest.mark.skipif(not (shutil.which('g++') or shutil.which('clang++')), reason='no C++ compiler for inductor')
@pytest.mark.slow
def test_compiled_for_real():
    small = nn.Sequential(nn.Linear(4,8), nn.ReLU(), nn.Linear(8,1))
    data = [(torch.randn(4,4), torch.randn(4,1)) for _ in range(3)]
    a,b = (Learner((data, data), deepcopy(small), nn.MSELoss(), opt_func=SGD, lr=.1) for _ in range(2))
    fit(a.compile(), 1); fit(b, 1)
    assert all(torch.allclose(x, y, atol=1e-5) for x,y in zip(ws(a), ws(b)))

# learning-rate finder and `unchanged`
@pytest.mark.parametrize('how', [lambda l: l.to_fp16(), lambda l: l.to_bf16(), lambda l: l.to_channelslast(use_amp=True)],
                         ids=['fp16','bf16','channelslast'])
@pytest.mark.parametrize('first', [0, 1])
def test_lr_find_and_unchanged_before_a_fit(how, first):
    "Before the first fit there is no scaler: `lr_find` and `unchanged` used to raise `NoneType has no len`"
    def run(trial):
        learn = how(mk())
        if first: fit(learn, first)
        if trial:
            with learn.no_bar(): learn.lr_find(num_it=6, show_plot=False, suggest_funcs=None)
            with learn.unchanged(): fit(learn, 1)
            assert first or learn.mixed_precision.scaler is None
        return fit(learn, 1)
    assert same(ws(run(True)), ws(run(False)))

@few(6, 20)
@pytest.mark.parametrize('ev', ['before_fit','before_epoch','before_train','before_pred','after_pred','before_loss','after_loss','before_step','after_epoch'])
@pytest.mark.parametrize('order', [-50, 99, *slow(0, 11)])
@pytest.mark.parametrize('mode,ema', [('fp16',True), *slow(('fp16',False), ('bf16',True), ('bf16',False))])
def test_inference_within(ev, order, mode, ema):
    """Inference within a fit predicts as a separate Learner with the same weights does, and does not change the fit. It used to
    fail in `before_fit`, without a `device_type`; within a batch, autocast's cache held the wrong weights with EMACallback"""
    def cbs(): return [MixedPrecision(mode), *[EMACallback(.5)]*ema]
    got,want = [],[]
    def look(cb):
        if cb.learn.mode!='fit' or not (cb.learn.training or ev in ('before_fit','before_epoch','before_train','after_epoch')): return
        learn,averages = cb.learn,dict(cb.learn.ema.averages) if ema else {}
        state = {k:averages.get(k, v).detach().clone() for k,v in learn.model.state_dict().items()}
        got.append(learn.get_preds()[0])
        alone = mk(MixedPrecision(mode))
        alone.model.load_state_dict(state)
        with torch.autocast('cpu', enabled=False, cache_enabled=False): want.append(alone.get_preds()[0])
    assert same(ws(fit(mk([*cbs(), at(ev, look, order=order)]))), ws(fit(mk(cbs()))))
    assert got and all(map(torch.equal, got, want))
