"""Batches go to an accelerator on a stream of their own, and the loop computes with what it would have had. The accelerator here is one in name only:
its copies are made as late as they may. tests/device has one that does more."""
from collections import UserDict, namedtuple
from dataclasses import dataclass

import pytest, torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence

from learnkit.learner.buffer import TensorBuffer
from learnkit.loop.callback import Callback
from learnkit.data.loaders import DataLoaders
from learnkit.loop.events import CancelBatch
from learnkit.learner.learner import Learner
from learnkit.data.nested import leaves
from learnkit.learner.bars import ProgressCallback
from learnkit.loop.run import null_logger
from learnkit.data.device import Transfer, get_copy_stream, is_plain_batch
from toys import at, throw, weights

BS,PER = 4,6

class Copy(torch.Tensor):
    "A tensor on the accelerator: it has its values when somebody has waited for them"
    def record_stream(self, s): self.users.append(s.name)

class Stream:
    "Of the accelerator; copies are made when the stream that computes, or the program, waits for them"
    def __init__(self, name): self.name,self.pending,self.copies,self.told,self.on = name,[],[],[],False
    def __enter__(self): self.on = True
    def __exit__(self, *args): self.on = False
    def copy(self, o):
        assert self.on
        res = torch.full_like(o, .77).as_subclass(Copy)
        res.users = []
        self.pending.append((res, o)); self.copies.append(res)
        return res
    def query(self): return not self.pending
    def synchronize(self):
        self.told.append(len(self.pending))
        for there,here in self.pending: there.data.copy_(here)
        self.pending.clear()

class Main:
    name = 'main'
    def wait_stream(self, s): s.synchronize()

class Late(Main):
    "Copies are made no sooner than the program waits for them, or asks for the next batch"
    def wait_stream(self, s): pass

@pytest.fixture
def device(monkeypatch):
    "Learners whose batches go to the accelerator; the model is on the CPU, and so are the copies"
    stream = Stream('copies')
    def use(self): transfer = self.current_run.transfer = Transfer(torch.device('cpu')); transfer.stream = stream
    monkeypatch.setattr(Learner, '_use_device', use)
    monkeypatch.setattr(Transfer, '_copy', lambda self, o: stream.copy(o) if isinstance(o, torch.Tensor) else o)
    monkeypatch.setattr(torch.accelerator, 'current_stream', lambda device: Main())
    return stream

def batch(i): return torch.full((BS, 4), i/4.),torch.ones(BS, 1)
def data(): return [batch(i) for i in range(PER)]

class Seen(Callback):
    "What the loop got"
    order = 2000
    def before_fit(self): self.noted = []
    def before_batch(self): self.noted.append([o.as_subclass(torch.Tensor).clone() for o in leaves((self.learn.xb, self.learn.yb)) if isinstance(o, torch.Tensor)])

def run(*cbs, n=2, data=data, model=None):
    torch.manual_seed(42)
    learn = Learner(DataLoaders(data(), data()), model or nn.Sequential(nn.Linear(4, 8), nn.Dropout(.5), nn.Linear(8, 1)), nn.MSELoss(), torch.optim.SGD, lr=.05, cbs=[Seen(), *cbs])
    learn.remove_cb(ProgressCallback)
    learn.logger = null_logger
    learn.fit(n)
    return [[o.tolist() for o in b] for b in learn.seen.noted],weights(learn).tolist(),str(learn.recorder.values)

@pytest.fixture
def plain(): return run()

def test_copies_stand_in_for_batches(plain, device):
    kinds = dict(batch=[], loop=[])
    def note(cb):
        learn = cb.learn
        kinds['batch'].append({type(o) for o in learn.batch}); kinds['loop'].append({type(o) for o in (*learn.xb, *learn.yb)})
    assert run(at('before_batch', note))==plain
    assert kinds==dict(batch=[{torch.Tensor}]*4*PER, loop=[{Copy}]*4*PER)
    assert device.told==[2]*4*PER and all(c.users==['main'] for c in device.copies)

Pair = namedtuple('Pair', 'x y')
STRUCTURES = dict(tuple=batch, list=lambda i: list(batch(i)), dict=lambda i: dict(x=batch(i)[0], y=batch(i)[1]), user_dict=lambda i: UserDict(x=batch(i)[0], y=batch(i)[1]), named=lambda i: Pair(*batch(i)),
                  nested=lambda i: ((batch(i)[0], dict(name='a', n=3, more=[batch(i)[0]])), batch(i)[1]), tensor=lambda i: batch(i)[0])

class Takes(nn.Module):
    "Takes whatever comes"
    def __init__(self): super().__init__(); self.lin = nn.Linear(4, 1)
    def forward(self, *args, **kw): return self.lin(next(o for o in leaves((args, kw)) if isinstance(o, torch.Tensor)))

@pytest.mark.filterwarnings('ignore:the batch has no target')
@pytest.mark.parametrize('kind', STRUCTURES)
def test_nested_batches(kind, device, monkeypatch):
    made = lambda: [STRUCTURES[kind](i) for i in range(PER)]
    res = run(data=made, model=Takes())
    assert device.copies and all(c.users==['main'] for c in device.copies)
    here = Transfer(torch.device('cpu'))(made()[0])
    assert type(here) is type(made()[0]) and [type(o) for o in leaves(here)]==[type(o) for o in leaves(made()[0])]
    monkeypatch.undo()
    assert run(data=made, model=Takes())==res

class Odd:
    "Knows how to move"
    def __init__(self, x): self.x = x
    def to(self, device): return self

@dataclass
class Record:
    x: torch.Tensor

@pytest.mark.parametrize('odd', [lambda: Odd(torch.ones(2)), lambda: Record(torch.ones(2)), lambda: pack_sequence([torch.ones(3), torch.ones(2)]), lambda: torch.eye(3).to_sparse(), lambda: torch.ones(2, requires_grad=True),
                                 lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)], ids=['own','dataclass','packed','sparse','gradient','nested'])
def test_what_is_not_ordinary_moves_as_usual(odd, device):
    b = torch.ones(4, 4),odd()
    assert not is_plain_batch(b) and not is_plain_batch(dict(x=[b])) and is_plain_batch(b[:1])
    assert not is_plain_batch(torch.ones(2, device='meta'))
    transfer = Transfer(torch.device('cpu')); transfer.stream = device
    assert transfer(b)[0] is b[0] and not device.copies

def test_a_dataclass_is_moved(device):
    "It was taken for a leaf without tensors, and stayed on the CPU"
    transfer = Transfer(torch.device('meta')); transfer.stream = device
    assert transfer(Record(torch.ones(2))).x.is_meta and transfer([Record(torch.ones(2))])[0].x.is_meta

def test_what_callbacks_change_is_copied(plain, device):
    change = lambda cb: setattr(cb.learn, 'batch', [o*2 for o in cb.learn.batch]) if cb.learn.iter==1 else cb.learn.batch[0].add_(1)
    fresh = lambda: type('Fresh', (), {'__iter__': lambda self: iter(data())})()
    changed = run(at('after_fetch', change), data=fresh)
    assert changed!=plain and changed[0][1][0][0][0]==.5 and changed[0][2][0][0][0]==1.5

def test_a_cancelled_fetch_copies_nothing(device):
    run(at('after_fetch', throw(CancelBatch()), lambda cb: cb.learn.iter==1), n=1)
    assert len(device.copies)==2*2*(PER-1)

class OneMemory:
    "A loader that writes each batch into the same memory, which it has pinned"
    def __init__(self): self.b = [torch.zeros(BS, 4), torch.ones(BS, 1)]
    def __len__(self): return PER
    def __iter__(self):
        for i in range(PER): self.b[0].fill_(i/4); yield self.b

def test_a_loader_may_write_to_its_memory_again(plain, device, monkeypatch):
    "… when the next batch is asked for, even if the accelerator is late: nothing but the copy is waited for"
    monkeypatch.setattr(torch.accelerator, 'current_stream', lambda device: Late())
    monkeypatch.setattr(Transfer, '_copy', lambda self, o: setattr(self, 'borrows', True) or device.copy(o))
    got = []
    run(at('after_batch', lambda cb: got.append(cb.learn.xb[0])), data=OneMemory)
    assert [o[0,0].item() for o in got]==[i/4 for i in range(PER)]*4

def test_pinned_once():
    "What the loader has pinned is not pinned again, and read where it is; all is copied without waiting"
    calls = []
    class Host(torch.Tensor):
        pinned = False
        def is_pinned(self): return self.pinned
        def pin_memory(self): calls.append('pin'); return host(True)
        def to(self, device, non_blocking): calls.append((str(device), non_blocking, self.pinned)); return self
    def host(pinned): o = torch.ones(1).as_subclass(Host); o.pinned = pinned; return o
    transfer = Transfer(torch.device('cpu'))
    transfer._copy(host(False))
    assert calls==['pin', ('cpu', True, True)] and not transfer.borrows and transfer._copy('text')=='text'
    transfer._copy(host(True))
    assert calls[2:]==[('cpu', True, True)] and transfer.borrows

@pytest.mark.parametrize('kind,has', [('cuda', True), ('xpu', True), ('mps', False)])
def test_one_stream_for_each_device(kind, has, monkeypatch):
    monkeypatch.setattr(torch.accelerator, 'current_accelerator', lambda: torch.device(kind))
    monkeypatch.setattr(torch, 'Stream', lambda device: [device])
    get_copy_stream.cache_clear()
    streams = [get_copy_stream(torch.device(kind, i)) for i in (0, 1, 0)]
    assert get_copy_stream(torch.device('cpu')) is get_copy_stream(torch.device('meta')) is None
    get_copy_stream.cache_clear()
    assert streams[0] is streams[2] and (streams[1] is not streams[0])==has and (streams[0] is not None)==has

class Far(torch.Tensor):
    "A tensor on the accelerator; its copy has the values when somebody has waited for the event"
    is_cpu = False
    def to(self, where, non_blocking):
        assert non_blocking
        late = torch.full_like(self.as_subclass(torch.Tensor), 77)
        Far.due.append((late, self.as_subclass(torch.Tensor).clone()))
        return late

class Event:
    def __init__(self): self.due,Far.due = Far.due,[]
    def synchronize(self):
        Far.waits += 1
        for late,t in self.due: late.copy_(t)

@pytest.mark.parametrize('kw', [{}, dict(positions=torch.randperm(24, generator=torch.Generator().manual_seed(0))), dict(dtype=torch.float16), dict(file='preds.pt')], ids=['plain','positions','dtype','file'])
@pytest.mark.parametrize('held,blocks', [(1, 12), (3, 5), (99, 2)])   # the first batch goes alone
def test_results_come_back_behind_the_computation(kw, held, blocks, monkeypatch, tmp_path):
    "Each block is waited for when the next one leaves, and the last one at the end; what the model then writes there does not matter"
    Far.due,Far.waits = [],0
    monkeypatch.setattr('learnkit.data.device.get_copy_stream', lambda device: 'copies')
    monkeypatch.setattr(torch.accelerator, 'current_stream', lambda device: type('S', (), {'record_event': lambda self: Event()})())
    def buffer(name): return TensorBuffer(n=24, **({**kw, 'file':tmp_path/name} if 'file' in kw else kw))
    near,far,x = buffer('near.pt'),buffer('far.pt'),torch.rand(24, 3)
    for i,t in enumerate(x.split(2)):
        near.append(t)
        t = t.clone().as_subclass(Far)
        far.append(t)
        far.max_pending = held
        t.fill_(5)
        assert Far.waits<=i//held   # the computation goes on
    assert torch.equal(far.value, near.value) and far.value.dtype==near.value.dtype and Far.waits==blocks
