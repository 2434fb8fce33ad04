"""The same job with learnkit and with HF's Trainer: the same order of data, AdamW without decay of biases and norms,
linear warm-up and decay, gradients clipped to a norm of 1. The jobs are the functions `ours` and `theirs`;
`nbs/examples/transformers_classifier.ipynb` runs the first."""
import inspect
import pytest, torch
from torch.optim import AdamW
transformers = pytest.importorskip('transformers')
pytest.importorskip('accelerate')
from transformers import Trainer, TrainingArguments, get_linear_schedule_with_warmup
from learnkit.all import DataLoaders, GradientAccumulation, GradientClip, Learner, TorchScheduler, accuracy
from test_transformers import items, make, pad

pytestmark = pytest.mark.slow

def ours(model, train, valid, path):
    dls = DataLoaders.from_dsets(train, valid, bs=4, collate_fn=pad, shuffle=False)
    warm_up = lambda opt: get_linear_schedule_with_warmup(opt, 3, 2*len(dls.train))
    learn = Learner(dls, model, opt_func=AdamW, lr=1e-3, wd=.1, metrics=accuracy, path=path, cbs=[GradientClip(1.), TorchScheduler(warm_up, interval='step')])
    learn.fit(2)
    learn.preds,learn.targs = learn.get_preds()
    return learn

def theirs(model, train, valid, path):
    args = TrainingArguments(
        path, num_train_epochs=2, per_device_train_batch_size=4, per_device_eval_batch_size=4, learning_rate=1e-3, weight_decay=.1,
        optim='adamw_torch', lr_scheduler_type='linear', warmup_steps=3, max_grad_norm=1., train_sampling_strategy='sequential',
        eval_strategy='epoch', save_strategy='no', report_to='none', use_cpu=True, disable_tqdm=True)
    def compute_metrics(p):
        return {'accuracy':float((p.predictions.argmax(-1)==p.label_ids).mean())}
    trainer = Trainer(model, args, data_collator=pad, train_dataset=train, eval_dataset=valid, compute_metrics=compute_metrics)
    trainer.train()
    out = trainer.predict(valid)
    trainer.preds,trainer.targs = out.predictions,out.label_ids
    return trainer

def lines(f): return len([l for l in inspect.getsource(f).splitlines()[1:] if l.strip() and 'return trainer' not in l and 'return learn' not in l])
def flat(model): return torch.cat([p.detach().flatten() for p in model.parameters()])

def test_a_classifier_ends_with_the_same_weights(tmp_path):
    "The weights are equal bit for bit"
    data = items('classes'),items('classes', 11, 1)
    a,b = make('classes'),make('classes')
    learn,trainer = ours(a, *data, tmp_path),theirs(b, *data, tmp_path)
    print(lines(ours), 'lines,', lines(theirs), 'lines; largest difference', (flat(a)-flat(b)).abs().max().item())
    assert torch.equal(flat(a), flat(b))
    last = [o for o in trainer.state.log_history if 'eval_loss' in o][-1]
    assert learn.validate()[1]==pytest.approx(last['eval_accuracy']) and learn.validate()[0]==pytest.approx(last['eval_loss'], rel=1e-4)

def test_a_causal_model_ends_with_the_same_weights(tmp_path):
    "The weights are equal up to rounding: Trainer divides the summed token losses, the model takes their mean"
    rows = items('causal')
    a,b = make('causal'),make('causal')
    ours(a, rows, rows[:7], tmp_path); theirs_causal(b, rows, tmp_path)
    print('largest difference', (flat(a)-flat(b)).abs().max().item())
    torch.testing.assert_close(flat(a), flat(b), rtol=1e-3, atol=2e-5)

def theirs_causal(model, train, path, **kw):
    args = TrainingArguments(path, num_train_epochs=2, learning_rate=1e-3, weight_decay=.1, optim='adamw_torch', lr_scheduler_type='linear', warmup_steps=3,
                             max_grad_norm=1., train_sampling_strategy='sequential', save_strategy='no', report_to='none', use_cpu=True, disable_tqdm=True, **{'per_device_train_batch_size':4, **kw})
    trainer = Trainer(model, args, data_collator=pad, train_dataset=train)
    trainer.train()
    return trainer

def test_accumulated_steps_are_the_same(tmp_path):
    "Both weight each token of an accumulated step equally"
    rows = items('causal', 24)
    a,b = make('causal'),make('causal')
    dls = DataLoaders.from_dsets(rows, bs=4, collate_fn=pad, shuffle=False)
    cbs = [GradientAccumulation(8), GradientClip(1.)]
    learn = Learner(dls, a, opt_func=AdamW, lr=1e-3, wd=.1, cbs=cbs)
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    args = TrainingArguments(tmp_path, num_train_epochs=1, learning_rate=1e-3, weight_decay=.1, optim='adamw_torch', lr_scheduler_type='constant', max_grad_norm=1.,
                             per_device_train_batch_size=4, gradient_accumulation_steps=2, train_sampling_strategy='sequential', save_strategy='no', report_to='none', use_cpu=True, disable_tqdm=True)
    Trainer(b, args, data_collator=pad, train_dataset=rows).train()
    print('largest difference', (flat(a)-flat(b)).abs().max().item())
    torch.testing.assert_close(flat(a), flat(b), rtol=1e-3, atol=2e-5)
