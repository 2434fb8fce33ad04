"""Runs of several processes are replayed bit for bit in as many, and branched; virtual shards also in one."""
import pytest, torch
from torch import distributed as dist, nn

from learnkit.all import Callback, CheckpointCallback, DataLoaders, EMACallback, GradientAccumulation, Learner, MixedPrecision, Pausable, Run, VirtualShards
from test_distributed import processes
from toys import slow

kinds = dict(plain=lambda: [], accumulate=lambda: [GradientAccumulation(24), EMACallback(decay=.9)], bf16=lambda: [MixedPrecision('bf16')], shards=lambda: [VirtualShards(4)])

class Note(Callback):
    "Keeps each batch of this process, its loss, and the weights after it"
    order,acts = 10_000,'nothing'
    def __init__(self): self.seen = []
    def after_batch(self):
        if self.training: self.seen.append((self.learn.xb[0], self.learn.loss.item(), weights(self.model)))

def weights(model): return torch.cat([v.flatten().double() for v in model.state_dict().values()])

def made(path, kind):
    torch.manual_seed(42)
    x = torch.randn(100, 4)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(.5), nn.Linear(8, 1))
    learn = Learner(DataLoaders.from_tensors(x, x.sum(1, keepdim=True), bs=2 if kind=='shards' else 8), model, nn.MSELoss(), lr=.01, path=path, cbs=[CheckpointCallback('4ba', keep=None), *kinds[kind]()])
    learn.remove_cb(learn.progress).logger = lambda row: None
    return learn

def files(path): return {p:p.stat().st_mtime_ns for p in path.rglob('*') if p.is_file()}

def comes_again(path, kind, seen, end, steps):
    "Each of these steps, and the end of the run from there"
    before = files(path/'a')
    for step in steps:
        learn = made(path/'a', kind)
        torch.rand(3) if step>=4 else None   # else it begins at the beginning
        at = learn.replay(path/'a', step)
        assert (at['train_iter'], at['compared'], at['equal'])==(step, step%4, step%4)
        x,loss,after = seen[step]
        learn.resume(until='after_loss')
        if kind!='shards': assert torch.equal(learn.xb[0], x) and learn.loss.item()==loss
        assert learn.resume(1)['loss']==loss and (not learn.paused or torch.equal(torch.cat([v.flatten().double() for v in learn.paused.state['model'].values()]), after))
        if learn.paused: learn.resume()
        assert torch.equal(weights(learn.model), end)
    assert files(path/'a')==before

def _replays(rank, world, path, kind):
    whole,note = made(path/'a', kind),Note()
    whole.fit(2, cbs=note)
    end = weights(whole.model)
    dist.barrier()
    comes_again(path, kind, note.seen, end, (0, 6))
    learn = made(path/'a', kind)
    learn.branch(path/'a', 6, path/'b')
    assert torch.equal(weights(learn.model), end)
    dist.barrier()
    assert Run(path/'b').losses==Run(path/'a').losses and Run(path/'b').interrupted==[] and Run(path/'b').parent[1]==6
    with pytest.raises(ValueError, match='cannot pause a fit of several processes'): made(path/'c', kind).fit(1, cbs=Pausable())
    if not rank: torch.save((note.seen, end), path/'seen')

@pytest.mark.parametrize('kind', ['accumulate', *slow('shards', 'plain', 'bf16')])
def test_replayed(processes, tmp_path, kind):   # noqa: F811
    processes(2, _replays, tmp_path, kind)
    seen,end = torch.load(tmp_path/'seen')
    if kind=='shards': comes_again(tmp_path, kind, seen, end, (0, 6))
    else:
        with pytest.raises(ValueError, match='the number of processes is 1 and was 2'): made(tmp_path/'a', kind).replay(tmp_path/'a', 6)
        with pytest.raises(ValueError, match='the number of processes is 1 and was 2'): made(tmp_path/'a', kind).replay(tmp_path/'a', 0)
