"""Optimizers with `train()` and `eval()`, such as the schedule-free ones: they train weights which the model should not be
judged by, and put those into it that should. Beside a loop by hand that switches them as their documents say."""
from copy import deepcopy

import pytest, torch
from torch import nn
from torch.nn import functional as F

from learnkit.all import (Callback, CancelEpoch, CancelFit, CheckpointCallback, DataLoaders, Learner, load_learner, RollBackOnNaN, SaveModelCallback,
                          ValidateEvery)

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


def at(n):
    "The model after so many batches, with the weights to be used"
    m = net(); opt = Averaged(m.parameters(), lr=.1); opt.train()
    for x,y in (batches*2)[:n]: F.mse_loss(m(x), y).backward(); opt.step(); opt.zero_grad()
    opt.eval()
    return m

kinds = "save export model".split()

@pytest.mark.parametrize('event,when,how', [('after_step', 4, 'save'), ('after_step', 4, 'export'), *[(e, n, k) for e,n in (('after_epoch', 6), ('after_fit', 12)) for k in kinds]])
def test_what_is_written_within_a_fit_has_the_weights_to_be_used(event, when, how, tmp_path):
    seen = []
    def write(cb):
        learn = cb.learn
        if seen or learn.train_iter+(event=='after_step')!=when: return
        if how=='save': m = net(); m.load_state_dict(torch.load(learn.save('m', with_opt=False))); seen.append(m)
        elif how=='export': seen.append(load_learner(learn.export('m'), net()).model)
        else: seen.append(deepcopy(learn.model))
    learn = learner(tmp_path)
    learn.dls = DataLoaders(batches)   # no validation, which would switch it
    learn.fit(2, cbs=Callback(**{event:write}))
    assert torch.equal(seen[0].weight, at(when).weight)
    assert torch.equal(learn.model.weight, at(12).weight)   # and it trained on as if nobody had written

@pytest.mark.parametrize('cancel', [CancelEpoch, CancelFit])
def test_an_ended_epoch_has_them_afterwards(cancel):
    def leave(cb):
        if cb.train_iter==3: raise cancel
    seen,learn = [],learner()
    learn.fit(1, cbs=[Callback(before_step=leave), Callback(after_fit=lambda cb: seen.append(deepcopy(cb.learn.model)))])
    assert torch.equal(seen[0].weight, at(3).weight)

def test_a_file_that_is_read_within_an_epoch_is_trained_on_from(tmp_path):
    learn = learner(tmp_path)
    learn.fit(1)
    learn.save('m')
    def read(cb):
        if cb.train_iter==3: cb.learn.load('m')
    learn.dls = DataLoaders(batches[3:])
    learn.fit(1)
    want = deepcopy(learn.model)
    learn.dls = DataLoaders(batches)
    learn.fit(1, cbs=Callback(before_pred=read))
    assert torch.equal(learn.model.weight, want.weight)

def test_going_back_after_a_nan_trains_on(tmp_path):
    def spoil(cb):
        if cb.train_iter==8 and cb.n==0: cb.n = 1; cb.learn.loss_grad = cb.learn.loss_grad*float('nan'); cb.learn.loss = cb.learn.loss_grad.detach()
    def run(*cbs):
        learn = learner(tmp_path)
        learn.fit(2, cbs=cbs)
        return learn
    cb = Callback(after_loss=spoil); cb.n = 0
    with pytest.warns(UserWarning, match='last good weights are restored'): learn = run(RollBackOnNaN('1ep', factor=1.), cb)
    assert learn.opt.training is False and torch.isfinite(learn.model.weight).all()
