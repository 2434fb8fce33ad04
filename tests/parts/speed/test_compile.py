"`learn.compile`: models of one structure share compiled programs, changed models get others, unused ones are freed"
import gc, pytest, torch, weakref
from torch import nn
from learnkit.all import Learner
from learnkit.speed.compiled import _shared_calls, get_shared_call

class Scaled(nn.Module):
    def __init__(self, n=3, by=2., act=torch.relu):
        super().__init__()
        self.l,self.by,self.act = nn.Linear(n, n),by,act
    def forward(self, x): return self.act(self.l(x))*self.by

class Counter:
    "A backend that counts the graphs that it compiles"
    n = 0
    def __call__(self, gm, inputs): self.n += 1; return gm

@pytest.fixture(autouse=True)
def no_programs():
    _shared_calls.clear()
    yield
    _shared_calls.clear()

def trained(counter=None, seed=0, **kw):
    torch.manual_seed(seed)
    model = Scaled(**kw)
    data = [(torch.randn(4, model.l.in_features), torch.randn(4, model.l.in_features)) for _ in range(3)]
    learn = Learner((data, data), model, nn.MSELoss(), opt_func=torch.optim.SGD, lr=.1)
    if counter: learn.compile(backend=counter)
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    return learn

def same(a, b): return all(map(torch.equal, a.model.parameters(), b.model.parameters()))

def test_second_learner_compiles_nothing():
    "A second Learner of the same structure compiles nothing; each Learner used to trace the model again"
    counter,kept = Counter(),[]
    for seed in range(3):
        learn,n = trained(counter, seed),counter.n
        assert same(learn, trained(seed=seed)) and n==2, seed   # one for training, one for validation
        if seed%2: kept.append(learn)   # programs are shared whether or not the earlier Learners are alive
        del learn; gc.collect()

def test_another_structure_is_compiled_apart():
    counter,fs = Counter(),[]
    for i,kw in enumerate([{}, dict(n=4), dict(by=3.), dict(act=torch.tanh)], 1):
        learn = trained(counter, **kw)
        assert same(learn, trained(**kw)) and counter.n<=2*i, kw
        fs.append(get_shared_call(learn.model, dict(backend=counter)))
    assert len(set(fs[:3]))==3 and counter.n>4

def test_a_changed_model_gets_another_program():
    counter = Counter()
    a,b = trained(counter),trained(counter)
    x = torch.randn(4, 3)
    b.model.act = torch.tanh
    assert torch.equal(b.model(x), b.model._call_impl(x)) and torch.equal(a.model(x), a.model._call_impl(x))
    assert counter.n>2
    hook_calls = []
    hook = b.model.l.register_forward_hook(lambda *args: hook_calls.append(1))
    a.model(x); assert not hook_calls
    b.model(x); assert hook_calls==[1]
    hook.remove()
    a.model(x); b.model(x)
    assert hook_calls==[1]

def test_learners_do_not_use_up_the_programs_of_later_ones():
    "PyTorch limits recompiles of a code object: Learners with other activation functions are compiled all the same"
    acts = torch.relu,torch.tanh,torch.sin
    with torch._dynamo.config.patch(recompile_limit=4):
        for act in acts:
            counter = Counter()
            trained(counter, act=act)
            assert counter.n==2, act

def test_programs_and_models_are_freed():
    counter = Counter()
    learn = trained(counter)
    model,code = weakref.ref(learn.model),weakref.ref(get_shared_call(learn.model, dict(backend=counter)).__code__)
    del learn; gc.collect()
    assert model() is None and code() is not None   # a kept program keeps no model
    for n in range(4, 8): trained(counter, n=n)
    gc.collect()
    assert code() is None and len(_shared_calls)==4

class Block(nn.Module):
    def __init__(self, act=torch.relu): super().__init__(); self.up,self.down,self.act = nn.Linear(4, 8),nn.Linear(8, 4),act
    def forward(self, x): return x + self.down(self.act(self.up(x)))

def stacked(n=4, counter=None, regional=True, make=Block):
    torch.manual_seed(0)
    model,x = nn.Sequential(nn.Linear(4, 4), nn.ModuleDict(dict(body=nn.Sequential(*[make() for _ in range(n)]))).body, nn.Linear(4, 4)),torch.randn(5, 4)
    learn = Learner(([(x, x)]*3, [(x, x)]), model, nn.MSELoss(), opt_func=torch.optim.SGD, lr=.1)
    if counter: learn.compile(backend=counter, regional=regional)
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    return learn

def test_a_repeated_block_is_compiled_once():
    "Repeated blocks are compiled once; the whole model used to be compiled, in time proportional to their number"
    counter = Counter()
    for n in (4, 12): assert same(stacked(n, counter), stacked(n)) and counter.n==2, n   # for training and for validation; the second model finds both
    learn = stacked(4, counter)
    assert not any('_orig_mod' in k for k in learn.model.state_dict()) and learn.model[0]._compiled_call_impl is None

def test_blocks_that_compute_something_else_have_their_own_program():
    acts,counter = iter([torch.relu, torch.tanh]*2),Counter()
    compiled = stacked(2, counter, make=lambda: Block(next(acts)))
    acts = iter([torch.relu, torch.tanh])
    assert same(compiled, stacked(2, make=lambda: Block(next(acts)))) and counter.n==4

def test_the_outermost_equal_blocks_are_found():
    from learnkit.speed.compiled import repeated_blocks
    small = lambda: nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    big = [nn.Sequential(small(), small()) for _ in range(3)]
    assert repeated_blocks(nn.Sequential(*big))==[big]
    odd = nn.Sequential(small(), nn.Linear(2, 2), big[0])
    assert repeated_blocks(odd)==[[*big[0]]]
    big[0][0][0].requires_grad_(False)   # frozen: its program computes no gradients
    assert repeated_blocks(nn.ModuleList(big))==[big[1:]]
    with pytest.raises(ValueError, match='Linear has no repeated block'): repeated_blocks(nn.Linear(2, 2))
