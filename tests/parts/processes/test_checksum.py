"""Processes whose models differ raise at the next comparison; differences that are allowed do not."""
import pytest, torch
from torch import distributed as dist, nn
from torch.utils.data import DataLoader

from learnkit.all import (Callback, CancelFit, CheckpointCallback, DataLoaders, EMACallback, FullyShard, GradientAccumulation, GradientClip, Learner, MixUp, ReduceLROnPlateau, SkipNaN, ValidateEvery,
                          VirtualShards)
from learnkit.processes.agreement import ProcessFailed
from learnkit.processes.distributed import DistributedTrainer, _sync_buffers
from test_agreement import _inside
from test_distributed import data, everywhere, net, weights
from toys import slow

torch.set_num_threads(1)

@pytest.fixture
def processes(tmp_path):
    def run(world, f, *args): torch.multiprocessing.start_processes(_inside, (world, tmp_path/'store', f, args), nprocs=world, start_method='fork')
    return run

def learner(model=None, train=None, opt=torch.optim.SGD, loss=None, **kw):
    learn = Learner(DataLoaders(DataLoader(data(24), 4, shuffle=True) if train is None else train, DataLoader(data(9), 3)), model or net(), loss or nn.MSELoss(), opt, **{'lr':.1, **kw})
    learn.logger = lambda row: None
    return learn.remove_cb(learn.progress)

def alike(learn): return torch.equal(*everywhere(weights(learn.model)))

# what one process does differently, and the message about it

class OfOne(Callback):
    "Calls `f(learn)` at an event of the second epoch, in process 1"
    acts = 'alike'
    def __init__(self, ev, f):
        super().__init__()
        self.f = f
        setattr(self, ev, self.act)
    def act(self):
        if dist.get_rank()==1 and self.learn.epoch==1: self.f(self.learn)

@torch.no_grad()
def noise(learn): learn.model.module[2].weight.add_(torch.randn_like(learn.model.module[2].weight), alpha=.1)
@torch.no_grad()
def one_bit(learn): learn.model.module[2].weight.view(torch.int32)[0,1] ^= 1
def lower(learn): learn.opt.set_hyper('lr', .05)
def momentum(learn): learn.opt.opt.param_groups[0]['momentum'] = .5

apart = {'lr':  ('after_epoch',  lower,    r'the processes have diverged, at the end of epoch 1: `lr` of parameter group 0 is 0.1 in process 0 and 0.05 in process 1\.'),
         'mom': ('before_batch', momentum, r'`momentum` of parameter group 0 is 0 in process 0 and 0.5 in process 1 \(and'),
         'noise':('after_step',  noise,    r'parameter `2.weight` differs in process 1 from that of process 0'),
         'bit': ('after_train',  one_bit,  r'the processes have diverged, at the end of epoch 1: parameter `2.weight` differs in process 1 from that of process 0')}

def _apart(rank, world, what, cbs):
    ev,f,said = apart[what]
    learn = learner()
    with pytest.raises(ProcessFailed, match=said): learn.fit(3, cbs=[OfOne(ev, f), *cbs])
    assert learn.epoch==1

@pytest.mark.parametrize('what', ['lr', *slow('mom','noise','bit')])
def test_what_one_process_changes_is_named_at_the_end_of_the_epoch(processes, what): processes(2, _apart, what, [])

def _ended(rank, world):
    learn = learner()
    def ends(cb): raise CancelFit
    with pytest.raises(ProcessFailed, match='2.weight'): learn.fit(3, cbs=[OfOne('before_batch', noise), Callback(after_batch=lambda cb: cb.learn.train_iter==5 and ends(cb))])
    learn.fit(1, cbs=[DistributedTrainer(compare=False), OfOne('before_batch', noise)])

@pytest.mark.slow
def test_also_if_the_fit_is_cancelled(processes): processes(2, _ended)

def _cancelled_by_one(rank, world):
    def ends(cb):
        if rank==0 and cb.learn.epoch==1: raise CancelFit
    learn = learner()
    learn.fit(3, cbs=[DistributedTrainer(timeout=10), Callback(after_epoch=ends)])   # the other compares at this moment
    assert alike(learn) and learn.epoch==1

def test_a_cancel_of_one_ends_a_comparison(processes): processes(2, _cancelled_by_one)

def _not_asked(rank, world):
    learn = learner()
    learn.fit(3, cbs=[DistributedTrainer(compare=False), OfOne('after_step', noise)])
    assert not alike(learn)

@pytest.mark.slow
def test_it_can_be_skipped(processes): processes(2, _not_asked)

def _before_a_checkpoint(rank, world, path):
    learn = learner(path=path)
    with pytest.raises(ProcessFailed, match='epoch 1, batch 0: parameter `2.weight`'): learn.fit(3, cbs=[OfOne('after_step', noise), CheckpointCallback('1ba')])

@pytest.mark.slow
def test_no_checkpoint_of_half_of_them(processes, tmp_path): processes(2, _before_a_checkpoint, tmp_path)

# what may differ

class Draws(Callback):
    "Draws random numbers, more in one process than in the other"
    def before_batch(self): torch.randn(1 + 3*dist.get_rank())

def dropped(): return nn.Sequential(nn.Linear(4,8), nn.BatchNorm1d(8), nn.Dropout(.5), nn.Linear(8,1))
def frozen():
    model = nn.Sequential(nn.Linear(4,8), nn.BatchNorm1d(8), nn.Linear(8,1))
    model[0].requires_grad_(False)
    return model
def ignoring():
    model = dropped()
    model.own = nn.Parameter(torch.randn(3)*(1+dist.get_rank()), requires_grad=False)
    model._ddp_params_and_buffers_to_ignore = ['own']
    return model

fine = {'plain':     (net, lambda rank: []),
        'dropout':   (dropped, lambda rank: [Draws()]),
        'frozen':    (frozen, lambda rank: [EMACallback(.9)]),
        'ignored':   (ignoring, lambda rank: []),
        'buffers':   (dropped, lambda rank: [DistributedTrainer(**{_sync_buffers:False})]),
        'accumulate':(dropped, lambda rank: [GradientAccumulation(12), GradientClip(.1)]),
        'mixup':     (net, lambda rank: [MixUp(.4), SkipNaN()]),
        'plateau':   (net, lambda rank: [ReduceLROnPlateau('valid_loss', patience=1, min_delta=1.)]),
        'shards':    (dropped, lambda rank: [VirtualShards(2), Draws()]),
        'sharded':   (dropped, lambda rank: [FullyShard(8)]),
        'within':    (dropped, lambda rank: [ValidateEvery('2ba'), EMACallback(.9)])}

def _fine(rank, world, names, path):
    for name in names:
        model,cbs = fine[name]
        torch.manual_seed(0)
        learn = learner(model(), path=path/name)
        learn.fit(2, cbs=[*cbs(rank), CheckpointCallback('4ba')])
        if name not in ('ignored','sharded'): assert alike(learn), name
        learn = learner(model(), path=path/name)
        learn.fit(3, cbs=[*cbs(rank), CheckpointCallback('4ba')], resume='auto')
        assert learn.epoch==2

@pytest.mark.parametrize('names', [['dropout','buffers','accumulate'], *slow(['plain','frozen','ignored'], ['mixup','plateau','within'], ['shards','sharded'])], ids=lambda names: '-'.join(names))
def test_what_may_differ_is_no_difference(processes, tmp_path, names): processes(2, _fine, names, tmp_path)

def _own_parameters_of_the_loss(rank, world):
    class Loss(nn.Module):
        def __init__(self): super().__init__(); self.scale = nn.Parameter(torch.ones(1)*(1+rank))
        def forward(self, p, y): return ((p*self.scale - y)**2).mean()
    loss = Loss()
    learn = learner(loss=loss, splitter=lambda m: [[*m.parameters()], [*loss.parameters()]])
    learn.fit(2)
    assert torch.equal(*everywhere(loss.scale.detach()))
    with pytest.raises(ProcessFailed, match='parameter `loss_func.scale` differs in process 1'):
        learn.fit(2, cbs=OfOne('after_train', lambda learn: loss.scale.data.mul_(2)))

@pytest.mark.slow
def test_parameters_of_the_loss_count(processes): processes(2, _own_parameters_of_the_loss)
