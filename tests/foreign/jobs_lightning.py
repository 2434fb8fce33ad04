"Jobs for Lightning: a recorder in Lightning's trainer, and in a Learner"
import torch
from torch import nn
from torch.nn import functional as F
from recording import Named, Notes, Stopped, accuracy, loader, lr, named_items, net, train_rows, valid_rows
from torch.utils.data import DataLoader

jobs = 'plain','no_valid','stop_in_batch','stop_after_validation','error','accumulate','named','validate','predict','log','sanity'

with_batch = 'train validation predict'.split()
names = ['setup', 'on_fit_start', 'on_train_start', 'on_train_epoch_start', 'on_before_backward', 'on_after_backward', 'on_before_optimizer_step', 'on_before_zero_grad',
         'on_validation_start', 'on_validation_epoch_start', 'on_validation_epoch_end', 'on_validation_end', 'on_train_epoch_end', 'on_train_end', 'on_fit_end',
         'on_predict_start', 'on_predict_epoch_start', 'on_predict_epoch_end', 'on_predict_end', 'on_exception', 'teardown',
         'on_sanity_check_start', 'on_sanity_check_end',
         *(f'on_{p}_batch_{e}' for p in with_batch for e in ('start','end'))]

class Recorder:
    "Mixed into Lightning's `Callback`, or used alone in a Learner"
    def __init__(self, job): self.job,self.notes = job,Notes()
    def note(self, hook, t, m, *args, **kwargs):
        fits = t.state.fn in ('fit',) or getattr(t.state.fn, 'value', '')=='fit'
        numbers = dict(num_training_batches=t.num_training_batches, is_last_batch=t.is_last_batch, steps=t.estimated_stepping_batches) if fits and '_batch_' in hook else {}
        self.notes.add(hook, args=args, kwargs=kwargs, epoch=t.current_epoch, step=t.global_step, max_epochs=t.max_epochs if fits else None,
                       metrics=dict(t.callback_metrics), training=t.training, validating=t.validating, predicting=t.predicting, checking=t.sanity_checking, fn=str(getattr(t.state.fn, 'value', t.state.fn)),
                       stop=t.should_stop, accumulated=t.accumulate_grad_batches, module=(m.current_epoch, m.global_step), mode=m.training,
                       weights=sum(p.detach().sum() for p in m.parameters()), **numbers)
        match self.job,hook,args[-1:]:
            case 'stop_in_batch','on_train_batch_end',(1,): t.should_stop = True
            case 'stop_after_validation','on_validation_end',_: t.should_stop = True
            case 'error','on_train_batch_start',(1,): raise Stopped('at batch 1')
            case 'log','on_train_epoch_end',_: m.log('mine', torch.tensor(.5))

def _hook(name):
    def f(self, trainer, pl_module, *args, **kwargs): self.note(name, trainer, pl_module, *args, **kwargs)
    return f
for n in names: setattr(Recorder, n, _hook(n))

def loaders(job):
    if job=='named': return [DataLoader(named_items(o), 16) for o in (train_rows, valid_rows)]
    n = 10 if job=='accumulate' else 16
    return [loader(train_rows, n)] + ([] if job=='no_valid' else [loader(valid_rows, n)])

def theirs(job):
    import lightning.pytorch as lp, logging
    logging.getLogger('lightning.pytorch').setLevel(logging.ERROR)
    class Module(lp.LightningModule):
        def __init__(self):
            super().__init__()
            self.inner = Named() if job=='named' else net()
        def forward(self, x): return self.inner(x)
        def step(self, b):
            if job!='named': return F.cross_entropy(self(b[0]), b[1]),self(b[0]),b[1]
            out = self.inner(**b)
            return out['loss'],out['logits'],b['labels']
        def training_step(self, b, i):
            loss = self.step(b)[0]
            self.log('train_loss', loss, on_step=False, on_epoch=True, batch_size=len(b['x'] if job=='named' else b[0]))
            return loss
        def validation_step(self, b, i):
            loss,pred,y = self.step(b)
            self.log('val_loss', loss, batch_size=len(y))
            self.log('val_accuracy', accuracy(pred, y), batch_size=len(y))
            return dict(loss=loss)
        def predict_step(self, b, i): return self(b[0])
        def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr)
    cb = type('Theirs', (Recorder, lp.Callback), {})(job)
    t = lp.Trainer(max_epochs=2, accelerator='cpu', callbacks=[cb], logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                   num_sanity_val_steps=1 if job=='sanity' else 0, accumulate_grad_batches=2 if job=='accumulate' else 1)
    dls = loaders(job)
    try:
        if job=='validate': t.validate(Module(), dls[1], verbose=False)
        elif job=='predict': t.predict(Module(), dls[1])
        else: t.fit(Module(), *dls)
    except Stopped: pass
    return cb.notes

def ours(job):
    from learnkit.all import DataLoaders, GradientAccumulation, Learner, SanityCheck
    further = dict(accumulate=[GradientAccumulation('2ba')], sanity=[SanityCheck(1)])
    from learnkit.contrib.lightning import adapt
    cb = Recorder(job)
    learn = Learner(DataLoaders(*loaders(job)), Named() if job=='named' else net(), None if job=='named' else nn.CrossEntropyLoss(), torch.optim.SGD, lr=lr,
                    metrics=accuracy, cbs=adapt(cb))
    with learn.no_bar(), learn.no_logging():
        try:
            if job=='validate': learn.validate()
            elif job=='predict': learn.get_preds()
            else: learn.fit(2, cbs=further.get(job, []))
        except Stopped: pass
    return cb.notes

def version():
    import lightning
    return lightning.__version__
