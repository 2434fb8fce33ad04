"""Process 0 shows each warning of all processes once"""
import os, random, re, signal, sys, threading, warnings

import pytest, torch

from learnkit.all import Callback, ValidateEvery
from learnkit.processes.distributed import DistributedTrainer
from test_agreement import _inside, learner
from toys import few

EVENTS = ['before_fit','before_epoch','before_train','before_batch','after_loss','after_step','after_batch','after_train','before_validate','after_validate','after_epoch','after_fit']

def plan(seed, world):
    "For each process, its warnings by event and epoch: some processes issue each warning, at different times"
    r,res = random.Random(seed),[{} for _ in range(world)]
    for i in range(12):
        for rank in r.sample(range(world), r.randint(1, world)):
            e = r.choice(EVENTS)
            res[rank].setdefault((e, dict(before_fit=0, after_fit=1).get(e, r.randrange(2))), []).append(f'text {i} of {seed}')
    return res

class Warns(Callback):
    acts,run_valid = 'nothing',False
    def __init__(self, said, ends=None):
        super().__init__()
        self.said,self.ends = said,ends
        for e in EVENTS: setattr(self, e, lambda e=e: self.speak(e))
    def speak(self, e):
        for text in self.said.pop((e, self.learn.epoch or 0), ()):
            if 'text 3' in text: t = threading.Thread(target=lambda: warnings.warn(text, RuntimeWarning)); t.start(); t.join()
            else: warnings.warn(text)
        if e=='after_step' and self.learn.epoch==1 and self.ends: self.ends()

def fails(): raise ArithmeticError('that is too much')
def killed(): os.kill(os.getpid(), signal.SIGKILL)

def _warns(rank, world, path, seed, ends):
    fd = os.open(path/f'err{rank}', os.O_WRONLY|os.O_CREAT)
    os.dup2(fd, 2); sys.stderr = open(2, 'w', buffering=1, closefd=False)
    warnings.simplefilter('default')   # pytest records them; here they are printed, as by Python
    warnings.showwarning = shows = lambda *args: sys.stderr.write(warnings.formatwarning(*args[:4]))
    try: learner().fit(2, cbs=[DistributedTrainer(timeout=5), ValidateEvery('2ba'), Warns(plan(seed, world)[rank], ends if rank==1 else None)])
    finally: assert warnings.showwarning is shows
    warnings.warn('said after it')

def shown(tmp_path, world, seed, ends=None):
    "The lines printed by each process"
    ctx = torch.multiprocessing.get_context('fork')
    ps = [ctx.Process(target=_inside, args=(r, world, tmp_path/'store', _warns, (tmp_path, seed, ends))) for r in range(world)]
    for p in ps: p.start()
    for p in ps: p.join(30); p.kill()
    return [[o.split('Warning: ')[1] for o in (tmp_path/f'err{r}').read_text().splitlines() if 'Warning: ' in o] for r in range(world)]

def sayers(seed, world):
    res = {}
    for rank,said in enumerate(plan(seed, world)):
        for texts in said.values():
            for t in texts: res.setdefault(t, set()).add(rank)
    return res

def check(lines, who):
    "Each warning is shown once, with the numbers of processes that issued it, or none if process 0 was first"
    for text,ranks in who.items():
        found = [o for o in lines if o.endswith(text)]
        assert len(found)==1, (text, ranks, lines)
        named = {*map(int, re.findall(r'\d+', found[0].removesuffix(text)))}
        assert named<=ranks and (named or 0 in ranks), (found, ranks)

@few(1)
@pytest.mark.parametrize('seed,world', [(s, 2+s%2) for s in range(6)])
def test_each_once(tmp_path, seed, world):
    lines = shown(tmp_path, world, seed)
    assert [o.pop() for o in lines]==['said after it']*world
    check(sum(lines, []), sayers(seed, world))
    for own in lines[1:]: assert all(any(t in o for p in plan(seed, world) for t in p.get(('after_fit', 1), ())) for o in own), lines   # what came too late

@few(0, 1)
@pytest.mark.slow
@pytest.mark.parametrize('seed,ends', [(s, e) for s in range(3) for e in (fails, killed)])
def test_nothing_is_lost_if_one_ends(tmp_path, seed, ends):
    lines,who = sum(shown(tmp_path, 2, seed, ends), []),sayers(seed, 2)
    early = {(e,n) for e in EVENTS for n in (0, 1) if e!='after_fit' and (n==0 or EVENTS.index(e)<EVENTS.index('after_step'))}
    said = {t for p in plan(seed, 2) for k,texts in p.items() if k in early for t in texts}
    check(lines, {t:r for t,r in who.items() if t in said})

def _collects(rank, world):
    with warnings.catch_warnings(record=True) as got:
        warnings.simplefilter('always')
        learner().fit(1, cbs=Warns({('after_loss', 0):[f'text of {rank}'], ('after_fit', 0):['later']}))
    assert {str(w.message) for w in got}=={f'text of {rank}','later'}, [str(w.message) for w in got]

@pytest.mark.slow
def test_who_collects_them_gets_them(tmp_path):
    torch.multiprocessing.start_processes(_inside, (2, tmp_path/'store', _collects, ()), nprocs=2, start_method='fork')
