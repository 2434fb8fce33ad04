"Classes of other libraries that need their own trainer raise when added; the error suggests code that exists"
import importlib, inspect, re
import pytest
import learnkit.all
from learnkit.all import Learner, nn
from learnkit.loop.names import adapters

PACKAGES = {module:package for package,module in adapters.items() if package!='pytorch_lightning'}

def all_advice():
    for module,package in PACKAGES.items():
        cls, = [c for k,c in vars(importlib.import_module(f'learnkit.contrib.{module}')).items()
                if inspect.isclass(c) and 'replaced_by' in vars(c) and c.__module__.endswith(module)]
        yield from ((package, name, advice, cls.library) for name,advice in cls.replaced_by.items())

ADVICE = [*all_advice()]

@pytest.mark.parametrize('package,name,advice,library', ADVICE, ids=[f'{p}-{n}' for p,n,*_ in ADVICE])
def test_raises_when_added(package, name, advice, library):
    theirs = type(name, (), dict(__module__=f'{package}.callbacks', on_epoch_end=lambda *args: None))
    users = type('Mine', (theirs,), {})   # as a user's subclass
    data = [(learnkit.all.torch.randn(4, 2), learnkit.all.torch.zeros(4, 1))]
    for make in (theirs, users):
        with pytest.raises(TypeError) as e: Learner((data, data), nn.Linear(2, 1), nn.MSELoss(), cbs=[make()])
        message = str(e.value)
        assert message.startswith(f'`{name}` of {library} works only in') and advice in message

@pytest.mark.parametrize('advice', sorted({a for _,_,a,_ in ADVICE}))
def test_the_suggested_code_exists(advice):
    for code in re.findall('`([^`]+)`', advice):
        call = code.partition('(')[0]
        owner = {'learn':Learner}.get(call.split('.')[0], learnkit.all)
        found = owner
        for part in call.split('.')[1:] if owner is Learner else call.split('.'): found = getattr(found, part)
        assert callable(found)

def test_each_library_has_such_classes():
    assert {p for p,*_ in ADVICE}=={*PACKAGES.values()}
