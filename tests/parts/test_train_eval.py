"How far a fit is, and in which mode and where the model is, as `TrainEvalCallback` says"
import pytest, torch
from torch import nn
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
