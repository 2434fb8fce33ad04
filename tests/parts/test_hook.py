"""Hooks see what they should and nothing else, cost nothing where they are off, change nothing, and never stay behind."""
import copy, pickle
from contextlib import suppress

import pytest, torch
from hypothesis import given, settings, strategies as st
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from learnkit.all import Callback, DataLoaders, Learner, TrainEvalCallback
from learnkit.events import (CancelBackward, CancelBatch, CancelEpoch, CancelFit, CancelStep, CancelTrain, CancelValid,
                             CancelZeroGrad, event)
from learnkit.observe.hook_callback import HookCallback
from learnkit.observe.hooks import Hook, Hooks, hook_output, hook_outputs
from learnkit.observe.activation_stats import ActivationStats, activation_stats
from learnkit.layer_info import layer_info, layers
from test_calls import Reads, batches as watched_batches, fit as watched_fit
from toys import at, learner, throw, weights

pytestmark = pytest.mark.filterwarnings('ignore:hooks do not work in compiled code', 'ignore:Full backward hook is firing')

def n_hooks(m):
    return sum(len(o._forward_hooks)+len(o._backward_hooks)+len(o._forward_pre_hooks)+len(o._backward_pre_hooks) for o in m.modules())
def net(): return nn.Sequential(nn.Linear(4,8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(.3), nn.Linear(8,1))
def quiet(**kw): torch.manual_seed(1); return learner(**{'model':net(), 'opt_func':torch.optim.Adam, **kw})
def fit(learn, n=1, **kw):
    with learn.no_bar(), learn.no_logging(): learn.fit(n, **kw)

class Seen(HookCallback):
    "Notes in which training batch, or in which validation, which module was called"
    def before_fit(self): super().before_fit(); self.got = []
    def hook(self, m, i, o): self.got.append(self.train_iter if self.training else 'valid')

# ------------------------------------------------------------------------------------------------ they never stay
ENDS = [RuntimeError('x'), KeyboardInterrupt(), CancelBackward(), CancelBatch(), CancelEpoch(), CancelFit(), CancelStep(), CancelTrain(), CancelValid(), CancelZeroGrad()]
MAKE = dict(all=lambda: HookCallback(), every=lambda: HookCallback(every=2), backward=lambda: HookCallback(is_forward=False), stats=lambda: ActivationStats(every=2))

def once():
    "True the first time: a batch that is cancelled before it is fetched would be asked for again for ever"
    first = [True]
    return lambda cb: first and first.pop()

HEARD = [ev for ev in event if not ev.endswith('_model') and ev not in ('after_create','before_evaluate','before_predict','after_evaluate','after_predict')]

@pytest.mark.parametrize('order', (-30, 100))
def test_hooks_go_whatever_is_raised_wherever(order):
    for i,ev in enumerate(HEARD):
        for e in (*ENDS[:2], ENDS[2 + i%8], ENDS[2 + (i+3)%8]):
            learn = quiet(n=2, nv=1, opt_func=torch.optim.SGD, default_cbs=False, cbs=[TrainEvalCallback(), *(make() for make in MAKE.values()), at(ev, throw(e), when=once(), order=order)])
            with suppress(RuntimeError, KeyboardInterrupt): learn.fit(1)
            assert n_hooks(learn.model)==0, (ev, e)

@pytest.mark.parametrize('e', (RuntimeError('x'), KeyboardInterrupt(), CancelBatch(), CancelFit()))
def test_hooks_go_if_a_hook_fails_and_the_next_fit_works(e):
    learn = quiet(cbs=HookCallback(hook=lambda *args: throw(e)()))
    with suppress(RuntimeError, KeyboardInterrupt): fit(learn)
    assert n_hooks(learn.model)==0
    learn.remove_cb(HookCallback)
    fit(learn, cbs=HookCallback())
    assert n_hooks(learn.model)==0

def test_hooks_are_on_while_they_should_be():
    "Else the tests above prove nothing"
    on = []
    learn = quiet(cbs=[HookCallback(), at('after_pred', lambda cb: on.append(n_hooks(cb.model)), order=100)])
    fit(learn)
    assert on==[3]*5

def test_remove_end_false_keeps_one_set_of_hooks_only():
    learn = quiet(cbs=Seen(remove_end=False))
    fit(learn); fit(learn)
    assert n_hooks(learn.model)==3
    learn.add_cb(at('after_pred', throw(KeyboardInterrupt())))
    with pytest.raises(KeyboardInterrupt): fit(learn)
    assert n_hooks(learn.model)==0

def test_each_run_hooks_the_model_that_it_trains():
    learn = quiet(cbs=Seen())
    fit(learn)
    learn.model,learn.opt = net(),None
    fit(learn)
    assert learn.seen.got and n_hooks(learn.model)==0

def test_hooks_are_all_or_none():
    m = net()
    with pytest.raises(AttributeError): Hooks([m[0], None], print)
    assert n_hooks(m)==0
    with pytest.raises(ZeroDivisionError), Hooks(m, lambda *args: 1/0): m(torch.rand(2,4))
    assert n_hooks(m)==0
    h = hook_output(m[0]); h.remove(); h.remove()
    assert n_hooks(m)==0

# ------------------------------------------------------------------------------------------------ when they look
@settings(max_examples=25, deadline=None)
@given(every=st.integers(1, 7), n=st.integers(1, 6), epochs=st.integers(1, 3), order=st.sampled_from((-30, -20, 0, 60)), cancel=st.sets(st.integers(0, 12)),
       where=st.sampled_from(('before_batch', 'after_pred', 'before_step')))
def test_every(every, n, epochs, order, cancel, where):
    on,cb = [],Seen(every=every)
    cb.order = order
    def off(ev): return at(ev, lambda o: on.append(n_hooks(o.model)), order=100)
    learn = quiet(n=n, nv=2, cbs=[cb, at(where, throw(CancelBatch()), when=lambda o: o.training and o.train_iter in cancel, order=80),
                                  off('before_fetch'), off('after_batch'), off('before_validate')])
    fit(learn, epochs)
    looked = [i for i in range(n*epochs) if i%every==0 and not (where=='before_batch' and i in cancel)]
    assert cb.got==[i for i in looked for _ in range(3)]
    assert set(on)=={0}

def test_without_every_validation_is_seen_too():
    learn = quiet(n=2, nv=2, cbs=Seen())
    fit(learn)
    assert learn.seen.got==[0]*3 + [1]*3 + ['valid']*6
    learn.validate(); assert learn.seen.got==['valid']*6 and n_hooks(learn.model)==0

def test_paramless_layers_on_request():
    for kw,n in (dict(), 3), (dict(include_paramless=True), 5), (dict(modules=nn.Linear(1, 1)), 1):
        fit(learn := quiet(cbs=HookCallback(**kw)))
        assert len(learn.hook.modules)==n

def test_bad_settings():
    for every in (0, -1, 1.5, '2'):
        with pytest.raises(ValueError, match='`every` must be a number of batches'): HookCallback(every=every)
    with pytest.raises(TypeError, match='is no event'): HookCallback(evry=3)
    with pytest.raises(ValueError, match='the smaller one first'): ActivationStats(hist_range=(3, 3))
    with pytest.raises(ValueError, match='`bins` must be'): ActivationStats(bins=0)
    with pytest.raises(ValueError, match='call `learn.fit'): ActivationStats().stats
    fit(learn := quiet(cbs=ActivationStats(with_hist=False)))
    with pytest.raises(ValueError, match='with_hist=True'): learn.activation_stats.hist(0)

# ------------------------------------------------------------------------------------------------ they change nothing
@pytest.mark.parametrize('make', (*MAKE.values(), lambda: ActivationStats(include_paramless=True, detach=False), lambda: HookCallback(hook=lambda m,i,o: o, detach=False, cpu=False)))
def test_the_weights_are_the_same_bits(make):
    plain,hooked = quiet(n=7),quiet(n=7, cbs=make())
    torch.manual_seed(3); fit(plain, 2);  r1 = torch.get_rng_state()
    torch.manual_seed(3); fit(hooked, 2); r2 = torch.get_rng_state()
    assert torch.equal(weights(plain), weights(hooked)) and torch.equal(r1, r2)
    assert all(torch.equal(a, b) for a,b in zip(plain.model.buffers(), hooked.model.buffers()))

@pytest.mark.parametrize('make', (ActivationStats, lambda: ActivationStats(include_paramless=True), lambda: HookCallback(hook=lambda m,i,o: o)))
def test_no_batch_waits_for_the_device(make):
    got = watched_fit(Reads(), cb := make())
    assert not got.names, dict(got.names)
    assert cb.hooks is not None and (not isinstance(cb, ActivationStats) or len(cb.iters)==len(watched_batches()))

def test_stored_comes_to_the_host_when_it_is_looked_at():
    m = net()
    with Reads() as reads:
        with hook_outputs(m, cpu=True) as hs: m(torch.rand(3, 4))
        assert not reads.names
        hs.stored
        assert reads.names['cpu']==5

@pytest.mark.parametrize('make', MAKE.values())
def test_copies_of_a_learner_go_on_like_it(make):
    a = quiet(n=4, cbs=make(), loss_func=F.mse_loss)
    fit(a)
    both = [copy.deepcopy(a), pickle.loads(pickle.dumps(a))]
    for b in (a, *both): torch.manual_seed(0); fit(b)
    for b in both:
        assert torch.equal(weights(a), weights(b)) and n_hooks(b.model)==0
        if 'Stats' in str(b.cbs[-1]): assert torch.equal(a.activation_stats.table(), b.activation_stats.table())

@pytest.mark.parametrize('copied', (copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))))
def test_a_copy_made_in_a_fit_reports_to_nobody(copied):
    def other(cb):
        with torch.no_grad(): copied(cb.model).eval()(cb.x)
    fit(learn := quiet(cbs=[Seen(), at('after_pred', other, order=100, run_valid=False)]))
    assert learn.seen.got==[i for i in range(3) for _ in range(3)] + ['valid']*6

# ------------------------------------------------------------------------------------------------ what they see
class Odd(nn.Module):
    "A layer that is used twice, one that gives a tuple, one that gives a dictionary, one that is never used"
    def __init__(self):
        super().__init__()
        self.lin,self.rnn,self.out,self.unused,self.named = nn.Linear(4,4),nn.LSTM(4,3,batch_first=True),nn.Linear(3,1),nn.Linear(2,2),Named()
    def forward(self, x): return self.out(self.rnn(self.named(self.lin(F.relu(self.lin(x))))['b'][:,None])[0][:,0])
class Named(nn.Module):
    def __init__(self): super().__init__(); self.w = nn.Parameter(torch.ones(4))
    def forward(self, x): return dict(a=x.argmax(1), b=x*self.w, c=[x+1, None, x[:0]])

def flat(o): return [o] if isinstance(o, torch.Tensor) else [t for v in (o.values() if isinstance(o, dict) else o) for t in flat(v)] if isinstance(o, (dict,list,tuple)) else []

class Collect(Callback):
    "Keeps all activations of training"
    def before_fit(self):
        self.got,self.ms = [],[m for _,m in layers(self.learn.model)]
        self.handles = [m.register_forward_hook(self.see) for m in self.ms]
    def see(self, m, i, o):
        if self.learn.training: self.got[-1][self.ms.index(m)] += [t.detach().flatten().double() for t in flat(o) if t.is_floating_point()]
    def before_batch(self):
        if self.learn.training: self.got.append([[] for _ in self.ms])
    def cleanup(self):
        for h in self.handles: h.remove()

@pytest.mark.parametrize('every', (None, 3))
def test_statistics_are_those_of_the_activations(every):
    x = torch.randn(30, 4)
    learn = quiet(model=Odd(), dls=DataLoaders.from_tensors(x, x.sum(1, keepdim=True), bs=7, valid_pct=.2), cbs=[oracle := Collect(), ActivationStats(every=every, bins=9, hist_range=(-1,2))])
    fit(learn, 3)
    stats = learn.activation_stats
    got = oracle.got[::every or 1]
    assert len(stats.stats)==len(got)>2 and list(stats.iters)==list(range(0, len(oracle.got), every or 1)) and stats.modules==oracle.ms
    for mine,batch in zip(stats.stats, got):
        for s,ts in zip(mine, batch):
            if not ts: assert s['mean']!=s['mean'] and s['std']!=s['std'] and not s['hist'].any(); continue
            o = torch.cat(ts)
            want = torch.stack([o.mean(), o.std(), (o.float()<=.05).double().mean()])
            torch.testing.assert_close(torch.tensor([s['mean'], s['std'], s['near_zero']], dtype=torch.double), want, rtol=1e-5, atol=1e-6)
            assert torch.equal(s['hist'], o.float().histc(9, -1, 2).double())
    assert sum(bool(ts) for ts in got[0])==4

def test_only_the_training_call_is_measured():
    class Twice(nn.Module):
        def __init__(self): super().__init__(); self.a,self.b = nn.Linear(4,8),nn.Linear(8,1)
        def forward(self, x): return self.b(checkpoint(self.a, x, use_reentrant=False))
    def look(cb): cb.learn.validate(); cb.model(cb.x*100)
    plain = quiet(model=Twice(), cbs=ActivationStats())
    other = quiet(model=Twice(), cbs=[ActivationStats(), at('after_pred', look, order=90, run_valid=False), at('after_batch', look, order=90, run_valid=False)])
    other.model.load_state_dict(plain.model.state_dict())
    fit(plain, 2); fit(other, 2)
    assert torch.equal(plain.activation_stats.table(), other.activation_stats.table())
    assert plain.activation_stats.table()[0,0,3:].sum()<=4*8   # once, not again when it is computed anew

def test_what_was_measured_before_an_interruption_is_kept():
    learn = quiet(n=6, cbs=[ActivationStats(), at('before_pred', throw(KeyboardInterrupt()), when=lambda cb: cb.train_iter==4)])
    with pytest.raises(KeyboardInterrupt): fit(learn)
    assert learn.activation_stats.iters==[0,1,2,3] and not learn.activation_stats.waiting and len(learn.activation_stats.stats)==4

def test_gradients_on_request():
    got = []
    def grads(cb):
        ts = [p.grad for p in cb.model[4].parameters() if p.ndim==1]
        got.append(ts[0].item())
    fit(learn := quiet(cbs=[ActivationStats(is_forward=False), at('after_backward', grads)]))
    means = torch.tensor(learn.activation_stats.layer_stats(2)[0])   # the last layer's bias gets the sum of what arrives at its output
    torch.testing.assert_close(means*4, torch.tensor(got))

def test_counts_go_beyond_what_float32_can_count():
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

# ------------------------------------------------------------------------------------------------ compiled models
def compiled(m, runs):
    def backend(gm, inputs):
        def run(*args): runs.append(1); return gm.forward(*args)
        return run
    torch._dynamo.reset()
    return torch.compile(m, backend=backend)

@pytest.mark.parametrize('cbs', ([3], [2, 3], [3, 2], [None, 2]))
def test_of_a_compiled_model_only_the_batches_that_are_looked_at_run_uncompiled(cbs):
    runs,seen = [],[Seen(every=e) for e in cbs]
    learn = quiet(n=6, nv=0, model=compiled(nn.Sequential(nn.Linear(4,4), nn.Linear(4,1)), runs), cbs=seen, valid=False)
    fit(learn)
    for cb,e in zip(seen, cbs): assert cb.got==[i for i in range(6) if i%(e or 1)==0 for _ in range(2)]
    assert len(runs)==sum(all(e and i%e for e in cbs) for i in range(6))
    before = len(runs)
    learn.model(torch.rand(4,4)); assert len(runs)==before+1, 'the model stayed uncompiled'

def test_the_model_is_compiled_again_after_a_failure():
    for kw,e in (dict(), RuntimeError), (dict(remove_end=False), None):
        runs = []
        learn = quiet(model=compiled(nn.Sequential(nn.Linear(4,1)), runs), cbs=[Seen(**kw)] + ([at('after_pred', throw(e()))] if e else []))
        with suppress(RuntimeError): fit(learn)
        assert not runs
        learn.model(torch.rand(4,4)); assert runs

# ------------------------------------------------------------------------------------------------ pictures
def test_pictures():
    learn = quiet(cbs=ActivationStats(include_paramless=True))
    fit(learn, 2)
    cb = learn.activation_stats
    assert [bool(ax.images) for ax in cb.color_dims(cols=2).axes]==[True]*5+[False]
    ax = cb.color_dim(0)
    assert ax.images[0].get_array().shape==(40, 6) and 'Linear' in ax.get_title()
    assert [len(a.lines) for a in cb.plot_stats().axes]==[5,5,5] and [len(a.lines) for a in cb.plot_layer_stats(1).axes]==[1,1,1]
    assert list(cb.plot_layer_stats(1).axes[0].lines[0].get_ydata())==pytest.approx(list(cb.layer_stats(1)[0]))

# ------------------------------------------------------------------------------------------------ fastai's
def test_as_fastai():
    fast = pytest.importorskip('fastai.callback.hook')
    theirs = quiet(n=5, cbs=fast.ActivationStats(with_hist=True))
    ours = quiet(n=5, cbs=ActivationStats())
    torch.manual_seed(3); fit(theirs, 2)
    torch.manual_seed(3); fit(ours, 2)
    a,b = theirs.activation_stats,ours.activation_stats
    for i in range(3):
        for p,q in zip(a.layer_stats(i), b.layer_stats(i)): torch.testing.assert_close(torch.tensor(list(p)), torch.tensor(list(q)), rtol=1e-5, atol=1e-6)
        assert torch.equal(a.hist(i), b.hist(i))

# ------------------------------------------------------------------------------------------------ summary
class Restless(nn.Module):
    "Changes what it can in its forward pass, in evaluation too"
    def __init__(self):
        super().__init__()
        self.bn,self.lin,self.drop = nn.BatchNorm1d(4),nn.Linear(4,1),nn.Dropout(.5)
        self.register_buffer('n', torch.tensor(0)); self.register_buffer('last', torch.zeros(4)); self.register_buffer('none', None)
        self.drop.eval()
    def forward(self, x):
        self.n += 1
        self.last = x.mean(0)
        return self.lin(self.drop(self.bn(x))) + torch.rand(1)

def test_summary_leaves_everything_as_it_was():
    x = torch.randn(20, 4)
    g = torch.Generator().manual_seed(5)
    ds = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
    learn = quiet(model=Restless(), dls=DataLoaders(torch.utils.data.DataLoader(ds, batch_size=5, shuffle=True, generator=g)))
    m = learn.model
    buffers,state,modes = dict(m.named_buffers()),copy.deepcopy(m.state_dict()),[o.training for o in m.modules()]
    rng,own,seen = torch.get_rng_state(),g.get_state(),set(vars(learn))
    assert '13 parameters, 13 trainable' in learn.summary()
    assert all(b is buffers[k] for k,b in m.named_buffers()) and all(torch.equal(v, state[k]) for k,v in m.state_dict().items())
    assert [o.training for o in m.modules()]==modes and n_hooks(m)==0 and set(vars(learn))==seen
    assert torch.equal(torch.get_rng_state(), rng) and torch.equal(g.get_state(), own)

def test_summary_fails_cleanly():
    learn = quiet(model=nn.Sequential(nn.Linear(5,1)))
    learn.model[0].eval()
    with pytest.raises(RuntimeError): learn.summary()
    assert [o.training for o in learn.model.modules()]==[True, False] and n_hooks(learn.model)==0

@pytest.mark.parametrize('wrap', (lambda m: m, lambda m: torch.compile(m, backend='eager')))
def test_the_parameters_of_all_layers_add_up(wrap):
    m = nn.Sequential(nn.Embedding(9,8), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), nn.Linear(8,9))
    m[2].weight = m[0].weight
    m[1].linear1.requires_grad_(False)
    x = torch.randint(9, (6, 5))
    learn = quiet(model=wrap(m), dls=DataLoaders.from_tensors(x, x, bs=3), loss_func=lambda p,y: F.cross_entropy(p.flatten(0,1), y.flatten()))
    text = learn.summary()
    rows = layer_info(m, lambda: m(x))
    assert sum(r[3] for r in rows)==sum(p.numel() for p in m.parameters())
    assert sum(r[4] for r in rows)==sum(p.numel() for p in m.parameters() if p.requires_grad)
    assert f'{sum(r[3] for r in rows):,} parameters, {sum(r[4] for r in rows):,} trainable' in text and '1.linear1' in text and 'Sequential (input' in text

def test_summary_of_a_lazy_model_makes_nothing_of_it():
    m = nn.Sequential(nn.LazyLinear(8), nn.LazyBatchNorm1d(), nn.ReLU(), nn.LazyLinear(1))
    learn = quiet(model=m)
    rng = torch.get_rng_state()
    assert '65 parameters' in learn.summary()
    assert m[0].has_uninitialized_params() and m[3].has_uninitialized_params() and learn.model is m and torch.equal(rng, torch.get_rng_state())
