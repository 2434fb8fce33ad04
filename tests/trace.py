"""Records all state that could change: `record(**objects)` goes through everything that they refer to and the state of
the process; `changes(before, after)` lists what differs. It shares no code with the library's snapshots, nor their exceptions."""
import gc, multiprocessing, os, pickle, random, threading, time, types
from collections import deque
from functools import partial
from pathlib import Path
import numpy as np, torch
from fastcore.foundation import L

PLAIN = int,float,complex,str,bytes,bool,type(None),range,slice,torch.dtype,torch.device,type,types.ModuleType,types.BuiltinFunctionType,Path

late = 'QueueFeederThread','ThreadPoolExecutor'   # threads that end some time after their owner

def process():
    "The state of the process: random numbers, modes of PyTorch, threads, workers, files and the current folder"
    devices = ('cpu',)
    return dict(python=pickle.dumps(random.getstate()), numpy=pickle.dumps(np.random.get_state(legacy=False)), torch=torch.get_rng_state().numpy().tobytes(),
                grad=torch.is_grad_enabled(), inference=torch.is_inference_mode_enabled(), dtype=torch.get_default_dtype(),
                autocast={d:(torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in devices}, cache=torch.is_autocast_cache_enabled(),
                deterministic=(torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark),
                anomaly=torch.is_anomaly_enabled(), threads=sorted(t.name for t in threading.enumerate() if not t.name.startswith(late)), torch_threads=torch.get_num_threads(),
                processes=sum(p.pid not in stay for p in multiprocessing.active_children()), files=sorted(os.listdir('.')), cwd=os.getcwd())

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

class Recorder:
    def __init__(self): self.seen,self.facts = {},{}

    def add(self, path, o):
        "Record `o` and return what it is; its contents are recorded once, by its id, since many paths may lead to it"
        fact = (o if o==o else 'nan') if isinstance(o, PLAIN) else f'L {[*map(id, o)]}' if isinstance(o, L) else f'{type(o).__name__} {id(o)}'
        if not isinstance(o, PLAIN) and id(o) not in self.seen:
            self.seen[id(o)] = o
            for k,v in self.within(o): self.facts[id(o),k] = f'{path}{k}',self.add(f'{path}{k}', v)
        return fact   # an `L`, such as the list of callbacks, is a new object each time

    def within(self, o):
        if isinstance(o, torch.Tensor): return self.tensor(o)
        if isinstance(o, L): return self.within([*o])
        if isinstance(o, np.ndarray): return [(' values', o.tobytes()), (' shape', str(o.shape))]
        if isinstance(o, torch.Generator): return [(' state', o.get_state().numpy().tobytes())]
        if isinstance(o, random.Random): return [(' state', pickle.dumps(o.getstate()))]
        if isinstance(o, np.random.RandomState): return [(' state', pickle.dumps(o.get_state(legacy=False)))]
        if isinstance(o, np.random.Generator): return [(' state', pickle.dumps(o.bit_generator.state))]
        if isinstance(o, dict): return [(' keys', repr([k if isinstance(k, PLAIN) else id(k) for k in o])), *((f'[{k!r:.40}]' if isinstance(k, PLAIN) else f'[#{i}]', v) for i,(k,v) in enumerate(o.items()))]
        if isinstance(o, (list,tuple,deque)): return [(' len', len(o)), *((f'[{i}]', v) for i,v in enumerate(o))]
        if isinstance(o, (set,frozenset)): return [(' members', repr(sorted(map(repr, o))))]
        if isinstance(o, types.MethodType): return [('.__self__', o.__self__)]
        if isinstance(o, partial): return [(' func', o.func), *((f' arg {i}', v) for i,v in enumerate(o.args)), *((f' {k}=', v) for k,v in o.keywords.items())]
        if isinstance(o, types.FunctionType): return [(f'<{n}>', v) for n,v in zip(o.__code__.co_freevars, map(content, o.__closure__ or ()))]
        if isinstance(o, types.GeneratorType): return [(' at', o.gi_frame and o.gi_frame.f_lasti)]
        if type(o).__module__.partition('.')[0] in ('threading','queue','multiprocessing','_thread','weakref','inspect'): return []
        if 'DataLoaderIter' in type(o).__name__: return [(' workers', repr([(w.pid, w.is_alive()) for w in getattr(o, '_workers', ())]))]
        slots = [k for c in type(o).__mro__ for k in getattr(c, '__slots__', ()) if k not in ('__weakref__','__dict__')]
        defaults = {k:v for c in reversed(type(o).__mro__) for k,v in vars(c).items() if k[:2]!='__' and isinstance(v, (int,float,str,bool,tuple,type(None)))}
        own = sorted({**defaults, **getattr(o, '__dict__', {})}.items(), key=lambda kv: str(kv[0]))   # to set an attribute to its default is no change
        return [*((f'.{k}', v) for k,v in own if k not in ('_bound','_bound_else','_call_order')), *((f'.{k}', getattr(o, k)) for k in slots if hasattr(o, k))]

    def tensor(self, t):
        with torch.no_grad(): raw = t.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes() if t.numel() and t.dim() else repr(t.detach())
        res = [(' values', raw), (' shape', f'{tuple(t.shape)} {t.dtype} {t.device} {t.stride()}'), (' requires_grad', t.requires_grad)]
        return [*res, ('.grad', t.grad)] if t.is_leaf else res

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
    a,b,res = before.facts,after.facts,[]
    for o,k in {**a, **b}:
        if o!='process' and not (o in before.seen and o in after.seen): continue
        (path,v),(_,w) = a.get((o,k)) or (b[o,k][0],'nothing'),b.get((o,k)) or ('','nothing')
        if v!=w and not allow(path): res.append(f'{path}: {str(v)[:80]} -> {str(w)[:80]}')
    return res
