"The optimizer wrapper against torch optimizers built by hand: to the last bit, and back through files"
import copy, functools, io, pickle, warnings
from functools import partial

import numpy as np, pytest, torch
from fastcore.foundation import L
from hypothesis import given, strategies as st
from torch import nn, tensor
from torch.nn import functional as F
from torch.optim import SGD, Adam, AdamW, RMSprop
from torch.optim.optimizer import _use_grad_for_differentiable, register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.optim.lr_scheduler import CosineAnnealingLR, ExponentialLR, LambdaLR, OneCycleLR, ReduceLROnPlateau

from learnkit.optim.optimizer import unwrap_step
from learnkit.optim.groups import even_mults, logical_groups, spread
from learnkit.data.modules import norm_bias_params, params, trainable_params
from learnkit.optim.optimizer import *
from learnkit.optim.groups import param_dicts
from toys import learner, throw

torch.set_num_threads(1)

def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3,4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4,4), nn.ReLU(), nn.Linear(4,2))

cuts = {1: lambda m: params(m), 2: lambda m: [params(m[:3]), params(m[3:])], 3: lambda m: [params(m[:3]), params(m[3]), params(m[5])]}

def grads(m, i):
    g = torch.Generator().manual_seed(i)
    m(torch.randn(8, 3, generator=g)).pow(2).mean().backward()

def steps(opt, m, n=4, start=0, sched=None):
    for i in range(start, start+n):
        grads(m, i)
        opt.step()
        opt.zero_grad()
        if sched: sched.step()

def bits(a, b): return torch.equal(a, b) or torch.allclose(a, b, rtol=0, atol=0, equal_nan=True)
def same(m1, m2): return all(bits(a, b) for a,b in zip(m1.state_dict().values(), m2.state_dict().values(), strict=True))
def same_state(o1, o2):
    "Equal optimizer state, by position of the parameters"
    a,b = o1.state_dict(),o2.state_dict()
    assert a['state'].keys()==b['state'].keys()
    for k in a['state']:
        assert a['state'][k].keys()==b['state'][k].keys()
        for n,v in a['state'][k].items(): assert bits(torch.as_tensor(v), torch.as_tensor(b['state'][k][n])), (k,n)
    return True

def file(sd):
    f = io.BytesIO()
    torch.save(sd, f)
    f.seek(0)
    return torch.load(f, weights_only=True)

def groups(ps): return [{'params':o} for o in ps] if isinstance(ps[0], list) else ps
def ids(ps): return [id(p) for p in ps]
def numbers(opt): return [{k:v for k,v in pg.items() if k!='params'} for pg in opt.param_groups]
def make(m, cls=Adam, n=2, **kw): return OptimWrapper(cuts[n](m), cls, no_decay=norm_bias_params(m), **kw)
def with_decay(m, n=2, wd=.1, **kw):
    opt = make(m, n=n, **kw)
    opt.split_no_decay()
    opt.set_hyper('wd', wd)
    return opt

# Equal to torch's own

unit = st.floats(0, .99)
lrs  = st.floats(1e-4, .5)
kinds = st.one_of(
    st.tuples(st.just(SGD), st.fixed_dictionaries({}, optional=dict(momentum=unit, dampening=st.floats(0,.5), weight_decay=unit))),
    st.tuples(st.sampled_from([Adam,AdamW]), st.fixed_dictionaries({}, optional=dict(
        betas=st.tuples(unit, unit), eps=st.floats(1e-8,1e-3), weight_decay=unit, amsgrad=st.booleans(), foreach=st.booleans()))),
    st.tuples(st.just(RMSprop), st.fixed_dictionaries({}, optional=dict(
        alpha=unit, momentum=unit, eps=st.floats(1e-8,1e-3), weight_decay=unit, centered=st.booleans()))))

@given(kinds, st.none() | lrs, st.sampled_from([1,2,3]))
def test_equals_torch(kind, lr, n):
    "Class and keywords, one group or several: the same weights and state as by hand"
    cls,kw = kind
    m1,m2 = model(),model()
    by_hand = cls(groups(cuts[n](m1)), **kw, **({} if lr is None else {'lr':lr}))
    opt = OptimWrapper(cuts[n](m2), cls, lr, **kw)
    steps(by_hand, m1)
    steps(opt, m2)
    assert same(m1, m2) and same_state(by_hand, opt)
    assert numbers(by_hand)==numbers(opt.opt) and len(opt.hypers)==n

@given(kinds, st.lists(lrs, min_size=3, max_size=3), unit)
def test_equals_torch_when_hypers_change(kind, lr, mom):
    "Hyperparameters that change at every step do what the same change by hand does"
    cls,kw = kind
    m1,m2 = model(),model()
    by_hand,opt = cls(groups(cuts[3](m1)), **kw),OptimWrapper(cuts[3](m2), cls, **kw)
    for i in range(4):
        for pg,l in zip(by_hand.param_groups, lr):
            pg['lr'] = l/(i+1)
            if 'betas' in pg: pg['betas'] = (mom, pg['betas'][1])
            else: pg['momentum'] = mom
        opt.set_hypers(lr=[l/(i+1) for l in lr], mom=mom)
        steps(by_hand, m1, 1, i)
        steps(opt, m2, 1, i)
    assert same(m1, m2) and same_state(by_hand, opt)

ways = dict(cls=SGD, partial=partial(SGD), instance=lambda m: SGD(m.parameters(), lr=.1, momentum=.9), function=lambda gs, **kw: SGD(gs, **kw))
@pytest.mark.parametrize('how', ways)
def test_every_way_of_giving_it(how):
    m1,m2 = model(),model()
    by_hand = SGD(m1.parameters(), lr=.1, momentum=.9)
    opt = OptimWrapper(opt=ways[how](m2)) if how=='instance' else OptimWrapper(params(m2), ways[how], .1, momentum=.9)
    steps(by_hand, m1)
    steps(opt, m2)
    assert same(m1, m2)

def test_single_group_is_called_by_hand():
    "A class gets the plain list, a function always the list of dicts"
    got = []
    class Mine(SGD):
        def __init__(self, params, **kw): got.append(params); super().__init__(params, **kw)
    def func(gs, lr): got.append(gs); return SGD(gs, lr=lr)
    m = model()
    for f in (Mine, partial(Mine, momentum=.9), func): create_optimizer(f, (p for p in m.parameters()), .1)
    for f in (Mine, func): create_optimizer(f, cuts[2](m), .1)
    assert ids(got[0])==ids(got[1])==ids(got[2][0]['params'])==ids(m.parameters())
    assert [len(got[2]), len(got[3]), len(got[4])]==[1,2,2] and set(got[4][0])>={'params'}

def test_lr_of_a_partial_and_defaults():
    m = model()
    assert create_optimizer(partial(Adam, lr=.5), params(m)).hypers[0]['lr']==.5
    assert create_optimizer(partial(Adam, lr=.5), params(m), .1).hypers[0]['lr']==.1
    assert create_optimizer(Adam, params(m)).hypers[0]['lr']==1e-3
    assert create_optimizer(SGD(m.parameters(), lr=.3), params(m)).hypers[0]['lr']==.3
    assert create_optimizer(SGD(m.parameters(), lr=.3), params(m), .2).hypers[0]['lr']==.2
    assert list(create_optimizer(SGD, cuts[3](m), slice(1e-4,1e-2)).hypers.itemgot('lr'))==pytest.approx([1e-4,1e-3,1e-2])
    assert create_optimizer(partial(partial(SGD, momentum=.7), lr=.2), params(m)).hypers[0]['mom']==.7
    lr = create_optimizer(SGD, params(m), np.float32(.5)).param_groups[0]['lr']
    assert type(lr) is float and lr==.5

@pytest.mark.parametrize('form', ['list', 'tuple', 'L', 'generator', 'generators', 'L of L', 'dicts', 'named', 'nested one'])
def test_forms_of_params(form):
    m = model()
    a,b = cuts[2](m)
    ps,n = dict(list=(params(m),1), tuple=(tuple(params(m)),1), L=(L(params(m)),1), generator=(m.parameters(),1),
                generators=([m[:3].parameters(), m[3:].parameters()],2), named=(m.named_parameters(),1),
                dicts=([{'params':a, 'lr':.5}, {'params':b}],2))[form] if form not in ('L of L','nested one') else \
           (L(L(a),L(b)),2) if form=='L of L' else ([params(m)],1)
    opt = create_optimizer(SGD, ps, .1)
    assert len(opt.hypers)==n and ids(opt.param_lists.concat())==ids(m.parameters())
    if form=='dicts': assert opt.hypers.itemgot('lr')==[.5,.1]

@pytest.mark.parametrize('cls', [SGD, Adam, AdamW, RMSprop, torch.optim.Adagrad, torch.optim.Adadelta, torch.optim.Adamax, torch.optim.NAdam,
                                 torch.optim.RAdam, torch.optim.Rprop, torch.optim.ASGD, torch.optim.Adafactor])
def test_all_of_torch(cls):
    "Each torch optimizer: equal by hand, split after some steps, cleared, saved and loaded"
    m1,m2 = model(),model()
    by_hand,opt = cls(groups(cuts[2](m1))),make(m2, cls)
    steps(by_hand, m1)
    steps(opt, m2)
    assert same(m1, m2) and same_state(by_hand, opt)
    opt.split_no_decay()
    steps(opt, m2)
    m3 = copy.deepcopy(m2)
    new = make(m3, cls)
    new.load_state_dict(file(opt.state_dict()))
    steps(opt, m2)
    steps(new, m3)
    assert same(m2, m3) and same_state(opt, new)
    opt.clear_state()
    steps(opt, m2)
    for h in opt.hypers:
        for k,v in h.items():
            h[k] = v
            assert h[k]==v

def test_fresh_after_clear_state():
    "After clear_state an optimizer goes on like a new one"
    for cls in (SGD, Adam, torch.optim.Adagrad, RMSprop):
        m1 = model()
        opt = OptimWrapper(params(m1), cls, lr=.01)
        steps(opt, m1)
        m2 = copy.deepcopy(m1)
        opt.clear_state()
        fresh = cls(m2.parameters(), lr=.01)
        assert same_state(fresh, opt)
        steps(opt, m1)
        steps(fresh, m2)
        assert same(m1, m2)

def test_lbfgs_with_closure():
    def run(opt, m):
        x,y = torch.randn(8,3, generator=torch.Generator().manual_seed(1)),torch.zeros(8,2)
        def closure():
            opt.zero_grad()
            loss = F.mse_loss(m(x), y)
            loss.backward()
            return loss
        return [opt.step(closure).item() for _ in range(3)]
    m1,m2 = model(),model()
    opt = OptimWrapper(params(m2), torch.optim.LBFGS, lr=.5)
    assert run(torch.optim.LBFGS(m1.parameters(), lr=.5), m1)==run(opt, m2) and same(m1, m2)
    assert opt.hypers[0]['max_iter']==20
    opt.load_state_dict(file(opt.state_dict()))
    opt.split_no_decay()
    with pytest.raises(KeyError, match="no hyperparameter 'wd'"): opt.set_hyper('wd', .1)

@pytest.mark.parametrize('kw', [dict(fused=True), dict(foreach=True), dict(amsgrad=True), dict(maximize=True), dict(differentiable=False)])
def test_switches(kw):
    m1,m2 = model(),model()
    steps(Adam(m1.parameters(), **kw), m1)
    steps(opt := OptimWrapper(params(m2), Adam, **kw), m2)
    assert same(m1, m2) and not set(kw) & {*opt.hypers[0]}

def test_sparse_adam():
    def run(cls):
        torch.manual_seed(0)
        e = nn.Embedding(5, 2, sparse=True)
        opt = cls(e)
        for _ in range(3):
            e(tensor([1,3])).sum().backward()
            opt.step()
            opt.zero_grad()
        return e.weight
    assert torch.equal(run(lambda e: torch.optim.SparseAdam(e.parameters())), run(lambda e: OptimWrapper(params(e), torch.optim.SparseAdam)))

def test_grad_scaler_with_a_fused_optimizer():
    "GradScaler lets fused optimizers unscale by themselves: the wrapper must not be taken for one"
    def run(opt, m):
        scaler = torch.amp.GradScaler('cpu', init_scale=8.)
        for i in range(3):
            x = torch.randn(8, 3, generator=torch.Generator().manual_seed(i))
            scaler.scale(m(x).pow(2).mean()).backward()
            scaler.step(opt)
            scaler.update()
            opt.zero_grad()
    m1,m2 = model(),model()
    run(SGD(m1.parameters(), lr=.1), m1)
    run(OptimWrapper(params(m2), SGD, lr=.1, fused=True), m2)
    for a,b in zip(m1.parameters(), m2.parameters()): assert torch.allclose(a, b, atol=1e-6)

# hypers

@given(kinds, st.sampled_from([1,2,3]), st.booleans())
def test_names_read_and_write_through(kind, n, split):
    cls,kw = kind
    m = model()
    opt = make(m, cls, n, **kw)
    if split: opt.split_no_decay()
    names = dict(SGD={'lr','mom','wd','dampening'}).get(cls.__name__, {'lr','mom','sqr_mom','wd','eps'})
    at = dict(lr=('lr',), wd=('weight_decay',), eps=('eps',), dampening=('dampening',), mom=('betas',0) if 'betas' in opt.param_groups[0] else ('momentum',),
              sqr_mom=('betas',1) if 'betas' in opt.param_groups[0] else ('alpha',))
    def torch_value(pg, name): return pg[at[name][0]] if len(at[name])==1 else pg[at[name][0]][at[name][1]]
    for i,(h,pgs) in enumerate(zip(opt.hypers, logical_groups(opt.param_groups), strict=True)):
        assert {*h}==names and len(h)==len(names)
        for j,k in enumerate(sorted(names)):
            h[k] = v = (i*10+j+1)/100
            assert h[k]==v
            for pg in pgs: assert torch_value(pg, k)==(0 if k=='wd' and pg.get('no_decay_half') else v)
        pgs[0]['lr'] = 7.
        assert h['lr']==7. and dict(h)=={**h}=={k:h[k] for k in h}
        assert eval(repr(h))==dict(h)
        assert type(pgs[0].get('betas', ())) is tuple

def test_views_persist():
    opt = make(model(), n=3)
    hs,one = opt.hypers,opt.hypers[1]
    opt.split_no_decay(); assert opt.hypers[1] is one and opt.hypers is hs
    opt.load_state_dict(opt.state_dict()); assert opt.hypers[1] is one
    opt.merge_no_decay(); assert opt.hypers[1] is one and len(opt.hypers)==3
    opt.set_hyper('lr', [1,2,3]); assert one['lr']==2

def test_in_place_mutation():
    "What fastai's ReduceLROnPlateau does"
    for split in (False,True):
        opt = make(model(), n=3, lr=[.1,.2,.3])
        if split: opt.split_no_decay()
        for h in opt.hypers: h['lr'] /= 10
        assert opt.hypers.itemgot('lr')==[.1/10,.2/10,.3/10]
        for i,h in enumerate(opt.hypers): h['lr'] = max(h['lr']/10, .002)
        assert {pg['lr'] for pg in opt.param_groups}=={.002,.3/10/10}

def test_copies_of_views_are_dicts():
    opt = make(model())
    for o in (copy.copy(opt.hypers[0]), copy.deepcopy(opt.hypers[0]), pickle.loads(pickle.dumps(opt.hypers[0]))):
        assert type(o) is dict and o==opt.hypers[0]
    before = copy.deepcopy(opt.hypers)
    opt.set_hyper('lr', 9.)
    assert before[0]['lr']==1e-3

def test_unknown_names():
    opt = make(model())
    for bad,hint in dict(momentun='mom', momentum='mom', weight_decay='wd', betas='mom', epss='eps', sqrmom='sqr_mom').items():
        for f in (lambda: opt.hypers[0][bad], lambda: opt.set_hyper(bad, 1.), lambda: opt.hypers[0].update({bad:1.})):
            with pytest.raises(KeyError, match=f"'{bad}'.*lr.*Did you mean '{hint}'"): f()
    for bad in ('amsgrad','params','foreach','zzz', 3):
        with pytest.raises(KeyError, match='but has lr'): opt.set_hyper(bad, 1.)
    assert 'amsgrad' not in opt.hypers[0] and opt.hypers[0].get('zzz') is None
    assert opt.hypers[0]['amsgrad'] is False and 'amsgrad' not in {**opt.hypers[0]}   # a switch can be read, that is all
    with pytest.raises(TypeError, match='not deleted'): del opt.hypers[0]['lr']
    with pytest.raises(TypeError, match='not deleted'): opt.hypers[0].pop('lr')

@pytest.mark.parametrize('bad', [None, 'fast', True, [None], ['a','b'], {'head':.1}, object()])
def test_values_that_are_no_numbers(bad):
    opt = make(model())
    with pytest.raises(TypeError, match='must be a number'): opt.set_hyper('lr', bad)
    with pytest.raises(TypeError, match='must be a number'): opt.hypers[0]['lr'] = bad
    assert opt.hypers.itemgot('lr')==[1e-3]*2

@pytest.mark.parametrize('v', [[1.,2.,3.], (1.,2.,3.), L(1.,2.,3.), np.array([1.,2.,3.]), tensor([1.,2.,3.]), iter([1.,2.,3.]), range(1,4),
                               [np.float32(1),tensor(2.),3], tensor([1.,2.,3.], requires_grad=True)])
def test_one_for_each(v):
    opt = make(model(), n=3)
    opt.set_hyper('lr', v)
    assert opt.hypers.itemgot('lr')==[1.,2.,3.]
    assert all(type(pg['lr']) in (int,float) for pg in opt.param_groups)
    file(opt.state_dict())

@pytest.mark.parametrize('v', [2., 2, np.float64(2), np.float32(2), np.array(2.), tensor(2.), tensor([2.]), [2.], np.array([2.])])
def test_one_for_all(v):
    opt = make(model(), n=3)
    opt.set_hyper('mom', v)
    assert opt.hypers.itemgot('mom')==[2.]*3 and all(type(pg['betas'][0]) in (int,float) for pg in opt.param_groups)
    opt.hypers[0]['mom'] = v if not isinstance(v, list) else 2.
    file(opt.state_dict())

@given(lrs, lrs, st.integers(1,6))
def test_slices(a, b, n):
    ps = [[nn.Parameter(torch.ones(1))] for _ in range(n)]
    opt = OptimWrapper(ps, SGD, lr=slice(a,b))
    got = opt.hypers.itemgot('lr')
    assert got[-1]==b and (n==1 or got[0]==pytest.approx(a))
    for x,y,z in zip(got, got[1:], got[2:]): assert y/x==pytest.approx(z/y)
    opt.set_hyper('lr', slice(b))
    assert opt.hypers.itemgot('lr')==[b/10]*(n-1)+[b]
    assert got==even_mults(a, b, n)

def test_wrong_numbers_of_values():
    opt = make(model(), n=3, lr=[1.,2.,3.])
    for bad in ([1.,2.], np.ones(4), [], tensor([1.,2.])):
        with pytest.raises(ValueError, match='values for 3 parameter groups'): opt.set_hyper('lr', bad)
    for bad in (slice(None), slice(1.,None), slice(1.,2.,3)):
        with pytest.raises(ValueError, match='slice'): opt.set_hyper('lr', bad)
    for bad in (slice(0,1.), slice(-1.,1.)):
        with pytest.raises(ValueError, match='above zero'): opt.set_hyper('lr', bad)
    assert opt.hypers.itemgot('lr')==[1.,2.,3.]

def test_tensor_lr():
    "Written in place, each group has its own, reading gives a copy"
    m1,m2 = model(),model()
    lr = tensor(.1, dtype=torch.float64)
    opt = make(m2, partial(Adam, foreach=False), lr=lr)
    opt.split_no_decay()
    own = [pg['lr'] for pg in opt.param_groups]
    assert len({o.data_ptr() for o in (lr, *own)})==5
    seen = opt.hypers[0]['lr']
    opt.set_hyper('lr', [.01,.02])
    opt.hypers[1]['lr'] *= 2
    assert [pg['lr'] for pg in opt.param_groups]==[.01,.01,.04,.04] and seen==lr==.1
    assert all(a is pg['lr'] for a,pg in zip(own, opt.param_groups))
    by_hand = Adam([dict(params=params(m1[:3]), lr=.01), dict(params=params(m1[3:]), lr=.04)], foreach=False)
    steps(by_hand, m1)
    steps(opt, m2)
    for a,b in zip(m1.parameters(), m2.parameters()): assert torch.allclose(a, b, atol=1e-6)
    new = make(model(), partial(Adam, foreach=False), lr=tensor(1.))
    new.load_state_dict(file(opt.state_dict()))
    assert len(new.param_groups)==4 and new.hypers[1]['lr']==.04

def test_tensor_betas():
    opt = OptimWrapper([[nn.Parameter(torch.ones(1))] for _ in 'ab'], partial(Adam, betas=(tensor(.9),tensor(.99)), capturable=True))
    b = opt.param_groups[0]['betas'][0]
    opt.set_hyper('mom', [.5,.25])
    assert opt.param_groups[0]['betas'][0] is b and b==.5 and opt.hypers[1]['mom']==.25

def test_names_that_are_no_adam_or_sgd():
    ps = [nn.Parameter(torch.ones(2,2))]
    class Odd(torch.optim.Optimizer):
        def __init__(self, params, lr=.1): super().__init__(params, dict(lr=lr, betas=(.9,.99,.999), alpha=5., weight_decay=0., warm=True, name='x', eps=(None,1e-3)))
        def step(self): pass
    assert dict(OptimWrapper(ps, Odd).hypers[0])==dict(lr=.1, mom=.9, sqr_mom=.99, alpha=5., wd=0.)
    h = OptimWrapper(ps, Odd).hypers[0]
    h['sqr_mom'] = .5
    assert h.opt.param_groups[0]['betas']==(.9,.5,.999)
    assert dict(OptimWrapper(ps, torch.optim.ASGD).hypers[0])['alpha']==.75
    assert 'eps' not in OptimWrapper(ps, torch.optim.Adafactor).hypers[0]

def test_added_group():
    "A group added to the torch optimizer is one more group here"
    m = model()
    a,b = cuts[2](m)
    opt = OptimWrapper(a, SGD, no_decay=norm_bias_params(m))
    first = opt.hypers[0]
    opt.add_param_group(dict(params=b, lr=.5))
    assert opt.hypers[0] is first and opt.hypers.itemgot('lr')==[1e-3,.5]
    opt.split_no_decay()
    opt.freeze()
    assert len(opt.param_groups)==4 and len(opt.hypers)==2 and not any(p.requires_grad for p in a)
    assert ids(opt.param_lists[0])==ids(a) and sorted(ids(opt.param_lists[1]))==sorted(ids(b))

# weight decay

def two_groups(m, cls, wd, **kw):
    "What one writes by hand"
    no = {id(p) for p in norm_bias_params(m)}
    return cls([dict(params=[p for p in m.parameters() if id(p) not in no], weight_decay=wd),
                dict(params=[p for p in m.parameters() if id(p) in no], weight_decay=0.)], **kw)

@given(kinds, unit, lrs)
def test_split_equals_two_groups_by_hand(kind, wd, lr):
    cls,kw = kind
    m1,m2 = model(),model()
    kw = {k:v for k,v in kw.items() if k!='weight_decay'}
    by_hand,opt = two_groups(m1, cls, wd, lr=lr, **kw),with_decay(m2, 1, wd, cls=cls, lr=lr, **kw)
    steps(by_hand, m1)
    steps(opt, m2)
    assert same(m1, m2) and same_state(by_hand, opt)
    assert [len(pg['params']) for pg in opt.param_groups]==[3,5]

@given(kinds, st.sampled_from([1,2,3]), st.integers(0,3), st.sampled_from(['class','instance']))
def test_splitting_keeps_the_state(kind, n, before, how):
    "Steps, then a split without decay, then steps: as if nothing had happened"
    cls,kw = kind
    kw = kw|dict(weight_decay=0.)
    m1,m2 = model(),model()
    by_hand = cls(groups(cuts[n](m1)), **kw)
    opt = OptimWrapper(cuts[n](m2), cls, no_decay=norm_bias_params(m2), **kw) if how=='class' else \
          OptimWrapper(opt=cls(groups(cuts[n](m2)), **kw), no_decay=norm_bias_params(m2))
    steps(by_hand, m1, before)
    steps(opt, m2, before)
    opt.split_no_decay()
    assert len(opt.param_groups)==2*n and len(opt.hypers)==n
    steps(by_hand, m1, 2)
    steps(opt, m2, 2)
    assert same(m1, m2)
    opt.merge_no_decay()
    assert same_state(by_hand, opt) and numbers(by_hand)==numbers(opt.opt)
    assert [ids(pg['params']) for pg in opt.param_groups]==[ids(o['params']) for o in param_dicts(cuts[n](m2))]

def test_splitting_is_idempotent():
    opt = make(model(), n=3)
    assert len(opt.param_groups)==3
    opt.merge_no_decay(); assert len(opt.param_groups)==3
    opt.split_no_decay(); opt.set_hyper('wd', .1)
    before = opt.state_dict()
    opt.split_no_decay()
    assert opt.state_dict()==before

def test_bias_is_unchanged_by_wd():
    m = model()
    before = {n:p.detach().clone() for n,p in m.named_parameters()}
    opt = with_decay(m, 2, .5, cls=AdamW, lr=1.)
    for p in m.parameters(): p.grad = torch.zeros_like(p)
    opt.step()
    for n,p in m.named_parameters(): assert torch.equal(p, before[n]) == (n not in ('0.weight','3.weight','5.weight'))

def test_groups_of_one_kind():
    "A group without decay for all of its parameters, or for none"
    m = model()
    opt = OptimWrapper([params(m[1]), [m[0].weight], [m[0].bias,m[3].weight]], AdamW, no_decay=norm_bias_params(m))
    opt.split_no_decay()
    assert [len(pg['params']) for pg in opt.param_groups]==[0,2,1,1,1]
    opt.set_hypers(wd=[.1,.2,.3], lr=slice(1e-3))
    assert opt.hypers.itemgot('wd')==[.1,.2,.3]
    assert [pg['weight_decay'] for pg in opt.param_groups]==[.1,0,.2,.3,0]
    steps(opt, m)
    m2 = copy.deepcopy(m)
    new = OptimWrapper([params(m2[1]), [m2[0].weight], [m2[0].bias,m2[3].weight]], AdamW, no_decay=norm_bias_params(m2))
    new.load_state_dict(file(opt.state_dict()))
    assert same_state(opt, new)
    opt.merge_no_decay()
    assert [len(pg['params']) for pg in opt.param_groups]==[2,1,2]

def test_split_more():
    "What was added to `no_decay` moves at the next call, what moved before stays so"
    m = model()
    opt = OptimWrapper(params(m), SGD, no_decay=[m[0].bias])
    opt.split_no_decay()
    opt.no_decay.append(m[1].weight)
    opt.split_no_decay()
    opt.set_hypers(wd=.1, lr=.5)
    assert [len(pg['params']) for pg in opt.param_groups]==[6,1,1] and len(opt.hypers)==1
    assert [pg['weight_decay'] for pg in opt.param_groups]==[.1,0,0] and {pg['lr'] for pg in opt.param_groups}=={.5}
    opt.merge_no_decay()
    assert ids(opt.param_groups[0]['params'])==ids(m.parameters()) and len(opt.param_groups)==1

def test_nothing_to_split():
    opt = OptimWrapper(params(model()), SGD)
    opt.split_no_decay()
    assert len(opt.param_groups)==1 and 'no_decay_half' not in opt.param_groups[0]

def test_named_parameters_keep_their_names():
    m = model()
    opt = OptimWrapper(m.named_parameters(), SGD, no_decay=norm_bias_params(m))
    opt.split_no_decay()
    name = {id(p):n for n,p in m.named_parameters()}
    for pg in opt.param_groups: assert pg['param_names']==[name[id(p)] for p in pg['params']]
    opt.merge_no_decay()
    assert opt.param_groups[0]['param_names']==[n for n,_ in m.named_parameters()]

@pytest.mark.parametrize('all_decay', [False,True])
def test_a_learner_with_wd(all_decay):
    "A Learner with `wd` trains as two groups by hand do, or as one group if norms and biases decay too"
    from learnkit.learner.learner import Learner
    x,y = torch.randn(16,3),torch.randn(16,2)
    m1,m2 = model(),model()
    by_hand = AdamW(m1.parameters(), lr=.1, weight_decay=.2) if all_decay else two_groups(m1, AdamW, .2, lr=.1)
    for _ in range(3):
        F.mse_loss(m1(x), y).backward()
        by_hand.step()
        by_hand.zero_grad()
    learn = Learner([[(x,y)]*3], m2, F.mse_loss, AdamW, lr=.1, wd=.2, wd_bn_bias=all_decay)
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    assert same(m1, m2)

# torch's schedulers

scheds = dict(one_cycle=lambda o: OneCycleLR(o, .5, total_steps=12), cosine=lambda o: CosineAnnealingLR(o, 12), exp=lambda o: ExponentialLR(o, .9),
              lam=lambda o: LambdaLR(o, lambda e: 1/(1+e)))
@pytest.mark.parametrize('sched', scheds)
@pytest.mark.parametrize('cls', [partial(SGD, momentum=.9), Adam])
def test_torch_schedulers(sched, cls):
    m1,m2 = model(),model()
    by_hand,opt = cls(groups(cuts[2](m1)), lr=.1),make(m2, cls, lr=.1)
    s1,s2 = scheds[sched](by_hand),scheds[sched](opt.opt)
    for i in range(10):
        steps(by_hand, m1, 1, i, s1)
        steps(opt, m2, 1, i, s2)
        assert [pg['lr'] for pg in by_hand.param_groups]==opt.hypers.itemgot('lr')==s2.get_last_lr()
        assert [pg['betas'][0] if 'betas' in pg else pg['momentum'] for pg in by_hand.param_groups]==opt.hypers.itemgot('mom')
    assert same(m1, m2)

def test_scheduler_over_split_groups():
    opt = with_decay(model(), lr=.1)
    sched = ExponentialLR(opt.opt, .5)
    opt.step(); sched.step()
    assert opt.hypers.itemgot('lr')==[.05,.05] and {pg['lr'] for pg in opt.param_groups}=={.05}
    opt = make(model())
    sched = ExponentialLR(opt.opt, .5)
    with pytest.warns(UserWarning, match='lr_scheduler was created before'): opt.split_no_decay()
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        opt.split_no_decay()

def test_plateau_scheduler():
    opt = make(model(), lr=.1)
    sched = ReduceLROnPlateau(opt.opt, patience=0)
    for _ in range(3): sched.step(1.)
    assert list(opt.hypers.itemgot('lr'))==pytest.approx([.001]*2)

# freezing

@given(st.lists(st.integers(-3,3), min_size=1, max_size=6), st.sets(st.integers(0,7)), st.booleans(), st.booleans())
def test_freezing(ns, off, norms, split):
    "Whatever the sequence: trained is what is in a trained group or always trained, and was not switched off by the user"
    m = model()
    ps = params(m)
    for i in off: ps[i].requires_grad_(False)
    always = norm_bias_params(m, with_bias=False) if norms else []
    opt = OptimWrapper(cuts[3](m), SGD, no_decay=norm_bias_params(m), train_always=always)
    if split: opt.split_no_decay()
    grads_on = ids(p for i,p in enumerate(ps) if i not in off)
    for n in ns:
        for p in ps: p.grad = torch.zeros_like(p)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            opt.freeze_to(n)
        k = n if n>=0 else 3+n
        assert opt.frozen_idx==k
        for i,gp in enumerate(cuts[3](m)):
            for p in gp:
                kept = i>=k or id(p) in ids(always)
                assert p.requires_grad==(kept and id(p) in grads_on)
                assert (p.grad is None)==(not kept)
    opt.unfreeze()
    assert ids(p for p in ps if p.requires_grad)==grads_on and opt.frozen_idx==0

def test_frozen_groups_do_not_move():
    m = model()
    opt = OptimWrapper(cuts[2](m), AdamW, lr=.1, train_always=norm_bias_params(m, with_bias=False))
    steps(opt, m, 2)
    opt.freeze()
    before = {n:p.detach().clone() for n,p in m.named_parameters()}
    steps(opt, m, 2)
    moved = {n for n,p in m.named_parameters() if not torch.equal(p, before[n])}
    assert moved=={'1.weight','1.bias','3.weight','3.bias','5.weight','5.bias'}
    opt.unfreeze()
    steps(opt, m, 1)
    assert not torch.equal(m[0].weight, before['0.weight'])

def test_freezing_warnings_and_errors():
    one = OptimWrapper(params(model()), SGD)
    with pytest.warns(UserWarning, match='`splitter`'): one.freeze()
    assert one.frozen_idx==0 and all(p.requires_grad for p in one.param_lists[0])
    with pytest.warns(UserWarning, match='whole model'): one.freeze_to(1)
    opt = make(model(), n=3)
    with pytest.raises(ValueError, match='only 3 groups'): opt.freeze_to(-4)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        opt.freeze(); opt.freeze_to(1); opt.unfreeze()

def test_a_parameter_thawed_by_the_user():
    "Switched on by hand while its group is frozen: it stays on when all is thawed, and is frozen with its group again"
    m = model()
    opt = make(m)
    opt.freeze()
    m[0].weight.requires_grad_(True)
    opt.unfreeze()
    assert all(p.requires_grad for p in m.parameters())
    opt.freeze()
    assert not m[0].weight.requires_grad

# state

@pytest.mark.parametrize('saved_split', [False,True])
@pytest.mark.parametrize('new_split', [False,True])
@pytest.mark.parametrize('n', [1,2,3])
@pytest.mark.parametrize('cls', [partial(SGD, momentum=.9), Adam, partial(RMSprop, centered=True)])
def test_state_through_a_file(saved_split, new_split, n, cls):
    m1 = model()
    opt = (with_decay if saved_split else make)(m1, n=n, cls=cls, lr=.01)
    steps(opt, m1, 3)
    opt.freeze_to(n-1)
    sd = file(opt.state_dict())
    m2 = copy.deepcopy(m1)
    for p in m2.parameters(): p.requires_grad_(True)
    new = (with_decay if new_split else make)(m2, n=n, cls=cls, lr=.5)
    if new_split: steps(new, copy.deepcopy(m2), 0)
    new.load_state_dict(sd)
    assert len(new.param_groups)==len(opt.param_groups)==(2*n if saved_split else n)
    assert new.hypers==opt.hypers and new.frozen_idx==n-1 and same_state(opt, new)
    assert [p.requires_grad for p in m1.parameters()]==[p.requires_grad for p in m2.parameters()]
    steps(opt, m1, 3)
    steps(new, m2, 3)
    assert same(m1, m2) and same_state(opt, new)

def test_file_of_a_split_used_optimizer_into_a_used_one():
    "Loaded into an optimizer that has made steps of its own, split otherwise"
    m1,m2 = model(),model()
    opt,new = make(m1, lr=.01),with_decay(m2, lr=.02)
    steps(opt, m1, 2)
    steps(new, m2, 5)
    m2.load_state_dict(m1.state_dict())
    new.load_state_dict(file(opt.state_dict()))
    steps(opt, m1, 2)
    steps(new, m2, 2)
    assert same(m1, m2)

def test_plain_torch_state():
    "Torch's file loads here, and this file loads in torch"
    m1,m2 = model(),model()
    by_hand = Adam(groups(cuts[2](m1)), lr=.01)
    steps(by_hand, m1)
    m2.load_state_dict(m1.state_dict())
    opt = with_decay(m2)
    opt.load_state_dict(file(by_hand.state_dict()))
    assert len(opt.param_groups)==2 and opt.hypers.itemgot('lr')==[.01,.01] and same_state(by_hand, opt)
    m3 = copy.deepcopy(m2)
    back = Adam(groups(cuts[2](m3)))
    back.load_state_dict(file(opt.state_dict()))
    steps(opt, m2)
    steps(back, m3)
    assert same(m2, m3)

def snapshot(opt): return copy.deepcopy(opt.state_dict()),[ids(pg['params']) for pg in opt.param_groups],[id(pg) for pg in opt.param_groups]
def other(**kw):
    m = nn.Sequential(nn.Linear(3,4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4,4), nn.ReLU(), nn.Linear(4,3))
    opt = make(m, **kw)
    for p in m.parameters(): p.grad = torch.ones_like(p)
    opt.step()
    return opt

@pytest.mark.parametrize('what', ['sizes', 'groups', 'kind', 'shapes', 'split shapes', 'not a state', 'empty'])
@pytest.mark.parametrize('split', [False,True])
def test_what_does_not_fit_changes_nothing(what, split):
    m = model()
    opt = (with_decay if split else make)(m)
    steps(opt, m, 2)
    sd,msg = {'sizes': (OptimWrapper(params(nn.Linear(2,2)), Adam).state_dict(), r'groups of \[2\] parameters'),
              'groups': (make(model(), n=3).state_dict(), r'\[4, 2, 2\] parameters, but this one has \[4, 4\]'),
              'kind': (make(model(), SGD).state_dict(), 'no betas, eps, which Adam needs'),
              'shapes': (other().state_dict(), r"'exp_avg' float32\[3, 4\] for parameter 6, which is float32\[2, 4\]"),
              'split shapes': (lambda o: (o.split_no_decay(), o.state_dict())[1], 'which is float32'),
              'not a state': ({'model':1}, r"not \['model'\]"), 'empty': ({'state':{}, 'param_groups':[]}, 'groups of')}[what]
    if callable(sd): sd = sd(other())
    before = snapshot(opt)
    with pytest.raises(ValueError, match=msg): opt.load_state_dict(sd)
    after = snapshot(opt)
    assert before[1:]==after[1:] and before[0]['param_groups']==after[0]['param_groups']
    for i,s in before[0]['state'].items():
        for k,v in s.items(): assert torch.equal(v, after[0]['state'][i][k])
    steps(opt, m, 1)

@pytest.mark.parametrize('exc', [ZeroDivisionError, KeyboardInterrupt])
def test_failure_inside_torch_changes_nothing(exc):
    opt = make(model())
    opt.register_load_state_dict_pre_hook(throw(exc))
    sd = with_decay(model()).state_dict()
    before = snapshot(opt)
    with pytest.raises(exc): opt.load_state_dict(sd)
    assert snapshot(opt)==before

@pytest.mark.parametrize('how', [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
@pytest.mark.parametrize('split', [False,True])
def test_copies_of_the_wrapper(how, split):
    m1 = model()
    opt = (with_decay if split else make)(m1, lr=.01, cls=Adam)
    opt.hypers
    steps(opt, m1, 2)
    opt.freeze()
    m2,new = how((m1,opt))
    assert ids(new.param_lists.concat())==ids(m2.parameters()) and new.hypers[0].opt is new.opt
    steps(opt, m1, 2)
    steps(new, m2, 2)
    assert same(m1, m2)
    new.unfreeze()
    assert all(p.requires_grad for p in m2.parameters()) and not m1[0].weight.requires_grad
    new.set_hyper('lr', 3.)
    assert opt.hypers[0]['lr']==.01
    new.split_no_decay(); new.merge_no_decay()
    assert ids(new.param_lists.concat())==ids(m2.parameters())

def test_resume_equals_one_run():
    m1 = model()
    opt = with_decay(m1, 3, lr=slice(1e-3,1e-1), cls=AdamW)
    steps(opt, m1, 8)
    m2 = model()
    first = with_decay(m2, 3, lr=slice(1e-3,1e-1), cls=AdamW)
    steps(first, m2, 4)
    mfile,ofile = file(m2.state_dict()),file(first.state_dict())
    m3 = model()
    m3.load_state_dict(mfile)
    last = make(m3, n=3, cls=AdamW)
    last.load_state_dict(ofile)
    steps(last, m3, 4, start=4)
    assert same(m1, m3)

# the rest

def test_zero_grad():
    m = model()
    opt = make(m)
    grads(m, 0)
    opt.zero_grad()
    assert all(p.grad is None for p in m.parameters())
    grads(m, 0)
    opt.zero_grad(set_to_none=False)
    assert all(not p.grad.any() for p in m.parameters())
    calls = []
    class Mine(SGD):
        def zero_grad(self): calls.append('class')
    OptimWrapper(params(m), Mine).zero_grad()
    opt.opt.zero_grad = lambda: calls.append('instance')
    opt.zero_grad()
    assert calls==['class','instance']

def test_all_params_and_repr():
    m = model()
    opt = make(m, n=3)
    grads(m, 0)
    m[0].weight.grad = None
    assert len(opt.all_params())==8 and len(opt.all_params(slice(1,None)))==4 and len(opt.all_params(with_grad=True))==7
    p,ps,state,h = opt.all_params()[0]
    assert p is m[0].weight and ids(ps)==ids(params(m[:3])) and state=={} and h is opt.hypers[0] and not opt.state
    opt.freeze()
    assert repr(opt).splitlines()[:2]==['Adam', f'0: 4 parameters (frozen), {opt.hypers[0]!r}'] and '(frozen)' not in repr(opt).splitlines()[3]

def test_the_rest_is_torch():
    opt = make(model())
    assert opt.param_groups is opt.opt.param_groups and opt.state is opt.opt.state and opt.defaults is opt.opt.defaults
    assert not hasattr(opt, 'no_such') and not hasattr(opt, '_step_supports_amp_scaling')
    seen = []
    opt.register_step_post_hook(lambda *a: seen.append(1))
    opt.step()
    assert seen==[1]

class FastaiStyle:
    "The parts of a fastai optimizer that count: lists of parameters in, `set_hyper` out"
    def __init__(self, params, lr=None):
        self.param_lists = [list(o) for o in params] if isinstance(params[0], (list,L)) else [list(params)]
        self.hypers = [dict(lr=lr) for _ in self.param_lists]
    @property
    def param_groups(self): return [{'params':p, **h} for p,h in zip(self.param_lists, self.hypers)]
    def set_hyper(self, k, v):
        for h,o in zip(self.hypers, spread(v, len(self.hypers))): h[k] = o

@pytest.mark.parametrize('n', [1,2])
@pytest.mark.parametrize('f', [FastaiStyle, partial(FastaiStyle), lambda ps, lr=None: FastaiStyle(ps, lr)])
def test_optimizers_with_set_hyper(n, f):
    m = model()
    opt = create_optimizer(f, cuts[n](m), .1)
    assert type(opt) is FastaiStyle and len(opt.param_lists)==n and [h['lr'] for h in opt.hypers]==[.1]*n
    assert ids(p for ps in opt.param_lists for p in ps)==ids(m.parameters())
    assert create_optimizer(opt, cuts[n](m)) is opt
    assert [h['lr'] for h in create_optimizer(f, cuts[n](m), slice(1.)).hypers]==[.1,1.][-n:]
    with pytest.raises(TypeError, match='needs no wrapper'): OptimWrapper(cuts[n](m), f)

def test_an_optimizer_with_set_hyper_takes_the_weight_decay_of_a_fit():
    class Sgd(FastaiStyle):
        def __init__(self, params, lr=None):
            super().__init__(params, lr)
            for h in self.hypers: h['wd'] = .01
            self.used,self.state = [],{}
        def step(self): self.used.append([h['wd'] for h in self.hypers])
        def zero_grad(self): pass
        def state_dict(self): return dict(hypers=self.hypers)
        def load_state_dict(self, state): self.hypers = state['hypers']
    learn = learner(n=1, nv=0, opt_func=Sgd)
    with learn.no_bar(), learn.no_logging():
        learn.fit(1, wd=.3)
        learn.fit(1)
    assert learn.opt.used==[[.3],[.01]]

def test_create_optimizer_with_a_wrapper():
    m = model()
    no = norm_bias_params(m)
    for f in (partial(OptimWrapper, opt=SGD), lambda ps, **kw: OptimWrapper(ps, SGD, **kw), OptimWrapper(params(m), SGD)):
        opt = create_optimizer(f, params(m), .2, no_decay=no, train_always=no[:1])
        assert type(opt) is OptimWrapper and type(opt.opt) is SGD and opt.hypers[0]['lr']==.2
        assert ids(opt.no_decay)==ids(no) and ids(opt.train_always)==ids(no[:1])
        opt.split_no_decay()
        assert len(opt.param_groups)==2

def test_errors_of_the_builder():
    m = model()
    for bad in ('adam', None, 3, m):
        with pytest.raises((TypeError,ValueError)): create_optimizer(bad, params(m))
    with pytest.raises(TypeError, match="An optimizer is a class such as torch.optim.AdamW.*not 'adam'"): create_optimizer('adam', params(m))
    with pytest.raises(TypeError, match='returned a NoneType: .opt_func. must return'): create_optimizer(lambda ps, lr: None, params(m), .1)
    with pytest.raises(TypeError, match='a module'): create_optimizer(SGD, m)
    with pytest.raises(TypeError, match='a module'): create_optimizer(SGD, [m[0],m[3]])
    for none in ([], [[],[]], iter(())):
        with pytest.raises(ValueError, match='no parameters to train'): create_optimizer(SGD, none)
    with pytest.raises(ValueError, match="none of the model's parameters"): create_optimizer(SGD(model().parameters()), params(m))
    with pytest.raises(TypeError, match='exists already'): OptimWrapper(None, SGD(m.parameters()), momentum=.9)
    with pytest.raises(ValueError, match='2 values for 3'): create_optimizer(SGD, cuts[3](m), [.1,.2])
    sgd = SGD(m.parameters())
    assert create_optimizer(sgd, m.named_parameters()).opt is sgd and create_optimizer(sgd, None).opt is sgd
    for p in m.parameters(): p.requires_grad_(False)
    with pytest.raises(ValueError, match='no parameters to train'): create_optimizer(SGD, trainable_params(m))

def test_nothing_grows_and_nothing_is_held():
    "No cycle between the wrapper and its views: the parameters go when the last name does"
    import gc, weakref
    m = model()
    opt = with_decay(m)
    opt.hypers[0]['lr']
    ref = weakref.ref(opt)
    gc.disable()
    try:
        del opt
        assert ref() is None
    finally: gc.enable()

@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a CUDA device')
def test_capturable_on_cuda():
    "A captured step sees the learning rate change, in the group without decay too"
    m = model().cuda()
    opt = OptimWrapper(params(m), AdamW, lr=tensor(.1, device='cuda'), capturable=True, no_decay=norm_bias_params(m))
    opt.split_no_decay()
    opt.set_hyper('wd', .1)
    for p in m.parameters(): p.grad = torch.ones_like(p)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3): opt.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): opt.step()
    before = [p.detach().clone() for p in m.parameters()]
    opt.set_hyper('lr', 0.)
    graph.replay()
    for p,b in zip(m.parameters(), before): assert torch.equal(p, b)
    opt.set_hyper('lr', .1)
    graph.replay()
    for p,b in zip(m.parameters(), before): assert not torch.equal(p, b)

# the bare step: faster, and nothing that torch wraps around it is lost to those who use it

def _stepped(make, step, n=3):
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    opt = OptimWrapper(opt=make(m.parameters()))
    for _ in range(n):
        m(torch.randn(5, 3)).square().mean().backward()
        step(opt)
        opt.zero_grad()
    return list(m.parameters()),opt

_makers = [lambda p: SGD(p, lr=.1, momentum=.9), Adam, AdamW, RMSprop, torch.optim.Adadelta, torch.optim.NAdam, torch.optim.ASGD, torch.optim.Rprop,
           lambda p: Adam(p, foreach=True), lambda p: Adam(p, capturable=False, amsgrad=True)]

@pytest.mark.parametrize('make', _makers)
def test_bare_step_is_the_step(make):
    ours,opt = _stepped(make, OptimWrapper.step)
    assert unwrap_step(type(opt.opt).step) is not None, 'torch wraps steps in a new way: the fast path is not taken any more'
    torchs,_ = _stepped(make, lambda o: o.opt.step())
    assert all(torch.equal(a, b) for a,b in zip(ours, torchs)) and all(p.requires_grad and p.is_leaf for p in ours)

def _signs(wrap):
    "An optimizer that takes the signs of the gradients; its `step` claims to be PyTorch's"
    class Signs(SGD):
        @wrap
        def step(self, closure=None):
            for p in self.param_groups[0]['params']: p.grad.sign_()
            return super().step(closure)
    return Signs

@pytest.mark.parametrize('wrap', [functools.wraps(SGD.step), functools.wraps(torch.optim.Optimizer.step), torch.no_grad(),
                                  torch.optim.Optimizer.profile_hook_step, _use_grad_for_differentiable])
@pytest.mark.parametrize('scheduled', (False, True))
def test_a_step_of_the_users_is_called(wrap, scheduled):
    "Whatever its name, module and marks say"
    cls = _signs(wrap)
    def opt_of(params):
        opt = cls(params, lr=.1)
        if scheduled: torch.optim.lr_scheduler.StepLR(opt, 100)
        return opt
    ours,_ = _stepped(opt_of, OptimWrapper.step)
    plain,_ = _stepped(opt_of, lambda o: o.opt.step())
    unlike,_ = _stepped(lambda p: SGD(p, lr=.1), OptimWrapper.step)
    assert all(torch.equal(a, b) for a,b in zip(ours, plain)) and not torch.equal(ours[0], unlike[0])

@pytest.mark.parametrize('opt', (SGD, AdamW))
def test_a_patched_class_is_called(opt, monkeypatch):
    "As profilers do it, and mocks; also one object's `step`"
    from unittest import mock
    opt([torch.zeros(1)])   # PyTorch wraps `step` now
    calls,step = [],opt.step
    @functools.wraps(step)
    def timed(*args, **kwargs): calls.append(1); return step(*args, **kwargs)
    monkeypatch.setattr(opt, 'step', timed)
    _stepped(opt, OptimWrapper.step)
    assert len(calls)==3
    monkeypatch.setattr(opt, 'step', step)
    with mock.patch.object(opt, 'step', autospec=True, side_effect=step) as m: _stepped(opt, OptimWrapper.step)
    assert m.call_count==3
    def patched(params):
        res = opt(params)
        torch.optim.lr_scheduler.StepLR(res, 100)
        own = res.step
        @functools.wraps(own)
        def step(*args): calls.append(1); return own(*args)
        res.step = step
        return res
    calls.clear(); _stepped(patched, OptimWrapper.step)
    assert len(calls)==3

def test_step_calls_hooks_where_there_are_some():
    heard = []
    def hook(*args): heard.append('hook')
    _,opt = _stepped(Adam, OptimWrapper.step)
    for register in (opt.opt.register_step_pre_hook, opt.opt.register_step_post_hook,
                     register_optimizer_step_pre_hook, register_optimizer_step_post_hook):
        handle = register(hook)
        opt.step()
        handle.remove()
        opt.step()
    assert heard == ['hook']*4

@pytest.mark.parametrize('bare', (False, True))
def test_hooks_and_schedulers_notice_a_bare_step(bare):
    "The update without wrappers, followed by what the wrappers would have done"
    heard,m = [],model()
    opt = OptimWrapper(m.parameters(), partial(SGD, lr=.1))
    sched = torch.optim.lr_scheduler.StepLR(opt.opt, 1, .5)
    def hook(o, args, kwargs): heard.append((o, args, kwargs, torch.is_grad_enabled(), m[0].weight.detach().clone()))
    handles = [opt.register_step_post_hook(hook), opt.register_step_post_hook(lambda *a: handles[1].remove())]   # one removes itself
    for p in m.parameters(): p.grad = torch.ones_like(p)
    before = m[0].weight.detach().clone()
    if bare: opt.step()
    else:    opt.opt.step()
    with warnings.catch_warnings():
        warnings.simplefilter('error')   # torch warns when the scheduler steps and has not seen the optimizer do so
        sched.step()
    (o,args,kwargs,grad,after), = heard
    assert o is opt.opt and args==(opt.opt,) and kwargs=={} and grad and torch.equal(after, before-.1) and torch.equal(after, m[0].weight)
    assert opt.param_groups[0]['lr']==.05 and len(opt.opt._optimizer_step_post_hooks)==1

def test_step_is_seen_by_the_profiler():
    _,opt = _stepped(Adam, OptimWrapper.step)
    with torch.profiler.profile() as prof: opt.step()
    assert any('Optimizer.step#Adam' in e.key for e in prof.key_averages())

def test_step_of_an_instance_or_a_subclass_is_respected():
    heard = []
    class Mine(SGD):
        def step(self, closure=None): heard.append('mine'); return super().step(closure)
    class Quiet(SGD): pass
    _,opt = _stepped(lambda p: Mine(p, lr=.1), OptimWrapper.step)
    assert heard == ['mine']*3
    a,_ = _stepped(lambda p: Quiet(p, lr=.1), OptimWrapper.step)
    b,_ = _stepped(lambda p: SGD(p, lr=.1), lambda o: o.opt.step())
    assert all(map(torch.equal, a, b))
    sched = torch.optim.lr_scheduler.StepLR(opt.opt, 1)
    with warnings.catch_warnings():
        warnings.simplefilter('error')   # torch warns when the scheduler steps and has not seen the optimizer do so
        opt.step(); sched.step()

def test_step_of_a_differentiable_optimizer():
    p = nn.Parameter(torch.tensor([1.]))
    q = p.clone()
    opt = OptimWrapper(opt=SGD([q], lr=.1, differentiable=True))
    q.grad = torch.tensor([2.], requires_grad=True)
    opt.step()
    assert q.requires_grad and q.grad_fn is not None

def test_a_state_with_a_hole_changes_nothing():
    "Whatever PyTorch raises while it loads, the optimizer is as before, and steps"
    def trained():
        ps = [nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(2))]
        opt = OptimWrapper(opt=torch.optim.Adam(ps, lr=.1))
        for p in ps: p.grad = torch.ones_like(p)
        opt.step()
        return opt
    opt,sd = trained(),copy.deepcopy(trained().state_dict())
    groups,before = opt.param_groups,copy.deepcopy(opt.state_dict())
    sd['param_groups'][0]['lr'] = 9.
    for s in sd['state'].values(): del s['step']
    with pytest.raises(ValueError, match="The saved optimizer has no 'step', which Adam needs"): opt.load_state_dict(sd)
    assert opt.param_groups is groups and opt.state_dict()['param_groups']==before['param_groups']
    for i,s in before['state'].items(): assert all(torch.equal(v, opt.state_dict()['state'][i][k]) for k,v in s.items())
    opt.step()

def _saved(cls, frozen=(), **kw):
    ps = [nn.Parameter(torch.ones(2,2)) for _ in range(3)]
    opt = OptimWrapper(opt=cls(ps, lr=.1, **kw))
    for i,p in enumerate(ps): p.grad = None if i in frozen else torch.ones_like(p)
    opt.step()
    return opt

@pytest.mark.parametrize('lost', [[0], [0,1], [0,1,2]])
@pytest.mark.parametrize('cls', [Adam, partial(SGD, momentum=.9)])
def test_a_state_that_lacks_parameters(cls, lost):
    "A saved state without the entries of some or of all parameters was loaded in silence, and their averages began anew"
    sd = _saved(cls).state_dict()
    for i in lost: del sd['state'][i]
    with pytest.raises(ValueError, match=rf'has entries for {3-len(lost)} parameters, but had 3 when it was saved'): _saved(cls).load_state_dict(sd)
    del sd['n_states']   # a plain state of PyTorch's does not say how many there were
    with pytest.warns(UserWarning, match=f'no entries for {len(lost)} of 3 parameters'): _saved(cls).load_state_dict(sd)
    with pytest.warns(UserWarning, match=f'no entries for {len(lost)} of 3 parameters'): OptimWrapper(opt=cls(_saved(cls).param_lists[0], lr=.1)).load_state_dict(sd)
    opt = _saved(cls, frozen=[0])   # what was frozen has no entries, and that is right
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        _saved(cls).load_state_dict(file(opt.state_dict()))
        for p in opt.param_lists[0][:1]: p.requires_grad_(False)
        opt.load_state_dict(file(opt.opt.state_dict()))

def test_a_state_may_be_empty():
    "Plain SGD keeps nothing, and an `OptimWrapper` says that it has made no step"
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        _saved(SGD).load_state_dict(_saved(SGD).opt.state_dict())
        _saved(Adam).load_state_dict(OptimWrapper(opt=Adam([nn.Parameter(torch.ones(2,2)) for _ in range(3)])).state_dict())

@pytest.mark.parametrize('cls', [Adam, partial(SGD, momentum=.9)])
def test_a_state_under_other_numbers(cls):
    "PyTorch's own state, whose entries are of no parameter of the groups: they would be lost, which a warning says"
    sd = _saved(cls).opt.state_dict()
    sd['state'] = {i+10:s for i,s in sd['state'].items()}
    with pytest.warns(UserWarning, match='no entries for 3 of 3 parameters'): _saved(cls).load_state_dict(sd)

@pytest.mark.parametrize('cls', [Adam, partial(SGD, momentum=.9), torch.optim.Adagrad])
def test_entries_of_other_shapes_or_strides(cls):
    "PyTorch loads averages of any shape, and fails in the next step; other strides are no fault"
    opt,sd = _saved(cls),_saved(cls).state_dict()
    before = copy.deepcopy(opt.state_dict())
    key = next(k for k,v in sd['state'][1].items() if v.ndim)
    sd['state'][1][key] = torch.zeros(2,3)
    with pytest.raises(ValueError, match=f"'{key}' .*2, 3.* for parameter 1, which is .*2, 2.*: it belongs to another model"): opt.load_state_dict(sd)
    assert all(torch.equal(v, opt.state_dict()['state'][i][k]) for i,s in before['state'].items() for k,v in s.items())
    for ok in (torch.zeros(2,4)[:,::2], torch.zeros(2,2).t()):
        sd['state'][1][key] = ok
        opt.load_state_dict(sd)

@pytest.mark.parametrize('mom', [.9, 0.])
def test_a_momentum_that_comes_later(mom):
    "RMSprop without momentum, and then a schedule of it: PyTorch looked for buffers that it had not made (KeyError)"
    m1,m2 = model(),model()
    by_hand,opt = RMSprop(m1.parameters()),OptimWrapper(params(m2), RMSprop)
    for n in (0, 1, 2):
        steps(by_hand, m1, 2, 2*n); steps(opt, m2, 2, 2*n)
        v = mom if n!=1 else .5
        for p in m1.parameters(): by_hand.state[p].setdefault('momentum_buffer', torch.zeros_like(p))
        by_hand.param_groups[0]['momentum'] = v
        (opt.hypers[0].__setitem__ if n else opt.set_hyper)('mom', v)
    assert same(m1, m2)
    new = OptimWrapper(params(model()), RMSprop)
    new.load_state_dict(file(opt.state_dict()))

@pytest.mark.parametrize('cls', [torch.optim.SGD, torch.optim.Adam, torch.optim.Adagrad])
@pytest.mark.parametrize('wd', [False, True])
def test_param_lists_can_be_assigned(cls, wd):
    "`opt.param_lists = [...]`, as fastai's optimizers take it, said only that there is no setter: it is a new optimizer that keeps the state of what stays"
    a,b,c = (nn.Linear(3,2) for _ in range(3))
    opt = OptimWrapper([a.parameters(), b.parameters()], cls, slice(.1,.2), no_decay=[a.bias,b.bias,c.bias])
    if wd: opt.split_no_decay(); opt.set_hyper('wd', .1)
    def step(*ms, o):
        for m in ms: m(torch.ones(1,3)).sum().backward()
        o.step(); o.zero_grad()
    step(a, b, o=opt)
    kept = {k:v.clone() if isinstance(v, torch.Tensor) else v for k,v in opt.state.get(b.weight, {}).items()}
    opt.param_lists = [b.parameters(), c.parameters()]
    assert ids(opt.param_lists.concat())==[*map(id, (*b.parameters(), *c.parameters()))] and not {a.weight,a.bias} & set(opt.state)
    now = opt.state.get(b.weight, {})
    assert now.keys()==kept.keys() and all(torch.equal(torch.as_tensor(now[k]), torch.as_tensor(kept[k])) for k in kept if kept[k] is not None)
    assert [h['lr'] for h in opt.hypers]==[.1,.2]
    plain = cls([{'params':[p.detach().clone().requires_grad_() for p in c.parameters()], 'lr':.2}])
    for p,decay in zip(plain.param_groups[0]['params'], (.1*wd, 0)): p.grad = torch.ones_like(p) + decay*p.detach()
    plain.step()
    step(b, c, o=opt)
    for p,q in zip(c.parameters(), plain.param_groups[0]['params']): torch.testing.assert_close(p.detach(), q.detach())
    for bad in ([a.parameters()], [a.parameters(), a.parameters()], [a, b], [[], []]):
        with pytest.raises((ValueError, TypeError), match='for 2 parameter groups|more than once|not a module|no parameters'): opt.param_lists = bad
    with pytest.raises(TypeError, match='LBFGS keeps its own list'): OptimWrapper(a.parameters(), torch.optim.LBFGS).param_lists = [b.parameters()]

@pytest.mark.parametrize('how', ['argument', 'partial'])
def test_a_tensor_of_the_users_is_not_changed(how):
    "The first group had the user's tensor, so that `fit(1, lr=.5)` changed the Learner's rate, and that of others with the same `partial`"
    lr = tensor(.1)
    opt_func,kw = (Adam,dict(lr=lr)) if how=='argument' else (partial(Adam, lr=lr),{})
    one,other = (OptimWrapper(model().parameters(), opt_func, **kw) for _ in range(2))
    one.set_hyper('lr', .5)
    assert lr==other.hypers[0]['lr'] and lr.item()==pytest.approx(.1) and one.hypers[0]['lr']==.5
    built = OptimWrapper(opt=Adam(model().parameters(), lr=lr))
    built.set_hyper('lr', .5)
    assert lr==.5   # of an optimizer that the user has built it is the user's own

def rmsprop(m, mom, n=2):
    opt = OptimWrapper(m.parameters(), RMSprop, lr=.01, mom=mom)
    steps(opt, m, n)
    return opt

def test_a_state_without_momentum_in_an_rmsprop_with_it():
    "The next step raised KeyError: 'momentum_buffer'"
    old,m = model(),model()
    state = rmsprop(old, 0.).state_dict()
    m.load_state_dict(old.state_dict())
    opt = rmsprop(m, .9, 0)
    opt.load_state_dict(copy.deepcopy(state), keep_hypers=True)
    again = OptimWrapper(old.parameters(), RMSprop, lr=.01)
    again.load_state_dict(state)
    again.set_hyper('mom', .9)
    for o,net in ((opt, m), (again, old)): steps(o, net, 2, start=2)
    assert all(map(torch.equal, m.parameters(), old.parameters()))

def test_a_state_is_taken_over_after_a_scheduler():
    "The scheduler's `initial_lr` raised KeyError in the new optimizer, which has none"
    m = model()
    old = rmsprop(m, 0.)
    CosineAnnealingLR(old.opt, 9)
    new = OptimWrapper(cuts[2](m), RMSprop, lr=.01, mom=.9)
    new.take_state(old)
    assert [h['mom'] for h in new.hypers]==[0.,0.] and 'initial_lr' not in new.hypers[0]
    steps(new, m, 1)

def test_decoupled_decay_that_pytorch_has():
    from torch.optim import Adafactor, Muon
    p = [nn.Parameter(torch.ones(2, 2))]
    for cls in (AdamW, Adafactor, Muon):
        OptimWrapper(p, cls, decouple_wd=True)
        with pytest.raises(TypeError, match='shrinks the weights'): OptimWrapper(p, cls, decouple_wd=False)
    class Own(SGD): pass
    with pytest.raises(TypeError, match='Own has no option `decouple_wd`'): OptimWrapper(p, Own, decouple_wd=False)

def test_zero_grad_takes_its_argument_by_position():
    m = model()
    opt = OptimWrapper(m.parameters(), SGD)
    grads(m, 0)
    opt.zero_grad(False)
    assert all(p.grad is not None and not p.grad.any() for p in m.parameters())
