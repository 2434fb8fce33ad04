"""The table tells the truth: means of epochs, one row a moment, a row at step 0, each n-th epoch; also resumed"""
import pytest, torch
from torch import nn
from torch.nn import functional as F

from learnkit.all import (Callback, CheckpointCallback, CSVLogger, DataLoaders, Evaluator, GradientAccumulation, Learner, Logged, MicroBatch,
                          Recorder, SaveModelCallback, ValidateEvery, VirtualShards, accuracy)

x = torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
data = [(x[i:i+8], x[i:i+8].sum(1, keepdim=True)) for i in (0,8,16)]   # 8, 8 and 4 items

def learner(*cbs, loss=F.mse_loss, dls=None, lr=0., **kw):
    torch.manual_seed(0)
    return Learner(dls or DataLoaders(data, data), nn.Linear(4,1), loss, torch.optim.SGD, lr=lr, cbs=[*cbs], **kw)

def shown(learn, n=1, **kw):
    "The first cells of the rows that are shown in a fit"
    rows = []
    learn.logger = lambda row: rows.append(row[0])
    with learn.no_bar(): learn.fit(n, **kw)
    return rows

@pytest.mark.parametrize('cbs', ((), (GradientAccumulation(16),), (MicroBatch(3),), (ValidateEvery('2ba'),)))
def test_the_mean_is_what_validation_finds_of_the_same_weights(cbs):
    learn = learner(Recorder(train_loss='mean'), *cbs)
    learn.fit(2)
    for row in learn.recorder.history.epochs: assert row['train_loss']==pytest.approx(row['valid_loss'], rel=1e-6)

def test_rows_within_an_epoch_have_the_mean_so_far():
    learn = learner(Recorder(train_loss='mean'), ValidateEvery('1ba'))
    learn.fit(1)
    losses = [F.mse_loss(learn.model(a), b).item() for a,b in data]
    assert [r['train_loss'] for r in learn.recorder.history[:2]]==pytest.approx([losses[0], (losses[0]+losses[1])/2])

def test_a_resumed_epoch_keeps_its_mean(tmp_path):
    class Stop(Exception): pass
    def stop(cb):
        if cb.learn.training and cb.learn.train_iter==5: raise Stop
    def run(*cbs, **kw):
        learn = learner(Recorder(train_loss='mean'), *cbs, lr=.1, path=tmp_path)
        learn.fit(2, **kw)
        return learn.recorder.history['train_loss']
    with pytest.raises(Stop): run(CheckpointCallback('1ba'), Callback(before_batch=stop))
    assert run(CheckpointCallback('1ba'), resume='auto')==run()

def test_with_other_metrics_and_logged_ones():
    learn = learner(Recorder(train_loss='mean', train_metrics=True), Callback(after_pred=lambda cb: cb.log('a', 2.)), metrics=[F.l1_loss, Logged('a')])
    learn.fit(1)
    row = learn.recorder.history[0]
    assert (row['train_a'],row['valid_a'])==(2,2) and row['train_l1_loss']==pytest.approx(row['valid_l1_loss'])

def test_what_it_cannot_go_with_raises():
    with pytest.raises(ValueError, match='some shards'): learner(Recorder(train_loss='mean'), VirtualShards(2)).fit(1)
    with pytest.raises(ValueError, match="'smooth' or 'mean'"): Recorder(train_loss='sum')
    with pytest.raises(ValueError, match='epochs'): Recorder(show_every=0)

def test_it_is_reported_once_that_the_smoothed_loss_is_of_other_epochs(capsys):
    learn = learner(dls=DataLoaders(data[:1], data))
    learn.fit(12); learn.fit(12)
    out = capsys.readouterr().out
    assert out.count('of the smoothed train_loss comes from')==1 and "Recorder(train_loss='mean')" in out
    learner(Recorder(train_loss='mean'), dls=DataLoaders(data[:1], data)).fit(12)
    learner(dls=DataLoaders(data*5, data)).fit(12)
    with learner(dls=DataLoaders(data[:1], data)).no_logging() as quiet: quiet.fit(12)
    assert 'of the smoothed' not in capsys.readouterr().out

def test_each_twentieth_epoch_and_the_last():
    learn = learner(Recorder(show_every=20))
    assert shown(learn, 50)==[19,39,49] and len(learn.recorder.history)==50
    assert shown(learner(Recorder(show_every=20)), 40)==[19,39]
    def stop(cb):
        if cb.learn.epoch==25: cb.learn.stop()
    assert shown(learner(Recorder(show_every=20), Callback(after_epoch=stop)), 40)==[19,25]
    assert shown(learner(), 3)==[0,1,2]

def test_one_row_a_moment(tmp_path):
    cbs = Evaluator('a', data, every='2ba'), ValidateEvery('2ba'), Evaluator('b', data[:1], every='1ba'), CSVLogger(tmp_path/'log.csv')
    learn = learner(*cbs)
    learn.fit(1)
    rows = learn.recorder.history
    assert [r.get('train_iter') for r in rows]==[1,2,3,None]
    assert {'a_loss','b_loss','valid_loss','train_loss'} <= rows[1].keys() and rows[1]['a_loss']==rows[1]['valid_loss']
    log = learn.csv_logger.read_log()
    assert log['train_iter']==[1,2,3,None]
    for k in ('a_loss','b_loss','valid_loss'): assert log[k]==pytest.approx([r.get(k) for r in rows])

def test_two_validations_that_differ_stay_apart():
    learn = learner(ValidateEvery('2ba', dl=data[:1]), ValidateEvery('2ba', dl=data[1:2]))
    learn.fit(1)
    assert [r.get('train_iter') for r in learn.recorder.history]==[2,2,None]

def test_step_0_on_request(tmp_path, capsys):
    ev = Evaluator('a', data, at_start=True)
    learn = learner(ev, ValidateEvery('2ba', at_start=True), SaveModelCallback(), CheckpointCallback('1ba'), path=tmp_path, lr=.1)
    assert shown(learn, 2)==['0:0','0:2',0,'1:1','1:3',1]
    first = learn.recorder.history[0]
    assert first['train_iter']==0 and first['train_loss'] is None and first['a_loss']==first['valid_loss']
    assert [l.split(' with')[0] for l in capsys.readouterr().out.splitlines() if 'Better' in l][:3]==[
        f'Better model found at epoch {e}' for e in ('0:0','0:2','0')]
    again = learner(Evaluator('a', data, at_start=True), ValidateEvery('2ba', at_start=True), SaveModelCallback(), CheckpointCallback('1ba'),
                    path=tmp_path, lr=.1)   # nothing at its start
    assert shown(again, 3, resume='auto')[0]!='0:0'

def test_training_is_as_without_it():
    learn,plain = learner(ValidateEvery('1ba', at_start=True), lr=.1),learner(lr=.1)
    learn.fit(2); plain.fit(2)
    assert torch.equal(learn.model.weight, plain.model.weight)

def test_losses_that_were_not_announced_are_kept_as_one_tensor():
    "In a script without a bar a checkpoint had up to a thousand of them, each an object of its own"
    learn,seen,got = learner(lr=.1, dls=DataLoaders(data*3)),[],[]
    def keep(cb):
        seen.append(cb.loss.item())
        if cb.iter==6: got.append((cb.learn.recorder.state_dict(), [*seen]))
    (late := Callback(after_batch=keep)).order = 60
    with learn.no_bar(): learn.fit(1, cbs=late)
    (state,losses), = got
    assert state['unseen'].dtype is torch.float64 and state['unseen'].tolist()==losses and len(losses)==7
    for unseen in state['unseen'],losses:   # of an older learnkit
        rec = Recorder()
        rec.load_state_dict({**state, 'unseen':unseen})
        assert rec.smooth_loss.unseen==losses and {*map(type, rec.smooth_loss.unseen)}=={float}
