"""DiLoCo, with processes or islands of processes, equals a plain PyTorch loop, even if resumed within a round."""
import copy, warnings
from datetime import timedelta

import pytest, torch
import torch._dynamo   # for PyTorch's optimizers: once here, not for seconds in each forked process
from torch import distributed as dist, nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

from learnkit.all import (Callback, CancelBatch, CancelEpoch, CancelFit, CancelStep, CancelTrain, CheckpointCallback, DataLoaders, DiLoCo, DistributedTrainer, EMACallback, FaultTolerant,
    GradientAccumulation, GradientClip, Learner, MixedPrecision, Pausable, ProgressCallback, SaveModelCallback, SkipNaN, ValidateEvery, VirtualShards)
from learnkit.processes import diloco
from learnkit.processes.agreement import ProcessFailed
from learnkit.speed.compiled import compile_config
from learnkit.speed.fully_shard import FullyShard
from learnkit.speed.fused import FusedStep
from test_paused import press
from toys import slow

torch.set_num_threads(1)

def net(bn=True):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4,3), *[nn.BatchNorm1d(3)][:bn], nn.Tanh(), nn.Linear(3,1))

def batches(n, of):
    "Those of a process"
    g = torch.Generator().manual_seed(of)
    return [(x := torch.randn(6, 4, generator=g), x.sum(1, keepdim=True)+of) for _ in range(n)]

def learner(n=7, model=None, **kw):
    valid = batches(3, 9)
    learn = Learner(DataLoaders(batches(n, dist.get_rank() if dist.is_initialized() else 0), valid), model or net(), nn.MSELoss(), torch.optim.AdamW, lr=.05, **kw)
    learn.logger = lambda row: None
    return learn.remove_cb(ProgressCallback)

def fit(learn, *cbs, n=2, shard=False, **kw): learn.fit(n, cbs=[DistributedTrainer(shard=shard, timeout=30), *cbs], **kw); return learn
def shared(n=7, **kw):
    "A Learner whose data are sharded"
    learn = learner(**kw)
    x,y = (torch.cat(ts) for ts in zip(*batches(2*n, 0)))
    learn.dls = DataLoaders(DataLoader(TensorDataset(x, y), 6, shuffle=True), learn.dls.valid)
    return learn

def state(model): return torch.cat([v.double().flatten() for v in model.state_dict().values()])
def trained(model): return torch.cat([p.detach().flatten().clone() for p in model.parameters()])
def everywhere(t):
    parts = [torch.empty_like(t) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, t)
    return parts
def same(t): return all(torch.equal(t, o) for o in everywhere(t))

def _inside(rank, world, path, f, args):
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'file://{path}', rank=rank, world_size=world, timeout=timedelta(seconds=60))
    try: f(rank, *args)
    finally: dist.destroy_process_group()

@pytest.fixture
def processes(tmp_path):
    def run(f, *args, world=2): torch.multiprocessing.start_processes(_inside, (world, tmp_path/'store', f, args), nprocs=world, start_method='fork')
    return run

# a hand-written loop

def by_hand(n, every, lr, mom, epochs=2, clip=None, acc=1, bn=True, island=1):
    "The paper's algorithm with PyTorch's optimizers; rounds end with an epoch, and batch norm statistics are averaged"
    model,data = net(bn),batches(n, dist.get_rank())
    inner,world = torch.optim.AdamW(model.parameters(), .05),dist.get_world_size()
    near = dist.new_subgroups(island)[0]
    far = dist.new_subgroups_by_enumeration([[*range(i, world, island)] for i in range(island)])[0]
    module,model = model,DDP(model, process_group=near) if island>1 else model
    whole = copy.deepcopy(module)
    outer = torch.optim.SGD(whole.parameters(), lr, mom, nesterov=mom>0)
    def mean(t): dist.all_reduce(t, group=far); return t/(world//island)
    @torch.no_grad()
    def meet():
        for b in model.buffers(): dist.broadcast(b, group=near, group_src=0)   # DDP would before the next batch
        for w,p in zip(whole.parameters(), model.parameters()): w.grad = mean(w-p)
        outer.step()
        for w,p in zip(whole.parameters(), model.parameters()): p.copy_(w)
        for w,b in zip(whole.buffers(), model.buffers()):
            if b.is_floating_point(): w.copy_(w-mean(w-b)); b.copy_(w)
    for _ in range(epochs):
        steps = 0
        for i,(x,y) in enumerate(data):
            (nn.functional.mse_loss(model(x), y)/acc).backward()
            if (i+1)%acc and i+1<n: continue
            if (i+1)%acc:   # those left over: their mean
                for p in model.parameters(): p.grad.mul_(acc/((i+1)%acc))
            if clip: nn.utils.clip_grad_norm_(model.parameters(), clip)
            inner.step()
            inner.zero_grad()
            steps += 1
            if steps%every==0: meet()
        if steps%every: meet()
    return module

def _equals(rank):
    for n,every,lr,mom in ((7,3,.7,.9), (6,3,.7,.9), (7,1,1.,0), (5,9,.5,0)):
        two = dist.get_world_size()==2   # gloo adds three numbers in another order, by their places in a message
        learn = fit(learner(n, net(two)), DiLoCo(every, lr, mom))
        got,want = state(learn.model),state(by_hand(n, every, lr, mom, bn=two))   # a bias before a batch norm has no gradient, of which Adam makes steps
        if two: assert torch.equal(got, want), (n, every)
        else: torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)
        assert same(state(learn.model)) and learn.train_steps==2*n
    learn = fit(learner(8, net(False)), DiLoCo(2), GradientAccumulation('2ba'), GradientClip(.5))
    torch.testing.assert_close(state(learn.model), state(by_hand(8, 2, .7, .9, clip=.5, acc=2, bn=False)), rtol=1e-5, atol=1e-6)
    assert same(state(learn.model)) and learn.train_steps==8

@pytest.mark.parametrize('world', [2, 3])
def test_it_is_the_algorithm_of_the_paper(processes, world): processes(_equals, world=world)

def _of_islands(rank):
    "Within a round the weights are equal in an island and differ between islands, of which each has its own data"
    class Looks(Callback):
        acts = 'nothing'
        def before_fetch(self):
            now,n = everywhere(trained(self.learn.model)),self.learn.diloco.local_steps
            assert torch.equal(now[0], now[1]) and torch.equal(now[2], now[3]) and torch.equal(now[0], now[2])==(not n)
    for n,every,lr,mom in ((7,3,.7,.9), (4,9,1.,0)):
        learn = fit(learner(n), DiLoCo(every, lr, mom, island=2), Looks())
        assert torch.equal(state(learn.model), state(by_hand(n, every, lr, mom, island=2))) and same(state(learn.model))
    learn = fit(learner(8, net(False)), DiLoCo(2, island=2), GradientAccumulation('2ba'), GradientClip(.5))
    want = state(by_hand(8, 2, .7, .9, clip=.5, acc=2, bn=False, island=2))
    torch.testing.assert_close(state(learn.model), want, rtol=1e-5, atol=1e-6)
    other = fit(learner(4, net(False)), DiLoCo(9, 1., 0, island=4))   # one island of all is ordinary training
    assert torch.allclose(state(other.model), state(fit(learner(4, net(False))).model), atol=1e-6)
    with pytest.raises(ValueError, match='must divide the number of processes, 4, but is 3'): fit(learner(4), DiLoCo(2, island=3))

def test_islands_of_several_processes(processes): processes(_of_islands, world=4)

def _sends_a_part(rank):
    "Each process sends only its part of the weights to another island"
    sent,real = [],dist.all_reduce
    def all_reduce(t, *args, group=None, **kw):
        if group is diloco.get_islands(2)[1]: sent.append(t.numel())
        return real(t, *args, group=group, **kw)
    dist.all_reduce = all_reduce
    learn = fit(learner(4, net(False)), DiLoCo(2, island=2), n=1)
    n = sum(p.numel() for p in learn.parameters())
    assert sent==[(n+1)//2]*2, (sent, n)

def test_a_process_of_an_island_sends_a_part(processes): processes(_sends_a_part, world=4)

def _averages(rank):
    "With lr=1 and no momentum, the result is the mean of the weights: local SGD"
    seen = []
    class Apart(DiLoCo):
        def _synchronize(self):
            if not self.local_steps: return super()._synchronize()   # the end of the epoch
            mean = sum(everywhere(trained(self.learn.model)))/2
            super()._synchronize()
            torch.testing.assert_close(trained(self.learn.model), mean, rtol=0, atol=1e-6)
            seen.append(self.learn.train_iter)
    fit(learner(6), Apart(3, lr=1, mom=0), n=1)
    assert seen==[2, 5]

def test_local_sgd_is_the_mean_of_the_weights(processes): processes(_averages)

def test_it_is_defined_for_one_process():
    learn = learner(7)
    learn.fit(2, cbs=DiLoCo(3))
    model,(inner,outer) = net(),(None, None)
    inner,whole = torch.optim.AdamW(model.parameters(), .05),copy.deepcopy(model)
    outer = torch.optim.SGD(whole.parameters(), .7, .9, nesterov=True)
    for i in range(14):
        x,y = batches(7, 0)[i%7]
        nn.functional.mse_loss(model(x), y).backward()
        inner.step(); inner.zero_grad()
        if i%7 in (2, 5, 6):
            with torch.no_grad():
                for w,p in zip(whole.parameters(), model.parameters()): w.grad = w-p
                outer.step()
                for w,p in zip(whole.parameters(), model.parameters()): p.copy_(w)
    assert torch.equal(trained(learn.model), trained(model))

def test_a_cancelled_step_does_not_count():
    seen = []
    class Looks(Callback):
        def before_step(self):
            if self.learn.train_iter==1: raise CancelStep
        def after_batch(self):
            if self.training: seen.append(self.learn.diloco.local_steps)
    learner(7).fit(1, cbs=[DiLoCo(3), Looks()])
    assert seen==[1, 1, 2, 0, 1, 2, 0]

# what is sent

def _sends(rank):
    "Between two meetings no process waits for another one"
    sent = []
    real,broadcasts = diloco.average_tensors,[]
    broadcast = dist._broadcast_coalesced
    dist._broadcast_coalesced = lambda *args: (broadcasts.append(args), broadcast(*args))
    class Hears(Callback):
        "`after_step` of the last step of a round sees the averaged weights"
        acts = 'nothing'
        def after_step(self): assert same(trained(self.learn.model))==(self.learn.train_iter%5==4)
    def average_tensors(ts, *groups): sent.append(sum(t.numel() for t in ts)); real(ts, *groups)
    diloco.average_tensors = average_tensors
    learn = learner(20)
    class Asked(Callback):
        acts = 'nothing'
        n = 0
        def before_train(self):
            agreement,self.n = self.learn.agreement,0
            asks = agreement._agree_at
            def _agree_at(*args, **kw): self.n += self.learn.training and args[0]!='ask' and args[0] not in ('before_train','after_batch','after_train'); return asks(*args, **kw)
            agreement._agree_at = _agree_at
        def after_train(self): assert self.n==0
    fit(learn, DiLoCo(5), Asked(), Hears(), n=1)
    assert 0<len(broadcasts)<4   # counts of the batch norm, where a phase and the fit end
    assert sent==[sum(v.numel() for v in net().state_dict().values() if v.is_floating_point())]*4 + [6]   # with averages of the batch norm, and these at the end

def test_nothing_is_sent_within_a_round(processes): processes(_sends)

# within a round

def _validates(rank, path):
    """A validation within a round uses the weights of the last synchronization, the same in all processes, and changes
    nothing"""
    whole = fit(learner(8), DiLoCo(4))
    class Looks(Callback):
        acts = 'nothing'
        def before_validate(self): self.weights = trained(self.learn.model); assert same(self.weights)
    learn = fit(learner(8, path=path), DiLoCo(4), ValidateEvery('3ba'), Looks(), SaveModelCallback())
    assert torch.equal(state(learn.model), state(whole.model))
    class Saves(Callback):
        def after_batch(self):
            if self.training and self.train_iter==6:
                before = trained(self.learn.model)
                assert not same(before)
                path = self.learn.save('now')
                dist.barrier()   # process 0 writes it
                assert torch.equal(before, trained(self.learn.model))
                self.model = copy.deepcopy(self.learn.model.module)
                self.model.load_state_dict(torch.load(path)['model'])
                self.learn.validate()
                assert torch.equal(before, trained(self.learn.model))
    saves = Saves()
    learn = fit(learner(8, path=path), DiLoCo(4), saves)
    assert torch.equal(state(learn.model), state(whole.model)) and same(trained(saves.model))

def test_a_validation_within_a_round_changes_nothing(processes, tmp_path): processes(_validates, tmp_path)

class Cut(Callback):
    acts = 'nothing'
    def __init__(self, at): self.at = at
    def before_pred(self):
        if self.training and self.learn.train_iter==self.at: raise KeyboardInterrupt

class Sums(Callback):
    "Changes nothing, but its state depends on the weights of its process"
    acts,saves,total = 'nothing',('total',),0.
    def after_batch(self):
        if self.training: self.total += self.learn.loss.item()

def _resumes(rank, path, cuts, island=1):
    def made(folder): torch.manual_seed(3); return shared(7, path=path/folder)
    def cbs(): return [DiLoCo(3, island=island), CheckpointCallback('2ba', keep=None), GradientClip(.5), ValidateEvery('2ba')]
    whole = fit(made('whole'), *cbs(), all_losses := Sums(), shard=True)
    for at in cuts:
        try: fit(made(f'cut{at}'), *cbs(), Sums(), Cut(at), shard=True)
        except KeyboardInterrupt: pass
        learn = made(f'cut{at}')
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            fit(learn, *cbs(), losses := Sums(), shard=True, resume='auto')
        assert torch.equal(state(learn.model), state(whole.model)) and losses.total==all_losses.total, at
        assert learn.recorder.values==whole.recorder.values

def _resumes_accumulation(rank, path, cuts):
    def made(folder): torch.manual_seed(3); return shared(7, path=path/folder)
    def cbs(): return [DiLoCo(2), CheckpointCallback('1ba', keep=None), GradientAccumulation('2ba')]
    whole = fit(made('whole'), *cbs(), shard=True)
    for at in cuts:
        try: fit(made(f'cut{at}'), *cbs(), Cut(at), shard=True)
        except KeyboardInterrupt: pass
        assert torch.equal(state(fit(made(f'cut{at}'), *cbs(), shard=True, resume='auto').model), state(whole.model)), at

@pytest.mark.parametrize('f, cuts', [(_resumes, [5]), *slow((_resumes, [2, 6, 7, 8, 11]), (_resumes_accumulation, [1, 2, 6, 8]))])   # within a round, at its end, at that of an epoch
def test_a_run_resumes_within_a_round(processes, tmp_path, f, cuts): processes(f, tmp_path, cuts)

@pytest.mark.slow
def test_islands_resume_within_a_round(processes, tmp_path): processes(_resumes, tmp_path, [2, 5], 2, world=4)

def _saves_of_each_island(rank, path):
    "The weight that a process expects of a batch differs between islands: in the second one batches are smaller"
    learn = learner(4, path=path)
    if rank>1: learn.dls.loaders[0] = [(x[:5], y[:5]) for x,y in learn.dls.train]
    try: fit(learn, DiLoCo(3, island=2), CheckpointCallback('2ba', keep=None), Cut(2), n=1)
    except KeyboardInterrupt: pass
    class Reads(Callback):
        acts = 'nothing'
        def before_fetch(self): self.usual = self.learn.shard_weights.usual; raise KeyboardInterrupt
    reads = Reads()
    with pytest.raises(KeyboardInterrupt): fit(learn, DiLoCo(3, island=2), CheckpointCallback('2ba', keep=None), reads, n=1, resume='auto')
    assert reads.usual==(5 if rank>1 else 6)

@pytest.mark.slow
def test_each_island_resumes_with_its_usual_weight(processes, tmp_path): processes(_saves_of_each_island, tmp_path, world=4)

def _other_number(rank, path, world):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter('always')
        torch.manual_seed(3)
        learn = shared(9, path=path)
        try: fit(learn, DiLoCo(5), CheckpointCallback('1ba', keep=None), *[Cut(12)][:world==2], shard=True, resume='auto')
        except KeyboardInterrupt: return
    assert any('local steps of 2 processes' in str(w.message) for w in said) and same(state(learn.model)), [str(w.message) for w in said]

def test_in_another_number_of_processes_the_round_continues_from_process_0(processes, tmp_path):
    processes(_other_number, tmp_path, 2)
    (tmp_path/'store').unlink()
    processes(_other_number, tmp_path, 3, world=3)

@pytest.mark.parametrize('event, n', [('before_batch', 5), ('after_loss', 7), ('after_step', 6), ('after_batch', 9)])
def test_it_continues_from_where_it_was_paused(event, n):
    whole,learn = learner(7),learner(7, cbs=Pausable())
    whole.fit(2, cbs=DiLoCo(3))
    with pytest.raises(KeyboardInterrupt): learn.fit(2, cbs=[DiLoCo(3), press(event, n)])
    learn.resume()
    assert torch.equal(state(learn.model), state(whole.model)) and learn.train_iter==14

# Cancels, in one of the processes

class Raises(Callback):
    def __init__(self, at, event, cancel): self.at,self.cancel = at,cancel; setattr(self, event, self._raise)
    def _raise(self):
        if self.learn.training and self.learn.train_iter==self.at: self.at = None; raise self.cancel

def _cancelled(rank, apart, island=1):
    events = {CancelBatch:['before_batch','after_pred','before_step','after_batch'], CancelStep:['before_step'], CancelTrain:['after_loss','after_batch'],
              CancelEpoch:['before_backward','after_batch','after_step'], CancelFit:['before_step','after_batch','after_pred']}
    for cancel,names in events.items():
        for name in names:
            class Ends(Callback):
                def after_cancel_fit(self): pass
                def after_fit(self): assert same(trained(self.learn.model)), (cancel, name)
            learn = fit(learner(7), *[DiLoCo(3, island=island)][:apart], Raises(4 if rank else None, name, cancel), Ends())
            assert same(state(learn.model)), (cancel, name)
            assert learn.train_iter==(7+4 if cancel in (CancelTrain, CancelEpoch) and name!='after_batch' else learn.train_iter)

@pytest.mark.parametrize('apart', [True, False])
def test_a_cancel_of_one_process_ends_the_round_in_all(processes, apart): processes(_cancelled, apart)

@pytest.mark.slow
def test_a_cancel_of_one_process_ends_the_round_in_all_islands(processes): processes(_cancelled, True, 2, world=4)

def _fails(rank):
    "An error in one process while the other waits for a synchronization"
    class Fails(Callback):
        acts = 'nothing'   # so the processes do not agree before the synchronization
        def before_pred(self):
            if self.training and self.learn.train_iter==4 and rank: raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError if rank else ProcessFailed): fit(learner(7), DiLoCo(5), Fails())

def test_an_error_of_one_process_ends_all(processes): processes(_fails)

# unsupported combinations

def _refuses(rank):
    def refused(words, *cbs, model=None):
        with pytest.raises(ValueError, match=words): fit(learner(7, model=model), DiLoCo(3), *cbs)
    refused('EMACallback cannot be combined: it averages', EMACallback())
    refused(r"MixedPrecision\('bf16'\)", MixedPrecision())
    refused('SyncBatchNorm', model=nn.SyncBatchNorm.convert_sync_batchnorm(net()))
    refused('plain model', model=DDP(net()))
    with pytest.raises(ValueError, match='DiLoCo and FullyShard cannot be combined'): shared(7, model=nn.Sequential(nn.Linear(4,1)), cbs=FullyShard(nn.Linear)).fit(1, cbs=DiLoCo(3))
    class Freezes(Callback):
        def before_batch(self):
            if self.learn.train_iter==1: next(self.learn.model.parameters()).requires_grad_(False)
    refused('frozen or unfrozen', Freezes())
    model = net()
    model[0].requires_grad_(False)
    learn = fit(learner(7, model=model), DiLoCo(3))   # it is not sent, and stays
    assert torch.equal(model[0].weight, net()[0].weight) and same(state(model))
    learn = fit(learner(7), DiLoCo(3), MixedPrecision('bf16'))
    assert same(state(learn.model))

def test_what_does_not_go_together_raises(processes): processes(_refuses)

@pytest.mark.parametrize('cb', [lambda: FaultTolerant('http://localhost:1'), lambda: VirtualShards(2)])
def test_other_callbacks_that_split_a_batch_raise(cb):
    with pytest.raises(ValueError, match='DiLoCo'): learner().fit(1, cbs=[DiLoCo(3), cb()])

@pytest.mark.parametrize('kw', [dict(every=0), dict(lr=0), dict(mom=1), dict(mom=-.1)])
def test_arguments(kw):
    with pytest.raises(ValueError): DiLoCo(**kw)

@pytest.mark.slow
@pytest.mark.skipif(compile_config() is None, reason='this PyTorch compiles no backward pass')
def test_it_meets_after_a_fused_step():
    "… and the step of the next batch begins from there"
    def fitted(*cbs):
        learn = learner(14, net(bn=False))   # the gradient of a bias before a batch norm is rounding
        learn.fit(2, cbs=[DiLoCo(4), *cbs])
        return trained(learn.model)
    eager,fused = fitted(),fitted(cb := FusedStep())
    assert cb.counts==dict(fused=2*13, other=0)   # each but the first of a phase
    assert torch.allclose(eager, fused, atol=1e-5) and not torch.allclose(eager, trained(net(bn=False)), atol=1e-2)
