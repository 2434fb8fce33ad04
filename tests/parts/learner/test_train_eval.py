"How far a fit is, and in which mode and where the model is, as `TrainEvalCallback` says"
import pytest, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import learnkit.learner.learner as learner_module
from learnkit.all import DataLoaders, Learner, Predictor
from toys import at, batches, learner, model

class Count:
    "Batches of which nobody knows how many there are"
    def __init__(self, it): self.it = it
    def __iter__(self): return iter(self.it)

@pytest.mark.parametrize('known', [True, False])
def test_how_far_it_is(known):
    "By the length of the loader, or that of the last epoch; in the first one nobody knows, and it stays"
    n,epochs,seen,starts = 4,3,[],[]
    learn = learner(dls=(batches(n) if known else Count(batches(n)), batches(1)))
    learn.fit(epochs, cbs=[at('before_train', lambda cb: starts.append(cb.learn.pct_train), order=-5),
                           at('after_batch', lambda cb: seen.append((cb.learn.train_iter, cb.learn.pct_train)), lambda cb: cb.training)])
    pct = [(i+1)/n/epochs if known or i>=n else 0 for i in range(n*epochs)]
    assert [i for i,_ in seen]==[*range(1, n*epochs+1)] and [p for _,p in seen]==pytest.approx(pct) and starts==pytest.approx([0, 1/3, 2/3])

def test_modes_of_the_model():
    seen = []
    look = lambda cb: seen.append((cb.training, cb.model.training))
    learn = learner(1, 1, cbs=at('before_batch', look))
    learn.fit(2)
    assert seen==[(True,True),(False,False)]*2

class Asked(nn.MSELoss):
    def to(self, device): self.where = torch.device(device); return self

def test_model_and_loss_are_moved_and_the_model_is_reset():
    "To the device of the loaders, if they have one; the loss to that of the model in any case"
    resets = []
    net = model()
    net.reset = lambda: resets.append(1)
    loss = Asked()
    learn = learner(model=net, loss_func=loss)
    learn.fit(1)
    assert resets==[1] and loss.where==torch.device('cpu')
    learn.dls.device = 'meta'
    moved = []
    net.to = lambda d: moved.append(d) or net
    class Stop(Exception): pass
    def end(cb): raise Stop
    with pytest.raises(Stop): learn.fit(1, cbs=at('before_fit', end, order=-9))
    assert moved==['meta'] and resets==[1]*2

def test_at_the_start_all_is_zero():
    "In each fit anew, for all whose `order` is higher than -10"
    seen = []
    learn = learner(cbs=at('before_fit', lambda cb: seen.append((cb.epoch, cb.train_iter, cb.pct_train, float(cb.loss))), order=-9))
    learn.fit(1); learn.fit(1)
    assert seen==[(0, 0, 0., 0.)]*2 and learn.train_eval.order==-10

def test_an_epoch_that_is_longer_than_the_last_one():
    "It is never further than its own end"
    lengths,seen = iter([2, 5]),[]
    class Longer:
        def __iter__(self): return iter(batches(next(lengths)))
    learner(dls=(Longer(), batches(1))).fit(2, cbs=at('after_batch', lambda cb: seen.append(cb.pct_train), lambda cb: cb.training))
    assert seen==[0, 0, .75, 1, 1, 1, 1]

# the device: one rule for all runs. Here another device is pretended; tests/device has a simulated one

class Recording(nn.Sequential):
    "Records where it is moved, and stays"
    def to(self, *args, **kwargs):
        self.moved = [*getattr(self, 'moved', []), str(args[0])]
        return self

def _inferring(device):
    x,y = torch.rand(12, 4),torch.randint(0, 3, (12,))
    dl = DataLoader(TensorDataset(x, y), 4)
    return x,Learner(DataLoaders(dl, dl, device=device), Recording(nn.Linear(4, 3)), nn.CrossEntropyLoss())

inferences = dict(validate=lambda l,x: l.validate(), get_preds=lambda l,x: l.get_preds(), predict=lambda l,x: l.predict(x[0]), predictor=lambda l,x: Predictor(l)(x[0]),
                  fit=lambda l,x: l.fit(1))

@pytest.mark.parametrize('how', inferences)
@pytest.mark.parametrize('device', [None, 'cpu'])
def test_each_run_moves_the_model_to_the_device_that_the_learner_names(monkeypatch, how, device):
    "Inference before the first fit stayed on the CPU although `learn.device` named the accelerator"
    monkeypatch.setattr(learner_module, 'default_device', lambda *args: torch.device('meta'))
    x,learn = _inferring(device)
    named = learn.device.type
    assert named==('meta' if device is None else 'cpu')
    with learn.no_bar(), learn.no_logging(): inferences[how](learn, x)
    assert {*learn.model.moved}=={named}
