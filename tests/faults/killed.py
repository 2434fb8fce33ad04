"""Kills a training run at random moments, restarts it each time, and compares its end with an uninterrupted run.

    python tests/faults/killed.py 100          at least 100 kills, over random settings; prints a line for each run
    python tests/faults/killed.py 10 --seed 3  other settings

Each run is a process group of its own, with its loader workers. SIGKILL hits it in a batch, a validation or a save.
"""
import os, random, signal, subprocess, sys, tempfile, time
from pathlib import Path

root = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root), str(root/'tests'/'faults')]
from kills import Fork, equal, main, save_end

def settings(seed):
    "The settings of a run, all drawn from `seed`"
    r = random.Random(seed)
    return dict(seed=seed, policy=r.choice(['fit', 'one_cycle', 'flat_cos']), opt=r.choice(['Adam', 'SGD', 'AdamW']), every=r.choice(['1ba', '3ba', '7ba', '1ep', '0.1s']),
                background=r.random()<.5, accumulate=r.random()<.4, amp=r.choice([None, None, 'bf16', 'fp16']), ema=r.random()<.5, mixup=r.random()<.4, clip=r.random()<.4,
                stop=r.random()<.4, best=r.random()<.3, workers=r.random()<.5, seeded=r.random()<.5)

# the process that is killed

def train(cfg, folder, workers):
    "One attempt of the run; the same code starts and resumes it"
    import numpy as np, torch
    from torch import nn
    from torch.utils.data import DataLoader, Dataset
    from learnkit import all as lk
    torch.set_num_threads(1)

    class Noisy(Dataset):
        def __len__(self): return 150
        def __getitem__(self, i):
            return torch.tensor([i/150, random.random(), float(np.random.rand()), float(torch.rand(()))]), i%3

    lk.set_seed(cfg['seed'])
    train = DataLoader(Noisy(), 8, shuffle=True, num_workers=workers)
    dls = lk.SeededLoader(train, cfg['seed']) if cfg['seeded'] else train,DataLoader(Noisy(), 32)
    model = nn.Sequential(nn.Linear(4, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(.3), nn.Linear(32, 3))
    cbs = [lk.CheckpointCallback(cfg['every'], keep=2, background=cfg['background'], best='valid_loss' if cfg['best'] else None)]
    if cfg['accumulate']: cbs.append(lk.GradientAccumulation(20))
    if cfg['amp']:        cbs.append(lk.MixedPrecision(cfg['amp']))
    if cfg['ema']:        cbs.append(lk.EMACallback(.9))
    if cfg['mixup']:      cbs.append(lk.MixUp())
    if cfg['clip']:       cbs.append(lk.GradientClip(.5))
    if cfg['stop']:       cbs.append(lk.EarlyStoppingCallback('valid_loss', patience=2))
    learn = lk.Learner(dls, model, nn.CrossEntropyLoss(), getattr(lk, cfg['opt']), lr=.01, path=folder, metrics=lk.accuracy, cbs=cbs)
    (folder/'started').touch()
    with learn.no_bar():
        match cfg['policy']:
            case 'fit':       learn.fit(5, resume='auto')
            case 'one_cycle': learn.fit_one_cycle(5, .02, resume='auto')
            case 'flat_cos':  learn.fit_flat_cos(5, .02, resume='auto')
    save_end(learn, folder/'end.part')
    os.replace(folder/'end.part', folder/'end.pt')

# the process that kills it

def attempt(cfg, folder, workers, after=None):
    "Start a run and kill it `after` that many seconds, or let it finish; return whether it was killed"
    (folder/'started').unlink(missing_ok=True)
    p = Fork(lambda: train(cfg, folder, workers), folder/'log')
    while p.poll() is None and not (folder/'started').exists(): time.sleep(.01)
    try: p.wait(after)
    except subprocess.TimeoutExpired: os.killpg(p.pid, signal.SIGKILL); p.wait(); return True
    if p.returncode: raise RuntimeError(f'the run failed with {cfg}:\n' + (folder/'log').read_text()[-3000:])
    return False

def compare(seed, most=8):
    "Kill a run up to `most` times and return `(kills, differences at the end, settings)`"
    import torch, torch._dynamo, learnkit.all   # once for all forks
    torch.set_num_threads(1)
    cfg,r = settings(seed),random.Random(seed)
    with tempfile.TemporaryDirectory() as tmp:
        straight,killed = Path(tmp)/'straight',Path(tmp)/'killed'
        for f in (straight, killed): f.mkdir()
        start = time.monotonic()
        own = r.choice([1, 2]) if cfg['workers'] else 0
        attempt(cfg, straight, own)
        long,kills = time.monotonic()-start,0
        # without a SeededLoader another number of workers draws other random numbers
        def workers(): return r.choice([0, 1, 2]) if cfg['seeded'] and cfg['workers'] else own
        while attempt(cfg, killed, workers(), r.uniform(.02, long*.6) if kills<most else None): kills += 1
        ends = [torch.load(f/'end.pt', weights_only=True) for f in (straight, killed)]
        for e in ends: e['cbs'].get('save_model', {}).pop('saved', None)
        return kills,[k for k in ends[0] if not equal(ends[0][k], ends[1][k])],cfg

if __name__=='__main__': main(__doc__, compare, kills=100)
