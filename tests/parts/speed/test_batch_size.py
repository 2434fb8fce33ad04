"The largest batch that fits: the search equals trying all sizes and changes nothing; micro-batches grow again"
import pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from learnkit.all import CheckpointCallback, DataLoaders, GradientAccumulation, Learner, MicroBatch, ReplayOnOOM, SkipNaN
from learnkit.loop.run import null_logger
from learnkit.speed import batch_size
from learnkit.speed.batch_size import batch_of, find_largest_size
from toys import at, big_model, draws, few, throw, weights

full = torch.OutOfMemoryError('CUDA out of memory (not really)')

class Tight(nn.Sequential):
    "A model that raises out of memory for batches of more than `fits` samples"
    def __init__(self, fits):
        with torch.random.fork_rng(): torch.manual_seed(0); super().__init__(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(.3), nn.Linear(3, 1))
        self.fits = fits
    def forward(self, x):
        if len(x)>self.fits: raise torch.OutOfMemoryError('CUDA out of memory (not really)')
        return super().forward(x)

def mk(fits=50, *cbs, bs=8, **kw):
    x = torch.randn(48, 4, generator=torch.Generator().manual_seed(0))
    learn = Learner(DataLoaders.from_tensors(x, x.sum(1, keepdim=True), valid_pct=.25, seed=0, bs=bs, device='cpu'), Tight(fits), nn.MSELoss(), torch.optim.Adam, cbs=cbs, **kw)
    learn.logger = null_logger
    return learn.remove_cb(learn.progress)

@draws(100)
@given(room=st.integers(0, 300), start=st.integers(1, 40), more=st.integers(0, 300), exact=st.booleans())
def test_the_search_finds_what_trying_all_would(room, start, more, exact):
    tried,most = [],start+more
    def fits(n): tried.append(n); return n<=room
    sizes = range(start, most+1) if exact else [start*2**i for i in range(10) if start*2**i<=most]
    assert find_largest_size(fits, start, most, exact)==max((n for n in sizes if n<=room), default=0)
    assert len(tried)==len({*tried})<=20 and all(start<=n<=most for n in tried)

@pytest.mark.parametrize('cbs', [(), (lambda: GradientAccumulation(16),), (ReplayOnOOM, SkipNaN), (lambda: MicroBatch(4),)])
@few(1)
def test_the_search_changes_no_fit(cbs):
    "A search between two fits does not change the second"
    def run(search):
        learn = mk(50, *[cb() for cb in cbs])
        torch.manual_seed(1)
        learn.fit(1)
        if search: assert learn.find_batch_size(most=64)==(64 if any(cb.name=='micro_batch' for cb in learn.cbs) else 32)
        learn.fit(1)
        return weights(learn),learn.recorder.history['valid_loss'],learn.train_iter
    (a,h,n),(b,k,m) = run(False),run(True)
    assert torch.equal(a, b) and h==k and n==m

def test_both_steps_must_fit():
    "A size fits only if its second step, with the optimizer's state in memory, fits too"
    learn = mk(99)
    calls = []
    def second(self):
        calls.append(len(self.learn.xb[0]))
        if self.learn.train_iter==1 and len(self.learn.xb[0])>16: raise full
    learn.add_cb(at('after_pred', second, run_valid=False))
    assert learn.find_batch_size(most=64)==16 and calls==[2,2, 4,4, 8,8, 16,16, 32,32]

def test_a_failed_trial_is_freed_before_the_next():
    x,(model,alive) = torch.randn(16, 4),big_model(4)
    learn = Learner(DataLoaders.from_tensors(x, x[:,:1], bs=4, device='cpu'), model, nn.MSELoss())
    assert learn.find_batch_size(most=16, exact=True)==4 and alive==[0]*7
    assert learn.exc is None

def test_other_errors_pass_and_leave_the_learner():
    learn = mk(50, at('after_pred', throw(RuntimeError('must match'))))
    before = weights(learn).clone()
    with pytest.raises(RuntimeError, match='must match'): learn.find_batch_size(most=64)
    assert torch.equal(before, weights(learn)) and learn.dls.train.batch_size==8 and learn.mode is None

def test_bad_searches_raise(monkeypatch):
    learn = mk(50)
    with pytest.raises(ValueError, match=r'find_batch_size\(most=512\)'): learn.find_batch_size()
    with pytest.raises(ValueError, match='no size to try'): learn.find_batch_size(9, most=8)
    with pytest.raises(ValueError, match='start'): learn.find_batch_size(0, most=8)
    with pytest.raises(torch.OutOfMemoryError, match='not even a batch of 51'): learn.find_batch_size(51, most=64)
    with pytest.raises(ValueError, match='cannot be resized'): batch_of((torch.zeros(3, 2), torch.zeros(5)), 8)
    monkeypatch.setattr(batch_size, 'num_distrib', lambda: 2)
    with pytest.raises(RuntimeError, match='in one process'): learn.find_batch_size(most=8)

def test_a_given_batch():
    x = torch.randn(3, 4)
    assert mk(50).find_batch_size(most=200, exact=True, batch=(x, x[:,:1]))==50

# micro-batches that grow

class GivenSizes(MicroBatch):
    "Uses the given micro-batch sizes, each from its batch on"
    def __init__(self, sizes): super().__init__(1); self.sizes = sizes
    def before_batch(self): self.size = next(s for i,s in reversed(self.sizes) if i<=self.learn.train_iter)

def trained(*cbs, tmp_path=None, stop=None, **kw):
    torch.manual_seed(2)
    learn = mk(99, *cbs, **({} if tmp_path is None else dict(path=tmp_path)))
    def limit_memory(self): self.learn.model.fits = 4 if self.learn.train_iter==1 else 99
    def crash(self):
        if self.learn.train_iter==stop: raise SystemError('the power failed')
    extra = [at('before_batch', limit_memory), at('before_batch', crash)]
    try: learn.fit(3, cbs=extra, **kw)
    except SystemError: pass
    return learn

@pytest.mark.parametrize('grow,sizes', [(None, [(0,8),(1,4)]), (1, [(0,8),(1,4),(2,8)]), (3, [(0,8),(1,4),(4,8)])])
def test_micro_batches_grow_again(grow, sizes):
    with pytest.warns(UserWarning, match='micro-batches of 4') as warned: learn = trained(ReplayOnOOM(grow=grow))
    assert len(warned)==1 and learn.replay_on_oom.size==sizes[-1][1]
    assert torch.equal(weights(learn), weights(trained(GivenSizes(sizes))))

@pytest.mark.parametrize('stop', [2, 3, 5])
def test_a_resumed_run_grows_at_the_same_batch(stop, tmp_path):
    with pytest.warns(UserWarning): whole = trained(ReplayOnOOM(grow=3), CheckpointCallback('1ba'), tmp_path=tmp_path/'a')
    with pytest.warns(UserWarning): trained(ReplayOnOOM(grow=3), CheckpointCallback('1ba'), tmp_path=tmp_path/'b', stop=stop)
    rest = trained(ReplayOnOOM(grow=3), CheckpointCallback('1ba'), tmp_path=tmp_path/'b', resume='auto')
    assert torch.equal(weights(whole), weights(rest)) and rest.replay_on_oom.size==8

def test_bad_growth():
    with pytest.raises(ValueError, match='grow'): ReplayOnOOM(grow=0)
