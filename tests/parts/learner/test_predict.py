"One item, and one loss for each item: as the loader and the loss function would give them"
import pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from learnkit.all import CastToTensor, CrossEntropyLossFlat, DataLoaders, Interpretation, Learner, accuracy

class Two(nn.Module):
    def __init__(self): super().__init__(); torch.manual_seed(0); self.lin = nn.Linear(6,1)
    def forward(self, a, b): return self.lin(torch.cat([a,b], -1))
def pairs(n=4): g = torch.Generator().manual_seed(0); return [torch.randn(n,3,generator=g) for _ in range(2)]

@pytest.mark.parametrize('n_inp', [None, 2])
def test_an_item_with_several_inputs_has_no_target(n_inp):
    "The second input was taken for the target: -0.675 where `get_preds` gave -0.231"
    a,b = pairs()
    learn = Learner(DataLoaders([(a,b,torch.zeros(4,1))], n_inp=n_inp), Two(), nn.MSELoss())
    preds = learn.get_preds(ds_idx=0)[0]
    for i in range(4): torch.testing.assert_close(learn.predict((a[i],b[i]))[2], preds[i])

def lengths(items):
    "Items of different lengths, with zeros at the end, and how long they are"
    xs = [o[0] if isinstance(o, tuple) else o for o in items]
    x = nn.utils.rnn.pad_sequence(xs, batch_first=True),torch.tensor([len(o) for o in xs])
    return *x,torch.stack([o[1] for o in items]) if isinstance(items[0], tuple) else x
class Mean(nn.Module):
    def __init__(self): super().__init__(); self.w = nn.Parameter(torch.ones(()))
    def forward(self, x, n): return self.w*x.sum(1)/n

def collate(items):
    *x,y = lengths(items) if isinstance(items[0], tuple) else (*lengths(items)[:2],None)
    return x if y is None else (*x,y)

def test_the_loaders_collate_fn_makes_the_batch():
    "`predict` collated in PyTorch's way, whatever the loader did"
    items = [(torch.arange(1.,n+1),torch.tensor(0.)) for n in (2,3,5)]
    learn = Learner(DataLoaders(DataLoader(items, 3, collate_fn=collate)), Mean(), nn.MSELoss())
    assert learn.predict(items[2][0])[2]==3

def test_a_collate_fn_that_wants_a_target_says_so():
    items = [(torch.ones(2),torch.tensor(0.))]*2
    def wants(b): xs,ys = zip(*[(x,y) for x,y in b]); return torch.stack(xs),torch.stack(ys)
    learn = Learner(DataLoaders(DataLoader(items, 2, collate_fn=wants)), nn.Linear(2,1), nn.MSELoss())
    with pytest.raises(Exception) as e: learn.predict(torch.ones(3))
    assert 'without targets' in e.value.__notes__[0]

def test_the_data_may_make_a_batch_of_an_item():
    "fastai's `dls.test_dl`, which opens files, was passed over in silence"
    dls = DataLoaders([(torch.ones(2,2),torch.ones(2,1))])
    dls.test_dl = lambda items: [(torch.tensor([[float(len(o)), 0.] for o in items]),)]
    learn = Learner(dls, nn.Linear(2,1), nn.MSELoss())
    torch.testing.assert_close(learn.predict('path')[2], learn.predict('four')[2])
    assert not torch.equal(learn.predict('path')[2], learn.predict('a/longer/path')[2])

def test_the_data_may_decode_the_prediction():
    "fastai's `decode_batch`, which takes back what was done to the targets, was passed over in silence"
    class Decodes(list):
        def decode_batch(self, b): return [(a,f'{round(10*t.item())} °C') for a,t in zip(*b)]
    def dls(cls): return DataLoaders(cls([(torch.ones(2,2),torch.ones(2,1))]))
    learn = Learner(dls(Decodes), nn.Linear(2,1), nn.MSELoss())
    label,dec,pred = learn.predict(torch.ones(2))
    assert label==f'{round(10*pred.item())} °C' and torch.equal(dec, pred)
    learn.dls = dls(list)
    learn.dls.decode_batch = Decodes().decode_batch   # of the `DataLoaders`, as in fastai
    inp,again,*_ = learn.predict(torch.ones(2), with_input=True)
    assert again==label and torch.equal(inp, torch.ones(2))

# the loss of each item

def losses(loss, pred, targ, **kw):
    class Const(nn.Module):
        def __init__(self): super().__init__(); self.w = nn.Parameter(torch.ones(()))
        def forward(self, x): return pred*self.w
    return Learner([[(torch.zeros(len(targ),1), targ)]], Const(), loss).get_preds(ds_idx=0, with_loss=True, reorder=False, **kw)[-1]

def test_losses_of_one_column_are_one_each():
    "`Interpretation.top_losses` on outputs of shape (n, 1) raised an index error"
    x = torch.randn(5,1)
    learn = Learner([[(x, torch.zeros(5,1))]], nn.Identity(), nn.MSELoss())
    interp = Interpretation.from_learner(learn, ds_idx=0)
    want = (x[:,0]**2).topk(3)
    assert torch.equal(interp.top_losses(3)[0], want.values) and torch.equal(interp.top_losses(3)[1], want.indices)

def test_losses_of_outputs_that_are_not_contiguous():
    "With channels last, or transposed: `view size is not compatible`"
    pred,targ = torch.randn(4,6,5).transpose(1,2),torch.randn(4,6,5).transpose(1,2)
    torch.testing.assert_close(losses(nn.MSELoss(), pred, targ), ((pred-targ)**2).mean((1,2)))

def test_the_loss_of_a_sentence_is_the_mean_over_its_words():
    "Padding was counted, with a loss of 0"
    pred,targ = torch.randn(3,4,5),torch.tensor([[1,2,3,4],[0,1,-100,-100],[-100]*4])
    want = [F.cross_entropy(p, t).nan_to_num() for p,t in zip(pred, targ)]
    torch.testing.assert_close(losses(CrossEntropyLossFlat(), pred, targ), torch.stack(want))
    got = losses(CrossEntropyLossFlat(), pred.transpose(0,1), targ.T, concat_dim=1)   # time first
    torch.testing.assert_close(got, torch.stack(want))

def test_a_batch_without_samples_has_no_losses():
    "It raised a ZeroDivisionError"
    x,y = torch.randn(3,2),torch.randn(3,1)
    learn = Learner([[(x, y)]], nn.Linear(2,1), nn.MSELoss())
    want = learn.get_preds(dl=[(x, y)], with_loss=True)
    for dl in ([(x[:0],y[:0]), (x,y)], [(x,y), (x[:0],y[:0])]):
        for got,all_at_once in zip(learn.get_preds(dl=dl, with_loss=True), want): assert torch.equal(got, all_at_once)

class Dice(nn.modules.loss._Loss):
    "Has a `reduction`, as all losses do that inherit PyTorch's base class, and does not heed it"
    def forward(self, pred, targ): return 1 - 2*(pred*targ).sum()/(pred+targ).sum()

def test_a_loss_that_cannot_tell_items_apart_raises():
    "segmentation_models_pytorch's `DiceLoss` raised an error about shapes"
    with pytest.raises(ValueError, match='must return a loss for each sample, but for 4 samples it returned'): losses(Dice(), torch.rand(4,3), torch.ones(4,3))

# tensors with classes of their own

class TensorImage(torch.Tensor): pass
class TensorCategory(torch.Tensor): pass
def test_tensors_of_fastai_are_cast():
    "Its data failed in the first batch, without a hint"
    torch.manual_seed(0)
    x,y = torch.randn(8,3),torch.arange(8)%2
    theirs = [(x.as_subclass(TensorImage), y.as_subclass(TensorCategory))]
    with pytest.raises(TypeError) as e: Learner([theirs, theirs], nn.Linear(3,2), F.cross_entropy).validate()
    assert any('CastToTensor()' in n for n in e.value.__notes__)
    model = nn.Linear(3,2)
    learn = Learner([theirs, theirs], model, F.cross_entropy, cbs=CastToTensor(), metrics=accuracy)
    with learn.no_logging(), learn.no_bar(): learn.fit(1)
    assert learn.validate()==Learner([[], [(x,y)]], model, F.cross_entropy, metrics=accuracy).validate()
    assert type(learn.get_preds()[0]) is torch.Tensor
