"""A GPU under the names of the simulated accelerator: sim.py"""
import os, warnings
from contextlib import contextmanager
import torch

os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')
torch.backends.cudnn.deterministic,torch.backends.cudnn.benchmark = True,False
name,stream,near = 'cuda','wait',dict(rtol=1e-3, atol=2e-4)
waits = []

def generator(device='cuda'): return torch.cuda.default_generators[torch.device(device).index or 0]

@contextmanager
def watched():
    "PyTorch warns each time that the host waits for the device"
    with warnings.catch_warnings():
        warnings.filterwarnings('always', message='called a synchronizing')
        warnings.filterwarnings('ignore', message='Synchronization debug mode')
        others = warnings.showwarning
        def show(message, *args, **kw): waits.append(stream) if 'synchronizing' in str(message) else others(message, *args, **kw)
        warnings.showwarning = show
        torch.cuda.set_sync_debug_mode('warn')
        try: yield
        finally: torch.cuda.set_sync_debug_mode('default')

def take_syncs(): res = waits[:]; waits.clear(); return res
def take_races(): return []   # a GPU does not report them: a wrong result does
