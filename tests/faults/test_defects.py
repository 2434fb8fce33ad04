"""Defects of fastai 2.8.12, by their numbers in the study that found them: each test fails if learnkit has the defect.
Not included: those of parts that are not in the core (D10 D13 D15 D23 D24 D34 D35: schedules, trackers, hooks, lr_find, accumulation)."""
import math, pickle, sys, threading
from functools import partial
from pathlib import Path

import pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
import learnkit
import learnkit.measure.metric
from learnkit.loop.events import *
from learnkit.loop.callback import *
from learnkit.loop.dispatcher import *
from learnkit.learner.results import *
from learnkit.learner.learner import *
from learnkit.learner.predict import *
from learnkit.processes.shard import *
from learnkit.observe.files import CSVLogger
from learnkit.learner.bars import ProgressCallback
from learnkit.data.nested import to_concat
from learnkit.data.loaders import DataLoaders
from learnkit.learner.learner import Learner
from learnkit.measure.metric import *
from learnkit.measure.recorder import *
from learnkit.measure.accum import *
from learnkit.measure.metrics import *
from learnkit.measure.accum import *
from learnkit.measure.adapters import *
from toys import Reg, SGD, at, batches, count_calls, learner, model, throw, weights

ERRORS = [ValueError('x'), KeyboardInterrupt(), StopIteration()]
def run_with_timeout(f, seconds=20):
    "The result of `f()`, which may take at most `seconds`"
    res = []
    def run():
        try: res.append((f(), None))
        except BaseException as e: res.append((None, e))
    t = threading.Thread(target=run, daemon=True)
    t.start(); t.join(seconds)
    assert res, f'still waits after {seconds} s'
    if res[0][1] is not None: raise res[0][1]
    return res[0][0]

# A. cleanup always runs
@pytest.mark.parametrize('e', ERRORS, ids=repr)
def test_D01_cleanup_after_errors(e, tmp_path):
    "fastai: nothing runs after an ordinary exception: logger, loss function, open file and `run=False` stay changed"
    done = []
    csv = CSVLogger()
    learn = learner(metrics=mae, path=tmp_path, cbs=[csv, at('cleanup', lambda s: done.append(s.learn.mode)), at('before_train', lambda s: setattr(s.learn, 'loss_func', F.l1_loss)),
                                                     bad := at('after_loss', throw(e), lambda s: s.train_iter==4)])
    before = learn.logger,learn.loss_func
    with pytest.raises(type(e)): learn.fit(3)
    assert done==['fit'] and (learn.logger,learn.loss_func)==before and csv.log_file.file is None and learn.mode is None and not learn.training
    assert all(cb.run for cb in learn.cbs) and torch.is_grad_enabled()
    n = len(csv.read_log())
    learn.remove_cb(bad); learn.fit(2)    # fastai's CSVLogger recurses without end here
    assert len(csv.read_log())==n+2

def test_D02_scopes_are_closed_after_cancels_and_errors():
    "fastai: a context entered in before_batch and exited in after_loss stays open after a CancelBatch in between"
    depth = []
    class Cast(Callback):
        def before_batch(self): depth.append(1)
        def after_loss(self): depth.pop()
        def after_cancel_batch(self): depth.clear()
        def cleanup(self): depth.clear()
    for e in (CancelBatch(), CancelEpoch(), ValueError('x')):
        learn = learner(cbs=[Cast(), at('after_pred', throw(e), lambda s: s.iter==1)])
        if isinstance(e, Cancel): learn.fit(2)
        else: pytest.raises(ValueError, learn.fit, 2)
        assert depth==[]

@pytest.mark.parametrize('ev', ['after_fit', 'cleanup', 'after_exception'])
def test_D03_one_failing_cleanup_does_not_stop_the_others(ev):
    "fastai: no callback runs after one that raises in after_fit. Here all clean up, and the first error is raised"
    done = []
    cbs = [at('cleanup', lambda s: done.append('first')), at(ev, throw(ZeroDivisionError('x'))), at('cleanup', lambda s: done.append('last'))]
    if ev=='after_exception': cbs.append(at('after_batch', throw(ValueError('first error'))))
    learn = learner(cbs=cbs)
    with pytest.raises(ValueError if ev=='after_exception' else ZeroDivisionError) as e: learn.fit(1)
    assert done==['last','first'] and learn.mode is None
    if ev=='after_exception': assert any('ZeroDivisionError' in n for n in e.value.__notes__)

# B. validate and get_preds are separate from fit
class Tracker(Callback):
    "Saves the best model, as a user would write it"
    order,modes = 60,('fit',)
    def before_fit(self): self.best,self.saves = math.inf,0
    def after_epoch(self):
        loss = self.recorder.history[-1]['valid_loss']
        if loss<self.best: self.best = loss; self.saves += 1; self.learn.save('best')

@pytest.mark.parametrize('run', ['validate', 'get_preds'])
def test_D04_inference_leaves_history_and_files_unchanged(run, tmp_path):
    "fastai: `learn.validate()` truncates history.csv, clears the recorder and overwrites the best checkpoint"
    learn = learner(metrics=mae, path=tmp_path, cbs=[CSVLogger(), Tracker()])
    learn.fit(2)
    def state(): return ({p: p.read_bytes() for p in tmp_path.rglob('*') if p.is_file()}, list(learn.recorder.values), len(learn.recorder.losses),
                         learn.recorder.history, learn.tracker.best, learn.tracker.saves, learn.epoch, learn.n_epoch, learn.train_iter, learn.pct_train, learn.logger)
    before = state()
    with torch.no_grad(): learn.model.weight.mul_(0)
    getattr(learn, run)()
    assert state()==before and len(before[0])==2

def test_D05_summary_fires_no_events():
    "fastai: `summary()` fires before_fit on the user's callbacks"
    fired = []
    class Log(Callback):
        def __call__(self, ev): fired.append(ev)
    learn = learner(cbs=Log); fired.clear()
    learn.summary(); learn.show_training_loop()
    assert fired==[]

def test_D06_no_deadlocks():
    "fastai: its lock is neither re-entrant nor released: get_preds in a callback of validate, or after an error, hangs"
    learn = learner(cbs=[FetchPredsCallback(), at('after_validate', lambda s: s.mode=='validate' and s.learn.get_preds())])
    run_with_timeout(learn.validate); run_with_timeout(lambda: learn.fit(1))
    learn = learner(cbs=[bad := at('before_fit', throw(ValueError('x')))])
    with pytest.raises(ValueError): learn.validate()
    learn.remove_cb(bad)
    run_with_timeout(learn.validate); run_with_timeout(learn.get_preds)

def test_D07_cancel_fit_ends_validate():
    "fastai: TerminateOnNaN during `learn.validate()` raises a bare CancelFitException to the user"
    learn = learner(cbs=at('after_batch', throw(CancelFit()), order=60))
    assert len(learn.validate())==1
    assert len(learn.get_preds()[0])==4   # the predictions up to then: one batch

def test_D08_a_fit_inside_a_run_raises():
    "fastai: the inner fit overwrites n_epoch, epoch and the recorder of the outer one"
    learn = learner(cbs=at('after_epoch', lambda s: s.learn.fit(5), lambda s: s.epoch==1, order=60))
    with pytest.raises(RuntimeError, match='`fit` inside a running `fit`'): learn.fit(3)
    assert learn.n_epoch==3 and learn.epoch==1 and len(learn.recorder.values)==2

# C. recorder and metrics
def test_D09_start_epoch(tmp_path):
    "fastai: skipped epochs leave empty rows, on which every tracker fails"
    seen = []
    learn = learner(path=tmp_path, cbs=[Tracker(), at('before_train', lambda s: seen.append((s.epoch, s.pct_train)), order=1)])
    learn.fit(5, start_epoch=3)
    assert [r['epoch'] for r in learn.recorder.history]==[3,4] and None not in learn.recorder.values[0] and seen==[(3,.6),(4,.8)]

def test_D11_columns_stay_in_place(tmp_path):
    "fastai: values missing after a cancelled phase shift the rest of the row to the left"
    learn = learner(metrics=mae, path=tmp_path, cbs=[CSVLogger(), at('after_batch', throw(CancelTrain()), lambda s: s.training and s.epoch==0)])
    learn.fit(2)
    names = list(learn.recorder.metric_names)
    row = learn.recorder.history[0]
    assert list(row)==names and row['train_loss'] is None and row['valid_loss']==pytest.approx(learn.recorder.values[0][1])
    assert [list(r) for r in learn.csv_logger.read_log()]==[names]*2 and learn.csv_logger.read_log()[0]['train_loss'] is None

@pytest.mark.parametrize('ev', ['before_batch', 'after_pred'])
def test_D12_cancelled_batches_are_not_recorded(ev):
    "fastai: a cancelled batch is recorded with the loss of the one before; if all are cancelled, the loss is 0.0"
    learn = learner(metrics=mae, cbs=at(ev, throw(CancelBatch()), lambda s: s.iter in skip)); skip = {1}
    losses = []
    with learn.added_cbs(at('after_loss', lambda s: losses.append(s.loss.item()), lambda s: s.training)): learn.fit(1)
    assert len(losses)==2==len(learn.recorder.losses)==len(learn.recorder.lrs)
    want = learner(dls=DataLoaders(batches(3)[::2], batches(2, seed=1)[:1]), metrics=mae); want.fit(1)
    assert learn.recorder.values[0]==pytest.approx(want.recorder.values[0])
    skip = {0,1,2}
    learn.fit(1); assert [*learn.recorder.history[0].values()][1:-1]==[None,None,None] and len(learn.recorder.losses)==0
    assert learn.validate()==[None,None] and learn.get_preds()[0] is None

def test_D14_hypers_are_not_copies():
    "fastai: `opt.hypers` of a torch optimizer are copies, so ReduceLROnPlateau has no effect"
    learn = learner(opt_func=partial(SGD, momentum=.9)); learn.fit(1)
    for h in learn.opt.hypers: h['lr'] /= 10; h['mom'] = .5
    assert learn.opt.opt.param_groups[0]['lr']==.005 and learn.opt.opt.param_groups[0]['momentum']==.5
    assert learn.opt.hypers[-1]['lr']==.005 and learn.opt.hypers[-1] is learn.opt.hypers[-1]

def test_D16_metrics():
    "fastai: `dim_argmax=0` and `thresh=0` count as not given; `rmse` is called `_rmse`; a module has no name; names may collide; instances are shared"
    t = torch.tensor([[.1,.9,.2],[.3,.1,.8]])
    assert AccumMetric(lambda p,t: p, dim_argmax=0).prepare(t).tolist()==[1,0,1]
    assert AccumMetric(lambda p,t: p, thresh=0).prepare(t-.5).tolist()==[[False,True,False],[False,False,True]]
    learn = learner(metrics=[rmse, nn.L1Loss(), perplexity]); learn.fit(1)
    assert list(learn.recorder.metric_names[3:6])==['rmse','l1_loss','perplexity']
    assert learner(metrics=rmse).metrics[0] is not learner(metrics=rmse).metrics[0]
    with pytest.raises(ValueError, match="'mae'.*another name"): learner(metrics=[mae, mae]).fit(1)

def test_D17_means_of_processes_are_weighted(monkeypatch):
    "fastai: gathers each process's mean, and weights their mean by its own batch size; gathers the smoothed loss every training batch"
    calls = []
    def gather(x): calls.append(1); return torch.cat([x, torch.tensor([[10.,2.,0.]], dtype=x.dtype)])   # another process: 2 samples, sum 10, and a mean
    monkeypatch.setattr(learnkit.measure.metric, 'num_shards', lambda: 2); monkeypatch.setattr(learnkit.measure.metric, 'maybe_gather', gather)
    learn = learner(n=20, nv=2)
    loss = AvgLoss()
    for x,y in batches(2):
        learn.xb,learn.yb,learn.loss = (x,),(y,),torch.tensor(1.)
        loss.accumulate(learn)
    assert loss.value==pytest.approx((8*1+10)/(8+2))
    calls.clear(); learn.fit(1); assert len(calls)<=2

# D. callbacks
class Odd(Exception):
    def __init__(self, a, b): super().__init__(a, b); self.a,self.b = a,b
@pytest.mark.parametrize('e', [ValueError(), AssertionError(), Odd(1, 2), OSError(2, 'gone', 'x.txt'), KeyError('k'), UnicodeDecodeError('utf8', b'x', 0, 1, 'bad')], ids=repr)
def test_D18_errors_keep_their_class_and_arguments(e):
    "fastai: `raise ValueError` becomes `IndexError: tuple index out of range`, other exceptions lose their arguments"
    class Bad(Callback):
        def before_step(self): raise e
    args,text = e.args,str(e)
    with pytest.raises(type(e)) as got: learner(cbs=Bad).fit(1)
    assert got.value is e and e.args==args and str(e)==text and e.__cause__ is None and e.__context__ is None
    assert len(e.__notes__)==1 and all(w in e.__notes__[0] for w in ('Bad','before_step','epoch 0','batch 0'))
    def fails(s): assert s.epoch>5
    with pytest.raises(AssertionError): learner(cbs=at('before_fit', fails)).fit(1)

@pytest.mark.parametrize('name', ['Opt', 'Model', 'AddCb', 'X', 'Dls', 'Loss', 'Fit', 'Recorder_', 'Pred', 'Validate', 'Xb', 'SmoothLoss', 'Mode', 'Epoch', 'StopReason', 'Logger', 'Save', 'Path', 'Metrics', 'Training'])
def test_D19_names_that_would_hide_attributes(name):
    "fastai: OptCallback replaces `learn.opt`, AddCbCallback `learn.add_cb`. Here `add_cb` raises and changes nothing"
    cb = type(f'{name}Callback', (Callback,), {})()
    learn = learner()
    if name=='Recorder_': assert learn.add_cb(cb).recorder_ is cb; return
    before = {**vars(learn)},list(learn.cbs)
    with pytest.raises(ValueError, match=f'learn.{cb.name}.*rename.*My{name}Callback'): learn.add_cb(cb)
    assert (vars(learn),list(learn.cbs))==before and cb.learn is None
    learn.fit(1)

def test_D19_two_of_a_class():
    "fastai: removing one of two instances deletes the attribute of both"
    class A(Callback): pass
    learn = learner(); a,b,c = A(),A(),A()
    learn.add_cbs([a,b,c]); assert learn.a is c and len({a.key,b.key,c.key})==3
    learn.remove_cb(c); assert learn.a is b and a in learn.cbs
    learn.remove_cb(a); assert learn.a is b
    learn.remove_cb(b); assert not hasattr(learn, 'a')

def test_D20_handlers_are_not_found_by_delegation():
    "fastai: a method `after_epoch` of the model is called once for each callback that has none"
    class Model(Reg):
        calls = 0
        def after_epoch(self): Model.calls += 1
        before_fit = after_fit = after_batch = cleanup = after_epoch
    learn = learner(model=Model(), cbs=[Callback(), Callback()]); learn.fit(1); learn.validate()
    assert Model.calls==0
    class HasCall(Callback):
        def __call__(self, ev): return super().__call__(ev)
    learner(model=Model(), cbs=HasCall).fit(1)
    assert Model.calls==0

def test_D21_temporary_callbacks():
    "fastai: `fit(cbs=A)` then removes permanent instances of A too; `removed_cbs(A)` restores a new instance"
    class A(Callback):
        def __init__(self, v=0): self.v = v
    keep = A(7)
    learn = learner(cbs=keep)
    learn.fit(1, cbs=A); assert keep in learn.cbs and learn.a is keep and sum(isinstance(o, A) for o in learn.cbs)==1
    with learn.removed_cbs(A): assert keep not in learn.cbs
    assert learn.a is keep and keep.learn is learn
    with learn.no_bar(): assert not hasattr(learn, 'progress')
    assert isinstance(learn.progress, ProgressCallback)

def test_D22_typos_and_own_events():
    "fastai: a handler `after_bach` is never called, without a warning; events cannot be added"
    for name,meant in (('after_bach','after_batch'), ('before_vaildate','before_validate'), ('after_trian','after_train')):
        with pytest.raises(TypeError, match=f'{name}.*{meant}'): type('A', (Callback,), {name: lambda self: None})
        with pytest.raises(TypeError, match=meant): Callback(**{name: print})
    event.register('before_coffee')
    fired = []
    class A(Callback):
        def before_coffee(self): fired.append(self.epoch)
        def after_epoch(self): self.learn('before_coffee')
    learner(cbs=A).fit(2)
    assert fired==[0,1]

# E. data and models
class Named(nn.Module):
    def __init__(self): super().__init__(); self.lin = nn.Linear(4,1)
    def forward(self, x, scale=1, **kw): return dict(out=self.lin(x)*scale)
def test_D25_mappings():
    "fastai: batches and predictions that are dicts raise a TypeError"
    x = torch.randn(6,4)
    dl = [dict(x=x, scale=torch.ones(6,1), y=x.sum(1,keepdim=True))]*2
    learn = Learner(DataLoaders(dl, dl), Named(), lambda p,t: F.mse_loss(p['out'], t), SGD)
    learn.fit(2)
    inp,preds,targs = learn.get_preds(with_input=True)
    torch.testing.assert_close(preds['out'][:6], learn.model.lin(x).detach()); assert inp['x'].shape==(12,4) and targs.shape==(12,1)

class Stream(IterableDataset):
    def __iter__(self): return iter([(torch.ones(4)*i, torch.ones(1)) for i in range(10)])
def test_D26_without_len():
    "fastai: a loader without a length raises a TypeError before the first batch"
    dl = DataLoader(Stream(), batch_size=4)
    learn = Learner(DataLoaders(dl, dl), Reg(), F.mse_loss, SGD)
    pcts = []
    learn.fit(2, cbs=at('after_batch', lambda s: pcts.append((s.n_iter, s.pct_train)), lambda s: s.training))
    assert learn.train_iter==6 and len(learn.get_preds()[0])==10 and learn.n_epoch==2
    assert all(0<=p<=1 for _,p in pcts) and pcts[-1]==(None,1.)   # from the length of the first epoch

@pytest.mark.parametrize('args', [(), (None,)], ids=repr)
def test_D27_without_validation(args):
    "fastai: without validation data, `fit` raises an IndexError or a TypeError"
    learn = learner(dls=DataLoaders(batches(3), *args), metrics=mae)
    learn.fit(2)
    assert list(learn.recorder.metric_names)==['epoch','train_loss','time'] and len(learn.recorder.values[0])==1

def test_D28_plain_pytorch_loaders():
    "fastai: get_preds, summary and predict fail with a PyTorch DataLoader"
    ds = TensorDataset(torch.randn(10,4), torch.randn(10,1))
    learn = Learner(DataLoaders(DataLoader(ds, batch_size=4, shuffle=True), DataLoader(ds, batch_size=4)), Reg(), F.mse_loss, SGD)
    learn.fit(1)
    preds,targs = learn.get_preds(ds_idx=0)
    assert torch.equal(targs, ds.tensors[1])
    torch.testing.assert_close(learn.predict(ds[3][0])[2], preds[3]); assert '5 parameters' in learn.summary()

def test_D29_models_and_optimizers():
    """fastai: a model without parameters raises StopIteration; PyTorch optimizers have no `set_hypers`; norms and
    biases decay regardless of wd_bn_bias"""
    class Sum(nn.Module):
        def forward(self, x): return x.sum(1, keepdim=True)
    learn = learner(model=Sum())
    assert learn.validate()==[0.] and learn.get_preds()[0].shape==(8,1)
    for opt in (torch.optim.AdamW, torch.optim.Adagrad, partial(torch.optim.RMSprop, alpha=.9), torch.optim.LBFGS):
        learn = learner(opt_func=opt)
        if opt is not torch.optim.LBFGS: learn.fit(1)
        else: learn.create_opt(); assert learn.opt.hypers
    learn = learner(model=nn.Sequential(nn.Linear(4,1), nn.BatchNorm1d(1)), lr=.1)
    learn.create_opt(); learn.opt.split_no_decay(); learn.opt.set_hyper('wd', .5)
    for p in learn.model.parameters(): p.grad = torch.zeros_like(p)
    before = [p.detach().clone() for p in learn.model.parameters()]
    learn.opt.step()
    assert [torch.equal(a, b) for a,b in zip(before, learn.model.parameters())]==[False,True,True,True]

# F. state
def test_D30_a_fit_continues_where_it_stopped(tmp_path):
    "fastai: weights resume exactly at the end of an epoch if the optimizer state is saved"
    opt = partial(torch.optim.Adam, betas=(.8,.9))
    a,b = learner(opt_func=opt, path=tmp_path),learner(opt_func=opt, path=tmp_path, model=model(1))
    a.fit(2); a.save('m'); a.fit(2)
    b.load('m'); b.fit(4, start_epoch=2)
    assert torch.equal(weights(a), weights(b))

def test_D31_nothing_is_swallowed(tmp_path):
    "fastai: bare excepts hide optimizer states that do not match, failing metrics and out-of-memory errors"
    a = learner(path=tmp_path, opt_func=torch.optim.Adam); a.fit(1); a.save('m')
    b = learner(path=tmp_path, opt_func=SGD)
    before = weights(b)
    with pytest.raises(ValueError, match='optimizer'): b.load('m')
    assert torch.equal(before, weights(b))
    class M(AvgMetric):
        @property
        def value(self): raise MemoryError('full')
    with pytest.raises(MemoryError): learner(metrics=M(mae)).fit(1)
    class T(torch.Tensor):
        @classmethod
        def __torch_function__(cls, f, types, args=(), kw=None):
            if f is torch.cat: raise torch.OutOfMemoryError('full')
            return super().__torch_function__(f, types, args, kw or {})
    with pytest.raises(torch.OutOfMemoryError): to_concat([torch.ones(2).as_subclass(T)]*2)

def test_D32_a_failed_pickle_changes_nothing():
    "fastai: a failed `export` leaves the Learner without its optimizer and its data"
    learn = learner(loss_func=lambda p,t: F.mse_loss(p, t)); learn.fit(1)
    opt,dls = learn.opt,learn.dls
    with pytest.raises((pickle.PicklingError, AttributeError)): pickle.dumps(learn)
    assert learn.opt is opt and learn.dls is dls
    learn.fit(1)

def test_D33_rank_in_the_environment_of_one_process(tmp_path, monkeypatch):
    "fastai: with RANK in the environment of a single process, `save` returns a path and writes nothing"
    monkeypatch.setenv('RANK', '1'); monkeypatch.setenv('WORLD_SIZE', '2')
    learn = learner(path=tmp_path); learn.fit(1)
    assert learn.save('m').is_file()

# G. speed
def test_D36_pct_train_does_not_drift():
    "fastai: adds up 1/n a thousand times, so that schedules are evaluated beyond their end"
    got = []
    learn = learner(n=700, nv=0, bs=1, cbs=at('after_batch', lambda s: got.append(s.pct_train), order=-5))
    learn.fit(3)
    assert got==pytest.approx([(i+1)/2100 for i in range(2100)], abs=1e-15) and got[-1]==max(got)==1

class Reads(TorchDispatchMode):
    "Counts the operations that wait for the device"
    n = 0
    def __torch_dispatch__(self, func, types, args=(), kw=None):
        if func in (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.is_nonzero.default): self.n += 1
        return func(*args, **(kw or {}))

def test_D37_batches_do_not_wait():
    "fastai: reads the loss from the device in each training batch, and each metric in each validation batch"
    m = Reads()
    on,off = lambda s: m.__enter__(), lambda s: m.__exit__(None,None,None)
    cbs = [at('before_train', on, order=70), at('after_train', off, order=-70), at('before_validate', on, order=70), at('after_validate', off, order=-70)]
    learn = learner(n=100, nv=50, metrics=[mae, rmse], cbs=cbs)
    with learn.no_bar(): learn.fit(2)   # the bar reads the loss when it draws, a few times a second
    assert m.n==0

def calls_per_batch(learn, n):
    "Python calls for each of the `n` batches, in the steady state"
    counts = [0]
    marks = []
    def mark(s):
        if s.iter in (10, n-10): marks.append(counts[0])
    learn.add_cb(at('before_batch', mark))
    count_calls(lambda: learn.fit(1), counts)
    return (marks[1]-marks[0])/(n-20)

def test_D38_callbacks_without_batch_handlers_cost_nothing():
    "fastai: 1912 Python calls a batch, and 280 more for each callback without handlers of batches"
    class NoBatchHandlers(Callback):
        def before_fit(self): pass
        def after_epoch(self): pass
    base = calls_per_batch(learner(60, 0), 60)
    assert calls_per_batch(learner(60, 0, cbs=[NoBatchHandlers() for _ in range(50)]), 60)<=base+1
    assert base<200, base

def test_D39_cuda_is_not_hard_coded():
    "fastai: AMP and DDP use 'cuda' on any device"
    root = Path(learnkit.__file__).parent
    found = [(p.name, i) for p in root.rglob('*.py') for i,l in enumerate(p.read_text().splitlines()) if '.cuda(' in l or "autocast('cuda" in l]
    assert not found

def test_D40_deprecated_hooks():
    "fastai: `register_backward_hook`, whose gradients are wrong for modules of several operations"
    root = Path(learnkit.__file__).parent
    assert not [p for p in root.rglob('*.py') if 'register_backward_hook' in p.read_text()]
