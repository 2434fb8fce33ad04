"""Damages files at random, and loads them: each is loaded or refused by a ValueError that leaves the Learner as it was, and no code of it is run.

    python tests/faults/fuzz.py 100000           so many files, in processes of their own; says what was refused, and what went wrong
    python tests/faults/fuzz.py 1000 --seed 7    other damage
    python tests/faults/fuzz.py --case 0 1234    one case again, in this process

What `learn.save`, `learn.export` and `CheckpointCallback` wrote is changed: bits, bytes, pieces, ends, parts of two files put together; in the
file as it is, or in the pickle inside of the zip with the checksums put right, as somebody would who wants it to be loaded.
"""
import gc, argparse, io, multiprocessing, os, random, resource, signal, sys, tempfile, time, warnings, zipfile
from collections import Counter
from pathlib import Path

root = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root), str(root/'tests'), str(root/'tests/faults')]
import torch, torch.nested._internal.ops, torch._subclasses.schema_check_mode   # these PyTorch imports late, when a tensor claims to be nested
from learnkit.recovery.file import read_checkpoint
from learnkit.recovery.export import load_learner
from learnkit.data.files import read_state
from test_safety import everything, learner, net, rezip, same, saved, with_note

# damage

def cut(r, d):     return d[:r.randrange(len(d))]
def flip(r, d):
    d = bytearray(d)
    for _ in range(r.choice([1, 1, 2, 8, 64])): d[r.randrange(len(d))] ^= 1<<r.randrange(8)
    return bytes(d)
def overwrite(r, d):
    i,n = r.randrange(len(d)),r.choice([1, 2, 4, 8, 100])
    return d[:i] + r.choice([bytes(n), b'\xff'*n, r.randbytes(n), r.choice(words)]) + d[i+n:]
def insert(r, d):  i = r.randrange(len(d)+1); return d[:i] + r.choice([r.randbytes(r.randint(1, 9)), r.choice(words)]) + d[i:]
def delete(r, d):  i = r.randrange(len(d)); return d[:i] + d[i+r.choice([1, 2, 8, 100]):]
def repeat(r, d):  i = r.randrange(len(d)); j = i + r.choice([1, 8, 100, 1000]); return d[:j] + d[i:j]*r.choice([1, 2, 50]) + d[j:]
def move(r, d):
    i,j = sorted(r.randrange(len(d)) for _ in range(2))
    k = r.randrange(len(d))
    return (d[:i] + d[j:])[:k] + d[i:j] + (d[:i] + d[j:])[k:]
harms = cut, flip, flip, overwrite, overwrite, insert, delete, repeat, move
words = [b'cos\nsystem\n', b'cbuiltins\neval\n', b'\x8c\x05posix\x8c\x06system\x93', b'R', b'(lp0\n', b'\x80\x02', b'PK\3\4', b'PK\5\6', b'torch', b'ctorch\nload\n', b'\x95\xff\xff\xff\xff\xff\xff\xff\x7f', b'JJJJJ', b'Q', b'.']

def damaged(r, files):
    "One of `files` with damage, and its kind"
    kind = r.choice([*files])
    data,other = files[kind],files[r.choice([*files])]
    match r.randrange(10):
        case 0: data = other                                                        # one for the other
        case 1: data = data[:r.randrange(len(data))] + other[r.randrange(len(other)):]   # two in one
        case 2|3|4:
            for _ in range(r.choice([1, 1, 2, 4])): data = r.choice(harms)(r, data) or b'x'
        case _:
            part = r.choice([n for n in zipfile.ZipFile(io.BytesIO(data)).namelist()] + ['data.pkl']*20)
            def change(n, d):
                if n.endswith(part) and d:
                    for _ in range(r.choice([1, 1, 2, 4])): d = r.choice(harms)(r, d) or b'x'
                return n,d
            data = rezip(data, change)
    return kind,data

# what is tried

class Try:
    "Loads one damaged file after the other into one Learner"
    def __init__(self):
        self.tmp = Path(tempfile.mkdtemp())
        self.learn = learn = learner(self.tmp)
        learn.save('good')
        self.model,self.files = net(),dict(load=(self.tmp/'models'/'good.pth').read_bytes(), check=saved(learn.run_state(1)), export=learn.export('e').read_bytes())
        self.good,self.events,self.watch = learn.run_state(1, copy=True),[],False
        self.before,self.own = everything(learn),{k:v.clone() for k,v in self.model.state_dict().items()}

    def read(self, kind, data):
        if kind=='load':     self.learn.load(io.BytesIO(data))
        elif kind=='export': load_learner(io.BytesIO(data), self.model)
        else:                self.learn.restore(read_checkpoint(with_note(self.tmp/'x'/'step-1.pth', data)))

    def __call__(self, seed, i):
        "Case number `i`: 'loaded' or 'refused', or else what is wrong"
        kind,data = damaged(random.Random(f'{seed} {i}'), self.files)
        signal.alarm(20)
        try: self.read(kind, data)
        except ValueError: res = 'refused'
        except BaseException as e: return f'{kind}: {type(e).__name__}: {e}'
        else: res = 'loaded'
        finally: signal.alarm(0)
        if self.events: return f'{kind}: {self.events}'
        if res=='refused' and not (same(self.before, everything(self.learn)) and same(self.own, dict(self.model.state_dict()))): return f'{kind}: refused, but something has changed'
        if res=='loaded': self.learn.restore(self.good); self.model.load_state_dict(self.own)
        if res=='loaded' and not same(self.before, everything(self.learn)): self.before = everything(self.learn)
        return f'{kind} {res}'

watched = '''exec compile import pickle.find_class os.system os.exec os.posix_spawn os.spawn os.fork subprocess.Popen marshal.loads
             code.__new__ ctypes.dlopen shutil.rmtree os.remove os.rename os.chmod os.putenv'''.split()

def watch(trial):
    "From now on, note what the interpreter does that a file could have asked for"
    def hook(name, args):
        if trial.watch and (name in watched or name.startswith('socket.')): trial.events.append((name, str(args)[:200]))
    sys.addaudithook(hook)

def run(trial, seed, start, n, out):
    "So many cases, in a process of their own; each result is sent as it comes, so that the case is known that ends the process"
    resource.setrlimit(resource.RLIMIT_AS, (16<<30, 16<<30))
    trial.before = everything(trial.learn)   # a fork draws other random numbers
    watch(trial)
    for i in range(start, start+n):
        trial.watch = True
        out.send((i, trial(seed, i)))
        trial.watch,trial.events = False,[]
    out.send(None)

def fuzz(n, seed=0, per=10_000, warm=300, tell=lambda *args: None):
    "`(results, wrong)`: how often each result came, and `(case, what is wrong)`"
    warnings.simplefilter('ignore')
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, too_long)
    trial,results,wrong,at = Try(),Counter(),[],0
    for i in range(warm): trial('warm', i)   # what is imported at the first time is not of interest
    gc.collect()   # loaders left in cycles by earlier tests end their workers here; in the child process they could not
    context = multiprocessing.get_context('fork')
    while at<n:
        a,b = context.Pipe(False)
        p = context.Process(target=run, args=(trial, seed, at, min(per, n-at), b))
        p.start()
        b.close()
        try:
            while (got := a.recv()) is not None:
                at,res = got[0]+1,got[1]
                results[res if res.endswith((' loaded',' refused')) else 'wrong'] += 1
                if not res.endswith((' loaded',' refused')): wrong.append(got)
        except EOFError: wrong.append((at, 'the process ended')); results['wrong'] += 1; at += 1
        p.join()
        tell(at, results, wrong)
    return results,wrong

def too_long(*args): raise TimeoutError('it hangs')

if __name__=='__main__':
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('n', type=int, nargs='?', default=100_000)
    p.add_argument('--seed', type=int, default=0)
    p.add_argument('--case', type=int, nargs=2, metavar=('SEED', 'NUMBER'))
    args = p.parse_args()
    if args.case: signal.signal(signal.SIGALRM, too_long); print(Try()(*args.case)); sys.exit()
    start = time.monotonic()
    def tell(n, results, wrong): print(f'{n} files in {time.monotonic()-start:.0f} s: ' + ', '.join(f'{v} {k}' for k,v in sorted(results.items())), flush=True)
    results,wrong = fuzz(args.n, args.seed, tell=tell)
    for case,what in wrong[:20]: print(f'case {args.seed} {case}: {what}')
    sys.exit(bool(wrong))
