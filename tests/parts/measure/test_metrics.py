"Metrics of ragged batches equal reference results on all data at once; nothing waits for the device; copies; mistakes"
import inspect, math, pickle
from copy import deepcopy
from functools import partial
from types import SimpleNamespace
import numpy as np, pytest, sklearn.metrics as skm, torch, torch.nn.functional as F, torchmetrics as tm
from hypothesis import given, strategies as st
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from learnkit.data.process import to_detach
from learnkit.measure.losses import CrossEntropyLossFlat
from learnkit.measure.metric import *
from learnkit.measure.scalars import ScalarBuffer
from learnkit.measure.recorder import *
from learnkit.measure.accum import *
from learnkit.measure.metrics import *
from learnkit.measure.accum import *
from learnkit.measure.adapters import *
from toys import draws

few   = draws(20)
close = partial(torch.testing.assert_close, check_dtype=False)

def batch(pred, *yb, loss=None, **kw):
    "The attributes of the Learner that a metric reads"
    return SimpleNamespace(pred=pred, yb=yb, xb=(pred,), loss=loss, to_detach=to_detach, **kw)

def run(metric, preds, targs, sizes, loss_func=None):
    "The value of `metric` over batches of the given `sizes`"
    metric.reset()
    for p,t in zip(preds.split(sizes), targs.split(sizes)):
        metric.accumulate(batch(p, t, loss=loss_func(p, t) if loss_func else None, loss_func=loss_func))
    return metric.value

def number(v): return torch.as_tensor(v, dtype=torch.float64)

@st.composite
def data(draw, kind='classes', min_items=1):
    "Predictions, targets, and sizes of ragged batches"
    sizes = draw(st.lists(st.integers(1,7), min_size=1, max_size=6))
    n,seed = draw(st.integers(2,6)),draw(st.integers(0,2**20))
    if sum(sizes)<min_items: sizes.append(min_items)
    g = torch.Generator().manual_seed(seed)
    N = sum(sizes)
    if kind=='classes': return torch.randn(N, n, generator=g),torch.randint(0, n, (N,), generator=g),sizes
    if kind=='labels':  return torch.randn(N, n, generator=g),torch.randint(0, 2, (N,n), generator=g),sizes
    return torch.rand(N, n, generator=g),torch.rand(N, n, generator=g),sizes

def own(p, t): return (p-t).mean()

# plain metrics

def best(f, **kw):
    "scikit-learn's `f` on the best classes"
    return lambda p,t: f(t, p.argmax(1), **kw)
def brute_top_k(p, t, k): return np.mean([y in np.argsort(-row)[:k] for row,y in zip(p.numpy(), t.tolist())])
macro = dict(average='macro', zero_division=0)
for_classes = dict(
    accuracy   = (accuracy,                     best(skm.accuracy_score)),
    error_rate = (error_rate,                   best(skm.zero_one_loss)),
    top_2      = (partial(top_k_accuracy, k=2), lambda p,t: brute_top_k(p, t, 2)),
    direct     = (skm.accuracy_score,           best(skm.accuracy_score)),
    f1_direct  = (partial(skm.f1_score, **macro), best(skm.f1_score, **macro)),
    f1         = (F1Score(average='micro'),     best(skm.f1_score, average='micro')),
    precision  = (Precision(**macro),           best(skm.precision_score, **macro)),
    recall     = (Recall(**macro),              best(skm.recall_score, **macro)),
    torchm     = (lambda n: tm.Accuracy('multiclass', num_classes=n), lambda p,t: (p.argmax(1)==t).double().mean()),
    torchm_f1  = (lambda n: tm.F1Score('multiclass', num_classes=n, average='macro'),
                  lambda p,t: tm.functional.f1_score(p, t, 'multiclass', num_classes=p.shape[1], average='macro')))

@pytest.mark.parametrize('kind', for_classes)
@few
@given(b=data())
def test_class_metrics(kind, b):
    metric,want = for_classes[kind]
    if kind.startswith('torchm'): metric = metric(b[0].shape[1])
    close(number(run(mk_metric(metric), *b)), number(want(*b[:2])), rtol=1e-6, atol=1e-6)

for_numbers = dict(
    mse  = (mse,  lambda p,t: skm.mean_squared_error(t, p)),
    mae  = (mae,  lambda p,t: skm.mean_absolute_error(t, p)),
    msle = (msle, lambda p,t: skm.mean_squared_log_error(t, p)),
    rmse = (rmse, lambda p,t: skm.mean_squared_error(t, p)**.5),
    exp_rmspe = (exp_rmspe, lambda p,t: (((t.exp()-p.exp())/t.exp())**2).mean()**.5),
    r2   = (skm.r2_score, lambda p,t: skm.r2_score(t, p)),
    maxi = (AccumMetric(lambda p,t: (p-t).abs().max()), lambda p,t: (p-t).abs().max()),
    l1   = (nn.L1Loss, lambda p,t: (p-t).abs().mean()),
    tm   = (tm.MeanSquaredError, lambda p,t: ((p-t)**2).mean()),
    tm_r = (partial(tm.MeanSquaredError, squared=False), lambda p,t: ((p-t)**2).mean()**.5))

@pytest.mark.parametrize('kind', for_numbers)
@few
@given(b=data('numbers', min_items=2))
def test_number_metrics(kind, b):
    metric,want = for_numbers[kind]
    if kind=='tm_r': metric = metric()
    preds,targs,sizes = b
    close(number(run(mk_metric(metric), *b)), number(want(preds.double(), targs.double())), rtol=1e-5, atol=1e-6)

hamming = partial(skm_to_learnkit, skm.hamming_loss, flatten=False)
for_labels = dict(
    accuracy_multi = (accuracy_multi,                  lambda p,t: ((p.sigmoid()>.5)==t.bool()).double().mean()),
    raw  = (partial(accuracy_multi, thresh=.2, sigmoid=False), lambda p,t: ((p>.2)==t.bool()).double().mean()),
    f1   = (F1ScoreMulti(zero_division=0),             lambda p,t: skm.f1_score(t, p.sigmoid()>=.5, **macro)),
    half = (hamming(thresh=.5),                        lambda p,t: skm.hamming_loss(t, p.sigmoid()>=.5)),
    zero = (hamming(thresh=0, activation='no'),        lambda p,t: skm.hamming_loss(t, p>=0)))

@pytest.mark.parametrize('kind', for_labels)
@few
@given(b=data('labels'))
def test_label_metrics(kind, b):
    metric,want = for_labels[kind]
    close(number(run(mk_metric(metric), *b)), number(want(*b[:2])), rtol=1e-6, atol=1e-6)

@few
@given(sizes=st.lists(st.integers(1,7), min_size=1, max_size=5), seed=st.integers(0,2**20))
def test_roc_auc(sizes, seed):
    g = torch.Generator().manual_seed(seed)
    sizes = sizes+[6]
    N = sum(sizes)
    p,t = torch.randn(N, 3, generator=g),torch.arange(N)%3
    close(number(run(RocAuc(), p, t, sizes)), number(skm.roc_auc_score(t, p.softmax(1), multi_class='ovr')))
    p,t = p[:,:2],torch.arange(N)%2
    close(number(run(RocAucBinary(), p, t, sizes)), number(skm.roc_auc_score(t, p.softmax(1)[:,1])))
    half = torch.randn(N, 3, generator=g).bfloat16() # 16 bit probabilities would not sum to 1
    assert 0<=run(RocAuc(), half, torch.arange(N)%3, sizes)<=1

@pytest.mark.parametrize('shape,axis', [((6,3), -1), ((6,3,4), 1), ((6,4,3), -1), ((6,3,2,2), 1)])
def test_class_axis(shape, axis):
    p = torch.randn(shape)
    t = torch.randint(0, 3, p.argmax(axis).shape)
    rows = p.movedim(axis, -1).reshape(-1, 3)
    close(accuracy(p, t, axis=axis), accuracy(rows, t.flatten()))
    close(top_k_accuracy(p, t, k=2, axis=axis), number(brute_top_k(rows, t.flatten(), 2)))
    close(number(run(skm_to_learnkit(skm.accuracy_score, axis=axis), p, t, [4,2])), accuracy(rows, t.flatten()))
    assert top_k_accuracy(p, t.unsqueeze(axis), k=2, axis=axis)==top_k_accuracy(p, t, k=2, axis=axis) # no broadcasting

def test_epoch_metrics_are_exact_for_sentences():
    "Batches have as many numbers as their sentences have words, so items weigh differently"
    met = mk_metric(rmse)
    parts = [(torch.randn(4,n),torch.randn(4,n)) for n in (3,9,1)]
    for p,t in parts: met.accumulate(batch(p, t))
    p,t = [torch.cat([o[i].flatten() for o in parts]) for i in (0,1)]
    close(number(met.value), number(((p-t)**2).mean().sqrt()), rtol=1e-6, atol=0)

def test_perplexity():
    p,t = torch.randn(11,5),torch.randint(0, 5, (11,))
    want = number(F.cross_entropy(p, t).exp())
    for m in (perplexity, Perplexity, Perplexity()):
        close(number(run(mk_metric(m), p, t, [4,4,3], F.cross_entropy)), want, rtol=1e-5, atol=0)
    met = Perplexity()
    met.accumulate(batch(p, t, loss=torch.tensor(1e4)))
    assert met.value==math.inf

def test_nothing_is_shared():
    "The same metric given to two Learners makes two objects"
    for m in (rmse, exp_rmspe, perplexity, accuracy, skm.f1_score):
        a,b = mk_metric(m),mk_metric(m)
        assert a is not b and type(a)==type(b)

# averages

@few
@given(b=data('numbers'), dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]))
def test_avg_metric_is_the_mean_over_items(b, dtype):
    preds,targs,sizes = b
    def f(p, t): return ((p-t)**2).mean().to(dtype)
    want = sum(f(p, t).double()*len(p) for p,t in zip(preds.split(sizes), targs.split(sizes)))/len(preds)
    close(number(run(AvgMetric(f), *b)), want, rtol=1e-12, atol=0)

@pytest.mark.parametrize('f,want', [
    (lambda p,t: 2, 2), (lambda p,t: np.float32(.5), .5), (lambda p,t: torch.tensor([3.]), 3),
    (lambda p,t: torch.tensor(4), 4), (lambda p,t: torch.tensor(True), 1), (lambda p,t: math.nan, math.nan),
    (lambda p,t: p.sum()*0+1, 1)])
def test_what_a_function_may_return(f, want):
    p = torch.randn(5, requires_grad=True)
    met = AvgMetric(f)
    assert met.value is None
    run(met, p, p.detach(), [3,2])
    assert met.value==want or (math.isnan(want) and math.isnan(met.value))
    assert type(met.value)==float
    met.reset()
    assert met.value is None

def test_no_graph_is_kept_until_it_is_read():
    p,met = torch.randn(5, requires_grad=True),AvgMetric(None)
    for v,n in (p.mean(), 5), (p[:2].sum(), torch.tensor(2)): met.add(v, n)
    assert len(met.pending)==2 and not any(v.requires_grad for v,_ in met.pending)
    assert met.total==pytest.approx(5*p.mean().item() + 2*p[:2].sum().item()) and met.count==7 and met.pending==[]

@pytest.mark.parametrize('n', [1023, 1024, 2500])
def test_many_numbers_are_packed_now_and_then(n):
    "Also where some weights are tensors and some are not"
    met,weights = AvgMetric(None),[i if i%3 else torch.tensor(i) for i in range(n)]
    for i,w in enumerate(weights): met.add(torch.tensor(float(i%7)), w)
    assert len(met.pending)==n%1024
    assert met.total==sum(i*(i%7) for i in range(n)) and met.count==sum(range(n)) and met.pending==[] and type(met.count)==int

def test_weights_are_added_in_double_precision():
    met = AvgMetric(None)
    for w in (.1, 1e-9, torch.tensor(2**24+1)): met.add(torch.tensor(1.), w)
    assert met.count==.1+1e-9+2**24+1==met.total

def test_functions_run_without_gradients():
    assert run(AvgMetric(lambda p,t: torch.is_grad_enabled()), torch.ones(2), torch.ones(2), [2])==0

def test_reading_early_changes_nothing():
    p,t,sizes = torch.randn(60,3),torch.randint(0, 3, (60,)),[7]*8+[4]
    late,early = mk_metric(accuracy),mk_metric(accuracy)
    for m in (late,early): m.reset()
    for b in zip(p.split(sizes), t.split(sizes)): late.accumulate(batch(*b)); early.accumulate(batch(*b)); early.value
    assert late.value==early.value

def test_several_targets_and_none():
    two = AvgMetric(lambda p,a,b: (p-a-b).abs().mean())
    two.accumulate(batch(torch.tensor([3.,3.]), torch.ones(2), torch.ones(2)))
    assert two.value==1
    none = AvgMetric(lambda p: p.mean())
    none.accumulate(batch(torch.tensor([1.,2.]))); none.accumulate(batch(torch.tensor([6.])))
    assert none.value==3
    loss = AvgLoss()
    loss.accumulate(batch(torch.zeros(2), loss=torch.tensor(1.)))
    loss.accumulate(batch(torch.zeros(1), loss=torch.tensor([4.,4.])))
    assert loss.value==2.5   # of one loss, and two

def test_empty_batch_counts_nothing():
    met = mk_metric(mse)
    for n in (3,0): met.accumulate(batch(torch.ones(n), torch.zeros(n)))
    assert met.value==1

def test_subclass_in_fastais_manner():
    class Bias(AvgMetric):
        def __init__(self): super().__init__(None)
        def accumulate(self, learn):
            self.total += (learn.pred-learn.yb[0]).sum()
            self.count += len(learn.yb[0])
    met = Bias()
    assert run(met, torch.arange(5.), torch.zeros(5), [2,3])==2 and met.name=='bias'

def test_loss_metric():
    class Parts:
        def __call__(self, p, t): self.a,self.b = F.l1_loss(p, t),2.; return self.a
    p,t = torch.randn(5),torch.randn(5)
    close(number(run(LossMetric('a'), p, t, [3,2], Parts())), number(F.l1_loss(p, t)), rtol=1e-6, atol=0)
    assert run(LossMetric('b'), p, t, [3,2], Parts())==2
    assert LossMetric('b').name=='b' and LossMetric('b', 'part').name=='part'
    with pytest.raises(AttributeError, match='nope'): run(LossMetric('nope'), p, t, [3,2], Parts())

def test_value_metric():
    met = ValueMetric(lambda: 3, 'three')
    assert run(met, torch.ones(2), torch.ones(2), [2])==3 and met.name=='three' and ValueMetric(math.sqrt).name=='sqrt'

# the smoothed loss

def smooth(losses, beta=.98):
    met = AvgSmoothLoss(beta)
    for l in losses: met.accumulate(batch(None, loss=l))
    return met

@few
@given(n=st.sampled_from([0,1,5,1023,1024,1025,2100]), beta=st.sampled_from([0., .5, .98]),
       reads=st.sets(st.integers(0,2100), max_size=4))
def test_smooth_loss(n, beta, reads):
    losses,avg = torch.rand(n),torch.zeros((), dtype=torch.float64)
    met = AvgSmoothLoss(beta)
    for i,l in enumerate(losses):
        met.accumulate(batch(None, loss=l))
        if i in reads: met.value
    assert met.raw==losses.tolist()
    want = []
    for i,l in enumerate(losses.double(), 1): # debiased, as defined
        avg = torch.lerp(l, avg, beta)
        want.append(avg.item()/(1-beta**i))
    close(number(met.values), number(want), rtol=1e-9, atol=1e-12)
    assert met.count==n and met.value==(met.values[-1] if n else None)
    met.reset()
    assert met.value is None and met.values==[] and met.raw==[]

@pytest.mark.parametrize('beta', [-.1, 1, 2])
def test_smooth_loss_beta(beta):
    with pytest.raises(ValueError, match='`beta`'): AvgSmoothLoss(beta)

def test_smooth_loss_of_anything():
    w = torch.ones(2, requires_grad=True)
    met = smooth([torch.tensor([1.,3.]), w.sum(), torch.tensor(2.).double(), torch.tensor(2.).bfloat16()])
    assert met.raw==[2.,2.,2.,2.] and math.isclose(met.value, 2)
    assert not any(o.requires_grad for o in smooth([w.sum()]).unread.pending)
    assert math.isnan(smooth([torch.tensor(math.nan), torch.tensor(1.)]).value)

class Ops(TorchDispatchMode):
    "Records the operations of torch"
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))
    def __enter__(self): self.seen = []; return super().__enter__()

def test_smooth_loss_costs_nothing_in_the_loop():
    met,b = AvgSmoothLoss(),batch(None, loss=torch.tensor(1.))
    with Ops() as ops:
        for _ in range(1000): met.accumulate(b)
    assert ops.seen==[]
    on_meta = batch(None, loss=torch.zeros((), device='meta')) # a device that nothing can be read from
    met.reset()
    with Ops() as ops:
        for _ in range(1024): met.accumulate(on_meta)
    assert len(met.unread.packed)==1 and met.unread.pending==[] and {o for o in ops.seen if 'stack' in o or 'cat' in o}

def test_scalars_of_several_devices():
    "Rare, but it must work"
    s = ScalarBuffer(every=4)
    for i in range(3): s.append(torch.tensor(float(i)))
    for i in range(2): s.append(torch.zeros((), device='meta'))
    assert [type(o) for o in s.packed]==[list,torch.Tensor] and s.packed[0]==[0.,1.,2.]

# waiting

p3,c3 = torch.randn(4,3, device='meta'),torch.zeros(4, dtype=torch.long, device='meta')
@pytest.mark.parametrize('m,t', [(m, c3) for m in (
    accuracy, error_rate, partial(top_k_accuracy, k=2), AccumMetric(own, activation='softmax', flatten=False),
    AccumMetric(own, dim_argmax=-1, to_np=True), F1Score(), RocAucBinary(), skm.f1_score)] + [(m, p3) for m in (
    mse, mae, msle, rmse, exp_rmspe, accuracy_multi, F1ScoreMulti, AccumMetric(own), AvgLoss, perplexity,
    AvgSmoothLoss)])
def test_accumulate_does_not_wait(m, t):
    "A tensor on `meta` has no values: reading one, or taking it to the CPU, fails"
    p,met = p3,mk_metric(m)
    for _ in range(3): met.accumulate(batch(p, t, loss=torch.zeros((), device='meta')))
    with pytest.raises(Exception, match='[Mm]eta'): met.value

def test_accumulated_predictions_are_copies():
    "A model or loader that reuses its memory must not change what was accumulated"
    met,p,t = AccumMetric(lambda p,t: (p-t).tolist()),torch.zeros(2),torch.zeros(2)
    for i in range(3): p.fill_(i); met.accumulate(batch(p, t)); t.fill_(-i)
    assert met.value==[0,0,1,1,3,3]

def test_accumulated_predictions_go_to_the_cpu_in_time():
    met = AccumMetric(lambda p,t: len(p))
    met.max_device_bytes = 100
    met.accumulate(batch(torch.zeros(10), torch.zeros(10))); assert len(met.on_device)==1
    met.accumulate(batch(torch.zeros(10), torch.zeros(10))); assert len(met.on_device)==0 and len(met.preds)==2
    assert met.value==20

# whole-epoch metrics

@pytest.mark.parametrize('kw,want', [
    (dict(), lambda p: p), (dict(dim_argmax=0), lambda p: p.argmax(0)), (dict(dim_argmax=1), lambda p: p.argmax(1)),
    (dict(thresh=0), lambda p: p>=0), (dict(thresh=.5, activation='sigmoid'), lambda p: p.sigmoid()>=.5),
    (dict(activation='softmax'), lambda p: p.softmax(-1)),
    (dict(activation='sigmoid', dim_argmax=1), lambda p: p.sigmoid()),
    (dict(activation='softmax', dim_argmax=0), lambda p: p.softmax(0)),
    (dict(activation='binarysoftmax'), lambda p: p.softmax(-1)[:,-1])])
def test_what_accum_metric_does_to_predictions(kw, want):
    p = torch.randn(3,3)
    seen = AccumMetric(lambda p,t: p, flatten=False, **kw)
    assert torch.equal(run(seen, p, torch.zeros(3), [3]), want(p))

def test_accum_metric_arguments():
    p,t = torch.randn(6,2),torch.randn(6,2)
    def f(a, b, k=1): return type(a).__name__,tuple(a.shape),float(a.flatten()[0]),k
    assert run(AccumMetric(f, k=2), p, t, [4,2])==('Tensor',(12,),p[0,0].item(),2)
    assert run(AccumMetric(f, flatten=False), p, t, [4,2])==('Tensor',(6,2),p[0,0].item(),1)
    assert run(AccumMetric(f, to_np=True, invert_arg=True), p, t, [4,2])==('ndarray',(12,),t[0,0].item(),1)
    assert AccumMetric(f, to_np=True)(p.bfloat16(), t)[0]=='ndarray'
    assert AccumMetric(f, name='g').name=='g' and AccumMetric(partial(f, k=3)).name=='f'
    assert AccumMetric(f).value is None

def test_calling_leaves_what_was_accumulated():
    p,t = torch.randn(6),torch.randn(6)
    met = AccumMetric(lambda p,t: (p-t).abs().max())
    before = run(met, p, t, [4,2])
    met(p*9, t)
    assert met.value==before
    y = torch.tensor([0,1,1,0])
    assert F1Score()(torch.tensor([0,1,0,0]), y)==skm.f1_score(y, [0,1,0,0])

# everything of scikit-learn

@pytest.mark.parametrize('name', [n for n in skm.__all__ if inspect.isfunction(getattr(skm, n))])
def test_scikit_learn_directly(name):
    "Each function gives its result on all data at once, or is refused with an error that says what to write"
    f = getattr(skm, name)
    try: met = mk_metric(f)
    except TypeError as e:
        assert f'`skm_to_learnkit({name}, activation=' in str(e) and f'`skm_to_learnkit({name})`' in str(e)
        assert '_regression' not in f.__module__
        return
    module = f.__module__
    if 'regression' in module: p,t,same = torch.rand(20,2)+.1,torch.rand(20,2)+.1,lambda p: p
    else:                      p,t,same = torch.randn(20,2),torch.arange(20)%2,lambda p: p.argmax(1)
    if name=='max_error' or 'deviance' in name or 'tweedie' in name: p,t = p[:,0],t[:,0]
    if name=='fbeta_score': f = partial(f, beta=2); met = mk_metric(f)
    np.testing.assert_equal(run(met, p, t, [9,9,2]), f(t.numpy(), same(p).numpy()))

def test_scores_raise():
    for f in (skm.roc_auc_score, skm.average_precision_score, skm.log_loss, skm.brier_score_loss, skm.hinge_loss):
        with pytest.raises(TypeError, match='classes or probabilities'): mk_metric(f)
    with pytest.raises(TypeError, match='roc_auc_score'): mk_metric(partial(skm.roc_auc_score, average='macro'))

@pytest.mark.parametrize('make', [F1ScoreMulti, partial(FBetaMulti, 2), PrecisionMulti, RecallMulti, JaccardMulti, HammingLossMulti])
def test_metrics_of_labels_need_a_threshold(make):
    "scikit-learn raised at the end of the first validation: `can't handle a mix of multilabel-indicator and continuous-multioutput`"
    with pytest.raises(ValueError, match='needs a threshold.*`thresh=.5`'): make(thresh=None)
    with pytest.raises(ValueError, match='needs a threshold'): make(thresh=None, sigmoid=False)

@pytest.mark.parametrize('make', [APScoreMulti, RocAucMulti])
def test_metrics_of_probabilities_need_no_threshold(make):
    p,t = torch.randn(20, 3),torch.arange(60).view(20, 3)%2
    assert run(make(), p, t, [9,9,2])==run(make(thresh=None), p, t, [9,9,2])==run(make(sigmoid=False), p.sigmoid(), t, [9,9,2])

def test_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(__import__('sys').modules, 'sklearn', None)
    with pytest.raises(ImportError, match="needs scikit-learn: pip install '?scikit-learn.*extra `sklearn`"): F1Score()

# other libraries, other metrics

def test_torchmetrics_in_detail():
    p,t = torch.randn(11,4, requires_grad=True),torch.randint(0, 4, (11,))
    met = mk_metric(tm.classification.MulticlassAUROC(4)) # keeps predictions
    assert met.value is None and met.name=='multiclass_auroc'
    close(run(met, p, t, [4,4,3]), tm.functional.auroc(p.detach(), t, 'multiclass', num_classes=4))
    assert not any(o.requires_grad for o in met.metric.preds)
    met.reset()
    assert met.value is None
    yes = TorchMetric(tm.classification.BinaryAccuracy(), name='yes', activation=torch.sigmoid)
    q,y = torch.randn(11),torch.randint(0, 2, (11,))
    close(run(yes, q, y, [4,4,3]), ((q>0)==y.bool()).float().mean())
    assert yes.name=='yes'

def test_torchmetrics_follow_the_predictions():
    class Count(tm.Metric):
        def __init__(self): super().__init__(); self.add_state('n', torch.tensor(0))
        def update(self, p, t): self.n = self.n + len(p)
        def compute(self): return self.n
    met = mk_metric(Count)
    met.accumulate(batch(torch.zeros(3), torch.zeros(3)))
    assert met.value==3
    met.reset(); met.accumulate(batch(torch.zeros(3, device='meta'), torch.zeros(3, device='meta')))
    assert met.metric.n.device.type=='meta'

def test_any_object_with_the_protocol():
    class Eval: # torcheval's way, without a device
        def reset(self): self.n = 0
        def update(self, p, t): self.n += len(p)
        def compute(self): return self.n
    met = mk_metric(Eval)
    assert run(met, torch.ones(5), torch.ones(5), [3,2])==5 and met.name=='eval'

class Foreign:
    "fastai's protocol, from somewhere else; `value` before any batch is an error there"
    name = 'foreign'
    def reset(self): self.n = 0
    def accumulate(self, learn): self.n += 1
    @property
    def value(self): return 1/self.n

class Callable:
    def __call__(self, p, t): return own(p, t)

@pytest.mark.parametrize('m,kind,name', [
    (own, AvgMetric, 'own'), (partial(own), AvgMetric, 'own'), (partial(partial(own)), AvgMetric, 'own'),
    (Callable, AvgMetric, 'callable'), (Callable(), AvgMetric, 'callable'), (lambda p,t: 0, AvgMetric, '<lambda>'),
    (nn.L1Loss(), AvgMetric, 'l1_loss'), (nn.MSELoss, AvgMetric, 'mse_loss'), (F.l1_loss, AvgMetric, 'l1_loss'),
    (rmse, MeanMetric, 'rmse'), (exp_rmspe, MeanMetric, 'exp_rmspe'), (Perplexity, Perplexity, 'perplexity'),
    (AvgLoss, AvgLoss, 'loss'), (AvgSmoothLoss, AvgSmoothLoss, 'avg_smooth_loss'),
    (Foreign, Foreign, 'foreign'), (Foreign(), Foreign, 'foreign'),
    (F1Score, AccumMetric, 'f1_score'), (F1Score(), AccumMetric, 'f1_score'),
    (RocAucBinary, AccumMetric, 'roc_auc_score'),
    (skm.f1_score, AccumMetric, 'f1_score'), (partial(skm.f1_score, average='macro'), AccumMetric, 'f1_score'),
    (tm.MeanAbsoluteError(), TorchMetric, 'mean_absolute_error'),
    (tm.MeanAbsoluteError, TorchMetric, 'mean_absolute_error'), (AvgMetric(own, name='mine'), AvgMetric, 'mine')])
def test_mk_metric(m, kind, name):
    met = mk_metric(m)
    assert type(met)==kind and met.name==name
    if isinstance(m, Metric): assert (met is m) is not hasattr(m, 'as_metric')

@pytest.mark.parametrize('make', [
    Precision, Recall, F1Score, F1ScoreMulti, RocAuc, RocAucBinary, Jaccard, partial(FBeta, 2.), partial(FBetaMulti, 2.),
    RocAucMulti, R2Score, PearsonCorrCoef, partial(skm_to_learnkit, skm.f1_score)])
def test_metrics_of_scikit_learn_and_scipy_take_a_name(make):
    assert make(name='mine').name=='mine'!=make().name

@pytest.mark.parametrize('m', ['accuracy', 3, None, {}, torch.tensor(1.)])
def test_not_a_metric(m):
    with pytest.raises(TypeError, match='function of predictions and targets'): mk_metric(m)

def test_a_metric_class_that_needs_arguments():
    with pytest.raises(TypeError, match=r"class Accuracy, which cannot be called without arguments .*'task'.* pass an instance"):
        mk_metric(tm.Accuracy)

def test_collections_raise():
    with pytest.raises(TypeError, match='pass the collection as'): mk_metric(tm.MetricCollection([tm.MeanAbsoluteError()]))

# mistakes

def noted(metric, *args, exc=Exception, **kw):
    with pytest.raises(exc) as e: metric.accumulate(batch(*args, **kw))
    return str(e.value),' '.join(getattr(e.value, '__notes__', []))

@pytest.mark.filterwarnings('ignore:Using a target size')
@pytest.mark.parametrize('m', [
    accuracy, error_rate, partial(top_k_accuracy, k=2), mse, mae, msle, rmse, exp_rmspe, accuracy_multi, F1Score(),
    AccumMetric(own), skm.f1_score, nn.L1Loss(), partial(own), tm.MeanSquaredError()])
def test_wrong_shapes_name_the_metric_and_the_shapes(m):
    met = mk_metric(m)
    _,note = noted(met, torch.randn(8,3), torch.zeros(8,2,5))
    assert f'`{met.name}`' in note and 'float32[8, 3]' in note and 'float32[8, 2, 5]' in note

def test_other_mistakes():
    p,y = torch.randn(8,3),torch.zeros(8).long()
    assert '`.mean()` is missing' in noted(AvgMetric(lambda p,t: p.argmax(1)==t), p, y, exc=ValueError)[0]
    assert 'one output along axis -1' in noted(mk_metric(accuracy), p[:,:1], y, exc=ValueError)[0]
    assert 'one output along axis -1' in noted(mk_metric(skm.f1_score), p[:,:1], y, exc=ValueError)[0]
    assert '[1]' in noted(mk_metric(partial(top_k_accuracy, k=2)), p, y[:1], exc=ValueError)[0] # would broadcast
    assert 'from 1 to 3' in noted(mk_metric(top_k_accuracy), p, y, exc=ValueError)[0]
    assert 'one target' in noted(F1Score(), p, y, y, exc=TypeError)[0]
    assert 'tensor of predictions' in noted(F1Score(), (p,p), y, exc=TypeError)[0]
    assert '`own`' in noted(AvgMetric(own), p, exc=TypeError)[1]
    assert '(float32[8, 3], float32[8, 3])' in noted(AvgMetric(own), (p,p), y, exc=TypeError)[1]
    with pytest.raises(ValueError, match="one of"): AccumMetric(own, activation='relu')
    with pytest.raises(NotImplementedError, match='`Metric` must define `accumulate'): Metric().accumulate(None)
    with pytest.raises(NotImplementedError, match='`value`'): Metric().value

def test_error_at_the_end_names_the_metric():
    met = F1Score() # for two classes, unless told otherwise
    with pytest.raises(ValueError) as e: run(met, torch.randn(8,3), torch.arange(8)%3, [8])
    assert '`f1_score`' in e.value.__notes__[0] and 'int64[8]' in e.value.__notes__[0]

# copies

every = dict(accuracy=accuracy, rmse=rmse, loss=AvgLoss, perplexity=perplexity, smooth=AvgSmoothLoss,
             f1=F1Score(average='macro'), accum=AccumMetric(lambda p,t: p.float().sum(), dim_argmax=-1),
             tm=tm.classification.MulticlassAccuracy(3), mean=MeanMetric(lambda p,t: p))

@pytest.mark.parametrize('kind', every)
def test_copies_share_nothing(kind):
    "A validation inside of a fit works on copies"
    met = mk_metric(every[kind])
    def args(n): return (torch.randn(n), torch.randn(n)) if kind=='rmse' else (torch.randn(n,3), torch.arange(n)%3)
    def go(m, p, t): m.reset(); m.accumulate(batch(p.requires_grad_(), t, loss=p.sum())); return m
    a,b,c = args(9),args(9),args(9)
    value = number(go(met, *a).value)
    twin = deepcopy(met)
    assert number(twin.value)==value and twin.name==met.name
    go(twin, *b)
    assert number(met.value)==value
    fresh = deepcopy(go(met, *c)) # with batches that were not read yet
    assert number(fresh.value)==number(met.value)

@pytest.mark.parametrize('m', [accuracy, rmse, exp_rmspe, Perplexity, AvgSmoothLoss, partial(top_k_accuracy, k=2)])
def test_pickle(m):
    met = mk_metric(m)
    assert pickle.loads(pickle.dumps(met)).name==met.name

# several processes

def worker(rank, path, out):
    import torch.distributed as dist
    dist.init_process_group('gloo', init_method=f'file://{path}', rank=rank, world_size=2)
    p,t = torch.arange(20.).reshape(10,2),torch.zeros(10).long()
    t[::3] = 1
    mine = slice(0, 7) if rank==0 else slice(7, 10)      # unequal shares, and batches
    sizes = [4,3] if rank==0 else [3]
    res = [run(mk_metric(rmse), p[mine], p[mine]*0, sizes), run(mk_metric(accuracy), p[mine], t[mine], sizes)]
    res.append(run(AccumMetric(lambda p,t: (p==t).float().mean(), dim_argmax=-1), p[mine][:3], t[mine][:3], [3]).item())
    res.append(run(AccumMetric(lambda p,t: (p==t).float().mean(), dim_argmax=-1), p[mine], t[mine], sizes).item())   # batches that the other has not
    out.put((rank, res))
    dist.destroy_process_group()

def test_processes_add_up(tmp_path):
    ctx = torch.multiprocessing.get_context('fork') # no second import of torch, which takes most of the time
    out = ctx.Queue()
    ps = [ctx.Process(target=worker, args=(r, tmp_path/'store', out), daemon=True) for r in range(2)]
    for p in ps: p.start()
    got = dict(out.get(timeout=120) for _ in ps)
    for p in ps: p.join()
    p,t = torch.arange(20.).reshape(10,2),torch.zeros(10).long()
    t[::3] = 1
    parts = torch.cat([t[:3], t[7:]])
    want = [(p**2).mean().sqrt(), (t==1).float().mean(), (parts==1).float().mean(), (t==1).float().mean()]
    for rank in (0,1): close(number(got[rank]), number(want), rtol=1e-6, atol=0)

def test_the_sums_of_an_average_are_there_before_its_value():
    "fastai's `total` and `count` stayed 0 until `value` was read"
    met = AvgMetric(lambda p,t: (p-t).mean())
    met.accumulate(batch(torch.full((4,), 2.), torch.zeros(4)))
    assert (met.total, met.count)==(8, 4)
    met.count += 4
    assert met.value==1

def test_a_target_that_is_a_tensor_and_no_tuple():
    "As in fastai's own tests of `AvgLoss`: `bool` of a tensor was asked for"
    loss = AvgLoss()
    for y in (torch.zeros(3), torch.ones(1)):
        b = batch(y, loss=y.mean())
        b.yb = y
        loss.accumulate(b)
    assert loss.value==.25

def test_a_target_of_minus_100_may_be_a_number():
    "An integer target of -100 was taken for PyTorch's `ignore_index` and dropped, where the metric compares numbers"
    from learnkit.measure.metrics import R2Score, SpearmanCorrCoef
    from scipy.stats import spearmanr
    y = torch.tensor([-300,-100,50,0,7,-100,90,12])
    pred = y + torch.tensor([5,300,-40,9,1,-60,3,2])
    for met,f in ((R2Score(), skm.r2_score), (SpearmanCorrCoef(), lambda t,p: spearmanr(p, t)[0])):
        met.reset()
        met.accumulate(SimpleNamespace(pred=pred, yb=(y,), xb=(pred,), to_detach=to_detach, loss_func=F.mse_loss))
        assert met.value==pytest.approx(f(y, pred))

@pytest.mark.parametrize('make,said', [
    (lambda: Precision(task='multiclass', num_classes=3), 'torchmetrics.Precision'), (lambda: Recall(threshold=.5), 'torchmetrics'), (lambda: F1Score(averge='macro'), 'did you mean `average`'),
    (lambda: CohenKappa(weight='linear'), 'did you mean `weights`'), (lambda: AccumMetric(own, a=1), '`own` takes no argument `a`'), (lambda: skm_to_learnkit(skm.f1_score, averge='macro'), 'averge'),
    (lambda: PearsonCorrCoef(axiss=0), '`pearsonr` takes no argument `axiss`')])
def test_a_keyword_that_no_function_takes_raises_when_the_metric_is_made(make, said):
    with pytest.raises(TypeError, match=said): make()

@pytest.mark.parametrize('f', [mse, mae, rmse, msle, exp_rmspe])
@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_the_mean_of_16_bit_batches_is_that_of_the_whole(f, dtype):
    "Rounded to 16 bits, the mean of each batch is off by up to .3 %, and squares of half precision overflow at 256"
    g = torch.Generator().manual_seed(1)
    p,t = (torch.rand(61, generator=g).to(dtype) for _ in range(2))
    close(run(mk_metric(f), p, t, [7, 13, 41]), f(p.double(), t.double()).item(), rtol=1e-5, atol=0)
    assert mse(p*0+300, t*0).item()==90000

# values that change after the batch, targets of few bits, one output

class Scale(nn.Module):
    "A loss with a parameter, which the optimizer changes in place"
    def __init__(self): super().__init__(); self.scale = nn.Parameter(torch.tensor(1.))
    def forward(self, p, t): return self.scale*F.mse_loss(p, t)

@pytest.mark.parametrize('how', ['attribute', 'function', 'columns', 'log', 'log_value'])
def test_a_value_counts_as_it_is_in_its_batch(how):
    "A parameter or buffer in a column was read at the end of the epoch, so that each batch had the last value"
    from learnkit.all import Callback, DataLoaders, Learner, Logged, log_value
    loss,seen = Scale(),[]
    def read(p, t): return loss.scale
    def read_two(p, t): return dict(a=loss.scale, b=0.)
    class Log(Callback):
        def after_batch(self):
            if how=='log': self.log('s', loss.scale)
            if how=='log_value': log_value('s', loss.scale)
            seen.append(loss.scale.item())
    metrics = dict(attribute=[LossMetric('scale')], function=[read], columns=columns(read_two, ['a','b'])).get(how, [Logged('s')])
    x = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
    learn = Learner(DataLoaders([(x, x[:,:2])]*5), nn.Linear(3, 2), loss, lr=.1, opt_func=torch.optim.SGD,
                    metrics=metrics, cbs=[Recorder(train_metrics=True), Log()])
    learn.fit(1)
    value = [v for k,v in learn.recorder.row.items() if k.split('_')[-1] in ('scale','read','a','s')][0]
    assert value==pytest.approx(sum(seen)/5) and len({*seen})==5

@pytest.mark.parametrize('dtype', [torch.uint8, torch.int16, torch.int64])
def test_classes_of_any_integer_type_count_and_have_their_weight(dtype):
    "8 bits took class 156 for -100, and were a mask instead of the indices of class weights"
    n,g = 200,torch.Generator().manual_seed(0)
    p,t = torch.randn(12, n, generator=g),torch.tensor([156,1,2,156,7,7,3,199,0,5,156,1])
    p[0,156] = p[1,1] = 99.
    for met in (accuracy, DiceMulti(), F1Score(average='macro')):
        assert run(mk_metric(met), p, t.to(dtype), [5,7], CrossEntropyLossFlat())==run(mk_metric(met), p, t, [5,7], CrossEntropyLossFlat())
    loss = CrossEntropyLossFlat(weight=torch.arange(1., n+1))
    assert run(AvgLoss(), p, t.to(dtype), [5,7], loss)==pytest.approx(loss(p, t).item())

@pytest.mark.parametrize('metric', [RocAucBinary, APScoreBinary, RocAuc])
def test_a_softmax_of_one_output_raises(metric):
    "The probability was always 1, so the area under the curve was 0.5"
    p,t = torch.randn(6, 1),torch.tensor([0,1,1,0,1,0])
    with pytest.raises(ValueError, match='softmax is always 1.*activation='): run(metric(), p, t, 6)
    close(number(run(RocAucMulti(), p, t[:,None], [3,3])), number(skm.roc_auc_score(t, p)))

@pytest.mark.parametrize('make,f', [(R2Score, skm.r2_score), (ExplainedVariance, skm.explained_variance_score)])
def test_scores_of_several_outputs_are_scikit_learns(make, f):
    "The outputs were joined into one, unlike in `metrics=r2_score`"
    g = torch.Generator().manual_seed(0)
    p,t = torch.randn(9, 2, generator=g),torch.randn(9, 2, generator=g)*torch.tensor([1.,9.])
    assert run(make(), p, t, [4,5])==pytest.approx(f(t, p)) and run(mk_metric(f), p, t, [4,5])==pytest.approx(f(t, p))
    assert run(make(), p[:,:1], t[:,0], [4,5])==pytest.approx(f(t[:,0], p[:,0]))
    assert run(make(flatten=True), p, t, [4,5])==pytest.approx(f(t.flatten(), p.flatten()))

def test_perplexity_of_a_summed_loss_is_that_of_the_mean():
    p,t = torch.randn(9, 4),torch.randint(4, (9,))
    t[3] = -100
    assert run(Perplexity(), p, t, [4,5], nn.CrossEntropyLoss(reduction='sum'))==pytest.approx(F.cross_entropy(p, t).exp().item())

@pytest.mark.parametrize('metric', [rmse, exp_rmspe, perplexity, PearsonCorrCoef(), SpearmanCorrCoef(nan_policy='omit')], ids=str)
def test_metrics_can_be_pickled(metric):
    p,t = torch.rand(9),torch.rand(9)
    again = pickle.loads(pickle.dumps(metric))
    assert run(mk_metric(again), p, t, [4,5], F.mse_loss)==run(mk_metric(metric), p, t, [4,5], F.mse_loss)

def test_a_column_without_the_first_raises():
    "Only the first column of a metric accumulates, so the others would be empty"
    def two(p, t): return dict(a=1., b=2.)
    with pytest.raises(ValueError, match='`two_b` is passed without'): mk_metrics(columns(two, ['a','b'])[1:])
    assert len(mk_metrics(columns(two, ['a','b'])))==2

class Plain:
    "A metric with torcheval's methods"
    def __init__(self): self.reset()
    def reset(self): self.n = torch.tensor(0.)
    def update(self, p, t): self.n += len(p)
    def compute(self): return self.n
    def state_dict(self): return dict(n=self.n)
    def load_state_dict(self, state): self.n = state['n'].clone()

@pytest.mark.parametrize('make', [Plain, lambda: tm.wrappers.ClasswiseWrapper(tm.Accuracy('multiclass', num_classes=3, average=None)),
    lambda: tm.wrappers.MultioutputWrapper(tm.MeanSquaredError(), 3), lambda: tm.Accuracy('multiclass', num_classes=3)+tm.F1Score('multiclass', num_classes=3)])
def test_the_state_of_wrapped_metrics_continues(make):
    "Of a metric inside another one, nothing was saved"
    g = torch.Generator().manual_seed(0)
    p,t = torch.randn(8, 3, generator=g),torch.randint(3, (8,), generator=g)
    if 'output' in str(make()).lower(): t = torch.randn(8, 3, generator=g)
    whole,rest = TorchMetric(make()),TorchMetric(make())
    whole.accumulate(batch(p[:5], t[:5]))
    rest.load_state_dict(deepcopy(whole.state_dict()))
    for m in (whole, rest): m.accumulate(batch(p[5:], t[5:]))
    close(whole.value, rest.value)
