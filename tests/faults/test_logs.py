"""Logs have each row once and in order: over several fits and resumed runs, for all kinds of values and loggers, and
while the disk is full. test_killed_logs.py tests the logs of runs killed at random moments."""
import errno, json, os, sys, warnings
from collections import Counter

import pytest, torch
from hypothesis import given, strategies as st
from torch import nn

from learnkit.all import (Callback, CheckpointCallback, CSVLogger, EarlyStoppingCallback, Evaluator, ImageLogger, JsonLogger, LossMonitor, LRMonitor, MetricsLogger,
                          OptimizerMonitor, ReduceLROnPlateau, SaveModelCallback, ThresholdStopper, ValidateEvery, checkpoint_info, list_checkpoints, mae)
from learnkit.observe import files as log_file
from learnkit.observe.files import LogFile
from learnkit.loop.run import null_logger
from test_calls import Reads
from toys import at, batches, draws, learner, throw

class Wrote(MetricsLogger):
    "Records the steps and names that are written"
    def __init__(self): self.got = []
    def write(self, metrics, step): self.got.append((step, *metrics))

def quiet(**kw):
    learn = learner(**kw)
    learn.logger = null_logger
    return learn.remove_cb(learn.progress)

# the order of rows

kinds = dict(loss=lambda n: LossMonitor(f'{n}ba'), lr=lambda n: LRMonitor(f'{n}ba'), opt=lambda n: OptimizerMonitor(f'{n}ba', per_layer=False), mid=lambda n: ValidateEvery(f'{n}ba'),
             test=lambda n: Evaluator('test', batches(1), every=f'{n}ba'), own=lambda n: at('after_batch', lambda cb: cb.learn.log_numbers(dict(own=1) if cb.learn.iter%2 else dict(own=cb.learn.loss)),
                                                                                           lambda cb: cb.learn.training and cb.learn.iter%n==0))

@draws(15)
@given(st.lists(st.tuples(st.sampled_from([*kinds]), st.integers(1, 4)), min_size=1, max_size=4, unique_by=lambda o: o[0]), st.lists(st.integers(1, 3), min_size=1, max_size=3),
       st.integers(1, 5), st.integers(1, 9))
def test_steps_only_grow_over_all_fits(who, fits, n, pending):
    "Rows of Python numbers overtook rows of tensors, which wait for the device, and each fit restarted at step 1"
    wrote = Wrote()
    learn = quiet(n=n, metrics=mae, cbs=[*(kinds[k](i) for k,i in who), wrote])
    learn._outbox.max_pending = pending
    for f in fits: learn.fit(f)
    steps = [s for s,*_ in wrote.got]
    assert steps==sorted(steps) and steps[-1]==n*sum(fits)
    expected = Counter()
    for k,i in who:
        name = dict(loss='batch_loss', lr='lr', opt='grad_norm', mid='valid_loss', test='test_loss', own='own')[k]
        expected[name] += sum(sum(len(range(0, n, i)) for _ in range(f)) if k=='own' else -(-n*f//i) if k=='opt' else n*f//i for f in fits)
    expected['valid_loss'] += sum(fits)
    expected['lr'] += expected['valid_loss'] + expected['test_loss']   # each row of the table has it
    got = Counter(name for _,*names in wrote.got for name in names)
    assert all(got[k]==v for k,v in expected.items()), (got, expected)

def test_logging_waits_for_no_device():
    "A logged tensor is read from the device after the epoch, even if Python numbers are logged after it"
    log = at('after_batch', lambda cb: [cb.learn.log_numbers(dict(a=cb.learn.loss)), cb.learn.log_numbers(dict(b=1.))], lambda cb: cb.learn.training)
    read = Reads()
    learn = quiet(n=20, nv=0, cbs=[log, Wrote()])
    learn.fit(1, cbs=Callback(before_train=lambda cb: read.__enter__(), after_exhaust=lambda cb: read.__exit__(None, None, None)))
    assert not read.names and [o[1:] for o in learn.wrote.got if o[1] in 'ab']==[('a',), ('b',)]*20

def test_log_numbers_takes_only_numbers():
    learn = quiet(cbs=Wrote())
    for v in ('text', None, [1.], torch.ones(2)):
        with pytest.raises(TypeError, match='must be one number to be logged'): learn.log_numbers(dict(a=v))
    learn.log_numbers(dict(a=torch.tensor(2), b=torch.tensor([.5]), c=True))
    assert learn.wrote.got==[(0, 'a', 'b', 'c')]

def test_a_step_that_decreases_raises():
    learn = quiet(cbs=Wrote())
    learn.fit(1)
    with pytest.raises(ValueError, match='steps must not decrease'): learn('log_metrics', metrics=dict(a=1), step=1)

def test_inference_logs_only_within_a_fit():
    log = at('after_validate', lambda cb: cb.learn.log_numbers(dict(here=1)))
    learn = quiet(cbs=[log, Wrote()])
    learn.validate(); learn.get_preds()
    assert not learn.wrote.got
    learn.fit(1, cbs=ValidateEvery('2ba'))
    assert [o for o in learn.wrote.got if 'here' in o]==[(2,'here'), (3,'here')]

def test_images_come_in_order():
    "An image must not overtake the numbers that were logged before it"
    got = []
    class Both(Wrote):
        def write(self, metrics, step): got.append((step, *metrics))
        def write_media(self, kind, media, step): got.append((step, *media))
    quiet(cbs=[LossMonitor('1ba'), ImageLogger('1ba', f=lambda learn: dict(x=learn.xb[0].view(4,1,2,2))), Both]).fit(1)
    assert [o for o in got if o[1] in ('batch_loss','x')]==[(i,k) for i in (1,2,3) for k in ('batch_loss','x')]

@draws(15)
@given(st.lists(st.sampled_from(['number','tensor','text','table','image','histogram']), min_size=1, max_size=6), st.integers(1, 9))
def test_values_of_all_kinds_are_logged_in_order(what, pending):
    "Images overtook the numbers that were logged before them; texts, tables and histograms could not be logged"
    got,given = [],[]
    class All(Wrote):
        def write(self, metrics, step): got.extend((step, k) for k in metrics if k[0]=='v')
        def write_media(self, kind, media, step): got.extend((step, k) for k in media)
    values = dict(number=1., tensor=torch.tensor(1.), text='a', table=[dict(a=1)], image=torch.rand(1,1,2,2), histogram=torch.rand(3))
    def log(cb):
        for k in what:
            name = f'v{len(given)}'
            (cb.learn.log_numbers if k in ('number','tensor') else cb.learn.log_objects)({name:values[k]})
            given.append((cb.learn.train_iter, name))
    learn = quiet(cbs=[at('after_batch', log, lambda cb: cb.learn.training), All])
    learn._outbox.max_pending = pending
    learn.fit(2)
    assert [o for o in got if o[1][1:].isdigit()]==given

def test_log_objects_raises_for_unsupported_values():
    learn = quiet(cbs=Wrote())
    for v in (1., None, [], torch.zeros(2,2), torch.zeros(0), [1]):
        with pytest.raises(TypeError, match='can be logged, not'): learn.log_objects(dict(a=v))

def test_a_figure_is_an_image():
    "A figure is logged as an image; it raised: could not determine the shape of object type 'memoryview'"
    matplotlib = pytest.importorskip('matplotlib')
    from matplotlib.figure import Figure
    class Keeps(Wrote):
        def write_media(self, kind, media, step): self.got.append((kind, media['f']))
    learn = quiet(cbs=Keeps())
    for size,dpi in (((2,1), 100), ((1.37,.92), 113.5)):
        fig = Figure(figsize=size, dpi=dpi, facecolor='red')   # it has no canvas to draw on yet
        fig.add_axes((.5,0,.5,1)).set(facecolor='blue')
        with matplotlib.rc_context({'savefig.bbox':'tight', 'savefig.dpi':30}): learn.log_objects(dict(f=fig))
        kind,image = learn.keeps.got[-1]
        assert kind=='images' and image.shape==(1, 3, *(int(n*dpi) for n in size[::-1]))
        assert image[0,:,5,5].tolist()==[255,0,0] and image[0,:,-5,-9].tolist()==[0,0,255]

def test_logged_tensors_are_copied(tmp_path):
    w = torch.ones(3)
    class Keeps(Wrote):
        def write_media(self, kind, media, step): self.got.append(media['w'].tolist())
    def log(cb): cb.learn.log_numbers(dict(a=cb.learn.loss)); cb.learn.log_objects(dict(w=w)); w.add_(1)
    learn = quiet(cbs=[at('after_batch', log, lambda cb: cb.learn.training), Keeps])
    learn.fit(1)
    assert [o for o in learn.keeps.got if isinstance(o, list)]==[[1.]*3, [2.]*3, [3.]*3]

def test_hyper_parameters_begin_each_log_once(tmp_path):
    "Hyperparameters are written once per log, however many fits and resumes follow"
    for n in (1, 2):
        learn = quiet(path=tmp_path, cbs=[JsonLogger(), CheckpointCallback('1ep')])
        learn.hparams(dropout=.1)
        for _ in range(n): learn.fit(2, resume='auto')
    first,*rows = map(json.loads, (tmp_path/'log.jsonl').read_text().splitlines())
    assert first['hparams']['dropout']==.1 and first['hparams']['epochs']==2 and first['step']==0 and [r['step'] for r in rows]==[3,6,9,12]
    assert rows==learn.json_logger.read_log()

# several fits

def test_write_hparams_is_called_once_if_it_writes_nothing(tmp_path):
    "`write_hparams` is called once; it was called for each row until the file had content"
    class Quiet(JsonLogger):
        calls = 0
        def write_hparams(self, hparams, step): self.calls += 1
        def write(self, metrics, step): pass
    learn = quiet(path=tmp_path, cbs=[Quiet, LossMonitor('1ba')])
    learn.fit(2); learn.fit(1)
    assert learn.quiet.calls==1

@pytest.mark.parametrize('make', [CSVLogger, JsonLogger, lambda: CSVLogger, lambda: JsonLogger])
def test_fine_tune_is_one_log(make, tmp_path):
    "`fine_tune` is two fits; the second one replaced the log of the first: 3 of 5 rows were lost"
    learn = quiet(path=tmp_path)
    learn.splitter = lambda m: [[m.weight], [m.bias]]
    learn.fine_tune(3, freeze_epochs=2, cbs=make())
    log = next(cls(fname) for cls,fname in ((CSVLogger,'history.csv'), (JsonLogger,'log.jsonl')) if (tmp_path/fname).exists())
    log.learn = learn
    rows = log.read_log()
    assert [r['epoch'] for r in rows]==[0,1,0,1,2] and [r.get('step') for r in rows] in ([None]*5, [3,6,9,12,15])

def test_another_learner_begins_a_new_log(tmp_path):
    for _ in range(2): quiet(path=tmp_path, cbs=[JsonLogger, CSVLogger]).fit(2)
    assert len((tmp_path/'log.jsonl').read_text().splitlines())==3 and len((tmp_path/'history.csv').read_text().splitlines())==3
    learn = quiet(path=tmp_path, cbs=[JsonLogger(append=True), CSVLogger(append=True)])
    learn.fit(1); learn.fit(1)
    assert len(learn.json_logger.read_log())==4 and learn.csv_logger.read_log()['epoch']==[0,1,0,0]

@pytest.mark.parametrize('make', [CSVLogger, JsonLogger])
def test_append_and_resume_raise(make, tmp_path):
    "After a kill before the first checkpoint, rows of this run cannot be distinguished from older ones, and were logged twice"
    learn = quiet(path=tmp_path, cbs=[make(append=True), CheckpointCallback('1ba')])
    with pytest.raises(ValueError, match='Omit `append`'): learn.fit(1, resume='auto')
    assert not (tmp_path/'log.jsonl').exists()

# validations within an epoch

class Falls(nn.MSELoss):
    "An MSE loss with prescribed losses of the validation batches"
    def __init__(self, values): super().__init__(); self.values = [*values]
    def forward(self, pred, targ): return super().forward(pred, targ) if pred.requires_grad else super().forward(pred, targ)*0 + self.values.pop(0)

def fit_with_validations(cbs, losses, tmp_path, n=4, epochs=1, **kw):
    "Fit with `n` batches an epoch, validated after every second batch and at the end; return the Learner"
    learn = quiet(n=n, nv=1, loss_func=Falls(losses), path=tmp_path, cbs=[ValidateEvery('2ba'), *cbs], **kw)
    learn.fit(epochs)
    return learn

def test_rows_within_an_epoch_reach_loggers_and_the_history(tmp_path):
    "The rows of ValidateEvery and Evaluator reached no logger, no tracker, and not the history"
    learn = fit_with_validations([JsonLogger(), CSVLogger(), Evaluator('test', batches(1), every='2ba')], [3., 9., 1., 9., 2.], tmp_path)
    assert [(r['step'], r['valid_loss']) for r in learn.json_logger.read_log() if 'valid_loss' in r]==[(2, 3.), (4, 1.), (4, 2.)]
    assert [(r['step'], r['test_loss']) for r in learn.json_logger.read_log() if 'test_loss' in r]==[(2, 9.), (4, 9.)]
    rows = learn.csv_logger.read_log()
    assert [r['valid_loss'] for r in rows]==learn.recorder.history['valid_loss']==[3., 1., 2.] and rows['train_iter']==[2,4,None]
    assert rows.names==['epoch','train_loss','valid_loss','time','train_iter','test_loss'] and len(learn.recorder.values)==1

def test_trackers_use_rows_within_an_epoch(tmp_path):
    save,early,plateau,enough = SaveModelCallback(), EarlyStoppingCallback(patience=2), ReduceLROnPlateau(patience=1), ThresholdStopper(.4)
    learn = fit_with_validations([save, plateau], [3., 1., 2., 2.], tmp_path, n=6)
    assert (save.best, plateau.best, learn.opt.hypers[0]['lr'])==(1., 1., .005) and not torch.equal(learn.model.weight, learner().model.weight)
    assert fit_with_validations([early], [1., 2., 2., 2., .5, .5], tmp_path, epochs=2).train_iter==6   # the end of an epoch adds nothing
    assert fit_with_validations([enough], [1., 2., 2., .3, .5, .5], tmp_path, epochs=2).train_iter==6

def test_the_best_checkpoint_may_be_one_within_an_epoch(tmp_path):
    learn = fit_with_validations([CheckpointCallback('1h', best='valid_loss', keep=1)], [3., 1., 2.], tmp_path)
    assert [(v, p.name) for v,p in learn.checkpoint.retention.find_best(learn.checkpoint.folder)]==[(1., 'step-00000004.pth')]
    assert checkpoint_info(list_checkpoints(learn.checkpoint.folder)[-1])['done']==4

def test_a_value_of_an_evaluator_is_compared_once(tmp_path):
    "An evaluation in the last batch of an epoch was compared again at the epoch's end"
    test = Evaluator('test', batches(1), every='4ba')
    early = EarlyStoppingCallback(test['loss'], patience=2)
    learn = quiet(n=4, nv=1, loss_func=Falls([1., 0., 2., 0., .5, 0.]), cbs=[test, early], path=tmp_path)
    learn.fit(3)
    assert (learn.train_iter, early.best, early.wait)==(12, .5, 0)

def test_a_function_after_the_epoch_sees_its_row():
    "`@learn.on('after_epoch')` sees the row of its epoch; it used to see that of the epoch before"
    learn,seen = quiet(),[]
    learn.on('after_epoch')(lambda learn: seen.append(learn.recorder.history[-1]['epoch']))
    learn.on('after_batch')(lambda learn: seen.append(len(learn.recorder.lrs)) if learn.training and learn.iter==1 else None)
    learn.fit(2)
    assert seen==[2, 0, 5, 1]

def test_the_batch_in_the_table_after_a_resume(tmp_path):
    "The batch number continues after a resume within an epoch; it restarted, as 0:2 instead of 0:6"
    def fit(*cbs):
        rows = []
        learn = quiet(n=8, nv=1, path=tmp_path, cbs=[ValidateEvery('2ba'), CheckpointCallback('4ba'), *cbs])
        learn.logger = rows.append
        try: learn.fit(1, resume='auto')
        except KeyboardInterrupt: pass
        return [r[0] for r in rows]
    assert fit(at('after_batch', throw(KeyboardInterrupt()), lambda cb: cb.learn.training and cb.learn.train_iter==5, order=200))==['0:2','0:4']
    assert fit()==['0:6','0:8',0]

def test_a_finished_fit_leaves_no_counts_to_the_next(tmp_path):
    "The next fit continued restored counts of a finished one, and measured at other batches than an unkilled run"
    def fit(n):
        learn = quiet(n=5, path=tmp_path, cbs=[LossMonitor('2ba'), CheckpointCallback('1h')])
        for _ in range(n): learn.fit(1, resume='auto')
        return learn.loss_monitor.history['train_iter']
    assert fit(1)==[2,4] and fit(2)==[2,4]

# what fastai's callbacks do

def test_values_written_to_a_row_by_position_are_kept():
    "Writing to `recorder.values[-1]` and to `recorder.log` was lost silently"
    def write(cb):
        rec = cb.learn.recorder
        rec.values[-1][1] = .5; rec.log[2] = rec.log[2]*2
        with pytest.raises(TypeError, match='only single values of this list can be replaced'): rec.log.append(1)
    learn = quiet(cbs=at('after_epoch', write, order=52))
    learn.fit(1)
    assert learn.recorder.history['valid_loss']==[1.]

def test_columns_and_log_before_the_time_is_known():
    "A fastai logger pairs columns and row, so the row ends with the last known value; it failed on `float(None)`"
    seen = []
    def log(cb): seen.append({k:float(v) for k,v in zip(cb.learn.recorder.metric_names, cb.learn.recorder.log)})
    learn = quiet(metrics=mae, cbs=[at('after_epoch', log), at('after_train', log, order=51)])
    learn.fit(1)
    assert [*map(list, seen)]==[['epoch','train_loss'], ['epoch','train_loss','valid_loss','mae']]

def test_run_takes_only_a_bool():
    "`self.run = wandb.init()` replaced the flag that decides whether the callback is called"
    cb = Callback()
    for v in (object(), 'run', [], None, 2):
        with pytest.raises(TypeError, match='give your attribute another name, as in `self.my_run = ...`'): cb.run = v
    for v in (True, False, 0, 1): cb.run = v

def test_no_logging_silences_all_messages(tmp_path, capsys):
    "'Better model found' was printed in spite of `no_logging`"
    learn = learner(path=tmp_path, cbs=[SaveModelCallback(), EarlyStoppingCallback(comp='max')])
    with learn.no_bar(), learn.no_logging(): learn.fit(3)
    assert capsys.readouterr().out=='' and learn.stop_reason
    with learn.no_bar(): learn.fit(1)
    assert 'Better model found at epoch 0' in capsys.readouterr().out

# a full disk

class Fails:
    "A file or stream on a full disk that has `room[0]` bytes left"
    def __init__(self, f, room): self.f,self.room = f,room
    def __getattr__(self, k): return getattr(self.f, k)
    def write(self, data):
        if self.room[0]<=0: raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        n = min(len(data), self.room[0])
        self.room[0] -= n
        return self.f.write(data[:n])

@draws(15)
@given(st.integers(0, 300), st.integers(0, 8), st.sampled_from([JsonLogger, CSVLogger]))
def test_a_full_disk_loses_no_row(tmp_path_factory, room, again, make):
    "Rows wait in memory and in checkpoints, with a warning; a full disk used to end the run"
    folder,left = tmp_path_factory.mktemp('log'),[room]
    def opened(self):
        LogFile_open(self)
        if not isinstance(self.file, Fails): self.file = Fails(self.file, left)
    def free(cb):
        if cb.learn.epoch==again: left[0] = 10**6
    learn = quiet(path=folder, cbs=[make(), at('before_epoch', free)])
    LogFile_open = LogFile.open
    with pytest.MonkeyPatch.context() as m, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        m.setattr(LogFile, 'open', opened)
        learn.fit(8)
    log = learn.cbs[-2]
    caught = [str(w.message) for w in caught if str(folder) in str(w.message)]
    held = log.log_file.held
    lost = [r for r in held if b'"hparams"' not in r]
    assert len(log.read_log())+len(lost)==8 and len(caught)<=2 and bool(held)==any('could not be written to' in s for s in caught)
    if lost and make is JsonLogger:
        learn.fit(1)
        assert [r['step'] for r in log.read_log()]==[*range(3, 28, 3)]

def test_output_to_a_full_disk(capsys, monkeypatch):
    "The run continues with a warning; it used to end at the first line that could not be printed"
    monkeypatch.setattr(sys, 'stdout', Fails(sys.stdout, [30]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        learn = learner()
        learn.fit(3)
    assert len(learn.recorder.history)==3 and [str(w.message)[:11] for w in caught]==['the output ']*2

# the readers

@draws(50)
@given(st.data())
def test_readers_of_any_file(tmp_path_factory, data):
    "A reader returns rows or raises a ValueError; damaged files raised TypeErrors and AttributeErrors"
    folder = tmp_path_factory.getbasetemp()
    good = b'epoch,train_loss,valid_loss,"a ""b""",time\r\n0,1.5,nan,"x,\ny",00:01\r\n1,,2.5,,00:01\r\n',b'{"step": 1, "a": 0.5}\n{"step": 2, "b": "nan", "c": null}\n'
    for make,text in zip((CSVLogger, JsonLogger), good):
        text = bytearray(data.draw(st.one_of(st.just(text), st.binary(max_size=60), st.text(max_size=60).map(lambda s: s.encode('utf-8', 'surrogatepass')))))
        for _ in range(data.draw(st.integers(0, 4))):
            i,j = sorted(data.draw(st.integers(0, len(text))) for _ in range(2))
            text[i:j] = data.draw(st.sampled_from([b'', b'"', b'\n', b',', b'\r', b'[1]', b'{', b'null', b'\xff', b'\0', b'[', b'1'*5000, text[i:j]*2]))
        (folder/'log').write_bytes(text)
        try: rows = make(folder/'log').read_log()
        except ValueError: continue
        assert all(isinstance(r, dict) and all(isinstance(k, str) for k in r) for r in rows)

def test_json_that_is_nested_too_deeply_raises(tmp_path):
    (tmp_path/'log').write_bytes(b'['*100_000 + b'\n')
    with pytest.raises(ValueError, match='line 1 is not valid JSON'): JsonLogger(tmp_path/'log').read_log()

@pytest.mark.parametrize('where', ['reopened', 'closed'])
def test_a_file_left_closed_by_an_interrupt(where, tmp_path, monkeypatch):
    "After a Ctrl-C that left the file closed, but not reopened or forgotten, all later rows were lost"
    path = tmp_path/'log'
    path.write_bytes(b'other')
    log = LogFile(path, b'head\n')
    if where=='reopened':
        log.open()
        with monkeypatch.context() as m:
            m.setattr(log_file, 'open', lambda *a, **kw: throw(KeyboardInterrupt())(), raising=False)
            with pytest.raises(KeyboardInterrupt): log.write(b'1\n')
    else: log.write(b'1\n'); log.file.close()
    log.write(b'2\n')
    log.close()
    assert path.read_bytes()==b'head\n1\n2\n'

@pytest.mark.parametrize('error, warns', [(errno.ENOSPC, True), (errno.EIO, True), (errno.EINVAL, False)], ids=['full','broken','unsupported'])
def test_a_file_that_cannot_be_flushed(error, warns, tmp_path, monkeypatch):
    "On a network drive a full disk may show in `fsync` only, whose errors were all ignored"
    def fails(fd): raise OSError(error, os.strerror(error))
    monkeypatch.setattr(os, 'fsync', fails)
    file = LogFile(tmp_path/'log')
    file.write(b'row')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        file.close()
    assert [*map(str, (w.message for w in caught))]==[f'{tmp_path}/log could not be flushed to the disk ([Errno {error}] {os.strerror(error)}): its last rows may be lost']*warns

def test_a_file_that_is_closed_already(tmp_path):
    "Ctrl-C between the two steps of a replacement leaves a closed file, which raised an error at the end of the fit"
    file = LogFile(tmp_path/'log')
    file.write(b'row')
    file.file.close()
    file.close()
    assert (tmp_path/'log').read_bytes()==b'row' and file.file is None
