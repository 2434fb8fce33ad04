"""Batches that are objects: with a method `to(device)`, as graphs are, or dataclasses. Trained, validated and predicted as in a
hand-written loop; what would have to cut or blend them raises an error"""
from dataclasses import dataclass

import numpy as np, pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD
from learnkit.callbacks.accumulate import GradientAccumulation, MicroBatch, split_samples
from learnkit.callbacks.mixup import CutMix, MixUp
from learnkit.data.batch import find_bs, find_device, select_samples, split_batch, to_half
from learnkit.data.device import to_device
from learnkit.data.explain import find_nan_in_batch
from learnkit.learner.learner import Learner
from learnkit.loop.run import null_logger
from learnkit.processes import shard
from learnkit.speed.batch_size import batch_of

class Graph:
    "Nodes of several graphs, and the graph of each node"
    def __init__(self, x, graph, y): self.x,self.graph,self.y = x,graph,y
    def to(self, device): return Graph(*(o.to(device) for o in (self.x, self.graph, self.y)))
    @property
    def batch_size(self): return len(self.y)

@dataclass
class Record:
    x: torch.Tensor
    graph: torch.Tensor
    y: torch.Tensor

class Net(nn.Module):
    def __init__(self): super().__init__(); self.lin = nn.Linear(3, 2)
    def forward(self, b): return torch.zeros(len(b.y), 2).index_add(0, b.graph, self.lin(b.x))

def batch(make, seed, n=4):
    g = torch.Generator().manual_seed(seed)
    graph = torch.arange(n).repeat_interleave(torch.arange(n)+1)
    return make(torch.randn(len(graph), 3, generator=g), graph, torch.randint(0, 2, (n,), generator=g))

def learner(make, *cbs):
    torch.manual_seed(0)
    train,valid = [batch(make, i, 4+i%2) for i in range(6)],[batch(make, 9)]
    learn = Learner((train, valid), Net(), F.cross_entropy, SGD, lr=.1, cbs=cbs)
    learn.logger = null_logger
    return learn.remove_cb(learn.progress)

every_kind = pytest.mark.parametrize('make', [Graph, Record])

@every_kind
def test_trained_and_predicted_as_by_hand(make):
    learn,model = learner(make),Net()
    model.load_state_dict(learn.model.state_dict())
    opt = SGD(model.parameters(), lr=.1)
    for b in learn.dls.train:
        F.cross_entropy(model(b), b.y).backward(); opt.step(); opt.zero_grad()
    learn.fit(1)
    assert all(map(torch.equal, model.parameters(), learn.model.parameters()))
    valid, = learn.dls.valid
    preds,targs = learn.get_preds(act=lambda o: o)
    assert torch.equal(preds, model(valid).detach()) and torch.equal(targs, valid.y)
    assert learn.validate()[0]==pytest.approx(F.cross_entropy(model(valid), valid.y).item())
    inputs = learn.get_preds(with_input=True)[0]
    if make is Graph: inputs, = inputs   # one for each batch; the fields of dataclasses are concatenated
    assert type(inputs) is make and torch.equal(inputs.x, valid.x)

@every_kind
def test_size_device_and_target(make):
    b = batch(make, 0)
    assert find_bs(b)==(4 if make is Graph else 10)   # of a dataclass the length of its first tensor
    xb,yb = split_batch(b)
    assert xb==(b,) and yb[0] is b.y and find_bs(yb)==4
    assert split_batch(b, n_inp=1)==((b,), ())
    moved = to_device(b, 'meta')
    assert type(moved) is make and moved.x.is_meta and moved.y.is_meta and not b.x.is_meta
    if make is Record: assert find_device(moved)==torch.device('meta')

def test_nested_in_a_container():
    b = batch(Record, 0)
    assert to_device(dict(g=b, n=1), 'meta')['g'].x.is_meta and split_batch((b, b.y))==((b,), (b.y,))

@dataclass
class Rows:
    x: torch.Tensor
    y: torch.Tensor

def test_samples_of_a_dataclass_are_cut():
    rows = Rows(torch.arange(12.).view(4, 3), torch.arange(4))
    cut = select_samples(rows, [0, 2], 4)
    assert type(cut) is Rows and cut.y.tolist()==[0, 2] and torch.equal(cut.x, rows.x[[0, 2]])
    class Linear(nn.Module):
        def __init__(self): super().__init__(); self.lin = nn.Linear(3, 4)
        def forward(self, b): return self.lin(b.x)
    def trained(*cbs):
        torch.manual_seed(0)
        learn = Learner(([rows], [rows]), Linear(), F.cross_entropy, SGD, lr=.1, cbs=cbs)
        learn.logger = null_logger
        learn.remove_cb(learn.progress).fit(2)
        return learn.model.lin.weight
    assert torch.allclose(trained(MicroBatch(1)), trained(), atol=1e-6)

@dataclass
class Masked(Rows):
    "`__post_init__` sets another attribute"
    def __post_init__(self): self.mask = self.x>0

def test_arrays_are_split_with_the_samples():
    "Each micro-batch had the array of the whole batch"
    b = (dict(x=torch.arange(4.), a=np.arange(4), w=np.ones(3), n=np.array(4), text='abcd'),),(torch.arange(4),)
    first,second = split_samples(b, 3, 4)
    assert str(second)==str(((dict(x=torch.tensor([3.]), a=np.array([3]), w=np.ones(3), n=np.array(4), text='abcd'),),(torch.tensor([3]),)))
    assert first[0][0]['a'].tolist()==[0, 1, 2]

@dataclass(frozen=True, slots=True)
class Fixed:
    x: torch.Tensor

def test_attributes_that_post_init_sets_are_kept():
    "Moved, cut and converted like the fields; they were missing in the copy"
    rows = Masked(torch.arange(12.).view(4, 3), torch.arange(4))
    assert to_device(rows, 'cpu').mask is rows.mask and to_device(rows, 'meta').mask.is_meta
    assert torch.equal(select_samples(rows, [0, 2], 4).mask, rows.mask[[0, 2]])
    half, = split_samples((rows,), 2, 4)[1]
    assert torch.equal(half.mask, rows.mask[2:]) and to_half(rows).mask is rows.mask and len(rows.mask)==4
    assert to_half(Fixed(rows.x)).x.dtype is torch.half and rows.x.dtype is torch.float

def test_values_in_objects_are_compared():
    "Processes took batches of different values for the same data, and each used a part of its own; NaN was not found"
    def wrap(kind, x): return kind(x, torch.arange(4), torch.ones(4))
    for kind in (Graph, Record):
        one,other = wrap(kind, torch.ones(4, 3)),wrap(kind, torch.zeros(4, 3))
        assert shard._fingerprint([one])==shard._fingerprint([wrap(kind, torch.ones(4, 3))])!=shard._fingerprint([other])
        assert find_nan_in_batch((one,), ()) is None
        one.x[1] = torch.nan
        assert find_nan_in_batch((one,), ())=='the input `xb[0]`'

@pytest.mark.parametrize('cb,error', [(MicroBatch(2), 'cannot be split: write MicroBatch'), (MixUp(), 'not a Graph')])
def test_what_cannot_cut_an_object_raises(cb, error):
    with pytest.raises((TypeError,ValueError), match=error): learner(Graph, cb).fit(1)

def test_an_object_is_not_cut_in_silence():
    b = batch(Graph, 0)
    with pytest.raises(ValueError, match='Samples of a Graph'): select_samples(b, [0], 4)
    with pytest.raises(ValueError, match='Graph cannot be resized'): batch_of((b, b.y), 8)
    with pytest.raises(ValueError): learner(Graph, CutMix()).fit(1)
    class Unknown:
        def to(self, device): return self
    with pytest.raises(ValueError, match='no object with a `batch_size`'): find_bs(Unknown())
    with pytest.raises(TypeError, match='a dataclass, or an object with a method'): split_batch(object())

def test_steps_by_samples():
    learn = learner(Graph, GradientAccumulation(8))
    learn.fit(1)
    assert learn.train_steps==3   # after 9 and 18 of 27 samples, and at the end

@pytest.mark.slow
def test_pytorch_geometric():
    "Tried with torch_geometric 2.8.1"
    pytest.importorskip('torch_geometric')
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn import GCNConv, global_mean_pool
    class GCN(nn.Module):
        def __init__(self): super().__init__(); self.conv,self.head = GCNConv(4, 8),nn.Linear(8, 2)
        def forward(self, b): return self.head(global_mean_pool(self.conv(b.x, b.edge_index).relu(), b.batch))
    def graph(i):
        g = torch.Generator().manual_seed(i)
        x = torch.randn(3+i%4, 4, generator=g)
        return Data(x=x, edge_index=torch.randint(0, len(x), (2, 9), generator=g), y=(x.mean()>0).long().view(1))
    data = [*map(graph, range(48))]
    dls = DataLoader(data[:32], batch_size=8, shuffle=True),DataLoader(data[32:], batch_size=8)
    torch.manual_seed(0)
    learn = Learner(dls, GCN(), F.cross_entropy, SGD, lr=.1)
    model = GCN()
    model.load_state_dict(learn.model.state_dict())
    opt = SGD(model.parameters(), lr=.1)
    learn.logger = null_logger
    torch.manual_seed(1)
    learn.remove_cb(learn.progress).fit(1)
    torch.manual_seed(1)
    for b in dls[0]:
        F.cross_entropy(model(b), b.y).backward(); opt.step(); opt.zero_grad()
    assert all(map(torch.equal, model.parameters(), learn.model.parameters()))
    preds,targs = learn.get_preds(act=lambda o: o)
    assert torch.equal(targs, torch.cat([d.y for d in data[32:]])) and torch.allclose(preds, torch.cat([model(b) for b in dls[1]]))
