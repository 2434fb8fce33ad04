"""Intervals are due exactly where a closed formula says, for any lengths; ValidateEvery does not change the training"""
import math
from fractions import Fraction
import pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from torch.optim import SGD
from torch.utils.data import DataLoader, TensorDataset
import learnkit.callbacks.intervals as module
import learnkit.learner.predict
from learnkit.loop.callback import Callback
from learnkit.loop.events import CancelBatch, CancelEpoch, CancelTrain, CancelFit
from learnkit.callbacks.intervals import Every, parse_every
from learnkit.callbacks.intervals import EveryCallback
from learnkit.callbacks.cycles import ValidateEvery
from learnkit.callbacks.monitor import OnBetter
from learnkit.observe.evaluate import Evaluator
from learnkit.learner.bars import ProgressCallback
from learnkit.loop.run import null_logger
from learnkit.data.loaders import DataLoaders
from learnkit.learner.learner import Learner
from learnkit.measure.metrics import mae
from toys import at, batches, draws, learner, throw, weights

pytestmark = pytest.mark.filterwarnings('ignore:the batch has no target')
quick = draws(20)

# spelling
@given(st.sampled_from(['ep','ba','sp']), st.integers(1, 10**9))
def test_whole_numbers(unit, n): assert parse_every(f'{n}{unit}')==(n, unit)

@given(st.sampled_from('smh'), st.decimals('0.01', 1000, places=2))
def test_times(unit, d): assert parse_every(f'{d}{unit}')==(float(d)*dict(s=1, m=60, h=3600)[unit], 's')

@given(st.sampled_from(['ep','ba','sp','tok']), st.integers(1, 99), st.integers(0, 9))
def test_powers_of_ten(unit, n, e): assert parse_every(f'{n}e{e}{unit}')==(n*10**e, unit)

@given(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99))
def test_clock(h, m, s):
    if h+m+s: assert parse_every(f'{h}h{m}m{s}s')==parse_every(f'{h}h{m}m{s}sec')==(3600*h+60*m+s, 's')
    if h+m: assert parse_every(f'{h}h{m}m')==(3600*h+60*m, 's')
    if m+s: assert parse_every(f'{m}m{s}s')==(60*m+s, 's')

def test_huge_numbers_are_exact(): assert parse_every(f'{10**17+1}tok')==(10**17+1, 'tok')

class Texts:
    "Batches of token ids, of the shapes `(n, t)`"
    def __init__(self, ns, ts): self.shapes = list(zip(ns, ts))
    def __iter__(self): return iter([(torch.zeros(n, t, dtype=torch.long), torch.ones(n, 1)) for n,t in self.shapes])

class Embed(nn.Module):
    def __init__(self): super().__init__(); self.emb = nn.Embedding(2, 1)
    def forward(self, x): return self.emb(x).mean(1)

@quick
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=8), st.integers(1, 99), st.booleans())
def test_tokens(shapes, n, own):
    watch = Watch(f'{n}tok')
    dls = DataLoaders(Texts(*zip(*shapes)))
    if own: dls.n_tokens = lambda b: len(b[0])
    learn = Learner(dls, Embed(), nn.MSELoss(), SGD, lr=.01, cbs=watch)
    learn.logger = null_logger
    learn.fit(1)
    assert watch.due[0]==crossings(sums([a if own else a*b for a,b in shapes]), n)

def test_no_tokens():
    with pytest.raises(ValueError, match='dls.n_tokens'): learner(cbs=EveryCallback(print, '5tok')).fit(1)

@pytest.mark.parametrize('spec,words', [
    ('5', "'2ep'"), ('2 epochs', "did you mean '2ep'"), ('500 steps', "did you mean '500st'"), ('500batches', "did you mean '500ba'"),
    ('30 min', "did you mean '30m'"), ('10seconds', "did you mean '10s'"), ('10tokens', "did you mean '10tok'"), ('1.5tok', 'integers'), ('0h0m', 'more than 0'),
    ('30m1h', "'30m'"), ('1h30', "'30m'"), ('1h1h', "'30m'"), ('2ep3ba', "'2ep'"), ('1e-1ba', 'integers'), ('e3ba', "'500ba'"), ('2hours', "did you mean '2h'"), ('10samples', "did you mean '10sp'"),
    ('-1ba', "'500ba'"), ('0ep', 'more than 0'), ('0.0s', 'more than 0'), ('1.5ba', 'integers'), ('.5ep', 'integers'),
    ('abc', "'0.1dur'"), ('', "'2ep'"), ('1.1dur', "write '1.1ep'"), ('nanm', "'30m'"), ('infs', "'30m'"),
    ('2ep 30m', "'2ep'"), ('ep', "'2ep'"), ('2EP', "did you mean '2ep'"),
    (-1, '1 or more'), (.5, 'integer number of epochs'), ([1], 'integer number of epochs'), (b'2ep', 'integer number of epochs')])
def test_bad_spelling(spec, words):
    for make in (Every, lambda o: EveryCallback(print, o), ValidateEvery):
        with pytest.raises((ValueError,TypeError)) as e: make(spec)
        assert words in str(e.value) and repr(spec)[:3] in str(e.value)

@pytest.mark.parametrize('spec', [None, 0, False])
def test_never(spec):
    every = Every(spec)
    assert not every and not every(None) and not every(None, epoch=True)

def test_true_is_every_epoch(): assert parse_every(True)==parse_every('1ep')==parse_every(1)

def test_what_is_called_must_be_a_function():
    with pytest.raises(TypeError, match='function of the Learner'): EveryCallback('2ep')

# when it is due
class Ragged:
    "A loader of unknown length, with batches of the given sizes: one list of sizes for each epoch, in turn"
    def __init__(self, sizes): self.sizes,self.i = sizes,0
    def __iter__(self):
        sizes = self.sizes[self.i%len(self.sizes)]
        self.i += 1
        return iter([(torch.ones(n,4), torch.ones(n,1)) for n in sizes])
class Known(Ragged):
    def __len__(self): return len(self.sizes[0])

class Watch(Callback):
    "Records when each of several Everys is due: the number of batches so far, or -1-epoch for an epoch"
    run_valid,modes,saves = False,('fit',),('everys','done')
    def __init__(self, *specs, order=0): self.all,self.due,self.done,self.order = [Every(o) for o in specs],[[] for _ in specs],0,order
    def state_dict(self): return dict(everys=[o.state_dict() for o in self.all], done=self.done)
    def load_state_dict(self, state):
        for o,s in zip(self.all, state['everys']): o.load_state_dict(s)
        self.done = state['done']
    def before_fit(self):
        for o in self.all: o.start(self.learn)
    def after_batch(self):
        self.done += 1
        for o,due in zip(self.all, self.due):
            if o(self.learn): due.append(self.done)
    def after_epoch(self):
        for o,due in zip(self.all, self.due):
            if o(self.learn, epoch=True): due.append(-1-self.learn.epoch)

def fit(dl, cbs, n_epoch, **kw):
    learn = Learner((dl, batches(1)), nn.Linear(4,1), nn.MSELoss(), SGD, lr=.01, cbs=cbs)
    learn.logger = null_logger
    learn.fit(n_epoch, **kw)
    return learn

def crossings(amounts, value):
    "The 1-based positions in `amounts` at which a multiple of `value` is reached or passed"
    return [i+1 for i,(a,b) in enumerate(zip([0]+amounts, amounts)) if math.floor(Fraction(b)/value)>math.floor(Fraction(a)/value)]
def sums(xs): return [sum(xs[:i+1]) for i in range(len(xs))]

sizes = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=6), min_size=1, max_size=4)

@quick
@given(sizes, st.integers(1, 12), st.integers(1, 40), st.integers(1, 4))
def test_batches_samples_epochs(sizes, ba, sp, ep):
    "Four Everys count independently, with epochs and batches of any size and a loader without `len`"
    watch = Watch(f'{ba}ba', f'{sp}sp', f'{ep}ep', lambda learn: learn.train_iter%3==0)
    fit(Ragged(sizes), watch, len(sizes))
    flat = sum(sizes, [])
    assert watch.due[0]==[i for i in range(1, len(flat)+1) if i%ba==0]
    assert watch.due[1]==crossings(sums(flat), sp)
    assert watch.due[2]==[-1-e for e in range(len(sizes)) if (e+1)%ep==0]
    assert watch.due[3]==[i for i in range(1, len(flat)+1) if i%3==0]

parts = st.sampled_from('0.01 0.05 0.1 0.125 0.2 0.25 0.3 0.33 0.4 0.5 0.7 0.9 1 1.0'.split())

@quick
@given(parts, st.integers(1, 7), st.integers(1, 6))
def test_fractions_of_the_run(part, n, n_epoch):
    watch = Watch(f'{part}dur')
    fit(Known([[1]*n]), watch, n_epoch)
    assert watch.due[0]==crossings([Fraction(i+1, n*n_epoch) for i in range(n*n_epoch)], Fraction(part))

@quick
@given(parts, st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), st.data())
def test_start_epoch(part, ep, n, n_epoch, data):
    "With `start_epoch` and no saved state, epochs and fractions are due where they are in an uninterrupted run"
    start = data.draw(st.integers(0, n_epoch))
    whole,rest = Watch(f'{part}dur', f'{ep}ep'),Watch(f'{part}dur', f'{ep}ep')
    fit(Known([[1]*n]), whole, n_epoch)
    rest.done = start*n
    fit(Known([[1]*n]), rest, n_epoch, start_epoch=start)
    assert rest.due[0]==[i for i in whole.due[0] if i>start*n]
    assert rest.due[1]==[i for i in whole.due[1] if i<-start]

@quick
@given(st.integers(1, 12), st.integers(1, 40), st.integers(1, 3), parts, st.integers(2, 5), st.booleans(), st.data())
def test_resume(ba, sp, ep, part, n_epoch, late, data):
    "After an epoch, a state loaded before the fit or in `before_fit` makes the Everys due as in an uninterrupted run"
    stop = data.draw(st.integers(1, n_epoch))
    specs = f'{ba}ba',f'{sp}sp',f'{ep}ep',f'{part}dur'
    whole,first,second = [Watch(*specs) for _ in range(3)]
    dl = Known([[5,5,2]])
    fit(dl, whole, n_epoch)
    fit(dl, [first, at('after_epoch', lambda cb: cb.learn.stop(), lambda cb: cb.learn.epoch==stop-1, order=9)], n_epoch)
    state = first.state_dict()
    if not late: second.load_state_dict(state)
    fit(dl, [second] + [at('before_fit', lambda cb: second.load_state_dict(state), order=9)]*late, n_epoch, start_epoch=stop)
    assert [a+b for a,b in zip(first.due, second.due)]==whole.due

def test_mid_epoch_resume():
    a,b = Every('10sp'),Every('10sp')
    learn = learner()
    learn.batch = batches(1)[0]
    due = [a(learn) for _ in range(4)]
    b.load_state_dict(a.state_dict())
    assert due + [b(learn) for _ in range(4)]==[False,False,True,False,True,False,False,True]

@pytest.mark.parametrize('load', [False, 'before', 'in before_fit'])
def test_each_fit_starts_a_new_count(load):
    watch,dl = Watch('4ba'),Known([[1]*6])
    state = dict(everys=[dict(count=3, times=0)], done=0)
    cbs = [watch]
    if load=='before': watch.load_state_dict(state)
    if load=='in before_fit': cbs.append(at('before_fit', lambda cb: watch.load_state_dict(state), lambda cb: not watch.due[0], order=9))
    learn = fit(dl, cbs, 1)
    assert watch.due[0]==([1,5] if load else [4])
    watch.due[0].clear(); watch.due[0].append('x'); watch.done = 0
    learn.fit(1)
    assert watch.due[0]==['x',4]

def test_counts_are_exact():
    every,learn = Every('1000000000sp'),learner()
    learn.batch = torch.zeros(1)
    every.load_state_dict(dict(count=10**9-2, times=0))
    assert [every(learn) for _ in range(3)]==[False,True,False]

class Clock:
    def __init__(self): self.now = 1000.
    def __call__(self): return self.now

@quick
@given(st.lists(st.integers(0, 100), min_size=1, max_size=20), st.integers(1, 60), st.integers(0, 20))
def test_time(steps, minutes, stop):
    "With a fake clock, the time between a run and the run that resumes it does not count"
    with pytest.MonkeyPatch.context() as mp:
        clock = Clock()
        mp.setattr(module, 'monotonic', clock)
        every,got = Every(f'{minutes}m'),[]
        clock.now += 5000
        every.start(None)
        for i,s in enumerate(steps):
            if i==stop:
                state = every.state_dict()
                clock.now += 12345
                every = Every(f'{minutes}m')
                every.load_state_dict(state)
                clock.now += 777
                every.start(None)
            clock.now += 60*s
            got.append(every(None))
        assert [i+1 for i,o in enumerate(got) if o]==crossings(sums(steps), minutes)

def test_an_every_made_from_another_has_its_own_count():
    a = Every('2ba'); a(None)
    b = Every(a)
    assert (b.count, b.value, b.unit)==(0, 2, 'ba') and a.count==1

@pytest.mark.parametrize('ev', ['after_fetch', 'before_batch', 'after_pred', 'before_backward', 'after_step'])
def test_cancelled_batches_count(ev):
    watch = Watch('2ba', '8sp')
    fit(batches(6, bs=4), [watch, at(ev, throw(CancelBatch()), lambda cb: cb.learn.training and cb.learn.iter in (1,2))], 1)
    assert watch.due==[[2,4,6]]*2

def test_a_batch_cancelled_before_its_fetch_counts_as_in_train_iter():
    watch = Watch('2ba')
    learn = fit(batches(6), [watch, at('before_fetch', throw(CancelBatch()), lambda cb: cb.learn.training and cb.learn.iter in (0,1))], 1)
    assert watch.due==[[2,4,6,8]] and learn.train_iter==8

def test_a_batch_cancelled_by_CancelTrain_does_not_count():
    watch = Watch('2ba')
    learn = fit(batches(6), [watch, at('before_pred', throw(CancelTrain()), lambda cb: cb.learn.training and cb.learn.iter==1)], 4)
    assert watch.due==[[2,4]] and learn.train_iter==watch.done==4

def test_a_cancelled_epoch_counts():
    watch = Watch('2ep')
    fit(batches(2), [watch, at('before_epoch', throw(CancelEpoch()))], 4)
    assert watch.due==[[-2,-4]]

def test_unknown_length():
    seen = []
    cbs = [EveryCallback(print, '0.5dur'), at('before_batch', lambda cb: seen.append(1))]
    with pytest.raises(ValueError, match="no `len`"): fit(Ragged([[1]*9]), cbs, 1)
    assert len(seen)==1   # in the first batch

def test_only_in_a_fit():
    seen = []
    learn = learner(cbs=[EveryCallback(lambda learn: seen.append(learn.train_iter), '1ba'), EveryCallback(lambda learn: seen.append('ep'), 1)])
    learn.validate(); learn.get_preds()
    assert not seen
    learn.fit(1)
    assert seen==[1,2,3,'ep']

def test_after_batch_is_handled_only_for_intervals_within_an_epoch():
    for spec,heard in (('1ep',False), (2,False), (None,False), ('1ba',True), ('1s',True), (lambda learn: True,True)):
        assert EveryCallback(print, spec).run_train is ValidateEvery(spec).run_train is heard

def test_an_error_in_f_propagates():
    learn = learner(cbs=EveryCallback(throw(KeyError('oh')), '2ba'))
    with pytest.raises(KeyError) as e: learn.fit(1)
    assert any('EveryCallback' in n for n in e.value.__notes__)

# validation in a fit
def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4,8), nn.BatchNorm1d(8), nn.Dropout(.5), nn.Linear(8,1))

def shuffled(cbs=None, workers=0, **kw):
    torch.manual_seed(3)
    x = torch.randn(40, 4)
    dls = tuple(DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), 8, shuffle=True, num_workers=workers) for _ in range(2))
    torch.manual_seed(4)
    learn = Learner(dls, net(), nn.MSELoss(), SGD, lr=.05, metrics=mae, cbs=cbs, **kw)
    learn.logger = null_logger
    return learn

@pytest.mark.parametrize('every', ['1ba', '3ba', '20sp', '2st', '0.3dur', lambda learn: learn.train_iter in (2,7)])
def test_validation_does_not_change_the_training(every):
    a,b = shuffled(ValidateEvery(every)),shuffled()
    rngs = []
    for learn in (a,b): torch.manual_seed(5); learn.fit(3); rngs.append(torch.get_rng_state())
    assert torch.equal(*rngs)
    for x,y in zip(a.model.state_dict().values(), b.model.state_dict().values()): assert torch.equal(x, y)
    assert torch.equal(torch.stack(list(a.recorder.losses)), torch.stack(list(b.recorder.losses)))
    drop = lambda rows: [{k:v for k,v in r.items() if k!='time'} for r in rows]
    assert drop(a.recorder.history.epochs)==drop(b.recorder.history)
    assert a.validate_every.history

def test_rows_equal_a_hand_written_evaluation():
    plain = []
    def evaluate(cb):
        model = cb.learn.model.eval()
        with torch.no_grad(): loss = sum(nn.functional.mse_loss(model(x), y) for x,y in cb.learn.dls.valid)/len(cb.learn.dls.valid)
        model.train()
        plain.append((cb.learn.epoch, cb.learn.train_iter, loss.item()))
    compare = at('after_batch', evaluate, lambda cb: cb.learn.training and cb.learn.train_iter%2==0)
    learn = learner(n=5, nv=3, metrics=mae, model=net(), cbs=[ValidateEvery('2ba'), compare])
    learn.fit(2)
    h = learn.validate_every.history
    assert [(r['epoch'], r['train_iter']) for r in h]==[o[:2] for o in plain]==[(0,2),(0,4),(1,6),(1,8),(1,10)]
    assert h['valid_loss']==pytest.approx([o[2] for o in plain])
    assert list(h[0])==['epoch','train_iter','train_loss','valid_loss','mae','time']

@pytest.mark.parametrize('every,label', [('2ba','0:2'), ('2st','0:2')])
def test_rows_in_the_table(every, label, capsys):
    learn = learner(metrics=mae, cbs=ValidateEvery(every))
    learn.fit(1)
    lines = [l.split() for l in capsys.readouterr().out.splitlines() if l.strip()]
    assert lines[0][0]=='epoch' and sorted(l[0] for l in lines[1:])==['0',label] and len(lines[1])==len(lines[2])==5

@pytest.mark.parametrize('kw', [dict(default_cbs=False), dict()])
def test_logger(kw):
    "It works without a Recorder; with training metrics, validation metrics have a prefix"
    from learnkit.learner.learner import TrainEvalCallback
    from learnkit.measure.recorder import Recorder
    rows = []
    learn = learner(metrics=mae, default_cbs=False, cbs=[TrainEvalCallback, ValidateEvery('2ba')] + ([] if kw else [Recorder(train_metrics=True)]))
    learn.logger = rows.append
    learn.fit(1)
    assert rows[0][0]=='0:2'
    if not kw: assert rows[0][2] is None and rows[0][4]==learn.validate_every.history[0]['valid_mae'] and len(rows[0])==len(rows[1])==6

@quick
@given(st.integers(1, 4), st.integers(1, 7), st.integers(0, 3), st.integers(1, 2))
def test_every_nth_epoch_is_validated_once(n, n_epoch, start, batches_each):
    "Other epochs have no value, the weights do not change, and a tracker reads only the existing values"
    seen,start = [],min(start, n_epoch)
    once = at('before_validate', lambda cb: seen.append(cb.learn.epoch), lambda cb: cb.learn.mode=='fit', order=70)
    learn,plain = learner(n=batches_each, metrics=mae, cbs=[ValidateEvery(f'{n}ep'), once, OnBetter(lambda learn: None)]),learner(n=batches_each)
    for l in (learn, plain): l.logger = null_logger; l.fit(n_epoch, start_epoch=start)
    due = [e for e in range(start, n_epoch) if (e+1)%n==0]
    history = learn.recorder.history
    assert seen==due and history['epoch']==[*range(start, n_epoch)] and torch.equal(weights(learn), weights(plain))
    for k in ('valid_loss','mae') if history else (): assert [e for e,v in zip(history['epoch'], history[k]) if v is not None]==due
    assert [v for v in history['valid_loss'] if v is not None]==[v for e,v in zip(history['epoch'], plain.recorder.history['valid_loss']) if e in due] if history else True
    assert learn.on_better.best==min([v for v in history['valid_loss'] if v is not None], default=float('inf')) if history else True

def test_another_loader():
    extra = batches(2, seed=7)
    learn = learner(cbs=[ValidateEvery('1ep', dl=extra)])
    learn.fit(1)
    assert learn.validate_every.history['dl_loss']==learn.recorder.history['dl_loss']==[learn.validate(dl=extra)[0]]

def test_no_validation_set():
    seen = []
    learn = learner(nv=0, cbs=[ValidateEvery('1ba'), at('before_batch', lambda cb: seen.append(1))])
    with pytest.raises(ValueError, match='no validation data'): learn.fit(1)
    assert not seen

@pytest.mark.parametrize('ev', ['before_validate', 'before_batch', 'after_loss', 'after_validate'])
@pytest.mark.parametrize('exc', [KeyboardInterrupt, ZeroDivisionError, CancelFit])
def test_an_exception_during_validation_leaves_no_trace(ev, exc):
    "Afterwards the Learner works as before"
    boom = at(ev, throw(exc('boom')), lambda cb: cb.learn.mode=='validate')
    learn = learner(cbs=ValidateEvery('2ba'))
    try: learn.fit(2, cbs=boom)
    except (KeyboardInterrupt, ZeroDivisionError): pass
    else: assert exc is CancelFit
    assert learn.mode is None and not learn.training and learn.logger is print
    learn.fit(1)
    assert len(learn.validate_every.history)==1

@pytest.mark.parametrize('ev', ['before_validate','after_validate'])
@pytest.mark.parametrize('make', [lambda data: ValidateEvery('2ba'), lambda data: Evaluator('test', data, every='2ba')], ids=['validate','evaluate'])
def test_removed_within_its_own_validation(make, ev):
    "It looked for the Learner afterwards, and found None"
    cb = make(batches(1, seed=2))
    learn = learner(n=4, cbs=[cb, at(ev, lambda cb: cb.learn.remove_cb(removed.pop()), lambda cb: removed)])
    removed = [cb]
    learn.fit(2)
    assert [row['train_iter'] for row in cb.history]==[2] and learn.train_iter==8

def test_a_resumed_interval_of_several_processes(monkeypatch):
    "The largest amount of the interrupted fit was still used, so that an interval ended at once in the resumed one"
    monkeypatch.setattr(module, 'num_distrib', lambda: 2)
    monkeypatch.setattr(module, 'max_over_processes', lambda amount: amount)
    class Together(EveryCallback): acts_at_same_batch = True
    due = []
    cb = Together(lambda learn: due.append(learn.train_iter), '64sp')
    states = {}
    learn = learner(n=32, nv=0, cbs=[cb, at('after_batch', lambda _: states.setdefault(learn.train_iter, cb.state_dict()), order=60)])
    learn.fit(1)
    assert due==[16,32]
    cb.load_state_dict(states[12])   # 48 samples are done, 16 are left
    due.clear()
    learn.fit(1)
    assert due==[4,20]
