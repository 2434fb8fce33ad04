"""The promises of the five documents on callbacks that learnkit started from. `promises.md` lists them with the test of
each; those that no other file tests are tested here."""
import ast, gc, os, re, weakref
from pathlib import Path
import pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
from learnkit.all import CheckpointCallback, DataLoaders, ItemIndices, Learner, displays, event
from learnkit.contrib import composer, fastnlp as nlp, lightning, pytorch_accelerated as pa
from learnkit.contrib.foreign import view_of
from learnkit.loop.names import names_in

here = Path(__file__).parent
folder = Path(os.environ.get('LEARNKIT_SEEDS', here.parents[2]/'shared/seeds'))

# the table

def rows():
    "Yield (document, first line, last line, promise, test) of each row of `promises.md`"
    document = None
    for line in (here/'promises.md').read_text(encoding='utf-8').splitlines():
        if m := re.match(r'## (\d+):', line): document = m[1]
        if not (m := re.match(r'\| (\d+)(?:-(\d+))? \| (.+) \| (\S+) \|$', line)): continue
        yield document,int(m[1]),int(m[2] or m[1]),m[3],m[4]

def functions_in(path):
    "The names of the functions that a file defines"
    tree = ast.parse(path.read_text(encoding='utf-8'))
    return {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}

@pytest.mark.slow
def test_each_promise_has_its_test():
    wrong = []
    for document,first,_,what,test in rows():
        if test=='-': continue
        file,name = test.split('::')
        if name not in functions_in(here/file): wrong.append(f'{document}:{first} {what}: there is no {test}')
    assert wrong==[]
    assert len([*rows()])>100

def text_of(document):
    found = [*folder.glob(f'{document}_*.txt')]
    if not found: pytest.skip('the documents are not here')
    return found[0].read_text(encoding='utf-8').splitlines()

@pytest.mark.parametrize('document', ['000','001','002','003','004'])
def test_no_line_is_skipped(document):
    lines,mine = text_of(document),[r for r in rows() if r[0]==document]
    covered = {n for _,first,last,*_ in mine for n in range(first, last+1)}
    assert [(n,o) for n,o in enumerate(lines, 1) if re.search(r'\w', o) and n not in covered]==[]
    assert max(last for _,_,last,*_ in mine)<=len(lines)+1

@pytest.mark.parametrize('document,library', [('000','fastNLP'), ('002','fastNLP'), ('003','Composer'), ('004','pytorch-accelerated')])
def test_each_event_of_a_line_belongs_to_a_promise(document, library):
    "Each line that names an event of the library is in a row with a test"
    lines,named = text_of(document),set()
    for n,line in enumerate(lines, 1):
        events = {k for k in names_in(library) if re.search(rf'\b{k}\b', line)}
        named |= events
        if events: assert any(first<=n<=last and test!='-' for d,first,last,_,test in rows() if d==document), line
    assert len(named)>10

# fastai

def test_event_is_callable_and_checked():
    assert event.before_step=='before_step' and event().after_loss=='after_loss'
    with pytest.raises(AttributeError, match='before_stepp'): event.before_stepp
    with pytest.raises(TypeError, match='register'): event('before_mine')

# fastNLP

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(6, 2)
    def forward(self, x, target):
        p = self.linear(x)
        return dict(pred=p, loss=F.cross_entropy(p, target))

def batches(n=3, key='x'):
    g = torch.Generator().manual_seed(0)
    return [{key:torch.randn(4, 6, generator=g), 'target':torch.arange(4)%2} for _ in range(n)]

def trainer(cbs=(), n_epochs=2, train=None, **kwargs):
    m = Model()
    kwargs = dict(num_eval_sanity_batch=0, progress_bar=None) | kwargs
    return nlp.Trainer(model=m, train_dataloader=train or batches(), optimizers=torch.optim.SGD(m.parameters(), .1), n_epochs=n_epochs,
                       evaluate_dataloaders=batches(2), metrics={'acc':nlp.Accuracy()}, callbacks=[*cbs], **kwargs)

def run(t, **kwargs):
    with t.learn.no_logging(): t.run(**kwargs)
    return t

@pytest.mark.parametrize('error', [ValueError('wrong'), KeyboardInterrupt(), SystemExit(3), nlp.EarlyStopException('enough')], ids=lambda e: type(e).__name__)
def test_fastnlp_calls_on_train_end_after_any_exception(error):
    seen = []
    class Ends(nlp.Callback):
        def on_after_backward(self, trainer): raise error
        def on_exception(self, trainer, exception): seen.append(exception)
        def on_train_end(self, trainer): seen.append('end')
    try: run(trainer([Ends()]))
    except BaseException as e: assert e is error and not isinstance(e, nlp.EarlyStopException)
    assert seen==[error, 'end']

def test_fastnlp_updates_its_counters_before_callbacks():
    seen = []
    class Counts(nlp.Callback):
        def note(self, t): seen.append((t.n_epochs, t.cur_epoch_idx, t.global_forward_batches, t.batch_idx_in_epoch, t.num_batches_per_epoch, t.n_batches))
        def on_train_batch_begin(self, trainer, batch, indices): self.note(trainer)
        def on_train_batch_end(self, trainer): self.note(trainer)
        def on_train_epoch_end(self, trainer): self.note(trainer)
    run(trainer([Counts()]))
    assert seen[:3]==[(2,0,0,0,3,6), (2,0,1,1,3,6), (2,0,1,1,3,6)] and seen[6]==(2,1,3,0,3,6) and seen[-1]==(2,2,6,0,3,6)

def test_fastnlp_passes_the_batch_after_input_mapping():
    seen = []
    class Sees(nlp.Callback):
        def on_train_batch_begin(self, trainer, batch, indices): seen.append((type(batch), sorted(batch), batch['x'].device==trainer.device))
    run(trainer([Sees()], train=batches(key='words'), input_mapping=lambda b: {'x':b.get('words', b.get('x')), 'target':b['target']}))
    assert seen==[(dict, ['target','x'], True)]*6

def test_fastnlp_passes_the_sample_indices_if_known():
    seen = []
    class Sees(nlp.Callback):
        def on_train_batch_begin(self, trainer, batch, indices): seen.append(indices)
    run(trainer([Sees()], 1))
    assert seen==[None]*3
    seen.clear()
    items = [dict(x=torch.randn(6), target=torch.tensor(0)) for _ in range(6)]
    t = trainer([Sees(), ItemIndices()], 1, train=DataLoader(items, 3))
    run(t)
    assert [[*map(int, o)] for o in seen]==[[0,1,2],[3,4,5]]

def test_fastnlp_calls_before_a_model_is_saved_or_loaded(tmp_path):
    seen = []
    class Says(nlp.Callback):
        def on_save_model(self, trainer): seen.append(('save', any(tmp_path.rglob('*.tar'))))
        def on_load_model(self, trainer): seen.append(('load', trainer.model.linear.bias.sum().item()))
    t = run(trainer([Says()], 1))
    t.save_model(tmp_path/'m')
    saved = t.model.linear.bias.detach().clone()
    with torch.no_grad(): t.model.linear.bias.zero_()
    t.load_model(tmp_path/'m')
    assert seen==[('save', False), ('load', 0.)] and torch.equal(t.model.linear.bias, saved)

def test_fastnlp_names_a_function_by_its_name():
    @nlp.Trainer.on(nlp.Event.on_train_begin())
    def says_hello(trainer): pass
    t = trainer()
    assert [cb.callback_name for cb in t.callback_manager.class_callbacks]==['says_hello']

def test_fastnlp_saves_what_a_callback_writes_into_state(tmp_path):
    class Keeps(nlp.Callback):
        def on_train_epoch_end(self, trainer): trainer.state['seen'] = trainer.state.get('seen', 0)+1
    t = run(trainer([Keeps()]))
    assert t.state.seen==t.state['seen']==2
    t.save_checkpoint(tmp_path)
    again = trainer([Keeps()], 3)
    run(again, resume_from=tmp_path)
    assert again.state.seen==3

def test_fastnlp_trainers_are_freed():
    class Nothing(nlp.Callback): pass
    t = run(trainer([Nothing()], 1))
    gone = weakref.ref(t.learn),weakref.ref(t.model)
    del t
    gc.collect()
    assert [o() for o in gone]==[None, None]

@pytest.mark.parametrize('larger_better,better', [(True, [True,False,True]), (False, [True,True,False])])
def test_fastnlp_remembers_the_better_result(larger_better, better):
    cb = nlp.HasMonitorCallback('acc#acc', larger_better)
    values = [dict([('acc#acc', torch.tensor(v))]) for v in (.5, .4, .6)]
    assert [cb.is_better_results(v) for v in values]==better
    assert type(cb.get_monitor_value(values[0])) is float and cb.monitor_value==pytest.approx(.6 if larger_better else .4)

def test_fastnlp_filters_count_calls():
    seen = []
    def every_second(filter, trainer):
        seen.append((filter.num_called, filter.num_executed, trainer.global_forward_batches))
        return filter.num_called%2==0
    @nlp.Trainer.on(nlp.Event.on_before_backward(filter_fn=every_second))
    def nothing(trainer, outputs): pass
    run(trainer(n_epochs=1))
    assert seen==[(1,0,0),(2,0,1),(3,1,2)]

def test_fastnlp_markers():
    calls = []
    def named(name, marker):
        @nlp.Trainer.on(nlp.Event.on_train_begin(), marker=marker)
        def f(trainer): calls.append(name)
    for name,marker in (('next',None), ('one','a'), ('every','all')): named(name, marker)
    try:
        for marker in (None,'a','b'):
            run(trainer(n_epochs=1, marker=marker))
            calls.append('-')
    finally: nlp.Trainer.pending_functions.clear()
    assert calls==['next','every','-','one','every','-','every','-']

def test_fastnlp_evaluates_after_the_epoch_is_over():
    order = []
    class Notes(nlp.Callback):
        def on_train_batch_end(self, trainer): order.append('batch')
        def on_train_epoch_end(self, trainer): order.append('epoch')
        def on_evaluate_begin(self, trainer): order.append('evaluate')
    run(trainer([Notes()], evaluate_every=-2))
    assert order==['batch']*3+['epoch']+['batch']*3+['epoch','evaluate']

def test_fastnlp_evaluates_when_a_function_returns_true():
    "The function is called with the trainer after each batch"
    calls,evaluated = [],[]
    def when(trainer):
        calls.append(trainer.global_forward_batches)
        return trainer.global_forward_batches in (2,3)
    class Notes(nlp.Callback):
        def on_evaluate_end(self, trainer, results): evaluated.append((trainer.global_forward_batches, sorted(results)))
    run(trainer([Notes()], evaluate_every=when))
    names = ['acc#acc','valid_loss#valid_loss']
    assert calls==[1,2,3,4,5,6] and evaluated==[(2,names),(3,names)]

def test_fastnlp_loads_callback_states_after_trainer_and_driver(tmp_path):
    "A state is assigned by `callback_name`, also to a different class of that name"
    class Keeps(nlp.Callback):
        callback_name = 'mine'
        def on_save_checkpoint(self, trainer): return dict(weight=trainer.model.linear.weight.sum().item())
    class Reads(nlp.Callback):
        callback_name,got = 'mine',None
        def on_load_checkpoint(self, trainer, states): self.got = states,trainer.model.linear.weight.sum().item(),trainer.cur_epoch_idx,trainer.state.note
    class Other(Reads): callback_name = 'another'
    first = run(trainer([Keeps()]))
    first.state['note'] = 'kept'
    first.save_checkpoint(tmp_path)
    reads,other = Reads(),Other()
    trainer([reads, other], 3).load_checkpoint(tmp_path)
    w = first.model.linear.weight.sum().item()
    assert reads.got==(dict(weight=w), w, 2, 'kept') and other.got is None

@pytest.mark.parametrize('monitor', ['acc#acc', lambda results: results['acc#acc']])
def test_fastnlp_monitors_a_name_or_a_function_of_the_results(monitor):
    seen = []
    class Watch(nlp.HasMonitorCallback):
        def on_evaluate_end(self, trainer, results): seen.append((self.get_monitor_value(results), float(results['acc#acc'])))
    run(trainer([Watch(monitor)]))
    assert len(seen)==2 and all(type(a) is float and a==b for a,b in seen)

class Weights(nlp.Callback):
    "Records the weights at each evaluation; `watch` returns the prescribed result of the latest"
    def __init__(self, values): self.values,self.weights = values,[]
    def on_evaluate_end(self, trainer, results): self.weights.append(trainer.model.linear.weight.detach().clone())
    def watch(self, results): return self.values[len(self.weights)-1]

@pytest.mark.parametrize('how', ['memory','folder','functions'])
def test_fastnlp_loads_the_best_model(how, tmp_path):
    "Saved at each new best result, loaded at the end of the run, and deleted unless `delete_after_train=False`"
    notes,folder,used = Weights([1., 3., 2.]),tmp_path/'best',[]
    def save(to): torch.save(t.model.state_dict(), to/'own.pt')
    def load(of):
        used.append(sorted(p.name for p in of.iterdir()))
        t.model.load_state_dict(torch.load(of/'own.pt'))
    kwargs = dict(memory=dict(), folder=dict(save_folder=folder, delete_after_train=False),
                  functions=dict(save_folder=folder, model_save_fn=save, model_load_fn=load))[how]
    t = trainer([notes, nlp.LoadBestModelCallback(notes.watch, **kwargs)], 3)
    run(t)
    assert torch.equal(t.model.linear.weight, notes.weights[1]) and not torch.equal(t.model.linear.weight, notes.weights[2])
    assert [p.name for p in tmp_path.rglob('*.*')]==(['fastnlp_model.pkl.tar'] if how=='folder' else [])
    assert used==([['own.pt']] if how=='functions' else [])

def test_fastnlp_runs_again_when_the_best_model_was_deleted(tmp_path):
    "A second run without a better result has no file to load; it used to raise FileNotFoundError"
    notes = Weights([2., 1.])
    t = trainer([notes, nlp.LoadBestModelCallback(notes.watch, save_folder=tmp_path/'best')], 1)
    run(run(t))
    assert torch.equal(t.model.linear.weight, notes.weights[1])

def test_fastnlp_saves_models_and_checkpoints(tmp_path):
    "`load_model` and `load_checkpoint` read the folders; the best has its results; an early end saves as well"
    notes = Weights([1., 3., 2.])
    class Ends(nlp.Callback):
        def on_evaluate_end(self, trainer, results):
            if trainer.cur_epoch_idx==3: raise nlp.EarlyStopException('enough')
    best = nlp.CheckpointCallback(tmp_path/'best', topk=1, monitor=notes.watch)
    whole = nlp.CheckpointCallback(tmp_path/'whole', every_n_epochs=2, save_object='trainer')
    t = run(trainer([notes, best, whole, Ends()], 5))
    assert sorted(p.name for p in (tmp_path/'best').iterdir())==['epoch_2-batch_6','epoch_3-batch_9-exception_EarlyStopException']
    assert sorted(p.name for p in (tmp_path/'best/epoch_2-batch_6').iterdir())==['fastnlp_evaluate_results.json','fastnlp_model.pkl.tar']
    assert [p.name for p in (tmp_path/'whole').iterdir() if 'exception' not in p.name]==['epoch_2']
    t.load_model(tmp_path/'best/epoch_2-batch_6')
    assert torch.equal(t.model.linear.weight, notes.weights[1])
    again = trainer(n_epochs=5)
    again.load_checkpoint(tmp_path/'whole/epoch_2')
    assert again.cur_epoch_idx==2 and torch.equal(again.model.linear.weight, notes.weights[1])

def test_fastnlp_saves_only_at_the_given_exceptions(tmp_path):
    class Fails(nlp.Callback):
        def on_train_epoch_end(self, trainer): raise ValueError
    for classes in (nlp.EarlyStopException, None, (KeyError,)):
        with pytest.raises(ValueError): run(trainer([nlp.CheckpointCallback(tmp_path, on_exceptions=classes), Fails()]))
    assert [*tmp_path.iterdir()]==[]
    with pytest.raises(ValueError): run(trainer([nlp.CheckpointCallback(tmp_path, on_exceptions=[KeyError,ValueError]), Fails()]))
    assert [p.name for p in tmp_path.iterdir()]==['epoch_1-batch_3-exception_ValueError']

@pytest.mark.parametrize('bar,rows', [(None,0), ('raw',2), ('tqdm',2), ('rich',2), ('auto',2)])
def test_fastnlp_progress_bar_chooses_the_display(bar, rows, capsys):
    trainer(progress_bar=bar).run()
    assert len([o for o in capsys.readouterr().out.splitlines() if re.match(r'[01] ', o)])==rows

@pytest.mark.parametrize('name', ['RichCallback','TqdmCallback','RawTextCallback'])
def test_fastnlp_callbacks_show_progress(name, capsys):
    trainer([getattr(nlp, name)(print_every=2, loss_round_ndigit=3)], progress_bar=None).run()
    assert len([o for o in capsys.readouterr().out.splitlines() if re.match(r'[01] ', o)])==2

def test_fastnlp_times_the_parts(capsys):
    trainer([nlp.TimerCallback()], progress_bar=None).run()
    assert len(re.findall(r'forward \d+\.\d+ s .* backward .* step .* valid .* total', capsys.readouterr().out))==2

def test_fastnlp_evaluates_more_data():
    t = run(trainer([nlp.MoreEvaluateCallback(batches(1), {'acc':nlp.Accuracy()})]))
    other = t.learn.validate(dl=batches(1))
    assert t.learn.recorder.history['more_loss'][-1]==pytest.approx(other[0])

def test_fastnlp_raises_for_what_it_cannot_do():
    "Wrong and unsupported arguments raise; they used to be ignored"
    for wrong,match in [(lambda: nlp.CheckpointCallback(every_n_epoch=1), 'every_n_epoch'), (lambda: nlp.LoadBestModelCallback('acc', folder='x'), 'folder'),
                        (lambda: nlp.RawTextCallback(print_evry=1), 'print_evry')]:
        with pytest.raises(TypeError, match=match): wrong()
    for wrong,match in [(lambda: nlp.CheckpointCallback(only_state_dict=False), 'model_save_fn'), (lambda: nlp.LoadBestModelCallback('acc', only_state_dict=False), 'model_save_fn'),
                        (lambda: nlp.LoadBestModelCallback('acc', model_save_fn=print), 'together'), (lambda: nlp.LoadBestModelCallback('acc', model_save_fn=print, model_load_fn=print), 'save_folder'),
                        (lambda: nlp.TorchGradClipCallback(parameters=[]), '`parameters` is not supported'), (lambda: trainer(progress_bar='bars'), "'tqdm'"),
                        (lambda: trainer().save_model('x', only_state_dict=False), 'model_save_fn'), (lambda: trainer().load_model('x', only_state_dict=False), 'model_load_fn')]:
        with pytest.raises(ValueError, match=match): wrong()
    with pytest.raises(TypeError, match='such as `Event.on_train_begin'): nlp.Trainer.on('on_train_begin')

# Lightning

def test_lightning_counts_validation_batches_only_with_a_validation_set():
    def num_val_batches(*dls):
        learn = Learner(dls, nn.Linear(1, 1), F.mse_loss)
        return view_of(lightning.LightningTrainer, learn).num_val_batches
    assert num_val_batches([1, 2], [3]) == [1]
    assert num_val_batches([1, 2], None) == []

# Composer

def learner(cbs=(), **kwargs):
    x = torch.randn(16, 4, generator=torch.Generator().manual_seed(0))
    data = [*zip(x.split(4), x.sum(1, keepdim=True).split(4))]
    torch.manual_seed(0)
    learn = Learner(DataLoaders(data, data[:2]), nn.Linear(4, 1), nn.MSELoss(), torch.optim.SGD, lr=.1, cbs=cbs, **kwargs)
    return learn.remove_cb(learn.progress)

def fit(learn, n=1, **kwargs):
    with learn.no_logging(): learn.fit(n, **kwargs)
    return learn

def test_composer_takes_any_argument():
    class Both(composer.Callback, dict):
        def __init__(self): super().__init__(1, a=2)
    Both(), composer.Callback(1, 2, name=3)

def test_composer_calls_only_an_overridden_run_event():
    seen = []
    class All(composer.Callback):
        def run_event(self, event, state, logger):
            seen.append(event)
            if event==composer.Event.BATCH_END: self.batch_end(state, logger)
        def batch_end(self, state, logger): seen.append('called')
        def epoch_start(self, state, logger): raise AssertionError('run_event was overridden')
    fit(learner(All()))
    assert seen.count('called')==4 and seen.count(composer.Event.EPOCH_START)==1 and seen[-1]==composer.Event.FIT_END

def test_composer_calls_before_and_after_a_checkpoint_is_loaded(tmp_path):
    seen = []
    class Says(composer.Callback):
        def before_load(self, state, logger): seen.append(('before', state.timestamp.batch.value))
        def after_load(self, state, logger): seen.append(('after', state.timestamp.batch.value))
    class Stops(composer.Callback):
        def batch_end(self, state, logger):
            if state.timestamp.batch==3 and not seen: raise KeyboardInterrupt
    for resume in (None, 'auto'):
        learn = learner([Says(), Stops()], path=tmp_path)
        try: fit(learn, cbs=CheckpointCallback('1ba', folder=tmp_path/'c'), resume=resume)
        except KeyboardInterrupt: pass
    assert seen==[('before', 0), ('after', 2)]

def test_composer_closes_after_an_exception():
    calls = []
    class Closes(composer.Callback):
        def batch_end(self, state, logger): raise ValueError
        def close(self, state, logger): calls.append('close')
        def post_close(self): calls.append('post_close')
    with pytest.raises(ValueError): fit(learner(Closes()))
    assert calls==['close','post_close']

# pytorch-accelerated

def pa_data(n): return TensorDataset(torch.randn(n, 4, generator=torch.Generator().manual_seed(n)), torch.arange(n)%2)

def pa_train(cbs, cls=pa.Trainer, epochs=2, lr=.1, loss=None, trainer=None):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    t = trainer or cls(model, loss or nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr), [*cbs])
    if trainer is None: t.learn.remove_cb(t.learn.progress)
    with t.learn.no_logging(): t.train(pa_data(16), epochs, pa_data(8), per_device_batch_size=4)
    return t

def test_pa_calls_in_order():
    class Writes(pa.TrainerCallback):
        def on_eval_epoch_end(self, trainer, **kwargs): trainer.run_history.update_metric('mine', trainer.run_history.current_epoch)
    class Reads(pa.TrainerCallback):
        read:list = []
        def on_eval_epoch_end(self, trainer, **kwargs): self.read.append(trainer.run_history.get_latest_metric('mine'))
    reads = Reads()
    pa_train([Writes(), reads])
    assert reads.read==[1,2]

NAMES = 'training_run_start train_epoch_start train_epoch_end eval_epoch_start eval_epoch_end training_run_end'.split()
def test_pa_calls_a_callback_after_the_method_of_that_name():
    seen = []
    methods = {k:lambda self, k=k: seen.append(k) for k in NAMES}
    events = {f'on_{k}':lambda self, trainer, k=k, **kwargs: seen.append(f'on_{k}') for k in NAMES}
    cls,cb = type('Mine', (pa.Trainer,), methods),type('Its', (pa.TrainerCallback,), events)()
    pa_train([cb], cls, 1)
    assert seen==[o for k in NAMES for o in (k, f'on_{k}')]

@pytest.mark.parametrize('training', [True, False])
def test_pa_ends_at_a_nan(training):
    class Loss(nn.CrossEntropyLoss):
        def forward(self, p, y): return super().forward(p, y)*(float('nan') if p.requires_grad==training else 1.)
    t = pa_train([pa.TerminateOnNaNCallback()], loss=Loss(), epochs=3)
    assert len(t.learn.recorder.history)<=1

def test_pa_logs_what_was_updated(capsys):
    calls = []
    class Logs(pa.LogMetricsCallback):
        def log_metrics(self, trainer, metrics):
            calls.append(sorted(metrics))
            super().log_metrics(trainer, metrics)
    class Adds(pa.TrainerCallback):
        def on_train_epoch_end(self, trainer, **kwargs): trainer.run_history.update_metric('train_mine', 1.)
        def on_eval_epoch_end(self, trainer, **kwargs): trainer.run_history.update_metric('mine', 2.)
    pa_train([Adds(), Logs()], epochs=1)
    assert calls==[['train_loss_epoch','train_mine'], ['eval_loss_epoch','mine']]

def test_pa_prints_progress():
    calls = []
    class Says(pa.Trainer):
        def print(self, *args): calls.append(' '.join(map(str, args)))
    pa_train([pa.PrintProgressCallback()], Says)
    assert len(calls)==4 and [o for o in calls if 'epoch' in o]==calls[1:3]

def test_pa_saves_the_best_at_the_given_path(tmp_path):
    weights = []
    class Notes(pa.TrainerCallback):
        def on_eval_epoch_end(self, trainer, **kwargs):
            weights.append(trainer.model.weight.detach().clone())
            trainer.run_history.update_metric('mine', [1., 3., 2.][trainer.run_history.current_epoch-1])
    t = pa_train([Notes(), pa.SaveBestModelCallback(str(tmp_path/'best.pt'), 'mine', greater_is_better=True)], epochs=3)
    assert [p.name for p in tmp_path.iterdir()]==['best.pt'] and torch.equal(t.model.weight, weights[1])

class Given(pa.TrainerCallback):
    "Writes one of `values` into the run history in each epoch"
    def __init__(self, values): self.values = iter(values)
    def on_eval_epoch_end(self, trainer, **kwargs): trainer.run_history.update_metric('mine', next(self.values))

@pytest.mark.parametrize('values,kwargs,epochs', [([3., 2., 2., 1., 0.], dict(), 3), ([3., 2., 2., 2., 2.], dict(early_stopping_patience=2), 4),
                                                  ([3., 2.9, 0., 0., 0.], dict(early_stopping_threshold=.5), 2)])
def test_pa_stops_early(values, kwargs, epochs):
    t = pa_train([Given(values), pa.EarlyStoppingCallback(watch_metric='mine', **kwargs)], epochs=5)
    assert len(t.learn.recorder.history)==epochs

@pytest.mark.parametrize('greater,reset,epochs', [(True,True,[2,2]), (True,False,[2,1]), (False,True,[4,2]), (False,False,[4,1])])
def test_pa_monitors_the_given_metric(greater, reset, epochs):
    "Falling values are worse if greater is better; a second run compares with the first's best unless it resets"
    stop = pa.EarlyStoppingCallback(watch_metric='mine', greater_is_better=greater, reset_on_train=reset)
    first,second = ([3., 2.] if greater else [3., 2., 1., .5]),([2., 1.] if greater else [2., 3.])
    t = pa_train([Given(first+second), stop], epochs=len(first))
    n = [len(t.learn.recorder.history)]
    pa_train([], trainer=t, epochs=4)
    assert [*n, len(t.learn.recorder.history)]==epochs

def test_pa_moves_modules():
    moved = []
    class Notes(nn.Linear):
        def to(self, *args, **kwargs):
            moved.append((self, *args))
            return super().to(*args, **kwargs)
    class Moves(pa.Trainer):
        def training_run_start(self): self.extra = Notes(1, 1)
    t = pa_train([pa.MoveModulesToDeviceCallback()], Moves, 1)
    assert moved==[(t.extra, t.device)]

def test_pa_passes_what_the_loss_method_returned():
    seen = []
    class Own(pa.Trainer):
        def calculate_train_batch_loss(self, batch): return dict(super().calculate_train_batch_loss(batch), mine='train')
        def calculate_eval_batch_loss(self, batch): return dict(super().calculate_eval_batch_loss(batch), mine='eval')
    class Sees(pa.TrainerCallback):
        def on_train_step_end(self, trainer, batch, batch_output, **kwargs): seen.append((len(batch[0]), batch_output['mine'], batch_output['batch_size']))
        def on_eval_step_end(self, trainer, batch, batch_output, **kwargs): seen.append((len(batch[0]), batch_output['mine'], batch_output['batch_size']))
    pa_train([Sees()], Own, 1)
    assert seen==[(4,'train',4)]*4+[(4,'eval',4)]*2

def test_pa_stops_at_its_own_exception():
    seen = []
    class Stops(pa.TrainerCallback):
        def on_train_step_end(self, trainer, **kwargs): raise pa.StopTrainingError('enough')
        def on_stop_training_error(self, trainer, **kwargs): seen.append('stopped')
        def on_training_run_end(self, trainer, **kwargs): seen.append('end')
    t = pa_train([Stops()])
    assert seen==['stopped','end'] and t.learn.train_iter==0

def test_pa_handler():
    seen = []
    class A(pa.TrainerCallback):
        def mine(self, x, y=0): seen.append((type(self).__name__, x, y))
    class B(A): pass
    class C(A): pass
    handler = pa.CallbackHandler([B()])
    handler.add_callback(A())
    handler.add_callbacks([C()])
    handler.call_event('mine', 1, y=2)
    assert seen==[('B',1,2),('A',1,2),('C',1,2)]

def test_pa_callbacks_that_are_added_later(tmp_path):
    "Also the page's classes that are learnkit's own callbacks: they used to be wrapped, and had no effect"
    t = pa_train([], epochs=1)
    handler = t.callback_handler
    handler.add_callback(Given([3., 1., 2.]))
    handler.add_callbacks([pa.SaveBestModelCallback(str(tmp_path/'best.pt'), 'mine'), pa.EarlyStoppingCallback(watch_metric='mine'), pa.MoveModulesToDeviceCallback])
    assert handler.callback_list==['Given','SaveBestModel','EarlyStopping','MoveModulesToDeviceCallback']
    with pytest.raises(ValueError, match='already a SaveBestModel'): handler.add_callback(pa.SaveBestModelCallback())
    with pytest.raises(TypeError, match='not a callback'): handler.add_callback([])
    pa_train([], trainer=t, epochs=4)
    assert [p.name for p in tmp_path.iterdir()]==['best.pt'] and len(t.learn.recorder.history)==3
    handler.clear_callbacks()
    assert handler.callbacks==[]
    pa_train([], trainer=t, epochs=4)
    assert len(t.learn.recorder.history)==4

def test_pa_shows_a_bar_for_training_and_for_validation(monkeypatch):
    shown = []
    class Notes(displays['terminal']):
        def begin(self, label, n):
            shown.append((label, n))
            super().begin(label, n)
    for kind in displays: monkeypatch.setitem(displays, kind, Notes)
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    t = pa.Trainer(model, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), .1), [pa.ProgressBarCallback()])
    t.train(pa_data(16), 2, pa_data(8), per_device_batch_size=4)
    assert shown==[(f'Epoch {i}/2 {phase}', n) for i in (1,2) for phase,n in (('train',4),('valid',2))]

def test_pa_moves_modules_for_an_evaluation_too():
    moved = []
    class Notes(nn.Linear):
        def to(self, *args, **kwargs):
            moved.append(self)
            return super().to(*args, **kwargs)
    t = pa_train([pa.MoveModulesToDeviceCallback()], epochs=1)
    t.extra = Notes(1, 1)
    with t.learn.no_logging(): t.evaluate(pa_data(8), 4)
    assert moved==[t.extra]

def test_pa_passes_its_trainer_to_each_callback():
    seen = []
    events = {f'on_{k}':lambda self, trainer, **kwargs: seen.append(trainer) for k in [*NAMES, 'init_end','train_step_start','train_step_end','eval_step_start','eval_step_end']}
    t = pa_train([type('Its', (pa.TrainerCallback,), events)()], epochs=1)
    assert len(seen)==1+6+2*4+2*2 and all(o is t for o in seen)
