"""What learnkit costs, as ratios to the loop that one would write by hand: everything in one run, in turn, medians.

    python tests/bench/run.py            all of it, some minutes
    python tests/bench/run.py --quick    fewer rounds
    python tests/bench/run.py step       one part: step, digits, deaf, toolkit, checkpoint, preds, import

fastai takes part where it is installed. Counted is the processor's time, which a busy machine disturbs less than the clock's;
look at the spread beside each median all the same.
"""
import argparse, importlib.util, io, os, platform, statistics, subprocess, sys, time
from contextlib import redirect_stdout
from pathlib import Path

root = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root))
import torch
from torch import nn
from torch.nn import functional as F
torch.set_num_threads(1)

class Screen(io.StringIO):
    "A terminal that nobody looks at: the progress bar draws on it"
    def isatty(self): return True

def in_turn(rounds, first, **others):
    "Run all functions in turn, `rounds` times. The median seconds of `first`, and of each other one its ratio: median, least, most."
    for f in (first, *others.values()): f()
    times = [(first(), *(f() for f in others.values())) for _ in range(rounds)]
    ratios = {k:sorted(t[i]/t[0] for t in times) for i,k in enumerate(others, 1)}
    return statistics.median(t[0] for t in times),{k:(statistics.median(r), r[0], r[-1]) for k,r in ratios.items()}

def timed(f):
    "Seconds of the processor that `f` takes, its child processes included"
    def _f():
        with redirect_stdout(Screen()): start = cpu(); f(); return cpu() - start
    return _f

def cpu(): t = os.times(); return time.process_time() + t.children_user + t.children_system

def show(what, base, ratios, unit='', first='by hand'):
    print(f'\n{what}\n  {first:<44}{base}')
    for k,(mid,least,most) in ratios.items(): print(f'  {k:<44}{mid:5.2f}   ({least:.2f} to {most:.2f}){unit}')

# -- a step of a tiny model

def tiny():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))

def by_hand(batches, loss_func=F.cross_entropy, lr=.01):
    model = tiny()
    opt = torch.optim.SGD(model.parameters(), lr=lr)
    for xb,yb in batches:
        loss = loss_func(model(xb), yb)
        loss.backward()
        opt.step()
        opt.zero_grad()

def learner(batches, **kw):
    from learnkit import DataLoaders, Learner
    return Learner(DataLoaders(batches), tiny(), F.cross_entropy, torch.optim.SGD, lr=.01, **kw)

def fastai_learner(batches):
    from fastai.basics import DataLoaders, Learner, OptimWrapper, partial
    from fastai.callback.progress import ProgressCallback
    return Learner(DataLoaders(batches, batches[:1]), tiny(), F.cross_entropy, partial(OptimWrapper, opt=torch.optim.SGD), lr=.01)

def steps(n): return [(torch.randn(32, 32), torch.randint(0, 10, (32,))) for _ in range(n)]

def bench_step(rounds):
    from learnkit import TrainEvalCallback
    batches = steps(1000)
    others = {'learnkit, default callbacks and progress bar': timed(lambda: learner(batches).fit(1)),
              'learnkit, TrainEvalCallback only':             timed(lambda: learner(batches, default_cbs=False, cbs=TrainEvalCallback).fit(1))}
    if importlib.util.find_spec('fastai'): others['fastai, default callbacks'] = timed(lambda: fastai_learner(batches).fit(1))
    else: print('\nfastai is not installed, so it does not take part')
    base,ratios = in_turn(rounds, timed(lambda: by_hand(batches)), **others)
    show('A training step of a tiny network (32-64-10, batches of 32, SGD)', f'{base*1e6/len(batches):.0f} µs', ratios)

# -- callbacks that do not hear a batch, and some that do

def bench_deaf(rounds):
    from learnkit import Callback
    batches = steps(1000)
    class Deaf(Callback):
        def before_epoch(self): pass
    class Hears(Callback):
        def before_batch(self): pass
    def fit(cls, n): learn = learner(batches, cbs=[cls() for _ in range(n)]); return timed(lambda: learn.fit(1))
    base,ratios = in_turn(rounds, fit(Deaf, 0), **{f'{n} more that {what}':fit(cls, n) for cls,what in ((Deaf, 'hear no batch event'), (Hears, 'hear one each batch')) for n in (10, 100)})
    show('Callbacks: ratio to the default ones alone', f'{base*1e6/len(batches):.0f} µs a step', ratios, first='the default ones')

# -- the toolkit: each callback alone

def bench_toolkit(rounds):
    import learnkit.all as lk, tempfile
    batches,path = steps(400),tempfile.mkdtemp()
    cbs = {'GradientAccumulation (every 4th batch)': lambda: lk.GradientAccumulation(128), 'GradientClip': lk.GradientClip, 'EMACallback': lk.EMACallback, 'MicroBatch (2 parts)': lambda: lk.MicroBatch(16),
           'MixedPrecision bf16': lambda: lk.MixedPrecision('bf16'), 'BnFreeze': lk.BnFreeze, 'ShortEpochCallback (all of it)': lambda: lk.ShortEpochCallback(1.), 'StopAfter': lambda: lk.StopAfter(10**6),
           'ParamScheduler, one cycle': lambda: lk.ParamScheduler(lk.one_cycle(.01)), 'TorchScheduler, each step': lambda: lk.TorchScheduler(lambda o: torch.optim.lr_scheduler.ExponentialLR(o, .999), 'step'),
           'MixUp': lk.MixUp, 'ActivationStats (every 10th)': lambda: lk.ActivationStats(every=10), 'ActivationStats (each batch)': lk.ActivationStats, 'TerminateOnNaNCallback': lk.TerminateOnNaNCallback,
           'EarlyStoppingCallback': lambda: lk.EarlyStoppingCallback('train_loss'), 'SaveModelCallback': lambda: lk.SaveModelCallback('train_loss'), 'ReduceLROnPlateau': lambda: lk.ReduceLROnPlateau('train_loss'),
           'ThresholdStopper': lambda: lk.ThresholdStopper(0, 'train_loss'), "EveryCallback '100ba'": lambda: lk.EveryCallback(lambda learn: None, '100ba'), 'MCDropoutCallback': lk.MCDropoutCallback,
           "learn.on, every=100": lambda: lk.OnCallback(lambda learn: None, 'after_batch', lk.Filter(every=100)), "CheckpointCallback '100ba'": lambda: lk.CheckpointCallback('100ba', overwrite=True),
           "CheckpointCallback '100ba', background": lambda: lk.CheckpointCallback('100ba', overwrite=True, background=True)}
    def fit(make):
        def _f():
            learn = learner(batches, cbs=make and make(), path=path)
            learn.fit(1)
        return timed(_f)
    base,ratios = in_turn(rounds, fit(None), **{k:fit(f) for k,f in cbs.items()})
    show('The toolkit: a step with one more callback, against the default ones alone', f'{base*1e6/len(batches):.0f} µs a step', ratios, first='the default ones')

# -- the digits

def digits():
    "Loaders for training and validation, and a network"
    from sklearn.datasets import load_digits
    from torch.utils.data import DataLoader, TensorDataset
    d = load_digits()
    x,y = torch.tensor(d.images[:,None]/16, dtype=torch.float32),torch.tensor(d.target)
    train,valid = DataLoader(TensorDataset(x[:1500], y[:1500]), 64, shuffle=True),DataLoader(TensorDataset(x[1500:], y[1500:]), 64)
    def net():
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 10))
    return train,valid,net

def bench_digits(rounds):
    from learnkit import DataLoaders, Learner, accuracy
    train,valid,net = digits()
    def hand():
        model = net()
        opt = torch.optim.Adam(model.parameters(), lr=1e-3)
        for _ in range(2):
            model.train()
            for xb,yb in train: F.cross_entropy(model(xb), yb).backward(); opt.step(); opt.zero_grad()
            model.eval()
            with torch.no_grad():
                loss = right = 0
                for xb,yb in valid: pred = model(xb); loss += F.cross_entropy(pred, yb)*len(yb); right += (pred.argmax(1)==yb).sum()
        return loss.item(),right.item()
    base,ratios = in_turn(rounds, timed(hand), **{'learnkit, accuracy, progress bar': timed(
        lambda: Learner(DataLoaders(train, valid), net(), F.cross_entropy, torch.optim.Adam, lr=1e-3, metrics=accuracy).fit(2))})
    show('The digits: two epochs of a small convolutional network, with validation', f'{base:.2f} s', ratios)

# -- what it costs to be able to go on

def bench_checkpoint(rounds):
    from learnkit import CheckpointCallback, DataLoaders, Learner, accuracy
    import tempfile
    train,valid,net = digits()
    def fit(**kw):
        def _f():
            with tempfile.TemporaryDirectory() as path:
                cbs = CheckpointCallback('100ba', **kw) if kw else None
                Learner(DataLoaders(train, valid), net(), F.cross_entropy, torch.optim.Adam, lr=1e-3, metrics=accuracy, path=path, cbs=cbs).fit(9)
        return timed(_f)
    base,ratios = in_turn(rounds, fit(), **{"'100ba'": fit(keep=3), "'100ba', in the background": fit(keep=3, background=True)})
    show('A checkpoint every 100 batches: nine epochs of the digits', f'{base:.2f} s', ratios, first='without')

# -- predictions: time, and memory of a process of its own

rows = 200_000
def preds_by_hand(model, batches):
    preds,targs = [],[]
    model.eval()
    with torch.no_grad():
        for xb,yb in batches: preds.append(model(xb)); targs.append(yb)
    return torch.cat(preds),torch.cat(targs)

def preds_setup(who):
    from learnkit import DataLoaders, Learner   # in both, so that their processes differ in nothing else
    model,batches = tiny(),list(zip(torch.randn(rows, 32).split(256), torch.zeros(rows).long().split(256)))
    if who=='hand': return lambda: preds_by_hand(model, batches)
    learn = Learner(DataLoaders(batches, batches), model, F.cross_entropy)
    return learn.get_preds

def child(who):
    "In a process of its own: by how much predicting raises the peak of memory, in MiB"
    f = preds_setup(who)
    Path('/proc/self/clear_refs').write_text('5')   # the peak begins anew
    def memory(k): return int(next(l.split()[1] for l in Path('/proc/self/status').read_text().splitlines() if l.startswith(k)))/1024
    before = memory('VmRSS')
    res = f()   # held, as whoever asked for it would
    return memory('VmHWM') - before

def bench_preds(rounds):
    base,ratios = in_turn(rounds, timed(preds_setup('hand')), **{'learn.get_preds()': timed(preds_setup('learnkit'))})
    show(f'Predicting {rows:,} rows (batches of 256)', f'{base:.2f} s', ratios)
    if not Path('/proc/self/clear_refs').exists(): return print('  peak memory can be measured on Linux only')
    peak = {who:statistics.median(float(subprocess.run([sys.executable, __file__, '--child', who], capture_output=True, text=True, check=True).stdout)
                                  for _ in range(5)) for who in ('hand','learnkit')}
    print(f"  peak memory above the start: by hand {peak['hand']:.0f} MiB, learn.get_preds() {peak['learnkit']:.0f} MiB, ratio {peak['learnkit']/peak['hand']:.2f}")

# -- importing

def bench_import(rounds):
    def importing(what): return timed(lambda: subprocess.run([sys.executable, '-c', f'import {what}'], check=True, cwd=root))
    base,ratios = in_turn(rounds, importing('torch'), **{'import torch, learnkit': importing('torch, learnkit')})
    show('Importing, in a fresh process', f'{base:.2f} s for torch alone', ratios)
    print(f"  learnkit adds {base*(ratios['import torch, learnkit'][0]-1):.2f} s")

if __name__=='__main__':
    parts = dict(step=bench_step, digits=bench_digits, deaf=bench_deaf, toolkit=bench_toolkit, checkpoint=bench_checkpoint, preds=bench_preds, **{'import':bench_import})
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument('part', nargs='*', choices=[[], *parts], help='what to measure; everything if not given')
    args.add_argument('--quick', action='store_true', help='3 rounds instead of 11')
    args.add_argument('--child', help=argparse.SUPPRESS)
    args = args.parse_args()
    if args.child: print(child(args.child)); sys.exit()
    print(f'Python {platform.python_version()}, torch {torch.__version__}, one thread, {os.cpu_count()} processors')
    for p in args.part or parts: parts[p](3 if args.quick else 11)
