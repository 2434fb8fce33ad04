"Every callback, added at each event in the middle of a fit, works from then on or raises an error of one sentence"
import copy, inspect, re, threading, warnings

import pytest, torch
import learnkit.all as lk
from learnkit import Callback
from learnkit.loop import run
from toys import few, learner, weights

def nothing(*args): pass
args = dict(StepsPerEpoch=(5,), GradientAccumulation=(8,), MicroBatch=(2,), LimitBatches=(1,), EveryCallback=(nothing,'1ba'), OnBetter=(nothing,'valid_loss'), StopAfter=(3,),
            ParamScheduler=(dict(lr=lk.SchedLin(.1,.01)),), TorchScheduler=(lambda o: torch.optim.lr_scheduler.ExponentialLR(o,.9),), OnCallback=(nothing,'after_step'),
            ThresholdStopper=(0.,), ValidateEvery=('1ba',), MapOutput=(lambda o: o,), ShortEpochCallback=(.5,), HookCallback=())
# base classes, callbacks of the loop and of several processes, those that need another model, a service or a display
apart = '''Agreement DistributedTrainer FullyShard VirtualShards PhaseEnds ShareBatches Recorder TrainEvalCallback GatherPredsCallback LRFinder FusedStep Service ServiceLogger
           MetricsLogger StopwatchCallback CutMix RNNCallback RefuseRuns ImageLogger TensorBoardLogger WandbLogger MLflowLogger ModelResetter'''.split()

def new(cls):
    "An instance, or None if the class needs arguments that `args` lacks"
    needs = [p for p in [*inspect.signature(cls.__init__).parameters.values()][1:] if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if needs and cls.__name__ not in args: return None
    try: return cls(*args.get(cls.__name__, ()))
    except (ValueError, TypeError, ImportError): return None

every = sorted({k for k in vars(lk).values() if inspect.isclass(k) and issubclass(k, Callback) and k is not Callback and k.__name__ not in apart}, key=lambda k: k.__name__)
every = [k for k in every if new(k) is not None]
moments = {**{e:None for e in 'before_epoch before_train after_train before_validate after_validate after_epoch'.split()},
           **{e:True for e in 'before_fetch before_batch after_pred after_loss after_backward before_step after_step after_batch'.split()}}

class Adds(Callback):
    "Adds a callback at the first event `moment` of epoch `epoch`"
    order = -50
    def __init__(self, make, moment, training=None, epoch=0): self.make,self.moment,self.when,self.at,self.done = make,moment,training,epoch,None
    def __call__(self, name, **kw):
        learn = self.learn
        if name!=self.moment or self.done or learn.mode!='fit' or self.when not in (None, learn.training) or learn.epoch!=self.at: return
        self.done = 'adding'
        cb = self.make()
        for o in [o for o in learn.cbs if cb.single and type(o) is type(cb)]: learn.remove_cb(o)
        learn.add_cb(cb)
        self.done = 'added'

def test_more_than_50_callbacks_are_covered(): assert len(every)>50

@few(6, 30)
@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('cls', every)
def test_a_callback_added_midway_works_or_raises(cls, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for moment,training in moments.items():
        adds = Adds(lambda: new(cls), moment, training)
        learn = learner(path=tmp_path/moment, cbs=adds)
        try: learn.fit(2)
        except (RuntimeError, ValueError) as e:
            assert adds.done=='adding', f'{cls.__name__}, added in `{moment}`, failed later: {e!r}'
            assert cls.__name__ in str(e) and len(re.findall(r'\. ', str(e)))<2 and not any(type(o) is cls for o in learn.cbs)
        assert adds.done, moment

steps = 'before_epoch','before_train','before_batch','after_loss','after_step','after_batch','before_validate','after_epoch'

@pytest.mark.parametrize('moment', steps)
def test_ema_begins_where_it_is_added(moment):
    "Weights are averaged from the event at which EMACallback is added; it used to count two updates without an average"
    learn = learner(cbs=Adds(lambda: lk.EMACallback(.5), moment, moments.get(moment)))
    last = []
    learn.fit(2, cbs=Callback(after_train=lambda cb: last.append(weights(cb.learn))))
    ema = learn.ema
    assert ema.n_avg and not torch.equal(weights(learn), last[-1])
    for k,v in ema.averages.items(): assert torch.equal(learn.model.state_dict()[k], v)

@pytest.mark.parametrize('moment', steps)
@pytest.mark.parametrize('epoch', [0,1])
def test_mixed_precision_begins_where_it_is_added(moment, epoch):
    seen,now = [],lambda cb: seen.append(torch.is_autocast_enabled('cpu'))
    learn = learner(cbs=[Callback(before_loss=now)])
    learn.fit(2, cbs=Adds(lambda: lk.MixedPrecision('bf16'), moment, moments.get(moment), epoch))
    assert seen[-1]==((epoch,moment)!=(1,'after_epoch')) and seen==sorted(seen) and seen[0]==(epoch==0 and moment in ('before_epoch','before_train','before_batch'))

@pytest.mark.parametrize('moment', ['before_batch','after_pred','after_loss','after_backward','before_step','after_step','after_batch'])
def test_accumulation_begins_with_the_next_batch(moment):
    stepped = []
    see = Callback(before_step=lambda cb: stepped.append(cb.learn.iter))
    learn = learner(n=5, bs=2, cbs=[Adds(lambda: lk.GradientAccumulation(4), moment, True), see])
    learn.fit(1)
    assert stepped==[0,2,4]   # the batch in which it is added takes its own step

def test_early_stopping_counts_epochs_from_where_it_is_added():
    learn = learner(cbs=Adds(lambda: lk.EarlyStoppingCallback('valid_loss', patience=1, min_delta=100.), 'after_batch', True))
    learn.fit(9)
    assert learn.early_stopping.best is not None and len(learn.recorder.history)==2

def test_callbacks_of_an_inner_validation_are_not_added_to_the_fit():
    "Callbacks passed to `validate` inside a fit belong to the validation: their `before_fit` is not called"
    modes = []
    class Ours(lk.EarlyStoppingCallback):
        def before_fit(self): modes.append(self.learn.mode)
    learn = learner()
    learn.fit(1, cbs=Callback(after_epoch=lambda cb: cb.learn.validate(cbs=Ours())))
    assert not modes

def test_rows_are_printed_after_the_bar_is_removed(capsys):
    learn = learner(quiet=False, cbs=[])
    learn.fit(2, cbs=Callback(after_batch=lambda cb: cb.learn.remove_cb(lk.ProgressCallback)))
    assert len(learn.recorder.history)==2 and len(re.findall(r'^\[\d, ', capsys.readouterr().out, re.M))==2

def test_gradients_accumulated_before_scaling_are_kept():
    "When fp16 is added between two accumulated batches, the gradients accumulated so far are used unscaled"
    for ev in ('after_batch','after_backward','before_step'):
        learn = learner(n=4, bs=2, cbs=[lk.GradientAccumulation(4), Adds(lambda: lk.MixedPrecision('fp16', init_scale=1024.), ev, True)])
        plain = learner(n=4, bs=2, cbs=lk.GradientAccumulation(4))
        for l in (learn, plain): l.fit(1)
        assert torch.allclose(weights(learn), weights(plain), atol=1e-2), ev

def test_a_shallow_copy_raises():
    learn = learner()
    with pytest.raises(TypeError, match='write `copy.deepcopy'): copy.copy(learn)
    copy.deepcopy(learn).fit(1)
    learn.fit(1)

def run_unchanged(learn):
    with learn.unchanged(): pass
def use_dl_name(learn):
    with learn._with_dl_name('test'): pass
USES = dict(fit=lambda l: l.fit(1), validate=lambda l: l.validate(), get_preds=lambda l: l.get_preds(), predict=lambda l: l.predict(torch.randn(4)),
            close=lambda l: l.close(), unchanged=run_unchanged, named=use_dl_name)

@pytest.mark.parametrize('use', [*USES])
def test_a_thread_that_waits_long_for_a_learner_warns(use, monkeypatch):
    "A callback that waits for the thread would deadlock; this one has a timeout, after which the thread gets its turn"
    monkeypatch.setattr(run, 'patience', .1)
    learn,ended,waited = learner(),threading.Event(),[]
    def call(): USES[use](learn); ended.set()
    thread = threading.Thread(target=call, name='the other one')
    def wait(cb): thread.start(); waited.append(ended.wait(timeout=1.))
    with pytest.warns(UserWarning, match="thread 'the other one' waits for a run of the same Learner in thread 'MainThread', epoch 0.* neither ends"):
        learn.fit(1, cbs=Callback(after_epoch=wait))
        thread.join()
    assert waited==[False] and ended.is_set()

def test_a_thread_that_waits_briefly_does_not_warn():
    learn,done = learner(),[]
    thread = threading.Thread(target=lambda: done.append(learn.validate()))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        learn.fit(1, cbs=Callback(after_epoch=lambda cb: thread.start()))
        thread.join()
    assert done

def test_a_thread_proceeds_after_a_callback_stops_waiting_for_it():
    "The callback waits for a thread that waits for the Learner; after its timeout the fit ends and the thread runs"
    lengths,learn,done = [],learner(),threading.Event()
    def work(): lengths.append(len(learn.get_preds()[0])); done.set()
    t = threading.Thread(target=work)
    learn.fit(1, cbs=Callback(after_epoch=lambda cb: (t.start(), done.wait(timeout=.7))))
    t.join()
    assert lengths==[8] and done.is_set()

def test_a_redefined_callback_class_warns():
    "A notebook cell that is run twice adds an instance of each definition, and both are called"
    learn,cell = learner(),'class C(Callback):\n    def before_fit(self): calls.append(1)\nlearn.add_cb(C())'
    calls = []
    names = dict(learn=learn, Callback=Callback, calls=calls, __name__='__main__')
    exec(cell, names)
    with pytest.warns(UserWarning, match=r'`learn.c` .* class C, so both callbacks are called.*remove_cb\(learn.c\)'): exec(cell, names)
    with warnings.catch_warnings():   # two instances of one class do not warn
        warnings.simplefilter('error')
        learner(cbs=[names['C'](), names['C']()])
    learn.fit(1)
    assert len(calls)==2

def test_threads_still_take_turns():
    learn,begun,done = learner(n=20),threading.Event(),[]
    t = threading.Thread(target=lambda: (begun.wait(), done.append(len(learn.get_preds()[0]))))
    t.start()
    learn.fit(1, cbs=Callback(after_batch=lambda cb: begun.set()))
    t.join()
    assert done
