"Searches with the real libraries: Optuna prunes, Ray Tune's schedulers end trials. What is not installed is skipped."
import math, os, sys
import pytest, torch

from learnkit.all import OptunaPruning, RayTuneReport, ValidateEvery
from toys import learner

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
    "A search over RATES, one after the other"
    res = optuna.create_study(direction=direction, pruner=optuna.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=0), sampler=optuna.samplers.GridSampler({'i':[*range(len(RATES))]}, seed=0))
    def objective(trial):
        learn = train(RATES[trial.number], OptunaPruning(trial), *cbs(trial), **kw)
        return learn.recorder.history.latest('valid_loss')
    res.optimize(objective, n_trials=len(RATES))
    return res

def states(s): return [t.state.name for t in s.trials]

def test_optuna_prunes_what_learns_nothing(optuna):
    s = study(optuna)
    assert [o=='PRUNED' for o in states(s)]==[False]*3 + [lr<.03 or o=='PRUNED' for lr,o in zip(RATES[3:], states(s)[3:])] and states(s)[3]==states(s)[5]==states(s)[7]=='PRUNED'
    for t in s.trials:
        if t.state.name=='COMPLETE': assert len(t.intermediate_values)==4 and t.intermediate_values[3]==t.value

def test_optuna_within_an_epoch(optuna):
    "One epoch, validated every second batch, is four values"
    s = study(optuna, lambda trial: [ValidateEvery('2ba')], n_epoch=1)
    assert states(s)[3]=='PRUNED' and [*s.trials[0].intermediate_values]==[0,1,2,3]

def test_optuna_counts_on_over_fits(optuna):
    def objective(trial):
        cb = OptunaPruning(trial)
        for _ in range(2): train(.05, cb, n_epoch=2)
        return 0.
    s = optuna.create_study()
    s.optimize(objective, n_trials=1)
    assert [*s.trials[0].intermediate_values]==[0,1,2,3]

def test_a_pruned_trial_is_no_broken_learner(optuna, tmp_path):
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

def test_wrong_direction_is_refused(optuna):
    with pytest.raises(ValueError, match=r"would maximize `valid_loss`.*create_study\(direction='minimize'\)"): study(optuna, direction='maximize')
    def two(trial): train(.05, OptunaPruning(trial)); return 0.,0.
    with pytest.raises(ValueError, match='several objectives'): optuna.create_study(directions=['minimize']*2).optimize(two, n_trials=1)

def tune_one(config):
    torch.set_num_threads(1)
    train(config['lr'], RayTuneReport(), n_epoch=6)

@pytest.mark.slow
def test_asha_ends_trials(tmp_path):
    "Half of the trials learn nothing: ASHA ends some of them after the first rung; each row has arrived once, in order"
    ray = pytest.importorskip('ray'); tune = pytest.importorskip('ray.tune')
    from ray.tune.schedulers import ASHAScheduler
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False,
             runtime_env=dict(env_vars={'PYTHONPATH':os.pathsep.join(sys.path)}))   # where a trial's process finds this file
    try:
        asha = ASHAScheduler(metric='valid_loss', mode='min', max_t=6, grace_period=1, reduction_factor=2)
        res = tune.Tuner(tune_one, param_space=dict(lr=tune.grid_search([.05, .04, 1e-7, 1e-7])), tune_config=tune.TuneConfig(scheduler=asha, max_concurrent_trials=1),
                         run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0)).fit()
        frames = {r.config['lr']:r.metrics_dataframe for r in res}
    finally: ray.shutdown()
    assert not res.errors and len(frames[.05])==6 and len(frames[1e-7])<6
    assert [*frames[.05]['epoch']]==[*range(6)] and [*frames[.05]['step']]==[8,16,24,32,40,48]
    assert {'train_loss','valid_loss'} <= {*frames[.05].columns}
