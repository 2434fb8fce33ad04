"How much a batch weighs: however a data set is split into batches, its loss, metrics and gradients are those of the whole as one batch"
import warnings
from functools import partial
from types import SimpleNamespace

import pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD
from torch.utils._python_dispatch import TorchDispatchMode

from learnkit.measure.batch_weight import BatchWeight, ignored_class, make_weight_rule
from learnkit.measure.recorder import Meter
from learnkit.measure.adapters import columns, mk_metrics
from learnkit.data.process import to_detach
from learnkit.all import (AccumMetric, BCEWithLogitsLossFlat, Callback, CrossEntropyLossFlat, DataLoaders, Evaluator, FocalLoss, FocalLossFlat, GradientAccumulation, LabelSmoothingCrossEntropy,
                          LabelSmoothingCrossEntropyFlat, Learner, MapOutputs, MicroBatch, MSELossFlat, Perplexity, Recorder, accuracy, error_rate, find_bs, top_k_accuracy)

from toys import UnreadAccumulation, at, draws

pytestmark = pytest.mark.filterwarnings('ignore:the training loss')   # is nan, where no target of a batch counts

def mk(seed=0): return torch.Generator().manual_seed(seed)
class Net(nn.Module):
    "Three numbers to five classes, along `axis`"
    def __init__(self, axis=-1):
        super().__init__()
        self.axis = axis
        with torch.random.fork_rng(): torch.manual_seed(1); self.lin = nn.Linear(3,5).double()
    def forward(self, x): return self.lin(x).movedim(-1, self.axis)

# the losses: what a whole batch gives, by PyTorch alone

W = torch.tensor([1.,2.,.5,3.,.1], dtype=torch.double)
def classes(loss, to=-1, **kw): return loss,to,dict(kind='classes', **kw)
def numbers(loss, **kw):        return loss,-1,dict(kind='numbers', **kw)
def seq_ce(pred, y, **kw): return F.cross_entropy(pred.flatten(0,1), y.flatten(), **kw)   # a function of one's own, as many have it
seq_ce.ignore_index = -100
def seq_ce_of_all(pred, y): return F.cross_entropy(pred.flatten(0,1), y.flatten())   # says nothing, so each target counts
def seq_ce0(pred, y): return seq_ce(pred, y, ignore_index=0)
seq_ce0.batch_weight,seq_ce0.ignore_index = lambda y: (y!=0).sum(),0
def positives(pred, y): return ((pred-y)**2*(y>0)).sum()/(y>0).sum().clamp_min(1)
positives.batch_weight = lambda y: (y>0).sum()

of_items = dict(
    function  = classes(F.cross_entropy),
    module    = classes(nn.CrossEntropyLoss()),
    ignores   = classes(nn.CrossEntropyLoss(ignore_index=2)),
    weights   = classes(nn.CrossEntropyLoss(W)),
    both      = classes(nn.CrossEntropyLoss(W, ignore_index=1)),
    smoothing = classes(nn.CrossEntropyLoss(label_smoothing=.2)),
    all_three = classes(nn.CrossEntropyLoss(W, ignore_index=3, label_smoothing=.2)),
    partial   = classes(partial(F.cross_entropy, weight=W, ignore_index=0)),
    nll       = classes(nn.NLLLoss(W)),
    focal     = classes(FocalLoss(weight=W)),
    smooth    = classes(LabelSmoothingCrossEntropy(weight=W, ignore_index=4)),
    flat      = classes(CrossEntropyLossFlat(weight=W)),
    summed    = classes(nn.CrossEntropyLoss(reduction='sum')),
    summed_w  = classes(partial(F.cross_entropy, reduction='sum', weight=W)),
    probs     = numbers(nn.CrossEntropyLoss(W), probs=True),
    mse       = numbers(nn.MSELoss()),
    huber     = numbers(F.smooth_l1_loss),
    mse_sum   = numbers(nn.MSELoss(reduction='sum')),
    bce       = numbers(nn.BCEWithLogitsLoss(W, pos_weight=W), probs=True),
    bce_flat  = numbers(BCEWithLogitsLossFlat(), probs=True),
    kl        = numbers(nn.KLDivLoss(reduction='batchmean'), probs=True),
    own       = numbers(positives))
of_words = dict(
    flat      = classes(CrossEntropyLossFlat(ignore_index=2)),
    flat_w    = classes(CrossEntropyLossFlat(weight=W)),
    smooth    = classes(LabelSmoothingCrossEntropyFlat(weight=W)),
    focal     = classes(FocalLossFlat(weight=W)),
    axis_1    = classes(nn.CrossEntropyLoss(W), to=1),
    function  = classes(F.cross_entropy, to=1),
    own       = classes(seq_ce),
    says      = classes(seq_ce0),
    silent    = classes(seq_ce_of_all),
    summed    = classes(partial(seq_ce, reduction='sum')),
    mse       = numbers(MSELossFlat()),
    probs     = numbers(CrossEntropyLossFlat(weight=W), probs=True))

@st.composite
def splits(draw, words=False):
    "The sizes of ragged batches, of which some may have no target that counts; how long their sentences are; a seed; the share of ignored targets"
    sizes = draw(st.lists(st.integers(1,5), min_size=1, max_size=5))
    return sizes,[draw(st.integers(1,4)) for _ in sizes] if words else None,draw(st.integers(0,999)),draw(st.sampled_from((0,.3,.8,1.)))

def data(split, loss, kind, probs=False, time_major=False):
    "The batches, and all of them as one: with padding, if they are of words"
    sizes,lens,seed,share = split
    g,ignore = mk(seed),ignored_class(loss)
    batches = []
    for n,l in zip(sizes, lens or sizes):
        shape = ((l,n) if time_major else (n,l)) if lens else (n,)
        x = torch.randn(*shape, 3, generator=g, dtype=torch.double)
        if kind=='numbers': y = torch.randn(*shape, 5, generator=g, dtype=torch.double)
        else: y = torch.randint(5, shape, generator=g).masked_fill((torch.rand(shape, generator=g)<share) & (ignore is not None), ignore or 0)
        batches.append((x, y.softmax(-1) if probs else y))
    return batches

def whole(batches, loss, net):
    "By hand: the loss of all batches together, and its gradient"
    if batches[0][0].ndim==2: pred,y = net(torch.cat([x for x,_ in batches])),torch.cat([y for _,y in batches])
    else:   # sentences, one after the other
        pred = net.lin(torch.cat([x.reshape(-1,3) for x,_ in batches]))
        y = torch.cat([y.reshape(-1, *y.shape[3:] if y.ndim<3 else (5,)) for _,y in batches])
        if loss in (seq_ce, seq_ce0, seq_ce_of_all) or isinstance(loss, partial): pred,y = pred[None],y[None]
    value = loss(pred, y)
    return value,torch.autograd.grad(value, list(net.parameters()))

def close(a, b): return torch.testing.assert_close(torch.as_tensor(a, dtype=torch.double), torch.as_tensor(b, dtype=torch.double), rtol=2e-5, atol=1e-6, equal_nan=True)
def learner(batches, loss, net, cbs=None, **kw):
    learn = Learner([batches, batches], net, loss, SGD, lr=1., cbs=cbs, **kw)
    learn.logger = lambda row: None
    return learn.remove_cb(learn.progress)

def gradients(net, before): return [p-q for p,q in zip(before, net.parameters())]
few = draws(20)
form = dict(tuple=lambda x,y: (x,y), list=lambda x,y: [x,y], dict=lambda x,y: {'x':x, 'labels':y})

class Grads(Callback):
    "The gradients of each step"
    order = 50
    def before_fit(self): self.of = []
    def before_step(self): self.of.append([p.grad.clone() for p in self.learn.model.parameters()])

def check_loss(case, split, time_major=False, how='tuple'):
    loss,to,kw = case
    batches = data(split, loss, **kw, time_major=time_major)
    net = Net(to)
    want,_ = whole(batches, loss, net)
    got = learner([form[how](*b) for b in batches], loss, net).validate()[0]
    if got is None: assert want.isnan() or want==0   # no target counts
    else: close(got, want.item())

accumulations = st.sampled_from([GradientAccumulation, UnreadAccumulation])

def check_gradients(case, split, cbs, together):
    "Of a step for all batches that `together` makes one of"
    loss,to,kw = case
    batches = data(split, loss, **kw)
    net,grads = Net(to),Grads()
    _,want = whole(batches, loss, net)
    n = sum(len(y) for _,y in batches)
    learn = learner(together(batches), loss, net, [*cbs(n), grads], metrics=None)
    learn.dls.loaders[1:] = []
    learn.remove_cb(learn.non_finite_check)
    learn.fit(1)
    assert len(grads.of)==1
    for a,b in zip(grads.of[0], want): close(a, b)


@few
@given(name=st.sampled_from([*of_items]), split=splits(), how=st.sampled_from([*form]))
def test_the_loss_of_an_epoch_is_that_of_all_items_as_one_batch(name, split, how):
    "It was weighed by items: with ignored targets 1.795 for 1.839, with class weights 1.388 for .927; and one batch without a target that counts made it nan"
    check_loss(of_items[name], split, how=how)

@few
@given(name=st.sampled_from([*of_words]), time_major=st.booleans(), split=splits(words=True))
def test_the_loss_of_an_epoch_of_sentences(name, time_major, split):
    "Batches whose sentences are longer weigh more, also if time comes first: 1.798 for 1.837"
    if not (time_major and of_words[name][1]==1): check_loss(of_words[name], split, time_major)

@few
@given(name=st.sampled_from([*of_items]), split=splits(), cls=accumulations)
def test_accumulated_gradients_are_those_of_all_items_as_one_batch(name, split, cls):
    "They were weighed by items: with padding the step was off by more than half"
    check_gradients(of_items[name], split, lambda n: [cls(n)], lambda bs: bs)

@few
@given(name=st.sampled_from([*of_words]), split=splits(words=True), cls=accumulations)
def test_accumulated_gradients_of_sentences(name, split, cls):
    check_gradients(of_words[name], split, lambda n: [cls(n)], lambda bs: bs)

@pytest.mark.parametrize('bs', (6, 7, 16))
def test_the_number_of_targets_may_be_read_or_not(bs):
    "Where all targets count, the weights are the same to the last bit"
    g = mk()
    dl = [(torch.randn(bs, 3, generator=g), torch.randint(5, (bs,), generator=g)) for _ in range(7)]
    def fitted(cls):
        net = Net().float()
        Learner(DataLoaders(dl), net, F.cross_entropy, lr=.1, cbs=cls(3*bs-1)).fit(2)
        return net.lin.weight
    assert torch.equal(fitted(GradientAccumulation), fitted(UnreadAccumulation))

@few
@given(name=st.sampled_from([*of_items]), split=splits(), n=st.integers(1,4), acc=st.booleans())
def test_gradients_of_parts_are_those_of_the_batch(name, split, n, acc):
    "`MicroBatch` alone, and within batches that are accumulated"
    def one(bs): return bs if acc else [tuple(torch.cat(o) for o in zip(*bs))]
    check_gradients(of_items[name], split, lambda k: [MicroBatch(n=n), *[GradientAccumulation(k)]*acc], one)

@few
@given(name=st.sampled_from(['ignores','partial','function']), split=splits())
def test_metrics_skip_what_the_loss_ignores(name, split):
    "`accuracy` counted ignored words as wrong: .833 for 1"
    loss,_,kw = of_items[name]
    batches,net = data(split, loss, **kw),Net()
    x,y = (torch.cat(o) for o in zip(*batches))
    counts = y!=ignored_class(loss)
    pred,y = net(x)[counts],y[counts]
    right = (pred.argmax(1)==y).double().mean()
    f1 = AccumMetric(lambda p,t: (p==t).double().mean(), dim_argmax=-1, name='f1')
    _,acc,err,top,ppl,got = learner(batches, loss, net, metrics=[accuracy, error_rate, partial(top_k_accuracy, k=2), Perplexity(), f1]).validate()
    if not len(y): assert (acc,err,top,ppl,got)==(None,)*5; return
    close(acc, right); close(err, 1-right); close(got, right)
    close(top, (pred.topk(2).indices==y[:,None]).any(1).double().mean())
    close(ppl, F.cross_entropy(pred, y, **(dict(weight=W) if name=='partial' else {})).exp())

class Ops(TorchDispatchMode):
    "Counts what is asked of PyTorch's kernels"
    n = 0
    def __torch_dispatch__(self, func, types, args=(), kwargs=None): self.n += 1; return func(*args, **(kwargs or {}))

@pytest.mark.parametrize('loss', [nn.MSELoss(), F.l1_loss, nn.BCEWithLogitsLoss(W), lambda p,y: (p-y).abs().mean(), nn.CrossEntropyLoss(W)])
def test_weights_of_an_ordinary_mean_ask_nothing_of_the_device(loss):
    y = torch.rand(4,5)
    with Ops() as ops: assert make_weight_rule(loss)((y,))==20
    assert not ops.n

@pytest.mark.parametrize('yb, n', [((torch.zeros(3,2), torch.zeros(3)), 3), (([{'boxes':torch.zeros(5,4)}, {'boxes':torch.zeros(1,4)}],), 2), (([torch.zeros(5), torch.zeros(2)],), 2)])
def test_items_are_counted_where_targets_are_not_one_tensor(yb, n):
    "The boxes of the first image were taken for the size of the batch: a valid_loss of 12 for 8"
    assert make_weight_rule(F.mse_loss)(yb)==find_bs(yb)==n

def test_a_ctc_loss_is_a_mean_over_items():
    "Its targets may be one after the other, so that their length says nothing"
    loss,lens = nn.CTCLoss(),torch.tensor([2,3,1])
    assert make_weight_rule(loss)((torch.ones(6), torch.full((3,), 9), lens))==3

def test_a_learner_counts_boxes_once_an_image():
    "With a list of dictionaries as the targets, as in object detection"
    sizes = [(1,2),(4,)]
    batches = [([torch.ones(3,4,4)]*len(s), [{'boxes':torch.zeros(k,4)} for k in s]) for s in sizes]
    class Detector(nn.Module):
        def __init__(self): super().__init__(); self.w = nn.Parameter(torch.ones(()))
        def forward(self, images): return self.w*sum(len(i) for i in images)
    loss = learner(batches, lambda pred,ts: pred*0 + sum(len(t['boxes']) for t in ts)/len(ts), Detector()).validate()[0]
    assert loss==pytest.approx((1.5*2 + 4)/3)

# what has a loss, and what has none

class Output(dict):
    "The output of a model that computes its loss itself, as those of transformers"
    __getattr__ = dict.__getitem__
class OwnLoss(nn.Module):
    ignore_index = -100   # of its labels
    def __init__(self): super().__init__(); self.net = Net()
    def forward(self, x, labels=None):
        out = Output(logits=self.net(x))
        if labels is not None: out['loss'] = F.cross_entropy(out.logits.flatten(0,1), labels.flatten())
        return out
def named(batches): return [dict(x=x, labels=y) for x,y in batches]
sentences = ([2,1,3],[3,2,4],1,.4)

def test_a_loss_of_the_model_has_the_weight_of_its_labels():
    batches = data(sentences, F.cross_entropy, 'classes')
    model = OwnLoss()
    want = whole(batches, seq_ce, model.net)[0]
    close(learner(named(batches), None, model).validate()[0], want.item())

def test_outputs_can_be_mapped_for_metrics_and_keep_their_loss():
    "A model with its own loss failed with a metric; with `MapOutputs` its loss was lost"
    batches = named(data(sentences, F.cross_entropy, 'classes'))
    learn = learner(batches, None, OwnLoss(), MapOutputs(lambda o: o.logits), metrics=accuracy)
    before = learn.validate()
    assert before==learner(batches, None, OwnLoss(), metrics=accuracy).validate()   # which maps them itself
    assert 0<=before[1]<=1 and before[0]==learner(batches, None, OwnLoss()).validate()[0]
    learn.fit(3, lr=.1)
    assert learn.validate()[0]<before[0] and learn.pred is None and learn.current_run.output_loss is None

def test_predicting_within_a_batch_leaves_the_loss_of_the_output():
    batches = named(data(sentences, F.cross_entropy, 'classes'))
    peek = at('after_pred', lambda cb: cb.learn.get_preds(), lambda cb: cb.learn.mode=='fit')
    a,b = (learner(batches, None, OwnLoss(), [MapOutputs(lambda o: o.logits), *cbs]) for cbs in ((), [peek]))
    a.fit(1); b.fit(1)
    assert a.recorder.history['valid_loss']==b.recorder.history['valid_loss']

def test_a_loss_without_targets_is_called():
    "As in SimCLR, on batches of inputs alone: it was never called, the weights stayed, and the advice was wrong"
    batches = [x for x,_ in data(([4,4,2],None,1,0), None, 'classes')]
    def spread(pred): return pred.std(0).mean()
    learn = learner(batches, spread, Net())
    first = learn.validate()[0]
    close(first, sum(spread(Net()(x)).item()*len(x) for x in batches)/10)
    learn.fit(2, lr=.1)
    assert learn.validate()[0]<first
    with pytest.warns(UserWarning, match='takes only the predictions'): learner(batches, F.cross_entropy, Net()).fit(1)

def test_a_loss_that_is_missing_in_a_later_batch_is_an_error():
    "Without a `return` in one of its branches it trained on 4 of 6 batches, and said nothing"
    seen = []
    def loss(pred, y):
        seen.append(1)
        if len(seen)<4: return F.cross_entropy(pred, y)
    batches = data(([2]*6,None,1,0), None, 'classes')
    with pytest.raises(TypeError, match='returned None.* batch 3.*branches'): learner(batches, loss, Net()).fit(1)

def test_metrics_are_computed_without_a_loss():
    "`validate()` of a model without a loss function gave `[None, None]`"
    batches = data(([3,2],None,1,0), None, 'classes')
    x,y = (torch.cat(o) for o in zip(*batches))
    loss,acc = learner(batches, None, Net(), metrics=accuracy).validate()
    close(acc, accuracy(Net()(x), y)); assert loss is None

# metrics that give several numbers

def means(pred, targ): return {'nll':F.cross_entropy(pred, targ), 'acc':accuracy(pred, targ)}

def several():
    tm = pytest.importorskip('torchmetrics')
    f1 = tm.classification.MulticlassF1Score
    def spread(pred, targ): return {'least':pred.min(), 'most':pred.max()}
    return tm.MetricCollection({'micro':f1(5, average='micro'), 'macro':f1(5)}),f1(5, average=None),[
        *columns(AccumMetric(spread, flatten=False), ['least','most']), *columns(means, ['acc','nll'])]

def test_numbers_of_a_metric_are_columns():
    "A collection was taken for the names of its metrics; a score for each class was one cell, and ended the run when it was saved"
    coll,each,both = several()
    batches = data(([3,2,4],None,1,0), None, 'classes')
    x,y = (torch.cat(o) for o in zip(*batches))
    pred = Net()(x).detach()
    want = {k:v.item() for k,v in coll(pred, y).items()} | {f'multiclass_f1_score_{i}':v.item() for i,v in enumerate(each(pred, y))}
    coll.reset(); each.reset()
    learn = learner(batches, F.cross_entropy, Net(), Evaluator('test', batches), metrics=[coll, each, *both])
    learn.fit(1, lr=0.)
    row = learn.recorder.history[0]
    for k,v in want.items(): close(row[k], v); close(learn.evaluate_test.history[0][f'test_{k}'], v)
    close(row['spread_most'], pred.max())
    close([row['means_acc'], row['means_nll']], [accuracy(pred, y), F.cross_entropy(pred, y)])   # -100 is among the targets
    assert learner(batches, F.cross_entropy, Net(), metrics=coll).metrics.attrgot('name').sorted()==['macro','micro']

def test_a_dictionary_in_one_cell_is_reported():
    "Loggers and trackers left out what is not a number, without a word"
    learn = learner(data(([3],None,1,0), None, 'classes'), F.cross_entropy, Net(), metrics=AccumMetric(lambda p,t: {'a':1., 'b':2.}, flatten=False, name='two'))
    with pytest.warns(UserWarning, match=r"`two` returned 2 numbers.*`columns"): learn.fit(1, lr=0.)
    assert learn.recorder.history[0]['two']=={'a':1., 'b':2.}

def test_columns_continue_in_the_middle_of_an_epoch():
    coll,each,both = several()
    a,b = Meter(mk_metrics([coll, each, *both])),Meter(mk_metrics([*several()[:2], *several()[2]]))
    batches = [learner_at(x, y) for x,y in data(([3,2,4],None,1,0), None, 'classes')]
    a.reset(); b.reset()
    for o in batches[:2]: a.accumulate(o)
    b.load_state_dict(a.state_dict())
    for m in (a,b): m.accumulate(batches[2])
    close([*map(float, a.values)], [*map(float, b.values)])
def learner_at(x, y):
    pred = Net()(x).detach()
    return SimpleNamespace(pred=pred, yb=(y,), xb=(x,), loss=F.cross_entropy(pred, y), to_detach=to_detach)

# integers that are no classes

def mse_of_whole(pred, y, reduction='mean'): return F.mse_loss(pred, y.to(pred.dtype), reduction=reduction)
class WholeMSE(nn.MSELoss):
    def forward(self, pred, y): return super().forward(pred, y.to(pred.dtype))
numbers_of = dict(function=mse_of_whole, module=WholeMSE(), partial=partial(mse_of_whole),
                  huber=lambda p,y,reduction='mean': F.huber_loss(p, y.to(p.dtype), reduction=reduction))

@pytest.mark.parametrize('dtype', [torch.long, torch.int32, torch.int16, torch.int8, torch.double])
@pytest.mark.parametrize('loss', numbers_of.values(), ids=numbers_of)
@pytest.mark.parametrize('cbs', [None, lambda: MicroBatch(2), lambda: GradientAccumulation(8)])
def test_minus_100_is_a_number_for_a_loss_that_ignores_none(loss, dtype, cbs):
    "Degrees, dBm, offsets: each target counts in the step, in the loss of an epoch, in a metric and in the loss of an item"
    x,y = torch.randn(8,3, generator=mk(), dtype=torch.double),torch.randint(-103, -97, (8,5), generator=mk()).to(dtype)
    y[:3] = -100
    net = Net()
    want = loss(net(x), y)
    grads = torch.autograd.grad(want, list(net.parameters()))
    parts = [(x,y)] if cbs and isinstance(cbs(), MicroBatch) else [(x[i:i+4],y[i:i+4]) for i in (0,4)]
    def mae(pred, y): return (pred-y).abs().mean()
    learn = learner(parts, loss, net, metrics=[mae])
    res = learn.validate()
    close([res[0], res[1]], [want.item(), mae(net(x), y).item()])
    close(learn.get_preds(with_loss=True)[2], torch.stack([loss(net(x[i:i+1]), y[i:i+1]).detach() for i in range(8)]))
    if cbs:
        before = [p.detach().clone() for p in net.parameters()]
        learner(parts, loss, net, cbs()).fit(1)
        for g,w in zip(gradients(net, before), grads): close(g, w)

def test_what_a_loss_ignores_is_what_it_says():
    def own(pred, y, ignore_index=7): return pred.sum()
    class Module(nn.Module):
        def forward(self, pred, y, ignore_index=3): return pred.sum()
    class OfTransformers(nn.Module):
        def loss_function(self, logits, labels): pass
    said = {F.cross_entropy:-100, F.nll_loss:-100, nn.CrossEntropyLoss(ignore_index=2):2, partial(F.cross_entropy, ignore_index=4):4, own:7, partial(own):7, Module():3,
            partial(Module()):3, OfTransformers():-100, F.mse_loss:None, nn.MSELoss():None, MSELossFlat():None, (lambda p,y: p.sum()):None, CrossEntropyLossFlat(ignore_index=1):1, max:None, None:None}
    assert {f:ignored_class(f) for f in said}==said

# a loss function that sums

def squares(pred, targ): return ((pred-targ)**2).sum()
def summed_by_torch(pred, targ): return F.mse_loss(pred, targ, reduction='sum')
def vae_like(pred, targ): return F.mse_loss(pred, targ, reduction='sum') - .5*torch.sum(1 + pred - pred.exp())

def of_size(bs, loss, *cbs, **kw):
    x = torch.randn(64, 4, generator=torch.Generator().manual_seed(1))
    data = [(o, o.sum(1, keepdim=True)) for o in x.split(bs)]
    torch.manual_seed(0)
    learn = Learner(DataLoaders(data, data), nn.Linear(4,1), loss, torch.optim.SGD, cbs=cbs, **kw)
    learn.logger = lambda row: None
    return learn

@pytest.mark.parametrize('f', (squares, summed_by_torch, vae_like))
def test_a_function_that_sums_is_detected_and_set(f):
    def loss(*args): return f(*args)
    with pytest.warns(UserWarning, match=r"`loss` seems to sum over the samples.*`loss.reduction = 'sum'`"): of_size(16, loss, lr=0.).fit(1)
    loss.reduction = 'sum'
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        rows = []
        for bs in (10,16,64):
            learn = of_size(bs, loss, Recorder(train_loss='mean'), lr=0.)
            learn.fit(1)
            rows.append([learn.recorder.history[0][k] for k in ('train_loss','valid_loss')])
    whole = f(learn.model(torch.cat([b[0] for b in learn.dls.train])), torch.cat([b[1] for b in learn.dls.train])).item()
    assert rows==[[pytest.approx(whole)]*2]*3

@pytest.mark.parametrize('cb', (lambda: GradientAccumulation(64), lambda: MicroBatch(n=4)))
def test_gradients_of_a_function_that_sums_are_added(cb):
    def loss(*args): return squares(*args)
    loss.reduction = 'sum'
    weights = []
    for bs,cbs in (64,()),(16 if cb().__class__ is GradientAccumulation else 64, (cb(),)):
        learn = of_size(bs, loss, *cbs, lr=.001)
        learn.fit(2)
        weights.append(learn.model.weight.detach())
    assert torch.allclose(*weights, atol=1e-6)

def test_means_cause_no_warning():
    for f in (F.mse_loss, lambda p,t: squares(p,t)/len(p), lambda p,t: torch.stack([F.mse_loss(p,t), F.l1_loss(p,t)]).sum(), nn.MSELoss(reduction='sum'), partial(F.mse_loss, reduction='sum')):
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            of_size(16, f, lr=.001).fit(1)

@pytest.mark.parametrize('ignore', (-100, -1, 0, 3, None))
def test_a_weight_that_is_read_is_the_one_that_is_counted(ignore):
    "Class numbers of which none is negative are not counted one by one"
    loss = partial(F.cross_entropy, ignore_index=ignore) if ignore is not None else F.mse_loss
    targets = [torch.randint(low, 5, shape).to(dtype) for low in (0,1,-1) for shape in ((6,), (2,3), (0,)) for dtype in (torch.int64, torch.int32, torch.float32)]
    for t in [*targets, torch.tensor([ignore or 0]*4), torch.tensor([2,-100,3])]:
        for yb in ((t,), (t,t)):
            learn = SimpleNamespace(loss_func=loss, xb=(torch.zeros(len(t)),), yb=yb)
            weigh = BatchWeight(learn)
            there,kept = weigh.read(learn, lambda t: False),weigh.read(learn, lambda t: True)
            assert there==weigh(learn) and not isinstance(there, torch.Tensor) and type(kept) is type(weigh(learn))
