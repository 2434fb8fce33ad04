"Predictions gathered batch by batch: against `torch.cat`, for any batches, in memory and on disk"
import subprocess, sys
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.data import BatchSampler, DataLoader, SubsetRandomSampler, TensorDataset
from learnkit.all import (Callback, CancelBatch, CancelEpoch, CancelFit, CancelValid, CrossEntropyLossFlat, DataLoaders, Learner, MixedPrecision,
                          TrainEvalCallback, noop)
from learnkit.learner.buffer import TensorBuffer
from learnkit.learner.results import NestedBuffer, count_items, find_positions
from learnkit.learner.buffer import create_memmap, open_memmap
from toys import draws, slow

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings('ignore')
sizes = st.lists(st.sampled_from([0,1,1,2,3,3,3,3,3,7]), max_size=40)
dtypes = st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool])

def numbered(ns, shape=(2,), dtype=torch.float32):
    "Batches of these lengths, no two items alike"
    n = sum(ns)
    t = torch.arange(n).view(n, *(1 for _ in shape)).expand(n, *shape)
    return [o.to(dtype).clone() for o in t.split(ns)] if ns else []

def same(a, b): return a.dtype==b.dtype and a.shape==b.shape and torch.equal(a, b)

# buffers

@given(ns=st.lists(st.sampled_from([0,1,3,3,3,3,7]), max_size=150), dim=st.sampled_from([0,1,-1]), extra=st.sampled_from([None,0,0,-1,5]),
       copied=st.none()|st.integers(0, 150), read=st.none()|st.integers(0, 150))
@draws(50)
def test_read_or_copied_on_the_way(ns, dim, extra, copied, read):
    "Along any dimension, also if the buffer is copied or read on the way, and the memory of a batch is written to at once"
    batches = [b.movedim(0, dim).contiguous() for b in numbered(ns, (2,4))]
    r = TensorBuffer(None if extra is None else max(0, sum(ns) + extra), dim)
    for i,b in enumerate(batches):
        lent = b.clone()
        r.append(lent)
        lent.zero_()
        if i==copied: r = deepcopy(r)
        if i==read: assert torch.equal(r.value, torch.cat(batches[:i+1], dim))
    if batches: assert same(r.value, torch.cat(batches, dim))

@given(ns=sizes, shape=st.sampled_from([(), (1,), (2,), (2,3), (0,)]), dtype=dtypes, extra=st.sampled_from([None,0,0,0,-2,5,100]), disk=st.booleans())
@draws(75)
def test_rows_are_those_of_cat(tmp_path_factory, ns, shape, dtype, extra, disk):
    "The announced number may be right, wrong or unknown"
    bs = numbered(ns, shape, dtype)
    r = TensorBuffer(None if extra is None else max(0, sum(ns) + extra), file=tmp_path_factory.mktemp('rows')/'r.pt' if disk else None)
    for b in bs: r.append(b)
    if not bs: assert r.value is None
    else: assert same(r.value, torch.cat(bs)) and same(r.value, r.value)

@given(ns=sizes.filter(any), data=st.data(), unknown=st.booleans())
@draws(50)
def test_items_go_to_their_positions(ns, data, unknown):
    n = sum(ns)
    idxs = data.draw(st.permutations([3*i for i in range(n)]))
    bs = [torch.tensor(o).view(-1,1).repeat(1,2) for o in torch.tensor(idxs).split(ns)]
    r = TensorBuffer(None if unknown else n, positions=find_positions(idxs))
    for b in bs: r.append(b)
    assert same(r.value, 3*torch.arange(n).view(-1,1).repeat(1,2))

@given(kinds=st.lists(st.tuples(st.integers(0,4), st.sampled_from([(2,), (3,)]), dtypes), min_size=1, max_size=20), n=st.sampled_from([None, 5, 40, 80]))
@draws(75)
def test_batches_that_do_not_fit_together(kinds, n):
    "Other types are promoted as `torch.cat` does; other shapes make a list of items; nothing is lost"
    bs = [torch.full((k,*s), i%2, dtype=d) for i,(k,s,d) in enumerate(kinds)]
    r = TensorBuffer(n)
    for b in bs: r.append(b)
    if len({s for _,s,_ in kinds})==1: assert same(r.value, torch.cat(bs))
    else: assert len(r.value)==sum(map(len, bs)) and all(torch.equal(a, b) for a,b in zip(r.value, [row for b in bs for row in b]))

@pytest.mark.parametrize('late', [2, 30])
def test_no_tensor_after_tensors(late):
    r = TensorBuffer(50)
    for b in numbered([1]*late): r.append(b)
    r.append(['a'])
    assert len(r.value)==late+1 and r.value[-1]=='a'

@pytest.mark.parametrize('ring', [1,2,5])
def test_memory_that_is_used_again(ring):
    "Loaders and models that write into the same few buffers: each batch is copied before the next comes"
    buffers,r = [torch.empty(3,2) for _ in range(ring)],TensorBuffer(300)
    for i in range(100): buffers[i%ring].fill_(i); r.append(buffers[i%ring])
    assert torch.equal(r.value[:,0], torch.arange(100.).repeat_interleave(3))

def test_memory_that_is_used_again_later():
    "At first each batch has memory of its own, then they share it; and where nobody knows how many there will be"
    for n in (600, None):
        one,r = torch.empty(3,2),TensorBuffer(n)
        for i in range(200): t = torch.empty(3,2) if i<80 else one; t.fill_(i); r.append(t)
        assert torch.equal(r.value[:,0], torch.arange(200.).repeat_interleave(3))

def test_other_layouts():
    "Sparse and ragged predictions are no items of a dense tensor"
    r = TensorBuffer(6)
    for i in range(3): r.append(torch.eye(2).to_sparse()*i)
    assert torch.equal(r.value.to_dense()[4:], 2*torch.eye(2))
    r = TensorBuffer(4)
    for i in range(2): r.append(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged))
    assert [len(o) for o in r.value]==[2,3,2,3]

def test_small_batches_wait_for_each_other(tmp_path):
    for kw in dict(positions=torch.arange(1000)),dict(file=tmp_path/'a.pt'):
        r = TensorBuffer(1000, **kw)
        for b in numbered([1]*1000): r.append(b)
        assert r.max_pending>1 and same(r.value, torch.cat(numbered([1]*1000)))
    big = TensorBuffer(100, file=tmp_path/'b.pt')
    for b in numbered([10]*10, (2**17,)): big.append(b); assert not big.pending   # 5 MB each
    assert same(big.value[:,0], torch.arange(100.))

@given(ns=st.lists(st.sampled_from([1,1,1,2,2,3,0]), max_size=300), lack=st.integers(-3, 3), kinds=st.lists(st.sampled_from(['plain','plain','double','grad']), min_size=1))
@draws(50)
def test_a_batch_goes_to_its_place_at_once(ns, lack, kinds):
    "Whatever comes among batches that are alike: nothing is held back, and all is as they were when they came"
    bs = numbered(ns)
    change = dict(plain=lambda b: b, double=lambda b: b.double(), grad=lambda b: b.requires_grad_())
    r = TensorBuffer(max(0, sum(ns)+lack))
    for b,k in zip(bs, kinds*len(bs)):
        c = change[k](b.clone())
        r.append(c)
        assert not r.pending
        c.detach().fill_(-1)   # its memory is used again
    want = torch.cat(bs) if bs else None
    assert (r.value is None) if want is None else not r.value.requires_grad and torch.equal(r.value.double(), want.double())

def test_no_graph_is_kept():
    w,r = torch.ones(2, requires_grad=True),TensorBuffer(90)
    for b in numbered([3]*30): r.append(b*w)
    assert not r.value.requires_grad and r.value.shape==(90,2)

@given(ns=sizes.filter(any), dtype=st.sampled_from([torch.bfloat16, torch.float16]), of=dtypes)
@draws(25)
def test_type_of_the_result(ns, dtype, of):
    bs = numbered(ns, dtype=of)
    r = TensorBuffer(sum(ns), dtype=dtype)
    for b in bs: r.append(b)
    assert same(r.value, torch.cat(bs).to(dtype if of.is_floating_point else of))

@given(ns=sizes.filter(bool), n=st.sampled_from([None, 0, 20]))
@draws(25)
def test_nested(ns, n):
    a,b = numbered(ns),numbered(ns, (), torch.int64)
    g = NestedBuffer(n)
    for x,y in zip(a, b): g.append(dict(a=x, b=[y,(x,)]))
    want = dict(a=torch.cat(a), b=[torch.cat(b),(torch.cat(a),)])
    assert tree_flatten(g.value)[1]==tree_flatten(want)[1] and all(tree_flatten(tree_map(same, g.value, want))[0])
    with pytest.raises(ValueError, match='differ in structure'): g.append(a[0])

def test_lists_by_item():
    "File names and boxes: a list is as long as its batch, and is a leaf"
    names = ['ab','cd','e']
    g = NestedBuffer(5)
    for o in names: g.append((torch.ones(len(o)), tuple(o), [dict(box=torch.ones(k, 4)) for k in range(len(o))]))
    x,n,boxes = g.value
    assert x.shape==(5,) and list(n)==list('abcde') and [len(o['box']) for o in boxes]==[0,1,0,1,0]

def test_dataclasses():
    "One for each batch came back, in the order of the loader, beside targets in that of the data set"
    g = NestedBuffer(3, key='', positions=None)
    for t in (torch.tensor([20.,0.]), torch.tensor([10.])): g.append((t, Output(t, Rest(2*t))))
    _,res = g.gather([0,1], torch.tensor([2,0,1]))
    assert res.o.tolist()==[0.,10.,20.] and res.rest.x.tolist()==[0.,20.,40.] and res.rest.none is None
    with pytest.raises(ValueError, match='differ in structure'): g.append((t, Output(t, t)))
    learn = Learner(DataLoaders([(torch.ones(2, 3), torch.ones(2))], None), Model('dataclass'), lambda p,y: 0., default_cbs=False)
    label,dec,pred = learn.predict(torch.arange(3.))
    assert type(pred) is Output and pred.o.shape==(4,) and pred.rest.x.tolist()==[0.,1.,2.]

# the number of samples, and their positions

@pytest.mark.parametrize('kw,want', [(dict(batch_size=4), 22), (dict(batch_size=4, drop_last=True), 20), (dict(batch_size=None), None),
                                     (dict(batch_size=4, sampler=[1,2,3]), 3), (dict(batch_sampler=[[1,2],[3]]), None)])
def test_count_items_of_a_loader(kw, want): assert count_items(DataLoader(TensorDataset(torch.zeros(22)), **kw))==want

@pytest.mark.parametrize('dl,want', [([], None), ([torch.zeros(4)]*2 + [torch.zeros(1)], 9), ([dict(x=torch.zeros(3))], 3), (['ab'], None), (iter([torch.zeros(2)]), None)])
def test_count_items_of_batches(dl, want): assert count_items(dl)==want

@given(idxs=st.lists(st.integers(0, 30), max_size=20))
def test_item_positions(idxs):
    "As a stable sort of the indices"
    p = find_positions(idxs)
    want = sorted(range(len(idxs)), key=idxs.__getitem__)
    assert want==(list(range(len(idxs))) if p is None else p.argsort().tolist()) and ((p is None)==(idxs==sorted(idxs)))

# memory-mapped tensors

def test_a_memmap_is_a_file(tmp_path):
    t = create_memmap(tmp_path/'t.pt', (5,2), torch.bfloat16)
    t[:] = torch.arange(10.).view(5,2)
    for kw in (dict(), dict(mmap=True)): assert same(torch.load(tmp_path/'t.pt', **kw), torch.arange(10.).view(5,2).bfloat16())
    open_memmap(tmp_path/'t.pt')[0] = 9   # whoever reads changes a copy
    assert torch.load(tmp_path/'t.pt')[0,0]==0 and [o.name for o in tmp_path.iterdir()]==['t.pt']

def test_disk_that_is_too_small(tmp_path):
    with pytest.raises(OSError, match='GiB are free'): create_memmap(tmp_path/'t.pt', (2**50,), torch.float32)
    assert not [*tmp_path.iterdir()]

# get_preds

@dataclass(frozen=True)
class Rest: x:torch.Tensor; none:None = None
@dataclass
class Output: o:torch.Tensor; rest:Rest
def opened(o): return [o.o, o.rest.x] if isinstance(o, Output) else o

class Model(nn.Module):
    def __init__(self, kind='one'): super().__init__(); self.lin,self.kind = nn.Linear(3,4),kind
    def forward(self, x): o = self.lin(x); return dict(one=o, pair=(o,x), named=dict(o=o, rest=[x]), dataclass=Output(o, Rest(x)))[self.kind]

def loader(x, y, how, bs, idxs):
    ds = TensorDataset(x, y)
    return dict(plain=lambda: DataLoader(ds, bs), shuffled=lambda: DataLoader(ds, bs, shuffle=True), drops=lambda: DataLoader(ds, bs, shuffle=True, drop_last=len(x)>=bs),
                sampler=lambda: DataLoader(ds, bs, sampler=idxs), subset=lambda: DataLoader(ds, bs, sampler=SubsetRandomSampler(range(0, len(x), 2))),
                batches=lambda: DataLoader(ds, batch_sampler=[*BatchSampler(idxs, bs, False)]), whole=lambda: DataLoader(ds, batch_size=None, sampler=BatchSampler(idxs, bs, False)),
                list=lambda: [*zip(x.split(bs), y.split(bs))], generator=lambda: zip(x.split(bs), y.split(bs)))[how]()

hows = 'plain shuffled drops sampler subset batches whole list generator'.split()

@given(n=st.integers(1, 40), bs=st.integers(1, 12), how=st.sampled_from(hows), kind=st.sampled_from(['one','pair','named','dataclass']), disk=st.booleans(), data=st.data())
@draws(40)
def test_get_preds(tmp_path_factory, n, bs, how, kind, disk, data):
    "All rows in the order of the data set: for any loader, any structure, in memory or as files"
    torch.manual_seed(0)
    x,y = torch.randn(n, 3),torch.randint(4, (n,))
    dl,m = loader(x, y, how, bs, data.draw(st.permutations(range(n)))),Model(kind)
    loss = CrossEntropyLossFlat() if kind=='one' else lambda p,y: 0.
    learn = Learner(DataLoaders([(x,y)], [(x,y)]), m, loss, default_cbs=False, cbs=TrainEvalCallback)
    where = tmp_path_factory.mktemp('preds') if disk else None
    if disk and how=='generator':
        with pytest.raises(ValueError, match='the number of samples'): learn.get_preds(dl=dl, mmap=where)
        return
    inp,preds,targs,dec = learn.get_preds(dl=dl, with_input=True, with_decoded=True, mmap=where)
    i = slice(None, None, 2) if how=='subset' else slice(None)
    with torch.no_grad(): want = m(x[i])
    if kind=='one': want = want.softmax(1); assert torch.equal(dec, preds.argmax(1))
    assert type(preds) is type(want)
    preds,want = opened(preds),opened(want)
    tree_map(torch.testing.assert_close, preds, want)
    assert torch.equal(inp, x[i]) and torch.equal(targs, y[i])
    if disk:
        files = {o.name for o in where.iterdir()}
        names = ['preds.pt'] if kind=='one' else ['preds_0.pt','preds_1.pt']
        assert {*names,'targs.pt','inputs.pt'}<=files
        for f,t in zip(names, tree_flatten(preds)[0]): assert same(torch.load(where/f), t)

def classifier(x, bs=4, **kw):
    torch.manual_seed(0)
    y = torch.arange(len(x))%4
    return Learner(DataLoaders(*[DataLoader(TensorDataset(x, y), bs)]*2), Model(), CrossEntropyLossFlat(), default_cbs=False, cbs=[TrainEvalCallback, *kw.pop('cbs', ())], **kw)

def test_own_activation(tmp_path):
    "In memory of all rows at once, on disk a batch at a time"
    seen,learn = [],classifier(torch.randn(10,3))
    def act(o): seen.append(len(o)); return o*2
    mem,disk = learn.get_preds(act=act),learn.get_preds(act=act, mmap=tmp_path)
    assert seen==[10,4,4,2] and all(map(same, mem, disk))

def test_only_the_answers():
    "Of many classes the answer takes less memory than the probabilities"
    learn = classifier(torch.randn(10,3))
    preds,targs,dec = learn.get_preds(with_decoded=True, with_preds=False)
    assert preds is None and torch.equal(dec, learn.get_preds()[0].argmax(1))
    assert torch.equal(learn.get_preds(with_decoded=True, with_preds=False, act=lambda o: -o)[2], learn.get_preds(act=lambda o: -o)[0].argmax(1))

@pytest.mark.parametrize('exc', [CancelBatch, CancelValid, CancelEpoch, CancelFit])
def test_cancelled_predictions_are_those_that_were_made(exc, tmp_path):
    class Refuse(Callback):
        def before_batch(self):
            if self.learn.iter==1: raise exc
    x = torch.randn(10,3)
    learn = classifier(x)
    want = learn.get_preds()[0]
    want = torch.cat([want[:4], want[8:]]) if exc is CancelBatch else want[:4]
    for kw in (dict(), dict(mmap=tmp_path)): torch.testing.assert_close(learn.get_preds(cbs=Refuse(), **kw)[0], want)

def test_losses_on_disk(tmp_path):
    learn = classifier(torch.randn(10,3))
    assert all(map(same, learn.get_preds(with_loss=True), learn.get_preds(with_loss=True, mmap=tmp_path)))

def test_mmap_puts_rows_one_after_the_other(tmp_path):
    with pytest.raises(ValueError, match='concat_dim'): classifier(torch.randn(10,3)).get_preds(mmap=tmp_path, concat_dim=1)

@pytest.mark.parametrize('bs', [3, 4])
def test_names_as_targets(bs):
    "In the order of the data set, whatever is left for the last batch"
    x,names = torch.arange(6.).view(-1,1).expand(6,3),[f'{i}.png' for i in range(6)]
    dl = DataLoader([*zip(x, names)], bs, shuffle=True)
    inp,preds,targs = Learner(DataLoaders(dl), Model(), lambda p,y: 0., default_cbs=False, cbs=TrainEvalCallback).get_preds(dl=dl, with_input=True)
    assert list(targs)==names and torch.equal(inp, x) and preds.shape==(6,4)

@pytest.mark.parametrize('how', ['list','generator'])
def test_later_callbacks_may_change_predictions(how):
    "In place, in the same event: what was gathered was gathered"
    x = torch.randn(400,3)
    learn = classifier(x)
    def dl(): bs = [(o,o[:,0].long()) for o in x.split(4)]; return bs if how=='list' else iter(bs)
    class Later(Callback):
        order = 10
        def after_batch(self): self.learn.pred.zero_(); self.learn.yb[0].zero_()
    assert all(map(same, learn.get_preds(dl=dl(), act=noop, cbs=Later()), learn.get_preds(dl=dl(), act=noop)))

def test_a_folder_that_is_used_again(tmp_path):
    "Whoever has the results of before keeps them"
    x = torch.randn(10,3)
    learn = classifier(x)
    before = learn.get_preds(mmap=tmp_path)
    kept = [o.clone() for o in before]
    after = learn.get_preds(dl=[(x[:4]+1, torch.ones(4))], mmap=tmp_path)
    assert all(map(same, before, kept)) and len(after[0])==4 and same(torch.load(tmp_path/'preds.pt'), after[0])

def test_inputs_by_name_are_files_too(tmp_path):
    class Named(Model):
        def forward(self, a, b): return super().forward(a+b)
    a,b = torch.randn(2,10,3)
    dl = [dict(a=a[i:i+4], b=b[i:i+4], label=torch.arange(len(a[i:i+4]))) for i in (0,4,8)]
    inp,preds,targs = Learner(DataLoaders(dl), Named(), lambda p,y: 0., default_cbs=False, cbs=TrainEvalCallback).get_preds(dl=dl, with_input=True, mmap=tmp_path)
    assert {*inp}=={'a','b'} and same(inp['a'], a) and same(torch.load(tmp_path/'inputs_1.pt'), b) and targs.tolist()==[0,1,2,3]*2+[0,1]

# half precision, compiled

def test_half_precision():
    "Computed in 16 bits, kept in 32, or in 16 if asked for"
    x = torch.randn(40,3)
    learn = classifier(x, bs=8)
    want = learn.get_preds(act=noop)[0]
    got = learn.get_preds(cbs=MixedPrecision('bf16'), act=noop)[0]
    assert got.dtype==torch.float32 and not torch.equal(got, want) and same(got.bfloat16().float(), got)
    torch.testing.assert_close(got, want, rtol=2e-2, atol=2e-2)
    kept = learn.get_preds(cbs=MixedPrecision('bf16'), dtype=torch.bfloat16)
    assert kept[0].dtype==torch.bfloat16 and kept[1].dtype==torch.int64
    assert same(kept[0], learn.get_preds(cbs=MixedPrecision('bf16'))[0].bfloat16())   # rounded once, after the activation
    assert not any(isinstance(cb, MixedPrecision) for cb in learn.cbs) and same(learn.get_preds(act=noop)[0], want)

@pytest.mark.parametrize('backend', ['eager', 'aot_eager'])
def test_compiled(backend):
    "Other sizes of batches too"
    x = torch.randn(22,3)
    plain,fast = classifier(x),classifier(x).compile(backend=backend)
    torch.testing.assert_close(fast.get_preds(), plain.get_preds(), rtol=1e-5, atol=1e-6)

# memory

def test_parts_of_large_outputs():
    "What waits keeps no more than itself alive"
    from weakref import ref
    large,r = [],TensorBuffer(500)
    for _ in range(100):
        t = torch.ones(5, 1000); large.append(ref(t.untyped_storage())); r.append(t[:,0]); del t
        assert sum(o() is not None for o in large)<=1

CHILD = """
import sys, torch, learnkit
from learnkit.all import DataLoaders, Learner, TrainEvalCallback
torch.set_num_threads(1)
rows,wide = 2000,25000
class Wide(torch.nn.Module):
    def __init__(self): super().__init__(); self.w = torch.nn.Parameter(torch.ones(1))
    def forward(self, x): return x*self.w.expand(wide)
x = torch.arange(2.*rows).view(-1,1)
learn = Learner(DataLoaders([(x[:2],)]), Wide(), lambda p: 0., default_cbs=False, cbs=TrainEvalCallback)
def kib(k): return int(next(l.split()[1] for l in open('/proc/self/status') if l.startswith(k)))
learn.get_preds(dl=[(o,) for o in x[:200].split(100)], mmap=sys.argv[1]+'/first')
open('/proc/self/clear_refs', 'w').write('5')
start = kib('VmRSS')
preds,_ = learn.get_preds(dl=[(o,) for o in x.split(50)], **({'mmap':sys.argv[1]} if sys.argv[2]=='disk' else {}))
assert preds.shape==(2*rows,wide) and torch.equal(preds[[5,-1],-1], x[[5,-1],0])
print((kib('VmHWM') - start)/1024)
"""

@pytest.mark.skipif(not Path('/proc/self/clear_refs').exists(), reason='peaks of memory are read as Linux shows them')
@pytest.mark.slow
@pytest.mark.parametrize('where', ['disk', 'memory'])
def test_memory(tmp_path, where):
    "400 MB of predictions: on disk they need the memory of some batches; in memory their own size, once"
    res = subprocess.run([sys.executable, '-c', CHILD, tmp_path, where], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
    peak = float(res.stdout)
    assert peak<100 if where=='disk' else 370<peak<470, f'{peak:.0f} MB'
