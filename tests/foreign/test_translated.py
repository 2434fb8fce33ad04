"""What a review of other libraries' own tests found worse, wrong or missing in learnkit: one case for each, by the name
of their test, with the behaviour that it requires; those omitted are listed with a reason. The table in
`coming_from.ipynb` is counted from this file."""
import json, re, warnings
from functools import partial
from io import BytesIO
from pathlib import Path
import numpy as np, pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD
from torch.optim import lr_scheduler as tls
from learnkit.all import (AdaptiveGradientClip, Callback, CheckpointCallback, CombinedLoader, CSVLogger, DataLoaders, EMACallback, EarlyStoppingCallback,
                          EveryCallback, GradientAccumulation, GradualUnfreezing, History, Learner, LimitBatches, Logged, OnBetter, ParamScheduler,
                          ReduceLROnPlateau, ReplayOnOOM, SaveModelCallback, SchedCos, SchedNo, SkipNaN, SpikeDetection, TerminateOnNaNCallback, Time,
                          TorchScheduler, ValidateEvery, by_names, combine_scheds, warmup_cos)
from learnkit.contrib.pytorch_accelerated import EarlyStoppingCallback as TheirEarlyStopping
from learnkit.contrib.sklearn import LearnerClassifier
from learnkit.loop.names import names_in
from learnkit.loop.run import null_logger
from toys import at, batches, learner, weights

# the test functions of each library by the review's verdict at commit 7b43709
THEN = dict(Keras=dict(same=33, better=2, worse=3, wrong=1, missing=4), Ignite=dict(same=42, better=2, worse=2, wrong=0, missing=5),
            skorch=dict(same=33, better=2, worse=5, wrong=0, missing=3), Composer=dict(same=44, better=1, worse=4, wrong=0, missing=6),
            **{'pytorch-accelerated':dict(same=24, better=0, worse=2, wrong=0, missing=3)}, Lightning=dict(same=59, better=3, worse=5, wrong=0, missing=10))

CASES,SKIPPED = {},{}   # (library, the review's verdict, their test): the function that tests it now; why it is skipped
def case(library, then, name):
    def add(f): CASES[library,then,name] = f; return f
    return add
def skip_case(library, then, name, why): SKIPPED[library,then,name] = why

class Losses(nn.MSELoss):
    "Returns the prescribed losses in order in validation, the real loss in training"
    def __init__(self, values): super().__init__(); self.values = list(values)
    def forward(self, pred, targ):
        loss = super().forward(pred, targ)
        return loss if pred.requires_grad or not self.values else loss*0 + self.values.pop(0)

def mk(*cbs, n=3, nv=1, **kw):
    learn = learner(n=n, nv=nv, cbs=cbs, **kw)
    learn.logger = null_logger
    return learn.remove_cb(learn.progress)
def epochs(values, cb, n=None):
    "Return after how many epochs a fit with these validation losses ends"
    learn = mk(cb, loss_func=Losses(values))
    learn.fit(n or len(values))
    return len(learn.recorder.history)
def rates(*cbs, n_epoch=4, n=1, values=(), fit=None, **kw):
    learn = mk(*cbs, n=n, lr=1., loss_func=Losses(values), **kw)
    (fit or learn.fit)(n_epoch)
    return [*learn.recorder.lrs]

# Keras
@case('Keras', 'worse', 'reduce_lr::test_throws_when_optimizer_has_schedule')
def keras_throws_when_optimizer_has_schedule():
    with pytest.raises(ValueError, match='ReduceLROnPlateau both set'): mk(ReduceLROnPlateau()).fit_one_cycle(1)
@case('Keras', 'wrong', 'lrs::test_throws_when_optimizer_has_schedule')
def keras_throws_when_optimizer_has_schedule_2():
    with pytest.raises(ValueError, match='both set'): mk(ParamScheduler({'lr':SchedNo(1., 1.)})).fit_one_cycle(1)
skip_case('Keras', 'worse', 'csv::test_CSVLogger (separator)', 'a CSV file has commas; what reads it can write others')
@case('Keras', 'worse', 'csv::test_stop_training_csv')
def keras_stop_training_csv(tmp_path):
    learn = mk(TerminateOnNaNCallback(), CSVLogger(), path=tmp_path, lr=1e30)
    learn.fit(3)
    rows = learn.recorder.history
    assert len(rows)==len(learn.csv_logger.read_log())==1 and not np.isfinite(rows[0]['train_loss'])
@case('Keras', 'missing', 'early_stopping::test_early_stopping_with_baseline')
def keras_early_stopping_with_baseline(): assert [epochs([.6, .55, .56, .57, .58], EarlyStoppingCallback(patience=2, baseline=b)) for b in (.5, .7, None)]==[3, 4, 4]
@case('Keras', 'missing', 'early_stopping::test_early_stopping_with_start_from_epoch')
def keras_early_stopping_with_start_from_epoch(): assert [epochs([1., 2., 3., 4., 5., 6.], EarlyStoppingCallback(patience=2, start_from_epoch=s)) for s in (0, 2, 3)]==[3, 5, 6]
@case('Keras', 'missing', 'reduce_lr::test_cooldown')
def keras_cooldown(): assert rates(ReduceLROnPlateau(cooldown=2, factor=2.), values=[1.]*7, n_epoch=7)==[1., 1., .5, .5, .5, .25, .25]
skip_case('Keras', 'missing', 'lrs::test_verbose_logging', 'learning rates are in `learn.recorder.lrs` and in all loggers except `CSVLogger`, which writes the table; not in lines of text')

# Ignite
skip_case('Ignite', 'worse', 'ema::test_ema_final_weight_cpu', "the average begins with the first stepped weights, as that of PyTorch's `AveragedModel`")
@case('Ignite', 'worse', 'ema::test_ema_two_handlers')
def ignite_ema_two_handlers():
    fast,slow = EMACallback(.5),EMACallback(.9, use=False)
    learn,alone = mk(fast, slow),mk(EMACallback(.9))
    for l in (learn, alone): l.fit(2)
    assert all(torch.equal(v, alone.model.state_dict()[k]) for k,v in slow.averages.items())
for name in ('test_state_dict_with_mode','test_early_stopping_on_rel_delta'):
    @case('Ignite', 'missing', f'early_stopping::{name}')
    def ignite_name():   # gains below a tenth of the best value do not count
        assert epochs([1., .95, .91, .5, .4], EarlyStoppingCallback(min_delta='10%', patience=2))==3
        assert epochs([1., .89, .8, .7, .6], EarlyStoppingCallback(min_delta='10%', patience=2))==5
@case('Ignite', 'missing', 'checkpoint::test_checkpoint_filename_pattern')
def ignite_checkpoint_filename_pattern(tmp_path):
    learn = mk(SaveModelCallback(fname='m-{epoch}-{valid_loss:.2f}', every_epoch=True), path=tmp_path, loss_func=Losses([.5, .25]))
    learn.fit(2)
    assert {p.name for p in (tmp_path/'models').iterdir()}=={'m-0-0.50.pth','m-1-0.25.pth'}
@case('Ignite', 'missing', 'checkpoint::test_checkpoint_save_handler_callable')
def ignite_checkpoint_save_handler_callable():
    sent = []
    def send(learn): f = BytesIO(); learn.save(f); sent.append(f.getvalue())
    mk(OnBetter(send, 'valid_loss'), loss_func=Losses([3., 2., 4., 1.])).fit(4)
    assert len(sent)==3 and set(torch.load(BytesIO(sent[-1]), weights_only=True))=={'model','opt'}
@case('Ignite', 'missing', 'param_scheduler::test_batch_size_scheduler')
def ignite_batch_size_scheduler():
    x = torch.randn(24, 4)
    def dls(bs): return DataLoaders.from_dsets(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), bs=bs, device='cpu')
    def grow(self): self.learn.dls = dls(4*2**self.epoch)
    sizes = []
    learn = mk(Callback(before_epoch=grow), at('before_batch', lambda cb: sizes.append(len(cb.x))), dls=dls(4))
    learn.fit(3)
    assert sizes==[4]*6+[8]*3+[16,8]

# skorch
@case('skorch', 'worse', 'EarlyStopping::test_weights_restore (load_best)')
def skorch_weights_restore():
    saved = []
    best = at('after_epoch', lambda cb: saved.append(weights(cb.learn)), order=-100)
    learn = mk(best, EarlyStoppingCallback(patience=2), SaveModelCallback(fname=None), loss_func=Losses([3., 1., 2., 2., 2.]))
    learn.fit(5)
    assert len(saved)==4 and torch.equal(weights(learn), saved[1])
@case('skorch', 'worse', 'lr_scheduler::test_reduce_lr_monitor_with_callable')
def skorch_reduce_lr_monitor_with_callable():
    seen = []
    def score(learn): seen.append(learn.epoch); return 1.
    sched = TorchScheduler(partial(tls.ReduceLROnPlateau, patience=0, factor=.5), monitor=score)
    assert rates(sched, n_epoch=3)==[1., 1., .5] and seen==[0, 1, 2]
skip_case('skorch', 'worse', 'scoring::test_scoring_uses_best_score_when_continuing_training',
     'the best value is kept by who acts on it, `TrackerCallback(reset_on_fit=False).best`, and is no column')
@case('skorch', 'worse', 'history::test_history_epoch_two_columns')
def skorch_history_epoch_two_columns():
    h = History([dict(a=1, b=2, c=3), dict(a=4, b=5, c=6)])
    assert h['a','b']==[(1, 2), (4, 5)]
@case('skorch', 'worse', 'net::partial_fit goes on, fit starts anew')
def skorch_partial_fit():
    X,y = np.random.RandomState(0).randn(40, 4).astype('float32'),np.arange(40)%2
    def make(dls): return Learner(dls, nn.Linear(4, 2), nn.CrossEntropyLoss(), SGD)
    est = LearnerClassifier(make, epochs=2, lr=.1, random_state=0)
    first,second = (weights(est.fit(X, y).learn_) for _ in range(2))
    assert torch.equal(first, second)
    with est.learn_.no_bar(), est.learn_.no_logging(): est.learn_.fit(1)
    assert not torch.equal(first, weights(est.learn_))
@case('skorch', 'missing', 'ParamMapper (name patterns "0.*")')
def skorch_parammapper():
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    learn = mk(model=model, splitter=by_names('0.*'))
    old = [p.detach().clone() for p in model.parameters()]
    learn.freeze_to(1)
    learn.fit(1)
    assert [torch.equal(p, o) for p,o in zip(model.parameters(), old)]==[True, True, False, False]
skip_case('skorch', 'missing', 'history::test_history_*batches*', 'losses and learning rates of each batch are in `learn.recorder`, other values in `JsonLogger`, not in the history')
@case('skorch', 'missing', 'history::test_history_save_load_cycle')
def skorch_history_save_load_cycle(tmp_path):
    learn = mk()
    learn.fit(2)
    learn.recorder.history.to_file(tmp_path/'h.json')
    assert History.from_file(tmp_path/'h.json')==learn.recorder.history

# Composer
@case('Composer', 'worse', 'time::test_time_parse (4_000tok, 2iter)')
def composer_time_parse():
    assert Time('4_000tok')=='4000tok' and Time('1_5.5s')=='15.5s' and Time('12_345_678ba').value==12345678
    for bad in ('4__0ba','_4ba','4_ba'):
        with pytest.raises(ValueError, match='not an amount'): Time(bad)
skip_case('Composer', 'worse', 'time::test_invalid_math (== of two units)', '`==` of two units is False, as of any two unlike things in Python; `<` and `+` are errors')
@case('Composer', 'worse', 'trainer::test_dict_loss_trainer')
def composer_dict_loss_trainer():
    def parts(pred, targ): return dict(mse=F.mse_loss(pred, targ), l1=.5*F.l1_loss(pred, targ))
    a = mk(loss_func=parts, metrics=[Logged('mse'), Logged('l1')])
    b = mk(loss_func=lambda pred, targ: F.mse_loss(pred, targ)+.5*F.l1_loss(pred, targ))
    for l in (a, b): l.fit(2)
    row = a.recorder.history[-1]
    assert torch.allclose(weights(a), weights(b)) and row['valid_mse']+row['valid_l1']==pytest.approx(row['valid_loss'])
@case('Composer', 'worse', 'ema::test_ema_algorithm (half_life)')
def composer_ema_algorithm():   # a half-life of 4 steps: the share of weights halves in four steps
    seen,average = [],EMACallback(.5**(1/4), warmup=False, at_end=False)
    mk(average, at('after_step', lambda cb: seen.append(cb.learn.model.weight.detach().clone())), n=9).fit(1)
    shares = [.5**((8-i)/4)*(1 if i==0 else 1-.5**(1/4)) for i in range(9)]
    assert torch.allclose(average.averages['weight'], sum(a*w for a,w in zip(shares, seen)), atol=1e-6)
@case('Composer', 'missing', 'gradient_clipping::test_apply_agc')
def composer_apply_agc():
    plain,clipped = mk(),mk(AdaptiveGradientClip(.01))
    start = weights(plain)
    for l in (plain, clipped): l.fit(1)
    assert 0 < (weights(clipped)-start).norm() < .1*(weights(plain)-start).norm()
@case('Composer', 'missing', 'checkpoint::remote object stores (s3, gs, oci)')
def composer_remote():
    def go(folder, *cbs, **kw):
        learn = mk(CheckpointCallback('1ba', folder=f'memory://translated/{folder}'), *cbs)
        learn.fit(2, **kw)
        return learn
    def die(cb): raise SystemError
    whole = go('a')
    with pytest.raises(SystemError): go('b', at('after_batch', die, lambda cb: cb.learn.train_iter==4, order=200))
    assert torch.equal(weights(go('b', resume='auto')), weights(whole))
skip_case('Composer', 'missing', 'cutout, progressive_resizing, stochastic depth, layer freezing, blurpool …',
     'algorithms for models and images: those of Composer run by its adapter')
@case('Composer', 'missing', 'checkpoint::test_load_ignore_keys / save_ignore_keys')
def composer_load_ignore_keys(tmp_path):
    a,b = mk(path=tmp_path, model=nn.Linear(4, 1)),mk(path=tmp_path, model=nn.Linear(4, 1))
    bias = b.model.bias.detach().clone()
    b.load(a.save('m'), ignore_keys='bias')
    assert torch.equal(a.model.weight, b.model.weight) and torch.equal(b.model.bias, bias)
@case('Composer', 'missing', 'checkpoint::test_checkpoint_filenames')
def composer_checkpoint_filenames(tmp_path):
    mk(SaveModelCallback(fname='ba{train_iter}-ep{epoch}', every='2ba'), n=2, path=tmp_path).fit(2)
    assert {p.name for p in (tmp_path/'models').iterdir()}=={'ba2-ep0.pth','ba4-ep1.pth'}
@case('Composer', 'missing', 'trainer::test_auto_microbatch')
def composer_auto_microbatch():
    def full(cb):
        if cb.learn.training and cb.learn.train_iter==1 and len(cb.x)>2: raise torch.OutOfMemoryError
    auto,plain = mk(at('before_pred', full), ReplayOnOOM(grow=1), n=4),mk(n=4)
    plain.fit(1)
    with pytest.warns(UserWarning, match='into micro-batches of 2'): auto.fit(1)
    assert torch.allclose(weights(auto), weights(plain), atol=1e-6) and auto.replay_on_oom.size==4

# pytorch-accelerated
@case('pytorch-accelerated', 'worse', 'trainer::test_max_steps_stops_training_correctly')
def pytorch_accelerated_max_steps_stops_training_correctly():
    learn = mk(GradientAccumulation('2ba'), n=8)
    learn.fit('15st')
    assert learn.train_steps==15 and learn.train_iter==30
@case('pytorch-accelerated', 'worse', 'callbacks (seed) EarlyStopping default threshold 0.01')
def pytorch_accelerated_callbacks(): assert [epochs([1., .995, .99, .985], cb()) for cb in (TheirEarlyStopping, EarlyStoppingCallback)]==[2, 4]
skip_case('pytorch-accelerated', 'missing', 'finetuning::test_unfreeze_model_returns_correct_parameters',
     'nothing is to be added to an optimizer, which has all parameters from the start')
@case('pytorch-accelerated', 'missing', 'wsd::test_wsd_decay_info_multiple_checkpoints / pre_decay_continuation')
# two runs that resume a run at a constant learning rate, after one and after two epochs, and let it decay
def pytorch_accelerated_wsd_decay_info_multiple_checkpoints(tmp_path):
    def go(folder, n_epoch, decay, **kw):
        sched = combine_scheds([1-decay/n_epoch, decay/n_epoch], [SchedNo(.1, .1), SchedCos(.1, 0.)]) if decay else SchedNo(.1, .1)
        learn = mk(ParamScheduler({'lr':sched}), CheckpointCallback(keep=None, folder=tmp_path/folder))
        learn.fit(n_epoch, **kw)
        return learn
    go('stable', 3, 0)
    for n in (1, 2):
        before = next((tmp_path/'stable').rglob(f'*-epoch-{n-1}.pth'))
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            assert torch.equal(weights(go(f'decay-{n}', n+1, 1, resume=before)), weights(go(f'whole-{n}', n+1, 1)))
@case('pytorch-accelerated', 'missing', 'cosine::test_cooldown_epochs_at_lr_min')
def pytorch_accelerated_cooldown_epochs_at_lr_min():
    cooling = {'lr':combine_scheds([.8, .2], [warmup_cos(1., .25, lr_min=.1)['lr'], SchedNo(.1, .1)])}
    lrs = rates(ParamScheduler(cooling), n_epoch=5, n=4)
    assert max(lrs)==1. and lrs[-4:]==[.1]*4 and lrs[-5]>.1

# Lightning
@case('Lightning', 'worse', 'early_stopping::test_early_stopping_on_non_finite_monitor')
def lightning_early_stopping_on_non_finite_monitor():
    for v in (float('nan'), float('inf')): assert epochs([1., v, 1., .5], EarlyStoppingCallback(patience=None, nan='stop'))==2
@case('Lightning', 'worse', 'trainer::test_disabled_validation (limit_val_batches=0)')
def lightning_disabled_validation():
    seen = []
    learn = mk(LimitBatches(valid=0), at('before_batch', lambda cb: seen.append(cb.learn.training)))
    learn.fit(2)
    assert seen==[True]*6 and learn.recorder.history['valid_loss']==[None]*2
@case('Lightning', 'worse', 'trainer::test_trainer_max_steps_accumulate_batches')
def lightning_trainer_max_steps_accumulate_batches():
    learn = mk(GradientAccumulation('3ba'), n=10)
    learn.fit('7st')   # the last batch of an epoch is a step of its own
    assert learn.train_steps==7
@case('Lightning', 'worse', 'check_val_every_n_epoch::test_check_val_every_n_epoch')
def lightning_check_val_every_n_epoch():
    seen = []
    learn = mk(ValidateEvery('2ep'), at('before_batch', lambda cb: cb.learn.training or seen.append(cb.learn.epoch)))
    learn.fit(5)
    assert seen==[1, 3] and [v is None for v in learn.recorder.history['valid_loss']]==[True, False, True, False, True]
@case('Lightning', 'worse', 'optimizers::test_onecyclelr_with_epoch_interval_warns')
def lightning_onecyclelr_with_epoch_interval_warns():
    with pytest.warns(UserWarning, match="interval='step'"): mk(TorchScheduler(partial(tls.OneCycleLR, max_lr=.1, total_steps=6)), n=3).fit(2)
@case('Lightning', 'missing', 'early_stopping::test_early_stopping_thresholds[divergence_threshold]')
def lightning_early_stopping_thresholds_divergence_threshold():
    assert epochs([1., 2., 9., 1.], EarlyStoppingCallback(patience=None, divergence=5.))==3
    assert epochs([1., .5, .1, .05], EarlyStoppingCallback(patience=None, threshold=.2))==3
@case('Lightning', 'missing', 'early_stopping::test_min_epochs_min_steps_global_step')
def lightning_min_epochs_min_steps_global_step():
    stopped = [epochs([1.]*8, EarlyStoppingCallback(patience=1, at_least=a)) for a in (None, '5ep', '12st', '13st')]
    assert stopped==[2, 5, 4, 5]
@case('Lightning', 'missing', 'trainer::test_detect_anomaly_nan')
def lightning_detect_anomaly_nan():
    def root(pred, targ): return (pred*0).sqrt().mean()*0 + F.mse_loss(pred, targ)
    with pytest.raises(RuntimeError, match="returned nan values"), torch.autograd.set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        mk(loss_func=root).fit(1)
@case('Lightning', 'missing', 'dataloaders::test_fit_multiple_train_loaders (CombinedLoader modes)')
def lightning_fit_multiple_train_loaders():
    both = dict(a=batches(4), b=batches(2, seed=1))
    n = {u:len([*CombinedLoader(both, order='zip', until=u)]) for u in ('longest','shortest')}
    assert n==dict(longest=4, shortest=2)
@case('Lightning', 'missing', 'optimizers::test_lr_scheduler_epoch_step_frequency')
def lightning_lr_scheduler_epoch_step_frequency():
    half = partial(tls.ExponentialLR, gamma=.5)
    assert rates(TorchScheduler(half, frequency=2), n_epoch=5)==[1., 1., .5, .5, .25]
    assert rates(TorchScheduler(half, 'step', frequency=3), n_epoch=2, n=4)==[1.]*3+[.5]*3+[.25]*2
@case('Lightning', 'missing', 'swa::test_swa_callback_scheduler_step (swa_lrs annealing)')
def lightning_swa_callback_scheduler_step():
    annealed = {'lr':combine_scheds([.5, .25, .25], [SchedNo(1., 1.), SchedCos(1., .2), SchedNo(.2, .2)])}
    average = EMACallback(start=.75, avg_fn=torch.optim.swa_utils.get_swa_multi_avg_fn())
    lrs = rates(ParamScheduler(annealed), average, n_epoch=4, n=2)
    assert lrs[:4]==[1.]*4 and lrs[-2:]==pytest.approx([.2]*2) and 0<average.n_avg<=3
@case('Lightning', 'missing', 'tuner::scale_batch_size (BatchSizeFinder)')
def lightning_scale_batch_size():
    def full(cb):
        if len(cb.x)>20: raise torch.OutOfMemoryError
    assert mk(at('before_pred', full)).find_batch_size(most=64)==16
@case('Lightning', 'missing', 'pruning::*')
def lightning_pruning():
    from torch.nn.utils import prune
    def cut(learn): prune.l1_unstructured(learn.model, 'weight', amount=1)
    model = nn.Linear(4, 1)
    mk(EveryCallback(cut, '1ep'), model=model).fit(2)
    assert (model.weight==0).sum()==2 and prune.is_pruned(model)
@case('Lightning', 'missing', 'spike::*')
def lightning_spike():
    data = batches(1)*40
    data[30] = (data[30][0], data[30][1]*1000)
    skip = SkipNaN(at_most=None)
    learn = mk(SpikeDetection(window=20), skip, dls=DataLoaders(data))
    learn.fit(1)
    assert learn.spike_detection.seen==skip.n==1
@case('Lightning', 'missing', 'finetuning_callback::BackboneFinetuning (unfreeze at epoch, lr multiplier)')
def lightning_backbonefinetuning():
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    moved,old = [],[[p.detach().clone() for p in model.parameters()]]
    def note(cb):
        now = [p.detach().clone() for p in cb.learn.model.parameters()]
        moved.append([not torch.equal(a, b) for a,b in zip(now, old[0])]); old[0] = now
    learn = mk(GradualUnfreezing({0:-1, 2:0}), at('after_train', note), model=model, splitter=by_names('0.*'))
    learn.fit(3, lr=slice(.001, .1))
    assert moved==[[False]*2+[True]*2]*2+[[True]*4] and [h['lr'] for h in learn.opt.hypers]==pytest.approx([.001, .1])

@pytest.mark.filterwarnings('ignore:.*is given to the last group')
@pytest.mark.parametrize('key', CASES, ids=lambda k: f'{k[0]}-{k[2].split("::")[-1]}')
def test_case(key, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    f = CASES[key]
    f(tmp_path) if f.__code__.co_argcount else f()

def counts():
    "Return {library: (counts then, now)} of same, better, worse or wrong, and missing, as in `coming_from.ipynb`"
    res = {}
    for lib,n in THEN.items():
        done = [then for l,then,_ in CASES if l==lib]
        left = [then for l,then,_ in SKIPPED if l==lib]
        assert len([o for o in done+left if o!='missing'])==n['worse']+n['wrong'] and [*done, *left].count('missing')==n['missing']
        then = n['same'],n['better'],n['worse']+n['wrong'],n['missing']
        now = n['same']+len(done),n['better'],len(left)-left.count('missing'),left.count('missing')
        res[lib] = then,now
    return res

def test_the_number_of_cases():
    repaired = len([1 for _,then,_ in CASES if then!='missing'])
    assert len(CASES)+len(SKIPPED)==53 and sum(n['same']+n['better'] for n in THEN.values())+repaired==263

page = Path(__file__).resolve().parents[2]/'nbs/examples/coming_from.ipynb'
def section(title):
    cells = [''.join(c['source']) for c in json.loads(page.read_text(encoding='utf-8'))['cells']]
    return next(c for c in cells if c.startswith(f'## {title}'))
def table(text): return [[c.strip() for c in line.strip('| ').split(' | ')] for line in re.findall(r'^\|.*\|$', text, re.M)][2:]

def test_the_page_has_these_counts():
    text = section("What others' tests ask for")
    assert {lib:[*map(int, ns)] for lib,*ns in table(text)}=={lib:[*then, *now] for lib,(then,now) in counts().items()}
    assert [f'- {lib}: {why}.' for (lib,*_),why in SKIPPED.items()]==text.rstrip().splitlines()[-len(SKIPPED):]

def test_the_page_counts_the_callback_names():
    for lib,n,called,*_ in table(section('Callbacks that run unmodified'))[1:]:
        names = names_in(lib).values()
        assert (int(n), int(called))==(len(names), sum(bool(o.event) for o in names))
