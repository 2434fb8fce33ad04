"What a run changes is gone at its end, whatever it is, and however runs are nested, copied or interrupted"
import copy, pickle, threading
import pytest, torch
from hypothesis import given, strategies as st
from learnkit.all import Callback
from learnkit.loop.current_run import BatchState, _lasting, _registered, state_names
from toys import at, draws, learner

own = sorted({*state_names, *_registered} - {'mode','training','batches','do_fetched','do_batch'})   # the loop needs these as they are
missing = object()
def state(learn): return {k:v for k,v in vars(learn.current_run).items()}
def same(a, b): return a.keys()==b.keys() and all(a[k] is b[k] for k in a)

@given(names=st.sets(st.sampled_from(own), min_size=1), event=st.sampled_from(['before_validate','after_fetch','before_batch','after_batch','after_validate']),
       where=st.sampled_from(['before_fit','before_batch','after_loss','after_step','after_batch','after_epoch']))
@draws(30)
def test_whatever_a_validation_sets_is_not_seen_outside(names, event, where):
    "Of all attributes of a run, those that features have registered too"
    seen = []
    def spoil(cb):
        for name in names: setattr(cb.learn.current_run, name, missing)
        raise ZeroDivisionError
    def validate(cb):
        if seen or cb.mode!='fit': return
        run,before = cb.learn.current_run,state(cb.learn)
        with pytest.raises(ZeroDivisionError): cb.learn.validate(cbs=at(event, spoil))
        after = state(cb.learn)
        if 'stop_reason' in names: after.pop('stop_reason'); before.pop('stop_reason', None)   # a validation may end its fit
        run.stop_reason = None
        seen.append(cb.learn.current_run is run and same(before, after))
    learn = learner(2, 1, cbs=at(where, validate))
    learn.fit(1)
    assert seen==[True] and learn.mode is None and learn.current_run.outer is None

def test_a_fit_leaves_how_far_it_came_and_nothing_else():
    learn = learner(3, 2)
    rest,before = learn.current_run,state(learn)
    learn.fit(2)
    assert learn.current_run is rest and (learn.epoch, learn.n_epoch, learn.train_iter, learn.train_steps)==(1, 2, 6, 6)
    changed = {k for k,v in state(learn).items() if before.get(k, missing) is not v}
    assert changed <= {*_lasting, *BatchState.__annotations__}
    assert {k:v for k,v in state(learn).items() if k in BatchState.__annotations__}==dict(dict.fromkeys(BatchState.__annotations__), xb=(None,), yb=(None,))

def test_a_fit_within_a_run_raises_and_changes_nothing():
    seen = []
    def refused(cb):
        before = state(cb.learn)
        with pytest.raises(RuntimeError, match='a `fit` inside a running'): cb.learn.fit(3)
        seen.append(same({k:v for k,v in before.items() if k!='paused'}, {k:v for k,v in state(cb.learn).items() if k!='paused'}))
    learn = learner(2, 1, cbs=at('after_loss', refused))
    learn.fit(1)
    learn.validate()
    assert len(seen)==4 and all(seen) and learn.n_epoch==1

@pytest.mark.parametrize('event', ['before_fit','after_pred','after_loss','after_step','after_epoch'])
def test_a_copy_made_in_a_run_is_a_learner_at_rest(event):
    "It can be trained at once; the run continues as if there were no copy"
    copies = []
    def take(cb):
        if not copies and cb.mode=='fit': copies.append((copy.deepcopy(cb.learn.model), copy.deepcopy(cb.learn)))
    learn,plain = learner(3, 2, cbs=at(event, take)),learner(3, 2)
    learn.fit(1); plain.fit(1)
    assert torch.equal(learn.model.weight, plain.model.weight)
    model,clone = copies[0]
    assert clone.mode is None and clone.current_run.outer is None and not clone.training and clone.batches is None and clone.pred is None
    assert torch.equal(clone.model.weight, model.weight)
    clone.validate()
    clone.fit(1)
    assert clone.train_iter==3 and learn.train_iter==3

class Keeps(Callback):
    "A callback that a file can have"
    def after_loss(self): self.last = self.learn.loss

@pytest.mark.parametrize('fit', ['fit','validate','get_preds'])
def test_a_learner_and_its_callback_are_pickled_after_a_run(fit):
    learn = learner(3, 2, cbs=Keeps)
    getattr(learn, fit)(*[1]*(fit=='fit'))
    for again in (pickle.loads(pickle.dumps(learn)), pickle.loads(pickle.dumps(learn.keeps)).learn):
        assert again.train_iter==learn.train_iter and again.keeps.learn is again and again.current_run.do_batch==again._do_one_batch
        again.fit(1)

def test_a_thread_that_predicts_has_a_run_of_its_own():
    learn,other = learner(3, 2),learner(3, 2)
    modes = []
    def predict(): other.get_preds(cbs=at('after_pred', lambda cb: modes.append((cb.mode, learn.mode))))
    def start(cb):
        t = threading.Thread(target=predict); t.start(); t.join()
    learn.fit(1, cbs=at('after_step', start, lambda cb: not modes))
    assert {*modes}=={('predict','fit')} and other.mode is learn.mode is None
