"""A run that is killed and resumed ends like an uninterrupted one, even if an epoch ends before its last batch."""
import itertools, warnings
from datetime import timedelta

import pytest, torch
from torch import distributed as dist
from torch.utils.data import DataLoader, Subset, get_worker_info

from learnkit.all import Callback
from learnkit.callbacks.trackers import EarlyStoppingCallback
from learnkit.callbacks.clock import StopAfter
from learnkit.loop.events import CancelBatch
from learnkit.learner.fit import LimitBatches, ShortEpochCallback
from test_resume import BS, N, PER, Crash, Noisy, Stream, assert_same, end, fit, learner, stopped
from toys import few, slow

def dies(event, n=1):
    "A callback that kills the run when `event` happens for the `n`th time"
    seen = []
    def crash(self, **kwargs):
        if self.learn.mode!='fit': return
        seen.append(event)
        if len(seen)==n: raise SystemError('the power failed')
    cb = Callback(**{event:crash})
    cb.order,cb.acts = 10_000,'nothing'
    return cb

def check(tmp_path, crash, *cbs, n=3, **kwargs):
    straight = end(fit(learner(tmp_path/'a', cbs, **kwargs), n))
    assert_same(straight, end(stopped(lambda: learner(tmp_path/'b', cbs, **kwargs), crash, n=n)))
    return straight

@pytest.mark.parametrize('event', ['after_train', *slow('before_validate', 'after_validate'), 'after_epoch', *slow('after_fit')])
def test_stopped_within_an_epoch(event, tmp_path):
    "A fit stopped in the middle of an epoch and killed in its validation used to lose the row of that epoch"
    straight = check(tmp_path, dies(event, 1 if event=='after_fit' else 2), lambda: StopAfter('13ba'), every='1ba')
    assert straight['train_iter']==13 and len(straight['history'])==2

class Skip(Callback):
    "Cancels every third batch before it is fetched: the loader keeps it for the next one"
    order = -50
    def before_fetch(self):
        if self.learn.training and self.learn.iter%3==1: raise CancelBatch

@few(2, 3)
@pytest.mark.parametrize('k', [2, *slow(3, 8, 9)])
@pytest.mark.parametrize('limit', [False, True])
@pytest.mark.parametrize('data', [Noisy, Stream])
def test_batches_cancelled_before_they_were_fetched(k, limit, data, tmp_path):
    "They take nothing from the loader, but a resumed run used to skip as many batches as were cancelled"
    check(tmp_path, dies('after_step', k), Skip, *([lambda: LimitBatches(5)] if limit else ()), n=2, every='1ba', data=lambda: DataLoader(data(), BS))

class Opened(Noisy):
    "Uses an attribute that `worker_init_fn` sets in each worker"
    scale = None
    def __getitem__(self, i): return tuple(self.scale*o for o in super().__getitem__(i))
def open_dataset(worker): get_worker_info().dataset.scale = 2.

@pytest.mark.parametrize('persistent', [False, True])
@few(1)
def test_workers_get_the_dataset_of_the_user(persistent, tmp_path):
    "`get_worker_info().dataset` was a wrapper, so attributes that `worker_init_fn` set were lost"
    data = lambda: DataLoader(Opened(), BS, shuffle=True, num_workers=1, worker_init_fn=open_dataset, persistent_workers=persistent)
    check(tmp_path, Crash(4), n=2, data=data)

class Fixed(Noisy):
    "Draws no random numbers"
    def __getitem__(self, i): return torch.full((4,), i/N),torch.ones(1)

def in_workers(persistent=True, shuffle=False): return DataLoader(Fixed(), BS, shuffle=shuffle, num_workers=1, persistent_workers=persistent)

@few(1, 3)
@pytest.mark.parametrize('k', [PER+2, *slow(3, 2*PER+1)])
@pytest.mark.parametrize('shuffle', [False, True])
@pytest.mark.parametrize('training', [0, *slow(1)])
def test_workers_of_the_validation_persist(k, shuffle, training, tmp_path):
    "Validation workers of a resumed run start again and draw a seed, which silently reordered later epochs"
    data = lambda: DataLoader(Noisy(), BS, shuffle=True, num_workers=training, persistent_workers=training>0)
    check(tmp_path, Crash(k), n=4, data=data, valid=lambda: in_workers(shuffle=shuffle))

@pytest.mark.parametrize('k', [PER+3, *slow(2*PER+3)])
def test_workers_of_the_validation_live_on_in_this_process(k, tmp_path):
    "At the resume this process has workers of a later validation; the next one uses them as at the checkpoint"
    def learners(path):
        shared = in_workers(shuffle=True)
        return lambda: learner(path, every='7ba', valid=lambda: shared)
    straight = end(fit(learners(tmp_path/'a')()))
    assert_same(straight, end(stopped(learners(tmp_path/'b'), Crash(PER, 'after_validate', valid=True), Crash(k))))

@pytest.mark.parametrize('data,persistent,word', [(Noisy, True, 'validation data: its workers persist'), (Noisy, False, None), (Fixed, True, None)])
def test_workers_of_the_validation_that_draw_and_persist_are_warned_of(data, persistent, word, tmp_path):
    valid = lambda: DataLoader(data(), BS, num_workers=1, persistent_workers=persistent)
    def run(): fit(learner(tmp_path, valid=valid), 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        run()
    caught = [str(w.message) for w in caught if 'resumed' in str(w.message)]
    assert len(caught)==(word is not None) and all(word in text for text in caught), caught

def _resumed_in_two(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'file://{folder}/store', rank=rank, world_size=2, timeout=timedelta(seconds=60))
    try:
        def make(name): return learner(folder/name, data=lambda: DataLoader(Subset(Fixed(), range(24)), BS, shuffle=True), valid=lambda: in_workers(shuffle=True))
        straight = end(fit(make('a')))
        shared = {k:straight[k] for k in ('model','opt','history')}   # each process has losses of its own
        assert_same(shared, end(stopped(lambda: make('b'), Crash(5))))
    finally: dist.destroy_process_group()

@pytest.mark.slow
def test_workers_of_the_validation_of_two_processes_persist(tmp_path):
    "A loader that starts workers iterates its sampler twice, and process 0 drew the validation order each time"
    torch.multiprocessing.start_processes(_resumed_in_two, (tmp_path,), nprocs=2, start_method='fork')

class Endless:
    "An infinite sampler that fails after 200 indices"
    def __iter__(self):
        for i in itertools.count():
            assert i<200, 'the whole epoch is written down'
            yield i*7 % 26

@pytest.mark.parametrize('workers', [0, 1])
def test_a_sampler_without_an_end(workers, tmp_path):
    "With `LimitBatches` the sampler's whole epoch used to be listed before the first batch"
    check(tmp_path, Crash(7), lambda: LimitBatches(5), n=2, data=lambda: DataLoader(Noisy(), BS, sampler=Endless(), num_workers=workers))

@pytest.mark.parametrize('event', ['after_batch', 'after_train', *slow('after_validate', 'before_epoch')])
@pytest.mark.parametrize('pct', [.5, *slow(.1)])
def test_a_short_epoch_that_was_killed_after_its_last_batch(pct, event, tmp_path):
    n = 2 if event!='after_batch' else 4 if pct==.5 else 1   # the last batch of the first epoch's training
    check(tmp_path, dies(event, n), lambda: ShortEpochCallback(pct), every='1ba')

@pytest.mark.parametrize('event', ['before_save_checkpoint', 'after_save_checkpoint', 'after_fit'])
def test_early_stopping_killed_in_the_final_save(event, tmp_path):
    "The stop was lost, and the resumed fit continued for three more epochs"
    n = dict(before_save_checkpoint=4, after_save_checkpoint=3, after_fit=1)[event]
    straight = check(tmp_path, dies(event, n), lambda: EarlyStoppingCallback('valid_loss', comp='max', patience=2), n=6, every='1ep')
    assert len(straight['history'])==3
