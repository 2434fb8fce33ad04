"""The order of all events of a fit: each subset of sanity check, batch cycles, micro-batches, validation within an
epoch, evaluators, safe points and checkpoints is compared with an oracle that was written from a diagram of the loop,
not from the code.

It differs from that diagram in four points. The sanity check and loading a checkpoint run inside `before_fit`, when all
callbacks are set up. A cycle of batches begins when its first batch has been fetched. Extra validation after an epoch
runs in `after_epoch`, when the row of the epoch is recorded. Gradients are complete at `before_step`, where they are
unscaled and clipped, so `after_train_batch` comes with it."""
from itertools import chain, combinations

import pytest, torch
from learnkit.all import Callback, CheckpointCallback, MicroBatch, ProgressCallback, ValidateEvery
from learnkit.callbacks.cycles import CheckpointEvents, Cycles
from learnkit.observe.evaluate import Evaluator
from learnkit.callbacks.cycles import BatchEvents
from learnkit.observe.evaluate import SanityCheck
from oracle import TRAIN, VALID
from toys import batches, few, learner, slow

torch.set_num_threads(1)
makers = dict(sanity=lambda: SanityCheck(1), cycles=lambda: Cycles('2ba'), parts=lambda: MicroBatch(n=2), inside=lambda: ValidateEvery('2ba'),
              evaluators=lambda: Evaluator('test', batches(1)), points=CheckpointEvents,
              attempts=BatchEvents, checkpoints=lambda: CheckpointCallback('4ba'))
subsets = [*chain.from_iterable(combinations(makers, k) for k in range(len(makers)+1))]
def span(first, last): return TRAIN[TRAIN.index(first):TRAIN.index(last)+1]
fetch,forward   = span('before_fetch', 'after_fetch'),span('before_pred', 'after_loss')
backward,update = span('before_backward', 'after_backward'),span('before_step', 'after_zero_grad')
enter = span('after_fetch', 'before_batch')[1:]   # the events of a batch between its fetch and the forward pass

class EventLog(Callback):
    "Records every event before all other callbacks; except `after_read_losses`, which depends on who reads them"
    order = -1000
    def __init__(self): self.events = []
    def __call__(self, name, **kw):
        if name!='after_read_losses': self.events.append((name, self.learn.mode))

def events_of(names, tmp_path, n=2):
    learn = learner(3, 2, path=tmp_path, cbs=[makers[k]() for k in names])
    learn.remove_cb(ProgressCallback)
    learn.logger,log = lambda row: None,EventLog()
    learn.add_cb(log).fit(n)
    return log.events

def oracle(names, n=2):
    on,done = names.__contains__,0
    end = ['before_fetch', 'after_exhaust']
    def validation(n): return ['before_validate', *VALID*n, *end, 'after_validate']
    yield 'before_fit'
    if on('sanity'): yield from ['before_sanity', *validation(1), 'after_sanity']
    for epoch in range(n):
        yield from ['before_epoch', 'before_train']
        for _ in range(3):
            yield from fetch
            if on('cycles') and done%2==0: yield 'before_cycle'
            yield from enter
            if on('attempts'): yield 'before_train_batch'
            def part(*joint): return ['before_micro_batch', *forward, *joint, *backward, 'after_micro_batch']
            yield from [*part(), *part('after_joint_loss')] if on('parts') else [*forward, *backward]
            yield from [*update[:1], *['after_train_batch']*on('attempts'), *update[1:], 'after_batch']
            done += 1
            if on('inside') and done%2==0: yield from [*validation(2), 'after_row']
            if on('points'): yield 'batch_checkpoint'
            if on('cycles') and done%2==0: yield from ['after_cycle', 'cycle_checkpoint']
            if on('checkpoints') and done%4==0: yield from ['before_save_checkpoint', 'after_save_checkpoint']
        yield from [*end, 'after_train', *validation(2), 'after_epoch']
        if on('evaluators'): yield from ['before_validate_all', *validation(1), 'after_row', 'after_validate_all']
        if on('points'): yield 'epoch_checkpoint'
    yield 'after_fit'
    if on('checkpoints'): yield from ['before_save_checkpoint', 'after_save_checkpoint']
    yield 'cleanup'

@few(10_000, 2)
@pytest.mark.parametrize('k', [*range(3), *slow(*range(3, len(makers))), len(makers)])
def test_each_subset(k, tmp_path_factory):
    "The events are those of the oracle with each subset; with none, the loop is the core's own"
    for names in (s for s in subsets if len(s)==k):
        assert [e for e,_ in events_of(names, tmp_path_factory.mktemp('run'))]==[*oracle(names)], names

class Fails(Callback):
    "Raises an error the first time that it receives an event"
    order,done = 50.5,False
    def __init__(self, at): self.at = at
    def __call__(self, name, **kw):
        if name==self.at and not self.done: self.done = True; raise ArithmeticError(name)

@pytest.mark.slow
def test_after_an_error_anywhere(tmp_path_factory):
    "With all of them on: after an error at any event, the next fit has its usual events"
    expected = [*oracle(makers)]
    for e in dict.fromkeys(expected):
        learn = learner(3, 2, path=tmp_path_factory.mktemp('run'), cbs=[make() for make in makers.values()]).remove_cb(ProgressCallback)
        learn.logger,log,fails = lambda row: None,EventLog(),Fails(e)
        learn.add_cbs([log, fails])
        with pytest.raises(ArithmeticError, match=e): learn.fit(2)
        assert learn.mode is None and fails.done
        log.events.clear()
        learn.fit(2)
        assert [n for n,_ in log.events]==expected, e

def test_extensions_do_not_move_core_events(tmp_path):
    "Added events lie between those of the core, or in their own mode: no event of the core is moved, added or lost"
    own = events_of([k for k in makers if k!='parts'], tmp_path)
    assert [e for e,mode in own if mode=='fit' and not e.endswith(('after_row','cycle','checkpoint','sanity','validate_all','train_batch'))]==[*oracle(())]

def test_no_module_replaces_what_another_one_added():
    "Importing the sanity check does not replace `learn.unchanged()`: it still restores the weights after a fit"
    learn = learner()
    before = learn.model.weight.clone()
    with learn.unchanged(): learn.fit(1)
    assert torch.equal(learn.model.weight, before)
