"""What all parts share: a clock, rounds that alternate, the table of results, and what is trained"""
import io, json, os, platform, statistics, subprocess, sys, time
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

root = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root))
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
torch.set_num_threads(1)

# time

class Terminal(io.StringIO):
    "A terminal without a screen: progress bars are drawn on it"
    def isatty(self): return True

@contextmanager
def unseen():
    "Print to such a terminal"
    with redirect_stdout(Terminal()), redirect_stderr(Terminal()): yield

def cpu():
    "Return the CPU seconds of this process so far, including those of child processes that have ended"
    times = os.times()
    return time.process_time() + times.children_user + times.children_system

def timed(f, clock=cpu):
    "Return a function that runs `f` and returns the seconds that it took"
    def seconds():
        with unseen():
            start = clock()
            f()
            return clock() - start
    return seconds

def spread(values):
    "Return the median and the two quartiles, between which half of the values lie"
    if len(values)==1: return values[0],values[0],values[0]
    low,mid,high = statistics.quantiles(values, n=4, method='inclusive')
    return mid,low,high

def extremes(values):
    "Return the median, the minimum and the maximum"
    return statistics.median(values),min(values),max(values)

def is_known(values, to=.02, least=7):
    """Return whether the median is known to about 2 percent: whether the notch of the box plot of `values` is so narrow
    (McGill, Tukey & Larsen 1978)"""
    if len(values)<least: return False
    mid,low,high = spread(values)
    return 1.57*(high-low)/len(values)**.5 <= to*mid

def ratios_of(pairs):
    "Return the second time of each pair divided by the first"
    return [second/first for first,second in pairs]

def alternate(rounds, pairs):
    """Call the functions in `pairs` round-robin, each until the median of its ratios is known, at most `rounds` times.

    Each is called with the number of the round and returns two times that were measured one right after the other, so
    that what slows down the machine slows down both. A function that returns None is not called again."""
    times = {name:[] for name in pairs}
    for i in range(rounds):
        unknown = [name for name,found in times.items() if not is_known(ratios_of(found))]
        for name in unknown:
            pair = pairs[name](i)
            if pair: times[name].append(pair)
            else: del times[name]
    return times

def compare(rounds, first, **others):
    """Time `first` next to each other function. Return the median seconds of `first`, and for each other function the
    ratio of its time to that of `first`: median and quartiles"""
    for f in (first, *others.values()): f()   # warm-up
    def next_to(other):
        def pair(i):
            "Return the times of `first` and `other`, which runs first in every second round"
            if i%2==0: return first(),other()
            seconds = other()
            return first(),seconds
        return pair
    times = alternate(rounds, {name:next_to(f) for name,f in others.items()})
    base = statistics.median(seconds for pairs in times.values() for seconds,_ in pairs)
    return base,{name:spread(ratios_of(pairs)) for name,pairs in times.items()}

time_imports = """
import time
start = time.process_time()
import torch
imported = time.process_time()
{code}
print(imported-start, time.process_time()-imported)
"""

def importing(code):
    """Return a function that runs `code`, an import, in a fresh process; it returns the CPU seconds that PyTorch took
    there, and those of `code` after it"""
    command = [sys.executable, '-c', time_imports.format(code=code)]
    env = dict(os.environ, PYTHONWARNINGS='ignore')
    def seconds():
        printed = subprocess.run(command, check=True, cwd=root, capture_output=True, text=True, env=env).stdout
        last_line = printed.splitlines()[-1]
        return [float(number) for number in last_line.split()]
    return seconds

# results

shown = []   # what `show` has shown, as it is written to results.json

def show(what, base, ratios, unit='', first='by hand', span='quartiles', **more):
    "Print a table: `what` is measured, the `first` row with its time, the others with the median and the `span`"
    rows = {name:[round(value, 4) for value in row] for name,row in ratios.items()}
    shown.append(dict(what=what, first=first, base=base, unit=unit, span=span, rows=rows, **more))
    print(f'\n{what}\n  {first:<44}{base}')
    for name,(mid,least,most) in ratios.items():
        print(f'  {name:<44}{mid:5.2f}   ({least:.2f} to {most:.2f}){unit}', flush=True)

def machine():
    "Return where this runs, without the name of the machine"
    cores = f'{os.cpu_count()} cores'
    if torch.cuda.is_available(): cores += f', {torch.cuda.get_device_name()}'
    python = f'Python {platform.python_version()}'
    return f'{cores}, {platform.system()}, {python}, torch {torch.__version__}, {torch.get_num_threads()} thread'

def save(path, entries, versions):
    "Add `entries` to the results at `path`; older results of the same parts are replaced"
    old = dict(versions={}, results=[])
    if path.exists(): old = json.loads(path.read_text())
    measured = {entry['part'] for entry in entries}
    others = [entry for entry in old['results'] if entry['part'] not in measured]
    results = dict(versions=old['versions'] | versions, results=others + entries)
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + '\n')

# what is trained

def tiny():
    "Return a network so small that the loop around it is a large part of a step"
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))

def steps(n):
    "Return `n` batches for it"
    torch.manual_seed(1)
    return [(torch.randn(32, 32), torch.randint(0, 10, (32,))) for _ in range(n)]

def plain_loop(batches, opt=torch.optim.SGD, lr=.01, model=None):
    "Train with a hand-written loop, which records nothing"
    model = tiny() if model is None else model
    opt = opt(model.parameters(), lr=lr)
    for xb,yb in batches:
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        opt.step()
        opt.zero_grad()
    return model

def learner(batches, opt=torch.optim.SGD, model=None, **kwargs):
    "Return a Learner that does the same"
    from learnkit import DataLoaders, Learner
    model = tiny() if model is None else model
    return Learner(DataLoaders(batches), model, F.cross_entropy, opt, lr=.01, **kwargs)

class Rows(Dataset):
    "Rows of `x` and `y` that a DataLoader fetches batch by batch, in order: as cheap as a DataLoader gets"
    def __init__(self, x, y): self.x,self.y = x,y
    def __len__(self): return len(self.x)
    def __getitem__(self, i): return self.x[i],self.y[i]
    def __getitems__(self, indices):
        rows = slice(indices[0], indices[-1]+1)
        return self.x[rows],self.y[rows].flatten()   # of texts: a target for each token

def as_is(batch): return batch

def loader(x, y, bs):
    "Return a plain DataLoader of `Rows`"
    return DataLoader(Rows(x, y), bs, collate_fn=as_is)

def many(rows=200_000):
    "Return a DataLoader of rows to predict"
    return loader(torch.randn(rows, 32), torch.zeros(rows).long(), 256)

def images():
    "Return the images of scikit-learn's digits, and their classes"
    from sklearn.datasets import load_digits
    digits = load_digits()
    return torch.tensor(digits.images[:,None]/16, dtype=torch.float32),torch.tensor(digits.target)

def convnet():
    "Return a small convolutional network for them"
    torch.manual_seed(0)
    convs = [nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU()]
    return nn.Sequential(*convs, nn.Flatten(), nn.Linear(1024, 10))

def device_of(model):
    "Return the type of the device that a model is on"
    return next(model.parameters()).device.type

def plain_fit(model, opt, train, valid=None, epochs=1):
    "Do the whole job with a hand-written loop: epochs of training, each with the loss and the accuracy on `valid`"
    opt = opt(model.parameters())
    device = device_of(model)
    for _ in range(epochs):
        model.train()
        for xb,yb in train:
            F.cross_entropy(model(xb.to(device)), yb.to(device)).backward()
            opt.step()
            opt.zero_grad()
        if valid is not None: plain_validate(model, valid)

@torch.no_grad()
def plain_validate(model, batches):
    "Return the loss and the accuracy"
    model.eval()
    loss = right = n = 0
    for xb,yb in batches:
        pred = model(xb)
        loss += F.cross_entropy(pred, yb)*len(yb)
        right += (pred.argmax(1)==yb).sum()
        n += len(yb)
    return loss.item()/n,right.item()/n

@torch.no_grad()
def plain_predict(model, batches):
    "Return the predictions and the targets of all batches"
    model.eval()
    preds,targs = [],[]
    for xb,yb in batches:
        preds.append(model(xb))
        targs.append(yb)
    return torch.cat(preds),torch.cat(targs)

# memory

def memory(field):
    "Return the MiB that Linux reports for this process: `VmRSS` is the memory in use, `VmHWM` the peak"
    lines = Path('/proc/self/status').read_text().splitlines()
    line = next(line for line in lines if line.startswith(field))
    return int(line.split()[1])/1024

def peak(f):
    "Return by how many MiB `f` raises the peak of this process's memory"
    Path('/proc/self/clear_refs').write_text('5')   # resets the peak
    before = memory('VmRSS')
    f()
    return memory('VmHWM') - before
