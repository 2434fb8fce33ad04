"""The disk or the power fails at each system call of a save; files are damaged in every way. Good checkpoints stay
good, the newest complete one is found, and a resumed run ends like one without faults."""
import builtins, json, multiprocessing, os, random, re, resource, shutil, signal, sys, tempfile, threading, warnings
from pathlib import Path

import pytest, torch

from learnkit.all import Callback
from learnkit.recovery.file import list_checkpoints, newest_checkpoint, read_checkpoint, write_checkpoint
from test_resume import assert_same, end, equal, fit, learner
from toys import few, slow

pytestmark = pytest.mark.skipif(os.name!='posix', reason='calls of POSIX')
torch.set_num_threads(1)

# a file system that fails

class Killed(BaseException): pass

class Failing:
    "Inside `with`, call number `at` that changes files fails; with `dead` all later ones too, as in a power failure"
    calls = 'open fsync replace unlink mkdir close'.split()
    def __init__(self, at=None, dead=False, errno=5, only=calls+['write','flush']): self.at,self.dead,self.errno,self.only,self.n,self.seen,self.paths = at,dead,errno,only,0,[],[]

    def call(self, name, f, *args, **kwargs):
        if args and isinstance(args[0], (str,Path)): self.paths.append(Path(args[0]))
        if name in self.only:
            self.seen.append(name)
            self.n += 1
            if self.at is not None and (self.n-1==self.at or self.dead and self.n-1>self.at):
                if name=='write' and self.n-1==self.at: f(args[0][:len(args[0])//2])   # half of it is written
                raise Killed() if self.dead else OSError(self.errno, os.strerror(self.errno))
        return f(*args, **kwargs)

    def __enter__(self):
        self.old = {k:getattr(os, k) for k in self.calls},builtins.open
        for k,f in self.old[0].items(): setattr(os, k, lambda *args, k=k, f=f, **kwargs: self.call(k, f, *args, **kwargs))
        def _open(file, mode='r', *args, **kwargs):
            f = self.call('open', self.old[1], file, mode, *args, **kwargs)
            return File(f, self) if 'w' in mode else f
        builtins.open = _open
        return self

    def __exit__(self, *args):
        for k,f in self.old[0].items(): setattr(os, k, f)
        builtins.open = self.old[1]

class File:
    "A file whose writes and flushes go through `Failing.call`"
    def __init__(self, f, failing): self.f,self.failing = f,failing
    def write(self, b): return self.failing.call('write', self.f.write, bytes(b))
    def flush(self): return self.failing.call('flush', self.f.flush)
    def fileno(self): return self.f.fileno()
    def __enter__(self): return self
    def __exit__(self, *args): self.f.close()

@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    "A Learner whose folder has one checkpoint"
    learn = learner(tmp_path_factory.mktemp('trained'), every='1h', keep=1)
    fit(learn, 1)
    return learn

def prepared(learn, folder, again):
    "Prepare the folder for a save that fails, and return the state of the good checkpoint in it"
    shutil.rmtree(folder, ignore_errors=True)
    learn.path,learn.train_iter = folder,7
    learn.checkpoint.save(1, 0)
    good = newest_checkpoint(learn.checkpoint.folder)[1]
    with torch.no_grad(): learn.model[0].weight.add_(1)
    learn.train_iter = 7 if again else 8
    return good

def whole(learn): return [read_checkpoint(p) for p in list_checkpoints(learn.checkpoint.folder)]

@few(1, 2)
@pytest.mark.parametrize('again', [*slow(False), True], ids=['new name', 'same name'])
@pytest.mark.parametrize('fault', ['error', 'full', 'killed'])
def test_a_save_that_fails_at_any_call(fault, again, trained, tmp_path):
    "Whichever call fails, from open to unlink, a complete checkpoint remains; the next save leaves no incomplete file"
    learn,folder,kwargs = trained,tmp_path/'run',dict(error={}, full=dict(errno=28, only=['write','flush','fsync']), killed=dict(dead=True))[fault]
    prepared(learn, folder, again)
    with Failing(**kwargs) as counted: learn.checkpoint.save(1, 0)
    assert {'write','fsync'} <= set(counted.seen) and (fault=='full' or {'replace','unlink','close'} <= set(counted.seen))
    writes = [i for i,name in enumerate(counted.seen) if name=='write']
    kept = {writes[0], writes[len(writes)//2], *writes[-2:]}   # the many in between are alike
    for at in (i for i,name in enumerate(counted.seen) if name!='write' or i in kept):
        old = prepared(learn, folder, again)
        new = learn._run_state(1, 0)
        with warnings.catch_warnings(), Failing(at, **kwargs):
            warnings.simplefilter('ignore')
            try: learn.checkpoint.save(1, 0)
            except BaseException as e: assert fault=='killed', f'{at}: {e!r}'
        learn.checkpoint.writer.error = None
        state = newest_checkpoint(learn.checkpoint.folder)[1]
        what = f'{at}: {counted.seen[at]}'
        assert state is not None, what
        assert any(equal(state['model'], s['model']) for s in (old, new)), what
        with torch.no_grad(): learn.model[0].weight.add_(1)
        learn.train_iter = 9
        learn.checkpoint.save(1, 0)
        assert equal(newest_checkpoint(learn.checkpoint.folder)[1]['model'], learn.model.state_dict()), what
        assert not list(learn.checkpoint.folder.glob('.*')) and len(whole(learn))==1, what

def test_the_order_of_the_calls_of_a_save(trained, tmp_path):
    "The data is flushed and renamed, then the manifest; the folder is flushed once; then the old checkpoint is deleted"
    prepared(trained, tmp_path/'run', True)
    with Failing() as calls: trained.checkpoint.save(1, 0)
    assert re.sub(r'(write|open) (\1 )+', r'\1 ', ' '.join(c for c in calls.seen if c!='mkdir')+' ').strip()== \
        'unlink open write flush fsync replace open write flush fsync replace open fsync close unlink unlink'

@pytest.mark.skipif(not os.path.isdir('/dev/shm'), reason='no second file system')
def test_no_file_is_written_to_another_folder(trained, tmp_path, monkeypatch):
    "Files are not written to TMPDIR: a rename from another file system is not atomic"
    monkeypatch.setattr(tempfile, 'tempdir', '/dev/shm')
    monkeypatch.setenv('TMPDIR', '/dev/shm')
    prepared(trained, tmp_path/'run', True)
    with Failing() as calls: trained.checkpoint.save(1, 0)
    assert calls.paths and all(p.is_relative_to(trained.checkpoint.folder) for p in calls.paths)

@pytest.mark.parametrize('room,background', [(0, True), (1000, False)])
def test_no_disk_space_during_a_run(room, background, tmp_path):
    "From batch 3 to batch 12 files may not be larger than `room` bytes"
    def run(folder):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        sys.dont_write_bytecode = True   # Python would leave a truncated .pyc, and break the imports of other tests
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        def limit(self):
            if self.learn.train_iter in (3, 12): resource.setrlimit(resource.RLIMIT_FSIZE, (room if self.learn.train_iter==3 else hard, hard))
        with warnings.catch_warnings(record=True) as w:
            warnings.simplefilter('always')
            learn = fit(learner(folder, every='1ba', background=background), cbs=Callback(before_batch=limit))
        torch.save(dict(model=learn.model.state_dict(), warned=sum('could not be written' in str(o.message) for o in w)), folder/'end.pt')
    p = multiprocessing.get_context('fork').Process(target=run, args=(tmp_path,))
    p.start(); p.join(60)
    assert p.exitcode==0
    res = torch.load(tmp_path/'end.pt', weights_only=True)
    straight = fit(learner(tmp_path/'a'))
    assert equal(res['model'], straight.model.state_dict()) and res['warned']>=8
    folder = tmp_path/'checkpoints'/'fit-1'
    assert read_checkpoint(list_checkpoints(folder)[0])['train_iter']==21 and not list(folder.glob('.*'))

# damaged files

@pytest.fixture(scope='module')
def three(tmp_path_factory):
    "A folder with three checkpoints"
    folder = tmp_path_factory.mktemp('three')
    fit(learner(folder, every='7ba', keep=3))
    return folder/'checkpoints'/'fit-1'

def assert_previous_is_used(folder, name, data):
    "Assert that the newest checkpoint is skipped with a warning that names it, and that the one before it is used"
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter('always')
        path = newest_checkpoint(folder)[0]
    new,old = list_checkpoints(folder)[:2]
    assert path==old and any(name in str(o.message) for o in w), (name, len(data))

def test_each_kind_of_damage_is_detected(three, tmp_path):
    new,old = list_checkpoints(three)[:2]
    r = random.Random(0)
    for name in (new.name, new.with_suffix('.json').name):
        good = (three/name).read_bytes()
        bits = range(0, 8*len(good), max(1, 8*len(good)//60))
        for i in (i + r.randrange(8) for i in bits):
            i = min(i, 8*len(good)-1)
            (three/name).write_bytes(good[:i//8] + bytes([good[i//8] ^ 1<<i%8]) + good[i//8+1:])
            if name.endswith('.pth') or manifest_differs(three/name, good): assert_previous_is_used(three, new.stem, good)
        for k in range(100 if name==new.name else 10): (three/name).write_bytes(good[:len(good)*k//(100 if name==new.name else 10)]); assert_previous_is_used(three, new.stem, good)
        for extra in (b'\0', b'}', good): (three/name).write_bytes(good + extra); assert_previous_is_used(three, new.stem, good)
        (three/name).write_bytes((three/name.replace(new.stem, old.stem)).read_bytes()); assert_previous_is_used(three, new.stem, good)
        (three/name).write_bytes(good)
    assert newest_checkpoint(three)[0]==new

def manifest_differs(path, good):
    "Whether the contents of a manifest changed; white space does not count"
    try: return json.loads(path.read_bytes())!=json.loads(good)
    except ValueError: return True

def test_a_missing_file(three, tmp_path):
    new,old = list_checkpoints(three)[:2]
    data = new.read_bytes()
    new.unlink()
    assert_previous_is_used(three, new.name, b'')
    new.write_bytes(data)
    manifest = new.with_suffix('.json')
    text = manifest.read_bytes()
    manifest.unlink()
    assert newest_checkpoint(three)[0]==old
    with pytest.raises(ValueError, match=f'no {manifest.name} next to it'): read_checkpoint(new)
    manifest.write_bytes(text)

def test_all_checkpoints_damaged(three, tmp_path):
    "The run starts from the beginning, with a warning for each file"
    folder = tmp_path/'checkpoints'/'fit-1'
    shutil.copytree(three, folder)
    for p in folder.glob('*.pth'): p.write_bytes(p.read_bytes()[:-1])
    with pytest.warns(UserWarning) as w: learn = fit(learner(tmp_path))
    assert sum('Using the previous checkpoint instead' in str(o.message) for o in w)==3
    assert_same(end(fit(learner(tmp_path/'a'))), end(learn))

def test_data_without_a_manifest_are_deleted(three, tmp_path):
    "Data whose manifest was never written, because the run was killed, are deleted together with old checkpoints"
    folder = tmp_path/'checkpoints'/'fit-1'
    shutil.copytree(three, folder)
    for p in folder.glob('*-final*'): p.unlink()
    for n in 1,16: shutil.copy(max(folder.glob('*.pth')), folder/f'step-{n:08}.pth')
    assert_same(end(fit(learner(tmp_path))), end(fit(learner(tmp_path/'a'))))
    names = {p.suffix:{q.stem for q in folder.glob(f'*{p.suffix}')} for p in folder.iterdir()}
    assert names['.pth']==names['.json'] and not any(n.endswith(('01','16')) for n in names['.pth']), names

def parts(state):
    "The dicts in a state, and the required keys of each"
    yield state,[k for k in state if k not in ('stop_reason','beside')]   # older checkpoints lack them
    yield state['model'],[*state['model']]
    yield state['opt'],['state','param_groups']
    yield state['opt']['param_groups'][0],['lr','betas','eps','weight_decay','params']
    yield state['rng'],['random_state','torch_state']

def test_a_checkpoint_without_a_part_raises(tmp_path):
    "A checkpoint that lacks a part raises, the message names the part, and the Learner does not change"
    learn = fit(learner(tmp_path))
    before = end(learn)
    def state(): return learn._run_state(3, copy=True)
    for i,(_,keys) in enumerate(parts(state())):
        for k in keys:
            lacks = state()
            del list(parts(lacks))[i][0][k]
            with pytest.raises(ValueError, match='param_groups' if k=='params' else k): learn._restore(lacks)
    assert_same(before, end(learn))

def test_a_missing_callback_state_warns(tmp_path):
    "Callbacks may differ between runs, so a missing state is a warning, not an error"
    learn = fit(learner(tmp_path))
    state = learn._run_state(3)
    for k in [k for k,cb in ((cb.key,cb) for cb in learn.cbs) if k in state['cbs']]:
        with pytest.warns(UserWarning, match=f'no state for {k}, which starts from the beginning'): learn._restore({**state, 'cbs':{n:s for n,s in state['cbs'].items() if n!=k}})

# writing in the background

def test_a_background_save_has_the_state_at_the_save(tmp_path, monkeypatch):
    "The writer is delayed while training continues, and the second copy uses the memory of the first"
    held,states,copies = {3:threading.Event(), 6:threading.Event()},{},[]
    def late(state, path, **info):
        n = state['train_iter']
        if n in held: assert held[n].wait(30); copies.append(next(iter(state['model'].values())).data_ptr())
        return write_checkpoint(state, path, **info)
    monkeypatch.setattr('learnkit.recovery.checkpoint.write_checkpoint', late)
    def look(self):
        learn = self.learn
        if learn.train_iter in held: states[learn.train_iter] = learn._run_state(0, learn.train_iter, copy=True)
        if learn.train_iter in (5,7): held[{5:3, 7:6}[learn.train_iter]].set()
    late_cb = Callback(before_save_checkpoint=look, after_batch=look)
    learn = learner(tmp_path, every='3ba', keep=9, background=True)
    fit(learn, 1, cbs=late_cb)
    assert copies[0]==copies[1]
    for n,then in states.items():
        saved = read_checkpoint(learn.checkpoint.folder/f'step-{n:08}.pth')
        assert not equal(saved['model'], {k:v for k,v in learn.model.state_dict().items()})
        assert_same({k:then[k] for k in ('model','opt','rng','grads')}, {k:saved[k] for k in ('model','opt','rng','grads')})

def test_a_failed_write_raises_at_the_next_batch(tmp_path, monkeypatch):
    def fails(*args, **kwargs): raise OSError(28, 'No space left on device')
    monkeypatch.setattr('learnkit.recovery.checkpoint.write_checkpoint', fails)
    def wait(self):
        if self.learn.checkpoint.writer.thread: self.learn.checkpoint.writer.thread.join()
    learn = learner(tmp_path, every='4ba', background=True, on_error='raise')
    with pytest.raises(OSError, match='No space left'): fit(learn, cbs=Callback(before_batch=wait))
    assert learn.train_iter==5

def test_a_writer_that_fails_at_the_end(tmp_path, monkeypatch):
    def fails(*args, **kwargs): raise OSError(28, 'No space left on device')
    monkeypatch.setattr('learnkit.recovery.checkpoint.write_checkpoint', fails)
    with pytest.raises(OSError, match='No space left'): fit(learner(tmp_path, every='1h', background=True, on_error='raise'))

def test_killed_during_a_background_save(tmp_path):
    "The process is killed in the middle of writing the second checkpoint"
    def run(folder):
        class Half(Failing):
            def call(self, name, f, *args, **kwargs):
                if name=='write' and 'step-00000004' in str(self.paths[-1]) and threading.current_thread() is not threading.main_thread(): os._exit(9)
                return super().call(name, f, *args, **kwargs)
        with Half(): fit(learner(folder, every='2ba', background=True))
    p = multiprocessing.get_context('fork').Process(target=run, args=(tmp_path/'b',))
    p.start(); p.join(60)
    folder = tmp_path/'b'/'checkpoints'/'fit-1'
    assert p.exitcode==9 and [o.stem for o in list_checkpoints(folder)]==['step-00000002'] and list(folder.glob('.*.tmp'))
    assert_same(end(fit(learner(tmp_path/'a'))), end(fit(learner(tmp_path/'b'))))
    assert not list(folder.glob('.*'))
