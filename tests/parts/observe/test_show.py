"`show_batch` and `show_results` show the right values for any kind of batch, and change no state"
import matplotlib, pytest, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

matplotlib.use('Agg')
from matplotlib import pyplot as plt

from learnkit.all import Callback, CrossEntropyLossFlat, BCEWithLogitsLossFlat, DataLoaders, Interpretation, Learner, MSELossFlat
from toys import learner
from trace import changes, record

@pytest.fixture(autouse=True)
def closed(): yield; plt.close('all')

def titles(axs): return [ax.get_title() for ax in axs.flat]
def drawn(ax): return torch.as_tensor(ax.images[0].get_array().filled(0))

class Random(Dataset):
    "A dataset that draws from the global generator and its own, and counts its reads"
    def __init__(self): self.n_reads,self.g = 0,torch.Generator()
    def __len__(self): return 12
    def __getitem__(self, i): self.n_reads += 1; return torch.rand(4) + torch.rand(1, generator=self.g), torch.rand(1)

@pytest.mark.parametrize('kw', [dict(shuffle=True), dict(shuffle=True, generator=torch.Generator()), dict(num_workers=1)], ids=["shuffle","generator","worker"])
def test_showing_changes_no_state(kw):
    dls = DataLoaders(DataLoader(Random(), 4, **kw), DataLoader(Random(), 4))
    learn = Learner(dls, nn.Sequential(nn.Linear(4,4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4,1)), MSELossFlat())
    learn.remove_cb(learn.progress)
    learn.fit(1)
    learn.show_results()   # creates what is made at first use, such as an empty list of runs
    before = record(learn=learn)
    shown = dls.show_batch(),dls.show_batch(1),learn.show_results(),learn.show_results(0)
    assert not changes(before, record(learn=learn))
    assert [*map(len, shown)]==[4]*4
    assert str(dls.show_batch())==str(shown[0])   # the same batch again

def test_showing_within_a_fit():
    "Showing results in a fit does not change its weights"
    def weights(*cbs):
        learn = learner(3, 2)
        learn.remove_cb(learn.progress)
        learn.fit(2, cbs=cbs)
        return learn.model.state_dict()['weight']
    class Look(Callback):
        def after_step(self): self.learn.show_results(); self.learn.dls.show_batch()
    assert torch.equal(weights(), weights(Look()))

IMAGES = {'grey':(1,9,9), 'colour':(3,9,9), 'alpha':(4,9,9), 'flat':(9,9)}
@pytest.mark.parametrize('shape', IMAGES.values(), ids=IMAGES)
@pytest.mark.parametrize('kind', ['bytes','unit','wide'])
def test_images_share_one_scale(shape, kind):
    "Images of a batch share one scale; each used to be stretched to its own minimum and maximum"
    x = {'bytes':torch.randint(0, 256, (3,*shape)).byte(), 'unit':torch.rand(3,*shape), 'wide':5*torch.randn(3,*shape)}[kind]
    axs = DataLoaders([(x, torch.arange(3))]).show_batch(ncols=2)
    want = {'bytes':x/255, 'unit':x, 'wide':(x-x.min())/(x.max()-x.min())}[kind].reshape(3, -1, 9, 9).movedim(1, -1).squeeze(-1)
    for ax,w in zip(axs.flat, want): assert torch.allclose(drawn(ax).reshape(w.shape).float(), w.float(), atol=1e-6) and ax.images[0].get_clim()==(0, 1)
    assert titles(axs)==['0','1','2','']

def test_top_losses_share_one_scale():
    x = torch.stack([torch.full((8,8), 2.), torch.full((8,8), 8.)])
    learn = Learner(DataLoaders([(x, torch.tensor([0,1]))], [(x, torch.tensor([0,1]))]), nn.Sequential(nn.Flatten(), nn.Linear(64,2)), CrossEntropyLossFlat())
    axs = Interpretation.from_learner(learn, with_input=True).plot_top_losses(2)
    assert sorted(drawn(ax).mean().item() for ax in axs.flat)==[0, 1]

def test_normalization_is_undone():
    class Normalize:
        mean,std = (.5,.4,.3),(.2,.1,.3)
        def __call__(self, x): return (x-torch.tensor(self.mean)[:,None,None])/torch.tensor(self.std)[:,None,None]
    class Compose:
        def __init__(self, *fs): self.transforms = fs
        def __call__(self, x):
            for f in self.transforms: x = f(x)
            return x
    class Images(Dataset):
        transform = Compose(lambda x: x, Normalize())
        def __init__(self): self.x = torch.rand(4,3,8,8)
        def __len__(self): return 4
        def __getitem__(self, i): return self.transform(self.x[i]),i
    ds = Images()
    dls = DataLoaders(DataLoader(torch.utils.data.Subset(ds, [2,0]), 2))
    for ax,i in zip(dls.show_batch().flat, (2,0)): assert torch.allclose(drawn(ax), ds.x[i].movedim(0, -1), atol=1e-6)
    axs = DataLoaders([(torch.zeros(1,1,8,8), torch.ones(1))]).show_batch(stats=(.25,.5))
    assert drawn(axs[0,0]).unique().tolist()==[.25]

def test_masks():
    x,classes = torch.rand(2,1,8,8),torch.arange(128).reshape(2,8,8)%3
    axs = DataLoaders([(x, classes)]).show_batch()
    for ax,m in zip(axs.flat, classes): assert torch.equal(torch.as_tensor(ax.images[1].get_array().filled(0)), m)
    for y,loss,n in ((classes, CrossEntropyLossFlat(axis=1), 3), ((classes[:,None]>0).float(), BCEWithLogitsLossFlat(), 1)):
        learn = Learner(DataLoaders([(x,y)], [(x,y)]), nn.Conv2d(1,n,1), loss)
        axs,decoded = learn.show_results(),learn.get_preds(with_decoded=True)[-1]
        assert titles(axs)==['prediction','target']*2
        for i,t in enumerate((decoded[0], y[0])):
            assert torch.equal(torch.as_tensor(axs.flat[i].images[1].get_array().filled(0)).long(), t.reshape(8,8).long())

def test_wrong_predictions_are_red():
    x,y = torch.eye(3).repeat_interleave(64, 0).reshape(3,64,3)[...,0].reshape(3,1,8,8),torch.tensor([0,1,0])
    learn = Learner(DataLoaders([(x,y)], [(x,y)], vocab=['a','b']), nn.Sequential(nn.Flatten(), nn.Linear(64,2)), CrossEntropyLossFlat())
    axs = learn.show_results()
    for ax in axs.flat:
        pred,targ = ax.get_title().split(' / ')
        assert ax.title.get_color()==('black' if pred==targ else 'red')
    reg = Learner(DataLoaders([(x,y[:,None].float())], [(x,y[:,None].float())]), nn.Sequential(nn.Flatten(), nn.Linear(64,1)), MSELossFlat())
    assert {ax.title.get_color() for ax in reg.show_results().flat}=={'black'}   # regression targets are hardly ever equal to predictions

def test_text():
    ids = torch.tensor([[3,1,2],[0,0,1]])
    decode = lambda o: ''.join('abcd'[i] for i in o)
    dls = DataLoaders([(ids, ids.roll(-1, 1))], [(ids, ids.roll(-1, 1))])
    assert dls.show_batch(decode=decode)==[dict(input='dbc', target='bcd'), dict(input='aab', target='aba')]
    learn = Learner(dls, nn.Sequential(nn.Embedding(4,8), nn.Linear(8,4)), CrossEntropyLossFlat())
    row = learn.show_results(decode=decode, n=1)[0]
    assert (row['input'],row['target'])==('dbc','bcd') and len(row['prediction'])==3

class Texts(Dataset):
    "Texts with a class each"
    def __len__(self): return 6
    def __getitem__(self, i): return f'text {i}', i%3
class Length(nn.Module):
    "Predicts from the lengths of texts or of other sequences"
    def __init__(self): super().__init__(); self.out = nn.Linear(1, 3)
    def forward(self, xs): return self.out(torch.tensor([[float(len(x))] for x in xs]))

def test_a_list_of_texts():
    "A batch whose only input is a list of texts was taken for several inputs: IndexError, or the texts' first letters"
    dls = DataLoaders(DataLoader(Texts(), 4), DataLoader(Texts(), 4))
    learn = Learner(dls, Length(), CrossEntropyLossFlat())
    learn.remove_cb(learn.progress)
    assert dls.show_batch(n=2)==[dict(input='text 0', target='0'), dict(input='text 1', target='1')]
    assert [row['input'] for row in learn.show_results()]==[f'text {i}' for i in range(4)]
    interp = Interpretation.from_learner(learn)
    assert [row['input'] for row in interp.rows([1,5])]==['text 1','text 5']
    assert [row['input'] for row in interp.plot_top_losses(6)]==[f'text {i}' for i in interp.top_losses()[1]]

def test_inputs_of_several_lengths():
    "Sequences and images of several sizes are a list with one tensor per sample"
    for shape in ((), (3,8)):
        sizes = [2,3,3,4]
        batches = [(torch.full((2,*shape,max(sizes[i:i+2])), float(i)), torch.tensor([0,1])) for i in (0,2)]
        learn = Learner(DataLoaders(batches, batches), Length(), CrossEntropyLossFlat())
        learn.remove_cb(learn.progress)
        interp = Interpretation.from_learner(learn, with_input=True)
        assert [row['input'][:2] for row in interp.rows((0,3))]==['[0','[2'] and isinstance(interp.plot_top_losses(2), list)

def test_nested_samples():
    "The entries of a nested input were counted as samples, and tensors within a value were shown as Python writes them"
    x,y = torch.arange(12.).view(6,2),(torch.tensor([0,1,2]*2), torch.arange(6.))
    batch = {'a':{'x':x}},y
    dls = DataLoaders([batch])
    assert dls.show_batch()[1]==dict(a='x: [2, 3]', target='1, 1') and len(dls.show_batch(n=4))==4

def test_no_targets():
    dls = DataLoaders(DataLoader(TensorDataset(torch.rand(5,4)), 2), n_inp=1)
    assert dls.show_batch().names==['input'] and len(dls.show_batch(n=1))==1

@pytest.mark.parametrize('f, error, words', [
    (lambda dls: dls.show_batch(5),             ValueError, 'no loader with index 5'),
    (lambda dls: dls.show_batch(n=0),           ValueError, '`n`'),
    (lambda dls: DataLoaders([]).show_batch(),  ValueError, 'empty')])
def test_raises(f, error, words):
    with pytest.raises(error, match=words): f(DataLoaders([(torch.rand(2,3), torch.rand(2,1))]))

def test_a_notebook_lists_no_axes():
    axs = DataLoaders([(torch.rand(3,1,4,4), torch.arange(3))]).show_batch(ncols=2)
    assert repr(axs)=='4 axes' and axs.shape==(2,2) and axs[0,0].get_title()=='0' and len([*axs.flat])==4
    plt.close('all')
