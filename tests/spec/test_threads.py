"""One Learner in several threads; inference within runs, at every event and after errors; copies, pickles and freed
memory. Whatever may deadlock runs in a thread with a time limit."""
import copy, gc, inspect, pickle, re, threading, weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import learnkit.all as lk, pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
from learnkit.learner import learner as learner_module
from learnkit.loop import loop
from learnkit.loop.events import *
from learnkit.loop.callback import *
from learnkit.loop.dispatcher import *
from learnkit.learner.results import *
from learnkit.learner.learner import *
from learnkit.learner.predict import *
from learnkit.processes.shard import *
from learnkit.observe.files import CSVLogger
from learnkit.data.loaders import DataLoaders
from learnkit.learner.learner import Learner
from learnkit.data.nested import leaves
from learnkit.measure.losses import CrossEntropyLossFlat
from learnkit.measure.metrics import accuracy, mae
from test_trace import CALLBACKS
from toys import Reg, SGD, at, few, learner, model, slow, throw, weights

def limited(fs, seconds=30):
    "Call the functions at the same time, each in its own thread; return their results or raise the first exception"
    res,go = [None]*len(fs),threading.Barrier(len(fs))
    def run(i, f):
        go.wait()
        try: res[i] = 'done',f()
        except BaseException as e: res[i] = 'raised',e
    ts = [threading.Thread(target=run, args=o, daemon=True) for o in enumerate(fs)]
    for t in ts: t.start()
    for t in ts: t.join(seconds)
    assert None not in res, f'{res.count(None)} of {len(fs)} threads still wait after {seconds} s'
    for how,o in res:
        if how=='raised': raise o
    return [o for _,o in res]

def classes(**kw):
    "A Learner with shuffling loaders and dropout, so that mixed-up modes or orders change its results"
    g = torch.Generator().manual_seed(0)
    x = torch.randn(40, 4, generator=g)
    ds = TensorDataset(x, x[:,:3].argmax(1))
    net = lambda: nn.Sequential(nn.Linear(4,8), nn.BatchNorm1d(8), nn.Dropout(.5), nn.Linear(8,3))
    dls = DataLoaders(DataLoader(ds, batch_size=8, shuffle=True), DataLoader(ds, batch_size=8, shuffle=True))
    return Learner(dls, model(cls=net), CrossEntropyLossFlat(), SGD, lr=.1, metrics=accuracy, **kw)

def state(learn):
    "The state that inference must not change"
    rec = learn.recorder
    return dict(rows=[dict(r) for r in rec.history], losses=list(map(float, rec.losses)), lrs=list(rec.lrs), iters=list(rec.iters), logger=learn.logger,
                loss_func=learn.loss_func, reduction=getattr(learn.loss_func, 'reduction', None), cbs=list(learn.cbs), modes=[m.training for m in learn.model.modules()],
                **{k: getattr(learn, k, None) for k in 'mode epoch n_epoch iter n_iter train_iter pct_train dl batches xb yb pred loss loss_grad create_mbar exc stop_reason skip_loss'.split()},
                training=learn.training, weights=weights(learn).tolist(), grad=torch.is_grad_enabled(), names=sorted(vars(learn)))

# threads
def test_threads_on_one_learner():
    "Concurrent calls of validate, get_preds and predict give the results of a single thread"
    learn = classes(); learn.fit(1)
    other = [(torch.ones(3,4), torch.tensor([0,1,2]))]
    jobs = [learn.validate, learn.get_preds, partial(learn.get_preds, with_loss=True, with_decoded=True), partial(learn.get_preds, dl=other, with_input=True),
            partial(learn.validate, dl=other), partial(learn.get_preds, ds_idx=0), lambda: learn.predict(torch.ones(4)), partial(learn.get_preds, act=lambda o: o*2)]
    want,before = [f() for f in jobs],state(learn)
    def many(k): return [(i, jobs[i]()) for i in range(k, k+len(jobs)) for i in [i%len(jobs)]]
    for res in limited([partial(many, k) for k in range(8)]):
        for i,o in res: torch.testing.assert_close(list(o), list(want[i]))
    assert state(learn)=={**before, 'names':state(learn)['names']}

def test_threads_during_a_fit():
    "Inference in other threads waits for the fit, and does not change it"
    learn,alone = classes(),classes()
    started = threading.Event()
    learn.add_cb(at('after_batch', lambda s: started.set()))
    def after_start(f): started.wait(20); return f()
    torch.manual_seed(1); limited([lambda: alone.fit(2)])
    torch.manual_seed(1); res = limited([lambda: learn.fit(2), *[partial(after_start, learn.validate)]*2, *[partial(after_start, learn.get_preds)]*2])
    assert torch.equal(weights(learn), weights(alone)) and learn.train_iter==10 and len(learn.recorder.values)==2
    torch.testing.assert_close(list(res[1]), list(learn.validate())); torch.testing.assert_close(res[3][0], learn.get_preds()[0])

def test_two_fits_at_once():
    "They run one after the other"
    learn = classes()
    limited([lambda: learn.fit(1), lambda: learn.fit(1)])
    assert learn.mode is None and len(learn.recorder.values)==1

def test_errors_in_threads_free_the_lock():
    learn = classes()
    bad = [(torch.ones(3,5), torch.zeros(3).long())]
    def fails():
        with pytest.raises(RuntimeError): learn.get_preds(dl=bad)
        with pytest.raises(RuntimeError): learn.validate(dl=bad)
    limited([fails]*4+[learn.validate]*2)
    assert learn.mode is None
    limited([lambda: learn.fit(1)])

def test_no_grad_is_the_threads_own():
    "A fit in the main thread keeps its gradients while others predict with another Learner of the same model"
    m = model()
    a,b = learner(20, 2, model=m),learner(20, 20, model=m, loss_func=F.mse_loss)
    limited([lambda: a.fit(2), *[b.get_preds]*3])
    assert a.train_iter==40 and torch.is_grad_enabled()

# inside other runs
RUNS = dict(validate=lambda l: l.validate(), get_preds=lambda l: l.get_preds(with_loss=True), predict=lambda l: l.predict(torch.ones(4)),
            validate_train=lambda l: l.validate(0))
FIRED = inspect.getsource(loop)+inspect.getsource(learner_module)   # more may be registered by callbacks that fire them
EVENTS = [e for e in event if f"'{e}'" in FIRED and e not in ('after_create','after_joint_loss') and 'cancel' not in e]
CANCELLED = {f'after_cancel_{c.scope}': c for c in (CancelBatch, CancelBackward, CancelStep, CancelZeroGrad, CancelTrain, CancelValid, CancelEpoch, CancelFit)}

@few(1)
@pytest.mark.parametrize('run', RUNS)
def test_inside_a_fit_at_every_event(run):
    "The result is that of a fresh Learner with these weights, and the fit continues unchanged"
    plain = classes(); torch.manual_seed(1); plain.fit(2)
    for ev in [*EVENTS, *CANCELLED]:
        got = []
        def call(s):
            l = s.learn
            got.append(1); before = state(l)
            res,fresh = RUNS[run](l),classes()
            fresh.model.load_state_dict(l.model.state_dict())
            torch.testing.assert_close(list(res), list(RUNS[run](fresh)))
            after = state(l); assert after==before, {k: (before[k], after[k]) for k in before if before[k]!=after[k]}
        cbs = [at(ev, call, lambda s: not got, order=o) for o in ([55] if ev in CANCELLED else [-20,55])]
        if ev in CANCELLED: cbs.append(at(ev.replace('after_cancel_','before_'), throw(CANCELLED[ev]()), lambda s: s.epoch==0 and s.mode=='fit'))
        elif ev=='after_exception': cbs.append(at('after_fit', throw(ValueError('x')), order=99))
        learn = classes(cbs=cbs)
        torch.manual_seed(1)
        if ev=='after_exception': pytest.raises(ValueError, learn.fit, 2)
        else: learn.fit(2)
        assert got, ev
        if ev in CANCELLED: continue
        assert torch.equal(weights(learn), weights(plain)), ev
        assert [{k: v for k,v in r.items() if k!='time'} for r in learn.recorder.history]==[{k: v for k,v in r.items() if k!='time'} for r in plain.recorder.history], ev

@few(2)
@pytest.mark.parametrize('outer', ['validate', 'get_preds', 'predict'])
@pytest.mark.parametrize('run', RUNS)
def test_inside_inference(outer, run):
    for ev in ['before_fit','before_epoch','before_validate','before_batch','after_pred','after_loss','after_batch','after_validate','after_epoch','after_fit','cleanup']:
        got = []
        def call(s): got.append(None); got.append(RUNS[run](s.learn))
        learn = classes(); want,inner = RUNS[outer](learn),RUNS[run](learn)
        with learn.added_cbs(at(ev, call, lambda s: not got)): res = RUNS[outer](learn)
        torch.testing.assert_close(list(res), list(want)); torch.testing.assert_close(list(got[1]), list(inner))

def test_a_callbacks_thread():
    "A thread that a callback starts without waiting for it gets its turn"
    res = []
    learn = classes(cbs=at('after_epoch', lambda s: res.append(pool.submit(learn.validate)), lambda s: s.mode=='fit'))
    with ThreadPoolExecutor(2) as pool: limited([lambda: learn.fit(2)])
    assert len(res)==2 and all(len(o.result())==2 for o in res)

@few(8)
@pytest.mark.parametrize('run', RUNS)
@pytest.mark.parametrize('ev', ['before_fit','before_epoch','before_validate','before_batch','after_pred','after_loss','after_batch','after_validate','after_epoch','after_fit','cleanup'])
def test_after_an_error(run, ev):
    "State and results are as before after any error at any event"
    learn = classes(); learn.fit(1)
    want,before = RUNS[run](learn),state(learn)
    for e in (ValueError('x'), KeyboardInterrupt()):
        with learn.added_cbs(at(ev, throw(e), order=55)), pytest.raises(type(e)): RUNS[run](learn)
        assert state(learn)=={**before, 'names':state(learn)['names']}
        torch.testing.assert_close(list(limited([lambda: RUNS[run](learn)])[0]), list(want))
    learn.fit(1)

@pytest.mark.parametrize('ev', ['before_validate', 'after_pred', 'after_validate'])
def test_an_error_inside_an_inner_run(ev):
    "The calling callback catches the error, and the fit continues"
    def call(s):
        with s.learn.added_cbs(at(ev, throw(ValueError('x')), lambda s: s.mode=='predict')), pytest.raises(ValueError): s.learn.get_preds(with_loss=True)
    learn,plain = classes(cbs=at('after_loss', call, lambda s: s.training)),classes()
    for l in (learn, plain): torch.manual_seed(1); l.fit(1)
    assert torch.equal(weights(learn), weights(plain))

@pytest.mark.parametrize('exc', [CancelBatch, CancelValid, CancelFit, CancelEpoch])
@pytest.mark.parametrize('ev', ['before_batch', 'after_batch', 'before_validate'])
def test_cancelled_predictions(exc, ev):
    "They are the predictions made before the Cancel, as tensors, or None if there were none"
    if (exc,ev)==(CancelBatch,'before_validate'): return
    learn = classes(cbs=at(ev, throw(exc()), lambda s: ev=='before_validate' or s.iter==2, order=60))
    preds,targs,losses = learn.get_preds(with_loss=True)
    n = None if ev=='before_validate' else 40 if ev=='after_batch' and exc is CancelBatch else 32 if exc is CancelBatch else 24 if ev=='after_batch' else 16
    assert [o if o is None else len(o) for o in (preds,targs,losses)]==[n]*3 and (n is None or isinstance(preds, torch.Tensor))

def test_files_and_history(tmp_path):
    learn = classes(path=tmp_path, cbs=CSVLogger()); learn.fit(2); learn.save('m')
    def files(): return {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.rglob('*') if p.is_file()}
    before,was = files(),state(learn)
    limited([learn.validate, learn.get_preds, lambda: learn.validate(0), lambda: learn.predict(torch.ones(4))])
    assert files()==before and state(learn)=={**was, 'names':state(learn)['names']}

def test_inference_does_not_use_up_random_numbers():
    "Inference between two fits does not change the second one, even with shuffling loaders"
    a,b = classes(),classes()
    for l,look in ((a,False), (b,True)):
        torch.manual_seed(3); l.fit(1)
        if look: l.validate(); l.get_preds(); l.get_preds(ds_idx=0); l.summary()
        l.fit(1)
    assert torch.equal(weights(a), weights(b))

# copies, pickles, memory
class Counts(Callback):
    def __init__(self): self.n = 0
    def after_batch(self): self.n += 1

def rows(l): return [{k: v for k,v in r.items() if k!='time'} for r in l.recorder.history]

@pytest.mark.parametrize('dup', [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))], ids=['deepcopy','pickle'])
@pytest.mark.parametrize('fits', [0, 1])
def test_copies(dup, fits):
    "A copy continues training like the original, and the two are independent"
    a = learner(metrics=mae, cbs=Counts(), opt_func=partial(SGD, momentum=.9))
    if fits: a.fit(1)
    b = dup(a)
    assert all(cb.learn is b for cb in b.cbs) and b.counts is not a.counts and b.model is not a.model and b.recorder.learn is b
    if fits: assert b.opt.opt.param_groups[0]['params'][0] is b.model.weight and b.opt.hypers[0]['lr']==a.opt.hypers[0]['lr'] and rows(a)==rows(b)
    start = weights(a)
    b.fit(2); assert torch.equal(start, weights(a)) and a.counts.n==fits*5
    a.fit(2); assert torch.equal(weights(a), weights(b)) and rows(a)==rows(b) and b.counts.n==a.counts.n
    assert list(a.validate())==list(b.validate())
    limited([a.validate, b.validate, a.get_preds, b.get_preds])

results = dict(suggestions=lambda o: o.lr_find(num_it=12, show_plot=False), history=lambda o: o.recorder.history, row=lambda o: o.recorder.history[-1], values=lambda o: o.validate(),
    sets=lambda o: o.validate_all(), predictions=lambda o: o.get_preds(), prediction=lambda o: o.predict(torch.ones(4)), summary=lambda o: o.summary(), curve=lambda o: lk.LRCurve([.1]*30, [1.]*30),
    interpretation=lk.Interpretation.from_learner, top_losses=lambda o: lk.Interpretation.from_learner(o).top_losses(2), profile=lambda o: o.profile(), hparams=lambda o: o.hparams(),
    predictor=lk.Predictor, state=lambda o: o.state, hypers=lambda o: o.opt.hypers, run=lambda o: o._run_state(1), duration=lambda o: lk.Time('3ep'), cancel=lambda o: lk.CancelFit('enough'))

@pytest.mark.parametrize('name', results)
def test_what_calls_return_can_be_copied_and_pickled(name):
    "The suggestions of `lr_find` used to be of a class that could not be imported"
    learn = learner(n=4, metrics=mae)
    with learn.no_bar(), learn.no_logging():
        learn.fit(1)
        res = results[name](learn)
    for got in (copy.deepcopy(res), pickle.loads(pickle.dumps(res))):
        assert type(got).__name__==type(res).__name__ and content(got)==content(res)

def content(o):
    "The repr of an object, and its tensors as bytes"
    return re.sub(r' at 0x\w+', '', repr(o)),[v.numpy(force=True).tobytes() for v in leaves(vars(o) if hasattr(o, '__dict__') else o) if isinstance(v, torch.Tensor)]

def test_a_copy_within_a_fit():
    "A copy made in a callback, e.g. to keep the best model, is not in a run, even though the original is"
    kept = []
    a = learner(cbs=at('after_epoch', lambda s: kept.append(copy.deepcopy(s.learn.model)), order=60)); a.fit(2)
    assert len(kept)==2 and not torch.equal(kept[0].weight, kept[1].weight)
    b = learner(); b.add_cb(at('after_epoch', lambda s: kept.append(copy.deepcopy(s.learn)), lambda s: s.epoch==0, order=60)); b.fit(2)
    b.validate(); limited([kept[-1].validate])

@pytest.mark.parametrize('runs', [*slow([], ['fit']), ['fit','validate','get_preds'], ['error'], *slow(['with'])], ids=str)
def test_learner_and_model_are_freed(runs, tmp_path):
    m = Reg()
    learn = learner(model=m, metrics=mae, path=tmp_path, cbs=[CSVLogger(), Counts(), FetchPredsCallback()])
    for r in runs:
        if r=='fit': learn.fit(1); learn.save('m'); learn.load('m')
        elif r=='with':
            with learn: pass
        elif r=='error':
            with pytest.raises(ValueError), learn.added_cbs(at('after_pred', throw(ValueError('x')))): learn.fit(1)
        else: getattr(learn, r)()
    refs = [weakref.ref(o) for o in (learn, m, m.weight, learn.recorder, learn.dls)]
    del learn,m
    gc.collect()
    assert [r() for r in refs]==[None]*5

@pytest.mark.slow
def test_nothing_grows():
    "No tensors, callbacks, hooks or attributes of the Learner accumulate over repeated runs"
    learn = learner(metrics=mae)
    def count():
        gc.collect()
        return sum(issubclass(type(o), torch.Tensor) for o in gc.get_objects()),len(learn.cbs),len(learn.model._forward_hooks),len(vars(learn))
    def go():
        learn.fit(1); learn.validate(); learn.get_preds(with_loss=True)
        with pytest.raises(ValueError): learn.fit(1, cbs=at('after_pred', throw(ValueError('x'))))
        limited([learn.validate]*2)
    for _ in range(2): go()
    before = count()
    for _ in range(5): go()
    assert count()==before

def test_batches_are_freed_at_once():
    "The inputs of one batch are freed, without garbage collection, when the next one is loaded"
    refs = []
    class Fresh:
        def __len__(self): return 6
        def __iter__(self):
            for i in range(6):
                x = torch.randn(4,4); refs.append(weakref.ref(x)); yield x,x.sum(1,keepdim=True); del x
    alive = []
    gc.disable()
    try:
        learn = learner(dls=DataLoaders(Fresh(), Fresh()), cbs=at('before_batch', lambda s: alive.append(sum(r() is not None for r in refs))))
        learn.fit(2); learn.validate()
        assert max(alive)<=2 and sum(r() is not None for r in refs)==0
    finally: gc.enable()

MORE = dict(virtual=lambda: [lk.VirtualShards(2)], pausable=lambda: [lk.Pausable()], system=lambda: [lk.SystemMetrics(), lk.MemoryMonitor()], steps=lambda: [lk.StepsPerEpoch(3)],
            paths=lambda: [lk.CheckShortCuts()])

@pytest.mark.parametrize('cb', ['checkpoint','indices','torch_schedule',*MORE,*slow(*(k for k in CALLBACKS if k not in ('checkpoint','indices','torch_schedule')))])
def test_a_copy_within_a_fit_with_callbacks(cb, tmp_path, monkeypatch):
    "Iterators, hooks and locks that callbacks hold during a fit are not copied, and the copy can fit"
    monkeypatch.chdir(tmp_path)
    kept = []
    keep = at('after_batch', lambda s: kept.append(copy.deepcopy(s.learn)), lambda s: s.training and s.iter==1)
    loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randn(16, 1)), 4, shuffle=True)
    learn = learner(dls=DataLoaders(loader, loader), cbs=[*(CALLBACKS|MORE)[cb](), keep], path=tmp_path)
    with learn.no_logging(): learn.fit(1)
    copied = kept[0]
    copied.remove_cbs([lk.CheckpointCallback, copied.cbs[-1]])   # its folder has the checkpoints of the original fit
    with copied.no_logging(): copied.fit(1)
    copy.deepcopy(learn)   # also works after a fit
