"""`cli` with jsonargparse: settings from the command line, a file and a dictionary, what its Learners save, and errors;
with the real Optuna and Ray if they are installed."""
import os, sys, threading, warnings
from dataclasses import dataclass
from functools import partial
from typing import Literal
import pytest, torch

pytest.importorskip('jsonargparse')
import learnkit.all as lk
from learnkit.all import Callback, CheckpointCallback, EMACallback, JsonLogger, Learner, OptunaPruning, SaveConfig, cli, nn
from learnkit.contrib import cli as module
from toys import equal

torch.set_num_threads(1)
x = torch.randn(24, 4, generator=torch.Generator().manual_seed(0))
data = [*zip(x.split(8), x.sum(1, keepdim=True).split(8))]

@dataclass
class Group:
    width:int = 5   # units

def main(
    lr:float=.1,               # learning rate
    epochs:int=1,              # how many
    act:Literal['relu','gelu']='relu',
    ema:EMACallback|None=None, # averages
    cbs:list[Callback]=[],     # more
    net:Group=Group(),
    note:str='',
    api_key:str='',
    path:str='.',
    resume:str|None=None,
):
    "Train a small net"
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, net.width), nn.ReLU() if act=='relu' else nn.GELU(), nn.Linear(net.width, 1))
    learn = Learner((data, data), model, nn.MSELoss(), torch.optim.SGD, cbs=[*([ema] if ema else []), *cbs], path=path)
    with learn.no_bar(), learn.no_logging(): learn.fit(epochs, lr, resume=resume)
    return learn

@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch): monkeypatch.chdir(tmp_path); return tmp_path

def weights(learn): return learn.model.state_dict()

def test_all_forms_of_settings_train_equal_weights(folder):
    "Command-line arguments, nested and dotted dictionaries, the file that a run wrote, and a call of the function"
    learn = cli(main, '--lr .05 --ema.decay .9 --net.width 3 --act gelu --cbs+=GradientClip --cbs.max_norm .5'.split())
    (folder/'run.yaml').rename('that.yaml')
    deep = dict(lr=.05, ema=dict(decay=.9), net=dict(width=3), act='gelu', cbs=[dict(class_path='GradientClip', init_args=dict(max_norm=.5))])
    dotted = {**deep, 'ema.decay':.9, 'net.width':3}
    del dotted['ema'], dotted['net']
    others = [cli(main, deep), cli(main, dotted), cli(main, 'that.yaml'), cli(main, folder/'that.yaml'), cli(main, ['--config','that.yaml'])]
    assert (folder/'run.yaml').read_text()==(folder/'that.yaml').read_text()
    others.append(main(.05, act='gelu', ema=EMACallback(.9), cbs=[lk.GradientClip(.5)], net=Group(3)))
    assert all(equal(weights(learn), weights(o)) for o in others)
    assert [any(isinstance(cb, SaveConfig) for cb in o.cbs) for o in others]==[True]*5+[False] and not Learner._on_create

def test_command_line_settings_and_errors(monkeypatch, capsys):
    monkeypatch.setattr(sys, 'argv', ['train.py', '--lr', '.01'])
    assert cli(main).opt.hypers[0]['lr']==.01
    for words,expected in {'--eposh 3':'there is no `eposh`: did you mean `epochs`?', '--epoch 3':'did you mean `epochs`?', '--ema.decy 1':'in EMACallback there is no `decy`: did you mean `decay`?',
                       '--net.widht 1':'there is no `net.widht`: did you mean `net.width`?', '--act tanh':'tanh', '--epochs many':'many', '--config none.yaml':'none.yaml'}.items():
        monkeypatch.setattr(sys, 'argv', ['train.py', *words.split()])
        with pytest.raises(SystemExit) as e: cli(main)
        assert e.value.code==2 and expected in capsys.readouterr().err
        with pytest.raises(ValueError) as e: cli(main, words.split())
        assert expected in str(e.value)

@pytest.mark.parametrize('wrong,expected', [(dict(epoch=1), 'did you mean `epochs`?'), (dict(ema=dict(decy=1)), 'in EMACallback there is no `decy`'), ({'ema.decy':1}, 'did you mean `decay`?'),
                                        (dict(lr='fast'), 'fast'), (dict(cbs=['NoCallback']), 'NoCallback'), (dict(net=dict(widht=2)), 'widht')])
def test_wrong_settings_in_a_dictionary_or_file_raise(wrong, expected):
    import yaml
    with open('wrong.yaml', 'w') as f: yaml.safe_dump(wrong, f)
    for args in wrong, 'wrong.yaml':
        with pytest.raises(ValueError) as e: cli(main, args)
        assert expected in str(e.value)

def test_help_has_the_comments(capsys):
    for words,expected in {'--help':['learning rate (type: float, default: 0.1)','units (type: int','Train a small net'], '--ema.help':['the fraction of the average that an update keeps']}.items():
        with pytest.raises(SystemExit) as e: cli(main, [words])
        text = ' '.join(capsys.readouterr().out.split())
        assert e.value.code==0 and all(s in text for s in expected) and 'known subclasses' not in text

callbacks = [c for c in vars(lk).values() if isinstance(c, type) and issubclass(c, Callback)]
def test_all_callbacks_have_settings():
    parser = module._make_parser_class()(exit_on_error=False)
    for i,c in enumerate(callbacks): parser.add_class_arguments(c, f'c{i}')
    assert len(callbacks)>90 and len(parser.format_help())>10_000

def test_loggers_and_checkpoints_save_the_settings():
    learn = cli(main, {'ema.decay':.5, 'note':'mine', 'cbs':[dict(class_path='JsonLogger', init_args=dict(fname='log.jsonl')), 'CheckpointCallback']})
    hparams = learn.hparams()
    assert [hparams[k] for k in ('lr','ema','ema.decay','net.width','note')]==[.1,'EMACallback',.5,5,'mine']
    with open('log.jsonl') as f: assert '"ema.decay": 0.5' in f.readline()
    state = torch.load(next(learn.checkpoint.folder.glob('*-final.pth')), weights_only=True)
    assert state['cbs']['save_config']['config']['note']=='mine'

def test_a_resumed_run_warns_of_changed_settings():
    def go(**kw): return cli(main, dict(cbs=['CheckpointCallback'], resume='auto', **kw))
    go(epochs=2, note='first')
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        go(epochs=2, note='first')
    with pytest.warns(UserWarning, match='note is second and was first') as warned: learn = go(epochs=3, note='second')
    assert len(learn.recorder.history)==3 and 'epochs is 3 and was 2' in ' '.join(str(w.message) for w in warned)
    with pytest.raises(ValueError, match='lr is .*0.2.* and was .*0.1'): go(epochs=3, note='second', lr=.2)

def test_secrets_are_written_nowhere(folder):
    learn = cli(main, dict(api_key='swordfish', note='https://me:pw@host/', cbs=['CheckpointCallback', dict(class_path='JsonLogger', init_args=dict(fname='log.jsonl'))]))
    assert learn.hparams()['api_key']=='***'
    files = [p for p in folder.rglob('*') if p.is_file()]
    assert len(files)>2 and not [p for p in files if b'swordfish' in p.read_bytes() or b'me:pw' in p.read_bytes()]
    given = ['--config','run.yaml','--api_key','swordfish']
    for name,words in dict(api_key=['--config','run.yaml','--note','mine'], note=given).items():
        with pytest.raises(ValueError, match=f'`{name}` is masked, because secrets are not saved'): cli(main, words)
    assert cli(main, [*given,'--note','https://me:pw@host/','--resume','auto']).recorder.history

def test_only_process_0_prints_and_writes(monkeypatch, capsys, folder):
    monkeypatch.setattr(module, 'rank_distrib', lambda: 1)
    cli(main, [])
    for words in ['--help'],['--print_config']:
        with pytest.raises(SystemExit): cli(main, words)
    monkeypatch.setattr(sys, 'argv', ['train.py', '--eposh'])
    with pytest.raises(SystemExit): cli(main)
    assert capsys.readouterr()==('','') and not (folder/'run.yaml').exists()

def test_threads_do_not_share_settings(request):
    "Calls of `cli` in two threads at once, as in a search with several jobs, use only their own settings"
    request.addfinalizer(lambda was=sys.getswitchinterval(): sys.setswitchinterval(was))
    sys.setswitchinterval(1e-5)
    for _ in range(8):
        res,both = {},threading.Barrier(2)
        def job(lr):
            both.wait()
            res[lr] = cli(main, dict(lr=lr, path=f'{lr}')).hparams()['lr']
        threads = [threading.Thread(target=job, args=(lr,)) for lr in (.1, .2)]
        for t in threads: t.start()
        for t in threads: t.join()
        assert res=={.1:.1, .2:.2} and not Learner._on_create

def test_an_error_leaves_no_state_behind():
    def fails(n:int=1): raise RuntimeError('no')
    with pytest.raises(RuntimeError): cli(fails, [])
    assert not Learner._on_create and module._current_config.get() is None

def test_without_jsonargparse_the_error_names_it(monkeypatch):
    module._make_parser_class.cache_clear()
    monkeypatch.setitem(sys.modules, 'jsonargparse', None)
    with pytest.raises(ImportError, match="needs jsonargparse: pip install '?jsonargparse.*extra `cli`"): cli(main, [])
    module._make_parser_class.cache_clear()

def test_cli_does_not_change_training():
    plain,kept = main(epochs=2), cli(main, ['--epochs','2'])
    assert equal(weights(plain), weights(kept)) and plain.recorder.smooth_loss.raw==kept.recorder.smooth_loss.raw

def test_optuna():
    optuna = pytest.importorskip('optuna')
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    def objective(trial):
        params = {'lr':trial.suggest_float('lr', 1e-3, .2, log=True), 'net.width':trial.suggest_int('net.width', 2, 8), 'ema.decay':trial.suggest_float('ema.decay', .5, .9)}
        learn = cli(partial(main, cbs=[OptunaPruning(trial)]), params)
        assert {k:learn.hparams()[k] for k in params}==params
        return learn.recorder.history.latest('valid_loss')
    study = optuna.create_study()
    study.optimize(objective, n_trials=3)
    assert cli(main, study.best_params).recorder.history.latest('valid_loss')==study.best_value

def ray_trial(config): cli(main, config)   # Ray accepts no Learner as a result

@pytest.mark.slow
def test_ray_tune(folder):
    ray,tune = pytest.importorskip('ray'),pytest.importorskip('ray.tune')
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False, runtime_env=dict(env_vars={'PYTHONPATH':os.pathsep.join(sys.path)}))
    space = dict(lr=tune.grid_search([.1, .01]), net=dict(width=tune.randint(2, 8)), cbs=['RayTuneReport'])
    try: res = tune.Tuner(ray_trial, param_space=space, run_config=tune.RunConfig(storage_path=str(folder), verbose=0)).fit()
    finally: ray.shutdown()
    assert not res.errors and sorted(r.config['lr'] for r in res)==[.01, .1] and all(r.metrics['valid_loss']>0 for r in res)
