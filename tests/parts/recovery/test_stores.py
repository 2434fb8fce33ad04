"""Files in an object store such as s3://: checkpoints, models, histories work as in a folder; unsupported uses raise"""
import tempfile, warnings
from fnmatch import fnmatchcase
from pathlib import Path
import pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from learnkit.all import (CheckpointCallback, CSVLogger, History, JsonLogger, Learner, RollBackOnNaN, SaveModelCallback, checkpoint_info, list_checkpoints,
                          load_learner, runs)
from learnkit.data.files import StorePath, as_path
from learnkit.loop.run import null_logger
from learnkit.recovery.file import FolderLock
from toys import at, batches, draws, learner, throw, weights

fsspec = pytest.importorskip('fsspec')

@pytest.fixture
def store():
    fs = fsspec.filesystem('memory')
    fs.store.clear(); fs.pseudo_dirs[:] = ['']
    yield 'memory://run'
    fs.store.clear()

def mk(*cbs, **kw):
    learn = learner(cbs=cbs, **kw)
    learn.logger = null_logger
    return learn.remove_cb(learn.progress)
def raises_at(n): return at('after_batch', throw(SystemError()), lambda cb: cb.learn.training and cb.learn.train_iter==n, order=200)
def go(folder, *cbs, n_epoch=3, every='1ba', background=False, **kw):
    learn = mk(CheckpointCallback(every, folder=folder, background=background), *cbs)
    learn.fit(n_epoch, **kw)
    return learn

# the path
names = st.text('ab.-_1', min_size=1, max_size=5).filter(lambda s: s.strip('.'))
@draws(25)
@given(st.lists(names, min_size=1, max_size=4), names)
def test_a_path_behaves_as_a_pathlib_path(parts, other):
    a,b = as_path('memory://' + '/'.join(parts)),Path(*parts)
    assert (a.name, a.stem, a.suffix, str(a.parent))==(b.name, b.stem, b.suffix, 'memory://'+str(b.parent).removeprefix('./')) or len(parts)==1
    assert str(a.with_name(other))==f'memory://{b.with_name(other)}' and str(a/other)==f'memory://{b/other}' and a/other==as_path(f'memory://{b/other}/')
    assert Path('/x')/a==a and 'y'/a==a and a/a==a and {a, as_path(str(a))}=={a} and a!=b

@draws(15)
@given(st.sets(names, max_size=6), st.sampled_from(['*', 'a*', '*.*', '[ab]*', 'a']))
def test_files_are_found_as_in_a_folder(files, pattern):
    fs = fsspec.filesystem('memory')
    fs.store.clear()
    folder = as_path('memory://some/where')
    assert folder.glob('*')==[] and not folder.exists()
    for n in files: (folder/n).write_bytes(n.encode())
    assert {o.name for o in folder.glob(pattern)}=={n for n in files if fnmatchcase(n, pattern)}
    for n in files:
        assert (folder/n).read_text()==n and (folder/n).is_file() and folder.is_dir()
        (folder/n).unlink()
        (folder/n).unlink(missing_ok=True)
        with pytest.raises(FileNotFoundError): (folder/n).read_bytes()

@pytest.mark.parametrize('file,words', [('sftp://host/run', 'does not write files atomically'), ('https://host/run', 'does not write files atomically'),
                                        (Path('s3://bucket/run'), "Pass the string 's3://bucket/run'"), ('nonsense://x', 'does not write files atomically')])
def test_bad_addresses_raise(file, words):
    with pytest.raises(ValueError, match=words): as_path(file)
    with pytest.raises(ValueError, match=words): CheckpointCallback(folder=file)
    with pytest.raises(ValueError, match=words): mk().save(file)

def test_other_paths_are_local(tmp_path):
    assert as_path(f'file://{tmp_path}/x')==as_path(tmp_path/'x')==as_path(str(tmp_path/'x'))==tmp_path/'x' and as_path('c:/x')==Path('c:/x')

def test_a_missing_package_is_named():
    with pytest.raises(ImportError, match='^gs:// needs fsspec.*: pip install fsspec.*extra `stores`'): as_path('gs://bucket/x').exists()

# checkpoints
@pytest.mark.parametrize('kill', [1, 3, 5, 8])
@pytest.mark.parametrize('background', [False, True])
def test_a_killed_run_continues(store, kill, background):
    with pytest.raises(SystemError): go(f'{store}/a', raises_at(kill), background=background)
    again,whole = go(f'{store}/a', resume='auto', background=background),go(f'{store}/b', background=background)
    assert torch.equal(weights(again), weights(whole)) and again.train_iter==9
    assert {k:[*map(len, v)] for k,v in rows(again).items() if k!='time'}=={k:[*map(len, v)] for k,v in rows(whole).items() if k!='time'}
def rows(learn): return {k:[repr(v) for v in learn.recorder.history[k]] for k in learn.recorder.history.names}

def test_the_same_files_as_in_a_folder(store, tmp_path):
    cbs = lambda folder: CheckpointCallback('2ba', folder=folder, keep=2, best='valid_loss')
    for folder in (store, tmp_path): mk(cbs(folder)).fit(3)
    there,here = as_path(store)/'fit-1',tmp_path/'fit-1'
    assert sorted(o.name for o in there.glob('*'))==sorted(o.name for o in here.glob('*'))
    for a,b in zip(list_checkpoints(there), list_checkpoints(here), strict=True): assert checkpoint_info(a)['train_iter']==checkpoint_info(b)['train_iter']

def test_a_damaged_file_is_set_aside(store):
    with pytest.raises(SystemError): go(store, raises_at(6))
    newest,before = list_checkpoints(as_path(store)/'fit-1')[:2]
    data = bytearray(newest.read_bytes())
    data[len(data)//2] ^= 1
    newest.write_bytes(bytes(data))
    with pytest.warns(UserWarning, match='is damaged'): again = go(store, resume='auto')
    assert torch.equal(weights(again), weights(go(f'{store}/whole')))
    assert len((as_path(store)/'fit-1').glob('damaged-*'))==2

def test_resume_from_one_checkpoint(store):
    with pytest.raises(SystemError): go(store, raises_at(5))
    for resume in (str, lambda p: p):
        path = list_checkpoints(as_path(store)/'fit-1')[0]
        assert torch.equal(weights(go(f'{store}/{resume is str}', resume=resume(path))), weights(go(f'{store}/{resume is str}-whole')))

def test_a_later_run_takes_over_the_folder(store):
    def begin(cb): FolderLock().mark_folder(as_path(store)/'fit-1')   # as another run does
    with pytest.raises(RuntimeError, match='Another run .*This run stops'): go(store, at('after_batch', begin, lambda cb: cb.learn.train_iter==4, order=99))
    assert checkpoint_info(list_checkpoints(as_path(store)/'fit-1')[0])['train_iter']==3
    assert torch.equal(weights(go(store, resume='auto')), weights(go(f'{store}/whole')))
    assert (as_path(store)/'fit-1'/'owner.txt').exists()   # the mark stays, because the earlier run may still be running

def test_a_mark_is_removed(store):
    go(store)
    assert not (as_path(store)/'fit-1'/'owner.txt').exists()

another = [dict(), dict(resume='auto'), dict(resume='no such file.pth')]
@pytest.mark.parametrize('local', [True, False])
@pytest.mark.parametrize('how', another)
def test_a_run_that_raises_changes_nothing(store, local, how, tmp_path):
    "A second fit in the folder that raises, by mistake or for a missing file, does not change the running one"
    folder,errors = (tmp_path if local else store),[]
    def second(cb):
        other = mk(CheckpointCallback('1ba', folder=folder), model=nn.Linear(4, 1, bias=False))
        try: other.fit(3, **how)
        except Exception as e: errors.append(e)
    learn = go(folder, at('after_batch', second, lambda cb: cb.learn.train_iter==4, order=200))
    assert len(errors)==1 and learn.train_iter==9 and torch.equal(weights(learn), weights(go(f'{store}/whole')))

@pytest.mark.parametrize('n', range(1, 8))
@pytest.mark.parametrize('on_error', ['warn','raise'])
def test_one_failed_read_of_the_mark_is_a_failed_write(store, monkeypatch, n, on_error):
    fs,count = type(fsspec.filesystem('memory')),[0]
    read = fs.cat_file
    def flaky(self, path, *args, **kw):
        count[0] += 'owner' in str(path)
        if 'owner' in str(path) and count[0]==n: raise ConnectionLost('503 SlowDown')
        return read(self, path, *args, **kw)
    monkeypatch.setattr(fs, 'cat_file', flaky)
    learn = mk(CheckpointCallback('1ba', folder=store, on_error=on_error))
    if on_error=='raise':
        with pytest.raises(OSError, match='503'): learn.fit(3)
        return
    with pytest.warns(UserWarning, match='could not be written: OSError.*503 SlowDown'): learn.fit(3)
    assert learn.train_iter==9 and learn.checkpoint.writer.n_failed==1

def test_a_mark_that_was_deleted_is_written_again(store):
    def tidy(cb): (as_path(store)/'fit-1'/'owner.txt').unlink()
    assert go(store, at('after_batch', tidy, lambda cb: cb.learn.train_iter==4, order=200)).train_iter==9

def test_runs_are_listed_as_in_a_folder(store, tmp_path):
    for folder in (store, tmp_path):
        for run in ('exp/a', 'exp/b', 'exp/deep/er/c'):
            go(f'{folder}/{run}')
    for above in ('', '/exp', '/exp/deep', '/exp/a', '/exp/a/fit-1', '/none'):
        there,here = runs(f'{store}{above}'),runs(f'{tmp_path}{above}')
        names = lambda found, root: [row['run'].removeprefix(str(root)) for row in found]
        assert names(there, store)==names(here, tmp_path) and len(there)=={'':3, '/exp':3, '/none':0}.get(above, 1)

class ConnectionLost(Exception): "A connection error that is no OSError, as botocore's"
def failing(monkeypatch, when):
    "Make writes to the store fail while `when()` is true"
    fs = type(fsspec.filesystem('memory'))
    pipe = fs.pipe_file
    def send(self, path, *args, **kw):
        if when(): raise ConnectionLost('no connection')
        return pipe(self, path, *args, **kw)
    monkeypatch.setattr(fs, 'pipe_file', send)

def test_training_continues_without_a_connection(store, monkeypatch):
    now = []
    failing(monkeypatch, lambda: now and 3<=now[0].train_iter<5)
    with pytest.warns(UserWarning, match='could not be written: OSError: memory://.*ConnectionLost: no connection'):
        learn = go(store, at('before_batch', lambda cb: now[:] or now.append(cb.learn), order=-99))
    assert torch.equal(weights(learn), weights(go(f'{store}/whole'))) and list_checkpoints(as_path(store)/'fit-1')

def test_rolling_back_to_a_checkpoint_in_a_store(store):
    data = batches(6)
    data[4] = (data[4][0]*float('nan'), data[4][1])
    again = Learner((data, batches(1)), nn.Linear(4, 1), nn.MSELoss(), lr=.05, cbs=[CheckpointCallback('1ba', folder=store), RollBackOnNaN('1ba', source='checkpoint')])
    again.logger = null_logger
    with pytest.warns(UserWarning, match='last good weights are restored'): again.remove_cb(again.progress).fit(1)
    assert again.roll_back_on_nan.n==1 and weights(again).isfinite().all()

# models, exports, histories
@pytest.mark.parametrize('ending', ['', '.pth', '.safetensors'])
def test_models(store, ending):
    if ending=='.safetensors': pytest.importorskip('safetensors')
    a,b,c = mk(),mk(model=nn.Linear(4, 1)),mk(model=nn.Linear(4, 1))
    a.fit(1)
    path = a.save(f'{store}/m{ending}', with_opt=not ending)
    assert isinstance(path, StorePath) and path.is_file()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        b.load(path); c.load(str(path), with_opt=False)
    assert torch.equal(weights(a), weights(b)) and torch.equal(weights(a), weights(c))
    with pytest.raises(FileNotFoundError, match='did you mean `m'): b.load(f'{store}/mm{ending}')
    again = load_learner(a.export(f'{store}/e{ending}'), nn.Linear(4, 1))
    assert torch.equal(weights(again), weights(a))

@pytest.mark.parametrize('fname', ['best', 'best-{epoch}'])
def test_the_best_model(store, fname, tmp_path):
    there,here = mk(SaveModelCallback(fname=f'{store}/{fname}')),mk(SaveModelCallback(fname=fname), path=tmp_path)
    for l in (there, here): l.fit(3, lr=.3)
    assert torch.equal(weights(there), weights(here)) and there.save_model.last_saved_path.name==here.save_model.last_saved_path.name

def test_the_best_model_is_kept_without_a_connection(store, monkeypatch):
    now = []
    failing(monkeypatch, lambda: now and now[0].epoch<2)
    learn = mk(SaveModelCallback(fname=f'{store}/best'), at('before_batch', lambda cb: now[:] or now.append(cb.learn), order=-99))
    with pytest.warns(UserWarning, match='held in memory until it can be written'): learn.fit(3)
    assert (as_path(store)/'best.pth').is_file()

def test_a_file_that_another_run_replaced_is_noticed(store):
    def other(cb): mk(model=nn.Linear(4, 1)).save(f'{store}/best', with_opt=False)
    with pytest.raises(RuntimeError, match='was changed since this run saved it'):
        mk(SaveModelCallback(fname=f'{store}/best'), at('after_epoch', other, lambda cb: cb.learn.epoch==2, order=99)).fit(3)

def test_a_history(store):
    learn = mk()
    learn.fit(2)
    learn.recorder.history.to_file(f'{store}/h.json')
    assert History.from_file(f'{store}/h.json')==learn.recorder.history

# unsupported uses
@pytest.mark.parametrize('make', [lambda s: CSVLogger(f'{s}/log.csv'), lambda s: JsonLogger(f'{s}/log.jsonl')])
def test_a_log_in_a_store_raises(store, make):
    with pytest.raises(ValueError, match='grows row by row.*pass a local path'): make(store)

def test_a_learners_path_must_be_local(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for act in (lambda l: l.save('m'), lambda l: l.fit(1, cbs=CheckpointCallback()), lambda l: l.fit(1, cbs=CSVLogger()), lambda l: l.fit(1, cbs=SaveModelCallback())):
        with pytest.raises(ValueError, match="is not a URL.*Pass the string 'memory://run'"): act(mk(path=store))
    with pytest.raises(ValueError, match='must be a local path'): mk().get_preds(mmap=f'{store}/preds')
    assert [*tmp_path.iterdir()]==[]
