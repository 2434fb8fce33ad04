"""Callbacks written for fastai, without fastai: a base class, Cancels, metrics, losses and optimizers that follow
fastai's conventions and share no code with learnkit must work in its Learner. `test_fastai.py` tests fastai's own."""
import re, warnings

import pytest, torch
from fastcore.basics import GetAttr, camel2snake
from torch import nn
import learnkit as core
from learnkit.loop.events import event
from toys import Reg, SGD, batches, learner, model

# classes that follow fastai's conventions
NAMES = 'Batch Backward Step Train Valid Epoch Fit'.split()
Theirs = {n: type(f'Cancel{n}Exception', (Exception,), {}) for n in NAMES}
IN_BATCH = '''before_batch after_pred after_loss before_backward after_cancel_backward after_backward before_step after_step
    after_cancel_batch after_batch'''.split()

class Foreign(GetAttr):
    "Like fastai's: finds handlers by delegation too, checks `run`, reads `e.args[0]`, resets `run` after `after_fit`"
    order,_default,learn,run,run_train,run_valid = 0,'learn',None,True,True,True
    def __call__(self, ev):
        inner = (ev not in IN_BATCH or (self.run_train and getattr(self, 'training', True))
                 or (self.run_valid and not getattr(self, 'training', False)))
        res = None
        if self.run and inner:
            try: res = getattr(self, ev, lambda *a: None)()
            except tuple(Theirs.values()): raise
            except Exception as e:
                e.args = (f'Exception occured in `{type(self).__name__}` when calling event `{ev}`:\n\t{e.args[0]}',)
                raise
        if ev=='after_fit': self.run = True
        return res
    def __setattr__(self, k, v):
        if hasattr(self.learn, k): warnings.warn(f'You are shadowing an attribute ({k}) that exists in the learner. Use `self.learn.{k}`')
        super().__setattr__(k, v)
    @property
    def name(self): return camel2snake(re.sub('Callback$', '', type(self).__name__))

class Metric:
    "fastai's protocol: `reset`, `accumulate`, `value`, `name`; adds up what `learn.to_detach` returns"
    name = 'mean_error'
    def reset(self): self.total,self.n = 0.,0
    def accumulate(self, learn):
        self.total += learn.to_detach((learn.pred-learn.y).abs().mean())*len(learn.y)
        self.n += len(learn.y)
    @property
    def value(self): return self.total/self.n

class Loss:
    "Not an `nn.Module`, but has a method `to`"
    reduction,y_int,device = 'mean',False,None
    def to(self, device): self.device = device
    def __call__(self, pred, targ): return nn.functional.mse_loss(pred, targ, reduction=self.reduction)
    def activation(self, x): return x*10
    def decodes(self, x): return x.round()

class Optimizer:
    "fastai's protocol, without a PyTorch optimizer inside"
    def __init__(self, params, lr, **kw): self.param_lists,self.hypers,self.state,self.frozen_idx = [list(params)],[dict(lr=lr, wd=0.)],{},0
    def set_hyper(self, k, v):
        for h in self.hypers: h[k] = v
    def set_hypers(self, **kw): [self.set_hyper(k, v) for k,v in kw.items()]
    @property
    def param_groups(self): return [dict(params=ps, **h) for ps,h in zip(self.param_lists, self.hypers)]
    def step(self):
        with torch.no_grad():
            for p in self.param_lists[0]: p.sub_(p.grad*self.hypers[0]['lr'])
    def zero_grad(self):
        for p in self.param_lists[0]: p.grad = None
    def state_dict(self): return dict(hypers=self.hypers)
    def load_state_dict(self, sd): self.hypers = sd['hypers']
    def clear_state(self): self.state = {}
    def freeze_to(self, n): self.frozen_idx = n

class Log(Foreign):
    "Records the fastai events that it receives"
    def __init__(self): self.received = []
    def __call__(self, ev):
        if ev in IN_BATCH+OTHERS: self.received.append(ev)
        super().__call__(ev)
OTHERS = '''after_cancel_step after_create before_fit before_epoch before_train after_cancel_train after_train before_validate after_cancel_validate after_validate
    after_cancel_epoch after_epoch after_cancel_fit after_fit'''.split()

STEP = 'before_backward after_backward before_step after_step'.split()
def one(train): return ['before_batch','after_pred','after_loss',*(STEP if train else []),'after_batch']
EPOCH = ['before_epoch','before_train',*one(True)*2,'after_train','before_validate',*one(False),'after_validate','after_epoch']

# tests
def test_the_events_of_a_fit():
    log = Log()
    learner(n=2, nv=1, cbs=log).fit(2)
    assert log.received==['after_create','before_fit',*EPOCH*2,'after_fit']

# The two events that follow each Cancel, and the events at which each is raised, from fastai 2.8.12
AFTER = dict(Batch='after_cancel_batch after_batch', Backward='after_cancel_backward after_backward', Step='after_cancel_step after_step',
             Train='after_cancel_train after_train', Valid='after_cancel_validate after_validate', Epoch='after_cancel_epoch after_epoch',
             Fit='after_cancel_fit after_fit')
LEGAL = dict(Batch='before_batch after_pred after_loss before_backward after_backward before_step after_step', Backward='before_backward',
             Step='before_step', Train='before_train before_batch after_pred after_step after_batch', Valid='before_validate',
             Epoch='before_epoch before_train after_loss after_batch after_train before_validate after_validate',
             Fit='before_fit before_epoch before_train after_pred after_batch after_train before_validate after_validate after_epoch')

@pytest.mark.parametrize('name,at', [(n,at) for n,ats in LEGAL.items() for at in ats.split()])
@pytest.mark.parametrize('kind', ['theirs', 'subclass', 'ours'])
def test_every_cancel(name, at, kind):
    "Cancels of other libraries are recognized by class name; learnkit's own Cancels pass through a foreign `__call__`"
    exc = {'theirs': Theirs[name], 'subclass': type('Mine', (Theirs[name],), {}), 'ours': getattr(core, f'Cancel{name}')}[kind]
    class Raises(Log):
        def __call__(self, ev):
            super().__call__(ev)
            if ev==at and self.received.count(ev)==1: raise exc() if kind!='ours' else exc
    cb = Raises()
    learner(n=2, nv=1, cbs=cb).fit(2)
    i = cb.received.index(at)
    assert cb.received[i+1:i+3]==AFTER[name].split()
    assert cb.received[-1]=='after_fit'

def test_a_handler_that_raises_a_cancel_without_arguments():
    "fastai's `__call__` reads `e.args[0]` of unknown exceptions: learnkit's Cancels have one, so CancelFit works"
    class Stops(Foreign):
        def after_batch(self):
            if self.train_iter==3: raise core.CancelFit
    learn = learner(n=4, nv=0, cbs=Stops())
    learn.fit(2)
    assert learn.train_iter==3

def test_errors_pass_through():
    class Fails(Foreign):
        def before_step(self): raise KeyError('x')
    learn = learner(cbs=Fails())
    with pytest.raises(KeyError, match='Exception occured in `Fails` when calling event `before_step`'): learn.fit(1)
    learn.remove_cb(Fails); learn.fit(1)

def test_delegation_and_shadowing():
    class Reads(Foreign):
        def before_fit(self): self.seen = (self.n_epoch, self.training, self.dls, self.weight)   # `weight` is the model's
        def before_epoch(self): self.epoch = 3
    cb = Reads()
    learn = learner(cbs=cb)
    with pytest.warns(UserWarning, match=r'shadowing an attribute \(epoch\)'): learn.fit(1)
    assert cb.seen==(1, False, learn.dls, learn.model.weight) and learn.epoch==0 and learn.reads is cb

def test_hasattr_finds_no_absent_names():
    "fastai's callbacks look up names such as `lr_finder` by `hasattr`, and handlers by delegation: none may be found"
    class Asks(Foreign):
        def __init__(self): self.had = set()
        def __call__(self, ev):
            super().__call__(ev)
            if ev!='after_create': self.had |= {n for n in names if hasattr(self, n)}
    names = ['lr_finder','gather_preds','mixed_precision','channels_last','rnn','progress_bar',*event]
    class Model(Reg):
        def after_epoch(self): raise AssertionError('a method of the model is no handler')
        def cleanup(self): raise AssertionError('a method of the model is no handler')
    cb = Asks()
    learn = learner(model=Model(), cbs=cb)
    learn.fit(1); assert cb.had==set()
    learn.get_preds(); assert cb.had=={'gather_preds'}
    assert not hasattr(learn, 'gather_preds') and not hasattr(learn, 'smooth_loss_of_another')

def test_run_is_reset_after_each_fit():
    "A foreign callback that sets `run` to False is called again in the next fit, even if `after_fit` was skipped"
    class Mutes(Log):
        def before_fit(self): self.run = self.learn.n_epoch>1
    cb = Mutes()
    learn = learner(cbs=cb)
    learn.fit(1); assert cb.run
    cb.run = False
    with pytest.raises(ValueError): learn.fit(1, cbs=core.Callback(after_batch=lambda s: (_ for _ in ()).throw(ValueError)))
    assert cb.run
    learn.fit(2); assert cb.received[-1]=='after_fit' and cb.run

def test_only_train_loop_and_remove_on_fetch():
    "fastai's class attributes exclude trackers and loggers from `validate` and `get_preds`"
    class Tracker(Log): _only_train_loop = remove_on_fetch = True
    class Board(Log):   remove_on_fetch = True
    class Other(Log): pass
    cbs = [Tracker(), Board(), Other()]
    learn = learner(nv=1, cbs=cbs)
    for run,is_called in ((learn.validate, (False,None,True)), (learn.get_preds, (False,False,True)), (lambda: learn.fit(1), (True,True,True))):
        for cb in cbs: cb.received.clear()
        run()
        for cb,h in zip(cbs, is_called): assert h is None or bool(cb.received)==h

def test_hand_written_fetch_preds():
    "Like fastai's FetchPredsCallback: it is removed, predicts and is added back, all in a handler"
    class Fetch(Foreign):
        remove_on_fetch = True
        def after_validate(self):
            gone = [cb for cb in self.learn.cbs if getattr(cb, 'remove_on_fetch', False)]
            with self.learn.removed_cbs(gone) as learn:
                assert self not in learn.cbs and self.learn is None
                self.preds = learn.get_preds(ds_idx=1, dl=None, with_input=False, with_decoded=False, inner=True, reorder=True)
    cb = Fetch()
    learn = learner(n=3, nv=2, cbs=cb)
    cbs = list(learn.cbs)
    learn.fit(2)
    assert list(learn.cbs)==cbs and len(learn.recorder.values)==2 and len(cb.preds[0])==8
    torch.testing.assert_close(cb.preds[0], learn.get_preds()[0])

def test_hand_written_tracker(tmp_path):
    "Like fastai's trackers: a position in `metric_names`, the last of `values`, `save`, and `load(weights_only=)`"
    class Tracker(Foreign):
        order,_only_train_loop,remove_on_fetch = 60,True,True
        def before_fit(self):
            self.run = not hasattr(self, 'lr_finder') and not hasattr(self, 'gather_preds')
            self.idx,self.best = list(self.recorder.metric_names[1:]).index('valid_loss'),float('inf')
        def after_epoch(self):
            val = self.recorder.values[-1][self.idx]
            if val-0.<self.best: self.best,self.path_ = val,self.learn.save('sub/best', with_opt=False)
        def after_fit(self): self.learn.load('sub/best', with_opt=False, weights_only=False)
    cb = Tracker()
    learn = learner(cbs=cb, path=tmp_path)
    learn.fit(3)
    assert cb.path_==tmp_path/'models/sub/best.pth' and cb.path_.is_file()
    assert cb.best==pytest.approx(min(r[1] for r in learn.recorder.values)) and learn.validate()[0]==pytest.approx(cb.best)

def test_hand_written_mixup():
    "Replaces the loss function until `after_train`; after an error, the Learner restores it"
    class Mix(Foreign):
        run_valid = False
        def before_train(self): self.old,self.learn.loss_func = self.learn.loss_func,self.lf
        def after_train(self): self.learn.loss_func = self.old
        def lf(self, pred, *yb): return self.old(pred, *yb)*2
        def after_loss(self):
            if self.train_iter==2 and fail: raise ValueError('x')
    for fail in (False, True):
        learn = learner(cbs=Mix()); loss = learn.loss_func
        if fail: pytest.raises(ValueError, learn.fit, 1)
        else: learn.fit(2)
        assert learn.loss_func is loss

def test_hand_written_accumulation_clipping_and_scaling():
    "Callbacks like fastai's GradientAccumulation, MixedPrecision and GradientClip equal a plain PyTorch loop"
    class Accumulate(Foreign):
        order,run_valid = 6,False
        def before_fit(self): self.count = 0
        def after_loss(self): self.learn.loss_grad /= 2
        def before_step(self):
            self.learn.loss_grad *= 2
            self.count += 1
            if self.count%2: raise Theirs['Batch']()
    class Scale(Foreign):
        order = 10
        def before_backward(self): self.learn.loss_grad = self.loss_grad*64
        def before_step(self):
            for g in self.opt.param_groups:
                for p in g['params']: p.grad /= 64
    class Clip(Foreign):
        order = 11
        def before_step(self): nn.utils.clip_grad_norm_(self.parameters(), .1)
    learn,m = learner(n=4, cbs=[Clip(), Accumulate(), Scale()]),model()
    learn.fit(2)
    opt,loss = SGD(m.parameters(), lr=learn.lr),nn.MSELoss()
    for i,(x,y) in enumerate(batches(4)*2):
        (loss(m(x), y)/2*64).backward()
        if i%2:
            for p in m.parameters(): p.grad /= 64
            nn.utils.clip_grad_norm_(m.parameters(), .1)
            opt.step(); opt.zero_grad()
    assert torch.equal(m.weight, learn.model.weight) and torch.equal(m.bias, learn.model.bias)

def test_hand_written_scheduler():
    class Sched(Foreign):
        order,run_valid = 60,False
        def before_fit(self): self.hps = []
        def before_batch(self): self.opt.set_hyper('lr', .1*(1-self.pct_train))
        def after_batch(self): self.hps.append(self.opt.hypers[-1]['lr'])
        def after_fit(self): self.recorder.hps = self.hps
    learn = learner(n=4, cbs=Sched())
    learn.fit(2)
    assert learn.recorder.hps==pytest.approx([.1*(1-i/8) for i in range(8)])==learn.recorder.lrs

def test_every_attribute_may_be_assigned():
    class Writes(Foreign):
        def before_fit(self): self.learn.scaler,self.learn.anything = None,3
        def before_batch(self): self.learn.xb,self.learn.yb = (self.x*2,),(self.y+1,)
        def after_pred(self): self.learn.pred = self.pred.double()
        def after_loss(self): self.learn.loss_grad,self.learn.loss = self.loss_grad*3,self.loss*0+7
        def after_batch(self): self.learn.smooth_loss = torch.tensor(5.)
        def before_epoch(self): self.learn.model,self.learn.loss_func = self.model,lambda p,t: nn.functional.mse_loss(p, t.double())
    learn = learner(nv=2, cbs=Writes())
    learn.fit(1)
    assert learn.recorder.values[0]==pytest.approx([7,7]) and learn.anything==3 and float(learn.smooth_loss)==5

def test_metric_loss_and_optimizer_by_protocol():
    learn = learner(loss_func=Loss(), metrics=[Metric(), Metric], opt_func=Optimizer)
    learn.metrics = [Metric()]
    ref = learner(metrics=lambda p,t: (p-t).abs().mean())
    learn.fit(2); ref.fit(2)
    assert isinstance(learn.opt, Optimizer) and learn.loss_func.device is not None
    torch.testing.assert_close(learn.model.weight, ref.model.weight)
    assert learn.recorder.values[-1]==pytest.approx(ref.recorder.values[-1], rel=1e-5) and learn.recorder.metric_names[3]=='mean_error'
    preds,targs,dec,losses = learn.get_preds(with_decoded=True, with_loss=True)
    assert torch.equal(dec, preds.round()) and len(losses)==len(targs) and learn.loss_func.reduction=='mean'
    torch.testing.assert_close(losses, ((preds/10-targs)**2)[:,0])

def test_the_logger_can_be_compared_with_noop():
    "fastai's progress bar writes only if `learn.logger != noop`, where noop is fastai's own"
    def noop(x=None, *args, **kwargs): return x
    seen = []
    class Asks(Foreign):
        def before_fit(self): seen.append(self.learn.logger!=noop)
    learn = learner(cbs=Asks())
    learn.fit(1); learn.validate(); learn.get_preds()
    with learn.no_logging(): learn.fit(1)
    assert seen==[True,False,False,False]

def test_hand_written_autocast():
    "A context entered in `before_batch` is exited after a Cancel or an error by `cleanup`, which fastai lacks (D2)"
    depth = [0]
    class Cast(Foreign):
        order,open = 10,False
        def before_batch(self): depth[0] += 1; self.open = True
        def after_loss(self): self.close()
        def after_cancel_batch(self): self.close()
        def cleanup(self): self.close()
        def close(self):
            if self.open: depth[0] -= 1; self.open = False
    class Raises(Foreign):
        order = 11
        def after_pred(self):
            if self.train_iter==1: raise exc('x')
    for exc in (Theirs['Batch'], Theirs['Epoch'], Theirs['Fit'], ValueError, KeyboardInterrupt):
        learn = learner(cbs=[Cast(), Raises()])
        if exc in (ValueError, KeyboardInterrupt): pytest.raises(exc, learn.fit, 1)
        else: learn.fit(1)
        assert depth==[0]
