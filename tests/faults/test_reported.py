"""Counters of samplers, datasets, transforms and callbacks are saved by their `state_dict`, or a warning names them"""
import re, warnings

import numpy as np, pytest, torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, Subset

from learnkit.all import Callback, EarlyStoppingCallback, EMACallback, GradientAccumulation, MixUp, SaveModelCallback, TrackerCallback
from test_kept import BS, N, Draws, Stream, check, final_weights, tensors
from test_resume import Crash, learner
from toys import slow, weights

def stateful_loader(*args, **kw): return pytest.importorskip('torchdata.stateful_dataloader').StatefulDataLoader(*args, **kw)

class Counter:
    "Counts its calls"
    n = 0
    def count(self): self.n += 1; return self.n/100

class WithState(Counter):
    def state_dict(self): return dict(n=self.n)
    def load_state_dict(self, state): self.n = state['n']

def transform(cls):
    class Adds(cls):
        def __call__(self, x): return x+self.count()
    return Adds()

class Items(Dataset):
    "A dataset with the transforms `tfms`"
    def __init__(self, *tfms): self.x,self.tfms = tensors().tensors[0],list(tfms)
    def __len__(self): return N
    def __getitem__(self, i):
        x = self.x[i]
        for f in self.tfms: x = f(x)
        return x,self.x[i].sum()[None]

class Read(Items, IterableDataset):
    def __iter__(self): return (self[i] for i in range(N))

def data_set(cls):
    class Counting(cls, Items):
        def __getitem__(self, i): x,y = super().__getitem__(i); return x+self.count(),y
    return Counting()

def sampler(cls):
    class Passes(cls, Sampler):
        def __init__(self): pass
        def __len__(self): return N
        def __iter__(self): self.n += 1; return iter([i*(2*self.n+5)%N for i in range(N)])
    return Passes()

def collate(cls):
    class Collates(cls):
        def __call__(self, items): x,y = map(torch.stack, zip(*items)); return x+self.count(),y
    return Collates()

kinds = dict(transform=lambda c: DataLoader(Items(transform(c)), BS, shuffle=True), closure=lambda c: DataLoader(Items((lambda t: lambda x: t(x))(transform(c))), BS),
             data=lambda c: DataLoader(data_set(c), BS, shuffle=True), subset=lambda c: DataLoader(Subset(data_set(c), range(N)), BS), sampler=lambda c: DataLoader(tensors(), BS, sampler=sampler(c)),
             collate=lambda c: DataLoader(tensors(), BS, collate_fn=collate(c)), stream=lambda c: DataLoader(Read(transform(c)), BS))
names = dict(transform='Adds', closure='Adds', data='Counting', subset='Counting', sampler='Passes', collate='Collates', stream='Adds')

@pytest.mark.parametrize('kind', ['transform', *slow('sampler', 'stream', 'closure', 'data', 'subset', 'collate')])
def test_counters_with_a_state_are_resumed(kind, tmp_path):
    "Counters of transforms, datasets, samplers and `collate_fn`s used to be reset in spite of a `state_dict`"
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        check(tmp_path, data=lambda: kinds[kind](WithState))

@pytest.mark.parametrize('kind', ['sampler', *slow(*(k for k in kinds if k!='sampler'))])
def test_counters_without_a_state_are_warned_of(kind, tmp_path):
    "One warning names a counter without a `state_dict`; it used to be reset silently"
    with pytest.warns(UserWarning, match=rf'no checkpoint stores `n` of \w*{names[kind]}') as w: final_weights(tmp_path, data=lambda: kinds[kind](Counter))
    assert len([o for o in w if 'no checkpoint stores' in str(o.message)])==1

class Shuffled:
    "Shuffles an array in place, and saves it with a set and a number of NumPy"
    def __init__(self): self.rows,self.seen,self.best = np.arange(N),{-1},np.float32(9)
    def shuffle(self): np.random.RandomState(1).shuffle(self.rows); self.seen.add(int(self.rows[0])); self.best -= np.float32(.1)
    def state_dict(self): return dict(rows=self.rows.copy(), rest=[{*self.seen}, self.best])
    def load_state_dict(self, state): self.rows,(self.seen,self.best) = state['rows'],state['rest']
class ShuffledItems(Shuffled, Items):
    def __init__(self): Shuffled.__init__(self); Items.__init__(self)
    def set_epoch(self, epoch): self.shuffle()
    def __getitem__(self, i): return super().__getitem__(int(self.rows[i]))
class ShuffledStream(Shuffled, Read):
    def __init__(self): Shuffled.__init__(self); Items.__init__(self)
    def __iter__(self): self.shuffle(); return (self[int(i)] for i in self.rows)
class ShuffledCallback(Callback):
    saves = ('rows','seen','best')
    def __init__(self): Shuffled.__init__(self)
    def before_epoch(self): Shuffled.shuffle(self)

@pytest.mark.parametrize('kind', ['data','stream','callback'])
def test_values_of_numpy_keep_their_types(kind, tmp_path):
    "A loaded array was a tensor, of which `np.random.shuffle` repeats values; a set was a list, a number one of Python"
    def make():
        ds,cb = dict(data=ShuffledItems, stream=ShuffledStream, callback=lambda: Items())[kind](),ShuffledCallback()
        learn = learner(tmp_path, [lambda: cb], data=lambda: DataLoader(ds, BS), every='1ep')
        return learn,cb if kind=='callback' else ds
    learn,o = make()
    with pytest.raises(SystemError): learn.fit(3, resume='auto', cbs=Crash(N//BS+1))
    learn,o = make()
    learn.fit(3, resume='auto')
    assert [type(v) for v in (o.rows, o.seen, o.best)]==[np.ndarray, set, np.float32]
    assert sorted(o.rows.tolist())==[*range(N)] and o.seen>{-1} and o.best<9

def test_a_second_fit_resumes_the_state_of_the_first(tmp_path):
    "A second fit, killed before its first checkpoint, resumed the sampler as if there had been no first fit"
    def both(path, *cbs):
        learn = learner(path, data=lambda: kinds['sampler'](WithState), every='1ep')
        for n,cb in ((2, ()), (2, cbs)): learn.fit(n, resume='auto', cbs=cb)
        return weights(learn)
    with pytest.raises(SystemError): both(tmp_path/'b', Crash(2))
    assert torch.equal(both(tmp_path/'a'), both(tmp_path/'b'))

def resume_warnings(tmp_path, *cbs, data=None, n=2):
    "The warnings of a fit about state that no checkpoint stores"
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter('always')
        learner(tmp_path, [lambda cb=cb: cb for cb in cbs], data=data, every='1ba').fit(n)
    return [str(o.message) for o in w if re.search('no checkpoint stores|not resume bit for bit|may not have the same training data', str(o.message))]

class Schedule(Callback):
    "Changes the learning rate by its count"
    n = 0
    def before_batch(self): self.n += 1; self.learn.opt.set_hyper('lr', .01/self.n)
class NumpyCount(Schedule): n = np.int64(0)
class NumpyCounts(Callback):
    "Changes the learning rate by a count that it changes in place"
    def __init__(self): self.n = np.zeros(1)
    def before_batch(self): self.n += 1; self.learn.opt.set_hyper('lr', .01/float(self.n[0]))
class Saved(Schedule): saves = ('n',)
class Looking(Schedule): acts = 'nothing'

def test_callbacks_of_the_user(tmp_path):
    "A warning names attributes of a callback without `saves`, which used to be reset silently"
    assert resume_warnings(tmp_path/'a', Saved(), Looking())==[]
    message, = resume_warnings(tmp_path/'b', Schedule())
    assert '`n` of Schedule' in message and "`saves = ('n',)`" in message and '`acts = "nothing"`' in message

@pytest.mark.parametrize('make', [NumpyCount, NumpyCounts])
def test_numbers_of_numpy(make, tmp_path):
    "A counter that is a number or an array of NumPy was reset in silence"
    message, = resume_warnings(tmp_path, make(), n=1)
    assert f'`n` of {make.__name__}' in message

@pytest.mark.parametrize('cbs', [[], [lambda: EMACallback(.9), lambda: GradientAccumulation(8), MixUp], [SaveModelCallback, EarlyStoppingCallback, TrackerCallback]])
def test_no_false_alarm(cbs, tmp_path):
    "learnkit's callbacks cause no warning"
    assert resume_warnings(tmp_path, *(cb() for cb in cbs))==[]

class StatefulStream(Stream):
    "A stream whose state lacks the global generators"
    def __iter__(self):
        for x,y in super().__iter__(): yield x+torch.rand(()),y
    def state_dict(self): return {}
    def load_state_dict(self, state): pass

@pytest.mark.parametrize('make,words', [
    (lambda: DataLoader(tensors(), BS, num_workers=2, in_order=False), '`in_order=False`'),
    *slow((lambda: DataLoader(Stream(torch.Generator()), BS, num_workers=1, persistent_workers=True), 'its workers persist, and have drawn random numbers'),
          (lambda: DataLoader(Items(transform(WithState)), BS, num_workers=1), 'changes that workers make to their data, the state of Adds'),
          (lambda: stateful_loader(StatefulStream(torch.Generator()), BS, num_workers=1), 'draw random numbers, which the state of StatefulDataLoader omits'))])
def test_inexact_loaders_are_warned_of(make, words, tmp_path):
    "Loaders whose order or random numbers depend on their workers used to resume inexactly without a warning"
    message, = [w for w in resume_warnings(tmp_path, data=make, n=1) if 'set_vital' not in w]   # of torchdata
    assert words in message

@pytest.mark.parametrize('state', [3, {'sampler':3}, {1:{}}])
def test_invalid_states_raise(state, tmp_path):
    "An invalid state of the data raises a ValueError"
    from learnkit.recovery.data_state import DataState
    from learnkit.data.resumable_loader import ResumableLoader
    kept = DataState(ResumableLoader(kinds['sampler'](WithState)))
    with pytest.raises(ValueError): kept.load_state_dict(state)

class Beside(Callback):
    "Trains a second network with an optimizer of its own"
    run_valid = False
    def __init__(self, opt_func=torch.optim.Adam):
        self.net = torch.nn.Linear(4, 1)
        self.opt = opt_func(self.net.parameters(), lr=.01)
        self.fixed,self.part = torch.nn.BatchNorm1d(4).eval(),self.net
    def after_pred(self):
        self.opt.zero_grad()
        self.net(self.fixed(torch.ones(2, 4))).sum().backward()
        self.opt.step()

class Half(Beside): saves = ('net',)
class Whole(Beside): saves = ('net','opt')
class Tells(Beside):
    def state_dict(self): return dict(opt=self.opt.state_dict(), net=self.net.state_dict())
    def load_state_dict(self, state): [getattr(self, k).load_state_dict(v) for k,v in state.items()]

def test_networks_of_a_callback_are_warned_of(tmp_path):
    "A warning names networks and optimizers missing in `saves`, which a resume used to reset silently"
    message, = resume_warnings(tmp_path/'none', Beside())
    assert '`net`, `opt`, `part` of Beside' in message and "`saves = ('net', 'opt', 'part')`" in message
    message, = resume_warnings(tmp_path/'half', Half())
    assert '`opt` of Half' in message and '`net`' not in message
    assert resume_warnings(tmp_path/'whole', Whole(), Tells())==[]
    assert resume_warnings(tmp_path/'no_state', type('NoState', (Beside,), dict(saves=('net',)))(torch.optim.SGD))==[]

class Follows(Callback):
    "Keeps an average of the model in a list, and parts of the model, which is saved anyway"
    def before_fit(self): self.nets,self.head,self.first = [torch.optim.swa_utils.AveragedModel(self.model)],self.model,[*self.model.modules()][-1]
    def after_step(self): self.nets[0].update_parameters(self.model)

def test_averages_that_follow_the_model(tmp_path):
    "A warning names an average in a list of a callback, but no parts of the model"
    message, = resume_warnings(tmp_path, Follows())
    assert '`nets` of Follows' in message and 'head' not in message and 'first' not in message
