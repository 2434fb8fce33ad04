"""Bugs that users of other libraries reported: learnkit handles each case, or raises a clear error at the request."""
import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np, pytest, torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset, TensorDataset

from learnkit.all import (AdaptiveGradientClip, BnFreeze, Callback, CheckpointCallback, CutMix, GradientAccumulation, Learner, ParamScheduler,
                          ReduceLROnPlateau, SchedLin, SchedNo, TorchScheduler)
from learnkit.recovery.identity import describe_differences, shorten_to_difference

def fit(learn, n=1, f='fit', **kwargs):
    with learn.no_bar(), learn.no_logging(): getattr(learn, f)(n, **kwargs)
    return learn

def warnings_of(f):
    with warnings.catch_warnings(record=True) as caught: warnings.simplefilter('always'); f()
    return [str(w.message) for w in caught]

g = torch.Generator().manual_seed(1)
X,Y = torch.randn(10, 3, generator=g),torch.randn(10, 1, generator=g)
items = TensorDataset(X, Y)

class Rates(Callback):
    order = 300
    def __init__(self): self.rates = []
    def before_step(self): self.rates.append([group['lr'] for group in self.learn.opt.param_groups])

@pytest.mark.parametrize('bs,acc', [(4, 4), (4, 8), (2, 4), (3, 3), (5, 20)])
def test_the_scheduler_advances_at_each_optimizer_step(bs, acc):
    "The step with the leftover samples and the next step used to advance the scheduler only once"
    learn = Learner([DataLoader(items, bs)], nn.Linear(3, 1), nn.MSELoss(), opt_func=partial(torch.optim.SGD, lr=.1),
                    cbs=[GradientAccumulation(acc), TorchScheduler(partial(LambdaLR, lr_lambda=lambda s: .9**s), interval='step'), rates := Rates()])
    fit(learn, 3)
    assert len(rates.rates)==learn.train_steps and np.allclose([r for r, in rates.rates], [.1*.9**i for i in range(learn.train_steps)])

def layered(model, opt=torch.optim.SGD):
    "An optimizer with groups as timm makes them for layer-wise decay"
    return opt([dict(params=model[0].parameters(), lr_scale=.5), dict(params=model[1].parameters(), lr_scale=1.)], lr=1.)

@pytest.mark.parametrize('cbs,expected', [((), [.1, .1]), ((lambda: ParamScheduler({'lr':SchedLin(.1, .0)}),), [.1, .05])])
def test_lr_scale_of_groups_is_applied(cbs, expected):
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    learn = Learner([DataLoader(items, 5)], model, nn.MSELoss(), opt_func=layered(model), lr=.1, cbs=[*(f() for f in cbs), rates := Rates()])
    fit(learn)
    assert np.allclose(rates.rates, [[.5*lr, lr] for lr in expected])

def test_given_rates_of_groups_are_not_scaled():
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    learn = Learner([DataLoader(items, 5)], model, nn.MSELoss(), opt_func=layered(model), lr=[.1, .2], cbs=(rates := Rates()))
    fit(learn)
    assert np.allclose(rates.rates, [[.1, .2]]*2)

class TimmScheduler:
    "Multiplies by `lr_scale`, as the schedulers of timm do"
    t_in_epochs = False
    def __init__(self, opt):
        self.optimizer = opt
        for group in opt.param_groups: group.setdefault('initial_lr', group['lr'])
        self.base = [group['initial_lr'] for group in opt.param_groups]
        self.step_update(0)
    def step(self, n, metric=None): pass
    def step_update(self, n, metric=None):
        for group,lr in zip(self.optimizer.param_groups, self.base): group['lr'] = lr*.5**n*group.get('lr_scale', 1)
    def state_dict(self): return dict(base=self.base)
    def load_state_dict(self, d): self.base = d['base']

def test_a_scheduler_of_timm_multiplies_by_it_itself():
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    learn = Learner([DataLoader(items, 5)], model, nn.MSELoss(), opt_func=layered(model), lr=.1, cbs=[TorchScheduler(TimmScheduler), rates := Rates()])
    fit(learn)
    assert np.allclose(rates.rates, [[.05, .1], [.025, .05]])

def own_decays(model): return torch.optim.AdamW([dict(params=[model[0].weight], weight_decay=.1), dict(params=[model[0].bias, *model[1].parameters()], weight_decay=0.)], lr=.01)

def test_one_decay_for_groups_that_have_their_own_raises():
    def learner(**kwargs): model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1)); return Learner([DataLoader(items, 5)], model, nn.MSELoss(), opt_func=own_decays(model), **kwargs)
    with pytest.raises(ValueError, match=r'`wd` is one number.*\[0.1, 0.0\].*list'): fit(learner(), wd=.2)
    with pytest.raises(ValueError, match='the schedule of `wd` is one number'): fit(learner(cbs=ParamScheduler({'wd':SchedNo(.2, .2)})))
    learn = learner()
    fit(learn, wd=[.2, 0.])
    assert [group['weight_decay'] for group in learn.opt.param_groups if group['params']][0]==.2

def test_a_schedule_of_the_decay_spares_norms_and_biases():
    seen = []
    learn = Learner([DataLoader(items, 5)], nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 1)), nn.MSELoss(), opt_func=torch.optim.AdamW,
                    cbs=ParamScheduler({'wd':SchedNo(.2, .2)}))
    learn.on('before_step')(lambda learn: seen.append([(o['weight_decay'], len(o['params'])) for o in learn.opt.param_groups]))
    fit(learn, 2)
    assert seen==[[(.2, 2), (0., 4)]]*4
    assert [len(o['params']) for o in learn.opt.param_groups]==[6] and learn.opt.param_groups[0]['weight_decay']==.01

@pytest.mark.parametrize('frozen', [True, False])
def test_a_norm_without_weights_is_frozen_with_the_layer_before(frozen):
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, affine=False), nn.Linear(4, 1))
    model[0].requires_grad_(not frozen)
    fit(Learner([DataLoader(items, 5)], model, nn.MSELoss(), cbs=BnFreeze()))
    assert (model[1].running_mean.abs().max()==0)==frozen

def test_sparse_gradients_raise_in_one_sentence():
    model = nn.Sequential(nn.Embedding(9, 4, sparse=True), nn.Linear(4, 1))
    learn = Learner([[(torch.tensor([1, 2]), torch.randn(2, 1))]], model, nn.MSELoss(), opt_func=partial(torch.optim.SGD, lr=.1), cbs=AdaptiveGradientClip())
    with pytest.raises(ValueError, match='cannot clip sparse gradients: write `sparse=False`'): fit(learn)

class Len(list):
    def __init__(self, batches, n): super().__init__(batches); self.n = n
    def __len__(self): return self.n

@pytest.mark.parametrize('n,more', [(3, True), (5, False), (4, True)])
def test_a_loader_that_gives_more_than_its_len(n, more):
    batches = [(torch.randn(2, 3), torch.randn(2, 1)) for _ in range(5)]
    messages = [s for s in warnings_of(lambda: fit(Learner([Len(batches, n)], nn.Linear(3, 1), nn.MSELoss()))) if '`len`' in s]
    assert bool(messages)==more
    if more: assert f'yielded 5 batches, but its `len` is {n}' in messages[0]

def test_a_loader_of_length_zero_has_a_len(capsys):
    dl = DataLoader(items, 16, drop_last=True)
    learn = Learner([dl], nn.Linear(3, 1), nn.MSELoss())
    with pytest.raises(ValueError, match='yielded no batch'), learn.no_bar(): learn.fit(1)
    assert 'has no `len`' not in capsys.readouterr().out

def test_a_plateau_with_a_rate_in_a_tensor(capsys):
    "Rounding to 32 bits was taken for a schedule, and each epoch reduced the learning rate to its current value"
    x = torch.randn(16, 4)
    learn = Learner(([(x, x[:,:1])],)*2, nn.Linear(4, 1), nn.MSELoss(), opt_func=partial(torch.optim.SGD, lr=torch.tensor(1.)),
                    cbs=ReduceLROnPlateau(patience=1, min_delta=100., min_lr=.1))
    with learn.no_bar(): messages = warnings_of(lambda: learn.fit(5))
    assert not [s for s in messages if 'a schedule sets them, too' in s]
    assert capsys.readouterr().out.count('reducing lr to 0.1')==1

@dataclass(frozen=True)
class Out:
    logits:torch.Tensor
    extra:tuple

class Net(nn.Module):
    def __init__(self): super().__init__(); self.l = nn.Linear(3, 1)
    def forward(self, x): p = self.l(x); return Out(p, (p.sum(), 'text'))

def test_mixed_precision_looks_into_dataclasses():
    kinds = []
    def loss(p, y): kinds.extend([p.logits.dtype, p.extra[0].dtype, p.extra[1]]); return ((p.logits-y)**2).mean()
    fit(Learner([DataLoader(items, 10)], Net(), loss).to_bf16())
    assert kinds==[torch.float32, torch.float32, 'text']

def test_two_texts_show_where_they_differ():
    a,b = 'x'*100+'patience=5'+'y'*100,'x'*100+'patience=2'+'y'*100
    now,then = shorten_to_difference(a, b)
    assert 'patience=5' in now and 'patience=2' in then and max(len(now), len(then))<=82
    assert shorten_to_difference('short', None)==('short', 'nothing')
    difference = describe_differences(dict(k=b), dict(k=a))['k']
    assert 'patience=5' in difference and 'patience=2' in difference

def test_a_longer_fit_with_a_schedule_is_reported(tmp_path):
    def learner(): return Learner([DataLoader(items, 2)]*2, nn.Linear(3, 1), nn.MSELoss(), path=tmp_path, cbs=CheckpointCallback('1ep'))
    class Cut(Callback):
        acts = 'nothing'
        def after_batch(self):
            if self.train_iter==12: raise SystemError
    with pytest.raises(SystemError): fit(learner(), 3, 'fit_one_cycle', cbs=Cut())
    message, = [s for s in warnings_of(lambda: fit(learner(), 6, 'fit_one_cycle', resume='auto')) if 'is stretched' in s]
    assert '`lr` goes from' in message

class Box(Callback):
    order = 90
    def __init__(self): self.seen = []
    def before_batch(self):
        if self.training: assert torch.equal(self.learn.x, self.learn.y.float().reshape(self.learn.x.shape)); self.seen += self.learn.x.mean((1, 2, 3)).tolist()

@pytest.mark.parametrize('kind', ['pixels', 'classes'])
def test_cutmix_pastes_the_box_into_targets_with_pixels(kind):
    "The whole target was blended, while the box was pasted into the input"
    x = torch.zeros(8, 1, 8, 8); x[4:] = 1
    y,loss,out = (x.clone(), nn.MSELoss(), 1) if kind=='pixels' else (x[:,0].long(), nn.CrossEntropyLoss(), 2)
    torch.manual_seed(3)
    learn = Learner([[(x, y)]*4], nn.Conv2d(1, out, 1), loss, cbs=[CutMix(), box := Box()])
    fit(learn)
    assert any(0<mean<1 for mean in box.seen)   # a box was pasted

def test_cutmix_raises_for_targets_of_another_size():
    learn = Learner([[(torch.randn(4, 1, 8, 8), torch.randn(4, 1, 4, 4))]], nn.Conv2d(1, 1, 2, 2), nn.MSELoss(), cbs=CutMix())
    with pytest.raises(ValueError, match='CutMix pastes a box into inputs of 8×8 pixels, and cannot do the same'): fit(learn)

class Own(Dataset):
    reads = 0
    def __len__(self): return 10
    def __getitem__(self, i): self.reads += 1; return X[i],0

@dataclass
class Unhashable(Dataset):
    n:int=10
    def __len__(self): return self.n
    def __getitem__(self, i): return X[i],0

@pytest.mark.parametrize('data', [lambda: TensorDataset(X, torch.zeros(10).long()), Own, lambda: [(x,0) for x in X], lambda: {i:(x,0) for i,x in enumerate(X)}, Unhashable])
@pytest.mark.parametrize('as_given', [lambda t: t, lambda t: t.numpy()])
def test_predict_takes_no_batch(data, as_given):
    "For a batch it returned the argmax over the whole batch as a label"
    ds = data()
    learn = Learner([DataLoader(ds, 5)], nn.Linear(3, 4), nn.CrossEntropyLoss())
    with pytest.raises(ValueError, match='`predict` takes one sample'): learn.predict(as_given(X[:8]))
    assert learn.predict(as_given(X[0]))[2].shape==(4,)
    if data is Own: assert ds.reads==0

def test_predict_of_an_image_with_a_list_of_samples():
    "It raised: TypeError: cannot create weak reference to 'list' object"
    x = torch.randn(6, 2, 3)
    learn = Learner([DataLoader([(o,0) for o in x], 3)], nn.Sequential(nn.Flatten(), nn.Linear(6, 4)), nn.CrossEntropyLoss())
    torch.testing.assert_close(learn.predict(x[1])[2], learn.get_preds(ds_idx=0)[0][1])
    with pytest.raises(ValueError, match='`predict` takes one sample'): learn.predict(x)

class Packed(nn.Module):
    def __init__(self): super().__init__(); self.l = nn.GRU(3, 4, batch_first=True)
    def forward(self, x): return self.l(x)[0]
class Normal(nn.Module):
    def __init__(self): super().__init__(); self.l = nn.Linear(3, 1)
    def forward(self, x): return torch.distributions.Normal(self.l(x), 1.)
class Nested(Normal):
    def forward(self, x): return torch.nested.nested_tensor([*self.l(x)])

def packed(): return pack_padded_sequence(torch.randn(4, 5, 3), torch.tensor([5, 4, 3, 2]), batch_first=True)

@pytest.mark.parametrize('model,dl,words', [
    (Packed, lambda: [(packed(), torch.randn(4))], 'pad_packed_sequence'),
    (Normal, lambda: DataLoader(items, 5, sampler=[*range(9, -1, -1)]), 'a Normal for each batch cannot be reordered: write `reorder=False`'),
    (Nested, lambda: DataLoader(items, 5), 'to_padded_tensor')])
def test_predictions_that_cannot_be_joined_raise(model, dl, words):
    dl = dl()
    learn = Learner([dl, dl], model(), lambda p, y: None)
    with pytest.raises(TypeError, match=words.replace('(', r'\(')), learn.no_bar(), learn.no_logging(): learn.get_preds()

def test_distributions_in_the_order_of_the_loader():
    learn = Learner([DataLoader(items, 5)]*2, Normal(), lambda p, y: -p.log_prob(y).mean())
    with learn.no_bar(), learn.no_logging(): preds,targs = learn.get_preds()[:2]
    assert len(preds)==2 and torch.equal(targs, Y)
