"Accumulation, clipping, micro-batches, averages, short runs: beside loops written by hand, and together in any order"
import gc, random, time
from functools import partial
from contextlib import contextmanager
from copy import deepcopy

import pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD, Adam
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, get_swa_multi_avg_fn

from learnkit.callbacks.accumulate import GradientAccumulation, opt_params
from learnkit.callbacks.gradients import GradientClip
from learnkit.callbacks.accumulate import MicroBatch
from learnkit.loop.events import *
from learnkit.loop.callback import *
from learnkit.loop.dispatcher import *
from learnkit.learner.results import *
from learnkit.learner.learner import *
from learnkit.learner.predict import *
from learnkit.processes.shard import *
from learnkit.callbacks.averages import EMACallback
from learnkit.callbacks.averages import find_averageable
from torch.utils.data import DataLoader, TensorDataset
from learnkit.recovery.checkpoint import CheckpointCallback
from toys import draws, slow
from learnkit.speed.memory import ChannelsLast
from learnkit.callbacks.precision import MixedPrecision
from learnkit.callbacks.clock import StopAfter
from learnkit.learner.fit import ShortEpochCallback
from learnkit.callbacks.gradients import BnFreeze, set_bn_eval
from learnkit.data.loaders import DataLoaders
import learnkit.learner.predict
from learnkit.learner.learner import Learner
from learnkit.learner.save import *
from toys import at, few, throw

# what is trained
def items(n, seed=0, dtype=torch.double):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=g, dtype=dtype)
    return x,x.sum(1, keepdim=True)+.1
def ragged(sizes, **kw): return list(zip(*(t.split(list(sizes)) for t in items(sum(sizes), **kw))))

def mlp(dtype=torch.double, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(4,6), nn.Tanh(), nn.Linear(6,1)).to(dtype)

def mk(train=None, cbs=None, model=None, opt_func=SGD, lr=.05, loss_func=None, valid=None, **kw):
    train,model = ragged([4,4,2]) if train is None else train,model or mlp()
    valid = valid or ragged([4,3], seed=1, dtype=next(model.parameters()).dtype)
    return Learner(DataLoaders(train, valid), model, loss_func or nn.MSELoss(), opt_func=opt_func, lr=lr, cbs=cbs, **kw)

def fit(learn, n=2, **kw):
    with learn.no_logging(), learn.no_bar(): learn.fit(n, **kw)
    return learn
def ws(m): return [p.detach().clone() for p in getattr(m, 'model', m).state_dict().values()]
def same(a, b): return len(a)==len(b) and all(map(torch.equal, a, b))
def close(a, b, tol=1e-12): return all(torch.allclose(x, y, rtol=0, atol=tol) for x,y in zip(a, b))
def no_grads(learn): return all(p.grad is None for p in learn.model.parameters())

# accumulation
def mean_steps(sizes, n_acc, epochs, lr=.05, data=None):
    "The definition: after n_acc or more items, and at the end of an epoch, a step with the gradient of their mean loss"
    model = mlp()
    opt,groups,cur = SGD(model.parameters(), lr=lr),[],[]
    for i,n in enumerate(sizes):
        cur.append(i)
        if sum(sizes[j] for j in cur)>=n_acc or i==len(sizes)-1: groups.append(cur); cur = []
    data = data or ragged(sizes)
    for _ in range(epochs):
        for g in groups:
            x,y = (torch.cat([data[j][k] for j in g]) for k in (0,1))
            F.mse_loss(model(x), y).backward()
            opt.step(); opt.zero_grad()
    return model,len(groups)

@draws(15)
@given(st.lists(st.integers(1,5), min_size=1, max_size=7), st.integers(5,12), st.integers(1,3))
def test_step_is_that_of_the_mean_over_all_items(sizes, n_acc, epochs):
    steps = []
    model,n = mean_steps(sizes, n_acc, epochs)
    learn = fit(mk(ragged(sizes), [GradientAccumulation(n_acc), Callback(after_step=lambda cb: steps.append(cb.learn.iter))]), epochs)
    assert close(ws(learn), ws(model)) and len(steps)==n*epochs
    assert no_grads(learn)

@draws(15)
@given(st.lists(st.integers(1,5), min_size=1, max_size=7), st.integers(1,4), st.integers(1,2), st.booleans())
def test_a_step_every_n_batches(sizes, n, epochs, parts):
    "However large they are, and also if each is done in parts: the gradient is that of the mean over their items"
    steps,model = [],mlp()
    opt,data = SGD(model.parameters(), lr=.05),ragged(sizes)
    for _ in range(epochs):
        for i in range(0, len(data), n):
            x,y = (torch.cat([b[k] for b in data[i:i+n]]) for k in (0,1))
            F.mse_loss(model(x), y).backward(); opt.step(); opt.zero_grad()
    note = Callback(after_step=lambda cb: steps.append(cb.learn.iter))
    learn = fit(mk(data, [GradientAccumulation(f'{n}ba'), note, *[MicroBatch(2)]*parts]), epochs)
    assert close(ws(learn), ws(model)) and steps==[*range(n-1, len(sizes), n), *[len(sizes)-1]*(len(sizes)%n>0)]*epochs and no_grads(learn)

def test_full_batches_are_bit_for_bit_the_loop_by_hand():
    data,model = ragged([4]*6, dtype=torch.float),mlp(torch.float)
    opt = Adam(model.parameters(), lr=.05)
    for i,(x,y) in enumerate(data*2):
        (F.mse_loss(model(x), y)*(4/12)).backward()
        if i%3==2: opt.step(); opt.zero_grad()
    assert same(ws(model), ws(fit(mk(data, GradientAccumulation(12), model=mlp(torch.float), opt_func=Adam))))

def test_recorded_losses_are_those_of_the_batches():
    data = ragged([3,3,2])
    losses = []
    fit(mk(data, [GradientAccumulation(100), at('after_batch', lambda cb: losses.append(cb.learn.loss.clone()), lambda cb: cb.learn.training)]), 1)
    assert same(losses, [F.mse_loss(mlp()(x), y) for x,y in data])

@pytest.mark.parametrize('loss_func', [nn.MSELoss(reduction='sum'), partial(F.mse_loss, reduction='sum'), partial(nn.MSELoss(reduction='sum'))])
def test_a_loss_that_sums_needs_no_weights(loss_func):
    learn,one,micro = (fit(mk(ragged(s), cbs, loss_func=loss_func, lr=.002), 1)
                       for s,cbs in (([3,2,1], GradientAccumulation(6)), ([6], None), ([6], MicroBatch(4))))
    assert close(ws(learn), ws(one)) and close(ws(micro), ws(one))

def test_loader_without_length_steps_its_tail():
    class Stream:
        def __iter__(self): return iter(ragged([2,2,2]))
    learn = fit(mk(Stream(), GradientAccumulation(4)))
    assert close(ws(learn), ws(mean_steps([2,2,2], 4, 2)[0]))

def test_phase_ended_early_steps_what_it_has():
    want = ws(mean_steps([2,2,2], 4, 1, data=ragged([2]*6))[0])
    learn = fit(mk(ragged([2]*6), [GradientAccumulation(4), at('after_batch', throw(CancelTrain), lambda cb: cb.learn.training and cb.learn.iter==2)]), 1)
    assert close(ws(learn), want)
    learn = fit(mk(ragged([2]*6), [GradientAccumulation(4), StopAfter(3)]), 5)
    assert close(ws(learn), want)

@pytest.mark.parametrize('exc', [CancelEpoch, CancelFit, KeyboardInterrupt])
@pytest.mark.parametrize('ev', ['after_batch','after_backward','before_batch','after_pred'])
def test_a_half_done_sum_does_not_live_on(exc, ev):
    cb = at(ev, throw(exc), lambda cb: cb.learn.training and cb.learn.iter==1 and cb.learn.epoch==0)
    learn = mk(ragged([2]*4), GradientAccumulation(8))
    if exc is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt): fit(learn, cbs=cb)
    else: fit(learn, 2, cbs=cb)
    assert no_grads(learn)
    n = 1 if exc is CancelEpoch else 0
    assert close(ws(learn), ws(mean_steps([2]*4, 8, n)[0]))
    fit(learn, 1)
    assert close(ws(learn), ws(mean_steps([2]*4, 8, n+1)[0]))

def test_cancelled_batches_do_not_count():
    "Neither one without a backward pass, nor one that is cancelled before it; one that is cancelled after it does"
    def seen(cb, ev): return at(ev, throw(cb), lambda o: o.learn.training and o.learn.iter==1)
    for cbs,sizes in (([seen(CancelBackward, 'before_backward')], (0,2,3)), ([seen(CancelBatch, 'after_pred')], (0,2,3)), ([seen(CancelBatch, 'after_backward')], (0,1,2,3))):
        for cb in cbs: cb.order = 20
        model,data = mlp(),ragged([2]*4)
        x,y = (torch.cat([data[j][k] for j in sizes]) for k in (0,1))
        opt = SGD(model.parameters(), lr=.05)
        F.mse_loss(model(x), y).backward(); opt.step()
        assert close(ws(fit(mk(data, [GradientAccumulation(100), *cbs]), 1)), ws(model))

def test_a_run_continues_with_the_gradients_so_far():
    a,states = mk(ragged([2]*4), GradientAccumulation(8)),[]
    fit(a, 1, cbs=at('after_batch', lambda cb: states.append(cb.learn._run_state(0, 3, copy=True)), lambda cb: cb.learn.training and cb.learn.iter==2))
    assert states[0]['cbs']['gradient_accumulation']=={'count':6, 'weight':6, 'unit':8, 'counted':True} and len(states[0]['grads'])==4
    b = mk(ragged([2]*4)[3:], GradientAccumulation(8))
    fit(b, 1, cbs=at('before_epoch', lambda cb: cb.learn._restore(states[0])))
    assert same(ws(a), ws(b))

def test_accumulation_says_what_is_wrong():
    with pytest.raises(ValueError, match='write n_acc=16'): fit(mk(ragged([4,4]), GradientAccumulation(3)))
    ds = torch.utils.data.TensorDataset(*items(8))
    seen = []
    with pytest.raises(ValueError, match='counts samples'):
        fit(mk(torch.utils.data.DataLoader(ds, batch_size=8), [GradientAccumulation(4), Callback(before_batch=lambda cb: seen.append(1))]))
    assert not seen
    with pytest.raises(ValueError, match='integer'): GradientAccumulation(0)

# clipping
@pytest.mark.parametrize('kw', [dict(max_norm=.1), dict(max_norm=.1, norm_type=1.), dict(max_norm=.05, norm_type=float('inf')), dict(value=.02)])
def test_clip_is_torchs(kw):
    data,model = ragged([4,4,2], dtype=torch.float),mlp(torch.float)
    opt = SGD(model.parameters(), lr=.5)
    for x,y in data*2:
        F.mse_loss(model(x), y).backward()
        if 'value' in kw: nn.utils.clip_grad_value_(model.parameters(), kw['value'])
        else: nn.utils.clip_grad_norm_(model.parameters(), **kw)
        opt.step(); opt.zero_grad()
    assert same(ws(model), ws(fit(mk(data, GradientClip(**kw), model=mlp(torch.float), lr=.5))))

def test_clip_sees_the_sum_only():
    norms = []
    learn = fit(mk(ragged([2]*4), [GradientClip(.01), GradientAccumulation(8), at('before_step', lambda cb: norms.append(nn.utils.get_total_norm([p.grad for p in cb.learn.model.parameters()])), order=12)], lr=1.), 1)
    assert len(norms)==1 and torch.allclose(norms[0], torch.tensor(.01, dtype=torch.double), atol=1e-5)
    assert learn.gradient_clip.norm>.01
    for kw in (dict(max_norm=0), dict(max_norm=-1), dict(value=0.), dict(norm_type=0)):
        with pytest.raises(ValueError, match='above 0'): GradientClip(**kw)

# micro-batches
def run_micro(cbs, sizes, seen, **kw):
    see = at('after_batch', lambda cb: seen.append((cb.learn.loss.clone(), cb.learn.pred.detach().clone(), cb.learn.xb[0], cb.learn.yb[0])), lambda cb: cb.learn.training)
    return fit(mk(ragged(sizes), [*cbs, see], **kw))

@draws(15)
@given(st.lists(st.integers(1,7), min_size=1, max_size=4), st.integers(1,8), st.booleans(), st.sampled_from(['mean','sum']))
def test_micro_batches_make_the_same_step(sizes, k, by_size, reduction):
    cb,a,b = MicroBatch(**{'size' if by_size else 'n':k}),[],[]
    kw = dict(loss_func=nn.MSELoss(reduction=reduction), lr=.05 if reduction=='mean' else .005)
    whole,parts = run_micro([], sizes, a, **kw),run_micro([cb], sizes, b, **kw)
    assert close(ws(whole), ws(parts))
    assert all(close(u, v) for u,v in zip(a, b)) and len(a)==len(b)
    assert whole.recorder.history.cells()[1][:-1]==parts.recorder.history.cells()[1][:-1]

def test_micro_batch_is_bit_for_bit_the_loop_by_hand():
    data,model = ragged([5,5], dtype=torch.float),mlp(torch.float)
    opt = SGD(model.parameters(), lr=.05)
    for x,y in data*2:
        for xp,yp in zip(x.split(2), y.split(2)): (F.mse_loss(model(xp), yp)*(len(xp)/5)).backward()
        opt.step(); opt.zero_grad()
    assert same(ws(model), ws(fit(mk(data, MicroBatch(2), model=mlp(torch.float)))))

def test_micro_batch_events():
    log = []
    cb = Callback(**{e: lambda self, e=e: log.append(e) if self.learn.training else None for e in
                     ('before_batch','before_micro_batch','before_pred','after_loss','after_backward','after_micro_batch','before_step','after_step','after_zero_grad','after_cancel_batch','after_batch')})
    fit(mk(ragged([4]), [cb, MicroBatch(2)]), 1)
    part = ['before_micro_batch','before_pred','after_loss','after_backward','after_micro_batch']
    assert log==['before_batch']+part*2+['before_step','after_step','after_zero_grad','after_batch']

def test_micro_batches_keep_less():
    def most(cbs):
        kept = [0]
        def pack(t): kept[-1] += t.nbytes; return t
        learn = mk(ragged([32]), [*cbs, Callback(before_pred=lambda cb: kept.append(0))])
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t): fit(learn, 1)
        return max(kept)
    weights = most([MicroBatch(1)])
    assert most([MicroBatch(4)]) < most([])/3 and weights < most([MicroBatch(4)])

class Named(nn.Module):
    "Takes inputs by name, gives a dictionary"
    def __init__(self): super().__init__(); self.lin = nn.Linear(4, 1).double()
    def forward(self, x, scale): return dict(out=self.lin(x)*scale, extra=(x.sum(1),))

def test_nested_batches_and_outputs():
    def train(cbs):
        torch.manual_seed(0)
        x,y = items(6)
        preds = []
        learn = Learner(DataLoaders([dict(x=x, scale=torch.tensor(2.), y=y)]), Named(), lambda p,y: F.mse_loss(p['out'], y), opt_func=SGD, cbs=[
            *cbs, Callback(after_batch=lambda cb: preds.append(cb.learn.pred))])
        return ws(fit(learn)),preds
    (w0,p0),(w1,p1) = train([]),train([MicroBatch(4)])
    assert close(w0, w1) and all(torch.allclose(a['out'], b['out']) and torch.equal(a['extra'][0], b['extra'][0]) for a,b in zip(p0, p1))

def test_own_split():
    "Time first: items along dimension 1"
    x,y = torch.randn(3, 6, 4).double(),torch.randn(6, 1).double()
    def split(b, size): return [((b[0][0][:,i:i+size],), (b[1][0][i:i+size],)) for i in range(0, 6, size)]
    class Time(nn.Module):
        def __init__(self): super().__init__(); self.m = mlp()
        def forward(self, x): return self.m(x.mean(0))
    with pytest.raises(ValueError, match='split=f'): fit(mk([(x,y)], MicroBatch(2), model=Time(), valid=[(x,y)]))
    a,b = (fit(mk([(x,y)], cbs, model=Time(), valid=[(x,y)])) for cbs in (None, MicroBatch(2, split=split)))
    assert close(ws(a), ws(b))

@pytest.mark.parametrize('exc', [CancelBatch, CancelTrain, CancelEpoch, CancelFit, ZeroDivisionError])
@pytest.mark.parametrize('ev', ['before_micro_batch','before_pred','after_loss','before_backward','after_backward','after_micro_batch'])
def test_half_a_batch_is_none(exc, ev):
    "The second part of the first batch fails: this batch leaves nothing"
    parts = []
    def second(cb):
        if cb.learn.training: parts.append(1)
        return cb.learn.training and len(parts)==2
    learn,cb = mk(ragged([4,4]), MicroBatch(2)),at(ev, throw(exc), second)
    if exc is ZeroDivisionError:
        with pytest.raises(ZeroDivisionError): fit(learn, 1, cbs=cb)
    else: fit(learn, 1, cbs=cb)
    last = ragged([4,4])[1:] if exc is CancelBatch else []
    last_part_keeps = exc is CancelBatch and ev in ('after_backward','after_micro_batch')   # as in the plain loop: its gradients stay for the next step
    if not last_part_keeps: assert no_grads(learn) and close(ws(learn), ws(fit(mk(last), 1)) if last else ws(mlp()))
    fresh = mk(ragged([4,4]))
    fresh.model.load_state_dict(learn.model.state_dict())
    assert close(ws(fit(learn, 1)), ws(fit(fresh, 1)))

def test_micro_batch_says_what_is_wrong():
    for kw in (dict(), dict(size=2, n=2)):
        with pytest.raises(ValueError, match='write MicroBatch'): MicroBatch(**kw)
    with pytest.raises(ValueError, match='integer'): MicroBatch(.5)

# averages
def bn(dtype=torch.float, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(4,6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6,1)).to(dtype)
floats = ragged([4,4,3], dtype=torch.float)
fvalid = ragged([4,3], seed=1, dtype=torch.float)
def mkbn(cbs=None, train=floats, **kw): return mk(train, cbs, model=kw.pop('model', None) or bn(), valid=fvalid, **kw)

@pytest.mark.parametrize('buffers', [True, False])
@pytest.mark.parametrize('every,start', [(1,0), (2,0), (1,3)])
def test_average_is_torchs(buffers, every, start):
    model = bn()
    opt,avg,n = SGD(model.parameters(), lr=.05),AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(.9), use_buffers=buffers),0
    for x,y in floats*3:
        model.train()
        F.mse_loss(model(x), y).backward(); opt.step(); opt.zero_grad()
        n += 1
        if n>start and n%every==0: avg.update_parameters(model)
    learn = fit(mkbn(EMACallback(.9, every=every, start=start, buffers=buffers, warmup=False)), 3)
    skip = lambda k: 'num_batches' in k or not buffers and 'running' in k   # torch copies those, when it averages; here they are the model's
    ours,theirs = learn.model.state_dict(),avg.module.state_dict()
    assert all(torch.equal(ours[k], theirs[k]) for k in ours if not skip(k))
    assert same(ws(fit(mkbn(EMACallback(.9, at_end=False)), 3)), ws(model))

@pytest.mark.parametrize('decay', [.1, .5, .999])
def test_average_warms_up(decay):
    "The decay of update n is (1+n)/(10+n) as long as that is lower, so that a short fit averages its last steps and not its first"
    seen = []
    learn = fit(mk(cbs=[EMACallback(decay), at('after_step', lambda cb: seen.append(ws(cb.learn)), order=20)]), 4)
    avg = seen[0]
    for n,new in enumerate(seen[1:], 1):
        d = min(decay, (1+n)/(10+n))
        avg = [d*a + (1-d)*w for a,w in zip(avg, new)]
    assert close(ws(learn), avg, 1e-6)

def test_swa_is_the_mean():
    seen = []
    learn = fit(mk(cbs=[EMACallback(start=.5, avg_fn=get_swa_multi_avg_fn()), at('after_step', lambda cb: seen.append(ws(cb.learn)), order=20)]), 4)
    assert learn.ema.n_avg==6 and close(ws(learn), [torch.stack(o).mean(0) for o in zip(*seen[6:])], 1e-7)

def test_validation_sees_the_average_and_training_does_not():
    seen = []
    see = at('before_pred', lambda cb: seen.append((cb.learn.training, ws(cb.learn))))
    learn = fit(mkbn([EMACallback(.5), see]), 2)
    plain = []
    fit(mkbn(at('before_pred', lambda cb: plain.append((cb.learn.training, ws(cb.learn))))), 2)
    for (t,a),(_,b) in zip(seen, plain): assert same(a, b)==t
    assert same(seen[-1][1], ws(learn))

def cases(): return [(ev,exc) for ev in ('before_validate','before_batch','after_pred','after_loss','after_batch','after_validate','after_epoch','after_fit')
                     for exc in (CancelBatch, CancelValid, CancelEpoch, CancelFit, KeyboardInterrupt)]
@pytest.mark.parametrize('ev,exc', cases())
def test_trained_weights_come_back(ev, exc):
    "Whatever a validation raises, training goes on with the trained weights"
    def mkcb(): return at(ev, throw(exc), lambda cb: (not cb.learn.training or ev=='after_fit') and cb.learn.epoch==0, order=30)
    def run(cbs):
        learn = mkbn(cbs)
        err = None
        try: fit(learn, 2, cbs=mkcb())
        except (KeyboardInterrupt, RuntimeError) as e: err = type(e)
        return learn,err
    (a,e1),(b,e2) = run(EMACallback(.5, at_end=False)),run(None)
    assert e1==e2 and same(ws(a), ws(b)) and a.ema.trained_weights is None

def test_nested_validations():
    "Predictions in the middle of a training batch, and in a validation; also ones that fail"
    def peek(cb):
        seen.append(cb.learn.get_preds()[0])
        try: cb.learn.get_preds(cbs=Callback(after_pred=throw(KeyError())))
        except KeyError: pass
    seen = []
    for ev in ('before_batch','before_pred','after_pred','after_loss','after_backward','after_step','after_validate','after_epoch'):
        a,b = (fit(mkbn([*cbs, at(ev, peek, modes=('fit',))]), 2) for cbs in ([EMACallback(.5, at_end=False)], []))
        assert same(ws(a), ws(b)), ev

def test_files_of_the_fit_hold_what_was_validated(tmp_path):
    learn = mkbn(EMACallback(.5), path=tmp_path)
    vals = []
    fit(learn, 2, cbs=[at('after_epoch', lambda cb: (cb.learn.save(f'm{cb.learn.epoch}', with_opt=False), vals.append(cb.learn.recorder.history[-1]['valid_loss'])), order=61)])
    plain = mkbn(path=tmp_path)
    for i,v in enumerate(vals): assert plain.load(f'm{i}', with_opt=False).validate()[0]==v
    assert learn.validate()[0]==vals[-1]

def test_after_the_fit():
    learn = fit(mkbn(EMACallback(.5, at_end=False)), 2)
    trained,valid = ws(learn),learn.recorder.history[-1]['valid_loss']
    assert learn.validate()[0]==valid and same(ws(learn), trained)
    preds = learn.get_preds()[0]
    with learn.ema.averaged():
        learn.validate()
        assert torch.equal(learn.model.eval()(fvalid[0][0]), preds[:4])
    assert same(ws(learn), trained)
    taken = fit(mkbn(EMACallback(.5)), 2)
    taken.model.load_state_dict(bn(seed=3).state_dict())   # by hand: no average of these
    assert taken.validate()==mkbn(model=bn(seed=3)).validate()

def test_loading_forgets_the_average(tmp_path):
    learn = fit(mkbn(EMACallback(.5, at_end=False), path=tmp_path))
    other = mkbn(path=tmp_path, model=bn(seed=3))
    other.save('other', with_opt=False)
    learn.load('other', with_opt=False)
    assert learn.validate()==other.validate()
    with pytest.raises(RuntimeError, match='no averaged weights'): learn.ema.averaged().__enter__()

def test_weights_that_move_in_memory():
    "Where something else gives the parameters new storage, the averages still reach them"
    learn = Learner(DataLoaders(images(5), images(2, 1)), conv(), nn.CrossEntropyLoss(), opt_func=SGD, lr=.1, cbs=[EMACallback(.5, at_end=False), ChannelsLast()])
    fit(learn)
    trained = ws(learn)
    assert abs(learn.validate()[0]-learn.recorder.history[-1]['valid_loss'])<1e-6 and same(ws(learn), trained)

def test_skipped_steps_are_no_steps():
    learn = fit(mkbn([EMACallback(.5), at('before_step', throw(CancelStep), lambda cb: cb.learn.iter==1)]), 2)
    assert learn.ema.n_step==4
    assert fit(mkbn([GradientAccumulation(8), EMACallback(.5)]), 2).ema.n_step==4

def test_frozen_tied_narrow():
    model = bn()
    model[0].requires_grad_(False)
    learn = fit(mkbn(EMACallback(.5), model=model))
    assert not any(k.startswith('0.') for k in learn.ema.averages) and same(ws(model[0]), ws(bn()[0]))
    model[0].requires_grad_(True)
    learn.create_opt()
    fit(learn)
    assert '0.weight' in learn.ema.averages

    class Tied(nn.Module):
        def __init__(self): super().__init__(); self.a,self.b = nn.Linear(4,4),nn.Linear(4,4); self.b.weight = self.a.weight; self.c = nn.Linear(4,1)
        def forward(self, x): return self.c(self.b(self.a(x)))
    tied = fit(mkbn(EMACallback(.5), model=Tied()))
    assert tied.model.a.weight is tied.model.b.weight and list(tied.ema.averages)==['a.weight','a.bias','b.bias','c.weight','c.bias']

    half = [(x.bfloat16(), y.bfloat16()) for x,y in floats]
    learn = fit(mk(half, EMACallback(.5, at_end=False), model=mlp(torch.bfloat16), valid=half), 2)
    assert {v.dtype for v in learn.ema.averages.values()}=={torch.float32} and learn.model[0].weight.dtype==torch.bfloat16
    assert same(ws(learn), ws(fit(mk(half, model=mlp(torch.bfloat16), valid=half), 2)))

def test_average_resumes():
    "Weights, momentum and the callback's state are all that the second half needs"
    opt_func = lambda p, **kw: SGD(p, momentum=.9, **kw)
    whole = fit(mkbn(EMACallback(.5), opt_func=opt_func), 4)
    states = []
    fit(mkbn(EMACallback(.5), opt_func=opt_func), 4, cbs=at('after_epoch', lambda cb: states.append(deepcopy((cb.learn.model.state_dict(), cb.learn.opt.state_dict(), cb.learn.ema.state_dict()))),
        lambda cb: cb.learn.epoch==1, order=99))
    rest = mkbn(EMACallback(.5), opt_func=opt_func)
    def load(cb):
        m,o,c = states[0]
        rest.model.load_state_dict(m); rest.opt.load_state_dict(o); rest.ema.load_state_dict(c)
    fit(rest, 4, start_epoch=2, cbs=at('before_fit', load, order=99))
    assert same(ws(rest), ws(whole))

def test_average_pickles():
    import pickle
    cb = pickle.loads(pickle.dumps(EMACallback(.7)))
    assert same(ws(fit(mkbn(cb))), ws(fit(mkbn(EMACallback(.7)))))

def test_average_says_what_is_wrong():
    for kw,m in ((dict(decay=1.1), 'from 0 to 1'), (dict(every=0), 'integer'), (dict(start=-1), 'start must be'), (dict(start=1.5), 'start must be')):
        with pytest.raises(ValueError, match=m): EMACallback(**kw)

# short runs
@draws(15)
@given(st.integers(1,12), st.floats(.01, 1.), st.booleans())
def test_short_epochs(n, pct, short_valid):
    seen = []
    count = Callback(after_batch=lambda cb: seen.append(cb.learn.training))
    learn = fit(mk(ragged([2]*n), [ShortEpochCallback(pct, short_valid), count], valid=ragged([2]*4)), 1)
    k,v = max(1, -int(-round(pct*n, 9)//1)),(max(1, -int(-round(pct*4, 9)//1)) if short_valid else 4)
    assert seen==[True]*k+[False]*v
    assert None not in learn.recorder.history[0].values()

def test_short_epoch_shows_its_arguments():
    assert repr(ShortEpochCallback(.3, False))=='ShortEpochCallback(pct=0.3, short_valid=False)'

def test_short_epoch_says_what_is_wrong():
    for pct in (0, 1.5, -1):
        with pytest.raises(ValueError, match='fraction'): ShortEpochCallback(pct)
    class Stream:
        def __iter__(self): return iter(ragged([2]*3))
    with pytest.raises(ValueError, match='StopAfter'): fit(mk(Stream(), ShortEpochCallback(.5)), 1)

@pytest.mark.parametrize('n', [1, 3, 4, 7])
def test_stops_after_exactly_n_batches(n):
    done = []
    learn = fit(mk(ragged([2]*3), [StopAfter(n), at('after_step', lambda cb: done.append(1))]), 9)
    assert len(done)==learn.train_iter==n and len(learn.recorder.history)==-(-n//3) and None not in learn.recorder.history[-1].values()
    fit(learn, 9)
    assert len(done)==2*n

def test_frozen_batch_norms():
    m = nn.Sequential(nn.BatchNorm1d(4), nn.BatchNorm1d(4, affine=False), nn.SyncBatchNorm(4), nn.Sequential(nn.BatchNorm2d(4)), nn.LayerNorm(4)).train()
    m[0].requires_grad_(False); m[3].requires_grad_(False)
    set_bn_eval(m)
    assert [o.training for o in (m[0], m[1], m[2], m[3][0], m[4])]==[False, False, True, False, True]   # one without weights follows the layer before
    set_bn_eval(m, use_eval=False)
    assert all(o.training for o in m.modules())
    single = nn.BatchNorm1d(4).requires_grad_(False)
    set_bn_eval(single)
    assert not single.training

# all together
def conv(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        m = nn.Sequential(nn.Conv2d(1,4,3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64,3))
    m[1].requires_grad_(False)
    return m
def images(n, seed=0):
    g = torch.Generator().manual_seed(seed)
    return [(torch.randn(4,1,6,6, generator=g), torch.randint(3, (4,), generator=g)) for _ in range(n)]

KINDS = dict(acc=lambda: GradientAccumulation(8), clip=lambda: GradientClip(.5), ema=lambda: EMACallback(.5), amp=lambda: MixedPrecision('bf16'),
             micro=lambda: MicroBatch(3), bn=lambda: BnFreeze(), short=lambda: ShortEpochCallback(.6), last=lambda: ChannelsLast())
def together(names, n=1, cbs=None):
    learn = Learner(DataLoaders(images(5), images(2, 1)), conv(), nn.CrossEntropyLoss(), opt_func=SGD, lr=.1, cbs=[KINDS[k]() for k in names])
    return fit(learn, n, cbs=cbs)

@draws(15)
@given(st.permutations(list(KINDS)), st.integers(2, 4), st.randoms())
def test_the_order_of_adding_makes_no_difference(names, n, rnd):
    names = names[:n]
    other = list(names); rnd.shuffle(other)
    a,b = together(names),together(other)
    assert same(ws(a), ws(b))
    assert [r['valid_loss'] for r in a.recorder.history]==[r['valid_loss'] for r in b.recorder.history]
    assert not torch.is_autocast_enabled('cpu') and no_grads(a)

IN_FIT = ['before_fit','before_epoch','before_train','before_batch','before_pred','after_pred','before_loss','after_loss','before_backward','after_backward',
          'before_step','after_step','before_zero_grad','after_zero_grad','after_batch','after_train','before_validate','after_validate','after_epoch','after_fit',
          'before_micro_batch','after_micro_batch']
@few(20, 60)
@pytest.mark.parametrize('ev', IN_FIT)
@pytest.mark.parametrize('exc', [ZeroDivisionError, CancelBatch, CancelTrain, CancelValid, CancelEpoch, CancelFit, CancelStep, CancelBackward, CancelZeroGrad])
def test_nothing_is_left_behind(ev, exc):
    "Everything at once, interrupted anywhere: a plain fit afterwards is that of a fresh Learner with the same weights"
    learn = Learner(DataLoaders(images(5), images(2, 1)), conv(), nn.CrossEntropyLoss(), opt_func=SGD, lr=.1)
    def throw_once(cb):
        hits.append(1)
        if len(hits)==2 or ev in ('before_fit','after_fit','before_train','before_validate'): raise exc
    hits,order = [],50*(len(ev+exc.__name__)%2)
    try: fit(learn, 1, cbs=[*[f() for f in KINDS.values()], at(ev, throw_once, order=order)])
    except (ZeroDivisionError, RuntimeError): pass
    assert hits and not torch.is_autocast_enabled('cpu') and learn.model[0].weight.is_contiguous()
    fresh = Learner(DataLoaders(images(5), images(2, 1)), conv(), nn.CrossEntropyLoss(), opt_func=SGD, lr=.1)
    fresh.model.load_state_dict(learn.model.state_dict())
    assert same(ws(fit(learn, 1)), ws(fit(fresh, 1)))

def test_a_fit_begins_without_gradients():
    "An exception between the backward pass and the step leaves some, which no later fit may use"
    learn = mk()
    with pytest.raises(ZeroDivisionError): fit(learn, cbs=Callback(after_backward=throw(ZeroDivisionError)))
    assert not no_grads(learn)
    assert same(ws(fit(learn)), ws(fit(mk())))

def test_fastais_accumulation_and_clipping():
    "The same weights as fastai, where its steps come out even"
    fc = pytest.importorskip('fastai.callback.all')
    from fastai.data.core import DataLoaders as FastDataLoaders
    from fastai.data.load import DataLoader as FastDataLoader
    from fastai.learner import Learner as FastLearner
    from fastai.losses import MSELossFlat
    from fastai.optimizer import OptimWrapper
    from functools import partial
    data = list(zip(*items(32, dtype=torch.float)))
    def run(cls, opt, *cbs):
        dls = FastDataLoaders(*(FastDataLoader(data, bs=4, num_workers=0) for _ in range(2)), device='cpu')
        return ws(fit(cls(dls, mlp(torch.float), MSELossFlat(), opt_func=opt, lr=.05, cbs=list(cbs))))
    theirs = run(FastLearner, partial(OptimWrapper, opt=SGD), fc.GradientAccumulation(16), fc.GradientClip(.1))
    assert same(theirs, run(Learner, SGD, GradientAccumulation(16), GradientClip(.1)))

@pytest.mark.parametrize('cbs', [[], *slow([CheckpointCallback])])
def test_workers_that_persist_end_with_their_learner(cbs, tmp_path, monkeypatch):
    "The garbage collector closed their queues first, so they could not be told to end, and PyTorch waited for them"
    monkeypatch.setattr(torch.utils.data._utils, 'MP_STATUS_CHECK_INTERVAL', 5)
    def trained():
        dl = DataLoader(TensorDataset(torch.randn(8, 4), torch.randn(8, 1)), 4, num_workers=1, persistent_workers=True)
        learn = Learner(DataLoaders(dl), nn.Linear(4, 1), nn.MSELoss(), path=tmp_path)
        with learn.no_bar(), learn.no_logging(): learn.fit(2, cbs=[cb('1ep') for cb in cbs])
        return dl._iterator._workers
    workers,start = trained(),time.perf_counter()
    gc.collect()
    assert time.perf_counter()-start<4 and not any(w.is_alive() for w in workers)
