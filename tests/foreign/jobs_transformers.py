"""Jobs for transformers' Trainer: a recorder in the Trainer, and in a Learner. The model takes its inputs by name and
returns a dict that contains the loss."""
import tempfile
import torch
from recording import Named, Notes, Stopped, accuracy, bs, lr, named_items, train_rows, valid_rows
from torch.utils.data import DataLoader, SequentialSampler

jobs = 'plain','no_valid','stop_in_step','stop_after_evaluation','error','accumulate','evaluate'

names = '''on_init_end on_train_begin on_epoch_begin on_step_begin on_pre_optimizer_step on_optimizer_step on_substep_end on_step_end on_epoch_end on_prediction_step
    on_log on_evaluate on_train_end'''.split()

def without_times(logs): return None if logs is None else {k:'a time' if k.endswith(('runtime','per_second','flos')) else v for k,v in logs.items()}

class Recorder:
    "Mixed into `TrainerCallback`, or used alone in a Learner"
    def __init__(self, job): self.job,self.notes = job,Notes()
    def note(self, hook, args, state, control, logs=None, metrics=None, **kwargs):
        if hook!='on_init_end':
            self.notes.add(hook, logs=without_times(logs), metrics=without_times(metrics), epoch=state.epoch, step=state.global_step, max_steps=state.max_steps if self.job!='evaluate' else 0,
                       epochs=state.num_train_epochs if self.job!='evaluate' else 0, history=[*map(without_times, state.log_history)], rate=args.learning_rate, batch=args.per_device_train_batch_size,
                       accumulated=args.gradient_accumulation_steps, stop=control.should_training_stop, end_epoch=control.should_epoch_stop, flags=[control.should_log, control.should_evaluate, control.should_save],
                       weights=sum(p.detach().sum() for p in kwargs['model'].parameters()), given=sorted(k for k in kwargs if k in ('model','optimizer','train_dataloader','eval_dataloader')))
        else: self.notes.add(hook)
        match self.job,hook,state.global_step:
            case 'stop_in_step','on_step_end',2: control.should_training_stop = True
            case 'stop_after_evaluation','on_evaluate',_: control.should_training_stop = True
            case 'error','on_step_begin',1: raise Stopped('at step 1')
        return control

def _hook(name):
    def f(self, args, state, control, **kwargs): return self.note(name, args, state, control, **kwargs)
    return f
for n in names: setattr(Recorder, n, _hook(n))

def theirs(job):
    import transformers
    from transformers import Trainer, TrainerCallback, TrainingArguments
    from transformers.trainer_callback import PrinterCallback, ProgressCallback
    transformers.logging.set_verbosity_error()
    cb = type('Theirs', (Recorder, TrainerCallback), {})(job)
    class InOrder(Trainer):
        def _get_train_sampler(self, *args, **kwargs): return SequentialSampler(self.train_dataset)
    n = bs
    args = TrainingArguments(tempfile.mkdtemp(), num_train_epochs=2, per_device_train_batch_size=n, per_device_eval_batch_size=n, learning_rate=lr, lr_scheduler_type='constant',
                             logging_strategy='epoch', eval_strategy='no' if job=='no_valid' else 'epoch', save_strategy='no', report_to=[], max_grad_norm=0., use_cpu=True,
                             remove_unused_columns=False, disable_tqdm=True, gradient_accumulation_steps=2 if job=='accumulate' else 1)
    model = Named()
    trainer = InOrder(model, args, train_dataset=named_items(train_rows), eval_dataset=None if job=='no_valid' else named_items(valid_rows), callbacks=[cb],
                      optimizers=(torch.optim.SGD(model.parameters(), lr), None),
                      compute_metrics=lambda p: dict(accuracy=accuracy(torch.as_tensor(p.predictions), torch.as_tensor(p.label_ids)).item()))
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    try:
        if job=='evaluate': trainer.evaluate()
        else: trainer.train()
    except Stopped: pass
    return cb.notes

def ours(job):
    from learnkit.all import DataLoaders, GradientAccumulation, Learner
    from learnkit.contrib.transformers import adapt
    cb = Recorder(job)
    n = bs
    dls = DataLoaders(*[DataLoader(named_items(o), n) for o in ([train_rows] if job=='no_valid' else [train_rows, valid_rows])])
    more = [GradientAccumulation('2ba')] if job=='accumulate' else []
    learn = Learner(dls, Named(), None, torch.optim.SGD, lr=lr, metrics=accuracy, cbs=[adapt(cb), *more])
    with learn.no_bar(), learn.no_logging():
        try:
            if job=='evaluate': learn.validate()
            else: learn.fit(2)
        except Stopped: pass
    return cb.notes

def version():
    import transformers
    return transformers.__version__
