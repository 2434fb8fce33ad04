"""Two machines with a slow link between them: bytes on the link and the time of a step, of hand-written
DistributedDataParallel, of learnkit, and of `DiLoCo`.

    python tests/bench/line.py                            Linux, as root: each "machine" is a separate network
    python tests/bench/line.py --mbit 1000 --steps 200    a faster link, and more steps

First with one process on each side, then with two. The device between the networks counts the bytes of both directions,
with headers and acknowledgements. The processes agree over the link, as on two machines, not through shared memory. The
clock runs for a whole training phase.
"""
import argparse, json, os, subprocess, sys, tempfile, time
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parents[1])]
import torch
from torch import distributed as dist, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

ways = {'`DistributedDataParallel` by hand': None, 'learnkit without `DiLoCo`': {}, 'local SGD, `DiLoCo(every=10, lr=1, mom=0)`': dict(every=10, lr=1, mom=0),
        '`DiLoCo(every=10)`': dict(every=10), '`DiLoCo(every=100)`': dict(every=100)}
islands = {'`DiLoCo(every=10, island=2)`': dict(every=10, island=2), '`DiLoCo(every=100, island=2)`': dict(every=100, island=2)}   # of two on each side

def net(): torch.manual_seed(0); return nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
def batches(n):
    g = torch.Generator().manual_seed(dist.get_rank())
    return [(torch.randn(32, 64, generator=g), torch.randint(0, 10, (32,), generator=g)) for _ in range(n)]

def carried():
    "The bytes that the line has carried"
    counts = next(l.split() for l in Path('/proc/self/net/dev').read_text().splitlines() if l.strip().startswith(('near:','far:')))
    return int(counts[1])+int(counts[9])   # received and sent

class Clock:
    def begin(self): dist.barrier(); self.start = time.perf_counter(),carried()
    def end(self): dist.barrier(); self.spent = [now-then for now,then in zip((time.perf_counter(), carried()), self.start)]

def by_hand(n, clock):
    model = DistributedDataParallel(net())
    opt = torch.optim.AdamW(model.parameters(), 1e-3)
    F.cross_entropy(model(torch.randn(32, 64)), torch.zeros(32, dtype=int)).backward()   # DDP forms its buckets
    opt.zero_grad()
    clock.begin()
    for x,y in batches(n):
        F.cross_entropy(model(x), y).backward()
        opt.step()
        opt.zero_grad()
    clock.end()

def learnkit(n, clock, cbs):
    from learnkit.all import Callback, DataLoaders, DistributedTrainer, Learner
    class Clocks(Callback):
        acts = 'nothing'
        order = 200
        def before_train(self): clock.begin()
        def after_train(self): clock.end()
    learn = Learner(DataLoaders(batches(n)), net(), F.cross_entropy, torch.optim.AdamW, lr=1e-3)
    with learn.no_bar(), learn.no_logging(): learn.fit(1, cbs=[DistributedTrainer(shard=False), Clocks(), *cbs])

def work(i, side, n, steps, result):
    torch.set_num_threads(1)
    os.environ['GLOO_SOCKET_IFNAME'] = side
    rank = i + n*(side=='far')
    dist.init_process_group('gloo', init_method=f'tcp://10.9.0.1:{29500+n}', rank=rank, world_size=2*n)
    from learnkit.processes import agreement
    from learnkit.all import DiLoCo
    agreement.open_shared_memory = lambda: None   # as if they shared no memory
    res = {}
    for name,kw in (ways | islands if n>1 else ways).items():
        clock = Clock()
        if kw is None: by_hand(steps, clock)
        else: learnkit(steps, clock, [DiLoCo(**kw)] if kw else [])
        res[name] = [o/steps for o in clock.spent]
    if rank==0: Path(result).write_text(json.dumps(res))
    dist.destroy_process_group()

def run(*cmds):
    for cmd in cmds: subprocess.run(cmd.split(), check=True)

def train_on(side, n, steps, result=''): torch.multiprocessing.start_processes(work, (side, n, steps, result), nprocs=n, start_method='fork')

def open_line(side, address, mbit):
    run('ip link set lo up', f'ip addr add {address}/24 dev {side}', f'ip link set {side} up', *[f'tc qdisc add dev {side} root tbf rate {mbit}mbit burst 256k latency 2s'][:mbit>0])

def far(mbit, steps):
    "On the other side: begin when the line is laid"
    print('ready', flush=True)
    sys.stdin.readline()
    open_line('far', '10.9.0.2', mbit)
    for n in (1, 2): train_on('far', n, steps)

def near(mbit, steps):
    "On this side: lay the line, and show what came out"
    with subprocess.Popen(command('far', mbit, steps), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other, tempfile.TemporaryDirectory() as path:
        other.stdout.readline()
        run(f'ip link add near type veth peer name far netns {other.pid}')
        open_line('near', '10.9.0.1', mbit)
        print(file=other.stdin, flush=True)
        params = sum(p.numel() for p in net().parameters())
        print(f'{params:,} parameters, {4*params/1e6:.1f} MB; a line of {mbit or "unlimited"} Mbit/s in each direction; {steps} steps')
        for n in (1, 2):
            train_on('near', n, steps, f'{path}/result')
            print(f'\n| {n} on each side | kB a step | ms a step |\n|---|---|---|')
            for k,(seconds,sent) in json.loads(Path(path, 'result').read_text()).items(): print(f'| {k} | {sent/1e3:,.0f} | {seconds*1e3:,.1f} |', flush=True)

def command(side, mbit, steps): return ['unshare', '-n', sys.executable, __file__, f'--side={side}', f'--mbit={mbit}', f'--steps={steps}']

if __name__=='__main__':
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument('--mbit', type=int, default=100, help='the rate of the line; 0: as fast as this machine is')
    ask.add_argument('--steps', type=int, default=100)
    ask.add_argument('--side', choices=['near','far'], help=argparse.SUPPRESS)
    args = ask.parse_args()
    if args.side: dict(near=near, far=far)[args.side](args.mbit, args.steps)
    else: sys.exit(subprocess.run(command('near', args.mbit, args.steps)).returncode)
