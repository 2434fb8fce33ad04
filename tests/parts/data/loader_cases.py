"Data sets and loaders to test with"
import torch
from torch import tensor
from torch.utils.data import Dataset, IterableDataset, Sampler, get_worker_info

class Items(Dataset):
    "Item `i` is `i`, as tensor and as text, so that what comes out says where it came from"
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
    def __getitem__(self, i): return tensor(range(self.n)[i]), f'item {i}'

class Stream(IterableDataset):
    "Items 0…n-1, shared out among the workers"
    def __init__(self, n): self.n = n
    def __iter__(self):
        w = get_worker_info()
        return iter(range(w.id if w else 0, self.n, w.num_workers if w else 1))

class SizedStream(Stream):
    def __len__(self): return self.n

class Custom(Sampler):
    "A sampler without a length, that counts how often it is asked"
    def __init__(self, idxs): self.idxs,self.asked = idxs,0
    def __iter__(self): self.asked += 1; return iter(self.idxs)

class NewStyle:
    "Like fastai's loaders"
    indexed,drop_last = True,True
    def __init__(self, n, shuffle, drop_last=False, get_idxs=None):
        self.n,self.shuffle,self.drop_last = n,shuffle,drop_last
        if get_idxs: self.get_idxs = get_idxs
    def get_idxs(self): return torch.randperm(self.n).tolist() if self.shuffle else list(range(self.n))
    def new(self, **kw): return type(self)(**{**dict(n=self.n, shuffle=self.shuffle, drop_last=self.drop_last), **kw})
    def __iter__(self): return iter(self.get_idxs()[:self.n//2*2 if self.drop_last else None])
