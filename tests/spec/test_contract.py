"""The behaviour of fastai 2.8.12 that users' callbacks rely on, statement by statement. Where learnkit differs on
purpose, the test says so. `test_spec.py` has the order of events under every Cancel, `test_fastai.py` fastai's own
callbacks."""
import weakref
from functools import partial

import pytest, torch
from fastcore.basics import patch
from fastcore.foundation import L
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
import learnkit as core
from learnkit.loop.events import *
from learnkit.loop.callback import *
from learnkit.loop.dispatcher import *
from learnkit.learner.results import *
from learnkit.learner.learner import *
from learnkit.learner.predict import *
from learnkit.processes.shard import *
from learnkit.observe.files import CSVLogger
from learnkit.measure.recorder import Recorder
from learnkit.data.loaders import DataLoaders
from learnkit.learner.learner import Learner
from learnkit.measure.losses import CrossEntropyLossFlat
from learnkit.measure.metric import AvgMetric
from learnkit.measure.metrics import mae
from rows import fastai_events
from toys import Reg, SGD, at, batches, learner, model, throw, weights

class Log(Callback):
    "Records every event"
    def __init__(self): self.heard = []
    def __call__(self, ev): self.heard.append(ev); return super().__call__(ev)
    @property
    def fastais(self): return [o for o in self.heard if o in fastai_events]

# 2.1 order and control
def test_events_of_a_fit():
    log = Log()
    learner(1, 1, cbs=log).fit(1)
    assert log.fastais=='''after_create before_fit before_epoch before_train
        before_batch after_pred after_loss before_backward after_backward before_step after_step after_batch after_train before_validate
        before_batch after_pred after_loss after_batch after_validate after_epoch after_fit'''.split()

def test_after_create_is_fired_once_and_last():
    seen = []
    cb = at('after_create', lambda s: seen.append([*vars(s.learn)]))
    learn = learner(cbs=cb)
    learn.add_cb(at('after_create', lambda s: seen.append('late')))
    learn.fit(1)
    assert len(seen)==1 and {'dls','model','opt','recorder','metrics'} <= {*seen[0],'metrics'}

def test_fit_zero():
    log = Log()
    learner(cbs=log).fit(0)
    assert log.fastais==['after_create','before_fit','after_fit']

# the Cancel, the event that raises it (in training unless v:), and the events of fastai that must follow
CANCELLED = '''
    CancelBatch     before_batch      after_cancel_batch after_batch
    CancelBatch     after_step        after_cancel_batch after_batch
    CancelBatch     v:after_loss      after_cancel_batch after_batch
    CancelBackward  before_backward   after_cancel_backward after_backward before_step after_step
    CancelStep      before_step       after_cancel_step after_step
    CancelTrain     after_batch       after_cancel_train after_train before_validate
    CancelTrain     after_pred        after_cancel_train after_train before_validate
    CancelValid     before_validate   after_cancel_validate after_validate after_epoch
    CancelValid     v:after_batch     after_cancel_validate after_validate after_epoch
    CancelEpoch     after_loss        after_cancel_epoch after_epoch
    CancelEpoch     after_train       after_cancel_epoch after_epoch
    CancelEpoch     v:before_batch    after_cancel_epoch after_epoch
    CancelFit       before_fit        after_cancel_fit after_fit
    CancelFit       after_loss        after_cancel_fit after_fit
    CancelFit       v:after_batch     after_cancel_fit after_fit
    CancelFit       after_epoch       after_cancel_fit after_fit'''.strip().splitlines()

@pytest.mark.parametrize('row', CANCELLED, ids=lambda r: '-'.join(r.split()[:2]))
def test_what_follows_a_cancel(row):
    name,where,*after = row.split()
    ev,valid = where.removeprefix('v:'),where.startswith('v:')
    class Raises(Log):
        def __call__(self, e):
            super().__call__(e)
            if e==ev and valid==(not self.learn.training) or e==ev and ev in ('before_fit','before_validate','after_train','after_epoch'):
                raise getattr(core, name)
    cb = Raises()
    learner(1, 1, cbs=cb).fit(1)
    i = cb.fastais.index(ev) if not valid else len(cb.fastais)-1-cb.fastais[::-1].index(ev)
    assert cb.fastais[i+1:i+1+len(after)]==after

@pytest.mark.parametrize('ev,skipped', [('before_backward', False), ('after_backward', True), ('before_step', True), ('after_step', True)])
def test_cancel_batch_keeps_the_gradients(ev, skipped):
    "CancelBatch skips zero_grad, on which GradientAccumulation relies; CancelStep and CancelBackward do not"
    def grads(exc, ev):
        learn = learner(cbs=[at(ev, throw(exc())), at('after_batch', lambda s: got.append(s.model.weight.grad is not None), lambda s: s.training)])
        got = []
        learn.fit(1)
        return got
    assert grads(CancelBatch, ev)==[skipped]*3
    assert grads(CancelStep, 'before_step')==grads(CancelBackward, 'before_backward')==[False]*3

def test_cancel_in_its_own_after():
    "In fastai it propagates to the user; here it has no effect, as its scope has already ended (DESIGN 3.3)"
    for exc,ev in [(CancelBatch,'after_batch'), (CancelTrain,'after_train'), (CancelValid,'after_validate'), (CancelEpoch,'after_epoch'),
                   (CancelFit,'after_fit'), (CancelStep,'after_step'), (CancelBackward,'after_backward')]:
        learn = learner(cbs=at(ev, throw(exc())))
        learn.fit(2)
        assert len(learn.recorder.values)==2 and learn.train_iter==6

def test_cancel_without_a_scope():
    "In fastai the bare Cancel propagates to the user; here an error explains it (DESIGN 3.3)"
    with pytest.raises(RuntimeError, match='CancelTrain.*before_validate.*no `train` was open'): learner(cbs=at('before_validate', throw(CancelTrain()))).fit(1)

def test_cancel_from_after_cancel_goes_outwards():
    log = Log()
    learn = learner(cbs=[log, at('before_batch', throw(CancelBatch())), at('after_cancel_batch', throw(CancelEpoch()))])
    learn.fit(1)
    assert log.fastais[3:]==['before_train','before_batch','after_cancel_batch','after_cancel_epoch','after_epoch','after_fit']

def test_later_callbacks_get_no_event_of_what_was_cancelled():
    "EarlyStopping, of order 63, keeps the last `after_epoch` from callbacks of higher order"
    heard = []
    learner(cbs=[at('after_epoch', lambda s: heard.append(s.epoch), order=64), at('after_epoch', throw(CancelFit()), lambda s: s.epoch==1, order=63)]).fit(4)
    assert heard==[0]

def test_subclasses_of_cancels():
    class Mine(CancelFitException): pass
    learn = learner(cbs=at('after_batch', throw(Mine('enough')), lambda s: s.train_iter==2))
    learn.fit(3)
    assert learn.train_iter==2 and issubclass(CancelFit, Exception) and CancelFit().args

def test_callbacks_added_or_removed_during_an_event():
    "A callback added during an event is called from the next one on, a removed one not even in it (DESIGN 3.6)"
    log,gone = Log(),Log()
    learn = learner(cbs=[at('before_epoch', lambda s: (s.learn.add_cb(log), s.learn.remove_cb(gone)), order=-1), gone])
    learn.fit(1)
    assert log.heard[:2]==['before_fit','before_train'] and gone.heard[-2:]==['before_fit','cleanup'] and gone.learn is None   # only its cleanup

def test_ties_keep_their_order():
    "Sorting by order is stable. fastai's `removed_cbs` moves what it removed to the end; here it keeps its place"
    called = []
    cbs = [at('before_fit', lambda s, i=i: called.append(i), order=o) for i,o in enumerate([0,0,-1,0,0])]
    learn = learner(cbs=cbs)
    learn.fit(0); assert called==[2,0,1,3,4]
    with learn.removed_cbs(cbs[:2]): learn.fit(0)
    called.clear(); learn.fit(0); assert called==[2,0,1,3,4]

def test_calling_events():
    log = Log()
    learn = learner(cbs=log, default_cbs=False)
    log.heard.clear()
    learn('before_fit'); learn(['after_batch','after_fit']); learn(L('before_epoch'))
    assert log.heard==['before_fit','after_batch','after_fit','before_epoch']
    with pytest.raises(Exception, match='no event `before_fot`.*before_fit'): learn('before_fot')

def test_calling_a_callback():
    "The name of any method may be given, and its result is returned"
    class A(Callback):
        def other(self): return 3
        def after_fit(self): return 4
    cb = A()
    assert (cb('other'), cb('after_fit'), cb('before_fit'), cb('nothing'))==(3, 4, None, None)
    learner(cbs=cb); assert (cb('other'), cb('before_fit'), cb('model'))==(3, None, None)

def test_without_targets():
    "`after_loss` fires even without targets; backward and step need training and a target"
    log = Log()
    with pytest.warns(UserWarning, match='no target'): learner(dls=DataLoaders([(torch.randn(2,4),)], [(torch.randn(2,4),)]), cbs=log).fit(1)
    assert log.fastais.count('after_loss')==2 and 'before_backward' not in log.heard

def test_loss_and_loss_grad():
    "`loss_grad` is the loss for backward, `loss` the one that is recorded"
    double = learner(cbs=at('after_loss', lambda s: setattr(s.learn, 'loss_grad', s.loss_grad*2)))
    logged = learner(cbs=at('after_loss', lambda s: setattr(s.learn, 'loss', s.loss*0+3)))
    plain,lr2 = learner(),learner(lr=.1)
    for l in (double, logged, plain, lr2): l.fit(1)
    assert torch.allclose(weights(double), weights(lr2)) and not torch.equal(weights(double), weights(plain))
    assert torch.equal(weights(logged), weights(plain)) and logged.recorder.values[0]==pytest.approx([3,3])

def test_zero_grad_is_after_step():
    got = []
    learner(1, cbs=[at(ev, lambda s, ev=ev: got.append((ev, s.model.weight.grad is None)), lambda s: s.training) for ev in ('after_step','after_batch')]).fit(1)
    assert got==[('after_step',False), ('after_batch',True)]

def test_a_skipped_step_still_fires_after_step():
    "MixedPrecision calls `scaler.update()` there"
    n = []
    learn = learner(cbs=[at('before_step', throw(CancelStep())), at('after_step', lambda s: n.append(1))])
    before = weights(learn)
    learn.fit(1)
    assert len(n)==3 and torch.equal(before, weights(learn))

# 2.2 callbacks
@pytest.mark.parametrize('flag,phase', [('run_train',True), ('run_valid',False)])
def test_phases(flag, phase):
    "`run_train` and `run_valid` control the events of a batch only (in fastai not `after_cancel_step`)"
    heard = []
    class A(Callback):
        def receive(self, ev): heard.append((ev, self.learn.training))
    for ev in event: setattr(A, ev, lambda self, ev=ev: self.receive(ev))
    cb = A(); setattr(cb, flag, False)
    learner(cbs=[cb, at('before_step', throw(CancelStep()), order=-1), at('before_batch', throw(CancelBatch()), lambda s: s.iter==1, order=-1)]).fit(1)
    assert not [o for o in heard if o[1]==phase and o[0] in event.in_batch]
    assert {'before_train','after_train','before_validate','after_validate','before_epoch','after_fit','cleanup'} <= {e for e,_ in heard}
    assert [o for o in heard if o[1]!=phase and o[0] in event.in_batch]

def test_run_false_lasts_one_fit():
    log = at('before_epoch', lambda s: heard.append(1))
    learn,heard = learner(cbs=log),[]
    log.run = False; learn.fit(1); assert heard==[] and log.run
    learn.fit(1); assert heard==[1]

@pytest.mark.parametrize('run', ['validate', 'get_preds'])
def test_inference_does_not_unmute(run):
    "In fastai a muted callback is unmuted by a validation; here inference does not change `run`"
    log = at('before_epoch', lambda s: heard.append(1))
    learn,heard = learner(cbs=log),[]
    log.run = False; getattr(learn, run)(); assert heard==[] and not log.run
    log.run = True; getattr(learn, run)(); assert heard==[1] and log.run

def test_run_false_is_reset_after_errors():
    "In fastai the callback stays muted"
    log,bad = Log(),at('after_batch', throw(ValueError('x')))
    learn = learner(cbs=[log,bad])
    log.run = False
    with pytest.raises(ValueError): learn.fit(1)
    assert log.run

NAMES = dict(CSVLogger='csv_logger', LRFinder='lr_finder', MCDropoutCallback='mc_dropout', RNNCallback='rnn', ReduceLROnPlateau='reduce_lr_on_plateau',
             TerminateOnNaNCallback='terminate_on_na_n', BnFreeze='bn_freeze', MixUp='mix_up', TrainEvalCallback='train_eval', Recorder='recorder',
             ProgressCallback='progress', GatherPredsCallback='gather_preds', FetchPredsCallback='fetch_preds', SaveModelCallback='save_model',
             MixedPrecision='mixed_precision', ChannelsLast='channels_last', Callback='callback')
@pytest.mark.parametrize('cls', NAMES)
def test_names(cls):
    "The names are public API: `learn.save_model`, `hasattr(learn, 'lr_finder')`, …"
    assert type(cls, (Callback,), {})().name==NAMES[cls]

def test_names_on_the_learner():
    learn = learner(cbs=FetchPredsCallback())
    assert learn.recorder.learn is learn and learn.fetch_preds in learn.cbs and learn.train_eval and learn.progress
    seen = []
    with learn.added_cbs(at('before_fit', lambda s: seen.append(hasattr(s, 'gather_preds')))): learn.get_preds(); learn.fit(0)
    assert seen==[True,False] and not hasattr(learn, 'gather_preds') and not hasattr(learn, 'lr_finder')

def test_reading_and_writing(recwarn):
    class A(Callback):
        def __init__(self): self.epoch = 5   # hides the Learner's
        def before_fit(self): self.seen = self.n_epoch,self.weight,self.mine
        mine = 'own'
    with pytest.warns(UserWarning, match='`epoch`, which hides the Learner'): learn = learner(cbs=(cb := A()))
    del cb.epoch
    learn.fit(1)
    assert cb.seen[0]==1 and cb.seen[1] is learn.model.weight and cb.seen[2]=='own'
    assert not recwarn.list
    with pytest.warns(UserWarning, match=r'You are shadowing an attribute \(epoch\) that exists in the learner\. Use `self\.learn\.epoch` to avoid this'):
        cb.epoch = 3
    assert cb.epoch==3 and learn.epoch==0
    with pytest.warns(UserWarning, match=r'\(loss\).*to change what is trained on, set `self\.learn\.loss_grad`'): cb.loss = 2.
    with pytest.raises(AttributeError, match='nothing_at_all'): cb.nothing_at_all

def test_errors_are_annotated():
    "fastai replaces the arguments of the error by this text; here they are kept, and the text is a note (DESIGN 3.5)"
    class Bad(Callback):
        def after_pred(self): raise OSError(2, 'gone')
    with pytest.raises(OSError) as e: learner(cbs=Bad()).fit(1)
    assert e.value.args==(2,'gone') and any('Exception occurred in `Bad` when calling event `after_pred`' in n for n in e.value.__notes__)
    with pytest.raises(KeyboardInterrupt): learner(cbs=at('after_pred', throw(KeyboardInterrupt))).fit(1)

def test_callbacks_of_functions():
    called = []
    a,b = (Callback(before_fit=lambda s, i=i: called.append((i, s))) for i in (1,2))
    learn = learner(cbs=[a,b])
    learn.fit(0)
    assert called==[(1,a),(2,b)] and a.name==b.name=='callback' and learn.callback is b
    with pytest.raises((TypeError, AssertionError), match='before_fot'): Callback(before_fot=print)

def test_handlers_as_attributes():
    "Handlers may be assigned to the instance or the class, with `@patch`, and during a fit"
    class A(Callback): pass
    called = []
    cb = A()
    learn = learner(cbs=cb)
    cb.before_fit = lambda: called.append('instance')
    @patch
    def before_epoch(self:A): called.append('patched')
    A.after_epoch = lambda self: called.append('class'); setattr(cb, 'before_train', lambda: setattr(cb, 'after_train', lambda: called.append('meanwhile')))
    learn.fit(1)
    assert called==['instance','patched','meanwhile','class']

def test_call_may_be_overridden():
    class Verbose(Callback):
        heard = []
        def __call__(self, ev): self.heard.append(ev); super().__call__(ev)
        def before_fit(self): self.heard.append('mine')
    learner(cbs=Verbose).fit(0)
    assert Verbose.heard==['after_create','before_fit','mine','after_fit','cleanup']

# 2.3 Learner
def test_adding_and_removing():
    learn = learner()
    class A(Callback): pass
    assert learn.add_cb(A) is learn and isinstance(learn.cbs, L)
    a = learn.a
    assert a.learn is learn and learn.cbs[-1] is a
    assert learn.remove_cb(a) is learn and a.learn is None and not hasattr(learn, 'a') and a not in learn.cbs
    learn.add_cbs([A(), A()]); learn.remove_cbs(A)
    assert not [o for o in learn.cbs if isinstance(o, A)] and not hasattr(learn, 'a')
    with learn.added_cbs(A()) as _: assert hasattr(learn, 'a')
    assert not hasattr(learn, 'a')
    with pytest.raises(ValueError), learn.added_cbs(A()): raise ValueError
    assert not hasattr(learn, 'a')
    with learn.removed_cbs(learn.recorder) as same: assert same is learn and not hasattr(learn, 'recorder')
    assert learn.recorder in learn.cbs

def test_callbacks_of_a_fit():
    "Callbacks given to `fit` exist when the optimizer is made, and are removed afterwards, even after errors"
    class A(Callback): pass
    seen = []
    learn = learner(opt_func=lambda ps, **kw: (seen.append(hasattr(learn, 'a')), SGD(ps, **kw))[1])
    learn.fit(1, cbs=A()); assert seen==[True] and not hasattr(learn, 'a')
    for e in (ValueError, KeyboardInterrupt, CancelFit):
        try: learn.fit(1, cbs=[A, at('after_step', throw(e('x')))])
        except BaseException as o: assert type(o) is e
        assert not hasattr(learn, 'a') and len(learn.cbs)==4

def test_hyperparameters_of_a_fit():
    "Every fit sets lr, which replaces a loaded or assigned one; wd is only set if one is given"
    learn = learner(wd=.3)
    learn.fit(1, lr=.2); assert learn.opt.hypers[-1]['lr']==.2 and learn.opt.hypers[-1]['wd']==.3
    learn.opt.set_hyper('lr', 9.); learn.fit(0); assert learn.opt.hypers[-1]['lr']==.05
    learn.fit(0, wd=.1); assert learn.opt.hypers[-1]['wd']==.1
    opt = learn.opt; learn.fit(0); assert learn.opt is opt
    learn.fit(0, reset_opt=True); assert learn.opt is not opt
    lr = learner(opt_func=partial(SGD, lr=.7), lr=None); lr.fit(0); assert lr.lr==.7==lr.opt.hypers[-1]['lr']
    none = learner(opt_func=partial(SGD, weight_decay=.4)); none.fit(0); assert none.opt.hypers[-1]['wd']==.4

def test_end_of_a_fit():
    learn = learner(); learn.fit(1)
    assert (learn.dl,learn.xb,learn.yb,learn.pred,learn.loss)==(None,(None,),(None,),None,None)

def test_nothing_is_kept_alive():
    "Predictions and `loss_grad` are freed; fastai keeps the last predictions of get_preds, and the loss's graph"
    kept = []
    learn = learner(cbs=at('after_pred', lambda s: kept.append(weakref.ref(s.pred))))
    learn.fit(1); learn.validate(); learn.get_preds()
    assert learn.loss_grad is None and not [r for r in kept if r() is not None]

def test_with_learn():
    log = Log()
    learn = learner(cbs=log); log.heard.clear()
    with learn as l: assert l is learn; log.heard.append('body')
    assert [o for o in log.heard if o in fastai_events or o=='body']==['before_fit','before_epoch','body','after_epoch','after_fit']
    with pytest.raises(ZeroDivisionError), learn: 1/0
    learn.fit(1)

@pytest.mark.parametrize('ds_idx,n', [(0,3), (1,2)])
def test_validate(ds_idx, n):
    "`validate` returns `final_record`: loss and metrics. fastai leaves eval mode on; here modes are kept (DESIGN 3.7)"
    log = Log()
    learn = learner(metrics=[mae], cbs=log); log.heard.clear()
    learn.model.train()
    res = learn.validate(ds_idx)
    assert log.fastais==['before_fit','before_epoch','before_validate',*['before_batch','after_pred','after_loss','after_batch']*n,
                         'after_validate','after_epoch','after_fit']
    xs,ys = map(torch.cat, zip(*learn.dls[ds_idx]))
    p = learn.model(xs)
    assert list(res)==pytest.approx([F.mse_loss(p, ys).item(), (p-ys).abs().mean().item()]) and learn.final_record==res
    assert learn.model.training and not learn.training
    assert list(learn.validate(dl=learn.dls[ds_idx]))==list(res)

def test_freezing_clears_the_state():
    def split(m): return [list(m[0].parameters()), list(m[1].parameters())]
    learn = learner(model=nn.Sequential(nn.Linear(4,4), nn.Linear(4,1)), splitter=split, opt_func=partial(SGD, momentum=.9))
    learn.fit(1); assert learn.opt.state
    learn.freeze(); assert not learn.opt.state and not learn.model[0].weight.requires_grad and learn.model[1].weight.requires_grad
    before = learn.model[0].weight.clone()
    learn.fit(1); assert torch.equal(before, learn.model[0].weight)
    learn.unfreeze(); assert learn.model[0].weight.requires_grad

def test_load_makes_the_optimizer(tmp_path):
    a = learner(path=tmp_path, opt_func=partial(SGD, momentum=.9)); a.fit(1); a.save('m')
    b = learner(path=tmp_path, opt_func=partial(SGD, momentum=.9)); b.load('m')
    assert torch.equal(weights(a), weights(b)) and b.opt.state[b.model.weight]['momentum_buffer'].equal(a.opt.state[a.model.weight]['momentum_buffer'])
    assert (tmp_path/'models/m.pth').is_file() and b.load('m', weights_only=False) is b
    a.save('w', with_opt=False)
    with pytest.warns(UserWarning, match='no optimizer state'): b.load('w')
    assert torch.load(tmp_path/'models/w.pth', weights_only=True).keys()==a.model.state_dict().keys()

# 2.4 counters
def test_counters():
    "Counters advance in `after_batch` at order -10, so later callbacks see the new value; for cancelled batches too"
    got = []
    def note(s): got.append((s.training, s.epoch, s.iter, s.n_iter, s.train_iter, round(s.pct_train, 9)))
    learn = learner(2, 1, cbs=[at('before_batch', lambda s: (note(s), s.iter==1 and throw(CancelBatch())())), at('after_batch', note)])
    assert learn.training is False
    learn.fit(2)
    assert got==[(True,0,0,2,0,0.), (True,0,0,2,1,.25), (True,0,1,2,1,.25), (True,0,1,2,2,.5), (False,0,0,1,2,.5), (False,0,0,1,2,.5),
                 (True,1,0,2,2,.5), (True,1,0,2,3,.75), (True,1,1,2,3,.75), (True,1,1,2,4,1.), (False,1,0,1,4,1.), (False,1,0,1,4,1.)]

def test_pct_train_starts_each_epoch_at_its_share():
    got = []
    learner(cbs=[at('before_train', lambda s: got.append(s.pct_train), order=1), at('after_batch', throw(CancelTrain()), lambda s: s.training)]).fit(4)
    assert got==[0,.25,.5,.75]
    got.clear(); learner(cbs=at('before_train', lambda s: got.append((s.epoch, s.pct_train)), order=1)).fit(4, start_epoch=2)
    assert got==[(2,.5),(3,.75)]

# 2.5 Recorder
def f(pred, targ): return (pred-targ).abs().mean()

@pytest.mark.parametrize('kw,names', [
    ({},                                             'epoch train_loss valid_loss f time'),
    (dict(add_time=False),                           'epoch train_loss valid_loss f'),
    (dict(train_metrics=True),                       'epoch train_loss train_f valid_loss valid_f time'),
    (dict(train_metrics=True, valid_metrics=False),  'epoch train_loss f valid_loss time')])
def test_columns(kw, names):
    "The columns are fastai's, except that `valid_metrics=False` keeps the column of the validation loss"
    learn = learner(cbs=[TrainEvalCallback, Recorder(**kw)], default_cbs=False, metrics=f)
    learn.fit(1)
    rec = learn.recorder
    assert list(rec.metric_names)==names.split() and isinstance(rec.metric_names, L)
    assert len(rec.log)==len(rec.metric_names) and list(learn.final_record)==list(rec.values[0]) and None not in rec.log
    assert list(rec.values[0])==[v for k,v in zip(rec.metric_names, rec.log) if k not in ('epoch','time')]

def test_what_is_recorded():
    losses = []
    learn = learner(cbs=at('after_loss', lambda s: losses.append(s.loss.item()), lambda s: s.training))
    learn.fit(2)
    rec = learn.recorder
    smooth,val = [],0
    for i,o in enumerate(losses): val = o*.02+val*.98; smooth.append(val/(1-.98**(i+1)))   # continues over epochs
    assert [o.item() for o in rec.losses]==pytest.approx(smooth) and all(isinstance(o, torch.Tensor) and o.device.type=='cpu' for o in rec.losses)
    assert rec.lrs==[.05]*6 and rec.iters==[3,6] and [r[0] for r in rec.values]==pytest.approx([smooth[2],smooth[5]])
    assert float(learn.smooth_loss)==pytest.approx(smooth[-1]) and all(type(o) is float for r in rec.values for o in r)
    # a new fit starts again
    learn.fit(1); assert len(rec.losses)==len(rec.lrs)==3 and rec.losses[0].item()==pytest.approx(losses[6])

def cells(row): return [v for k,v in row.items() if k not in ('epoch','time')]
NONE = dict(CancelTrain=[None,'v','v'], CancelValid=['v',None,None], CancelEpoch=['v',None,None])
@pytest.mark.parametrize('name,ev,phase', [('CancelTrain','after_batch',True), ('CancelValid','after_batch',False), ('CancelEpoch','before_validate',None)])
def test_cancelled_columns(name, ev, phase):
    "fastai shifts the columns to the left; here a cancelled phase leaves None in its own columns (DESIGN 4)"
    learn = learner(metrics=f, cbs=at(ev, throw(getattr(core, name)()), lambda s: s.epoch==1 and phase in (None, s.training), order=60))
    learn.fit(3)
    rows = [[o if o is None else 'v' for o in cells(r)] for r in learn.recorder.history]
    assert rows==[['v']*3, NONE[name], ['v']*3]
    assert [r['epoch'] for r in learn.recorder.history]==[0,1,2]

def test_cancelled_fits_and_epochs():
    "CancelFit within an epoch records no row; CancelEpoch in before_epoch an empty one, not the previous row again"
    learn = learner(cbs=at('after_batch', throw(CancelFit()), lambda s: s.epoch==1)); learn.fit(3)
    assert len(learn.recorder.values)==1
    learn = learner(cbs=at('before_epoch', throw(CancelEpoch()), lambda s: s.epoch in skip)); skip = {1}
    learn.fit(3)
    assert [r['epoch'] for r in learn.recorder.history]==[0,1,2] and cells(learn.recorder.history[1])==[None,None]
    skip = {0}; learn = learner(cbs=at('before_epoch', throw(CancelEpoch()), lambda s: s.epoch in skip)); learn.fit(2)
    assert cells(learn.recorder.history[0])==[None,None]

def test_iters_belong_to_rows():
    "`iters` has a value for each row, even after a Cancel: the x of the validation losses in the learning curve"
    learn = learner(cbs=at('after_batch', throw(CancelEpoch()), lambda s: s.training and s.epoch==1 and s.iter==1, order=60)); learn.fit(3)
    assert learn.recorder.iters==[3,5,8] and len(learn.recorder.history)==3
    with pytest.warns(UserWarning, match='was nan in epoch 2, batch 1'):
        learn.fit(3, cbs=at('after_loss', lambda s: setattr(s.learn, 'loss', s.loss*float('nan')), lambda s: s.training and s.epoch==2 and s.iter==1))

def test_validate_keeps_the_record():
    "fastai clears the record (DESIGN 3.7)"
    learn = learner(metrics=f); learn.fit(2)
    rec = learn.recorder
    before = [list(r) for r in rec.values],list(rec.lrs),rec.losses,list(rec.iters),rec.history
    learn.validate(); learn.get_preds()
    assert before==([list(r) for r in rec.values],list(rec.lrs),rec.losses,list(rec.iters),rec.history)

# 2.6 predictions
x,y = torch.randn(22, 4),torch.arange(22)%3
def classes(**kw):
    dl = DataLoader(TensorDataset(x, y), batch_size=4, **kw)
    return Learner(DataLoaders(dl, dl), model(cls=lambda: nn.Linear(4,3)), CrossEntropyLossFlat(), SGD, lr=.1)

@pytest.mark.parametrize('kw', [{}, dict(shuffle=True), dict(drop_last=True), dict(shuffle=True, drop_last=True)], ids=str)
def test_get_preds_is_in_order(kw):
    "Predictions, decoded ones and per-sample losses are complete and in the order of the dataset for any loader"
    learn = classes(**kw)
    inp,preds,targs,dec,losses = learn.get_preds(with_input=True, with_decoded=True, with_loss=True)
    out = learn.model(x).detach()
    assert torch.equal(inp, x) and torch.equal(targs, y) and torch.equal(dec, preds.argmax(1))
    torch.testing.assert_close(preds, out.softmax(1)); torch.testing.assert_close(losses, F.cross_entropy(out, y, reduction='none'))
    assert learn.loss_func.reduction=='mean' and all(o.device.type=='cpu' and not o.requires_grad for o in (inp,preds,targs,dec,losses))
    assert len(learn.get_preds())==2 and len(learn.get_preds(with_decoded=True))==3

@pytest.mark.parametrize('where', ['sampler', 'batch_sampler'])
def test_get_preds_with_another_order(where):
    "With any sampler, results are sorted by the indices that it returned"
    perm = torch.randperm(22).tolist()
    dl = DataLoader(TensorDataset(x, y), **({'sampler':perm, 'batch_size':4} if where=='sampler' else {'batch_sampler':[perm[:9], perm[9:10], perm[10:]]}))
    learn = classes()
    inp,preds,targs = learn.get_preds(dl=dl, with_input=True)
    assert torch.equal(inp, x) and torch.equal(targs, y); torch.testing.assert_close(preds, learn.model(x).softmax(1).detach())
    assert torch.equal(learn.get_preds(dl=dl, reorder=False)[1], y[perm])

def test_get_preds_activation():
    "`act` replaces the activation of the loss, and is called once for all predictions together"
    calls,learn = [],classes()
    preds,_ = learn.get_preds(act=lambda o: (calls.append(o.shape), o*2)[1])
    torch.testing.assert_close(preds, learn.model(x).detach()*2)
    assert calls==[(22,3)]
    learn.loss_func = F.cross_entropy
    torch.testing.assert_close(learn.get_preds()[0], learn.model(x).detach())

def test_get_preds_of_any_loader():
    "Loaders may be a list of batches, or have no `len` (an error in fastai), no targets, or several inputs and outputs"
    learn = classes()
    want = learn.get_preds()[0]
    torch.testing.assert_close(learn.get_preds(dl=[(x[:9],y[:9]), (x[9:],y[9:])])[0], want)
    preds,targs = learn.get_preds(dl=((x[i:i+5],) for i in range(0, 22, 5)))
    torch.testing.assert_close(preds, want); assert targs is None
    class Two(nn.Module):
        def __init__(self): super().__init__(); self.lin = nn.Linear(4,1)
        def forward(self, a, b): return self.lin(a),(b,a+b)
    learn = Learner(DataLoaders([(x,x,y)]), Two(), lambda p,t: p[0].mean(), SGD)
    inp,(p,(q,r)),t = learn.get_preds(ds_idx=0, with_input=True)
    assert torch.equal(inp[1], x) and torch.equal(q, x) and torch.equal(r, x+x) and p.shape==(22,1) and torch.equal(t, y)

def test_get_preds_to_files(tmp_path):
    learn = classes()
    preds,targs = learn.get_preds(save_preds=tmp_path/'p', save_targs=tmp_path/'t')
    read = lambda d: torch.cat([torch.load(tmp_path/d/str(i), weights_only=True) for i in range(6)])
    torch.testing.assert_close(read('p').softmax(1), preds); assert torch.equal(read('t'), targs)
    assert learn.get_preds(save_preds=tmp_path/'q', with_preds=False)[0] is None and (tmp_path/'q/5').is_file()
    assert learn.get_preds(with_targs=False)[1] is None

def test_loss_of_each_sample():
    "If the loss function returns several values per sample, their mean is the loss of the sample"
    learn = Learner(DataLoaders([(x,x)]), nn.Linear(4,4), nn.MSELoss(), SGD)
    losses = learn.get_preds(ds_idx=0, with_loss=True)[2]
    torch.testing.assert_close(losses, ((learn.model(x)-x)**2).mean(1).detach())
    learn.loss_func = F.mse_loss   # a function: called with reduction='none'
    torch.testing.assert_close(learn.get_preds(ds_idx=0, with_loss=True)[2], losses); assert learn.loss_func is F.mse_loss

def test_inner():
    "`get_preds` within a run fires no `before_fit` … `after_fit`, with or without `inner=True`"
    log = Log()
    learn = learner(nv=1, cbs=[log, at('after_train', lambda s: (log.heard.clear(), s.learn.get_preds(inner=inner), heard.append(log.fastais)))])
    heard = []
    for inner in (True, False): learn.fit(1)
    assert heard==[['before_validate','before_batch','after_pred','after_loss','after_batch','after_validate']]*2

def test_fetch_preds():
    cb = FetchPredsCallback(with_decoded=True, cbs=CSVLogger)
    learn = classes(shuffle=True); learn.add_cb(cb)
    learn.fit(1)
    assert len(cb.preds)==3 and torch.equal(cb.preds[1], y); torch.testing.assert_close(cb.preds[0], learn.get_preds()[0])

# 5.1 what every callback relies on
def test_no_attribute_is_named_like_an_event():
    "fastai's callbacks look up handlers by delegation, so they would call such an attribute"
    class Model(Reg): pass
    for ev in event: setattr(Model, ev, lambda self: 1/0)
    learn = learner(model=Model())
    assert not [ev for ev in event if hasattr(learn, ev) or hasattr(type(learn), ev)]
    learn.fit(1)

def test_absent_attributes():
    "`hasattr` returns False for them, and does not raise"
    learn = learner()
    assert not [n for n in ('lr_finder','gather_preds','smooth_loss','pred','mbar','remove_on_fetch','nothing') if hasattr(learn, n)]
    learn.fit(1)
    assert hasattr(learn, 'smooth_loss') and learn.parameters and not hasattr(learn, 'lr_finder')

def test_attributes_to_read():
    "The attributes of DESIGN 4 can be read by delegation in a batch"
    names = '''model dls dl loss_func opt opt_func lr wd cbs metrics path model_dir xb yb x y batch pred loss loss_grad n_epoch epoch n_iter iter
        train_iter pct_train training mode recorder state logger to_detach'''.split()
    missing = set()
    learner(cbs=[at('after_loss', lambda s: missing.update(n for n in names if not hasattr(s, n))), at('after_batch', lambda s: s.smooth_loss, lambda s: s.training, order=51)]).fit(1)
    assert not missing

def test_to_detach():
    "A loader may have its own `to_detach`, as fastai's have"
    learn = learner(); b = (torch.ones(2, requires_grad=True)*2,)
    assert not learn.to_detach(b)[0].requires_grad
    class Own(list):
        def to_detach(self, b, cpu=True, gather=True): return 'own'
    seen = []
    learner(dls=DataLoaders(Own(batches(2))), cbs=at('after_pred', lambda s: seen.append(s.to_detach(s.pred)))).fit(1)
    assert seen==['own']*2

def test_metric_protocol():
    "A metric is anything with `accumulate` and `value`; a class is instantiated; a function becomes an AvgMetric"
    class M:
        name = 'm'
        def reset(self): self.n = 0
        def accumulate(self, learn): self.n += len(learn.y)
        @property
        def value(self): return self.n
    m = M()
    learn = learner(metrics=[m, mae]); learn.fit(1)
    assert learn.metrics[0] is m and learn.recorder.values[0][2]==8 and isinstance(learn.metrics[1], AvgMetric)
    learn.metrics = M; assert type(learn.metrics[0]) is M and isinstance(learn.metrics, L)

# when callbacks are cleaned up

class Resource(Callback):
    "Counts how often it was set up and cleaned up"
    def __init__(self, order=0): self.order,self.has,self.given = order,0,0
    def before_fit(self): self.has += 1
    def cleanup(self): self.has = 0; self.given += 1

@pytest.mark.parametrize('ev', ['before_epoch', 'before_batch', 'after_loss', 'after_validate', 'after_fit'])
@pytest.mark.parametrize('order', [-1, 1])
def test_muted_or_removed_during_a_run(ev, order):
    "A callback that is muted or removed, even by itself, is cleaned up once: at the end, or when it is removed"
    for leave in (lambda cb, o: setattr(o, 'run', False), lambda cb, o: cb.learn.remove_cb(o)):
        o = Resource(order)
        learner(cbs=[o, once(ev, lambda cb: leave(cb, o))]).fit(1)
        assert (o.has, o.given)==(0,1)
    class Leaves(Resource):
        def __init__(self): super().__init__(); setattr(self, ev, lambda: self.learn and self.learn.remove_cb(self))
    if ev!='before_fit':
        learner(cbs=(o := Leaves())).fit(1)
        assert (o.has, o.given)==(0,1) and o.learn is None

def once(ev, f):
    done = []
    return at(ev, lambda cb: done or (done.append(1), f(cb)))

def test_removed_temporarily_is_not_cleaned_up():
    def see(cb):
        with cb.learn.removed_cbs(Resource): assert o.learn is None
        assert o.has==1 and o.learn is cb.learn
    learner(cbs=[o := Resource(), at('before_batch', see)]).fit(1)
    assert o.given==1

def test_an_error_in_the_cleanup_of_a_removed_callback():
    class Fails(Callback):
        def cleanup(self): raise OSError('gone')
    learn = learner(cbs=[o := Fails(), once('after_batch', lambda cb: cb.learn.remove_cb(o))])
    with pytest.raises(OSError, match='gone') as e: learn.fit(1)
    assert o.learn is None and o not in learn.cbs and 'event `cleanup`' in e.value.__notes__[0]

@pytest.mark.parametrize('flag', ['run', 'run_train', 'run_valid'])
def test_a_flag_is_a_flag(flag):
    class Mine(Callback):
        def __init__(self, v): setattr(self, flag, v)
    for v in ({}, [], None, '', object()):
        with pytest.raises(TypeError, match=f'`{flag}` says whether a Mine is called'): Mine(v)
        with pytest.raises(TypeError, match='another name'): setattr(learner(cbs=Mine(True)).mine, flag, v)
    for v in (True, False, 0, 1, torch.tensor(0)): Mine(v)

def test_after_cancel_valid():
    "`after_cancel_valid`, the name in fastai's documentation, is an alias of `after_cancel_validate`"
    heard = []
    class Old(Callback):
        def after_cancel_valid(self): heard.append(self.name)
    learner(cbs=[Old, Callback(after_cancel_valid=lambda self: heard.append('made')), at('before_validate', throw(CancelValid()))]).fit(1)
    assert sorted(heard)==['made','old']
    with pytest.raises(ValueError, match='no event'): event.alias('x', 'after_cancel_valids')
