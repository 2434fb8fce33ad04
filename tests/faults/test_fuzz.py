"""Some of the damaged files of tests/faults/fuzz.py. The long version: python tests/fuzz.py 100000"""
import os, pytest
import fuzz

@pytest.mark.skipif(os.name!='posix', reason='limits and alarms of POSIX')
def test_damaged_files():
    results,wrong = fuzz.fuzz(400, seed=1, warm=150)
    assert not wrong, wrong[:3]
    assert all(results[f'{kind} {res}']>5 for kind in ('load','check','export') for res in ('loaded','refused'))

@pytest.mark.skipif(os.name!='posix', reason='limits and alarms of POSIX')
@pytest.mark.parametrize('weak', ['runs code', 'changes something', 'other error', 'ends the process'])
def test_and_it_would_be_noticed(weak, monkeypatch):
    def read(self, kind, data):
        match weak:
            case 'runs code':         exec('1')
            case 'changes something': self.learn.model[0].bias.data.add_(1)
            case 'other error':       raise KeyError('x')
            case 'ends the process':  os._exit(1)
        raise ValueError('refused')
    monkeypatch.setattr(fuzz.Try, 'read', read)
    assert len(fuzz.fuzz(2, warm=0)[1])==2
