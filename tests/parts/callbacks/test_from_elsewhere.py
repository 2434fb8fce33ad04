"""Features known from other libraries: schedulers with a frequency and timm's, adaptive clipping, gradual unfreezing,
groups by name, a history in a file. Each is compared with a plain loop or formula, and resumed in the middle of a fit"""
import importlib.util, sys, tempfile, types, warnings
from functools import partial
import pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD
from torch.optim import lr_scheduler as tls
from learnkit.callbacks.accumulate import GradientAccumulation
from learnkit.callbacks.data import MapOutputs
from learnkit.callbacks.gradients import AdaptiveGradientClip, GradientClip, GradualUnfreezing
from learnkit.callbacks.schedules import TorchScheduler
from learnkit.learner.learner import Learner
from learnkit.loop.run import null_logger
from learnkit.measure.history import History
from learnkit.optim.splitters import by_names
from learnkit.recovery.checkpoint import CheckpointCallback
from toys import at, batches, draws, few, learner, throw, weights

quick = draws(15)

class Two(nn.Sequential):
    def __init__(self): super().__init__(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1))
def layers(m): return [[*l.parameters()] for l in m if [*l.parameters()]]
def net():
    with torch.random.fork_rng(): torch.manual_seed(0); return Two()
def mk(n, *cbs, **kw):
    learn = learner(n=n, model=net(), cbs=cbs, **kw)
    learn.logger = null_logger
    return learn

# frequency
@quick
@given(n=st.integers(1, 5), epochs=st.integers(1, 4), every=st.integers(1, 4), acc=st.integers(1, 3), interval=st.sampled_from(['step','epoch']))
def test_frequency(n, epochs, every, acc, interval):
    "As in a plain loop, the scheduler steps after every `every` optimizer steps, or epochs"
    opt = SGD([nn.Parameter(torch.zeros(1))], .1)
    sched,rates,seen = tls.ExponentialLR(opt, .5),[],0
    for _ in range(epochs):
        for i in range(n):
            rates.append(opt.param_groups[0]['lr'])
            ends = (i+1)%acc==0
            if ends and interval=='step': opt.step(); seen += 1; sched.step() if seen%every==0 else None
        if n%acc and interval=='step': opt.step(); seen += 1; late = seen%every==0
        else: late = False
        if late: sched.step()
        if interval=='epoch': opt.step(); seen += 1; sched.step() if seen%every==0 else None
    learn = mk(n, TorchScheduler(partial(tls.ExponentialLR, gamma=.5), interval, frequency=every), GradientAccumulation(f"{acc}ba"), lr=.1)
    learn.fit(epochs)
    if interval=='epoch' or n%acc==0: assert learn.recorder.lrs==pytest.approx(rates)   # a scheduler step at the end of an epoch shows in the rate of the next batch

@pytest.mark.parametrize('interval', ['step','epoch'])
@pytest.mark.parametrize('kill', [1, 4, 5, 7])
@few(2)
def test_frequency_resumed(interval, kill, tmp_path):
    def go(folder, *cbs, **kw):
        learn = mk(3, TorchScheduler(partial(tls.ExponentialLR, gamma=.5), interval, frequency=2), CheckpointCallback('1ba', folder=folder), *cbs)
        learn.fit(4, **kw)
        return learn
    whole = go(tmp_path/'a')
    with pytest.raises(SystemError): go(tmp_path/'b', at('after_batch', throw(SystemError()), lambda cb: cb.learn.training and cb.learn.train_iter==kill, order=200))
    again = go(tmp_path/'b', resume='auto')
    assert again.recorder.lrs==whole.recorder.lrs and torch.equal(weights(again), weights(whole))

def test_bad_frequency():
    for o in (0, .5, True):
        with pytest.raises((ValueError,TypeError), match='frequency'): TorchScheduler(partial(tls.StepLR, step_size=1), frequency=o)

# timm's
def timm_scheduler():
    "Return timm.scheduler, imported without timm's models, which need torchvision"
    if (spec := importlib.util.find_spec('timm')) is None: pytest.skip('timm is not installed')
    if 'timm' not in sys.modules:
        package = types.ModuleType('timm')
        package.__path__ = list(spec.submodule_search_locations)
        sys.modules['timm'] = package
        try: import timm.scheduler as module
        finally: del sys.modules['timm']
        return module
    import timm.scheduler as module
    return module

def timm_makes(t):
    return dict(cosine=partial(t.CosineLRScheduler, t_initial=4, warmup_t=2, warmup_lr_init=.01),
                updates=partial(t.CosineLRScheduler, t_initial=12, warmup_t=3, warmup_lr_init=.001, t_in_epochs=False),
                step=partial(t.StepLRScheduler, decay_t=2, decay_rate=.5), plateau=partial(t.PlateauLRScheduler, patience_t=0, threshold=.9, decay_rate=.5),
                noise=partial(t.TanhLRScheduler, t_initial=5, noise_range_t=(1, 5)))

@pytest.mark.parametrize('name', ['cosine','updates','step','plateau','noise'])
def test_timm(name, tmp_path):
    "As in timm's script, it steps after each update, and after each epoch with the metric; a resumed run does too"
    make = timm_makes(timm_scheduler())[name]
    m,data,valid = net(),batches(3),batches(2, seed=1)
    opt = SGD(m.parameters(), .05)
    sched,rates,n = make(opt),[],0
    for epoch in range(5):
        for x,y in data:
            rates.append(opt.param_groups[0]['lr'])
            F.mse_loss(m(x), y).backward(); opt.step(); opt.zero_grad()
            n += 1
            sched.step_update(num_updates=n)
        with torch.no_grad(): loss = sum(F.mse_loss(m(x), y).item() for x,y in valid)/2
        sched.step(epoch+1, loss)
    def go(folder, *cbs, **kw):
        learn = mk(3, TorchScheduler(make), CheckpointCallback('1ba', folder=folder), *cbs)
        learn.fit(5, **kw)
        return learn
    whole = go(tmp_path/'whole')
    assert whole.recorder.lrs==pytest.approx(rates) and len(set(rates))>1
    assert torch.allclose(weights(whole), torch.cat([p.detach().flatten() for p in m.parameters()]), atol=1e-6)
    assert whole.opt.hypers[0]['lr']==.05 and 'initial_lr' not in whole.opt.param_groups[0]   # restored
    for kill in (2, 3, 7):
        stop = at('after_batch', throw(SystemError()), lambda cb: cb.learn.training and cb.learn.train_iter==kill, order=200)
        with pytest.raises(SystemError): go(tmp_path/f'{kill}', stop)
        again = go(tmp_path/f'{kill}', resume='auto')
        assert again.recorder.lrs==pytest.approx(rates) and torch.equal(weights(again), weights(whole))

@pytest.mark.parametrize('name', ['cosine','updates'])
def test_timm_from_a_later_epoch(name):
    make,rates = timm_makes(timm_scheduler())[name],[]
    for start in (0, 2):
        learn = mk(3, TorchScheduler(make))
        learn.fit(4, start_epoch=start)
        rates.append([*learn.recorder.lrs])
    assert rates[1]==pytest.approx(rates[0][6:])

# adaptive clipping
def agc(p, g, ratio, eps):
    "The gradient clipped by the paper's formula, unit by unit"
    res = g.clone()
    for i in range(len(p)) if p.ndim>1 else [slice(None)]:
        most,norm = ratio*max(p[i].norm().item(), eps),g[i].norm().item()
        if norm>most: res[i] = g[i]*most/norm
    return res

@quick
@given(st.sampled_from([(3,), (2,3), (2,3,2), (2,1,3,3)]), st.floats(.001, 3), st.integers(0, 99), st.booleans())
def test_adaptive_clipping(shape, ratio, seed, zero):
    torch.manual_seed(seed)
    class Net(nn.Module):
        def __init__(self): super().__init__(); self.w = nn.Parameter(torch.randn(shape, dtype=torch.double)*(not zero))
        def forward(self, x): return (self.w*x).sum().view(1)
    x,y = torch.randn(1, *shape, dtype=torch.double)*3,torch.randn(1, dtype=torch.double)
    m = Net()
    p = m.w.detach().clone()
    F.mse_loss(m(x[0]), y).backward()
    want = p - .1*agc(p, m.w.grad, ratio, 1e-3)
    m.w.grad = None
    learn = Learner(([(x[0],y)],), m, nn.MSELoss(), SGD, lr=.1, cbs=AdaptiveGradientClip(ratio))
    learn.logger = null_logger
    learn.fit(1)
    assert torch.allclose(m.w, want, atol=1e-12)

def test_adaptive_clipping_skips_parameters_by_name():
    plain,clipped,some = mk(1),mk(1, AdaptiveGradientClip(1e-4)),mk(1, AdaptiveGradientClip(1e-4, skip='4.*'))
    for l in (plain, clipped, some): l.fit(1)
    equal = lambda a,b: [torch.equal(p, q) for p,q in zip(a.model.parameters(), b.model.parameters())]
    assert equal(some, clipped)==[True]*4+[False]*2 and equal(some, plain)==[False]*4+[True]*2

@pytest.mark.parametrize('kw', [dict(ratio=0.), dict(eps=-1.), dict(ratio='x')])
def test_bad_adaptive_clipping(kw):
    with pytest.raises((ValueError,TypeError), match='ratio'): AdaptiveGradientClip(**kw)

# unfreezing
@quick
@given(st.dictionaries(st.integers(0, 5), st.integers(-3, 2), min_size=1, max_size=3), st.integers(0, 3))
def test_gradual_unfreezing(plan, start):
    "In each epoch, exactly the groups of the plan are trainable"
    seen = {}
    def note(cb): seen[cb.learn.epoch] = [l[0].requires_grad for l in layers(cb.learn.model)]
    learn = mk(1, GradualUnfreezing(plan), at('before_train', note), splitter=layers, opt_func=partial(SGD, momentum=.9))
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        learn.fit(6, start_epoch=start)
    now = 0
    for e in range(6):
        now = plan.get(e, now)
        if e>=start: assert seen[e]==[i>=now%3 for i in range(3)], (e, plan)

@pytest.mark.parametrize('kill', [1, 3, 4, 6])
@pytest.mark.parametrize('frozen', [False, True], ids=['whole','frozen'])
@pytest.mark.parametrize('again', [False, True], ids=['anew','again'])
def test_gradual_unfreezing_resumed(kill, frozen, again, tmp_path):
    "A run resumes with the groups that were frozen, and unfreezes them later: in a new Learner, or again in the one that was interrupted"
    def create(folder):
        learn = mk(2, GradualUnfreezing({1:-2, 3:0} if frozen else {0:-1, 1:-2, 3:0}), CheckpointCallback('1ba', folder=folder),
                   splitter=layers, opt_func=partial(SGD, momentum=.9))
        if frozen: learn.freeze()
        return learn
    def train(learn, *cbs, **kw): learn.fit(5, slice(.01, .05), cbs=cbs, **kw)
    whole,killed = create(tmp_path/'a'),create(tmp_path/'b')
    train(whole)
    with pytest.raises(SystemError): train(killed, at('after_batch', throw(SystemError()), lambda cb: cb.learn.training and cb.learn.train_iter==kill, order=200))
    resumed = killed if again else create(tmp_path/'b')
    train(resumed, resume='auto')
    assert torch.equal(weights(resumed), weights(whole))
    assert all(p.requires_grad for p in resumed.model.parameters())

@pytest.mark.parametrize('plan,words', [({0:3}, 'no parameter group 3'), ({0:-4}, 'no parameter group -4')])
def test_bad_groups(plan, words):
    with pytest.raises(ValueError, match=words): mk(1, GradualUnfreezing(plan), splitter=layers).fit(1)
@pytest.mark.parametrize('plan', [{}, [0], {'a':0}, {0:None}, {-1:0}, None])
def test_bad_plans(plan):
    with pytest.raises((ValueError,TypeError), match='GradualUnfreezing'): GradualUnfreezing(plan)

def test_frozen_by_name():
    learn = mk(1, splitter=by_names('0.*', '2.weight'))
    before = [p.detach().clone() for p in learn.model.parameters()]
    learn.freeze_to(1)
    learn.fit(1)
    assert [torch.equal(a, b) for a,b in zip(before, learn.model.parameters())]==[True]*2+[False]*4 and len(learn.opt.hypers)==3

# a history in a file
values = st.one_of(st.none(), st.floats(), st.integers(-10**6, 10**6), st.text(max_size=5))
@quick
@given(st.lists(st.dictionaries(st.sampled_from(['epoch','valid_loss','time']), values, min_size=1), max_size=5))
def test_a_history_in_a_file(rows):
    with tempfile.TemporaryDirectory() as folder:
        History(rows).to_file(f'{folder}/h.json')
        again = History.from_file(f'{folder}/h.json')
    assert repr([dict(r) for r in again])==repr(rows)

def test_the_history_of_a_fit_in_a_file(tmp_path):
    learn = mk(2)
    learn.fit(2)
    learn.recorder.history.to_file(tmp_path/'h.json')
    assert History.from_file(tmp_path/'h.json')==learn.recorder.history
    (tmp_path/'x.json').write_text('{"a": 1}')
    with pytest.raises(ValueError, match='no rows'): History.from_file(tmp_path/'x.json')

# outputs with names
def test_a_mapping_may_return_loss_and_logits():
    class Own(nn.Linear):
        def forward(self, x, labels): out = super().forward(x); return dict(p=out, e=F.mse_loss(out, labels))
    data = [dict(x=x, labels=y) for x,y in batches(3)]
    a = Learner((data, data), Own(4, 1), opt_func=SGD, lr=.05, cbs=MapOutputs(dict(p='logits', e='loss')))
    b = Learner((batches(3), batches(3)), nn.Linear(4, 1), nn.MSELoss(), SGD, lr=.05)
    b.model.load_state_dict(a.model.state_dict())
    for l in (a, b): l.logger = null_logger; l.fit(2)
    assert torch.allclose(weights(a), weights(b)) and a.recorder.history['valid_loss']==pytest.approx(b.recorder.history['valid_loss'])
    assert torch.allclose(a.get_preds()[0], b.get_preds()[0])

def test_adaptive_clip_knows_the_parameters_of_the_loss():
    "They are clipped too, but no pattern matched their names"
    class Weighted(nn.Module):
        def __init__(self): super().__init__(); self.scale = nn.Parameter(torch.ones(()))
        def forward(self, pred, y): return (self.scale*pred-y).pow(2).mean()
    def scale(**kw):
        torch.manual_seed(0)
        learn = Learner([[(torch.randn(4,3), torch.randn(4,1))]], nn.Linear(3,1), Weighted(), SGD, lr=1., cbs=AdaptiveGradientClip(1e-4, **kw))
        learn.fit(1)
        return learn.loss_func.scale.item()
    assert abs(scale()-1)<1.1e-4 and abs(scale(skip='loss_func.*')-1)>.01

def test_a_clip_of_nothing():
    "No norm for any optimizer was accepted, and clipped nothing"
    with pytest.raises(ValueError, match='pass `max_norm` or `value`'): GradientClip({})
