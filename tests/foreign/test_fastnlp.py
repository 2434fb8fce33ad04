"""The same callback in fastNLP's own Trainer and in a Learner: the same events in the same order and at the same
positions, as many arguments, and weights equal bit for bit. It needs fastNLP 1.0.1 (`pip install fastNLP
'setuptools<75'`), which imports pkg_resources and is not among the pinned packages."""
import warnings
import pytest, torch
from learnkit.learner.learner import Learner
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD
from torch.utils.data import DataLoader

with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    fastNLP = pytest.importorskip('fastNLP')
    from fastNLP.core.callbacks.callback import Callback
    from fastNLP.core.utils.exceptions import EarlyStopException

NAMES = [n for n in vars(Callback) if n.startswith('on_') and 'checkpoint' not in n]

class Note(Callback):
    "Records each event and the position; ends the fit after `stop` batches"
    def __init__(self, stop=None): super().__init__(); self.seen,self.stop = [],stop
    def note(self, name, trainer, *args):
        self.seen.append((name, trainer.cur_epoch_idx, trainer.batch_idx_in_epoch, trainer.global_forward_batches, len(args)))
        if name=='on_train_batch_end' and trainer.global_forward_batches==self.stop: raise EarlyStopException('enough')
for n in NAMES: setattr(Note, n, (lambda n: lambda self, trainer, *args: self.note(n, trainer, *args))(n))

class Model(nn.Module):
    def __init__(self): super().__init__(); torch.manual_seed(0); self.layer = nn.Linear(4, 2)
    def forward(self, x, y): return dict(loss=F.cross_entropy(self.layer(x), y))
    train_step = forward

def data():
    torch.manual_seed(1)
    return DataLoader([dict(x=torch.randn(4), y=i%2) for i in range(9)], batch_size=3)

@pytest.mark.parametrize('stop', [None, 2, 3, 4])
def test_as_in_fastnlp(stop):
    theirs,ours,model,same = Note(stop),Note(stop),Model(),Model()
    fastNLP.Trainer(model=model, driver='torch', train_dataloader=data(), optimizers=SGD(model.parameters(), lr=.1), callbacks=[theirs],
                    n_epochs=2, device='cpu', progress_bar=None).run()
    learn = Learner([data()], same, None, SGD, lr=.1, cbs=[ours])
    with learn.no_bar(), learn.no_logging(): learn.fit(2)
    assert [o[0] for o in ours.seen]==[o[0] for o in theirs.seen]
    assert ours.seen==theirs.seen
    assert all(map(torch.equal, same.parameters(), model.parameters()))
