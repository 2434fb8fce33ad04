"""State of a loss, model or optimizer outside of parameters and buffers: arguments of a `partial`, containers, objects
in objects. A Learner that loads the hidden state of another one trains like it; state that no checkpoint saves is named."""
import warnings
from collections import Counter, defaultdict, deque, namedtuple
from functools import partial
from types import SimpleNamespace

import numpy as np, pytest, torch
from torch import nn
from torch.optim import SGD

from learnkit.optim.inventory import load_outside_model, state_outside_model
from learnkit.data.files import to_serializable
from learnkit.recovery.hidden_state import HiddenState
from toys import equal, learner

torch.set_num_threads(1)

def mse(pred, y): return (pred-y).pow(2).mean()

def counting(pred, y, seen): seen[0] += 1; return mse(pred, y)/seen[0]
def held_in_a_dict(pred, y, seen): seen['n'] = .9*seen['n']+y.mean(); return mse(pred, y)*(1+seen['n'])
def attribute():
    def loss(pred, y): loss.n = getattr(loss, 'n', 1)+1; return mse(pred, y)/loss.n
    return loss

class Step:
    def __init__(self): self.n = 1
    def __call__(self): self.n += 1; return self.n
class Method(Step):
    def of(self, pred, y): return mse(pred, y)/self()
class Within:
    def __init__(self): self.parts,self.net = [SimpleNamespace(step=Step())],nn.Linear(1, 1)
    def __call__(self, pred, y):
        with torch.no_grad(): self.net.bias += .1
        return mse(pred, self.net(y).detach())/self.parts[0].step()
class Drawing:
    def __init__(self): self.of = dict(torch=torch.Generator(), numpy=np.random.default_rng(0))
    def __call__(self, pred, y): return mse(pred, y)*(torch.rand((), generator=self.of['torch'])+self.of['numpy'].random())

losses = dict(
    list_of_partial = lambda: partial(counting, seen=[0]), dict_of_partial=lambda: partial(held_in_a_dict, seen=dict(n=torch.zeros(()))),
    tensor_of_partial = lambda: partial(counting, seen=torch.zeros(1)), within_partials=lambda: partial(partial(counting), seen=deque([0])),
    attribute=attribute, method=lambda: Method().of, within=Within, drawing=Drawing)

def nonlocal_number():
    n = 0
    def loss(pred, y):
        nonlocal n
        n += 1
        return mse(pred, y)/n
    return loss
def list_of_closure():
    seen = [0]
    return lambda pred, y: counting(pred, y, seen)
def module_of_closure():
    net = nn.Linear(1, 1)
    def loss(pred, y):
        with torch.no_grad(): net.bias += .1
        return mse(pred, net(y).detach())
    return loss
def object_of_closure():
    step = Step()
    return lambda pred, y: mse(pred, y)/step()
def default_argument():
    def loss(pred, y, seen=[0]): return counting(pred, y, seen)
    return loss
def keyword_default():
    def loss(pred, y, *, past={}): past['n'] = past.get('n', 0)+1; return mse(pred, y)*past['n']**.5
    return loss
def class_attribute():
    class Base: n,past = 0,[]
    class Loss(Base):
        def __call__(self, pred, y):
            Base.n += 1
            self.past.append(1.)
            return mse(pred, y)/Base.n*sum(self.past)**.5
    return Loss()
def function_within_an_object():
    class Holds:
        def __init__(self): self.f = nonlocal_number()
        def __call__(self, pred, y): return self.f(pred, y)
    return Holds()

NOT_SAVED = dict(
    nonlocal_number='`loss.<closure>.n` (int)', list_of_closure='`loss.<closure>.seen` (list)', module_of_closure='`loss.<closure>.net.bias` (Parameter)', object_of_closure='`loss.<closure>.step.n` (int)',
    default_argument='`loss.<defaults>.0` (list)', keyword_default='`loss.<keyword defaults>.past` (dict)', class_attribute='Base>.n` (int)', function_within_an_object='`loss.f.<closure>.n` (int)')

class Model(nn.Module):
    def __init__(self): super().__init__(); self.lin = nn.Linear(4, 1); self.begin()
    def forward(self, x):
        out = self.lin(x)
        return out+self.add(x, out.detach().mean()) if self.training else out
    def begin(self): pass
class Weights(Model):
    "Parameters in a list, which PyTorch does not register"
    kind = list
    def begin(self):
        ps = [nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1))]
        self.own,self.all = {list:ps, tuple:(*ps,), dict:dict(a=ps[0], b=ps[1])}[self.kind],[[*self.parameters()]]
    def params(self): return [*self.own.values()] if self.kind is dict else [*self.own]
    def add(self, x, m): a,b = self.params(); return a*m+b
    def more(self): return self.params()
class WeightsOfTuple(Weights): kind = tuple
class WeightsOfDict(Weights): kind = dict
class Layers(Model):
    "Modules in a list, which PyTorch does not register"
    def begin(self): self.own = [dict(net=nn.Linear(4, 1))]
    def add(self, x, m): return self.own[0]['net'](x)
    def more(self): return [*self.own[0]['net'].parameters()]
class Alias(Model):
    "Two names for one tensor, until the first step"
    def begin(self): self.h = self.c = torch.zeros(1)
    def add(self, x, m): self.h,self.c = .5*self.h+m,.9*self.c+1; return self.h-.1*self.c
class AliasedList(Model):
    def begin(self): self.past = [[0.]]*2; self.h = [torch.zeros(1)]*2
    def add(self, x, m): self.past = [p+[float(m)] for p in self.past[:1]]+[[1.]]; self.h = [self.h[0]+m,self.h[1]-m]; return self.h[0]-2*self.h[1]+sum(self.past[0])
class Expanded(Model):
    "A tensor of one number, expanded to four"
    def begin(self): self.h = torch.zeros(1).expand(4, 1)
    def add(self, x, m): self.h = .5*self.h+m; return self.h[:1]
class OtherKind(Model):
    def begin(self): self.h = torch.zeros(1, dtype=torch.int64)
    def add(self, x, m): self.h = .5*self.h+m; return self.h
class Mixed(Model):
    "A list of a number, an object and a dict"
    def begin(self): self.state = [0., Step(), dict(h=torch.zeros(1), f=torch.tanh)]
    def add(self, x, m): self.state[0] += .1; self.state[2]['h'] = self.state[2]['h']+m; return self.state[0]*self.state[1]()+self.state[2]['h']
class Counts(Model):
    def begin(self): self.n,self.of = Counter(),defaultdict(list)
    def add(self, x, m): self.n['a'] += 1; self.of['a'].append(float(m)); return sum(self.of['a'])/self.n['a']
Pair = namedtuple('Pair', 'h c')
class Named(Model):
    def begin(self): self.s = dict(of=[Pair(torch.zeros(1), 0)])
    def add(self, x, m): h,c = self.s['of'][0]; self.s['of'][0] = Pair(.5*h+m, c+1); return self.s['of'][0].h*self.s['of'][0].c
class Shared(Model):
    "One list with two names, during the whole run"
    def begin(self): self.a = [0.]; self.b = SimpleNamespace(of=self.a)
    def add(self, x, m): self.a[0] += float(m); return self.b.of[0]
def model_with_a_class_attribute():
    class Sums(Model):
        h = torch.zeros(1)
        def add(self, x, m): Sums.h = .5*Sums.h+m; return Sums.h
    return Sums()
def slower(of_class):
    "An optimizer that counts its steps, in an attribute of its own or of its class"
    class Slower(SGD):
        n = 0
        def step(self, closure=None):
            counter = Slower if of_class else self
            counter.n += 1
            for g in self.param_groups: g['lr'] = .01/counter.n
            return super().step(closure)
    return Slower
models = [Weights,WeightsOfTuple,WeightsOfDict,Layers,Alias,AliasedList,Expanded,OtherKind,Mixed,Counts,Named,Shared]

def trainer(model=lambda: nn.Linear(4, 1), loss=lambda: mse, opt=lambda: SGD):
    torch.manual_seed(0)
    model,opt = model(),opt()
    more = getattr(model, 'more', list)()
    return learner(n=3, model=model, loss_func=loss(), opt_func=lambda params, lr: opt([*params, *([dict(params=more)] if more else [])], lr), lr=.01)

def fitted(learn, n):
    with learn.no_logging(), learn.no_bar(), warnings.catch_warnings(): warnings.simplefilter('ignore'); learn.fit(n)
    return learn

def check(**kw):
    "Assert that a Learner that loads the weights and hidden state of another one has the same losses in the next epoch"
    whole,other = trainer(**kw),trainer(**kw)
    other.create_opt()
    kept,places = HiddenState(whole),HiddenState(other)
    fitted(whole, 2)
    state,beside = to_serializable(kept.state_dict(), 'kept', copy=True),{k:v.detach().clone() for k,v in state_outside_model(whole).items()}
    other.model.load_state_dict({k:v.clone() for k,v in whole.model.state_dict().items()})
    load_outside_model(other, beside)   # parameters that are only in the optimizer
    with warnings.catch_warnings(): warnings.simplefilter('error'); places.load_state_dict(state)
    ends = [[*fitted(learn, 1).recorder.losses] for learn in (whole,other)]
    assert (state or beside) and equal(*ends) and not equal(ends[0], [*fitted(trainer(**kw), 1).recorder.losses])
    assert not HiddenState(other).state_dict()

@pytest.mark.parametrize('kind', losses)
def test_hidden_state_of_the_loss(kind): check(loss=losses[kind])

@pytest.mark.parametrize('model', models)
def test_hidden_state_of_the_model(model): check(model=model)

def test_hidden_state_of_the_optimizer(): check(opt=lambda: slower(of_class=False))

def unsaved_warning(kept=(), **kw):
    "The warning about state of two epochs that is not saved; assert that it comes once, and that only `kept` is saved"
    learn = trainer(**kw)
    learn.create_opt()
    hidden = HiddenState(learn)
    fitted(learn, 2)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter('always')
        assert [*hidden.state_dict()]==[*hidden.state_dict()]==[*kept]
    assert len(warned)<=1
    return str(warned[0].message) if warned else ''

@pytest.mark.parametrize('kind', NOT_SAVED)
def test_state_in_closures_defaults_and_classes_is_named(kind):
    "A checkpoint does not save what changes there, and a warning names it, without looking into the code of functions"
    message = unsaved_warning(loss=globals()[kind])
    assert NOT_SAVED[kind] in message and '`saves`' in message

def test_state_in_a_class_of_the_model_or_the_optimizer_is_named():
    assert 'Sums>.h` (Tensor)' in unsaved_warning(model=model_with_a_class_attribute)
    assert 'Slower>.n` (int)' in unsaved_warning(opt=lambda: slower(of_class=True))

def test_unchanged_defaults_and_classes_do_not_warn():
    class Scale:
        factor,other = 2.,float('nan')
    scale = Scale()
    def loss(pred, y, weights=[1., 2.], *, by=dict(a=float('nan'))): return mse(pred, y)*weights[1]*scale.factor
    assert unsaved_warning(loss=lambda: loss)==''

def test_global_variables_are_not_reported():
    of = dict(mse=mse)
    exec('n = 0\ndef loss(pred, y):\n    global n\n    n += 1\n    return mse(pred, y)/n', of)
    assert unsaved_warning(loss=lambda: of['loss'])=='' and of['n']>2

def test_hidden_state_survives_a_kill(tmp_path):
    "A run that is killed twice and resumed from checkpoints ends like an uninterrupted one"
    from test_kept import final_weights
    for i,kw in enumerate((dict(loss=losses['method'], model=Mixed), dict(loss=losses['list_of_partial'], model=Alias))):
        assert equal(final_weights(tmp_path/f'{i}a', **kw), final_weights(tmp_path/f'{i}b', (2, 6), **kw))

class Array:
    def __init__(self): self.of = dict(h=np.zeros(2), words=set(), mean=np.float64(0), long=[0]*1000)
    def __call__(self, pred, y):
        h = self.of
        h['h'] = h['h']+1; h['words'].add(len(h['words'])); h['mean'] = h['mean']+.1; h['long'].append(0)
        return mse(pred, y)
def test_state_that_cannot_be_saved_is_named():
    learn = trainer(loss=Array)
    kept = HiddenState(learn)
    fitted(learn, 1)
    with pytest.warns(UserWarning) as warned: kept.state_dict(); kept.state_dict()
    assert len(warned)==1
    for name in ('`loss.of.h` (ndarray)', '`loss.of.words` (set)', '`loss.of.mean` (float64)', '`loss.of.long` (more than 1,000 entries)'): assert name in str(warned[0].message)

def test_state_that_is_saved_elsewhere_is_not_saved_again():
    "A loss that refers to the Learner, its data or the parameters of its model has no hidden state because of that"
    learn = trainer()
    data = learn.dls
    class Reads(Step):
        def __init__(self): super().__init__(); self.params,self.one = [*learn.model.parameters()],learn.model.weight
        def __call__(self, pred, y): return mse(pred, y)*(1+learn.pct_train)*len(data.train)+self.one.sum()*0
    learn.loss_func = Reads()
    kept = HiddenState(learn)
    fitted(learn, 2)
    assert kept.state_dict()=={} and not {id(learn), id(data)} & {id(o) for o in (h.o for h in kept.find_holders().values())}

def test_a_saved_state_without_a_place_warns(tmp_path):
    kept = HiddenState(trainer(model=Mixed, loss=losses['list_of_partial']))
    with pytest.warns(UserWarning, match=r'loss.args.1, loss.args.x, model.state.7, model.nobody.n, which this Learner does not have'):
        kept.load_state_dict({'loss.args.1':3, 'loss.args.x':[3], 'model.state.7':3, 'model.nobody.n':3})
    with pytest.raises(ValueError, match='is a Step'): kept.load_state_dict({'model.state.0':Step()})
