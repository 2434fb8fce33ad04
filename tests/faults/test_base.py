"""Checkpoints, best models and saved files of models that are mostly frozen, or quantised, hold all that was trained"""
import copy
from functools import partial
import pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.testing._internal.two_tensor import TwoTensor
from learnkit.callbacks.trackers import SaveModelCallback
from learnkit.learner.learner import Learner
from learnkit.loop.callback import Callback
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.recovery.file import list_checkpoints, read_checkpoint
from learnkit.recovery.nan import RollBackOnNaN
from toys import few

N = 512

class LoRA(nn.Module):
    "A frozen layer with a trained low-rank adapter"
    def __init__(self, n, m, r=4):
        super().__init__()
        self.base = nn.Linear(n, m).requires_grad_(False)
        self.a,self.b = nn.Linear(n, r, bias=False),nn.Linear(r, m, bias=False)
    def forward(self, x): return self.base(x)+self.b(self.a(x))

class Net(nn.Module):
    "A frozen body with adapters and a batch norm that still averages, and a teacher that follows outside of autograd"
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(LoRA(N, N), nn.BatchNorm1d(N).requires_grad_(False), nn.ReLU(), LoRA(N, N))
        self.head = nn.Linear(N, 1)
        self.teacher = copy.deepcopy(self.head).requires_grad_(False)
    def forward(self, x):
        if self.training:
            for t,p in zip(self.teacher.parameters(), self.head.parameters()): t.data.lerp_(p.data, .1)
        h = self.body(x)
        return self.head(h)+.1*self.teacher(h)

def data(seed, n):
    g = torch.Generator().manual_seed(seed)
    return [(x, x[:,:4].sum(1, keepdim=True)) for x in torch.randn(n, 4, N, generator=g)]
TRAIN,VALID = data(0, 6),data(1, 2)
BAD = [*TRAIN[:4], (TRAIN[4][0], TRAIN[4][1]*float('nan')), TRAIN[5]]

def learner(path, *cbs, seed=0, train=TRAIN, model=Net):
    torch.manual_seed(seed)
    net = model()
    torch.manual_seed(0)   # the run's seed does not depend on that of the pretrained weights
    learn = Learner((train, VALID), net, nn.MSELoss(), opt_func=partial(torch.optim.Adam, lr=.003), path=path, cbs=list(cbs))
    learn.remove_cb(learn.progress)
    learn.logger = lambda row: None
    return learn
def fit(learn, n=2, **kw): learn.fit(n, **kw); return learn

def state(learn): return {k:v.clone() for k,v in learn.model.state_dict().items()}
def differences(a, b): return [k for k,v in a.items() if not torch.equal(v, b[k])]
def size(path): return path.stat().st_size
def folder(learn): return learn.checkpoint.folder
WHOLE = sum(p.numel()*p.element_size() for p in Net().parameters())

class PowerCut(Callback):
    observes = True
    def before_step(self):
        if self.learn.train_iter==8: raise KeyboardInterrupt
def killed(path, *cbs, **kw):
    learn = learner(path, *cbs, **kw)
    with pytest.raises(KeyboardInterrupt): fit(learn, cbs=PowerCut())
    return learn

@pytest.fixture(scope='module')
def whole(): return state(fit(learner('.')))

@pytest.mark.parametrize('base', ['auto','file','each','digest'])
@pytest.mark.parametrize('background', [False, True])
@few(3)
def test_a_run_resumes(base, background, whole, tmp_path):
    def saver(): return CheckpointCallback('1ba', keep=2, base=base, background=background)
    learn = killed(tmp_path, saver())
    files = list_checkpoints(folder(learn))
    bases = [*folder(learn).glob('base-*.pth')]
    if base=='each': assert size(files[0])>WHOLE
    else: assert size(files[0])<WHOLE/8
    assert len(bases)==(base in ('auto','file'))
    again = fit(learner(tmp_path, saver()), resume='auto')
    assert not differences(whole, state(again))
    assert [*folder(learn).glob('base-*.pth')]==bases and size(list_checkpoints(folder(learn))[0])<WHOLE/8 or base=='each'

def test_tensors_that_change_are_in_each_checkpoint(tmp_path):
    "Tensors that differ from the base are saved even if they are not trained: statistics of a frozen norm, a teacher"
    learn = killed(tmp_path, CheckpointCallback('1ba', base='digest'))
    names = read_checkpoint(list_checkpoints(folder(learn))[0])['model'].keys()
    assert {'teacher.weight','body.1.running_mean','body.0.a.weight','head.bias'} <= names
    assert not {'body.0.base.weight','body.1.weight','body.3.base.bias'} & names

def test_a_write_through_data_is_in_the_next_checkpoint(tmp_path):
    "A write to one frozen value through `.data` shows neither in PyTorch's version counter nor in a sample of values"
    class Write(Callback):
        order = 1   # before the checkpoint of the batch
        def after_batch(self):
            if self.training and self.train_iter==3: self.model.body[0].base.weight.data.view(-1)[N*N-1] += 1
    learn = fit(learner(tmp_path, CheckpointCallback('1ba', keep=None), Write()), 1)
    in_base = {p.name: 'body.0.base.weight' in read_checkpoint(p)['base'] for p in list_checkpoints(folder(learn))}
    steps = sorted(in_base)
    assert [in_base[name] for name in steps]==[True]*2+[False]*(len(steps)-2), in_base

@pytest.mark.parametrize('base', ['auto','file'])
def test_a_run_with_random_frozen_weights_is_not_lost(base, whole, tmp_path):
    "A new Learner with other frozen weights resumes with the base that was saved"
    killed(tmp_path, CheckpointCallback('1ba', base=base))
    assert not differences(whole, state(fit(learner(tmp_path, CheckpointCallback('1ba', base=base), seed=1), resume='auto')))

def test_another_base_raises(whole, tmp_path):
    killed(tmp_path, CheckpointCallback('1ba', base='digest'))
    other = learner(tmp_path, CheckpointCallback('1ba', base='digest'), seed=1)
    before = state(other)
    with pytest.raises(ValueError, match='body.0.base.weight.*Create the model with the same pretrained weights'): fit(other, resume='auto')
    assert not differences(before, state(other))
    assert not differences(whole, state(fit(learner(tmp_path, CheckpointCallback('1ba', base='digest')), resume='auto')))

@pytest.mark.parametrize('how', ['gone','damaged','other'])
def test_without_the_base_file_the_model_must_have_the_same_frozen_weights(how, whole, tmp_path):
    learn = killed(tmp_path, CheckpointCallback('1ba'))
    file, = folder(learn).glob('base-*.pth')
    if how=='gone': file.unlink()
    if how=='damaged': file.write_bytes(file.read_bytes()[:1000])
    if how=='other':
        tensors = torch.load(file, weights_only=True)
        tensors['body.0.base.weight'][3,3] += 1e-6
        torch.save(tensors, file)
    with pytest.warns(UserWarning, match='base-.*The model must have the same pretrained weights'), \
         pytest.raises(ValueError, match='Create the model with the same'): fit(learner(tmp_path, CheckpointCallback('1ba'), seed=1), resume='auto')
    with pytest.warns(UserWarning): again = fit(learner(tmp_path, CheckpointCallback('1ba')), resume='auto')
    assert not differences(whole, state(again))

def test_a_new_run_deletes_the_base_of_the_old_one(tmp_path):
    learn = killed(tmp_path, CheckpointCallback('1ba'))
    before = {*folder(learn).glob('base-*.pth')}
    fit(learner(tmp_path, CheckpointCallback('1ba', overwrite=True), seed=1))
    after = {*folder(learn).glob('base-*.pth')}
    assert len(before)==len(after)==1 and before!=after

def test_a_branch_and_a_replay_find_the_base(tmp_path):
    fit(learner(tmp_path/'run', CheckpointCallback('3ba', keep=None)))
    there = learner(tmp_path/'run', CheckpointCallback('3ba', keep=None), seed=1)
    with there.no_bar(): assert there.replay(tmp_path/'run', 7)['equal']==1
    branches = [learner(tmp_path/'x', CheckpointCallback('3ba', keep=None), seed=s) for s in (0, 1)]
    for i,b in enumerate(branches):
        with b.no_bar(): b.branch(tmp_path/'run', 7, to=tmp_path/f'b{i}')
    assert not differences(state(branches[0]), state(branches[1]))

@pytest.mark.parametrize('source', ['memory','checkpoint'])
@pytest.mark.parametrize('base', ['auto','digest'])
def test_a_run_with_a_base_rolls_back(source, base, tmp_path):
    learn = learner(tmp_path, RollBackOnNaN('1ba', source=source), CheckpointCallback('1ba', base=base), train=BAD)
    with pytest.warns(UserWarning, match='last good weights are restored'): fit(learn, 1)
    assert all(v.isfinite().all() for v in state(learn).values())

@pytest.mark.parametrize('fname', ['best', None, 'best.safetensors'])
@pytest.mark.parametrize('with_opt', [False, True])
def test_the_best_model(fname, with_opt, tmp_path):
    learn = learner(tmp_path, SaveModelCallback(fname=fname, with_opt=with_opt, only_trained=True))
    fit(learn, 4)
    assert learn.validate()[0]==pytest.approx(min(r['valid_loss'] for r in learn.recorder.history), rel=1e-6)
    if fname is None: return
    file, = (tmp_path/'models').glob('best*')
    assert size(file)<WHOLE/8
    again = learner(tmp_path)
    again.load(file, with_opt=with_opt)
    assert not differences(state(learn), state(again))

@pytest.mark.parametrize('file', ['m','m.safetensors'])
def test_saved_and_loaded(file, tmp_path):
    learn = fit(learner(tmp_path))
    path = learn.save(file, only_trained=True)
    again = learner(tmp_path)
    again.model.teacher.load_state_dict(learn.model.teacher.state_dict())   # frozen, so the file does not have it
    with_opt = file=='m'
    again.load(file, with_opt=with_opt)
    assert size(path)<WHOLE/8+3*8*N*N*with_opt and not differences(state(learn), state(again))
    if with_opt: assert not differences(state(fit(learn, 1)), state(fit(again, 1)))
    other = learner(tmp_path, seed=1)
    before = state(other)
    with pytest.raises(ValueError, match='m.* has only the trained weights, and the other weights'): other.load(file)
    assert not differences(before, state(other))

def test_a_small_or_mostly_trained_model_is_in_each_checkpoint(tmp_path):
    def small():
        m = nn.Sequential(nn.Linear(N, 4), nn.Linear(4, 1))
        m[0].requires_grad_(False)
        return m
    learn = fit(learner(tmp_path, CheckpointCallback(), model=small))
    assert 'base' not in read_checkpoint(list_checkpoints(folder(learn))[0])

def test_a_damaged_base_raises(tmp_path):
    learn = fit(learner(tmp_path))
    s = torch.load(learn.save('m', only_trained=True), weights_only=True)
    for wrong in ('x', {'head.weight':3}, {3:'x'}):
        torch.save({**s, 'base':wrong}, tmp_path/'wrong.pth')
        with pytest.raises(ValueError, match='is damaged: `base`'): learner(tmp_path).load(tmp_path/'wrong.pth')

# weights of 8 bits, as in bitsandbytes (entries in the state_dict that do not load) and torchao (a tensor subclass)

class Listed8(nn.Module):
    "A layer of 8 bits whose state_dict has its scale next to its weight, and which cannot load it"
    def __init__(self, n, m):
        super().__init__()
        w = torch.randn(m, n)/n**.5
        self.scale = w.abs().max()/127
        self.weight = nn.Parameter((w/self.scale).round().to(torch.int8), requires_grad=False)
    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f'{prefix}weight.scale'] = self.scale
    def forward(self, x): return x@(self.weight.float()*self.scale).T

class Wrapped8(nn.Module):
    "A layer whose weight is a tensor subclass that wraps two tensors"
    def __init__(self, n, m):
        super().__init__()
        w = torch.randn(m, n)/n**.5
        self.weight = nn.Parameter(TwoTensor(w, w.clone()), requires_grad=False)
    def forward(self, x): return x@self.weight.a.T

def eight_bits(layer):
    def made():
        body = nn.Sequential(layer(N, 16), nn.BatchNorm1d(16))
        return nn.Sequential(body, nn.Linear(16, 1))
    return made

every_layer = pytest.mark.parametrize('layer', [Listed8, Wrapped8])

@every_layer
@pytest.mark.parametrize('base', ['auto','file','each','digest'])
@few(2)
def test_a_run_on_eight_bits_resumes(layer, base, tmp_path):
    def made(folder, seed=0): return learner(tmp_path/folder, CheckpointCallback('1ba', base=base), RollBackOnNaN('1ba'), model=eight_bits(layer), seed=seed)
    whole,killed = fit(made('whole')),made('cut')
    with pytest.raises(KeyboardInterrupt): fit(killed, cbs=PowerCut())
    assert not differences(floats(whole), floats(fit(made('cut'), resume='auto')))
    killed = made('other')
    with pytest.raises(KeyboardInterrupt): fit(killed, cbs=PowerCut())
    with pytest.raises(ValueError, match='0.0.weight.*Create the model with the same'): fit(made('other', seed=1), resume='auto')

def floats(learn): return {k:v for k,v in state(learn).items() if not k.startswith('0.0.')}

@every_layer
@pytest.mark.parametrize('fname', ['best', None, 'best.safetensors'])
def test_a_run_on_eight_bits_ends_with_its_best_model(layer, fname, tmp_path):
    learn = fit(learner(tmp_path, SaveModelCallback(fname=fname), model=eight_bits(layer)), 4)
    assert learn.validate()[0]==pytest.approx(min(r['valid_loss'] for r in learn.recorder.history), rel=1e-6)

@every_layer
@pytest.mark.parametrize('source', ['memory','checkpoint'])
def test_a_run_on_eight_bits_rolls_back(layer, source, tmp_path):
    learn = learner(tmp_path, RollBackOnNaN('1ba', source=source), CheckpointCallback('1ba'), train=BAD, model=eight_bits(layer))
    with pytest.warns(UserWarning, match='last good weights are restored'): fit(learn, 1)
    assert all(v.isfinite().all() for v in floats(learn).values())
