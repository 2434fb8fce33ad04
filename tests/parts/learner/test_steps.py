"""Training by steps: what follows from a validation within an epoch is what follows from one at the end of an epoch"""
import warnings
import pytest, torch
from functools import partial
from hypothesis import given, strategies as st
from torch.optim.lr_scheduler import ReduceLROnPlateau as TorchPlateau
from learnkit.loop.callback import Callback
from learnkit.callbacks.trackers import EarlyStoppingCallback, ThresholdStopper
from learnkit.callbacks.trackers import ReduceLROnPlateau
from learnkit.callbacks.trackers import SaveModelCallback
from learnkit.callbacks.monitor import OnBetter, TrackerCallback
from learnkit.callbacks.cycles import ValidateEvery
from learnkit.data.loaders import DataLoaders
from learnkit.measure.metric import Metric
from learnkit.observe.evaluate import Evaluator
from learnkit.callbacks.schedules import TorchScheduler
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.loop.run import null_logger
from toys import at, batches, draws, learner, weights

torch.set_num_threads(1)
nan = float('nan')
quick = draws(4)

class Prescribed(Metric):
    "A metric whose value in each validation is given: number `train_iter/n - 1` of `values`"
    name,lower_better = 'x',True
    def __init__(self, values, n): self.values,self.n = values,n
    def reset(self): self.at = 0
    def accumulate(self, learn): self.at = learn.train_iter
    @property
    def value(self): return self.values[self.at//self.n - 1]

class NoLength:
    "A loader that does not know how many batches it has"
    def __init__(self, dl): self.dl = dl
    def __iter__(self): return iter(self.dl)

class Rows(Callback):
    "What a logger is told: the numbers of each row, with their step"
    order,acts = 62,'nothing'
    def before_fit(self): self.rows = []
    def note(self, row): self.rows.append((self.learn.train_iter, {k:row.get(k) for k in ('train_loss','valid_loss','x')}))
    def after_row(self, row, epoch): self.note(row)
    def after_epoch(self): self.note(self.learn.recorder.history[-1])

def by(values, within, make, tmp_path, n=3, sized=True):
    "A fit whose validations give `values`: at the ends of epochs, or every `n` batches `within` one; and what came of it"
    data,m = batches(n),len(values)
    train = data*(m if within else 1)
    dls = DataLoaders(train if sized else NoLength(train), batches(2, seed=1))
    cb,lrs,rows = make(),[],Rows()
    note = at('after_batch', lambda cb: cb.learn.training and lrs.append((cb.learn.train_iter, cb.learn.opt.hypers[-1]['lr'])))
    learn = learner(dls=dls, metrics=Prescribed(values, n), path=tmp_path, cbs=[cb, rows, note, *[ValidateEvery(f'{n}ba')]*within])
    learn.logger = null_logger
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')   # nothing was saved
        learn.fit(1 if within else m)
    return learn,cb,lrs,list({i:r for i,r in rows.rows}.items())   # a step has one row

saves_best = lambda: SaveModelCallback('x', fname='best')
makers = dict(
    stopping=lambda: EarlyStoppingCallback('x', patience=1), patient=lambda: EarlyStoppingCallback('x', patience=2, min_delta=.5),
    threshold=lambda: ThresholdStopper(-3., 'x', 'min'), plateau=lambda: ReduceLROnPlateau('x', patience=1),
    patient_plateau=lambda: ReduceLROnPlateau('x', patience=2, factor=2), save=saves_best, tracker=lambda: TrackerCallback('x'),
    better=lambda: OnBetter(lambda learn: calls.append(learn.train_iter), 'x'),
    function=lambda: EarlyStoppingCallback(lambda learn: learn.recorder.smooth_loss.value, 'min', patience=2),
    checkpoint=lambda: CheckpointCallback('1000ep', keep=1, best='x', overwrite=True),
    torch=lambda: TorchScheduler(partial(TorchPlateau, patience=0), monitor='x'),
    evaluator=lambda: Evaluator('test', batches(1, seed=2), metrics=[], when_better='x'))
calls = []

def result(cb, learn):
    "What a callback has found, in numbers that the two fits share"
    if isinstance(cb, TrackerCallback): return cb.best, cb.new_best if learn.stop_reason is None else None, getattr(cb, 'wait', None) if learn.stop_reason is None else None
    if isinstance(cb, CheckpointCallback): return sorted(int(p.name[5:13]) for p in cb.folder.glob('step-*') if 'final' not in p.name)[-1:]
    if isinstance(cb, Evaluator): return [r['train_iter'] for r in cb.history]

@pytest.mark.parametrize('name', makers)
@quick
@given(values=st.lists(st.integers(-4, 4).map(float), min_size=2, max_size=6), sized=st.booleans())
def test_a_tracker_listens_to_rows_not_to_epochs(name, values, sized, tmp_path_factory):
    """One epoch that is validated every `n` batches was not the same as epochs of `n` batches: trackers counted the last
    validation of an epoch twice, and some of them did not hear of those within it"""
    res = []
    for within in (False, True):
        calls.clear()
        learn,cb,lrs,rows = by(values, within, makers[name], tmp_path_factory.mktemp('m'), sized=sized or not within)
        res.append((weights(learn).tolist(), lrs, rows, result(cb, learn), [*calls], learn.train_iter))
    for a,b in zip(*res): assert a==b
