"""Trains with what users write: subclasses, patches, hooks and wrappers of optimizers, losses, loaders, datasets,
samplers and models. Compared with a hand-written loop, weights and losses are the same bit for bit, and each method
is called as often.

    python tests/fuzz/subclasses.py --minutes 20             prints its seed and the kinds of runs; a script for each failure
    python tests/fuzz/subclasses.py --minutes 20 --seed 7    different runs
    python tests/fuzz/subclasses.py --case 7 123             run number 123 of seed 7 again

A script that is printed runs as it is, in the folder of learnkit.
"""
import io, random, sys, tempfile, warnings
from collections import Counter
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

root = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root), str(root/'tests'), str(root/'tests/fuzz')]
import torch
from torch.nn.utils import clip_grad_norm_
from hunt import hunt, main
from learnkit.all import Callback, CheckpointCallback, CheckShortCuts, FusedStep, GradientClip, Learner, Prefetch
from learnkit.speed import train_step

# what users write: `note` is called where they would see that their code is not run, `change` changes the weights

bases = ['torch.optim.SGD','torch.optim.Adam','torch.optim.AdamW','torch.optim.RMSprop','torch.optim.Adagrad','torch.optim.NAdam','partial(torch.optim.SGD, momentum=.9)',
         'partial(torch.optim.AdamW, foreach=True)']
prelude = '''
import functools, itertools, torch, types; from functools import partial, wraps; from unittest import mock; from torch import nn; from torch.nn import functional as F
from torch.utils.data import *; from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook; from subclasses import *
def note(what): calls.append(what)
def change(opt, by=.1): note('change'); [p.grad.add_(p.detach(), alpha=by) for g in opt.param_groups for p in g['params'] if p.grad is not None]
'''
optimizers = {
    'none': 'make = {base}',
    'own step': 'class Own({cls}):\n    def step(self, closure=None): change(self); return super().step(closure)\nmake = Own',
    'wraps': 'class Own({cls}):\n    @wraps({cls}.step)\n    def step(self, *args, **kw): change(self); return super().step(*args, **kw)\nmake = Own',
    'no_grad': 'class Own({cls}):\n    @torch.no_grad()\n    def step(self, closure=None): change(self); return super().step(closure)\nmake = Own',
    'wrapped thrice': 'def timed(f):\n    @wraps(f)\n    def g(self, *a, **k): note("timed"); return f(self, *a, **k)\n    return g\nclass Own({cls}): step = timed(timed({cls}.step))\nmake = Own',
    'mixin': 'class Noted:\n    def step(self, closure=None): change(self); return super().step(closure)\nclass Own(Noted, {cls}): pass\nmake = Own',
    'patched class': 'def patches():\n    step = {cls}.step\n    def slow(self, *a, **k): change(self); return step(self, *a, **k)\n    return mock.patch.object({cls}, "step", {wraps}(slow))\nmake = {base}',
    'autospec': 'def patches():\n    step = {cls}.step\n    return mock.patch.object({cls}, "step", autospec=True, side_effect=lambda self, *a, **k: (change(self), step(self, *a, **k))[1])\nmake = {base}',
    'later': 'def patches():   # the class gets another step in the middle of training\n    def later(n, step={cls}.step):\n        def own(self, *a, **k): change(self); return step(self, *a, **k)\n        if n==3: {cls}.step = own\n    at_batch.append(later); return mock.patch.object({cls}, "step", {cls}.step)\nmake = {base}',
    'instance': 'def make(ps, **kw):\n    opt = ({base})(ps, **kw); step = opt.step\n    {maybe_wraps}\n    def own(*a, **k): change(opt); return step(*a, **k)\n    opt.step = own\n    return opt',
    'method': 'def make(ps, **kw):\n    opt = ({base})(ps, **kw)\n    def own(self, closure=None): change(self); return type(self).step(self, closure)\n    opt.step = types.MethodType(own, opt)\n    return opt',
    'instance later': 'def make(ps, **kw):\n    opt = ({base})(ps, **kw); step = opt.step\n    def own(*a, **k): change(opt); return step(*a, **k)\n    at_batch.append(lambda n: n==3 and setattr(opt, "step", own))\n    return opt',
    'hooks': 'def make(ps, **kw):\n    opt = ({base})(ps, **kw)\n    opt.register_step_{when}_hook(lambda o, a, k: change(o))\n    opt.register_step_post_hook(lambda o, a, k: note("post"))\n    return opt',
    'hook later': 'def make(ps, **kw):\n    opt = ({base})(ps, **kw)\n    at_batch.append(lambda n: n==3 and opt.register_step_{when}_hook(lambda o, a, k: change(o)))\n    return opt',
    'global hook': 'def patches():\n    hook = register_optimizer_step_{when}_hook(lambda o, a, k: change(o))\n    return closing_with(hook.remove)\nmake = {base}',
    'zero_grad': 'class Own({cls}):\n    def zero_grad(self, set_to_none=True): note("zero"); [p.grad.mul_(.5) for g in self.param_groups for p in g["params"] if p.grad is not None]\nmake = Own',
    'zero patched': 'def patches():   # on the base class of all\n    zero = torch.optim.Optimizer.zero_grad\n    def own(self, *a, **k): note("zero"); return zero(self, *a, **k)\n    return mock.patch.object(torch.optim.Optimizer, "zero_grad", own)\nmake = {base}',
    'zero instance': 'def make(ps, **kw):\n    opt = ({base})(ps, **kw); zero = opt.zero_grad\n    opt.zero_grad = lambda *a, **k: (note("zero"), zero(*a, **k))[1]\n    return opt',
    'init_group': 'class Own({cls}):\n    def _init_group(self, group, *a, **k): note("group"); return super()._init_group(group, *a, **k)\nmake = Own',
    'modes': 'class Own({cls}):\n    def train(self): note("train")\n    def eval(self): note("eval")\n    def step(self, closure=None): change(self); return super().step(closure)\nmake = Own',
    'own altogether': 'class Own(torch.optim.Optimizer):\n    def __init__(self, params, lr=.1): super().__init__(params, dict(lr=lr))\n    @torch.no_grad()\n    def step(self, closure=None):\n        note("step"); [p.sub_(g["lr"]*p.grad.sign()) for g in self.param_groups for p in g["params"]]\nmake = Own',
    'wrapper': 'class Own(torch.optim.Optimizer):   # as Lookahead does\n    def __init__(self, params, lr=.1):\n        self.inner = ({base})(params, lr=lr); super().__init__(self.inner.param_groups, dict(lr=lr)); self.inner.param_groups = self.param_groups\n    def step(self, closure=None): change(self); return self.inner.step(closure)\nmake = Own',
    'getattribute': 'class Own({cls}):\n    def __getattribute__(self, k): k=="step" and note("asked"); return super().__getattribute__(k)\n    def step(self, closure=None): change(self); return super().step(closure)\nmake = Own',
    'object as step': 'class Step:\n    def __get__(self, o, cls=None): return self if o is None else partial(self, o)\n    def __call__(self, o, closure=None): change(o); return {cls}.step(o, closure)\nclass Own({cls}): step = Step()\nmake = Own',
    'partialmethod': 'class Own({cls}):\n    def scaled(self, by, closure=None): change(self, by); return super().step(closure)\n    step = functools.partialmethod(scaled, .2)\nmake = Own',
    'grad hooks': 'def make(ps, **kw):\n    ps = list(ps); [p.register_hook(lambda g: (note("grad"), g*.5)[1]) for o in ps for p in (o["params"] if isinstance(o, dict) else [o])]\n    return ({base})(ps, **kw)'}
losses = {
    'none': 'loss = nn.MSELoss()',
    'forward': 'class Loss(nn.MSELoss):\n    def forward(self, p, y): note("loss"); return super().forward(p, y)*2\nloss = Loss()',
    'call': 'class Loss(nn.MSELoss):\n    def __call__(self, p, y): note("loss"); return super().__call__(p, y)*2\nloss = Loss()',
    'hook': 'loss = nn.MSELoss(); loss.register_forward_hook(lambda m, a, out: (note("loss"), out*2)[1])',
    'instance': 'loss = nn.MSELoss(); loss.forward = lambda p, y: (note("loss"), F.mse_loss(p, y, reduction=loss.reduction)*2)[1]',
    'patched class': 'def patches2():\n    forward = nn.MSELoss.forward\n    return mock.patch.object(nn.MSELoss, "forward", lambda self, p, y: (note("loss"), forward(self, p, y)*2)[1])\nloss = nn.MSELoss()',
    'wraps': '@wraps(F.mse_loss)\ndef loss(p, y, **kw): note("loss"); return F.mse_loss(p, y, **kw)*2',
    'function': 'def loss(p, y, reduction="mean"): note("loss"); return F.mse_loss(p, y, reduction=reduction)*2',
    'wraps cross entropy': '@wraps(F.cross_entropy)\ndef loss(p, y, **kw): note("loss"); return F.mse_loss(p, y, reduction=kw.get("reduction", "mean"))',
    'object': 'class Loss:\n    def __init__(self): self.reduction = "mean"\n    def __call__(self, p, y): note("loss"); return F.mse_loss(p, y, reduction=self.reduction)\nloss = Loss()',
    'partial': 'loss = partial(F.huber_loss, delta=.5)',
    'bound': 'class Task:\n    def loss(self, p, y, reduction="mean"): note("loss"); return F.l1_loss(p, y, reduction=reduction)\nloss = Task().loss',
    'of learnkit': 'from learnkit.all import MSELossFlat\nclass Loss(MSELossFlat):\n    def __call__(self, p, y, **kw): note("loss"); return super().__call__(p, y, **kw)*2\nloss = Loss()'}
data = {
    'none': 'ds = TensorDataset(x, y)',
    'item': 'class Data(TensorDataset):\n    def __getitem__(self, i): note("item"); a,b = super().__getitem__(i); return a*2,b\nds = Data(x, y)',
    'items': 'class Data(TensorDataset):\n    def __getitems__(self, idxs): note("items"); return [(x[i]*2, y[i]) for i in idxs]\nds = Data(x, y)',
    'random': 'class Data(TensorDataset):\n    def __getitem__(self, i): note("item"); a,b = super().__getitem__(i); return a+torch.randn(4)*.1,b\nds = Data(x, y)',
    'subset': 'class Part(Subset):\n    def __getitem__(self, i): note("item"); a,b = super().__getitem__(i); return a+1,b\n    def __getitems__(self, idxs): return [self[i] for i in idxs]\nds = Part(TensorDataset(x, y), range(0, 22, 2))',
    'patched item': 'def patches3():\n    get = TensorDataset.__getitem__\n    return mock.patch.object(TensorDataset, "__getitem__", lambda self, i: (note("item"), get(self, i))[1])\nds = TensorDataset(x, y)',
    'counts': 'class Data(Dataset):\n    n = 0\n    def __len__(self): return len(x)\n    def __getitem__(self, i): self.n += 1; note("item"); return x[i]+self.n/100,y[i]\nds = Data()',
    'stack': 'ds = StackDataset(TensorDataset(x), TensorDataset(y)); collate = lambda items: (torch.stack([a for (a,),_ in items]), torch.stack([b for _,(b,) in items]))',
    'iterable': 'class Data(IterableDataset):\n    def __iter__(self):\n        for a,b in zip(x, y): note("item"); yield a+torch.rand(())/10,b\nds = Data()'}
loaders = {
    'none': 'train = DataLoader(ds, 4, **{kw})',
    'own iter': 'class Load(DataLoader):\n    def __iter__(self):\n        for a,b in super().__iter__(): note("batch"); yield a+.1,b\ntrain = Load(ds, 4, **{kw})',
    'fewer': 'class Load(DataLoader):\n    def __iter__(self): return itertools.islice(super().__iter__(), 3)\n    def __len__(self): return 3\ntrain = Load(ds, 4, **{kw})',
    'patched iter': 'def patches4():\n    get = DataLoader.__iter__\n    def own(self): note("iter"); return get(self)\n    return mock.patch.object(DataLoader, "__iter__", own)\ntrain = DataLoader(ds, 4, **{kw})',
    'get_iterator': 'class Load(DataLoader):\n    def _get_iterator(self): note("iter"); return super()._get_iterator()\ntrain = Load(ds, 4, **{kw})',
    'collate': 'def noisy(items): note("collate"); a,b = collate(items); return a+torch.randn(4)*.1,b\ntrain = DataLoader(ds, 4, **{{**{kw}, "collate_fn":noisy}})',
    'sampler': 'class Order(RandomSampler):\n    def __iter__(self): note("order"); return iter(sorted(super().__iter__(), key=lambda i: i%3))\ntrain = DataLoader(ds, 4, sampler=Order(ds), collate_fn=collate)',
    'sampler instance': 'order = RandomSampler(ds); get = order.__iter__; order.__iter__ = lambda: (note("no"), get())[1]; order.generator = torch.Generator().manual_seed(3)\ntrain = DataLoader(ds, 4, sampler=order, collate_fn=collate)',
    'sequential': 'class Order(SequentialSampler):\n    def __iter__(self): note("order"); return iter([*super().__iter__()][::-1])\ntrain = DataLoader(ds, 4, sampler=Order(ds), collate_fn=collate)',
    'batch sampler': 'class Groups(BatchSampler):\n    def __iter__(self):\n        for b in super().__iter__(): note("group"); yield b[::-1]\ntrain = DataLoader(ds, batch_sampler=Groups(RandomSampler(ds), 4, False), collate_fn=collate)',
    'list of indices': 'train = DataLoader(ds, 4, sampler=[5, 1, 1, 2, 7, 3, 0, 9, 4], collate_fn=collate)',
    'no batches': 'train = [tuple(collate([ds[i] for i in range(j, min(j+4, len(ds)))])) for j in range(0, len(ds), 4)]',
    'iterable': 'class Load:\n    def __iter__(self):\n        for b in DataLoader(ds, 4, collate_fn=collate): note("batch"); yield b\ntrain = Load()',
    'list': 'class Batches(list):\n    def __iter__(self): note("iter"); return reversed([*super().__iter__()])\ntrain = Batches(DataLoader(ds, 4, collate_fn=collate))',
    'getitem': 'class Load:\n    def __getitem__(self, i):\n        if i>3: raise IndexError\n        note("batch"); return x[i*4:i*4+4],y[i*4:i*4+4]\ntrain = Load()',
    'generator': 'train = DataLoader(ds, 4, shuffle=True, collate_fn=collate, generator=torch.Generator().manual_seed(7))',
    'persistent': 'train = DataLoader(ds, 4, shuffle=True, num_workers=0, collate_fn=collate, pin_memory=False)'}
mlp = 'nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(.2), nn.Linear(8, 1))'
networks = {
    'none': 'model = {mlp}',
    'forward': 'class Net(nn.Sequential):\n    def forward(self, x): note("forward"); return super().forward(x)*2\nmodel = Net(*{mlp})',
    'call': 'class Net(nn.Sequential):\n    def __call__(self, *a, **k): note("call"); return super().__call__(*a, **k)*2\nmodel = Net(*{mlp})',
    'hook': 'model = {mlp}; model.register_forward_hook(lambda m, a, out: (note("hook"), out*2)[1]); model[0].register_forward_pre_hook(lambda m, a: (note("pre"), (a[0]+1,))[1])',
    'backward hook': 'model = {mlp}; model[3].register_full_backward_hook(lambda m, i, o: (note("back"), tuple(g and g if g is None else g*.5 for g in i))[1])',
    'instance': 'model = {mlp}; forward = model.forward; model.forward = lambda x: (note("forward"), forward(x)*2)[1]',
    'patched class': 'def patches5():\n    forward = nn.Linear.forward\n    return mock.patch.object(nn.Linear, "forward", lambda self, a: (note("linear"), forward(self, a)*1.5)[1])\nmodel = {mlp}',
    'train': 'class Net(nn.Sequential):\n    def train(self, mode=True): note(f"train {{mode}}"); super().train(mode); self[2].eval(); return self\nmodel = Net(*{mlp})',
    'parameters': 'class Net(nn.Sequential):\n    def parameters(self, recurse=True): return self[3].parameters(recurse)\nmodel = Net(*{mlp})',
    'counts': 'class Net(nn.Sequential):\n    n = 0\n    def forward(self, x): self.n += 1; return super().forward(x)*(1+self.n/50)\nmodel = Net(*{mlp})',
    'tensor hook': 'class Net(nn.Sequential):\n    def forward(self, x):\n        out = super().forward(x)\n        if out.requires_grad: out.register_hook(lambda g: (note("grad"), g*.5)[1])\n        return out\nmodel = Net(*{mlp})',
    'after grad': 'model = {mlp}; [p.register_post_accumulate_grad_hook(lambda p: (note("grad"), p.grad.mul_(.5))[0]) for p in model.parameters()]',
    'parametrized': 'class Twice(nn.Module):\n    def forward(self, w): note("param"); return w*2\nmodel = {mlp}; nn.utils.parametrize.register_parametrization(model[0], "weight", Twice())',
    'buffers': 'class Net(nn.Sequential):\n    def forward(self, x):\n        self.seen = x.mean() if getattr(self, "seen", None) is None else self.seen*.9+x.mean()*.1\n        return super().forward(x)+self.seen\nmodel = Net(*{mlp})'}
lookers = ['CheckpointCallback("2ba", folder=folder)','CheckpointCallback("1ep", folder=folder)','CheckShortCuts()','Prefetch()','GradientClip(.5)']
kinds = dict(trained=5, resumed=2, fused=1, predicted=2)
begin_later = 'later','instance later','hook later'   # they would do so in a resumed run, too
has_state = 'counts','buffers','generator','sampler instance'   # another pass is another one

def draw(seed, n):
    "The kind of run number `n`, and its script"
    r = random.Random(f'{seed}/{n}')
    kind = r.choice([k for k,m in kinds.items() for _ in range(m)])
    left = dict(resumed=begin_later, predicted=has_state).get(kind, ())
    of = [r.choice([k for k in d if k not in left] + ['none']*(len(d)//2)) for d in (optimizers, losses, data, loaders, networks)]
    if of[2]=='iterable': of[3] = r.choice(['none','own iter','patched iter','get_iterator','collate','iterable'])
    base = r.choice(bases)
    cls = base.removeprefix('partial(').split(',')[0].removesuffix(')')
    names = dict(base=base, cls=cls, mlp=mlp, wraps=r.choice(['', f'wraps({cls}.step)']), maybe_wraps=r.choice(['', '@wraps(step)']), when=r.choice(['pre','post']),
                 kw=f'dict(collate_fn=collate, {"" if of[2]=="iterable" else r.choice(["shuffle=True", "shuffle=True, drop_last=True", ""])})')
    if kind in ('resumed','fused'): names['base'] = names['base'].replace(', foreach=True', '')
    cbs = [] if kind=='fused' else r.sample(lookers[2:] if kind=='resumed' else lookers, r.choice([0, 0, 1, 2]))
    parts = [d[k].format(**names) for d,k in zip((optimizers, losses, data, loaders, networks), of)]
    return kind,f'''{prelude}# {", ".join(f"{what}: {k}" for what,k in zip(("optimizer","loss","data","loader","model"), of) if k!="none")}
def setup():
    torch.manual_seed({r.randrange(99)}); x = torch.randn(22, 4); y = x.sum(1, keepdim=True); collate = default_collate
''' + ''.join(f'    {line}\n' for p in parts for line in p.splitlines()) + f'''    valid = DataLoader(TensorDataset(x[:10], y[:10]), 4)
    return locals()
compare({kind!r}, setup, {r.choice([1, 2, 3])}, lambda folder: [{", ".join(c for i,c in enumerate(cbs) if 'Checkpoint' not in c or not any('Checkpoint' in o for o in cbs[:i]))}], end={r.randrange(1, 9)})
'''

# both loops

calls,at_batch = [],[]   # what was called; functions that are called with the number of each training batch

@contextmanager
def closing_with(f):
    try: yield
    finally: f()

def batch_begins(n):
    for f in at_batch: f(n)

def by_hand(u, epochs, clip):
    "Train with a hand-written loop and what the user wrote; return the losses of validation"
    model,opt,losses,n = u['model'],u['make'](u['model'].parameters(), lr=.05),[],0
    def mode(on):
        model.train(on)
        if hasattr(opt, 'train'): (opt.train if on else opt.eval)()
    for _ in range(epochs):
        mode(True)
        for a,b in u['train']:
            batch_begins(n); n += 1
            u['loss'](model(a), b).backward()
            if clip: clip_grad_norm_(model.parameters(), clip)
            opt.step()
            opt.zero_grad()
        mode(False)
        with torch.no_grad(): of = [(len(a), u['loss'](model(a), b)) for a,b in u['valid']]
        losses.append(sum(k*l.item() for k,l in of)/sum(k for k,_ in of))
    return losses

def by_learner(u, epochs, cbs, end=None, **kw):
    "The same by a Learner, which may be ended before batch number `end`; returns the losses, and the Learner"
    learn = Learner((u['train'], u['valid']), u['model'], u['loss'], u['make'], lr=.05, cbs=cbs)
    def before_batch(cb):
        if not learn.training: return
        if learn.train_iter==end: raise KeyboardInterrupt
        batch_begins(learn.train_iter)
    begins = Callback(before_batch=before_batch)
    begins.acts = 'nothing'
    with learn.no_logging(), learn.no_bar():
        try: learn.fit(epochs, cbs=begins, **kw)
        except KeyboardInterrupt: return None,learn
    return [row['valid_loss'] for row in learn.recorder.history],learn

@contextmanager
def set_up(setup):
    "What the user wrote, with patches for as long as they are needed; it is made with the same random numbers each time"
    with ExitStack() as stack:
        calls.clear(), at_batch.clear()
        u = setup()
        for k in u:
            if k.startswith('patches'): stack.enter_context(u[k]())
        yield u

def once_each(calls):
    "Without calls that read the mode of an optimizer"
    res,mode = [],None
    for c in calls:
        if c!=mode: res.append(c)
        if c in ('train','eval'): mode = c
    return res

def ended(u, losses): return dict(weights=[p.detach().clone() for p in u['model'].state_dict().values()], losses=losses, calls=once_each(calls), random=torch.get_rng_state())

def differ(one, two, tol=0, leave=()):
    "What differs, in words"
    if two['calls'].count('zero')==one['calls'].count('zero')+1: two['calls'].remove('zero')   # a fit begins without gradients
    def same(a, b): return len(a)==len(b) and all(torch.allclose(torch.as_tensor(p).double(), torch.as_tensor(q).double(), rtol=tol, atol=tol, equal_nan=True) for p,q in zip(a, b))
    odd = [k for k in ('weights','losses') if not same(one[k], two[k])]
    if 'calls' not in leave and one['calls']!=two['calls']: odd.append(f"calls {dict(Counter(one['calls']))} {dict(Counter(two['calls']))}")
    return odd + ['random']*('random' not in leave and not torch.equal(one['random'], two['random']))

def grown(losses): return max(1, losses[-1]/losses[0])   # where training goes astray, rounding grows with the loss

class Uncompiled:
    "Runs the function that a fused step would compile"
    def __init__(self, f, **kw): self.f,self.shapes = f,set()
    def __call__(self, shape, *args): return self.f(*args)

def compare(kind, setup, epochs, cbs, end):
    "Raise AssertionError if a Learner ends differently from the hand-written loop with what the user wrote"
    folder = tempfile.mkdtemp()
    made = cbs(folder)
    with set_up(setup) as u: hand = ended(u, by_hand(u, epochs, .5*any(isinstance(cb, GradientClip) for cb in made)))
    twice = ('calls',)*any(isinstance(cb, CheckShortCuts) for cb in made)
    if kind=='trained':
        with set_up(setup) as u: odd = differ(hand, ended(u, by_learner(u, epochs, made)[0]), leave=twice)
    if kind=='resumed':   # those that went before the end are called again
        save = lambda: [CheckpointCallback('2ba', folder=folder), *cbs(folder)]
        with set_up(setup) as u: by_learner(u, epochs, save(), end)
        with set_up(setup) as u: odd = differ(hand, ended(u, by_learner(u, epochs, save(), resume='auto')[0]), leave=('calls',))
    if kind=='fused':
        with set_up(setup) as u, mock.patch.object(train_step, 'CompiledStep', Uncompiled): odd = differ(hand, ended(u, by_learner(u, epochs, [FusedStep()])[0]), tol=1e-5*grown(hand['losses']), leave=('calls','random'))
    if kind=='predicted':
        with set_up(setup) as u:
            _,learn = by_learner(u, epochs, made)
            odd = differ_in_predictions(u, learn)
    assert not odd, f'{kind}: {"; ".join(map(str, odd))}'

def differ_in_predictions(u, learn):
    "Losses and outputs of `validate` and `get_preds` compared with those of the hand-written loop"
    model,loss,odd = u['model'],u['loss'],[]
    for name,dl in dict(valid=u['valid'], train=u['train']).items():
        state = torch.get_rng_state()
        calls.clear()
        model.eval()
        with torch.no_grad(): of = [(len(a), model(a), b) for a,b in dl]
        whole = [l.item() for l in [loss(p, b) for _,p,b in of]]
        by = [*calls]
        torch.set_rng_state(state); calls.clear()
        with learn.no_logging(), learn.no_bar(): got = learn.validate(dl=dl)[0]
        want = sum(k*l for (k,*_),l in zip(of, whole))/sum(k for k,*_ in of)
        if abs(got-want)>1e-6*max(1, abs(want)): odd.append(f'validate of {name}: {got} for {want}')
        by,calls[:] = ([c for c in o if c not in ('eval','train False')] for o in (by, calls))   # the number of repeated calls is left to it
        if Counter(by)!=Counter(calls): odd.append(f'calls in validate of {name}: {dict(Counter(calls))} for {dict(Counter(by))}')
        torch.set_rng_state(state)
        with learn.no_logging(), learn.no_bar(): preds,targs,each = learn.get_preds(dl=dl, with_loss=True, reorder=False)
        for what,a,b in (('predictions', preds, torch.cat([p for _,p,_ in of])), ('targets', targs, torch.cat([b for *_,b in of]))):
            if not torch.equal(a, b): odd.append(f'{what} of {name}')
        if abs(each.mean().item()-want)>1e-5*max(1, abs(want)): odd.append(f'losses of {name}: {each.mean()} for {want}')
    return odd

def attempt(kind, script):
    "Run it without a word; returns how it ended, and the fault"
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter('always')
        try: exec(script, {'__name__':'user'})
        except AssertionError as e: return ('said',None) if any('no checkpoint stores' in str(w.message) for w in said) else ('otherwise',str(e))
        except ValueError as e: return 'refused',None if ' ' in str(e).strip() else f'{type(e).__name__}: {e}'
        except RuntimeError as e: return ('refused',None) if 'would never be trained' in str(e) else ('error',f'{type(e).__name__}: {e}')
        except BaseException as e: return 'error',f'{type(e).__name__}: {e}'
        return 'alike',None

def fuzz(seed, **kwargs): return hunt(draw, attempt, seed, **kwargs)
def again(seed, i): kind,script = draw(seed, i); print(script); exec(script, {'__name__':'user'})
if __name__=='__main__':
    sys.modules['subclasses'] = sys.modules['__main__']   # one list of calls
    main(fuzz, again)
