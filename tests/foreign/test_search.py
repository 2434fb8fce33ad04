"Searches with the real Optuna, which prunes, and Ray Tune, whose schedulers end trials; skipped if not installed."
import math, os, signal, sys, warnings
import pytest, torch

from learnkit.all import CheckpointCallback, OptunaPruning, RayTuneReport, ValidateEvery
from toys import at, learner

torch.set_num_threads(1)
RATES = [.05, .04, .06, 1e-6, .05, 1e-7, .03, 1e-6]   # three of them learn nothing

def train(lr, *cbs, n_epoch=4, **kw):
    learn = learner(8, 2, lr=lr, **kw)
    learn.remove_cb(learn.progress); learn.logger = lambda *args: None
    learn.fit(n_epoch, cbs=cbs)
    return learn

@pytest.fixture
def optuna():
    o = pytest.importorskip('optuna')
    o.logging.set_verbosity(o.logging.WARNING)
    return o

def study(optuna, cbs=lambda trial: (), direction='minimize', **kw):
    "Run a study that tries RATES in order"
    res = optuna.create_study(direction=direction, pruner=optuna.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=0), sampler=optuna.samplers.GridSampler({'i':[*range(len(RATES))]}, seed=0))
    def objective(trial):
        learn = train(RATES[trial.number], OptunaPruning(trial), *cbs(trial), **kw)
        return learn.recorder.history.latest('valid_loss')
    res.optimize(objective, n_trials=len(RATES))
    return res

def states(s): return [t.state.name for t in s.trials]

def test_optuna_prunes_trials_that_learn_nothing(optuna):
    s = study(optuna)
    assert [o=='PRUNED' for o in states(s)]==[False]*3 + [lr<.03 or o=='PRUNED' for lr,o in zip(RATES[3:], states(s)[3:])] and states(s)[3]==states(s)[5]==states(s)[7]=='PRUNED'
    for t in s.trials:
        if t.state.name=='COMPLETE': assert len(t.intermediate_values)==4 and t.intermediate_values[3]==t.value

def test_optuna_within_an_epoch(optuna):
    "One epoch with a validation every second batch reports four values"
    s = study(optuna, lambda trial: [ValidateEvery('2ba')], n_epoch=1)
    assert states(s)[3]=='PRUNED' and [*s.trials[0].intermediate_values]==[0,1,2,3]

def test_optuna_steps_continue_over_several_fits(optuna):
    def objective(trial):
        cb = OptunaPruning(trial)
        for _ in range(2): train(.05, cb, n_epoch=2)
        return 0.
    s = optuna.create_study()
    s.optimize(objective, n_trials=1)
    assert [*s.trials[0].intermediate_values]==[0,1,2,3]

def test_a_learner_works_after_its_trial_was_pruned(optuna, tmp_path):
    learns = []
    class Pruner(optuna.pruners.BasePruner):
        def prune(self, study, trial): return True
    def objective(trial):
        learn = learner(4, 1); learns.append(learn)
        learn.remove_cb(learn.progress)
        learn.fit(5, cbs=OptunaPruning(trial))
    s = optuna.create_study(pruner=Pruner())
    s.optimize(objective, n_trials=1)
    learn, = learns
    assert states(s)==['PRUNED'] and len(learn.recorder.history)==1
    learn.fit(1)
    assert learn.mode is None and math.isfinite(learn.validate()[0])

def test_wrong_direction_raises(optuna):
    with pytest.raises(ValueError, match=r"would maximize `valid_loss`.*create_study\(direction='minimize'\)"): study(optuna, direction='maximize')
    def two(trial): train(.05, OptunaPruning(trial)); return 0.,0.
    with pytest.raises(ValueError, match='several objectives'): optuna.create_study(directions=['minimize']*2).optimize(two, n_trials=1)

class Died(BaseException): "Stands for a killed process"
def die(cb): raise Died

def resumable(trial, folder, *cbs, **kw):
    "A fit of four epochs of two batches, with a checkpoint after each third batch"
    learn = learner(2, 2, lr=.05, path=folder, cbs=[CheckpointCallback('3ba'), OptunaPruning(trial), *cbs])
    learn.remove_cb(learn.progress); learn.logger = lambda *args: None
    learn.fit(4, **kw)

def test_a_resumed_trial_has_all_values(optuna, tmp_path):
    "It used to have only the values from step 2 on, so a pruner saw a different best value"
    ask = optuna.create_study().ask
    whole,killed,anew = ask(),ask(),ask()
    values = lambda trial: trial.study.trials[trial.number].intermediate_values
    resumable(whole, tmp_path/'whole')
    with pytest.raises(Died): resumable(killed, tmp_path/'cut', at('after_batch', die, lambda cb: cb.training and cb.train_iter==7))
    assert len(values(whole))==4 and values(killed)=={i:values(whole)[i] for i in range(3)}
    resumable(anew, tmp_path/'cut', resume='auto')
    assert values(anew)==values(whole)

def test_a_value_is_not_reported_twice(optuna, tmp_path):
    "A trial retried with `inherit_intermediate_values` already has its values: Optuna would warn of each"
    trial = optuna.create_study().ask()
    with pytest.raises(Died): resumable(trial, tmp_path, at('after_batch', die, lambda cb: cb.training and cb.train_iter==6))
    with warnings.catch_warnings():
        warnings.filterwarnings('error', 'The reported value is ignored')
        resumable(trial, tmp_path, resume='auto')
    assert [*trial.study.trials[0].intermediate_values]==[0,1,2,3]

def tune_one(config):
    torch.set_num_threads(1)
    train(config['lr'], RayTuneReport(), n_epoch=6)

def tune_killed(config):
    "Kill the first process of the trial in its fourth epoch"
    torch.set_num_threads(1)
    died = os.path.join(config['folder'], 'died')
    def kill(cb):
        if os.path.exists(died): return
        open(died, 'w').close()
        os.kill(os.getpid(), signal.SIGKILL)
    learn = learner(2, 2, lr=.05, path=config['folder'], cbs=[CheckpointCallback('3ba'), RayTuneReport(), at('after_batch', kill, lambda cb: cb.training and cb.train_iter==7)])
    learn.remove_cb(learn.progress); learn.logger = lambda *args: None
    learn.fit(6, resume='auto')

@pytest.fixture(scope='module')
def ray():
    ray = pytest.importorskip('ray'); pytest.importorskip('ray.tune')
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False,
             runtime_env=dict(env_vars={'PYTHONPATH':os.pathsep.join(sys.path)}))   # for trials to import this file
    yield ray
    ray.shutdown()

@pytest.mark.slow
def test_a_killed_trial_of_ray_continues(ray, tmp_path):
    "A restarted trial reports all rows, as Ray's schedulers count them from 1; rows before the checkpoint were missing"
    from ray import tune
    res = tune.Tuner(tune_killed, param_space=dict(folder=str(tmp_path)), run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0, failure_config=tune.FailureConfig(max_failures=1))).fit()
    assert not res.errors and (tmp_path/'died').exists()
    rows = res[0].metrics_dataframe
    assert [*rows.epoch]==[*rows.training_iteration-1] and [*rows.step]==[*2*(rows.epoch+1)] and [*rows.epoch][-6:]==[*range(6)]

@pytest.mark.slow
def test_asha_ends_trials(ray, tmp_path):
    "ASHA ends trials that learn nothing after the first rung; each row of the others arrives once, in order"
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler
    asha = ASHAScheduler(metric='valid_loss', mode='min', max_t=6, grace_period=1, reduction_factor=2)
    res = tune.Tuner(tune_one, param_space=dict(lr=tune.grid_search([.05, .04, 1e-7, 1e-7])), tune_config=tune.TuneConfig(scheduler=asha, max_concurrent_trials=1),
                     run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0)).fit()
    frames = {r.config['lr']:r.metrics_dataframe for r in res}
    assert not res.errors and len(frames[.05])==6 and len(frames[1e-7])<6
    assert [*frames[.05]['epoch']]==[*range(6)] and [*frames[.05]['step']]==[8,16,24,32,40,48]
    assert {'train_loss','valid_loss'} <= {*frames[.05].columns}
