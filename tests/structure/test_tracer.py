"What one must read to follow a run stays within its limits: modules, functions and lines of source that are entered, by `tracer.py`"
import pytest
from oracle import TRAIN
from tracer import counts, fresh, functions, runs

goal    = dict(learner=dict(modules=12), fit=dict(modules=28, lines=1100), batch=dict(modules=6, lines=150), get_preds=dict(modules=25, lines=900))
# where a goal is not reached yet, what has been reached; a number here may only go down, and goes away with the goal
reached = dict(fit=dict(lines=1548), get_preds=dict(lines=948))

@pytest.mark.parametrize('run', runs)
def test_no_more_is_entered_than_what_has_been_reached(run):
    now,limits = counts(fresh(run)),{**goal[run], **reached.get(run, {})}
    if 'lines' in limits: limits['lines'] += len(TRAIN)-14   # the events of a batch that were added since: each is a line of the loop
    assert {k:now[k] for k in limits if now[k] > limits[k]} == {}, f'{runs[run]} enters more than {limits}: see `python tests/structure/tracer.py {run}`'

def test_a_number_that_has_been_reached_is_above_its_goal():
    assert [(run,k) for run,limits in reached.items() for k,n in limits.items() if n <= goal[run][k]] == []

def test_who_trains_alone_enters_nothing_of_several_processes():
    assert {m for run in runs for m in fresh(run) if m.startswith('processes.')} == set()

def test_a_learner_is_three_classes_in_a_row_and_a_method_is_refined_once_on_the_way():
    from learnkit import Learner
    chain = [c for c in Learner.__mro__ if c is not object]
    assert [c.__name__ for c in chain] == ['Learner','Loop','Dispatcher']
    assert [k for k in {k for c in chain for k in vars(c)} if sum(callable(vars(c).get(k)) for c in chain)>2] == []

def test_a_run_enters_what_it_is_known_to():
    entered = fresh('batch')
    assert 'one_batch' in {name.split('.')[-1] for name,_ in entered['loop.loop']}
    assert counts(entered)['functions'] == sum(len({f for f,_ in funcs}) for funcs in entered.values())
    assert not {'fit','__init__'} & {name.split('.')[-1] for funcs in entered.values() for name,_ in funcs}

def test_functions_are_found_with_their_lines(tmp_path):
    (tmp_path/'m.py').write_text('class A:\n    @property\n    def b(self):\n        return [lambda: 1\n        ]\n\ndef c(): pass\n')
    assert functions(tmp_path/'m.py') == {(2,'b'): ('A.b',5), (4,'<lambda>'): ('A.b.<lambda>',4), (7,'c'): ('c',7)}
