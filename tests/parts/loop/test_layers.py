"Whatever a callback puts in the place of the loss, the logger, the model, the data or the optimizer is a layer: every pair, put on and taken off in every order, and what is called is looked at, not what is set"
import contextlib, copy, itertools, pickle
from itertools import permutations

import pytest, torch, torch.nn.functional as F
from hypothesis import example, given, strategies as st
from torch import nn

from learnkit.all import *
from learnkit.loop.current_run import HasRun, wrap_attr, layered, replace_attr, remove_layer
from learnkit.loop.run import _switch_to
from toys import at, batches, draws, few, learner, weights

torch.set_num_threads(1)

# the mechanism, against a model of it: a list

kinds = st.sampled_from(['place','over','assign','again','off','run','end'])
@pytest.mark.parametrize('name', layered)
@given(st.lists(st.tuples(kinds, st.integers(0, 9)), max_size=25))
@example(steps=[('over', 0), ('run', 0), ('over', 0), ('again', 0), ('end', 0)])   # wrapped in both runs, assigned in the inner one
@draws(30)
def test_as_a_list_says(name, steps):
    """What is assigned counts until another is; of those in its place the last; around it all that lies over it, in their order;
    a run inside begins with the same, and what is assigned in it to the model, the data or the optimizer lasts; what is assigned
    to itself stays as it is, but that what had its place is there for good"""
    learn = HasRun()
    base = lambda: 'own'
    setattr(learn, name, base)
    lasts = name in ('model','dls','opt')
    runs,made = [(base,[])],[]
    def assign(f):
        changed = range(len(runs)) if lasts else [len(runs)-1]
        for i in changed: runs[i] = f,[o for o in runs[i][1] if o[0]=='over']
    def expected():
        own,layers = runs[-1]
        f = own
        for kind,_,value in layers: f = value if kind=='place' else f
        res = f()
        for kind,_,value in layers: res = f'{value}({res})' if kind=='over' else res
        return res
    def over(name): return lambda below: lambda: f'{name}({below()})'
    for i,(kind,n) in enumerate(steps):
        own,layers = runs[-1]
        if kind=='place':
            f = lambda i=i: f'p{i}'
            made.append(replace_attr(learn, name, f)); runs[-1] = own,[*layers, ('place',made[-1],f)]
        elif kind=='over':
            made.append(wrap_attr(learn, name, over(f'o{i}'))); runs[-1] = own,[*layers, ('over',made[-1],f'o{i}')]
        elif kind=='assign':
            f = lambda i=i: f'a{i}'
            setattr(learn, name, f); assign(f)
        elif kind=='again':
            places = [value for place,_,value in layers if place=='place']
            setattr(learn, name, getattr(learn, name)); assign(places[-1] if places else own)
        elif kind=='off' and made:
            layer = made[n%len(made)]
            remove_layer(learn, layer)
            runs = [(own,[o for o in layers if o[1] is not layer]) for own,layers in runs]
        elif kind=='run':
            _switch_to(learn, learn.current_run.begin('validate')); runs.append((own,list(layers)))
        elif kind=='end' and len(runs)>1:
            _switch_to(learn, learn.current_run.outer); runs.pop()
        assert getattr(learn, name)()==expected()

# every pair of what replaces or wraps a loss

calls = []
class Named:
    "A loss that notes its calls; with class targets"
    def __init__(self, name): self.name = name
    def __call__(self, pred, targ, reduction='mean'):
        calls.append((self.name, reduction))
        return F.cross_entropy(pred, targ, reduction=reduction)

X,Y = torch.randn(6, 8, 4, generator=torch.Generator().manual_seed(0)),torch.randint(3, (6, 8), generator=torch.Generator().manual_seed(1))
def data(): return CombinedLoader(dict(a=[(X[i], Y[i]) for i in (0,2,4)], b=[(X[i], Y[i]) for i in (1,3,5)]), order='in_turn')

class Halved(Callback):
    "A layer of the user's"
    run_valid,order = False,30
    def before_train(self): self.layer = wrap_attr(self.learn, 'loss_func', self.halved)
    def halved(self, below): return HalvedLoss(below)
    def cleanup(self): remove_layer(self.learn, self.layer)
class HalvedLoss(partial):
    def __call__(self, *args, **kw): return super().__call__(*args, **kw)/2

PLACE = dict(turns=lambda: InTurn(opt=Named('turn')), each=lambda: EachLoader(dict(a=Named('of a'))), none=lambda: None)
OVER  = dict(mixup=lambda: MixUp(.4), mine=Halved, none=lambda: None)
NOISE = dict(weighed=lambda: at('after_loss', losses_of_items, lambda cb: cb.training), validates=lambda: at('after_batch', lambda cb: cb.learn.validate(), lambda cb: cb.training and cb.mode=='fit'),
             changes=lambda: at('before_epoch', lambda cb: setattr(cb.learn, 'loss_func', Named('later')), lambda cb: cb.epoch==1), none=lambda: None)
def losses_of_items(cb):
    n = len(calls)
    with cb.learn.loss_not_reduced(): cb.learn.loss_func(cb.pred.detach(), *cb.yb)
    del calls[n:]

def new(*cbs, own='own'):
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    return Learner(DataLoaders(data(), [(X[0], Y[0])]), model, Named(own), {'opt':(torch.optim.SGD, '*')}, lr=.1, cbs=[o for o in cbs if o is not None])

def fit(*cbs, n=2):
    learn = new(*cbs)
    torch.manual_seed(1); calls.clear()
    with learn.no_bar(), learn.no_logging(): learn.fit(n)
    return learn,list(calls)

def expected_calls(place, over, noise):
    "Of each training batch: the loss whose turn it is; twice, and for each sample, where it is mixed; then the validation, with the Learner's own"
    res = []
    for epoch in range(2):
        own = 'later' if noise=='changes' and epoch==1 else 'own'
        for i in range(6):
            name = 'turn' if place=='turns' else 'of a' if place=='each' and i%2==0 else own
            res += [(name, 'none')]*2 if over=='mixup' else [(name, 'mean')]
            if noise=='validates': res.append((own, 'mean'))
        res.append((own, 'mean'))
    return res

@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('place,over,noise', itertools.product(PLACE, OVER, NOISE))
def test_every_pair_calls_what_it_should(place, over, noise):
    learn,called = fit(PLACE[place](), OVER[over](), NOISE[noise]())
    assert called==expected_calls(place, over, noise)
    assert isinstance(learn.loss_func, Named) and not learn.current_run.layers

@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('place', ['turns','each'])
def test_mixed_as_by_hand(place):
    "The gradient is that of the mixed loss of each batch"
    learn,_ = fit(PLACE[place](), MixUp(.4), n=1)
    plain,_ = fit(MixUp(.4), n=1)   # the same loss by another name
    assert torch.equal(weights(learn), weights(plain))
    unmixed,_ = fit(PLACE[place](), n=1)
    assert not torch.equal(weights(learn), weights(unmixed))

@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('order', list(permutations(range(3))))
@pytest.mark.parametrize('when', [1, 3])
def test_removed_in_the_middle_in_every_order(order, when):
    "Callbacks removed in the middle of a fit, one batch after the other"
    cbs = [MixUp(.4), Halved(), EachLoader(dict(a=Named('of a')))]
    removed = []
    def take(cb):
        i = cb.learn.train_iter-when
        if cb.training and 0<=i<3: cb.learn.remove_cb(cbs[order[i]]); removed.append((len(calls), order[i]))
    learn,called = fit(*cbs, at('after_batch', take, order=90), n=1)
    want = []
    for i in range(6):
        gone = {order[j] for j in range(3) if i>=when+j}
        name = 'of a' if 2 not in gone and i%2==0 else 'own'
        want += [(name, 'none')]*2 if 0 not in gone else [(name, 'mean')]
    assert called==[*want, ('own', 'mean')] and len(removed)==3
    assert isinstance(learn.loss_func, Named)

@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('event', ['before_fit','before_batch','after_batch'])
@pytest.mark.parametrize('cbs', [lambda: [], lambda: [EachLoader()], lambda: [EachLoader(dict(b=Named('of b')))], lambda: [MixUp(.4)]])
def test_a_loss_that_is_assigned_in_a_fit_counts(event, cbs):
    "A curriculum changes the loss of the fit, whatever lies over it"
    def change(cb):
        if cb.train_iter==2 or event=='before_fit': cb.learn.loss_func = Named('new')
    _,called = fit(*cbs(), at(event, change, lambda cb: cb.mode=='fit' and (cb.training or event=='before_fit'), order=-30), n=1)
    names = [name for name,_ in called]
    assert names[-1]=='new' and ('own' in names)==(event!='before_fit')

# loggers

@pytest.mark.parametrize('order', list(permutations(range(3))))
def test_loggers_in_every_order(order):
    "Silence and bars, put on and taken off in every order: what is called is the topmost"
    rows = []
    learn = learner()
    learn.logger = own = lambda row: rows.append(('own', row))
    from learnkit.loop.run import null_logger
    table = lambda row: rows.append(('table', row))
    layers = [wrap_attr(learn, 'logger', lambda below: null_logger), replace_attr(learn, 'logger', table), wrap_attr(learn, 'logger', lambda below: lambda row: below(f'<{row}>'))]
    left = set(range(3))
    for i in order:
        remove_layer(learn, layers[i]); left.discard(i); rows.clear()
        learn.logger('r')
        text = '<r>' if 2 in left else 'r'
        assert rows==([] if 0 in left else [('table' if 1 in left else 'own', text)])
    assert learn.logger is own

def test_silence_in_a_fit_ends_with_its_block():
    rows = []
    class Quiet(Callback):
        "Silence for the row of epoch 1, under a table or without"
        order = 40
        def before_epoch(self):
            if self.epoch==1: self.block = self.learn.no_logging(); self.block.__enter__()
        def before_train(self):
            if self.epoch==2: self.block.__exit__(None, None, None)
    learn = learner(cbs=Quiet())
    learn.remove_cb(ProgressCallback)
    learn.logger = rows.append
    learn.fit(4)
    assert [row[0] for row in rows]==[0, 2, 3]

def test_a_bar_that_is_removed_in_a_fit_leaves_the_logger():
    rows = []
    learn = learner()
    learn.logger = rows.append
    learn.fit(3, cbs=at('after_epoch', lambda cb: cb.learn.remove_cb(ProgressCallback), lambda cb: cb.epoch==0, order=99))
    assert len(rows)==2 and learn.logger==rows.append

def test_a_learner_in_a_block_is_pickled_and_copied():
    learn = learner()
    with learn.no_logging(): again = [pickle.loads(pickle.dumps(learn)), copy.deepcopy(learn)]
    for o in again: o.fit(1)

# who notes what is there and puts it back later, as callbacks of other libraries do

class Notes(Callback):
    "Replaces the loss of training for the second epoch, and puts back what it has noted"
    order = 60
    def before_batch(self):
        if self.epoch==1 and self.training and self.iter==2: self.old,self.learn.loss_func = self.learn.loss_func,Named('other')
        if self.epoch==1 and self.training and self.iter==4: self.learn.loss_func = self.old

@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('over', OVER)
def test_what_was_noted_and_put_back_is_laid_over_once(over):
    _,called = fit(Notes(), OVER[over]())
    names = ['own']*7 + ['own','own','other','other','own','own'] + ['own']
    assert [name for name,_ in called]==[name for i,name in enumerate(names) for _ in range(2 if over=='mixup' and i not in (6, 13) else 1)]

class Wraps:
    "A loss of the user's, around the one that it is given"
    def __init__(self, f): self.f = f
    def __call__(self, *args, **kw): return self.f(*args, **kw)
def closure(f): return lambda *args, **kw: f(*args, **kw)
class Module(nn.Module):
    def __init__(self, f): super().__init__(); self.f = f
    def forward(self, *args, **kw): return self.f(*args, **kw)

@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('wrap', [Wraps, partial, Module, lambda f: Wraps(f).__call__])
def test_what_would_lie_over_itself_raises(wrap):
    "A loss around the mixed loss would be mixed twice, silently; one around the loss below is mixed once"
    with pytest.raises(ValueError, match='contains the current wrapped'):
        fit(MixUp(.4), at('before_batch', lambda cb: setattr(cb.learn, 'loss_func', wrap(cb.learn.loss_func)), lambda cb: cb.training and cb.train_iter==2, order=50))
    if wrap is not Module:   # a loss that is a module must say whether it has a loss for each sample
        right,_ = fit(MixUp(.4), at('before_batch', lambda cb: setattr(cb.learn, 'loss_func', WithReduction(cb.learn.current_run.assigned_value('loss_func'))), lambda cb: cb.training and cb.train_iter==2, order=50))
        plain,_ = fit(MixUp(.4))
        assert torch.equal(weights(right), weights(plain))

@pytest.mark.filterwarnings('ignore')
def test_a_closure_around_the_mixed_loss_fails():
    "What is in a closure is not looked for: the mixed loss finds that it would call itself, and says what to write"
    with pytest.raises(ValueError, match=r'the mixed loss of MixUp, which calls it again. Call `learn.current_run.assigned_value'):
        fit(MixUp(.4), at('before_batch', lambda cb: setattr(cb.learn, 'loss_func', closure(cb.learn.loss_func)), lambda cb: cb.training and cb.train_iter==2, order=50))

class WithReduction(Wraps):
    def __call__(self, pred, targ, reduction='mean'): return self.f(pred, targ, reduction=reduction)

# the model, the data and the optimizer

class Around(nn.Module):
    "A model in a wrapper that counts its calls"
    def __init__(self, module): super().__init__(); self.module,self.n = module,0
    def forward(self, x): self.n += 1; return self.module(x)

class Lays(Callback):
    "Lays something over an attribute, or in its place, for a part of a fit"
    def __init__(self, name, how, value, first, end): self.name_,self.how,self.value,self.first,self.end,self.layer = name,how,value,first,end,None
    def before_epoch(self):
        if self.epoch==self.first: self.layer = self.how(self.learn, self.name_, self.value)
        if self.epoch==self.end: remove_layer(self.learn, self.layer)
    def cleanup(self): remove_layer(self.learn, self.layer)

def first_half(dls): return DataLoaders(dls.train[:len(dls.train)//2], dls.valid)
def without_one(dls): return DataLoaders(dls.train[1:], dls.valid)
@few(14)
@pytest.mark.parametrize('a', [(1,3), (1,5), (2,3)])
@pytest.mark.parametrize('b', [(1,3), (2,4), (2,5)])
@pytest.mark.parametrize('assigns', [None, 2, 3])
@pytest.mark.parametrize('fails', [False, True])
def test_layers_of_the_data_in_every_order(a, b, assigns, fails):
    "Each epoch has the batches of the data that is assigned, with what lies over it then; afterwards the Learner has what was assigned"
    n_batches,own = [],dict(first=DataLoaders(batches(8), batches(1)), later=DataLoaders(batches(4), batches(1)))
    def assign(cb):
        if cb.epoch==assigns: cb.learn.dls = own['later']
        if cb.epoch==4 and fails: raise KeyError('stop')
    learn = learner(dls=own['first'], cbs=[Lays('dls', wrap_attr, first_half, *a), Lays('dls', wrap_attr, without_one, *b), at('before_epoch', assign, order=90), at('after_train', lambda cb: n_batches.append(cb.n_iter), order=90)])
    with learn.no_bar(), learn.no_logging(), (pytest.raises(KeyError) if fails else contextlib.nullcontext()): learn.fit(6)
    want = []
    for epoch in range(4 if fails else 6):
        n = 4 if assigns is not None and epoch>=assigns else 8
        on = [f for f,(first,end) in ((2,a), (1,b)) if first<=epoch<end]
        if a[0]>b[0]: on.reverse()
        for f in on: n = n//2 if f==2 else n-1
        want.append(n)
    assert n_batches==want and learn.dls is own['first' if assigns is None else 'later'] and not learn.current_run.layers

@pytest.mark.parametrize('when', ['in the fit', 'in a validation', 'never'])
def test_a_model_in_a_wrapper(when):
    "Training, validations within it and predictions call it; a copy of the Learner has the model alone, and so has the Learner afterwards"
    copies,models = [],[]
    learn = learner(4)
    model = learn.model
    new = nn.Sequential(model)   # with the same parameters
    def look(cb):
        models.append(type(cb.learn.model))
        if cb.train_iter==2: copies.append(copy.deepcopy(cb.learn).model)
        if cb.train_iter==3 and when=='in the fit': cb.learn.model = new
        if cb.train_iter==3: cb.learn.validate(dl=batches(2), cbs=Callback(before_batch=replace))
    def replace(cb):
        models.append(type(cb.learn.model))
        if when=='in a validation': cb.learn.model = new
    with learn.no_bar(), learn.no_logging(): learn.fit(1, cbs=[Lays('model', wrap_attr, Around, 0, 9), at('after_batch', look, lambda cb: cb.training and cb.mode=='fit', order=90)])
    assert {*models}=={Around} and len(models)==6 and type(copies[0]) is type(model)
    assert learn.model is (model if when=='never' else new) and learn.opt is not None

def test_the_optimizer_for_a_while():
    "One that steps for another one, put in its place for two batches"
    learn = learner(6)
    steps = []
    class Counts:
        def __init__(self, opt): self.__dict__.update(opt=opt)
        def __getattr__(self, k): return getattr(self.__dict__['opt'], k)
        def step(self): steps.append(1); self.opt.step()
    class For(Callback):
        def before_batch(self):
            if self.training and self.train_iter==2: self.layer = wrap_attr(self.learn, 'opt', Counts)
            if self.training and self.train_iter==4: remove_layer(self.learn, self.layer)
    plain = learner(6)
    for o in (learn, plain):
        with o.no_bar(), o.no_logging(): o.fit(1, cbs=For() if o is learn else None)
    assert len(steps)==2 and torch.equal(weights(learn), weights(plain)) and not isinstance(learn.opt, Counts)

# searches within blocks

@few(10)
@pytest.mark.parametrize('order', list(permutations(range(3))))
@pytest.mark.parametrize('search', [lambda o: o.lr_find(num_it=6, show_plot=False, suggest_funcs=None), lambda o: o.find_batch_size(most=2), lambda o: o.summary(), lambda o: o.get_preds(dl=batches(2)), lambda o: o.validate()])
def test_searches_within_blocks(search, order):
    "Whatever lies over logger, loss and data, and whenever it is taken off: the Learner is as before, silent inside, and says all afterwards"
    rows = []
    learn = learner(8)
    learn.remove_cb(ProgressCallback)
    learn.logger = rows.append
    before = {k:getattr(learn, k) for k in ('dls','model','loss_func')}
    quiet = learn.no_logging()
    quiet.__enter__()
    layers = [None, wrap_attr(learn, 'dls', first_half), wrap_attr(learn, 'loss_func', lambda f: Wraps(f))]
    for i in order:
        tops = {k:getattr(learn, k) for k in ('dls','model','loss_func')}
        search(learn)
        assert all(getattr(learn, k) is v for k,v in tops.items())
        quiet.__exit__(None, None, None) if i==0 else remove_layer(learn, layers[i])
    assert not rows and all(getattr(learn, k) is before[k] for k in ('dls','model','loss_func')) and not learn.current_run.layers
    learn.fit(1)
    assert len(rows)==1 and learn.logger==rows.append
