"""What a checkpoint in the background costs: steps during a save, compared with the others of the same run, and the step
that saves.

    python tests/bench/saves.py          models of 10, 100 and 1000 MB, in one process, in two, and in two with shards
    python tests/bench/saves.py 10 100   of these megabytes

A step is `beside` a save if the thread that writes is at work when it starts. Shown are medians of each kind: CPU time of
the thread that trains and wall-clock time, as ratios to those of a quiet step. Saves are so frequent that about half of
the steps are `beside` one.
"""
import statistics, sys, tempfile, time
from functools import partial
import torch
from torch import distributed as dist, nn
from torch.nn import functional as F
from processes import launched, main
from tools import unseen

sizes = {10:(3, 912, 64, 150), 100:(4, 2500, 32, 60), 1000:(4, 7900, 16, 30)}   # layers, width, rows of a batch, steps

def job_saves(mb, sharded, steps=None):
    "CPU and wall-clock seconds of the steps of process 0: quiet ones, those during a save, those that save"
    from learnkit.all import Callback, CheckpointCallback, DataLoaders, DistributedTrainer, FullyShard, Learner
    layers,width,rows,n = sizes[mb]
    n = steps or n
    class Clock(Callback):
        order,acts = 101,'nothing'
        kinds:dict = {}
        def before_train(self): self.at,self.kind,self.begun = (time.thread_time(), time.perf_counter()),'first',{}
        def after_batch(self):
            now,writer = (time.thread_time(), time.perf_counter()),self.learn.checkpoint.writer
            saved = self.learn.train_iter%every==0
            kind = 'save' if saved else self.kind
            self.kinds.setdefault(kind, []).append([b-a for a,b in zip(self.at, now)])
            busy = writer.thread is not None and writer.thread.is_alive()
            self.kind = 'beside' if busy else 'quiet'
            self.at = time.thread_time(),time.perf_counter()
    def train(steps):
        batches,clock = [(torch.randn(rows, width), torch.randn(rows, width))]*steps,Clock()
        clock.kinds = {}
        net = nn.Sequential(*[l for _ in range(layers) for l in (nn.Linear(width, width, bias=False), nn.ReLU())])
        cbs = [FullyShard(nn.Linear, shard=False)] if sharded else [DistributedTrainer(shard=False)] if dist.get_world_size()>1 else []
        learn = Learner(DataLoaders(batches), net, F.mse_loss, partial(torch.optim.SGD, lr=.01), path=path, cbs=[CheckpointCallback(f'{every}ba', keep=1, background=True, overwrite=True), clock, *cbs])
        learn.fit(1)
        return clock.kinds
    with tempfile.TemporaryDirectory() as own, unseen():
        path = [own]
        dist.broadcast_object_list(path)
        path = path[0]
        every = 8
        train(10)   # the first save makes its memory; how long the others last
        every = 24 if mb<100 else 12 if mb<1000 else 6
        kinds = train(n)
        dist.barrier()
    kinds.pop('first', None)
    return kinds

def bench(mbs):
    print(f"\n{'MB':>5} {'processes':22} {'quiet step, ms':>16} {'beside: CPU':>12} {'clock':>6} {'the save: CPU, ms':>18} {'clock':>7}   steps")
    for mb in mbs:
        for world,sharded in ((1, False), (2, False), (2, True)):
            kinds = launched(world, 'saves', script=__file__, mb=mb, sharded=sharded)
            med = {k:[statistics.median(o) for o in zip(*v)] for k,v in kinds.items()}
            q,b,s = (med.get(k, [float('nan')]*2) for k in ('quiet','beside','save'))
            print(f"{mb:5} {f'{world}, '+('sharded' if sharded else 'replicated') if world>1 else '1':22} {q[0]*1e3:7.1f} {q[1]*1e3:8.1f} {b[0]/q[0]:12.2f} {b[1]/q[1]:6.2f} "
                  f"{(s[0]-q[0])*1e3:18.1f} {(s[1]-q[1])*1e3:7.1f}   " + ', '.join(f'{len(v)} {k}' for k,v in kinds.items()), flush=True)

if __name__=='__main__':
    if len(sys.argv)>3 and sys.argv[1]=='saves': main(*sys.argv[1:], jobs=dict(saves=job_saves))
    else: bench([*map(int, sys.argv[1:])] or sizes)
