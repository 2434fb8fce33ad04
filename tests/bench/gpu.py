"""On an accelerator: how often the host waits for it, how long it waits for the host, what goes through it, and what
memory it takes.

    make bench-gpu

The host prepares work faster than the device does it, as long as nothing makes it wait: reading a loss does, and so
does a copy of a batch from memory that is not pinned. A loop shows in the device's idle time, not in the host's.
"""
import importlib.util, tempfile, time, warnings
from contextlib import nullcontext
from functools import partial
from tools import F, plain_loop, compare, learner, nn, peak, show, spread, timed, tiny, torch, unseen
from torch.profiler import ProfilerActivity, profile

# what is trained

def conv(ni, nf, ks, stride=1):
    "Return a convolution and a batch norm"
    return nn.Conv2d(ni, nf, ks, stride, ks//2, bias=False),nn.BatchNorm2d(nf)

def basic(ni, nf, stride): return nn.Sequential(*conv(ni, nf, 3, stride), nn.ReLU(), *conv(nf, nf, 3))
def bottleneck(ni, nf, stride, narrow):
    first = nn.Sequential(*conv(ni, narrow, 1), nn.ReLU())
    return nn.Sequential(*first, *conv(narrow, narrow, 3, stride), nn.ReLU(), *conv(narrow, nf, 1))

class Residual(nn.Module):
    "Convolutions with a residual connection: two, or three of which the middle one is narrow"
    def __init__(self, ni, nf, stride, narrow=None):
        super().__init__()
        self.convs = basic(ni, nf, stride) if narrow is None else bottleneck(ni, nf, stride, narrow)
        is_same_shape = stride==1 and ni==nf
        self.around = nn.Identity() if is_same_shape else nn.Sequential(*conv(ni, nf, 1, stride))
    def forward(self, x): return F.relu(self.convs(x) + self.around(x))

def resnet(nfs=(64,128,256)):
    "Return a small ResNet: two blocks for each width"
    torch.manual_seed(0)
    blocks = []
    for ni,nf,stride in zip(nfs[:1]+nfs, nfs, (1,2,2)): blocks += [Residual(ni, nf, stride), Residual(nf, nf, 1)]
    stem = nn.Conv2d(3, nfs[0], 3, 1, 1)
    return nn.Sequential(stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(nfs[-1], 10))

def resnet50(blocks=(3,4,6,3), width=64, classes=1000):
    "Return ResNet-50 (He et al. 2015) for images of 224 by 224, with the stride in the convolution of 3 by 3"
    torch.manual_seed(0)
    layers = [*conv(3, width, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    ni = width
    for i,n in enumerate(blocks):
        narrow = width*2**i
        for j in range(n):
            halves = i>0 and j==0
            layers.append(Residual(ni, narrow*4, 2 if halves else 1, narrow))
            ni = narrow*4
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(ni, classes))

class Causal(nn.Module):
    "A block of a transformer in which a token attends to those before it"
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3*d)
        self.out = nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4*d), nn.GELU('tanh'), nn.Linear(4*d, d))
    def forward(self, x):
        q,k,v = (o.unflatten(-1, (self.heads, -1)).transpose(1, 2) for o in self.qkv(self.norm(x)).chunk(3, -1))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.mlp(x)

class GPT(nn.Module):
    "By default of the size of GPT-2 small (Radford et al. 2019)"
    def __init__(self, d=768, layers=12, heads=12, vocab=50257, length=1024):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.pos = nn.Embedding(length, d)
        self.norm = nn.LayerNorm(d)
        self.out = nn.Linear(d, vocab, bias=False)
        self.blocks = nn.Sequential(*[Causal(d, heads) for _ in range(layers)])
        self.out.weight = self.emb.weight
    def forward(self, x):
        x = self.emb(x) + self.pos.weight[:x.shape[1]]
        return self.out(self.norm(self.blocks(x))).flatten(0, 1)

def gpt(**kwargs):
    torch.manual_seed(0)
    return GPT(**kwargs)

class Transformer(nn.Module):
    "A small transformer that gives each token a class"
    def __init__(self, d=256, layers=4, vocab=1000):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.out = nn.Linear(d, 10)
        layer = nn.TransformerEncoderLayer(d, 4, 4*d, dropout=0., batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    def forward(self, x): return self.out(self.layers(self.emb(x))).flatten(0, 1)

def transformer(**kwargs):
    torch.manual_seed(0)
    return Transformer(**kwargs)

def numbers(n, bs=32): return [(torch.randn(bs, 32), torch.randint(10, (bs,))) for _ in range(n)]
def pictures(n, bs=128, size=32, classes=10):
    return [(torch.randn(bs, 3, size, size), torch.randint(classes, (bs,))) for _ in range(n)]
def texts(n, bs=32, length=128, vocab=1000, classes=10):
    return [(torch.randint(vocab, (bs, length)), torch.randint(classes, (bs*length,))) for _ in range(n)]

nets = {'the tiny network':     (tiny, numbers),
        'a small ResNet':       (resnet, pictures),
        'a small transformer':  (transformer, texts)}
large = {'ResNet-50': (resnet50, partial(pictures, bs=64, size=224, classes=1000)),
         'a transformer of the size of GPT-2 small':
                      (gpt, partial(texts, bs=8, length=512, vocab=50257, classes=50257))}

# what other libraries train too; and small versions for tests

beside = {'the tiny network':nets['the tiny network'], **large}
small = {'the tiny network': beside['the tiny network'],
         'ResNet-50':        (partial(resnet50, (1,1), 2, 3), partial(pictures, bs=2, size=32, classes=3)),
         'a transformer of the size of GPT-2 small':
                             (partial(gpt, d=8, layers=1, heads=2, vocab=9, length=8),
                              partial(texts, bs=2, length=4, vocab=9, classes=9))}

def steps_of(net, is_small=False): return (small if is_small else beside)[net]

# the two loops

def put(batches, device): return [(xb.to(device), yb.to(device)) for xb,yb in batches]
def pinned(batches): return [(xb.pin_memory(), yb.pin_memory()) for xb,yb in batches]

class Moved:
    "Batches that are moved as in a hand-written loop: without waiting"
    def __init__(self, batches, device): self.batches,self.device = batches,device
    def __iter__(self):
        for xb,yb in self.batches: yield xb.to(self.device, non_blocking=True),yb.to(self.device, non_blocking=True)

def hand(net, batches, device): return plain_loop(batches, model=net().to(device))

def ours(net, batches, device, cbs=None, change=None, **kwargs):
    "Train with learnkit and its default callbacks; the progress bar, which reads the loss, is drawn only at the end"
    learn = learner(batches, model=net().to(device), cbs=cbs, **kwargs)
    learn.progress.every = 1e9
    if change is not None: change(learn)
    learn.fit(1)
    return learn.model

def watched(net, batches, device):
    "Train with learnkit and all that users watch: a metric of training, the progress bar, loggers of each tenth batch"
    import learnkit.all as lk
    cbs = [lk.Recorder(train_metrics=True), lk.CSVLogger('history.csv'), lk.JsonLogger('log.jsonl'),
           lk.OptimizerMonitor(), lk.SpeedMonitor()]
    with tempfile.TemporaryDirectory() as path:
        learner(batches, model=net().to(device), cbs=cbs, metrics=lk.accuracy, path=path).fit(1)

# the same in other forms: of the hand-written loop, and as arguments of `ours`

def unchanged(o): return o

def hand_in(net, batches, device, around=nullcontext, put=unchanged, put_x=unchanged, lr=.01):
    """Train with a hand-written loop: the forward pass in the context `around`; `put` and `put_x` convert model and
    inputs"""
    model = put(net().to(device))
    opt = torch.optim.SGD(model.parameters(), lr=lr)
    for xb,yb in batches:
        with around(): loss = F.cross_entropy(model(put_x(xb)), yb)
        loss.backward()
        opt.step()
        opt.zero_grad()
    return model

def last(o): return o.to(memory_format=torch.channels_last)
def images_last(x): return last(x) if x.ndim==4 else x

def fp8(model):
    "Convert a model as torchao documents it: linear layers whose dimensions are divisible by 16, in a compiled model"
    from torchao.float8 import Float8LinearConfig, convert_to_float8_training
    config = Float8LinearConfig(pad_inner_dim=True, emulate=next(model.parameters()).device.type=='cpu')
    def is_wide(layer, name): return layer.in_features%16==0 and layer.out_features%16==0
    return torch.compile(convert_to_float8_training(model, module_filter_fn=is_wide, config=config))

def forms(device):
    "Return for each form the arguments of `hand_in`, and those of `ours`, of which `cbs` is a function"
    import learnkit.all as lk
    bf16 = partial(torch.autocast, device, torch.bfloat16)
    options = None if device=='cpu' else {'triton.cudagraphs':True}
    found = {
        'bf16':                (dict(around=bf16), dict(cbs=lambda: lk.MixedPrecision('bf16'))),
        'bf16, channels last': (dict(around=bf16, put=last, put_x=images_last),
                                dict(cbs=lambda: [lk.MixedPrecision('bf16'), lk.ChannelsLast()])),
        'compiled':            (dict(put=torch.compile), dict(change=lk.Learner.compile)),
        'fused':               (dict(), dict(cbs=lambda: lk.FusedStep(options=options)))}
    if importlib.util.find_spec('torchao') is not None:
        own = dict(cbs=lambda: lk.MixedPrecision('fp8'), change=lk.Learner.compile)
        found['fp8, compiled'] = dict(around=bf16, put=fp8),own
    return found

# steady steps: the first ones set up, and the last ones end the epoch

class Steady:
    "Batches that enter the context `watch` for `n` steps, from number `first` on"
    def __init__(self, batches, watch, first=10, n=20, device='cuda'):
        self.batches,self.watch,self.first,self.n,self.device = batches,watch,first,n,device
    def __len__(self): return len(self.batches)
    def __iter__(self):
        for i,batch in enumerate(self.batches):
            if i==self.first:
                wait(self.device)
                self.watch.__enter__()
            if i==self.first+self.n:
                wait(self.device)
                self.watch.__exit__(None, None, None)
            yield batch

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
        # It also warns that this is a prototype
        self.count = sum('called a synchronizing' in str(w.message) for w in self.seen)

def idle(spans):
    "Return the time in which none of the spans of work, (start, end), was under way, and its part of the whole time"
    spans = sorted(spans)
    first = end = spans[0][0]
    free = 0.
    for s,e in spans:
        free += max(0., s-end)
        end = max(end, e)
    return free,free/(end-first)

def work(prof, device):
    "Return what the device did, as spans in µs, without ranges of time that others named"
    kind = torch.autograd.DeviceType.CUDA if device=='cuda' else torch.autograd.DeviceType.CPU
    events = [e for e in prof.events() if e.device_type==kind]
    return [(e.time_range.start, e.time_range.end) for e in events if not e.is_user_annotation]

# the parts

def bench_syncs(rounds, device='cuda', n=20, nets=nets):
    "Counted once: the number does not vary"
    if device!='cuda': return print('\nWaiting can be counted on a CUDA device only')
    for name,(net,data) in nets.items():
        def count(loop, batches):
            watch = Syncs()
            with unseen(): loop(net, Steady(batches, watch, n=n), device)
            return watch.count/n
        host = data(n+20)
        there,here = put(host, device),pinned(host)
        counts = {'learnkit':                               count(ours, there),
                  'by hand, batches from pinned memory':    count(hand, Moved(here, device)),
                  'learnkit, batches from pinned memory':   count(ours, here),
                  'learnkit, batches from ordinary memory': count(ours, host),
                  'learnkit, with metrics, bar and loggers':count(watched, there)}
        rows = {row:(c, c, c) for row,c in counts.items()}
        title = f'How often the host waits for the device in a step of {name}'
        show(title, f'{count(hand, there):.1f}', rows, ' times')

def bench_idle(rounds, device='cuda', n=20, nets=nets):
    activities = [ProfilerActivity.CUDA if device=='cuda' else ProfilerActivity.CPU]
    for name,(net,data) in nets.items():
        batches = put(data(n+20), device)
        def measure(loop):
            "Return the idle time of a step, and its part of the time"
            prof = profile(activities=activities)
            with unseen(): loop(net, Steady(batches, prof, n=n, device=device), device)
            free,part = idle(work(prof, device))
            return free/n,part
        def measured(loop):
            "Return the spread of the idle time, and the median of its part"
            times,parts = zip(*[measure(loop) for _ in range(min(rounds, 7))])
            return spread(times),spread(parts)[0]
        for loop in (hand, ours): measure(loop)   # warm-up
        plain,plain_part = measured(hand)
        own,own_part = measured(ours)
        rows = {f'learnkit ({own_part:.0%} of the time)':own}
        title = f'Idle time of the device in a step of {name}'
        show(title, f'{plain[0]:.0f} µs ({plain_part:.0%} of the time)', rows, ' µs')

def clock(device):
    "Return a clock that waits for the device"
    def seconds():
        wait(device)
        return time.perf_counter()
    return seconds

def samples_of(batches): return sum(len(xb) for xb,_ in batches)

def bench_throughput(rounds, device='cuda', n=200, nets=nets):
    for name,(net,data) in nets.items():
        host = data(n)
        there = put(host, device)
        here = pinned(host) if device=='cuda' else host
        def run(loop, batches): return timed(lambda: loop(net, batches, device), clock(device))
        base,ratios = compare(rounds, run(hand, there), **{
            'learnkit':                                 run(ours, there),
            'by hand, batches from pinned memory':      run(hand, Moved(here, device)),
            'learnkit, batches from pinned memory':     run(ours, here),
            'learnkit, batches from ordinary memory':   run(ours, host)})
        title = f'Training {name}: time, beside that of the loop by hand, all batches on the device'
        show(title, f'{samples_of(host)/base:,.0f} items a second', ratios)

def bench_forms(rounds, device='cuda', n=50, nets=nets | large):
    """Each form compared with a hand-written loop in that form, a fused step with the plain loop; fp8 if torchao is
    installed"""
    from learnkit.callbacks.precision import can_be_float8
    for name,(net,data) in nets.items():
        batches = put(data(4), device)*(n//4)
        is_image = batches[0][0].ndim==4
        has_float8 = any(map(can_be_float8, net().modules()))
        for form,(by_hand,own) in forms(device).items():
            if 'channels' in form and not is_image: continue
            if 'fp8' in form and not has_float8: continue
            def train_plain(): hand_in(net, batches, device, **by_hand)
            def train_own():
                kwargs = dict(own)
                if 'cbs' in own: kwargs['cbs'] = own['cbs']()
                ours(net, batches, device, **kwargs)
            base,ratios = compare(rounds, timed(train_plain, clock(device)), learnkit=timed(train_own, clock(device)))
            show(f'Training {name}, {form}', f'{samples_of(batches)/base:,.0f} items a second', ratios)

def bench_memory(rounds, device='cuda', n=4, nets=nets | large):
    "The peak of memory of training, measured once: it does not vary"
    def peak_of(f):
        if device!='cuda': return peak(f)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        f()
        return (torch.cuda.max_memory_allocated()-before)/2**20
    for name,(net,data) in nets.items():
        batches = put(data(n), device)
        with unseen(): plain,own = [peak_of(lambda: loop(net, batches, device)) for loop in (hand, ours)]
        show(f'Training {name}: peak of memory', f'{plain:.0f} MiB', {'learnkit':(own, own, own)}, ' MiB')

parts = dict(syncs=bench_syncs, idle=bench_idle, throughput=bench_throughput, device_forms=bench_forms,
             device_memory=bench_memory)
