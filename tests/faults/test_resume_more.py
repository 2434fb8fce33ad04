"""A run that is stopped and resumed ends like one that was not stopped, also where an epoch ends otherwise than by its last batch."""
import itertools

import pytest
from torch.utils.data import DataLoader, get_worker_info

from learnkit.all import Callback
from learnkit.callbacks.trackers import EarlyStoppingCallback
from learnkit.callbacks.clock import StopAfter
from learnkit.loop.events import CancelBatch
from learnkit.learner.fit import LimitBatches, ShortEpochCallback
from test_resume import BS, Crash, Noisy, Stream, assert_same, end, fit, learner, stopped
from toys import few, slow

def dies(event, n=1):
    "Ends the run when `event` happens for the `n`th time"
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
    "A fit that was stopped in the middle of an epoch and then killed in its validation: the row of that epoch was lost"
    straight = check(tmp_path, dies(event, 1 if event=='after_fit' else 2), lambda: StopAfter('13ba'), every='1ba')
    assert straight['train_iter']==13 and len(straight['history'])==2

class Skip(Callback):
    "Cancels every third batch before it is fetched: the loader keeps it for the next one"
    order = -50
    def before_fetch(self):
        if self.learn.training and self.learn.iter%3==1: raise CancelBatch

@few(4, 4)
@pytest.mark.parametrize('k', [2, *slow(3, 8, 9)])
@pytest.mark.parametrize('limit', [False, True])
@pytest.mark.parametrize('data', [Noisy, Stream])
def test_batches_cancelled_before_they_were_fetched(k, limit, data, tmp_path):
    "They took nothing from the loader; the resumed run left out as many batches as were cancelled"
    check(tmp_path, dies('after_step', k), Skip, *([lambda: LimitBatches(5)] if limit else ()), n=2, every='1ba', data=lambda: DataLoader(data(), BS))

class Opened(Noisy):
    "Reads from what `worker_init_fn` opens in each worker"
    scale = None
    def __getitem__(self, i): return tuple(self.scale*o for o in super().__getitem__(i))
def open_dataset(worker): get_worker_info().dataset.scale = 2.

@pytest.mark.parametrize('persistent', [False, True])
def test_workers_find_the_data_set_they_were_given(persistent, tmp_path):
    "In `worker_init_fn`, `get_worker_info().dataset` was one around it, so what was set there was not seen"
    data = lambda: DataLoader(Opened(), BS, shuffle=True, num_workers=1, worker_init_fn=open_dataset, persistent_workers=persistent)
    check(tmp_path, Crash(4), n=2, data=data)

class Endless:
    "A sampler without an end, which says when too much is asked of it"
    def __iter__(self):
        for i in itertools.count():
            assert i<200, 'the whole epoch is written down'
            yield i*7 % 26

@pytest.mark.parametrize('workers', [0, 1])
def test_a_sampler_without_an_end(workers, tmp_path):
    "With `LimitBatches` its whole epoch was written down before the first batch"
    check(tmp_path, Crash(7), lambda: LimitBatches(5), n=2, data=lambda: DataLoader(Noisy(), BS, sampler=Endless(), num_workers=workers))

@pytest.mark.parametrize('event', ['after_batch', 'after_train', *slow('after_validate', 'before_epoch')])
@pytest.mark.parametrize('pct', [.5, *slow(.1)])
def test_a_short_epoch_that_was_killed_after_its_last_batch(pct, event, tmp_path):
    n = 2 if event!='after_batch' else 4 if pct==.5 else 1   # the last batch of the first epoch's training
    check(tmp_path, dies(event, n), lambda: ShortEpochCallback(pct), every='1ba')

@pytest.mark.parametrize('event', ['before_save_checkpoint', 'after_save_checkpoint', 'after_fit'])
def test_early_stopping_killed_in_the_final_save(event, tmp_path):
    "The stop was forgotten, and the fit went on for three more epochs"
    n = dict(before_save_checkpoint=4, after_save_checkpoint=3, after_fit=1)[event]
    straight = check(tmp_path, dies(event, n), lambda: EarlyStoppingCallback('valid_loss', comp='max', patience=2), n=6, every='1ep')
    assert len(straight['history'])==3
