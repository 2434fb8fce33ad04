"""Where each machine has a disk of its own, process 0 finds the checkpoint, and the others get it."""
import shutil, warnings

import pytest, torch
from torch import distributed as dist, nn
from torch.utils.data import DataLoader

from learnkit.all import Callback, CheckpointCallback, DataLoaders, Learner, RollBackOnNaN, ValidateEvery
from learnkit.recovery.file import list_checkpoints
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

class Ends(Exception): pass

def _resumes(rank, world, path, what):
    def run(name, n, resume=None, ends=None):
        torch.manual_seed(3)
        learn = learner(path=path/name/str(rank))   # a disk of its own
        def end(cb):
            if cb.learn.train_iter==ends: raise Ends
        cbs = [CheckpointCallback('2ba', best='valid_loss' if what=='best' else None), Callback(after_step=end)]
        if what=='best': cbs.append(ValidateEvery('2ba'))
        with learn.no_logging(): learn.fit(n, cbs=cbs, resume=resume)
        return learn
    whole = run('whole', 4)
    with pytest.raises(Ends): run('parts', 4, ends=7)
    own = path/'parts'/str(rank)
    if what=='other' and rank: shutil.copytree(path/'whole'/'0'/'checkpoints', own/'checkpoints', dirs_exist_ok=True)   # of another run, by the same names
    if rank==0: assert list_checkpoints(own/'checkpoints'/'fit-1')
    again = run('parts', 4, 'auto')
    assert alike(again) and torch.equal(weights(again.model), weights(whole.model))
    more = run('parts', 5, path/'parts'/str(rank)/'checkpoints'/'fit-1'/list_checkpoints(path/'parts'/'0'/'checkpoints'/'fit-1')[0].name)
    assert alike(more) and more.epoch==4

@pytest.mark.parametrize('what', ['none', *slow('other','best')])
def test_process_0_finds_it_for_all(processes, tmp_path, what): processes(2, _resumes, tmp_path, what)

def _goes_back(rank, world, path):
    learn = learner(nn.Linear(4, 1), path=path/str(rank))
    def spoil(cb):
        if rank==1 and cb.learn.train_iter==5: cb.learn.loss.fill_(float('nan'))
    with learn.no_logging(), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        learn.fit(3, cbs=[RollBackOnNaN('1ba', source='checkpoint'), CheckpointCallback('2ba'), Callback(after_loss=spoil)])
    assert alike(learn) and learn.opt.hypers[0]['lr']==.05

@pytest.mark.slow
def test_back_to_the_checkpoint_of_process_0(processes, tmp_path): processes(2, _goes_back, tmp_path)
