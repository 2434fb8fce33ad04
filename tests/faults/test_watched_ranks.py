"""One of several processes is slow, frozen, killed, raises or exits: waits end only by `timeout` or a detected failure,
and all waiting processes name the one that is the cause. `test_watch.py` simulates the same with many processes."""
import json, os, re, signal, socket, sys, time
from pathlib import Path

import pytest, torch, torch._dynamo   # once for all forks
from torch import nn

from learnkit.all import Callback, DataLoaders, DistributedTrainer, Learner
from learnkit.processes.launch import join_group
from learnkit.processes.watch import Watch
from learnkit.processes.words import Notices
from toys import few, slow

torch.set_num_threads(1)

def misbehave(how, folder):
    "Do what `how` names, in the process that is the cause"
    if how=='slow': time.sleep(3.5)
    if how=='frozen': stop(folder, awake=True)
    if how=='hangs': time.sleep(60)
    if how=='stays frozen': stop(folder)
    if how=='killed': os.kill(os.getpid(), signal.SIGKILL)
    if how=='exits': os._exit(3)
    if how=='leaves': sys.exit(3)
    if how=='raises': raise ArithmeticError('too much')

def stop(folder, awake=False):
    "Stop this process and all its threads; `awake`: another one wakes it after 3.5 seconds"
    me = os.getpid()
    if awake and os.fork()==0:
        time.sleep(3.5)
        os.kill(me, signal.SIGCONT)
        os._exit(0)
    os.kill(me, signal.SIGSTOP)

class Misbehaving(Callback):
    "Makes one process misbehave at an event of the second epoch"
    def __init__(self, how, rank, at, folder):
        super().__init__()
        self.how,self.rank,self.folder = how,rank,folder
        setattr(self, at, self.act)
    def act(self):
        mine = self.rank==int(os.environ['RANK']) and self.learn.epoch==1
        if mine and (not self.learn.training or self.learn.iter==1): misbehave(self.how, self.folder)

def answer_late(after):
    "Delay by `after` seconds the moment when this process finds out why its fit failed"
    def late(f):
        def wait_first(watch):
            time.sleep(after)
            return f(watch)
        return wait_first
    for name in ('describe_cause', 'describe_failures'): setattr(Watch, name, late(getattr(Watch, name)))

def work(rank, world, port, how, cause, at, folder, timeout, boards, late=None, keeper_ends=None, acts=None):
    torch.set_num_threads(1)
    if rank==late: answer_late(4.)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(folder/f'log{rank}', os.O_WRONLY|os.O_CREAT), 2)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port))
    if not boards:
        from learnkit.processes import agreement
        agreement.open_shared_memory = lambda: None
    join_group(timeout=30.)
    torch.manual_seed(1)
    x = torch.randn(12*world, 4)
    misbehaving = Misbehaving(how, cause, at, folder)
    if acts: misbehaving.acts = acts
    learn = Learner(DataLoaders.from_tensors(x, x.sum(1, keepdim=True), valid_pct=.2, bs=3), nn.Linear(4, 1), nn.MSELoss(), cbs=misbehaving)
    learn.logger = lambda row: None
    learn.remove_cb(learn.progress)
    begun,outcome = time.monotonic(),'ended well'
    try: learn.fit(2, cbs=DistributedTrainer(timeout=timeout))
    except BaseException as e: outcome = f'{type(e).__name__}: {e}'
    (folder/f'said{rank}').write_text(json.dumps([outcome, time.monotonic()-begun]))
    if rank==0 and keeper_ends: keeper_ends()

def run(world, how, cause, folder, at='before_batch', timeout=20., boards=True, **kw):
    "How the fit of each process ended, and after how many seconds; None for a process without a result"
    with socket.socket() as s: s.bind(('127.0.0.1', 0)); port = s.getsockname()[1]
    fork = torch.multiprocessing.get_context('fork')   # no launcher kills the others
    ps = [fork.Process(target=work, args=(r, world, port, how, cause, at, folder, timeout, boards), kwargs=kw) for r in range(world)]
    for p in ps: p.start()
    waits_for = [p for r,p in enumerate(ps) if how not in ('hangs','stays frozen') or r!=cause]
    end = time.monotonic()+50
    for p in waits_for: p.join(max(0, end-time.monotonic()))
    hang = [r for r,p in enumerate(ps) if p in waits_for and p.is_alive()]
    for p in ps: p.kill()
    for p in ps: p.join()
    assert not hang, f'{hang} still wait'
    files = [folder/f'said{r}' for r in range(world)]
    return [json.loads(f.read_text()) if f.exists() else None for f in files]

short_waits   = 'slow','frozen'                      # shorter than `timeout`: no process ends
endless_waits = 'hangs','stays frozen'               # longer: `timeout` ends the wait
failures      = 'killed','exits','leaves','raises'   # detected at once

def named(outcome): return {int(r) for r in re.findall(r'process (\d+)(?:, which hosts their store,)? (?:is|has|failed)', outcome)}

def check(world, how, cause, folder, **kw):
    "Run one case; check how each process ended, and which process it names as the cause"
    timeout = 2. if how in endless_waits else 600. if how in failures else 20.
    outcomes = run(world, how, cause, folder, timeout=timeout, **kw)
    for rank,o in enumerate(outcomes):
        if how in short_waits: assert o[0]=='ended well', (rank, o)
        elif rank!=cause: assert o[0].startswith('ProcessFailed: ') and named(o[0])=={cause}, (rank, o)
    if how in endless_waits: assert all(o[1]>2 for r,o in enumerate(outcomes) if r!=cause), outcomes    # not before it
    return outcomes

places = {'first':lambda n: 0, 'middle':lambda n: n//2, 'last':lambda n: n-1}
cases = [(n, how, place) for how in (*short_waits, *endless_waits, *failures) for place in places for n in (3, 4)]
fast = [(3, 'slow', 'first'), (4, 'killed', 'middle'), (3, 'frozen', 'last'), (3, 'hangs', 'middle'), (4, 'raises', 'first')]

@few(len(fast), 3)
@pytest.mark.skipif(not hasattr(os, 'fork'), reason='forks')
@pytest.mark.parametrize('world,how,place', [*fast, *slow(*[c for c in cases if c not in fast])])
def test_processes_name_the_cause(tmp_path, world, how, place): check(world, how, places[place](world), tmp_path)

@few(1, 1)
@pytest.mark.skipif(not hasattr(os, 'fork'), reason='forks')
@pytest.mark.parametrize('how,place', [('slow','last'), *slow(*[(how, place) for how in ('slow','hangs','killed','raises') for place in places if (how, place)!=('slow','last')])])
def test_without_shared_memory(tmp_path, how, place):
    "Without shared memory, messages go over gloo"
    check(3, how, places[place](3), tmp_path, boards=False)

@few(1, 1)
@pytest.mark.skipif(not hasattr(os, 'fork'), reason='forks')
@pytest.mark.parametrize('world,how,place', [(3, 'hangs', 'middle'), *slow(*[(n, how, place) for how in ('hangs','stays frozen','slow','killed')
                                                                          for n,place in ((2, 'last'), (3, 'first'), (4, 'middle'))])])
def test_in_the_backward_pass(tmp_path, world, how, place):
    "A callback that does the same in all processes needs no messages: they wait for `timeout` in PyTorch's collectives"
    check(world, how, places[place](world), tmp_path, acts='alike')

def killed_soon():
    time.sleep(2.5)   # by then each of the others has posted a notice
    os.kill(os.getpid(), signal.SIGKILL)

@few(1, 1)
@pytest.mark.skipif(not hasattr(os, 'fork'), reason='forks')
@pytest.mark.parametrize('how,keeper_ends', [('leaves',None), *slow(*[(how, None) for how in ('raises','exits','killed')],
                                                                 *[(how, killed_soon) for how in failures])])
def test_the_process_that_hosts_the_store_ends_first(tmp_path, how, keeper_ends):
    "Process 1 is the cause; if the store of process 0 ends before process 2 reads it, process 2 blamed process 0"
    check(3, how, 1, tmp_path, late=2, keeper_ends=keeper_ends)

@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, 'fork'), reason='forks')
@pytest.mark.parametrize('how', ['leaves','raises'])
def test_without_notices_in_the_store(tmp_path, how, monkeypatch):
    "A message between the processes names the one that failed"
    monkeypatch.setattr(Notices, 'read', lambda self: [])
    outcomes = check(3, how, 1, tmp_path)
    assert all('process 1 failed' in outcomes[rank][0] for rank in (0, 2)), outcomes

@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, 'fork'), reason='forks')
def test_after_the_epoch(tmp_path):
    "Process 0 is slow after the epoch, as in scripts that upload a file"
    check(3, 'slow', 0, tmp_path, at='after_epoch')

if __name__=='__main__':   # the table: PYTHONPATH=tests python tests/faults/test_watched_ranks.py [2 3 4] [gloo]
    import tempfile
    for n in map(int, [a for a in sys.argv[1:] if a.isdigit()] or (2, 3, 4)):
        for how in (*short_waits, *endless_waits, *failures):
            for place,rank in places.items():
                with tempfile.TemporaryDirectory() as tmp:
                    try: outcomes,right = check(n, how, rank(n), Path(tmp), boards='gloo' not in sys.argv),'right'
                    except AssertionError as e: outcomes,right = [],f'WRONG {e}'
                took = max([o[1] for o in outcomes if o], default=0)
                print(f'{n} {how:<13} {place:<7} {took:5.1f} s  {right}', flush=True)
