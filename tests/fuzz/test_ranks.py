"""Some of the runs of `ranks.py`, in which one of two processes has a fault. More of them: python tests/fuzz/ranks.py
--minutes 20"""
import os, pytest
import ranks

pytestmark = pytest.mark.skipif(os.name!='posix', reason='processes are forked')

@pytest.mark.slow
def test_one_fault_of_two_processes():
    n,ended,wrong = ranks.fuzz(1, n=14)
    assert n==14 and not wrong, '\n'.join(f'{fault}\n{script}' for _,fault,script in wrong[:2])
    assert sum(k for how,k in ended.items() if how.endswith('alike'))>3

@pytest.mark.parametrize('one,two,said', [(dict(weights=[1.]), dict(weights=[2.]), 'weights differ'), (dict(weights=[1.]), None, 'did not end'),
                                          (dict(weights=[1.]), dict(error='ValueError', said='no'), 'one of them failed')])
def test_what_is_wrong_would_be_noticed(one, two, said): assert said in ranks.judge(one, two, 'nan')[1]
