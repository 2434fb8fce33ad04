"""Each I/O call of a run fails, once or from then on, with each error of the system; memory runs out; the power fails
and unflushed data is lost. The run continues, failures are counted, complete checkpoints stay readable, and the next save after the
fault is complete."""
import errno, os, shutil, subprocess, sys, threading, time, warnings
from itertools import combinations
from pathlib import Path

import pytest, torch
from torch import nn
from torch.utils.data import DataLoader

from learnkit.all import CSVLogger, Callback, ExportAtEnd, JsonLogger, Metric
from learnkit.data.files import write_atomic
from learnkit.recovery.file import checkpoint_info, list_checkpoints, newest_checkpoint, read_checkpoint, write_checkpoint
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.recovery.file import FolderLock
from learnkit.recovery.resume import Retention
from learnkit.callbacks.monitor import Monitor
from learnkit.callbacks.trackers import SaveModelCallback
from learnkit.data.files import read_state
from test_durable import Failing
from test_resume import BS, Crash, N, Noisy, PER, assert_same, end, equal, fit, learner
from toys import few, slow

pytestmark = [few(10_000, 2), pytest.mark.skipif(os.name!='posix', reason='calls of POSIX')]
torch.set_num_threads(1)
root = Path(__file__).resolve().parents[2]

def messages(w, words='could not be written'): return [str(o.message) for o in w if words in str(o.message)]

class Faulty(Failing):
    "Call number `at` fails, with `stays` all later ones too; `fault` is an errno or an exception class"
    def __init__(self, at=None, fault=errno.EIO, stays=False, **kwargs): super().__init__(at, **kwargs); self.fault,self.stays = fault,stays
    def call(self, name, f, *args, **kwargs):   # calls of the lock are not counted: it has its own tests
        if name not in self.only or '.lock' in str(args[:1]): return f(*args, **kwargs)
        self.seen.append(name)
        self.n += 1
        if self.at is None or not (self.n-1==self.at or self.stays and self.n-1>self.at): return f(*args, **kwargs)
        if name=='write': f(args[0][:len(args[0])//2])   # half of it is written
        if name=='close': f(*args, **kwargs)             # the descriptor is closed in any case
        raise OSError(self.fault, os.strerror(self.fault)) if isinstance(self.fault, int) else self.fault()

faults = dict(no_space=errno.ENOSPC, error=errno.EIO, invalid=errno.EINVAL, quota=errno.EDQUOT, read_only=errno.EROFS, memory=MemoryError)

# a failure at each call of a run

def run(folder, *args, **kwargs):
    "A run with two saves in which calls fail; returns the Learner, the calls and the warnings"
    with warnings.catch_warnings(record=True) as w, Faulty(*args, **kwargs) as calls:
        warnings.simplefilter('default')
        learn = fit(learner(folder, every='5ba', keep=2), 1)
    return learn,calls.seen,messages(w)

@few(0, 1)
@pytest.mark.parametrize('fault,stays', [('no_space', False), ('memory', True), *slow(*((f,s) for f in faults for s in (False, True) if (f,s) not in (('no_space', False), ('memory', True))))])
def test_whichever_call_fails_the_run_continues(fault, stays, tmp_path):
    "Weights are those of a run without faults, failed saves are counted, and complete ones can be read"
    straight,seen,none = run(tmp_path/'straight')
    writes = [i for i,name in enumerate(seen) if name=='write']
    alike = {i for i in writes if seen[i-1]==seen[i+1]=='write'} - {writes[len(writes)//3]}
    fails = 'write','fsync','replace'   # a failure of these must be reported
    assert not none and len(seen)-len(alike)>30
    first = seen.index('unlink')*(fault=='memory')   # without memory to create the folder, no run begins
    for at in (i for i in range(first, len(seen)) if i not in alike):
        learn,_,warned = run(tmp_path/f'{at}', at, faults[fault], stays)
        what,folder = f'{at}: {seen[at]}',learn.checkpoint.folder
        assert equal(straight.model.state_dict(), learn.model.state_dict()), what
        assert warned or fault=='invalid' or seen[at] not in fails, what
        for p in list_checkpoints(folder): assert read_checkpoint(p)['model'], what
        if stays and at<9: assert [m.split(' could')[0] for m in warned]==['a checkpoint', '2 checkpoints of this fit, including the latest,'] and not list_checkpoints(folder), what
        elif at>len(seen)//2+5: assert list_checkpoints(folder), what
        learn.checkpoint.save(9, 0)
        assert equal(newest_checkpoint(folder)[1]['model'], learn.model.state_dict()), what
        assert {p.stem for p in folder.glob('*.pth')}=={p.stem for p in folder.glob('*.json')} and not list(folder.glob('.*.tmp')), what

def test_a_folder_that_cannot_be_flushed(tmp_path, monkeypatch):
    "On CIFS and some FUSE file systems fsync of a folder fails with EINVAL; checkpoints are written without it"
    fsync = os.fsync
    def fails(fd):
        if os.path.isdir(f'/proc/self/fd/{fd}'): raise OSError(number, os.strerror(number))
        fsync(fd)
    monkeypatch.setattr(os, 'fsync', fails)
    for number in (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.ENOSYS):
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            learn = fit(learner(tmp_path/str(number), every='3ba'), 1)
        assert newest_checkpoint(learn.checkpoint.folder)[1]['train_iter']==7
    number = errno.EIO
    with pytest.warns(UserWarning, match='could not be written'): fit(learner(tmp_path/'error', every='3ba'), 1)

@pytest.mark.parametrize('background', [False, True])
def test_no_memory_for_a_copy(background, tmp_path, monkeypatch):
    "A MemoryError in a save is reported each time, and the run continues; it used to end the run or be lost"
    import learnkit.recovery.state as m
    def full(*args, _copy=m.to_serializable, **kwargs):
        if 'place' in args: return _copy(*args, **kwargs)   # a few numbers: the position in the data
        raise MemoryError('cannot allocate')
    def start(self): monkeypatch.setattr(m, 'to_serializable', full)
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter('default')
        learn = fit(learner(tmp_path, every='2ba', background=background), 1, cbs=Callback(before_train=start))
    warned = messages(w)
    assert learn.train_iter==7 and len(warned)==4 and warned[-1].startswith('4 checkpoints of this fit, including the latest, could not be written: MemoryError: cannot allocate')

def test_no_thread_can_be_started(tmp_path, monkeypatch):
    import learnkit.recovery.checkpoint as m
    class Full(m.Thread):
        def start(self): raise RuntimeError("can't start new thread")
    monkeypatch.setattr(m, 'Thread', Full)
    with pytest.warns(UserWarning, match="could not be written: RuntimeError: can't start new thread"): learn = fit(learner(tmp_path, background=True), 1)
    assert learn.train_iter==7

def test_a_state_that_becomes_unserializable(tmp_path):
    "An object in `learn.state` that no checkpoint can hold, set by a callback during the run, warns; the run continues"
    def odd(self):
        if self.learn.train_iter==2: self.learn.state.odd = object()
        if self.learn.train_iter==5: self.learn.state.odd = 3
    with pytest.warns(UserWarning, match='`state.odd` is of type object, which a checkpoint cannot hold'): learn = fit(learner(tmp_path, every='2ba'), 1, cbs=Callback(before_batch=odd))
    assert newest_checkpoint(learn.checkpoint.folder)[1]['state']=={'odd':3}

def test_the_first_checkpoint_is_read_back(tmp_path, monkeypatch):
    "If the checkpoints of a run cannot be read, for whatever reason, the first save reports it"
    import learnkit.recovery.file as m
    save,read = torch.save,[]
    monkeypatch.setattr(m.torch, 'save', lambda state, f: save(dict(state, more=Crash(1)), f))
    with pytest.warns(UserWarning, match='could not be written: ValueError: .*holds Python code'): learn = fit(learner(tmp_path), 1)
    assert not list(learn.checkpoint.folder.glob('step*'))
    with pytest.raises(ValueError, match='holds Python code'): fit(learner(tmp_path/'b', on_error='raise'), 1)
    monkeypatch.undo()
    import learnkit.recovery.checkpoint as m
    monkeypatch.setattr(m, 'read_checkpoint', lambda p: read.append(p.name))
    fit(learner(tmp_path/'c', every='2ba'), 1)
    assert read==['step-00000002.pth']   # once a fit

# metrics and manifests

class Several(Metric):
    "A metric whose value is not one number"
    def __init__(self, value): self.of,self.n = value,0
    name = 'several'
    def reset(self): self.n = 0
    def accumulate(self, learn): self.n += 1
    @property
    def value(self): return self.of(self.n)

several = dict(tensor=lambda n: torch.arange(3)*n, matrix=lambda n: torch.eye(2)*n, classes=lambda n: {i:n/(i+1) for i in range(12)}, mixed=lambda n: {1:n, 'a':2., None:3},
               array=lambda n: torch.arange(3).numpy()*n, rows=lambda n: [[1.,n],(2,3)], nan=lambda n: [float('nan'),n,float('inf')], text=lambda n: 'good')

@few(4, 4)
@pytest.mark.parametrize('background', [False, True])
@pytest.mark.parametrize('name', several)
def test_metrics_of_several_numbers(name, background, tmp_path):
    """Values of metrics that are not one number are saved and resumed; they used to end the run, or in the background
    all saving, and with more than ten classes the manifest could not be read"""
    def make(folder):
        learn = learner(folder, every='3ba', background=background)
        learn.metrics = [Several(several[name])]
        return learn
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        warnings.filterwarnings('ignore', 'The metric `several` returned')
        with pytest.raises(SystemError): fit(make(tmp_path), cbs=Crash(10))
        resumed = fit(make(tmp_path))
    for p in list_checkpoints(resumed.checkpoint.folder): assert checkpoint_info(p) and read_checkpoint(p)
    assert list_checkpoints(resumed.checkpoint.folder)[0].name=='step-00000021-final.pth'
    straight = fit(make(tmp_path/'straight'))
    assert equal(straight.model.state_dict(), resumed.model.state_dict())
    assert [str(r['valid_several']) for r in straight.recorder.history if name!='array']==[str(r['valid_several']) for r in resumed.recorder.history if name!='array']

def test_values_that_are_not_numbers_are_not_among_the_best(tmp_path):
    "NaN, text and other values are skipped; a NaN used to make the order arbitrary, and the best was deleted"
    for i,v in enumerate([.5, float('nan'), .2, .4, 'x', None, [1], True, .9], 1): write_checkpoint(dict(epoch=i, done=0, train_iter=i), tmp_path/f'step-{i:08}.pth', value=v)
    r = Retention(1, 2, Monitor('valid_loss', 'min'))
    r.prune(tmp_path)
    assert [(v,p.name[-5]) for v,p in r.find_best(tmp_path)]==[(.2,'3'), (.4,'4')]

@pytest.mark.parametrize('error,kept', [(OSError, True), (ValueError, False)])
def test_a_best_checkpoint_that_cannot_be_read_now_stays(error, kept, tmp_path, monkeypatch):
    "An error of the disk or the network while the values are read used to delete the best checkpoint; damage still does"
    import learnkit.recovery.resume as m
    for i,v in enumerate([.1, .5, .4], 1): write_checkpoint(dict(epoch=i, done=0, train_iter=i), tmp_path/f'step-{i:08}.pth', value=v)
    def fails(path):
        if path.stem=='step-00000001': raise error('cannot be read')
        return checkpoint_info(path)
    monkeypatch.setattr(m, 'checkpoint_info', fails)
    with pytest.warns(UserWarning, match='not counted among the best'): Retention(1, 1, Monitor('valid_loss', 'min')).prune(tmp_path)
    assert (tmp_path/'step-00000001.pth').exists()==kept and len(list_checkpoints(tmp_path))==1+kept

# retention

def positions(learn): return [p.stem for p in list_checkpoints(learn.checkpoint.folder)]

def test_how_many_checkpoints_are_kept(tmp_path):
    "`keep=2` keeps two positions, the end of the fit being saved once; `keep=None` keeps all"
    assert positions(fit(learner(tmp_path/'a', every='1ep', keep=2)))==['step-00000021-final', 'step-00000014-epoch-1']
    assert positions(fit(learner(tmp_path/'b', every='7ba', keep=3)))==['step-00000021-final', 'step-00000014', 'step-00000007']
    assert positions(fit(learner(tmp_path/'c', every='1ep', keep=1)))==['step-00000021-final']
    assert len(positions(fit(learner(tmp_path/'d', every='1ba', keep=None))))==21

@pytest.mark.parametrize('background', [False, True])
def test_each_save_is_the_newest_checkpoint(background, tmp_path):
    "A run that starts over after damaged checkpoints of later batches keeps its own; they used to be deleted at once"
    folder = fit(learner(tmp_path, every='5ba')).checkpoint.folder
    for p in folder.glob('*.pth'): p.write_bytes(p.read_bytes()[:-1])
    (folder/'step-00000004.pth').write_bytes(b'killed before its manifest was written')
    def look(self):
        cp = self.learn.checkpoint
        cp.writer.wait()
        assert newest_checkpoint(cp.folder)[1]['train_iter']==self.learn.train_iter
    with pytest.warns(UserWarning, match='no checkpoint in .* can be read: the run starts from the beginning'):
        with pytest.raises(SystemError): fit(learner(tmp_path, every='2ba', background=background), cbs=[Callback(after_save_checkpoint=look), Crash(7)])
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        resumed = fit(learner(tmp_path, every='2ba'))
    assert_same(end(fit(learner(tmp_path/'straight'))), end(resumed))
    assert {p.name for p in folder.glob('damaged-*')}=={f'damaged-step-{n}.{e}' for n in ('00000010','00000015','00000020','00000021-final') for e in ('pth','json')} - {f'damaged-step-00000010.{e}' for e in ('pth','json')}
    assert not (folder/'step-00000004.pth').exists()

@pytest.mark.parametrize('error', [PermissionError, TimeoutError, OSError])
def test_a_checkpoint_that_cannot_be_read_now_stays(error, tmp_path, monkeypatch):
    "An error of the disk or the network is no damage; such checkpoints used to be set aside, and the run began anew"
    import learnkit.recovery.file as m
    with pytest.raises(SystemError): fit(learner(tmp_path/'a', every='5ba'), cbs=Crash(12))
    folder,opened = tmp_path/'a'/'checkpoints'/'fit-1',m._open_checked
    before = {p.name for p in folder.iterdir()}
    def fails(*args): raise error(errno.EIO, 'Input/output error', 'x.pth')
    monkeypatch.setattr(m, '_open_checked', fails)
    with pytest.raises(OSError) as e: fit(learner(tmp_path/'a'))
    assert any('step-00000010.pth could not be read' in note for note in e.value.__notes__) and {p.name for p in folder.iterdir()}==before
    monkeypatch.setattr(m, '_open_checked', opened)
    assert_same(end(fit(learner(tmp_path/'straight'))), end(fit(learner(tmp_path/'a'))))

def test_a_link_stays_a_link(tmp_path):
    "Saving through a symlink writes its target; the link used to be replaced by a file"
    (tmp_path/'far').mkdir()
    link,target = tmp_path/'m.pth',tmp_path/'far'/'real.pth'
    for before in (False, True):
        if before: link.unlink(); target.unlink(); torch.save(dict(a=1), target)
        link.symlink_to(target)   # the target need not exist yet
        write_atomic(dict(a=2), link)
        assert link.is_symlink() and torch.load(target, weights_only=True)=={'a':2} and [p.name for p in (tmp_path/'far').iterdir()]==['real.pth']

# the best model

class Losses(nn.MSELoss):
    "In validation, returns the given losses one after the other"
    def __init__(self, values): super().__init__(); self.values = [*values]
    def forward(self, pred, targ):
        loss = super().forward(pred, targ)
        return loss if pred.requires_grad else loss*0 + self.values[min(self.seen(), len(self.values)-1)]

def best_of(path, values, full=(), cbs=(), **kwargs):
    "A run whose disk is full in the epochs `full`: the Learner, the weights after each epoch and the warnings"
    weights = []
    class Full(Callback):
        order = -1000
        def __init__(self): self.fsync = os.fsync
        def check(self, fd):
            if 'models' in os.readlink(f'/proc/self/fd/{fd}') and ('end' if self.ended else self.learn.epoch) in full: raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.fsync(fd)
        def before_fit(self): self.ended,os.fsync = False,self.check
        def after_epoch(self): weights.append({k:v.clone() for k,v in self.learn.model.state_dict().items()})
        def after_fit(self): self.ended = True
        def cleanup(self): os.fsync = self.fsync
    loss = Losses(values)
    learn = learner(path, cbs=[lambda: SaveModelCallback(**kwargs), *cbs])
    learn.loss_func,loss.seen = loss,lambda: learn.epoch
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter('default')
        try: fit(learn, len(values), cbs=Full())
        except SystemError: pass
    return learn,weights,messages(w, 'the model could not be saved')

@few(3, 3)
@pytest.mark.parametrize('fname', ['model', 'model.safetensors'])
@pytest.mark.parametrize('full', [(1,), (1, 2), (1, 2, 3), (1, 2, 3, 'end'), (0, 1, 2, 3, 'end'), (0,)])
def test_the_best_model_is_not_lost_on_a_full_disk(full, fname, tmp_path):
    "The best model is held in memory, written when there is space, and loaded at the end; the run used to end"
    learn,weights,warned = best_of(tmp_path, [.5, .1, .3, .2], full, fname=fname)
    assert equal(learn.model.state_dict(), weights[1])
    assert len(warned)==len(full), warned
    path = tmp_path/'models'/(fname if 'safe' in fname else 'model.pth')
    if 'end' not in full: assert equal({k:v for k,v in read_state(path).items()}, weights[1]) and learn.save_model.held is None
    elif 0 not in full:   assert equal({k:v for k,v in read_state(path).items()}, weights[0])
    if len(full)>1: assert f'{len(full)} times in this fit' in warned[-1]
    assert not path.parent.exists() or not list(path.parent.glob('.*'))

@few(2)
@pytest.mark.parametrize('k', [9, 14, 16, 21, 25])
def test_the_best_model_is_not_lost_when_the_run_is_killed(k, tmp_path):
    "A best model that is only in memory when the process is killed is in the checkpoint"
    values,full = [.5, .1, .3, .2],(1, 2, 3)
    straight = best_of(tmp_path/'a', values, full)[0]
    best_of(tmp_path/'b', values, full, cbs=[lambda: Crash(k)])
    resumed = best_of(tmp_path/'b', values, full)[0]
    assert equal(straight.model.state_dict(), resumed.model.state_dict()) and abs(resumed.save_model.best-.1)<1e-6

@pytest.mark.parametrize('kwargs', [dict(every_epoch=True), dict(every='3ba'), dict(at_end=True)], ids=str)
def test_regular_saves_on_a_full_disk(kwargs, tmp_path):
    learn,weights,warned = best_of(tmp_path, [.5, .1], (0, 1, 'end'), **kwargs)
    assert equal(learn.model.state_dict(), weights[1]) and warned and not list(tmp_path.glob('models/*')) and learn.save_model.held is None

def test_after_save_model_is_called_if_the_save_fails(tmp_path, monkeypatch):
    "Otherwise averaged weights, which replace the weights while they are written, would stay in the model"
    events = []
    learn = learner(tmp_path, cbs=[lambda: Callback(before_save_model=lambda cb: events.append("before"), after_save_model=lambda cb: events.append("after"))])
    fit(learn, 1)
    with pytest.raises(OSError), Faulty(0, errno.ENOSPC, only=['fsync']): learn.save('x')
    assert events==['before', 'after']

def test_a_change_of_the_working_directory_during_a_fit(tmp_path, monkeypatch):
    "After `os.chdir` in a callback, checkpoints, the best model and the export stay in the folder of the run"
    (tmp_path/'a').mkdir(); (tmp_path/'b').mkdir()
    def move(self):
        if self.learn.train_iter==10: os.chdir('../b')
    def export(model, xb, path): path.write_text('exported')
    def make(): return learner('.', cbs=[SaveModelCallback, lambda: ExportAtEnd(export=export), JsonLogger, CSVLogger], every='2ba')
    monkeypatch.chdir(tmp_path/'a')
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        moved = fit(make(), cbs=Callback(before_batch=move))
    assert not list((tmp_path/'b').iterdir()) and (tmp_path/'a'/'model.pt2').read_text()=='exported' and len(list((tmp_path/'a').rglob('step-*.pth')))==3
    os.chdir(tmp_path/'a')
    resumed = fit(make())   # the run is finished
    assert equal(moved.model.state_dict(), resumed.model.state_dict())

# two runs in one folder

script = '''
import sys, time, os
sys.path[:0] = {path!r}
from test_resume import *
from learnkit.all import Callback
class Slow(Callback):
    order = 1000   # when the lock is taken
    def before_fit(self): print('running', flush=True)
    def before_batch(self): time.sleep(.1)
    def cleanup(self): print('ended', flush=True)
fit(learner(sys.argv[1], every='2ba', workers=int(sys.argv[2])), cbs=Slow())
'''
def start(folder, workers=0):
    return subprocess.Popen([sys.executable, '-c', script.format(path=[p for p in sys.path if 'tests' in p or p==str(root)]), str(folder), str(workers)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

@pytest.mark.slow
def test_two_runs_in_one_folder(tmp_path):
    "A second run raises while the first is alive, and resumes after a SIGKILL, even if loader workers still live"
    first = start(tmp_path, 2)
    assert first.stdout.readline()=='running\n'
    with pytest.raises(ValueError, match=rf'in use by another run \(process {first.pid} on .*\): wait until that run has ended, or use another `folder`'): fit(learner(tmp_path))
    assert (tmp_path/'checkpoints'/'fit-1'/'.lock').exists()
    time.sleep(.5)
    first.kill()
    first.wait()
    resumed = fit(learner(tmp_path, workers=2))
    assert not (tmp_path/'checkpoints'/'fit-1'/'.lock').exists()
    assert_same(end(fit(learner(tmp_path/'a', workers=2))), end(resumed))

def test_two_callbacks_in_one_folder(tmp_path):
    "Two CheckpointCallbacks in one folder raise: they would delete each other's checkpoints"
    with pytest.raises(ValueError, match='in use by another run of this process'): fit(learner(tmp_path, cbs=[CheckpointCallback]))
    fit(learner(tmp_path, cbs=[lambda: CheckpointCallback(folder='others')]))

def test_two_callbacks_in_folders_of_their_own(tmp_path):
    "Each callback saves the whole run: it resumes from the checkpoints of either one alone"
    def batches(): return DataLoader(Noisy(), sampler=Counting(), batch_size=BS)
    def make(folder, *cbs): return learner(folder, data=batches, cbs=[lambda: CheckpointCallback('2ba', folder='others'), *cbs])
    straight = end(fit(learner(tmp_path/'straight', data=batches)))
    assert_same(straight, end(fit(make(tmp_path/'whole'))))
    for lost in ('checkpoints','others'):
        with pytest.raises(SystemError): fit(make(tmp_path/lost, lambda: Crash(PER+2)))
        shutil.rmtree(tmp_path/lost/lost)
        assert_same(straight, end(fit(make(tmp_path/lost))))

class Counting:
    "A stateful sampler whose order depends on how much was drawn from it"
    n = 0
    def __len__(self): return N
    def __iter__(self):
        for i in range(N): self.n += 1; yield (i+self.n//N)*7%N
    def state_dict(self): return dict(n=self.n)
    def load_state_dict(self, s): self.n = s['n']

def test_a_file_system_without_locks(tmp_path, monkeypatch):
    import fcntl
    def fails(*args): raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
    monkeypatch.setattr(fcntl, 'lockf', fails)
    fit(learner(tmp_path), 1)

def test_many_threads_compete_for_one_folder(tmp_path):
    "One thread at a time holds the lock, and no lock file is left"
    inside,most,got = [0],[],[]
    def want():
        for _ in range(40):
            lock = FolderLock()
            try: lock.acquire(tmp_path/'x')
            except ValueError: continue
            inside[0] += 1; most.append(inside[0]); time.sleep(.0005); inside[0] -= 1
            lock.release(); got.append(1)
    threads = [threading.Thread(target=want) for _ in range(6)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert set(most)=={1} and len(got)>5 and not list((tmp_path/'x').iterdir())

# power failures

class Power(Failing):
    "Call number `at` and later ones have no effect; records what was not flushed: file contents and changes of names"
    def __init__(self, at=None): super().__init__(at, dead=True); self.dirty,self.names,self.files = set(),[],{}
    def call(self, name, f, *args, **kwargs):
        path = Path(args[0]) if args and isinstance(args[0], (str,Path)) else None
        old = path.read_bytes() if name=='unlink' and path.exists() else Path(args[1]).read_bytes() if name=='replace' and Path(args[1]).exists() else None
        res = super().call(name, f, *args, **kwargs)
        fd = args[0] if name=='fsync' else None
        if name=='open' and args[1:2]==('wb',): self.last = path; self.dirty.add(path)
        if name=='fsync':
            target = Path(os.readlink(f'/proc/self/fd/{fd}'))
            if target.is_dir(): self.names.clear()
            else: self.dirty.discard(target)
        if name=='unlink' and old is not None: self.names.append(('unlink', path, None, old))
        if name=='replace': self.dirty = {Path(args[1]) if p==path else p for p in self.dirty}; self.names.append(('replace', path, Path(args[1]), old))
        return res

def undo_names(names, lost):
    "Undo the changes of names whose index is in `lost`, in reverse order"
    for i in reversed(range(len(names))):
        if i not in lost: continue
        what,a,b,old = names[i]
        if what=='replace' and b.exists(): b.replace(a)
        if old is not None: (b or a).write_bytes(old)

tears = dict(whole=lambda d: d, empty=lambda d: b'', half=lambda d: d[:len(d)//2], zeros=lambda d: bytes(len(d)), end=lambda d: d[:-8]+bytes(8))

@pytest.mark.parametrize('again', [False, True], ids=['new name', 'same name'])
def test_the_power_fails(again, tmp_path):
    """After a power failure at any call, with unflushed files torn, empty or zeroed and any unflushed renames lost, the
    old or the new checkpoint can be read, and the new one if the save had returned"""
    def state(i): return dict(epoch=0, done=0, train_iter=i, x=torch.full((300,), float(i)))
    def begin(folder): folder.mkdir(); write_checkpoint(state(1), folder/'step-00000001.pth')
    name,n = 'step-00000001.pth' if again else 'step-00000002.pth',0
    begin(tmp_path/'all')
    with Power() as calls: write_checkpoint(state(2), tmp_path/'all'/name)
    for at in range(len(calls.seen)+1):
        if at<len(calls.seen) and calls.seen[at]=='write' and at%4: continue   # the many writes are alike
        base = tmp_path/f'{at}'
        begin(base)
        with Power(at) as power:
            try: write_checkpoint(state(2), base/name)
            except BaseException as e: assert type(e).__name__=='Killed', e
        kept = {p:p.read_bytes() for p in base.iterdir()}
        for tear in tears if power.dirty else ['whole']:
            for lost in (set(s) for k in range(len(power.names)+1) for s in combinations(range(len(power.names)), k)):
                for p in base.iterdir(): p.unlink()
                for p,d in kept.items(): p.write_bytes(tears[tear](d) if p in power.dirty else d)
                undo_names(power.names, lost)
                with warnings.catch_warnings(): warnings.simplefilter('ignore'); got = newest_checkpoint(base)[1]
                assert got is not None and got['train_iter'] in ((1, 2) if at<len(calls.seen) else (2,)), (at, calls.seen[:at][-3:], tear, lost, power.names)
                n += 1
    assert n>60, n
