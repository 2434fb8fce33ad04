"""A run killed at random moments and restarted each time ends like an uninterrupted one.

The long version: python tests/faults/killed.py 100"""
import os, pytest
from killed import compare
from toys import few

@few(0, 1)
@pytest.mark.skipif(os.name!='posix', reason='kills a process group')
@pytest.mark.parametrize('seed', [0, 1])
def test_killed(seed):
    kills,differs,cfg = compare(seed, most=5)
    assert not differs, f'{differs} differ after {kills} kills, with {cfg}'
