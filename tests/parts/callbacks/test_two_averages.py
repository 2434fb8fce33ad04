"""Two EMAs in a fit: each equals one alone, also in a resumed run and in files saved within the fit"""
import pytest, torch
from torch import nn
from torch.nn import functional as F

from learnkit.all import Callback, CheckpointCallback, DataLoaders, EMACallback, GradientAccumulation, Learner, load_learner

x = torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
data = [(x[i:i+4], x[i:i+4].sum(1, keepdim=True)) for i in range(0, 20, 4)]

def learner(*cbs, **kw):
    torch.manual_seed(0)
    learn = Learner(DataLoaders(data, data), nn.Linear(4,1), F.mse_loss, lr=.1, cbs=cbs, **kw)
    learn.logger = lambda *a, **k: None
    return learn

def equal(a, b): return all(map(torch.equal, a.values(), b.values()))

@pytest.mark.parametrize('slow_first', (False, True))
@pytest.mark.parametrize('more', (list, lambda: [GradientAccumulation('2ba')]))
def test_each_equals_one_alone(slow_first, more):
    fast,slow = EMACallback(.5),EMACallback(.9, use=False)
    both,a,b = learner(*([slow, fast] if slow_first else [fast, slow]), *more()),learner(EMACallback(.5), *more()),learner(EMACallback(.9), *more())
    for l in (both, a, b): l.fit(2)
    assert equal(both.model.state_dict(), a.model.state_dict()) and equal(slow.averages, b.model.state_dict())
    assert both.recorder.history['valid_loss']==a.recorder.history['valid_loss']

def test_within_a_fit(tmp_path):
    "Inside `averaged()`, saves and validations use that average's weights"
    seen = []
    def look(cb):
        if cb.learn.training: return
        trained = {k:v.clone() for k,v in cb.learn.model.state_dict().items()}
        with slow.averaged() as learn:
            learn.save('slow', with_opt=False)
            seen.append((learn.validate()[0], F.mse_loss(learn.model(x), x.sum(1, keepdim=True)).item()))
            assert equal(torch.load(learn._make_file_path('slow')), slow.averages)
        assert equal(trained, cb.learn.model.state_dict()) and fast.run
    fast,slow = EMACallback(.5),EMACallback(.9, use=False)
    learner(fast, slow, Callback(after_epoch=look), path=tmp_path).fit(2)
    assert len(seen)==2
    for got,want in seen: assert got==pytest.approx(want, rel=1e-5)

def test_resumed(tmp_path):
    def stop(cb):
        if cb.learn.train_iter==7: raise KeyboardInterrupt
    cbs = [[EMACallback(.5), EMACallback(.9, use=False), CheckpointCallback('2ba')] for _ in range(3)]
    whole,first,second = (learner(*o, path=tmp_path/d) for o,d in zip(cbs, 'abb'))
    whole.fit(2)
    with pytest.raises(KeyboardInterrupt): first.fit(2, cbs=Callback(after_batch=stop))
    second.fit(2, resume='auto')
    for i in (0, 1): assert equal(cbs[0][i].averages, cbs[2][i].averages)
    assert equal(whole.model.state_dict(), second.model.state_dict())

def test_raises():
    with pytest.raises(ValueError, match='use=False'): learner(EMACallback(), EMACallback()).fit(1)

def test_an_exported_model_has_the_average_as_a_saved_one_does(tmp_path):
    def write(cb):
        if cb.train_iter==3: cb.learn.save('saved', with_opt=False); cb.learn.export('exported')
    learn = learner(EMACallback(.5), Callback(after_step=write), path=tmp_path)
    learn.fit(1)
    saved = nn.Linear(4, 1); saved.load_state_dict(torch.load(tmp_path/'models/saved.pth'))
    exported = load_learner(tmp_path/'models/exported.pth', nn.Linear(4, 1)).model
    assert equal(saved.state_dict(), exported.state_dict())

def test_no_average_stays_after_a_failed_save(tmp_path):
    "If a `before_save_model` handler raises, the trained weights return; the average used to stay in the model"
    checks = []
    class FailsToSave(Callback):
        order = 100
        def before_save_model(self): raise OSError('no room')
    def save(cb):
        trained = {k:v.clone() for k,v in cb.learn.model.state_dict().items()}
        with pytest.raises(OSError, match='no room'): cb.learn.save('x')
        checks.append((equal(trained, cb.learn.model.state_dict()), equal(trained, average.averages)))
    average = EMACallback(.5)
    learner(average, FailsToSave, Callback(after_train=save), path=tmp_path).fit(1)
    assert checks==[(True, False)] and not list(tmp_path.rglob('x.pth'))

@pytest.mark.parametrize('fails', [False, True])
@pytest.mark.parametrize('at_end', [False, True])
def test_a_save_within_a_validation_leaves_the_average_there(tmp_path, at_end, fails):
    "A save during validation leaves the average in the model; its end used to remove it"
    checks = []
    class FailsToSave(Callback):
        order = -100
        def before_save_model(self):
            if fails: raise OSError('no room')
    def save(cb):
        if cb.learn.training: return
        try: cb.learn.save('x')
        except OSError: pass
        checks.append(equal(average.averages, cb.learn.model.state_dict()))
    average = EMACallback(.5, at_end=at_end)
    learn = learner(average, FailsToSave, Callback(after_pred=save), path=tmp_path)
    learn.fit(1)
    n_in_fit = len(checks)
    learn.validate()
    assert n_in_fit and len(checks)==2*n_in_fit and all(checks)
