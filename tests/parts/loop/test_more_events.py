"""`after_exhaust` and the events of `BatchEvents`, with micro-batches, attempts after out-of-memory errors, early ends and validation in between"""
import pytest, torch
from learnkit.all import (Callback, CancelBatch, CancelTrain, GradientAccumulation, GradientClip, L, LimitBatches, MicroBatch, MixedPrecision, OverfitBatches,
                          SanityCheck, ValidateEvery, event)
from learnkit.callbacks.cycles import CheckpointEvents, Cycles
from learnkit.callbacks.cycles import BatchEvents
from learnkit.recovery.nan import ReplayOnOOM
from learnkit.recovery.nan import SkipNaN
from toys import at, batches, learner, throw, weights

torch.set_num_threads(1)
ours = 'after_exhaust','before_train_batch','after_train_batch'

class Ear(Callback):
    "Records all events, before other callbacks handle them"
    order = -1000
    def __init__(self): self.heard = []
    def __call__(self, name, **kw): self.heard.append((name, self.learn.mode, self.learn.training))

def heard(*cbs, run=lambda learn: learn.fit(2), n=3, **kw):
    learn = learner(n, 2, cbs=[BatchEvents(), *cbs, ear := Ear()], **kw)
    run(learn)
    return ear.heard

def names(*args, **kw): return [n for n,*_ in heard(*args, **kw)]

@pytest.mark.parametrize('make', [tuple, lambda: (ValidateEvery('2ba'),), lambda: (LimitBatches(2, 1),), lambda: (OverfitBatches(1),), lambda: (LimitBatches(2), ValidateEvery('1ba')),
                                  lambda: (at('after_fetch', throw(CancelBatch())),)])
def test_each_fetch_is_closed_once(make):
    "Each `before_fetch` is followed by `after_fetch` or `after_exhaust`, and each phase ends with the latter"
    evs = names(*make())
    fetches = [e for e in evs if e in ('before_fetch','after_fetch','after_exhaust')]
    assert fetches[::2]==['before_fetch']*(len(fetches)//2) and 'before_fetch' not in fetches[1::2]
    assert evs.count('after_exhaust')==evs.count('after_train')+evs.count('after_validate')

@pytest.mark.parametrize('run,modes', [(lambda l: l.fit(1), {'fit'}), (lambda l: l.validate(), {'validate'}), (lambda l: l.get_preds(), {'predict'})])
def test_modes(run, modes):
    evs = heard(run=run)
    assert {m for n,m,_ in evs if n=='after_exhaust'}==modes
    assert all(training for n,_,training in evs if n in ours[1:]) and ('before_train_batch' in [n for n,*_ in evs])==(modes=={'fit'})

def test_not_when_something_else_ends_the_phase():
    assert names(at('after_batch', throw(CancelTrain()), run_valid=False)).count('after_exhaust')==2   # those of the validations
    assert names(run=lambda l: l.fit(2, cbs=at('after_batch', lambda cb: cb.learn.stop(), run_valid=False))).count('after_exhaust')==1

def test_a_cancel_where_there_is_no_batch():
    "An error, like every Cancel outside of its scope; other Cancels end theirs"
    with pytest.raises(RuntimeError, match='CancelBatch was raised in `after_exhaust`.*no `batch` was open'): names(at('after_exhaust', throw(CancelBatch())))
    evs = names(at('after_exhaust', throw(CancelTrain()), lambda cb: cb.training))
    i = evs.index('after_exhaust')
    assert evs[i:i+3]==['after_exhaust','after_cancel_train','after_train']

def test_an_empty_loader_is_an_error():
    learn = learner(1, 0, cbs=BatchEvents)
    learn.dls.loaders[0] = []
    with pytest.raises(ValueError, match='yielded no batch'): learn.fit(1)

@pytest.mark.parametrize('make,steps', [(tuple, 3), (lambda: (MicroBatch(2),), 3), (lambda: (GradientAccumulation(8),), 2), (lambda: (MicroBatch(1), GradientAccumulation(12)), 1),
                                        (lambda: (ReplayOnOOM(),), 3)])
def test_once_a_batch_and_once_a_step(make, steps):
    "In one part or several, in one attempt or several"
    evs = names(*make(), run=lambda l: l.fit(1))
    assert (evs.count('before_train_batch'), evs.count('after_train_batch'))==(3, steps)==(3, evs.count('after_step'))
    for i,e in enumerate(evs):
        if e=='after_train_batch': assert evs[i-1]=='before_step' and evs[i+1]=='after_step'
        if e=='before_train_batch': assert evs[i-1]=='before_batch' and evs[i+1] in ('before_pred','before_micro_batch')

def test_gradients_are_complete():
    "They are as the step uses them: of all parts, unscaled, clipped"
    got = []
    def grads(*cbs, **kw):
        learner(1, cbs=[BatchEvents(), *cbs, Callback(after_train_batch=lambda cb: got.append(cb.learn.model.weight.grad.clone()))]).fit(1)
        return got.pop()
    plain = grads()
    assert torch.allclose(grads(MicroBatch(1)), plain, atol=1e-6) and torch.allclose(grads(MixedPrecision('fp16', init_scale=1024.)), plain, atol=.1)
    assert grads(GradientClip(1e-3)).norm()<=1.001e-3 and not got

def test_attempts():
    told = []
    def full(cb):
        if cb.learn.training and len(cb.learn.x)>1: raise torch.OutOfMemoryError('full')
    cb = type('Told', (Callback,), dict(before_train_batch=lambda self, attempt: told.append((self.learn.train_iter, attempt))))
    with pytest.warns(UserWarning, match='out of memory'): evs = names(ReplayOnOOM(), at('after_pred', full), cb, run=lambda l: l.fit(1))
    assert told==[(0,0), (0,1), (0,2), (1,0), (2,0)] and evs.count('after_train_batch')==3

def test_a_skipped_batch_has_no_complete_gradients():
    class Bad(torch.nn.MSELoss):
        n = 0
        def forward(self, *args): self.n += 1; return super().forward(*args)*(float('nan') if self.n==2 else 1)
    assert names(SkipNaN(), loss_func=Bad(), run=lambda l: l.fit(1)).count('after_train_batch')==2

@pytest.mark.parametrize('ev', ours)
@pytest.mark.parametrize('exc', [KeyboardInterrupt, ZeroDivisionError])
def test_an_exception_leaves_no_trace(ev, exc):
    learn,plain = learner(cbs=[BatchEvents, cb := at(ev, throw(exc('boom')))]),learner()
    with pytest.raises(exc): learn.fit(1)
    learn.remove_cb(cb)
    learn.model.load_state_dict(plain.model.state_dict())
    learn.fit(1, reset_opt=True); plain.fit(1)
    assert torch.equal(weights(learn), weights(plain))

def test_switched_off_or_removed():
    for leave in (lambda cb: setattr(cb.learn.batch_events, 'run', False), lambda cb: cb.learn.remove_cb(BatchEvents)):
        evs = names(at('before_validate', leave), run=lambda l: l.fit(1))
        assert [e for e in evs if e in ours[1:]]==['before_train_batch','after_train_batch']*3 and evs.count('after_exhaust')==2

def test_without_it_nothing_is_added():
    with_it = [e for e in names() if e not in ours[1:]]
    learn = learner(3, 2, cbs=(ear := Ear()))
    learn.fit(2)
    assert [n for n,*_ in ear.heard]==with_it and all(e in event for e in ours)

def test_is_update():
    "It says before each batch whether the optimizer will step, for any sizes"
    for n_acc in (4, 6, 8, 9, 20):
        said,made = [],[]
        learner(5, cbs=[GradientAccumulation(n_acc), at('before_pred', lambda cb: said.append(cb.learn.is_update), run_valid=False),
                        at('after_step', lambda cb: made.append(cb.learn.train_iter))]).fit(1)
        assert [i for i,s in enumerate(said) if s]==[i for i in made if i<5]
    assert learner().is_update

@pytest.mark.parametrize('make', [lambda: SanityCheck(2), lambda: BatchEvents(), lambda: [CheckpointEvents(), Cycles('2ba')], lambda: MicroBatch(2), lambda: ValidateEvery('2ba')])
def test_the_list_has_them_where_they_happen(make, capsys):
    "And says whose they are; those of callbacks that the Learner does not have are left out"
    heard = []
    class All(Callback):
        order = -1000
        def __call__(self, name, **kwargs):
            if (self.learn.mode=='fit' or name.endswith('_sanity')) and name not in heard: heard.append(name)
    learn = learner(n=4, nv=1, cbs=[All(), *L(make())])
    learn.fit(1)
    heard.remove('cleanup')
    lines = learn.show_training_loop().splitlines()
    shown = [l.split()[0] for l in lines]
    found = [n for n in shown if n in heard and n not in ('after_read_losses','after_row','before_cycle','after_joint_loss')]   # read when there is time; of a batch or an epoch
    assert found==[n for n in heard if n in found] and {*heard} <= {*shown}
    assert {n for n in shown if event.fired_by[n]} <= {*heard, 'after_row', 'nonfinite_loss', 'before_replay'}
    for l in lines:
        if by := event.fired_by[l.split()[0]]: assert l.endswith(f'(fired by {by})')
