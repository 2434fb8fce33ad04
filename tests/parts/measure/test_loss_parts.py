"""A loss function that returns a dictionary: the sum is trained on, to the bit, and each part has a column"""
import pytest, torch
from torch import nn
from torch.nn import functional as F

from learnkit.all import (Callback, CancelBatch, CheckpointCallback, CSVLogger, DataLoaders, EMACallback, GradientAccumulation, Learner,
                          Logged, MicroBatch, MixedPrecision, MixUp)

x = torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
data = [(x[i:i+8], x[i:i+8].sum(1, keepdim=True)) for i in (0,8,16)]   # 8, 8 and 4 items

def parts(pred, y): return {'error':F.mse_loss(pred, y), 'size':.1*pred.pow(2).mean()}
def summed(pred, y): return F.mse_loss(pred, y) + .1*pred.pow(2).mean()

def learner(loss_func=parts, metrics=('error','size'), cbs=None, **kw):
    torch.manual_seed(0)
    return Learner(DataLoaders(data, data), nn.Linear(4,1), loss_func, lr=.01, cbs=cbs, metrics=[*map(Logged, metrics)], **kw)

@pytest.mark.parametrize('cb', (list, lambda: GradientAccumulation(16), lambda: GradientAccumulation('2ba'), lambda: MicroBatch(3),
    lambda: MixedPrecision('bf16'), EMACallback, MixUp))
def test_as_the_sum(cb):
    learn,plain = learner(cbs=cb()),learner(summed, (), cbs=cb())
    for l in (learn, plain):
        with l.no_bar(), l.no_logging(): torch.manual_seed(1); l.fit(2)
    for p,q in zip(learn.model.parameters(), plain.model.parameters()): assert torch.equal(p, q)
    for row,want in zip(learn.recorder.history, plain.recorder.history):
        assert row['train_loss']==want['train_loss'] and row['valid_loss']==want['valid_loss']
        assert row['valid_error']+row['valid_size']==pytest.approx(row['valid_loss'], rel=1e-5)
        assert row['train_error'] and row['train_size']
    assert learn.get_preds(with_loss=False)[0].shape==(20, 1)

def test_resumed(tmp_path):
    whole,first,second = (learner(path=tmp_path/d, cbs=CheckpointCallback('2ba')) for d in 'abb')
    def stop(cb):
        if cb.learn.train_iter==5: raise KeyboardInterrupt
    for l in (whole, first, second): l.logger = lambda *a, **k: None
    whole.fit(3)
    with pytest.raises(KeyboardInterrupt), first.no_bar(): first.fit(3, cbs=Callback(after_batch=stop))
    second.fit(3, resume='auto')
    strip = lambda rows: [{k:v for k,v in r.items() if k!='time'} for r in rows]
    assert strip(whole.recorder.history)==strip(second.recorder.history)
    assert torch.equal(whole.model.weight, second.model.weight)

def test_seen_first_in_a_later_batch():
    "The first batch is cancelled: what the loss function returns shows in the second one"
    def skip(cb):
        if cb.learn.iter==0: raise CancelBatch
    learn,plain = learner(cbs=Callback(before_batch=skip)),learner(summed, (), cbs=Callback(before_batch=skip))
    for l in (learn, plain):
        with l.no_bar(), l.no_logging(): l.fit(2)
    assert torch.equal(learn.model.weight, plain.model.weight) and learn.recorder.history[-1]['train_error']

def test_written_by_loggers(tmp_path):
    learn = learner(path=tmp_path, cbs=CSVLogger())
    learn.fit(1)
    assert 'train_error' in (tmp_path/'history.csv').read_text()

@pytest.mark.parametrize('f,names,says', (
    (parts, (), r"the parts error, size: write `metrics=\[\*map\(Logged, \['error', 'size'\]\)\]`"),
    (parts, ('error',), 'the parts error, size'),
    (lambda p,y: {}, (), 'without entries'),
    (lambda p,y: {'loss':F.mse_loss(p, y), 'kl':p.mean()}, (), 'with an entry `loss`'),
    (lambda p,y: {'a':F.mse_loss(p, y).item()}, 'a', "the part 'a' of the loss must be a tensor, but is float: don't take")))
def test_raises(f, names, says):
    with pytest.raises((TypeError,ValueError), match=says): learner(f, names).fit(1)
