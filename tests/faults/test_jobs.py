"""The jobs of `nbs/examples`: each notebook, killed in the middle and restarted, ends like an uninterrupted one.

The notebooks contain nothing for this. A cell before their first gives each Learner a `CheckpointCallback`, and each
fit `resume='auto'`; a cell after their last writes all variables, bit for bit: weights, histories, scores, texts.
"""
import json, os, pytest
from importlib.util import find_spec
from pathlib import Path
import torch
from test_notebooks import Server, jobs, needed
from toys import few

pytestmark = few(10_000, 1)   # of the slow cases of each test; all with LEARNKIT_SWEEP=1

root = Path(__file__).resolve().parents[2]

BEFORE = '''
import os as _os, signal as _signal
from pathlib import Path as _Path
import learnkit.all as _lk
from learnkit.learner.learner import Learner as _Learner

class _Watch(_lk.Callback):
    "Counts the batches of all fits, and kills at number `kill_at`, with some of them after the last checkpoint"
    order,run_valid,modes,acts,n,learners = 99,False,('fit',),'nothing',0,[]
    def after_batch(self):
        _Watch.n += 1
        if _Watch.n=={kill_at}: _os.kill(_os.getpid(), _signal.SIGKILL)

def _watch(learn):
    _Watch.learners.append(learn)
    return [_lk.CheckpointCallback('19ba', folder=_Path({folder!r})/str(len(_Watch.learners))), _Watch()]
_Learner._on_create.append(_watch)

def _train(self, mode, *args, resume=None, _do=_Learner._train, **kwargs):
    _do(self, mode, *args[:6], resume='auto' if mode=='fit' else None, **kwargs)
_Learner._train = _train
'''

AFTER = '''
import hashlib as _hashlib, json as _json, random as _random, numpy as _np
def _print_of(v):
    "What tells whether two values are the same, to the bit; None of what is no value"
    if isinstance(v, _Learner): return _print_of([v.model.state_dict(), [[(k,o) for k,o in r.items() if k!='time'] for r in v.recorder.history], v.train_iter])
    if isinstance(v, _lk.nn.Module): return _print_of(v.state_dict())
    if isinstance(v, _lk.torch.Tensor): v = v.detach().cpu().numpy()
    if isinstance(v, (_np.ndarray,_np.generic)): return None if v.dtype==object else _hashlib.sha1(v.tobytes()).hexdigest()
    if isinstance(v, dict): return {{str(k):_print_of(o) for k,o in v.items()}}
    if isinstance(v, (list,tuple)): return [_print_of(o) for o in v]
    if isinstance(v, (int,float,str,bool)): return repr(v)
_end = {{k:_print_of(v) for k,v in [*globals().items()] if k[:1]!='_' and k not in ('In','Out','exit','quit')}}
_end.update(learners=_print_of(_Watch.learners), rng=[repr(_random.random()), repr(_lk.torch.rand(()).item())], n=None)
_Path({folder!r}, 'end.json').write_text(_json.dumps(dict(n=_Watch.n, end=_end)))
'''

@pytest.fixture(scope='module')
def start(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp('jobs'))
    yield server
    server.close()

def run_notebook(start, job, folder, kill_at=0):
    "Run the notebook of `job`; return its exit status, its output, and its final values or None"
    cell = lambda s: dict(cell_type='code', id='x', metadata={}, outputs=[], execution_count=None, source=s.format(folder=str(folder), kill_at=kill_at))
    nb = json.loads((root/f'nbs/examples/{job}.ipynb').read_text(encoding='utf-8'))
    nb['cells'] = [cell(BEFORE), *nb['cells'], cell(AFTER)]
    folder.mkdir(exist_ok=True)
    path = folder/f'{job}.ipynb'
    path.write_text(json.dumps(nb), encoding='utf-8')
    status,output = start(path)
    if status not in (0, -9): raise AssertionError(output[-6000:])
    end = folder/'end.json'
    return status,output,json.loads(end.read_text()) if end.exists() else None

@pytest.mark.slow
@pytest.mark.skipif(os.name!='posix', reason='kills a process')
@pytest.mark.parametrize('job', jobs)
def test_killed_job(start, tmp_path, job):
    "Whatever a notebook trains besides the model (a discriminator and its optimizer, a teacher, games) is resumed too"
    if missing := [m for m in needed(root/f'nbs/examples/{job}.ipynb') if find_spec(m) is None]: pytest.skip(f'it needs {" and ".join(missing)}')
    status,_,whole = run_notebook(start, job, tmp_path/'whole')
    assert status==0 and whole['n']>30
    status,output,_ = run_notebook(start, job, tmp_path/'cut', kill_at=whole['n']*5//8+3)
    assert status==-9, output[-3000:]
    status,output,again = run_notebook(start, job, tmp_path/'cut')
    assert status==0 and 0<again['n']<whole['n']*5//8, output[-3000:]
    assert 'begins with the old value' not in output and 'from the beginning' not in output, output[-3000:]
    assert again['end'].keys()==whole['end'].keys()
    odd = [k for k,v in whole['end'].items() if again['end'][k]!=v]
    assert not odd, f'{odd} differ after the resume'
