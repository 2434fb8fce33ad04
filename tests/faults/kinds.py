"""Kinds of training data: `outcome` kills and resumes a run with one of them, and compares it with an unkilled run."""
import itertools, random, time, warnings
from collections import deque

import numpy as np, torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler, Sampler, Subset, TensorDataset, WeightedRandomSampler, get_worker_info

from learnkit.callbacks.batches import StepsPerEpoch
from learnkit.data.seeded import SeededLoader
from learnkit.learner.learner import Learner
from learnkit.loop.callback import Callback
from learnkit.recovery.checkpoint import CheckpointCallback

N,BS,PER,EPOCHS = 24,4,6,3

def pair(*numbers): x = torch.tensor([float(o) for o in numbers][:4] + [0.]*(4-len(numbers))); return x,x.sum()[None]/9
def drawn(): return float(torch.rand(())) + random.random() + float(np.random.rand())

class Rows(Dataset):
    def __len__(self): return N
    def __getitem__(self, i): return pair(i/N, 1.)

class RandomRows(Rows):
    def __getitem__(self, i): return pair(i/N, drawn())

class OwnGenerator(Rows):
    def __init__(self): self.g = torch.Generator().manual_seed(3)
    def __getitem__(self, i): return pair(i/N, torch.rand((), generator=self.g))

class NumpyGenerator(Rows):
    def __init__(self): self.g = np.random.default_rng(3)
    def __getitem__(self, i): return pair(i/N, self.g.random())

class CountingRows(Rows):
    n = 0
    def __getitem__(self, i): self.n += 1; return pair(i/N, self.n/N)

class SavedCount(CountingRows):
    def state_dict(self): return dict(n=self.n)
    def load_state_dict(self, d): self.n = d['n']

class EpochRows(Rows):
    epoch = 0
    def set_epoch(self, epoch): self.epoch = epoch
    def __getitem__(self, i): return pair(i/N, self.epoch)

class Growing:
    "A transform whose factor grows with each sample"
    by = 0
    def __call__(self, x): self.by += 1; return x*(1+self.by/100)

class TransformedRows(Rows):
    def __init__(self): self.transform = Growing()
    def __getitem__(self, i): x,y = pair(i/N, 1.); return self.transform(x),y

def collate(rows): return tuple(map(torch.stack, zip(*rows)))
def random_collate(rows): x,y = collate(rows); return x*(1+torch.rand(1)),y

class CountingCollate:
    n = 0
    def __call__(self, rows): self.n += 1; x,y = collate(rows); return x+self.n/9,y

class OwnSampler(Sampler):
    def __init__(self): self.g = random.Random(3)
    def __len__(self): return N
    def __iter__(self): idxs = [*range(N)]; self.g.shuffle(idxs); return iter(idxs)

class Shards(IterableDataset):
    "A stream of the samples of this worker"
    def rows(self):
        info = get_worker_info()
        k,n = (0, 1) if info is None else (info.id, info.num_workers)
        return range(k, N, n)
    def __iter__(self):
        for i in self.rows(): yield pair(i/N, 1.)

class RandomStream(Shards):
    def __iter__(self):
        for i in self.rows(): yield pair(i/N, drawn())

class GeneratorStream(Shards):
    def __init__(self): self.g = torch.Generator().manual_seed(3)
    def __iter__(self):
        for i in self.rows(): yield pair(i/N, torch.rand((), generator=self.g))

class EpochStream(Shards):
    "A stream shuffled by the epoch number"
    epoch = 0
    def set_epoch(self, epoch): self.epoch = epoch
    def __iter__(self):
        rows = [*self.rows()]
        random.Random(self.epoch).shuffle(rows)
        for i in rows: yield pair(i/N, self.epoch)

class BufferStream(Shards):
    "A stream shuffled in a buffer with the global generator"
    def __iter__(self):
        buffer = []
        for i in self.rows():
            buffer.append(i)
            if len(buffer)>=8: yield pair(buffer.pop(random.randrange(len(buffer)))/N)
        random.shuffle(buffer)
        for i in buffer: yield pair(i/N)

class CountingStream(Shards):
    n = 0
    def __iter__(self):
        for i in self.rows(): self.n += 1; yield pair(i/N, self.n/N)

class PlacedStream(Shards):
    "A stream that saves its position"
    at = 0
    def __iter__(self):
        rows = self.rows()
        while self.at<len(rows): self.at += 1; yield pair(rows[self.at-1]/N, 1.)
        self.at = 0
    def state_dict(self): return dict(at=self.at)
    def load_state_dict(self, d): self.at = d['at']

class PlacedRandomStream(PlacedStream):
    def __iter__(self):
        for x,y in super().__iter__(): yield x*(1+torch.rand(())),y

class PlacedBuffer(PlacedStream):
    "A stream whose state lacks the contents of its buffer, like Hugging Face's shuffled streams"
    def __iter__(self):
        g,buffer = random.Random(3),[]
        for x,y in super().__iter__():
            buffer.append((x,y))
            if len(buffer)>=8: yield buffer.pop(g.randrange(len(buffer)))
        yield from buffer

class ClockStream(Shards):
    "A stream that starts at a sample given by the clock"
    def __iter__(self):
        start = time.time_ns()
        for i in self.rows(): yield pair((i+start)%N/N)

class ListOfBatches(list):
    pass

class OwnLoader:
    "A loader of another library without a `state_dict`"
    def __iter__(self):
        for i in range(PER): yield torch.rand(BS, 4),torch.ones(BS, 1)*i/9

class OwnPlacedLoader:
    i = 0
    def __iter__(self):
        while self.i<PER: self.i += 1; yield torch.full((BS,4), self.i/9.)+torch.rand(BS, 4),torch.ones(BS, 1)
        self.i = 0
    def state_dict(self): return dict(i=self.i)
    def load_state_dict(self, d): self.i = d['i']

def batches():
    for i in range(PER): yield torch.rand(BS, 4),torch.ones(BS, 1)*i/9

def of(ds, **kwargs):
    "A kind with workers: a function that makes a DataLoader of `ds()`"
    def make(**workers):
        if 'batch_sampler' in kwargs: return DataLoader(ds(), batch_sampler=kwargs['batch_sampler'](), **workers)
        args = {k:v() if k in ('sampler','collate_fn') and isinstance(v, type) else v for k,v in kwargs.items()}
        return DataLoader(ds(), BS, **args, **workers)
    make.with_workers = True
    return make

def torchdata(ds, **kwargs):
    def make(**workers):
        from torchdata.stateful_dataloader import StatefulDataLoader
        return StatefulDataLoader(ds(), BS, **kwargs, **workers)
    make.with_workers = True
    return make

def seeded(make):
    def wrapped(**workers): return SeededLoader(make(**workers), 3)
    wrapped.with_workers = True
    return wrapped

def alone(f):
    "A kind without workers: a function that returns `f()`"
    def make(): return f()
    make.with_workers = False
    return make

def tensors(): return TensorDataset(torch.rand(N, 4, generator=torch.Generator().manual_seed(1)), torch.rand(N, 1, generator=torch.Generator().manual_seed(2)))
def weighted(): return WeightedRandomSampler([1.+i for i in range(N)], N)

KINDS = {
    'tensors, shuffled':                          of(tensors, shuffle=True),
    'samples that draw random numbers':           of(RandomRows, shuffle=True),
    '… from a generator of their own':            of(OwnGenerator, shuffle=True),
    '… from one of NumPy':                        of(NumpyGenerator),
    'a collate function that draws':              of(Rows, collate_fn=random_collate),
    'a data set with `set_epoch`':                of(EpochRows, shuffle=True),
    'a `WeightedRandomSampler`':                  of(RandomRows, batch_sampler=lambda: BatchSampler(weighted(), BS, False)),
    'a sampler with a generator of its own':      of(RandomRows, sampler=OwnSampler),
    'samples that count':                         of(CountingRows),
    '… with a `state_dict`':                      of(SavedCount),
    'a transform that counts':                    of(TransformedRows, shuffle=True),
    'a collate function that counts':             of(Rows, collate_fn=CountingCollate),
    'batches as they come (`in_order=False`)':    of(RandomRows, in_order=False),
    'a `SeededLoader`':                           seeded(of(RandomRows, shuffle=True)),
    '… of samples that count':                    seeded(of(CountingRows)),
    'a stream':                                   of(Shards),
    'a stream that draws random numbers':         of(RandomStream),
    '… from a generator of its own':              of(GeneratorStream),
    '… shuffled by the epoch':                    of(EpochStream),
    '… shuffled in a buffer':                     of(BufferStream),
    '… that counts':                              of(CountingStream),
    '… that the clock begins':                    of(ClockStream),
    'a stream with a `state_dict`':               of(PlacedStream),
    '… that draws random numbers':                of(PlacedRandomStream),
    '… whose state leaves out a buffer':          of(PlacedBuffer),
    'a `SeededLoader` of a stream':               seeded(of(RandomStream)),
    '… that draws nothing':                       seeded(of(EpochStream)),
    'torchdata: samples that draw':               torchdata(RandomRows, shuffle=True),
    'torchdata: samples that count':              torchdata(CountingRows),
    'torchdata: a stream with a state':           torchdata(PlacedStream),
    'torchdata: a stream with a state that draws': torchdata(PlacedRandomStream),
    'torchdata: a stream whose state leaves out':  torchdata(PlacedBuffer),
    'torchdata: a stream without a state':        torchdata(RandomStream),
    'a list of batches':                          alone(lambda: ListOfBatches([*batches()])),
    'a function that returns a generator':        alone(lambda: batches),
    'a loader of another library':                alone(OwnLoader),
    'a loader of another library with a state':   alone(OwnPlacedLoader),
}
WORKERS = {'none':{}, 'new each epoch':dict(num_workers=2), 'persistent':dict(num_workers=2, persistent_workers=True)}

class Cut(Callback):
    acts,order = 'nothing',10_000
    def __init__(self, k): self.k = k
    def after_batch(self):
        if self.training and self.train_iter==self.k: raise SystemError('the power failed')

def train(make, workers, path, *cbs, **kwargs):
    "The weights at the end, and the warnings about resuming"
    torch.manual_seed(1); random.seed(1); np.random.seed(1)
    dl = make(**workers)
    learn = Learner([dl], nn.Sequential(nn.Linear(4, 8), nn.Dropout(.3), nn.Linear(8, 1)), nn.MSELoss(), torch.optim.SGD, lr=.05, path=path,
                    cbs=[CheckpointCallback('1ba'), *cbs])
    with warnings.catch_warnings(record=True) as caught, learn.no_bar(), learn.no_logging():
        warnings.simplefilter('always')
        try: learn.fit(EPOCHS, **kwargs)
        except SystemError: pass
    for o in (dl, getattr(dl, 'loader', None)):
        it = getattr(o, '_iterator', None)
        if hasattr(it, '_shutdown_workers'): it._shutdown_workers()
    messages = [str(w.message) for w in caught if 'resume' in str(w.message)]
    return torch.cat([p.detach().flatten() for p in learn.model.parameters()]),messages

def outcome(make, workers, path, k):
    "Whether a run killed at batch `k` and resumed ends with the weights of an unkilled one, and the warnings of both"
    whole,_ = train(make, workers, path/'whole')
    _,before = train(make, workers, path/'cut', Cut(k))
    resumed,after = train(make, workers, path/'cut', resume='auto')
    return torch.equal(whole, resumed),[*before, *after]
