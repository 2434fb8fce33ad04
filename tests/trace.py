"""Records all state that could change: `record(**objects)` visits everything that they refer to, and the state of the
process; `changes(before, after)` lists the differences. It shares no code with the library's snapshots, nor their
exceptions."""
import gc, multiprocessing, os, pickle, random, threading, time, types
from collections import deque
from functools import partial
from pathlib import Path
import numpy as np, torch
from fastcore.foundation import L

PLAIN = (int, float, complex, str, bytes, bool, type(None), range, slice, torch.dtype, torch.device, type,
         types.ModuleType, types.BuiltinFunctionType, Path)

late = 'QueueFeederThread','ThreadPoolExecutor'   # threads that end some time after their owner

def process():
    "The state of the process: random numbers, modes of PyTorch, threads, workers, files and the current folder"
    threads = [t.name for t in threading.enumerate() if not t.name.startswith(late)]
    return dict(
        python=pickle.dumps(random.getstate()),
        numpy=pickle.dumps(np.random.get_state(legacy=False)),
        torch=torch.get_rng_state().numpy().tobytes(),
        grad=torch.is_grad_enabled(),
        inference=torch.is_inference_mode_enabled(),
        dtype=torch.get_default_dtype(),
        autocast=(torch.is_autocast_enabled('cpu'), torch.get_autocast_dtype('cpu')),
        cache=torch.is_autocast_cache_enabled(),
        deterministic=(torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.deterministic),
        benchmark=torch.backends.cudnn.benchmark,
        anomaly=torch.is_anomaly_enabled(),
        threads=sorted(threads),
        torch_threads=torch.get_num_threads(),
        processes=sum(p.pid not in stay for p in multiprocessing.active_children()),
        files=sorted(os.listdir('.')),
        cwd=os.getcwd())

stay = set()   # processes of earlier tests that do not exit soon: they are waited for once, and may exit at any time
def wait_for_workers():
    """Collect unreferenced loaders, and wait for their workers to exit: while another thread collects, `gc.collect`
    returns at once, and a worker that was signalled to exit lives on for a while"""
    gc.collect()
    owned = {w.pid for o in gc.get_objects() if 'DataLoaderIter' in type(o).__name__ for w in getattr(o, '_workers', ())}
    until = time.monotonic()+5
    for p in multiprocessing.active_children():
        if p.pid in owned|stay: continue
        p.join(max(0, until-time.monotonic()))
        if p.is_alive(): stay.add(p.pid)

def is_plain(o): return isinstance(o, PLAIN)
def key_of(k, i):
    "A key of a dict as a part of a path: a plain one itself, any other by its position"
    return f'[{k!r:.40}]' if is_plain(k) else f'[#{i}]'

def fact_of(o):
    "What is compared of an object besides its contents: the value of a plain one, the identity of any other"
    if is_plain(o): return o if o==o else 'nan'
    if isinstance(o, L): return f'L {[*map(id, o)]}'   # such as the list of callbacks: a new object each time
    return f'{type(o).__name__} {id(o)}'

def within_dict(o):
    keys = [k if is_plain(k) else id(k) for k in o]
    return [(' keys', repr(keys)), *((key_of(k, i), v) for i,(k,v) in enumerate(o.items()))]

def within_sequence(o): return [(' len', len(o)), *((f'[{i}]', v) for i,v in enumerate(o))]

def within_partial(o):
    args = [(f' arg {i}', v) for i,v in enumerate(o.args)]
    return [(' func', o.func), *args, *((f' {k}=', v) for k,v in o.keywords.items())]

def within_function(o):
    cells = map(content, o.__closure__ or ())
    return [(f'<{name}>', v) for name,v in zip(o.__code__.co_freevars, cells)]

def within_tensor(t):
    if t.numel() and t.dim():
        with torch.no_grad(): values = t.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
    else: values = repr(t.detach())
    shape = f'{tuple(t.shape)} {t.dtype} {t.device} {t.stride()}'
    found = [(' values', values), (' shape', shape), (' requires_grad', t.requires_grad)]
    return [*found, ('.grad', t.grad)] if t.is_leaf else found

def workers_of(loader_iter): return repr([(w.pid, w.is_alive()) for w in getattr(loader_iter, '_workers', ())])

# the contents of objects, as pairs of a part of a path and a value; of a subclass, that of the first matching type
contents = {
    torch.Tensor:           within_tensor,
    L:                      lambda o: contents_of([*o]),
    np.ndarray:             lambda o: [(' values', o.tobytes()), (' shape', str(o.shape))],
    torch.Generator:        lambda o: [(' state', o.get_state().numpy().tobytes())],
    random.Random:          lambda o: [(' state', pickle.dumps(o.getstate()))],
    np.random.RandomState:  lambda o: [(' state', pickle.dumps(o.get_state(legacy=False)))],
    np.random.Generator:    lambda o: [(' state', pickle.dumps(o.bit_generator.state))],
    dict:                   within_dict,
    (list,tuple,deque):     within_sequence,
    (set,frozenset):        lambda o: [(' members', repr(sorted(map(repr, o))))],
    types.MethodType:       lambda o: [('.__self__', o.__self__)],
    partial:                within_partial,
    types.FunctionType:     within_function,
    types.GeneratorType:    lambda o: [(' at', o.gi_frame and o.gi_frame.f_lasti)]}

machinery = 'threading','queue','multiprocessing','_thread','weakref','inspect'
not_recorded = '_bound','_bound_else','_call_order'   # caches of the dispatcher

def contents_of(o):
    for kinds,within in contents.items():
        if isinstance(o, kinds): return within(o)
    if type(o).__module__.partition('.')[0] in machinery: return []
    if 'DataLoaderIter' in type(o).__name__: return [(' workers', workers_of(o))]
    return attributes_of(o)

def defaults_of(cls):
    "The plain attributes of a class and its bases: setting an attribute to its default is no change"
    found = {}
    for c in reversed(cls.__mro__):
        plain = {k:v for k,v in vars(c).items() if isinstance(v, (int,float,str,bool,tuple,type(None)))}
        found |= {k:v for k,v in plain.items() if k[:2]!='__'}
    return found

def slots_of(cls):
    names = [k for c in cls.__mro__ for k in getattr(c, '__slots__', ())]
    return [k for k in names if k not in ('__weakref__','__dict__')]

def attributes_of(o):
    own = {**defaults_of(type(o)), **getattr(o, '__dict__', {})}
    named = sorted(own.items(), key=lambda item: str(item[0]))
    slots = [k for k in slots_of(type(o)) if hasattr(o, k)]
    return [*((f'.{k}', v) for k,v in named if k not in not_recorded), *((f'.{k}', getattr(o, k)) for k in slots)]

class Recorder:
    def __init__(self): self.seen,self.facts = {},{}

    def add(self, path, o):
        "Record `o` and return its fact; its contents are recorded once, by its id, since many paths may lead to it"
        if not is_plain(o) and id(o) not in self.seen:
            self.seen[id(o)] = o
            for k,v in contents_of(o): self.facts[id(o),k] = f'{path}{k}',self.add(f'{path}{k}', v)
        return fact_of(o)

def content(cell):
    try: return cell.cell_contents
    except ValueError: return None

def record(**objects):
    "A recording of everything that `objects` refer to, by path, and of the state of the process"
    if multiprocessing.active_children(): wait_for_workers()
    rec = Recorder()
    for k,o in objects.items(): rec.add(k, o)
    for k,v in process().items(): rec.facts['process',k] = f'process: {k}',repr(v)
    return rec   # it refers to the objects, so that ids stay unique

def changes(before, after, allow=lambda path: False):
    "What differs in objects of both recordings: path and both values; of a new object, only the reference to it"
    found = []
    for key in {**before.facts, **after.facts}:
        o,_ = key
        in_both = o in before.seen and o in after.seen
        if o!='process' and not in_both: continue
        path,old = before.facts.get(key, (None, 'nothing'))
        new_path,new = after.facts.get(key, (None, 'nothing'))
        path = path or new_path
        if old!=new and not allow(path): found.append(f'{path}: {str(old)[:80]} -> {str(new)[:80]}')
    return found
