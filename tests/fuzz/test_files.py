"""Some of the damaged files of `files.py`. More of them: python tests/fuzz/files.py --minutes 20"""
import os, pytest
import files

pytestmark = pytest.mark.skipif(os.name!='posix', reason='limits and alarms of POSIX')

@pytest.mark.parametrize('n,seed', [(400, 1), pytest.param(3000 if 'LEARNKIT_SWEEP' in os.environ else 800, 2, marks=pytest.mark.slow)])
def test_damaged_files(n, seed):
    results,wrong = files.fuzz(n, seed, warm=150)
    assert not wrong, wrong[:3]
    assert all(results[f'{kind} refused']>n/100 for kind in ('load','legacy','check','export','safetensors','note','metadata','piece','log','table'))
    assert all(results[f'{kind} loaded'] for kind in ('load','check','export','newest','log','table'))

@pytest.mark.parametrize('weak', ['runs code', 'changes something', 'other error', 'ends the process'])
def test_and_it_would_be_noticed(weak, monkeypatch):
    def read(self, kind, data, honest):
        match weak:
            case 'runs code':         exec('1')
            case 'changes something': self.learn.model[0].bias.data.add_(1)
            case 'other error':       raise KeyError('x')
            case 'ends the process':  os._exit(1)
        raise ValueError('refused')
    monkeypatch.setattr(files.Try, 'read', read)
    assert len(files.fuzz(2, warm=0)[1])==2
