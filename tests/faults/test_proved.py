"""A replay in a fresh process starts at a checkpoint, as a run resumed after a crash does, and compares each loss with
the record. It reveals state that no checkpoint holds: globals, closures, class attributes, generators of the user."""
import json, subprocess, sys, warnings
from itertools import count
from pathlib import Path
import pytest, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from learnkit.all import Callback, CheckpointCallback
from toys import learner, slow

root = Path(__file__).resolve().parents[2]
torch.set_num_threads(1)

SCRIPT = '''
import json, random, sys, warnings
import torch
from torch import nn
from learnkit.all import Callback, CheckpointCallback, DataLoaders, Learner

def mse(pred, y): return nn.functional.mse_loss(pred, y)
{source}
torch.manual_seed(0)
random.seed(0)
x = torch.randn(40, 4)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 1))
learn = Learner(DataLoaders.from_tensors(x, x.sum(1, keepdim=True), bs=4), model, loss, lr=.01, path={path!r}, cbs=[CheckpointCallback('3ba'), *cbs])
with warnings.catch_warnings(record=True) as said, learn.no_bar(), learn.no_logging():
    warnings.simplefilter('always')
    if sys.argv[1]=='fit': learn.fit(1); res = {{}}
    else: res = learn.replay({path!r}, 5)
print(json.dumps(dict(res, said=[str(w.message) for w in said])))
'''

script_parts = dict(
    kept = 'loss,cbs = mse,[]',
    attribute = """
class Loss:
    def __init__(self): self.n = 0
    def __call__(self, pred, y): self.n += 1; return mse(pred, y)/self.n
loss,cbs = Loss(),[]""",
    global_number = """
n = 0
def loss(pred, y):
    global n
    n += 1
    return mse(pred, y)/n
cbs = []""",
    class_number = """
class Loss:
    n = 0
    def __call__(self, pred, y): Loss.n += 1; return mse(pred, y)/Loss.n
loss,cbs = Loss(),[]""",
    generator = """
r = random.Random(0)
class Noisy(Callback):
    def state_dict(self): return {}
    def load_state_dict(self, state): pass
    def after_backward(self): self.learn.model[3].bias.grad += r.random()
loss,cbs = mse,[Noisy]""")

def output(script, *args):
    "The last line that a script prints in a process of its own, parsed as JSON"
    res = subprocess.run([sys.executable, str(script), *args], capture_output=True, text=True, cwd=script.parent, env=dict(PYTHONPATH=str(root), PATH='', OMP_NUM_THREADS='1'))
    assert res.returncode==0, res.stderr
    return json.loads(res.stdout.strip().splitlines()[-1])

@pytest.mark.parametrize('kind', ['kept', *slow('global_number', 'attribute', 'class_number', 'generator')])
def test_a_replay_in_a_fresh_process(kind, tmp_path):
    script = tmp_path/'train.py'
    script.write_text(SCRIPT.format(source=script_parts[kind], path=str(tmp_path/'run')))
    output(script, 'fit')
    at = output(script, 'replay')
    exact = kind in ('kept', 'attribute')
    odd = [s for s in at['said'] if 'is not exact' in s]
    assert (at['compared'], len(odd)) == (2, 0 if exact else 1)
    assert (at['equal']==2)==exact
    if not exact: assert 'the loss depends on something that is in no checkpoint' in odd[0]

def replayed(make, tmp_path):
    "The numbers of losses compared and equal in a replay in this process, and its warnings"
    def made(): return learner(n=5, path=tmp_path, cbs=[CheckpointCallback('3ba'), *make()[0]], **make()[1])
    torch.manual_seed(0)
    learn = made()
    with learn.no_bar(), learn.no_logging(): learn.fit(2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        at = made().replay(tmp_path, 5)
    return at['compared'],at['equal'],[str(w.message) for w in caught]

class Fewer:
    "A loss with a counter in C, which no checkpoint holds"
    n = count(1)
    def __call__(self, pred, targ): return nn.functional.mse_loss(pred, targ)/next(self.n)

class Cached(Dataset):
    seen = set()
    def __len__(self): return 20
    def __getitem__(self, i):
        x = torch.full((4,), float(len(self.seen)))
        Cached.seen.add(i)
        return x,x.sum()[None]

def test_a_replay_in_this_process_shows_differences(tmp_path):
    "State that the first Learner left in objects of the script changes the losses of a replay"
    compared,equal,messages = replayed(lambda: ([], dict(loss_func=Fewer())), tmp_path/'fewer')
    assert equal<compared and 'the loss first differs at step' in messages[-1]
    compared,equal,messages = replayed(lambda: ([], dict(dls=(DataLoader(Cached(), 4), None))), tmp_path/'cached')
    assert equal<compared

def test_a_replay_with_saved_state_is_equal(tmp_path):
    class Counts(Callback):
        saves,n = ('n',),0
        def after_backward(self): self.n += 1; self.learn.model.bias.grad += self.n
    compared,equal,messages = replayed(lambda: ([Counts()], {}), tmp_path)
    assert compared==equal>0 and not [s for s in messages if 'is not exact' in s]
