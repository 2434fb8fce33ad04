"Jobs for Keras: a recorder in Keras's own `fit`, and in a Learner"
import os
os.environ.setdefault('KERAS_BACKEND', 'torch')
import torch
from torch import nn
from recording import Notes, Stopped, accuracy, bs, loader, lr, net, train_rows, valid_rows

jobs = 'plain','no_valid','stop_after_epoch','stop_in_batch','error','evaluate','predict','from_epoch_1','rate'

class Recorder:
    "Mixed into Keras's `Callback`, or used alone in a Learner"
    model = params = None
    def __init__(self, job): self.job,self.notes = job,Notes()
    def set_params(self, params): self.params = params
    def set_model(self, model): self.model = model
    def note(self, hook, number, logs):
        m = self.model
        params = {k:v for k,v in self.params.items() if k!='verbose'}
        opt = dict(rate=float(m.optimizer.learning_rate), steps=int(m.optimizer.iterations)) if self.job!='predict' else {}
        self.notes.add(hook, number=number, logs=logs, names=[*(logs or ())], params=params, stop_training=bool(m.stop_training), **opt)
        self.act(hook, number)
    def act(self, hook, number):
        match self.job,hook,number:
            case 'stop_after_epoch','on_epoch_end',1: self.model.stop_training = True
            case 'stop_in_batch','on_train_batch_end',1: self.model.stop_training = True
            case 'error','on_train_batch_begin',1: raise Stopped('at batch 1')
            case 'rate','on_epoch_end',0: self.model.optimizer.learning_rate = .05

def _hook(name):
    if '_batch_' in name or '_epoch_' in name:
        def f(self, number, logs=None): self.note(name, number, logs)
    else:
        def f(self, logs=None): self.note(name, None, logs)
    return f
names = [f'on_{k}_{e}' for k in ('train','test','predict','epoch','train_batch','test_batch','predict_batch') for e in ('begin','end')]
for n in names: setattr(Recorder, n, _hook(n))

def arguments(job):
    return 4 if job=='stop_after_epoch' else 2

def theirs(job):
    import keras
    cb = type('Theirs', (Recorder, keras.callbacks.Callback), {'__init__':lambda s: (keras.callbacks.Callback.__init__(s), Recorder.__init__(s, job), None)[-1],
              'set_model':keras.callbacks.Callback.set_model, 'model':keras.callbacks.Callback.model})()
    a,_,b = net()
    m = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(6, activation='tanh'), keras.layers.Dense(3)])
    m.set_weights([o.detach().numpy() for o in (a.weight.T, a.bias, b.weight.T, b.bias)])
    m.compile(keras.optimizers.SGD(lr), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=['accuracy'])
    x,y = (t.numpy() for t in train_rows)
    valid = tuple(t.numpy() for t in valid_rows)
    if job=='evaluate': m.evaluate(*valid, batch_size=bs, callbacks=[cb], verbose=0)
    elif job=='predict': m.predict(valid[0], batch_size=bs, callbacks=[cb], verbose=0)
    else:
        try: m.fit(x, y, batch_size=bs, epochs=arguments(job), shuffle=False, validation_data=None if job=='no_valid' else valid, validation_batch_size=bs,
                   initial_epoch=int(job=='from_epoch_1'), callbacks=[cb], verbose=0)
        except Stopped: pass
    return cb.notes

def ours(job):
    from learnkit.all import DataLoaders, Learner
    from learnkit.contrib.keras import adapt
    cb = Recorder(job)
    valid = [] if job=='no_valid' else [loader(valid_rows)]
    learn = Learner(DataLoaders(loader(train_rows), *valid), net(), nn.CrossEntropyLoss(), torch.optim.SGD, lr=lr, metrics=accuracy, cbs=adapt(cb))
    with learn.no_bar(), learn.no_logging():
        if job=='evaluate': learn.validate()
        elif job=='predict': learn.get_preds()
        else:
            try: learn.fit(arguments(job), start_epoch=int(job=='from_epoch_1'))
            except Stopped: pass
    return cb.notes

def version():
    import keras
    return keras.__version__
