"""Ranks killed at random moments and restarted by torchrun end like uninterrupted ones.

The long version: python tests/faults/killed_ranks.py 50"""
import os, pytest
from killed_ranks import compare
from toys import few

@few(0, 0)   # half a minute, and other tests kill one process each
@pytest.mark.skipif(os.name!='posix', reason='kills processes')
@pytest.mark.parametrize('seed', [1])
def test_killed_ranks(seed):
    kills,differs,cfg = compare(seed, most=1)
    assert kills and not differs, f'{differs} differ after {kills} kills, with {cfg}'
