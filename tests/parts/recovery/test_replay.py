"""Replays and branches of a run: what they compute, report, raise for, and leave unchanged."""
import warnings
from functools import partial
import pytest, torch
from torch import nn
from torch.utils.data import IterableDataset
from learnkit.all import (SAM, Callback, CancelFitException, CheckpointCallback, CrossEntropyLossFlat, CSVLogger, CutMix, DataLoaders, EMACallback, GradientAccumulation, GradientClip, ItemIndices, Learner, SkipData, MicroBatch, MixUp, Pausable, Run, SaveModelCallback,
    StepsPerEpoch, VirtualShards, runs)
from learnkit.recovery.runs import find_spikes, describe_time
from learnkit.recovery.file import list_checkpoints, remove_checkpoint
from toys import slow

torch.set_num_threads(1)

def make_learner(path, *cbs, every='4ba', p=.5, n=100, bs=8, lr=.01, data=None, dls=None):
    torch.manual_seed(42)
    x = torch.randn(n, 4)
    if data is not None: x = data(x)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(p), nn.Linear(8, 1))
    learn = Learner(dls or DataLoaders.from_tensors(x, x.sum(1, keepdim=True), bs=bs), model, nn.MSELoss(), lr=lr, path=path, cbs=[CheckpointCallback(every, keep=None), *cbs])
    learn.remove_cb(learn.progress).logger = lambda row: None
    return learn

@pytest.fixture
def run(tmp_path):
    "A run of 20 batches with a checkpoint after every fourth"
    make_learner(tmp_path/'a').fit(2)
    return Run(tmp_path/'a')

def files(path): return {p:p.stat().st_mtime_ns for p in path.rglob('*') if p.is_file()}

def test_a_replay_returns_the_batch(run, tmp_path):
    learn = make_learner(tmp_path/'a')
    at = learn.replay(tmp_path/'a', 6)
    assert (at['train_iter'], at['compared'], at['equal'], len(at['items'])) == (6, 2, 2, 8)
    assert torch.equal(learn.dls.train.dataset[at['items'][0]][0], learn.xb[0][0])
    assert learn.resume(until='after_loss')['loss'] == run.losses[6] == learn.resume(1)['loss']
    learn.resume()
    assert learn.recorder.smooth_loss.raw == run.losses and learn.paused is None

def test_a_short_replay_prints_no_line_of_progress(run, tmp_path, capsys):
    "Without a terminal, progress is printed every 30 seconds, and not at the first batch"
    capsys.readouterr()
    make_learner(tmp_path/'a').replay(tmp_path/'a', 7)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed)==1 and printed[0].startswith('step 7 is 3 batches after')

def test_a_replay_writes_no_files(tmp_path):
    "A replay writes no log, model or checkpoint, also when resumed to the end of the run"
    class CountsBatches(Callback):
        acts,n = 'nothing',0
        def after_batch(self): CountsBatches.n += 1
    cbs = lambda: (CSVLogger(), SaveModelCallback('train_loss'), Pausable() if tmp_path is None else CountsBatches())
    make_learner(tmp_path/'a', *cbs()).fit(2)
    before,n = files(tmp_path),CountsBatches.n
    learn = make_learner(tmp_path/'a', *cbs())
    learn.replay(tmp_path/'a', 7)
    learn.resume()
    assert files(tmp_path)==before and CountsBatches.n==n

def test_observers_are_called(run, tmp_path):
    class Looks(Callback):
        acts,n = 'nothing',0
        def after_loss(self): Looks.n += 1
    make_learner(tmp_path/'a').replay(tmp_path/'a', 7, cbs=Looks())
    assert Looks.n==3

@pytest.mark.parametrize('how,words', [(dict(p=.1), 'model.2 is'), (dict(lr=.02), r'lr is \[0.02\]'), (dict(n=60), 'training items is 48 and was 80'), (dict(data=lambda x: x+1), 'training data is')])
def test_another_learner_raises(how, words, run, tmp_path):
    learn = make_learner(tmp_path/'a', **how)
    before = [p.clone() for p in learn.model.parameters()]
    with pytest.raises(ValueError, match=words): learn.replay(tmp_path/'a', 6)
    assert all(map(torch.equal, before, learn.model.parameters()))

def test_what_was_called_must_be_named(tmp_path):
    learn = make_learner(tmp_path/'a'); learn.fit_one_cycle(2, .1)
    again = make_learner(tmp_path/'a')
    with pytest.raises(ValueError, match='fit=partial'): again.replay(tmp_path/'a', 6)
    with pytest.raises(ValueError, match='the length is 3ep and was 2ep'): again.replay(tmp_path/'a', 6, fit=partial(again.fit_one_cycle, 3, .1))
    assert again.replay(tmp_path/'a', 6, fit=partial(again.fit_one_cycle, 2, .1))['equal']==2

def test_the_first_loss_that_differs_is_named(run, tmp_path):
    "A change of the data that the fingerprint does not detect shows in the first loss that differs"
    seen = make_learner(tmp_path/'a'); seen.replay(tmp_path/'a', 6)
    for row in seen.xb[0]:
        learn = make_learner(tmp_path/'a')
        xs = learn.dls.train.dataset.tensors[0]
        xs[(xs==row).all(1)] += 1e-3
        with warnings.catch_warnings(record=True) as w:
            warnings.simplefilter('always')
            try: learn.replay(tmp_path/'a', 7)
            except ValueError as e: assert 'training data is' in str(e); continue   # the fingerprint detects the change
        printed = [str(o.message) for o in w if 'is not exact' in str(o.message)]
        assert len(printed)==1 and 'first differs at step 6' in printed[0] and 'the data or the code have changed' in printed[0]
        return
    assert False, 'each item is in the fingerprint'

@pytest.mark.parametrize('step,words', [(20, 'from 0 to 19'), (-1, 'step'), (1.5, 'step')])
def test_bad_steps_raise(step, words, run, tmp_path):
    with pytest.raises(ValueError, match='from 0 to 20'): make_learner(tmp_path/'a').branch(tmp_path/'a', 21, to=tmp_path/'b')   # a branch may begin at the last step
    for f in (make_learner(tmp_path/'a').replay, *([partial(make_learner(tmp_path/'a').branch, to=tmp_path/'b')] if step!=20 else [])):
        with pytest.raises((ValueError, TypeError), match=words): f(tmp_path/'a', step)

def test_a_run_without_a_batch_has_no_step(tmp_path):
    class Stops(Callback):
        def before_epoch(self): raise CancelFitException
    make_learner(tmp_path/'a', Stops()).fit(1)
    run = Run(tmp_path/'a')
    assert run.finished and run.train_iter==0
    with pytest.raises(ValueError, match='has ended without a batch'): make_learner(tmp_path/'a', Stops()).replay(tmp_path/'a', 0)

def test_a_fit_limited_by_time_cannot_be_replayed(tmp_path):
    make_learner(tmp_path/'a').fit('0.2s')
    with pytest.raises(ValueError, match='depends on the clock'): make_learner(tmp_path/'a').replay(tmp_path/'a', 0)

def test_the_beginning_is_computed_without_a_checkpoint(run, tmp_path):
    for p in list_checkpoints(run.folder)[1:]: remove_checkpoint(p)
    for step in (0, 3):
        learn = make_learner(tmp_path/'a')
        assert learn.replay(tmp_path/'a', step)['equal']==step and learn.resume(1)['loss']==run.losses[step]

def test_a_replay_beyond_the_last_checkpoint(tmp_path):
    "A replay continues beyond the last checkpoint of a killed run, where no losses are recorded to compare"
    learn = make_learner(tmp_path/'a')
    class Dies(Callback):
        order,acts = 200,'nothing'
        def after_batch(self):
            if self.train_iter==7: raise SystemError('the power failed')
    with pytest.raises(SystemError): learn.fit(2, cbs=Dies())
    straight = make_learner(tmp_path/'b'); straight.fit(2)
    again = make_learner(tmp_path/'a')
    assert again.replay(tmp_path/'a', 7)['compared']==0
    assert again.resume(1)['loss']==straight.recorder.smooth_loss.raw[7]

def test_a_replay_with_steps_per_epoch(tmp_path):
    cbs = lambda: (StepsPerEpoch(7), EMACallback(decay=.9))
    make_learner(tmp_path/'a', *cbs()).fit(3)
    learn = make_learner(tmp_path/'a', *cbs())
    assert learn.replay(tmp_path/'a', 18)['equal']==2 and learn.resume(1)['loss']==Run(tmp_path/'a').losses[18]

class RandomSamples(IterableDataset):
    "A stateful dataset of random samples, whose state is the number drawn"
    at = 0
    def __iter__(self):
        while self.at<12: self.at += 1; x = torch.rand(4); yield x,x.sum()[None]
        self.at = 0
    def state_dict(self): return dict(at=self.at)
    def load_state_dict(self, state): self.at = state['at']

@pytest.mark.parametrize('step', [0, 2, 5])
def test_a_loader_that_draws_when_its_position_is_read(step, tmp_path):
    loader = pytest.importorskip('torchdata.stateful_dataloader').StatefulDataLoader
    make = lambda: make_learner(tmp_path/'a', dls=DataLoaders(loader(RandomSamples(), 4), [(torch.ones(4, 4), torch.ones(4, 1))]))
    make().fit(2)
    learn = make()
    if step>=4: torch.rand(3)
    at = learn.replay(tmp_path/'a', step)
    assert at['equal']==at['compared']==step%4 and learn.resume(1)['loss']==Run(tmp_path/'a').losses[step]
    learn.resume()
    assert learn.recorder.smooth_loss.raw==Run(tmp_path/'a').losses

# branches

def test_a_branch_is_a_run_of_its_own(run, tmp_path):
    before = files(tmp_path/'a')
    learn = make_learner(tmp_path/'a', CSVLogger())
    learn.branch(tmp_path/'a', 8, tmp_path/'b', lr=.05)
    branch = Run(tmp_path/'b')
    assert files(tmp_path/'a')==before
    assert branch.losses[:9]==run.losses[:9] and branch.losses[9]!=run.losses[9] and branch.train_iter==20 and branch.finished
    assert branch.parent==(str(run.folder), 8) and branch.interrupted==[] and 'a branch of' in repr(branch) and run.parent is None
    assert (tmp_path/'b'/'history.csv').exists()
    assert dict(zip(runs(tmp_path)['run'], runs(tmp_path)['left_at']))=={str(run.folder):None, str(branch.folder):8}
    assert learn.hparams()['branch step']==8

def test_a_branch_can_be_resumed_and_branched_from(run, tmp_path):
    make_learner(tmp_path/'a').branch(tmp_path/'a', 8, tmp_path/'b', lr=.05)
    for p in list_checkpoints(Run(tmp_path/'b').folder)[:2]: remove_checkpoint(p)
    at = Run(tmp_path/'b').train_iter
    make_learner(tmp_path/'b', lr=.05).fit(2, resume='auto')
    b = Run(tmp_path/'b')
    assert b.parent==(str(run.folder), 8) and b.interrupted==[at] and b.train_iter==20
    make_learner(tmp_path/'b', lr=.05).branch(tmp_path/'b', at, tmp_path/'c')
    assert Run(tmp_path/'c').losses==b.losses and Run(tmp_path/'c').parent==(str(b.folder), at)

def test_a_run_that_was_stopped_continues_from_its_end(tmp_path):
    "The error names a `branch` call that continues the stopped run; its step used to raise in `branch`"
    class Stops(Callback):
        def __init__(self, epoch): self.epoch = epoch
        def after_epoch(self):
            if self.learn.epoch==self.epoch: self.learn.stop('enough')
    make_learner(tmp_path/'whole').fit(4)
    make_learner(tmp_path/'a', Stops(1)).fit(4)
    with pytest.raises(ValueError) as e: make_learner(tmp_path/'a', Stops(9)).fit(4, resume='auto')
    advice = str(e.value).split('write `')[1].rstrip('`').replace('NEW FOLDER', str(tmp_path/'b'))
    learn = make_learner(tmp_path/'a', Stops(9))
    exec(advice, dict(learn=learn))
    assert learn.train_iter==40 and Run(tmp_path/'b').losses==Run(tmp_path/'whole').losses

def test_a_branch_from_the_end_of_a_whole_run_must_be_longer(run, tmp_path):
    with pytest.raises(ValueError, match='has trained all of its 2 epochs.*partial'): make_learner(tmp_path/'a').branch(tmp_path/'a', 20, tmp_path/'b')
    with pytest.raises(ValueError, match='`step` must be from 0 to 20'): make_learner(tmp_path/'a').branch(tmp_path/'a', 21, tmp_path/'b')
    make_learner(tmp_path/'whole').fit(3)
    learn = make_learner(tmp_path/'a')
    learn.branch(tmp_path/'a', 20, tmp_path/'c', fit=partial(learn.fit, 3))
    assert learn.train_iter==30 and Run(tmp_path/'c').losses==Run(tmp_path/'whole').losses

def test_batches_are_skipped(run, tmp_path):
    learn = make_learner(tmp_path/'a')
    learn.branch(tmp_path/'a', 8, tmp_path/'b', skip='3ba')
    assert learn.train_iter==20 and learn.train_steps==17 and len(Run(tmp_path/'b').losses)==17
    assert Run(tmp_path/'b').sessions[-1]['skip']=='3ba'

def test_samples_are_skipped(run, tmp_path):
    seen = []
    class Seen(Callback):
        acts = 'nothing'
        def before_batch(self):
            if self.training: seen.append(len(self.xb[0]))
    make_learner(tmp_path/'a').branch(tmp_path/'a', 8, tmp_path/'b', skip=[3, 14], cbs=Seen())
    assert 2<=8*12-sum(seen)<=4   # each sample is skipped in the second epoch, and perhaps in the rest of the first one
    with pytest.raises(ValueError, match='are unknown'):
        learn = Learner(([(torch.ones(4, 2), torch.ones(4, 1))]*3,), nn.Linear(2, 1), nn.MSELoss(), cbs=SkipData(items=[1]))
        with learn.no_bar(), learn.no_logging(): learn.fit(1)

class Detector(nn.Module):
    "Returns a number for each image of a list, of different sizes, or of a tensor"
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
    def forward(self, images): return self.scale*torch.stack([image.mean() for image in images])

def n_boxes(pred, targets): return (pred-torch.tensor([float(len(t['boxes'])) for t in targets])).square().mean()

@pytest.mark.parametrize('bs', (3, 4, 5))
@pytest.mark.parametrize('n', (2, 3, 4))
def test_samples_of_lists_are_skipped(n, bs):
    "Samples are skipped in lists of images and dictionaries, even if images have as many channels as samples"
    dataset = [(torch.full((3, 4+i%2*(n>2), 4), float(i)), dict(boxes=torch.zeros(n-i%2, 4), name=f'image {i}')) for i in range(bs)]
    seen = []
    class Seen(Callback):
        acts = 'nothing'
        def before_batch(self):
            images,targets = self.xb[0],self.yb[0]
            seen.append(([int(image.mean()) for image in images], [t['name'] for t in targets]))
            assert all(len(image)==3 for image in images) and all(len(t['boxes'])>=n-1 for t in targets)
    def collate(samples): return [[*parts] for parts in zip(*samples)]
    dls = DataLoaders(torch.utils.data.DataLoader(dataset, bs, collate_fn=collate))
    learn = Learner(dls, Detector(), n_boxes, lr=.01, cbs=[ItemIndices(), SkipData(items=[1]), Seen()])
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    left = [i for i in range(bs) if i!=1]
    assert seen==[(left, [f'image {i}' for i in left])]

def test_two_callbacks_skip_samples_of_a_batch():
    left = []
    class Seen(Callback):
        acts = 'nothing'
        def before_batch(self): left.extend(self.xb[0][:,0].tolist())
    x = torch.arange(6.)[:,None]
    dls = DataLoaders(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x), 6))
    cbs = [ItemIndices(), SkipData(items=[3]), SkipData(items=[1, 5]), Seen()]
    learn = Learner(dls, nn.Linear(1, 1), nn.MSELoss(), lr=.01, cbs=cbs)
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    assert left==[0, 2, 4]

def test_samples_of_shards_are_skipped(tmp_path):
    "Samples are skipped in one shard of a batch, and by a second callback from those that remain"
    sizes,gone = [],[]
    class Seen(Callback):
        acts,order = 'nothing',200
        def before_batch(self):
            if self.training: sizes.append(len(self.xb[0])); gone.append({*self.xb[0][:,0].tolist()})
    learn = make_learner(tmp_path/'a', VirtualShards(4), ItemIndices(), SkipData(items=[3]), SkipData(items=[14, 15]), Seen(), bs=2)
    x = learn.dls.train.dataset.tensors[0][[3, 14, 15],0].tolist()
    learn.fit(1)
    assert sum(sizes)==77 and not {*x} & set().union(*gone)
    learn = make_learner(tmp_path/'b', VirtualShards(4), SkipData(steps=range(4, 10)), bs=2)
    learn.fit('4ba'); at = [p.clone() for p in learn.parameters()]
    learn = make_learner(tmp_path/'c', VirtualShards(4), SkipData(steps=range(4, 10)), bs=2)
    learn.fit('10ba')
    assert all(map(torch.equal, at, learn.parameters()))

@pytest.mark.parametrize('skip,words', [([3, 14], ', without samples 3, 14\n'), ([3], ', without sample 3\n'), ('2ba', ', without the next 2 batches\n')])
def test_a_branch_prints_what_it_skips(skip, words, run, tmp_path, capsys):
    make_learner(tmp_path/'a').branch(tmp_path/'a', 16, tmp_path/'b', skip=skip)
    assert capsys.readouterr().out.endswith('continuing from step 16 as a run of its own' + words)
    if skip==[3, 14]: assert 'SkipData(items={3, 14}' in Run(tmp_path/'b').settings['callback skip_data']

def test_a_branch_of_a_branch_prints_the_changed_samples(run, tmp_path, capsys):
    make_learner(tmp_path/'a').branch(tmp_path/'a', 8, tmp_path/'b', skip=[3])
    make_learner(tmp_path/'b').branch(tmp_path/'b', 16, tmp_path/'c', skip=[14])
    assert 'items={14}' in (printed := capsys.readouterr().out) and 'and was learnkit.recovery.replay.SkipData(items={3}' in printed

def test_a_run_shows_what_a_replay_costs(run):
    assert 'a replay computes at most 3 batches\n' in repr(run)
    for p in list_checkpoints(run.folder)[3:]: remove_checkpoint(p)
    assert 'a replay computes at most 3 batches; of a step before 12 at most 11 batches\n' in repr(Run(run.folder))
    for r,t in zip(run.history, ('01:00', '00:40')): r['time'] = t
    assert describe_time(run, 3)==', about 00:15' and describe_time(run, 0)=='' and 'at most 11 batches, about 00:55' in repr(run) and 'about 00:55' in run._repr_html_()
    run.history.clear()
    assert describe_time(run, 3)==''

@pytest.mark.parametrize('how,words', [(dict(skip='2ep'), "'20ba'"), (dict(lr=.1, fit=print), 'pass `lr` or `fit`, not both'), (dict(to='a'), 'another folder')])
def test_bad_branches_raise(how, words, run, tmp_path):
    to = how.pop('to', 'b')
    with pytest.raises(ValueError, match=words): make_learner(tmp_path/'a').branch(tmp_path/'a', 8, tmp_path/to, **how)
    learn = make_learner(tmp_path/'a').remove_cb(CheckpointCallback)
    with pytest.raises(ValueError, match='CheckpointCallback'): learn.branch(tmp_path/'a', 8, tmp_path/'c')

# spikes

def planted(path, bad=3, n=400):
    "A run in whose second epoch one sample has a much too large target"
    learn = make_learner(path, n=n, every='10ba', p=0.)
    learn.dls.train.dataset.tensors[1][bad] *= 1000
    return learn

def test_a_spike_is_found_explained_and_bisected(tmp_path):
    planted(tmp_path/'a').fit(3)
    run,before = Run(tmp_path/'a'),files(tmp_path)
    step = max(run.spikes(), key=lambda s: s['loss'])['step']
    assert run.losses[step]==max(run.losses[50:])
    why = planted(tmp_path/'a').explain_spike(tmp_path/'a', step)
    assert why.items[0]['item']==3 and why.loss==run.losses[step] and why.layers[0]['steps_before']==0 and 'samples of the batch' in repr(why)
    total = torch.tensor([i['loss'] for i in why.items]).mean().item()
    assert abs(total-why.loss)<1e-4*why.loss
    assert planted(tmp_path/'a').bisect_spike(tmp_path/'a', step)==[3]
    assert files(tmp_path)==before
    with pytest.raises(ValueError, match='not a spike'): planted(tmp_path/'a').bisect_spike(tmp_path/'a', step-1)

def test_spikes_of_noise_are_rare_and_those_of_nan_are_named(run):
    torch.manual_seed(0)
    losses = (2+torch.randn(20_000).abs()).tolist()
    assert len(find_spikes(losses, 8., 50))<=2
    losses[10] = losses[5000] = float('nan'); losses[5001] = losses[7000] = 100.
    assert [i for i,*_ in find_spikes(losses, 8., 50)][:3]==[10, 5000, 7000] and find_spikes([1.]*9, 8., 50)==[] and run.spikes()==[]

def labelled(path, *cbs, fp16=False, bs=8, loss=None, images=False):
    "A classifier with one sample that is huge and misclassified"
    torch.manual_seed(0)
    x = torch.randn(400, 6)
    y = (x[:,0]>0).long()
    if images: x = x.view(400, 1, 2, 3)
    x[7] *= 1000; y[7] = 1-y[7]
    net = nn.Sequential(*[nn.Flatten()]*images, nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
    learn = Learner(DataLoaders.from_tensors(x, y, bs=bs), net, loss or CrossEntropyLossFlat(), lr=.01, path=path, cbs=[CheckpointCallback('10ba', keep=None), *cbs])
    learn.remove_cb(learn.progress).logger = lambda row: None
    return learn.to_fp16(init_scale=2.**10) if fp16 else learn

@pytest.mark.parametrize('how,words', [
    (dict(), 'not clipped'), (dict(cbs=[partial(GradientClip, .5)]), 'clipped to 0.5\n'),
    (dict(cbs=[partial(Callback, before_step=lambda self: torch.nn.utils.clip_grad_norm_(self.learn.parameters(), .25))]), 'clipped to 0.25\n'),
    (dict(fp16=True), "; the step was skipped: its gradient was infinite or NaN"),
    (dict(cbs=[partial(GradientAccumulation, '4ba')]), "the optimizer step came after batch 15;"),
], ids=['plain','clip','own clip','fp16','accumulation'])
def test_a_spike_of_a_classifier_reports_its_gradient(how, words, tmp_path):
    make = lambda: labelled(tmp_path/'a', *[f() for f in how.get('cbs', ())], fp16=how.get('fp16', False))
    make().fit(1)
    run = Run(tmp_path/'a')
    step = max(run.spikes(window=12), key=lambda s: s['loss'])['step']
    learn = make()
    bad = next(i for i,(x,_) in enumerate(learn.dls.train.dataset) if x.abs().max()>100)
    why = learn.explain_spike(tmp_path/'a', step)
    assert why.items[0]['item']==bad and why.loss==run.losses[step] and words in repr(why)
    assert 'target' in repr(why.show_batch(2)) and [r['item'] for r in why.show_batch(2)]==[str(r['item']) for r in why.items[:2]]
    assert (why.layers and why.layers[0]['steps_before']==0) or 'clipped to' in repr(why)
    assert make().bisect_spike(tmp_path/'a', step, window=12)==[bad]

@pytest.mark.parametrize('how', ['micro', *slow('shards', 'mixup', 'cutmix', 'weights', 'sum', 'sam')])
def test_all_samples_of_the_batch_are_measured(how, tmp_path):
    "All samples are measured in micro-batches, mixed and weighted: their losses add up to the batch's"
    cbs = dict(micro=lambda: [MicroBatch(3)], shards=lambda: [VirtualShards(4)], mixup=lambda: [MixUp()], cutmix=lambda: [CutMix()], sam=lambda: [SAM(.05)]).get(how, lambda: [])
    loss = dict(weights=lambda: nn.CrossEntropyLoss(torch.tensor([1., 5.])), sum=lambda: nn.CrossEntropyLoss(reduction='sum')).get(how, nn.CrossEntropyLoss)
    make = lambda: labelled(tmp_path, *cbs(), bs=2 if how=='shards' else 8, loss=loss(), images=how=='cutmix')
    make().fit('25ba')
    run = Run(tmp_path)
    step = max(run.spikes(window=8), key=lambda s: s['loss'])['step']
    learn = make(); items = learn.replay(tmp_path, step)['items']
    why = make().explain_spike(tmp_path, step)
    first,bad = why.items[0],next(i for i,(x,_) in enumerate(learn.dls.train.dataset) if x.abs().max()>100)
    assert sorted(why.items['item'])==sorted(items) and bad in (first['item'], first.get('mixed_with')) and (how=='cutmix' or len(why.show_batch(3))==3)
    total = sum(why.items['loss'])
    assert .7*why.measurements['norm'] < first['gradient'] < 1.1*why.measurements['norm']
    if how not in ('weights', 'sum'): assert total/len(items)==pytest.approx(why.loss, rel=1e-4)
    if how=='sum': assert total==pytest.approx(why.loss, rel=1e-4)
    if how in ('shards', 'mixup'): assert make().bisect_spike(tmp_path, step, window=8)==[bad]

def test_the_loss_of_a_sequence_is_that_of_its_tokens_that_count(tmp_path):
    def make():
        torch.manual_seed(0)
        x = torch.randint(0, 10, (300, 5))
        y = x.clone(); y[:,1:4] = -100; y[9] = torch.tensor([1, -100, -100, -100, -100])
        learn = Learner(DataLoaders.from_tensors(x, y, bs=8), nn.Sequential(nn.Embedding(10, 16), nn.Linear(16, 10)), CrossEntropyLossFlat(), lr=.05, path=tmp_path, cbs=CheckpointCallback('10ba', keep=None))
        learn.remove_cb(learn.progress).logger = lambda row: None
        return learn
    make().fit(1)
    learn = make()
    why = learn.explain_spike(tmp_path, 25)
    learn.replay(tmp_path, 25); learn.resume(until='after_loss')
    each = nn.functional.cross_entropy(learn.pred.movedim(-1, 1), learn.yb[0], reduction='none')
    count = (learn.yb[0]!=-100).sum(1)
    want = dict(zip(learn.paused.items, (each.sum(1)/count).tolist()))
    assert {r['item']:r['loss'] for r in why.items}==pytest.approx(want)

class Own(nn.Module):
    "Returns its own loss, from inputs by name"
    def __init__(self): super().__init__(); self.l = nn.Linear(4, 1)
    def forward(self, x, labels=None):
        out = self.l(x)
        return dict(logits=out) if labels is None else dict(logits=out, loss=nn.functional.mse_loss(out, labels))

def test_a_loss_of_the_model_itself_is_measured_by_single_samples(tmp_path):
    def make():
        torch.manual_seed(0)
        x = torch.randn(200, 4)
        y = x.sum(1, keepdim=True); y[11] *= 1000
        items = [dict(x=a, labels=b) for a,b in zip(x, y)]
        learn = Learner(DataLoaders.from_dsets(items, items[:8], bs=8), Own(), lr=.01, path=tmp_path, cbs=CheckpointCallback('10ba', keep=None))
        learn.remove_cb(learn.progress).logger = lambda row: None
        return learn
    make().fit(1)
    step = max(range(25), key=lambda i: Run(tmp_path).losses[i])
    why = make().explain_spike(tmp_path, step)
    assert why.items[0]['item']==11 and 'each alone in the model' in repr(why) and len(why.show_batch(3))==3
    assert sum(r['loss'] for r in why.items)/8==pytest.approx(why.loss)

def test_steps_are_counted_where_batches_were_skipped(run, tmp_path):
    "Skipped batches have no loss, so steps are counted in batches, not in recorded losses"
    make = lambda path: planted(path)
    make(tmp_path/'a2').fit(3)
    want = max(Run(tmp_path/'a2').spikes(), key=lambda s: s['loss'])['step']
    make(tmp_path/'a2').branch(tmp_path/'a2', 10, tmp_path/'b', skip='5ba')
    b = Run(tmp_path/'b')
    assert max(b.spikes(), key=lambda s: s['loss'])['step']==want and b.lossless==[*range(10, 15)] and len(b.losses)==b.train_iter-5
    assert b.losses[want-5]==max(b.spikes()['loss'])

def test_a_nan_is_bisected_too(tmp_path):
    def make():
        learn = make_learner(tmp_path/'a', every='10ba', p=0.).to_fp16()   # the batch's step is skipped, so the weights stay finite
        learn.dls.train.dataset.tensors[1][3] = float('nan')
        return learn
    learn = make()
    learn.fit('10ba')
    [first] = [s['step'] for s in Run(tmp_path/'a').spikes()[:1]]
    assert make().bisect_spike(tmp_path/'a', first)==[3]
    why = make().explain_spike(tmp_path/'a', first)
    assert why.items[0]['item']==3

@pytest.mark.slow
def test_a_spike_caused_by_the_step_before(tmp_path):
    "A sample with a small loss whose gradient ruined the weights is found in the step before"
    def make(*cbs):
        torch.manual_seed(0)
        x = torch.randn(400, 4)
        learn = Learner(DataLoaders.from_tensors(x, x.sum(1, keepdim=True), bs=8), nn.Linear(4, 1), Wrecks(), lr=.01, opt_func=torch.optim.SGD, path=tmp_path/str(len(cbs)), cbs=[CheckpointCallback('10ba', keep=None), *cbs])
        learn.remove_cb(learn.progress).logger = lambda row: None
        return learn
    class Wrecks(nn.Module):
        reduction = 'mean'
        def forward(self, pred, y):
            bad = y==y.new_tensor(target)
            loss = (pred-y)**2 + torch.where(bad, 1e5*(pred-pred.detach()), 0.)
            return loss.mean() if self.reduction=='mean' else loss
    target = float('nan')
    first = make(); target = first.dls.train.dataset[77][1].item()
    for cbs in ([], [GradientAccumulation('2ba')]):
        make(*cbs).fit(1)
        run = Run(tmp_path/str(len(cbs)))
        step = max(run.spikes(window=8), key=lambda s: s['loss'])['step']
        assert make(*cbs).bisect_spike(run.folder, step, window=8)==[i for i,(_,y) in enumerate(make().dls.train.dataset) if y.item()==target]
