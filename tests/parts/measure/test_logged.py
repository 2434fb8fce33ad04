"""`learn.log`: means by items, in both phases, from anywhere; in a resumed run; refused where nothing can be averaged"""
import pytest, torch
from torch import nn
from torch.nn import functional as F

from learnkit.all import (Callback, CancelBatch, CheckpointCallback, DataLoaders, EarlyStoppingCallback, GradientAccumulation,
                          Learner, Logged, MicroBatch, Recorder, ReduceLROnPlateau, ReplayOnOOM, SkipNaN, VirtualShards, log_value)
from toys import few

pytestmark = few(10_000, 1)   # of the slow cases

x = torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
data = [(x[i:i+8], x[i:i+8].sum(1, keepdim=True)) for i in (0,8,16)]   # 8, 8 and 4 items

class First(Callback):
    "Logs the mean of the first input"
    def after_pred(self): self.log('first', self.xb[0][:,0].mean())

def learner(*cbs, metrics=Logged('first'), model=None, loss=F.mse_loss, **kw):
    torch.manual_seed(0)
    return Learner(DataLoaders(data, data), model or nn.Linear(4,1), loss, lr=.01, metrics=metrics, cbs=[First, *cbs], **kw)

mean = pytest.approx(x[:,0].mean().item(), abs=1e-6)

def test_a_mean_by_items_in_both_phases():
    learn = learner(metrics=[Logged('first'), F.l1_loss])
    learn.fit(2)
    assert learn.recorder.history.names==['epoch','train_loss','train_first','valid_loss','valid_first','l1_loss','time']
    for row in learn.recorder.history: assert row['train_first']==mean and row['valid_first']==mean
    assert learn.validate()[1]==mean

@pytest.mark.parametrize('cb', (GradientAccumulation(16), Recorder(train_metrics=True), MicroBatch(3), MicroBatch(n=2)))
def test_with(cb):
    learn = learner(cb)
    learn.fit(1)
    assert learn.recorder.history[-1]['train_first']==mean

def test_a_weight_of_ones_own():
    learn = learner(Callback(after_pred=lambda cb: cb.log('own', cb.learn.iter, n=cb.learn.iter)), metrics=[Logged('first'), Logged('own')])
    learn.fit(1)
    assert learn.recorder.history[-1]['train_own']==pytest.approx((0*0 + 1*1 + 2*2)/3)

class Logs(nn.Linear):
    def forward(self, x): log_value('first', x[:,0].mean()); return super().forward(x)

def test_a_model_logs_and_works_alone():
    learn = learner(model=Logs(4,1))
    learn.remove_cb(First)
    learn.fit(1)
    assert learn.recorder.history[-1]['valid_first']==mean
    learn.get_preds(); learn.summary(); learn.model(x)

def test_nothing_of_a_prediction_or_validation_within_gets_in():
    def look(cb):
        if cb.learn.training and cb.learn.iter==1: cb.learn.get_preds(dl=data[:1]); cb.learn.validate(dl=data[:1])
    learn = learner(Callback(after_batch=look))
    learn.fit(1)
    assert learn.recorder.history[-1]['train_first']==mean and learn.recorder.history[-1]['valid_first']==mean

def once(f):
    "A handler that calls `f` in the second batch of training, once"
    done = []
    def handler(cb):
        if cb.learn.training and cb.learn.iter==1 and not done: done.append(1); f()
    return handler

def test_what_was_logged_counts_also_if_the_batch_is_cancelled():
    def cancel(): raise CancelBatch
    for event in ('before_loss','before_backward','before_step'):
        learn = learner(Callback(**{event:once(cancel)}))
        learn.fit(1)
        assert learn.recorder.history[-1]['train_first']==mean

def test_what_is_logged_in_a_batch_that_is_done_again_counts_once(recwarn):
    def fail(): raise torch.OutOfMemoryError('CUDA out of memory (not really)')
    learn = learner(ReplayOnOOM(), Callback(before_backward=once(fail)))
    learn.first.n,learn.first.after_pred = 0,lambda: log_many(learn.first)
    learn.fit(1)
    assert learn.replay_on_oom.size==4 and learn.recorder.history[-1]['train_first']==mean
def log_many(cb):
    for _ in range(700): First.after_pred(cb)   # more than are held before they are packed

@pytest.mark.parametrize('value', (float('nan'), float('inf'), -float('inf'), torch.tensor(float('nan'))))
def test_what_is_not_finite_is_reported(value):
    learn = learner(Callback(after_pred=lambda cb: cb.log('v', value if cb.learn.iter==1 else 1.)), SkipNaN(), metrics=[Logged('first'), Logged('v')])
    learn.fit(1)
    row = learn.recorder.history[-1]
    assert row['train_first']==mean and row['train_v']==pytest.approx(float(value), nan_ok=True)==pytest.approx(row['valid_v'], nan_ok=True)

def test_no_graph_is_kept():
    import gc, weakref
    refs,alive = [],[]
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x): ctx.saved = nn.Identity(); refs.append(weakref.ref(ctx.saved)); return 2*x
        @staticmethod
        def backward(ctx, g): return 2*g
    def look(cb): gc.collect(); alive.append(sum(r() is not None for r in refs))
    learner(Callback(after_pred=lambda cb: cb.log('first', Twice.apply(cb.learn.pred).mean())), Callback(after_train=look)).fit(1)
    assert len(refs)==6 and alive==[0]

def test_a_weight_that_is_none_raises():
    for n in (-1, float('nan'), float('inf')):
        with pytest.raises(ValueError, match='weight of `first`'): learner(Callback(after_pred=lambda cb: cb.log('first', 1., n=n))).fit(1)
    learn = learner(Callback(after_pred=lambda cb: cb.log('none', 1., n=0)), metrics=[Logged('first'), Logged('none')])
    learn.fit(1)
    assert learn.recorder.history[-1]['train_none'] is None

def test_shards_log_the_mean_of_all():
    "Values of shards by their items, also those of a loss; what is logged once for a batch counts all its items"
    class Once(Callback):
        def after_step(self): self.log('once', self.learn.train_iter)
    def parts(pred, y): log_value('said', pred.mean()); return dict(a=F.mse_loss(pred, y), b=pred.mean())
    for cb in None,VirtualShards(2):
        learn = learner(Once, *([cb] if cb else []), loss=parts, metrics=[*map(Logged, ('first','once','said','a','b'))])
        learn.fit(1, lr=0.)
        row,pred = learn.recorder.history[0],learn.model(x)
        assert row['train_first']==mean and row['train_said']==row['train_b']==pytest.approx(pred.mean().item(), rel=1e-5)
        assert row['train_a']==pytest.approx(F.mse_loss(pred, x.sum(1, keepdim=True)).item(), rel=1e-5)
        assert row['train_once']==pytest.approx((0*16 + 1*4)/20 if cb else (0*8 + 1*8 + 2*4)/20)
        assert row['valid_first']==mean

@pytest.mark.slow
def test_a_compiled_model_logs_each_time(recwarn):
    learn = learner(model=Logs(4,1))
    learn.remove_cb(First)
    learn.model = torch.compile(learn.model, backend='eager')
    learn.fit(4)
    row = learn.recorder.history[-1]
    assert row['train_first']==mean and row['valid_first']==mean and not [w for w in recwarn if 'get_ident' in str(w.message)]
    counted = torch._dynamo.utils.counters['frames']['total']
    learn.fit(4)
    assert torch._dynamo.utils.counters['frames']['total']==counted   # nothing is compiled anew

def test_a_column_without_a_value_is_reported_by_what_watches_it():
    class InTraining(First): run_valid = False
    for cb in EarlyStoppingCallback('valid_first', comp='min'),ReduceLROnPlateau('valid_first', comp='min'):
        learn = learner(cb, InTraining)
        learn.remove_cb(learn.first)
        with pytest.warns(UserWarning, match=f"{type(cb).__name__} had nothing to compare.*'valid_first'"): learn.fit(2)
    with pytest.raises(ValueError, match="no column 'first'.*did you mean `valid_first`"): learner(EarlyStoppingCallback('first')).fit(1)

def test_it_can_be_watched():
    learn = learner(EarlyStoppingCallback('valid_first', comp='min', patience=1))
    learn.fit(5)
    assert len(learn.recorder.history)==2

def test_a_resumed_epoch_keeps_its_mean(tmp_path):
    class Stop(Exception): pass
    def stop(cb):
        if cb.learn.training and cb.learn.train_iter==5: raise Stop
    def run(*cbs, **kw):
        learn = learner(CheckpointCallback('1ba'), *cbs, path=tmp_path)
        learn.fit(2, **kw)
        return learn
    with pytest.raises(Stop): run(Callback(before_batch=stop))
    assert run(resume='auto').recorder.history[-1]['train_first']==mean

def test_it_raises_where_there_is_no_mean():
    learn = learner()
    with pytest.raises(RuntimeError, match='outside of a phase'): learn.first.log('first', 1.)
    for ev in ('before_fit','before_epoch','before_train','before_validate','after_epoch','after_fit'):
        with pytest.raises(RuntimeError, match='outside of a phase'): learner(Callback(**{ev:lambda cb: cb.log('first', 1.)})).fit(1)
    with pytest.raises(ValueError, match=r"metrics=Logged\('first'\)"): learner(metrics=None).fit(1)
    with pytest.raises(ValueError, match='did you mean `firsts`'): learner(metrics=Logged('firsts')).fit(1)
    with pytest.raises(ValueError, match="two columns.*'train_loss'"): learner(metrics=Logged('loss')).fit(1)
    with pytest.raises(ValueError, match='one number'): learner(Callback(after_pred=lambda cb: cb.log('first', cb.learn.pred))).fit(1)

class Worker(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): log_value('first', 1.); return x[i],x[i,:1]

def test_a_worker_is_notified():
    learn = Learner(DataLoaders.from_dsets(Worker(), bs=2, num_workers=1), nn.Linear(4,1), F.mse_loss, metrics=Logged('first'))
    with pytest.raises(RuntimeError, match='in a worker'): learn.fit(1)

# two processes

class LogsAll(First):
    "Logs where it is, in the model and in the loss"
    def after_loss(self): self.log('last', self.pred.detach().mean())
def own_loss(pred, targ): log_value('loss_says', targ.mean()); return F.mse_loss(pred, targ)

def _logs_in_two(rank, world, path):
    torch.set_num_threads(1)
    torch.distributed.init_process_group('gloo', init_method=f'file://{path}', rank=rank, world_size=world)
    train,valid = (torch.utils.data.TensorDataset(x[:n], x[:n].sum(1, keepdim=True)) for n in (16,9))   # of 9, one has 5
    names = 'first','last','loss_says'
    torch.manual_seed(0)
    learn = Learner(DataLoaders.from_dsets(train, valid, bs=4), nn.Linear(4,1), own_loss, torch.optim.SGD, lr=0., metrics=[*map(Logged, names)], cbs=LogsAll)
    learn.logger = lambda row: None
    learn.fit(2)
    def means(n): return pytest.approx([t.mean().item() for t in (x[:n,0], learn.model(x[:n]), x[:n].sum(1))], rel=1e-4)
    for row in learn.recorder.history:
        for phase,n in ('train',16),('valid',9): assert [row[f'{phase}_{k}'] for k in names]==means(n), phase
    assert [*learn.validate()][1:]==means(9)
    torch.distributed.destroy_process_group()

def test_two_processes_log_the_mean_of_all_items(tmp_path):
    torch.multiprocessing.start_processes(_logs_in_two, (2, tmp_path/'store'), nprocs=2, start_method='fork')

class Replicas(nn.DataParallel):
    "Calls the model in a thread of its own, as with several devices"
    def forward(self, *xs):
        import threading
        res = []
        def work():
            try: res.append(self.module(*xs))
            except Exception as e: res.append(e)
        t = threading.Thread(target=work)
        t.start(); t.join()
        if isinstance(res[0], Exception): raise res[0]
        return res[0]

def test_what_a_replica_logs_is_not_lost_silently():
    learn = learner(model=Replicas(Logs(4,1)))
    learn.remove_cb(First)
    with pytest.raises(RuntimeError, match='in a thread of `nn.DataParallel`'): learn.fit(1)
    learn.model(x)   # without a run it does nothing
