"""The toolkit's callbacks, each beside the loop by hand in which the same is written out"""
import hashlib, io, json, os, random, tempfile
from functools import partial
from pathlib import Path
import numpy as np
from tools import F, by_hand, in_turn, learner, nn, show, steps, timed, tiny, torch
from torch.optim.lr_scheduler import ExponentialLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

exponential = partial(ExponentialLR, gamma=.999)

def plain(batches, model, opt, before_step=lambda: None, after_step=lambda i: None, loss=lambda model, xb, yb: F.cross_entropy(model(xb), yb)):
    "The loop, with what is to be done in it"
    for i,(xb,yb) in enumerate(batches):
        loss(model, xb, yb).backward()
        before_step()
        opt.step()
        opt.zero_grad()
        after_step(i)

def scheduled(batches, model, opt):
    "The rates are kept, of each group and of the last, as the curves to plot"
    sched,rates,last = exponential(opt),[],[]
    def step(i):
        rates.append([g['lr'] for g in opt.param_groups])
        last.append(rates[-1][-1])
        sched.step()
    plain(batches, model, opt, after_step=step)

def averaged(batches, model, opt):
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(.999))
    plain(batches, model, opt, after_step=lambda i: ema.update_parameters(model))

def clipped(batches, model, opt):
    plain(batches, model, opt, before_step=lambda: nn.utils.clip_grad_norm_(model.parameters(), 1.))

def in_bf16(batches, model, opt):
    def loss(model, xb, yb):
        with torch.autocast('cpu', torch.bfloat16): pred = model(xb)
        return F.cross_entropy(pred.float(), yb)
    plain(batches, model, opt, loss=loss)

def accumulated(batches, model, opt, n=4):
    for i,(xb,yb) in enumerate(batches):
        (F.cross_entropy(model(xb), yb)/n).backward()
        if i%n==n-1:
            opt.step()
            opt.zero_grad()

def accumulated_the_same(batches, model, opt, n_acc=128):
    "The whole job: each target that counts weighs the same, also in smaller batches; what is left at the end gets a step; losses are kept"
    params,losses,count = [*model.parameters()],[],0
    def step():
        if unit!=weight: torch._foreach_mul_([p.grad for p in params if p.grad is not None], unit/weight)
        opt.step()
        opt.zero_grad()
    for xb,yb in batches:
        n = (yb!=-100).sum().item()
        if not count: unit,weight = max(n, 1)/len(yb)*n_acc,0
        loss = F.cross_entropy(model(xb), yb)
        losses.append(loss.detach().clone())
        (loss*(n/unit)).backward()
        count,weight = count+len(yb),weight+n
        if count>=n_acc: step(); count = 0
    if count: step()
    return torch.stack(losses).mean().item()

def mixed(batches, model, opt):
    beta = torch.distributions.Beta(torch.tensor(.4), torch.tensor(.4))
    def loss(model, xb, yb):
        lam,other = beta.sample((len(xb),)),torch.randperm(len(xb))
        lam = torch.max(lam, 1-lam)
        pred = model(torch.lerp(xb[other], xb, lam[:,None]))
        return torch.lerp(F.cross_entropy(pred, yb[other], reduction='none'), F.cross_entropy(pred, yb, reduction='none'), lam).mean()
    plain(batches, model, opt, loss=loss)

def observed(batches, model, opt, every=1):
    kept = []
    def note(module, inp, out):
        out = out.detach().flatten()
        var,mean = torch.var_mean(out, correction=0)
        kept.append((mean, var.sqrt(), (out<=.05).float().mean(), out.histc(40, 0, 10)))
    for i,b in enumerate(batches):
        hooks = [m.register_forward_hook(note) for m in model if isinstance(m, nn.Linear)] if i%every==0 else []
        plain([b], model, opt)
        for h in hooks: h.remove()

def on_disk(path, data):
    "Complete and on the disk, or not there"
    with open(path/'new', 'wb') as f: f.write(data); f.flush(); os.fsync(f.fileno())
    os.replace(path/'new', path/'last')
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)

def saved(batches, model, opt, path):
    "All that a run needs to go on, on the disk before the next step, with a checksum in a file of its own; the first is read back; one at the end"
    losses,sums = [],path/'sums'
    sums.mkdir(exist_ok=True)
    def loss(model, xb, yb):
        res = F.cross_entropy(model(xb), yb)
        losses.append(res.detach())
        return res
    def save(i):
        rng,data = dict(torch=torch.get_rng_state(), python=random.getstate(), numpy=np.random.get_state(legacy=False)),io.BytesIO()
        torch.save(dict(model=model.state_dict(), opt=opt.state_dict(), step=i, rng=rng, losses=torch.stack(losses)), data)
        on_disk(path, data.getvalue())
        sha = hashlib.sha256(data.getvalue()).hexdigest()
        on_disk(sums, json.dumps(dict(step=i, sha256=sha)).encode())
        if i==99: assert hashlib.sha256((path/'last').read_bytes()).hexdigest()==sha and torch.load(path/'last', weights_only=False)['step']==i
    plain(batches, model, opt, after_step=lambda i: save(i) if i%100==99 else None, loss=loss)
    save(len(batches))

def beside(path):
    "For each: by hand, and the callback"
    import learnkit.all as lk
    return {'TorchScheduler, each step':    (scheduled, lambda: lk.TorchScheduler(exponential, 'step')),
            'EMACallback':                  (averaged, lk.EMACallback),
            'GradientClip':                 (clipped, lk.GradientClip),
            'MixedPrecision bf16':          (in_bf16, lambda: lk.MixedPrecision('bf16')),
            'GradientAccumulation, 4':      (accumulated, lambda: lk.GradientAccumulation(4*32)),
            'GradientAccumulation, 4, the same job': (accumulated_the_same, lambda: lk.GradientAccumulation(4*32)),
            'MixUp':                        (mixed, lk.MixUp),
            'ActivationStats (every 10th)': (partial(observed, every=10), lambda: lk.ActivationStats(every=10)),
            'ActivationStats (each batch)': (observed, lk.ActivationStats),
            "CheckpointCallback '100ba'":   (partial(saved, path=path), lambda: lk.CheckpointCallback('100ba', overwrite=True))}

# What takes longer than by hand is there for this
more = {'TorchScheduler, each step':    'it steps when the optimizer did, not when a step was skipped or is accumulated',
        'GradientAccumulation, 4':      'the targets that count are counted, so padding, class weights, smaller batches and what is left '
                                        'at the end weigh as in one large batch',
        'MixUp':                        'any loss with a reduction, several inputs and targets, MicroBatch; integers raise',
        'ActivationStats (every 10th)': 'of all modules with parameters, nested outputs too; joined in one table',
        'MixedPrecision bf16':          'predictions of any structure become 32-bit numbers',
        "CheckpointCallback '100ba'":   'at the start the data are hashed and the folder is locked; each time weights are checked to be '
                                        'finite, with the states of all callbacks and metrics, and the place in the data; the first file is '
                                        'read back without running code in it'}

def bench_beside(rounds, n=400):
    batches = steps(n)
    with tempfile.TemporaryDirectory() as path:
        def hand(f): model = tiny(); return f(batches, model, torch.optim.SGD(model.parameters(), lr=.01))
        def ours(make): learner(batches, cbs=make(), path=path).fit(1)
        base,bare = in_turn(rounds, timed(lambda: by_hand(batches)), learnkit=timed(lambda: learner(batches).fit(1)))
        dear,ratios = {},{'nothing':bare['learnkit']}
        for k,(f,make) in beside(Path(path)).items():
            alone,got = in_turn(rounds, timed(partial(hand, f)), learnkit=timed(partial(ours, make)))
            dear[k],ratios[k] = alone/base,got['learnkit']
    what = 'The toolkit: a step with the callback, against a hand-written loop that does the same'
    show(what, f'{base*1e6/n:.0f} µs a step without any', ratios, more=more)
    for k,v in more.items(): print(f'  {k}: {v}')
    show('What each costs by hand: a step with it, against one without', f'{base*1e6/n:.0f} µs a step', {k:(v, v, v) for k,v in dear.items()}, first='without')
