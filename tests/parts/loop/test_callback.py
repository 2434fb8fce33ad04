"""What a callback is before anybody has set something, and what it says of names and handlers that cannot be meant"""
import copy, gc, pickle, warnings, weakref
from functools import wraps
from types import SimpleNamespace
import numpy as np, pytest, torch
from learnkit.loop.callback import Callback, handler_of, is_called, runs_in
from learnkit.callbacks.intervals import Every
from learnkit.loop.events import event
from toys import at, learner

RUN = [*event.declared[:event.declared.index('cleanup')+1], *event.also]   # by their other names too

def test_defaults():
    "In the middle of the order, called everywhere, there for nothing special: each is asked for by inference or by a resumed run"
    cb = Callback()
    assert (cb.order, cb.learn, cb.modes, cb.saves)==(0, None, None, ())
    assert (cb.run, cb.run_train, cb.run_valid)==(True,)*3
    assert (cb.single, cb.late, cb.first_in, cb.last_in)==(False, True, (), ())

@pytest.mark.parametrize('name', RUN)
def test_a_handler_with_an_argument_raises_where_it_is_defined(name):
    "At each event of a run, the last too; other events may have arguments"
    with pytest.raises(TypeError, match='is called with the callback only'): type('Two', (Callback,), {name: lambda self, learn: None})
    with pytest.raises(TypeError, match='is called with the callback only'): Callback(**{name: lambda: None})
    type('One', (Callback,), {name: lambda self, more=None: None})

def test_methods_that_are_no_handlers_may_do_what_they_like():
    class Helps(Callback):
        def pairs(self, n): yield from range(n)
        async def ask(self): return 1
    assert [*Helps().pairs(2)]==[0, 1]
    type('Saves', (Callback,), dict(before_save_model=lambda self, file, with_opt: None))

def test_one_public_name_is_proposed():
    class Has(Callback): weight,weights,_weigh = 1,2,3
    def said(name):
        with pytest.raises(AttributeError) as e: getattr(learner(cbs=(cb := Has())).remove_cb(cb) and cb, name)
        return str(e.value)
    assert said('weigth').count('did you mean')==1 and said('weigth').endswith('did you mean `weight`?')
    assert said('_weig').endswith('`Has` has no attribute `_weig` (and belongs to no Learner yet, whose attributes it would read): did you mean `weight`?')

def test_the_warning_of_a_hidden_attribute_shows_the_line():
    "Not one of learnkit: else nobody finds it"
    cb = Callback()
    learner(cbs=cb)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter('always')
        cb.model = None
    assert [(w.filename, 'shadowing' in str(w.message)) for w in said]==[(__file__, True)]

@pytest.mark.parametrize('learn', [None, SimpleNamespace(), SimpleNamespace(training=True)])
def test_called_by_hand_it_trains(learn):
    "Without a Learner, or with another object in its place, `run_train` decides"
    cb = Callback(before_batch=lambda self: 'heard')
    cb.learn = learn
    cb.run_valid = False
    assert cb('before_batch')=='heard'
    cb.run_train = False
    assert cb('before_batch') is None and is_called(cb, 'before_fit')

def test_it_prints_what_it_was_given():
    "And not what is as ever; as it is now; whatever the settings are, at a glance: no tensor is read, no list written out"
    class Blends(Callback):
        def __init__(self, share, every='1ep', weights=None, items=(), f=max): self.share,self.every,self.weights,self.items,self.f = share,Every(every),weights,items,f
    cb = Blends(.5)
    assert repr(cb)=='Blends(share=0.5)'
    cb.share,cb.every = 1.,Every('20ba')
    assert repr(cb)=="Blends(share=1.0, every='20ba')"
    class Unreadable(torch.Tensor):
        def __repr__(self, **kw): raise AssertionError('read')
    cb.weights,cb.items,cb.f = torch.ones(3, 4).as_subclass(Unreadable),range(10**9),lambda: 0
    cb.items = [*range(10**4)]
    assert repr(cb)=="Blends(share=1.0, every='20ba', weights=Unreadable (3, 4), items=list of 10000, f=<lambda>)"
    assert repr(Callback(before_fit=lambda self: 0))=='Callback'

def test_a_missing_attribute_can_be_sent_to_another_process():
    "As the message, whatever the callback and its Learner hold"
    cb = Callback(before_fit=lambda self: 0)
    learner(cbs=cb)
    with pytest.raises(AttributeError) as e: cb.modell
    for got in pickle.loads(pickle.dumps(e.value)), copy.copy(e.value): assert type(got) is AttributeError and str(got)==str(e.value) and 'did you mean `model`' in str(got)

def test_a_name_with_a_capital_is_proposed():
    class Has(Callback): Weight = 1
    with pytest.raises(AttributeError, match='did you mean `Weight`'): Has().Weigth

def test_switches_are_true_or_false():
    "0 and 1 too, and those of NumPy; nothing else"
    cb = Callback()
    for k in 'run','run_train','run_valid':
        for v in (True, False, 0, 1, np.True_): setattr(cb, k, v); assert getattr(cb, k) is v
        for v in (-1, 2, None, 'no', .5):
            with pytest.raises(TypeError, match=f'`{k}` says whether a Callback is called'): setattr(cb, k, v)

@pytest.mark.parametrize('modes', [None, property(lambda self: ('fit',)), 'fit', ('fit','sanity'), ['lr_find'], {'predict'}])
def test_modes(modes):
    "All; those that a property gives; one; several. Of others is said which there are"
    cb = type('Some', (Callback,), dict(modes=modes))()
    assert runs_in(cb, 'fit')==(modes is None or isinstance(modes, property) or 'fit' in modes)
    for bad in ('train', ['fit','train'], {'train'}):
        with pytest.raises(ValueError, match="Bad.modes contains .train., which is not a mode: the modes are 'fit', 'validate'"): type('Bad', (Callback,), dict(modes=bad))
        with pytest.raises(ValueError, match='Some.modes contains'): Callback.__setattr__(type('Some', (Callback,), {})(), 'modes', bad)
    with pytest.raises(TypeError, match=r"Bad.modes must be a tuple of modes such as \('fit',\), not 3"): type('Bad', (Callback,), dict(modes=3))

@pytest.mark.parametrize('k,value,said', [
    ('saves', 'best', "must be a tuple of names, not text: write `saves = .'best',.`"),
    ('first_in', 'after_step', "must be a tuple of events, not text: write `first_in = .'after_step',.`"),
    ('last_in', ('after_stop',), "contains 'after_stop', which is not an event: did you mean `after_step`")])
def test_a_declaration_with_a_slip_raises_where_it_is_made(k, value, said):
    "Text instead of a tuple was read letter by letter, at the first checkpoint; an unknown event was never reached"
    with pytest.raises(TypeError, match=f'Bad.{k} {said}'): type('Bad', (Callback,), {k:value})

def test_names_that_a_callback_needs_itself():
    "`self.name = name` raised only that a property has no setter, and `self.wrap = True` at the first batch that bool is not callable"
    class Named(Callback):
        def __init__(self, name): self.name = name
    with pytest.raises(AttributeError, match="holds a Named, 'named': give your attribute another name"): Named('x')
    class Wraps(Callback):
        def __init__(self): self.wrap = True
    with pytest.raises(TypeError, match='`wrap` is a method of callbacks.*but Wraps has True'): learner(cbs=Wraps()).fit(1)

def test_switched_off_it_gets_the_cleanup_only():
    "Not an event of one's own either, whatever its name"
    cb = Callback()
    cb.run = False
    assert is_called(cb, 'cleanup') and not any(is_called(cb, e) for e in ('zz_own_event', 'before_fit', 'after_batch'))

def test_what_a_handler_contains_is_reported():
    with pytest.raises(TypeError, match='contains `yield`'):
        class Yields(Callback):
            def before_fit(self): yield
    with pytest.raises(TypeError, match='contains `await`'):
        class Awaits(Callback):
            async def before_fit(self): pass

def test_a_name_of_the_learner_is_proposed():
    with pytest.raises(AttributeError, match='train_iter'): learner(cbs=at('before_fit', lambda cb: cb.trian_iter)).fit(1)

def test_a_handler_may_have_the_other_name_of_its_event():
    class Named(Callback):
        def after_cancel_valid(self): pass
    given = Callback(after_cancel_valid=lambda self: None)
    assert handler_of(Named(), 'after_cancel_validate') and handler_of(given, 'after_cancel_validate')

def test_each_handler_takes_its_arguments():
    "A method, one of a single callback, a decorated one, one that takes any; and no function outlives its callback"
    event.register('zz_told')
    def logged(f): return wraps(f)(lambda *args, **kwargs: f(*args, **kwargs))
    class Takes(Callback):
        def zz_told(self, b, a=0): heard.append((a, b))
    class Wrapped(Callback):
        @logged
        def zz_told(self, b): heard.append(b)
    class Any(Callback):
        def zz_told(self, **kw): heard.append(kw)
    class Hears(Callback):
        def __call__(self, name, **kw): heard.append((name, kw))
    class Odd:
        __slots__,__hash__ = (),None   # neither a key nor weakly referenced
        def __call__(self, cb, b): heard.append(b)
    learn,told = learner(),dict(a=1, b=2, c=3)
    for cb,want in ((Takes(), [(1, 2), (0, 2)]), (Wrapped(), [2, 2]), (Any(), [told, dict(b=2)]), (Hears(), [('zz_told', told), ('zz_told', dict(b=2))]),
                    (Callback(zz_told=lambda self, c=5: heard.append(c)), [3, 5]), (Callback(zz_told=Odd()), [2, 2]), (Callback(zz_told=lambda self: heard.append(None)), [None, None])):
        heard = []
        with learn.added_cbs(cb): learn('zz_told', **told); learn('zz_told', b=2)
        assert heard==want, cb
    ref = weakref.ref((f := lambda self, a: None))
    with learn.added_cbs(Callback(zz_told=f)): learn('zz_told', **told)
    del f, cb
    gc.collect()
    assert ref() is None

def test_what_a_missing_attribute_says():
    "Also where it is made again with a text, as some decorators do; what a batch sets is not called a slip of the pen"
    cb = Callback()
    learner(cbs=cb)
    with pytest.raises(AttributeError) as e: cb.losss
    assert str(e.value).endswith('did you mean `loss`?') and str(type(e.value)('in words'))=='in words' and str(type(e.value)())==''
    for k in ('x','xb','pred','loss_grad'):
        for o in (cb, cb.learn):
            with pytest.raises(AttributeError, match='yet: a run sets it$'): getattr(o, k)

def test_an_attribute_named_like_a_callback_shadows_nothing():
    "`learn.count` was the callback `Count` itself, of which nobody knows"
    class Count(Callback):
        count = 0
        def after_batch(self): self.count += 1
    learn = learner(cbs=[Count()])
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        learn.fit(1)
    assert learn.cbs[-1].count and isinstance(learn.count, Count)

@pytest.mark.parametrize('state,said', [
    (dict(a=1), 'missing b'), (dict(a=1, b=2, c=3), 'unexpected c'), (dict(c=3, a=1), 'missing b; unexpected c')])
def test_a_state_with_other_names_says_which(state, said):
    class Two(Callback): a,b,saves = 0,0,('a','b')
    with pytest.raises(ValueError, match=f'this is not the state of a Two: {said}$'): Two().load_state_dict(state)

def test_the_state_is_the_callbacks_own():
    "Not an attribute of the model with the same name, into which `load_state_dict` used to write"
    class Averages(Callback): saves = 'ema',
    learn,cb = learner(),Averages()
    learn.model.ema = torch.nn.Linear(1, 1)
    learn.add_cb(cb)
    with pytest.raises(AttributeError, match="'Averages' object has no attribute 'ema'"): cb.state_dict()
    before = learn.model.ema.weight.detach().clone()
    cb.load_state_dict(dict(ema=torch.nn.Linear(1, 1).state_dict()))
    assert torch.equal(learn.model.ema.weight, before) and {*cb.ema}=={'weight','bias'}
