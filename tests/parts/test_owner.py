"Who owns what is trained: the optimizer, the model and the data, and what a user or a callback puts in their place"
import warnings
from functools import partial

import pytest, torch
from torch import nn
from torch.optim import SGD, Adam

from learnkit.all import Callback, CancelFit, DataLoaders
from toys import at, batches, learner, throw

pytestmark = pytest.mark.filterwarnings('error')

def net(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(4,5), nn.Tanh(), nn.Linear(5,1))

def same(a, b): return all(torch.equal(x, y) for x,y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))

# -- what was put in place of a part stays

@pytest.mark.parametrize('ev', ['before_fit', 'before_epoch', 'before_train', 'after_train'])
def test_new_data_are_new_for_both_phases(ev):
    "A callback that replaced `learn.dls` got its new training data, but the old validation data"
    seen = []
    class Swap(Callback):
        def after_batch(self): seen.append((self.training, self.learn.xb[0].shape[0]))
    Swap_at = at(ev, lambda cb: setattr(cb.learn, 'dls', DataLoaders(batches(2, 7), batches(2, 7))))
    learner(n=2, nv=2, cbs=[Swap(), Swap_at]).fit(1)
    assert [n for training,n in seen if not training]==[7,7]
    assert [n for training,n in seen if training]==([4,4] if ev.endswith('_train') else [7,7])   # `before_train` is too late: its loader is chosen

def test_validation_data_that_a_callback_brings_or_takes_away():
    "Whether there is a validation phase is asked when it is time for it"
    def phases(learn, dls):
        heard = []
        learn.add_cb(at('before_fit', lambda cb: setattr(cb.learn, 'dls', dls)))
        learn.add_cb(at('before_validate', lambda cb: heard.append(1)))
        learn.fit(2)
        return len(heard)
    assert phases(learner(nv=0), DataLoaders(batches(2), batches(2)))==2
    assert phases(learner(nv=2), DataLoaders(batches(2)))==0

@pytest.mark.parametrize('exc', [KeyboardInterrupt, ValueError, CancelFit])
@pytest.mark.parametrize('part', ['model', 'opt', 'dls'])
def test_what_a_callback_replaced_stays(part, exc):
    "Ctrl-C after a callback had replaced the model or the optimizer put the old one back; the trained one was gone"
    learn = learner(model=net())
    other = net(1)
    new = dict(model=other, opt=None, dls=DataLoaders(batches(3), batches(2)))
    def replace(cb):
        if part=='opt': new['opt'] = cb.learn.create_opt()
        setattr(cb.learn, part, new[part])
        if part=='model': cb.learn.create_opt()
    learn.add_cbs([at('before_fit', replace), at('after_batch', throw(exc), when=lambda cb: cb.train_iter==2)])
    before = [p.clone() for p in other.parameters()]
    if exc is CancelFit: learn.fit(1)
    else:
        with pytest.raises(exc): learn.fit(1)
    assert getattr(learn, part) is new[part]
    if part=='model': assert not any(torch.equal(p, q) for p,q in zip(other.parameters(), before))

class Wrapper(nn.Module):
    def __init__(self, module): super().__init__(); self.module = module
    def forward(self, x): return self.module(x)

class Accelerated:
    "As accelerate wraps an optimizer"
    def __init__(self, opt): self.optimizer = opt
    def __getattr__(self, k): return getattr(self.__dict__['optimizer'], k)

def test_wrappers_are_taken_off_after_an_exception():
    "What only wraps the model or the optimizer is taken off in `after_fit`, which an exception leaves out"
    learn = learner(model=net())
    model,opt = learn.model,learn.create_opt()
    def wrap(cb):
        cb.learn.model = Wrapper(Wrapper(cb.learn.model))
        cb.learn.opt = Accelerated(cb.learn.opt)
    learn.add_cbs([at('before_fit', wrap), at('after_batch', throw(KeyboardInterrupt))])
    with pytest.raises(KeyboardInterrupt): learn.fit(1)
    assert learn.model is model and learn.opt is opt

def test_a_model_around_the_old_one_with_weights_of_its_own_stays():
    learn = learner(model=net())
    new = nn.Sequential(learn.model, nn.Linear(1,1))
    def grow(cb): cb.learn.model = new; cb.learn.create_opt()
    learn.add_cbs([at('before_fit', grow), at('after_batch', throw(KeyboardInterrupt))])
    with pytest.raises(KeyboardInterrupt): learn.fit(1)
    assert learn.model is new
