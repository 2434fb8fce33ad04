"""Observers and loggers log the values of an independent computation, change nothing, never wait for the device"""
import json, math, sys
from types import ModuleType, SimpleNamespace
import pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from torch.optim import SGD, Adam
import learnkit.observe.observer as system, learnkit.observe.speed as speed_module, learnkit.callbacks.clock as timing
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.loop.callback import Callback
from learnkit.loop.events import CancelBatch, CancelEpoch, CancelFit, CancelStep, event
from learnkit.callbacks.cycles import ValidateEvery
from learnkit.callbacks.gradients import GradientClip
from learnkit.observe.observer import OptimizerMonitor
from learnkit.observe.observer import MemoryMonitor, SystemMetrics
from learnkit.speed.memory import FreeOutputs
from learnkit.observe.services import ImageLogger
from learnkit.observe.files import JsonLogger, MetricsLogger
from learnkit.contrib.tensorboard import TensorBoardLogger
from learnkit.recovery.export import ExportAtEnd
from learnkit.observe.observer import LossMonitor, LRMonitor, Observer
from learnkit.observe.speed import RuntimeEstimator, SpeedMonitor
from learnkit.loop.run import null_logger
from learnkit.measure.recorder import Recorder
from learnkit.learner.learner import Learner
from learnkit.measure.metrics import mae
from test_calls import Calls, Reads, fit as watched, N
from test_time import Tick
from oracle import TRAIN, VALID
from toys import at, batches, draws, few, learner, model, slow, throw, weights

quick = draws(15)
ALL = [LossMonitor, LRMonitor, OptimizerMonitor, SpeedMonitor, RuntimeEstimator, MemoryMonitor, SystemMetrics]

@pytest.fixture
def tick(monkeypatch):
    t = Tick()
    for m in (timing, speed_module, system): monkeypatch.setattr(m, 'perf_counter', t)
    return t

class LogsMetrics(Callback):
    order = 62
    def __init__(self): self.got = []
    def log_metrics(self, metrics, step): self.got.append((step, metrics))

def net(): torch.manual_seed(0); return nn.Sequential(nn.Linear(4,8), nn.BatchNorm1d(8), nn.Dropout(.3), nn.Linear(8,1))

# observing changes nothing
@pytest.mark.parametrize('every', ['1ba', '3ba', '1ep', '7sp', lambda learn: learn.train_iter in (2,5)])
def test_the_same_weights(every, tmp_path):
    runs = []
    for cbs in ([], [cls(every) for cls in ALL] + [JsonLogger(), FreeOutputs(), ImageLogger(every, f=lambda learn: dict(x=learn.xb[0][None,None])), LogsMetrics()]):
        learn = learner(n=5, model=net(), opt_func=Adam, metrics=mae, cbs=cbs, path=tmp_path)
        learn.logger = null_logger
        torch.manual_seed(3)
        learn.fit(3)
        runs.append((weights(learn), torch.get_rng_state(), torch.tensor(learn.recorder.history['valid_loss']), torch.stack(list(learn.recorder.losses))))
    for a,b in zip(*runs): assert torch.equal(a, b)

@pytest.mark.parametrize('valid', [False, True])
def test_no_observer_waits_for_the_device(valid):
    got = watched(Reads(), *(cls('2ba') for cls in (LossMonitor, LRMonitor, OptimizerMonitor, SpeedMonitor, RuntimeEstimator)), LogsMetrics(), valid=valid)
    assert not got.names, f'in {N} batches: {dict(got.names)}'

def test_an_event_that_is_not_fired_costs_nothing():
    none,more = watched(Calls()),watched(Calls(), LogsMetrics(), LossMonitor('1ep'), LRMonitor('1ep'))
    assert (none.total, none.names)==(more.total, more.names)

EVENTS = [e for e in event if e.startswith(('before_','after_','cleanup')) and event.depth[e]<=3 and not any(w in e for w in ('cancel','create','evaluate','predict','checkpoint','_model','exception'))]
@few(12, 40)
@pytest.mark.parametrize('ev', EVENTS)
@pytest.mark.parametrize('exc', [KeyboardInterrupt, CancelBatch, *slow(CancelFit, CancelEpoch)])
def test_an_exception_or_cancel_at_any_event(ev, exc, tmp_path):
    "The values so far are in the file, no file stays open, and the next fit gives the same result as the first"
    json_logger = JsonLogger()
    obs = [cls('1ba') for cls in ALL]
    def fit(*cbs):
        learn = learner(model=net(), cbs=[*obs, json_logger, *cbs], path=tmp_path)
        learn.logger = null_logger
        return learn
    once = []
    learn = fit(at(ev, throw(exc('boom')), lambda cb: cb.learn.train_iter>=2 and not once and not once.append(1), order=1000))
    try: learn.fit(2)
    except (KeyboardInterrupt, RuntimeError): pass
    loss,opt = obs[0],obs[2]
    assert json_logger.log_file.file is None and not learn._outbox.rows and opt.start is None and loss.rows
    assert [r['batch_loss'] for r in json_logger.read_log() if list(r)==['step','batch_loss']]==loss.rows['batch_loss']
    learn.remove_cbs(obs + [json_logger])
    again,fresh = fit(),learner(model=net(), cbs=[LossMonitor('1ba'), OptimizerMonitor('1ba')])
    fresh.logger = null_logger
    for l in (again, fresh): torch.manual_seed(0); l.fit(1)
    assert loss.history==fresh.loss_monitor.history and obs[2].history==fresh.optimizer_monitor.history
    assert len([r for r in json_logger.read_log() if list(r)==['step','batch_loss']])==3

# rows and the event
@quick
@given(st.integers(1, 5), st.integers(1, 7), st.integers(1, 3), st.integers(1, 6))
def test_each_row_is_logged_once_in_order(every, n, n_epoch, max_pending):
    class Two(Observer):
        def measure(self): return dict(a=torch.tensor(float(self.learn.train_iter)), b=self.learn.train_iter/2, c=torch.tensor([2.]))
    obs,hear = Two(f'{every}ba'),LogsMetrics()
    learn = learner(n=n, cbs=[hear, obs])
    learn._outbox.max_pending = max_pending
    learn.logger = null_logger
    learn.fit(n_epoch)
    steps = list(range(every, n*n_epoch+1, every))
    assert hear.got==[(i, dict(a=i, b=i/2, c=2.)) for i in steps]
    assert obs.history==[dict(epoch=(i-1)//n, train_iter=i, a=i, b=i/2, c=2.) for i in steps] and all(type(v) in (int,float) for r in obs.history for v in r.values())

def test_history_can_be_read_during_a_fit():
    obs,seen = LossMonitor('1ba'),[]
    learner(n=6, cbs=[obs, at('after_batch', lambda cb: seen.append((len(obs.rows), len(obs.history), len(cb.learn._outbox.rows))), lambda cb: cb.learn.training and cb.learn.iter==3, order=99)]).fit(1)
    assert seen==[(0,4,0)]

def test_loss_and_lr():
    losses = []
    learn = learner(cbs=[LossMonitor('1ba'), LRMonitor('1ba'), at('after_loss', lambda cb: losses.append(cb.learn.loss.item()), lambda cb: cb.learn.training),
                         at('before_batch', lambda cb: cb.learn.opt.set_hyper('lr', .1*(cb.learn.train_iter+1)), lambda cb: cb.learn.training)])
    learn.fit(2)
    assert learn.loss_monitor.history['batch_loss']==losses and learn.lr_monitor.history['lr']==pytest.approx([.1*i for i in range(1,7)])
    two = learner(cbs=LRMonitor('1ep'), model=net(), splitter=lambda m: [list(m[:2].parameters()), list(m[2:].parameters())], lr=[.1,.2])
    two.fit(1)
    assert {k:v for k,v in two.lr_monitor.history[0].items() if 'lr' in k}=={'lr/0':.1, 'lr/1':.2}

@pytest.mark.parametrize('first', [False, True])
def test_state_of_a_resumed_run(first, tmp_path):
    "The rows and the log file of a resumed run equal those of an uninterrupted one"
    def make(path, stop=None):
        cbs = [*([JsonLogger()] if first else []), LossMonitor('2ba'), OptimizerMonitor('3ba'), *([] if first else [JsonLogger()]), CheckpointCallback('2ba')]
        if stop: cbs.append(at('after_batch', throw(KeyboardInterrupt), lambda cb: cb.learn.training and cb.learn.train_iter==stop, order=1000))
        learn = learner(n=7, dls=None, path=path, cbs=cbs)
        learn.logger = null_logger
        return learn
    whole = make(tmp_path/'a'); whole.fit(2, resume='auto')
    stopped = make(tmp_path/'b', stop=9)
    with pytest.raises(KeyboardInterrupt): stopped.fit(2, resume='auto')
    again = make(tmp_path/'b'); again.fit(2, resume='auto')
    for k in ('loss_monitor','optimizer_monitor'): assert getattr(again, k).history==getattr(whole, k).history
    drop = lambda rows: [{k:v for k,v in r.items() if k!='time'} for r in rows]
    assert drop(again.json_logger.read_log())==drop(whole.json_logger.read_log())

def test_without_measure():
    with pytest.raises(NotImplementedError, match='needs a method `measure`'): learner(cbs=Observer('1ba')).fit(1)

# gradients
@pytest.mark.parametrize('opt', [SGD, Adam])
def test_norms_equal_a_direct_computation(opt):
    learn = learner(n=4, model=net(), opt_func=opt, cbs=OptimizerMonitor('1ba'))
    rows = []
    def look(cb):
        ps = dict(cb.learn.model.named_parameters())
        old = {n:p.detach().clone() for n,p in ps.items()}
        grads = {n:p.grad.clone() for n,p in ps.items()}
        def then(cb2):
            row = {f'grad_norm/{n}':g.norm().item() for n,g in grads.items()}
            row |= {f'weight_norm/{n}':p.norm().item() for n,p in ps.items()}
            row |= {f'update_norm/{n}':(p-old[n]).norm().item() for n,p in ps.items()}
            row |= {f'update_ratio/{n}':row[f'update_norm/{n}']/row[f'weight_norm/{n}'] if row[f'weight_norm/{n}'] else math.inf for n in ps}
            for k in ('grad','weight','update'): row[f'{k}_norm'] = math.sqrt(sum(v*v for n,v in row.items() if n.startswith(f'{k}_norm/')))
            rows.append(row | dict(update_ratio=row['update_norm']/row['weight_norm']))
        after.f = then
    class After(Callback):
        run_valid,order = False,51
        def after_step(self): self.f(self)
    after = After()
    learn.add_cbs([at('before_step', look, order=98), after])
    learn.fit(2)
    got = [{k:v for k,v in r.items() if k not in ('epoch','train_iter')} for r in learn.optimizer_monitor.history]
    assert len(got)==len(rows)==8
    for a,b in zip(got, rows): assert a==pytest.approx(b, rel=1e-4, abs=1e-7)

def test_cancelled_and_accumulated_steps():
    "A cancelled step is not measured; the next one is"
    skip = at('before_step', throw(CancelStep()), lambda cb: cb.learn.train_iter%3!=2, order=99)
    learn = learner(n=6, cbs=[OptimizerMonitor('1ba', per_layer=False), skip])
    learn.fit(1)
    assert learn.optimizer_monitor.history['train_iter']==[3,6]
    assert list(learn.optimizer_monitor.history[0])==['epoch','train_iter','grad_norm','weight_norm','update_norm','update_ratio']
    early = at('before_step', throw(CancelBatch()), lambda cb: cb.learn.train_iter%3!=2, order=-1)
    learn = learner(n=6, cbs=[OptimizerMonitor('1ba'), early])
    learn.fit(1)
    assert learn.optimizer_monitor.history['train_iter']==[3,6]

def test_frozen_parameters_have_no_norm():
    m = net()
    for p in m[0].parameters(): p.requires_grad = False
    learn = learner(model=m, cbs=OptimizerMonitor('1ba'))
    learn.fit(1)
    assert not any('/0.' in k for k in learn.optimizer_monitor.history[0]) and 'grad_norm/3.weight' in learn.optimizer_monitor.history[0]

# speed and remaining time
@quick
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 9)), min_size=1, max_size=9), st.integers(1, 12), st.integers(1, 3))
def test_speed(data, window, n_epoch):
    "Speeds are right for batches of known times and sizes, and exclude validations, which take an hour"
    tick = Tick()
    with pytest.MonkeyPatch.context() as mp:
        mp.setattr(timing, 'perf_counter', tick); mp.setattr(speed_module, 'perf_counter', tick)
        dl = [(torch.ones(n,4), torch.ones(n,1)) for _,n in data]
        secs = at('before_batch', lambda cb: tick.forward(data[cb.learn.iter][0] if cb.learn.training else 3600))
        speed = SpeedMonitor('1ba', window=window, flops=lambda b: 100*len(b[0]), peak_flops=1000.)
        learn = Learner((dl, batches(1)), nn.Linear(4,1), nn.MSELoss(), SGD, lr=.01, cbs=[speed, secs, ValidateEvery('2ba')])
        learn.logger = null_logger
        learn.fit(n_epoch)
    all_ = data*n_epoch
    for i,row in enumerate(speed.history):
        part = all_[max(0, i+1-window):i+1]
        t,n = (sum(o[k] for o in part) for k in (0,1))
        assert row=={'epoch':i//len(data), 'train_iter':i+1, 'batches_per_sec':pytest.approx(len(part)/t), 'samples_per_sec':pytest.approx(n/t), 'flops_per_sec':pytest.approx(100*n/t),
                     'mfu':pytest.approx(.1*n/t), 'train_seconds':sum(o[0] for o in all_[:i+1])}
    assert len(speed.history)==len(all_)

def test_tokens_per_second(tick):
    data = [(torch.zeros(2, 5, dtype=torch.long), torch.zeros(2, 5, dtype=torch.long))]*4
    learn = Learner((data, None), nn.Embedding(3, 3), nn.CrossEntropyLoss(), SGD, lr=.1, cbs=[SpeedMonitor('1ba'), at('after_pred', lambda cb: tick.forward(2)), at('after_pred', lambda cb: setattr(cb.learn, 'pred', cb.learn.pred.transpose(1,2)))])
    learn.logger = null_logger
    learn.fit(1)
    assert learn.speed_monitor.history['tokens_per_sec']==pytest.approx([5.]*4)

@pytest.mark.parametrize('within', [False, True])
@pytest.mark.parametrize('skip', [0, 1, 3])
def test_remaining(tick, skip, within):
    "With constant times of batches and validations, the estimate is exact once each has been timed"
    n,n_epoch = 4,3
    def cost(cb):
        if cb.learn.training: tick.forward(2 if cb.learn.train_iter>=skip else 1000)
        else: tick.forward(10 if cb.learn.mode=='fit' else 6)
    est = RuntimeEstimator('1ba', skip=skip)
    learn = learner(n=n, nv=1, cbs=[est, at('before_batch', cost), *([ValidateEvery('1ba')] if within else [])])
    learn.logger = null_logger
    learn.fit(n_epoch)
    assert est.history['train_iter']==list(range(skip+1, n*n_epoch+1))
    for i,v in zip(est.history['train_iter'], est.history['remaining']):
        evals = (n_epoch - (i-1)//n) if i>n else 0   # no validation is timed before the end of the first epoch
        seen = within*(1 if skip else (i-1)/i)       # validations per batch so far, excluding the one after this batch
        assert v==pytest.approx((n*n_epoch-i)*(2 + 6*seen) + 10*evals)

def test_unknown_length_gives_no_estimate_at_first():
    class Stream:
        def __iter__(self): return iter(batches(4))
    learn = Learner((Stream(), None), model(), nn.MSELoss(), SGD, cbs=RuntimeEstimator('1ba'))
    learn.logger = null_logger
    learn.fit(2)
    assert learn.runtime_estimator.history['train_iter'][0]>4

@pytest.mark.parametrize('make,words', [
    (lambda: SpeedMonitor(window=0), 'number of batches'), (lambda: SpeedMonitor(peak_flops=1.), 'as `flops`'), (lambda: RuntimeEstimator(skip=-1), '0 or more'), (lambda: LossMonitor('5'), "'2ep'"),
    (lambda: ImageLogger(n=0), '`n` must be a number of images, 1 or more, not 0')])
def test_bad_settings(make, words):
    with pytest.raises(ValueError, match=words): make()

# memory and the machine
def test_process_memory():
    psutil = pytest.importorskip('psutil')
    learn = learner(cbs=MemoryMonitor('1ep'))
    learn.fit(1)
    assert learn.memory_monitor.history['rss'][0]==pytest.approx(psutil.Process().memory_info().rss/1e9, rel=.2)

def test_device_memory(monkeypatch):
    "The allocator of an accelerator is replaced by fixed numbers"
    mm,resets = MemoryMonitor('1ba'),[]
    stats = {'allocated_bytes.all.current':1e9, 'allocated_bytes.all.peak':2e9, 'reserved_bytes.all.current':3e9, 'reserved_bytes.all.peak':4e9, 'num_alloc_retries':1}
    mm.measured_device,mm.has_stats = 'cuda:0',True
    monkeypatch.setattr(torch, 'accelerator', SimpleNamespace(memory_stats=lambda d: stats, reset_peak_memory_stats=resets.append))
    assert mm.measure()==dict(allocated=1, peak_allocated=2, reserved=3, peak_reserved=4, retries=1) and resets==['cuda:0']

def test_system_metrics(tick, monkeypatch):
    pytest.importorskip('psutil')
    totals = iter([dict(disk_read=0, disk_write=0, net_sent=0, net_recv=0), dict(disk_read=4e6, disk_write=2e6, net_sent=0, net_recv=1e6)])
    monkeypatch.setattr(SystemMetrics, '_read_totals', lambda self: next(totals))
    learn = learner(n=1, cbs=[SystemMetrics('1ba'), at('before_batch', lambda cb: tick.forward(2))])
    learn.fit(1)
    row = learn.system_metrics.history[0]
    assert [row[f'{k}_mb_per_sec'] for k in ('disk_read','disk_write','net_sent','net_recv')]==[2,1,0,.5] and 0<=row['cpu_percent']<=100 and 0<row['memory_percent']<=100

def test_gpu_percent(monkeypatch):
    "With a fake driver, the percentage is logged; without a driver there is none"
    cuda = torch.device('cuda', 0)
    monkeypatch.setattr(torch.cuda, 'utilization', lambda d: 42 if d==cuda else None)
    assert system._make_gpu_meter(cuda)()==42 and system._make_gpu_meter(torch.device('cpu')) is None
    for e in (ModuleNotFoundError('nvidia-ml-py'), RuntimeError('driver')):
        monkeypatch.setattr(torch.cuda, 'utilization', throw(e))
        assert system._make_gpu_meter(cuda) is None

@pytest.mark.parametrize('make,module', [(MemoryMonitor, 'psutil'), (SystemMetrics, 'psutil'), (TensorBoardLogger, 'tensorboard.summary.writer.record_writer')])
def test_a_missing_package_is_named(make, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    seen,package = [],module.partition('.')[0]
    words = rf'needs {package}: pip install .*\b{package}\b.*extra `logging`'
    with pytest.raises(ImportError, match=words) as e: learner(cbs=[make(), at('before_batch', lambda cb: seen.append(1))]).fit(1)
    assert not seen and not any('cleanup' in n for n in e.value.__notes__)   # the error is reported once

# trace
def test_every_event_through_one_method():
    "A callback's `__call__` receives exactly the events that the loop fires"
    class All(Callback):
        order = 1000
        def __init__(self): self.heard = []
        def __call__(self, name, **kwargs): self.heard.append((name, *kwargs))
    learn = learner(n=2, nv=1, cbs=[All, LossMonitor('2ba')])
    learn.all.heard.clear()
    learn.fit(1)
    assert ('log_metrics','metrics','step') in learn.all.heard
    want = ['before_fit','before_epoch','before_train', *TRAIN*2, 'before_fetch','after_exhaust','after_train','before_validate', *VALID, 'before_fetch',
            'after_exhaust','after_validate','after_epoch','after_fit','cleanup']
    assert [n for n,*_ in learn.all.heard if n not in ('log_metrics','after_read_losses')]==want   # these two are fired by callbacks

# predictions released early
def test_free_outputs():
    held = []
    learn = learner(metrics=mae, cbs=[FreeOutputs, at('before_backward', lambda cb: held.append(cb.learn.pred)), at('after_loss', lambda cb: held.append(cb.learn.pred is None), order=98)])
    learn.fit(1)
    assert held==[False,None]*3+[False]*2 and learn.recorder.history[0]['mae'] is not None

def test_free_outputs_and_train_metrics():
    learn = learner(cbs=FreeOutputs, metrics=mae)
    learn.recorder.train_metrics = True
    with pytest.raises(ValueError, match='use either'): learn.fit(1)

# loggers
def test_json_lines_are_json(tmp_path):
    class Odd(Observer):
        def measure(self): return dict(a=math.nan, b=torch.tensor(math.inf), c=-math.inf, d=1, e=.1)
    learn = learner(cbs=[JsonLogger('logs/x.jsonl'), Odd('1ep')], path=tmp_path)
    learn.fit(1)
    lines = (tmp_path/'logs/x.jsonl').read_text().splitlines()
    def no(s): raise AssertionError(s)
    assert json.loads(lines[0], parse_constant=no).keys()=={'step','a','b','c','d','e'} or json.loads(lines[1], parse_constant=no)
    row = next(r for r in learn.json_logger.read_log() if 'a' in r)
    assert math.isnan(row['a']) and (row['b'],row['c'],row['d'],row['e'],row['step'])==(math.inf,-math.inf,1,.1,3)

def test_json_append_and_replace(tmp_path):
    for append,n in ((False,2),(False,2),(True,4)):
        learn = learner(cbs=JsonLogger(append=append), path=tmp_path)
        learn.fit(2)
        assert len(learn.json_logger.read_log())==n
    with pytest.raises(FileNotFoundError, match='written by'): JsonLogger(tmp_path/'none').read_log()

def test_a_truncated_file_does_not_grow(tmp_path):
    "If the file is shorter than in the saved state, the log warns and continues at the file's end"
    learn = learner(cbs=JsonLogger, path=tmp_path)
    log = learn.json_logger
    log.load_state_dict(dict(start=0, log_file=dict(pos=10**6, held=[])))
    with pytest.warns(UserWarning, match='rows are missing'): learn.fit(1)
    assert len(log.read_log())==1 and (tmp_path/'log.jsonl').stat().st_size<1000

def points(path):
    "The reader of TensorBoard's files, and name, step and value of all scalars in display order"
    acc = pytest.importorskip('tensorboard.backend.event_processing.event_accumulator').EventAccumulator(str(path), size_guidance=dict(scalars=0)).Reload()
    return acc,[(k, e.step, e.value) for k in acc.Tags()['scalars'] for e in acc.Scalars(k)]

def test_tensorboard(tmp_path):
    pytest.importorskip('tensorboard')
    learn = learner(cbs=[TensorBoardLogger, LossMonitor('2ba'), ImageLogger('2ba', f=lambda learn: dict(x=learn.xb[0].view(4,1,2,2).sigmoid()))], path=tmp_path)
    learn.fit(2)
    acc,got = points(tmp_path/'runs')
    assert [e.step for e in acc.Images('x')]==[2,4,6] and len([*(tmp_path/'runs').iterdir()])==1
    assert [o for o in got if o[0]=='batch_loss']==[('batch_loss', i, pytest.approx(l)) for l,i in zip(learn.loss_monitor.history['batch_loss'], (2,4,6))]
    losses = {k:v for k,v in learn.recorder.history[0].items() if k.endswith('loss')}
    assert {k:v for k,s,v in got if s==3}==pytest.approx(dict(losses, lr=learn.opt.hypers[0]['lr']))

def test_tensorboard_shows_both_fits(tmp_path):
    "A second fit with `resume='auto'` keeps the points of the first, complete one; it used to hide them"
    pytest.importorskip('tensorboard')
    learn = learner(cbs=[CheckpointCallback(), TensorBoardLogger, LossMonitor('1ba')], path=tmp_path)
    for n in 1,2: learn.fit(n, resume='auto')
    assert [s for k,s,_ in points(tmp_path/'runs')[1] if k=='batch_loss']==[*range(1, 10)]

def test_tensorboard_is_closed_after_an_error(tmp_path):
    pytest.importorskip('tensorboard')
    learn = learner(cbs=[TensorBoardLogger, LossMonitor('1ba'), at('after_batch', throw(ZeroDivisionError()), order=99)], path=tmp_path)
    with pytest.raises(ZeroDivisionError): learn.fit(1)
    assert learn.tensor_board_logger.log_file.file is None and [o[:2] for o in points(tmp_path/'runs')[1]]==[('batch_loss', 1)]

def test_a_logger_without_write_raises():
    with pytest.raises(NotImplementedError, match='needs a method `write'): learner(cbs=[MetricsLogger, LossMonitor('1ba')]).fit(1)

def test_no_logging_of_inference(tmp_path):
    hear = LogsMetrics()
    learn = learner(cbs=[hear, JsonLogger, *(cls('1ba') for cls in ALL)], path=tmp_path)
    learn.validate(); learn.get_preds()
    assert not hear.got and not (tmp_path/'log.jsonl').exists()

# export
def test_export(tmp_path):
    m,modes = net(),[]
    def export(model, xb, path): modes.append((model.training, torch.is_grad_enabled(), model is m, path))
    learn = learner(model=m, cbs=ExportAtEnd('sub/x.onnx', export), path=tmp_path)
    learn.fit(1)
    assert modes==[(False, False, True, tmp_path/'sub/x.onnx')] and (tmp_path/'sub').is_dir()
    learn.validate()
    with pytest.raises(ZeroDivisionError): learn.fit(1, cbs=at('after_batch', throw(ZeroDivisionError())))
    assert len(modes)==1

def test_a_failed_export_leaves_the_modes(tmp_path):
    learn = learner(model=net(), cbs=ExportAtEnd(export=throw(RuntimeError('no'))), path=tmp_path)
    before = []
    learn.add_cb(at('after_fit', lambda cb: before.extend(m.training for m in cb.learn.model.modules())))
    with pytest.raises(RuntimeError, match='no'): learn.fit(1)
    assert [m.training for m in learn.model.modules()]==before

def test_integers_are_not_rounded():
    "Tensors of a row were stacked in a common dtype: next to a loss in bfloat16, 1001 tokens became 1000"
    row = lambda i: dict(loss=torch.tensor(.5, dtype=torch.bfloat16), tokens=torch.tensor(1001+i), total=torch.tensor(2**24+1), scale=torch.tensor(.1, dtype=torch.double))
    log = LogsMetrics()
    learner(cbs=[log, LRMonitor('9ba'), at('after_batch', lambda cb: cb.learn.log_numbers(row(cb.learn.train_iter)), lambda cb: cb.learn.training)]).fit(1)
    assert log.got==[(i, {k:v.item() for k,v in row(i).items()}) for i in (1,2,3)] and [*log.got[0][1]]==['loss','tokens','total','scale']

def test_optimizer_monitor_measures_all_that_is_trained():
    "Parameters of the loss function were left out of the norms"
    class Weighted(nn.Module):
        def __init__(self): super().__init__(); self.scale = nn.Parameter(torch.ones(()))
        def forward(self, pred, y): return (self.scale*pred-y).pow(2).mean()
    learn = learner(loss_func=Weighted(), cbs=[OptimizerMonitor('1ba'), GradientClip(100.)])
    learn.fit(1)
    row = learn.optimizer_monitor.history[-1]
    assert row['grad_norm']==pytest.approx(learn.gradient_clip.norm.item()) and row['grad_norm/loss_func.scale']>0

def test_lazy_layers_have_hyperparameters(tmp_path):
    "A logger raised before the first batch, as lazy parameters cannot be counted"
    learn = learner(model=nn.LazyLinear(1), path=tmp_path, cbs=JsonLogger())
    learn.fit(1)
    first,_ = (tmp_path/'log.jsonl').read_text().split('\n', 1)
    assert json.loads(first)['hparams']['model parameters'] is None and learn.hparams()['model parameters']==5

def test_image_logger_needs_tensors():
    "A list raised an AttributeError"
    with pytest.raises(ValueError, match=r'`a` is .* images must have the shape'): learner(cbs=ImageLogger('1ba', f=lambda learn: dict(a=[1,2]))).fit(1)
