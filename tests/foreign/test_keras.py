"""Keras's callbacks, in Keras's own `fit` and in a Learner with the same model, data and optimizer: the same events,
logs, learning rates and weights."""
import os, warnings
import numpy as np, pytest, torch
from torch import nn
os.environ.setdefault('KERAS_BACKEND', 'torch')
keras = pytest.importorskip('keras')
if keras.backend.backend()!='torch': pytest.skip('Keras runs on another backend', allow_module_level=True)
from keras import callbacks as kc
from learnkit.all import DataLoaders, Learner
from learnkit.loop.run import null_logger

pytestmark = pytest.mark.filterwarnings('ignore')
x = np.random.default_rng(0).normal(size=(48,4)).astype('float32')
y = x.sum(1, keepdims=True)
xv,yv = x[:16]+1,y[:16]+4

def model():
    keras.utils.clear_session(); keras.utils.set_random_seed(0)   # numbered layer names identify a run
    m = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(8, activation='tanh'), keras.layers.Dense(1)])
    return m

def theirs(cbs, epochs):
    m = model()
    m.compile(keras.optimizers.SGD(.05), 'mse')
    m.fit(x, y, batch_size=8, epochs=epochs, shuffle=False, validation_data=(xv,yv), validation_batch_size=8, verbose=0, callbacks=cbs)
    return m

def ours(cbs, epochs):
    m = model()
    tx,ty,vx,vy = map(torch.tensor, (x,y,xv,yv))
    dls = DataLoaders([*zip(tx.split(8), ty.split(8))], [*zip(vx.split(8), vy.split(8))])
    learn = Learner(dls, m, nn.MSELoss(), torch.optim.SGD, lr=.05, cbs=cbs)
    learn.logger = null_logger
    learn.remove_cb(learn.progress).fit(epochs)
    return learn

class Notes(kc.Callback):
    "Records each event with its index and, at the end of an epoch, the names in its logs"
    def __init__(self): super().__init__(); self.notes = []
for k in 'train_begin train_end test_begin test_end epoch_begin epoch_end train_batch_begin train_batch_end test_batch_begin test_batch_end'.split():
    def f(self, *args, k=k, logs=None):
        logs = (args[-1] if args and isinstance(args[-1], dict) else logs) or {}
        self.notes.append((k, *[int(a) for a in args if isinstance(a, int)], tuple(sorted(logs)) if k=='epoch_end' else ()))
    setattr(Notes, f'on_{k}', f)

def close(a, b): return all(np.allclose(v, w, atol=2e-6) for v,w in zip(a.get_weights(), b.get_weights(), strict=True))

def test_the_same_events_in_the_same_order():
    a,b = Notes(),Notes()
    m,learn = theirs([a], 2),ours([b], 2)
    assert a.notes == b.notes and close(m, learn.model)

def both(make, epochs=12):
    a,b = make(),make()
    return theirs([a], epochs),a,ours([b], epochs),b

def test_early_stopping_restores_the_best_weights():
    m,a,learn,b = both(lambda: kc.EarlyStopping('val_loss', patience=1, restore_best_weights=True, min_delta=.2), 40)
    assert a.stopped_epoch == b.stopped_epoch > 0 and a.best_epoch == b.best_epoch and close(m, learn.model)

@pytest.mark.parametrize('make', [
    lambda: kc.LearningRateScheduler(lambda epoch,lr: lr*.7),
    lambda: kc.ReduceLROnPlateau('val_loss', factor=.5, patience=1, min_delta=.3, cooldown=1)], ids=['schedule','plateau'])
def test_learning_rates(make):
    m,a,learn,b = both(make)
    assert learn.opt.hypers[-1]['lr'] == pytest.approx(float(m.optimizer.learning_rate)) != .05
    assert close(m, learn.model)

def test_terminate_on_nan():
    class Break(kc.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch==3: logs['loss'] = float('nan')
    learn = ours([kc.TerminateOnNaN()], 2)
    assert len(learn.recorder.history)==2
    learn = ours([Break(), kc.TerminateOnNaN()], 2)
    assert len(learn.recorder.history)<=1 and learn.epoch==0
    class Blown(kc.TerminateOnNaN):
        def on_batch_end(self, batch, logs=None): super().on_batch_end(batch, dict(loss=float('nan')) if batch==3 else logs)
    learn = ours([Blown()], 2)
    assert len(learn.recorder.history) <= 1 and learn.epoch==0

def test_lambda_and_csv(tmp_path):
    seen = []
    learn = ours([kc.LambdaCallback(on_epoch_end=lambda epoch,logs: seen.append((epoch,logs['val_loss']))), kc.CSVLogger(str(tmp_path/'log.csv'))], 3)
    assert seen == [(r['epoch'],r['valid_loss']) for r in learn.recorder.history]
    lines = (tmp_path/'log.csv').read_text().splitlines()
    assert lines[0]=='epoch,loss,val_loss' and len(lines)==4

def test_a_resumed_run_restores_the_state(tmp_path):
    from learnkit.all import CheckpointCallback
    def run(epochs, **kwargs):
        tx,ty,vx,vy = map(torch.tensor, (x,y,xv,yv))
        dls = DataLoaders([*zip(tx.split(8), ty.split(8))], [*zip(vx.split(8), vy.split(8))], path=tmp_path)
        stop = kc.EarlyStopping('val_loss', patience=3, min_delta=.2)
        learn = Learner(dls, model(), nn.MSELoss(), torch.optim.SGD, lr=.05, cbs=[stop, *kwargs.pop('cbs', ())], path=tmp_path)
        learn.logger = null_logger
        learn.remove_cb(learn.progress).fit(epochs, **kwargs)
        return stop,learn
    whole,_ = run(40)
    n = whole.stopped_epoch
    assert n>3
    half,_ = run(n-1, cbs=[CheckpointCallback('1ep')])
    rest,learn = run(40, cbs=[CheckpointCallback('1ep')], resume='auto')
    assert half.stopped_epoch==0 and rest.stopped_epoch == n
