"""Whole jobs, each a script in a fresh process: from the start of Python to the first validation with a given accuracy.

    python tests/bench/run.py whole          all of them, with every library that is installed
    python tests/bench/whole.py gpt skorch   one of them, once

Every library gets the same data, split, initial weights, optimizer, learning rate and goal, and trains as the quick
start of its documentation does, with what that turns on: progress bars, tables, logs and checkpoints. All save the
weights at the end. Measured are the wall-clock time and the CPU time of the process, compiling included, as the system
reports them when it has ended, and its peak of memory. `cold` is a graph that is compiled for the first time.
"""
import hashlib, json, os, subprocess, sys, tempfile, time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset

# the jobs

def cross_entropy(pred, y):
    "Return the mean loss of all targets, of which a text has one for each token"
    return F.cross_entropy(pred.flatten(0, -2), y.flatten())

@dataclass
class Job:
    "What every script starts with"
    x:Tensor
    y:Tensor
    model:nn.Module
    opt:Callable        # makes the optimizer: a `partial` of a class of torch.optim
    bs:int
    goal:float          # the accuracy that ends the job
    epochs:int = 40     # at most
    loss:Callable = cross_entropy

def digits():
    "1,797 pictures of 8 by 8 pixels, and a small convolutional network"
    from sklearn.datasets import load_digits
    digits = load_digits()
    convs = [nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU()]
    model = nn.Sequential(*convs, nn.Flatten(), nn.Linear(1024, 10))
    x = torch.tensor(digits.images[:,None]/16, dtype=torch.float32)
    y = torch.tensor(digits.target)
    return Job(x, y, model, partial(torch.optim.Adam, lr=1e-3), bs=64, goal=.97)

def tabular():
    "40,000 rows of 30 numbers in two classes, some of them wrong, and a network of three layers with batch norms"
    from sklearn.datasets import make_classification
    x,y = make_classification(40_000, 30, n_informative=12, n_clusters_per_class=4, flip_y=.01, random_state=0)
    def layer(n_in, n_out): return nn.Linear(n_in, n_out),nn.BatchNorm1d(n_out),nn.ReLU()
    model = nn.Sequential(*layer(30, 200), *layer(200, 100), nn.Linear(100, 2))
    x = torch.tensor(x, dtype=torch.float32)
    return Job(x, torch.tensor(y), model, partial(torch.optim.AdamW, lr=1e-3), bs=128, goal=.951)

class GPT(nn.Module):
    def __init__(self, n_vocab, n=64, n_layer=2, n_pos=32):
        super().__init__()
        layer = nn.TransformerEncoderLayer(n, 4, 4*n, dropout=0., activation='gelu', batch_first=True, norm_first=True)
        self.tokens = nn.Embedding(n_vocab, n)
        self.places = nn.Parameter(torch.randn(n_pos, n)*.02)
        self.layers = nn.TransformerEncoder(layer, n_layer, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(n), nn.Linear(n, n_vocab))
        self.register_buffer('future', torch.ones(n_pos, n_pos, dtype=torch.bool).triu(1))
    def forward(self, x):
        x = self.tokens(x)+self.places
        return self.head(self.layers(x, mask=self.future, is_causal=True))

def gpt():
    "Pieces of 32 characters of the source of `argparse`, and a transformer of two layers that predicts each next one"
    import argparse, inspect
    text = inspect.getsource(argparse)
    vocab = sorted({*text})
    length = len(text)//32*32
    codes = torch.tensor([vocab.index(character) for character in text[:length+1]])
    x = codes[:-1].view(-1, 32)
    y = codes[1:].view(-1, 32)
    opt = partial(torch.optim.AdamW, lr=3e-3, weight_decay=.1)
    return Job(x, y, GPT(len(vocab)), opt, bs=32, goal=.57)

jobs = dict(digits=digits, gpt=gpt, tabular=tabular)

def start(name):
    "Return the job of that name, with the seeds that every script sets"
    torch.manual_seed(0)
    job = jobs[name]()
    torch.manual_seed(1)   # the order of the samples
    return job

def datasets(job):
    "Return the datasets for training and validation, split as `DataLoaders.from_tensors(x, y, seed=0)` does"
    n = len(job.x)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    valid,train = order.tensor_split([round(n*.2)])
    train = train.sort().values
    valid = valid.sort().values
    return TensorDataset(job.x[train], job.y[train]),TensorDataset(job.x[valid], job.y[valid])

def loaders(job):
    train,valid = datasets(job)
    return DataLoader(train, job.bs, shuffle=True),DataLoader(valid, job.bs)

# the scripts: each returns the number of epochs

def plain(job, compiled=False):
    "A hand-written loop"
    train,valid = loaders(job)
    model = torch.compile(job.model) if compiled else job.model
    opt = job.opt(model.parameters())
    for epoch in range(job.epochs):
        model.train()
        for xb,yb in train:
            loss = job.loss(model(xb), yb)
            loss.backward()
            opt.step()
            opt.zero_grad()
        model.eval()
        total = right = n = 0
        with torch.no_grad():
            for xb,yb in valid:
                pred = model(xb)
                total += job.loss(pred, yb).item()*len(yb)
                right += (pred.argmax(-1)==yb).sum().item()
                n += yb.numel()
        print(epoch, total/len(valid.dataset), right/n)
        if right/n>=job.goal: break
    torch.save(job.model.state_dict(), 'model.pth')
    return epoch+1

def learnkit(job, fused=False):
    from learnkit.all import DataLoaders, FusedStep, Learner, ThresholdStopper, accuracy
    dls = DataLoaders.from_tensors(job.x, job.y, seed=0, bs=job.bs)
    learn = Learner(dls, job.model, job.loss, job.opt, metrics=accuracy, cbs=FusedStep() if fused else None)
    learn.fit(job.epochs, cbs=ThresholdStopper(job.goal, 'accuracy'))
    learn.save('model')
    return learn.epoch+1

def fastai(job):
    from fastai.basics import CancelFitException, Callback, DataLoaders, Learner, OptimWrapper, accuracy
    from fastai.callback.progress import ProgressCallback   # as with `fastai.vision.all`
    class Goal(Callback):
        order = 60   # after the Recorder
        def after_epoch(self):
            if self.recorder.values[-1][-1]>=job.goal: raise CancelFitException
    def token_accuracy(pred, y): return accuracy(pred.flatten(0, -2), y.flatten())
    hypers = dict(job.opt.keywords)
    lr = hypers.pop('lr')
    default_wd = 0 if job.opt.func is torch.optim.Adam else .01
    wd = hypers.get('weight_decay', default_wd)
    opt_func = partial(OptimWrapper, opt=job.opt.func, **hypers)
    dls = DataLoaders(*loaders(job))
    learn = Learner(dls, job.model, job.loss, opt_func, lr=lr, wd=wd, metrics=token_accuracy, cbs=Goal)
    learn.fit(job.epochs)
    learn.save('model')
    return len(learn.recorder.values)

def lightning(job):
    import lightning as L
    from lightning.pytorch.callbacks import EarlyStopping
    class Module(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = job.model
        def configure_optimizers(self): return job.opt(self.parameters())
        def training_step(self, batch, i):
            loss = job.loss(self.model(batch[0]), batch[1])
            self.log('train_loss', loss, prog_bar=True)
            return loss
        def validation_step(self, batch, i):
            pred = self.model(batch[0])
            self.log('valid_loss', job.loss(pred, batch[1]), prog_bar=True)
            self.log('accuracy', (pred.argmax(-1)==batch[1]).float().mean(), prog_bar=True)
    goal = EarlyStopping('accuracy', mode='max', patience=job.epochs, stopping_threshold=job.goal)
    trainer = L.Trainer(max_epochs=job.epochs, callbacks=goal)
    trainer.fit(Module(), *loaders(job))   # the weights are in its checkpoint
    return trainer.current_epoch

def ignite(job):
    from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
    from ignite.handlers import ModelCheckpoint
    from ignite.metrics import Accuracy, Loss
    train,valid = loaders(job)
    def tokens(output):
        pred,y = output
        return pred.flatten(0, -2),y.flatten()
    trainer = create_supervised_trainer(job.model, job.opt(job.model.parameters()), job.loss)
    evaluator = create_supervised_evaluator(job.model, dict(accuracy=Accuracy(tokens), loss=Loss(job.loss)))
    @trainer.on(Events.EPOCH_COMPLETED)
    def validate(trainer):
        scores = evaluator.run(valid).metrics
        print(trainer.state.epoch, scores['loss'], scores['accuracy'])
        if scores['accuracy']>=job.goal: trainer.terminate()
    def score(engine): return engine.state.metrics['accuracy']
    best = ModelCheckpoint('best', n_saved=2, score_function=score, score_name='accuracy')
    evaluator.add_event_handler(Events.COMPLETED, best, dict(model=job.model))
    trainer.run(train, max_epochs=job.epochs)
    return trainer.state.epoch

def accelerate(job):
    from accelerate import Accelerator
    accelerator = Accelerator()
    model,opt,train,valid = accelerator.prepare(job.model, job.opt(job.model.parameters()), *loaders(job))
    for epoch in range(job.epochs):
        model.train()
        for xb,yb in train:
            accelerator.backward(job.loss(model(xb), yb))
            opt.step()
            opt.zero_grad()
        model.eval()
        total = right = n = 0
        for xb,yb in valid:
            with torch.no_grad(): pred = model(xb)
            pred,yb = accelerator.gather_for_metrics((pred, yb))
            total += job.loss(pred, yb).item()*len(yb)
            right += (pred.argmax(-1)==yb).sum().item()
            n += yb.numel()
        accelerator.print(epoch, total/len(valid.dataset), right/n)
        if right/n>=job.goal: break
    accelerator.save_model(model, '.')
    return epoch+1

def skorch(job):
    from skorch import NeuralNetClassifier
    from skorch.callbacks import Callback, EpochScoring
    from skorch.helper import predefined_split
    class Goal(Callback):
        def on_epoch_end(self, net, **kwargs):
            if net.history[-1, 'valid_acc']>=job.goal: raise KeyboardInterrupt   # as it documents
    class Loss(nn.Module):
        def forward(self, pred, y): return job.loss(pred, y)
    def token_accuracy(net, dataset, y=None):
        right = sum((net.infer(x).argmax(-1)==y).sum().item() for x,y in net.get_iterator(dataset))
        return right/dataset.tensors[1].numel()
    train,valid = datasets(job)
    hypers = {f'optimizer__{name}':value for name,value in job.opt.keywords.items() if name!='lr'}
    callbacks = [Goal()]
    is_text = job.y.ndim>1
    if is_text:   # its own accuracy is that of samples, not of tokens
        hypers['callbacks__valid_acc'] = None
        scoring = EpochScoring(token_accuracy, name='valid_acc', lower_is_better=False, use_caching=False)
        callbacks = [('acc', scoring), Goal()]
    net = NeuralNetClassifier(
        job.model, criterion=Loss, optimizer=job.opt.func, lr=job.opt.keywords['lr'], max_epochs=job.epochs,
        batch_size=job.bs, iterator_train__shuffle=True, train_split=predefined_split(valid),
        classes=[*range(int(job.y.max())+1)], callbacks=callbacks, **hypers)
    net.fit(train, None)
    net.save_params('model.pth')
    return len(net.history)

def hf_trainer(job):
    from transformers import Trainer, TrainerCallback, TrainingArguments
    class WithLoss(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = job.model
        def forward(self, x, labels):
            pred = self.model(x)
            return dict(loss=job.loss(pred, labels), logits=pred)
    class Goal(TrainerCallback):
        def on_evaluate(self, args, state, control, metrics, **kwargs):
            if metrics['eval_accuracy']>=job.goal: control.should_training_stop = True
    class Samples(Dataset):
        "The samples of a dataset as mappings"
        def __init__(self, dataset): self.dataset = dataset
        def __len__(self): return len(self.dataset)
        def __getitem__(self, i):
            x,y = self.dataset[i]
            return dict(x=x, labels=y)
    def accuracy(result):
        right = result.predictions.argmax(-1)==result.label_ids
        return dict(accuracy=float(right.mean()))
    train,valid = datasets(job)
    args = TrainingArguments('out', num_train_epochs=job.epochs, use_cpu=True,
                             per_device_train_batch_size=job.bs, per_device_eval_batch_size=job.bs,
                             eval_strategy='epoch', report_to='none', lr_scheduler_type='constant', max_grad_norm=0)
    trainer = Trainer(WithLoss(), args, train_dataset=Samples(train), eval_dataset=Samples(valid),
                      compute_metrics=accuracy, callbacks=[Goal()], optimizers=(job.opt(job.model.parameters()), None))
    trainer.train()
    trainer.save_model('out')
    return round(trainer.state.epoch)

scripts = {
    'by hand':                      plain,
    'by hand, torch.compile, cold': partial(plain, compiled=True),
    'by hand, torch.compile':       partial(plain, compiled=True),
    'learnkit':                     learnkit,
    'learnkit, fused, cold':        partial(learnkit, fused=True),
    'learnkit, fused':              partial(learnkit, fused=True),
    'fastai':                       fastai,
    'Lightning':                    lightning,
    'Ignite':                       ignite,
    'Accelerate':                   accelerate,
    'skorch':                       skorch,
    'HF Trainer':                   hf_trainer}

# how they are run

def peak_memory():
    """Return this process's peak of memory in MiB, or 0 on systems other than Linux. What `wait4` reports of a process
    includes the process that started it"""
    status = Path('/proc/self/status')
    if not status.exists(): return 0.
    _,_,after = status.read_text().partition('VmHWM:')
    return int(after.split()[0])/1024

def script(job_name, name):
    "Run one of the scripts, and write its result"
    job = start(job_name)
    epochs = scripts[name](job)
    weights = b''.join(p.detach().numpy().tobytes() for p in job.model.parameters())
    end = dict(epochs=epochs, weights=hashlib.sha256(weights).hexdigest(), memory=peak_memory())
    Path('end.json').write_text(json.dumps(end))

def once(job_name, name, compiled):
    """Run a script in a process of its own, which caches compiled graphs in the folder `compiled`. Return its
    wall-clock time, its CPU time, its peak of memory in MiB, and its result"""
    env = {k:v for k,v in os.environ.items() if k!='PYTHONDONTWRITEBYTECODE'}   # bytecode is cached, as it usually is
    env.update(OMP_NUM_THREADS='1', CUDA_VISIBLE_DEVICES='', HF_HUB_OFFLINE='1', PYTHONWARNINGS='ignore',
               PYTHONPATH=str(Path(__file__).parent),
               TORCHINDUCTOR_CACHE_DIR=compiled, TORCHINDUCTOR_COMPILE_THREADS='1')
    command = [sys.executable, '-c', f'from whole import script; script({job_name!r}, {name!r})']
    with tempfile.TemporaryDirectory() as folder:
        with open(f'{folder}/output', 'w') as output:
            start = time.perf_counter()
            process = subprocess.Popen(command, cwd=folder, env=env, stdout=output, stderr=output)
            _,status,used = os.wait4(process.pid, 0)
            seconds = time.perf_counter()-start
            process.returncode = status
        if status: raise RuntimeError(f'{job_name} with {name} failed: {Path(folder, "output").read_text()[-2000:]}')
        end = json.loads(Path(folder, 'end.json').read_text())
        return dict(seconds=seconds, cpu=used.ru_utime+used.ru_stime, **end)

def is_cold(name): return name.endswith(', cold')
def without_cold(name): return name.removesuffix(', cold')

def agree(runs):
    "Return whether there are two runs or more, with CPU times within 2 percent of one another"
    seconds = [run['cpu'] for run in runs]
    return len(seconds)>1 and max(seconds)<=1.02*min(seconds)

def alternate_scripts(job_name, names, rounds):
    """Run the scripts round-robin, each until two of its runs agree, and return all runs by name. A `cold` script runs
    once, finds no compiled graph, and caches it for the script of that name without `cold`"""
    runs = {name:[] for name in names}
    caches = {without_cold(name):tempfile.TemporaryDirectory() for name in names}
    def is_done(name): return is_cold(name) or agree(runs[name])
    for i in range(rounds):
        unfinished = [name for name in runs if i==0 or not is_done(name)]
        for name in unfinished:
            try:
                runs[name].append(once(job_name, name, caches[without_cold(name)].name))
            except RuntimeError as e:
                print(f'\n{e}')
                del runs[name]
    return runs

def bench_whole(rounds, names=None, only=jobs):
    "Run all scripts of all jobs, with the libraries that are installed"
    from peers import there
    libraries = 'learnkit','fastai','Lightning','Ignite','Accelerate','skorch','HF Trainer'
    installed = ('by hand', *(name for name in libraries if there(name)))
    names = names or [name for name in scripts if name.split(',')[0] in installed]
    for job_name in only:
        todo = [name for name in names if name!='HF Trainer' or job_name=='gpt']
        show_job(job_name, alternate_scripts(job_name, todo, min(rounds, 3)))

def show_job(job_name, runs):
    """Show CPU times. Saved with them are wall-clock times, memory, epochs, and the scripts whose weights are those of
    the hand-written loop"""
    from tools import extremes, show
    def all_of(key): return {name:extremes([run[key] for run in found]) for name,found in runs.items()}
    cpu = all_of('cpu')
    base = f"{cpu.pop('by hand')[0]:.2f} s"
    first = {name:found[0] for name,found in runs.items()}
    expected = first['by hand']['weights']
    show(jobs[job_name].__doc__, base, cpu, ' s', span='least–most', job=job_name, rounds=len(runs['by hand']),
         clock={name:round(seconds, 2) for name,(seconds,_,_) in all_of('seconds').items()},
         memory={name:round(mib) for name,(mib,_,_) in all_of('memory').items()},
         epochs={name:run['epochs'] for name,run in first.items()},
         equal=[name for name,run in first.items() if name!='by hand' and run['weights']==expected])

if __name__=='__main__': print(once(*sys.argv[1:3], tempfile.mkdtemp()))
