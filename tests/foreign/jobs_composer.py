"""Jobs for Composer: a recorder in Composer's own `Trainer`, and in a Learner. Composer 0.32.1 requires PyTorch below
2.7; installed without its dependencies it runs with 2.13, if torchvision can be imported. Where torchvision's C
extension is missing, `shim` declares the operators that the import needs."""
import torch
from torch import nn
from torch.nn import functional as F
from recording import Named, Notes, Stopped, accuracy, bs, loader, lr, named_items, net, train_rows, valid_rows
from torch.utils.data import DataLoader

jobs = 'plain','no_valid','stop_in_batch','stop_after_validation','error','evaluate','predict','named','in_batches','iterations','micro','two'

events = '''init fit_start iteration_start epoch_start before_dataloader after_dataloader batch_start before_train_batch before_forward after_forward before_loss
    after_loss before_backward after_backward after_train_batch batch_end batch_checkpoint epoch_end eval_before_all eval_start eval_batch_start eval_before_forward
    eval_after_forward eval_batch_end eval_end eval_after_all epoch_checkpoint iteration_end iteration_checkpoint fit_end eval_standalone_start eval_standalone_end
    predict_start predict_batch_start predict_before_forward predict_after_forward predict_batch_end predict_end'''.split()

def numbers(timestamp):
    names = 'iteration epoch batch sample token epoch_in_iteration batch_in_epoch sample_in_epoch token_in_epoch'.split()
    values = [getattr(timestamp, k) for k in names]
    assert all(v.value==int(v) for v in values)
    return ' '.join(str(v.value) for v in values)

within_a_step = '''after_forward before_loss after_loss before_backward after_backward after_train_batch batch_end batch_checkpoint'''.split()
has_batch = ['after_dataloader','batch_start','before_train_batch','before_forward', *within_a_step, 'eval_batch_start','eval_before_forward','eval_after_forward','eval_batch_end',
             'predict_batch_start','predict_before_forward','predict_after_forward','predict_batch_end']
has_output = [*within_a_step, 'eval_after_forward','eval_batch_end','predict_after_forward','predict_batch_end']
has_loss = within_a_step[2:]

def as_list(batch):
    "Return a tuple batch as a list: splitting into micro-batches, even into one, turns a list into a tuple in Composer"
    return list(batch) if isinstance(batch, tuple) else batch

class Recorder:
    "Mixed into Composer's `Callback`, or into that of `learnkit.contrib.composer`"
    def __init__(self, job, notes, name=''): self.job,self.notes,self.its_name,self.n = job,notes,name,0
    def note(self, hook, state):
        job = self.job
        if job=='two': return self.notes.add(hook, of=self.its_name)   # record only the order of the two callbacks
        given = dict(of=self.its_name, label=state.dataloader_label, n=getattr(state.dataloader_len, 'value', None), time=numbers(state.timestamp),
                     train=dict(state.train_metric_values), valid=dict(state.eval_metric_values), weights=sum(p.detach().sum() for p in state.model.parameters()),
                     mode=state.model.training)
        if hook in has_batch: given |= dict(batch=as_list(state.batch))
        if hook in has_output: given |= dict(outputs=state.outputs)
        if hook in has_loss: given |= dict(loss=state.loss)
        if hook.startswith('eval_batch') or hook in ('eval_start','eval_end'): given |= dict(eval_time=numbers(state.eval_timestamp))
        if hook.startswith('predict'): given |= dict(predict_time=numbers(state.predict_timestamp))
        if job not in ('evaluate','predict') and hook!='init':
            given |= dict(rate=state.optimizers[0].param_groups[0]['lr'], duration=(state.max_duration.value, getattr(state.max_duration.unit, 'value', state.max_duration.unit)), elapsed=state.get_elapsed_duration().value)
        self.notes.add(hook, **given)
        self.n += hook=='batch_start'
        match job,hook:
            case 'stop_in_batch','batch_end' if self.n==2: state.stop_training()
            case 'stop_after_validation','eval_end': state.stop_training()
            case 'error','batch_start' if self.n==2: raise Stopped('at batch 2')
    def close(self, state, logger): self.notes.add('close', of=self.its_name)
    def post_close(self): self.notes.add('post_close', of=self.its_name)

def _hook(name):
    def f(self, state, logger): self.note(name, state)
    return f
for n in events: setattr(Recorder, n, _hook(n))

class Model(nn.Module):
    "Mixed into `ComposerModel`: the forward pass and the loss of a job's model"
    def __init__(self, job):
        super().__init__()
        self.inner,self.is_named = Named() if job=='named' else net(),job=='named'
    def forward(self, batch): return self.inner(**batch) if self.is_named else self.inner(batch[0])
    def loss(self, outputs, batch): return outputs['loss'] if self.is_named else F.cross_entropy(outputs, batch[1])

def recorders(Callback, job, notes):
    cls = type('Its', (Recorder, Callback), {})
    return [cls(job, notes, k) for k in ('ab' if job=='two' else 'a')]

def loaders(job):
    if job=='named': return [DataLoader(named_items(o), bs) for o in (train_rows, valid_rows)]
    return [loader(train_rows), None if job=='no_valid' else loader(valid_rows)]

def theirs(job):
    shim()
    import composer, torchmetrics, logging
    logging.getLogger('composer').setLevel(logging.ERROR)
    class Theirs(Model, composer.ComposerModel):
        def __init__(self):
            composer.ComposerModel.__init__(self)
            Model.__init__(self, job)
            self.accuracy = torchmetrics.MeanMetric()
        def eval_forward(self, batch, outputs=None): return self(batch) if outputs is None else outputs
        def get_metrics(self, is_train): return dict(accuracy=self.accuracy)
        def update_metric(self, batch, outputs, metric):
            y = batch['labels'] if job=='named' else batch[1]
            metric.update(accuracy(outputs['logits'] if job=='named' else outputs, y), weight=len(y))
    notes,model = Notes(),Theirs()
    train,valid = loaders(job)
    opt = torch.optim.SGD(model.parameters(), lr)
    fits = job not in ('evaluate','predict')
    t = composer.Trainer(model=model, train_dataloader=train if fits else None, eval_dataloader=valid, optimizers=opt, max_duration='4ba' if job=='in_batches' else '2ep',
                         callbacks=recorders(composer.Callback, job, notes), device='cpu', progress_bar=False, console_stream=None, loggers=[], auto_log_hparams=False,
                         device_train_microbatch_size=8 if job=='micro' else None, seed=0, dist_timeout=30.)
    if job=='iterations': t.state._iteration_length = '1ep'
    try:
        if job=='evaluate': t.eval()
        elif job=='predict': t.predict(valid)
        else: t.fit()
    except Stopped: pass
    t.close()
    return notes

def ours(job):
    from learnkit.all import Cycles, DataLoaders, Learner, MicroBatch
    from learnkit.contrib import composer
    notes = Notes()
    cbs = recorders(composer.Callback, job, notes)
    train,valid = loaders(job)
    named = job=='named'
    model = Named() if named else net()
    learn = Learner(DataLoaders(train, *([] if valid is None else [valid])), model, None if named else nn.CrossEntropyLoss(), torch.optim.SGD, lr=lr, metrics=accuracy, cbs=cbs)
    more = [Cycles('1ep')] if job=='iterations' else [MicroBatch(8)] if job=='micro' else []
    with learn.no_bar(), learn.no_logging():
        try:
            if job=='evaluate': learn.validate()
            elif job=='predict': learn.get_preds()
            else: learn.fit('4ba' if job=='in_batches' else 2, cbs=more)
        except Stopped: pass
    return notes

def shim():
    "Declare the operators that `import torchvision` needs, if its C extension is missing"
    try: import torchvision
    except RuntimeError:
        global library   # the operators exist as long as this object
        library = torch.library.Library('torchvision', 'DEF')
        for name in ('nms','qnms'): library.define(f'{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor')

def version():
    shim()
    import composer
    return f'{composer.__version__}, with PyTorch {torch.__version__.partition("+")[0]} and a shim for torchvision'
