"What fastNLP's two documents promise, in the Trainer of `learnkit.contrib.fastnlp`"
import pytest, torch
from torch import nn
from torch.nn import functional as F
from learnkit.contrib import fastnlp as nlp

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.l,self.seen = nn.Linear(6, 2),[]
    def forward(self, words, target, extra=None):
        self.seen.append((words.sum().item(), extra is not None))
        p = self.l(words)
        return dict(pred=p, loss=F.cross_entropy(p, target))

def batches(n=4):
    g = torch.Generator().manual_seed(0)
    return [dict(words=torch.randn(4, 6, generator=g), target=torch.arange(4)%2) for _ in range(n)]

def trainer(cbs=(), model=None, **kwargs):
    m = model or Model()
    kwargs = dict(n_epochs=1, progress_bar=None, num_eval_sanity_batch=0) | kwargs
    return nlp.Trainer(model=m, train_dataloader=batches(), optimizers=torch.optim.SGD(m.parameters(), .1), evaluate_dataloaders=batches(2),
                       metrics={'acc':nlp.Accuracy()}, callbacks=list(cbs), **kwargs)

def run(*args, **kwargs):
    t = trainer(*args, **kwargs)
    with t.learn.no_logging(): t.run()
    return t

@pytest.mark.parametrize('edit,seen', [
    (lambda b: b.update(words=torch.ones(4, 6)),  (24., False)),
    (lambda b: b.update(words=torch.zeros(4, 6), extra=torch.ones(1)), (0., True)),
    (lambda b: b['words'].fill_(2.),              (48., False))], ids=['value','key','in place'])
def test_what_a_callback_changes_in_a_batch_reaches_the_model(edit, seen):
    class Edits(nlp.Callback):
        def on_train_batch_begin(self, trainer, batch, indices): edit(batch)
    assert run([Edits()]).model.seen[0]==seen

def test_a_key_that_is_deleted_does_not_reach_the_model():
    class Edits(nlp.Callback):
        def on_train_batch_begin(self, trainer, batch, indices): batch['extra'] = batch.pop('spare')
    class Second(nlp.Callback):
        def on_train_batch_begin(self, trainer, batch, indices): seen.append(sorted(batch))
    seen = []
    t = trainer([Edits(), Second()])
    for b in t.learn.dls.train: b['spare'] = torch.ones(1)
    with t.learn.no_logging(): t.run()
    assert t.model.seen[0][1] and seen[0]==['extra','target','words']

class Watch(nlp.HasMonitorCallback):
    def on_evaluate_end(self, trainer, results): self.is_better_results(results)

def test_the_monitor_of_the_trainer():
    watch = Watch(None)
    run([watch], monitor='acc#acc', larger_better=False)
    assert watch.monitor=='acc#acc' and watch.larger_better is False and watch.monitor_value is not None
    with pytest.raises(ValueError, match='needs a `monitor`'): trainer([nlp.HasMonitorCallback(None, must_have_monitor=True)])
    with pytest.raises(KeyError, match='has no `monitor`'): run([Watch(None)])

def test_the_longest_match_is_reported(capsys):
    watch = Watch('acc')
    run([watch])
    assert "there is no result 'acc', so 'acc#acc' is monitored" in capsys.readouterr().out and watch.monitor_value is not None

@pytest.mark.parametrize('kwargs,calls', [(dict(every=2, once=3), [2,4]), (dict(once=3, filter_fn=lambda f,t: True), [3]),
                                          (dict(filter_fn=lambda f,t: f.num_called==1), [1])])
def test_every_comes_before_once_before_filter_fn(kwargs, calls):
    seen = []
    class Count(nlp.Callback):
        def on_train_batch_end(self, trainer): n[0] += 1
    n = [1]
    @nlp.Trainer.on(nlp.Event.on_before_backward(**kwargs))
    def note(trainer, outputs): seen.append(n[0])
    run([Count()])
    assert seen==calls

def test_accumulation_and_mappings():
    class Other(Model):
        def forward(self, words, target): return dict(p=self.l(words), l=F.cross_entropy(self.l(words), target))
    steps = []
    class Steps(nlp.Callback):
        def on_after_optimizers_step(self, trainer, optimizers): steps.append(trainer.global_forward_batches)
        def on_before_backward(self, trainer, outputs): assert {'pred','loss'} <= set(outputs)
    m = Other()
    t = run([Steps()], model=m, accumulation_steps=2, output_mapping=dict(p='pred', l='loss'), input_mapping=lambda b: {**b, 'words':b['words']*2})
    assert steps==[1,3] and t.learn.train_steps==2
    m(batches()[0]['words'], batches()[0]['target'])['l']   # outside a run the mappings do not apply

def test_sanity_batches():
    seen = []
    class Sane(nlp.Callback):
        def on_sanity_check_begin(self, trainer): seen.append('begin')
        def on_sanity_check_end(self, trainer, sanity_check_res): seen.append(sorted(sanity_check_res))
        def on_train_begin(self, trainer): seen.append('train')
    run([Sane()], num_eval_sanity_batch=2)
    assert seen==['begin', ['acc#acc','valid_loss#valid_loss'], 'train']

def test_names_driver_and_manager():
    cb = nlp.Callback()
    assert cb.callback_name=='Callback' and cb.need_reproducible_sampler is False
    class Driver(nlp.Callback):
        def on_after_trainer_initialized(self, trainer, driver): self.seen = driver.model is trainer.model, driver.is_global_rank_0()
    d = Driver()
    t = trainer([d])
    assert d.seen==(True, True) and t.callback_manager.class_callbacks[0] is d
    class Says(nlp.Callback):
        def on_train_begin(self, trainer): trainers.append(trainer)
    trainers = []
    manager = nlp.CallbackManager([Says()])
    manager.add_one_callback(Says())
    manager.on_train_begin('it')
    assert trainers==['it','it']
    with pytest.raises(AttributeError, match='no event `on_trainn`'): manager.on_trainn

def test_a_checkpoint_restores_callback_states(tmp_path):
    class Keeps(nlp.Callback):
        n,loaded = 0,None
        def on_train_batch_end(self, trainer): self.n += 1
        def on_save_checkpoint(self, trainer): return dict(n=self.n)
        def on_load_checkpoint(self, trainer, states): self.loaded = states
    whole = run([Keeps()], n_epochs=3)
    half = run([Keeps()], n_epochs=1)
    half.save_checkpoint(tmp_path)
    cb = Keeps()
    rest = trainer([cb], n_epochs=3)
    rest.load_checkpoint(tmp_path)
    with rest.learn.no_logging(): rest.run()
    assert cb.loaded==dict(n=4) and cb.n==8 and torch.equal(rest.model.l.weight, whole.model.l.weight)

NAMES = '''CheckpointCallback RichCallback TqdmCallback RawTextCallback LRSchedCallback LoadBestModelCallback EarlyStopCallback MoreEvaluateCallback FitlogCallback
    TimerCallback TorchWarmupCallback TorchGradClipCallback'''.split()

@pytest.mark.parametrize('name', NAMES)
def test_the_twelve_classes(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    m = Model()
    opt = torch.optim.SGD(m.parameters(), .1)
    kwargs = dict(CheckpointCallback=dict(folder='c', topk=1, monitor='acc#acc', last=True, every_n_epochs=1, every_n_batches=3),
                  LRSchedCallback=dict(scheduler=torch.optim.lr_scheduler.StepLR(opt, 1, .5)), LoadBestModelCallback=dict(monitor='acc#acc'),
                  EarlyStopCallback=dict(monitor=lambda res: 0., patience=2), MoreEvaluateCallback=dict(dataloaders=batches(2), metrics={'acc':nlp.Accuracy()}),
                  TorchWarmupCallback=dict(warmup=4), TorchGradClipCallback=dict(clip_value=1e-4, clip_type='value')).get(name, {})
    if name=='FitlogCallback':
        with pytest.raises(ImportError, match='TensorBoard'): nlp.FitlogCallback()
        return
    before = m.l.weight.detach().clone()
    cb = getattr(nlp, name)(**kwargs)
    t = nlp.Trainer(m, batches(), opt, n_epochs=4, evaluate_dataloaders=batches(2), metrics={'acc':nlp.Accuracy()}, callbacks=[cb])
    with t.learn.no_bar() if 'T' in name and name[:2] in ('Ri','Tq') else t.learn.no_logging(): t.run()
    match name:
        case 'CheckpointCallback':
            assert {'last','epoch_1','epoch_4','batch_3','batch_15'} <= {p.name for p in (tmp_path/'c').iterdir()}
            assert len([p for p in (tmp_path/'c').iterdir() if '-batch_' in p.name])==1
        case 'LRSchedCallback': assert opt.param_groups[0]['lr']==pytest.approx(.1*.5**16)
        case 'EarlyStopCallback': assert len(t.learn.recorder.history)==3
        case 'MoreEvaluateCallback': assert len(t.learn.recorder.history['more_loss'])==4
        case 'TorchWarmupCallback': assert opt.param_groups[0]['lr']==pytest.approx(.1)
        case 'TorchGradClipCallback': assert (m.l.weight-before).abs().max() <= 16*.1*1e-4+1e-6
        case _: assert len(t.learn.recorder.history)==4

def test_callbacks_receive_the_trainers_optimizers():
    "`optimizers` is the object that the Trainer was given"
    seen = []
    class Sees(nlp.Callback):
        def on_before_optimizers_step(self, trainer, optimizers): seen.append(optimizers)
    m = Model()
    opt = torch.optim.SGD(m.parameters(), .1)
    t = nlp.Trainer(m, batches(1), opt, n_epochs=1, callbacks=[Sees()], progress_bar=None)
    with t.learn.no_logging(): t.run()
    assert seen[-1] is t.optimizers is opt and t.driver.optimizers==[opt]

def test_evaluation_every_so_many_batches_comes_after_on_train_batch_end():
    order = []
    class Notes(nlp.Callback):
        def on_train_batch_end(self, trainer): order.append('batch')
        def on_evaluate_begin(self, trainer): order.append('evaluate')
        def on_train_epoch_end(self, trainer): order.append('epoch')
    run([Notes()], evaluate_every=3)
    assert order==['batch']*3+['evaluate','batch','epoch']

def test_a_sanity_check_saves_no_callback_state():
    calls = []
    class Saves(nlp.Callback):
        def on_save_checkpoint(self, trainer): calls.append('save')
        def on_load_checkpoint(self, trainer, states): calls.append('load')
    run([Saves()], num_eval_sanity_batch=1)
    assert calls==[]

def test_files_have_the_names_of_fastNLP(tmp_path):
    import io
    t = run()
    t.save_model(tmp_path/'m')
    t.save_checkpoint(tmp_path/'c')
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob('*.tar'))==['c/fastnlp_checkpoint.pkl.tar','c/fastnlp_model.pkl.tar','m/fastnlp_model.pkl.tar']
    buffer,before = io.BytesIO(),t.model.l.weight.detach().clone()
    t.save_model(buffer)
    for load in (lambda: t.load_model(tmp_path/'m'), lambda: (buffer.seek(0), t.load_model(buffer)), lambda: t.load_checkpoint(tmp_path/'c')):
        with torch.no_grad(): t.model.l.weight.zero_()
        load()
        assert torch.equal(t.model.l.weight, before)

def test_run_limits_the_batches():
    n = []
    class Counts(nlp.Callback):
        def on_train_epoch_end(self, trainer): n.append(trainer.global_forward_batches)
    t = trainer([Counts()], n_epochs=2)
    with t.learn.no_logging(): t.run(num_train_batch_per_epoch=3, num_eval_batch_per_dl=1)
    assert n==[3,6]

def test_the_best_models_so_far_are_in_a_checkpoint(tmp_path):
    "A resumed run removes the model that is no longer the best, as an uninterrupted run does"
    from learnkit.contrib import fastnlp
    from learnkit.learner.learner import Learner
    from learnkit.recovery.checkpoint import CheckpointCallback as Checkpoint
    import torch
    torch.manual_seed(0)
    x = torch.randn(8, 4)
    batches = [(x, x.sum(1, keepdim=True))]*3
    def fit(n):
        best = fastnlp.CheckpointCallback(folder=tmp_path/'best', topk=1, monitor='valid_loss', larger_better=False)
        learn = Learner((batches, batches), torch.nn.Linear(4, 1), torch.nn.MSELoss(), torch.optim.SGD, lr=.01, path=tmp_path, cbs=[fastnlp.adapt(best), Checkpoint('1ep')])
        with learn.no_bar(), learn.no_logging(): learn.fit(n, resume='auto')
    fit(2); fit(4)
    assert [p.name for p in (tmp_path/'best').iterdir()]==['epoch_4-batch_12']
