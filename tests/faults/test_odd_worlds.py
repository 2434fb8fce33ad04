"""Rare environments: a full disk, a folder without write permission, a clock that jumps, damaged .safetensors,
torchmetrics compared with learnkit's metrics, regional compilation, and very many batches"""
import json, os, random, resource, shutil, struct, sys, tempfile, time, warnings
from pathlib import Path

import pytest, torch
from torch import nn

from learnkit.all import (Callback, CancelBatch, CheckpointCallback, CSVLogger, DataLoaders, EMACallback, ExportAtEnd, GradientAccumulation, JsonLogger, Learner,
                          SaveModelCallback, list_checkpoints, read_checkpoint)
from learnkit.data.files import read_state
from toys import batches, few, weights

torch.set_num_threads(1)
sweep = 'LEARNKIT_SWEEP' in os.environ

def quiet(learn):
    learn.logger = lambda row: None
    return learn.remove_cb(learn.progress)
def mk(path, *cbs, model=None, n=4, **kw):
    torch.manual_seed(0)
    return quiet(Learner(DataLoaders(batches(n), batches(2, seed=1)), model or nn.Linear(4, 1), nn.MSELoss(), torch.optim.SGD, lr=.05, path=path, cbs=cbs, **kw))
def writers(): return [CheckpointCallback('2ba', background=True), CSVLogger(), JsonLogger(), SaveModelCallback()]

def in_child(f):
    "Call `f` in a forked process; return what it returned"
    read,write = os.pipe()
    pid = os.fork()
    if not pid:
        sys.dont_write_bytecode = True   # Python would leave a .pyc that is cut off, and break the imports of others
        try: answer = f()
        except BaseException as e: answer = f'{type(e).__name__}: {e}'
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    with open(read) as file: text = file.read()
    os.waitpid(pid, 0)
    return json.loads(text)

def train(path, *more):
    "Fit with all callbacks that write; return the weights and warnings, or the error and the iteration"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        learn = mk(path, *writers(), *more)
        try: learn.fit(2)
        except OSError as e: return dict(error=f'{type(e).__name__}: {e}', n=learn.train_iter)
    return dict(weights=weights(learn).tolist(), said=[str(w.message) for w in caught])

# a disk that is full

@pytest.mark.parametrize('room', [0, 1, 50, 500, 1500, 5000, 20_000][::1 if sweep else 2])
def test_limited_file_size(room, tmp_path):
    "With files limited to `room` bytes a run warns or raises the file's error, and leaves only complete files"
    whole = in_child(lambda: train(tmp_path/'whole'))
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        return train(tmp_path/'full')
    full = in_child(limited)
    assert full.get('weights', whole['weights'])==whole['weights']
    if 'error' in full: assert full['n']==8   # only a write at the end may raise
    else: assert full['said'] or room>=20_000
    for p in (tmp_path/'full').rglob('*'):
        if p.suffix=='.pth' and 'step-' in p.name and p.with_suffix('.json').exists(): assert read_checkpoint(p)['model']
        elif p.suffix=='.pth' and p.is_file() and 'step-' not in p.name: assert read_state(p)
        elif p.suffix in ('.csv','.jsonl'): assert p.read_bytes()[-1:] in (b'\n', b''), p
    assert not [p for p in (tmp_path/'full').rglob('*.tmp') if p.is_file()]

def test_no_room_for_an_export(tmp_path):
    "PyTorch aborts the process when it closes a file that failed, so exports are written to memory first"
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))
        return train(tmp_path, ExportAtEnd())
    answer = in_child(limited)
    assert 'File too large' in answer['error'] and answer['n']==8
    assert not [*tmp_path.rglob('*.pt2')]

# a folder without write permission

@pytest.mark.skipif(os.geteuid()!=0, reason='only root can become another user')
def test_a_folder_without_write_permission():
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        def as_nobody():
            os.setgid(65534); os.setuid(65534)
            return train(folder/'run')
        answer = in_child(as_nobody)
        assert 'PermissionError' in answer['error'] and str(folder) in answer['error'] and answer['n'] in (0, 8)
        assert not [*folder.iterdir()]
    finally: shutil.rmtree(folder)

# a clock that jumps

@pytest.mark.parametrize('seed', range(8 if sweep else 3))
def test_the_wall_clock_jumps(seed, tmp_path, monkeypatch):
    "A wall clock that jumps by days at each read changes nothing that measures or compares times"
    r,now = random.Random(seed),time.time()
    def more(): return [CheckpointCallback('1m', keep=None), CSVLogger(), JsonLogger(), SaveModelCallback()]
    whole = mk(tmp_path/'whole', *more())
    whole.fit(3)
    def jump(): return now + r.uniform(-1e6, 1e6)
    monkeypatch.setattr(time, 'time', jump)
    monkeypatch.setattr(time, 'time_ns', lambda: int(jump()*1e9))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        learn = mk(tmp_path/'jumps', *more())
        learn.fit(3)
        again = mk(tmp_path/'jumps', *more())
        again.fit(4, resume='auto')
    assert torch.equal(weights(learn), weights(whole)) and again.train_iter==16
    assert all(0<=row['train_iter'] for row in map(lambda p: read_checkpoint(p), list_checkpoints(learn.checkpoint.folder)))
    assert [row['epoch'] for row in again.recorder.history]==[0, 1, 2, 3] and 'time' in again.recorder.history[0]
    for row in again.recorder.history: assert row['time']=='00:00'

# damaged .safetensors

def damages(data, r):
    "Return `data` with bits, bytes, sizes or entries of the header changed"
    kind = r.choice(['cut','flip','insert','header','size','name'])
    i = r.randrange(len(data))
    if kind=='cut': return data[:i]
    if kind=='flip': return data[:i] + bytes([data[i]^(1<<r.randrange(8))]) + data[i+1:]
    if kind=='insert': return data[:i] + r.randbytes(r.randint(1, 9)) + data[i:]
    if kind=='size': return struct.pack('<Q', r.choice([0, 1, 2**20, 2**40, 2**63, 2**64-1])) + data[8:]
    size = struct.unpack('<Q', data[:8])[0]
    header = data[8:8+size]
    old,new = r.choice([(b'F32', b'F64'), (b'F32', b'XX9'), (b'[0,', b'[9,'), (b'weight', b'other!'), (b'"shape":[', b'"shape":[-1,'), (b'shape', b'shapf'), (b'{', b'['), (b'__metadata__', b'__metadatb__')])
    header = header.replace(old, new, 1)
    return struct.pack('<Q', len(header)) + header + data[8+size:]

def test_damaged_safetensors(tmp_path):
    "A damaged file is read, or raises a ValueError and leaves the Learner unchanged"
    pytest.importorskip('safetensors')
    learn = mk(tmp_path)
    learn.fit(1)
    data = learn.save('m.safetensors', with_opt=False).read_bytes()
    r,path,n_refused = random.Random(0),tmp_path/'d.safetensors',0
    for _ in range(5000 if sweep else 300):
        path.write_bytes(damages(data, r))
        other = mk(tmp_path)
        before = weights(other)
        try: other.load(path)
        except (ValueError, RuntimeError, KeyError) as e:
            n_refused += 1
            assert torch.equal(weights(other), before) and type(e) is ValueError and str(e), repr(e)
    assert n_refused>50

# torchmetrics compared with learnkit's metrics

def test_torchmetrics_gives_the_same_values():
    "Metrics of both libraries agree on batches of different sizes, in which classes may be missing"
    tm = pytest.importorskip('torchmetrics')
    import learnkit.all as lk
    for seed in range(20 if sweep else 5):
        g,r = torch.Generator().manual_seed(seed),random.Random(seed)
        c = r.randint(2, 5)
        def data(n): return [(torch.randn(k, 4, generator=g), torch.randint(0, c, (k,), generator=g)) for k in (r.randint(1, 9) for _ in range(n))]
        kw = dict(task='multiclass', num_classes=c)
        metrics = [lk.accuracy, lk.F1Score(average='macro'), lk.MatthewsCorrCoef(), lk.CohenKappa(), tm.Accuracy(**kw), tm.F1Score(**kw, average='macro'), tm.MatthewsCorrCoef(**kw), tm.CohenKappa(**kw)]
        learn = quiet(Learner(DataLoaders(data(5), data(4)), nn.Linear(4, c), nn.CrossEntropyLoss(), lr=.1, metrics=metrics))
        learn.fit(2)
        n = len(metrics)//2
        for row in learn.recorder.history:
            values = [row[name] for name in learn.recorder.metric_names if name not in ('epoch','time','train_loss','valid_loss')]
            assert len(values)==2*n
            for ours,theirs in zip(values[:n], values[n:]): assert ours==pytest.approx(theirs, abs=1e-5), (seed, row)

# regional compilation

class Block(nn.Module):
    def __init__(self, act, norm, drop): super().__init__(); self.body = nn.Sequential(nn.Linear(4, 4), norm(4), act(), nn.Dropout(drop))
    def forward(self, x): return x+self.body(x)

@pytest.mark.parametrize('seed', range(30 if sweep else 3))
@few(1)
def test_regional_compilation(seed, tmp_path):
    "Random stacks of blocks, some shared or frozen, with callbacks and a resume, train as without compilation"
    r = random.Random(seed)
    kind = r.choice([nn.ReLU, nn.Tanh]),r.choice([nn.LayerNorm, nn.BatchNorm1d, nn.Identity]),r.choice([0., .2])
    n,shared,frozen = r.randint(2, 6),r.random()<.3,r.random()<.3
    more = r.sample([lambda: EMACallback(), lambda: GradientAccumulation(8)], r.randint(0, 2))
    def one(name, compiled):
        torch.manual_seed(seed)
        blocks = [Block(*kind) for _ in range(n)]
        if shared: blocks[-1] = blocks[0]
        model = nn.Sequential(*blocks, nn.Linear(4, 1))
        if frozen: blocks[0].requires_grad_(False)
        learn = mk(tmp_path/name, CheckpointCallback('3ba'), *[f() for f in more], model=model)
        if compiled: learn.compile(backend='eager', regional=True)
        return learn
    a,b = one('plain', False),one('regional', True)
    for learn in (a, b):
        torch.manual_seed(7)
        learn.fit(2)
    again,further = one('regional', True),one('plain', False)
    for learn in (again, further):
        torch.manual_seed(7)
        learn.fit(3, resume='auto')
    for x,y in ((a, b), (further, again)):
        assert [*x.model.state_dict()]==[*y.model.state_dict()]
        for p,q in zip(x.model.state_dict().values(), y.model.state_dict().values()): assert torch.equal(p, q)
    assert torch.equal(a.get_preds()[1], b.get_preds()[1])

# very many batches

class Endless:
    "The same batch, `n` times"
    def __init__(self, n): self.n,self.b = n,(torch.zeros(1, 1), torch.zeros(1, 1))
    def __len__(self): return self.n
    def __iter__(self): return (self.b for _ in range(self.n))

@pytest.mark.parametrize('empty', [False, True])
def test_very_many_batches(empty):
    "The number of allocated objects does not grow with the batches from half of them to all"
    n,seen = (1_000_000 if sweep else 10_000),{}
    def look(cb):
        i = cb.learn.train_iter
        if i in (n//2, n-1): seen[i] = sys.getallocatedblocks()
    def cancel(cb): raise CancelBatch
    cbs = [Callback(after_batch=look), *[Callback(before_batch=cancel)]*empty]
    quiet(Learner(DataLoaders(Endless(n)), nn.Linear(1, 1), nn.MSELoss(), torch.optim.SGD, cbs=cbs)).fit(1)
    half,whole = seen.values()
    assert whole-half<n//20 + empty*n//2, seen   # the numbers of batches without a loss are recorded
