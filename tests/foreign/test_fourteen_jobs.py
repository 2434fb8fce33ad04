"""The scripts of `tests/bench/scripts.py`: with a Learner each takes a few lines, trains the same weights bit for bit
as its plain PyTorch loop, and resumes exactly after a kill."""
import os, sys, warnings
from pathlib import Path
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]/'bench'))
from scripts import alone, jobs, largest_difference, main, n_lines, quiet, resumes, run
from toys import few

@few(3, 2)
@pytest.mark.parametrize('name', [k for k in jobs if k!='ddp'])
def test_job(name, tmp_path):
    cls = jobs[name]
    assert len(jobs)==14 and n_lines(cls.ours)<=9 and n_lines(cls.ours)<n_lines(cls.by_hand)
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        (_,*a),(_,*b) = run(cls, 'by_hand'),run(cls, 'ours')
        assert largest_difference(a, b)==0
        if os.name=='posix': assert resumes(cls, tmp_path)

@pytest.mark.slow
@pytest.mark.skipif(os.name!='posix', reason='it forks')
def test_several_processes():
    got = alone('ddp')
    assert (got['ours'], got['difference'], got['resumes'])==(2, 0, True)

def test_a_difference_is_found():
    (_,*a),(_,*b) = (run(jobs['gcn'], 'by_hand') for _ in range(2))
    assert largest_difference(a, b)==0
    b[0]['a.weight'][0,0] += 1e-7
    assert 0<largest_difference(a, b)<1e-6 and largest_difference([1.], [1.,1.])>1

@pytest.mark.slow
def test_the_table(capsys):
    main('timesequence', rounds=1, times=1)
    head,row = [l.split() for l in capsys.readouterr().out.splitlines()]
    assert head[0]=='job' and row[:3]==['timesequence','13','3'] and row[3]=='equal' and row[-1]=='yes'
