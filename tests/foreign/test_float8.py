"""`MixedPrecision('fp8')` with torchao's layers, emulated on the CPU: equal to a plain PyTorch loop, files that load
without torchao, resume, and errors where fp8 is not supported."""
import subprocess, sys
from functools import partial

import pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.data import DataLoader, TensorDataset

pytest.importorskip('torchao.float8')
from learnkit.all import (Callback, CheckpointCallback, DataLoaders, EMACallback, FullyShard, GradientClip, Learner, MixedPrecision, ProgressCallback,
                          RecomputeActivations, load_learner)
from learnkit.callbacks import precision
from learnkit.data.process import whole
from torchao.float8 import Float8LinearConfig, convert_to_float8_training
from torchao.float8.float8_linear import Float8Linear
from toys import at, throw

sys.path.insert(0, 'tests/parts/processes')
from test_distributed import processes

torch.set_num_threads(1)

def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 64), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 5))

def data(seed=1, sizes=(16,16,16,7)):
    g = torch.Generator().manual_seed(seed)
    return [(torch.randn(n, 32, generator=g), torch.randint(5, (n,), generator=g)) for n in sizes]

def learner(*cbs, model=None, dls=None, **kw):
    learn = Learner(dls or (data(), data(2)), model or net(), nn.CrossEntropyLoss(), torch.optim.AdamW, lr=.01, cbs=cbs, **kw).remove_cb(ProgressCallback)
    learn.logger = lambda row: None
    return learn

def fp8(**kw): return MixedPrecision('fp8', **kw)
def clips(clip): return [GradientClip(clip)] if clip else []
def losses(learn): return torch.stack([*map(torch.as_tensor, learn.recorder.train.metrics[0].raw)])
def equal(a, b): return all(map(torch.equal, a.state_dict().values(), b.state_dict().values()))
def wide(layer, name): return layer.in_features%16==0 and layer.out_features%16==0

def run_plain_loop(model, n_epoch=2, clip=None):
    "Train in a plain PyTorch loop as in torchao's documentation; return the losses"
    opt,seen = torch.optim.AdamW(model.parameters(), lr=.01),[]
    for _ in range(n_epoch):
        for x,y in data():
            with torch.autocast('cpu', torch.bfloat16): loss = F.cross_entropy(model(x).float(), y)
            loss.backward()
            if clip: nn.utils.clip_grad_norm_(model.parameters(), clip)
            opt.step(); opt.zero_grad()
            seen.append(loss.detach())
    return torch.stack(seen)

@pytest.mark.parametrize('clip', [None, .5])
def test_weights_equal_those_of_a_plain_loop(clip):
    model = convert_to_float8_training(net(), module_filter_fn=wide, config=Float8LinearConfig(emulate=True))
    seen = run_plain_loop(model, clip=clip)
    learn = learner(fp8(), *clips(clip))
    learn.fit(2)
    assert equal(model, learn.model) and torch.equal(losses(learn), seen)
    with torch.no_grad(), torch.autocast('cpu', torch.bfloat16): by_layers = torch.cat([model.eval()(x) for x,_ in data(2)])
    assert torch.equal(learn.get_preds()[0], by_layers.float())   # predictions too, after the fit
    converted = convert_to_float8_training(net(), module_filter_fn=wide, config=Float8LinearConfig(emulate=True))
    own = learner(MixedPrecision('bf16'), *clips(clip), model=converted)   # converted before the Learner
    own.fit(2)
    assert equal(own.model, learn.model)

def test_losses_are_near_those_of_bf16():
    of = {}
    for mode in ('bf16','fp8'):
        learn = learner(MixedPrecision(mode))
        learn.fit(3)
        of[mode] = losses(learn)
    assert 0<(of['bf16']-of['fp8']).abs().max()<.05 and of['fp8'][-1]<of['fp8'][0]

def test_the_model_is_restored_however_a_fit_ends(tmp_path):
    seen = []
    def look(cb): seen.append([type(m).__name__ for m in cb.learn.model] + ['forward' in vars(m) for m in cb.learn.model])
    model = net()
    calls = []
    model[0].register_forward_hook(lambda *o: calls.append(1))
    learn = learner(fp8(), at('before_batch', look), model=model, path=tmp_path)
    learn.fit(1)
    assert len(calls)==8 and seen[0][:6]==[type(m).__name__ for m in net()] and seen[0][6:]==[True,False,False,True,False,False]
    for end in (KeyboardInterrupt, ZeroDivisionError):
        with pytest.raises(end): learn.fit(1, cbs=at('after_pred', throw(end)))
        assert not any('forward' in vars(m) for m in learn.model) and learn.mixed_precision.float8 is None
    learn.fit(1, cbs=at('after_loss', lambda cb: cb.learn.to_fp32()))   # removed within a batch
    assert not any('forward' in vars(m) for m in learn.model)
    for name in ('module_filter_fn','config'): assert name not in vars(learn.model[0])

@pytest.mark.parametrize('during', [False, True], ids=['after a fit','within a fit'])
def test_files_need_no_torchao(tmp_path, during):
    def save(cb): paths[:] = [learn.save('w'),learn.export('m')]
    learn = learner(fp8(), EMACallback(.9), path=tmp_path)
    paths = []
    learn.fit(1, cbs=at('after_epoch', save) if during else None)
    if not during: save(None)
    fresh = net()
    fresh.load_state_dict(torch.load(paths[0], weights_only=True)['model'])
    x = data()[0][0]
    with torch.no_grad(): torch.save((x, fresh.eval()(x)), tmp_path/'preds.pt')
    code = f'''
import sys; sys.modules['torchao'] = None
import torch; from learnkit.all import load_learner
x,preds = torch.load({str(tmp_path/'preds.pt')!r})
nn = torch.nn
model = nn.Sequential(nn.Linear(32, 64), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 5))
learn = load_learner({str(paths[1])!r}, model)
assert torch.equal(learn.model.eval()(x), preds)
'''
    res = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert res.returncode==0, res.stderr

@pytest.mark.parametrize('cbs', [[], [partial(EMACallback, .9)]], ids=['plain','ema'])
def test_a_killed_run_resumes_exactly(tmp_path, cbs):
    def make(to): return learner(fp8(), CheckpointCallback('2ba'), *[c() for c in cbs], path=tmp_path/to)
    straight = make('a')
    straight.fit(3)
    with pytest.raises(KeyboardInterrupt): make('b').fit(3, cbs=at('after_batch', throw(KeyboardInterrupt), lambda cb: cb.learn.train_iter==7, acts='nothing'))
    resumed = make('b')
    resumed.fit(3, resume='auto')
    assert equal(straight.model, resumed.model) and straight.recorder.history['valid_loss']==resumed.recorder.history['valid_loss']

def test_the_filter_and_configuration_are_those_of_torchao():
    learn = learner(fp8(module_filter_fn=lambda layer, name: name=='3', config=Float8LinearConfig(emulate=True)))
    used = []
    learn.fit(1, cbs=at('before_batch', lambda cb: used.append([n for n,m in cb.learn.model.named_modules() if 'forward' in vars(m)])))
    assert used[0]==['3']
    with pytest.raises(ValueError, match='does not support `enable_fsdp_float8_all_gather`'):
        learner(fp8(config=Float8LinearConfig(emulate=True, enable_fsdp_float8_all_gather=True))).fit(1)

def test_errors_where_fp8_is_not_supported(monkeypatch):
    with pytest.raises(TypeError, match='not `init_scale`'): fp8(init_scale=2)
    with pytest.raises(ValueError, match='no layer of the model can compute in fp8'): learner(fp8(), model=nn.Sequential(nn.Linear(32, 5))).fit(1)
    with pytest.raises(ValueError, match=r"this device \(meta\) does not compute in fp8: write `MixedPrecision\('bf16'\)`"): precision.make_float8_config(torch.device('meta'))
    monkeypatch.setitem(sys.modules, 'torchao.float8', None)
    with pytest.raises(ImportError, match=r"MixedPrecision\('fp8'\) needs torchao: pip install"): learner(fp8()).fit(1)

def test_fp8_with_other_callbacks():
    plain = learner(fp8()); plain.fit(1)
    again = learner(fp8(), RecomputeActivations(nn.LayerNorm)); again.fit(1)
    assert equal(plain.model, again.model)
    nested = learner(fp8(), at('after_batch', lambda cb: cb.learn.get_preds(), modes=('fit',)))
    nested.fit(1)
    assert equal(plain.model, nested.model)

def test_losses_of_a_compiled_model_are_near():
    plain,compiled = learner(fp8()),learner(fp8()).compile()
    for learn in (plain, compiled): learn.fit(2)
    assert torch.allclose(losses(plain), losses(compiled), atol=.02)

class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.up,self.down,self.head = nn.Linear(32, 64),nn.Linear(64, 32),nn.Linear(32, 5)
    def forward(self, x): return self.head(self.down(self.up(x).relu()))

def _trains(rank, world):
    "FullyShard equals DistributedDataParallel: layers see whole weights. Tensor-parallel layers round differently"
    rows = TensorDataset(*map(torch.cat, zip(*data())))
    def fit(model, *cbs, **kw):
        learn = learner(fp8(), *cbs, model=model, dls=DataLoaders(DataLoader(rows, 8), DataLoader(rows, 8)))
        for name,value in kw.items(): setattr(learn, name, value)
        learn.fit(2)
        return torch.cat([whole(p).flatten() for p in learn.model.state_dict().values()]),losses(learn)
    assert torch.allclose(fit(net())[0], fit(net(), FullyShard(select=nn.Linear))[0], atol=1e-5)
    parallel = parallelize_module(Blocks(), init_device_mesh('cpu', (world,)), dict(up=ColwiseParallel(), down=RowwiseParallel()))
    assert torch.allclose(fit(parallel)[1], fit(Blocks(), distributed=False)[1], atol=.02)

def test_two_processes(processes): processes(2, _trains)   # noqa: F811
