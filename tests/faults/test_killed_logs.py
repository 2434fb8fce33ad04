"""A run killed by SIGKILL again and again and restarted each time leaves the logs of an uninterrupted run: every step
once, in order. Kills come before the first checkpoint, between row and checkpoint, within a row, in the second fit."""
import importlib.util, os, random, signal, time, traceback, warnings
from types import SimpleNamespace

import pytest, torch
from learnkit.all import (Callback, CheckpointCallback, CSVLogger, Evaluator, JsonLogger, LossMonitor, LRMonitor, OptimizerMonitor, ValidateEvery, mae)
from learnkit.observe.files import LogFile
from learnkit.contrib.mlflow import MLflowLogger
from learnkit.contrib.tensorboard import TensorBoardLogger
from learnkit.contrib.wandb import WandbLogger
from learnkit.loop.run import null_logger
from toys import batches, few, learner, slow

pytestmark = pytest.mark.skipif(os.name!='posix', reason='forks and kills')
board,wb,flow = [all(importlib.util.find_spec(m) for m in ms.split()) for ms in ('tensorboard', 'wandb', 'mlflow alembic')]

def config(seed):
    "The settings of a run, all drawn from `seed`"
    r = random.Random(seed)
    def ba(lo=1, hi=6): return f'{r.randint(lo, hi)}ba'
    return dict(seed=seed, n=r.randint(2, 7), tune=r.random()<.5, fits=[r.randint(1, 3) for _ in range(r.randint(1, 3))], every=r.choice([ba(), ba(4, 12), '1ep', '1h']),
                best=r.random()<.3, background=r.random()<.3, mid=r.random()<.6 and ba(), test=r.random()<.4 and r.choice([ba(), '1ep']), loss=ba(), lr=ba(), opt=r.random()<.5 and ba(),
                pending=r.choice([1, 3, 1000]))

class Killer(Callback):
    "Kills the process at event number `at`; `order` places it before, between or after the other callbacks"
    acts = 'nothing'   # a resumed run may have another Killer, or none
    def __init__(self, at, order): self.left,self.order = at,order
    def __call__(self, name, **kwargs):
        self.left -= 1
        if self.left==0: os.kill(os.getpid(), signal.SIGKILL)

class Torn:
    "A file that kills the process in the middle of a row"
    def __init__(self, f, rows): self.f,self.rows = f,rows
    def __getattr__(self, k): return getattr(self.f, k)
    def write(self, data):
        self.rows[0] -= 1
        if self.rows[0]==0: self.f.write(data[:len(data)//2]); os.kill(os.getpid(), signal.SIGKILL)
        return self.f.write(data)

def train(c, folder, events=None, order=0, rows=None):
    torch.manual_seed(c['seed'])
    cbs = [JsonLogger(), CSVLogger(), LossMonitor(c['loss']), LRMonitor(c['lr']), CheckpointCallback(c['every'], background=c['background'], best='valid_loss' if c['best'] else None)]
    if board:     cbs.append(TensorBoardLogger())
    if wb:        cbs.append(WandbLogger(mode='offline', settings=dict(silent=True, console='off')))
    if flow:      cbs.append(MLflowLogger(tracking_uri=f'sqlite:///{folder}/mlflow.db'))
    if c['mid']:  cbs.append(ValidateEvery(c['mid']))
    if c['test']: cbs.append(Evaluator('test', batches(1, seed=5), every=c['test']))
    if c['opt']:  cbs.append(OptimizerMonitor(c['opt'], per_layer=False))
    if events:    cbs.append(Killer(events, order))
    if rows:
        opened,left = LogFile.open,[rows]
        def torn(self):
            opened(self)
            if not isinstance(self.file, Torn): self.file = Torn(self.file, left)
        LogFile.open = torn
    learn = learner(n=c['n'], metrics=mae, path=folder, cbs=cbs, splitter=lambda m: [[m.weight], [m.bias]])
    learn.remove_cb(learn.progress).logger = null_logger
    learn._outbox.max_pending = c['pending']
    if c['tune']: learn.fine_tune(c['fits'][0], freeze_epochs=c['fits'][-1], resume='auto')
    else:
        for n in c['fits']: learn.fit(n, resume='auto')
    if wb and learn.wandb_logger.experiment: learn.wandb_logger.experiment.finish()

def attempt(c, folder, after=None, **kill):
    "Train in a forked process; return whether it was killed, by a callback, a file, or `after` so many seconds"
    pid = os.fork()
    if pid==0:
        try: warnings.simplefilter('ignore'); train(c, folder, **kill); os._exit(0)
        except BaseException: traceback.print_exc(); os._exit(1)
    if after is not None: time.sleep(after); os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, -signal.SIGKILL), f'the run failed with {c}'
    return code!=0

def read(folder):
    "The rows of all logs, without times, as their own readers return them"
    logs = dict(json=JsonLogger(folder/'log.jsonl').read_log(), csv=CSVLogger(folder/'history.csv').read_log())
    logs = {k:[{n:v for n,v in r.items() if n!='time'} for r in rows] for k,rows in logs.items()}
    if board:
        from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
        from tensorboard.compat.proto.event_pb2 import Event
        events = map(Event.FromString, RawEventFileLoader(str(*(folder/'runs').iterdir())).Load())
        logs['board'] = [(e.step, v.tag, v.simple_value) for e in events for v in e.summary.value]
    if wb:
        log = WandbLogger()
        log.learn,log.id = SimpleNamespace(path=folder),max((folder/'wandb').glob('offline-run-*')).name.split('-')[-1]
        logs['wandb'] = log.read_log()
    if flow:
        from mlflow import MlflowClient
        client = MlflowClient(f'sqlite:///{folder}/mlflow.db')
        run = client.search_runs(['0'], order_by=['attribute.start_time DESC'])[0]
        logs['mlflow'] = {k:[(m.step, m.value) for m in client.get_metric_history(run.info.run_id, k)] for k in run.data.metrics}, run.info.status, {k:v for k,v in run.data.params.items() if k!='callbacks'}   # one is the killer
    return logs

@few(1, 4)
@pytest.mark.parametrize('seed', [0, *slow(*range(1, 24))])
def test_killed_at_random_moments(seed, tmp_path, capfd):
    "Rows were duplicated (71 for 44) or lost (62 for 88), and TensorBoard hid the earlier ones"
    c,r = config(seed),random.Random(seed)
    whole,killed = tmp_path/'whole',tmp_path/'killed'
    for f in (whole, killed): f.mkdir()
    start = time.monotonic()
    assert not attempt(c, whole)
    long,kills = time.monotonic()-start,0
    for i in range(6):   # the first kill always hits the run
        how = dict(events=r.randint(2, 9*c['n'])) if i==0 else r.choice([dict(events=r.randint(1, 40*c['n']), order=r.choice([-1000, 57, 1000])), dict(rows=r.randint(1, 3*c['n'])), dict(after=r.uniform(0, long))])
        kills += attempt(c, killed, **how)
    assert not attempt(c, killed)
    a,b = read(whole),read(killed)
    assert kills and a==b, f'{[k for k in a if a[k]!=b[k]]} differ after {kills} kills of {c}'
    steps = [row['step'] for row in a['json']]
    if wb: assert [r['step'] for r in a['wandb']]==sorted({*steps})
    if flow: assert a['mlflow'][1]=='FINISHED' and [s for s,_ in a['mlflow'][0]['batch_loss']]==[r['step'] for r in a['json'] if 'batch_loss' in r]
    epochs = [c['fits'][-1], c['fits'][0]] if c['tune'] else c['fits']
    assert steps==sorted(steps) and steps[-1]==c['n']*sum(epochs) and len([r for r in a['csv'] if not r.get('train_iter')])==sum(epochs)
