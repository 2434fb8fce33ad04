"""Optimizers with `train()` and `eval()`, such as the schedule-free ones: they train weights which the model should not be
judged by, and put those into it that should. Beside a loop by hand that switches them as their documents say."""
import pytest, torch
from torch import nn
from torch.nn import functional as F

from learnkit.all import Callback, CheckpointCallback, DataLoaders, Learner, SaveModelCallback, ValidateEvery

class Averaged(torch.optim.SGD):
    "Evaluates the mean of the weights after each step; as strict as the library `schedulefree`: no step unless it was set to train"
    def __init__(self, params, lr=.1):
        super().__init__(params, lr)
        for pg in self.param_groups: pg['train_mode'],pg['n'] = False,0
    def _swap(self, train):
        for pg in self.param_groups:
            if pg['train_mode']==train: continue
            pg['train_mode'] = train
            for p in pg['params']:
                s = self.state[p]
                if 'mean' in s: p.data,s['mean'] = s['mean'].clone(),p.data.clone()
    def train(self): self._swap(True)
    def eval(self):  self._swap(False)
    def step(self, closure=None):
        if not all(pg['train_mode'] for pg in self.param_groups): raise RuntimeError('not in train mode')
        super().step()
        for pg in self.param_groups:
            pg['n'] += 1
            for p in pg['params']:
                s = self.state[p]
                s['mean'] = p.data.clone() if 'mean' not in s else s['mean'].lerp(p.data, 1/pg['n'])

g = torch.Generator().manual_seed(0)
X,Y = torch.randn(48,3, generator=g),torch.randn(48,1, generator=g)
batches = [(X[i:i+8],Y[i:i+8]) for i in range(0,48,8)]
def net(): torch.manual_seed(1); return nn.Linear(3,1)
def learner(path='.', **kw):
    learn = Learner(DataLoaders(batches, batches), net(), F.mse_loss, Averaged, lr=.1, path=path, **kw)
    learn.logger = lambda row: None
    return learn.remove_cb(learn.progress)
def loss_of(m):
    with torch.no_grad(): return torch.stack([F.mse_loss(m(x), y) for x,y in batches]).mean().item()

def by_hand(n_epoch, each=None):
    "Losses of the validations, and the model with the weights to be used"
    m = net(); opt = Averaged(m.parameters(), lr=.1); seen = []
    def validate():
        opt.eval(); seen.append(loss_of(m)); opt.train()
    for _ in range(n_epoch):
        opt.train()
        for i,(x,y) in enumerate(batches):
            F.mse_loss(m(x), y).backward(); opt.step(); opt.zero_grad()
            if each and (i+1)%each==0: validate()
        validate()
    opt.eval()
    return seen,m

def test_validation_and_predictions_have_the_weights_to_be_used():
    want,m = by_hand(3)
    learn = learner()
    learn.fit(3)
    assert [r['valid_loss'] for r in learn.recorder.history]==pytest.approx(want, rel=1e-6)
    assert torch.equal(learn.model.weight, m.weight)
    assert torch.equal(learn.get_preds()[0], m(X).detach()) and learn.validate()[0]==pytest.approx(loss_of(m))
    learn.fit(1)   # and it trains on
    assert len(learn.recorder.history)==1

def test_without_validation_the_model_ends_with_them():
    learn = learner()
    learn.dls = DataLoaders(batches)
    learn.fit(2)
    assert torch.equal(learn.model.weight, by_hand(2)[1].weight)

@pytest.mark.parametrize('end', [KeyboardInterrupt, ZeroDivisionError])
def test_after_an_interrupt_too(end):
    learn = learner()
    def stop(cb):
        if cb.train_iter==9: raise end
    with pytest.raises(end): learn.fit(2, cbs=[Callback(after_step=stop)])
    assert not learn.opt.param_groups[0]['train_mode']
    learn.fit(1)

def test_a_validation_within_an_epoch_gives_the_weights_in_training_back():
    want,m = by_hand(2, each=2)
    learn = learner(cbs=ValidateEvery('2ba'))
    learn.fit(2)
    assert [r['valid_loss'] for r in learn.recorder.history]==pytest.approx(want, rel=1e-6)
    assert torch.equal(learn.model.weight, m.weight)

def test_a_callback_may_predict_within_an_epoch():
    learn = learner()
    learn.fit(2, cbs=Callback(after_batch=lambda cb: cb.learn.get_preds() if cb.training else None))
    assert torch.equal(learn.model.weight, by_hand(2)[1].weight)

def test_a_resumed_run_is_the_run(tmp_path):
    def stop(cb):
        if cb.epoch==1 and cb.iter==3: raise KeyboardInterrupt
    def run(at): return learner(tmp_path/at, cbs=CheckpointCallback('2ba'))
    whole = run('whole'); whole.fit(3)
    with pytest.raises(KeyboardInterrupt): run('part').fit(3, cbs=Callback(before_step=stop))
    part = run('part'); part.fit(3, resume='auto')
    assert torch.equal(whole.model.weight, part.model.weight) and torch.equal(whole.model.weight, by_hand(3)[1].weight)

def test_the_best_model_is_saved_as_it_was_judged(tmp_path):
    learn = learner(tmp_path, cbs=SaveModelCallback())
    learn.fit(3)
    assert learn.validate()[0]==pytest.approx(min(by_hand(3)[0]), rel=1e-6)

