"""Schedules and training policies: weights equal a plain PyTorch loop bit for bit; rates equal fastai's;
a fit continued at `start_epoch` has the rates of an uninterrupted fit; the optimizer's settings are restored."""
import io, warnings
from functools import partial
from inspect import signature
from math import cos, pi

import pytest, torch
from fastcore.docments import docments
from fastcore.foundation import L
from hypothesis import given, settings, strategies as st
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD, Adam, AdamW
from torch.optim import lr_scheduler as tls

from learnkit.loop.callback import Callback
from learnkit.loop.events import CancelBatch, CancelEpoch, CancelFit, CancelStep, CancelValid
from learnkit.learner.learner import Learner
from learnkit.callbacks.accumulate import GradientAccumulation
from learnkit.callbacks.batches import StepsPerEpoch
from learnkit.callbacks.schedules import *
from learnkit.optim.schedule import *
from learnkit.callbacks.schedules import TorchScheduler
from toys import Reg, at, batches, draws, learner, model, throw, weights

class Two(nn.Sequential):
    "Two layers with one parameter group each"
    def __init__(self): super().__init__(nn.Linear(4,3), nn.Linear(3,1))
def groups(m): return [list(o.parameters()) for o in m]
def two(**kw): return learner(n=5, model=model(cls=Two), splitter=groups, **kw)
mom_sgd = partial(SGD, momentum=.9)

def plain_loop(opt, m, n_epoch, rates, start=0, data=batches(5)):
    "The weights after a plain loop in which `rates(pct)` returns the settings of each parameter group"
    for epoch in range(start, n_epoch):
        for i,(x,y) in enumerate(data):
            for g,new in zip(opt.param_groups, rates((epoch + i/len(data))/n_epoch)): g.update(new)
            F.mse_loss(m(x), y).backward()
            opt.step()
            opt.zero_grad()
    return torch.cat([p.detach().flatten() for p in m.parameters()])

def up_down(pct, a, b, c, pos):
    "A half cosine from a to b in the first `pct`, then one from b to c"
    a,b,pos = (a,b,pos/pct) if pos<pct else (b,c,(pos-pct)/(1-pct))
    return a + (1+cos(pi*(1-pos)))*(b-a)/2

# bit for bit as plain loops
@pytest.mark.parametrize('opt_func', [mom_sgd, partial(Adam, betas=(.9,.99))])
@pytest.mark.parametrize('lr_max,lrs', [(.05,[.05,.05]), (slice(.001,.05),[.001,.05]), ([.01,.02],[.01,.02]), (slice(.05),[.005,.05])])
def test_one_cycle_equals_a_plain_loop(opt_func, lr_max, lrs):
    learn = two(opt_func=opt_func)
    learn.fit_one_cycle(3, lr_max)
    m = model(cls=Two)
    opt = opt_func([{'params':g} for g in groups(m)], lr=.1)
    def rates(p):
        mom = up_down(.25, .95, .85, .95, p)
        return [dict(lr=up_down(.25, lr/25, lr, lr/1e5, p), **({'momentum':mom} if isinstance(opt, SGD) else {'betas':(mom,.99)})) for lr in lrs]
    assert torch.equal(weights(learn), plain_loop(opt, m, 3, rates))

def test_flat_cos_equals_a_plain_loop():
    learn = two(opt_func=mom_sgd)
    learn.fit_flat_cos(3, slice(.01,.05), pct_start=.5)
    m = model(cls=Two)
    opt = mom_sgd([{'params':g} for g in groups(m)], lr=.1)
    assert torch.equal(weights(learn), plain_loop(opt, m, 3, lambda p: [dict(lr=up_down(.5, lr, lr, lr/1e5, p)) for lr in (.01,.05)]))

@pytest.mark.parametrize('mult,lens', [(2,[1,2,4]), (1,[1,1,1])])
def test_sgdr_equals_a_plain_loop(mult, lens):
    learn = two(opt_func=mom_sgd)
    learn.fit_sgdr(3, 1, .05, cycle_mult=mult)
    m,n = model(cls=Two),sum(lens)
    opt = mom_sgd([{'params':g} for g in groups(m)], lr=.1)
    ends = [sum(l/n for l in lens[:i]) for i in range(len(lens))] + [1.]
    def rates(p):
        i = max(i for i in range(len(lens)) if p>=ends[i])
        pos = (p-ends[i])/(ends[i+1]-ends[i])
        return [dict(lr=.05 + (1+cos(pi*(1-pos)))*(0.-.05)/2)]*2
    assert torch.equal(weights(learn), plain_loop(opt, m, n, rates))

def test_scheduled_weight_decay_skips_biases():
    "Scheduled weight decay applies to the weights, not to the biases, which have none"
    learn = two(opt_func=mom_sgd, wd=.1)
    learn.fit(2, lr=.02, cbs=ParamScheduler({'wd': SchedLin(.1, 0.)}))
    m = model(cls=Two)
    opt = mom_sgd([{'params':[p]} for p in m.parameters()], lr=.02)
    assert torch.equal(weights(learn), plain_loop(opt, m, 2, lambda p: [dict(weight_decay=.1+p*(0.-.1)), dict(weight_decay=0.)]*2))

# the policies
FITS = dict(one_cycle=lambda l,**kw: l.fit_one_cycle(3, slice(.001,.05), **kw), flat_cos=lambda l,**kw: l.fit_flat_cos(3, slice(.001,.05), **kw),
            sgdr=lambda l,**kw: l.fit_sgdr(2, 1, slice(.001,.05), **kw))

@pytest.mark.parametrize('name', ['fit_one_cycle', 'fit_flat_cos', 'fit_sgdr', 'fine_tune'])
def test_policies_take_the_arguments_of_fit(name):
    "Policies have the parameters of `fit`, with the same default, type and comment, and raise for others"
    mine,theirs = signature(getattr(Learner, name)).parameters,signature(Learner.fit).parameters
    docs = docments(getattr(Learner, name))
    for k in set(theirs) - {'self', 'n_epoch', 'lr', 'start_epoch'}:
        assert (mine[k].default, mine[k].annotation, docs[k])==(theirs[k].default, theirs[k].annotation, docments(Learner.fit)[k])
    assert 'kwargs' not in mine and 'start_epoch' in mine
    for k in ('lr', 'moments', 'scheds'):
        if k in mine: continue
        with pytest.raises(TypeError, match=k): getattr(two(), name)(1, **({} if name!='fit_sgdr' else dict(cycle_len=1)), **{k:.1})

@pytest.mark.parametrize('fit', FITS.values(), ids=FITS)
@pytest.mark.parametrize('start', [0,1,2,3])
def test_start_epoch(fit, start):
    "With model and optimizer restored, a fit from `start_epoch` has the rates and weights of the whole fit"
    whole,state = two(opt_func=mom_sgd),{}
    def keep(cb):
        if cb.epoch==start: state.update(model={k:v.clone() for k,v in cb.learn.model.state_dict().items()},
            bufs=[{k:v.clone() if torch.is_tensor(v) else v for k,v in s.items()} for s in cb.learn.opt.state_dict()['state'].values()])
    fit(whole, cbs=Callback(before_epoch=keep))
    rest = two(opt_func=mom_sgd)
    rest.create_opt()
    if start<3:
        rest.model.load_state_dict(state['model'])
        for p,s in zip(rest.model.parameters(), state['bufs']): rest.opt.opt.state[p] = s
    fit(rest, start_epoch=start)
    for k,v in whole.recorder.group_hps.items(): assert rest.recorder.group_hps[k]==v[5*start:]
    if start<3: assert torch.equal(weights(whole), weights(rest))

@pytest.mark.parametrize('start', range(6))
def test_start_epoch_fine_tune(start):
    "`start_epoch` counts the epochs of both phases; a resumed second phase keeps the optimizer's state"
    fits,starts = [],[]
    def note(cb): fits.append(cb.opt.frozen_idx); starts.append(cb.epoch)
    learn = two(opt_func=mom_sgd, cbs=Callback(before_train=note))
    learn.create_opt()
    if start>2: learn.fit(1); del fits[:], starts[:]
    had = len(learn.opt.opt.state)
    learn.fine_tune(3, freeze_epochs=2, start_epoch=start)
    assert fits==([1]*2+[0]*3)[start:] and starts==[0,1,0,1,2][start:]
    if start>2: assert had==4
    with pytest.raises(ValueError, match='start_epoch must be from 0 to 5 '): learn.fine_tune(3, freeze_epochs=2, start_epoch=6)

def test_fine_tune_keeps_state_when_resumed():
    learn = two(opt_func=mom_sgd)
    learn.fit(1)
    kept = [s['momentum_buffer'] for s in learn.opt.opt.state.values()]
    seen = []
    learn.fine_tune(2, start_epoch=2, cbs=at('before_train', lambda cb: seen.extend(s['momentum_buffer'] for s in cb.opt.opt.state.values())))
    assert len(kept)==4 and all(a is b for a,b in zip(kept, seen))

def test_fine_tune_rates():
    learn = two(opt_func=mom_sgd)
    first = learn.model[0].weight.detach().clone()
    learn.fine_tune(0, 2e-2, freeze_epochs=2)
    assert torch.equal(learn.model[0].weight, first)
    learn.fine_tune(4, 2e-2)
    assert [max(v) for v in zip(*learn.recorder.group_hps['lr'])]==pytest.approx([1e-4,1e-2], rel=.01)
    assert learn.recorder.hps['lr'][0]==pytest.approx(1e-2/5)

@pytest.mark.parametrize('opt_func', [torch.optim.Adagrad, torch.optim.Adadelta])
def test_optimizer_without_momentum(opt_func):
    learn = two(opt_func=opt_func)
    learn.fit_one_cycle(1)
    assert list(learn.recorder.hps)==['lr']
    with pytest.raises(ValueError, match="no hyperparameter 'mom' to schedule"): learn.fit_one_cycle(1, moms=(.9,.8,.9))

def test_no_moms():
    learn = two(opt_func=mom_sgd, moms=None)
    learn.fit_one_cycle(1)
    assert list(learn.recorder.hps)==['lr'] and learn.opt.hypers[0]['mom']==.9

def test_tensor_lr():
    "A learning rate given as a tensor is scheduled as a float is"
    lr = torch.tensor(.05)
    learn = learner(opt_func=lambda ps, **kw: Adam(ps, lr=lr, capturable=False, foreach=False))
    learn.fit_one_cycle(2)
    plain = learner(opt_func=partial(Adam, foreach=False), lr=float(lr))
    plain.fit_one_cycle(2)
    assert torch.equal(torch.as_tensor(learn.recorder.lrs), torch.tensor(plain.recorder.lrs))

# ParamScheduler
def test_values_by_group():
    learn = two(opt_func=mom_sgd)
    learn.fit(1, cbs=ParamScheduler({'lr': lambda p: slice(.01,.1), 'mom': lambda p: [.1,.2]}))
    assert learn.recorder.group_hps['lr'][0]==[.01,.1] and learn.recorder.group_hps['mom'][-1]==[.1,.2] and learn.recorder.hps['mom']==[.2]*5

def test_two_schedulers_and_the_record():
    learn = two(opt_func=mom_sgd)
    learn.fit_one_cycle(1, cbs=ParamScheduler({'wd': SchedNo(.01,.01)}))
    assert list(learn.recorder.hps)==['lr','mom','wd'] and [len(v) for v in learn.recorder.hps.values()]==[5]*3
    learn.validate()
    assert len(learn.recorder.hps['wd'])==5
    learn.fit(1)
    assert learn.recorder.hps=={} and learn.recorder.group_hps=={}

def test_without_recorder():
    from learnkit.learner.learner import TrainEvalCallback
    learn = two(default_cbs=False, cbs=TrainEvalCallback)
    cb = ParamScheduler({'lr': SchedLin(.1, 0.)})
    learn.fit(1, cbs=cb)
    assert cb.hps['lr']==pytest.approx([.1,.08,.06,.04,.02])

EVENTS = ['before_fit','before_epoch','before_train','before_batch','after_pred','before_step','after_batch','after_train','before_validate','after_epoch','after_fit']
@pytest.mark.parametrize('ev', EVENTS)
@pytest.mark.parametrize('exc', [ValueError, KeyboardInterrupt, CancelFit])
def test_hypers_are_restored(ev, exc):
    learn = two(opt_func=mom_sgd)
    learn.create_opt()
    before = [dict(h) for h in learn.opt.hypers]
    for fit,cb in ((learn.fit_one_cycle, []), (learn.fit, TorchScheduler(tls.LinearLR))):
        try: fit(2, .05, cbs=[at(ev, throw(exc()), order=99), *L(cb)])
        except (ValueError, KeyboardInterrupt, CancelFit) as e: assert not e.args
    assert [dict(h, lr=0) for h in learn.opt.hypers]==[dict(h, lr=0) for h in before] and 'step' not in vars(learn.opt.opt)

@pytest.mark.parametrize('make,err,words', [
    (lambda l: ParamScheduler({'lrr': SchedNo(1,1)}), ValueError, 'did you mean `lr`'),
    (lambda l: ParamScheduler({'foo': SchedNo(1,1)}), ValueError, 'known are: lr, mom'),
    (lambda l: ParamScheduler({'lr': .1}),            TypeError,  'SchedNo'),
    (lambda l: ParamScheduler(SchedNo(1,1)),          TypeError,  'by name')])
def test_bad_scheds(make, err, words):
    "Bad schedules raise before the first batch"
    learn = two(opt_func=mom_sgd)
    before = weights(learn)
    with pytest.raises(err, match=words): learn.fit(1, cbs=make(learn))
    assert torch.equal(weights(learn), before)

@pytest.mark.parametrize('call,words', [
    (lambda l: l.fit_one_cycle(1, -1.), '0 or more'), (lambda l: l.fit_one_cycle(1, div=0), '`div` must be a number above 0'),
    (lambda l: l.fit_one_cycle(1, div_final=-1), 'div_final'), (lambda l: l.fit_one_cycle(1, pct_start=25), 'from 0 to 1'),
    (lambda l: l.fit_one_cycle(1, moms=(.9,.8)), 'moms are three'), (lambda l: l.fit_one_cycle(1, start_epoch=2), 'start_epoch'),
    (lambda l: l.fit_one_cycle(1.5), 'integer'), (lambda l: l.fit_flat_cos(1, pct_start=-1), 'from 0 to 1'),
    (lambda l: l.fit_sgdr(0, 1), 'n_cycles'), (lambda l: l.fit_sgdr(1, 1, cycle_mult=1.5), 'cycle_mult'),
    (lambda l: l.fine_tune(1, lr_mult=0), 'lr_mult'), (lambda l: l.fit_one_cycle(1, [.1,.2,.3]), '3 values for 2')])
def test_bad_settings(call, words):
    with pytest.raises(ValueError, match=words): call(two(opt_func=mom_sgd))

# schedules
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12).filter(lambda v: sum(v)>.1), st.floats(0, 1))
@draws(100)
def test_each_position_belongs_to_one_schedule(raw, pos):
    "For any fractions, each position belongs to one schedule, and the position in it is from 0 to 1"
    pcts = [v/sum(raw) for v in raw]
    i,p = combine_scheds(pcts, [lambda p,i=i: (i,p) for i in range(len(pcts))])(pos)
    assert pcts[i]>0 and -1e-9<=p<=1+1e-9
    assert sum(pcts[:i]) + p*pcts[i]==pytest.approx(pos, abs=1e-6)

@pytest.mark.parametrize('n', range(1, 61))
def test_each_schedule_begins_at_its_first_batch(n):
    "The batch at a boundary k/n, which floats only approximate, is the first one of the next schedule"
    for per in (1, 2, 3, 7):   # batches in each part
        f = combine_scheds([1/n]*n, [lambda p,i=i: (i,p) for i in range(n)])
        got = [f(b/(n*per)) for b in range(n*per)]
        assert [i for i,_ in got]==[b//per for b in range(n*per)]
        assert [p for _,p in got]==pytest.approx([b%per/per for b in range(n*per)], abs=1e-6) and all(p>=0 for _,p in got)

def test_fractions():
    assert combine_scheds([.1]*10, [SchedNo(i,i) for i in range(10)])(.999)==9
    assert combine_scheds([1.,0.], [SchedLin(0.,1.), SchedNo(5.,5.)])(1.)==1.
    assert combine_scheds([1.,1e-300], [SchedLin(0.,1.), SchedNo(5.,5.)])(1.)==1.   # a fraction too small to change the sum
    with pytest.raises(ValueError, match=r'write \[0.25, 0.75\]'): combine_scheds([.2,.6], [SchedNo(1,1)]*2)
    with pytest.raises(ValueError, match='from 0 to 1'): combine_scheds([-.5,1.5], [SchedNo(1,1)]*2)
    with pytest.raises(ValueError, match='1 fractions for 2 schedules'): combine_scheds([1.], [SchedNo(1,1)]*2)
    with pytest.raises(ValueError, match='add up to 0'): combine_scheds([], [])

@given(st.floats(1e-6, 10), st.floats(1e-6, 10), st.floats(0, 1))
@settings(deadline=None)
def test_schedules_lead_from_start_to_end(a, b, pos):
    for sched in (SchedLin, SchedCos, SchedExp, partial(SchedPoly, power=2)):
        f,g = sched(a, b),sched([a,b], [b,a])
        assert f(0)==pytest.approx(a) and f(1)==pytest.approx(b) and min(a,b)*(1-1e-6)<=f(pos)<=max(a,b)*(1+1e-6)
        assert g(pos).tolist()==pytest.approx([f(pos), sched(b, a)(pos)])

@pytest.mark.parametrize('a,b', [(0,1), (1,0), (-1,1), ([1,0],[1,1])])
def test_exponential_needs_ratios(a, b):
    with pytest.raises(ValueError, match='cannot go from'): SchedExp(a, b)
def test_exponential_below_zero(): assert SchedExp(-1., -100.)(.5)==pytest.approx(-10)

# plots
def test_plots():
    plt = pytest.importorskip('matplotlib.pyplot')
    learn = two(opt_func=mom_sgd, metrics=[F.mse_loss, F.l1_loss])
    learn.fit_one_cycle(2, slice(.001,.05))
    axs = learn.recorder.plot_sched()
    assert [ax.get_ylabel() for ax in axs]==['lr','mom'] and [len(ax.lines) for ax in axs]==[2,2]
    assert list(axs[0].lines[1].get_ydata())==learn.recorder.hps['lr']
    assert len(learn.recorder.plot_sched('lr'))==1
    with pytest.raises(ValueError, match="'wd' was not scheduled"): learn.recorder.plot_sched('wd')
    assert [ax.get_ylabel() for ax in learn.recorder.plot_metrics()]==['loss','mse_loss','l1_loss']
    assert [len(ax.lines) for ax in ParamScheduler(one_cycle([.1,.2], moms=(.9,.8,.9))).plot()]==[2,1]
    learn.fit(1)
    with pytest.raises(ValueError, match='no schedule is recorded'): learn.recorder.plot_sched()
    plt.close('all')

def test_metrics_of_both_phases_share_a_plot():
    plt = pytest.importorskip('matplotlib.pyplot')
    learn = two(metrics=F.l1_loss)
    learn.recorder.train_metrics = True
    learn.fit(2, cbs=at('before_validate', throw(CancelEpoch()), lambda cb: cb.epoch==0))
    axs = learn.recorder.plot_metrics()
    assert [[l.get_label() for l in ax.lines] for ax in axs]==[['train_loss','valid_loss'], ['train_l1_loss','valid_l1_loss']]
    valid = axs[0].lines[1].get_ydata()
    assert valid[0]!=valid[0] and valid[1]==learn.recorder.history[1]['valid_loss']
    plt.close('all')

# torch's schedulers
def sequential(opt): return tls.SequentialLR(opt, [tls.LinearLR(opt, .1, total_iters=4), tls.CosineAnnealingLR(opt, 11)], milestones=[4])
def chained(opt): return tls.ChainedScheduler([tls.ConstantLR(opt, .5, 3), tls.ExponentialLR(opt, .9)])
SCHEDS = dict(step=partial(tls.StepLR, step_size=2), exponential=partial(tls.ExponentialLR, gamma=.9), sequential=sequential, chained=chained,
    one_cycle=partial(tls.OneCycleLR, max_lr=.1, total_steps=16), cyclic=partial(tls.CyclicLR, base_lr=.01, max_lr=.1, step_size_up=3),
    multi=partial(tls.MultiStepLR, milestones=[1,3]), lambda_lr=partial(tls.LambdaLR, lr_lambda=lambda i: 1/(1+i)),
    restarts=partial(tls.CosineAnnealingWarmRestarts, T_0=2), plateau=partial(tls.ReduceLROnPlateau, patience=0, threshold=.5))

def torch_plain_loop(make, interval, n_epoch, wd=None):
    m,lrs = model(),[]
    gs = list(m.parameters()) if wd is None else [dict(params=[m.weight], weight_decay=wd), dict(params=[m.bias], weight_decay=0)]
    opt = SGD(gs, lr=.05, momentum=.9)
    sched = make(opt)
    for epoch in range(n_epoch):
        m.train()
        for x,y in batches(5):
            lrs.append(opt.param_groups[0]['lr'])
            F.mse_loss(m(x), y).backward()
            opt.step()
            opt.zero_grad()
            if interval=='step': sched.step()
        with torch.no_grad(): valid = sum(F.mse_loss(m(x), y).item() for x,y in batches(2, 4, 1))/2
        if interval=='epoch': sched.step(*[valid]*isinstance(sched, tls.ReduceLROnPlateau))
    return torch.cat([p.detach().flatten() for p in m.parameters()]),lrs,opt

@pytest.mark.parametrize('name,interval', [(n,i) for n in SCHEDS for i in ('step','epoch') if (n,i)!=('plateau','step')])
@pytest.mark.parametrize('wd', [None, .1])
def test_torch_schedulers_equal_a_plain_loop(name, interval, wd):
    learn = learner(n=5, opt_func=mom_sgd, wd=wd)
    learn.fit(3, cbs=TorchScheduler(SCHEDS[name], interval))
    w,lrs,_ = torch_plain_loop(SCHEDS[name], interval, 3, wd)
    assert torch.equal(weights(learn), w) and learn.recorder.lrs==lrs and learn.recorder.hps['lr']==lrs
    assert learn.opt.hypers[0]['lr']==.05 and set(learn.opt.opt.param_groups[0])<={'params','no_decay_half',*SGD([torch.zeros(1)]).param_groups[0]}
    learn.fit(2, cbs=TorchScheduler(SCHEDS[name], interval))   # a factory makes a new scheduler for each fit
    assert learn.recorder.lrs==lrs[:10]

@pytest.mark.parametrize('make', [sequential, SCHEDS['one_cycle']])
def test_torch_scheduler_instance_continues(make):
    learn = learner(n=5, opt_func=mom_sgd)
    learn.create_opt()
    learn.add_cb(TorchScheduler(make(learn.opt.opt), 'step'))
    lrs = []
    for _ in range(3): learn.fit(1); lrs += learn.recorder.lrs
    w,want,_ = torch_plain_loop(make, 'step', 3)
    assert lrs==want and torch.equal(weights(learn), w)

@pytest.mark.parametrize('name,interval', [(n,i) for n in SCHEDS if n!='plateau' for i in ('step','epoch')])
def test_torch_scheduler_resumes(name, interval):
    "A scheduler resumes from its state, loaded before or in the fit, or without one by repeating its steps"
    whole,kept = learner(n=5, opt_func=mom_sgd),{}
    cb = TorchScheduler(SCHEDS[name], interval)
    def keep(self):
        if self.epoch==1: kept.update(torch.load(_saved(dict(cb=cb.state_dict(), opt=self.learn.opt.state_dict())), weights_only=name!='multi'))
    whole.fit(3, cbs=[cb, at('after_epoch', keep, order=99)])
    for how in ('before','in','caught up'):
        rest,new = learner(n=5, opt_func=mom_sgd),TorchScheduler(SCHEDS[name], interval)
        rest.create_opt()
        def load(self=None):
            rest.opt.load_state_dict(kept['opt'])
            new.load_state_dict(kept['cb'])
        if how=='before': new.load_state_dict(kept['cb'])
        rest.fit(3, start_epoch=2, cbs=[new] + [at('before_fit', load, order=99)]*(how=='in'))
        assert rest.recorder.lrs==pytest.approx(whole.recorder.lrs[10:], rel=1e-12), how

def _saved(o):
    f = io.BytesIO()
    torch.save(o, f)
    f.seek(0)
    return f

def test_torch_scheduler_counts_real_steps():
    "Cancelled steps, cancelled batches and validation batches do not count as steps"
    for ev,exc in (('before_step',CancelStep), ('after_pred',CancelBatch)):
        learn = learner(n=6, opt_func=mom_sgd)
        learn.fit(1, cbs=[TorchScheduler(partial(tls.ExponentialLR, gamma=.5), 'step'), at(ev, throw(exc()), lambda cb: cb.training and cb.iter%3, order=-5)])
        steps = [.05,.025,.025,.025,.0125,.0125] if ev=='before_step' else [.05,.025]
        assert learn.recorder.lrs==pytest.approx(steps)

def test_plateau_without_a_value():
    "An epoch without a validation is not a bad epoch"
    learn = learner(n=5, opt_func=mom_sgd)
    cb = TorchScheduler(partial(tls.ReduceLROnPlateau, patience=0, threshold=.999), 'epoch')
    learn.fit(4, cbs=[cb, at('before_validate', throw(CancelValid()), lambda cb: cb.epoch in (1,2))])
    assert learn.recorder.lrs==[.05]*20

@pytest.mark.parametrize('make,err,words', [
    (lambda: TorchScheduler(tls.StepLR, 'batch'), ValueError, "'step' or 'epoch'"),
    (lambda: TorchScheduler(.1), TypeError, 'step_size=10'),
    (lambda: TorchScheduler(lambda opt: 3), TypeError, 'not a int'),
    (lambda: TorchScheduler(tls.ReduceLROnPlateau, 'step'), ValueError, "interval='epoch'"),
    (lambda: TorchScheduler(tls.StepLR(SGD([torch.zeros(1)], .1), 1)), ValueError, 'not belong to the optimizer'),
    (lambda: TorchScheduler(tls.ReduceLROnPlateau, monitor='valid_los'), ValueError, 'did you mean `valid_loss`')])
def test_bad_torch_schedulers(make, err, words):
    learn = learner(opt_func=mom_sgd)
    with pytest.raises(err, match=words): learn.fit(1, cbs=make())
    learn.fit(1)

# fastai
def test_fastai_values():
    fs = pytest.importorskip('fastai.callback.schedule')
    xs = [i/97 for i in range(98)]
    pairs = [(getattr(fs, n)(.3, 2.), globals()[n](.3, 2.)) for n in ('SchedLin','SchedCos','SchedNo','SchedExp')]
    pairs += [(fs.SchedPoly(.3, 2., 1.7), SchedPoly(.3, 2., 1.7)), (fs.combined_cos(.25, .1, 1., 0.), combined_cos(.25, .1, 1., 0.)),
              *((fs.combine_scheds(p, [fs.SchedLin(0,1), fs.SchedCos(1,2), fs.SchedNo(3,3)]), combine_scheds(p, [SchedLin(0,1), SchedCos(1,2), SchedNo(3,3)]))
                for p in ([.5,.25,.25], [.25,.5,.25]))]
    for theirs,ours in pairs: assert [float(theirs(x)) for x in xs]==pytest.approx([float(ours(x)) for x in xs], abs=1e-5)

@pytest.mark.parametrize('fit', [lambda l: l.fit_one_cycle(3, slice(1e-3,.05)), lambda l: l.fit_flat_cos(3, .05), lambda l: l.fit_sgdr(2, 1, .05),
                                 lambda l: l.fine_tune(2, .05)], ids=['one_cycle','flat_cos','sgdr','fine_tune'])
def test_fastai_runs(fit):
    "Rates and weights of whole fits equal fastai's within its float precision"
    pytest.importorskip('fastai.callback.schedule')
    from fastai.learner import Learner as FastLearner
    from fastai.data.core import DataLoaders as FastDataLoaders
    from fastai.data.load import DataLoader
    from fastai.optimizer import OptimWrapper
    ds = [(x,y) for b in batches(5) for x,y in zip(*b)]
    dls = FastDataLoaders(DataLoader(ds, bs=4, num_workers=0), DataLoader(ds[:8], bs=4, num_workers=0), device='cpu')
    theirs = FastLearner(dls, model(cls=Two), nn.MSELoss(), opt_func=partial(OptimWrapper, opt=mom_sgd), splitter=groups)
    with theirs.no_bar(), theirs.no_logging(): fit(theirs)
    ours = two(opt_func=mom_sgd)
    fit(ours)
    assert {k:[float(o) for o in v] for k,v in theirs.recorder.hps.items()}=={k:pytest.approx(v, abs=1e-6) for k,v in ours.recorder.hps.items()}
    assert torch.allclose(weights(theirs), weights(ours), atol=1e-5)

class Own(Scheduler): names = ('lr',)

@pytest.mark.parametrize('own,fit', [(TorchScheduler(tls.LinearLR), Learner.fit_one_cycle), (ParamScheduler({'lr':SchedNo(1,1)}), lambda l,n: l.fit(n, cbs=TorchScheduler(tls.LinearLR))),
    (Own(), Learner.fit_flat_cos), (ParamScheduler({'mom':SchedNo(.9,.9)}), partial(Learner.fit_one_cycle, moms=(.9,.8,.9))), (None, lambda l,n: l.fit(n, cbs=[Own(), Own()]))])
def test_two_schedules_of_one_rate_raise(own, fit):
    "Two schedulers of the same hyperparameter raise, because one would have no effect"
    learn = two(opt_func=mom_sgd, cbs=own)
    before = weights(learn)
    with pytest.raises(ValueError, match="both set '(lr|mom)' in each batch"): fit(learn, 1)
    assert torch.equal(weights(learn), before)
    learn.validate()
    if own is not None: own.run = False; fit(learn, 1)

def test_two_torch_schedulers_may_be_chained():
    learn = two()
    learn.fit(2, .1, cbs=[TorchScheduler(partial(tls.ExponentialLR, gamma=.5)), TorchScheduler(partial(tls.ExponentialLR, gamma=.1))])
    assert learn.recorder.lrs[::5]==pytest.approx([.1, .005])

@pytest.mark.parametrize('sched,interval,n_warnings', [(partial(tls.OneCycleLR, max_lr=.1, total_steps=10), 'epoch', 1), (partial(tls.CosineAnnealingLR, T_max=10), 'epoch', 1),
    (partial(tls.OneCycleLR, max_lr=.1, total_steps=10), 'step', 0), (partial(tls.OneCycleLR, max_lr=.1, total_steps=2), 'epoch', 0), (partial(tls.CosineAnnealingLR, T_max=4), 'epoch', 0)])
def test_a_scheduler_for_batches_that_steps_each_epoch(sched, interval, n_warnings):
    with warnings.catch_warnings(record=True) as ws:
        warnings.simplefilter('always')
        two(opt_func=mom_sgd).fit(2, cbs=TorchScheduler(sched, interval))
    assert sum("interval='step'" in str(w.message) for w in ws)==n_warnings

def test_a_step_of_a_subclass_has_the_rates_of_its_first_batch():
    "A subclass of GradientAccumulation was not found, so a step had the rate of its last batch"
    class Mine(GradientAccumulation): pass
    def rates(cls):
        learn = learner(n=4, cbs=cls('2ba'))
        learn.fit_one_cycle(1, .1)
        return [*learn.recorder.hps['lr']]
    assert rates(Mine)==rates(GradientAccumulation) and len({*rates(Mine)})==2

@pytest.mark.parametrize('recorder, words', [(True, "no column 'valid_los' .* did you mean `valid_loss`"), (False, 'add a `Recorder`, or pass a function')])
def test_a_missing_column_raises_before_the_first_batch(recorder, words):
    "A misspelled column was found after the first epoch; without a Recorder the message was about an attribute"
    learn = learner(cbs=[TorchScheduler(tls.ReduceLROnPlateau, monitor='valid_los')])
    if not recorder: learn.remove_cb(learn.recorder)
    before = weights(learn)
    with pytest.raises(ValueError, match=words): learn.fit(1)
    assert torch.equal(weights(learn), before)

@pytest.mark.parametrize('make,n', [(lambda: TorchScheduler(partial(tls.StepLR, step_size=1)), 3), (lambda: StepsPerEpoch(2), 2)], ids=['scheduler','steps'])
def test_a_state_saved_after_a_fit_can_be_loaded_in_a_fit(make, n):
    "The state is empty then, and loading it raised an error"
    cb,again = make(),make()
    learner(cbs=cb).fit(1)
    learn = learner(cbs=[again, at('before_fit', lambda _: again.load_state_dict(cb.state_dict()), order=99)])
    learn.fit(2)
    assert learn.train_iter==2*n
