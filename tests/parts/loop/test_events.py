"""The words about unknown names, the levels of the events, and which exceptions are Cancels"""
import pytest
from learnkit.loop.callback import accepted_kwargs
from learnkit.loop.events import Cancel, CancelBatch, CancelFit, CancelStep, Events, cancel_types, cancelled, event, nearest

@pytest.mark.parametrize('n,end', [(1, 'name_0'), (40, ', name_39'), (41, ', name_39 and 1 more'), (45, ', name_39 and 5 more')])
def test_what_is_known_if_nothing_is_near(n, end):
    "At most forty names, and how many are left out"
    said = nearest('zzz', (f'name_{i}' for i in range(n)))
    assert said.startswith('known are: name_0') and said.endswith(end) and said.count('name_')==min(n, 40)

def test_one_name_is_proposed_and_no_far_one():
    assert nearest('befor_batch', event)=='did you mean `before_batch`?'
    assert nearest('abxx', ['abcd'])=='did you mean `abcd`?' and nearest('axxx', ['abcd'])=='known are: abcd'
    assert nearest(3, ['x'])=='known are: x'

def test_a_table_has_levels_by_two_spaces():
    ev = Events("""
outer     begins
  middle  is inside
    inner is inside of that
      low   of a batch  
      lone""")
    assert ev.depth==dict(outer=0, middle=1, inner=2, low=3, lone=3) and ev.docs['low']=='of a batch' and ev.declared==('outer','middle','inner','low','lone')
    assert [k in ev.in_batch for k in ('outer','inner','low','no_event')]==[False, False, True, False]
    assert [*ev]==[*ev.docs] and 'low' in ev and 'no_event' not in ev and ev.low=='low'
    first,*_,last,lone = repr(ev).splitlines()
    assert first=='outer' + ' '*25 + 'begins' and last=='      low' + ' '*21 + 'of a batch' and lone=='      lone' and all(l.rstrip()==l for l in repr(ev).splitlines())

def test_registering():
    "A second time changes nothing; names of methods, and what is no name, are refused"
    ev = Events('one first')
    assert ev.register('two', 'second', depth=3)=='two' and 'two' in ev.in_batch and ev.depth['two']==3
    assert ev.register('two', 'other')=='two' and ev.docs['two']=='second' and ev.depth['two']==3
    assert ev.declared==('one',) and ev.two=='two' and ev.register('three') and (ev.docs['three'], ev.depth['three'])==('', 0)
    ev.register('half', after='one', fired_by='Maker')
    assert [*ev]==['one','half','two','three'] and ev.fired_by=={'one':'', 'half':'Maker', 'two':'', 'three':''}
    with pytest.raises(ValueError, match='did you mean `three`'): ev.register('four', after='thre')
    assert 'four' not in ev
    for bad in ('register', 'in_batch', '1st', 'a b', ''):
        with pytest.raises(ValueError, match="must be a Python identifier that is not in use, such as 'before_sanity', not"): ev.register(bad)
    ev.alias('uno', 'one')
    assert (ev.uno, ev.also, 'uno' in ev)==('one', {'uno':'one'}, False)
    with pytest.raises(ValueError, match='there is no event `onne`: did you mean `one`'): ev.alias('due', 'onne')
    with pytest.raises(AttributeError, match='there is no event `twoo`: did you mean `two`'): ev.twoo
    with pytest.raises(AttributeError, match='there is no event `docs`'): object.__new__(Events).docs

def test_which_exceptions_are_cancels():
    "By the names of a class and of its bases; the words say which scope ends, unless a reason is given"
    assert str(CancelBatch())=='CancelBatch ends `batch`' and CancelBatch('why', 2).args==('why', 2)
    Foreign = type('CancelBatchException', (Exception,), {})
    Both = type('Both', (CancelStep, CancelFit), {})
    assert cancel_types(Foreign())==[CancelBatch] and cancel_types(Both())==[CancelStep, CancelFit] and cancel_types(ValueError())==[] and cancel_types(Cancel())==[]
    assert cancelled(CancelBatch)==()
    for e,kinds in (Foreign(), [CancelBatch]), (Both(), [CancelStep, CancelFit]), (CancelFit(), [CancelFit]), (KeyError(), []):
        try: raise e
        except Exception: assert [k for k in Cancel.__subclasses__() if cancelled(k)==type(e)]==kinds and all(cancelled(k) in (type(e), ()) for k in Cancel.__subclasses__())

def test_a_handler_takes_the_arguments_that_it_names():
    given = dict(a=1, b=2)
    assert accepted_kwargs(lambda: 0, {})=={} and accepted_kwargs(lambda a: 0, given)=={'a':1} and accepted_kwargs(lambda b, c=3: 0, given)=={'b':2}
    assert accepted_kwargs(lambda **kw: 0, given)==given and accepted_kwargs(lambda a, **kw: 0, given)==given

def test_each_scope_has_its_events():
    "A Cancel is caught by its scope, between `before_` and `after_`"
    scopes = {c.__name__:c.scope for c in Cancel.__subclasses__() if c.__module__==Cancel.__module__}
    assert scopes==dict(CancelBatch='batch', CancelBackward='backward', CancelStep='step', CancelZeroGrad='zero_grad', CancelTrain='train', CancelValid='validate', CancelEpoch='epoch', CancelFit='fit')
    assert all(f'{when}_{s}' in event for s in scopes.values() for when in ('before','after','after_cancel'))
