"Jobs for fastNLP: a recorder in fastNLP's own `Trainer`, in that of `learnkit.contrib.fastnlp`, and in a Learner"
import shutil, tempfile
from pathlib import Path
import torch
from torch import nn
from torch.nn import functional as F
from recording import Notes, Stopped, bs, lr, net, train_rows, valid_rows
from torch.utils.data import DataLoader

jobs = ('plain','no_valid','stop_in_batch','stop_after_evaluate','error','interrupt','accumulate','every_batches','every_two_epochs','sanity','mappings',
        'monitor','saves','resume','edits')

events = '''on_after_trainer_initialized on_sanity_check_begin on_sanity_check_end on_train_begin on_train_end on_train_epoch_begin on_train_epoch_end on_fetch_data_begin
    on_fetch_data_end on_train_batch_begin on_train_batch_end on_exception on_save_model on_load_model on_save_checkpoint on_load_checkpoint on_before_backward
    on_after_backward on_before_optimizers_step on_after_optimizers_step on_before_zero_grad on_after_zero_grad on_evaluate_begin on_evaluate_end'''.split()

class Model(nn.Module):
    "Takes entries of the batch by name, and returns a dict that contains the loss"
    def __init__(self, job):
        super().__init__()
        self.net,self.job = net(),job
    def forward(self, x, target):
        p = self.net(x)
        out = dict(pred=p, loss=F.cross_entropy(p, target))
        return {f'my_{k}':v for k,v in out.items()} if self.job=='mappings' else out
    train_step = forward
    def evaluate_step(self, x, target): return {('my_pred' if self.job=='mappings' else 'pred'): self.net(x)}

def items(rows, job):
    k = 'input' if job=='mappings' else 'x'
    return [{k:x, 'target':y} for x,y in zip(*rows)]
def loader(rows, job): return DataLoader(items(rows, job), 10 if job=='accumulate' else bs)

class Recorder:
    "Mixed into fastNLP's `Callback`, or into that of `learnkit.contrib.fastnlp`"
    def __init__(self, job, notes, stop): self.job,self.notes,self.stop,self.n,self.folder = job,notes,stop,0,None
    def note(self, hook, trainer, *args):
        if hook=='on_after_trainer_initialized': return self.notes.add(hook, epochs=trainer.n_epochs)
        if hook.startswith('on_sanity'): return self.notes.add(hook, args=args, weights=self.weights(trainer))
        if hook=='on_train_begin': trainer.state['seen'] = 0
        if hook=='on_train_batch_end': trainer.state['seen'] += 1
        numbers = {k:getattr(trainer, k) for k in 'n_epochs cur_epoch_idx global_forward_batches batch_idx_in_epoch num_batches_per_epoch n_batches'.split()}
        seen = {} if self.job=='resume' else dict(seen=trainer.state['seen'])
        self.notes.add(hook, args=args, **numbers, **seen, given=type(trainer.optimizers).__name__, weights=self.weights(trainer), mode=trainer.model.training, rate=trainer.driver.optimizers[0].param_groups[0]['lr'])
        self.n += hook=='on_train_batch_begin'
        return self.act(hook, trainer, *args)
    def weights(self, trainer): return sum(p.detach().sum() for p in trainer.model.parameters())
    def act(self, hook, trainer, *args):
        match self.job,hook:
            case 'stop_in_batch','on_train_batch_end' if self.n==2: raise self.stop('in a batch')
            case 'stop_after_evaluate','on_evaluate_end': raise self.stop('enough')
            case 'error','on_train_batch_begin' if self.n==2: raise Stopped('at batch 2')
            case 'interrupt','on_train_batch_begin' if self.n==2: raise KeyboardInterrupt
            case 'edits','on_train_batch_begin': args[0]['x'] = args[0]['x']*2
            case 'monitor','on_evaluate_end': self.notes.add('monitor', value=self.get_monitor_value(*args), is_better=self.is_better_results(*args), name=self.monitor_name)
            case 'saves','on_train_epoch_end':
                Path(self.folder, 'model').mkdir(exist_ok=True)
                trainer.save_model(self.folder+'/model', only_state_dict=True)
                trainer.load_model(self.folder+'/model', only_state_dict=True)
                trainer.save_checkpoint(self.folder+f'/{trainer.cur_epoch_idx}')
            case 'resume','on_train_epoch_end' if self.folder: trainer.save_checkpoint(self.folder+'/1')
            case _,'on_save_checkpoint': return dict(n=self.n)

def _hook(name):
    def f(self, trainer, *args): return self.note(name, trainer, *args)
    return f
for n in events: setattr(Recorder, n, _hook(n))

def recorder(job, notes, module, stop):
    if job!='monitor': return type('Its', (Recorder, module.Callback), dict(need_reproducible_sampler=job in ('saves','resume')))(job, notes, stop)
    class Its(Recorder, module.HasMonitorCallback):
        def __init__(self):
            module.HasMonitorCallback.__init__(self, 'ac', larger_better=True)
            Recorder.__init__(self, job, notes, stop)
    return Its()

def arguments(job):
    return dict(n_epochs=1 if job=='stop_in_batch' else 2, accumulation_steps=2 if job=='accumulate' else 1,
                evaluate_every={'every_batches':2, 'every_two_epochs':-2}.get(job, -1), progress_bar=None,
                **(dict(input_mapping=dict(input='x'), output_mapping=dict(my_pred='pred', my_loss='loss')) if job=='mappings' else {}))

def make_trainer(job, notes, module, stop, accuracy, epochs=None):
    model = Model(job)
    cb = recorder(job, notes, module, stop)
    valid = {} if job=='no_valid' else dict(evaluate_dataloaders=loader(valid_rows, job), metrics={'acc':accuracy()})
    kwargs = arguments(job) | ({} if epochs is None else dict(n_epochs=epochs))
    return module.Trainer(model=model, train_dataloader=loader(train_rows, job), optimizers=torch.optim.SGD(model.parameters(), lr), device='cpu', callbacks=[cb], **valid, **kwargs),cb

def run(job, module, stop, accuracy, quiet=lambda t: None):
    notes = Notes()
    folder = tempfile.mkdtemp()
    n_sanity = 2 if job=='sanity' else 0
    trainer,cb = make_trainer(job, notes, module, stop, accuracy, 1 if job=='resume' else None)
    quiet(trainer)
    cb.folder = folder if job in ('saves','resume') else None
    raised = None
    try: trainer.run(num_eval_sanity_batch=n_sanity)
    except (Stopped, KeyboardInterrupt) as e: raised = type(e).__name__
    if job in ('error','interrupt'): notes.add('after_run', raised=raised)
    if job=='resume':
        trainer,cb = make_trainer(job, notes, module, stop, accuracy, 3)
        quiet(trainer)
        trainer.run(num_eval_sanity_batch=0, resume_from=folder+'/1')
    if job=='saves': notes.add('files', names=sorted(str(p.relative_to(folder)) for p in Path(folder).rglob('*') if p.is_file()))
    shutil.rmtree(folder)
    return notes

def theirs(job):
    import fastNLP
    from fastNLP.core.callbacks.callback import Callback
    from fastNLP.core.utils.exceptions import EarlyStopException
    fastNLP.logger.setLevel('ERROR')
    return run(job, fastNLP, EarlyStopException, fastNLP.Accuracy)

def ours(job):
    from learnkit.contrib import fastnlp
    def quiet(trainer): trainer.learn.logger = lambda *args, **kwargs: None
    return run(job, fastnlp, fastnlp.EarlyStopException, fastnlp.Accuracy, quiet)

def version():
    from importlib.metadata import version
    return version('fastNLP')
