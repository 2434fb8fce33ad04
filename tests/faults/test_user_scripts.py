"""Problems of users' scripts: pages printed by a script, file names, losses of probabilities, losses of the model."""
import subprocess, sys

import pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

import learnkit.all as lk
from learnkit.all import DataLoaders, F1ScoreMulti, Learner, LossMetric, accuracy_multi
from toys import learner

def last(learn, col):
    learn.fit(1)
    return learn.recorder.history[-1][col]

def test_all_has_a_loader(): assert lk.DataLoader is DataLoader

@pytest.mark.slow
def test_a_script_prints_pages():
    code = '''
from learnkit.all import *
torch.set_num_threads(1)
doc('Learner.fit')
x = torch.randn(8, 3)
learn = Learner(DataLoaders.from_tensors(x, x[:,:1], bs=4), nn.Linear(3,1), F.mse_loss)
with learn.no_bar(), learn.no_logging(): learn.profile()
'''
    out = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True).stdout
    assert out.startswith('Learner.fit(') and 'waiting for data' in out

def test_doc_by_name():
    assert lk.doc('Learner').name=='Learner' and lk.doc('Learner.fit_one_cycle').name=='Learner.fit_one_cycle'
    with pytest.raises(ValueError, match='did you mean `fit_one_cycle`'): lk.doc('Learner.fit_one_cycles')

@pytest.mark.parametrize('name', ('m.pkl','m.pt','m.ckpt'))
def test_a_file_is_at_the_printed_path(tmp_path, name):
    learn = learner(path=tmp_path)
    assert learn.export(tmp_path/name)==tmp_path/name and (tmp_path/name).is_file()
    assert torch.equal(lk.load_learner(tmp_path/name, nn.Linear(4,1)).model.weight, learn.model.weight)
    assert learn._make_file_path('v1.2').name=='v1.2.pth'   # `.2` is no suffix

x = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
y = (x[:,:2]>0).float()
parts = [(x[i:i+4], y[i:i+4]) for i in (0,4,8)]

def test_metrics_with_a_loss_of_probabilities():
    def acc(model, loss, metric):
        torch.manual_seed(0)
        return last(Learner(DataLoaders(parts, parts), model(), loss, lr=0., metrics=metric), 'accuracy_multi')
    torch.manual_seed(0)
    with torch.no_grad(): right = accuracy_multi(nn.Linear(4,2)(x), y).item()
    def probs(): return nn.Sequential(nn.Linear(4,2), nn.Sigmoid())
    assert acc(lambda: nn.Linear(4,2), nn.BCEWithLogitsLoss(), accuracy_multi)==pytest.approx(right)
    assert acc(probs, nn.BCELoss(), accuracy_multi)==pytest.approx(right)
    with pytest.raises(ValueError, match='already probabilities.*sigmoid=False'):
        Learner(DataLoaders(parts, parts), probs(), nn.BCELoss(), metrics=F1ScoreMulti()).fit(1)

@pytest.mark.parametrize('workers', (0,1))
def test_samples_of_two_lengths(workers):
    ds = [(torch.zeros(3 + i%2), torch.zeros(1)) for i in range(4)]
    with pytest.raises(RuntimeError) as e:
        Learner(DataLoaders(DataLoader(ds, batch_size=2, num_workers=workers)), nn.Linear(3,1), F.mse_loss).fit(1)
    note = e.value.__notes__[0]
    assert 'shapes [3] and [4]' in note and '`collate_fn`' in note

def test_a_stack_error_of_the_model_has_no_collate_note():
    class Stacks(nn.Linear):
        def forward(self, x): return torch.stack([super().forward(x), x])
    with pytest.raises(RuntimeError, match='stack expects') as e: learner(model=Stacks(4, 1)).fit(1)
    assert not any('collate_fn' in n for n in e.value.__notes__)

class Own(nn.Module):
    "A model that returns its loss and parts of it"
    def __init__(self): super().__init__(); self.lin = nn.Linear(4, 2)
    def forward(self, x, labels):
        pred = self.lin(x)
        self.size = pred.abs().mean()
        l1,l2 = F.l1_loss(pred, labels),F.mse_loss(pred, labels)
        return dict(loss=l1+l2, logits=pred, l1=l1)

def test_parts_of_a_models_own_loss():
    class Named(torch.utils.data.Dataset):
        def __len__(self): return 12
        def __getitem__(self, i): return dict(x=x[i], labels=y[i])
    dl,model = DataLoader(Named(), batch_size=5),Own()
    learn = Learner(DataLoaders(dl, dl), model, lr=0., metrics=[LossMetric('l1'), LossMetric('size')])
    learn.fit(1)
    row,pred = learn.recorder.history[-1],model.lin(x)
    assert row['l1']==pytest.approx(F.l1_loss(pred, y).item()) and row['size']==pytest.approx(pred.abs().mean().item())
    assert 'Loss function: that of the model' in learn.summary()
    learn.metrics = LossMetric('nope')
    with pytest.raises(AttributeError, match='neither the model nor its output has `nope`'): learn.fit(1)
