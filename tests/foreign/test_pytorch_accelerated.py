"pytorch-accelerated's callbacks in a Learner: the same events, stopping epoch and weights as in its own trainer"
import pytest, torch
from torch import nn
pa = pytest.importorskip('pytorch_accelerated')
from pytorch_accelerated import Trainer, callbacks as pc
from learnkit.all import DataLoaders, Learner
from learnkit.loop.run import null_logger

pytestmark = pytest.mark.filterwarnings('ignore')
g = torch.Generator().manual_seed(0)
x = torch.randn(48,4, generator=g); y = x.sum(1, keepdim=True)
xv,yv = x[:16]+1,y[:16]+4

def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4,8), nn.Tanh(), nn.Linear(8,1))

class InOrder(Trainer):
    def get_default_train_dl_kwargs(self, batch_size): return dict(shuffle=False, num_workers=0, batch_size=batch_size)
    get_default_eval_dl_kwargs = get_default_train_dl_kwargs

def theirs(cbs, epochs):
    m = net()
    trainer = InOrder(m, nn.MSELoss(), torch.optim.SGD(m.parameters(), .05), callbacks=cbs)
    trainer.train(torch.utils.data.TensorDataset(x, y), epochs, torch.utils.data.TensorDataset(xv, yv), per_device_batch_size=8)
    return m,trainer

def ours(cbs, epochs):
    learn = Learner(DataLoaders([*zip(x.split(8), y.split(8))], [*zip(xv.split(8), yv.split(8))]), net(), nn.MSELoss(), torch.optim.SGD, lr=.05, cbs=cbs)
    learn.logger = null_logger
    learn.remove_cb(learn.progress).fit(epochs)
    return learn

def equal(a, b): return all(torch.equal(p, q) for p,q in zip(a.parameters(), b.parameters(), strict=True))

def make_recorder(stop=None):
    class Notes(pc.TrainerCallback):
        def __init__(self): self.notes = []
    for k in [k for k in vars(pc.TrainerCallback) if k.startswith('on_')]:
        def f(self, trainer, batch=None, batch_output=None, k=k, **kwargs):
            out = () if batch_output is None else (round(batch_output['loss'].item(), 6), tuple(batch_output['model_outputs'].shape), batch_output['batch_size'], len(batch))
            self.notes.append((k, *out, trainer.run_history.current_epoch if k not in ('on_init_end','on_training_run_end') else 0))
            if stop and (k, trainer.run_history.current_epoch)==stop: raise pc.StopTrainingError('enough')
        setattr(Notes, k, f)
    return Notes()

@pytest.mark.parametrize('stop', [None, ('on_train_step_end',2), ('on_eval_epoch_end',1), ('on_training_run_epoch_end',1), ('on_train_epoch_start',2)])
def test_the_same_events_and_weights(stop):
    a,b = make_recorder(stop),make_recorder(stop)
    m,_ = theirs([a], 3); learn = ours([b], 3)
    assert a.notes == b.notes and equal(m, learn.model)

@pytest.mark.parametrize('kw', [dict(early_stopping_patience=2, early_stopping_threshold=.3), dict(early_stopping_patience=1, early_stopping_threshold=.2)])
def test_early_stopping(kw):
    m,trainer = theirs([pc.EarlyStoppingCallback(**kw)], 40); learn = ours([pc.EarlyStoppingCallback(**kw)], 40)
    assert trainer.run_history.current_epoch == len(learn.recorder.history) < 40 and equal(m, learn.model)

def test_other_callbacks(tmp_path, capsys):
    cbs = lambda name: [pc.SaveBestModelCallback(str(tmp_path/name)), pc.TerminateOnNaNCallback(), pc.LimitBatchesCallback(3), pc.MoveModulesToDeviceCallback(), pc.LogMetricsCallback()]
    m,_ = theirs(cbs('a.pt'), 3)
    learn = ours(cbs('b.pth'), 3)
    assert equal(m, learn.model) and len([*learn.dls.train])==6

def test_custom_event():
    seen = []
    class Verify(pc.TrainerCallback):
        def verify_train_batch(self, trainer, xb, yb): seen.append((xb.shape[0], trainer.run_config['train_per_device_batch_size']))
    class Fires(pc.TrainerCallback):
        def on_train_step_start(self, trainer, **kwargs): trainer.callback_handler.call_event('verify_train_batch', trainer=trainer, xb=x[:8], yb=y[:8])
    learn = Learner(DataLoaders.from_tensors(x, y, valid_pct=.25, bs=8), net(), nn.MSELoss(), cbs=[Verify(), Fires()])
    learn.logger = null_logger
    learn.remove_cb(learn.progress).fit(1)
    assert {*seen} == {(8,8)}
