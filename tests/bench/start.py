"""What the start of many processes costs each of them: sockets, bytes received, requests to the store, seconds.

    python tests/bench/start.py 8 16 32 64

They are forked after the imports, each trains a tiny network for one batch, and none uses shared memory, as between
machines. "Connected to all" is the default of gloo, and learnkit with `TORCH_GLOO_LAZY_INIT=0`.
"""
import json, os, socket, struct, sys, tempfile, time
from collections import Counter
from pathlib import Path
import torch
from torch import distributed as dist, nn
from learnkit.all import DataLoaders, Learner
from learnkit.processes import agreement
from learnkit.processes.launch import join_group
from tools import extremes, show, unseen

asked = Counter()

def count_calls():
    "Count the requests of this process to the store, and its messages, without those of PyTorch's C++ code"
    questions = 'check','add','get','multi_get'
    for cls,names in (dist.PrefixStore, questions), (dist.TCPStore, questions), (dist.ProcessGroup, ('allreduce', 'allgather', 'broadcast')):
        for name in names:
            def counted(self, *args, f=getattr(cls, name), name=name, **kw):
                asked[name] += 1
                return f(self, *args, **kw)
            setattr(cls, name, counted)

def sockets():
    "The connections of this process: how many sockets, and how many bytes have arrived by them"
    n,received = 0,0
    for fd in os.listdir('/proc/self/fd'):
        try: is_socket = os.readlink(f'/proc/self/fd/{fd}').startswith('socket')
        except OSError: continue
        if not is_socket: continue
        n += 1
        with socket.socket(fileno=os.dup(int(fd))) as s:
            if s.family not in (socket.AF_INET, socket.AF_INET6): continue
            received += struct.unpack_from('Q', s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), 128)[0]
    return n,received

def work(rank, world, port, path, lazy):
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port))
    if not lazy: os.environ['TORCH_GLOO_LAZY_INIT'] = '0'
    agreement.open_shared_memory = lambda: None
    count_calls()
    start = time.monotonic()
    with unseen():
        join_group()
        joined = time.monotonic()-start
        x = torch.randn(2*world, 4)
        Learner(DataLoaders.from_tensors(x, x.sum(1, keepdim=True), valid_pct=.5, bs=1), nn.Linear(4, 1), nn.MSELoss()).fit(1)
    n,received = sockets()
    (path/str(rank)).write_text(json.dumps(dict(sockets=n, received=received, asked=sum(asked[k] for k in ('check','add','get','multi_get')), messages=[asked[k] for k in ('allreduce','allgather','broadcast')],
                                                joined=joined, fitted=time.monotonic()-start)))
    dist.barrier()

def measure(world, lazy):
    "Return the measurements of each process"
    import torch._dynamo   # once for all forks
    with socket.socket() as s: s.bind(('127.0.0.1', 0)); port = s.getsockname()[1]
    with tempfile.TemporaryDirectory() as path:
        torch.multiprocessing.start_processes(work, (world, port, Path(path), lazy), nprocs=world, start_method='fork')
        return [json.loads(Path(path, str(r)).read_text()) for r in range(world)]

units = dict(sockets=('sockets', 1), received=('kB arrived', 1e-3), asked=('questions to the store', 1), joined=('s until the group is there', 1), fitted=('s until the fit ends', 1))

def bench_start(rounds, worlds=(4, 8, 16), connects=('lazily', 'to all')):
    "All processes but the first, which hosts the store, and that one"
    for how in connects:
        for world in worlds:
            first,*others = measure(world, how=='lazily')
            rows = {name:extremes([o[key]*factor for o in others]) for key,(name,factor) in units.items()}
            rows |= {f'process 0: {name}':[first[key]*factor]*3 for key,(name,factor) in units.items()}
            messages = others[0]['messages']
            show(f'The start of {world} processes, each connected {how}', '', rows, first='', span='least–most', world=world, connected=how, messages=messages)

if __name__=='__main__': bench_start(1, [*map(int, sys.argv[1:] or (4, 8, 16))])
