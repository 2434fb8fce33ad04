"""Evaluator and validate_all: right values at the right time, with no effect on training"""
import random
import pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from torch.optim import SGD
from torch.utils.data import DataLoader, TensorDataset
import learnkit.learner.predict
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.learner.learner import TrainEvalCallback
from learnkit.loop.callback import Callback
from learnkit.loop.events import CancelFit
from learnkit.observe.evaluate import Evaluator, EvaluatorColumn
from learnkit.callbacks.monitor import Monitor
from learnkit.loop.run import null_logger
from learnkit.callbacks.trackers import EarlyStoppingCallback
from learnkit.callbacks.trackers import SaveModelCallback
from learnkit.callbacks.monitor import TrackerCallback
from learnkit.learner.learner import Learner
from learnkit.measure.metric import AvgMetric
from learnkit.measure.metrics import mae, rmse
from toys import at, batches, draws, learner, throw, weights

quick = draws(15)

def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4,8), nn.BatchNorm1d(8), nn.Dropout(.5), nn.Linear(8,1))

def loader(seed, n=24):
    x = torch.randn(n, 4, generator=torch.Generator().manual_seed(seed))
    return DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), 4, shuffle=True)

def shuffled(cbs=None, **kw):
    learn = Learner((loader(1), loader(2)), net(), nn.MSELoss(), SGD, lr=.05, metrics=mae, cbs=cbs, **kw)
    learn.logger = null_logger
    torch.manual_seed(4)
    return learn.remove_cb(learn.progress)

def record(learn): return [{k:r[k] for k in learn.recorder.metric_names if k!='time'} for r in learn.recorder.history.epochs]

# training is not changed

@pytest.mark.parametrize('every', ['1ba', '5ba', '20sp', '1ep', '2ep', '0.3dur',
                                   lambda learn: learn.train_iter in (2,7)])
def test_training_is_bit_for_bit_the_same(every):
    rngs,learns = [],[]
    evaluators = [Evaluator('a', loader(7), metrics=[rmse], every=every), Evaluator('b', loader(8)),
                  Evaluator('c', loader(9), when_better='valid_loss')]
    for cbs in (None, evaluators):
        learn = shuffled(cbs)
        random.seed(0); learn.fit(3)
        learns.append(learn); rngs.append((torch.get_rng_state(), random.getstate()))
    assert torch.equal(rngs[0][0], rngs[1][0]) and rngs[0][1]==rngs[1][1]
    a,b = learns
    for x,y in zip(a.model.state_dict().values(), b.model.state_dict().values()): assert torch.equal(x, y)
    assert torch.equal(torch.stack(list(a.recorder.losses)), torch.stack(list(b.recorder.losses)))
    assert record(a)==record(b)
    assert a.metrics[0].name==b.metrics[0].name=='mae' and all(cb.history for cb in b.cbs if isinstance(cb, Evaluator))

def test_numbers_are_those_of_a_plain_evaluation():
    data,plain = batches(3, seed=5),[]
    def evaluate(cb):
        m = cb.learn.model.eval()
        def mean(f): return torch.stack([f(m(x), y) for x,y in data]).mean().item()
        with torch.no_grad(): plain.append([mean(f) for f in (nn.functional.mse_loss, nn.functional.l1_loss)])
        m.train()
    plain_evaluation = at('after_batch', evaluate, lambda cb: cb.learn.training and cb.learn.train_iter%2==0, order=90)
    learn = learner(n=6, model=net(), metrics=rmse, cbs=[Evaluator('test', data, metrics=mae, every='2ba'), plain_evaluation])
    learn.fit(2)
    h = learn.evaluate_test.history
    assert h['train_iter']==[2,4,6,8,10,12] and h['epoch']==[0,0,0,1,1,1]
    assert list(h[0])==['epoch','train_iter','test_loss','test_mae','time']
    assert h['test_loss']==pytest.approx([p[0] for p in plain]) and h['test_mae']==pytest.approx([p[1] for p in plain])
    assert [*learn.recorder.history.epochs[0]]==['epoch','train_loss','valid_loss','rmse','time']

@quick
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(1, 6), st.integers(1, 3))
def test_due_together(everies, n, n_epoch):
    "Evaluators due at the same time run in order, between one pair of events"
    log = []
    class LogsEvents(Callback):
        def before_validate_all(self): log.append([])
        def before_validate(self):
            if self.learn.dl_name: log[-1].append(self.learn.dl_name)
        def after_validate_all(self, results): log[-1].append((cb.learn.train_iter, [*results]))
    evs = [Evaluator(f'e{i}', batches(1), every=f'{k}ba') for i,k in enumerate(everies)]
    cb = LogsEvents()
    learn = learner(n=n, cbs=[*evs, cb])
    learn.logger = null_logger
    learn.fit(n_epoch)
    want = []
    for i in range(1, n*n_epoch+1):
        due = [f'e{j}' for j,k in enumerate(everies) if i%k==0]
        if due: want.append([*due, (i, due)])
    assert log==want and learn.dl_name is None
    for k,e in zip(everies, evs):
        assert [r['train_iter'] for r in e.history]==[i for i in range(1, n*n_epoch+1) if i%k==0]

@pytest.mark.parametrize('late', [False, True])
def test_removed_or_switched_off_in_the_middle(late):
    a,b,c = [Evaluator(k, batches(1), every='1ba') for k in 'abc']
    def off(cb): cb.learn.remove_cb(a) if late else setattr(a, 'run', False)
    def is_second(cb): return cb.learn.training and cb.learn.train_iter==2
    learn = learner(n=4, cbs=[a, b, c, at('after_batch', off, is_second, order=90)])
    learn.fit(1)
    assert [len(o.history) for o in (a,b,c)]==[2,4,4]

def test_an_evaluator_added_in_a_fit_starts_at_the_next_batch():
    a = Evaluator('a', batches(1), every='1ba')
    def is_second(cb): return cb.learn.training and cb.learn.iter==1 and a.learn is None
    learn = learner(n=4, cbs=at('after_batch', lambda cb: cb.learn.add_cb(a), is_second))
    learn.fit(1)
    assert a.history['train_iter']==[3,4]   # added after two batches, it evaluates from the third on
    learn.fit(1)
    assert len(a.history)==4

def test_evaluates_in_fits_only():
    learn = learner(cbs=Evaluator('a', batches(1), every='1ba'))
    learn.validate(); learn.get_preds()
    assert not learn.evaluate_a.history

def test_each_fit_starts_a_new_history():
    learn = learner(cbs=Evaluator('a', batches(1)))
    learn.fit(2); learn.fit(1)
    assert len(learn.evaluate_a.history)==1

def test_printed_lines(capsys):
    learn = learner(cbs=Evaluator('test', batches(1), metrics=mae))
    learn.fit(1)
    out = capsys.readouterr().out.splitlines()
    assert len(out)==3 and out[2].startswith('test: loss ') and ', mae ' in out[2]
    learn.logger = null_logger
    learn.fit(1)
    assert not capsys.readouterr().out

def test_without_recorder():
    learn = learner(default_cbs=False, cbs=[TrainEvalCallback, Evaluator('a', batches(1), metrics=mae)])
    learn.fit(2)
    assert len(learn.evaluate_a.history['a_mae'])==2

# monitored columns

def test_monitored_by_name_or_by_evaluator(tmp_path):
    e = Evaluator('hard', batches(2, seed=5), metrics=mae, every='2ep')
    cbs = [e, *(TrackerCallback(monitor=m) for m in (e['mae'], 'hard_mae', e['hard_loss']))]
    learn = learner(cbs=cbs)
    learn.fit(5)
    assert e.history['epoch']==[1,3]
    assert cbs[1].watch.best==cbs[2].watch.best==min(e.history['hard_mae'])
    assert cbs[3].watch.best==min(e.history['hard_loss'])
    assert cbs[1].watch.is_lower_better and cbs[1].watch.name==cbs[2].watch.name=='hard_mae'

def test_direction_of_monitored_columns():
    def oddity(pred, y): return pred.mean()
    def heat(pred, y): return pred.mean()
    def cold(pred, y): return pred.mean()
    heat.lower_better,cold.lower_better = False,True
    e = Evaluator('x', batches(1), metrics=[AvgMetric(heat), AvgMetric(cold), AvgMetric(oddity)])
    for m in (e['heat'], 'x_heat'):
        learn = learner(cbs=[e, t := TrackerCallback(monitor=m)]); learn.fit(1)
        assert t.watch.is_lower_better is False
        learn.remove_cb(e)
    learn = learner(cbs=[e, t := TrackerCallback(monitor='x_cold')]); learn.fit(1)
    assert t.watch.is_lower_better is True
    learn.remove_cb(t)
    with pytest.raises(ValueError, match="comp='min' or comp='max'"):
        learn.fit(1, cbs=TrackerCallback(monitor='x_oddity'))
    learn.fit(1, cbs=TrackerCallback(monitor='x_oddity', comp='max'))

def test_metrics_of_the_learner_are_monitored_too():
    e = Evaluator('x', batches(2, seed=5))
    t = TrackerCallback(monitor=e['mae'])
    learn = learner(metrics=mae, cbs=[t, e])
    learn.fit(3)
    assert t.watch.best==min(e.history['x_mae'])

def test_early_stopping_on_an_evaluator():
    e = Evaluator('x', batches(2, seed=5))
    learn = learner(lr=0., cbs=[e, EarlyStoppingCallback(monitor=e['loss'], patience=2)])
    learn.fit(20)
    assert len(e.history)==3

def test_wrong_columns():
    e = Evaluator('x', batches(1), metrics=mae)
    train = []
    look = at('before_train', lambda cb: train.append(1))
    learn = learner(cbs=[e, look])
    with pytest.raises(ValueError, match='did you mean `x_mae`'): learn.fit(1, cbs=TrackerCallback(monitor='x_mea'))
    e['mea']
    with pytest.raises(ValueError, match="'x' has no column 'x_mea'.*did you mean `x_mae`"): learn.fit(1)
    assert not train

# when_better
def test_when_better():
    e = Evaluator('x', batches(1), when_better=Monitor('valid_loss', min_delta=1.))
    learn = learner(cbs=e, lr=.02)
    learn.fit(8)
    best,want = float('inf'),[]
    for i,v in enumerate(learn.recorder.history['valid_loss']):
        if v+1.<best: best = v; want.append(i)
    assert e.history['epoch']==want and 0<len(want)<8

def test_when_better_is_checked_before_training():
    learn = learner(cbs=Evaluator('x', batches(1), when_better='valid_los'))
    with pytest.raises(ValueError, match='did you mean `valid_loss`'): learn.fit(1)

@pytest.mark.parametrize('kw,words', [
    (dict(name='two words'), 'a Python identifier'), (dict(name=''), 'a Python identifier'), (dict(name=3), 'a Python identifier'),
    (dict(every='5 batches'), "did you mean '5ba'"), (dict(every=None), 'would never evaluate'), (dict(every=0), 'would never evaluate'),
    (dict(every='5ba', when_better='valid_loss'), 'not both'),
    (dict(dl=None), 'must be an iterable'), (dict(dl=(b for b in [])), 'only once'),
    (dict(dl=TensorDataset(torch.ones(1))), 'dataset'), (dict(when_better=3), 'monitor must be')])
def test_bad_settings(kw, words):
    with pytest.raises((ValueError,TypeError), match=words): Evaluator(**{**dict(name='x', dl=batches(1)), **kw})

def test_duplicate_column_names_raise():
    train = []
    note = at('before_train', lambda cb: train.append(1))
    twins = [Evaluator('x', batches(1)), Evaluator('x', batches(1), metrics=mae)]
    for name,cbs in (('valid', [Evaluator('valid', batches(1))]), ('x', twins)):
        with pytest.raises(ValueError, match=f"two columns '{name}_loss'"): learner(cbs=[*cbs, note]).fit(1)
    assert not train

# exceptions, resume

@pytest.mark.parametrize('ev', ['before_validate_all', 'before_validate', 'before_fetch', 'after_fetch', 'before_batch',
                                'before_pred', 'after_pred', 'before_loss', 'after_loss', 'after_batch',
                                'after_validate', 'after_validate_all'])
@pytest.mark.parametrize('exc', [KeyboardInterrupt, ZeroDivisionError, CancelFit])
def test_the_learner_is_restored_after_an_exception(ev, exc):
    e,on = Evaluator('x', batches(2), metrics=rmse, every='2ba'),[True]
    def in_evaluator(cb): return on and ('all' in ev or cb.learn.dl_name=='x')
    learn = learner(metrics=mae, cbs=[e, at(ev, throw(exc('boom')), in_evaluator)])
    try: learn.fit(2)
    except (KeyboardInterrupt, ZeroDivisionError): assert exc is not CancelFit
    else: assert exc is CancelFit
    assert learn.mode is None and not learn.training and learn.logger is print
    assert learn.dl_name is None and [m.name for m in learn.metrics]==['mae']
    on.clear()
    learn.fit(1)
    assert len(e.history)==1 and len(learn.validate())==2

@pytest.mark.parametrize('stop', [3, 6, 8])
def test_resume(tmp_path, stop):
    def make():
        a,b = Evaluator('a', loader(7), every='4ba'),Evaluator('b', loader(8), when_better='valid_loss')
        return shuffled([a, b, CheckpointCallback('1ba', folder=folder)], path=tmp_path)
    class Killed(BaseException): pass
    folder = 'whole'; whole = make(); whole.fit(3)
    folder = 'parts'; first = make()
    def is_last(cb): return cb.learn.training and cb.learn.train_iter==stop
    with pytest.raises(Killed): first.fit(3, cbs=at('after_batch', throw(Killed()), is_last, order=120))
    again = make(); torch.seed(); again.fit(3, resume='auto')
    rows = lambda cb: [{k:v for k,v in r.items() if k!='time'} for r in cb.history]
    assert torch.equal(weights(whole), weights(again))
    assert rows(whole.evaluate_a)==rows(again.evaluate_a) and rows(whole.evaluate_b)==rows(again.evaluate_b)
    assert type(again.evaluate_a.history['a_loss']) is list

# validate_all

def test_validate_all():
    log = []
    class LogsEvents(Callback):
        def before_validate(self): log.append(self.learn.dl_name)
        def after_validate_all(self, results): log.append([*results])
    learn = learner(metrics=mae, cbs=[Evaluator('a', batches(2, seed=7), metrics=rmse), LogsEvents])
    before = weights(learn)
    res = learn.validate_all()
    other = batches(2, seed=7)
    assert {k:[*v] for k,v in res.items()}=={'valid':['loss','mae'], 'a':['loss','rmse']}
    assert log==['valid','a',['valid','a']]
    assert [*res['valid'].values()]==list(learn.validate()) and res['a']['loss']==learn.validate(dl=other)[0]
    assert learn.validate_all(b=other)=={'b':dict(zip(['loss','mae'], learn.validate(dl=other)))}
    assert torch.equal(before, weights(learn)) and learn.dl_name is None and learn.mode is None

def test_validate_all_agrees_with_evaluators():
    events = []
    class LogsEvents(Callback):
        def before_validate_all(self, due): events.append([due])
        def after_validate_all(self, results): events[-1].append(results)
    a,b = Evaluator('a', batches(2, seed=7), metrics=rmse, every='3ba'),Evaluator('b', batches(1), every='3ba')
    learn = learner(metrics=mae, cbs=[a, b, LogsEvents])
    learn.fit(1)
    assert events[-1][0]==['a','b'] and [[*v] for v in events[-1][1].values()]==[['loss','rmse'], ['loss','mae']]
    res = learn.validate_all()
    assert events[-1]==[['valid','a','b'], res] and {k:res[k] for k in ('a','b')}==events[0][1]

def test_validate_all_in_a_fit_changes_nothing():
    a,b = shuffled(),shuffled()
    torch.manual_seed(4); a.fit(2)
    def validate_all(cb): return cb.learn.validate_all(x=loader(5)) if cb.training else None
    torch.manual_seed(4); b.fit(2, cbs=Callback(after_batch=validate_all))
    assert torch.equal(weights(a), weights(b)) and record(a)==record(b)

def test_validate_all_errors():
    learn = learner(nv=0)
    with pytest.raises(ValueError, match='nothing to validate'): learn.validate_all()
    with pytest.raises(TypeError, match='test loader'): learn.validate_all(test=3)
    learn = learner(cbs=at('before_batch', throw(ZeroDivisionError())))
    with pytest.raises(ZeroDivisionError): learn.validate_all()
    assert learn.dl_name is None and learn.mode is None
