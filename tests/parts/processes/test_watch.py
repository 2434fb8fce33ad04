"The thread that says where a process is only looks: it keeps nothing alive of the thread that it looks at."
import json, subprocess, sys, threading, weakref
import pytest, torch
from torch import distributed as dist

from learnkit.processes import watch
from learnkit.processes.watch import Watch

class Looks(Watch):
    "Looks at a thread without a group of processes"
    def __init__(self, thread): self.thread = thread

def test_what_a_function_lets_go_of_is_freed_while_it_is_watched():
    "Activations outlived their forward pass by a second: in the frames that the watch held, and in its copies of their locals"
    seen,go,done,done2 = [],*(threading.Event() for _ in range(3))
    def forward():
        act = torch.zeros(10)
        seen.append(weakref.ref(act))
        go.set(); done.wait(10)
        del act
        go.set(); done2.wait(10)
    t = threading.Thread(target=forward); t.start()
    assert go.wait(10); go.clear()
    where,waits = Looks(t.ident)._look()
    assert 'test_watch.py' in where and not waits
    done.set()
    assert go.wait(10)
    assert seen[0]() is None, 'the look keeps what the thread has let go of'
    done2.set(); t.join(10)

WALKS = '''
import gc, sys, threading, time
from learnkit.processes.watch import frames_of
sys.setswitchinterval(1e-6); gc.set_threshold(25, 3, 3)
class Cycle:
    def __init__(self): self.me = self
    def __del__(self): time.time()<end and time.sleep(3e-5)   # lets the other thread go on
def gen(n):
    if n: yield from gen(n-1)
    yield n
def deep(n):
    if n%7==3: [*gen(4)]
    return deep(n-1) if n else 0
end = time.time()+3
def work():
    i = 0
    while time.time()<end: i += 1; deep(50 + i*37%700)
t = threading.Thread(target=work); t.start()
n = 0
while time.time()<end:
    for _ in range(8): Cycle()
    n += bool(frames_of(t.ident))
t.join(); assert n>100 and gc.isenabled(), n
gc.disable(); frames_of(t.ident); assert not gc.isenabled() and frames_of(t.ident)==[]
'''

@pytest.mark.slow
def test_a_collection_lets_nobody_go_on():
    "… while the frames of another thread are read, which would be gone then: that ended the process in a second"
    res = subprocess.run([sys.executable, '-c', WALKS], capture_output=True, text=True, timeout=120)
    assert res.returncode==0, (res.returncode, res.stderr[-500:])

class Asked:
    "A store that notes how many keys each question is about"
    def __init__(self): self.store,self.questions = dist.HashStore(),[]
    def __getattr__(self, name):
        f = getattr(self.store, name)
        def ask(keys, *args):
            self.questions.append(len(keys) if isinstance(keys, list) else 1)
            return f(keys, *args)
        return ask

class Never:
    "A collective that does not end"
    def wait(self, timeout): raise RuntimeError('timed out')
    def is_completed(self): return False

def test_what_a_large_group_asks_of_its_store(monkeypatch):
    "A process that waited asked twice for each of the others, again and again, and its message named them all"
    n,rank = 4096,5
    monkeypatch.setattr(watch, 'num_distrib', lambda: n)
    w = Watch.__new__(Watch)
    w.rank,w.heard,w.places,w.store = rank,{},Asked(),dist.HashStore()
    for r in range(n): w.places.store.set(str(r), json.dumps([1, 'in `one_batch`', 40., r!=3000]))
    w.listen([6])
    with pytest.raises(RuntimeError): w.wait(Never(), 20)   # the next one waits too
    assert set(w.heard)=={6} and w.places.questions==[1]*4
    w.places.questions.clear()
    w.listen()
    assert w.places.questions==[n, n]
    said = w.describe(range(n))
    assert said.startswith('process 3000 is in') and said.count('process ')==8 and said.endswith('; and 4,088 more')
    assert w.failures()==''
    w.fail(ValueError('bad'), ', epoch 0, batch 2')
    for w.rank in (7, 2): w.fail(KeyError(w.rank), '')
    w.rank = rank
    assert w.failures()=='process 2 failed: KeyError: 2; process 7 failed: KeyError: 7'   # its own is not among them

def test_who_has_not_spoken_yet_is_left_out(monkeypatch):
    monkeypatch.setattr(watch, 'num_distrib', lambda: 3)
    store = dist.HashStore()
    store.set('2', 'here')
    assert watch.messages(store)=={2:'here'} and watch.messages(store, [0])=={}
