"""Optimizers in turn, closures and second evaluations, with what else is around a step; each beside the loop by hand"""
from functools import partial

import pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.optim import LBFGS, SGD, Adam

from learnkit.all import (SAM, Callback, CheckpointCallback, Closure, DataLoaders, EMACallback, GradientAccumulation, GradientClip, InTurn,
    Learner, MicroBatch, MixedPrecision, VirtualShards)

torch.set_num_threads(1)
two = {'d':(Adam, 'd.*'), 'g':(SGD, 'g.*')}

class GAN(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.g,self.d = nn.Linear(3, 2),nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    def forward(self, z): return self.g(z)

def batches():
    torch.manual_seed(2)
    return [(z, torch.randn(8, 2)) for z in torch.randn(6, 8, 3)]

def losses(gan):
    def judge(made, real): return F.softplus(-gan.d(real)).mean() + F.softplus(gan.d(made.detach())).mean()
    def fool(made, real): return F.softplus(-gan.d(made)).mean()
    return dict(d=judge, g=fool)

def learner(turns=None, cbs=(), opt_func=two, gan=None, **kw):
    gan = gan or GAN()
    turn = [] if turns is False else [InTurn(turns, **losses(gan))]
    learn = Learner(DataLoaders(batches()), gan, losses(gan)['g'], opt_func, lr=.05, cbs=[*turn, *cbs], **kw)
    learn.logger = lambda *a, **k: None
    return learn.remove_cb(learn.progress)

def same(a, b): return all(torch.equal(p, q) for p,q in zip(a.state_dict().values(), b.state_dict().values()))

def by_hand(turns, n=2, clip=None):
    gan = GAN()
    opts,fs = dict(d=Adam(gan.d.parameters(), lr=.05), g=SGD(gan.g.parameters(), lr=.05)),losses(gan)
    for i,(z,real) in enumerate(batches()*n):
        for k in turns[i%len(turns)]:
            gan.zero_grad()
            fs[k](gan(z), real).backward()
            if clip: nn.utils.clip_grad_norm_(getattr(gan, k).parameters(), clip[k] if isinstance(clip, dict) else clip)
            opts[k].step()
    return gan

@pytest.mark.parametrize('turns,hand', [(None, ['dg']), (['d','g'], 'dg'), (['d','d','g'], 'ddg'), (['d',('d','g')], ['d','dg']),
                                        (lambda learn: ('d','g') if learn.train_iter%5==4 else 'd', ['d','d','d','d','dg'])])
def test_turns_are_those_of_the_loop_by_hand(turns, hand):
    learn = learner(turns)
    learn.fit(2)
    assert same(learn.model, by_hand(hand)) and learn.loss_func.__name__=='fool' and learn.in_turn.turn is None
    assert learn.train_steps==sum(len(hand[i%len(hand)]) for i in range(12))

@pytest.mark.parametrize('clip', [.1, {'d':.1, 'g':.05}])
def test_each_turn_is_clipped_by_itself(clip):
    learn = learner(cbs=[GradientClip(clip)])
    learn.fit(2)
    assert same(learn.model, by_hand(['dg'], clip=clip))

def test_a_clip_by_name_knows_the_names():
    for clip,opt_func,word in (({'e':1.}, two, "no optimizer 'e'"), ({'d':1.}, SGD, 'there is only one')):
        with pytest.raises(ValueError, match=word): learner(False, [GradientClip(clip)], opt_func).fit(1)
    with pytest.raises(ValueError, match='`d` must be a number above 0'): GradientClip({'d':0.})

@pytest.mark.parametrize('at', [3, 7])
def test_a_killed_run_continues_with_its_turn(tmp_path, at):
    def kill(cb):
        if cb.learn.train_iter==at: raise KeyboardInterrupt
    def cbs(k): return [CheckpointCallback('1ba', folder=tmp_path/k)]
    turns = ['d','d','g']
    whole,one,other = learner(turns),learner(turns),learner(turns)
    whole.fit(2, cbs=cbs('whole'))
    with pytest.raises(KeyboardInterrupt): one.fit(2, cbs=[*cbs('killed'), Callback(after_batch=kill)])
    other.fit(2, cbs=cbs('killed'), resume='auto')
    assert same(other.model, whole.model) and same(whole.model, by_hand(['d','d','g']))

def test_turns_with_parts_of_a_batch_a_scaler_and_an_average():
    want,parts = by_hand(['dg']),learner(cbs=[MicroBatch(4), EMACallback(at_end=False)])
    parts.fit(2)
    for a,b in zip(parts.model.parameters(), want.parameters()): torch.testing.assert_close(a, b)
    learn = learner(cbs=[MixedPrecision('fp16', init_scale=2.**40)])   # the first gradients are infinite
    learn.fit('1ba')
    assert same(learn.model, GAN())
    learn.fit(8)
    assert not any(torch.equal(a, b) for a,b in zip(learn.model.parameters(), GAN().parameters()))

def test_lr_find_and_inference_with_turns():
    learn = learner()
    learn.lr_find(num_it=8, show_plot=False)
    assert same(learn.model, GAN())
    assert learn.get_preds(dl=batches())[0].shape==(48,2)

# closures

def net():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(3, 6), nn.Dropout(.2), nn.Tanh(), nn.Linear(6, 2))

def closure_of(m, opt, x, y):
    def closure():
        opt.zero_grad()
        loss = F.mse_loss(m(x), y)
        loss.backward()
        return loss
    return closure

def closed(opt_func, cbs=(), lr=.5):
    learn = Learner(DataLoaders(batches()), net(), nn.MSELoss(), opt_func, lr=lr, cbs=[Closure(), *cbs])
    learn.logger = lambda *a, **k: None
    return learn.remove_cb(learn.progress)

@pytest.mark.parametrize('kw', [{}, dict(line_search_fn='strong_wolfe'), dict(max_iter=5, history_size=3)])
def test_lbfgs_is_the_loop_by_hand_also_with_dropout(kw):
    learn,m = closed(partial(LBFGS, **kw)),net()
    seen = []
    torch.manual_seed(4)
    learn.fit(2, cbs=Callback(after_batch=lambda cb: seen.append(cb.loss.item())))
    data,opt = batches()*2,LBFGS(m.parameters(), lr=.5, **kw)
    torch.manual_seed(4)
    first = [opt.step(closure_of(m, opt, x, y)).item() for x,y in data]
    assert same(learn.model, m) and learn.train_steps==12 and learn.opt.closure is None
    assert seen==first   # the loss before the step, as `step` returns it

def test_lbfgs_beside_another_optimizer():
    learn,m = closed({'a':(SGD, '0.*'), 'b':LBFGS}),net().eval()
    learn.model[1].p = 0.
    learn.fit(1)
    a,b = SGD(m[0].parameters(), lr=.5),LBFGS(m[3].parameters(), lr=.5)
    for x,y in batches():
        closure_of(m, a, x, y)(); a.step()
        m.zero_grad()
        b.step(closure_of(m, b, x, y))
        m.zero_grad()
    assert same(learn.model, m)

@pytest.mark.parametrize('cb', [GradientAccumulation('2ba'), MicroBatch(4), MixedPrecision('fp16'), GradientClip(1.), SAM()])
def test_what_sees_one_gradient_only_raises_beside_a_closure(cb):
    with pytest.raises(ValueError, match=type(cb).__name__): closed(LBFGS, [cb]).fit(1)

def test_a_closure_that_fails_leaves_nothing_behind():
    learn,n = closed(LBFGS),[]
    def fail(cb):
        n.append(1)
        if len(n)==3: raise RuntimeError('third look')
    with pytest.raises(RuntimeError, match='third look'): learn.fit(1, cbs=Callback(after_pred=fail))
    assert learn.opt.closure is None and learn.current_run.in_part is False
    learn.fit(1, reset_opt=True)   # PyTorch's own is in the middle of its step

# SAM

class PublishedSAM:
    "As it is published: uphill, the gradients there, back, and a step"
    def __init__(self, params, base, rho=.1): self.ps,self.base,self.rho = [*params],base,rho
    @torch.no_grad()
    def uphill(self):
        norm = torch.stack([p.grad.norm() for p in self.ps if p.grad is not None]).norm()
        self.old = [p.clone() for p in self.ps]
        for p in self.ps: p.add_(p.grad*(self.rho/(norm+1e-12)))
    @torch.no_grad()
    def back(self):
        for p,o in zip(self.ps, self.old): p.copy_(o)

@pytest.mark.parametrize('clip', [None, .1])
def test_sam_is_the_published_one(clip):
    learn = Learner(DataLoaders(batches()), net(), nn.MSELoss(), partial(SGD, momentum=.9), lr=.1,
                    cbs=[SAM(.1), *([GradientClip(clip)] if clip else [])])
    learn.logger = lambda *a, **k: None
    torch.manual_seed(4)
    with learn.no_bar(): learn.fit(2)
    m,data = net(),batches()*2
    opt = SGD(m.parameters(), lr=.1, momentum=.9)
    sam = PublishedSAM(m.parameters(), opt)
    torch.manual_seed(4)
    for x,y in data:
        closure_of(m, opt, x, y)(); sam.uphill()
        closure_of(m, opt, x, y)(); sam.back()
        if clip: nn.utils.clip_grad_norm_(m.parameters(), clip)
        opt.step()
    assert same(learn.model, m)

@pytest.mark.parametrize('cb', [GradientAccumulation('2ba'), MicroBatch(4), MixedPrecision('fp16'), VirtualShards(2)])
def test_sam_raises_where_the_batch_is_gone(cb):
    with pytest.raises(ValueError, match=type(cb).__name__): learner(False, [SAM(), cb], SGD).fit(1)

def test_sam_in_turn_moves_those_of_the_turn_only():
    learn,seen = learner(['d','g'], [SAM(.1)]),[]
    def note(cb): seen.append({k for k,p in learn.model.named_parameters() if p.grad is not None})
    learn.fit('2ba', cbs=Callback(before_step=note))
    assert [{k[0] for k in o} for o in seen]==[{'d'},{'g'}]

def test_the_table_has_the_loss_of_each_turn(tmp_path):
    "As a GAN's `d_loss` and `g_loss`: means by items over the epoch, also with parts of a batch and in a resumed run"
    def ragged(): b = batches(); return [*b[:-1], (b[-1][0][:3], b[-1][1][:3])]
    def trained(turns=None, cbs=(), n=2, **kw):
        learn = learner(turns, cbs)
        learn.dls = DataLoaders(ragged())
        learn.fit(n, **kw)
        return learn
    for turns,cbs in ((None, ()), (['d','g','g'], ()), (lambda learn: 'dg'[learn.train_iter%2], ()), (None, [MicroBatch(3)])):
        row,gan = trained(turns, cbs, 1, lr=0.).recorder.history[0],GAN()   # each batch has the loss of the same weights
        due = [turns(type('L', (), dict(train_iter=i))) if callable(turns) else turns[i%3] if turns else 'dg' for i in range(6)]
        for k,f in losses(gan).items():
            parts = [(f(gan(z), real).item(), len(z)) for (z,real),d in zip(ragged(), due) if k in d]
            assert row[f'{k}_loss']==pytest.approx(sum(v*n for v,n in parts)/sum(n for _,n in parts), rel=1e-5)
    def rows(learn): return [{k:v for k,v in r.items() if k!='time'} for r in learn.recorder.history]
    def kill(cb):
        if cb.learn.train_iter==9: raise KeyboardInterrupt
    def cbs(k): return [CheckpointCallback('2ba', folder=tmp_path/k)]
    whole = trained(cbs=cbs('a'))
    with pytest.raises(KeyboardInterrupt): trained(cbs=[*cbs('b'), Callback(after_batch=kill)])
    assert rows(trained(cbs=cbs('b'), resume='auto'))==rows(whole) and [*rows(whole)[0]]==['epoch','train_loss','d_loss','g_loss']
