"The traceback of what leaves a run has the lines of the user only, the exception keeps the others, and one switch brings them back"
import copy, pickle, signal, sys
from threading import Thread
from traceback import format_exception, walk_tb

import pytest, torch
from oracle import TRAIN
from toys import at, learner

from learnkit.all import *
from learnkit import full_tracebacks

torch.set_num_threads(1)
wrapper = []

@pytest.fixture(autouse=True)
def short(monkeypatch): monkeypatch.delenv('LEARNKIT_FULL_TRACEBACKS', raising=False)

def names(tb): return [f.f_code.co_name for f,_ in walk_tb(tb)]
def caught(f, *args, **kw):
    try: f(*args, **kw)
    except BaseException as e: return e

def boom(): raise ValueError('boom')
def fit(learn): learn.fit(1)

@pytest.mark.parametrize('event', [*dict.fromkeys(TRAIN), 'before_fit', 'after_fit', 'before_validate', 'after_epoch', 'cleanup'])
def test_only_the_lines_of_the_user_are_shown(event, monkeypatch):
    "Each event is called from another depth of the loop; all of it is left out, and kept"
    def run(): return caught(fit, learner(cbs=at(event, lambda cb: boom())))
    e = run()
    assert [o for o in names(e.__traceback__) if o!='<lambda>']==['caught', 'fit', *wrapper, 'boom']
    monkeypatch.setenv('LEARNKIT_FULL_TRACEBACKS', '1')
    whole = run()
    assert not hasattr(whole, 'full_traceback')
    assert names(e.full_traceback())==names(whole.__traceback__)[2:], 'the exception keeps what the switch shows'

def test_the_switch():
    full_tracebacks()
    assert len(names(caught(fit, learner(cbs=at('after_loss', lambda cb: boom()))).__traceback__)) > 10
    full_tracebacks(False)
    assert len(names(caught(fit, learner(cbs=at('after_loss', lambda cb: boom()))).__traceback__)) < 7

def test_what_is_wrong_at_once_has_no_line_but_the_users():
    for call in (lambda: learner().fit(-1), lambda: learner().fit(epochs=3), lambda: Learner(1, 2, optimizer=3),
                 lambda: learner().fit_one_cycle(1, lr=1e-2)):
        assert names(caught(call).__traceback__)==['caught', '<lambda>']

def test_a_run_inside_of_a_run():
    inner = learner(cbs=at('after_loss', lambda cb: boom()))
    def nested(): inner.fit(1)
    e = caught(fit, learner(cbs=at('after_batch', lambda cb: nested())))
    shown,kept = names(e.__traceback__),names(e.full_traceback())
    assert [o for o in shown if o not in ('<lambda>', 'handler')]==['caught', 'fit', *wrapper, 'nested', 'boom']
    assert kept.count('_do_epoch')==2 and kept[-1]=='boom'

def test_what_it_came_from_is_short_too():
    def convert():
        try: boom()
        except ValueError as e: raise KeyError('other') from e
    e = caught(fit, learner(cbs=at('after_loss', lambda cb: convert())))
    assert names(e.__cause__.__traceback__)==['convert', 'boom']
    both = ExceptionGroup('both', [ValueError('a'), e])
    def group(): raise both
    again = caught(fit, learner(cbs=at('after_loss', lambda cb: group())))
    assert again is both and names(again.__traceback__)[-1]=='group' and '_do_epoch' not in ''.join(format_exception(again))

def test_it_is_sent_to_another_process_and_copied():
    for f in (boom, lambda: signal.raise_signal(signal.SIGINT)):
        e = caught(fit, learner(cbs=at('after_loss', lambda cb: f())))
        for o in (pickle.loads(pickle.dumps(e)), copy.copy(e)): assert (type(o), str(o))==(type(e), str(e))

def test_a_deep_recursion():
    def deep(n): return deep(n+1)
    e = caught(fit, learner(cbs=at('after_loss', lambda cb: deep(0))))
    assert type(e) is RecursionError and names(e.__traceback__)[-1]=='deep' and len(names(e.full_traceback())) > 500

def test_in_a_thread_nothing_is_lost():
    seen = []
    learn = learner(cbs=at('after_loss', lambda cb: boom()))
    t = Thread(target=lambda: seen.append(caught(fit, learn))); t.start(); t.join()
    assert names(seen[0].__traceback__)[-1]=='boom'

def test_ctrl_c_is_one_line(monkeypatch, capsys):
    "In a notebook, and in a script, where Python calls `sys.excepthook` with it; another one's hook stays"
    learn = learner(cbs=at('after_loss', lambda cb: signal.raise_signal(signal.SIGINT)))
    for hook in (sys.__excepthook__, lambda *args: print('mine', file=sys.stderr)):
        monkeypatch.setattr(sys, 'excepthook', hook)
        e = caught(fit, learn)
        assert e._render_traceback_()==['KeyboardInterrupt']
        capsys.readouterr()
        sys.excepthook(type(e), e, e.__traceback__)
        assert capsys.readouterr().err==('KeyboardInterrupt\n' if hook is sys.__excepthook__ else 'mine\n')
    monkeypatch.setattr(sys, 'excepthook', sys.__excepthook__)
    caught(fit, learn)
    e = caught(boom)
    sys.excepthook(type(e), e, e.__traceback__)
    assert capsys.readouterr().err.endswith('ValueError: boom\n')   # what is no interrupt is shown as ever
