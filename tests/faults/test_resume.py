"""A run that is killed at any point and resumed ends like an uninterrupted one: weights, optimizer, history and random
numbers are the same, bit for bit."""
import random, subprocess, sys, warnings
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np, pytest, torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler, TensorDataset, WeightedRandomSampler

from learnkit.all import Adam, AvgMetric, Callback, CancelFit, L, Learner, NonFiniteCheck, Recorder, TrainEvalCallback, get_random_states, set_random_states, set_seed
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.data.seeded import SeededLoader
from learnkit.callbacks.intervals import Every
from learnkit.callbacks.cycles import ValidateEvery
from learnkit.callbacks.accumulate import GradientAccumulation
from learnkit.callbacks.gradients import GradientClip
from learnkit.callbacks.accumulate import MicroBatch
from learnkit.callbacks.averages import EMACallback
from learnkit.callbacks.mixup import MixUp
from learnkit.callbacks.handlers import Filter
from learnkit.callbacks.handlers import OnCallback
from learnkit.callbacks.precision import MixedPrecision
from learnkit.callbacks.schedules import TorchScheduler
from learnkit.learner.fit import ShortEpochCallback
from learnkit.callbacks.trackers import EarlyStoppingCallback, TerminateOnNaNCallback
from learnkit.callbacks.trackers import ReduceLROnPlateau
from learnkit.callbacks.trackers import SaveModelCallback
from learnkit.recovery.file import checkpoint_info, list_checkpoints, newest_checkpoint, read_checkpoint, write_checkpoint
from learnkit.data.files import to_serializable
from learnkit.measure.history import decode_rows
from toys import equal, few, slow

pytestmark = few(10_000, 2)   # of the slow cases of each test; all with LEARNKIT_SWEEP=1

torch.set_num_threads(1)
N,BS,EPOCHS = 26,4,3   # 7 batches an epoch, the last one is short
PER = -(-N//BS)

class Noisy(Dataset):
    "Random augmentation with all three generators"
    def __len__(self): return N
    def __getitem__(self, i):
        x = torch.tensor([i/N, random.random(), float(np.random.rand()), float(torch.rand(()))])
        return x, x.sum()[None]

class Lists(Noisy):
    "Makes a batch of a list of indices"
    def __getitem__(self, idxs): return tuple(map(torch.stack, zip(*map(super().__getitem__, idxs))))

class Stream(IterableDataset):
    "A stream that draws random numbers"
    def __iter__(self):
        for i in range(N): x = torch.tensor([i/N, random.random(), float(np.random.rand()), float(torch.rand(()))]); yield x, x.sum()[None]

class Crash(Callback):
    "Kills the run at event `at` when `train_iter` is `n`"
    order,acts = 10_000,'nothing'
    def __init__(self, n, at='after_batch', valid=False): self.n,self.at,self.valid = n,at,valid; setattr(self, at, self.act)
    def act(self):
        if self.train_iter==self.n and self.training!=self.valid and self.learn.mode=='fit': raise SystemError('the power failed')

def model(): return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(.3), nn.Linear(8, 1))

def learner(path, cbs=(), every='2ba', workers=0, data=None, opt=Adam, valid=None, **kwargs):
    set_seed(42)
    data = data or (lambda: DataLoader(Noisy(), BS, shuffle=True, num_workers=workers))
    valid = DataLoader(Noisy(), BS) if valid is None else valid()
    learn = Learner((data(), valid), model(), nn.MSELoss(), opt, lr=.01, path=path, default_cbs=False, metrics=[AvgMetric(nn.L1Loss(), 'l1')],
                    cbs=[TrainEvalCallback, Recorder(train_metrics=True), NonFiniteCheck, CheckpointCallback(every, **kwargs), *(cb() for cb in cbs)])
    learn.logger = lambda row: None
    return learn

def fit(learn, n=EPOCHS, **kwargs): learn.fit(n, resume='auto', **kwargs); return learn

def end(learn):
    "The final state of a run"
    rec = learn.recorder
    return dict(model={k:v.clone() for k,v in learn.model.state_dict().items()}, opt=learn.opt.state_dict(), history=[{k:v for k,v in r.items() if k!='time'} for r in rec.history],
                lrs=rec.lrs, hps=rec.hps, group_hps=rec.group_hps, losses=rec.smooth_loss.raw, iters=rec.iters, train_iter=learn.train_iter, rng=get_random_states(), state=dict(learn.state),
                cbs={cb.key:_timeless(cb.state_dict()) for cb in learn.cbs if cb.name not in ('recorder','checkpoint')})

def _timeless(state):
    if 'history' in state: state = {**state, 'history':[{k:v for k,v in r.items() if k!='time'} for r in decode_rows(state['history'])]}
    return state

def assert_same(a, b):
    for k in a: assert equal(a[k], b[k]), f'{k} differs: {a[k]}\n{b[k]}'

def stopped(make, *crashes, n=EPOCHS):
    "Run until each of `crashes`, resuming in between, and finally to the end; return the last Learner"
    for crash in crashes:
        with pytest.raises(SystemError): fit(make(), n, cbs=crash)
        random.random(), torch.rand(3), np.random.rand()   # another process would have other numbers
    return fit(make(), n)

@pytest.mark.parametrize('k', [1, *slow(*range(2, PER)), PER, *slow(*range(PER+1, EPOCHS*PER)), EPOCHS*PER])
def test_killed_after_every_batch(k, tmp_path):
    straight = end(fit(learner(tmp_path/'a')))
    assert_same(straight, end(stopped(lambda: learner(tmp_path/'b'), Crash(k))))

@few(4, 4)
@pytest.mark.parametrize('at,valid', [('before_epoch',True), ('before_train',False), ('before_batch',False), ('after_pred',False), ('after_backward',False), ('after_step',False),
                                      ('after_train',False), ('before_validate',True), ('after_pred',True), ('after_validate',True), ('after_epoch',True), ('before_save_checkpoint',False),
                                      ('after_save_checkpoint',False), ('after_fit',True)])
def test_killed_at_every_event_of_an_epoch(at, valid, tmp_path):
    n,every = EPOCHS*PER if at=='after_fit' else PER,'7ba' if 'save' in at else '2ba'
    straight = end(fit(learner(tmp_path/'a', every=every)))
    assert_same(straight, end(stopped(lambda: learner(tmp_path/'b', every=every), Crash(n, at, valid))))

@pytest.mark.parametrize('data', [lambda: DataLoader(Noisy(), BS, shuffle=True), lambda: DataLoader(Stream(), BS)])
def test_generator_states_are_saved_as_bytes(data, tmp_path):
    "Generator states of the beginning of the epoch were lists of 625 and 624 numbers, most of the file"
    def long(o): return isinstance(o, (list,tuple)) and len(o)>100 or any(map(long, o.values() if isinstance(o, dict) else o if isinstance(o, (list,tuple)) else ()))
    straight = end(fit(learner(tmp_path/'a', data=data)))
    with pytest.raises(SystemError): fit(learner(tmp_path/'b', data=data), cbs=Crash(PER+5))
    state = read_checkpoint(next((tmp_path/'b').rglob(f'step-*{PER+5}.pth')))
    assert type(state['place']['begun']['rng']['random_state'][1]) is bytes and not long(state)
    random.random(), torch.rand(3), np.random.rand()
    assert_same(straight, end(fit(learner(tmp_path/'b', data=data))))

def test_crash_after_crash(tmp_path):
    straight = end(fit(learner(tmp_path/'a')))
    assert_same(straight, end(stopped(lambda: learner(tmp_path/'b'), *(Crash(k) for k in (1, 3, 5, 5, 8, 14, 15, 21)))))

def seeded(*args, **kwargs): return SeededLoader(DataLoader(Noisy(), BS, shuffle=True, **kwargs), seed=3)

def test_workers_do_not_matter(tmp_path):
    "A run with a `SeededLoader` may resume with another number of workers"
    straight,workers = end(fit(learner(tmp_path/'a', data=seeded))),iter((2, 0, 1))
    assert_same(straight, end(stopped(lambda: learner(tmp_path/'b', data=lambda: seeded(num_workers=next(workers))), Crash(5), Crash(11))))

def test_another_number_of_workers_is_reported(tmp_path):
    with pytest.raises(SystemError): fit(learner(tmp_path, workers=1), cbs=Crash(5))
    with pytest.warns(UserWarning, match='num_workers was 1 and is now 2'): fit(learner(tmp_path, workers=2))

def test_settings_of_workers_do_not_matter(tmp_path):
    ends = []
    for i,(workers,stay,ahead) in enumerate([(0,False,None), (1,True,4), (2,False,1), (2,True,2), (4,True,3)]):
        ends.append(end(fit(learner(tmp_path/str(i), every='1h', data=lambda: seeded(num_workers=workers, persistent_workers=stay, prefetch_factor=ahead)), 2)))
    for e in ends[1:]: assert_same(ends[0], e)

@pytest.mark.slow
@pytest.mark.parametrize('k', [1, 2, 4, 7])
def test_every_batch_of_an_accumulation(k, tmp_path):
    """With 10 samples a step and 4 a batch, most batches end with accumulated gradients. After the last of an epoch,
    the resumed run takes a step before any batch, which raised an AttributeError."""
    cbs = [lambda: GradientAccumulation(10)]
    straight = end(fit(learner(tmp_path/'a', cbs, every='1ba'), 2))
    assert_same(straight, end(stopped(lambda: learner(tmp_path/'b', cbs, every='1ba'), Crash(k), n=2)))

@few(1, 2)
@pytest.mark.parametrize('event', ['before_validate', 'before_batch', 'after_pred', 'after_loss', 'after_batch', 'after_validate'])
def test_killed_at_every_event_of_a_validation(event, tmp_path):
    "Also in its last batch; the validation loader draws random numbers, too"
    straight = end(fit(learner(tmp_path/'a'), 2))
    def crash(self):
        if not self.learn.training and self.learn.epoch==1 and (event.endswith('validate') or self.learn.iter==PER-1): raise SystemError('the power failed')
    cb = Callback(**{event:crash})
    cb.order,cb.acts = 10_000,'nothing'
    assert_same(straight, end(stopped(lambda: learner(tmp_path/'b'), cb, n=2)))

@few(2, 2)
@pytest.mark.parametrize('every', ['1ba', '3ba', '1ep', '2ep', '10sp', '0.2dur', '1h'])
def test_the_checkpoint_interval_does_not_matter(every, tmp_path):
    straight = end(fit(learner(tmp_path/'a', every='1ep')))
    assert_same(straight, end(stopped(lambda: learner(tmp_path/'b', every=every), Crash(4), Crash(12))))

@few(3, 2)
@pytest.mark.parametrize('data', [lambda: DataLoader(Stream(), BS), lambda: DataLoader(TensorDataset(torch.arange(4.*N).view(N,4)/N, torch.ones(N,1)), BS, shuffle=True),
    lambda: [(torch.full((BS,4), i/9.), torch.ones(BS,1)) for i in range(PER)], lambda: Batches(),
    lambda: DataLoader(Noisy(), batch_sampler=BatchSampler(WeightedRandomSampler(torch.arange(1., N+1), N), BS, False)),
    lambda: DataLoader(Noisy(), BS, shuffle=True, generator=torch.Generator()), lambda: DataLoader(Lists(), batch_size=None, sampler=BatchSampler(RandomSampler(range(N)), BS, False))],
    ids=['iterable','tensors','list','python','weighted','generator','items'])
def test_any_data(data, tmp_path):
    straight = end(fit(learner(tmp_path/'a', data=data)))
    assert_same(straight, end(stopped(lambda: learner(tmp_path/'b', data=data), Crash(3), Crash(12))))

class Batches:
    "An iterable of batches that is no DataLoader"
    def __iter__(self):
        for i in range(PER): x = torch.rand(BS, 4) + random.random(); yield x, x.sum(1, keepdim=True)

def test_data_that_draws_does_not_change_the_training(tmp_path):
    "With a `SeededLoader` dropout draws the same random numbers, whether the data is made in this process or in workers"
    assert_same(end(fit(learner(tmp_path/'a', data=seeded))), end(fit(learner(tmp_path/'b', data=lambda: seeded(num_workers=2)))))

_cbs = dict(stop=lambda: EarlyStoppingCallback('valid_loss', patience=1), plateau=lambda: ReduceLROnPlateau('valid_loss', patience=1, factor=2.),
            best=lambda: SaveModelCallback('valid_loss'), mid=lambda: ValidateEvery('3ba'), accumulate=lambda: GradientAccumulation(10), micro=lambda: MicroBatch(2),
            ema=lambda: EMACallback(.9), bf16=lambda: MixedPrecision('bf16'), fp16=lambda: MixedPrecision('fp16', growth_interval=3), mixup=MixUp, clip=lambda: GradientClip(.1),
            short=lambda: ShortEpochCallback(.6), nan=TerminateOnNaNCallback, on=lambda: OnCallback(lambda learn: None, 'after_step', Filter(every=2)),
            interval=lambda: OnCallback(lambda learn: None, 'before_step', Filter(every='3ba')))
@few(4, 3)
@pytest.mark.parametrize('name', _cbs)
@pytest.mark.parametrize('k', [*slow(4), 8, *slow(13)])
def test_with_a_callback(name, k, tmp_path):
    cbs = [_cbs[name], lambda: Seen()]
    straight,resumed = end(fit(learner(tmp_path/'a', cbs))),end(stopped(lambda: learner(tmp_path/'b', cbs), Crash(k)))
    for o in (straight, resumed): o['cbs'].get('save_model', {}).pop('saved', None)   # their folders differ
    assert_same(straight, resumed)

@pytest.mark.parametrize('k', [*slow(3, 7), 9, *slow(16)])
def test_with_all_callbacks(k, tmp_path):
    cbs = [lambda: EarlyStoppingCallback('valid_loss', patience=4), *(_cbs[n] for n in ('accumulate', 'ema', 'fp16', 'mixup', 'clip', 'best', 'mid'))]
    straight,resumed = end(fit(learner(tmp_path/'a', cbs, every='1ba'))),end(stopped(lambda: learner(tmp_path/'b', cbs, every='1ba'), Crash(k)))
    for o in (straight, resumed): o['cbs'].get('save_model', {}).pop('saved', None)
    assert_same(straight, resumed)

class Seen(Callback):
    "Counts batches in `learn.state` and in an attribute of its own"
    saves = ('n',)
    n = 0
    def after_batch(self): self.n += 1; self.learn.state.seen = self.learn.state.get('seen', 0) + 1

def test_two_callbacks_of_a_class_keep_their_state(tmp_path):
    cbs = [Seen, Seen]
    learn = stopped(lambda: learner(tmp_path, cbs), Crash(9))
    assert [cb.n for cb in learn.cbs if isinstance(cb, Seen)]==[2*EPOCHS*PER]*2

_policies = dict(one_cycle=lambda l,cbs: l.fit_one_cycle(EPOCHS, .02, cbs=cbs, resume='auto'), flat_cos=lambda l,cbs: l.fit_flat_cos(EPOCHS, .02, cbs=cbs, resume='auto'),
                 sgdr=lambda l,cbs: l.fit_sgdr(2, 1, .02, cbs=cbs, resume='auto'), fine_tune=lambda l,cbs: l.fine_tune(2, .02, cbs=cbs, resume='auto'),
                 torch_epoch=lambda l,cbs: l.fit(EPOCHS, cbs=[TorchScheduler(partial(torch.optim.lr_scheduler.StepLR, step_size=1, gamma=.5)), *L(cbs)], resume='auto'),
                 torch_step=lambda l,cbs: l.fit(EPOCHS, cbs=[TorchScheduler(partial(torch.optim.lr_scheduler.CosineAnnealingLR, T_max=15), 'step'), *L(cbs)], resume='auto'))
def halves(m): return [list(m[:2].parameters()), list(m[2:].parameters())]

@few(2, 3)
@pytest.mark.parametrize('policy', _policies)
@pytest.mark.parametrize('k', [*slow(2, 5, 7), 9, *slow(13)])
def test_policies(policy, k, tmp_path):
    def make(path): learn = learner(path); learn.splitter = halves; return learn
    learn = make(tmp_path/'a')
    _policies[policy](learn, None)
    straight = end(learn)
    with pytest.raises(SystemError): _policies[policy](make(tmp_path/'b'), Crash(k))
    random.random(), torch.rand(3), np.random.rand()
    learn = make(tmp_path/'b')
    _policies[policy](learn, None)
    assert_same(straight, end(learn))

def test_a_longer_run(tmp_path):
    "`n` is the total number of epochs: 2, then 4, are 4"
    assert_same(end(fit(learner(tmp_path/'a'), 4)), end((fit(learner(tmp_path/'b'), 2), fit(learner(tmp_path/'b'), 4))[1]))

def test_two_fits_in_a_script(tmp_path):
    def both(path, crash=None):
        learn = learner(path)
        fit(learn, 1, cbs=crash if crash and crash.n<=PER else None)
        return fit(learn, 2, cbs=crash)
    straight = end(both(tmp_path/'a'))
    with pytest.raises(SystemError): both(tmp_path/'b', Crash(9))
    assert_same(straight, end(both(tmp_path/'b')))

def test_a_finished_run_does_nothing(tmp_path):
    fit(learner(tmp_path))
    before = {p:p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()}
    learn = fit(learner(tmp_path), cbs=Crash(0, 'before_epoch'))
    assert {p:p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()}==before and len(learn.recorder.history)==EPOCHS

# files

@few(3, 2)
@pytest.mark.parametrize('fault', ['truncated', 'flipped', 'missing', 'empty', 'no note', 'note damaged', 'swapped', 'note foreign'])
def test_a_damaged_file_is_named_and_the_one_before_it_used(fault, tmp_path):
    straight = end(fit(learner(tmp_path/'a')))
    with pytest.raises(SystemError): fit(learner(tmp_path/'b'), cbs=Crash(12))
    folder = tmp_path/'b'/'checkpoints'/'fit-1'
    new,old,*_ = list_checkpoints(folder)
    data,note = new.read_bytes(),new.with_suffix('.json')
    match fault:
        case 'truncated':    new.write_bytes(data[:-100])
        case 'flipped':      new.write_bytes(data[:999] + bytes([data[999]^4]) + data[1000:])
        case 'missing':      new.unlink()
        case 'empty':        new.write_bytes(b'')
        case 'no note':      note.unlink()
        case 'note damaged': note.write_text(note.read_text()[:40])
        case 'swapped':      new.write_bytes(old.read_bytes())
        case 'note foreign': note.write_text('[1, 2]')
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter('always')
        assert_same(straight, end(fit(learner(tmp_path/'b'))))
    if fault!='no note': assert any(new.stem in str(o.message) and 'Using the previous checkpoint instead' in str(o.message) for o in w)

def test_every_damaged_byte_raises(tmp_path):
    path = write_checkpoint(fit(learner(tmp_path))._run_state(EPOCHS), tmp_path/'x'/'step-00000001.pth')
    data = path.read_bytes()
    for i in range(0, len(data), max(1, len(data)//100)):
        path.write_bytes(data[:i] + bytes([data[i]^1]) + data[i+1:])
        with pytest.raises(ValueError, match='damaged'): read_checkpoint(path)

def test_disk_full(tmp_path, monkeypatch):
    "Without room for a checkpoint, training continues with a warning, and the last good one stays"
    straight = end(fit(learner(tmp_path/'a')))
    save,calls = torch.save,[]
    def full(obj, f, **kwargs):
        calls.append(1)
        if len(calls)>2: f.write(b'half of it'); raise OSError(28, 'No space left on device')
        return save(obj, f, **kwargs)
    with monkeypatch.context() as m, warnings.catch_warnings(record=True) as w:
        warnings.simplefilter('always')
        m.setattr(torch, 'save', full)
        learn = fit(learner(tmp_path/'b'))
    assert_same(straight, end(learn))
    assert sum('No space left' in str(o.message) and 'Training continues' in str(o.message) for o in w)==len(calls)-2>3
    folder = learn.checkpoint.folder
    assert newest_checkpoint(folder)[1]['train_iter']==4 and not list(folder.glob('.*'))
    assert_same(straight, end(fit(learner(tmp_path/'b'))))

def test_disk_full_raises_on_request(tmp_path, monkeypatch):
    def full(*args, **kwargs): raise OSError(28, 'No space left on device')
    monkeypatch.setattr(torch, 'save', full)
    with pytest.raises(OSError, match='No space left'): fit(learner(tmp_path, on_error='raise'))

def test_checkpoints_in_the_background(tmp_path):
    straight = end(fit(learner(tmp_path/'a')))
    assert_same(straight, end(stopped(lambda: learner(tmp_path/'b', background=True), Crash(5), Crash(13))))

def test_background_is_a_snapshot(tmp_path):
    "Weights that change while a checkpoint is written are not in it"
    learn = learner(tmp_path)
    fit(learn, 1)
    state = learn._run_state(1, copy=True)
    before = {k:v.clone() for k,v in state['model'].items()}
    with torch.no_grad():
        for p in learn.model.parameters(): p.add_(1)
    for v in learn.opt.state.values(): v['exp_avg'].add_(1)
    assert equal(state['model'], before)
    assert all((s['exp_avg']!=learn.opt.state[p]['exp_avg']).all() for s,p in zip(state['opt']['state'].values(), learn.opt.state))

def test_keep_and_best(tmp_path):
    learn = fit(learner(tmp_path, keep=2, best='valid_loss', n_best=1), 6)
    left = list_checkpoints(learn.checkpoint.folder)
    infos = [checkpoint_info(p) for p in left]
    values = [i['value'] for i in infos if i.get('value') is not None]
    assert min(values)==min(learn.recorder.history['valid_loss']) and len(left)<=3
    assert any(i.get('results', {}).get('valid_loss')==min(values) for i in infos)

def test_only_data_is_read(tmp_path):
    "The file is loaded with `weights_only=True`, and contains no class of learnkit"
    learn = fit(learner(tmp_path))
    for p in list_checkpoints(learn.checkpoint.folder): assert torch.load(p, weights_only=True)['version']==3

def test_a_newer_format_raises(tmp_path):
    learn = fit(learner(tmp_path))
    state = learn._run_state(3)
    before = end(learn)
    with pytest.raises(ValueError, match='update learnkit'): learn._restore({**state, 'version':99})
    with pytest.raises(ValueError, match='lacks rng'): learn._restore({k:v for k,v in state.items() if k!='rng'})
    with pytest.raises(ValueError, match='another model'): learn._restore({**state, 'model':{'x':torch.zeros(1)}})
    assert_same(before, end(learn))

def test_resume_from_an_older_checkpoint(tmp_path):
    "Later checkpoints would pass for the new run's newest ones, so it raises without `overwrite=True`"
    make = lambda **kwargs: learner(tmp_path, every='1ep', keep=2, **kwargs)
    first = fit(learner(tmp_path, every='1ep', keep=9), 5)
    folder,before = first.checkpoint.folder,end(first)
    old = next(p for p in list_checkpoints(folder) if '-epoch-1' in p.stem)
    names = sorted(p.name for p in folder.iterdir())
    learn = make()
    learn.opt_func,weights = Adam,{k:v.clone() for k,v in learn.model.state_dict().items()}
    with pytest.raises(ValueError, match=f'later checkpoints than {old.name}'): learn.fit(5, resume=old)
    assert sorted(p.name for p in folder.iterdir())==names and equal(weights, learn.model.state_dict())
    with pytest.raises(SystemError): make(overwrite=True).fit(5, cbs=Crash(3*PER+1), resume=old)
    assert checkpoint_info(list_checkpoints(folder)[0])['train_iter']==3*PER
    assert_same(before, end(fit(make(), 5)))

def test_resume_from_a_checkpoint_of_another_folder(tmp_path):
    "Earlier checkpoints of a different run in the folder would mix with those of this run; they used to stay unnoticed"
    make = lambda name, **kwargs: learner(tmp_path/name, every='2ba', keep=None, **kwargs)
    folders = {}
    for name,n in dict(a=9, b=5).items():
        learn = make(name)
        folders[name] = tmp_path/name/'checkpoints'/'fit-1'
        with pytest.raises(SystemError): fit(learn, cbs=Crash(n))
    start,names = list_checkpoints(folders['a'])[0],sorted(p.name for p in folders['b'].iterdir())
    with pytest.raises(ValueError, match='has checkpoints of an earlier run'): make('b').fit(EPOCHS, resume=start)
    assert sorted(p.name for p in folders['b'].iterdir())==names
    learn = make('b', overwrite=True)
    learn.fit(EPOCHS, resume=start)
    assert min(checkpoint_info(p)['train_iter'] for p in list_checkpoints(folders['b']))==10
    assert_same(end(fit(make('a'))), end(learn))

@pytest.mark.parametrize('how', ['raises','another raises','cancelled'])
def test_a_fit_that_does_not_begin_writes_nothing(how, tmp_path):
    """A fit that ends in `before_fit` neither writes nor deletes checkpoints; with `on_exception=True` it used to delete
    those of the run that owns the folder, and if cancelled it saved an end of the previous fit"""
    learn = learner(tmp_path, every='2ba', keep=None)
    learn.fit(1)
    files = {p:p.read_bytes() for p in learn.checkpoint.folder.iterdir()}
    def stop(cb): raise CancelFit if how=='cancelled' else SystemError
    if how=='raises':
        with pytest.raises(ValueError, match='of an earlier run'): learner(tmp_path, keep=1, on_exception=True).fit(1)
    else:
        learn.checkpoint.on_exception = True
        first = Callback(before_fit=stop)
        first.order = -1000
        with suppress(SystemError): learn.fit(2, cbs=first)
    assert {p:p.read_bytes() for p in learn.checkpoint.folder.iterdir()}==files
    assert [p.name for p in learn.checkpoint.folder.parent.iterdir()]==['fit-1']

def test_epoch_10_comes_after_epoch_9(tmp_path):
    "Also if no batch was trained in between"
    state = fit(learner(tmp_path), 1)._run_state(1)
    for n in ('00000008-epoch-9', '00000008-epoch-10', '00000008', '99999999', '100000000'): write_checkpoint(state, tmp_path/f'step-{n}.pth')
    assert [p.stem.removeprefix('step-') for p in list_checkpoints(tmp_path)]==['100000000', '99999999', '00000008-epoch-10', '00000008-epoch-9', '00000008']

def test_other_metrics_in_training_are_reported(tmp_path):
    with pytest.raises(SystemError): fit(learner(tmp_path), cbs=Crash(9))
    learn = learner(tmp_path)
    learn.metrics = []
    with pytest.raises(ValueError, match='computed 2 values in training, including the loss, but this run computes 1'): fit(learn)

def test_a_metric_more_or_less(tmp_path):
    "Each column of the history keeps its name"
    with pytest.raises(SystemError): fit(learner(tmp_path), cbs=Crash(9))
    for metrics in ([], [AvgMetric(nn.L1Loss(), 'l1'), AvgMetric(nn.MSELoss(), 'l2')]):
        learn = learner(tmp_path)
        learn.recorder.train_metrics,learn.metrics = False,metrics
        for p in list_checkpoints(tmp_path/'checkpoints'/'fit-1'):   # as if there had been none in training
            state = read_checkpoint(p)
            state['cbs']['recorder']['train'] = state['cbs']['recorder']['train'][:1]
            write_checkpoint(state, p)
        fit(learn, n=2 if not metrics else 3)
        history = learn.recorder.history
        assert history['valid_loss'][0] is not None and len({len(r) for r in history.cells()})==1
        for c,r in zip(history.cells()[1:], history): assert dict(zip(history.cells()[0], c))['time']==r['time']
    assert history['l2'][0] is None and history['l2'][-1]>0 and history['valid_l1'][-1] is None
    with pytest.raises(KeyError, match='no column `l3`'): history['l3']

@pytest.mark.parametrize('what,error,words', [('nope.pth', ValueError, 'there is no such file'), ('Auto', ValueError, 'there is no such file'), (True, TypeError, "'auto', or the path"),
                                              ('models/m.pth', ValueError, 'or was written by something else'), ('models', ValueError, 'there is no such file')])
def test_a_path_without_a_checkpoint_raises(what, error, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    learn = learner(tmp_path)
    learn.save('m')
    with pytest.raises(error, match=words): learn.fit(1, resume=what)

@pytest.mark.parametrize('bad', [dict(keep=0), dict(keep=1.5), dict(n_best=0), dict(on_error='ignore'), dict(every='500 batches'), dict(best='nothing_of_that_name')])
def test_bad_settings(bad, tmp_path):
    with pytest.raises((ValueError, TypeError)): fit(learner(tmp_path, **bad))
    assert not list(tmp_path.rglob('*.pth'))

def test_without_resume_nothing_is_overwritten(tmp_path):
    fit(learner(tmp_path))
    with pytest.raises(ValueError, match="pass `resume='auto'`"): learner(tmp_path).fit(1)
    learner(tmp_path, overwrite=True).fit(1)

def test_a_damaged_note_does_not_stop_a_run(tmp_path):
    class Damage(Callback):
        order = 20_000
        def after_epoch(self):
            if self.epoch==0: list_checkpoints(self.learn.checkpoint.folder)[0].with_suffix('.json').write_text('{"sha')
    with pytest.warns(UserWarning, match='not counted among the best'):
        learn = learner(tmp_path, best='valid_loss', every='1ep')
        fit(learn, cbs=Damage())
    assert len(learn.recorder.history)==EPOCHS

def test_trained_samples_are_not_loaded_again(tmp_path):
    "The position in a map-style dataset is found by counting: no sample already trained is loaded again"
    class Counted(Dataset):
        made = 0
        def __len__(self): return 5_000
        def __getitem__(self, i): Counted.made += 1; return torch.full((4,), i/5_000), torch.ones(1)
    def make(): return learner(tmp_path, data=lambda: DataLoader(Counted(), 100, shuffle=True), every='45ba')
    with pytest.raises(SystemError): fit(make(), 1, cbs=Crash(47))
    Counted.made = 0
    fit(make(), 1)
    assert Counted.made==5_000 - 45*100

@pytest.mark.parametrize('workers', [0, 2])
@few(1)
def test_late_in_a_long_epoch(workers, tmp_path):
    "At 95 % of a million samples: no sample already trained is loaded again"
    N,BS,done = 10**6,5000,190
    class Long(Dataset):
        made = torch.zeros((), dtype=torch.long).share_memory_()
        def __len__(self): return N
        def __getitems__(self, idxs): Long.made += len(idxs); x = torch.tensor(idxs)[:,None]/N; return [(x.expand(-1, 4), x)]
    def make(): return learner(tmp_path, data=lambda: DataLoader(Long(), BS, shuffle=True, num_workers=workers, collate_fn=lambda b: b[0]), every='190ba')
    with pytest.raises(SystemError): fit(make(), 1, cbs=Crash(done))
    Long.made.zero_()
    resumed = fit(make(), 1)
    assert Long.made==N - done*BS and resumed.train_iter==N//BS

# interrupted, and fitted again in the same process

fits = [e for e in ('before_fit before_epoch before_train before_fetch after_fetch before_batch before_pred after_pred before_loss after_loss before_backward after_backward before_step '
                    'after_step before_zero_grad after_zero_grad after_batch after_train before_validate after_validate after_epoch after_fit').split()]
@few(6, 3)
@pytest.mark.parametrize('event,again', [*((e, None) for e in fits), *((e, a) for e in ('before_fit', 'after_pred', 'after_step', 'after_validate') for a in ('after_exception', 'cleanup'))])
def test_interrupted_and_fitted_again(event, again, tmp_path):
    "After Ctrl-C, or two of them, `fit` does what it does for a new Learner with the same weights, optimizer and random numbers"
    def make():
        set_seed(3)
        learn = Learner((DataLoader(Noisy(), BS, shuffle=True), DataLoader(Noisy(), BS)), model(), nn.MSELoss(), Adam, lr=.01, default_cbs=False, path=tmp_path,
                        cbs=[TrainEvalCallback, Recorder, GradientAccumulation(10), EMACallback(.9), GradientClip(.5), MixedPrecision('bf16')])
        learn.logger = lambda row: None
        return learn
    def interrupt(self):
        learn = self.learn
        if learn.epoch==1 and (learn.iter==(2 if 'step' in event or 'zero' in event else 3) or event in ('before_train','before_epoch','before_validate','after_validate','after_train','after_epoch','after_fit')): raise KeyboardInterrupt
    def first(self): raise KeyboardInterrupt
    def second(self): raise KeyboardInterrupt('again')
    cbs = [Callback(**{event: first if event=='before_fit' else interrupt})] + ([Callback(**{again:second})] if again else [])
    learn = make()
    with pytest.raises(KeyboardInterrupt): learn.fit(2, cbs=cbs)
    assert learn.mode is None and not torch.is_autocast_enabled('cpu') and torch.is_grad_enabled() and len(learn.cbs)==6
    weights,opt,rng = {k:v.clone() for k,v in learn.model.state_dict().items()},to_serializable(learn.opt.state_dict(), copy=True),get_random_states()
    learn.fit_one_cycle(2)
    again_fitted = end(learn)
    fresh = make()
    fresh.model.load_state_dict(weights)
    fresh.create_opt()
    fresh.opt.load_state_dict(opt)
    set_random_states(**rng)
    fresh.fit_one_cycle(2)
    assert_same(end(fresh), again_fitted)

@pytest.mark.slow
def test_the_system_error_of_a_full_disk_is_raised(tmp_path):
    "PyTorch replaces the error of a full disk by one of its own; the system's OSError is raised all the same"
    script = f"""
import resource, signal, sys, torch
from pathlib import Path
from learnkit.learner.save import write_atomic
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.dont_write_bytecode = True
for room in (5000, 150_000, 399_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    try: write_atomic(torch.randn(100_000), Path({str(tmp_path)!r})/'x.pth')
    except OSError as e: assert e.errno, e
    else: sys.exit('it was written')
"""
    subprocess.run([sys.executable, '-c', script], check=True, cwd=Path(__file__).parents[2])
    assert not list(tmp_path.iterdir())
