"What third-party fastai callbacks rely on besides the events; the expected values were measured with fastai 2.8.12"
import copy, pickle, subprocess, sys, warnings
import pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
from learnkit.all import (SGD, Callback, CancelTrain, CancelValid, CrossEntropyLossFlat, DataLoaders, EarlyStoppingCallback, Learner, SaveModelCallback,
                          ReduceLROnPlateau, TrackerCallback, accuracy)

def data(n=128, n_valid=64):
    g = torch.Generator().manual_seed(1)
    x = torch.randn(n+n_valid, 8, generator=g)
    y = (x@torch.randn(8, 3, generator=g)).argmax(1)
    return TensorDataset(x[:n], y[:n]),TensorDataset(x[n:], y[n:])

def mlp():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(8,16), nn.ReLU(), nn.Linear(16,3))

def learner(cbs=(), lr=.05, path=None, loss_func=None, **kwargs):
    train,valid = data()
    dls = DataLoaders(DataLoader(train, 16), DataLoader(valid, 16), path=path or '.')
    return Learner(dls, mlp(), loss_func or CrossEntropyLossFlat(), SGD, lr=lr, metrics=accuracy, cbs=cbs, **kwargs)

def fit(learn, *args, **kwargs):
    with learn.no_bar(), learn.no_logging(): learn.fit(*args, **kwargs)
    return learn

# the loss that a callback computes

class OwnLoss(Callback):
    "Hides the target and computes the loss in `after_pred`, as adapters for torchvision's detectors do"
    def before_batch(self):
        self.hidden = self.yb
        self.learn.yb = ()
    def after_pred(self):
        self.learn.loss_grad = F.cross_entropy(self.pred, *self.hidden)
        self.learn.loss = self.learn.loss_grad.clone()
    def after_loss(self): self.learn.yb = self.hidden

def test_a_loss_that_is_set_after_the_prediction_is_trained():
    plain,own = fit(learner(), 2),fit(learner(OwnLoss()), 2)
    assert all(map(torch.equal, plain.model.parameters(), own.model.parameters()))
    assert own.recorder.values[-1]==plain.recorder.values[-1]

def test_the_loss_shown_is_the_one_that_the_callback_sets():
    class Penalized(OwnLoss):
        "Trains with a penalty that the loss shown does not include"
        def after_pred(self):
            loss = F.cross_entropy(self.pred, *self.hidden)
            self.learn.loss_grad,self.learn.loss = loss+1,loss.detach()
    plain,own = fit(learner(), 2),fit(learner(Penalized()), 2)
    assert own.recorder.values[-1]==pytest.approx(plain.recorder.values[-1])

def test_the_loss_shown_is_loss_grad_if_no_other_is_set():
    class OnlyGrad(OwnLoss):
        def after_pred(self): self.learn.loss_grad = F.cross_entropy(self.pred, *self.hidden)
    plain,own = fit(learner(), 2),fit(learner(OnlyGrad()), 2)
    assert own.recorder.values[-1]==plain.recorder.values[-1]

def test_the_loss_of_an_earlier_batch_is_not_used():
    class Once(OwnLoss):
        def before_batch(self):
            self.hidden = self.yb
            if self.learn.iter==0: return
            self.learn.yb = ()
        def after_pred(self): pass
    learn = fit(learner(Once()), 1)   # only the first batch is trained
    again = learner()
    x,y = [t[:16] for t in data()[0].tensors]
    loss = F.cross_entropy(again.model(x), y)
    loss.backward()
    torch.testing.assert_close(learn.model[0].weight, again.model[0].weight-.05*again.model[0].weight.grad)

# false alarms

def warnings_in_fit(learn):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter('always')
        fit(learn, 1)
    return [str(w.message) for w in found]

class MakesTarget(Callback):
    def before_batch(self): self.learn.yb = ((self.x[:,0]>0).long(),)

def unlabelled(cbs, n_inp=1):
    x = torch.randn(64, 8)
    ds = TensorDataset(x)
    return Learner(DataLoaders(DataLoader(ds, 16), DataLoader(ds, 16), n_inp=n_inp), mlp(), CrossEntropyLossFlat(), SGD, lr=.1, cbs=cbs)

def test_a_target_created_by_a_callback_is_not_reported_as_missing():
    learn = unlabelled(MakesTarget())
    assert warnings_in_fit(learn)==[] and learn.recorder.values[0][1]>0

def test_a_missing_target_is_still_reported():
    assert any('no target' in w for w in warnings_in_fit(unlabelled(())))

def test_a_missing_validation_target_is_reported_before_training():
    train,valid = data()
    learn = Learner(DataLoaders(DataLoader(train, 16), DataLoader(TensorDataset(valid.tensors[0]), 16)), mlp(), CrossEntropyLossFlat(), SGD, lr=.1)
    batches_before = []
    def note(message, *args, **kwargs): batches_before.append(learn.train_iter)
    with warnings.catch_warnings():
        warnings.simplefilter('always')
        warnings.showwarning = note
        fit(learn, 1)
    assert batches_before[0]==0

def _weighted(p, t, how):
    each = F.cross_entropy(p, t, reduction='none')
    w = torch.rand(len(each))
    return dict(divided=lambda: (each*w/w.sum()).sum(), weights=lambda: (each*(w/w.sum())).sum(), count=lambda: (each/len(each)).sum(),
                summed=lambda: each.sum(), twice=lambda: (each*w).sum())[how]()

@pytest.mark.parametrize('how', ['divided', 'weights', 'count'])
def test_a_weighted_mean_is_not_reported_as_a_sum(how):
    def weighted(p, t): return _weighted(p, t, how)
    assert warnings_in_fit(learner(loss_func=weighted))==[]

@pytest.mark.parametrize('how', ['summed', 'twice'])
def test_a_sum_is_still_reported(how):
    def weighted(p, t): return _weighted(p, t, how)
    assert any('seems to sum' in w for w in warnings_in_fit(learner(loss_func=weighted)))

# attributes that fastai's classes have

def test_a_tracker_knows_the_position_of_its_value():
    "`idx` of a tracker finds its value in `final_record`, as optuna-integration's FastAIV2PruningCallback reads it"
    seen = []
    class Prune(TrackerCallback):
        def after_epoch(self):
            super().after_epoch()
            seen.append(self.recorder.final_record[self.idx])
    learn = fit(learner(Prune('valid_loss')), 2)
    assert seen==learn.recorder.history['valid_loss']
    learn = fit(learner(Prune('accuracy')), 1)
    assert seen[-1]==learn.recorder.history['accuracy'][0]

def test_last_saved_path_may_be_set(tmp_path):
    "As fastxtend's SaveModelAtEnd does, without calling the base class"
    class AtEnd(SaveModelCallback):
        def __init__(self): self.last_saved_path = None
    assert AtEnd().last_saved_path is None
    cb = SaveModelCallback()
    cb.last_saved_path = tmp_path/'a.pth'
    assert cb.last_saved_path==tmp_path/'a.pth'

def test_hypers_may_be_set():
    "As upit's CycleGANTrainer does; fastai's `Optimizer` allows it"
    class Copies(Callback):
        def before_train(self): self.other = self.learn.opt_func(self.learn.splitter(self.learn.model), lr=.1)
        def after_step(self): self.other.hypers = self.learn.opt.hypers
    learn = fit(learner(Copies()), 1)
    assert learn.copies.other.hypers[0]['lr']==learn.opt.hypers[0]['lr']==.05
    learn.opt.hypers = [dict(lr=.3, mom=.5)]
    assert learn.opt.opt.param_groups[0]['lr']==.3 and learn.opt.opt.param_groups[0]['momentum']==.5
    with pytest.raises(ValueError, match='for 2 parameter groups.* has 1'): learn.opt.hypers = [dict(lr=.3), dict(lr=.2)]

def test_recorder_has_the_flags_of_cancelled_loops():
    "`cancel_train` and `cancel_valid` say whether a Cancel ended that phase of the current epoch"
    flags = []
    class Cancels(Callback):
        order = 99   # after the Recorder
        def before_batch(self):
            if self.training and self.epoch==0: raise CancelTrain
        def before_validate(self):
            if self.epoch==1: raise CancelValid
        def after_epoch(self): flags.append((self.recorder.cancel_train, self.recorder.cancel_valid))
    fit(learner(Cancels()), 3)
    assert flags==[(True,False), (False,True), (False,False)]

@pytest.mark.parametrize('comp', [None, 'min', torch.lt, float.__lt__], ids=['none','min','torch','float'])
@pytest.mark.parametrize('make', [SaveModelCallback, EarlyStoppingCallback, ReduceLROnPlateau, TrackerCallback])
def test_a_callback_pickles_after_a_fit(make, comp, tmp_path):
    learn = fit(learner(make('valid_loss', comp=comp), path=tmp_path), 1)
    cb = learn.cbs[-1]
    learn.remove_cb(cb)
    again = pickle.loads(pickle.dumps(cb))
    assert again.best==cb.best and again.watch.is_better(cb.best-1) and not again.watch.is_better(cb.best+1)
    assert copy.deepcopy(cb).watch.is_better(cb.best-1)

# callbacks for which `hasattr` raises an exception

class NotAList:
    "As in pytorch-accelerated, `__getattr__` raises something other than AttributeError, so `hasattr` fails"
    __module__ = 'pytorch_accelerated.callbacks'
    def __getattr__(self, k): raise NotImplementedError

def test_a_single_pytorch_accelerated_callback_needs_no_list():
    seen = []
    class Notes(NotAList):
        def on_train_epoch_start(self, trainer, **kwargs): seen.append(trainer.run_history.current_epoch)
    learn = fit(learner(Notes()), 1)
    assert seen==[1]
    fit(learner(), 1, cbs=Notes())
    assert seen==[1,1]
    with learn.removed_cbs(None), learn.added_cbs(Notes()): fit(learn, 1)
    assert seen==[1,1,1,1]

names_of_fastai = """array_equal as_tensor attrgetter bz2 class2attr collections concurrent contextmanager Counter csv deepcopy
    defaultdict default_collate delegates dropwhile Enum F FloatTensor functools Generator glob hashlib ifnone in_notebook inspect IntEnum io is_listy is_iter
    itemgetter Iterable itertools join_path_file json L List listify LongTensor math methodcaller mimetypes mk_class Module multiprocessing MutableMapping
    namedtuple nn noop np Number numbers operator Optional OrderedDict os partial patch Path pd pickle plt pv random range_of re redirect_stdout reduce
    Sequence shutil SimpleNamespace starmap store_attr string sys tarfile tempfile Tensor threading time torch types typing Union unsqueeze
    urllib warn warnings zipfile Any Callable Dict Set Tuple TypeVar BatchSampler IterableDataset RandomSampler Sampler ismin_torch notmax_torch""".split()

def test_the_names_of_fastais_star_import_exist():
    "A file written for fastai finds them once its import line is changed; learnkit's own names take precedence"
    names = {}
    exec('from learnkit.all import *', names)
    import collections, math
    import learnkit.data.nested
    assert [k for k in names_of_fastai if k not in names]==[]
    assert names['is_listy'] is learnkit.data.nested.is_listy and names['math'] is math and names['Counter'] is collections.Counter
    assert 'copy' not in names and 'datetime' not in names

def test_an_imported_module_is_not_replaced():
    "fastai's star import replaces `copy` and `datetime` by a function and a class"
    names = {}
    exec('import copy, datetime, time, random\nfrom learnkit.all import *', names)
    assert names['copy'].deepcopy([1])==[1] and names['datetime'].timedelta and names['time'].sleep and names['random'].random

@pytest.mark.slow
def test_names_of_modules_import_them_only_when_used():
    code = "import sys; from learnkit.all import *; a = [m in sys.modules for m in ('pandas','matplotlib')]; hasattr(plt, '__wrapped__'); \
import inspect; inspect.unwrap(plt); b = 'matplotlib.pyplot' in sys.modules; print(a, b, int(np.arange(4).sum()))"
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert done.stdout=='[False, False] False 6\n'

def test_a_file_with_only_its_import_line_changed(tmp_path):
    "It uses modules, typing, fastcore, `np`, `Module`, and a callback that does not call `super().__init__`"
    source = """
from fastai.basics import *

class Weighted(Module):
    def __init__(self, n:int, p:Optional[float]=None):
        store_attr()
        self.linear = nn.Linear(n, 3)
    def forward(self, x:Tensor)->Tensor: return self.linear(x)*ifnone(self.p, 1.)

@delegates(Callback)
class Counts(Callback):
    order = math.inf
    def __init__(self, names:Union[str,List[str]]='seen', **kwargs):
        super().__init__(**kwargs)
        store_attr()
        self.counts = Counter()
    def after_batch(self): self.counts.update(listify(self.names))
    def after_fit(self): self.mean = np.mean([*self.counts.values()])

class AtEnd(SaveModelCallback):
    def __init__(self, fname='model', with_opt=False):
        self.last_saved_path = None
        store_attr()
    def before_fit(self): pass
    def after_epoch(self): pass
    def after_fit(self): self.last_saved_path = self.learn.save(f'{self.fname}', with_opt=self.with_opt)
"""
    names = {}
    exec(source.replace('fastai.basics', 'learnkit.all'), names)
    cbs = names['Counts'](['seen','more']),names['AtEnd']()
    learn = fit(Learner(learner(path=tmp_path).dls, names['Weighted'](8), CrossEntropyLossFlat(), SGD, lr=.1, cbs=cbs, path=tmp_path), 1)
    assert cbs[0].mean==12 and cbs[0].counts==dict(seen=12, more=12)
    assert cbs[1].last_saved_path.is_file() and learn.dls.bs==16

def test_a_loader_that_has_no_batch_size_has_no_bs():
    assert DataLoaders([torch.zeros(4, 2)]*3).bs is None
