"MixUp and CutMix equal plain PyTorch loops and fastai's callbacks; after an exception nothing stays behind"
from functools import partial
from itertools import permutations
import pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from torch.distributions import Beta
from torch.nn import functional as F
from torch.optim import SGD
from torch.utils._python_dispatch import TorchDispatchMode
from learnkit.loop.events import *
from learnkit.loop.callback import *
from learnkit.loop.dispatcher import *
from learnkit.learner.results import *
from learnkit.learner.learner import *
from learnkit.learner.predict import *
from learnkit.processes.shard import *
from learnkit.callbacks.accumulate import MicroBatch
from learnkit.callbacks.mixup import *
from learnkit.callbacks.mixup import reduce_loss
from learnkit.data.loaders import DataLoaders
from learnkit.learner.learner import Learner
from learnkit.measure.losses import *
from learnkit.measure.losses import *
import learnkit.learner.predict
from oracle import FIT
from toys import at, draws, few, slow

class Quiet(Learner):
    def __init__(self, *args, **kw): super().__init__(*args, **kw); self.logger = lambda *a: None; self.remove_cb(self.progress)

def data(kind, n=4, bs=6, seed=0):
    "Batches of images with targets of the kind `kind`"
    g = torch.Generator().manual_seed(seed)
    xs = torch.randn(n, bs, 1, 5, 7, generator=g)
    if kind=='ints':  ys = torch.randint(0, 3, (n, bs), generator=g)
    if kind=='probs': ys = torch.rand(n, bs, 3, generator=g).softmax(-1)
    return list(zip(xs, ys))

def model(seed=0, n=3):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Flatten(), nn.Linear(35, 8), nn.ReLU(), nn.Linear(8, n))

def learner(kind='ints', loss_func=None, cbs=None, **kw):
    dls = DataLoaders(data(kind), data(kind, 2, seed=1))
    return Quiet(dls, model(), CrossEntropyLossFlat() if loss_func is None else loss_func, SGD, lr=.1, cbs=cbs, **kw)

def params(m): return torch.cat([p.detach().flatten() for p in m.parameters()])

# plain loops

def plain_mixup(x, y, alpha):
    lam = Beta(torch.tensor(alpha), torch.tensor(alpha)).sample((len(x),))
    lam = torch.max(lam, 1-lam)
    other = torch.randperm(len(x))
    return torch.lerp(x[other], x, lam[:,None,None,None]),y[other],lam

def plain_cutmix(x, y, alpha):
    "CutMix with slices, where the callback uses a mask"
    lam = Beta(torch.tensor(alpha), torch.tensor(alpha)).sample((1,))
    other,(H,W) = torch.randperm(len(x)),x.shape[-2:]
    cut = (1-lam).sqrt().item()
    w,h = (int(torch.tensor(s*cut).round())//2 for s in (W,H))
    cx,cy = torch.randint(0, W, (1,)).item(),torch.randint(0, H, (1,)).item()
    x1,x2,y1,y2 = max(cx-w,0),min(cx+w,W),max(cy-h,0),min(cy+h,H)
    res = x.clone()
    res[...,y1:y2,x1:x2] = x[other][...,y1:y2,x1:x2]
    return res,y[other],1 - torch.tensor([(x2-x1)*(y2-y1)])/float(W*H)

def plain_loop(mix, kind, loss_func, per_item, alpha, epochs=2, seed=5):
    "The weights and losses of a plain loop; `per_item(pred, y)` returns the loss of each sample"
    m = model()
    opt,losses = SGD(m.parameters(), lr=.1),[]
    torch.manual_seed(seed)
    for _ in range(epochs):
        for x,y in data(kind):
            x,y1,lam = mix(x, y, alpha)
            pred = m(x)
            if kind=='ints': loss = torch.lerp(per_item(pred, y1), per_item(pred, y), lam).mean()
            else: loss = loss_func(pred, torch.lerp(y1, y, lam[:,None]))
            loss.backward(); opt.step(); opt.zero_grad()
            losses.append(loss.item())
    return params(m),losses

def fit(learn, epochs=2, seed=5):
    torch.manual_seed(seed)
    learn.fit(epochs)
    return learn

ce,mse = partial(F.cross_entropy, reduction='none'),partial(F.mse_loss, reduction='none')
HAND = dict(
    flat     =('ints', CrossEntropyLossFlat(), ce), module=('ints', nn.CrossEntropyLoss(), ce), function=('ints', F.cross_entropy, ce),
    smooth   =('ints', LabelSmoothingCrossEntropyFlat(eps=.2), partial(ce, label_smoothing=.2)),
    smooth_fn=('ints', partial(F.cross_entropy, label_smoothing=.2), partial(ce, label_smoothing=.2)),
    wrapped  =('ints', partial(nn.CrossEntropyLoss()), ce),
    mse      =('probs', MSELossFlat(), mse), mse_fn=('probs', F.mse_loss, mse), soft=('probs', nn.CrossEntropyLoss(), ce))

@pytest.mark.parametrize('cls,mix', [(MixUp, plain_mixup), (CutMix, plain_cutmix)])
@pytest.mark.parametrize('case', HAND)
def test_equals_a_plain_loop(cls, mix, case):
    kind,loss_func,per_item = HAND[case]
    want,losses = plain_loop(mix, kind, loss_func, per_item, .7)
    learn = fit(learner(kind, loss_func, cls(.7)))
    assert torch.equal(params(learn.model), want)
    assert learn.recorder.smooth_loss.raw==losses   # the recorded loss is the one that is minimized
    assert learn.loss_func is loss_func
    valid = Quiet(DataLoaders(data(kind), data(kind, 2, seed=1)), learn.model, loss_func).validate()[0]
    assert learn.recorder.history['valid_loss'][-1]==pytest.approx(valid, rel=1e-6)

def test_summed_losses_and_several_losses_a_sample():
    "The mixed loss with `reduction='sum'`, and with a loss for each position of a sample"
    m,(x,y) = nn.Conv1d(2, 3, 1),(torch.randn(5,2,4),torch.randint(0, 3, (5,4)))
    for loss_func in (nn.CrossEntropyLoss(reduction='sum'), CrossEntropyLossFlat(axis=1, reduction='sum'), partial(F.cross_entropy, reduction='sum')):
        mixer,got = MixUp(1.),[]
        def check(self): got.append((mixer.lam, mixer.yb1[0], self.learn.pred, self.learn.loss))
        Quiet([[(x,y)]], m, loss_func, SGD, lr=0., cbs=[mixer, Callback(after_loss=check)]).fit(1)
        (lam,y1,pred,loss), = got
        want = (lam[:,None]*ce(pred, y) + (1-lam[:,None])*ce(pred, y1)).sum()
        torch.testing.assert_close(loss, want.detach())

@pytest.mark.parametrize('reduction', ['mean', 'sum'])
@pytest.mark.parametrize('cls', [MixUp, CutMix])
def test_mixed_in_micro_batches(cls, reduction):
    "Micro-batches of a mixed batch give its gradient and its loss, also with a summed loss"
    whole,parts = (fit(learner(loss_func=nn.CrossEntropyLoss(reduction=reduction), cbs=[cls(.7), *cbs])) for cbs in ([], [MicroBatch(4)]))
    torch.testing.assert_close(params(parts.model), params(whole.model))
    torch.testing.assert_close(parts.recorder.losses, whole.recorder.losses)

# fastai's numbers

@pytest.mark.parametrize('name,case', [(n,c) for n in ('MixUp','CutMix') for c in ('flat','smooth','mse')])
def test_same_numbers_as_fastai(name, case):
    """fastai's callback on the same Learner gives the same weights. fastai's CutMix writes into the batch, so each epoch gets
    clones, not slices: the last bit of a matrix product depends on the alignment of its memory"""
    theirs = getattr(pytest.importorskip('fastai.callback.mixup'), name)
    kind,loss_func,_ = HAND[case]
    def weights(cls):
        m = model()
        return params(fit(Quiet(DataLoaders(lambda: [(x.clone(),y) for x,y in data(kind)]), m, loss_func, SGD, lr=.1, cbs=cls(.6))).model)
    assert torch.equal(weights(globals()[name]), weights(theirs))

# nothing stays behind

events = [e for e in FIT if 'cancel' not in e]
def raiser(ev, exc, when=1):
    seen = []
    def f(self):
        seen.append(0)
        if len(seen)==when: raise exc
    return Callback(**{ev:f})

@few(2, 2)
@pytest.mark.parametrize('first', [True, *slow(False)])
@pytest.mark.parametrize('exc', [ValueError, KeyboardInterrupt, CancelBatch, CancelEpoch, CancelFit, CancelTrain, CancelValid])
def test_any_exception_at_any_event_leaves_no_state(exc, first):
    for ev in events:
        for when in (1, 2):
            mixer,bad = CutMix(),raiser(ev, exc, when)
            learn = learner(cbs=[bad, mixer] if first else [mixer, bad])
            loss_func = learn.loss_func
            try: learn.fit(2)
            except BaseException as e: assert isinstance(e, (exc, RuntimeError)), (ev, e)
            assert learn.loss_func is loss_func and loss_func.reduction=='mean', ev
            assert mixer.lam is None and mixer.yb1 is None and mixer.mixed_loss is None
            learn.remove_cb(bad)
            learn.validate(); learn.get_preds(with_loss=True)

@pytest.mark.parametrize('exc', [ValueError, CancelEpoch, CancelBatch, KeyboardInterrupt])
def test_raised_by_model_or_loss(exc):
    for where in ('model', 'loss'):
        def boom(*args, reduction='mean'): raise exc
        learn = learner(loss_func=boom if where=='loss' else F.cross_entropy, cbs=MixUp())
        if where=='model': learn.model.forward = boom
        loss_func = learn.loss_func
        try: learn.fit(1)
        except BaseException: pass
        assert learn.loss_func is loss_func

def test_a_cancelled_epoch_leaves_the_loss_unwrapped():
    inner = []
    def look(self): inner.append(self.learn.loss_func.func)
    learn = learner(cbs=[MixUp(), raiser('after_batch', CancelEpoch, 2), Callback(before_train=look)])
    loss_func = learn.loss_func
    learn.fit(3)
    assert inner==[loss_func]*3

# in company

class Clip(Callback):
    order = 11
    def before_step(self): nn.utils.clip_grad_norm_(self.learn.model.parameters(), .1)
class Halve(Callback):
    "Halves the loss of the backward pass, as gradient accumulation over two batches does"
    def after_loss(self):
        if self.learn.training: self.learn.loss_grad = self.learn.loss_grad/2
class Validates(Callback):
    "Validates and predicts at many events"
    def __init__(self): self.seen = []
    def look(self):
        if self.learn.mode!='fit': return
        learn = self.learn
        rng = torch.get_rng_state()
        res = learn.get_preds(with_loss=True, with_decoded=True)
        self.seen.append((learn.validate()[0], res[3].mean().item(), res[0].sum(1)))
        torch.set_rng_state(rng)
    before_batch = before_loss = after_loss = after_pred = after_batch = before_train = look

@pytest.mark.parametrize('cls', [*slow(MixUp), CutMix])
def test_any_order_of_adding(cls):
    alone = None
    for cbs in permutations([cls, Clip, Halve]):
        w = params(fit(learner(cbs=[c() for c in cbs])).model)
        alone = w if alone is None else alone
        assert torch.equal(w, alone)
    for cbs in ([Validates, cls, Clip, Halve], [cls, Validates, Clip, Halve]):
        cbs = [c() for c in cbs]
        assert torch.equal(params(fit(learner(cbs=cbs)).model), alone)
        validates = next(c for c in cbs if isinstance(c, Validates))
        for v,l,s in validates.seen:
            assert v==pytest.approx(l, rel=1e-5)
            torch.testing.assert_close(s, torch.ones(12))   # the loss's activation is applied, though the loss is wrapped

def test_validation_inside_is_not_mixed():
    losses = []
    def look(self):
        if self.learn.mode=='fit': losses.append((self.learn.validate()[0], F.cross_entropy(*(torch.cat(o) for o in zip(*[(self.learn.model(x),y) for x,y in data('ints', 2, seed=1)]))).item()))
    fit(learner(cbs=[MixUp(), Callback(after_backward=look)]), 1)
    assert len(losses)==4
    for a,b in losses: assert a==pytest.approx(b, rel=1e-5)

def test_switched_off_and_removed():
    "After MixUp is switched off or removed in a fit, training equals that without it"
    class SwitchedOff(Callback):
        def before_epoch(self): self.learn.mix_up.run = self.learn.epoch==0
    class Removed(Callback):
        def after_batch(self):
            if self.learn.training and self.learn.train_iter==4: self.learn.remove_cb(MixUp)
    ws = [params(fit(learner(cbs=[MixUp(), c()])).model) for c in (SwitchedOff, Removed)]
    m = model()
    torch.manual_seed(5)
    learn = Quiet(DataLoaders(data('ints')), m, CrossEntropyLossFlat(), SGD, lr=.1, cbs=MixUp())
    learn.fit(1); learn.remove_cb(MixUp); learn.fit(1)
    for w in ws: assert torch.equal(w, params(m))

def test_taking_turns():
    "MixUp and CutMix may be switched on and off, or added and removed, in a fit"
    class Turns(Callback):
        def before_epoch(self):
            odd = bool(self.learn.epoch%2)
            self.learn.mix_up.run,self.learn.cut_mix.run = not odd,odd
    class Late(Callback):
        def before_train(self):
            self.learn.remove_cbs([MixUp, CutMix])
            self.learn.add_cb(CutMix() if self.learn.epoch%2 else MixUp())
    for kind,loss_func in (('ints', nn.CrossEntropyLoss()), ('ints', F.cross_entropy), ('probs', MSELossFlat())):
        m = model()
        torch.manual_seed(5)
        for cls in (MixUp, CutMix)*2: Quiet(DataLoaders(data(kind)), m, loss_func, SGD, lr=.1, cbs=cls).fit(1)
        for cbs in ([MixUp(), CutMix(), Turns()], [CutMix(), MixUp(), Turns()], [Late()]):
            learn = Quiet(DataLoaders(data(kind)), model(), loss_func, SGD, lr=.1, cbs=cbs)
            assert torch.equal(params(fit(learn, 4).model), params(m)) and learn.loss_func is loss_func

def test_a_subclass_that_mixes_some_batches():
    class Sometimes(MixUp):
        def before_batch(self):
            if self.learn.iter%2: super().before_batch()
    plain = []
    def look(self): plain.append((self.learn.iter, F.cross_entropy(self.learn.pred, self.learn.y).item(), self.learn.loss.item()))
    cb = Callback(after_loss=look); cb.run_valid = False
    fit(learner(cbs=[Sometimes(2.), cb, raiser('after_loss', CancelTrain, 2)]), 2)
    for i,a,b in plain: assert (a==pytest.approx(b, rel=1e-6)) == (i%2==0)

# shapes of batches

def test_several_inputs_and_names():
    class Two(nn.Module):
        def __init__(self): super().__init__(); self.lin = nn.Linear(4, 3)
        def forward(self, a, b): return self.lin(a) + self.lin(b.mean(1))
    a,b,y = torch.randn(6,4),torch.randn(6,5,4),torch.randint(0, 3, (6,))
    def weights(batch):
        torch.manual_seed(1)
        return params(fit(Quiet(DataLoaders([batch]), Two(), nn.CrossEntropyLoss(), SGD, lr=.1, cbs=MixUp(1.)), 1).model)
    assert torch.equal(weights((a,b,y)), weights(dict(a=a, b=b, y=y)))

def test_one_sample_and_no_target():
    x = torch.randn(1,4)
    fit(Quiet([[(x,torch.tensor([1]))]], nn.Linear(4,3), nn.CrossEntropyLoss(), SGD, cbs=MixUp()), 1)
    with pytest.warns(UserWarning, match='no target'): fit(Quiet([[(x,)]], nn.Linear(4,3), nn.CrossEntropyLoss(), SGD, cbs=MixUp()), 1)

@draws(15)
@given(bs=st.integers(1, 5), H=st.integers(1, 9), W=st.integers(1, 9), alpha=st.floats(.1, 5), seed=st.integers(0, 999), whole=st.booleans())
def test_cutmix_pastes_a_box_and_lam_is_what_is_left(bs, H, W, alpha, seed, whole):
    "The pixels of each image are its index, so each mixed pixel shows its source"
    torch.manual_seed(seed)
    x = torch.arange(bs).view(-1,1,1,1).expand(bs,2,H,W).contiguous()
    x,kept = (x if whole else x.float()),x.clone()
    mixer,got = CutMix(alpha),[]
    def keep(self): got.append((self.learn.x, mixer.lam, self.learn.y))
    learn = Quiet([[(x,torch.eye(bs))]], nn.Sequential(nn.Flatten(), nn.Linear(2*H*W, bs)), MSELossFlat(), SGD, lr=0.,
                  cbs=[mixer, Callback(before_pred=keep), Callback(before_pred=lambda self: setattr(self.learn, 'xb', (self.learn.x.float(),)))])
    learn.fit(1)
    (mixed,lam,y), = got
    assert torch.equal(x.long(), kept)
    for i,m in enumerate(mixed):
        own = (m==i).float().mean()
        if m.unique().numel()>1: torch.testing.assert_close(own, lam[0])
        for c in m[0].unique().tolist(): torch.testing.assert_close(y[i,int(c)], (m==c).float().mean())
        out = (m[0]!=i).nonzero()
        if len(out): assert len(out)==(out.amax(0)-out.amin(0)+1).prod()   # the pasted pixels form a rectangle

@draws(15)
@given(n=st.integers(1, 6), alpha=st.floats(.05, 5), seed=st.integers(0, 999))
def test_mixup_mixes_inputs_and_targets_alike(n, alpha, seed):
    torch.manual_seed(seed)
    x = torch.eye(n)
    got = []
    Quiet([[(x,x.clone())]], nn.Linear(n,n), MSELossFlat(), SGD, cbs=[MixUp(alpha), Callback(before_pred=lambda self: got.append((self.learn.x, self.learn.y)))]).fit(1)
    (a,b), = got
    assert torch.equal(a, b) and (a.diagonal()>=.5).all()
    torch.testing.assert_close(a.sum(1), torch.ones(n))

# nothing is read from the device

class Reads(TorchDispatchMode):
    "Counts operations that wait for the device: reading a value, or a size that depends on values"
    def __init__(self): super().__init__(); self.n = 0
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.n += func.overloadpacket in (torch.ops.aten._local_scalar_dense, torch.ops.aten.nonzero, torch.ops.aten.equal, torch.ops.aten.is_nonzero)
        return func(*args, **(kwargs or {}))

@pytest.mark.parametrize('kind', ['ints', 'probs'])
def test_no_batch_reads_from_the_device(kind):
    def reads(cbs, n):
        dls = DataLoaders(data(kind, n))
        learn = Quiet(dls, model(), nn.CrossEntropyLoss(), SGD, lr=.1, cbs=cbs)
        with Reads() as r: learn.fit(1)
        return r.n
    def per_batch(*cbs): return (reads(cbs, 9) - reads(cbs, 3))/6
    plain = per_batch()
    assert per_batch(MixUp())==per_batch(CutMix())==plain
    assert per_batch(Callback(after_batch=lambda self: self.learn.loss.item()))==plain+1   # a read is counted

# mistakes

class Own(nn.Module):
    "Returns its own loss"
    def __init__(self): super().__init__(); self.lin = nn.Linear(4, 1)
    def forward(self, x, y): return dict(loss=(self.lin(x)-y).pow(2).mean())
def no_reduction(pred, y): return F.cross_entropy(pred, y)
def ignores_reduction(pred, y, reduction='mean'): return F.cross_entropy(pred, y)
no_reduction_int = BaseLoss(nn.Module); no_reduction_int.y_int = True

@pytest.mark.parametrize('make,exc,says', [
    (lambda: MixUp(0), ValueError, 'above 0'), (lambda: CutMix('big'), ValueError, "not 'big'"),
    (lambda: learner(cbs=[MixUp(), CutMix()]).fit(1), ValueError, 'use one of them'),
    (lambda: Quiet([[dict(x=torch.randn(3,4), y=torch.randn(3,1))]], Own(), cbs=MixUp()).fit(1), ValueError, 'pass `loss_func=`'),
    (lambda: learner(loss_func=no_reduction, cbs=MixUp()).fit(1), TypeError, "reduction='mean'"),
    (lambda: learner(loss_func=no_reduction_int, cbs=MixUp()).fit(1), TypeError, "reduction='mean'"),
    (lambda: learner(loss_func=ignores_reduction, cbs=MixUp()).fit(1), ValueError, 'a loss for each of 6 samples'),
    (lambda: Quiet([[(torch.randint(0,9,(4,5)),torch.randn(4,1))]], nn.Linear(5,1), MSELossFlat(), cbs=MixUp()).fit(1), TypeError, 'integer tensors cannot be blended'),
    (lambda: Quiet([[(torch.randn(4,5),torch.randn(4,1))]], nn.Linear(5,1), MSELossFlat(), cbs=CutMix()).fit(1), ValueError, 'must be images'),
    (lambda: Quiet([[(torch.randn(4,5),torch.randn(4))]], nn.Linear(5,1), nn.MSELoss(), cbs=MixUp()).fit(1), ValueError, 'same shape')])   # as without MixUp
def test_mistakes(make, exc, says):
    with pytest.raises(exc) as e: make()
    assert says in str(e.value)

def test_a_loss_without_reduction_raises_before_a_step():
    learn = learner(loss_func=no_reduction, cbs=MixUp())
    before = params(learn.model)
    with pytest.raises(TypeError): learn.fit(1)
    assert torch.equal(params(learn.model), before)

def test_reduce_loss():
    t = torch.tensor([1.,2.,6.])
    assert reduce_loss(t)==3 and reduce_loss(t, 'sum')==9 and reduce_loss(t, 'none') is t

def test_a_mixed_batch_to_look_at():
    "`unchanged` with a `CancelFit` in `before_batch` shows a mixed batch and changes nothing"
    learn = learner(cbs=MixUp())
    before,seen = params(learn.model),[]
    def look(cb): seen.append(cb.learn.xb[0]); raise CancelFit
    with learn.unchanged(): learn.fit(1, cbs=at('before_batch', look, order=MixUp.order+1))
    x = next(iter(learn.dls.train))[0]
    assert len(seen)==1 and seen[0].shape==x.shape and not torch.equal(seen[0], x) and torch.equal(params(learn.model), before)

@pytest.mark.parametrize('number', [torch.tensor(2.), torch.tensor(2)])
def test_a_number_for_the_whole_batch_is_not_mixed(number):
    "An input without dimensions raised an IndexError"
    class Scaled(nn.Linear):
        def forward(self, x, factor): return super().forward(x)*factor
    seen = []
    x,y = torch.randn(6,4),torch.randint(0, 3, (6,))
    learn = Quiet(DataLoaders([(x,number,y)], n_inp=2), Scaled(4,3), nn.CrossEntropyLoss(), cbs=[MixUp(), at('before_pred', lambda cb: seen.append(cb.learn.xb))])
    learn.fit(1)
    assert not torch.equal(seen[0][0], x) and seen[0][1] is number

@pytest.mark.filterwarnings('ignore:the training loss was nan')
def test_a_batch_without_samples():
    "It has the loss NaN, as without MixUp; it raised a ZeroDivisionError"
    x,y = torch.randn(6,4),torch.randint(0, 3, (6,))
    losses = []
    learn = Quiet(DataLoaders([(x,y), (x[:0],y[:0]), (x,y)]), nn.Linear(4,3), nn.CrossEntropyLoss(), cbs=[MixUp(), at('after_loss', lambda cb: losses.append(cb.learn.loss))])
    learn.fit(1)
    assert [o.isnan().item() for o in losses]==[False, True, False]
