"""Optimizers that know nothing of PyTorch's base class: the weights are those of a loop by hand, whatever else of the library takes part"""
from copy import deepcopy
from functools import partial

import pytest, torch
from torch import nn
from torch.nn import functional as F

from learnkit.all import CheckpointCallback, GradientAccumulation, GradientClip, MixedPrecision, ParamScheduler, SchedLin
from learnkit.optim.by_hand import HandWrittenOptimizers
from toys import at, batches, learner, model, throw, weights

class Momentum:
    def __init__(self, params, lr=.1, mom=.9, wd=0.):
        self.params,self.lr,self.mom,self.wd,self.n = list(params),lr,mom,wd,0
        self.avgs = [torch.zeros_like(p) for p in self.params]
    @torch.no_grad()
    def step(self):
        self.n += 1
        for p,avg in zip(self.params, self.avgs):
            avg.mul_(self.mom).add_(p.grad + self.wd*p)
            p -= self.lr*avg
    def zero_grad(self):
        for p in self.params: p.grad.zero_()

class NoLR(Momentum):
    def __init__(self, params): super().__init__(params)

class Two(nn.Sequential):
    def __init__(self): super().__init__(nn.Linear(4,3), nn.Linear(3,1))
def groups(m): return [list(o.parameters()) for o in m]

def by_hand(opt, m, n_epoch=2, before_step=lambda i: None, n=5):
    for i,(x,y) in enumerate(batches(n)*n_epoch):
        F.mse_loss(m(x), y).backward()
        before_step(i)
        opt.step()
        opt.zero_grad()
    return torch.cat([p.detach().flatten() for p in m.parameters()])
def mk(opt_func=Momentum, lr=None, **kw): return learner(n=5, opt_func=opt_func, lr=lr, **kw)
def fitted(*args, n=2, cbs=None, **kw): learn = mk(*args, **kw); learn.fit(n, cbs=cbs); return learn

@pytest.mark.parametrize('opt_func,lr,want', [(Momentum, None, .1), (Momentum, .02, .02), (partial(Momentum, lr=.03, mom=.5), None, .03), (NoLR, None, .1)])
def test_a_class(opt_func, lr, want):
    learn,m = fitted(opt_func, lr),model()
    opt = opt_func(m.parameters())
    opt.lr = want
    assert torch.equal(weights(learn), by_hand(opt, m)) and learn.lr==want and learn.opt.opt.optimizers[0].n==10

def test_one_that_is_built():
    m,own = model(),model()
    for give in (lambda l,o: None, lambda l,o: setattr(l, 'opt', o)):
        m = model()
        opt = Momentum(m.parameters(), .05)
        learn = learner(n=5, model=m, lr=None, opt_func=opt)
        give(learn, opt)
        learn.fit(2)
        own = model()
        assert torch.equal(weights(learn), by_hand(Momentum(own.parameters(), .05), own)) and learn.opt.opt.optimizers==[opt] and learn.lr==.05

def test_one_for_each_group():
    learn,m = fitted(lr=slice(.01,.1), model=model(cls=Two), splitter=groups),model(cls=Two)
    class Both:
        def __init__(self): self.opts = [Momentum(ps, lr) for ps,lr in zip(groups(m), (.01,.1))]
        def step(self): [o.step() for o in self.opts]
        def zero_grad(self): [o.zero_grad() for o in self.opts]
    assert torch.equal(weights(learn), by_hand(Both(), m))

def test_schedules_clipping_accumulation():
    m = model()
    opt = Momentum(m.parameters())
    def before(i): opt.lr = .1*(1-i/10); nn.utils.clip_grad_norm_(m.parameters(), .1)
    want = by_hand(opt, m, before_step=before)
    assert torch.allclose(weights(fitted(cbs=[ParamScheduler({'lr':SchedLin(.1, 0.)}), GradientClip(.1)])), want)
    assert fitted(cbs=GradientAccumulation(8), n=2).opt.opt.optimizers[0].n==6
    learn = fitted(cbs=MixedPrecision('fp16', init_scale=2.))
    assert torch.allclose(weights(learn), by_hand(Momentum((m := model()).parameters()), m), atol=.01)

@pytest.mark.parametrize('at_batch', [1, 4, 5, 8])
def test_a_resumed_run_has_its_averages(tmp_path, at_batch):
    learn = mk(path=tmp_path, cbs=CheckpointCallback('1ba'))
    with pytest.raises(RuntimeError, match='power'): learn.fit(2, cbs=at('after_batch', throw(RuntimeError('power')), lambda cb: cb.learn.training and cb.learn.train_iter==at_batch))
    learn = mk(path=tmp_path, cbs=CheckpointCallback('1ba'))
    learn.fit(2, resume='auto')
    assert torch.equal(weights(learn), weights(fitted())) and learn.opt.opt.optimizers[0].n==10

def test_saved_and_copied(tmp_path):
    learn = fitted(path=tmp_path)
    learn.save('m')
    other,twin = mk(path=tmp_path),deepcopy(learn)
    other.create_opt()
    other.load('m')
    for l in (learn, other, twin): l.fit(1)
    assert torch.equal(weights(learn), weights(other)) and torch.equal(weights(learn), weights(twin))

def test_lr_find_puts_it_back():
    learn,plain = fitted(),fitted()
    learn.lr_find(num_it=10, show_plot=False)
    for l in (learn, plain): l.fit(1, .05)
    assert torch.equal(weights(learn), weights(plain)) and learn.opt.opt.optimizers[0].n==15

def test_weight_decay_of_all_or_not_at_all():
    "One list of parameters has one decay"
    with pytest.raises(TypeError, match='wd_bn_bias=True'): fitted(wd=.1)
    m = model()
    assert torch.equal(weights(fitted(wd=.1, wd_bn_bias=True)), by_hand(Momentum(m.parameters(), wd=.1), m))

class Keyed(Momentum):
    def __init__(self, params): super().__init__(params); self.seen = {id(p):0 for p in self.params}
class Given(Keyed):
    def state_dict(self): return dict(avgs=self.avgs)
    def load_state_dict(self, sd): self.avgs = sd['avgs']
class NoList:
    def step(self): pass
    def zero_grad(self): pass

def test_what_raises(tmp_path):
    with pytest.raises(TypeError, match='has `seen`, a dict that no checkpoint can hold'): fitted(Keyed, path=tmp_path).save('m')
    fitted(Given, path=tmp_path).save('m')
    with pytest.raises(TypeError, match='has no list of parameters'): mk(NoList())
    with pytest.raises(TypeError, match='takes no `lr`'): fitted(NoLR, .1)
    def forget(cb): cb.learn.model.bias.grad = None
    with pytest.raises(TypeError) as e: fitted(cbs=at('before_step', forget))
    assert any('1 parameters of the optimizer have no gradient: skip those' in n for n in e.value.__notes__)
    with pytest.raises(ValueError, match='states of 0 hand-written optimizers, but this one combines 1'): mk().create_opt() and fitted().opt.load_state_dict(fitted(torch.optim.SGD, .1).opt.state_dict())
    assert isinstance(fitted().opt.opt, HandWrittenOptimizers)

def test_a_frozen_group_stays():
    learn = mk(model=model(cls=Two), splitter=groups)
    before = [p.clone() for p in learn.model.parameters()]
    learn.freeze()
    learn.fit(1)
    assert [torch.equal(a, b) for a,b in zip(before, learn.model.parameters())]==[True, True, False, False]

@pytest.mark.parametrize('k,v,fits', [('weight_decay', .1, False), ('wd', .1, False), ('wd', .01, True), ('weight_decay', .01, True)])
def test_two_weight_decays(k, v, fits):
    def make(): return learner(opt_func=partial(torch.optim.AdamW, **{k:v}), wd=.01)
    if fits: return make().fit(1)
    with pytest.raises(ValueError, match=f'two weight decays, wd=.* {k}=0.1'): make()

def test_the_state_is_cleared():
    "`freeze` and `unfreeze` left the momentum of a hand-written optimizer as it was"
    learn = learner(opt_func=partial(Momentum, mom=.8))
    learn.fit(1)
    learn.unfreeze()
    opt, = learn.opt.opt.optimizers
    assert opt.n==0 and not any(avg.any() for avg in opt.avgs) and opt.mom==.8
    before = learn.opt.hypers[0]['lr']
    learn.fit(1)
    assert opt.n and opt.avgs[0].any() and opt.params[0] is next(learn.model.parameters()) and learn.opt.hypers[0]['lr']==before
    mine = Momentum(learn.model.parameters())
    learn = learner(model=learn.model, opt_func=mine)
    with pytest.warns(UserWarning, match='Momentum keeps its state.*Pass the class'): learn.unfreeze()
