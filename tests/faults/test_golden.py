"""Files that earlier versions wrote can be read: each folder of `golden` has one file of each format, and the expected
values in `expected.json`.

    python tests/faults/test_golden.py      writes the files of this version; an existing folder is not changed

Run it before a release whose files differ, to make a new folder. The old ones stay, and must be readable as long as the package
says so.
"""
import hashlib, json, shutil, sys, warnings
from functools import partial
from pathlib import Path

here = Path(__file__).resolve().parent
if __name__=='__main__': sys.path[:0] = [str(here.parents[1]), str(here.parent)]
import pytest, torch
from torch import nn
from learnkit import __version__
from learnkit.all import Adam, Callback, DataLoaders, Learner
from learnkit.callbacks.averages import EMACallback
from learnkit.callbacks.trackers import SaveModelCallback
from learnkit.observe.files import CSVLogger
from learnkit.observe.files import JsonLogger
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.recovery.file import checkpoint_info, list_checkpoints, read_checkpoint
from learnkit.recovery.export import load_learner, read_export

golden = here/'golden'
torch.set_num_threads(1)

def model(): return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
def learner(path, cbs=()):
    "A Learner with the same weights and data each time, without random numbers"
    net = model()
    with torch.no_grad():
        for i,p in enumerate(net.parameters()): p.copy_(torch.linspace(-1, 1, p.numel()).view_as(p) + i/10)
    xs = torch.linspace(-2, 2, 48).view(6, 4, 2)
    data = [(x, x.sum(1, keepdim=True)) for x in xs]
    learn = Learner(DataLoaders(data[:4], data[4:]), net, nn.MSELoss(), Adam, lr=.05, path=path, cbs=[CheckpointCallback('6ba', keep=None), *cbs])
    learn.logger = lambda row: None
    return learn.remove_cb(learn.progress)

def plain(o): return o.tolist() if torch.is_tensor(o) else {k:plain(v) for k,v in o.items()} if isinstance(o, dict) else [*map(plain, o)] if isinstance(o, (list,tuple)) else o
def weights(learn): return plain(learn.model.state_dict())
def rows(history): return [{k:v for k,v in r.items() if k!='time'} for r in history]

def write(folder):
    "Write one file of each format, and the expected values"
    tmp = folder/'tmp'
    learn = learner(tmp, [CSVLogger(), JsonLogger('log.jsonl')])
    learn.fit(2)
    for p in (learn.save('model'), learn.save('model.safetensors'), learn.export('export', by='golden'), learn.export('export.safetensors'),
              tmp/'history.csv', tmp/'log.jsonl', *list_checkpoints(learn.checkpoint.folder), *learn.checkpoint.folder.glob('*.json')):
        if 'final' not in p.name and 'step-00000006' not in p.name and p.name.startswith('step'): continue
        shutil.copy(p, folder)
    x = torch.linspace(-1, 1, 6).view(3, 2)
    expected = dict(version=__version__, weights=weights(learn), opt=plain(learn.opt.state_dict()['state']), history=rows(learn.recorder.history), x=plain(x), pred=plain(learn.model.eval()(x)))
    (folder/'expected.json').write_text(json.dumps(expected, indent=1) + '\n')
    shutil.rmtree(tmp)

def close(a, b):
    "Whether two values are equal up to rounding, which differs between versions of PyTorch"
    if isinstance(a, dict): return {str(k) for k in a}=={str(k) for k in b} and all(close(v, {str(n):w for n,w in b.items()}[str(k)]) for k,v in a.items())
    if isinstance(a, (list,tuple)): return len(a)==len(b) and all(map(close, a, b))
    return abs(a-b)<1e-4*(1+abs(b)) if isinstance(a, float) else a==b

def without_noisy_bias(state):
    "`state` without the bias before the norm: its gradient is rounding noise, which Adam scales up"
    return {k:v for k,v in state.items() if str(k) not in ('0.bias','1')}
def losses(history): return [r['train_loss'] for r in history]   # in eval mode that bias has an effect

versions = [pytest.param(p, id=p.name) for p in sorted(golden.iterdir()) if p.is_dir()] if golden.exists() else []
def expected(folder): return json.loads((folder/'expected.json').read_text())

def test_there_are_files_of_this_version():
    assert (golden/__version__/'expected.json').exists(), 'run `python tests/faults/test_golden.py`'

@pytest.mark.parametrize('folder', versions)
def test_a_checkpoint_resumes(folder, tmp_path):
    "A run of an earlier version resumes in the middle of an epoch and ends as it did there; a finished one is finished"
    want = expected(folder)
    for names in (['step-00000006'], ['step-00000006', 'step-00000008-final']):
        path = tmp_path/names[-1]
        run = path/'checkpoints'/'fit-1'
        run.mkdir(parents=True)
        for n in names:
            for e in ('.pth','.json'): shutil.copy(folder/(n+e), run)
            assert checkpoint_info(run/(n+'.pth'))['train_iter']==read_checkpoint(run/(n+'.pth'))['train_iter']
        learn = learner(path)
        seen = []
        with warnings.catch_warnings(): warnings.simplefilter('ignore'); learn.fit(2, resume='auto', cbs=Callback(after_step=lambda cb: seen.append(1)))
        assert len(seen)==(2 if len(names)==1 else 0)
        assert close(without_noisy_bias(weights(learn)), without_noisy_bias(want['weights'])) and close(losses(learn.recorder.history), losses(want['history']))
        assert close(without_noisy_bias(plain(learn.opt.state_dict()['state'])), without_noisy_bias(want['opt']))

@pytest.mark.parametrize('name', ['model.pth', 'model.safetensors'])
@pytest.mark.parametrize('folder', versions)
def test_saved_weights_load(folder, name, tmp_path):
    learn,want = learner(tmp_path),expected(folder)
    learn.load(folder/name, with_opt=name=='model.pth')
    assert weights(learn)==want['weights']
    if name=='model.pth': assert close(plain(learn.opt.state_dict()['state']), want['opt'])

@pytest.mark.parametrize('name', ['export.pth', 'export.safetensors'])
@pytest.mark.parametrize('folder', versions)
def test_an_export_loads(folder, name):
    want,metadata = expected(folder),read_export(folder/name)[0]
    learn = load_learner(folder/name, model())
    assert weights(learn)==want['weights'] and close(plain(learn.model(torch.tensor(want['x']))), want['pred'])
    assert metadata['loss']['name']=='MSELoss' and (metadata['about']=={'by':'golden'} or name!='export.pth')

@pytest.mark.parametrize('folder', versions)
def test_logs_are_read(folder, tmp_path):
    want = expected(folder)
    for name in ('history.csv','log.jsonl'): shutil.copy(folder/name, tmp_path)
    learn = learner(tmp_path, [CSVLogger(), JsonLogger('log.jsonl')])
    assert close(rows(learn.csv_logger.read_log()), want['history'])
    logged = learn.json_logger.read_log()
    assert [r['step'] for r in logged]==sorted(r['step'] for r in logged) and {4,8} <= {r['step'] for r in logged}

@pytest.mark.parametrize('folder', versions)
def test_golden_files_are_unchanged(folder):
    "The checksums of all files are those of the release that wrote them"
    sums = dict(l.split() for l in (folder/'SHA256').read_text().splitlines())
    assert sums=={p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.iterdir() if p.name!='SHA256'}

# Files of a version that saved the weights of a loss as hidden state, and the optimizer state without names

of_a_loss = here/'golden_loss'

class Noise(nn.Module):
    "A squared error with a learned noise level"
    def __init__(self): super().__init__(); self.s = nn.Parameter(torch.zeros(()))
    def forward(self, pred, y): return (pred-y).pow(2).mean()*torch.exp(-self.s) + self.s

def noisy_learner(path):
    learn = learner(path, [EMACallback(.5, at_end=False)])
    learn.loss_func,learn.opt_func = Noise(),partial(torch.optim.SGD, lr=.05, momentum=.9)
    learn.splitter = lambda m: [*m.parameters(), *learn.loss_func.parameters()]
    return learn

def momenta(learn): return [plain(s['momentum_buffer']) for s in learn.opt.state_dict()['state'].values()]

def test_a_checkpoint_of_a_loss_with_weights(tmp_path):
    want = expected(of_a_loss)
    run = tmp_path/'checkpoints'/'fit-1'
    run.mkdir(parents=True)
    for e in ('.pth','.json'): shutil.copy(of_a_loss/f'step-00000006{e}', run)
    learn = noisy_learner(tmp_path)
    learn.fit(2, resume='auto')
    assert learn.train_iter==8 and close(weights(learn), want['weights'])
    assert close(learn.loss_func.s.item(), want['s']) and close(momenta(learn), want['momentum'])
    averages = plain(learn.ema.averages)
    assert averages.pop('loss_func.s') and close(averages, want['averages'])   # the file has none

def test_saved_weights_of_a_loss_with_weights(tmp_path):
    learn,want = noisy_learner(tmp_path),expected(of_a_loss)
    with pytest.warns(UserWarning, match='trains outside the model, which therefore keep theirs: loss_func.s'):
        learn.load(of_a_loss/'model.pth')
    assert weights(learn)==want['weights'] and close(momenta(learn), want['momentum']) and learn.loss_func.s.item()==0

if __name__=='__main__':
    folder = golden/__version__
    if folder.exists(): sys.exit(f'{folder} is there: it stays as it is')
    folder.mkdir(parents=True)
    write(folder)
    (folder/'SHA256').write_text(''.join(f'{p.name} {hashlib.sha256(p.read_bytes()).hexdigest()}\n' for p in sorted(folder.iterdir())))
    for p in sorted(folder.iterdir()): print(p.stat().st_size, p.relative_to(golden))
