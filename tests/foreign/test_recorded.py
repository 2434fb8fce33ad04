"""A callback is given here what it is given in the trainer that it was written for: entry by entry, value by value, as recorded there (`record.py` writes the
records anew, where the other library is installed). What differs is in the `differences` of its adapter, with a reason, and nothing is listed that is the same."""
import importlib, json, sys
from pathlib import Path
import pytest
sys.path.insert(0, str(Path(__file__).parent))
import recording

SYSTEMS = sorted(p.stem for p in recording.folder.glob('*.json'))
JOBS = [(s, j) for s in SYSTEMS for j in recording.read(s)['jobs']]

@pytest.fixture(autouse=True)
def quiet(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr('learnkit.learner.bars.ProgressCallback.before_fit', lambda self: None)

def differences(system): return importlib.import_module(f'learnkit.contrib.{system}').differences
def ours(system, job): return json.loads(json.dumps(importlib.import_module(f'jobs_{system}').ours(job)))

@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('system,job', JOBS)
def test_given_the_same(system, job):
    theirs = recording.read(system)['jobs'][job]
    n,new,_ = recording.compare(theirs, ours(system, job), differences(system), job)
    assert not new, '\n'.join(' '.join(map(str, d)) for d in new[:12])
    assert n>3

def where(entries, hook): return [i for i,e in enumerate(entries) if e[0]==hook]

@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('system', SYSTEMS)
def test_each_listed_difference_is_one(system):
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

def test_what_differs_is_noticed():
    "The comparison itself: a value, a missing one, a hook"
    a = [['begin', dict(logs=dict(loss=.5))], ['end', dict(logs={})]]
    assert recording.compare(a, a, {})==(2, [], [])
    b = [['begin', dict(logs=dict(loss=.51))], ['end', dict(logs={})]]
    assert recording.compare(a, b, {})[1]==[('begin','logs.loss',.5,.51)]
    assert recording.compare(a, b, {'begin logs.loss':'why'})[1:]==([], [('begin','logs.loss',.5,.51)])
    assert recording.compare(a, [a[0]], {})[1]
    assert recording.compare(a, [['begin', dict(logs={})], a[1]], {})[1]==[('begin','logs.loss',.5,'missing')]
