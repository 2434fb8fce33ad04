"The thread that reports where a process is keeps no object of the watched thread alive."
import json, re, subprocess, sys, threading, weakref
from contextlib import contextmanager
from datetime import timedelta
from math import floor, inf
from threading import get_ident

import pytest, torch
from torch import distributed as dist

from learnkit.processes import watch, words
from learnkit.processes.watch import Watch
from learnkit.processes.words import ProcessIdentity, Notice, Notices, OtherProcesses, Report

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
    where,waits = Looks(t.ident)._inspect()
    assert 'test_watch.py' in where and not waits
    done.set()
    assert go.wait(10)
    assert seen[0]() is None, 'the look keeps what the thread has let go of'
    done2.set(); t.join(10)

WALKS = '''
import gc, sys, threading, time
from learnkit.processes.watch import get_frames
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
    n += bool(get_frames(t.ident))
t.join(); assert n>100 and gc.isenabled(), n
gc.disable(); get_frames(t.ident); assert not gc.isenabled() and get_frames(t.ident)==[]
'''

@pytest.mark.slow
def test_a_collection_lets_no_thread_continue():
    "… while the frames of another thread are read, which would be gone then: that ended the process in a second"
    res = subprocess.run([sys.executable, '-c', WALKS], capture_output=True, text=True, timeout=120)
    assert res.returncode==0, (res.returncode, res.stderr[-500:])

class Asked:
    "A store that records the number of keys of each request"
    def __init__(self): self.store,self.questions = dist.HashStore(),[]
    def __getattr__(self, name):
        f = getattr(self.store, name)
        def ask(keys, *args):
            self.questions.append(len(keys) if isinstance(keys, list) else 1)
            return f(keys, *args)
        return ask

def test_what_a_large_group_asks_of_its_store(monkeypatch):
    "A process that waited queried each of the others twice, again and again, and its message named them all"
    n = 4096
    monkeypatch.setattr(words, 'num_distrib', lambda: n)
    others = OtherProcesses(Asked())
    for r in range(n): others.report_store.store.set(str(r), json.dumps(Report(1, 'in `one_batch`', 40., r!=3000)))
    others.read_reports([6])
    assert {*others.reports}=={6} and others.report_store.questions==[1, 1]
    others.report_store.questions.clear()
    others.read_reports()
    assert others.report_store.questions==[n, n]
    said = others.describe(range(n))
    assert said.startswith('process 3000 is in') and said.count('process ')==8 and said.endswith('; and 4,088 more')

def test_what_a_wait_asks_of_the_store():
    "One question a second, however many processes there are, and none in the first second"
    world = World(4096, 'slow', 3000, 20.)
    w = world.watch(5)
    w.notices = Notices(asked := Asked())
    world.run(w, timeout=60.)
    assert asked.questions==[1]*round(world.clock) and world.read==0, asked.questions

def test_failures_are_reported(monkeypatch):
    monkeypatch.setattr(watch, 'num_distrib', lambda: 16)
    w = Watch.__new__(Watch)
    w.others,w.notices,w.rank = OtherProcesses(None),Notices(dist.HashStore()),5
    assert w.describe_failures()==''
    w.report_failure(ValueError('bad'), ', epoch 0, batch 2')
    for w.rank in (7, 2): w.report_failure(KeyError(w.rank), '')
    w.rank = 5
    assert w.describe_failures()=='process 2 failed: KeyError: 2; process 7 failed: KeyError: 7'   # its own is not among them

# a simulation of many processes, of which one is slow, frozen, killed, raises or exits

class World:
    "Processes that all wait for one message, but for one that does not send it; their words are made when they are read"
    def __init__(self, n, how, cause, comes=inf, after=7.):
        self.n,self.how,self.cause,self.comes,self.after = n,how,cause,comes,after   # it happens `after` so many seconds
        self.clock,self.read,self.notices,self.gone = 0.,0,[],{}   # of each that has given up, when it ended
        self.store = dist.HashStore()

    def word(self, rank):
        "The last report of a process: each sends one at its own moment of a second"
        clock = self.clock
        if rank==self.cause and (self.how in ('killed','far','lost') or self.how=='frozen' and clock<self.comes): clock = min(clock, self.after)
        now = floor(clock + rank*.37%1) - rank*.37%1
        life = ['here', rank, 0]
        if rank!=self.cause:
            if now>self.gone.get(rank, inf): return Report(None, 'has ended: it was last in `describe_cause`', 0., False)
            arrived = min(rank%3, 2)*.9   # a few come a bit later
            there = now>=arrived
            return Report(round(now), 'in `before_backward` of `Agreement`' if there else 'in `before_batch` of `Mine`', now-arrived, there, [0, 1] if there else None, life)
        if self.how=='exits' and now>self.after: return Report(None, 'has ended: it was last in `before_batch` of `Mine`', 0., False)
        if self.how=='elsewhere': return Report(round(now), 'at line 7 of script.py, in `barrier`', now, True, None, life)
        return Report(round(now), 'in `before_batch` of `Mine`', now, False, None, life)

    # the store of the words
    def check(self, keys): return True
    def multi_get(self, keys): self.read += len(keys); return [json.dumps(self.word(int(k))).encode() for k in keys]
    def set(self, key, said): pass

    def has_died(self, life, own): return life is not None and self.how=='killed' and life.pid==self.cause and self.clock>self.after

    def watch(self, rank):
        w = Watch.__new__(Watch)
        w.rank,w.report_store,w.store,w.identity,w.thread = rank,self,self.store,ProcessIdentity('here', rank, 0),get_ident()
        w.others,w.notices = OtherProcesses(self, w.identity),Told(self)
        w._inspect = lambda: ('in `before_backward` of `Agreement`', True)
        return w

    @contextmanager
    def inside(self, w):
        "The clock of this world; the thread of a process sends a report each second"
        def sleep(seconds):
            beats = floor(self.clock+seconds) - floor(self.clock)
            self.clock += seconds
            for _ in range(beats): w.send_report()
        with pytest.MonkeyPatch.context() as m:
            for module in (watch, words): m.setattr(module, 'monotonic', lambda: self.clock)
            m.setattr(watch, 'sleep', sleep)
            for module in (watch, words): m.setattr(module, 'num_distrib', lambda: self.n)
            m.setattr(words, 'has_died', self.has_died)
            w.last_reply = self.clock
            yield sleep

    def run(self, w, timeout):
        "How the wait of a process ends, and its message"
        self.clock = 0.
        with self.inside(w) as sleep:
            try: w.wait(Work(self, sleep), timeout)
            except RuntimeError:
                ended = self.clock
                return ended,w.describe_cause()
        return self.clock,'ended well'

class Told:
    "Notices, which come at the time at which they were written"
    def __init__(self, world): self.world = world
    def add(self, notice): self.world.notices.append((self.world.clock, notice))
    def list_read(self):
        world = self.world
        own = [Notice(world.cause, 0, 'failed', 'ArithmeticError: too much')]*(world.how=='raises' and world.clock>world.after)
        own += [Notice(world.cause, None, 'ended', '')]*(world.how=='exits' and world.clock>world.after)
        return own + [Notice(*json.loads(json.dumps(o))) for t,o in world.notices if t<=world.clock]
    read = list_read

class Work:
    "A message: shared memory and connections show that its sender was killed"
    def __init__(self, world, sleep): self.world,self.sleep = world,sleep
    def is_broken(self): return self.world.how in ('killed','far') and self.world.clock>self.world.after
    def is_completed(self): return self.is_broken() or self.world.clock>=self.world.comes
    def wait(self, timeout=timedelta(seconds=0)):
        for _ in range(10):
            if self.is_completed(): break
            self.sleep(timeout.total_seconds()/10)
        if self.is_broken() or not self.is_completed(): raise RuntimeError('timed out')

hows = {            # what happens: when does the wait end, and how is the cause described?
    'slow, comes':  ('slow', 40., 'well', ''),
    'frozen, comes':('frozen', 40., 'well', ''),
    'slow':         ('slow', inf, 'timeout', 'is in `before_batch` of `Mine`'),
    'elsewhere':    ('elsewhere', inf, 'timeout', 'is at line 7 of script.py, in `barrier`'),
    'frozen':       ('frozen', inf, 'timeout', 'has not reported for'),
    'machine lost': ('lost', inf, 'timeout', 'has not reported for'),
    'killed':       ('killed', inf, 'soon', 'has ended without a report, perhaps it was killed'),
    'killed afar':  ('far', inf, 'soon', 'has not reported for'),
    'raises':       ('raises', inf, 'soon', 'failed: ArithmeticError: too much'),
    'exits':        ('exits', inf, 'soon', 'has ended: it was last in `before_batch` of `Mine`')}

@pytest.mark.parametrize('n', [2, 3, 4, 16, 512])
@pytest.mark.parametrize('what', hows)
def test_who_is_the_cause_among_many(n, what):
    "The oracle of `hows`, for a first, a middle and a last process; the second one to give up does so after the first has ended"
    how,comes,ends,description = hows[what]
    for cause in {0, n//2, n-1}:
        world,said = World(n, how, cause, comes),[]
        for rank,timeout in [((cause+1)%n, 60.), ((cause+n//2)%n, 63.), ((cause-1)%n, 75.)]:
            if rank==cause or rank in world.gone: continue
            ended,text = world.run(world.watch(rank), timeout)
            world.gone[rank] = world.clock
            first = not said
            said.append((rank, ended, text))
            if ends=='well': assert text=='ended well' and comes<=ended<comes+1, said; continue
            assert {*map(int, re.findall(r'process (\d+)', text))}=={cause} and description in text, said
            if ends=='timeout': assert ended>59.9, said
            if ends=='soon' or not first: assert world.after<=ended<(timeout+1 if ends=='timeout' else world.after+3), said
            if not first: assert text==said[0][2], said

def test_a_late_process_reports_that_no_process_waits():
    world = World(16, 'slow', 4)
    world.run(world.watch(5), 60.)
    w,world.clock = world.watch(4),90.
    with world.inside(w): assert w.describe_cause()=='the others no longer wait for process 4: process 4 is in `before_batch` of `Mine`, for 62 s'

def test_many_causes_are_counted():
    "Of 512 processes 500 never came to the message: eight are named"
    world = World(512, 'slow', 0)
    world.word = lambda rank: Report(round(world.clock), 'in `before_batch` of `Mine`', world.clock, False, None, None)
    _,text = world.run(world.watch(300), 10.)
    assert text.count('process ')==8 and text.endswith('; and 503 more'), text

def test_processes_that_have_not_sent_yet_are_skipped(monkeypatch):
    monkeypatch.setattr(words, 'num_distrib', lambda: 3)
    store = dist.HashStore()
    store.set('2', 'here')
    assert words.read_texts(store)=={2:'here'} and words.read_texts(store, [0])=={}

if __name__=='__main__':   # the table: PYTHONPATH=tests python tests/parts/processes/test_watch.py
    for what,(how,comes,ends,_) in hows.items():
        for n in (2, 3, 4, 16, 512):
            for place,cause in dict(first=0, middle=n//2, last=n-1).items():
                world = World(n, how, cause, comes)
                ended,text = world.run(world.watch((cause+1)%n), 60.)
                named = sorted({*map(int, re.findall(r'process (\d+)', text))})
                is_right = named==([] if ends=='well' else [cause])
                print(f'{n:3} {what:<13} {place:<7} {ended:5.1f} s  {"right" if is_right else "WRONG"}: {text[:70]}')
