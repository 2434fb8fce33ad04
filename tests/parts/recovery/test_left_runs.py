"""The record of a run is read from its checkpoints without the weights; forged checkpoints raise and run no code"""
import os, warnings
from pathlib import Path
import pytest, torch
from hypothesis import given, settings, strategies as st
from torch import nn
from learnkit.all import CheckpointCallback, GradientAccumulation, Run, Runs, ValidateEvery, list_checkpoints, read_checkpoint, runs
from learnkit.loop.run import null_logger
from learnkit.recovery.file import write_checkpoint
from learnkit.recovery.runs import names_of
from toys import at, draws, learner, throw

def train(folder, *cbs, every='2ba', n_epoch=3, killed_at=None, fits=1, **kw):
    stop = [] if killed_at is None else [at('after_batch', throw(SystemError()), lambda cb: cb.learn.training and cb.learn.train_iter==killed_at, order=200)]
    learn = learner(5, cbs=[CheckpointCallback(every, keep=None, folder=folder), *cbs], **kw)
    learn.logger = null_logger
    learn.remove_cb(learn.progress)
    try:
        for _ in range(fits): learn.fit(n_epoch, cbs=stop, resume='auto')
    except SystemError: pass
    return learn

@settings(max_examples=200 if os.environ.get("LEARNKIT_SWEEP") else 2, deadline=None)
@given(killed_at=st.lists(st.integers(1, 15), max_size=3), every=st.sampled_from(['1ba', '2ba', '3ba', '1ep']), more=st.sampled_from([(), (GradientAccumulation,), (ValidateEvery,)]))
def test_the_record_equals_that_of_the_run(tmp_path_factory, killed_at, every, more):
    "The record is complete after any number of interruptions, and lists them"
    folder = tmp_path_factory.mktemp('run')
    def cbs(): return [cls(8) if cls is GradientAccumulation else cls('2ba') for cls in more]
    left = []
    for d in killed_at:
        train(folder, *cbs(), every=every, killed_at=d)
        if list_checkpoints(folder/'fit-1'): left.append(Run(folder).train_iter)
    learn = train(folder, *cbs(), every=every)
    run = Run(folder)
    assert run.finished and run.train_iter==learn.train_iter==15 and run.losses==learn.recorder.smooth_loss.raw
    assert run.history==learn.recorder.history and run.lrs==learn.recorder.lrs and run.iters==learn.recorder.iters
    assert run.interrupted==sorted(run.interrupted) and {*run.interrupted}<={*left, 15}
    assert run.checkpoints['train_iter']==sorted(run.checkpoints['train_iter']) and run.checkpoints[-1]['finished']
    assert runs(folder)[0]['train_iter']==15 and all(k in repr(run) for k in ('finished', 'epochs', 'valid_loss'))

def test_a_damaged_weight_is_not_read(tmp_path):
    "A damaged weight goes unnoticed, because `Run` does not read the weights, as documented"
    class Large(nn.Linear):   # 20 MB that are never read
        def __init__(self): super().__init__(4, 1); self.register_buffer('table', torch.arange(5e6))
    learn = train(tmp_path, every='3ep', model=Large(), lr=1e-3)
    path = list_checkpoints(tmp_path/'fit-1')[0]
    data = bytearray(path.read_bytes())
    data[data.find(learn.model.table[1000:1010].numpy().tobytes())] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match='damaged'): read_checkpoint(path)
    assert Run(tmp_path).losses==learn.recorder.smooth_loss.raw

class RunsCommand:
    def __reduce__(self): return os.system, ('touch ran',)

def test_no_code_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train('a')
    path = list_checkpoints(Path('a/fit-1'))[0]
    state = read_checkpoint(path)
    for p in list_checkpoints(Path('a/fit-1')): p.unlink(); p.with_suffix('.json').unlink()
    write_checkpoint({**state, 'settings':RunsCommand()}, path)
    with warnings.catch_warnings(record=True) as w, pytest.raises(ValueError, match='no checkpoint in a/fit-1 can be read'):
        warnings.simplefilter('always')
        Run('a')
    assert 'holds Python code' in str(w[0].message) and not Path('ran').exists()

@pytest.mark.parametrize('text,words', [(b'\x80\x04', 'is damaged'), (None, 'more than 67,108,864 bytes')])
def test_a_damaged_manifest_hides_no_other_checkpoint(text, words, tmp_path):
    train(tmp_path)
    path = list_checkpoints(tmp_path/'fit-1')[0]
    note = path.with_suffix('.json')
    if text is None: os.truncate(note, 2**34)   # a sparse file of zeros
    else: note.write_bytes(text)
    run = Run(tmp_path)
    with pytest.warns(UserWarning, match=words): found = run.checkpoints
    assert run.path!=path and len(found)==len(list_checkpoints(tmp_path/'fit-1'))-1

odd = st.one_of(st.none(), st.integers(-2, 9), st.text(max_size=3), st.lists(st.integers(), max_size=2), st.just({}), st.just([{}]), st.just({'train':[{}]}), st.just(torch.ones(2)), st.just({'history':3}))
@pytest.fixture(scope='module')
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp('sound')
    train(folder)
    return read_checkpoint(list_checkpoints(folder/'fit-1')[0])

@draws(20)
@given(key=st.sampled_from(['train_iter', 'duration', 'n_epoch', 'identity', 'sessions', 'cbs', ('cbs','recorder'), ('cbs','recorder','history'), ('cbs','recorder','train'), ('cbs','recorder','lrs'), ('cbs','recorder','iters')]), value=odd)
def test_forged_values_raise_or_are_shown(sound, tmp_path_factory, key, value):
    folder,state = tmp_path_factory.mktemp('odd'),{**sound}
    *within,last = [key] if isinstance(key, str) else key
    part = state
    for k in within: part[k] = dict(part[k]); part = part[k]
    part[last] = value
    try: write_checkpoint({'epoch':0, 'done':0, **state}, folder/'step-00000015.pth')
    except TypeError: return   # the JSON file of the checkpoint cannot hold a tensor
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        try: run = Run(folder)
        except ValueError: return
        repr(run), run._repr_html_(), run.losses, run.interrupted, run.checkpoints, runs(folder)

def test_text_is_escaped_in_html(tmp_path):
    def bad(name): return f'<img src=x onerror={name}>'
    train(tmp_path/bad('a'), metrics=[(lambda p,y: 0.)], killed_at=None)
    run = Run(tmp_path)
    assert '<img' not in run._repr_html_() + runs(tmp_path)._repr_html_() and '&lt;img' in run._repr_html_()

def test_one_of_several_fits_and_of_several_runs(tmp_path):
    train(tmp_path/'a', fits=2); train(tmp_path/'b/c', lr=.1); train(tmp_path/'b/d', n_epoch=2)
    assert Run(tmp_path/'a').folder.name=='fit-2' and Run(tmp_path/'a', fit=1).folder.name=='fit-1' and Run(tmp_path/'a/fit-1').finished
    with pytest.raises(ValueError, match='has 2 runs'): Run(tmp_path/'b')
    with pytest.raises(ValueError, match='of fit 3'): Run(tmp_path/'a', fit=3)
    table = runs(tmp_path)
    assert [Path(r).relative_to(tmp_path).as_posix() for r in table['run']]==['a/fit-1', 'a/fit-2', 'b/c/fit-1', 'b/d/fit-1']
    assert table.sort_values('train_iter')[0]['train_iter']==10 and table.sort_values('run', ascending=False)[0]['run']==table[-1]['run']
    both = Run(tmp_path/'a').compare(Run(tmp_path/'b/c'))
    assert both.settings['setting']==['lr'] and [float(both.settings[0][n][1:-1]) for n in both.names]==[.05, .1]
    with pytest.raises(TypeError, match='takes runs'): Run(tmp_path/'a').compare('b')
    with pytest.raises(TypeError, match='takes runs'): Run(tmp_path/'a').compare()

def test_an_older_checkpoint_and_one_without_a_recorder(tmp_path, sound):
    state = {k:v for k,v in sound.items() if k not in ('sessions', 'identity', 'duration')}
    write_checkpoint({**state, 'cbs':{}}, tmp_path/'step-00000015.pth')
    run = Run(tmp_path)
    assert run.settings=={} and run.interrupted==[] and run.history==[] and run.losses==[]
    with pytest.raises(ValueError, match='has no losses'): run.plot()

def test_in_a_store(tmp_path):
    fsspec = pytest.importorskip('fsspec')
    fsspec.filesystem('memory').store.clear()
    learn = train('memory://runs/a')
    for where in ('memory://runs/a', 'memory://runs/a/fit-1'): assert Run(where).history==learn.recorder.history
    assert runs('memory://runs/a')['run']==['memory://runs/a/fit-1']
    fsspec.filesystem('memory').store.clear()

paths = st.lists(st.sampled_from('abc'), min_size=1, max_size=4).map(lambda o: Path(*o))
@given(st.lists(paths, min_size=2, max_size=3, unique=True))
def test_names_tell_runs_apart(folders):
    names = names_of(folders)
    assert len({*names})==len(folders) and all(n in p.as_posix() for n,p in zip(names, folders))

numbers = st.one_of(st.none(), st.integers(-3, 3), st.floats(), st.text('ab', max_size=2))
@given(st.lists(numbers, min_size=1), st.booleans())
def test_sorted_by_a_column(values, up):
    got = Runs({'x':v} for v in values).sort_values('x', up)['x']
    known = [v for v in got if isinstance(v, (int,float)) and v==v]
    assert len(got)==len(values) and known==sorted(known, reverse=not up)==got[:len(known)]
    with pytest.raises(KeyError): Runs([dict(x=1)]).sort_values('y')

@pytest.mark.parametrize('folder,fit', [(3, None), (None, None), (['a'], None), ('.', 'last'), ('.', 1.5), ('.', [1])])
def test_wrong_arguments_are_named(tmp_path, monkeypatch, folder, fit):
    train(tmp_path, n_epoch=1)
    monkeypatch.chdir(tmp_path)
    with pytest.raises((TypeError, ValueError), match='fit' if fit else 'folder'): Run(folder, fit)
    with pytest.raises(FileNotFoundError, match='no folder nowhere'): Run('nowhere')
