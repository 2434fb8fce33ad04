"A `Predictor` gives what `predict` gives, from any thread, after any error, and leaves the Learner as it was"
import gc, json, random, signal, subprocess, sys, threading, warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from learnkit.all import (Callback, CancelBatch, CancelFit, CrossEntropyLossFlat, DataLoaders, EMACallback, Learner, MCDropoutCallback, MixedPrecision,
                          MSELossFlat, Predictor, event, load_learner)
from learnkit.loop.run import runs_elsewhere
from toys import at, throw

g = torch.Generator().manual_seed(0)
x = torch.randn(24, 4, generator=g)

def net(n_in=4, n_out=3):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(n_in, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(.5), nn.Linear(8, n_out))

def classes(loss=None, vocab=None, **kw):
    data = [(x[i:i+8], x[i:i+8,:3].argmax(1)) for i in (0,8,16)]
    return Learner(DataLoaders(data, data, vocab=vocab), net(), loss or CrossEntropyLossFlat(), lr=.1, **kw)

class Pair(nn.Module):
    "Two inputs, by position or by name; what it returns is one tensor, or several"
    def __init__(self, form=None): super().__init__(); self.net,self.form = net(),form
    def forward(self, a, b):
        o = self.net(a) + b
        return {None:o, 'tuple':(o, 2*o), 'dict':dict(o=o, twice=[2*o])}[self.form]

def pairs(form=None, named=False, loss=None):
    a,b = x,x[:,:3]
    y = b if form is None else torch.zeros(24)
    data = [dict(a=a, b=b, target=y)] if named else [(a, b, y)]
    return Learner(DataLoaders(data, n_inp=2), Pair(form), loss or MSELossFlat())

class Reads(list):
    "Data that makes batches of paths and decodes predictions, as fastai's does"
    def test_dl(self, items, **kw): return [(torch.stack([x[int(o)] for o in items]),)]
    def decode_batch(self, b): return [(f'item {a.sum():.3f}',f'class {int(t)}') for a,t in zip(*b)]

def reads():
    learn = classes()
    learn.dls.test_dl,learn.dls.decode_batch = Reads().test_dl,Reads().decode_batch
    return learn

def lengths(items): return nn.utils.rnn.pad_sequence(items, batch_first=True),torch.tensor([len(o) for o in items])
class Mean(nn.Module):
    def __init__(self): super().__init__(); self.w = nn.Parameter(torch.ones(2))
    def forward(self, x, n): return self.w*x.sum(1, keepdim=True)/n[:,None]
def padded():
    def collate(b): return lengths(b) if torch.is_tensor(b[0]) else (*lengths([o[0] for o in b]),torch.stack([o[1] for o in b]))
    return Learner(DataLoaders(DataLoader([(torch.ones(n), torch.ones(2)) for n in (2,3)], 2, collate_fn=collate)), Mean(), nn.MSELoss())

class Answer(dict):
    loss = property(lambda self: self.get('loss')); logits = property(lambda self: self['logits'])
class Own(nn.Module):
    "Computes its loss itself"
    def __init__(self): super().__init__(); self.net = net()
    def forward(self, a, labels=None): o = self.net(a); return dict(logits=o, **({} if labels is None else dict(loss=F.cross_entropy(o, labels))))

KINDS = dict(
    plain=(classes, x), vocab=(lambda: classes(vocab=['low','mid','high']), x), torchs_loss=(lambda: classes(nn.CrossEntropyLoss()), x), no_loss=(lambda: classes(F.cross_entropy), x),
    two=(pairs, [*zip(x, x[:,:3])]), named=(lambda: pairs(named=True), [dict(a=o, b=o[:3]) for o in x]), tuples=(lambda: pairs('tuple', loss=F.mse_loss), [*zip(x, x[:,:3])]),
    dicts=(lambda: pairs('dict', loss=lambda p,y: p['o'].mean()), [*zip(x, x[:,:3])]), reads=(reads, [str(i) for i in range(24)]), padded=(padded, [torch.arange(n+1.) for n in range(4)]),
    own=(lambda: Learner(DataLoaders([dict(a=x, labels=x[:,:3].argmax(1))]), Own()), [dict(a=o) for o in x]),
    bf16=(lambda: classes().to_bf16(), x), ema=(lambda: classes(cbs=EMACallback(at_end=False)), x), identity=(lambda: Learner(DataLoaders([(x, x)]), nn.Identity(), nn.MSELoss()), x))

def same(a, b):
    if isinstance(a, dict): assert a.keys()==b.keys(); a,b = [*a.values()],[*b.values()]
    if isinstance(a, (tuple,list)):
        assert type(a) is type(b) and len(a)==len(b)
        for o,p in zip(a, b): same(o, p)
    elif torch.is_tensor(a): torch.testing.assert_close(a, b, rtol=0, atol=0)
    else: assert a==b

@pytest.mark.parametrize('kind', KINDS)
def test_the_answers_of_predict(kind):
    make,items = KINDS[kind]
    learn = make()
    with Predictor(learn) as predict:
        for o in items:
            for with_input in (False, True): same(predict(o, with_input), learn.predict(o, with_input))   # this one within its run
    for o in items: same(predict(o), predict.close() or learn.predict(o))

def test_parts_of_an_output():
    "`predict` took the first output of a tuple for the only item, and of a dict none"
    learn,item = pairs('tuple', loss=F.mse_loss),(x[0], x[0,:3])
    assert [o.shape for o in learn.predict(item)[2]]==[(3,)]*2
    learn = pairs('dict', loss=lambda p,y: p['o'].mean())
    pred = learn.predict(item)[2]
    assert pred['o'].shape==(3,) and torch.equal(pred['twice'][0], 2*pred['o'])

def test_answers_are_the_callers_own():
    "A model may overwrite what it returned"
    class Buffer(nn.Module):
        def __init__(self): super().__init__(); self.register_buffer('out', torch.zeros(1,4))
        def forward(self, a): self.out.copy_(a); return self.out
    predict = Predictor(Learner(DataLoaders([(x[:1], x[:1])]), Buffer(), nn.MSELoss()))
    got = [predict(o)[2] for o in x]
    assert torch.equal(torch.stack(got), x) and not got[0].requires_grad

# what it leaves, and what callbacks hear

def seen(learn):
    "What inference must not touch"
    return dict(modes=[m.training for m in learn.model.modules()], cbs=[*learn.cbs], rows=learn.recorder.values[:], lock=learn._lock.acquire(blocking=False) and learn._lock.release(),
                weights=[o.clone().tolist() for o in learn.model.state_dict().values()],
                **{k:getattr(learn, k, None) for k in 'mode epoch n_epoch iter n_iter train_iter pct_train batches xb yb pred loss loss_grad loss_func logger create_mbar skip_loss exc stop_reason training'.split()})

def fitted(**kw):
    learn = classes(**kw)
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    return learn

@pytest.mark.parametrize('end', ['close', 'with', 'forget', 'error', 'thread'])
def test_no_trace(end):
    learn = fitted()
    learn.model[3].eval()   # one module unlike the others
    before = seen(learn)
    predict = Predictor(learn)
    torch.manual_seed(3); rng = torch.get_rng_state()
    predict(x[0])
    assert learn.mode=='predict' and not learn.model.training
    if end=='close': predict.close(); predict.close()
    elif end=='with':
        with predict: pass
    elif end=='error': pytest.raises(RuntimeError, predict, torch.ones(3))
    elif end=='thread': t = threading.Thread(target=predict.close); t.start(); t.join()
    del predict
    assert seen(learn)==before and torch.equal(torch.get_rng_state(), rng)
    with learn.no_bar(), learn.no_logging(): learn.fit(1)

class Hears(Callback):
    order = 50
    def __init__(self): self.names = []
    def __call__(self, name): self.names.append(name)

def test_events():
    "Those of `predict`, with the ones of a batch for each item; there is no loader to fetch from"
    one,many = Hears(),Hears()
    learn = classes()
    with learn.added_cbs(one): learn.predict(x[0])
    with Predictor(learn, cbs=many) as predict:
        for o in x[:3]: predict(o)
    names = [n for n in one.names if n not in ('before_fetch','after_exhaust')]
    i,j = names.index('after_fetch'),names.index('after_batch')+1
    assert many.names==[*names[:i], *names[i:j]*3, *names[j:]]

def test_it_counts():
    iters = []
    with Predictor(classes(), cbs=at('after_batch', lambda cb: iters.append(cb.learn.iter))) as predict:
        for o in x[:3]: predict(o)
    assert iters==[0,1,2]

def test_random_draws_continue():
    "With dropout left on, each answer is another"
    with Predictor(classes(), cbs=MCDropoutCallback) as predict: got = [predict(x[0])[2] for _ in range(6)]
    assert len({tuple(o.tolist()) for o in got})>1

# errors

def test_the_item_after_an_error_is_right():
    log = Hears()
    learn = classes(cbs=log)
    want = [learn.predict(o) for o in x]
    predict = Predictor(learn)
    bad = [torch.ones(5), 'text', object(), x[:2], [1,2], torch.full((4,), float('nan')), {}]
    for i,o in enumerate(x):
        try: predict(bad[i%len(bad)])
        except Exception: pass
        same(predict(o), want[i])
    predict.close()
    assert learn.mode is None
    fits,cleanups = log.names.count('before_fit'),log.names.count('cleanup')
    assert fits==cleanups and log.names.count('after_exception')>0

@pytest.mark.parametrize('e', [ValueError('x'), KeyboardInterrupt(), CancelFit()], ids=lambda e: type(e).__name__)
@pytest.mark.parametrize('ev', ['before_predict', 'before_validate', 'before_batch', 'after_pred', 'after_batch', 'after_exception'])
def test_a_callback_that_fails(ev, e):
    learn = classes(); want = learn.predict(x[0])
    failing = []
    predict,cb = Predictor(learn),at(ev, throw(e), lambda cb: failing)
    learn.add_cb(cb)
    if ev in ('before_batch','after_pred','after_batch','after_exception'): predict(x[0])
    failing.append(1)
    with pytest.raises((type(e), RuntimeError)): predict(x[0] if ev!='after_exception' else torch.ones(5))
    assert learn.mode is None
    failing.clear()
    same(predict(x[0]), want)

def test_a_cancelled_item_has_no_answer():
    "And not that of the item before"
    on = []
    learn = classes(cbs=at('after_pred', throw(CancelBatch()), lambda cb: on))
    with Predictor(learn) as predict:
        want = predict(x[0])
        on.append(1)
        for f in (predict, learn.predict):
            with pytest.raises(RuntimeError, match='a callback cancelled the batch of this sample'): f(x[1])
        on.clear()
        same(predict(x[0]), want)

def test_collating_does_not_end_the_run():
    predict = Predictor(classes()); predict(x[0])
    run = predict.run
    pytest.raises(TypeError, predict, object())
    predict(x[0])
    assert predict.run is run
    predict.close()

@pytest.mark.slow
def test_interrupted_anywhere():
    "By a signal at any instruction: another thread gets its answer, and all is put back"
    learn = classes(); predict = Predictor(learn)
    cbs,want,hits,rnd = [o.name for o in learn.cbs],predict(x[0]),0,random.Random(0)
    def interrupt(*args): raise KeyboardInterrupt
    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        for i in range(500):
            try:
                signal.setitimer(signal.ITIMER_REAL, rnd.uniform(1e-5, 3e-4))
                for _ in range(50): predict(x[0])
            except KeyboardInterrupt: hits += 1
            with ThreadPoolExecutor(1) as pool: same(pool.submit(predict, x[0]).result(20), want)
            assert torch.is_grad_enabled()
            if i%7==0: predict.close(); assert learn.mode is None
    finally: signal.setitimer(signal.ITIMER_REAL, 0); signal.signal(signal.SIGALRM, old)
    predict.close()
    assert hits>400 and learn.mode is None and [o.name for o in learn.cbs]==cbs

# a Learner that changes

def test_another_model():
    learn = classes()
    with Predictor(learn) as predict:
        predict(x[0])
        learn.model.train()   # by hand, in between
        same(predict(x[0]), learn.predict(x[0]))
        torch.manual_seed(1); learn.model = nn.Sequential(nn.Dropout(.5), nn.Linear(4,3))
        same(predict(x[0]), learn.predict(x[0])); assert not learn.model.training

def test_another_loss_function():
    "Assigned while the run is open, it counts from the next sample on, and stays; a callback's own does not"
    learn = classes()
    first,other = learn.loss_func,nn.BCEWithLogitsLoss()
    with Predictor(learn, cbs=Callback(before_batch=lambda self: setattr(self.learn, 'loss_func', nn.MSELoss()))) as predict: predict(x[0])
    assert learn.loss_func is first
    with Predictor(learn) as predict:
        predict(x[0])
        learn.loss_func = other
        same(predict(x[0]), learn.predict(x[0]))
        assert learn.loss_func is other
        learn.loss_func = first
    assert learn.loss_func is first

def test_callbacks_that_come_later():
    "They begin a run of their own, as they may set something up in it"
    learn = classes()
    with Predictor(learn) as predict:
        plain = predict(x[0])
        learn.to_bf16(); half = predict(x[0]); same(half, learn.predict(x[0]))
        learn.to_fp32(); same(predict(x[0]), plain)
        run = predict.run
        learn.validate(); learn.predict(x[0]); predict(x[0])   # those inside of the run leave it as it was
        assert predict.run is run
    assert not torch.equal(half[2], plain[2]) and learn.mode is None

def test_loaded_weights_count():
    learn,other = classes(),classes()
    with torch.no_grad(): other.model[-1].bias[0] += 1
    with Predictor(learn) as predict:
        a = predict(x[0])
        learn.model.load_state_dict(other.model.state_dict())
        b = predict(x[0])
    same(b, other.predict(x[0])); assert not torch.equal(a[2], b[2])

def test_within_a_run_it_raises():
    said = []
    def ask(cb):
        with pytest.raises(RuntimeError, match='but a `fit` is running already, epoch 0, batch 0: call `learn.predict`'): Predictor(cb.learn)(x[0])
        said.append(cb.learn.predict(x[0]))
    learn = classes(cbs=at('after_pred', ask, lambda cb: not said and cb.learn.mode=='fit'))
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    assert said

def test_one_at_a_time():
    learn = classes()
    with Predictor(learn) as a:
        a(x[0])
        with pytest.raises(RuntimeError, match='but a `predict` is running already'): Predictor(learn)(x[0])
        with pytest.raises(RuntimeError, match=r'`close\(\)` an open `Predictor`'): learn.fit(1)
        same(a(x[0]), learn.predict(x[0]))
    Predictor(learn)(x[0])

def test_what_it_takes():
    with pytest.raises(TypeError, match='created from a Learner'): Predictor(net())
    with pytest.raises(TypeError): Predictor(classes(), cbs=3)(x[0])

@pytest.mark.parametrize('name', ['export.pth', 'export.safetensors'])
def test_an_export_of_the_first_version(name):
    folder = Path(__file__).resolve().parents[2]/'faults/golden/0.1.0'
    want = json.loads((folder/'expected.json').read_text())
    learn = load_learner(folder/name, nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)))
    with Predictor(learn) as predict: got = [predict(o)[2] for o in torch.tensor(want['x'])]
    torch.testing.assert_close(torch.stack(got), torch.tensor(want['pred']))

@pytest.mark.slow
def test_a_compiled_model():
    learn = classes()
    want = [learn.predict(o) for o in x]
    learn.model = torch.compile(learn.model)
    with Predictor(learn) as predict: torch.testing.assert_close([predict(o) for o in x], want)

# threads

def test_threads_beside_each_other():
    "Items, failing items, whole data sets: each result is what one thread alone gets"
    learn = fitted(metrics=lambda p,y: (p.argmax(1)==y).float().mean())
    want,before = [learn.predict(o) for o in x],seen(learn)
    valid,preds = learn.validate(),learn.get_preds()
    predict = Predictor(learn)
    def job(i):
        k = i%len(x)
        if i%7==0: pytest.raises(RuntimeError, predict, torch.ones(5))
        elif i%11==0: same([*learn.validate()], [*valid])
        elif i%13==0: same(learn.get_preds(), preds)
        elif i%17==0: same(learn.predict(x[k]), want[k])
        elif i%29==0: predict.close()
        else: same(predict(x[k]), want[k])
    with warnings.catch_warnings(), ThreadPoolExecutor(8) as pool:
        warnings.simplefilter('ignore')   # random numbers are not put back when other threads have run
        for o in [pool.submit(job, i) for i in range(400)]: o.result(60)
    predict.close()
    assert seen(learn)==before

def test_a_thread_beside_a_fit():
    "It waits for the end, and the fit is what it would have been"
    got,begun = [],threading.Event()
    plain = classes()
    with plain.no_bar(), plain.no_logging(): plain.fit(2)
    learn = classes(cbs=at('after_batch', lambda cb: begun.set()))
    predict = Predictor(learn)
    def ask(): begun.wait(20); got.append(predict(x[0])); predict.close()
    t = threading.Thread(target=ask); t.start()
    torch.manual_seed(0)
    with learn.no_bar(), learn.no_logging(): torch.manual_seed(0); learn.fit(2)
    t.join(20)
    same(got[0], learn.predict(x[0]))

def test_autocast_is_every_threads():
    "It is a state of each thread: a request that runs in another one is in 16 bits too"
    learn = classes(cbs=MixedPrecision('bf16'))
    want,dtypes = learn.predict(x[0]),[]
    learn.model[0].register_forward_hook(lambda m,i,o: dtypes.append(o.dtype))
    with Predictor(learn) as predict, ThreadPoolExecutor(3) as pool:
        for got in pool.map(predict, [x[0]]*12): same(got, want)
        for o in pool.map(lambda _: (torch.is_autocast_enabled('cpu'),torch.is_grad_enabled()), range(3)): assert o==(False,True)
    assert {*dtypes}=={torch.bfloat16}

def test_two_learners_of_one_model():
    learn = classes()
    others = [Predictor(Learner(learn.dls, learn.model, learn.loss_func)) for _ in range(3)]
    want = [learn.predict(o) for o in x]
    with ThreadPoolExecutor(3) as pool:
        for got in pool.map(lambda p: [p(o) for o in x], others): same(got, want)
    for p in others: p.close()

# in the end

CODE = """
import torch
from learnkit.all import *
learn = Learner(([(torch.ones(2,3), torch.ones(2,1))],), nn.Linear(3,1), nn.MSELoss(), cbs=Callback(cleanup=lambda self: print('cleanup')))
predict = Predictor(learn)
predict(torch.ones(3))
print('end')
"""
@pytest.mark.slow
def test_the_end_of_the_program_ends_the_run():
    res = subprocess.run([sys.executable, '-c', CODE], capture_output=True, text=True)
    assert res.stdout.split()==['end','cleanup'] and not res.stderr and not res.returncode, res

@pytest.mark.slow
def test_nothing_grows():
    learn = classes()
    with Predictor(learn) as predict:
        def count():
            for o in x: predict(o)
            gc.collect()
            return sum(issubclass(type(o), torch.Tensor) for o in gc.get_objects()),len(learn.cbs),len(vars(learn))
        count()
        assert count()==count()

def test_a_forgotten_learner_is_freed():
    import weakref
    learn = classes(); predict = Predictor(learn); predict(x[0])
    ref = weakref.ref(learn)
    del learn,predict
    gc.collect()
    assert ref() is None

# what others notice

def test_no_bar_is_drawn(capsys):
    learn = classes(); learn.progress.kind,learn.progress.every = 'lines',0.
    learn.predict(x[0])
    with Predictor(learn) as predict: predict(x[0])
    assert capsys.readouterr().out=='' and learn.progress in learn.cbs

def test_answers_come_to_the_cpu(monkeypatch):
    "Where there is an accelerator they are fetched"
    fetched = []
    monkeypatch.setattr('learnkit.learner.learner.default_device', lambda: torch.device('meta'))
    monkeypatch.setattr('learnkit.learner.predictor.to_cpu', lambda o: fetched.append(o) or o)
    learn = classes()
    learn.dls.to('cpu')   # where the model is to stay
    with Predictor(learn) as predict: got = predict(x[0])
    assert len(fetched)==1 and torch.equal(fetched[0][0][0], got[2])

def test_an_error_leaves_autograd_as_it_was():
    predict = Predictor(classes()); predict(x[0])   # begun where autograd is on
    with torch.no_grad(): pytest.raises(RuntimeError, predict, torch.ones(5)); assert not torch.is_grad_enabled()

def test_other_threads_know_when_it_works():
    "As long as it is idle, another Learner's random numbers are put back"
    other,before = classes(),runs_elsewhere()[0]
    with Predictor(classes()) as predict, ThreadPoolExecutor(1) as pool:
        pool.submit(predict, x[0]).result()
        assert runs_elsewhere()[0]==before+2   # its run began there, and an item was predicted
        with warnings.catch_warnings(): warnings.simplefilter('error'); other.validate()
