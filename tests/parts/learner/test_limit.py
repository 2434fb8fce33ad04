"""Limits, overfitting and sanity checks: exactly n batches are fetched from any loader, and a sanity check changes nothing of the fit"""
import random
import numpy as np, pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from torch.optim import SGD
from torch.utils.data import DataLoader, TensorDataset
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.loop.callback import Callback
from learnkit.loop.events import CancelBatch, CancelFit, CancelValid
from learnkit.callbacks.intervals import EveryCallback
from learnkit.callbacks.cycles import ValidateEvery
from learnkit.callbacks.data import OverfitBatches
from learnkit.observe.evaluate import SanityCheck
from learnkit.learner.fit import LimitBatches, count_batches
from learnkit.loop.run import null_logger
from learnkit.callbacks.trackers import SaveModelCallback
from learnkit.data.loaders import DataLoaders
from learnkit.learner.learner import Learner
from learnkit.measure.metric import AvgMetric
from learnkit.measure.metrics import mae
from oracle import TRAIN
from toys import at, batches, draws, few, learner, throw, weights

pytestmark = pytest.mark.filterwarnings('ignore:the batch has no target')
quick = draws(15)

ASKED = {}   # not in the loader: an inference puts back what it finds there
class Counted:
    "Counts what it's asked for"
    def __init__(self, bs): self.bs = bs; ASKED[id(self)] = []
    @property
    def asked(self): return ASKED[id(self)]
    def __iter__(self):
        self.asked.append(0)
        for b in self.bs: self.asked[-1] += 1; yield b
class Sized(Counted):
    def __len__(self): return len(self.bs)

amounts = st.one_of(st.none(), st.integers(1, 9), st.sampled_from([.01,.1,.25,.5,.75,.99,1.]))

def fit(dls, cbs, n_epoch=2, **kw):
    learn = learner(dls=dls, cbs=cbs, **kw)
    learn.logger = null_logger
    learn.fit(n_epoch)
    return learn

# limits
@quick
@given(st.integers(1, 9), st.integers(1, 9), amounts, amounts, st.integers(1, 3))
def test_exactly_so_many(n, nv, train, valid, n_epoch):
    "Counted in the loaders; `n_iter`, `pct_train` and the record are those of a loader of that length"
    if train is None and valid is None: train = 1
    dls = Sized(batches(n)),Sized(batches(nv, seed=1))
    pcts,n_iters = [],set()
    look = Callback(after_batch=lambda cb: (pcts.append(cb.pct_train), n_iters.add(cb.n_iter)) if cb.training else None)
    learn = fit(DataLoaders(*dls), [LimitBatches(train, valid), look], n_epoch)
    k  = n  if train is None else count_batches(train, n)
    kv = nv if valid is None else count_batches(valid, nv)
    assert [dl.asked for dl in dls]==[[k]*n_epoch, [kv]*n_epoch]
    assert n_iters=={k} and len(learn.recorder.lrs)==k*n_epoch
    assert pcts==pytest.approx([(i+1)/(k*n_epoch) for i in range(k*n_epoch)]) and learn.pct_train==1
    plain = fit(DataLoaders(batches(n)[:k], batches(nv, seed=1)[:kv]), [], n_epoch)
    assert torch.equal(weights(learn), weights(plain))
    for c in ('train_loss','valid_loss'): assert learn.recorder.history[c]==plain.recorder.history[c]

@quick
@given(st.integers(1, 9), st.integers(1, 12))
def test_unknown_length(n, k):
    dl = Counted(batches(n))
    learn = fit(DataLoaders(dl, batches(1)), LimitBatches(k))
    assert dl.asked==[min(n,k)]*2 and len(learn.recorder.lrs)==2*min(n,k)

@quick
@given(st.integers(1, 12), amounts.filter(bool), amounts.filter(bool))
def test_of_two_limits_the_smaller_holds_in_either_order(n, a, b):
    "Fractions are of the loader's batches: one of a limited phase depended on which limit came first"
    for limits in (a, b), (b, a):
        dl = Sized(batches(n))
        fit(DataLoaders(dl), [LimitBatches(o) for o in limits], 1)
        assert dl.asked==[min(count_batches(a, n), count_batches(b, n))]

def test_a_part_of_an_unknown_length():
    seen = at('before_batch', throw(KeyError()))
    for kw,dls in ((dict(train=.5), (Counted(batches(2)), batches(1))), (dict(valid=.5), (batches(1), Counted(batches(2))))):
        with pytest.raises(ValueError, match='no `len`'): fit(DataLoaders(*dls), [LimitBatches(**kw), seen])

@pytest.mark.parametrize('bad', [0, -1, True, 0., 1.5, -.1, '5', [1], float('nan')])
def test_bad_amounts(bad):
    for k in ('train','valid') if type(bad) is not int or bad else ('train',):
        with pytest.raises(ValueError, match=f'`{k}` must be a number of batches'): LimitBatches(**{k:bad})
    if isinstance(bad, float): bad = int(bad) if bad==bad else 'x'
    if bad is True: return
    for cls in (OverfitBatches, SanityCheck):
        if not isinstance(bad, int) or bad<1:
            with pytest.raises(ValueError, match='`n` must be a number of batches'): cls(bad)
def test_no_amounts():
    with pytest.raises(ValueError, match='limits nothing'): LimitBatches()

@pytest.mark.parametrize('order', [-50, 0, 50])
@pytest.mark.parametrize('ev', ['before_fetch', 'after_fetch', 'before_batch', 'after_pred', 'after_step'])
def test_cancelled_batches_count(ev, order):
    "As with a loader of n batches: one that was cancelled before it was fetched is still to come"
    cancel = at(ev, throw(CancelBatch()), lambda cb: cb.learn.training and cb.learn.iter==0, order=order)
    dl = Sized(batches(6))
    learn = fit(DataLoaders(dl, batches(1)), [LimitBatches(3), cancel])
    assert dl.asked==[3]*2 and learn.train_iter==(8 if ev=='before_fetch' else 6)

@pytest.mark.parametrize('train', [True, False])
def test_batches_that_never_come(train):
    "Cancelled before their fetch they take nothing from the loader, so a phase of such batches would have no end"
    cancel = at('before_fetch', throw(CancelBatch()), lambda cb: cb.learn.training==train)
    learn = fit(DataLoaders(batches(3), batches(3)), [], 1)
    with pytest.raises(RuntimeError, match='(?s)1000 batches in a row.*`after_fetch`.*' + ('CancelTrain' if train else 'CancelValid')):
        learn.fit(1, cbs=cancel) if train else learn.validate(cbs=cancel)
    learn.fit(1)

def test_many_batches_that_come_late():
    "999 in a row are no error, nor are more if others come in between"
    late = at('before_fetch', throw(CancelBatch()), lambda cb: cb.learn.training and cb.learn.iter%1000>0)
    learn = fit(DataLoaders(batches(3), batches(1)), late, 1)
    assert learn.train_iter==3000

def shuffled(cbs=None, workers=0, metrics=None, gen=None, net=None, n=24):
    torch.manual_seed(3)
    x = torch.randn(n, 4)
    dls = tuple(DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), 4, shuffle=True, num_workers=workers, generator=gen) for _ in range(2))
    if net is None: net = nn.Sequential(nn.Linear(4,8), nn.BatchNorm1d(8), nn.Dropout(.3), nn.Linear(8,1))
    learn = Learner(dls, net, nn.MSELoss(), SGD, lr=.05, metrics=metrics, cbs=cbs)
    learn.logger = null_logger
    return learn.remove_cb(learn.progress)

def indices_of(learn, n_epoch=2):
    seen = []
    torch.manual_seed(5)
    learn.fit(n_epoch, cbs=Callback(before_batch=lambda cb: seen.append(cb.xb[0].sum().item()) if cb.training else None))
    return seen

@pytest.mark.parametrize('workers', [0,2])
def test_the_first_of_what_would_have_come(workers):
    limited,whole = indices_of(shuffled(LimitBatches(2), workers)),indices_of(shuffled(None, workers))
    assert limited[:2]==whole[:2] and len(limited)==4 and len(whole)==12

def test_inside_of_a_fit_only():
    dl = Sized(batches(5, seed=1))
    learn = fit(DataLoaders(batches(4), dl), [LimitBatches(valid=2), ValidateEvery('2ba')], 1)
    assert dl.asked==[2,2,2]
    learn.validate(); learn.get_preds()
    assert dl.asked[3:]==[5,5]
    learn.fit(1, cbs=Callback(after_epoch=lambda cb: cb.learn.get_preds()))
    assert dl.asked[-1]==5 and dl.asked[5:-1]==[2,2,2]
    learn.get_preds(cbs=Callback(after_predict=lambda cb: cb.learn.validate()))
    assert dl.asked[-2:]==[5,5]

@pytest.mark.parametrize('ev', ['before_fit', 'before_epoch', 'before_train', *TRAIN, 'before_validate', 'after_validate', 'after_epoch', 'after_fit'])
@pytest.mark.parametrize('cb', [lambda: LimitBatches(2, 1), lambda: OverfitBatches(2), lambda: SanityCheck(1)])
def test_nothing_is_left(ev, cb):
    "Whatever is raised at any event: the next fit and the next validation have all their batches"
    boom = {'on':True}
    mine = cb()
    learn = learner(n=4, nv=3, cbs=[mine, at(ev, throw(ZeroDivisionError()), lambda cb: boom['on'], order=120)])
    learn.logger = null_logger
    with pytest.raises(ZeroDivisionError): learn.fit(2)
    boom['on'] = False
    seen = []
    look = Callback(after_batch=lambda cb: seen.append(cb.mode))
    learn.validate(cbs=look)
    assert seen==['validate']*3 and learn.mode is None and not learn.training
    learn.remove_cb(mine)
    seen.clear()
    learn.fit(1, cbs=Callback(after_batch=lambda cb: seen.append(cb.training)))
    assert seen==[True]*4+[False]*3 and learn.n_iter==3

@few(3)
@pytest.mark.parametrize('cbs', [lambda: [LimitBatches(4, 2)], lambda: [OverfitBatches(4)], lambda: [SanityCheck()]])
@pytest.mark.parametrize('stop', [2, 4, 6])
def test_resume(tmp_path, cbs, stop):
    "With checkpoints after each batch; stopped within an epoch, at its end, and in the next"
    def make(path): l = shuffled([*cbs(), CheckpointCallback('1ba', folder=path, keep=9)]); l.path = tmp_path; return l
    def run(l, **kw): torch.manual_seed(7); l.fit(3, **kw)
    whole = make('a'); run(whole)
    class Killed(BaseException): pass
    first = make('b')
    with pytest.raises(Killed): run(first, cbs=at('after_batch', throw(Killed()), lambda cb: cb.learn.training and cb.learn.train_iter==stop, order=120))
    again = make('b'); torch.seed(); again.fit(3, resume='auto')
    assert torch.equal(weights(whole), weights(again))
    for c in ('train_loss','valid_loss'): assert whole.recorder.history[c]==again.recorder.history[c]

# the environment
@pytest.mark.parametrize('text,k', [('2',2), ('0.5',2), ('1.0',4)])
def test_rehearsal(monkeypatch, capsys, text, k):
    learn = learner(n=4, nv=4)
    monkeypatch.setenv('LEARNKIT_LIMIT_BATCHES', text)
    learn.fit(2)
    assert learn.train_iter==2*k and f'LEARNKIT_LIMIT_BATCHES={text}: this is a rehearsal' in capsys.readouterr().out
    assert not [cb for cb in learn.cbs if isinstance(cb, LimitBatches)]
    seen = []
    learn.validate(cbs=Callback(after_batch=lambda cb: seen.append(1)))
    assert len(seen)==4
    monkeypatch.delenv('LEARNKIT_LIMIT_BATCHES')
    learn.fit(1)
    assert learn.train_iter==4

@pytest.mark.parametrize('text', ['0', '-1', 'yes', '', '1.5', '2.5.1', '1e3'])
def test_bad_rehearsal(monkeypatch, text):
    learn = learner()
    monkeypatch.setenv('LEARNKIT_LIMIT_BATCHES', text)
    with pytest.raises(ValueError, match='LEARNKIT_LIMIT_BATCHES'): learn.fit(1)
    assert learn.mode is None
    monkeypatch.delenv('LEARNKIT_LIMIT_BATCHES')
    learn.fit(1)

def test_a_limit_of_ones_own_stays(monkeypatch):
    learn = learner(n=4, cbs=LimitBatches(1))
    monkeypatch.setenv('LEARNKIT_LIMIT_BATCHES', '3')
    learn.fit(1)
    assert learn.train_iter==1
    learn.limit_batches.train = 4
    learn.fit(1)
    assert learn.train_iter==3

# overfitting
@pytest.mark.parametrize('workers', [0,2])
@pytest.mark.parametrize('n', [1,2,6,99])
def test_the_same_batches_in_training_and_validation(n, workers):
    seen = []
    learn = shuffled([OverfitBatches(n)], workers)
    xs = learn.dls.train_ds.tensors[0]
    learn.fit(3, cbs=Callback(before_batch=lambda cb: seen.append(cb.xb[0])))
    k = min(n, 6)
    want = [xs[4*i:4*i+4] for i in range(k)]
    assert len(seen)==6*k and all(torch.equal(a, b) for a,b in zip(seen, want*6)) and learn.train_iter==3*k

def test_overfitting_draws_nothing():
    states = []
    for cbs in (None, OverfitBatches(6)):
        learn = shuffled(cbs)
        learn.model = nn.Linear(4,1)
        torch.manual_seed(1); random.seed(1); np.random.seed(1)
        learn.fit(2, cbs=at('before_train', lambda cb: states.append((torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist())), order=-50))
    assert torch.equal(states[0][0], states[2][0]) and states[0][1:]==states[2][1:]

def test_overfitting_freezes_augmentation():
    class Noisy(TensorDataset):
        def __getitem__(self, i): x,y = super().__getitem__(i); return x+torch.randn(4),y
    x = torch.randn(8,4)
    learn = learner(dls=DataLoaders.from_dsets(Noisy(x, x[:,:1]), bs=4), cbs=OverfitBatches(1))
    seen = []
    for seed in (0,1): torch.manual_seed(seed); learn.fit(2, cbs=Callback(before_batch=lambda cb: seen.append(cb.xb[0])))
    assert len(seen)==4 and all(torch.equal(o, seen[0]) for o in seen)

def test_nothing_to_overfit():
    with pytest.raises(ValueError, match='no batch to overfit'): fit(DataLoaders([]), OverfitBatches())

# sanity checks
class Counting(nn.Module):
    "Counts its calls, in evaluation mode too"
    def __init__(self): super().__init__(); self.register_buffer('n', torch.zeros(())); self.l = nn.Linear(4,1)
    def forward(self, x): self.n += 1; return self.l(x)*torch.rand(())

class Heard(Callback):
    "In all modes; its count is part of its state"
    saves,n = ('n',),0
    def after_batch(self): self.n += 1
class Fits(Callback):
    modes,seen = ('fit',),0
    def before_validate(self): self.seen += 1

def all_states(learn): return torch.get_rng_state(),random.getstate(),np.random.get_state()[1].tolist(),learn.heard.n,learn.fits.seen

@pytest.mark.parametrize('own', [False, True])
@pytest.mark.parametrize('net', [None, Counting])
@pytest.mark.parametrize('n', [1, 3, 99])
def test_bit_equal(n, net, own):
    got = []
    for sane in (False, True):
        gen = torch.Generator().manual_seed(4) if own else None
        learn = shuffled([Heard, Fits]+[SanityCheck(n)]*sane, metrics=mae, gen=gen, net=net and net())
        torch.manual_seed(0); random.seed(0); np.random.seed(0)
        for p in learn.model.parameters(): nn.init.normal_(p)
        learn.fit(2)
        got.append((learn, all_states(learn), gen and gen.get_state()))
    (a,sa,ga),(b,sb,gb) = got
    for x,y in zip(a.model.state_dict().values(), b.model.state_dict().values()): assert torch.equal(x, y)
    assert torch.equal(sa[0], sb[0]) and sa[1:]==sb[1:] and (not own or torch.equal(ga, gb))
    for c in ('train_loss','valid_loss','mae'): assert a.recorder.history[c]==b.recorder.history[c]
    assert torch.equal(torch.stack(list(a.recorder.losses)), torch.stack(list(b.recorder.losses)))
    assert list(b.sanity_check.results)==['valid_loss','mae']

def test_what_it_measures_and_when():
    seen = []
    look = Callback(**{e:(lambda e: lambda self: seen.append((e, self.learn.mode)))(e) for e in ('before_fit','before_sanity','before_validate','after_sanity','before_epoch')})
    learn = learner(nv=4, metrics=mae, cbs=[SanityCheck(2), look])
    want = learn.validate(dl=learn.dls.valid[:2])
    seen.clear()
    learn.fit(1)
    assert [*learn.sanity_check.results.values()]==list(want)
    assert seen==[('before_fit','fit'), ('before_sanity','sanity'), ('before_validate','sanity'), ('after_sanity','sanity'), ('before_epoch','fit'), ('before_validate','fit')]

def test_nothing_is_saved_or_shown(tmp_path, capsys):
    calls = []
    learn = learner(nv=4, cbs=[SanityCheck, SaveModelCallback(), CheckpointCallback('1ba'), EveryCallback(lambda l: calls.append(1), '1ba')], path=tmp_path)
    with pytest.raises(ZeroDivisionError): learn.fit(1, cbs=at('after_sanity', throw(ZeroDivisionError())))
    assert not calls and not list(tmp_path.rglob('*.pth')) and len(learn.recorder.history)==0 and not learn.recorder.lrs
    assert not capsys.readouterr().out   # the head of the table comes with the first epoch

@pytest.mark.parametrize('ev', ['before_sanity', 'before_validate', 'before_fetch', 'before_batch', 'after_pred', 'after_loss', 'after_batch', 'after_validate', 'after_sanity'])
@pytest.mark.parametrize('exc', [KeyboardInterrupt, ZeroDivisionError, CancelFit])
def test_what_is_raised_in_it(ev, exc):
    heard = []
    boom = at(ev, throw(exc('boom')), lambda cb: cb.learn.mode=='sanity')
    learn = shuffled([SanityCheck, Heard, at('cleanup', lambda cb: heard.append('cleanup')), at('before_train', lambda cb: heard.append('train'))])
    rng = torch.get_rng_state()
    if exc is CancelFit: learn.fit(1, cbs=boom)
    else:
        with pytest.raises(exc): learn.fit(1, cbs=boom)
    assert heard==['cleanup'] and learn.mode is None and not learn.training and learn.heard.n==0
    assert torch.equal(rng, torch.get_rng_state()) and learn.logger==null_logger
    learn.fit(1)
    assert learn.heard.n==12

@pytest.mark.parametrize('exc', [CancelValid, CancelBatch])
def test_cancels_inside(exc):
    learn = learner(cbs=[SanityCheck, at('before_batch', throw(exc()), lambda cb: cb.learn.mode=='sanity')])
    learn.fit(1)
    assert learn.sanity_check.results=={'valid_loss':None} and learn.recorder.history['valid_loss'][0]>0

def test_a_value_that_cannot_be_watched():
    class Table(AvgMetric):
        @property
        def value(self): return 'a table'
    train = []
    cbs = [SanityCheck, SaveModelCallback(monitor='table', comp='min'), at('before_train', lambda cb: train.append(1))]
    learn = learner(metrics=Table(mae.func if hasattr(mae, 'func') else mae, name='table'), cbs=cbs)
    with pytest.raises(TypeError, match='one number to be monitored'): learn.fit(1)
    assert not train

def test_without_a_validation_set():
    learn = learner(nv=0, cbs=SanityCheck)
    learn.fit(1)
    assert learn.sanity_check.results is None
    learn = learner(nv=0, cbs=SanityCheck(ds_idx=5))
    with pytest.raises(ValueError, match='no loader with index 5'): learn.fit(1)

def test_no_validation():
    "`valid=0` leaves the validation of the epochs out, and nothing else"
    learn = learner(n=3, cbs=[LimitBatches(valid=0), at('before_batch', throw(ValueError()), lambda cb: cb.learn.mode=='fit' and not cb.learn.training)])
    learn.logger = null_logger
    learn.fit(2)
    assert learn.recorder.history['valid_loss']==[None]*2 and learn.train_iter==6 and learn.validate()[0]>0
    with pytest.raises(ValueError, match='`train`'): LimitBatches(0)

@pytest.mark.parametrize('amount', [2, '6ba', '7ba', '9ba', '20ba'])
@pytest.mark.parametrize('event', ['before_epoch', 'before_train'])
def test_a_loader_that_a_callback_replaces(amount, event):
    "A curriculum: with another length from the second epoch on, the fit has the right length, and each batch the right fraction of it"
    short,long = batches(3),batches(6)
    seen = []
    class Curriculum(Callback):
        def switch(self):
            if self.epoch: self.learn.dl = long
        def before_batch(self):
            if self.training: seen.append(self.pct_train)
        if event=='before_train': before_train = switch
    class Replace(Curriculum):
        def before_epoch(self):
            if self.epoch: self.learn.dls.train = long
    learn = learner(dls=DataLoaders(short, batches(2)))
    with learn.no_logging(): learn.fit(amount, cbs=Curriculum() if event=='before_train' else Replace())
    n = 9 if amount==2 else int(amount[:-2])
    assert learn.train_iter==n
    if amount==2: expected = [i/6 for i in range(3)] + [.5+i/12 for i in range(6)]
    else:         expected = [i/n for i in range(n)]
    assert seen==pytest.approx(expected)

def test_a_limit_holds_for_a_loader_that_a_callback_replaces():
    n = []
    class Curriculum(Callback):
        def before_train(self):
            if self.epoch: self.learn.dl = batches(6)
        def after_train(self): n.append(self.iter+1)
    learn = learner()
    with learn.no_logging(): learn.fit(2, cbs=[Curriculum(), LimitBatches(4)])
    assert n==[3,4]
