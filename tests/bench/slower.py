"""Is this commit slower than another one? A report in a few minutes: what learnkit calls, its bytecode instructions,
and the time of both commits in turn.

    make slower                                 this tree against the last commit; AGAINST=HEAD~5 for another one
    python tests/bench/slower.py HEAD~5         against the commit five before
    python tests/bench/slower.py --counts       counts alone: half a minute, the same on any machine

Counts are exact: those of a longer run minus those of a shorter one, divided by the difference of their lengths.
Times are ratios of two runs, one right after the other, until the median is known to 2 percent. It is a report:
nothing fails.
"""
import argparse, json, subprocess, sys, tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import tools
from tools import learner, root, spread, steps, alternate, timed

# the jobs: each makes, for `n` of its units, a function that does them

def _train(n, *cbs, **kw):
    batches = steps(n)
    return lambda: learner(batches, cbs=[make() for make in cbs], **kw).fit(1)

def train(n, path): return _train(n)

def accumulate(n, path):
    from learnkit.all import GradientAccumulation
    return _train(n, partial(GradientAccumulation, 128))

def schedule(n, path):
    from learnkit.all import ParamScheduler, one_cycle
    return _train(n, lambda: ParamScheduler(one_cycle(.01)))

def clip_and_average(n, path):
    from learnkit.all import EMACallback, GradientClip
    return _train(n, GradientClip, EMACallback)

def checkpoint(n, path):
    from learnkit.all import CheckpointCallback
    return _train(n, partial(CheckpointCallback, '1ba', overwrite=True), path=path)

def validate(n, path): return partial(learner(steps(1)).validate, dl=steps(n))
def predict(n, path): return partial(learner(steps(1)).get_preds, dl=steps(n))

def fit_once(n, path):
    batches = steps(1)
    def fits():
        for _ in range(n): learner(batches).fit(1)
    return fits

def one_sample(n, path):
    learn = learner(steps(1))
    sample = steps(1)[0][0][0]
    def predictions():
        for _ in range(n): learn.predict(sample)
    return predictions

# what it is, the units of a short run, and of a long one
jobs = {'a training step':(train, 20, 60), 'a step of GradientAccumulation':(accumulate, 20, 60), 'a step of one cycle':(schedule, 20, 60),
        'a step, clipped and averaged':(clip_and_average, 20, 60), 'a batch of `validate`':(validate, 100, 200), 'a batch of `get_preds`':(predict, 100, 200),
        'a Learner and its fit of one batch':(fit_once, 2, 6), 'a step with a checkpoint':(checkpoint, 3, 6), '`predict` of a sample':(one_sample, 2, 6)}

# counts

class Counts:
    "Counts the calls of learnkit's functions, and their bytecode instructions"
    def __init__(self, package): self.package,self.calls,self.instructions = str(package),0,0

    def _trace(self, frame, what, arg):
        if what=='call':
            if not frame.f_code.co_filename.startswith(self.package): return None
            self.calls += 1
            frame.f_trace_opcodes,frame.f_trace_lines = True,False
        elif what=='opcode': self.instructions += 1
        return self._trace

    def of(self, f):
        f()   # what is done once is done now
        self.calls = self.instructions = 0
        with tools.unseen():
            sys.settrace(self._trace)
            try: f()
            finally: sys.settrace(None)
        return self.calls,self.instructions

def count(name, path):
    "Calls and instructions for each unit of a job"
    import learnkit
    make,short,long = jobs[name]
    with tools.unseen(): least,most = [Counts(Path(learnkit.__file__).parent).of(make(n, path)) for n in (short, long)]
    return [(b-a)/(long-short) for a,b in zip(least, most)]

# a process for each commit

def answer(times, path, name, what):
    "Return the counts of a job, or the seconds that a longer run of it takes"
    if what=='count': return count(name, path)
    if name not in times:
        make,_,long = jobs[name]
        times[name] = timed(make(5*long, path))
        times[name]()
    return times[name]()

def serve(checkout):
    "Reply on the standard output, line by line, to requests on the standard input"
    sys.path.insert(0, checkout)
    out,times = sys.stdout,{}
    with tempfile.TemporaryDirectory() as path:
        for line in sys.stdin:
            try: said = answer(times, path, *json.loads(line))
            except Exception as e: said = dict(error=f'{type(e).__name__}: {e}')   # an older commit may not have all of it
            print(json.dumps(said), file=out, flush=True)

@contextmanager
def process(checkout):
    "A process that runs the learnkit of the folder `checkout`; yields the function that requests a measurement"
    p = subprocess.Popen([sys.executable, __file__, '--serve', str(checkout)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    def ask(name, what):
        print(json.dumps([name, what]), file=p.stdin, flush=True)
        said = p.stdout.readline()
        if not said: raise RuntimeError(f'the process that runs {checkout} ended in {name!r}: its error is above')
        return json.loads(said)
    try: yield ask
    finally:
        p.stdin.close()
        p.wait()

@contextmanager
def checked_out(commit):
    "The files of a commit, in a folder of their own"
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(['git', 'archive', commit, 'learnkit'], cwd=root, check=True, capture_output=True).stdout
        subprocess.run(['tar', '-x', '-C', folder], input=archive, check=True)
        yield folder

def compare(before, now, rounds):
    "Print the table of all jobs"
    first = 'for each'
    print(f"{first:<38}{'calls':>16}{'instructions':>20}   time: median (quartiles)")
    for name in jobs:
        old,new = before(name, 'count'),now(name, 'count')
        errors = [said['error'] for said in (old, new) if isinstance(said, dict)]
        if errors: print(f'{name:<38}not compared: {errors[0]}')
        else: print(row(name, old, new, rounds and ratios(name, before, now, rounds)), flush=True)

def ratios(name, before, now, rounds):
    "The median and the quartiles of the ratios of time"
    def pair(i):
        if i%2==0: return before(name, 'time'),now(name, 'time')
        return (now(name, 'time'), before(name, 'time'))[::-1]
    return spread([b/a for a,b in alternate(rounds, {name:pair})[name]])

def row(name, old, new, times):
    "A line of the table; it ends with 'slower' for a count that grew by 2 percent, or three quarters of the times"
    calls,instructions = [f'{a:.0f} → {b:.0f}' for a,b in zip(old, new)]
    is_slower = any(b>1.02*a for a,b in zip(old, new))
    seconds = ''
    if times:
        mid,low,high = times
        seconds = f'{mid:.3f} ({low:.3f} to {high:.3f})'
        is_slower = is_slower or low>1.02
    end = '   slower' if is_slower else ''
    return f'{name:<38}{calls:>16}{instructions:>20}   {seconds}{end}'

def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument('commit', nargs='?', default='HEAD', help='the commit to compare this tree with')
    ask.add_argument('--counts', action='store_true', help='count, and measure no time')
    ask.add_argument('--rounds', type=int, default=30, help='so many pairs of runs at most')
    ask.add_argument('--serve', help=argparse.SUPPRESS)
    args = ask.parse_args()
    if args.serve: return serve(args.serve)
    with checked_out(args.commit) as folder, process(folder) as before, process(root) as now:
        compare(before, now, 0 if args.counts else args.rounds)

if __name__=='__main__': main()
