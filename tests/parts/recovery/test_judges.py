"`SkipNaN` and `RollBackOnNaN` check whole batches, with `MicroBatch`, `ReplayOnOOM` and accumulation too"
import warnings

import pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from torch.optim import SGD

from learnkit.all import Callback, CheckpointCallback, DataLoaders, GradientAccumulation, Learner, MicroBatch, ReplayOnOOM, RollBackOnNaN, SkipNaN
from toys import draws

ce = nn.CrossEntropyLoss()
splitters = dict(micro=lambda n: MicroBatch(n), replay=lambda n: ReplayOnOOM(n), parts=lambda n: MicroBatch(n=n))

def batches(n=3, bs=8, ignored=(), nan=(), dtype=torch.double):
    "Batches in which samples `ignored` have the ignored target, and samples `nan` a NaN input"
    g = torch.Generator().manual_seed(0)
    x,y = torch.randn(n*bs, 4, generator=g, dtype=dtype),torch.randint(0, 3, (n*bs,), generator=g)
    for i in ignored: y[i] = -100
    for i in nan: x[i] = float('nan')
    return list(zip(x.split(bs), y.split(bs)))

def fitted(data, *cbs, n_epoch=2, opt_func=SGD):
    torch.manual_seed(1)
    learn = Learner(DataLoaders(data, None), nn.Linear(4,3).double(), ce, opt_func=opt_func, lr=.1, cbs=cbs)
    with learn.no_bar(), learn.no_logging(): learn.fit(n_epoch)
    return learn

def same(a, b): return all(torch.allclose(p, q, rtol=0, atol=1e-7) for p,q in zip(a.model.parameters(), b.model.parameters()))

checks = dict(skip=SkipNaN, skip_late=lambda: SkipNaN(wait=False), back=lambda: RollBackOnNaN('1ba'), rarely=lambda: RollBackOnNaN('2ba'))

@pytest.mark.parametrize('split', splitters)
@pytest.mark.parametrize('check', checks)
def test_a_micro_batch_without_targets_is_not_skipped(split, check):
    "A micro-batch with only ignored targets is no NaN batch; its whole batch used to be skipped in silence"
    data = batches(ignored=(3, 8, 16, 17, 18, 19))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        learn = fitted(data, splitters[split](1), cb := checks[check]())
    assert same(learn, fitted(data)) and cb.n==0 and learn.opt.hypers[0]['lr']==.1

@draws(15)
@given(split=st.sampled_from([*splitters]), n=st.integers(1,5), ignored=st.sets(st.integers(0,23), max_size=10), bad=st.sets(st.integers(0,2), max_size=2),
       where=st.integers(0,7), acc=st.booleans())
def test_a_nan_batch_is_skipped_whole(split, n, ignored, bad, where, acc):
    "A batch with a NaN sample at any position is skipped, also from accumulated gradients"
    ignored = {i for i in ignored if i%8!=where}
    data,more = batches(ignored=ignored, nan=[8*i+where for i in bad]),[lambda: GradientAccumulation(16)]*acc
    learn = fitted(data, splitters[split](n), cb := SkipNaN(), *[f() for f in more])
    assert cb.n==2*len(bad)
    assert same(learn, fitted([b for i,b in enumerate(batches(ignored=ignored)) if i not in bad], *[f() for f in more]))

@pytest.mark.parametrize('split', splitters)
def test_batches_are_counted_not_micro_batches(split):
    "`RollBackOnNaN('2ba')` keeps the state at the same batches with and without micro-batches"
    kept = []
    class RecordsStates(RollBackOnNaN):
        def _keep_good_state(self): kept.append(self.learn.train_iter); super()._keep_good_state()
    fitted(batches(), splitters[split](2), RecordsStates('2ba'))
    whole,kept[:] = list(kept),[]
    fitted(batches(), RecordsStates('2ba'))
    assert whole==kept

@pytest.mark.parametrize('bad', [5, 6, 7])
@pytest.mark.parametrize('source', ['memory','checkpoint'])
@pytest.mark.filterwarnings('ignore:The training loss is nan')
def test_a_rollback_drops_accumulated_gradients(source, bad, tmp_path):
    "A rollback drops gradients that are accumulated, and the rest trains as a fit from the restored weights"
    seen = {}
    class RecordsStates(RollBackOnNaN):
        def _restore(self, good):
            super()._restore(good)
            seen.update(at=self.learn.train_iter, model={k:v.clone() for k,v in self.learn.model.state_dict().items()})
    saver,data = CheckpointCallback('1ba', folder=tmp_path, keep=2),batches(n=12, nan=[8*bad])
    learn = fitted(data, RecordsStates('3ba', factor=1., source=source), GradientAccumulation('4ba'), *[saver]*(source=='checkpoint'), n_epoch=1)
    def load(cb): cb.learn.model.load_state_dict(seen['model'])
    rest = fitted(data[seen['at']+1:], GradientAccumulation('4ba'), Callback(before_fit=load), n_epoch=1)
    assert same(learn, rest)

class Centred(nn.Module):
    "A classifier that keeps an average of its inputs in a buffer, which a NaN batch makes NaN"
    def __init__(self, persistent):
        super().__init__()
        self.lin = nn.Linear(4, 3).double()
        self.register_buffer('mean', torch.zeros(4).double(), persistent=persistent)
    def forward(self, x):
        if self.training: self.mean = .9*self.mean+.1*x.mean(0)
        return self.lin(x-self.mean)

@pytest.mark.parametrize('persistent', [False, True])
@pytest.mark.parametrize('source,every', [('memory','3ba'), ('checkpoint','2ba'), ('checkpoint','9ba')])
@pytest.mark.filterwarnings('ignore:The training loss is nan')
def test_a_rollback_restores_all_buffers(source, every, persistent, tmp_path):
    "Buffers outside of the `state_dict` used to stay NaN, so that each further loss was NaN and the fit ended"
    torch.manual_seed(1)
    data,saver = batches(n=12, nan=[40]),CheckpointCallback(every, folder=tmp_path)
    def save(cb):
        if cb.learn.train_iter==1: cb.learn.checkpoint.save(0, 1)
    cbs = [RollBackOnNaN('3ba', source=source), saver, Callback(after_step=save)]
    learn = Learner(DataLoaders(data, None), Centred(persistent), ce, opt_func=SGD, lr=.1, cbs=cbs)
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    assert learn.roll_back_on_nan.n==1 and learn.train_iter==12 and learn.model.mean.isfinite().all()

@pytest.mark.parametrize('schedule', [False, True])
@pytest.mark.parametrize('source', ['memory','checkpoint'])
@pytest.mark.filterwarnings('ignore:The training loss is nan')
def test_each_rollback_lowers_the_learning_rate(source, schedule, tmp_path):
    "Also from the same good state; without a schedule the second rollback used to restore the rate of the first"
    seen = []
    def see(cb): seen.append((cb.learn.opt.hypers[0]['lr'], cb.learn.roll_back_on_nan.scale))
    def set_lr(cb): cb.learn.opt.set_hyper('lr', .1)
    cbs = [Callback(after_pred=see), *[Callback(before_batch=set_lr)]*schedule]
    saver = CheckpointCallback('2ba', folder=tmp_path)
    back = RollBackOnNaN('1ba', source=source, at_most=9)
    fitted(batches(n=12, nan=[24, 32, 72]), back, *cbs, *[saver]*(source=='checkpoint'), n_epoch=1)
    assert [scale for _,scale in seen]==[1.]*4 + [.5] + [.25]*5 + [.125]*2
    assert [lr for lr,_ in seen]==pytest.approx([.1*scale for _,scale in seen])

@pytest.mark.parametrize('acc', [False,True])
@pytest.mark.parametrize('split', splitters)
@pytest.mark.filterwarnings('ignore:The loss is nan')
def test_a_bad_first_batch_is_skipped_whole(split, acc):
    "The gradients of a NaN micro-batch of the first batch do not stay among accumulated ones"
    more = [lambda: GradientAccumulation('2ba')]*acc
    learn = fitted(batches(n=5, nan=[0]), splitters[split](2), RollBackOnNaN('1ba', factor=1.), *[f() for f in more], n_epoch=1)
    rest = fitted(batches(n=5)[1:], *[f() for f in more], n_epoch=1)
    assert same(learn, rest) and learn.roll_back_on_nan.n==1
    assert learn.recorder.smooth_loss.raw==pytest.approx(rest.recorder.smooth_loss.raw)

def test_a_user_written_check():
    "`after_joint_loss` is called once for each batch, with its loss, and `after_loss` for each micro-batch"
    losses = dict(check=[], other=[])
    def see(name): return lambda cb: losses[name].append(cb.learn.loss.item())
    class ChecksBatch(Callback):
        def after_loss(self):
            if not self.learn.current_run.in_part: self.after_joint_loss()
        def after_joint_loss(self): see('check')(self)
    check,other = ChecksBatch(),Callback(after_loss=see('other'))
    other.order = 200
    learn = fitted(batches(n=1), MicroBatch(2), check, other, n_epoch=1)
    assert len(losses['other'])==4 and losses['check']==pytest.approx([learn.recorder.losses[0].item()])
    learn.remove_cb(check); fitted(batches(n=1), check, n_epoch=1)
    assert len(losses['check'])==2
