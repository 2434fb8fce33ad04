"""What an epoch and callbacks set on the dataset and the collate function reaches the workers of every kind of loader,
in a run and after a resume."""
import warnings

import numpy as np, pytest, torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler, Subset, get_worker_info

from learnkit.callbacks.batches import ItemIndices, Prefetch, StepsPerEpoch
from learnkit.data.seeded import SeededLoader
from learnkit.data.workers import inform_workers
from learnkit.learner.combined import CombinedLoader
from learnkit.learner.learner import Learner
from learnkit.loop.callback import Callback
from learnkit.recovery.checkpoint import CheckpointCallback
from test_resume import Crash
from toys import few, slow

pytestmark = few(10_000, 3)

N,BS,EPOCHS = 8,2,3

class Part:
    "A transform with an attribute that callbacks set"
    scale = 0
    def __call__(self, row): return [*row, float(self.scale)]

class Data:
    "Samples hold the epoch, what was set on the dataset and its transform, the last entry of a list, and the worker"
    epoch,level = 0,0
    def __init__(self): self.transform,self.seen = Part(),[0]
    def set_epoch(self, epoch): self.epoch = epoch
    def sample(self, i):
        info = get_worker_info()
        row = self.transform([float(i), float(self.epoch), float(self.level), float(self.seen[-1])])
        return torch.tensor([*row, 0. if info is None else float(info.id)])

class Map(Data, Dataset):
    def __len__(self): return N
    def __getitem__(self, i): return self.sample(i)

class Stream(Data, IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        k,n = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(k, N, n): yield self.sample(i)

class Collate:
    "A collate function with an attribute that callbacks set"
    length = 0
    def __call__(self, rows):
        x = torch.stack(rows)
        return torch.cat([x, torch.full((len(x),1), float(self.length))], 1),x[:,:1]/N

FIELDS = ['i','epoch','level','last','scale','worker','length']

class Sets(Callback):
    "In each epoch, sets attributes of the dataset, its transform and the collate function, and changes a list"
    def before_epoch(self):
        dl,epoch = self.learn.dls.train,self.learn.epoch
        ds = dl.dataset.dataset if isinstance(dl.dataset, Subset) else dl.dataset
        ds.level = ds.transform.scale = dl.collate_fn.length = 10*epoch
        ds.seen[:] = [*range(epoch+1)]

class Look(Callback):
    "Records the fields of each training sample, with the epoch"
    acts,order = 'nothing',500
    def __init__(self): self.seen = []
    def before_batch(self):
        if not self.training: return
        for row in self.learn.xb[0].long().tolist(): self.seen.append((self.learn.epoch, dict(zip(FIELDS, row))))

def make_loader(cls, workers=1, persistent=True, start=None, wrap=None, loader=DataLoader, **kwargs):
    ds = cls()
    if wrap=='subset': ds = Subset(ds, range(N))
    if cls is Map and not kwargs: kwargs = dict(shuffle=True)
    if workers: kwargs |= dict(num_workers=workers, persistent_workers=persistent, multiprocessing_context=start)
    dl = loader(ds, **(dict(collate_fn=Collate()) | (kwargs if 'batch_sampler' in kwargs else dict(batch_size=BS, **kwargs))))
    return SeededLoader(dl, 3) if wrap=='seeded' else dl

def torchdata_loader(*args, **kwargs): return pytest.importorskip('torchdata.stateful_dataloader').StatefulDataLoader(*args, **kwargs)

class Net(nn.Linear):
    "Trains on all fields except the worker, which may differ after a resume"
    def forward(self, x):
        keep = torch.tensor([float(name!='worker') for name in FIELDS])
        return super().forward(x*keep)

def train(dl, *cbs, path=None, resume=None):
    torch.manual_seed(0)
    look = Look()
    learn = Learner([dl], Net(len(FIELDS), 1), nn.MSELoss(), torch.optim.SGD, lr=1e-4, path=path, cbs=[Sets(), *cbs, look])
    with learn.no_bar(), learn.no_logging():
        try: learn.fit(EPOCHS, **({} if resume is None else dict(resume=resume)))
        except SystemError: pass
    shut(dl)
    return look.seen,learn.model.weight.detach().clone()

def shut(dl):
    for o in (dl, getattr(dl, 'dl', None), getattr(dl, 'loader', None)):
        it = getattr(o, '_iterator', None)
        if hasattr(it, '_shutdown_workers'): it._shutdown_workers()

def assert_all_seen(seen, workers=1):
    "Assert that each worker saw the number of each epoch, and what the callback set in it"
    assert {epoch for epoch,_ in seen}=={*range(EPOCHS)}
    for epoch,row in seen: assert row==dict(i=row['i'], epoch=epoch, level=10*epoch, last=epoch, scale=10*epoch, worker=row['worker'], length=10*epoch), (epoch, row)
    assert {row['worker'] for _,row in seen}=={*range(max(1, workers))}

WAYS = dict(
    main=dict(workers=0), new=dict(persistent=False), one=dict(), two=dict(workers=2), spawn=dict(start='spawn'), forkserver=dict(start='forkserver', workers=2),
    subset=dict(wrap='subset'), seeded=dict(wrap='seeded', workers=2), torchdata=dict(loader=torchdata_loader, workers=2),
    batch_sampler=dict(batch_sampler=BatchSampler(RandomSampler(range(N)), BS, False)))
CASES = [(cls, way) for cls in (Map, Stream) for way in WAYS if cls is Map or way not in ('subset','batch_sampler')]

@few(6, 22)
@pytest.mark.parametrize('cls,way', CASES)
def test_each_worker_sees_each_epoch_and_what_callbacks_set(cls, way):
    "Persistent workers used to see the values of the first epoch in each epoch"
    kwargs = WAYS[way]
    with warnings.catch_warnings():
        warnings.filterwarnings('error', message='.*persistent workers')
        seen,_ = train(make_loader(cls, **kwargs))
    assert_all_seen(seen, kwargs.get('workers', 1))

@pytest.mark.parametrize('cb', [ItemIndices, Prefetch, lambda: StepsPerEpoch(N//BS), lambda: CheckpointCallback('1ba')])
@pytest.mark.parametrize('cls', [Map, Stream])
def test_workers_see_each_epoch_with_callbacks_that_wrap_the_loader(cls, cb, tmp_path):
    dl = make_loader(cls, workers=2)
    assert_all_seen(train(dl, cb(), path=tmp_path)[0], 2)

@few(3, 5)
@pytest.mark.parametrize('k', [3, 4, 6, 9])
@pytest.mark.parametrize('cls,way', [(cls, way) for cls,way in CASES if way in ('main','new','two','seeded','torchdata')])
def test_a_resumed_run_sees_the_same_values(cls, way, k, tmp_path):
    "The samples after a resume and the final weights are those of an uninterrupted run"
    def data():
        torch.manual_seed(1)   # torchdata's samplers draw a seed when they are created
        return make_loader(cls, **WAYS[way])
    whole,weight = train(data(), CheckpointCallback('1ba'), path=tmp_path/'whole')
    train(data(), CheckpointCallback('1ba'), Crash(k), path=tmp_path/'cut')
    resumed,again = train(data(), CheckpointCallback('1ba'), path=tmp_path/'cut', resume='auto')
    assert_all_seen([*whole[:k*BS], *resumed], WAYS[way].get('workers', 1))
    if way=='seeded':   # its samples do not depend on the worker
        for _,row in [*whole, *resumed]: row.pop('worker')
    assert resumed==whole[k*BS:]
    assert torch.equal(weight, again)

class Validates(Callback):
    def before_epoch(self): self.learn.dls.valid.dataset.level = self.learn.epoch
    def before_batch(self):
        if not self.training: assert {*self.learn.xb[0][:,2].tolist()}=={float(self.learn.epoch)}

def test_workers_of_the_validation_loader_see_each_epoch():
    dl = make_loader(Map, shuffle=False)
    learn = Learner([make_loader(Map, workers=0), dl], nn.Linear(len(FIELDS), 1), nn.MSELoss(), cbs=Validates())
    with learn.no_bar(), learn.no_logging(): learn.fit(EPOCHS)
    shut(dl)

class Own(DataLoader):
    "A loader with a `set_epoch` of its own"
    def set_epoch(self, epoch): self.dataset.epoch = 100+epoch

def test_a_loader_with_a_set_epoch_of_its_own():
    seen,_ = train(make_loader(Map, loader=Own))
    assert {(epoch, row['epoch']) for epoch,row in seen}=={(0, 100), (1, 101), (2, 102)}

class Reseeds(Map):
    "Draws from a generator that `set_epoch` seeds"
    def __init__(self): super().__init__(); self.g = torch.Generator()
    def set_epoch(self, epoch): self.g.manual_seed(epoch); self.epoch = epoch
    def __getitem__(self, i): self.level = float(torch.randint(1000, (), generator=self.g)); return self.sample(i)

def test_a_generator_that_set_epoch_seeds_is_seeded_in_the_worker():
    def draws(persistent): return [(epoch, row['level']) for epoch,row in train(make_loader(Reseeds, persistent=persistent, shuffle=False))[0]]
    assert draws(True)==draws(False)

class Draws(Map):
    "Draws from its own generator, which continues from epoch to epoch"
    def __init__(self): super().__init__(); self.g = torch.Generator().manual_seed(3)
    def set_epoch(self, epoch): self.epoch = epoch; torch.rand(1, generator=self.g)
    def __getitem__(self, i): self.level = float(torch.randint(1000, (), generator=self.g)); return self.sample(i)

def test_a_worker_keeps_its_own_generator():
    "The state of the generator in the main process is not sent to workers: all of them would draw the same numbers"
    drawn = [row['level'] for _,row in train(make_loader(Draws, shuffle=False))[0]]
    assert len({*drawn})>len(drawn)*.8

class NewTransform(Callback):
    def before_epoch(self): self.learn.dls.train.dataset.transform = lambda row: [*row, 7.]

class Labelled(Dataset):
    "Returns the labels of an array"
    def __init__(self): self.labels = np.zeros(50_000, int)
    def __len__(self): return 4
    def __getitem__(self, i): return int(self.labels[i+1])

def test_one_new_label_of_many_reaches_the_workers():
    "Of an array, a thousand elements were compared, so a label in between kept its old value in the workers"
    dl,passes = DataLoader(Labelled(), 4, num_workers=1, persistent_workers=True),[]
    for epoch in range(2):
        dl.dataset.labels[2] = epoch
        with inform_workers(dl): it = iter(dl)
        passes += [b.tolist() for b in it]
    assert passes==[[0,0,0,0], [0,1,0,0]]

@pytest.mark.parametrize('persistent', [False, True])
def test_a_change_that_cannot_reach_workers_warns_once(persistent):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter('always')
        train(make_loader(Map, persistent=persistent), NewTransform())
    messages = [str(w.message) for w in warned if 'persistent workers keep the old value' in str(w.message)]
    if not persistent: assert messages==[]; return
    message, = messages
    assert message.startswith('`transform` of Map changed') and 'persistent_workers=False' in message

class NewCollate(Callback):
    def before_epoch(self): self.learn.dls.train.collate_fn = Collate()

def test_a_new_collate_function_warns():
    with pytest.warns(UserWarning, match='`collate_fn` of the loader changed'): train(make_loader(Map), NewCollate())

class Picky(Map):
    def __setattr__(self, k, v): super().__setattr__(k, v)
    def set_epoch(self, epoch):
        if get_worker_info() is not None and epoch==1: raise KeyError('no such epoch')
        self.epoch = epoch

def test_a_set_epoch_that_fails_in_a_worker_warns():
    with pytest.warns(UserWarning, match=r"the change failed: KeyError\('no such epoch'\)"): train(make_loader(Picky))

class Model(Map):
    "Holds the model, as a dataset that mines hard samples does, and a file that the main process opens"
    def __init__(self): super().__init__(); self.model,self.file = None,None
    def __getitem__(self, i): assert self.file is None; return self.sample(i)

class Mines(Callback):
    def before_epoch(self):
        ds = self.learn.dls.train.dataset
        ds.model = self.learn.model
        if self.learn.epoch: ds.file = ds.file or open(__file__)

def test_an_open_file_is_not_sent_to_workers():
    "An open file stays in the main process, without a warning"
    with warnings.catch_warnings():
        warnings.filterwarnings('error', message='.*persistent workers')
        train(make_loader(Model), Mines())

def test_workers_that_started_before_the_fit():
    "Workers that a first look at a batch has started see each epoch too"
    dl = make_loader(Map, shuffle=False)
    next(iter(dl))
    seen,_ = train(dl)
    assert {(epoch, row['epoch']) for epoch,row in seen}=={(0, 0), (1, 1), (2, 2)}

def test_workers_of_combined_loaders_see_each_epoch():
    "Each pass over one of the loaders has its own number, which its workers get, persistent or not"
    def numbers(persistent):
        dls = [make_loader(cls, persistent=persistent) for cls in (Map, Stream)]
        learn = Learner([CombinedLoader(dict(a=dls[0], b=dls[1]), order='in_turn')], nn.Linear(len(FIELDS), 1), nn.MSELoss(), cbs=(look := Look()))
        with learn.no_bar(), learn.no_logging(): learn.fit(EPOCHS)
        for dl in dls: shut(dl)
        return [(epoch, row['epoch']) for epoch,row in look.seen]
    assert numbers(True)==numbers(False)
    assert len({*numbers(True)})>=EPOCHS
