"""State outside the model's `state_dict`: weights and buffers of the loss, non-persistent buffers, counters, and
generators of the model, the data, the transforms and the `collate_fn`. A resumed run ends like an uninterrupted one."""
import random, warnings
from collections import deque
from contextlib import suppress
from functools import partial

import numpy as np, pytest, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from toys import few

pytestmark = few(3, 5)   # of the cases of each test; all with LEARNKIT_SWEEP=1
from learnkit.all import Adam, Callback, Learner, MixUp, Recorder, TrainEvalCallback, set_seed
from learnkit.recovery.checkpoint import CheckpointCallback
from learnkit.recovery.file import newest_checkpoint
from test_resume import Crash, equal

torch.set_num_threads(1)
N,BS = 24,4

def tensors(y=lambda x: x.sum(1, keepdim=True)):
    x = torch.randn(N, 4, generator=torch.Generator().manual_seed(0))
    return TensorDataset(x, y(x))

class Centred(nn.Module):
    "A loss with a weight that it changes itself, and an average of the targets"
    def __init__(self): super().__init__(); self.w = nn.Parameter(torch.ones(1), requires_grad=False); self.register_buffer('mean', torch.zeros(1))
    def forward(self, pred, y):
        with torch.no_grad(): self.w *= .99; self.mean += .1*(y.mean()-self.mean)
        return (self.w*(pred-y-self.mean)).pow(2).mean()

class Counts:
    "A loss that is a plain object and counts its calls"
    def __init__(self): self.n = 0
    def __call__(self, pred, y): self.n += 1; return (pred-y).pow(2).mean()/self.n

def scaled(pred, y, loss, by): return by*loss(pred, y)
def argument(): return partial(scaled, loss=Centred(), by=.5)

class Layer(nn.Module):
    "A linear layer with a state of each kind"
    def __init__(self, kind):
        super().__init__()
        self.lin,self.kind,self.n,self.late = nn.Linear(4, 1),kind,0,None
        self.register_buffer('mean', torch.zeros(4), persistent=False)
        self.g,self.np,self.py = torch.Generator(),np.random.default_rng(0),random.Random(0)
    def forward(self, x):
        if self.training: self.n += 1; self.mean += .1*(x.mean(0)-self.mean); self.late = x.mean(0) if self.late is None else .5*self.late+x.mean(0)
        add = dict(buffer=self.mean, counter=1/(1+self.n), tensor=self.late if self.late is not None else 0., torch=torch.rand(1, generator=self.g), numpy=self.np.random(),
                   python=self.py.random())[self.kind]
        return self.lin(x+add)

class Recurrent(nn.Module):
    "A recurrent model that keeps its hidden state in a container of the given kind"
    def __init__(self, kind):
        super().__init__()
        self.lin,self.kind = nn.Linear(5, 1),kind
        self.state = dict(tuple=None, list=[0., 0.], dict={'h':torch.zeros(1), 'n':0}, deque=deque([0.], maxlen=3), graph=None)[kind]
    def forward(self, x):
        s = self.state
        h = dict(tuple=lambda: s and s[0], list=lambda: s[1], dict=lambda: s['h']*s['n'], deque=lambda: sum(s), graph=lambda: s)[self.kind]()
        h = torch.as_tensor(0. if h is None else h).detach().float().reshape(1)
        out = self.lin(torch.cat([x, h.expand(len(x), 1)], 1))
        if not self.training: return out
        new = .5*h + out.mean()
        if self.kind=='tuple': self.state = new.detach(),(s[1]+1 if s else 1)
        if self.kind=='list': s[0],s[1] = s[0]+1,float(new)
        if self.kind=='dict': s['h'],s['n'] = new.detach(),s['n']+1
        if self.kind=='deque': s.append(float(new))
        if self.kind=='graph': self.state = new
        return out

def in_a_closure():
    "A loss whose weight grows with a variable of the enclosing function"
    n = 0
    def loss(pred, y):
        nonlocal n
        n += 1
        return (pred-y).pow(2).mean()*n/10
    return loss

class Annealed:
    "A loss whose weight grows with an attribute, as recommended"
    def __init__(self): self.n = 0
    def __call__(self, pred, y): self.n += 1; return (pred-y).pow(2).mean()*self.n/10

class Anneals(Callback):
    "Makes the weight of the loss grow with a number that the callback names in `saves`"
    saves,n = ('n',),0
    def before_fit(self): self.learn.loss_func = self.loss
    def loss(self, pred, y): self.n += 1; return (pred-y).pow(2).mean()*self.n/10

class Slow(torch.optim.SGD):
    "Counts its steps, and takes smaller and smaller ones"
    def __init__(self, params, lr=.01): super().__init__(params, lr); self.k,self.past = 0,[]
    def step(self, closure=None):
        self.k += 1
        self.past.append(self.k)
        for p in (p for pg in self.param_groups for p in pg['params']): p.grad /= self.k+len(self.past)
        return super().step(closure)

class Own(Slow):
    "An optimizer whose `state_dict` has other keys"
    def state_dict(self): return dict(inner=super().state_dict(), k=self.k)
    def load_state_dict(self, d): super().load_state_dict(d['inner']); self.k = d['k']

class Draws(Dataset):
    "A dataset that draws from its own generator or that of its transform"
    def __init__(self, g, where='own'):
        self.x = tensors().tensors[0]
        self.g,self.tfms = (g,[]) if where=='own' else (None,[draw_with(g)])
    def __len__(self): return N
    def __getitem__(self, i):
        x = self.x[i]
        for t in self.tfms: x = t(x)
        return x + (0 if self.g is None else drawn(self.g)), x.sum()[None]

class Stream(Draws, IterableDataset):
    def __iter__(self): return (self[i] for i in range(N))
def drawn(g): return torch.rand((), generator=g) if isinstance(g, torch.Generator) else g.random()
def draw_with(g): return lambda x: x+drawn(g)
def generator(kind): return dict(torch=torch.Generator, numpy=lambda: np.random.default_rng(0), python=lambda: random.Random(0))[kind]()

def collate(items): x,y = map(torch.stack, zip(*items)); return x+torch.rand(()), y
class Collate:
    def __init__(self): self.g = torch.Generator()
    def __call__(self, items): x,y = map(torch.stack, zip(*items)); return x+torch.rand((), generator=self.g), y

class Each(Centred):
    "A loss that supports `reduction='none'`, which MixUp needs"
    reduction = 'mean'
    def forward(self, pred, y):
        with torch.no_grad(): self.mean += .1*(y.mean()-self.mean)
        loss = (pred-y-self.mean).pow(2)
        return loss if self.reduction=='none' else loss.mean()

class Around(Callback):
    "Wraps the loss during training"
    def before_train(self): self.own = self.learn.loss_func; self.learn.loss_func = partial(self._scaled, self.own, by=.5)
    def after_train(self): self.learn.loss_func = self.own
    @staticmethod
    def _scaled(f, pred, y, by): return by*f(pred, y)

def final_weights(path, crashes=(), model=None, loss=nn.MSELoss, data=None, cbs=(), opt=Adam):
    "The weights after three epochs, killed after each of the batches `crashes` and resumed"
    for k in [*crashes, None]:
        set_seed(42)
        dl = data() if data else DataLoader(tensors(), BS, shuffle=True)
        learn = Learner((dl, DataLoader(tensors(), BS)), model() if model else nn.Linear(4, 1), loss(), opt, lr=.01, path=path, default_cbs=False,
                        cbs=[TrainEvalCallback, Recorder, CheckpointCallback('1ba', keep=2), *cbs])
        learn.logger = lambda row: None
        if k is None: learn.fit(3, resume='auto')
        else:
            with pytest.raises(SystemError): learn.fit(3, cbs=Crash(k), resume='auto')
        torch.rand(3), random.random(), np.random.rand()
    return [p.detach().clone() for p in learn.model.parameters()]

def check(path, **kw): assert equal(final_weights(path/'a', **kw), final_weights(path/'b', (2, 6, 9), **kw))

@pytest.mark.parametrize('loss', [Centred, Counts, argument])
@few(1)
def test_the_loss_is_resumed(loss, tmp_path):
    "The weights and buffers of a loss are resumed; they used to be reset without a warning"
    check(tmp_path, loss=loss)

@pytest.mark.parametrize('kw', [dict(loss=Annealed), dict(cbs=(Anneals,))], ids=['attribute', 'callback'])
def test_a_loss_that_is_annealed(kw, tmp_path):
    "What the page on resuming recommends instead of a variable of a closure"
    with warnings.catch_warnings(): warnings.simplefilter('error'); check(tmp_path, **kw)

class Gaps(Dataset):
    "A dataset with a NaN in its attributes, as for columns with missing values"
    def __init__(self, grows=False): self.means,self.least,self.grows = torch.tensor([1., float('nan')]),float('nan'),grows
    def __len__(self): return N
    def __getitem__(self, i):
        if self.grows: self.means = self.means+1
        return torch.ones(4),self.means[:1]

@pytest.mark.parametrize('workers', [0, 1])
def test_an_attribute_with_nan_has_not_changed(workers, tmp_path):
    "A NaN is not equal to itself, so each run with one in a small tensor of the data warned that no checkpoint stores it"
    def fit(grows): Learner((DataLoader(Gaps(grows), BS, num_workers=workers),), nn.Linear(4, 1), nn.MSELoss(), path=tmp_path, cbs=CheckpointCallback('1ba', overwrite=True)).fit(1)
    with warnings.catch_warnings(): warnings.simplefilter('error'); fit(False)
    with pytest.warns(UserWarning, match='no checkpoint stores.*`means` of Gaps'): fit(True)

def test_a_variable_of_a_closure_is_warned_of_once(tmp_path):
    "No checkpoint stores a variable of a closure; one warning names it"
    with pytest.warns(UserWarning, match=r'no checkpoint stores `loss.<closure>.n` \(int\), so a resumed run begins with the value that the script sets') as w: final_weights(tmp_path, loss=in_a_closure)
    assert len([o for o in w if 'no checkpoint stores' in str(o.message)])==1

@pytest.mark.parametrize('kind', ['tuple', 'list', 'dict', 'deque', 'graph'])
def test_containers_of_the_model(kind, tmp_path):
    "Containers among the attributes are resumed; the `(h, c)` of a recurrent network used to be reset"
    check(tmp_path, model=lambda: Recurrent(kind))

@pytest.mark.parametrize('opt', [Slow, Own])
def test_attributes_of_the_optimizer(opt, tmp_path):
    "They are resumed; they used to be reset, and other keys in the `state_dict` raised a KeyError"
    check(tmp_path, opt=opt)

class Within(torch.optim.Optimizer):
    "Delegates its steps to another optimizer, whose state it does not save"
    def __init__(self, params, lr): self.inner = torch.optim.Adam(params, lr=lr); super().__init__(self.inner.param_groups, {})
    def step(self, closure=None): return self.inner.step(closure)

def test_an_inner_optimizer_is_named(tmp_path):
    with pytest.warns(UserWarning, match=r'no checkpoint stores `opt.inner` \(Adam\), so a resumed run'): final_weights(tmp_path, opt=Within)

def test_a_state_of_another_kind_of_optimizer():
    learn = Learner((DataLoader(tensors(), BS),), nn.Linear(4, 1), nn.MSELoss(), Own, lr=.01)
    learn.create_opt()
    sd = learn.opt.state_dict()
    assert sd.keys()=={'inner','k','frozen_idx'}
    learn.opt.load_state_dict(sd)
    with pytest.raises((ValueError, KeyError)): learn.opt.load_state_dict(dict(other=3))
    plain = Learner((DataLoader(tensors(), BS),), nn.Linear(4, 1), nn.MSELoss(), Slow, lr=.01)
    plain.create_opt()
    with pytest.raises(ValueError, match="has 'state' and 'param_groups', not"): plain.opt.load_state_dict(sd)

def test_a_list_that_grows_long_is_named(tmp_path):
    class Logs(nn.Linear):
        def __init__(self): super().__init__(4, 1); self.log,self.words = [],['a']*2000
        def forward(self, x): self.log += [0]*1001; return super().forward(x)
    with pytest.warns(UserWarning, match=r'stores `model.log` \(more than 1,000 entries\)') as caught: final_weights(tmp_path, model=Logs)
    assert sum('model.log' in str(w.message) for w in caught)==1

@pytest.mark.filterwarnings('error:the checkpoint has a state')
@pytest.mark.parametrize('cb', [MixUp, Around])
def test_a_wrapped_loss_is_resumed(cb, tmp_path):
    "The state of a wrapped loss was saved under a name that it did not have yet at the resume, and was skipped"
    check(tmp_path, loss=Each, cbs=[cb])

@few(3)
@pytest.mark.parametrize('kind', ['buffer', 'counter', 'tensor', 'torch', 'numpy', 'python'])
def test_state_of_modules_is_resumed(kind, tmp_path):
    "Non-persistent buffers, counters and generators of the modules are resumed; they used to be reset"
    check(tmp_path, model=lambda: nn.Sequential(Layer(kind)))

@few(1, 4)
@pytest.mark.parametrize('workers', [0, 2])
@pytest.mark.parametrize('where', ['own', 'transform'])
@pytest.mark.parametrize('kind', ['torch', 'numpy', 'python'])
def test_generators_of_the_data(kind, where, workers, tmp_path):
    "A resume used to restart the generators of datasets and transforms"
    check(tmp_path, data=lambda: DataLoader(Draws(generator(kind), where), BS, shuffle=True, num_workers=workers))

@pytest.mark.parametrize('kind', ['torch', 'python'])
def test_generators_of_data_without_indices(kind, tmp_path):
    "A resume reads the first batches again, with the generators set back to the beginning of the epoch"
    check(tmp_path, data=lambda: DataLoader(Stream(generator(kind)), BS))

@few(1, 1)
@pytest.mark.parametrize('workers', [0, 2])
@pytest.mark.parametrize('make', [lambda: collate, Collate])
def test_a_collate_fn_that_draws(make, workers, tmp_path):
    "A `collate_fn` that draws random numbers, over tensors that draw none"
    check(tmp_path, data=lambda: DataLoader(tensors(), BS, shuffle=True, collate_fn=make(), num_workers=workers))

def test_edited_arguments_of_the_script_are_used(tmp_path):
    "With `resume=path` an edited script uses its new class weights of the loss and dropout rates"
    def learner(w, p):
        set_seed(0)
        learn = Learner((DataLoader(tensors(lambda x: (x[:,:1]>0).float()), BS),), nn.Sequential(nn.Dropout(p), nn.Linear(4, 1)), nn.BCEWithLogitsLoss(pos_weight=torch.tensor([w])), path=tmp_path, default_cbs=False,
                        cbs=[TrainEvalCallback, Recorder, CheckpointCallback('1ba')])
        learn.logger = lambda row: None
        return learn
    first = learner(1., .5)
    with pytest.raises(SystemError): first.fit(2, cbs=Crash(3))
    learn = learner(2., .3)
    learn.fit(2, resume=max(first.checkpoint.folder.glob('*.pth')))
    assert learn.loss_func.pos_weight==2. and learn.model[0].p==.3

# an interrupted fit that is resumed in the same process, whose values the fit has changed

class Late(nn.Linear):
    "A layer that changes from its `first`th batch on: an attribute, one that it creates, a list, a buffer"
    created = 0
    def __init__(self, first):
        super().__init__(4, 1)
        self.first,self.counted,self.listed = first,0,[0]
        self.register_buffer('mean', torch.zeros(()), persistent=False)
    def forward(self, x):
        if self.training: self.first -= 1
        if self.training and self.first<0:
            self.counted += 1; self.created += 1; self.listed[0] += 1; self.mean += 1
        return super().forward(x)/(1+self.counted+self.created+self.listed[0]+self.mean)

@pytest.mark.parametrize('every,kill,also', [('3ba',5,None), ('1ba',5,8), ('3ba',7,11), ('1ep',8,11)])
def test_resumed_in_the_same_process(every, kill, also, tmp_path):
    "Values that the fit changed after its checkpoint are reset, and checkpoints contain them for another process"
    def make(path):
        torch.manual_seed(0)
        learn = Learner((DataLoader(tensors(), BS, shuffle=True),), Late(3), nn.MSELoss(), lr=.05, path=path, cbs=CheckpointCallback(every))
        return learn.remove_cb(learn.progress)
    def fit(learn, crash=None):
        with learn.no_logging(), suppress(SystemError): learn.fit(2, resume='auto', cbs=[Crash(crash)]*(crash is not None))
        return learn
    straight,learn = fit(make(tmp_path/'a')),fit(make(tmp_path/'b'), kill)
    if also is not None:
        fit(learn, also)
        learn = make(tmp_path/'b')   # another process
    fit(learn)
    assert equal(straight.model.state_dict(), learn.model.state_dict()) and straight.train_iter==learn.train_iter==12
    assert straight.model.counted==learn.model.counted==9 and straight.model.listed==learn.model.listed

def test_a_value_set_since_the_fit_stays(tmp_path):
    learn = Learner((DataLoader(tensors(), BS),), nn.Sequential(Late(2), nn.Dropout(.5)), nn.MSELoss(), path=tmp_path, cbs=CheckpointCallback('9ep'))
    learn.remove_cb(learn.progress)
    with learn.no_logging(), pytest.raises(SystemError): learn.fit(2, resume='auto', cbs=Crash(4))
    path = learn.checkpoint.folder
    learn.checkpoint.save(0, 0)
    with learn.no_logging(): learn.fit(1)
    seen = []
    learn.model[0].counted,learn.model[1].p = 50,.1
    def see(cb): seen.append((learn.model[0].counted, learn.model[1].p))
    with learn.no_logging(): learn.fit(1, resume=newest_checkpoint(path)[0], cbs=Callback(before_train=see))
    assert seen[0]==(2, .1)   # the checkpoint has `counted`, but not `p`

def test_a_replay_repeated_from_one_moment(tmp_path):
    "Each try begins with the values of that moment; a second one used to begin with those that the first had left"
    def make(*cbs):
        torch.manual_seed(0)
        learn = Learner((DataLoader(tensors(), BS, shuffle=True),), Late(2), nn.MSELoss(), lr=.05, path=tmp_path, cbs=cbs)
        return learn.remove_cb(learn.progress)
    learn = make(CheckpointCallback('9ba'))
    with learn.no_logging(): learn.fit(1)
    learn = make()
    learn.logger = lambda row: None
    learn.replay(tmp_path, 1)
    moment,losses = learn.paused,[]
    for _ in range(3):
        learn.paused = moment
        losses.append(learn.resume(4)['loss'])
    assert len({*losses})==1 and learn.model.counted==3

# parameters that become trained, or frozen, in the middle of a run

freezes = dict(
    thaw=lambda learn: learn.model[0].requires_grad_(True), freeze=lambda learn: learn.model[0].requires_grad_(False),
    opt_freezes=lambda learn: learn.freeze(), opt_thaws=lambda learn: learn.unfreeze())

@pytest.mark.parametrize('every,kill', [('1ep',8), ('2ba',9), ('2ba',3)])
@pytest.mark.parametrize('splits', [False, True])
@pytest.mark.parametrize('how', freezes)
def test_which_parameters_are_trained_is_resumed(how, splits, every, kill, tmp_path):
    "A resumed run trains the layers that a callback has unfrozen before; it used to train them no more, in silence"
    def make(path):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 1))
        if how=='thaw': model[0].requires_grad_(False)
        learn = Learner((DataLoader(tensors(), BS, shuffle=True),), model, nn.MSELoss(), Adam, lr=.05, path=path, cbs=CheckpointCallback(every))
        if splits: learn.splitter = lambda m: [[*m[0].parameters()], [*m[1].parameters()]]
        if splits and how=='opt_thaws': learn.freeze()
        return learn.remove_cb(learn.progress)
    def fit(learn, *cbs):
        def act(cb):
            if learn.epoch==1: freezes[how](learn)
        with learn.no_logging(), warnings.catch_warnings():
            warnings.simplefilter('ignore')   # with one group, `freeze` freezes nothing
            learn.fit(3, resume='auto', cbs=[Callback(before_epoch=act), *cbs])
        return learn
    straight = fit(make(tmp_path/'a'))
    with pytest.raises(SystemError): fit(make(tmp_path/'b'), Crash(kill))
    resumed = fit(make(tmp_path/'b'))
    assert equal(straight.model.state_dict(), resumed.model.state_dict()) and equal(straight.opt.state_dict(), resumed.opt.state_dict())
    assert [p.requires_grad for p in straight.model.parameters()]==[p.requires_grad for p in resumed.model.parameters()]

# data and losses that are replaced in the middle of a run

def replace_once(learn, new):
    if learn.epoch==1: new(learn)
def replace_in_each(learn, new):
    if learn.epoch>=1: new(learn)

def new_data(learn): learn.dls.train = DataLoader(tensors(lambda x: 2*x.sum(1, keepdim=True)), BS, shuffle=True)
def new_loss(learn): learn.loss_func = nn.L1Loss()

@pytest.mark.parametrize('every', ['1ep','2ba'])
@pytest.mark.parametrize('new,what', [(new_data,'training data'), (new_loss,'loss function')])
@pytest.mark.parametrize('replace', [replace_once, replace_in_each])
def test_what_a_run_has_replaced_is_named(replace, new, what, every, tmp_path):
    "A callback that replaces the data or the loss once does it no more in a resumed run; that used to be silent"
    def make(path):
        torch.manual_seed(0)
        learn = Learner((DataLoader(tensors(), BS, shuffle=True),), nn.Linear(4, 1), nn.MSELoss(), lr=.05, path=path, cbs=CheckpointCallback(every))
        return learn.remove_cb(learn.progress)
    def fit(learn, *cbs):
        def act(cb): replace(learn, new)
        with learn.no_logging(): learn.fit(3, resume='auto', cbs=[Callback(before_epoch=act), *cbs])
        return learn
    straight = fit(make(tmp_path/'a'))
    with pytest.raises(SystemError): fit(make(tmp_path/'b'), Crash(15))
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter('always')
        resumed = fit(make(tmp_path/'b'))
    is_named = any(f'replaced its {what}' in str(o.message) for o in w)
    assert is_named==(replace is replace_once) and equal(straight.model.state_dict(), resumed.model.state_dict())!=is_named
