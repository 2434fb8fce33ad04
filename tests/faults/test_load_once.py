"""A resume loads the state of each callback once, even if `load_state_dict` extends a list or pops its entries."""
from functools import partial

import pytest, torch
from torch.optim.lr_scheduler import CosineAnnealingLR, CyclicLR, LambdaLR, OneCycleLR, StepLR

from learnkit.all import Adam, Callback, TorchScheduler
from test_resume import Crash, assert_same, end, fit, learner, stopped

class Extends(Callback):
    "Appends the saved rows to its own"
    def __init__(self): self.rows = []
    def after_batch(self):
        if self.learn.training: self.rows.append(self.learn.train_iter)
    def state_dict(self): return dict(rows=[*self.rows])
    def load_state_dict(self, state): self.rows.extend(state['rows'])

class Pops(Extends):
    "Pops its entries from the state"
    def load_state_dict(self, state): self.rows[:] = state.pop('rows')

class Updates(Extends):
    "Keeps the list of the state itself, and appends to it"
    def load_state_dict(self, state): self.rows = state['rows']

@pytest.mark.parametrize('cls', [Extends, Pops, Updates])
@pytest.mark.parametrize('every,k', [('1ba', 4), ('1ep', 9)])
def test_a_state_is_loaded_once(cls, every, k, tmp_path):
    "The state was loaded twice: `extend` doubled the rows, and `pop` raised a KeyError"
    learn = stopped(lambda: learner(tmp_path, [cls], every=every), Crash(k), n=2)
    cb = next(cb for cb in learn.cbs if isinstance(cb, Extends))
    assert cb.rows==[*range(1, 15)]

def test_a_failed_load_restores_the_callbacks(tmp_path):
    "A state that does not fit leaves a callback unchanged, even if its `load_state_dict` extends a list"
    class Refuses(Callback):
        order = 20_000
        def state_dict(self): return dict(a=1)
        def load_state_dict(self, state):
            if 'b' in state: raise KeyError('no')
    learn = learner(tmp_path, [Extends, Refuses])
    fit(learn, 1)
    rows = [*learn.extends.rows]
    state = learn._run_state(1)
    state['cbs']['refuses'] = dict(b=1)
    with pytest.raises(ValueError, match='does not fit'): learn._restore(state)
    assert learn.extends.rows==rows

schedulers = dict(cyclic=(partial(CyclicLR, base_lr=.001, max_lr=.1, step_size_up=3, cycle_momentum=False), 'step'), step=(partial(StepLR, step_size=1), 'epoch'),
                  one=(partial(OneCycleLR, max_lr=.1, total_steps=30), 'step'), cos=(partial(CosineAnnealingLR, T_max=9), 'step'), fun=(partial(LambdaLR, lr_lambda=lambda i: .9**i), 'step'))
@pytest.mark.parametrize('kind', schedulers)
def test_pytorch_schedulers(kind, tmp_path):
    "PyTorch's `CyclicLR.load_state_dict` pops entries from the state, so every resume raised a KeyError"
    make,interval = schedulers[kind]
    cbs = [lambda: TorchScheduler(make, interval)]
    straight = end(fit(learner(tmp_path/'a', cbs)))
    assert_same(straight, end(stopped(lambda: learner(tmp_path/'b', cbs), Crash(4), Crash(9))))
