"""learnkit beside the loop that one would write by hand, in one process"""
import subprocess, sys, tempfile
from functools import partial
from pathlib import Path
from tools import F, Rows, as_is, by_hand, convnet, extremes, fit_by_hand, images, importing, in_turn, learner, many, nn, predict_by_hand, show, spread, steps, timed, tiny, torch
from torch.utils.data import DataLoader, TensorDataset

def us(base, n): return f'{base*1e6/n:.0f} µs a step'

# a step of a tiny network, and the callbacks around it

def bench_step(rounds, n=1000):
    from learnkit import TrainEvalCallback
    batches = steps(n)
    base,ratios = in_turn(rounds, timed(lambda: by_hand(batches)),
        **{'learnkit, default callbacks and progress bar': timed(lambda: learner(batches).fit(1)),
           'learnkit, TrainEvalCallback only':             timed(lambda: learner(batches, default_cbs=False, cbs=TrainEvalCallback).fit(1))})
    show('A training step of a tiny network (32-64-10, batches of 32, SGD)', us(base, n), ratios)

def bench_callbacks(rounds, n=500):
    from learnkit import Callback
    batches = steps(n)
    class HandlesNone(Callback):
        def before_epoch(self): pass
    class HandlesOne(Callback):
        def before_batch(self): pass
    def fit(cls, k): learn = learner(batches, cbs=[cls() for _ in range(k)]); return timed(lambda: learn.fit(1))
    kinds = {'handle no batch event':HandlesNone, 'handle one each batch':HandlesOne}
    base,ratios = in_turn(rounds, fit(HandlesNone, 0), **{f'{k} more that {what}':fit(cls, k) for what,cls in kinds.items() for k in (10, 100)})
    show('More callbacks: ratio to the default ones alone', us(base, n), ratios, first='the default ones')

def toolkit():
    "The toolkit, each callback by the name that it has in the table"
    import learnkit.all as lk
    exponential = lambda o: torch.optim.lr_scheduler.ExponentialLR(o, .999)
    return {
        'GradientAccumulation (every 4th batch)': lambda: lk.GradientAccumulation(128),
        'GradientClip':                           lk.GradientClip,
        'EMACallback':                            lk.EMACallback,
        'MicroBatch (2 parts)':                   lambda: lk.MicroBatch(16),
        'MixedPrecision bf16':                    lambda: lk.MixedPrecision('bf16'),
        'BnFreeze':                               lk.BnFreeze,
        'ShortEpochCallback (all of it)':         lambda: lk.ShortEpochCallback(1.),
        'StopAfter':                              lambda: lk.StopAfter(10**6),
        'ParamScheduler, one cycle':              lambda: lk.ParamScheduler(lk.one_cycle(.01)),
        'TorchScheduler, each step':              lambda: lk.TorchScheduler(exponential, 'step'),
        'MixUp':                                  lk.MixUp,
        'ActivationStats (every 10th)':           lambda: lk.ActivationStats(every=10),
        'ActivationStats (each batch)':           lk.ActivationStats,
        'TerminateOnNaNCallback':                 lk.TerminateOnNaNCallback,
        'EarlyStoppingCallback':                  lambda: lk.EarlyStoppingCallback('train_loss'),
        'SaveModelCallback':                      lambda: lk.SaveModelCallback('train_loss'),
        'ReduceLROnPlateau':                      lambda: lk.ReduceLROnPlateau('train_loss'),
        'ThresholdStopper':                       lambda: lk.ThresholdStopper(0, 'train_loss'),
        "EveryCallback '100ba'":                  lambda: lk.EveryCallback(lambda learn: None, '100ba'),
        'MCDropoutCallback':                      lk.MCDropoutCallback,
        'learn.on, every=100':                    lambda: lk.OnCallback(lambda learn: None, 'after_batch', lk.Filter(every=100)),
        "CheckpointCallback '100ba'":             lambda: lk.CheckpointCallback('100ba', overwrite=True),
        "CheckpointCallback '100ba', background": lambda: lk.CheckpointCallback('100ba', overwrite=True, background=True)}

def bench_toolkit(rounds, n=400):
    batches = steps(n)
    with tempfile.TemporaryDirectory() as path:
        def fit(make): return timed(lambda: learner(batches, cbs=make and make(), path=path).fit(1))
        base,ratios = in_turn(rounds, fit(None), **{k:fit(f) for k,f in toolkit().items()})
    show('The toolkit: a step with one more callback, against the default ones alone', us(base, n), ratios, first='the default ones')

# optimizers: how much of a step is theirs, and whether another way to compute them gives the same bits

def weights(model): return nn.utils.parameters_to_vector(model.parameters()).detach()

def bench_optimizers(rounds, n=500):
    batches,ways = steps(n),{' one by one':dict(foreach=False), ', foreach=True':dict(foreach=True), ', fused=True':dict(fused=True)}
    def fit(opt): learner(batches, opt).fit(1)
    def after(opt):
        learn = learner(batches[:100], opt)
        with learn.no_bar(), learn.no_logging(): learn.fit(1)
        return weights(learn.model)
    def note(got, plain): return 'the same bits' if torch.equal(got, plain) else f'differs by {(got-plain).abs().max():.0e} after 100 steps'
    for cls in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        opts = {f'{cls.__name__}{k}':partial(cls, **kw) for k,kw in ways.items()}
        base,ratios = in_turn(rounds, timed(lambda: fit(torch.optim.SGD)), **{k:timed(partial(fit, o)) for k,o in opts.items()})
        plain,*others = opts
        notes = {plain:'', **{k:': ' + note(after(opts[k]), after(opts[plain])) for k in others}}
        show(f'A step with {cls.__name__}, ratio to SGD as it comes', us(base, n), {k+notes[k]:r for k,r in ratios.items()}, first='SGD')

# the digits: a whole job, and what it costs to be able to go on

def loaders():
    x,y = images()
    return DataLoader(TensorDataset(x[:1500], y[:1500]), 64, shuffle=True),DataLoader(TensorDataset(x[1500:], y[1500:]), 64)

def digits_learner(train, valid, **kw):
    from learnkit import DataLoaders, Learner, accuracy
    return Learner(DataLoaders(train, valid), convnet(), F.cross_entropy, torch.optim.Adam, lr=1e-3, metrics=accuracy, **kw)

def bench_digits(rounds, epochs=2):
    train,valid = loaders()
    base,ratios = in_turn(rounds, timed(lambda: fit_by_hand(convnet(), partial(torch.optim.Adam, lr=1e-3), train, valid, epochs)),
        **{'learnkit, accuracy, progress bar': timed(lambda: digits_learner(train, valid).fit(epochs))})
    show('The digits: two epochs of a small convolutional network, with validation', f'{base:.2f} s', ratios)

def bench_checkpoint(rounds, epochs=9):
    from learnkit import CheckpointCallback
    train,valid = loaders()
    def fit(**kw):
        def _f():
            with tempfile.TemporaryDirectory() as path:
                digits_learner(train, valid, path=path, cbs=CheckpointCallback('100ba', **kw) if kw else None).fit(epochs)
        return timed(_f)
    base,ratios = in_turn(min(rounds, 15), fit(), **{"'100ba'": fit(keep=3), "'100ba', in the background": fit(keep=3, background=True)})
    show('A checkpoint every 100 batches: nine epochs of the digits', f'{base:.2f} s', ratios, first='without')

# predictions: time, and memory of a process of its own

def preds_setup(who, rows=200_000):
    "A function that predicts, by hand or with a Learner"
    from learnkit import DataLoaders, Learner   # in both, so that their processes differ in nothing else
    model,dl = tiny(),many(rows)
    if who=='hand': return lambda: predict_by_hand(model, dl)
    learn = Learner(DataLoaders(dl, dl), model, F.cross_entropy)
    return lambda: learn.get_preds(act=lambda o: o)   # what the model gives, as by hand: no softmax

def in_child(who):
    "The peak of memory in a process of its own"
    code = f'from own import preds_setup; from tools import peak; print(peak(preds_setup({who!r})))'
    return float(subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True, cwd=Path(__file__).parent).stdout)

@torch.no_grad()
def predict_in_place(model, batches, rows):
    "By hand, into tensors that are made beforehand: less memory, more copying"
    model.eval()
    preds,targs,i = torch.empty(rows, 10),torch.empty(rows, dtype=torch.long),0
    for xb,yb in batches:
        j = i + len(xb)
        preds[i:j],targs[i:j],i = model(xb),yb,j
    return preds,targs

def known_rows(batches):
    "How many rows there are, if that is known before the first batch"
    if isinstance(batches, list): return len(batches[0][0])*(len(batches)-1) + len(batches[-1][0])
    return len(batches.dataset) if isinstance(batches, DataLoader) else None

def put(out, t, i, n):
    "Copy a batch into the results, which the first one allocates; a batch of another kind is an error"
    t = t.detach()
    if out is None: out = torch.empty(n, *t.shape[1:], dtype=t.dtype)
    if t.shape[1:]!=out.shape[1:] or t.dtype is not out.dtype or i+len(t)>n: raise ValueError(f'batch {tuple(t.shape)} of {t.dtype} does not fit')
    out[i:i+len(t)].copy_(t)
    return out

@torch.no_grad()
def predict_the_same_job(model, batches):
    """By hand, more of what `get_preds` does: results in memory of their own size, each batch copied when it arrives, as its memory may be used
    again, and checked to fit; modes and random state as before, even after an error. Without events, cancelled batches and a bar"""
    n,modes,rng = known_rows(batches),[(m, m.training) for m in model.modules()],torch.get_rng_state()
    model.eval()
    try:
        preds,targs,i = None,None,0
        if n is None:
            kept = [(model(xb).detach().clone(), yb.detach().clone()) for xb,yb in batches]
            return tuple(map(torch.cat, zip(*kept)))
        for xb,yb in batches:
            pred = model(xb)
            preds,targs = put(preds, pred, i, n),put(targs, yb, i, n)
            i += len(pred)
        return preds[:i],targs[:i]
    finally:
        for m,training in modes: m.training = training
        torch.set_rng_state(rng)

def bench_preds(rounds, rows=200_000, memory=True):
    model,dl = tiny(),many(rows)
    base,ratios = in_turn(rounds, timed(preds_setup('hand', rows)), **{
        'by hand, into tensors made beforehand': timed(lambda: predict_in_place(model, dl, rows)),
        'by hand, the same job': timed(lambda: predict_the_same_job(model, dl)), 'learn.get_preds()': timed(preds_setup('learnkit', rows))})
    show(f'Predicting {rows:,} rows (batches of 256)', f'{base:.2f} s', ratios)
    if not Path('/proc/self/clear_refs').exists(): return print('  peak memory can be measured on Linux only')
    if not memory: return
    hand,ours = (extremes([in_child(who) for _ in range(min(rounds, 5))]) for who in ('hand','learnkit'))
    show('Its peak of memory above the start', f'{hand[0]:.0f} MiB', {'learn.get_preds()':ours}, unit=' MiB', span='least–most')

# the same by the form of the data

class Batches:
    "An iterable of batches that does not know how many they are"
    def __init__(self, batches): self.batches = batches
    def __iter__(self): return iter(self.batches)

def forms(rows):
    "Rows to predict in each form that data have; fewer where each item is taken one by one"
    torch.manual_seed(2)
    dl,few = many(rows),max(256, rows//10)
    x,y = torch.randn(few, 32),torch.zeros(few).long()
    return {'a list of batches': [*dl], 'an iterable': Batches([*dl]), 'a DataLoader': dl, 'a DataLoader of a TensorDataset': DataLoader(TensorDataset(x, y), 256),
            'a DataLoader with 2 workers': DataLoader(Rows(x, y), 256, collate_fn=as_is, num_workers=2),
            'a data set that holds a list of a million items': DataLoader(Holds(dl.dataset.x, dl.dataset.y), 256, collate_fn=as_is)}

class Holds(Rows):
    "Rows whose names are in a list, with those of many others"
    def __init__(self, x, y): super().__init__(x, y); self.names = [*range(1_000_000)]

def bench_forms(rounds, rows=200_000):
    from learnkit import DataLoaders, Learner
    model,data = tiny(),forms(rows)
    looks = {f'Predicting by the form of the data: {rows:,} rows, fewer where items come one by one': (predict_by_hand, lambda learn: learn.get_preds(act=as_is)),
             'The same, beside a loop that does the same job': (predict_the_same_job, lambda learn: learn.get_preds(act=as_is)),
             'Validating by the form of the data': (loss_by_hand, lambda learn: learn.validate())}
    for what,(hand,look) in looks.items():
        ratios = {}
        for form,dl in data.items():
            learn = Learner(DataLoaders(dl, dl), model, F.cross_entropy)
            base,ratio = in_turn(rounds, timed(partial(hand, model, dl)), **{form: timed(partial(look, learn))})
            ratios |= {f'{form} ({base:.2g} s)': ratio[form]}
        show(what, 'the same data, in the seconds that stand beside each form', ratios)

@torch.no_grad()
def loss_by_hand(model, batches):
    "The mean loss of all items"
    model.eval()
    loss = n = 0
    for xb,yb in batches: loss,n = loss + F.cross_entropy(model(xb), yb)*len(yb),n + len(yb)
    return loss.item()/n

# what a fit and an epoch cost beside their steps

def bench_short(rounds, n=50):
    from learnkit import DataLoaders, Learner, accuracy
    train,valid = steps(1),steps(1)
    def by_hand(val, epochs): fit_by_hand(tiny(), partial(torch.optim.SGD, lr=.01), train, val, epochs)
    def ours(val, epochs): Learner(DataLoaders(train, val), tiny(), F.cross_entropy, torch.optim.SGD, lr=.01, metrics=val and accuracy).fit(epochs)
    def many(f, *args, times=1): return timed(lambda: [f(*args) for _ in range(times)])
    kinds = {'a Learner and its fit of one batch':(None, 1, n), 'an epoch of one batch':(None, n, 1), 'an epoch of one batch, and one of validation':(valid, n, 1)}
    ratios = {}
    for what,(val,epochs,times) in kinds.items():
        base,ratio = in_turn(rounds, many(by_hand, val, epochs, times=times), ours=many(ours, val, epochs, times=times))
        ratios |= {f'{what} ({base*1e3/n:.2f} ms)': ratio['ours']}
    show('Short fits', 'the same, in the time that stands beside each', ratios)

# one item

def wider(d=1024):
    "A network of a thousand inputs and three layers of a thousand"
    torch.manual_seed(0)
    layers = [l for _ in range(3) for l in (nn.Linear(d, d), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(d, 10))

def predict_one_by_hand(model, item):
    "The most likely class and the probabilities"
    with torch.no_grad():
        probs = model(item[None]).softmax(-1)
        return probs.argmax(-1)[0],probs[0]

def bench_predict(rounds, n=500):
    from learnkit.all import CrossEntropyLossFlat, DataLoaders, Learner, Predictor
    for what,model,d in ('a tiny network (32-64-10)', tiny(), 32), ('a network of three layers of 1024', wider(), 1024):
        model.eval()
        item = torch.randn(d)
        learn = Learner(DataLoaders([(item[None], torch.zeros(1).long())]), model, CrossEntropyLossFlat())
        def bare():
            with torch.no_grad(): return model(item[None])
        def many(f): return timed(lambda: [f() for _ in range(n)])
        with Predictor(learn) as predict:
            base,ratios = in_turn(rounds, many(bare), **{'by hand, with softmax and argmax':many(lambda: predict_one_by_hand(model, item)),
                                                         'Predictor':many(lambda: predict(item))})
        ratios |= in_turn(rounds, many(bare), **{'learn.predict':many(lambda: learn.predict(item))})[1]
        show(f'One item through {what}', us(base, n).replace('a step', 'an item'), ratios, first='the model alone')

# importing

def bench_import(rounds):
    run = importing('import learnkit')
    run()   # what it reads is in memory afterwards
    torch_s,ours = zip(*[run() for _ in range(min(rounds, 15))])
    show('Importing, in a fresh process', f'{spread(torch_s)[0]*1e3:.0f} ms', {'import learnkit, after it': spread([s*1e3 for s in ours])}, ' ms', first='import torch')

parts = {'step':bench_step, 'callbacks':bench_callbacks, 'toolkit':bench_toolkit, 'optimizers':bench_optimizers, 'digits':bench_digits,
         'checkpoint':bench_checkpoint, 'preds':bench_preds, 'forms':bench_forms, 'short':bench_short, 'predict':bench_predict, 'import':bench_import}
