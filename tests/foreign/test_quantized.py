"""LoRA adapters of peft on a base that bitsandbytes or torchao quantized to 4 or 8 bits: they train, are saved, resume,
and end with the best model."""
import copy, warnings
from functools import partial
import pytest, torch
from torch import nn

peft = pytest.importorskip('peft')
from learnkit.callbacks.averages import EMACallback
from learnkit.callbacks.trackers import SaveModelCallback
from learnkit.learner.learner import Learner
from learnkit.loop.callback import Callback
from learnkit.optim.base import check_base
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.recovery.file import list_checkpoints, read_checkpoint
from learnkit.recovery.nan import RollBackOnNaN

torch.set_num_threads(1)
N = 128

class Net(nn.Module):
    def __init__(self, linear=nn.Linear):
        super().__init__()
        self.a,self.b,self.c = linear(N, N),linear(N, N),nn.Linear(N, 1)
    def forward(self, x): return self.c(torch.tanh(self.b(torch.tanh(self.a(x)))))

def pretrained(seed):
    torch.manual_seed(seed)
    return Net()

def nf4(source, nested=True):
    bnb = pytest.importorskip('bitsandbytes')
    model = Net(partial(bnb.nn.Linear4bit, quant_type='nf4', compute_dtype=torch.float32, compress_statistics=nested))
    model.load_state_dict(source.state_dict())
    for layer in (model.a, model.b):
        layer.weight = layer.weight._quantize('cpu')
        layer.support_avx512bf16_for_cpu = False   # if True, a layer cannot train after an evaluation, in any loop
    return model

def int8_bnb(source):
    bnb = pytest.importorskip('bitsandbytes')
    model = Net(partial(bnb.nn.Linear8bitLt, has_fp16_weights=False))
    model.load_state_dict(source.state_dict())
    return model.to('cpu')

def int8_torchao(source):
    quantization = pytest.importorskip('torchao.quantization')
    model = copy.deepcopy(source)
    quantization.quantize_(model, quantization.Int8WeightOnlyConfig(), filter_fn=lambda m, name: name in ('a','b'))
    return model

KINDS = dict(nf4=nf4, nf4_flat=partial(nf4, nested=False), int8_bnb=int8_bnb, int8_torchao=int8_torchao)

def model(kind, seed):
    torch.manual_seed(seed)
    quantized = KINDS[kind](pretrained(seed))
    config = peft.LoraConfig(target_modules=['a','b'], r=4, modules_to_save=['c'], init_lora_weights='gaussian')
    return peft.get_peft_model(quantized, config)

def data(seed, n):
    g = torch.Generator().manual_seed(seed)
    return [(x, x[:,:4].sum(1, keepdim=True)) for x in torch.randn(n, 8, N, generator=g)]
TRAIN,VALID = data(0, 6),data(1, 2)
BAD = [*TRAIN[:4], (TRAIN[4][0], TRAIN[4][1]*float('nan')), TRAIN[5]]

def learner(kind, path, *cbs, seed=0, train=TRAIN):
    net = model(kind, seed)
    torch.manual_seed(0)
    learn = Learner((train, VALID), net, nn.MSELoss(), opt_func=partial(torch.optim.Adam, lr=.003), path=path, cbs=list(cbs))
    learn.remove_cb(learn.progress)
    learn.logger = lambda row: None
    return learn
def fit(learn, n=2, **kw): learn.fit(n, **kw); return learn

def trained_weights(learn): return {n:p.detach().clone() for n,p in learn.model.named_parameters() if p.requires_grad}
def same(a, b):
    a,b = trained_weights(a),trained_weights(b)
    return a.keys()==b.keys() and all(torch.equal(a[k], b[k]) for k in a)

class PowerCut(Callback):
    observes = True
    def before_step(self):
        if self.learn.train_iter==8: raise KeyboardInterrupt

every_kind = pytest.mark.parametrize('kind', KINDS)

@every_kind
def test_trains_like_a_plain_loop(kind):
    learn = fit(learner(kind, '.'))
    plain = model(kind, 0)
    torch.manual_seed(0)
    params = [p for p in plain.parameters() if p.requires_grad]
    opt = torch.optim.Adam(params, lr=.003)
    for _ in range(2):
        plain.train()
        for x,y in TRAIN:
            nn.functional.mse_loss(plain(x), y).backward(); opt.step(); opt.zero_grad()
    assert all(torch.equal(p, q) for p,q in zip(trained_weights(learn).values(), params))

@every_kind
@pytest.mark.parametrize('base', ['auto','each','digest'])
def test_a_killed_run_resumes(kind, base, tmp_path):
    def saver(): return CheckpointCallback('1ba', base=base)
    whole = fit(learner(kind, tmp_path/'whole', saver()))
    killed = learner(kind, tmp_path/'cut', saver())
    with pytest.raises(KeyboardInterrupt): fit(killed, cbs=PowerCut())
    assert same(fit(learner(kind, tmp_path/'cut', saver()), resume='auto'), whole)
    saved = read_checkpoint(list_checkpoints(whole.checkpoint.folder)[0])
    assert not [name for name in saved['model'] if 'base_layer.weight' in name]

@every_kind
def test_a_run_on_another_base_raises(kind, tmp_path):
    killed = learner(kind, tmp_path, CheckpointCallback('1ba'))
    with pytest.raises(KeyboardInterrupt): fit(killed, cbs=PowerCut())
    with pytest.raises(ValueError, match='base_layer.weight.*Create the model with the same pretrained weights'):
        fit(learner(kind, tmp_path, CheckpointCallback('1ba'), seed=1), resume='auto')

def test_a_base_rounded_by_bitsandbytes_is_explained():
    "On CPUs that compute in bfloat16, an evaluation permanently rounds the scale factors of 4-bit weights"
    net = model('nf4', 0)
    net.base_model.model.a.base_layer.support_avx512bf16_for_cpu = True
    with pytest.raises(ValueError, match='bitsandbytes rounds 4-bit weights .*support_avx512bf16_for_cpu = False'):
        check_base(net, {'base_model.model.a.base_layer.weight.absmax':'of before'}, 'this checkpoint')

@every_kind
@pytest.mark.parametrize('fname', ['best', None, 'best.safetensors'])
@pytest.mark.parametrize('only_trained', [False, True])
def test_ends_with_the_best_model(kind, fname, only_trained, tmp_path):
    learn = fit(learner(kind, tmp_path, SaveModelCallback(fname=fname, only_trained=only_trained)), 5, lr=.05)
    assert learn.validate()[0]==pytest.approx(min(r['valid_loss'] for r in learn.recorder.history), rel=1e-6)

@every_kind
@pytest.mark.parametrize('file', ['m','m.safetensors'])
def test_saved_and_loaded(kind, file, tmp_path):
    learn = fit(learner(kind, tmp_path))
    learn.save(file, with_opt=file=='m')
    again = learner(kind, tmp_path)
    again.load(file, with_opt=file=='m')
    assert same(learn, again) and learn.validate()==again.validate()
    with pytest.raises(ValueError, match='has only the trained weights'): learner(kind, tmp_path, seed=1).load(file)
    if file=='m': assert same(fit(learn, 1), fit(again, 1))

@every_kind
@pytest.mark.parametrize('source', ['memory','checkpoint'])
def test_rolls_back_on_nan(kind, source, tmp_path):
    learn = learner(kind, tmp_path, RollBackOnNaN('1ba', source=source), CheckpointCallback('1ba'), train=BAD)
    with pytest.warns(UserWarning, match='last good weights are restored'): fit(learn, 1)
    assert all(v.isfinite().all() for v in trained_weights(learn).values())

@every_kind
def test_only_trained_weights_are_averaged(kind, tmp_path):
    learn = fit(learner(kind, tmp_path, EMACallback(.9)))
    assert not [name for name in learn.ema.averages if 'base_layer' in name]
    again = learner(kind, tmp_path).load(learn.save('m'))
    assert same(learn, again)

@every_kind
def test_unchanged_restores_the_learner(kind, tmp_path):
    learn = learner(kind, tmp_path)
    before = trained_weights(learn)
    with learn.unchanged(): fit(learn, 1)
    assert all(torch.equal(before[k], v) for k,v in trained_weights(learn).items())
    assert same(fit(learn), fit(learner(kind, tmp_path)))
