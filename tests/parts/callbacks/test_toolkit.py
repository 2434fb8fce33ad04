"""Any callbacks together, added in any order, give the same weights and the same history, and leave nothing behind."""
import pytest, torch
from hypothesis import given, strategies as st
from torch import nn

from learnkit.all import (ActivationStats, AugmentCallback, BnFreeze, CSVLogger, ChannelsLast, CutMix, DataLoaders, EMACallback, EarlyStoppingCallback, EveryCallback, GradientAccumulation,
                          GradientClip, Learner, MCDropoutCallback, MicroBatch, MixUp, MixedPrecision, OnBetter, ParamScheduler, Recorder, ReduceLROnPlateau, SaveModelCallback, SchedCos,
                          ShortEpochCallback, StopAfter, TerminateOnNaNCallback, ThresholdStopper, TorchScheduler, TrainEvalCallback, ValidateEvery, accuracy, set_seed)
from learnkit.recovery.checkpoint import CheckpointCallback
from toys import draws

torch.set_num_threads(1)

def shift(x): return x.roll(1, -1)

cbs = dict(accumulate=lambda: GradientAccumulation(12), clip=lambda: GradientClip(.05), value=lambda: GradientClip(value=.01), ema=lambda: EMACallback(.8), bf16=lambda: MixedPrecision('bf16'),
           fp16=lambda: MixedPrecision('fp16', init_scale=2.**10), micro=lambda: MicroBatch(2), freeze=BnFreeze, short=lambda: ShortEpochCallback(.5), stop_after=lambda: StopAfter(9),
           last=ChannelsLast, mixup=MixUp, cutmix=CutMix, sched=lambda: ParamScheduler(dict(lr=SchedCos(.1, .001), mom=SchedCos(.9, .5))),
           torch_sched=lambda: TorchScheduler(lambda opt: torch.optim.lr_scheduler.ExponentialLR(opt, .8), 'step'), early=lambda: EarlyStoppingCallback(patience=1), plateau=lambda: ReduceLROnPlateau(factor=2.),
           save=SaveModelCallback, nan=TerminateOnNaNCallback, threshold=lambda: ThresholdStopper(.5), better=lambda: OnBetter(lambda learn: None), stats=lambda: ActivationStats(every=3),
           mc=MCDropoutCallback, augment=lambda: AugmentCallback(shift), validate=lambda: ValidateEvery('4ba'), every=lambda: EveryCallback(lambda learn: learn.state.update(at=learn.train_iter), '3ba'),
           csv=CSVLogger, checkpoint=lambda: CheckpointCallback('3ba', overwrite=True))
# Callbacks that set the same thing are not combined: the one added last wins
rivals = [{'mixup','cutmix'}, {'bf16','fp16'}, {'sched','torch_sched','plateau'}, {'clip','value'}]

def fit(names, path):
    set_seed(0)
    x,y = torch.randn(44, 3, 4, 4),torch.randint(3, (44,))
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(.2), nn.Flatten(), nn.Linear(128, 3))
    learn = Learner(DataLoaders.from_tensors(x, y, bs=6, valid_pct=.2, seed=1), model, nn.CrossEntropyLoss(), torch.optim.SGD, lr=.05, path=path, metrics=accuracy,
                    default_cbs=False, cbs=[TrainEvalCallback, Recorder])
    learn.add_cbs([cbs[n]() for n in names])
    learn.logger = lambda row: None
    learn.create_opt()
    learn.opt.set_hyper('mom', .9)
    loss_func = learn.loss_func
    set_seed(1)
    learn.fit(3)
    assert learn.loss_func is loss_func and loss_func.reduction=='mean' and not torch.is_autocast_enabled('cpu'), names
    assert not any(m._forward_hooks or m._forward_pre_hooks or m._backward_hooks for m in model.modules()), names
    return learn

def outcome(learn): return list(learn.model.state_dict().values()),[{k:v for k,v in r.items() if k!='time'} for r in learn.recorder.history.epochs],learn.recorder.smooth_loss.raw

def assert_same(a, b, what):
    assert all(map(torch.equal, a[0], b[0])), f'the weights differ: {what}'
    assert repr(a[1:])==repr(b[1:]), f'the record differs: {what}'

@st.composite
def combinations(draw):
    names = draw(st.lists(st.sampled_from(sorted(cbs)), min_size=3, max_size=6, unique=True).filter(lambda ns: all(len(r & {*ns})<2 for r in rivals)))
    return names,draw(st.permutations(names))

@pytest.mark.slow
@draws(20)
@given(combinations())
def test_any_callbacks_in_any_order(tmp_path_factory, both):
    a,b = (outcome(fit(names, tmp_path_factory.mktemp('run'))) for names in both)
    assert_same(a, b, both)

observers = 'save nan better stats validate every csv checkpoint'.split()
@pytest.mark.parametrize('name', [n for n in observers if n not in ('save','checkpoint')])
def test_observers_change_nothing(name, tmp_path):
    "Callbacks that only observe leave weights and history unchanged bit for bit"
    assert_same(outcome(fit([], tmp_path/'a')), outcome(fit([name], tmp_path/'b')), name)

def test_all_observers_with_other_callbacks(tmp_path):
    train = ['accumulate','clip','ema','bf16','micro','freeze','last','mixup','sched']
    watch = [n for n in observers if n not in ('save','checkpoint')]
    assert_same(outcome(fit(train, tmp_path/'a')), outcome(fit(watch+train, tmp_path/'b')), 'all')
