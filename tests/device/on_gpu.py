"""What only a GPU can show: results that are bitwise those of a hand-written loop on it, half precision, compiled and
fused steps, memory that is full, one shard on one card, and files for a machine without a GPU. `make device` runs
this and on_device.py on a machine with a GPU."""
import gpu   # first: it makes PyTorch's kernels repeatable
import gc, os, signal, subprocess, sys
from contextlib import nullcontext
from functools import partial

import learnkit.all as lk, pytest, torch
from learnkit.loop.run import null_logger
from learnkit.speed.compiled import compile_config
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason='there is no CUDA device')
MIB = 2**20

def net(width=16):
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.Dropout(.2), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4*width, 5))

def data(n=96, bs=16, **kw):
    torch.manual_seed(1)
    return DataLoader(TensorDataset(torch.randn(n, 3, 12, 12), torch.randint(5, (n,))), bs, **kw)

def learner(cbs=(), dl=None, model=net, opt_func=torch.optim.AdamW, lr=.01, **kw):
    learn = lk.Learner(lk.DataLoaders(dl or data(), data(32)), model(), nn.CrossEntropyLoss(), opt_func, lr=lr, cbs=cbs, **kw).remove_cb(lk.ProgressCallback)
    learn.logger = null_logger
    return learn

def state(model): return {k:v.detach().cpu() for k,v in model.state_dict().items()}
def equal(a, b): return all(torch.equal(v, b[k]) for k,v in a.items())
def close(a, b, **kw): [torch.testing.assert_close(v, b[k], **kw) for k,v in a.items()]

def by_hand(around=nullcontext, scaler=None, clip=None, accumulate=1, put=lambda o: o, n_epoch=2):
    "As one writes it for a GPU"
    model = put(net().cuda())
    opt = torch.optim.AdamW(model.parameters(), lr=.01)
    scaler = scaler or torch.amp.GradScaler(enabled=False)
    train,valid = data(),data(32)
    torch.manual_seed(7)
    for _ in range(n_epoch):
        model.train()
        for i,(xb,yb) in enumerate(train):
            with around(): loss = F.cross_entropy(model(put(xb.cuda(non_blocking=True))).float(), yb.cuda(non_blocking=True))   # else a part of it is in 16 bits
            scaler.scale(loss/accumulate).backward()
            if (i+1)%accumulate: continue
            if clip: scaler.unscale_(opt); nn.utils.clip_grad_norm_(model.parameters(), clip)
            scaler.step(opt); scaler.update(); opt.zero_grad()
        for _ in valid: pass   # where a validation draws a seed, too
    return model

last = dict(memory_format=torch.channels_last)
FORMS = {'plain':({}, []), 'clip':(dict(clip=.1), [partial(lk.GradientClip, .1)]), 'accumulate':(dict(accumulate=2), [partial(lk.GradientAccumulation, 32)]),
         'bf16':(dict(around=partial(torch.autocast, 'cuda', torch.bfloat16)), [partial(lk.MixedPrecision, 'bf16')]),
         'fp16':(dict(around=partial(torch.autocast, 'cuda', torch.float16), scaler=True), [lk.MixedPrecision]),
         'fp16, clip':(dict(around=partial(torch.autocast, 'cuda', torch.float16), scaler=True, clip=.1), [lk.MixedPrecision, partial(lk.GradientClip, .1)]),
         'channels last':(dict(put=lambda o: o.to(**last)), [lk.ChannelsLast])}

@pytest.mark.parametrize('form', FORMS)
def test_the_bits_of_a_loop_by_hand(form):
    by,cbs = FORMS[form]
    hand = by_hand(**(by | (dict(scaler=torch.amp.GradScaler()) if 'scaler' in by else {})))
    learn = learner([c() for c in cbs])
    torch.manual_seed(7)
    learn.fit(2)
    assert equal(state(hand), state(learn.model))

@pytest.mark.parametrize('kw', [dict(pin_memory=True), dict(num_workers=2), dict(num_workers=2, pin_memory=True, persistent_workers=True)], ids=['pinned','workers','both'])
@pytest.mark.parametrize('cbs', [[], [lk.Prefetch], [partial(lk.Prefetch, thread=True)]], ids=['plain','prefetch','thread'])
def test_each_way_to_load(kw, cbs):
    def fit(dl, cbs=()): learn = learner([c() for c in cbs], dl); torch.manual_seed(7); learn.fit(2); return state(learn.model)
    assert equal(fit(data()), fit(data(**kw), cbs))

def still(): torch.manual_seed(0); return nn.Sequential(nn.Flatten(), nn.Linear(432, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 5))

@pytest.mark.parametrize('make', [lambda: ([], lk.Learner.compile), lambda: ([lk.FusedStep(options={'triton.cudagraphs':True})], None), lambda: ([lk.FusedStep(options={})], None)],
                         ids=['compiled','fused as a graph','fused'])
@pytest.mark.parametrize('more, tol', [([], dict(rtol=1e-3, atol=1e-3)), ([lk.EMACallback], dict(rtol=1e-3, atol=1e-3)), ([partial(lk.MixedPrecision, 'bf16')], dict(rtol=.05, atol=.02))], ids=['fp32','ema','bf16'])
def test_compiled_steps_are_near_eager_ones(make, more, tol):
    cbs,change = make()
    if cbs and compile_config() is None: pytest.skip('this PyTorch compiles no backward pass')
    a,b = (learner([*o, *[c() for c in more]], model=still, opt_func=partial(torch.optim.SGD, momentum=.9)) for o in ((), cbs))
    if change: change(b)
    for l in (a,b): l.fit(3)
    close(state(a.model), {k.removeprefix('_orig_mod.'):v for k,v in state(b.model).items()}, **tol)
    if cbs: assert cbs[0].counts['fused']>=12, cbs[0].counts

@pytest.fixture
def little_memory():
    "A GPU with 512 MiB"
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_allocated() + 512*MIB)/total)
    yield
    torch.cuda.set_per_process_memory_fraction(1.)

def test_memory_that_is_full(little_memory):
    "The batch is trained in micro-batches, with the gradients of the whole batch, and all memory is freed"
    class Wide(nn.Module):
        def __init__(self): super().__init__(); torch.manual_seed(0); self.lin = nn.Linear(64, 5)
        def forward(self, x): return self.lin(x.repeat(1, 1024).relu().view(len(x), 1024, 64).tanh().mean(1))   # 256 kB a sample, three times
    torch.manual_seed(1)
    x,y = torch.randn(2048, 64),torch.randint(5, (2048,))
    dls = lk.DataLoaders([(x,y)]*3, [(x[:8],y[:8])])
    def fit(cbs, model):
        learn = lk.Learner(dls, model, nn.CrossEntropyLoss(), torch.optim.SGD, lr=.1, cbs=cbs)
        learn.logger = null_logger
        learn.fit(1)
        return learn
    with pytest.raises(torch.OutOfMemoryError): fit([], Wide())
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    with pytest.warns(UserWarning, match='parts of'): learn = fit([lk.ReplayOnOOM()], Wide())
    model = Wide()
    opt = torch.optim.SGD(model.parameters(), lr=.1)
    for _ in range(3): F.cross_entropy(model.lin(x.relu().tanh()), y).backward(); opt.step(); opt.zero_grad()   # each sample is one row, repeated
    close(state(model), state(learn.model), rtol=1e-3, atol=1e-4)
    assert torch.cuda.memory_allocated()-before < 8*MIB

def test_predictions_leave_the_gpu():
    "… as they come: 64 batches of 4 MiB each take no more memory there than two or three"
    learn = learner(model=lambda: nn.Sequential(nn.Flatten(), nn.Linear(432, 65536)))
    learn.loss_func = lambda p,t: p.mean()
    dl = data(1024)
    learn.get_preds(dl=data(32))
    torch.cuda.synchronize(); torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    preds,_ = learn.get_preds(dl=dl)
    assert preds.shape==(1024,65536) and preds.is_cpu and torch.cuda.max_memory_allocated()-before < 24*MIB

class Block(nn.Sequential):
    "A part whose activations are computed again"

def test_recomputed_activations_save_memory():
    def deep(): torch.manual_seed(0); return nn.Sequential(nn.Flatten(), nn.Linear(432, 256), *[Block(nn.Linear(256, 256), nn.ReLU(), nn.Dropout(.1), nn.Linear(256, 256), nn.Tanh()) for _ in range(12)], nn.Linear(256, 5))
    def fit(cbs):
        learn = learner(cbs, data(4096, 4096), deep, torch.optim.SGD)
        torch.manual_seed(7)
        torch.cuda.reset_peak_memory_stats()
        learn.fit(1)
        return state(learn.model),torch.cuda.max_memory_allocated()
    (a,m),(b,n) = fit([]),fit([lk.RecomputeActivations(Block)])
    assert equal(a, b) and n < m - 90*MIB, (m/MIB, n/MIB)   # 12 blocks hold 13 MiB each, of which 4 stay, and one block is there again: 95

@pytest.mark.parametrize('cbs', [[], [partial(lk.MixedPrecision, 'bf16')], [partial(lk.GradientClip, .1), lk.EMACallback]], ids=['plain','bf16','clip and ema'])
def test_one_shard_on_one_card(cbs, tmp_path):
    from torch import distributed as dist
    def fit(*more): learn = learner([*[c() for c in cbs], *more], model=still); learn.fit(2); return {k:getattr(v, 'full_tensor', lambda v=v: v)().cpu() for k,v in learn.model.state_dict().items()}
    plain = fit()
    dist.init_process_group('nccl', init_method=f'file://{tmp_path}/store', rank=0, world_size=1)
    try: close(plain, fit(lk.FullyShard(select=nn.Linear)), rtol=.02 if cbs else 1e-4, atol=.01 if cbs else 1e-5)
    finally: dist.destroy_process_group()

def wide(layer, name): return layer.in_features%16==0 and layer.out_features%16==0

def test_fp8_has_the_bits_of_a_loop_by_hand():
    "… with the last batch of 1 and of 7 samples, which are padded to 16; and compiled, and emulated, it is near"
    float8 = pytest.importorskip('torchao.float8')
    if torch.cuda.get_device_capability()<(8,9): pytest.skip('this GPU has no fp8')
    def deep(): torch.manual_seed(0); return nn.Sequential(nn.Flatten(), nn.Linear(432, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 5))
    def losses(learn): return torch.stack([*map(torch.as_tensor, learn.recorder.train.metrics[0].raw)]).cpu()
    for n in (97, 103):
        model = float8.convert_to_float8_training(deep().cuda(), module_filter_fn=wide, config=float8.Float8LinearConfig(pad_inner_dim=True))
        opt,seen = torch.optim.AdamW(model.parameters(), lr=.01),[]
        torch.manual_seed(7)
        for _ in range(2):
            for xb,yb in data(n):
                with torch.autocast('cuda', torch.bfloat16): loss = F.cross_entropy(model(xb.cuda()).float(), yb.cuda())
                loss.backward(); opt.step(); opt.zero_grad()
                seen.append(loss.item())
            for _ in data(32): pass
        fits = [learner([lk.MixedPrecision('fp8')], data(n), deep), learner([lk.MixedPrecision('fp8')], data(n), deep).compile(),
                learner([lk.MixedPrecision('fp8', config=float8.Float8LinearConfig(emulate=True))], data(n), deep)]
        for learn in fits: torch.manual_seed(7); learn.fit(2)
        own,*near = map(losses, fits)
        assert equal(state(model), state(fits[0].model)) and torch.equal(own, torch.tensor(seen))
        for o in near: torch.testing.assert_close(o, own, rtol=.1, atol=.05)

def _tensor_parallel(rank, world, path):
    from torch import distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    def deep(): torch.manual_seed(0); return nn.Sequential(nn.Flatten(), nn.Linear(432, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 5))
    def whole(model): return {k:getattr(v, 'full_tensor', lambda v=v: v)().cpu() for k,v in model.state_dict().items()}
    torch.cuda.set_device(rank)
    dist.init_process_group('nccl', init_method=f'file://{path}', rank=rank, world_size=world)
    try:
        for cbs,tol in (([], 1e-4), ([lk.GradientClip(.1)], 1e-4), ([lk.MixedPrecision('bf16')], .02)):
            alone = learner(cbs, model=deep, opt_func=torch.optim.SGD)   # Adam would enlarge differences of rounding
            alone.distributed = False
            alone.fit(2)
            model = deep().cuda()
            parallelize_module(model, init_device_mesh('cuda', (world,)), {'1':ColwiseParallel(), '3':RowwiseParallel()})
            learn = learner(cbs, model=lambda: model, opt_func=torch.optim.SGD)
            learn.fit(2)
            close(whole(alone.model), whole(learn.model), rtol=tol, atol=tol)
    finally: dist.destroy_process_group()

@pytest.mark.parametrize('world', [1, 2])
def test_tensor_parallel_layers(world, tmp_path):
    "As one process trains. For two cards: make device CUDA_VISIBLE_DEVICES=0,1"
    if torch.cuda.device_count()<world: pytest.skip(f'this needs {world} GPUs')
    torch.multiprocessing.spawn(_tensor_parallel, (world, tmp_path/'store'), nprocs=world)

def _context_parallel(rank, world, path):
    from torch import distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel
    torch.cuda.set_device(rank)
    dist.init_process_group('nccl', init_method=f'file://{path}', rank=rank, world_size=world)
    try:
        with context_parallel(init_device_mesh('cuda', (world,)), buffers=[torch.zeros(2, 4*world, device='cuda')], buffer_seq_dims=[1]):
            with pytest.raises(ValueError, match='context parallelism is not supported'): learner(model=still).fit(1)
    finally: dist.destroy_process_group()

def test_context_parallelism_is_noticed(tmp_path):
    if torch.cuda.device_count()<2: pytest.skip('this needs 2 GPUs')
    torch.multiprocessing.spawn(_context_parallel, (2, tmp_path/'store'), nprocs=2)

def without_gpu(code, cwd):
    res = subprocess.run([sys.executable, '-c', code], cwd=cwd, capture_output=True, text=True, env=dict(os.environ, CUDA_VISIBLE_DEVICES='', PYTHONPATH=os.pathsep.join([os.getcwd(), *sys.path])))
    assert res.returncode==0, res.stderr
    return res.stdout

def test_files_go_to_a_machine_without_one(tmp_path):
    learn = learner([lk.CheckpointCallback('3ba')], model=still, path=tmp_path)
    learn.fit(1)
    x = torch.randn(4, 3, 12, 12)
    torch.save((x, learn.get_preds(dl=[x])[0]), tmp_path/'preds.pt')
    learn.export('m'); learn.save('w')
    here = os.path.dirname(os.path.abspath(__file__))
    out = without_gpu(f'''
import sys; sys.path.insert(0, {here!r})
import torch, learnkit.all as lk
from on_gpu import still, learner, data
assert not torch.cuda.is_available()
x,preds = torch.load('preds.pt')
learn = learner([lk.CheckpointCallback('3ba')], model=still, path='.')
learn.load('w')
torch.testing.assert_close(learn.get_preds(dl=[x])[0], preds, rtol=1e-3, atol=1e-4)
learn.fit(2, resume='auto')
print(learn.recorder.history[0].keys(), len(learn.recorder.history), next(learn.model.parameters()).device)
''', tmp_path)
    assert '2 cpu' in out

def test_memory_and_time_are_seen(tmp_path):
    "With PyTorch's own recorder, the allocator's counts, and events of the GPU"
    learn = learner([lk.MemorySnapshot(2, skip=1), lk.MemoryMonitor('1ba'), lk.SystemMetrics(), lk.SpeedMonitor()], path=tmp_path)
    learn.fit(1)
    assert [*(tmp_path/'memory').iterdir()] and all(0<a<=p for a,p in zip(learn.memory_monitor.history['allocated'], learn.memory_monitor.history['peak_allocated']))
    prof = learner().profile()
    print(prof)
    assert 'backward' in str(prof)

def test_a_fit_again_has_the_same_bits():
    def fit(): learn = learner([lk.MixUp(), lk.EMACallback()]); lk.set_seed(3); learn.fit(2); return state(learn.model)
    assert equal(fit(), fit())

def test_nothing_is_left_of_a_learner():
    def fit(): learn = learner([lk.EMACallback(), lk.MixedPrecision()]); learn.fit(1); learn.get_preds()
    fit(); gc.collect(); before = torch.cuda.memory_allocated()
    for _ in range(3): fit()
    gc.collect()
    assert torch.cuda.memory_allocated()<=before

def interrupt(event, n):
    "Ctrl-C when `event` happens for the `n`th time"
    seen = []
    def _f(self):
        seen.append(1)
        if len(seen)==n: signal.raise_signal(signal.SIGINT)
    return lk.Callback(**{event:_f})

class Losses(lk.Callback):
    acts = 'nothing'
    def before_fit(self): self.seen = {}
    def after_batch(self):
        if self.training: self.seen[self.learn.train_iter-1] = self.learn.loss.detach()

@pytest.mark.parametrize('cbs', [[], [lk.MixedPrecision, partial(lk.GradientClip, .1)], [partial(lk.MixedPrecision, 'bf16'), lk.EMACallback, partial(lk.GradientAccumulation, 32)], [lk.MixUp]],
                         ids=['plain','fp16, clip','bf16, ema, accumulated','mixup'])
def test_a_run_is_gone_back_into(cbs, tmp_path):
    "A run that is replayed, branched, stopped and resumed on the GPU is the same bit for bit"
    def one(*more, to='a'): return learner([*[c() for c in cbs], *more], data(shuffle=True), path=tmp_path/to)
    losses,straight = Losses(),one(lk.CheckpointCallback('4ba', keep=None))
    torch.manual_seed(7)
    straight.fit(2, cbs=losses)
    again = one(lk.CheckpointCallback('4ba', keep=None))
    at = again.replay(tmp_path/'a', 7)
    assert at['compared']==at['equal'] and again.resume(1)['loss']==losses.seen[7].item()
    other = one(lk.CheckpointCallback('4ba', keep=None))
    other.branch(tmp_path/'a', 5, tmp_path/'b')
    assert equal(state(straight.model), state(other.model))
    stopped = one(lk.Pausable(), to='c')
    torch.manual_seed(7)
    with pytest.raises(KeyboardInterrupt): stopped.fit(2, cbs=interrupt('after_pred', 3))
    assert stopped.paused and stopped.batch[0].is_cpu
    stopped.get_preds(); stopped.resume(2); stopped.resume(until='after_backward'); stopped.resume()
    assert equal(state(straight.model), state(stopped.model))

def test_a_spike_is_explained(tmp_path):
    "A planted sample has the largest loss of its batch, and without it there is no spike"
    def plain(): torch.manual_seed(0); return nn.Sequential(nn.Flatten(), nn.Linear(432, 5))
    dl = data(240)
    dl.dataset.tensors[0][200] *= 1e4
    def one(): return learner([lk.CheckpointCallback('10ba', keep=None)], dl, plain, torch.optim.SGD, 1e-3, path=tmp_path/'a')
    one().fit(1)
    run = lk.Run(tmp_path/'a')
    step = 200//16
    why = one().explain_spike(tmp_path/'a', step)
    assert why.items[0]['item']==200
    assert run.spikes(window=12)[0]['step']==step and one().bisect_spike(tmp_path/'a', step, window=12)==[200]
    assert 'item' in repr(why)

def test_the_largest_batch_is_found(little_memory):
    learn = learner(model=lambda: nn.Sequential(nn.Flatten(), nn.Linear(432, 8192), nn.ReLU(), nn.Linear(8192, 5)), dl=data(65536))
    n = learn.find_batch_size()
    assert n>16
