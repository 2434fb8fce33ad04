"""Weights saved or exported during a fit are those that a validation uses, even with averages or optimizer modes."""
import io, sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]/'parts/optim'))
import pytest, torch
from learnkit.all import Callback, EMACallback, GradientAccumulation, Learner, MicroBatch, ValidateEvery, load_learner
from learnkit.data.loaders import DataLoaders
from torch import nn
from torch.nn import functional as F
from test_opt_modes import Averaged
from toys import few, slow

g = torch.Generator().manual_seed(0)
batches = [(torch.randn(4, 3, generator=g), torch.randn(4, 1, generator=g)) for _ in range(5)]
def net(): torch.manual_seed(1); return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))

def saved(learn):
    m,f = net(),io.BytesIO()
    learn.save(f, with_opt=False)
    f.seek(0)
    m.load_state_dict(torch.load(f))
    return m
def exported(learn): return load_learner(learn.export('exported'), net()).model
writers = saved,exported
stand_ins = dict(nothing=list, average=lambda: [EMACallback(.5)], kept=lambda: [EMACallback(.5, at_end=False)], unused=lambda: [EMACallback(.5, use=False)],
                 late=lambda: [EMACallback(.5, start=3)], parts=lambda: [EMACallback(.5), MicroBatch(2)], accumulated=lambda: [EMACallback(.5), GradientAccumulation('2ba')],
                 within=lambda: [EMACallback(.5), ValidateEvery('2ba')])
events = 'before_batch after_step after_batch after_train before_validate after_validate after_epoch'.split()

cases = [(name, opt) for name in stand_ins for opt in (torch.optim.SGD, Averaged)]

@few(1, 2)
@pytest.mark.parametrize('name,opt', [cases.pop(cases.index(('accumulated', Averaged))), *slow(*cases)])
def test_saved_weights_are_those_validated(name, opt, tmp_path):
    "Saved and exported weights have the loss of `validate`, and the fit ends as without saving"
    odd,seen = [],set()
    def train(*cbs):
        learn = Learner(DataLoaders(batches, batches), net(), F.mse_loss, opt, lr=.05, path=tmp_path, cbs=stand_ins[name]())
        with learn.no_bar(), learn.no_logging(): learn.fit(2, cbs=cbs)
        return learn
    def look(event):
        def f(cb):
            if cb.learn.mode!='fit' or cb.epoch==0 or cb.iter not in (None, 2, 4) or event in seen: return
            seen.add(event)
            for write in writers:
                m = write(cb.learn).eval()
                with torch.no_grad(): loss = torch.stack([F.mse_loss(m(x), y) for x,y in batches]).mean().item()
                judged = cb.learn.validate()[0]
                if abs(loss-judged)>1e-5: odd.append((event, write.__name__, cb.epoch, cb.iter, loss, judged))
        return f
    looked = train(Callback(**{e:look(e) for e in events}))
    assert not odd and seen=={*events}
    assert all(torch.allclose(a, b, atol=1e-6) for a,b in zip(train().model.state_dict().values(), looked.model.state_dict().values()))
