"""What virtual shards cost, compared with a hand-written loop in one process, and with hand-written DistributedDataParallel
in two (gloo, on this machine).

    python tests/bench/shards.py            15 rounds at most
    python tests/bench/shards.py --quick    3

A step has 64 samples, as one batch, or in 2, 4 or 8 shards. Measured is the CPU time of all processes, from the first
step to the last; each round trains a fresh network.
"""
import argparse, os, tempfile, time
import torch
from torch import distributed as dist, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from run import compare, show
from tools import unseen

class Encoder(nn.Module):
    "A small transformer that reads 32 tokens"
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.emb,self.head = nn.Embedding(100, 64),nn.Linear(64, 10)
        self.body = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2, enable_nested_tensor=False)
    def forward(self, x): return self.head(self.body(self.emb(x)).mean(1))

def convnet():
    torch.manual_seed(0)
    convs = [nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU(), nn.Dropout(.1)]
    return nn.Sequential(*convs, nn.Flatten(), nn.Linear(4096, 10))

def inputs(model, n): return torch.randn(n, 1, 16, 16) if model is convnet else torch.randint(0, 100, (n, 32))

def batches(model, bs, n):
    torch.manual_seed(1)
    return [(inputs(model, bs), torch.randint(0, 10, (bs,))) for _ in range(n)]

def plain_loop(model, data):
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for xb,yb in data:
        F.cross_entropy(model(xb), yb).backward()
        opt.step()
        opt.zero_grad()

def fit(model, data, cbs=()):
    from learnkit import DataLoaders, Learner
    learn = Learner(DataLoaders(data), model, F.cross_entropy, torch.optim.AdamW, lr=1e-3, cbs=cbs)
    with unseen(), learn.no_bar(), learn.no_logging(): learn.fit(1)

def runs(kind, n):
    "Of each way to train: how many processes, and what each of them does"
    from learnkit.speed.virtual import VirtualShards
    def shards(v): return lambda: fit(kind(), batches(kind, 64//v, n*v), VirtualShards(v))
    return {'by hand':        (1, lambda: plain_loop(kind(), batches(kind, 64, n))),
            'learnkit':       (1, lambda: fit(kind(), batches(kind, 64, n))),
            **{f'VirtualShards({v})':(1, shards(v)) for v in (1,2,4,8)},
            'DDP by hand, 2 processes': (2, lambda: plain_loop(DistributedDataParallel(kind()), batches(kind, 32, n))),
            **{f'VirtualShards({v}), 2 processes':(2, shards(v)) for v in (2,4,8)}}

def timed(world, f):
    "A function that runs `f` in `world` processes, and gives the seconds of the processor that they took"
    def work(rank, path):
        torch.set_num_threads(1)
        if world>1: dist.init_process_group('gloo', init_method=f'file://{path}/group', rank=rank, world_size=world)
        start = time.process_time()
        f()
        with open(f'{path}/{rank}', 'w') as o: o.write(str(time.process_time()-start))
        os._exit(0)   # nothing else of this process is of interest
    def _f():
        with tempfile.TemporaryDirectory() as path:
            torch.multiprocessing.start_processes(work, (path,), nprocs=world, start_method='fork')
            return sum(float(open(f'{path}/{r}').read()) for r in range(world))
    return _f

def bench_shards(rounds, n=30):
    # Imported once, and not in each forked process: learnkit, and the compiler that the first optimizer imports
    import learnkit.speed.virtual
    torch.optim.AdamW([torch.ones(1)]).zero_grad()
    for what,kind in {'a convolutional network':convnet, 'a transformer':Encoder}.items():
        ways = {k:timed(*r) for k,r in runs(kind, n).items()}
        base,ratios = compare(min(rounds, 15), ways.pop('by hand'), **ways)
        show(f'Training steps of {what}, 64 items each: processor time of all processes', f'{base*1e3/n:.1f} ms a step', ratios)

if __name__=='__main__':
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument('--quick', action='store_true', help='3 rounds at most')
    bench_shards(3 if args.parse_args().quick else 15)
