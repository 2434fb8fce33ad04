"""What torchmetrics requires of a training loop: each epoch's value equals one call on all of its data, training and
validation do not mix, nothing is left from the epoch before, and each kind of metric is right or raises an error."""
from functools import partial
import pickle
import pytest, torch, torchmetrics as tm
from torch import nn
from torch.nn import functional as F
from torchmetrics import functional as tmf
from hypothesis import given, strategies as st
from learnkit.all import Callback, CheckpointCallback, DataLoaders, Learner, ProgressCallback, Recorder, TorchMetric
from toys import draws, weights

N = 3
def data(sizes, seed=0):
    g = torch.Generator().manual_seed(seed)
    return [(torch.randn(n, 4, generator=g), torch.randint(N, (n,), generator=g)) for n in sizes]
def fit(metrics, train=(5,3), valid=(4,4,1), epochs=2, cbs=(), **kw):
    "Fit; return the Learner and {(epoch, training): (all predictions, all targets)}"
    torch.manual_seed(0)
    learn = Learner(DataLoaders(data(train), data(valid, 1)), nn.Linear(4,N), F.cross_entropy, torch.optim.SGD, lr=.5, metrics=metrics, **kw)
    learn.remove_cb(ProgressCallback)
    seen = {}
    def note(self): seen.setdefault((self.epoch, self.training), []).append((self.pred.detach().clone(), self.y))
    with learn.no_logging(): learn.fit(epochs, cbs=[Callback(after_loss=note), *cbs])
    return learn,{k:[torch.cat(o) for o in zip(*v)] for k,v in seen.items()}
def acc(**kw): return tm.Accuracy(task='multiclass', num_classes=N, **kw)

KINDS = dict(accuracy=acc, f1=partial(tm.F1Score, task='multiclass', num_classes=N, average='macro'),
             auroc=partial(tm.AUROC, task='multiclass', num_classes=N), kappa=partial(tm.CohenKappa, task='multiclass', num_classes=N),
             top2=partial(acc, top_k=2), calibration=partial(tm.CalibrationError, task='multiclass', num_classes=N))

@pytest.mark.parametrize('kind', KINDS)
def test_an_epoch_is_one_call_on_all_of_its_data(kind):
    learn,seen = fit(KINDS[kind]())
    for epoch,row in enumerate(learn.recorder.values):
        assert row[-1]==pytest.approx(KINDS[kind]()(*seen[epoch,False]).item(), abs=1e-6)

@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.lists(st.integers(1, 9), min_size=1, max_size=4))
@draws(10)
def test_any_split_into_batches(train, valid):
    learn,seen = fit(acc(average='micro'), train, valid)
    assert [r[-1] for r in learn.recorder.values]==pytest.approx([acc(average='micro')(*seen[e,False]).item() for e in range(2)])

def test_training_and_validation_do_not_mix():
    torch.manual_seed(0)
    learn = Learner(DataLoaders(data((5,3)), data((4,1), 1)), nn.Linear(4,N), F.cross_entropy, torch.optim.SGD, lr=.5, metrics=acc())
    learn.remove_cb(ProgressCallback).recorder.train_metrics = True
    seen = {True:[], False:[]}
    with learn.no_logging(): learn.fit(2, cbs=Callback(after_loss=lambda self: seen[self.training].append((self.pred.detach().clone(), self.y))))
    names = learn.recorder.metric_names
    for training,col in ((True, 'train_multiclass_accuracy'), (False, 'valid_multiclass_accuracy')):
        per = len(seen[training])//2
        for e,row in enumerate(learn.recorder.values):
            both = [torch.cat(o) for o in zip(*seen[training][e*per:(e+1)*per])]
            assert row[names.index(col)-1]==pytest.approx(acc()(*both).item())

def test_nothing_is_left_between_runs():
    m = acc()
    learn,seen = fit(m)
    first = learn.validate()[-1]
    assert learn.validate()[-1]==first
    learn.get_preds()
    assert learn.validate()[-1]==first

def test_validation_within_an_epoch():
    "A validation within an epoch does not change the epoch's own value"
    def row(*cbs):
        learn,_ = fit(acc(), cbs=cbs)
        return [list(r) for r in learn.recorder.values]
    assert row(Callback(after_batch=lambda self: self.learn.validate() if self.training and self.iter==0 else None))==row()

# kinds of metric
def test_functions():
    "A function of torchmetrics returns the batch's mean, which is averaged over samples, like any other function"
    learn,seen = fit(partial(tmf.accuracy, task='multiclass', num_classes=N))
    assert learn.recorder.metric_names[-2]=='accuracy'
    assert learn.recorder.values[-1][-1]==pytest.approx(acc(average='micro')(*seen[1,False]).item())

def test_several_metrics():
    learn,seen = fit([acc(), tm.MatthewsCorrCoef(task='multiclass', num_classes=N), TorchMetric(acc(average='micro'), 'mine')])
    assert learn.recorder.metric_names[3:-1]==['multiclass_accuracy','multiclass_matthews_corr_coef','mine']
    assert learn.recorder.values[-1][-1]==pytest.approx(acc(average='micro')(*seen[1,False]).item())

def test_the_parts_of_a_collection():
    parts = tm.MetricCollection([acc(), tm.F1Score(task='multiclass', num_classes=N)])
    learn,seen = fit([*parts.values()])
    whole = tm.MetricCollection([acc(), tm.F1Score(task='multiclass', num_classes=N)])(*seen[1,False])
    assert list(learn.recorder.values[-1][2:])==pytest.approx([v.item() for v in whole.values()])

def test_regression_and_activation():
    x = torch.randn(12, 2)
    y = x.sum(1, keepdim=True)
    dls = DataLoaders([(x[:8], y[:8])], [(x[8:11], y[8:11]), (x[11:], y[11:])])
    learn = Learner(dls, nn.Linear(2,1), nn.MSELoss(), metrics=[tm.MeanSquaredError(), tm.R2Score(), TorchMetric(tm.MeanAbsoluteError(), activation=torch.sigmoid)])
    res,p = learn.validate(),learn.model(x[8:]).detach()
    assert res[0]==pytest.approx(res[1]) and res[2]==pytest.approx(tm.R2Score()(p, y[8:]).item(), abs=1e-5)
    assert res[3]==pytest.approx((p.sigmoid()-y[8:]).abs().mean().item(), abs=1e-6)

@pytest.mark.parametrize('average', [None, 'none'])
def test_a_column_for_each_class(average):
    learn,seen = fit(acc(average=average))
    assert list(learn.recorder.values[-1][-N:])==pytest.approx(acc(average=average)(*seen[1,False]).tolist())   # a column each

class Total(tm.Metric):
    "A user-defined metric"
    def __init__(self): super().__init__(); self.add_state('total', torch.tensor(0.), dist_reduce_fx='sum')
    def update(self, pred, targ): self.total += pred.detach().sum()
    def compute(self): return self.total

def test_a_user_defined_metric():
    learn,seen = fit(Total())
    assert learn.recorder.values[-1][-1]==pytest.approx(seen[1,False][0].sum().item(), abs=1e-4)

def test_a_metric_that_fails_is_named_in_a_note():
    "`MeanSquaredError` fails for class indices as targets: a note of the error names the metric"
    with pytest.raises(Exception) as e: fit(tm.MeanSquaredError())
    assert any('mean_squared_error' in n for n in e.value.__notes__)

# files and states
def test_pickling():
    learn,_ = fit(acc())
    m = pickle.loads(pickle.dumps(learn.metrics[0]))
    assert m.value==learn.metrics[0].value and m.name=='multiclass_accuracy'

def test_training_metrics_continue_after_a_resume(tmp_path):
    "The training metrics of an epoch that is resumed in its middle cover the whole epoch"
    def make(path):
        torch.manual_seed(0)
        learn = Learner(DataLoaders(data((5,3,4,2)), data((4,), 1)), nn.Linear(4,N), F.cross_entropy, torch.optim.SGD, lr=.5, metrics=acc(), path=path)
        learn.remove_cb(ProgressCallback).recorder.train_metrics = True
        learn.logger = lambda row: None
        return learn
    def end(self):
        if self.training and self.train_iter==2: raise KeyboardInterrupt
    whole,part,again = make(tmp_path/'a'),make(tmp_path/'b'),make(tmp_path/'b')
    whole.fit(1)
    with pytest.raises(KeyboardInterrupt): part.fit(1, cbs=[CheckpointCallback('1ba'), Callback(before_batch=end)])
    again.fit(1, cbs=CheckpointCallback('1ba'), resume='auto')
    assert list(again.recorder.values[0])==list(whole.recorder.values[0]) and torch.equal(weights(again), weights(whole))
