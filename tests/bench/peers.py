"""The same jobs with each library that is installed, written as its users write them, with its defaults: its own
progress bar and table where it shows one, nothing written to disk. A library must compute what the hand-written loop
computes: if its result differs, it is not timed.

Each library has a process of its own, which lives through the whole measurement. In each round it runs the hand-written
loop and the library, one right after the other. The rounds of all libraries alternate, and no library is slowed down by
what another one imports.
"""
import gc, importlib.metadata, json, os, subprocess, sys, tempfile, warnings
from functools import partial
from pathlib import Path
import gpu
from tools import (F, alternate, as_is, convnet, cpu, device_of, extremes, images, importing, loader, many, nn, peak,
                   plain_fit, plain_predict, show, spread, timed, tiny, torch, unseen)

# Each library: `fit` trains the model in place, `predict` returns a function that predicts all of `dl`.
# `opt` is a `partial` of a class of torch.optim, which has the learning rate.

class Learnkit:
    package,module = 'learnkit','learnkit'

    @staticmethod
    def fit(model, opt, train, valid=None, epochs=1):
        from learnkit import DataLoaders, Learner, accuracy
        metrics = accuracy if valid else None
        learn = Learner(DataLoaders(train, valid), model, F.cross_entropy, opt, metrics=metrics)
        learn.fit(epochs)

    @staticmethod
    def predict(model, dl):
        from learnkit import DataLoaders, Learner
        learn = Learner(DataLoaders(dl, dl), model, F.cross_entropy)
        return lambda: learn.get_preds(act=as_is)[0]

class Fastai:
    package,module = 'fastai','fastai.basics'

    @staticmethod
    def fit(model, opt, train, valid=None, epochs=1):
        from fastai.basics import DataLoaders, Learner, OptimWrapper, accuracy
        from fastai.callback.progress import ProgressCallback   # as with `fastai.vision.all`
        one_batch = [next(iter(train))]   # it does not fit without validation, so that gets one batch
        dls = DataLoaders(train, valid or one_batch, device=device_of(model))
        metrics = accuracy if valid else None
        opt_func = partial(OptimWrapper, opt=opt.func)
        learn = Learner(dls, model, F.cross_entropy, opt_func, lr=opt.keywords['lr'], metrics=metrics)
        learn.fit(epochs)

    @staticmethod
    def predict(model, dl):
        from fastai.basics import DataLoaders, Learner
        from fastai.callback.progress import ProgressCallback
        learn = Learner(DataLoaders(dl, dl, device='cpu'), model, F.cross_entropy)
        return lambda: learn.get_preds(dl=dl, act=as_is)[0]

class Lightning:
    package,module = 'lightning','lightning'

    @staticmethod
    def make(model, opt=None, epochs=None):
        "Return a Trainer, and the model as a LightningModule"
        import lightning
        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.model = model
            def configure_optimizers(self): return opt(self.parameters())
            def training_step(self, batch, i):
                return F.cross_entropy(self.model(batch[0]), batch[1])
            def validation_step(self, batch, i):
                pred = self.model(batch[0])
                self.log('valid_loss', F.cross_entropy(pred, batch[1]), prog_bar=True)
                self.log('accuracy', (pred.argmax(1)==batch[1]).float().mean(), prog_bar=True)
            def predict_step(self, batch, i): return self.model(batch[0]),batch[1]
        trainer = lightning.Trainer(accelerator=device_of(model), devices=1, max_epochs=epochs,
                                    logger=False, enable_checkpointing=False)
        return trainer,Module()

    @staticmethod
    def fit(model, opt, train, valid=None, epochs=1):
        trainer,module = Lightning.make(model, opt, epochs)
        trainer.fit(module, train, valid)

    @staticmethod
    def predict(model, dl):
        trainer,module = Lightning.make(model)
        def preds_and_targets():
            preds,targs = zip(*trainer.predict(module, dl))
            return torch.cat(preds),torch.cat(targs)
        return lambda: preds_and_targets()[0]

class Ignite:
    package,module = 'pytorch-ignite','ignite.engine'

    @staticmethod
    def fit(model, opt, train, valid=None, epochs=1):
        from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
        from ignite.metrics import Accuracy, Loss
        trainer = create_supervised_trainer(model, opt(model.parameters()), F.cross_entropy, device_of(model))
        if valid:
            metrics = dict(loss=Loss(F.cross_entropy), accuracy=Accuracy())
            evaluator = create_supervised_evaluator(model, metrics)
            trainer.on(Events.EPOCH_COMPLETED)(lambda: evaluator.run(valid))
        trainer.run(train, max_epochs=epochs)

    @staticmethod
    def predict(model, dl):
        from ignite.engine import create_supervised_evaluator
        from ignite.handlers import EpochOutputStore
        evaluator = create_supervised_evaluator(model)
        store = EpochOutputStore()
        store.attach(evaluator)
        def preds_and_targets():
            evaluator.run(dl)
            preds,targs = zip(*store.data)
            return torch.cat(preds),torch.cat(targs)
        return lambda: preds_and_targets()[0]

class Accelerate:
    package,module = 'accelerate','accelerate'

    @staticmethod
    def fit(model, opt, train, valid=None, epochs=1):
        from accelerate import Accelerator
        accelerator = Accelerator(cpu=device_of(model)=='cpu')
        model,opt,train,valid = accelerator.prepare(model, opt(model.parameters()), train, valid)
        for _ in range(epochs):
            model.train()
            for xb,yb in train:
                accelerator.backward(F.cross_entropy(model(xb), yb))
                opt.step()
                opt.zero_grad()
            if valid is None: continue
            model.eval()
            losses,right = [],[]
            for xb,yb in valid:
                with torch.no_grad(): pred = model(xb)
                pred,yb = accelerator.gather_for_metrics((pred, yb))
                losses.append(F.cross_entropy(pred, yb, reduction='none'))
                right.append(pred.argmax(1)==yb)
            torch.cat(losses).mean().item()
            torch.cat(right).float().mean().item()

    @staticmethod
    def predict(model, dl):
        from accelerate import Accelerator
        accelerator = Accelerator(cpu=True)
        model,dl = accelerator.prepare(model, dl)
        @torch.no_grad()
        def preds_and_targets():
            model.eval()
            preds,targs = zip(*[accelerator.gather_for_metrics((model(xb), yb)) for xb,yb in dl])
            return torch.cat(preds),torch.cat(targs)
        return lambda: preds_and_targets()[0]

class PytorchAccelerated:
    package,module = 'pytorch-accelerated','pytorch_accelerated'

    @staticmethod
    def fit(model, opt, train, valid=None, epochs=1):
        from pytorch_accelerated import Trainer
        from pytorch_accelerated.callbacks import TrainerCallback
        from pytorch_accelerated.trainer import DEFAULT_CALLBACKS
        class Accuracy(TrainerCallback):
            def on_eval_epoch_start(self, trainer, **kwargs): self.right = self.n = 0
            def on_eval_step_end(self, trainer, batch, batch_output, **kwargs):
                self.right += (batch_output['model_outputs'].argmax(1)==batch[1]).sum()
                self.n += batch_output['batch_size']
            def on_eval_epoch_end(self, trainer, **kwargs):
                trainer.run_history.update_metric('accuracy', self.right.item()/self.n)
        trainer = Trainer(model, F.cross_entropy, opt(model.parameters()), callbacks=(*DEFAULT_CALLBACKS, Accuracy))
        in_memory = dict(num_workers=0, pin_memory=False)   # by default it loads with workers
        valid_dataset = valid.dataset if valid else None
        trainer.train(train.dataset, epochs, valid_dataset, train.batch_size, collate_fn=train.collate_fn,
                      train_dataloader_kwargs=dict(in_memory, shuffle=False), eval_dataloader_kwargs=in_memory)

    predict = None   # it evaluates, but does not return predictions

class Skorch:
    package,module = 'skorch','skorch'

    @staticmethod
    def fit(model, opt, train, valid=None, epochs=1):
        from skorch import NeuralNet, NeuralNetClassifier
        from skorch.helper import predefined_split
        kwargs = dict(criterion=nn.CrossEntropyLoss, optimizer=opt.func, lr=opt.keywords['lr'], max_epochs=epochs,
                      batch_size=train.batch_size, device=device_of(model),
                      iterator_train__collate_fn=train.collate_fn, iterator_valid__collate_fn=train.collate_fn)
        if valid:
            split = predefined_split(valid.dataset)
            net = NeuralNetClassifier(model, classes=[*range(10)], train_split=split, **kwargs)
        else:
            net = NeuralNet(model, train_split=None, **kwargs)
        net.fit(train.dataset, None)

    @staticmethod
    def predict(model, dl):
        from skorch import NeuralNet
        net = NeuralNet(model, criterion=nn.CrossEntropyLoss, batch_size=dl.batch_size,
                        iterator_valid__collate_fn=dl.collate_fn)
        net.initialize()
        return lambda: net.forward(dl.dataset)

class HFTrainer:
    package,module = 'transformers','transformers.trainer'

    @staticmethod
    def make(model, opt=None, train=None, valid=None, epochs=1, bs=32):
        "Return a Trainer"
        from transformers import Trainer, TrainingArguments
        class WithLoss(nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model
            def forward(self, x, labels):
                pred = self.model(x)
                return dict(loss=F.cross_entropy(pred, labels), logits=pred)
        def collate(batch): return dict(x=batch[0], labels=batch[1])
        def accuracy(result):
            right = result.predictions.argmax(1)==result.label_ids
            return dict(accuracy=float(right.mean()))
        args = TrainingArguments(
            tempfile.gettempdir(), num_train_epochs=epochs, use_cpu=device_of(model)=='cpu',
            per_device_train_batch_size=bs, per_device_eval_batch_size=bs,
            report_to='none', save_strategy='no', eval_strategy='epoch' if valid else 'no',
            lr_scheduler_type='constant', max_grad_norm=0,
            train_sampling_strategy='sequential', dataloader_pin_memory=False)
        train_dataset = train.dataset if train else None
        valid_dataset = valid.dataset if valid else None
        optimizer = opt(model.parameters()) if opt else None
        return Trainer(WithLoss(), args, collate, train_dataset, valid_dataset,
                       compute_metrics=accuracy if valid else None, optimizers=(optimizer, None))

    @staticmethod
    def fit(model, opt, train, valid=None, epochs=1):
        trainer = HFTrainer.make(model, opt, train, valid, epochs, train.batch_size)
        trainer.train()

    @staticmethod
    def predict(model, dl):
        trainer = HFTrainer.make(model, bs=dl.batch_size)
        return lambda: torch.as_tensor(trainer.predict(dl.dataset).predictions)

libraries = {'learnkit':Learnkit, 'fastai':Fastai, 'Lightning':Lightning, 'Ignite':Ignite, 'Accelerate':Accelerate,
             'pytorch-accelerated':PytorchAccelerated, 'skorch':Skorch, 'HF Trainer':HFTrainer}

def version(name):
    "Return the version of a library, or None if it is not installed"
    if name=='learnkit':
        import learnkit
        return learnkit.__version__
    try: return importlib.metadata.version(libraries[name].package)
    except importlib.metadata.PackageNotFoundError: return None

def there(name):
    "Print the version of a library, and return whether it is installed"
    found = version(name)
    if found: print(f'  {name} {found}')
    else: print(f'  {name} is not installed, so it does not take part')
    return found is not None

# The jobs: each returns two functions, with a hand-written loop and with the library, which do the same work and return
# the same tensor.

def weights(model): return nn.utils.parameters_to_vector(model.parameters()).detach().cpu()

def fits(library, net, opt, *args, times=1, device='cpu'):
    "Train a fresh network, `times` times"
    def train_with(fit):
        for _ in range(times):
            model = net().to(device)
            fit(model, opt, *args)
        return weights(model)
    return partial(train_with, plain_fit),partial(train_with, library.fit)

def batches(n):
    "Return a DataLoader of `n` batches for the tiny network"
    torch.manual_seed(1)
    return loader(torch.randn(32*n, 32), torch.randint(0, 10, (32*n,)), 32)

sgd = partial(torch.optim.SGD, lr=.01)

def job_step(library, n=1000): return fits(library, tiny, sgd, batches(n))
def job_start(library, times=5): return fits(library, tiny, sgd, batches(1), times=times)

def job_digits(library, epochs=2):
    x,y = images()
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    x,y = x[order],y[order]
    train = loader(x[:1500], y[:1500], 64)
    valid = loader(x[1500:], y[1500:], 64)
    return fits(library, convnet, partial(torch.optim.Adam, lr=1e-3), train, valid, epochs)

def job_preds(library, rows=200_000):
    model = tiny()
    dl = many(rows)
    return lambda: plain_predict(model, dl)[0],library.predict(model, dl)

jobs = dict(step=job_step, digits=job_digits, preds=job_preds, start=job_start)

def job_device(library, net, n, device, small=False):
    "Train on an accelerator, with batches from a DataLoader in the memory of the CPU"
    make_net,make_batches = gpu.steps_of(net, small)
    x,y = zip(*make_batches(n))
    bs = len(x[0])
    inputs = torch.cat(x)
    targets = torch.stack(y).view(len(inputs), -1).squeeze(1)   # of texts: a target for each token
    return fits(library, make_net, sgd, loader(inputs, targets, bs), device=device)

on_device = {net:partial(job_device, net=net) for net in gpu.beside}

# the process of a library: it reads what to do, line by line, and replies

def work(name, reply):
    "Do each job that is read, and `reply` with the result of `run_job`"
    ready = {}
    for line in sys.stdin:
        job,kwargs = json.loads(line)
        try: reply(**run_job(libraries[name], ready, job, kwargs))
        except BaseException as e: reply(error=f'{type(e).__name__}: {e}')

def run_job(library, ready, job, kwargs):
    """The first time, prepare the job, and return whether its result is bitwise that of the hand-written loop. Later,
    time both once, and return the seconds. `ready` keeps what was prepared"""
    if job=='memory': return dict(peak=peak_of(library, **kwargs))
    if job not in ready:
        ready[job],equal = prepare(library, job, kwargs)
        return dict(equal=equal)
    plain,own = ready[job]
    gc.collect()
    if kwargs.get('own_first'):
        seconds = own()
        return dict(plain=plain(), own=seconds)
    return dict(plain=plain(), own=own())

def peak_of(library, **kwargs):
    "Return the peak of memory of the predictions of a library"
    _,predict = job_preds(library, **kwargs)
    with unseen(): return peak(predict)

def prepare(library, job, kwargs):
    "Check the result of a library. Return both as timed functions, and whether their results are equal"
    make_job = on_device[job] if job in on_device else jobs[job]
    clock    = gpu.clock(kwargs['device']) if job in on_device else cpu
    plain,own = make_job(library, **kwargs)
    with unseen(): expected,found = plain(),own()
    tolerance,noise = dict(rtol=1e-4, atol=1e-5),0.
    if job in on_device:
        # A device may add in a different order each time, so the hand-written loop differs from itself
        tolerance = dict(rtol=1e-2, atol=1e-3)
        with unseen(): noise = (plain()-expected).abs().max()
    difference = (expected-found).abs().max()
    is_close = torch.allclose(expected, found, **tolerance)
    if not is_close and difference>2*noise:
        raise ValueError(f'the result differs from that of the hand-written loop by up to {difference:.1e}')
    return (timed(plain, clock), timed(own, clock)),torch.equal(expected, found)

class Child:
    "A process of a library, as the measurement sees it"
    def __init__(self, name, device='cpu'):
        env = dict(os.environ, OMP_NUM_THREADS='1', TERM='xterm', HF_HUB_OFFLINE='1', PYTHONWARNINGS='ignore')
        if device=='cpu': env['CUDA_VISIBLE_DEVICES'] = ''
        self.process = subprocess.Popen([sys.executable, __file__, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env=env)
    def ask(self, job, **kwargs):
        "Send a job, and return the reply"
        print(json.dumps([job, kwargs]), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        return json.loads(line) if line else dict(error='its process ended')
    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
    def __enter__(self): return self
    def __exit__(self, *args): self.close()

# the part: rounds of all libraries, which alternate

titles = dict(
    step='A training step of a tiny network (32-64-10, batches of 32, SGD), with the defaults of each library',
    digits='The digits: two epochs of a small convolutional network, with loss and accuracy of a validation',
    preds='Predicting 200,000 rows (batches of 256)',
    start='The start of a training: all that is set up, and one batch',
    memory='Predicting 200,000 rows: peak of memory above the start',
    imports='Importing, in a fresh process: seconds more than PyTorch itself')

def bench_peers(rounds, names=None, **arguments):
    "Measure all jobs with all libraries that are installed; `arguments` of the jobs make them shorter for a test"
    names = [name for name in names or libraries if there(name)]
    children = {name:Child(name) for name in names}
    try:
        for job in jobs: bench_job(job, children, rounds, arguments.get(job, {}))
    finally:
        for child in children.values(): child.close()
    if arguments: return
    few = 5 if rounds>3 else 1   # each is a fresh process
    bench_memory(names, few)
    bench_imports(names, few)

not_on_device = 'skorch','pytorch-accelerated'

def bench_device(rounds, device='cuda', names=None, n=None, small=False):
    "Measure steps on a device with the libraries that are installed, in fits so long that the start hardly counts"
    candidates = [name for name in names or libraries if name not in not_on_device]
    children = {name:Child(name, device) for name in candidates if there(name)}
    try:
        for net in on_device:
            n_batches = n or (100 if net in gpu.large else 3000)
            bench_job(net, children, rounds, dict(n=n_batches, device=device, small=small))
    finally:
        for child in children.values(): child.close()

def bench_job(job, children, rounds, kwargs):
    "Measure one job: rounds of all libraries, which alternate"
    def ask(name, **kwargs):
        reply = children[name].ask(job, **kwargs)
        if 'error' not in reply: return reply
        print(f"\n{name} takes no part in {job!r}: {reply['error']}")
    def pair_of(name):
        def pair(i):
            reply = ask(name, own_first=i%2==1)
            if reply: return reply['plain'],reply['own']
        return pair
    candidates = [name for name in children if job!='preds' or libraries[name].predict]
    replies = {name:ask(name, **kwargs) for name in candidates}
    equal = {name:reply['equal'] for name,reply in replies.items() if reply}
    times = alternate(rounds, {name:pair_of(name) for name in equal})
    if times: show_job(job, equal, times, kwargs)

def show_job(job, equal, times, kwargs):
    """Show the `times` of one job as ratios to those of the hand-written loop. A hand-written start takes next to no
    time, so of that job the milliseconds are shown"""
    plain = spread([seconds for pairs in times.values() for seconds,_ in pairs])[0]
    if job=='start':
        ms   = 1e3/kwargs.get('times', 5)   # of each of these fits
        unit = ' ms'
        base = f'{plain*ms:.1f} ms'
        rows = {name:spread([own*ms for _,own in pairs]) for name,pairs in times.items()}
    else:
        unit = ''
        base = f'{plain:.2f} s'
        rows = {name:spread([own/seconds for seconds,own in pairs]) for name,pairs in times.items()}
    if job=='step': base = f'{plain*1e6/kwargs.get("n", 1000):.0f} µs'
    if job in on_device: base = f'{plain*1e3/kwargs["n"]:.2f} ms'
    title = titles.get(job, f'A step of {job} on a device, batches from a loader on the CPU')
    show(title, base, rows, unit, job=job, equal=[name for name in times if equal[name]])

def bench_memory(names, times=3):
    "Measure the peak of memory of predictions, each time in a fresh process"
    if not Path('/proc/self/clear_refs').exists(): return print('\nPeak memory can be measured on Linux only')
    def measure(name):
        with Child(name) as child: return child.ask('memory').get('peak')
    candidates = [plain_child, *(name for name in names if libraries[name].predict)]
    peaks = {name:[measure(name) for _ in range(times)] for name in candidates}
    rows  = {name:extremes(found) for name,found in peaks.items() if None not in found}
    plain = rows.pop(plain_child)
    show(titles['memory'], f'{plain[0]:.0f} MiB', rows, ' MiB', job='memory', rounds=times, span='least–most')

imports = {name:f'import {library.module}' for name,library in libraries.items()}
imports['fastai'] += ', fastai.callback.progress'
imports['HF Trainer'] = 'from transformers import Trainer'

def bench_imports(names, rounds):
    "Measure the time to import each library"
    timed_imports = {name:importing(imports[name]) for name in names}
    def measure(): return {name:seconds() for name,seconds in timed_imports.items()}
    measure()   # reads the files from the disk
    measured = [measure() for _ in range(rounds)]
    of_torch = [torch_seconds for times in measured for torch_seconds,_ in times.values()]
    rows = {name:extremes([times[name][1] for times in measured]) for name in names}
    base = f'{spread(of_torch)[0]:.2f} s'
    show(titles['imports'], base, rows, ' s', first='PyTorch itself', job='imports', rounds=rounds, span='least–most')

plain_child = 'plain PyTorch'

class PlainPyTorch:
    "Predict with a hand-written loop in a process of its own, which is measured like the others"
    @staticmethod
    def predict(model, dl): return lambda: plain_predict(model, dl)

if __name__=='__main__':
    libraries[plain_child] = PlainPyTorch
    replies = os.fdopen(os.dup(1), 'w')
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)   # what a library prints past Python must not get into the replies
    warnings.filterwarnings('ignore')
    work(sys.argv[1], lambda **reply: print(json.dumps(reply), file=replies, flush=True))
