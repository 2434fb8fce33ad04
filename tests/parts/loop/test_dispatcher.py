"""Callbacks that come and go, also while an event is called: names, keys, order, who still hears, and which error is raised"""
import copy, random, warnings
import pytest
from learnkit.loop.callback import Callback, is_called
from learnkit.loop.dispatcher import Dispatcher
from learnkit.loop.events import CancelBatch
import toys
from toys import at, learner, throw

class Named(Callback): pass
class Zed(Callback): pass

def test_names_and_keys():
    "The newest of a name is the attribute; keys count within the name alone; the one before is back when the newest goes"
    d,other = Dispatcher(),Zed()
    a,b,c = Named(),Named(),Named()
    d.add_cbs([other, a, b, c])
    assert [o.key for o in (other, a, b, c)]==['zed','named','named_2','named_3'] and d.named is c and d.zed is other
    d.remove_cb(b)
    assert d.named is c and b.learn is None and [*d.cbs]==[other, a, c]
    assert d.add_cb(e := Named()) is d and e.key=='named_2' and d.named is e
    d.remove_cbs([e, c])
    assert d.named is a
    d.remove_cb(Named)
    assert not hasattr(d, 'named') and [*d.cbs]==[other] and a.learn is None

def test_moved_from_another_learner_with_a_warning_at_the_line_of_the_caller():
    a,b,cb = Dispatcher(),Dispatcher(),Named()
    a.add_cb(cb)
    with pytest.warns(UserWarning, match='belonged to another Learner') as said: b.add_cbs(cb)
    assert said[0].filename==__file__ and cb.learn is b and not len(a.cbs) and not hasattr(a, 'named')
    with pytest.raises(ValueError, match='was added already'): b.add_cb(cb)
    odd = Named()
    odd.order = 'first'
    with pytest.raises(TypeError, match="`order` must be a number.*'first'"): b.add_cb(odd)
    assert [*b.cbs]==[cb] and odd.learn is None

def test_a_callback_may_set_its_learner_itself():
    "There was a warning that it belongs to another one"
    class Knows(Callback):
        def __init__(self, learn): self.learn = learn
    d = Dispatcher()
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        d.add_cb(Knows(d))
    assert d.knows.learn is d
    with pytest.raises(ValueError, match='was added already'): d.add_cb(d.knows)

WAYS = dict(add_cb=lambda l, cb: l.add_cb(cb), add_cbs=lambda l, cb: l.add_cbs([cb]), made=lambda l, cb: learner(cbs=cb), fit=lambda l, cb: l.fit(1, cbs=cb), validate=lambda l, cb: l.validate(cbs=cb))

@pytest.mark.parametrize('way', WAYS)
def test_warnings_of_a_learner_show_the_line_of_the_caller(way):
    "However many calls of the library are in between"
    class Counts(Callback):
        def __init__(self): self.epoch = 0
    with pytest.warns(UserWarning) as said: WAYS[way](learner(), learner(cbs=Zed()).zed); WAYS[way](learner(), Counts())
    told = [(w.filename in (__file__, toys.__file__), str(w.message)) for w in said]
    assert len(told)==2 and all(here for here,_ in told) and 'belonged to another Learner' in told[0][1] and 'has its own attribute `epoch`' in told[1][1]

def test_in_order_and_of_one_event():
    d = Dispatcher()
    late,early,deaf = Callback(before_fit=lambda self: 0),Callback(before_fit=lambda self: 0),Callback(after_fit=lambda self: 0)
    late.order,early.order = 2,-2
    d.add_cbs([late, deaf, early])
    assert [*d.ordered_cbs()]==[early, deaf, late] and [*d.ordered_cbs('before_fit')]==[early, late]

class All(Callback):
    def __init__(self): self.heard = []
    def __call__(self, name, **kw): self.heard.append(name)

def test_call_is_called_in_its_modes_only():
    learn,cb = learner(),All()
    cb.modes = 'validate'
    learn.fit(1, cbs=cb)
    assert cb.heard==[]
    learn.add_cb(cb).validate()
    assert cb.heard[0]=='before_evaluate' and cb.heard[-1]=='cleanup'

@pytest.mark.parametrize('call', [lambda d: d('before_fit'), lambda d: d._call_isolated('before_fit'), lambda d: d(['before_fit'])])
def test_removed_or_switched_off_in_the_middle(call):
    "By a handler of the same event: it is not called any more, and those behind it are"
    heard,d = [],Dispatcher()
    def cb(i, f=lambda: None):
        def say(self): heard.append(i); f()
        return Callback(before_fit=say)
    gone,off,last = cb('gone'),cb('off'),cb('last')
    def change(): d.remove_cb(gone); off.run = False
    d.add_cbs([cb('first', change), gone, off, last])
    call(d)
    assert heard==['first','last']
    call(d)
    assert heard==['first','last']*2

def test_isolated_raises_nothing_and_tells_all():
    "All are called; the first error is returned, the others are its notes; a given one stays the first"
    d,heard = Dispatcher(),[]
    def fail(e):
        def f(self): heard.append(e); raise e
        return Callback(cleanup=f)
    a,b = ValueError('a'),KeyError('b')
    d.add_cbs([fail(a), Callback(cleanup=lambda self: heard.append('between')), fail(b)])
    assert d._call_isolated('cleanup') is a and heard==[a,'between',b] and "`Callback` then failed in `cleanup`: KeyError: 'b'" in a.__notes__
    given = OSError('given')
    assert d._call_isolated('cleanup', given, reverse=True) is given and heard[3:]==[b,'between',a]
    assert [n.split(': ')[1] for n in given.__notes__]==['KeyError','ValueError']
    assert Dispatcher()._call_isolated('cleanup') is None

def test_a_cancel_of_what_has_just_ended_is_ignored():
    "In `after_batch` and `after_cancel_batch`; the other handlers are called"
    heard = []
    for ev in 'after_batch','after_cancel_batch':
        learner(n=1, nv=0).fit(1, cbs=[at('before_pred', throw(CancelBatch())), at(ev, throw(CancelBatch())), at(ev, lambda cb: heard.append(ev), order=1)])
    assert heard==['after_batch','after_cancel_batch']

def test_removed_in_a_run_it_cleans_up_and_has_no_learner():
    "With its Learner; what it raises is raised, with a note, and it is gone all the same"
    seen,d = [],Dispatcher()
    d.mode = 'fit'
    cb = Callback(cleanup=lambda self: seen.append(self.learn))
    d.add_cb(cb).remove_cb(cb)
    assert seen==[d] and cb.learn is None
    bad = Callback(cleanup=lambda self: throw(OSError('full'))())
    with pytest.raises(OSError) as e: d.add_cb(bad).remove_cb(bad)
    assert bad.learn is None and not len(d.cbs) and '`cleanup`' in e.value.__notes__[0]
    d.mode = None
    d.add_cb(cb).remove_cb(cb)
    assert seen==[d]

def test_added_in_the_middle_it_is_called_from_the_next_event_on():
    heard,d = [],Dispatcher()
    new = Callback(before_fit=lambda self: heard.append('new'))
    d.add_cb(Callback(before_fit=lambda self: new in d.cbs or d.add_cb(new) and None))
    d('before_fit')
    assert heard==[]
    d('before_fit')
    assert heard==['new']

@pytest.mark.parametrize('ev', ['before_fit','before_train'])
def test_a_callback_whose_set_up_fails_in_a_run_cleans_up(ev):
    "It is removed as well; an error in its `cleanup` is a note of the first one. Its hooks used to stay"
    calls = []
    def new(): return Callback(**{ev:lambda self: throw(OSError('set up'))(), 'cleanup':lambda self: calls.append(self.learn) or throw(KeyError('clean'))()})
    def add(cb):
        with pytest.raises(OSError) as e: cb.learn.add_cb(new())
        assert [note[:36] for note in e.value.__notes__]==['Exception occurred in `Callback` whe', '`Callback` then failed in `cleanup`:']
    learn = learner(n=1, nv=0)
    learn.fit(1, cbs=at('before_batch', add))
    assert calls==[learn] and 'callback' not in vars(learn)

def test_a_callback_added_in_a_run_may_remove_itself():
    "In `before_fit`: then `before_train` is not called"
    calls = []
    def leave(self): self.learn.remove_cb(self)
    new = Callback(before_fit=leave, before_train=lambda self: calls.append(self.learn))
    learner(n=1, nv=0).fit(1, cbs=at('before_batch', lambda cb: cb.learn.add_cb(new)))
    assert calls==[] and new.learn is None

@pytest.mark.parametrize('names', [['before_save_model','after_save_model'], ('before_save_model','after_save_model')])
def test_each_event_of_a_list_gets_the_arguments(names):
    got = []
    class Saves(Callback):
        def before_save_model(self, path=None): got.append(path)
        def after_save_model(self, **kwargs): got.append(kwargs)
    Dispatcher().add_cb(Saves())(names, path='here')
    assert got==['here', dict(path='here')]

def test_callbacks_of_an_unknown_event_raise():
    with pytest.raises(ValueError, match='no event `before_ft`: did you mean `before_fit`'): Dispatcher().ordered_cbs('before_ft')

def test_a_handler_that_is_deleted_in_a_run_is_not_called():
    "The class's own is called again; a patch that was undone in the middle of a run used to stay"
    calls = []
    class Own(Callback):
        def after_batch(self): calls.append('own')
    own = Own()
    def change(cb):
        if cb.learn.iter==1: own.after_batch = lambda: calls.append('patched')
        if cb.learn.iter==2: del own.after_batch
    learner(n=4, nv=0, cbs=own).fit(1, cbs=at('before_batch', change))
    assert calls==['own','patched','own','own']

@pytest.mark.parametrize('there,new', [(Named, Zed), (Zed, Named)])
def test_a_name_that_is_an_attribute_already_raises(there, new):
    "Also where there are callbacks of other names"
    d,name = Dispatcher().add_cb(there()),new().name
    setattr(d, name, 'not a callback')
    with pytest.raises(ValueError, match=f'would be reached as `learn.{name}`.*rename the class, for instance to My{new.__name__}'): d.add_cb(new())
    assert getattr(d, name)=='not a callback' and len(d.cbs)==1

def test_errors_of_an_isolated_event_say_where_they_were_raised():
    e = Dispatcher().add_cb(Callback(cleanup=lambda self: throw(OSError('full'))()))._call_isolated('cleanup')
    assert e.__notes__==['Exception occurred in `Callback` when calling event `cleanup`']

def test_who_has_left_in_the_middle_is_let_alone():
    "Also if it belongs to another one by then"
    a,b,cb = Dispatcher(),Dispatcher(),Callback()
    with a.added_cbs(cb):
        a.remove_cb(cb)
        b.add_cb(cb)
    assert cb.learn is b and b.callback is cb and not a.cbs and 'callback' not in vars(a)

@pytest.mark.parametrize('seed', range(20))
def test_stored_tables_equal_new_ones(seed):
    "Whatever is switched, in whichever order, between training and validation"
    rng,d,heard = random.Random(seed),Dispatcher(),[]
    def new():
        cb = Callback(before_fit=lambda self: heard.append(self), before_batch=lambda self: heard.append(self))
        cb.order,cb.run_train,cb.run_valid = rng.randrange(3),rng.random()<.7,rng.random()<.7
        return cb
    def switch(cb, k): setattr(cb, k, rng.random()<.5)
    def deafen(cb): cb.before_batch = None if rng.random()<.5 else lambda: heard.append(cb)
    d.add_cbs(new() for _ in range(3))
    for _ in range(300):
        cb = rng.choice(d.cbs)
        match rng.randrange(8):
            case 0: d.add_cb(new())
            case 1: len(d.cbs)>1 and d.remove_cb(cb)
            case 2: cb.order = rng.randrange(3)
            case 3: switch(cb, rng.choice(('run','run_train','run_valid')))
            case 4: cb.modes = rng.choice((None, 'fit', ('validate',)))
            case 5: deafen(cb)
            case 6: d.mode = rng.choice((None, 'fit', 'validate')); d._rebind()   # as a run does
            case 7: d.training = not d.training
        name = rng.choice(('before_fit','before_batch'))
        heard.clear()
        d(name)
        assert heard==[o for o in d.ordered_cbs(name) if is_called(o, name)]

def test_tables_are_kept_over_the_epochs(monkeypatch):
    "As long as nothing changes: one is for training, one for validation"
    asked,bind = [],Dispatcher._bind
    monkeypatch.setattr(Dispatcher, '_bind', lambda self, name: asked.append((self.epoch, self.training, name)) or bind(self, name))
    class Sets(Callback):
        def before_epoch(self): self.run_valid = self.epoch!=3
    learn = learner(cbs=Sets())
    learn.fit(7)
    first = [a[1:] for a in asked if a[0]<3]
    assert {e for e,*_ in asked}=={0,3,4,5,6} and len({*first})==len(first) and {n for e,_,n in asked if e==5}=={'before_epoch'} and {n for e,_,n in asked if e==6}=={'after_fit','cleanup'}

@pytest.mark.parametrize('gone', [[0], [1], [2], [2, 0], [0, 1], [1, 0, 2]])
def test_namesakes_that_are_removed_for_a_block_keep_their_keys_and_their_attribute(gone):
    "Whatever the order in which they are named; and what was added meanwhile gets a free key"
    class Same(Callback): pass
    d = Dispatcher().add_cbs([Same(), Same(), Same()])
    cbs,keys = list(d.cbs),[cb.key for cb in d.cbs]
    with d.removed_cbs([cbs[i] for i in gone]):
        left = [cb for i,cb in enumerate(cbs) if i not in gone]
        assert vars(d).get('same') is (left[-1] if left else None)
    assert list(d.cbs)==cbs and [cb.key for cb in d.cbs]==keys==['same', 'same_2', 'same_3'] and d.same is cbs[-1]
    with d.removed_cbs([cbs[i] for i in gone]): d.add_cb(new := Same())
    assert new.key==keys[min(gone)] and len({cb.key for cb in d.cbs})==4 and list(d.cbs)==[*cbs, new] and d.same is new
    d.remove_cbs([new, cbs[2]])
    assert d.same is cbs[1]
    d.remove_cb(Same)
    assert not d.cbs and 'same' not in vars(d)

def test_a_copy_gives_keys_as_the_original():
    class Same(Callback): pass
    d = Dispatcher().add_cbs([Same(), Same()])
    del d._lock
    again = copy.deepcopy(d)
    again._lock = None
    again.remove_cb(again.cbs[0]).add_cb(Same())
    assert [cb.key for cb in again.cbs]==['same_2', 'same'] and [cb.key for cb in d.cbs]==['same', 'same_2']
