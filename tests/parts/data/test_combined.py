"""Several loaders as one: which batch comes next against an oracle in plain Python, and a resume at any batch, to the bit"""
import pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from learnkit.all import (Callback, CheckpointCallback, CombinedLoader, DataLoaders, EachLoader, FusedStep, GradientAccumulation, InTurn, Learner,
                          LimitBatches, OverfitBatches, Prefetch, Recorder, SAM, SeededLoader, StepsPerEpoch, mae)
from learnkit.data.resumable_loader import ResumableLoader
from toys import draws, few

names = 'abcd'
def oracle(ns, order='in_turn', weights=None, size=lambda b: 1, until='longest'):
    "The batches by a loop over credits; a batch is a pair of its loader and its number there"
    ks = names[:len(ns)]
    n = dict(zip(ks, ns))
    if order=='sequential': return [(k, i) for k in ks for i in range(n[k])]
    if order=='zip': return [{k:(k, i%n[k]) for k in ks} for i in range((min if until=='shortest' else max)(ns))]
    w = dict.fromkeys(ks, 1) if weights is None else weights
    live,credit,given,res = [k for k in ks if w[k]],dict.fromkeys(ks, 0),dict.fromkeys(ks, 0),[]
    while True:
        if until=='longest' and all(given[k]>=n[k] for k in live): return res
        k = sorted(live, key=lambda k: (-credit[k], -w[k], ks.index(k)))[0]
        if until=='shortest' and given[k]==n[k]: return res
        res.append((k, given[k]%n[k]))
        given[k] += 1
        s = size(res[-1])
        credit = {o:credit[o] + w[o]*s - (sum(w.values())*s if o==k else 0) for o in ks}

@st.composite
def cases(draw):
    ns = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    order,until = draw(st.sampled_from(('in_turn','sequential','zip'))),draw(st.sampled_from(('longest','shortest')))
    if order!='in_turn': return ns,dict(order=order, until=until)
    ks = names[:len(ns)]
    weights = draw(st.none() | st.fixed_dictionaries({k:st.integers(0, 4) for k in ks}).filter(lambda w: any(w.values())))
    sizes = draw(st.none() | st.fixed_dictionaries({k:st.integers(1, 5) for k in ks}))
    kw = dict(order=order, until=until, weights=weights)
    return ns,kw if sizes is None else dict(kw, size=lambda b: sizes[b[0]])

def lists(ns): return {k:[(k, i) for i in range(n)] for k,n in zip(names, ns)}
def unsized(ns): return {k:(lambda bs: lambda: iter(bs))(bs) for k,bs in lists(ns).items()}

@draws(100)
@given(cases(), st.data())
def test_as_the_oracle(case, data):
    ns,kw = case
    want = oracle(ns, **kw)
    dl = CombinedLoader(lists(ns), **kw)
    assert [*dl]==want and [*dl]==want   # a pass does not depend on the one before
    if 'size' not in kw: assert len(dl)==len(want)
    at = data.draw(st.integers(0, len(want)))
    it = iter(dl)
    for _ in range(at): next(it)
    again = CombinedLoader(lists(ns), **kw)
    again.load_state_dict(dl.state_dict())
    assert [*again]==want[at:]
    if 'size' not in kw or kw['until']=='shortest': return
    shares = kw['weights'] or dict.fromkeys(names[:len(ns)], 1)
    got = {k:sum(kw['size'](b) for b in want if b[0]==k) for k in shares}
    for k,w in shares.items():   # each has its share, but for a batch of each
        assert abs(got[k]/sum(got.values()) - w/sum(shares.values()))*sum(got.values()) <= 5*len(ns)

@draws(25)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.sampled_from(('in_turn','sequential','zip')))
def test_loaders_without_a_length(ns, order):
    got = [*CombinedLoader(unsized(ns), order, until='shortest')]
    assert got==oracle(ns, order, until='shortest')
    longest = [*CombinedLoader(unsized(ns), order)]   # that a loader has ended shows when it is due once more
    want = oracle(ns, order)
    assert longest[:len(want)]==want and len(longest)-len(want)<len(ns)

def test_a_schedule_counts_all_batches():
    dl = CombinedLoader(dict(a=['a']*4, b=['b']*4), weights=lambda n: dict(a=1, b=int(n>=4)), until='shortest')
    first,second = ''.join(dl),''.join(dl)
    assert (first,second)==('aaaa','abababab')

# in a fit

def data(n, seed, bs=2, **kw):
    x = torch.randn(n, 3, generator=torch.Generator().manual_seed(seed))
    return DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=bs, shuffle=True, **kw)

def stream():
    g = torch.Generator().manual_seed(5)
    for _ in range(50): x = torch.randn(2, 3, generator=g); yield x+.1*torch.rand(1), x.sum(1, keepdim=True)

kinds = dict(in_turn=dict(), shares=dict(weights=dict(a=3, b=1)), sequential=dict(order='sequential'), zip=dict(order='zip'),
             items=dict(size=lambda b: len(b[0])), schedule=dict(weights=lambda n: dict(a=1+n, b=5), until='shortest'))

def learner(kind, path, *cbs, b=None, seeded=False):
    torch.manual_seed(0)
    dls = dict(a=data(10, 0), b=data(7, 1, 3) if b is None else b())
    if seeded: dls = {k:SeededLoader(dl, i) for i,(k,dl) in enumerate(dls.items())}
    dl = CombinedLoader(dls, **kinds[kind])
    each = EachLoader(dict(b=F.l1_loss), mae)
    learn = Learner(DataLoaders(dl, [next(iter(data(6, 2, 6)))]), nn.Sequential(nn.Linear(3,1), nn.Dropout(.2)), F.mse_loss, lr=.05,
                    path=path, cbs=[each, CheckpointCallback('1ba'), *cbs])
    learn.logger = lambda *a, **k: None
    return learn

def rows(learn): return [{k:v for k,v in r.items() if k!='time'} for r in learn.recorder.history]

class StopAt(Callback):
    order = 200
    def __init__(self, n): self.n = n
    def after_batch(self):
        if self.learn.training and self.learn.train_iter==self.n: raise KeyboardInterrupt

def resumes(kind, n, tmp_path, cbs=lambda: (), **kw):
    whole,first,second = (learner(kind, tmp_path/d, *cbs(), **kw) for d in 'abb')
    torch.manual_seed(1)
    with whole.no_bar(): whole.fit(3)
    torch.manual_seed(1)
    with first.no_bar(), pytest.raises(KeyboardInterrupt): first.fit(3, cbs=StopAt(n))
    with second.no_bar(): second.fit(3, resume='auto')
    assert all(map(torch.equal, whole.model.parameters(), second.model.parameters())) and rows(whole)==rows(second)
    assert {'a_loss','a_mae','b_loss','b_mae'} <= {*rows(whole)[0]}

@few(3, 3)
@pytest.mark.parametrize('n', (1, 5, 8, 11))
@pytest.mark.parametrize('kind', kinds)
def test_resumed_bit_for_bit(kind, n, tmp_path): resumes(kind, n, tmp_path)

@pytest.mark.parametrize('n', (3, 8))
def test_a_stream_among_them(n, tmp_path): resumes('shares', n, tmp_path, lambda: [StepsPerEpoch(5)], b=lambda: stream)

@pytest.mark.parametrize('n', (2, 5))
@pytest.mark.parametrize('kind', ('in_turn','sequential'))
@pytest.mark.parametrize('cb', (LimitBatches, StepsPerEpoch))
@few(2)
def test_seeded_loaders_in_epochs_that_are_cut(cb, kind, n, tmp_path): resumes(kind, n, tmp_path, lambda: [cb(4)], seeded=True)

def test_the_mean_loss_of_zipped_loaders_is_the_sum_of_theirs(tmp_path):
    "Their last batches have other sizes: the sum was weighted by the last part's items"
    learn = learner('zip', tmp_path, Recorder(train_loss='mean'))
    with learn.no_bar(): learn.fit(2)
    for row in learn.recorder.history: assert row['train_loss']==pytest.approx(row['a_loss']+row['b_loss'], rel=1e-6)
    resumes('zip', 7, tmp_path/'r', lambda: [Recorder(train_loss='mean')])

@pytest.mark.parametrize('cbs', (lambda: [], lambda: [StepsPerEpoch(4)], lambda: [CheckpointCallback('1ba', folder='c', overwrite=True)]))
def test_whose_batch_it_is_is_known_without_columns(cbs, tmp_path):
    seen = []
    dls = DataLoaders(CombinedLoader(dict(a=data(6, 0), b=data(6, 1, 3))), [next(iter(data(6, 2, 6)))])
    learn = Learner(dls, nn.Linear(3,1), F.mse_loss, path=tmp_path, cbs=[*cbs(), Callback(before_pred=lambda cb: seen.append(cb.learn.dl_name))])
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    assert seen[:4]==[*'abab'] and seen[-1] is None and learn.dl_name is None

@pytest.mark.parametrize('kind', ('in_turn','zip'))
def test_as_by_hand(kind, tmp_path):
    learn = learner(kind, tmp_path)
    with learn.no_bar(): learn.fit(2)
    torch.manual_seed(0)
    dl = CombinedLoader(dict(a=data(10, 0), b=data(7, 1, 3)), **kinds[kind])
    next(iter(data(6, 2, 6)))
    model = nn.Sequential(nn.Linear(3,1), nn.Dropout(.2))
    opt,loss = torch.optim.Adam(model.parameters(), lr=.05),dict(a=F.mse_loss, b=F.l1_loss)
    sums = {}
    for _ in range(2):
        sums = dict(a=[], b=[])
        for b in dl:
            for k,(x,y) in (b if kind=='zip' else {dl.dl_name:b}).items():
                part = loss[k](model(x), y)
                part.backward()
                sums[k].append((part.item(), len(x)))
            opt.step(); opt.zero_grad()
    assert all(map(torch.equal, model.parameters(), learn.model.parameters()))
    for k,o in sums.items():
        assert rows(learn)[-1][f'{k}_loss']==pytest.approx(sum(v*n for v,n in o)/sum(n for _,n in o), rel=1e-6)

def test_whose_batch_it_is(tmp_path):
    seen = []
    learn = learner('in_turn', tmp_path, Callback(before_pred=lambda cb: seen.append((cb.learn.dl_name, len(cb.learn.xb[0])))))
    with learn.no_bar(): learn.fit(1)
    assert [k for k,_ in seen]==[*'abababab', 'a', 'b'][:len(seen)-1]+[None] and learn.dl_name is None

@pytest.mark.parametrize('kw,says', (
    (dict(loss_funcs=dict(c=F.mse_loss)), "no loader 'c'"), (dict(metrics=dict(aa=mae)), 'did you mean `a`')))
def test_raises(kw, says):
    dl = CombinedLoader(dict(a=data(4, 0), b=data(4, 1)))
    with pytest.raises(ValueError, match=says): Learner(DataLoaders(dl), nn.Linear(3,1), F.mse_loss, cbs=EachLoader(**kw)).fit(1)

@pytest.mark.parametrize('args,says', [
    (([[1],[2]],), r'`loaders` must be a dict of loaders by name, not a list: write `CombinedLoader\(dict\(a='),
    ((dict(a=[1]), 'in_turn', [1]), r'weights must be a dict.*not \[1\]'), ((dict(a=[1]), 'in_turn', lambda n: None), 'weights must be a dict.*not None')])
def test_lists_instead_of_dicts_raise(args, says):
    "They raised that a dictionary update sequence has another length, and that a list has no keys"
    with pytest.raises(TypeError, match=says): CombinedLoader(*args)

def test_raises_without_a_combined_loader():
    with pytest.raises(ValueError, match='needs a `CombinedLoader`'): Learner(DataLoaders(data(4, 0)), nn.Linear(3,1), F.mse_loss, cbs=EachLoader()).fit(1)

@pytest.mark.parametrize('order,cb,says', (
    ('in_turn', lambda: Prefetch(thread=True), 'determine the loader of a batch'), ('in_turn', lambda: OverfitBatches(2), 'determine the loader of a batch'),
    ('zip', lambda: GradientAccumulation('2ba'), 'would count each part of a zipped batch'), ('zip', SAM, 'the parts of a zipped batch are no longer'),
    ('zip', lambda: Recorder(train_metrics=True), 'the last part of each'), ('zip', lambda: InTurn(['d','g']), 'a step in each turn')))
def test_raises_with(order, cb, says):
    "What would be done to another batch, to the last part of it, or to each part as if it were a batch"
    opt = dict(opt_func={'d':(torch.optim.SGD, '*weight'), 'g':(torch.optim.SGD, '*bias')}) if says.startswith('a step in') else {}
    learn = Learner(DataLoaders(CombinedLoader(dict(a=data(8, 0), b=data(8, 1)), order)), nn.Sequential(nn.Linear(3,1)), F.mse_loss, metrics=mae,
                    cbs=[EachLoader(), cb()], **opt)
    with learn.no_bar(), learn.no_logging(), pytest.raises(ValueError, match=says): learn.fit(1)

def test_measures_batches_without_a_step():
    dls = DataLoaders(CombinedLoader(dict(a=data(8, 0), b=data(8, 1))))
    learn = Learner(dls, nn.Linear(3,1), F.mse_loss, torch.optim.SGD, lr=0., metrics=mae, cbs=[EachLoader(metrics=mae), GradientAccumulation('2ba')])
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    for name,dl in dls.train.loaders.items():   # the rate is 0, so the weights are the same in all batches
        x,y = dl.dataset.tensors
        assert learn.recorder.history[0][f'{name}_loss']==pytest.approx(F.mse_loss(learn.model(x), y).item(), rel=1e-5)
        assert learn.recorder.history[0][f'{name}_mae']==pytest.approx(F.l1_loss(learn.model(x), y).item(), rel=1e-5)
    assert learn.train_steps==4

@pytest.mark.slow
@few(1, 1)
@pytest.mark.parametrize('order', ('in_turn','zip'))
def test_fused(order):
    "Each loss function has its program, and the parts of a zipped batch one step"
    def trained(*cbs):
        torch.manual_seed(0)
        learn = Learner(DataLoaders(CombinedLoader(dict(a=data(8, 0), b=data(8, 1)), order)), nn.Linear(3,1), F.mse_loss, lr=.01,
                        cbs=[EachLoader(dict(b=F.l1_loss)), *cbs])
        with learn.no_bar(), learn.no_logging(): learn.fit(2)
        return [*learn.model.parameters()],learn.train_steps
    (fused,steps),(eager,n) = trained(FusedStep()),trained()
    assert steps==n and all(torch.allclose(*ps, atol=1e-6) for ps in zip(fused, eager))

def test_is_not_mistaken_for_another_position():
    noted = ResumableLoader(CombinedLoader(lists([3, 2])))
    for _ in zip(noted, range(2)): pass
    cut = noted.state(0)   # between two epochs, of which the first was cut
    other = ResumableLoader(CombinedLoader(lists([3, 2])))
    other.begin_at(cut)
    assert [*other]==oracle([3, 2])

def test_a_position_of_an_earlier_version_raises():
    dl = CombinedLoader(lists([3, 2]))
    state = dl.state_dict()
    state['parts'] = state.pop('sources')
    with pytest.raises(ValueError, match='has n, credit, dl_name, parts. If the checkpoint is from an earlier version'): dl.load_state_dict(state)
