"""Mappings, auxiliary modules, item indices and event checks change neither results nor the order of the data"""
import re, warnings
from functools import partial
import pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, Sampler, SequentialSampler, TensorDataset, WeightedRandomSampler
import learnkit.learner.predict
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.loop.callback import Callback
from learnkit.loop.events import CancelBatch, CancelEpoch, CancelTrain
from learnkit.callbacks.cycles import ValidateEvery
from learnkit.learner.fit import LimitBatches
from learnkit.callbacks.batches import ItemIndices, knows_indices
from learnkit.callbacks.data import MapInputs, MapOutputs, rename_keys
from learnkit.callbacks.data import MoveModules
from learnkit.observe.trace import CheckEvents
from learnkit.loop.run import null_logger
from learnkit.data.loaders import DataLoaders
from learnkit.learner.learner import Learner
from toys import at, batches, draws, few, learner, throw, weights

quick = draws(20)

# mapping
@quick
@given(st.dictionaries(st.sampled_from('abcdef'), st.integers()), st.dictionaries(st.sampled_from('abcdef'), st.sampled_from('abcdefgh')))
def test_renamed(d, names):
    "Renaming keys is a bijection that loses no value, or raises"
    new = [names.get(k, k) for k in d]
    try: res = rename_keys(d, names)
    except KeyError: assert set(names)-set(d)
    except ValueError: assert len(set(new))<len(new)
    else:
        if len(set(names.values()))==len(names): assert list(res)==new and list(res.values())==list(d.values())

class Named(nn.Linear):
    def __init__(self): super().__init__(4, 1)
    def forward(self, features): return dict(out=super().forward(features))

def named(cbs, **kw):
    data = [dict(words=x, gold=y) for x,y in batches(3)]
    torch.manual_seed(0)
    learn = Learner((data, data), Named(), lambda pred,y: F.mse_loss(pred['logits'], y), SGD, lr=.05, cbs=cbs, **kw)
    learn.logger = null_logger
    return learn

def test_same_weights_as_without_names():
    a = named([MapInputs(dict(words='features', gold='label')), MapOutputs(dict(out='logits'))])
    torch.manual_seed(0)
    b = learner(model=nn.Linear(4,1), dls=DataLoaders(batches(3), batches(3)))
    for l in (a,b): l.fit(2)
    assert torch.equal(weights(a), weights(b)) and a.recorder.history['valid_loss']==b.recorder.history['valid_loss']
    assert list(a.get_preds()[0])==['logits'] and torch.equal(a.get_preds()[0]['logits'], b.get_preds()[0])

def test_functions():
    seen = []
    learn = learner(cbs=[MapInputs(lambda b: (b[0]*0, b[1])), MapOutputs(lambda p: p+1), Callback(before_batch=lambda cb: seen.append(cb.x.abs().sum().item()), after_loss=lambda cb: seen.append((cb.pred-1-cb.model.bias).abs().max().item()))])
    learn.fit(1)
    assert max(seen)<1e-6 and len(seen)==10

@pytest.mark.parametrize('cls,ev', [(MapInputs,'before_batch'), (MapOutputs,'after_pred')])
def test_for_training_or_for_validation_only(cls, ev):
    for kw,want in ((dict(valid=False), {True}), (dict(train=False), {False})):
        seen = set()
        def f(o): seen.add(learn.training); return o
        learn = learner(cbs=cls(f, **kw))
        learn.fit(1); learn.validate()
        assert seen==want

@pytest.mark.parametrize('bad,exc', [(3,TypeError), ('words',TypeError), (dict(a=1),TypeError), ({1:'a'},TypeError), (dict(a='x', b='x'),ValueError), (None,TypeError)])
def test_bad_mappings(bad, exc):
    for cls in (MapInputs, MapOutputs):
        with pytest.raises(exc): cls(bad)

def test_wrong_names_at_the_first_batch():
    with pytest.raises(KeyError, match='the batch has no .*did you mean `words`'): named(MapInputs(dict(word='x'))).fit(1)
    with pytest.raises(KeyError, match='the output has no'): named([MapInputs(dict(words='features', gold='label')), MapOutputs(dict(logit='x'))]).fit(1)
    with pytest.raises(TypeError, match='the batch is a tuple: pass a function'): learner(cbs=MapInputs(dict(a='b'))).fit(1)
    with pytest.raises(TypeError, match='the output is a Tensor'): learner(cbs=MapOutputs(dict(a='b'))).fit(1)

# auxiliary modules
class HasModule(Callback):
    def __init__(self): self.own = nn.Linear(1,1)
class Loss:
    def __init__(self): self.parts = {'a':nn.Linear(1,1)}
    def __call__(self, pred, y): return F.mse_loss(pred, y)
def with_teacher(pred, y, teacher): return F.mse_loss(pred, y)

@pytest.mark.parametrize('how', ['loss object', 'partial', 'callback', 'learner', 'list'])
def test_modules_are_moved(how):
    cb,loss,teacher = HasModule(),Loss(),nn.Linear(1,1)
    learn = learner(loss_func=partial(with_teacher, teacher=teacher) if how=='partial' else loss, cbs=[MoveModules, cb])
    learn.critic,learn.critics = nn.Linear(1,1),[nn.Linear(1,1)]
    m = {'loss object':loss.parts['a'], 'partial':teacher, 'callback':cb.own, 'learner':learn.critic, 'list':learn.critics[0]}[how]
    learn.dls.to('meta')
    try: learn.validate()
    except (NotImplementedError, RuntimeError, ValueError): pass
    assert m.weight.device.type=='meta'
    without = learner(cbs=[c := HasModule()]); without.dls.to('meta')
    try: without.validate()
    except (NotImplementedError, RuntimeError, ValueError): pass
    assert c.own.weight.device.type=='cpu'

# indices
N = 22
X = torch.arange(N*4.).view(N,4)/100
class Odd(BatchSampler):
    "Batches of sizes 1, 2, 3, …"
    def __init__(self): pass
    def __iter__(self):
        i = n = 0
        while i<N: n += 1; yield list(range(i, min(N, i+n))); i += n
    def __len__(self): return 7

def loaders(kind, workers=0):
    ds = TensorDataset(X, X.sum(1, keepdim=True))
    kw = dict(num_workers=workers, **(dict(persistent_workers=True) if kind=='persistent' else {}))
    gen = torch.Generator().manual_seed(1)
    return {'shuffle':lambda: DataLoader(ds, 4, shuffle=True, **kw), 'persistent':lambda: DataLoader(ds, 4, shuffle=True, **kw), 'plain':lambda: DataLoader(ds, 4, **kw),
            'generator':lambda: DataLoader(ds, 4, shuffle=True, generator=gen, **kw), 'drop':lambda: DataLoader(ds, 4, shuffle=True, drop_last=True, **kw),
            'weighted':lambda: DataLoader(ds, 4, sampler=WeightedRandomSampler(torch.rand(N), N), **kw), 'odd':lambda: DataLoader(ds, batch_sampler=Odd(), **kw),
            'whole':lambda: DataLoader(ds, batch_size=None, sampler=BatchSampler(RandomSampler(ds), 4, False), **kw)}[kind]()

kinds = ['shuffle','plain','generator','drop','weighted','odd','whole']
def fitted(kind, workers, cbs, n_epoch=2, **kw):
    torch.manual_seed(0)
    learn = Learner((loaders(kind, workers), loaders(kind, workers)), nn.Sequential(nn.Linear(4,4), nn.Dropout(.2), nn.Linear(4,1)), nn.MSELoss(), SGD, lr=.01, cbs=cbs, **kw)
    learn.logger = null_logger
    torch.manual_seed(1)
    return learn

class Compare(Callback):
    order,n = 110,0
    def before_batch(self):
        assert torch.equal(self.xb[0], X[self.learn.indices])
        self.n += 1

@few(3)
@pytest.mark.parametrize('kind,workers', [(k,0) for k in kinds] + [('shuffle',2), ('persistent',2), ('odd',2)])
def test_indices_of_each_batch_change_nothing(kind, workers):
    got = []
    for cbs in ([], [ItemIndices(), c := Compare()]):
        learn = fitted(kind, workers, cbs)
        learn.fit(2)
        got.append((weights(learn), torch.get_rng_state(), learn.recorder.history['valid_loss']))
    assert torch.equal(got[0][0], got[1][0]) and torch.equal(got[0][1], got[1][1]) and got[0][2]==got[1][2]
    assert c.n==2*(learn.recorder.iters[0]+len(learn.dls.valid)) and learn.indices is None

def test_with_other_callbacks_that_change_the_loader(tmp_path):
    "Indices are right with a seeded order, a limit, and validations and predictions within the fit"
    cbs = [LimitBatches(3), CheckpointCallback('2ba'), c := Compare(), ItemIndices(), ValidateEvery('2ba'), Callback(after_step=lambda cb: cb.learn.get_preds())]
    learn = fitted('shuffle', 0, cbs, path=tmp_path)
    learn.fit(2)
    assert c.n==2*(3+6) + 3*6 + 6*6

def test_unknown_indices():
    class Flow(IterableDataset):
        def __iter__(self): yield from zip(X, X.sum(1, keepdim=True))
    class Own(DataLoader):
        def __iter__(self): yield from super().__iter__()
    ds = TensorDataset(X, X)
    seen = []
    for dl in (batches(2), DataLoader(Flow(), 4), Own(TensorDataset(X, X.sum(1, keepdim=True)), 4)):
        learn = learner(dls=DataLoaders(dl, batches(1)), cbs=[ItemIndices, Callback(before_batch=lambda cb: seen.append(cb.learn.indices))])
        learn.fit(1)
        with pytest.raises(ZeroDivisionError) as e: learn.fit(1, cbs=at('after_loss', throw(ZeroDivisionError())))
        assert not any('items' in n for n in e.value.__notes__)
    assert set(seen)=={None}
    assert not knows_indices(DataLoader(ds, 4, num_workers=2, in_order=False)) and knows_indices(DataLoader(ds, 4, in_order=False))

def note(e): return next((n for n in getattr(e, '__notes__', ()) if 'samples of the dataset' in n), None)
def named_items(e): return [int(i) for i in re.findall(r'\d+', note(e).split(':')[1])]

class Broken(TensorDataset):
    def __getitem__(self, i):
        if i==13: raise ValueError('broken')
        return super().__getitem__(i)

@pytest.mark.parametrize('workers', [0,2])
@pytest.mark.parametrize('checkpoints', [False, True])
def test_a_failing_sample_is_named(workers, checkpoints, tmp_path):
    learn = fitted('shuffle', 0, [ItemIndices] + [CheckpointCallback()]*checkpoints, path=tmp_path)
    learn.dls.loaders[0] = DataLoader(Broken(X, X.sum(1, keepdim=True)), 4, shuffle=True, num_workers=workers)
    with pytest.raises(ValueError) as e: learn.fit(1)
    assert 13 in named_items(e.value) and len(named_items(e.value)) in (2,4)   # the last batch has two samples
    with pytest.raises(ValueError) as e: learn.get_preds(0)
    assert named_items(e.value)==[12,13,14,15]

@pytest.mark.parametrize('where', ['train', 'valid', 'nested', 'after nested'])
@pytest.mark.parametrize('ev', ['before_batch', 'after_pred', 'after_loss', 'after_batch'])
def test_the_batch_that_failed(where, ev):
    "The note names the failing batch, not one of a validation within the same training batch"
    want = []
    def fail(cb):
        l = cb.learn
        mode = dict(valid='fit', nested='validate').get(where, 'fit')
        if l.mode==mode and l.training==('valid'!=where and where!='nested') and l.iter==2: want.extend(l.indices); 1/0
    cbs = [ItemIndices, at(ev, fail, order=100)] + [ValidateEvery('1ba')]*('nested' in where)
    learn = fitted('shuffle', 0, cbs)
    with pytest.raises(ZeroDivisionError) as e: learn.fit(1)
    assert named_items(e.value)==want and len(want)==4

@pytest.mark.parametrize('ev', ['before_fit', 'before_epoch', 'before_train', 'after_train', 'before_validate', 'after_validate', 'after_epoch', 'after_fit'])
def test_no_items_where_there_is_no_batch(ev):
    learn = fitted('shuffle', 0, [ItemIndices, at(ev, throw(ZeroDivisionError()), order=110)])
    with pytest.raises(ZeroDivisionError) as e: learn.fit(2)
    assert note(e.value) is None

@pytest.mark.parametrize('workers', [0,2])
def test_no_items_at_the_end_of_a_limited_phase(workers):
    "After the last batch of a limited phase there are no indices, though workers have fetched further batches"
    seen = []
    learn = fitted('shuffle', workers, [ItemIndices, LimitBatches(2, 1), at('after_exhaust', lambda cb: seen.append(cb.learn.indices))])
    learn.fit(1)
    assert seen==[None, None]
    with pytest.raises(ZeroDivisionError) as e: learn.fit(1, cbs=at('after_exhaust', throw(ZeroDivisionError())))
    assert note(e.value) is None

@pytest.mark.parametrize('exc', [CancelBatch, CancelTrain, CancelEpoch])
def test_indices_after_cancels(exc):
    c = Compare()
    learn = fitted('shuffle', 0, [ItemIndices, c, at('after_pred', throw(exc()), lambda cb: cb.learn.training and cb.learn.iter==1)])
    learn.fit(3)
    assert c.n==3*dict(CancelBatch=12, CancelTrain=8, CancelEpoch=2)[exc.__name__]

def test_long_lists_are_cut():
    learn = fitted('shuffle', 0, [ItemIndices(max_shown=2), at('after_loss', throw(ZeroDivisionError()))])
    with pytest.raises(ZeroDivisionError) as e: learn.fit(1)
    assert note(e.value).endswith(', … (4 in all)')

@pytest.mark.parametrize('ev', ['before_fit', 'before_epoch', 'before_train', 'before_fetch', 'before_batch', 'after_step', 'after_batch', 'after_train', 'before_validate', 'after_validate', 'after_fit'])
def test_exceptions_leave_no_indices(ev):
    on = [True]
    learn = fitted('shuffle', 0, [ItemIndices, c := Compare(), at(ev, throw(ZeroDivisionError()), lambda cb: on, order=120)])
    with pytest.raises(ZeroDivisionError): learn.fit(1)
    assert learn.indices is None and learn.item_indices.streams==[]
    on.clear(); c.n = 0
    learn.fit(1)
    assert c.n==12

@pytest.mark.parametrize('cbs', [[ItemIndices], [CheckpointCallback], [ItemIndices, CheckpointCallback]])
def test_the_loader_keeps_its_attributes(cbs, tmp_path):
    "Callbacks that read the loader's sampler, such as those for several processes, find the user's sampler"
    seen = []
    def look(cb): dl,own = cb.learn.dl,cb.learn.dls[0 if cb.learn.training else 1]; seen.append((dl.batch_size, dl.sampler is own.sampler, dl.batch_sampler is own.batch_sampler))
    learn = fitted('shuffle', 0, [*cbs, at('before_batch', look)], path=tmp_path)
    learn.fit(1)
    assert set(seen)=={(4, True, True)}

def test_a_sampler_without_a_length():
    class Endless(Sampler):
        def __iter__(self): return iter(range(N))
    learn = fitted('shuffle', 0, [ItemIndices, LimitBatches(3, 1), c := Compare()])
    learn.dls.loaders[0] = DataLoader(TensorDataset(X, X.sum(1, keepdim=True)), 4, sampler=Endless(), num_workers=1, persistent_workers=True)
    learn.fit(2)
    assert c.n==2*(3+1)

def test_nothing_is_kept_alive():
    learn = fitted('persistent', 2, ItemIndices)
    learn.fit(1)
    assert learn.item_indices.loaders=={} and learn.item_indices.streams==[] and learn.dls.train is learn.dls.loaders[0] and type(learn.dls.train) is DataLoader

# a loop that does not fire every event
forgettable = 'before_pred after_pred before_loss after_loss'.split()

def learner_missing(*gone, cbs=()):
    class Forgets(Learner):
        def __call__(self, name, **kw):
            if name not in gone: super().__call__(name, **kw)
        def _do_one_batch(self): super()._do_one_batch()
    learn = Forgets((batches(3), batches(2)), nn.Linear(4,1), nn.MSELoss(), SGD, lr=.01, cbs=[CheckEvents, *cbs])
    learn.logger = null_logger
    return learn

def missed_event_warnings(learn, n_epoch=2):
    with warnings.catch_warnings(record=True) as ws:
        warnings.simplefilter('always')
        learn.fit(n_epoch)
    return [str(w.message) for w in ws if 'never fired' in str(w.message)]

def missed_events(learn):
    "The missed events with the callbacks that handle them, except `CheckShortCuts`, which an environment variable adds"
    pattern = re.compile(r"`_do_one_batch` of this Forgets never fired `(\w+)` \(for ([\w, ]+)\): write `self\('\1'\)`")
    missed = [(m[1], [n for n in m[2].split(', ') if n!='CheckShortCuts']) for m in map(pattern.match, missed_event_warnings(learn))]
    return [(ev,names) for ev,names in missed if names]

@pytest.mark.parametrize('ev', forgettable + ['before_backward', 'after_backward', 'before_step', 'after_step', 'before_zero_grad', 'after_zero_grad'])
def test_missed_events_with_handlers_warn(ev):
    class HasHandler(Callback): pass
    setattr(HasHandler, ev, lambda self: None)
    learn = learner_missing(ev, cbs=[HasHandler])
    for _ in range(2):   # each run warns once
        assert missed_events(learn)==[(ev, ['HasHandler'])]
    learn.has_handler.modes = ('predict',)
    assert not missed_events(learn)
    learn.remove_cb(HasHandler)
    assert not missed_events(learn)
    assert not missed_events(learner_missing(cbs=[HasHandler]))

def test_a_method_replaced_on_the_instance():
    learn = learner(cbs=[CheckEvents, at('after_pred', lambda cb: None)])
    assert not missed_event_warnings(learn)
    def one(): learn.pred = learn.model(*learn.xb); learn.loss_grad = learn._loss(); learn._do_grad_opt() if learn.training else None
    learn._do_one_batch = one
    assert len(missed_event_warnings(learn))==1

def test_cancelled_batches_are_not_checked():
    has_handler = at('after_pred', lambda cb: None)
    assert not missed_event_warnings(learner_missing(cbs=[has_handler, at('before_pred', throw(CancelBatch()), lambda cb: cb.learn.training)]))
    cancel = at('before_batch', throw(CancelBatch()), lambda cb: cb.learn.training and cb.learn.epoch==0)
    assert len(missed_event_warnings(learner_missing('after_pred', cbs=[at('after_pred', lambda cb: None), cancel])))==1

@pytest.mark.parametrize('ev', ['before_train', 'before_batch', 'after_batch', 'after_train'])
def test_exceptions_leave_no_handlers(ev):
    learn = learner_missing()
    with pytest.raises(ZeroDivisionError): learn.fit(1, cbs=at(ev, throw(ZeroDivisionError()), order=-200))
    assert not [k for k in vars(learn.check_events) if k.startswith(('before_','after_'))]
