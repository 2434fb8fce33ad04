"""Saving checkpoints changes nothing: a run with them equals the run without them bit for bit, and so does one that is
killed and resumed. Data are combined at random: datasets, streams, lists and functions; PyTorch's and custom samplers;
generators; workers, also persistent ones.

    python tests/faults/test_looks_only.py 500             that many runs; prints those that differ
    python tests/faults/test_looks_only.py 1 --first 123   repeats one of them
"""
import argparse, builtins, os, random, sys, tempfile, warnings
from pathlib import Path

here = Path(__file__).resolve().parent
if __name__=='__main__': sys.path[:0] = [str(here.parents[1]), str(here.parent), str(here)]
import numpy as np, pytest, torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler, Sampler, SubsetRandomSampler, TensorDataset, WeightedRandomSampler

from learnkit.all import (Adam, Callback, CheckpointCallback, ItemIndices, Learner, LimitBatches, Prefetch, Recorder, SeededLoader, StepsPerEpoch, TrainEvalCallback, ValidateEvery,
                          get_random_states, set_seed)
from toys import equal, few, slow

pytestmark = few(4, 6)   # of the cases of each test; all with LEARNKIT_SWEEP=1

N,BS,PER,EPOCHS = 22,4,6,3   # the last batch is short

# data that draws random numbers

def drawn(kind, g=None):
    "A random number"
    if kind=='torch': return float(torch.rand(()))
    if kind=='numpy': return float(np.random.randn())
    if kind=='python': return random.random()
    if kind=='own': return float(torch.rand((), generator=g)) if isinstance(g, torch.Generator) else g.random()
    if kind=='all': return drawn('torch')+drawn('numpy')+drawn('python')
    return 0.

def row(i, kind, g=None): x = torch.tensor([i/N, drawn(kind, g), drawn(kind, g), i%3]); return x,x.sum()[None]

class Items(Dataset):
    def __init__(self, kind, g=None): self.kind,self.g = kind,g
    def __len__(self): return N
    def __getitem__(self, i): return row(i, self.kind, self.g)
class Together(Items):
    def __getitems__(self, idxs): return [self[i] for i in idxs]
class Stream(Items, IterableDataset):
    def __iter__(self): return (self[i] for i in range(N))
class Buffered(Stream):
    "A stream shuffled in a buffer"
    def __iter__(self):
        buffer = []
        for i in range(N):
            buffer.append(i)
            if len(buffer)>5: yield self[buffer.pop(int(drawn('torch' if self.kind=='none' else self.kind, self.g)*1000)%5)]
        yield from map(self.__getitem__, buffer)
class Placed(Stream):
    "A stream that saves its position"
    at = 0
    def __iter__(self):
        while self.at<N: self.at += 1; yield self[self.at-1]
        self.at = 0
    def state_dict(self): return dict(at=self.at)
    def load_state_dict(self, state): self.at = state['at']
class Turning(Sampler):
    "A sampler that counts its passes, and draws for each index"
    n = 0
    def __init__(self): pass
    def __len__(self): return N
    def __iter__(self):
        self.n += 1
        for i in range(N): yield (i*7+self.n+int(100*drawn('torch')))%N
    def state_dict(self): return dict(n=self.n)
    def load_state_dict(self, d): self.n = d['n']
class Eager(Turning):
    "A sampler that draws all indices at the start, with three generators"
    def __iter__(self):
        idxs = torch.randperm(N).tolist()
        random.shuffle(idxs)
        np.random.shuffle(idxs)
        return iter(idxs)
class Buckets(Sampler):
    "A batch sampler that draws each batch on demand from the remaining indices"
    def __len__(self): return PER
    def __iter__(self):
        left = [*range(N)]
        for _ in range(PER): random.shuffle(left); yield [left.pop(int(torch.randint(len(left), ()))) for _ in range(min(BS, len(left)))]

class Collate:
    def __init__(self, kind, g): self.kind,self.g = kind,g
    def __call__(self, items): x,y = map(torch.stack, zip(*items)); return x+drawn(self.kind, self.g),y

def gen(r): k = r.choice(['torch','numpy','python']); s = r.randrange(99); return torch.Generator().manual_seed(s) if k=='torch' else np.random.default_rng(s) if k=='numpy' else random.Random(s)

class Own:
    "A loader of another library"
    def __init__(self, kind, g): self.kind,self.g = kind,g
    def __iter__(self):
        for i in range(PER): xs = [row(i*BS+k, self.kind, self.g) for k in range(BS)]; yield tuple(map(torch.stack, zip(*xs)))

KINDS = 'none','torch','numpy','python','own','all'
def data(r, light=False):
    "A random training loader, and its description"
    kind = r.choice(KINDS)
    g = gen(r) if kind=='own' else None
    what = r.choice(['map']*8 + ['tensors', 'stream', 'stream', 'buffered', 'placed', 'list', 'own', 'function', 'torchdata'])
    workers = 0 if light else r.choice([0, 0, 0, 1, 2])
    kw = dict(num_workers=workers, persistent_workers=bool(workers) and r.random()<.4)
    own = r.random()<.4 and torch.Generator().manual_seed(r.randrange(99))
    if own: kw['generator'] = own
    words = f'{what} {kind} {kw}'
    if what=='list': return [tuple(map(torch.stack, zip(*[row(i*BS+k, 'none') for k in range(BS)]))) for i in range(PER)],words
    if what=='own': return Own(kind, g),words
    if what=='function': o = Own(kind, g); return (lambda: iter(o)),words
    if what in ('stream','buffered','placed'):
        if what=='placed' or kw['persistent_workers']: kw.update(num_workers=0, persistent_workers=False)
        return DataLoader(dict(stream=Stream, buffered=Buffered, placed=Placed)[what](kind, g), BS, **kw),words
    ds = TensorDataset(*map(torch.stack, zip(*[row(i, 'none') for i in range(N)]))) if what=='tensors' else r.choice([Items, Together])(kind, g)
    by = r.choice(['shuffle','shuffle','in order','weighted','subset','turning','eager','buckets','replaced','short'])
    sg = own or None
    args = {'shuffle':dict(batch_size=BS, shuffle=True), 'in order':dict(batch_size=BS), 'weighted':dict(batch_size=BS, sampler=WeightedRandomSampler(torch.arange(1., N+1), N, generator=sg)),
            'subset':dict(batch_size=BS, sampler=SubsetRandomSampler(range(3, N), generator=sg)), 'turning':dict(batch_size=BS, sampler=Turning()), 'eager':dict(batch_size=BS, sampler=Eager()),
            'buckets':dict(batch_sampler=Buckets()), 'replaced':dict(batch_size=BS, sampler=RandomSampler(range(N), replacement=True, generator=sg)), 'short':dict(batch_size=BS, shuffle=True, drop_last=True)}[by]
    if r.random()<.2: kw['collate_fn'] = Collate(kind, g)
    cls = DataLoader
    if what=='torchdata' and not kw['persistent_workers'] and by in ('shuffle','in order','short'): cls = pytest.importorskip('torchdata.stateful_dataloader').StatefulDataLoader; kw['num_workers'] = 0
    return cls(ds, **args, **kw),f'{words} {by} {type(ds).__name__} {cls.__name__}'

# runs

class Cut(Callback):
    "Kills the run after `n` batches"
    acts,order = 'nothing',10_000
    def __init__(self, n): self.n = n
    def after_batch(self):
        if self.learn.training and self.learn.mode=='fit' and self.learn.train_iter==self.n: raise SystemError('the power failed')

def learner(seed, path, every=None, cbs=()):
    r = random.Random(seed)
    set_seed(seed)   # torchdata's samplers draw when they are made
    train,words = data(r)
    set_seed(r.randrange(99))
    drops = r.random()<.7
    beside = r.choice([[]]*5+['steps','limit','indices','prefetch','valid'])
    own = dict(steps=lambda: StepsPerEpoch(4), limit=lambda: LimitBatches(4), indices=ItemIndices, prefetch=Prefetch, valid=lambda: ValidateEvery('2ba'))
    more = [own[beside]()] if beside else []
    valid = DataLoader(Items(r.choice(KINDS[:4]+('all',))), BS, shuffle=r.random()<.3)
    model = nn.Sequential(nn.Linear(4, 6), nn.Dropout(.3) if drops else nn.ReLU(), nn.Linear(6, 1))
    learn = Learner((train,valid), model, nn.MSELoss(), Adam, lr=.01, path=path, default_cbs=False, cbs=[TrainEvalCallback, Recorder, *more, *cbs, *([CheckpointCallback(every, keep=None)] if every else [])])
    learn.logger = lambda row: None
    return learn,f'{words}, dropout {drops}, {beside}'

def end(learn):
    return dict(model={k:v.clone() for k,v in learn.model.state_dict().items()}, losses=learn.recorder.smooth_loss.raw, rng=get_random_states(),
                history=[{k:v for k,v in o.items() if k!='time'} for o in learn.recorder.history])

def differs(seed, stops=2):
    "The description of a run, and what differs with checkpoints or after a resume"
    r = random.Random(f'{seed} ends')
    every = r.choice(['1ba','1ba','2ba','3ba','1ep'])
    with tempfile.TemporaryDirectory() as tmp, warnings.catch_warnings():
        warnings.simplefilter('ignore')
        plain,words = learner(seed, tmp)
        plain.fit(EPOCHS)
        plain = end(plain)
        learn,_ = learner(seed, f'{tmp}/a', every)
        learn.fit(EPOCHS)
        with_them = end(learn)
        odd = [f'with {every}: {k}' for k in plain if not equal(plain[k], with_them[k])]
        if odd: return words,odd
        for _ in range(stops):
            path = f'{tmp}/{r.random()}'
            for n in sorted(r.sample(range(1, 18), r.choice([1, 1, 2]))):
                learn,_ = learner(seed, path, every, [Cut(n)])
                try: learn.fit(EPOCHS, resume='auto')
                except SystemError: pass
                torch.rand(3), random.random(), np.random.rand()
            learn,_ = learner(seed, path, every)
            learn.fit(EPOCHS, resume='auto')
            got = end(learn)
            odd += [f'resumed with {every} after batch {n}: {k}' for k in plain if not equal(plain[k], got[k])]
        return words,odd

@pytest.mark.parametrize('seed', [*range(12), *slow(*range(12, 150))])
def test_checkpoints_change_nothing(seed):
    words,odd = differs(seed)
    assert not odd, words

@few(0, 1)
@pytest.mark.parametrize('seed', slow(204, 209, 317))
def test_persistent_workers_after_an_incomplete_epoch(seed):
    "Persistent workers draw for batches that are never used, and a resumed run did not know how many"
    words,odd = differs(seed, stops=1)
    assert "'persistent_workers': True" in words and 'limit' in words and not odd, words

@pytest.mark.parametrize('n', [3, 4000])
def test_too_many_recorded_steps_are_warned_of(n, tmp_path, monkeypatch):
    monkeypatch.setattr('learnkit.data.stateful._max_steps', n)
    learn = Learner((DataLoader(Buffered('torch'), BS),), nn.Sequential(nn.Linear(4, 1), nn.Dropout()), nn.MSELoss(), path=tmp_path, cbs=CheckpointCallback('1ba'))
    with learn.no_logging(), learn.no_bar(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        learn.fit(2)
    assert sum('alternately with the model' in str(w.message) for w in caught)==(n==3)

def test_earlier_draws_of_persistent_workers_are_warned_of(tmp_path):
    "Persistent workers may have been used before the fit"
    dl = DataLoader(Items('torch'), BS, num_workers=1, persistent_workers=True)
    for b in dl: pass
    learn = Learner((dl,), nn.Linear(4, 1), nn.MSELoss(), path=tmp_path, cbs=CheckpointCallback('1ep'))
    with learn.no_logging(), learn.no_bar(), pytest.warns(UserWarning, match='its workers persist'): learn.fit(1)

def first_values(make, checkpoint, tmp):
    class See(Callback):
        run_valid = False
        def before_fit(self): self.seen = []
        def before_batch(self): self.seen.append(float(self.learn.xb[0].flatten()[0]))
    torch.manual_seed(0)
    learn = Learner((make(),), nn.Linear(1, 1), nn.MSELoss(), path=tmp, cbs=[See, *([CheckpointCallback('1ep', overwrite=True)] if checkpoint else [])])
    with learn.no_logging(), learn.no_bar(): learn.fit(1)
    return learn.see.seen

def batches_of(g):
    def batches():
        for _ in range(3): x = torch.randn(4, 1, generator=g); yield x,x
    return batches
@pytest.mark.parametrize('kind', ['function', 'loader', 'steps'])
def test_generator_seeds_of_the_user_are_used(kind, tmp_path):
    "Two seeds of a generator give different data; with a checkpoint they gave the same"
    ds = [(torch.tensor([float(i)]), torch.tensor([0.])) for i in range(12)]
    def make(s):
        g = torch.Generator().manual_seed(s)
        return batches_of(g) if kind=='function' else DataLoader(ds, 4, shuffle=True, generator=g)
    a,b,c,d = [first_values(lambda: make(s), checkpoint, tmp_path) for s in (1, 2) for checkpoint in (False, True)]
    assert a==b!=c==d

if __name__=='__main__':
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('n', type=int, nargs='?', default=100)
    p.add_argument('--first', type=int, default=0)
    args = p.parse_args()
    torch.set_num_threads(1)
    bad,say = 0,print
    builtins.print = lambda *a,**k: None
    os.fsync = lambda fd: None
    for seed in range(args.first, args.first+args.n):
        try: words,odd = differs(seed)
        except Exception as e: words,odd = '',[f'{type(e).__name__}: {e}']
        bad += bool(odd)
        if odd: say(seed, words, odd[:3], flush=True)
    say(f'{args.n} runs, {bad} of them end otherwise')
    sys.exit(bool(bad))
