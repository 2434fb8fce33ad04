"""What a run puts back, what is there while it ends, and what is said of a Cancel that could end nothing"""
import gc, threading, weakref
import pytest, torch
from torch import nn
from learnkit.loop.callback import Callback
from learnkit.loop.events import CancelBackward, CancelStep
import learnkit.loop.run as run_module
from learnkit.loop.run import NullLogger, null_logger, runs_elsewhere
from toys import at, learner, throw

def test_a_cancel_that_ends_nothing_is_the_cause_of_its_error():
    "With its notes: they may say where it comes from"
    e = CancelStep('enough')
    e.add_note('raised by the scheduler')
    with pytest.raises(RuntimeError, match=r'CancelStep was raised in `before_pred` of `Callback`, epoch 0, batch 0, but no `step` was open') as got: learner().fit(1, cbs=at('before_pred', throw(e)))
    assert got.value.__cause__ is e and 'raised by the scheduler' in got.value.__notes__

def test_the_exception_is_there_until_the_run_has_ended():
    "Also after a validation of `after_exception`: the handlers that follow, and `cleanup`, still find it"
    seen = []
    look = lambda cb: seen.append(type(cb.learn.exc))
    learn = learner(cbs=[at('after_exception', lambda cb: cb.learn.validate()), at('after_exception', look, order=1), at('cleanup', look, lambda cb: cb.mode=='fit')])
    with pytest.raises(ArithmeticError): learn.fit(1, cbs=at('after_batch', throw(ArithmeticError())))
    assert seen==[ArithmeticError]*2 and learn.exc is None

def test_what_is_switched_off_in_a_run_is_on_after_the_outermost():
    "Not after one inside of it; what was off before stays off"
    heard = []
    off,ear = Callback(after_batch=lambda self: None),at('after_batch', lambda cb: heard.append((cb.mode, cb.learn.iter)))
    off.run = False
    learn = learner(n=2, nv=1, cbs=[off, ear])
    def mute(cb): ear.run = False
    learn.validate(cbs=at('before_validate', mute))
    assert ear.run and not off.run and heard==[]
    learn.fit(1, cbs=[at('before_train', lambda cb: cb.learn.validate(cbs=at('before_validate', mute)))])
    assert ear.run and heard==[]

@pytest.mark.parametrize('run', ['fit', 'validate', 'get_preds'])
def test_nothing_of_a_run_stays(run):
    "Neither the callbacks of this run nor the last batch is kept alive"
    class Around(Callback):
        def wrap(self, what, do): return (lambda *args: self.run and do(*args)) if what=='batch' else do
    learn = learner()
    learn.fit(1)
    before = {*vars(learn)}
    cb = Around()
    getattr(learn, run)(*[1]*(run=='fit'), cbs=cb)
    assert {*vars(learn)}==before and 'do_batch' not in before and learn.batch is learn.pred is learn.loss_grad is None
    ref = weakref.ref(cb)
    del cb
    gc.collect()
    assert ref() is None

class Around(nn.Module):
    def __init__(self, module, own=False):
        super().__init__()
        self.module = module
        if own: self.scale = nn.Parameter(torch.ones(1))
    def forward(self, x): return self.module(x)

@pytest.mark.parametrize('fails', [False, True])
@pytest.mark.parametrize('own', [False, True])
def test_a_model_that_was_wrapped_in_a_failed_run_is_unwrapped(fails, own):
    "Unless what is around it has parameters, which would be lost, or the fit ends well: then it was meant"
    learn = learner()
    model = learn.model
    def wrap(cb): cb.learn.model = Around(model, own)
    def end(cb):
        if fails: raise ArithmeticError
    try: learn.fit(1, cbs=[at('before_fit', wrap), at('after_epoch', end)])
    except ArithmeticError: assert fails
    assert (learn.model is model)==(fails and not own) and (learn.model is model or learn.model.module is model)

def test_runs_of_other_threads_are_counted():
    "Of this thread's, none; an open one is told of"
    n,_ = runs_elsewhere()
    learner().fit(1)
    assert runs_elsewhere()[0]==n
    inside,resume = threading.Event(),threading.Event()
    def wait(cb): inside.set(); resume.wait(9)
    t = threading.Thread(target=lambda: learner().fit(1, cbs=at('before_train', wait)))
    t.start()
    assert inside.wait(9) and runs_elsewhere()==(n+1, True)
    resume.set(); t.join()
    assert runs_elsewhere()==(n+1, False)

def test_a_null_logger_is_any_noop():
    def noop(*args): pass
    assert null_logger==noop and null_logger==NullLogger() and null_logger!=print and null_logger(1, a=2) is None

def test_the_first_scope_of_a_cancel_with_two_is_named():
    class Both(CancelStep, CancelBackward): pass
    with pytest.raises(RuntimeError, match='Both was raised in `before_pred` .* but no `step` was open'): learner().fit(1, cbs=at('before_pred', throw(Both())))

def test_after_a_fit_that_ends_in_training_no_module_trains():
    learn = learner(2, 0, cbs=at('after_batch', lambda cb: cb.learn.training or throw(ArithmeticError())()))
    learn.fit(1)
    assert learn.training is False
    with pytest.raises(ArithmeticError): learn.fit(1, cbs=at('after_step', throw(ArithmeticError())))
    assert learn.training is False

def test_inference_is_quiet():
    "It prints no rows, shows no bar over epochs, and computes the loss; afterwards all is as it was"
    seen = []
    learn = learner(cbs=at('before_fit', lambda cb: seen.append((cb.mode, cb.learn.logger is null_logger, cb.learn.create_mbar, cb.learn.current_run.skip_loss))))
    before = learn.logger,learn.create_mbar,learn.current_run.skip_loss
    learn.current_run.skip_loss = True
    learn.validate()
    assert seen==[('validate', True, False, False)] and learn.current_run.skip_loss
    learn.current_run.skip_loss = before[2]
    learn.fit(1)
    assert seen[1:]==[('fit', False, True, False)] and (learn.logger, learn.create_mbar, learn.current_run.skip_loss)==before

def test_why_a_fit_has_stopped_is_known_until_the_next_one():
    "A validation that somebody stops does not change it"
    learn = learner()
    learn.fit(1, cbs=at('after_batch', lambda cb: cb.learn.stop('enough')))
    learn.validate(cbs=at('before_validate', lambda cb: cb.learn.stop('other')))
    assert learn.stop_reason=='enough'
    learn.fit(1)
    assert learn.stop_reason is None

def test_a_callback_may_put_another_exception_in_its_place():
    def another(cb): cb.learn.exc = KeyError('clearer')
    with pytest.raises(KeyError, match='clearer'): learner().fit(1, cbs=[at('after_batch', throw(ArithmeticError())), at('after_exception', another)])

def test_no_fit_runs_inside_of_another_run():
    for run in 'fit','lr_find':
        def inside(cb):
            with cb.learn._run(run): pass
        with pytest.raises(RuntimeError, match='a `fit` inside a running `validate`'): learner().validate(cbs=at('before_validate', inside))
    with pytest.raises(RuntimeError, match='inside a running `validate`'): learner().validate(cbs=at('before_validate', lambda cb: cb.learn.fit(1)))

@pytest.mark.parametrize('run', ['fit','validate','predict'])
def test_only_an_open_predictor_is_spoken_of(run):
    def inside(cb): cb.learn.fit(1)
    learn = learner(cbs=at('before_validate', inside))
    with pytest.raises(RuntimeError, match=f'a `fit` inside a running `{run}`') as e: dict(fit=lambda: learn.fit(1), validate=learn.validate, predict=learn.get_preds)[run]()
    assert ('Predictor' in str(e.value))==(run=='predict')

def test_inference_gives_each_module_its_mode_back():
    learn = learner(model=nn.Sequential(nn.Linear(4, 3), nn.Dropout(.5), nn.Linear(3, 1)))
    learn.model.train(); learn.model[1].eval()
    before = [m.training for m in learn.model.modules()]
    learn.validate(); learn.get_preds()
    assert [m.training for m in learn.model.modules()]==before==[True, True, False, True]

@pytest.mark.parametrize('quiet', [False, True])
@pytest.mark.parametrize('inner', ['validate','get_preds'])
def test_a_run_inside_another_one_has_its_own_listeners(inner, quiet):
    "Neither those of the other mode nor those that are for the outermost run only"
    heard,done = [],[]
    def look(cb):
        if not done: done.append(1); getattr(cb.learn, inner)()
    def hears(**kw): return at('before_validate', lambda cb: heard.append((cb.mode, kw)), **kw)
    outer,everywhere = dict(modes=('fit',)),dict(nested=True)
    learn = learner(cbs=[hears(**outer), hears(**everywhere), *[hears(nested=False)]*quiet, at('before_batch', look)], default_cbs=quiet)
    learn.fit(1)
    mode = dict(validate='validate', get_preds='predict')[inner]
    assert [o for o in heard if o[0]==mode]==[(mode, everywhere)]
    assert [o for o in heard if o[0]=='fit']==[('fit', outer), ('fit', everywhere), *[('fit', dict(nested=False))]*quiet]

def test_an_error_leaves_autograd_as_it_was():
    def off(cb): torch.set_grad_enabled(False); raise ArithmeticError
    try:
        for run in 'fit','validate':
            with pytest.raises(ArithmeticError): getattr(learner(), run)(*[1]*(run=='fit'), cbs=at('after_pred', off))
            assert torch.is_grad_enabled()
    finally: torch.set_grad_enabled(True)

@pytest.mark.parametrize('fails', [False, True])
def test_what_began_last_is_cleaned_up_first(fails):
    order = []
    cbs = [at('cleanup', lambda cb, i=i: order.append(i), order=i) for i in (1,2,3)]
    end = at('after_batch', lambda cb: throw(ArithmeticError())() if fails else None)
    try: learner(cbs=cbs).fit(1, cbs=end)
    except ArithmeticError: assert fails
    assert order==[3,2,1]

def test_only_the_wrappers_of_the_old_one_are_removed():
    "A part of the model that is put in its place, or another optimizer, stays after an error too"
    learn = learner(model=nn.Sequential(nn.Linear(4, 1), nn.Identity()))
    def take(cb): cb.learn.model = cb.learn.model[0]
    part = learn.model[0]
    with pytest.raises(ArithmeticError): learn.fit(1, cbs=[at('before_fit', take), at('after_batch', throw(ArithmeticError()))])
    assert learn.model is part
    class Wrapped:
        def __init__(self, inner, other=None): self.inner,self.other = inner,other
        def __getattr__(self, k): return getattr(self.inner, k)
    for wraps in True,False:
        learn = learner()
        learn.create_opt()
        old = learn.opt
        inner = old if wraps else type(old).__new__(type(old))
        if not wraps: vars(inner).update(vars(old))
        def around(cb): cb.learn.opt = Wrapped(inner)
        with pytest.raises(ArithmeticError): learn.fit(1, cbs=[at('before_train', around), at('after_batch', throw(ArithmeticError()))])
        assert (learn.opt is old)==wraps

def test_other_threads_are_distinguished_from_this_one(monkeypatch):
    "By their numbers, whichever is larger"
    learn = learner()
    monkeypatch.setattr(run_module, 'get_ident', lambda: 5)
    monkeypatch.setattr(run_module, 'n_runs_begun', run_module.Counter({5:3, 4:4}))
    for thread,open_ in ((4, True), (5, False), (6, True)):
        monkeypatch.setattr(run_module, 'thread_of', {learn:thread})
        for mode in 'fit',None:
            learn.mode = mode
            assert runs_elsewhere()==(4, open_ and mode is not None)

def test_a_null_logger_is_no_other_function():
    def abc(): pass
    assert null_logger!=abc and null_logger!=3

def test_handlers_are_looked_up_anew_in_each_run():
    "Also in one that adds no callbacks"
    heard = []
    fit_only = at('after_row', lambda cb: heard.append(cb.mode), modes=('fit',))
    def look(cb):
        with cb.learn._run('validate'): cb.learn('after_row', row={}, epoch=True)
    learner(cbs=[fit_only, at('after_epoch', look)], default_cbs=False).fit(2, cbs=at('before_epoch', lambda cb: cb.learn('after_row', row={}, epoch=True)))
    assert heard==['fit']*2

@pytest.mark.parametrize('fits', [True, False])
def test_a_learner_without_callbacks_is_freed_at_once(fits):
    "Its callbacks refer to it, as fastai's do; nothing else does, so without them no garbage collection is waited for"
    learn = learner()
    if fits:
        with learn.no_bar(), learn.no_logging(): learn.fit(1)
        learn.validate(); learn.get_preds()
        assert learn.batch is learn.pred is learn.loss_grad is None and learn.xb==(None,) and all(p.grad is None for p in learn.model.parameters())
    learn.remove_cbs([*learn.cbs])
    refs = [weakref.ref(o) for o in (learn, learn.model, learn.dls)]
    on = gc.isenabled()
    gc.disable()
    try:
        del learn
        assert [r() for r in refs]==[None]*3
    finally:
        if on: gc.enable()
