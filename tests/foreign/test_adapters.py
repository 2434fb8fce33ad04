"Adapters of other libraries' callbacks, without these libraries: the views, planned lengths, NaN, what a fit leaves"
import copy
from math import inf, nan

import numpy as np
import pytest, torch
from torch import nn
from torch.utils.data import TensorDataset
from learnkit.all import Callback, CheckpointCallback, DataLoaders, GradientAccumulation, JsonLogger
from learnkit.contrib import fastnlp
from learnkit.contrib.foreign import means_in, view_of
from learnkit.contrib.keras import KerasCallback, KerasModel
from learnkit.contrib.lightning import LightningCallback, LightningTrainer
from learnkit.contrib.pytorch_accelerated import EarlyStopping, Trainer
from learnkit.contrib.transformers import HFCallback, HFState
from toys import batches, learner, weights

def callback(library, **methods):
    "An object with these methods whose class pretends to be from `library`"
    cls = type('Theirs', (), dict(methods, __module__=f'{library}.callbacks'))
    return cls()

def keras_callback(**methods):
    def set_model(self, model): self.model = model
    def set_params(self, params): self.params = params
    return KerasCallback(callback('keras', set_model=set_model, set_params=set_params, **methods))

# weights and attributes

@pytest.mark.parametrize('wrong', ['too few', 'too many', 'another shape'])
def test_keras_weights_that_do_not_fit_change_nothing(wrong):
    model = view_of(KerasModel, learner())
    before = model.get_weights()
    new = [w+1 for w in before]
    if wrong=='too few': new.pop()
    if wrong=='too many': new.append(new[-1])
    if wrong=='another shape': new[-1] = np.zeros((1,1), dtype='float32')   # PyTorch would broadcast it
    with pytest.raises(ValueError, match='pass a result of `get_weights`'): model.set_weights(new)
    assert all(map(np.array_equal, model.get_weights(), before))
    model.set_weights([w+1 for w in before])
    assert all(np.array_equal(w, old+1) for w,old in zip(model.get_weights(), before))

class Scaled(nn.Module):
    "A model whose output depends on an attribute"
    scale = 1.
    def __init__(self):
        super().__init__()
        self.linear,self.scales = nn.Linear(4, 1),[]
    def forward(self, x):
        self.scales.append(self.scale)
        return self.linear(x)*self.scale

def test_an_attribute_of_pl_module_is_one_of_the_model():
    def on_train_start(self, trainer, pl_module): pl_module.scale = 2.
    def on_train_end(self, trainer, pl_module): del pl_module.scale
    cb = LightningCallback(callback('lightning', on_train_start=on_train_start, on_train_end=on_train_end))
    learn = learner(model=Scaled(), cbs=cb)
    learn.fit(1)
    assert set(learn.model.scales)=={2.} and learn.model.scale==1.
    with pytest.raises(AttributeError): view_of(LightningTrainer, learn).model.trainer = None   # a property of the view

def test_pl_module_is_the_model_without_its_wrapper():
    "As in several processes, where the model of a fit is in `DistributedDataParallel`"
    learn = learner(model=Scaled())
    inner = learn.model
    learn.model = nn.DataParallel(inner)
    module = view_of(LightningTrainer, learn).model
    assert [*module.state_dict()]==['linear.weight','linear.bias'] and module.linear is inner.linear
    assert type(copy.deepcopy(module)) is Scaled
    module.scale = 3.
    assert inner.scale==3.

def test_hugging_face_callbacks_get_the_model_without_its_wrapper():
    seen = []
    def on_train_begin(self, args, state, control, **kwargs): seen.append(kwargs['model'])
    learn = learner(cbs=HFCallback(callback('transformers', on_train_begin=on_train_begin)))
    inner = learn.model
    learn.model = nn.DataParallel(inner)
    learn.fit(1)
    assert seen==[inner]

def test_a_fastnlp_checkpoint_has_the_model_without_its_wrapper(tmp_path):
    a,b = learner(),learner()
    inner = a.model
    a.model = nn.DataParallel(inner)
    view_of(fastnlp.NLPTrainer, a).save_checkpoint(tmp_path)
    with torch.no_grad():
        for p in b.model.parameters(): p.add_(1)
    view_of(fastnlp.NLPTrainer, b).load_checkpoint(tmp_path)
    assert all(map(torch.equal, inner.parameters(), b.model.parameters()))

# planned lengths

@pytest.mark.parametrize('n_acc', [1, 2, 3])
@pytest.mark.parametrize('length', [2, '7ba', '4st', '10ba'])
def test_the_planned_steps_are_those_taken(length, n_acc):
    "The epochs have 5 batches, so with accumulation the last step of an epoch has fewer batches than others"
    planned = []
    def note(self):
        planned.append(view_of(HFState, self.learn).max_steps)
        planned.append(view_of(LightningTrainer, self.learn).estimated_stepping_batches)
    learn = learner(n=5)
    learn.fit(length, cbs=[Callback(before_train=note), *[GradientAccumulation(f'{n_acc}ba')]*(n_acc>1)])
    assert set(planned)=={learn.train_steps}

def test_the_planned_steps_of_a_loader_without_a_length():
    planned = []
    def note(self):
        planned.append(view_of(HFState, self.learn).max_steps)
        planned.append(view_of(LightningTrainer, self.learn).estimated_stepping_batches)
        planned.append(view_of(fastnlp.NLPTrainer, self.learn).n_batches)
    class Stream:
        def __iter__(self): return iter(batches(5, 4))
    for length in (1, '3ba'): learner(dls=DataLoaders(Stream())).fit(length, cbs=Callback(before_fit=note))
    assert planned==[0,inf,0,3,3,3]

@pytest.mark.parametrize('length,epochs', [(2, [.2,.4,.6,.8,1.,1.2,1.4,1.6,1.8,2.]), ('7ba', [.2,.4,.6,.8,1.,1.2,1.4]),
                                           ('6st', [.2,.4,.6,.8,1.,1.2])])
def test_hugging_face_callbacks_get_the_epochs_trained(length, epochs):
    seen = []
    def on_step_end(self, args, state, control, **kwargs): seen.append(state.epoch)
    learner(n=5).fit(length, cbs=HFCallback(callback('transformers', on_step_end=on_step_end)))
    assert seen==pytest.approx(epochs)

@pytest.mark.parametrize('n_acc,n_steps,n_epochs', [(1, 7, 2), (2, 6, 2), (2, 7, 3), (3, 4, 2)])
def test_pytorch_accelerated_takes_max_num_train_steps(n_acc, n_steps, n_epochs):
    x = torch.randn(40, 4)
    model = nn.Linear(4, 1)
    configs = []
    def note(self, trainer, **kwargs): configs.append(trainer.run_config.to_dict())
    cb = callback('pytorch_accelerated', on_training_run_start=note, on_training_run_end=note)
    trainer = Trainer(model, nn.MSELoss(), torch.optim.SGD(model.parameters(), .01), callbacks=[cb])
    trainer.train(TensorDataset(x, x.sum(1, keepdim=True)), 99, max_num_train_steps=n_steps,
                  gradient_accumulation_steps=n_acc)
    assert trainer.learn.train_steps==n_steps
    assert [(c['max_num_train_steps'], c['num_epochs']) for c in configs]==[(n_steps, n_epochs)]*2

# NaN

def test_a_nan_is_never_the_best_metric_of_hugging_face():
    state,best = view_of(HFState, learner()),[]
    for v in (nan, 2., nan, 1., 3.):
        state.update_best_metric(dict(eval_loss=v))
        best.append(state.best_metric)
    assert best==[None, 2., 2., 1., 1.]

@pytest.mark.parametrize('larger_better', [True, False])
def test_a_nan_is_never_the_best_result_of_fastnlp(larger_better):
    cb = fastnlp.HasMonitorCallback('acc', larger_better)
    better = [cb.is_better_results(dict(acc=v)) for v in (nan, 2., nan, 1., 3.)]
    assert better==[False, True, False, not larger_better, larger_better]

def test_a_nan_is_not_among_the_best_models_of_fastnlp(tmp_path):
    cb = fastnlp.CheckpointCallback(tmp_path, topk=2, monitor='acc')
    learn = learner(cbs=cb.as_callback())
    trainer = view_of(fastnlp.NLPTrainer, learn)
    for epoch,v in enumerate((nan, 1., nan, 2., 3.)):
        trainer.epochs_done = epoch
        cb.on_evaluate_end(trainer, dict(acc=v))
    assert [value for value,_ in cb.best]==[3., 2.]
    assert {o.name for o in tmp_path.iterdir()}=={'epoch_3-batch_0', 'epoch_4-batch_0'}

# what a fit leaves behind

def test_lightning_metrics_begin_anew_with_a_fit():
    seen = []
    def log(self, trainer, pl_module): pl_module.log('logged', 1.)
    def read(self, trainer, pl_module): seen.append({*trainer.callback_metrics})
    cbs = [callback('lightning', on_train_start=log), callback('lightning', on_train_epoch_start=read)]
    learn = learner(cbs=cbs)
    learn.fit(1)
    learn.fit(2)
    assert seen[:2]==[{'logged'}, {'logged'}] and 'val_loss' in seen[2]

def test_what_lightning_logs_in_the_batches_of_a_validation_is_averaged(tmp_path):
    "As in Lightning, over the samples of the batches, which have 4 and 2; and it is logged once"
    def log(self, trainer, pl_module, outputs, batch, i): pl_module.log('i', i)
    def log_weighted(self, trainer, pl_module, outputs, batch, i): pl_module.log_dict(dict(j=i), batch_size=3-2*i)
    seen = []
    def read(self, trainer, pl_module): seen.append((trainer.callback_metrics['i'], trainer.callback_metrics['j']))
    cbs = [callback('lightning', on_validation_batch_end=log),
           callback('lightning', on_validation_batch_end=log_weighted, on_validation_epoch_end=read)]
    data = DataLoaders(batches(2, 4), [*batches(1, 4), *batches(1, 2)])
    learn = learner(dls=data, cbs=[*cbs, JsonLogger()], path=tmp_path)
    learn.fit(2)
    assert seen==[(pytest.approx(2/6), .25)]*2
    assert [row['j'] for row in learn.json_logger.read_log() if 'j' in row]==[.25, .25]

@pytest.mark.parametrize('make', [lambda: keras_callback(on_epoch_end=check_logs), lambda: EarlyStopping(9)],
                         ids=['Keras', 'pytorch-accelerated'])
def test_the_training_means_last_as_long_as_the_callback(make):
    learn = learner()
    learn.fit(1, cbs=make())
    assert means_in(learn) is None
    learn.fit(1, cbs=[make(), callback('lightning', on_train_end=lambda *args: None)])
    assert means_in(learn) is None
    kept = learner(cbs=make())
    kept.fit(1)
    assert means_in(kept) is not None

def check_logs(self, epoch, logs): assert 'loss' in logs

# resumed runs

def keep_best_weights(self, epoch, logs):
    "As in Keras's `EarlyStopping(restore_best_weights=True)`"
    if vars(self).get('best_weights') is None or logs['val_loss']<self.best:
        self.best,self.best_weights = logs['val_loss'],self.model.get_weights()
def restore_best_weights(self, logs): self.model.set_weights(self.best_weights)

def keras_best(learn): return keras_callback(on_epoch_end=keep_best_weights, on_train_end=restore_best_weights)
def fastnlp_best(learn):
    return fastnlp.LoadBestModelCallback('valid_loss#valid_loss', larger_better=False).as_callback()
def fastnlp_schedule(learn):
    scheduler = torch.optim.lr_scheduler.LambdaLR(learn.create_opt().opt, lambda i: 1/(1+i))
    return fastnlp.LRSchedCallback(scheduler).as_callback()

@pytest.mark.parametrize('make', [keras_best, fastnlp_best, fastnlp_schedule])
def test_a_resumed_run_has_what_the_callback_keeps(make, tmp_path):
    "The validation loss grows after the first epoch, so the best weights are from before the interruption"
    def worsen(self):
        if not self.training: self.learn.loss = self.loss+100*self.epoch
    def stop(self):
        if self.epoch==2 and self.training: raise KeyboardInterrupt
    def train(folder, *cbs):
        learn = learner(path=tmp_path/folder)
        learn.add_cb(make(learn))
        learn.fit(3, cbs=[CheckpointCallback('1ep'), Callback(after_loss=worsen), *cbs], resume='auto')
        return weights(learn)
    whole = train('whole')
    with pytest.raises(KeyboardInterrupt): train('cut', Callback(before_step=stop))
    assert torch.equal(train('cut'), whole)
