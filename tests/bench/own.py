"""learnkit compared with hand-written loops, in one process"""
import subprocess, sys, tempfile
from functools import partial
from pathlib import Path
from tools import (F, Rows, as_is, compare, convnet, extremes, images, importing, learner, many, nn, plain_fit,
                   plain_loop, plain_predict, show, spread, steps, timed, tiny, torch)
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, TensorDataset

def us(base, n): return f'{base*1e6/n:.0f} µs a step'

# a step of a tiny network, and the callbacks around it

def bench_step(rounds, n=1000):
    from learnkit import TrainEvalCallback
    batches = steps(n)
    def plain():    plain_loop(batches)
    def default():  learner(batches).fit(1)
    def one_only(): learner(batches, default_cbs=False, cbs=TrainEvalCallback).fit(1)
    base,ratios = compare(rounds, timed(plain), **{
        'learnkit, default callbacks and progress bar': timed(default),
        'learnkit, TrainEvalCallback only':             timed(one_only)})
    show('A training step of a tiny network (32-64-10, batches of 32, SGD)', us(base, n), ratios)

def bench_callbacks(rounds, n=500):
    from learnkit import Callback
    batches = steps(n)
    class HandlesNone(Callback):
        def before_epoch(self): pass
    class HandlesOne(Callback):
        def before_batch(self): pass
    def fit(cls, count):
        learn = learner(batches, cbs=[cls() for _ in range(count)])
        return timed(lambda: learn.fit(1))
    base,ratios = compare(rounds, fit(HandlesNone, 0), **{
        '10 more that handle no batch event':   fit(HandlesNone, 10),
        '100 more that handle no batch event':  fit(HandlesNone, 100),
        '10 more that handle one each batch':   fit(HandlesOne, 10),
        '100 more that handle one each batch':  fit(HandlesOne, 100)})
    show('More callbacks: ratio to the default ones alone', us(base, n), ratios, first='the default ones')

def toolkit():
    "Return the toolkit: functions that make each callback, by its name in the table"
    import learnkit.all as lk
    def exponential(opt): return ExponentialLR(opt, .999)
    def nothing(learn): return None
    def checkpoint(**kwargs): return lk.CheckpointCallback('100ba', overwrite=True, **kwargs)
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
        "EveryCallback '100ba'":                  lambda: lk.EveryCallback(nothing, '100ba'),
        'MCDropoutCallback':                      lk.MCDropoutCallback,
        'learn.on, every=100':                    lambda: lk.OnCallback(nothing, 'after_batch', lk.Filter(every=100)),
        "CheckpointCallback '100ba'":             checkpoint,
        "CheckpointCallback '100ba', background": lambda: checkpoint(background=True)}

def bench_toolkit(rounds, n=400):
    batches = steps(n)
    with tempfile.TemporaryDirectory() as path:
        def fit(make):
            def train():
                cbs = make() if make else None
                learner(batches, cbs=cbs, path=path).fit(1)
            return timed(train)
        base,ratios = compare(rounds, fit(None), **{name:fit(make) for name,make in toolkit().items()})
    what = 'The toolkit: a step with one more callback, against the default ones alone'
    show(what, us(base, n), ratios, first='the default ones')

# optimizers: how much of a step is theirs, and whether other ways to compute it are bitwise identical

def weights(model): return nn.utils.parameters_to_vector(model.parameters()).detach()

def difference(weights, expected):
    "Return in words how far `weights` are from those that were `expected`"
    if torch.equal(weights, expected): return 'the same bits'
    return f'differs by {(weights-expected).abs().max():.0e} after 100 steps'

def bench_optimizers(rounds, n=500):
    batches = steps(n)
    def fit(opt): learner(batches, opt).fit(1)
    def weights_after_100_steps(opt):
        learn = learner(batches[:100], opt)
        with learn.no_bar(), learn.no_logging(): learn.fit(1)
        return weights(learn.model)
    for cls in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        one_by_one = f'{cls.__name__} one by one'
        opts = {one_by_one:                         partial(cls, foreach=False),
                f'{cls.__name__}, foreach=True':    partial(cls, foreach=True),
                f'{cls.__name__}, fused=True':      partial(cls, fused=True)}
        fits = {name:timed(partial(fit, opt)) for name,opt in opts.items()}
        base,ratios = compare(rounds, timed(partial(fit, torch.optim.SGD)), **fits)
        expected = weights_after_100_steps(opts[one_by_one])
        rows = {one_by_one:ratios.pop(one_by_one)}
        for name,ratio in ratios.items():
            found = weights_after_100_steps(opts[name])
            rows[f'{name}: {difference(found, expected)}'] = ratio
        show(f'A step with {cls.__name__}, ratio to SGD as it comes', us(base, n), rows, first='SGD')

# the digits: a whole job, and the cost of checkpoints to resume it from

def loaders():
    x,y = images()
    train = DataLoader(TensorDataset(x[:1500], y[:1500]), 64, shuffle=True)
    valid = DataLoader(TensorDataset(x[1500:], y[1500:]), 64)
    return train,valid

adam = partial(torch.optim.Adam, lr=1e-3)

def digits_learner(train, valid, **kwargs):
    from learnkit import DataLoaders, Learner, accuracy
    dls = DataLoaders(train, valid)
    return Learner(dls, convnet(), F.cross_entropy, torch.optim.Adam, lr=1e-3, metrics=accuracy, **kwargs)

def bench_digits(rounds, epochs=2):
    train,valid = loaders()
    def plain(): plain_fit(convnet(), adam, train, valid, epochs)
    def own():   digits_learner(train, valid).fit(epochs)
    base,ratios = compare(rounds, timed(plain), **{'learnkit, accuracy, progress bar': timed(own)})
    show('The digits: two epochs of a small convolutional network, with validation', f'{base:.2f} s', ratios)

def bench_checkpoint(rounds, epochs=9):
    from learnkit import CheckpointCallback
    train,valid = loaders()
    def fit(**kwargs):
        def train_in_fresh_folder():
            cbs = CheckpointCallback('100ba', **kwargs) if kwargs else None
            with tempfile.TemporaryDirectory() as path:
                digits_learner(train, valid, path=path, cbs=cbs).fit(epochs)
        return timed(train_in_fresh_folder)
    base,ratios = compare(min(rounds, 15), fit(), **{
        "'100ba'":                    fit(keep=3),
        "'100ba', in the background": fit(keep=3, background=True)})
    show('A checkpoint every 100 batches: nine epochs of the digits', f'{base:.2f} s', ratios, first='without')

# predictions: time, and memory in a separate process

def predictor(who, rows=200_000):
    "Return a function that predicts, with a hand-written loop ('plain') or with a Learner ('learnkit')"
    from learnkit import DataLoaders, Learner   # for both, so that their processes differ in nothing else
    model = tiny()
    dl = many(rows)
    if who=='plain': return lambda: plain_predict(model, dl)
    learn = Learner(DataLoaders(dl, dl), model, F.cross_entropy)
    return lambda: learn.get_preds(act=as_is)   # the outputs of the model, as in the hand-written loop: no softmax

def peak_in_process(who):
    "Return the peak of memory of predictions in a fresh process"
    code = f'from own import predictor; from tools import peak; print(peak(predictor({who!r})))'
    here = Path(__file__).parent
    printed = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True, cwd=here).stdout
    return float(printed)

@torch.no_grad()
def predict_in_place(model, batches, rows):
    "Predict into tensors that are allocated before the first batch: less memory, more copying"
    model.eval()
    preds = torch.empty(rows, 10)
    targs = torch.empty(rows, dtype=torch.long)
    i = 0
    for xb,yb in batches:
        j = i + len(xb)
        preds[i:j] = model(xb)
        targs[i:j] = yb
        i = j
    return preds,targs

def known_rows(batches):
    "Return the number of rows, or None if it is not known before the first batch"
    if isinstance(batches, list): return len(batches[0][0])*(len(batches)-1) + len(batches[-1][0])
    if isinstance(batches, DataLoader): return len(batches.dataset)

def copy_batch(out, batch, i, n):
    "Copy a batch to row `i` of `out`, whose `n` rows the first batch allocates; raise if the batch does not fit"
    batch = batch.detach()
    if out is None: out = torch.empty(n, *batch.shape[1:], dtype=batch.dtype)
    if batch.shape[1:]!=out.shape[1:] or batch.dtype is not out.dtype or i+len(batch)>n:
        raise ValueError(f'batch {tuple(batch.shape)} of {batch.dtype} does not fit')
    out[i:i+len(batch)].copy_(batch)
    return out

@torch.no_grad()
def predict_copies(model, batches):
    "Return copies of all predictions and targets, of which the number is not known"
    preds,targs = [],[]
    for xb,yb in batches:
        preds.append(model(xb).detach().clone())
        targs.append(yb.detach().clone())
    return torch.cat(preds),torch.cat(targs)

@torch.no_grad()
def predict_in_known_rows(model, batches, n):
    "Copy predictions and targets into tensors of `n` rows"
    preds = targs = None
    i = 0
    for xb,yb in batches:
        pred = model(xb)
        preds = copy_batch(preds, pred, i, n)
        targs = copy_batch(targs, yb, i, n)
        i += len(pred)
    return preds[:i],targs[:i]

def predict_the_same_job(model, batches):
    """A hand-written loop that does more of what `get_preds` does: each batch is copied when it arrives, as its memory
    may be used again, and checked to fit; modes and random state are restored, even after an error. It has no events,
    no cancelled batches and no progress bar"""
    n     = known_rows(batches)
    modes = [(module, module.training) for module in model.modules()]
    rng   = torch.get_rng_state()
    model.eval()
    try:
        if n is None: return predict_copies(model, batches)
        return predict_in_known_rows(model, batches, n)
    finally:
        for module,training in modes: module.training = training
        torch.set_rng_state(rng)

def bench_preds(rounds, rows=200_000, memory=True):
    model = tiny()
    dl = many(rows)
    base,ratios = compare(rounds, timed(predictor('plain', rows)), **{
        'by hand, into tensors made beforehand': timed(lambda: predict_in_place(model, dl, rows)),
        'by hand, the same job':                 timed(lambda: predict_the_same_job(model, dl)),
        'learn.get_preds()':                     timed(predictor('learnkit', rows))})
    show(f'Predicting {rows:,} rows (batches of 256)', f'{base:.2f} s', ratios)
    if not memory: return
    if not Path('/proc/self/clear_refs').exists(): return print('  peak memory can be measured on Linux only')
    times = min(rounds, 5)
    plain = extremes([peak_in_process('plain') for _ in range(times)])
    own   = extremes([peak_in_process('learnkit') for _ in range(times)])
    what  = 'Its peak of memory above the start'
    show(what, f'{plain[0]:.0f} MiB', {'learn.get_preds()':own}, unit=' MiB', span='least–most')

# the same for each kind of data

class Batches:
    "An iterable of batches without a length"
    def __init__(self, batches): self.batches = batches
    def __iter__(self): return iter(self.batches)

class WithNames(Rows):
    "Rows whose names are in a list, among a million others"
    def __init__(self, x, y):
        super().__init__(x, y)
        self.names = [*range(1_000_000)]

def forms(rows):
    "Return rows to predict in each form that data have; fewer where a DataLoader fetches samples one by one"
    torch.manual_seed(2)
    dl  = many(rows)
    few = max(256, rows//10)
    x   = torch.randn(few, 32)
    y   = torch.zeros(few).long()
    return {
        'a list of batches':                [*dl],
        'an iterable':                      Batches([*dl]),
        'a DataLoader':                     dl,
        'a DataLoader of a TensorDataset':  DataLoader(TensorDataset(x, y), 256),
        'a DataLoader with 2 workers':      DataLoader(Rows(x, y), 256, collate_fn=as_is, num_workers=2),
        'a data set that holds a list of a million items':
                                            DataLoader(WithNames(dl.dataset.x, dl.dataset.y), 256, collate_fn=as_is)}

@torch.no_grad()
def plain_loss(model, batches):
    "Return the mean loss of all samples"
    model.eval()
    loss = n = 0
    for xb,yb in batches:
        loss += F.cross_entropy(model(xb), yb)*len(yb)
        n += len(yb)
    return loss.item()/n

def bench_forms(rounds, rows=200_000):
    from learnkit import DataLoaders, Learner
    model = tiny()
    data  = forms(rows)
    def predict(learn): return learn.get_preds(act=as_is)
    def validate(learn): return learn.validate()
    of_predictions = f'Predicting by the form of the data: {rows:,} rows, fewer where items come one by one'
    tables = {of_predictions:                                   (plain_predict, predict),
              'The same, beside a loop that does the same job': (predict_the_same_job, predict),
              'Validating by the form of the data':             (plain_loss, validate)}
    for what,(plain,own) in tables.items():
        table = {}
        for form,dl in data.items():
            learn = Learner(DataLoaders(dl, dl), model, F.cross_entropy)
            base,ratios = compare(rounds, timed(partial(plain, model, dl)), **{form:timed(partial(own, learn))})
            table[f'{form} ({base:.2g} s)'] = ratios[form]
        show(what, 'the same data, in the seconds that stand beside each form', table)

# the cost of a fit and of an epoch, apart from their steps

def bench_short(rounds, n=50):
    from learnkit import DataLoaders, Learner, accuracy
    train,valid = steps(1),steps(1)
    sgd = partial(torch.optim.SGD, lr=.01)
    def plain(valid, epochs): plain_fit(tiny(), sgd, train, valid, epochs)
    def own(valid, epochs):
        metrics = accuracy if valid else None
        learn = Learner(DataLoaders(train, valid), tiny(), F.cross_entropy, torch.optim.SGD, lr=.01, metrics=metrics)
        learn.fit(epochs)
    def repeated(fit, valid, epochs, times):
        def fits():
            for _ in range(times): fit(valid, epochs)
        return timed(fits)
    kinds = {'a Learner and its fit of one batch':             dict(valid=None,  epochs=1, times=n),
             'an epoch of one batch':                          dict(valid=None,  epochs=n, times=1),
             'an epoch of one batch, and one of validation':   dict(valid=valid, epochs=n, times=1)}
    rows = {}
    for name,kind in kinds.items():
        base,ratios = compare(rounds, repeated(plain, **kind), own=repeated(own, **kind))
        rows[f'{name} ({base*1e3/n:.2f} ms)'] = ratios['own']
    show('Short fits', 'the same, in the time that stands beside each', rows)

# one sample

def wide(d=1024):
    "Return a network with a thousand inputs and three layers of a thousand"
    torch.manual_seed(0)
    layers = []
    for _ in range(3): layers += [nn.Linear(d, d), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(d, 10))

def plain_predict_one(model, sample):
    "Return the most likely class and the probabilities"
    with torch.no_grad():
        probs = model(sample[None]).softmax(-1)
        return probs.argmax(-1)[0],probs[0]

def bench_predict(rounds, n=500):
    bench_one_sample('a tiny network (32-64-10)', tiny(), torch.randn(32), rounds, n)
    bench_one_sample('a network of three layers of 1024', wide(), torch.randn(1024), rounds, n)

def bench_one_sample(what, model, sample, rounds, n):
    from learnkit.all import CrossEntropyLossFlat, DataLoaders, Learner, Predictor
    model.eval()
    learn = Learner(DataLoaders([(sample[None], torch.zeros(1).long())]), model, CrossEntropyLossFlat())
    def forward():
        with torch.no_grad(): return model(sample[None])
    def repeated(f):
        def calls():
            for _ in range(n): f()
        return timed(calls)
    with Predictor(learn) as predict:
        base,ratios = compare(rounds, repeated(forward), **{
            'by hand, with softmax and argmax': repeated(lambda: plain_predict_one(model, sample)),
            'Predictor':                        repeated(lambda: predict(sample))})
    _,of_learn_predict = compare(rounds, repeated(forward), **{'learn.predict':repeated(lambda: learn.predict(sample))})
    rows = ratios | of_learn_predict
    show(f'One item through {what}', f'{base*1e6/n:.0f} µs an item', rows, first='the model alone')

# importing

def bench_import(rounds):
    seconds = importing('import learnkit')
    seconds()   # reads the files from the disk
    measured = [seconds() for _ in range(min(rounds, 15))]
    torch_ms = [of_torch*1e3 for of_torch,_ in measured]
    own_ms   = [own*1e3 for _,own in measured]
    base     = f'{spread(torch_ms)[0]:.0f} ms'
    rows     = {'import learnkit, after it':spread(own_ms)}
    show('Importing, in a fresh process', base, rows, ' ms', first='import torch')

parts = {'step':bench_step, 'callbacks':bench_callbacks, 'toolkit':bench_toolkit, 'optimizers':bench_optimizers,
         'digits':bench_digits, 'checkpoint':bench_checkpoint, 'preds':bench_preds, 'forms':bench_forms,
         'short':bench_short, 'predict':bench_predict, 'import':bench_import}
