"""Lightning's callbacks, in Lightning's trainer and in a Learner with the same model, data and optimizer: the same
events, stopping epoch and weights."""
import pytest, torch
from torch import nn
import torch.nn.functional as F
lightning = pytest.importorskip('lightning')
from lightning.pytorch import LightningModule, Trainer, callbacks as lc
from learnkit.all import CheckpointCallback, DataLoaders, Learner
from learnkit.loop.run import null_logger

pytestmark = pytest.mark.filterwarnings('ignore')
g = torch.Generator().manual_seed(0)
x = torch.randn(48,4, generator=g); y = x.sum(1, keepdim=True)
xv,yv = x[:16]+1,y[:16]+4
train,valid = [*zip(x.split(8), y.split(8))],[*zip(xv.split(8), yv.split(8))]

def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4,8), nn.Tanh(), nn.Linear(8,1))

class Module(LightningModule):
    def __init__(self): super().__init__(); self.net = net()
    def forward(self, x): return self.net(x)
    def training_step(self, b, i): return F.mse_loss(self(b[0]), b[1])
    def validation_step(self, b, i): self.log('val_loss', F.mse_loss(self(b[0]), b[1]))
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), .05)

def theirs(cbs, epochs):
    m = Module()
    trainer = Trainer(max_epochs=epochs, accelerator='cpu', callbacks=cbs, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                      enable_model_summary=False, num_sanity_val_steps=0)
    trainer.fit(m, *(torch.utils.data.DataLoader(b, batch_size=None) for b in (train, valid)))
    return m.net,trainer

def ours(cbs, epochs, **kwargs):
    learn = Learner(DataLoaders(train, valid), net(), nn.MSELoss(), torch.optim.SGD, lr=.05, cbs=cbs, path=kwargs.pop('path', None))
    learn.logger = null_logger
    learn.remove_cb(learn.progress).fit(epochs, **kwargs)
    return learn

def equal(a, b): return all(torch.equal(p, q) for p,q in zip(a.parameters(), b.parameters(), strict=True))

def make_recorder(excluded=()):
    class Notes(lc.Callback):
        def __init__(self): self.notes = []
    for k in [*vars(lc.Callback)]:
        if k.startswith(('on_','setup','teardown')) and k not in excluded:
            def f(self, trainer, pl_module, *args, k=k, stage=None):
                last = [a for a in args if isinstance(a, int)]
                self.notes.append((k, trainer.current_epoch, trainer.global_step, *last[:1]))
            setattr(Notes, k, f)
    return Notes()

def test_the_same_events_with_the_same_counters():
    excluded = 'on_before_zero_grad', 'on_save_checkpoint', 'on_load_checkpoint'
    a,b = make_recorder(excluded),make_recorder(excluded)
    m,_ = theirs([a], 2); learn = ours([b], 2)
    assert equal(m, learn.model)
    ends = 'on_train_end','on_fit_end','teardown'   # Lightning increments the epoch before these
    assert [n if n[0] not in ends else n[:1] for n in a.notes] == [n if n[0] not in ends else n[:1] for n in b.notes]

def test_on_before_zero_grad_is_called_as_often():
    a,b = make_recorder(),make_recorder()
    theirs([a], 1); ours([b], 1)
    count = lambda o: sum(n[0]=='on_before_zero_grad' for n in o.notes)
    assert count(a)==count(b)==6

@pytest.mark.parametrize('kw', [dict(patience=2, min_delta=.2), dict(patience=50, stopping_threshold=2.), dict(patience=50, divergence_threshold=3.)])
def test_early_stopping(kw):
    a,b = (lc.EarlyStopping('val_loss', **kw) for _ in range(2))
    m,trainer = theirs([a], 40); learn = ours([b], 40)
    assert a.stopped_epoch == b.stopped_epoch and a.wait_count == b.wait_count and equal(m, learn.model)
    assert trainer.current_epoch == len(learn.recorder.history) < 40

def test_lambda_and_timer():
    seen = []
    learn = ours([lc.LambdaCallback(on_train_epoch_end=lambda trainer,module: seen.append((trainer.current_epoch, trainer.callback_metrics['val_loss'].item()))), lc.Timer()], 2)
    assert [e for e,_ in seen]==[0,1]
    assert [v for _,v in seen] == pytest.approx([r['valid_loss'] for r in learn.recorder.history])
    assert learn.timer.theirs.time_elapsed()>0

def test_a_callback_changes_gradients_and_learning_rates():
    class Clip(lc.Callback):
        def on_before_optimizer_step(self, trainer, pl_module, optimizer):
            for g in optimizer.param_groups: nn.utils.clip_grad_norm_(g['params'], .1)
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            trainer.optimizers[0].param_groups[0]['lr'] *= .99
            assert outputs['loss'].ndim==0 and len(batch)==2
    m,_ = theirs([Clip()], 3)
    assert equal(m, ours([Clip()], 3).model)

def test_events_of_validation_and_prediction():
    b = make_recorder()
    learn = ours([], 1)
    learn.add_cb(b)
    learn.validate(); learn.get_preds()
    assert [n[0] for n in b.notes if 'predict' in n[0]] == ['on_predict_start', 'on_predict_epoch_start', *['on_predict_batch_start', 'on_predict_batch_end']*2,
                                                            'on_predict_epoch_end', 'on_predict_end']
    assert sum(n[0]=='on_validation_batch_end' for n in b.notes)==2 and not any('train' in n[0] for n in b.notes)

def test_an_exception_is_reported():
    class Fails(lc.Callback):
        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx): raise ZeroDivisionError
        def on_exception(self, trainer, pl_module, exception): self.seen = exception
    cb = Fails()
    with pytest.raises(ZeroDivisionError): ours([cb], 1)
    assert isinstance(cb.seen, ZeroDivisionError)

@pytest.mark.parametrize('make', [lambda d: lc.ModelCheckpoint(str(d)), lambda d: lc.GradientAccumulationScheduler({0:2})])
def test_callbacks_that_need_lightnings_trainer_raise(make, tmp_path):
    with pytest.raises(TypeError, match="works only in Lightning's own trainer: write `(SaveModelCallback|GradientAccumulation)"): ours([make(tmp_path)], 1)

def test_a_copy_of_the_module_is_a_copy_of_the_model():
    "Callbacks that average weights copy the module"
    import copy, pickle
    class Average(lc.Callback):
        def on_fit_start(self, trainer, pl_module):
            self.copies = [copy.deepcopy(pl_module), copy.copy(pl_module), pickle.loads(pickle.dumps(pl_module))]
            self.trainer = copy.deepcopy(trainer)
            assert self.trainer is trainer
        def on_train_end(self, trainer, pl_module):
            self.differ = [not torch.equal(o[0].weight, pl_module.learn.model[0].weight) for o in self.copies]
    cb = Average()
    learn = ours([cb], 1)
    assert all(isinstance(o, nn.Sequential) for o in cb.copies) and cb.differ==[True,False,True]
    twin = copy.deepcopy(learn)
    assert twin.average.theirs.trainer.learn is twin

def test_a_resumed_run_restores_the_state(tmp_path):
    def stop(): return lc.EarlyStopping('val_loss', patience=3, min_delta=.2)
    whole = ours([stop()], 40, path=tmp_path)
    n = len(whole.recorder.history)
    ours([stop(), CheckpointCallback('1ep')], n-2, path=tmp_path)
    rest = ours([stop(), CheckpointCallback('1ep')], 40, path=tmp_path, resume='auto')
    assert len(rest.recorder.history)==n and equal(whole.model, rest.model)
