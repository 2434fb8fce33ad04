"""The capabilities of four trainers by row: fastai (1A), fastNLP (1B), Composer (1C) and pytorch-accelerated (1D).

A row either works (the function below exercises it) or is served in a different way (the row says how, and why that is
better; often a function shows it). Rows 0.x are cases in which one of the four contradicts its own documentation."""
import io, random, signal, warnings
from collections import Counter
from copy import deepcopy
from functools import partial
from importlib.util import find_spec
from typing import Callable, NamedTuple

import pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from learnkit.all import (ActivationStats, Callback, CancelBackward, CancelBatch, CancelEpoch, CancelFit, CancelStep, CancelTrain, CancelValid,
    CancelZeroGrad, CheckEvents, CheckpointCallback, CheckpointEvents, Clock, Cycles, DataLoaders, EarlyStoppingCallback, EMACallback, Evaluator,
    Every, EveryCallback, ExportAtEnd, FetchPredsCallback, Filter, FreeOutputs, GatherPredsCallback, GradientAccumulation, GradientClip, ImageLogger,
    ItemIndices, JsonLogger, Learner, LimitBatches, LossMonitor, MapInputs, MapOutputs, MemoryMonitor, MetricsLogger, MicroBatch, MixedPrecision, Monitor,
    MoveModules, NonFiniteCheck, OnBetter, OptimizerMonitor, OverfitBatches, ParamScheduler, ProgressCallback, Recorder, RuntimeEstimator, SanityCheck,
    SaveModelCallback, SchedCos, SchedLin, SpeedMonitor, StopAfter, SystemMetrics, TerminateOnNaNCallback, ThresholdStopper, Time,
    TimerCallback, TorchScheduler, TrainEvalCallback, ValidateEvery, displays, checkpoint_info, combine_scheds, event,
    get_random_states, maybe_gather, num_distrib, parse_every, rank0_first, rank_distrib, read_checkpoint, set_seed)
from learnkit.processes.shard import ShareBatches
from learnkit.callbacks.cycles import BatchEvents
from learnkit.callbacks.handlers import marked_handlers
import learnkit.observe.memory as observe_memory
from learnkit.observe.memory import MemorySnapshot
from learnkit.recovery.file import list_checkpoints
from learnkit.recovery.signals import StopOnSignal
from learnkit.recovery.nan import ReplayOnOOM
from learnkit.recovery.nan import RollBackOnNaN
from learnkit.recovery.nan import SkipNaN
from learnkit.processes.distributed import DistributedTrainer
from learnkit.processes.distributed import sync_norms, unsync_norms
from learnkit.recovery.export import load_learner
from oracle import VALID
from toys import at, batches, learner, model, pretend_cuda, throw, weights

class Row(NamedTuple):
    id:str; name:str; state:str; why:str; check:Callable|None

table = []

def _add(state, why, rows, check=None):
    for r in rows: id,_,name = r.partition(' '); table.append(Row(id, name, state, why, check))

def works(*rows):
    "Add rows, given as 'id name', that the decorated function exercises"
    def _works(f): _add('works', '', rows, f); return f
    return _works

def served(why, *rows):
    "Add rows that are served in a different way; as a decorator, with a function that shows it"
    places = range(len(table), len(table)+len(rows))
    _add('served', why, rows)
    def _served(f):
        for i in places: table[i] = table[i]._replace(check=f)
        return f
    return _served

# Helpers for the rows

class EventLog(Callback):
    "Records every event before all other callbacks; except `after_read_losses`, which depends on who reads them"
    acts = 'nothing'
    def __init__(self, see=None, order=-1000): self.events,self.see,self.order = [],see,order
    def __call__(self, name, **kw):
        if name!='after_read_losses': self.events.append(name if self.see is None else (name, self.see(self.learn)))

def events_of(*cbs, n=1, nt=2, nv=1, run=None, wrong=None, order=-1000, **kw):
    "The events of `learn.fit(n)`, or of `run(learn)`, with these callbacks"
    learn,log = learner(nt, nv, **kw),EventLog(order=order)
    learn.add_cbs([*cbs, log])
    run = run or (lambda learn: learn.fit(n))
    if wrong is None: run(learn)
    else:
        with pytest.raises(wrong): run(learn)
    return log.events

def counts(*cbs, **kw): return Counter(events_of(*cbs, **kw))
def between(events, a, b): i = events.index(a); return events[i+1:events.index(b, i)]
def only(events, *names): return [e for e in events if e in names]
def quiet(learn): learn.logger = lambda row: None; return learn
def same(a, b): return all(map(torch.equal, a.state_dict().values(), b.state_dict().values()))

# 1A: fastai

fastai_events = '''after_create before_fit before_epoch before_train before_batch after_pred after_loss before_backward after_cancel_backward after_backward
    before_step after_cancel_step after_step after_cancel_batch after_batch after_cancel_train after_train before_validate after_cancel_validate after_validate
    after_cancel_epoch after_epoch after_cancel_fit after_fit'''.split()
train_batch = 'before_batch after_pred after_loss before_backward after_backward before_step after_step after_batch'.split()
valid_batch = 'before_batch after_pred after_loss after_batch'.split()

@works('1A.1 24 events, with these names and in this order')
def names_of_events(): assert [e for e in event if e in fastai_events]==fastai_events and len(fastai_events)==24

@works('1A.2 the order in which they fire')
def order_of_events():
    epoch = ['before_epoch', 'before_train', *train_batch*2, 'after_train', 'before_validate', *valid_batch, 'after_validate', 'after_epoch']
    assert only(events_of(n=2), *fastai_events)==['before_fit', *epoch*2, 'after_fit']

@works('1A.3 a scope: before, body, after_cancel, after; an error skips after, but not cleanup')
def a_scope():
    evs = events_of(at('before_train', throw(CancelTrain())))
    assert between(evs, 'before_train', 'before_validate')==['after_cancel_train', 'after_train']
    evs = events_of(at('before_train', throw(KeyError())), wrong=KeyError)
    assert evs[-2:]==['after_exception', 'cleanup'] and 'after_train' not in evs

@works('1A.4 a Cancel in its own after-event has no effect (fastai crashes)')
def cancel_in_its_own_after():
    for cancel,ev in ((CancelBatch,'after_batch'), (CancelTrain,'after_train'), (CancelValid,'after_validate'), (CancelEpoch,'after_epoch'), (CancelFit,'after_fit')):
        assert events_of(at(ev, throw(cancel())))==events_of()

@works('1A.5 CancelFit from deep inside skips the after-events of open scopes')
def cancel_fit():
    evs = events_of(at('after_pred', throw(CancelFit())))
    assert evs[evs.index('after_pred')+1:]==['after_cancel_fit', 'after_fit', 'cleanup']

@works('1A.6 CancelBackward skips backward, but not the step')
def cancel_backward():
    learn,log = learner(1),EventLog()
    before = weights(learn)
    learn.add_cbs([at('before_backward', throw(CancelBackward())), log]).fit(1)
    assert torch.equal(weights(learn), before)
    assert between(log.events, 'before_backward', 'before_zero_grad')==['after_cancel_backward', 'after_backward', 'before_step', 'after_step']

@works('1A.7 CancelStep skips the step, but gradients are zeroed; CancelZeroGrad keeps them')
def cancel_step():
    learn,grads = learner(1),[]
    before = weights(learn)
    keep = at('after_batch', lambda cb: grads.append(cb.learn.model.weight.grad), run_valid=False)
    with learn.added_cbs([at('before_step', throw(CancelStep())), keep]): learn.fit(1)
    assert torch.equal(weights(learn), before) and grads==[None]
    with learn.added_cbs([at('before_zero_grad', throw(CancelZeroGrad())), keep]): learn.fit(1)
    assert grads[1].abs().sum()>0

@works('1A.8 CancelValid, CancelTrain, CancelEpoch, CancelBatch jump to the end of their scope')
def cancels():
    def after(cancel, ev): evs = events_of(at(ev, throw(cancel()), run_valid=cancel is CancelValid)); i = evs.index(ev); return evs[i+1:i+4]
    assert after(CancelValid, 'before_validate')==['after_cancel_validate', 'after_validate', 'after_epoch']
    assert after(CancelTrain, 'after_loss')==['after_cancel_train', 'after_train', 'before_validate']
    assert after(CancelEpoch, 'after_loss')==['after_cancel_epoch', 'after_epoch', 'after_fit']
    assert after(CancelBatch, 'before_batch')==['after_cancel_batch', 'after_batch', 'before_fetch']

@works('1A.9 an error fires no after-event, then after_exception and cleanup; temporary callbacks are removed', '1C.38 an event for exceptions',
       '0.11 what a run has changed is restored at its end')
def an_error():
    learn,log,temp = learner(),EventLog(),Callback()
    learn.add_cb(log)
    with pytest.raises(ValueError): learn.fit(1, cbs=[temp, at('before_batch', throw(ValueError('odd')))])
    assert [e for e in log.events if e.startswith('after')]==['after_fetch', 'after_exception'] and log.events[-1]=='cleanup'
    assert temp not in learn.cbs and learn.mode is None
    learn.fit(1)

@works('1A.10 an error keeps its type and arguments, and has a note with callback and event')
def note_on_an_error():
    class Odd(Callback):
        def before_batch(self): raise KeyError
    with pytest.raises(KeyError) as e: learner(cbs=Odd).fit(1)
    assert e.value.args==() and 'Odd' in e.value.__notes__[0] and 'before_batch' in e.value.__notes__[0]

@works('1A.11 events as attributes; an error suggests the right name for a typo')
def event_attributes():
    assert event.before_step=='before_step' and 'before_step' in dir(event)
    with pytest.raises(AttributeError, match='did you mean `before_step`'): event.before_stp

@works('1A.12 Callback(before_fit=f): f becomes a method')
def callback_of_functions():
    cb = Callback(before_fit=lambda self: setattr(self, 'n', self.learn.n_epoch))
    learner(cbs=cb).fit(2)
    assert cb.n==2
    with pytest.raises(TypeError, match='before_fit'): Callback(before_fitt=lambda self: 1)

@works('1A.13 cb(name) runs the method; a Learner raises for unknown events, event.register adds new ones',
       '1D.15 firing an event by name: a typo raises', '1D.17 user-defined events, with arguments')
def call_by_name():
    class Own(Callback):
        def my_word(self): return 42
        def rows_probe(self, xb, **kw): self.got = xb,kw
    learn,cb = learner(),Own()
    assert cb('my_word')==42 and cb('before_fit') is None
    with pytest.raises(ValueError, match='no event `rows_prob`'): learn('rows_prob')
    event.register('rows_probe')
    learn.add_cbs([cb, Callback()])('rows_probe', xb=1, yb=2)
    assert cb.got==(1, dict(yb=2))

@works('1A.14 a callback reads attributes of the Learner as its own; shadowing one warns',
       '1D.12 callbacks reach the trainer without arguments', '0.15 delegation is for reading only')
def delegation():
    learn,cb = learner(),Callback()
    learn.add_cb(cb)
    assert cb.model is learn.model and cb.loss_func is learn.loss_func
    with pytest.warns(UserWarning, match='shadowing'): cb.lr = 3
    assert cb.lr==3 and learn.lr==.05

@works('1A.15 names of callbacks; two of one class', '1B.23 state by name, even for two callbacks of one name', '1C.31 state by instance',
       '1D.14 two of one class')
def two_of_a_class():
    learn = learner(cbs=[SaveModelCallback(fname='a'), SaveModelCallback(fname='b')])
    a,b = [cb for cb in learn.cbs if isinstance(cb, SaveModelCallback)]
    assert a.name==b.name=='save_model' and {a.key,b.key}=={'save_model','save_model_2'} and learn.save_model is b
    learn.remove_cb(b)
    assert learn.save_model is a
    learn = learner(cbs=[EveryCallback(lambda learn: None, e) for e in ('2ba','4ba')])
    learn.fit(1)
    assert {'every','every_2'} <= {*learn._run_state(1)['cbs']}

@works('1A.16 order, ascending; ties in the order of adding', '1B.19 the order of calls', '1C.32 tiers: callbacks that change a batch come before those that read it')
def order():
    called = []
    def cb(name, order): return at('before_fit', lambda cb: called.append(name), order=order)
    learner(cbs=[cb('d', 2), cb('b', 1), cb('c', 1), cb('a', -1)]).fit(0)
    assert called==['a', 'b', 'c', 'd']
    tiers = MixedPrecision, GradientClip, Recorder, EveryCallback, ProgressCallback, CheckpointCallback
    assert [c.order for c in tiers]==sorted(c.order for c in tiers)

@served('callbacks have a number, `order`, which may change at any time; of several functions that sort the whole list, the last '
        'would undo the others',
        '1C.33 functions that sort the list of callbacks')
def other_order():
    called = []
    a,b = (at('before_fit', lambda cb, n=n: called.append(n)) for n in 'ab')
    learn = learner(cbs=[a, b])
    a.order = 1
    learn.fit(0)
    assert called==['b','a']

@works('1A.17 run, run_train, run_valid, and modes')
def run_flags():
    def called(run=lambda learn: learn.fit(1), **flags):
        got = []
        run(learner(2, 2, cbs=at('after_batch', lambda cb: got.append(cb.training), **flags)))
        return got
    assert called()==[True]*2+[False]*2 and called(run_train=False)==[False]*2 and called(run_valid=False)==[True]*2
    assert called(lambda learn: learn.validate(), modes=('fit',))==[] and called(lambda learn: learn.validate())==[False]*2
    learn = learner(cbs=(cb := Callback(before_train=lambda self: setattr(self, 'run', False), after_batch=lambda self: 1/0)))
    learn.fit(1)
    assert cb.run   # True again after the fit

@works('1A.18 remove_on_fetch, _only_train_loop, attributes that are not pickled')
def flags_of_fastai():
    class Fetched(Callback): remove_on_fetch = True
    class Trains(Callback): _only_train_loop = True
    for cls,modes in ((Fetched, ['fit','validate']), (Trains, ['fit'])):
        got = []
        class Seen(cls):
            def before_validate(self): got.append(self.learn.mode)
        learn = learner(cbs=Seen)
        learn.fit(1); learn.validate(); learn.get_preds()
        assert got==modes
    learn = deepcopy(learner())
    learn.fit(1)   # locks and iterators are not copied

@works('1A.19 adding and removing callbacks, classes or instances, permanently or for a block',
       '1B.39 callbacks are classes or instances, anything else raises a TypeError')
def adding_callbacks():
    learn = learner()
    with learn.added_cbs([GradientClip, Callback()]):
        assert len(learn.cbs)==6
        with learn.removed_cbs(GradientClip): assert len(learn.cbs)==5
    assert len(learn.cbs)==4
    with pytest.raises(KeyError), learn.removed_cbs(learn.progress): raise KeyError
    assert hasattr(learn, 'progress') and not hasattr(learn.remove_cb(ProgressCallback), 'progress')
    with pytest.raises(TypeError, match='not a callback'): learn.add_cb(3)

@works('1A.20 attributes of the Learner', '1B.40 the position of a run', '1C.12 counters are incremented before `after_batch`',
       '1B.11 counters are incremented before `after_batch`')
def attributes():
    seen = []
    def see(cb):
        l = cb.learn
        assert l.x is l.xb[0] and l.y is l.yb[0] and l.pred.shape==l.y.shape and l.loss.shape==l.loss_grad.shape==() and l.dl is l.dls.train
        seen.append((l.epoch, l.n_epoch, l.iter, l.n_iter, l.train_iter, l.pct_train))
    learn = learner(2, cbs=at('after_batch', see, run_valid=False))
    learn.fit(2)
    assert seen==[(0,2,0,2,1,.25), (0,2,1,2,2,.5), (1,2,0,2,3,.75), (1,2,1,2,4,1.)]
    assert all(hasattr(learn, k) for k in 'model dls loss_func opt opt_func cbs lr metrics path model_dir'.split())

@works('1A.21 TrainEvalCallback: order -10, training mode, counters, reset')
def train_eval():
    class Net(nn.Linear):
        n = 0
        def __init__(self): super().__init__(4, 1)
        def reset(self): self.n += 1
    modes = []
    learn = learner(model=Net(), cbs=[at(e, lambda cb: modes.append((cb.learn.training, cb.learn.model.training))) for e in ('before_train','before_validate')])
    learn.fit(1)
    assert TrainEvalCallback.order==-10 and modes==[(True,True), (False,False)] and learn.model.n==1 and learn.train_iter==3

@works('1A.22 Recorder: smooth_loss, values, metric_names', '1D.33 the history of a run: names, values, the latest value',
       '1C.66 learning rates are recorded')
def recorder():
    learn = learner(metrics=F.l1_loss)
    learn.fit(2)
    rec = learn.recorder
    assert list(rec.metric_names)==['epoch', 'train_loss', 'valid_loss', 'l1_loss', 'time'] and len(rec.values)==2 and len(rec.values[0])==3
    assert rec.history['epoch']==[0,1] and rec.history[-1]['valid_loss']==rec.values[1][1] and len(rec.losses)==len(rec.lrs)==6 and rec.lrs[0]==.05
    assert float(learn.smooth_loss)==pytest.approx(float(rec.losses[-1])) and rec.smooth_loss.raw[0]!=rec.smooth_loss.values[1]

@works('1A.23 GatherPredsCallback and its settings')
def gather(tmp_path):
    learn = learner()
    x,p,t,l = learn.get_preds(with_input=True, with_loss=True)
    assert x.shape==(8,4) and p.shape==t.shape==(8,1) and l.shape==(8,) and torch.allclose(p, learn.model(x))
    assert torch.allclose(l, (p-t).pow(2)[:,0])
    _,t2 = learn.get_preds(with_preds=False, save_preds=tmp_path/'preds', save_targs=tmp_path/'targs', pickle_protocol=4)
    assert torch.equal(t2, t) and torch.equal(torch.cat([torch.load(tmp_path/'preds'/str(i), weights_only=False) for i in (0,1)]), p)
    assert learn.get_preds(concat_dim=1)[0].shape==(4,2)
    with learn.added_cbs(cb := GatherPredsCallback(with_targs=False)): learn.validate()
    assert torch.allclose(cb.preds, p) and cb.targets is None

@works('1A.24 FetchPredsCallback: the predictions after each validation')
def fetch_preds():
    learn = learner(cbs=(cb := FetchPredsCallback(with_input=True, cbs=[])))
    learn.fit(2)
    x,p,t = cb.preds
    assert torch.allclose(p, learn.model(x)) and p.shape==t.shape==(8,1)

@works('1A.25 fit, validation and prediction have different modes', '1C.22 evaluation has its own mode', '1D.10 evaluation has its own mode',
       '1C.23 the events of a prediction')
def modes():
    def run(f): learn,log = learner(nv=1),EventLog(lambda learn: learn.mode); f(learn.add_cb(log)); return log.events
    evs,preds = run(lambda learn: learn.validate()),run(lambda learn: learn.get_preds())
    assert {m for _,m in evs}=={'validate'} and {m for _,m in preds}=={'predict'} and {m for _,m in run(lambda learn: learn.fit(1))}=={'fit'}
    batch = [*VALID, 'before_fetch', 'after_exhaust']
    for evs,what in ((evs,'evaluate'), (preds,'predict')): assert [e for e,_ in evs]==[f'before_{what}', 'before_fit', 'before_epoch', 'before_validate', *batch,
        'after_validate', 'after_epoch', 'after_fit', f'after_{what}', 'cleanup']

# 1B: fastNLP, and similar features of the others

@works('1B.1 after the trainer is made', '1C.1 init', '1D.1 at the end of init')
def after_create():
    seen = []
    learner(cbs=Callback(after_create=lambda self: seen.append((self.learn.model is not None, self.learn.dls.train is not None, len(self.learn.cbs)))))
    assert seen==[(True, True, 5)]

@works('1B.3 before training', '1C.3 before a fit', '1D.2 before a training run')
def fit_begins():
    evs = events_of(run=lambda learn: [learn.fit(1), learn.fit(1)])
    assert evs.count('before_fit')==2 and evs[0]=='before_fit'

@works('1B.4 before an epoch', '1D.3 before and after the training phase of an epoch')
def epoch_begins():
    evs = events_of(n=2)
    assert only(evs, 'before_epoch', 'before_train', 'after_train', 'after_epoch')==['before_epoch', 'before_train', 'after_train', 'after_epoch']*2

@served('`before_epoch` is fired for the rest of an epoch too: callbacks need what they set up there, and their saved state is loaded '
        'right after',
        '1C.5 before an epoch, but not before the rest of one')
def rest_of_an_epoch(tmp_path):
    with pytest.raises(SystemError): resumable(tmp_path, Crash(2)).fit(1, resume='auto')
    learn,log = resumable(tmp_path),EventLog()
    learn.add_cb(log).fit(1, resume='auto')
    assert only(log.events, 'before_epoch', 'after_step', 'after_epoch')==['before_epoch', 'after_step', 'after_epoch']

@works('1B.5 before and after each batch is fetched, and after the last one', '1C.6 before the next batch is requested',
       '1C.7 after a batch is fetched, unchanged; not at the end of the data')
def fetching():
    raw = []
    evs = events_of(at('after_fetch', lambda cb: raw.append(type(cb.learn.batch))))
    train = between(evs, 'before_train', 'after_train')
    assert train.count('before_fetch')==3 and train.count('after_fetch')==2 and train[-2:]==['before_fetch','after_exhaust'] and raw[0] is tuple

@works('1B.7 before backward, with the outputs', '1D.5 after forward and loss, before backward and step',
       '0.16 before_backward and after_batch are two events')
def before_backward():
    seen = []
    def see(cb): seen.append((cb.learn.pred.shape, cb.learn.model.weight.grad, cb.learn.loss.item()))
    assert counts(at('before_backward', see))['before_backward']==2
    assert seen[0][0]==(4,1) and seen[0][1] is None and seen[0][2]>0

@works('1B.8 after each backward, even of micro-batches')
def after_backward():
    evs = events_of(GradientAccumulation(8), nt=4)
    assert evs.count('after_backward')==4 and evs.count('after_step')==2

@works('1B.9 before and after a step, only if there is one', '1B.10 gradients are zeroed after the step, under the same condition',
       '0.1 the step, then zero_grad')
def around_a_step():
    evs = events_of(GradientAccumulation(8), nt=3, order=99)
    names = 'before_step', 'after_step', 'before_zero_grad', 'after_zero_grad'
    # the gradients left at the end of an epoch are stepped too: fastNLP carries them into the next one
    assert only(evs, *names)==[*names]*2
    grads = []
    events_of(*(at(e, lambda cb: grads.append(cb.learn.model.weight.grad is not None)) for e in names[1:]))
    assert grads[:3]==[True, True, False]

@works('1B.13 after the training phase of an epoch, before validation', '1C.14 after the training phase of an epoch, before validation')
def after_train():
    evs,seen = events_of(),[]
    assert evs[evs.index('after_train')+1]=='before_validate'
    events_of(at('after_train', lambda cb: seen.append(cb.learn.train_iter)), n=2)
    assert seen==[2,4]

@works('1B.14 an event for exceptions; early stopping is not one')
def exceptions():
    for e in (ValueError, KeyboardInterrupt):
        seen = []
        events_of(at('after_exception', lambda cb: seen.append(type(cb.learn.exc))), at('before_batch', throw(e())), wrong=e)
        assert seen==[e]
    evs = events_of(at('after_batch', lambda cb: cb.learn.stop('enough')))
    assert 'after_exception' not in evs and evs[-3:]==['after_cancel_fit', 'after_fit', 'cleanup']

@works('1B.15 the end of training: after_fit if it succeeded, cleanup always', '1D.9 the end of a run', '1C.17 after a fit and its last validation')
def the_end():
    evs = events_of()
    assert evs[-2:]==['after_fit', 'cleanup'] and evs.index('after_validate')<evs.index('after_fit')
    evs = events_of(at('after_pred', throw(OSError())), wrong=OSError)
    assert 'after_fit' not in evs and evs.count('cleanup')==1

@works('1B.16 before and after a model is saved or loaded')
def saving_events(tmp_path):
    learn,log = learner(path=tmp_path),EventLog()
    learn.fit(1)
    learn.add_cb(log).save('a')
    learn.load('a')
    assert log.events==['before_save_model', 'after_save_model', 'before_load_model', 'after_load_model']

class Counts(Callback):
    "Counts training batches, and saves the count in checkpoints"
    order,saves,run_valid,n = 5,('n',),False,0
    def after_batch(self): self.n += 1

class Crash(Callback):
    "Crashes after `n` batches, as if the power failed"
    order,acts = 10_000,'nothing'
    def __init__(self, n): self.at = n
    def after_batch(self):
        if self.learn.training and self.learn.train_iter==self.at: raise SystemError('the power failed')

def resumable(path, *cbs, every='1ba', n=12, **kw):
    set_seed(3)
    x = torch.randn(n, 4)
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(.3), nn.Linear(8, 1))
    dls = DataLoaders(DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), 4, shuffle=True), batches(1))
    return quiet(Learner(dls, net, nn.MSELoss(), torch.optim.Adam, path=path, cbs=[CheckpointCallback(every, **kw), *cbs]).remove_cb(ProgressCallback))

def crashed(path, n, *cbs, epochs=2, **kw):
    "A run that crashes after batch `n`, and a second one that resumes it"
    with pytest.raises(SystemError): resumable(path, *(c() for c in cbs), Crash(n), **kw).fit(epochs, resume='auto')
    learn = resumable(path, *(c() for c in cbs), **kw)
    learn.fit(epochs, resume='auto')
    return learn

@works('1B.17 what a callback saves in a checkpoint', '1B.18 and what it loads when the run resumes',
       '1B.41 the count of batches is saved, not derived')
def callback_state(tmp_path):
    learn = crashed(tmp_path, 4, Counts)
    assert learn.counts.n==6 and learn.train_iter==6
    state = read_checkpoint(list_checkpoints(learn.checkpoint.folder)[0])
    assert state['cbs']['counts']=={'n':6} and state['train_iter']==6
    with pytest.warns(UserWarning, match='counts, which is not among the callbacks'): resumable(tmp_path).fit(3, resume='auto')

@works('1C.2 before and after a run is resumed, only if there is one', '0.4 before and after a model or a run is saved or loaded')
def loading_events(tmp_path):
    def record():
        learn,got = resumable(tmp_path),[]
        class Recording(Callback):
            order = -5
            def before_load_checkpoint(self, path): got.append((path.suffix, self.learn.train_iter))
            def after_load_checkpoint(self): got.append(self.learn.train_iter)
            def before_save_model(self): got.append('before')
            def after_save_model(self): got.append('after')
        learn.add_cb(Recording).fit(1, resume='auto')
        learn.save('a')
        return got
    a,b = record(),record()
    assert a==['before','after'] and b==[('.pth',0), 3, 'before', 'after'], (a, b)

@works('1B.20 an error in a handler ends the run; every handler of `cleanup` still runs')
def errors_at_the_end():
    called = []
    cbs = [at('cleanup', throw(KeyError('mine'))), at('cleanup', lambda cb: called.append('cleanup')),
           at('after_exception', throw(OSError('too'))), at('after_exception', lambda cb: called.append('exc'))]
    with pytest.raises(ValueError) as e: learner(cbs=[*cbs, at('before_fit', throw(ValueError('first')))]).fit(1)
    assert {*called}=={'cleanup','exc'} and any('OSError' in n for n in e.value.__notes__) and any('KeyError' in n for n in e.value.__notes__)

@works('1B.21 which methods are handlers is known from the class, without its source')
def no_source_needed():
    space = {}
    exec('class Made(Callback):\n  def before_fit(self): self.ok = True', dict(Callback=Callback), space)
    learn = learner(cbs=space['Made'])
    learn.fit(0)
    assert learn.made.ok and learn.made in learn.ordered_cbs('before_fit') and learn.made not in learn.ordered_cbs('after_fit')

@works('1B.24 any shuffled loader can be resumed', '1C.56 resuming in the middle of an epoch', '1B.43 another fit continues', '0.7 learn.state is saved',
       '0.18 n_epoch is the total, even of a resumed run')
def resume(tmp_path):
    straight = resumable(tmp_path/'a')
    straight.fit(2)
    for n in (1, 3, 4):
        learn = crashed(tmp_path/f'b{n}', n)
        assert same(learn.model, straight.model) and learn.train_iter==6 and len(learn.recorder.history)==2
    learn.state.seen = 3
    assert learn._run_state(2)['state']=={'seen':3}
    before = weights(learn)
    learn.fit(1)
    assert not torch.equal(weights(learn), before)

@works('1B.25 a decorator makes an unchanged function a callback of all Learners', '1B.26 without a marker: of the next Learner that is created',
       '1B.27 with a marker: of each Learner with that marker', "1B.28 with the marker 'all': of each Learner, once",
       '1B.29 a marker that no Learner has: a warning')
def on_the_class():
    called = []
    def made(*a, **kw): called.clear(); learner(*a, **kw).fit(0); return sorted(called)
    try:
        def f(learn): called.append('next')
        assert Learner.on('before_fit')(f) is f
        with pytest.raises(TypeError): Learner(batches(1), 'no model')
        assert made()==['next'] and made()==[]
        Learner.on('before_fit', marker='x')(lambda learn: called.append('x'))
        Learner.on('before_fit', marker='all')(lambda learn: called.append('all'))
        def at(marker): return made(cbs=marked_handlers(marker))
        assert at('x')==['all','x'] and at('x')==['all','x'] and made()==['all']
        assert at('all')==['all']
        Learner.off()
        with pytest.warns(UserWarning, match='marker'): assert at('all')==[]
        assert Learner._on_create==[]
        with pytest.warns(UserWarning, match="'y'"): at('y')
        with pytest.raises(ValueError, match='no event'): Learner.on('before_fitt')
    finally: Learner.off()

def filtered(**kw):
    learn,got = learner(6),[]
    learn.on('after_step', **kw)(lambda learn: got.append(learn.train_iter+1))
    learn.fit(1)
    return got

@works('1B.30 a function for one Learner, after its creation', '1B.31 every n-th call', '1B.32 one call only', '1B.33 when a function returns True',
       '1B.34 without a condition: every call', '0.3 two conditions raise')
def filters():
    assert filtered()==[1,2,3,4,5,6] and filtered(every=2)==[2,4,6] and filtered(once=3)==[3] and filtered(once=True)==[1]
    seen = []
    assert filtered(when=lambda f,learn: seen.append((f.num_called, f.num_executed)) or f.num_called in (2,3))==[2,3] and seen[:4]==[(1,0), (2,0), (3,1), (4,2)]
    for kw in (dict(every=2, once=1), dict(every=2, once=1, when=print)):
        with pytest.raises(ValueError, match='pass one of'): learner().on('after_step', **kw)

@works('1B.35 conditions are checked where they are defined')
def checked_at_decoration():
    for kw in (dict(every=0), dict(once=1.), dict(every=-1)):
        with pytest.raises(ValueError, match='integer'): learner().on('after_step', **kw)
    with pytest.raises(TypeError, match='function'): Filter(when=3)

@works('1B.36 the counters of filters are in the checkpoint, one for each method')
def filter_counts():
    class Two(Callback):
        @Filter(every=2)
        def after_batch(self): pass
        @Filter(once=1)
        def after_epoch(self): pass
    cb,new = Two(),Two()
    learner(3, 1, cbs=cb).fit(1)
    new.load_state_dict(cb.state_dict())
    assert cb.state_dict()=={'filter_after_batch':dict(num_called=4, num_executed=2), 'filter_after_epoch':dict(num_called=1, num_executed=1)}==new.state_dict()

@works('1B.42 a place for values of the user, in checkpoints too')
def state():
    learn = learner()
    learn.state.a = {}
    learn.state.a['b'] = 2
    assert learn.state['a']=={'b':2} and not hasattr(learn.state, 'nothing') and 'nothing' not in learn.state

def watched(m, *values):
    m.start(learner().add_cb(Callback())) if callable(m.monitor) else None
    return [m.update(v) for v in values]

@works('1B.44 a monitored value: a name or a function, and whether lower is better', '1B.46 whether a value is strictly better; the best is saved',
       '1B.47 whether a value is better than the best, or than another one', '1B.48 NaN is never better and does not become the best',
       '1B.50 a name for a monitored function')
def monitor():
    def number(learn): return 0
    assert watched(Monitor(number, 'min'), 3., 3., 2., None, float('nan'), 1.)==[True, False, True, None, False, True]
    assert watched(Monitor(number, 'max', min_delta=.5), 3., 3.4, 3.6)==[True, False, True]
    m = Monitor(number, 'max', nan='raise')
    m.start(learner())
    assert m.best==float('-inf') and m.is_better(0.) and m.comp(2., 1.) and m.name=='number' and Monitor(partial(number), 'max').name=='number'
    with pytest.raises(ValueError, match='nan'): m.update(float('nan'))

@served('only exact names are accepted, and an error lists them: by the longest common substring `loss` would become `acc`',
        '1B.45 the value of a name')
def unknown_column():
    for asked in ('los', 'zzz'):
        with pytest.raises(ValueError, match='train_loss, valid_loss'): learner(cbs=EarlyStoppingCallback(asked)).fit(1)

@served('the default monitor of each tracker is `valid_loss`, or `train_loss` without validation data; a default of the Learner '
        'would be a second place to look',
        '1B.49 one monitor for all callbacks without one', '0.6 monitor=None has a meaning')
def monitor_by_default():
    learn = learner(cbs=[EarlyStoppingCallback(None, patience=9), log := EventLog()])
    learn.fit(1)
    assert learn.early_stopping.watch.column=='valid_loss'
    learn = learner(nv=0, cbs=EarlyStoppingCallback(None, patience=9))
    learn.fit(1)
    assert learn.early_stopping.watch.column=='train_loss'
    learn = learner(cbs=[EarlyStoppingCallback('acc'), log])
    log.events.clear()
    with pytest.raises(ValueError, match='acc'): learn.fit(1)
    assert 'before_epoch' not in log.events

@works('1B.51 a function that is called at each improvement')
def on_better():
    got = []
    learner(cbs=OnBetter(lambda learn: got.append(learn.epoch))).fit(3)
    assert got==[0,1,2]

@works('1B.53 the interval of validation', '1D.28 validation within an epoch, after which training mode is restored',
       '0.2 intervals are text with a unit', '1C.42 one syntax for all intervals')
def validate_every():
    seen = []
    evs = events_of(ValidateEvery('2ba'), at('before_pred', lambda cb: seen.append(cb.learn.model.training), run_valid=False), nt=4)
    assert evs.count('before_validate')==3 and seen==[True]*4
    learn = learner(4, cbs=ValidateEvery(lambda learn: learn.train_iter==3))
    learn.fit(1)
    assert [r['train_iter'] for r in learn.validate_every.history]==[3]
    assert parse_every('2ep')==(2,'ep') and parse_every('500ba')==(500,'ba') and parse_every(2)==(2,'ep') and not Every(None)
    with pytest.raises(ValueError, match="2ep"): Every('2 epochs')

@works('1B.56 a separate validation restores every mode, even after an error',
       '1C.46 what an evaluation changes is restored, even after an error')
def validation_restores():
    learn = learner(2, 2, model=nn.Sequential(nn.Linear(4, 4), nn.Dropout(.5), nn.Linear(4, 1)))
    learn.fit(1)
    learn.model.train(); learn.model[1].eval()
    before = [m.training for m in learn.model.modules()],learn.dl,learn.epoch,learn.train_iter
    for cbs in ([], [at('after_pred', throw(ValueError()))]):
        try: learn.validate(cbs=cbs)
        except ValueError: pass
        assert ([m.training for m in learn.model.modules()],learn.dl,learn.epoch,learn.train_iter)==before
    assert len(learn.recorder.history)==1
    def fails_inside(cb):
        learn,dl = cb.learn,cb.learn.dl
        with pytest.raises(ValueError): learn.validate(cbs=at('after_pred', throw(ValueError())))
        assert learn.dl is dl is learn.dls.train and learn.model.training and learn.training
    learn.fit(1, cbs=at('before_batch', fails_inside, run_valid=False))

@works('1B.57 the parts of the loop can be replaced', '1D.13 methods to override, besides callbacks')
def parts_of_the_loop():
    class Sam(Learner):
        steps = 0
        def _do_step(self): self.steps += 1; super()._do_step()
        def _pred(self): return super()._pred()*0
    learn = Sam((batches(3), batches(1)), model(), nn.MSELoss(), torch.optim.SGD, lr=.05)
    learn.fit(1)
    assert learn.steps==3 and learn.pred is None and learn.validate()[0]==pytest.approx(float(batches(1)[0][1].pow(2).mean()))

@works('1B.59 gradient accumulation and mixed precision')
def accumulation():
    a,b = learner(4, cbs=GradientAccumulation(8)),learner(2, dls=DataLoaders([tuple(map(torch.cat, zip(*p))) for p in (batches(4)[:2], batches(4)[2:])]))
    a.fit(1); b.fit(1)
    assert torch.allclose(weights(a), weights(b), atol=1e-6)
    seen = []
    learner(cbs=[MixedPrecision('bf16'), GradientAccumulation(8), at('before_loss', lambda cb: seen.append(torch.is_autocast_enabled('cpu')))]).fit(1)
    assert seen and all(seen) and not torch.is_autocast_enabled('cpu')

@served('KeyboardInterrupt is raised again after the state is restored and the best model loaded, so a script continues after `try: '
        'learn.fit(9)`, `except KeyboardInterrupt: pass`; if it was swallowed, a script would continue as if the fit had ended',
        '1B.60 Ctrl-C ends the run')
def interrupt():
    learn = learner(cbs=at('after_batch', throw(KeyboardInterrupt())))
    with pytest.raises(KeyboardInterrupt): learn.fit(2)
    assert learn.mode is None
    learn.remove_cb(learn.callback).fit(1)

@works('1B.62 saving and loading weights, with and without the optimizer, in a file or in memory',
       '1D.37 weights to publish and a run to resume are two files')
def save_and_load(tmp_path):
    a = learner(opt_func=torch.optim.Adam, path=tmp_path)
    a.fit(1)
    buf = io.BytesIO()
    a.save(buf)
    for f in (buf, a.save('both')):
        if f is buf: buf.seek(0)
        b = learner(opt_func=torch.optim.Adam, model=model(9), path=tmp_path).load(f)
        assert same(a.model, b.model) and len(b.opt.state_dict()['state'])==2
    plain = torch.load(a.save('plain', with_opt=False), weights_only=True)
    assert {*plain}=={'weight','bias'}
    with pytest.warns(UserWarning, match='no optimizer state'): a.load(io.BytesIO(a._make_file_path('plain').read_bytes()))
    with pytest.raises(ValueError, match='learn.load'): a._restore({'model':plain})

def names(cb): return [p.stem for p in list_checkpoints(cb.folder)]

@works('1B.63 checkpoints: every n epochs or batches, the latest, the best, at an exception, with results',
       '1C.60 checkpoints at intervals; the latest are kept, and the best by a metric',
       '1D.31 checkpoints every n epochs or steps: after the update; old ones are deleted even after a resume')
def checkpointing(tmp_path):
    learn = resumable(tmp_path/'a', every='2ba', keep=2)
    learn.fit(2)
    assert names(learn.checkpoint)[0].endswith('final') and [int(n[5:13]) for n in names(learn.checkpoint)]==[6,4], names(learn.checkpoint)
    assert torch.equal(read_checkpoint(list_checkpoints(learn.checkpoint.folder)[0])['model']['0.weight'], learn.model[0].weight)
    learn = resumable(tmp_path/'b', every='9ep', keep=1, best='valid_loss')
    learn.fit(3)
    losses = learn.recorder.history['valid_loss']
    kept = {i.get('value') for p in list_checkpoints(learn.checkpoint.folder) if (i := checkpoint_info(p))}
    assert min(losses) in kept and checkpoint_info(list_checkpoints(learn.checkpoint.folder)[-1])['results']['valid_loss'] in losses
    learn = resumable(tmp_path/'c', Crash(2), every='9ep', on_exception=True)
    with pytest.raises(SystemError): learn.fit(1)
    assert [p.name.split('-')[0] for p in learn.checkpoint.folder.glob('*.pth')]==['exception']
    learn = crashed(tmp_path/'d', 4, every='1ba', keep=2)
    assert len(names(learn.checkpoint))==2 and len([*learn.checkpoint.folder.glob('*.pth')])==2

@works('1B.64 the k best are kept: the new one is written before the worst is deleted')
def best_of_k(tmp_path, monkeypatch):
    import learnkit.recovery.resume as module
    learn,n = resumable(tmp_path, every=None, keep=1, best=Monitor(lambda learn: [3,1,2,5][learn.epoch], 'min'), n_best=2),[]
    remove = module.remove_checkpoint
    monkeypatch.setattr(module, 'remove_checkpoint', lambda p: (n.append(len(names(learn.checkpoint))), remove(p)))
    learn.fit(4)
    values = {checkpoint_info(p).get('value') for p in list_checkpoints(learn.checkpoint.folder)}
    assert values>={1.,2.} and 3. not in values and n and min(n)>2

@works('1B.65 the best model is loaded at the end, even of a resumed run',
       '0.5 the best is loaded at a normal end and after a graceful stop, not after a crash',
       '1D.23 the best model: a first NaN has no effect, older files are not loaded')
def load_best(tmp_path):
    def number(learn): return [float('nan'),1,5,6][learn.epoch]
    def learn(*cbs, name='a'): return learner(cbs=[SaveModelCallback(number, 'min', fname=name), *cbs], path=tmp_path)
    kept = {}
    keep = at('after_epoch', lambda cb: kept.update({cb.learn.epoch:weights(cb.learn)}))
    l = learn(keep); l.fit(4)
    assert torch.equal(weights(l), kept[1])
    l = learn(keep, at('after_epoch', lambda cb: cb.learn.stop('enough'), when=lambda cb: cb.learn.epoch==2)); l.fit(4)
    assert torch.equal(weights(l), kept[1]) and l.epoch==2
    l = learn(at('before_epoch', throw(OSError()), when=lambda cb: cb.learn.epoch==3))
    with pytest.raises(OSError): l.fit(4)
    assert torch.equal(weights(l), kept[2])
    l = learn(at('before_epoch', throw(CancelFit())))
    w = weights(l); l.fit(4)
    assert torch.equal(weights(l), w)   # the file of an earlier run exists, but this run did not write it
    assert {'watch','saved'}<={*SaveModelCallback.saves}

@works('1B.66 early stopping: all callbacks see the last evaluation', '1C.61 early stopping with a state',
       '1D.24 early stopping after `patience` epochs without improvement')
def early_stopping(tmp_path):
    values,seen = [3,1,2,2,2,0,0,0],[]
    learn = learner(cbs=[EarlyStoppingCallback(lambda learn: values[learn.epoch], 'min', patience=3),
                         at('after_epoch', lambda cb: seen.append(cb.learn.epoch), order=99)])
    learn.fit(8)
    assert seen==[0,1,2,3,4] and 'early stopping' in learn.stop_reason
    cb = learn.early_stopping
    state = cb.state_dict()
    assert (state['watch'],state['wait'])==({'best':1.}, 3), state
    learn = learner(cbs=EarlyStoppingCallback(lambda learn: [1,2,2][learn.epoch], 'min', patience=2))
    learn.fit(3)
    assert learn.epoch==2 and len(learn.recorder.history)==3

@works('1B.69 schedulers of PyTorch, by step or epoch, with their state', '0.9 after the step')
def torch_scheduler():
    learn = learner(2, cbs=TorchScheduler(partial(torch.optim.lr_scheduler.StepLR, step_size=1, gamma=.5), 'step'))
    learn.fit(2)
    assert learn.recorder.hps['lr']==[.05,.025,.0125,.00625] and TorchScheduler.saves==('sched','n')
    learn = learner(2, cbs=TorchScheduler(partial(torch.optim.lr_scheduler.StepLR, step_size=1, gamma=.5)))
    learn.fit(2)
    assert learn.recorder.hps['lr']==[.05,.05,.025,.025]

@works('1B.70 warm-up that a resumed run continues')
def warmup(tmp_path):
    class Warm(ParamScheduler):
        def __init__(self): super().__init__(dict(lr=combine_scheds([.5,.5], [SchedLin(.1, 1.), SchedCos(1., 0.)])))
    straight = resumable(tmp_path/'a', Warm())
    straight.fit(2)
    learn = crashed(tmp_path/'b', 4, Warm)
    assert learn.recorder.hps['lr']==straight.recorder.hps['lr'] and len(learn.recorder.hps['lr'])==6 and learn.recorder.hps['lr'][0]==pytest.approx(.1)

@works('1B.71 clipping by norm or value, of unscaled gradients', '1D.36 gradient accumulation, clipped once a step',
       '0.8 the clipped gradients are those of the step')
def clipping():
    def norms(*cbs):
        got = []
        def look(cb):
            g = torch.cat([p.grad.flatten() for p in cb.learn.model.parameters()])
            got.append((float(g.norm()), float(g.abs().max())))
        learner(4, cbs=[*cbs, at('after_step', look)]).fit(1)
        return got
    assert all(n<=.0101 for n,_ in norms(GradientClip(.01))) and all(m<=.011 for _,m in norms(GradientClip(value=.01)))
    assert GradientClip.order>MixedPrecision.order and all(n<=.0101 for n,_ in norms(GradientClip(.01), MixedPrecision('fp16', init_scale=1024.)))
    assert len(norms(GradientClip(.01), GradientAccumulation(8)))==2
    assert counts(StopAfter(5), n=9)['after_step']==5

@works('1B.74 parts of the Learner for user-defined callbacks')
def parts():
    import learnkit.all as lk
    assert all(hasattr(lk, k) for k in 'Monitor TrackerCallback write_checkpoint list_checkpoints newest_checkpoint Every EveryCallback Filter Scheduler HookCallback'.split())

# 1B again: what belongs around the loop

@works('1B.2 a few batches are validated before training; an error there ends the run properly', '1B.37 this sanity check is not counted')
def sanity():
    learn,log,called = learner(2, 3),EventLog(lambda learn: learn.mode),[]
    learn.on('after_validate', once=1)(lambda learn: called.append(learn.mode))
    learn.add_cbs([SanityCheck(2), log])
    learn.fit(1)
    evs = [e for e,m in log.events if m=='sanity']
    assert evs[0]=='before_sanity' and evs[-1]=='after_sanity' and evs.count('after_batch')==2
    assert only([e for e,_ in log.events], 'before_fit', 'before_sanity', 'before_epoch')[:3]==['before_fit', 'before_sanity', 'before_epoch']
    assert set(learn.sanity_check.results)=={'valid_loss'} and len(learn.recorder.history)==1
    evs = events_of(SanityCheck(1), at('after_sanity', throw(ValueError())), wrong=ValueError)
    assert evs[-2:]==['after_exception', 'cleanup'] and 'before_epoch' not in evs

@works('1B.6 before a batch, with the indices of its samples', '1B.61 an error in a batch names the samples of the dataset')
def indices():
    x = torch.arange(8.)[:,None].repeat(1, 4)
    dl,got = DataLoader(TensorDataset(x, x[:,:1]), 4, shuffle=True),[]
    def see(cb): got.append((cb.learn.indices, cb.learn.x[:,0].tolist()))
    learn = learner(dls=DataLoaders(dl, batches(1)), lr=0., cbs=[ItemIndices(), at('before_batch', see, run_valid=False)])
    learn.fit(1)
    assert len(got)==2 and all(list(map(float, i))==x for i,x in got)
    learn.add_cb(at('after_pred', throw(ValueError('odd'))))
    with pytest.raises(ValueError) as e: learn.fit(1)
    assert any('samples of the dataset' in n and str(int(got[2][1][0])) in n for n in e.value.__notes__)

@works('1B.12 before and after the evaluations that are due, with their results', '1C.18 before and after all evaluators that are due',
       '1B.52 names of results, by loader and metric', '1C.45 evaluators with their own name, metrics and interval')
def evaluators():
    got = []
    learn = learner(4, cbs=[Evaluator('test', batches(1, seed=3), F.l1_loss, every='2ba'), Evaluator('other', batches(2, seed=4))])
    log = EventLog(lambda learn: learn.dl_name)
    class Got(Callback):
        def after_validate_all(self, results): got.append({*results})
    learn.add_cbs([log, Got])
    learn.fit(1)
    assert got==[{'test'},{'test'},{'other'}] and [n for e,n in log.events if e=='before_validate' and n]==['test','test','other']
    row = learn.evaluate_test.history[-1]
    assert {'test_loss','test_l1_loss','train_iter'}<={*row} and row['train_iter']==4
    assert {*learn.validate_all(a=batches(1), b=batches(1))}=={'a','b'} and {*learn.validate_all()['test']}=={'loss','l1_loss'}

@works('1B.22 a warning about a replaced loop that omits events')
def forgotten_events():
    class Short(Learner):
        def _do_one_batch(self): self.pred = self._pred(); self.loss_grad = self._loss()
    learn = Short((batches(2), batches(1)), model(), nn.MSELoss(), cbs=[CheckEvents(), GradientClip()])
    with pytest.warns(UserWarning, match='`before_step`.*GradientClip'): learn.fit(1)

@works('1B.38 how often each event was fired, and for which callbacks', '1C.35 which callbacks were called at which event', '1C.37 how long each callback and event took')
def traced():
    profile = learner(3, 2, cbs=at('after_batch', lambda cb: None)).profile()
    called = {(r['event'], r['callback']):r['calls'] for r in profile.callbacks(events=True)}
    assert called['after_batch','callback']==5 and {'event','callback','calls','seconds'}<={*profile.callbacks(events=True)[0]}
    assert {r['event']:r['calls'] for r in profile.events()}['after_pred']==5

@works('1B.54 limits on the batches of training, validation and the sanity check', '1D.29 a limit on evaluation that takes effect',
       '1D.30 a limit on all phases, even from the environment', '0.20 the limit is in the loop', '0.10 n batches are exactly n batches')
def limits(monkeypatch):
    def n(*cbs): evs = events_of(*cbs, nt=5, nv=4); return evs.count('after_step'),evs.count('after_batch')-evs.count('after_step')
    assert n(LimitBatches(2, 1))==(2,1) and n(LimitBatches(valid=.5))==(5,2) and n(LimitBatches(train=9))==(5,4)
    assert n(LimitBatches(2), ValidateEvery('1ba'))[0]==2
    monkeypatch.setenv('LEARNKIT_LIMIT_BATCHES', '3')
    assert n()==(3,3)
    monkeypatch.setenv('LEARNKIT_LIMIT_BATCHES', 'few')
    with pytest.raises(ValueError, match='LEARNKIT_LIMIT_BATCHES'): learner().fit(1)
    monkeypatch.delenv('LEARNKIT_LIMIT_BATCHES')
    learn = learner(3, cbs=StopAfter(4))
    learn.fit(5)
    assert learn.train_iter==4

@works('1B.55 a few batches repeatedly, which are also validated')
def overfit():
    got = []
    learn = learner(5, 4, cbs=[OverfitBatches(2), at('before_batch', lambda cb: got.append((cb.learn.training, cb.learn.x.sum().item())))])
    learn.fit(2)
    assert len(got)==8 and len({x for _,x in got})==2 and {x for t,x in got if t}=={x for t,x in got if not t}

@works('1B.58 inputs and outputs renamed, or mapped by a function, in training or everywhere')
def mapping():
    class Net(nn.Linear):
        def forward(self, feats): return dict(logits=super().forward(feats))
    data = [dict(x=x, y=y) for x,y in batches(2)]
    learn = learner(dls=DataLoaders(data, data), model=Net(4, 1), cbs=[MapInputs(dict(x='feats')), MapOutputs(lambda o: o['logits'])])
    learn.fit(1)
    assert len(learn.get_preds()[0])==8
    with pytest.raises(KeyError, match='did you mean `x`'): learner(dls=DataLoaders(data, data), model=Net(4, 1), cbs=MapInputs({'xx':'feats'})).fit(1)

@works('1B.67 a second evaluation, at an interval or after each improvement')
def evaluate_when_better():
    learn = learner(cbs=Evaluator('test', batches(1), when_better=Monitor(lambda learn: [3,4,2,5][learn.epoch], 'min')))
    learn.fit(4)
    assert [r['epoch'] for r in learn.evaluate_test.history]==[0,2]
    with pytest.raises(ValueError, match='not both'): Evaluator('test', batches(1), every='2ep', when_better='valid_loss')

@works('1B.68 progress: rich, tqdm, plain lines, automatic, or none; the loss is not read each batch', '1D.22 text and bars')
def progress(capsys):
    learn = learner()
    learn.fit(1)
    assert 'valid_loss' in capsys.readouterr().out
    assert {'rich','tqdm','lines','terminal','notebook'}<={*displays}
    for k in ('rich', 'tqdm'):
        learn = learner(cbs=ProgressCallback(k), default_cbs=False).add_cbs([TrainEvalCallback, Recorder])
        if find_spec(k): learn.fit(1); assert 'valid_loss' in capsys.readouterr().out
        else:
            with pytest.raises(ImportError, match='pip install'): learn.fit(1)
    learn = learner()
    with pytest.raises(ValueError, match='`kind` must be'): ProgressCallback('fancy')
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    assert capsys.readouterr().out==''

@works('1B.72 a timer of the phases, even after an exception')
def timer(capsys):
    learn = learner(cbs=[TimerCallback('2ba'), cb := at('after_pred', throw(ValueError()))])
    with pytest.raises(ValueError): learn.fit(1)
    learn.remove_cb(cb).fit(1)
    out = capsys.readouterr().out
    assert all(k in out for k in ('forward','backward','total'))
    assert {'forward','backward','step','loader wait'}<={r['action'] for r in learn.timer.result.actions()}

@works('1B.73 a base class for loggers: metrics, and the end', '1C.58 loggers, with destinations', '1D.21 user-defined metrics to log')
def loggers(tmp_path):
    got = []
    class Mine(MetricsLogger):
        def write(self, metrics, step): got.append((step, {*metrics}))
    learn = learner(4, path=tmp_path, cbs=[Mine, JsonLogger(), LossMonitor('2ba')])
    learn.fit(1)
    assert (2,{'batch_loss'}) in got and any('valid_loss' in m for _,m in got) and len(got)==3
    assert [r['step'] for r in learn.json_logger.read_log()]==[s for s,_ in got]

# 1C: Composer

@works('1C.4 before a cycle', '1C.16 after a cycle and its checkpoint', '1C.43 cycles')
def cycles():
    evs = events_of(Cycles('3ba'), nt=4, n=2)
    assert only(evs, 'before_cycle', 'after_cycle', 'cycle_checkpoint')==['before_cycle', 'after_cycle', 'cycle_checkpoint']*2+['before_cycle']
    assert only(events_of(), 'before_cycle', 'after_cycle')==[]

@works('1C.8 before a batch, and before anything is counted', '1D.4 before a training step, with the batch')
def batch_begins():
    seen = []
    events_of(at('before_batch', lambda cb: seen.append((cb.learn.train_iter, len(cb.learn.xb))), run_valid=False))
    assert seen==[(0,1), (1,1)]

@works('1C.10 before and after forward, loss and backward of each micro-batch')
def around_parts():
    seen = []
    evs = events_of(MicroBatch(2), at('before_pred', lambda cb: seen.append(len(cb.learn.x)), run_valid=False), nt=1)
    part = ['before_pred', 'after_pred', 'before_loss', 'after_loss', 'before_backward', 'after_backward']
    train = [e for e in between(evs, 'before_batch', 'before_step') if 'micro' not in e and e!='after_joint_loss']
    assert train==part*2 and seen==[2,2]

@works('1C.9 before each attempt at a batch')
def attempts():
    def full(cb):
        if cb.learn.training and len(cb.learn.x)>2: raise torch.OutOfMemoryError('full')
    with pytest.warns(UserWarning, match='out of memory'): evs = events_of(BatchEvents(), ReplayOnOOM(), at('after_pred', full), nt=1)
    assert only(evs, 'before_train_batch', 'before_replay')==['before_train_batch', 'before_replay', 'before_train_batch']
    # a callback that draws random numbers there is called only once
    assert between(evs, 'before_train', 'after_train').count('before_batch')==1

@works('1C.11 gradients are complete and unscaled, before the step')
def complete_gradients():
    got = []
    def run(*cbs):
        learner(1, cbs=[BatchEvents(), *cbs, at('after_train_batch', lambda cb: got.append(cb.learn.model.weight.grad.clone()))]).fit(1)
        return got.pop()
    plain = run()
    assert torch.allclose(run(MicroBatch(1)), plain, atol=1e-6) and torch.allclose(run(MixedPrecision('fp16', init_scale=1024.)), plain, atol=.1) and not got

@works('1C.13 a safe point for checkpoints after a batch and its evaluation', '1C.15 a safe point for checkpoints after an epoch and its evaluation')
def checkpoint_events():
    evs = events_of(CheckpointEvents(), ValidateEvery('1ba'))
    train = between(evs, 'before_train', 'after_train')
    assert train.count('batch_checkpoint')==2 and [o for o in train[:train.index('batch_checkpoint')] if o!='after_row'][-1]=='after_validate' and evs[-3:]==['epoch_checkpoint', 'after_fit', 'cleanup']

@works('1C.19 before and after an evaluation, without gradients, with the name of its loader', '1C.20 before and after a batch of evaluation',
       '1C.21 before and after forward in evaluation', '1D.6 an evaluation, within or after an epoch', '1D.7 a step of evaluation')
def evaluation_events():
    seen = []
    def see(cb): seen.append((torch.is_grad_enabled(), cb.learn.model.training, cb.learn.mode))
    events = 'before_validate','before_batch','before_pred','after_pred','after_batch','after_validate'
    events_of(*(at(e, see, run_train=False) for e in events), ValidateEvery('2ba'), nt=2)
    assert seen==[(False,False,'validate')]*6+[(False,False,'fit')]*6   # the first is within the epoch

@works('1C.24 one method that receives every event')
def receive_every_event():
    class All(Callback):
        n = 0
        def __call__(self, name, **kw): self.n += 1; return super().__call__(name, **kw)
        def before_fit(self): self.ok = True
    cb = All()
    learner(cbs=cb).fit(1)
    assert cb.n>30 and cb.ok

@works('1C.25 closing a Learner; resources are released at the end of each run', '1C.26 after closing', '1C.27 closing twice does nothing',
       '1C.28 a closed Learner raises if it is run')
def closing():
    called = []
    cbs = [Callback(before_close=lambda self,i=i: called.append(f'before {i}'), after_close=lambda self,i=i: called.append(f'after {i}')) for i in (1,2)]
    learn = learner(cbs=[*cbs, at('before_close', throw(ValueError('mine')))])
    learn.fit(1)
    with pytest.raises(ValueError, match='mine'): learn.close()
    assert called==['before 2','before 1','after 2','after 1']
    learn.close()
    assert len(called)==4
    with pytest.raises(RuntimeError, match='closed'): learn.fit(1)

@served('it moves to the new Learner and is removed from the old one, which need not be closed first',
        '1C.29 a callback of another trainer')
def moves():
    cb = Callback()
    a,b = learner(cbs=cb),learner(cbs=cb)
    assert cb not in a.cbs and cb.learn is b and not hasattr(a, 'callback')

@works('1C.30 signals: only on request, during a fit, and restored afterwards')
def signals(tmp_path):
    old = signal.getsignal(signal.SIGTERM)
    comes = at('after_batch', lambda cb: signal.raise_signal(signal.SIGTERM), when=lambda cb: cb.learn.train_iter==2)
    learn = resumable(tmp_path, StopOnSignal('SIGTERM'), comes, every='1ep')
    with pytest.raises(SystemExit) as e: learn.fit(2)
    assert e.value.code==128+signal.SIGTERM and signal.getsignal(signal.SIGTERM) is old and len(names(learn.checkpoint))==1
    learner().fit(1)
    assert signal.getsignal(signal.SIGTERM) is old

@works('1C.34 callbacks that change something are undone in reverse order')
def undo():
    called = []
    class A(Callback):
        def before_fit(self): called.append(type(self).__name__)
        cleanup = before_fit
    class B(A): pass
    class C(A): pass
    learner(cbs=[A, C, B]).fit(0)
    assert called==['A','C','B','B','C','A']

@served('objects are not created from text in a file, as `eval` would run code of others. A checkpoint with the state of a missing '
        'callback raises, and so does a callback without another one that it needs, before the first batch',
        '1C.36 what a callback requires of the trainer')
def requirements(tmp_path):
    with pytest.raises(ValueError, match='CheckpointCallback'): learner().fit(1, resume='auto')
    crashed(tmp_path, 2, Counts)
    with pytest.warns(UserWarning, match='counts'): resumable(tmp_path).fit(3, resume='auto')

@works('1C.39 durations of training as text, and their arithmetic')
def time_units():
    assert Time('2ep')+'3ep'=='5ep' and Time('1h30m')=='5400s' and Time('3e4tok').value==30000
    assert Time('500ba')*'0.1dur'=='50ba' and Time('10ba')/'4ba'==2.5 and Time('10ba')%'4ba'=='2ba'
    with pytest.raises(TypeError, match='cannot be compared'): Time('2ep')<'3ba'
    with pytest.raises(ValueError, match='takes integers'): Time('1.5ba')

@works('1C.40 the progress of a run, in every unit')
def timestamp():
    got = []
    learn = learner(3, cbs=[Clock(), at('before_step', lambda cb: got.append(cb.learn.time))])
    learn.fit(2)
    t = got[4]
    assert (t.epoch, t.batch, t.sample, t.batch_in_epoch, t.sample_in_epoch)==(1,4,16,1,4) and t>='4ba' and t<'5ba' and t=='1ep' and learn.time=='2ep'
    with pytest.raises(AttributeError, match='Clock'): learner().time

@works('1C.41 the duration of training: in epochs, or any other unit')
def duration():
    assert counts(StopAfter('5ba'), nt=3, n=4)['after_step']==5 and counts(StopAfter('13sp'), nt=3, n=4)['after_step']==4
    learn = learner(); learn.fit('5ba'); assert learn.train_iter==5

@works('1C.44 a graceful stop', '1D.18 a stop with a reason', '1D.11 an event for a stop',
       '0.12 a graceful stop fires the after-events of open scopes')
def stopping():
    learn,log = learner(9, cbs=at('after_batch', lambda cb: cb.learn.stop('enough'), when=lambda cb: cb.learn.train_iter==2)),EventLog()
    learn.add_cb(log).fit(3)
    assert learn.stop_reason=='enough' and log.events.count('after_step')==2 and len(learn.recorder.history)==1
    ends = ['after_train', 'after_validate', 'after_epoch', 'after_cancel_fit', 'after_fit']
    assert only(log.events, *ends)==ends

@works('1C.48 predictions, kept on the CPU or yielded batch by batch')
def streamed_predictions():
    got = []
    learn = learner()
    p,_ = learn.get_preds(cbs=at('after_batch', lambda cb: got.append(cb.learn.pred)))
    none,_ = learn.get_preds(with_preds=False)
    assert torch.equal(torch.cat(got), p) and none is None

@works('1C.49 micro-batches, weighted by their size')
def microbatches():
    a,b = learner(3),learner(3, cbs=MicroBatch(3))   # 4 = 3 + 1
    a.fit(2); b.fit(2)
    assert torch.allclose(weights(a), weights(b), atol=1e-6)
    assert a.recorder.smooth_loss.raw==pytest.approx(b.recorder.smooth_loss.raw, abs=1e-5)

@works('1C.50 out of memory: the batch is repeated in smaller micro-batches, with the same random numbers and averages')
def replay():
    def run(*cbs):
        set_seed(1)
        learn = learner(2, model=nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)), cbs=cbs)
        learn.fit(1)
        return learn
    full = at('after_pred', throw(torch.OutOfMemoryError('full')), when=lambda cb: cb.learn.training and len(cb.learn.x)>2)
    with pytest.warns(UserWarning, match='out of memory'): learn = run(ReplayOnOOM(), full)
    assert same(learn.model, run(MicroBatch(2)).model) and learn.replay_on_oom.size==2
    with pytest.raises(torch.OutOfMemoryError), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        learner(cbs=[ReplayOnOOM(), at('after_pred', throw(torch.OutOfMemoryError('full')))]).fit(1)

@works('1C.51 a checkpoint of the whole run', '1C.54 reading it: checked, and without running code', '1C.55 one script starts or resumes')
def whole_run(tmp_path):
    learn = resumable(tmp_path)
    learn.fit(1, resume='auto')   # no checkpoint yet
    path = list_checkpoints(learn.checkpoint.folder)[0]
    state = torch.load(path, weights_only=True)
    assert {'model','opt','grads','cbs','state','rng','epoch','done','train_iter','version'}<={*state} and 'recorder' in state['cbs']
    path.write_bytes(path.read_bytes()[:-1]+b'x')
    with pytest.raises(ValueError, match='damaged'): read_checkpoint(path)

@works('1C.52 a file is complete or does not exist')
def atomic_write(tmp_path, monkeypatch):
    learn = resumable(tmp_path)
    learn.fit(1)
    before = {p.name:p.read_bytes() for p in learn.checkpoint.folder.iterdir()}
    monkeypatch.setattr(torch, 'save', lambda o, f, **kw: (f.write(b'half'), throw(OSError('the disk is full'))())[0])
    with pytest.warns(UserWarning, match='the disk is full'): learn.checkpoint.save(2, 0, '-other')
    assert {p.name:p.read_bytes() for p in learn.checkpoint.folder.iterdir()}==before

@works('1C.53 a folder with an earlier run is not overwritten')
def overwrite(tmp_path):
    resumable(tmp_path).fit(1)
    with pytest.raises(ValueError, match='earlier run'): resumable(tmp_path).fit(1)
    resumable(tmp_path, overwrite=True).fit(1)

@works('1C.59 a model for inference elsewhere', '1C.72 exported at the end of a fit')
def export(tmp_path):
    learn = learner(path=tmp_path, cbs=ExportAtEnd('m.pt2'))
    learn.fit(1)
    x = batches(1, 3)[0][0]
    assert torch.allclose(torch.export.load(tmp_path/'m.pt2').module()(x), learn.model(x))
    new = load_learner(learn.export('all'), model(9))
    assert torch.equal(new.get_preds(dl=[(x,)])[0], learn.model(x).detach())

@works('1C.62 a threshold ends the fit')
def threshold():
    learn = learner(cbs=ThresholdStopper(2.5, lambda learn: [4,3,2,1][learn.epoch], 'min'))
    learn.fit(4)
    assert learn.epoch==2 and 'reaches' in learn.stop_reason
    learn = learner(9, cbs=ThresholdStopper(3, lambda learn: learn.train_iter, 'max', every='1ba'))
    learn.fit(1)
    assert learn.train_iter==3

@works('1C.63 NaN in the loss', '1D.20 NaN or infinity ends the fit, with a reason and all after-events')
def nan():
    for bad in (float('nan'), float('inf')):
        def spoil(cb): cb.learn.xb = (cb.learn.x*bad,)
        learn,log = learner(4, cbs=[TerminateOnNaNCallback(), at('before_batch', spoil, when=lambda cb: cb.learn.iter==1, run_valid=False)]),EventLog()
        learn.add_cb(log).fit(2)
        assert 'nan or infinite' in learn.stop_reason and learn.train_iter<=3
        # the row of the epoch that was cut short
        assert log.events[-4:]==['after_cancel_fit', 'after_row', 'after_fit', 'cleanup']
        for cb in (SkipNaN(), RollBackOnNaN('1ba')):
            learn = learner(4, cbs=[cb, at('before_batch', spoil, when=lambda cb: cb.learn.iter==1 and cb.learn.epoch==0, run_valid=False)])
            with warnings.catch_warnings(): warnings.simplefilter('ignore'); learn.fit(2)
            assert weights(learn).isfinite().all() and learn.epoch==1

@works('1C.64 speed: batches, samples, tokens and operations a second', '1C.65 the remaining time of the run')
def speed():
    learn = learner(8, cbs=[SpeedMonitor('4ba', flops=1e6, peak_flops=1e12), RuntimeEstimator('4ba')])
    learn.fit(2)
    row = learn.speed_monitor.history[-1]
    assert row['samples_per_sec']==pytest.approx(4*row['batches_per_sec']) and row['flops_per_sec']==pytest.approx(1e6*row['batches_per_sec']) and row['mfu']>0
    left = learn.runtime_estimator.history['remaining']
    assert left[-1]<60 and all(v>=0 for v in left) and len(left)>=3

@works('1C.67 norms of gradients, weights and updates')
def norms():
    learn = learner(2, cbs=[OptimizerMonitor('1ba'), GradientClip(.01)])
    learn.fit(1)
    row = learn.optimizer_monitor.history[0]
    assert row['update_norm']==pytest.approx(.05*.01, rel=1e-2) and 'grad_norm/weight' in row and row['update_ratio']==pytest.approx(row['update_norm']/row['weight_norm'])

@works('1C.69 the machine: CPU, memory, disk, network')
def system_metrics():
    pytest.importorskip('psutil')
    learn = learner(cbs=SystemMetrics('2ba'))
    learn.fit(1)
    assert {'cpu_percent','memory_percent','disk_read_mb_per_sec','net_sent_mb_per_sec'}<={*learn.system_metrics.history[0]}

@works('1C.70 activations at an interval, by hooks that are removed')
def activations():
    learn = learner(4, cbs=(cb := ActivationStats(every=2, modules=None)))
    learn.fit(1)
    assert len(cb.layer_stats(0)[0])==2 and not learn.model._forward_hooks

@works('1C.73 outputs are freed as soon as there is a loss')
def free_outputs():
    seen = []
    learner(cbs=[FreeOutputs(), at('after_batch', lambda cb: seen.append(cb.learn.pred is None), run_valid=False)]).fit(1)
    assert seen==[True]*3

# 1D: pytorch-accelerated

@works('1D.8 after an epoch with training and validation')
def epoch_over():
    seen = []
    events_of(at('after_epoch', lambda cb: seen.append(cb.learn.epoch)), n=2)
    assert seen==[0,1]

@works('1D.16 a missing attribute raises an ordinary AttributeError, which is not swallowed')
def missing_attribute():
    class Bad(Callback):
        def before_fit(self): self.nothing
    with pytest.raises(AttributeError, match='Bad.*nothing'): learner(cbs=Bad).fit(1)
    assert not hasattr(Bad(), 'nothing')

@works('1D.19 default callbacks, and a Learner without them')
def default_callbacks():
    assert [type(cb) for cb in learner().cbs]==[TrainEvalCallback, Recorder, NonFiniteCheck, ProgressCallback] and not learner(default_cbs=False).cbs

@works('1D.25 other modules move to the device of the model')
def move_modules():
    class Loss(nn.Module):
        def __init__(self): super().__init__(); self.register_buffer('w', torch.ones(1))
        def forward(self, p, y): return ((p-y)**2*self.w).mean()
    class Probe(Callback):
        def __init__(self): self.head = nn.Linear(2, 2)
    loss,cb,moved = Loss(),Probe(),[]
    cb.head.to = loss.to = moved.append
    for f in (partial(lambda p, y, loss: loss(p, y), loss=loss), partial(loss)):
        moved.clear()
        learner(cbs=[MoveModules(), cb], loss_func=f).fit(0)
        assert {*moved}=={torch.device('cpu')} and len(moved)>=2   # a loss module is moved with the model

@works('1D.26 an average of the weights, updated each step, used in validation, then swapped back')
def ema():
    learn = learner(3, cbs=EMACallback(decay=.5, at_end=False, warmup=False))
    steps,valid = [],[]
    learn.add_cbs([at('after_step', lambda cb: steps.append(weights(cb.learn))), at('before_batch', lambda cb: valid.append(weights(cb.learn)), run_train=False)])
    learn.fit(1)
    avg = steps[0]
    for w in steps[1:]: avg = avg*.5+w*.5
    assert torch.allclose(valid[0], avg, atol=1e-6) and torch.equal(weights(learn), steps[-1])
    with pytest.raises(ValueError): learn.fit(1, cbs=at('after_pred', throw(ValueError()), run_train=False))
    assert torch.equal(weights(learn), steps[-1])

@works('1D.35 values of the run in a schedule')
def values_of_the_run():
    learn = learner(5, cbs=TorchScheduler(lambda opt: torch.optim.lr_scheduler.OneCycleLR(opt, .1, total_steps=learn.n_epoch*len(learn.dls.train)), 'step'))
    learn.fit(2)
    assert len(learn.recorder.hps['lr'])==10

@works('1C.57 seeds, and deterministic algorithms')
def seeding():
    def run(): set_seed(5, reproducible=True); return torch.rand(3),random.random(),torch.backends.cudnn.deterministic
    flags = torch.backends.cudnn.deterministic,torch.backends.cudnn.benchmark
    try: (a,b,c),(d,e,f) = run(),run(); assert torch.equal(a, d) and b==e and c and f
    finally: torch.backends.cudnn.deterministic,torch.backends.cudnn.benchmark = flags

@works('1D.39 seeds are left to the user')
def seeds():
    set_seed(7)
    before = get_random_states()
    learner().fit(1)   # draws no random numbers
    assert torch.equal(before['torch_state'], torch.get_rng_state()) and before['random_state']==random.getstate()

@works('1D.40 freezing groups of layers')
def freezing():
    net = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 1))
    learn = learner(model=net, splitter=lambda m: [[*m[0].parameters()], [*m[1].parameters()]])
    learn.freeze()
    a,b = net[0].weight.clone(),net[1].weight.clone()
    learn.fit(1)
    assert torch.equal(net[0].weight, a) and not torch.equal(net[1].weight, b)
    learn.unfreeze(); learn.fit(1)
    assert not torch.equal(net[0].weight, a)

@works('1D.41 a callback that stores predictions starts empty each epoch')
def fresh_predictions():
    learn = learner(cbs=(cb := GatherPredsCallback()))
    for _ in range(2):
        learn.fit(2)
        assert cb.preds.shape==(8,1)

# Small features of the four

@works('1C.71 images, and outputs of the model, at an interval')
def images():
    got,called = [],[]
    class Sink(Callback):
        def log_media(self, media, step): got.append((step, media['inputs'].shape))
    data = [(torch.rand(4, 1, 2, 2), torch.rand(4, 1)) for _ in range(2)]
    says = EveryCallback(lambda learn: called.append(learn.train_iter), '1ba')
    learner(dls=DataLoaders(data, data), model=nn.Sequential(nn.Flatten(), nn.Linear(4, 1)), cbs=[ImageLogger('2ba', n=3), Sink, says]).fit(1)
    assert got==[(2, (3,1,2,2))] and called==[1,2]

@served('`learn.load(path)` before `fit`, or at any event by `learn.on`, which is as short as a callback would be',
        '1C.74 weights are loaded at an event')
def load_at_an_event(tmp_path):
    a = learner(path=tmp_path)
    a.fit(1); a.save('a')
    b = learner(path=tmp_path, model=model(9), lr=0.)
    b.on('before_fit')(lambda learn: learn.load('a', with_opt=False))
    b.fit(1)
    assert same(a.model, b.model)

served('the format of a submission is that of one competition and changes each year: a `MetricsLogger` of the user can write it, and '
       '`ThresholdStopper` ends the run at the target',
       '1C.75 the log of a competition')

@works('1D.32 saving when a schedule says so: before its decay, and a model for inference after it')
def saved_by_schedule(tmp_path):
    learn = resumable(tmp_path, every=lambda learn: learn.pct_train==.5)
    learn.fit(2)
    assert [int(n[5:13]) for n in names(learn.checkpoint)]==[6,3]

@served("the Learner's own attributes, which the loop uses: a frozen copy could differ from them",
        '1D.34 the configuration of a run', '0.19 by attributes')
def configuration():
    learn = learner(wd=.1)
    learn.fit(2)
    assert (learn.n_epoch, learn.lr, learn.wd, learn.opt.hypers[-1]['lr'])==(2, .05, .1, .05)

@works('1C.47 metrics without the padding of distributed samplers')
def no_padding():
    "As in each of two simulated processes; `test_distributed` has real ones"
    ds = TensorDataset(torch.arange(9.)[:,None].expand(9, 4), torch.zeros(9, 1))
    seen = []
    for rank in (0,1):
        dl = DataLoader(ds, 4, sampler=DistributedSampler(ds, 2, rank, shuffle=False))
        learner().validate(dl=dl, cbs=[ShareBatches, at('after_loss', lambda cb: seen.extend(cb.learn.x[:,0].tolist()))])
    assert sorted(seen)==[*range(9)]

@works('1D.27 synchronized batch norms')
def sync_batch_norms():
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    own = net[1]
    old = sync_norms(net)
    assert type(net[1]) is nn.SyncBatchNorm
    unsync_norms(net, old)
    assert net[1] is own
    with pytest.raises(RuntimeError, match='no process group'): learner(cbs=DistributedTrainer(sync_bn=True)).fit(1)

@works('1C.68 memory: numbers, snapshots, and a dump when it runs out')
def memory(monkeypatch, tmp_path):
    for k in ('_record_memory_history','_dump_snapshot'): monkeypatch.setattr(torch.cuda.memory, k, lambda *args, **kw: None)
    pretend_cuda(monkeypatch, observe_memory)
    def full(cb):
        if cb.learn.train_iter==3: raise torch.OutOfMemoryError('full')
    learn = learner(5, path=tmp_path, cbs=[snap := MemorySnapshot(n=2), at('after_pred', full)])
    with pytest.raises(torch.OutOfMemoryError): learn.fit(1)
    assert [f.stem for f in snap.files]==['batches-1-2', 'oom-batch-3']
    if find_spec('psutil'): learner(cbs=(cb := MemoryMonitor('1ba'))).fit(1); assert len(cb.history)==3

@works('1D.38 helpers for several processes: rank, one process first, gathering tensors of unequal length')
def processes():
    x = torch.arange(3)
    assert (rank_distrib(), num_distrib())==(0, 1) and maybe_gather(x) is x and rank0_first(lambda a, b=0: a+b, 1, b=2)==3
    with pytest.raises(KeyError): rank0_first({}.__getitem__, 1)

# The union of their events: those that have another name here

# one event, called in reverse order, that every callback receives even after errors
renamed = dict(before_cleanup='cleanup', after_cleanup='cleanup')
added = '''before_evaluate before_predict before_fetch after_fetch after_exhaust before_pred before_loss before_train_batch after_train_batch before_zero_grad
    after_cancel_zero_grad after_zero_grad batch_checkpoint epoch_checkpoint cycle_checkpoint before_cycle after_cycle before_sanity after_sanity before_validate_all
    after_validate_all after_evaluate after_predict after_exception before_cleanup after_cleanup before_save_model after_save_model before_load_model after_load_model
    before_save_checkpoint after_save_checkpoint before_load_checkpoint after_load_checkpoint before_close after_close'''.split()

# 0: where the documentation of one of the four differs from its behaviour

@works('0.13 the printed loop comes from the table of events')
def shown_events():
    shown = [l.split()[0] for l in learner().show_training_loop().splitlines()]
    assert [e for e in shown if e in event.declared]==[e for e in event.declared if not e.endswith(('_model','_checkpoint'))]
    assert shown==[e for e in event if e in shown]

@works('0.14 after_cancel_valid')
def other_name():
    learn = learner(cbs=at('before_validate', throw(CancelValid())))
    called = []
    learn.add_cb(type('Old', (Callback,), dict(after_cancel_valid=lambda self: called.append('heard')))).fit(1)
    assert called==['heard'] and event.after_cancel_valid=='after_cancel_validate'

@works('0.17 metrics of the training phase start with train_')
def prefix():
    def strained(p, y): return (p-y).abs().mean()
    learn = learner(metrics=strained)
    learn.fit(1)
    assert learn.recorder.row['strained'] is not None and learn.recorder.train_names==['train_loss']

def summary():
    "The number of rows, by state"
    n = Counter(r.state for r in table)
    return dict(rows=len(table), **{k:n[k] for k in ('works','served')})
