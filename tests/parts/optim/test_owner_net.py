"""Random actions of a user on model and optimizer, between and inside fits. The oracle is a loop by hand in which each parameter has an optimizer of
its own, made when it is first trained: no grouping and no time of making can go wrong there. Either the Learner's weights are equal to it bit for
bit, or the Learner refuses with an error that names what is not trained."""
import copy, os, warnings
from functools import partial

import pytest, torch
from hypothesis import example, given, settings, strategies as st
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm
from torch.optim import SGD, Adam, AdamW, RMSprop

from learnkit.all import Learner, DataLoaders
from toys import at, batches, draws

torch.set_num_threads(1)
opt_funcs = dict(sgd=partial(SGD, lr=.05, momentum=.9), plain=partial(SGD, lr=.1), adam=partial(Adam, lr=.02), adamw=partial(AdamW, lr=.02, weight_decay=.1), rms=partial(RMSprop, lr=.01))

def linear(i, o, seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Linear(i, o)

class Net(nn.Module):
    def __init__(self, seed, norm=False):
        super().__init__()
        self.a,self.b,self.c = linear(4,5,seed),linear(5,5,seed+1),linear(5,1,seed+2)
        self.late = None   # a layer that `forward` makes, if it is a number
    def forward(self, x):
        if isinstance(self.late, int): self.late = linear(1,1,self.late)
        x = self.c(torch.tanh(self.b(torch.tanh(self.a(x)))))
        return x if self.late is None else self.late(x)

class LoRA(nn.Module):
    def __init__(self, base, seed):
        super().__init__()
        self.base,self.down,self.up = base.requires_grad_(False),linear(base.in_features, 2, seed),linear(2, base.out_features, seed+1)
    def forward(self, x): return self.base(x) + self.up(self.down(x))

def parts(m): return [[p for n,p in m.named_parameters() if n[0] in names] for names in ('a','b','cl')]
def groups(m): return [g for g in ([p for p in ps if p.requires_grad] for ps in parts(m)) if g]
def all_groups(m): return parts(m)   # frozen ones too
splitters = dict(all=None, groups=groups, all_groups=all_groups)

# what a user does to a model; each is done to the Learner's and to that of the loop by hand
def replace(m, k, seed):
    old = getattr(m, k)
    old = getattr(old, 'base', old)
    setattr(m, k, linear(old.in_features, old.out_features, seed))
def freeze(m, k, seed): getattr(m, k).requires_grad_(False)
def thaw(m, k, seed):   getattr(m, k).requires_grad_(True)
def lora(m, k, seed):
    if type(getattr(m, k)) is nn.Linear and not hasattr(getattr(m, k), 'parametrizations'): setattr(m, k, LoRA(getattr(m, k), seed))
def norm(m, k, seed):
    if type(getattr(m, k)) is nn.Linear: weight_norm(getattr(m, k))
def late(m, k, seed):
    if m.late is None: m.late = seed
def assign(m, k, seed): m.load_state_dict({n:v+.01 for n,v in copy.deepcopy(m.state_dict()).items()}, assign=True)
def tie(m, k, seed):
    if type(m.a) is type(m.b) is nn.Linear and 'weight' in m.b._parameters: m.b.bias = m.a.bias if 'bias' in m.a._parameters else m.b.bias
def in_place(m, k, seed): m.load_state_dict({n:v+.01 for n,v in m.state_dict().items()})
acts = [replace, freeze, thaw, lora, norm, late, assign, tie, in_place]

def trains(m): return any(p.requires_grad for p in m.parameters())

class Owner:
    "A Learner, and the loop by hand beside it"
    def __init__(self, opt, splitter):
        model = Net(0)
        self.hand,self.opts,self.make,self.made,self.splitter = copy.deepcopy(model),{},opt_funcs[opt],opt_funcs[opt],splitter
        kw = {} if splitters[splitter] is None else dict(splitter=splitters[splitter])
        self.learn = Learner(DataLoaders(batches(2)), model, F.mse_loss, opt_funcs[opt], **kw)
        self.learn.remove_cb(self.learn.progress)
        self.learn.logger = lambda *args: None

    def act(self, what, k, seed):
        for m in (self.learn.model, self.hand): what(m, k, seed)

    def other_opt_func(self, opt):
        self.learn.opt_func = self.make = opt_funcs[opt]   # there and back again before the next fit is no change

    def other_model(self, seed): self.learn.model,self.hand = Net(seed),Net(seed)
    def fresh(self): self.learn.opt,self.opts = None,{}

    def by_hand(self, n, during):
        if self.make is not self.made: self.opts,self.made = {},self.make
        for epoch in range(n):
            for what,k,seed in during if epoch else (): what(self.hand, k, seed)
            for xb,yb in batches(2):
                F.mse_loss(self.hand(xb), yb).backward()
                for p in self.hand.parameters():
                    if p.grad is None: continue
                    if p not in self.opts: self.opts[p] = self.make([p])
                    self.opts[p].step()
                    p.grad = None

    def forget_frozen(self):
        "Where the splitter gave another number of groups, the new optimizer knows nothing of what was frozen"
        self.opts = {p:o for p,o in self.opts.items() if p.requires_grad}

    def fit(self, n, during):
        "Fit both; `during` is done to the model before the second epoch"
        model = self.learn.model
        trial = copy.deepcopy(self.hand)
        for what,k,seed in during: what(trial, k, seed)
        if not trains(model) or not trains(trial): return
        opt = self.learn.opt
        def change(cb):
            for what,k,seed in during: what(cb.learn.model, k, seed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter('error')
                self.learn.fit(n, cbs=at('before_epoch', change, when=lambda cb: cb.epoch>0))
        except RuntimeError as e:   # only where the groups have become others in the middle of a fit
            assert 'became trainable in the middle of a fit' in str(e) and self.splitter=='groups' and len(groups(model))!=len(self.learn.opt.param_lists)
            self.hand,self.opts,self.learn.opt = copy.deepcopy(model),{},None
        else:
            if self.learn.opt is not opt: self.forget_frozen()
            self.by_hand(n, during)
        a,b = model.state_dict(),self.hand.state_dict()
        assert a.keys()==b.keys()
        for k in a: assert torch.equal(a[k], b[k]), k
        have = [id(p) for ps in self.learn.opt.param_lists for p in ps] if self.learn.opt else []
        assert len(have)==len({*have}), 'a parameter is there twice'

seeds  = st.integers(1, 9)
act    = st.tuples(st.just('act'), st.sampled_from(acts), st.sampled_from('abc'), seeds)
others = st.one_of(st.tuples(st.just('other_opt_func'), st.sampled_from([*opt_funcs])), st.tuples(st.just('other_model'), seeds), st.tuples(st.just('fresh')))
during = st.lists(st.tuples(st.sampled_from([replace, freeze, thaw, norm, assign]), st.sampled_from('abc'), seeds), max_size=2)
rounds = st.lists(st.tuples(st.lists(st.one_of(act, act, others), max_size=3), st.integers(1, 2), during), min_size=2, max_size=5)
plays  = dict(opt=st.sampled_from([*opt_funcs]), splitter=st.sampled_from([*splitters]), rounds=rounds)

def play(opt, splitter, rounds):
    owner = Owner(opt, splitter)
    for actions,n,during in rounds:
        for name,*args in actions: getattr(owner, name)(*args)
        owner.fit(n, during)

@draws(20)
@given(**plays)
def test_what_a_user_does(opt, splitter, rounds): play(opt, splitter, rounds)

@pytest.mark.slow
@settings(max_examples=150 if 'LEARNKIT_SWEEP' in os.environ else 70, deadline=None)
@example('sgd', 'groups', [([],1,[]), ([('act',replace,'a',1),('act',freeze,'b',1)],1,[])])   # the groups become fewer
@example('sgd', 'groups', [([],1,[]), ([('act',freeze,'a',1)],2,[(replace,'b',1)])])
@given(**plays)
def test_much_that_a_user_does(opt, splitter, rounds): play(opt, splitter, rounds)
