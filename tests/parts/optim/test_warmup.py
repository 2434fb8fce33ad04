"""The schedules of `transformers`, by their formulas, as a function of the batch in a fit that is told in batches"""
import pickle
from math import cos, pi, sqrt
import pytest, torch
from learnkit.callbacks.schedules import ParamScheduler
from learnkit.loop.duration import Time
from learnkit.optim.schedule import SchedCos, SchedLin, SchedNo
from learnkit.optim.schedule import inv_sqrt, warmup_const, warmup_cos, warmup_lin, warmup_poly, wsd
from learnkit.recovery.checkpoint import CheckpointCallback
from toys import learner

T,W,lr = 20,5,.1
def after(f): return lambda i: i/W if i<W else f(i, (i-W)/(T-W))
formulas = dict(
    const=(warmup_const, {}, lambda i,p: 1), lin=(warmup_lin, {}, lambda i,p: (T-i)/(T-W)), cos=(warmup_cos, {}, lambda i,p: .5*(1+cos(pi*p))),
    min_lr=(warmup_cos, dict(lr_min=.01), lambda i,p: .5*(1+cos(pi*p))*.9+.1), restarts=(warmup_cos, dict(cycles=3), lambda i,p: .5*(1+cos(pi*(3*p%1)))),
    poly=(warmup_poly, dict(lr_end=.01, power=2.), lambda i,p: .1+.9*(1-p)**2), root=(inv_sqrt, {}, lambda i,p: 1/sqrt(i/W)),
    wsd=(wsd, dict(decay=.25), lambda i,p: 1 if i<15 else .5*(1+cos(pi*(i-15)/5))), wsd_line=(wsd, dict(decay=.25, shape=SchedLin), lambda i,p: 1 if i<15 else (20-i)/5))

@pytest.mark.parametrize('name', formulas)
@pytest.mark.parametrize('warm', ['5ba', .25])
@pytest.mark.parametrize('much', ['20ba', 5])
def test_formulas(name, warm, much):
    f,kw,formula = formulas[name]
    learn = learner(4)
    learn.fit(much, cbs=ParamScheduler(f(lr, warm, **kw)))
    assert learn.recorder.hps['lr']==pytest.approx([lr*after(formula)(i) for i in range(T)], abs=1e-9)

def test_resume(tmp_path):
    "The checkpoint's note of what is scheduled called a warm-up of so many batches before the fit had told it how long it is"
    def go(folder, much, **kw):
        learn = learner(4, path=folder, cbs=CheckpointCallback('1ba'))
        learn.fit(much, cbs=ParamScheduler(inv_sqrt(lr, '3ba')), **kw)
        return learn
    whole = go(tmp_path/'a', '10ba')
    assert go(tmp_path/'a', '10ba', resume='auto').train_iter==10 and len(whole.recorder.hps['lr'])==10

@pytest.mark.parametrize('make,words', [(lambda: warmup_lin(lr, '20ba'), 'must be shorter than the fit'), (lambda: warmup_lin(lr, '1m'), 'pass both in one unit'),
    (lambda: wsd(lr, '18ba', .2), 'longer than the run'), (lambda: inv_sqrt(lr, 0), 'more than 0'), (lambda: warmup_lin(lr, 1.5), 'less than 1')])
def test_raises(make, words):
    with pytest.raises(ValueError, match=words): learner(4).fit('20ba', cbs=ParamScheduler(make()))

@pytest.mark.parametrize('name', formulas)
@pytest.mark.parametrize('warm', ['5ba', .25])
def test_a_schedule_can_be_pickled(name, warm):
    f,kw,_ = formulas[name]
    sched, = f([lr,2*lr], warm, **kw).values()
    again = pickle.loads(pickle.dumps(sched))
    for s in (sched, again): s.set_fit_length(Time('20ba'))
    assert all(torch.equal(sched(i/T), again(i/T)) for i in range(T+1))

def test_shapes_can_be_pickled():
    for shape in (SchedLin, SchedCos, SchedNo): assert pickle.loads(pickle.dumps(shape)) is shape

def test_no_warm_up_before_an_inverse_square_root():
    "A length of '0ba' divided by zero in the first batch"
    with pytest.raises(ValueError, match='more than 0'): learner(4).fit('20ba', cbs=ParamScheduler(inv_sqrt(lr, '0ba')))
