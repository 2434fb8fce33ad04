"""Ctrl-C at every line of the library, and once more while the first is cleaned up after; an exception from every call: afterwards the Learner
is as it was, weights are those before or after a step, and `fit` works. `sweep.py` does it; LEARNKIT_SWEEP=1 is at every line."""
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
STEP = int(os.environ.get('LEARNKIT_SWEEP', 0))   # 1: at every line, 0: as each test says

def told(found): return '\n'.join(f'{at}, {where}: {wrong}' for at,(where,wrong) in [*found.items()][:9])

@few(2)
@pytest.mark.parametrize('name,every', [('fit',501), ('validate',311), ('get_preds',401), ('lr_find',901)])
def test_a_few_lines(name, every, tmp_path):
    "Some lines of the commonest runs"
    n,found = sweep(name, tmp_path, STEP or every, critical=False)
    assert n>4 and not found, told(found)

@few(3)
@pytest.mark.parametrize('name,every', [('create_opt',11), ('load_to',19), ('one_cycle',301), ('fine_tune',399), ('find_first',401), ('fit',301), ('predict',101), ('summary',201)])
def test_lines_of_torch_that_set_a_mode(name, every, tmp_path):
    "Ctrl-C within `no_grad`, in `model.to`, before a fit began: autograd stayed off, and the next fit failed"
    n,found = sweep(name, tmp_path, STEP or every, kind='torch', critical=False)
    assert n>4 and not found, told(found)

@few(1, 2)
@pytest.mark.parametrize('name', runs if STEP else ('validate','fit','checkpoint'))
def test_instructions(name, tmp_path):
    "A signal comes between two instructions: all of those without a line number, which no sweep over lines reaches, and a few of the others"
    every = (STEP or 1)*Sweep(name, tmp_path, kind='opcode').n//(400 if STEP else 3)
    n,found = sweep(name, tmp_path, max(1, every), kind='opcode', critical=False)
    assert n>3 and not found, told(found)

CORE = 'validate','hand'

@pytest.mark.slow
@pytest.mark.parametrize('name', runs)
def test_lines_of_every_kind_of_run(name, tmp_path):
    "Lines spread over the run, and in the commonest runs each line that begins or ends something"
    s = Sweep(name, tmp_path)
    n,found = sweep(name, tmp_path, STEP or s.n//6+1, critical=name in CORE or STEP==1)
    assert not found, told(found)

@pytest.mark.slow
@pytest.mark.parametrize('name,first', [('fit', .5), ('fit', .9), ('toolkit', .6), ('lr_find', .4), ('validate', .5), ('checkpoint', .7)])
def test_a_second_ctrl_c_while_the_first_is_cleaned_up_after(name, first, tmp_path):
    n,found = sweep(name, tmp_path, STEP or 37, first=[int(Sweep(name, tmp_path).n*first)])
    assert n>1 and not found, told(found)

# Not done yet: a call that fails in the clean-up itself leaves that part of it undone (random numbers, a temporary callback, a hook)
in_the_end = pytest.mark.xfail(strict=False, reason='a call that fails within the clean-up leaves a part of it undone')

@pytest.mark.slow
@pytest.mark.parametrize('name,every', [('fit',160), *(pytest.param(*o, marks=in_the_end) for o in (('validate',60), ('get_preds',90), ('lr_find',300), ('toolkit',600), ('unchanged',180)))])
def test_memory_that_is_lacking_in_a_call(name, every, tmp_path):
    "Every call from the library may fail"
    n,found = sweep(name, tmp_path, STEP or every, fail, 'call', error=(MemoryError,), critical=False)
    assert not found, told(found)

def test_the_critical_functions_exist():
    "Each line of them is swept; those of a renamed function would no longer be, and no test would fail"
    names = {name for path in Path(ROOT).rglob('*.py') for name in re.findall(r'^ *(?:def|class) (\w+)', path.read_text(encoding='utf-8'), re.M)}
    lost = [o for o in critical_names if not any(re.search(o, name) for name in names)]
    assert not lost

def test_the_sweep_finds_what_breaks(tmp_path, monkeypatch):
    "Without waiting signals, lines that put something back break a Learner"
    monkeypatch.setattr(interrupts, '_must_wait', lambda frame: False)
    s = Sweep('validate', tmp_path)
    wrong,t = s.once({4:interrupt()}, check=True, only='_switch_to')   # the last line of the second call, which goes back
    reset()
    assert t.where and wrong

# where Python ignores what is raised

class Owner: "What dies"
CLEARED = dict(key=lambda o: WeakKeyDictionary({o:1}), value=lambda o: WeakValueDictionary({1:o}), set=lambda o: WeakSet([o]), finalizer=lambda o: finalize(o, list))

def die(kind):
    "Press Ctrl-C in the first function that Python calls as an object dies"
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
    "The garbage collector may do that at any moment; Python would print the interrupt and continue. It waits for the next step"
    learn = toy(n=4)
    with pytest.raises(KeyboardInterrupt): learn.fit(1, cbs=at('before_batch', lambda cb: die(kind) if cb.learn.train_iter==1 else None))
    assert learn.train_iter==1 and not interrupts.pending
    learn.fit(1)

# the parts

def ctrl_c(): signal.raise_signal(signal.SIGINT)

def test_what_waits_is_handled_in_the_end():
    heard = []
    @uninterrupted
    def work():
        ctrl_c(); heard.append('after')
        try: interruptibly(heard.append, 'not reached')
        finally: heard.append('clean')
    with pytest.raises(KeyboardInterrupt): work()
    assert heard==['after','clean'] and not interrupts.pending

def test_an_explicit_request_wins():
    "Two signals wait, the third does not: what is cleaned up may hang"
    heard = []
    @uninterrupted
    def work():
        for i in range(9): ctrl_c(); heard.append(i)
    with pytest.raises(KeyboardInterrupt): work()
    assert heard==[0, 1] and not interrupts.pending

def test_a_handler_of_ones_own_is_called_once_and_stays():
    heard = []
    def mine(number, frame): heard.append(number)
    old = signal.signal(signal.SIGINT, mine)
    try:
        @uninterrupted
        def work(): ctrl_c(); ctrl_c(); heard.append('work')
        work()
        assert heard==['work', signal.SIGINT] and signal.getsignal(signal.SIGINT) is mine
    finally: signal.signal(signal.SIGINT, old)

def test_two_signals_are_both_handled():
    heard = []
    old = signal.signal(signal.SIGUSR1, lambda n, f: heard.append(n))
    try:
        @uninterrupted
        def work(): ctrl_c(); signal.raise_signal(signal.SIGUSR1)
        with pytest.raises(KeyboardInterrupt): work()
        assert heard==[signal.SIGUSR1]
    finally: signal.signal(signal.SIGUSR1, old)

def test_the_step_of_the_optimizer_is_not_divided():
    "A Ctrl-C between two of its updates waits for the others"
    class TwoUpdates(torch.optim.SGD):
        def step(self, closure=None):
            for i,p in enumerate(self.param_groups[0]['params']):
                p.data -= self.param_groups[0]['lr']*p.grad
                if not i: ctrl_c()
    learn,plain = toy(opt_func=TwoUpdates),toy()
    with pytest.raises(KeyboardInterrupt): learn.fit(1)
    plain.fit(1, cbs=at('after_batch', throw(CancelFit)))
    assert torch.equal(weights(learn), weights(plain))

def test_in_another_thread_nothing_is_touched():
    seen,old = [],signal.getsignal(signal.SIGINT)
    @uninterrupted
    def work(): seen.append(signal.getsignal(signal.SIGINT))
    t = threading.Thread(target=work); t.start(); t.join()
    assert seen==[old]

@uninterrupted
def lock_folder(lock, folder):   # as a Learner does
    try: interruptibly(lock.acquire, folder)
    finally: lock.release()
def send_all(sender, folder): sender.replace(1, 2); sender.put(3); sender.kept; sender.wait(9)
LOCKS = dict(folder=(FolderLock, lock_folder, lambda lock: locks._acquire_lock.locked() or lock.f),
             sender=(lambda: Sender(lambda o: None), send_all, lambda sender: sender.changed._is_owned()))

@pytest.mark.parametrize('name', LOCKS)
def test_a_lock_is_given_back(name, tmp_path):
    "Interrupted where a `with lock` ends, Python does not call its `__exit__`: whoever wants the lock next would wait for ever"
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
def test_within_no_grad_itself(run, end, monkeypatch):
    "It is Python code too: interrupted there, it left autograd off, and no later fit could train"
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

def test_handlers_that_are_exchanged_in_a_run_stay():
    "Somebody who takes a signal over in a callback keeps it"
    def mine(number, frame): pass
    @uninterrupted
    def work(): signal.signal(signal.SIGINT, mine)
    before = signal.getsignal(signal.SIGINT)
    try:
        work()
        assert signal.getsignal(signal.SIGINT) is mine
    finally: signal.signal(signal.SIGINT, before)

def test_a_run_without_an_interrupt_leaves_handlers_alone(tmp_path):
    learn,before = learner(tmp_path, kind=None),signal.getsignal(signal.SIGINT)
    learn.fit(1); learn.validate(); learn.get_preds()
    with learn.unchanged(), learn.no_bar(): pass
    with learn: pass
    assert signal.getsignal(signal.SIGINT) is before and not interrupts._active
