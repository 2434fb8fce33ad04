"Interpretation: counts and reports equal scikit-learn's and plain counts, in one pass over the data"
import io, pickle
from contextlib import redirect_stdout
import numpy as np, pytest, torch
from hypothesis import given, strategies as st
from torch import nn
from torch.nn import functional as F
from learnkit.loop.callback import Callback
from learnkit.data.loaders import DataLoaders
from learnkit.observe.mistakes import ClassificationInterpretation
from learnkit.observe.interpret import Interpretation
from learnkit.learner.learner import Learner
from learnkit.measure.losses import *
from toys import draws

def learner(x, y, loss_func=None, model=None, bs=7, vocab=None):
    "A Learner whose predictions are `x`"
    batches = [(x[i:i+bs],y[i:i+bs]) for i in range(0, len(x), bs)]
    loss_func = CrossEntropyLossFlat() if loss_func is None else loss_func
    learn = Learner(DataLoaders(batches, batches, vocab=vocab), nn.Identity() if model is None else model, loss_func)
    learn.remove_cb(learn.progress)
    return learn

def case(n=50, c=4, seed=0, absent=0):
    "Logits and targets, in which the last `absent` classes never occur"
    g = torch.Generator().manual_seed(seed)
    return torch.randn(n, c, generator=g),torch.randint(0, c-absent, (n,), generator=g)

# against scikit-learn

@draws(15)
@given(n=st.integers(1, 40), c=st.integers(2, 6), seed=st.integers(0, 999), absent=st.integers(0, 1))
def test_as_sklearn(n, c, seed, absent):
    skm = pytest.importorskip('sklearn.metrics')
    x,y = case(n, c, seed, absent)
    interp = ClassificationInterpretation.from_learner(learner(x, y))
    labels,d = list(range(c)),x.argmax(1)
    assert np.array_equal(interp.confusion_matrix(), skm.confusion_matrix(y, d, labels=labels))
    want = skm.classification_report(y, d, labels=labels, output_dict=True, zero_division=0)
    report = {r['class']:r for r in interp.classification_report()}
    assert report['accuracy']['f1']==pytest.approx(skm.accuracy_score(y, d))
    for k in [*map(str, labels), 'macro avg', 'weighted avg']:
        for a,b in (('precision','precision'),('recall','recall'),('f1','f1-score'),('support','support')):
            assert report[k][a]==pytest.approx(want[k][b], abs=1e-9), (k, a)

def test_most_confused():
    x,y = case(200, 4)
    interp = ClassificationInterpretation.from_learner(learner(x, y, vocab=list('abcd')))
    d = x.argmax(1)
    want = {(a,b):int(((y==i) & (d==j)).sum()) for i,a in enumerate('abcd') for j,b in enumerate('abcd') if i!=j}
    got = interp.most_confused()
    assert {(a,b):n for a,b,n in got}=={k:n for k,n in want.items() if n}
    assert [n for *_,n in got]==sorted((n for *_,n in got), reverse=True)
    assert interp.most_confused(15)==[o for o in got if o[2]>=15] and len(interp.most_confused(15))<len(got)

def test_print_report():
    x,y = case()
    out = io.StringIO()
    interp = ClassificationInterpretation.from_learner(learner(x, y, vocab=list('abcd')))
    with redirect_stdout(out): interp.print_classification_report()
    lines = out.getvalue().splitlines()
    assert [l.split()[0] for l in lines]==['class','a','b','c','d','accuracy','macro','weighted']
    assert lines[0].split()[1:]==['precision','recall','f1','support']

# one pass

@pytest.mark.parametrize('cls', [Interpretation, ClassificationInterpretation])
def test_one_pass_over_the_data(cls):
    x,y = case()
    seen = []
    learn = learner(x, y)
    learn.add_cb(Callback(after_pred=lambda self: seen.append(0)))
    interp = cls.from_learner(learn, with_input=True)
    interp.top_losses(); interp.rows([0,1]); interp.plot_top_losses(3)
    if cls is ClassificationInterpretation:
        interp.confusion_matrix(); interp.most_confused(); interp.classification_report()
    assert len(seen)==8   # batches

def test_stored_tensors():
    x,y = case()
    interp = Interpretation.from_learner(learner(x, y))
    assert interp.inputs is None
    assert torch.equal(interp.preds, x.softmax(-1)) and torch.equal(interp.targs, y)
    assert torch.equal(interp.decoded, x.argmax(1))
    torch.testing.assert_close(interp.losses, F.cross_entropy(x, y, reduction='none'))
    interp = Interpretation.from_learner(learner(x, y), ds_idx=0, with_input=True, act=torch.sigmoid)
    assert torch.equal(interp.inputs, x) and torch.equal(interp.preds, x.sigmoid()) and len(interp)==50
    inp,p,t,d,l = interp[[3,1]]
    assert torch.equal(inp, x[[3,1]]) and torch.equal(t, y[[3,1]]) and torch.equal(l, interp.losses[[3,1]])
    assert torch.equal(interp[3][0], x[3:4]) and torch.equal(interp[torch.tensor([3])][0], x[3:4])

def test_top_losses():
    x,y = case()
    interp = Interpretation.from_learner(learner(x, y))
    losses,idxs = interp.top_losses(5)
    assert torch.equal(losses, interp.losses.sort(descending=True).values[:5])
    assert torch.equal(interp.losses[idxs], losses)
    assert torch.equal(interp.top_losses(5, largest=False)[0], interp.losses.sort().values[:5])
    assert len(interp.top_losses()[0])==len(interp.top_losses(99)[0])==50

def test_in_the_order_of_the_data_set():
    x,y = case()
    dl = torch.utils.data.DataLoader(list(zip(x, y)), batch_size=7, shuffle=True, drop_last=True)
    interp = ClassificationInterpretation.from_learner(learner(x, y), dl=dl)
    assert torch.equal(interp.targs, y)

def loaders(x, y):
    "Loaders, each with whether samples can be read again: not if its order is unknown or not the dataset's"
    ds = torch.utils.data.TensorDataset(x, y)
    dl = lambda **kw: torch.utils.data.DataLoader(ds, **{'batch_size':7, **kw})
    sampler = lambda c, *args: dl(sampler=c(*args))
    U = torch.utils.data
    yield from [(True, dl()), (True, dl(shuffle=True, drop_last=True)), (True, dl(batch_size=50)), (True, dl(shuffle=True, num_workers=1, persistent_workers=True))]
    yield from [(False, sampler(U.SubsetRandomSampler, range(20))), (False, sampler(U.WeightedRandomSampler, [1.]*50, 30)), (False, dl(batch_size=None)),
                (False, sampler(U.DistributedSampler, ds, 2, 0)), (False, [*dl()]), (False, dl(batch_sampler=[[3,4],[1]], batch_size=1))]

def test_inputs_are_read_again_when_needed():
    "`interp[:]` and `rows` read inputs from the dataset when needed; they used to require `with_input=True`"
    x,y = case()
    for i,(can,dl) in enumerate(loaders(x, y)):
        learn = learner(x, y)
        kept,read = (Interpretation.from_learner(learn, dl=dl, with_input=w) for w in (True, False)) if can else (None, Interpretation.from_learner(learn, dl=dl))
        assert (read.read is not None)==can, i
        if not can: assert read[[1,0]][0] is None; continue
        state = torch.get_rng_state()
        for idxs in (slice(None), [4,2,2], [], torch.tensor(3)): assert all(torch.equal(a, b) for a,b in zip(kept[idxs], read[idxs]) if a.numel()), (i, idxs)
        assert torch.equal(state, torch.get_rng_state()) and read.inputs is None
        assert [r['input'] for r in read.rows([3,1])]==[r['input'] for r in kept.rows([3,1])]
    assert pickle.loads(pickle.dumps(read)).read is None

# kinds of targets

def test_binary_classification():
    x,y = torch.randn(30,1),(torch.rand(30,1)>.5).float()
    interp = ClassificationInterpretation.from_learner(learner(x, y, BCEWithLogitsLossFlat(), vocab=['no','yes']))
    assert interp.confusion_matrix()[1,0]==((x<=0) & (y==1)).sum() and interp.confusion_matrix().sum()==30

def test_pixels_and_ignore_index():
    x,y = torch.randn(6,3,4,4),torch.randint(0, 3, (6,4,4))
    y[:,0] = 255
    for loss_func in (CrossEntropyLossFlat(axis=1, ignore_index=255), nn.CrossEntropyLoss(ignore_index=255)):
        cm = ClassificationInterpretation.from_learner(learner(x, y, loss_func)).confusion_matrix()
        d,keep = x.argmax(1),y!=255
        assert cm.shape==(3,3) and cm.sum()==6*12 and cm.diagonal().sum()==(d==y)[keep].sum()

def test_vocab():
    x,y = case()
    learn = learner(x, y, vocab=list('abcd'))
    def vocab(**kw): return ClassificationInterpretation.from_learner(learn, **kw).vocab
    assert vocab()==list('abcd') and vocab(vocab='wxyz')==list('wxyz')
    assert vocab(vocab=(['p','q'], list('abcd')))==list('abcd')
    assert ClassificationInterpretation.from_learner(learner(x, y)).vocab==[0,1,2,3]
    assert [r['target'] for r in Interpretation.from_learner(learn).rows([0,1])]==['abcd'[i] for i in y[:2]]
    x,y = case(absent=2)
    x[:,2:] -= 100
    cm = ClassificationInterpretation.from_learner(learner(x, y)).confusion_matrix()
    assert cm.shape==(4,4)   # the model has four outputs

# images and tables

@pytest.mark.parametrize('shape,kind', [((1,8,8),'image'), ((3,8,8),'image'), ((8,8),'image'), ((5,),'table'),
                                        ((7,8,8),'table')])
def test_top_losses_are_images_or_a_table(shape, kind):
    import matplotlib.pyplot as plt
    x,y = torch.randn(9, *shape),torch.randint(0, 3, (9,))
    model = nn.Sequential(nn.Flatten(), nn.Linear(x[0].numel(), 3))
    interp = Interpretation.from_learner(learner(x, y, model=model), with_input=True)
    for k,n in ((4,4), (range(1,3),2), ([0,5],2)):
        res = interp.plot_top_losses(k, ncols=3)
        if kind=='table': assert len(res)==n
        else: assert sum(len(ax.images) for ax in res.flat)==n
        rank = interp.losses.sort(descending=True)
        want = rank.indices[:k] if isinstance(k, int) else rank.indices[list(k)]
        if kind=='table': assert [r['item'] for r in res]==want.tolist()
        else:
            shown = [float(ax.get_title().split('\n')[1].split()[0]) for ax in res.flat if ax.images]
            assert shown==[round(o, 2) for o in interp.losses[want].tolist()]
    plt.close('all')

def test_plot_confusion_matrix():
    import matplotlib.pyplot as plt
    x,y = case(absent=1)
    interp = ClassificationInterpretation.from_learner(learner(x, y, vocab=list('abcd')))
    cm = interp.confusion_matrix()
    ax = interp.plot_confusion_matrix()
    assert [t.get_text() for t in ax.texts]==[str(o) for o in cm.flatten()]
    assert [t.get_text() for t in ax.get_xticklabels()]==list('abcd')
    ax = interp.plot_confusion_matrix(normalize=True, norm_dec=3, title='T', ax=plt.subplots()[1])
    assert [t.get_text() for t in ax.texts]==[f'{v/max(r.sum(), 1):.3f}' for r in cm for v in r] and ax.get_title()=='T'
    assert not interp.plot_confusion_matrix(plot_txt=False).texts
    plt.close('all')

def test_regression_and_several_inputs_and_outputs():
    x,y = torch.randn(8,3),torch.randn(8,3)
    rows = Interpretation.from_learner(learner(x, y, MSELossFlat()), with_input=True).plot_top_losses(3)
    assert list(rows[0])==['item','loss','target','prediction','input']
    class Two(nn.Module):
        def forward(self, a, b): return dict(s=a+b, d=a-b)
    def loss_func(p, y, reduction='mean'): return F.mse_loss(p['s'], y, reduction=reduction)
    learn = Learner(DataLoaders([(x,y,y)], [(x,y,y)], n_inp=2), Two(), loss_func)
    rows = Interpretation.from_learner(learn, with_input=True).plot_top_losses(3)
    assert list(rows[0])==['item','loss','target','prediction','input 0','input 1']

# mistakes

def no_loss():
    learn = learner(*case())
    learn.loss_func = None
    return learn
x,y = case()

def interpret(*args, **kw): return ClassificationInterpretation.from_learner(*args, **kw)

@pytest.mark.parametrize('make,says', [
    (lambda: interpret(no_loss()), 'needs a loss function'),
    (lambda: interpret(learner(x, y), dl=[(x,)]), 'needs targets'),
    (lambda: interpret(learner(x, x, MSELossFlat())), 'use `Interpretation`'),
    (lambda: interpret(learner(x, (x>0).float(), BCEWithLogitsLossFlat())), 'several labels'),
    (lambda: interpret(learner(x, x.softmax(1), nn.CrossEntropyLoss())), r'y.argmax\(1\)'),
    (lambda: interpret(learner(x, y, vocab=['a','b'])), '`vocab` has 2'),
    (lambda: interpret(learner(x, y), vocab='abc'), 'indices 0 to 2'),
    (lambda: Interpretation.from_learner(learner(x, y)).plot_top_losses(2), 'with_input=True')])
def test_mistakes(make, says):
    with pytest.raises((TypeError, ValueError), match=says): make()

@pytest.mark.parametrize('idxs,want', [(-1, [9]), (slice(2, 4), [2,3]), ((0,5), [0,5]), (range(3), [0,1,2]), (torch.arange(10)>7, [8,9]), ([], [])], ids=str)
def test_samples_may_be_given_in_any_way(idxs, want):
    "`rows` shows the samples that `[]` selects, by their index: a mask raised an IndexError, and -1 was shown as -1"
    interp = Interpretation.from_learner(learner(*case(10)))
    assert [row['item'] for row in interp.rows(idxs)]==want
    assert torch.equal(interp[idxs][1], interp.preds[want])
