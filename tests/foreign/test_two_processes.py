"""Callbacks of other libraries in two processes: they receive values of all processes and their own rank, and a stop
requested in one process ends the fit in both after the same batch. Their base classes replace the libraries' own, with
the same module name."""
from datetime import timedelta
import pytest, torch
from torch import distributed as dist, nn
from torch.utils.data import TensorDataset
from learnkit.all import DataLoaders, Learner, mae
from learnkit.contrib import composer, fastnlp, pytorch_accelerated as pa
from learnkit.loop.run import null_logger

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings('ignore')]

def _from(module, **methods):
    "Create a callback whose base class has the given module name"
    Base = type('TrainerCallback' if module=='transformers' else 'Callback', (), dict(__module__=module))
    return type('Theirs', (Base,), dict(methods, __module__='theirs'))()

def _keras(seen, me):
    def batch(self, i, logs=None): self.model.stop_training = self.model.stop_training or (me and self.model.optimizer.iterations>=4)
    def epoch(self, epoch, logs=None): seen.append(logs['val_loss'])
    def put(k): return lambda self, v: setattr(self, k, v)
    return _from('keras', on_train_batch_end=batch, on_epoch_end=epoch, set_params=put('params'), set_model=put('model'))

def _lightning(seen, me):
    def batch(self, trainer, pl_module, outputs, batch, i):
        assert (trainer.world_size, trainer.global_rank, trainer.is_global_zero)==(2, dist.get_rank(), dist.get_rank()==0)
        assert trainer.strategy.reduce_boolean_decision(me)==False and trainer.strategy.reduce_boolean_decision(me, all=False)==True
        if me and trainer.global_step>=4: trainer.should_stop = True
    def valid(self, trainer, pl_module): seen.append(trainer.callback_metrics['val_loss'].item())
    return _from('lightning', on_train_batch_end=batch, on_validation_end=valid)

def _transformers(seen, me):
    def step(self, args, state, control, **kwargs):
        assert (args.world_size, args.process_index, state.is_world_process_zero)==(2, dist.get_rank(), dist.get_rank()==0)
        if me and state.global_step>=4: control.should_training_stop = True
    def evaluate(self, args, state, control, metrics=None, **kwargs): seen.append(metrics['eval_loss'])
    return _from('transformers', on_step_end=step, on_evaluate=evaluate)

def _composer(seen, me):
    class Theirs(composer.Callback):
        def batch_end(self, state, logger): me and state.timestamp.batch>=4 and state.stop_training()
        def eval_end(self, state, logger): seen.append(state.eval_metric_values['valid_loss'])
    return Theirs()

def _fastnlp(seen, me):
    class Theirs(fastnlp.Callback):
        def on_train_batch_end(self, trainer): me and trainer.global_forward_batches>=4 and trainer.learn.stop('enough')
        def on_evaluate_end(self, trainer, results): seen.append(results['valid_loss#valid_loss'])
    return Theirs()

def _pytorch_accelerated(seen, me):
    class Theirs(pa.TrainerCallback):
        def on_train_step_end(self, trainer, batch, batch_output, **kwargs):
            assert trainer.run_config.num_processes==2 and trainer._accelerator.is_main_process==(dist.get_rank()==0)
            assert len(trainer.gather(batch[1]))==2*len(batch[1])
            if me and trainer.learn.train_iter>=3: trainer.learn.stop('enough')
        def on_eval_epoch_end(self, trainer, **kwargs): seen.append(trainer.run_history.get_latest_metric('eval_loss_epoch'))
    return Theirs()

def _gathered(o):
    res = [None]*2
    dist.all_gather_object(res, o)
    return res

def _trains(make, tmp_path):
    g = torch.Generator().manual_seed(3)
    x = torch.randn(48, 4, generator=g); y = x.sum(1, keepdim=True)
    torch.manual_seed(0)
    seen,me = [],dist.get_rank()==1
    dls = DataLoaders.from_dsets(TensorDataset(x, y), TensorDataset(x[:9]+1, y[:9]+4), bs=4, device='cpu')
    learn = Learner(dls, nn.Linear(4, 1), nn.MSELoss(), torch.optim.SGD, lr=.05, metrics=mae, cbs=make(seen, me), path=tmp_path)
    learn.logger = null_logger
    learn.remove_cb(learn.progress)
    with learn.distrib_ctx(): learn.fit(3)
    done,other = _gathered((learn.train_iter, learn.model.weight.tolist(), seen))
    assert done==other
    assert 3<learn.train_iter<=6 and seen==pytest.approx(learn.recorder.history['valid_loss']) and len(seen)==1   # the first epoch, of 6 batches

def _inside(rank, path, makes):
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'file://{path}/store', rank=rank, world_size=2, timeout=timedelta(seconds=60))
    try:
        for make in makes: _trains(make, path/make.__name__)
    finally: dist.destroy_process_group()

def test_one_process_requests_a_stop(tmp_path):
    "Tests all six adapters in the same two forked processes"
    makes = _keras, _lightning, _transformers, _composer, _fastnlp, _pytorch_accelerated
    torch.multiprocessing.start_processes(_inside, (tmp_path, makes), nprocs=2, start_method='fork')
