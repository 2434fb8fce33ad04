"""fastai's own callbacks, unmodified, on learnkit's Learner and on fastai's own: the weights must be equal bit for bit,
and what the callbacks store, write and print must agree. Without fastai, `test_foreign.py` tests the same path."""
import random, re
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Callable

import numpy as np, pytest, torch
from torch import nn
from torch.nn import functional as F

fc = pytest.importorskip('fastai.callback.all')
from fastai import optimizer as fopt
from fastai.data.core import DataLoaders as FastDataLoaders
from fastai.data.load import DataLoader as FastDataLoader
from fastai.learner import AvgMetric, Learner as FastLearner, SkipToEpoch, before_batch_cb
from fastai.losses import CrossEntropyLossFlat, MSELossFlat
from fastai.metrics import AccumMetric, accuracy, mse
from fastai.test_utils import VerboseCallback
from fastai.callback.core import event as fast_event
from fastcore.basics import defaults
from fastcore.foundation import L
from learnkit.learner.learner import Learner
from learnkit.data.random import get_random_states, set_random_states, set_seed

# CUDA AMP warns that it is disabled; fastai uses deprecated PyTorch functions
pytestmark = pytest.mark.filterwarnings('ignore')
KINDS = 'theirs','ours'   # on learnkit's Learner: fastai's base callbacks (Recorder, …), or learnkit's

# tasks: data, models, losses and metrics
def items(*ts): return list(zip(*ts))
def loaders(x, y, shuffle=False, n=40):
    def dl(s, **kw): return FastDataLoader(items(x[s], y[s]), bs=8, num_workers=0, **kw)
    return FastDataLoaders(dl(slice(n), shuffle=shuffle, drop_last=True), dl(slice(n, None)), device='cpu')

def numbers(rows=60, **kw):
    x = torch.randn(rows, 4)
    return loaders(x, x.sum(1, keepdim=True)+.1*torch.randn(rows, 1), **kw)
def classes(**kw):
    x = torch.randn(60, 4)
    return loaders(x, x[:,:3].argmax(1), **kw)
def images(**kw): return loaders(torch.randn(60,1,6,6), torch.randint(3, (60,)), **kw)
def words(**kw): return loaders(torch.randn(60,5,4), torch.randn(60,5,2), **kw)

def mlp(n): return nn.Sequential(nn.Linear(4,8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(.3), nn.Linear(8,n))
def conv(): return nn.Sequential(nn.Conv2d(1,4,3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64,3))

class Recurrent(nn.Module):
    "Like fastai's language models: returns the output, and the states before and after dropout"
    def __init__(self): super().__init__(); self.rnn,self.lin,self.resets = nn.GRU(4,6,batch_first=True),nn.Linear(6,2),0
    def reset(self): self.resets += 1
    def forward(self, x):
        raw,_ = self.rnn(x)
        out = F.dropout(raw, .2, self.training)
        return self.lin(out),[raw],[out]

TASKS = dict(numbers=(numbers, partial(mlp, 1), MSELossFlat, mse), classes=(classes, partial(mlp, 3), CrossEntropyLossFlat, accuracy),
             images=(images, conv, CrossEntropyLossFlat, accuracy), words=(words, Recurrent, MSELossFlat, None))

def halves(m):
    "Two parameter groups"
    ps = list(m.parameters())
    return [ps[:2], ps[2:]]
def sgd(lib): return partial(fopt.OptimWrapper, opt=partial(torch.optim.SGD, momentum=.9)) if lib=='fastai' else partial(torch.optim.SGD, momentum=.9)
def their_sgd(lib): return partial(fopt.SGD, mom=.9)

# scenarios
@dataclass
class Case:
    "The callbacks, how they are used, and which results are compared"
    cbs: Callable = list
    task: str = 'numbers'
    act: Callable = lambda learn: learn.fit(2)
    out: Callable = lambda learn, cbs: None
    lr: Any = .05
    opt: Callable = sgd
    # of the Recorder; fewer where fastai shifts columns, records cancelled batches, or loses all in get_preds
    record: str = 'rows lrs losses'
    kinds: tuple = KINDS
    kw: dict = field(default_factory=dict)

def attrs(*names): return lambda learn, cbs: [getattr(cbs[0], n) for n in names]
def files(learn): return sorted(str(p.relative_to(learn.path)) for p in learn.path.rglob('*') if p.is_file())
def fits(*args, **kw): return lambda learn: learn.fit(*args, **kw)
def spoil(i, split=0):
    "Return a function that sets a target of batch `i` to NaN, and fits"
    def f(learn): learn.dls.loaders[split].dataset[8*i][1].fill_(float('nan')); learn.fit(2)
    return f

class Means(fc.HookCallback):
    "A user's callback: stores the mean of every layer's output"
    def before_fit(self): self.means = []; super().before_fit()
    def hook(self, m, i, o): return o.mean().item()
    def after_batch(self): self.means.append(list(self.hooks.stored)); super().after_batch()

class Cancels(fc.Callback):
    "A user's callback: cancels batches, backward passes and steps, and ends epochs and the fit early"
    def before_batch(self):
        if self.training and self.iter==1: raise fc.CancelBatchException
    def before_step(self):
        if self.train_iter%3==2: raise fc.CancelStepException()
    def before_backward(self):
        if self.iter==3: raise fc.CancelBackwardException('no')
    def after_loss(self):
        if self.epoch==1 and self.iter==4: raise fc.CancelTrainException()
    def before_validate(self):
        if self.epoch==2: raise fc.CancelEpochException()
    def after_epoch(self):
        if self.epoch==3: raise fc.CancelFitException()

class Writes(fc.Callback):
    "A user's callback: changes every attribute that may be changed"
    def before_batch(self): self.learn.xb,self.learn.yb = (self.x*1.1,),tuple(y+.01 for y in self.yb)
    def after_pred(self):   self.learn.pred = self.pred*.9
    def after_loss(self):
        if self.training: self.learn.loss_grad = self.loss_grad*2; self.learn.loss = self.loss+1

def scheds(): return {'lr': fc.combined_cos(.3, 1e-3, .1, 1e-4), 'mom': fc.combined_cos(.3, .95, .85, .95)}
def by_group(): return {'lr': fc.SchedLin(np.array([1e-3,1e-2]), np.array([1e-2,1e-1])), 'wd': fc.SchedNo(.1,.1)}
def freeze_norm(learn):
    for p in learn.model[1].parameters(): p.requires_grad_(False)
    learn.fit(2)
def save_out(learn, cbs): return files(learn),cbs[0].last_saved_path.name,cbs[0].best
def csv_out(learn, cbs): return [row.split(',')[:-1] for row in (learn.path/'history.csv').read_text().splitlines()]
def find_out(learn, cbs): return sorted(str(p.relative_to(learn.path)) for p in learn.path.rglob('*'))
def stats_out(learn, cbs): return [dict(o) if isinstance(o, dict) else o for s in cbs[0].stats for o in s]
def preds_of(**kw):
    def act(learn): learn.fit(1); learn.got = learn.get_preds(**kw)
    return act
def got(learn, cbs): return learn.got

CASES = dict(
    plain            = Case(),
    metric           = Case(task='classes', kw=dict(metrics=True)),
    accum_metric     = Case(task='classes', kw=dict(metrics=AccumMetric(lambda p,t: (p==t).float().mean(), dim_argmax=-1, name='acc'))),
    their_adam       = Case(opt=lambda lib: fopt.Adam, lr=1e-2, kw=dict(wd=.1)),
    their_lookahead  = Case(opt=lambda lib: fopt.ranger, lr=1e-2),
    fit_again        = Case(act=lambda learn: [learn.fit(1), learn.fit(1, lr=.01), learn.fit(1, reset_opt=True)]),
    shuffled         = Case(kw=dict(shuffle=True)),
    # learnkit keeps the row with the NaN loss
    terminate        = Case(lambda: [fc.TerminateOnNaNCallback()], act=spoil(2), record='lrs losses'),
    terminate_valid  = Case(lambda: [fc.TerminateOnNaNCallback()], act=spoil(1, 1), record='lrs losses'),
    tracker          = Case(lambda: [fc.TrackerCallback()], out=attrs('best','new_best','idx'), act=fits(3)),
    early            = Case(lambda: [fc.EarlyStoppingCallback(patience=2, min_delta=9.)], out=lambda l,cbs: (cbs[0].wait, l.epoch), act=fits(6)),
    early_metric     = Case(lambda: [fc.EarlyStoppingCallback('accuracy')], 'classes', out=attrs('wait','best'), act=fits(6), kw=dict(metrics=True)),
    save             = Case(lambda: [fc.SaveModelCallback(fname='best')], act=fits(4), lr=.12, out=save_out),
    save_with_opt    = Case(lambda: [fc.SaveModelCallback(with_opt=True)], act=lambda l: [l.fit(3), l.fit(1)], lr=.12, out=save_out),
    save_every       = Case(lambda: [fc.SaveModelCallback(every_epoch=2)], act=fits(5), out=lambda l,cbs: files(l)),
    save_at_end      = Case(lambda: [fc.SaveModelCallback(at_end=True)], out=lambda l,cbs: files(l)),
    save_in_fit_cbs  = Case(act=lambda l: l.fit(3, cbs=[fc.SaveModelCallback(), fc.EarlyStoppingCallback(min_delta=9.)]), out=lambda l,cbs: files(l)),
    plateau          = Case(lambda: [fc.ReduceLROnPlateau(min_delta=9., min_lr=1e-4)], act=fits(6), opt=their_sgd,
                            out=lambda l,cbs: (l.opt.hypers[-1]['lr'], cbs[0].wait)),
    csv              = Case(lambda: [fc.CSVLogger()], out=csv_out, kw=dict(metrics=True)),
    csv_append       = Case(lambda: [fc.CSVLogger(append=True)], act=lambda l: [l.fit(1), l.fit(1)], out=csv_out),
    short_epoch      = Case(lambda: [fc.ShortEpochCallback(.3)], record='lrs losses'),
    short_train      = Case(lambda: [fc.ShortEpochCallback(.3, short_valid=False)], record='lrs losses'),
    accumulate       = Case(lambda: [fc.GradientAccumulation(16)], out=attrs('count')),
    accumulate_odd   = Case(lambda: [fc.GradientAccumulation(20)], out=attrs('count'), act=fits(3)),
    clip             = Case(lambda: [fc.GradientClip(.1)]),
    bn_freeze        = Case(lambda: [fc.BnFreeze()], act=freeze_norm, out=lambda l,cbs: [m.training for m in l.model]),
    collect          = Case(lambda: [fc.CollectDataCallback()], out=lambda l,cbs: cbs[0].data),
    fetch            = Case(lambda: [fc.FetchPredsCallback()], out=attrs('preds')),
    fetch_more       = Case(lambda: [fc.FetchPredsCallback(ds_idx=0, with_input=True, with_decoded=True, cbs=fc.MixUp), fc.MixUp()], 'classes', out=attrs('preds')),
    sched            = Case(lambda: [fc.ParamScheduler(scheds())], out=lambda l,cbs: l.recorder.hps),
    sched_groups     = Case(lambda: [fc.ParamScheduler(by_group())], out=lambda l,cbs: l.recorder.hps, kw=dict(splitter=halves)),
    lr_find          = Case(act=fits(4, cbs=fc.LRFinder(num_it=12)), out=find_out, record='lrs losses'),
    lr_find_diverges = Case(act=fits(9, cbs=fc.LRFinder(end_lr=1e4, num_it=30)), out=find_out, record='lrs losses'),
    lr_find_trackers = Case(lambda: [fc.SaveModelCallback(), fc.EarlyStoppingCallback(), fc.ReduceLROnPlateau()],
                            act=fits(4, cbs=fc.LRFinder(num_it=12)), out=find_out, record='lrs losses'),
    lr_find_then_fit = Case(act=lambda l: [l.fit(4, cbs=fc.LRFinder(num_it=12)), l.fit(2)]),
    act_stats        = Case(lambda: [fc.ActivationStats(with_hist=True)], out=stats_out),
    act_stats_every  = Case(lambda: [fc.ActivationStats(every=2)], out=stats_out),
    hook             = Case(lambda: [Means()], out=lambda l,cbs: (cbs[0].means, sum(len(m._forward_hooks) for m in l.model))),
    channels_last    = Case(lambda: [fc.ChannelsLast()], 'images', out=lambda l,cbs: l.model[0].weight.is_contiguous(memory_format=torch.channels_last)),
    mc_dropout       = Case(lambda: [fc.MCDropoutCallback()], act=preds_of(), out=got, record=''),
    mixup            = Case(lambda: [fc.MixUp()], out=lambda l,cbs: type(l.loss_func), kw=dict(metrics=True)),
    mixup_classes    = Case(lambda: [fc.MixUp(.3)], 'classes', out=lambda l,cbs: type(l.loss_func), kw=dict(metrics=True)),
    cutmix           = Case(lambda: [fc.CutMix()], 'images', out=lambda l,cbs: type(l.loss_func), kw=dict(metrics=True)),
    bf16             = Case(lambda: [fc.MixedPrecision('bf16')], out=lambda l,cbs: l.scaler),
    fp16             = Case(lambda: [fc.MixedPrecision()], out=lambda l,cbs: l.scaler),
    to_half          = Case(lambda: [fc.ModelToHalf(), fc.Callback(before_batch=lambda s: setattr(s.learn, 'xb', (s.x.half(),)), after_pred=lambda s: setattr(s.learn, 'pred', s.pred.float()))],
                            out=lambda l,cbs: [p.dtype for p in l.model.parameters()]),
    show_graph       = Case(lambda: [fc.ShowGraphCallback()], out=lambda l,cbs: cbs[0].nb_batches),
    skip_to          = Case(lambda: [SkipToEpoch(2)], act=fits(4), record='lrs losses', out=lambda l,cbs: l.epoch),
    # fastai counts up through the epochs it skips, and its progress bar needs the first
    start_epoch      = Case(lambda: [fc.ParamScheduler(scheds())], act=fits(4, start_epoch=2), record='lrs', kinds=('ours',), out=lambda l,cbs: l.recorder.hps),
    functions        = Case(lambda: [fc.Callback(before_fit=lambda s: setattr(s, 'seen', [s.n_epoch]), after_batch=lambda s: s.seen.append(s.train_iter))], out=attrs('seen')),
    batch_function   = Case(lambda: [before_batch_cb(lambda s,xb,yb: ((xb[0]*2,), yb))]),
    rnn              = Case(lambda: fc.rnn_cbs(2., 1.), 'words', out=lambda l,cbs: l.model.resets),
    cancels          = Case(lambda: [Cancels()], act=fits(6), record='', out=lambda l,cbs: l.epoch),
    writes           = Case(lambda: [Writes()]),
    together         = Case(lambda: [fc.MixUp(), fc.GradientAccumulation(16), fc.GradientClip(.5), fc.ParamScheduler(scheds()), fc.EarlyStoppingCallback(patience=3),
                                     fc.MixedPrecision('bf16'), fc.CSVLogger()], 'classes', act=fits(4), out=lambda l,cbs: l.recorder.hps),
    preds            = Case(act=preds_of(with_input=True, with_decoded=True, with_loss=True), task='classes', out=got, record=''),
    preds_train      = Case(act=preds_of(ds_idx=0), out=got, record='', kw=dict(shuffle=True)),
    preds_batches    = Case(act=lambda l: setattr(l, 'got', l.get_preds(dl=[(torch.ones(3,4), torch.ones(3,1)), (torch.zeros(2,4), torch.zeros(2,1))])), out=got, record=''),
    validate         = Case(act=lambda l: [l.fit(1), setattr(l, 'got', l.validate())], task='classes', out=lambda l,cbs: [round(float(o), 5) for o in l.got], kw=dict(metrics=True), record=''),
)

# running and comparing
class Theirs(FastLearner):
    "fastai's Learner, changed so that `get_preds` within a fit restores the random states, as it does in learnkit"
    def get_preds(self, *args, inner=False, **kwargs):
        before = get_random_states()
        res = super().get_preds(*args, inner=inner, **kwargs)
        if inner: set_random_states(**before)
        return res

def build(kind, case, path):
    "Return (Learner, callbacks) for a fixed seed: fastai's, or learnkit's with fastai's base callbacks or its own"
    set_seed(7)
    data,model,loss,metric = TASKS[case.task]
    kw = dict(case.kw)
    dls,model,cbs = data(**{k: kw.pop(k) for k in ('shuffle','rows','n') if k in kw}),model(),L(case.cbs())
    if kw.get('metrics') is True: kw['metrics'] = metric if kind=='ours' else AvgMetric(metric)
    kw.update(lr=case.lr, path=path, opt_func=case.opt('fastai' if kind=='fastai' else 'torch'))
    path.mkdir()
    if kind=='fastai':   learn = Theirs(dls, model, loss(), cbs=cbs, **kw)
    elif kind=='theirs': learn = Learner(dls, model, loss(), cbs=defaults.callbacks+cbs, default_cbs=False, **kw)
    else:                learn = Learner(dls, model, loss(), cbs=cbs, **kw)
    return learn,cbs

def printed_lines(text):
    "The lines of `text` without progress bars, which depend on timing, and without times"
    lines = re.sub(r'[^\n]*\r', '', text).splitlines()
    return [re.sub(r'\d+:\d\d', 'TIME', o).strip() for o in lines if not re.match(r'\W*Epoch \d+/\d+ :', o)]
def messages(lines): return [re.sub(r'(\.\d\d\d)\d+', r'\1', o) for o in lines if re.match('No improvement|Better model|Epoch', o)]

def train_case(kind, case, path, capsys):
    "Train; return the weights, the Recorder's rows, the printed lines, and what else the case compares"
    learn,cbs = build(kind, case, path)
    set_seed(8)
    case.act(learn)
    rec = learn.recorder
    record = dict(rows=lambda: [list(o) for o in rec.values], lrs=lambda: list(rec.lrs), losses=lambda: list(rec.losses))
    return dict(weights=list(learn.model.state_dict().values()), printed=printed_lines(capsys.readouterr().out), out=case.out(learn, cbs),
                **{k: record[k]() for k in case.record.split()})

def same(a, b, exact=True):
    "Return whether `a` and `b` are equal; if not `exact`, within a tolerance, as learnkit sums in double precision"
    if isinstance(a, str) and isinstance(b, str):
        try: return a==b or same(float(a), float(b), exact)
        except ValueError: return False
    if isinstance(a, dict): return a.keys()==b.keys() and all(same(a[k], b[k], exact) for k in a)
    if isinstance(a, (tuple,list,L)): return len(a)==len(b) and all(same(o, p, exact) for o,p in zip(a,b))
    if isinstance(a, (torch.Tensor,np.ndarray,float)) or isinstance(b, (torch.Tensor,np.ndarray,float)):
        a,b = (torch.as_tensor(o, dtype=torch.float64) for o in (a,b))
        return a.shape==b.shape and torch.allclose(a, b, rtol=0 if exact else 1e-5, atol=0 if exact else 1e-6, equal_nan=True)
    return type(a)==type(b) and (a==b or not isinstance(a, (int,bool,type(None),type,torch.dtype)))

def compare(case, kind, tmp_path, capsys):
    got,want = [train_case(k, case, tmp_path/k, capsys) for k in (kind,'fastai')]
    assert same(got['weights'], want['weights']), 'weights differ'
    if kind=='ours': got['printed'],want['printed'] = messages(got['printed']),messages(want['printed'])   # the table is learnkit's own
    for k in got: assert same(got[k], want[k], kind=='theirs'), f'{k}: {got[k]}\nfastai: {want[k]}'

@pytest.mark.parametrize('name,kind', [(n,k) for n,c in CASES.items() for k in c.kinds])
def test_case(name, kind, tmp_path, capsys): compare(CASES[name], kind, tmp_path, capsys)

POOL = dict(mixup=lambda: fc.MixUp(.3), accum=lambda: fc.GradientAccumulation(20), clip=lambda: fc.GradientClip(.2), sched=lambda: fc.ParamScheduler(scheds()),
            early=lambda: fc.EarlyStoppingCallback(patience=2), save=lambda: fc.SaveModelCallback(), csv=lambda: fc.CSVLogger(), bn=lambda: fc.BnFreeze(),
            mc=lambda: fc.MCDropoutCallback(), data=lambda: fc.CollectDataCallback(), fetch=lambda: fc.FetchPredsCallback(),
            stats=lambda: fc.ActivationStats(), amp=lambda: fc.MixedPrecision('bf16'), nan=lambda: fc.TerminateOnNaNCallback(),
            graph=lambda: fc.ShowGraphCallback(), metric=lambda: fc.EarlyStoppingCallback('accuracy', patience=3), verbose=lambda: before_batch_cb(lambda s,x,y: (x,y)))

@pytest.mark.parametrize('seed', range(12))
def test_mixtures(seed, tmp_path, capsys):
    "Several callbacks at once, added in random order"
    names = random.Random(seed).sample(sorted(POOL), 5)
    if {'early','metric'} <= {*names}: names.remove('metric')   # two of a class: in fastai one of them hides the other
    compare(Case(lambda: [POOL[n]() for n in names], 'classes', fits(3), kw=dict(metrics=True, shuffle=seed%2==0)), KINDS[seed%2], tmp_path, capsys)

# the events, and every Cancel
EVENTS = [e for e in vars(fast_event) if not e.startswith('_') and e!='after_create']
CANCELS = [getattr(fc, f'Cancel{n}Exception') for n in 'Batch Backward Step Train Valid Epoch Fit'.split()]

class Trace(fc.Callback):
    "Records fastai's events, and raises `exc` at event `at` of the first epoch where `training` equals `phase`"
    order = 5
    def __init__(self, at=None, exc=None, phase=True): self.at,self.exc,self.phase,self.calls = at,exc,phase,[]
    def __call__(self, ev):
        if ev not in EVENTS: return   # learnkit has more
        self.calls.append((ev, self.learn.training))
        if ev==self.at and self.learn.training==self.phase and self.epoch==0: raise self.exc

def trace(kind, at, exc, phase, path):
    learn,cbs = build(kind, Case(lambda: [Trace(at, exc, phase)], kw=dict(rows=24, n=16)), path)
    with learn.removed_cbs(learn.progress), learn.no_logging():
        try: learn.fit(2)
        except Exception as e: return type(e),cbs[0].calls
    return None,cbs[0].calls

@pytest.mark.parametrize('exc', CANCELS)
def test_every_cancel_of_fastai(exc, tmp_path, capsys):
    "Raised at any event, a Cancel is followed by the same events as in fastai; events where fastai fails are skipped"
    n = 0
    for i,(at,phase) in enumerate((a,p) for a in EVENTS for p in (True,False)):
        error,calls = trace('fastai', at, exc, phase, tmp_path/f'fastai{i}')
        if error is not None: continue
        n += 1
        for kind in KINDS: assert trace(kind, at, exc, phase, tmp_path/f'{kind}{i}')==(None, calls), (at, phase)
    assert n>=10

@pytest.mark.parametrize('kind', KINDS)
def test_verbose(kind, tmp_path, capsys):
    "VerboseCallback overrides `__call__`: it receives fastai's events in fastai's order, among learnkit's own"
    def printed_events(kind):
        build(kind, Case(lambda: [VerboseCallback()]), tmp_path/kind)[0].fit(2)
        return [o for o in re.findall('[a-z_]+', capsys.readouterr().out) if o in EVENTS+['after_create']]
    assert printed_events(kind)==printed_events('fastai')!=[]

# where learnkit does better
def test_plateau_lowers_the_optimizers_learning_rate(tmp_path, capsys):
    "ReduceLROnPlateau has no effect in fastai, whose OptimWrapper returns copies of the hyperparameters (D14)"
    learn,_ = build('ours', Case(lambda: [fc.ReduceLROnPlateau(min_delta=9., min_lr=1e-4)]), tmp_path/'a')
    learn.fit(4)
    assert learn.opt.opt.param_groups[0]['lr']==pytest.approx(.05/1000) or learn.opt.opt.param_groups[0]['lr']==1e-4
    assert 'reducing lr to' in capsys.readouterr().out

@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('exc', [ValueError, KeyboardInterrupt, fc.CancelEpochException])
def test_the_loss_is_restored_after_mixup(exc, kind, tmp_path, capsys):
    "MixUp replaces `learn.loss_func` until `after_train`, which an error skips: the Learner restores it (D1)"
    def boom(s):
        if s.training and s.iter==2 and s.epoch==0: raise exc('stop')
    learn,cbs = build(kind, Case(lambda: [fc.MixUp(), fc.Callback(after_loss=boom)], 'classes'), tmp_path/'a')
    loss = learn.loss_func
    if exc is fc.CancelEpochException: learn.fit(1)   # in a second epoch MixUp would wrap its own loss
    else:
        with pytest.raises(exc): learn.fit(2)
    assert learn.loss_func is loss
    learn.remove_cb(cbs[1]); learn.fit(1)

@pytest.mark.parametrize('kind', KINDS)
def test_csv_after_an_interrupt(kind, tmp_path, capsys):
    "In fastai an interrupt leaves CSVLogger's logger in place, and the next fit recurses forever (D1)"
    def boom(s): raise KeyboardInterrupt
    learn,cbs = build(kind, Case(lambda: [fc.CSVLogger(), fc.Callback(after_batch=boom)]), tmp_path/'a')
    logger = learn.logger
    with pytest.raises(KeyboardInterrupt): learn.fit(1)
    assert learn.logger==logger
    learn.remove_cb(cbs[1]); learn.fit(2)
    assert len(csv_out(learn, cbs))==3

@pytest.mark.parametrize('kind', KINDS)
def test_validate_leaves_files_alone(kind, tmp_path, capsys):
    "In fastai `validate` truncates history.csv, monitors the wrong column and overwrites the best model (D4)"
    learn,cbs = build(kind, Case(lambda: [fc.CSVLogger(), fc.SaveModelCallback()], kw=dict(metrics=True)), tmp_path/'a')
    learn.fit(2)
    rows,values,best,model = csv_out(learn, cbs),list(learn.recorder.values),cbs[1].best,(learn.path/'models/model.pth').read_bytes()
    with torch.no_grad(): learn.model[0].weight.mul_(0)
    learn.validate(); learn.get_preds()
    assert csv_out(learn, cbs)==rows and cbs[1].best==best and (learn.path/'models/model.pth').read_bytes()==model
    if kind=='ours': assert list(learn.recorder.values)==values

def test_short_epochs_and_trackers(tmp_path, capsys):
    "A cancelled validation has no loss to compare: fastai's trackers must count it as no improvement, not raise (D11)"
    learn,cbs = build('ours', Case(lambda: [fc.ShortEpochCallback(.3), fc.EarlyStoppingCallback(patience=3), fc.TrackerCallback()]), tmp_path/'a')
    learn.fit(4)
    assert learn.epoch==2 and learn.recorder.metric_names[1:3]==['train_loss','valid_loss']

def test_start_epoch_and_trackers(tmp_path, capsys):
    "In fastai `start_epoch` with any tracker raises an IndexError (D9)"
    learn,cbs = build('ours', Case(lambda: [fc.EarlyStoppingCallback(patience=9), fc.SaveModelCallback(), fc.ShowGraphCallback()]), tmp_path/'a')
    learn.fit(4, start_epoch=2)
    assert len(learn.recorder.values)==2

@pytest.mark.parametrize('kind', KINDS)
def test_fetch_and_validate(kind, tmp_path, capsys):
    "In fastai `validate` deadlocks on its own lock if FetchPredsCallback was added (D6)"
    learn,cbs = build(kind, Case(lambda: [fc.FetchPredsCallback()]), tmp_path/'a')
    learn.fit(1); n = len(learn.cbs)
    learn.validate()
    assert cbs[0].preds[0].shape==(20,1) and len(learn.cbs)==n

@pytest.mark.parametrize('kind', KINDS)
def test_argless_errors(kind, tmp_path, capsys):
    "fastai's Callback reads `e.args[0]`, which fails without arguments; the Learner still works afterwards (D18)"
    learn,cbs = build(kind, Case(lambda: [fc.Callback(before_step=lambda s: (_ for _ in ()).throw(ValueError))]), tmp_path/'a')
    with pytest.raises((ValueError, IndexError)): learn.fit(1)
    learn.remove_cb(cbs[0]); learn.fit(1)
