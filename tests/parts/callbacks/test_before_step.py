"Events of a step fire only when a step is due: accumulating n batches trains as n times larger batches do"
from collections import Counter
from functools import partial

import pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from torch.optim import SGD, Adam

from learnkit.all import (BatchEvents, Callback, CombinedLoader, EachLoader, EMACallback, GradientAccumulation, GradientClip, Learner, MicroBatch, MixedPrecision,
                          SkipNaN, TorchScheduler)
from toys import draws

def data(sizes, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(sum(sizes), 4, generator=g, dtype=torch.double)
    return list(zip(x.split(sizes), (x.sum(1, keepdim=True)+.1).split(sizes)))

def model(dtype=torch.double):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1)).to(dtype)

class Clip(Callback):
    "The README's clipping callback, of order 0 as users' callbacks are"
    def __init__(self, norm=.1): self.norm = norm
    def before_step(self): nn.utils.clip_grad_norm_(self.learn.model.parameters(), self.norm)

class Decay(Callback):
    "Multiplies the learning rate by 0.9 after each step"
    def after_step(self): self.learn.opt.set_hyper('lr', self.learn.opt.hypers[0]['lr']*.9)

class Sign(Callback):
    "Changes the gradients nonlinearly, so a wrong scale of the gradients changes the result"
    def before_step(self):
        for p in self.learn.model.parameters(): p.grad.add_(torch.sign(p.grad), alpha=.01)

class Second(Callback):
    "Trains the last layer with its own optimizer, in addition to the Learner's"
    when = 'before_step'
    def before_fit(self): self.opt2 = Adam(self.learn.model[2].parameters(), lr=.01)
    def before_step(self): self.opt2.step()
    def after_zero_grad(self): self.opt2.zero_grad()

class CountsEvents(Callback):
    def __init__(self): self.n = Counter()
    def __call__(self, name, **kw): self.n[name] += 1

cbs_of = dict(clip=Clip, decay=Decay, sign=Sign, second=Second, ema=lambda: EMACallback(.5), own_clip=lambda: GradientClip(.05), value=lambda: GradientClip(value=.01),
              torch_sched=lambda: TorchScheduler(partial(torch.optim.lr_scheduler.ExponentialLR, gamma=.9), 'step'), skip=SkipNaN, events=BatchEvents)

def fitted(batches, names, *more, n_epoch=2, dtype=torch.double, loss_func=nn.MSELoss()):
    m = model(dtype)
    splitter = (lambda m: [*m[0].parameters()]) if 'second' in names else None
    learn = Learner([[(x.to(dtype), y.to(dtype)) for x,y in batches], data([3], 1) if dtype==torch.double else None], m, loss_func, opt_func=partial(SGD, momentum=.5), lr=.05,
                    cbs=[CountsEvents, *[cbs_of[n]() for n in names], *more], **dict(splitter=splitter) if splitter else {})
    with learn.no_logging(), learn.no_bar(): learn.fit(n_epoch)
    return learn

def weights(learn): return torch.cat([p.detach().flatten().double() for p in learn.model.parameters()])
def joined(batches, n): return [tuple(map(torch.cat, zip(*batches[i:i+n]))) for i in range(0, len(batches), n)]
steps = 'before_step','after_step','before_zero_grad','after_zero_grad'

@draws(30)
@given(names=st.sets(st.sampled_from([*cbs_of])), n=st.integers(2,4), n_batches=st.integers(1,9), bs=st.integers(1,3), micro=st.booleans())
def test_accumulation_is_training_with_larger_batches(names, n, n_batches, bs, micro):
    small = data([bs]*n_batches)
    acc = fitted(small, names, GradientAccumulation(n*bs), *[MicroBatch(1)]*micro)
    large = fitted(joined(small, n), names)
    assert torch.allclose(weights(acc), weights(large), rtol=0, atol=1e-12)
    assert [acc.counts_events.n[e] for e in steps]==[large.counts_events.n[e] for e in steps]==[2*-(-n_batches//n)]*4
    assert acc.counts_events.n['after_backward']==2*n_batches*(bs if micro else 1) and acc.counts_events.n['after_batch']==2*n_batches+2

@draws(12)
@given(names=st.sets(st.sampled_from([*cbs_of])), sizes=st.lists(st.integers(1,5), min_size=1, max_size=7), n_acc=st.integers(5,12))
def test_accumulation_of_batches_of_unequal_sizes(names, sizes, n_acc):
    "The gradients of a step are those of the mean over its samples before any `before_step` handler runs"
    groups,cur,small = [],[],data(sizes)
    for i,s in enumerate(sizes):
        cur.append(i)
        if sum(sizes[j] for j in cur)>=n_acc or i==len(sizes)-1: groups.append(cur); cur = []
    large = [tuple(map(torch.cat, zip(*[small[j] for j in g]))) for g in groups]
    assert torch.allclose(weights(fitted(small, names, GradientAccumulation(n_acc))), weights(fitted(large, names)), rtol=0, atol=1e-12)

def test_a_user_written_clip_equals_gradient_clip():
    small = data([2]*8)
    own,ours = [fitted(small, (), GradientAccumulation(8), cb) for cb in (Clip(.05), GradientClip(.05))]
    assert torch.equal(weights(own), weights(ours)) and own.counts_events.n['before_step']==4

@pytest.mark.parametrize('acc', [False, True])
def test_gradients_are_unscaled_before_handlers_of_the_step(acc):
    "With fp16 a clip of order 0 clips gradients, not gradients times 65536"
    batches,more = data([2]*4),[GradientAccumulation(4)]*acc
    def run(cb): return fitted(batches, (), *more, MixedPrecision('fp16', init_scale=1024.), cb, dtype=torch.float)
    assert torch.equal(weights(run(Clip(.05))), weights(run(GradientClip(.05))))
    norms = []
    run(Callback(before_step=lambda cb: norms.append(nn.utils.get_total_norm([p.grad for p in cb.learn.model.parameters()]).item())))
    assert max(norms)<100

def test_gradients_of_a_second_optimizer_are_unscaled_too():
    "Gradients of the last layer, which is not in the Learner's optimizer, equal those of training without a scaler"
    grads = []
    def see(cb): grads.append(cb.learn.model[2].weight.grad.clone())
    for cbs in ([], [MixedPrecision('fp16', init_scale=1024.)]):
        fitted(data([2]), ('second',), GradientAccumulation(4), *cbs, Callback(before_step=see), n_epoch=1, dtype=torch.float)
    assert torch.allclose(*grads, rtol=1e-2, atol=1e-4)

def test_infinite_gradients_fire_no_before_step():
    events = []
    def inf(cb): cb.learn.model[0].weight.grad.fill_(float('inf'))
    seen = Callback(before_step=lambda cb: events.append('before_step'), after_cancel_step=lambda cb: events.append('cancelled'))
    fitted(data([2]*2), (), MixedPrecision('fp16', init_scale=1024.), Callback(after_backward=inf), seen, n_epoch=1, dtype=torch.float)
    assert events==['cancelled']*2

def test_handlers_listed_in_first_in_run_first():
    class Ready(Callback): order,first_in = 50,('before_step',); before_step = after_step = lambda self: None
    class User(Callback): before_step = after_step = lambda self: None
    learn = Learner([data([2]), None], model(), nn.MSELoss(), cbs=[User, Ready])
    assert [type(cb) for cb in learn.ordered_cbs('before_step')]==[Ready,User] and [type(cb) for cb in learn.ordered_cbs('after_step')]==[User,Ready]
    learn.add_cb(MixedPrecision('fp16')).add_cb(GradientAccumulation(4))
    assert [type(cb) for cb in learn.ordered_cbs('before_step')]==[GradientAccumulation,MixedPrecision,Ready,User]

def test_sparse_gradients_raise():
    m = nn.Sequential(nn.Embedding(5, 2, sparse=True), nn.Flatten(), nn.Linear(2, 1))
    learn = Learner([[(torch.ones(3, 1).long(), torch.ones(3, 1))], None], m, nn.MSELoss(), opt_func=SGD, lr=.1)
    with learn.no_logging(), learn.no_bar(), pytest.raises(ValueError, match='sparse=False'): learn.fit(1, cbs=GradientClip(value=.1))

class RecordsBatchEnds(Callback):
    "Records how each wrapped batch ends: 'returned', or the name of the exception raised"
    def __init__(self): self.ends = []
    def wrap(self, what, do): return partial(self.run_it, do) if what=='batch' else do
    def run_it(self, do):
        try: do(); self.ends.append('returned')
        except BaseException as e: self.ends.append(type(e).__name__); raise

class RecordsEvents(Callback):
    order = -1000
    def __init__(self): self.events = []
    def __call__(self, name, **kw):
        if self.learn.training and name.startswith(('before_step','after_step','after_cancel','after_backward','after_batch')): self.events.append(name)

def test_an_accumulating_batch_ends_without_an_exception():
    "It fires the events of a cancelled batch, and wrappers of the batch return normally"
    log,batch_ends = RecordsEvents(),RecordsBatchEnds()
    fitted(data([2]*4), (), GradientAccumulation(4), log, batch_ends, n_epoch=1)
    waits,steps = ['after_backward','after_cancel_batch','after_batch'],['after_backward','before_step','after_step','after_batch']
    assert log.events==[*waits, *steps]*2 and batch_ends.ends==['returned']*5   # four training batches and one validation batch

@pytest.mark.parametrize('leave', [lambda cb: cb.learn.remove_cb(GradientAccumulation), lambda cb: setattr(cb.learn.gradient_accumulation, 'run', False)])
def test_batches_step_again_after_accumulation_is_removed(leave):
    log = RecordsEvents()
    fitted(data([2]*4), (), GradientAccumulation(100), log, Callback(after_batch=lambda cb: cb.learn.iter==1 and leave(cb)), n_epoch=1)
    assert log.events.count('after_cancel_batch')==2 and log.events.count('after_step')>=2
    assert log.events[6:10]==['after_backward','before_step','after_step','after_batch']

@pytest.mark.parametrize('order', [-1, 1000])
def test_a_batch_that_a_callback_cancels_takes_no_step_where_one_is_due(order):
    "Its gradients stay accumulated, and the next batch takes the step"
    log = RecordsEvents()
    def cancel(cb):
        if cb.learn.iter==1: cb.learn.current_run.is_cancelled = True
    canceller = Callback(after_backward=cancel)
    canceller.order = order
    learn = fitted(data([2]*4), (), GradientAccumulation(4), log, canceller, n_epoch=1)
    waits,steps = ['after_backward','after_cancel_batch','after_batch'],['after_backward','before_step','after_step','after_batch']
    assert log.events==[*waits, *waits, *steps, *waits, 'before_step', 'after_step']
    assert torch.allclose(weights(learn), weights(fitted(joined(data([2]*4), 3), (), n_epoch=1)))

class AccumulatesTwo(Callback):
    "Accumulates two batches for each step, as the notebook of the loop shows"
    def after_backward(self):
        if self.learn.iter%2==0: self.learn.current_run.is_cancelled = True

def test_a_batch_that_is_cancelled_without_an_exception_takes_no_step_in_micro_batches():
    logs = RecordsEvents(),RecordsEvents()
    whole = fitted(data([2]*4), (), AccumulatesTwo(), logs[0], n_epoch=1)
    parts = fitted(data([2]*4), (), AccumulatesTwo(), MicroBatch(1), logs[1], n_epoch=1)
    assert whole.train_steps==parts.train_steps==2 and torch.allclose(weights(whole), weights(parts))
    events = [[name for name in log.events if name!='after_backward'] for log in logs]
    assert events[0]==events[1]

def test_a_step_without_gradients_changes_nothing():
    "After a step whose gradients were set to None, the next step is unaffected"
    class DropsGradients(Callback):
        def after_backward(self):
            if self.learn.iter<2: self.learn.opt.zero_grad()
    batches = data([4, 2, 4, 3])   # of unequal sizes, so that gradients are rescaled
    cbs = GradientAccumulation('2ba')
    learn = Learner([batches], model(), nn.MSELoss(), SGD, lr=.1, cbs=[cbs, DropsGradients()])
    alone = Learner([batches[2:]], model(), nn.MSELoss(), SGD, lr=.1, cbs=GradientAccumulation('2ba'))
    for o in (learn, alone):
        with o.no_logging(), o.no_bar(): o.fit(1)
    assert torch.equal(weights(learn), weights(alone))

def test_a_zipped_batch_that_is_cancelled_without_an_exception_takes_no_step():
    m,log = model(),RecordsEvents()
    zipped = CombinedLoader({'a':data([2]*4), 'b':data([2]*4, 1)}, order='zip')
    learn = Learner([zipped, None], m, nn.MSELoss(), opt_func=SGD, lr=.05, cbs=[EachLoader(), AccumulatesTwo(), log])
    with learn.no_logging(), learn.no_bar(): learn.fit(1)
    assert learn.train_steps==2 and log.events.count('after_cancel_batch')==2
