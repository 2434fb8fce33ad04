"An event that announces a step is heard when there is one: with accumulation n every set of callbacks trains as with n times larger batches"
from collections import Counter
from functools import partial

import pytest, torch
from hypothesis import given, settings, strategies as st
from torch import nn
from torch.optim import SGD, Adam

from learnkit.all import (BatchEvents, Callback, CombinedLoader, EachLoader, EMACallback, GradientAccumulation, GradientClip, Learner, MicroBatch, MixedPrecision,
                          SkipNaN, TorchScheduler)

def data(sizes, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(sum(sizes), 4, generator=g, dtype=torch.double)
    return list(zip(x.split(sizes), (x.sum(1, keepdim=True)+.1).split(sizes)))

def model(dtype=torch.double):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1)).to(dtype)

class Clip(Callback):
    "README's: of order 0, as callbacks of users are"
    def __init__(self, norm=.1): self.norm = norm
    def before_step(self): nn.utils.clip_grad_norm_(self.learn.model.parameters(), self.norm)

class Decay(Callback):
    "A schedule by steps"
    def after_step(self): self.learn.opt.set_hyper('lr', self.learn.opt.hypers[0]['lr']*.9)

class Sign(Callback):
    "Changes the gradients in a way that no later scaling undoes"
    def before_step(self):
        for p in self.learn.model.parameters(): p.grad.add_(torch.sign(p.grad), alpha=.01)

class Second(Callback):
    "An optimizer of its own for the last layer, beside the Learner's"
    when = 'before_step'
    def before_fit(self): self.opt2 = Adam(self.learn.model[2].parameters(), lr=.01)
    def before_step(self): self.opt2.step()
    def after_zero_grad(self): self.opt2.zero_grad()

class Heard(Callback):
    def __init__(self): self.n = Counter()
    def __call__(self, name, **kw): self.n[name] += 1

cbs_of = dict(clip=Clip, decay=Decay, sign=Sign, second=Second, ema=lambda: EMACallback(.5), own_clip=lambda: GradientClip(.05), value=lambda: GradientClip(value=.01),
              torch_sched=lambda: TorchScheduler(partial(torch.optim.lr_scheduler.ExponentialLR, gamma=.9), 'step'), skip=SkipNaN, events=BatchEvents)

def fitted(batches, names, *more, n_epoch=2, dtype=torch.double, loss_func=nn.MSELoss()):
    m = model(dtype)
    splitter = (lambda m: [*m[0].parameters()]) if 'second' in names else None
    learn = Learner([[(x.to(dtype), y.to(dtype)) for x,y in batches], data([3], 1) if dtype==torch.double else None], m, loss_func, opt_func=partial(SGD, momentum=.5), lr=.05,
                    cbs=[Heard, *[cbs_of[n]() for n in names], *more], **dict(splitter=splitter) if splitter else {})
    with learn.no_logging(), learn.no_bar(): learn.fit(n_epoch)
    return learn

def weights(learn): return torch.cat([p.detach().flatten().double() for p in learn.model.parameters()])
def joined(batches, n): return [tuple(map(torch.cat, zip(*batches[i:i+n]))) for i in range(0, len(batches), n)]
steps = 'before_step','after_step','before_zero_grad','after_zero_grad'

@settings(max_examples=60, deadline=None)
@given(names=st.sets(st.sampled_from([*cbs_of])), n=st.integers(2,4), n_batches=st.integers(1,9), bs=st.integers(1,3), micro=st.booleans())
def test_accumulation_is_training_with_larger_batches(names, n, n_batches, bs, micro):
    small = data([bs]*n_batches)
    acc = fitted(small, names, GradientAccumulation(n*bs), *[MicroBatch(1)]*micro)
    large = fitted(joined(small, n), names)
    assert torch.allclose(weights(acc), weights(large), rtol=0, atol=1e-12)
    assert [acc.heard.n[e] for e in steps]==[large.heard.n[e] for e in steps]==[2*-(-n_batches//n)]*4
    assert acc.heard.n['after_backward']==2*n_batches*(bs if micro else 1) and acc.heard.n['after_batch']==2*n_batches+2

@settings(max_examples=20, deadline=None)
@given(names=st.sets(st.sampled_from([*cbs_of])), sizes=st.lists(st.integers(1,5), min_size=1, max_size=7), n_acc=st.integers(5,12))
def test_of_ragged_batches_too(names, sizes, n_acc):
    "The gradients of a step are those of the mean over its items, before anybody hears of the step"
    groups,cur,small = [],[],data(sizes)
    for i,s in enumerate(sizes):
        cur.append(i)
        if sum(sizes[j] for j in cur)>=n_acc or i==len(sizes)-1: groups.append(cur); cur = []
    large = [tuple(map(torch.cat, zip(*[small[j] for j in g]))) for g in groups]
    assert torch.allclose(weights(fitted(small, names, GradientAccumulation(n_acc))), weights(fitted(large, names)), rtol=0, atol=1e-12)

def test_a_clip_of_ones_own_is_gradient_clip():
    small = data([2]*8)
    own,ours = [fitted(small, (), GradientAccumulation(8), cb) for cb in (Clip(.05), GradientClip(.05))]
    assert torch.equal(weights(own), weights(ours)) and own.heard.n['before_step']==4

@pytest.mark.parametrize('acc', [False, True])
def test_gradients_are_unscaled_before_handlers_of_the_step(acc):
    "With fp16 a clip of order 0 clips gradients, not gradients times 65536"
    batches,more = data([2]*4),[GradientAccumulation(4)]*acc
    def run(cb): return fitted(batches, (), *more, MixedPrecision('fp16', init_scale=1024.), cb, dtype=torch.float)
    assert torch.equal(weights(run(Clip(.05))), weights(run(GradientClip(.05))))
    norms = []
    run(Callback(before_step=lambda cb: norms.append(nn.utils.get_total_norm([p.grad for p in cb.learn.model.parameters()]).item())))
    assert max(norms)<100

def test_of_what_another_optimizer_takes_too():
    "The gradients of the last layer, which the Learner's optimizer does not have, are those of plain training"
    grads = []
    def see(cb): grads.append(cb.learn.model[2].weight.grad.clone())
    for cbs in ([], [MixedPrecision('fp16', init_scale=1024.)]):
        fitted(data([2]), ('second',), GradientAccumulation(4), *cbs, Callback(before_step=see), n_epoch=1, dtype=torch.float)
    assert torch.allclose(*grads, rtol=1e-2, atol=1e-4)

def test_no_step_is_announced_whose_gradients_are_infinite():
    heard = []
    def inf(cb): cb.learn.model[0].weight.grad.fill_(float('inf'))
    seen = Callback(before_step=lambda cb: heard.append('before_step'), after_cancel_step=lambda cb: heard.append('cancelled'))
    fitted(data([2]*2), (), MixedPrecision('fp16', init_scale=1024.), Callback(after_backward=inf), seen, n_epoch=1, dtype=torch.float)
    assert heard==['cancelled']*2

def test_what_prepares_a_step_is_called_first():
    class Ready(Callback): order,first_in = 50,('before_step',); before_step = after_step = lambda self: None
    class User(Callback): before_step = after_step = lambda self: None
    learn = Learner([data([2]), None], model(), nn.MSELoss(), cbs=[User, Ready])
    assert [type(cb) for cb in learn.ordered_cbs('before_step')]==[Ready,User] and [type(cb) for cb in learn.ordered_cbs('after_step')]==[User,Ready]
    learn.add_cb(MixedPrecision('fp16')).add_cb(GradientAccumulation(4))
    assert [type(cb) for cb in learn.ordered_cbs('before_step')]==[GradientAccumulation,MixedPrecision,Ready,User]

def test_sparse_gradients_raise_in_one_sentence():
    m = nn.Sequential(nn.Embedding(5, 2, sparse=True), nn.Flatten(), nn.Linear(2, 1))
    learn = Learner([[(torch.ones(3, 1).long(), torch.ones(3, 1))], None], m, nn.MSELoss(), opt_func=SGD, lr=.1)
    with learn.no_logging(), learn.no_bar(), pytest.raises(ValueError, match='sparse=False'): learn.fit(1, cbs=GradientClip(value=.1))

class Wraps(Callback):
    "Records what a wrapper around the batch sees of its end"
    def __init__(self): self.ends = []
    def wrap(self, what, do): return partial(self.run_it, do) if what=='batch' else do
    def run_it(self, do):
        try: do(); self.ends.append('returned')
        except BaseException as e: self.ends.append(type(e).__name__); raise

class Ear(Callback):
    order = -1000
    def __init__(self): self.heard = []
    def __call__(self, name, **kw):
        if self.learn.training and name.startswith(('before_step','after_step','after_cancel','after_backward','after_batch')): self.heard.append(name)

def test_a_batch_that_waits_for_its_step_raises_nothing():
    "It ends as a cancelled batch does for all who watch, and wrappers of the batch return"
    ear,wraps = Ear(),Wraps()
    fitted(data([2]*4), (), GradientAccumulation(4), ear, wraps, n_epoch=1)
    waits,steps = ['after_backward','after_cancel_batch','after_batch'],['after_backward','before_step','after_step','after_batch']
    assert ear.heard==[*waits, *steps]*2 and wraps.ends==['returned']*5   # that of the validation too

@pytest.mark.parametrize('leave', [lambda cb: cb.learn.remove_cb(GradientAccumulation), lambda cb: setattr(cb.learn.gradient_accumulation, 'run', False)])
def test_the_batches_after_it_has_left_step_again(leave):
    ear = Ear()
    fitted(data([2]*4), (), GradientAccumulation(100), ear, Callback(after_batch=lambda cb: cb.learn.iter==1 and leave(cb)), n_epoch=1)
    assert ear.heard.count('after_cancel_batch')==2 and ear.heard.count('after_step')>=2
    assert ear.heard[6:10]==['after_backward','before_step','after_step','after_batch']

@pytest.mark.parametrize('order', [-1, 1000])
def test_a_batch_that_a_callback_cancels_takes_no_step_where_one_is_due(order):
    "Its gradients remain, and the next batch completes the step"
    ear = Ear()
    def cancel(cb):
        if cb.learn.iter==1: cb.learn.current_run.is_cancelled = True
    canceller = Callback(after_backward=cancel)
    canceller.order = order
    learn = fitted(data([2]*4), (), GradientAccumulation(4), ear, canceller, n_epoch=1)
    waits,steps = ['after_backward','after_cancel_batch','after_batch'],['after_backward','before_step','after_step','after_batch']
    assert ear.heard==[*waits, *waits, *steps, *waits, 'before_step', 'after_step']
    assert torch.allclose(weights(learn), weights(fitted(joined(data([2]*4), 3), (), n_epoch=1)))

class Waits(Callback):
    "Accumulates two batches for a step, as the notebook of the loop says"
    def after_backward(self):
        if self.learn.iter%2==0: self.learn.current_run.is_cancelled = True

def test_a_batch_that_is_cancelled_without_an_exception_takes_no_step_in_micro_batches():
    ears = Ear(),Ear()
    whole = fitted(data([2]*4), (), Waits(), ears[0], n_epoch=1)
    parts = fitted(data([2]*4), (), Waits(), MicroBatch(1), ears[1], n_epoch=1)
    assert whole.train_steps==parts.train_steps==2 and torch.allclose(weights(whole), weights(parts))
    heard = [[name for name in ear.heard if name!='after_backward'] for ear in ears]
    assert heard[0]==heard[1]

def test_a_step_without_gradients_changes_nothing():
    "A callback sets the gradients of the first step to None; the second step is as without it"
    class DropsGradients(Callback):
        def after_backward(self):
            if self.learn.iter<2: self.learn.opt.zero_grad()
    batches = data([4, 2, 4, 3])   # of unequal weight, so that gradients are rescaled
    cbs = GradientAccumulation('2ba')
    learn = Learner([batches], model(), nn.MSELoss(), SGD, lr=.1, cbs=[cbs, DropsGradients()])
    alone = Learner([batches[2:]], model(), nn.MSELoss(), SGD, lr=.1, cbs=GradientAccumulation('2ba'))
    for o in (learn, alone):
        with o.no_logging(), o.no_bar(): o.fit(1)
    assert torch.equal(weights(learn), weights(alone))

def test_a_zipped_batch_that_is_cancelled_without_an_exception_takes_no_step():
    m,ear = model(),Ear()
    zipped = CombinedLoader({'a':data([2]*4), 'b':data([2]*4, 1)}, order='zip')
    learn = Learner([zipped, None], m, nn.MSELoss(), opt_func=SGD, lr=.05, cbs=[EachLoader(), Waits(), ear])
    with learn.no_logging(), learn.no_bar(): learn.fit(1)
    assert learn.train_steps==2 and ear.heard.count('after_cancel_batch')==2
