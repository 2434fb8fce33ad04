"""Several optimizers for one model, with all that knows an optimizer; each beside the loop by hand"""
import copy, pickle
from functools import partial

import pytest, torch
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD, Adagrad, Adam, AdamW, Muon, RMSprop

from learnkit.all import (Callback, CheckpointCallback, DataLoaders, EMACallback, GradientAccumulation, GradientClip,
    Learner, LRMonitor, MixedPrecision, ParamScheduler, SchedCos, TorchScheduler, is_matrix, load_learner)
from learnkit.speed.updates import functional_optim
from toys import few

torch.set_num_threads(1)
two = {'muon':(partial(Muon, lr=.02), is_matrix), 'adam':partial(AdamW, lr=.01)}

def net():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 2))

def batches():
    torch.manual_seed(2)
    return [(x, x[:,:2].sin()) for x in torch.randn(6, 8, 4)]

def learner(opt_func=two, path='.', **kw):
    learn = Learner(DataLoaders(batches(), batches()[:1]), net(), nn.MSELoss(), opt_func=opt_func, path=path, **kw)
    learn.logger = lambda *a, **k: None
    return learn.remove_cb(learn.progress)

def by_hand(m):
    "The two optimizers of `m`"
    mats,rest = [p for p in m.parameters() if p.ndim==2],[p for p in m.parameters() if p.ndim!=2]
    return Muon(mats, lr=.02),AdamW(rest, lr=.01)

def same(a, b): return all(torch.equal(p, q) for p,q in zip(a.state_dict().values(), b.state_dict().values()))

def loop(m, opts, n=2, every=1, clip=None):
    for i,(x,y) in enumerate(batches()*n, 1):
        (F.mse_loss(m(x), y)/every).backward()
        if i%every: continue
        if clip: nn.utils.clip_grad_norm_([p for o in opts for g in o.param_groups for p in g['params']], clip)
        for o in opts: o.step(); o.zero_grad()
    return m

@pytest.mark.parametrize('kw,cbs', [({}, ()), (dict(clip=.1), GradientClip(.1)), (dict(every=2), GradientAccumulation('2ba')),
                                    ({}, EMACallback(at_end=False)), ({}, LRMonitor('1ba'))])
def test_is_the_loop_by_hand(kw, cbs):
    learn,m = learner(cbs=copy.deepcopy(cbs)),net()
    learn.fit(2)
    assert same(learn.model, loop(m, by_hand(m), **kw))

def test_mixed_precision_steps_all_and_skips_all():
    learn = learner(cbs=MixedPrecision('fp16', init_scale=2.**40))   # the first gradients are infinite
    before = copy.deepcopy(learn.model)
    learn.fit('1ba')
    assert same(learn.model, before) and learn.train_steps==0
    learn.fit(4)
    assert not any(torch.equal(p, q) for p,q in zip(learn.model.parameters(), before.parameters()))

@pytest.mark.parametrize('at', [2, 6, 9])
@pytest.mark.parametrize('kw', [{}, dict(wd=.1), dict(splitter=lambda m: [m[:2].parameters(), m[2:].parameters()])])
@few(3)
def test_a_killed_run_resumes_bit_for_bit(tmp_path, at, kw):
    def kill(cb):
        if cb.learn.train_iter==at: raise KeyboardInterrupt
    def cbs(folder): return [CheckpointCallback('2ba', folder=tmp_path/folder), ParamScheduler({'lr_muon':SchedCos(.02, 0.)})]
    whole = learner(**kw)
    whole.fit(2, cbs=cbs('whole'))
    one = learner(**kw)
    with pytest.raises(KeyboardInterrupt): one.fit(2, cbs=[*cbs('killed'), Callback(after_batch=kill)])
    other = learner(**kw)
    other.fit(2, cbs=cbs('killed'), resume='auto')
    assert same(other.model, whole.model)
    assert all(torch.equal(a, b) for p,q in zip(other.opt.state.values(), whole.opt.state.values())
               for a,b in zip(p.values(), q.values()) if isinstance(a, torch.Tensor))

def test_own_files_load_and_those_of_others_raise(tmp_path):
    learn = learner(path=tmp_path)
    learn.fit(1)
    learn.save('m')
    other = learner(path=tmp_path).load('m')
    assert same(other.model, learn.model)
    learn.fit(1); other.fit(1)
    assert same(other.model, learn.model)
    for wrong in ({'adam':(Adam, is_matrix), 'muon':Adam}, {'muon':(Adam, is_matrix), 'adam':SGD}, Adam):
        odd = learner(wrong, path=tmp_path)
        with pytest.raises(ValueError): odd.load('m')
    one = learner(Adam, path=tmp_path)
    one.fit(1); one.save('one')
    with pytest.raises(ValueError, match='muon, adam'): learner(path=tmp_path).load('one')

def test_a_copy_and_an_export_know_it(tmp_path):
    learn = learner(path=tmp_path)
    learn.fit(1)
    twin = copy.deepcopy(learn)
    opt = pickle.loads(pickle.dumps((learn.model, learn.opt)))[1]
    assert opt.state_dict()['param_groups']==learn.opt.state_dict()['param_groups']
    learn.fit(1); twin.fit(1)
    assert same(twin.model, learn.model)
    file = learn.export('e')
    assert same(load_learner(file, model=net()).model, learn.model)

def test_each_has_its_rates_by_name():
    learn = learner()
    assert learn.lr=={'muon':.02, 'adam':.01}
    learn.fit(1, lr={'adam':.5})
    assert [h['lr'] for h in learn.opt.hypers]==[.02,.5]
    learn.fit(1, .1)
    assert [h['lr'] for h in learn.opt.hypers]==[.1,.1]
    learn.fit_one_cycle(1, {'muon':.2, 'adam':.1})
    assert learn.recorder.group_hps['lr'][-1]!=learn.recorder.group_hps['lr'][0] and 'mom' in learn.recorder.hps
    learn.fit(2, wd={'adam':.3})
    assert [h['wd'] for h in learn.opt.hypers]==[.1,.3]
    for lr,word in (({'adm':1.}, 'adam'), ({'adam':-1.}, "of 'adam'")):
        with pytest.raises(ValueError, match=word): learn.fit(1, lr=lr)

def test_weight_decay_spares_norms_in_each():
    learn,m = learner({'mats':(SGD, is_matrix), 'rest':SGD}, wd=.5),net()
    learn.fit(1, .1)
    opts = SGD([p for p in m.parameters() if p.ndim==2], .1, weight_decay=.5),SGD([p for p in m.parameters() if p.ndim!=2], .1)
    assert same(learn.model, loop(m, opts, 1))

def test_schedulers_of_pytorch_schedule_all():
    learn,m = learner(cbs=TorchScheduler(partial(torch.optim.lr_scheduler.ExponentialLR, gamma=.5))),net()
    learn.fit(2)
    opts = by_hand(m)
    loop(m, opts, 1)
    for o in opts:
        for g in o.param_groups: g['lr'] *= .5
    assert same(learn.model, loop(m, opts, 1))

def test_lr_find_leaves_all_as_it_was():
    learn = learner()
    learn.fit(1)
    before,state = copy.deepcopy(learn.model),copy.deepcopy(learn.opt.state_dict())
    seen = []
    learn.add_cb(Callback(after_batch=lambda cb: seen.append([h['lr'] for h in cb.opt.hypers])))
    for hyper in ('lr','lr_adam'): learn.lr_find(num_it=20, show_plot=False, hyper=hyper)
    assert same(learn.model, before) and str(learn.opt.state_dict())==str(state)
    assert all(a==b for a,b in seen[:20]) and {a for a,_ in seen[20:]}=={.02} and len({b for _,b in seen[20:]})==20
    assert [b for _,b in seen[20:]]==learn.recorder.lr_curve.lrs

@pytest.mark.parametrize('first', [Adagrad, RMSprop, partial(SGD, momentum=.9)])
def test_optimizers_with_other_states(first):
    learn,m = learner({'a':(first, '0.*'), 'b':Adam}, lr=.01),net()
    learn.fit(1); learn.opt.clear_state(); learn.fit(1)
    for _ in range(2):
        opts = first([*m[0].parameters()], lr=.01),Adam([*m[1:].parameters()], lr=.01)
        loop(m, opts, 1)
    assert same(learn.model, m)

def test_a_momentum_that_begins_late():
    learn = learner({'a':(RMSprop, '0.*'), 'b':Adagrad}, lr=.01)
    learn.fit(1)
    learn.opt.set_hyper('mom', .9)   # Adagrad has none
    learn.fit(1)
    assert [h.get('mom') for h in learn.opt.hypers]==[.9,None]

def test_a_new_layer_is_adopted():
    learn = learner()
    learn.fit(1)
    learn.model[3] = nn.Linear(8, 2)
    learn.fit(1)
    ids = {id(p) for g in learn.opt.param_groups for p in g['params']}
    assert ids=={id(p) for p in learn.model.parameters()} and len(learn.opt.hypers_of('muon'))==1

def test_a_fused_step_leaves_its_steps_to_it():
    learn = learner()
    learn.create_opt()
    assert functional_optim(learn.opt) is None

def test_the_names_of_learnkit_are_those_of_pytorch():
    "`Adam` from `learnkit.all` was refused, as it makes an `OptimWrapper`"
    from learnkit import all as lk
    a,b = learner({'m':(partial(lk.Adam, mom=.8), is_matrix), 'r':lk.SGD}, lr=.01),learner({'m':(partial(Adam, betas=(.8,.99)), is_matrix), 'r':SGD}, lr=.01)
    for l in (a,b): l.fit(1)
    assert type(a.opt.opt.named_optimizers['r']) is SGD and a.opt.hypers[0]['mom']==.8

def test_the_fused_optimizers_of_pytorch():
    "`fused=True` is PyTorch's own kernel; with and without a scaler, whose steps some of them take themselves"
    both = {'m':(partial(Adam, fused=True), is_matrix), 'r':partial(SGD, fused=True)}
    learn,m = learner(both, lr=.01),net()
    learn.fit(2)
    opts = Adam([p for p in m.parameters() if p.ndim==2], lr=.01, fused=True),SGD([p for p in m.parameters() if p.ndim!=2], lr=.01, fused=True)
    assert same(learn.model, loop(m, opts))
    scaled,plain = (learner(o, lr=.01, cbs=MixedPrecision('fp16', init_scale=2.**8)) for o in (both, {'m':(Adam, is_matrix), 'r':SGD}))
    for l in (scaled, plain): l.fit(1)
    for a,b in zip(scaled.model.parameters(), plain.model.parameters()): torch.testing.assert_close(a, b)

def test_each_is_frozen_and_decays_by_itself():
    halves = dict(splitter=lambda m: [m[:2].parameters(), m[2:].parameters()])
    learn = learner({'m':(SGD, is_matrix), 'r':SGD}, lr=.1, wd={'m':.5}, **halves)
    learn.create_opt()
    learn.opt.freeze_to({'m':1})
    learn.fit(1)
    m = net()
    m[0].weight.requires_grad_(False)
    opts = SGD([m[3].weight], .1, weight_decay=.5),SGD([m[0].bias, *m[1].parameters(), m[3].bias], .1)
    assert same(learn.model, loop(m, opts, 1))
    learn.unfreeze(); learn.fit(1)
    assert not torch.equal(learn.model[0].weight, m[0].weight) and [h['wd'] for h in learn.opt.hypers if h['wd']]==[.5]*2
    with pytest.raises(ValueError, match="no optimizer 'q'"): learner({'m':(SGD, is_matrix), 'r':SGD}, wd={'q':.1}).fit(1)

def test_the_state_of_each_stays_when_groups_change():
    "Each part dropped that of the others"
    from learnkit.optim.opt_state import match_opt_state
    learn = learner()
    learn.fit(1)
    opt = learn.opt.opt
    before = len(opt.state)
    match_opt_state(opt)
    assert len(opt.state)==before>0

def test_an_optimizer_called_like_the_end_of_a_hyperparameter():
    "`sqr_mom` was taken for the `sqr` of the optimizer `mom`"
    learn = learner({'mom':(Adam, is_matrix), 'rest':Adam})
    learn.create_opt()
    learn.opt.set_hyper('sqr_mom', .9)
    learn.opt.set_hyper('lr_mom', .5)
    assert [(h['sqr_mom'], h['lr']) for h in learn.opt.hypers]==[(.9, .5), (.9, .001)]

@pytest.mark.parametrize('n,exc', [(-9, ValueError), ('a', TypeError)])
def test_the_index_of_one_optimizers_groups_is_checked(n, exc):
    learn = learner()
    with pytest.raises(exc, match='freeze_to'): learn.freeze_to({'muon':n})
    learn.freeze_to({'muon':-1})
    assert learn.opt.frozen_idx=={'muon':0}
