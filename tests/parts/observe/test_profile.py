"The profiler counts all time once, for the right action, and costs nothing when removed. The clock is a fake one."
import gc, json
from unittest import mock

import oracle, pytest, torch
from hypothesis import given, strategies as st
from torch import nn

from learnkit.loop.callback import Callback
from learnkit.loop.dispatcher import Dispatcher
from learnkit.loop.events import CancelBatch, CancelEpoch, CancelFit, CancelTrain, CancelValid, event
from learnkit.callbacks.cycles import ValidateEvery
from learnkit.callbacks.batches import Prefetch
from learnkit.observe.speed import waiting_hint
from learnkit.learner.bars import ProgressCallback
from learnkit.loop.run import null_logger
from learnkit.observe.trace import Action
from learnkit.observe.profile import Profile
from learnkit.observe.profile import ProfileCallback
from learnkit.observe.profile import TimerCallback
from toys import Reg, at, batches, draws, learner, throw, weights

class Clock:
    "A clock that advances by 1 when it is read, and by `sleep`"
    def __init__(self): self.now = 0
    def __call__(self): self.now += 1; return self.now
    def sleep(self, n): self.now += n

def profiled(*cbs, clock=None, **kw):
    "A quiet Learner with a profiler, and its clock"
    clock = clock or Clock()
    learn = learner(cbs=[ProfileCallback(clock=clock), *cbs], **kw)
    learn.remove_cb(ProgressCallback)
    learn.logger = null_logger
    return learn,clock

def total(p): return sum(t for _,t in p.totals.values())
def whole(p, clock): return clock.now - p.start_time   # the whole time, if the clock was not read since
def sleepy(events, f=lambda e: 0): return Callback(**{e: lambda self, e=e: f(e) for e in events})
FIT = [*(e for e in oracle.FIT if 'cancel' not in e), 'cleanup']

def test_these_are_the_events_of_a_fit():
    fired = []
    learner(cbs=Callback(**{e: lambda self, e=e: fired.append(e) for e in event})).fit(1)
    assert {*fired}-{'after_read_losses'}=={*FIT, 'after_create'}   # the Recorder fires this one

# all time is counted once
@pytest.mark.parametrize('run', (lambda l: l.fit(2), lambda l: l.validate(), lambda l: l.get_preds(), lambda l: l.fit(0)))
def test_times_add_up_to_the_run(run):
    learn,clock = profiled()
    run(learn)
    p = learn.profiler.result
    assert total(p)==whole(p, clock)>0
    assert sum(r['seconds'] for r in p.actions())==pytest.approx(p.seconds, rel=1e-12)
    assert sum(r['share'] for r in p.actions())==pytest.approx(1)

@draws(12)
@given(st.dictionaries(st.sampled_from(FIT), st.integers(1, 10**6), max_size=8), st.integers(1, 3), st.integers(1, 4), st.booleans())
def test_times_of_each_callback(sleeps, n_epoch, n, valid):
    clock = Clock()
    class Slow(Callback): pass
    cb = Slow(**{e: lambda self, t=t: clock.sleep(t) for e,t in sleeps.items()})
    learn,_ = profiled(cb, clock=clock, n=n, valid=valid, nv=2*valid)
    counts = {}
    learn.add_cb(Callback(**{e: lambda self, e=e: counts.update({e: counts.get(e, 0)+1}) for e in sleeps}))
    learn.fit(n_epoch)
    p = learn.profiler.result
    assert total(p)==whole(p, clock)
    times_of = {}
    for r,(c,t) in p.totals.items():
        if r.name=='slow': times_of[r.event] = (times_of.get(r.event, (0,0))[0]+c, times_of.get(r.event, (0,0))[1]+t)
    assert times_of=={e: (counts[e], counts[e]*(sleeps[e]+1)) for e in sleeps if e in counts}
    others = sum(t for r,(_,t) in p.totals.items() if r.name!='slow')
    assert others<10_000   # only the readings of the clock

def test_times_of_each_action():
    clock = Clock()
    class Model(Reg):
        def forward(self, x): clock.sleep(10_000); return super().forward(x)
    class Loader(list):
        def __iter__(self):
            clock.sleep(20_000)
            for b in super().__iter__(): clock.sleep(30_000); yield b
    class Opt(torch.optim.SGD):
        def step(self, *a): clock.sleep(40_000); return super().step(*a)
        def zero_grad(self, *a, **k): clock.sleep(50_000); return super().zero_grad(*a, **k)
    class Back(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x): return x.clone()
        @staticmethod
        def backward(ctx, g): clock.sleep(60_000); return g
    def loss(p, y): clock.sleep(70_000); return Back.apply((p-y).square().mean())
    learn,_ = profiled(clock=clock, model=Model(), loss_func=loss, opt_func=Opt, dls=(Loader(batches(3)), Loader(batches(2))))
    learn.fit(1)
    def times_of(phase): return {r['action']: round(r['seconds']*1e9/1000) for r in learn.profiler.result.actions() if r['phase']==phase}
    # a generator does no work before its first `next`
    assert times_of('train')=={'loader start':0, 'loader wait':20+3*30, 'to device':0, 'forward':3*10, 'loss':3*70,
                           'backward':3*60, 'step':3*40, 'zero_grad':3*50, 'callbacks':0, 'rest':0}
    assert times_of('valid')=={'loader start':0, 'loader wait':20+2*30, 'to device':0, 'forward':2*10, 'loss':2*70, 'callbacks':0, 'rest':0}

def test_the_html_table_shows_units():
    "The HTML header equals the text's, with the unit of `mean`"
    from learnkit.observe.profile import TimeTable
    table = TimeTable([dict(action='forward', calls=2, seconds=.1, mean=.05, share=1.)])
    assert 'mean ms' in repr(table) and '50.000' in repr(table)
    html = table._repr_html_()
    assert 'mean ms</th>' in html and '50.000</td>' in html and html.count('<tr>')==2
    assert TimeTable()._repr_html_()=='<table></table>'

def test_the_first_event_is_measured_too():
    clock = Clock()
    learn,_ = profiled(at('before_fit', lambda cb: clock.sleep(500)), clock=clock)
    learn.fit(1)
    assert learn.profiler.result.totals[Action('', 'callback', 'callback', 'before_fit')]==[1, 501]

def test_a_nested_run_counts_for_its_callback():
    clock = Clock()
    class Model(Reg):
        def forward(self, x): clock.sleep(1000); return super().forward(x)
    learn,_ = profiled(ValidateEvery('2ba'), clock=clock, model=Model(), n=4, nv=3)
    learn.fit(1)
    p = learn.profiler.result
    assert total(p)==whole(p, clock)
    calls,t = p.totals[Action('train', 'callback', 'validate_every', 'after_batch')]
    assert calls==4 and 2*3*1000<=t<2*3*1000+100
    assert p.totals[Action('train', 'loop', 'forward')]==[4, 4*1001]
    assert p.totals[Action('valid', 'loop', 'forward')]==[3, 3*1001]
    assert sum(r.name=='batch' for r,_,_ in p.slices)==4+3

def test_an_event_fired_by_the_model_does_not_end_the_forward_pass():
    clock = Clock()
    event.register('in_the_model')
    class Model(Reg):
        def forward(self, x):
            clock.sleep(300)
            learn('in_the_model')
            clock.sleep(400)
            return super().forward(x)
    learn,_ = profiled(Callback(in_the_model=lambda self: clock.sleep(1000)), clock=clock, model=Model(), n=2, valid=False)
    learn.fit(1)
    p = learn.profiler.result
    assert p.totals[Action('train', 'loop', 'forward')]==[2, 2*(300+1+400+1)]
    assert p.totals[Action('train', 'callback', 'callback', 'in_the_model')]==[2, 2*1001]
    assert total(p)==whole(p, clock)

def test_nor_does_an_event_whose_handler_fails():
    clock = Clock()
    event.register('in_the_model')
    class Model(Reg):
        def forward(self, x):
            for _ in range(2):
                with pytest.raises(KeyError): learn('in_the_model')
            learn.remove_cb(bomb)
            learn('in_the_model')
            clock.sleep(300)
            learn.add_cb(bomb)
            return super().forward(x)
    bomb = at('in_the_model', throw(KeyError()))
    learn,_ = profiled(bomb, clock=clock, model=Model(), n=2, valid=False)
    learn.fit(1)
    assert learn.profiler.result.totals[Action('train', 'loop', 'forward')][1]>=2*300

# exceptions and Cancels
def rows_of(learn): return {r:tuple(v) for r,v in learn.profiler.result.totals.items()}

@pytest.fixture(scope='module')
def sound():
    learn,_ = profiled(Callback())
    learn.fit(1)
    return rows_of(learn)

@pytest.mark.parametrize('error', (ValueError, KeyboardInterrupt))
@pytest.mark.parametrize('name', FIT)
def test_it_works_again_after_an_error_at_any_event(name, error, sound):
    bomb = at(name, throw(error('boom')))
    learn,clock = profiled(bomb)
    with pytest.raises(error): learn.fit(1)
    p = learn.profiler.result
    assert (learn.profiler.active, learn.profiler.in_handler, p.action, p.scopes)==(False, False, None, [])
    assert total(p)==whole(p, clock)
    learn.remove_cb(bomb)
    learn.add_cb(Callback())
    learn.fit(1)
    assert rows_of(learn)==sound   # exactly

@pytest.mark.parametrize('n', [*range(1, 182, 4)])
def test_an_interrupt_within_the_profiler(n, sound):
    class Interrupted(Clock):
        "Raises KeyboardInterrupt at the `left`-th reading of the clock"
        left = n
        def __call__(self):
            self.left -= 1
            if self.left==0: raise KeyboardInterrupt
            return super().__call__()
    learn,_ = profiled(Callback(), clock=Interrupted())
    with pytest.raises(KeyboardInterrupt): learn.fit(1)
    learn.fit(1)
    assert rows_of(learn)==sound and not learn.profiler.active

def test_an_interrupt_at_the_end_of_a_handler(sound):
    learn,_ = profiled(Callback())
    learn.profiler.in_handler = True   # as after an interrupt before its reset
    learn.fit(1)
    learn.fit(1)
    assert rows_of(learn)==sound

@pytest.mark.parametrize('where', ('model', 'loss', 'data'))
def test_it_works_again_after_an_error_outside_of_callbacks(where):
    broken = [True]
    def maybe():
        if broken: raise ValueError('boom')
    class Model(Reg):
        def forward(self, x): where=='model' and maybe(); return super().forward(x)
    class Data(list):
        def __iter__(self):
            for i,b in enumerate(super().__iter__()): (where=='data' and i and maybe()); yield b
    def loss(p, y): where=='loss' and maybe(); return (p-y).square().mean()
    learn,clock = profiled(model=Model(), loss_func=loss, dls=(Data(batches(3)), batches(2)))
    with pytest.raises(ValueError): learn.fit(1)
    assert total(learn.profiler.result)==whole(learn.profiler.result, clock)
    broken.clear()
    learn.fit(1)
    again = rows_of(learn)
    fresh,_ = profiled(model=Model(), loss_func=loss, dls=(Data(batches(3)), batches(2)))
    fresh.fit(1)
    assert again==rows_of(fresh)

@pytest.mark.parametrize('cancel,name', [(CancelValid,'before_validate'), (CancelFit,'before_epoch'), (CancelFit,'before_fit')] + [
    (c,e) for c in (CancelBatch, CancelTrain, CancelEpoch, CancelFit) for e in ('after_fetch','before_batch','after_pred','before_step')])
def test_cancels_lose_no_time(cancel, name):
    learn,clock = profiled(at(name, throw(cancel()), when=lambda cb: cb.learn.training or name=='before_validate' or 'fit' in name or 'epoch' in name))
    learn.fit(2)
    p = learn.profiler.result
    assert total(p)==whole(p, clock) and not p.scopes and not learn.profiler.active

def test_an_error_in_a_nested_run():
    def nested(cb):
        with pytest.raises(ValueError): cb.learn.validate(cbs=at('after_pred', throw(ValueError('inner'))))
    learn,clock = profiled(at('after_batch', nested, when=lambda cb: cb.learn.training))
    learn.fit(1)
    p = learn.profiler.result
    assert total(p)==whole(p, clock)
    assert p.totals[Action('train', 'loop', 'forward')][0]==3

def test_added_and_removed_in_a_fit():
    clock = Clock()
    learn = learner()
    learn.logger = null_logger
    cb = ProfileCallback(clock=clock)
    def swap(c):
        if c.learn.train_iter==2: c.learn.add_cb(cb)
        if c.learn.train_iter==5: c.learn.remove_cb(cb)
    swapper = at('after_batch', swap)
    learn.add_cb(swapper)
    learn.fit(3)
    assert 0<cb.result.totals[Action('train', 'loop', 'forward')][0]<=4
    learn.remove_cb(swapper)
    learn.add_cb(cb)
    learn.fit(1)
    assert cb.result.totals[Action('train', 'loop', 'forward')][0]==3 and total(cb.result)==whole(cb.result, clock)

def test_profiler_and_timer_together():
    learn,clock = profiled(TimerCallback(every=None, clock=(other := Clock())))
    learn.fit(1)
    assert total(learn.profiler.result)==whole(learn.profiler.result, clock)
    assert total(learn.timer.result)==whole(learn.timer.result, other)

# nothing changes, nothing stays behind
def test_the_weights_are_the_same():
    def go(cbs):
        torch.manual_seed(1)
        learn = learner(model=nn.Sequential(nn.Linear(4,8), nn.Dropout(.5), nn.Linear(8,1)), cbs=cbs)
        learn.fit(2)
        return weights(learn),torch.get_rng_state(),torch.tensor(learn.recorder.smooth_loss.values)
    assert all(map(torch.equal, go(None), go(ProfileCallback)))

def test_removed_it_leaves_no_handler():
    learn,_ = profiled()
    plain = learner()
    plain.remove_cb(ProgressCallback)
    learn.fit(1); plain.fit(1)
    learn.remove_cb(learn.profiler)
    def table(l):
        l.mode = 'fit'; l._rebind()
        try: return {e: [(type(cb), f.__qualname__) for cb,f in l._bind(e)] for e in event}
        finally: l.mode = None; l._rebind()
    assert table(learn)==table(plain)
    before = table(plain)
    plain.profile(n_batches=1)
    assert table(plain)==before and before['after_batch']

def test_removed_it_costs_no_call():
    from test_calls import Calls, fit
    def calls():
        gc.collect(); gc.disable()   # the garbage collector's callbacks would be counted as calls
        try: return fit(Calls())
        finally: gc.enable()
    before = calls()
    learner().profile(n_batches=1)
    after = calls()
    assert (after.total, after.names)==(before.total, before.names)

def test_profile_leaves_no_trace_on_the_learner(tmp_path):
    def go(trial):
        torch.manual_seed(1)
        learn = learner(model=nn.Sequential(nn.Linear(4,8), nn.Dropout(.5), nn.Linear(8,1)), opt_func=torch.optim.Adam)
        learn.fit(1)
        before = (list(learn.cbs), list(learn.recorder.history))
        if trial:
            p = learn.profile(2, n_batches=2, fname=tmp_path/'sub'/'trace.json')
            assert {r: c for r,(c,_) in p.totals.items() if r.name=='forward'}=={Action('train','loop','forward'): 4, Action('valid','loop','forward'): 4}
            assert list(learn.cbs)==before[0]
        learn.fit(1)
        return weights(learn)
    assert torch.equal(go(True), go(False))
    assert json.loads((tmp_path/'sub'/'trace.json').read_text())['traceEvents']

def test_profile_after_an_error():
    learn = learner()
    w = weights(learn)
    with pytest.raises(ZeroDivisionError): learn.profile(cbs=at('after_step', throw(ZeroDivisionError())))
    assert torch.equal(w, weights(learn)) and not hasattr(learn, 'profiler')
    assert learn.profile().totals

@pytest.mark.parametrize('n', (0, -1, 1.5, '3'))
def test_bad_n_batches(n):
    with pytest.raises(ValueError, match='integer number of batches'): learner().profile(n_batches=n)

def test_no_profile_within_a_fit():
    with pytest.raises(RuntimeError, match='inside a running `fit`'): learner(cbs=at('after_epoch', lambda cb: cb.learn.profile())).fit(1)

# wrap_handler
def test_wrapped_handlers_get_the_arguments_of_the_event():
    event.register('tells')
    got = []
    class GetsArguments(Callback):
        def tells(self, b): got.append(b)
    class All(Callback):
        def __call__(self, name, **kwargs): got.append((name, *kwargs.values())) if name=='tells' else None
    learn,_ = profiled(GetsArguments, All)
    learn.add_cb(at('after_train', lambda cb: cb.learn('tells', a=1, b=2)))
    learn.fit(1)
    assert got==[2, ('tells', 1, 2)]

def test_wrapping_is_decided_once_for_each_table():
    asked = []
    class Wraps(Callback):
        def wrap_handler(self, name, cb, f): asked.append(name); return f
    d = Dispatcher().add_cbs([Wraps, at('before_fit', lambda cb: None)])
    for _ in range(5): d('before_fit')
    assert asked==['before_fit']
    d._rebind(); d('before_fit')
    assert asked==['before_fit']*2

# the trace
def check_trace(t):
    "Check the fields of complete events in the Trace Event Format, and that slices of a thread are nested"
    assert set(t)>={'traceEvents'} and t['displayTimeUnit'] in ('ms','ns')
    stack = []
    for e in t['traceEvents']:
        assert isinstance(e['name'], str) and isinstance(e['pid'], int) and isinstance(e['tid'], int) and e['ph'] in ('X','M')
        if e['ph']=='M': assert e['name'] in ('process_name','thread_name') and isinstance(e['args']['name'], str); continue
        assert e['ts']>=0 and e['dur']>=0 and isinstance(e['cat'], str)
        end = round(e['ts']*1000) + round(e['dur']*1000)
        while stack and stack[-1]<=round(e['ts']*1000): stack.pop()
        assert not stack or end<=stack[-1], e
        stack.append(end)

@pytest.mark.parametrize('raises', (None, 'before_batch', 'after_backward', 'after_epoch', 'cleanup'))
def test_the_trace_is_well_formed(raises):
    learn,_ = profiled(*([at(raises, throw(ValueError('boom')))] if raises else [Callback()]))
    try: learn.fit(2)
    except ValueError: pass
    t = json.loads(json.dumps(learn.profiler.result.trace()))
    check_trace(t)
    names = [e['name'] for e in t['traceEvents'] if e.get('cat')=='scope']
    assert names[:1]==['fit'] and names.count('epoch')==(2 if raises in (None, 'cleanup') else 1)
    if raises is None: assert names.count('batch')==2*(3+2) and names.count('train')==2 and names.count('validate')==2

def test_the_trace_is_limited():
    learn,_ = profiled()
    learn.profiler.max_slices = 5
    learn.fit(2)
    p = learn.profiler.result
    assert p.dropped>0 and sum(r.kind!='scope' or r.name=='batch' for r,_,_ in p.slices)<=5
    assert [r.name for r,_,_ in p.slices].count('epoch')==2   # the scopes around the slices are always kept
    check_trace(p.trace())
    assert p.trace()['otherData']=={'dropped': p.dropped}

# views, timer, device
@pytest.mark.parametrize('share,has_hint', [(0, False), (.05, False), (.3, True), (.9, True)])
def test_waiting_for_data(share, has_hint):
    "Waiting time is measured in training and validation, and a large one adds a hint"
    clock = Clock()
    class Loader(list):
        def __iter__(self):
            for b in super().__iter__(): clock.sleep(round(1e6*share)); yield b
    class Model(Reg):
        def forward(self, x): clock.sleep(round(1e6*(1-share))); return super().forward(x)
    learn,_ = profiled(clock=clock, model=Model(), dls=(Loader(batches(3)), Loader(batches(2))))
    learn.fit(2)
    p = learn.profiler.result
    assert p.wait_fraction==pytest.approx(share, abs=.001)
    assert f'waiting for data: {share:.0%} of it' in repr(p) and f'waiting for data: {share:.0%} of it' in p._repr_html_()
    assert ('num_workers' in p.summary and 'Prefetch' in p.summary)==has_hint

@pytest.mark.parametrize('workers', [0, 2])
def test_the_hint_fits_the_loader(workers):
    "The hint depends on the loader's present number of workers and on the times"
    class Loader(list):
        num_workers = workers
        def __iter__(self):
            for b in super().__iter__(): clock.sleep(600_000); yield b
    class Model(Reg):
        def forward(self, x): clock.sleep(400_000); return super().forward(x)
    clock = Clock()
    learn,_ = profiled(clock=clock, model=Model(), dls=(Loader(batches(3)), Loader(batches(2))))
    learn.fit(1)
    p = learn.profiler.result
    assert p.workers==dict(train=workers, valid=workers) and p.summary.endswith(': ' + waiting_hint(workers, 0, .6, .4))

TIMES = st.floats(1e-3, 1e3)
@given(st.integers(0, 64), TIMES, TIMES, st.integers(1, 64))
def test_the_hint_names_enough_workers(workers, wait, rest, cores):
    "The hint names the smallest number of workers that keep up, or none above the number of cores"
    hint = waiting_hint(workers, 0, wait, rest, cores)
    made = (wait+rest)*workers if workers else wait   # seconds for one worker to load a batch
    if 'keep up' in hint:
        n = int(hint.split()[0])
        assert workers<n<=max(cores, workers+1) and made/n<=rest*1.001 and (n==workers+1 or made/(n-1)>rest*.999)
    else: assert 'samples that cost less' in hint and made/max(cores, workers)>rest*.999

def test_an_empty_profile(): assert Profile().wait_fraction==0 and 'waiting for data: 0%' in repr(Profile())

def test_waiting_with_prefetch():
    "A prefetched epoch counts one wait for each batch, and one for the end"
    learn = learner()
    p = learn.profile(cbs=Prefetch(2, thread=True))
    assert p.totals[Action('train', 'loop', 'loader wait')][0]==3+1

def test_the_file_is_json_that_viewers_read(tmp_path):
    "The trace is valid JSON in Chrome's Trace Event Format, ordered by time, without NaN and infinity"
    def no(s): raise AssertionError(f'{s} is no JSON')
    learner().profile(2, fname=tmp_path/'t.json')
    t = json.loads((tmp_path/'t.json').read_text(), parse_constant=no)
    check_trace(t)
    slices = [e for e in t['traceEvents'] if e['ph']=='X']
    assert all({'name','ph','ts','dur','pid','tid'}<={*e} and all(isinstance(e[k], (int,float)) for k in ('ts','dur')) for e in slices)
    assert [e['ts'] for e in slices]==sorted(e['ts'] for e in slices) and {e['name'] for e in slices}>={'fit','epoch','train','validate','batch','loader wait','forward','backward','step'}

def test_views_agree():
    clock = Clock()
    learn,_ = profiled(sleepy(FIT, lambda e: clock.sleep(1000)), clock=clock)
    learn.fit(1)
    p = learn.profiler.result
    secs = lambda rows: sum(r['seconds'] for r in rows)
    assert secs(p.callbacks())==pytest.approx(secs(p.callbacks(events=True)))
    assert secs(p.callbacks())==pytest.approx(secs(r for r in p.actions() if r['action']=='callbacks'))
    assert {r['event'] for r in p.events()}=={r.name for r in p.totals if r.kind=='event'}
    assert next(r['calls'] for r in p.events() if r['event']=='after_batch')==5
    assert 'callback' in repr(p) and '<table>' in p._repr_html_() and str(Profile())

def test_the_timer_prints(capsys):
    learn = learner(cbs=TimerCallback('2ep'))
    learn.remove_cb(ProgressCallback); learn.logger = null_logger
    learn.fit(5)
    assert len(out := capsys.readouterr().out.splitlines())==2 and all('forward' in l and 'valid' in l and 'total' in l for l in out)
    learn.validate()
    assert not capsys.readouterr().out
    learn.remove_cb(learn.timer)
    with pytest.raises(ValueError): learn.fit(2, cbs=[TimerCallback(None), at('after_batch', throw(ValueError()))])
    timer = TimerCallback(None)
    bomb = at('before_step', throw(ValueError()))
    with pytest.raises(ValueError): learn.fit(2, cbs=[timer, bomb])
    assert not capsys.readouterr().out
    learn.fit(2, cbs=timer)
    assert len(capsys.readouterr().out.splitlines())==1
    learn.fit(1, cbs=TimerCallback('1ba'))
    assert len(capsys.readouterr().out.splitlines())==3

class FakeEvent:
    "A fake device event; the device has executed the events up to `passed`"
    now,passed,waits = 0.,0.,0
    def __init__(self, device, enable_timing): assert enable_timing and device.type=='cuda'; self.at = None
    def record(self): FakeEvent.now += 1; self.at = FakeEvent.now
    def query(self): return self.at<=FakeEvent.passed
    def synchronize(self): FakeEvent.waits += 1; FakeEvent.passed = max(FakeEvent.passed, self.at)
    def elapsed_time(self, end): assert end.query(); return (end.at-self.at)*1000.

@pytest.mark.parametrize('lag', (0, 1e9))   # a device that finishes at once, and one that works only while it is waited for
def test_device_times_wait_once(lag):
    FakeEvent.now,FakeEvent.passed,FakeEvent.waits = 0.,1e9-lag,0
    with mock.patch('torch.Event', FakeEvent):
        p = Profile(device=torch.device('cuda'))
        for _ in range(3):
            for e in ('before_pred','after_pred','before_loss','after_loss'): p.start(e); p.end(e)
        assert FakeEvent.waits==0
        p.finish()
    assert FakeEvent.waits==(lag>0)
    assert {r.name: t for r,t in p.device.seconds.items()}=={'forward': 3., 'loss': 3.} and not p.device.pending
    assert all('device' in r for r in p.actions()) and 'device s' in repr(p)

def test_markers():
    "The handlers of callbacks are named in a profile of `torch.profiler`"
    learn = learner(cbs=Callback(after_batch=lambda self: None))
    with torch.profiler.profile() as prof: learn.fit(1, cbs=ProfileCallback(markers=True))
    assert any(e.key=='after_batch callback' and e.count for e in prof.key_averages())
