"""CUDA memory snapshots; PyTorch's snapshot functions are replaced by fakes."""
import warnings
from pathlib import Path

import pytest, torch
from learnkit.observe import memory
from learnkit.observe.memory import MemorySnapshot
from toys import at, learner, pretend_cuda, throw

torch.set_num_threads(1)

class Cuda:
    "Records calls of `torch.cuda.memory`: '+' starts recording, '-' stops it, a file name is a dump"
    def __init__(self, monkeypatch):
        self.said,self.on,self.entries = [],False,None
        for k,f in dict(_record_memory_history=self.record, _dump_snapshot=self.dump).items(): monkeypatch.setattr(torch.cuda.memory, k, f)
        pretend_cuda(monkeypatch, memory)
    def record(self, enabled='all', max_entries=None):
        self.on = enabled is not None
        self.entries = max_entries or self.entries
        self.said.append('+' if self.on else '-')
    def dump(self, path):
        assert self.on
        Path(path).write_text('snapshot')
        self.said.append(Path(path).name)

@pytest.fixture
def cuda(monkeypatch): return Cuda(monkeypatch)

def fit(path, *cbs, batches=4, **kw):
    snapshot = MemorySnapshot(**kw)
    learn = learner(batches, 2, path=path, cbs=[snapshot, *cbs])
    try: learn.fit(2)
    except torch.OutOfMemoryError: pass
    return snapshot

@pytest.mark.parametrize('kw,said', [(dict(), ['+', '-','+', 'batches-1-3.pickle', '-']), (dict(on_oom=False), ['-','+', 'batches-1-3.pickle', '-', '-']),
                                     (dict(n=None), ['+','-']), (dict(n=1, skip=0, on_oom=False), ['-','+', 'batches-0-0.pickle', '-', '-']), (dict(n=9), ['+', '-','+', '-'])])
def test_a_few_batches(cuda, tmp_path, kw, said):
    "A fit writes one snapshot of training batches, and recording is off afterwards"
    s = fit(tmp_path, max_entries=7, **kw)
    assert cuda.said==said and not cuda.on and cuda.entries==7
    assert s.files==[tmp_path/'memory'/n for n in said if n.endswith('pickle')] and all(f.exists() for f in s.files)

def test_over_epochs(cuda, tmp_path):
    "Validation batches are not counted"
    assert [f.name for f in fit(tmp_path, batches=2, skip=1, n=3).files]==['batches-1-3.pickle']

@pytest.mark.parametrize('on_oom', [True, False])
def test_when_memory_runs_out(cuda, tmp_path, on_oom):
    fails = at('after_pred', throw(torch.OutOfMemoryError('full')), lambda cb: cb.training and cb.train_iter==5)
    assert [f.name for f in fit(tmp_path, fails, on_oom=on_oom).files]==['batches-1-3.pickle', *['oom-batch-5.pickle']*on_oom] and not cuda.on

def test_another_folder_in_the_middle(cuda, tmp_path, monkeypatch):
    "The snapshot's path does not change with `os.chdir` in a fit; it used to"
    monkeypatch.chdir(tmp_path)
    (tmp_path/'b').mkdir()
    fit('.', at('before_batch', lambda cb: monkeypatch.chdir(tmp_path/'b'), lambda cb: cb.training and cb.train_iter==1))
    assert not list((tmp_path/'b').iterdir()) and (tmp_path/'memory'/'batches-1-3.pickle').exists()

def test_another_error_writes_no_snapshot(cuda, tmp_path):
    s = MemorySnapshot()
    with pytest.raises(KeyError): learner(path=tmp_path, cbs=[s, at('after_pred', throw(KeyError()))]).fit(1)
    assert s.files==[] and cuda.said==['+','-'] and not cuda.on

def test_without_cuda(tmp_path, monkeypatch):
    "Without CUDA it warns once and records nothing"
    cuda = Cuda(monkeypatch)
    pretend_cuda(monkeypatch, memory, False)
    s = MemorySnapshot()
    with pytest.warns(UserWarning, match='no CUDA device'): learner(path=tmp_path, cbs=s).fit(1)
    with warnings.catch_warnings(): warnings.simplefilter('error'); s.learn.fit(1)
    assert cuda.said==[] and not (tmp_path/'memory').exists()

@pytest.mark.parametrize('kw,said', [(dict(n=0), '`n` must be'), (dict(skip=-1), '`skip` must'), (dict(skip=None), '`skip` must'), (dict(max_entries=.5), 'max_entries'), (dict(n=None, on_oom=False), 'records nothing')])
def test_bad_settings(kw, said):
    with pytest.raises(ValueError, match=said): MemorySnapshot(**kw)
