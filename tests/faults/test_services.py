"""Loggers for services: whatever the service does, it gets each step once, and training continues. The tests use a
service in memory and the real packages (Weights & Biases offline, MLflow in a local store), read back by their own readers.
test_killed_logs.py tests killed runs."""
import gc, json, os, signal, socket, sys, threading, time, warnings, weakref, zipfile
from types import SimpleNamespace

import pytest, torch
from hypothesis import given, strategies as st
from learnkit.all import (CheckpointCallback, Evaluator, GradientAccumulation, ImageLogger, JsonLogger, LossMonitor, LRMonitor, Pausable, SaveModelCallback, ServiceLogger, ValidateEvery, mae)
from learnkit.contrib.mlflow import MLflowLogger
from learnkit.contrib.wandb import WandbFile, WandbLogger
from learnkit.loop.run import null_logger
from toys import at, batches, draws, learner, throw

class Server:
    "Records its calls; `down` lists which of them fail, or fail after the row was stored"
    def __init__(self, down=()): self.runs,self.down,self.calls = {},[*down],0
    def call(self):
        self.calls += 1
        return self.down.pop(0) if self.down else None

class Listed(ServiceLogger):
    wait = 10.
    def __init__(self, server): self.server = server
    def open(self, id):
        id = id or f'run{len(self.server.runs)}'
        self.server.runs.setdefault(id, dict(rows=[], hparams=None, status='running', media=[]))
        self.place['status'] = 'running' if id==self.id else self.server.runs[id]['status']
        return id
    @property
    def place(self): return self.server.runs.get(self.id, {})
    def write(self, metrics, step):
        how = self.server.call()
        if how=='down': raise ConnectionError('no answer')
        self.place['rows'].append((step, metrics))
        if how=='lost': raise TimeoutError('no answer in time')
    def last_step(self, name): return max((s for s,m in self.place['rows'] if name in m), default=-1)
    def write_media(self, kind, media, step): self.place['media'].append((step, kind, *media))
    def write_hparams(self, hparams): self.place['hparams'] = hparams
    def close(self, status): self.place['status'] = status

def quiet(**kw):
    learn = learner(**kw)
    learn.logger = null_logger
    return learn.remove_cb(learn.progress)

def steps(server, run='run0'): return [s for s,_ in server.runs[run]['rows']]

@pytest.fixture(autouse=True)
def short_waits(monkeypatch): monkeypatch.setattr('learnkit.observe.services.Sender.max_wait', .01)

@draws(6)
@given(st.lists(st.sampled_from([None,'down','lost']), max_size=12), st.lists(st.integers(1, 3), min_size=1, max_size=3), st.integers(1, 5))
def test_each_step_is_stored_once(down, fits, at_once):
    "A row whose reply was lost is not sent again, a rejected one is; part of a failed group may have been stored"
    server = Server(down)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        learn = quiet(n=4, cbs=[Listed(server), LossMonitor('1ba'), LRMonitor('2ba')])
        learn.listed.at_once = at_once
        for n in fits: learn.fit(n)
    assert steps(server)==[*range(1, 4*sum(fits)+1)] and server.runs['run0']['status']=='finished'
    assert all({'batch_loss'} <= m.keys() and ('lr' in m)==(s%2==0) and ('valid_loss' in m)==(s%4==0) for s,m in server.runs['run0']['rows'])

@pytest.mark.parametrize('e,status', [(ZeroDivisionError(), 'failed'), (KeyboardInterrupt(), 'killed'), (SystemExit(), 'killed')])
def test_how_the_run_ended(e, status):
    "A failed run was marked as finished; the next fit continues it"
    server,seen = Server(),[]
    learn = quiet(n=4, cbs=[Listed(server), LossMonitor('1ba'), at('after_step', lambda cb: seen.append(1) or len(seen)==3 and throw(e)())])
    with pytest.raises(type(e)): learn.fit(1)
    assert server.runs['run0']['status']==status and steps(server)==[1,2]
    learn.fit(1)
    assert server.runs['run0']['status']=='finished' and len(server.runs)==1

def test_a_paused_fit_continues_in_the_same_run():
    def rows(stop):
        server = Server()
        learn = quiet(n=4, cbs=[Pausable(), Listed(server), LossMonitor('1ba')])
        if not stop: learn.fit(2)
        else:
            with pytest.raises(KeyboardInterrupt): learn.fit(2, cbs=at('after_step', lambda cb: signal.raise_signal(signal.SIGINT), lambda cb: cb.train_iter==1))
            for n in (1, 3, None): learn.resume(n)
        assert [*server.runs]==['run0'] and server.runs['run0']['status']=='finished'
        return server.runs['run0']['rows']
    assert rows(True)==rows(False)

def test_a_service_that_stays_down(tmp_path):
    "Training continues with a warning, and a file gets the rows that could not be sent"
    server = Server(['down']*10**6)
    learn = quiet(n=3, path=tmp_path, cbs=[Listed(server), LossMonitor('1ba'), JsonLogger()])
    learn.listed.max_wait = .05
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        learn.fit(2)
    messages = [str(w.message) for w in caught]
    assert len(messages) in (1, 2) and 'Listed could not send' in messages[-1] and '(no answer)' in messages[-1] and len(learn.recorder.history)==2
    rows = JsonLogger(tmp_path/'listed-unsent.jsonl').read_log()
    assert [r['step'] for r in rows]==[*range(1, 7)] and all(r['batch_loss']==o['batch_loss'] for r,o in zip(rows, (o for o in learn.json_logger.read_log() if 'batch_loss' in o)))
    server.down.clear()
    learn.fit(1)
    assert steps(server)==[*range(1, 10)] and not (tmp_path/'listed-unsent.jsonl').exists()

def test_unsent_rows_are_in_the_checkpoint(tmp_path):
    "If the process ends while the service is down, the resumed run sends the missing rows"
    server = Server()
    def fit(*cbs):
        learn = quiet(n=4, path=tmp_path, cbs=[Listed(server), LossMonitor('1ba'), CheckpointCallback('1ba'), *cbs])
        learn.listed.max_wait = .05
        try: learn.fit(2, resume='auto')
        except KeyboardInterrupt: pass
        return learn
    def stop(cb):
        if cb.train_iter==2:
            assert cb.listed.sender.wait(60)   # step 1 is sent; step 2 follows when it is complete
            server.down.extend(['down']*10**6)
        if cb.train_iter==6: raise KeyboardInterrupt
    with pytest.warns(UserWarning, match='could not send'): fit(at('after_batch', stop, lambda cb: cb.training, order=200))
    assert steps(server)==[1]
    server.down = []
    fit()
    assert steps(server)==[*range(1, 9)] and len(server.runs)==1 and server.runs['run0']['status']=='finished'
    fit()   # a finished run
    assert steps(server)==[*range(1, 9)] and len(server.runs)==1

def interrupted(server, path, every='4ba'):
    "A Learner whose fit was interrupted after 6 of 8 steps; the service took at most two of them, then went down"
    learn = quiet(n=4, path=path, cbs=[Listed(server), LossMonitor('1ba'), CheckpointCallback(every)])
    learn.listed.max_wait = .05
    def stop(cb):
        if cb.train_iter==2: server.down = ['down']*10**6
        if cb.train_iter==6: raise KeyboardInterrupt
    with pytest.warns(UserWarning, match='could not send'), pytest.raises(KeyboardInterrupt):
        learn.fit(2, resume='auto', cbs=at('after_batch', stop, lambda cb: cb.training, order=200))
    assert steps(server) in ([], [1], [1,2]) and learn.listed.sender.unsent[-1]==('killed',)
    return learn

def test_a_learner_that_resumes_its_own_run(tmp_path):
    "Unsent rows are saved or trained again; steps 5 and 6 used to be sent twice, with an end of the run in between"
    server = Server()
    learn = interrupted(server, tmp_path)
    learn.listed.max_wait = 5
    learn.fit(2, resume='auto', cbs=at('after_batch', lambda cb: server.down.clear(), lambda cb: cb.train_iter==7))
    assert steps(server)==[*range(1, 9)] and len(server.runs)==1 and server.runs['run0']['status']=='finished'

def test_a_new_learner_takes_over(tmp_path):
    "If a notebook cell is run again, the old Learner's thread finishes its current call and sends no more"
    server = Server()
    old,sending,resume = interrupted(server, tmp_path),threading.Event(),threading.Event()
    def write(metrics, step): sending.set(); resume.wait(5); Listed.write(old.listed, metrics, step)
    old.listed.write = write
    sending.wait(5)
    server.down = []
    threading.Timer(.2, resume.set).start()
    new = quiet(n=4, path=tmp_path, cbs=[Listed(server), LossMonitor('1ba'), CheckpointCallback('4ba')])
    new.fit(2, resume='auto')
    assert steps(server)==[*range(1, 9)] and len(server.runs)==1 and server.runs['run0']['status']=='finished'
    assert old.listed.sender.wait(0) and not old.listed.sender.kept

def test_a_learner_is_freed():
    "The sender's thread used to keep the Learner, and so the model, alive as long as the process"
    learn = quiet(cbs=[Listed(Server()), LossMonitor('1ba')])
    sender = learn.listed.sender
    sender.idle = .01
    learn.fit(1); learn.fit(1)
    assert steps(learn.listed.server)==[*range(1, 7)]
    ref,thread = weakref.ref(learn.model),sender.thread
    if thread is not None: thread.join()   # it ends when it has had nothing to send for `idle` seconds
    del learn,sender
    gc.collect()
    assert ref() is None

def test_a_checkpoint_by_name_begins_a_new_run(tmp_path):
    "It may go back and train differently, which the old run could not log; step 2 was incomplete when it was saved"
    server = Server()
    def fit(**kw):
        learn = quiet(n=4, path=tmp_path, cbs=[Listed(server), LossMonitor('1ba'), CheckpointCallback('2ba', keep=None, overwrite='resume' in kw)])
        learn.fit(1, **kw)
        return learn
    first = next(p for p in sorted(fit().checkpoint.folder.glob('*.pth')))
    fit(resume=first, lr=.01)
    assert steps(server)==[1,2,3,4] and steps(server, 'run1')==[2,3,4] and server.runs['run1']['hparams']

def test_a_new_run_fails_at_once():
    "A service that cannot be reached raises before the first batch, not after an hour"
    class Gone(Listed):
        def open(self, id): raise ConnectionError('who are you?')
    seen = []
    with pytest.raises(ConnectionError): quiet(cbs=[Gone(Server()), at('before_batch', lambda cb: seen.append(1))]).fit(1)
    assert not seen

@pytest.mark.parametrize('make,package', [(WandbLogger, 'wandb'), (MLflowLogger, 'mlflow')])
def test_a_missing_package_is_named(make, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"needs {package}: pip install '?{package}.*extra `{package}`"): quiet(cbs=make()).fit(1)

def test_inference_leaves_no_trace():
    server = Server()
    learn = quiet(cbs=[Listed(server), LossMonitor('1ba')])
    learn.validate(); learn.get_preds(); learn.lr_find(num_it=6, show_plot=False)
    assert not server.runs
    learn.fit(1)
    assert steps(server)==[1,2,3]

def test_two_loggers_and_rows_within_the_epoch():
    "Both get all rows, with validations within the epoch, another dataset, and accumulated gradients"
    a,b = Server(),Server()
    class Other(Listed): pass
    learn = quiet(n=4, metrics=mae, cbs=[Listed(a), Other(b), LossMonitor('1ba'), ValidateEvery('2ba'), Evaluator('test', batches(1), every='2ba'), GradientAccumulation(8),
                                         ImageLogger('2ba', f=lambda learn: dict(x=learn.xb[0].view(4,1,2,2)))])
    learn.fit(2)
    assert a.runs==b.runs and steps(a)==[*range(1, 9)] and a.runs['run0']['media']==[(s,'images','x') for s in (2,4,6,8)]
    assert all(({'valid_loss','test_loss','mae'} <= m.keys())==(s%2==0) for s,m in a.runs['run0']['rows'])

def test_numbers_after_the_fit():
    server = Server()
    learn = quiet(cbs=Listed(server))
    learn.fit(1)
    learn.log_numbers(dict(test_accuracy=.9)); learn.log_numbers(dict(test_accuracy=.8)); learn.log_objects(dict(note='done'))
    assert server.runs['run0']['rows'][1:]==[(3, dict(test_accuracy=.9)), (3, dict(test_accuracy=.8))] and server.runs['run0']['status']=='finished'

def test_a_slow_service_does_not_slow_the_steps():
    "A service that takes the first row only after the last batch is waited for at the end only"
    is_trained,in_time = threading.Event(),[]
    class Slow(Listed):
        def write(self, metrics, step):
            in_time.append(is_trained.wait(60))   # False only if the training waits for this call
            super().write(metrics, step)
    server = Server()
    learn = quiet(n=8, nv=0, cbs=[Slow(server), LossMonitor('1ba'), at('after_train', lambda cb: is_trained.set())])
    learn._outbox.max_pending = 1
    learn.fit(1)
    assert in_time==[True]*8 and steps(server)==[*range(1, 9)]

class Grouped(Listed):
    "A service that answers its first call only after the training, and takes up to a hundred steps per call"
    at_once,groups = 100,()
    def __init__(self, server):
        super().__init__(server)
        self.is_trained = threading.Event()
    def after_fit(self):
        super().after_fit()
        self.is_trained.set()
    def write_steps(self, rows):
        assert self.is_trained.wait(60)
        self.groups = *self.groups,len(rows)
        super().write_steps(rows)

def test_a_metric_named_step(tmp_path):
    "The file of unsent rows could not be written, so the values of the fit were lost with a TypeError"
    learn = quiet(n=2, nv=0, path=tmp_path, cbs=[Listed(Server(['down']*10**6)), at('after_batch', lambda cb: cb.learn.log_numbers(dict(step=.5, a=1.)), order=60)])
    learn.listed.max_wait = .05
    with pytest.warns(UserWarning, match='could not send'): learn.fit(1)
    assert [r['a'] for r in JsonLogger(tmp_path/'listed-unsent.jsonl').read_log()]==[1.,1.]

def test_waiting_steps_are_sent_together():
    "One call for each of 200 steps delayed the end of a fit by half a minute"
    server = Server()
    learn = quiet(n=100, nv=0, cbs=[Grouped(server), LossMonitor('1ba')])
    learn.fit(2)
    assert steps(server)==[*range(1, 201)] and sum(learn.grouped.groups)==200 and len(learn.grouped.groups)<=4 and max(learn.grouped.groups)<=100
    assert server.runs['run0']['status']=='finished'

def test_a_file_waits_for_the_steps_before_it(tmp_path):
    "Steps are sent together up to the next file or end, which come after them"
    server,sent = Server(),[]
    class Files(Grouped):
        files = True
        def write(self, metrics, step): sent.append(step)
        def write_file(self, path): sent.append(path.suffix)
        def close(self, status): sent.append(status)
    quiet(n=3, path=tmp_path, cbs=[Files(server), LossMonitor('1ba'), SaveModelCallback()]).fit(2)
    assert sent==[*range(1, 7), '.pth', 'finished']

# the real packages

def make_wandb(path, **kw):
    pytest.importorskip('wandb')
    return WandbLogger(mode='offline', settings=dict(silent=True, console='off'), **kw)
def written(log, id=None): return [r['step'] for f in log._find_run_files(id or log.id) for r in f.rows()]
def eventually(f, want):
    "Wait until `f()` equals `want`, as W&B's process writes with a delay, and assert it"
    end = time.monotonic()+10
    while f()!=want and time.monotonic()<end: time.sleep(.1)
    assert f()==want
def make_mlflow(path, **kw):
    pytest.importorskip('mlflow'); pytest.importorskip('alembic')
    return MLflowLogger(tracking_uri=f'sqlite:///{path}/mlflow.db', **kw)

def everything(learn):
    learn.log_objects(dict(note='a note', weight=learn.model.weight.flatten(), sizes=[dict(name='w', n=4), dict(name='b')], pic=torch.rand(2,3,4,4)))

@pytest.mark.slow
def test_wandb(tmp_path):
    log = make_wandb(tmp_path, project='p', files=True)
    learn = quiet(path=tmp_path, cbs=[log, LossMonitor('1ba'), SaveModelCallback(), CheckpointCallback()])
    learn.hparams(dropout=.1)
    learn.fit(2); learn.fit(1)
    everything(learn)
    learn.log_numbers(dict(test_accuracy=.9))
    run = log.experiment
    assert run.config['dropout']==.1 and run.config['lr']==.05 and run.summary['test_accuracy']==.9 and run.summary['note']=='a note'
    run.finish()
    rows = log.read_log()
    assert [r['step'] for r in rows]==[*range(1, 10)] and [r['batch_loss'] for r in rows][6:]==learn.loss_monitor.history['batch_loss']
    assert [*(tmp_path/'wandb').glob('offline-run-*/files/media/images/pic*.png')] and len([*(tmp_path/'wandb').glob('offline-run-*')])==1

def test_wandb_writes_the_last_rows_later(tmp_path):
    "`read_log` right after `finish` lacked rows in 9 of 20 runs"
    class File:
        asked = 0
        def rows(self): self.asked += 1; return [dict(step=i) for i in range(min(self.asked, 4))]
    def read(asked=0, **kw):
        log,file = WandbLogger(),File()
        log._find_run_files,log.max_wait,file.asked = lambda id: [file],.3,asked
        vars(log).update(id='a', **kw)
        return len(log.read_log())
    over,on = SimpleNamespace(_is_finished=True),SimpleNamespace(_is_finished=False)
    assert read(experiment=over, newest_step=3)==4 and read(experiment=None, newest_step=3)==4   # ended by an exception
    assert read(experiment=on, newest_step=3)==1 and read()==2 and read(experiment=over, newest_step=9)==4

@pytest.mark.slow
def test_wandb_in_a_notebook(tmp_path):
    "A cell run again makes a new Learner, whose id was in use: its rows were lost. A named checkpoint starts a new run"
    def fit(n, resume='auto', learn=None):
        learn = learn or quiet(n=4, path=tmp_path, cbs=[make_wandb(tmp_path), LossMonitor('1ba'), CheckpointCallback('1ba', keep=None, overwrite=True)])
        with warnings.catch_warnings(action='error'): learn.fit(n, resume=resume)
        return learn
    first,second = fit(1),fit(2)
    log = second.wandb_logger
    old = log.id
    assert old==first.wandb_logger.id and first.wandb_logger.experiment is None
    path = [*second.checkpoint.folder.glob('step-00000002*.pth')][0]
    with second.no_logging(): fit(1, path, second)
    assert log.id!=old
    log.experiment.finish()
    eventually(lambda: [written(log, id) for id in (old, log.id)], [[*range(1, 9)], [2,3,4]])

@pytest.mark.slow
def test_wandb_active_run(tmp_path, monkeypatch):
    "As in a sweep, the open run gets the rows at its own steps, and stays open, even after an error"
    wandb = pytest.importorskip('wandb')
    monkeypatch.chdir(tmp_path)
    run = wandb.init(project='p', dir=str(tmp_path), mode='offline', settings=dict(silent=True, console='off'))
    run.log(dict(mine=1.))
    first = quiet(path=tmp_path, cbs=[WandbLogger(), LossMonitor('1ba')])
    first.fit(1)
    assert first.wandb_logger.experiment is run and wandb.run is run and run.config['lr']==.05
    with pytest.warns(UserWarning, match='does not use project'): quiet(path=tmp_path, cbs=[WandbLogger('q')]).fit(1)   # a second Learner, from step 1
    with pytest.raises(ZeroDivisionError): quiet(path=tmp_path, cbs=[WandbLogger(), at('after_batch', throw(ZeroDivisionError()))]).fit(1)
    run.log(dict(mine=2.))
    run.finish()
    file, = tmp_path.glob('wandb/offline-run-*/run-*.wandb')
    def read(): return [(r.get('learnkit/step'), 'batch_loss' in r, r.get('mine'), r.get('lr')) for r in WandbFile(file).rows()]
    eventually(read, [(None, False, 1, None), (1, True, None, None), (2, True, None, None), (3, True, None, .05), (3, False, None, .05), (None, False, 2, None)])

@pytest.mark.slow
def test_wandb_sweep(tmp_path, monkeypatch):
    "The agent of a sweep calls the function in a thread, once for each run; a fake server lists the runs"
    wandb = pytest.importorskip('wandb')
    from wandb.agents import pyagent
    monkeypatch.chdir(tmp_path)
    for k,v in dict(MODE='offline', SILENT='true', API_KEY='0'*40, DIR=str(tmp_path), CONSOLE='off').items(): monkeypatch.setenv(f'WANDB_{k}', v)
    rates = dict(a=.01, b=.1)
    class NoServer(pyagent.Agent):
        def _register(self): self._agent_id = 'agent'
        def _heartbeat(self):
            for id,lr in rates.items():
                job = pyagent.Job(dict(run_id=id, type='run', args=dict(lr=dict(value=lr))))
                self._run_status[id] = pyagent.RunStatus.QUEUED
                self._queue.put(job)
    monkeypatch.setattr(pyagent, 'Agent', NoServer)
    monkeypatch.setattr(wandb, 'Api', lambda *args, **kwargs: SimpleNamespace())
    seen = {}
    def train():
        with wandb.init() as run:
            learn = quiet(path=tmp_path, lr=run.config.lr, cbs=WandbLogger())
            learn.fit(2)
            assert learn.wandb_logger.experiment is run and run.sweep_id=='sweep'
            seen[run.id] = run.config['lr'],run.summary['valid_loss'],learn.recorder.history[-1]['valid_loss']
    wandb.agent('sweep', function=train, project='p', entity='e', count=2)
    assert {id:o[0] for id,o in seen.items()}==rates and all(o[1]==pytest.approx(o[2]) for o in seen.values())
    assert seen['a'][1]!=seen['b'][1]
    def read(): return [sum('valid_loss' in row for row in WandbFile(*tmp_path.glob(f'wandb/offline-run-*-{id}/run-{id}.wandb')).rows()) for id in rates]
    eventually(read, [2, 2])

@pytest.mark.slow
def test_mlflow_active_run(tmp_path, monkeypatch):
    "An open run gets the numbers and stays open; without one, a run is made in the script's experiment"
    mlflow = pytest.importorskip('mlflow'); pytest.importorskip('alembic')
    monkeypatch.chdir(tmp_path)
    was = mlflow.get_tracking_uri()
    try:
        mlflow.set_tracking_uri(f'sqlite:///{tmp_path}/mlflow.db')
        mlflow.set_experiment('mine')
        client = mlflow.MlflowClient()
        with mlflow.start_run() as run:
            with pytest.warns(UserWarning, match='does not use experiment'): quiet(path=tmp_path, cbs=MLflowLogger('other', tags=dict(kind='try'))).fit(1)
            assert mlflow.active_run().info.status=='RUNNING'
        own = quiet(path=tmp_path, cbs=MLflowLogger(run_name='ours'))
        own.fit(1)
        active,other = (client.get_run(id) for id in (run.info.run_id, own.mlflow_logger.id))
        for r in (active, other): assert {'train_loss','valid_loss','lr'}<={*r.data.metrics} and r.info.status=='FINISHED'
        assert active.data.tags['kind']=='try' and other.info.run_name=='ours' and other.info.experiment_id==active.info.experiment_id!='0'
        assert len(client.search_runs([active.info.experiment_id]))==2 and client.search_runs(['0'])==[]
    finally: mlflow.set_tracking_uri(was)

@pytest.mark.slow
def test_wandb_failed(tmp_path):
    log = make_wandb(tmp_path)
    learn = quiet(path=tmp_path, cbs=[log, LossMonitor('1ba')])
    with pytest.raises(ZeroDivisionError): learn.fit(1, cbs=at('after_batch', throw(ZeroDivisionError()), lambda cb: cb.training and cb.train_iter==2, order=99))
    from wandb.proto.wandb_internal_pb2 import Record
    eventually(lambda: [r.exit.exit_code for f in log._find_run_files(log.id) for r in map(Record.FromString, f.records()) if r.WhichOneof('record_type')=='exit'], [1])
    learn.fit(1)
    log.experiment.finish()
    eventually(lambda: written(log), [1,2,3,4,5])
    assert len({f.path.stem for f in log._find_run_files(log.id)})==1

@pytest.mark.slow
def test_mlflow(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)   # a local store has its artifacts in `mlruns`
    log = make_mlflow(tmp_path, files=True, tags=dict(a='b'), run_name='mine')
    learn = quiet(path=tmp_path, cbs=[log, LossMonitor('1ba'), SaveModelCallback(), CheckpointCallback()])
    learn.hparams(dropout=.1)
    learn.fit(2); learn.fit(1)
    everything(learn)
    learn.log_numbers({'odd[0]':1.})
    run = log.client.get_run(log.id)
    assert run.info.status=='FINISHED' and run.data.params['dropout']=='0.1' and run.data.tags['a']=='b' and run.info.run_name=='mine' and run.data.metrics['odd_0_']==1
    assert [m.step for m in log.client.get_metric_history(log.id, 'batch_loss')]==[*range(1, 10)]
    def files(p=None): return sorted(f.path for o in log.client.list_artifacts(log.id, p) for f in (log.client.list_artifacts(log.id, o.path) if o.is_dir else [o]))
    got = files()
    assert {'note/00000009.txt','sizes/00000009.json','pic/00000009-0.png','pic/00000009-1.png','checkpoints/model.pth'} <= {*got} and sum('step-' in f for f in got)>=2
    with pytest.raises(ZeroDivisionError): learn.fit(1, cbs=at('after_batch', throw(ZeroDivisionError())))
    assert log.client.get_run(log.id).info.status=='FAILED'

@pytest.mark.slow
def test_mlflow_takes_many_steps_in_one_call(tmp_path, monkeypatch):
    "200 calls of one row delayed the end of a fit by half a minute; MLflow accepts at most 1000 numbers per call"
    monkeypatch.chdir(tmp_path)
    log,calls = make_mlflow(tmp_path),[]
    log.client.log_batch = lambda *args, f=log.client.log_batch, **kw: calls.append(len(kw.get('metrics', ()))) or f(*args, **kw)
    learn = quiet(n=200, nv=0, path=tmp_path, cbs=[log, LossMonitor('1ba'), LRMonitor('1ba')])
    learn.fit(1)
    got = log.client.get_metric_history(log.id, 'batch_loss')
    assert [m.step for m in got]==[*range(1, 201)] and [m.value for m in got]==pytest.approx(learn.loss_monitor.history['batch_loss'])
    assert len([n for n in calls if n])<=10 and log.client.get_run(log.id).info.status=='FINISHED'
    log.write_steps([(s, dict(metrics={f'n{i}':1. for i in range(30)})) for s in range(201, 251)])
    assert max(calls)==1000 and len(log.client.get_metric_history(log.id, 'n29'))==50

@pytest.mark.slow
def test_mlflow_server_that_is_down(tmp_path, monkeypatch):
    "MLflow retried each call for four minutes: a new run failed late, and rows waited for its pauses after an outage"
    pytest.importorskip('mlflow')
    with socket.socket() as s:   # a port without a listener
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    monkeypatch.delenv('MLFLOW_HTTP_REQUEST_MAX_RETRIES', raising=False)
    from urllib3.connection import HTTPConnection
    tries,connect = [],HTTPConnection.connect
    monkeypatch.setattr(HTTPConnection, 'connect', lambda self: tries.append(self.port) or connect(self))
    with pytest.raises(Exception, match='API request to .* failed'): quiet(path=tmp_path, cbs=MLflowLogger(tracking_uri=f'http://127.0.0.1:{port}')).fit(1)
    assert tries==[port]*2 and os.environ['MLFLOW_HTTP_REQUEST_MAX_RETRIES']=='1'
    monkeypatch.setenv('MLFLOW_HTTP_REQUEST_MAX_RETRIES', '0')   # the user's setting stays
    assert MLflowLogger(tracking_uri=f'http://127.0.0.1:{port}').client and os.environ['MLFLOW_HTTP_REQUEST_MAX_RETRIES']=='0'

class CometLogger(ServiceLogger):
    "The logger of the chapter, with Comet's offline files instead of its server"
    def open(self, id):
        import comet_ml
        self.experiment = comet_ml.start(experiment_key=id, online=False, experiment_config=comet_ml.ExperimentConfig(auto_param_logging=False, auto_metric_logging=False))
        return self.experiment.get_key()
    def write(self, metrics, step): self.experiment.log_metrics(metrics, step=step)
    def write_hparams(self, hparams): self.experiment.log_parameters(hparams)
    def close(self, status): self.experiment.end()

@pytest.mark.slow
def test_comet(tmp_path, monkeypatch):
    "One experiment over two fits; each step once, in order"
    pytest.importorskip('comet_ml')
    for k,v in dict(OFFLINE_DIRECTORY=tmp_path, API_KEY='none', LOGGING_CONSOLE='ERROR').items(): monkeypatch.setenv(f'COMET_{k}', str(v))
    learn = quiet(path=tmp_path, cbs=[CometLogger(), LossMonitor('1ba')])
    learn.fit(2); learn.fit(1)
    files = sorted(tmp_path.glob('*.zip'), key=lambda p: p.stat().st_mtime)
    assert len(files)==2 and all(p.name.startswith(learn.comet_logger.id) for p in files)
    messages = [json.loads(l) for p in files for l in zipfile.ZipFile(p).read('messages.json').splitlines()]
    rows = [m['payload']['metric'] for m in messages if m['type']=='metric_msg']
    assert [(m['step'], m['metricValue']) for m in rows if m['metricName']=='batch_loss'][6:]==[*zip(range(7, 10), learn.loss_monitor.history['batch_loss'])]
    assert [m['step'] for m in rows if m['metricName']=='batch_loss']==[*range(1, 10)] and [m['step'] for m in rows if m['metricName']=='valid_loss']==[3, 6, 9]
    assert any(m['payload']['param'].get('paramName')=='lr' for m in messages if m['type']=='parameter_msg')
