"""A callback receives in a Learner what it receives in the trainer that it was written for, call by call and value by
value, as recorded there (`record.py` renews the records where the other library is installed). The `differences` of its
adapter list what differs, with a reason, and nothing else."""
import importlib, json, sys
from functools import cache
from pathlib import Path
import pytest
sys.path.insert(0, str(Path(__file__).parent))
import recording
from toys import few

SYSTEMS = sorted(p.stem for p in recording.folder.glob('*.json'))
JOBS = [(s, j) for s in SYSTEMS for j in recording.read(s)['jobs']]

@pytest.fixture(autouse=True)
def quiet(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr('learnkit.learner.bars.ProgressCallback.before_fit', lambda self: None)

def differences(system): return importlib.import_module(f'learnkit.contrib.{system}').differences
@cache
def ours(system, job): return json.loads(json.dumps(importlib.import_module(f'jobs_{system}').ours(job)))

@few(15)
@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('system,job', JOBS)
def test_same_calls_and_values(system, job):
    theirs = recording.read(system)['jobs'][job]
    n,new,_ = recording.compare(theirs, ours(system, job), differences(system), job)
    assert not new, '\n'.join(' '.join(map(str, d)) for d in new[:12])
    assert n>3

def where(entries, hook): return [i for i,e in enumerate(entries) if e[0]==hook]

@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('system', SYSTEMS)
def test_each_listed_difference_exists(system):
    found,listed = set(),differences(system)
    for job,theirs in recording.read(system)['jobs'].items():
        mine = ours(system, job)
        places = recording.compare(theirs, mine, listed, job)[2]
        for k in listed:
            known = recording.known_in(job, [k])
            hooks = [n.removesuffix(' *') for n in known if n.endswith(' *')]
            if any(recording.is_known(hook, at, known) for hook,at,*_ in places): found.add(k)
            if any(where(theirs, hook)!=where(mine, hook) for hook in hooks): found.add(k)
    assert [k for k in listed if k not in found]==[]

PAGE = Path(__file__).resolve().parents[2]/'nbs/examples/coming_from.ipynb'

def text_of_the_page(): return '\n'.join(''.join(c['source']) for c in json.loads(PAGE.read_text(encoding='utf-8'))['cells'])
def rows_of_the_page():
    "Return {library: its rows} of the page's table of what was compared"
    lines = text_of_the_page().splitlines()
    return {s:[o for o in lines if o.startswith(f'| {s} | ')] for s in SYSTEMS}

@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('system', SYSTEMS)
def test_the_table_of_coming_from_is_current(system):
    "`record.py --table` prints the current table"
    listed = differences(system)
    rows = [recording.table_row(system, job, recording.count(theirs, ours(system, job), listed, job)) for job,theirs in recording.read(system)['jobs'].items()]
    assert rows_of_the_page()[system]==rows
    assert recording.read(system)['version'].split(',')[0] in text_of_the_page()

def test_the_totals_are_those_of_the_table():
    numbers = [[int(n) for n in row.strip('| ').split(' | ')[2:]] for rows in rows_of_the_page().values() for row in rows]
    values,differ = (sum(o[i] for o in numbers) for i in (3,4))
    assert f'of {values} values in {len(numbers)} jobs, {differ} differ' in text_of_the_page()

def test_each_difference_has_a_reason():
    for system in SYSTEMS: assert all(len(reason.split())>3 for reason in differences(system).values()), system

def test_methods_of_lightning_that_no_job_calls(tmp_path):
    "They save and load what the callback adds to a checkpoint; Composer's are in `test_promises.py`"
    from torch import nn
    from learnkit.all import CheckpointCallback, DataLoaders, Learner
    class Base: __module__,__qualname__ = 'lightning.pytorch.callbacks.callback','Callback'
    Base.__name__ = 'Callback'
    class Keeps(Base):
        def __init__(self): self.loaded,self.order = [],[]
        def state_dict(self):
            self.order.append('state')
            return {}
        def on_save_checkpoint(self, trainer, pl_module, checkpoint):
            self.order.append('save')
            checkpoint['mine'] = trainer.global_step
        def on_load_checkpoint(self, trainer, pl_module, checkpoint): self.loaded.append(checkpoint['mine'])
        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx): self.order.append(batch_idx)
    data = recording.loader(recording.train_rows)
    saving = 'state','save'
    for n,loaded in (1,None),(2,3):
        cb = Keeps()
        learn = Learner(DataLoaders(data, data), recording.net(), nn.CrossEntropyLoss(), cbs=cb, path=tmp_path)
        with learn.no_logging(): learn.fit(n, cbs=CheckpointCallback('1ep'), resume='auto')
        if loaded: assert cb.loaded==[loaded]
        else: assert (cb.order, cb.loaded)==([*saving,0,1,2,*saving,*saving], [])   # the first save is a trial

def test_compare_finds_differences():
    "`compare` finds a different value, a missing value and a missing hook"
    a = [['begin', dict(logs=dict(loss=.5))], ['end', dict(logs={})]]
    assert recording.compare(a, a, {})==(2, [], [])
    b = [['begin', dict(logs=dict(loss=.51))], ['end', dict(logs={})]]
    assert recording.compare(a, b, {})[1]==[('begin','logs.loss',.5,.51)]
    assert recording.compare(a, b, {'begin logs.loss':'why'})[1:]==([], [('begin','logs.loss',.5,.51)])
    assert recording.compare(a, [a[0]], {})[1]
    assert recording.compare(a, [['begin', dict(logs={})], a[1]], {})[1]==[('begin','logs.loss',.5,'missing')]
