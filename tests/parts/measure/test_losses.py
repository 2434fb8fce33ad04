"Losses against torch's own and against formulas in double precision, over random shapes; mistakes; `none_reduce`"
import pickle
from copy import deepcopy
from functools import partial
import pytest, torch, torch.nn.functional as F
from hypothesis import given, strategies as st
from torch import nn
from learnkit.measure.losses import *
from learnkit.measure.losses import *
from learnkit.data.explain import check_loss, loss_hint
from toys import draws

class_losses = CrossEntropyLossFlat, LabelSmoothingCrossEntropyFlat, FocalLossFlat
few = draws(30)

# equality with torch

@st.composite
def class_batch(draw, dtype=torch.float32):
    "Logits with classes on some axis, class numbers, and that axis"
    n_cls,rest = draw(st.integers(2,5)),draw(st.lists(st.integers(1,4), min_size=1, max_size=3))
    seed = draw(st.integers(0,2**20))
    pos = draw(st.integers(0,len(rest)))
    g = torch.Generator().manual_seed(seed)
    targ = torch.randint(0, n_cls, rest, generator=g)
    pred = torch.randn(*rest[:pos], n_cls, *rest[pos:], generator=g, dtype=dtype)
    return pred,targ,draw(st.sampled_from([pos, pos-pred.ndim]))

def plain(pred, targ, axis):
    "The same batch as torch's flat losses want it"
    pred = pred.movedim(axis, -1)
    return pred.reshape(-1, pred.shape[-1]),targ.reshape(-1)

kinds = dict(
    ce      = (CrossEntropyLossFlat, F.cross_entropy, {}),
    weight  = (CrossEntropyLossFlat, F.cross_entropy, dict(weight=torch.arange(1., 6))),
    smooth  = (CrossEntropyLossFlat, F.cross_entropy, dict(label_smoothing=.2)),
    ignore  = (CrossEntropyLossFlat, F.cross_entropy, dict(ignore_index=0)))

@pytest.mark.parametrize('kind', kinds)
@few
@given(b=class_batch(), reduction=st.sampled_from(['mean','sum','none']))
def test_cross_entropy_is_torchs(kind, b, reduction):
    pred,targ,axis = b
    cls,func,kw = kinds[kind]
    if 'weight' in kw: kw = dict(weight=kw['weight'][:pred.shape[axis]])
    got,want = cls(axis=axis, reduction=reduction, **kw)(pred, targ),func(*plain(*b), reduction=reduction, **kw)
    assert torch.equal(got, want) or (got.isnan() & want.isnan()).all()   # nan: everything ignored
    if reduction=='none' and axis%pred.ndim==1: # where torch has the classes: the items keep their order
        torch.testing.assert_close(got, func(pred, targ, reduction='none', **kw).flatten())

@few
@given(b=class_batch(), eps=st.floats(0, 1), weighted=st.booleans(), reduction=st.sampled_from(['mean','sum','none']))
def test_label_smoothing_is_torchs(b, eps, weighted, reduction):
    pred,targ,axis = b
    w = torch.arange(1., 1+pred.shape[axis]) if weighted else None
    want = F.cross_entropy(*plain(*b), label_smoothing=eps, weight=w, reduction=reduction)
    flat = LabelSmoothingCrossEntropyFlat(eps=eps, weight=w, axis=axis, reduction=reduction)
    assert torch.equal(flat(pred, targ), want)
    assert torch.equal(LabelSmoothingCrossEntropy(eps, w, reduction)(*plain(*b)), want)

@few
@given(b=class_batch(torch.float64), eps=st.floats(0, 1))
def test_label_smoothing_formula(b, eps):
    pred,targ = plain(*b)
    logp = pred.log_softmax(1)
    want = (1-eps)*-logp.gather(1, targ[:,None]).mean() + eps*-logp.mean(1).mean()
    torch.testing.assert_close(LabelSmoothingCrossEntropy(eps)(pred, targ), want)

pairs = dict(mse=(MSELossFlat, F.mse_loss), l1=(L1LossFlat, F.l1_loss), bce=(BCELossFlat, F.binary_cross_entropy),
             logits=(BCEWithLogitsLossFlat, F.binary_cross_entropy_with_logits))

@pytest.mark.parametrize('kind', pairs)
@few
@given(shape=st.lists(st.integers(1,4), max_size=4), axis=st.integers(-4,3), seed=st.integers(0,2**20),
       reduction=st.sampled_from(['mean','sum','none']), tail=st.booleans())
def test_pairwise_losses_are_torchs(kind, shape, axis, seed, reduction, tail):
    cls,func = pairs[kind]
    g = torch.Generator().manual_seed(seed)
    pred,targ = torch.rand(shape, generator=g),torch.rand(shape, generator=g)
    want = func(pred.flatten(), targ.flatten(), reduction=reduction)
    assert torch.equal(cls(reduction=reduction)(pred[...,None] if tail else pred, targ), want)
    if -len(shape)<=axis<len(shape): torch.testing.assert_close(cls(axis=axis)(pred, targ), func(pred, targ))

@few
@given(b=class_batch(torch.float64), gamma=st.sampled_from([0, .5, 1, 2, 5]), weighted=st.booleans(),
       ignore=st.sampled_from([-100,0]))
def test_focal_formula(b, gamma, weighted, ignore):
    pred,targ,axis = b
    p,t = plain(*b)
    w = torch.arange(1., 1+p.shape[1], dtype=p.dtype) if weighted else torch.ones(p.shape[1], dtype=p.dtype)
    pt,alpha = p.softmax(1).gather(1, t[:,None])[:,0],w[t]*(t!=ignore)
    want = -alpha * (1-pt)**gamma * pt.log()
    loss = FocalLossFlat(gamma=gamma, weight=w if weighted else None, ignore_index=ignore, axis=axis)
    close = partial(torch.testing.assert_close, equal_nan=True)
    close(loss(pred, targ), want.sum()/alpha.sum())
    loss.reduction = 'sum';  close(loss(pred, targ), want.sum())
    loss.reduction = 'none'; close(loss(pred, targ), want)
    if gamma==0: close(loss(pred, targ), F.cross_entropy(p, t, weight=w, ignore_index=ignore, reduction='none'))

@pytest.mark.parametrize('gamma', [0, .5, 1, 2])
def test_focal_is_finite_at_the_ends(gamma):
    pred = torch.tensor([[200.,0.],[0.,200.],[5.,0.]], requires_grad=True)
    loss = FocalLoss(gamma, reduction='none')(pred, torch.tensor([0,0,0]))
    loss.sum().backward()
    assert loss.isfinite().all() and pred.grad.isfinite().all()
    p = pred[2].detach().double().softmax(0)
    torch.testing.assert_close(loss[2], (-p[1]**gamma * p[0].log()).float(), rtol=1e-4, atol=0)

def test_focal_ignores_impossible_classes():
    "A logit of -inf for another class leaves the gradient alone"
    pred = torch.tensor([[1.,2.,-torch.inf]], requires_grad=True)
    FocalLoss()(pred, torch.tensor([0])).backward()
    assert pred.grad.isfinite().all()

# types and devices

@pytest.mark.parametrize('dtype', [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool])
def test_any_integer_is_a_class_number(dtype):
    pred,targ = torch.randn(6,2),torch.tensor([0,1,1,0,1,0])
    for cls in class_losses: assert torch.equal(cls()(pred, targ.to(dtype)), cls()(pred, targ))
    assert torch.equal(MSELossFlat()(pred[:,0], targ.to(dtype)), MSELossFlat()(pred[:,0], targ.float()))

@pytest.mark.parametrize('cls', [MSELossFlat, L1LossFlat, BCEWithLogitsLossFlat])
@pytest.mark.parametrize('dt_pred', [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize('dt_targ', [torch.float32, torch.float64, torch.int64])
def test_loss_has_the_precision_of_predictions(cls, dt_pred, dt_targ):
    pred = torch.rand(4, dtype=dt_pred, requires_grad=True)
    loss = cls()(pred, torch.ones(4, dtype=dt_targ))
    assert loss.dtype==torch.promote_types(dt_pred, torch.float32)
    loss.backward()

def test_soft_targets():
    pred = torch.randn(4,3,5)
    soft = torch.randn(4,3,5).softmax(1)
    torch.testing.assert_close(CrossEntropyLossFlat(axis=1)(pred, soft), F.cross_entropy(pred, soft))

def test_weights_move():
    w,p,y = torch.ones(3),torch.randn(4,3, device='meta'),torch.zeros(4, dtype=torch.long, device='meta')
    for loss,t in ((CrossEntropyLossFlat(weight=w), y), (FocalLossFlat(weight=w), y),
                   (LabelSmoothingCrossEntropy(weight=w), y), (BCEWithLogitsLossFlat(w), p),
                   (BCEWithLogitsLossFlat(pos_weight=w), p)):
        assert loss.to('meta') is loss
        assert [b.device.type for b in loss.buffers()]==['meta']
        assert loss(p, t).device.type=='meta'

def test_nothing_waits_for_the_device():
    "A tensor on `meta` has no values, so reading one fails"
    p,y = torch.randn(4,3, device='meta'),torch.zeros(4, dtype=torch.long, device='meta')
    for cls in class_losses: cls()(p, y)
    for cls in (MSELossFlat, L1LossFlat, BCELossFlat, BCEWithLogitsLossFlat): cls()(p, p)
    for f,t in ((F.cross_entropy,y),(nn.CrossEntropyLoss(),y),(F.mse_loss,p)): check_loss(f, p, t)

@pytest.mark.parametrize('loss', [CrossEntropyLossFlat(axis=1), FocalLossFlat(gamma=1.), MSELossFlat(),
                                  BCEWithLogitsLossFlat(thresh=.3), LabelSmoothingCrossEntropy(.3)])
def test_copies(loss):
    for o in (deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert type(o)==type(loss) and repr(o)==repr(loss)
        for a in ('axis','thresh','eps'): assert getattr(o, a, None)==getattr(loss, a, None)

@pytest.mark.parametrize('one', [None, torch.tensor([3.]), torch.tensor([1.,2.,3.])])
@pytest.mark.parametrize('axis', [-1, 1])
def test_pos_weight(one, axis):
    pred,targ = torch.randn(4,3,2,3),torch.randint(0, 2, (4,3,2,3))
    got = BCEWithLogitsLossFlat(pos_weight=one, axis=axis)(pred, targ)
    pred,targ = pred.movedim(axis, -1),targ.movedim(axis, -1).float()
    torch.testing.assert_close(got, F.binary_cross_entropy_with_logits(pred, targ, pos_weight=one))

def test_one_pos_weight_may_be_flattened():
    pred,targ,w = torch.randn(4,1),torch.tensor([0,1,1,0]),torch.tensor([3.])
    got = BCEWithLogitsLossFlat(pos_weight=w)(pred, targ)
    assert torch.equal(got, F.binary_cross_entropy_with_logits(pred[:,0], targ.float(), pos_weight=w))

# the protocol

@few
@given(b=class_batch())
def test_activation_and_decodes(b):
    pred,targ,axis = b
    for cls in class_losses:
        loss = cls(axis=axis)
        assert loss.y_int
        assert torch.equal(loss_activation(loss)(pred), pred.softmax(axis))
        assert torch.equal(loss_decodes(loss)(loss.activation(pred)), pred.argmax(axis))

def test_yes_or_no():
    loss,x = BCEWithLogitsLossFlat(thresh=.7),torch.tensor([-1.,.5,2.])
    assert torch.equal(loss.activation(x), x.sigmoid()) and not loss.y_int
    assert loss.decodes(loss.activation(x)).tolist()==[False,False,True]

def test_base_loss_changes_nothing():
    x = torch.randn(3)
    for loss in (BaseLoss(nn.SmoothL1Loss, beta=.5, is_2d=False), BaseLoss(nn.SmoothL1Loss(beta=.5), is_2d=False)):
        assert torch.equal(loss(x, -x), F.smooth_l1_loss(x, -x, beta=.5))
        assert loss.activation(x) is x and loss.decodes(x) is x and loss.reduction=='mean'

def test_own_loss_in_base_loss():
    class Own(nn.Module):
        def forward(self, p, t, scale=1.): self.shapes = p.shape,t.shape; return scale*(p.sum(1)-t).mean()
    loss = BaseLoss(Own, axis=1)
    assert loss(torch.ones(2,3,4), torch.ones(2,4), scale=2.)==4
    assert loss.func.shapes==((8,3),(8,))
    assert not hasattr(loss, 'reduction')

# torch's losses keep fastai's rule: `get_preds` gives their raw outputs. But what they decode to is known.
@pytest.mark.parametrize('f', [F.cross_entropy, nn.CrossEntropyLoss(), F.nll_loss, nn.NLLLoss(),
                               partial(F.cross_entropy, label_smoothing=.1), partial(partial(nn.CrossEntropyLoss()))])
@pytest.mark.parametrize('shape', [(4,3), (4,3,2), (3,)])
def test_torchs_class_losses(f, shape):
    x = torch.randn(shape)
    assert loss_activation(f)(x) is x
    assert torch.equal(loss_decodes(f)(x), x.argmax(0 if len(shape)==1 else 1))

@pytest.mark.parametrize('f', [F.binary_cross_entropy_with_logits, nn.BCEWithLogitsLoss(),
                               partial(F.binary_cross_entropy_with_logits, reduction='sum')])
@pytest.mark.parametrize('act', [lambda x: x, torch.sigmoid, torch.tanh])
def test_torchs_binary_losses(f, act):
    x = torch.tensor([-.1,.1,3.])
    assert loss_activation(f)(x) is x
    assert loss_decodes(f, act)(act(x)).tolist()==[False,True,True]

@pytest.mark.parametrize('f', [F.mse_loss, nn.L1Loss(), lambda p,t: 0])
def test_other_losses_decode_to_themselves(f):
    x = torch.randn(3)
    assert loss_activation(f)(x) is x and loss_decodes(f)(x) is x

def test_any_object_with_the_methods_counts():
    class Own:
        def __call__(self, p, t): return p.mean()
        def activation(self, x): return x+1
        def decodes(self, x): return x*2
    assert loss_activation(partial(Own()))(1)==2 and loss_decodes(Own())(loss_activation(Own())(1))==4

# one loss per item

def no_way(p, t): return ((p-t)**2).mean()
def by_arg(p, t, reduction='mean'): return F.mse_loss(p, t, reduction=reduction)
def by_kw(p, t, **kw): return F.mse_loss(p, t, **kw)
class Forward(nn.Module):
    def forward(self, p, t, reduction='mean'): return F.mse_loss(p, t, reduction=reduction)
class NoForward(nn.Module):
    def forward(self, p, t): return ((p-t)**2).mean()

@pytest.mark.parametrize('f', [
    F.mse_loss, nn.MSELoss(), partial(nn.MSELoss()), nn.MSELoss(reduction='sum'), MSELossFlat(), by_arg, by_kw, Forward(),
    BaseLoss(Forward, is_2d=False), partial(F.mse_loss, reduction='sum'), partial(by_kw), F.huber_loss,
    torch.compile(nn.MSELoss(), backend='eager')])
def test_none_reduce(f):
    p,t = torch.randn(5),torch.randn(5)
    before = f(p, t)
    with none_reduce(f) as each: assert each(p, t).shape==(5,)
    assert torch.equal(f(p, t), before)
    with pytest.raises(KeyError):
        with none_reduce(f) as each: raise KeyError
    assert torch.equal(f(p, t), before)
    with none_reduce(f) as one, none_reduce(one) as two: assert two(p, t).shape==(5,)
    assert torch.equal(f(p, t), before)

@pytest.mark.parametrize('f', [no_way, partial(no_way), NoForward(), BaseLoss(NoForward), partial(NoForward()), max])
def test_none_reduce_says_that_there_is_no_way(f):
    with pytest.raises(TypeError, match="Write `def my_loss"):
        with none_reduce(f): raise AssertionError('not reached')

# mistakes: what is wrong, and what to write

p3,c3 = torch.randn(8,3),torch.arange(8)%3   # all classes, whatever the seed
flat,strict = CrossEntropyLossFlat(),partial(check_loss, F.cross_entropy)

@pytest.mark.parametrize('call,exc,says', [
    (lambda: flat(p3, c3.float()), TypeError, ['CrossEntropyLossFlat', 'float32[8]', '[8]', 'y.long()', '[8, 3]']),
    (lambda: flat(p3, F.one_hot(c3, 3)), ValueError, ['one-hot', '`y.argmax(1)`', '[8, 3]']),
    (lambda: flat(p3, c3[:4]), ValueError, ['[8, 3]', '3 classes', 'should have shape [8]', '[4]']),
    (lambda: flat(p3[:,:1], c3), ValueError, ['always 0', 'BCEWithLogitsLossFlat']),
    (lambda: flat(torch.tensor(1.), c3), ValueError, ['[]', 'always 0']),
    (lambda: flat(torch.randn(4,6,3), torch.zeros(6,4).long()), ValueError, ['[4, 6]', '[6, 4]']),
    (lambda: flat(torch.randn(2,3,4,4), torch.zeros(2,4,4).long()), ValueError, ['axis=...']),
    (lambda: CrossEntropyLossFlat(axis=3)(p3, c3), IndexError, ['out of range']),
    (lambda: flat((p3,p3), c3), TypeError, ['tensor of predictions', '`tuple`', 'self.learn.pred = self.pred[0]']),
    (lambda: flat(p3, [0]*8), TypeError, ['tensor of targets', '`list`']),
    (lambda: FocalLossFlat()(p3, c3.float()), TypeError, ['FocalLossFlat', 'y.long()']),
    (lambda: BaseLoss(nn.MSELoss, is_2d=False)(p3, c3.float()), ValueError, ['`MSELoss`', '[8, 3]', '[8]']),
    (lambda: MSELossFlat()(torch.randn(2,3), torch.randn(3,2)), ValueError, ['[2, 3]', '[3, 2]']),
    (lambda: BCEWithLogitsLossFlat()(p3, c3), ValueError, ['[8, 3]', '[8]']),
    (lambda: strict(p3, c3.double()), TypeError, ['`cross_entropy`', 'float64[8]', 'y.long()']),
    (lambda: strict(p3, c3[:,None]), ValueError, ['y.squeeze()', 'CrossEntropyLossFlat()']),
    (lambda: check_loss(nn.CrossEntropyLoss(), p3[:,:1], c3), ValueError, ['`CrossEntropyLoss`', 'always 0']),
    (lambda: check_loss(nn.MSELoss(), p3[:,:1], p3[:,0]), ValueError, ['`MSELoss`', '[8, 1]', '[8]', 'y[:,None]']),
    (lambda: check_loss(partial(F.l1_loss, reduction='sum'), p3[:,:1], torch.randn(8)), ValueError, ['`l1_loss`']),
])
def test_mistakes(call, exc, says):
    with pytest.raises(exc) as e: call()
    assert [s for s in says if s not in str(e.value)]==[]

@pytest.mark.parametrize('f,p,ts', [
    (no_way, p3, (c3.float(),)), (F.mse_loss, (p3,p3), (c3,)), (F.mse_loss, p3, (c3,c3)), (F.mse_loss, p3, ()),
    (F.mse_loss, p3, ([1],)), (F.cross_entropy, p3, (p3.softmax(1),)), (nn.CosineEmbeddingLoss(), p3, (c3,)),
    (flat, p3, (c3[:,None],)), (F.mse_loss, c3[0], (c3[0],))])
def test_what_is_unknown_passes(f, p, ts): check_loss(f, p, *ts)

@pytest.mark.parametrize('a,b', [((8,),(8,1)), ((64,8),(64,4,2)), ((64,4,2),(64,8)), ((4,6),(24,)), ((),(1,1)),
                                 ((0,3),(0,)), ((1,8),(8,1))])
def test_harmless_differences(a, b): assert MSELossFlat(reduction='sum')(torch.ones(a), torch.ones(b))==0

def raised(f, *args):
    with pytest.raises(Exception) as e: f(*args)
    return e.value

def test_range_is_explained_after_the_fact():
    "The exception stays torch's; the explanation is a note"
    e = raised(flat, p3, c3+1)
    assert type(e)==type(raised(F.cross_entropy, p3, c3+1)) and str(e)==str(raised(F.cross_entropy, p3, c3+1))
    assert e.__notes__==['3 classes want targets in 0...2, but yours go from 1 to 3. Count from 0: write `y-1`.']
    e = raised(FocalLossFlat(axis=1), torch.randn(2,3,4), torch.full((2,4), 7))
    assert e.__notes__==['3 classes want targets in 0...2, but yours go from 7 to 7. '
                         'Let the model give 8 numbers for each sample, or number the classes from 0.']
    hint = loss_hint(CrossEntropyLossFlat(ignore_index=255).func, p3, torch.tensor([255,-1,0]))
    assert hint==('3 classes want targets in 0...2, but yours go from -1 to 0. '
                  'To skip targets of -1, write `ignore_index=-1`.')

@pytest.mark.parametrize('f,p,ts,says', [
    (F.cross_entropy, p3, (c3,), ''), (F.cross_entropy, p3, (torch.full((8,), -100),), ''), (F.mse_loss, p3, (p3,), ''),
    (F.cross_entropy, p3, (c3+5,), '0...2, but yours go from'), (no_way, p3, (c3+5,), ''), (flat, p3, (c3+5,), ''),
    (F.cross_entropy, p3.to('meta'), (c3,), 'Predictions are on meta, targets on cpu'),
    (F.cross_entropy, p3.to('meta'), (c3.to('meta'),), 'run one batch on the CPU'),
    (F.mse_loss, None, (p3,), 'is there a `return`'), (no_way, (p3,p3), (p3,), 'pred[0]'), (flat, [p3], (c3,), 'pred[0]'),
    (F.binary_cross_entropy_with_logits, p3, (p3.long(),), 'y.float()'),
    (F.cross_entropy, p3, (), ''), (F.cross_entropy, p3, (c3[:0],), ''), (F.cross_entropy, p3, (c3.int(),), 'y.long()')])
def test_hints(f, p, ts, says):
    hint = loss_hint(f, p, *ts)
    assert says in hint and bool(says)==bool(hint)

def test_other_errors_are_not_changed():
    class Own(nn.Module):
        def forward(self, p, t): raise RuntimeError('mine')
    assert not hasattr(raised(BaseLoss(Own), p3, c3), '__notes__')

@pytest.mark.parametrize('cls', [nn.CrossEntropyLoss, CrossEntropyLossFlat, FocalLoss, FocalLossFlat, LabelSmoothingCrossEntropy, LabelSmoothingCrossEntropyFlat])
def test_class_weights_are_settings_that_a_file_does_not_change(cls, tmp_path):
    "Those of `FocalLoss` were saved, so an older file put them in place of the ones that were passed"
    from learnkit.all import DataLoaders, Learner
    from learnkit.optim.inventory import state_outside_model
    data = [(torch.randn(4, 3), torch.tensor([0,1,2,0]))]
    old,new = (Learner(DataLoaders(data, data), nn.Linear(3, 3), cls(weight=torch.tensor([1.,2.,n])), path=tmp_path) for n in (3.,9.))
    assert state_outside_model(old)=={}
    old.save('x')
    new.load('x')
    assert getattr(new.loss_func, 'func', new.loss_func).weight[-1]==9
