"""Processes come and go, and the run is what one process would have made: `FaultTolerant`. Where torchft is missing only what needs no process is tested."""
import multiprocessing, os, time, warnings
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from types import SimpleNamespace

import pytest, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from learnkit.all import (Callback, CancelBatch, CheckpointCallback, CSVLogger, DataLoaders, EarlyStoppingCallback, EMACallback, FaultTolerant, GradientAccumulation,
    GradientClip, JsonLogger, Learner, MicroBatch, MixedPrecision, MixUp, SAM, SaveModelCallback, SkipNaN, ValidateEvery)
from learnkit.data.locks import FileLock
from learnkit.data.process import alone, rank_distrib, set_rank
from learnkit.processes.agreement import ProcessFailed
from learnkit.processes.crew import ReplicaGroup
from learnkit.optim.steps import check_passes
from learnkit.processes.part_sums import PartSums, slice_part

# without processes

@pytest.mark.parametrize('bs', [1, 2, 5, 16])
@pytest.mark.parametrize('n', [1, 2, 3, 7])
def test_parts_are_the_batch(bs, n):
    parts = [slice_part(bs, i, n) for i in range(n)]
    assert [i for part,count in parts if count for i in range(bs)[part]]==[*range(bs)] and sum(c for _,c in parts)==bs
    assert all(len(range(bs)[part])==max(count, 1) for part,count in parts)   # none is empty

@pytest.mark.parametrize('n', [1, 2, 3, 7])
def test_sums_of_parts_are_what_the_batch_leaves(n):
    "Gradients, the loss, averages of a batch norm; a parameter without gradient keeps none, one that was accumulated keeps that"
    torch.manual_seed(0)
    model = nn.ModuleDict(dict(bn=nn.BatchNorm1d(3), out=nn.Linear(3, 1), unused=nn.Linear(2, 2)))
    x,y = torch.randn(5, 3),torch.randn(5, 1)
    def loss(items): return nn.functional.mse_loss(model.out(x[items]), y[items])
    sums,messages = PartSums([*model.parameters()], SimpleNamespace(model=model, loss_func=None, opt=None, cbs=[])),[]
    model.out.bias.grad = torch.ones(1)
    for i in range(n):
        items,count = slice_part(5, i, n)
        sums.begin()
        with torch.no_grad(): model.bn(x)
        part = loss(items)
        (part*count/5).backward()
        messages.append(sums.pack(part, count, count, [1]))
        sums.restore()
        assert model.out.weight.grad is None and model.bn.num_batches_tracked==0
    found,[parts] = sums.unpack(sum(messages))
    sums.write_to_model()
    assert parts==n and model.unused.weight.grad is None and model.bn.num_batches_tracked==1
    torch.testing.assert_close(model.bn.running_mean, .1*x.mean(0))
    torch.testing.assert_close(found, loss(slice(None)).detach())
    expected = torch.autograd.grad(loss(slice(None)), [*model.out.parameters()])
    torch.testing.assert_close((model.out.weight.grad, model.out.bias.grad), (expected[0], expected[1]+1))

def test_one_of_several_whole_processes_writes(tmp_path):
    set_rank(1)
    try:
        assert rank_distrib()==1
        with alone(): assert rank_distrib()==0
        make(tmp_path, [CSVLogger(), JsonLogger(), CheckpointCallback(), SaveModelCallback(every_epoch=True)])
        assert not [*tmp_path.rglob('*.*')]
    finally: set_rank(0)

def test_who_does_not_write_keeps_the_best_model_itself(tmp_path):
    "The file is another process's, which may not have written it yet, or be lost before that"
    def trained(path):
        return make(path, [SaveModelCallback(comp='max')], n=3).model.state_dict()   # the first epoch is the best
    wanted = trained(tmp_path/'writes')
    set_rank(1)
    try: found = trained(tmp_path/'does not')
    finally: set_rank(0)
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    assert not [*tmp_path.glob('does not/**/*.pth')]

def test_rows_that_a_lost_process_did_not_write_are_added(tmp_path):
    "The next one knows the rows, and at which batch each was made"
    def run(*cbs): make(tmp_path, [JsonLogger(), ValidateEvery('4ba'), *cbs], n=3)
    def after_fit(self):
        log.write_bytes(b''.join(whole[:-2]))
        set_rank(0)
        self.learn.json_logger.take_over()
    log = tmp_path/'log.jsonl'
    run()
    whole = log.read_bytes().splitlines(True)
    assert len(whole)>8
    set_rank(1)
    try: run(Callback(after_fit=after_fit))
    finally: set_rank(0)
    assert log.read_bytes().splitlines(True)==whole

def test_a_frozen_writer_keeps_its_files_until_it_ends(tmp_path):
    "The next one continues without writing, warns once, and takes over as soon as the files are free"
    ft,lock,files = FaultTolerant('http://127.0.0.1:1'),FileLock(),CSVLogger()
    lock.acquire(tmp_path/'.history.csv.lock', 'history.csv', 'wait')
    learn = Learner(DataLoaders.from_tensors(torch.zeros(4, 1), torch.zeros(4, 1), bs=2), nn.Linear(1, 1), nn.MSELoss(), path=tmp_path, cbs=[ft, files])
    ft.replicas,ft.is_writer,ft.own_logger = SimpleNamespace(rank=0),False,learn.logger
    try:
        with pytest.warns(UserWarning, match='nothing is written.*in use by another run') as said: ft._find_rank(); ft._find_rank()
        assert len(said)==1 and not ft.is_writer and rank_distrib()==1
        lock.release()
        ft._find_rank()
        assert ft.is_writer and rank_distrib()==0 and files.log_file.file is not None
    finally:
        set_rank(0)
        files.log_file.close()

def make(path, cbs, n=2, model=None, data=None, opt=torch.optim.AdamW, duration=None, fit=Learner.fit, **kw):
    "A Learner that has trained"
    torch.manual_seed(0)
    x,y = data or (x := torch.randn(60, 4), x.sum(1, keepdim=True))
    model = model() if model else nn.Linear(4, 1)
    learn = Learner(DataLoaders(DataLoader(TensorDataset(x, y), 6, shuffle=True), DataLoader(TensorDataset(x[:12], y[:12]), 6)), model, nn.MSELoss(), opt, lr=.02, path=path)
    with learn.no_bar(), learn.no_logging(): fit(learn, duration or n, cbs=cbs, **kw)
    return learn

def test_without_a_lighthouse_it_says_how_to_start_one(tmp_path, monkeypatch):
    monkeypatch.delenv('TORCHFT_LIGHTHOUSE', raising=False)
    with pytest.raises(ValueError, match='torchft_lighthouse'): make(tmp_path, [FaultTolerant()])

@pytest.mark.parametrize('cb, why', [(lambda: ValidateEvery('1s'), 'interval in batches'), (lambda: FaultTolerant(), 'only one FaultTolerant')])
def test_what_does_not_go_together_raises(cb, why, tmp_path):
    with pytest.raises(ValueError, match=why): make(tmp_path, [FaultTolerant('http://127.0.0.1:1'), cb()])

def test_a_second_evaluation_of_a_batch_raises():
    learn = Learner(DataLoaders.from_tensors(torch.zeros(4, 1), torch.zeros(4, 1), bs=2), nn.Linear(1, 1), nn.MSELoss(), cbs=[FaultTolerant(), SAM()])
    with pytest.raises(ValueError, match='a part of the batch'): check_passes(learn.sam)

def test_is_cancelled_in_a_shard_raises():
    "It would not reach the other processes, which would take the step"
    learn = Learner(DataLoaders.from_tensors(torch.zeros(4, 1), torch.zeros(4, 1), bs=2), nn.Linear(1, 1), nn.MSELoss())
    ft = FaultTolerant('http://127.0.0.1:1')
    ft.learn,ft.weigh = learn,SimpleNamespace(is_sum=True)
    def do(): learn.current_run.is_cancelled = True
    with pytest.raises(RuntimeError, match='`is_cancelled` was set .* Raise CancelBatch in `before_step`'): ft._pack_message(do, 2)

# with processes

needs_torchft = pytest.mark.skipif(find_spec('torchft') is None, reason='it needs torchft')
fork = multiprocessing.get_context('fork')

class Pace(Callback):
    "Holds a process at batch `until.value`, and records where it is"
    acts = 'nothing'
    def __init__(self, i, house): self.i,self.house = i,house
    def before_batch(self):
        if not self.training: return
        while self.train_iter>=self.house.until.value: time.sleep(.005)
        time.sleep(.02)
    def after_batch(self): self.house.at[self.i] = self.train_iter

class House:
    "A lighthouse, and processes that train"
    def __init__(self, path, **kw):
        os.environ.setdefault('RUST_LOG', 'error')
        import torchft   # before they begin
        self.path,self.kw,self.at,self.until,self.results,self.started = path,kw,fork.Array('i', 9),fork.Value('i', 0),fork.Queue(),[]
        here,there = fork.Pipe()
        self.lighthouse = fork.Process(target=self._light, args=(there,), daemon=True)
        self.lighthouse.start()
        self.address = here.recv()
    def _light(self, pipe):
        from torchft.coordination import LighthouseServer
        server = LighthouseServer(bind='127.0.0.1:0', min_replicas=1, join_timeout_ms=30_000, heartbeat_timeout_ms=1000)
        pipe.send(server.address())
        time.sleep(600)
    def start(self, n=1, **kw):
        for _ in range(n):
            self.started.append(fork.Process(target=self._work, args=(len(self.started), kw), daemon=True))
            self.started[-1].start()
    def _work(self, i, kw):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        warnings.simplefilter('ignore')
        torch.set_num_threads(1)
        kw = {**self.kw, **kw}
        cbs = [FaultTolerant(self.address, timeout=20), Pace(i, self), *[f() for f in kw.pop('cbs', ())], *[f(i) for f in kw.pop('own', ())]]
        try:
            learn = make(self.path, cbs, **kw)
            res = [learn.train_iter, learn.train_steps, learn.recorder.history, [p.tolist() for p in learn.model.state_dict().values()], rank_distrib()]
        except Exception as e: res = e
        self.results.put((i, res))
        self.results.close(); self.results.join_thread()
    def wait(self, i, batch, step=0, pause=.005):
        end = time.time()+60
        while self.at[i]<batch:
            assert self.started[i].is_alive() and time.time()<end,(f'process {i} is at {self.at[i]}', not self.results.empty() and self.results.get())
            self.until.value += step
            time.sleep(pause)
    def let_in(self, *i):
        "Let the others continue slowly until these have joined"
        for k in i: self.wait(k, 1, step=1, pause=.3)
    def go(self, batch=10**6): self.until.value = batch
    def ends(self, n):
        try: return dict(self.results.get(timeout=60) for _ in range(n))
        finally:
            for p in (*self.started, self.lighthouse): p.kill()

def disturbed(path, n=6, **kw):
    "The ends of the run of processes of which the first is killed, the one that writes; another one comes; then one that does not write is killed"
    h = House(path, n=n, **kw)
    h.start(); h.go(4); h.wait(0, 4)
    h.start(2); h.let_in(1, 2)
    h.started[0].kill(); h.start(); h.let_in(3)
    h.started[2].kill(); h.go()
    return h.ends(2)

def quiet(path, **kw):
    h = House(path, **{'n':6, **kw})
    h.go(); h.start()
    return h.ends(1)[0]

def same_rows(a, b, tol=1e-4):
    def numbers(rows): return [[v for k,v in r.items() if k!='time'] for r in rows]
    a,b = numbers(a),numbers(b)
    assert len(a)==len(b) and all(x==pytest.approx(y, rel=tol, abs=0, nan_ok=True) for x,y in zip(a, b)),(a, b)

net = lambda: nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 1))
everything = [lambda: GradientAccumulation(12), lambda: GradientClip(.5), lambda: EMACallback(.9), lambda: ValidateEvery('4ba'), lambda: EarlyStoppingCallback('valid_loss', patience=20),
              lambda: CheckpointCallback('5ba'), CSVLogger, SkipNaN, lambda: SaveModelCallback()]

@needs_torchft
@pytest.mark.slow
def test_processes_that_are_killed_and_come_train_as_one(tmp_path):
    "Every row, loss and weight is that of an undisturbed run; checkpoints, log and best model have no gap"
    one = quiet(tmp_path/'quiet', model=net, cbs=everything, fit=Learner.fit_one_cycle)
    ends = disturbed(tmp_path/'loud', model=net, cbs=everything, fit=Learner.fit_one_cycle)
    assert {*ends}=={1, 3} and ends[1][3]==ends[3][3]   # bit for bit
    same_rows(ends[1][2], ends[3][2], tol=0)
    assert [*ends[1][:2]]==one[:2] and (ends[1][4], ends[3][4])==(0, 1)
    same_rows(ends[1][2], one[2])
    for a,b in zip(ends[1][3], one[3]): torch.testing.assert_close(torch.tensor(a), torch.tensor(b), rtol=1e-3, atol=1e-4)
    assert len((tmp_path/'loud/history.csv').read_text().splitlines())==len((tmp_path/'quiet/history.csv').read_text().splitlines())
    for found,wanted in zip(*([p.name for p in sorted((tmp_path/d/'checkpoints/fit-1').glob('*.pth'))] for d in ('loud','quiet'))): assert found==wanted

@needs_torchft
def test_the_lighthouse_is_queried_again(monkeypatch):
    "One of two processes joins late, when the first query has failed, even with a torchft without a private name"
    import torchft
    from torchft.coordination import LighthouseServer
    for renamed in (False, True):
        if renamed: monkeypatch.setattr(torchft.Manager, '_quorum_future', property(lambda m: vars(m).get('_renamed'), lambda m,v: vars(m).update(_renamed=v)), raising=False)
        house = LighthouseServer(bind='127.0.0.1:0', min_replicas=2, join_timeout_ms=100)
        first = ReplicaGroup(house.address(), 'localhost', 1., 60., dict)
        first.step = 3
        with ThreadPoolExecutor(2) as pool:
            waits = pool.submit(first.find_members)
            time.sleep(2.5)
            assert not waits.done()
            second = ReplicaGroup(house.address(), 'localhost', 5., 60., dict)
            second.step = 3
            pool.submit(second.find_members).result(), waits.result()
        assert (first.members, second.members, first.step)==([0,1], [0,1], 3)
        for crew in (first, second): crew.leave()
        house.shutdown()
