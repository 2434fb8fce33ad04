"""A collective call that not all processes make raises soon in all of them, with the cause."""
import contextlib, io, os, signal, time, warnings
from datetime import timedelta
from functools import partial

import pytest, torch
from torch import distributed as dist, nn
from torch.utils.data import DataLoader

from learnkit.all import Callback, CancelValid, CheckpointCallback, DataLoaders, Learner, ProgressCallback, alone, undivided
from learnkit.processes.distributed import DistributedTrainer
from learnkit.processes.watch import Watch, get_watch
from test_distributed import data, net
from toys import few, slow

pytestmark = few(10_000, 2)   # of the slow cases of each test; all with LEARNKIT_SWEEP=1

torch.set_num_threads(1)

def _inside(rank, world, path, seconds, f, args):
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'file://{path/"store"}', rank=rank, world_size=world, timeout=timedelta(seconds=seconds))
    t,said = time.monotonic(),'nothing'
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter('always')
        try: f(rank, *args)
        except Exception as e: said = f'{type(e).__name__}: {e}'
    took = time.monotonic()-t
    (path/f'{rank}').write_text('|'.join([said, str(took), *(str(w.message) for w in warned)]))

@pytest.fixture
def said(tmp_path):
    "The last output of each process, its warnings, and the longest time"
    def run(world, f, *args, seconds=20):
        ctx = torch.multiprocessing.get_context('fork')
        ps = [ctx.Process(target=_inside, args=(r, world, tmp_path, seconds, f, args)) for r in range(world)]
        for p in ps: p.start()
        for p in ps: p.join(50)
        hang = [r for r,p in enumerate(ps) if p.is_alive()]
        for p in ps: p.kill()
        assert not hang
        parts = [(tmp_path/f'{r}').read_text().split('|') for r in range(world)]
        return [p[0] for p in parts],[p[2:] for p in parts],max(float(p[1]) for p in parts)
    return run

def learner(**kw):
    learn = Learner(DataLoaders(DataLoader(data(24), 4), DataLoader(data(9), 3)), net(), nn.MSELoss(), torch.optim.SGD, lr=.1, **kw)
    learn.logger = lambda row: None
    return learn if 'cbs' in kw else learn.remove_cb(learn.progress)

def _does(rank, calls):
    learn = learner()
    calls[min(rank, len(calls)-1)](learn)

def _waits(learn): dist.barrier()
def _validates(learn): learn.validate()

@pytest.mark.parametrize('first,second,names', [
    (_validates, lambda learn: learn.get_preds(), ('validate(ds_idx=1)','get_preds(ds_idx=1)')),
    *slow((lambda learn: learn.fit(1), _validates, ('fit','validate(ds_idx=1)')),
    (lambda learn: learn.validate(ds_idx=0), _validates, ('validate(ds_idx=0)','validate(ds_idx=1)')),
    (lambda learn: learn.lr_find(), lambda learn: learn.fit(1), ('lr_find','fit')))])
def test_processes_that_do_different_things_say_so_at_once(said, first, second, names):
    texts,_,took = said(2, _does, (first, second))
    assert texts==[f'RuntimeError: the processes call different functions: `learn.{names[0]}` in process 0; `learn.{names[1]}` in process 1']*2 and took<5

def _as_the_other_waits(call, learn):
    """A busy machine may take a second to bring the other process to its barrier: the warning would name an earlier
    place"""
    others = get_watch().others
    while not (word := others.last_report(1)) or 'in `barrier`' not in word.location:
        time.sleep(.05)
        others.read_reports([1])
    call(learn)

@few(1, 1)
@pytest.mark.parametrize('call', [_validates, lambda learn: learn.get_preds(), lambda learn: learn.fit(1), lambda learn: learn.lr_find(), lambda learn: learn.__enter__()])
def test_a_call_in_one_process_while_the_other_waits_elsewhere(said, call):
    (text,_),(warned,_),took = said(2, _does, (partial(_as_the_other_waits, call), _waits), seconds=6)
    assert 'needs all 2 processes, but process 0 waited in vain: process 1' in text, text
    assert 'of test_meet.py, in `barrier`' in text or 'process 1 has ended' in text, text   # its barrier has the same timeout
    assert 'Call it in every process, or in one process inside `with alone():`' in text and took>=5.9   # a barrier of its own may last
    assert len(warned)==1 and 'waits in `' in warned[0] and 'process 1 is at line' in warned[0] and 'of test_meet.py, in `barrier`' in warned[0], warned

def _join_a_third(learn):
    "Two of three processes use a group of their own for longer than a tenth of the timeout, and come then"
    if dist.get_rank()==2: time.sleep(4)
    dist.barrier(group=learn.pair)
    learn.validate()

def _pairs(rank):
    learn = learner()
    learn.pair = dist.new_group([1, 2])
    _validates(learn) if rank==0 else _join_a_third(learn)

def test_who_waits_elsewhere_may_still_come(said):
    texts,_,took = said(3, _pairs)
    assert texts==['nothing']*3, texts

def _validates_twice(learn): learn.validate(); learn.validate()
def _killed(learn): os.kill(os.getpid(), signal.SIGKILL)
def _killed_later(learn): learn.validate(); _killed(learn)
def _one_is_killed(rank, how):
    if rank==2: Watch.run = lambda self: None   # killed before the thread of its watch has run once
    _does(rank, (_validates_twice, _validates_twice, how))

@pytest.mark.parametrize('how', [_killed, *slow(_killed_later)])
def test_one_that_was_killed_is_known_at_once(tmp_path, how):
    "Long before the timeout, and only that one is named; its first report, as its Learner is made, is enough"
    ctx = torch.multiprocessing.get_context('fork')
    ps = [ctx.Process(target=_inside, args=(r, 3, tmp_path, 600, _one_is_killed, (how,))) for r in range(3)]
    for p in ps: p.start()
    for p in ps: p.join(50)
    came = [p.exitcode for p in ps]
    for p in ps: p.kill()
    assert came==[0, 0, -signal.SIGKILL]
    texts = [(tmp_path/f'{r}').read_text() for r in range(2)]
    assert all('process 2 has ended without a report, perhaps it was killed' in t and 'process 1 has' not in t for t in texts), texts

@pytest.mark.slow
def test_a_call_after_the_others_have_ended(said):
    (text,_),_,took = said(2, _does, (_validates, lambda learn: time.sleep(2)))
    assert 'process 1 has ended: it was last at line' in text and took<12

@pytest.mark.slow
def test_one_that_comes_late_is_waited_for(said):
    def late(learn): time.sleep(4); learn.validate()
    texts,(warned,_),took = said(2, _does, (_validates, late))
    assert texts==['nothing']*2 and len(warned)==1 and 'process 1 is at line' in warned[0] and 'in `late`' not in warned[0] and 4<took<8

@pytest.mark.slow
def test_one_that_is_interrupted_while_it_waits_tells_the_others(said):
    def interrupted(learn):
        import _thread, threading
        threading.Timer(1, _thread.interrupt_main).start()
        try: learn.validate()
        except KeyboardInterrupt: pass
    texts,_,took = said(2, _does, (interrupted, lambda learn: (time.sleep(3), learn.validate())))
    assert texts==['nothing', 'RuntimeError: process 0 has left `learn.validate(ds_idx=1)`: KeyboardInterrupt'] and took<8

def _in_a_fit(rank, what, path, at='after_batch', promises=False):
    learn = learner(path=path)
    def alone_there(cb):
        if learn.mode=='fit' and learn.training and learn.train_iter==3 and rank==0: what(learn)
    cb = Callback(**{at:alone_there})
    if promises: cb.acts = 'alike'
    learn.fit(3, cbs=[cb, CheckpointCallback(), DistributedTrainer(timeout=8)])

@few(1, 1)
@pytest.mark.parametrize('what', [_validates, lambda learn: learn.get_preds(), lambda learn: learn.checkpoint.save(0, 3), lambda learn: dist.barrier()])
def test_a_call_of_one_process_in_a_fit_of_all(said, tmp_path, what):
    texts,_,took = said(2, _in_a_fit, what, tmp_path)
    assert all(t.startswith('ProcessFailed') for t in texts) and took<20, texts

@pytest.mark.slow
def test_a_call_of_one_process_while_the_other_continues_to_its_next_batch(said, tmp_path):
    "The callback was declared to do the same everywhere, so the processes did not agree after it"
    texts,_,took = said(2, _in_a_fit, _validates, tmp_path, 'after_pred', True)
    waited = 'ProcessFailed: process 0 waited at `before_validate`, epoch 1, and '
    # either process may be the first to end its wait, and the message of the other one then says that
    places = '`before_backward`','`_do_grad_opt`'   # which calls the backward pass
    first = texts[0].startswith(tuple(f'{waited}process 1 is in {place}' for place in places))
    second = texts[0].startswith(waited+'the others no longer wait for process 0') and 'process 0 is in `before_validate`' in texts[1]
    assert first or second, texts
    assert texts[1].startswith('ProcessFailed') and took<20

def _by_itself(rank):
    learn = learner()
    if rank: return time.sleep(2)
    with alone(): a = learn.validate()
    with undivided(): b = learn.validate()
    learn.distributed = False
    assert a==b==learn.validate()

@pytest.mark.slow
def test_one_process_may_validate_by_itself(said): assert said(2, _by_itself)[0]==['nothing']*2

def _too_slow(rank, how):
    "Longer than PyTorch waits in a collective: that of the backward pass, of a callback's own, or of what learnkit does"
    def slowly(cb):
        if cb.learn.mode!='fit' or not cb.learn.training or cb.learn.train_iter!=3: return
        if rank: time.sleep(6)
        elif how=='collective': dist.barrier()
    cb = Callback(after_pred=slowly)
    cb.acts = 'alike'
    learner().fit(3, cbs=[cb, DistributedTrainer(timeout=60)])

@few(0, 0)
@pytest.mark.parametrize('how', ['backward','collective'])
def test_a_timeout_of_pytorch_says_who_was_late(said, how):
    (text,_),_,took = said(2, _too_slow, how, seconds=2)
    assert text.startswith('ProcessFailed: process 1 is in `after_pred` of `Callback`, epoch 1, batch 0'), text

def _fails(rank, call, at):
    def fail(cb):
        if rank: raise ArithmeticError('that is too much')
    call(learner().add_cb(Callback(**{at:fail})))

@pytest.mark.parametrize('call,at', [(_validates, 'after_loss'), *slow((_validates, 'after_validate'), (_validates, 'before_validate'), (lambda learn: learn.get_preds(), 'after_pred'), (lambda learn: learn.get_preds(), 'after_epoch'))])
def test_an_error_in_one_process_outside_of_a_fit_is_reported_by_all(said, call, at):
    texts,_,took = said(2, _fails, call, at)
    assert texts[0].startswith('ProcessFailed: process 1 failed: ArithmeticError: that is too much') and texts[1]=='ArithmeticError: that is too much' and took<8, texts

def _cancels(rank, who):
    def cancel(cb):
        if rank in who and cb.learn.iter==0: raise CancelValid
    learn = learner().add_cb(Callback(after_batch=cancel))
    told = learn.validate()
    assert [*told]!=[*learner().validate()], told
    raise ValueError(str(told))

@pytest.mark.slow
def test_a_cancel_in_one_process_outside_of_a_fit_is_one_of_all(said):
    alone,_,_ = said(2, _cancels, [1])
    assert alone[0]==alone[1]

def _shows(rank):
    learn,out = learner(cbs=ProgressCallback('lines', every=0)),io.StringIO()
    with contextlib.redirect_stdout(out):
        learn.validate()
        learn.get_preds()
        learn.fit(1)
    assert learn.progress.run
    raise ValueError(out.getvalue())

def test_only_process_0_draws_bars(said):
    (first,second),_,_ = said(2, _shows)
    assert 'validate' in first and 'predict' in first and 'train' in first and second=='ValueError: '
