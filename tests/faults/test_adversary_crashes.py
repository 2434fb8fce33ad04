"Crashes found by search: attributes named like options of learnkit, rare dtypes in monitors, weighted samples, forks"
import os

import numpy as np, pytest, torch
from torch import nn

from learnkit.all import *
from toys import at, batches, learner

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings('ignore')

# an attribute named like an option of learnkit

class Push(Callback):
    "Has an attribute `private` with another meaning than that of learnkit, as in `push_to_hub(private=True)`"
    def __init__(self, private=False): self.private = private

@pytest.mark.parametrize('value', [True, False, None, 3, 'all', ['x'], {'x':1}])
def test_an_argument_called_private(value, tmp_path):
    cb = Push(value)
    learn = learner(cbs=[cb, JsonLogger(tmp_path/'l.json'), CheckpointCallback('1ba', folder=tmp_path/'c')])
    learn.fit(1)
    assert repr(cb)==('Push' if value is False else f'Push(private={value!r})')

class Keyed(Callback):
    private = ('code',)
    def __init__(self, code='a', kind='b'): self.code,self.kind = code,kind

def test_private_arguments_stay_private():
    assert 'hunter2' not in repr(Keyed('hunter2')) and 'x' in repr(Keyed('hunter2', 'x'))

# monitors

@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128])
@pytest.mark.parametrize('cb', [OptimizerMonitor, ActivationStats])
def test_monitors_handle_every_dtype(cb, dtype):
    model = nn.Linear(4, 1).to(dtype)
    data = [(x.to(dtype), y.to(dtype)) for x,y in batches(3)]
    def loss(pred, y): return (pred-y).abs().pow(2).mean()
    learn = learner(dls=DataLoaders(data), model=model, loss_func=loss, opt_func=torch.optim.SGD, lr=1e-3, cbs=cb())
    learn.fit(1)

def test_an_optimizer_monitor_of_several_dtypes():
    "The total norm is the norm of the norms, to the precision of the widest dtype"
    class Mixed(nn.Module):
        def __init__(self): super().__init__(); self.a,self.b,self.c = nn.Linear(4, 2), nn.Linear(2, 1).double(), nn.Parameter(torch.ones(1, dtype=torch.complex64))
        def forward(self, x): return self.b(self.a(x).double()).float()*self.c.abs()
    seen = {}
    class Keep(OptimizerMonitor):
        def log(self, row, *args, **kw): seen.update(row or {})
    learn = learner(model=Mixed(), cbs=Keep('1ba'))
    learn.fit(1)
    total = sum(float(v)**2 for k,v in seen.items() if k.startswith('grad_norm/'))**.5
    assert seen['grad_norm/c']>0 and abs(float(seen['grad_norm'])-total)<1e-5

# metrics of targets that are all ignored

@pytest.mark.parametrize('metric', [Dice, DiceMulti, JaccardCoeff, JaccardCoeffMulti])
def test_an_overlap_metric_without_targets_is_none(metric):
    x,y = torch.randn(4, 2, 3, 3),torch.full((4, 3, 3), -100)
    learn = learner(dls=DataLoaders([(x, y)], [(x, y)]), model=nn.Conv2d(2, 2, 1), loss_func=nn.CrossEntropyLoss(), metrics=metric(ignore_index=-100))
    learn.fit(1)
    assert learn.recorder.history[-1][learn.metrics[0].name] is None

# forks

@pytest.mark.skipif(not hasattr(os, 'fork'), reason='fork')
@pytest.mark.parametrize('cb', ['json','checkpoint'])
def test_a_forked_child_that_continues_fails_before_it_writes(cb, tmp_path):
    "Both would write the same files: the child's fit ends, and the parent's files are those of a run without a fork"
    def cbs(p): return [JsonLogger(p/'l.json')] if cb=='json' else [CheckpointCallback('1ba', folder=p/'c')]
    def files(p): return {f.name:(f.read_bytes().count(b'\n') if cb=='json' else None) for f in sorted(p.rglob('*')) if f.is_file() and f.name[0]!='.'}
    parent,status = os.getpid(),tmp_path/'status'
    def fork(c):
        if c.learn.train_iter!=2 or os.getpid()!=parent: return
        child = os.fork()
        if child: os.waitpid(child, 0)
    learn = learner(4, cbs=[*cbs(tmp_path/'a'), at('after_batch', fork)])
    try: learn.fit(2)
    except BaseException as e:
        if os.getpid()==parent: raise
        status.write_text(f'{type(e).__name__}: {e}')
    finally:
        if os.getpid()!=parent: os._exit(0)
    learner(4, cbs=cbs(tmp_path/'b')).fit(2)
    assert 'fork' in status.read_text()
    assert files(tmp_path/'a')==files(tmp_path/'b')

# gradients

def test_adaptive_clipping_of_sparse_gradients_raises_before_the_step():
    learn = learner(dls=DataLoaders([(torch.randint(9, (4, 2)), torch.randn(4, 1))]*2), model=nn.Sequential(nn.EmbeddingBag(9, 4, sparse=True), nn.Linear(4, 1)), cbs=AdaptiveGradientClip())
    with pytest.raises(ValueError, match='sparse=False'): learn.fit(1)

# estimators of scikit-learn
sklearn = pytest.importorskip('sklearn')
from learnkit.contrib.sklearn import LearnerClassifier, LearnerRegressor
X = np.random.default_rng(0).normal(size=(33, 4)).astype('float32')
Y,C,W = X.sum(1),(X.sum(1)>0).astype(int),np.random.default_rng(1).uniform(.5, 2, 33)

def regressor(*cbs):
    def make(dls): return Learner(dls, nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)), nn.MSELoss(), torch.optim.SGD, lr=.05, cbs=[cb() for cb in cbs])
    return LearnerRegressor(make, 3, bs=16, random_state=0)

PARTS = dict(micro=lambda: MicroBatch(5), n=lambda: MicroBatch(n=3), oom=lambda: ReplayOnOOM(3), accumulated=lambda: GradientAccumulation('2ba'))
@pytest.mark.parametrize('parts', ['micro','n','oom'])
def test_weighted_samples_in_parts(parts):
    "Weighted samples train the same in micro-batches as in whole batches"
    whole = regressor().fit(X, Y, sample_weight=W).predict(X)
    part  = regressor(PARTS[parts]).fit(X, Y, sample_weight=W).predict(X)
    assert np.allclose(whole, part, atol=1e-5) and not np.allclose(whole, regressor().fit(X, Y).predict(X), atol=1e-3)

def test_a_weighted_sample_that_does_not_fit_into_memory():
    def make(dls):
        from toys import big_model
        return Learner(dls, big_model(4)[0], nn.MSELoss(), torch.optim.SGD, lr=.01, cbs=ReplayOnOOM())
    LearnerRegressor(make, 2, bs=16, random_state=0).fit(X, Y[:,None], sample_weight=W)

@pytest.mark.parametrize('bs', [4, 8, 16, 32])
def test_a_last_batch_of_one_sample_trains_with_a_batch_norm(bs):
    "With 33 samples, the last batch of each epoch has one sample"
    def make(dls): return Learner(dls, nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)), nn.CrossEntropyLoss(), lr=.01)
    est = LearnerClassifier(make, 2, bs=bs, random_state=0).fit(X, C)
    assert est.predict(X).shape==(33,)

def test_make_may_read_a_batch_if_there_are_sample_weights():
    def make(dls):
        x,y = dls.one_batch()
        return Learner(dls, nn.Linear(x.shape[1], 2), nn.CrossEntropyLoss(), lr=.01)
    LearnerClassifier(make, 1, bs=16, random_state=0).fit(X, C, sample_weight=W)
    from sklearn.ensemble import BaggingClassifier
    BaggingClassifier(LearnerClassifier(make, 1, bs=16, random_state=0), 2, random_state=0).fit(X, C)
