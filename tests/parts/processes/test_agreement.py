"""Agreement: what one process decides holds in all processes at the same batch, and none waits forever."""
import os, signal, threading, time
from collections import Counter
from datetime import timedelta

import pytest, torch
from torch import distributed as dist, nn
from torch.utils.data import DataLoader, IterableDataset

from learnkit.processes.agreement import Agreement, ProcessFailed
from learnkit.all import (Callback, CancelBackward, CancelBatch, CancelEpoch, CancelFit, CancelStep, CancelTrain, CancelValid, CancelZeroGrad, CheckpointCallback, DataLoaders, EMACallback,
                          GradientAccumulation, GradientClip, Learner, MixedPrecision, ParamScheduler, ReduceLROnPlateau, RollBackOnNaN, SkipNaN, StopOnSignal, StopAfter, TerminateOnNaNCallback, ValidateEvery, VirtualShards, one_cycle)
from learnkit.processes import shard_weights
from learnkit.processes.distributed import DistributedTrainer
from learnkit.data import process
from learnkit.data.process import gather_objects
from learnkit.loop.events import event
from test_distributed import data, everywhere, net, weights
from toys import few, slow

pytestmark = few(10_000, 1)   # of the slow cases of each test; all with LEARNKIT_SWEEP=1

torch.set_num_threads(1)

def _inside(rank, world, path, f, args):
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'file://{path}', rank=rank, world_size=world, timeout=timedelta(seconds=30))
    f(rank, world, *args)

@pytest.fixture
def processes(tmp_path):
    def run(world, f, *args): torch.multiprocessing.start_processes(_inside, (world, tmp_path/'store', f, args), nprocs=world, start_method='fork')
    return run

def learner(train=None, **kw):
    ds = data(24)
    learn = Learner(DataLoaders(DataLoader(ds, 4, shuffle=True) if train is None else train, DataLoader(data(9), 3)), net(), nn.MSELoss(), torch.optim.SGD, lr=.1, **kw)
    learn.logger = lambda row: None
    return learn.remove_cb(learn.progress)

# every Cancel at every event where it is allowed, in one process of two, against the same in both

scopes = dict(batch=CancelBatch, backward=CancelBackward, step=CancelStep, zero_grad=CancelZeroGrad, train=CancelTrain, validate=CancelValid, epoch=CancelEpoch, fit=CancelFit)
_within = dict(
    backward  = ['before_backward'], step=['before_step'], zero_grad=['before_zero_grad'],
    batch     = ['before_fetch','after_fetch','before_batch','before_pred','after_pred','before_loss','after_loss','before_backward','after_backward','before_step','after_step','before_zero_grad','after_zero_grad'],
    train     = ['before_train','after_batch'], validate=['before_validate','after_exhaust'], epoch=['before_epoch','after_train','after_validate'], fit=['after_epoch'])
_within['train'] += _within['batch']
_within['epoch'] += _within['train'] + _within['validate']
_within['fit']   += _within['epoch']
cases = [(s, e) for s,events in _within.items() for e in events] + [('train', 'after_exhaust')] + [('stop', e) for e in _within['fit']]

class Decides(Callback):
    "In the second epoch, in its second batch if the event is in one"
    run_valid = False
    def __init__(self, what, name):
        super().__init__()
        self.what,self.at = what,name
        setattr(self, name, self.decide)
    def decide(self):
        learn = self.learn
        if self.at=='after_exhaust' and learn.training!=(self.what=='train'): return
        if learn.mode!='fit' or learn.epoch!=1 or (self.at in event.in_batch and learn.iter!=1): return
        if self.what=='stop': learn.stop('enough')
        else: raise scopes[self.what]

def _decide(rank, world, cases, trainer=DistributedTrainer, beside=list, **kw):
    for what,name in cases:
        def run(*who):
            torch.manual_seed(1)
            learn = learner()
            learn.fit(3, cbs=[trainer(**kw or dict(timeout=6)), *beside(), *[Decides(what, name)]*(rank in who), *[Decides(what, 'after_create')]*(rank not in who)])
            rows = [[r['train_loss'],r['valid_loss']] for r in learn.recorder.history]
            return weights(learn.model),torch.tensor([learn.train_iter, learn.epoch, len(rows)*(name!='after_epoch'), learn.stop_reason=='enough']),str(rows)
        alone,both = run(1),run(*range(world))
        for a,b in zip(everywhere(alone[0]), everywhere(both[0])): assert torch.equal(a, b), (what, name, 'weights')
        for a,b in zip(everywhere(alone[1]), everywhere(both[1])): assert torch.equal(a, b), (what, name, alone[1], both[1])
        seen = name=='after_epoch' or name in event.in_batch and [*event].index('before_fetch')<[*event].index(name)<[*event].index('after_loss')
        assert alone[2]==both[2] or seen, (what, name)   # process 0 has done its forward pass by then, and seen the loss

@few(1, 1)
@pytest.mark.parametrize('cases', [[*cases[::16], ('train','after_batch')], *slow(*[cases[i::7] for i in range(7)])], ids=range(8))
def test_what_one_process_cancels_is_cancelled_in_all(processes, cases): processes(2, _decide, cases)

@few(2, 2)
@pytest.mark.parametrize('cases', [cases[4::37], *slow(cases[::7])], ids=range(2))
def test_also_between_machines(processes, monkeypatch, cases):
    monkeypatch.setattr('learnkit.processes.agreement.open_shared_memory', lambda: None)
    processes(2, _decide, cases)

@pytest.mark.slow
def test_with_three_processes(processes): processes(3, _decide, cases[4::11])

def _decides_late(rank, world, cases):
    "After `Agreement` in the order of callbacks: it comes last all the same"
    order,Decides.order = Decides.order,1000
    try: _decide(rank, world, cases)
    finally: Decides.order = order

@few(2, 2)
@pytest.mark.parametrize('at', ['before_backward','after_epoch', *slow('before_validate','after_exhaust','before_train','before_step','before_zero_grad','after_zero_grad')])
def test_also_if_its_callback_comes_last(processes, at): processes(2, _decides_late, [(s, e) for s,e in cases if e==at])

def _beside_exchanges(rank, world, beside, cases, order):
    before,Decides.order = Decides.order,order
    try: _decide(rank, world, cases, beside=beside)
    finally: Decides.order = before

@few(1, 1)
@pytest.mark.parametrize('beside,cases,order', [
    (lambda: [RollBackOnNaN('1ba')], [('train','before_batch'), ('epoch','after_train')], 0),
    *slow((lambda: [ReduceLROnPlateau(lambda learn: float(learn.epoch), comp='min')], [('fit','after_epoch'), ('stop','after_epoch')], 55),
          (lambda: [RollBackOnNaN('1ba')], [('batch','before_batch'), ('fit','before_pred'), ('stop','before_batch'), ('fit','after_train')], 0))], ids=range(3))
def test_also_beside_callbacks_that_exchange_something(processes, beside, cases, order):
    "In the middle of a batch, or between the points where all agree"
    processes(2, _beside_exchanges, beside, cases, order)

def _terminates(rank, world):
    def spoil(cb):
        if rank==1 and cb.learn.training and cb.learn.train_iter==1: cb.learn.loss = cb.learn.loss*float('nan')
    learn = learner()
    learn.fit(2, cbs=[DistributedTrainer(timeout=6), TerminateOnNaNCallback(), Callback(after_loss=spoil)])
    assert 'nan or infinite, epoch 0, batch 1' in learn.stop_reason

@pytest.mark.slow
def test_why_one_process_ended_the_fit_is_reported_in_all(processes): processes(2, _terminates)

def _under_shards(rank, world, cases): _decide(rank, world, cases, VirtualShards, n=2)

@pytest.mark.slow
def test_under_virtual_shards(processes):
    "A stop in a shard, and what is decided from the step on: the same as in all"
    outside = ['before_fetch','before_step','after_step','before_zero_grad','after_zero_grad','after_batch','after_train','before_validate','after_validate','after_epoch']
    cases = [('stop', e) for e in ('before_batch','after_loss','after_step','after_validate')] + [(s, e) for s,events in _within.items() for e in events if e in outside]
    processes(2, _under_shards, cases[::3])

# what ends one process ends all of them within seconds, with the reason

def _ended(rank, world, path, how, at, trainer=None):
    "Process 1 fails, is killed, or hangs; the others write what they raised, and when"
    def ends(cb):
        if rank!=1 or (cb.learn.epoch!=1 and at!='before_fit') or (at in event.in_batch and cb.learn.iter!=1): return
        if how=='killed': os.kill(os.getpid(), signal.SIGKILL)
        if how=='hangs': time.sleep(40)
        raise ArithmeticError('that is too much')
    learn,t = learner(),time.monotonic()
    try: learn.fit(3, cbs=[trainer or DistributedTrainer(timeout=3), Callback(**{at:ends if rank==1 else lambda cb: None})])
    except BaseException as e:
        (path/f'{rank}').write_text(f'{type(e).__name__}|{e}|{time.monotonic()-t}')
        raise

def _said(path, how, at, world=2, trainer=None):
    ctx = torch.multiprocessing.get_context('fork')   # no launcher ends the others, as torchrun would
    ps = [ctx.Process(target=_inside, args=(r, world, path/'store', _ended, (path, how, at, trainer))) for r in range(world)]
    for p in ps: p.start()
    ps[0].join(30)
    for p in ps: p.kill()
    return [(path/f'{r}').read_text().split('|') if (path/f'{r}').exists() else None for r in range(world)]

@few(1, 2)
@pytest.mark.parametrize('at', ['before_batch', *slow('before_fit','before_epoch','before_train','after_loss','after_backward','after_step','after_batch','after_train','before_validate','after_validate','after_epoch')])
def test_an_error_of_one_process_is_reported_by_all(tmp_path, at):
    (kind,said,took),own = _said(tmp_path, 'fails', at)
    assert own[0]=='ArithmeticError' and float(took)<15
    assert kind=='ProcessFailed' and 'process 1 failed: ArithmeticError: that is too much' in said, said

@pytest.mark.slow
def test_an_error_under_virtual_shards_is_reported_by_all(tmp_path):
    (kind,said,took),own = _said(tmp_path, 'fails', 'after_step', trainer=VirtualShards(2))
    assert own[0]=='ArithmeticError' and float(took)<15
    assert kind=='ProcessFailed' and 'process 1 failed: ArithmeticError: that is too much' in said, said

@few(0, 1)
@pytest.mark.parametrize('at', ['before_batch','after_backward','after_batch','before_validate'])
def test_a_killed_process_ends_all(tmp_path, at):
    (kind,said,took),own = _said(tmp_path, 'killed', at)
    assert own is None and kind=='ProcessFailed' and 'process 1 has ended without a report, perhaps it was killed' in said and float(took)<20, said

@few(0, 1)
@pytest.mark.parametrize('at', ['before_batch','after_step','after_batch','before_validate'])
def test_a_process_that_hangs_is_named(tmp_path, at):
    (kind,said,took),_ = _said(tmp_path, 'hangs', at)
    assert kind=='ProcessFailed' and f'process 1 is in `{at}` of `Callback`, epoch 1' in said and float(took)<20, said

# processes with different callbacks or plans

def _refused(rank, world, what):
    learn = learner(path='.')
    if what=='epochs':
        with pytest.raises(ValueError, match='the processes have different settings: the length in process 0: 3ep, in process 1: 2ep'): learn.fit(3-rank)
    if what=='callbacks':
        with pytest.raises(ValueError, match='the callbacks in process 0'): learn.fit(3, cbs=[GradientAccumulation(8)]*rank)
    if what=='inference':
        cb = Callback(after_batch=lambda cb: learn.mode=='fit' and learn.training and rank==0 and learn.train_iter==2 and learn.get_preds())
        with pytest.raises(ProcessFailed, match=r'the processes are at different points: process 0 is at `before_validate`.*process 1 is at'): learn.fit(3, cbs=[DistributedTrainer(timeout=5), cb])

@pytest.mark.parametrize('what', ['epochs', *slow('callbacks','inference')])
def test_different_plans_raise(processes, what): processes(2, _refused, what)

# data of different lengths in the processes

def _uneven(rank, world, known):
    class Stream(IterableDataset):
        def __iter__(self): return iter([data(40)[i] for i in range(12+8*rank)])
    dl = [(x, y) for x,y in DataLoader(data(12+8*rank), 4)] if known else DataLoader(Stream(), 4)
    torch.manual_seed(1)
    learn = learner(dl)
    learn.fit(3, cbs=DistributedTrainer(shard=False, timeout=10))
    n = everywhere(torch.tensor([learn.train_iter, len(learn.recorder.losses)]))
    assert [o.tolist() for o in n]==[[9, 9]]*world, n
    assert torch.equal(*everywhere(weights(learn.model)))

@pytest.mark.parametrize('known', [True, *slow(False)])
def test_the_shortest_data_ends_the_epoch(processes, known): processes(2, _uneven, known)

# points at which no callback can decide anything are skipped

def _points(cbs):
    "The points of a batch at which the processes agree, with these callbacks"
    from learnkit.processes.agreement import _find_cbs_that_may_differ, _could_decide, _find_events_before
    learn = learner()
    learn.add_cbs(cbs)
    learn.mode,learn.training = 'fit',True
    learn._rebind()
    return [p for p,events in _find_events_before().items() if _could_decide(_find_cbs_that_may_differ(learn), events)]

class Clips(GradientClip):
    def before_step(self): super().before_step()

def test_a_fit_with_callbacks_that_do_the_same_everywhere_does_not_ask_in_each_batch():
    def alike(): return [ParamScheduler(one_cycle(.1)), GradientClip(), EMACallback(), MixedPrecision('bf16')]
    assert _points(alike())==[]
    assert _points([*alike(), Callback(before_batch=lambda cb: None)])==['before_pred']   # before the backward pass, if the forward pass has no collective
    assert _points([SkipNaN(), StopAfter('30m')])==['before_pred','before_backward','before_step','after_batch'] and _points([SkipNaN(wait=False)])==[]
    for name in ('after_batch','after_cancel_batch','after_read_losses','nonfinite_loss'): assert _points([Callback(**{name:lambda cb: None})])==['after_batch']
    assert _points([Clips])==['before_step']   # its own code decides
    Clips.acts = 'alike'
    try: assert _points([Clips])==[]
    finally: del Clips.acts

# a decision that is not made by a callback takes effect in a later batch, the same one in all processes

def _elsewhere(rank, world, how):
    def stops(): rank==1 and learn.train_iter==4 and learn.stop('enough')
    def loss(pred, y):
        if how=='loss': stops()
        if how=='thread' and rank==1 and learn.train_iter==4: threading.Timer(.02, lambda: learn.stop('enough')).start()
        if how=='signal' and rank==1 and learn.train_iter==4: os.kill(os.getpid(), signal.SIGUSR1)
        return nn.functional.mse_loss(pred, y)
    signal.signal(signal.SIGUSR1, lambda *_: learn.stop('enough'))
    learn = learner()
    learn.loss_func = loss
    learn.fit(2000, cbs=DistributedTrainer(timeout=10))
    n = everywhere(torch.tensor([learn.train_iter, learn.epoch, len(learn.recorder.history)]))
    assert torch.equal(*n) and 4<n[0][0]<6000, n
    assert torch.equal(*everywhere(weights(learn.model))) and learn.stop_reason=='enough'

@pytest.mark.slow
@pytest.mark.parametrize('how', ['loss','thread','signal'])
def test_a_stop_from_elsewhere_is_one_of_all(processes, how): processes(2, _elsewhere, how)

def _counting(f, part=lambda: None):
    """What `f` sends in this thread, by `part`: points of agreement, objects, PyTorch's collectives, and requests to
    the store"""
    sent,me = {k:Counter() for k in ('asked','objects','collectives','store')},threading.get_ident()
    def count(kind, what): threading.get_ident()==me and sent[kind].update([(part(), what) if part() else what])
    def counted(kind, o, k): f = getattr(o, k); m.setattr(o, k, lambda *args, **kw: (count(kind, args[1] if k=='_agree_at' else k), f(*args, **kw))[1])
    with pytest.MonkeyPatch.context() as m:
        counted('asked', Agreement, '_agree_at')
        counted('objects', process, '_exchange_bytes')
        counted('objects', shard_weights, 'start_sums')   # of the weights of the processes' batches
        for k in ('all_gather','broadcast','all_reduce','all_gather_object','broadcast_object_list','barrier','_broadcast_coalesced'): counted('collectives', dist, k)
        for k in ('set','get','add','compare_set','multi_get','delete_key','wait'): counted('store', dist.PrefixStore, k)   # `check` as often as one waits
        f()
    return sent.values()

def _messages_of(rank, world):
    learn = learner(DataLoader(data(2400), 4))
    asked,*_ = _counting(lambda: learn.fit(1))
    assert learn.train_iter==300 and asked['after_batch']<60 and {*asked}=={'before_train','after_batch','after_train','before_validate','after_validate','after_epoch','after_fit'}, asked

def _messages_of_a_step(rank, world):
    "As few as are needed: the price of a short fit is that of its messages"
    def fit(**kw): return [*_counting(lambda: learner().fit(2, cbs=Callback(**{k:lambda cb: None for k in kw})))][:3]
    fit()   # the first fit of a group introduces its processes to each other
    asked,objects,sent = fit()
    assert asked.pop('after_batch')<=6, asked
    ends = dict(before_train=2, after_train=2, before_validate=2, after_validate=2, after_epoch=2, after_fit=1)
    assert asked==ends, asked
    # settings, data, random numbers; then in each epoch the loss, three times whether the validation's data is the same, its loss and its row
    assert objects=={'_exchange_bytes':4 + 2*6, 'start_sums':6}, objects   # and the targets of each batch, through shared memory
    assert sent=={'_broadcast_coalesced':1 + 6 + 2 + 1}, sent   # weights; buffers in each batch, at the end of each phase and of the fit
    asked,*more = fit(before_batch=1)
    assert asked=={**ends, 'before_backward':6, 'after_batch':asked['after_batch']} and more==[objects, sent], asked
    asked,*more = fit(after_epoch=1)   # a handler of `after_epoch` may decide something before its row is written
    assert asked=={**ends, 'after_exhaust':4, 'after_epoch':4, 'after_fit':2, 'after_batch':asked['after_batch']} and more==[objects, sent], asked

class Parts(list):
    "Batches that know in which part of a fit of one epoch it is"
    part = 'start'
    def __iter__(self):
        for b in super().__iter__(): yield b; self.part = 'steps'
        self.part = 'end'

def _messages_of_a_fit(rank, world):
    "… and of its start and its end, by both processes together"
    def fit():
        batches = Parts([(torch.randn(2, 4), torch.randn(2, 1))]*6)
        learn = Learner(DataLoaders(batches), net(), nn.MSELoss(), torch.optim.SGD, lr=.1)
        sent = _counting(lambda: learn.fit(1, cbs=DistributedTrainer(shard=False)), lambda: batches.part)
        return [sum(counts, Counter()) for counts in zip(*gather_objects([*sent]))]
    fit()
    asked,objects,collectives,store = fit()
    for i in ('start','steps'): assert asked.pop((i, 'after_batch'), 0)<=12
    assert asked=={('start','before_train'):2, ('end','after_train'):2, ('end','after_epoch'):2, ('end','after_fit'):2}, asked
    targets = {('start','start_sums'):2, ('steps','start_sums'):10}   # of each batch
    assert objects=={('start','_exchange_bytes'):6, ('end','_exchange_bytes'):2, **targets}, objects   # settings, random numbers, what weighs a batch; the loss
    weights = {(k,'_broadcast_coalesced'):n for k,n in dict(start=4, steps=10, end=4).items()}   # and buffers
    assert collectives==weights, collectives
    meeting = dict(set=2, add=2, get=2, multi_get=1, compare_set=1, delete_key=2)
    assert store=={**{('start', k):n for k,n in meeting.items()}, ('end', 'add'):2}, store   # process 0 reads the warnings of others

@pytest.mark.parametrize('f', [_messages_of_a_step, _messages_of_a_fit])
def test_few_messages(processes, f): processes(2, f)

@pytest.mark.slow
def test_they_ask_now_and_then(processes): processes(2, _messages_of)

# a decision of a validation within an epoch takes effect from that batch on; all skip a NaN of one process

def _within_an_epoch(rank, world):
    def run(who):
        torch.manual_seed(1)
        learn = learner(DataLoader(data(160), 4))
        cb = Callback(after_validate=lambda cb: cb.learn.train_iter>=9 and rank in who and cb.learn.stop('enough'))
        learn.fit(2, cbs=[ValidateEvery('3ba'), cb])
        return torch.cat([weights(learn.model), torch.tensor([learn.train_iter])])
    for a,b in zip(everywhere(run([1])), everywhere(run([0,1]))): assert torch.equal(a, b) and a[-1]==9, (a[-1], b[-1])

def _nan(rank, world):
    def run(who):
        def loss(pred, y): return nn.functional.mse_loss(pred, y)*(float('nan') if rank in who and learn.training and learn.train_iter in (2, 5) else 1)
        torch.manual_seed(1)
        learn = learner()
        learn.loss_func = loss
        learn.fit(3, cbs=[DistributedTrainer(timeout=10), skip := SkipNaN()])
        return torch.cat([weights(learn.model), torch.tensor([learn.train_iter])]),skip.n
    (alone,n),(both,_) = run([1]),run([0,1])
    for a,b in zip(everywhere(alone), everywhere(both)): assert torch.equal(a, b)
    assert n==2*(rank==1)

def _before_the_row(rank, world):
    "A process that cancels at the end of an epoch, before the row is written, has as many rows as the others"
    def cancel(cb):
        if rank==0 and cb.learn.epoch==1: raise CancelFit
    early,learn = Callback(after_epoch=cancel),learner()
    early.order = 9
    learn.fit(3, cbs=early)
    assert len(learn.recorder.history)==1

@pytest.mark.parametrize('f', [*slow(_within_an_epoch, _nan), _before_the_row])
def test_one_of_all(processes, f): processes(2, f)

# before the first forward pass, in which PyTorch would form its buckets

def _at_first(rank, world, kw, hook):
    for cancel in (CancelBatch, CancelEpoch, CancelFit):
        class Raises(Callback):
            def before_batch(self):
                if rank and self.training and self.learn.train_iter in (0, 1): raise cancel
        learn = learner()
        if hook: next(learn.model.parameters()).register_hook(lambda g: None)
        learn.fit(2, cbs=[DistributedTrainer(timeout=15, **kw), Raises()])
        w = weights(learn.model)
        assert all(torch.equal(w, o) for o in everywhere(w)), cancel

@pytest.mark.parametrize('kw, hook', [({}, False), *slow(({}, True), (dict(find_unused_parameters=True), False), (dict(static_graph=True), False))])
def test_a_cancel_of_one_process_before_its_first_batch(processes, kw, hook): processes(2, _at_first, kw, hook)

# a process fails while the others gather objects: they raise at once

def _fails_beside_an_exchange(rank, world):
    def fails(cb):
        if rank==1: raise ZeroDivisionError('no')
    cb = Callback(after_train=fails)
    cb.order = 49.8   # after they agree on the end of the phase, before the Recorder gathers the loss
    start,learn = time.monotonic(),learner()
    with pytest.raises(ZeroDivisionError if rank else ProcessFailed, match='no' if rank else 'process 1 failed: ZeroDivisionError: no'): learn.fit(2, cbs=[DistributedTrainer(timeout=20), cb])
    assert time.monotonic()-start<5
    learn.fit(1)

def test_a_process_that_fails_during_an_exchange_is_named(processes): processes(2, _fails_beside_an_exchange)
