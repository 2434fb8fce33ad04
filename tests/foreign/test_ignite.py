"""What Ignite's tests require of its handlers, required of the corresponding learnkit callbacks. Where the behaviour
differs on purpose, the test says so, and `coming_from.ipynb` says why."""
from functools import partial
from math import log, nan, inf
import pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD
from torch.optim.lr_scheduler import ExponentialLR, MultiStepLR, StepLR
from learnkit.all import (Callback, CheckpointCallback, DataLoaders, EMACallback, EarlyStoppingCallback, Learner, ParamScheduler, ProgressCallback,
                          ReduceLROnPlateau, SaveModelCallback, SchedCos, SchedLin, SchedNo, StopAfter, TerminateOnNaNCallback, TorchScheduler,
                          combine_scheds, list_checkpoints, minimum, steep)
from learnkit.callbacks import intervals as every
from learnkit.callbacks.clock import Stopwatch, StopwatchCallback
from toys import learner, weights

@pytest.fixture(autouse=True)
def quiet(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

def epochs_of(cb, n=20, **kw):
    "The number of epochs that a fit with `cb` takes"
    learn = learner(**kw)
    learn.fit(n, cbs=cb)
    return len(learn.recorder.values)
def from_list(scores):
    it = iter(scores)
    return lambda learn: next(it)

# early stopping
@pytest.mark.parametrize('scores,comp,delta,patience,stops', [
    ([1., .8, .88], 'max', 0, 2, True),                      # two epochs without improvement
    ([1., .8, 1.2], 'max', 0, 2, False),
    ([42, 42], 'max', 0, 1, True),                           # a plateau is no improvement
    ([1., 2., 2.01, 3., 3.01, 3.02], 'max', .1, 2, True),    # nor is a gain below the threshold
    ([1., 1.2, .9], 'min', 0, 2, False),
    ([1.1, .95, .94, .93], 'min', .1, 2, True)])
def test_early_stopping(scores, comp, delta, patience, stops):
    cb = EarlyStoppingCallback(from_list(scores), comp, delta, patience)
    learn = learner()
    learn.fit(len(scores), cbs=cb)
    assert len(learn.recorder.values)==len(scores) and ('No improvement' in (learn.stop_reason or ''))==stops

def test_a_relative_threshold_by_logarithms():
    "Ignite's `threshold_mode='rel'` is a threshold for the logarithm of the score"
    scores = [1., 2., 2.1, 3., 3.2, 3.25]
    assert epochs_of(EarlyStoppingCallback(from_list(map(log, scores)), 'max', log(1.1), patience=2), n=6)==6
    assert epochs_of(EarlyStoppingCallback(from_list(map(log, scores+[4.]*9)), 'max', log(1.1), patience=2), n=9)==6

def test_small_steps_add_up():
    "On purpose: `min_delta` is measured from the best epoch, like Ignite's `cumulative=True`, so slow progress counts"
    assert epochs_of(EarlyStoppingCallback(from_list([0., .3, .6, .6]), 'max', .4, patience=2), n=4)==4

def test_the_state_of_early_stopping():
    a,b = (EarlyStoppingCallback(from_list(s), 'max', patience=3) for s in ([1., .8, .9], [.7, 2.]))
    learner().fit(3, cbs=a)
    b.load_state_dict(a.state_dict())
    assert (b.wait, b.best)==(2, 1.)
    assert epochs_of(b, n=9)==1   # the third epoch without improvement

@pytest.mark.parametrize('kw', [dict(patience=0), dict(patience='2'), dict(comp='up')])
def test_early_stopping_raises(kw):
    with pytest.raises((ValueError, TypeError)): learner().fit(1, cbs=EarlyStoppingCallback(**kw))

# ending a fit
@pytest.mark.parametrize('bad', [nan, inf, -inf])
def test_terminate_on_nan(bad):
    it = iter([1., .8, 1., bad, 1.])
    learn = learner(n=5, loss_func=lambda p, y: F.mse_loss(p, y)*next(it), nv=0)
    learn.fit(2, cbs=TerminateOnNaNCallback())
    assert learn.train_iter in (3, 4) and 'nan or infinite' in learn.stop_reason

def test_finite_losses_continue():
    assert epochs_of(TerminateOnNaNCallback(), n=2)==2

@pytest.mark.parametrize('n,ends', [(20, 10), (5, 5)])
def test_time_limit(monkeypatch, n, ends):
    "Each batch takes one of the ten seconds that are allowed"
    now = [0.]
    monkeypatch.setattr(every, 'monotonic', lambda: now[0])
    def second(self): now[0] += 1
    learn = learner(n=n, nv=0)
    learn.fit(1, cbs=[Callback(before_pred=second), StopAfter('10s')])
    assert learn.train_iter==ends and (learn.stop_reason is not None)==(n>10)

@pytest.mark.parametrize('much', [-5, 0, 'abc', '10 parsecs'])
def test_time_limit_raises(much):
    with pytest.raises((ValueError, TypeError)): StopAfter(much)

def test_stop_after_counts_batches():
    "On purpose: `StopAfter(6)` counts batches, where Lightning's `max_steps` counts optimizer steps"
    from learnkit.all import GradientAccumulation
    learn = learner(n=12, nv=0)
    steps = []
    learn.fit(9, cbs=[GradientAccumulation(8), StopAfter(6), Callback(after_step=lambda self: steps.append(1))])
    assert (learn.train_iter, len(steps))==(6, 3)

def test_timer(monkeypatch):
    "Only training is timed: a training batch takes one second, a validation batch ten"
    from learnkit.callbacks import clock as stopwatch
    now = [0.]
    monkeypatch.setattr(stopwatch, 'perf_counter', lambda: now[0])
    def wait(self): now[0] += 1 if self.training else 10
    class Timer(StopwatchCallback): stopwatch = Stopwatch()
    timer = Timer()
    learner(n=4, nv=2).fit(2, cbs=[Callback(before_pred=wait), timer])
    assert timer.stopwatch.seconds==8 and now[0]==48

# averaged weights
class Counts(nn.Module):
    "A weight, and buffers to which each training batch adds 1"
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.register_buffer('buffer', torch.ones(1)); self.register_buffer('count', torch.ones(1, dtype=torch.long))
    def forward(self, x):
        if self.training: self.buffer += 1; self.count += 1
        return self.weight*x

def fit_counts(cbs, n=4, epochs=1):
    "Fit a `Counts`, to whose weight each step adds 1; return the Learner"
    learn = Learner(DataLoaders([(torch.ones(1), torch.ones(1))]*n), Counts(), lambda p,y: -p.sum(), SGD, lr=1., cbs=cbs)
    learn.remove_cb(ProgressCallback).fit(epochs)
    return learn

@pytest.mark.parametrize('every', [1, 2])
def test_average_of_the_weights(every):
    "Ignite's momentum is 1-decay. On purpose, the average begins with the weights after a step, not before training"
    ema = EMACallback(decay=.5, every=every, warmup=False, at_end=False)
    fit_counts(ema, n=6)
    w,expected = [2.,3.,4.,5.,6.,7.][every-1::every],None
    for o in w: expected = o if expected is None else .5*expected + .5*o
    assert ema.averages['weight'].item()==expected and ema.n_avg==len(w)

def test_the_model_and_its_average():
    ema = EMACallback(decay=.5, warmup=False, at_end=False)
    learn = fit_counts(ema)
    with ema.averaged(): inside = learn.model.weight.item()
    assert (learn.model.weight.item(), inside)==(5., ema.averages['weight'].item())
    assert fit_counts(EMACallback(decay=.5, warmup=False)).model.weight.item()==inside   # at_end

@pytest.mark.parametrize('buffers', [True, False])
def test_buffers_of_the_average(buffers):
    "Ignite averages all buffers or none; learnkit only running statistics, not constants, counters or masks"
    ema = EMACallback(decay=.5, warmup=False, at_end=False, buffers=buffers)
    learn = fit_counts(ema)
    assert 'buffer' not in ema.averages
    with ema.averaged(): assert learn.model.count.item()==5
    if not buffers:
        with ema.averaged(): assert learn.model.buffer.item()==5

def test_the_average_warms_up():
    "With warmup the decay starts low and never exceeds the given one"
    slow,fast = (EMACallback(decay=.99, warmup=w, at_end=False) for w in (False, True))
    assert fit_counts(fast, n=20) and fit_counts(slow, n=20)
    assert slow.averages['weight']<fast.averages['weight']<21

@pytest.mark.parametrize('decay', [-.1, 1.1, 'x'])
def test_a_wrong_decay_raises(decay):
    with pytest.raises((ValueError, TypeError)): EMACallback(decay=decay)

# schedules
DOWN_UP = [1., .8, .6, .4, .2, 0., .2, .4, .6, .8]
RISE    = [(1-torch.cos(torch.tensor(torch.pi*i/10)).item())/2 for i in range(10)]
def rates(f, n=10, epochs=2, name='lr', **kw):
    "The optimizer's value of a hyperparameter at each step"
    learn = learner(n=n, nv=0, **kw)
    got = []
    learn.fit(epochs, cbs=[ParamScheduler({name:f}), Callback(after_step=lambda self: got.append(self.opt.hypers[-1][name]))])
    assert learn.recorder.hps[name]==pytest.approx(got)
    return got
def linear(*lens): return combine_scheds([n/2/sum(lens) for n in lens for _ in 'ab'], [SchedLin(1.,0.), SchedLin(0.,1.)]*len(lens))

def test_linear_cycles():
    assert rates(linear(10, 10))==pytest.approx(DOWN_UP*2, abs=1e-7)
    assert rates(linear(10, 20), epochs=3)==pytest.approx(DOWN_UP + [abs(1-i/10) for i in range(20)], abs=1e-7)
def test_cosine_cycles():
    assert rates(combine_scheds([.5,.5], [SchedCos(0.,1.)]*2))==pytest.approx(RISE*2, abs=1e-6)
def test_schedules_in_sequence():
    assert rates(combine_scheds([.5,.5], [linear(10), SchedCos(0.,1.)]))==pytest.approx(DOWN_UP+RISE, abs=1e-6)

def test_piecewise():
    points,n = [(5,.5), (15,1.), (25,0.), (35,1.), (40,.5)],50
    at,vals = zip((0,.5), *points, (n,.5))
    f = combine_scheds([(b-a)/n for a,b in zip(at, at[1:])], [SchedLin(a, b) for a,b in zip(vals, vals[1:])])
    expected = torch.tensor([.5]*5 + [.5+.05*i for i in range(10)] + [1-.1*i for i in range(10)] + [.1*i for i in range(10)]
                            + [1-.1*i for i in range(5)] + [.5]*10)
    assert rates(f, n=25)==pytest.approx(expected.tolist(), abs=1e-6)

def test_warm_up_before_another_schedule():
    f = combine_scheds([.2,.8], [SchedLin(0.,.8), SchedCos(.8, 0.)])
    got = rates(f, n=50, epochs=1)
    assert got[:11]==pytest.approx([.08*i for i in range(11)]) and got[10]==max(got) and got[-1]<.01

def test_momentum_is_scheduled_too():
    assert rates(SchedLin(.5,.9), epochs=1, name='mom', opt_func=partial(SGD, momentum=.9))==pytest.approx([.5+.04*i for i in range(10)])

def test_each_group_has_its_own_schedule():
    learn = learner(n=5, nv=0, splitter=lambda m: [[m.weight], [m.bias]])
    got = []
    learn.fit(1, cbs=[ParamScheduler({'lr':SchedLin([1.,.1], [0.,0.])}), Callback(after_step=lambda self: got.append([h['lr'] for h in self.opt.hypers]))])
    for a,b in got: assert a==pytest.approx(10*b)

@pytest.mark.parametrize('make', [partial(StepLR, step_size=3, gamma=.5), partial(ExponentialLR, gamma=.9), partial(MultiStepLR, milestones=[2,5], gamma=.1)])
@pytest.mark.parametrize('interval', ['step', 'epoch'])
def test_pytorch_schedulers(make, interval):
    learn = learner(n=4, nv=0, lr=1.)
    got = []
    learn.fit(3, cbs=[TorchScheduler(make, interval), Callback(before_step=lambda self: got.append(self.opt.hypers[-1]['lr']))])
    opt = SGD([torch.ones(1, requires_grad=True)], lr=1.)
    sched,expected = make(opt),[]
    for i in range(12):
        expected.append(opt.param_groups[0]['lr'])
        opt.step()
        if interval=='step' or i%4==3: sched.step()
    assert got==pytest.approx(expected)

@pytest.mark.parametrize('pcts,scheds', [([.5], []), ([.5,.6], [SchedNo(1,1)]*2), ([-1,2], [SchedNo(1,1)]*2)])
def test_schedules_raise(pcts, scheds):
    with pytest.raises(ValueError): combine_scheds(pcts, scheds)

def test_plateau():
    "On purpose: it acts after `patience` epochs without improvement, Ignite one epoch later; and it lowers all groups"
    accs = [3, 7, 7, 9, 10, 11, 8, 8, 4, 7]
    learn = learner(lr=1., nv=1, splitter=lambda m: [[m.weight], [m.bias]])
    got = []
    last = Callback(after_epoch=lambda self: got.append([h['lr'] for h in self.opt.hypers]))
    last.order = 99
    learn.fit(10, cbs=[ReduceLROnPlateau(from_list(accs), 'max', min_delta=1.99, factor=2., patience=2, min_lr=1e-7), last])
    assert got==[[v,v] for v in [1]*7+[.5,.5,.25]]

# lr_find
def test_learning_rates_of_the_range_test():
    learn = learner(n=100, nv=0)
    seen = []
    learn.add_cb(Callback(after_step=lambda self: seen.append(self.opt.hypers[-1]['lr'])))
    before = weights(learn)
    learn.lr_find(1e-6, 1., num_it=40, stop_div=False, show_plot=False)
    assert torch.equal(weights(learn), before)
    assert seen==pytest.approx([1e-6*1e6**(i/40) for i in range(40)]) and learn.opt is None
@pytest.mark.parametrize('num_it', [6, 50, 150])
def test_more_iterations_than_batches(num_it):
    learn = learner(n=20, nv=0)
    seen = []
    learn.add_cb(Callback(after_step=lambda self: seen.append(1)))
    learn.lr_find(num_it=num_it, stop_div=False, show_plot=False)
    assert len(seen)==num_it
def test_the_range_test_ends_when_the_loss_explodes():
    learn = learner(n=200, nv=0)
    seen = []
    learn.add_cb(Callback(after_step=lambda self: seen.append(1)))
    learn.lr_find(1e-3, 1e6, num_it=200, show_plot=False)
    assert len(seen)<200
def test_groups_in_the_range_test():
    learn = learner(n=50, nv=0, splitter=lambda m: [[m.weight], [m.bias]])
    seen = []
    learn.add_cb(Callback(after_step=lambda self: seen.append([h['lr'] for h in self.opt.hypers])))
    learn.lr_find([.1, .01], [1., 1.], num_it=30, stop_div=False, show_plot=False)
    assert all(a<b for x,y in zip(seen, seen[1:]) for a,b in zip(x, y))
def test_suggestions():
    learn = learner(n=100, nv=0)
    res = learn.lr_find(suggest_funcs=(minimum, steep), show_plot=False)
    assert res._fields==('minimum','steep') and all(1e-7<=v<=10 for v in res)

# checkpoints
@pytest.mark.parametrize('keep', [1, 2, 3])
def test_keep_the_last_checkpoints(tmp_path, keep):
    learn = learner(path=tmp_path)
    learn.fit(5, cbs=CheckpointCallback('1ep', keep=keep))
    assert len(list_checkpoints(tmp_path/'checkpoints/fit-1'))==keep
def test_keep_all_checkpoints(tmp_path):
    learner(path=tmp_path).fit(5, cbs=CheckpointCallback('1ep', keep=None))
    assert len(list_checkpoints(tmp_path/'checkpoints/fit-1'))==5

def test_the_best_weights_are_loaded(tmp_path):
    "The weights of the best epoch are loaded at the end"
    seen = []
    learn = learner(path=tmp_path, n=3)
    note = Callback(after_epoch=lambda self: seen.append(weights(self.learn)))
    learn.fit(4, cbs=[note, SaveModelCallback(from_list([.5, .9, .7, .9]), 'max')])
    assert torch.equal(weights(learn), seen[1])
def test_save_every_second_epoch(tmp_path):
    learner(path=tmp_path).fit(5, cbs=SaveModelCallback(every_epoch=2, fname='m'))
    assert sorted(p.name for p in (tmp_path/'models').iterdir())==['m_0.pth','m_2.pth','m_4.pth']

def test_recovery(tmp_path):
    "A run interrupted after two epochs and resumed trains the same weights as an uninterrupted one"
    def make(path): return learner(path=path, opt_func=partial(SGD, momentum=.9))
    whole = make(tmp_path/'whole')
    whole.fit(4)
    def end(self):
        if self.epoch==2: raise KeyboardInterrupt
    part = make(tmp_path/'part')
    with pytest.raises(KeyboardInterrupt): part.fit(4, cbs=[CheckpointCallback('1ep'), Callback(before_epoch=end)])
    again = make(tmp_path/'part')
    again.fit(4, cbs=CheckpointCallback('1ep'), resume='auto')
    assert torch.equal(weights(again), weights(whole))

def test_loading_into_another_architecture(tmp_path):
    "`load` raises an error that changes nothing; with `strict=False` it loads exactly the weights whose names match"
    a,b = nn.Sequential(nn.Linear(4,4), nn.Linear(4,1)),nn.Sequential(nn.Linear(4,4), nn.ReLU(), nn.Linear(4,1))
    one,two = (learner(model=m, path=tmp_path) for m in (a,b))
    one.save('m')
    before = {k:v.clone() for k,v in b.state_dict().items()}
    def unchanged(): return {k for k,v in b.state_dict().items() if torch.equal(v, before[k])}
    with pytest.raises(ValueError, match='to another model'): two.load('m')
    assert unchanged()=={*before}
    two.load('m', strict=False)
    assert unchanged()=={'2.weight','2.bias'}
    assert torch.equal(a[0].weight, b[0].weight) and torch.equal(a[0].bias, b[0].bias)
