"""Hooks and activation statistics record the right values, change nothing, and are always removed."""
import copy, pickle
from contextlib import suppress

import pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from learnkit.all import Callback, DataLoaders, Learner, TrainEvalCallback
from learnkit.loop.events import (CancelBackward, CancelBatch, CancelEpoch, CancelFit, CancelStep, CancelTrain, CancelValid,
                             CancelZeroGrad, event)
from learnkit.observe.hooks import HookCallback
from learnkit.observe.hooks import Hook, Hooks, hook_output, hook_outputs
from learnkit.observe.activations import ActivationStats, activation_stats
from learnkit.learner.summary import layers
from test_calls import Reads, batches as watched_batches, fit as watched_fit
from toys import at, draws, few, learner, throw, weights

pytestmark = pytest.mark.filterwarnings('ignore:hooks do not work in compiled code',
                                        'ignore:Full backward hook is firing')

def n_hooks(m):
    kinds = '_forward_hooks','_backward_hooks','_forward_pre_hooks','_backward_pre_hooks'
    return sum(len(getattr(o, k)) for o in m.modules() for k in kinds)
def net(): return nn.Sequential(nn.Linear(4,8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(.3), nn.Linear(8,1))
def quiet(**kw): torch.manual_seed(1); return learner(**{'model':net(), 'opt_func':torch.optim.Adam, **kw})
def fit(learn, n=1, **kw):
    with learn.no_bar(), learn.no_logging(): learn.fit(n, **kw)

class Seen(HookCallback):
    "Records the training batch, or 'valid', of each call of a layer"
    def before_fit(self): super().before_fit(); self.got = []
    def hook(self, m, i, o): self.got.append(self.train_iter if self.training else 'valid')

# hooks are always removed

errors  = [RuntimeError('x'), KeyboardInterrupt()]
cancels = [CancelBackward(), CancelBatch(), CancelEpoch(), CancelFit(), CancelStep(), CancelTrain(), CancelValid(),
           CancelZeroGrad()]
makers  = [lambda: HookCallback(), lambda: HookCallback(every=2), lambda: HookCallback(is_forward=False),
           lambda: ActivationStats(every=2)]

def once():
    "A condition true at its first call only: a batch cancelled before each fetch would be retried forever"
    first = [True]
    return lambda cb: first and first.pop()

_not_in_fit = 'after_create','before_evaluate','before_predict','after_evaluate','after_predict'
fit_events  = [ev for ev in event if not ev.endswith('_model') and ev not in _not_in_fit]

@few(1)
@pytest.mark.parametrize('order', (-30, 100))
def test_hooks_are_removed_after_any_exception_at_any_event(order):
    for i,ev in enumerate(fit_events):
        for e in (*errors, cancels[i%8], cancels[(i+3)%8]):
            cbs = [TrainEvalCallback(), *(make() for make in makers), at(ev, throw(e), when=once(), order=order)]
            learn = quiet(n=2, nv=1, opt_func=torch.optim.SGD, default_cbs=False, cbs=cbs)
            with suppress(RuntimeError, KeyboardInterrupt): learn.fit(1)
            assert n_hooks(learn.model)==0, (ev, e)

@pytest.mark.parametrize('e', (RuntimeError('x'), KeyboardInterrupt(), CancelBatch(), CancelFit()))
def test_hooks_are_removed_when_a_hook_fails(e):
    learn = quiet(cbs=HookCallback(hook=lambda *args: throw(e)()))
    with suppress(RuntimeError, KeyboardInterrupt): fit(learn)
    assert n_hooks(learn.model)==0
    learn.remove_cb(HookCallback)
    fit(learn, cbs=HookCallback())
    assert n_hooks(learn.model)==0

def test_hooks_are_on_the_model_during_a_fit():
    "Hooks are on the model in a fit; otherwise the tests above could not fail"
    on = []
    learn = quiet(cbs=[HookCallback(), at('after_pred', lambda cb: on.append(n_hooks(cb.model)), order=100)])
    fit(learn)
    assert on==[3]*5

def test_remove_end_false_keeps_one_set_of_hooks():
    learn = quiet(cbs=Seen(remove_end=False))
    fit(learn); fit(learn)
    assert n_hooks(learn.model)==3
    learn.add_cb(at('after_pred', throw(KeyboardInterrupt())))
    with pytest.raises(KeyboardInterrupt): fit(learn)
    assert n_hooks(learn.model)==0

def test_a_new_model_is_hooked_in_the_next_fit():
    learn = quiet(cbs=Seen())
    fit(learn)
    learn.model,learn.opt = net(),None
    fit(learn)
    assert learn.seen.got and n_hooks(learn.model)==0

def test_hooks_are_all_or_none():
    m = net()
    with pytest.raises(TypeError): Hooks([m[0], None], print)
    assert n_hooks(m)==0
    with pytest.raises(ZeroDivisionError), Hooks(m, lambda *args: 1/0): m(torch.rand(2,4))
    assert n_hooks(m)==0
    h = hook_output(m[0]); h.remove(); h.remove()
    assert n_hooks(m)==0

# which batches are recorded

@draws(15)
@given(every=st.integers(1, 7), n=st.integers(1, 6), epochs=st.integers(1, 3),
       order=st.sampled_from((-30, -20, 0, 60)), cancel=st.sets(st.integers(0, 12)),
       where=st.sampled_from(('before_batch', 'after_pred', 'before_step')))
def test_every(every, n, epochs, order, cancel, where):
    on,cb = [],Seen(every=every)
    cb.order = order
    def hooks_at(ev): return at(ev, lambda o: on.append(n_hooks(o.model)), order=100)
    def is_cancelled(o): return o.training and o.train_iter in cancel
    learn = quiet(n=n, nv=2, cbs=[cb, at(where, throw(CancelBatch()), when=is_cancelled, order=80),
                                  hooks_at('before_fetch'), hooks_at('after_batch'), hooks_at('before_validate')])
    fit(learn, epochs)
    recorded = [i for i in range(n*epochs) if i%every==0 and not (where=='before_batch' and i in cancel)]
    assert cb.got==[i for i in recorded for _ in range(3)]
    assert set(on)=={0}

def test_without_every_validation_is_recorded_too():
    learn = quiet(n=2, nv=2, cbs=Seen())
    fit(learn)
    assert learn.seen.got==[0]*3 + [1]*3 + ['valid']*6
    learn.validate(); assert learn.seen.got==['valid']*6 and n_hooks(learn.model)==0

def test_which_layers_are_hooked():
    for kw,n in (dict(), 3), (dict(include_paramless=True), 5), (dict(modules=nn.Linear(1, 1)), 1):
        fit(learn := quiet(cbs=HookCallback(**kw)))
        assert len(learn.hook.modules)==n

def test_bad_settings():
    for every in (0, -1, 1.5, '2'):
        with pytest.raises(ValueError, match='`every` must be a number of batches'): HookCallback(every=every)
    with pytest.raises(TypeError, match='is not an event'): HookCallback(evry=3)
    with pytest.raises(ValueError, match='the smaller one first'): ActivationStats(hist_range=(3, 3))
    with pytest.raises(ValueError, match='`bins` must be'): ActivationStats(bins=0)
    with pytest.raises(ValueError, match='call `learn.fit'): ActivationStats().stats
    fit(learn := quiet(cbs=ActivationStats(with_hist=False)))
    with pytest.raises(ValueError, match='with_hist=True'): learn.activation_stats.hist(0)

# training is not changed

@pytest.mark.parametrize('make', (*makers, lambda: ActivationStats(include_paramless=True, detach=False),
                                  lambda: HookCallback(hook=lambda m,i,o: o, detach=False, cpu=False)))
def test_weights_are_bit_for_bit_the_same(make):
    plain,hooked = quiet(n=7),quiet(n=7, cbs=make())
    torch.manual_seed(3); fit(plain, 2);  r1 = torch.get_rng_state()
    torch.manual_seed(3); fit(hooked, 2); r2 = torch.get_rng_state()
    assert torch.equal(weights(plain), weights(hooked)) and torch.equal(r1, r2)
    assert all(torch.equal(a, b) for a,b in zip(plain.model.buffers(), hooked.model.buffers()))

@pytest.mark.parametrize('make', (ActivationStats, lambda: ActivationStats(include_paramless=True),
                                  lambda: HookCallback(hook=lambda m,i,o: o)))
def test_no_batch_waits_for_the_device(make):
    got = watched_fit(Reads(), cb := make())
    assert not got.names, dict(got.names)
    assert cb.hooks is not None and (not isinstance(cb, ActivationStats) or len(cb.iters)==len(watched_batches()))

def test_stored_is_copied_to_the_cpu_when_it_is_read():
    m = net()
    with Reads() as reads:
        with hook_outputs(m, cpu=True) as hs: m(torch.rand(3, 4))
        assert not reads.names
        hs.stored
        assert reads.names['cpu']==5

@pytest.mark.parametrize('make', makers)
def test_copies_of_a_learner_train_alike(make):
    a = quiet(n=4, cbs=make(), loss_func=F.mse_loss)
    fit(a)
    both = [copy.deepcopy(a), pickle.loads(pickle.dumps(a))]
    for b in (a, *both): torch.manual_seed(0); fit(b)
    for b in both:
        assert torch.equal(weights(a), weights(b)) and n_hooks(b.model)==0
        if 'Stats' in str(b.cbs[-1]): assert torch.equal(a.activation_stats.table(), b.activation_stats.table())

@pytest.mark.parametrize('copied', (copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))))
def test_a_copy_made_in_a_fit_records_nothing(copied):
    def other(cb):
        with torch.no_grad(): copied(cb.model).eval()(cb.x)
    fit(learn := quiet(cbs=[Seen(), at('after_pred', other, order=100, run_valid=False)]))
    assert learn.seen.got==[i for i in range(3) for _ in range(3)] + ['valid']*6

# what is recorded

class Odd(nn.Module):
    "Has a layer called twice, one that returns a tuple, one that returns a dictionary, and one never called"
    def __init__(self):
        super().__init__()
        self.lin,self.rnn,self.out = nn.Linear(4,4),nn.LSTM(4,3,batch_first=True),nn.Linear(3,1)
        self.unused,self.named = nn.Linear(2,2),Named()
    def forward(self, x): return self.out(self.rnn(self.named(self.lin(F.relu(self.lin(x))))['b'][:,None])[0][:,0])

class Named(nn.Module):
    def __init__(self): super().__init__(); self.w = nn.Parameter(torch.ones(4))
    def forward(self, x): return dict(a=x.argmax(1), b=x*self.w, c=[x+1, None, x[:0]])

def flat(o):
    "The tensors in nested containers"
    if isinstance(o, torch.Tensor): return [o]
    if isinstance(o, dict): o = o.values()
    elif not isinstance(o, (list,tuple)): return []
    return [t for v in o for t in flat(v)]

class Collect(Callback):
    "Records all activations of training batches"
    def before_fit(self):
        self.got,self.ms = [],[m for _,m in layers(self.learn.model)]
        self.handles = [m.register_forward_hook(self.see) for m in self.ms]
    def see(self, m, i, o):
        ts = [t.detach().flatten().double() for t in flat(o) if t.is_floating_point()]
        if self.learn.training: self.got[-1][self.ms.index(m)] += ts
    def before_batch(self):
        if self.learn.training: self.got.append([[] for _ in self.ms])
    def cleanup(self):
        for h in self.handles: h.remove()

@pytest.mark.parametrize('every', (None, 3))
def test_statistics_are_those_of_the_activations(every):
    x = torch.randn(30, 4)
    dls = DataLoaders.from_tensors(x, x.sum(1, keepdim=True), bs=7, valid_pct=.2)
    oracle,stats = Collect(),ActivationStats(every=every, bins=9, hist_range=(-1,2))
    fit(quiet(model=Odd(), dls=dls, cbs=[oracle, stats]), 3)
    got = oracle.got[::every or 1]
    assert len(stats.stats)==len(got)>2 and list(stats.iters)==list(range(0, len(oracle.got), every or 1))
    assert stats.modules==oracle.ms
    for row,batch in zip(stats.stats, got):
        for s,ts in zip(row, batch):
            if not ts: assert s['mean']!=s['mean'] and s['std']!=s['std'] and not s['hist'].any(); continue
            o = torch.cat(ts)
            want = torch.stack([o.mean(), o.std(), (o.float()<=.05).double().mean()])
            mine = torch.tensor([s['mean'], s['std'], s['near_zero']], dtype=torch.double)
            torch.testing.assert_close(mine, want, rtol=1e-5, atol=1e-6)
            assert torch.equal(s['hist'], o.float().histc(9, -1, 2).double())
    assert sum(bool(ts) for ts in got[0])==4

def test_only_the_call_for_a_training_batch_is_recorded():
    class Twice(nn.Module):
        def __init__(self): super().__init__(); self.a,self.b = nn.Linear(4,8),nn.Linear(8,1)
        def forward(self, x): return self.b(checkpoint(self.a, x, use_reentrant=False))
    def look(cb): cb.learn.validate(); cb.model(cb.x*100)
    plain = quiet(model=Twice(), cbs=ActivationStats())
    others = [at(ev, look, order=90, run_valid=False) for ev in ('after_pred', 'after_batch')]
    other = quiet(model=Twice(), cbs=[ActivationStats(), *others])
    other.model.load_state_dict(plain.model.state_dict())
    fit(plain, 2); fit(other, 2)
    assert torch.equal(plain.activation_stats.table(), other.activation_stats.table())
    assert plain.activation_stats.table()[0,0,3:].sum()<=4*8   # recorded once, not again in the recomputation

def test_the_record_is_kept_after_an_interruption():
    stats,stop = ActivationStats(),at('before_pred', throw(KeyboardInterrupt()), when=lambda cb: cb.train_iter==4)
    with pytest.raises(KeyboardInterrupt): fit(quiet(n=6, cbs=[stats, stop]))
    assert stats.iters==[0,1,2,3] and not stats.unread and len(stats.stats)==4

def test_statistics_of_gradients():
    got = []
    def grads(cb):
        ts = [p.grad for p in cb.model[4].parameters() if p.ndim==1]
        got.append(ts[0].item())
    fit(learn := quiet(cbs=[ActivationStats(is_forward=False), at('after_backward', grads)]))
    means = torch.tensor(learn.activation_stats.layer_stats(2)[0])   # their sum is the bias's gradient
    torch.testing.assert_close(means*4, torch.tensor(got))

def test_counts_above_the_limit_of_float32():
    n = 2**24 + 1000
    assert activation_stats(torch.zeros(n), bins=4)[3]==n

def test_backward_hooks_are_full():
    class Ops(nn.Module):
        def forward(self, a, b): return (a*2 + b).exp()
    a,b,m = torch.rand(3, requires_grad=True),torch.rand(3, requires_grad=True),Ops()
    with Hook(m, lambda m,i,o: (i,o), is_forward=False) as h: m(a*1, b*1).sum().backward()
    (ga,gb),(go,) = h.stored
    assert torch.equal(ga, a.grad) and torch.equal(gb, b.grad) and torch.equal(go, torch.ones(3))

def test_nested_outputs_are_detached():
    m = Odd()
    with hook_outputs([m.named, m.rnn]) as hs, hook_output(m.lin, detach=False) as h: m(torch.rand(2, 4))
    assert not any(t.requires_grad for t in flat(list(hs.stored))) and h.stored.requires_grad
    assert set(hs[0].stored)=={'a','b','c'} and isinstance(hs[1].stored[1], tuple)

# compiled models

def compiled(m, runs):
    def backend(gm, inputs):
        def run(*args): runs.append(1); return gm.forward(*args)
        return run
    torch._dynamo.reset()
    return torch.compile(m, backend=backend)

@pytest.mark.parametrize('cbs', ([3], [2, 3], [3, 2], [None, 2]))
def test_only_recorded_batches_of_a_compiled_model_run_uncompiled(cbs):
    runs,seen = [],[Seen(every=e) for e in cbs]
    model = compiled(nn.Sequential(nn.Linear(4,4), nn.Linear(4,1)), runs)
    learn = quiet(n=6, nv=0, model=model, cbs=seen, valid=False)
    fit(learn)
    for cb,e in zip(seen, cbs): assert cb.got==[i for i in range(6) if i%(e or 1)==0 for _ in range(2)]
    assert len(runs)==sum(all(e and i%e for e in cbs) for i in range(6))
    before = len(runs)
    learn.model(torch.rand(4,4)); assert len(runs)==before+1, 'the model stayed uncompiled'

def test_the_model_is_compiled_again_after_a_failure():
    for kw,e in (dict(), RuntimeError), (dict(remove_end=False), None):
        runs = []
        fails = [at('after_pred', throw(e()))] if e else []
        learn = quiet(model=compiled(nn.Sequential(nn.Linear(4,1)), runs), cbs=[Seen(**kw), *fails])
        with suppress(RuntimeError): fit(learn)
        assert not runs
        learn.model(torch.rand(4,4)); assert runs

# plots

def test_plots():
    learn = quiet(cbs=ActivationStats(include_paramless=True))
    fit(learn, 2)
    cb = learn.activation_stats
    assert [bool(ax.images) for ax in cb.color_dims(cols=2).axes]==[True]*5+[False]
    ax = cb.color_dim(0)
    assert ax.images[0].get_array().shape==(40, 6) and 'Linear' in ax.get_title()
    assert [len(a.lines) for a in cb.plot_stats().axes]==[5,5,5]
    assert [len(a.lines) for a in cb.plot_layer_stats(1).axes]==[1,1,1]
    assert list(cb.plot_layer_stats(1).axes[0].lines[0].get_ydata())==pytest.approx(list(cb.layer_stats(1)[0]))

# fastai

def test_statistics_are_those_of_fastai():
    fast = pytest.importorskip('fastai.callback.hook')
    theirs = quiet(n=5, cbs=fast.ActivationStats(with_hist=True))
    ours = quiet(n=5, cbs=ActivationStats())
    torch.manual_seed(3); fit(theirs, 2)
    torch.manual_seed(3); fit(ours, 2)
    a,b = theirs.activation_stats,ours.activation_stats
    for i in range(3):
        for p,q in zip(a.layer_stats(i), b.layer_stats(i)):
            torch.testing.assert_close(torch.tensor(list(p)), torch.tensor(list(q)), rtol=1e-5, atol=1e-6)
        assert torch.equal(a.hist(i), b.hist(i))
