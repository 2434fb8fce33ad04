"Loss spikes: found where a reference implementation finds them, and then skipped, rolled back, ended at or warned of"
import warnings
import pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from torch.optim import SGD, AdamW
from learnkit.callbacks.accumulate import GradientAccumulation, MicroBatch
from learnkit.callbacks.trackers import TerminateOnNaNCallback
from learnkit.learner.learner import Learner
from learnkit.loop.run import null_logger
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.recovery.nan import RollBackOnNaN, SkipNaN, SpikeDetection, self_healing
from learnkit.recovery.replay import SkipData
from toys import at, batches, draws, few, throw, weights

quick = draws(15)

class LossFromData(nn.Module):
    "A model whose loss is the value of the batch, and whose weight decreases by one in each step"
    def __init__(self): super().__init__(); self.w = nn.Parameter(torch.zeros(()))
    def forward(self, x): return x.mean() + self.w - self.w.detach()
def loss(pred, y): return pred

def fitted(values, *cbs, **kw):
    data = [(torch.tensor([float(v)]), torch.zeros(1)) for v in values]
    learn = Learner((data,), LossFromData(), loss, SGD, lr=1., cbs=cbs, path=kw.pop('path', None))
    learn.logger = null_logger
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        learn.fit(1, **kw)
    return learn

def spikes(values, k, window):
    "The indices of the spikes, by a reference implementation"
    res,widest,first = [],0.,None
    for i,v in enumerate(values):
        last = sorted(values[max(0, i-window):i])
        if len(last)<min(window, 100): continue
        median,usual = last[(len(last)-1)//2],last[9*(len(last)-1)//10]
        first = median if first is None else first
        width = max(last[-3]-median, .01*abs(median))
        widest = max(width, .9998*widest)
        tail = k if usual==median else min(max(1.5*width/(usual-median), 4.), k)
        if v > max(median+tail*width, median+2*widest, first/2): res.append(i)
    return res

lists = st.lists(st.sampled_from([1., 1., 1., 1.5, 2., 2.5, 20., 90., 700.]), min_size=20, max_size=60)

@quick
@given(lists, st.sampled_from([2.3, 5.7, 16.]), st.integers(20, 30))
def test_spikes_are_skipped(values, k, window):
    "A skipped batch takes no step; one that only warns does"
    want = spikes(values, k, window)
    learn = fitted(values, SkipNaN(at_most=None), SpikeDetection(k, window))
    assert (learn.spike_detection.seen, learn.skip_nan.steps, learn.train_steps)==(len(want), want, len(values)-len(want))
    assert learn.model.w==-(len(values)-len(want))
    learn = fitted(values, SpikeDetection(k, window))
    assert learn.spike_detection.seen==len(want) and learn.train_steps==len(values)

def test_a_new_level_is_accepted_after_three_batches():
    "If the loss stays at a higher level, three batches are skipped, not sixty"
    learn = fitted([*calm, *calm[:6], *[50., 51., 49.]*20], SkipNaN(at_most=None), SpikeDetection(window=30))
    assert learn.skip_nan.steps==[30, 31, 32]
    learn = fitted([*calm, *calm[:6], *[50., 51., 49.]*20], *self_healing(window=30, every='1ba'))
    assert learn.skip_nan.steps==[30, 31] and learn.roll_back_on_nan.n==1 and learn.stop_reason is None

calm = [1., 1.2, .9, 1.1, 1.05, .95]*4
def test_warning_for_a_spike():
    data = [(torch.tensor([float(v)]), torch.zeros(1)) for v in [*calm, 50.]]
    learn = Learner((data,), LossFromData(), loss, SGD, lr=1., cbs=SpikeDetection(window=20))
    with pytest.warns(UserWarning, match=r'The loss is 50, epoch 0, batch 24, far above the previous ones \(about 1\).*`SkipNaN'): learn.fit(1)

def test_spikes_with_other_callbacks(tmp_path):
    learn = fitted([*calm, 50., *calm], SpikeDetection(window=20), TerminateOnNaNCallback())
    assert learn.train_iter==25 and 'is a spike (50, where about 1 was usual), epoch 0, batch 24' in learn.stop_reason
    learn = fitted([*calm, 50., *calm], SpikeDetection(window=20), RollBackOnNaN('1ba'))
    assert learn.roll_back_on_nan.n==1 and learn.opt.hypers[0]['lr']==.5
    learn = fitted([*calm, 50., 60., 70.], SpikeDetection(window=20), SkipNaN(at_most=3))
    assert 'is a spike (70' in learn.stop_reason and '3 batches in a row' in learn.stop_reason

def test_repeated_spikes_roll_back():
    "A single spike is skipped; the third in a row makes `RollBackOnNaN` restore the state before the last good step"
    learn = fitted([*calm, 50., *calm, 50., 60., 70., 80., *calm], *self_healing(window=20, every='1ba'))
    assert learn.skip_nan.steps==[24, 49, 50] and learn.roll_back_on_nan.n==1 and learn.stop_reason is None
    assert learn.train_steps==73 and learn.model.w==-72 and learn.opt.hypers[0]['lr']==1.
    learn = fitted([*calm, *[50.*100**i for i in range(9)]], *self_healing(window=20, every='1ba', at_most=2))
    assert 'is a spike' in learn.stop_reason and 'after rolling back 2 times' in learn.stop_reason
    assert learn.train_iter==28 and learn.model.w==-23

def test_skipping_the_same_batches_in_advance():
    "Skipping the same batches by `SkipData` is equal bit for bit, with dropout and batch norm"
    torch.manual_seed(0)
    data = [(x, x.sum(1, keepdim=True)) for x in torch.randn(60, 8, 4)]
    for i in (20, 45, 46): data[i] = data[i][0],data[i][1]*1000
    def run(*cbs):
        torch.manual_seed(1)
        learn = Learner((data,), nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(.2), nn.Linear(8, 1)), nn.MSELoss(), AdamW, lr=.01, cbs=cbs)
        learn.logger = null_logger
        with warnings.catch_warnings(): warnings.simplefilter('ignore'); learn.fit(2)
        return learn
    a = run(*self_healing(window=20))
    assert {20, 45, 46, 80, 105, 106} <= {*a.skip_nan.steps} and len(a.skip_nan.steps)<12 and not a.roll_back_on_nan.n
    b = run(SkipData(a.skip_nan.steps))
    assert all(torch.equal(v, b.model.state_dict()[k]) for k,v in a.model.state_dict().items())

@pytest.mark.parametrize('extra', [[], [MicroBatch(2)], [MicroBatch(2), GradientAccumulation('2ba')]])
def test_spikes_in_micro_batches(extra):
    "Whole batches are checked, not micro-batches; the weights equal those of a run without the spike"
    data = batches(30)
    wild = [(x, y*(100. if i==25 else 1.)) for i,(x,y) in enumerate(data)]
    def run(data, *cbs):
        learn = Learner((data,), nn.Linear(4, 1), nn.MSELoss(), SGD, lr=.01, cbs=[*cbs, *extra])
        with torch.no_grad():
            for p in learn.model.parameters(): p.fill_(.1)
        learn.logger = null_logger
        learn.fit(1)
        return learn
    learn = run(wild, SkipNaN(), SpikeDetection(window=20))
    assert learn.skip_nan.n==1
    assert torch.allclose(weights(learn), weights(run(data[:25]+data[26:])), atol=0 if not extra else 1e-7)

@pytest.mark.parametrize('kill', [2, 22, 25, 30])
@few(1)
def test_resumed(kill, tmp_path):
    values = [*calm, 50., *calm, 40.]
    def go(folder, *cbs, **kw): return fitted(values, SpikeDetection(window=20), SkipNaN(), CheckpointCallback('1ba', folder=folder), *cbs, **kw)
    whole = go(tmp_path/'a')
    with pytest.raises(SystemError): go(tmp_path/'b', at('after_batch', throw(SystemError()), lambda cb: cb.learn.train_iter==kill, order=200))
    again = go(tmp_path/'b', resume='auto')
    assert again.spike_detection.state_dict()==whole.spike_detection.state_dict() and again.spike_detection.seen==2
    assert again.model.w==whole.model.w and again.train_steps==whole.train_steps

def test_resumed_with_a_shorter_window():
    "Only the losses of the new window count; the older ones used to stay among the ranked ones for good"
    before,after = SpikeDetection(window=60),SpikeDetection(window=20)
    for loss in range(50): before._add_loss(float(loss))
    after.load_state_dict(before.state_dict())
    for loss in 3., 7.: after._add_loss(loss)
    assert after.losses==[*range(32, 50), 3., 7.] and after.ranked==sorted(after.losses)

@pytest.mark.parametrize('kw', [dict(k=0.), dict(k=-1), dict(window=19), dict(window=25.5), dict(k='x')])
def test_bad_settings(kw):
    with pytest.raises((ValueError,TypeError), match=next(iter(kw))): SpikeDetection(**kw)
