"""On an accelerator: how often the host waits for it, how long it waits for the host, and what goes through it.

The host prepares work faster than the device does it, as long as nothing makes it wait: reading a loss does, and so does a copy of
a batch from memory that is not pinned. A loop shows in the device's idle time, not in the host's.
"""
import time, warnings
from tools import F, by_hand, in_turn, learner, nn, show, spread, timed, tiny, torch, unseen
from torch.profiler import ProfilerActivity, profile

# -- what is trained

class Residual(nn.Module):
    "Two convolutions beside a way around them"
    def __init__(self, ni, nf, stride):
        super().__init__()
        def conv(ni, ks, stride): return nn.Conv2d(ni, nf, ks, stride, ks//2, bias=False),nn.BatchNorm2d(nf)
        self.convs = nn.Sequential(*conv(ni, 3, stride), nn.ReLU(), *conv(nf, 3, 1))
        self.around = nn.Identity() if stride==1 and ni==nf else nn.Sequential(*conv(ni, 1, stride))
    def forward(self, x): return F.relu(self.convs(x) + self.around(x))

def resnet(nfs=(64,128,256)):
    "A small ResNet: two blocks for each width"
    torch.manual_seed(0)
    blocks = [Residual(i, o, s) for ni,nf,stride in zip(nfs[:1]+nfs, nfs, (1,2,2)) for i,o,s in ((ni,nf,stride), (nf,nf,1))]
    return nn.Sequential(nn.Conv2d(3, nfs[0], 3, 1, 1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(nfs[-1], 10))

class Transformer(nn.Module):
    "A small transformer that gives each token a class"
    def __init__(self, d=256, layers=4, vocab=1000):
        super().__init__()
        self.emb,self.out = nn.Embedding(vocab, d),nn.Linear(d, 10)
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 4, 4*d, dropout=0., batch_first=True), layers, enable_nested_tensor=False)
    def forward(self, x): return self.out(self.layers(self.emb(x))).flatten(0, 1)

def transformer(**kw): torch.manual_seed(0); return Transformer(**kw)

def numbers(n, bs=32): return [(torch.randn(bs, 32), torch.randint(10, (bs,))) for _ in range(n)]
def pictures(n, bs=128, size=32): return [(torch.randn(bs, 3, size, size), torch.randint(10, (bs,))) for _ in range(n)]
def texts(n, bs=32, length=128): return [(torch.randint(1000, (bs, length)), torch.randint(10, (bs*length,))) for _ in range(n)]

nets = {'the tiny network':(tiny, numbers), 'a small ResNet':(resnet, pictures), 'a small transformer':(transformer, texts)}

# -- the two loops

def put(batches, device): return [(xb.to(device), yb.to(device)) for xb,yb in batches]
def pinned(batches): return [(xb.pin_memory(), yb.pin_memory()) for xb,yb in batches]

class Moved:
    "Batches that are moved as one would by hand: without waiting"
    def __init__(self, batches, device): self.batches,self.device = batches,device
    def __iter__(self): return ((xb.to(self.device, non_blocking=True), yb.to(self.device, non_blocking=True)) for xb,yb in self.batches)

def hand(net, batches, device): return by_hand(batches, model=net().to(device))

def ours(net, batches, device, cbs=None):
    "By learnkit, with its default callbacks; the bar, which reads the loss when it is drawn, is drawn once"
    learn = learner(batches, model=net().to(device), cbs=cbs)
    learn.progress.pace = 1e9
    learn.fit(1)
    return learn.model

# -- steady steps: the first ones set things up, and the last ones end the epoch

class Steady:
    "Batches that watch `n` steps from number `first` on"
    def __init__(self, batches, watch, first=10, n=20, device='cuda'): self.batches,self.watch,self.first,self.n,self.device = batches,watch,first,n,device
    def __len__(self): return len(self.batches)
    def __iter__(self):
        for i,b in enumerate(self.batches):
            if i==self.first: wait(self.device); self.watch.__enter__()
            if i==self.first+self.n: wait(self.device); self.watch.__exit__(None, None, None)
            yield b

def wait(device):
    if device=='cuda': torch.cuda.synchronize()

class Syncs:
    "Counts how often the host waits for the device: PyTorch warns each time"
    def __enter__(self):
        self.catch = warnings.catch_warnings(record=True)
        self.seen = self.catch.__enter__()
        warnings.simplefilter('always')
        torch.cuda.set_sync_debug_mode('warn')
    def __exit__(self, *args):
        torch.cuda.set_sync_debug_mode('default')
        self.catch.__exit__(*args)
        self.count = sum('called a synchronizing' in str(w.message) for w in self.seen)   # it also warns that this is a prototype

def idle(spans):
    "Of pieces of work as (start, end): the time from the first to the last in which none was done, and that as a part of it"
    spans,free = sorted(spans),0.
    end = first = spans[0][0]
    for s,e in spans: free,end = free + max(0., s-end),max(end, e)
    return free,free/(end-first)

def work(prof, device):
    "What the device did, as spans in µs, without the names that others gave to stretches of time"
    kind = torch.autograd.DeviceType.CUDA if device=='cuda' else torch.autograd.DeviceType.CPU
    return [(e.time_range.start, e.time_range.end) for e in prof.events() if e.device_type==kind and not e.is_user_annotation]

# -- the parts

def bench_syncs(rounds, device='cuda', n=20, nets=nets):
    "Counted, so once is enough"
    if device!='cuda': return print('\nWaiting can be counted on a CUDA device only')
    for name,(net,data) in nets.items():
        def count(loop, batches):
            watch = Syncs()
            with unseen(): loop(net, Steady(batches, watch, n=n), device)
            return watch.count/n
        there,here = put(data(n+20), device),pinned(data(n+20))
        rows = {'learnkit':count(ours, there), 'by hand, batches from pinned memory':count(hand, Moved(here, device)),
                'learnkit, batches from pinned memory':count(ours, here)}
        show(f'How often the host waits for the device in a step of {name}', f'{count(hand, there):.1f}', {k:(c,c,c) for k,c in rows.items()}, ' times')

def bench_idle(rounds, device='cuda', n=20, nets=nets):
    acts = [ProfilerActivity.CUDA if device=='cuda' else ProfilerActivity.CPU]
    for name,(net,data) in nets.items():
        batches = put(data(n+20), device)
        def one(loop):
            prof = profile(activities=acts)
            with unseen(): loop(net, Steady(batches, prof, n=n, device=device), device)
            free,part = idle(work(prof, device))
            return free/n,part
        for loop in (hand, ours): one(loop)
        got = {loop:[one(loop) for _ in range(rounds)] for loop in (hand, ours)}
        part = {loop:spread([p for _,p in got[loop]])[0] for loop in got}
        show(f'Idle time of the device in a step of {name}', f'{spread([t for t,_ in got[hand]])[0]:.0f} µs ({part[hand]:.0%} of the time)',
             {f'learnkit ({part[ours]:.0%} of the time)':spread([t for t,_ in got[ours]])}, ' µs')

def bench_throughput(rounds, device='cuda', n=200, nets=nets):
    import learnkit.all as lk
    def clock(): wait(device); return time.perf_counter()
    for name,(net,data) in nets.items():
        host = data(n)
        there,here = put(host, device),pinned(host) if device=='cuda' else host
        def run(loop, batches, **kw): return timed(lambda: loop(net, batches, device, **kw), clock)
        others = {'learnkit':run(ours, there), 'by hand, batches from pinned memory':run(hand, Moved(here, device)),
                  'learnkit, batches from pinned memory':run(ours, here)}
        if hasattr(lk, 'Prefetch'): others['learnkit, batches from pinned memory, Prefetch'] = run(ours, here, cbs=lk.Prefetch())
        base,ratios = in_turn(rounds, run(hand, there), **others)
        show(f'Training {name}: time, beside that of the loop by hand, all batches on the device',
             f'{sum(len(xb) for xb,_ in host)/base:,.0f} items a second', ratios)

parts = dict(syncs=bench_syncs, idle=bench_idle, throughput=bench_throughput)
