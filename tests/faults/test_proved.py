"""`CheckpointCallback(prove=True)`: a copy of the run resumes from the first checkpoint, and what is otherwise is named; the run stays as it is.
The data, put together at random, are those of test_looks_only.py.
"""
import itertools, os, random, time
import pytest, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

from learnkit.all import Adam, Callback, CheckpointCallback, JsonLogger, Learner, SaveModelCallback, set_seed
from learnkit.recovery.proof import ResumeProof, WrongResume, end_threads, switch, why_no_copy
import test_looks_only as looks
from toys import batches, equal, few, learner, slow

pytestmark = [few(10_000, 5), pytest.mark.skipif(not hasattr(os, 'fork'), reason='no process can be copied here')]

def trained(tmp_path, prove=True, every='3ba', n=2, **kw):
    set_seed(0)
    kw.setdefault('path', tmp_path)
    learn = learner(n=5, cbs=[CheckpointCallback(every, prove=prove, overwrite=True), *kw.pop('cbs', [])], **kw)
    with learn.no_bar(), learn.no_logging(): learn.fit(n)
    return learn

def refusal(tmp_path, **kw):
    with pytest.raises(WrongResume) as e: trained(tmp_path, **kw)
    return str(e.value)

@pytest.mark.parametrize('seed', [*range(6), *slow(*range(6, 80))])
def test_the_run_stays_as_it_is(seed, tmp_path):
    ends = []
    for prove in (False, True):
        learn,words = looks.learner(seed, tmp_path/str(prove))
        every = random.Random(seed).choice(['1ba','2ba','3ba','1ep'])
        learn.add_cb(CheckpointCallback(every, prove=prove))
        learn.fit(looks.EPOCHS)
        ends.append(looks.end(learn))
    assert learn.checkpoint.proof.answer, words
    assert equal(*ends), words

class Lines(IterableDataset):
    "Reads on in a file that is open"
    def __init__(self, path): self.f = open(path)
    def __len__(self): return 20
    def __iter__(self):
        self.f.seek(0)
        for _ in range(20): x = torch.tensor([float(self.f.readline())]*4); yield x,x.sum()[None]
class Left(Lines):
    "The same, from where it was left"
    def __iter__(self):
        for i in range(20):
            line = self.f.readline() or (self.f.seek(0), self.f.readline())[1]
            x = torch.tensor([float(line)]*4); yield x,x.sum()[None]

@pytest.mark.parametrize('cls', [Lines, Left])
def test_files_stand_where_they_stood(cls, tmp_path):
    (tmp_path/'lines').write_text(''.join(f'{i/97}{" "*4000}\n' for i in range(97)))   # longer than what Python reads at once
    ends = []
    for prove in (False, True):
        dls = DataLoader(cls(tmp_path/'lines'), 4),None
        try: learn = trained(tmp_path, prove, dls=dls)
        except WrongResume: assert cls is Left; return
        ends.append(learn.recorder.losses)
    assert equal(*ends) and len(learn.checkpoint.proof.answer)==2

class Fewer:
    "What counts in C is kept by nobody"
    n = itertools.count(1)
    def __call__(self, pred, targ): return nn.functional.mse_loss(pred, targ)/next(self.n)

class Cached(Dataset):
    seen = set()
    def __len__(self): return 20
    def __getitem__(self, i):
        x = torch.full((4,), float(len(self.seen)))
        Cached.seen.add(i)
        return x,x.sum()[None]

class Noisy(Callback):
    "Draws from a generator of the module, and says that it keeps all there is"
    r = random.Random(0)
    def state_dict(self): return {}
    def load_state_dict(self, d): pass
    def after_backward(self): self.learn.model.bias.grad += Noisy.r.random()

def test_what_differs_is_named(tmp_path):
    Fewer.n = itertools.count(1)
    said = refusal(tmp_path, loss_func=Fewer())
    assert 'resumes from fit-1/step-00000003.pth is another run: after batch 1 from there it has other values of `loss`' in said and 'register_buffer' in said
    Cached.seen.clear()
    said = refusal(tmp_path, dls=(DataLoader(Cached(), 4), None))
    assert '`batch.0.0`' in said and 'state_dict' in said
    said = refusal(tmp_path, cbs=[Noisy()])
    assert '`model.bias`' in said or '`loss`' in said

def test_the_state_after_the_last_batch_is_compared(tmp_path):
    "A difference that no loss shows yet"
    class Late(Callback):
        n,done = 0,[0]
        def state_dict(self): return dict(n=self.n)
        def load_state_dict(self, d): pass
        def after_batch(self):
            if self.learn.training: self.n += 1
    assert '`callbacks.late.n`. callbacks.late.n is 2 for 5' in refusal(tmp_path, cbs=[Late()])

def test_a_copy_that_fails_is_told_of(tmp_path):
    class Once(Callback):
        saves,v = ('v',),0
        def __setattr__(self, k, v):
            if k=='v' and self.learn is not None and os.getpid()!=pid: raise ValueError('only once')
            super().__setattr__(k, v)
        def after_batch(self): self.v += 1
    pid = os.getpid()
    said = refusal(tmp_path, cbs=[Once()])
    assert 'ends where this one goes on' in said and 'only once' in said

def test_a_copy_that_is_killed_is_told_of(tmp_path):
    class Killed(Callback):
        observes = False
        def before_batch(self):
            if os.getpid()!=pid: os.kill(os.getpid(), 9)
    pid = os.getpid()
    assert 'it has ended without a word' in refusal(tmp_path, cbs=[Killed()])

def test_nothing_is_written_or_left(tmp_path):
    path,pids = None,[]
    for prove in (False, True):
        class See(Callback):
            def after_step(self): pids.append(getattr(self.learn.checkpoint.proof, 'pid', None))
        trained(tmp_path/str(prove), prove, cbs=[JsonLogger(), SaveModelCallback(every='1ba'), See()], every='1ba')
        names = sorted(p.relative_to(tmp_path/str(prove)).as_posix() for p in (tmp_path/str(prove)).rglob('*') if p.is_file())
        lines = [len(p.read_text().splitlines()) for p in (tmp_path/str(prove)).rglob('*.jsonl')]
        if path is None: path = names,lines
    assert path==(names, lines) and lines
    with pytest.raises(ChildProcessError): os.waitpid(next(filter(None, pids)), os.WNOHANG)

def test_a_run_that_ends_before_a_checkpoint_leaves_no_copy(tmp_path):
    pids = []
    class Cut(Callback):
        def after_batch(self): pids.append(self.learn.checkpoint.proof.pid); raise SystemError('the power failed')
    with pytest.raises(SystemError): trained(tmp_path, cbs=[Cut()])
    with pytest.raises(ProcessLookupError): os.kill(pids[0], 0)

def test_operations_on_several_threads(tmp_path):
    "A copy has none of the threads of OpenMP, and would wait for them"
    x = torch.randn(700, 700)
    torch.set_num_threads(2)
    try:
        x @ x, x.sin().sum()
        learn = trained(tmp_path, model=nn.Sequential(nn.Linear(4, 2000), nn.ReLU(), nn.Linear(2000, 1)), lr=1e-4)
    finally: torch.set_num_threads(1)
    assert len(learn.checkpoint.proof.answer)==2 and not learn.checkpoint.proof.error

def test_where_it_cannot_be_it_says_so(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match='depends on the clock'): trained(tmp_path, n='2s')
    monkeypatch.setenv(switch, '1')
    assert trained(tmp_path, False, n='.01s').checkpoint.proof is None
    monkeypatch.setattr('learnkit.recovery.proof.num_shards', lambda: 2)
    with pytest.raises(ValueError, match='trains together with others'): trained(tmp_path)
    monkeypatch.setattr('learnkit.recovery.proof.num_shards', lambda: 1)
    learn = learner()
    monkeypatch.setattr('learnkit.recovery.proof.one_param', lambda m: torch.zeros(1, device='meta'))
    assert 'accelerator (meta)' in why_no_copy(learn)

def test_the_variable_asks_for_it(tmp_path, monkeypatch):
    monkeypatch.setenv(switch, '1')
    assert len(trained(tmp_path, False).checkpoint.proof.answer)==2
    monkeypatch.delenv(switch)
    assert trained(tmp_path, False).checkpoint.proof is None

def test_a_resumed_run_is_proved_again(tmp_path):
    class Cut(Callback):
        observes = True
        def after_batch(self):
            if self.learn.train_iter==4 and self.learn.resume is None: raise SystemError('the power failed')
    cbs = lambda: [CheckpointCallback('2ba', prove=True), Cut()]
    with pytest.raises(SystemError): learner(n=5, path=tmp_path, cbs=cbs()).fit(2)
    learn = learner(n=5, path=tmp_path, cbs=cbs())
    learn.fit(2, resume='auto')
    assert learn.train_iter==10 and len(learn.checkpoint.proof.answer)==2
