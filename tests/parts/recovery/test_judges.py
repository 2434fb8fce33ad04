"What judges a batch hears the batch, not a part of it: `SkipNaN` and `RollBackOnNaN` with `MicroBatch`, `ReplayOnOOM` and accumulation"
import warnings

import pytest, torch
from hypothesis import given, settings, strategies as st
from torch import nn
from torch.optim import SGD

from learnkit.all import Callback, CheckpointCallback, DataLoaders, GradientAccumulation, Learner, MicroBatch, ReplayOnOOM, RollBackOnNaN, SkipNaN

ce = nn.CrossEntropyLoss()
splitters = dict(micro=lambda n: MicroBatch(n), replay=lambda n: ReplayOnOOM(n), parts=lambda n: MicroBatch(n=n))

def batches(n=3, bs=8, ignored=(), nan=(), dtype=torch.double):
    "`ignored` items have no target that counts, those of `nan` no finite input"
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

judges = dict(skip=SkipNaN, skip_late=lambda: SkipNaN(wait=False), back=lambda: RollBackOnNaN('1ba'), rarely=lambda: RollBackOnNaN('2ba'))

@pytest.mark.parametrize('split', splitters)
@pytest.mark.parametrize('judge', judges)
def test_a_part_without_targets_is_no_broken_batch(split, judge):
    "4 of 6 good batches were left out, in silence"
    data = batches(ignored=(3, 8, 16, 17, 18, 19))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        learn = fitted(data, splitters[split](1), cb := judges[judge]())
    assert same(learn, fitted(data)) and cb.n==0 and learn.opt.hypers[0]['lr']==.1

@settings(max_examples=30, deadline=None)
@given(split=st.sampled_from([*splitters]), n=st.integers(1,5), ignored=st.sets(st.integers(0,23), max_size=10), bad=st.sets(st.integers(0,2), max_size=2),
       where=st.integers(0,7), acc=st.booleans())
def test_a_broken_batch_is_skipped_whole(split, n, ignored, bad, where, acc):
    "Wherever in it the broken item is, and also out of accumulated gradients"
    ignored = {i for i in ignored if i%8!=where}
    data,more = batches(ignored=ignored, nan=[8*i+where for i in bad]),[lambda: GradientAccumulation(16)]*acc
    learn = fitted(data, splitters[split](n), cb := SkipNaN(), *[f() for f in more])
    assert cb.n==2*len(bad)
    assert same(learn, fitted([b for i,b in enumerate(batches(ignored=ignored)) if i not in bad], *[f() for f in more]))

@pytest.mark.parametrize('split', splitters)
def test_batches_are_counted_not_parts(split):
    "Of 6 batches in parts every second one is looked at, and kept"
    kept = []
    class Noted(RollBackOnNaN):
        def _keep_good_state(self): kept.append(self.learn.train_iter); super()._keep_good_state()
    fitted(batches(), splitters[split](2), Noted('2ba'))
    whole,kept[:] = list(kept),[]
    fitted(batches(), Noted('2ba'))
    assert whole==kept

@pytest.mark.parametrize('bad', [5, 6, 7])
@pytest.mark.parametrize('source', ['memory','checkpoint'])
@pytest.mark.filterwarnings('ignore:The training loss is nan')
def test_a_step_begins_anew_after_rolling_back(source, bad, tmp_path):
    "The gradients of batches that no step had used are gone, so these batches do not count: the rest is as if it began there"
    seen = {}
    class Noted(RollBackOnNaN):
        def _restore(self, good):
            super()._restore(good)
            seen.update(at=self.learn.train_iter, model={k:v.clone() for k,v in self.learn.model.state_dict().items()})
    saver,data = CheckpointCallback('1ba', folder=tmp_path, keep=2),batches(n=12, nan=[8*bad])
    learn = fitted(data, Noted('3ba', factor=1., source=source), GradientAccumulation('4ba'), *[saver]*(source=='checkpoint'), n_epoch=1)
    def load(cb): cb.learn.model.load_state_dict(seen['model'])
    rest = fitted(data[seen['at']+1:], GradientAccumulation('4ba'), Callback(before_fit=load), n_epoch=1)
    assert same(learn, rest)

@pytest.mark.parametrize('acc', [False,True])
@pytest.mark.parametrize('split', splitters)
@pytest.mark.filterwarnings('ignore:The loss is nan')
def test_a_bad_first_batch_is_skipped_whole(split, acc):
    "Its first part is bad, so the gradients of this part must not remain among accumulated ones"
    more = [lambda: GradientAccumulation('2ba')]*acc
    learn = fitted(batches(n=5, nan=[0]), splitters[split](2), RollBackOnNaN('1ba', factor=1.), *[f() for f in more], n_epoch=1)
    rest = fitted(batches(n=5)[1:], *[f() for f in more], n_epoch=1)
    assert same(learn, rest) and learn.roll_back_on_nan.n==1
    assert learn.recorder.smooth_loss.raw==pytest.approx(rest.recorder.smooth_loss.raw)

def test_a_judge_of_ones_own():
    "It is called once for a batch, with its loss; handlers of `after_loss` are called for each part"
    heard = dict(judge=[], other=[])
    def see(name): return lambda cb: heard[name].append(cb.learn.loss.item())
    class Judge(Callback):
        def after_loss(self):
            if not self.learn.current_run.in_part: self.after_joint_loss()
        def after_joint_loss(self): see('judge')(self)
    judge,other = Judge(),Callback(after_loss=see('other'))
    other.order = 200
    learn = fitted(batches(n=1), MicroBatch(2), judge, other, n_epoch=1)
    assert len(heard['other'])==4 and heard['judge']==pytest.approx([learn.recorder.losses[0].item()])
    learn.remove_cb(judge); fitted(batches(n=1), judge, n_epoch=1)
    assert len(heard['judge'])==2
