"""A model, a loss and a dataset have every attribute that features look up in callbacks and Learners: none is used.

A callback delegates attributes that it lacks to its Learner, and the Learner to the model. `hasattr(cb, 'writer')` was
answered by a model that keeps a `SummaryWriter`, and the checkpoint of a SIGTERM was lost."""
import signal, warnings
import pytest, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
import learnkit.all as lk
from learnkit import Callback
from learnkit.loop.words import Word
from toys import few, learner, weights

class Trap:
    "An object that raises an AssertionError whenever it is used"
    def _fail(self, *args, **kwargs): raise AssertionError('an attribute of the model was taken for one of a callback')
    __call__ = __bool__ = __iter__ = __len__ = __getitem__ = __eq__ = __lt__ = __gt__ = __contains__ = __float__ = __int__ = _fail
    __hash__ = object.__hash__
    def __getattr__(self, k):
        if k.startswith('__'): raise AttributeError(k)
        self._fail()
    def __deepcopy__(self, memo): return self
    def __reduce__(self): return Trap, ()

# declared words; attributes that features look up in their callbacks; names of callbacks; attributes that runs set
NAMES = {*Word.known, 'writer', 'root', 'scheds', 'taken', 'scaler', 'every', 'unit', 'island', 'held', 'watch', 'collector', 'identity', 'moment',
         'recorder', 'progress', 'train_for', 'gradient_accumulation', 'item_indices', 'stop_on_signal', 'agreement', 'clock', 'resume'}

class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layers = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    def forward(self, x): return self.layers(x)

class Sum(nn.Module):
    def forward(self, pred, y): return ((pred-y)**2).mean()

class Points(Dataset):
    def __init__(self): self.x = torch.randn(24, 2, generator=torch.Generator().manual_seed(2))
    def __len__(self): return len(self.x)
    def __getitem__(self, i): return self.x[i],self.x[i].sum()[None]

def trapped(cls):
    "An instance of `cls` with a Trap for each of the NAMES"
    return type(cls.__name__, (cls,), {k:Trap() for k in NAMES if not hasattr(cls, k)})()

def make(path, trap, *cbs):
    model,loss,data = (trapped(c) if trap else c() for c in (Plain, Sum, Points))
    torch.manual_seed(0)
    return lk.Learner(lk.DataLoaders(DataLoader(data, 4, shuffle=True), DataLoader(data, 8)), model, loss, opt_func=torch.optim.Adam, lr=.05, path=path, cbs=[*cbs])

def everything():
    "Callbacks of each package, which look up attributes of the others"
    return [lk.GradientAccumulation('2ba'), lk.MicroBatch(2), lk.GradientClip(1.), lk.SkipNaN(), lk.EMACallback(.9), lk.CSVLogger(), lk.EarlyStoppingCallback(patience=9),
            lk.ParamScheduler({'lr':lk.SchedLin(.05, .01)}), lk.CheckpointCallback('2ba'), lk.RollBackOnNaN('2ba')]

def quiet(learn, *args, **kwargs):
    with learn.no_bar(), learn.no_logging(), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        learn.fit(*args, **kwargs)

@pytest.mark.parametrize('cbs', [list, everything])
def test_training_ignores_attributes_of_the_model(cbs, tmp_path):
    ends = []
    for trap in (False, True):
        learn = make(tmp_path/str(trap), trap, *cbs())
        quiet(learn, 2)
        learn.validate(); learn.get_preds()
        ends.append(weights(learn))
    assert torch.equal(*ends)

def test_a_signal_saves_a_checkpoint(tmp_path):
    "SIGTERM gives the exit status 143, as schedulers expect, and the run resumes after the last finished batch"
    old = signal.getsignal(signal.SIGTERM)
    def stop(cb):
        if cb.learn.train_iter==3: signal.raise_signal(signal.SIGTERM)
    def run(path, *cbs): return make(path, True, lk.Pausable(), lk.CheckpointCallback(), lk.StopOnSignal(['SIGTERM']), *cbs)
    with pytest.raises(SystemExit) as e: quiet(run(tmp_path/'a', Callback(after_batch=stop)), 1)
    assert e.value.code==143 and [p.name for p in (tmp_path/'a').rglob('step-*.pth')]==['step-00000003.pth']
    assert signal.getsignal(signal.SIGTERM) is old
    resumed = run(tmp_path/'a')
    quiet(resumed, 1, resume='auto')
    straight = run(tmp_path/'b')
    quiet(straight, 1)
    assert torch.equal(weights(resumed), weights(straight))

def test_a_run_is_replayed(tmp_path):
    def learn(): return make(tmp_path, True, lk.CheckpointCallback('2ba'))
    quiet(learn(), 1)
    again,folder = learn(),next(tmp_path.rglob('fit-*'))
    with again.no_bar(), again.no_logging(): res = again.replay(folder, 4)
    assert again.train_iter==4 and res['compared']==res['equal']

@pytest.mark.parametrize('feature', [lambda: lk.VirtualShards(2), lambda: lk.FusedStep(), lambda: lk.SAM()], ids=['shards','fused','passes'])
@few(1)
def test_only_callbacks_declare_incompatibilities(feature, tmp_path):
    ends = []
    for trap in (False, True):
        learn = make(tmp_path, trap, feature())
        quiet(learn, 1)
        ends.append(weights(learn))
    assert torch.equal(*ends)
