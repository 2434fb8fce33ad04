"""Two processes killed while they write sharded checkpoints in the background end like uninterrupted ones.

The long version: python tests/faults/killed_shards.py 100"""
import os, pytest
from killed_shards import compare
from toys import few

@few(0, 0)   # ten seconds, and test_fully_shard.py kills one process at chosen moments
@pytest.mark.skipif(os.name!='posix', reason='kills processes')
@pytest.mark.parametrize('seed', [1])
def test_killed_shards(seed):
    kills,differs,cfg = compare(seed, most=2)
    assert kills and not differs, f'{differs} after {kills} kills, with {cfg}'
