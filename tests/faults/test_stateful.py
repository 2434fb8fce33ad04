"""Streams that save their position: a run resumes there without loading a sample again, and ends as if not killed."""
import multiprocessing as mp, os, random, warnings
from dataclasses import dataclass
from itertools import count

import numpy as np, pytest, torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, Sampler, Subset, get_worker_info

from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.loop.callback import Callback
from learnkit.loop.events import CancelBatch, CancelTrain
from learnkit.callbacks.batches import StepsPerEpoch
from learnkit.learner.fit import LimitBatches
from learnkit.recovery.file import list_checkpoints, read_checkpoint, write_checkpoint
from learnkit.data.loaders import DataLoaders
from learnkit.data.resumable_loader import ResumableLoader, hash_batch
from learnkit.data.seeded import SeededLoader
from learnkit.data.parts import is_stateful
from test_resume import Crash, assert_same, end, fit
from test_resume import learner as _learner
from toys import few, slow

pytestmark = few(10_000, 2)   # of the slow cases of each test; all with LEARNKIT_SWEEP=1

BS,PER,N = 4,4,14   # 4 batches an epoch, the last one is short

class Made:
    "Counts the samples loaded in this process and its workers"
    count = mp.Value('i')
    @classmethod
    def one(cls):
        with cls.count.get_lock(): cls.count.value += 1

class Source(IterableDataset):
    "Draws from its own generator across epochs, and from the global ones if `globally`; saves its position"
    def __init__(self, globally=False): self.i,self.at,self.g,self.globally = 0,0,torch.Generator().manual_seed(5),globally
    def __iter__(self):
        info = get_worker_info()
        k,n = (0,1) if info is None else (info.id,info.num_workers)
        self.i,self.at = self.at,0
        while self.i<N//n:
            self.i += 1
            Made.one()
            x = torch.cat([torch.rand(3, generator=self.g), torch.tensor([float(self.i*n+k)])])
            if self.globally: x = x + torch.rand(4) + random.random() + float(np.random.rand())
            yield x, x.sum()[None]/10
    def state_dict(self): return dict(i=self.i, g=self.g.get_state())
    def load_state_dict(self, d): self.at = d['i']; self.g.set_state(d['g'])

class Rewound(Source):
    "A Source that rewinds at its end"
    def __iter__(self):
        yield from super().__iter__()
        self.i = 0

class Own:
    "A loader of another library: no `Dataset`, no `len`, no end"
    def __init__(self): self.i = 0
    def __iter__(self):
        for self.i in count(self.i+1):
            Made.one()
            x = torch.full((BS,4), self.i/9.) + torch.rand(BS, 4)
            yield x, x.sum(1, keepdim=True)
    def state_dict(self): return dict(i=self.i, deep=[(1, 'a', None)])
    def load_state_dict(self, d): assert d['deep']==[(1, 'a', None)]; self.i = d['i']

@pytest.fixture(autouse=True, scope='module')
def no_fsync():
    "Skip `fsync`, which is tested elsewhere and would take the longest here"
    with pytest.MonkeyPatch.context() as m: m.setattr(os, 'fsync', lambda fd: None); yield

loaders = []
def stateful_loader(*args, **kwargs):
    loaders.append(pytest.importorskip('torchdata.stateful_dataloader').StatefulDataLoader(*args, **kwargs))
    return loaders[-1]

@pytest.fixture(autouse=True)
def no_workers_are_left():
    "Shut down the loader workers, for each of which the garbage collector would wait 5 s"
    yield
    for it in [dl._iterator for dl in loaders]:
        if hasattr(it, '_shutdown_workers'): it._shutdown_workers()
    loaders.clear()

def learner(path, data, cbs=(), **kwargs):
    return _learner(path, [*cbs, *([lambda: LimitBatches(PER)] if data is Own else [])], data=data, **{'every':'1ba', **kwargs})

def stopped(make, *crashes, n=3):
    "Run until each of `crashes`, then to the end, counting samples from the last start; return the last Learner"
    for crash in crashes:
        with pytest.raises(SystemError): fit(make(), n, cbs=crash)
        random.random(), torch.rand(3), np.random.rand()
    Made.count.value = 0
    return fit(make(), n)

DATA = dict(dataset=lambda: DataLoader(Source(True), BS), rewound=lambda: DataLoader(Rewound(), BS), own=Own, torchdata=lambda: stateful_loader(Source(True), BS),
            workers=lambda: stateful_loader(Source(), BS, num_workers=2))

@pytest.fixture(scope='module')
def straight(tmp_path_factory):
    "The final state of an uninterrupted run with each kind of data"
    ends = {}
    def get(kind):
        if kind not in ends: ends[kind] = end(fit(learner(tmp_path_factory.mktemp(kind), DATA[kind])))
        return ends[kind]
    return get

@few(4, 4)
@pytest.mark.parametrize('k', [1, *slow(*range(2, PER)), PER, *slow(*range(PER+1, 3*PER)), 3*PER])
@pytest.mark.parametrize('kind', ['dataset','rewound','own','torchdata'])
def test_every_batch_and_no_sample_is_loaded_again(kind, k, straight, tmp_path):
    whole = straight(kind)
    learn = stopped(lambda: learner(tmp_path, DATA[kind]), Crash(k))
    assert_same(whole, end(learn))
    assert Made.count.value==(3*PER-k if kind=='own' else 3*N - k//PER*N - k%PER*BS)

@few(0, 3)
@pytest.mark.parametrize('k', slow(1, 2, 4, 5, 6, 9, 12))
def test_in_workers(k, straight, tmp_path):
    "Each worker has its own part of the data, and its own position"
    whole = straight('workers')
    assert_same(whole, end(stopped(lambda: learner(tmp_path, DATA['workers']), Crash(k))))
    assert Made.count.value==3*N - k//PER*N - sum((4, 4, 3, 3)[:k%PER])

@pytest.mark.parametrize('kind', ['dataset','rewound','own','torchdata'])
@few(1)
def test_crash_after_crash(kind, straight, tmp_path):
    whole = straight(kind)
    assert_same(whole, end(stopped(lambda: learner(tmp_path, DATA[kind]), *(Crash(k) for k in (2, 3, 4, 6, 9, 10)))))

@pytest.mark.parametrize('every', ['3ba', '1ep', '2ep'])
@pytest.mark.parametrize('kind', ['dataset','own','torchdata'])
@few(3)
def test_the_checkpoint_interval_does_not_matter(kind, every, straight, tmp_path):
    assert_same(straight(kind), end(stopped(lambda: learner(tmp_path, DATA[kind], every=every), Crash(6), Crash(11))))

class Noisy(Dataset):
    "A map-style dataset that draws from all three global generators"
    def __len__(self): return N
    def __getitem__(self, i):
        x = torch.tensor([i/N, random.random(), float(np.random.rand()), float(torch.rand(()))])
        return x, x.sum()[None]

def test_a_stateful_loader_of_a_map_style_dataset(tmp_path):
    "A `StatefulDataLoader` of a map-style dataset"
    data = lambda: stateful_loader(Noisy(), BS, shuffle=True)
    assert_same(end(fit(learner(tmp_path/'a', data))), end(stopped(lambda: learner(tmp_path/'b', data), Crash(3), Crash(6))))

class Mapped(Noisy):
    "A map-style dataset with a state"
    made = 0
    def __getitem__(self, i): self.made += 1; Made.one(); return torch.full((4,), self.made/9.), torch.ones(1)
    def state_dict(self): return dict(made=self.made)
    def load_state_dict(self, d): self.made = d['made']

def test_a_map_style_dataset_with_a_state(tmp_path):
    data = lambda: stateful_loader(Mapped(), BS, generator=torch.Generator(), shuffle=True)
    assert_same(end(fit(learner(tmp_path/'a', data))), end(stopped(lambda: learner(tmp_path/'b', data), Crash(3), Crash(6))))
    assert Made.count.value==3*N - N - 2*BS

class Shuffled(Sampler):
    "A sampler with generators of its own, and no `state_dict`"
    def __init__(self): self.gens = dict; self.py,self.np,self.th = random.Random(1),np.random.default_rng(1),torch.Generator().manual_seed(1)
    def __len__(self): return N
    def __iter__(self):
        idxs = [int(i) for i in self.np.permutation(N)]
        self.py.shuffle(idxs)
        return iter([idxs[i] for i in torch.randperm(N, generator=self.th)])

def test_a_sampler_with_generators_of_its_own(tmp_path):
    data = lambda: DataLoader(Noisy(), BS, sampler=Shuffled())
    assert_same(end(fit(learner(tmp_path/'a', data))), end(stopped(lambda: learner(tmp_path/'b', data), Crash(3), Crash(6))))

class Backwards(list):
    "A list that iterates in another order than its indices"
    def __iter__(self): return iter([*super().__iter__()][::-1])

def test_a_list_with_an_order_of_its_own(tmp_path):
    g = torch.Generator().manual_seed(3)
    batches = [(torch.rand(BS, 4, generator=g), torch.rand(BS, 1, generator=g)) for _ in range(4)]
    data = lambda: Backwards(batches)
    assert_same(end(fit(learner(tmp_path/'a', data))), end(stopped(lambda: learner(tmp_path/'b', data), Crash(3), Crash(6))))

class Cut(Callback):
    "Ends the training phase after two batches"
    order = 200
    def after_batch(self):
        if self.training and self.learn.mode=='fit' and self.iter==1: raise CancelTrain

@few(2)
@pytest.mark.parametrize('kind', ['torchdata', 'own'])
@pytest.mark.parametrize('every,k', [('1ba',1), ('1ba',3), ('1ep',3), ('1ep',5)])
def test_incomplete_epochs(kind, every, k, tmp_path):
    "After an incomplete epoch a `DataLoader` starts again, and a stream continues"
    kind,data = (kind, Own) if kind=='own' else (kind, lambda: stateful_loader(Plain(), BS))
    def make(path): return learner(path, data, [Cut], every=every)
    assert_same(end(fit(make(tmp_path/'a'))), end(stopped(lambda: make(tmp_path/'b'), Crash(k))))

class Plain(Source):
    "A Source that yields the same samples in each epoch"
    def __iter__(self):
        if self.at==0: self.g.manual_seed(3)
        return super().__iter__()

class Odd(Own):
    "A loader whose state no checkpoint can hold"
    def state_dict(self): return dict(i=self.i, who=self)
    def load_state_dict(self, d): raise AssertionError('it was never saved')

def test_a_state_that_cannot_be_saved(tmp_path, capsys):
    "One warning names it and its cost; the resumed run reads the data again, and ends the same"
    def make(path): return _learner(path, [lambda: LimitBatches(PER)], data=Odd, every='1ba')
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter('always')
        fit(make(tmp_path/'a'), 1)
    messages = [str(o.message) for o in w if 'place.data.data.who' in str(o.message)]
    assert len(messages)==1 and 'is of type Odd' in messages[0] and 'will read the first batches of its epoch again' in messages[0]
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        whole,resumed = end(fit(make(tmp_path/'b'), 1)),end(stopped(lambda: make(tmp_path/'c'), Crash(3), n=1))
    assert_same(whole, resumed)
    assert 'its first 3 batches are read again, without training' in capsys.readouterr().out

@pytest.mark.parametrize('kind', ['dataset','own'])
def test_a_checkpoint_of_an_older_version_raises(kind, tmp_path):
    "A checkpoint without a position raises an error that names an older learnkit"
    with pytest.raises(SystemError): fit(learner(tmp_path, DATA[kind]), cbs=Crash(3))
    folder = tmp_path/'checkpoints'/'fit-1'
    state = read_checkpoint(list_checkpoints(folder)[0]); del state['place']
    write_checkpoint(state, list_checkpoints(folder)[0])
    with pytest.raises(ValueError, match='to an older learnkit'): fit(learner(tmp_path, DATA[kind]))

def test_only_data_is_in_the_file(tmp_path):
    for kind in ('dataset','own','torchdata'):
        learn = fit(learner(tmp_path/kind, DATA[kind]), 1)
        places = [torch.load(p, weights_only=True)['place'] for p in list_checkpoints(learn.checkpoint.folder)]
        assert places and all(p['data']['data'] for p in places)

def test_background_checkpoints_are_snapshots_of_the_data(tmp_path):
    "Later changes of the dataset are not in a checkpoint that is written in the background"
    whole = end(fit(learner(tmp_path/'a', DATA['dataset'], background=True)))
    assert_same(whole, end(stopped(lambda: learner(tmp_path/'b', DATA['dataset'], background=True), Crash(3), Crash(7))))

def test_a_loader_that_rejects_its_state_is_named(tmp_path, monkeypatch):
    with pytest.raises(SystemError): fit(learner(tmp_path, Own), cbs=Crash(2))
    def refuse(self, d): raise KeyError('j')
    monkeypatch.setattr(Own, 'load_state_dict', refuse)
    with pytest.raises(KeyError) as e: fit(learner(tmp_path, Own))
    assert any('the checkpoint' in n and 'Own' in n for n in e.value.__notes__)

def test_data_may_cancel_its_batch(tmp_path):
    "A dataset that cancels a batch does not end the epoch"
    class Skips(Noisy):
        def __getitem__(self, i):
            if i==5: raise CancelBatch
            return super().__getitem__(i)
    learn = fit(learner(tmp_path, lambda: DataLoader(Skips(), BS)), 1)
    assert learn.train_iter==PER

def test_what_is_stateful():
    class Half:
        def state_dict(self): pass
    assert is_stateful(Own()) and not is_stateful(Half()) and not is_stateful(None) and not is_stateful([1])

def test_no_state_is_read_before_the_iteration():
    "Reading the state of a `StatefulDataLoader` starts it, which draws a random number or starts workers"
    class Asked(Own):
        def state_dict(self): raise AssertionError('too early')
    assert SeededLoader(Asked(), 0).position(0)['state'] is None and ResumableLoader(Asked()).state(0) is None

def nodes():
    "A loader of `torchdata.nodes`"
    tn = pytest.importorskip('torchdata.nodes')
    def collate(xs): x = torch.stack(xs); return x, x.sum(1, keepdim=True)/10
    batches = tn.Batcher(tn.IterableWrapper([torch.tensor([float(i), 1., 2., 3.]) for i in range(N)]), BS, drop_last=False)
    return tn.Loader(tn.ParallelMapper(batches, collate, num_workers=1, method='thread'), restart_on_stop_iteration=False)

@pytest.mark.parametrize('cbs,every,k', [((), '1ba', 4), *slow(((), '1ba', 1), ((), '1ba', 6), ((), '1ep', 6), ((Cut,), '1ba', 3)), ((Cut,), '1ep', 3)])
def test_nodes(cbs, every, k, tmp_path):
    def make(path): return learner(path, nodes, cbs, every=every)
    assert_same(end(fit(make(tmp_path/'a'))), end(stopped(lambda: make(tmp_path/'b'), Crash(k))))

class Streamed(IterableDataset):
    "A stream like Hugging Face's: its saved position applies to each pass with the saved epoch number"
    epoch,start,at = 0,None,0
    def set_epoch(self, epoch): self.epoch = epoch
    def __iter__(self):
        self.at = self.start['at'] if self.start and self.start['epoch']==self.epoch else 0
        order = torch.randperm(N, generator=torch.Generator().manual_seed(self.epoch)).tolist()
        while self.at<N:
            self.at += 1
            Made.one()
            x = torch.tensor([1., 2, 3, order[self.at-1]/N])
            yield x, x.sum()[None]/10
    def state_dict(self): return dict(epoch=self.epoch, at=self.at)
    def load_state_dict(self, d): self.start = d

class Place(IterableDataset):
    "A stream that continues from its position, even after an incomplete pass"
    at = 0
    def __iter__(self):
        while self.at<N: self.at += 1; x = torch.tensor([1., 2, 3, self.at/N]); yield x,x.sum()[None]/10
        self.at = 0
    def state_dict(self): return dict(at=self.at)
    def load_state_dict(self, d): self.at = d['at']

def test_an_incomplete_epoch_that_cannot_be_resumed_exactly(tmp_path):
    "A checkpoint after an incomplete epoch of a stream warns; with `StepsPerEpoch` the resume is exact"
    def make(to, cb, wrap=lambda dl: dl): return learner(tmp_path/to, lambda: wrap(DataLoader(Place(), BS)), [cb], every='1ep')
    for seeded in (False, True):
        with pytest.warns(UserWarning, match='may not have the same training data.*Place does not report.*StepsPerEpoch'):
            fit(make(f'a{seeded}', lambda: LimitBatches(2), **dict(wrap=lambda dl: SeededLoader(dl, 3)) if seeded else {}))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        fit(make('b', lambda: LimitBatches(PER+1)))
        assert_same(end(fit(make('c', lambda: StepsPerEpoch(2)))), end(stopped(lambda: make('d', lambda: StepsPerEpoch(2)), Crash(2))))

class AsksFor(Streamed):
    "A stream like mosaicml-streaming's, whose `state_dict` needs arguments of its own loader"
    def state_dict(self, num_samples, from_beginning): raise AssertionError('nobody can know')

@few(4, 6)
@pytest.mark.parametrize('k', [1, *slow(2, PER, PER+1, 2*PER), 2*PER+1])
@pytest.mark.parametrize('make', [Streamed, AsksFor])
def test_the_data_get_the_epoch(make, k, tmp_path):
    "Each epoch has its own order, even after a resume in the middle of one"
    data = lambda: DataLoader(make(), BS)
    whole = end(fit(learner(tmp_path/'a', data)))
    assert_same(whole, end(stopped(lambda: learner(tmp_path/'b', data), Crash(k))))

@pytest.mark.parametrize('k', [2, *slow(PER+1)])
def test_a_seeded_loader_continues_after_a_finished_fit(k, tmp_path):
    "The second fit of a resumed script had the order of the first one's epochs"
    def both(to, *crash):
        learn = learner(tmp_path/to, lambda: SeededLoader(DataLoader(Order(), BS, shuffle=True), 3), every='1ep')
        for cbs in ((), crash): learn.fit(2, resume='auto', cbs=cbs)
        return end(learn)
    with pytest.raises(SystemError): both('b', Crash(k))
    assert_same(both('a'), both('b'))

class Order(Dataset):
    def __len__(self): return N
    def __getitem__(self, i): x = torch.tensor([1., 2, 3, i/N]); return x,x.sum()[None]/10

class Redrawn(Dataset):
    "Draws an order when an epoch begins, from its own generator or a global one"
    def __init__(self, globally): self.rng,self.globally = np.random.default_rng(3),globally
    def set_epoch(self, epoch): self.rows = torch.randperm(N).tolist() if self.globally else self.rng.permutation(N).tolist()
    def __len__(self): return N
    def __getitem__(self, i): x = torch.tensor([1., 2, 3, self.rows[i]/N]); return x,x.sum()[None]/10

@few(4, 6)
@pytest.mark.parametrize('globally', [False, True])
@pytest.mark.parametrize('every', ['1ba','1ep'])
@pytest.mark.parametrize('k', [2, PER+1, *slow(PER, 2*PER, 2*PER+1)])
@pytest.mark.parametrize('wrap', [lambda dl: dl, *slow(lambda dl: SeededLoader(dl, 3))])
def test_an_order_that_is_drawn_as_an_epoch_begins(globally, every, k, wrap, tmp_path):
    "A resumed run drew another order in `set_epoch`, or the same one in two epochs"
    def make(to): return learner(tmp_path/to, lambda: wrap(DataLoader(Redrawn(globally), BS)), every=every)
    assert_same(end(fit(make('a'))), end(stopped(lambda: make('b'), Crash(k))))

class Clocked(Streamed):
    "A stream in another order in each run, without a state"
    state_dict = None
    def __init__(self): self.epoch = random.SystemRandom().randrange(10**9)
    def set_epoch(self, epoch): pass

@pytest.mark.parametrize('workers', [0, *slow(2)])
def test_data_with_another_first_batch_is_reported(workers, tmp_path):
    with pytest.warns(UserWarning, match='begins with another batch'):
        stopped(lambda: learner(tmp_path, lambda: DataLoader(Clocked(), BS, num_workers=workers)), Crash(2))

@dataclass
class Record:
    x: object

class Graph(Record):
    "A batch object"
    def to(self, device): return self

@pytest.mark.parametrize('wrap', [Record, lambda x: dict(x=Record([x])), lambda x: (x.numpy(),), lambda x: Graph(dict(x=x))])
def test_the_first_batch_is_compared_in_any_form(wrap):
    "Tensors in a dataclass or an object, and NumPy arrays, were not compared, so another first batch was not reported"
    assert len({hash_batch(wrap(torch.full((2, 3), v))) for v in (0., 1., 2.)})==3
    assert hash_batch(wrap(torch.ones(2, 3)))==hash_batch(wrap(torch.ones(2, 3)))

class ByTheClock(IterableDataset):
    "A stream in another order in each pass"
    def __iter__(self):
        for i in random.SystemRandom().sample(range(N), N): x = torch.tensor([1., 2, 3, i/N]); yield x,x.sum()[None]/10

def test_between_epochs_a_stream_by_the_clock_begins_a_whole_pass(tmp_path):
    "Nothing is read again there, so nothing is compared; each sample is trained on once, as in any other epoch"
    seen = []
    class Watch(Callback):
        acts = 'nothing'
        def after_batch(self):
            if self.training: seen.extend(self.learn.xb[0][:,3].mul(N).round().int().tolist())
    def make(): return learner(tmp_path, lambda: DataLoader(ByTheClock(), BS), [Watch], every='1ep')
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        stopped(make, Crash(PER+1))
    assert sorted(seen[:N])==[*range(N)] and sorted(seen[-2*N:-N])==[*range(N)]

class RecordsEpochs:
    "Records the epochs given to `set_epoch`"
    def __init__(self, n): self.n,self.epochs = n,[]
    def set_epoch(self, epoch): self.epochs.append(epoch)
    def __len__(self): return self.n

class RecordingData(RecordsEpochs, Dataset):
    def __getitem__(self, i): return torch.ones(4), torch.ones(1)
class RecordingSampler(RecordsEpochs, Sampler):
    def __iter__(self): return iter(range(self.n))

def test_which_objects_get_the_epoch(tmp_path):
    "`set_epoch` reaches dataset and sampler, even in a `Subset` or batch sampler; or only a loader that defines it"
    ds,sampler = RecordingData(8),RecordingSampler(8)
    loaders = [DataLoader(ds, 4, sampler=sampler), DataLoader(Subset(ds, range(8)), batch_sampler=BatchSampler(sampler, 4, False))]
    for i,dl in enumerate(loaders):
        ds.epochs.clear(); sampler.epochs.clear()
        fit(_learner(tmp_path/f'{i}', [], data=lambda: dl), 3)
        assert (ds.epochs, {*sampler.epochs})==([0, 1, 2], {0, 1, 2})
    class Own(DataLoader):
        def set_epoch(self, epoch): own_epochs.append(epoch)
    own_epochs = []; ds.epochs.clear()
    fit(_learner(tmp_path/'own', [], data=lambda: Own(ds, 4)), 2)
    assert (own_epochs, ds.epochs)==([0, 1], [])
