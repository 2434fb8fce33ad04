"""Whatever is written can be read: each value either comes back equal from a file or raises when it is written."""
import io, math, random, subprocess, sys
from pathlib import Path

import numpy as np, pytest, torch
from hypothesis import given, strategies as st
from torch import nn

from learnkit.all import DataLoaders, Learner, get_random_states, set_random_states
from learnkit.data.stateful import RngStream
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.recovery.file import list_checkpoints, read_checkpoint, write_checkpoint
from learnkit.recovery.export import load_learner
from learnkit.data.files import to_serializable
from learnkit.data.files import read_state
from toys import draws, few, slow

pytestmark = few(10_000, 1)   # of the slow cases of each test; all with LEARNKIT_SWEEP=1

root = Path(__file__).resolve().parents[2]

def equal(a, b):
    "Whether two values are equal bit for bit and of the same types"
    if type(a) is not type(b): return False
    if isinstance(a, torch.Tensor):
        if (a.dtype,a.shape,a.layout)!=(b.dtype,b.shape,b.layout): return False
        if a.layout is not torch.strided: a,b = a.to_dense(),b.to_dense()
        if a.is_quantized: a,b = a.int_repr(),b.int_repr()
        return a.resolve_conj().resolve_neg().contiguous().flatten().view(torch.uint8).equal(b.resolve_conj().resolve_neg().contiguous().flatten().view(torch.uint8))
    if isinstance(a, dict): return [*a]==[*b] and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, (list,tuple)): return len(a)==len(b) and all(map(equal, a, b))
    if isinstance(a, complex): return equal([a.real,a.imag], [b.real,b.imag])
    return a==b and math.copysign(1, a)==math.copysign(1, b) if isinstance(a, float) and a==a else a==b or a!=a and b!=b

def through_a_file(o):
    f = io.BytesIO()
    torch.save(dict(o=to_serializable(o)), f)
    assert equal(to_serializable(o), to_serializable(o, copy=True))
    return read_state(io.BytesIO(f.getvalue()))['o'],to_serializable(o),len(f.getvalue())

# plain values

plain = st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text() | st.binary() | st.sampled_from([2**1999, -2**2040, 10**4000]) | \
    st.sampled_from([np.float32(1.5), np.int8(3), np.bool_(True), np.str_('x'), np.arange(3), np.ones((2,0)), np.array(2.), np.array([1+2j])])
keys  = st.text() | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False) | st.tuples(st.integers(), st.text())
nests = st.recursive(plain, lambda o: st.lists(o) | st.dictionaries(keys, o) | st.tuples(o, o), max_leaves=8)

@draws(50)
@given(nests)
def test_every_value_that_is_written_is_read_back(o):
    "Nested values of any kind that can be written are read back unchanged"
    try: to_serializable(o)
    except TypeError as e: assert 'cannot read' in str(e); return   # numbers of more than 255 bytes, and empty bytes
    got,wanted,_ = through_a_file(o)
    assert equal(got, wanted)

# tensors

class Sub(torch.Tensor): pass
def big(): return torch.randn(200_000)
tensors = dict(
    plain=lambda: torch.randn(3, 4), scalar=lambda: torch.tensor(2.), empty=lambda: torch.ones(0, 3), transposed=lambda: torch.randn(3, 4).T, view=lambda: big()[:12].view(3, 4),
    every_other=lambda: torch.randn(6, 8)[::2, ::2], expanded=lambda: torch.ones(4).expand(3, 4), end_of_a_view=lambda: big()[-3:], grad=lambda: torch.randn(3, requires_grad=True)*2,
    channels_last=lambda: torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last), subclass=lambda: torch.randn(3).as_subclass(Sub), attribute=lambda: tagged(torch.randn(3)),
    parameter=lambda: nn.Parameter(big()[:3]), buffer=lambda: nn.Buffer(torch.ones(3)), conj=lambda: torch.randn(3, dtype=torch.cfloat).conj(), neg=lambda: torch.randn(3, dtype=torch.cfloat).conj().imag,
    coo=lambda: torch.eye(3).to_sparse(), csr=lambda: torch.eye(3).to_sparse_csr(), quantized=lambda: torch.quantize_per_tensor(torch.ones(3), .1, 0, torch.qint8),
    **{str(t): lambda t=t: torch.zeros(3).to(t) for t in (torch.bfloat16, torch.half, torch.double, torch.bool, torch.uint8, torch.int64, torch.uint16, torch.uint64, torch.float8_e4m3fn, torch.complex128)})

def tagged(t): t.tag = object(); return t

@pytest.mark.parametrize('name', tensors)
def test_every_tensor_is_read_back(name):
    "A subclass, a view, a conjugate, a sparse tensor … is read as a plain tensor, in no more bytes than it has"
    t = tensors[name]()
    got,wanted,n = through_a_file(t)
    assert type(got) is torch.Tensor and equal(got, wanted) and not hasattr(got, 'tag')
    assert n<6000, 'the storage of a view was written as a whole'
    if t.layout is torch.strided and not t.is_quantized: assert torch.equal(got.to(torch.complex128), t.detach().as_subclass(torch.Tensor).to(torch.complex128))

@pytest.mark.parametrize('t', [torch.ones(3, device='meta'), torch.masked.masked_tensor(torch.ones(3), torch.ones(3).bool())], ids=['meta', 'wrapper'])
def test_tensors_without_values_of_their_own_raise(t):
    with pytest.raises(TypeError, match='`a.b` is .* which a checkpoint cannot hold'): to_serializable({'a':{'b':t}})

# weights

class Odd(nn.Linear):
    "A model with the given weight as parameter or buffer, and a version, as modules of PyTorch have"
    _version = 2
    def __init__(self, w, how):
        super().__init__(4, 1)
        if how=='parameter': self.own = w if isinstance(w, nn.Parameter) else nn.Parameter(w, requires_grad=False)
        else: self.register_buffer('own', w)
    def _load_from_state_dict(self, state, prefix, meta, *args):
        assert meta.get('version')==2, 'weights of another version would be converted'
        super()._load_from_state_dict(state, prefix, meta, *args)

def learner(model, path, **kwargs):
    x = torch.randn(4, 4)
    learn = Learner(DataLoaders([(x, x[:,:1])]*3), model, nn.MSELoss(), path=path, **kwargs)
    return learn.remove_cb(learn.progress)

@few(16, 12)
@pytest.mark.parametrize('name', [n for n in tensors if n not in ('grad','csr','coo','quantized')])
@pytest.mark.parametrize('how', ['parameter', 'buffer'])
def test_weights_of_every_kind(name, how, tmp_path):
    "Weights of a tensor subclass could not be read, views wrote their whole storage, module versions were lost"
    w = tensors[name]().detach() if how=='buffer' or not isinstance(tensors[name](), nn.Parameter) else tensors[name]()
    if name=='expanded':
        learn = learner(Odd(w, how), tmp_path, cbs=CheckpointCallback())
        with learn.no_logging(), pytest.raises(ValueError, match='own is an expanded tensor in the model'): learn.fit(1)
        return
    model = Odd(w, how)
    learn = learner(model, tmp_path, cbs=CheckpointCallback('1ba'))
    with learn.no_logging(): learn.fit(1)
    state = read_checkpoint(list_checkpoints(learn.checkpoint.folder)[0])
    exported = learn.export('e')
    for f in (learn.save('x'), learn.save('y', with_opt=False), exported, *list_checkpoints(learn.checkpoint.folder)): assert f.stat().st_size<40_000
    values = {k:v.clone() for k,v in model.state_dict().items()}
    def spoil():
        with torch.no_grad(): model.weight.add_(1)
    for read in (lambda: learn._restore(state), lambda: learn.load('x'), lambda: learn.load('y', with_opt=False), lambda: load_learner(exported, model)):
        spoil(); read()
        assert all(torch.equal(v.to(torch.complex128), values[k].to(torch.complex128)) for k,v in model.state_dict().items())

class Extra(nn.Linear):
    def get_extra_state(self): return object()
    def set_extra_state(self, s): pass

def test_values_that_cannot_be_loaded_raise_when_saved(tmp_path):
    "`learn.save` used to write what `learn.load` then rejected"
    learn = learner(Extra(4, 1), tmp_path)
    for f in (learn.save, learn.export):
        with pytest.raises(TypeError, match='extra_state` is of type object, which a checkpoint cannot hold'): f('x')
    assert not list(tmp_path.rglob('*.*'))

# random numbers

def torch_state(left, after, state=None):
    s = torch.get_rng_state() if state is None else state.clone()
    s[8:12].view(torch.int32)[0],s[16:24].view(torch.int64)[0] = left,after
    return s

def numpy_state(pos): s = get_random_states()['numpy_state']; return {**s, 'state':{**s['state'], 'pos':pos}}
philox = np.random.Philox(1).state
hostile = dict(numpy={f'pos {p}': numpy_state(p) for p in (-1, -2**31, 625, 10**6, 2**31-1, 2**80, 1.5, None, 'x')} | {
                   'philox': {**philox, 'buffer_pos':-10**6}, 'list': [], 'short': {'bit_generator':'MT19937', 'state':{'key':[1], 'pos':3}}, 'tuple': ('MT19937', [1]*624, 10**7, 0, 0.)},
               torch={f'{l} {a}': torch_state(l, a) for l,a in ((624, 624), (2, 624), (0, 0), (-1, 0), (624, 2), (1, 625), (1, -1), (1, 2**32), (5, 2**62))} | {
                   'short': torch.zeros(5, dtype=torch.uint8), 'float': torch.zeros(5056), 'text': 'x', 'zeros': torch.zeros(5056, dtype=torch.uint8)})

@pytest.mark.parametrize('which,name', [(w,n) for w in hostile for n in hostile[w]])
def test_random_states_with_invalid_positions(which, name, tmp_path):
    "NumPy and PyTorch do not check the position in a state; an untrusted checkpoint let them read out of bounds"
    bad,before = hostile[which][name],get_random_states()
    with pytest.raises((ValueError, TypeError, OverflowError, IndexError, RuntimeError) if name in ('short','zeros') and which=='torch' else ValueError): set_random_states(**{which+'_state':bad})
    assert equal(to_serializable(before), to_serializable(get_random_states()))
    stream = RngStream(0)
    with stream: torch.rand(1)
    py,th,nump = stream.state_dict()
    if which=='numpy' or name not in ('short','zeros'):
        with pytest.raises(ValueError): stream.load_state_dict((py, bad, nump) if which=='torch' else (py, th, bad))
    learn = learner(nn.Linear(4, 1), tmp_path)
    with learn.no_logging(): learn.fit(1)
    state = learn._run_state(1)
    with pytest.raises(ValueError): learn._restore({**state, 'rng':{**state['rng'], which+'_state':bad}})

def test_no_undamaged_state_raises():
    "States after any number of draws of any kind are accepted"
    r = random.Random(0)
    for i in range(1400):
        set_random_states(**to_serializable(get_random_states()))
        torch.rand(r.choice([1, 1, 3, 623])); np.random.rand(r.choice([1, 1, 3, 311]))
        if i%50==0: torch.randn(1), np.random.randn()

draw = '''
import sys, random, numpy as np, torch
sys.path.insert(0, {root!r})
from learnkit.all import get_random_states, set_random_states
r,n = random.Random({seed}),0
for i in range(3000):
    good,s = get_random_states(),torch.get_rng_state()
    nump = good['numpy_state']
    nump['state']['pos'] = r.choice([r.randrange(-5, 640), r.getrandbits(32)-2**31])
    for a,b in ((8,12), (16,24)):
        if r.random()<.7: s[a:b] = torch.tensor([*r.choice([r.randrange(700), r.getrandbits(31), r.getrandbits(8*(b-a))]).to_bytes(8, 'little')[:b-a]], dtype=torch.uint8)
    for bad in (dict(numpy_state=nump), dict(torch_state=s)):
        try: set_random_states(**bad)
        except (ValueError, RuntimeError): n += 1; continue
        assert (np.random.bytes(10_000), torch.rand(2000).lt(1).all())
    torch.manual_seed(i); np.random.seed(i)
assert n>3000, n
'''
@pytest.mark.slow
@pytest.mark.parametrize('seed', range(4))
def test_random_damage_to_states(seed):
    "States with random changes raise or can draw numbers, and the process does not crash"
    p = subprocess.run([sys.executable, '-c', draw.format(root=str(root), seed=seed)], capture_output=True, text=True)
    assert p.returncode==0, (p.returncode, p.stderr[-2000:])

# untrusted checkpoints

_strange = dict(place_list=dict(place=[1]), place_number=dict(place=3), place_lacks=dict(place=dict(data=1)), place_more=dict(place=dict(data=1, ended=2, rng=3, x=4)),
                no_epochs=dict(n_epoch=None), epoch=dict(epoch='x'), rng=dict(rng=[]))

@pytest.mark.parametrize('name', _strange)
def test_a_run_does_not_resume_from_an_invalid_checkpoint(name, tmp_path):
    "Wrong parts with valid checksums raise a ValueError, not a KeyError, and leave the Learner unchanged"
    learn = learner(nn.Linear(4, 1), tmp_path, cbs=CheckpointCallback('1ba'))
    with learn.no_logging(): learn.fit(1)
    state = {**learn._run_state(0), 'place':None, **_strange[name]}
    if name=='no_epochs': del state['n_epoch']
    folder = learn.checkpoint.folder
    for p in folder.iterdir(): p.unlink()
    write_checkpoint({'train_iter':3, **state}, folder/'step-00000003.pth', finished=True)
    other = learner(nn.Linear(4, 1), tmp_path, cbs=CheckpointCallback('1ba'))
    before = {k:v.clone() for k,v in other.model.state_dict().items()}
    with other.no_logging(), pytest.raises(ValueError): other.fit(1, resume='auto')
    assert equal(before, dict(other.model.state_dict()))
