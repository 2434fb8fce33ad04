"""One metric of two Learners counted the batches of both, without an error, where one of them ran inside a phase of the other one."""
import threading
import pytest, torch
from torch import nn
from learnkit.all import AvgMetric, Callback, CancelEpoch, DataLoaders, Learner, Recorder, TorchMetric, ValueMetric, columns

class Updated:
    "A metric with the methods that torchmetrics' have"
    def __init__(self): self.reset()
    def reset(self): self.total,self.n = 0.,0
    def update(self, pred, targ): self.total,self.n = self.total+(pred-targ).abs().sum().item(),self.n+len(pred)
    def compute(self): return self.total/self.n

def mae(pred, targ): return (pred-targ).abs().mean()
def both(pred, targ): return {'one':mae(pred, targ), 'two':2*mae(pred, targ)}
MAKERS = dict(mean=lambda: AvgMetric(mae), updated=Updated, columns=lambda: columns(both, ['one', 'two']))

def learner(metric, *cbs, seed=0, **kwargs):
    torch.manual_seed(seed)
    data = [(torch.randn(2, 1), torch.randn(2, 1)) for _ in range(3)]
    learn = Learner(DataLoaders(data, data), nn.Linear(1, 1), nn.MSELoss(), lr=.1, metrics=metric, cbs=cbs, **kwargs)
    learn.logger = lambda row: None
    return learn.remove_cb(learn.progress)

def inner_at(event, inner, run):
    "A callback that runs the other Learner once, at the second batch if there are batches"
    ran = []
    def f(cb):
        if ran or event=='after_batch' and (cb.training or cb.iter!=1): return
        ran.append(1)
        with torch.enable_grad(): run(inner)
    return Callback(**{event:f})

def values(learn): return [v for k,v in learn.recorder.history[-1].items() if k not in ('epoch', 'time')]
RUNS = dict(fit=lambda learn: learn.fit(1), validate=lambda learn: learn.validate())

@pytest.mark.parametrize('run', RUNS.values(), ids=RUNS)
@pytest.mark.parametrize('make', MAKERS.values(), ids=MAKERS)
def test_in_a_phase_of_the_other_learner(make, run):
    metric = make()
    inner = learner(metric, seed=1)
    outer = learner(metric, inner_at('after_batch', inner, run))
    with pytest.raises(ValueError, match='is in use in another Learner') as e: outer.fit(1)
    assert len(str(e.value))<220
    inner.fit(1)   # both work after the error
    outer.fit(1)
    alone = learner(make())
    alone.fit(2)
    assert outer.recorder.history[-1].keys()==alone.recorder.history[-1].keys()

@pytest.mark.parametrize('event', ['before_fit','before_epoch','before_train','after_train','after_validate','after_epoch'])
@pytest.mark.parametrize('run', RUNS.values(), ids=RUNS)
def test_between_the_phases_of_the_other_learner(run, event):
    "There each phase counts its own batches only"
    metric = AvgMetric(mae)
    at = inner_at(event, learner(metric, seed=1), run)
    at.order = 60 if event.startswith('after') else 40   # outside of the Recorder's phase
    outer,alone = learner(metric, at),learner(AvgMetric(mae))
    outer.fit(2); alone.fit(2)
    assert values(outer)==values(alone)

def test_in_training_only_metrics_of_training_are_in_use():
    metric = AvgMetric(mae)
    inner = learner(metric, seed=1)
    in_training = lambda: Callback(before_batch=lambda cb: cb.training and cb.iter==1 and inner.fit(1))
    outer,alone = learner(metric, in_training()),learner(AvgMetric(mae))
    outer.fit(2); alone.fit(2)
    assert values(outer)==values(alone)
    outer = learner(metric, in_training(), Recorder(train_metrics=True))
    with pytest.raises(ValueError, match='the metric `mae` is in use'): outer.fit(1)

def test_after_a_cancelled_epoch():
    metric = AvgMetric(mae)
    inner = learner(metric, seed=1)
    def cancel(cb):
        if not cb.training: raise CancelEpoch
    outer = learner(metric, Callback(before_batch=cancel, after_epoch=lambda cb: inner.fit(1)))
    outer.fit(1)
    assert len(inner.recorder.history)==1

def test_own_validations_and_copies_are_not_others():
    metric = AvgMetric(mae)
    found = []
    learn = learner(metric, Callback(after_batch=lambda cb: cb.learn.mode=='fit' and found.append(cb.learn.validate()[1])))
    learn.fit(1)
    assert len(found)==6 and learn.recorder.history[-1]['mae']==found[-1]

def test_in_another_thread():
    metric = AvgMetric(mae)
    other,errors = learner(metric, seed=1),[]
    def run():
        try: other.fit(1)
        except ValueError as e: errors.append(str(e))
    def begin(cb):
        if cb.training or cb.iter: return
        thread = threading.Thread(target=run)
        thread.start(); thread.join()
    learner(metric, Callback(after_batch=begin)).fit(1)
    assert len(errors)==1 and 'mae' in errors[0]

@pytest.mark.parametrize('run', RUNS.values(), ids=RUNS)
def test_a_metric_that_counts_no_batches_may_be_shared(run):
    metric = ValueMetric(lambda: 3.)
    outer = learner(metric, inner_at('after_batch', learner(metric, seed=1), run))
    outer.fit(1)
    assert values(outer)[-1]==3.
