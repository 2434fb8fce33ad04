"""Several processes on this machine (gloo): a step compared with hand-written `DistributedDataParallel`, messages,
their store, and a checkpoint.

A measurement starts its processes as `torchrun` would, with a job for all of them. All that is compared runs in the
same processes, round-robin. For a step the clock runs from the fetch of batch `WARM` to that of the last one, so that
neither the start of a fit nor its end counts; for a fit, all of it counts. If the weights of a library differ from
those of the hand-written loop, it is not timed.
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
    "Batches that time the steps with them: `spent` has CPU and wall-clock seconds"
    def __init__(self, batches): self.batches = batches
    def __len__(self): return len(self.batches)
    def __iter__(self):
        for i,batch in enumerate(self.batches):
            if i==WARM: start = now()
            if i==len(self)-1: self.spent = since(start)
            yield batch

def now(): return cpu(),time.perf_counter()
def since(start):
    "Return the CPU and wall-clock seconds since `start`"
    return cpu()-start[0],time.perf_counter()-start[1]

# each function trains `net()` on the batches of its process, and returns the model

SGD = partial(torch.optim.SGD, lr=.01)

def plain_loop(net, batches):
    model = DistributedDataParallel(net())
    opt = SGD(model.parameters())
    for xb,yb in batches:
        F.cross_entropy(model(xb), yb).backward()
        opt.step()
        opt.zero_grad()
    return model.module

def learnkit(net, batches, cbs=(), **kwargs):
    from learnkit.all import DataLoaders, DistributedTrainer, Learner
    learn = Learner(DataLoaders(batches), net(), F.cross_entropy, SGD, lr=.01)
    learn.fit(1, cbs=[DistributedTrainer(shard=False, **kwargs), *cbs])   # each process has batches of its own
    return learn.model

def with_handlers(*events):
    "Return learnkit with a user-defined callback that handles these events, so that the processes agree at them"
    from learnkit.all import Callback
    def handle(cb): return None
    return lambda net, batches: learnkit(net, batches, [Callback(**dict.fromkeys(events, handle))])

def lightning(net, batches):
    import lightning
    from lightning.pytorch.strategies import DDPStrategy
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = net()
        def configure_optimizers(self): return SGD(self.parameters())
        def training_step(self, batch, i): return F.cross_entropy(self.model(batch[0]), batch[1])
    module = Module()
    trainer = lightning.Trainer(
        accelerator='cpu', devices=dist.get_world_size(), strategy=DDPStrategy(process_group_backend='gloo'),
        max_epochs=1, logger=False, enable_checkpointing=False)
    trainer.fit(module, batches)
    return module.model

def accelerate(net, batches):
    from accelerate import Accelerator
    accelerator = Accelerator(cpu=True)
    model = net()
    ddp,opt = accelerator.prepare(model, SGD(model.parameters()))
    for xb,yb in batches:
        accelerator.backward(F.cross_entropy(ddp(xb), yb))
        opt.step()
        opt.zero_grad()
    return model

five_events = 'before_fetch','before_batch','before_step','after_step','after_zero_grad'
ways = {'by hand':                                      lambda: plain_loop,
        'learnkit':                                     lambda: learnkit,
        'learnkit, and a callback for before_batch':    lambda: with_handlers('before_batch'),
        'learnkit, and callbacks for five events':      lambda: with_handlers(*five_events),
        # as in the hand-written loop: a mean of means, without a message about the numbers of targets
        'learnkit, weigh=False':                        lambda: partial(learnkit, weigh=False),
        'Lightning':                                    lambda: lightning,
        'Accelerate':                                   lambda: accelerate}

def there(name):
    "Return the function of that name, or None if its library is not installed"
    from importlib.util import find_spec
    is_peer = name in ('Lightning','Accelerate')
    if is_peer and not find_spec(name.lower()): return None
    return ways[name]()

# the jobs, as they run in each of the processes; what the first process returns is the result

def data(what, n):
    "Return the network, and batches that differ between the processes"
    g = torch.Generator().manual_seed(dist.get_rank())
    shape,net = dict(tiny=((32, 32), tiny), cnn=((64, 1, 8, 8), convnet))[what]
    return net,[(torch.randn(shape, generator=g), torch.randint(0, 10, shape[:1], generator=g)) for _ in range(n)]

def gathered(x):
    all_ = [None]*dist.get_world_size()
    dist.all_gather_object(all_, x)
    return all_

def weights(model): return nn.utils.parameters_to_vector(model.parameters()).detach()

def check_weights(name, found, expected):
    if torch.allclose(found, expected, rtol=1e-4, atol=1e-5): return
    raise ValueError(f'the weights of {name} differ from those of the hand-written loop')

def total(spent):
    "Return the CPU seconds of all processes together, and the longest wall-clock seconds"
    seconds,clock = zip(*gathered(spent))
    return sum(seconds),max(clock)

def job_steps(what, n, rounds, whole=False):
    """Return for each way of training the seconds of a step, or of the `whole` fit, in each round: CPU time of all
    processes together, and wall-clock time"""
    net,batches = data(what, n)
    def once(train):
        clocked = Clocked(batches)
        dist.barrier()
        start = now()
        with unseen(): model = train(net, clocked)
        fit = since(start)
        steps = 1 if whole else n-1-WARM
        seconds = total(fit if whole else clocked.spent)
        return [s/steps for s in seconds],weights(model)
    found = {name:there(name) for name in ways if name!='learnkit, weigh=False'}
    todo = {name:train for name,train in found.items() if train}
    expected = once(plain_loop)[1]
    for name,train in todo.items(): check_weights(name, once(train)[1], expected)
    times = {name:[] for name in todo}
    for _ in range(rounds):
        for name,train in todo.items(): times[name].append(once(train)[0])
    return times

def job_neighbours(what, n, rounds):
    """Return for each library the times of whole fits, CPU and wall-clock, relative to the mean of the hand-written
    fits just before and after"""
    net,batches = data(what, n)
    def fit(name):
        dist.barrier()
        start = now()
        with unseen(): model = there(name)(net, Clocked(batches))   # Lightning takes a list for several loaders
        return total(since(start)),weights(model)
    names = [name for name in ('learnkit','learnkit, weigh=False','Accelerate','Lightning') if there(name)]
    expected = fit('by hand')[1]
    for name in names: check_weights(name, fit(name)[1], expected)
    ratios = {name:[] for name in names}
    plain = []
    before = fit('by hand')[0]
    for _ in range(rounds):
        for name in names:
            spent = fit(name)[0]
            after = fit('by hand')[0]
            ratios[name].append([2*s/(b+a) for s,b,a in zip(spent, before, after)])
            plain.append(after)
            before = after
    return dict(hand=plain, ratios=ratios)

def job_messages(sizes, rounds, n=30):
    "Return for each number of bytes the microseconds of an all-reduce in each round"
    times = {size:[] for size in sizes}
    for _ in range(rounds+1):
        for size in sizes:
            message = torch.zeros(size//4)
            repeats = max(2, min(n, 2**26//size))
            dist.barrier()
            start = time.perf_counter()
            for _ in range(repeats): dist.all_reduce(message)
            times[size].append((time.perf_counter()-start)/repeats*1e6)
    return {size:found[1:] for size,found in times.items()}   # the first round makes connections

def job_checkpoint(numbers, rounds):
    "Return for each number of weights the milliseconds of checkpoints of them and of Adam's two averages"
    from learnkit.all import Callback, CheckpointCallback, DataLoaders, Learner
    times = {}
    class Saves(Callback):
        def after_fit(self):
            self.ms = []
            for _ in range(rounds+1):
                start = time.perf_counter()
                self.learn.checkpoint.save(0, 1)
                self.ms.append((time.perf_counter()-start)*1e3)
    for n in numbers:
        saves = Saves()
        with tempfile.TemporaryDirectory() as path, unseen():
            batch = torch.randn(2, 1),torch.zeros(2, n)
            model = nn.Linear(1, n, bias=False)
            learn = Learner(DataLoaders([batch]), model, F.mse_loss, torch.optim.Adam, path=path)
            learn.fit(1, cbs=[CheckpointCallback(keep=1), saves])
        times[n] = saves.ms[1:]   # the first one sets up
    return times

def job_compute(what, n, rounds):
    "Return the microseconds of each of `n` hand-written steps, in one process"
    net,batches = data(what, n+WARM)
    model = net()
    opt = SGD(model.parameters())
    starts = []
    for xb,yb in batches:
        starts.append(time.perf_counter())
        F.cross_entropy(model(xb), yb).backward()
        opt.step()
        opt.zero_grad()
    return [(end-start)*1e6 for start,end in zip(starts[WARM:], starts[WARM+1:])]

jobs = dict(steps=job_steps, neighbours=job_neighbours, messages=job_messages, checkpoint=job_checkpoint,
            compute=job_compute)

# the processes

def both_ends(text):
    "Return the output of a process: its beginning explains a crash, its end an exception"
    return text if len(text)<4000 else f'{text[:2000]} … {text[-2000:]}'

def launched(world, job, script=__file__, seconds=1800, **kwargs):
    "Run a job in `world` processes, and return its result; none waits for another one longer than so many seconds"
    with socket.socket() as free, tempfile.TemporaryDirectory() as path:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
        env = dict(os.environ, WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(world), MASTER_ADDR='127.0.0.1',
                   MASTER_PORT=str(port), TORCHELASTIC_RUN_ID='bench', GROUP_RANK='0', CUDA_VISIBLE_DEVICES='',
                   OMP_NUM_THREADS='1', TERM='xterm', PYTHONWARNINGS='ignore')
        command = [sys.executable, script, job, json.dumps(kwargs), f'{path}/store', f'{path}/result', str(seconds)]
        def start(rank):
            own = dict(env, RANK=str(rank), LOCAL_RANK=str(rank))
            return subprocess.Popen(command, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=own)
        processes = [start(rank) for rank in range(world)]
        errors = [process.communicate()[1] for process in processes]
        for process,error in zip(processes, errors):
            if process.returncode==0: continue
            raise RuntimeError(f'{job} in {world} processes failed: (code {process.returncode}) {both_ends(error)}')
        return json.loads(Path(path, 'result').read_text())

def main(job, kwargs, store, result, seconds, jobs=jobs):
    warnings.filterwarnings('ignore')
    rank,world = int(os.environ['RANK']),int(os.environ['WORLD_SIZE'])
    timeout = timedelta(seconds=float(seconds))
    dist.init_process_group('gloo', init_method=f'file://{store}', rank=rank, world_size=world, timeout=timeout)
    returned = jobs[job](**json.loads(kwargs))
    if rank==0: Path(result).write_text(json.dumps(returned))
    dist.destroy_process_group()

# the parts

nets = dict(tiny='a tiny network (32-64-10, batches of 32)', cnn='a small convolutional network (batches of 64)')
clocks = {"the processors' time":'cpu', "the clock's time":'wall'}   # in the order of the pairs of times

def ratios_to_plain(times, i):
    "Return for each library the spread of its times, relative to the hand-written loop in the same round"
    plain = times['by hand']
    libraries = {name:found for name,found in times.items() if name!='by hand'}
    return {name:spread([own[i]/base[i] for own,base in zip(found, plain)]) for name,found in libraries.items()}

def median(times, i): return spread([pair[i] for pair in times])[0]

def bench_processes(rounds, steps=dict(tiny=400, cnn=120), worlds=(2, 4)):
    for world in worlds:
        for what,n in steps.items():
            times = launched(world, 'steps', what=what, n=n, rounds=rounds)
            for i,(title,clock) in enumerate(clocks.items()):
                base = f"{median(times['by hand'], i)*1e6:.0f} µs a step"
                show(f'A training step of {nets[what]} in {world} processes, {title}', base, ratios_to_plain(times, i),
                     first='DDP by hand', world=world, net=what, clock=clock)

def bench_fits(rounds, steps=dict(tiny=40, cnn=20)):
    "Short fits, of which the start and the end are a large part"
    for what,n in steps.items():
        times = launched(2, 'steps', what=what, n=n, rounds=rounds, whole=True)
        base = f"{median(times['by hand'], 0)*1e3:.1f} ms"
        title = f"A whole fit of {n} steps of {nets[what]} in 2 processes, the processors' time"
        show(title, base, ratios_to_plain(times, 0), first='DDP by hand', net=what)

def bench_neighbours(rounds, worlds=(2, 4), n=400):
    """Whole fits, each between two hand-written ones, so that the load of the machine matters less; `--rounds 11`
    takes some five minutes"""
    for world in worlds:
        before = os.getloadavg()[0]
        found = launched(world, 'neighbours', what='tiny', n=n, rounds=rounds)
        load = f'load {before:.0f} to {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores'
        for i,(title,clock) in enumerate(clocks.items()):
            base = f"{median(found['hand'], i)*1e3:.0f} ms ({load})"
            rows = {name:spread([ratio[i] for ratio in ratios]) for name,ratios in found['ratios'].items()}
            show(f'A whole fit of {n} steps of {nets["tiny"]} in {world} processes, {title}', base, rows,
                 first='DDP by hand', world=world, net='tiny', clock=clock)

def bench_compute(rounds, n=400):
    def middle(times):
        "Return the median, and the bounds of the middle 68 percent"
        times = sorted(times)
        return [times[int(len(times)*part)] for part in (.5, .16, .84)]
    us = {title:middle(launched(1, 'compute', what=what, n=n, rounds=rounds)) for what,title in nets.items()}
    title = 'Single steps by hand in one process: median, and from 16 % to 84 % of them'
    show(title, '', us, ' µs', first='', span='16–84 %')

message_sizes = [4, 80, 1024, 2**14, 2**17, 2**20, 2**22, 2**24, 2**26]

def bench_messages(rounds, worlds=(2, 4, 8)):
    for world in worlds:
        sizes = message_sizes if world<8 else message_sizes[:1]
        times = launched(world, 'messages', sizes=sizes, rounds=rounds)
        us = {f'{int(size):,} bytes':extremes(found) for size,found in times.items()}
        title = f'An all-reduce of gloo in {world} processes on one machine'
        show(title, '', us, ' µs', first='', span='least–most', world=world)

def bench_written(rounds, numbers=(10**4, 10**6, 10**7)):
    times = launched(1, 'checkpoint', numbers=numbers, rounds=rounds)
    ms = {f'{12*int(n)/1e6:,.2f} MB':extremes(found) for n,found in times.items()}
    show('A checkpoint of a model and of Adam', '', ms, ' ms', first='', span='least–most')

def keep_a_store():
    "Keep a store, and print its CPU seconds so far after each line that is read"
    store = dist.TCPStore('127.0.0.1', 0, is_master=True, wait_for_workers=False)
    print(store.port, flush=True)
    for _ in sys.stdin: print(cpu(), flush=True)

def bench_store(rounds, n=4096):
    "What the store of all processes costs the process that keeps it"
    command = [sys.executable, __file__, 'keep_a_store']
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as keeper:
        port = int(keeper.stdout.readline())
        store = dist.PrefixStore('bench', dist.TCPStore('127.0.0.1', port, is_master=False, wait_for_workers=False))
        message = json.dumps([12, 'in `before_batch` of `Saves`, epoch 0, batch 5', 3.02, False])
        keys = [str(i) for i in range(n)]
        def spent():
            print(file=keeper.stdin, flush=True)
            return float(keeper.stdout.readline())
        def set_each():
            for key in keys: store.set(key, message)
            store.get(keys[0])   # its reply comes after all before it are done
        def check_each():
            for key in keys: store.check([key])
        def read_all():
            store.check(keys)
            store.multi_get(keys)
        todo = {'a message to it':                    set_each,
                'a question about one key':           check_each,
                'each message of many in one answer': read_all}
        us = {name:[] for name in todo}
        for _ in range(rounds):
            for name,f in todo.items():
                start = spent()
                f()
                us[name].append((spent()-start)/n*1e6)
        keeper.stdin.close()
    title = 'What the process that keeps the store pays, in microseconds of the processor'
    show(title, '', {name:extremes(found) for name,found in us.items()}, ' µs', first='', span='least–most')

def at_most(most, part):
    "Return a part that runs at most so many rounds: its processes get their number beforehand"
    return lambda rounds: part(min(rounds, most))

in_processes = dict(processes=bench_processes, fits=bench_fits, neighbours=bench_neighbours, compute=bench_compute,
                    messages=bench_messages, store=bench_store, written=bench_written)
parts = {name:at_most(11, part) for name,part in in_processes.items()}

if __name__=='__main__':
    if sys.argv[1:]==['keep_a_store']: keep_a_store()
    else: main(*sys.argv[1:])
