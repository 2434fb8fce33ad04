"""The examples of the documents that learnkit started from: fastai's page on callbacks unchanged, those of Composer,
fastNLP and pytorch-accelerated with names translated. Each prints or returns what its page shows."""
import csv, inspect, pydoc, warnings
from collections import defaultdict

import pytest, torch
from fastcore.basics import mk_class
from fastcore.test import test_eq as eq, test_stdout as prints
from torch import nn
from torch.optim import Adam
from torch.utils.data import DataLoader, TensorDataset

from learnkit.loop.callback import Callback
from learnkit.callbacks.handlers import *
from learnkit.callbacks.monitor import Monitor
from learnkit.data.loaders import DataLoaders
from learnkit.loop.events import CancelFit, event
from learnkit.callbacks.batches import ItemIndices
from learnkit.learner.predict import FetchPredsCallback, GatherPredsCallback
from learnkit.learner.learner import Learner
from learnkit.measure.losses import CrossEntropyLossFlat
from learnkit.measure.metrics import accuracy
from learnkit.callbacks.mixup import MixUp
from learnkit.learner.predict import *
from learnkit.learner.learner import TrainEvalCallback
from learnkit.loop.settings import settings
from learnkit.recovery.identity import arguments
from toys import model

mk_class('StandIn', 'a')   # an object with one attribute and no other part of a Learner

# fastai
def test_events_equal_their_names(): eq(event.before_step, 'before_step')

def test_calling_a_callback_calls_the_named_method():
    class Maybe(Callback):
        def call_me(self): return 'maybe'
    eq(Maybe()('call_me'), 'maybe')
    eq(Callback(before_fit=lambda self: 'maybe')(event.before_fit), 'maybe')

@pytest.mark.parametrize('name', ['batch_begin', 'before_batch', 'after_fit'])
def test_a_callback_alone(name):
    "An object used in place of the Learner needs no `mode`, `training` or tables of handlers"
    cb = type('TstCallback', (Callback,), {name: lambda self: print(self.a)})()
    cb.learn = StandIn(1)
    prints(lambda: cb(name), '1')
    for v in (False, True): cb.run = cb.run_train = cb.run_valid = v
    prints(lambda: cb(name), '1')
    setattr(cb, name, lambda: print('another'))
    prints(lambda: cb(name), 'another')

@pytest.mark.parametrize('stand_in', [StandIn(1), type('Slots', (), dict(__slots__='a', __init__=lambda self: setattr(self, 'a', 1)))()])
def test_writing_is_not_delegated(stand_in):
    class TstCallback(Callback):
        def batch_begin(self): self.a += 1
    cb = TstCallback()
    cb.learn = stand_in
    with pytest.warns(UserWarning, match=r'shadowing an attribute \(a\)'): cb('batch_begin')
    eq([cb.a, cb.learn.a], [2, 1])
    TstCallback.batch_begin = lambda self: setattr(self.learn, 'a', self.learn.a+1)
    cb('batch_begin')
    eq(cb.learn.a, 2)

def test_names():
    eq(type('TstCallback', (Callback,), {})().name, 'tst')
    eq(type('ComplicatedNameCallback', (Callback,), {})().name, 'complicated_name')

def mk(cbs=None, n=3, loss=None, **kw):
    torch.manual_seed(0)
    train = [(torch.randn(4, 3), torch.tensor([0,1,2,1])) for _ in range(n)]
    learn = Learner((train, train[:2]), nn.Linear(3, 3), loss or nn.CrossEntropyLoss(), Adam, lr=.01, cbs=cbs, metrics=accuracy, **kw)
    return learn.remove_cb(learn.progress)
def fit(learn, n=1, **kw):
    with learn.no_logging(): learn.fit(n, **kw)
    return learn

LISTED = 'model dls loss_func opt opt_func cbs dl x xb y yb pred loss_grad loss n_epoch n_iter epoch iter train_iter pct_train training smooth_loss'.split()
def test_the_attributes_that_a_callback_reads():
    seen = {}
    def read(cb): seen.update({k:getattr(cb, k) for k in LISTED})
    late = Callback(after_batch=read)
    late.order = 60   # after the Recorder, which adds `smooth_loss`
    learn = fit(mk(late), 2)
    eq(list(seen), LISTED)
    eq([seen[k] for k in ('n_epoch','epoch','n_iter','iter','train_iter','pct_train','training')], [2, 1, 2, 1, 6, 1., False])
    assert seen['xb']==(seen['x'],) and seen['yb']==(seen['y'],) and seen['dl'] is learn.dls.valid

def test_callbacks_of_the_page():
    "The page's callbacks take their arguments by fastai's names"
    learn = fit(mk())
    cb = GatherPredsCallback(with_input=False, with_loss=True, save_preds=None, save_targs=None, with_preds=True, with_targs=True, concat_dim=0, pickle_protocol=2)
    with learn.loss_not_reduced(): learn.validate(cbs=cb)
    assert torch.equal(cb.preds, learn.get_preds()[0])
    fetch = FetchPredsCallback(ds_idx=1, dl=None, with_input=False, with_decoded=False, cbs=None, reorder=True)
    fit(learn, cbs=fetch)
    assert torch.equal(fetch.preds[0], learn.get_preds()[0])
    assert any(isinstance(o, TrainEvalCallback) for o in mk().cbs)

def test_train_eval_counts_and_sets_the_modes():
    seen = []
    def note(cb): seen.append((cb.train_iter, round(cb.pct_train, 3), cb.training, cb.model.training))
    recorder = Callback(before_batch=note)
    fit(mk(recorder), 2)
    eq(seen[:5], [(0,0.,True,True), (1,.167,True,True), (2,.333,True,True), (3,.5,False,False), (3,.5,False,False)])
    eq(seen[-1], (6,1.,False,False))

def gather(learn, **kwargs):
    cb = GatherPredsCallback(**kwargs)
    with learn.loss_not_reduced(): learn.validate(cbs=cb)
    return cb

def test_gather_preds_arguments(tmp_path):
    "Gathers inputs and losses only on request, predictions and targets by default, and saves files of the latter two"
    learn = fit(mk())
    x,y = (torch.cat(o) for o in zip(*learn.dls.valid))
    with torch.no_grad(): preds = learn.model(x)
    cb = gather(learn, with_input=True, with_loss=True)
    assert torch.equal(cb.inputs, x) and torch.equal(cb.targets, y) and torch.allclose(cb.preds, preds)
    assert torch.allclose(cb.losses, nn.functional.cross_entropy(preds, y, reduction='none'))
    for k in ('preds','targs'):
        cb = gather(learn, **{f'with_{k}':False, f'save_{k}':tmp_path/k}, pickle_protocol=4)
        files = [torch.load(tmp_path/k/str(i), weights_only=False) for i in range(2)]   # True reads protocol 2 only
        assert torch.allclose(torch.cat(files), dict(preds=preds, targs=y)[k]) and len([*(tmp_path/k).iterdir()])==2
        assert (cb.preds if k=='preds' else cb.targets) is None
    assert torch.allclose(gather(learn, concat_dim=1, with_targs=False).preds, torch.cat(preds.split(4), 1))
    with pytest.raises(ValueError, match='along dimension 1, which it does not have'): gather(learn, concat_dim=1)

@pytest.mark.parametrize('with_input', [True, False])
@pytest.mark.parametrize('with_decoded', [True, False])
def test_fetch_preds_arguments(with_input, with_decoded):
    "Predicts the given loader, else the one with the given index; the callbacks in `cbs` are removed meanwhile"
    class Away(Callback):
        def after_pred(self): modes.append(self.learn.mode)
    modes,away = [],Away()
    for kwargs,at in [(dict(ds_idx=0), 0), (dict(), 1), (dict(dl='given'), None)]:
        learn = mk([away], loss=CrossEntropyLossFlat())
        dl = [(torch.ones(2, 3), torch.tensor([0, 1]))]
        if at is None: kwargs = dict(dl=dl)
        fetch = FetchPredsCallback(with_input=with_input, with_decoded=with_decoded, cbs=away, **kwargs)
        fit(learn, cbs=fetch)
        x,y = (torch.cat(o) for o in zip(*(dl if at is None else learn.dls.loaders[at])))
        with torch.no_grad(): preds = learn.model(x).softmax(1)
        want = [*([x] if with_input else []), preds, y, *([preds.argmax(1)] if with_decoded else [])]
        assert len(fetch.preds)==len(want) and all(torch.allclose(a, b) for a,b in zip(fetch.preds, want))
        assert away in learn.cbs and 'predict' not in modes
        learn.get_preds()
        assert modes.pop()=='predict'
        modes.clear()

@pytest.mark.parametrize('reorder', [True, False])
def test_reorder_restores_the_order_of_the_data(reorder):
    torch.manual_seed(1)
    x = torch.randn(8, 3)
    data = TensorDataset(x, torch.arange(8))
    dls = DataLoaders(DataLoader(data, 2, shuffle=True), DataLoader(data, 2))
    learn = Learner(dls, nn.Linear(3, 8), nn.CrossEntropyLoss(), Adam)
    fetch = FetchPredsCallback(ds_idx=0, reorder=reorder)
    with learn.no_bar(), learn.no_logging(): learn.fit(1, cbs=fetch)
    targs = fetch.preds[1].tolist()
    assert sorted(targs)==[*range(8)] and (targs==[*range(8)])==reorder

# the page's own lists of arguments, with their defaults
OF_THE_PAGE = dict.fromkeys("""after_create before_fit before_epoch before_train before_batch after_pred after_loss before_backward after_cancel_backward
    after_backward before_step after_cancel_step after_step after_cancel_batch after_batch after_cancel_train after_train before_validate
    after_cancel_validate after_validate after_cancel_epoch after_epoch after_cancel_fit after_fit""".split())
GATHER = dict(with_input=False, with_loss=False, save_preds=None, save_targs=None, with_preds=True, with_targs=True, concat_dim=0, pickle_protocol=2)
FETCH = dict(ds_idx=1, dl=None, with_input=False, with_decoded=False, cbs=None, reorder=True)

@pytest.mark.parametrize('cls,theirs', [(Callback,OF_THE_PAGE), (TrainEvalCallback,OF_THE_PAGE), (GatherPredsCallback,GATHER), (FetchPredsCallback,FETCH)])
def test_signatures_of_the_page(cls, theirs):
    "Signatures show the page's arguments, order and defaults; those of `Callback` and its subclasses all events"
    shown = {name:p.default for name,p in inspect.signature(cls).parameters.items()}
    eq([(k,v) for k,v in shown.items() if k in theirs], [*theirs.items()])
    if theirs is OF_THE_PAGE: eq([*shown], [*event])
    assert f'{cls.__name__}(' in pydoc.render_doc(cls) and [*theirs][-1] in pydoc.render_doc(cls)

def test_none_as_a_handler_is_ignored():
    "None, the default that the signature shows, means that the event has no handler"
    cb = Callback(before_fit=None, after_fit=lambda self: 1)
    eq([cb('before_fit'), cb('after_fit')], [None, 1])
    with pytest.raises(TypeError, match='before_fitt'): Callback(before_fitt=None)

def test_handlers_are_not_settings():
    "Handlers are neither compared nor logged as settings; a subclass with its own constructor shows its own arguments"
    class Own(Callback):
        def __init__(self, n=2, **events):
            self.n = n
            super().__init__(**events)
    cb,own = Callback(before_fit=lambda self: 1),Own(3, before_fit=lambda self: 1)
    eq([settings(cb), arguments(cb), repr(cb)], [{}, {}, 'Callback'])
    eq([settings(own), arguments(own), repr(own)], [dict(n=3), dict(n=3), 'Own(n=3)'])
    eq([*inspect.signature(Own).parameters], ['n','events'])
    eq([*inspect.signature(cb).parameters], ['name','kwargs'])

def test_hand_written_loop_over_events():
    "Firing the events of a run in user code trains the same weights as a fit"
    learn,fitted = mk(),fit(mk())
    learn.create_opt()
    learn('before_fit'); learn('before_epoch')
    learn.dl = learn.dls.train
    learn('before_train'); learn.all_batches(); learn('after_train')
    assert all(map(torch.equal, learn.model.parameters(), fitted.model.parameters())) and learn.train_iter==3
    learn.dl = learn.dls.train   # a second epoch
    learn('before_train'); learn.all_batches()
    assert learn.train_iter==6
    fit(learn)   # a fit afterwards works as usual
    eq(learn.recorder.history['epoch'], [0])

def test_mixup_outside_a_fit():
    "MixUp changes a batch when its events are fired without a fit"
    mixup = MixUp(1.)
    learn = mk(mixup)
    (x,y),learn.dl = learn.dls.train[0],learn.dls.train
    learn('before_train')
    learn.xb,learn.yb = (x,),(y,)
    learn('before_batch')
    assert not torch.equal(learn.x, x) and len(mixup.lam)==4
    learn('cleanup')
    assert not hasattr(learn.loss_func, 'mixer')
    with pytest.raises(RuntimeError, match='for training'), learn: learn('before_train')   # MixUp is not called in it

# Composer
def test_an_event_on_a_fresh_learner():
    "Both forms of the page work: a method for the event, or one method for all events"
    class Own(Callback):
        def before_epoch(self): print(f'Epoch: {int(self.epoch)}')
    class All(Callback):
        def __call__(self, name, **kwargs):
            if name==event.before_epoch: print(f'Epoch: {int(self.epoch)}')
    for cb in (Own, All):
        learn = mk(cb)
        prints(lambda: learn(event.before_epoch), 'Epoch: 0')
        eq([learn.epoch, learn.n_epoch, learn.iter, learn.n_iter, learn.train_iter, learn.pct_train], [0, 1, None, None, 0, 0.])

# fastNLP
def test_printed_progress(capsys):
    class Words(Callback):
        run_valid = False
        def before_fit(self):   print('Now start training...')
        def before_epoch(self):
            print(f'Epoch {self.epoch+1}/{self.n_epoch}')
            self.state['loss'] = 0
        def before_batch(self): print(f'Training Batch {self.iter+1}/{self.n_iter}...', 'Indices:', self.indices)
        def before_backward(self): self.state['loss'] += self.loss.item()
        def after_train(self):  print(f"End Epoch {self.epoch+1}, Average Loss {self.state['loss']/self.n_iter}", self.state.loss)
        def after_fit(self):    print('Quit training process.')
    ds = torch.utils.data.TensorDataset(torch.randn(8, 3), torch.tensor([0,1]*4))
    dls = DataLoaders(torch.utils.data.DataLoader(ds, 4, shuffle=True), torch.utils.data.DataLoader(ds, 4))
    learn = Learner(dls, nn.Linear(3, 2), nn.CrossEntropyLoss(), cbs=[ItemIndices, Words])
    fit(learn.remove_cb(learn.progress))
    lines = capsys.readouterr().out.splitlines()
    eq([o[:16] for o in lines], ['Now start traini', 'Epoch 1/1', 'Training Batch 1', 'Training Batch 2', 'End Epoch 1, Ave', 'Quit training pr'])
    eq(sorted(int(i) for o in lines[2:4] for i in o.split('[')[1].rstrip('])').split(',')), list(range(8)))

def test_monitored_metric(capsys):
    class WatchAccuracy(Callback):
        order = 60
        def before_fit(self): self.watch = Monitor('accuracy', 'max'); self.watch.start(self.learn)
        def after_epoch(self):
            v = self.watch.value(self.learn)
            print(f"Epoch: {self.epoch+1}/{self.n_epoch}, 'acc' is {'' if self.watch.update(v) else 'not '}better: {v}")
    learn = fit(mk(WatchAccuracy), 4)
    accs,best = learn.recorder.history['accuracy'],-1
    for line,a in zip(capsys.readouterr().out.splitlines(), accs, strict=True):
        assert line.endswith(f"{'' if a>best else 'not '}better: {a}")
        best = max(a, best)

@pytest.mark.parametrize('conditions,at', [(dict(), [1,2,3,4,5,6]), (dict(every=2), [2,4,6]), (dict(once=2), [2]), (dict(when=lambda filter, learn: filter.num_called%2==0), [2,4,6])])
def test_functions_on_events(conditions, at):
    "`Learner.on` adds the function only to the next Learner that is created"
    seen = []
    @Learner.on(event.before_backward, **conditions)
    def print_loss(learn): seen.append(learn.train_iter+1)
    fit(mk(), 2); fit(mk(), 2)
    eq(seen, at)

# pytorch-accelerated
def test_metrics_by_a_callback():
    tm = pytest.importorskip('torchmetrics.classification')
    class ClassMetrics(Callback):
        run_train,order = False,40
        def before_fit(self): self.measure = tm.MulticlassAccuracy(num_classes=3, average='micro').to(self.learn.device)
        def after_batch(self): self.measure.update(self.pred.argmax(-1), self.y)
        def after_validate(self):
            self.got = self.measure.compute().item()
            self.measure.reset()
    learn = fit(mk(ClassMetrics), 2)
    eq(learn.class_metrics.got, learn.recorder.history['accuracy'][-1])

def test_predictions_as_csv(tmp_path):
    class SavePredictions(Callback):
        run_train = False
        def before_validate(self): self.rows = defaultdict(list)
        def after_batch(self):
            self.rows['prediction'].extend(self.pred.argmax(-1).tolist())
            self.rows['targets'].extend(self.y.tolist())
        def after_validate(self):
            with (tmp_path/'p.csv').open('w', newline='') as f: csv.writer(f).writerows([self.rows, *zip(*self.rows.values())])
    learn = fit(mk(SavePredictions))
    with (tmp_path/'p.csv').open() as f: head,*rows = csv.reader(f)
    eq(head, ['prediction', 'targets'])
    preds,targs = learn.get_preds()
    eq([[int(v) for v in r] for r in rows], [list(o) for o in zip(preds.argmax(1).tolist(), targs.tolist())])

def test_custom_event():
    "A callback checks each batch at a new event, which a subclass of Learner fires with arguments"
    event.register('verify_batch', 'a batch is about to be predicted')
    class Verify(Callback):
        n = 0
        def verify_batch(self, xb, yb): assert xb.shape==(4,3) and len(yb)==4; self.n += 1
    class Own(Learner):
        def _pred(self):
            self('verify_batch', xb=self.x, yb=self.y)
            return super()._pred()
    train = [(torch.randn(4, 3), torch.tensor([0,1,2,1]))]*3
    learn = Own((train, train[:1]), nn.Linear(3, 3), nn.CrossEntropyLoss(), cbs=Verify)
    fit(learn.remove_cb(learn.progress))
    eq(learn.verify.n, 4)

def test_cancel_fit_ends_the_fit():
    "`CancelFit` does what `StopTrainingError` does in pytorch-accelerated"
    def stop(cb):
        if cb.learn.train_iter==2: raise CancelFit
    learn = fit(mk(Callback(after_step=stop)), 3)
    eq((learn.train_iter, learn.epoch), (2, 0))
