"""Files are complete or absent, leftovers of killed processes are removed, permissions stay, a log has one writer."""
import os, signal, stat, time, warnings
from pathlib import Path

import pytest, torch
from torch import nn

from learnkit.all import Callback, CancelFit, CSVLogger, DataLoaders, ExportAtEnd, JsonLogger, Learner, MSELossFlat
from learnkit.data import locks
from learnkit.data.files import atomic, write_atomic
from learnkit.recovery.file import FolderLock, list_checkpoints, read_checkpoint, write_checkpoint
from kills import Fork

posix = pytest.mark.skipif(os.name!='posix', reason='locks and permissions of POSIX')

class Net(nn.Linear):
    "A model with a `save_pretrained`, like those of transformers"
    def __init__(self): super().__init__(2, 1)
    def save_pretrained(self, folder): Path(folder).mkdir(exist_ok=True); torch.save(self.state_dict(), Path(folder)/'net.pth')

def batches(n=4): return [(torch.full((3,2), float(i)), torch.ones(3,1)) for i in range(n)]
def learner(path, n=4, cbs=None, **kw):
    torch.manual_seed(0)
    learn = Learner(DataLoaders(batches(n), batches(n)), Net(), MSELossFlat(), path=path, cbs=cbs, **kw)
    learn.logger = lambda row: None
    return learn.remove_cb(learn.progress)
def names(folder): return sorted(p.name for p in folder.rglob('*'))

# predictions

ways = dict(mmap=dict(mmap='preds'), mmap_all=dict(mmap='preds', with_input=True, with_loss=True), save=dict(save_preds='preds', with_preds=False), both=dict(save_preds='preds', save_targs='targs'))
def get(learn, path, way, **kw):
    learn.get_preds(**{k:path/v if isinstance(v, str) else v for k,v in ways[way].items()}, **kw)
def content(path): return {str(p.relative_to(path)):p.read_bytes() for p in path.rglob('*') if p.is_file()}

ends = dict(error=RuntimeError('a batch'), ctrl_c=KeyboardInterrupt(), cancel=None)
@pytest.mark.parametrize('end', ['error','ctrl_c'])
@pytest.mark.parametrize('way', ways)
def test_predictions_that_end_early_leave_what_was_there(way, end, tmp_path):
    "A full-size file of zeros was left, also in place of a complete earlier one"
    learn = learner(tmp_path)
    for again in (False, True):
        if again: get(learn, tmp_path, way)
        before = content(tmp_path)
        def stop(cb):
            if cb.learn.iter==2: raise ends[end]
        with pytest.raises(type(ends[end])): get(learn, tmp_path, way, cbs=Callback(after_pred=stop))
        assert content(tmp_path)==before and not [n for n in names(tmp_path) if n[0]=='.']

@pytest.mark.parametrize('way', ['save','both'])
def test_a_shorter_run_leaves_no_predictions_of_a_longer_one(way, tmp_path):
    "Ten files, then a run of three batches: seven stale files were left"
    get(learner(tmp_path, 10), tmp_path, way)
    (tmp_path/'preds'/'notes.txt').write_text('mine')
    get(learner(tmp_path, 3), tmp_path, way)
    assert names(tmp_path/'preds')==['0','1','2','notes.txt'] and (way=='save' or names(tmp_path/'targs')==['0','1','2'])

def test_a_cancelled_run_writes_no_file(tmp_path):
    "Its incomplete predictions are returned in memory, and an earlier file stays"
    learn = learner(tmp_path)
    whole,_ = learn.get_preds(mmap=tmp_path/'preds')
    before = content(tmp_path)
    def stop(cb):
        if cb.learn.iter==2: raise CancelFit
    preds,_ = learn.get_preds(mmap=tmp_path/'preds', cbs=Callback(before_batch=stop))
    assert torch.equal(preds, whole[:6]) and content(tmp_path)==before
    (tmp_path/'preds'/'preds.pt').unlink()
    learn.get_preds(mmap=tmp_path/'preds', cbs=Callback(before_batch=stop))
    assert names(tmp_path/'preds')==['targs.pt']

def test_more_predictions_than_announced(tmp_path):
    "If the predictions exceed the file, they are returned in memory with a warning, and no file is left"
    class Odd(list):
        def __iter__(self): return iter([*batches(3), (torch.ones(5,2), torch.ones(5,1))])
    learn = learner(tmp_path)
    with pytest.warns(UserWarning, match=r'a batch does not fit into preds.pt'): preds,_ = learn.get_preds(dl=Odd(batches(3)), reorder=False, mmap=tmp_path/'preds')
    assert len(preds)==14 and not names(tmp_path/'preds')

def test_an_earlier_result_does_not_change(tmp_path):
    learn = learner(tmp_path)
    before,_ = learn.get_preds(mmap=tmp_path)
    kept = before.clone()
    with torch.no_grad(): learn.model.weight.add_(1)
    after,_ = learn.get_preds(mmap=tmp_path)
    assert torch.equal(before, kept) and not torch.equal(after, kept) and torch.equal(torch.load(tmp_path/'preds.pt'), after)

# killed processes

class Slow:
    def __init__(self, f): self.f = f
    def __reduce__(self): self.f()

def ends_in(path, way, die):
    "Begin to write in one of the ways, and call `die` in the middle of it"
    learn = learner(path)
    if way in ways: get(learn, path, way, cbs=Callback(after_pred=lambda cb: die() if cb.learn.iter==2 else None))
    if way=='model': write_atomic(dict(a=Slow(die)), path/'models'/'m.pth')
    if way=='folder':
        with locks.swap_folder(path/'models'/'best') as f: f.mkdir(); (f/'net.pth').write_text('half'); die()
    if way=='swap':
        replaced,n = Path.replace,[0]
        def replace(self, to):
            n[0] += 1
            return die() if n[0]==2 else replaced(self, to)
        learn.save_pretrained('best'); torch.nn.init.ones_(learn.model.weight)
        Path.replace = replace
        learn.save_pretrained('best')
    if way=='csv':
        with atomic(path/'history.csv') as f: f.write(b'half'); die()

def killed(path, way):
    "Start a process, and return it in the middle of writing"
    read,write = os.pipe()
    def die(): os.write(write, b'now'); time.sleep(60)
    p = Fork(lambda: ends_in(path, way, die), path.parent/f'{path.name}.log')
    os.close(write)
    assert os.read(read, 3)==b'now', (path.parent/f'{path.name}.log').read_text()
    os.close(read)
    return p

nexts = dict(model=lambda l: l.save('other'), folder=lambda l: l.save_pretrained('best'), csv=lambda l: l.fit(1, cbs=CSVLogger),
             **{way:lambda l, way=way: get(l, Path(l.path), way) for way in ('mmap','save')})
@posix
@pytest.mark.parametrize('way', nexts)
def test_leftovers_of_killed_processes_are_removed(way, tmp_path):
    "Four kills used to leave four copies of a large model. Files of a live process are kept"
    p = killed(tmp_path, way)
    hidden = lambda: [n for n in names(tmp_path) if n.endswith(('.tmp','.d'))]
    try:
        assert hidden()
        nexts[way](learner(tmp_path))
        assert hidden(), 'of a process that lives'
    finally: os.kill(p.pid, signal.SIGKILL); p.wait()
    locks._cleaned_folders.clear()   # as in a new process
    nexts[way](learner(tmp_path))
    assert not hidden() and not [n for n in names(tmp_path) if n[0]=='.'], names(tmp_path)

@posix
def test_killed_between_two_renames(tmp_path):
    "The folder is then in neither place; the next writer moves the new one to its place"
    p = killed(tmp_path, 'swap')
    os.kill(p.pid, signal.SIGKILL); p.wait()
    models = tmp_path/'models'
    assert not (models/'best').exists()
    locks._cleaned_folders.clear()
    learner(tmp_path).save('other')
    assert names(models)==['best','net.pth','other.pth'] and torch.load(models/'best'/'net.pth')['weight'].eq(1).all()

def test_files_of_others_stay(tmp_path):
    locks._cleaned_folders.clear()
    for n in ('.m.pth.1a2b3c4d.tmp', '.swp', 'm.tmp'): (tmp_path/n).write_text('mine')
    write_atomic(dict(a=1), tmp_path/'m.pth')
    assert names(tmp_path)==sorted(['.m.pth.1a2b3c4d.tmp', '.swp', 'm.tmp', 'm.pth'])

# permissions

def mode(path): return stat.S_IMODE(path.stat().st_mode)

@posix
@pytest.mark.parametrize('was', [0o600, 0o640, 0o444])
def test_permissions_stay(was, tmp_path):
    "Saving over a file of mode 0600 gave 0644"
    def all_of_it():
        learn = learner(tmp_path, cbs=[JsonLogger, CSVLogger, ExportAtEnd])
        learn.fit(1)
        learn.save('m'); learn.export('e'); learn.export('e.safetensors'); learn.save_pretrained('best'); learn.get_preds(mmap=tmp_path/'preds')
        write_checkpoint(dict(epoch=0, done=0, train_iter=1), tmp_path/'c'/'step-1.pth')
    all_of_it()
    files = [p for p in tmp_path.rglob('*') if p.is_file()]
    assert len(files)>=10 and all(mode(p)&0o444==0o444 for p in files)
    for p in files: p.chmod(was)
    if was==0o444:
        for p in (tmp_path/'log.jsonl', tmp_path/'history.csv'): p.chmod(0o644)   # a read-only log raises
    all_of_it()
    after = {p for p in tmp_path.rglob('*') if p.is_file()}
    assert {mode(p) for p in after if p.name not in ('log.jsonl','history.csv')}=={was}, [(p.name,oct(mode(p))) for p in after]

@posix
def test_permissions_are_set_before_the_content(tmp_path):
    "A file gets its permissions before its content"
    path = tmp_path/'m.pth'
    path.write_text('old'); path.chmod(0o600)
    with atomic(path) as f: f.write(b'secret'); f.flush(); assert {mode(p) for p in tmp_path.iterdir()}=={0o600}

@posix
def test_the_umask_removes_no_permission(tmp_path):
    "The new file is created with the permissions of the old one, of which the umask removes some"
    path = tmp_path/'m.pth'
    path.write_text('old'); path.chmod(0o664)
    before = os.umask(0o077)
    try:
        with atomic(path) as f: f.write(b'shared')
    finally: os.umask(before)
    assert mode(path)==0o664 and path.read_bytes()==b'shared'

# one writer

@posix
@pytest.mark.parametrize('late', [False, True])
def test_a_lock_follows_no_link(late, tmp_path, monkeypatch):
    "A `.lock` linked to a file of the victim overwrote that file; `late`: the link appears after the check"
    victim = tmp_path/'victim'
    victim.write_text('precious')
    (tmp_path/'run').mkdir()
    (tmp_path/'run'/'.lock').symlink_to(victim)
    if late: monkeypatch.setattr(Path, 'is_symlink', lambda self: False); FolderLock().acquire(tmp_path/'run')
    else:
        with pytest.raises(ValueError, match='is a symbolic link'): FolderLock().acquire(tmp_path/'run')
    assert victim.read_text()=='precious'

@posix
@pytest.mark.parametrize('cb', ['JsonLogger','CSVLogger'])
def test_a_log_has_one_writer(cb, tmp_path):
    "Two processes with a `JsonLogger` on one file: the rows were mixed, and `read_log` failed later"
    logger,log = dict(JsonLogger=JsonLogger, CSVLogger=CSVLogger)[cb](),tmp_path.parent/f'{tmp_path.name}.log'
    read,write = os.pipe()
    def second(): os.close(write); os.read(read, 1); learner(tmp_path, cbs=type(logger)).fit(1)
    p = Fork(second, log)   # before the first one has a lock
    def other(self):
        if self.learn.epoch==0 and self.learn.training and self.learn.iter==1: os.write(write, b'x'); p.wait(60)
    learner(tmp_path, cbs=[logger, Callback(after_batch=other)]).fit(2)
    for fd in (read, write): os.close(fd)
    output = log.read_text()
    assert p.returncode and f'is in use by another run (process {os.getpid()} on' in output and 'fname' in output
    assert len(logger.read_log())==2 and len(names(tmp_path))==1   # and no lock is left
    with pytest.raises(ValueError, match='in use by another run of this process'):
        learner(tmp_path, cbs=[logger.__class__, Callback(before_epoch=lambda cb: learner(tmp_path, cbs=logger.__class__).fit(1))]).fit(1)
    learner(tmp_path, cbs=logger.__class__).fit(1)

def test_a_log_whose_folder_is_deleted_is_restored(tmp_path):
    "Later rows used to go into the deleted file without a warning"
    import shutil
    logger = JsonLogger('logs/log.jsonl')
    def delete(cb):
        if cb.learn.epoch==1: shutil.rmtree(tmp_path/'logs')
    with pytest.warns(UserWarning, match='was deleted while the run was writing to it. It has been restored'):
        learner(tmp_path, cbs=[logger, Callback(before_epoch=delete)]).fit(3)
    assert len(logger.read_log())==3
