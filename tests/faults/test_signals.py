"""Real signals to real processes: the batch is finished, a checkpoint is saved, the exit status tells the signal, and
the resumed run ends like an uninterrupted one, bit for bit."""
import os, signal, subprocess, sys, threading, time
from functools import cache
from pathlib import Path

import pytest, torch

from learnkit.all import Adam, Callback, CancelFit
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.recovery.signals import StopOnSignal, exit_exception, to_signal
from learnkit.recovery.file import checkpoint_info, list_checkpoints
from kills import Fork
from toys import few, learner, slow

pytestmark = pytest.mark.skipif(os.name!='posix', reason='signals of POSIX')
here = Path(__file__).resolve().parents[1]

script = '''
import os, random, signal, sys, time
sys.path[:0] = [{root!r}]
signal.signal(signal.SIGINT, signal.default_int_handler)   # a job in the background may have it ignored
signal.signal(signal.SIGTERM, signal.SIG_DFL)
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from learnkit.all import Adam, Callback, Learner, Recorder, TrainEvalCallback, get_random_states, set_seed
from learnkit.data.files import to_serializable
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.recovery.signals import StopOnSignal
torch.set_num_threads(1)
folder,workers,event,batch,training,slow = {args!r}

class Noisy(Dataset):
    def __len__(self): return 24
    def __getitem__(self, i):
        if slow: time.sleep(.05)
        x = torch.tensor([i/24, random.random(), float(torch.rand(())), 1.])
        return x, x.sum()[None]

class Mark(Callback):
    "Tells the test that the run has reached the point for the signal, and waits for it there"
    order = 50
    def here(self):
        learn = self.learn
        if training not in (learn.training, None) or learn.epoch!=1 or (training is not None and learn.iter!=batch) or os.path.exists(folder+'/marked'): return
        open(folder+'/marked', 'w').close()
        end = time.monotonic() + 5
        while not learn.stop_on_signal.received and time.monotonic()<end: time.sleep(.01)
        if os.path.exists(folder+'/twice'): open(folder+'/again', 'w').close(); time.sleep(5); print('not reached')
if event: setattr(Mark, event, Mark.here)

set_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(.3), nn.Linear(8, 1))
dls = DataLoader(Noisy(), 4, shuffle=True, num_workers=workers),DataLoader(Noisy(), 8)
learn = Learner(dls, model, nn.MSELoss(), Adam, lr=.01, path=folder, default_cbs=False,
                cbs=[TrainEvalCallback, Recorder, CheckpointCallback('1ep'), StopOnSignal(), Mark])
learn.logger = lambda row: None
try: learn.fit(3, resume='auto')
finally:
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL and signal.getsignal(signal.SIGINT) is signal.default_int_handler
torch.save(to_serializable(dict(model=model.state_dict(), opt=learn.opt.state_dict(), rng=get_random_states(), losses=learn.recorder.smooth_loss.raw)), folder+'/end.pt')
'''

def start(folder, workers=0, event=None, batch=0, training=True, slow=False, new=False):
    "Start the script in a process group of its own: in a new Python, or in a fork with all imports done"
    folder.mkdir(exist_ok=True)
    code = script.format(root=str(here.parent), args=(str(folder), workers, event, batch, training, slow))
    if new: return subprocess.Popen([sys.executable, '-W', 'ignore', '-c', code], stdout=open(folder/'log', 'w'), stderr=subprocess.STDOUT, start_new_session=True)
    return Fork(lambda: exec(compile(code, 'script', 'exec'), {'__name__':'__main__'}), folder/'log')

def finish(p, folder, status=0):
    p.wait(timeout=60)
    log = (folder/'log').read_text()
    assert p.returncode==status, f'{p.returncode}\n{log}'
    return log

def wait_for(file, p):
    while not file.exists():
        assert p.poll() is None, (file.parent/'log').read_text()
        time.sleep(.01)

def stop(folder, number, status, group=False, **kwargs):
    "Start a run, send the signal at the point where it waits, and return its log"
    p = start(folder, **kwargs)
    wait_for(folder/'marked', p)
    (os.killpg if group else os.kill)(p.pid, number)
    return finish(p, folder, status)

def same(a, b):
    if isinstance(a, torch.Tensor): return torch.equal(a, b)
    if isinstance(a, dict): return a.keys()==b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list,tuple)): return len(a)==len(b) and all(map(same, a, b))
    return a==b

@pytest.fixture(scope='module')
def straight(tmp_path_factory):
    # the forks inherit what torch imports at the first step
    learner(opt_func=Adam, path=tmp_path_factory.mktemp('warm'), cbs=CheckpointCallback()).fit(1)
    @cache
    def end(workers):
        folder = tmp_path_factory.mktemp('straight')
        finish(start(folder, workers), folder)
        return torch.load(folder/'end.pt', weights_only=True)
    return end

def newest(folder):
    info = checkpoint_info(list_checkpoints(folder/'checkpoints'/'fit-1')[0])
    return info['epoch'],info['done']

def check_resumed_end(folder, straight, workers=0):
    "Resume, and compare the end; samples draw random numbers, so the number of workers matters"
    finish(start(folder, workers), folder)
    assert same(torch.load(folder/'end.pt', weights_only=True), straight(workers))

# 3 epochs of 6 batches; the run is stopped in the second
@few(2)
@pytest.mark.parametrize('number,status,workers,event,batch,training,at', [
    (signal.SIGTERM, 143, 0, 'after_pred',    2, True,  (1,3)),
    (signal.SIGINT,   -2, 2, 'after_backward',0, True,  (1,1)),   # Python ends by the signal itself when KeyboardInterrupt comes to the top
    (signal.SIGTERM, 143, 2, 'after_step',    5, True,  (1,6)),
    (signal.SIGTERM, 143, 0, 'after_pred',    1, False, (1,0)),   # validation: the newest checkpoint remains
    (signal.SIGTERM, 143, 0, 'before_epoch',  0, None,  (1,1)),
])
def test_stopped_and_resumed(number, status, workers, event, batch, training, at, straight, tmp_path):
    err = stop(tmp_path, number, status, workers=workers, event=event, batch=batch, training=training)
    assert newest(tmp_path)==at, err
    check_resumed_end(tmp_path, straight, workers)

@pytest.mark.slow
def test_a_new_python_process(straight, tmp_path):
    stop(tmp_path, signal.SIGTERM, 143, event='after_loss', batch=1, new=True)
    assert newest(tmp_path)==(1,2)
    check_resumed_end(tmp_path, straight)

@pytest.mark.parametrize('number,status', [(signal.SIGTERM, 143), *slow((signal.SIGINT, -2))])
def test_a_signal_to_the_workers_too(number, status, straight, tmp_path):
    "Schedulers and keyboards send a signal to all processes of a job"
    stop(tmp_path, number, status, group=True, workers=2, event='after_pred', batch=3)
    assert newest(tmp_path)==(1,4)
    check_resumed_end(tmp_path, straight, 2)

def test_a_signal_while_waiting_for_a_worker(straight, tmp_path):
    p = start(tmp_path, workers=1, event='before_batch', batch=0, slow=True)
    wait_for(tmp_path/'marked', p)
    os.killpg(p.pid, signal.SIGTERM)
    finish(p, tmp_path, 143)
    assert newest(tmp_path)==(1,1)
    check_resumed_end(tmp_path, straight, 1)

@pytest.mark.parametrize('number,status', [(signal.SIGTERM, 143), (signal.SIGINT, -2)])
def test_a_second_signal_ends_the_run_at_once(number, status, tmp_path):
    (tmp_path/'twice').touch()
    p = start(tmp_path, event='after_pred', batch=2)
    wait_for(tmp_path/'marked', p)
    os.kill(p.pid, number)
    wait_for(tmp_path/'again', p)
    os.kill(p.pid, number)
    assert 'not reached' not in finish(p, tmp_path, status)
    assert newest(tmp_path)==(1,0)

# in this process

@pytest.fixture
def at_a_keyboard():
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, old)

def send(event, number, i=1):
    def f(self):
        if self.learn.iter==i: signal.raise_signal(number)
    return Callback(**{event:f})

# event in the second of two epochs of three batches -> position of the newest checkpoint
_training = 'before_fetch after_fetch before_batch before_pred after_pred before_loss after_loss before_backward after_backward before_step after_step before_zero_grad after_zero_grad after_batch'.split()
_places = {**{e:(1,2) for e in _training}, 'before_epoch':(1,1), 'before_train':(1,1), 'after_train':(1,0), 'before_validate':(1,0), 'after_validate':(2,0), 'after_epoch':(2,0), 'after_fit':(2,0), 'cleanup':(2,0)}

@few(6)
@pytest.mark.parametrize('event,number', [*((e, signal.SIGTERM) for e in _places), *((e, s) for e in ('after_pred', 'after_validate') for s in (signal.SIGINT, signal.SIGUSR1))])
def test_at_every_event(event, number, at_a_keyboard, tmp_path):
    "The run ends as the signal would end it, with a checkpoint of the current batch; handlers are restored; the resumed run ends like one that was not stopped"
    def make(folder, **kwargs): return learner(n=3, opt_func=Adam, path=folder, cbs=[CheckpointCallback('1ep'), StopOnSignal(['SIGTERM','SIGINT','SIGUSR1'])], **kwargs)
    def now(self):
        learn = self.learn
        if learn.epoch==1 and (event not in _training or learn.training and learn.iter==1): signal.raise_signal(number)
    late = Callback(**{event:now})
    late.order = 200 if event!='cleanup' else 102   # cleanups come in reverse order
    before = [signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGCHLD)]
    learn = make(tmp_path/'b')
    with pytest.raises(KeyboardInterrupt if number==signal.SIGINT else SystemExit) as e: learn.fit(2, cbs=late)
    if number!=signal.SIGINT: assert e.value.code==128+number
    assert before==[signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGCHLD)]
    assert newest(tmp_path/'b')==_places[event]
    resumed,straight = make(tmp_path/'b'),make(tmp_path/'a')
    resumed.fit(2, resume='auto')
    straight.fit(2)
    assert same(resumed.model.state_dict(), straight.model.state_dict()) and same(resumed.opt.state_dict(), straight.opt.state_dict())

def test_a_received_signal_is_forgotten(at_a_keyboard):
    "A received signal does not affect the next fit, even one that is cancelled before it begins"
    learn = learner(n=4, cbs=[StopOnSignal('SIGINT')])
    with pytest.warns(UserWarning, match='without saving it'), pytest.raises(KeyboardInterrupt): learn.fit(2, cbs=send('after_pred', signal.SIGINT))
    def cancel(self): raise CancelFit
    first = Callback(before_fit=cancel)
    first.order = -100
    learn.fit(1, cbs=first)

def test_a_notebook_continues(at_a_keyboard):
    learn = learner(n=4, cbs=[StopOnSignal('SIGINT')])
    with pytest.warns(UserWarning, match='without saving it'), pytest.raises(KeyboardInterrupt): learn.fit(2, cbs=send('after_pred', signal.SIGINT))
    assert learn.train_iter==2 and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    learn.fit(1)

@pytest.mark.parametrize('event', ['before_fit', 'before_epoch', 'after_pred', 'after_step', 'after_validate', 'after_fit'])
def test_handlers_are_restored_whatever_fails(event, at_a_keyboard):
    def fail(self): raise ValueError('no')
    before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]
    with pytest.raises(ValueError, match='no'): learner(cbs=StopOnSignal()).fit(1, cbs=Callback(**{event:fail}))
    assert before==[signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]

def test_an_ignored_signal_stays_ignored():
    old = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        learn = learner(cbs=StopOnSignal('SIGUSR1'))
        learn.fit(1, cbs=send('after_pred', signal.SIGUSR1))
        assert learn.train_iter==3 and signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN
    finally: signal.signal(signal.SIGUSR1, old)

def test_at_the_end_of_the_fit():
    learn = learner(cbs=StopOnSignal('SIGUSR1'))
    def late(self): signal.raise_signal(signal.SIGUSR1)
    with pytest.raises(SystemExit) as e: learn.fit(1, cbs=Callback(after_epoch=late))
    assert e.value.code==128+signal.SIGUSR1 and len(learn.recorder.history)==1

def test_only_in_a_fit():
    learn = learner(cbs=StopOnSignal())
    before = signal.getsignal(signal.SIGTERM)
    seen = []
    learn.get_preds(cbs=Callback(after_pred=lambda self: seen.append(signal.getsignal(signal.SIGTERM))))
    learn.validate()
    assert set(seen)=={before}

def test_only_in_the_main_thread():
    learn,errors = learner(cbs=StopOnSignal()),[]
    def go():
        try: learn.fit(1)
        except RuntimeError as e: errors.append(str(e))
    t = threading.Thread(target=go); t.start(); t.join()
    assert 'main thread' in errors[0]

@pytest.mark.parametrize('bad,words', [('TERM', 'is not a signal'), (0, 'is not a signal'), (signal.SIGKILL, 'SIGKILL'), (['SIGTERM','SIGSTOP'], 'SIGSTOP')])
def test_bad_settings(bad, words):
    with pytest.raises(ValueError, match=words): StopOnSignal(bad)

def test_exceptions_of_signals():
    assert isinstance(exit_exception(signal.SIGINT), KeyboardInterrupt) and exit_exception(signal.SIGUSR1).code==128+signal.SIGUSR1 and to_signal(15) is signal.SIGTERM

def test_a_callback_may_replace_the_exception():
    def other(self): self.learn.exc = KeyError('another')
    def fail(self): raise ValueError('first')
    with pytest.raises(KeyError, match='another'): learner().fit(1, cbs=Callback(after_pred=fail, after_exception=other))
