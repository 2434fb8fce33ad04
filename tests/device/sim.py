"""A simulated accelerator: importing this makes `torch.device('sim')` the accelerator of the process. sim.cpp
describes what it simulates; it is compiled when it, PyTorch or Python has changed, which takes a minute."""
import hashlib, os, subprocess, sys, sysconfig
from contextlib import nullcontext
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import torch
from torch.utils.cpp_extension import include_paths, library_paths

source = Path(__file__).with_name('sim.cpp')

def built():
    "The compiled simulation"
    mark = hashlib.sha256(source.read_bytes() + f'{torch.__version__} {sys.version}'.encode()).hexdigest()[:16]
    lib = source.parents[2]/'build'/f'sim-{mark}.so'
    if not lib.exists():
        lib.parent.mkdir(exist_ok=True)
        part = lib.with_suffix(f'.{os.getpid()}')
        subprocess.run([os.environ.get('CXX', 'c++'), '-std=c++20', '-O1', '-fPIC', '-shared', '-w', '-DTORCH_EXTENSION_NAME=_sim', str(source), '-o', str(part),
                        *(f'-I{p}' for p in (*include_paths(), sysconfig.get_path('include'))), *(f'-L{p}' for p in library_paths()),
                        '-ltorch', '-ltorch_cpu', '-lc10', '-ltorch_python'], check=True)
        part.replace(lib)
    return lib

spec = spec_from_file_location('_sim', built())
_sim = module_from_spec(spec)
spec.loader.exec_module(_sim)
take_syncs,take_races = _sim.take_syncs,_sim.take_races   # what happened since the last call
name,stream,near,watched = 'sim','stream',{},nullcontext   # its name, its word for waiting for a stream, how near it is to the CPU, how to watch it

class Device(torch.accelerator.device_index):
    "With another device as the current one"
    def __init__(self, d): super().__init__(d if isinstance(d, int) else torch.device(d).index)

def generator(device='sim'):
    i = device if isinstance(device, int) else torch.device(device).index
    return generators[torch.accelerator.current_device_index() if i is None else i]

def manual_seed_all(seed):
    for g in generators: g.manual_seed(seed)

# what PyTorch requires of the module of a device, and no more: learnkit must not need what else `torch.cuda` has
generators = [_sim.default_generator(i) for i in range(2)]
module = ModuleType('torch.sim')
vars(module).update(
    is_available=lambda: True, is_initialized=lambda: True, _is_in_bad_fork=lambda: False, device_count=lambda: len(generators), device=Device,
    current_device=torch.accelerator.current_device_index, set_device=torch.accelerator.set_device_index, synchronize=torch.accelerator.synchronize,
    get_amp_supported_dtype=lambda: [torch.float16, torch.bfloat16, torch.float32], manual_seed_all=manual_seed_all,
    get_rng_state=lambda device='sim': generator(device).get_state(), set_rng_state=lambda state, device='sim': generator(device).set_state(state))

torch.utils.rename_privateuse1_backend('sim')
torch._register_device_module('sim', module)
torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
