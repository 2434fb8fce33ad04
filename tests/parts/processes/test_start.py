"""What many processes cost as they start: connections, entries of the store, questions to it; and the last process that needs the store finds it."""
import json, os, socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest, torch
from torch import distributed as dist

from learnkit.data import process
from learnkit.processes import launch, watch, words
from learnkit.processes.launch import Launch, _get_name_of_attempt, connect_lazily, join_group, new_gloo_group
from learnkit.processes.watch import Watch
from learnkit.processes.words import OtherProcesses, Report, yield_pauses

torch.set_num_threads(1)

def test_pauses_grow(monkeypatch):
    "At most 10,000 questions a second of all, a delay of at most a tenth of the wait (and half of that) or a second, and one a second in the end"
    monkeypatch.setattr(words, '_draw_uniform', lambda low, high: 1.)
    for n in 2, 64, 512, 4096:
        clock = 0.
        monkeypatch.setattr(words, 'monotonic', lambda: clock)
        asked,usual = [],max(.02, n/10_000)
        for pause in yield_pauses(n):
            clock += pause
            asked.append(clock)
            assert pause<=max(usual, clock/10)+1e-9 and pause<=1
            if clock>60: break
        in_first_second,in_last = sum(t<1 for t in asked),sum(t>50 for t in asked)
        assert n*in_first_second<=max(n*60, 10_000+10*n) and in_last<=12, (n, in_first_second, in_last)

def test_processes_do_not_ask_at_the_same_moments(monkeypatch):
    monkeypatch.setattr(words, 'monotonic', lambda: 0.)   # a busy machine may pause between two requests
    first = [next(yield_pauses(2)) for _ in range(50)]
    assert len({*first})>40 and .0002<min(first) and max(first)<.0008

class Counted:
    """A store that counts the requests of one process; PyTorch's classes accept only their own, so it replaces
    `PrefixStore` too"""
    def __init__(self, store, prefix='', n=None): self.store,self.prefix,self.n = store,prefix,Counter() if n is None else n
    def _key(self, key): return f'{self.prefix}/{key}'
    def add(self, key, i): self.n['add'] += 1; return self.store.add(self._key(key), i)
    def set(self, key, value): self.n['set'] += 1; self.store.set(self._key(key), value)
    def get(self, key): self.n['get'] += 1; return self.store.get(self._key(key))
    def check(self, keys): self.n['check'] += 1; return self.store.check([*map(self._key, keys)])
    def multi_get(self, keys): self.n['multi_get'] += 1; return self.store.multi_get([*map(self._key, keys)])

def test_what_a_start_asks_of_the_store(monkeypatch):
    "Process 0 queried each missing process again and again: the square of their number in requests"
    monkeypatch.setattr(launch.dist, 'PrefixStore', lambda prefix, store: Counted(store.store, f'{store.prefix}/{prefix}', store.n))
    n,store = 24,dist.HashStore()
    stores = [Counted(store) for _ in range(n)]
    def come(rank): return _get_name_of_attempt(stores[rank], Launch('srun', rank, n, rank, 'localhost', '29500'), 20.)
    with ThreadPoolExecutor(n) as pool: names = [*pool.map(come, range(n))]
    assert len({*names})==1
    asked = [sum(s.n.values()) - s.n['set'] for s in stores]
    assert stores[0].n['set']==n-1 and asked[0]<n*n/2 and max(asked[1:])<100, asked

def test_the_variable_of_a_user_stays(monkeypatch):
    for own in None, '0', '1':
        monkeypatch.delenv('TORCH_GLOO_LAZY_INIT', raising=False) if own is None else monkeypatch.setenv('TORCH_GLOO_LAZY_INIT', own)
        with pytest.raises(KeyError), connect_lazily():
            assert os.environ['TORCH_GLOO_LAZY_INIT']==(own or '1')
            raise KeyError
        assert os.environ.get('TORCH_GLOO_LAZY_INIT')==own

def test_the_process_that_hosts_the_store_ends_last(monkeypatch):
    "A process that is late in the last message reads the address of another one from the store"
    monkeypatch.delenv('TORCHELASTIC_USE_AGENT_STORE', raising=False)
    store,clock = dist.HashStore(),[0.]
    def say(rank, beat): store.set(str(rank), json.dumps(Report(beat, 'in `barrier`', 0., False)))
    def sleep(seconds):
        clock[0] += seconds
        if clock[0]>1: say(1, None)   # it ends
    monkeypatch.setattr(watch, 'sleep', sleep)
    for module in (watch, words): monkeypatch.setattr(module, 'monotonic', lambda: clock[0])
    def waits(rank, failed=False):
        "How long this process waits for the others, of which process 1 is in a message until 1 second is over"
        w,clock[0] = Watch.__new__(Watch),0.
        w.rank,w.everyone_else,w.others,w.has_failed = rank,{0, 1, 2}-{rank},OtherProcesses(store),failed
        for other,beat in (1, 7), (2, None): say(other, beat)
        w.let_others_end()
        return clock[0]
    assert 1<waits(0)<1.1
    assert waits(2)==0              # it hosts no store
    assert waits(0, failed=True)==0 # the others know why, and end
    monkeypatch.setattr(OtherProcesses, 'silence', .5)
    assert .5<waits(0)<.6           # and no longer
    monkeypatch.setenv('TORCHELASTIC_USE_AGENT_STORE', 'True')
    assert waits(0)==0              # torchrun hosts it

def sockets():
    "How many sockets this process has"
    n = 0
    for fd in os.listdir('/proc/self/fd'):
        try: n += os.readlink(f'/proc/self/fd/{fd}').startswith('socket')
        except OSError: pass   # the folder itself
    return n

def start(rank, world, port, folder):
    "Connections are made as messages need them; digests are compared; the last message is one that no process has sent before"
    torch.set_num_threads(1)
    os.dup2(os.open(folder/f'said{rank}', os.O_WRONLY|os.O_CREAT), 2)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port))
    before = sockets()
    join_group(timeout=60.)
    groups = [new_gloo_group() for _ in range(3)]
    dist.all_reduce(torch.ones(1), group=groups[0])
    new = sockets()-before
    several,process.Team.several = process.Team.several,None   # the group compares, not shared memory
    for mine,equal in ('x'*100_000, True), ([1, 2.5, None], True), (rank==2, False), (rank, False), ('y'*(rank==1), False):
        assert process.is_equal_in_all(mine)==equal, mine
    process.Team.several = several
    if rank: assert new<=10, new   # of a full mesh of four groups it would have more than 4*5; process 0 hosts the store
    dist.barrier(group=groups[1])
    dist.destroy_process_group()   # process 0 has no more to do

@pytest.mark.skipif(not os.path.exists('/proc/self/fd'), reason='counts sockets by /proc')
def test_six_processes_start(tmp_path):
    with socket.socket() as s: s.bind(('127.0.0.1', 0)); port = s.getsockname()[1]
    torch.multiprocessing.start_processes(start, (6, port, tmp_path), nprocs=6, start_method='fork')
    said = ''.join(p.read_text() for p in tmp_path.iterdir())
    assert not said, said
