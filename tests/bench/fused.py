"""What a fused step costs, as a ratio to a hand-written loop, in alternating rounds of one run. And what compiling
costs: in a first process, in a later one, and in a later fit of one process.

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
from tools import Rows, as_is, cpu, extremes, plain_fit, compare, show, steps, timed, tiny, unseen

def plain_loop(model, opt, batches):
    for xb,yb in batches:
        F.cross_entropy(model(xb), yb).backward()
        opt.step()
        opt.zero_grad()

def us(base, batches): return f'{base*1e6/len(batches):.0f} µs'

def bench_fused(rounds):
    "A step of the tiny network, eager and fused. Compiled graphs are kept, so no round compiles"
    from learnkit import DataLoaders, Learner, TrainEvalCallback
    from learnkit.callbacks.averages import EMACallback
    from learnkit.speed.fused import FusedStep
    batches = steps(1000)
    unguarded = dict(cpp_wrapper=True, guard_filter_fn=torch.compiler.skip_all_guards_unsafe)
    for opt_func in (torch.optim.SGD, torch.optim.AdamW, torch.optim.NAdam):
        model = tiny()
        opt = opt_func(model.parameters(), lr=.001)
        def plain(): plain_loop(model, opt, batches)
        def fits(*cbs, ema=False, **kwargs):
            learn = Learner(DataLoaders(batches), tiny(), F.cross_entropy, opt_func, lr=.001, **kwargs)
            def train():
                averages = [EMACallback()] if ema else []
                learn.fit(1, cbs=[*cbs, *averages])
            return timed(train)
        train_eval_only = dict(default_cbs=False, cbs=TrainEvalCallback)
        base,ratios = compare(rounds, timed(plain), **{
            'learnkit':                                 fits(),
            'learnkit, fused':                          fits(FusedStep()),
            'learnkit, fused, without guards':          fits(FusedStep(options=unguarded)),
            'learnkit, fused, TrainEvalCallback only':  fits(FusedStep(), **train_eval_only),
            'learnkit, with EMA (loop without)':        fits(ema=True),
            'learnkit, with EMA (loop without), fused': fits(FusedStep(), ema=True)})
        what = f'A training step of a tiny network (32-64-10, batches of 32, {opt_func.__name__})'
        show(what, us(base, batches), ratios)
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
    def plain():
        for i,(xb,yb) in enumerate(batches):
            (F.cross_entropy(model(xb), yb)/n).backward()
            if i%n==n-1:
                opt.step()
                opt.zero_grad()
    n_samples = n*len(batches[0][1])
    def fits(*cbs):
        learn = Learner(DataLoaders(batches), tiny(), F.cross_entropy, torch.optim.SGD, lr=.001)
        return timed(lambda: learn.fit(1, cbs=[GradientAccumulation(n_samples), *cbs]))
    base,ratios = compare(rounds, timed(plain), **{'learnkit':fits(), 'learnkit, fused':fits(FusedStep())})
    show('A batch of a tiny network, a step every four batches (SGD)', us(base, batches), ratios)

class Words(nn.Module):
    "The mean of the words of a sentence, and two layers"
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 32)
        self.net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    def forward(self, x): return self.net(self.emb(x).mean(1))

def bench_sentences(rounds):
    "Batches of 16 sentences of 5 to 44 words: most have a shape of their own"
    from learnkit import DataLoaders, Learner
    from learnkit.speed.fused import FusedStep
    g = torch.Generator().manual_seed(0)
    lengths = torch.randint(5, 45, (600,), generator=g).tolist()
    def sentences(n): return torch.randint(0, 50, (16, n), generator=g),torch.randint(0, 10, (16,), generator=g)
    batches = [sentences(n) for n in lengths]
    model = Words()
    opt = torch.optim.AdamW(model.parameters(), lr=.001)
    def plain(): plain_loop(model, opt, batches)
    def fits(*cbs):
        learn = Learner(DataLoaders(batches), Words(), F.cross_entropy, torch.optim.AdamW, lr=.001)
        return timed(lambda: learn.fit(1, cbs=cbs))
    base,ratios = compare(rounds, timed(plain), **{
        'learnkit':                 fits(),
        'learnkit, fused, dynamic': fits(FusedStep(dynamic=True)),
        'learnkit, fused':          fits(FusedStep())})
    show('A step of sentences of 5 to 44 words (AdamW)', us(base, batches), ratios)

class Block(nn.Module):
    "A block of a transformer"
    def __init__(self, causal, d=64, heads=4):
        super().__init__()
        self.causal,self.heads = causal,heads
        self.before = nn.LayerNorm(d)
        self.between = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3*d)
        self.out = nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4*d), nn.GELU(), nn.Linear(4*d, d))
    def forward(self, x):
        q,k,v = self.qkv(self.before(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.mlp(self.between(x))

class GPT(nn.Module):
    "Four blocks over 32 characters"
    def __init__(self, d=64):
        super().__init__()
        self.chars = nn.Embedding(64, d)
        self.places = nn.Embedding(32, d)
        self.blocks = nn.Sequential(*[Block(True) for _ in range(4)])
        self.head = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 64))
    def forward(self, x):
        x = self.chars(x) + self.places.weight
        return self.head(self.blocks(x)).flatten(0, 1)

class ViT(nn.Module):
    "One block over the 64 patches of an image"
    def __init__(self, d=64):
        super().__init__()
        self.patches = nn.Conv2d(3, d, 4, 4)
        self.places = nn.Parameter(torch.zeros(64, d))
        self.block = Block(False)
        self.head = nn.Linear(d, 10)
    def forward(self, x):
        x = self.patches(x).flatten(2).mT + self.places
        return self.head(self.block(x).mean(1))

WARM = 10   # steps before the clock starts: by then everything is compiled

class Clocked(Rows):
    "Rows that time the steps from the fetch of batch `WARM` to that of the last one: `spent` has the CPU seconds"
    def __getitems__(self, indices):
        if indices[0]==WARM*len(indices): self.start = cpu()
        if indices[-1]==len(self)-1:      self.spent = cpu()-self.start
        return super().__getitems__(indices)

def plain_compiled(model, opt, batches):
    "A hand-written loop with the whole step compiled: model and loss, with their gradients, and the optimizer"
    opt = opt(model.parameters())
    loss_of = torch.compile(lambda xb, yb: F.cross_entropy(model(xb), yb))
    step = torch.compile(lambda: opt.step())
    for xb,yb in batches:
        loss_of(xb, yb).backward()
        step()
        opt.zero_grad()

def ways():
    "Return by name functions that train a model with an optimizer on batches, eager and compiled"
    from learnkit import DataLoaders, Learner
    from learnkit.speed.fused import FusedStep
    from peers import libraries, there
    def learnkit(model, opt, batches, cbs=None, **compiled):
        learn = Learner(DataLoaders(batches), model, F.cross_entropy, opt, cbs=cbs)
        if compiled: learn.compile(**compiled)
        learn.fit(1)
    def fused(model, opt, batches): learnkit(model, opt, batches, FusedStep())
    def compiled(fit): return lambda model, opt, batches: fit(torch.compile(model), opt, batches)
    others = {name:libraries[name].fit for name in ('Lightning','HF Trainer') if there(name)}
    return {'by hand':                          plain_fit,
            'by hand, model compiled':          compiled(plain_fit),
            'by hand, loss and step compiled':  plain_compiled,
            'learnkit':                         learnkit,
            'learnkit, compile(regional=True)': partial(learnkit, regional=True),
            'learnkit, fused':                  fused,
            **others,
            **{f'{name}, compiled':compiled(fit) for name,fit in others.items()}}

def bench_blocks(rounds, n=100):
    "Common models, a small GPT and a block of a ViT: steps of fresh fits, after the first ones"
    all_ways = ways()
    texts = torch.randint(64, (8*n, 32)),torch.randint(64, (8*n, 32))
    pictures = torch.randn(8*n, 3, 32, 32),torch.randint(10, (8*n,))
    repeats_no_block = {name:fit for name,fit in all_ways.items() if 'regional' not in name}
    bench_block('a GPT of four blocks, 8 texts of 32 characters', GPT, texts, 8*32, all_ways, rounds, n)
    bench_block('a block of a ViT, 8 pictures of 64 patches', ViT, pictures, 8*64, repeats_no_block, rounds, n)

def bench_block(what, make, data, n_tokens, todo, rounds, n):
    opt = partial(torch.optim.AdamW, lr=.001)
    def once(fit):
        "Return the seconds of a step, and the weights"
        torch.manual_seed(0)
        torch.compiler.reset()   # PyTorch recompiles the code of a loop only a few times
        model,rows = make(),Clocked(*data)
        with unseen(): fit(model, opt, DataLoader(rows, 8, collate_fn=as_is))
        return rows.spent/(n-1-WARM),nn.utils.parameters_to_vector(model.parameters()).detach()
    _,expected = once(todo['by hand'])
    for name,fit in todo.items():
        _,found = once(fit)
        if torch.allclose(found, expected, rtol=1e-2, atol=1e-3): continue
        raise ValueError(f'the weights of {name} differ from those of the hand-written loop')
    def seconds_of(fit): return lambda: once(fit)[0]
    seconds = {name:seconds_of(fit) for name,fit in todo.items()}
    base,rows = compare(rounds, seconds.pop('by hand'), **seconds)
    show(f'A step of {what} (AdamW)', f'{base*1e3:.2f} ms, {n_tokens/base:,.0f} tokens a second', rows)

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
    done = subprocess.run([sys.executable, '-c', code], env=env, capture_output=True, text=True, check=True)
    return done.stdout.split()

def bench_compiling(rounds):
    "Seconds by which compiling makes a fit of 100 batches longer: wall-clock, as the C++ compiler is another process"
    for opt in ('SGD','AdamW'):
        code = compiling.format(here=str(Path(__file__).parent), model='tiny', opt=opt)
        def seconds(folder): return [float(printed) for printed in in_process(code, folder)[-2:]]
        first,later,again = [],[],[]
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                first.append(seconds(folder)[0])
                in_later_process,in_later_fit = seconds(folder)
            later.append(in_later_process)
            again.append(in_later_fit)
        base,*_ = extremes(first)
        rows = {'in a later process':           extremes([t/base for t in later]),
                'in a later fit of one process':extremes([t/base for t in again])}
        what = f'Compiling the step of a tiny network ({opt}), the import of the compiler excluded'
        show(what, f'{base:.1f} s', rows, first='in the first process', span='least–most')

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
train = [*zip(x[:1500].split({bs}), y[:1500].split({bs}))]
valid = [*zip(x[1500:].split(64), y[1500:].split(64))]
def plain_loop(): plain_fit({model}(), partial(torch.optim.Adam, lr=1e-3), train, valid, {epochs})
def fused():
    learn = Learner(DataLoaders(train, valid), {model}(), F.cross_entropy, torch.optim.Adam, lr=1e-3, metrics=accuracy)
    learn.fit({epochs}, cbs=FusedStep())
times = []
for f in (plain_loop, fused)*2:
    start = time.perf_counter()
    f()
    times.append(time.perf_counter() - start)
print(*times)
"""

def bench_digits(rounds):
    """Whole jobs of some seconds with compiling included, in wall-clock time: ratio to a hand-written loop just before,
    in the same process"""
    jobs = {'64-32-10, batches of 16':      dict(model='linear', bs=16, epochs=200),
            'convolutional, batches of 64': dict(model='convnet', bs=64, epochs=100)}
    for name,kwargs in jobs.items():
        code = job.format(here=str(Path(__file__).parent), **kwargs)
        first,later,again,base = [],[],[],[]
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                for ratios in (first, later):
                    plain,fused,second_plain,second_fused = map(float, in_process(code, folder)[-4:])
                    base.append(plain)
                    ratios.append(fused/plain)
                again.append(second_fused/second_plain)
        rows = {'fused, in the first process':              extremes(first),
                'fused, in a later process':                extremes(later),
                'fused, in a later fit of one process':     extremes(again)}
        what = f"The digits ({name}): {kwargs['epochs']} epochs with validation, compiling included"
        show(what, f'{extremes(base)[0]:.1f} s', rows, span='least–most')

if __name__=='__main__':
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument('--quick', action='store_true', help='3 rounds at most')
    bench_fused(3 if args.parse_args().quick else 30)
