"""`learn.summary` lists every layer, adds up the parameters, and leaves the Learner as it was."""
import copy

import pytest, torch
from torch import nn
from torch.nn import functional as F

from learnkit.all import DataLoaders
from learnkit.learner.summary import layer_info
from toys import learner

def n_hooks(m): return sum(len(o._forward_hooks) for o in m.modules())

class Restless(nn.Module):
    "Changes buffers and draws random numbers in its forward pass, in evaluation too"
    def __init__(self):
        super().__init__()
        self.bn,self.lin,self.drop = nn.BatchNorm1d(4),nn.Linear(4,1),nn.Dropout(.5)
        for k,v in dict(n=torch.tensor(0), last=torch.zeros(4), none=None).items(): self.register_buffer(k, v)
        self.drop.eval()
    def forward(self, x):
        self.n += 1
        self.last = x.mean(0)
        return self.lin(self.drop(self.bn(x))) + torch.rand(1)

def test_summary_changes_nothing():
    x = torch.randn(20, 4)
    g = torch.Generator().manual_seed(5)
    ds = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
    dl = torch.utils.data.DataLoader(ds, batch_size=5, shuffle=True, generator=g)
    learn = learner(model=Restless(), dls=DataLoaders(dl))
    m = learn.model
    buffers,state,modes = dict(m.named_buffers()),copy.deepcopy(m.state_dict()),[o.training for o in m.modules()]
    rng,own,seen = torch.get_rng_state(),g.get_state(),set(vars(learn))
    assert '13 parameters, 13 trainable' in learn.summary()
    assert all(b is buffers[k] for k,b in m.named_buffers())
    assert all(torch.equal(v, state[k]) for k,v in m.state_dict().items())
    assert [o.training for o in m.modules()]==modes and n_hooks(m)==0 and set(vars(learn))==seen
    assert torch.equal(torch.get_rng_state(), rng) and torch.equal(g.get_state(), own)

def test_an_error_of_the_model_leaves_it_unchanged():
    learn = learner(model=nn.Sequential(nn.Linear(5,1)))
    learn.model[0].eval()
    with pytest.raises(RuntimeError): learn.summary()
    assert [o.training for o in learn.model.modules()]==[True, False] and n_hooks(learn.model)==0

@pytest.mark.parametrize('wrap', (lambda m: m, lambda m: torch.compile(m, backend='eager')))
def test_the_parameters_of_the_layers_add_up(wrap):
    m = nn.Sequential(nn.Embedding(9,8), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), nn.Linear(8,9))
    m[2].weight = m[0].weight
    m[1].linear1.requires_grad_(False)
    x = torch.randint(9, (6, 5))
    def loss_func(p, y): return F.cross_entropy(p.flatten(0,1), y.flatten())
    learn = learner(model=wrap(m), dls=DataLoaders.from_tensors(x, x, bs=3), loss_func=loss_func)
    text = learn.summary()
    rows = layer_info(m, lambda: m(x))
    assert sum(r[3] for r in rows)==sum(p.numel() for p in m.parameters())
    assert sum(r[4] for r in rows)==sum(p.numel() for p in m.parameters() if p.requires_grad)
    assert f'{sum(r[3] for r in rows):,} parameters, {sum(r[4] for r in rows):,} trainable' in text
    assert '1.linear1' in text and 'Sequential (input' in text

def test_a_lazy_model_stays_lazy():
    m = nn.Sequential(nn.LazyLinear(8), nn.LazyBatchNorm1d(), nn.ReLU(), nn.LazyLinear(1))
    learn = learner(model=m)
    rng = torch.get_rng_state()
    assert '65 parameters' in learn.summary()
    assert m[0].has_uninitialized_params() and m[3].has_uninitialized_params() and learn.model is m
    assert torch.equal(rng, torch.get_rng_state())
