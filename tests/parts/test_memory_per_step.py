"""What a training step leaves in memory, counted by Python itself."""
import gc, tracemalloc
from functools import partial

import pytest, torch
from torch import nn
from learnkit.all import Callback, DataLoaders, Learner, NonFiniteCheck, ParamScheduler, Recorder, SchedCos, TrainEvalCallback, one_cycle
from learnkit.optim.param_scheduler import GroupValues
from toys import slow

torch.set_num_threads(1)
FIRST,N = 200,600   # the steps that are looked at

class Watch(Callback):
    "Bytes in use after batch `FIRST` and after batch `FIRST+N`, each time with all losses read"
    order = 100
    def after_batch(self):
        if self.train_iter not in (FIRST, FIRST+N): return
        self.learn.recorder.smooth_loss.settle()
        gc.collect()
        if self.train_iter==FIRST: tracemalloc.start(); self.objects = len(gc.get_objects()); return
        self.bytes,self.objects = tracemalloc.get_traced_memory()[0]/N,(len(gc.get_objects())-self.objects)/N
        tracemalloc.stop()

# a number in an array takes 8 bytes, as does one in a list that refers to a float that is there already; a float of its own takes 24
@pytest.mark.parametrize('scheds,most', [({}, 3*8), *slow((one_cycle(.1), 3*8 + 24+2*8)), ({'lr':SchedCos([.1,.2], 0), 'mom':SchedCos(.9, .8)}, 3*8 + 2*24+3*8 + 24+3*8)], ids=['plain','one_cycle','two_groups'])
def test_a_step_leaves_its_numbers_only(scheds, most):
    "A step left 110 bytes, and 426 with a schedule, which made two lists a step that the garbage collector had to go through"
    m,dl = nn.Sequential(nn.Linear(1,1), nn.Linear(1,1)),[(torch.ones(1,1), torch.ones(1,1))]*(FIRST+N)
    watch = Watch()
    learn = Learner([dl], m, nn.MSELoss(), partial(torch.optim.SGD, momentum=.9), lr=1e-3, default_cbs=False, splitter=lambda m: [[*l.parameters()] for l in m] if len(scheds)==2 else [*m.parameters()],
                    cbs=[TrainEvalCallback, Recorder, NonFiniteCheck, watch, *[ParamScheduler(s) for s in [scheds] if s]])
    learn.fit(1)
    assert watch.bytes<1.25*most + 8000/N and watch.objects<.01, f'{watch.bytes:.1f} bytes and {watch.objects:.2f} objects a step, where the numbers themselves take {most}'   # containers have room to grow, and something is made only once

def test_group_values_read_as_a_list_of_lists():
    "The values of each group are kept together; to read them, each batch has a list"
    rows,values = [[1.,2.],[3.,4.],[5.,6.]],GroupValues()
    assert [*values]==[] and values==[] and not values
    with pytest.raises(IndexError): values[0]
    for r in rows: values.append(r)
    assert values==rows and [*values]==rows and values[-1]==rows[-1] and values[1:]==rows[1:] and values[::-1]==rows[::-1] and len(values)==3 and rows[1] in values and repr(values)==repr(rows)
    values[:] = rows[:1]
    assert values==rows[:1]
    with pytest.raises(ValueError): values.append([1.])
