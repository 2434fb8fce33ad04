"""Whole jobs, each a script in a fresh process: from the start of Python to the first validation that reaches a given accuracy.

    python tests/bench/run.py whole          all of them, with every library that is installed
    python tests/bench/whole.py gpt skorch   one of them, once

Every library gets the same data, split, first weights, optimizer, rate and goal, and trains as the quick start of its documentation does, with what that
leaves on: bars, tables, logs and checkpoints. All write the weights at the end. Counted are the seconds of the clock and of the processor, compiling
included, as the system gives them for the process that ended, and its peak of memory. `cold` is a program that is compiled for the first time.
"""
import hashlib, json, os, subprocess, sys, tempfile, time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

# the jobs

def digits():
    "1,797 pictures of 8 by 8 pixels, and a small convolutional network"
    from sklearn.datasets import load_digits
    d = load_digits()
    model = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 10))
    return torch.tensor(d.images[:,None]/16, dtype=torch.float32),torch.tensor(d.target),model,partial(torch.optim.Adam, lr=1e-3),64,.97

def tabular():
    "40,000 rows of 30 numbers in two classes, some of them wrong, and a network of three layers with batch norms"
    from sklearn.datasets import make_classification
    x,y = make_classification(40_000, 30, n_informative=12, n_clusters_per_class=4, flip_y=.01, random_state=0)
    def layer(i, o): return nn.Linear(i, o),nn.BatchNorm1d(o),nn.ReLU()
    model = nn.Sequential(*layer(30, 200), *layer(200, 100), nn.Linear(100, 2))
    return torch.tensor(x, dtype=torch.float32),torch.tensor(y),model,partial(torch.optim.AdamW, lr=1e-3),128,.951

def gpt():
    "Pieces of 32 characters of the source of `argparse`, and a transformer of two layers that predicts each next one"
    import argparse, inspect
    text = inspect.getsource(argparse)
    vocab = sorted({*text})
    codes = torch.tensor([vocab.index(c) for c in text[:len(text)//32*32+1]])
    x,y = codes[:-1].view(-1, 32),codes[1:].view(-1, 32)
    return x,y,GPT(len(vocab)),partial(torch.optim.AdamW, lr=3e-3, weight_decay=.1),32,.57

jobs = {f.__name__:f for f in (digits, gpt, tabular)}

def given(job):
    "What every script begins with"
    global nn, torch, F, GPT
    import torch
    from torch import nn
    from torch.nn import functional as F
    class GPT(nn.Module):
        def __init__(self, n_vocab, n=64, n_layer=2, n_pos=32):
            super().__init__()
            layer = nn.TransformerEncoderLayer(n, 4, 4*n, dropout=0., activation='gelu', batch_first=True, norm_first=True)
            self.tokens,self.places = nn.Embedding(n_vocab, n),nn.Parameter(torch.randn(n_pos, n)*.02)
            self.layers = nn.TransformerEncoder(layer, n_layer, enable_nested_tensor=False)
            self.head = nn.Sequential(nn.LayerNorm(n), nn.Linear(n, n_vocab))
            self.register_buffer('future', torch.ones(n_pos, n_pos, dtype=torch.bool).triu(1))
        def forward(self, x): return self.head(self.layers(self.tokens(x)+self.places, mask=self.future, is_causal=True))
    torch.manual_seed(0)
    x,y,model,opt,bs,goal = jobs[job]()
    def loss(pred, y): return F.cross_entropy(pred.flatten(0, -2), y.flatten())
    torch.manual_seed(1)   # the order of the items
    return SimpleNamespace(x=x, y=y, model=model, opt=opt, bs=bs, goal=goal, loss=loss, epochs=40)

def parts(j):
    "Data sets for training and validation, as `DataLoaders.from_tensors(x, y, seed=0)` divides them"
    from torch.utils.data import TensorDataset
    n = len(j.x)
    valid,train = torch.randperm(n, generator=torch.Generator().manual_seed(0)).tensor_split([round(n*.2)])
    return [TensorDataset(j.x[i], j.y[i]) for i in (train.sort().values, valid.sort().values)]

def loaders(j):
    from torch.utils.data import DataLoader
    train,valid = parts(j)
    return DataLoader(train, j.bs, shuffle=True),DataLoader(valid, j.bs)

# the scripts: each returns the number of epochs

def by_hand(j, compiled=False):
    train,valid = loaders(j)
    model = torch.compile(j.model) if compiled else j.model
    opt = j.opt(model.parameters())
    for epoch in range(j.epochs):
        model.train()
        for xb,yb in train:
            loss = j.loss(model(xb), yb)
            loss.backward()
            opt.step()
            opt.zero_grad()
        model.eval()
        total = right = n = 0
        with torch.no_grad():
            for xb,yb in valid:
                pred = model(xb)
                total,right,n = total + j.loss(pred, yb).item()*len(yb),right + (pred.argmax(-1)==yb).sum().item(),n + yb.numel()
        print(epoch, total/len(valid.dataset), right/n)
        if right/n>=j.goal: break
    torch.save(j.model.state_dict(), 'model.pth')
    return epoch+1

def learnkit(j, fused=False):
    from learnkit.all import DataLoaders, FusedStep, Learner, ThresholdStopper, accuracy
    dls = DataLoaders.from_tensors(j.x, j.y, seed=0, bs=j.bs)
    learn = Learner(dls, j.model, j.loss, j.opt, metrics=accuracy, cbs=FusedStep() if fused else None)
    learn.fit(j.epochs, cbs=ThresholdStopper(j.goal, 'accuracy'))
    learn.save('model')
    return learn.epoch+1

def fastai(j):
    from fastai.basics import CancelFitException, Callback, DataLoaders, Learner, OptimWrapper, accuracy
    from fastai.callback.progress import ProgressCallback   # as with `fastai.vision.all`
    class Enough(Callback):
        order = 60   # after the Recorder
        def after_epoch(self):
            if self.recorder.values[-1][-1]>=j.goal: raise CancelFitException
    def right(pred, y): return accuracy(pred.flatten(0, -2), y.flatten())
    learn = Learner(DataLoaders(*loaders(j)), j.model, j.loss, partial(OptimWrapper, opt=j.opt.func, **{k:v for k,v in j.opt.keywords.items() if k!='lr'}),
                    lr=j.opt.keywords['lr'], wd=j.opt.keywords.get('weight_decay', 0 if j.opt.func is torch.optim.Adam else .01), metrics=right, cbs=Enough)
    learn.fit(j.epochs)
    learn.save('model')
    return len(learn.recorder.values)

def lightning(j):
    import lightning as L
    from lightning.pytorch.callbacks import EarlyStopping
    class Module(L.LightningModule):
        def __init__(self): super().__init__(); self.model = j.model
        def configure_optimizers(self): return j.opt(self.parameters())
        def training_step(self, b, i):
            loss = j.loss(self.model(b[0]), b[1])
            self.log('train_loss', loss, prog_bar=True)
            return loss
        def validation_step(self, b, i):
            pred = self.model(b[0])
            self.log('valid_loss', j.loss(pred, b[1]), prog_bar=True)
            self.log('accuracy', (pred.argmax(-1)==b[1]).float().mean(), prog_bar=True)
    trainer = L.Trainer(max_epochs=j.epochs, callbacks=EarlyStopping('accuracy', mode='max', patience=j.epochs, stopping_threshold=j.goal))
    trainer.fit(Module(), *loaders(j))   # the weights are in its checkpoint
    return trainer.current_epoch

def ignite(j):
    from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
    from ignite.handlers import ModelCheckpoint
    from ignite.metrics import Accuracy, Loss
    train,valid = loaders(j)
    def flat(out): return out[0].flatten(0, -2),out[1].flatten()
    trainer = create_supervised_trainer(j.model, j.opt(j.model.parameters()), j.loss)
    evaluator = create_supervised_evaluator(j.model, dict(accuracy=Accuracy(flat), loss=Loss(j.loss)))
    @trainer.on(Events.EPOCH_COMPLETED)
    def look(trainer):
        scores = evaluator.run(valid).metrics
        print(trainer.state.epoch, scores['loss'], scores['accuracy'])
        if scores['accuracy']>=j.goal: trainer.terminate()
    best = ModelCheckpoint('best', n_saved=2, score_function=lambda e: e.state.metrics['accuracy'], score_name='accuracy')
    evaluator.add_event_handler(Events.COMPLETED, best, dict(model=j.model))
    trainer.run(train, max_epochs=j.epochs)
    return trainer.state.epoch

def accelerate(j):
    from accelerate import Accelerator
    acc = Accelerator()
    model,opt,train,valid = acc.prepare(j.model, j.opt(j.model.parameters()), *loaders(j))
    for epoch in range(j.epochs):
        model.train()
        for xb,yb in train:
            acc.backward(j.loss(model(xb), yb))
            opt.step()
            opt.zero_grad()
        model.eval()
        total = right = n = 0
        for xb,yb in valid:
            with torch.no_grad(): pred = model(xb)
            pred,yb = acc.gather_for_metrics((pred, yb))
            total,right,n = total + j.loss(pred, yb).item()*len(yb),right + (pred.argmax(-1)==yb).sum().item(),n + yb.numel()
        acc.print(epoch, total/len(valid.dataset), right/n)
        if right/n>=j.goal: break
    acc.save_model(model, '.')
    return epoch+1

def skorch(j):
    from skorch import NeuralNetClassifier
    from skorch.callbacks import Callback, EpochScoring
    from skorch.helper import predefined_split
    class Enough(Callback):
        def on_epoch_end(self, net, **kw):
            if net.history[-1, 'valid_acc']>=j.goal: raise KeyboardInterrupt   # as it documents
    class Loss(nn.Module):
        def forward(self, pred, y): return j.loss(pred, y)
    def right(net, ds, y=None): return sum((net.infer(x).argmax(-1)==y).sum().item() for x,y in net.get_iterator(ds))/ds.tensors[1].numel()
    train,valid = parts(j)
    texts = dict(callbacks__valid_acc=None) if j.y.ndim>1 else {}   # its own accuracy is one of items
    opt = {f'optimizer__{k}':v for k,v in j.opt.keywords.items() if k!='lr'}
    net = NeuralNetClassifier(j.model, criterion=Loss, optimizer=j.opt.func, lr=j.opt.keywords['lr'], **opt, **texts, max_epochs=j.epochs, batch_size=j.bs,
                              iterator_train__shuffle=True, train_split=predefined_split(valid), classes=[*range(int(j.y.max())+1)],
                              callbacks=[*([('acc', EpochScoring(right, name='valid_acc', lower_is_better=False, use_caching=False))] if texts else []), Enough()])
    net.fit(train, None)
    net.save_params('model.pth')
    return len(net.history)

def hf_trainer(j):
    from transformers import Trainer, TrainerCallback, TrainingArguments
    class WithLoss(nn.Module):
        def __init__(self): super().__init__(); self.model = j.model
        def forward(self, x, labels): pred = self.model(x); return dict(loss=j.loss(pred, labels), logits=pred)
    class Enough(TrainerCallback):
        def on_evaluate(self, args, state, control, metrics, **kw):
            if metrics['eval_accuracy']>=j.goal: control.should_training_stop = True
    class Items(torch.utils.data.Dataset):
        def __init__(self, ds): self.ds = ds
        def __len__(self): return len(self.ds)
        def __getitem__(self, i): x,y = self.ds[i]; return dict(x=x, labels=y)
    train,valid = map(Items, parts(j))
    def right(p): return dict(accuracy=float((p.predictions.argmax(-1)==p.label_ids).mean()))
    args = TrainingArguments('out', num_train_epochs=j.epochs, per_device_train_batch_size=j.bs, per_device_eval_batch_size=j.bs, use_cpu=True,
                             eval_strategy='epoch', report_to='none', lr_scheduler_type='constant', max_grad_norm=0)
    trainer = Trainer(WithLoss(), args, train_dataset=train, eval_dataset=valid, compute_metrics=right, callbacks=[Enough()],
                      optimizers=(j.opt(j.model.parameters()), None))
    trainer.train()
    trainer.save_model('out')
    return round(trainer.state.epoch)

scripts = {'by hand':by_hand, 'by hand, torch.compile, cold':partial(by_hand, compiled=True), 'by hand, torch.compile':partial(by_hand, compiled=True),
           'learnkit':learnkit, 'learnkit, fused, cold':partial(learnkit, fused=True), 'learnkit, fused':partial(learnkit, fused=True),
           'fastai':fastai, 'Lightning':lightning, 'Ignite':ignite, 'Accelerate':accelerate, 'skorch':skorch, 'HF Trainer':hf_trainer}

# how they are run

def script(job, name):
    "One of the scripts; writes what came out"
    j = given(job)
    n = scripts[name](j)
    weights = hashlib.sha256(b''.join(p.detach().numpy().tobytes() for p in j.model.parameters())).hexdigest()
    status = Path('/proc/self/status')   # what the system says of a process that ended includes the one that began it
    peak = int(status.read_text().split('VmHWM:')[1].split()[0])/1024 if status.exists() else 0.
    Path('end.json').write_text(json.dumps(dict(epochs=n, weights=weights, memory=peak)))

def once(job, name, compiled):
    "Run it in a process of its own, with compiled programs in the folder `compiled`: seconds, those of the processor, MiB, and what came out"
    env = {k:v for k,v in os.environ.items() if k!='PYTHONDONTWRITEBYTECODE'}   # what is imported is compiled once, as on any machine
    env.update(OMP_NUM_THREADS='1', CUDA_VISIBLE_DEVICES='', HF_HUB_OFFLINE='1', PYTHONWARNINGS='ignore', TORCHINDUCTOR_CACHE_DIR=compiled,
               TORCHINDUCTOR_COMPILE_THREADS='1', PYTHONPATH=str(Path(__file__).parent))
    with tempfile.TemporaryDirectory() as folder:
        with open(f'{folder}/output', 'w') as out:
            start = time.perf_counter()
            p = subprocess.Popen([sys.executable, '-c', f'from whole import script; script({job!r}, {name!r})'], cwd=folder, env=env, stdout=out, stderr=out)
            _,status,used = os.wait4(p.pid, 0)
            seconds,p.returncode = time.perf_counter()-start,status
        if status: raise RuntimeError(f'{job} with {name} failed: {Path(folder, "output").read_text()[-2000:]}')
        return dict(seconds=seconds, cpu=used.ru_utime+used.ru_stime, **json.loads(Path(folder, 'end.json').read_text()))

def agree(seconds):
    "Are there two or more, within 2 percent of one another?"
    return len(seconds)>1 and max(seconds)<=1.02*min(seconds)

def takes(job, names, rounds):
    """What each script took, in turn, until two of its runs agree; one that is `cold` finds no compiled program, runs once, and leaves
    its own to the one behind it"""
    rows,kept = {n:[] for n in names},{n.split(', cold')[0]:tempfile.TemporaryDirectory() for n in names}
    for i in range(rounds):
        for n in [*rows]:
            if i and (n.endswith('cold') or agree([t['cpu'] for t in rows[n]])): continue
            try: rows[n].append(once(job, n, kept[n.split(', cold')[0]].name))
            except RuntimeError as e: print(f'\n{e}'); del rows[n]
    return rows

def bench_whole(rounds, names=None, only=jobs):
    "All scripts of all jobs, with the libraries that are installed"
    from peers import there
    libs = [n for n in ('learnkit','fastai','Lightning','Ignite','Accelerate','skorch','HF Trainer') if there(n)]
    names = names or [n for n in scripts if n.startswith('by hand') or n.split(',')[0] in libs]
    for job in only: show_job(job, takes(job, [n for n in names if n!='HF Trainer' or job=='gpt'], min(rounds, 3)))

def show_job(job, rows):
    "Show the processor's seconds, and keep those of the clock, the memory, the epochs, and who came to the same weights as by hand"
    from tools import extremes, show
    def of(k): return {n:extremes([t[k] for t in ts]) for n,ts in rows.items()}
    seconds = of('cpu')
    show(jobs[job].__doc__, f"{seconds.pop('by hand')[0]:.2f} s", seconds, ' s', span='least–most', job=job, rounds=len(rows['by hand']),
         clock={n:round(r[0], 2) for n,r in of('seconds').items()}, memory={n:round(r[0]) for n,r in of('memory').items()},
         epochs={n:ts[0]['epochs'] for n,ts in rows.items()}, equal=[n for n,ts in rows.items() if ts[0]['weights']==rows['by hand'][0]['weights'] and n!='by hand'])

if __name__=='__main__': print(once(*sys.argv[1:3], tempfile.mkdtemp()))
