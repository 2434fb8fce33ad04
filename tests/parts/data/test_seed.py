"Random states: saved, restored, for all generators"
import io, json, random, sys

import numpy as np, pytest, torch
from hypothesis import given, strategies as st
from torch import tensor

from learnkit.data import random as seed_module
from learnkit.data.random import *
from nested_cases import fast

def draw(): return random.random(), random.gauss(0,1), float(np.random.rand()), float(np.random.randn()), torch.rand(1).item()

@fast
@given(st.integers(0, 2**63-1), st.integers(0,5))
def test_random_states(seed, skip):
    set_seed(seed)
    for _ in range(skip): draw()
    states = get_random_states()
    a = [draw() for _ in range(3)]
    set_random_states(**states)
    assert [draw() for _ in range(3)]==a
    set_seed(seed)
    for _ in range(skip): draw()
    assert [draw() for _ in range(3)]==a

@pytest.mark.parametrize('same', [np.int64(1), np.uint8(1), tensor(1)])
def test_any_integer_is_a_seed(same):
    "`random.seed` takes no integer of NumPy: it raised an error of Python, after the check"
    set_seed(1); first = draw()
    set_seed(same)
    assert draw()==first

def test_packed_states():
    "A checkpoint has bytes for the many numbers; half of them are refused"
    from learnkit.data.random import pack_state
    packed,a = pack_state(get_random_states()),draw()
    assert isinstance(packed['random_state'][1], bytes) and isinstance(packed['numpy_state']['state']['key'], bytes)
    set_random_states(**packed)
    assert draw()==a
    half = dict(random_state=(3, packed['random_state'][1][:1000], None)),dict(numpy_state={**packed['numpy_state'], 'state':{'key':b'12345', 'pos':3}}),dict(random_state=5),dict(random_state=(3, (1.5,)*625, None))
    before = get_random_states()
    for bad in half:
        with pytest.raises(ValueError): set_random_states(**bad)
    assert before['random_state'][1]==random.getstate()[1] and before['numpy_state']==get_random_states()['numpy_state']

def test_all_states_are_restored_or_none():
    "The state of another bit generator was found only after Python's state had been set, and an unknown name was ignored"
    states,other = get_random_states(),np.random.PCG64(3).state
    draw()
    before = random.getstate(),torch.get_rng_state().tolist()
    for numpy_state in (other, {**states['numpy_state'], 'bit_generator':'PCG64'}, {k:v for k,v in states['numpy_state'].items() if k!='gauss'}):
        try: set_random_states(**{**states, 'numpy_state':numpy_state})
        except ValueError: assert (random.getstate(), torch.get_rng_state().tolist())==before
        else: assert random.getstate()!=before[0]; draw(); before = random.getstate(),torch.get_rng_state().tolist()
    with pytest.raises(TypeError, match='no state named `numpi_state`'): set_random_states(numpi_state=states['numpy_state'])
    set_random_states(torch_npu_state=None)

def test_random_states_from_file():
    f,states = io.BytesIO(),get_random_states()
    torch.save(states, f); f.seek(0)
    a = draw()
    set_random_states(**torch.load(f, weights_only=True))
    assert draw()==a
    set_random_states(random_state=json.loads(json.dumps(states['random_state'])), numpy_state=json.loads(json.dumps(states['numpy_state'])))
    assert draw()[:4]==a[:4]

def test_other_bit_generator():
    old = np.random.get_bit_generator()
    try:
        np.random.set_bit_generator(np.random.PCG64(3))
        s = get_random_states(); a = draw(); set_random_states(**s)
        assert draw()==a
    finally: np.random.set_bit_generator(old)

def test_without_numpy(monkeypatch):
    state = np.random.get_state()[1]
    monkeypatch.delitem(sys.modules, 'numpy')
    assert 'numpy_state' not in get_random_states()
    with no_random(): pass
    assert 'numpy' not in sys.modules
    assert (np.random.get_state()[1]==state).all()

@fast
@given(st.integers(0, 2**32), st.booleans())
def test_no_random(seed, fail):
    flags = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    set_seed(1); a = [draw(), draw()]
    set_seed(1); b = [draw()]
    try:
        with no_random(seed, reproducible=True):
            c = draw()
            if fail: raise KeyboardInterrupt
    except KeyboardInterrupt: pass
    b.append(draw())
    assert a==b and flags==(torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark)
    set_seed(seed)
    assert draw()==c

def test_no_random_bad_seed():
    s = get_random_states()
    with pytest.raises((TypeError, RuntimeError)):
        with no_random('a'): pass
    assert torch.equal(s['torch_state'], torch.get_rng_state()) and s['random_state']==random.getstate()

class FakeRNG:
    def __init__(self, n, one=False): self.s,self.one = [tensor([i], dtype=torch.uint8) for i in range(n)],one
    def device_count(self): return len(self.s)
    def get_rng_state(self, *i):
        assert len(i)==(0 if self.one else 1)
        return self.s[i[0] if i else 0].clone()
    def set_rng_state(self, o, *i):
        assert len(i)==(0 if self.one else 1)
        self.s[i[0] if i else 0] = o

def test_devices(monkeypatch):
    "Every kind of device; a checkpoint of more devices than there are, or of other kinds, can be read"
    devs = dict(cuda=FakeRNG(2), xpu=FakeRNG(1), mps=FakeRNG(1, one=True), npu=FakeRNG(2))
    monkeypatch.setattr(seed_module, '_get_device_modules', lambda: devs)
    s = get_random_states()
    assert [len(s[f'torch_{n}_state']) for n in devs]==[2,1,1,2]
    for d in devs.values(): d.s = [o+7 for o in d.s]
    set_random_states(**s)
    assert [int(o) for d in devs.values() for o in d.s]==[0,1,0,0,0,1]
    devs.clear(); devs['cuda'] = FakeRNG(1)
    set_random_states(**{**s, 'torch_cuda_state':[tensor([5]), tensor([6])]})
    assert [int(o) for o in devs['cuda'].s]==[5]
    devs.clear(); set_random_states(**s)

def test_any_accelerator(monkeypatch):
    "… that PyTorch knows has generators"
    npu = FakeRNG(1); npu.is_available = lambda: True
    monkeypatch.setattr(torch, 'npu', npu, raising=False)
    monkeypatch.setattr(torch.accelerator, 'current_accelerator', lambda: type('Device', (), {'type':'npu'})())
    s = get_random_states()
    npu.s = [tensor([9])]
    set_random_states(**s)
    assert int(npu.s[0])==0

@pytest.mark.parametrize('bits', ['MT19937','PCG64'])
def test_half_a_pair_of_normal_numbers_is_kept(bits):
    "A `RandomState` of NumPy draws two at once, and its generator of bits knows nothing of the second one"
    from learnkit.data.random import check_generator_state, generator_state, seed_generator, set_generator_state
    make = lambda: np.random.RandomState(getattr(np.random, bits)(0))
    g,other = make(),make()
    g.randn()
    state = generator_state(g)
    then = g.randn(3).tolist()
    check_generator_state(other, state)
    set_generator_state(other, state)
    assert other.randn(3).tolist()==then
    set_generator_state(other, {k:v for k,v in state.items() if k not in ('has_gauss','gauss')})   # as older checkpoints have it
    assert other.randn(2).tolist()==then[1:]
    seed_generator(g, 3); first = g.randn(3).tolist()
    g.randn(); seed_generator(g, 3)
    assert g.randn(3).tolist()==first
    with pytest.raises(ValueError): check_generator_state(g, {**state, 'gauss':'x', 'has_gauss':1})

def test_the_second_of_a_pair_of_normal_numbers_is_a_draw():
    "NumPy's global generator hands it out without a change of its bits: a step that drew it was not noted, and drew other numbers when it was taken again"
    from learnkit.data.random import find_changed, rng_fingerprints
    from learnkit.data.stateful import StepRecorder
    def drawing():
        while True: yield np.random.randn()
    def steps(n, notes=None):
        np.random.seed(0)
        it = StepRecorder(drawing(), notes)
        def between(): np.random.rand() if len(seen)%3 else np.random.randn()   # what draws as well, as training may
        seen = []
        for _ in range(n): seen.append(next(it)); between()
        return seen,it.states
    np.random.seed(0)
    for _ in range(4):
        before = rng_fingerprints()
        np.random.randn()
        assert find_changed(before, rng_fingerprints())==['numpy_state']
    assert not find_changed(rng_fingerprints(), rng_fingerprints())
    seen,notes = steps(12)
    np.random.seed(0)
    assert [*StepRecorder(drawing(), notes).repeat(12)]==seen
