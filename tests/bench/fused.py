"""What a fused step costs, as a ratio to the loop that one would write by hand: everything in one run, in turn, medians.
And what compiling costs: in a first process, in a later one, and in a later fit of one process.

    python tests/bench/fused.py            11 rounds
    python tests/bench/fused.py --quick    3 rounds
"""
import argparse, os, subprocess, sys, tempfile, time
from pathlib import Path
import torch
from torch.nn import functional as F
from run import in_turn, show, steps, timed, tiny

def by_hand(model, opt, batches):
    for xb,yb in batches:
        F.cross_entropy(model(xb), yb).backward()
        opt.step()
        opt.zero_grad()

def bench_fused(rounds):
    "A step of the tiny network: eager and fused. What is compiled is kept, so compiling is in none of the rounds."
    from learnkit import DataLoaders, Learner, TrainEvalCallback
    from learnkit.optim.ema import EMACallback
    from learnkit.speed.fused_step import FusedStep
    batches = steps(1000)
    unguarded = dict(cpp_wrapper=True, guard_filter_fn=torch.compiler.skip_all_guards_unsafe)
    def fits(opt_func, fused, options=None, more=(), **kw):
        learn,cbs = Learner(DataLoaders(batches), tiny(), F.cross_entropy, opt_func, lr=.001, **kw),FusedStep(options=options) if fused else None
        return timed(lambda: learn.fit(1, cbs=[cbs, *(cb() for cb in more)] if fused else [cb() for cb in more]))
    for opt_func in (torch.optim.SGD, torch.optim.AdamW, torch.optim.NAdam):
        model = tiny()
        opt = opt_func(model.parameters(), lr=.001)
        base,ratios = in_turn(rounds, timed(lambda: by_hand(model, opt, batches)), **{
            'learnkit':                                 fits(opt_func, False),
            'learnkit, fused':                          fits(opt_func, True),
            'learnkit, fused, without guards':          fits(opt_func, True, unguarded),
            'learnkit, fused, TrainEvalCallback only':  fits(opt_func, True, default_cbs=False, cbs=TrainEvalCallback),
            'learnkit, with EMA':                       fits(opt_func, False, more=[EMACallback]),
            'learnkit, with EMA, fused':                fits(opt_func, True, more=[EMACallback])})
        show(f'A training step of a tiny network (32-64-10, batches of 32, {opt_func.__name__})', f'{base*1e6/len(batches):.0f} µs', ratios)
    bench_compiling(min(rounds, 3))

compiling = """
import sys, time
sys.path.insert(0, {here!r})
from run import *
from learnkit import DataLoaders, Learner
from learnkit.speed.fused_step import FusedStep
import torch._dynamo, torch._inductor.compile_fx   # of importing these
def fit(*cbs):
    learn = Learner(DataLoaders(steps(100)), {model}(), torch.nn.functional.cross_entropy, torch.optim.{opt}, lr=.001)
    start = time.perf_counter()
    with learn.no_bar(), learn.no_logging(): learn.fit(1, cbs=cbs)
    return time.perf_counter() - start
fit()   # of what the first fit costs
print(*(fit(FusedStep()) - fit() for _ in range(2)))
"""

def bench_compiling(rounds):
    "Seconds by which a fit of 100 batches is longer for compiling: by the clock, since the C++ compiler is another process"
    for opt in ('SGD','AdamW'):
        times = dict(first=[], later=[], again=[])
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as d:
                code = compiling.format(here=str(Path(__file__).parent), model='tiny', opt=opt)
                def process():
                    env = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=d)
                    return map(float, subprocess.run([sys.executable, '-c', code], env=env, capture_output=True, text=True, check=True).stdout.split()[-2:])
                times['first'].append(next(iter(process())))
                later,again = process()
                times['later'].append(later); times['again'].append(again)
        mid = {k:sorted(v)[len(v)//2] for k,v in times.items()}
        base = mid['first']
        show(f'Compiling the step of a tiny network ({opt}), the import of the compiler excluded', f'{base:.1f} s',
             {n:[x/base for x in (mid[k], min(times[k]), max(times[k]))] for k,n in (('later','in a later process'),('again','in a later fit of one process'))},
             first='in the first process')

if __name__=='__main__':
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument('--quick', action='store_true', help='3 rounds instead of 11')
    bench_fused(3 if args.parse_args().quick else 11)
