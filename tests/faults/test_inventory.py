"""Models and losses with parameters and buffers in every place, combined with all that saves, averages, restores or
exchanges them, compared with plain PyTorch"""
import copy, itertools
from datetime import timedelta
from functools import partial
import pytest, torch
from torch import distributed as dist, nn
from torch.nn import functional as F
from learnkit.callbacks.averages import EMACallback
from learnkit.callbacks.trackers import SaveModelCallback
from learnkit.learner.combined import CombinedLoader, EachLoader
from learnkit.learner.learner import Learner
from learnkit.loop.callback import Callback
from learnkit.optim.inventory import named_buffers, named_params
from learnkit.optim.steps import InTurn
from learnkit.processes.diloco import DiLoCo
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.recovery.export import load_learner
from learnkit.recovery.nan import RollBackOnNaN, SkipNaN
import learnkit.speed.compiled  # `learn.compile`
from learnkit.speed.memory import ChannelsLast
from learnkit.speed.virtual import VirtualShards
from toys import few

pytestmark = few(3, 3)   # of the cases of each test; all with LEARNKIT_SWEEP=1

# models with parameters and buffers in every place

class Centre(nn.Module):
    "Subtracts a running mean, a buffer that is reassigned in each forward pass"
    def __init__(self): super().__init__(); self.register_buffer('m', torch.zeros(4))
    def forward(self, x):
        if self.training: self.m = .9*self.m + .1*x.detach().mean(0)
        return x-self.m

class Running(nn.Module):
    "A norm whose running statistics are reassigned, not written in place"
    def __init__(self): super().__init__(); self.register_buffer('running_mean', torch.zeros(4))
    def forward(self, x):
        if self.training: self.running_mean = .9*self.running_mean + .1*x.detach().mean(0)
        return x-self.running_mean

class Constants(nn.Module):
    "A mask with -inf, an expanded buffer, and a counter of type float"
    def __init__(self):
        super().__init__()
        self.register_buffer('mask', nn.Transformer.generate_square_subsequent_mask(4))
        self.register_buffer('ones', torch.ones(1).expand(4), persistent=False)
        self.register_buffer('calls', torch.zeros(()))
        self.score = nn.Linear(4, 4)
    def forward(self, x):
        if self.training: self.calls += 1
        return ((self.score(x)[:,None]+self.mask).softmax(-1)*x[:,None]).sum(-1)*self.ones

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a,self.b = nn.Linear(4, 4, bias=False),nn.Linear(4, 4)
        self.b.weight = self.a.weight
    def forward(self, x): return self.b(torch.tanh(self.a(x)))

class Listed(nn.Module):
    "Parameters in lists and dicts, one of them frozen"
    def __init__(self):
        super().__init__()
        self.ws = nn.ParameterList([torch.eye(4), .5*torch.eye(4)])
        self.more = nn.ParameterDict({'scale':torch.ones(4)})
        self.ws[1].requires_grad_(False)
    def forward(self, x): return (x@self.ws[0])@self.ws[1]*self.more['scale']

class Int8(nn.Module):
    "A frozen int8 weight with its scales, a quantised tensor of PyTorch, and a trained adapter"
    def __init__(self):
        super().__init__()
        w = torch.randn(4, 4)
        self.weight = nn.Parameter((w*40).round().to(torch.int8), requires_grad=False)
        self.register_buffer('scale', torch.full((4, 1), 1/40))
        self.register_buffer('table', torch.quantize_per_tensor(torch.randn(4), .1, 0, torch.qint8))
        self.down,self.up = nn.Linear(4, 2, bias=False),nn.Linear(2, 4)
    def forward(self, x): return x@(self.weight*self.scale).T + self.table.dequantize() + self.up(self.down(x))

def on_meta():
    "A model built on `meta` and materialised by `to_empty` and `load_state_dict`"
    source = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), Tied())
    with torch.device('meta'): model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), Tied())
    model.to_empty(device='cpu')
    model.load_state_dict(source.state_dict())
    return model

def assigned_to_meta():
    "A model built on `meta` whose tensors are those of the loaded state_dict"
    source = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    with torch.device('meta'): model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    model.load_state_dict(source.state_dict(), assign=True)
    return model

MODELS = {'norm':lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), 'assigned':Centre, 'running':Running, 'constants':Constants, 'tied':Tied,
          'listed':Listed, 'lazy':lambda: nn.LazyLinear(4), 'int8':Int8, 'meta':on_meta, 'meta assigned':assigned_to_meta}
def made(name): return nn.Sequential(MODELS[name](), nn.Tanh(), nn.Linear(4, 1))

# losses with parameters and buffers of their own

class Noise(nn.Module):
    "A learned noise level and a batch norm, so that training and evaluation mode differ"
    def __init__(self):
        super().__init__()
        self.s,self.norm = nn.Parameter(torch.zeros(())),nn.BatchNorm1d(1)
        self.register_buffer('mean', torch.zeros(()))
    def forward(self, pred, y):
        if self.training: self.mean = .9*self.mean + .1*y.mean()
        return (self.norm(pred-y)**2).mean()*torch.exp(-self.s) + self.s + (pred-y).pow(2).mean() + self.mean.abs()
    def loss(self, pred, y): return self(pred, y)

class Holds:
    "Not a module, but refers to one"
    def __init__(self, noise): self.parts = {'noise':noise}
    def __call__(self, pred, y): return self.parts['noise'](pred, y)

class Refers(Noise):
    "A loss that refers to the model"
    def __init__(self, model): super().__init__(); self.model = model
    def forward(self, pred, y): return super().forward(pred, y) + 1e-3*next(self.model.parameters()).pow(2).sum()

def takes(f, pred, y): return f(pred, y)

class Task:
    "An object whose method is the loss"
    def __init__(self, noise): self.noise = noise
    def loss(self, pred, y): return self.noise(pred, y)

def closure(noise):
    def loss(pred, y): return noise(pred, y)
    return loss

def by_default(noise):
    def loss(pred, y, noise=noise): return noise(pred, y)
    return loss

def of_script(noise):
    "A loss that uses a global variable of the script, through another function, as in a notebook"
    script = dict(noise=noise, __name__='__main__')
    exec('def inner(pred, y): return noise(pred, y)\ndef loss(pred, y): return inner(pred, y)', script)
    return script['loss']

LOSSES = {'none':lambda m: (nn.MSELoss(), None), 'module':lambda m: _both(Noise()), 'method':lambda m: (lambda n: (n.loss, n))(Noise()),
          'partial':lambda m: (lambda n: (partial(n), n))(Noise()), 'held':lambda m: (lambda n: (Holds(n), n))(Noise()),
          'argument':lambda m: (lambda n: (partial(takes, n), n))(Noise()), 'refers':lambda m: _both(Refers(m)),
          'around':lambda m: _in(closure), 'default':lambda m: _in(by_default), 'script':lambda m: _in(of_script),
          'task':lambda m: _in(lambda noise: Task(noise).loss)}
def _both(noise): return noise,noise
def _in(function):
    noise = Noise()
    return function(noise),noise
NEED_SPLITTER = {'held','argument','around','default','script','task'}   # a module in a function may be a teacher, so the splitter must return it

def data(seed, n=6, bs=4):
    g = torch.Generator().manual_seed(seed)
    xs = [torch.randn(bs, 4, generator=g)+1 for _ in range(n)]
    return [(x, x.sum(1, keepdim=True)+torch.randn(bs, 1, generator=g)) for x in xs]
TRAIN,VALID = data(0),data(1, 2)

def parts(model, loss, seed=0):
    torch.manual_seed(seed)
    m = made(model)
    return m,*LOSSES[loss](m)
def trainable(m, own): return [p for p in nn.ModuleList([m, own] if own else [m]).parameters() if p.requires_grad]
SGD = partial(torch.optim.SGD, lr=.02, momentum=.9)

def learner(model, loss, *cbs, seed=0, path='.', train=TRAIN, **kw):
    m,f,own = parts(model, loss, seed)
    if loss in NEED_SPLITTER: kw['splitter'] = lambda m: trainable(m, own)
    learn = Learner((train, VALID), m, f, opt_func=SGD, path=path, cbs=list(cbs), **kw)
    return learn,own
def fit(learn, n=2, **kw):
    with learn.no_bar(), learn.no_logging(): learn.fit(n, **kw)

def tensors(m, own):
    "Copies of all state of the model and of its loss, by name"
    beside = {} if own is None else {f'loss.{k}':v for k,v in own.state_dict().items()}
    return {k:v.detach().clone() for k,v in {**m.state_dict(), **beside}.items()}
def numbers(t): return t.dequantize() if t.is_quantized else t
def differences(a, b): return [k for k in a.keys()|b.keys() if k not in a or k not in b or not torch.equal(a[k], b[k])]

def plain_loop(model, loss, n=2, after_step=lambda m, own: None):
    "The model, the loss and the validation losses of a plain PyTorch loop"
    m,f,own = parts(model, loss)
    if model=='lazy': m(TRAIN[0][0])
    opt,losses = SGD(trainable(m, own)),[]
    both = [m] if own is None else [m, own]
    for _ in range(n):
        for o in both: o.train()
        for x,y in TRAIN:
            f(m(x), y).backward(); opt.step(); opt.zero_grad()
            after_step(m, own)
        for o in both: o.eval()
        with torch.no_grad(): losses.append(sum(f(m(x), y) for x,y in VALID).item()/2)
    return m,own,losses

ONE_LOSS = {'int8':'none', 'meta':'module', 'meta assigned':'none'}   # only one loss for these models
CASES = [(model, loss) for model,loss in itertools.product(MODELS, ['none','module']) if ONE_LOSS.get(model, loss)==loss]
every_case = pytest.mark.parametrize('model,loss', [*CASES, *(('norm',l) for l in LOSSES),
                                                    ('assigned','refers'), ('tied','held')])

@every_case
def test_it_trains_like_a_plain_pytorch_loop(model, loss):
    learn,own = learner(model, loss)
    fit(learn)
    m,plain,losses = plain_loop(model, loss)
    assert not differences(tensors(learn.model, own), tensors(m, plain))
    assert [r['valid_loss'] for r in learn.recorder.history]==pytest.approx(losses, rel=1e-6)

@every_case
def test_a_validation_changes_nothing(model, loss):
    learn,own = learner(model, loss)
    fit(learn)
    before = tensors(learn.model, own)
    assert learn.validate()==learn.validate() and not differences(tensors(learn.model, own), before)
    assert own is None or own.training

@every_case
@pytest.mark.parametrize('file,with_opt', [('a',True), ('a',False), ('a.safetensors',False)])
def test_saved_and_loaded(model, loss, file, with_opt, tmp_path):
    learn,own = learner(model, loss, path=tmp_path)
    fit(learn)
    if model=='int8' and file.endswith('safetensors'):   # safetensors has no quantised tensors
        with pytest.raises(TypeError, match='save as .pth'): learn.save(file, with_opt=with_opt)
        return
    learn.save(file, with_opt=with_opt)
    again,other = learner(model, loss, path=tmp_path, seed=1)
    if model=='lazy': again.model(TRAIN[0][0])
    again.load(file, with_opt=with_opt)
    assert not differences(tensors(learn.model, own), tensors(again.model, other))
    assert again.validate()==learn.validate()
    if not with_opt: return
    fit(learn, 1); fit(again, 1)   # with the loaded momentum
    assert not differences(tensors(learn.model, own), tensors(again.model, other))

@every_case
@pytest.mark.parametrize('fname', ['best', None])
def test_the_best_model_is_the_best(model, loss, fname, tmp_path):
    learn,own = learner(model, loss, SaveModelCallback(fname=fname), path=tmp_path)
    fit(learn, 6, lr=.1)
    assert learn.validate()[0]==pytest.approx(min(r['valid_loss'] for r in learn.recorder.history), rel=1e-6)

class PowerCut(Callback):
    observes = True
    def __init__(self, at): self.at = at
    def before_step(self):
        if self.learn.train_iter==self.at: raise KeyboardInterrupt

@every_case
@pytest.mark.parametrize('at', [3, 8])
def test_killed_and_resumed(model, loss, at, tmp_path):
    whole,own = learner(model, loss, CheckpointCallback('1ba'), path=tmp_path/'whole')
    fit(whole, 2)
    killed,_ = learner(model, loss, CheckpointCallback('1ba'), path=tmp_path/'killed')
    with pytest.raises(KeyboardInterrupt): fit(killed, 2, cbs=PowerCut(at))
    again,other = learner(model, loss, CheckpointCallback('1ba'), path=tmp_path/'killed')
    fit(again, 2, resume='auto')
    assert not differences(tensors(whole.model, own), tensors(again.model, other))

@every_case
def test_exported(model, loss, tmp_path):
    learn,own = learner(model, loss, path=tmp_path)
    fit(learn)
    learn.export('e')
    m,f,other = parts(model, loss, 1)
    if model=='lazy': m(TRAIN[0][0])
    load_learner(tmp_path/'models/e.pth', m, f)
    assert not differences(tensors(learn.model, own), tensors(m, other))

# parameters with gradients that are in no optimizer

@pytest.mark.parametrize('loss', sorted(NEED_SPLITTER))
def test_a_module_that_the_loss_uses_must_be_in_the_splitter(loss):
    m,f,own = parts('norm', loss)
    learn = Learner((TRAIN, VALID), m, f, opt_func=SGD)
    with pytest.raises(RuntimeError, match='^3 parameters of `loss_func.*not in the optimizer.*`splitter`'): fit(learn)

class InList(nn.Module):
    "Its layers are in a list, so that PyTorch does not register them"
    def __init__(self): super().__init__(); self.layers,self.head = [nn.Linear(4, 4), nn.Linear(4, 4)],nn.Linear(4, 1)
    def forward(self, x): return self.head(self.layers[1](torch.tanh(self.layers[0](x))))

def scaled(pred, y, s): return ((pred-y)**2).mean()*torch.exp(-s) + s

def test_a_parameter_of_no_module_must_be_in_the_splitter():
    s = nn.Parameter(torch.zeros(()))
    learn = Learner((TRAIN, VALID), nn.Linear(4, 1), partial(scaled, s=s), opt_func=SGD)
    with pytest.raises(RuntimeError, match=r'^1 parameter of shape \(\) got.*no module.*`splitter`'): fit(learn)
    assert s.grad is None
    learn = Learner((TRAIN, VALID), nn.Linear(4, 1), partial(scaled, s=s), opt_func=SGD, splitter=lambda m: [*m.parameters(), s])
    fit(learn)
    assert s

def test_layers_in_a_list_must_be_in_the_splitter():
    learn = Learner((TRAIN, VALID), InList(), nn.MSELoss(), opt_func=SGD)
    with pytest.raises(RuntimeError, match=r'^4 parameters of shapes \(4,\), \(4, 4\).*no module.*`nn.ModuleList`'): fit(learn)
    learn = Learner((TRAIN, VALID), InList(), nn.MSELoss(), opt_func=SGD, splitter=lambda m: [*m.parameters(), *nn.ModuleList(m.layers).parameters()])
    before = learn.model.layers[0].weight.clone()
    fit(learn)
    assert not torch.equal(before, learn.model.layers[0].weight)

def test_parameters_that_are_trained_elsewhere_need_no_splitter():
    "An adversarial input, a parameter in an optimizer of a callback, and one whose gradient a hook removes"
    mine,hooked = nn.Parameter(torch.zeros(())),nn.Parameter(torch.zeros(()))
    hooked.register_post_accumulate_grad_hook(lambda p: setattr(p, 'grad', None))
    class Adversary(Callback):
        def before_fit(self): self.opt = SGD([mine])
        def before_batch(self): self.learn.xb = (self.learn.x.clone().requires_grad_(),)
    learn = Learner((TRAIN, VALID), nn.Linear(4, 1), lambda pred, y: scaled(pred, y, mine+hooked), opt_func=SGD, cbs=Adversary())
    fit(learn)

# recovery from a broken batch

BAD = [*TRAIN[:4], (TRAIN[4][0], TRAIN[4][1]*float('nan')), TRAIN[5]]

@every_case
@pytest.mark.parametrize('source', ['memory', 'checkpoint'])
def test_rolled_back(model, loss, source, tmp_path):
    saver = [CheckpointCallback('1ba')] if source=='checkpoint' else []
    learn,own = learner(model, loss, RollBackOnNaN('1ba', source=source), *saver, path=tmp_path, train=BAD)
    with pytest.warns(UserWarning, match='last good weights are restored'): fit(learn, 1)
    assert learn.roll_back_on_nan.n==1
    finite = {k:numbers(v).isfinite().all() for k,v in tensors(learn.model, own).items() if not k.endswith('mask')}
    assert all(finite.values()), finite

@every_case
@pytest.mark.parametrize('wait', [True, False])
def test_a_batch_is_skipped(model, loss, wait):
    learn,own = learner(model, loss, SkipNaN(wait=wait), train=BAD)
    fit(learn, 1)
    without,other = learner(model, loss, train=[*BAD[:4], BAD[5]])
    fit(without, 1)
    if wait: assert not differences(tensors(learn.model, own), tensors(without.model, other))
    bad = [k for k,v in tensors(learn.model, own).items() if numbers(v).isnan().any()]
    assert not bad

# averages

def averaged(m, own):
    "The parameters that PyTorch's `AveragedModel` averages, and running statistics"
    both = nn.ModuleDict({'m':m} if own is None else {'m':m, 'l':own})
    named = {n:p for n,p in both.named_parameters() if p.requires_grad}
    return {**named, **{n:b for n,b in both.named_buffers() if n.rpartition('.')[2] in ('running_mean','running_var')}}

@every_case
def test_an_average_equals_that_of_a_plain_pytorch_loop(model, loss):
    means,n = {},0
    def after_step(m, own):
        nonlocal n
        now = averaged(m, own)
        if not n: means.update({k:v.detach().clone() for k,v in now.items()})
        for k,v in now.items(): means[k].lerp_(v.detach(), .1)
        n += 1
    m,plain,_ = plain_loop(model, loss, 1, after_step)
    with torch.no_grad():
        for k,t in averaged(m, plain).items(): t.copy_(means[k])
    learn,own = learner(model, loss, EMACallback(.9, warmup=False))
    fit(learn, 1)
    got,want = tensors(learn.model, own),tensors(m, plain)
    assert got.keys()==want.keys()
    for k in want: torch.testing.assert_close(got[k], want[k], rtol=1e-5, atol=1e-6, equal_nan=False, msg=k)

class Queue(nn.Module):
    "A buffer that grows"
    def __init__(self): super().__init__(); self.register_buffer('q', torch.zeros(0, 4)); self.l = nn.Linear(4, 1)
    def forward(self, x):
        if self.training: self.q = torch.cat([self.q, x.detach()])
        return self.l(x)

def test_a_growing_buffer_is_not_averaged():
    learn = Learner((TRAIN, VALID), Queue(), nn.MSELoss(), cbs=EMACallback())
    fit(learn)
    assert torch.equal(learn.model.q, torch.cat([x for x,_ in TRAIN]*2))

def test_a_layer_that_is_frozen_during_the_fit_keeps_its_average():
    class Freezing(Callback):
        def before_epoch(self):
            if self.learn.epoch==1: self.learn.model[0].requires_grad_(False)
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    plain,opt = copy.deepcopy(m),None
    mean = torch.optim.swa_utils.AveragedModel(plain, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(.9))
    opt = SGD(plain.parameters())
    for epoch in range(2):
        if epoch: plain[0].requires_grad_(False)
        for x,y in TRAIN:
            F.mse_loss(plain(x), y).backward(); opt.step(); opt.zero_grad(); mean.update_parameters(plain)
    learn = Learner((TRAIN, VALID), m, nn.MSELoss(), opt_func=SGD, cbs=[EMACallback(.9, warmup=False), Freezing()])
    fit(learn)
    for a,b in zip(learn.model.parameters(), mean.module.parameters()): torch.testing.assert_close(a, b)

# tensors without values

def without_values(buffer):
    if buffer:
        model = nn.Linear(4, 1)
        model.register_buffer('lost', torch.empty(2, device='meta'), persistent=False)
        return model
    with torch.device('meta'): return nn.Linear(4, 1)

@pytest.mark.parametrize('buffer', [True, False])
@pytest.mark.parametrize('use', [lambda learn: fit(learn, 1), lambda learn: learn.validate(), lambda learn: learn.load('a')], ids=['fit','validate','load'])
def test_a_tensor_without_values_is_named(use, buffer, tmp_path):
    Learner((TRAIN, VALID), nn.Linear(4, 1), nn.MSELoss(), path=tmp_path).save('a')
    learn = Learner((TRAIN, VALID), without_values(buffer), nn.MSELoss(), path=tmp_path)
    with pytest.raises(ValueError, match='`lost`.*to_empty' if buffer else '`weight`.*to_empty'): use(learn)

# losses of callbacks: one for each loader, or for each of two alternating optimizers

def with_each(own, *cbs, path='.'):
    "Two alternating loaders: batches of `a` use the loss `own`, those of `b` the loss of the Learner"
    torch.manual_seed(0)
    loader = CombinedLoader(dict(a=TRAIN, b=data(2)))
    return Learner((loader, VALID), made('norm'), nn.MSELoss(), opt_func=SGD, path=path, cbs=[EachLoader(dict(a=own)), *cbs])

def with_turns(own, *cbs, path='.'):
    """Two alternating optimizers: one trains the first layers with the loss `own`, the other the rest with the usual
    loss"""
    torch.manual_seed(0)
    recipe = dict(first=(SGD, ['0.*','in_turn.*']), rest=SGD)
    return Learner((TRAIN, VALID), made('norm'), nn.MSELoss(), opt_func=recipe, path=path, cbs=[InTurn(('first','rest'), first=own), *cbs])

def steps_of_each(m, own):
    opt,first = SGD([*m.parameters(), *own.parameters()]),iter(TRAIN)
    for b in data(2):
        for f,(x,y) in ((own, next(first)), (F.mse_loss, b)):
            f(m(x), y).backward(); opt.step(); opt.zero_grad()
            yield

def steps_of_turns(m, own):
    opts = SGD([*m[0].parameters(), *own.parameters()]),SGD(m[2].parameters())
    for i,(x,y) in enumerate(TRAIN):
        (own if i%2==0 else F.mse_loss)(m(x), y).backward()
        opts[i%2].step()
        for opt in opts: opt.zero_grad()
        yield

with_callbacks = pytest.mark.parametrize('learner_with,steps', [(with_each, steps_of_each), (with_turns, steps_of_turns)], ids=['each','turns'])
def seeded_noise(seed): torch.manual_seed(seed); return Noise()
def own_state(learn, own): return tensors(learn.model, own)

@with_callbacks
def test_the_loss_of_a_callback_trains_like_a_plain_loop_and_is_averaged(learner_with, steps):
    own,plain = seeded_noise(1),seeded_noise(1)
    learn = learner_with(own, EMACallback(.9, warmup=False, at_end=False))
    m,means = copy.deepcopy(learn.model),{}
    fit(learn, 1)
    for i,_ in enumerate(steps(m, plain)):
        for k,v in averaged(m, plain).items():
            means[k] = means[k].lerp(v.detach(), .1) if i else v.detach().clone()
    assert not differences(own_state(learn, own), tensors(m, plain))
    got = learn.ema.averages
    assert len(got)==len(means)
    for a,b in zip(got.values(), sorted_as(got, means)): torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)

def sorted_as(got, means):
    "The averages of the plain loop, in the order of the names in a Learner"
    def name(k): return 'm.'+k if k[0].isdigit() else 'l.'+k.split('.', 2)[2]
    return [means[name(k)] for k in got]

@with_callbacks
def test_the_loss_of_a_callback_is_saved_and_restored(learner_with, steps, tmp_path):
    own,other = seeded_noise(1),seeded_noise(2)
    learn = learner_with(own, SaveModelCallback(), CheckpointCallback('1ba'), path=tmp_path/'whole')
    states = []
    fit(learn, 4, cbs=Callback(after_epoch=lambda cb: states.append(own_state(cb.learn, own))))
    best = min(range(4), key=lambda i: learn.recorder.history[i]['valid_loss'])
    assert not differences(own_state(learn, own), states[best])
    again = learner_with(other, path=tmp_path/'whole')
    again.load(learn.save('m'))
    assert not differences(own_state(learn, own), own_state(again, other))
    killed = learner_with(seeded_noise(1), SaveModelCallback(), CheckpointCallback('1ba'), path=tmp_path/'killed')
    with pytest.raises(KeyboardInterrupt): fit(killed, 4, cbs=PowerCut(9))
    resumed = learner_with(other, SaveModelCallback(), CheckpointCallback('1ba'), path=tmp_path/'killed')
    fit(resumed, 4, resume='auto')
    assert not differences(own_state(learn, own), own_state(resumed, other))

@with_callbacks
def test_the_names_of_parameters_are_the_same_at_each_event(learner_with, steps):
    seen = set()
    def record(cb): seen.add((*named_params(cb.learn), *named_buffers(cb.learn)))
    learn = learner_with(seeded_noise(1), Callback(before_batch=record, after_loss=record, before_step=record, after_batch=record, before_validate=record))
    fit(learn, 1)
    names, = seen
    key = 'each_loader.a.s' if learner_with is with_each else 'in_turn.first.s'
    assert key in names

# processes

def _inside(rank, world, path, f, args):
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'file://{path}', rank=rank, world_size=world, timeout=timedelta(seconds=60))
    try: f(rank, *args)
    finally: dist.destroy_process_group()

@pytest.fixture
def processes(tmp_path):
    def run(f, *args, world=2):
        torch.multiprocessing.start_processes(_inside, (world, tmp_path/'store', f, args), nprocs=world, start_method='fork')
    return run

TOGETHER = [('norm','module'), ('assigned','module'), ('running','module'), ('constants','none'), ('listed','held'), ('norm','method')]

def _train_and_compare(rank, kind):
    from learnkit.data.loaders import DataLoaders
    from torch.utils.data import DataLoader, TensorDataset
    x,y = (torch.cat(ts) for ts in zip(*TRAIN))
    for model,loss in TOGETHER:
        cbs = [DiLoCo(every=2)] if kind=='diloco' else []
        learn,own = learner(model, loss, *cbs)
        learn.dls = DataLoaders(DataLoader(TensorDataset(x, y), 4), VALID)
        fit(learn)
        now,all_ = tensors(learn.model, own),[None]*2
        dist.all_gather_object(all_, now)
        assert not differences(*all_), (model, loss)
        odd = [k for k,v in now.items() if v.isnan().any()]
        assert not odd, (model, loss, odd)

@pytest.mark.parametrize('kind', ['default', 'diloco'])
def test_processes_keep_the_same_state(processes, kind): processes(_train_and_compare, kind)

def _shards(rank, world, folder):
    for i,(model,loss) in enumerate(TOGETHER):
        learn,own = learner(model, loss, VirtualShards(2))
        fit(learn)
        if rank==0: torch.save(tensors(learn.model, own), folder/f'{world}_{i}.pth')

def test_virtual_shards_give_the_same_in_one_and_two_processes(processes, tmp_path):
    processes(_shards, 2, tmp_path)
    _shards(0, 1, tmp_path)
    for i,case in enumerate(TOGETHER):
        one,two = (torch.load(tmp_path/f'{n}_{i}.pth') for n in (1, 2))
        assert not differences(one, two), case
        assert not [k for k,v in one.items() if v.isnan().any()], case

# lazy layers, whose shapes the first batch sets

@pytest.mark.parametrize('use, what', [(lambda learn: learn.fit(1, cbs=VirtualShards(2)), 'VirtualShards'), (lambda learn: learn.fit(1, cbs=DiLoCo(2)), 'DiLoCo'),
                                       (lambda learn: learn.fit(1, cbs=ChannelsLast()), 'channels-last'), (lambda learn: learn.compile(), 'compile')])
def test_lazy_layers_raise_where_their_shapes_are_needed(use, what):
    x = torch.ones(2, 3)
    learn = Learner([[(x, x[:, :1])]*2], nn.LazyLinear(1), nn.MSELoss())
    with pytest.raises(ValueError, match=f'{what}.* needs the shapes .* lazy layers'), learn.no_bar(), learn.no_logging(): use(learn)
    learn.model(x)
    with learn.no_bar(), learn.no_logging(): use(learn)
