"""A model creates its layers in another order than that of a file: resume, load, branch, roll-back and the best model
assign optimizer state by parameter names, and names that do not fit raise"""
from functools import partial
import pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.optim import Adam, RMSprop, SGD
from learnkit.callbacks.trackers import SaveModelCallback
from learnkit.learner.learner import Learner
from learnkit.loop.callback import Callback
from learnkit.optim.inventory import opt_state
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.recovery.nan import RollBackOnNaN
from toys import few

pytestmark = few(3, 3)   # of the cases of each test; all with LEARNKIT_SWEEP=1

class Net(nn.Module):
    "Layers created in any order, with weights that depend only on their names; `c` has no bias, unlike `a` and `b`"
    def __init__(self, order):
        super().__init__()
        for name in order: setattr(self, name, nn.Linear(3, 3, bias=name!='c'))
        self.head = nn.Linear(3, 1)
        seed_by_name(self)
    def forward(self, x): return self.head(torch.tanh(self.c(torch.tanh(self.b(torch.tanh(self.a(x)))))))

class Scaled(nn.Module):
    "A loss with two parameters, created in any order"
    def __init__(self, order):
        super().__init__()
        for name in order: setattr(self, name, nn.Parameter(torch.ones(())))
    def forward(self, pred, y): return (self.b*pred - y).pow(2).mean() + (self.a-2).pow(2) + .1*(self.b-1).pow(2)

def seed_by_name(model):
    for name,p in model.named_parameters():
        g = torch.Generator().manual_seed(sum(map(ord, name)))
        with torch.no_grad(): p.copy_(torch.randn(p.shape, generator=g)*.5)

def data(seed, n=6):
    g = torch.Generator().manual_seed(seed)
    return [(torch.randn(4, 3, generator=g), torch.randn(4, 1, generator=g)) for _ in range(n)]
TRAIN,VALID = data(0),data(1, 2)
BAD = [*TRAIN[:4], (TRAIN[4][0], TRAIN[4][1]*float('nan')), TRAIN[5]]

def by_layer(model): return [[*layer.parameters()] for layer in model.children()]
OPTS = dict(sgd=partial(SGD, lr=.05, momentum=.9), adam=partial(Adam, lr=.02), rms=partial(RMSprop, lr=.01, momentum=.5))
KINDS = dict(plain=lambda: {}, layers=lambda: dict(splitter=by_layer), decay=lambda: dict(wd=.1), decayed_layers=lambda: dict(splitter=by_layer, wd=.1),
             several=lambda: dict(opt_func=dict(first=(Adam, ['a.*','b.*']), rest=SGD), lr=.02), loss=lambda: dict(loss='ab'))

def learner(order, kind, *cbs, opt='sgd', path='.', train=TRAIN, **more):
    torch.manual_seed(0)
    kw = dict(opt_func=OPTS[opt]) | KINDS[kind]() | more
    loss = nn.MSELoss()
    if kw.pop('loss', None): loss = Scaled(''.join(k for k in order if k in 'ab'))
    learn = Learner((train, VALID), Net(order), loss, path=path, cbs=list(cbs), **kw)
    learn.remove_cb(learn.progress)
    learn.logger = lambda row: None
    return learn

def fit(learn, n=2, **kw):
    learn.fit(n, **kw)
    return learn

def weights(learn):
    own = learn.loss_func.state_dict() if isinstance(learn.loss_func, Scaled) else {}
    return {**learn.model.state_dict(), **{f'loss.{k}':v for k,v in own.items()}}
def same(a, b): return [k for k,v in weights(a).items() if not torch.equal(v, weights(b)[k])]==[]

class PowerCut(Callback):
    observes = True
    def before_step(self):
        if self.learn.train_iter==8: raise KeyboardInterrupt

def killed(folder, kind, opt='sgd', order='abc', **kw):
    with pytest.raises(KeyboardInterrupt): fit(learner(order, kind, CheckpointCallback('3ba', keep=None), opt=opt, path=folder, **kw), cbs=PowerCut())

every_kind = pytest.mark.parametrize('kind', KINDS)
every_order = pytest.mark.parametrize('order', ['abc', 'bac', 'cba', 'bca'])

@every_kind
@every_order
@pytest.mark.parametrize('opt', OPTS)
def test_a_run_is_resumed_in_another_order(kind, order, opt, tmp_path):
    if kind=='several' and opt!='sgd': pytest.skip('it has optimizers of its own')
    whole = fit(learner('abc', kind, opt=opt))
    killed(tmp_path, kind, opt)
    assert same(fit(learner(order, kind, CheckpointCallback('3ba', keep=None), opt=opt, path=tmp_path), resume='auto'), whole)

@every_kind
@every_order
def test_a_file_is_loaded_in_another_order(kind, order, tmp_path):
    first = fit(learner('abc', kind, path=tmp_path))
    first.save('m')
    again = learner(order, kind, path=tmp_path)
    again.load('m')
    assert same(fit(again, 1), fit(first, 1))

@every_kind
@every_order
def test_a_branch_of_a_run_in_another_order(kind, order, tmp_path):
    fit(learner('abc', kind, CheckpointCallback('3ba', keep=None), path=tmp_path/'run'))
    branches = []
    for o in ('abc', order):
        learn = learner(o, kind, CheckpointCallback('3ba', keep=None), path=tmp_path/f'to_{o}')
        with learn.no_bar(): learn.branch(tmp_path/'run', 7, to=tmp_path/f'branch{len(branches)}')
        branches.append(learn)
    assert same(*branches)

@every_kind
@every_order
def test_a_run_rolls_back_to_a_checkpoint_of_another_order(kind, order, tmp_path):
    runs = []
    for o in ('abc', order):
        folder = tmp_path/str(len(runs))
        killed(folder, kind)   # the newest checkpoint follows batch 6; the bad batch is the eleventh
        cbs = CheckpointCallback('100ba', keep=None, best='valid_loss'),RollBackOnNaN('1ba', source='checkpoint')
        resumed = learner(o, kind, *cbs, path=folder, train=BAD)
        resume = folder/'checkpoints/fit-1/step-00000006.pth'
        with pytest.warns(UserWarning, match='last good weights are restored'): fit(resumed, resume=resume)
        runs.append(resumed)
    assert same(*runs)

@every_kind
def test_the_best_model_of_a_resumed_run_is_of_another_order(kind, tmp_path):
    def saver(): return SaveModelCallback(with_opt=True), CheckpointCallback('3ba', keep=None)
    whole = fit(learner('abc', kind, *saver(), path=tmp_path/'whole'))
    with pytest.raises(KeyboardInterrupt): fit(learner('abc', kind, *saver(), path=tmp_path/'cut'), cbs=PowerCut())
    again = fit(learner('bac', kind, *saver(), path=tmp_path/'cut'), resume='auto')
    assert same(again, whole) and same(fit(again, 1), fit(whole, 1))

# what does not fit

def check_load_raises(learn, file, *texts):
    "Check that `learn.load` raises an error with the given texts and changes nothing"
    before = {k:v.clone() for k,v in weights(learn).items()}
    learn.create_opt()
    state = learn.opt.state_dict()
    with pytest.raises(ValueError) as e: learn.load(file, strict=False)
    for text in texts: assert text in str(e.value), e.value
    assert all(torch.equal(v, before[k]) for k,v in weights(learn).items()) and not learn.opt.state
    assert learn.opt.state_dict()['param_groups']==state['param_groups']

class Renamed(Net):
    def __init__(self):
        super().__init__('abc')
        self.z = self.b
        del self.b
    def forward(self, x): return self.head(torch.tanh(self.c(torch.tanh(self.z(torch.tanh(self.a(x)))))))

def test_a_layer_with_another_name_raises(tmp_path):
    file = fit(learner('abc', 'plain', path=tmp_path)).save('m')
    learn = learner('abc', 'plain')
    learn.model = Renamed()
    check_load_raises(learn, file, 'it has no z.weight, z.bias', 'it has b.weight, b.bias, which this one does not have')

def test_a_missing_layer_raises(tmp_path):
    file = fit(learner('abc', 'plain', path=tmp_path)).save('m')
    learn = learner('abc', 'plain')
    learn.model.b.requires_grad_(False)
    check_load_raises(learn, file, 'it has b.weight, b.bias, which this one does not have')

def test_other_groups_raise(tmp_path):
    file = fit(learner('abc', 'layers', path=tmp_path)).save('m')
    check_load_raises(learner('abc', 'plain'), file, 'those of group 0 (a.weight, a.bias, b.weight and 4 more) were saved in groups [0, 1, 2, 3]', 'the same splitter')
    def regrouped(m): return [[*m.a.parameters(), *m.b.parameters()], [*m.c.parameters()], [*m.head.parameters()]]
    check_load_raises(learner('abc', 'plain', splitter=regrouped), file, 'group 0 (a.weight, a.bias, b.weight and 1 more) were saved in groups [0, 1]')

def test_frozen_groups_in_another_order_raise(tmp_path):
    first = learner('abc', 'layers', path=tmp_path)
    first.freeze_to(1)
    file = fit(first).save('m')
    again = learner('abc', 'layers', path=tmp_path).load(file)
    assert again.opt.frozen_idx==1 and not again.model.a.weight.requires_grad
    check_load_raises(learner('bac', 'layers'), file, 'in another order, and some of them are frozen')

def test_names_that_are_damaged_raise(tmp_path):
    learn = fit(learner('abc', 'plain', path=tmp_path))
    state = torch.load(learn.save('m'), weights_only=True)
    names = state['opt']['param_groups'][0]['param_names']
    for wrong in ('a.weight', names[1:], [3]*len(names), [[]]*len(names)):
        state['opt']['param_groups'][0]['param_names'] = wrong
        torch.save(state, tmp_path/'wrong.pth')
        with pytest.raises(ValueError, match='list of parameter groups'): learn.load(tmp_path/'wrong.pth')
    state['opt']['param_groups'][0]['param_names'] = [*names[:-1], names[0]]
    torch.save(state, tmp_path/'wrong.pth')
    with pytest.raises(ValueError, match='has no head.bias'): learn.load(tmp_path/'wrong.pth')

def test_a_state_without_names_is_loaded_by_position(tmp_path):
    learn = fit(learner('abc', 'plain', path=tmp_path))
    torch.save(dict(model=learn.model.state_dict(), opt=learn.opt.opt.state_dict()), tmp_path/'plain.pth')
    again = learner('abc', 'plain').load(tmp_path/'plain.pth')
    assert same(fit(again, 1), fit(learn, 1))

def test_parameters_outside_the_model_are_matched_by_position(tmp_path):
    def made():
        t = nn.Parameter(torch.ones(()))
        return learner('abc', 'plain', path=tmp_path, splitter=lambda m: [*m.parameters(), t]), t
    learn,t = made()
    learn.loss_func = lambda pred, y: F.mse_loss(pred*t, y)
    fit(learn)
    assert opt_state(learn)['param_groups'][0]['param_names'][-1]=='outside.0'
    again,u = made()
    again.loss_func = lambda pred, y: F.mse_loss(pred*u, y)
    again.load(learn.save('m'))
    assert torch.equal(t, u) and torch.equal(again.opt.state[u]['momentum_buffer'], learn.opt.state[t]['momentum_buffer'])

# one rule for the hyperparameters of a file

def hypers(learn): return [dict(h) for h in learn.opt.hypers]

@pytest.mark.parametrize('wd_of_file', [None, .1])
@pytest.mark.parametrize('wd', [None, .3])
def test_a_loaded_file_keeps_the_hyper_parameters_of_the_learner(wd, wd_of_file, tmp_path):
    "Hyperparameters come from the script, and accumulated state from the file"
    first = learner('abc', 'plain', path=tmp_path, wd=wd_of_file)
    file = fit(first).save('m')
    learn = learner('abc', 'plain', wd=wd, opt_func=partial(SGD, lr=.05, momentum=.5))
    learn.create_opt()
    learn.fit(0)
    own,n = hypers(learn),len(learn.opt.param_groups)
    learn.load(file)
    assert hypers(learn)==own and own[0]['mom']==.5 and len(learn.opt.param_groups)==n
    for name,p in learn.model.named_parameters():
        q = first.model.get_parameter(name)
        assert torch.equal(learn.opt.state[p]['momentum_buffer'], first.opt.state[q]['momentum_buffer'])
    # the same in plain PyTorch
    model,opt = Net('abc'),None
    model.load_state_dict(first.model.state_dict())
    decayed = [p for n,p in model.named_parameters() if 'bias' not in n]
    rest = [p for n,p in model.named_parameters() if 'bias' in n]
    opt = SGD([dict(params=decayed, weight_decay=wd or 0), dict(params=rest)], lr=.05, momentum=.5)
    for name,p in model.named_parameters():
        opt.state[p]['momentum_buffer'] = first.opt.state[first.model.get_parameter(name)]['momentum_buffer'].clone()
    for x,y in TRAIN:
        F.mse_loss(model(x), y).backward(); opt.step(); opt.zero_grad()
    fit(learn, 1)
    assert all(torch.equal(v, model.state_dict()[k]) for k,v in learn.model.state_dict().items())

def test_a_tensor_learning_rate_stays_the_same_object(tmp_path):
    file = fit(learner('abc', 'plain', opt='adam', path=tmp_path)).save('m')
    rate = torch.tensor(.003)
    learn = learner('abc', 'plain', opt_func=partial(Adam, lr=rate))
    learn.create_opt()
    own = learn.opt.param_groups[0]['lr']
    learn.load(file)
    assert learn.opt.param_groups[0]['lr'] is own and own.item()==pytest.approx(.003)

def test_counts_in_parameter_groups_come_from_the_file(tmp_path):
    class Counting(SGD):
        "Counts its steps in its parameter groups"
        def __init__(self, params, lr=.1, momentum=.9):
            super().__init__(params, lr, momentum)
            for g in self.param_groups: g['n_steps'] = 0
        def step(self, closure=None):
            super().step(closure)
            for g in self.param_groups: g['n_steps'] += 1
    file = fit(learner('abc', 'plain', path=tmp_path, opt_func=partial(Counting, lr=.1))).save('m')
    learn = learner('abc', 'plain', opt_func=partial(Counting, lr=.02, momentum=.5)).load(file)
    group, = learn.opt.param_groups
    assert (group['n_steps'],group['lr'],group['momentum'])==(12,.02,.5)

def test_a_file_that_lacks_an_average_raises(tmp_path):
    file = fit(learner('abc', 'plain', opt='adam', path=tmp_path)).save('m')
    check_load_raises(learner('abc', 'plain', opt_func=partial(Adam, lr=.02, amsgrad=True)), file, 'amsgrad=True, but the saved one did not, so its state lacks an average')

def test_a_resumed_run_has_the_hyper_parameters_of_the_file(tmp_path):
    "A resumed run continues in the middle of its schedule"
    whole = learner('abc', 'plain')
    whole.fit_one_cycle(2, .1)
    cut = learner('abc', 'plain', CheckpointCallback('3ba'), path=tmp_path)
    with pytest.raises(KeyboardInterrupt): cut.fit_one_cycle(2, .1, cbs=PowerCut())
    again = learner('bac', 'plain', CheckpointCallback('3ba'), path=tmp_path)
    again.fit_one_cycle(2, .1, resume='auto')
    assert same(again, whole) and hypers(again)==hypers(whole)
