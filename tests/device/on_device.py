"""learnkit on an accelerator: no step waits, streams do not race, and the results are those of the CPU: bit for bit
on a simulated accelerator (sim.cpp), up to rounding on a GPU, whose kernels add in a different order. `make device`
runs this in a separate process, as the whole process has one accelerator: the simulated one, or a GPU with
LEARNKIT_DEVICE=cuda. What only a GPU can show is in on_gpu.py."""
import copy, os, pickle, threading, time
if os.environ.get('LEARNKIT_DEVICE')=='cuda': import gpu as acc
else: import sim as acc   # first, before the accelerator is looked up
from collections import Counter

import learnkit.all as lk, pytest, torch
from learnkit.learner.buffer import TensorBuffer
from learnkit.data.nested import leaves
from learnkit.loop.run import null_logger
from learnkit.data.device import BorrowedBatches, Transfer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DEV = acc.name
LAST = f'{DEV}:{torch.accelerator.device_count()-1}'
simulated = pytest.mark.skipif(DEV!='sim', reason='the simulation shows it')

@pytest.fixture(autouse=True)
def no_races():
    with acc.watched():
        acc.take_races(); acc.take_syncs()
        yield
        assert acc.take_races()==[]

# the simulation itself: it must be able to find faults

@simulated
def test_it_is_the_accelerator():
    assert torch.accelerator.current_accelerator()==torch.device(DEV) and lk.default_device()==torch.device(DEV, 0)
    with pytest.raises(RuntimeError, match='same device'): torch.ones(2, device=DEV) + torch.ones(2)

@simulated
def test_fresh_memory_is_nan(): assert torch.empty(3, device=DEV).isnan().all()

@simulated
def test_waiting_is_counted():
    x = torch.ones(3).to(DEV); assert acc.take_syncs()==['copy to the device']
    y = (x*2).relu().sum(); assert acc.take_syncs()==[]
    y.item(); assert acc.take_syncs()==['item']
    x.cpu(); assert acc.take_syncs()==['copy to the host']
    x.nonzero(); assert acc.take_syncs()==['aten::nonzero']
    x[torch.tensor([0, 1])]; assert 'copy to the device' in acc.take_syncs()

def copied(x, stream):
    with stream: return x.pin_memory().to(DEV, non_blocking=True)

@simulated
def test_a_race_is_found():
    side = torch.Stream(DEV)
    y = copied(torch.ones(3), side)
    with pytest.raises(RuntimeError, match='race'): y+1
    torch.accelerator.current_stream().wait_stream(side)
    assert (y+1).tolist()==[2]*3

@simulated
def test_memory_that_is_freed_too_early_is_found():
    side = torch.Stream(DEV)
    y = copied(torch.ones(3), side)
    torch.accelerator.current_stream().wait_stream(side)
    y+1
    del y
    assert 'record_stream' in acc.take_races()[0]

@simulated
def test_copies_are_late():
    x = torch.ones(3).pin_memory()
    y = x.to(DEV, non_blocking=True)
    x.fill_(5)
    assert y.tolist()==[5]*3   # who writes to pinned memory too early
    z = (y+1).to('cpu', non_blocking=True)
    assert z.isnan().all()
    torch.accelerator.synchronize()
    assert z.tolist()==[6]*3

# learnkit on it

# without biases before a batch norm: their gradient is rounding, of which Adam makes whole steps
def net(): torch.manual_seed(0); return nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
def data(device, n=64, **kw):
    torch.manual_seed(1)
    ds = TensorDataset(torch.randn(n, 4), torch.randint(3, (n,)))
    return lk.DataLoaders(DataLoader(ds, 8, shuffle=True, **kw), DataLoader(ds, 8, **kw), device=device)

def cnn(): torch.manual_seed(0); return nn.Sequential(nn.Unflatten(1, (1, 2, 2)), nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3))

class Waits(lk.Callback):
    """Counts the waits of the host in a step, from the request of the batch to its end; the first steps, which set up,
    are skipped"""
    order = 9999
    def before_fit(self): self.of_step = Counter()
    def before_fetch(self): acc.take_syncs()
    def after_batch(self):
        if self.learn.training and self.learn.train_iter>3: self.of_step.update(acc.take_syncs())

def learner(device=DEV, cbs=(), dls=None, model=net, opt_func=torch.optim.AdamW, **kw):
    torch.manual_seed(3)
    learn = lk.Learner(dls or data(device), model(), nn.CrossEntropyLoss(), opt_func, lr=.01, **kw)
    learn.remove_cb(lk.ProgressCallback)
    learn.add_cbs([Waits(), *([c() for c in cbs])])
    learn.logger = null_logger
    return learn

def bits(o): return [x.detach().cpu() if isinstance(x, torch.Tensor) else x for x in leaves(o)]
def result(learn): return [*bits(dict(learn.model.state_dict())), *[v for r in learn.recorder.values for v in [*r][:-1]]]
def same(a, b, **near):
    "Assert that results are equal bit for bit, or up to `near`"
    for x,y in zip(a, b, strict=True):
        if isinstance(x, (torch.Tensor, float)): torch.testing.assert_close(x, y, equal_nan=True, **near or dict(rtol=0, atol=0))
        else: assert x==y
def as_on_the_cpu(a, b): same(a, b, **acc.near)

KINDS = dict(
    default={}, sgd=dict(opt_func=torch.optim.SGD), metrics=dict(metrics=[lk.accuracy, lk.error_rate]), clip=dict(cbs=[lambda: lk.GradientClip(.1)]), ema=dict(cbs=[lk.EMACallback]),
    accumulate=dict(cbs=[lambda: lk.GradientAccumulation(16)]), bf16=dict(cbs=[lambda: lk.MixedPrecision('bf16')]), stats=dict(cbs=[lk.ActivationStats]), prefetch=dict(cbs=[lambda: lk.Prefetch(thread=True)]),
    monitors=dict(cbs=[lk.OptimizerMonitor, lk.SpeedMonitor]), micro=dict(cbs=[lambda: lk.MicroBatch(4)]), steps=dict(cbs=[lambda: lk.StepsPerEpoch(5)]),
    scheduler=dict(cbs=[lambda: lk.TorchScheduler(lambda o: torch.optim.lr_scheduler.ExponentialLR(o, .9))]), channels=dict(cbs=[lk.ChannelsLast]),
    early=dict(cbs=[lk.EarlyStoppingCallback]), decay=dict(wd=.1), stop=dict(cbs=[lambda: lk.StopAfter('20ba')]), freeze=dict(cbs=[lk.BnFreeze]), overfit=dict(cbs=[lambda: lk.OverfitBatches(2)]),
    images=dict(model=lambda: cnn()))

@pytest.mark.parametrize('kind', KINDS)
def test_training(kind):
    "The bits of the CPU, and nothing waits"
    res = {}
    for device in ('cpu',DEV):
        learn = learner(device, **KINDS[kind])
        learn.fit(2)
        res[device] = result(learn)
        assert next(learn.model.parameters()).device.type==device
    as_on_the_cpu(res['cpu'], res[DEV])
    assert set(learn.waits.of_step)<=({acc.stream} if kind=='prefetch' else set()), learn.waits.of_step   # its thread waits for a copy

def test_mixed_items_wait_for_nothing():
    learn = learner(cbs=[lk.MixUp]); learn.fit(2)
    assert not learn.waits.of_step

def test_half_precision_waits_as_by_hand():
    "PyTorch's GradScaler reads once a step whether a gradient is infinite"
    learn = learner(cbs=[lambda: lk.MixedPrecision('fp16')]); learn.fit(2)
    assert sum(learn.waits.of_step.values())==16-3

def test_all_that_one_watches(tmp_path):
    "Metrics of the training, the bar, loggers: nothing waits but the bar, when it is drawn"
    learn = learner(cbs=[lambda: lk.CSVLogger('history.csv'), lambda: lk.JsonLogger('log.jsonl'), lk.OptimizerMonitor, lk.SpeedMonitor], metrics=lk.accuracy, path=tmp_path)
    bar = lk.ProgressCallback(every=1e9)
    learn.add_cb(bar)
    learn.recorder.train_metrics = True
    learn.fit(2)
    assert sum(learn.waits.of_step.values())<=2, learn.waits.of_step   # at the end of each epoch

def test_a_loader_that_pins_is_waited_for_only_where_it_copies():
    learn = learner(dls=data(DEV, pin_memory=True)); learn.fit(2)
    assert set(learn.waits.of_step)<={acc.stream}
    plain = learner(); plain.fit(2)
    same(result(learn), result(plain))

class OneMemory:
    "Writes each batch into the same pinned memory"
    def __init__(self, device): self.x,self.y = torch.zeros(8, 4),torch.zeros(8, dtype=torch.long); self.pinned = self.x.pin_memory() if device==DEV else self.x
    def __len__(self): return 6
    def __iter__(self):
        for i in range(6): self.pinned.copy_(torch.sin(torch.arange(32.).view(8, 4)*(i+1))); yield self.pinned,self.y+i%3

def test_a_loader_that_writes_to_its_memory_again():
    learns = [learner(d, dls=lk.DataLoaders(OneMemory(d), OneMemory(d), device=d)) for d in ('cpu',DEV)]
    for learn in learns: learn.fit(3)
    as_on_the_cpu(*map(result, learns))

def test_a_batch_is_read_before_the_next_one_is_written():
    "… also if nothing was computed with it yet"
    transfer = Transfer(torch.device(DEV, 0))
    kept = [transfer(b)[0] for b in BorrowedBatches(iter(OneMemory(DEV)), transfer)]
    same(bits(kept), [x.clone() for x,_ in OneMemory('cpu')])

def test_threads_keep_their_streams():
    "… although they copy on the same one at the same time"
    meet,after = threading.Barrier(2),[None]*2
    def copy(i):
        own,transfer = torch.Stream(DEV),Transfer(torch.device(DEV, 0))
        torch.accelerator.set_stream(own)
        time.sleep(.05*i)   # who comes first leaves first
        inside = transfer._copy
        transfer._copy = lambda o: (meet.wait(), inside(o), time.sleep(.05*i))[1]
        x = transfer(torch.ones(3))
        after[i] = torch.accelerator.current_stream()==own and x.tolist()==[1]*3
    threads = [threading.Thread(target=copy, args=(i,)) for i in range(2)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert after==[True]*2

def test_batches_that_are_there():
    batches = [(torch.randn(8, 4, device=DEV), torch.randint(3, (8,), device=DEV)) for _ in range(6)]
    learn = learner(dls=lk.DataLoaders(batches, batches)); learn.fit(2)
    assert not learn.waits.of_step

def test_workers():
    res = []
    for cbs in ((), [lk.Prefetch]):
        learn = learner(dls=data(DEV, num_workers=1), cbs=cbs)
        learn.fit(1)
        res.append(result(learn))
    same(*res)

CALLS = dict(validate=lambda l: l.validate(), get_preds=lambda l: l.get_preds(), everything=lambda l: l.get_preds(with_input=True, with_loss=True, with_decoded=True), training=lambda l: l.get_preds(0),
             predict=lambda l: l.predict(torch.ones(4)), predictor=lambda l: lk.Predictor(l)(torch.ones(4)), evaluate=lambda l: l.get_preds(dl=[torch.ones(3, 4)]*3))

@pytest.mark.filterwarnings('ignore:the .*batch has no target')
@pytest.mark.parametrize('call', CALLS)
def test_inference(call):
    res = []
    for device in ('cpu',DEV):
        learn = learner(device, metrics=lk.accuracy)
        learn.fit(1)
        out = [*leaves(CALLS[call](learn))]
        assert all(o.is_cpu for o in out if isinstance(o, torch.Tensor))
        res.append(bits(out))
    as_on_the_cpu(*res)

@pytest.mark.parametrize('bs', [7, 400_000])
@pytest.mark.parametrize('kw', [{}, dict(positions=True), dict(file='x.pt'), dict(dtype=torch.float16)], ids=['plain','positions','file','dtype'])
def test_results_come_back_late(kw, bs, tmp_path):
    "… and what the model writes to its outputs afterwards does not matter"
    n = 100 if bs==7 else 4*bs+3
    x = torch.randn(n, 3)
    kw = {**kw, **(dict(positions=torch.randperm(n)) if 'positions' in kw else {})}
    def filled(where, n=n, **kw):
        b = TensorBuffer(n=n, **kw)
        for t in x.split(bs): t = t.to(where); b.append(t); where==DEV and t.fill_(5)
        return b.value
    def named(i): return {**kw, **(dict(file=tmp_path/f'{i}.pt') if 'file' in kw else {})}
    near = filled('cpu', **named(0))
    assert torch.equal(filled(DEV, **named(1)), near)
    assert torch.equal(filled(DEV, None, **{k:v for k,v in kw.items() if k!='file'}), near)
    if not kw: assert torch.equal(filled(DEV, n-1), near)

def dropout(): torch.manual_seed(0); return nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.Dropout(.4), nn.Linear(8, 3))

@pytest.mark.parametrize('k', [3, 8, 11])
def test_a_killed_run_continues(k, tmp_path):
    "… with the random numbers of the device"
    def make(path, *cbs): return learner(model=lambda: dropout().to(DEV), cbs=[lambda: lk.CheckpointCallback('1ba'), lk.EMACallback, lk.MixUp, *cbs], path=tmp_path/path)
    def end(learn): learn.fit(2, resume='auto'); return [*result(learn), *bits(acc.generator().get_state())]
    class Killed(lk.Callback):
        order = 999
        def after_batch(self):
            if self.learn.training and self.learn.train_iter==k: raise SystemError
    whole = end(make('whole'))
    with pytest.raises(SystemError): make('killed', Killed).fit(2, resume='auto')
    torch.manual_seed(9); torch.rand(3, device=DEV)
    same(end(make('killed')), whole)

def test_random_states():
    states = lk.get_random_states(); a = torch.rand(3, device=LAST)
    with lk.no_random(): torch.rand(9, device=DEV)
    lk.set_random_states(**states)
    assert torch.equal(torch.rand(3, device=LAST), a)

def test_from_device_to_device(tmp_path):
    learn = learner(LAST, path=tmp_path)
    learn.fit(1)
    assert next(learn.model.parameters()).device==torch.device(LAST)
    kept = result(learn)
    learn.save('a')
    for device in ('cpu',f'{DEV}:0'):
        other = learner(device, path=tmp_path)
        other.load('a')
        same(bits(dict(other.model.state_dict())), kept[:len(learn.model.state_dict())])
        other.fit(1)
        assert {p.device for p in other.model.parameters()}=={torch.device(device)}
    learn.dls.device = torch.device('cpu')
    learn.fit(1)   # the optimizer's state moves too
    assert {p.device.type for p in learn.model.parameters()}=={'cpu'}

def test_virtual_shards():
    "Each shard has its own random numbers, on a device whose module has only what PyTorch requires"
    def trained(device, model, drawn=0):
        learn = learner(device, [lambda: lk.VirtualShards(2)], model=model)
        with lk.no_random(3):
            torch.randn(drawn, device=device)   # on the accelerator: what was drawn there before does not matter
            learn.fit(2)
        return result(learn)
    as_on_the_cpu(trained('cpu', net), trained(DEV, net))
    same(trained(DEV, dropout), trained(DEV, dropout, drawn=3))

def test_lr_find(): as_on_the_cpu(*([*learner(d).lr_find(num_it=30)] for d in ('cpu',DEV)))

@pytest.mark.parametrize('copied', [copy.deepcopy, lambda l: pickle.loads(pickle.dumps(l))], ids=['deepcopy','pickle'])
def test_copies_of_a_learner(copied):
    "… after a fit, which used a stream"
    learn = learner(model=lambda: nn.Linear(4, 3))
    learn.logger = null_logger
    learn.fit(1)
    other = copied(learn)
    same(bits(dict(other.model.state_dict())), bits(dict(learn.model.state_dict())))
    other.fit(1)

def test_memory_of_the_device():
    "MemoryMonitor reads what the allocator counts"
    learn = learner(cbs=[lambda: lk.MemoryMonitor('1ba')], opt_func=torch.optim.SGD)
    learn.fit(1)
    h = learn.memory_monitor.history
    assert all(0<a<=p for a,p in zip(h['allocated'], h['peak_allocated'])) and learn.memory_monitor.measured_device.type==DEV

def test_out_of_memory_is_replayed():
    full = iter([True])
    class Large(nn.Linear):
        def forward(self, x):
            if len(x)==8 and next(full, False): raise torch.OutOfMemoryError('no memory')
            return super().forward(x)
    learn = learner(model=lambda: Large(4, 3), cbs=[lk.ReplayOnOOM])
    with pytest.warns(UserWarning, match='micro-batches of 4'): learn.fit(1)
    assert learn.train_iter==8

# inference before the first fit: the model is where `learn.device` says

def _with_norm():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))

def _labelled(): return TensorDataset(torch.randn(32, 4, generator=torch.Generator().manual_seed(1)), torch.arange(32)%3)

class Weighted(nn.Module):
    "A loss with a buffer"
    def __init__(self):
        super().__init__()
        self.register_buffer('w', torch.tensor([1., 2., 3.]))
    def forward(self, pred, y): return nn.functional.cross_entropy(pred, y, self.w.to(pred.dtype))

inferences = dict(
    validate=lambda learn: learn.validate()[0], get_preds=lambda learn: learn.get_preds()[0], predict=lambda learn: learn.predict(learn.dls.valid.dataset[3][0])[2],
    predictor=lambda learn: lk.Predictor(learn)(learn.dls.valid.dataset[3][0])[1])

@pytest.mark.parametrize('how', inferences)
@pytest.mark.parametrize('cbs', [(), (lk.EMACallback,)], ids=['plain', 'ema'])
def test_inference_before_the_first_fit_is_on_the_accelerator(how, cbs):
    def learner(device=None):
        ds = _labelled()
        dls = lk.DataLoaders(DataLoader(ds, 8), DataLoader(ds, 8), device=device)
        learn = lk.Learner(dls, _with_norm(), Weighted(), cbs=[*cbs])
        return learn.remove_cb(lk.ProgressCallback)
    cpu,learn = learner('cpu'),learner()
    expected,named = inferences[how](cpu),learn.device
    got = inferences[how](learn)
    assert named.type==DEV and {t.device.type for t in learn.model.state_dict().values()}=={DEV}
    assert {t.device.type for t in cpu.model.state_dict().values()}=={'cpu'} and cpu.device.type=='cpu'
    torch.testing.assert_close(torch.as_tensor(got).cpu(), torch.as_tensor(expected), rtol=1e-4, atol=1e-5)
    before = learn.model[1].running_mean.cpu()
    assert torch.equal(before, torch.zeros(8))   # nothing was trained
    with learn.no_logging(): learn.fit(1)        # and a fit continues from there
    assert {t.device.type for t in learn.model.state_dict().values()}=={DEV}

def test_a_model_that_was_put_on_the_cpu_after_a_fit_stays_there():
    ds = _labelled()
    learn = lk.Learner((DataLoader(ds, 8), DataLoader(ds, 8)), _with_norm(), nn.CrossEntropyLoss())
    with learn.no_logging(), learn.no_bar(): learn.fit(1)
    assert learn.device.type==DEV
    learn.model.cpu()
    learn.validate()
    assert learn.device.type=='cpu' and {t.device.type for t in learn.model.state_dict().values()}=={'cpu'}
