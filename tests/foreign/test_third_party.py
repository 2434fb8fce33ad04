"""Kinds of callbacks found in public repositories and run in their own trainers and in a Learner: what differed was
fixed, and is tested here without those trainers. Callbacks are recognized by the package of their base class, so a base
class with that module name is enough."""
import copy
import pytest, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from learnkit.all import DataLoaders, GradientAccumulation, Learner, accuracy

pytestmark = pytest.mark.filterwarnings('ignore')

def base(package, name='Callback'):
    "Return a class that is recognized as the base class of that package's callbacks"
    def set_params(self, params): self.params = params
    def set_model(self, model): self.model = model
    return type(name, (), dict(__module__=f'{package}.callbacks', set_params=set_params, set_model=set_model))

Keras,Lightning,HF = base('keras'),base('lightning'),base('transformers', 'TrainerCallback')
Accelerated = base('pytorch_accelerated', 'TrainerCallback')

def rows(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 8, generator=g)
    return TensorDataset(x, (x@torch.linspace(-1, 1, 24).view(8, 3)).argmax(1))

def learner(cbs, **kwargs):
    torch.manual_seed(0)
    dls = DataLoaders(DataLoader(rows(40, 1), 16), DataLoader(rows(24, 2), 16))
    return Learner(dls, nn.Linear(8, 3), nn.CrossEntropyLoss(), torch.optim.SGD, lr=.2, metrics=accuracy, cbs=cbs, **kwargs)

def fit(cbs, epochs=2, **kwargs):
    learn = learner(cbs)
    with learn.no_bar(), learn.no_logging(): learn.fit(epochs, **kwargs)
    return learn

# Keras

def test_keras_logs_are_in_the_order_of_keras():
    "Callbacks in public repositories read `list(logs.values())` by position"
    seen = {}
    class Notes(Keras):
        def on_train_batch_end(self, batch, logs=None): seen['batch'] = [*logs]
        def on_test_end(self, logs=None): seen['test'] = [*logs]
        def on_epoch_end(self, epoch, logs=None): seen['epoch'] = [*logs]
    fit(Notes())
    assert seen==dict(batch=['accuracy','loss'], test=['accuracy','loss'], epoch=['accuracy','loss','val_accuracy','val_loss'])

def test_keras_callbacks_share_their_logs():
    "A value that a callback adds reaches later callbacks, also at the end of the fit, but no other run"
    seen = []
    class Adds(Keras):
        def on_epoch_end(self, epoch, logs=None): logs['learning_rate'] = epoch+.5
        def on_train_batch_end(self, batch, logs=None): logs['batch'] = batch
        def on_test_end(self, logs=None): logs.setdefault('times', 0); logs['times'] += 1
    class Finds(Keras):
        def on_epoch_end(self, epoch, logs=None): seen.append(logs.get('learning_rate'))
        def on_train_batch_end(self, batch, logs=None): assert logs['batch']==batch
        def on_test_end(self, logs=None): assert logs['times']==1
        def on_train_end(self, logs=None): seen.append(logs['learning_rate'])
    learn = fit([Adds(), Finds()])
    assert seen==[.5,1.5,1.5]
    learn.validate()
    learn.validate()
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    assert seen==[.5,1.5,1.5,.5,.5]

def test_keras_counts_and_weights_are_variables():
    seen = []
    class Notes(Keras):
        def on_epoch_end(self, epoch, logs=None):
            seen.append((self.model.optimizer.iterations.numpy(), int(self.model.optimizer.iterations), len(self.model.trainable_weights), len(self.model.weights)))
    learn = learner(Notes())
    learn.model.bias.requires_grad_(False)
    with learn.no_bar(), learn.no_logging(): learn.fit(2)
    assert seen==[(3,3,1,2),(6,6,1,2)]

# Lightning

def test_lightning_gradients_from_before_training_are_cleared():
    "Those of a gradient check, for example: Lightning clears them before the first backward pass"
    class Checks(Lightning):
        def on_train_start(self, trainer, pl_module): pl_module(torch.ones(4, 8)).sum().backward()
    plain,own = fit(()),fit(Checks())
    assert torch.equal(plain.model.weight, own.model.weight)

def test_lightning_callbacks_keep_gradients_from_before_the_fit():
    class Nothing(Lightning):
        def on_train_start(self, trainer, pl_module): pass
    learn = learner(Nothing())
    learn.model.weight.grad = torch.ones_like(learn.model.weight)
    other = learner(())
    other.model.weight.grad = torch.ones_like(other.model.weight)
    for o in (learn, other):
        with o.no_bar(), o.no_logging(): o.fit(1)
    assert torch.equal(learn.model.weight, other.model.weight)

# Hugging Face

def test_hf_the_last_micro_batch_of_an_epoch_ends_a_step():
    "With three batches in an epoch and two per step, the last batch is a step of its own"
    seen = []
    class Notes(HF):
        def on_substep_end(self, args, state, control, **kwargs): seen.append(('part', state.global_step))
        def on_pre_optimizer_step(self, args, state, control, **kwargs): seen.append(('before', state.global_step))
        def on_step_end(self, args, state, control, **kwargs): seen.append(('end', state.global_step, state.epoch))
    fit([Notes(), GradientAccumulation('2ba')], 1)
    assert seen==[('part',0),('before',0),('end',1,pytest.approx(2/3)),('before',1),('end',2,1.)]

def test_hf_flags_at_the_end_of_an_epoch():
    "A callback that prepares for an evaluation reads the flags"
    seen = []
    class Notes(HF):
        def on_step_end(self, args, state, control, **kwargs): seen.append((control.should_log, control.should_evaluate))
        def on_epoch_end(self, args, state, control, **kwargs):
            seen.append((control.should_log, control.should_evaluate, control.should_save))
            return control
    fit(Notes(), 1)
    assert seen==[(False, False)]*3+[(True, True, False)]

def test_hf_an_evaluation_requested_elsewhere_still_raises():
    class Asks(HF):
        def on_step_end(self, args, state, control, **kwargs): control.should_evaluate = True
    with pytest.raises(NotImplementedError, match='ValidateEvery'): fit(Asks(), 1)

# pytorch-accelerated

def test_accelerated_history_keeps_a_matrix():
    class Confusion(Accelerated):
        def on_eval_epoch_end(self, trainer, **kwargs):
            trainer.run_history.update_metric('matrix', torch.eye(3)*trainer.run_history.current_epoch)
            trainer.run_history.update_metric('best', torch.tensor(.5))
        def on_training_run_end(self, trainer, **kwargs): self.all = trainer.run_history.get_metric_values('matrix')
    cb = Confusion()
    learn = fit(cb)
    assert [m.sum().item() for m in cb.all]==[3,6] and learn.recorder.history['best']==[.5,.5]
    assert 'matrix' not in learn.recorder.history.columns

# fastNLP

class HasMonitorCallback(base('fastNLP')):
    "Like fastNLP's own class: uses the trainer's monitor if it has none"
    __module__ = 'fastNLP.core.callbacks.has_monitor_callback'
    monitor = None
    def on_after_trainer_initialized(self, trainer, driver):
        if self.monitor is None: self.monitor = trainer.monitor

def test_fastnlps_own_monitor_class_uses_the_trainers_monitor(capsys):
    from learnkit.contrib.fastnlp import Accuracy, Trainer
    class Watches(HasMonitorCallback):
        def on_evaluate_end(self, trainer, results): self.seen = results[self.monitor]
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 3)
        def forward(self, x, target):
            pred = self.layer(x)
            return dict(pred=pred, loss=nn.functional.cross_entropy(pred, target))
    model,cb = Named(),Watches()
    data = DataLoader([dict(x=x, target=y) for x,y in rows(32, 1)], 16)
    Trainer(model=model, train_dataloader=data, optimizers=torch.optim.SGD(model.parameters(), .1), n_epochs=1, callbacks=[cb],
            evaluate_dataloaders=data, metrics=dict(acc=Accuracy()), monitor='acc#acc').run()
    assert cb.monitor=='acc#acc' and 0<=cb.seen<=1

# Composer

@pytest.mark.parametrize('name', ['FreeOutputs','SpeedMonitor'])
def test_composer_classes_that_cannot_work_raise_when_added(name):
    with pytest.raises(TypeError, match=f'`{name}` of Composer'): learner(type(name, (base('composer'),), dict(__module__='composer.callbacks'))())

# names

@pytest.mark.parametrize('name', ['LR','Wd','OptFunc','Model','Path','Cbs'])
@pytest.mark.parametrize('of', [Keras,Lightning,HF])
def test_a_class_may_be_named_like_an_argument_of_the_learner(name, of):
    learn = fit(type(name, (of,), {})(), 1)
    assert learn.lr==.2 and len(learn.cbs.filter(lambda cb: cb.name.startswith('foreign_')))==1

def test_a_copy_of_a_learner_copies_the_callbacks():
    learn = fit(type('LR', (Keras,), {})(), 1)
    assert copy.deepcopy(learn).foreign_lr is not learn.foreign_lr
