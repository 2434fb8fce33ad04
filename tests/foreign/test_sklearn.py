"""The estimators of `contrib.sklearn` used by scikit-learn: its own checks of estimators, grids in two processes,
pipelines, files and unusual arrays."""
from functools import partial
import io, json, pickle, re, sys
from pathlib import Path
from unittest import mock
import numpy as np, pytest, torch
from torch import nn
from torch.nn import functional as F
joblib = pytest.importorskip('joblib')
pytest.importorskip('sklearn')
from scipy.sparse import csr_matrix
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import AdaBoostClassifier, VotingClassifier
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from learnkit.all import (BCEWithLogitsLossFlat, Callback, CheckpointCallback, CrossEntropyLossFlat, DataLoaders, Learner, MSELossFlat, ParamScheduler, accuracy,
                          no_random, one_cycle, set_seed)
from learnkit.data.arrays import BatchTensorDataset, collate_tensors
from learnkit.contrib.sklearn import LearnerClassifier, LearnerRegressor

def mlp(dls, n_out, hidden): return nn.Sequential(nn.Flatten(), nn.Linear(dls.train_ds.tensors[0][0].numel(), hidden), nn.ReLU(), nn.Linear(hidden, n_out))
def classes(dls, hidden=16, loss_func=CrossEntropyLossFlat(), cbs=None): return Learner(dls, mlp(dls, len(dls.vocab), hidden), loss_func, cbs=cbs)
def binary(dls, hidden=16, loss_func=BCEWithLogitsLossFlat()): return Learner(dls, mlp(dls, 1, hidden), loss_func)
def numbers(dls, hidden=16): return Learner(dls, mlp(dls, dls.train_ds.tensors[1][0].numel(), hidden), MSELossFlat())
def needs(dls, hidden): return classes(dls, hidden)
def partly(dls, depth=2): return classes(dls, 8*depth)

def data(n=90, k=3, words=False):
    rng = np.random.RandomState(0)
    y = np.arange(n)%k
    X = rng.randn(k, 4)[y]*2 + .5*rng.randn(n, 4)
    return X,np.array(['red','green','blue'])[y] if words else y
X,y = data()
def clf(epochs=5, lr=1e-2, make=classes, **kw): return LearnerClassifier(make, epochs, lr, **{'bs':32, 'random_state':0, **kw})
def reg(epochs=5, lr=1e-2, **kw): return LearnerRegressor(numbers, epochs, lr, **{'bs':32, 'random_state':0, **kw})
def weights(est): return torch.cat([p.detach().flatten() for p in est.learn_.model.parameters()])

# scikit-learn's own checks

PAGE = Path(__file__).resolve().parents[2]/'nbs/contrib/30_sklearn.ipynb'
def known():
    "Return {failing check: reason} as the page lists them"
    text = '\n'.join(''.join(c['source']) for c in json.loads(PAGE.read_text(encoding='utf-8'))['cells'])
    return dict(re.findall(r'^\| `(check_\w+)` \| (.+) \|$', text, re.M))
KNOWN = known()

CHECKS = parametrize_with_checks([clf(20, bs=1024), reg(20, 5e-2, bs=1024)], expected_failed_checks=lambda est: KNOWN, xfail_strict=True)
def without_address(o): return re.sub('at0x[0-9a-f]+', '', CHECKS.kwargs['ids'](o))   # xdist needs equal ids everywhere

@pytest.mark.slow
@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(*CHECKS.args, ids=without_address)
def test_checks_of_scikit_learn(estimator, check): check(estimator)

# searches, pipelines

@pytest.mark.slow
def test_grid_in_two_processes_is_the_grid_in_one():
    grid = dict(learnerclassifier__hidden=[2, 16], learnerclassifier__lr=[1e-4, 3e-2])
    one,two = (GridSearchCV(make_pipeline(StandardScaler(), clf()), grid, cv=3, n_jobs=n).fit(X, y) for n in (None, 2))
    assert (one.cv_results_['mean_test_score']==two.cv_results_['mean_test_score']).all()
    assert one.best_params_['learnerclassifier__lr']==3e-2 and one.best_score_>.9
    assert torch.equal(weights(one.best_estimator_[1]), weights(two.best_estimator_[1]))

@pytest.mark.slow
def test_random_search():
    s = RandomizedSearchCV(clf(), dict(lr=loguniform(1e-4, 1e-1), hidden=[4, 8], bs=[16, 32]), n_iter=3, cv=2, random_state=0).fit(X, y)
    assert {*s.best_params_}=={'lr','hidden','bs'} and len(s.cv_results_['params'])==3

@pytest.mark.slow
def test_a_lambda_in_two_processes():
    "joblib can send functions that cannot be imported by name to its processes; pickle cannot"
    here = lambda dls: classes(dls, 8)
    assert (cross_val_score(clf(make=here), X, y, cv=2, n_jobs=2)==cross_val_score(clf(make=here), X, y, cv=2)).all()
    with pytest.raises((pickle.PicklingError, AttributeError), match='lambda'): pickle.dumps(clf(make=here))

@pytest.mark.slow
def test_other_users_of_a_classifier():
    assert cross_val_predict(clf(), X, y, cv=3, method='predict_proba').shape==(90,3)
    for est in (OneVsRestClassifier(clf(make=binary)), VotingClassifier([('a', clf()), ('b', clf(hidden=8))], voting='soft'), AdaBoostClassifier(clf(), n_estimators=2),
                CalibratedClassifierCV(clf(), cv=2)):
        assert est.fit(X, y).score(X, y)>.8, est
    assert MultiOutputClassifier(clf()).fit(X, np.stack([y,y==1], 1)).predict(X).shape==(90,2)

# parameters

def test_parameters_of_the_factory():
    est = clf(hidden=8)
    assert est.get_params()['hidden']==8 and clf().get_params()['hidden']==16 and clone(est).hidden==8
    assert est.set_params(hidden=4, epochs=1).fit(X, y).learn_.model[1].out_features==4
    est.set_params(hidden=7)   # takes effect at the next fit
    assert est.predict(X).shape==y.shape and est.learn_.model[1].out_features==4
    assert est.fit(X, y).learn_.model[1].out_features==7
    assert clf(make=partial(classes, hidden=5), epochs=1).fit(X, y).learn_.model[1].out_features==5
    assert clf(make=needs, hidden=3, epochs=1).fit(X, y).learn_.model[1].out_features==3
    with pytest.raises(ValueError, match='Invalid parameter'): est.set_params(hiden=3)
    assert 'hidden=7' in repr(est)

def five(dls): return Learner(dls, mlp(dls, 5, 4), CrossEntropyLossFlat())
def shared(dls, lr=None, epochs=1): return classes(dls, cbs=ParamScheduler(one_cycle(lr)))
def test_a_parameter_of_both_estimator_and_factory():
    est = clf(make=shared, lr=.02).fit(X, y)
    assert abs(max(est.learn_.recorder.lrs)-.02)<1e-3

@pytest.mark.parametrize('f,words', [
    (lambda: clf(hiden=3), '`make` has no parameter `hiden`'), (lambda: clf(make=needs), '`make` needs `hidden`'),
    (lambda: clf(make=lambda dls, score=1: None), 'estimators have a `score`'), (lambda: clf(make=3).fit(X, y), '`make` must be a function, not 3'),
    (lambda: clf(train='fit').fit(X, y), "`train` must be a function, not 'fit'"), (lambda: clf(make=mlp, n_out=3, hidden=2).fit(X, y), 'must return a Learner, not Sequential'),
    (lambda: clf(make=five).fit(X, y).predict(X), r'returned \(90, 5\) for 90 samples of 3 classes'), (lambda: clf().fit(X, y*0), '`y` has only 1 class, 0: 2 or more are needed'),
    (lambda: clf(bs=0).fit(X, y), 'bs'), (lambda: clf(valid_pct=20).fit(X, y), 'valid_pct'), (lambda: clf(epochs='3 weeks').fit(X, y), '3 weeks'),
    (lambda: clf().fit(X, y, np.zeros(90)), 'weights'), (lambda: clf().fit(X, y, -np.ones(90)), '[Nn]egative'), (lambda: clf().predict(X), 'not fitted'),
    (lambda: clf().fit(X, X[:,0]), 'Unknown label type: continuous'), (lambda: clf().fit(X, y[:9]), 'inconsistent numbers of samples'),
    (lambda: clf().fit(csr_matrix(X), y), 'dense data is required'), (lambda: clf().fit(np.where(X>2, np.nan, X), y), 'contains NaN'), (lambda: clf().fit(X[:,0], y), 'Expected 2D array'),
    (lambda: reg().fit(X, np.where(y>1, np.nan, 1.)), 'contains NaN'), (lambda: clf().fit(X, y).predict(X[:,:3]), '3 features, but LearnerClassifier is expecting 4')])
def test_wrong_parameters_and_data_raise(f, words):
    with pytest.raises((TypeError, ValueError, NotFittedError), match=words): f()

# arrays

def test_any_array_gives_equal_predictions():
    "All kinds of arrays are converted to `float32`, so they give equal predictions"
    want = clf().fit(X.astype(np.float32), y).predict_proba(X.astype(np.float32))
    read_only = X.copy(); read_only.flags.writeable = False
    for A,b in ((X,y), (X.tolist(),y.tolist()), (np.asfortranarray(X),y.astype(np.int8)), (read_only,y), (X[::-1][::-1],y), (torch.tensor(X),torch.tensor(y))):
        assert (clf().fit(A, b).predict_proba(A)==want).all()
    with pytest.warns(DataConversionWarning): assert (clf().fit(X, y[:,None]).predict_proba(X)==want).all()
    words = clf().fit(X, data(words=True)[1])
    assert [*words.classes_]==['blue','green','red'] and words.score(X, data(words=True)[1])>.9

def test_data_frames():
    pd = pytest.importorskip('pandas')
    frame = pd.DataFrame(X, columns=[*'abcd'])
    est = clf().fit(frame, pd.Series(y))
    assert [*est.feature_names_in_]==[*'abcd'] and torch.equal(weights(est), weights(clf().fit(X, y)))
    with pytest.raises(ValueError, match='feature names'): est.predict(frame[[*'dcba']])

def test_images():
    est = clf().fit(np.repeat(X.reshape(-1,1,2,2), 2, 2), y)
    assert est.learn_.model[1].in_features==8 and est.predict(np.repeat(X.reshape(-1,1,2,2), 2, 2)).shape==(90,)

@pytest.mark.parametrize('shape', [(90,), (90,1), (90,2)])
def test_predictions_have_the_shape_of_the_target(shape):
    t = np.resize(X.sum(1), shape) if len(shape)==1 or shape[1]==1 else X[:,:2]
    est = reg(40, 3e-2).fit(X, t)
    assert est.predict(X).shape==shape and est.score(X, t)>.9
    assert np.array_equal(reg().fit(X, y).predict(X), reg().fit(X, y.astype(float)).predict(X))   # integer targets too

# probabilities

def hinge(pred, targ): return F.multi_margin_loss(pred, targ)
@pytest.mark.parametrize('make,k', [(partial(classes, loss_func=nn.CrossEntropyLoss()), 3), (classes, 3), (partial(classes, loss_func=F.cross_entropy), 3),
                                    (binary, 2)], ids=range(4))
def test_probabilities(make, k):
    A,b = data(k=k)
    est = clf(20, make=make).fit(A, b)
    p = est.predict_proba(A)
    assert p.shape==(90,k) and np.allclose(p.sum(1), 1, atol=1e-6) and (est.classes_[p.argmax(1)]==est.predict(A)).all() and est.score(A, b)>.9

def test_predict_proba_raises_without_probabilities():
    est = clf(20, make=partial(classes, loss_func=hinge)).fit(X, y)
    assert est.score(X, y)>.9
    with pytest.raises(ValueError, match='CrossEntropyLossFlat'): est.predict_proba(X)

# fits

def test_an_estimator_trains_like_its_learner():
    "The weights equal those of the same Learner, fitted directly"
    est = clf(3).fit(X, y)
    with no_random(int(np.random.RandomState(0).randint(2**31))):
        ds = BatchTensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y))
        learn = classes(DataLoaders.from_dsets(ds, bs=32, vocab=[0,1,2], collate_fn=collate_tensors))
        learn.fit(3, 1e-2)
    assert all(torch.equal(a, b) for a,b in zip(learn.model.parameters(), est.learn_.model.parameters()))

def test_each_fit_starts_from_scratch():
    est = clf().fit(X, y)
    first,learn = weights(est),est.learn_
    assert torch.equal(weights(est.fit(X, y)), first) and est.learn_ is not learn
    small = X[y<2][:, :2]
    assert est.fit(small, y[y<2]).n_features_in_==2 and len(est.classes_)==2 and est.predict(small).shape==(60,)
    assert not torch.equal(weights(clf(random_state=1).fit(X, y)), first)

def test_random_state_none_uses_the_global_seed():
    set_seed(5)
    a,t,n = clf(random_state=None).fit(X, y),torch.rand(1),np.random.rand()
    set_seed(5)
    b = clf(random_state=None).fit(X, y)
    assert torch.equal(weights(a), weights(b)) and torch.equal(t, torch.rand(1)) and n==np.random.rand()
    assert not torch.equal(weights(clf(random_state=None).fit(X, y)), weights(a))
    rng = np.random.RandomState(0)
    assert not torch.equal(weights(clf(random_state=rng).fit(X, y)), weights(clf(random_state=rng).fit(X, y)))

def test_ctrl_c_leaves_a_usable_estimator():
    class Quits(Callback):
        def after_batch(self):
            if self.train_iter==4: raise KeyboardInterrupt
    est = clf(make=partial(classes, cbs=Quits()))
    with pytest.raises(KeyboardInterrupt): est.fit(X, y)
    assert est.learn_.train_iter==4 and est.predict(X).shape==(90,)
    est.set_params(make=classes).fit(X, y)
    assert torch.equal(weights(est), weights(clf().fit(X, y)))

def test_a_failed_fit_leaves_an_unfitted_estimator():
    "Otherwise the old Learner would be used with the new classes"
    est = clf().fit(X, y)
    def fails(dls): raise RuntimeError('no')
    with pytest.raises(RuntimeError): est.set_params(make=fails).fit(X[y<2], y[y<2])
    with pytest.raises(NotFittedError): est.predict(X)

@pytest.mark.slow
def test_a_killed_fit_resumes(tmp_path):
    "A custom `train` function can resume"
    class Quits(Callback):
        acts = 'nothing'
        def after_batch(self):
            if self.train_iter==8: raise OSError('killed')
    def make(dls, cbs=(), folder='cut'): return classes(dls, cbs=[CheckpointCallback('1ba', folder=tmp_path/folder), *cbs])
    resume = partial(Learner.fit, resume='auto')
    whole = clf(make=make, folder='whole').fit(X, y)
    with pytest.raises(OSError): clf(make=make, train=resume, cbs=(Quits(),)).fit(X, y)
    est = clf(make=make, train=resume).fit(X, y)
    assert torch.equal(weights(est), weights(whole)) and est.learn_.train_iter==15

def test_the_learner_can_train_further():
    est = clf(2).fit(X, y)
    before = est.score(X, y)
    est.learn_.fit(5, 1e-2)
    assert est.score(X, y)>before

def test_is_quiet_by_default(capsys):
    clf(1).fit(X, y).predict(X)
    assert capsys.readouterr().out==''
    clf(1, verbose=True).fit(X, y)
    assert 'train_loss' in capsys.readouterr().out

# weights

@pytest.mark.parametrize('E,make,t', [(LearnerClassifier, classes, y), (LearnerRegressor, numbers, X[:,:2])])
def test_a_weight_counts_like_copies_of_a_sample(E, make, t):
    "A weight of 0 drops the sample; weights of full batches agree up to the order of float additions"
    w = np.random.RandomState(1).randint(0, 4, 90)
    est = E(make, 10, 1e-2, bs=1024, random_state=0)
    a = weights(clone(est).fit(X, t, w*7.))
    assert torch.allclose(a, weights(clone(est).fit(X.repeat(w, 0), t.repeat(w, 0))), atol=1e-5)
    assert not torch.allclose(a, weights(clone(est).fit(X, t)), atol=1e-3)
    assert torch.allclose(weights(clone(est).fit(X, t, np.ones(90))), weights(clone(est).fit(X, t)), atol=1e-5)

def test_loss_of_an_epoch_is_the_weighted_mean():
    "Also where batches differ in total weight; metrics receive only the target"
    w = np.random.RandomState(1).rand(90)
    def make(dls): return Learner(dls, mlp(dls, 3, 8), CrossEntropyLossFlat(), metrics=accuracy)
    est = clf(1, make=make, bs=8, valid_pct=.2).fit(X, y, w)
    A,b,v = est.learn_.dls.valid_ds.tensors
    out = est.learn_.model(A).detach()
    row = [(F.cross_entropy(out, b, reduction='none')*v).mean(), (out.argmax(1)==b).float().mean()]
    assert torch.allclose(torch.tensor(row), torch.tensor([est.learn_.recorder.history[-1][k] for k in ('valid_loss','accuracy')]))
    est.learn_.fit(2)   # uses the weights too
    assert est.learn_.validate()[0]<row[0] and est.learn_.get_preds()[0].shape==(18,3)

# files

@pytest.mark.parametrize('kw', [{}, dict(valid_pct=.2, train=Learner.fit_one_cycle)])
def test_files(tmp_path, kw):
    est = clf(**kw).fit(X, y)
    for back in (pickle.loads(pickle.dumps(est)), (joblib.dump(est, tmp_path/'a'), joblib.load(tmp_path/'a'))[1]):
        assert (back.predict_proba(X)==est.predict_proba(X)).all()
        assert torch.equal(weights(back.fit(X, y)), weights(est))
        back.learn_.fit(1)

def test_without_scikit_learn():
    with mock.patch.dict(sys.modules, {'sklearn.base':None}):
        module = sys.modules.pop('learnkit.contrib.sklearn')
        try:
            with pytest.raises(ImportError, match="needs scikit-learn: pip install '?scikit-learn.*extra `sklearn`"): import learnkit.contrib.sklearn
        finally: sys.modules['learnkit.contrib.sklearn'] = module
