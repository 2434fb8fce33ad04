"""Settings that must be equal in all processes raise if they differ; data that differs is not sharded."""
import warnings
from functools import partial

import pytest, torch
from torch import distributed as dist, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import context_parallel
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from learnkit.all import Callback, DataLoaders, FullyShard, GradientClip, Learner, OnBetter, VirtualShards
from learnkit.processes.distributed import DistributedTrainer
from test_agreement import _inside
from test_checksum import alike, learner
from test_distributed import data, net, weights
from test_one_mind import gathered
from toys import slow

torch.set_num_threads(1)

@pytest.fixture
def processes(tmp_path):
    def run(world, f, *args): torch.multiprocessing.start_processes(_inside, (world, tmp_path/'store', f, args), nprocs=world, start_method='fork')
    return run

# settings

differ = {'lr':   (lambda r: dict(lr=.1+.1*r), 'the lr in process 0: .0.1., in process 1: .0.2.'),
          'wd':   (lambda r: dict(wd=.1*r), 'the wd in process 0'),
          'opt':  (lambda r: dict(opt=(torch.optim.SGD,torch.optim.Adam)[r]), 'the optimizer in process 0: torch.optim.sgd.SGD, in process 1: torch.optim.adam.Adam'),
          'mom':  (lambda r: dict(opt=partial(torch.optim.SGD, momentum=.1*r)), 'the optimizer.momentum in process 0'),
          'clip': (lambda r: dict(cbs=GradientClip(1.+r)), 'the arguments of gradient_clip in process 0: GradientClip max_norm=1.0.*, in process 1: GradientClip max_norm=2.0'),
          'loss': (lambda r: dict(loss=(nn.MSELoss(),nn.L1Loss())[r]), 'the loss in process 0: MSELoss, in process 1: L1Loss'),
          'huber':(lambda r: dict(loss=nn.HuberLoss(delta=1.+r)), 'the loss in process 0: HuberLoss delta=1.0, in process 1: HuberLoss delta=2.0'),
          'stage':(lambda r: dict(model=nn.Linear(4, 1+r)), 'the parameters in process 0: .*If these are stages of a pipeline, train them with `step` of a schedule of torch.distributed.pipelining'),
          'model':(lambda r: dict(model=nn.Sequential(nn.Linear(4,1), nn.Dropout(.1+.1*r))), 'the model.1 in process 0: .*Dropout.p=0.1')}

def _differ(rank, world, names):
    for name in names:
        make,said = differ[name]
        with pytest.raises(ValueError, match='the processes have different settings: '+said): learner(**make(rank)).fit(1)

@pytest.mark.parametrize('names', [['lr','clip','loss'], *slow(['wd','opt','mom','huber','stage','model'])], ids=lambda names: '-'.join(names))
def test_settings_that_differ_raise(processes, names): processes(2, _differ, names)

class ContextParallel(Callback):
    "As one would write it: the batch is cut along its second dimension, within PyTorch's context manager"
    order,ctx = 5,None
    def before_pred(self):
        self.ctx = context_parallel(init_device_mesh('cpu', (2,)), buffers=[self.xb[0]], buffer_seq_dims=[1])
        self.ctx.__enter__()
    def after_backward(self): self._exit()
    def cleanup(self): self._exit()
    def _exit(self):
        if self.ctx is not None: self.ctx.__exit__(None, None, None)
        self.ctx = None

def _in_context(rank, world):
    positions = nn.Sequential(nn.Unflatten(1, (-1,1)), nn.Linear(1, 1), nn.Flatten(), nn.AdaptiveAvgPool1d(1))
    with pytest.raises(ValueError, match='context parallelism is not supported: .*torchtitan'): learner(model=positions).fit(1, cbs=ContextParallel())
    with context_parallel(init_device_mesh('cpu', (2,)), buffers=[torch.zeros(2, 4)], buffer_seq_dims=[1]):
        with pytest.raises(ValueError, match='context parallelism is not supported'): learner().fit(1)
    learner().fit(1)

def test_context_parallelism_is_noticed(processes): processes(2, _in_context)

class Mine(Callback):
    def __init__(self, who): super().__init__(); self.who = who

def _fine(rank, world):
    torch.manual_seed(rank)
    learn = learner(loss=lambda p,y: nn.functional.mse_loss(p, y) + 0*rank, cbs=[Mine(rank), OnBetter(lambda learn: rank)])
    learn.fit(1)
    assert alike(learn)

@pytest.mark.slow
def test_what_is_a_users_own_may_know_its_process(processes): processes(2, _fine)

# data

class Files(Dataset):
    def __init__(self, names): self.names = names
    def __len__(self): return len(self.names)
    def __getitem__(self, i): return data(48)[int(self.names[i])]

class Computed(Dataset):
    "It keeps nothing that could be compared"
    def __init__(self, first): self.first = first
    def __len__(self): return 12
    def __getitem__(self, i): return data(48)[self.first+i]

def halves(rank, world, whole):
    n = 24//world
    return {'subset': lambda: Subset(whole, range(rank, 24, world)),
            'files':  lambda: Files([str(i) for i in range(rank*n, rank*n+n)]),
            'uneven': lambda: Files([str(i) for i in range(rank*n, rank*n+n+2*rank)]),
            'tensors':lambda: TensorDataset(*whole[rank::world]),
            'computed':lambda: Computed(12*rank)}

def _seen(learn):
    seen = []
    learn.add_cb(Callback(before_batch=lambda cb: seen.extend(cb.x[:,0].tolist()) if cb.training else None))
    return seen

def _own(rank, world, names, workers):
    for name in names:
        ds = halves(rank, world, data(24))[name]()
        learn = learner(train=DataLoader(ds, 3, shuffle=True, num_workers=workers))
        seen = _seen(learn)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter('always')
            learn.fit(2)
        n = gathered(len({*seen}))
        assert n[0]==12 and len({*sum(gathered(seen), [])})==24 + 2*(name=='uneven'), (name, n)
        said = gathered(' '.join(str(w.message) for w in told))
        assert any('The processes have different training data, of 12 and ' in s and 'DistributedTrainer(shard=False)' in s for s in said), (name, said)

@pytest.mark.parametrize('names,workers', [(['subset','files','uneven','tensors','computed'], 0), *slow((['files','subset'], 1))], ids=str)
def test_each_trains_on_what_it_has(processes, names, workers): processes(2, _own, names, workers)

def _same(rank, world):
    for ds in (data(24), Files([*map(str, range(24))]), Subset(data(48), [*range(24)]), Computed(0)):
        learn = learner(train=DataLoader(ds, 3, shuffle=True))
        seen = _seen(learn)
        with warnings.catch_warnings(): warnings.simplefilter('error'); learn.fit(1)
        assert len({*sum(gathered(seen), [])})==len(ds) and len({*seen})==len(ds)//2

def test_the_same_data_is_divided(processes): processes(2, _same)

# inference

def _other_loaders(rank, world):
    learn = learner()
    a,b = DataLoader(data(9), 3),DataLoader(data(12), 4)
    with pytest.raises(RuntimeError, match=r'the processes call different functions: .*validate.ds_idx=1'): learn.validate(ds_idx=1-rank)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter('always')
        learn.validate(dl=(a,b)[rank])
    assert any('The processes have different data to validate or predict, of 9 and 12 samples' in s for s in gathered(' '.join(str(w.message) for w in told)))

@pytest.mark.slow
def test_loaders_that_differ_are_reported(processes): processes(2, _other_loaders)

# sharded models

def _uneven(rank, world):
    learn = learner(nn.Sequential(nn.Linear(4,8), nn.ReLU(), nn.Linear(8,1)), cbs=FullyShard(8))
    own = TensorDataset(*data(24)[rank*9:9+rank*15])   # 9 and 15 samples
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        preds,targs = learn.get_preds(dl=DataLoader(own, 4))
        loss = learn.validate(dl=DataLoader(own, 4))[0]
        learn.fit(1)
    assert torch.equal(targs, own.tensors[1])   # each has the predictions of its own
    losses = torch.cat(gathered((preds-targs)**2))
    assert len(losses)==24 and loss==pytest.approx(losses.mean().item(), rel=1e-5)
    stream = [(x,y) for x,y in DataLoader(own, 4)]
    with pytest.raises(ValueError, match='equally often in each process'): learn.get_preds(dl=iter_of(stream))

def iter_of(batches):
    class Stream:
        def __iter__(self): return iter(batches)
    return Stream()

@pytest.mark.slow
def test_forwards_of_a_sharded_model_are_as_many_in_all(processes): processes(2, _uneven)

def _by_hand(rank, world):
    from torch.distributed.fsdp import fully_shard
    model = nn.Sequential(nn.Linear(4,8), nn.Linear(8,1))
    fully_shard(model)
    with pytest.raises(ValueError, match=r'FullyShard\(\)'): learner(model).fit(1)

@pytest.mark.slow
def test_a_model_that_is_already_sharded_raises_in_one_sentence(processes): processes(2, _by_hand)
