"""Cycles begin and end at the expected batches, and a closed Learner stays closed"""
import gc, subprocess, sys, tempfile, weakref
from pathlib import Path
import pytest, torch
from hypothesis import given, strategies as st
import learnkit.learner.predict
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.loop.callback import Callback
from learnkit.loop.events import CancelBatch, CancelFit, CancelTrain
from learnkit.callbacks.cycles import CheckpointEvents, Cycles
from learnkit.loop.run import null_logger
from learnkit.observe.evaluate import Evaluator
from learnkit.callbacks.monitor import TrackerCallback
from learnkit.recovery.signals import close_all
from toys import at, batches, draws, learner, slow, throw, weights

quick = draws(15)

class Log(Callback):
    "Records cycles and batches in order"
    saves = ('seen',)
    def __init__(self): self.seen = []
    def before_cycle(self): self.seen.append(f'<{self.learn.cycle}')
    def after_cycle(self): self.seen.append(f'{self.learn.cycle}>')
    def cycle_checkpoint(self): self.seen.append('!')
    def before_batch(self):
        if self.learn.training: self.seen.append(self.learn.train_iter)

def expected_log(n, n_epoch, k, epochs=False):
    "The records of `Log` for cycles of `k` batches, or of `k` epochs"
    seen,size = [],k*n if epochs else k
    for i in range(n*n_epoch):
        if i%size==0: seen.append(f'<{i//size}')
        seen.append(i)
        if (i+1)%size==0: seen += [f'{i//size}>','!']
    return seen

@quick
@given(st.integers(1, 7), st.integers(1, 5), st.integers(1, 9), st.booleans())
def test_cycles_begin_and_end_at_the_expected_batches(n, n_epoch, k, epochs):
    log = Log()
    learn = learner(n=n, cbs=[log, Cycles(f"{k}{'ep' if epochs else 'ba'}")])
    learn.logger = null_logger
    learn.fit(n_epoch)
    assert log.seen==expected_log(n, n_epoch, k, epochs)

def test_samples_and_a_second_fit():
    log = Log()
    learn = learner(n=3, bs=4, cbs=[log, Cycles('8sp')])
    learn.fit(1); first,log.seen = log.seen,[]
    learn.fit(1); learn.validate()
    assert log.seen==first==['<0',0,1,'0>','!','<1',2]

@pytest.mark.parametrize('every', ['2ba', '2ep', '3ba'])
@pytest.mark.parametrize('stop', [1, *slow(3), 4, *slow(6, 8)])
def test_resume(tmp_path, every, stop):
    "A resumed run does not begin a running cycle again"
    def make(): return learner(n=4, cbs=[log := Log(), Cycles(every), CheckpointCallback('1ba', folder=folder)], path=tmp_path),log
    class Killed(BaseException): pass
    folder = 'whole'; whole,a = make(); whole.fit(4)
    folder = 'parts'; first,_ = make()
    with pytest.raises(Killed): first.fit(4, cbs=at('after_batch', throw(Killed()), lambda cb: cb.learn.training and cb.learn.train_iter==stop, order=120))
    again,b = make()
    cycles = []
    again.fit(4, resume='auto', cbs=at('after_batch', lambda cb: cycles.append(cb.learn.cycle) if cb.training else None))
    assert a.seen==b.seen and again.cycle==whole.cycle
    size = int(every[0])*(4 if 'ep' in every else 1)
    assert cycles==[i//size for i in range(stop, 16)]

@pytest.mark.parametrize('exc', [CancelBatch, CancelTrain])
def test_cancels(exc):
    log = Log()
    learner(n=4, cbs=[log, Cycles('2ba'), at('after_pred', throw(exc()), lambda cb: cb.learn.training and cb.learn.iter==1)]).fit(1)
    assert log.seen==(['<0',0,1,'0>','!','<1',2,3,'1>','!'] if exc is CancelBatch else ['<0',0,1])

@pytest.mark.parametrize('ev', ['before_cycle', 'after_cycle', 'cycle_checkpoint', 'batch_checkpoint', 'epoch_checkpoint'])
@pytest.mark.parametrize('exc', [ZeroDivisionError, CancelFit])
def test_exceptions_in_the_events(ev, exc):
    log,on = Log(),[True]
    learn = learner(n=4, cbs=[log, Cycles('2ba'), CheckpointEvents, at(ev, throw(exc()), lambda cb: on)])
    try: learn.fit(1)
    except ZeroDivisionError as e: assert any(ev in n for n in e.__notes__)
    else: assert exc is CancelFit
    on.clear(); log.seen.clear()
    learn.fit(1)
    assert log.seen==expected_log(4, 1, 2)

def test_checkpoint_events_come_last():
    "After evaluations and trackers, before the run is saved"
    log = []
    class Points(Callback):
        order = -5
        def batch_checkpoint(self): log.append(('batch', self.learn.train_iter, len(self.learn.evaluate_x.history), self.learn.training))
        def epoch_checkpoint(self): log.append(('epoch', len(self.learn.recorder.history.epochs), self.learn.tracker.watch.best<9e9))
        def before_save_checkpoint(self): log.append('save')
        def after_cycle(self): log.append('cycle')
    cbs = [Points, CheckpointEvents, Cycles('2ba'), TrackerCallback(), Evaluator('x', batches(1), every='1ba'), CheckpointCallback('1ba')]
    with tempfile.TemporaryDirectory() as d: learner(n=2, cbs=cbs, path=d).fit(1)
    assert log==[('batch',1,1,True),'save',('batch',2,2,True),'cycle','save',('epoch',1,True),'save']

def test_checkpoint_events_do_not_change_the_training():
    a,b = learner(),learner(cbs=[CheckpointEvents, Cycles('2ba')])
    for l in (a,b): l.fit(2)
    assert torch.equal(weights(a), weights(b))

@pytest.mark.parametrize('bad', [None, 0, False, '2 batches', -1, .5])
def test_bad_cycles(bad):
    with pytest.raises((ValueError,TypeError)): Cycles(bad)

# closing a Learner
class LogsClose(Callback):
    def __init__(self, log, name, fails=()): self.log,self.label,self.fails = log,name,fails
    def _record(self, ev):
        self.log.append((ev, self.label))
        if ev in self.fails: raise self.fails[ev]
    def before_close(self): self._record('before')
    def after_close(self): self._record('after')

def test_close_in_reverse_and_once():
    log = []
    learn = learner(cbs=[LogsClose(log, 'a'), LogsClose(log, 'b')])
    learn.fit(1); learn.close(); learn.close()
    assert log==[('before','b'),('before','a'),('after','b'),('after','a')]
    for f in (lambda: learn.fit(1), learn.validate, learn.get_preds, lambda: learn.predict(torch.ones(4)), learn.__enter__):
        with pytest.raises(RuntimeError, match='this Learner is closed'): f()
    learn.model(torch.ones(1,4))

def test_every_callback_is_called():
    log,errors = [],[OSError('first'), ValueError('second')]
    learn = learner(cbs=[LogsClose(log, 'a', dict(before=errors[1])), LogsClose(log, 'b', dict(before=errors[0])), LogsClose(log, 'c', dict(after=KeyError('third')))])
    with pytest.raises(OSError, match='first') as e: learn.close()
    assert len(log)==6 and sum('then failed' in n for n in e.value.__notes__)==2
    learn.close()
    assert len(log)==6 and learn._closed

def test_close_raises_in_a_running_fit():
    learn = learner()
    with pytest.raises(RuntimeError, match='a `fit` is running'): learn.fit(1, cbs=at('after_batch', lambda cb: cb.learn.close()))
    assert not learn._closed
    learn.fit(1)

def test_close_within_close():
    n = []
    learn = learner(cbs=at('before_close', lambda cb: (n.append(1), cb.learn.close())))
    learn.close()
    assert n==[1]

@pytest.mark.slow
def test_at_exit_errors_are_printed_and_others_closed():
    script = '''
from torch import nn
from learnkit import Learner, Callback
import learnkit.recovery.signals
class A(Callback):
    def before_close(self): raise OSError('gone')
class B(Callback):
    def after_close(self): print('B is closed')
ls = [Learner(([],), nn.Linear(1,1), nn.MSELoss(), cbs=c)._close_at_exit() for c in (A,B,A,B)]
ls[3].close()
1/0
'''
    res = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert res.stdout.split('\n')==['B is closed']*2+[''] and res.stderr.count('OSError: gone')==2 and 'ZeroDivisionError' in res.stderr and res.returncode==1

def test_not_kept_alive():
    learn = learner(cbs=LogsClose([], 'a'))._close_at_exit()
    learn.fit(1)
    ref = weakref.ref(learn)
    del learn; gc.collect()
    assert ref() is None
    close_all()
