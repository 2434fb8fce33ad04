"""What a fused step costs, as a ratio to the loop that one would write by hand: everything in one run, in turn, medians.

    python tests/bench/fused.py            11 rounds
    python tests/bench/fused.py --quick    3 rounds
"""
import argparse, sys
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
    from learnkit.speed.fused_step import FusedStep
    batches = steps(1000)
    unguarded = dict(cpp_wrapper=True, guard_filter_fn=torch.compiler.skip_all_guards_unsafe)
    def fits(opt_func, fused, options=None, **kw):
        learn,cbs = Learner(DataLoaders(batches), tiny(), F.cross_entropy, opt_func, lr=.001, **kw),FusedStep(options=options) if fused else None
        return timed(lambda: learn.fit(1, cbs=cbs))
    for opt_func in (torch.optim.SGD, torch.optim.AdamW):
        model = tiny()
        opt = opt_func(model.parameters(), lr=.001)
        base,ratios = in_turn(rounds, timed(lambda: by_hand(model, opt, batches)), **{
            'learnkit':                                 fits(opt_func, False),
            'learnkit, fused':                          fits(opt_func, True),
            'learnkit, fused, without guards':          fits(opt_func, True, unguarded),
            'learnkit, fused, TrainEvalCallback only':  fits(opt_func, True, default_cbs=False, cbs=TrainEvalCallback)})
        show(f'A training step of a tiny network (32-64-10, batches of 32, {opt_func.__name__})', f'{base*1e6/len(batches):.0f} µs', ratios)

if __name__=='__main__':
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument('--quick', action='store_true', help='3 rounds instead of 11')
    bench_fused(3 if args.parse_args().quick else 11)
