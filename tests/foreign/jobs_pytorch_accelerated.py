"Jobs for pytorch-accelerated: a recorder in its own `Trainer`, in a Learner, and in `learnkit.contrib.pytorch_accelerated.Trainer`"
import torch
from torch import nn
from torch.utils.data import TensorDataset
from recording import Named, Notes, Stopped, bs, loader, lr, named_items, net, train_rows, valid_rows

jobs = 'plain','no_valid','stop_in_step','stop_after_validation','error','evaluate','accumulate','named','methods','metric'
with_trainer = 'named','methods','metric'   # jobs that use learnkit's `Trainer` instead of `adapt`

names = '''on_init_end on_training_run_start on_train_epoch_start on_train_step_start on_train_step_end on_train_epoch_end on_eval_epoch_start
    on_eval_step_start on_eval_step_end on_eval_epoch_end on_training_run_epoch_end on_training_run_end on_evaluation_run_start on_evaluation_run_end
    on_stop_training_error'''.split()

settings = '''num_epochs train_per_device_batch_size eval_per_device_batch_size gradient_accumulation_steps gradient_clip_value train_total_batch_size
    eval_total_batch_size num_update_steps_per_epoch num_local_update_steps_per_epoch max_num_train_steps is_local_process_zero is_world_process_zero
    is_distributed mixed_precision num_processes'''.split()

class Recorder:
    "Mixed into pytorch-accelerated's `TrainerCallback`, or used alone in a Learner"
    def __init__(self, job, stop): self.job,self.stop,self.notes,self.n = job,stop,Notes(),0
    def note(self, hook, trainer, batch=None, batch_output=None, **kwargs):
        given = dict(kwargs, batch=batch, batch_output=batch_output)
        history,config = trainer.run_history,{}
        if hook!='on_init_end': config = {k:getattr(trainer.run_config, k) for k in settings}
        given |= dict(epoch=history.current_epoch, config=config, metrics={k:history.get_latest_metric(k) for k in sorted(history.get_metric_names())},
                      all={k:len(history.get_metric_values(k)) for k in sorted(history.get_metric_names())})
        self.notes.add(hook, **given)
        self.n += hook=='on_train_step_start'
        match self.job,hook:
            case 'stop_in_step','on_train_step_end' if self.n==2: raise self.stop('in a step')
            case 'stop_after_validation','on_eval_epoch_end': raise self.stop('enough')
            case 'error','on_train_step_start' if self.n==2: raise Stopped('at step 2')
            case 'metric','on_eval_epoch_end': history.update_metric('constant', torch.tensor(.5))

def _hook(name):
    def f(self, trainer, **kwargs): self.note(name, trainer, **kwargs)
    return f
for n in names: setattr(Recorder, n, _hook(n))

methods = '''training_run_start train_epoch_start backward_step optimizer_step scheduler_step optimizer_zero_grad train_epoch_end eval_epoch_start eval_epoch_end
    training_run_epoch_end training_run_end evaluation_run_start evaluation_run_end'''.split()

def trainer_class(Trainer, job, notes):
    class InOrder(Trainer):
        def get_default_train_dl_kwargs(self, batch_size): return dict(shuffle=False, num_workers=0, batch_size=batch_size)
        get_default_eval_dl_kwargs = get_default_train_dl_kwargs
    class WithNames(InOrder):
        def calculate_train_batch_loss(self, batch):
            out = self.model(**batch)
            return dict(loss=out['loss'], model_outputs=out, batch_size=len(batch['x']), extra=7)
        calculate_eval_batch_loss = calculate_train_batch_loss
    def recorded(name):
        def f(self, *args):
            notes.add(name, args=args)
            getattr(InOrder, name)(self, *args)
        return f
    if job=='named': return WithNames
    return type('Methods', (InOrder,), {k:recorded(k) for k in methods}) if job=='methods' else InOrder

def run(Trainer, cb, job):
    model = Named() if job=='named' else net()
    data = [named_items(o) if job=='named' else TensorDataset(*o) for o in (train_rows, valid_rows)]
    trainer = trainer_class(Trainer, job, cb.notes)(model, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr), callbacks=[cb])
    quiet(trainer)
    try:
        if job=='evaluate': trainer.evaluate(data[1], per_device_batch_size=bs)
        else: trainer.train(data[0], 2, None if job=='no_valid' else data[1], per_device_batch_size=10 if job=='accumulate' else bs, gradient_accumulation_steps=2 if job=='accumulate' else 1)
    except Stopped: pass
    if job=='methods': trainer.evaluate(data[1], per_device_batch_size=bs)
    return cb.notes

def quiet(trainer):
    if hasattr(type(trainer), '_accelerator') or 'learn' not in dir(trainer): return
    trainer.learn.remove_cb(trainer.learn.progress)

def theirs(job):
    from pytorch_accelerated import Trainer, callbacks as pc
    cb = type('Theirs', (Recorder, pc.TrainerCallback), {})(job, pc.StopTrainingError)
    return run(Trainer, cb, job)

def ours(job):
    from learnkit.all import DataLoaders, GradientAccumulation, Learner
    from learnkit.contrib.pytorch_accelerated import StopTrainingError, Trainer, TrainerCallback, adapt
    if job in with_trainer: return run(Trainer, type('Ours', (Recorder, TrainerCallback), {})(job, StopTrainingError), job)
    cb = Recorder(job, StopTrainingError)
    valid = [] if job=='no_valid' else [loader(valid_rows)]
    if job=='accumulate': dls = DataLoaders(loader(train_rows, 10), loader(valid_rows, 10))
    else: dls = DataLoaders(loader(train_rows), *valid)
    learn = Learner(dls, net(), nn.CrossEntropyLoss(), torch.optim.SGD, lr=lr, cbs=adapt(cb))
    more = [GradientAccumulation('2ba')] if job=='accumulate' else []
    with learn.no_bar(), learn.no_logging():
        try:
            if job=='evaluate': learn.validate()
            else: learn.fit(2, cbs=more)
        except Stopped: pass
    return cb.notes

def version():
    from importlib.metadata import version
    return version('pytorch-accelerated')
