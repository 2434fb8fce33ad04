"An order that is computed: each item once, as random as one that is drawn, and in no memory"
import pytest, torch
from hypothesis import given, strategies as st
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler, TensorDataset
import learnkit.data.stateful as sampler
from learnkit.all import CheckpointCallback, DataLoaders, EveryCallback, Learner
from learnkit.data.stateful import record_sampler
from learnkit.data.seeded import SeededLoader
from learnkit.data.arrays import ComputedBatches, Permutation
from toys import draws

torch.set_num_threads(1)

@given(n=st.integers(1, 3000), seed=st.integers(0, 2**64-1))
@draws(20)
def test_each_number_once(n, seed):
    p = Permutation(n, seed)
    got = p(torch.arange(n))
    assert torch.equal(got.sort().values, torch.arange(n))
    i = torch.randint(n, (20,))
    assert torch.equal(p(i), got[i]) and torch.equal(Permutation(n, seed)(i), got[i])   # a position alone, and again

def test_it_is_random():
    "Where each item goes, and what comes after it, over many seeds: as often as chance has it"
    n,seeds = 20,300
    orders = torch.stack([Permutation(n, s)(torch.arange(n)) for s in range(seeds)])
    places = torch.stack([(orders==k).sum(0) for k in range(n)]).double()
    after = torch.zeros(n, n).index_put_((orders[:,:-1].flatten(), orders[:,1:].flatten()), torch.ones(1), accumulate=True).double()
    for counts,free in (places, (n-1)**2),(after[~torch.eye(n, dtype=bool)], n*(n-1)-n):
        e = counts.mean()
        assert abs(((counts-e)**2/e).sum() - free)<5*(2*free)**.5   # the chi-squared statistic

def test_large_orders_do_not_repeat_themselves():
    p,i = Permutation(10**8, 1),torch.arange(10**5)+5*10**7
    a,b = p(i),Permutation(10**8, 2)(i)
    assert a.unique().numel()==10**5 and 0<=a.min() and a.max()<10**8
    for x,y in (a[1:], a[:-1]),(a, b),(a, i): assert abs(torch.corrcoef(torch.stack([x, y]).double())[0,1])<.02
    assert abs(a.double().mean()/10**8-.5)<.005

@pytest.fixture
def small(monkeypatch): monkeypatch.setattr(sampler, 'computed_from', 50)

@pytest.mark.parametrize('drop', (False, True))
def test_batches(small, drop):
    s = BatchSampler(RandomSampler(range(103)), 10, drop)
    got = record_sampler(s, 3, 0)
    assert type(got) is ComputedBatches and len(got)==len(s) and {len(b) for b in got[:10]}=={10}
    items = sum(got, [])
    assert len(items)==len({*items})==(100 if drop else 103) and [*got[4:7]]==[*got][4:7] and got[-1]==[*got][-1]
    assert [*record_sampler(s, 3, 1, limit=4)]==[*got][:4] and [*record_sampler(s, 4, 0)]!=[*got]
    for other in (BatchSampler(RandomSampler(range(49)), 10, drop), BatchSampler(RandomSampler(range(103), num_samples=60), 10, drop),
                  BatchSampler(RandomSampler(range(103), replacement=True), 10, drop), BatchSampler(SequentialSampler(range(103)), 10, drop)):
        assert type(record_sampler(other, 3, 0)) is list

def test_a_hundred_million_rows_in_no_memory():
    class Rows:
        def __len__(self): return 10**8
        def __getitem__(self, i): return i
    dl = SeededLoader(DataLoader(Rows(), 256, shuffle=True), 0)
    first = [b for b,_ in zip(dl.seek(0), range(3))]
    again = next(iter(dl.seek(0, 2)))
    assert torch.equal(first[2], again) and not torch.equal(first[0], next(iter(dl.seek(1))))
    assert len(dl.batch_indices)==390625 and dl.batch_indices[0]==next(iter(dl.seek(1))).tolist()

def test_a_run_continues_in_the_middle_of_such_an_epoch(small, tmp_path):
    x = torch.randn(103, 2)
    def learner():
        torch.manual_seed(0)
        return Learner(DataLoaders(DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), 10, shuffle=True)), torch.nn.Linear(2, 1), torch.nn.functional.mse_loss, lr=.1,
                       path=tmp_path, cbs=CheckpointCallback('7ba', overwrite=True))
    whole = learner(); whole.fit(2)
    def fail(learn):
        if learn.train_iter==17: raise OSError('no more')
    with pytest.raises(OSError): learner().fit(2, cbs=EveryCallback(fail, '1ba'))
    rest,last = learner(),max(tmp_path.rglob('step-*.pth'))
    rest.fit(2, resume=last)
    assert '14' in last.stem and rest.train_iter==22 and all(torch.equal(a, b) for a,b in zip(whole.model.parameters(), rest.model.parameters()))
