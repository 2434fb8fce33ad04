"""What a fused step costs, as a ratio to a hand-written loop, in alternating rounds of one run. And what compiling costs:
in a first process, in a later one, and in a later fit of one process.

    python tests/bench/fused.py            30 rounds at most
    python tests/bench/fused.py --quick    3
"""
import argparse, os, subprocess, sys, tempfile, time
from functools import partial
from pathlib import Path
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader
from tools import Rows, as_is, cpu, extremes, plain_fit, compare, show, spread, steps, timed, tiny, unseen

def plain_loop(model, opt, batches):
    for xb,yb in batches:
        F.cross_entropy(model(xb), yb).backward()
        opt.step()
        opt.zero_grad()

def bench_fused(rounds):
    "A step of the tiny network: eager and fused. What is compiled is kept, so compiling is in none of the rounds."
    from learnkit import DataLoaders, Learner, TrainEvalCallback
    from learnkit.callbacks.averages import EMACallback
    from learnkit.speed.fused import FusedStep
    batches = steps(1000)
    unguarded = dict(cpp_wrapper=True, guard_filter_fn=torch.compiler.skip_all_guards_unsafe)
    def fits(opt_func, fused, options=None, more=(), **kw):
        learn,cbs = Learner(DataLoaders(batches), tiny(), F.cross_entropy, opt_func, lr=.001, **kw),FusedStep(options=options) if fused else None
        return timed(lambda: learn.fit(1, cbs=[cbs, *(cb() for cb in more)] if fused else [cb() for cb in more]))
    for opt_func in (torch.optim.SGD, torch.optim.AdamW, torch.optim.NAdam):
        model = tiny()
        opt = opt_func(model.parameters(), lr=.001)
        base,ratios = compare(rounds, timed(lambda: plain_loop(model, opt, batches)), **{
            'learnkit':                                 fits(opt_func, False),
            'learnkit, fused':                          fits(opt_func, True),
            'learnkit, fused, without guards':          fits(opt_func, True, unguarded),
            'learnkit, fused, TrainEvalCallback only':  fits(opt_func, True, default_cbs=False, cbs=TrainEvalCallback),
            'learnkit, with EMA (loop without)':        fits(opt_func, False, more=[EMACallback]),
            'learnkit, with EMA (loop without), fused': fits(opt_func, True, more=[EMACallback])})
        show(f'A training step of a tiny network (32-64-10, batches of 32, {opt_func.__name__})', f'{base*1e6/len(batches):.0f} µs', ratios)
    bench_accumulating(rounds, batches)
    bench_sentences(rounds)
    bench_blocks(min(rounds, 5))
    bench_compiling(min(rounds, 3))
    bench_digits(min(rounds, 3))

def bench_accumulating(rounds, batches, n=4):
    "A batch of the tiny network, with a step every four batches"
    from learnkit import DataLoaders, Learner
    from learnkit.callbacks.accumulate import GradientAccumulation
    from learnkit.speed.fused import FusedStep
    model = tiny()
    opt = torch.optim.SGD(model.parameters(), lr=.001)
    def accumulate():
        for i,(xb,yb) in enumerate(batches):
            (F.cross_entropy(model(xb), yb)/n).backward()
            if i%n==n-1: opt.step(); opt.zero_grad()
    def fits(*cbs):
        learn = Learner(DataLoaders(batches), tiny(), F.cross_entropy, torch.optim.SGD, lr=.001)
        return timed(lambda: learn.fit(1, cbs=[GradientAccumulation(n*len(batches[0][1])), *cbs]))
    base,ratios = compare(rounds, timed(accumulate), **{'learnkit':fits(), 'learnkit, fused':fits(FusedStep())})
    show('A batch of a tiny network, a step every four batches (SGD)', f'{base*1e6/len(batches):.0f} µs', ratios)

class Words(torch.nn.Module):
    "The mean of the words of a sentence, and two layers"
    def __init__(self):
        super().__init__()
        self.emb,self.net = torch.nn.Embedding(50, 32),torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    def forward(self, x): return self.net(self.emb(x).mean(1))

def bench_sentences(rounds):
    "Batches of 16 sentences of 5 to 44 words: nearly each has a shape of its own"
    from learnkit import DataLoaders, Learner
    from learnkit.speed.fused import FusedStep
    g = torch.Generator().manual_seed(0)
    batches = [(torch.randint(0, 50, (16, n), generator=g), torch.randint(0, 10, (16,), generator=g)) for n in torch.randint(5, 45, (600,), generator=g).tolist()]
    model = Words()
    opt = torch.optim.AdamW(model.parameters(), lr=.001)
    def fits(*cbs):
        learn = Learner(DataLoaders(batches), Words(), F.cross_entropy, torch.optim.AdamW, lr=.001)
        return timed(lambda: learn.fit(1, cbs=cbs))
    base,ratios = compare(rounds, timed(lambda: plain_loop(model, opt, batches)), **{
        'learnkit':fits(), 'learnkit, fused, dynamic':fits(FusedStep(dynamic=True)), 'learnkit, fused':fits(FusedStep())})
    show('A step of sentences of 5 to 44 words (AdamW)', f'{base*1e6/len(batches):.0f} µs', ratios)

class Block(nn.Module):
    "A block of a transformer"
    def __init__(self, causal, d=64, heads=4):
        super().__init__()
        self.causal,self.heads = causal,heads
        self.before,self.between,self.qkv,self.out = nn.LayerNorm(d),nn.LayerNorm(d),nn.Linear(d, 3*d),nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4*d), nn.GELU(), nn.Linear(4*d, d))
    def forward(self, x):
        q,k,v = self.qkv(self.before(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).flatten(2))
        return x + self.mlp(self.between(x))

class GPT(nn.Module):
    "Four blocks over 32 characters"
    def __init__(self, d=64):
        super().__init__()
        self.chars,self.places,self.blocks = nn.Embedding(64, d),nn.Embedding(32, d),nn.Sequential(*[Block(True) for _ in range(4)])
        self.head = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 64))
    def forward(self, x): return self.head(self.blocks(self.chars(x) + self.places.weight)).flatten(0, 1)

class ViT(nn.Module):
    "One block over the 64 patches of a picture"
    def __init__(self, d=64):
        super().__init__()
        self.patches,self.places,self.block,self.head = nn.Conv2d(3, d, 4, 4),nn.Parameter(torch.zeros(64, d)),Block(False),nn.Linear(d, 10)
    def forward(self, x): return self.head(self.block(self.patches(x).flatten(2).mT + self.places).mean(1))

WARM = 10   # steps before the clock starts: until then what is compiled is compiled

class Clocked(Rows):
    "Rows that know the seconds of the processor from the fetch of batch `WARM` to that of the last one: `spent`"
    def __getitems__(self, idxs):
        if idxs[0]==WARM*len(idxs): self.start = cpu()
        if idxs[-1]==len(self)-1:   self.spent = cpu()-self.start
        return super().__getitems__(idxs)

def plain_compiled(model, opt, batches):
    "A hand-written loop with the whole step compiled: model and loss, with their gradients, and the optimizer"
    opt = opt(model.parameters())
    loss_of,step = torch.compile(lambda xb, yb: F.cross_entropy(model(xb), yb)),torch.compile(lambda: opt.step())
    for xb,yb in batches:
        loss_of(xb, yb).backward()
        step()
        opt.zero_grad()

def ways():
    "Name → who trains a model with an optimizer on batches, as it comes and compiled"
    from learnkit import DataLoaders, Learner
    from learnkit.speed.fused import FusedStep
    from peers import libraries, there
    def learnkit(model, opt, batches, cbs=None, **compiled):
        learn = Learner(DataLoaders(batches), model, F.cross_entropy, opt, cbs=cbs)
        if compiled: learn.compile(**compiled)
        learn.fit(1)
    others = {n:libraries[n].fit for n in ('Lightning','HF Trainer') if there(n)}
    def compiled(fit): return lambda model, opt, batches: fit(torch.compile(model), opt, batches)
    return {'by hand':plain_fit, 'by hand, model compiled':compiled(plain_fit), 'by hand, loss and step compiled':plain_compiled, 'learnkit':learnkit,
            'learnkit, compile(regional=True)':partial(learnkit, regional=True), 'learnkit, fused':lambda *args: learnkit(*args, FusedStep()),
            **others, **{f'{n}, compiled':compiled(f) for n,f in others.items()}}

def bench_blocks(rounds, n=100):
    "Common models, a small GPT and a block of a ViT: steps of fresh fits, after the first ones"
    opt,all_ways = partial(torch.optim.AdamW, lr=.001),ways()
    texts = torch.randint(64, (8*n, 32)),torch.randint(64, (8*n, 32))
    pictures = torch.randn(8*n, 3, 32, 32),torch.randint(10, (8*n,))
    for what,make,(x,y),tokens in ('a GPT of four blocks, 8 texts of 32 characters',GPT,texts,8*32),('a block of a ViT, 8 pictures of 64 patches',ViT,pictures,8*64):
        todo = {k:f for k,f in all_ways.items() if make is GPT or 'regional' not in k}   # one block repeats none
        def once(fit):
            torch.manual_seed(0)
            torch.compiler.reset()   # PyTorch recompiles the code of a loop only a few times
            model,rows = make(),Clocked(x, y)
            with unseen(): fit(model, opt, DataLoader(rows, 8, collate_fn=as_is))
            return rows.spent/(n-1-WARM),nn.utils.parameters_to_vector(model.parameters()).detach()
        want = once(todo['by hand'])[1]
        for k,f in todo.items():
            if not torch.allclose(once(f)[1], want, rtol=1e-2, atol=1e-3): raise ValueError(f'{k} comes to other weights than by hand')
        times = [{k:once(f)[0] for k,f in todo.items()} for _ in range(rounds)]
        base,*_ = spread([t['by hand'] for t in times])
        show(f'A step of {what} (AdamW)', f'{base*1e3:.2f} ms, {tokens/base:,.0f} tokens a second',
             {k:spread([t[k]/t['by hand'] for t in times]) for k in todo if k!='by hand'})

compiling = """
import sys, time
sys.path.insert(0, {here!r})
from run import *
from learnkit import DataLoaders, Learner
from learnkit.speed.fused import FusedStep
import torch._dynamo, torch._inductor.compile_fx   # of importing these
def fit(*cbs):
    learn = Learner(DataLoaders(steps(100)), {model}(), torch.nn.functional.cross_entropy, torch.optim.{opt}, lr=.001)
    start = time.perf_counter()
    with learn.no_bar(), learn.no_logging(): learn.fit(1, cbs=cbs)
    return time.perf_counter() - start
fit()   # of what the first fit costs
print(*(fit(FusedStep()) - fit() for _ in range(2)))
"""

def in_process(code, folder):
    "Return what `code` prints in a process that caches compiled graphs in `folder`"
    env = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=folder)
    return subprocess.run([sys.executable, '-c', code], env=env, capture_output=True, text=True, check=True).stdout.split()

def bench_compiling(rounds):
    "Seconds by which a fit of 100 batches is longer for compiling: by the clock, since the C++ compiler is another process"
    for opt in ('SGD','AdamW'):
        times = dict(first=[], later=[], again=[])
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as d:
                code = compiling.format(here=str(Path(__file__).parent), model='tiny', opt=opt)
                def process(): return map(float, in_process(code, d)[-2:])
                times['first'].append(next(iter(process())))
                later,again = process()
                times['later'].append(later); times['again'].append(again)
        base,*_ = extremes(times['first'])
        show(f'Compiling the step of a tiny network ({opt}), the import of the compiler excluded', f'{base:.1f} s',
             {n:extremes([t/base for t in times[k]]) for k,n in (('later','in a later process'),('again','in a later fit of one process'))},
             first='in the first process', span='least–most')

job = """
import sys, time
from functools import partial
sys.path.insert(0, {here!r})
import torch
from torch import nn
from torch.nn import functional as F
from learnkit import DataLoaders, Learner, accuracy
from learnkit.speed.fused import FusedStep
from tools import convnet, plain_fit, images
torch.set_num_threads(1)
def linear(): return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
x,y = images()
train,valid = ([*zip(a.split(n), b.split(n))] for a,b,n in ((x[:1500], y[:1500], {bs}), (x[1500:], y[1500:], 64)))
def plain_loop(): plain_fit({model}(), partial(torch.optim.Adam, lr=1e-3), train, valid, {epochs})
def fused(): Learner(DataLoaders(train, valid), {model}(), F.cross_entropy, torch.optim.Adam, lr=1e-3, metrics=accuracy).fit({epochs}, cbs=FusedStep())
times = []
for f in (plain_loop, fused)*2:
    start = time.perf_counter()
    f()
    times.append(time.perf_counter() - start)
print(*times)
"""

def bench_digits(rounds):
    """Whole jobs of some seconds with compiling included, in wall-clock time: ratio to a hand-written loop just
    before, in the same process"""
    for name,kw in {'64-32-10, batches of 16':dict(model='linear', bs=16, epochs=200), 'convolutional, batches of 64':dict(model='convnet', bs=64, epochs=100)}.items():
        code,first,later,again,base = job.format(here=str(Path(__file__).parent), **kw),[],[],[],[]
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as d:
                for ratios in (first, later):
                    hand,fused,*second = map(float, in_process(code, d)[-4:])
                    base.append(hand)
                    ratios.append(fused/hand)
                again.append(second[1]/second[0])
        show(f"The digits ({name}): {kw['epochs']} epochs with validation, compiling included", f'{extremes(base)[0]:.1f} s', {n:extremes(v) for n,v in
             {'fused, in the first process':first, 'fused, in a later process':later, 'fused, in a later fit of one process':again}.items()}, span='least–most')

if __name__=='__main__':
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument('--quick', action='store_true', help='3 rounds at most')
    bench_fused(3 if args.parse_args().quick else 30)
