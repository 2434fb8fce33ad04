"""Callbacks of the toolkit, each compared with a hand-written loop that does the same"""
import hashlib, io, json, os, random, tempfile
from functools import partial
from pathlib import Path
import numpy as np
from tools import F, compare, learner, nn, plain_loop, show, steps, timed, tiny, torch
from torch.optim.lr_scheduler import ExponentialLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

exponential = partial(ExponentialLR, gamma=.999)

def scheduled(batches, model, opt):
    "Take a step of the scheduler after each batch; record the learning rates of all groups, and of the last, as curves"
    scheduler = exponential(opt)
    rates,last_rates = [],[]
    for xb,yb in batches:
        F.cross_entropy(model(xb), yb).backward()
        opt.step()
        opt.zero_grad()
        rates.append([group['lr'] for group in opt.param_groups])
        last_rates.append(rates[-1][-1])
        scheduler.step()

def averaged(batches, model, opt):
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(.999))
    for xb,yb in batches:
        F.cross_entropy(model(xb), yb).backward()
        opt.step()
        opt.zero_grad()
        ema.update_parameters(model)

def clipped(batches, model, opt):
    for xb,yb in batches:
        F.cross_entropy(model(xb), yb).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.)
        opt.step()
        opt.zero_grad()

def in_bf16(batches, model, opt):
    for xb,yb in batches:
        with torch.autocast('cpu', torch.bfloat16): pred = model(xb)
        F.cross_entropy(pred.float(), yb).backward()
        opt.step()
        opt.zero_grad()

def accumulated(batches, model, opt, n=4):
    for i,(xb,yb) in enumerate(batches):
        (F.cross_entropy(model(xb), yb)/n).backward()
        if i%n==n-1:
            opt.step()
            opt.zero_grad()

def accumulated_the_same(batches, model, opt, n_acc=128):
    """Do the whole job: all targets that count have the same weight, even in smaller batches; samples that are left at
    the end are one more step; losses are recorded"""
    params = [*model.parameters()]
    losses = []
    n_samples = 0   # in this step
    def step(scale):
        if scale!=1:
            grads = [p.grad for p in params if p.grad is not None]
            torch._foreach_mul_(grads, scale)
        opt.step()
        opt.zero_grad()
    for xb,yb in batches:
        n_targets = (yb!=-100).sum().item()
        if n_samples==0:
            expected = max(n_targets, 1)/len(yb)*n_acc   # targets of the whole step
            found = 0
        loss = F.cross_entropy(model(xb), yb)
        losses.append(loss.detach().clone())
        (loss*(n_targets/expected)).backward()
        n_samples += len(yb)
        found += n_targets
        if n_samples>=n_acc:
            step(expected/found)
            n_samples = 0
    if n_samples: step(expected/found)
    return torch.stack(losses).mean().item()

def mixed(batches, model, opt):
    beta = torch.distributions.Beta(torch.tensor(.4), torch.tensor(.4))
    for xb,yb in batches:
        lam = beta.sample((len(xb),))
        other = torch.randperm(len(xb))
        lam = torch.max(lam, 1-lam)
        pred = model(torch.lerp(xb[other], xb, lam[:,None]))
        loss_of_other = F.cross_entropy(pred, yb[other], reduction='none')
        loss = F.cross_entropy(pred, yb, reduction='none')
        torch.lerp(loss_of_other, loss, lam).mean().backward()
        opt.step()
        opt.zero_grad()

def observed(batches, model, opt, every=1):
    stats = []
    def record(module, inputs, out):
        out = out.detach().flatten()
        var,mean = torch.var_mean(out, correction=0)
        dead = (out<=.05).float().mean()
        stats.append((mean, var.sqrt(), dead, out.histc(40, 0, 10)))
    linear = [layer for layer in model if isinstance(layer, nn.Linear)]
    for i,(xb,yb) in enumerate(batches):
        hooks = []
        if i%every==0: hooks = [layer.register_forward_hook(record) for layer in linear]
        F.cross_entropy(model(xb), yb).backward()
        opt.step()
        opt.zero_grad()
        for hook in hooks: hook.remove()

def write(folder, data):
    "Write a file that is complete and on the disk, or not there"
    with open(folder/'new', 'wb') as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    os.replace(folder/'new', folder/'last')
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)

def saved(batches, model, opt, path):
    """Save all that is needed to resume the run every 100 batches and at the end, on the disk before the next step, with
    a checksum in a separate file. The first checkpoint is read back"""
    losses = []
    checksums = path/'sums'
    checksums.mkdir(exist_ok=True)
    def save(i):
        rng = dict(torch=torch.get_rng_state(), python=random.getstate(), numpy=np.random.get_state(legacy=False))
        state = dict(model=model.state_dict(), opt=opt.state_dict(), step=i, rng=rng, losses=torch.stack(losses))
        buffer = io.BytesIO()
        torch.save(state, buffer)
        write(path, buffer.getvalue())
        checksum = hashlib.sha256(buffer.getvalue()).hexdigest()
        write(checksums, json.dumps(dict(step=i, sha256=checksum)).encode())
        if i==99:
            assert hashlib.sha256((path/'last').read_bytes()).hexdigest()==checksum
            assert torch.load(path/'last', weights_only=False)['step']==i
    for i,(xb,yb) in enumerate(batches):
        loss = F.cross_entropy(model(xb), yb)
        losses.append(loss.detach())
        loss.backward()
        opt.step()
        opt.zero_grad()
        if i%100==99: save(i)
    save(len(batches))

def toolkit(path):
    "Return by name the hand-written loop, and a function that makes the callback"
    import learnkit.all as lk
    return {
        'TorchScheduler, each step':             (scheduled, lambda: lk.TorchScheduler(exponential, 'step')),
        'EMACallback':                           (averaged, lk.EMACallback),
        'GradientClip':                          (clipped, lk.GradientClip),
        'MixedPrecision bf16':                   (in_bf16, lambda: lk.MixedPrecision('bf16')),
        'GradientAccumulation, 4':               (accumulated, lambda: lk.GradientAccumulation(4*32)),
        'GradientAccumulation, 4, the same job': (accumulated_the_same, lambda: lk.GradientAccumulation(4*32)),
        'MixUp':                                 (mixed, lk.MixUp),
        'ActivationStats (every 10th)':          (partial(observed, every=10), lambda: lk.ActivationStats(every=10)),
        'ActivationStats (each batch)':          (observed, lk.ActivationStats),
        "CheckpointCallback '100ba'":            (partial(saved, path=path),
                                                  lambda: lk.CheckpointCallback('100ba', overwrite=True))}

# What a callback does in the time that it takes more than the hand-written loop
more = {
    'TorchScheduler, each step':    'it steps when the optimizer did, not when a step was skipped or is accumulated',
    'GradientAccumulation, 4':      'the targets that count are counted, so padding, class weights, smaller batches '
                                    'and what is left at the end weigh as in one large batch',
    'MixUp':                        'any loss with a reduction, several inputs and targets, MicroBatch; integers raise',
    'ActivationStats (every 10th)': 'of all modules with parameters, nested outputs too; joined in one table',
    'MixedPrecision bf16':          'predictions of any structure become 32-bit numbers',
    "CheckpointCallback '100ba'":   'at the start the data are hashed and the folder is locked; each time weights are '
                                    'checked to be finite, with the states of all callbacks and metrics, and the place '
                                    'in the data; the first file is read back without running code in it'}

def bench_beside(rounds, n=400):
    batches = steps(n)
    def train_plain(loop):
        model = tiny()
        opt = torch.optim.SGD(model.parameters(), lr=.01)
        return loop(batches, model, opt)
    with tempfile.TemporaryDirectory() as path:
        def train_with(make_callback): learner(batches, cbs=make_callback(), path=path).fit(1)
        base,bare = compare(rounds, timed(lambda: plain_loop(batches)), learnkit=timed(lambda: learner(batches).fit(1)))
        ratios = {'nothing':bare['learnkit']}
        costs  = {}
        for name,(loop,make_callback) in toolkit(Path(path)).items():
            plain = timed(partial(train_plain, loop))
            seconds,own = compare(rounds, plain, learnkit=timed(partial(train_with, make_callback)))
            ratios[name] = own['learnkit']
            costs[name]  = seconds/base
    what = 'The toolkit: a step with the callback, against a hand-written loop that does the same'
    show(what, f'{base*1e6/n:.0f} µs a step without any', ratios, more=more)
    for name,text in more.items(): print(f'  {name}: {text}')
    what = 'What each costs by hand: a step with it, against one without'
    rows = {name:(cost, cost, cost) for name,cost in costs.items()}
    show(what, f'{base*1e6/n:.0f} µs a step', rows, first='without')
