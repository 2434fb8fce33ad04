"""Prefetching changes only when batches are loaded: batches, weights, random numbers, errors and data position stay."""
import gc, signal, sys, threading, time, traceback, weakref
from unittest import mock

import pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler, Sampler, TensorDataset, WeightedRandomSampler

from learnkit.loop.callback import Callback
from learnkit.callbacks import batches as prefetch
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.loop.events import CancelBatch, CancelEpoch, CancelFit, CancelTrain, CancelValid
from learnkit.callbacks.cycles import ValidateEvery
from learnkit.learner.fit import LimitBatches, ShortEpochCallback
from learnkit.callbacks.batches import ItemIndices, get_current_indices
from learnkit.callbacks.batches import Prefetch, PrefetchIterator, is_loaded_by_workers
from learnkit.learner.bars import ProgressCallback
from learnkit.loop.run import null_logger
from learnkit.data.loaders import DataLoaders
from learnkit.learner.learner import Learner
from learnkit.data.device import Transfer
from learnkit.data.nested import leaves
from learnkit.data.seeded import SeededLoader
from toys import at, draws, few, slow, throw, weights

N,BS,PER = 22,4,6

class Quiet(Dataset):
    "A dataset that draws no random numbers"
    def __len__(self): return N
    def __getitem__(self, i): x = torch.tensor([i/N, 1., -i/N, .5]); return x, x.sum()[None]

class Noisy(Quiet):
    "A dataset that draws random numbers"
    def __getitem__(self, i): x,y = super().__getitem__(i); return x + torch.rand(4), y

class Gen(IterableDataset):
    "A dataset without `len`"
    def __iter__(self): return (Quiet()[i] for i in range(N))

def net(): return nn.Sequential(nn.Linear(4, 8), nn.Dropout(.5), nn.Linear(8, 1))

def learner(cbs=None, data=None, model=None, valid=None, **kw):
    torch.manual_seed(42)
    data = data or (lambda: DataLoader(Quiet(), BS, shuffle=True))
    learn = Learner(DataLoaders(data(), (valid or data)()), model or net(), nn.MSELoss(), torch.optim.SGD, lr=.05, **kw)
    learn.remove_cb(ProgressCallback)
    learn.add_cbs(cbs)
    learn.logger = null_logger
    return learn

class Seen(Callback):
    "Records the batches of the loop, and a random number drawn at each"
    order = 2000
    def before_fit(self): self.records = []
    def before_batch(self): self.records.append((self.learn.iter, self.learn.training, self.learn.xb, self.learn.yb, torch.rand(1)))

def flat(b): return torch.cat([o.flatten().float() for o in leaves(b) if isinstance(o, torch.Tensor)])

def run(*cbs, n=2, data=None, **kw):
    "All results of a fit that prefetching could change"
    learn = learner([Seen, *cbs], data, **kw)
    learn.fit(n)
    for it in [getattr(dl, '_iterator', None) for dl in learn.dls]:
        if it is not None: it._shutdown_workers()   # the garbage collector would wait 5 s for each iterator
    assert not prefetching()
    return [(i, t, flat((x, y)).tolist(), r.item()) for i,t,x,y,r in learn.seen.records], weights(learn).tolist(), str(learn.recorder.values), torch.get_rng_state().tolist()

def prefetching(): return [t for t in threading.enumerate() if t.name.startswith('prefetch')]

@pytest.fixture(autouse=True)
def no_thread_is_left():
    assert not prefetching()
    yield
    assert not prefetching()

DATA = dict(quiet=lambda: DataLoader(Quiet(), BS, shuffle=True), generator=lambda: DataLoader(Gen(), BS), tensors=lambda: DataLoader(TensorDataset(torch.rand(N, 4), torch.rand(N, 1)), BS),
            weighted=lambda: DataLoader(Quiet(), sampler=WeightedRandomSampler([1.]*N, N), batch_size=BS), list=lambda: [(torch.ones(4, 4)*i, torch.ones(4, 1)) for i in range(5)],
            function=lambda: (lambda: ((torch.ones(4, 4)*i, torch.ones(4, 1)) for i in range(5))), drop=lambda: DataLoader(Quiet(), BS, drop_last=True), one=lambda: [(torch.ones(4, 4), torch.ones(4, 1))])

@pytest.mark.parametrize('n', [1, 3, 50])
@pytest.mark.parametrize('kind', DATA)
def test_results_equal_those_without_prefetch(kind, n):
    whole = run(data=DATA[kind])
    assert run(Prefetch(n, thread=True), data=DATA[kind])==whole

@pytest.mark.filterwarnings('ignore:Prefetch')
@pytest.mark.parametrize('data', [lambda: DataLoader(Noisy(), BS, shuffle=True), lambda: DataLoader(Quiet(), sampler=Lazy(), batch_size=BS)], ids=['data','sampler'])
def test_no_thread_if_the_loader_draws_random_numbers(data):
    "By default no thread is used for a loader that draws random numbers in this process"
    assert run(Prefetch(), data=data)==run(data=data)

class Lazy(Sampler):
    "Draws each index when it is requested"
    def __len__(self): return N
    def __iter__(self): return (int(torch.randint(N, ())) for _ in range(N))

@few(1)
@pytest.mark.parametrize('persistent', [False, *slow(True)])
@pytest.mark.parametrize('cbs', [(), (lambda: ValidateEvery('3ba'),)], ids=['','validate_every'])
def test_workers(cbs, persistent):
    "With workers a thread is used by default; validation within training works too"
    data = lambda: DataLoader(Noisy(), BS, shuffle=True, num_workers=2, persistent_workers=persistent)
    threads = []
    watch = at('after_batch', lambda cb: threads.append(len(prefetching())))
    assert run(Prefetch(), watch, *(cb() for cb in cbs), data=data)==run(*(cb() for cb in cbs), data=data)
    assert max(threads)>=1

def test_a_lazy_sampler_with_workers():
    dl = DataLoader(Quiet(), BS, sampler=Lazy(), num_workers=1)
    assert not is_loaded_by_workers(dl) and is_loaded_by_workers(SeededLoader(dl, 0))
    assert not is_loaded_by_workers(DataLoader(Quiet(), batch_sampler=BatchSampler(Lazy(), 4, False), num_workers=1))
    assert is_loaded_by_workers(DataLoader(Quiet(), batch_sampler=BatchSampler(RandomSampler(range(N)), 4, False), num_workers=1))
    assert is_loaded_by_workers(DataLoader(Gen(), BS, num_workers=1)) and not is_loaded_by_workers(SeededLoader(DataLoader(Gen(), BS, num_workers=1), 0))
    assert not is_loaded_by_workers(SeededLoader([1, 2], 0)) and not is_loaded_by_workers(DataLoader(Quiet(), BS))

def test_a_stateful_loader_is_not_prefetched():
    "The state of the loader would include batches that are not trained yet"
    class Stateful(DataLoader):
        def state_dict(self): return {}
        def load_state_dict(self, d): pass
    assert not is_loaded_by_workers(Stateful(Quiet(), BS, num_workers=1))

# how far ahead
@draws(15)
@given(st.integers(1, 5), st.integers(0, 9), st.data())
def test_no_further_ahead_than_requested(n, size, data):
    made = []
    def numbers():
        for i in range(size): made.append(i); yield i
    it = PrefetchIterator(numbers(), n)
    stop = data.draw(st.integers(0, size))
    for i in range(stop):
        assert next(it)==i
        for f in it.pending: f.result()
        assert len(made)==min(size, i+1+n)
    if stop==size: assert list(it)==[] and list(it)==[]
    it.close()
    assert not prefetching()

def test_the_first_batch_is_fetched_on_request():
    made = []
    it = PrefetchIterator((made.append(i) or i for i in range(3)), 2)
    assert made==[] and not prefetching()
    assert next(it)==0 and list(it)==[1, 2]
    it.close()

def test_the_next_batch_is_loaded_in_advance():
    "The thread loads the next batch while the loop is busy"
    ready = threading.Event()
    def numbers():
        yield 0
        ready.set()
        yield 1
    it = PrefetchIterator(numbers(), 1)
    next(it)
    assert ready.wait(20)   # before the batch is requested
    assert next(it)==1
    it.close()

# cancels and errors
@pytest.mark.parametrize('cancel,ev', [(CancelBatch,'before_batch'), (CancelBatch,'after_fetch'), (CancelTrain,'after_batch'), (CancelTrain,'before_fetch'), (CancelEpoch,'after_pred'), (CancelFit,'after_batch'),
                                       (CancelTrain,'after_fetch')])
def test_cancels(cancel, ev):
    "Batches fetched ahead are dropped, and the next epoch is complete"
    def bomb(): return at(ev, throw(cancel()), lambda cb: cb.learn.training and cb.learn.epoch==0 and cb.learn.iter==2)
    assert run(bomb(), Prefetch(3, True))==run(bomb())

@pytest.mark.parametrize('ev', ['before_batch','after_batch'])
def test_cancelled_validation(ev):
    def bomb(): return at(ev, throw(CancelValid()), lambda cb: not cb.learn.training and cb.learn.iter==2)
    assert run(bomb(), Prefetch(3, True))==run(bomb())

EVENTS = '''before_fit before_epoch before_train before_fetch after_fetch before_batch before_pred after_loss after_backward after_step after_batch after_train before_validate
            after_validate after_epoch after_fit cleanup'''.split()

@few(10)
@pytest.mark.parametrize('error', [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize('ev', EVENTS)
def test_an_error_at_any_event(ev, error):
    "The thread ends, and a later fit trains as one without Prefetch"
    bomb = at(ev, throw(error('boom')), lambda cb: (cb.learn.iter or 0)==2 or 'batch' not in ev and 'fetch' not in ev and not ev.split('_')[-1] in ('pred','loss','backward','step'))
    learn = learner([Prefetch(2, True), bomb])
    with pytest.raises(error): learn.fit(1)
    assert not prefetching() and learn.batches is None
    learn.remove_cb(bomb)
    plain = learner()
    plain.model.load_state_dict(learn.model.state_dict())
    for l in (learn, plain): torch.manual_seed(1); l.fit(1)
    assert torch.equal(weights(learn), weights(plain))

def fails(e, i=13):
    class Fails(Quiet):
        def __getitem__(self, j):
            if j==i: raise e
            return super().__getitem__(j)
    return Fails()

@pytest.mark.parametrize('workers', [0, 1])
def test_an_error_in_the_dataset_is_raised_at_its_batch(workers):
    "The error is raised at its own batch, with the traceback of the thread or worker"
    done = []
    learn = learner([Prefetch(3, not workers), at('after_batch', lambda cb: done.append(cb.learn.iter))], lambda: DataLoader(fails(KeyError('broken')), BS, num_workers=workers))
    with pytest.raises(KeyError, match='broken') as e: learn.fit(1)
    assert done==[0, 1, 2]
    assert '__getitem__' in ''.join(traceback.format_exception(e.value)) and 'if j==i: raise e' in ''.join(traceback.format_exception(e.value))

@pytest.mark.parametrize('cancel', [CancelBatch, CancelTrain, CancelEpoch, CancelFit])
def test_a_cancel_raised_in_the_dataset(cancel):
    data = lambda: DataLoader(fails(cancel()), BS)
    assert run(Prefetch(3, True), data=data, valid=DATA['quiet'])==run(data=data, valid=DATA['quiet'])

def test_interrupted_while_it_waits():
    "Ctrl-C ends a loop that waits for the thread; at other times it may arrive in a weak reference's callback"
    main = threading.main_thread().ident
    def data():
        yield torch.ones(4, 4),torch.ones(4, 1)
        for _ in range(3000):   # up to half a minute, on a slow machine
            if learn.train_iter and sys._current_frames()[main].f_code is threading.Condition.wait.__code__: break
            time.sleep(.01)
        signal.pthread_kill(main, signal.SIGINT)
        time.sleep(.1)
        yield torch.ones(4, 4),torch.ones(4, 1)
    learn = learner(Prefetch(1, True), lambda: data)
    with pytest.raises(KeyboardInterrupt): learn.fit(1)
    assert not prefetching() and learn.mode is None and learn.train_iter==1

def test_no_batch_is_kept_alive():
    refs = []
    class Fresh:
        def __iter__(self):
            for i in range(6):
                x = torch.randn(4, 4); refs.append(weakref.ref(x)); yield x,x.sum(1, keepdim=True); del x
    alive = []
    gc.disable()
    try:
        learn = learner([Prefetch(2, True), at('before_batch', lambda cb: alive.append(sum(r() is not None for r in refs)))], Fresh)
        learn.fit(2); learn.validate()
        assert max(alive)<=2+2 and sum(r() is not None for r in refs)==0
    finally: gc.enable()

def test_a_deleted_iterator_ends_its_thread():
    it = PrefetchIterator(iter(range(100)), 3)
    next(it)
    del it
    assert not prefetching()

# with other callbacks
@pytest.mark.parametrize('cb', [lambda: ValidateEvery('2ba'), lambda: ShortEpochCallback(.5), lambda: LimitBatches(3, 2), ItemIndices,
                                lambda: at('after_batch', lambda c: c.learn.validate() if c.learn.mode=='fit' and c.learn.training else None),
                                lambda: at('after_fetch', lambda c: setattr(c.learn, 'batch', [o+1 for o in c.learn.batch]))],
                         ids=['validate_every','short','limit','indices','validate','mapped'])
def test_with_other_callbacks(cb): assert run(cb(), Prefetch(2, True))==run(cb())

def test_indices_are_those_of_the_batch():
    got = []
    def note(cb): got.append((cb.learn.indices, (cb.learn.xb[0][:,0]*N).round().int().tolist()))
    run(ItemIndices, at('before_batch', note), Prefetch(3, True))
    assert all(a==b for a,b in got) and got

@pytest.mark.parametrize('inference', [lambda l: l.validate(cbs=Prefetch(2, True)), lambda l: l.get_preds(cbs=Prefetch(2, True)), lambda l: l.get_preds(0, cbs=Prefetch(2, True))])
def test_inference(inference):
    res,plain = inference(learner()),learner()
    with mock.patch.object(Prefetch, 'before_validate', lambda self: None): torch.testing.assert_close(list(res), list(inference(plain)), rtol=0, atol=0)

def test_grad_mode_is_that_of_the_loop():
    "Gradients are enabled in the thread in training and disabled in validation, as for a model in the dataset"
    seen = []
    def data():
        for _ in range(3): seen.append(torch.is_grad_enabled()); yield torch.ones(4, 4),torch.ones(4, 1)
    learner(Prefetch(2, True), lambda: data).fit(1)
    assert seen==[True]*3+[False]*3

def test_the_thread_pins_memory(monkeypatch):
    "The thread pins the batches that it loads, so the loop need not"
    pinned = []
    monkeypatch.setattr(prefetch, 'pin_leaf', lambda o: isinstance(o, torch.Tensor) and pinned.append(threading.current_thread().name) or o)
    class Here(Transfer):
        def __call__(self, b): return b
    def begin(cb): cb.learn.current_run.transfer = Here(torch.device('cpu')); cb.learn.current_run.transfer.stream = 'copies'
    assert run(at('before_train', begin, order=-99), at('before_validate', begin, order=-99), Prefetch(2, thread=True), data=DATA['list'])==run(data=DATA['list'])
    assert pinned.count('prefetch_0')==2*2*2*4 and pinned.count('MainThread')==2*2*2   # the loop fetches the first batch itself

# resuming after a crash
@pytest.mark.filterwarnings('ignore:Prefetch')
@pytest.mark.parametrize('workers,ks', [*slow((0, range(1, 2*PER+1))), (2, (2, 9))])
def test_resume(workers, ks, tmp_path, monkeypatch):
    "The saved data position is that of the last trained batch, not of the last fetched one"
    monkeypatch.setattr('os.fsync', lambda fd: None)
    data = lambda: DataLoader(Noisy(), BS, shuffle=True, num_workers=workers)
    def make(path, *cbs): return learner([CheckpointCallback('1ba'), *cbs], data, path=tmp_path/path)
    def end(learn): learn.fit(2, resume='auto'); return weights(learn).tolist(), learn.recorder.values, torch.get_rng_state().tolist()
    whole = end(make('whole'))
    for k in ks:
        with pytest.raises(SystemError): make(f'{k}', Prefetch(3), at('after_batch', throw(SystemError()), lambda cb: cb.learn.training and cb.learn.train_iter==k, order=999)).fit(2, resume='auto')
        torch.rand(3)
        assert end(make(f'{k}', Prefetch(3)))==whole

def test_a_thread_with_random_data_and_checkpoints_raises(tmp_path):
    with pytest.raises(ValueError, match='num_workers=1'): learner([CheckpointCallback(), Prefetch(2, thread=True)], path=tmp_path).fit(1)
    data = lambda: DataLoader(TensorDataset(torch.rand(N, 4), torch.rand(N, 1)), BS)   # draws no random numbers
    learner([CheckpointCallback(), Prefetch(2, thread=True)], data, path=tmp_path/'b').fit(1)

@pytest.mark.parametrize('bad', [dict(n=0), dict(n=-1), dict(n=1.5), dict(n=True), dict(n='2'), dict(thread='yes'), dict(thread=None), dict(thread=2)])
def test_bad_settings(bad):
    with pytest.raises(ValueError, match='must be'): Prefetch(**bad)

def test_it_warns_once_when_it_has_no_effect():
    with pytest.warns(UserWarning, match='num_workers') as w: learner(Prefetch()).fit(3)
    assert len(w)==1

def test_item_indices_added_within_a_phase():
    "They begin with the next phase; the error was about `batches.replace`, which the user does not call"
    seen,ds = [],TensorDataset(torch.randn(8,4), torch.randn(8,1))
    learn = Learner(DataLoaders(DataLoader(ds, 4)), nn.Linear(4,1), nn.MSELoss())
    def add(cb): cb.learn.add_cb(ItemIndices())
    def note(cb): seen.append(cb.learn.indices)
    learn.fit(2, cbs=[at('after_pred', add, lambda cb: cb.learn.train_iter==0), at('after_pred', note)])
    assert seen==[None, None, [0,1,2,3], [4,5,6,7]]

@pytest.mark.parametrize('keys, kw, want', [(range(8), dict(batch_size=4), [4,5,6,7]), (torch.arange(8), dict(batch_size=4), [4,5,6,7]), (map(str, range(8)), dict(batch_size=4), None), (range(8), dict(batch_size=None), None)],
                         ids=['integers','tensors','texts','single'])
def test_current_indices_are_integers(keys, kw, want):
    "Keys that are texts, and a single index per batch, raised errors about `int`"
    class Keyed(Dataset):
        def __len__(self): return 8
        def __getitem__(self, key): return torch.ones(4),torch.ones(1)
    seen = []
    learn = Learner(DataLoaders(DataLoader(Keyed(), sampler=[*keys], **kw)), nn.Linear(4,1), nn.MSELoss(), cbs=[ItemIndices(), at('after_pred', lambda cb: seen.append(get_current_indices(cb.learn)))])
    learn.fit(1)
    assert seen[-1]==want
