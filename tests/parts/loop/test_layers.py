"Whatever a callback puts in the place of a loss or a logger is a layer: every pair, put on and taken off in every order, and what is called is looked at, not what is set"
import copy, itertools, pickle
from itertools import permutations

import pytest, torch, torch.nn.functional as F
from hypothesis import given, settings, strategies as st
from torch import nn

from learnkit.all import *
from learnkit.loop.current_run import HasRun, lay_over, put_in_place, take_off
from toys import at, batches, learner, weights

torch.set_num_threads(1)

# the mechanism, against a model of it: a list

kinds = st.sampled_from(['place','over','assign','off','run','end'])
@given(st.lists(st.tuples(kinds, st.integers(0, 9)), max_size=25))
@settings(max_examples=300, deadline=None)
def test_as_a_list_says(steps):
    "What is assigned counts until another is; of those in its place the last; around it all that lies over it, in their order; a run inside begins with the same"
    learn = HasRun()
    base = lambda: 'own'
    learn.loss_func = base
    runs,made = [(base,[])],[]
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
            made.append(put_in_place(learn, 'loss_func', f)); runs[-1] = own,[*layers, ('place',made[-1],f)]
        elif kind=='over':
            made.append(lay_over(learn, 'loss_func', over(f'o{i}'))); runs[-1] = own,[*layers, ('over',made[-1],f'o{i}')]
        elif kind=='assign':
            f = lambda i=i: f'a{i}'
            learn.loss_func = f; runs[-1] = f,[o for o in layers if o[0]=='over']
        elif kind=='off' and made:
            layer = made[n%len(made)]
            take_off(learn, layer)
            runs = [(own,[o for o in layers if o[1] is not layer]) for own,layers in runs]
        elif kind=='run':
            learn.current_run = learn.current_run.begin('validate'); runs.append((own,list(layers)))
        elif kind=='end' and len(runs)>1:
            learn.current_run = learn.current_run.outer; runs.pop()
        assert learn.loss_func()==expected()

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
    def before_train(self): self.layer = lay_over(self.learn, 'loss_func', self.halved)
    def halved(self, below): return HalvedLoss(below)
    def cleanup(self): take_off(self.learn, self.layer)
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
def test_taken_off_in_the_middle_in_every_order(order, when):
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
    layers = [lay_over(learn, 'logger', lambda below: null_logger), put_in_place(learn, 'logger', table), lay_over(learn, 'logger', lambda below: lambda row: below(f'<{row}>'))]
    left = set(range(3))
    for i in order:
        take_off(learn, layers[i]); left.discard(i); rows.clear()
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
