"""Common mistakes, one row each: a function that makes the mistake, the type of the error, and words of its message. A
Learner works afterwards. Each mistake is reported before or at the first batch."""
import os, pickle, random, warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np, pytest, torch
from sklearn.metrics import f1_score
from torch import nn
from torch.nn import functional as F
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.utils.data import DataLoader, Dataset, TensorDataset
from learnkit.measure.finite import NonFiniteLoss
from learnkit.loop.events import *
from learnkit.loop.callback import *
from learnkit.loop.dispatcher import *
from learnkit.learner.results import *
from learnkit.learner.learner import *
from learnkit.learner.predict import *
from learnkit.processes.shard import *
from learnkit.callbacks.intervals import Every
from learnkit.observe.files import CSVLogger
from learnkit.callbacks.gradients import GradientClip
from learnkit.callbacks.lr_find import *
from learnkit.callbacks.schedules import TorchScheduler
import learnkit.callbacks.handlers, learnkit.learner.predict, learnkit.learner.save
from learnkit.learner.bars import ProgressCallback
from learnkit.data.loaders import DataLoaders
from learnkit.learner.learner import Learner
from learnkit.measure.losses import *
from learnkit.measure.metric import *
from learnkit.measure.recorder import *
from learnkit.measure.accum import *
from learnkit.measure.metrics import *
from learnkit.measure.accum import *
from learnkit.measure.adapters import *
from toys import Reg, SGD, at, batches, learner, model, throw, weights

ROWS = []
def bad(exc, *words):
    "Add a row: the function makes the mistake, in the folder `c.path`; the Learner in `c.learn` must train afterwards"
    def _f(f): ROWS.append(pytest.param(f, exc, words, id=f.__name__)); return f
    return _f

def message(e): return '\n'.join([str(e), *getattr(e, '__notes__', [])])

x,y = torch.randn(8,4),torch.randn(8,1)
labels = torch.tensor([0,1,2,0,1,2,0,1])
def cls(n=3): return nn.Linear(4,n)
def on(xs, ys, loss, m=None, **kw): return Learner(DataLoaders([(xs,ys)]*2, [(xs,ys)]), m or cls(), loss, SGD, lr=.01, **kw)
def fixed(c, learn, **attrs):
    "Register `learn` and the attributes that repair it after the mistake"
    c.learn,c.fix = learn,attrs
    return learn
def on_dl(dl, m=None): return Learner((dl, batches(1)), m or cls(1), nn.MSELoss(), SGD, lr=.01)
good_dls = lambda: DataLoaders(batches(2), batches(1))

# making a Learner
@bad(TypeError, "'1e-3'", 'float(…)')
def rate_is_text(c): learner().fit(1, lr='1e-3')
@bad(ValueError, '20 samples', 'batch_size=20', 'drop_last=False')
def only_batch_is_dropped(c): on_dl(DataLoader(TensorDataset(torch.randn(20, 4), torch.randn(20, 1)), 32, drop_last=True)).fit(1)
@bad(TypeError, "`(batch['x'], batch['label'])`", 'unexpected keyword')
def dict_for_a_sequential(c): on_dl([dict(x=x, label=y)], nn.Sequential(cls(1))).fit(1)
@bad(NonFiniteLoss, 'sample 5 of the training data has nan or inf')
def nan_in_memory(c):
    broken = x.clone()
    broken[5,2] = float('nan')
    on_dl(DataLoader(TensorDataset(broken, y), 4)).fit(1)
class BrokenDataset(torch.utils.data.Dataset):
    "Samples of a user's own class, one of which has a NaN in its second input"
    def __len__(self): return 8
    def __getitem__(self, i): return x[i],(x[i]*float('nan') if i>=4 else x[i]),y[i]
class TwoInputs(nn.Module):
    def __init__(self): super().__init__(); self.l = cls(1)
    def forward(self, a, b): return self.l(a+b)
@bad(NonFiniteLoss, 'the input `xb[1]` of the last batch has nan or inf')
def nan_in_the_second_input(c): on_dl(DataLoader(BrokenDataset(), 4), TwoInputs()).fit(1)
@bad(NonFiniteLoss, "the input `xb[0]['second']` of the last batch has nan or inf")
def nan_in_an_input_by_name(c):
    class M(TwoInputs):
        def forward(self, first, second): return super().forward(first, second)
    on_dl([dict(first=x, second=x*float('nan'), label=y)], M()).fit(1)
@bad(NonFiniteLoss, 'the target `yb[0]` of the last batch has nan or inf')
def nan_in_the_targets(c): on_dl([(x, y*float('inf'))]).fit(1)
@bad(TypeError, 'The targets are text', '`classes.index(label)`')
def targets_are_text(c): Learner([[(x, ('cat',)*8)]], cls(), nn.CrossEntropyLoss()).fit(1)
@bad(TypeError, '`nn.LSTM`', 'the first element')
def lstm_in_a_sequential(c): on_dl([(x, y)], nn.Sequential(nn.LSTM(4, 3), nn.Linear(3, 1))).fit(1)
@bad(TypeError, 'this is a str', 'write a `Dataset` that reads the file')
def data_is_a_path(c): Learner('data.csv', cls(1), nn.MSELoss())
@bad(ValueError, 'no validation data', '`(train_dl, valid_dl)`')
def validation_of_nothing(c): Learner([[(x, y)]], cls(1), nn.MSELoss()).validate()
@bad(TypeError, 'write `torch.tensor(…)`')
def sample_is_a_list_of_numbers(c): on_dl([(x, y)]).predict([1., 2., 3., 4.])
@bad(TypeError, 'after_all', 'if it is a helper, give it another name')
def helper_named_like_an_event(c):
    class C(Callback):
        def after_all(self): pass
@bad(TypeError, 'MSELoss', 'instance', 'MSELoss()')
def loss_is_a_class(c): learner(loss_func=nn.MSELoss)
@bad(TypeError, 'loss_func', 'str', 'function')
def loss_is_a_name(c): learner(loss_func='mse')
@bad(TypeError, 'loss_func', 'Tensor', 'function')
def loss_is_a_value(c): learner(loss_func=F.mse_loss(y, y))
@bad(ValueError, 'no loss', 'loss_func=')
def loss_is_missing(c): fixed(c, learner(loss_func=None), loss_func=F.mse_loss).fit(1)
@bad(TypeError, 'model', 'Linear', 'instance')
def model_is_a_class(c): learner(model=nn.Linear).fit(1)
@bad(TypeError, 'model must be an nn.Module', 'NoneType')
def model_is_none(c): Learner(good_dls(), None, F.mse_loss)
@bad(TypeError, 'nn.Module', 'function')
def model_is_a_function(c): learner(model=lambda x: x.mean(1, keepdim=True)).fit(1)
@bad(TypeError, 'model must be an nn.Module', 'generator')
def model_is_its_parameters(c): Learner(good_dls(), Reg().parameters(), F.mse_loss)
@bad(TypeError, 'PipelineStage', 'torch.distributed.pipelining', '`step`', 'torchtitan')
def model_is_a_stage_of_a_pipeline(c): Learner(good_dls(), PipelineStage.__new__(PipelineStage), F.mse_loss)
@bad(TypeError, 'ScheduleGPipe', 'torch.distributed.pipelining', '`step`', 'torchtitan')
def model_is_the_schedule_of_a_pipeline(c): Learner(good_dls(), ScheduleGPipe.__new__(ScheduleGPipe), F.mse_loss)
@bad(TypeError, 'model', 'DataLoaders')
def model_and_data_are_swapped(c): Learner(Reg(), good_dls(), F.mse_loss)
@bad(TypeError, 'dataset', 'from_dsets')
def data_is_a_dataset(c): Learner(TensorDataset(x,y), Reg(), F.mse_loss)
@bad(TypeError, 'dataset', 'from_dsets')
def data_are_datasets(c): Learner((TensorDataset(x,y), TensorDataset(x,y)), Reg(), F.mse_loss)
@bad(TypeError, 'Tensor', 'from_tensors')
def data_are_tensors(c): Learner((x,y), Reg(), F.mse_loss)
@bad(TypeError, 'ndarray', 'from_tensors')
def data_are_arrays(c): DataLoaders(x.numpy())
@bad(TypeError, 'loader', 'NoneType')
def data_is_none(c): Learner(None, Reg(), F.mse_loss)
@bad(TypeError, 'training', 'DataLoaders(train, valid)')
def data_is_nothing(c): DataLoaders()
@bad(TypeError, 'generator', 'once', 'lambda')
def data_is_a_generator(c): DataLoaders((b for b in batches(3)))
@bad(TypeError, 'metric', "'accuracy'", 'function')
def metric_is_a_name(c): learner(metrics='accuracy')
@bad(TypeError, 'metric', '3')
def metric_is_a_number(c): learner(metrics=[mae, 3])
@bad(TypeError, 'roc_auc_score', 'skm_to_learnkit')
def metric_wants_scores(c): from sklearn.metrics import roc_auc_score; learner(metrics=roc_auc_score)
@bad(ValueError, "'mae'", 'AvgMetric', 'name=')
def metric_twice(c): fixed(c, learner(metrics=[mae, mae]), metrics=[mae]).fit(1)
@bad(ValueError, "'time'", 'name=')
def metric_is_called_like_a_column(c):
    def time(p, t): return (p-t).mean()
    fixed(c, learner(metrics=time), metrics=[]).fit(1)
@bad(TypeError, 'callback', 'early', 'Callback')
def callback_is_a_name(c): learner(cbs='early')
@bad(TypeError, 'callback', 'Callback(before_fit=f)')
def callback_is_a_function(c): fixed(c, learner()).fit(1, cbs=lambda: 0)
@bad(TypeError, 'callback', 'Reg')
def callback_is_a_module(c): learner(cbs=Reg())
@bad(TypeError, 'callback', 'int')
def callback_is_another_class(c): learner(cbs=int)
@bad(TypeError, 'optimizer', "'adam'", 'torch.optim')
def optimizer_is_a_name(c): fixed(c, learner(opt_func='adam'), opt_func=SGD).fit(1)
@bad(ValueError, 'optimizer', 'model', 'class')
def optimizer_of_another_model(c): fixed(c, learner(opt_func=SGD(Reg().parameters(), lr=.1)), opt_func=SGD).fit(1)
@bad(TypeError, 'NoneType', 'return')
def optimizer_function_without_return(c):
    def make(params, **kw): SGD(params, **kw)
    fixed(c, learner(opt_func=make), opt_func=SGD).fit(1)
@bad(ValueError, 'no parameters to train', 'splitter')
def splitter_lets_nothing_through(c): fixed(c, learner(splitter=lambda m: []), splitter=lambda m: list(m.parameters())).fit(1)
@bad(TypeError, 'parameters')
def splitter_gives_modules(c): fixed(c, learner(splitter=lambda m: [m]), splitter=lambda m: list(m.parameters())).fit(1)
@bad(ValueError, 'no parameters to train', 'frozen', 'requires_grad_()')
def everything_is_frozen(c):
    m = model()
    for p in m.parameters(): p.requires_grad_(False)
    learner(model=m).fit(1)
@bad(TypeError, 'needs some', 'Clip(most=…)')
def callback_class_needs_arguments(c):
    class Clip(GradientClip):
        def __init__(self, most, norm=2.): super().__init__(most)
    learner(cbs=Clip)
@bad(ValueError, 'n_inp', '1 or more')
def n_inp_is_zero(c): DataLoaders(batches(2), n_inp=0)
@bad(RuntimeError, 'are called `cuda`', '`mps`')
def device_is_unknown(c): DataLoaders(batches(2), device='gpu')
@bad((RuntimeError, ValueError), 'cuda', 'available')
def device_is_not_here(c):
    if torch.cuda.is_available(): raise ValueError('cuda is available')
    learner(dls=DataLoaders(batches(2), device='cuda')).fit(1)

# datasets
@bad(ValueError, 'dataset is empty')
def dataset_is_empty(c): DataLoaders.from_dsets([])
@bad(TypeError, 'dataset', 'str')
def dataset_is_a_path(c): DataLoaders.from_dsets('/data/train')
@bad(TypeError, 'DataLoader', 'DataLoaders(train, valid)')
def dataset_is_a_loader(c): DataLoaders.from_dsets(DataLoader(TensorDataset(x,y)))
@bad(ValueError, 'batch size', '0')
def batch_size_is_zero(c): DataLoaders.from_dsets(TensorDataset(x,y), bs=0)
@bad(ValueError, 'batch size', "'8'")
def batch_size_is_text(c): DataLoaders.from_dsets(TensorDataset(x,y), bs='8')
@bad(ValueError, 'valid_pct', 'less than 1', '20')
def valid_pct_is_a_percentage(c): DataLoaders.from_tensors(x, y, valid_pct=20)
@bad(ValueError, 'same length', '8', '5')
def arrays_differ_in_length(c): DataLoaders.from_tensors(x, y[:5])
@bad(TypeError, 'one by one', 'from_tensors(x, y)')
def arrays_in_a_list(c): DataLoaders.from_tensors([x, y])
@bad(TypeError, 'numbers', 'Array 1')
def arrays_of_text(c): DataLoaders.from_tensors(x, np.array(['a','b']*4))
@bad(TypeError, 'batch_size', '`bs')
def batch_size_under_torchs_name(c): DataLoaders.from_tensors(x, y, batch_size=4)

# batches
@bad(ValueError, 'training', 'no batch', 'empty')
def loader_is_empty(c): learner(dls=DataLoaders([])).fit(1)
@bad(ValueError, 'validation', 'no batch', 'empty')
def valid_loader_is_empty(c): fixed(c, learner(dls=DataLoaders(batches(2), [])), dls=good_dls()).fit(1)
@bad(ValueError, 'no batch', 'drop_last')
def loader_drops_its_only_batch(c): learner(dls=DataLoaders(DataLoader(TensorDataset(x,y), batch_size=9, drop_last=True))).fit(1)
@bad(ValueError, 'exhausted', 'list')
def loader_can_be_read_once(c):
    class Once:
        def __init__(self): self.it = iter(batches(3))
        def __iter__(self): return self.it
    fixed(c, learner(dls=DataLoaders(Once())), dls=good_dls()).fit(2)
@bad(TypeError, 'str', 'tensor')
def batch_is_text(c): fixed(c, learner(dls=DataLoaders(['ab','cd'])), dls=good_dls()).fit(1)
@bad(RuntimeError, 'lists of different lengths', 'collate_fn')
def lists_of_different_lengths(c):
    items = [dict(ids=[1]*n, y=0) for n in (3,4)]
    fixed(c, learner(dls=DataLoaders(DataLoader(items, batch_size=2))), dls=good_dls()).fit(1)

@bad(TypeError, 'string', 'collate_fn')
def batch_of_text(c): fixed(c, learner(dls=DataLoaders(DataLoader([('a',1.),('b',2.)], batch_size=2))), dls=good_dls()).fit(1)
@bad(TypeError, 'NoneType', 'tensor')
def batch_is_none(c): fixed(c, learner(dls=DataLoaders([None, None])), dls=good_dls()).fit(1)
@bad(ValueError, 'batch', '0 elements')
def batch_is_empty(c): fixed(c, learner(dls=DataLoaders([(), ()])), dls=good_dls()).fit(1)
@bad(TypeError, 'batch', 'ndarray', 'tensor')
def batch_of_arrays(c): fixed(c, learner(dls=DataLoaders([(x.numpy(), y.numpy())])), dls=good_dls()).fit(1)
@bad(ValueError, '3 inputs', 'n_inp', '2 elements')
def n_inp_is_too_large(c): learner(dls=DataLoaders(batches(2), n_inp=3)).fit(1)
@bad(UserWarning, 'no target', '(input, target)')
def batch_without_target(c): learner(dls=DataLoaders([(x,)], [(x,)])).fit(1)
@bad(UserWarning, 'no target', '`label')
def mapping_without_target(c):
    class M(Reg):
        def forward(self, x): return super().forward(x)
    learner(model=M(), dls=DataLoaders([dict(x=x)])).fit(1)
@bad(TypeError, 'forward', 'float32[4, 4], float32[4, 4]', 'n_inp')
def more_inputs_than_the_model_takes(c): fixed(c, learner(dls=DataLoaders([(b[0],b[0],b[1]) for b in batches(2)])), dls=good_dls()).fit(1)
@bad(TypeError, 'forward', 'nope')
def mapping_with_other_names(c): fixed(c, learner(dls=DataLoaders([dict(nope=x, y=y)])), dls=good_dls()).fit(1)
@bad(RuntimeError, '4x5', 'float32[4, 5]')
def inputs_of_another_size(c): fixed(c, learner(dls=DataLoaders([(torch.randn(4,5), torch.randn(4,1))])), dls=good_dls()).fit(1)
@bad(RuntimeError, 'float64', 'float()')
def inputs_in_double_precision(c): fixed(c, learner(dls=DataLoaders([(x.double(), y)])), dls=good_dls()).fit(1)
@bad(RuntimeError, 'int64', 'float()')
def inputs_are_integers(c): fixed(c, learner(dls=DataLoaders([(labels[:,None].repeat(1,4), y)])), dls=good_dls()).fit(1)
@bad(ZeroDivisionError, 'division')
def dataset_that_fails(c):
    class Fails(Dataset):
        def __len__(self): return 8
        def __getitem__(self, i): return 1/0
    fixed(c, learner(dls=DataLoaders(DataLoader(Fails(), batch_size=4))), dls=good_dls()).fit(1)

def data_of(ds, bs=4, **kw): return learner(dls=DataLoaders(DataLoader(ds, bs, **kw)))
class Rows(Dataset):
    "Eight rows, the fourth of which is `odd`; its `__len__` returns `n`"
    def __init__(self, odd=(x[0],y[0]), n=8): self.odd,self.n = odd,n
    def __len__(self): return self.n
    def __getitem__(self, i): return self.odd if i==3 else (x[i],y[i])
@bad(IndexError, 'sample 8 of the dataset Rows, epoch 0, batch 2', '`__len__` returns 12')
def dataset_promises_too_much(c): fixed(c, data_of(Rows(n=12)), dls=good_dls()).fit(1)
@bad(TypeError, 'returned None', 'for sample 3', 'leave such samples out')
def dataset_gives_none(c): fixed(c, data_of(Rows(None)), dls=good_dls()).fit(1)
@bad(TypeError, 'object', 'ToTensor()', '`collate_fn`')
def dataset_gives_objects(c): fixed(c, data_of([object()]*4), dls=good_dls()).fit(1)
@bad(ZeroDivisionError, '`broken`', 'samples 0 to 3, epoch 0, batch 0')
def collate_fn_fails(c):
    def broken(items): 1/0
    fixed(c, data_of(Rows(), collate_fn=broken), dls=good_dls()).fit(1)
@bad(RuntimeError, '`2`, Linear(in_features=100', 'float32[8, 144]', 'nn.Linear(144, 2)')
def linear_of_another_size(c):
    on(torch.rand(8,3,8,8), labels%2, nn.CrossEntropyLoss(), nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(100, 2))).fit(1)
@bad(RuntimeError, 'all 64 numbers of a sample', '`nn.Flatten()`')
def images_for_a_linear_layer(c): on(torch.rand(8,8,8), labels, nn.CrossEntropyLoss(), nn.Linear(64, 3)).fit(1)
@bad(RuntimeError, '`0`, Conv2d', 'x.permute(0, 3, 1, 2)')
def images_with_channels_last(c): on(torch.rand(8,8,8,3), labels, nn.CrossEntropyLoss(), nn.Sequential(nn.Conv2d(3, 3, 8), nn.Flatten())).fit(1)
@bad(RuntimeError, 'uint8[8, 3, 8, 8]', 'its weights are float32', 'x.float()')
def images_of_bytes(c): on(torch.ones(8,3,8,8).byte(), labels, nn.CrossEntropyLoss(), nn.Sequential(nn.Conv2d(3, 3, 8), nn.Flatten())).fit(1)
@bad(RuntimeError, 'float32[8, 4]', 'its weights are bfloat16', 'write `x.to(torch.bfloat16)`', '`learn.to_bf16()`')
def model_in_bfloat16(c): on(x, y, F.mse_loss, Reg().bfloat16()).fit(1)
@bad(RuntimeError, 'int64[8, 4]', 'its weights are float64', 'write `x.to(torch.float64)` in the dataset')
def integers_for_a_model_in_float64(c): on(x.long(), y, F.mse_loss, Reg().double()).fit(1)
class Keeps(Reg):
    "Keeps its hidden state from batch to batch, with the graph"
    h = 0
    def forward(self, x): self.h = self.h + super().forward(x); return self.h
@bad(RuntimeError, 'an earlier batch', '`h.detach()`')
def hidden_state_with_its_graph(c): on(x, y, F.mse_loss, Keeps()).fit(1)
@bad(RuntimeError, 'changed in place', 'x = x + y', 'detect_anomaly')
def changed_in_place(c): on(x, y, F.mse_loss, Outputs(lambda o: o.sigmoid().add_(1))).fit(1)
@bad(UserWarning, 'the validation loss is nan in epoch 0', 'inputs and targets of the validation set')
def validation_data_have_nan(c): learner(dls=DataLoaders(batches(2), [(x*float('nan'), y)])).fit(1)
@bad(ValueError, 'no parameters to train', '`nn.ModuleList`')
def layers_in_a_list(c):
    class M(nn.Module):
        def __init__(self): super().__init__(); self.layers = [nn.Linear(4, 1)]
        def forward(self, x): return self.layers[0](x)
    learner(model=M()).fit(1)

# targets and losses
@bad(ValueError, 'MSELoss', 'class indices, of 3 classes', 'nn.CrossEntropyLoss()')
def mse_of_classes(c): fixed(c, on(x, labels, nn.MSELoss()), loss_func=nn.CrossEntropyLoss()).fit(1)
@bad(ValueError, 'float32[8, 1]', 'int64[8]', 'y.float()[:,None]')
def mse_of_whole_numbers(c): on(x, labels, nn.MSELoss(), Reg()).fit(1)
@bad(ValueError, 'float32[8, 3]', 'float32[8, 4]', 'outputs, 3')
def mse_of_other_outputs(c): on(x, x, nn.MSELoss()).fit(1)
@bad(NotImplementedError, 'loss(pred, targ)', '(pred, y)')
def loss_with_swapped_arguments(c):
    fixed(c, on(x, labels, lambda y, pred: F.cross_entropy(pred, y)), loss_func=F.cross_entropy).fit(1)
@bad(RuntimeError, 'buffer', '.to(x.device)')
def loss_weight_on_another_device(c):
    w = torch.ones(3, device='meta')
    on(x, labels, lambda pred, y: F.cross_entropy(pred, y, weight=w)).fit(1)
@bad(UserWarning, 'training loss is', 'a million times', 'lower learning rate')
def rate_is_far_too_high(c):
    alike = torch.ones(8, 4)   # with different labels, so that no step fits them all and the loss is not 0
    Learner(DataLoaders([(alike, labels)]*8, [(alike, labels)]), cls(), F.cross_entropy, lr=1e12).fit(2)
@bad(ValueError, 'MSELoss', 'float32[8, 1]', 'float32[8]', 'y[:,None]')
def mse_would_broadcast(c): fixed(c, on(x, y[:,0], nn.MSELoss(), Reg()), dls=good_dls()).fit(1)
@bad(ValueError, 'mse_loss', 'y[:,None]')
def function_would_broadcast(c): on(x, y[:,0], F.mse_loss, Reg()).fit(1)
@bad(ValueError, 'float32[8, 1]', 'float32[8]')
def partial_would_broadcast(c): on(x, y[:,0], partial(F.l1_loss, reduction='sum'), Reg()).fit(1)
@bad(TypeError, 'CrossEntropyLoss', 'float', 'y.long()')
def classes_are_floats(c): on(x, labels.float(), nn.CrossEntropyLoss()).fit(1)
@bad(ValueError, 'one-hot', 'argmax')
def classes_are_one_hot(c): on(x, F.one_hot(labels, 3), nn.CrossEntropyLoss()).fit(1)
@bad(ValueError, 'squeeze')
def classes_have_an_axis_too_many(c): on(x, labels[:,None], nn.CrossEntropyLoss()).fit(1)
@bad(ValueError, 'one output', 'BCEWithLogitsLossFlat')
def one_output_for_classes(c): on(x, labels, nn.CrossEntropyLoss(), cls(1)).fit(1)
@bad(IndexError, '2 classes', '0...1', 'from 0 to 2')
def a_class_too_many(c): on(x, labels, nn.CrossEntropyLoss(), cls(2)).fit(1)
@bad(IndexError, '3 classes', 'from 1 to 3', 'y-1')
def classes_count_from_one(c): on(x, labels+1, F.cross_entropy).fit(1)
@bad(IndexError, '3 classes', 'y-1')
def classes_count_from_one_flat(c): on(x, labels+1, CrossEntropyLossFlat()).fit(1)
@bad(RuntimeError, 'int32', 'y.long()')
def classes_are_int32(c): on(x, labels.int(), nn.CrossEntropyLoss()).fit(1)
@bad((RuntimeError, TypeError), 'BCEWithLogits|binary_cross_entropy', 'int64', 'float()')
def yes_and_no_are_integers(c): on(x, (labels>0).long()[:,None], nn.BCEWithLogitsLoss(), cls(1)).fit(1)
@bad(ValueError, 'float32[8, 1]', 'float32[8]')
def yes_and_no_would_broadcast(c): on(x, (labels>0).float(), nn.BCEWithLogitsLoss(), cls(1)).fit(1)
@bad(NonFiniteLoss, 'nan|NaN', 'batch 0', 'target', 'SkipNaN')
def targets_are_nan(c): on(x, y*float('nan'), nn.MSELoss(), Reg()).fit(1)
@bad(NonFiniteLoss, 'nan|inf', 'epoch 0', 'lower learning rate')
def training_diverges(c): learner(n=60, lr=50.).fit(1)
class Outputs(Reg):
    def __init__(self, f): super().__init__(); self.f = f
    def forward(self, x): return self.f(super().forward(x))
@bad((TypeError, AttributeError), '(float32[8, 1], float32[8, 1])|tuple', 'pred[0]')
def model_gives_a_tuple(c): on(x, y, F.mse_loss, Outputs(lambda o: (o,o))).fit(1)
@bad((TypeError, AttributeError), 'None', 'return')
def model_returns_nothing(c): on(x, y, F.mse_loss, Outputs(lambda o: None)).fit(1)
@bad((TypeError, ValueError), 'loss', 'one number|scalar', "float32[8, 1]", 'mean')
def loss_is_not_reduced(c): fixed(c, on(x, y, nn.MSELoss(reduction='none'), Reg()), loss_func=F.mse_loss).fit(1)
@bad(TypeError, 'loss', 'tensor', 'float')
def loss_gives_a_float(c): fixed(c, on(x, y, lambda p,t: F.mse_loss(p, t).item(), Reg()), loss_func=F.mse_loss).fit(1)
@bad(TypeError, 'loss', 'tensor', 'None')
def loss_returns_nothing(c):
    def loss(p, t): F.mse_loss(p, t)
    fixed(c, on(x, y, loss, Reg()), loss_func=F.mse_loss).fit(1)
@bad((RuntimeError, ValueError), 'loss', 'gradient|grad', 'detach')
def loss_is_detached(c): fixed(c, on(x, y, lambda p,t: F.mse_loss(p.detach(), t), Reg()), loss_func=F.mse_loss).fit(1)
@bad(TypeError, 'loss function was called with', 'float32[8, 1], float32[8, 1]')
def loss_takes_one_target(c): fixed(c, learner(dls=DataLoaders([(x,y,y)], n_inp=1)), dls=good_dls()).fit(1)
class Weighted(Reg):
    "Has a tensor that is neither parameter nor buffer, so that it stays on its device"
    def __init__(self): super().__init__(); self.w = torch.ones(4, device='meta')
    def forward(self, x): return super().forward(x*self.w)
@bad(RuntimeError, 'device', 'meta', 'cpu', 'float32[8, 4]')
def model_on_two_devices(c): on(x, y, F.mse_loss, Weighted()).fit(1)
@bad(RuntimeError, 'device', 'meta', 'cpu')
def loss_on_another_device(c): w = torch.ones(3, device='meta'); on(x, labels, lambda p,t: F.cross_entropy(p, t, weight=w)).fit(1)

# fitting
@bad(ValueError, 'n_epoch', 'integer', '1.5')
def n_epoch_is_a_fraction(c): fixed(c, learner()).fit(1.5)
@bad(ValueError, 'n_epoch', '0 or more', '-1')
def n_epoch_is_negative(c): fixed(c, learner()).fit(-1)
@bad((TypeError, ValueError), 'n_epoch', 'integer', "'3'")
def n_epoch_is_text(c): fixed(c, learner()).fit('3')
@bad((TypeError, ValueError), 'n_epoch', 'integer', 'None')
def n_epoch_is_none(c): fixed(c, learner()).fit(None)
@bad(ValueError, 'start_epoch', '3', 'n_epoch')
def start_epoch_is_too_late(c): fixed(c, learner()).fit(2, start_epoch=3)
@bad(ValueError, 'start_epoch', '-1')
def start_epoch_is_negative(c): fixed(c, learner()).fit(2, start_epoch=-1)
@bad(ValueError, 'learning rate|lr', '-0.1')
def lr_is_negative(c): fixed(c, learner()).fit(1, lr=-.1)
@bad(ValueError, 'learning rate|lr', '-0.1')
def lr_is_negative_from_the_start(c): learner(lr=-.1).fit(1)
@bad(TypeError, 'number', "'0.1'")
def lr_is_text(c): fixed(c, learner()).fit(1, lr='0.1')
@bad(ValueError, '3 values for 1 parameter groups', 'one number')
def lr_for_more_groups(c): fixed(c, learner()).fit(1, lr=[.1,.2,.3])
@bad(ValueError, 'slice(first, last)')
def lr_is_an_empty_slice(c): fixed(c, learner()).fit(1, lr=slice(None))
@bad(ValueError, 'slice', 'above zero')
def lr_slice_from_zero(c): fixed(c, learner(model=nn.Sequential(nn.Linear(4,4), nn.Linear(4,1)), splitter=lambda m: [list(o.parameters()) for o in m])).fit(1, lr=slice(0, .1))
@bad(ValueError, 'lr|learning rate', 'nan')
def lr_is_nan(c): fixed(c, learner()).fit(1, lr=float('nan'))
@bad(TypeError, 'number', "'x'")
def wd_is_text(c): fixed(c, learner()).fit(1, wd='x')
@bad(ValueError, 'wd|decay', '-1')
def wd_is_negative(c): fixed(c, learner()).fit(1, wd=-1.)
@bad(KeyError, "no hyperparameter 'lrr'", "Did you mean 'lr'")
def hyper_is_unknown(c): l = fixed(c, learner()); l.create_opt(); l.opt.set_hyper('lrr', .1)
@bad(KeyError, "'mom'", 'lr')
def hyper_is_not_of_this_optimizer(c): l = fixed(c, learner(opt_func=torch.optim.Adagrad)); l.create_opt(); l.opt.set_hyper('mom', .1)
@bad(TypeError, 'number', "'fast'")
def hyper_is_text(c): l = fixed(c, learner()); l.create_opt(); l.opt.hypers[0]['lr'] = 'fast'
@bad(ValueError, 'freeze_to(-5)', 'groups')
def freeze_too_much(c): fixed(c, learner()).freeze_to(-5)
@bad(UserWarning, 'one group', 'splitter')
def freeze_one_group(c): fixed(c, learner()).freeze()
@bad(RuntimeError, 'inside a running', 'afterwards')
def fit_in_a_fit(c): fixed(c, learner(cbs=at('after_batch', lambda s: s.learn.fit(1))), cbs=()).fit(1)
@bad(RuntimeError, 'with learn', 'running already')
def with_in_with(c):
    l = fixed(c, learner())
    with l:
        with l: pass

# callbacks and events
@bad(ValueError, 'no event `after_bacth`', '`after_batch`')
def event_is_unknown(c): fixed(c, learner())('after_bacth')
@bad(AttributeError, 'no event `before_epcoh`', '`before_epoch`')
def event_attribute_is_unknown(c): event.before_epcoh
@bad(ValueError, 'identifier', "'before sanity'")
def event_with_a_space(c): event.register('before sanity')
@bad(TypeError, 'A.after_bach', '`after_batch`', 'event.register')
def handler_is_misspelled(c):
    class A(Callback):
        def after_bach(self): pass
@bad(TypeError, 'before_bach', '`before_batch`')
def function_for_no_event(c): Callback(before_bach=print)
@bad(ValueError, 'learn.opt', 'MyOptCallback')
def callback_hides_an_attribute(c): fixed(c, learner()).add_cb(type('OptCallback', (Callback,), {}))
@bad(ValueError, 'already', 'new instance')
def callback_twice(c): cb = Callback(); fixed(c, learner(cbs=cb)).add_cb(cb)
@bad(TypeError, 'before_fit', "'learn'", 'A')
def handler_takes_too_much(c):
    class A(Callback):
        def before_fit(self, learn): pass
    fixed(c, learner(cbs=A), cbs=()).fit(1)
@bad(AttributeError, 'A', 'epoch', 'no Learner yet')
def callback_without_learner(c):
    class A(Callback): pass
    A().epoch
@bad(AttributeError, 'neither the Learner nor its model', 'reocrder')
def attribute_is_unknown(c): fixed(c, learner()).reocrder
@bad(RuntimeError, 'CancelBatch', 'no `batch` was open', 'before_batch')
def cancel_without_a_scope(c): fixed(c, learner(cbs=at('before_epoch', throw(CancelBatch()))), cbs=()).fit(1)
@bad(ValueError, 'kind', "'bar'", 'terminal')
def progress_of_no_kind(c): ProgressCallback('bar')
@bad(FileNotFoundError, 'history.csv', 'fit')
def log_is_not_there(c): CSVLogger(fname=c.path/'history.csv').read_log()
@bad(ValueError, 'nothing is recorded', 'learn.fit')
def plot_before_fit(c): fixed(c, learner()).recorder.plot_loss()
@bad(KeyError, 'vaild_loss', 'valid_loss')
def column_is_unknown(c): l = fixed(c, learner()); l.fit(1); l.recorder.history['vaild_loss']

# metrics
@bad(ValueError, '[4, 1] and [3, 1]', 'metric `far`', 'float32[4, 1]')
def metric_of_other_shapes(c):
    def far(p, t): return mae(p, t[:3])
    fixed(c, learner(metrics=far), metrics=[]).fit(1)
@bad(IndexError, 'A metric is called as `metric(pred, targ)`', 'write `(pred, targ)`')
def metric_with_swapped_arguments(c):
    def top(targ, pred): return (pred.argmax(1)==targ).float().mean()
    fixed(c, on(x, labels, nn.CrossEntropyLoss(), metrics=top), metrics=[]).fit(1)
@bad(RuntimeError, 'one value for each class', '`pred.argmax(1)`')
def metric_without_argmax(c):
    def top(pred, targ): return (pred==targ).float().mean()
    fixed(c, on(x, labels, nn.CrossEntropyLoss(), metrics=top), metrics=[]).fit(1)
@bad(ValueError, 'far', 'one number', 'float32[4, 1]', '.mean()')
def metric_gives_a_vector(c):
    def far(p, t): return (p-t).abs()
    fixed(c, learner(metrics=far), metrics=[]).fit(1)
@bad(TypeError, 'nothing', 'NoneType')
def metric_returns_nothing(c):
    def nothing(p, t): pass
    fixed(c, learner(metrics=nothing), metrics=[]).fit(1)
@bad(TypeError, 'one', 'metric', 'float32[4, 1]|(4, 1)')
def metric_takes_one_argument(c):
    def one(p): return p.mean()
    fixed(c, learner(metrics=one), metrics=[]).fit(1)
@bad(NotImplementedError, 'M', 'accumulate')
def metric_is_half_done(c): fixed(c, learner(metrics=type('M', (Metric,), dict(value=1.))), metrics=[]).fit(1)
@bad(ValueError, 'accuracy', 'float32[4, 1]')
def accuracy_of_numbers(c): fixed(c, learner(metrics=accuracy, dls=DataLoaders(batches(1), [(x[:4], torch.randn(4,1,1).repeat(1,2,1))]), loss_func=lambda p,t: p.mean()), metrics=[]).fit(1)
@bad(ValueError, 'k', '1 to 3')
def top_5_of_3(c): fixed(c, on(x, labels, nn.CrossEntropyLoss(), metrics=top_k_accuracy), metrics=[]).fit(1)

# inference
@bad(ValueError, 'no validation data', 'dl=', '(train_dl, valid_dl)')
def no_validation_set(c): fixed(c, learner(nv=0)).get_preds()
@bad(ValueError, 'no validation data', 'dl=', '(train_dl, valid_dl)')
def nothing_to_validate(c): fixed(c, learner(nv=0)).validate()
@bad(ValueError, 'dl=|loader')
def valid_is_none(c): fixed(c, learner(dls=DataLoaders(batches(2), None))).get_preds()
@bad(ValueError, 'loader with index 7', '2')
def loader_number_seven(c): fixed(c, learner()).validate(7)
@bad(ValueError, 'loss function', 'loss_func=')
def losses_without_loss_function(c): fixed(c, learner(loss_func=None), loss_func=F.mse_loss).get_preds(with_loss=True)
@bad(TypeError, 'one loss per sample', "reduction='mean'")
def losses_that_cannot_be_told_apart(c): fixed(c, learner(loss_func=lambda p,t: (p-t).abs().mean())).get_preds(with_loss=True)
@bad(ValueError, 'with_loss', 'target')
def losses_without_targets(c): fixed(c, learner()).get_preds(dl=[(x,)], with_loss=True)
@bad(TypeError, 'dataset', 'DataLoader')
def predict_a_dataset(c): fixed(c, learner()).get_preds(dl=TensorDataset(x,y))
@bad(TypeError, 'this is a Tensor', '`learn.test_dl(samples)`')
def predict_a_tensor(c): fixed(c, learner()).get_preds(dl=x)
@bad(TypeError, 'dataset', 'DataLoader')
def validate_a_dataset(c): fixed(c, learner()).validate(dl=TensorDataset(x,y))
@bad(TypeError, 'int|iter')
def predict_a_number(c): fixed(c, learner()).get_preds(dl=3)
@bad(ValueError, 'no batch')
def predict_nothing(c): fixed(c, learner()).get_preds(dl=[])
@bad(TypeError, 'does not take the number of a loader', '`get_preds(1)`')
def loader_number_for_a_loader(c): fixed(c, learner()).get_preds(dl=1)
@bad(TypeError, 'one input', 'separate inputs')
def predict_a_list_of_numbers(c): fixed(c, learner()).predict([1.,2.,3.,4.])
@bad(TypeError, 'act', 'function', "'softmax'|str")
def activation_is_a_name(c): fixed(c, learner()).get_preds(act='softmax')
@bad(TypeError, 'with_inputs')
def option_is_misspelled(c): fixed(c, learner()).get_preds(with_inputs=True)
@bad(TypeError, 'string|str')
def predict_text(c): fixed(c, learner()).predict('cat')
@bad(RuntimeError, 'float32[1, 5]')
def predict_another_size(c): fixed(c, learner()).predict(torch.randn(5))

# files
def saved(c, **kw):
    "A Learner whose weights are in `model.pth`, then changed"
    l = c.learn = learner(path=c.path, opt_func=partial(SGD, momentum=.9), **kw)
    l.fit(1); l.save('model'); l.fit(1)
    c.file,c.fix,c.kept = c.path/'models/model.pth',{},weights(l)
    return l

@bad(FileNotFoundError, 'models/modle.pth', '`model.pth`')
def file_is_missing(c): saved(c).load('modle')
@bad(FileNotFoundError, 'the file in the current folder', "own.pth'")
def file_is_in_the_current_folder(c):
    l,old = saved(c),os.getcwd()
    os.chdir(c.path)
    try: torch.save({}, 'own.pth'); l.load('own.pth')
    finally: os.chdir(old)
@bad(FileNotFoundError, 'nothing/here.pth')
def folder_is_missing(c): saved(c).load('nothing/here')
@bad(ValueError, 'damaged|incomplete|not a weight file')
def file_is_empty(c): l = saved(c); c.file.write_bytes(b''); l.load('model')
@bad(ValueError, 'damaged|incomplete|not a weight file')
def file_is_text(c): l = saved(c); c.file.write_text('hello, world'); l.load('model')
@bad(ValueError, 'dictionary', 'list')
def file_holds_a_list(c): l = saved(c); torch.save([1,2], c.file); l.load('model')
@bad(ValueError, 'dictionary|code', 'state_dict')
def file_holds_a_model(c): l = saved(c); torch.save(Reg(), c.file); l.load('model')
@bad(ValueError, 'another model', 'weight', '(1, 4)')
def file_is_of_another_model(c): l = saved(c); torch.save(nn.Linear(5,1).state_dict(), c.file); l.load('model')
@bad(ValueError, 'another model', 'lacks', 'strict=False')
def file_has_other_names(c): l = saved(c); torch.save(dict(weight=l.model.weight.detach(), shift=torch.zeros(1)), c.file); l.load('model')
@bad(ValueError, 'another model', 'lack weight')
def file_has_nothing_that_fits(c): l = saved(c); torch.save(nn.Sequential(Reg()).state_dict(), c.file); l.load('model', strict=False)
@bad(ValueError, 'another model', "has the weights in its entry 'model'", "`learn.model.load_state_dict(torch.load(file)['model'])`")
def file_is_of_a_hand_written_loop(c): l = saved(c); torch.save(dict(model=l.model.state_dict(), optimizer={}, epoch=3), c.file); l.load('model')
@bad(ValueError, 'checkpoint', 'resume=')
def file_is_a_checkpoint(c): l = saved(c); torch.save(l._run_state(1), c.file); l.load('model', strict=False)
@bad(ValueError, 'load_learner')
def file_is_an_export(c): l = saved(c); l.export('exported'); l.load('exported', strict=False)
@bad(FileExistsError, '`learn.save`', '`learn.export` would replace it', 'another name')
def export_over_saved_weights(c): l = saved(c); l.export('model')
@bad(TypeError, 'sparse', '.pth')
def sparse_for_safetensors(c): l = saved(c); l.model.register_buffer('eye', torch.eye(2).to_sparse()); l.save('model.safetensors')
@bad(ValueError, 'pass the path')
def open_file_for_safetensors(c):
    l = saved(c)
    with open(c.file.with_suffix('.safetensors'), 'wb') as f: l.save(f)
@bad(FileNotFoundError, 'known are', 'more')
def file_is_one_of_many(c):
    l = saved(c)
    for i in range(200): (c.file.parent/f'run-{i}.pth').touch()
    l.load('something_else_altogether')
@bad(ValueError, 'another model')
def file_holds_numbers(c): l = saved(c); torch.save(dict(weight=1, bias='x'), c.file); l.load('model')
@bad(ValueError, 'optimizer')
def file_is_of_another_optimizer(c):
    l = saved(c)
    o = learner(opt_func=torch.optim.Adam); o.fit(1)
    torch.save(dict(model=o.model.state_dict(), opt=o.opt.state_dict()), c.file); l.load('model')
@bad(ValueError, 'optimizer')
def file_has_half_an_optimizer(c): l = saved(c); torch.save(dict(model=l.model.state_dict(), opt={}), c.file); l.load('model')
@bad(UserWarning, 'no optimizer state')
def file_has_no_optimizer(c): l = saved(c); torch.save(l.model.state_dict(), c.file); l.load('model')
@bad(TypeError, 'load', 'stict')
def load_option_is_misspelled(c): saved(c).load('model', stict=False)
@bad((IsADirectoryError, FileNotFoundError), 'models/folder.pth', 'is a folder|is a directory')
def file_is_a_folder(c): l = saved(c); (c.path/'models/folder.pth').mkdir(); l.load('folder')
@bad(OSError, 'models')
def folder_is_a_file(c): (c.path/'models').write_text('x'); fixed(c, learner(path=c.path)).save('m')

class Evil:
    "Runs code when it is unpickled"
    def __init__(self, path): self.path = path
    def __reduce__(self): return os.mkdir, (str(self.path),)
@bad(ValueError, 'code', 'never run', 'state_dict')
def file_with_code(c): l = saved(c); torch.save(dict(weight=Evil(c.path/'evil')), c.file); c.never = c.path/'evil'; l.load('model')
@bad(ValueError, 'code|not a weight file')
def pickle_with_code(c): l = saved(c); c.file.write_bytes(pickle.dumps(Evil(c.path/'evil'))); c.never = c.path/'evil'; l.load('model', weights_only=False)
@bad(ValueError, 'code|not a weight file')
def old_format_with_code(c):
    l = saved(c); torch.save(dict(weight=Evil(c.path/'evil')), c.file, _use_new_zipfile_serialization=False); c.never = c.path/'evil'; l.load('model')

def found(word, text):
    "Whether `text` has `word`; `a|b` means either"
    return any(o in text for o in word.split('|'))

# arguments in the wrong place
@bad(TypeError, 'dl=', 'index of a loader')
def loader_for_its_number(c): learner().get_preds(batches(2))
@bad(TypeError, 'dl=', 'DataLoader')
def validate_a_loader(c): learner().validate(DataLoader(TensorDataset(x, y), 4))
@bad(TypeError, 'cbs=')
def callback_for_a_learning_rate(c): learner().fit(1, ProgressCallback())
@bad(ValueError, '0 or more')
def infinite_learning_rate(c): learner().fit(1, float('inf'))
@bad(TypeError, 'first argument is the data')
def model_before_data(c): Learner(Reg(), (batches(2), batches(1)), F.mse_loss)
@bad(TypeError, 'opt_func=SGD')
def optimizer_for_a_loss(c): Learner((batches(2), batches(1)), Reg(), SGD, F.mse_loss)
@bad(TypeError, 'looks like one batch', 'list')
def batches_for_loaders(c): Learner(batches(3), Reg(), F.mse_loss)
@bad(TypeError, 'event first', 'after_batch')
def on_without_an_event(c): learner().on(lambda learn: None)
@bad(TypeError, 'order', 'number')
def order_in_words(c): learner(cbs=type('Last', (Callback,), dict(order='last')))
@bad(ValueError, 'start_lr', 'below')
def lr_find_downwards(c): learner().lr_find(1, .1, show_plot=False)
@bad(TypeError, 'valley', 'nope')
def lr_find_by_name(c): learner().lr_find(show_plot=False, suggest_funcs='nope')
@bad(ValueError, 'number above 0')
def clip_by_text(c): GradientClip('1')
@bad(TypeError, 'name such as')
def save_without_a_name(c): learner(path=c.path).save(None)
@bad(TypeError, 'a dict', 'collate_fn', 'n_inp')
def two_targets_by_name(c): learner(dls=DataLoaders([dict(input=x, label=y, target=y)]*2)).fit(1)

# the optimizer, its parameter groups and hyperparameters
@bad(TypeError, 'optimizer', "'adam'", 'torch.optim')
def optimizer_name_at_creation(c): learner(opt_func='adam')
@bad(TypeError, 'optimizer', 'None', 'torch.optim')
def optimizer_is_none(c): learner(opt_func=None)
@bad(TypeError, 'class Linear', 'not an optimizer', 'opt_func=torch.optim.AdamW')
def optimizer_is_a_module_class(c): learner(opt_func=nn.Linear)
@bad(TypeError, 'StepLR', 'not an optimizer', 'TorchScheduler(partial(StepLR')
def optimizer_is_a_scheduler(c): learner(opt_func=torch.optim.lr_scheduler.StepLR)
@bad(TypeError, 'optimizer', 'torch.optim.AdamW', 'not 0.1')   # a dict means several optimizers
def optimizer_is_its_settings(c): learner(opt_func=dict(lr=.1))
@bad(TypeError, 'optimizer', '[<class', 'partial')
def optimizer_in_a_list(c): learner(opt_func=[SGD])
@bad(TypeError, '`splitter`', 'None', '`return`')
def splitter_without_return(c): fixed(c, learner(splitter=lambda m: None), splitter=lambda m: list(m.parameters())).fit(1)
@bad(TypeError, 'splitter', 'function of the model', 'list')
def splitter_is_its_result(c): m = model(); learner(model=m, splitter=list(m.parameters()))
@bad(TypeError, 'splitter', 'function of the model', 'NoneType')
def splitter_is_none(c): learner(splitter=None)
@bad(TypeError, "'weight'", 'not names')
def splitter_gives_names(c): fixed(c, learner(splitter=lambda m: [n for n,_ in m.named_parameters()]), splitter=lambda m: list(m.parameters())).fit(1)
@bad(TypeError, 'splitter', 'parameters', '1')
def splitter_gives_numbers(c): fixed(c, learner(splitter=lambda m: [1, 2]), splitter=lambda m: list(m.parameters())).fit(1)
@bad(ValueError, '2 parameters', 'more than once', 'splitter')
def splitter_gives_twice(c): fixed(c, learner(splitter=lambda m: [*m.parameters()]*2), splitter=lambda m: list(m.parameters())).fit(1)
@bad(ValueError, '1 parameter is', 'more than once', 'splitter')
def splitter_gives_one_in_two_groups(c): fixed(c, learner(splitter=lambda m: [[m.weight, m.bias], [m.bias]]), splitter=lambda m: list(m.parameters())).fit(1)
@bad(TypeError, 'hyperparameter', 'number', 'dict', 'several optimizers')
def lr_is_a_dict(c): fixed(c, learner()).fit(1, {'lr':.1})
@bad(TypeError, 'learning rate `lr`', 'number', "'0.1'")
def lr_is_text_from_the_start(c): learner(lr='0.1')
@bad(TypeError, 'learning rate `lr`', 'number', 'SGD')
def optimizer_for_a_learning_rate(c): fixed(c, learner()).fit(1, SGD)
@bad(ValueError, 'learning rate `lr`', '0 or more', '-0.1')
def lr_is_negative_in_a_list(c): fixed(c, learner()).fit(1, lr=[-.1])
@bad(ValueError, 'learning rate `lr`', 'nan')
def lr_is_nan_in_a_slice(c): fixed(c, learner()).fit(1, lr=slice(float('nan')))
@bad(ValueError, 'learning rate `lr`', 'nan')
def lr_is_a_nan_tensor(c): fixed(c, learner()).fit(1, lr=torch.tensor(float('nan')))
@bad(TypeError, 'weight decay `wd`', 'number', "'x'")
def wd_is_text_from_the_start(c): learner(wd='x')
@bad(KeyError, "no hyperparameter 'wd'", 'but has lr')
def wd_is_not_of_this_optimizer(c): fixed(c, learner(opt_func=torch.optim.Rprop)).fit(1, wd=.1)
@bad(ValueError, 'moms', 'three numbers', '0.9')
def moms_is_one(c): fixed(c, learner(opt_func=torch.optim.Adam)).fit_one_cycle(1, moms=.9)
@bad(ValueError, 'moms', 'three numbers', '(0.9, 0.8)')
def moms_are_two(c): fixed(c, learner(opt_func=torch.optim.Adam)).fit_one_cycle(1, moms=(.9,.8))
@bad(ValueError, 'moms', 'less than 1', '1.8')
def moms_are_above_one(c): fixed(c, learner(opt_func=torch.optim.Adam)).fit_one_cycle(1, moms=(.9,1.8,.9))
@bad(ValueError, 'moms', 'three numbers', '0.9')
def moms_is_one_from_the_start(c): learner(moms=.9)
@bad(ValueError, "'mom'", 'lr')
def moms_are_not_of_this_optimizer(c): fixed(c, learner(opt_func=torch.optim.Adagrad)).fit_one_cycle(1, moms=(.9,.8,.9))

# what losses and metrics return
def returns(c, v): fixed(c, learner(loss_func=lambda p,t: v(F.mse_loss(p, t))), loss_func=F.mse_loss).fit(1)
@bad(TypeError, 'loss function', 'tuple', 'batch 0', 'return the loss to train on', 'dictionary', 'LossMetric')
def loss_gives_a_tuple(c): returns(c, lambda l: (l, l))
@bad(TypeError, 'loss function', 'dictionary', 'entry `loss`', "{'ce': ce, 'kl': kl}")
def loss_gives_a_dict(c): returns(c, lambda l: {'mse':l, 'loss':l})
@bad(TypeError, 'loss function', 'str', 'F.mse_loss(pred, targ)')
def loss_gives_text(c): returns(c, lambda l: f'loss={l}')
@bad(TypeError, 'loss function', 'ndarray', 'PyTorch', 'gradient')
def loss_gives_an_array(c): returns(c, lambda l: l.detach().numpy())
@bad(TypeError, 'loss function', 'tuple', 'batch 0')
def loss_gives_a_tuple_in_validation(c): fixed(c, learner(loss_func=lambda p,t: (F.mse_loss(p, t), p)), loss_func=F.mse_loss).validate()
@bad(TypeError, 'loss function', 'float64', 'NumPy')
def loss_gives_a_number_of_numpy(c): returns(c, lambda l: np.float64(l.item()))
@bad(TypeError, 'loss function', 'float', 'batch 1', '`.item()`')
def loss_gives_a_float_in_a_later_batch(c):
    losses = []
    def loss(l): losses.append(l); return l if len(losses)==1 else 0.
    returns(c, loss)
def measures(c, f): fixed(c, learner(metrics=f), metrics=[]).fit(1)
@bad(TypeError, 'metric `word`', 'str', 'float')
def metric_gives_text(c):
    def word(p, t): return '0.93'
    measures(c, word)
@bad(TypeError, 'metric `both`', 'tuple', 'columns(both, [...])')
def metric_gives_two(c):
    def both(p, t): return p.mean(), t.mean()
    measures(c, both)
@bad(TypeError, 'metric `both`', 'dict', 'columns(both, [...])')
def metric_gives_a_dict(c):
    def both(p, t): return {'p':p.mean(), 't':t.mean()}
    measures(c, both)
@bad(TypeError, 'metric `far`', 'ndarray', '.mean()')
def metric_gives_an_array(c):
    def far(p, t): return (p-t).abs().numpy()
    measures(c, far)
@bad(TypeError, 'metric `none`', 'NoneType', '`return`')
def metric_returns_none(c):
    def none(p, t): (p-t).abs().mean()
    measures(c, none)
@bad(UserWarning, 'the validation batch (float32[8, 4]) has no target', '(input, target)', 'it has no loss')
def valid_batch_without_target(c): fixed(c, learner(dls=DataLoaders(batches(2), [(x,)])), dls=good_dls()).fit(1)
@bad(UserWarning, 'the validation batch', 'has no target', '(input, target)')
def valid_dataset_without_target(c): fixed(c, learner(dls=DataLoaders(batches(2), DataLoader(TensorDataset(x)))), dls=good_dls()).fit(1)
@bad(UserWarning, 'the validation batch', 'has no target', '(input, target)')
def validate_without_target(c): fixed(c, learner()).validate(dl=[x])

# names and handlers of other libraries
@bad(AttributeError, '`fti`', 'did you mean `fit`?')
def method_is_misspelled(c): fixed(c, learner()).fti(1)
@bad(AttributeError, '`evaluate`', '`learn.validate()`')
def method_of_keras(c): fixed(c, learner()).evaluate()
@bad(AttributeError, 'epcoh', 'did you mean `epoch`?')
def callback_reads_a_misspelled_attribute(c): fixed(c, learner(cbs=at('before_batch', lambda cb: cb.epcoh)), cbs=()).fit(1)
@bad(TypeError, 'after_batch', "'trainer'", 'def after_batch(self)', 'self.learn')
def handler_of_lightning(c):
    class A(Callback):
        def after_batch(self, trainer, model): pass
@bad(TypeError, 'after_epoch', 'self')
def handler_without_self(c):
    class A(Callback):
        def after_epoch(): pass
@bad(TypeError, 'after_epoch', 'lambda self')
def function_without_self(c): Callback(after_epoch=lambda: 0)
@bad(TypeError, 'before_fit', 'plain function')
def handler_is_a_generator(c):
    class A(Callback):
        def before_fit(self): yield 1
@bad(TypeError, 'begin_batch', '`before_batch`')
def event_of_the_first_fastai(c):
    class A(Callback):
        def begin_batch(self): pass
@bad(TypeError, 'on_train_batch_end', '`after_batch`')
def event_of_keras(c):
    class A(Callback):
        def on_train_batch_end(self, batch, logs=None): pass
@bad(TypeError, 'on_before_optimizer_step', '`before_step`')
def event_of_lightning(c):
    class A(Callback):
        def on_before_optimizer_step(self, trainer, module, opt): pass
@bad(TypeError, 'on_after_backward', '`after_backward`')
def another_event_of_lightning(c):
    class A(Callback):
        def on_after_backward(self, trainer, module): pass
@bad(TypeError, "'progress'", 'callback', 'learn.progress')
def remove_by_name(c): fixed(c, learner()).remove_cb('progress')
@bad(TypeError, "'EarlyStoppingCallback'", 'callback', 'instance')
def callbacks_by_name(c): fixed(c, learner()).fit(1, cbs=['EarlyStoppingCallback'])
@bad(TypeError, 'callback', 'None')
def callback_is_none(c): fixed(c, learner()).fit(1, cbs=[None])
@bad(TypeError, 'callback', "{'a': Callback}")
def callbacks_in_a_dict(c): fixed(c, learner()).fit(1, cbs={'a':Callback()})
@bad(TypeError, 'StepLR', 'TorchScheduler(partial(StepLR, ...))')
def scheduler_class_for_a_callback(c): fixed(c, learner()).fit(1, cbs=torch.optim.lr_scheduler.StepLR)
@bad(TypeError, 'StepLR', 'TorchScheduler(partial(StepLR, ...))')
def scheduler_for_a_callback(c): l = fixed(c, learner()); l.create_opt(); l.fit(1, cbs=torch.optim.lr_scheduler.StepLR(l.opt.opt, 1))
@bad(TypeError, 'StepLR', 'needs step_size', 'partial(StepLR, step_size=...)')
def scheduler_class_without_arguments(c): TorchScheduler(torch.optim.lr_scheduler.StepLR)
@bad(TypeError, "'cosine'", 'partial(StepLR')
def scheduler_by_name(c): TorchScheduler('cosine')
@bad(TypeError, 'class AvgMetric', "'func'", '`AvgMetric(...)`')
def metric_class_without_arguments(c): learner(metrics=AvgMetric)
@bad(TypeError, 'metric', "'accuracy'", 'function')
def metrics_by_name(c): learner(metrics=['accuracy'])
@bad(TypeError, 'metric', 'tensor(')
def metric_was_called(c): learner(metrics=mae(y, y))

# values out of range
@bad(ValueError, 'BCEWithLogitsLoss', 'targets from 0 to 1', '0 to 10', 'CrossEntropyLossFlat()')
def classes_for_yes_and_no(c): on(x, 5.*labels[:,None], nn.BCEWithLogitsLoss(), cls(1)).fit(1)
@bad(ValueError, 'BCELoss', 'predictions from 0 to 1', 'BCEWithLogitsLossFlat()')
def probabilities_without_a_sigmoid(c): on(x, (labels>0).float()[:,None], nn.BCELoss(), cls(1)).fit(1)
@bad(UserWarning, 'CrossEntropyLoss', 'probabilities', 'remove the softmax')
def softmax_twice(c): on(x, labels, nn.CrossEntropyLoss(), nn.Sequential(cls(), nn.Softmax(1))).fit(1)
@bad(UserWarning, 'CrossEntropyLossFlat', 'probabilities', 'remove the softmax')
def softmax_twice_flat(c): on(x, labels, CrossEntropyLossFlat(), nn.Sequential(cls(), nn.Softmax(1))).fit(1)
@bad(UserWarning, 'NLLLoss', 'logarithms', 'nn.LogSoftmax', 'CrossEntropyLossFlat()')
def logits_for_nll(c): on(x, labels, nn.NLLLoss(), nn.Sequential(cls(), nn.ReLU())).fit(1)
@bad((RuntimeError, TypeError), 'BCEWithLogitsLoss', 'bool', 'y.float()')
def yes_and_no_are_bools(c): on(x, (labels>0)[:,None], nn.BCEWithLogitsLoss(), cls(1)).fit(1)
@bad(RuntimeError, 'bool', 'y.long()')
def classes_are_bools(c): on(x, labels>0, nn.CrossEntropyLoss()).fit(1)
@bad(IndexError, '3 classes', 'from -1 to 1')
def class_is_negative(c): on(x, labels-1, nn.CrossEntropyLoss()).fit(1)
@bad(ValueError, 'batch norm', 'one sample', 'drop_last=True')
def batch_norm_of_one_item(c): on(x[:1], y[:1], F.mse_loss, nn.Sequential(cls(), nn.BatchNorm1d(3), nn.Linear(3, 1))).fit(1)
@bad(AttributeError, '{out: float32[8, 1]}', "pred['out']", 'MapOutputs')
def model_gives_a_dict(c): on(x, y, F.mse_loss, Outputs(lambda o: {'out':o})).fit(1)
@bad(RuntimeError, 'embedding', 'x.long()')
def embedding_of_floats(c): on(x, y, F.mse_loss, nn.Embedding(10, 2)).fit(1)
@bad(IndexError, 'embedding', '`num_embeddings`')
def embedding_is_too_small(c): on(labels, y, F.mse_loss, nn.Embedding(2, 1)).fit(1)
@bad(UserWarning, 'loss is nan', 'batch without samples')
def batch_of_no_items(c): learner(dls=DataLoaders([(x[:0], y[:0])])).fit(1)
@bad((TypeError, AttributeError), 'several outputs', 'pred[0]')
def model_is_an_lstm(c): on(torch.randn(8,3,4), torch.randn(8,3,2), F.mse_loss, nn.LSTM(4, 2, batch_first=True)).fit(1)
@bad(ValueError, 'amount of training', "'3 foo'", "'2ep'")
def interval_in_unknown_units(c): Every('3 foo')
@bad(ValueError, 'every=-1', '1 or more')
def interval_is_negative(c): Every(-1)

# arguments of callbacks and policies
import learnkit.all as lk   # every public name
def misuse(name, do, exc, *words): ROWS.append(pytest.param(do, exc, words, id=name))
def fitted(c, cbs, **kw): fixed(c, learner(path=c.path, **kw), cbs=()).fit(1, cbs=cbs)

images = torch.randn(8,3,8,8)
def image_classes(m, **kw): return on(images, labels, nn.CrossEntropyLoss(), m, **kw)
for name,do,exc,*words in [   # what users of other libraries type at first
    ('train_is_no_fit', lambda c: learner().train(), AttributeError, '`learn.fit(n_epoch)`', '`learn.model.train()`'),
    ('eval_of_the_model', lambda c: learner().eval(), AttributeError, '`learn.model.eval()`'),
    ('to_is_no_learner', lambda c: learner().to('cpu'), AttributeError, '`DataLoaders(train, valid, device=…)`', '`learn.dls.to(device)`'),
    ('cuda_is_no_learner', lambda c: learner().cuda(), AttributeError, '`learn.dls.to(device)`'),
    ('half_is_no_learner', lambda c: learner().half(), AttributeError, '`learn.to_fp16()`', '`learn.model.half()`'),
    ('history_is_the_recorders', lambda c: learner().history, AttributeError, '`learn.recorder.history`'),
    ('log_is_a_callbacks', lambda c: learner().log, AttributeError, '`learn.log_numbers`'),
    ('evaluate_is_validate', lambda c: learner().evaluate(), AttributeError, '`learn.validate()`'),
    ('fit_without_epochs', lambda c: learner().fit(), TypeError, '`fit(n_epoch)`'),
    ('one_cycle_without_epochs', lambda c: learner().fit_one_cycle(), TypeError, '`fit_one_cycle(n_epoch)`'),
    ('max_lr_of_one_cycle', lambda c: learner().fit_one_cycle(1, max_lr=.1), TypeError, '`fit_one_cycle` takes no', 'write `lr_max`'),
    ('lr_of_one_cycle', lambda c: learner().fit_one_cycle(1, lr=.1), TypeError, '`fit_one_cycle` takes no', 'write `lr_max`'),
    ('max_lr_of_flat_cos', lambda c: learner().fit_flat_cos(1, max_lr=.1), TypeError, '`fit_flat_cos` takes no', 'did you mean `lr`?'),
    ('max_lr_of_fine_tune', lambda c: learner().fine_tune(1, max_lr=.1), TypeError, '`fine_tune` takes no'),
    ('device_of_a_learner', lambda c: learner(device='cuda'), TypeError, 'the GPU if there is one', 'device=…'),
    ('train_dataloader', lambda c: Learner(train_dataloader=batches(2), model=Reg()), TypeError, '`Learner((train_dl, valid_dl), model, …)`'),
    ('two_loaders', lambda c: Learner(batches(2), batches(2), Reg(), nn.MSELoss()), TypeError, 'second argument is the model', '`Learner((train_dl, valid_dl), model, …)`'),
    ('predict_a_path', lambda c: image_classes(nn.Linear(8,3)).predict('images/0.png'), Exception, "'images/0.png'", 'learn.test_dl'),
    ('predict_a_path_object', lambda c: image_classes(nn.Linear(8,3)).predict(Path('0.png')), Exception, '0.png', 'read the file first'),
    ('predict_two_items', lambda c: image_classes(nn.Sequential(nn.Conv2d(3,4,8), nn.Flatten(), nn.Linear(4,3))).predict(torch.zeros(2,3,9,9)), Exception,
     'learn.get_preds(dl=learn.test_dl(samples))', 'float32[2, 3, 9, 9]'),
    ('images_into_a_linear', lambda c: image_classes(nn.Linear(10,3)).fit(1), RuntimeError, '`nn.Flatten()`', '`nn.Linear(192, 3)`'),
    ('f1_of_three_classes', lambda c: image_classes(nn.Sequential(nn.Flatten(), nn.Linear(192,3)), metrics=f1_score).fit(1), ValueError,
     "`metrics=skm_to_learnkit(f1_score, average='macro')`"),
]: misuse(name, do, exc, *words)

for name,do,exc,*words in [
    ('monitor_of_keras', lambda c: fitted(c, lk.EarlyStoppingCallback(monitor='val_loss')), ValueError, "'val_loss'", 'did you mean `valid_loss`?'),
    ('monitor_is_no_column', lambda c: fitted(c, lk.SaveModelCallback(monitor='acc')), ValueError, "'acc'", 'train_loss, valid_loss'),
    ('best_is_no_column', lambda c: fitted(c, lk.CheckpointCallback('1ep', best='nope')), ValueError, "'nope'", 'train_loss, valid_loss'),
    ('patience_is_text', lambda c: lk.EarlyStoppingCallback(patience='3'), ValueError, 'patience', 'number of epochs', "'3'"),
    ('patience_is_negative', lambda c: lk.EarlyStoppingCallback(patience=-1), ValueError, 'patience', '1 or more', '-1'),
    ('every_epoch_is_text', lambda c: lk.SaveModelCallback(every_epoch='x'), ValueError, 'every_epoch', 'number of epochs', "'x'"),
    ('plateau_factor_of_torch', lambda c: lk.ReduceLROnPlateau(factor=.1), ValueError, 'divided by factor', 'write 10'),
    ('plateau_factor_is_zero', lambda c: lk.ReduceLROnPlateau(factor=0), ValueError, 'factor', 'more than 1'),
    ('accumulate_nothing', lambda c: lk.GradientAccumulation(0), ValueError, 'n_acc', 'samples', '1 or more'),
    ('accumulate_text', lambda c: lk.GradientAccumulation('8'), ValueError, 'n_acc', "'8'"),
    ('clip_to_zero', lambda c: GradientClip(0), ValueError, 'max_norm', 'above 0'),
    ('clip_to_nan', lambda c: GradientClip(float('nan')), ValueError, 'max_norm', 'above 0', 'nan'),
    ('mixup_alpha_is_text', lambda c: lk.MixUp('a'), ValueError, 'alpha', 'above 0', "'a'"),
    ('cutmix_without_images', lambda c: fitted(c, lk.CutMix()), ValueError, 'CutMix', 'must be images', 'float32[4, 4]'),
    ('ema_decay_above_one', lambda c: lk.EMACallback(decay=2.), ValueError, 'decay', 'from 0 to 1', '2.0'),
    ('ema_start_is_negative', lambda c: lk.EMACallback(start=-1), ValueError, 'start', 'steps', '-1'),
    ('precision_of_lightning', lambda c: lk.MixedPrecision(16), ValueError, "'fp16', 'bf16' or 'fp8'", '16'),
    ('epochs_longer_than_whole', lambda c: lk.ShortEpochCallback(2), ValueError, 'pct', 'at most 1', '2'),
    ('limit_to_nothing', lambda c: lk.LimitBatches(0), ValueError, 'train', 'number of batches', 'fraction'),
    ('overfit_nothing', lambda c: lk.OverfitBatches(0), ValueError, 'number of batches', '1 or more'),
    ('sanity_is_true', lambda c: lk.SanityCheck(True), ValueError, 'number of batches', 'True'),
    ('validate_every_x', lambda c: lk.ValidateEvery('x'), ValueError, "'x'", "'500ba'"),
    ('stop_after_nothing', lambda c: lk.StopAfter(0), ValueError, 'more than 0'),
    ('checkpoint_every_x', lambda c: lk.CheckpointCallback('x'), ValueError, "'x'", "'2ep'"),
    ('keep_is_negative', lambda c: lk.CheckpointCallback('1ep', keep=-1), ValueError, 'keep', '1 or more'),
    ('resume_without_checkpoints', lambda c: fixed(c, learner()).fit(1, resume='auto'), ValueError, "resume='auto'", '`CheckpointCallback`'),
    ('resume_from_nowhere', lambda c: fixed(c, learner(path=c.path, cbs=lk.CheckpointCallback('1ep')), cbs=()).fit(1, resume='nope.pth'), ValueError, 'nope.pth', 'no such file'),
    ('resume_is_true', lambda c: fixed(c, learner(path=c.path, cbs=lk.CheckpointCallback('1ep')), cbs=()).fit(1, resume=True), TypeError, 'resume', "'auto'", 'True'),
    ('one_cycle_of_lr', lambda c: fixed(c, learner()).fit_one_cycle(1, lr=.1), TypeError, '`lr_max`'),
    ('pct_start_is_a_percentage', lambda c: fixed(c, learner()).fit_one_cycle(1, pct_start=30), ValueError, 'pct_start', 'from 0 to 1', '30'),
    ('divide_by_zero', lambda c: fixed(c, learner()).fit_one_cycle(1, div=0), ValueError, 'div', 'above 0'),
    ('no_cycle', lambda c: fixed(c, learner()).fit_sgdr(0, 1), ValueError, 'n_cycles', '1 or more'),
    ('fine_tune_text', lambda c: fixed(c, learner()).fine_tune('1'), ValueError, 'epochs', 'integer', "'1'"),
    ('fine_tune_less_than_nothing', lambda c: fixed(c, learner()).fine_tune(1, freeze_epochs=-1), ValueError, 'freeze_epochs', '0 or more', '-1'),
    ('schedule_without_a_name', lambda c: lk.ParamScheduler(.1), TypeError, "ParamScheduler({'lr'"),
    ('schedule_is_a_number', lambda c: fitted(c, lk.ParamScheduler({'lr':.1})), TypeError, "'lr'", 'function', 'SchedNo(0.1, 0.1)'),
    ('schedule_of_nothing', lambda c: fitted(c, lk.ParamScheduler({'learning_rate':lk.SchedCos(1, 0)})), ValueError, "'learning_rate'", 'lr, mom'),
    ('schedules_above_one', lambda c: lk.combine_scheds([.5,.6], [lk.SchedLin(0,1), lk.SchedLin(1,0)]), ValueError, 'add up to 1', '[0.4545, 0.5455]'),
    ('lr_find_of_nothing', lambda c: fixed(c, learner()).lr_find(num_it=0, show_plot=False), ValueError, 'num_it', '6 or more'),
    ('lr_find_below_zero', lambda c: fixed(c, learner()).lr_find(-1, 1, show_plot=False), ValueError, '-1', 'same side of zero'),
    ('callback_for_weight_decay', lambda c: fixed(c, learner()).fit(1, .1, ProgressCallback()), TypeError, 'wd', 'cbs='),
    ('valid_pct_is_nothing', lambda c: DataLoaders.from_tensors(x, y, valid_pct=0), ValueError, 'valid_pct', 'more than 0'),
    ('loader_is_a_number', lambda c: DataLoaders(batches(1), 3), TypeError, 'validation loader', 'int'),
    ('batch_size_is_negative', lambda c: DataLoaders.from_tensors(x, y, bs=-1), ValueError, 'bs', '1 or more', '-1'),
    ('export_without_a_name', lambda c: fixed(c, learner(path=c.path)).export(3), TypeError, 'name such as', '3'),
    ('export_is_not_there', lambda c: lk.load_learner(c.path/'nope.pkl'), FileNotFoundError, 'no file', 'nope.pkl'),
    ('on_an_unknown_event', lambda c: fixed(c, learner()).on('after_bacth')(print), ValueError, '`after_bacth`', '`after_batch`'),
    ('on_no_function', lambda c: fixed(c, learner()).on('after_batch')(3), TypeError, 'def f(learn)', '3'),
    ('freeze_to_a_name', lambda c: fixed(c, learner()).freeze_to('head'), TypeError, 'index of the first group', "'head'"),
    ('freeze_to_none', lambda c: fixed(c, learner()).freeze_to(None), TypeError, 'index of the first group', 'None'),
    ('freeze_to_a_half', lambda c: fixed(c, learner()).freeze_to(1.5), TypeError, 'index of the first group', '1.5'),
    ('seed_is_text', lambda c: lk.set_seed('a'), TypeError, 'seed', 'integer', "'a'"),
    ('seed_is_none', lambda c: lk.set_seed(None), TypeError, 'seed', 'integer', 'None'),
    ('on_nan_of_another_kind', lambda c: lk.NonFiniteCheck('stop'), ValueError, 'on_nan', "'raise' or 'warn'"),
    ('roll_back_upwards', lambda c: lk.RollBackOnNaN(factor=2.), ValueError, 'factor', 'at most 1'),
    ('micro_batch_of_nothing', lambda c: lk.MicroBatch(0), ValueError, 'size', '1 or more'),
    ('prefetch_nothing', lambda c: lk.Prefetch(0), ValueError, 'number of batches', '1 or more'),
    ('replay_in_text', lambda c: lk.ReplayOnOOM('x'), ValueError, 'size', '1 or more', "'x'"),
    ('cycle_of_nothing', lambda c: lk.Cycles(0), ValueError, 'length', "'500ba'"),
    ('skip_less_than_nothing', lambda c: lk.SkipNaN(-1), ValueError, 'at_most', 'number of batches')]: misuse(name, do, exc, *words)

def replaced(c, **kw):
    l = fixed(c, learner())
    c.fix = {k:getattr(l, k) for k in kw}
    for k,v in kw.items(): setattr(l, k, v)
    l.fit(1)
misuse('data_replaced_by_a_list', lambda c: replaced(c, dls=[batches(2), batches(1)]), TypeError, 'learn.dls', 'DataLoaders(train, valid)')
class Flagged(TensorDataset): train = True   # as torchvision's datasets have
misuse('dataset_with_a_flag', lambda c: Learner(Flagged(x, y), cls(1), nn.MSELoss()), TypeError, 'Flagged is a dataset', 'DataLoaders.from_dsets(train, valid, bs=64)')
misuse('data_replaced_by_a_dataset', lambda c: replaced(c, dls=Flagged(x, y)), TypeError, 'learn.dls', 'DataLoaders(train, valid)', 'Flagged')
misuse('validate_data_replaced_by_a_list', lambda c: setattr(learn := learner(), 'dls', [batches(1)]) or learn.validate(), TypeError, 'learn.dls', 'list')
misuse('loader_number_minus_seven', lambda c: fixed(c, learner()).validate(-7), ValueError, 'loader with index -7', '2')
misuse('activation_is_a_class', lambda c: fixed(c, learner()).get_preds(act=nn.Softmax), TypeError, 'act', 'function', 'Softmax')
misuse('predictions_saved_to_true', lambda c: fixed(c, learner()).get_preds(save_preds=True), TypeError, '`save_preds` must be a path, not True')
misuse('event_named_by_a_number', lambda c: lk.event.register(3), ValueError, 'identifier', 'not 3')
misuse('hook_of_a_number', lambda c: lk.hook_output(3), TypeError, 'module', '3')
misuse('hooks_of_one_module', lambda c: lk.hook_outputs(nn.Linear(1, 1)), TypeError, 'list of modules', 'Linear')
misuse('lr_find_from_text', lambda c: fixed(c, learner()).lr_find('1e-7', show_plot=False), TypeError, 'start_lr', 'number', "'1e-7'")
misuse('workers_as_text', lambda c: DataLoaders.from_tensors(x, y, num_workers='2'), ValueError, 'num_workers', 'processes', "'2'")
misuse('reduction_misspelt', lambda c: CrossEntropyLossFlat(reduction='men'), ValueError, 'reduction', "'mean'", "'men'")
misuse('focal_reduction_misspelt', lambda c: lk.FocalLoss(reduction='men'), ValueError, 'reduction', "'mean'", "'men'")
misuse('focal_gamma_below_zero', lambda c: lk.FocalLossFlat(gamma=-1.), ValueError, 'gamma', '0 or more')
misuse('smoothing_above_one', lambda c: lk.LabelSmoothingCrossEntropy(2), ValueError, 'eps', 'from 0 to 1', '2')
misuse('average_misspelt', lambda c: lk.F1Score(average='marco'), ValueError, 'average', "'macro'", "'marco'")
misuse('fine_tune_from_text', lambda c: fixed(c, learner()).fine_tune(1, start_epoch='1'), ValueError, 'start_epoch', 'integer')
misuse('trace_to_a_number', lambda c: fixed(c, learner()).profile(fname=3), TypeError, 'fname', 'path', '3')
misuse('loss_replaced_by_a_name', lambda c: replaced(c, loss_func='mse'), TypeError, 'loss_func', 'function', 'str')
misuse('model_replaced_by_none', lambda c: replaced(c, model=None), TypeError, 'model must be an nn.Module', 'NoneType')
misuse('lr_replaced_by_text', lambda c: replaced(c, lr='x'), TypeError, 'learning rate', 'number', "'x'")

@pytest.mark.parametrize('do,exc,words', ROWS)
def test_mistake(do, exc, words, tmp_path, capsys):
    c = SimpleNamespace(path=tmp_path, learn=None, fix={}, kept=None, never=None)
    with warnings.catch_warnings():
        warnings.simplefilter('error', UserWarning)
        warnings.filterwarnings('ignore', 'Detected pickle protocol')   # torch warns about a file that then raises
        with pytest.raises(exc) as e: do(c)
    text = message(e.value)
    lost = [w for w in words if not found(w, text)]
    assert not lost, f'the message lacks {lost}:\n{text}'
    assert len(text)<900 and str(e.value)
    if c.never is not None: assert not c.never.exists(), 'the file ran code'
    if c.learn is None: return
    if c.kept is not None: assert torch.equal(c.kept, weights(c.learn)) or exc is UserWarning
    if 'cbs' in c.fix: c.learn.remove_cbs([cb for cb in c.learn.cbs if cb.name not in ('train_eval','recorder','progress')])
    for k,v in c.fix.items():
        if k!='cbs': setattr(c.learn, k, v)
    assert c.learn.mode is None
    with warnings.catch_warnings(): warnings.simplefilter('ignore'); c.learn.fit(1)
    if c.learn.dls.valid is not None: c.learn.validate()

def test_enough_rows(): assert len(ROWS)>=200 and len({r.id for r in ROWS})==len(ROWS)

@pytest.mark.parametrize('valid', [[(x,)], DataLoader(TensorDataset(x))], ids=['list','tensors'])
def test_a_missing_target_is_reported_before_training(valid):
    "A validation set without targets is reported before the first step; it used to show as an empty column later"
    steps = []
    learn = learner(dls=DataLoaders(batches(2), valid), cbs=at('before_step', lambda cb: steps.append(1)))
    with warnings.catch_warnings():
        warnings.simplefilter('error', UserWarning)
        with pytest.raises(UserWarning, match='validation batch .* has no target'): learn.fit(1)
    assert not steps

@pytest.mark.parametrize('part', [0, .1, .5, .9, .999])
def test_truncated_files(part, tmp_path):
    c = SimpleNamespace(path=tmp_path)
    l = saved(c)
    data = c.file.read_bytes()
    c.file.write_bytes(data[:int(len(data)*part)])
    with pytest.raises(ValueError, match='damaged|incomplete|not a weight file'): l.load('model')
    assert torch.equal(c.kept, weights(l))
    l.fit(1)

def test_flipped_bits(tmp_path):
    "Loading a file with a flipped bit raises and changes nothing, or loads what was saved, if the bit is not read"
    c = SimpleNamespace(path=tmp_path)
    l = saved(c)
    want = weights(l.load('model'))
    data,rng,errors = c.file.read_bytes(),random.Random(0),0
    for i in range(300):
        b = bytearray(data); b[rng.randrange(len(b))] ^= 1<<rng.randrange(8); c.file.write_bytes(b)
        with torch.no_grad(): l.model.weight.fill_(i)
        kept = weights(l)
        try: l.load('model')
        except ValueError as e: errors += 1; assert torch.equal(kept, weights(l)), (i, e)
        else: assert torch.equal(want, weights(l)), i
    assert errors>50
    l.fit(1)
