"""Logs tell what happened once, and in order: over several fits, over resumed runs, whatever is logged by whom, also while the disk is full.
What a run killed at random moments leaves behind is asked in test_killed_logs.py."""
import csv, errno, io, json, os, random, subprocess, sys, warnings
from collections import Counter
from types import SimpleNamespace

import pytest, torch
from hypothesis import given, settings, strategies as st
from torch import nn

from learnkit.all import (Callback, CheckpointCallback, CSVLogger, EarlyStoppingCallback, Evaluator, ImageLogger, JsonLogger, Learner, LossMonitor, LRMonitor, MetricsLogger,
                          OptimizerMonitor, ReduceLROnPlateau, SaveModelCallback, ThresholdStopper, ValidateEvery, checkpoint_info, list_checkpoints, mae)
from learnkit.observe.csv_logger import parse_csv
from learnkit.observe.log_file import LogFile
from learnkit.observe.tensorboard import TensorBoardLogger
from learnkit.run import null_logger
from test_calls import Reads
from toys import at, batches, learner, slow, throw

class Wrote(MetricsLogger):
    "Keeps what is written"
    def __init__(self): self.got = []
    def write(self, metrics, step): self.got.append((step, *metrics))

def quiet(**kw):
    learn = learner(**kw)
    learn.logger = null_logger
    return learn.remove_cb(learn.progress)

# -- the order of rows

kinds = dict(loss=lambda n: LossMonitor(f'{n}ba'), lr=lambda n: LRMonitor(f'{n}ba'), opt=lambda n: OptimizerMonitor(f'{n}ba', per_layer=False), mid=lambda n: ValidateEvery(f'{n}ba'),
             test=lambda n: Evaluator('test', batches(1), every=f'{n}ba'), own=lambda n: at('after_batch', lambda cb: cb.learn.log_numbers(dict(own=1) if cb.learn.iter%2 else dict(own=cb.learn.loss)),
                                                                                           lambda cb: cb.learn.training and cb.learn.iter%n==0))

@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([*kinds]), st.integers(1, 4)), min_size=1, max_size=4, unique_by=lambda o: o[0]), st.lists(st.integers(1, 3), min_size=1, max_size=3),
       st.integers(1, 5), st.integers(1, 9))
def test_steps_only_grow_over_all_fits(who, fits, n, pending):
    "Rows with tensors wait for the device; those of Python numbers overtook them, and each fit began again with step 1"
    wrote = Wrote()
    learn = quiet(n=n, metrics=mae, cbs=[*(kinds[k](i) for k,i in who), wrote])
    learn.outbox.max_pending = pending
    for f in fits: learn.fit(f)
    steps = [s for s,*_ in wrote.got]
    assert steps==sorted(steps) and steps[-1]==n*sum(fits)
    expected = Counter()
    for k,i in who:
        name = dict(loss='batch_loss', lr='lr', opt='grad_norm', mid='valid_loss', test='test_loss', own='own')[k]
        expected[name] += sum(sum(len(range(0, n, i)) for _ in range(f)) if k=='own' else -(-n*f//i) if k=='opt' else n*f//i for f in fits)
    expected['valid_loss'] += sum(fits)
    got = Counter(name for _,*names in wrote.got for name in names)
    assert all(got[k]==v for k,v in expected.items()), (got, expected)

def test_logging_waits_for_no_device():
    "A number on the device is read when the epoch is over, though Python numbers are logged after it"
    log = at('after_batch', lambda cb: [cb.learn.log_numbers(dict(a=cb.learn.loss)), cb.learn.log_numbers(dict(b=1.))], lambda cb: cb.learn.training)
    read = Reads()
    learn = quiet(n=20, nv=0, cbs=[log, Wrote()])
    learn.fit(1, cbs=Callback(before_train=lambda cb: read.__enter__(), after_exhaust=lambda cb: read.__exit__(None, None, None)))
    assert not read.names and [o[1:] for o in learn.wrote.got if o[1] in 'ab']==[('a',), ('b',)]*20

def test_what_is_logged_is_a_number():
    learn = quiet(cbs=Wrote())
    for v in ('text', None, [1.], torch.ones(2)):
        with pytest.raises(TypeError, match='must be one number to be logged'): learn.log_numbers(dict(a=v))
    learn.log_numbers(dict(a=torch.tensor(2), b=torch.tensor([.5]), c=True))
    assert learn.wrote.got==[(0, 'a', 'b', 'c')]

def test_a_step_that_goes_back_is_refused():
    learn = quiet(cbs=Wrote())
    learn.fit(1)
    with pytest.raises(ValueError, match='steps of a log only grow'): learn('log_metrics', metrics=dict(a=1), step=1)

def test_inference_alone_logs_nothing_but_in_a_fit_it_may():
    log = at('after_validate', lambda cb: cb.learn.log_numbers(dict(here=1)))
    learn = quiet(cbs=[log, Wrote()])
    learn.validate(); learn.get_preds()
    assert not learn.wrote.got
    learn.fit(1, cbs=ValidateEvery('2ba'))
    assert [o for o in learn.wrote.got if 'here' in o]==[(2,'here'), (3,'here')]

def test_images_come_in_order():
    "An image must not overtake the numbers that were logged before it"
    got = []
    class Both(Wrote):
        def write(self, metrics, step): got.append((step, *metrics))
        def log_images(self, images, step): self.learn.outbox.flush(self.learn); got.append((step, *images))
    quiet(cbs=[LossMonitor('1ba'), ImageLogger('1ba', f=lambda learn: dict(x=learn.xb[0].view(4,1,2,2))), Both]).fit(1)
    assert [o for o in got if o[1] in ('batch_loss','x')]==[(i,k) for i in (1,2,3) for k in ('batch_loss','x')]

# -- several fits

@pytest.mark.parametrize('make', [CSVLogger, JsonLogger, lambda: CSVLogger, lambda: JsonLogger])
def test_fine_tune_is_one_log(make, tmp_path):
    "`fine_tune` is two fits; the second one replaced the log of the first: 3 of 5 rows were lost"
    learn = quiet(path=tmp_path)
    learn.splitter = lambda m: [[m.weight], [m.bias]]
    learn.fine_tune(3, freeze_epochs=2, cbs=make())
    log = [cls(cls.__init__.__defaults__[0]) for cls in (CSVLogger, JsonLogger) if (tmp_path/cls.__init__.__defaults__[0]).exists()][0]
    log.learn = learn
    rows = log.read_log()
    assert [r['epoch'] for r in rows]==[0,1,0,1,2] and [r.get('step') for r in rows] in ([None]*5, [3,6,9,12,15])

def test_another_learner_begins_a_new_log(tmp_path):
    for _ in range(2): quiet(path=tmp_path, cbs=[JsonLogger, CSVLogger]).fit(2)
    assert len((tmp_path/'log.jsonl').read_text().splitlines())==2 and len((tmp_path/'history.csv').read_text().splitlines())==3
    learn = quiet(path=tmp_path, cbs=[JsonLogger(append=True), CSVLogger(append=True)])
    learn.fit(1); learn.fit(1)
    assert len(learn.json_logger.read_log())==4 and learn.csv_logger.read_log()['epoch']==[0,1,0,0]

@pytest.mark.parametrize('make', [CSVLogger, JsonLogger])
def test_append_and_resume_are_refused(make, tmp_path):
    "Killed before the first checkpoint, nobody could tell the rows of this run from older ones: they were there twice"
    learn = quiet(path=tmp_path, cbs=[make(append=True), CheckpointCallback('1ba')])
    with pytest.raises(ValueError, match='leave out `append`'): learn.fit(1, resume='auto')
    assert not (tmp_path/'log.jsonl').exists()
