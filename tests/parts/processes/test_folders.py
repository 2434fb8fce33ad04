"""Where each machine has a disk of its own, process 0 finds the checkpoint, and the others get it."""
import shutil, warnings

import pytest, torch
from torch import distributed as dist, nn
from torch.utils.data import DataLoader

from learnkit.all import Callback, CheckpointCallback, DataLoaders, Learner, RollBackOnNaN, SaveModelCallback, ValidateEvery
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

def _best(rank, world, path, ends):
    "The best model is that of the third of five epochs, in the folder of process 0 alone; that of process 1 has a model of an earlier run"
    values = [3.,2.,1.,2.,2.,2.,2.,2.]
    def learn_on(name):
        torch.manual_seed(3)
        learn = learner(path=path/name/str(rank))
        seen = []
        def end(cb):
            seen.append(weights(cb.learn.model).clone())
            if cb.learn.train_iter==ends: raise Ends
        cbs = [SaveModelCallback(lambda learn: values[min(learn.epoch, 7)], comp="min"), CheckpointCallback('1ep'), Callback(after_step=end)]
        return learn,cbs,seen
    if rank:
        old = learner(path=path/'parts'/str(rank))
        old.model.apply(lambda m: [p.data.fill_(7.) for p in m.parameters()])
        (path/'parts'/'1'/'models').mkdir(parents=True)
        torch.save(old.model.state_dict(), path/'parts'/'1'/'models'/'model.pth')
    for resume in (None, 'auto') if ends else (None,):
        learn,cbs,seen = learn_on('parts')
        with learn.no_logging(), warnings.catch_warnings():
            warnings.simplefilter('ignore')
            if ends and resume is None:
                with pytest.raises(Ends): learn.fit(5, cbs=cbs)
                best = seen[8]   # three epochs of three batches
                ends = None
            else: learn.fit(5, cbs=cbs, resume=resume)
    if resume is None: best = seen[8]
    assert alike(learn) and torch.equal(weights(learn.model), best) and len(seen)>=3

@pytest.mark.parametrize('ends', [None, *slow(11)])
def test_the_best_model_of_process_0_is_loaded_by_all(processes, tmp_path, ends): processes(2, _best, tmp_path, ends)
