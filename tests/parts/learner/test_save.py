"""Save and load: files are written completely or not at all, and what was saved is what is loaded."""
import io

import pytest, torch
from torch import nn

from learnkit.all import CheckpointCallback
from learnkit.learner.save import check_state, find_writer
from learnkit.data.files import atomic, check_zip, write_atomic
from learnkit.learner.learner import Learner
from learnkit.data.files import read_state
from toys import weights

def learner(path, width=3, **kw):
    torch.manual_seed(0)
    batch = torch.ones(4, 2),torch.ones(4, 1)
    net = nn.Sequential(nn.Linear(2, width), nn.BatchNorm1d(width), nn.Linear(width, 1))
    learn = Learner(([batch], [batch]), net, nn.MSELoss(), path=path, **kw)
    learn.logger = lambda *a: None
    return learn.remove_cb(learn.progress)

def same(a, b): return all(torch.equal(i, j) for i,j in zip(a, b, strict=True))

# atomic files

class Full(io.RawIOBase):
    "A disk that is full after some bytes"
    def __init__(self, f, room): self.f,self.room = f,room
    def write(self, b):
        self.room -= len(b)
        if self.room<0: raise OSError(28, 'No space left on device')
        return self.f.write(b)

@pytest.mark.parametrize('room', [0, 100, 1000])
def test_a_full_disk_leaves_the_old_file(room, tmp_path):
    "`torch.save` raises a RuntimeError there: the cause is raised instead"
    path = write_atomic(dict(a=torch.zeros(3)), tmp_path/'m.pth')
    with pytest.raises(OSError, match='No space left'), atomic(path) as f:
        f.f = Full(f.f, room)
        torch.save(dict(a=torch.ones(1000)), f)
    assert torch.equal(read_state(path)['a'], torch.zeros(3)) and [p.name for p in tmp_path.iterdir()]==['m.pth']

@pytest.mark.parametrize('exc', [KeyboardInterrupt, RuntimeError, ValueError])
def test_an_exception_leaves_no_temporary_file(exc, tmp_path):
    with pytest.raises(exc), atomic(tmp_path/'sub'/'m.pth') as f:
        f.write(b'x')
        raise exc('stop')
    assert not any((tmp_path/'sub').iterdir())

def test_the_file_appears_when_it_is_complete(tmp_path):
    with atomic(tmp_path/'m.txt') as f:
        f.write(b'one')
        assert not (tmp_path/'m.txt').exists()
        f.write(b'two')
    assert (tmp_path/'m.txt').read_bytes()==b'onetwo'

# names, open files, parts

def test_file_path(tmp_path):
    learn = learner(tmp_path)
    want = {'m':'m.pth', 'm.pth':'m.pth', 'a.b':'a.b.pth', 'm.safetensors':'m.safetensors', 'sub/m':'sub/m.pth'}
    for name,path in want.items(): assert learn._make_file_path(name)==tmp_path/'models'/path

@pytest.mark.parametrize('with_opt', [True, False])
def test_an_open_file(with_opt, tmp_path):
    a,b,f = learner(tmp_path),learner(tmp_path),io.BytesIO()
    a.fit(2)
    assert a.save(f, with_opt=with_opt) is f
    f.seek(0)
    b.load(f)
    assert torch.equal(weights(a), weights(b)) and (b.opt is not None)==with_opt
    with open(tmp_path/'m.safetensors', 'wb') as f, pytest.raises(ValueError, match='pass the path'): a.save(f)

def test_load_without_the_optimizer(tmp_path):
    a,b = learner(tmp_path),learner(tmp_path)
    a.fit(2); a.save('m')
    b.load('m', with_opt=False)
    assert torch.equal(weights(a), weights(b)) and b.opt is None

def test_load_what_fits(tmp_path):
    a,b = learner(tmp_path),learner(tmp_path)
    a.fit(2)
    torch.save({k:v for k,v in a.model.state_dict().items() if k!='2.bias'}, tmp_path/'part.pth')
    with pytest.raises(ValueError, match='they lack 2.bias. To load the weights that fit, write `strict=False`'): b.load(tmp_path/'part.pth')
    b.load(tmp_path/'part.pth', strict=False)
    assert torch.equal(b.model[0].weight, a.model[0].weight) and not torch.equal(b.model[2].bias, a.model[2].bias)

@pytest.mark.parametrize('strict', [True, False])
def test_another_model(strict, tmp_path):
    learner(tmp_path, width=5).save('m')
    learn = learner(tmp_path)
    before = weights(learn)
    with pytest.raises(ValueError, match='shapes differ: 0.weight'): learn.load('m', strict=strict)
    with pytest.raises(ValueError, match='they lack 0.weight'): check_state(learn.model, {'w':torch.ones(1)}, strict)
    assert torch.equal(weights(learn), before)

# safetensors

class Tied(nn.Module):
    "Two layers that share a weight, and a buffer of integers"
    def __init__(self):
        super().__init__()
        self.a,self.b = nn.Linear(4, 3),nn.Linear(4, 3)
        self.b.weight = self.a.weight
        self.register_buffer('n', torch.zeros((), dtype=torch.long))

def test_tied_weights_narrow_types_and_views(tmp_path):
    model = Tied()
    model.narrow = nn.Parameter(torch.randn(3, 4, dtype=torch.bfloat16).t())
    learn = Learner(([],), model, nn.MSELoss(), path=tmp_path)
    learn.save('m.safetensors')
    other = Tied()
    other.narrow = nn.Parameter(torch.zeros(4, 3, dtype=torch.bfloat16))
    Learner(([],), other, path=tmp_path).load('m.safetensors')
    assert same(model.state_dict().values(), other.state_dict().values()) and other.a.weight is other.b.weight

def test_the_optimizer_is_left_as_it_is(tmp_path):
    learn = learner(tmp_path)
    learn.fit(1)
    learn.save('m.safetensors')
    state = learn.opt.state_dict()
    with pytest.warns(UserWarning, match='no optimizer state: the optimizer is not changed'): learn.load('m.safetensors')
    assert learn.opt.state_dict()==state

class Extra(nn.Linear):
    "A layer whose state has a value that is not a tensor"
    def get_extra_state(self): return {'a':1}
    def set_extra_state(self, state): pass

def test_safetensors_holds_tensors_only(tmp_path):
    learn = Learner(([],), Extra(2, 2), nn.MSELoss(), path=tmp_path)
    with pytest.raises(TypeError, match="'_extra_state' is a dict: save as .pth"): learn.save('m.safetensors')
    assert not (tmp_path/'models').exists()

@pytest.mark.parametrize('suffix', ['', '.safetensors', '.bin'])
def test_no_kind_of_file_replaces_another(suffix, tmp_path):
    "`export('digits')` wrote over what `save('digits')` had written: the optimizer's state was gone"
    learn,a,b = learner(tmp_path),f'a{suffix}',f'b{suffix}'
    learn.fit(1)
    saved,exported = learn.save(a),learn.export(b)
    before = saved.read_bytes(),exported.read_bytes()
    assert (find_writer(saved), find_writer(exported), find_writer(tmp_path/'none.pth'))==('save', 'export', None)
    with pytest.raises(FileExistsError, match='was written by `learn.save`, and `learn.export` would replace it'): learn.export(a)
    with pytest.raises(FileExistsError, match='was written by `learn.export`'): learn.save(b)
    assert (saved.read_bytes(), exported.read_bytes())==before
    learn.save(a, with_opt=False); learn.save(a); learn.export(b)   # the same kind
    saved.unlink(); learn.export(a)
    assert find_writer(saved)=='export'

def test_no_checkpoint_is_replaced(tmp_path):
    learn = learner(tmp_path, cbs=CheckpointCallback())
    learn.fit(1)
    path = next(tmp_path.rglob('*.pth')).absolute()
    assert find_writer(path)=='checkpoint'
    with pytest.raises(FileExistsError, match='was written by `CheckpointCallback`'): learn.save(path)

def test_a_file_that_cannot_be_read_is_replaced(tmp_path):
    learn = learner(tmp_path)
    for name in ('a.pth','a.safetensors'):
        path = learn._make_file_path(name)
        path.parent.mkdir(exist_ok=True)
        for content in (b'', b'PK\3\4' + b'x'*100, b'\xff'*20):
            path.write_bytes(content)
            learn.save(name)
            learn.load(name)

# archives

def is_accepted(archive):
    "Return whether `check_zip` accepts these bytes; False if it raises ValueError"
    try: check_zip(io.BytesIO(archive))
    except ValueError: return False
    return True

def test_a_truncated_or_changed_archive_raises_only_ValueError():
    f = io.BytesIO()
    torch.save(dict(a=torch.arange(24.), b='x'), f)
    whole = f.getvalue()
    assert is_accepted(whole)
    assert not any(is_accepted(whole[:n]) for n in range(0, len(whole), 5))
    def change(i): return whole[:i] + bytes([whole[i]^255]) + whole[i+1:]
    accepted = [is_accepted(change(i)) for i in range(len(whole))]   # the bytes of some fields have no effect
    assert 0<sum(accepted)<len(whole)/2
