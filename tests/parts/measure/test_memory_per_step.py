"""What a training step leaves in memory, counted by Python itself."""
import gc, tracemalloc
from functools import partial

import numpy as np, pytest, torch
from torch import nn
from learnkit.all import Callback, CheckpointCallback, DataLoaders, Learner, NonFiniteCheck, ParamScheduler, Recorder, SchedCos, TrainEvalCallback, one_cycle
from learnkit.measure.scalars import GroupSeries, Series
from toys import slow

torch.set_num_threads(1)
FIRST,N = 200,600   # the steps that are looked at

class Watch(Callback):
    "Bytes in use after batch `FIRST` and after batch `FIRST+N`, each time with all losses read"
    order = 100
    def after_batch(self):
        if self.train_iter not in (FIRST, FIRST+N): return
        rec = self.learn.recorder
        for s in (rec.smooth_loss, rec.lrs, *rec.hps.values(), *[c for v in rec.group_hps.values() for c in v.columns]): s.flush()
        rec._fire_after_read_losses()   # else they wait for the next batch
        gc.collect()
        if self.train_iter==FIRST: tracemalloc.start(); self.objects = len(gc.get_objects()); return
        self.bytes,self.objects = tracemalloc.get_traced_memory()[0]/N,(len(gc.get_objects())-self.objects)/N
        tracemalloc.stop()

# a number in an array takes 8 bytes
@pytest.mark.parametrize('scheds,most', [({}, 3*8), *slow((one_cycle(.1), 3*8 + 2*8)), ({'lr':SchedCos([.1,.2], 0), 'mom':SchedCos(.9, .8)}, 3*8 + 2*3*8)], ids=['plain','one_cycle','two_groups'])
def test_a_step_leaves_its_numbers_only(scheds, most):
    "A step left 110 bytes, and 426 with a schedule, which made two lists a step that the garbage collector had to go through"
    m,dl = nn.Sequential(nn.Linear(1,1), nn.Linear(1,1)),[(torch.ones(1,1), torch.ones(1,1))]*(FIRST+N)
    watch = Watch()
    learn = Learner([dl], m, nn.MSELoss(), partial(torch.optim.SGD, momentum=.9), lr=1e-3, default_cbs=False, splitter=lambda m: [[*l.parameters()] for l in m] if len(scheds)==2 else [*m.parameters()],
                    cbs=[TrainEvalCallback, Recorder, NonFiniteCheck, watch, *[ParamScheduler(s) for s in [scheds] if s]])
    learn.fit(1)
    assert watch.bytes<1.25*most + 9000/N and watch.objects<.01, f'{watch.bytes:.1f} bytes and {watch.objects:.2f} objects a step, where the numbers themselves take {most}'   # containers have room to grow, and something is made only once: 8,073 bytes with PyTorch 2.10

class Runs(list):
    "The numbers that were added, and what a `Series` should keep of them"
    def kept(self, most):
        every = 1
        while len(self[::every])>most: every *= 2
        return self[::every],every

@pytest.mark.parametrize('most', [1, 2, 7, 64])
def test_a_series_keeps_every_nth(most):
    "However they come: one by one, as tensors, many at once, and over a checkpoint"
    torch.manual_seed(most)
    s,all_ = Series(),Runs()
    s.max_stored = most
    for i in range(200):
        xs = torch.randn(int(torch.randint(0, 5, ()))).double()
        how = int(torch.randint(0, 4, ()))
        if how==0: s.extend(xs.tolist())
        elif how==3: state,s = s.state_dict(),Series(); s.max_stored = most; s.load_state_dict(state); continue
        for x in xs if how else (): s.append(x if how==1 else x.item())
        all_ += xs.tolist()
        assert s.n_appended==len(all_)
        if how==2 or i%3==0: assert (s, s.every)==all_.kept(most)
    assert len(all_)>200 and s[-1]==all_.kept(most)[0][-1] and np.array_equal(np.array(s), all_.kept(most)[0])

def line(most=None, monkeypatch=None):
    "A fit of 60 batches, its curve and its losses as they are announced"
    if most: monkeypatch.setattr(Series, 'max_stored', most)
    torch.manual_seed(0)
    seen = []
    dl = [(torch.randn(4,1), torch.randn(4,1)) for _ in range(20)]
    learn = Learner([dl, dl[:2]], nn.Linear(1,1), nn.MSELoss(), torch.optim.SGD, lr=.1, cbs=[ParamScheduler(one_cycle(.1)), Callback(after_read_losses=lambda self, losses, start: seen.append((start, losses)))])
    learn.fit(3)
    return learn,seen

def test_a_long_run_keeps_a_part_of_its_curves(monkeypatch):
    def xy(rec): return [(l.get_xdata().tolist(), l.get_ydata().tolist()) for l in rec.plot_loss().lines]
    def curves(rec): return [rec.smooth_loss.raw, rec.smooth_loss.values, [*rec.lrs], [*rec.hps['lr']], [*rec.group_hps['lr']]]
    learn,seen = line()
    rec,whole,((x,y),valid) = learn.recorder,curves(learn.recorder),xy(learn.recorder)
    part,again = line(most=16, monkeypatch=monkeypatch)
    kept = part.recorder
    assert kept.smooth_loss.every==kept.lrs.every==4 and curves(kept)==[c[::4] for c in whole] and len(kept.losses)==15
    assert rec.iters==kept.iters==[20,40,60] and seen==again and sum([l for _,l in again], [])==whole[0]
    assert torch.equal(learn.model.weight, part.model.weight) and rec.history['train_loss']==kept.history['train_loss']
    assert xy(kept)==[(x[3::4], y[3::4]), valid] and x[3]==9   # the ninth batch is the first after five that is kept
    assert [l.get_xdata().tolist() for l in kept.plot_sched()[0].lines]==[[*range(0, 60, 4)]]

def test_a_thinned_run_continues(tmp_path, monkeypatch):
    "From a checkpoint, with the same curves as in one go"
    monkeypatch.setattr(Series, 'max_stored', 16)
    def go(path, *cbs, **kw):
        torch.manual_seed(0)
        dl = [(torch.randn(4,1), torch.randn(4,1)) for _ in range(20)]
        learn = Learner([dl], nn.Linear(1,1), nn.MSELoss(), torch.optim.SGD, lr=.1, path=path, cbs=[ParamScheduler(one_cycle(.1)), CheckpointCallback('17ba'), *cbs])
        learn.fit(3, **kw)
        return learn.recorder
    class Killed(Exception): pass
    def kill(self):
        if self.train_iter==45: raise Killed
    whole = go(tmp_path/'a')
    with pytest.raises(Killed): go(tmp_path/'b', Callback(after_batch=kill))
    rest = go(tmp_path/'b', resume='auto')
    for get in (lambda r: r.lrs, lambda r: r.hps, lambda r: r.group_hps, lambda r: r.smooth_loss.raw, lambda r: r.smooth_loss.values, lambda r: r.iters, lambda r: r.lrs.every): assert get(rest)==get(whole)

def test_group_values_read_as_a_list_of_lists():
    "The values of each group are kept together; to read them, each batch has a list"
    rows,values = [[1.,2.],[3.,4.],[5.,6.]],GroupSeries()
    assert [*values]==[] and values==[] and not values
    with pytest.raises(IndexError): values[0]
    for r in rows: values.append(r)
    assert values==rows and [*values]==rows and values[-1]==rows[-1] and values[1:]==rows[1:] and values[::-1]==rows[::-1] and len(values)==3 and rows[1] in values and repr(values)==repr(rows)
    with pytest.raises(ValueError): values.append([1.])

@pytest.mark.parametrize('wrong', [dict(every=0), dict(every=-1), dict(every=1.), dict(n_read=7), dict(kept=torch.ones(2))], ids=str)
def test_a_damaged_series_raises(wrong):
    "With `every` 0 it was read, and each number after that was a ZeroDivisionError"
    s = Series(); s.extend([1., 2., 3.])
    with pytest.raises(ValueError, match='do not match n_read'): s.load_state_dict({**s.state_dict(), **wrong})
    assert s==[1., 2., 3.]
    s.append(4.); assert s==[1., 2., 3., 4.]
