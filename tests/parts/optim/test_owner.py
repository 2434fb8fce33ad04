"Who owns what is trained: the optimizer, the model and the data, and what a user or a callback puts in their place"
import warnings
from functools import partial

import pytest, torch
from torch import nn
from torch.optim import SGD, Adam

from learnkit.all import Callback, CancelFit, CancelStep, DataLoaders
from learnkit.data.modules import params
from toys import Reg, at, batches, learner, throw

pytestmark = pytest.mark.filterwarnings('error')

def net(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(4,5), nn.Tanh(), nn.Linear(5,1))

def same(a, b): return all(torch.equal(x, y) for x,y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))

# what was put in place of a part stays

@pytest.mark.parametrize('ev', ['before_fit', 'before_epoch', 'before_train', 'after_train'])
def test_new_data_are_new_for_both_phases(ev):
    "A callback that replaced `learn.dls` got its new training data, but the old validation data"
    seen = []
    class Swap(Callback):
        def after_batch(self): seen.append((self.training, self.learn.xb[0].shape[0]))
    Swap_at = at(ev, lambda cb: setattr(cb.learn, 'dls', DataLoaders(batches(2, 7), batches(2, 7))))
    learner(n=2, nv=2, cbs=[Swap(), Swap_at]).fit(1)
    assert [n for training,n in seen if not training]==[7,7]
    assert [n for training,n in seen if training]==([4,4] if ev.endswith('_train') else [7,7])   # `before_train` is too late: its loader is chosen

def test_validation_data_that_a_callback_brings_or_takes_away():
    "Whether there is a validation phase is asked when it is time for it"
    def phases(learn, dls):
        heard = []
        learn.add_cb(at('before_fit', lambda cb: setattr(cb.learn, 'dls', dls)))
        learn.add_cb(at('before_validate', lambda cb: heard.append(1)))
        learn.fit(2)
        return len(heard)
    assert phases(learner(nv=0), DataLoaders(batches(2), batches(2)))==2
    assert phases(learner(nv=2), DataLoaders(batches(2)))==0

@pytest.mark.parametrize('exc', [KeyboardInterrupt, ValueError, CancelFit])
@pytest.mark.parametrize('part', ['model', 'opt', 'dls'])
def test_what_a_callback_replaced_stays(part, exc):
    "Ctrl-C after a callback had replaced the model or the optimizer put the old one back; the trained one was gone"
    learn = learner(model=net())
    other = net(1)
    new = dict(model=other, opt=None, dls=DataLoaders(batches(3), batches(2)))
    def replace(cb):
        if part=='opt': new['opt'] = cb.learn.create_opt()
        setattr(cb.learn, part, new[part])
        if part=='model': cb.learn.create_opt()
    learn.add_cbs([at('before_fit', replace), at('after_batch', throw(exc), when=lambda cb: cb.train_iter==2)])
    before = [p.clone() for p in other.parameters()]
    if exc is CancelFit: learn.fit(1)
    else:
        with pytest.raises(exc): learn.fit(1)
    assert getattr(learn, part) is new[part]
    if part=='model': assert not any(torch.equal(p, q) for p,q in zip(other.parameters(), before))

class Wrapper(nn.Module):
    def __init__(self, module): super().__init__(); self.module = module
    def forward(self, x): return self.module(x)

class Accelerated:
    "As accelerate wraps an optimizer"
    def __init__(self, opt): self.optimizer = opt
    def __getattr__(self, k): return getattr(self.__dict__['optimizer'], k)

def test_wrappers_are_removed_after_an_exception():
    "What only wraps the model or the optimizer is taken off in `after_fit`, which an exception leaves out"
    learn = learner(model=net())
    model,opt = learn.model,learn.create_opt()
    def wrap(cb):
        cb.learn.model = Wrapper(Wrapper(cb.learn.model))
        cb.learn.opt = Accelerated(cb.learn.opt)
    learn.add_cbs([at('before_fit', wrap), at('after_batch', throw(KeyboardInterrupt))])
    with pytest.raises(KeyboardInterrupt): learn.fit(1)
    assert learn.model is model and learn.opt is opt

def test_a_model_around_the_old_one_with_weights_of_its_own_stays():
    learn = learner(model=net())
    new = nn.Sequential(learn.model, nn.Linear(1,1))
    def grow(cb): cb.learn.model = new; cb.learn.create_opt()
    learn.add_cbs([at('before_fit', grow), at('after_batch', throw(KeyboardInterrupt))])
    with pytest.raises(KeyboardInterrupt): learn.fit(1)
    assert learn.model is new

# what is trained is what the optimizer has: against loops by hand, where each parameter has an optimizer of its own

class Lazy(nn.Module):
    "Makes its last layer when it is first called"
    def __init__(self): super().__init__(); self.body,self.head = nn.Linear(4,5),None
    def forward(self, x):
        if self.head is None:
            with torch.random.fork_rng(): torch.manual_seed(5); self.head = nn.Linear(5,1)
        return self.head(self.body(x).tanh())

class Each:
    "An optimizer for each parameter, made when it first has a gradient: what groups and times of making cannot change"
    def __init__(self, make): self.make,self.opts = make,{}
    def __call__(self, model, n=1, skip=()):
        for xb,yb in [b for _ in range(n) for b in batches(3)]:
            nn.functional.mse_loss(model(xb), yb).backward()
            for p in model.parameters():
                if p.grad is None or any(p is o for o in skip): p.grad = None; continue
                if p not in self.opts: self.opts[p] = self.make([p])
                self.opts[p].step()
                p.grad = None

sgd,adam,slow_adam = partial(SGD, lr=.05, momentum=.9),partial(Adam, lr=.05),partial(Adam, lr=.02)

def swap(learn):      learn.model = net(1)
def swap_layer(learn): learn.model[2] = net(1)[2]
def thaw(learn):      learn.model[0].requires_grad_(True)
def assign(learn):    learn.model.load_state_dict(net(1).state_dict(), assign=True)
def norm(learn):      nn.utils.parametrizations.weight_norm(learn.model[0])
def switch(learn):    learn.opt_func = slow_adam
def own_opt(learn):   learn.opt = adam(learn.model.parameters())
def lora(learn):
    class LoRA(nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base,self.a,self.b = base.requires_grad_(False),nn.Parameter(torch.ones(2,4)*.1),nn.Parameter(torch.zeros(5,2))
        def forward(self, x): return self.base(x) + x@self.a.T@self.b.T
    learn.model[0] = LoRA(learn.model[0])
def frozen_net():
    res = net()
    res[0].requires_grad_(False)
    return res

changes = dict(swap=(swap, net), swap_layer=(swap_layer, net), thaw=(thaw, frozen_net), assign=(assign, net), norm=(norm, net), lora=(lora, net),
               lazy=(lambda learn: None, Lazy), switch=(switch, net), own_opt=(own_opt, net), grow=(lambda learn: learn.model.append(nn.Tanh()).append(net(1)[2].__class__(1,1)), net))

@pytest.mark.parametrize('opt_func', [sgd, adam], ids=['sgd','adam'])
@pytest.mark.parametrize('what', changes)
def test_what_is_changed_between_fits_is_trained(what, opt_func):
    """A new model, a new layer, a thawed one, one made in `forward`, weights that `load_state_dict(assign=True)` put in, a `weight_norm` added
    later, another `opt_func`: the next fit trained the old weights, or a part of them, and said nothing"""
    change,make = changes[what]
    a,b = model_of(make),model_of(make)
    learn = learner(model=a, opt_func=opt_func, lr=None)
    each,holder = Each(opt_func),Holder(b)
    learn.fit(1); each(b)
    for o in (learn, holder): torch.manual_seed(3); change(o)
    if holder.opt_func: each = Each(holder.opt_func)
    learn.fit(2); each(holder.model, 2)
    assert same(learn.model, holder.model)
    if what not in ('own_opt',): assert {*held(learn)}=={id(p) for p in learn.model.parameters() if p.requires_grad} | ({*held(learn)} & {id(p) for p in learn.model.parameters()})

def model_of(make):
    with torch.random.fork_rng(): torch.manual_seed(0); return make()

class Holder:
    "Stands in for the Learner in the loop by hand"
    opt_func = None
    def __init__(self, model): self.model = model
    def __setattr__(self, k, v): super().__setattr__('opt_func' if k=='opt' else k, adam if k=='opt' else v)

def held(learn): return [id(p) for pg in learn.opt.param_groups for p in pg['params']]

forgets = dict(splitter=dict(splitter=lambda m: list(m[2].parameters())), function=dict(opt_func=lambda gs, lr: SGD([g for g in gs[0]['params'][:2]], lr=lr)),
               built=None)

@pytest.mark.parametrize('how', forgets)
def test_a_layer_that_is_forgotten_is_named(how):
    "A splitter, an `opt_func` or an optimizer that left a layer out trained the rest, and nobody was told"
    model = net()
    kw = forgets[how] or dict(opt_func=SGD(model[0].parameters(), lr=.1), lr=None)
    learn = learner(model=model, **kw)
    with pytest.raises(RuntimeError, match=r"^2 parameters of `[02]` got gradients, but are not in the optimizer, so they would never be trained. .*`splitter`.*requires_grad_\(False\)"): learn.fit(1)
    assert learn.train_iter<=1 and all(p.grad is None for p in model.parameters())
    for p in model.parameters(): p.requires_grad_(id(p) in held(learn))
    learn.fit(1)   # now it is meant so

def test_a_teacher_without_gradients_needs_no_optimizer():
    class Distilled(nn.Module):
        def __init__(self): super().__init__(); self.student,self.teacher = net(),net(1)
        def forward(self, x):
            with torch.no_grad(): t = self.teacher(x)
            return self.student(x) + 0*t
    learn = learner(model=model_of(Distilled), splitter=lambda m: list(m.student.parameters()))
    learn.fit(1)

class GAN(nn.Module):
    def __init__(self): super().__init__(); self.gen,self.critic = net(),nn.Linear(1,1)
    def forward(self, x): return self.critic(self.gen(x))

@pytest.mark.parametrize('where', ['attribute', 'list', 'dict', 'class', 'learner', 'function'])
def test_a_part_that_a_callback_trains_is_its_own(where):
    "Two optimizers, one of them a callback's: the model of a GAN. One that only a function knows is not found, and the error says where to keep it"
    model = model_of(GAN)
    opt = SGD(model.critic.parameters(), lr=.01)
    class Critic(Callback):
        def __init__(self): self.opts = dict(attribute=opt, list=[opt], dict=dict(a=opt)).get(where)
        def after_step(self): opt.step()
    if where=='class': Critic.own_opt = opt
    learn = learner(model=model, splitter=lambda m: list(m.gen.parameters()), cbs=Critic())
    if where=='learner': learn.critic_opt = opt
    if where!='function': return learn.fit(1)
    with pytest.raises(RuntimeError, match='If another optimizer trains them, store it in an attribute of a callback'): learn.fit(1)

def test_a_loss_with_parameters_of_its_own():
    "Parameters of a loss function that is a module are trained, with a splitter or without; a built optimizer may lack them"
    class Scaled(nn.Module):
        def __init__(self): super().__init__(); self.scale = nn.Parameter(torch.ones(()))
        def forward(self, pred, y): return (pred*self.scale-y).pow(2).mean()
    loss = Scaled()
    both = lambda m: [*m.parameters(), loss.scale]
    for splitter in (both, params, lambda m: [[m.weight], [m.bias]]):
        before,learn = loss.scale.item(),learner(loss_func=loss, splitter=splitter)
        learn.fit(1)
        assert loss.scale.item()!=before and [id(p) for p in learn.opt.param_lists[-1]].count(id(loss.scale))==1
    model = Reg()
    with pytest.raises(RuntimeError, match='^1 parameter of `loss_func` got'):
        learner(model=model, loss_func=loss, opt_func=SGD(model.parameters(), lr=.1), lr=None).fit(1)
    learn = learner()
    learn.fit(1)
    learn.loss_func = loss   # another one, after a fit
    learn.fit(1)
    assert any(p is loss.scale for p in learn.opt.param_lists[0])

def test_thawing_in_the_middle_of_a_fit():
    "A callback that thaws the backbone at the second epoch"
    learn,other = learner(model=frozen_net(), opt_func=sgd, lr=None),frozen_net()
    learn.add_cb(at('before_epoch', lambda cb: cb.learn.model.requires_grad_(True), when=lambda cb: cb.epoch==1))
    learn.fit(3)
    each = Each(sgd)
    each(other); other.requires_grad_(True); each(other, 2)
    assert same(learn.model, other)

def test_schedules_see_what_is_adopted():
    "The optimizer stays the same object in a fit, so what a schedule sets reaches new parameters"
    learn = learner(model=frozen_net(), opt_func=sgd, lr=None)
    learn.add_cb(at('before_epoch', lambda cb: cb.learn.model.requires_grad_(True), when=lambda cb: cb.epoch==1))
    learn.fit_one_cycle(3)
    assert len(learn.opt.param_groups)==1 and len(learn.recorder.hps['lr'])==9 and len(set(learn.recorder.hps['lr']))>5

def test_groups_frozen_groups_and_weight_decay_survive_a_new_layer():
    "A new head in a model with a splitter, a frozen body and weight decay that spares the biases"
    def body_and_head(m): return [list(m[0].parameters()), list(m[2].parameters())]
    learn = learner(model=net(), splitter=body_and_head, wd=.1)
    learn.fit(1); learn.freeze()
    learn.model[2] = net(1)[2]
    body = learn.model[0].weight.clone()
    learn.fit(1)
    assert learn.opt.frozen_idx==1 and torch.equal(body, learn.model[0].weight) and [h['wd'] for h in learn.opt.hypers]==[.1,.1]
    assert [[*map(id, ps)] for ps in learn.opt.param_lists]==[[*map(id, ps)] for ps in body_and_head(learn.model)]
    assert [len(pg['params']) for pg in learn.opt.param_groups]==[1,1,1,1] and not same(learn.model[2], net(1)[2])
    learn.unfreeze(); learn.fit(1)
    assert not torch.equal(body, learn.model[0].weight)

# learning rates and weight decay: what was said for a group, an optimizer or a fit

def head_own(m): return [dict(params=m[0].parameters()), dict(params=m[2].parameters(), lr=.5)]
def lrs(learn): return [h['lr'] for h in learn.opt.hypers]

given = {
    'splitter': (dict(splitter=head_own, lr=.01), [.01,.5], [.01,.5]),
    'splitter alone': (dict(splitter=head_own, lr=None), [1e-3,.5], [1e-3,.5]),
    'function of groups': (dict(opt_func=lambda gs, lr: SGD([dict(gs[0], lr=.3), *gs[1:]], lr=lr), splitter=lambda m: [list(m[0].parameters()), list(m[2].parameters())], lr=.01), [.3,.01], [.3,.01]),
    'function without lr': (dict(opt_func=lambda ps: SGD(ps, lr=.1), lr=None), [.1], .1),
    'function with a default': (dict(opt_func=lambda ps, lr=.2: SGD(ps, lr=lr), lr=None), [.2], .2),
    'function given another': (dict(opt_func=lambda ps, lr=.2: SGD(ps, lr=lr), lr=.3), [.3], .3),
    'partial': (dict(opt_func=partial(SGD, lr=.1), lr=None), [.1], .1),
    'partial and the same': (dict(opt_func=partial(SGD, lr=.1), lr=.1), [.1], .1),
    'slice': (dict(splitter=head_own, lr=slice(.1,.2)), [.1,.2], slice(.1,.2)),
    'nothing': (dict(opt_func=SGD, lr=None), [1e-3], 1e-3)}

@pytest.mark.parametrize('how', given)
def test_own_learning_rates_stay(how):
    "Learning rates of groups, from the splitter or a function, were overwritten by the Learner's, or by 1e-3"
    kw,expected,shown = given[how]
    learn = learner(model=net(), **kw)
    for fit in (lambda: learn.fit(1), lambda: learn.fit(1, lr=.7), lambda: learn.fit(1), lambda: learn.fit(1, reset_opt=True), lambda: learn.fit_one_cycle(1), lambda: learn.fit(1)):
        fit()
        if lrs(learn)!=[.7]*len(expected): assert lrs(learn)==pytest.approx(expected) and learn.lr==shown
    learn.fit_one_cycle(1)
    assert max(v[-1] for v in learn.recorder.group_hps['lr'])==pytest.approx(expected[-1], rel=.3)
    learn.lr = .9   # said later than all that
    learn.fit(1)
    assert lrs(learn)==[.9]*len(expected)

def test_two_learning_rates_raise():
    "`opt_func=partial(SGD, lr=.1), lr=.01` trained with .1; a function without `lr` was told that it lacks one by Python"
    with pytest.raises(ValueError, match=r'^there are two learning rates, lr=0.01 and the lr=0.1 of `opt_func`: pass only one of them$'): learner(opt_func=partial(SGD, lr=.1), lr=.01)
    learn = learner(opt_func=lambda ps: SGD(ps, lr=.1), lr=.01)
    with pytest.raises(TypeError, match=r'^`opt_func` takes no `lr`, so the learning rate 0.01 would be ignored: write'): learn.fit(1)

def test_an_optimizer_of_the_user_keeps_its_learning_rate():
    learn = learner(model=net(), lr=.05)
    learn.fit(1)
    learn.opt = SGD(learn.model.parameters(), lr=.3)   # a torch optimizer, as it is
    learn.fit(1)
    assert lrs(learn)==[.3] and learn.lr==.3
    learn.fit(1, reset_opt=True)
    assert lrs(learn)==[.05]

@pytest.mark.parametrize('opt_func', [SGD, Adam, torch.optim.AdamW, partial(SGD, weight_decay=.2)])
def test_weight_decay_of_a_fit_ends_with_it(opt_func):
    "`fit(1, wd=.1)` and then `fit(1)`: the second still decayed"
    a,b = net(),net()
    learn = learner(model=a, opt_func=opt_func, lr=None)
    learn.fit(1); learn.fit(1, wd=.1); learn.fit(1)
    opt = opt_func([dict(params=[a,b]) for a,b in ((list(b[::2][i].parameters())) for i in (0,1))], lr=1e-3)
    def loop():
        for xb,yb in batches(3):
            nn.functional.mse_loss(b(xb), yb).backward(); opt.step(); opt.zero_grad()
    loop()
    groups,old = opt.param_groups,opt.param_groups[0]['weight_decay']
    opt.param_groups = [{**g, 'params':ps, 'weight_decay':wd} for g in groups for ps,wd in (([g['params'][0]],.1), ([g['params'][1]],0))]
    loop()
    opt.param_groups = groups
    loop()
    assert same(a, b) and learn.opt.hypers[0]['wd']==old

def test_weight_decay_that_was_set_since_stays():
    learn = learner(model=net())
    learn.fit(1, wd=.1)
    learn.opt.set_hyper('wd', .3)
    learn.fit(1)
    assert learn.opt.hypers[0]['wd']==.3

# the names of hyperparameters

def numbers(opt_func, **kw):
    learn = learner(model=net(), opt_func=opt_func, lr=None, **kw)
    learn.create_opt()
    return [{k:v for k,v in pg.items() if k!='params'} for pg in learn.opt.param_groups]

@pytest.mark.parametrize('fastai,torchs', [
    (partial(SGD, mom=.9), partial(SGD, momentum=.9)), (partial(SGD, mom=.9, lr=.2), partial(SGD, momentum=.9, lr=.2)),
    (partial(Adam, mom=.8), partial(Adam, betas=(.8,.999))), (partial(Adam, mom=.8, sqr_mom=.99, eps=1e-5), partial(Adam, betas=(.8,.99), eps=1e-5)),
    (partial(Adam, sqr_mom=.99, betas=(.8,.9)), partial(Adam, betas=(.8,.99))), (partial(partial(SGD, mom=.9), nesterov=True), partial(SGD, momentum=.9, nesterov=True)),
    (partial(torch.optim.RMSprop, mom=.9, sqr_mom=.95), partial(torch.optim.RMSprop, momentum=.9, alpha=.95))])
def test_names_of_the_field(fastai, torchs):
    "`partial(SGD, mom=.9)` and its like were refused, though `learn.opt.hypers` speaks these names"
    from learnkit.all import OptimWrapper
    assert numbers(fastai)==numbers(torchs)==numbers(partial(OptimWrapper, opt=fastai.func, **fastai.keywords))==numbers(partial(OptimWrapper, opt=torchs))

@pytest.mark.parametrize('cls', [SGD, Adam, torch.optim.AdamW])
def test_wd_in_opt_func_is_that_of_the_learner(cls):
    "`wd`, fastai's name, spares norms and biases as it does there and in `Learner(wd=)`; `weight_decay` is PyTorch's, for all parameters"
    a,b,c = [learner(model=net(), **kw) for kw in (dict(opt_func=partial(cls, wd=.3)), dict(opt_func=cls, wd=.3), dict(opt_func=partial(cls, weight_decay=.3)))]
    for l in (a,b,c): l.fit(2)
    assert same(a.model, b.model) and not same(a.model, c.model)

def test_names_that_an_optimizer_does_not_have():
    for opt_func,words in ((partial(SGD, sqr_mom=.9), 'sqr_mom'), (partial(SGD, mom=.9, momentum=.8), '`mom` and `momentum` are the same')):
        with pytest.raises(TypeError, match=words): learner(opt_func=opt_func).fit(1)

# optimizers that evaluate the model themselves

def test_lbfgs_raises_or_a_callback_takes_its_step():
    "LBFGS ended the first step with 'missing 1 required positional argument: closure'"
    learn = learner(model=net(), opt_func=torch.optim.LBFGS, lr=.5)
    with pytest.raises(TypeError, match='^LBFGS needs a closure, as it evaluates the model several times in a step'): learn.fit(1)
    class Closure(Callback):
        def before_step(self):
            learn = self.learn
            def closure():
                learn.opt.zero_grad()
                loss = learn.loss_func(learn.model(*learn.xb), *learn.yb)
                loss.backward()
                return loss
            learn.opt.step(closure)
            raise CancelStep
    learn.fit(2, cbs=Closure())
    other = net()
    opt = torch.optim.LBFGS(other.parameters(), lr=.5)
    for xb,yb in batches(3)*2:
        def closure():
            opt.zero_grad()
            loss = nn.functional.mse_loss(other(xb), yb)
            loss.backward()
            return loss
        opt.step(closure)
    assert same(learn.model, other)
    learn.model = net(1)   # it keeps a list of its own: another optimizer is made
    learn.fit(1, cbs=Closure())
    assert not same(learn.model, net(1))

def test_fit_and_then_one_cycle_with_rmsprop():
    "The second fit ended with KeyError: 'momentum_buffer'"
    learn = learner(model=net(), opt_func=torch.optim.RMSprop, lr=None)
    learn.fit(1); learn.fit_one_cycle(1); learn.fit(1)

class SAM(torch.optim.Optimizer):
    "Sharpness-aware minimization as it is published: a step uphill, the gradients there, and from the old weights a step of the optimizer inside with them"
    def __init__(self, params, base=SGD, rho=.05, **kw):
        super().__init__(params, dict(rho=rho, **kw))
        self.base = base(self.param_groups, **kw)
        self.param_groups = self.base.param_groups
    @torch.no_grad()
    def first_step(self):
        norm = torch.stack([p.grad.norm() for pg in self.param_groups for p in pg['params'] if p.grad is not None]).norm()
        for pg in self.param_groups:
            for p in [p for p in pg['params'] if p.grad is not None]:
                self.state[p]['old'] = p.detach().clone()
                p.add_(p.grad * (pg['rho']/(norm+1e-12)))
        self.zero_grad()
    @torch.no_grad()
    def second_step(self):
        for pg in self.param_groups:
            for p in [p for p in pg['params'] if p.grad is not None]: p.copy_(self.state[p]['old'])
        self.base.step()

class UphillFirst(Callback):
    "Both steps of `SAM`, with the gradients of the second pass between them"
    def before_step(self):
        learn = self.learn
        learn.opt.first_step()
        learn.loss_func(learn.model(*learn.xb), *learn.yb).backward()
        learn.opt.second_step()
        raise CancelStep

@pytest.mark.parametrize('one_cycle', [False, True])
def test_sam_in_two_steps_is_the_loop_by_hand(one_cycle):
    "An optimizer that wants the gradients at another place than the loop has them: it was said that `before_step` can do it, and never tried with two passes"
    make,rates = partial(SAM, momentum=.9, lr=.1),[]
    learn = learner(model=net(), opt_func=make, lr=None)
    cbs = [UphillFirst(), Callback(before_step=lambda self: rates.append([dict(h) for h in self.learn.opt.hypers]))]
    cbs[1].order = -1
    if one_cycle: learn.fit_one_cycle(2, .2, cbs=cbs)
    else:         learn.fit(2, cbs=cbs)
    other = net()
    opt = make(other.parameters())
    for (xb,yb),now in zip(batches(3)*2, rates, strict=True):
        opt.param_groups[0].update(lr=now[0]['lr'], momentum=now[0]['mom'])
        nn.functional.mse_loss(other(xb), yb).backward()
        opt.first_step()
        nn.functional.mse_loss(other(xb), yb).backward()
        opt.second_step()
        opt.zero_grad()
    assert same(learn.model, other) and not same(other, net())
    assert not one_cycle or len({h[0]['lr'] for h in rates})==6

ways = dict(plain=SGD, momentum=partial(SGD, momentum=.9), rmsprop=torch.optim.RMSprop, adagrad=torch.optim.Adagrad, adam=torch.optim.Adam)

@pytest.mark.parametrize('dtype', [torch.float64, torch.bfloat16])
@pytest.mark.parametrize('way', ways)
def test_a_model_of_another_precision_continues_as_in_pytorch(way, dtype):
    "After `model.double()` the optimizer's averages are of the old precision: PyTorch goes on with them, or refuses them, and so does a fit; `reset_opt=True` begins anew"
    first,second = batches(3),[(x.to(dtype),y.to(dtype)) for x,y in batches(3)]
    learn,other = learner(model=net(), opt_func=ways[way]),net()
    opt = ways[way](other.parameters(), lr=learn.lr)
    def train(data):
        for xb,yb in data:
            nn.functional.mse_loss(other(xb), yb).backward()
            opt.step()
            opt.zero_grad()
    learn.fit(1); train(first)
    learn.model.to(dtype); other.to(dtype)
    learn.dls = DataLoaders(second, second)
    if way=='adam':
        for go in (lambda: train(second), lambda: learn.fit(1)):
            with pytest.raises(RuntimeError, match='expected dtype'): go()
        learn.fit(1, reset_opt=True)
        assert {v.dtype for s in learn.opt.state.values() for k,v in s.items() if k!='step'}=={dtype}
    else:
        learn.fit(1); train(second)
        assert same(learn.model, other)
