"""Fourteen common kinds of training scripts, shrunk and rewritten: with a hand-written loop, and with a Learner.

    python tests/bench/scripts.py            all: lines, equality, time, resume of a killed run; writes `scripts.json`
    python tests/bench/scripts.py vae gan    some of them, and writes nothing

Both start with the data, model and loss of `parts`. Both return the numbers that a script of the kind prints; these and
the weights are compared bit for bit. Lines are those of code in `by_hand` and `ours`. The time is the CPU time of all
lines, in alternating runs; the median of the ratios. A run is killed (SIGKILL) after five eighths of its batches, in a
fork, and started again with `CheckpointCallback('3ba')` and `resume='auto'`; `ours` is not adapted to this.
"""
import io, json, math, os, signal, socket, statistics, subprocess, sys, tempfile, time, warnings
from contextlib import contextmanager, redirect_stdout
from inspect import getsource
from pathlib import Path
from types import SimpleNamespace

import torch
from learnkit.all import *
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_
from torch.optim import LBFGS, SGD, Adadelta, Adam, AdamW
from torch.optim.lr_scheduler import LambdaLR, OneCycleLR, StepLR
from torch.utils.data import TensorDataset
from torch.utils.data.distributed import DistributedSampler

here = Path(__file__).resolve().parent
torch.set_num_threads(1)
size = 1   # how many times as much data: more for the times, which would be those of the first batch
jobs = {}
def job(cls): jobs[cls.__name__.lower()] = cls; return cls

def loaders(x, y, bs=16, n_valid=32):
    "A shuffled loader, and one to validate with"
    return DataLoader(TensorDataset(x[n_valid:], y[n_valid:]), bs, shuffle=True),DataLoader(TensorDataset(x[:n_valid], y[:n_valid]), bs)

def pictures(n=112):
    "Pictures of 12×12 pixels, and which of three stripes is the brightest"
    x = torch.rand(n*size, 1, 12, 12)
    return x,x.view(n*size, 3, -1).mean(2).argmax(1)

@job
class Mnist:
    "Convolutions, dropout, Adadelta, and a rate that falls after each epoch; the loss and the accuracy of the test set"
    def parts():
        train,test = loaders(*pictures())
        model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(.25), nn.Flatten(), nn.Linear(200, 3), nn.LogSoftmax(1))
        return SimpleNamespace(train=train, test=test, model=model)

    def by_hand(p):
        opt = Adadelta(p.model.parameters(), lr=1.)
        sched = StepLR(opt, step_size=1, gamma=.7)
        for epoch in range(3):
            p.model.train()
            for x,y in p.train:
                opt.zero_grad()
                loss = F.nll_loss(p.model(x), y)
                loss.backward()
                opt.step()
            p.model.eval()
            test_loss,right,n = 0.,0,0
            with torch.no_grad():
                for x,y in p.test:
                    out = p.model(x)
                    test_loss += F.nll_loss(out, y, reduction='sum').item()
                    right += (out.argmax(1)==y).sum().item()
                    n += len(y)
            sched.step()
        return right/n

    def ours(p):
        learn = Learner((p.train, p.test), p.model, nn.NLLLoss(), Adadelta, lr=1., metrics=accuracy, cbs=TorchScheduler(partial(StepLR, step_size=1, gamma=.7)))
        learn.fit(3)
        return learn.recorder.history.latest('accuracy')

@job
class Vae:
    "A variational autoencoder: three outputs, random numbers in the model, a loss of two parts that is summed"
    def parts():
        x = pictures()[0].flatten(1)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.enc,self.mu,self.logvar,self.dec = nn.Linear(144, 32),nn.Linear(32, 4),nn.Linear(32, 4),nn.Linear(4, 144)
            def forward(self, x):
                h = F.relu(self.enc(x))
                mu,logvar = self.mu(h),self.logvar(h)
                return self.dec(mu + torch.randn_like(mu)*(logvar/2).exp()),mu,logvar
        def loss_func(out, x):
            drawn,mu,logvar = out
            return F.binary_cross_entropy_with_logits(drawn, x, reduction='sum') - (1 + logvar - mu**2 - logvar.exp()).sum()/2
        train,test = loaders(x, x)
        return SimpleNamespace(train=train, test=test, model=Net(), loss_func=loss_func)

    def by_hand(p):
        opt = Adam(p.model.parameters(), lr=1e-3)
        for epoch in range(3):
            p.model.train()
            losses = []
            for x,_ in p.train:
                opt.zero_grad()
                loss = p.loss_func(p.model(x), x)
                loss.backward()
                losses.append(loss.item())
                opt.step()
            p.model.eval()
            test_loss = 0.
            with torch.no_grad():
                for x,_ in p.test: test_loss += p.loss_func(p.model(x), x).item()
        return losses

    def ours(p):
        learn = Learner((p.train, p.test), p.model, p.loss_func, Adam, lr=1e-3)
        learn.fit(3)
        return learn.recorder.smooth_loss.raw[-len(p.train):]

@job
class WordLanguageModel:
    "An LSTM whose state goes on from batch to batch, clipped gradients; the perplexity of the test set"
    def parts():
        text = (torch.arange(700*size)*7 % 13 + torch.randint(0, 2, (700*size,))).view(4, -1).t()
        batches = [(text[i:i+8], text[i+1:i+9]) for i in range(0, len(text)-9, 8)]
        class Net(nn.Module):
            state = None
            def __init__(self):
                super().__init__()
                self.embed,self.rnn,self.out = nn.Embedding(14, 16),nn.LSTM(16, 16, 2, dropout=.2),nn.Linear(16, 14)
            def reset(self): self.state = None
            def forward(self, x):
                h,state = self.rnn(self.embed(x), self.state)
                self.state = tuple(o.detach() for o in state)
                return self.out(h).flatten(0, 1)
        return SimpleNamespace(train=batches[:-8], test=batches[-8:], model=Net(), loss_func=lambda out, y: F.cross_entropy(out, y.flatten()))

    def by_hand(p):
        opt = SGD(p.model.parameters(), lr=2.)
        for epoch in range(2):
            p.model.train()
            p.model.reset()
            for x,y in p.train:
                p.model.zero_grad()
                p.loss_func(p.model(x), y).backward()
                clip_grad_norm_(p.model.parameters(), .25)
                opt.step()
            p.model.eval()
            p.model.reset()
            loss,n = 0.,0
            with torch.no_grad():
                for x,y in p.test:
                    loss += len(x)*p.loss_func(p.model(x), y).item()
                    n += len(x)
        return math.exp(loss/n)

    def ours(p):
        learn = Learner((p.train, p.test), p.model, p.loss_func, SGD, lr=2., cbs=[ModelResetter, GradientClip(.25)])
        learn.fit(2)
        return math.exp(learn.recorder.history.latest('valid_loss'))

@job
class SiameseNetwork:
    "Two pictures, of one kind or not: two inputs, one output"
    def parts():
        (a,ya),(b,yb) = pictures(96),pictures(96)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body,self.head = nn.Sequential(nn.Conv2d(1, 8, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(200, 16)),nn.Linear(32, 1)
            def forward(self, a, b): return self.head(torch.cat([self.body(a), self.body(b)], 1)).sigmoid()
        ds = TensorDataset(a, b, (ya==yb).float()[:,None])
        return SimpleNamespace(train=DataLoader(ds, 16, shuffle=True), test=DataLoader(ds, 32), model=Net())

    def by_hand(p):
        opt = Adadelta(p.model.parameters(), lr=1.)
        sched = StepLR(opt, step_size=1, gamma=.7)
        for epoch in range(3):
            p.model.train()
            for a,b,y in p.train:
                opt.zero_grad()
                loss = F.binary_cross_entropy(p.model(a, b), y)
                loss.backward()
                opt.step()
            p.model.eval()
            right,n = 0,0
            with torch.no_grad():
                for a,b,y in p.test:
                    right += ((p.model(a, b)>.5)==(y>.5)).sum().item()
                    n += len(y)
            sched.step()
        return right/n

    def ours(p):
        learn = Learner((p.train, p.test), p.model, nn.BCELoss(), Adadelta, lr=1., metrics=partial(accuracy_multi, sigmoid=False),
                        cbs=TorchScheduler(partial(StepLR, step_size=1, gamma=.7)))
        learn.fit(3)
        return learn.recorder.history.latest('accuracy_multi')

@job
class TimeSequence:
    "Sine waves, read by an LSTM and continued; LBFGS, which evaluates the model many times in a step, in double precision"
    def parts():
        waves = torch.sin((torch.arange(24) + torch.randint(-9, 9, (12,1)))/3.).double()
        class Net(nn.Module):
            def __init__(self): super().__init__(); self.cell,self.out = nn.LSTMCell(1, 8).double(),nn.Linear(8, 1).double()
            def forward(self, x, future=0):
                state,outs = None,[]
                for i in range(x.shape[1]+future):
                    state = self.cell(x[:,i:i+1] if i<x.shape[1] else outs[-1], state)
                    outs.append(self.out(state[0]))
                return torch.cat(outs, 1)
        return SimpleNamespace(train=[(waves[3:,:-1], waves[3:,1:])], test=(waves[:3,:-1], waves[:3,1:]), model=Net(), opt=partial(LBFGS, lr=.8, max_iter=4))

    def by_hand(p):
        opt = p.opt(p.model.parameters())
        [(x,y)] = p.train
        for i in range(6):
            def closure():
                opt.zero_grad()
                loss = F.mse_loss(p.model(x), y)
                loss.backward()
                return loss
            opt.step(closure)
            with torch.no_grad():
                pred = p.model(p.test[0], future=5)
                loss = F.mse_loss(pred[:,:-5], p.test[1]).item()
        return loss,pred

    def ours(p):
        learn = Learner((p.train, [p.test]), p.model, nn.MSELoss(), p.opt, lr=.8, cbs=Closure)
        learn.fit(6)
        with torch.no_grad(): return learn.recorder.history.latest('valid_loss'),p.model(p.test[0], future=5)

@job
class Gcn:
    "A graph, all of it in one batch, of whose nodes a part is trained with; weight decay"
    def parts():
        links = (torch.rand(40, 40)<.1).float() + torch.eye(40)
        x,y = torch.randn(40, 10),torch.randint(0, 3, (40,))
        class Net(nn.Module):
            def __init__(self): super().__init__(); self.a,self.b = nn.Linear(10, 16),nn.Linear(16, 3)
            def forward(self, x, links): return F.log_softmax(links@self.b(F.dropout(F.relu(links@self.a(x)), .5, self.training)), 1)
        links = (links+links.t()).clamp(max=1)
        return SimpleNamespace(x=x, links=links/links.sum(1, keepdim=True), y=y, model=Net(), opt=partial(Adam, lr=.01, weight_decay=5e-4))

    def by_hand(p):
        opt = p.opt(p.model.parameters())
        for epoch in range(10):
            p.model.train()
            opt.zero_grad()
            loss = F.nll_loss(p.model(p.x, p.links)[:30], p.y[:30])
            loss.backward()
            opt.step()
            p.model.eval()
            with torch.no_grad(): valid_loss = F.nll_loss(p.model(p.x, p.links)[30:], p.y[30:])
        return valid_loss.item()

    def ours(p):
        train,valid = ([(p.x, p.links, (at,p.y[at]))] for at in (torch.arange(30), torch.arange(30, 40)))
        learn = Learner((train, valid), p.model, lambda out,y: F.nll_loss(out[y[0]], y[1]), p.opt, lr=.01)
        learn.fit(10)
        return learn.recorder.history.latest('valid_loss')

class Gpt(nn.Module):
    "A transformer of two blocks that reads 16 letters"
    def __init__(self, n=16):
        super().__init__()
        self.embed,self.at,self.head = nn.Embedding(28, n),nn.Parameter(torch.zeros(16, n)),nn.Linear(n, 28)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(n, 2, 2*n, .1, batch_first=True) for _ in range(2))
        self.register_buffer('past', nn.Transformer.generate_square_subsequent_mask(16), persistent=False)
    def forward(self, x):
        x = self.embed(x)+self.at
        for block in self.blocks: x = block(x, src_mask=self.past, is_causal=True)
        return self.head(x).flatten(0, 1)

class Windows:
    "Batches of windows of a text, drawn at random"
    def __init__(self, text, n): self.text,self.n = text,n
    def __len__(self): return self.n
    def __iter__(self):
        for _ in range(self.n):
            at = torch.randint(len(self.text)-17, (4,1)) + torch.arange(17)
            yield self.text[at[:,:-1]],self.text[at[:,1:]].flatten()

@job
class NanoGpt:
    "Accumulated gradients, clipped; no decay for vectors; a rate that warms up and falls at each step; the validation loss"
    def parts():
        text = (torch.arange(900)*5 % 27 + torch.randint(0, 2, (900,)))
        def rate(step): return min((step+1)/3, .5+.5*math.cos(math.pi*min(step/12, 1)))
        return SimpleNamespace(train=Windows(text, 24*size), valid=[*Windows(text, 4)], model=Gpt(), rate=rate)

    def by_hand(p):
        params = [*p.model.parameters()]
        groups = [dict(params=[q for q in params if q.dim()>1], weight_decay=.1), dict(params=[q for q in params if q.dim()<2], weight_decay=0.)]
        opt = AdamW(groups, lr=3e-3, betas=(.9,.95))
        sched,batches = LambdaLR(opt, p.rate),iter(p.train)
        for step in range(p.train.n//2):
            for micro in range(2):
                x,y = next(batches)
                loss = F.cross_entropy(p.model(x), y)/2
                loss.backward()
            clip_grad_norm_(p.model.parameters(), 1.)
            opt.step()
            opt.zero_grad()
            sched.step()
            if step%6==5:
                p.model.eval()
                with torch.no_grad(): valid_loss = sum(F.cross_entropy(p.model(x), y).item() for x,y in p.valid)/len(p.valid)
                p.model.train()
        return valid_loss

    def ours(p):
        cbs = [GradientAccumulation('2ba'), GradientClip(1.), TorchScheduler(partial(LambdaLR, lr_lambda=p.rate), 'step'), ValidateEvery('12ba')]
        learn = Learner((p.train, p.valid), p.model, nn.CrossEntropyLoss(), partial(AdamW, betas=(.9,.95)), lr=3e-3, wd=.1, cbs=cbs)
        learn.fit(1)
        return learn.recorder.history.latest('valid_loss')

@job
class Glue:
    "Texts as dictionaries with a mask of what is padding; a model that returns its loss; a rate that warms up and falls in a line"
    def parts():
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed,self.norm,self.out = nn.Embedding(20, 16),nn.LayerNorm(16),nn.Linear(16, 2)
                self.block = nn.TransformerEncoderLayer(16, 2, 32, .1, batch_first=True)
            def forward(self, input_ids, attention_mask, labels=None):
                logits = self.out(self.block(self.norm(self.embed(input_ids)), src_key_padding_mask=attention_mask==0)[:,0])
                return dict(loss=F.cross_entropy(logits, labels), logits=logits)
        ids = torch.randint(1, 20, (64*size+16,10))
        items = [dict(input_ids=o, attention_mask=(torch.arange(10)<4+i%6).long(), labels=(o[1]>9).long()) for i,o in enumerate(ids)]
        return SimpleNamespace(train=DataLoader(items[:-16], 16, shuffle=True), valid=DataLoader(items[-16:], 16), model=Net(), rate=lambda i: min(i/3, (12-i)/9))

    def by_hand(p):
        spared = [q for n,q in p.model.named_parameters() if 'norm' in n or n.endswith('bias')]
        decayed = [q for n,q in p.model.named_parameters() if not ('norm' in n or n.endswith('bias'))]
        opt = AdamW([dict(params=decayed, weight_decay=.01), dict(params=spared, weight_decay=0.)], lr=1e-3)
        sched = LambdaLR(opt, p.rate)
        for epoch in range(3):
            p.model.train()
            for batch in p.train:
                p.model(**batch)['loss'].backward()
                opt.step()
                sched.step()
                opt.zero_grad()
            p.model.eval()
            right,n = 0,0
            with torch.no_grad():
                for batch in p.valid:
                    right += (p.model(**batch)['logits'].argmax(-1)==batch['labels']).sum().item()
                    n += len(batch['labels'])
        return right/n

    def ours(p):
        learn = Learner((p.train, p.valid), p.model, opt_func=AdamW, lr=1e-3, wd=.01, metrics=accuracy, cbs=TorchScheduler(partial(LambdaLR, lr_lambda=p.rate), 'step'))
        learn.fit(3)
        return learn.recorder.history.latest('accuracy')

@job
class Ddpm:
    "Noise that a model learns to take away: it draws the noise, and returns its loss; accumulation, clipping, averaged weights"
    def parts():
        class Diffusion(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Sequential(nn.Conv2d(2, 8, 3, padding=1), nn.SiLU(), nn.Conv2d(8, 1, 3, padding=1))
                self.register_buffer('kept', torch.cos(torch.linspace(.05, 1.5, 50))**2)
            def forward(self, x):
                t = torch.randint(0, 50, (len(x),), device=x.device)
                kept,noise = self.kept[t][:,None,None,None],torch.randn_like(x)
                noisy = kept.sqrt()*x + (1-kept).sqrt()*noise
                return dict(loss=F.mse_loss(self.net(torch.cat([noisy, (t[:,None,None,None]/50).expand_as(x)], 1)), noise))
        return SimpleNamespace(train=[(x,) for x in pictures(96)[0].split(8)], model=Diffusion())

    def by_hand(p):
        opt = Adam(p.model.parameters(), lr=1e-3, betas=(.9,.99))
        averaged,batches,losses = None,iter(p.train*2),[]
        for step in range(len(p.train)):
            for micro in range(2):
                loss = p.model(next(batches)[0])['loss']/2
                loss.backward()
            clip_grad_norm_(p.model.parameters(), 1.)
            opt.step()
            opt.zero_grad()
            losses.append(loss.item()*2)
            with torch.no_grad():
                if averaged is None: averaged = [q.clone() for q in p.model.parameters()]
                else: torch._foreach_lerp_(averaged, [*p.model.parameters()], 1-.9)
        nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(averaged), p.model.parameters())
        return losses

    def ours(p):
        cbs = [GradientAccumulation('2ba'), GradientClip(1.), EMACallback(.9, warmup=False)]
        learn = Learner([p.train], p.model, opt_func=partial(Adam, betas=(.9,.99)), lr=1e-3, cbs=cbs)
        learn.fit(2)
        return learn.recorder.smooth_loss.raw[1::2]

@job
class Dcgan:
    "A generator and a discriminator, each with its optimizer and its loss"
    def parts():
        class Gan(nn.Module):
            def __init__(self):
                super().__init__()
                self.g = nn.Sequential(nn.ConvTranspose2d(8, 16, 6), nn.BatchNorm2d(16), nn.ReLU(), nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Sigmoid())
                self.d = nn.Sequential(nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(.2), nn.Conv2d(16, 1, 6), nn.Flatten(0))
            def forward(self, x): return self.g(torch.randn(len(x), 8, 1, 1, device=x.device))
        return SimpleNamespace(train=[(x,x) for x in pictures(96)[0].split(16)], model=Gan(), opt=partial(Adam, betas=(.5,.999)))

    def by_hand(p):
        g,d,bce = p.model.g,p.model.d,F.binary_cross_entropy_with_logits
        g_opt,d_opt = p.opt(g.parameters(), lr=2e-3),p.opt(d.parameters(), lr=2e-3)
        for epoch in range(3):
            for real,_ in p.train:
                drawn = g(torch.randn(len(real), 8, 1, 1))
                d_opt.zero_grad()
                on_real,on_drawn = d(real),d(drawn.detach())
                d_loss = bce(on_real, torch.ones_like(on_real)) + bce(on_drawn, torch.zeros_like(on_drawn))
                d_loss.backward()
                d_opt.step()
                g_opt.zero_grad()
                drawn = g(torch.randn(len(real), 8, 1, 1))
                on_drawn = d(drawn)
                g_loss = bce(on_drawn, torch.ones_like(on_drawn))
                g_loss.backward()
                g_opt.step()
        return g_loss.item()

    def ours(p):
        d,bce = p.model.d,F.binary_cross_entropy_with_logits
        def real(score): return bce(score, torch.ones_like(score))
        def drawn(score): return bce(score, torch.zeros_like(score))
        def judge(pred, y): return real(d(y)) + drawn(d(pred.detach()))
        def fool(pred, y): return real(d(pred))
        cbs = InTurn(d=judge, g=fool)
        learn = Learner([p.train], p.model, fool, {'d':(p.opt, 'd.*'), 'g':(p.opt, 'g.*')}, lr=2e-3, cbs=cbs)
        learn.fit(3)
        return learn.recorder.smooth_loss.raw[-1]

@job
class ForwardForward:
    "Each layer is trained alone, to tell right labels from wrong ones by how strong its outputs are"
    def parts():
        class Layer(nn.Linear):
            def forward(self, x): return F.relu(super().forward(x/(x.norm(dim=1, keepdim=True)+1e-4)))
        x,y = pictures(64)
        def labelled(y): return torch.cat([x.flatten(1), F.one_hot(y, 3).float()], 1)
        right,wrong = labelled(y),labelled((y+torch.randint(1, 3, y.shape))%3)
        return SimpleNamespace(x=torch.cat([right, wrong]), model=nn.Sequential(Layer(147, 32), Layer(32, 32)))

    def by_hand(p):
        x = p.x
        for layer in p.model:
            opt = Adam(layer.parameters(), lr=.03)
            for step in range(10):
                right,wrong = (o.square().mean(1) for o in layer(x).chunk(2))
                loss = F.softplus(torch.cat([2-right, wrong-2])).mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
            x = layer(x).detach()
        return loss.item()

    def ours(p):
        def goodness(out):
            right,wrong = (o.square().mean(1) for o in out.chunk(2))
            return F.softplus(torch.cat([2-right, wrong-2])).mean()
        x = p.x
        for layer in p.model:
            learn = Learner([[(x,)]*10], layer, goodness, lr=.03)
            learn.fit(1)
            x = layer(x).detach()
        return learn.recorder.smooth_loss.raw[-1]

@job
class OneCycle:
    "The second half of the fast.ai course: AdamW, a one-cycle schedule of rate and momentum, batch norm"
    def parts():
        train,valid = loaders(*pictures())
        def conv(a, b): return nn.Sequential(nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.ReLU())
        model = nn.Sequential(conv(1, 8), conv(8, 16), nn.Flatten(), nn.Linear(144, 3))
        return SimpleNamespace(train=train, valid=valid, model=model, sched=partial(OneCycleLR, max_lr=.02, total_steps=len(train)*3+1))

    def by_hand(p):
        opt = AdamW(p.model.parameters(), lr=.02)
        sched = p.sched(opt)
        for epoch in range(3):
            p.model.train()
            for x,y in p.train:
                F.cross_entropy(p.model(x), y).backward()
                opt.step()
                opt.zero_grad()
                sched.step()
            p.model.eval()
            right,n = 0,0
            with torch.no_grad():
                for x,y in p.valid:
                    right += (p.model(x).argmax(1)==y).sum().item()
                    n += len(y)
        return right/n

    def ours(p):
        learn = Learner((p.train, p.valid), p.model, nn.CrossEntropyLoss(), AdamW, lr=.02, metrics=accuracy, cbs=TorchScheduler(p.sched, 'step'))
        learn.fit(3)
        return learn.recorder.history.latest('accuracy')

@job
class Tabular:
    "fastai's table: embeddings and numbers, weight decay that spares norms and biases, its own one-cycle schedule"
    def parts():
        cats,conts = torch.randint(0, 6, (112*size,3)),torch.randn(112*size, 2)
        y = ((cats.float().sum(1)/4 + conts[:,0])>2).long()
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.embeds = nn.ModuleList(nn.Embedding(6, 3) for _ in range(3))
                self.norm,self.layers = nn.BatchNorm1d(2),nn.Sequential(nn.Linear(11, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Linear(16, 2))
            def forward(self, cats, conts): return self.layers(torch.cat([*(e(c) for e,c in zip(self.embeds, cats.t())), self.norm(conts)], 1))
        train,valid = (TensorDataset(*(o[s] for o in (cats, conts, y))) for s in (slice(32,None), slice(32)))
        return SimpleNamespace(train=DataLoader(train, 16, shuffle=True), valid=DataLoader(valid, 16), model=Net(), opt=partial(AdamW, betas=(.9,.99), eps=1e-5))

    def by_hand(p):
        norms = [q for m in p.model.modules() if isinstance(m, nn.BatchNorm1d) for q in m.parameters()]
        spared = [q for n,q in p.model.named_parameters() if n.endswith('bias') or any(q is o for o in norms)]
        decayed = [q for q in p.model.parameters() if not any(q is o for o in spared)]
        opt = p.opt([dict(params=decayed, weight_decay=.01), dict(params=spared, weight_decay=0.)])
        def cos(a, b, pos): return a + (1+math.cos(math.pi*(1-pos)))*(b-a)/2
        for i in range(3):
            p.model.train()
            for j,(cats,conts,y) in enumerate(p.train):
                pct = (i*len(p.train)+j)/(3*len(p.train))
                up,pos = pct<.25,pct/.25 if pct<.25 else (pct-.25)/.75
                for g in opt.param_groups:
                    g['lr'] = cos(.01/25, .01, pos) if up else cos(.01, .01/1e5, pos)
                    g['betas'] = (cos(.95, .85, pos) if up else cos(.85, .95, pos)),.99
                F.cross_entropy(p.model(cats, conts), y).backward()
                opt.step()
                opt.zero_grad()
            p.model.eval()
            right,n = 0,0
            with torch.no_grad():
                for cats,conts,y in p.valid:
                    right += (p.model(cats, conts).argmax(1)==y).sum().item()
                    n += len(y)
        return right/n

    def ours(p):
        learn = Learner((p.train, p.valid), p.model, nn.CrossEntropyLoss(), p.opt, metrics=accuracy)
        learn.fit_one_cycle(3, .01, wd=.01)
        return learn.recorder.history.latest('accuracy')

@job
class Ddp:
    "The tutorial on several processes: each has its part of the data, and all have the same model"
    processes = 2
    def parts():
        ds = TensorDataset(*pictures(64))
        sampler = DistributedSampler(ds, int(os.environ['WORLD_SIZE']), int(os.environ['RANK']))
        model = nn.Sequential(nn.Conv2d(1, 8, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(200, 3))
        return SimpleNamespace(train=DataLoader(ds, 8, sampler=sampler), model=model)

    def by_hand(p):
        torch.distributed.init_process_group('gloo')
        model = DistributedDataParallel(p.model)
        opt = SGD(model.parameters(), lr=.1)
        for epoch in range(2):
            p.train.sampler.set_epoch(epoch)
            for x,y in p.train:
                opt.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                opt.step()

    def ours(p):
        learn = Learner([p.train], p.model, nn.CrossEntropyLoss(), SGD, lr=.1)
        learn.fit(2)

# how they are run

def run(cls, who):
    "Train with `who` (`by_hand` or `ours`); return the seconds, the weights, and its result"
    n = getattr(cls, 'processes', 1)
    if n==1: return _run(cls, who)
    SGD([torch.ones(1)])   # it imports much: here once, for all forks
    with tempfile.TemporaryDirectory() as folder, socket.socket() as s:
        s.bind(('localhost', 0))
        where = dict(MASTER_ADDR='localhost', MASTER_PORT=str(s.getsockname()[1]), WORLD_SIZE=str(n), LOCAL_WORLD_SIZE=str(n))
        s.close()
        pids = [_fork(cls, who, f'{folder}/result', {**where, 'RANK':str(i), 'LOCAL_RANK':str(i)}) for i in range(n)]
        status = os.waitpid(pids[0], 0)[1]
        if status: [os.kill(pid, signal.SIGKILL) for pid in pids[1:]]
        for pid in pids[1:]: os.waitpid(pid, 0)
        if os.WIFSIGNALED(status): os.kill(os.getpid(), signal.SIGKILL)   # it was killed, and this process is the one that trains
        res,n_batches = torch.load(f'{folder}/result', weights_only=False)
    seen.extend([None]*n_batches)
    return res

def _fork(cls, who, path, env):
    if pid := os.fork(): return pid
    os.environ.update(env)
    n = len(seen)
    try:
        res = _run(cls, who)
        if env['RANK']=='0': torch.save((res,len(seen)-n), path)
        os._exit(0)
    finally: os._exit(1)

seen = []   # the batches that `watched` counts

def _run(cls, who):
    set_seed(1)
    p = cls.parts()
    set_seed(2)
    start = time.process_time()
    res = getattr(cls, who)(p)
    return time.process_time()-start,p.model.state_dict(),res

def largest_difference(a, b):
    "Of two weights, numbers, or lists and dictionaries of such: 0 if all bits are equal"
    if isinstance(a, dict): return max([largest_difference(a[k], b[k]) for k in a] + [0 if a.keys()==b.keys() else math.inf])
    if isinstance(a, (list,tuple)): return max([largest_difference(*o) for o in zip(a, b)] + [0 if len(a)==len(b) else math.inf])
    if a is b is None: return 0.
    a,b = torch.as_tensor(a).double(),torch.as_tensor(b).double()
    return 0. if torch.equal(a, b) else (a-b).abs().max().item()

@contextmanager
def watched(folder, kill_at=0):
    "Each Learner has a `CheckpointCallback` meanwhile, and resumes; the process is killed at batch number `kill_at`"
    made,train = [],Learner._train
    seen.clear()
    class Counts(Callback):
        order,run_valid,modes,acts = 99,False,('fit',),'nothing'
        def after_batch(self):
            seen.append(self.train_iter)
            if len(seen)==kill_at and os.environ.get('RANK', '0')=='0': os.kill(os.getpid(), signal.SIGKILL)
    def watch(learn):
        made.append(learn)
        return [CheckpointCallback('3ba', folder=Path(folder)/f'{len(made)}'), Counts()]
    def resuming(self, mode, *args, resume=None, **kw): train(self, mode, *args[:6], resume='auto' if mode=='fit' else None, **kw)
    Learner._on_create.append(watch)
    Learner._train = resuming
    try: yield
    finally: Learner._on_create.remove(watch); Learner._train = train

def resumes(cls, folder):
    "Return whether a killed and resumed run is the same, bit for bit, as an uninterrupted one"
    with watched(f'{folder}/whole'): _,*whole = run(cls, 'ours')
    n_batches = len(seen)
    n = n_batches*5//8+1
    if not (pid := os.fork()):
        with quiet(), watched(f'{folder}/cut', n): run(cls, 'ours')
        os._exit(1)
    if os.WTERMSIG(os.waitpid(pid, 0)[1])!=signal.SIGKILL: raise RuntimeError(f'{cls.__name__} ended before batch {n}')
    with watched(f'{folder}/cut'): _,*ended = run(cls, 'ours')
    return len(seen)<n_batches and largest_difference(whole, ended)==0

@contextmanager
def quiet():
    "No bars and tables"
    def hushed(learn): learn.remove_cbs([cb for cb in learn.cbs if isinstance(cb, ProgressCallback)]); learn.logger = lambda *args: None; return []
    Learner._on_create.append(hushed)
    try:
        with redirect_stdout(io.StringIO()): yield
    finally: Learner._on_create.remove(hushed)

def n_lines(f): return len([l for l in getsource(f).splitlines()[1:] if l.strip()])

def measure(name, rounds=3, times=10):
    "A row of the table; the times are those with `times` as much data"
    global size
    cls,ratios = jobs[name],[]
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        (_,*a),(_,*b) = run(cls, 'by_hand'),run(cls, 'ours')
        with tempfile.TemporaryDirectory() as folder: same = resumes(cls, folder)
        size = times
        for _ in range(rounds):
            by_hand = run(cls, 'by_hand')[0]
            ratios.append(run(cls, 'ours')[0]/by_hand)
        size = 1
    return dict(job=name, by_hand=n_lines(cls.by_hand), ours=n_lines(cls.ours), difference=largest_difference(a, b), ratio=statistics.median(ratios), resumes=same)

def alone(name):
    "Its row, measured in a Python of its own: its forks have no threads and caches of other jobs"
    out = subprocess.run([sys.executable, __file__, '--json', name], capture_output=True, encoding='utf-8', timeout=600)
    if out.returncode: raise RuntimeError(f'{name} failed:\n{out.stdout}{out.stderr}')
    return json.loads(out.stdout.splitlines()[-1])

def row(r):
    bits = 'equal' if r['difference']==0 else f"{r['difference']:.0e}"
    return f"{r['job']:18} {r['by_hand']:8} {r['ours']:10} {bits:>8} {r['ratio']:8.2f} {'yes' if r['resumes'] else 'no':>9}"

def main(*names, **kw):
    print(f"{'job':18} {'by hand':>8} {'learnkit':>10} {'bits':>8} {'time':>8} {'resumes':>9}")
    rows = []
    for name in names or jobs:
        rows.append(measure(name, **kw) if names else alone(name))
        print(row(rows[-1]), flush=True)
    if not names: (here/'scripts.json').write_text(json.dumps(rows, indent=1)+'\n')

if __name__=='__main__':
    if sys.argv[1:2]==['--json']: print(json.dumps(measure(*sys.argv[2:])))
    else: main(*sys.argv[1:])
