"""Damages files at random, and reads them: each is loaded, or raises a ValueError that leaves the Learner unchanged,
and no code in it is run.

    python tests/fuzz/files.py --minutes 20          as many files as fit in; prints failures
    python tests/fuzz/files.py --n 1000 --seed 7     1000 files, with different damage
    python tests/fuzz/files.py --case 0 1234         one case again, in this process

It changes files of `learn.save`, `learn.export`, `CheckpointCallback` (with and without sharded models) and the
loggers: bits, bytes, pieces, ends, parts of two files put together; in the file itself, or in the pickle inside of
the zip. Half of the time checksums are corrected, as an attacker would do who wants the file to be read.
"""
import argparse, gc, hashlib, io, json, multiprocessing, os, random, resource, signal, sys, tempfile, time, warnings, zipfile
from collections import Counter
from pathlib import Path

root = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root), str(root/'tests'), str(root/'tests/faults'), str(root/'tests/fuzz')]
import torch, torch.nested._internal.ops, torch._subclasses.schema_check_mode   # these PyTorch imports late, when a tensor claims to be nested
from learnkit.all import Callback, CSVLogger, JsonLogger
from learnkit.recovery.file import checkpoint_info, newest_checkpoint, read_checkpoint, write_checkpoint
from learnkit.recovery.export import load_learner
from learnkit.recovery.shard_files import _allowed_names, read_shards, split_shards, write_shards
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
words = [b'../../', b'"', b'{', b'}', b',', b'1e999', b'null', b'NaN', b'-1', b'\n', b'\r', b'\0', b'__0_0.distcp', b'[[[[[[', b'99999999999999999999', b'cos\nsystem\n', b'cbuiltins\neval\n', b'\x8c\x05posix\x8c\x06system\x93', b'R', b'(lp0\n', b'\x80\x02', b'PK\3\4', b'PK\5\6', b'torch', b'ctorch\nload\n', b'\x95\xff\xff\xff\xff\xff\xff\xff\x7f', b'JJJJJ', b'Q', b'.']

def harmed(r, data):
    "`data` with damage"
    for _ in range(r.choice([1, 1, 2, 4])): data = r.choice(harms)(r, data) or b'x'
    return data

def damaged(r, files):
    "One of `files` with damage, and its kind"
    kind = r.choice([*files])
    data,other = files[kind],files[r.choice([*files])]
    match r.randrange(10):
        case 0: data = other                                                        # one for the other
        case 1: data = data[:r.randrange(len(data))] + other[r.randrange(len(other)):]   # two in one
        case 2|3|4: data = harmed(r, data)
        case _ if not data.startswith(b'PK\3\4'): data = harmed(r, data)
        case _:
            part = r.choice([n for n in zipfile.ZipFile(io.BytesIO(data)).namelist()] + ['data.pkl']*20)
            def change(n, d):
                return n,harmed(r, d) if n.endswith(part) and d else d
            data = rezip(data, change)
    return kind,data

# what is tried

def sums(path):
    "Put the checksum of a manifest right"
    try: note = json.loads(path.read_text(encoding='utf-8'))   # bytes may be UTF-16, whose codec is a module
    except (ValueError, RecursionError): return
    if not isinstance(note, dict): return
    note.pop('note_sha256', None)
    try: digest = hashlib.sha256(json.dumps(note, sort_keys=True).encode()).hexdigest()
    except RecursionError: return
    path.write_text(json.dumps({**note, 'note_sha256':digest}))

def listed(folder, files): return {k:[len(d := (folder/k).read_bytes()), hashlib.sha256(d).hexdigest()] for k in files}

class Try:
    "Reads one damaged file after the other, with one Learner"
    def __init__(self):
        self.tmp = tmp = Path(tempfile.mkdtemp())
        self.learn = learn = learner(tmp, cbs=[JsonLogger(), CSVLogger()])
        learn.save('good')
        self.model,parts = net(),dict(w=torch.arange(12.).view(3, 4), n=torch.tensor(5), b=torch.ones(5, dtype=torch.bfloat16))
        self.rest,wanted = split_shards(dict(model=parts), torch.is_tensor)
        self.shards = tmp/'s.shards'
        self.listed = write_shards(wanted, self.shards)
        state = learn._run_state(1)
        for i in (1, 2): write_checkpoint({**state, 'train_iter':i}, tmp/'run'/f'step-0000000{i}.pth', results={'valid_loss':.5})
        state_of = dict(model=learn.model.state_dict(), opt=learn.opt.state_dict())
        self.paths = dict(safetensors=learn.export('e.safetensors'), note=tmp/'run'/'step-00000002.json', newest=tmp/'run'/'step-00000002.pth', metadata=self.shards/'.metadata',
                          piece=self.shards/'__0_0.distcp', log=tmp/'log.jsonl', table=tmp/'history.csv')
        self.whole = {k:p.read_bytes() for k,p in self.paths.items()}
        self.files = dict(load=(tmp/'models'/'good.pth').read_bytes(), legacy=saved(state_of, _use_new_zipfile_serialization=False), check=saved(state),
                          export=learn.export('e').read_bytes(), **self.whole)
        self.good,self.events,self.watch = learn._run_state(1, copy=True),[],False
        self.before,self.own = everything(learn),{k:v.clone() for k,v in self.model.state_dict().items()}

    def read(self, kind, data, honest=False):
        "Read `data` as a file of this kind; with `honest`, checksums that an attacker could correct are left unchanged"
        learn,path = self.learn,self.paths.get(kind)
        if path: path.write_bytes(data)
        match kind:
            case 'load'|'legacy': learn.load(io.BytesIO(data))
            case 'check':         learn._restore(read_checkpoint(with_note(self.tmp/'x'/'step-1.pth', data)))
            case 'export':        load_learner(io.BytesIO(data), self.model)
            case 'safetensors':   load_learner(path, self.model)
            case 'log':           learn.json_logger.read_log()
            case 'table':         learn.csv_logger.read_log()
            case 'note':
                if not honest: sums(path)
                checkpoint_info(path.with_suffix('.pth')); learn._restore(read_checkpoint(path.with_suffix('.pth')))
            case 'newest':        # never an error: the one before it is used
                if not honest: with_note(path, data)
                if newest_checkpoint(path.parent)[0] is None: raise KeyError('no checkpoint was found')
            case _:               # of a sharded model
                got = read_shards(self.rest, self.shards, self.listed if honest else listed(self.shards, self.listed))
                if {k:(v.shape,v.dtype) for k,v in got['model'].items()}!={k:(v.shape,v.dtype) for k,v in self.rest['model'].items()}: raise KeyError('other tensors')

    def case(self, seed, i):
        "Kind and content of case number `i`, and whether its checksums are left alone"
        r = random.Random(f'{seed} {i}')
        kind,data = damaged(r, self.files)
        return kind,data,r.random()<.5

    def __call__(self, seed, i):
        "Run case number `i`; return 'loaded' or 'refused', or what is wrong"
        kind,data,honest = self.case(seed, i)
        signal.alarm(20)
        try: self.read(kind, data, honest)
        except ValueError: res = 'refused'
        except BaseException as e: return f'{kind}: {type(e).__name__}: {e}'
        else: res = 'loaded'
        finally:
            signal.alarm(0)
            watch,self.watch = self.watch,False
            for k in {kind} & {*self.paths}: self.paths[k].write_bytes(self.whole[k])
            if kind=='newest': self.paths['note'].write_bytes(self.whole['note'])
            self.watch = watch
        if self.events: return f'{kind}: {self.events}'
        if res=='refused' and not (same(self.before, everything(self.learn)) and same(self.own, dict(self.model.state_dict()))): return f'{kind}: refused, but something has changed'
        if res=='loaded': self.learn._restore(self.good); self.model.load_state_dict(self.own)
        if res=='loaded' and not same(self.before, everything(self.learn)): self.before = everything(self.learn)
        return f'{kind} {res}'

watched = '''exec compile import pickle.find_class os.system os.exec os.posix_spawn os.spawn os.fork subprocess.Popen marshal.loads
             code.__new__ ctypes.dlopen shutil.rmtree os.remove os.rename os.chmod os.putenv'''.split()

def watch(trial):
    "Record from now on what the interpreter does that a file could cause"
    def hook(name, args):
        if name=='pickle.find_class' and len(args)==2 and (args[1] in _allowed_names.get(args[0], ()) or args[0]=='torch' and isinstance(getattr(torch, args[1], None), torch.dtype)): return
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

def fuzz(n=None, seed=0, per=10_000, warm=300, until=None, tell=lambda *args: None):
    "`(results, wrong)`: how often each result came, and `(case, what is wrong)`, of `n` cases, or of those until the time `until`"
    warnings.simplefilter('ignore')
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, too_long)
    trial,results,wrong,at = Try(),Counter(),[],0
    for i in range(warm): trial('warm', i)   # what is imported at the first time is not of interest
    gc.collect()   # loaders left in cycles by earlier tests end their workers here; in the child process they could not
    context = multiprocessing.get_context('fork')
    while (n is None or at<n) and (until is None or time.monotonic()<until):
        a,b = context.Pipe(False)
        p = context.Process(target=run, args=(trial, seed, at, per if n is None else min(per, n-at), b))
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

script = '''
# case {seed} {case}: {what}
import sys; sys.path[:0] = ['tests/fuzz']   # in the folder of learnkit
from files import Try
trial = Try()
kind,data,honest = trial.case({seed!r}, {case})
open('damaged.bin', 'wb').write(data)
print(kind, len(data), 'bytes', 'with the old checksums' if honest else '')
trial.read(kind, data, honest)
'''

if __name__=='__main__':
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--minutes', type=float); p.add_argument('--n', type=int)
    p.add_argument('--seed', type=int, default=None, help='a random one if none is given')
    p.add_argument('--case', type=int, nargs=2, metavar=('SEED', 'NUMBER'))
    args = p.parse_args()
    if args.case: signal.signal(signal.SIGALRM, too_long); print(Try()(*args.case)); sys.exit()
    start,seed = time.monotonic(),random.randrange(10**6) if args.seed is None else args.seed
    print(f'files: seed {seed}', flush=True)
    def tell(n, results, wrong): print(f'{n} files in {time.monotonic()-start:.0f} s: ' + ', '.join(f'{v} {k}' for k,v in sorted(results.items())), flush=True)
    minutes = args.minutes or (None if args.n else 1)
    results,wrong = fuzz(args.n, seed, per=2000, until=minutes and start+60*minutes, tell=tell)
    for case,what in wrong[:20]: print(script.format(seed=seed, case=case, what=what[:300]))
    print(f'files: {sum(results.values())} draws with seed {seed}, {len(wrong)} wrong')
    sys.exit(bool(wrong))
