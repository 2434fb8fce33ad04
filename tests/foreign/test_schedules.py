"""The schedules of `optim.warmup` and those of transformers and timm, compared by the learning rate of each optimizer
step of a fit: also with accumulation, where the latter count optimizer steps, and after a resume."""
from functools import partial
import pytest, torch
from torch import nn
from torch.optim import SGD
from learnkit.all import CheckpointCallback, DataLoaders, GradientAccumulation, Learner, ParamScheduler, SchedLin, TorchScheduler, inv_sqrt, warmup_const, warmup_cos, warmup_lin, warmup_poly, wsd
from toys import at, batches, few, model, weights

LR,E = .1,4   # peak learning rate, epochs

class Rates:
    "Records the learning rates of each step of an optimizer"
    def __init__(self): self.seen = []
    def watch(self, opt):
        opt.register_step_pre_hook(lambda o, *_: self.seen.append([g['lr'] for g in o.param_groups]))
        return opt

def fit_lrs(scheds, n=12, k=1, path='.', cbs=(), **kw):
    "Fit E epochs of `n` batches with a step every `k`; return the learning rate of each step, and the Learner"
    rates = Rates()
    learn = Learner([batches(n)], model(), nn.MSELoss(), lambda ps, lr: rates.watch(SGD(ps, lr=lr)), lr=LR, path=path, cbs=[*cbs, *[GradientAccumulation(4*k)]*(k>1)])
    learn.fit(E, cbs=scheds and (ParamScheduler(scheds) if isinstance(scheds, dict) else scheds), **kw)
    return [r[0] for r in rates.seen],learn

def torch_lrs(make, steps):
    "The learning rates of so many steps with a PyTorch scheduler"
    opt = SGD(model().parameters(), lr=LR)
    sched,res = make(opt),[]
    for _ in range(steps): res.append(opt.param_groups[0]['lr']); opt.step(); sched.step()
    return res

def timm_lrs(make, steps):
    "The learning rates of so many steps with a timm scheduler, updated as in timm's `train.py`"
    opt = SGD(model().parameters(), lr=LR)
    sched,res = make(opt),[]
    for i in range(steps): sched.step_update(num_updates=i); res.append(opt.param_groups[0]['lr'])
    return res

def transformers_schedules(W, S):
    "Return {name: (our schedule, theirs)} with a warm-up of `W` of `S` steps"
    t,w = pytest.importorskip('transformers'),W/S
    return dict(
        const = (warmup_const(LR, w), lambda o: t.get_constant_schedule_with_warmup(o, W)),
        lin = (warmup_lin(LR, w), lambda o: t.get_linear_schedule_with_warmup(o, W, S)),
        cos = (warmup_cos(LR, w), lambda o: t.get_cosine_schedule_with_warmup(o, W, S)),
        min_lr = (warmup_cos(LR, w, LR/10), lambda o: t.get_cosine_with_min_lr_schedule_with_warmup(o, W, S, min_lr_rate=.1)),
        restarts = (warmup_cos(LR, w, cycles=3), lambda o: t.get_cosine_with_hard_restarts_schedule_with_warmup(o, W, S, num_cycles=3)),
        poly = (warmup_poly(LR, w), lambda o: t.get_polynomial_decay_schedule_with_warmup(o, W, S)),
        poly2 = (warmup_poly(LR, w, 1e-3, 2.), lambda o: t.get_polynomial_decay_schedule_with_warmup(o, W, S, lr_end=1e-3, power=2.)),
        root = (inv_sqrt(LR, w), lambda o: t.get_inverse_sqrt_schedule(o, W)),
        wsd = (wsd(LR, w, .25), lambda o: t.get_wsd_schedule(o, W, S//4, num_stable_steps=S-W-S//4)),
        wsd_lin = (wsd(LR, w, .25, shape=SchedLin), lambda o: t.get_wsd_schedule(o, W, S//4, num_stable_steps=S-W-S//4, decay_type='linear')))

def timm_schedules(W, S):
    pytest.importorskip('timm')
    from timm.scheduler import CosineLRScheduler, PolyLRScheduler, WSDLRScheduler
    w,kw = W/S,dict(t_initial=S-W, warmup_t=W, t_in_epochs=False)
    cos,poly = (partial(f, warmup_prefix=True, **kw) for f in (CosineLRScheduler, PolyLRScheduler))
    return dict(
        timm_cos = (warmup_cos(LR, w), cos), timm_min = (warmup_cos(LR, w, LR/10), partial(cos, lr_min=LR/10)),
        timm_poly = (warmup_poly(LR, w, 1e-3, 2.), partial(poly, power=2., lr_min=1e-3)), timm_lin = (warmup_lin(LR, w), partial(poly, power=1.)),
        timm_wsd = (wsd(LR, w, .25), partial(WSDLRScheduler, decay_t=S//4, decay_fn='cosine', **kw)),
        timm_root = (inv_sqrt(LR, w), partial(WSDLRScheduler, decay_t=1, stable_fn='rsqrt', **kw)))   # its last step belongs to the decay

hf = 'const lin cos min_lr restarts poly poly2 root wsd wsd_lin'.split()
tm = 'timm_cos timm_min timm_poly timm_lin timm_wsd timm_root'.split()

@pytest.mark.parametrize('k', [1, 2, 3])
@pytest.mark.parametrize('name', hf+tm)
def test_each_step_has_the_same_learning_rate(name, k):
    "Each step has `k` batches"
    S = E*12//k
    ours,theirs = (timm_schedules if name in tm else transformers_schedules)(S//4, S)[name]
    want = (timm_lrs if name in tm else torch_lrs)(theirs, S)
    got,_ = fit_lrs(ours, k=k)
    assert got==pytest.approx(want, abs=1e-9) and len(got)==S and len({*map('{:.6f}'.format, got)})>3

@pytest.mark.parametrize('k', [1, 3])
def test_amounts_count_batches(k):
    "A warm-up of 12 batches takes 4 steps if each has 3 batches"
    t = pytest.importorskip('transformers')
    got,_ = fit_lrs(warmup_cos(LR, '12ba'), k=k)
    assert got==pytest.approx(torch_lrs(lambda o: t.get_cosine_schedule_with_warmup(o, 12//k, 48//k), 48//k), abs=1e-9)

@pytest.mark.parametrize('k', [1, 3])
def test_a_transformers_scheduler_in_a_fit(k):
    "The scheduler is stepped once per optimizer step"
    t = pytest.importorskip('transformers')
    make = lambda o: t.get_cosine_schedule_with_warmup(o, 12//k, 48//k)
    assert fit_lrs(TorchScheduler(make, interval='step'), k=k)[0]==torch_lrs(make, 48//k)

@pytest.mark.parametrize('n,k', [(12,1), (12,3), (10,4)])
def test_learning_rates_of_hf_trainer(n, k, tmp_path):
    "HF's Trainer counts a last step with fewer batches as a full one; learnkit's learning rate follows the data seen"
    t = pytest.importorskip('transformers')
    pytest.importorskip('accelerate')
    class Net(nn.Module):
        def __init__(self): super().__init__(); self.net = model()
        def forward(self, x, labels): return dict(loss=nn.functional.mse_loss(self.net(x), labels))
    rows = [dict(x=x, labels=y) for b in batches(n) for x,y in zip(*b)]
    steps,rates = -(-n//k),Rates()
    args = t.TrainingArguments(tmp_path, num_train_epochs=E, learning_rate=LR, lr_scheduler_type='linear', warmup_steps=steps, gradient_accumulation_steps=k, report_to='none',
                               per_device_train_batch_size=4, train_sampling_strategy='sequential', save_strategy='no', use_cpu=True, disable_tqdm=True, max_grad_norm=0.)
    net = Net()
    trainer = t.Trainer(net, args, train_dataset=rows, optimizers=(rates.watch(SGD(net.parameters(), lr=LR)), None))
    trainer.train()
    theirs,(ours,learn) = [r[0] for r in rates.seen],fit_lrs(warmup_lin(LR, 1/E), n=n, k=k)
    f = warmup_lin(LR, 1/E)['lr']
    assert theirs==pytest.approx([f(i/steps/E) for i in range(E*steps)], abs=1e-9)
    assert ours==pytest.approx([f((e+i*k/n)/E) for e in range(E) for i in range(steps)], abs=1e-9)
    if n%k==0:
        assert ours==pytest.approx(theirs, abs=1e-9)
        torch.testing.assert_close(weights(learn), torch.cat([p.detach().flatten() for p in net.parameters()]), rtol=1e-5, atol=1e-6)
    else: assert ours[::steps]==pytest.approx(theirs[::steps], abs=1e-9)   # epochs begin with equal learning rates

@pytest.mark.parametrize('policy', [Learner.fit_one_cycle, lambda learn, n: learn.fit(n, cbs=ParamScheduler(warmup_cos(LR, .2)))])
def test_accumulated_batches_train_like_large_ones(policy):
    "The learning rate used to change within a step, which was taken with that of its last batch"
    def go(bs, cbs=()):
        learn = Learner([batches(48//bs, bs)], model(), nn.MSELoss(), partial(SGD, momentum=.9), lr=.02, cbs=cbs)
        policy(learn, E)
        return learn
    small = DataLoaders([(x[i:i+4],y[i:i+4]) for x,y in batches(4, 12) for i in (0, 4, 8)])
    large,acc = go(12),Learner(small, model(), nn.MSELoss(), partial(SGD, momentum=.9), lr=.02, cbs=GradientAccumulation(12))
    policy(acc, E)
    torch.testing.assert_close(weights(acc), weights(large), rtol=1e-5, atol=1e-6)
    assert acc.recorder.hps['lr'][::3]==large.recorder.hps['lr']

@few(0, 4)
@pytest.mark.parametrize('scheds', [warmup_cos(LR, '9ba'), wsd([LR], .1), inv_sqrt(LR, .2)], ids=['cos','wsd','root'])
@pytest.mark.parametrize('batch', [7, 23, 28])
@pytest.mark.slow
def test_killed_within_a_step(tmp_path, scheds, batch):
    "The interrupted step is taken with the learning rate with which it began"
    class Quits(Exception): pass
    def quits(cb):
        if cb.train_iter==batch: raise Quits
    def go(folder, *cbs, **kw): return fit_lrs(scheds, k=3, path=tmp_path/folder, cbs=[CheckpointCallback('1ba'), *cbs], **kw)
    whole,learn = go('a')
    with pytest.raises(Quits): go('b', at('after_batch', quits))
    rates,again = go('b', resume='auto')
    assert rates==whole[batch//3:] and torch.equal(weights(again), weights(learn))
