"Composer's callbacks: replaced batches, closing, the state that they read, and timestamps of a resumed run"
import pytest, torch
from torch import nn
from learnkit.all import CheckpointCallback, DataLoaders, Learner, accuracy
from learnkit.contrib import composer

class Sums(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear,self.seen = nn.Linear(4, 3),[]
    def forward(self, x):
        self.seen.append(x.sum().item())
        return self.linear(x)

def learner(cbs, path='.'):
    g = torch.Generator().manual_seed(0)
    x,y = torch.randn(20, 4, generator=g),torch.arange(20)%3
    dls = DataLoaders([*zip(x.split(8), y.split(8))], [(x,y)])
    learn = Learner(dls, Sums(), nn.CrossEntropyLoss(), torch.optim.SGD, lr=.1, metrics=accuracy, cbs=cbs, path=path)
    return learn.remove_cb(learn.progress)

def fit(learn, n=1, **kwargs):
    with learn.no_logging(): learn.fit(n, **kwargs)
    return learn

@pytest.mark.parametrize('event', ['after_dataloader','batch_start','before_forward'])
def test_a_batch_that_an_algorithm_replaces_reaches_the_model(event):
    class Zeros(composer.Algorithm):
        def match(self, event_now, state): return event_now==composer.Event(event)
        def apply(self, event_now, state, logger): state.batch = torch.zeros_like(state.batch[0]),state.batch[1]
    learn = fit(learner(Zeros()))
    assert learn.model.seen[:3]==[0., 0., 0.] and learn.model.seen[3]!=0.

def test_post_close_is_skipped_where_close_raised():
    calls = []
    class Closes(composer.Callback):
        def __init__(self, name, fails=False): self.name,self.fails = name,fails
        def close(self, state, logger):
            calls.append(f'close {self.name}')
            if self.fails: raise RuntimeError('the file is gone')
        def post_close(self): calls.append(f'post_close {self.name}')
    with pytest.raises(RuntimeError, match='the file is gone'): fit(learner([Closes('a'), Closes('b', True), Closes('c')]))
    assert calls==['close a','close b','close c','post_close a','post_close c']

class Counts(composer.Callback):
    stop_at = None   # raise KeyboardInterrupt after this batch
    def __init__(self): self.rows = []
    def batch_end(self, state, logger):
        t = state.timestamp
        self.rows.append((t.epoch.value, t.batch.value, t.batch_in_epoch.value, t.sample.value, t.sample_in_epoch.value))
        if t.batch==Counts.stop_at: raise KeyboardInterrupt

def test_timestamps_continue_in_a_resumed_run(tmp_path, monkeypatch):
    whole = Counts()
    fit(learner(whole), 3)
    first,rest = Counts(),Counts()
    monkeypatch.setattr(Counts, 'stop_at', 5)
    with pytest.raises(KeyboardInterrupt): fit(learner(first, tmp_path), 3, cbs=CheckpointCallback('1ba', folder=tmp_path/'c'))
    monkeypatch.setattr(Counts, 'stop_at', None)
    fit(learner(rest, tmp_path), 3, cbs=CheckpointCallback('1ba', folder=tmp_path/'c'), resume='auto')
    assert first.rows==whole.rows[:5]
    assert rest.rows and rest.rows==whole.rows[-len(rest.rows):]

def test_state_before_the_first_batch():
    class Reads(composer.Callback):
        def fit_start(self, state, logger):
            self.read = state.batch,state.outputs,state.loss.item(),state.dataloader_len.value,len(state.optimizers),state.eval_metric_values
        def init(self, state, logger): self.at_init = state.dataloader,state.dataloader_len,state.optimizers
    cb = Reads()
    fit(learner(cb))
    assert cb.read==(None, None, 0., 3, 1, {}) and cb.at_init==(None, None, [])

def test_metrics_and_times_as_composers_own_callbacks_read_them():
    "The state has what Composer's EarlyStopper, RuntimeEstimator, ImageVisualizer and FreeOutputs read"
    read = []
    class Reads(composer.Callback):
        def eval_end(self, state, logger):
            values = [state.eval_metrics[state.dataloader_label]['accuracy'].compute(), state.train_metrics['accuracy'].compute()]
            assert all(isinstance(v, torch.Tensor) for v in values)
            read.append([v.item() for v in values])
        def batch_end(self, state, logger):
            t = state.timestamp
            assert t.get('ba')==t.batch==t.get(type('TimeUnit', (), dict(value='ba'))) and (t.batch+1).value==t.batch.value+1
            assert t.total_wct.total_seconds()>=t.epoch_wct.total_seconds()>=t.batch_wct.total_seconds()>0
            assert state.batch_get_item(0) is state.batch[0] and state.batch_get_item((lambda b: b[1], None)) is state.batch[1]
    learn = fit(learner(Reads()), 2)
    assert [o[0] for o in read]==pytest.approx([*learn.recorder.history['accuracy']])
