"""Some of the runs of `runs.py`, two of which must have equal results. More of them: python tests/fuzz/runs.py
--minutes 20"""
import pytest
import runs

@pytest.mark.slow
def test_runs_that_end_alike():
    n,ended,wrong = runs.fuzz(1, n=60)
    assert n==60 and not wrong, '\n'.join(f'{fault}\n{script}' for _,fault,script in wrong[:2])
    assert all(ended[f'{k}: {how}']>5 for k,how in dict(observers='alike', shortcuts='alike', parts='alike', resume='resumed').items()), ended

@pytest.mark.parametrize('changes,said', [('p.data.mul_(2)', 'weights'), ('p.grad.add_(1)', 'weights')])
def test_what_is_wrong_would_be_noticed(changes, said):
    n,script = next((i, s) for i in range(99) for k,s in [runs.draw(3, i)] if k=='observers' and 'cbs=[*' in s)
    wrong = f"Callback(before_step=lambda self: [{changes} for p in self.learn.model.parameters()])"
    a,b = script.rsplit('run(lambda: [', 1)
    assert said in runs.run('observers', f'{a}run(lambda: [{wrong}, {b}')[1]
