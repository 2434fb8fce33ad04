"""Ctrl-C at lines of the library, and a second one during the cleanup; an exception from calls. Afterwards the state of
the Learner is restored, the weights are those before or after a step, and `fit` works. `sweep.py` has the machinery;
LEARNKIT_SWEEP=1 tries every line."""
import itertools, os, re, signal, sys, threading
from pathlib import Path
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary, finalize

import pytest, torch

import learnkit.loop.signals as interrupts
from learnkit.loop.events import CancelFit
import learnkit.data.locks as locks
from learnkit.recovery.file import FolderLock
from learnkit.loop.signals import interruptibly, uninterrupted
from learnkit.observe.services import Sender
from learnkit.learner.predictor import Predictor
from toys import at, few, learner as toy, throw, weights
from sweep import ROOT, Sweep, Tracer, critical_names, fail, interrupt, learner, reset, runs, sweep


pytestmark = [few(10_000, 2), pytest.mark.skipif(os.name!='posix', reason='signals of POSIX'), pytest.mark.filterwarnings('ignore')]
STEP = int(os.environ.get('LEARNKIT_SWEEP', 0))   # 1: every line; 0: the step of each test

def report(found): return '\n'.join(f'{at}, {where}: {wrong}' for at,(where,wrong) in [*found.items()][:9])

@few(2)
@pytest.mark.parametrize('name,every', [('fit',501), ('validate',311), ('get_preds',401), ('lr_find',901)])
def test_a_few_lines(name, every, tmp_path):
    "Ctrl-C at some lines of the most common runs"
    n,found = sweep(name, tmp_path, STEP or every, critical=False)
    assert n>4 and not found, report(found)

@few(3)
@pytest.mark.parametrize('name,every', [('create_opt',11), ('load_to',19), ('one_cycle',301), ('fine_tune',399), ('find_first',401), ('fit',301), ('predict',101), ('summary',201)])
def test_lines_of_torch_that_set_a_mode(name, every, tmp_path):
    "After Ctrl-C within `no_grad` or `model.to` autograd is on; it used to stay off, and the next fit failed"
    n,found = sweep(name, tmp_path, STEP or every, kind='torch', critical=False)
    assert n>4 and not found, report(found)

@few(1, 2)
@pytest.mark.parametrize('name', runs if STEP else ('validate','fit','checkpoint'))
def test_bytecode_instructions(name, tmp_path):
    "A signal between two instructions: all without a line number, which no sweep over lines reaches, and some more"
    every = (STEP or 1)*Sweep(name, tmp_path, kind='opcode').n//(400 if STEP else 3)
    n,found = sweep(name, tmp_path, max(1, every), kind='opcode', critical=False)
    assert n>3 and not found, report(found)

CORE = 'validate','hand'

@pytest.mark.slow
@pytest.mark.parametrize('name', runs)
def test_lines_of_every_kind_of_run(name, tmp_path):
    "Lines spread over the run, and in the most common runs all lines of critical functions"
    s = Sweep(name, tmp_path)
    n,found = sweep(name, tmp_path, STEP or s.n//6+1, critical=name in CORE or STEP==1)
    assert not found, report(found)

@pytest.mark.slow
@pytest.mark.parametrize('name,first', [('fit', .5), ('fit', .9), ('toolkit', .6), ('lr_find', .4), ('validate', .5), ('checkpoint', .7)])
def test_a_second_ctrl_c_during_the_cleanup(name, first, tmp_path):
    n,found = sweep(name, tmp_path, STEP or 37, first=[int(Sweep(name, tmp_path).n*first)])
    assert n>1 and not found, report(found)

# Known limit: a call that fails in the cleanup leaves that part undone (random state, a temporary callback, a hook)
in_the_end = pytest.mark.xfail(strict=False, reason='a call that fails within the clean-up leaves a part of it undone')

@pytest.mark.slow
@pytest.mark.parametrize('name,every', [('fit',160), *(pytest.param(*o, marks=in_the_end) for o in (('validate',60), ('get_preds',90), ('lr_find',300), ('toolkit',600), ('unchanged',180)))])
def test_a_memory_error_in_any_call(name, every, tmp_path):
    "A MemoryError in a call from the library leaves a usable Learner"
    n,found = sweep(name, tmp_path, STEP or every, fail, 'call', error=(MemoryError,), critical=False)
    assert not found, report(found)

def test_the_critical_functions_exist():
    "Each of their lines is swept; after a rename they would not be, and no other test would fail"
    names = {name for path in Path(ROOT).rglob('*.py') for name in re.findall(r'^ *(?:def|class) (\w+)', path.read_text(encoding='utf-8'), re.M)}
    lost = [o for o in critical_names if not any(re.search(o, name) for name in names)]
    assert not lost

def test_the_sweep_finds_what_breaks(tmp_path, monkeypatch):
    "Without deferred signals, an interrupt in a line that restores state breaks the Learner, and the sweep reports it"
    monkeypatch.setattr(interrupts, '_must_wait', lambda frame: False)
    s = Sweep('validate', tmp_path)
    wrong,t = s.once({4:interrupt()}, check=True, only='_switch_to')   # the last line of the second call, which switches back
    reset()
    assert t.where and wrong

# where Python ignores exceptions

class Owner: "An object that is freed"
CLEARED = dict(key=lambda o: WeakKeyDictionary({o:1}), value=lambda o: WeakValueDictionary({1:o}), set=lambda o: WeakSet([o]), finalizer=lambda o: finalize(o, list))

def free(kind):
    "Press Ctrl-C in the first function that Python calls when an object is freed"
    owner = Owner()
    kept = CLEARED[kind](owner)
    def press(frame, event, arg):
        if event!='call': return
        sys.setprofile(None)
        ctrl_c()
    sys.setprofile(press)
    del owner
    assert sys.getprofile() is None and kept is not None

@pytest.mark.parametrize('kind', CLEARED)
def test_ctrl_c_while_a_weak_reference_is_cleared(kind):
    "In a weakref callback Python would print the interrupt and continue; it is deferred to the next step instead"
    learn = toy(n=4)
    with pytest.raises(KeyboardInterrupt): learn.fit(1, cbs=at('before_batch', lambda cb: free(kind) if cb.learn.train_iter==1 else None))
    assert learn.train_iter==1 and not interrupts.pending
    learn.fit(1)

# deferred signals

def ctrl_c(): signal.raise_signal(signal.SIGINT)

def test_a_deferred_signal_is_handled_at_the_end():
    calls = []
    @uninterrupted
    def work():
        ctrl_c(); calls.append('after')
        try: interruptibly(calls.append, 'not reached')
        finally: calls.append('clean')
    with pytest.raises(KeyboardInterrupt): work()
    assert calls==['after','clean'] and not interrupts.pending

def test_a_third_ctrl_c_is_not_deferred():
    "Two signals are deferred, the third is not, since the cleanup may hang"
    calls = []
    @uninterrupted
    def work():
        for i in range(9): ctrl_c(); calls.append(i)
    with pytest.raises(KeyboardInterrupt): work()
    assert calls==[0, 1] and not interrupts.pending

def test_a_user_handler_is_called_once_and_stays():
    calls = []
    def user_handler(number, frame): calls.append(number)
    old = signal.signal(signal.SIGINT, user_handler)
    try:
        @uninterrupted
        def work(): ctrl_c(); ctrl_c(); calls.append('work')
        work()
        assert calls==['work', signal.SIGINT] and signal.getsignal(signal.SIGINT) is user_handler
    finally: signal.signal(signal.SIGINT, old)

def test_two_signals_are_both_handled():
    calls = []
    old = signal.signal(signal.SIGUSR1, lambda n, f: calls.append(n))
    try:
        @uninterrupted
        def work(): ctrl_c(); signal.raise_signal(signal.SIGUSR1)
        with pytest.raises(KeyboardInterrupt): work()
        assert calls==[signal.SIGUSR1]
    finally: signal.signal(signal.SIGUSR1, old)

def test_an_optimizer_step_is_not_interrupted():
    "Ctrl-C between two updates of a step is deferred to its end"
    class TwoUpdates(torch.optim.SGD):
        def step(self, closure=None):
            for i,p in enumerate(self.param_groups[0]['params']):
                p.data -= self.param_groups[0]['lr']*p.grad
                if not i: ctrl_c()
    learn,plain = toy(opt_func=TwoUpdates),toy()
    with pytest.raises(KeyboardInterrupt): learn.fit(1)
    plain.fit(1, cbs=at('after_batch', throw(CancelFit)))
    assert torch.equal(weights(learn), weights(plain))

def test_handlers_do_not_change_in_another_thread():
    seen,old = [],signal.getsignal(signal.SIGINT)
    @uninterrupted
    def work(): seen.append(signal.getsignal(signal.SIGINT))
    t = threading.Thread(target=work); t.start(); t.join()
    assert seen==[old]

@uninterrupted
def lock_folder(lock, folder):   # as a Learner locks it
    try: interruptibly(lock.acquire, folder)
    finally: lock.release()
def send_all(sender, folder): sender.replace(1, 2); sender.put(3); sender.kept; sender.wait(9)
LOCKS = dict(folder=(FolderLock, lock_folder, lambda lock: locks._acquire_lock.locked() or lock.f),
             sender=(lambda: Sender(lambda o: None), send_all, lambda sender: sender.changed._is_owned()))

@pytest.mark.parametrize('name', LOCKS)
def test_a_lock_is_released(name, tmp_path):
    "If an interrupt arrives where `with lock` ends, Python does not call `__exit__`; the lock is released all the same"
    make,use,held = LOCKS[name]
    def at(i):
        what = make()
        with Tracer({i: ctrl_c}) as t:
            try: use(what, tmp_path)
            except KeyboardInterrupt: pass
        assert not held(what), t.where
        return t.where
    n = next(i for i in itertools.count(1) if not at(i))
    assert n>9

def predictor(learn):
    with Predictor(learn) as predict: predict(torch.ones(4))
RUNS = dict(fit=lambda l: l.fit(1), validate=lambda l: l.validate(), get_preds=lambda l: l.get_preds(), predict=lambda l: l.predict(torch.ones(4)), predictor=predictor)

@pytest.mark.parametrize('end', ['__enter__','__exit__'])
@pytest.mark.parametrize('run', RUNS)
def test_ctrl_c_inside_no_grad(run, end, monkeypatch):
    "`no_grad` is Python code: an interrupt inside it used to leave autograd off, so that later fits failed"
    learn,real = toy(n=2),getattr(torch.no_grad, end)
    def cut(self, *args):
        if learn.mode is None or interrupts._must_wait(sys._getframe(1)): return real(self, *args)
        monkeypatch.undo()
        if end=='__enter__': real(self)
        raise KeyboardInterrupt
    monkeypatch.setattr(torch.no_grad, end, cut)
    try:
        with pytest.raises(KeyboardInterrupt): RUNS[run](learn)
        assert torch.is_grad_enabled() and learn.mode is None
    finally: torch.set_grad_enabled(True)

def test_handlers_that_are_installed_during_a_run_stay():
    "A handler that a callback installs is not replaced at the end"
    def user_handler(number, frame): pass
    @uninterrupted
    def work(): signal.signal(signal.SIGINT, user_handler)
    before = signal.getsignal(signal.SIGINT)
    try:
        work()
        assert signal.getsignal(signal.SIGINT) is user_handler
    finally: signal.signal(signal.SIGINT, before)

def test_a_run_without_an_interrupt_leaves_handlers_alone(tmp_path):
    learn,before = learner(tmp_path, kind=None),signal.getsignal(signal.SIGINT)
    learn.fit(1); learn.validate(); learn.get_preds()
    with learn.unchanged(), learn.no_bar(): pass
    with learn: pass
    assert signal.getsignal(signal.SIGINT) is before and not interrupts._active
