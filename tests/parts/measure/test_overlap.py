"""Dice and Jaccard against scikit-learn, however the data is cut into batches, and the loss against a loop over the classes"""
from functools import partial
from types import SimpleNamespace
import pytest, torch
from hypothesis import given, strategies as st
from sklearn.metrics import f1_score, jaccard_score
from torch import nn
from learnkit.learner.learner import Learner
from learnkit.measure.metrics import Dice, DiceLoss, DiceMulti, JaccardCoeff, JaccardCoeffMulti, foreground_acc
from toys import draws

def masks(seed, n, classes, ignored=0., size=3):
    g = torch.Generator().manual_seed(seed)
    pred,targ = torch.randn(n, classes, size, size, generator=g),torch.randint(classes, (n,size,size), generator=g)
    return pred,targ.masked_fill(torch.rand(n, size, size, generator=g)<ignored, -100)

def run(metric, pred, targ, cuts):
    metric.reset()
    for p,t in zip(pred.tensor_split(cuts), targ.tensor_split(cuts)):
        if len(p): metric.accumulate(SimpleNamespace(pred=p, yb=(t,)))
    return metric.value

@given(st.integers(0, 99), st.integers(1, 9), st.integers(2, 5), st.sampled_from([0.,.3]), st.lists(st.integers(1, 8), max_size=3))
@draws(30)
def test_against_sklearn(seed, n, classes, ignored, cuts):
    pred,targ = masks(seed, n, classes, ignored)
    keep = targ!=-100
    if not keep.any(): return
    y,p = targ[keep],pred.argmax(1)[keep]
    seen = sorted({*y.tolist(), *p.tolist()})
    for met,f in ((DiceMulti(), f1_score), (JaccardCoeffMulti(), jaccard_score)):
        assert run(met, pred, targ, sorted(cuts))==pytest.approx(f(y, p, labels=seen, average='macro', zero_division=0))
    if classes==2 and 1 in seen:
        for met,f in ((Dice(), f1_score), (JaccardCoeff(), jaccard_score)):
            assert run(met, pred, targ, sorted(cuts))==pytest.approx(f(y, p, zero_division=0))

@pytest.mark.parametrize('axis', [1, -1])
def test_the_axis_of_the_classes(axis):
    pred,targ = masks(0, 5, 3)
    other = pred.movedim(1, axis)
    assert run(DiceMulti(axis=axis), other, targ, [])==run(DiceMulti(), pred, targ, [])
    assert DiceLoss(axis=axis)(other, targ)==pytest.approx(DiceLoss()(pred, targ).item(), rel=1e-5)
    assert foreground_acc(other, targ, axis=axis)==foreground_acc(pred, targ)

def test_the_state_continues():
    pred,targ = masks(1, 6, 4)
    half,rest = DiceMulti(),DiceMulti()
    run(half, pred[:3], targ[:3], [])
    rest.load_state_dict(half.state_dict())
    rest.accumulate(SimpleNamespace(pred=pred[3:], yb=(targ[3:],)))
    assert rest.value==run(DiceMulti(), pred, targ, [])

@pytest.mark.parametrize('square', [True, False])
@pytest.mark.parametrize('reduction,size', [('none', (4,3)), ('sum', ()), ('mean', ())])
def test_the_loss_by_a_loop(square, reduction, size):
    pred,targ = masks(2, 4, 3)
    pred.requires_grad_()
    loss = DiceLoss(reduction=reduction, square_in_union=square, smooth=.5)(pred, targ)
    prob,each = pred.softmax(1),[]
    for i in range(4):
        for c in range(3):
            p,t = prob[i,c],(targ[i]==c).float()
            each.append(1 - (2*(p*t).sum()+.5)/((p**2 if square else p).sum()+t.sum()+.5))
    each = torch.stack(each).view(4, 3)
    expected = each if reduction=='none' else getattr(each, reduction)()
    assert loss.shape==size and torch.allclose(loss, expected)
    grads = [torch.autograd.grad(o.sum(), pred, retain_graph=True)[0] for o in (loss, expected)]
    assert torch.allclose(*grads)

def test_targets_that_are_no_class():
    "A class number that the predictions do not have is an error, not a cell of another class"
    pred,targ = masks(3, 2, 3)
    with pytest.raises(Exception): DiceLoss()(pred, targ+3)
    targ[0,0,0] = 3
    pred[0,0,0,0] = 99.   # taken for class 0
    with pytest.raises(Exception) as e: run(DiceMulti(), pred, targ, [])
    assert any('dice' in n for n in e.value.__notes__)

@pytest.mark.parametrize('make', [DiceMulti, JaccardCoeffMulti, lambda: partial(foreground_acc, bkg_idx=1)])
def test_what_the_loss_ignores_does_not_count(make):
    "Only -100 was ignored; a 255 raised, and in `foreground_acc` was a mistake"
    pred,targ = masks(5, 6, 3)
    void = targ.clone()
    void[:,0] = 255
    learn = Learner([[(pred[:2], void[:2]), (pred[2:], void[2:])]]*2, nn.Identity(), nn.CrossEntropyLoss(ignore_index=255), metrics=make())
    whole = Learner([[(pred[:,:,1:], targ[:,1:])]]*2, nn.Identity(), nn.CrossEntropyLoss(), metrics=make())
    assert learn.validate()[1]==pytest.approx(whole.validate()[1])
    assert run(DiceMulti(ignore_index=255), pred, void, [2])==run(DiceMulti(), pred[:,:,1:], targ[:,1:], [])

def test_the_foreground_of_an_epoch_counts_each_pixel_once():
    "Batches were weighted by all of their pixels, and one without foreground made the epoch NaN"
    pred,targ = masks(6, 6, 3)
    targ[0],targ[3:5] = 0,0
    sizes = 1,2,3
    learn = Learner([[*zip(pred.split(sizes), targ.split(sizes))]]*2, nn.Identity(), nn.CrossEntropyLoss(), metrics=foreground_acc)
    assert learn.validate()[1]==pytest.approx(foreground_acc(pred, targ).item())
