"""Failures are injected into a run: losses and gradients that are not finite, batches that do not fit into memory,
loader workers that die, callbacks that fail. The result equals, bit for bit, that of a run which needs no recovery."""
import multiprocessing, os, random, signal, warnings

import numpy as np, pytest, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from oracle import TRAIN
from learnkit.all import Adam, Callback, CancelBatch, CancelFit, DataLoaders, Learner, Recorder, TrainEvalCallback, event, get_random_states, set_seed
from learnkit.loop.events import CancelEpoch, CancelTrain
from learnkit.callbacks.accumulate import GradientAccumulation
from learnkit.callbacks.gradients import GradientClip
from learnkit.callbacks.accumulate import MicroBatch
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.callbacks.averages import EMACallback
from learnkit.callbacks.precision import MixedPrecision
from learnkit.measure.finite import all_finite, weights_finite
from learnkit.measure.finite import NonFiniteCheck, NonFiniteLoss
from learnkit.callbacks.trackers import TerminateOnNaNCallback
from learnkit.recovery.nan import ReplayOnOOM
from learnkit.recovery.nan import RollBackOnNaN
from learnkit.recovery.nan import SkipNaN
from learnkit.recovery.file import list_checkpoints, read_checkpoint
from toys import big_model, few, slow, throw

nan,inf = float('nan'),float('inf')
BAD = 3,4,9   # the broken batches of an epoch

class Draws(nn.Module):
    "Draws random numbers from `random` and NumPy"
    def forward(self, x): return x*(1 + .1*random.random() + .1*np.random.rand())

def model():
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(.3), Draws(), nn.Linear(8, 1))

def data(n=12, bs=8, seed=1):
    g = torch.Generator().manual_seed(seed)
    xs = torch.randn(n, bs, 4, generator=g)
    return [(x, x.sum(1, keepdim=True)) for x in xs]

def learner(batches, *cbs, opt=Adam, valid=False, **kwargs):
    set_seed(7)
    learn = Learner(DataLoaders(batches, *([data(2, seed=2)]*valid)), model(), nn.MSELoss(), opt, lr=.01, default_cbs=False, cbs=[TrainEvalCallback, Recorder, NonFiniteCheck, *cbs], **kwargs)
    learn.logger = lambda row: None
    return learn

def same(a, b):
    "Whether two states are equal, bit for bit"
    if isinstance(a, torch.Tensor): return torch.equal(a, b)
    if isinstance(a, dict): return a.keys()==b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list,tuple)): return len(a)==len(b) and all(map(same, a, b))
    return a==b

def end(learn): return dict(model=learn.model.state_dict(), opt=learn.opt.state_dict(), rng=get_random_states(), losses=learn.recorder.smooth_loss.raw)

def state_after_fit(learn, n=1):
    "The state after a fit of `n` epochs, taken before another fit draws random numbers"
    learn.fit(n)
    return end(learn)

def assert_same(a, b):
    for k in a: assert same(a[k], b[k]), k

class Poison(Callback):
    "Makes the input, loss or gradient of the batches `bad` non-finite"
    order = -5
    def __init__(self, where, value=nan, bad=BAD): self.where,self.value,self.bad = where,value,bad
    def _now(self): return self.learn.training and self.learn.iter in self.bad
    def before_batch(self):
        if self.where=='input' and self._now(): self.learn.xb = (self.learn.xb[0]*self.value,)
    def after_loss(self):
        if self.where=='loss' and self._now(): self.learn.loss_grad = self.learn.loss_grad*self.value; self.learn.loss = self.learn.loss*self.value
    def after_backward(self):
        if self.where=='gradient' and self._now(): next(self.learn.model.parameters()).grad[0,0] = self.value

# skipped batches

@few(4)
@pytest.mark.parametrize('where', ['input', 'loss', 'gradient'])
@pytest.mark.parametrize('value', [nan, inf, -inf])
def test_a_skipped_batch_leaves_no_trace(where, value):
    batches = data()
    skip = SkipNaN()
    learn = learner(batches, Poison(where, value), skip)
    skipped = state_after_fit(learn, 2)
    assert_same(state_after_fit(learner([b for i,b in enumerate(batches) if i not in BAD]), 2), skipped)
    assert (skip.n, learn.train_iter)==(6, 24)

class Average(nn.Module):
    "Assigns a new tensor to its buffer in each forward pass"
    def __init__(self): super().__init__(); self.register_buffer('mean', torch.zeros(4))
    def forward(self, x):
        self.mean = .9*self.mean + .1*x.detach().mean(0)
        return x - self.mean

def test_a_buffer_that_is_reassigned_is_restored():
    def fit(batches, *cbs):
        set_seed(7)
        learn = Learner(DataLoaders(batches), nn.Sequential(Average(), nn.Linear(4, 1)), nn.MSELoss(), lr=.01,
                        default_cbs=False, cbs=[TrainEvalCallback, *cbs])
        learn.fit(1)
        return learn.model.state_dict()
    def fails(self):
        if self.learn.iter==5 and not self.learn.replay_on_oom.attempt: raise torch.OutOfMemoryError('no memory')
    batches = data()
    bad = [(x*nan if i in BAD else x, y) for i,(x,y) in enumerate(batches)]
    assert same(fit(bad, SkipNaN()), fit([b for i,b in enumerate(batches) if i not in BAD]))
    with pytest.warns(UserWarning, match='out of memory'): replayed = fit(batches, ReplayOnOOM(), Callback(after_backward=fails))
    assert same(replayed, fit(batches, PlannedSizes([(0,8), (5,4)])))

def test_events_of_a_skipped_batch():
    events = []
    class Trace(Callback):
        order = 40
        def __call__(self, name, **kw):
            if self.learn.iter==3 and self.learn.training: events.append(name)
    for where in ('loss', 'gradient'): learner(data(5), Poison(where), SkipNaN(), Trace()).fit(1)
    i = events.index('before_fetch', 1)
    until = TRAIN.index('before_loss')+1
    assert events[:i]==[*TRAIN[:until], 'after_cancel_batch', 'after_batch']
    since = TRAIN[TRAIN.index('before_backward'):]
    step  = since.index('after_step')
    with_cancel = [*since[:step], 'after_cancel_step', *since[step:]]
    without = [e for e in with_cancel if e!='before_step']   # `SkipNaN` cancels the step there, before this trace runs
    assert events[i:][-len(without):]==without

def test_too_many_skipped_batches_in_a_row_end_the_fit():
    learn = learner(data(), Poison('loss', bad=range(5, 12)), SkipNaN(at_most=3))
    learn.fit(3)
    assert learn.train_iter==7 and '3 batches in a row' in learn.stop_reason
    assert all(p.isfinite().all() for p in learn.model.parameters())

def test_skipped_batches_that_are_not_in_a_row_do_not_end_the_fit():
    learn = learner(data(), Poison('loss', bad=(0,2,4,6,8,10)), SkipNaN(at_most=2))
    learn.fit(1)
    assert learn.stop_reason is None and learn.skip_nan.n==6

def test_skip_with_accumulation_keeps_the_other_batches():
    "When the loss of one accumulated batch is broken, the step is that of the others"
    batches = data(4)
    skipped = state_after_fit(learner(batches, Poison('loss', bad=(1,)), SkipNaN(), GradientAccumulation(24)))
    assert_same(state_after_fit(learner([b for i,b in enumerate(batches) if i!=1], GradientAccumulation(24))), skipped)

def test_skip_with_clipping_and_averages():
    "An infinite gradient does not reach the clipped norm, nor a skipped step the average"
    batches = data()
    skipped = state_after_fit(learner(batches, Poison('gradient', inf), SkipNaN(), GradientClip(.5), EMACallback(.9)))
    assert_same(state_after_fit(learner([b for i,b in enumerate(batches) if i not in BAD], GradientClip(.5), EMACallback(.9))), skipped)

def test_skip_leaves_fp16_overflows_to_the_scaler():
    learn = learner(data(), SkipNaN(at_most=1), MixedPrecision('fp16', init_scale=2.**60))
    learn.fit(1)
    assert learn.stop_reason is None and learn.skip_nan.n==0 and learn.mixed_precision.scaler.get_scale()<2.**60

def test_skip_without_waiting_for_the_device():
    "With `wait=False` the step has zero gradients, which with plain SGD is no step; nothing is read from the device"
    batches = data()
    class NoRead(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, f, types, args=(), kwargs=None):
            assert f is not torch.ops.aten._local_scalar_dense.default, 'waits for the device'
            return f(*args, **(kwargs or {}))
    def fit(batches, *cbs, mode=None):
        set_seed(7)
        net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
        learn = Learner(DataLoaders(batches), net, nn.MSELoss(), torch.optim.SGD, lr=.01, default_cbs=False, cbs=[TrainEvalCallback, *cbs])
        if mode is None: learn.fit(1)
        else:
            with mode: learn.fit(1)
        return learn.model.state_dict()
    bad = [(x*nan if i in BAD else x, y) for i,(x,y) in enumerate(batches)]
    assert same(fit(bad, SkipNaN(wait=False), mode=NoRead()), fit([b for i,b in enumerate(batches) if i not in BAD]))
    with pytest.raises(AssertionError, match='waits'): fit(bad, SkipNaN(), mode=NoRead())

def test_all_finite_checks_each_element():
    for v in (nan, inf, -inf):
        t = torch.zeros(7, 5); t[3,2] = v
        assert not all_finite([torch.ones(3), t])
    assert all_finite([torch.ones(3), torch.tensor(1e38)]) and all_finite([])

@pytest.mark.parametrize('at', ['before_batch', 'after_loss', 'before_step', 'after_batch'])
def test_skip_leaves_nothing_behind(at):
    def fail(self): raise KeyError('x')
    learn = learner(data(), SkipNaN())
    with pytest.raises(KeyError): learn.fit(1, cbs=Callback(**{at:fail}))
    assert learn.skip_nan.snapshot is None and not learn.skip_nan.buffers and learn.skip_nan.last_loss is None

# rolling back to the last good weights

class RecordWeights(Callback):
    "Records the weights at `after_loss`, where RollBackOnNaN copies them"
    order = 30
    def after_loss(self): self.kept = getattr(self, 'kept', {}); self.kept[self.learn.epoch,self.learn.iter] = {k:v.clone() for k,v in self.learn.model.state_dict().items()}

@pytest.mark.parametrize('every,bad,good,seen', [('1ba', 5, 4, 5), ('3ba', 7, 5, 8), ('100ba', 7, 0, 12)])
def test_roll_back_to_the_last_check_of_the_loss(every, bad, good, seen):
    "A broken step is undone: the weights are those of the last check, which is at batch 0 and then `every` so many"
    def breaks(self):
        if self.learn.iter==bad-1: self.learn.model[0].weight.data.fill_(nan)
    found = {}
    def look(self):
        if self.learn.roll_back_on_nan.n and not found: found.update(epoch=self.learn.epoch, iter=self.learn.iter, model={k:v.clone() for k,v in self.learn.model.state_dict().items()}, lr=self.learn.opt.hypers[0]['lr'])
    keep = RecordWeights()
    late = Callback(after_batch=look, after_train=look)
    late.order = 90
    learn = learner(data(), RollBackOnNaN(every), keep, Callback(after_step=breaks), late)
    with pytest.warns(UserWarning, match='last good weights are restored'): learn.fit(1)
    assert same(found['model'], keep.kept[0,good]) and found['lr']==.005
    assert found['iter']==min(seen, 11) and all(p.isfinite().all() for p in learn.model.parameters())
    assert all(np.isfinite(learn.recorder.smooth_loss.raw))

def test_at_most_so_many_roll_backs():
    learn = learner(data(), Poison('loss', bad=range(2, 12)), RollBackOnNaN('1ba', at_most=2))
    with pytest.warns(UserWarning): learn.fit(2)
    assert 'after rolling back 2 times' in learn.stop_reason and learn.train_iter==4
    assert all(p.isfinite().all() for p in learn.model.parameters())

def test_without_good_weights_the_fit_ends():
    learn = learner(data(), RollBackOnNaN('1ba'))
    learn.model[0].weight.data.fill_(nan)
    learn.fit(1)
    assert 'no good weights' in learn.stop_reason

def test_the_first_batch_is_skipped():
    "The weights that a fit begins with are good: a bad first batch does not end it"
    learn = learner(data(), Poison('loss', bad=(0,)), RollBackOnNaN('1ba'))
    with pytest.warns(UserWarning, match='the weights stay'): learn.fit(1)
    assert learn.stop_reason is None and learn.train_iter==12 and learn.roll_back_on_nan.n==1

def test_a_bad_first_batch_leaves_nothing_behind():
    "Neither its loss is recorded, nor are its statistics in the buffers of batch norm"
    batches = data()
    batches[0][0][3] = nan
    learn = learner(batches, RollBackOnNaN('1ba'))
    with pytest.warns(UserWarning, match='the weights stay'): learn.fit(1)
    assert all(b.isfinite().all() for b in learn.model.buffers() if b.is_floating_point())
    losses = learn.recorder.smooth_loss.raw
    assert len(losses)==11 and all(torch.tensor(losses).isfinite())

@pytest.mark.parametrize('source', ['memory','checkpoint'])
def test_the_first_batch_after_a_resume_is_skipped(source, tmp_path):
    "A resumed run whose first batch is bad skips it, as a new run does"
    def make(*cbs): return learner(data(), Poison('loss', bad=(7,)), RollBackOnNaN('1ba', source=source), CheckpointCallback('1ba', folder=tmp_path), *cbs)
    def kill(cb):
        if cb.learn.train_iter==7: raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt): make(Callback(before_batch=kill)).fit(1)
    learn = make()
    with pytest.warns(UserWarning, match='the weights stay'): learn.fit(1, resume='auto')
    assert learn.stop_reason is None and learn.train_iter==12 and learn.roll_back_on_nan.n==1

def test_roll_back_scales_a_schedule():
    lrs,rates = [],[.1, .08, .06, .04, .02, .01]
    def schedule(self): self.learn.opt.set_hyper('lr', rates[self.learn.iter])
    learn = learner(data(6), Poison('loss', bad=(1,3)), RollBackOnNaN('1ba', factor=.5), Callback(before_batch=schedule, after_loss=lambda self: lrs.append(self.learn.opt.hypers[0]['lr'])))
    with pytest.warns(UserWarning): learn.fit(1)
    assert lrs==[.1, .08, .06*.5, .04*.5, .02*.25, .01*.25]

def test_roll_back_restores_the_average():
    learn = learner(data(), Poison('gradient', bad=(5,)), RollBackOnNaN('4ba'), EMACallback(.9))
    with pytest.warns(UserWarning): learn.fit(1)
    assert all(p.isfinite().all() for p in learn.model.parameters())

def test_roll_back_to_a_checkpoint(tmp_path):
    learn = learner(data(), Poison('gradient', bad=(5,)), CheckpointCallback('2ba', keep=10), RollBackOnNaN('12ba', source='checkpoint'), path=tmp_path)
    kept = []
    def look(self): kept.append({k:v.clone() for k,v in self.learn.model.state_dict().items()})
    with pytest.warns(UserWarning, match='restored'): learn.fit(1, cbs=Callback(after_train=look))
    good = next(p for p in list_checkpoints(tmp_path/'checkpoints'/'fit-1') if p.stem=='step-00000004')
    assert same(kept[0], read_checkpoint(good)['model'])   # the one of batch 6 is broken

def test_a_resumed_run_knows_its_roll_backs(tmp_path):
    def make(): return learner(data(), Poison('loss', bad=(2,)), RollBackOnNaN('1ba', at_most=9), CheckpointCallback('1ba'), path=tmp_path)
    def crash(self):
        if self.learn.train_iter==5: raise SystemError('the power failed')
    with pytest.warns(UserWarning), pytest.raises(SystemError): make().fit(2, cbs=Callback(before_batch=crash))
    learn = make()
    with pytest.warns(UserWarning): learn.fit(2, resume='auto')
    assert learn.roll_back_on_nan.n==2 and learn.opt.hypers[0]['lr']==.0025

# the default: NonFiniteCheck

@few(6)
@pytest.mark.parametrize('where', ['input', 'loss', 'gradient', 'weight'])
@pytest.mark.parametrize('value', [nan, inf])
@pytest.mark.parametrize('bad,n', [(0, 12), (5, 12), (11, 12)])
def test_broken_weights_end_the_fit(where, value, bad, n):
    "The error names the first broken loss, and is raised when losses are read: here at the end of the epoch"
    def breaks(self):
        if self.learn.iter==bad and self.learn.epoch==1: self.learn.model[0].weight.data[0,0] = value
    class Once(Poison):
        def _now(self): return super()._now() and self.learn.epoch==1
    cbs = [Callback(after_step=breaks)] if where=='weight' else [Once(where, value, (bad,))]
    learn = learner(data(n), *cbs, valid=True)
    first = divmod(12 + bad + (where in ('gradient','weight')), n)   # these show in the next batch
    with pytest.raises(NonFiniteLoss, match=f'since epoch {first[0]}, batch {first[1]}, and so are weights'): learn.fit(3)
    assert learn.epoch==first[0] and learn.train_iter==12*(first[0]+1)
    assert len(learn.recorder.history)==first[0]

def test_a_broken_loss_raises_at_the_first_read():
    def read(self):
        if self.learn.iter==6: self.learn.smooth_loss
    late = Callback(after_batch=read)
    late.order = 60
    learn = learner(data(), Poison('loss', bad=(2,)), late)
    with pytest.raises(NonFiniteLoss, match='since epoch 0, batch 2, and so are weights'): learn.fit(1)
    assert learn.iter==7

def test_a_loss_that_breaks_nothing_is_a_warning():
    "A batch without counted targets has a NaN loss and zero gradients"
    set_seed(7)
    x,y = torch.randn(6, 8, 4),torch.randint(3, (6, 8))
    y[2] = -100
    learn = Learner(DataLoaders(list(zip(x, y))), nn.Linear(4, 3), nn.CrossEntropyLoss(), lr=.1)
    with pytest.warns(UserWarning, match='the training loss was nan in epoch 0, batch 2, but no weight is'), learn.no_bar(), learn.no_logging(): learn.fit(2)
    assert len(learn.recorder.history)==2

def test_fp16_overflows_do_not_raise():
    learn = learner(data(), MixedPrecision('fp16', init_scale=2.**60))
    learn.fit(2)
    assert learn.mixed_precision.scaler.get_scale()<2.**60

@pytest.mark.parametrize('how', ['warn', 'TerminateOnNaNCallback', 'SkipNaN', 'RollBackOnNaN', 'lr_find', 'valid'])
def test_nonfinite_losses_do_not_raise_where_they_are_handled(how):
    cbs = dict(TerminateOnNaNCallback=TerminateOnNaNCallback, SkipNaN=SkipNaN, RollBackOnNaN=RollBackOnNaN).get(how, lambda: [])()
    learn = learner(data(), *([Poison('loss')] if how!='valid' else []), *([cbs] if cbs else []), valid=True)
    if how=='warn': learn.non_finite_check.on_nan = 'warn'
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        if how=='lr_find': learn.lr_find(num_it=12, stop_div=False, show_plot=False)
        elif how=='valid': learn.fit(2, cbs=Callback(after_loss=lambda self: None if self.learn.training else setattr(self.learn, 'loss', self.learn.loss*nan)))
        else: learn.fit(2)

class Handles(Callback):
    "Handles losses that are not finite, by recording the messages"
    def before_fit(self): self.messages = []
    def nonfinite_loss(self, message): self.messages.append(message)

def test_a_callback_handles_nonfinite_losses():
    "It is called each time, and the user is warned once; after it is removed, the fit raises"
    learn = learner(data(), Poison('loss', bad=(5,)), Handles())
    with pytest.warns(UserWarning, match='is nan since epoch 0, batch 5: ') as w: learn.fit(3)
    assert len(w)==1 and len(learn.recorder.history)==3
    assert [m.split(' since ')[1] for m in learn.handles.messages]==['epoch 0, batch 5', 'epoch 1, batch 0', 'epoch 2, batch 0']
    learn.remove_cb(Handles)
    with pytest.raises(NonFiniteLoss): learn.fit(1)

def test_without_the_check_nothing_is_raised():
    learn = learner(data(), Poison('loss', bad=(5,))).remove_cb(NonFiniteCheck)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        learn.fit(2)
    assert len(learn.recorder.history)==2

def test_no_device_is_read_while_losses_are_finite(monkeypatch):
    def fails(opt): raise AssertionError('waits for the device')
    monkeypatch.setattr('learnkit.measure.finite.weights_finite', fails)
    learner(data(), valid=True).fit(2)

def test_skip_that_stops_at_the_first_bad_batch_keeps_the_weights_before_it():
    learn = learner(data(), Poison('loss', bad=(5,)), SkipNaN(at_most=1))
    stopped = state_after_fit(learn)
    assert_same(state_after_fit(learner(data()[:5])), stopped)

def test_every_weight_is_checked():
    ps = [nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(3, 3, dtype=torch.bfloat16))]
    opt = torch.optim.SGD([dict(params=p) for p in ps], lr=.1)
    assert weights_finite(opt)
    ps[1].data[2,2] = inf
    assert not weights_finite(opt)

@pytest.mark.parametrize('keep', [1, 3])
@pytest.mark.parametrize('where', ['loss', 'gradient'])
def test_no_checkpoint_is_written_of_broken_weights(keep, where, tmp_path):
    "Otherwise runs would resume from it, and in time it would replace the good ones"
    def make(): return learner(data(), Poison(where, bad=(5,)), CheckpointCallback('1ba', keep=keep), path=tmp_path)
    learn = make()
    with pytest.warns(UserWarning, match='weights are nan or infinite'), pytest.raises(NonFiniteLoss) as e: learn.fit(1)
    newest = list_checkpoints(tmp_path/'checkpoints'/'fit-1')
    assert len(newest)==keep and read_checkpoint(newest[0])['train_iter']==5 and newest[0].name in '\n'.join(e.value.__notes__)
    learn = make()
    learn.add_cb(SkipNaN())
    learn.fit(1, resume='auto')
    good = learner(data(), Poison(where, bad=(5,)), SkipNaN())
    good.fit(1)
    assert same(learn.model.state_dict(), good.model.state_dict())

def test_a_fit_that_was_ended_continues_from_good_weights(tmp_path):
    learn = learner(data(), Poison('loss', bad=(5,)), CheckpointCallback('2ba'), TerminateOnNaNCallback(), path=tmp_path)
    with pytest.warns(UserWarning, match='weights are nan or infinite'): learn.fit(1)
    assert read_checkpoint(list_checkpoints(tmp_path/'checkpoints'/'fit-1')[0])['train_iter']==4

def test_a_long_epoch_whose_losses_are_not_read():
    "Without a bar or a checkpoint that reads losses, they are checked after 1024 batches"
    learn = learner(data(1100, 2), Poison('loss', bad=(5,)))
    with pytest.raises(NonFiniteLoss, match='nan since epoch 0, batch 5, and so are weights'): learn.fit(1)
    assert learn.train_iter==1024

@pytest.mark.parametrize('cancel', [CancelFit, CancelEpoch, CancelTrain])
def test_a_cancelled_fit_checks_losses_not_read_yet(cancel):
    def ends(self):
        if self.learn.iter==9: raise cancel
    def broken(*cbs): return learner(data(), Poison('loss', bad=(5,)), Callback(before_batch=ends), *cbs)
    with pytest.raises(NonFiniteLoss, match='nan since epoch 0, batch 5, and so are weights'): broken().fit(1)
    (ended := broken(TerminateOnNaNCallback())).fit(1)
    assert 'nan' in ended.stop_reason
    (whole := learner(data(), Callback(before_batch=ends))).fit(1)
    (skips := broken(SkipNaN())).fit(1)
    assert whole.train_iter==skips.train_iter and torch.isfinite(skips.model[0].weight).all()

def test_an_earlier_harmless_loss_is_not_reported():
    "An infinite loss leaves the weights good; the error names the later loss that breaks them"
    def passes(self):
        if self.learn.iter==2: self.learn.loss = self.learn.loss*inf
    learn = learner(data(), Poison('loss', bad=(9,)), Callback(after_loss=passes))
    with pytest.raises(NonFiniteLoss, match='nan since epoch 0, batch 9, and so are weights'): learn.fit(1)
    learn = learner(data(), Callback(after_loss=passes))
    with pytest.warns(UserWarning, match='was inf in epoch 0, batch 2, but no weight is') as w: learn.fit(2)
    assert len(w)==1

class Masked(nn.Module):
    "Has infinities, like a causal mask, in a frozen parameter or in a buffer"
    def __init__(self, kind):
        super().__init__()
        self.net,mask = model(),torch.tensor([0., -inf])
        if kind=='buffer': self.register_buffer('mask', mask)
        else: self.mask = nn.Parameter(mask, requires_grad=False)
    def forward(self, x): return self.net(x) + self.mask[0]

def masked(kind, *cbs, **kwargs):
    "A Learner whose optimizer has all parameters, including the mask"
    set_seed(7)
    m = Masked(kind)
    learn = Learner(DataLoaders(data()), m, nn.MSELoss(), torch.optim.SGD(m.parameters(), lr=.01), default_cbs=False, cbs=[TrainEvalCallback, Recorder, NonFiniteCheck, *cbs], **kwargs)
    learn.logger = lambda row: None
    return learn

@pytest.mark.parametrize('kind', ['parameter', 'buffer'])
def test_a_mask_of_infinities_is_allowed(kind, tmp_path):
    def passes(self):
        if self.learn.iter==2: self.learn.loss = self.learn.loss*inf
    learn = masked(kind, CheckpointCallback('5ba'), Callback(after_loss=passes), path=tmp_path)
    with pytest.warns(UserWarning, match='no weight is') as w: learn.fit(1)
    assert len(w)==1 and len(list_checkpoints(tmp_path/'checkpoints'/'fit-1'))==3
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        masked(kind, RollBackOnNaN('5ba')).fit(1)

@pytest.mark.parametrize('kind', ['parameter', 'buffer'])
def test_roll_back_to_a_checkpoint_with_a_mask(kind, tmp_path):
    learn = masked(kind, Poison('gradient', bad=(7,)), CheckpointCallback('3ba'), RollBackOnNaN('12ba', source='checkpoint'), path=tmp_path)
    learn.poison.after_backward = lambda: learn.model.net[0].weight.grad.fill_(nan) if learn.poison._now() else None
    with pytest.warns(UserWarning, match='last good weights are restored'): learn.fit(1)
    assert learn.stop_reason is None and weights_finite(learn.opt)

def test_roll_back_to_the_checkpoint_before_a_damaged_one(tmp_path):
    def damage(self):
        if self.learn.iter==7: newest = list_checkpoints(tmp_path/'checkpoints'/'fit-1')[0]; newest.write_bytes(newest.read_bytes()[:-1])
    late = Callback(after_batch=damage)
    late.order = 101
    learn = learner(data(), Poison('loss', bad=(8,)), CheckpointCallback('2ba'), late, RollBackOnNaN('3ba', source='checkpoint'), path=tmp_path)
    with pytest.warns(UserWarning) as w: learn.fit(1)
    assert any('Using the previous checkpoint instead' in str(o.message) for o in w) and any('last good weights are restored' in str(o.message) for o in w)

class Bag(nn.Module):
    "Has sparse gradients, and a parameter without elements"
    def __init__(self):
        super().__init__()
        self.bag,self.none = nn.EmbeddingBag(9, 3, sparse=True),nn.Parameter(torch.zeros(0, 3))
    def forward(self, x): return self.bag(x).sum(1, keepdim=True) + self.none.sum()

@pytest.mark.parametrize('wait', [True, False])
def test_sparse_gradients_and_parameters_without_elements(wait):
    def broken(self):
        if self.learn.iter==1: self.learn.model.bag.weight.grad._values()[0] = nan
    set_seed(7)
    batches = [(torch.randint(9, (8, 2)), torch.randn(8, 1)) for _ in range(4)]
    learn = Learner(DataLoaders(batches), Bag(), nn.MSELoss(), torch.optim.SGD, lr=.1, default_cbs=False, cbs=[TrainEvalCallback, SkipNaN(wait=wait), Callback(after_backward=broken)])
    learn.fit(1)
    assert all(p.isfinite().all() for p in learn.model.parameters()) and learn.skip_nan.n==wait
    assert weights_finite(torch.optim.SGD([nn.Parameter(torch.eye(3).to_sparse())]))

def test_broken_batch_norm_statistics_are_named():
    "Mixed precision skips the step, but running statistics stay NaN, and each validation too; SkipNaN restores them"
    learn = learner(data(), Poison('input', bad=(3,)), MixedPrecision('fp16'), valid=True)
    with pytest.warns(UserWarning, match=r'but no weight is; `1.running_mean` is nan, .* SkipNaN\(\)'): learn.fit(1)
    assert np.isnan(learn.recorder.history['valid_loss'][0]) and weights_finite(learn.opt)
    learn = learner(data(), Poison('input', bad=(3,)), MixedPrecision('fp16'), SkipNaN(), valid=True)
    learn.fit(1)
    assert np.isfinite(learn.recorder.history['valid_loss'][0])

# out of memory

class LimitedMemory(nn.Module):
    """A model that runs out of memory with more than `fits` samples in the batches `at`: before or after the forward
    pass drew random numbers and updated buffers, or in the backward pass"""
    def __init__(self, when, fits=2, at=()):
        super().__init__()
        self.net,self.when,self.fits,self.at,self.calls,self.learn = model(),when,fits,at,[],None
    def forward(self, x):
        fails = self.training and len(x)>self.fits and self.learn.train_iter in self.at
        self.calls.append((self.learn.train_iter, len(x), fails))
        if fails and self.when=='before': raise torch.OutOfMemoryError('no memory')
        y = self.net(x)
        if fails and self.when=='after': raise torch.OutOfMemoryError('no memory')
        return Fails.apply(y) if fails else y

class Fails(torch.autograd.Function):
    "Fails in the backward pass, after some gradients were computed"
    @staticmethod
    def forward(ctx, x): return x.clone()
    @staticmethod
    def backward(ctx, g): raise torch.OutOfMemoryError('no memory')

def limited_learner(when, *cbs, at=(5,), fits=3, batches=None, **kwargs):
    set_seed(7)
    net = LimitedMemory(when, fits, at)
    learn = Learner(DataLoaders(batches or data()), net, nn.MSELoss(), Adam, lr=.01, default_cbs=False, cbs=[TrainEvalCallback, Recorder, NonFiniteCheck, *cbs], **kwargs)
    learn.logger,net.learn = (lambda row: None),learn
    return learn

class PlannedSizes(MicroBatch):
    "Uses the given sizes: pairs of a batch and the size from then on"
    def __init__(self, sizes): super().__init__(1); self.sizes = sizes
    def before_batch(self): self.size = next(s for i,s in reversed(self.sizes) if i<=self.learn.train_iter)

@pytest.mark.parametrize('when', ['before', 'after', 'backward'])
@pytest.mark.parametrize('at', [(0,), (5,), (5,17), (23,)])
def test_a_replay_equals_micro_batches_of_known_sizes(when, at):
    learn = limited_learner(when, ReplayOnOOM(), at=at)
    with pytest.warns(UserWarning, match='micro-batches of (4|2) from now on') as warned: replayed = state_after_fit(learn, 2)
    assert len(warned)==2
    assert_same(state_after_fit(limited_learner('never', PlannedSizes([(0,8), (at[0],2)]), at=()), 2), replayed)
    assert [n for i,n,_ in learn.model.calls if i==at[0]]==[8, 4, 2, 2, 2, 2]

def test_replay_without_a_failure_changes_nothing():
    learn = limited_learner('never', ReplayOnOOM(), at=())
    replayed = state_after_fit(learn, 2)
    assert_same(state_after_fit(limited_learner('never', at=()), 2), replayed)

@pytest.mark.parametrize('when', ['before', 'backward'])
def test_a_replay_keeps_accumulated_gradients(when):
    learn = limited_learner(when, ReplayOnOOM(), GradientAccumulation(24), at=(4,))
    with pytest.warns(UserWarning): replayed = state_after_fit(learn, 2)
    assert_same(state_after_fit(limited_learner('never', PlannedSizes([(0,8), (4,2)]), GradientAccumulation(24), at=()), 2), replayed)

def test_events_of_a_replay():
    events = []
    class Trace(Callback):
        def __call__(self, name, **kw):
            if self.learn.iter==1: events.append((name, self.learn.replay_on_oom.attempt))
    with pytest.warns(UserWarning): limited_learner('after', ReplayOnOOM(), Trace(), at=(1,), fits=4, batches=data(2)).fit(1)
    names = [n for n,_ in events if n in ('before_batch','before_replay','before_micro_batch','before_pred','after_pred','after_micro_batch','before_step','after_batch')]
    part = ['before_micro_batch','before_pred','after_pred','after_micro_batch']
    assert names==['before_batch','before_pred','before_replay',*part,*part,'before_step','after_batch'] and 'before_replay' in event
    assert [a for n,a in events if n=='before_pred']==[0,1,1]

def test_the_failed_attempt_is_gone_before_the_next():
    "Tensors that the exception kept alive would use the memory that the next attempt needs"
    model,alive = big_model(2)
    learn = Learner(DataLoaders(data(1)), model, nn.MSELoss(), cbs=[TrainEvalCallback, ReplayOnOOM()], default_cbs=False)
    with pytest.warns(UserWarning): learn.fit(1)
    assert alive==[0]*6

_no_memory = [torch.OutOfMemoryError('no memory'), MemoryError(), np._core._exceptions._ArrayMemoryError((10**9,), np.dtype('f8')), *map(RuntimeError, (
    "[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 10 bytes. Error code 12 (Cannot allocate memory)",
    'DefaultCPUAllocator: not enough memory: you tried to allocate 10 bytes.', 'CUDA error: out of memory\nCUDA kernel errors might be', 'HIP out of memory. Tried to allocate',
    'MPS backend out of memory (MPS allocated: 1 GB)', 'XPU out of memory.', 'CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`', 'cuDNN error: CUDNN_STATUS_ALLOC_FAILED',
    'cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear if you passed in a non-contiguous input.', 'Unable to find a valid cuDNN algorithm to run convolution', 'Invalid buffer size: 9 GB', 'std::bad_alloc'))]

@pytest.mark.parametrize('e', [*_no_memory[:4], *slow(*_no_memory[4:])], ids=lambda e: f'{type(e).__name__} {e}'[:60])
def test_every_form_of_an_out_of_memory_error(e):
    "Failed allocations on the CPU, in CUDA or cuDNN, which raise other errors than OutOfMemoryError, are replayed too"
    class Fails(nn.Linear):
        def forward(self, x):
            if len(x)>3: raise e
            return super().forward(x)
    learn = Learner(DataLoaders(data(2)), Fails(4, 1), nn.MSELoss(), cbs=[TrainEvalCallback, ReplayOnOOM()], default_cbs=False)
    with pytest.warns(UserWarning, match='out of memory'): learn.fit(1)
    assert learn.replay_on_oom.size==2

def test_other_errors_are_not_replayed():
    fails = Callback(after_pred=throw(RuntimeError('The size of tensor a (3) must match the size of tensor b (4)')))
    with pytest.raises(RuntimeError, match='must match'): learner(data(2), ReplayOnOOM(), fails).fit(1)

def test_out_of_memory_errors_that_no_replay_helps():
    with pytest.warns(UserWarning), pytest.raises(torch.OutOfMemoryError) as e: limited_learner('before', ReplayOnOOM(), fits=0).fit(1)
    assert 'not even a single sample fits' in ''.join(e.value.__notes__)
    def fail(self): raise torch.OutOfMemoryError('no memory')
    with pytest.raises(torch.OutOfMemoryError) as e: limited_learner('never', ReplayOnOOM(), Callback(after_step=fail), at=()).fit(1)
    assert "optimizer step" in ''.join(e.value.__notes__)

def test_replay_leaves_validation_unchanged():
    learn = learner(data(), ReplayOnOOM(), valid=True)
    learn.fit(1)
    assert learn.replay_on_oom.size is None and len(learn.recorder.history)==1

@pytest.mark.parametrize('at', ['before_fit', 'before_batch', 'after_pred', 'after_loss', 'after_backward', 'before_step', 'after_epoch'])
@pytest.mark.parametrize('size', [None, 3])
def test_replay_leaves_nothing_behind(at, size):
    def fail(self): raise KeyError('x')
    learn = limited_learner('never', ReplayOnOOM(size), at=())
    with pytest.raises(KeyError): learn.fit(1, cbs=Callback(**{at:fail}))
    assert learn.current_run.do_batch==learn._do_one_batch and '_do_one_batch' not in vars(learn) and learn.replay_on_oom.snapshot is None and learn.replay_on_oom.whole_batch is None
    learn.fit(1)

def test_a_batch_that_is_cancelled_in_a_micro_batch():
    def skip(self):
        if self.learn.iter==2: raise CancelBatch
    learn = limited_learner('never', ReplayOnOOM(4), at=())
    learn.fit(1, cbs=Callback(after_loss=skip))
    assert learn.train_iter==12 and all(p.grad is None for p in learn.model.parameters())

def test_the_replay_size_survives_a_resume(tmp_path):
    def make(at): return limited_learner('before', ReplayOnOOM(), CheckpointCallback('1ba'), at=at, path=tmp_path)
    def crash(self):
        if self.learn.train_iter==8: raise SystemError('the power failed')
    with pytest.warns(UserWarning), pytest.raises(SystemError): make((3,)).fit(1, cbs=Callback(before_batch=crash))
    learn = make(())
    learn.fit(1, resume='auto')
    assert learn.replay_on_oom.size==2

@pytest.mark.parametrize('make,words', [(lambda: SkipNaN(0), 'at_most'), (lambda: SkipNaN(1.5), 'at_most'), (lambda: RollBackOnNaN(factor=0), 'factor'), (lambda: RollBackOnNaN(at_most=0), 'at_most'),
    (lambda: RollBackOnNaN(source='disk'), 'source'), (lambda: ReplayOnOOM(0), 'integer'), (lambda: RollBackOnNaN('often'), 'often'),
    (lambda: learner(data(), RollBackOnNaN(source='checkpoint')).fit(1), 'CheckpointCallback'), (lambda: learner(data(), ReplayOnOOM(), MicroBatch(2)).fit(1), 'ReplayOnOOM')])
def test_bad_settings(make, words):
    with pytest.raises(ValueError, match=words): make()

# loaders and callbacks that fail

class Dies(Dataset):
    "Sample `at` kills the process that loads it, or raises"
    def __init__(self, at, how): self.at,self.how = at,how
    def __len__(self): return 40
    def __getitem__(self, i):
        if i==self.at:
            if self.how=='error': raise ZeroDivisionError('item is broken')
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.full((4,), i/40.), torch.ones(1)

@pytest.mark.parametrize('how,error', [('killed', RuntimeError), ('error', ZeroDivisionError)])
def test_a_worker_that_dies(how, error, tmp_path):
    "The error names the batch and the last checkpoint, from which a run with repaired data resumes"
    def make(at): return learner(None, CheckpointCallback('1ba'), path=tmp_path, dls=DataLoader(Dies(at, how), 4, num_workers=1, prefetch_factor=1))
    def learner(_, *cbs, path, dls):
        set_seed(7)
        learn = Learner(dls, model(), nn.MSELoss(), Adam, lr=.01, default_cbs=False, cbs=[TrainEvalCallback, Recorder, NonFiniteCheck, *cbs], path=path)
        learn.logger = lambda row: None
        return learn
    with pytest.raises(error) as e: make(25).fit(1)
    notes = '\n'.join(e.value.__notes__)
    newest = list_checkpoints(tmp_path/'checkpoints'/'fit-1')[0]
    assert 'epoch 0, batch ' in notes and newest.name in notes and "resume='auto'" in notes
    resumed = make(None)
    resumed.fit(1, resume='auto')
    resumed = end(resumed)
    for p in newest.parent.iterdir(): p.unlink()
    assert_same(state_after_fit(make(None)), resumed)

@pytest.mark.parametrize('e', [ValueError, KeyboardInterrupt, MemoryError, GeneratorExit, CancelFit])
@pytest.mark.parametrize('valid', [False, True])
def test_workers_end_with_the_fit(e, valid):
    def fail(self):
        if self.learn.training!=valid and self.learn.iter==1: raise e('x')
    before = {*multiprocessing.active_children()}   # workers of other tests
    dls = [DataLoader(Dies(None, ''), 4, num_workers=1) for _ in range(2)]
    learn = Learner(tuple(dls), model(), nn.MSELoss(), default_cbs=False, cbs=[TrainEvalCallback, Callback(after_pred=fail)])
    try: learn.fit(1)
    except e as raised: assert e is not CancelFit and 'after_pred`, epoch 0, batch 1' in ''.join(raised.__notes__)
    assert not {*multiprocessing.active_children()}-before and torch.is_grad_enabled() and not learn.training

@pytest.mark.parametrize('at', ['before_epoch', 'before_batch', 'after_backward', 'after_step', 'after_batch', 'after_train', 'before_save_checkpoint', 'after_save_checkpoint', 'after_fit'])
def test_a_callback_that_fails_leaves_the_checkpoint_usable(at, tmp_path):
    def make(): return learner(data(), CheckpointCallback('3ba'), path=tmp_path)
    def fail(self):
        if self.learn.train_iter>=5: raise ValueError('a mistake')
    with pytest.raises(ValueError) as e: make().fit(2, cbs=Callback(**{at:fail}))
    folder = tmp_path/'checkpoints'/'fit-1'
    assert list_checkpoints(folder)[0].name in '\n'.join(e.value.__notes__)
    resumed = make()
    resumed.fit(2, resume='auto')
    straight = learner(data())
    straight.fit(2)
    assert same(resumed.model.state_dict(), straight.model.state_dict())

def test_no_checkpoint_yet(tmp_path):
    def fail(self): raise ValueError('a mistake')
    with pytest.raises(ValueError) as e: learner(data(), CheckpointCallback(), path=tmp_path).fit(1, cbs=Callback(after_pred=fail))
    assert 'no checkpoint' in '\n'.join(e.value.__notes__)

def test_data_is_searched_for_nan_only_for_a_message(monkeypatch):
    "A fit that only warns searches the data for NaN once, for its one warning, not each time that losses are read"
    from learnkit.measure import finite
    n,find = [0],finite.find_sample_with_nan
    def count(dl):
        n[0] += 1
        return find(dl)
    monkeypatch.setattr(finite, 'find_sample_with_nan', count)
    x = torch.randn(8, 4)
    bad = [(x*torch.nan, x[:,:1])]*2
    learn = Learner(DataLoaders(bad), nn.Linear(4, 1), nn.MSELoss(), Adam, lr=.01, cbs=NonFiniteCheck('warn'))
    with learn.no_logging(), pytest.warns(UserWarning, match='input `xb'): learn.fit(3)
    assert n==[1]
