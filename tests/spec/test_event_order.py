"""The whole of what can happen in a fit, in its order: each subset of a trial before it, cycles, parts of batches, validation inside, evaluators,
safe points and checkpoints is compared with an oracle that was written from a drawing of the loop, not from the code.

Where it differs from that drawing: a trial and a load are made inside `before_fit`, so that all callbacks are set up; a cycle of batches begins
with the first batch of it that is fetched; who validates after an epoch does so in `after_epoch`, when its row is recorded; gradients are
unscaled and clipped at `before_step`, so it is then that they are complete: `after_train_batch` comes with it."""
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
enter = span('after_fetch', 'before_batch')[1:]   # what a batch begins with when it is there

class Ear(Callback):
    "Hears all, before all others; but not when losses are read, as that depends on who reads them"
    order = -1000
    def __init__(self): self.heard = []
    def __call__(self, name, **kw):
        if name!='after_read_losses': self.heard.append((name, self.learn.mode))

def heard(names, tmp_path, n=2):
    learn = learner(3, 2, path=tmp_path, cbs=[makers[k]() for k in names])
    learn.remove_cb(ProgressCallback)
    learn.logger,ear = lambda row: None,Ear()
    learn.add_cb(ear).fit(n)
    return ear.heard

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
    "With any of them on, with all, and with none, where the loop is the core's own"
    for names in (s for s in subsets if len(s)==k):
        assert [e for e,_ in heard(names, tmp_path_factory.mktemp('run'))]==[*oracle(names)], names

class Fails(Callback):
    "Raises an error at the first hearing of an event"
    order,done = 50.5,False
    def __init__(self, at): self.at = at
    def __call__(self, name, **kw):
        if name==self.at and not self.done: self.done = True; raise ArithmeticError(name)

@pytest.mark.slow
def test_after_an_error_anywhere(tmp_path_factory):
    "With all of them on: whatever was raised at whichever event, the next fit is as ever"
    expected = [*oracle(makers)]
    for e in dict.fromkeys(expected):
        learn = learner(3, 2, path=tmp_path_factory.mktemp('run'), cbs=[make() for make in makers.values()]).remove_cb(ProgressCallback)
        learn.logger,ear,fails = lambda row: None,Ear(),Fails(e)
        learn.add_cbs([ear, fails])
        with pytest.raises(ArithmeticError, match=e): learn.fit(2)
        assert learn.mode is None and fails.done
        ear.heard.clear()
        learn.fit(2)
        assert [n for n,_ in ear.heard]==expected, e

def test_the_core_is_independent_of_it(tmp_path):
    "What is added lies between the events of the core, or in a mode of its own; no event of the core is moved, added or lost"
    own = heard([k for k in makers if k!='parts'], tmp_path)
    assert [e for e,mode in own if mode=='fit' and not e.endswith(('after_row','cycle','checkpoint','sanity','validate_all','train_batch'))]==[*oracle(())]

def test_no_module_replaces_what_another_one_added():
    "`learn.unchanged()` is a trial, also where the sanity check, which looks at some batches only, is imported"
    learn = learner()
    before = learn.model.weight.clone()
    with learn.unchanged(): learn.fit(1)
    assert torch.equal(learn.model.weight, before)
