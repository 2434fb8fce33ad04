"""A run that is stopped and resumed ends like one that was not stopped, also where an epoch ends otherwise than by its last batch."""
import pytest

from learnkit.all import Callback
from learnkit.control.stop_after import StopAfter
from test_resume import assert_same, end, fit, learner, stopped
from toys import slow

def dies(event, n=1):
    "Ends the run when `event` happens for the `n`th time"
    seen = []
    def crash(self, **kwargs):
        if self.learn.mode!='fit': return
        seen.append(event)
        if len(seen)==n: raise SystemError('the power failed')
    cb = Callback(**{event:crash})
    cb.order,cb.observes = 10_000,True
    return cb

def check(tmp_path, crash, *cbs, n=3, **kwargs):
    straight = end(fit(learner(tmp_path/'a', cbs, **kwargs), n))
    assert_same(straight, end(stopped(lambda: learner(tmp_path/'b', cbs, **kwargs), crash, n=n)))
    return straight

@pytest.mark.parametrize('event', ['after_train', *slow('before_validate', 'after_validate'), 'after_epoch', *slow('after_fit')])
def test_stopped_within_an_epoch(event, tmp_path):
    "A fit that was stopped in the middle of an epoch and then killed in its validation: the row of that epoch was lost"
    straight = check(tmp_path, dies(event, 1 if event=='after_fit' else 2), lambda: StopAfter('13ba'), every='1ba')
    assert straight['train_iter']==13 and len(straight['history'])==2
