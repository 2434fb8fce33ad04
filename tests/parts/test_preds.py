"Recurrent models, dropout in prediction, test-time augmentation: against loops written by hand, and what they leave behind"
import pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD
from learnkit.events import *
from learnkit.callback import *
from learnkit.dispatcher import *
from learnkit.gather import *
from learnkit.builtin import *
from learnkit.observe.mc_dropout import MCDropoutCallback
from learnkit.observe.tta import AugmentCallback
from learnkit.optim.rnn import *
from fastcore.basics import noop
from learnkit.data import DataLoaders
from learnkit.learner import Learner
from learnkit.losses import *
from learnkit.metrics import accuracy
import learnkit.predict
from oracle import FIT
from toys import at, throw

class Quiet(Learner):
    def __init__(self, *args, **kw): super().__init__(*args, **kw); self.logger = lambda *a: None; self.remove_cb(self.progress)

def params(m): return torch.cat([p.detach().flatten() for p in m.parameters()])

# -- recurrent models

class Recurrent(nn.Module):
    def __init__(self, listy=False):
        super().__init__()
        self.rnn,self.drop,self.lin,self.resets,self.listy = nn.GRU(3,5,batch_first=True),nn.Dropout(.3),nn.Linear(5,2),0,listy
        self.h = None
    def reset(self): self.h = None; self.resets += 1
    def forward(self, x):
        raw,self.h = self.rnn(x, self.h)
        self.h = self.h.detach()
        out = self.drop(raw)
        return self.lin(out),[None,raw] if self.listy else raw,[None,out] if self.listy else out

def sequences(n=3, bs=4, steps=6, seed=0):
    g = torch.Generator().manual_seed(seed)
    return [(torch.randn(bs,steps,3,generator=g), torch.randn(bs,steps,2,generator=g)) for _ in range(n)]

def recurrent(cbs, listy=False, bs_valid=4):
    torch.manual_seed(1)
    return Quiet(DataLoaders(sequences(), sequences(2, bs_valid, seed=1)), Recurrent(listy), MSELossFlat(), SGD, lr=.1, cbs=cbs)

def by_hand(alpha, beta, epochs=2):
    torch.manual_seed(1)
    m = Recurrent()
    opt,losses = SGD(m.parameters(), lr=.1),[]
    for _ in range(epochs):
        m.train(); m.reset()
        for x,y in sequences():
            pred,raw,out = m(x)
            loss = F.mse_loss(pred.reshape(-1), y.reshape(-1))
            losses.append(loss.item())
            if alpha: loss = loss + alpha*out.pow(2).mean()
            if beta:  loss = loss + beta*(raw[:,1:]-raw[:,:-1]).pow(2).mean()
            loss.backward(); opt.step(); opt.zero_grad()
    return params(m),losses

@pytest.mark.parametrize('alpha,beta', [(0,0), (2.,0), (0,1.), (2.,1.)])
@pytest.mark.parametrize('listy', [False, True])
def test_rnn_as_by_hand(alpha, beta, listy):
    want,losses = by_hand(alpha, beta)
    learn = recurrent(rnn_cbs(alpha, beta)[::-1], listy)   # the order of adding makes no difference
    learn.fit(2)
    assert torch.equal(params(learn.model), want)
    assert learn.recorder.smooth_loss.raw==losses   # recorded without the penalties
    assert learn.get_preds()[0].shape==(8,6,2)
    assert learn.rnn.out is None and learn.model.h is None

def test_rnn_same_as_fastai():
    theirs = pytest.importorskip('fastai.callback.rnn')
    ws = []
    for lib in (rnn_cbs, theirs.rnn_cbs):
        learn = recurrent(lib(2., 1.))
        learn.fit(2)
        ws.append(params(learn.model))
    assert torch.equal(*ws)

def test_validation_within_training_leaves_no_state():
    "Of batches of another size: training could not go on with that state"
    recurrent([*rnn_cbs(1., 1.), at('after_batch', lambda cb: cb.learn.validate() if cb.learn.mode=='fit' else None, run_valid=False)], bs_valid=3).fit(1)

def test_reset_whatever_happens():
    for exc in (ValueError, KeyboardInterrupt, CancelFit, CancelEpoch):
        learn = recurrent([*rnn_cbs(), at('after_batch', throw(exc))])
        try: learn.fit(1)
        except (ValueError, KeyboardInterrupt): pass
        assert learn.model.h is None and learn.rnn.raw_out is None

def test_one_step_has_no_temporal_penalty():
    torch.manual_seed(1)
    learn = Quiet(DataLoaders(sequences(2, steps=1)), Recurrent(), MSELossFlat(), SGD, lr=.1, cbs=rnn_cbs(0, 1.))
    learn.fit(1)
    assert params(learn.model).isfinite().all()

@pytest.mark.parametrize('model,cbs,says', [
    (nn.Linear(3,2), ModelResetter, 'def reset'), (nn.Linear(3,2), RNNCallback, 'before dropout'), (Recurrent(), RNNRegularizer(1.), 'rnn_cbs')])
def test_rnn_mistakes(model, cbs, says):
    with pytest.raises((TypeError, ValueError), match=says) as e: Quiet([sequences()], model, MSELossFlat(), cbs=cbs).fit(1)
    assert 'then failed' not in ''.join(getattr(e.value, '__notes__', ()))

# -- Monte Carlo dropout

def dropper(p=.5): return nn.Sequential(nn.Linear(4,16), nn.ReLU(), nn.Dropout(p), nn.BatchNorm1d(16), nn.Linear(16,3))
def rows(n=24, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(n,4,generator=g),torch.randint(0, 3, (n,), generator=g)
def loaders(bs=8): return [[(x[i:i+bs],y[i:i+bs]) for i in range(0, len(x), bs)] for x,y in (rows(), rows(seed=1))]
def classifier(cbs=None, model=None, **kw):
    torch.manual_seed(0)
    return Quiet(DataLoaders(*loaders()), dropper() if model is None else model, CrossEntropyLossFlat(), SGD, lr=.1, cbs=cbs, **kw)
def modes(m): return [o.training for o in m.modules()]

def test_mc_dropout_by_hand():
    learn = classifier()
    learn.fit(1)
    torch.manual_seed(3)
    got = torch.stack([learn.get_preds(cbs=MCDropoutCallback())[0] for _ in range(3)])
    m = learn.model.eval()
    m[2].train()
    torch.manual_seed(3)
    with torch.no_grad(): want = torch.stack([torch.cat([m(x) for x,_ in learn.dls.valid]).softmax(-1) for _ in range(3)])
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
    learn = classifier([MCDropoutCallback(), at('before_batch', throw(CancelEpoch), lambda cb: not cb.learn.training and cb.learn.epoch==0),
                        at('before_pred', lambda cb: ok.append(modes(cb.learn.model)))])
    ok = []
    learn.fit(2)
    train,valid = [True]*6,[False]*3+[True]+[False]*2
    assert ok==[train]*6+[valid]*3   # the first validation was cancelled

@pytest.mark.parametrize('m', [nn.TransformerEncoderLayer(4, 2, 8, dropout=.5, batch_first=True), nn.LSTM(4, 4, 2, dropout=.5), nn.GRU(4, 4, 2, dropout=.5), nn.Dropout(.5)])
def test_mc_dropout_inside_of_layers(m):
    x = torch.randn(3, 5, 4)
    learn = Quiet(DataLoaders([(x,)]), m, cbs=MCDropoutCallback())
    first = lambda p: p[0] if isinstance(p, tuple) else p
    a,b = (first(learn.get_preds(dl=[(x,)])[0]) for _ in range(2))
    assert not torch.equal(a, b)
    assert all(modes(m))   # as it was made

def test_mc_dropout_without_dropout():
    with pytest.warns(UserWarning, match='no dropout'): classifier(model=nn.Linear(4,3)).get_preds(cbs=MCDropoutCallback())

# -- test-time augmentation

flips = [lambda x: x.flip(-1), lambda x: -x, lambda x: x+1]
def trained():
    learn = classifier(metrics=accuracy)
    learn.fit(1)
    return learn

@torch.no_grad()
def probs(learn, f=noop): return torch.cat([learn.model.eval()(f(x)) for x,_ in loaders()[1]]).softmax(-1)

def test_tta_by_hand():
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
    torch.testing.assert_close(learn.tta(1, None, 4, flips, 0.)[0], (aug.sum(0)+aug[0])/4)   # the first takes its turn again
    torch.testing.assert_close(learn.tta(0, aug=flips[0], n=1, beta=0., act=noop)[0].softmax(-1), learn.get_preds(0, cbs=AugmentCallback(flips[0]))[0])

def test_tta_leaves_training_alone():
    "In the middle of a fit, with random augmentation and a loader that shuffles"
    def weights(*cbs):
        x,y = rows()
        torch.manual_seed(0)
        learn = Quiet(DataLoaders.from_tensors(x, y, bs=4, seed=0), dropper(), CrossEntropyLossFlat(), SGD, lr=.1, cbs=cbs)
        torch.manual_seed(7)
        learn.fit(2)
        return params(learn.model)
    seen = []
    def look(cb):
        if cb.learn.mode=='fit': seen.append(cb.learn.tta(0, aug=lambda x: x+.1*torch.randn_like(x), n=2)[1])
    assert torch.equal(weights(at('after_batch', look, run_valid=False), at('after_epoch', look)), weights())
    assert len(seen)==12 and all(torch.equal(s, seen[0]) for s in seen)   # in the order of the data set

def test_tta_shuffled_is_in_order():
    x,y = rows()
    m = trained().model
    dl = torch.utils.data.DataLoader(list(zip(x,y)), batch_size=5, shuffle=True, drop_last=True)
    learn = Quiet(DataLoaders(dl), m, CrossEntropyLossFlat())
    preds,t = learn.tta(0, aug=flips[:1], beta=.5)
    with torch.no_grad(): want = (m.eval()(x).softmax(-1) + m(x.flip(-1)).softmax(-1))/2
    torch.testing.assert_close(preds, want)
    assert torch.equal(t, y)

def test_tta_refuses_what_it_cannot_put_in_order():
    x,y = rows()
    class Mess:
        def __iter__(self):
            i = torch.randperm(len(x))
            return iter([(x[i],y[i])])
    with pytest.raises(ValueError, match='another order each time'): trained().tta(dl=Mess(), aug=noop)

def test_tta_of_names_and_of_several_outputs():
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
    (dict(), '`aug=`'), (dict(aug=[]), '`aug=`'), (dict(aug='flip'), 'a str'), (dict(aug=flips, n=0), '1 or more'), (dict(aug=noop, dl=iter([])), '5 times'),
    (dict(aug=lambda x: x[1:]), 'as many items'), (dict(aug=lambda x: (x, x)), 'as many inputs')])
def test_tta_mistakes(kw, says):
    learn = trained()
    state = torch.get_rng_state()
    with pytest.raises((TypeError, ValueError), match=says): learn.tta(**kw)
    assert torch.equal(torch.get_rng_state(), state) and not any(isinstance(cb, AugmentCallback) for cb in learn.cbs)
