"Two callbacks of one class: they work beside each other, or the second one is refused where it is added"
import inspect, warnings

import pytest, torch
import learnkit.all as lk
from learnkit import Callback, ProgressCallback, Recorder, TrainEvalCallback
from toys import few, learner

def made(cls):
    "An instance, if none of the arguments is needed"
    needs = [p for p in [*inspect.signature(cls.__init__).parameters.values()][1:] if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    try: return None if needs else cls()
    except (ValueError, TypeError, ImportError): return None

default = [type(cb) for cb in learner().cbs]
every = sorted({k for k in vars(lk).values() if inspect.isclass(k) and issubclass(k, Callback) and k is not Callback}, key=lambda k: k.__name__)
single = [k for k in every if k.single]
others = [k for k in every if not k.single and made(k) is not None and k.__name__ not in ('FusedStep','MCDropoutCallback','ProfileCallback','StopwatchCallback','TimerCallback')]

def test_which_are_single():
    assert {k.__name__ for k in single}=={'Agreement','CastToTensor','Closure','DiLoCo','DistributedTrainer','FaultTolerant','FullyShard','GradientAccumulation','InTurn','MicroBatch','MixedPrecision','NonFiniteCheck',
                                          'Pausable','ProgressCallback','Recorder','ReplayOnOOM','SAM','StepsPerEpoch','TrainEvalCallback','VirtualShards','TensorParallel'}
    assert not {*default}-{*single}

ways = dict(learner=lambda l, cbs: learner(cbs=cbs), add_cbs=lambda l, cbs: l.add_cbs(cbs), fit=lambda l, cbs: l.fit(1, cbs=cbs), added_cbs=lambda l, cbs: l.added_cbs(cbs).__enter__())
args = dict(InTurn=(lambda learn: (),), StepsPerEpoch=(5,), FullyShard=(1000,), GradientAccumulation=(8,), MicroBatch=(2,))

@pytest.mark.parametrize('way', ways)
@pytest.mark.parametrize('cls', single)
def test_a_second_single_one_raises(cls, way):
    "Of a subclass too, and in whatever way it comes; the Learner is as it was"
    class Own(cls): pass
    def new(k): return k(*args.get(cls.__name__, ()))
    learn = learner()
    before = [*learn.cbs]
    with pytest.raises(ValueError, match='a Learner can have only one'): ways[way](learn, [new(cls), new(Own)])
    with pytest.raises(ValueError, match='a Learner can have only one'): ways[way](learn, [new(Own), new(cls)])
    assert [o for o in learn.cbs if o not in before] in ([], [learn.cbs[-1]])   # `add_cbs` adds one after the other

def outcome(tmp_path, cbs):
    "How many batches were trained, and how many rows printed; or an error"
    learn = learner(path=tmp_path)
    try: learn.add_cbs(cbs); learn.fit(2)
    except (ValueError, TypeError, RuntimeError, ImportError, OSError) as e: return type(e)
    return learn.train_iter,len(learn.recorder.history),learn.stop_reason

@few(4)
@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('cls', others)
def test_others_work_together(cls, tmp_path, monkeypatch):
    "As one does alone, or say in one sentence why not"
    monkeypatch.chdir(tmp_path)
    one,two = (outcome(tmp_path/str(n), [made(cls) for _ in range(n)]) for n in (1, 2))
    assert two==one or two is ValueError

@pytest.mark.parametrize('cls', [k for k in default if k.single])
def test_ones_own_takes_the_place_of_a_default(cls):
    "An instance, the class, or a subclass, in any container"
    class Own(cls): pass
    for cbs in (cls(), cls, [cls()], iter([cls()]), Own(), [Own]):
        learn = learner(cbs=cbs)
        assert len(learn.cbs)==len(default) and sum(isinstance(cb, cls) for cb in learn.cbs)==1

def test_ones_own_recorder_and_bar():
    class Mine(Recorder): pass
    class Bar(ProgressCallback): pass
    learn = learner(cbs=[Mine(train_metrics=True), Bar(kind='lines')], metrics=lk.mae)
    learn.fit(1)
    assert type(learn.recorder) is Mine and type(learn.progress) is Bar
    assert learn.recorder.metric_names==['epoch','train_loss','train_mae','valid_loss','valid_mae','time'] and len(learn.recorder.history)==1

def test_batches_are_counted_once():
    learn = learner(n=8, bs=2, cbs=TrainEvalCallback)
    learn.fit(2)
    assert learn.train_iter==learn.n_epoch*len(learn.dls.train) and learn.pct_train==1

def test_a_removed_one_makes_room():
    learn = learner()
    learn.remove_cb(Recorder)
    learn.add_cb(Recorder(train_metrics=True))
    with pytest.raises(ValueError, match=r'this one already has Recorder.*`learn.recorder`.*`learn.remove_cb\(Recorder\)`'): learn.add_cb(Recorder)
    learn.fit(1)
    assert len(learn.recorder.history)==1

def test_a_fit_without_a_recorder():
    "`NonFiniteCheck` looked for the validation loss in the removed Recorder"
    learn = learner()
    learn.remove_cb(Recorder)
    learn.fit(2)
    assert learn.train_iter==6

def test_what_was_removed_comes_back_next_to_what_cannot():
    "Another bar was added meanwhile, so the old one cannot come back, and that is said; the Recorder can"
    learn = learner()
    with pytest.raises(ValueError, match='a Learner can have only one ProgressCallback'):
        with learn.removed_cbs([ProgressCallback, Recorder]): learn.add_cb(bar := ProgressCallback('lines'))
    assert learn.progress is bar and [type(cb) for cb in learn.cbs]==[*[k for k in default if k is not ProgressCallback], ProgressCallback]
    learn.fit(1)
    assert len(learn.recorder.history)==1

RUNS = dict(fit=lambda l, cbs: l.fit(1, cbs=cbs), validate=lambda l, cbs: l.validate(cbs=cbs), get_preds=lambda l, cbs: l.get_preds(cbs=cbs),
            predict=lambda l, cbs: lk.Predictor(l, cbs=cbs)(torch.zeros(4)), fine_tune=lambda l, cbs: l.fine_tune(1, cbs=cbs))

@pytest.mark.parametrize('run', RUNS)
def test_callbacks_may_come_from_an_iterator(run):
    "It can be read only once: `validate` and `get_preds` used to call none of them, the second part of `fine_tune` neither"
    calls = []
    RUNS[run](learner(), (Callback(before_fit=lambda self: calls.append(i)) for i in range(2)))
    assert len(calls)==(4 if run=='fine_tune' else 2)
