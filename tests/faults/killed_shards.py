"""Kills one or both of two processes that write sharded checkpoints in the background, and checks what is left.

    python tests/faults/killed_shards.py 100          at least 100 kills, over random settings; prints a line for each run
    python tests/faults/killed_shards.py 10 --seed 3  other settings

After each kill the newest readable checkpoint is at least as new as the last complete one before the kill, and equals,
bit for bit, that of an uninterrupted run. So does the final state.
"""
import os, random, signal, socket, sys, tempfile, time
from functools import partial
from pathlib import Path

root = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root), str(root/'tests'/'faults')]
from kills import Fork, equal, main

def settings(seed):
    "The settings of a run, all drawn from `seed`"
    r = random.Random(seed)
    return dict(seed=seed, every=r.choice(['1ba', '1ba', '3ba']), opt=r.choice(['SGD', 'AdamW']), width=r.choice([32, 256, 1024]), keep=r.choice([1, 2, 3]),
                ema=r.random()<.3, accumulate=r.random()<.3, clip=r.random()<.4, recompute=r.random()<.3)

def train(cfg, folder, keep, env):
    "One attempt of one process"
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    from learnkit import all as lk
    from learnkit.data.process import whole
    os.environ.update(env)
    g = torch.Generator().manual_seed(0)
    x = torch.randn(160, 8, generator=g)
    dls = [DataLoader(TensorDataset(x, (x.sum(1)>0).long()), 4, shuffle=b) for b in (True, False)]
    lk.set_seed(cfg['seed'])
    model = nn.Sequential(nn.Linear(8, cfg['width']), nn.ReLU(), nn.Dropout(.3), nn.Linear(cfg['width'], cfg['width']), nn.ReLU(), nn.Linear(cfg['width'], 2))
    cbs = [lk.FullyShard(nn.Linear), lk.CheckpointCallback(cfg['every'], keep=keep, background=True)]
    if cfg['ema']:        cbs.append(lk.EMACallback(.9))
    if cfg['accumulate']: cbs.append(lk.GradientAccumulation(12))
    if cfg['clip']:       cbs.append(lk.GradientClip(.5))
    if cfg['recompute']:  cbs.append(lk.RecomputeActivations(nn.Linear))
    learn = lk.Learner(dls, model, nn.CrossEntropyLoss(), getattr(lk, cfg['opt']), lr=.01, path=folder, metrics=lk.accuracy, cbs=cbs)
    rank = lk.rank_distrib()
    (folder/f'pid{rank}').touch()
    with learn.no_bar(): learn.fit(3, resume='auto')
    def plain(ts): return {k:whole(t).clone() if isinstance(t, torch.Tensor) else t for k,t in ts.items()}
    rec = learn.recorder
    torch.save(dict(model=plain(learn.model.state_dict()), opt=[plain(s) for s in learn.opt.state.values()], rng=torch.get_rng_state(),
                    history=[{k:v for k,v in r.items() if k!='time'} for r in rec.history], losses=None if rank else rec.smooth_loss.raw), folder/f'end{rank}.pt')

def attempt(cfg, folder, keep, after=None, victims=(0, 1), pause=0):
    "Start both; kill `victims` `after` some seconds and the rest `pause` later; return the seconds of an unkilled run"
    for f in folder.glob('pid?'): f.unlink()
    with socket.socket() as s: s.bind(('127.0.0.1', 0)); port = s.getsockname()[1]
    env = dict(WORLD_SIZE='2', LOCAL_WORLD_SIZE='2', MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port))
    ps = [Fork(partial(train, cfg, folder, keep, dict(env, RANK=str(r), LOCAL_RANK=str(r))), folder/f'log{r}') for r in range(2)]
    try:
        while None in [p.poll() for p in ps] and len([*folder.glob('pid?')])<2: time.sleep(.005)
        start = time.monotonic()
        while None in [p.poll() for p in ps]:
            time.sleep(.002)
            if after is None or time.monotonic()-start<after: continue
            for v in victims: os.kill(ps[v].pid, signal.SIGKILL)
            time.sleep(pause)
            return None
        if any(p.returncode for p in ps): raise RuntimeError(f'it failed with {cfg}:\n' + ''.join((folder/f'log{r}').read_text()[-4000:] for r in range(2)))
        return time.monotonic()-start
    finally:
        for p in ps:
            if p.poll() is None: os.kill(p.pid, signal.SIGKILL); p.wait()

def compare(seed, most=12):
    "Kill a run up to `most` times; return kills, differences and settings, with `halves`, the partial checkpoints"
    import torch, torch._dynamo, torch.distributed.fsdp, learnkit.all   # once for all forks
    from learnkit.recovery.file import list_checkpoints, newest_checkpoint, read_checkpoint
    torch.set_num_threads(1)
    cfg,r,differs = settings(seed),random.Random(seed),[]
    with tempfile.TemporaryDirectory() as tmp:
        whole,killed = Path(tmp)/'whole',Path(tmp)/'killed'
        for f in (whole, killed): f.mkdir()
        long,kills,halves = attempt(cfg, whole, None),0,0
        of = {p.name:p for p in list_checkpoints(whole/'checkpoints/fit-1')}
        saves = killed/'checkpoints/fit-1'
        def newest(): return max([int(p.stem.split('-')[1]) for p in list_checkpoints(saves)], default=0)
        while kills<most:
            before = newest()
            victims = r.choice([(0,), (1,), (0, 1)])
            if attempt(cfg, killed, cfg['keep'], r.uniform(.02, long*.5), victims, r.choice([0, .05, .3])): break
            kills += 1
            halves += any(not p.with_suffix('.json').exists() for p in saves.glob('step-*.[ps]*'))
            listed,(path,state) = newest(),newest_checkpoint(saves)
            n = state['train_iter'] if state else 0
            if n<max(before, listed): differs.append(f'after kill {kills} of {victims} step {n} was found, though {max(before, listed)} was complete')
            if state:
                want = read_checkpoint(of[path.name.replace('-again', '')])
                differs += [f'{k} of step {n}' for k in ('model','opt','grads','rng','rngs','place') if not equal(state.get(k), want.get(k))]
        else: attempt(cfg, killed, cfg['keep'])
        ends = [[torch.load(f/f'end{rank}.pt', weights_only=False) for rank in range(2)] for f in (whole, killed)]
        differs += [f'{k} of process {rank} at the end' for rank,(a,b) in enumerate(zip(*ends)) for k in a if not equal(a[k], b[k])]
        return kills,differs,dict(cfg, halves=halves)

if __name__=='__main__': main(__doc__, compare, kills=100)
