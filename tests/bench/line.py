"""Two processes with a slow line between them: bytes on the line and the time of a step, of DistributedDataParallel by hand, of learnkit, and of `DiLoCo`.

    python tests/bench/line.py                    Linux, as root: both processes are in a network of their own, whose only line is made slow
    python tests/bench/line.py --mbit 1000 --steps 200

Bytes are those that the network device counts, of both processes and both directions, headers and acknowledgements included; all of them share the line.
The processes do as on two machines: what they decide together goes over the line too, not through shared memory. The clock runs for a whole training phase.
"""
import argparse, json, os, socket, subprocess, sys, tempfile, time
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parents[1])]
import torch
from torch import distributed as dist, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

ways = {'DDP by hand': None, 'learnkit': [], 'every 10 steps: local SGD': dict(every=10, lr=1, mom=0), 'every 10 steps: DiLoCo': dict(every=10), 'every 100 steps: DiLoCo': dict(every=100)}

def net(): torch.manual_seed(0); return nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
def batches(n):
    g = torch.Generator().manual_seed(dist.get_rank())
    return [(torch.randn(32, 64, generator=g), torch.randint(0, 10, (32,), generator=g)) for _ in range(n)]

def carried():
    "The bytes that the line has carried"
    return next(int(l.split()[1]) for l in Path('/proc/self/net/dev').read_text().splitlines() if l.strip().startswith('lo:'))

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
        observes = alike = True
        order = 200
        def before_train(self): clock.begin()
        def after_train(self): clock.end()
    learn = Learner(DataLoaders(batches(n)), net(), F.cross_entropy, torch.optim.AdamW, lr=1e-3)
    with learn.no_bar(), learn.no_logging(): learn.fit(1, cbs=[DistributedTrainer(shard=False), Clocks(), *cbs])

def work(rank, steps, port, result):
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'tcp://127.0.0.1:{port}', rank=rank, world_size=2)
    from learnkit.processes import agreement
    from learnkit.all import DiLoCo
    agreement.share_board = lambda: None   # as if they shared no memory
    res = {}
    for name,kw in ways.items():
        clock = Clock()
        if kw is None: by_hand(steps, clock)
        else: learnkit(steps, clock, [DiLoCo(**kw)] if kw else [])
        res[name] = [o/steps for o in clock.spent]
    if rank==0: Path(result).write_text(json.dumps(res))
    dist.destroy_process_group()

def inside(mbit, steps):
    "In the new network"
    for cmd in ('ip link set lo mtu 1500', 'ip link set lo up', *[f'tc qdisc add dev lo root tbf rate {mbit}mbit burst 256k latency 2s'][:mbit>0]): subprocess.run(cmd.split(), check=True)
    with socket.socket() as s: s.bind(('127.0.0.1', 0)); port = s.getsockname()[1]
    with tempfile.TemporaryDirectory() as path:
        torch.multiprocessing.start_processes(work, (steps, port, f'{path}/result'), nprocs=2, start_method='fork')
        res = json.loads(Path(path, 'result').read_text())
    n = sum(p.numel() for p in net().parameters())
    print(f'{n:,} parameters, {4*n/1e6:.1f} MB; a line of {mbit or "unlimited"} Mbit/s; {steps} steps\n')
    print('| | kB a step | ms a step |\n|---|---|---|')
    for k,(seconds,sent) in res.items(): print(f'| {k} | {sent/1e3:,.0f} | {seconds*1e3:,.1f} |')

if __name__=='__main__':
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument('--mbit', type=int, default=100, help='the rate of the line; 0: as fast as this machine is')
    ask.add_argument('--steps', type=int, default=100)
    ask.add_argument('--inside', action='store_true', help=argparse.SUPPRESS)
    args = ask.parse_args()
    if args.inside: inside(args.mbit, args.steps)
    else: sys.exit(subprocess.run(['unshare', '-n', sys.executable, __file__, '--inside', f'--mbit={args.mbit}', f'--steps={args.steps}']).returncode)
