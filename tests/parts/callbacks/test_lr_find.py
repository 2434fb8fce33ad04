"""The learning-rate finder and `unchanged`, which it uses: whatever is raised inside, a later fit is unaffected"""
import random
from copy import deepcopy
from functools import partial

import numpy as np, pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD, Adam, AdamW
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from learnkit.loop.callback import Callback
from learnkit.loop.events import CancelBatch, CancelEpoch, CancelFit, CancelStep, CancelTrain, event
from learnkit.callbacks.lr_find import LRCurve, LRFinder
from learnkit.callbacks.lr_find import SuggestionMethod, minimum, slide, steep, valley
from learnkit.callbacks.trackers import SaveModelCallback
from learnkit.observe.files import CSVLogger
from learnkit.callbacks.schedules import ParamScheduler
from learnkit.optim.schedule import SchedLin
from learnkit.data.random import get_random_states
from learnkit.data.loaders import DataLoaders
from learnkit.learner.learner import Learner
from toys import at, batches, draws, learner, throw, weights

pytestmark = pytest.mark.filterwarnings('ignore:no learning rate is suggested')

class Net(nn.Module):
    "State of every kind: a replaced buffer, a non-persistent one, a counter, a hidden state, a random generator"
    def __init__(self):
        super().__init__()
        self.body,self.head = nn.Sequential(nn.Linear(4,8), nn.BatchNorm1d(8), nn.Dropout(.2)),nn.Linear(8,1)
        self.register_buffer('mean', torch.zeros(8))
        self.register_buffer('seen', torch.zeros(1), persistent=False)
        self.calls,self.gen = 0,torch.Generator().manual_seed(3)
    def forward(self, x):
        h = self.body(x)
        if self.training:
            self.mean = .9*self.mean + .1*h.detach().mean(0)
            self.seen += 1
            self.calls += 1
        last = getattr(self, 'last', 0.)
        self.last = h.detach().mean()
        return self.head(h - .01*self.mean + .01*torch.rand(8, generator=self.gen)) + .001*self.calls + .001*self.seen + .01*last

OPTS = dict(sgd=partial(SGD, momentum=.9), adam=Adam, adamw=partial(AdamW, amsgrad=True), rprop=torch.optim.Rprop, adagrad=torch.optim.Adagrad)

def dls(kind='shuffle'):
    x = torch.randn(40, 4, generator=torch.Generator().manual_seed(0))
    ds = TensorDataset(x, x.sum(1, keepdim=True))
    valid = DataLoader(ds, 20)
    if kind=='shuffle':   return DataLoaders(DataLoader(ds, 8, shuffle=True), valid)
    if kind=='generator': return DataLoaders(DataLoader(ds, 8, shuffle=True, generator=torch.Generator().manual_seed(5)), valid)
    if kind=='sampler':   return DataLoaders(DataLoader(ds, 8, sampler=RandomSampler(ds, generator=torch.Generator().manual_seed(5))), valid)
    class Own:
        "A loader that draws from the generators of Python and NumPy"
        def __init__(self): self.rng,self.npr = random.Random(4),np.random.default_rng(4)
        def __len__(self): return 5
        def __iter__(self):
            for i in self.rng.sample(range(40), 40)[::8]: yield x[i:i+8]*self.npr.random()*random.random(), x[i:i+8].sum(1, keepdim=True)*np.random.rand()
    return DataLoaders(Own(), valid)

def make(kind='shuffle', opt='sgd', **kw):
    random.seed(1); np.random.seed(1); torch.manual_seed(1)
    kw.setdefault('opt_func', OPTS[opt])
    return Learner(dls(kind), Net(), nn.MSELoss(), lr=.01, splitter=lambda m: [list(m.body.parameters()), list(m.head.parameters())], **kw)

def all_state(learn):
    "All state that a run could change, as plain data"
    m,opt = learn.model,learn.opt
    def plain(o):
        if isinstance(o, torch.Tensor): return o.detach().double().flatten().tolist(), str(o.dtype)
        if isinstance(o, dict): return {str(k):plain(v) for k,v in o.items()}
        return [plain(v) for v in o] if isinstance(o, (list,tuple)) else repr(o) if isinstance(o, float) else o
    return plain(dict(model=m.state_dict(), seen=m.seen, calls=m.calls, last=getattr(m, 'last', None), gen=m.gen.get_state(),
        modes=[o.training for o in m.modules()], grads=[p.grad for p in m.parameters()], opt=opt and opt.state_dict(),
        hypers=opt and [dict(h) for h in opt.hypers], rng=get_random_states(), history=[{k:v for k,v in r.items() if k!='time'} for r in learn.recorder.history],
        lrs=learn.recorder.lrs, losses=list(learn.recorder.smooth_loss.values), hps=learn.recorder.hps,
        counters=[getattr(learn, k, None) for k in 'epoch n_epoch train_iter pct_train iter n_iter mode training stop_reason loss'.split()],
        cbs=[(type(cb).__name__, cb.run) for cb in learn.cbs]))

def run(find=None, first=0, **kw):
    "The state after a fit, or after `first` epochs, `find(learn)` and a fit"
    learn = make(**kw)
    with learn.no_bar(), learn.no_logging():
        if first: learn.fit_one_cycle(first)
        if find is not None:
            before,ids = all_state(learn),[id(p) for p in [*learn.model.parameters(), *learn.model.buffers()]]
            try: find(learn)
            except (ValueError, KeyboardInterrupt): pass
            assert all_state(learn)==before and ids==[id(p) for p in [*learn.model.parameters(), *learn.model.buffers()]]
        learn.fit_one_cycle(2)
    return all_state(learn)

quick = partial(Learner.lr_find, num_it=12, show_plot=False)

def test_a_range_test_has_no_columns_of_a_validation():
    "A range test runs no validation, so its rows have no validation columns"
    learn = learner(n=5, nv=2, metrics=lambda p,t: p.mean())
    with learn.no_logging(): learn.fit(3, cbs=LRFinder(num_it=12))
    assert [len(r) for r in learn.recorder.values]==[1]*2 and [*learn.recorder.metric_names]==['epoch','train_loss','time']

# nothing changes
@pytest.mark.parametrize('kind', ['shuffle','generator','sampler','own'])
@pytest.mark.parametrize('first', [0,1])
def test_fit_after_lr_find(kind, first): assert run(quick, first, kind=kind)==run(None, first, kind=kind)

@pytest.mark.parametrize('opt', OPTS)
@pytest.mark.parametrize('kw', [{}, dict(wd=.1)], ids=['','wd'])
def test_optimizers(opt, kw):
    if opt=='rprop' and kw: pytest.skip('it has no weight decay')
    assert run(quick, 1, opt=opt, **kw)==run(None, 1, opt=opt, **kw)

@pytest.mark.parametrize('find', [partial(quick, start_lr=1e3, end_lr=1e6), partial(quick, stop_div=False, end_lr=1e6), partial(quick, suggest_funcs=None),
                                  partial(quick, start_lr=[1e-7,1e-6], end_lr=[1.,10.]), lambda l: [quick(l), quick(l)]])
def test_ways_to_run(find): assert run(find)==run()

@given(st.sampled_from([e for e in event if not e.startswith(('before_evaluate','after_evaluate','before_predict','after_predict','before_save','after_save',
                                                               'before_load','after_load','after_create'))]),
       st.integers(0, 3), st.sampled_from([ValueError, KeyboardInterrupt, CancelBatch, CancelStep, CancelTrain, CancelEpoch, CancelFit]), st.integers(0, 1), st.sampled_from([-20, 0, 99]))
@draws(12)
def test_after_any_exception_a_fit_is_unchanged(ev, k, exc, first, order):
    "After any exception at any call of any event in `lr_find`, a fit gives the same result as without it"
    def find(learn):
        calls = []
        def f(cb):
            calls.append(1)
            if len(calls)==k+1: raise exc()
        with learn.added_cbs(at(ev, f, order=order)):
            try: quick(learn)
            except RuntimeError as e: assert 'was raised in' in str(e)   # a Cancel raised outside of its scope
    assert run(find, first)==_without(first)

@given(st.sampled_from([e for e in event if e.startswith(('before_fit','before_epoch','before_batch','after_loss','before_step','after_step','after_batch','after_cancel_fit',
                                                           'after_fit','cleanup'))]),
       st.integers(0, 3), st.sampled_from([ValueError, KeyboardInterrupt, CancelBatch, CancelStep, CancelFit, None]), st.integers(0, 1), st.sampled_from([-20, 99]))
@draws(10)
def test_finder_in_a_fit(ev, k, exc, first, order):
    "A fit with an `LRFinder`, failed or not, changes no later fit; a failed one used to leave bad weights"
    calls,learn = [],make()
    def f(cb):
        calls.append(1)
        if exc and len(calls)==k+1: raise exc()
    with learn.no_bar(), learn.no_logging():
        if first: learn.fit_one_cycle(first)
        try: learn.fit(3, cbs=[LRFinder(num_it=12), at(ev, f, order=order)])
        except (ValueError, KeyboardInterrupt): pass
        except RuntimeError as e: assert 'was raised in' in str(e)   # a Cancel raised outside of its scope
        learn.fit_one_cycle(2)
    assert all_state(learn)==_without(first)

def test_a_fit_with_a_finder_is_a_range_test(tmp_path):
    "Only the Recorder is active and keeps the curve; trackers would save a bad model as the best one"
    learn = make(path=tmp_path, cbs=[SaveModelCallback(), CSVLogger()])
    with learn.no_bar():
        learn.fit(9, cbs=LRFinder(num_it=12, stop_div=False))
        assert not list(tmp_path.iterdir()) and len(learn.recorder.lrs)==len(learn.recorder.losses)==12
        lrs,losses = learn.recorder.lrs,learn.recorder.lr_curve.losses
        other = make()
        with other.no_bar(): quick(other, stop_div=False)
        assert (lrs,losses)==(other.recorder.lr_curve.lrs,other.recorder.lr_curve.losses)
        learn.add_cb(LRFinder(num_it=12)); learn.fit(9)   # also as a callback of the Learner
        assert not list(tmp_path.iterdir())

def test_a_callback_for_range_tests_leaves_a_fit_as_it_is():
    "One that is only called in `lr_find` used to turn each fit into a range test"
    modes = []
    class Looks(Callback):
        modes = 'lr_find',
        def after_fit(self): modes.append(self.learn.mode)
    learn = make(cbs=Looks())
    with learn.no_bar(), learn.no_logging():
        learn.fit(1)
        assert modes==[] and 'valid_loss' in learn.recorder.history[0]
        quick(learn)
    assert modes==['lr_find']

_known = {}
def _without(first):
    if first not in _known: _known[first] = run(None, first)
    return _known[first]

def test_ready_made_optimizer():
    def mk():
        torch.manual_seed(0)
        m = nn.Linear(4, 1)
        opt = SGD(m.parameters(), .05, momentum=.9)
        return learner(model=m, opt_func=opt, lr=None),opt
    (a,opt),(b,_) = mk(),mk()
    group,before = opt.param_groups[0],{k:v for k,v in opt.param_groups[0].items() if k!='params'}
    quick(a, end_lr=.1)
    assert a.opt is None and not opt.state and opt.param_groups[0] is group and {k:v for k,v in group.items() if k!='params'}==before
    a.fit(2); b.fit(2)
    assert torch.equal(weights(a), weights(b))

def test_existing_gradients_are_kept():
    learn = make()
    for p in learn.model.parameters(): p.grad = torch.ones_like(p)
    grads = [p.grad for p in learn.model.parameters()]
    with learn.no_bar(): quick(learn)
    assert all(p.grad is g and (g==1).all() for p,g in zip(learn.model.parameters(), grads))

def test_no_files(tmp_path):
    learn = make(path=tmp_path, cbs=CSVLogger())
    with learn.no_bar(): quick(learn)
    assert not list(tmp_path.iterdir())
    tmp_path.chmod(0o500)
    with learn.no_bar(): quick(learn)
    tmp_path.chmod(0o700)

def test_state_of_callbacks():
    "All attributes are restored, including `run` and those not in `saves`; only those in `saves` used to be"
    calls = []
    class Counts(Callback):
        saves = 'n','scaler'
        def __init__(self): self.n,self.scaler,self.seen = 0,None,[]
        def before_batch(self):
            self.n += 1; self.seen.append(self.learn.mode); calls.append(self.learn.mode)
            if self.scaler is None: self.scaler = nn.Linear(1,1)
    learn = make(cbs=Counts)
    with learn.no_bar(): quick(learn)
    assert set(calls)=={'lr_find'} and (learn.counts.n,learn.counts.scaler,learn.counts.seen)==(0,None,[])
    learn.counts.run = False
    with learn.no_bar(): quick(learn)
    assert learn.counts.run is False

def test_persistent_workers():
    class Noise(torch.utils.data.Dataset):
        def __len__(self): return 8
        def __getitem__(self, i): x = torch.rand(4); return x, x.sum()[None]
    def go(find):
        torch.manual_seed(0)
        learn = learner(dls=DataLoaders(DataLoader(Noise(), 4, shuffle=True, num_workers=1, persistent_workers=True)))
        learn.fit(1)
        if find: quick(learn)
        learn.fit(1)
        return weights(learn)
    assert torch.equal(go(True), go(False))

def test_lazy_layers_raise():
    learn = learner(model=nn.Sequential(nn.LazyLinear(1)), opt_func=SGD)
    with pytest.raises(ValueError, match='call the model once'): quick(learn)

@pytest.mark.parametrize('within', ['fit','validate'])
def test_lr_find_raises_in_a_running_fit_or_validation(within):
    learn = make()
    learn.add_cb(at('after_batch', lambda cb: quick(cb.learn)))
    with learn.no_bar(), pytest.raises(RuntimeError, match=f'inside a running `{within}`'): learn.fit(1) if within=='fit' else learn.validate()

def test_unchanged_keeps_callbacks():
    "A callback added inside is removed at the end, and one removed inside is added back"
    learn = make()
    names = [cb.name for cb in learn.cbs]
    with learn.unchanged(): learn.add_cb(Callback()); learn.remove_cb(learn.progress)
    assert [cb.name for cb in learn.cbs]==names and learn.progress in learn.cbs and not hasattr(learn, 'callback')

# the run
def test_rates_and_losses():
    "As in a plain loop, the curve pairs the rate of each batch with the smoothed loss after it"
    learn = learner(n=5, opt_func=SGD)
    m = deepcopy(learn.model)
    learn.lr_find(1e-5, .1, 20, stop_div=False, show_plot=False)
    lrs,losses,avg = [],[],0.
    opt = SGD(m.parameters(), .05)
    for i in range(20):
        x,y = batches(5)[i%5]
        opt.param_groups[0]['lr'] = 1e-5*(.1/1e-5)**(i/20)
        loss = F.mse_loss(m(x), y)
        loss.backward(); opt.step(); opt.zero_grad()
        avg = loss.item() + .98*(avg-loss.item())
        lrs.append(opt.param_groups[0]['lr']); losses.append(avg/(1-.98**(i+1)))
    curve = learn.recorder.lr_curve
    assert curve.lrs==lrs and curve.losses==pytest.approx(losses, rel=1e-6)

def test_divergence_ends_the_curve():
    learn = learner(n=5, opt_func=SGD)
    seen = []
    with learn.added_cbs(at('after_batch', lambda cb: seen.append(cb.train_iter))): learn.lr_find(1e-3, 1e4, 100, show_plot=False)
    losses = learn.recorder.lr_curve.losses
    assert losses[-1]>4*min(losses) and all(l<=4*min(losses[:i+1]) for i,l in enumerate(losses[:-1])) and len(seen)<100
    assert seen[-1]-len(losses)<10

def test_losses_below_zero_continue():
    "A negative minimum sets no limit: a multiple of it would be below it"
    learn = learner(n=5, opt_func=SGD, loss_func=lambda p,y: F.mse_loss(p, y)-100)
    learn.lr_find(1e-5, 1e-2, 30, show_plot=False)
    assert len(learn.recorder.lr_curve.lrs)==30

def test_nan_ends_the_curve():
    learn = learner(n=5, opt_func=SGD)
    seen = []
    def spoil(cb):
        seen.append(1)
        if len(seen)>12: cb.learn.loss = cb.loss*float('nan')
    with learn.added_cbs(at('after_loss', spoil)): learn.lr_find(1e-5, 1e-3, 50, show_plot=False)
    assert len(learn.recorder.lr_curve.lrs)==13 and len(seen)==20

def test_callbacks_by_mode():
    "Callbacks that train run, those that track do not; no validation, no row, no warning about NaN"
    calls = set()
    class Trains(Callback):
        def before_step(self): calls.add('trains')
        def before_validate(self): calls.add('validates')
    class Tracks(Callback):
        modes = 'fit',
        def before_fit(self): calls.add('tracks')
    learn = make(cbs=[Trains, Tracks, ParamScheduler({'lr': SchedLin(1.,1.)})])
    rows = []
    learn.logger = rows.append
    quick(learn, end_lr=1e30, stop_div=False)
    assert calls=={'trains'} and not rows and learn.logger==rows.append

def test_too_short():
    learn = make()
    with learn.no_bar(), pytest.warns(UserWarning, match='no learning rate is suggested after .* of 100 batches.*begin lower'):
        res = learn.lr_find(start_lr=1e5, end_lr=1e9, show_plot=False, suggest_funcs=[valley, slide])
    assert res==(None,None) and res._fields==('valley','slide')
    with learn.no_bar(), learn.added_cbs(at('before_fit', throw(CancelFit()), order=-50)): assert quick(learn)==(None,)

@pytest.mark.parametrize('call,err,words', [
    (lambda l: l.lr_find(num_it=5), ValueError, '6 or more'), (lambda l: l.lr_find(num_it=20.), ValueError, '6 or more'),
    (lambda l: l.lr_find(0, 1), ValueError, 'same side of zero'),
    (lambda l: l.recorder.plot_lr_find(), ValueError, 'call `learn.lr_find')])
def test_bad_settings(call, err, words):
    learn = learner()
    before = weights(learn)
    with pytest.raises(err, match=words): call(learn)
    assert torch.equal(weights(learn), before)

def test_plots():
    plt = pytest.importorskip('matplotlib.pyplot')
    learn = make()
    with learn.no_bar(): res = learn.lr_find(num_it=60, suggest_funcs=(valley, partial(slide, thresh=.01)))
    ax = plt.gca()
    assert ax.get_xscale()=='log' and [l.get_label().split(':')[0] for l in ax.lines[1:]]==['valley','slide']
    assert ax.lines[1].get_xdata()[0]==res.valley
    with learn.no_bar(): learn.fit(1)
    assert len(learn.recorder.plot_lr_find(skip_end=0).lines[0].get_xdata())==len(learn.recorder.lr_curve.lrs)
    plt.close('all')

def test_given_points_are_labelled_with_their_own_rates():
    "A point named as a suggestion used to get the learning rate of the suggestion"
    plt = pytest.importorskip('matplotlib.pyplot')
    curve = LRCurve([1e-3*1.1**i for i in range(100)], [5-.01*i for i in range(100)], 100, minimum)
    def labels(**kw): return [line.get_label() for line in curve.plot(**kw).lines[1:]]
    assert labels()==[f'minimum: {curve.values["minimum"]:.2e}']   # a tenth of the rate of its point
    assert labels(suggestions=[(.5,4.)], nms=['minimum'])==['minimum: 5.00e-01'] and labels(suggestions=[(.5,4.)])==['0: 5.00e-01']
    plt.close('all')

# suggestions
curves = st.lists(st.floats(0, 100, width=32), min_size=20, max_size=60)

@given(curves)
@draws(50)
def test_suggestions_are_fastais(losses):
    fs = pytest.importorskip('fastai.callback.schedule')
    lrs,ls = torch.logspace(-7, 1, len(losses)),torch.tensor(losses)
    for f in (valley, slide, minimum, steep):
        (a,(ax,ay)),(b,(bx,by)) = getattr(fs, f.__name__)(lrs, ls, 100),f(lrs, ls, 100)
        assert b==pytest.approx(a, rel=1e-4) or f is steep, f.__name__   # float32 picks another of several equally steep points
        if f in (valley, minimum): assert (bx,by)==pytest.approx((float(ax),float(ay)), rel=1e-4)

@given(st.lists(st.floats(0, 100, width=32), max_size=30), st.integers(0, 30))
@draws(50)
def test_suggestions_of_any_curve(losses, nans):
    "The suggestion is a rate of the curve or None; nothing is raised"
    losses = losses[:nans] + [float('nan')]*(len(losses)-nans)
    lrs = [10**(i/10-5) for i in range(len(losses))]
    curve = LRCurve(lrs, losses, 20, [valley, minimum, steep, slide])
    for k,v in curve.values.items(): assert v is None or v in lrs or any(v==l/10 for l in lrs)
    assert curve.suggested_lrs._fields==('valley','minimum','steep','slide')

@pytest.mark.parametrize('f', [valley, slide, minimum, steep])
def test_short_curves_raise(f):
    with pytest.raises(ValueError, match='needs at least'): f([], [])
    with pytest.raises(ValueError, match='not a curve'): f([.1,.2], [1.])
    assert getattr(SuggestionMethod, f.__name__.capitalize()) is f

def test_a_user_written_suggestion_function():
    "A function written for fastai receives tensors"
    def flattest(lrs, losses, num_it):
        i = (losses[1:]-losses[:-1]).abs().argmin()
        return lrs[i].item(),(lrs[i].item(),losses[i])
    learn = make()
    with learn.no_bar(): res = learn.lr_find(num_it=40, show_plot=False, suggest_funcs=[flattest, valley])
    assert res.flattest in learn.recorder.lr_curve.lrs and res.valley in learn.recorder.lr_curve.lrs

def test_rising_curve(): assert valley([.1,.2,.3], [1.,2.,3.])[0]==.1
