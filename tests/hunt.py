"The loop of the scripts in tests/fuzz: draw a case, run it and judge it until the time is over; print failures"
import argparse, random, sys, time
from collections import Counter
import torch

def hunt(draw, attempt, seed, n=None, minutes=None, show=print):
    """Do `n` runs, or as many as fit into `minutes`; return their number, outcomes and failures. `draw` returns
    the kind and the script of a run, `attempt` how it ended and what is wrong with it"""
    ended,wrong,end,i = Counter(),[],time.monotonic()+60*(minutes or 0),0
    while i<n if n is not None else time.monotonic()<end:
        kind,script = draw(seed, i)
        how,fault = attempt(kind, script)
        ended[f'{kind}: {how}'] += 1
        if fault:
            wrong.append((i, fault, script))
            show(f'# run {i} of seed {seed}, {kind}: {fault}\n{script}', flush=True)
        i += 1
    return i,ended,wrong

def main(fuzz, again):
    "Run the command line of such a script: `fuzz` searches for failures, `again` repeats one case"
    a = argparse.ArgumentParser()
    a.add_argument('--minutes', type=float, default=20)
    a.add_argument('--seed', type=int, default=random.randrange(10**6))
    a.add_argument('--case', type=int, nargs=2)
    a = a.parse_args()
    torch.set_num_threads(1)
    if a.case: return again(*a.case)
    print(f'seed {a.seed}', flush=True)
    n,ended,wrong = fuzz(a.seed, minutes=a.minutes)
    print(f'{n} runs, {len(wrong)} of them wrong')
    for k,v in sorted(ended.items()): print(f'{v:5} {k}')
    sys.exit(len(wrong)>0)
