"""Records everything that a callback of another library receives, in that library's own trainer and in a Learner, and
compares the two call by call. An entry is the name of the hook and the values: its arguments, and the documented
attributes of the trainer, the state and the logs."""
import json, math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

folder = Path(__file__).parent/'recorded'

# the same small job for all: the last batch is smaller, in training and in validation

def rows(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 8, generator=g)
    return x,(x@torch.linspace(-1, 1, 24).view(8, 3)).argmax(1)

train_rows,valid_rows = rows(40, 1),rows(24, 2)
bs,lr = 16,.2

def loader(rows, bs=bs): return DataLoader(TensorDataset(*rows), bs)

def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8,6), nn.Tanh(), nn.Linear(6,3))

def accuracy(pred, targ): return (pred.argmax(-1)==targ).float().mean()

class Named(nn.Module):
    "Takes entries of the batch by name, and returns a dict that contains the loss if there are labels"
    def __init__(self):
        super().__init__()
        self.net = net()
    def forward(self, x, labels=None):
        logits = self.net(x)
        if labels is None: return dict(logits=logits)
        return dict(loss=nn.functional.cross_entropy(logits, labels), logits=logits)

def named_items(rows): return [dict(x=x, labels=y) for x,y in zip(*rows)]

class Stopped(Exception): "Raised by the recorder in the job that tests an error"

# entries

def brief(o):
    "Return what is compared of a value: numbers and strings as they are, the shape and the sum of a tensor"
    if o is None or isinstance(o, (bool,str,int)): return o
    if isinstance(o, float): return o if math.isfinite(o) else str(o)
    if isinstance(o, Mapping): return {str(k):brief(v) for k,v in o.items()}
    if isinstance(o, (list,tuple)): return [type(o).__name__, *map(brief, o)]
    if isinstance(o, nn.Module): return 'a module'
    if isinstance(o, BaseException): return f'{type(o).__name__}: {o}'
    if not hasattr(o, 'shape'): return type(o).__name__
    t = o.detach().cpu() if hasattr(o, 'detach') else torch.as_tensor(o)
    return t.item() if t.ndim==0 else dict(shape=list(t.shape), sum=t.double().sum().item())

class Notes(list):
    "The entries, in the order of the calls"
    def add(self, hook, **given): self.append([hook, {k:brief(v) for k,v in given.items()}])

def diff(a, b, at=''):
    "Return `(place, value in a, value in b)` for each place at which two entries differ"
    if isinstance(a, dict) and isinstance(b, dict):
        keys = [*a, *(k for k in b if k not in a)]
        return [d for k in keys for d in diff(a.get(k, 'missing'), b.get(k, 'missing'), f'{at}.{k}' if at else k)]
    if isinstance(a, list) and isinstance(b, list) and len(a)==len(b):
        return [d for i,(x,y) in enumerate(zip(a, b)) for d in diff(x, y, f'{at}[{i}]')]
    numbers = all(isinstance(o, (int,float)) and not isinstance(o, bool) for o in (a, b))
    same = math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-4) if numbers else a==b
    return [] if same else [(at, a, b)]

def is_known(hook, at, known):
    "Return whether the list of differences contains this place, as `hook place`, `* place` or `hook *`"
    names = {f'{hook} {at}', f'* {at}', f'{hook} *'}
    return any(k in names or any(n.startswith(k+'.') for n in names) for k in known)

def known_in(job, known):
    "The listed differences that apply to this job: those for all jobs, and those written `job/hook place`"
    return {k.removeprefix(f'{job}/') for k in known if '/' not in k or k.startswith(f'{job}/')}

def compare(theirs, ours, known, job=''):
    "Return the number of entries compared, the differences that are not listed, and those that are"
    known = known_in(job, known)
    skipped = {k.removesuffix(' *') for k in known if k.endswith(' *')}
    a,b = [[e for e in entries if e[0] not in skipped] for entries in (theirs, ours)]
    hooks = [[e[0] for e in entries] for entries in (a, b)]
    if hooks[0]!=hooks[1]:
        i = next((i for i,(x,y) in enumerate(zip(*hooks)) if x!=y), min(map(len, hooks)))
        return 0,[(f'hook {i}', hooks[0][max(0,i-3):i+4], hooks[1][max(0,i-3):i+4])],[]
    found = [(hook,*d) for (hook,x),(_,y) in zip(a, b) for d in diff(x, y)]
    new = [d for d in found if not is_known(d[0], d[1], known)]
    return len(a),new,[d for d in found if d not in new]

class Count(NamedTuple):
    "One job's row in the table of `coming_from`"
    methods:int    # distinct hooks that were called
    calls:int      # all calls
    compared:int   # calls of hooks that are not listed as different as a whole
    values:int     # values of the compared calls
    differ:int     # those of these values that are listed as different

def count(theirs, ours, known, job):
    "Count what was compared in a job, and how much of that is listed as different"
    as_a_whole = {k.removesuffix(' *') for k in known_in(job, known) if k.endswith(' *')}
    compared = [(hook,given) for hook,given in theirs if hook not in as_a_whole]
    listed = compare(theirs, ours, known, job)[2]
    return Count(len({hook for hook,_ in theirs}), len(theirs), len(compared), sum(count_values(given) for _,given in compared), len(listed))

def table_row(system, job, counts): return f'| {system} | {job} | '+' | '.join(map(str, counts))+' |'

def count_values(o):
    if isinstance(o, dict): return sum(map(count_values, o.values()))
    if isinstance(o, list): return sum(map(count_values, o))
    return 1

# the entries of each library's own trainer are stored in one file, with its version

def path_of(system): return folder/f'{system}.json'
def write(system, version, jobs):
    folder.mkdir(exist_ok=True)
    path_of(system).write_text(json.dumps(dict(version=version, jobs=rounded(jobs)), indent=None, separators=(',',':'))+'\n')
def rounded(o):
    if isinstance(o, dict): return {k:rounded(v) for k,v in o.items()}
    if isinstance(o, list): return [*map(rounded, o)]
    return float(f'{o:.6g}') if isinstance(o, float) else o
def read(system): return json.loads(path_of(system).read_text())
