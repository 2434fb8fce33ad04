"""Several processes measure and predict as one: values equal plain PyTorch and scikit-learn in one process."""
import os, warnings
from datetime import timedelta
from functools import partial
from math import ceil

import pytest, torch, torchmetrics
from sklearn import metrics as skm
from torch import distributed as dist, nn
from torch.nn import functional as F
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, TensorDataset, WeightedRandomSampler
from torch.utils.data.distributed import DistributedSampler

from learnkit.all import (AccumMetric, Callback, CheckpointCallback, DataLoaders, DiceMulti, F1Score, FetchPredsCallback, GatherPredsCallback, Interpretation, Learner, ItemIndices, LimitBatches, Metric, Perplexity,
                          ProgressCallback, SaveModelCallback, ValueMetric, accuracy, skm_to_learnkit)
from learnkit.processes.distributed import DistributedTrainer
from test_distributed import everywhere, weights
from toys import few, slow

pytestmark = few(10_000, 1)   # of the slow cases of each test; all with LEARNKIT_SWEEP=1

torch.set_num_threads(1)

# one spawn of processes runs many cases

def _inside(rank, world, path, f, args):
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'file://{path}', rank=rank, world_size=world, timeout=timedelta(seconds=30))
    torch.manual_seed(100+rank)   # whatever draws, draws something else in each
    try: f(rank, world, *args)
    finally: dist.destroy_process_group()

@pytest.fixture
def processes(tmp_path):
    def run(world, f, *args): torch.multiprocessing.start_processes(_inside, (world, tmp_path/'store', f, args), nprocs=world, start_method='fork')
    return run

# data of n rows in every kind of loader: what makes it, the rows of each batch, and whether the dataset has an order

def data(n):
    g = torch.Generator().manual_seed(n)
    return torch.randn(n, 4, generator=g),torch.randint(0, 3, (n,), generator=g)

class Rows(IterableDataset):
    def __init__(self, ds): self.ds = ds
    def __iter__(self): return iter([self.ds[i] for i in range(len(self.ds))])
class Uneven:
    "A batch sampler: batches of 1, 2, 3, 1, 2, 3, …, from the end to the beginning"
    def __init__(self, n): self.n = n
    def __iter__(self):
        i,k = self.n,1
        while i>0: yield [*range(i-1, max(i-k, 0)-1, -1)]; i -= k; k = k%3+1
    def __len__(self): return len([*iter(self)])
class Batches(Dataset):
    "A dataset whose samples are batches"
    def __init__(self, x, y, bs): self.parts = [*zip(x.split(bs), y.split(bs))] if len(x) else []
    def __getitem__(self, i): return self.parts[i]
    def __len__(self): return len(self.parts)

def gen(): return torch.Generator().manual_seed(5)
def weighted(n): return WeightedRandomSampler([1.+i%3 for i in range(n)], n+2, generator=gen())
def chunks(idxs, bs): return [idxs[i:i+bs] for i in range(0, len(idxs), bs)]

def kinds(n, bs):
    "name -> (loader, rows of its batches, rows of the batches that `get_preds` reads, are they to be ordered?)"
    x,y = data(n)
    ds,seq,drawn = TensorDataset(x, y),chunks([*range(n)], bs),chunks([*weighted(n)], bs) if n else []
    def b(idxs): return x[idxs],y[idxs]
    res = dict(
        plain    = (DataLoader(ds, bs), seq, seq, False),
        list     = ([b(i) for i in seq], seq, seq, False),
        function = (lambda: (b(i) for i in seq), seq, seq, False),
        stream   = (DataLoader(Rows(ds), bs), seq, seq, False),
        uneven   = (DataLoader(ds, batch_sampler=Uneven(n)), [*Uneven(n)], [*Uneven(n)], True),
        weighted = (DataLoader(ds, bs, sampler=weighted(n) if n else []), drawn, drawn, True),
        batches  = (DataLoader(Batches(x, y, bs), batch_size=None), seq, seq, False),
        shuffled = (DataLoader(ds, bs, shuffle=n>0), None if n else [], seq, False),
        dropping = (DataLoader(ds, bs, drop_last=True), seq[:n//bs], seq, False))
    return res

class Trunk(nn.Module):
    "Nested outputs: a tensor, a tuple in a dictionary; and a number for the batch"
    def __init__(self, nested=False):
        super().__init__()
        torch.manual_seed(0)
        self.lin,self.nested = nn.Linear(4, 3),nested
    def forward(self, x):
        out = self.lin(x)
        return dict(out=out, more=(x.sum(1), out>0), size=torch.tensor(float(len(x)))) if self.nested else out

def last_minus_first(p, t): return float(p[-1].sum() - p[0].sum() + t[-1])   # not even the order may differ
def metrics(n): return [accuracy, Perplexity(), F1Score(average='macro', zero_division=0), DiceMulti(), AccumMetric(last_minus_first, flatten=False),
                       skm_to_learnkit(skm.log_loss, is_class=False, activation='softmax', flatten=False, labels=[0,1,2]),
                       torchmetrics.Accuracy('multiclass', num_classes=3), auroc() if n>1 else torchmetrics.F1Score('multiclass', num_classes=3),   # it fails for one row
                       batch_rmse]
auroc = partial(torchmetrics.AUROC, 'multiclass', num_classes=3, thresholds=None)
def batch_rmse(p, t): return ((p.softmax(1)-F.one_hot(t, 3))**2).mean().sqrt()   # depends on how the rows are split into batches

def oracle(x, y, rows):
    "The same values in plain PyTorch and scikit-learn"
    with torch.no_grad(): outs = [Trunk()(x[i]) for i in rows]
    idxs = torch.tensor([i for b in rows for i in b])
    out,t = torch.cat(outs),y[idxs]
    loss,best = F.cross_entropy(out, t).item(),out.argmax(1)
    area = auroc(sync_on_compute=False) if len(idxs)>1 else torchmetrics.F1Score('multiclass', num_classes=3, sync_on_compute=False)
    for o,i in zip(outs, rows): area.update(o, y[i])   # which takes a softmax where a batch does not look like probabilities
    seen = sorted({*t.tolist(), *best.tolist()})
    return [loss, (best==t).float().mean().item(), torch.tensor(loss).exp().item(), skm.f1_score(t, best, average='macro', zero_division=0),
            skm.f1_score(t, best, average='macro', labels=seen), last_minus_first(out, t), skm.log_loss(t, out.softmax(1), labels=[0,1,2]), (best==t).float().mean().item(), area.compute().item(),
            sum(batch_rmse(o, y[i]).item()*len(i) for o,i in zip(outs, rows))/len(idxs)]

def learner(train, valid, model=None, loss_func=None, **kw):
    learn = Learner(DataLoaders(train, valid), model or Trunk(), loss_func or nn.CrossEntropyLoss(), torch.optim.SGD, lr=.1, **kw)
    learn.logger = lambda row: None
    return learn.remove_cb(ProgressCallback)

def _measures(rank, world, cases):
    warnings.simplefilter('ignore')
    for n,bs,kind in cases:
        (x,y),(dl,rows,read,order),where = data(n),kinds(n, bs)[kind],(world, n, bs, kind)
        learn = learner(DataLoader(TensorDataset(*data(8)), 4), dl, metrics=metrics(n))
        if rows==[]:   # raises in all processes, as in a single one
            with pytest.raises(ValueError, match='yielded no batch'): learn.validate()
        else: _equal_to(oracle(x, y, rows or read), [*learn.validate()], rows is None, where)
        _predicts(learn, dl, read, order, x, y, where)

def _equal_to(want, values, drawn, where):
    if drawn: values,want = [[v for i,v in enumerate(o) if i not in (5,9)] for o in (values, want)]   # who knows the order
    assert values==pytest.approx(want, rel=1e-5, abs=1e-6), where
    assert all(torch.equal(o, torch.tensor(values, dtype=torch.float64)) for o in everywhere(torch.tensor(values, dtype=torch.float64))), where

def _predicts(learn, dl, read, order, x, y, where):
    "Predictions equal bit for bit, in the order of the dataset"
    if where[3]=='weighted' and read: dl.sampler.generator.manual_seed(5)
    learn.model = Trunk(nested=True)
    learn.loss_func = lambda p,t,reduction='mean': F.cross_entropy(p['out'], t, reduction=reduction)
    def predict(): return learn.get_preds(with_input=True, with_loss=True, act=lambda o: {**o, 'out':o['out']*2})
    if not read:
        with pytest.raises(ValueError, match='yielded no batch'): predict()
        return
    got = predict()
    with torch.no_grad(): outs = [learn.model(x[i]) for i in read]
    idxs = torch.tensor([i for b in read for i in b])
    to = idxs.argsort(stable=True) if order else torch.arange(len(idxs))
    out = torch.cat([o['out'] for o in outs])[to]
    inp,p,t,losses = got
    assert torch.equal(inp, x[idxs][to]) and torch.equal(t, y[idxs][to]) and torch.equal(p['out'], out*2), where
    assert torch.equal(p['more'][0], x[idxs][to].sum(1)) and torch.equal(p['more'][1], out>0), where
    assert order or torch.equal(p['size'], torch.stack([o['size'] for o in outs])), where
    assert torch.allclose(losses, F.cross_entropy(out, t, reduction='none'), atol=1e-6), where

names = [*kinds(1, 1)]
def spread(lengths, bs, shift=0):
    "A kind of loader for each length, round-robin; all of them with LEARNKIT_SWEEP=1"
    return [(n, bs(n), kind) for i,n in enumerate(lengths) for kind in (names if os.environ.get('LEARNKIT_SWEEP') else [names[(i+shift)%len(names)]])]

@pytest.mark.parametrize('world,cases', [(2, spread([7,3,1,4,5,9,2,6,3], lambda n: 1 + n%3)), *slow(*((w, spread(range(*r), lambda n: 1 + n%4, 3*w)) for w,r in ((2, (41,)), (3, (2, 41, 2)), (4, (1, 41, 2)))), (3, [(0, 2, kind) for kind in names]))])
def test_as_one_process(processes, world, cases): processes(world, _measures, cases)

# within a fit

def _fits(rank, world, cases, path):
    """The validation phase, callbacks that predict in it, and methods called within it, also with checkpoints and a
    limit"""
    warnings.simplefilter('ignore')
    for n,bs,kind in cases:
        (x,y),(dl,_,read,order),where = data(n),kinds(n, bs)[kind],(world, n, bs, kind)
        learn = learner(DataLoader(TensorDataset(*data(8)), 2, shuffle=True), dl, metrics=metrics(n))
        gather,fetch,within = GatherPredsCallback(),FetchPredsCallback(),[]
        def look(cb):
            if cb.learn.mode=='fit': within.append(([*cb.learn.validate()], cb.learn.get_preds(), cb.learn.dls.valid is learn.dls.valid))
        learn.fit(2, cbs=[gather, fetch, CheckpointCallback(folder=path/f'{kind}{n}'), ItemIndices, Callback(after_epoch=look)])
        row,twin = learn.recorder.history[-1],Trunk()
        twin.load_state_dict(learn.model.state_dict())
        with torch.no_grad(): outs = torch.cat([twin(x[i]) for i in read])
        idxs = [i for b in read for i in b]
        to = torch.tensor(idxs).argsort(stable=True) if order else torch.arange(len(idxs))
        assert row['valid_loss']==pytest.approx(F.cross_entropy(outs, y[idxs]).item(), rel=1e-5), where
        assert [row[k] for k in ('accuracy','f1_score','batch_rmse')]==pytest.approx([within[-1][0][i] for i in (1,3,9)], rel=1e-6)
        assert torch.equal(gather.preds, outs) and torch.equal(gather.targets, y[idxs]), where
        for preds,targs in (fetch.preds, within[-1][1]): assert torch.equal(preds, outs[to]) and torch.equal(targs, y[idxs][to]), where
        first,*others = everywhere(torch.tensor([r[k] for r in learn.recorder.history for k in ('train_loss','valid_loss')], dtype=torch.float64))
        assert within[-1][2] and all(torch.equal(first, o) for o in others), where   # the data are the user's own
        # a limit counts the batches of all processes, whether a callback or the loop sets it
        for cb in (LimitBatches(valid=2), Callback(before_validate=lambda cb: cb.learn.batches.stop_at(2))):
            gather = GatherPredsCallback()
            learn.fit(1, lr=0., cbs=[gather, cb])
            assert torch.equal(gather.targets, y[[i for b in read[:2] for i in b]]), where

undrawn = [kind for kind in names if kind not in ('weighted','shuffled','dropping')]
@pytest.mark.parametrize('world,cases', [(2, [(3, 2, 'plain')]), *slow((2, [(5, 2, kind) for kind in undrawn]), (3, [(1, 2, 'stream'), (9, 2, 'uneven')]), (4, [(3, 1, 'list'), (7, 3, 'function')]))])
def test_in_a_fit(processes, tmp_path, world, cases): processes(world, _fits, cases, tmp_path)

# files, streams that are read once or never end, what is this process's own, and what cannot be right

def _files(rank, world, path):
    for n,bs in ((1,2), (7,2), (10,3)):
        x,y = data(n)
        for kind in ('plain','list','uneven','shuffled','weighted'):
            dl,_,read,order = kinds(n, bs)[kind]
            learn = learner(DataLoader(TensorDataset(x, y), 2), dl, Trunk(nested=True), lambda p,t,reduction='mean': F.cross_entropy(p['out'], t, reduction=reduction))
            idxs = [i for b in read for i in b]
            if order: idxs.sort()
            learn.model.forward = lambda x: dict(out=learn.model.lin(x), more=(x.sum(1),))
            folder = path/f'{n}{kind}'
            if kind=='weighted': dl.sampler.generator.manual_seed(5)
            p,t,losses = learn.get_preds(mmap=folder, with_loss=True)
            with torch.no_grad(): out = learn.model.lin(x[idxs])
            assert torch.allclose(p['out'], out, atol=1e-6) and torch.equal(p['more'][0], x[idxs].sum(1)) and torch.equal(t, y[idxs]), (n, kind)
            assert torch.allclose(losses, F.cross_entropy(out, y[idxs], reduction='none'), atol=1e-5)
            assert sorted(f.name for f in folder.iterdir())==['losses.pt','preds_0.pt','preds_1.pt','targs.pt']
            assert torch.equal(torch.load(folder/'preds_1.pt'), p['more'][0])
            dist.barrier()
    with pytest.raises(ValueError, match='the number of samples'): learn.get_preds(dl=(b for b in dl), mmap=path/'no')
    with pytest.raises(ValueError, match='the processes have different data'): learn.get_preds(dl=DataLoader(TensorDataset(*data(4+rank)), 2), mmap=path/'no')
    learn.get_preds(dl=kinds(7, 2)['plain'][0], with_preds=False, save_targs=path/'each')
    dist.barrier()
    assert [torch.load(path/'each'/str(i)).tolist() for i in range(4)]==[o.tolist() for o in data(7)[1].split(2)]

@pytest.mark.parametrize('world', slow(2, 4))
def test_files_that_all_processes_write(processes, tmp_path, world): processes(world, _files, tmp_path)

class Forgets(Metric):
    "A metric without merging: it covers only this process's batches"
    def reset(self): self.n = 0
    def accumulate(self, learn): self.n += len(learn.yb[0])
    @property
    def value(self): return float(self.n)

class Merges:
    "A metric with `merge_state`, as in torcheval"
    def __init__(self): self.n = 0
    def reset(self): self.n = 0
    def update(self, p, t): self.n += len(t)
    def compute(self): return float(self.n)
    def merge_state(self, others): self.n += sum(o.n for o in others); return self
class Alone(Merges): merge_state = property()

def _odd(rank, world, path):
    warnings.simplefilter('ignore')
    x,y = data(9)
    ds,want = TensorDataset(x, y),oracle(x, y, [[*range(9)]])
    twin = Trunk()
    def learn_(dl=None, **kw): return learner(DataLoader(TensorDataset(*data(8)), 2), DataLoader(ds, 2) if dl is None else dl, **kw)
    learn,batches = learn_(),[*DataLoader(ds, 2)]
    # read once
    assert learn.validate(dl=iter(batches))[0]==pytest.approx(want[0], rel=1e-5)
    assert torch.equal(learn.get_preds(dl=(b for b in batches))[1], y)
    # sums count each row once, counts and columns too
    assert learn_(loss_func=nn.CrossEntropyLoss(reduction='sum')).validate()[0]==pytest.approx(9*want[0], rel=1e-5)
    for bad in (Forgets(), Alone()):
        with pytest.raises((ValueError,TypeError), match='metric `forgets` is 5.0 in process 0 and 4.0 in process 1' if world==2 and isinstance(bad, Forgets) else 'metric `'): learn_(metrics=bad).validate()
    assert learn_(metrics=Merges()).validate()[1]==9
    assert learn_(metrics=ValueMetric(lambda: 10.+rank, 'of_process')).validate()[1]==10
    # a stream that never ends: as many batches in all as in one process
    class Endless:
        def __iter__(self):
            while True: yield from batches
    learn = learn_(Endless())
    learn.fit(1, cbs=LimitBatches(valid=3))
    twin.load_state_dict(learn.model.state_dict())
    with torch.no_grad(): assert learn.recorder.history[-1]['valid_loss']==pytest.approx(F.cross_entropy(twin(x[:6]), y[:6]).item(), rel=1e-5)
    # worker processes that persist, from one epoch to the next, the second one longer
    learn = learn_(DataLoader(ds, 2, num_workers=1, persistent_workers=True))
    learn.fit(2, lr=0., cbs=[gather := GatherPredsCallback(), Callback(before_validate=lambda cb: cb.learn.epoch or cb.learn.batches.stop_at(1))])
    assert [r['valid_loss'] for r in learn.recorder.history]==pytest.approx([F.cross_entropy(Trunk()(x[:2]), y[:2]).item(), want[0]], rel=1e-5) and torch.equal(gather.targets, y)
    # the user shards the data, in shards of any length: means are over all of it, predictions are those of the shard
    xr,yr = x[rank::world],y[rank::world]
    twin = Trunk()
    with torch.no_grad(): own,all_ = twin(xr),F.cross_entropy(twin(x), y).item()
    for dl in (DataLoader(TensorDataset(xr, yr), 2), DataLoader(Rows(TensorDataset(xr, yr)), 2), [(xr, yr)], DataLoader([*zip(xr, yr)], 2)):
        learn = learn_(dl)
        assert learn.validate()[0]==pytest.approx(all_, rel=1e-5) and torch.allclose(learn.get_preds()[0], own, atol=1e-6)
        fetch = FetchPredsCallback()
        learn.fit(1, lr=0., cbs=[DistributedTrainer(shard=False), fetch])
        assert learn.recorder.history[-1]['valid_loss']==pytest.approx(all_, rel=1e-5) and torch.allclose(fetch.preds[0], own, atol=1e-6)
    # fewer rows than a `DistributedSampler` has parts
    one = TensorDataset(x[:1], y[:1])
    dl = DataLoader(one, 2, sampler=DistributedSampler(one, world, rank, shuffle=False))
    learn = learn_(metrics=metrics(1))
    assert [*learn.validate(dl=dl)]==pytest.approx(oracle(x, y, [[0]]), rel=1e-5) and len(learn.get_preds(dl=dl)[0])==1

@pytest.mark.parametrize('world', slow(2, 3))
def test_odd_data_and_metrics(processes, tmp_path, world): processes(world, _odd, tmp_path)

# what belongs to one process, and what is for all

def _interprets(rank, world):
    x,y = data(9)
    learn = learner(DataLoader(TensorDataset(*data(80)), 2), DataLoader(TensorDataset(x, y), 2))
    interp = Interpretation.from_learner(learn)
    with torch.no_grad(): losses = F.cross_entropy(Trunk()(x), y, reduction='none')
    assert torch.allclose(interp.losses, losses, atol=1e-6) and torch.equal(interp.top_losses()[1], losses.argsort(descending=True))
    if rank==0: assert torch.equal(interp[[3,5]][0], x[[3,5]])   # one process alone can show samples and predict one
    if rank==world-1: assert torch.allclose(learn.predict(x[4])[-1], Trunk()(x[4]), atol=1e-6)
    res = learn.lr_find(num_it=20, show_plot=False)
    found = everywhere(torch.tensor([res.valley, *learn.recorder.lr_curve.losses], dtype=torch.float64))
    assert all(torch.equal(found[0], o) for o in found)

@pytest.mark.parametrize('world', slow(2, 4))
def test_interpretation_predict_lr_find(processes, world): processes(world, _interprets)

def _apart(rank, world, path):
    "Each process trains its own model on its own data, for a different number of epochs"
    x,y = data(5+rank)
    learn = learner(DataLoader(TensorDataset(x, y), 2), DataLoader(TensorDataset(x, y), 2), metrics=metrics(5), path=path/f'{rank}')
    learn.distributed = False
    with pytest.raises(ValueError, match='so the Learner trains alone'): learn.fit(1, cbs=DistributedTrainer)
    learn.fit(1+rank, cbs=[fetch := FetchPredsCallback(), SaveModelCallback()])
    twin = Trunk()
    twin.load_state_dict(learn.model.state_dict())
    with torch.no_grad(): assert learn.validate()[0]==pytest.approx(F.cross_entropy(twin(x), y).item(), rel=1e-5) and len(fetch.preds[0])==5+rank
    if rank==0: assert torch.equal(learn.get_preds()[1], y) and torch.equal(learn.get_preds(mmap=path/'own')[1], y) and learn.lr_find(num_it=10, show_plot=False) is not None

@pytest.mark.slow
def test_apart(processes, tmp_path): processes(2, _apart, tmp_path)
