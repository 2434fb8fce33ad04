"""`resume='auto'` never continues a different run: checkpoints record which fit of the script it is, its data, model,
loss, optimizer, learning rates and callbacks. Differences raise; with an explicit path they are printed."""
import gc, os, random
from functools import partial

import pytest, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from toys import few
from learnkit.all import Adam, AdamW, Callback, Learner, SGD, TrainEvalCallback, Recorder, set_seed
from learnkit.callbacks.trackers import EarlyStoppingCallback
from learnkit.callbacks.trackers import SaveModelCallback
from learnkit.callbacks.clock import StopAfter
from learnkit.learner.fit import LimitBatches, ShortEpochCallback
from learnkit.callbacks.gradients import GradientClip
from learnkit.callbacks.mixup import MixUp
from learnkit.observe.observer import LRMonitor
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.recovery.file import checkpoint_info, list_checkpoints
from learnkit.recovery.identity import describe, describe_differences
from learnkit.recovery.resume import check_identity
from test_resume import Crash, assert_same, end, equal

torch.set_num_threads(1)

@pytest.fixture(autouse=True, scope='module')
def no_fsync():
    with pytest.MonkeyPatch.context() as m: m.setattr(os, 'fsync', lambda fd: None); yield

def tensors(n=24, seed=0):
    x = torch.randn(n, 4, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(x, x.sum(1, keepdim=True))
def net(p=.3, n=8): return nn.Sequential(nn.Linear(4, n), nn.Dropout(p), nn.Linear(n, 1))

def learner(path, data=None, valid=None, bs=4, model=None, loss=None, opt=Adam, lr=.01, cbs=(), seed=42, check=True, shuffle=True, workers=0, **kwargs):
    if seed is not None: set_seed(seed)
    dls = DataLoader(data or tensors(), bs, shuffle=shuffle, num_workers=workers),DataLoader(valid or tensors(8, 1), 4)
    learn = Learner(dls, model or net(), loss or nn.MSELoss(), opt, lr=lr, path=path, default_cbs=False, **kwargs,
                    cbs=[TrainEvalCallback, Recorder, *([CheckpointCallback('1ba', keep=2)] if check else []), *cbs])
    learn.logger = lambda row: None
    return learn

def crashed(learn, n=3, at=7, **kwargs):
    with pytest.raises(SystemError): learn.fit(n, cbs=Crash(at), resume='auto', **kwargs)
    return learn
def weights(learn): return [p.detach().clone() for p in learn.model.parameters()]

# another run in the same folder

class Scaled(nn.MSELoss):
    def __init__(self, scale): super().__init__(); self.scale = scale
    def forward(self, p, y): return self.scale*super().forward(p, y)
class OtherClip(GradientClip): pass

changes = {'lr': dict(lr=.02), 'wd': dict(wd=.1), 'optimizer': dict(opt=AdamW), 'betas': dict(opt=partial(Adam, betas=(.5, .9))), 'loss': dict(loss=nn.L1Loss()), 'batch size': dict(bs=8),
           'loss ': dict(loss=Scaled(2.)), 'training items': dict(data=tensors(20)), 'training data': dict(data=tensors(24, 5)), 'validation data': dict(valid=tensors(8, 2)),
           'sampler': dict(shuffle=False), 'p=0.5': dict(model=net(.5)), 'model': dict(model=net(n=9)), 'gradient_clip': dict(cbs=[GradientClip(.1)]), 'seed': dict(seed=43)}

@few(8)
@pytest.mark.parametrize('what', changes)
@pytest.mark.parametrize('ended', [False, True])
def test_another_run_raises(what, ended, tmp_path):
    "A run with another learning rate, loss or data raises in the same folder; it used to resume the first run"
    if ended: learner(tmp_path).fit(2, resume='auto')
    else: crashed(learner(tmp_path))
    learn = learner(tmp_path, **changes[what])
    before = weights(learn)
    files = sorted(p.name for p in tmp_path.rglob('*'))
    with pytest.raises(ValueError, match=f'(?s)another run.*{what}') as e: learn.fit(2 if ended else 3, resume='auto')
    assert ('learn.branch(' if ended else 'resume=') in str(e.value) and 'folder' in str(e.value)
    assert equal(before, weights(learn)) and sorted(p.name for p in tmp_path.rglob('*'))==files and learn.mode is None

def observer(**events): cb = Callback(**events); cb.acts = 'nothing'; return cb
same = dict(nothing={}, workers=dict(workers=1), metrics=dict(metrics=nn.L1Loss()), looks_on=dict(cbs=[LRMonitor()]))
@pytest.mark.parametrize('what', same)
def test_observers_metrics_and_workers_may_change(what, tmp_path, capsys):
    "Metrics, callbacks that only observe and the number of workers may change, with the same weights"
    straight = learner(tmp_path/'a'); straight.fit(3, resume='auto')
    crashed(learner(tmp_path/'b'))
    learn = learner(tmp_path/'b', **same[what])
    learn.fit(3, resume='auto')
    assert equal(weights(straight), weights(learn)) and 'resuming at epoch 1, batch 1' in capsys.readouterr().out

def test_an_explicit_path_resumes_with_new_settings(tmp_path, capsys):
    "With an explicit path, new settings apply from there on, the rest is restored, and the differences are printed"
    crashed(learner(tmp_path, lr=.01, cbs=[GradientClip(.5)]))
    path = list_checkpoints(tmp_path/'checkpoints'/'fit-1')[0]
    learn = learner(tmp_path, lr=.002, opt=partial(Adam, betas=(.5, .9)), cbs=[GradientClip(.1)])
    seen = []
    learn.fit(3, resume=path, cbs=observer(before_step=lambda self: seen.append((self.learn.opt.hypers[0]['lr'], self.learn.opt.param_groups[0]['betas'], len(self.learn.opt.state)))))
    assert {s[:2] for s in seen}=={(.002, (.5, .9))} and seen[0][2]==4   # the moments of Adam are restored
    out = capsys.readouterr().out
    assert 'lr' in out and '0.01' in out and '0.002' in out and 'betas' in out and 'gradient_clip' in out
    learn = learner(tmp_path, lr=.002, opt=partial(Adam, betas=(.5, .9)), cbs=[GradientClip(.1)])
    learn.fit(3, resume='auto')   # its checkpoints are now those of these settings
    assert 'finished' in capsys.readouterr().out

def test_a_rate_that_a_callback_had_lowered_continues(tmp_path):
    "With the same settings, an explicit path restores a learning rate that a callback had changed"
    lower = Callback(after_epoch=lambda self: self.learn.opt.set_hyper('lr', self.learn.opt.hypers[0]['lr']/10))
    def make(): return learner(tmp_path, cbs=[Callback(after_epoch=lower.after_epoch.__func__)])
    crashed(make())
    learn,seen = make(),[]
    learn.fit(2, resume=list_checkpoints(tmp_path/'checkpoints'/'fit-1')[0], cbs=observer(before_step=lambda self: seen.append(self.learn.opt.hypers[0]['lr'])))
    assert seen==[.001]*5

def test_checkpoints_without_an_identity_are_resumed(tmp_path):
    "Checkpoints of an older version have no identity"
    from learnkit.recovery.file import read_checkpoint, write_checkpoint
    straight = learner(tmp_path/'a'); straight.fit(3, resume='auto')
    crashed(learner(tmp_path/'b'))
    for p in list_checkpoints(tmp_path/'b'/'checkpoints'/'fit-1'):
        state = read_checkpoint(p)
        for k in ('identity','stop_reason'): state.pop(k, None)
        write_checkpoint(state, p)
    learn = learner(tmp_path/'b'); learn.fit(3, resume='auto')
    assert equal(weights(straight), weights(learn))

# data whose contents can be compared

def files(n, start): return type('Files', (Dataset,), dict(__init__=lambda self: setattr(self, 'files', [f'{i}.jpg' for i in range(start, start+n)]), __len__=lambda self: n,
                                                          __getitem__=lambda self, i: (torch.full((4,), float(self.files[i][:-4])/99), torch.ones(1))))()

@pytest.mark.parametrize('kind', ['subset','tensors','files','nested'])
def test_folds_of_one_size(kind, tmp_path):
    "The second fold of a cross-validation raises in the folder of the first; it used to get the weights of that one"
    all_ = tensors(40)
    def fold(i):
        idxs = [j for j in range(40) if j//8!=i]
        match kind:
            case 'subset':  return Subset(all_, idxs)
            case 'nested':  return Subset(Subset(all_, idxs), range(20))
            case 'tensors': return TensorDataset(*all_[idxs])
            case 'files':   return files(24, 10*i)
    def train(i, path): learn = learner(path, data=fold(i)); learn.fit(1, resume='auto'); return learn
    first = train(0, tmp_path)
    with pytest.raises(ValueError, match='training data'): train(1, tmp_path)
    assert not equal(weights(first), weights(train(1, tmp_path/'other')))

def test_a_random_split_that_is_not_the_same(tmp_path):
    "Resuming with another random split raises: it would train on validation samples"
    def make():
        learn = learner(tmp_path, seed=None)
        train,valid = torch.utils.data.random_split(tensors(30), [22, 8])
        learn.dls.loaders[:] = [DataLoader(train, 4), DataLoader(valid, 4)]
        return learn
    torch.seed()
    crashed(make())
    with pytest.raises(ValueError, match='training data.*validation data'): make().fit(3, resume='auto')

# which fit of the script it is

def test_two_fits_with_a_callback_each(tmp_path):
    "Each fit has its own folder; the second used to be taken for the first, which was finished, and trained nothing"
    def both(path, crash=None):
        learn = learner(path, check=False)
        for i in range(2): learn.fit(2, cbs=[CheckpointCallback('1ba'), *([Crash(crash)] if crash and i else [])], resume='auto')
        return end(learn)
    straight = both(tmp_path/'a')
    assert sorted(p.name for p in (tmp_path/'a'/'checkpoints').iterdir())==['fit-1','fit-2']
    with pytest.raises(SystemError): both(tmp_path/'b', 9)
    assert_same(straight, both(tmp_path/'b'))

def test_a_fit_that_saves_nothing_does_not_count(tmp_path):
    "Whether a script pretrains or loads pretrained weights, the fit that saves checkpoints has the same folder"
    learn = learner(tmp_path, check=False)
    learn.fit(1)
    learn.fit(1, cbs=CheckpointCallback(), resume='auto')
    learn.fit(1, cbs=CheckpointCallback(folder='b'), resume='auto')
    assert (tmp_path/'checkpoints'/'fit-1').is_dir() and (tmp_path/'b'/'fit-1').is_dir() and not (tmp_path/'b'/'fit-2').exists()

def test_a_cell_that_is_run_again_after_ctrl_c_resumes(tmp_path):
    "After Ctrl-C, the same Learner resumes with `resume='auto'`; it used to start over in `fit-2`"
    straight = learner(tmp_path/'a'); straight.fit(3, resume='auto')
    learn = learner(tmp_path/'b')
    def interrupt(self):
        if self.learn.train_iter==8: raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt): learn.fit(3, resume='auto', cbs=observer(after_batch=interrupt))
    learn.fit(3, resume='auto')
    assert equal(weights(straight), weights(learn)) and [p.name for p in (tmp_path/'b'/'checkpoints').iterdir()]==['fit-1']
    learn.fit(1, resume='auto')   # after the end of a fit, this is the next one
    assert learn.train_iter==6 and (tmp_path/'b'/'checkpoints'/'fit-2').is_dir()

def test_a_fit_without_resume_after_ctrl_c_is_a_new_one(tmp_path):
    "Without `resume`, the checkpoints of the interrupted fit stay as they are"
    learn = crashed(learner(tmp_path))
    n = len(list_checkpoints(tmp_path/'checkpoints'/'fit-1'))
    learn.fit(1)
    assert learn.train_iter==6 and len(list_checkpoints(tmp_path/'checkpoints'/'fit-1'))==n and (tmp_path/'checkpoints'/'fit-2').is_dir()

def test_a_fit_that_raised_at_its_start_does_not_count(tmp_path):
    "A fit that raises because of older checkpoints has not begun: the next one has the same folder"
    learner(tmp_path).fit(1)
    learn = learner(tmp_path)
    with pytest.raises(ValueError, match="pass `resume='auto'`"): learn.fit(1)
    learn.checkpoint.overwrite = True
    learn.fit(1)
    assert [p.name for p in (tmp_path/'checkpoints').iterdir()]==['fit-1']

def test_a_finished_run_with_other_weights_in_the_same_process(tmp_path, capsys):
    "The members of an ensemble without seeds differ in their weights only; the second raises"
    torch.seed()
    learner(tmp_path, seed=None).fit(1, resume='auto')
    with pytest.raises(ValueError, match='in this process'): learner(tmp_path, seed=None).fit(1, resume='auto')
    learner(tmp_path/'b').fit(1, resume='auto')
    learner(tmp_path/'b').fit(1, resume='auto')   # a notebook cell that is run again: the same run
    assert 'finished' in capsys.readouterr().out
    learner(tmp_path/'c', seed=None).fit(1, resume='auto', cbs=[])
    learner(tmp_path/'c', seed=None).fit(2, resume='auto')   # longer than the finished run: it resumes

def test_the_validation_batch_size_may_change_with_the_number_of_processes(tmp_path):
    "Scripts divide the batch size by the number of processes; the recorded one for training is that of all processes"
    then = {'training batch size':'16', 'validation batch size':'8', 'loss':'MSELoss()'}
    now,path = {**then, 'validation batch size':'16'},tmp_path/'fit-1'/'step-1.pth'
    assert check_identity(path, dict(identity=then, rngs=[0, 1]), now, is_requested=False)=={}
    with pytest.raises(ValueError, match='validation batch size is 16 and was 8'): check_identity(path, dict(identity=then, rngs=[0]), now, is_requested=False)

class Series:
    "Values by label, as pandas keeps them: a filtered table lacks some labels"
    dtype,shape = 'int64',(24,)
    def __init__(self, values): self.values = values
    @property
    def iloc(self): return self.values
    def __len__(self): return len(self.values)
    def __getitem__(self, label): raise KeyError(label)
    def tolist(self): return self.values

class Labelled(Dataset):
    def __init__(self, labels): self.labels,self.x = labels,tensors().tensors[0]
    def __len__(self): return len(self.x)
    def __getitem__(self, i): return self.x[i],self.x[i].sum(0, keepdim=True)

parts = dict(
    series=lambda: Series([*range(24)]), sparse=lambda: torch.eye(24).to_sparse(), csr=lambda: torch.eye(24).to_sparse_csr(),
    nested=lambda: torch.nested.nested_tensor([torch.zeros(2)]*24), meta=lambda: torch.zeros(24, device='meta'),
    quantized=lambda: torch.quantize_per_tensor(torch.zeros(24), 1., 0, torch.qint8), list=lambda: [(1, torch.eye(2).to_sparse())]*24)

@pytest.mark.parametrize('name', parts)
@pytest.mark.filterwarnings('ignore:.*prototype', 'ignore:.*beta', 'ignore:.*deprecated')
def test_datasets_of_any_values_can_be_saved(name, tmp_path):
    "Labels in a pandas `Series`, sparse, nested and quantized tensors; each used to end the fit before its first batch"
    make = lambda: learner(tmp_path, data=Labelled(parts[name]()))
    with pytest.raises(SystemError): make().fit(1, cbs=Crash(3))
    learn = make()
    learn.fit(1, resume='auto')
    assert learn.train_iter==6 and describe(parts[name]())
    if name=='series':
        with pytest.raises(ValueError, match='training data'): learner(tmp_path, data=Labelled(Series([*range(1, 25)]))).fit(1, resume='auto')
