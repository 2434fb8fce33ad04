"""Monte Carlo dropout and test-time augmentation equal hand-written passes, and leave the Learner unchanged."""
import pytest, torch
from fastcore.basics import noop
from torch import nn
from torch.optim import SGD
from learnkit.data.loaders import DataLoaders
from learnkit.loop.events import CancelBatch, CancelEpoch, CancelFit, CancelValid
from learnkit.learner.learner import Learner
from learnkit.measure.losses import CrossEntropyLossFlat
from learnkit.measure.metrics import accuracy
from learnkit.observe.tta import MCDropoutCallback
from learnkit.observe.tta import AugmentCallback
from toys import at, throw

class Quiet(Learner):
    "A Learner that prints nothing"
    def __init__(self, *args, **kw):
        super().__init__(*args, **kw)
        self.logger = lambda *a: None
        self.remove_cb(self.progress)

def params(m): return torch.cat([p.detach().flatten() for p in m.parameters()])

# Monte Carlo dropout

def dropper(p=.5): return nn.Sequential(nn.Linear(4,16), nn.ReLU(), nn.Dropout(p), nn.BatchNorm1d(16), nn.Linear(16,3))
def rows(n=24, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(n,4,generator=g),torch.randint(0, 3, (n,), generator=g)
def loaders(bs=8): return [[(x[i:i+bs],y[i:i+bs]) for i in range(0, len(x), bs)] for x,y in (rows(), rows(seed=1))]
def classifier(cbs=None, model=None, **kw):
    torch.manual_seed(0)
    model = dropper() if model is None else model
    return Quiet(DataLoaders(*loaders()), model, CrossEntropyLossFlat(), SGD, lr=.1, cbs=cbs, **kw)
def modes(m): return [o.training for o in m.modules()]

def test_mc_dropout_equals_plain_passes():
    learn = classifier()
    learn.fit(1)
    torch.manual_seed(3)
    got = torch.stack([learn.get_preds(cbs=MCDropoutCallback())[0] for _ in range(3)])
    m = learn.model.eval()
    m[2].train()
    torch.manual_seed(3)
    def one_pass(): return torch.cat([m(x) for x,_ in learn.dls.valid]).softmax(-1)
    with torch.no_grad(): want = torch.stack([one_pass() for _ in range(3)])
    assert torch.equal(got, want) and not torch.equal(got[0], got[1])

@pytest.mark.parametrize('exc', [ValueError, KeyboardInterrupt, CancelBatch, CancelValid, CancelEpoch, CancelFit])
@pytest.mark.parametrize('run', ['get_preds', 'validate', 'fit'])
def test_mc_dropout_is_off_afterwards(run, exc):
    for ev in ('before_batch', 'after_pred', 'before_validate', 'after_validate', 'after_epoch'):
        learn = classifier([MCDropoutCallback(), at(ev, throw(exc), lambda cb: not cb.learn.training)])
        learn.model.eval()
        before = modes(learn.model)
        try: getattr(learn, run)(*[1]*(run=='fit'))
        except BaseException as e: assert isinstance(e, (exc, RuntimeError))
        if run!='fit' or not learn.model.training: assert modes(learn.model)==before, ev
        else: assert all(modes(learn.model))
        assert not learn.mc_dropout.switched

def test_mc_dropout_does_not_change_training_modes():
    def first_validation(cb): return not cb.learn.training and cb.learn.epoch==0
    ok = []
    learn = classifier([MCDropoutCallback(), at('before_batch', throw(CancelEpoch), first_validation),
                        at('before_pred', lambda cb: ok.append(modes(cb.learn.model)))])
    learn.fit(2)
    train,valid = [True]*6,[False]*3+[True]+[False]*2
    assert ok==[train]*6+[valid]*3   # the first validation is cancelled

@pytest.mark.parametrize('m', [nn.TransformerEncoderLayer(4, 2, 8, dropout=.5, batch_first=True),
                               nn.LSTM(4, 4, 2, dropout=.5), nn.GRU(4, 4, 2, dropout=.5), nn.Dropout(.5)])
def test_mc_dropout_inside_layers(m):
    x = torch.randn(3, 5, 4)
    learn = Quiet(DataLoaders([(x,)]), m, cbs=MCDropoutCallback())
    first = lambda p: p[0] if isinstance(p, tuple) else p
    a,b = (first(learn.get_preds(dl=[(x,)])[0]) for _ in range(2))
    assert not torch.equal(a, b)
    assert all(modes(m))   # unchanged

def test_mc_dropout_without_dropout():
    learn = classifier(model=nn.Linear(4,3))
    with pytest.warns(UserWarning, match='no dropout'): learn.get_preds(cbs=MCDropoutCallback())

# test-time augmentation

flips = [lambda x: x.flip(-1), lambda x: -x, lambda x: x+1]
def trained():
    learn = classifier(metrics=accuracy)
    learn.fit(1)
    return learn

@torch.no_grad()
def probs(learn, f=noop): return torch.cat([learn.model.eval()(f(x)) for x,_ in loaders()[1]]).softmax(-1)

def test_tta_equals_plain_passes():
    learn = trained()
    plain,aug = probs(learn),torch.stack([probs(learn, f) for f in flips])
    targs = rows(seed=1)[1]
    preds,t = learn.tta(aug=flips)
    torch.testing.assert_close(preds, torch.lerp(aug.mean(0), plain, .25))
    assert torch.equal(t, targs)
    assert torch.equal(learn.tta(aug=flips, beta=1.)[0], plain)
    torch.testing.assert_close(learn.tta(aug=flips, beta=0.)[0], aug.mean(0))
    (a,p),_ = learn.tta(aug=flips, beta=None)
    assert torch.equal(p, plain); torch.testing.assert_close(a, aug.mean(0))
    assert torch.equal(learn.tta(aug=flips, use_max=True)[0], torch.cat([aug, plain[None]]).amax(0))
    torch.testing.assert_close(learn.tta(1, None, 4, flips, 0.)[0], (aug.sum(0)+aug[0])/4)   # the fourth pass uses the first augmentation again
    logits,_ = learn.tta(0, aug=flips[0], n=1, beta=0., act=noop)
    want,_ = learn.get_preds(0, cbs=AugmentCallback(flips[0]))
    torch.testing.assert_close(logits.softmax(-1), want)

def test_tta_of_a_dataset_with_transforms():
    "A dataset with `set_split_idx`, as fastai's, uses its training transforms in the passes only"
    from contextlib import contextmanager
    x,y = rows(seed=1)
    class Own(torch.utils.data.TensorDataset):
        training = False
        @contextmanager
        def set_split_idx(self, i): self.training = i==0; yield; self.training = False
        def __getitem__(self, i): x,y = super().__getitem__(i); return (-x if self.training else x),y
    learn = trained()
    dl = torch.utils.data.DataLoader(Own(x, y), 8)
    own,_ = learn.tta(dl=dl)
    assert torch.equal(own, learn.tta(dl=[*zip(x.split(8), y.split(8))], aug=torch.neg)[0]) and not torch.equal(own, learn.get_preds(dl=dl)[0]) and not dl.dataset.training

def test_tta_does_not_change_training():
    "TTA in a fit, with random augmentation and a shuffled loader, does not change the weights"
    def weights(*cbs):
        x,y = rows()
        torch.manual_seed(0)
        dls = DataLoaders.from_tensors(x, y, bs=4, seed=0)
        learn = Quiet(dls, dropper(), CrossEntropyLossFlat(), SGD, lr=.1, cbs=cbs)
        torch.manual_seed(7)
        learn.fit(2)
        return params(learn.model)
    seen = []
    def look(cb):
        if cb.learn.mode=='fit': seen.append(cb.learn.tta(0, aug=lambda x: x+.1*torch.randn_like(x), n=2)[1])
    assert torch.equal(weights(at('after_batch', look, run_valid=False), at('after_epoch', look)), weights())
    assert len(seen)==12 and all(torch.equal(s, seen[0]) for s in seen)   # in the order of the dataset

def test_tta_of_a_shuffled_loader_is_in_order():
    x,y = rows()
    m = trained().model
    dl = torch.utils.data.DataLoader(list(zip(x,y)), batch_size=5, shuffle=True, drop_last=True)
    learn = Quiet(DataLoaders(dl), m, CrossEntropyLossFlat())
    preds,t = learn.tta(0, aug=flips[:1], beta=.5)
    with torch.no_grad(): want = (m.eval()(x).softmax(-1) + m(x.flip(-1)).softmax(-1))/2
    torch.testing.assert_close(preds, want)
    assert torch.equal(t, y)

def test_tta_raises_for_a_loader_that_it_cannot_put_in_order():
    x,y = rows()
    class RandomOrder:
        def __iter__(self):
            i = torch.randperm(len(x))
            return iter([(x[i],y[i])])
    with pytest.raises(ValueError, match='a different order each time'): trained().tta(dl=RandomOrder(), aug=noop)

def test_tta_of_inputs_by_name_and_several_outputs():
    class Named(nn.Module):
        def __init__(self): super().__init__(); self.lin = nn.Linear(4, 2)
        def forward(self, a, b): return dict(up=self.lin(a+b), down=self.lin(a-b))
    b = dict(a=torch.randn(6,4), b=torch.randn(6,4), y=torch.randn(6,2))
    learn = Quiet(DataLoaders([b]), Named(), lambda p,y: (p['up']-y).pow(2).mean())
    def swap(d): return dict(a=d['b'], b=d['a'])
    preds,targs = learn.tta(0, aug=[swap], beta=.5)
    with torch.no_grad(): up,down,ups,downs = (m for d in (b, swap(b)) for m in learn.model(d['a'], d['b']).values())
    torch.testing.assert_close(preds, dict(up=(up+ups)/2, down=(down+downs)/2))
    assert torch.equal(targs, b['y'])

@pytest.mark.parametrize('kw,says', [
    (dict(), '`aug=`'), (dict(aug=[]), '`aug=`'), (dict(aug='flip'), 'a str'), (dict(aug=flips, n=0), '1 or more'),
    (dict(aug=noop, dl=iter([])), '5 times'),
    (dict(aug=lambda x: x[1:]), '8 samples, as many as it receives, but it returned 1 with 7'), (dict(aug=lambda x: (x, x)), 'it returned 2 with 8')])
def test_tta_mistakes(kw, says):
    learn = trained()
    state = torch.get_rng_state()
    with pytest.raises((TypeError, ValueError), match=says): learn.tta(**kw)
    assert torch.equal(torch.get_rng_state(), state) and not any(isinstance(cb, AugmentCallback) for cb in learn.cbs)

def test_another_order_of_several_targets():
    "With one target it raised an error; with several, predictions of different samples were averaged"
    class Shuffled:
        def __iter__(self):
            for i in range(2): yield torch.randn(4,4),torch.randint(0, 3, (4,)),torch.randn(4)
    learn = Quiet(DataLoaders(Shuffled(), Shuffled(), n_inp=1), nn.Linear(4,3), lambda pred, a, b: nn.functional.cross_entropy(pred, a))
    with pytest.raises(ValueError, match='targets of two passes differ'): learn.tta(aug=noop)
