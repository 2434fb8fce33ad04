"""Kills one of two ranks under torchrun at random moments; torchrun restarts both, and they end like an unkilled run.

    python tests/faults/killed_ranks.py 50          at least 50 kills, over random settings; prints a line for each run
    python tests/faults/killed_ranks.py 10 --seed 3 other settings

The script has no code for processes or restarts, only `fit(…, resume='auto')` and a `CheckpointCallback`.
"""
import json, os, random, signal, socket, subprocess, sys, tempfile, time
from functools import partial
from pathlib import Path

root = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root), str(root/'tests'/'faults')]
from kills import Fork, equal, main, save_end

def settings(seed):
    "The settings of a run, all drawn from `seed`"
    r = random.Random(seed)
    return dict(seed=seed, policy=r.choice(['fit', 'one_cycle']), every=r.choice(['1ba', '5ba', '5ba', '1ep']), background=r.random()<.5, ema=r.random()<.5,
                accumulate=r.random()<.4, weighted=r.random()<.4, mixup=r.random()<.3, workers=2*(r.random()<.3), rng=r.random()<.5)

# the processes that are killed

def train(cfg, folder):
    "One attempt of one rank; the same code starts and resumes it"
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler
    from learnkit import all as lk
    torch.set_num_threads(1)
    g = torch.Generator().manual_seed(0)
    x = torch.randn(203, 4, generator=g)
    ds = TensorDataset(x, (x.sum(1)>0).long())
    lk.set_seed(cfg['seed'] + (cfg['rng'] and int(os.environ['RANK'])))   # a user may seed each rank differently
    order = dict(sampler=WeightedRandomSampler(torch.linspace(.1, 1, 203), 203)) if cfg['weighted'] else dict(shuffle=True)
    dls = DataLoader(ds, 4, **order, num_workers=cfg['workers']),DataLoader(ds, 32)
    model = nn.Sequential(nn.Linear(4, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(.3), nn.Linear(32, 2))
    cbs = [lk.CheckpointCallback(cfg['every'], keep=2, background=cfg['background'])]
    if cfg['ema']:        cbs.append(lk.EMACallback(.9))
    if cfg['accumulate']: cbs.append(lk.GradientAccumulation(12))
    if cfg['mixup']:      cbs.append(lk.MixUp())
    learn = lk.Learner(dls, model, nn.CrossEntropyLoss(), lk.AdamW, lr=.01, path=folder, metrics=lk.accuracy, cbs=cbs)
    rank = lk.rank_distrib()
    (folder/f'pid{rank}.part').write_text(str(os.getpid()))
    os.replace(folder/f'pid{rank}.part', folder/f'pid{rank}')
    if cfg['policy']=='fit': learn.fit(6, resume='auto')
    else:                    learn.fit_one_cycle(6, .02, resume='auto')
    save_end(learn, folder/f'end{rank}.pt')

# the process that kills them

def pids(folder):
    "The process ids of the current attempt, or None until both ranks train"
    files = [folder/f'pid{r}' for r in range(2)]
    return [int(f.read_text()) for f in files] if all(f.exists() for f in files) else None

def rank(r, cfg, folder, **env):
    os.environ.update({k:str(v) for k,v in env.items()}, RANK=str(r), LOCAL_RANK=str(r))
    train(cfg, folder)

def straight(cfg, folder):
    "Train in two processes with torchrun's variables but without torchrun, unkilled; return the seconds of training"
    folder.mkdir()
    with socket.socket() as s: s.bind(('127.0.0.1', 0)); port = s.getsockname()[1]
    env = dict(WORLD_SIZE=2, LOCAL_WORLD_SIZE=2, MASTER_ADDR='127.0.0.1', MASTER_PORT=port)
    ps,start = [Fork(partial(rank, r, cfg, folder, **env), folder/f'log{r}') for r in range(2)],None
    while None in [p.poll() for p in ps]:
        time.sleep(.01)
        if start is None and pids(folder): start = time.monotonic()
    if any(p.returncode for p in ps): raise RuntimeError(f'it failed with {cfg}:\n' + ''.join((folder/f'log{r}').read_text()[-4000:] for r in range(2)))
    return time.monotonic()-start

def run(cfg, folder, moments, r):
    "Train in two processes under torchrun and kill one after each of `moments` (in seconds); return the kills"
    folder.mkdir()
    with open(folder/'log', 'wb') as log:
        p = subprocess.Popen([sys.executable, '-m', 'torch.distributed.run', '--nproc-per-node=2', '--max-restarts=3', '--monitor-interval=0.1', '--rdzv-backend=c10d',
                              '--rdzv-endpoint=localhost:0', __file__, '--train', json.dumps(cfg), str(folder)], start_new_session=True, stdout=log, stderr=log)
    kills,left,start = 0,list(moments),None
    try:
        while p.poll() is None:
            time.sleep(.01)
            now = pids(folder)
            if now is None: continue
            start = start or time.monotonic()
            if left and time.monotonic()-start>left[0]:
                victim = r.choice(now)
                for f in folder.glob('pid?'): f.unlink()
                try: os.kill(victim, signal.SIGKILL); kills += 1
                except ProcessLookupError: pass   # it had already exited
                left,start = left[1:],None
        if p.returncode: raise RuntimeError(f'torchrun failed with {cfg}:\n' + (folder/'log').read_text()[-4000:])
    finally:
        if p.poll() is None: os.killpg(p.pid, signal.SIGKILL)
    return kills

def compare(seed, most=3):
    "Kill ranks of a run up to `most` times and return `(kills, differences at the end, settings)`"
    import torch, torch._dynamo, learnkit.all   # once for both forks
    torch.set_num_threads(1)
    cfg,r = settings(seed),random.Random(seed)
    with tempfile.TemporaryDirectory() as tmp:
        whole,killed = Path(tmp)/'whole',Path(tmp)/'killed'
        long  = straight(cfg, whole)
        kills = run(cfg, killed, [r.uniform(0, long*.7) for _ in range(most)], r)
        ends = [[torch.load(f/f'end{rank}.pt', weights_only=True) for rank in range(2)] for f in (whole, killed)]
        differs = [f'{k} of rank {rank}' for rank,(a,b) in enumerate(zip(*ends)) for k in a if not equal(a[k], b[k])
                   and not (rank and k=='losses')]   # checkpoints hold only the losses of process 0
        a,b = ends[0]
        return kills,differs + [f'{k} between the ranks' for k in ('model','opt','history') if not equal(a[k], b[k])],cfg

if __name__=='__main__':
    if sys.argv[1:2]==['--train']: train(json.loads(sys.argv[2]), Path(sys.argv[3])); sys.exit()
    main(__doc__, compare, kills=50)
