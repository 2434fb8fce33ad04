"""An exported and loaded model gives the same predictions, bit for bit, for every loss function and kind of model; errors name what is missing."""
import io, json

import pytest, torch, torch.nn.functional as F
from torch import nn

from learnkit.measure import losses as L
from learnkit.all import DataLoaders, ExportAtEnd, Inputs, Learner, MixedPrecision, get_random_states
from learnkit.recovery.export import load_learner, read_export
from learnkit.recovery.export import torch_export
from learnkit.recovery.export import known_losses, loss_config, loss_from_config
from toys import few

def classes(n_out=3):
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(.5), nn.Linear(8, n_out))

class Two(nn.Module):
    "Two inputs, a buffer that is not a float, tied weights"
    def __init__(self):
        super().__init__()
        self.a,self.b = nn.Linear(4, 3),nn.Linear(4, 3)
        self.b.weight = self.a.weight
        self.register_buffer('n', torch.zeros((), dtype=torch.long))
    def forward(self, x, y):
        if self.training: self.n += 1
        return self.a(x) + self.b(y)*self.n

g = torch.Generator().manual_seed(0)
x = torch.randn(40, 4, generator=g)
labels,yes = torch.randint(3, (40,), generator=g),torch.randint(2, (40,3), generator=g).float()
_losses = dict(
    ce=(lambda: L.CrossEntropyLossFlat(weight=torch.tensor([1.,2.,3.]), label_smoothing=.1), labels), smooth=(lambda: L.LabelSmoothingCrossEntropyFlat(eps=.3), labels),
    focal=(lambda: L.FocalLossFlat(gamma=1.), labels), bce=(lambda: L.BCEWithLogitsLossFlat(thresh=.3, pos_weight=torch.tensor([2.])), yes), mse=(lambda: L.MSELossFlat(), yes), l1=(lambda: L.L1LossFlat(), yes),
    torch_ce=(lambda: nn.CrossEntropyLoss(ignore_index=1), labels), torch_bce=(lambda: nn.BCEWithLogitsLoss(), yes), huber=(lambda: nn.HuberLoss(delta=2.), yes), f_ce=(lambda: F.cross_entropy, labels), f_mse=(lambda: F.mse_loss, yes))

def trained(path, loss, y, model=classes, xs=(x,), n_inp=None, vocab=None):
    torch.manual_seed(0)
    ds = torch.utils.data.TensorDataset(*xs, y)
    learn = Learner(DataLoaders.from_dsets(ds, ds, bs=16, n_inp=n_inp, vocab=vocab), model(), loss, lr=.05, path=path)
    with learn.no_bar(), learn.no_logging(): learn.fit(2)
    return learn

def same(a, b): return all(torch.equal(i, j) for i,j in zip(a, b, strict=True))

@pytest.mark.parametrize('name', _losses)
@pytest.mark.parametrize('file', ['m', 'm.safetensors'])
def test_the_same_predictions(name, file, tmp_path):
    make,y = _losses[name]
    learn = trained(tmp_path, make(), y)
    other = load_learner(learn.export(file), classes())
    preds = [o.get_preds(dl=learn.dls.valid, with_decoded=True, with_loss=True) for o in (learn, other)]
    assert same(*preds)
    assert torch.equal(learn.validate()[0] if torch.is_tensor(learn.validate()[0]) else torch.tensor(learn.validate()[0]), torch.tensor(other.validate(dl=learn.dls.valid)[0]))

def test_predict_with_a_vocab(tmp_path):
    learn = trained(tmp_path, L.CrossEntropyLossFlat(), labels, vocab=['low', 'middle', 'high'])
    other = load_learner(learn.export('m'), classes())
    for i in range(5):
        a,b = learn.predict(x[i]),other.predict(x[i])
        assert a[0]==b[0] and same(a[1:], b[1:])

def test_several_inputs(tmp_path):
    learn = trained(tmp_path, L.CrossEntropyLossFlat(), labels, Two, (x, x.flip(0)), n_inp=2)
    other = load_learner(learn.export('m'), Two())
    assert same(*[o.get_preds(dl=[(x, x.flip(0), labels)]) for o in (learn, other)]) and other.dls.n_inp==2
    assert read_export(tmp_path/'models'/'m.pth')[0]['inputs']==['float32[16, 4]', 'float32[16, 4]']

def test_half_precision(tmp_path):
    model = classes().half()
    learn = Learner(DataLoaders([(x.half(), labels)]), model, L.CrossEntropyLossFlat(), path=tmp_path)
    other = load_learner(learn.export('m'), classes().half())
    assert same(*[o.get_preds(dl=[(x.half(), labels)]) for o in (learn, other)])

def test_it_can_be_trained_further(tmp_path):
    learn = trained(tmp_path, L.CrossEntropyLossFlat(), labels)
    other = load_learner(learn.export('m'), classes(), dls=learn.dls, lr=.05)
    learn.opt = None
    for o in (learn, other):
        torch.manual_seed(1)
        with o.no_bar(), o.no_logging(): o.fit(1)
    assert same(learn.model.state_dict().values(), other.model.state_dict().values())

def test_export_changes_nothing(tmp_path):
    learn = trained(tmp_path, L.CrossEntropyLossFlat(), labels)
    before,mode = get_random_states(),[m.training for m in learn.model.modules()]
    learn.export('m')
    after = get_random_states()
    assert torch.equal(before['torch_state'], after['torch_state']) and before['random_state']==after['random_state'] and mode==[m.training for m in learn.model.modules()]

def test_export_keeps_the_order_of_the_data(tmp_path):
    "Export reads a batch to describe the inputs, and restores the loader's own generator"
    own,ds = torch.Generator().manual_seed(1),torch.utils.data.TensorDataset(x, labels)
    dl = torch.utils.data.DataLoader(ds, 8, shuffle=True, generator=own)
    learn,state = Learner(DataLoaders(dl, dl), classes(), nn.CrossEntropyLoss(), path=tmp_path),own.get_state()
    learn.export('m')
    assert torch.equal(own.get_state(), state)

def test_exported_again(tmp_path):
    learn = trained(tmp_path, L.CrossEntropyLossFlat(), labels)
    once = load_learner(learn.export('m'), classes(), path=tmp_path)
    twice = load_learner(once.export('n'), classes())
    assert same(*[o.get_preds(dl=learn.dls.valid) for o in (learn, twice)])

def test_an_open_file(tmp_path):
    learn = trained(tmp_path, L.CrossEntropyLossFlat(), labels)
    data = io.BytesIO(learn.export('m').read_bytes())
    assert same(*[o.get_preds(dl=learn.dls.valid) for o in (learn, load_learner(data, classes()))])

class OwnLoss(nn.Module):
    def forward(self, p, y): return F.cross_entropy(p, y)
    def activation(self, p): return p.softmax(-1)

def test_a_user_written_loss(tmp_path):
    learn = trained(tmp_path, OwnLoss(), labels)
    path = learn.export('m')
    with pytest.raises(ValueError, match='OwnLoss, which is not part of learnkit: pass it as `loss_func='): load_learner(path, classes())
    assert same(*[o.get_preds(dl=learn.dls.valid) for o in (learn, load_learner(path, classes(), OwnLoss()))])
    def plain(p, y): return F.cross_entropy(p, y)
    learn.loss_func = plain   # predictions do not depend on the loss, so it is not needed
    assert same(*[o.get_preds(dl=learn.dls.valid) for o in (learn, load_learner(learn.export('m'), classes()))])

def test_a_user_set_activation(tmp_path):
    "An activation set on learnkit's loss function is exported; without it predictions would differ"
    loss = L.CrossEntropyLossFlat()
    loss.activation = lambda p: p*2
    with pytest.raises(ValueError, match='loss_func='): load_learner(trained(tmp_path, loss, labels).export('m'), classes())

@pytest.mark.parametrize('name', known_losses)
def test_every_known_loss_is_restored(name):
    f = known_losses[name]
    f = f() if isinstance(f, type) else f
    back = loss_from_config(json.loads(json.dumps(loss_config(f))), {})
    assert back is f or (type(back) is type(f) and {k:v for k,v in vars(back).items() if isinstance(v, (int,float,str))}=={k:v for k,v in vars(f).items() if isinstance(v, (int,float,str))})

@pytest.mark.parametrize('about,tensors,words', [({'name':'eval'}, {}, 'is unknown'), ({'name':['eval']}, {}, 'is unknown'), ({}, {}, 'is unknown'),
    ({'name':'MSELoss', 'settings':{'__class__':'x'}}, {}, 'no setting'), ({'name':'MSELoss', 'settings':{'reduction':3}}, {}, 'no setting'), ({'name':'MSELoss', 'settings':[]}, {}, 'settings'),
    ({'name':'CrossEntropyLossFlat', 'inner':{'forward':1}}, {}, 'no setting'), ({'name':'CrossEntropyLossFlat', 'settings':{'axis':'x'}}, {}, 'no setting'),
    ({'name':'CrossEntropyLossFlat'}, {'func.__dict__':torch.ones(1)}, 'no tensor'), ({'name':'MSELoss'}, {'a.b.weight':torch.ones(1)}, 'no tensor'), ({'name':'MSELoss'}, {'weight':'x'}, 'no tensor')])
def test_untrusted_loss_configs(about, tensors, words):
    with pytest.raises(ValueError, match=words): loss_from_config(about, tensors)

def test_bad_exports_raise(tmp_path):
    learn = trained(tmp_path, L.CrossEntropyLossFlat(), labels)
    with pytest.raises(TypeError, match='about.by'): learn.export('m', by=object())
    with pytest.raises(TypeError, match='is JSON, which cannot store one of its values'): learn.export('m', by=b'bytes')
    assert not (tmp_path/'models'/'m.pth').exists()

def test_without_the_model(tmp_path):
    path = trained(tmp_path, L.CrossEntropyLossFlat(), labels, Two, (x, x), n_inp=2).export('m')
    with pytest.raises(ValueError, match='Two, and no code: pass the model'): load_learner(path)
    with pytest.raises(ValueError, match='Two, and no code'): load_learner(path, Two)

# in the format of safetensors

def test_safetensors_reads_the_weights(tmp_path):
    from safetensors.torch import load_file
    learn = trained(tmp_path, L.CrossEntropyLossFlat(weight=torch.tensor([1.,2.,3.])), labels)
    weights = load_file(learn.export('m.safetensors'))
    assert weights.pop('learnkit.loss.func.weight').tolist()==[1.,2.,3.]
    for file in (weights, load_file(learn.save('w.safetensors'))):
        assert file.keys()==learn.model.state_dict().keys() and all(torch.equal(v, file[k]) for k,v in learn.model.state_dict().items())
    learn.model.load_state_dict(weights)

def test_a_missing_package_is_named(tmp_path, monkeypatch):
    import sys
    learn = trained(tmp_path, L.CrossEntropyLossFlat(), labels)
    path = learn.save('m.safetensors')
    monkeypatch.setitem(sys.modules, 'safetensors.torch', None)
    for do in (lambda: learn.save('n.safetensors'), lambda: learn.load('m.safetensors'), lambda: learn.export('n.safetensors'), lambda: load_learner(path, classes())):
        with pytest.raises(ImportError, match="needs safetensors: pip install '?safetensors.*extra `safetensors`"): do()
    assert [p.name for p in path.parent.iterdir()]==['m.safetensors']

def test_loading_plain_weights_raises(tmp_path):
    learn = trained(tmp_path, L.CrossEntropyLossFlat(), labels)
    with pytest.raises(ValueError, match='was not written by `learn.export`'): load_learner(learn.save('m.safetensors'), classes())
    with pytest.raises(FileNotFoundError, match='did you mean `m.safetensors`'): load_learner(tmp_path/'models'/'n.safetensors', classes())

# torch.export: the program that `ExportAtEnd` writes accepts batches of any size

class Named(nn.Module):
    def __init__(self): super().__init__(); self.l = nn.Linear(4, 3)
    def forward(self, a, b): return self.l(a) + b
class Nested(Named):
    def forward(self, o): return super().forward(*o)

_exported = dict(one=(classes, lambda x: (x,)), two=(Named, lambda x: (x, x[:,:3])), names=(Named, lambda x: (Inputs(a=x, b=x[:,:3]),)), nested=(Nested, lambda x: ((x, x[:,:3]),)))

@few(1)
@pytest.mark.parametrize('n', [1, 4])
@pytest.mark.parametrize('kind', _exported)
def test_torch_export_takes_other_batch_sizes(kind, n, tmp_path):
    "Any batch size works, also after an example of one sample, and mappings and nested inputs, which used to fail"
    make,inputs = _exported[kind]
    model = make().eval()
    torch_export(model, inputs(x[:n]), tmp_path/'m.pt2')
    program = torch.export.load(tmp_path/'m.pt2').module()
    for k in (1, 2, 7):
        xb = inputs(x[:k])
        args = [o(**xb[0]) if type(xb[0]) is Inputs else o(*xb) for o in (program, model)]
        torch.testing.assert_close(*args)

@pytest.mark.slow
def test_export_at_the_end_of_ragged_named_batches(tmp_path):
    data = [dict(a=o, b=o[:,:3], target=o[:,:3]) for o in (x[:8], x[:1])]   # the last batch has one sample
    learn = Learner(DataLoaders(data, data), Named(), nn.MSELoss(), path=tmp_path, cbs=[ExportAtEnd, MixedPrecision('bf16')])
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    torch.testing.assert_close(torch.export.load(tmp_path/'model.pt2').module()(a=x, b=x[:,:3]), learn.model(x, x[:,:3]))

def test_a_name_is_found_where_export_wrote_it(tmp_path, monkeypatch):
    learn = Learner(DataLoaders([(x, labels)]), nn.Linear(4, 3), nn.CrossEntropyLoss(), path=tmp_path, model_dir='nets')
    learn.export('digits')
    torch.save(learn.model.state_dict(), tmp_path/'digits')
    for kw in (dict(path=tmp_path, model_dir='nets'), dict(path=str(tmp_path), model_dir='nets')):
        assert torch.equal(load_learner('digits', nn.Linear(4, 3), **kw).model.weight, learn.model.weight)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match='was not written by `learn.export`'): load_learner('digits', nn.Linear(4, 3), model_dir='nets')   # an existing path has priority
    (tmp_path/'digits').unlink()
    assert torch.equal(load_learner('digits', nn.Linear(4, 3), model_dir='nets').model.weight, learn.model.weight)
    with pytest.raises(FileNotFoundError, match='no file digits, and no models/digits.pth: pass the path that `learn.export` returned'): load_learner('digits', nn.Linear(4, 3))
    with pytest.raises(IsADirectoryError): load_learner('nets', nn.Linear(4, 3))
