"""`Learner.fit` compared with a plain PyTorch loop: weights, losses, buffers and random numbers are the same bit for
bit with any optimizer, schedule, accumulation, clipping, precision and loader; and again in another process, in another
folder, and a hundred times over."""
import gc, hashlib, os, subprocess, sys, threading, warnings, weakref
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest, torch, torch.nn.functional as F
from hypothesis import example, given, strategies as st
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from learnkit.all import (Adam, Callback, CSVLogger, EMACallback, GradientAccumulation, GradientClip, Learner, MixedPrecision, MixUp, Recorder, TorchScheduler,
                          TrainEvalCallback, accuracy, get_random_states, set_seed)
from toys import draws

torch.set_num_threads(1)
opts = dict(sgd=partial(torch.optim.SGD, momentum=.9, nesterov=True), adam=torch.optim.Adam, adamw=partial(torch.optim.AdamW, weight_decay=.1), rmsprop=torch.optim.RMSprop,
            adagrad=torch.optim.Adagrad, foreach=partial(torch.optim.AdamW, foreach=True))
scheds = dict(none=None, step=partial(torch.optim.lr_scheduler.StepLR, step_size=3, gamma=.5), cosine=partial(torch.optim.lr_scheduler.CosineAnnealingLR, T_max=9),
              one_cycle=partial(torch.optim.lr_scheduler.OneCycleLR, max_lr=.05, total_steps=100, cycle_momentum=False))

def parts(n, bs, drop_last, valid):
    "Data with a short last batch, and a model with dropout and batch norm; the same each time"
    set_seed(5)
    x = torch.randn(n, 6)
    ds = TensorDataset(x, (x[:,0]>0).long() + (x[:,1]>0))
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(.3), nn.Linear(8, 3))
    return DataLoader(ds, bs, shuffle=True, drop_last=drop_last),DataLoader(ds, 2*bs) if valid else None,model

def raw(train, valid, model, epochs, opt, sched, lr, acc, clip, bf16, bs):
    "Train in a plain PyTorch loop; return the losses"
    amp = partial(torch.autocast, 'cpu', torch.bfloat16) if bf16 else nullcontext
    opt,losses = opt(model.parameters(), lr=lr),[]
    sched = sched and sched(opt)
    for epoch in range(epochs):
        model.train()
        seen = 0
        for i,(x,y) in enumerate(train):
            with amp(): loss = F.cross_entropy(model(x), y)
            (loss*(len(x)/(acc*bs)) if acc>1 else loss).backward()
            losses.append(loss.item())
            seen += len(x)
            if seen<acc*bs and i+1<len(train): continue
            if acc>1 and seen<acc*bs:
                for p in model.parameters(): p.grad.mul_(acc*bs/seen)
            if clip: nn.utils.clip_grad_norm_(model.parameters(), clip)
            opt.step(); opt.zero_grad()
            if sched: sched.step()
            seen = 0
        if valid is None: continue
        model.eval()
        with torch.no_grad(), amp():
            for x,y in valid: F.cross_entropy(model(x), y)
    return losses

def fitted(train, valid, model, epochs, opt, sched, lr, acc, clip, bf16, bs):
    cbs = [GradientAccumulation(acc*bs)]*(acc>1) + ([GradientClip(clip)] if clip else []) + [MixedPrecision('bf16')]*bf16 + ([TorchScheduler(sched, 'step')] if sched else [])
    learn = Learner((train, valid), model, nn.CrossEntropyLoss(), opt, lr=lr, cbs=cbs)
    with learn.no_bar(), learn.no_logging(): learn.fit(epochs)
    return learn.recorder.smooth_loss.raw

@draws(15)
@given(st.sampled_from([*opts]), st.sampled_from([*scheds]), st.integers(9, 40), st.integers(2, 9), st.booleans(), st.integers(1, 4), st.sampled_from([None, .05, 1.]), st.booleans(), st.booleans(), st.integers(1, 3))
@example('adam', 'one_cycle', 29, 4, False, 3, .05, True, True, 3)
def test_fit_equals_a_plain_loop(opt, sched, n, bs, drop_last, acc, clip, bf16, valid, epochs):
    if n%bs==1: n += 1   # batch norm needs more than one sample
    res = []
    for run in (raw, fitted):
        train,val,model = parts(n, bs, drop_last, valid)
        losses = run(train, val, model, epochs, opts[opt], scheds[sched], .02, acc, clip, bf16, bs)
        res.append((losses, model.state_dict(), get_random_states()))
    (losses,weights,rng),(losses2,weights2,rng2) = res
    assert losses==losses2
    assert all(torch.equal(v, weights2[k]) for k,v in weights.items())
    assert rng['random_state']==rng2['random_state'] and torch.equal(rng['torch_state'], rng2['torch_state'])

# in another process and folder

script = '''
import sys
sys.path[:0] = {path!r}
from test_raw_loop import *
print(one_hash())
'''

def digest(*tensors):
    sha = hashlib.sha256()
    for t in tensors: sha.update(t.detach().numpy().tobytes())
    return sha.hexdigest()

def one_hash():
    "A hash of weights, losses and random state after a run that draws many random numbers"
    train,valid,model = parts(14, 4, False, True)
    learn = Learner((train, valid), model, nn.CrossEntropyLoss(), Adam, lr=.01, metrics=accuracy, cbs=[MixUp(), EMACallback(.9), GradientClip(.5)])
    with learn.no_bar(), learn.no_logging(): learn.fit_one_cycle(1)
    return digest(*model.state_dict().values(), torch.tensor(learn.recorder.smooth_loss.raw), torch.get_rng_state())

@pytest.mark.slow
def test_in_another_process(tmp_path):
    "A process with a different string hash seed and folder computes the same, bit for bit"
    code = script.format(path=[str(Path(__file__).parents[2]), str(Path(__file__).parent), str(Path(__file__).parents[1])])
    p = subprocess.run([sys.executable, '-c', code], cwd=tmp_path, env={**os.environ, 'PYTHONHASHSEED':'4711'}, stdout=subprocess.PIPE, text=True, check=True)
    assert p.stdout.strip()==one_hash()

@pytest.mark.slow
def test_a_hundred_times(): assert len({one_hash() for _ in range(100)})==1

# no leaks

def rss(): return int(Path('/proc/self/statm').read_text().split()[1])*os.sysconf('SC_PAGE_SIZE')

@pytest.mark.skipif(not os.path.isdir('/proc/self/fd'), reason='counts in /proc')
@pytest.mark.slow
def test_two_hundred_fits_leak_nothing(tmp_path):
    "Learner, model, loaders and optimizer are freed; numbers of open files and threads, and memory, do not grow"
    counts,refs = [],[]
    class Held(TensorDataset): pass
    def go(i):
        ds = Held(torch.randn(16, 6), torch.randint(3, (16,)))
        # large enough that one leaked model would show in the memory
        model = nn.Sequential(nn.Linear(6, 300), nn.BatchNorm1d(300), nn.Dropout(.3), nn.Linear(300, 3))
        learn = Learner((DataLoader(ds, 4, shuffle=True), DataLoader(ds, 8)), model, nn.CrossEntropyLoss(), Adam, path=tmp_path, metrics=accuracy,
                        cbs=[CSVLogger(), GradientClip(), EMACallback(.9)])
        def fail(self): raise ValueError('x')
        with learn.no_bar(), learn.no_logging():
            learn.fit(1)
            if i%4==0:
                with pytest.raises(ValueError): learn.fit(1, cbs=Callback(after_loss=fail))
            if i%4==1: learn.get_preds(); learn.save('m'); learn.load('m')
        return [weakref.ref(o) for o in (learn, model, ds, learn.dls, learn.recorder, learn.opt)]
    for i in range(200):
        refs += go(i)
        if i%20: continue
        gc.collect()
        refs = [r for r in refs if r() is not None]
        counts.append((len(refs), len(os.listdir('/proc/self/fd')), threading.active_count(), len(gc.get_objects()), rss()))
    alive,fds,threads,objects,memory = zip(*counts[2:])
    assert set(alive)=={0} and len(set(fds))==1 and len(set(threads))==1
    assert max(objects)-min(objects)<200, objects
    assert memory[-1]-memory[0]<2**20, memory   # over 160 fits; the weights and averages of one are 40 kB

class Live(torch.utils._python_dispatch.TorchDispatchMode):
    "Measures the peak of bytes in tensors that are created while it is active"
    def __init__(self): super().__init__(); self.sizes,self.most = {},0
    def __torch_dispatch__(self, f, types, args=(), kwargs=None):
        out = f(*args, **(kwargs or {}))
        for t in out if isinstance(out, (tuple,list)) else [out]:
            if isinstance(t, torch.Tensor): self._made(t.untyped_storage())
        return out
    def _made(self, s):
        if s._cdata in self.sizes: return
        self.sizes[s._cdata] = s.nbytes()
        weakref.finalize(s, self.sizes.pop, s._cdata, None)
        self.most = max(self.most, sum(self.sizes.values()))

@pytest.mark.parametrize('acc', [1, 3])
def test_no_more_memory_than_a_plain_loop(acc):
    most = []
    for run in (raw, fitted):
        train,valid,_ = parts(60, 10, False, True)
        model = nn.Sequential(nn.Linear(6, 500), nn.ReLU(), nn.Linear(500, 300), nn.ReLU(), nn.Linear(300, 3))
        with Live() as live: run(train, valid, model, 2, torch.optim.AdamW, None, .01, acc, .5, False, 10)
        most.append(live.most)
    # this includes the two moments for each of 150 000 weights
    assert 2*600_000<most[0] and most[1]<=1.01*most[0], most
