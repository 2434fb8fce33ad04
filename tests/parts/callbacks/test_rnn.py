"""Recurrent models: AWD-LSTM's penalties equal a plain PyTorch loop, and the hidden state is reset."""
import pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD
from learnkit.data.loaders import DataLoaders
from learnkit.loop.events import CancelEpoch, CancelFit
from learnkit.learner.learner import Learner
from learnkit.measure.losses import MSELossFlat
from learnkit.callbacks.gradients import ModelResetter, RNNCallback, RNNRegularizer, rnn_cbs
from toys import at, throw

class Quiet(Learner):
    "A Learner that prints nothing"
    def __init__(self, *args, **kw):
        super().__init__(*args, **kw)
        self.logger = lambda *a: None
        self.remove_cb(self.progress)

def params(m): return torch.cat([p.detach().flatten() for p in m.parameters()])

class Recurrent(nn.Module):
    def __init__(self, listy=False):
        super().__init__()
        self.rnn,self.drop,self.lin = nn.GRU(3,5,batch_first=True),nn.Dropout(.3),nn.Linear(5,2)
        self.h,self.resets,self.listy = None,0,listy
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
    dls = DataLoaders(sequences(), sequences(2, bs_valid, seed=1))
    return Quiet(dls, Recurrent(listy), MSELossFlat(), SGD, lr=.1, cbs=cbs)

def plain_loop(alpha, beta, epochs=2):
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
def test_rnn_equals_a_plain_loop(alpha, beta, listy):
    want,losses = plain_loop(alpha, beta)
    learn = recurrent(rnn_cbs(alpha, beta)[::-1], listy)   # in either order
    learn.fit(2)
    assert torch.equal(params(learn.model), want)
    assert learn.recorder.smooth_loss.raw==losses   # recorded without the penalties
    assert learn.get_preds()[0].shape==(8,6,2)
    assert learn.rnn.out is None and learn.model.h is None

def test_the_activations_of_a_subclass():
    "They used to be looked for in `learn.rnn`, which is a layer of the model here"
    class Mine(RNNCallback): pass
    want,losses = plain_loop(2., 1.)
    learn = recurrent([ModelResetter(), Mine(), RNNRegularizer(2., 1.)])
    learn.fit(2)
    assert torch.equal(params(learn.model), want)

def test_rnn_same_as_fastai():
    theirs = pytest.importorskip('fastai.callback.rnn')
    ws = []
    for lib in (rnn_cbs, theirs.rnn_cbs):
        learn = recurrent(lib(2., 1.))
        learn.fit(2)
        ws.append(params(learn.model))
    assert torch.equal(*ws)

def test_validation_within_training_leaves_no_state():
    "Its batches have another size, so training could not continue with that state"
    def validate(cb): return cb.learn.validate() if cb.learn.mode=='fit' else None
    recurrent([*rnn_cbs(1., 1.), at('after_batch', validate, run_valid=False)], bs_valid=3).fit(1)

def test_the_state_is_reset_after_any_exception():
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
    (nn.Linear(3,2), ModelResetter, 'def reset'), (nn.Linear(3,2), RNNCallback, 'before dropout'),
    (Recurrent(), RNNRegularizer(1.), 'rnn_cbs')])
def test_rnn_mistakes(model, cbs, says):
    learn = Quiet([sequences()], model, MSELossFlat(), cbs=cbs)
    with pytest.raises((TypeError, ValueError), match=says) as e: learn.fit(1)
    assert 'then failed' not in ''.join(getattr(e.value, '__notes__', ()))
