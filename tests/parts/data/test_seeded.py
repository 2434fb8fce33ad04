"""A seeded dataset that loads whole batches: each sample has its own random numbers, whichever samples are loaded with it"""
import random
import numpy as np, pytest, torch
from torch.utils.data import DataLoader, Dataset, TensorDataset
from learnkit.data.files import to_serializable
from learnkit.data.seeded import SeededDataset, SeededLoader

class Batches(Dataset):
    "Counts its calls, and draws random numbers if `draw`"
    def __init__(self, draw=None): self.draw,self.calls = draw,0
    def __len__(self): return 8
    def __getitem__(self, i): return self.__getitems__([i])[0]
    def __getitems__(self, idxs): self.calls += 1; return [(i, self.draw() if self.draw else 0) for i in idxs]

def keys(*idxs): return [(7, 0, i) for i in idxs]
own = torch.Generator()
draws = dict(python=random.random, torch=lambda: torch.rand(1).item(), own=lambda: torch.rand(1, generator=own).item())

@pytest.mark.parametrize('draw', draws)
def test_a_sample_does_not_depend_on_its_batch(draw):
    data = SeededDataset(Batches(draws[draw]), [own] if draw=='own' else [])
    alone = [data[key] for key in keys(*range(8))]
    for idxs in ([0, 1, 2], [2, 1], [5, 0, 7, 2]):
        assert data.__getitems__(keys(*idxs))==[alone[i] for i in idxs]

@pytest.mark.parametrize('seed', [3, np.int64(3), np.float64(2.5), [1, 2], (1, np.int64(2)), torch.tensor(3)], ids=repr)
def test_a_seed_of_any_type_is_resumed(seed):
    "A checkpoint stores numbers of Python and tuples; the order depended on the type, and a resumed run had other samples"
    def make(): return SeededLoader(DataLoader(TensorDataset(torch.arange(8.)), 2, shuffle=True), seed)
    first,resumed = make(),make()
    it = iter(first)
    next(it)
    resumed.begin_at(**to_serializable(first.position(1)))
    assert [x.tolist() for x, in it]==[x.tolist() for x, in resumed]

def test_without_random_numbers_a_batch_is_one_call():
    data = SeededDataset(Batches())
    for idxs in ([0, 1, 2], [3, 4]): data.__getitems__(keys(*idxs))
    assert data.ds.calls==2

def test_a_whole_batch_stays_one():
    "It has the random numbers of its first sample"
    class Whole(Batches):
        def __getitems__(self, idxs): return [(torch.tensor(idxs), torch.rand(len(idxs)))]
    data = SeededDataset(Whole())
    (idxs,x),(_,again) = data.__getitems__(keys(3, 4, 5))[0],data.__getitems__(keys(3, 4, 5))[0]
    assert idxs.tolist()==[3, 4, 5] and torch.equal(x, again)

@pytest.mark.parametrize('whole', [lambda *b: [b], lambda *b: [*b], lambda *b: b, lambda idxs,x: dict(idxs=idxs, x=x), lambda idxs,x: x],
                         ids=['in a list', 'list', 'tuple', 'dict', 'tensor'])
def test_a_whole_batch_of_few_samples_stays_one(whole):
    "A batch may have as many samples as parts, such as the last one of an epoch; the next batch is whole, too"
    class Whole(Batches):
        def __getitems__(self, idxs): return whole(torch.tensor(idxs), torch.rand(len(idxs)))
    data = SeededDataset(Whole())
    plain = Whole()
    for idxs in ([6], [6, 7], [0, 1, 2]):
        got = data.__getitems__(keys(*idxs))
        assert type(got) is type(plain.__getitems__(idxs)) and len(got)==len(plain.__getitems__(idxs))
