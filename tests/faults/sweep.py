"""Raise a signal or an exception at the n-th line of the library, and report what is not restored.
`python tests/faults/sweep.py [name of a run ...]` does so at every line of the runs of `test_interrupts.py`."""
import dis, inspect, os, random, re, signal, sys, threading
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np, torch
import learnkit

ROOT = str(Path(learnkit.__file__).parent)
TORCH = tuple(str(Path(torch.__file__).parent/f) for f in ('autograd/grad_mode.py', 'utils/_contextlib.py', 'amp/autocast_mode.py', 'nn/modules/module.py'))   # Python code that sets a mode, and puts it back

class Terminal(StringIO):
    "A stream that claims to be a terminal"
    def isatty(self): return True

class Tracer:
    "Counts the lines or instructions of the library (of its function `only`), or the calls from it, and calls `act` at each number in `acts`"
    def __init__(self, acts=None, kind='line', opcodes=(), only=None):
        self.acts,self.kind,self.opcodes,self.only,self.n,self.where,self.names = acts or {},kind,opcodes,only,0,[],[]
    def __enter__(self): sys.settrace(self.called); return self
    def __exit__(self, *args): sys.settrace(None); sys.setprofile(None)

    def called(self, frame, kind, arg):
        ours = frame.f_code.co_filename.startswith(ROOT)
        if self.kind=='call':
            if ours or (frame.f_back is not None and frame.f_back.f_code.co_filename.startswith(ROOT)): self.tick(frame)
            return None
        if not (frame.f_code.co_filename in TORCH if self.kind=='torch' else ours): return None
        if self.only and frame.f_code.co_qualname!=self.only: return None
        if self.kind=='opcode' or frame.f_code.co_qualname in self.opcodes: frame.f_trace_opcodes = True
        return self.line

    def line(self, frame, kind, arg):
        if kind==('opcode' if frame.f_trace_opcodes else 'line'): self.tick(frame)
        return self.line

    def tick(self, frame):
        self.n += 1
        if not self.acts: self.names.append((frame.f_code.co_qualname, frame.f_lineno, frame.f_lasti, frame.f_lineno is None and is_close(frame)))
        act = self.acts.get(self.n)
        if act is None: return
        self.where.append(f'{frame.f_code.co_qualname}:{frame.f_lineno}')
        if any(n>self.n for n in self.acts): sys.setprofile(self.again)
        act()

    def again(self, frame, kind, arg):
        "Restart the tracing at the next call, as an exception from a trace function ends it"
        sys.setprofile(None)
        sys.settrace(self.called)
        while frame is not None:
            if self.kind!='call' and frame.f_code.co_filename.startswith(TORCH if self.kind=='torch' else ROOT): frame.f_trace = self.line
            frame = frame.f_back

def is_close(frame):
    """Return whether the next instruction is one that Python 3.12 and later add to each generator, executed when it is
    closed. Python handles no signal there, and only prints that an exception raised there was ignored"""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] in ('CALL_INTRINSIC_1','RERAISE') and bool(frame.f_code.co_flags & inspect.CO_GENERATOR)

def interrupt(number=signal.SIGINT): return lambda: signal.raise_signal(number)
def fail():                  raise MemoryError('no memory')

def all_modules(learn): return [*learn.model.modules()]
_hooks = [k for k in vars(torch.nn.Linear(1, 1)) if k.endswith('hooks')]
_signals = [s for s in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1)]

def state(learn, folder):
    "The state that every run must restore"
    loss,opt = learn.loss_func,getattr(learn.opt, 'opt', learn.opt)
    res = dict(mode=learn.mode, training=learn.training, grad=torch.is_grad_enabled(), autocast=torch.is_autocast_enabled('cpu'), inference=torch.is_inference_mode_enabled(),
        lock=learn._lock._is_owned(), cbs=[id(cb) for cb in learn.cbs], runs=[cb.run for cb in learn.cbs], learns=[cb.learn is learn for cb in learn.cbs],
        names=[getattr(learn, cb.name, None) is not None for cb in learn.cbs], logger=id(learn.logger), loss=id(loss), reduction=getattr(loss, 'reduction', None),
        metrics=[id(m) for m in learn.metrics], mbar=learn.create_mbar, skip=learn.current_run.skip_loss, stdout=id(sys.stdout), stderr=id(sys.stderr), exc=learn.exc,
        batches=learn.batches, do_batch=learn.current_run.do_batch==learn._do_one_batch, forward=[k for m in all_modules(learn) for k in vars(m) if k=='forward'],
        hooks=[len(vars(m)[k]) for m in all_modules(learn) for k in _hooks if k in vars(m)], generators=[getattr(dl, 'generator', None) for dl in learn.dls.loaders],
        signals=[signal.getsignal(s) for s in _signals], threads=frozenset(threading.enumerate()), cudnn=(torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark),
        files=sorted(p.name for p in folder.rglob('*.tmp')), bar=getattr(getattr(learn, 'progress', None), 'mbar', None), model=id(learn.model),
        opt_hooks=[len(getattr(opt, f'_optimizer_step_{k}_hooks', ())) for k in ('pre','post')])
    for cb in learn.cbs:   # what callbacks hold only during a run
        for k in ('open','snapshot','whole','stance','thread','old_handlers'): res[f'{cb.name}.{k}'] = bool(vars(cb).get(k))
        if cb.name=='ema': res['ema.trained_weights'] = cb.trained_weights is not None
    return res

def tensors(o, at=''):
    if isinstance(o, torch.Tensor): yield at,o.detach().clone()
    elif isinstance(o, dict):
        for k,v in o.items(): yield from tensors(v, f'{at}.{k}')
    elif isinstance(o, (list,tuple)):
        for i,v in enumerate(o): yield from tensors(v, f'{at}.{i}')
    else: yield at,o

def whole(learn):
    "The further state that a run without a lasting effect must restore"
    rng = dict(python=random.getstate(), numpy=np.random.get_state()[1].tobytes(), torch=torch.get_rng_state())
    opt = learn.opt and dict(state=learn.opt.state_dict())
    rec = getattr(learn, 'recorder', None)
    return dict(tensors(dict(model=learn.model.state_dict(), opt=opt, rng=rng, modes=[m.training for m in all_modules(learn)],
                             grads=[p.grad for p in learn.model.parameters()], rows=len(rec.history) if rec else 0, lr=learn.lr, n=[len(rec.lrs) if rec else 0])))

def differs(a, b):
    "The keys whose values differ"
    def same(v, w): return torch.equal(v, w) if isinstance(v, torch.Tensor) and isinstance(w, torch.Tensor) else type(v) is type(w) and v==w
    return [k for k in {*a, *b} if k not in a or k not in b or not same(a[k], b[k])]

def weights(learn): return torch.cat([p.detach().flatten().double() for p in learn.model.parameters()])

# the runs
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
import learnkit.all as lk

def data(n=8, bs=4, seed=0):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=g)
    return DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), bs, shuffle=seed==0)

def seed(): random.seed(1); np.random.seed(1); torch.manual_seed(1)

def learner(folder, *cbs, kind='terminal', **kw):
    seed()
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(.2), nn.Linear(3, 1))
    learn = lk.Learner(lk.DataLoaders(data(), data(4, seed=1)), model, nn.MSELoss(), kw.pop('opt_func', torch.optim.Adam), lr=.01, metrics=[lk.mae], path=folder, cbs=cbs, **kw)
    if kind: learn.remove_cb(lk.ProgressCallback).add_cb(lk.ProgressCallback(kind, every=1e9))
    return learn

def toolkit(): return [lk.EMACallback(.5), lk.MixUp(), lk.GradientAccumulation(8), lk.GradientClip(1.), lk.EarlyStoppingCallback(), lk.CSVLogger(), lk.ActivationStats(), lk.MixedPrecision('bf16')]

def trained(folder, *cbs, **kw):
    "A Learner after a fit of one epoch"
    learn = learner(folder, *cbs, **kw)
    learn.fit(1)
    return learn

def saved(folder):
    learn = trained(folder)
    learn.save('old')
    return learn

def crashed(folder, *cbs):
    "A new Learner that can resume a fit killed in its second epoch"
    learn = learner(folder, lk.CheckpointCallback('1ba'), *cbs)
    def crash(self):
        if self.learn.epoch: raise SystemError('the power failed')
    try: learn.fit(2, cbs=lk.Callback(after_pred=crash))
    except SystemError: pass
    return learner(folder, lk.CheckpointCallback('1ba', overwrite=True), *cbs)

def tried(learn):
    with learn.unchanged(): learn.fit(1)
def manual_block(learn):
    with learn: learn.all_batches if learn.batches else learn._do_epoch_validate()
def quiet(learn):
    with learn.no_bar(), learn.no_logging(), learn.no_mbar(): pass
def averaged(learn):
    with learn.ema.averaged(): pass
def accum(): return lk.Callback(after_batch=lambda self: self.learn.training and self.learn.validate())

class Pruned(Exception): "Stands in for Optuna's TrialPruned"
class Trial:
    "Stands in for an Optuna trial; while `bad`, it is pruned at every second report"
    study,bad,n = None,False,0
    def report(self, value, step): self.n += 1
    def should_prune(self): return self.bad and self.n%2==0

def pruning():
    with patch.dict(sys.modules, optuna=SimpleNamespace(TrialPruned=Pruned)): return lk.OptunaPruning(Trial())
def prune(learn):
    trial = learn.optuna_pruning.trial
    trial.bad,trial.n = True,0
    try: learn.fit(4)
    except Pruned: pass
    finally: trial.bad = False

class Run:
    "A kind of run: how to make its Learner, what to do with it, and whether that changes it for good"
    def __init__(self, make, do, trace=False): self.make,self.do,self.trace = make,do,trace

runs = dict(
    fit        = Run(learner, lambda l: l.fit(1), True),
    toolkit    = Run(lambda f: learner(f, *toolkit()), lambda l: l.fit(1), True),
    one_cycle  = Run(learner, lambda l: l.fit_one_cycle(1, slice(.01)), True),
    fine_tune  = Run(learner, lambda l: l.fine_tune(1, .01), True),
    find_first = Run(learner, lambda l: l.lr_find(num_it=6, show_plot=False, suggest_funcs=None)),
    create_opt = Run(learner, lambda l: l.create_opt(), True),
    save_best  = Run(lambda f: learner(f, lk.SaveModelCallback()), lambda l: l.fit_one_cycle(1, .01), True),
    checkpoint = Run(lambda f: learner(f, lk.CheckpointCallback('1ba', overwrite=True)), lambda l: l.fit(1), True),
    steps      = Run(lambda f: learner(f, lk.StepsPerEpoch(3)), lambda l: l.fit(2), True),
    amount     = Run(lambda f: learner(f, lk.StopAfter('1h')), lambda l: l.fit_one_cycle('3ba', .01), True),
    logs       = Run(lambda f: learner(f, lk.JsonLogger(), lk.CSVLogger(), lk.StepLines(1)), lambda l: l.fit(1), True),
    nested     = Run(lambda f: learner(f, accum(), lk.SanityCheck(1), lk.ValidateEvery('1ba'), lk.FetchPredsCallback(cbs=lk.CSVLogger)), lambda l: l.fit(1), True),
    fused      = Run(lambda f: learner(f, lk.SkipNaN(), lk.MicroBatch(2), lk.EMACallback(.5)), lambda l: l.fit(1), True),
    validate   = Run(trained, lambda l: l.validate()),
    get_preds  = Run(trained, lambda l: l.get_preds(0, with_input=True, with_decoded=True, with_loss=True)),
    preds_files = Run(trained, lambda l: l.get_preds(mmap=l.path/'p', save_targs=l.path/'t')),
    preds_all  = Run(lambda f: trained(f, *toolkit()), lambda l: l.get_preds()),
    predict    = Run(trained, lambda l: l.predict(torch.ones(4))),
    lr_find    = Run(trained, lambda l: l.lr_find(num_it=6, show_plot=False, suggest_funcs=None)),
    lr_find_all= Run(lambda f: trained(f, lk.EMACallback(.5), lk.MixUp(), lk.MixedPrecision('bf16')), lambda l: l.lr_find(num_it=6, show_plot=False, suggest_funcs=None)),
    unchanged  = Run(trained, tried),
    hand       = Run(trained, manual_block),
    quiet      = Run(trained, quiet),
    averaged   = Run(lambda f: trained(f, lk.EMACallback(.5, at_end=False)), averaged),
    tta        = Run(trained, lambda l: l.tta(n=1, aug=lambda x: x+1)),
    interp     = Run(trained, lambda l: lk.Interpretation.from_learner(l)),
    validate_all = Run(trained, lambda l: l.validate_all(test=l.dls.valid)),
    save       = Run(trained, lambda l: l.save('new')),
    load       = Run(saved, lambda l: l.load('old'), True),
    load_to    = Run(saved, lambda l: l.load('old', device='cpu'), True),
    export     = Run(trained, lambda l: l.export('new')),
    summary    = Run(trained, lambda l: l.summary()),
    resume     = Run(crashed, lambda l: l.fit(2, resume='auto'), True),
    signals    = Run(lambda f: learner(f, lk.CheckpointCallback(overwrite=True), lk.StopOnSignal()), lambda l: l.fit(1), True),
    pruned     = Run(lambda f: learner(f, pruning()), prune, True),
    freeze     = Run(trained, lambda l: (l.freeze_to(0), l.unfreeze()), True),
)

class Sweep:
    "Runs `name` again and again, raising at another place each time"
    def __init__(self, name, folder, error=(KeyboardInterrupt,), kind='line', opcodes=()):
        self.run,self.name,self.folder,self.error,self.kind,self.opcodes = runs[name],name,Path(folder),error,kind,opcodes
        self.once()   # torch imports and caches things in the first run
        self.legal,self.n = [],0
        learn = self.make()
        self.legal.append(weights(learn))
        out = self
        class Steps(lk.Callback):
            order = 1000
            def after_step(self): out.legal.append(weights(self.learn))
            def after_validate(self): out.legal.append(weights(self.learn))
        learn.add_cb(Steps())
        seed()
        with self.terminal(): self.run.do(learn)
        self.legal.append(weights(learn))
        t = self.once()[1]
        self.n,self.names = t.n,t.names

    def make(self):
        for p in sorted(self.folder.rglob('*'), reverse=True): p.rmdir() if p.is_dir() else p.unlink()
        with self.terminal(): return self.run.make(self.folder)

    @contextmanager
    def terminal(self):
        old = sys.stdout
        sys.stdout = self.out = Terminal()
        try: yield
        finally: sys.stdout = old

    def once(self, acts=None, check=False, only=None):
        "Run once with `acts`; return what is wrong afterwards, and the Tracer"
        learn = self.make()
        raised,t = None,Tracer(acts, self.kind, self.opcodes, only)
        seed()
        with self.terminal():
            before,all_ = state(learn, self.folder),whole(learn)
            try:
                with t: self.run.do(learn)
            except BaseException as e: raised = e
            try: wrong = self.compare(learn, before, state(learn, self.folder), all_, raised, t) if check else []
            except Exception as e: wrong = [f'the Learner is no more what it was: {e!r}']
        return wrong,t

    def compare(self, learn, before, after, all_, raised, t):
        if not t.where: return []
        before['threads'] &= after['threads']   # threads of an earlier test may end meanwhile
        wrong = [f'{k}: {str(before.get(k))[:60]} -> {str(after.get(k))[:60]}' for k in differs(before, after) if k!='exc']
        if raised is None and self.kind!='call': wrong.append('nothing was raised')
        elif raised is not None and not isinstance(raised, self.error): wrong.append(f'raised {raised!r:.300}')
        if not self.run.trace: wrong += [f'not as before: {k}' for k in differs(all_, whole(learn))][:4]
        elif not any(torch.equal(weights(learn), w) for w in self.legal): wrong.append('weights are neither before nor after a step')
        del raised
        try:
            learn.validate()
            for cb in learn.cbs:
                if isinstance(cb, lk.CheckpointCallback): cb.overwrite = True
            learn.fit(1)
            again = state(learn, self.folder)
            before['threads'] &= again['threads']
            wrong += [f'after another fit {k}: {str(before.get(k))[:60]} -> {str(again.get(k))[:60]}' for k in differs(before, again)]
        except BaseException as e: wrong.append(f'fit fails then: {e!r:.200}')
        return wrong

def reset():
    "Restore the modes and signal handlers that a broken run left changed"
    torch.set_grad_enabled(True)
    torch.set_autocast_enabled('cpu', False)
    for s in _signals: signal.signal(s, _old[s])
_old = {s:signal.getsignal(s) for s in _signals}

# The functions that enter, leave or restore something
critical_names = r'''_run _end _switch_to _keep_modes _optimizer_evaluates_after Guard _Block _ReceiveSignals _deliver handle_pending interruptibly added_cbs removed_cbs _delete_cbs Snapshot restore swap
    none_reduce loss_not_reduced atomic named _exit_to unchanged cleanup _use_given_scheduler _add_missing _receive end\b _step\b'''.split()
CRITICAL = re.compile('|'.join(critical_names))

def places(s, every, critical=True):
    "Every `every`-th line, and the last execution of each line of the critical functions"
    last = {name[:2]:i for i,name in enumerate(s.names, 1) if CRITICAL.search(name[0])} if critical else {}
    return sorted({*range(1 + s.n%every//2, s.n+1, every), *last.values()})

def lineless(s, most=None):
    "The last executions of instructions without a line number where signals can come; about `most`, spread evenly"
    last = {name:i for i,name in enumerate(s.names, 1) if name[1] is None and not name[3]}
    found = sorted(last.values())
    return found[::max(1, len(found)//most)] if most else found

def sweep(name, folder, every=1, act=None, kind='line', first=(), error=(KeyboardInterrupt,), critical=True):
    "Raise at the `places`, or at each of the lines `first` and again at each `every`-th line after it"
    s,found,n = Sweep(name, folder, error, kind),{},0
    act = act or interrupt()
    def spread():
        if kind!='opcode': return places(s, every, critical)
        closes = {i for i,name in enumerate(s.names, 1) if name[3]}
        return sorted({*lineless(s), *range(1 + s.n%every//2, s.n+1, every)} - closes)
    for i in first or [0]:
        for j in range(i+1, i+400, every) if i else spread():
            wrong,t = s.once({**({i:act} if i else {}), j:act}, check=True)
            if i and len(t.where)<2: break
            n += 1
            if wrong: found[i,j] = t.where,wrong; reset()
    return n,found

def report(name, n, found):
    print(f'{name}: {len(found)} of {n}')
    by = {}
    for where,wrong in found.values(): by.setdefault(where[-1], []).append((where, wrong))
    for k,v in [*by.items()][:25]: print(f'   {len(v):4} {k}  {v[0][0][:-1] or ""} {" | ".join(v[0][1])[:240]}')

if __name__=='__main__':
    import argparse, tempfile, time, warnings
    p = argparse.ArgumentParser()
    p.add_argument('names', nargs='*'); p.add_argument('--every', type=int, default=1)
    p.add_argument('--fail', action='store_true'); p.add_argument('--torch', action='store_true', help='lines of torch that set a mode'); p.add_argument('--opcodes', action='store_true', help='instructions'); p.add_argument('--second', type=int, nargs='*', default=())
    a = p.parse_args()
    warnings.simplefilter('ignore'); torch.set_num_threads(1)
    if signal.getsignal(signal.SIGINT)==signal.SIG_IGN: signal.signal(signal.SIGINT, signal.default_int_handler)   # in the background of a shell
    for name in a.names or runs:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory(dir='/dev/shm' if os.path.isdir('/dev/shm') else None) as f:
            kw = dict(act=fail, error=(MemoryError,), kind='call') if a.fail else dict(kind='torch') if a.torch else dict(kind='opcode') if a.opcodes else {}
            report(name, *sweep(name, f, a.every, first=a.second, critical=not a.fail and a.every>1, **kw))
        print(f'   {time.perf_counter()-start:.1f} s', flush=True)
