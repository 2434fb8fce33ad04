"""Callbacks of Hugging Face's Trainer, in the Trainer and in a Learner with the same model, data and optimizer: the
same events, stopping epoch and weights."""
import pytest, torch
from torch import nn
import torch.nn.functional as F
transformers = pytest.importorskip('transformers'); pytest.importorskip('accelerate')
from transformers import EarlyStoppingCallback, Trainer, TrainerCallback, TrainingArguments
from learnkit.all import CheckpointCallback, DataLoaders, GradientAccumulation, Learner, SGD
from learnkit.contrib.transformers import HFArguments
from learnkit.contrib.foreign import view_of
from learnkit.loop.run import null_logger

pytestmark = pytest.mark.filterwarnings('ignore')
g = torch.Generator().manual_seed(0)
x = torch.randn(48,4, generator=g); y = x.sum(1, keepdim=True)
xv,yv = x[:16]+1,y[:16]+4

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(4,8), nn.Tanh(), nn.Linear(8,1))
    def forward(self, x, labels=None):
        out = self.net(x)
        return out if labels is None else dict(loss=F.mse_loss(out, labels), logits=out)

def items(x, y): return [dict(x=a, labels=b) for a,b in zip(x, y)]

class InOrder(Trainer):
    def _get_train_sampler(self, *args): return torch.utils.data.SequentialSampler(self.train_dataset)

def theirs(cbs, epochs, folder, accumulate=1):
    args = TrainingArguments(str(folder), num_train_epochs=epochs, per_device_train_batch_size=8, per_device_eval_batch_size=8, eval_strategy='epoch',
                             logging_strategy='epoch', save_strategy='epoch', load_best_model_at_end=True, metric_for_best_model='eval_loss', greater_is_better=False,
                             gradient_accumulation_steps=accumulate, learning_rate=.05, lr_scheduler_type='constant', max_grad_norm=0., report_to=[], use_cpu=True, disable_tqdm=True)
    m = Net()
    trainer = InOrder(m, args, train_dataset=items(x, y), eval_dataset=items(xv, yv), callbacks=cbs, optimizers=(torch.optim.SGD(m.parameters(), .05), None))
    trainer._load_best_model = lambda *args: None   # compare the last weights
    trainer.train()
    return m,trainer

def ours(cbs, epochs, path=None, **kwargs):
    learn = Learner(DataLoaders([*zip(x.split(8), y.split(8))], [*zip(xv.split(8), yv.split(8))]), Net().net, nn.MSELoss(), torch.optim.SGD, lr=.05, cbs=cbs, path=path)
    learn.logger = null_logger
    learn.remove_cb(learn.progress).fit(epochs, **kwargs)
    return learn

def equal(a, b): return all(torch.equal(p, q) for p,q in zip(a.net.parameters(), b.parameters(), strict=True))

def make_recorder():
    class Notes(TrainerCallback):
        def __init__(self): self.notes = []
    for k in 'train_begin epoch_begin step_begin pre_optimizer_step optimizer_step substep_end step_end epoch_end evaluate prediction_step train_end'.split():
        def f(self, args, state, control, k=k, **kwargs):
            kwargs['model'], kwargs['optimizer'], kwargs['train_dataloader']
            self.notes.append((k, state.global_step))
        setattr(Notes, f'on_{k}', f)
    return Notes()

@pytest.mark.parametrize('accumulate', [1,2])
def test_the_same_events_at_the_same_steps(accumulate, tmp_path):
    a,b = make_recorder(),make_recorder()
    m,_ = theirs([a], 2, tmp_path, accumulate)
    learn = ours([b, *([GradientAccumulation(8*accumulate)] if accumulate>1 else [])], 2)
    assert a.notes == b.notes
    assert equal(m, learn.model) or accumulate>1 and all(torch.allclose(p, q, atol=1e-6) for p,q in zip(m.net.parameters(), learn.model.parameters()))

@pytest.mark.parametrize('kw', [dict(early_stopping_patience=2, early_stopping_threshold=.2), dict(early_stopping_patience=1, early_stopping_threshold=.3)])
def test_early_stopping(kw, tmp_path):
    m,trainer = theirs([EarlyStoppingCallback(**kw)], 40, tmp_path)
    learn = ours([EarlyStoppingCallback(**kw)], 40)
    assert len(learn.recorder.history) == round(trainer.state.epoch) < 40 and equal(m, learn.model)
    assert learn.early_stopping.theirs.early_stopping_patience_counter == kw['early_stopping_patience']

def test_early_stopping_without_its_metric_is_inactive():
    learn = ours([], 0)
    view_of(HFArguments, learn).metric_for_best_model = 'eval_nothing'
    learn.add_cb(EarlyStoppingCallback())
    learn.fit(2)   # it warns that this metric is missing and is inactive, as in the Trainer
    assert len(learn.recorder.history)==2

def test_the_state_at_the_end_of_a_step(tmp_path):
    def look():
        class Look(TrainerCallback):
            def __init__(self): self.seen = []
            def on_step_end(self, args, state, control, **kwargs): self.seen.append((round(state.epoch, 4), state.max_steps, args.num_train_epochs))
            def on_evaluate(self, args, state, control, metrics, **kwargs): self.seen.append(round(metrics['eval_loss'], 5))
        return Look()
    a,b = look(),look()
    theirs([a], 3, tmp_path); ours([b], 3)
    assert a.seen == b.seen

def test_a_callback_may_end_an_epoch(tmp_path):
    class Short(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step % 2==0: control.should_epoch_stop = True
            return control
    m,_ = theirs([Short()], 3, tmp_path)
    assert equal(m, ours([Short()], 3).model)

def test_a_resumed_run_restores_the_state(tmp_path):
    def stop(): return EarlyStoppingCallback(2, .2)
    whole = ours([stop()], 40, path=tmp_path)
    n = len(whole.recorder.history)
    ours([stop(), CheckpointCallback('1ep')], n-1, path=tmp_path)
    rest = ours([stop(), CheckpointCallback('1ep')], 40, path=tmp_path, resume='auto')
    assert len(rest.recorder.history)==n and all(torch.equal(p, q) for p,q in zip(whole.model.parameters(), rest.model.parameters()))
