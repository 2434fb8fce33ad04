"""Decisions by a loss, a row or a folder are the same in all processes; those that would differ raise or warn."""
import warnings
from functools import partial

import pytest, torch
from torch import distributed as dist, nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from learnkit.all import (Callback, CancelEpoch, CancelFit, CancelTrain, CheckpointCallback, DataLoaders, FullyShard, GradientClip, Learner, OnBetter, ReduceLROnPlateau, RollBackOnNaN, SaveModelCallback, SkipNaN, ValidateEvery, alone, self_healing)
from learnkit.processes.agreement import ProcessFailed
from learnkit.processes.distributed import DistributedTrainer
from learnkit.recovery.file import list_checkpoints
from test_agreement import _inside
from test_checksum import alike, learner
from test_distributed import data, everywhere, learner as plain_learner, net, weights
from toys import slow

torch.set_num_threads(1)

@pytest.fixture
def processes(tmp_path):
    def run(world, f, *args): torch.multiprocessing.start_processes(_inside, (world, tmp_path/'store', f, args), nprocs=world, start_method='fork')
    return run

def gathered(x):
    res = [None]*dist.get_world_size()
    dist.all_gather_object(res, x)
    return res

# rows of validations within an epoch are those of all processes, so a callback that reads one decides the same in each

def rows(learn): return [{k:v for k,v in r.items() if k!='time'} for r in learn.recorder.history]

def _watches(rank, world, path, name):
    saved,learn = [],learner(path=path)
    learn.recorder.smooth_loss.beta = .5
    own = lambda learn: learn.loss.item()   # that of this process
    cbs = dict(rows=[], plateau=[ReduceLROnPlateau('train_loss', min_delta=1.)], model=[SaveModelCallback('train_loss')], best=[OnBetter(lambda learn: saved.append(learn.train_iter), 'train_loss')],
               checkpoint=[CheckpointCallback(best='train_loss', keep=1)], function=[ReduceLROnPlateau(own, comp='min', min_delta=1.), OnBetter(lambda learn: saved.append(learn.train_iter), own, comp='min')])
    with learn.no_logging(): learn.fit(4, cbs=[ValidateEvery('2ba'), *cbs[name]])
    one,*others = gathered((rows(learn), saved, [h['lr'] for h in learn.opt.hypers]))
    assert len(one[0])>8 and all(o==one for o in others), (name, one, others)
    assert alike(learn)
    if name in ('plateau','function'): assert one[2][0]<.1

@pytest.mark.parametrize('name', ['plateau', *slow('rows','model','best','checkpoint','function')])
def test_who_watches_a_value_decides_alike(processes, tmp_path, name): processes(2, _watches, tmp_path, name)

def _predicts(rank, world, path):
    "One process predicts alone, where the other agrees on whether its checkpoint is the best"
    learn = learner(path=path)
    alone = Callback(after_epoch=lambda cb: cb.learn.mode=='fit' and rank and cb.learn.get_preds())
    with pytest.raises(ProcessFailed, match='are at different points'), learn.no_logging(): learn.fit(1, cbs=[alone, CheckpointCallback(best='train_loss')])

@pytest.mark.slow
def test_predicting_in_one_process_next_to_a_best_checkpoint_is_reported(processes, tmp_path): processes(2, _predicts, tmp_path/'a')

# a NaN of one process

class OwnLoss(Callback):
    "One process takes the loss of a batch for NaN; or it is, and so are the gradients of all"
    order = 9
    def __init__(self, rank, grads, at=1): self.mine,self.grads,self.at = rank==1,grads,at
    def after_loss(self):
        if not self.mine or not self.learn.training or self.learn.train_iter!=self.at: return
        self.learn.loss = self.learn.loss*float('nan')
        if self.grads: self.learn.loss_grad = self.learn.loss_grad*float('nan')

def _alone(rank, world, path):
    ds = data(30)
    found,seen = {},[]
    for who in (), (0,), (world-1,), range(world):
        def look(cb):
            learn = cb.learn
            if rank in who and learn.mode=='fit':
                with alone(), warnings.catch_warnings(action='error'):
                    seen.append((learn.validate(), learn.get_preds()[0], learn.predict(ds[0][0])[-1]))
        learn = plain_learner(DataLoader(ds, 4), DataLoader(ds, 4), cbs=Callback(after_epoch=look), path=path)
        learn.fit(2)
        found[who] = weights(learn.model)
        assert all(torch.equal(w, found[who]) for w in gathered(found[who])) and torch.equal(found[who], found[()]), who
        if rank in who:
            whole = learn.get_preds()[0] if len(who)==world else None
            assert len(seen)==2 and len(seen[1][1])==30 and (whole is None or torch.allclose(seen[1][1], whole)), seen
            assert abs(seen[1][0][0]-learn.recorder.history[-1]['valid_loss'])<1e-5, (seen[1][0], rows(learn))
            seen.clear()

@pytest.mark.parametrize('world', [2, 3])
def test_one_process_validates_and_predicts_alone_within_a_fit(processes, tmp_path, world): processes(world, _alone, tmp_path)

def _left_out(rank, world, wait):
    for grads in (False, True):
        learn = learner()
        with learn.no_logging(): learn.fit(2, cbs=[OwnLoss(rank, grads), SkipNaN(wait=wait)])
        one,other = gathered((weights(learn.model).tolist(), rows(learn)))
        assert one==other and weights(learn.model).isfinite().all() and str(one).count('nan')==0, (grads, one, other)

@pytest.mark.parametrize('wait', [False, *slow(True)])
def test_a_batch_is_skipped_in_all_or_in_none(processes, wait): processes(2, _left_out, wait)

def _each_its_part(rank, world):
    learn = learner()
    with pytest.raises(ValueError, match=r'SkipNaN\(wait=False\).*sharded.*Use `SkipNaN\(\)`'), learn.no_logging(): learn.fit(1, cbs=[FullyShard(8), SkipNaN(wait=False)])

def test_who_sees_a_part_of_the_gradients_cannot_decide(processes): processes(2, _each_its_part)

def _heals(rank, world):
    "One process skips a batch in which all were to check: they check in the next one"
    learn = learner()
    with warnings.catch_warnings(), learn.no_logging():
        warnings.simplefilter('ignore')
        learn.fit(2, cbs=[OwnLoss(rank, False, 2), *(cbs := self_healing(every='2ba'))])
    one,other = gathered((weights(learn.model).tolist(), cbs[2].n, rows(learn)))
    assert one==other and one[1]==0 and cbs[1].steps==[2]*(rank==1), (one, other)

@pytest.mark.slow
def test_a_sample_skipped_by_one_process_rewinds_no_process(processes): processes(2, _heals)

def _goes_back(rank, world, every, path):
    x = torch.randn(320, 4, generator=torch.Generator().manual_seed(0))
    x[161] = float('nan')
    train = DataLoader(TensorDataset(x, x.nan_to_num().sum(1, keepdim=True)), 8)
    learn = learner(nn.Linear(4, 1), train, path=path)
    cbs = [RollBackOnNaN(every, at_most=8)]
    if path: cbs = [RollBackOnNaN(every, at_most=8, source='checkpoint'), CheckpointCallback('2ba')]
    with warnings.catch_warnings(), learn.no_logging():
        warnings.simplefilter('ignore')
        learn.fit(3, cbs=cbs)
    one,other = gathered((weights(learn.model).tolist(), learn.opt.hypers[0]['lr'], learn.roll_back_on_nan.n if hasattr(learn, 'roll_back_on_nan') else cbs[0].n, rows(learn)))
    assert one==other and one[1]==.1/2**one[2] and one[2]>=3 and weights(learn.model).isfinite().all(), (one, other)

def _norms(rank, world, ends):
    "Averages of a batch norm, when a fit ends between the forward pass and the backward pass that lets processes share them"
    model = nn.Sequential(nn.Linear(4, 1), nn.BatchNorm1d(1))
    learn = learner(model)
    def end(cb):
        if cb.learn.training and cb.learn.train_iter==1: raise ends
    with learn.no_logging(): learn.fit(1, cbs=Callback(after_loss=end))
    one,other = gathered([b.tolist() for b in model.buffers()])
    assert one==other, (one, other)

@pytest.mark.parametrize('ends', [CancelFit, *slow(CancelTrain, CancelEpoch)])
def test_averages_of_norms_are_the_same_in_the_end(processes, ends): processes(2, _norms, ends)

@pytest.mark.parametrize('every', ['1ba', *slow('2ba','3ba','100ba')])
def test_a_nan_of_one_process_takes_all_of_them_back(processes, every): processes(2, _goes_back, every, None)

@pytest.mark.slow
def test_back_to_a_checkpoint(processes, tmp_path): processes(2, _goes_back, '3ba', tmp_path)
