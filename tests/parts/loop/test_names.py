"No name that another library calls is taken in silence: it is refused with what to write here, or it is heard"
import json, re
from pathlib import Path
import pytest
from learnkit.all import Callback, event
from learnkit.loop.names import name_hint, names_in, other_libraries

every = [(lib,name) for lib in other_libraries for name in names_in(lib)]

def passes_theirs(self, trainer=None, state=None, logger=None): pass

@pytest.mark.parametrize('library,name', every)
def test_a_name_raises_or_is_called(library, name):
    if name in event: assert getattr(event, name) == names_in(library)[name].event or name.endswith('_train_batch')   # fired by `BatchEvents`, at another place
    else:
        with pytest.raises(TypeError, match=re.escape(f'`{name}` is an event')) as e: type('Theirs', (Callback,), {name:passes_theirs})
        o = names_in(library)[name]
        assert library in str(e.value) and (o.advice or f'`{o.event}`') in str(e.value)

@pytest.mark.parametrize('library,name', every)
def test_a_function_of_that_name_raises_too(library, name):
    if name in event: return
    with pytest.raises(TypeError, match='not an event'): Callback(**{name:lambda self: None})

@pytest.mark.parametrize('name', 'init close setup teardown initialize'.split())
def test_an_ordinary_word_may_be_a_method_of_ones_own(name):
    class Own(Callback): pass
    setattr(Own, name, lambda self: 'mine')
    assert getattr(type('Mine', (Callback,), {name:lambda self, n=1: 'mine'})(), name)() == 'mine'
    assert name_hint(name) is None

def test_events_that_exist():
    assert {o.event for lib in other_libraries for o in names_in(lib).values()} - {*event} == {''}
    assert all(o.advice or o.event for lib in other_libraries for o in names_in(lib).values())

def test_a_registered_event_may_have_such_a_name():
    event.register('on_my_epoch_end')
    class Mine(Callback):
        def on_my_epoch_end(self): pass

systems = {'Trainer':'Hugging Face', **{k:k for k in ('Keras','Lightning','Composer','fastNLP','pytorch-accelerated','skorch')}}
page = Path(__file__).resolve().parents[3]/'nbs/examples/coming_from.ipynb'

def rows():
    for c in json.loads(page.read_text(encoding='utf-8'))['cells']:
        for head,body in re.findall(r'^\| (.+) \| learnkit \|\n\|[-|]+\n((?:\|.*(?:\n|\Z))+)', ''.join(c['source']), re.M):
            for line in body.strip().splitlines(): yield head,*line.strip('| ').split(' | ')

def test_the_page_for_those_who_come_from_there_says_the_same():
    seen,wrong = set(),[]
    for head,theirs,ours in rows():
        lib = systems.get(head)
        known = names_in(lib) if lib else {}
        for name in {*re.findall(r'`(\w+)', theirs)} & {*known}:
            seen.add(lib)
            o = known[name]
            said = re.findall(r'`([\w.]+)', ours)
            if o.event and o.event not in said: wrong.append(f'{lib}: {name} is {o.event}, the page says {said}')
    assert not wrong, '\n'.join(wrong)
    assert seen >= {'Keras','Lightning','Composer','fastNLP','pytorch-accelerated','skorch'}
