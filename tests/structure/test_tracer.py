"A run enters few modules, as counted by `tracer.py`"
import pytest
from tracer import counts, fresh, functions, runs

# numbers of modules, also in CONTRIBUTING.md; they include `loop.words`, `loop.current_run` and `optim.inventory`
goal = dict(learner=15, fit=31, batch=6, get_preds=25)

@pytest.mark.parametrize('run', runs)
@pytest.mark.slow
def test_few_modules_are_entered(run):
    n = counts(fresh(run))['modules']
    assert n<=goal[run], f'{runs[run]} enters {n} modules, {goal[run]} are allowed: see `python tests/structure/tracer.py {run}`, and join what is one topic'

@pytest.mark.slow
def test_a_single_process_enters_no_module_of_processes():
    assert {m for run in runs for m in fresh(run) if m.startswith('processes.')} == set()

def test_a_learner_has_four_classes_and_methods_are_overridden_once():
    from learnkit import Learner
    chain = [c for c in Learner.__mro__ if c is not object]
    assert [c.__name__ for c in chain] == ['Learner','Loop','Dispatcher','HasRun']
    assert [k for k in {k for c in chain for k in vars(c)}-{'__init__'} if sum(callable(vars(c).get(k)) for c in chain)>2] == []

def test_a_batch_enters_the_known_functions():
    entered = fresh('batch')
    assert 'one_batch' in {name.split('.')[-1] for name,_ in entered['loop.loop']}
    assert counts(entered)['functions'] == sum(len({f for f,_ in funcs}) for funcs in entered.values())
    assert not {'fit','__init__'} & {name.split('.')[-1] for funcs in entered.values() for name,_ in funcs}

def test_functions_are_found_with_their_lines(tmp_path):
    (tmp_path/'m.py').write_text('class A:\n    @property\n    def b(self):\n        return [lambda: 1\n        ]\n\ndef c(): pass\n')
    assert functions(tmp_path/'m.py') == {(2,'b'): ('A.b',5), (4,'<lambda>'): ('A.b.<lambda>',4), (7,'c'): ('c',7)}
