"""Time can be computed with; the Clock counts what a hand-written loop counts; StopAfter keeps to its budget"""
import math
import pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from torch.optim import SGD
import learnkit.callbacks.clock as module
from learnkit.loop.callback import Callback
from learnkit.learner.learner import adapt
from learnkit.loop.dispatcher import Dispatcher
from learnkit.loop.events import CancelBatch, CancelEpoch, CancelFit, event
from learnkit.callbacks.intervals import Every, EveryCallback
from learnkit.callbacks.cycles import ValidateEvery
import learnkit.learner.predict
from learnkit.loop.run import null_logger
from learnkit.data.loaders import DataLoaders
from learnkit.learner.learner import Learner
from learnkit.callbacks.clock import StopAfter
from learnkit.callbacks.clock import Clock, Timestamp
from learnkit.loop.duration import Time
from learnkit.callbacks.clock import Stopwatch
from toys import at, batches, draws, learner, model, throw, weights

quick = draws(25)
whole = st.sampled_from(['ep','ba','sp','tok'])
units = st.sampled_from(['ep','ba','sp','tok','s','dur'])
ints  = st.integers(-10**12, 10**12)

def times(unit): return st.builds(Time, ints if unit in ('ep','ba','sp','tok') else st.integers(-2**40, 2**40).map(lambda i: i/1024), st.just(unit))
three = units.flatmap(lambda u: st.tuples(times(u), times(u), times(u)))

# arithmetic
@given(three)
def test_addition_and_order(abc):
    "Sums and comparisons are those of the values (binary fractions here, so that they are exact)"
    a,b,c = abc
    assert a+b==b+a and (a+b)+c==a+(b+c) and a-b==a+(-b) and a+b-b==a and not (a-a) and -(-a)==a
    assert (a+b).value==a.value+b.value and (a+b).unit==a.unit
    assert [a<b, a==b, a>b].count(True)==1 and (a<=b)==(a<b or a==b) and (a>=b)==(not a<b) and (a!=b)==(not a==b)
    assert (a<b)==(a+c<b+c)
    assert sorted(abc)==[Time(v, a.unit) for v in sorted(o.value for o in abc)]

@given(three)
def test_division_and_remainder(abc):
    a,b,_ = abc
    if not b: return
    assert b*(a//b) + a%b==a and (not a%b or (a%b > b-b)==(b > b-b))
    assert a/b==a.value/b.value

@given(three)
def test_text_as_an_operand(abc):
    a,b,_ = abc
    if a.value<0 or b.value<0: return
    s = str(b)
    assert Time(s)==b and a+s==s+a==a+b and a-s==a-b and s-a==b-a and (a<s)==(a<b) and (a==s)==(a==b) and (s>a)==(b>a)

@given(units.flatmap(times))
def test_repr(a): assert eval(repr(a))==a and Time(a)==a and Time(a) is not a and type(eval(repr(a)).value) is type(a.value)

@given(whole, st.integers(0, 10**9), st.integers(0, 1000))
def test_times_a_whole_number(unit, n, k): assert k*Time(n, unit)==Time(n, unit)*k==Time(n*k, unit) and (not k or Time(n*k, unit)/k==Time(n, unit))

@given(whole, st.integers(0, 10**6), st.integers(0, 1000))
def test_fractions_are_rounded_down(unit, n, pct):
    part = pct/1000
    assert Time(n, unit)*part==Time(n, unit)*Time(part, 'dur')==Time(part, 'dur')*Time(n, unit)==Time(n, unit)*f'{part:.3f}dur'==Time(n*pct//1000, unit)

@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59))
def test_hours_minutes_and_seconds(h, m, s):
    t = Time(h, 'h') + Time(m, 'm') + Time(s, 's')
    assert t==Time(3600*h+60*m+s, 's')==f'{h}h{m}m{s}s' and t.unit=='s'

@given(units, units, st.integers(1, 5), st.integers(1, 5))
def test_units_do_not_mix(u, v, a, b):
    if u==v: return
    a,b = Time(a, u),Time(b, v)
    for f in (lambda: a<b, lambda: a<=b, lambda: a>str(b), lambda: a+b, lambda: a-str(b), lambda: str(a)+b, lambda: a%b, lambda: a//b, lambda: a/b):
        with pytest.raises(TypeError, match=f"'{u}'.*'{v}'|'{v}'.*'{u}'"): f()
    assert a!=b and not a==b and a!=str(b)

@pytest.mark.parametrize('f,words', [
    (lambda: Time('5'), "'500ba'"), (lambda: Time('2 ep'), "'2ep'"), (lambda: Time(5), "'2ep'"), (lambda: Time(5, 'xx'), "'2ep'"), (lambda: Time(None), 'not an amount'),
    (lambda: Time('1.5ba'), 'integers'), (lambda: Time(1.5, 'ep'), 'integers'), (lambda: Time(math.nan, 's'), 'finite'), (lambda: Time(math.inf, 'ba'), 'finite'),
    (lambda: Time('1ep')+1, "Time(1, 'ep')"), (lambda: 1-Time('1ep'), "Time(1, 'ep')"), (lambda: Time('1ep')<2, "Time(2, 'ep')"), (lambda: Time('1s')==Time('1q'), "'2ep'"),
    (lambda: Time('2ep')*Time('3ep'), 'unsupported'), (lambda: hash(Time('1ep')), 'unhashable')])
def test_mistakes(f, words):
    with pytest.raises((TypeError,ValueError)) as e: f()
    assert words in str(e.value)

def test_equal_to_nothing_else(): assert Time('1ep')!=1 and Time('1ep')!=None and Time('1ep') not in (1, [], object())

@given(whole, st.integers(1, 10**6))
def test_a_time_is_an_interval(unit, n):
    every = Every(Time(n, unit))
    assert (every.value,every.unit)==(n,unit)

# where a run is
class Tick:
    "A clock that is moved by hand"
    def __init__(self): self.now = 100.
    def __call__(self): return self.now
    def forward(self, s): self.now += s
@pytest.fixture
def tick(monkeypatch):
    t = Tick()
    monkeypatch.setattr(module, 'perf_counter', t)
    return t

class Ragged:
    def __init__(self, sizes): self.sizes,self.i = sizes,0
    def __iter__(self):
        self.i += 1
        return iter([(torch.ones(n,4), torch.ones(n,1)) for n in self.sizes[(self.i-1)%len(self.sizes)]])

@quick
@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5), min_size=1, max_size=4))
def test_counts_are_those_of_the_data(sizes):
    seen = []
    def look(cb):
        t = cb.learn.time
        seen.append((t.epoch, t.batch, t.sample, t.batch_in_epoch, t.sample_in_epoch))
    learn = Learner(Ragged(sizes), nn.Linear(4,1), nn.MSELoss(), SGD, lr=.01, cbs=[at('after_batch', look, order=-8), Clock(), at('after_epoch', look)])
    learn.logger = null_logger
    learn.fit(len(sizes))
    want,ba,sp = [],0,0
    for e,epoch in enumerate(sizes):
        for i,n in enumerate(epoch): want.append((e, ba:=ba+1, sp:=sp+n, i+1, sum(epoch[:i+1])))
        want.append((e+1, ba, sp, 0, 0))
    assert seen==want
    assert learn.time==f'{len(sizes)}ep' and learn.time['sp']==Time(sp, 'sp')

@given(st.integers(0, 99), st.integers(0, 99), units)
def test_a_timestamp_compares_like_its_amounts(a, b, unit):
    t = Timestamp(a, a, a, a, float(a), float(a), 0, 0, 0, 0.)
    for o in (Time(b, unit), str(Time(b, unit))):
        assert ((t<o), (t<=o), (t==o), (t!=o), (t>=o), (t>o))==((a<b), (a<=b), (a==b), (a!=b), (a>=b), (a>b))
    assert t==Timestamp(**vars(t)) and t!=3
    with pytest.raises(TypeError): t<3

def test_validation_takes_no_time(tick):
    "Training takes a second a batch; the hours of validation do not count"
    learn = learner(n=4, cbs=[Clock(), ValidateEvery('3ba'), at('before_batch', lambda cb: tick.forward(1 if cb.learn.training else 3600)),
                              at('after_epoch', lambda cb: tick.forward(3600), order=-20), at('before_epoch', lambda cb: tick.forward(3600))])
    learn.fit(3)
    assert learn.time=='12s' and learn.time['s']==Time(12, 's')
    learn.validate()
    tick.forward(10)
    assert learn.time=='12s' and learn.time=='12ba' and learn.time=='3ep'
    learn.fit(1)
    assert learn.time=='4s' and learn.time=='1ep'

@pytest.mark.parametrize('ev', [e for e in event if e.startswith(('before_','after_')) and event.depth[e]>0 and 'cancel' not in e])
@pytest.mark.parametrize('exc', [KeyboardInterrupt, CancelFit, CancelEpoch])
def test_the_stopwatch_is_paused_after_every_run(tick, ev, exc):
    learn = learner(cbs=[Clock(), at(ev, throw(exc('boom')), order=99)])
    try: learn.fit(2)
    except (KeyboardInterrupt, RuntimeError): pass
    t = learn.time
    tick.forward(1)
    assert learn.time==t and not learn.clock.is_loaded

def test_tokens():
    data = [(torch.zeros(n, t, dtype=torch.long), torch.zeros(n, 1)) for n,t in ((2,5),(3,7))]
    class Net(nn.Module):
        def __init__(self): super().__init__(); self.emb = nn.Embedding(2, 1)
        def forward(self, x): return self.emb(x).mean(1)
    learn = Learner(DataLoaders(data), Net(), nn.MSELoss(), SGD, cbs=Clock)
    learn.logger = null_logger
    learn.fit(2)
    assert learn.time=='62tok' and learn.time.token_in_epoch==0
    plain = learner(cbs=Clock)
    plain.fit(1)
    assert plain.time.token is None
    with pytest.raises(ValueError, match='dls.n_tokens'): plain.time>='1tok'
    with pytest.raises(KeyError, match='ba, st, sp'): plain.time['batches']

def test_no_clock_no_time():
    learn = learner()
    assert not hasattr(learn, 'time')
    with pytest.raises(AttributeError, match='add the callback'): learn.time

@pytest.mark.parametrize('late', [False, True])
def test_resume(tick, late):
    "One epoch with a clock, the rest with another clock that has its state"
    first,second = Clock(),Clock()
    second_batch = at('before_batch', lambda cb: tick.forward(1))
    learner(cbs=[first, second_batch]).fit(1)
    state = first.state_dict()
    tick.forward(1000)
    cbs = [second, at('before_batch', lambda cb: tick.forward(1), lambda cb: cb.learn.training)]
    if late: cbs.append(at('before_fit', lambda cb: second.load_state_dict(state), order=100))
    else: second.load_state_dict(state)
    learn = learner(cbs=cbs)
    learn.fit(3, start_epoch=1)
    assert learn.time=='3ep' and learn.time=='9ba' and learn.time=='36sp' and learn.time=='9s'
    learn.remove_cb(cbs[-1]) if late else None
    learn.fit(1)
    assert learn.time=='1ep' and learn.time=='3ba'

def test_start_epoch():
    learn = learner(cbs=Clock)
    learn.fit(3, start_epoch=1)
    assert learn.time=='3ep' and learn.time=='6ba'

def test_a_stopwatch(tick):
    w = Stopwatch()
    assert not w.stop() and w.seconds==0
    w.start(); tick.forward(2); w.start(); tick.forward(1)
    assert w.seconds==3 and w.stop() and not w.stop()
    tick.forward(5)
    assert w.seconds==3
    again = Stopwatch(); again.load_state_dict(w.state_dict()); again.start(); tick.forward(1)
    assert again.seconds==4

# a budget
@pytest.mark.parametrize('n', [1, 3, 4, 7])
def test_a_budget_of_batches(n):
    learn = learner(cbs=StopAfter(f'{n}ba'))
    learn.fit(50)
    m = model()
    opt = SGD(m.parameters(), lr=.05)
    for i in range(n):
        x,y = batches(3)[i%3]
        nn.functional.mse_loss(m(x), y).backward(); opt.step(); opt.zero_grad()
    assert learn.train_iter==n and torch.equal(weights(learn), torch.cat([p.detach().flatten() for p in m.parameters()]))
    assert len(learn.recorder.history)==math.ceil(n/3) and learn.recorder.history[-1]['valid_loss'] is not None and f'{n}ba' in learn.stop_reason

@pytest.mark.parametrize('spec,n', [('17sp', 5), ('2ep', 6), (6, 6), ('0.5dur', 6), (Time('3ba')*2, 6)])
def test_budgets_in_other_units(spec, n):
    learn = learner(cbs=StopAfter(spec))
    learn.fit(4)
    assert learn.train_iter==n
    learn.fit(4)
    assert learn.train_iter==n

@pytest.mark.parametrize('spec', [None, 0, '0ba', '5'])
def test_bad_budgets(spec):
    with pytest.raises(ValueError, match='never|500ba'): StopAfter(spec)

# undone from the inside
def kind(foreign):
    if foreign:
        class F:
            order,learn,name = 0,None,'f'
            def __init__(self, i, order, log): self.i,self.order,self.log = i,order,log
            def __call__(self, name): self.log.append(self.i) if name in ('before_batch','after_batch','cleanup') else None
        return F
    class C(Callback):
        def __init__(self, i, order, log): self.i,self.order,self.log = i,order,log
        def before_batch(self): self.log.append(self.i)
        after_batch = cleanup = before_batch
    return C

@quick
@given(st.lists(st.tuples(st.integers(-2, 2), st.booleans()), max_size=8))
def test_cleanup_is_in_reverse_order(cbs):
    "By `order`, then as added, callbacks of other libraries among them; the end of a run calls them from the last to the first"
    log,d = [],Dispatcher()
    for i,(order,foreign) in enumerate(cbs): d.add_cb(adapt(kind(foreign)(i, order, log)))
    d.training = True
    forward = [i for i,_ in sorted(enumerate(cbs), key=lambda o: o[1][0])]
    for ev in ('before_batch','after_batch','cleanup'):
        log.clear(); d(ev)
        assert log==forward
    log.clear(); d._call_isolated('cleanup', reverse=True)
    assert log==forward[::-1]
    assert [cb.i for cb in d.ordered_cbs('before_batch')]==[i for i in forward if not cbs[i][1]]   # those of other libraries tell nothing of what they handle

def test_a_batch_cancelled_before_it_was_fetched_has_no_samples():
    "The samples of the batch before it were counted twice, in `learn.time` and by intervals"
    def cancel(cb): raise CancelBatch
    due = []
    learn = learner(n=4, nv=0, cbs=[Clock(), at('before_fetch', cancel, lambda cb: cb.learn.iter==2), EveryCallback(lambda learn: due.append(learn.iter), '8sp')])
    learn.fit(1)
    assert (learn.time.batch,learn.time.sample,due)==(5, 16, [1,4])
