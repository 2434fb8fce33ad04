"""Several processes on this machine (gloo): a step beside `DistributedDataParallel` by hand, messages, their store, and a checkpoint.

A measurement starts its processes as `torchrun` would and tells each what to do. All that is compared runs in the same
processes, in turn. For a step the clock runs from the fetch of batch `WARM` to that of the last one, so that neither the start
of a fit nor its end counts; for a fit, all of it. Whatever a library trains must come out as by hand, or its time is not taken.
"""
import json, os, socket, subprocess, sys, tempfile, time, warnings
from datetime import timedelta
from functools import partial
from pathlib import Path
import torch
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel
from tools import F, convnet, cpu, extremes, nn, show, spread, tiny, unseen

WARM = 10   # steps before the clock starts

class Clocked:
    "Batches that know what the steps with them took: `spent`, processor's time and the clock's"
    def __init__(self, batches): self.batches = batches
    def __len__(self): return len(self.batches)
    def __iter__(self):
        for i,b in enumerate(self.batches):
            if i==WARM: start = cpu(),time.perf_counter()
            if i==len(self)-1: self.spent = cpu()-start[0],time.perf_counter()-start[1]
            yield b

# who trains: each trains `net()` on the batches of its process, and gives the model

SGD = partial(torch.optim.SGD, lr=.01)

def plain_loop(net, batches):
    model = DistributedDataParallel(net())
    opt = SGD(model.parameters())
    for xb,yb in batches:
        F.cross_entropy(model(xb), yb).backward()
        opt.step()
        opt.zero_grad()
    return model.module

def learnkit(net, batches, cbs=(), **kw):
    from learnkit.all import DataLoaders, DistributedTrainer, Learner
    learn = Learner(DataLoaders(batches), net(), F.cross_entropy, SGD, lr=.01)
    learn.fit(1, cbs=[DistributedTrainer(shard=False, **kw), *cbs])   # each process has batches of its own
    return learn.model

def listening(*events):
    "learnkit with a callback of the user's that handles these events, so that the processes ask each other about them"
    from learnkit.all import Callback
    return lambda net, batches: learnkit(net, batches, [Callback(**{e:lambda cb: None for e in events})])

def lightning(net, batches):
    import lightning
    from lightning.pytorch.strategies import DDPStrategy
    class Module(lightning.LightningModule):
        def __init__(self): super().__init__(); self.model = net()
        def configure_optimizers(self): return SGD(self.parameters())
        def training_step(self, b, i): return F.cross_entropy(self.model(b[0]), b[1])
    module = Module()
    lightning.Trainer(accelerator='cpu', devices=dist.get_world_size(), strategy=DDPStrategy(process_group_backend='gloo'), max_epochs=1,
                      logger=False, enable_checkpointing=False).fit(module, batches)
    return module.model

def accelerate(net, batches):
    from accelerate import Accelerator
    acc,model = Accelerator(cpu=True),net()
    ddp,opt = acc.prepare(model, SGD(model.parameters()))
    for xb,yb in batches:
        acc.backward(F.cross_entropy(ddp(xb), yb))
        opt.step()
        opt.zero_grad()
    return model

ways = {'by hand': lambda: plain_loop, 'learnkit': lambda: learnkit,
        'learnkit, and a callback for before_batch': lambda: listening('before_batch'),
        'learnkit, and callbacks for five events': lambda: listening('before_fetch', 'before_batch', 'before_step', 'after_step', 'after_zero_grad'),
        'learnkit, weigh=False': lambda: partial(learnkit, weigh=False),   # as by hand: a mean of means, without a message about the numbers of targets
        'Lightning': lambda: lightning, 'Accelerate': lambda: accelerate}

def there(name):
    "The way of that name, None if what it needs is not installed"
    from importlib.util import find_spec
    return ways[name]() if name not in ('Lightning','Accelerate') or find_spec(name.lower()) else None

# the jobs, as they run in each of the processes; what the first one returns is the result

def data(what, n):
    "The network, and batches that differ between the processes"
    g = torch.Generator().manual_seed(dist.get_rank())
    shape,net = dict(tiny=((32, 32), tiny), cnn=((64, 1, 8, 8), convnet))[what]
    return net,[(torch.randn(shape, generator=g), torch.randint(0, 10, shape[:1], generator=g)) for _ in range(n)]

def gathered(x):
    all_ = [None]*dist.get_world_size()
    dist.all_gather_object(all_, x)
    return all_

def job_steps(what, n, rounds, whole=False):
    "For each way, seconds of a step, or of the whole fit, in each round: of the processors of all processes together, and of the clock"
    net,batches = data(what, n)
    def weights(m): return nn.utils.parameters_to_vector(m.parameters()).detach()
    def once(f):
        clocked = Clocked(batches)
        dist.barrier()
        start = cpu(),time.perf_counter()
        with unseen(): model = f(net, clocked)
        fit = cpu()-start[0],time.perf_counter()-start[1]
        spent,steps = gathered(fit if whole else clocked.spent),1 if whole else n-1-WARM
        return [sum(c for c,_ in spent)/steps, max(w for _,w in spent)/steps],weights(model)
    todo = {k:f for k in ways if k!='learnkit, weigh=False' and (f := there(k))}
    want = once(plain_loop)[1]
    for k,f in todo.items():
        got = once(f)[1]   # the first time: check that the same comes out
        if not torch.allclose(got, want, rtol=1e-4, atol=1e-5): raise ValueError(f'{k} comes to other weights than by hand')
    res = {k:[] for k in todo}
    for _ in range(rounds):
        for k,f in todo.items(): res[k].append(once(f)[0])
    return res

def job_neighbours(what, n, rounds):
    "For each library, whole fits: the processors' time and the clock's, divided by the mean of the fits by hand just before and after"
    net,batches = data(what, n)
    def weights(m): return nn.utils.parameters_to_vector(m.parameters()).detach()
    def fit(name):
        dist.barrier()
        start = cpu(),time.perf_counter()
        with unseen(): model = there(name)(net, Clocked(batches))   # Lightning takes a list for several loaders
        spent = gathered((cpu()-start[0], time.perf_counter()-start[1]))
        return (sum(c for c,_ in spent), max(w for _,w in spent)),weights(model)
    names = [k for k in ('learnkit','learnkit, weigh=False','Accelerate','Lightning') if there(k)]
    want = fit('by hand')[1]
    for k in names:   # the first time: check that the same comes out
        if not torch.allclose(fit(k)[1], want, rtol=1e-4, atol=1e-5): raise ValueError(f'{k} comes to other weights than by hand')
    res = {k:[] for k in names}
    before,hand = fit('by hand')[0],[]
    for _ in range(rounds):
        for k in names:
            spent,after = fit(k)[0],fit('by hand')[0]
            res[k].append([2*s/(b+a) for s,b,a in zip(spent, before, after)])
            hand.append(after)
            before = after
    return dict(hand=hand, ratios=res)

def job_messages(sizes, rounds, n=30):
    "For each number of bytes, microseconds of an all-reduce in each round"
    res = {b:[] for b in sizes}
    for _ in range(rounds+1):
        for b in sizes:
            t,k = torch.zeros(b//4),max(2, min(n, 2**26//b))
            dist.barrier()
            start = time.perf_counter()
            for _ in range(k): dist.all_reduce(t)
            res[b].append((time.perf_counter()-start)/k*1e6)
    return {b:ts[1:] for b,ts in res.items()}   # the first round makes connections

def job_checkpoint(numbers, rounds):
    "For each number of weights, milliseconds of a checkpoint (of the weights, and of Adam's two averages) in each round"
    from learnkit.all import Callback, CheckpointCallback, DataLoaders, Learner
    res = {k:[] for k in numbers}
    for k in numbers:
        class Saves(Callback):
            def after_fit(self):
                for _ in range(rounds+1):
                    start = time.perf_counter()
                    self.learn.checkpoint.save(0, 1)
                    res[k].append((time.perf_counter()-start)*1e3)
        with tempfile.TemporaryDirectory() as path, unseen():
            x = torch.randn(2, 1)
            learn = Learner(DataLoaders([(x, torch.zeros(2, k))]), nn.Linear(1, k, bias=False), F.mse_loss, torch.optim.Adam, path=path)
            learn.fit(1, cbs=[CheckpointCallback(keep=1), Saves()])
    return {k:ts[1:] for k,ts in res.items()}

def job_compute(what, n, rounds):
    "The microseconds of each of `n` steps by hand, in one process"
    net,batches = data(what, n+WARM)
    model = net()
    opt,at = SGD(model.parameters()),[]
    for xb,yb in batches:
        at.append(time.perf_counter())
        F.cross_entropy(model(xb), yb).backward()
        opt.step()
        opt.zero_grad()
    return [(b-a)*1e6 for a,b in zip(at[WARM:], at[WARM+1:])]

jobs = dict(steps=job_steps, neighbours=job_neighbours, messages=job_messages, checkpoint=job_checkpoint, compute=job_compute)

# the processes

def both_ends(code, s):
    "What a process said that ended with `code`: the beginning says what happened in a crash, the end in an exception"
    return f'(code {code}) {s}' if len(s)<4000 else f'(code {code}) {s[:2000]} … {s[-2000:]}'

def launched(world, job, script=__file__, seconds=1800, **kw):
    "The result of `job` in `world` processes, of which none waits longer than so many seconds for another one"
    with socket.socket() as s, tempfile.TemporaryDirectory() as path:
        s.bind(('127.0.0.1', 0))
        env = dict(os.environ, WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(world), MASTER_ADDR='127.0.0.1', MASTER_PORT=str(s.getsockname()[1]),
                   TORCHELASTIC_RUN_ID='bench', GROUP_RANK='0', CUDA_VISIBLE_DEVICES='', OMP_NUM_THREADS='1', TERM='xterm', PYTHONWARNINGS='ignore')
        def start(r): return subprocess.Popen([sys.executable, script, job, json.dumps(kw), f'{path}/store', f'{path}/result', str(seconds)], text=True, stdout=subprocess.DEVNULL,
                                              stderr=subprocess.PIPE, env=dict(env, RANK=str(r), LOCAL_RANK=str(r)))
        ps = [start(r) for r in range(world)]
        said = [p.communicate()[1] for p in ps]
        if any(p.returncode for p in ps): raise RuntimeError(f'{job} in {world} processes failed: {both_ends(*next((p.returncode, s) for s,p in zip(said, ps) if p.returncode))}')
        return json.loads(Path(path, 'result').read_text())

def main(job, kw, store, result, seconds, jobs=jobs):
    warnings.filterwarnings('ignore')
    rank,world = int(os.environ['RANK']),int(os.environ['WORLD_SIZE'])
    dist.init_process_group('gloo', init_method=f'file://{store}', rank=rank, world_size=world, timeout=timedelta(seconds=float(seconds)))
    res = jobs[job](**json.loads(kw))
    if rank==0: Path(result).write_text(json.dumps(res))
    dist.destroy_process_group()

# the parts

nets = dict(tiny='a tiny network (32-64-10, batches of 32)', cnn='a small convolutional network (batches of 64)')

def bench_processes(rounds, steps=dict(tiny=400, cnn=120), worlds=(2, 4)):
    for world in worlds:
        for what,n in steps.items():
            times = launched(world, 'steps', what=what, n=n, rounds=rounds)
            for i,clock in enumerate(("the processors' time", "the clock's time")):
                hand = times['by hand']
                rows = {k:spread([t[i]/h[i] for t,h in zip(ts, hand)]) for k,ts in times.items() if k!='by hand'}
                base = f'{spread([h[i] for h in hand])[0]*1e6:.0f} µs a step'
                show(f'A training step of {nets[what]} in {world} processes, {clock}', base, rows, first='DDP by hand', world=world, net=what, clock='cpu wall'.split()[i])

def bench_fits(rounds, steps=dict(tiny=40, cnn=20)):
    "Short fits, of which the start and the end are a large part"
    for what,n in steps.items():
        times = launched(2, 'steps', what=what, n=n, rounds=rounds, whole=True)
        hand = times['by hand']
        rows = {k:spread([t[0]/h[0] for t,h in zip(ts, hand)]) for k,ts in times.items() if k!='by hand'}
        show(f"A whole fit of {n} steps of {nets[what]} in 2 processes, the processors' time", f'{spread([h[0] for h in hand])[0]*1e3:.1f} ms', rows, first='DDP by hand', net=what)

def bench_neighbours(rounds, worlds=(2, 4), n=400):
    "Whole fits, each between two by hand, so that what else the machine does matters less: `python tests/bench/run.py neighbours --rounds 11`, some five minutes"
    for world in worlds:
        load = os.getloadavg()[0]
        res = launched(world, 'neighbours', what='tiny', n=n, rounds=rounds)
        for i,clock in enumerate(("the processors' time", "the clock's time")):
            base = f'{spread([h[i] for h in res["hand"]])[0]*1e3:.0f} ms (load {load:.0f} to {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores)'
            rows = {k:spread([t[i] for t in ts]) for k,ts in res['ratios'].items()}
            show(f'A whole fit of {n} steps of {nets["tiny"]} in {world} processes, {clock}', base, rows, first='DDP by hand', world=world, net='tiny', clock='cpu wall'.split()[i])

sizes = [4, 80, 1024, 2**14, 2**17, 2**20, 2**22, 2**24, 2**26]

def bench_compute(rounds, n=400):
    def middle(ts): ts = sorted(ts); return [ts[int(len(ts)*q)] for q in (.5, .16, .84)]
    us = {nets[k]:middle(launched(1, 'compute', what=k, n=n, rounds=rounds)) for k in nets}
    show('Single steps by hand in one process: median, and from 16 % to 84 % of them', '', us, ' µs', first='', span='16–84 %')

def bench_messages(rounds, worlds=(2, 4, 8)):
    for world in worlds:
        us = {int(b):extremes(ts) for b,ts in launched(world, 'messages', sizes=sizes if world<8 else sizes[:1], rounds=rounds).items()}
        show(f'An all-reduce of gloo in {world} processes on one machine', '', {f'{b:,} bytes':t for b,t in us.items()}, ' µs', first='', span='least–most', world=world)

def bench_written(rounds, numbers=(10**4, 10**6, 10**7)):
    ms = {int(k):extremes(ts) for k,ts in launched(1, 'checkpoint', numbers=numbers, rounds=rounds).items()}
    show('A checkpoint of a model and of Adam', '', {f'{12*k/1e6:,.2f} MB':t for k,t in ms.items()}, ' ms', first='', span='least–most')

def keep_a_store():
    "Keep a store, and say after each line that is read how many seconds of the processor that took so far"
    store = dist.TCPStore('127.0.0.1', 0, is_master=True, wait_for_workers=False)
    print(store.port, flush=True)
    for _ in sys.stdin: print(cpu(), flush=True)

def bench_store(rounds, n=4096):
    "What one process pays that keeps the store for all"
    with subprocess.Popen([sys.executable, __file__, 'keep_a_store'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as keeper:
        store = dist.PrefixStore('bench', dist.TCPStore('127.0.0.1', int(keeper.stdout.readline()), is_master=False, wait_for_workers=False))
        said,keys = json.dumps([12, 'in `before_batch` of `Saves`, epoch 0, batch 5', 3.02, False]),[*map(str, range(n))]
        def spent():
            print(file=keeper.stdin, flush=True)
            return float(keeper.stdout.readline())
        def set_each():
            for k in keys: store.set(k, said)
            store.get(keys[0])   # its answer comes when all before it are done
        def ask_each():
            for k in keys: store.check([k])
        def read_all():
            store.check(keys); store.multi_get(keys)
        todo = {'a message to it':set_each, 'a question about one key':ask_each, 'each message of many in one answer':read_all}
        us = {k:[] for k in todo}
        for _ in range(rounds):
            for k,f in todo.items():
                start = spent(); f()
                us[k].append((spent()-start)/n*1e6)
        keeper.stdin.close()
    show('What the process that keeps the store pays, in microseconds of the processor', '', {k:extremes(ts) for k,ts in us.items()}, ' µs', first='', span='least–most')

parts = {k:lambda rounds, f=f: f(min(rounds, 11)) for k,f in dict(processes=bench_processes, fits=bench_fits, neighbours=bench_neighbours, compute=bench_compute,
         messages=bench_messages, store=bench_store, written=bench_written).items()}   # they agree beforehand how many rounds there are

if __name__=='__main__': keep_a_store() if sys.argv[1:]==['keep_a_store'] else main(*sys.argv[1:])
