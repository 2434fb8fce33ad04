"""`learn.log`: means by items, in both phases, from anywhere; in a resumed run; refused where nothing can be averaged"""
import pytest, torch
from torch import nn
from torch.nn import functional as F

from learnkit.all import (Callback, CheckpointCallback, DataLoaders, EarlyStoppingCallback, GradientAccumulation,
                          Learner, Logged, Recorder, accuracy, log_value)

x = torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
data = [(x[i:i+8], x[i:i+8].sum(1, keepdim=True)) for i in (0,8,16)]   # 8, 8 and 4 items

class First(Callback):
    "Logs the mean of the first input"
    def after_pred(self): self.log('first', self.xb[0][:,0].mean())

def learner(*cbs, metrics=Logged('first'), model=None, **kw):
    torch.manual_seed(0)
    return Learner(DataLoaders(data, data), model or nn.Linear(4,1), F.mse_loss, lr=.01, metrics=metrics, cbs=[First, *cbs], **kw)

mean = pytest.approx(x[:,0].mean().item(), abs=1e-6)

def test_a_mean_by_items_in_both_phases():
    learn = learner(metrics=[Logged('first'), F.l1_loss])
    learn.fit(2)
    assert learn.recorder.history.names==['epoch','train_loss','train_first','valid_loss','valid_first','l1_loss','time']
    for row in learn.recorder.history: assert row['train_first']==mean and row['valid_first']==mean
    assert learn.validate()[1]==mean

@pytest.mark.parametrize('cb', (GradientAccumulation(16), Recorder(train_metrics=True)))
def test_with(cb):
    learn = learner(cb)
    learn.fit(1)
    assert learn.recorder.history[-1]['train_first']==mean

def test_a_weight_of_ones_own():
    learn = learner(Callback(after_pred=lambda cb: cb.log('own', cb.learn.iter, n=cb.learn.iter)), metrics=[Logged('first'), Logged('own')])
    learn.fit(1)
    assert learn.recorder.history[-1]['train_own']==pytest.approx((0*0 + 1*1 + 2*2)/3)

class Logs(nn.Linear):
    def forward(self, x): log_value('first', x[:,0].mean()); return super().forward(x)

def test_a_model_logs_and_works_alone():
    learn = learner(model=Logs(4,1))
    learn.remove_cb(First)
    learn.fit(1)
    assert learn.recorder.history[-1]['valid_first']==mean
    learn.get_preds(); learn.summary(); learn.model(x)

def test_nothing_of_a_prediction_or_validation_within_gets_in():
    def look(cb):
        if cb.learn.training and cb.learn.iter==1: cb.learn.get_preds(dl=data[:1]); cb.learn.validate(dl=data[:1])
    learn = learner(Callback(after_batch=look))
    learn.fit(1)
    assert learn.recorder.history[-1]['train_first']==mean and learn.recorder.history[-1]['valid_first']==mean

def test_it_can_be_watched():
    learn = learner(EarlyStoppingCallback('valid_first', comp='min', patience=1))
    learn.fit(5)
    assert len(learn.recorder.history)==2

def test_a_resumed_epoch_keeps_its_mean(tmp_path):
    class Stop(Exception): pass
    def stop(cb):
        if cb.learn.training and cb.learn.train_iter==5: raise Stop
    def run(*cbs, **kw):
        learn = learner(CheckpointCallback('1ba'), *cbs, path=tmp_path)
        learn.fit(2, **kw)
        return learn
    with pytest.raises(Stop): run(Callback(before_batch=stop))
    assert run(resume='auto').recorder.history[-1]['train_first']==mean

def test_it_is_refused_where_there_is_no_mean():
    learn = learner()
    with pytest.raises(RuntimeError, match='outside of a phase'): learn.first.log('first', 1.)
    with pytest.raises(RuntimeError, match='outside of a phase'): learner(Callback(before_epoch=lambda cb: cb.log('first', 1.))).fit(1)
    with pytest.raises(ValueError, match=r"metrics=Logged\('first'\)"): learner(metrics=None).fit(1)
    with pytest.raises(ValueError, match='did you mean `firsts`'): learner(metrics=Logged('firsts')).fit(1)
    with pytest.raises(ValueError, match="two columns.*'train_loss'"): learner(metrics=Logged('loss')).fit(1)
    with pytest.raises(ValueError, match='one number'): learner(Callback(after_pred=lambda cb: cb.log('first', cb.learn.pred))).fit(1)

class Worker(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): log_value('first', 1.); return x[i],x[i,:1]

def test_a_worker_is_told():
    learn = Learner(DataLoaders.from_dsets(Worker(), bs=2, num_workers=1), nn.Linear(4,1), F.mse_loss, metrics=Logged('first'))
    with pytest.raises(RuntimeError, match='in a worker'): learn.fit(1)
