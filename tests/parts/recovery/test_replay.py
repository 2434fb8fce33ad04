"""What a replay and a branch say, refuse, and leave alone."""
import warnings
from functools import partial
import pytest, torch
from torch import nn
from torch.utils.data import DataLoader
from learnkit.all import (Callback, CheckpointCallback, CSVLogger, DataLoaders, EMACallback, Learner, LeaveOut, Pausable, Run, SaveModelCallback,
    StepsPerEpoch, runs)
from learnkit.recovery.runs import find_spikes
from learnkit.recovery.file import list_checkpoints, remove_checkpoint

torch.set_num_threads(1)

def made(path, *cbs, every='4ba', p=.5, n=100, bs=8, lr=.01, data=None):
    torch.manual_seed(42)
    x = torch.randn(n, 4)
    if data is not None: x = data(x)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(p), nn.Linear(8, 1))
    learn = Learner(DataLoaders.from_tensors(x, x.sum(1, keepdim=True), bs=bs), model, nn.MSELoss(), lr=lr, path=path, cbs=[CheckpointCallback(every, keep=None), *cbs])
    learn.remove_cb(learn.progress).logger = lambda row: None
    return learn

@pytest.fixture
def run(tmp_path):
    "A run of 20 batches, with checkpoints after each fourth"
    made(tmp_path/'a').fit(2)
    return Run(tmp_path/'a')

def files(path): return {p:p.stat().st_mtime_ns for p in path.rglob('*') if p.is_file()}

def test_the_batch_in_hand(run, tmp_path):
    learn = made(tmp_path/'a')
    at = learn.replay(tmp_path/'a', 6)
    assert (at['train_iter'], at['compared'], at['equal'], len(at['items'])) == (6, 2, 2, 8)
    assert torch.equal(learn.dls.train.dataset[at['items'][0]][0], learn.xb[0][0])
    assert learn.go_on(until='after_loss')['loss'] == run.losses[6] == learn.go_on(1)['loss']
    learn.go_on()
    assert learn.recorder.smooth_loss.raw == run.losses and learn.paused is None

def test_nobody_writes(tmp_path):
    "Loggers, saved models and checkpoints of the Learner rest, also when it goes on to the end"
    class Mine(Callback):
        observes,n = True,0
        def after_batch(self): Mine.n += 1
    cbs = lambda: (CSVLogger(), SaveModelCallback('train_loss'), Pausable() if tmp_path is None else Mine())
    made(tmp_path/'a', *cbs()).fit(2)
    before,n = files(tmp_path),Mine.n
    learn = made(tmp_path/'a', *cbs())
    learn.replay(tmp_path/'a', 7)
    learn.go_on()
    assert files(tmp_path)==before and Mine.n==n

def test_who_looks_on_is_heard(run, tmp_path):
    class Looks(Callback):
        observes,n = True,0
        def after_loss(self): Looks.n += 1
    made(tmp_path/'a').replay(tmp_path/'a', 7, cbs=Looks())
    assert Looks.n==3

@pytest.mark.parametrize('how,words', [(dict(p=.1), 'model.2 is'), (dict(lr=.02), r'lr is \[0.02\]'), (dict(n=60), 'training items is 48 and was 80'), (dict(data=lambda x: x+1), 'training data is')])
def test_another_learner_is_refused(how, words, run, tmp_path):
    learn = made(tmp_path/'a', **how)
    before = [p.clone() for p in learn.model.parameters()]
    with pytest.raises(ValueError, match=words): learn.replay(tmp_path/'a', 6)
    assert all(map(torch.equal, before, learn.model.parameters()))

def test_what_was_called_is_asked_for(tmp_path):
    learn = made(tmp_path/'a'); learn.fit_one_cycle(2, .1)
    again = made(tmp_path/'a')
    with pytest.raises(ValueError, match='fit=partial'): again.replay(tmp_path/'a', 6)
    with pytest.raises(ValueError, match='is 3ep long and was 2ep'): again.replay(tmp_path/'a', 6, fit=partial(again.fit_one_cycle, 3, .1))
    assert again.replay(tmp_path/'a', 6, fit=partial(again.fit_one_cycle, 2, .1))['equal']==2

def test_the_first_loss_that_differs_is_named(run, tmp_path):
    "The data have changed where their fingerprint does not look"
    seen = made(tmp_path/'a'); seen.replay(tmp_path/'a', 6)
    for row in seen.xb[0]:
        learn = made(tmp_path/'a')
        xs = learn.dls.train.dataset.tensors[0]
        xs[(xs==row).all(1)] += 1e-3
        with warnings.catch_warnings(record=True) as w:
            warnings.simplefilter('always')
            try: learn.replay(tmp_path/'a', 7)
            except ValueError as e: assert 'training data is' in str(e); continue   # the fingerprint has seen it
        said = [str(o.message) for o in w if 'to the bit' in str(o.message)]
        assert len(said)==1 and 'is that of step 6' in said[0] and 'the data may have changed' in said[0]
        return
    assert False, 'each item is in the fingerprint'

@pytest.mark.parametrize('step,words', [(20, 'from 0 to 19'), (-1, 'step'), (1.5, 'step')])
def test_no_such_step(step, words, run, tmp_path):
    for f in (made(tmp_path/'a').replay, partial(made(tmp_path/'a').branch, to=tmp_path/'b')):
        with pytest.raises((ValueError, TypeError), match=words): f(tmp_path/'a', step)

def test_a_run_by_the_clock_is_refused(tmp_path):
    made(tmp_path/'a').fit('0.2s')
    with pytest.raises(ValueError, match='depends on the clock'): made(tmp_path/'a').replay(tmp_path/'a', 1)

def test_the_beginning_is_computed_without_a_checkpoint(run, tmp_path):
    for p in list_checkpoints(run.folder)[1:]: remove_checkpoint(p)
    for step in (0, 3):
        learn = made(tmp_path/'a')
        assert learn.replay(tmp_path/'a', step)['equal']==step and learn.go_on(1)['loss']==run.losses[step]

def test_on_beyond_the_last_checkpoint(tmp_path):
    "Where the process died, nothing is recorded, and the batches come again all the same"
    learn = made(tmp_path/'a')
    class Dies(Callback):
        order,observes = 200,True
        def after_batch(self):
            if self.train_iter==7: raise SystemError('the power failed')
    with pytest.raises(SystemError): learn.fit(2, cbs=Dies())
    straight = made(tmp_path/'b'); straight.fit(2)
    again = made(tmp_path/'a')
    assert again.replay(tmp_path/'a', 7)['compared']==0
    assert again.go_on(1)['loss']==straight.recorder.smooth_loss.raw[7]

def test_epochs_of_so_many_steps(tmp_path):
    cbs = lambda: (StepsPerEpoch(7), EMACallback(decay=.9))
    made(tmp_path/'a', *cbs()).fit(3)
    learn = made(tmp_path/'a', *cbs())
    assert learn.replay(tmp_path/'a', 18)['equal']==2 and learn.go_on(1)['loss']==Run(tmp_path/'a').losses[18]

# branches

def test_a_branch_is_a_run_of_its_own(run, tmp_path):
    before = files(tmp_path/'a')
    learn = made(tmp_path/'a', CSVLogger())
    learn.branch(tmp_path/'a', 8, tmp_path/'b', lr=.05)
    branch = Run(tmp_path/'b')
    assert files(tmp_path/'a')==before
    assert branch.losses[:9]==run.losses[:9] and branch.losses[9]!=run.losses[9] and branch.train_iter==20 and branch.finished
    assert branch.parent==(str(run.folder), 8) and branch.interrupted==[] and 'a branch of' in repr(branch) and run.parent is None
    assert (tmp_path/'b'/'history.csv').exists()
    assert dict(zip(runs(tmp_path)['run'], runs(tmp_path)['left_at']))=={str(run.folder):None, str(branch.folder):8}
    assert learn.hparams()['branch step']==8

def test_a_branch_can_be_resumed_and_branched_from(run, tmp_path):
    made(tmp_path/'a').branch(tmp_path/'a', 8, tmp_path/'b', lr=.05)
    for p in list_checkpoints(Run(tmp_path/'b').folder)[:2]: remove_checkpoint(p)
    at = Run(tmp_path/'b').train_iter
    made(tmp_path/'b', lr=.05).fit(2, resume='auto')
    b = Run(tmp_path/'b')
    assert b.parent==(str(run.folder), 8) and b.interrupted==[at] and b.train_iter==20
    made(tmp_path/'b', lr=.05).branch(tmp_path/'b', at, tmp_path/'c')
    assert Run(tmp_path/'c').losses==b.losses and Run(tmp_path/'c').parent==(str(b.folder), at)

def test_batches_are_left_out(run, tmp_path):
    learn = made(tmp_path/'a')
    learn.branch(tmp_path/'a', 8, tmp_path/'b', skip='3ba')
    assert learn.train_iter==20 and learn.train_steps==17 and len(Run(tmp_path/'b').losses)==17
    assert Run(tmp_path/'b').sessions[-1]['skip']=='3ba'

def test_items_are_left_out(run, tmp_path):
    seen = []
    class Seen(Callback):
        observes = True
        def before_batch(self):
            if self.training: seen.append(len(self.xb[0]))
    made(tmp_path/'a').branch(tmp_path/'a', 8, tmp_path/'b', skip=[3, 14], cbs=Seen())
    assert 2<=8*12-sum(seen)<=4   # each once in the second epoch, and in what is left of the first one
    with pytest.raises(ValueError, match='nobody knows'):
        learn = Learner(([(torch.ones(4, 2), torch.ones(4, 1))]*3,), nn.Linear(2, 1), nn.MSELoss(), cbs=LeaveOut(items=[1]))
        with learn.no_bar(), learn.no_logging(): learn.fit(1)

@pytest.mark.parametrize('how,words', [(dict(skip='2ep'), "'20ba'"), (dict(lr=.1, fit=print), '`lr` is for'), (dict(to='a'), 'another folder')])
def test_what_cannot_be_a_branch_is_refused(how, words, run, tmp_path):
    to = how.pop('to', 'b')
    with pytest.raises(ValueError, match=words): made(tmp_path/'a').branch(tmp_path/'a', 8, tmp_path/to, **how)
    learn = made(tmp_path/'a').remove_cb(CheckpointCallback)
    with pytest.raises(ValueError, match='CheckpointCallback'): learn.branch(tmp_path/'a', 8, tmp_path/'c')

# spikes

def planted(path, bad=3, n=400):
    "A run in whose second epoch one item has a target that is much too large"
    learn = made(path, n=n, every='10ba', p=0.)
    learn.dls.train.dataset.tensors[1][bad] *= 1000
    return learn

def test_a_spike_is_found_explained_and_bisected(tmp_path):
    planted(tmp_path/'a').fit(3)
    run,before = Run(tmp_path/'a'),files(tmp_path)
    step = max(run.spikes(), key=lambda s: s['loss'])['step']
    assert run.losses[step]==max(run.losses[50:])
    why = planted(tmp_path/'a').explain_spike(tmp_path/'a', step)
    assert why.items[0]['item']==3 and why.loss==run.losses[step] and why.layers[0]['steps_before']==0 and 'items of the batch' in repr(why)
    total = torch.tensor([i['loss'] for i in why.items]).mean().item()
    assert abs(total-why.loss)<1e-4*why.loss
    assert planted(tmp_path/'a').bisect_spike(tmp_path/'a', step)==[3]
    assert files(tmp_path)==before
    with pytest.raises(ValueError, match='no spike'): planted(tmp_path/'a').bisect_spike(tmp_path/'a', step-1)

def test_spikes_of_noise_are_rare_and_those_of_nan_are_named(run):
    torch.manual_seed(0)
    losses = (2+torch.randn(20_000).abs()).tolist()
    assert len(find_spikes(losses, 8., 50))<=2
    losses[10] = losses[5000] = float('nan'); losses[5001] = losses[7000] = 100.
    assert [i for i,*_ in find_spikes(losses, 8., 50)][:3]==[10, 5000, 7000] and find_spikes([1.]*9, 8., 50)==[] and run.spikes()==[]
