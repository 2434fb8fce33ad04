"""Monitor and trackers agree with reference implementations, torch's scheduler and fastai's callbacks"""
import io, math, operator, warnings
import numpy as np, pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from torch.optim import SGD, Adam
from learnkit.loop.callback import Callback
from learnkit.loop.events import CancelEpoch, CancelFit, CancelTrain, CancelValid, event
from learnkit.callbacks.cycles import ValidateEvery
from learnkit.callbacks.monitor import lower_better, mk_comp, metric_prefers_lower
from learnkit.callbacks.monitor import Monitor
from learnkit.loop.run import null_logger
from learnkit.callbacks.trackers import EarlyStoppingCallback, TerminateOnNaNCallback, ThresholdStopper
from learnkit.callbacks.trackers import ReduceLROnPlateau
from learnkit.callbacks.trackers import SaveModelCallback
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.callbacks.monitor import OnBetter, TrackerCallback
from learnkit.learner.learner import Learner
from learnkit.measure.metric import AvgMetric, Metric
from learnkit.measure.metrics import Perplexity, accuracy, error_rate, mae, mse, rmse
from learnkit.measure.accum import F1Score, RocAuc
from toys import at, batches, draws, equal, few, learner, throw, weights

quick = draws(20)
nan,inf = float('nan'),float('inf')

class Prescribe(Callback):
    "Writes given values into the Recorder's column `x` before the trackers read it"
    order,modes = 51,('fit',)
    def __init__(self, values): self.values = values
    def before_fit(self): self.learn.recorder.metric_names.insert(-1, 'x')   # the last is the time
    def after_epoch(self): self.learn.recorder.history[-1]['x'] = self.values[self.learn.epoch]

def track(values, *cbs, start_epoch=0, **kw):
    "Train a Learner whose trackers see `values`, one for each epoch"
    learn = learner(n=1, nv=1, cbs=[Prescribe(values), *cbs], **kw)
    learn.logger = null_logger
    learn.fit(len(values), start_epoch=start_epoch)
    return learn

numbers = st.one_of(st.floats(-5, 5).map(lambda x: round(x, 1)), st.sampled_from([nan, None, inf]))
series = st.lists(numbers, min_size=1, max_size=14)
deltas = st.sampled_from([0., .1, .5, 1.])

# Monitor
@pytest.mark.parametrize('name', '''train_loss valid_loss loss mse_loss dice_loss accuracy_loss error_rate rmse mse mae msle exp_rmspe perplexity wer nll
    mean_squared_error MeanSquaredError mean_absolute_percentage_error hamming_loss brier_score_loss log_loss fid'''.split())
def test_lower(name): assert lower_better(name) is True

@pytest.mark.parametrize('name', '''accuracy valid_accuracy train_accuracy accuracy_multi top_k_accuracy f1_score F1Score f1_score_multi
    fbeta_score roc_auc_score RocAuc precision_score recall_score dice r2_score jaccard_score matthews_corrcoef cohen_kappa_score explained_variance_score bleu acc auc'''.split())
def test_higher(name): assert lower_better(name) is False

@pytest.mark.parametrize('name', ['x', 'temperature', 'glossy', 'lossy', 'errand', 'd2_absolute_error_score', '', '<lambda>', 'accurate_err_accuracy'])
def test_unclear_names_have_no_direction(name): assert lower_better(name) is None

def test_directions_of_learnkits_metrics():
    for m in (mse, mae, rmse, error_rate, Perplexity()): assert lower_better(getattr(m, 'name', getattr(m, '__name__', ''))) is True
    for m in (F1Score(), RocAuc()): assert lower_better(m.name) is False

class Torchlike:
    higher_is_better = False
    def update(self, pred, targ): self.v = (pred-targ).abs().mean()
    def compute(self): return self.v
    def reset(self): pass
def up(pred, targ): return pred.mean()
up.higher_better = True
def odd(pred, targ): return pred.mean()
def my_accuracy(pred, targ): return pred.mean()
my_accuracy.lower_better = True   # contrary to its name

@pytest.mark.parametrize('metric,name,lower', [
    (Torchlike(), 'torchlike', True), (up, 'up', False), (rmse, 'rmse', True), (my_accuracy, 'my_accuracy', True)])
def test_direction_from_a_metrics_attribute(metric, name, lower):
    tracker = TrackerCallback(name)
    learner(metrics=metric, cbs=tracker).fit(1)
    assert tracker.watch.is_lower_better==lower and math.isfinite(tracker.best)

@pytest.mark.parametrize('metric', [rmse, AvgMetric(mae), F1Score(average='macro')])
def test_a_metric_stands_for_its_column(metric):
    "A metric as `monitor` means its column, even if it is callable as a function of the Learner would be"
    data = [(torch.randn(8,4), torch.randint(2, (8,))) for _ in range(2)] if isinstance(metric, type(F1Score())) else batches(2)
    loss,out = (nn.CrossEntropyLoss(),2) if len(data[0][1].shape)==1 else (nn.MSELoss(),1)
    tracker = TrackerCallback(metric)
    learn = Learner((data, data), nn.Linear(4,out), loss, SGD, metrics=metric, cbs=tracker)
    learn.fit(2)
    column = learn.recorder.history[learn.metrics[0].name]
    assert tracker.best==(max if out==2 else min)(column)

def test_the_prefix_of_a_column_is_ignored():
    from learnkit.measure.recorder import Recorder
    tracker = TrackerCallback('valid_my_accuracy')
    learn = learner(metrics=my_accuracy, cbs=tracker)
    learn.recorder.train_metrics = True
    learn.fit(1)
    assert tracker.watch.is_lower_better

comps = [np.less, operator.lt, torch.lt, 'min', np.less_equal, lambda a,b: a<b], \
        [np.greater, operator.gt, torch.gt, 'max', torch.ge, lambda a,b: a>b]
@pytest.mark.parametrize('comp,lower', [(c,low) for cs,low in zip(comps, (True,False)) for c in cs])
def test_comparisons(comp, lower):
    f,low = mk_comp(comp)
    assert low is lower and f(1.,2.) is lower and f(2.,1.) is not lower

@pytest.mark.parametrize('comp', ['less', '', 1, operator.eq, lambda a,b: True])
def test_bad_comparisons(comp):
    with pytest.raises(ValueError, match="'min'"): TrackerCallback('x', comp)

@pytest.mark.parametrize('kw,words', [(dict(min_delta=-1), '0 or more'), (dict(min_delta=nan), '0 or more'), (dict(nan='no'), "'worse', 'skip' or 'raise'"),
                                      (dict(monitor=3), 'name of a column')])
def test_bad_settings(kw, words):
    for cls in (TrackerCallback, EarlyStoppingCallback, SaveModelCallback, ReduceLROnPlateau, Monitor):
        with pytest.raises((ValueError,TypeError), match=words): cls(**kw)

@quick
@given(series, deltas, st.booleans(), st.sampled_from(['worse','skip']))
def test_best(values, delta, lower, policy):
    "The monitor agrees with a reference implementation"
    m = Monitor('x', 'min' if lower else 'max', delta, policy)
    m.start(learner_with_x)
    sign,best = (1 if lower else -1),None
    for v in values:
        got = m.update(v)
        if v is None or (policy=='skip' and math.isnan(v)): want = None
        elif math.isnan(v): want = False
        else: want = (sign*v + delta < sign*(sign*inf if best is None else best))
        if want: best = v
        assert got is want
    assert m.best==(sign*inf if best is None else best)

class learner_with_x:
    metrics = []
    class recorder: metric_names = ['epoch', 'train_loss', 'x', 'time']; history = [{}]

def test_nan_raises():
    with pytest.raises(ValueError, match='`x` is nan'): track([1., nan], TrackerCallback('x', 'min', nan='raise'))

@pytest.mark.parametrize('v', ['high', [1,2], torch.ones(2)])
def test_values_that_are_not_numbers(v):
    with pytest.raises(TypeError, match='one number'): track([v], TrackerCallback('x', 'min'))

@pytest.mark.parametrize('v', [torch.tensor(2.), np.float32(2), 2, np.array([2.]), True+1])
def test_values_that_are_numbers(v): assert track([v], TrackerCallback('x', 'min')).tracker.best==2.

@pytest.mark.parametrize('name,words', [('valid_los', 'did you mean `valid_loss`'), ('zzz', 'known are: train_loss, valid_loss'),
                                        ('time', 'no column'), ('epoch', 'no column')])
@pytest.mark.parametrize('cls', [TrackerCallback, EarlyStoppingCallback, SaveModelCallback, ReduceLROnPlateau])
def test_unknown_column(name, words, cls):
    seen = []
    learn = learner(cbs=[cls(name), at('before_epoch', lambda cb: seen.append(1))])
    with pytest.raises(ValueError) as e: learn.fit(1)
    assert words in str(e.value) and not seen

def test_unclear_direction():
    "A higher metric counts as better, as in fastai, with a warning; a function needs `comp`"
    learn = learner(metrics=AvgMetric(odd), cbs=TrackerCallback('odd'))
    with pytest.warns(UserWarning, match="comp='min' or comp='max'.* higher counts as better"): learn.fit(1)
    assert learn.tracker.watch.is_lower_better is False
    with pytest.raises(ValueError, match="comp='min' or comp='max'"): learn.fit(1, cbs=TrackerCallback(lambda learn: learn.epoch))

def test_no_recorder():
    from learnkit.learner.learner import TrainEvalCallback
    learn = learner(default_cbs=False, cbs=[TrainEvalCallback, TrackerCallback()])
    with pytest.raises(ValueError, match='no Recorder'): learn.fit(1)
    best = TrackerCallback(lambda learn: -learn.train_iter, 'min')
    learner(default_cbs=False, cbs=[TrainEvalCallback, best]).fit(2)
    assert best.best==-6

@pytest.mark.parametrize('nv,name', [(1,'valid_loss'), (0,'train_loss')])
def test_default(nv, name):
    learn = learner(nv=nv, cbs=TrackerCallback(None))
    learn.fit(2)
    assert learn.tracker.watch.name==name and learn.tracker.best==min(learn.recorder.history[name])
    if not nv:
        with pytest.raises(ValueError, match='nothing is validated'): learner(nv=0, cbs=TrackerCallback()).fit(1)

def test_fastai_signatures():
    for cls,args in ((TrackerCallback, ()), (EarlyStoppingCallback, (2,)), (SaveModelCallback, ('m', False, True, True)), (ReduceLROnPlateau, (2, 5., 1e-3))):
        cb = cls('valid_loss', np.less, .1, *args, False)
        assert (cb.monitor, cb.watch.is_lower_better, cb.watch.min_delta, cb.reset_on_fit)==('valid_loss', True, .1, False)
    assert (cb.patience, cb.factor, cb.min_lr)==(2, 5., 1e-3)
    assert [c.order for c in (TerminateOnNaNCallback, TrackerCallback, SaveModelCallback, ReduceLROnPlateau, EarlyStoppingCallback)]==[-9,60,61,62,63]

@pytest.mark.parametrize('reset', [True, False])
def test_reset_on_fit(reset):
    learn = track([1., 5.], TrackerCallback('x', 'min', reset_on_fit=reset))
    learn.prescribe.values = [3., 2.]
    learn.fit(2)
    assert learn.tracker.best==(2. if reset else 1.)

# early stopping, plateau
def epochs_of_early_stopping(values, patience, delta, lower):
    "The number of trained epochs, computed without a Monitor"
    best,wait = inf,0
    for i,v in enumerate(values):
        if v is None: continue
        v = v if lower else -v
        if v + delta < best: best,wait = v,0   # false for nan
        else: wait += 1
        if wait>=patience: return i+1
    return len(values)

@quick
@given(series, st.integers(1, 4), deltas, st.booleans())
def test_early_stopping(values, patience, delta, lower):
    learn = track(values, EarlyStoppingCallback('x', 'min' if lower else 'max', delta, patience))
    n = epochs_of_early_stopping(values, patience, delta, lower)
    assert len(learn.recorder.history)==n
    if n<len(values): assert 'early stopping' in learn.stop_reason

@draws(15)
@given(st.lists(st.floats(-5,5).map(lambda x: round(x,1)) | st.just(nan), min_size=1, max_size=12), st.integers(1, 3), deltas, st.booleans())
def test_like_fastai(values, patience, delta, lower):
    "fastai's callbacks on learnkit's Learner find the same best values, and stop at the same epoch"
    theirs = pytest.importorskip('fastai.callback.tracker')
    comp = np.less if lower else np.greater
    kept = []
    for lib in (theirs.EarlyStoppingCallback, EarlyStoppingCallback):
        with pytest.MonkeyPatch.context() as mp:
            out = []
            mp.setattr('builtins.print', lambda *a, **kw: out.append(a))
            learn = track(values, lib('x', comp, delta, patience))
        messages = out or [learn.stop_reason]*bool(learn.stop_reason)   # fastai prints, even with logging switched off
        kept.append((len(learn.recorder.history), learn.early_stopping.best, len(messages)))
    assert kept[0]==kept[1]

@quick
@given(series.map(lambda vs: [v for v in vs if v is not None] or [1.]),
       st.integers(1, 4), deltas, st.booleans(), st.sampled_from([2., 10., 3.]), st.sampled_from([0., .01, .04, .2]))
def test_plateau_agrees_with_torch(values, patience, delta, lower, factor, min_lr):
    "Unlike torch's scheduler, `patience` is one epoch less, and a rate below `min_lr` is not raised to it"
    learn = track(values, ReduceLROnPlateau('x', 'min' if lower else 'max', delta, patience, factor, min_lr))
    opt = SGD([nn.Parameter(torch.zeros(1))], lr=.05)
    args = 'min' if lower else 'max',1/factor,patience-1,delta,'abs',0,min(min_lr, .05),0
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, *args)
    lrs = []
    for v in values:
        lrs.append(opt.param_groups[0]['lr'])
        sched.step(v)
    assert learn.recorder.lrs==pytest.approx(lrs)
    assert learn.opt.hypers[-1]['lr']==pytest.approx(opt.param_groups[0]['lr'])

def test_plateau_lowers_every_group():
    "The optimizer uses the lowered rates; fastai's callback has no effect on torch's optimizers"
    learn = learner(n=1, cbs=[Prescribe([1.]*3), ReduceLROnPlateau('x', 'min')], splitter=lambda m: [[m.weight],[m.bias]], lr=slice(.01,.1))
    learn.fit(3)
    assert [h['lr'] for h in learn.opt.hypers]==pytest.approx([1e-4, 1e-3])
    assert [g['lr'] for g in learn.opt.param_groups]==pytest.approx([1e-4, 1e-3])

def test_plateau_and_a_schedule():
    learn = learner(n=1, cbs=[Prescribe([1.]*4), ReduceLROnPlateau('x', 'min'), at('before_batch', lambda cb: cb.learn.opt.set_hyper('lr', .3))])
    with pytest.warns(UserWarning, match='a schedule sets them, too'): learn.fit(4)

@pytest.mark.parametrize('make,words', [
    (lambda: EarlyStoppingCallback(patience=0), '`patience` must be a number of epochs, 1 or more'),
    (lambda: EarlyStoppingCallback(patience=-2), '1 or more'),
    (lambda: EarlyStoppingCallback(patience=1.5), '1 or more'),
    (lambda: ReduceLROnPlateau(patience=0), '1 or more'),
    (lambda: ReduceLROnPlateau(factor=1), 'more than 1'),
    (lambda: ReduceLROnPlateau(factor=.1), 'for a tenth write 10'),
    (lambda: ReduceLROnPlateau(factor=-2), 'more than 1'),
    (lambda: ReduceLROnPlateau(factor=nan), 'more than 1'),
    (lambda: ReduceLROnPlateau(min_lr=-1), '0 or more'),
    (lambda: SaveModelCallback(every_epoch=-1), '1 or more'),
    (lambda: SaveModelCallback(every_epoch=True, at_end=True), 'pass only one'),
    (lambda: SaveModelCallback(every='1ep', at_end=True), 'pass only one'),
    (lambda: SaveModelCallback(every='2x'), "'500ba'"),
    (lambda: ThresholdStopper(nan), 'must be a number'),
    (lambda: ThresholdStopper(1, every='5ba'), 'pass a function'),
    (lambda: OnBetter('valid_loss'), 'must be a function'),
    (lambda: TerminateOnNaNCallback('5'), "'500ba'")])
def test_settings(make, words):
    with pytest.raises((ValueError,TypeError), match=words): make()

@quick
@given(series, st.floats(-5, 5).map(lambda x: round(x, 1)), st.booleans())
def test_threshold(values, threshold, lower):
    learn = track(values, ThresholdStopper(threshold, 'x', 'min' if lower else 'max'))
    hits = [i for i,v in enumerate(values) if v is not None and (v<=threshold if lower else v>=threshold)]
    assert len(learn.recorder.history)==(hits[0]+1 if hits else len(values))

def test_threshold_within_an_epoch():
    learn = learner(n=9, cbs=ThresholdStopper(4, lambda learn: learn.train_iter, 'max', every='3ba'))
    learn.fit(2)
    assert learn.train_iter==6 and learn.stop_reason and len(learn.recorder.history)==1

@quick
@given(series)
def test_on_better(values):
    seen = []
    track(values, OnBetter(lambda learn: seen.append(learn.epoch), 'x', 'min'))
    finite = [(i,v) for i,v in enumerate(values) if v is not None and not math.isnan(v)]
    assert seen==[i for i,v in finite if v<min((w for j,w in finite if j<i), default=inf)]

def test_all_callbacks_see_the_last_epoch():
    "fastai's early stopping skips callbacks of a higher order in the last epoch"
    seen = []
    track([1.]*4, EarlyStoppingCallback('x', 'min'), at('after_epoch', lambda cb: seen.append(cb.learn.epoch), order=99))
    assert seen==[0,1]

# cancelled, nested and resumed runs
@pytest.mark.parametrize('exc,ev', [(CancelTrain,'before_train'), (CancelValid,'before_validate'), (CancelEpoch,'before_epoch'),
                                    (CancelEpoch,'before_validate'), (CancelTrain,'after_pred')])
def test_cancelled_phases(exc, ev):
    "A missing value is skipped, and no other column's value is used instead"
    early = EarlyStoppingCallback('mae', patience=4)
    def when(cb): return cb.learn.epoch in (1,2) and (ev!='after_pred' or cb.learn.training)
    learn = learner(metrics=mae, cbs=[early, at(ev, throw(exc()), when)])
    learn.fit(4)
    column = [v for v in learn.recorder.history['mae'] if v is not None]
    assert len(learn.recorder.history)==4 and early.best==min(column) and (exc is CancelTrain or len(column)==2)

@pytest.mark.parametrize('cb', [TrackerCallback, EarlyStoppingCallback, SaveModelCallback, ReduceLROnPlateau, TerminateOnNaNCallback,
                                lambda: ThresholdStopper(-1.), lambda: OnBetter(print)])
def test_start_epoch(cb, tmp_path):
    learn = learner(cbs=cb(), path=tmp_path)
    learn.fit(5, start_epoch=3)
    assert [r['epoch'] for r in learn.recorder.history]==[3,4]

def every_tracker():
    return [EarlyStoppingCallback(patience=2), SaveModelCallback(), ReduceLROnPlateau(), ThresholdStopper(1e9, comp='max'),
            OnBetter(lambda learn: None), TerminateOnNaNCallback()]

def test_inference_is_not_tracked(tmp_path):
    "Validation and prediction after a fit do not change the trackers' state or files"
    learn = learner(cbs=every_tracker(), path=tmp_path, metrics=mae)
    learn.validate(); learn.get_preds()
    assert not list(tmp_path.rglob('*.pth'))
    learn.fit(2)
    def states(): return [{k:v for k,v in cb.state_dict().items() if k!='elapsed'} for cb in learn.cbs]   # elapsed time changes
    before = states()
    file = learn.save_model.last_saved_path.read_bytes()
    with torch.no_grad(): learn.model.weight.zero_()
    learn.validate(); learn.get_preds()
    assert equal(states(), before) and learn.save_model.last_saved_path.read_bytes()==file
    assert learn.stop_reason is None

def test_validation_of_other_data_in_between_changes_nothing(tmp_path):
    runs = []
    for i,extra in enumerate(([], [ValidateEvery('1ba', ds_idx=0)])):
        learn = learner(n=4, cbs=every_tracker() + extra, path=tmp_path/str(i), metrics=mae, lr=.3)
        learn.fit(6)
        runs.append((learn.recorder.history.epochs['valid_loss'], learn.early_stopping.state_dict(), weights(learn).tolist(), learn.opt.hypers[0]['lr']))
    assert runs[0]==runs[1]

@quick
@given(series, st.integers(1, 3), deltas, st.data())
def test_resume(values, patience, delta, data):
    "With a state saved after an epoch and loaded with `weights_only`, trackers decide as in an uninterrupted run"
    stop = data.draw(st.integers(1, len(values)))
    late = data.draw(st.booleans())
    def cbs(): return [EarlyStoppingCallback('x', 'min', delta, patience), ReduceLROnPlateau('x', 'min', delta, 2, 2.), TrackerCallback('x', 'max')]
    halt = at('after_epoch', lambda cb: cb.learn.stop(), lambda cb: cb.learn.epoch==stop-1)
    whole,first = track(values, *cbs()),track(values, *cbs(), halt)
    if len(whole.recorder.history)<=stop: return
    f = io.BytesIO()
    torch.save([cb.state_dict() for cb in first.cbs if isinstance(cb, TrackerCallback)] + [first.opt.state_dict(), first.model.state_dict()], f)
    f.seek(0)
    *states,opt,model = torch.load(f, weights_only=True)
    new = cbs()
    def load_trackers():
        for o,s in zip(new, states): o.load_state_dict(s)
    def load(cb):
        if late: load_trackers()
        cb.learn.opt.load_state_dict(opt); cb.learn.model.load_state_dict(model)
    if not late: load_trackers()
    second = track(values, *new, at('before_fit', load, order=99), start_epoch=stop)
    assert second.epoch==whole.epoch and torch.equal(weights(second), weights(whole))
    assert [o.state_dict() for o in new]==[cb.state_dict() for cb in whole.cbs if isinstance(cb, TrackerCallback)]
    assert all(not o.is_loaded for o in new)   # the next fit starts with fresh state

def test_two_of_a_class(tmp_path):
    a,b = EarlyStoppingCallback('x', 'min', patience=3),EarlyStoppingCallback('valid_loss', patience=50)
    learn = track([1.,2.,3.,4.,5.], a, b)
    assert len(learn.recorder.history)==4 and a.best==1. and b.best==min(learn.recorder.history['valid_loss'])
    s,t = SaveModelCallback('x', 'min', fname='low'),SaveModelCallback('x', 'max', fname='high')
    learn = track([1.,3.,2.], s, t, path=tmp_path)
    assert sorted(o.name for o in tmp_path.rglob('*.pth'))==['high.pth','low.pth']

# saving
class Kept(Callback):
    "Keeps the weights at the end of each epoch"
    order = 52
    def before_fit(self): self.all = {}
    def after_epoch(self): self.all[self.learn.epoch] = weights(self.learn)

@quick
@given(series, st.booleans(), st.booleans())
def test_the_best_is_loaded(values, lower, with_opt):
    import tempfile
    with tempfile.TemporaryDirectory() as d, warnings.catch_warnings():
        warnings.simplefilter('ignore')
        save = SaveModelCallback('x', 'min' if lower else 'max', with_opt=with_opt)
        learn = track(values, save, Kept(), path=d, opt_func=Adam)
        sound = [(v if lower else -v,i) for i,v in enumerate(values) if v is not None and not math.isnan(v) and v!=(inf if lower else -inf)]
        best = min(sound)[1] if sound else len(values)-1
        assert torch.equal(weights(learn), learn.kept.all[best]) and (save.last_saved_path is not None)==bool(sound)

def test_no_stale_file(tmp_path):
    "A file of an earlier run or fit is not loaded"
    track([1.], SaveModelCallback('x', 'min'), path=tmp_path)
    save = SaveModelCallback('x', 'min')
    learn = learner(n=1, cbs=[Prescribe([nan]*2), save, Kept()], path=tmp_path)
    with pytest.warns(UserWarning, match='nothing was saved'): learn.fit(2)
    assert torch.equal(weights(learn), learn.kept.all[1]) and save.last_saved_path is None
    learn.prescribe.values = [3.,4.]
    learn.fit(2)
    assert torch.equal(weights(learn), learn.kept.all[0])
    learn.prescribe.values = [nan,nan]
    with pytest.warns(UserWarning, match='nothing was saved'): learn.fit(2)
    assert torch.equal(weights(learn), learn.kept.all[1])

def test_best_of_two_fits(tmp_path):
    learn = track([1.,2.], SaveModelCallback('x', 'min', reset_on_fit=False), Kept(), path=tmp_path)
    best = learn.kept.all[0]
    learn.prescribe.values = [3.,4.]
    learn.fit(2)
    assert torch.equal(weights(learn), best)

@pytest.mark.parametrize('kw,names', [
    (dict(every_epoch=True), 'm_0 m_1 m_2 m_3'), (dict(every_epoch=2), 'm_0 m_2'), (dict(every_epoch=3), 'm_0 m_3'),
    (dict(every='2ep'), 'm_ep1_ba6 m_ep3_ba12'),
    (dict(every='5ba'), 'm_ep1_ba5 m_ep3_ba10'), (dict(every='0.5dur'), 'm_ep1_ba6 m_ep3_ba12'),
    (dict(every='16sp'), 'm_ep1_ba4 m_ep2_ba8 m_ep3_ba12'), (dict(at_end=True), 'm'), ({}, 'm')])
@pytest.mark.parametrize('nv', [0, 1])
def test_files(kw, names, nv, tmp_path):
    monitor = 'valid_loss' if kw.get('every') or kw.get('every_epoch') else None   # without a monitor, `every` still saves
    learn = learner(n=3, nv=nv, cbs=[SaveModelCallback(monitor, fname='m', **kw), Kept()], path=tmp_path)
    learn.fit(4)
    assert sorted(o.stem for o in tmp_path.rglob('*.pth'))==names.split()
    if kw: assert torch.equal(weights(learn), learn.kept.all[3])
    if 'at_end' in kw:
        with torch.no_grad(): learn.model.weight.zero_()
        assert torch.equal(weights(learn.load('m', with_opt=False)), learn.kept.all[3])

def test_every_saves_the_weights_of_that_time(tmp_path):
    kept = {}
    keep = at('after_batch', lambda cb: kept.update({cb.learn.train_iter: weights(cb.learn)}), lambda cb: cb.learn.training)
    learn = learner(n=3, path=tmp_path, cbs=[SaveModelCallback(every='2ba'), keep])
    learn.fit(2)
    for i in (2,4,6): assert torch.equal(weights(learn.load(f'model_ep{(i-1)//3}_ba{i}', with_opt=False)), kept[i])

def test_a_deleted_best_file(tmp_path):
    "If the best file was deleted, the fit warns and keeps the trained weights"
    remove = at('after_epoch', lambda cb: cb.learn.save_model.last_saved_path.unlink(), lambda cb: cb.learn.epoch==1, order=99)
    learn = learner(n=1, cbs=[Prescribe([1.,2.]), SaveModelCallback('x', 'min'), Kept(), remove], path=tmp_path)
    with pytest.warns(UserWarning, match='no longer exists'): learn.fit(2)
    assert torch.equal(weights(learn), learn.kept.all[1])

def cross_validated(tmp_path, values, when, **kw):
    "A Learner with the tracked `values`; after its epoch `when` another Learner fits and saves to the same file"
    other = learner(n=1, cbs=[Prescribe([9.,8.]), SaveModelCallback('x', 'min')], path=tmp_path)
    runs = at('after_epoch', lambda cb: other.fit(2), lambda cb: cb.learn.epoch==when, order=99)
    return learner(n=1, cbs=[Prescribe(values), SaveModelCallback('x', 'min', **kw), Kept(), runs], path=tmp_path)

@pytest.mark.parametrize('values', [[1.,2.,3.], [2.,3.,1.]])
@pytest.mark.parametrize('with_opt', [False, True])
def test_another_run_saves_to_the_same_file(values, with_opt, tmp_path):
    "Two Learners that save to the same file raise; one used to load or overwrite the other's weights in silence"
    learn = cross_validated(tmp_path, values, 1, with_opt=with_opt)
    with pytest.raises(RuntimeError, match=r"model\.pth was changed since this run saved it.*`fname`"): learn.fit(3)
    assert torch.equal(weights(learn), learn.kept.all[2])

@pytest.mark.parametrize('values,when,best', [([nan,2.,3.], 0, 1), ([2.,3.,4.], 3, 0)])
def test_another_run_saves_to_the_same_file_and_does_no_harm(values, when, best, tmp_path):
    "The other run ends before the first save of this one, or begins after its last epoch"
    learn = cross_validated(tmp_path, values, when)
    learn.fit(3)
    assert torch.equal(weights(learn), learn.kept.all[best])

def test_another_run_saves_to_the_same_file_before_a_resume(tmp_path):
    "A resumed run raises if another run replaced its best file; it used to load that file"
    def run(between=False):
        if between: learner(n=1, cbs=[Prescribe([9.]), SaveModelCallback('x', 'min')], path=tmp_path).fit(1)
        learn = learner(n=1, cbs=[Prescribe([2.,1.,3.]), SaveModelCallback('x', 'min'), CheckpointCallback('1ep')], path=tmp_path)
        learn.fit(3, resume='auto', cbs=at('before_fit', lambda cb: None) if between else at('before_epoch', throw(ZeroDivisionError), lambda cb: cb.learn.epoch==2))
    with pytest.raises(ZeroDivisionError): run()
    with pytest.raises(RuntimeError, match='was changed since this run saved it'): run(between=True)

def test_two_callbacks_with_one_file_raise():
    with pytest.raises(ValueError, match='give each its own `fname`'): learner(cbs=[SaveModelCallback(), SaveModelCallback('train_loss')]).fit(1)

elsewhere = 'after_create','before_evaluate','after_evaluate','before_predict','after_predict','cleanup','after_exception'
@few(20, 30)
@pytest.mark.parametrize('ev', [e for e in event if e not in elsewhere and 'cancel' not in e])
@pytest.mark.parametrize('exc', [KeyboardInterrupt, ZeroDivisionError])
def test_any_exception_at_any_event(ev, exc, tmp_path):
    "Ctrl-C loads the best weights, an error keeps the current ones, and the next fit works as usual"
    last = {}
    def boom(cb):
        last['w'] = weights(cb.learn)
        raise exc
    cb = at(ev, boom, lambda cb: cb.learn.epoch==2 and not last, order=70)
    learn = learner(n=2, path=tmp_path, cbs=[Prescribe([3.,1.,2.,2.]), SaveModelCallback('x', 'min'),
                                             EarlyStoppingCallback('x', 'min', patience=3), Kept(), cb])
    try: learn.fit(3)
    except exc: pass
    if last: assert torch.equal(weights(learn), learn.kept.all[1] if exc is KeyboardInterrupt else last['w'])
    learn.remove_cb(cb)
    learn.prescribe.values = [1.,2.,3.,0.]
    learn.fit(4)
    assert [r['epoch'] for r in learn.recorder.history]==[0,1,2,3] and learn.early_stopping.best==0.

def test_a_write_that_fails_keeps_the_old_file(tmp_path, monkeypatch):
    learn = learner(n=2, path=tmp_path, cbs=[Prescribe([3.,1.]), SaveModelCallback('x', 'min'), Kept()])
    real = torch.save
    monkeypatch.setattr(torch, 'save', lambda *a, **kw: real(*a, **kw) if learn.epoch==0 else throw(OSError('disk full'))())
    with pytest.raises(OSError, match='disk full'): learn.fit(2)
    assert [o.name for o in tmp_path.rglob('*.*')]==['model.pth']
    assert torch.equal(weights(learn.load('model', with_opt=False)), learn.kept.all[0])

# NaN
def bad_data(i, value, n=5):
    data = batches(n)
    data[i] = (data[i][0], data[i][1]+value)
    return data

class Slow(TerminateOnNaNCallback):
    "Checks the loss as on an accelerator, and counts how often it waits for the device"
    n_waits = 0
    def _must_wait(self, loss): return True
    def _end_if_nonfinite(self): self.n_waits += 1; super()._end_if_nonfinite()

@pytest.mark.parametrize('value', [nan, inf])
@pytest.mark.parametrize('i', [0, 2, 4])
@pytest.mark.parametrize('cb,n', [(TerminateOnNaNCallback, lambda i: i+1), (lambda: Slow('2ba'), lambda i: min(5, 2*(i//2)+2)),
                                  (Slow, lambda i: 5), (lambda: Slow('1ep'), lambda i: 5), (lambda: Slow(None), lambda i: 5)])
def test_nan_ends_the_fit(value, i, cb, n):
    data = bad_data(i, value)
    learn = Learner((data, batches(2)), nn.Linear(4,1), nn.MSELoss(), SGD, cbs=cb())
    learn.logger = null_logger
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        learn.fit(3)
    assert learn.train_iter==n(i) and 'training loss is nan or infinite, epoch 0' in learn.stop_reason
    row, = learn.recorder.history
    assert not math.isfinite(row['train_loss']) and row['valid_loss'] is None and len(learn.recorder.values)==1

@pytest.mark.parametrize('cb', [TerminateOnNaNCallback, Slow])
def test_nan_in_validation_ends_the_fit(cb):
    learn = Learner((batches(3), bad_data(0, nan, 2)), nn.Linear(4,1), nn.MSELoss(), SGD, cbs=cb())
    learn.logger = null_logger
    learn.fit(3)
    assert learn.train_iter==3 and 'validation loss' in learn.stop_reason
    row, = learn.recorder.history
    assert math.isfinite(row['train_loss']) and math.isnan(row['valid_loss'])
    assert math.isnan(learn.validate()[0])   # outside of a fit, NaN is only returned

@draws(15)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(1, 3))
def test_it_waits_for_the_device_only_when_every_is_due(n, every, n_epoch):
    cb = Slow(f'{every}ba')
    learn = learner(n=n, nv=2, cbs=cb)
    learn.logger = null_logger
    learn.fit(n_epoch)
    assert cb.n_waits==n*n_epoch//every + 2*n_epoch and learn.stop_reason is None

def test_losses_of_any_shape_and_type():
    for loss in (torch.tensor(6e4, dtype=torch.float16), torch.tensor([3.]), torch.tensor(1e300, dtype=torch.double), torch.tensor(3e38)):
        cb = Slow()
        learn = learner(cbs=cb)
        learn.loss = loss
        for _ in range(5): cb.after_batch()
        cb._end_if_nonfinite()
        learn.loss = loss*inf
        cb.after_batch()
        with pytest.raises(CancelFit): cb._end_if_nonfinite()

def test_the_message_names_an_earlier_fit():
    "With `reset_on_fit=False` the message names the earlier fit; it used to say 'since epoch 0'"
    losses = iter([3., 1., 2., 4., 5.])
    early = EarlyStoppingCallback(lambda learn: next(losses), comp='min', patience=2, reset_on_fit=False)
    learn = Learner([[(torch.zeros(2,1), torch.zeros(2,1))]*2]*2, nn.Linear(1, 1), nn.MSELoss(), cbs=early)
    with learn.no_logging(), learn.no_bar():
        learn.fit(2)
        assert learn.stop_reason is None
        learn.fit(5)
    assert learn.stop_reason=='No improvement since an earlier fit: early stopping' and len(learn.recorder.history)==2

# the stopping criteria of other libraries, as in their sources: each returns the number of trained epochs
def keras(values, patience, delta, baseline, start):
    best,wait = None,0
    for i,v in enumerate(values):
        if i<start: continue
        wait += 1
        if best is None or v+delta<best:
            best = v
            if baseline is None or v+delta<baseline: wait = 0
        elif wait>=patience: return i+1
    return len(values)

def lightning(values, patience, delta, threshold, divergence):
    best,wait = inf,0
    for i,v in enumerate(values):
        if not math.isfinite(v) or v<=threshold or v>divergence: return i+1   # Lightning has `v<threshold`
        if v+delta<best: best,wait = v,0
        else: wait += 1
        if wait>=patience: return i+1
    return len(values)

def skorch(values, patience, part):
    bound,misses = inf,0
    for i,v in enumerate(values):
        if v<bound: bound,misses = v - part*v,0
        else: misses += 1
        if misses==patience: return i+1
    return len(values)

def ignite(scores, patience, part):
    best,count = None,0
    for i,s in enumerate(scores):
        if best is None: best = s
        elif s<=best*(1+part): count += 1
        else: best,count = s,0
        if count>=patience: return i+1
    return len(scores)

def trained(values, *args, **kw): return len(track(values, EarlyStoppingCallback('x', *args, **kw)).recorder.history)
plain = st.lists(st.integers(0, 40).map(lambda i: i/8), min_size=1, max_size=14)   # floats with exact differences
eighths = st.integers(0, 40).map(lambda i: i/8)

@quick
@given(plain, st.integers(1, 4), st.sampled_from([0., .125, .5]), st.none() | eighths, st.integers(0, 6))
def test_like_keras(values, patience, delta, baseline, start):
    assert trained(values, 'min', delta, patience, baseline=baseline, start_from_epoch=start)==keras(values, patience, delta, baseline, start)
    ups = [-v for v in values]
    assert trained(ups, 'max', delta, patience, baseline=None if baseline is None else -baseline, start_from_epoch=start)==keras(values, patience, delta, baseline, start)

@quick
@given(st.lists(eighths | st.sampled_from([nan, inf]), min_size=1, max_size=14), st.integers(1, 4), st.sampled_from([0., .125]), eighths, eighths)
def test_like_lightning(values, patience, delta, threshold, divergence):
    n = lightning(values, patience, delta, threshold, divergence)
    assert trained(values, 'min', delta, patience, threshold=threshold, divergence=divergence, nan='stop')==n
    assert trained([-v for v in values], 'max', delta, patience, threshold=-threshold, divergence=-divergence, nan='stop')==n

@quick
@given(plain, st.integers(1, 4), st.sampled_from([0, 12.5, 50]))
def test_relative_like_skorch_and_ignite(values, patience, percent):
    assert trained(values, 'min', f'{percent}%', patience)==skorch(values, patience, percent/100)
    assert trained(values, 'max', f'{percent}%', patience)==ignite(values, patience, percent/100)

@quick
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=14), st.sampled_from(['0%', '10%', '100%', '300%']), st.sampled_from(['min','max']))
def test_a_worse_value_is_never_better(values, delta, comp):
    m,sign = Monitor('x', comp, delta),1 if comp=='min' else -1
    m.start(learner_with_x)
    for v in values:
        best = m.best
        if m.update(v): assert sign*v<sign*best

@quick
@given(plain, st.integers(1, 3), st.integers(1, 4), st.integers(1, 14))
def test_at_least(values, patience, n, least):
    "`at_least` delays the end of the fit, and does not change how `patience` counts"
    best,wait,want = inf,0,len(values)
    for i,v in enumerate(values):
        best,wait = (v,0) if v<best else (best,wait+1)
        if wait>=patience and i+1>=least: want = i+1; break
    assert trained(values, 'min', patience=patience, at_least=f'{least}ep')==want
    for unit in ('st','ba'):   # an epoch has one batch
        assert trained(values, 'min', patience=patience, at_least=f'{least}{unit}')==want

def test_at_least_part_of_the_fit(): assert [trained([1.]+[2.]*9, 'min', at_least=o) for o in (None, '0.5dur', '1.0dur')]==[2, 5, 10]

def test_at_least_within_an_epoch():
    "With a validation every two batches, a fit ends at the first one after `at_least`"
    stop = lambda **kw: EarlyStoppingCallback(lambda learn: next(values), 'min', patience=1, **kw)
    for kw,n in ((dict(), 4), (dict(at_least='1ep'), 6), (dict(at_least='7ba'), 8)):
        values = iter([1.,2.,3.,4.,5.])
        learn = learner(n=6, nv=1, cbs=[stop(**kw), ValidateEvery('2ba')])
        learn.logger = null_logger
        learn.fit(3)
        assert learn.train_iter==n, kw

@pytest.mark.parametrize('kw,words', [
    (dict(patience=None), 'never stop'), (dict(at_least='30m'), 'at_least'), (dict(at_least='5 steps'), '500st'), (dict(start_from_epoch=-1), '0 or more'),
    (dict(min_delta='1'), "'1%'"), (dict(min_delta='-1%'), "'1%'"), (dict(min_delta='x%'), "'1%'"), (dict(nan='end'), "'worse'"), (dict(threshold='x'), 'threshold')])
def test_settings_of_the_stopper(kw, words):
    with pytest.raises((ValueError,TypeError), match=words): EarlyStoppingCallback('x', 'min', **kw)

@quick
@given(st.lists(eighths, min_size=2, max_size=10), st.integers(1, 3), st.integers(0, 3), st.integers(1, 9), st.integers(0, 1))
def test_a_stopper_continues_where_it_was(values, patience, start, at, delta):
    "A stopper that loads a state saved after epoch `at` decides as an uninterrupted one"
    def make(): return EarlyStoppingCallback('x', 'min', delta/8, patience, start_from_epoch=start, baseline=3., at_least='4ep', divergence=4.8)
    at,whole = min(at, len(values)-1),track(values, make())
    if len(whole.recorder.history)<=at: return
    first,cb = track(values[:at], make()),make()
    cb.load_state_dict(first.early_stopping.state_dict())
    second = track(values, cb, start_epoch=at)
    assert second.epoch==whole.epoch and cb.state_dict()==whole.early_stopping.state_dict()

# the best weights in memory, and a plateau that cools down
@quick
@given(plain, st.integers(1, 3))
def test_the_best_weights_in_memory(values, patience):
    learn = track(values, SaveModelCallback('x', 'min', fname=None), EarlyStoppingCallback('x', 'min', patience=patience), Kept())
    assert torch.equal(weights(learn), learn.kept.all[values.index(min(values[:len(learn.recorder.history)]))])

def test_the_best_weights_in_memory_survive_a_kill(tmp_path):
    def run(**kw):
        learn = learner(n=1, cbs=[Prescribe([2.,1.,3.,4.]), SaveModelCallback('x', 'min', fname=None), CheckpointCallback('1ep')], path=tmp_path)
        learn.fit(4, resume='auto', **kw)
        return learn
    kept = []
    def note(cb): kept.append(weights(cb.learn))
    with pytest.raises(ZeroDivisionError): run(cbs=[at('after_epoch', note), at('before_epoch', throw(ZeroDivisionError), lambda cb: cb.learn.epoch==3)])
    assert torch.equal(weights(run()), kept[1]) and not [*tmp_path.rglob('model*.pth')]

@quick
@given(plain, st.integers(1, 3), st.integers(0, 3), st.sampled_from([0, 12.5]))
def test_cooldown_agrees_with_torch(values, patience, cooldown, percent):
    learn = track(values, ReduceLROnPlateau('x', 'min', f'{percent}%', patience, 2., cooldown=cooldown))
    opt = SGD([nn.Parameter(torch.zeros(1))], lr=.05)
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, 'min', .5, patience-1, percent/100, 'rel', cooldown, eps=0)
    lrs = []
    for v in values:
        lrs.append(opt.param_groups[0]['lr'])
        sched.step(v)
    assert learn.recorder.lrs==pytest.approx(lrs)

def test_without_a_column_a_metric_is_not_monitored():
    "`monitor=None` used to find a metric without an attribute `func`, and took it for the validation loss"
    class Batches(Metric):
        def reset(self): self.n = 0
        def accumulate(self, learn): self.n += 1
        @property
        def value(self): return self.n
    watch = TrackerCallback(None)
    learner(metrics=Batches(), cbs=watch).fit(1)
    assert watch.watch.column=='valid_loss' and watch.watch.is_lower_better
