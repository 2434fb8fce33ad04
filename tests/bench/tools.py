"""What all parts share: taking turns, a clock, a table, and what is trained"""
import io, json, os, platform, statistics, subprocess, sys, time
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

root = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root))
import torch
from torch import nn
from torch.nn import functional as F
torch.set_num_threads(1)

# time

class Screen(io.StringIO):
    "A terminal that nobody looks at: the progress bar draws on it"
    def isatty(self): return True

@contextmanager
def unseen():
    "What is printed is drawn on such a screen"
    with redirect_stdout(Screen()), redirect_stderr(Screen()): yield

def cpu():
    "Seconds of the processor so far, those of child processes that have ended included"
    t = os.times()
    return time.process_time() + t.children_user + t.children_system

def timed(f, clock=cpu):
    "A function that runs `f` and gives the seconds that it took"
    def _f():
        with unseen(): start = clock(); f(); return clock() - start
    return _f

def spread(xs):
    "The median and the two quartiles, between which half of `xs` lies"
    if len(xs)==1: return xs[0],xs[0],xs[0]
    low,mid,high = statistics.quantiles(xs, n=4, method='inclusive')
    return mid,low,high

def extremes(xs):
    "The median, the least and the most"
    return statistics.median(xs),min(xs),max(xs)

def known(xs, to=.02, least=7):
    "Is the median of `xs` known to about 2 percent: is the notch of their box plot so narrow (McGill, Tukey & Larsen 1978)?"
    if len(xs)<least: return False
    mid,low,high = spread(xs)
    return 1.57*(high-low)/len(xs)**.5 <= to*mid

def take_turns(rounds, pairs):
    """Call each of `pairs`, a function of the number of the round that gives two times, in turn: until the median of their ratios is
    known, `rounds` times at most. Both are taken one right after the other, so what slows the machine down slows down both.
    One that gives None takes no further part."""
    res = {k:[] for k in pairs}
    for i in range(rounds):
        for k in [k for k,ts in res.items() if not known([b/a for a,b in ts])]:
            if got := pairs[k](i): res[k].append(got)
            else: del res[k]
    return res

def in_turn(rounds, first, **others):
    "Time `first` beside each other function. The median seconds of `first`, and of each other one its ratio: median and quartiles."
    for f in (first, *others.values()): f()
    def pair(f): return lambda i: (first(), f()) if i%2==0 else (f(), first())[::-1]
    times = take_turns(rounds, {k:pair(f) for k,f in others.items()})
    return statistics.median(a for ts in times.values() for a,_ in ts),{k:spread([b/a for a,b in ts]) for k,ts in times.items()}

def importing(what):
    "A function that imports `what` in a fresh process, and gives the processor's seconds that PyTorch took there, and `what` after it"
    code = f"import time; a = time.process_time(); import torch; b = time.process_time(); {what}; print(b-a, time.process_time()-b)"
    cmd,env = [sys.executable, '-c', code],dict(os.environ, PYTHONWARNINGS='ignore')
    def _f():
        said = subprocess.run(cmd, check=True, cwd=root, capture_output=True, text=True, env=env).stdout
        return [*map(float, said.splitlines()[-1].split())]
    return _f

# results

shown = []   # what `show` has shown, as it goes into results.json

def show(what, base, ratios, unit='', first='by hand', span='quartiles', **more):
    "Print a table: what is measured, the `first` one with its time, and the others with the median and the `span` of all rounds"
    shown.append(dict(what=what, first=first, base=base, unit=unit, span=span, rows={k:[round(v, 4) for v in r] for k,r in ratios.items()}, **more))
    print(f'\n{what}\n  {first:<44}{base}')
    for k,(mid,least,most) in ratios.items(): print(f'  {k:<44}{mid:5.2f}   ({least:.2f} to {most:.2f}){unit}', flush=True)

def machine():
    "Where this runs, without its name"
    gpu = f', {torch.cuda.get_device_name()}' if torch.cuda.is_available() else ''
    return f'{os.cpu_count()} cores{gpu}, {platform.system()}, Python {platform.python_version()}, torch {torch.__version__}, {torch.get_num_threads()} thread'

def save(path, entries, versions):
    "Put `entries` into the results at `path`, in place of older ones of the same parts"
    old = json.loads(path.read_text()) if path.exists() else dict(versions={}, results=[])
    parts = {e['part'] for e in entries}
    kept = [e for e in old['results'] if e['part'] not in parts]
    path.write_text(json.dumps(dict(versions=old['versions'] | versions, results=kept + entries), indent=1, ensure_ascii=False) + '\n')

# what is trained

def tiny():
    "A network so small that all but the loop hardly counts"
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))

def steps(n):
    "`n` batches for it"
    torch.manual_seed(1)
    return [(torch.randn(32, 32), torch.randint(0, 10, (32,))) for _ in range(n)]

def by_hand(batches, opt=torch.optim.SGD, lr=.01, model=None):
    "The loop that one would write, which keeps nothing"
    model = tiny() if model is None else model
    opt = opt(model.parameters(), lr=lr)
    for xb,yb in batches:
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        opt.step()
        opt.zero_grad()
    return model

def learner(batches, opt=torch.optim.SGD, model=None, **kw):
    "The same as a Learner"
    from learnkit import DataLoaders, Learner
    return Learner(DataLoaders(batches), tiny() if model is None else model, F.cross_entropy, opt, lr=.01, **kw)

class Rows(torch.utils.data.Dataset):
    "Rows of `x` and `y` that a loader takes batch by batch, in order: as cheap as a loader gets"
    def __init__(self, x, y): self.x,self.y = x,y
    def __len__(self): return len(self.x)
    def __getitem__(self, i): return self.x[i],self.y[i]
    def __getitems__(self, idxs): i = slice(idxs[0], idxs[-1]+1); return self.x[i],self.y[i].flatten()   # of texts: a target for each token

def as_is(batch): return batch

def loader(x, y, bs):
    "A plain PyTorch loader of `Rows`"
    return torch.utils.data.DataLoader(Rows(x, y), bs, collate_fn=as_is)

def many(rows=200_000):
    "Rows to predict"
    return loader(torch.randn(rows, 32), torch.zeros(rows).long(), 256)

def images():
    "The digits: pictures and what they show"
    from sklearn.datasets import load_digits
    d = load_digits()
    return torch.tensor(d.images[:,None]/16, dtype=torch.float32),torch.tensor(d.target)

def convnet():
    "A small network for them"
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 10))

def place(model):
    "Where a model is, and where it is to be trained"
    return next(model.parameters()).device.type

def fit_by_hand(model, opt, train, valid=None, epochs=1):
    "The whole job by hand: epochs of training, each with the loss and the accuracy of a validation"
    opt,device = opt(model.parameters()),place(model)
    for _ in range(epochs):
        model.train()
        for xb,yb in train:
            F.cross_entropy(model(xb.to(device)), yb.to(device)).backward()
            opt.step()
            opt.zero_grad()
        if valid is not None: validate_by_hand(model, valid)

@torch.no_grad()
def validate_by_hand(model, valid):
    model.eval()
    loss = right = n = 0
    for xb,yb in valid:
        pred = model(xb)
        loss,right,n = loss + F.cross_entropy(pred, yb)*len(yb),right + (pred.argmax(1)==yb).sum(),n + len(yb)
    return loss.item()/n,right.item()/n

@torch.no_grad()
def predict_by_hand(model, batches):
    model.eval()
    preds,targs = zip(*[(model(xb), yb) for xb,yb in batches])
    return torch.cat(preds),torch.cat(targs)

# memory

def peak(f):
    "By how many MiB `f` raises the peak of this process's memory; its result is held, as whoever asked for it would"
    def memory(k): return int(next(l.split()[1] for l in Path('/proc/self/status').read_text().splitlines() if l.startswith(k)))/1024
    Path('/proc/self/clear_refs').write_text('5')   # the peak begins anew
    before = memory('VmRSS')
    f()
    return memory('VmHWM') - before
