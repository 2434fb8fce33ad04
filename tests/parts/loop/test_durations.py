"""A fit that is told in batches, samples, tokens or hours: how many epochs that is, what goes by it, and how it is resumed"""
import time, warnings
from collections import UserDict
import pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from learnkit.loop.callback import Callback
from learnkit.loop.duration import Time, count_tokens
from learnkit.callbacks.intervals import EveryCallback
from learnkit.callbacks.clock import StopAfter
from learnkit.data.loaders import DataLoaders
from learnkit.loop.events import CancelBatch, CancelEpoch, CancelStep, CancelTrain
from learnkit.learner.fit import LimitBatches
from learnkit.callbacks.accumulate import GradientAccumulation
from learnkit.callbacks.schedules import ParamScheduler
from learnkit.optim.schedule import SchedLin
import learnkit.callbacks.schedules
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.learner.fit import TrainFor
from toys import at, batches, draws, learner, throw, weights

torch.set_num_threads(1)
quick = draws(15)

class NoLength:
    "A loader that does not know how many batches it has"
    def __init__(self, dl): self.dl = dl
    def __iter__(self): return iter(self.dl)

def fitted(n, much, *cbs, sized=True, **kw):
    data = batches(n)
    dls = DataLoaders(data if sized else NoLength(data), batches(2, seed=1))
    learn = learner(dls=dls, cbs=cbs, **{k:kw.pop(k) for k in ('path',) if k in kw})
    learn.fit(much, **kw)
    return learn

line = lambda: ParamScheduler({'lr':SchedLin(.1, 0.)})
def rows(learn): return [(r['epoch'], r['train_loss'], r['valid_loss']) for r in learn.recorder.history]

@quick
@given(a=st.floats(.1, 1e6), b=st.floats(.1, 1e6), n=st.integers(1, 10**6), k=st.integers(2, 1000))
def test_amounts_are_split(a, b, n, k):
    "By one of their unit, which gives a ratio, and by a number; what is counted is rounded down, but not for a rounding error"
    assert Time(a,'s')/Time(b,'s')==a/b and Time(n,'ba')/f'{k}ba'==n/k and Time(.25,'dur')/'0.1dur'==2.5
    assert Time(a,'s')/k==Time(a/k,'s') and Time(a,'dur')/b==Time(a/b,'dur')
    assert Time(n,'ba')/k==Time(n//k,'ba') and Time(3,'ba')/.1==Time(30,'ba')

def test_an_amount_equals_no_other_text():
    "`amount in ('auto', '2ep')` used to raise"
    assert Time('2ep')!='auto' and Time('2ep')!='2' and Time('2ep')=='2ep' and Time('2ep') in ('auto','2ep')

@pytest.mark.parametrize('value', ['500', None, [5]])
def test_a_unit_needs_a_number(value):
    with pytest.raises(TypeError, match=r"must be a number, as in Time\(500, 'ba'\), not"): Time(value, 'ba')

@pytest.mark.parametrize('first', [True, False])
def test_a_batch_that_was_not_fetched_has_no_samples(first):
    "Those of the batch before it used to count again; cancelled as the first one, it raised an error"
    skipped,steps = (0,) if first else (1,2),[]
    skip = at('before_fetch', throw(CancelBatch()), lambda cb: cb.learn.training and cb.learn.iter in skipped)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        learn = fitted(3, '20sp', skip, at('after_step', lambda cb: steps.append(cb.learn.iter)))
    assert len(steps)==5 and len(learn.recorder.history)==2

def test_tokens_of_any_mapping():
    "A tokenizer's batch is not a dict"
    ids = torch.zeros(2, 5, dtype=torch.long)
    assert count_tokens(UserDict(input_ids=ids))==count_tokens((UserDict(mask=torch.ones(2), input_ids=ids), torch.zeros(2)))==10

@quick
@given(n=st.integers(1, 5), total=st.integers(1, 14), sized=st.booleans())
def test_batches(n, total, sized):
    """As many epochs as it takes, the last one broken off and validated; the schedule ends with the last batch; it is the plain
    loop over the first `total` batches"""
    seen = []
    bar = at('before_train', lambda cb: seen.append((cb.learn.n_iter, cb.learn.n_epoch)), order=70)
    learn = fitted(n, f'{total}ba', line(), bar, sized=sized)
    epochs = -(-total//n)
    assert (learn.train_iter, learn.n_epoch, len(learn.recorder.history), learn.pct_train, learn.stop_reason)==(total, epochs, epochs, 1., None)
    assert learn.recorder.hps['lr']==pytest.approx([.1*(1-i/total) for i in range(total)])
    if sized: assert seen==[(min(n, total-e*n), epochs) for e in range(epochs)]
    net,data = learner().model,batches(n)
    for i in range(total):
        x,y = data[i%n]
        net.zero_grad(); nn.functional.mse_loss(net(x), y).backward()
        with torch.no_grad():
            for p in net.parameters(): p -= .1*(1-i/total)*p.grad
    assert torch.allclose(weights(learn), torch.cat([p.detach().flatten() for p in net.parameters()]), atol=1e-6)

@quick
@given(n=st.integers(1, 4), epochs=st.integers(1, 3))
def test_whole_epochs_are_the_same_in_any_unit(n, epochs):
    a,*others = [fitted(n, much, line()) for much in (epochs, f'{epochs}ep', f'{n*epochs}ba', f'{n*epochs*4}sp')]
    for b in others:
        assert torch.allclose(weights(a), weights(b), atol=1e-6) and (a.n_epoch, a.train_iter)==(b.n_epoch, b.train_iter)
        assert [r[0] for r in rows(a)]==[r[0] for r in rows(b)]

@quick
@given(n=st.integers(1, 4), total=st.integers(2, 9), kill=st.integers(1, 8), unit=st.sampled_from(['ba','sp']), sized=st.booleans(), every=st.integers(1, 3))
def test_resume(n, total, kill, unit, sized, every, tmp_path_factory):
    "Killed after any batch, the run goes on to the same end"
    much = f'{total*(4 if unit=="sp" else 1)}{unit}'
    def go(folder, *cbs, **kw):
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            return fitted(n, much, line(), CheckpointCallback(f'{every}ba', folder=folder), EveryCallback(lambda learn: None, '0.3dur'), *cbs, sized=sized, **kw)
    whole = go(tmp_path_factory.mktemp('a'))
    folder = tmp_path_factory.mktemp('b')
    try: go(folder, at('after_batch', throw(SystemError()), lambda cb: cb.learn.training and cb.learn.train_iter==kill, order=200))
    except SystemError: pass
    again = go(folder, resume='auto')
    assert torch.equal(weights(whole), weights(again)) and rows(whole)==rows(again) and whole.recorder.hps['lr']==again.recorder.hps['lr']
    assert (whole.n_epoch, whole.train_iter, whole.pct_train)==(again.n_epoch, again.train_iter, again.pct_train)

def test_a_finished_run_is_made_longer(tmp_path):
    "From 5 to 9 batches, of 3 an epoch: the second part begins a new epoch; another unit is refused"
    kw = dict(path=tmp_path)
    fitted(3, '5ba', CheckpointCallback('1ba'), **kw)
    learn = fitted(3, '9ba', CheckpointCallback('1ba'), resume='auto', **kw)
    assert learn.train_iter==9 and [r['epoch'] for r in learn.recorder.history]==[0, 1, 2, 3] and learn.pct_train==1.
    assert fitted(3, '9ba', CheckpointCallback('1ba'), resume='auto', **kw).train_iter==9
    with pytest.raises(ValueError, match="length of this checkpoint's run is 9ba.*use the same unit"): fitted(3, 4, CheckpointCallback('1ba'), resume='auto', **kw)

def test_time_and_tokens():
    slowly = at('after_batch', lambda cb: time.sleep(.01), lambda cb: cb.learn.training)
    learn = fitted(3, '0.1s', slowly, line())
    assert 3<learn.train_iter<=11 and learn.pct_train==1. and learn.stop_reason in (None, '0.1s of training are done')
    assert len(learn.recorder.history)==learn.n_epoch and learn.recorder.hps['lr'][-1]<.03
    ids = [(torch.zeros(2, 5, dtype=torch.long), torch.zeros(2, 5, dtype=torch.long))]*3
    text = learner(dls=DataLoaders(ids), model=nn.Sequential(nn.Embedding(4, 4), nn.Linear(4, 4)), loss_func=lambda p,y: nn.functional.cross_entropy(p.flatten(0, 1), y.flatten()))
    text.fit('45tok')
    assert text.train_iter==5 and text.n_epoch==2

def test_composes():
    "With limits, other ends, epochs that are left out, accumulation, and cancelled epochs"
    assert fitted(5, '7ba', LimitBatches(2)).recorder.history['epoch']==[0, 1, 2, 3]
    assert fitted(5, '7ba', StopAfter(6)).train_iter==6
    learn = fitted(4, '10ba', line(), start_epoch=1)
    assert learn.train_iter==6 and learn.recorder.hps['lr']==pytest.approx([.1*(1-i/10) for i in range(4, 10)])
    steps = []
    fitted(4, '6ba', GradientAccumulation(8), at('after_step', lambda cb: steps.append(cb.learn.train_iter)))
    assert len(steps)==3   # a batch is not a step
    skip = at('before_epoch', throw(CancelEpoch()), lambda cb: cb.learn.epoch in (1, 2))
    learn = fitted(4, '7ba', skip)
    assert learn.train_iter==7 and [r['epoch'] for r in learn.recorder.history]==[0, 1, 2, 3]

def test_policies():
    for f,kw in (('fit_one_cycle', {}), ('fit_flat_cos', {})):
        learn = learner(4)
        getattr(learn, f)('6ba', **kw)
        assert learn.train_iter==6 and len(learn.recorder.hps['lr'])==6
    learn = learner(4)
    learn.fit_sgdr(2, '2ba', .1)
    assert learn.train_iter==6 and learn.recorder.hps['lr']==pytest.approx([.1, .05, .1, .1*(.5+.5*2**-.5), .05, .1*(.5-.5*2**-.5)])
    split = lambda m: [[m.weight], [m.bias]]
    learn,ends = learner(4, splitter=split),[]
    learn.on('after_fit')(lambda learn: ends.append(learn.train_iter))
    learn.fine_tune('6ba', freeze_epochs='2ba')
    assert ends==[2, 6]
    with pytest.raises(ValueError, match='must be integers, not amounts'): learn.fine_tune('6ba', start_epoch=1)

def test_a_rehearsal_is_short(monkeypatch):
    monkeypatch.setenv('LEARNKIT_LIMIT_BATCHES', '1')
    assert fitted(4, '10ba').train_iter==3

@pytest.mark.parametrize('much,kw,words', [
    ('0.5dur', {}, 'a fit cannot be .0.5dur. long'), ('0ba', {}, 'cannot be'), ('ten', {}, 'is not an amount of training'), ('2000 steps', {}, "did you mean '2000st'"),
    (2.5, {}, '`n_epoch` must be an integer'), ('8sp', dict(start_epoch=1), 'whose length is unknown'), (2, dict(cbs=TrainFor('4ba')), r"write `learn.fit\('4ba'\)`")])
def test_raises(much, kw, words):
    with pytest.raises(ValueError, match=words): fitted(3, much, **kw)

def test_that_never_ends():
    "A fit whose epochs all cancel their training would go on for ever"
    with pytest.raises(RuntimeError, match='1000 epochs in a row trained no batch'): fitted(2, '5ba', at('before_train', throw(CancelTrain())))

def test_a_loader_without_length_needs_no_limit():
    "Schedules asked for `LimitBatches`, though the fit knows how many batches it has"
    assert fitted(4, '6ba', line(), sized=False).recorder.hps['lr']==pytest.approx([.1*(1-i/6) for i in range(6)])

# steps of the optimizer
def by_hand(n, acc, total):
    "At which batch of the run each of `total` steps comes, with a step each `acc` batches and at the end of each epoch of `n`"
    res,epoch = [],0
    while len(res)<total:
        ends = [*range(acc, n, acc), n]
        res += [epoch*n+i for i in ends]
        epoch += 1
    return res[:total]

@quick
@given(n=st.integers(1, 7), acc=st.integers(1, 9), total=st.integers(1, 9), form=st.sampled_from(['batches','items']))
def test_steps(n, acc, total, form):
    "A fit of so many steps ends with the batch that makes the last; StopAfter too; an interval of steps is due then"
    due,steps = [],[]
    accumulate = lambda: GradientAccumulation(f'{acc}ba' if form=='batches' else 4*acc)
    note = at('after_step', lambda cb: steps.append(cb.learn.train_steps))
    learn = fitted(n, f'{total}st', accumulate(), note, EveryCallback(lambda learn: due.append(learn.train_iter), '2st'))
    at_batches = by_hand(n, acc, total)
    assert (learn.train_steps, learn.train_iter, learn.pct_train)==(total, at_batches[-1], 1.) and steps==[*range(1, total+1)]
    assert due==at_batches[1::2]
    learn = fitted(n, 99, accumulate(), StopAfter(f'{total}st'))
    assert (learn.train_steps, learn.train_iter)==(total, at_batches[-1])

@quick
@given(n=st.integers(1, 5), acc=st.integers(1, 3), total=st.integers(2, 6), kill=st.integers(1, 12), every=st.integers(1, 3))
@pytest.mark.slow
def test_steps_resumed(n, acc, total, kill, every, tmp_path_factory):
    "Killed after any batch, the run counts on, and ends at the same step"
    def go(folder, *cbs, **kw):
        due = []
        keep = EveryCallback(lambda learn: due.append(learn.train_steps), '2st')
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            return fitted(n, f'{total}st', GradientAccumulation(f'{acc}ba'), line(), CheckpointCallback(f'{every}ba', folder=folder), keep, *cbs, **kw),due
    whole,due = go(tmp_path_factory.mktemp('a'))
    folder = tmp_path_factory.mktemp('b')
    try: go(folder, at('after_batch', throw(SystemError()), lambda cb: cb.learn.training and cb.learn.train_iter==kill, order=200))
    except SystemError: pass
    again,late = go(folder, resume='auto')
    assert torch.equal(weights(whole), weights(again)) and rows(whole)==rows(again) and whole.recorder.hps['lr']==again.recorder.hps['lr']
    assert (whole.train_steps, whole.train_iter, whole.n_epoch)==(again.train_steps, again.train_iter, again.n_epoch) and due[len(due)-len(late):]==late

def test_what_is_no_step():
    "Batches that are cancelled before it, and a step that is left out; a validation or another fit begins nothing new, or anew"
    learn = fitted(4, 1, at('before_step', throw(CancelStep()), lambda cb: cb.learn.iter==1), at('before_batch', throw(CancelBatch()), lambda cb: cb.learn.training and cb.learn.iter==2))
    assert (learn.train_steps, learn.train_iter)==(2, 4)
    learn.validate()
    assert learn.train_steps==2
    learn.remove_cbs([cb for cb in learn.cbs if cb.name=='callback'])
    learn.fit(1)
    assert learn.train_steps==4

def test_an_interval_of_steps_added_in_the_middle():
    due = []
    add = at('after_batch', lambda cb: cb.learn.add_cb(EveryCallback(lambda learn: due.append(learn.train_steps), '3st')), lambda cb: cb.learn.training and cb.learn.train_iter==4)
    fitted(12, 1, add)
    assert due==[6, 9, 12]
