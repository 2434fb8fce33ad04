"""Random runs, paused by Ctrl-C at random moments, advanced by batches or parts of one, inspected and resumed, end like
uninterrupted ones, with and without a `CheckpointCallback`.

    python tests/faults/test_paused.py 500            that many runs; prints those that differ
    python tests/faults/test_paused.py 1 --first 123  repeats one of them
"""
import copy, gc, os, random, signal, sys, tempfile, warnings, weakref
from pathlib import Path

here = Path(__file__).resolve().parent
if __name__=='__main__': sys.path[:0] = [str(here.parents[1]), str(here.parent), str(here)]
import pytest, torch
from torch import nn
from learnkit.all import Adam, Callback, CheckpointCallback, CSVLogger, DataLoaders, Learner, Pausable, Pause, ProgressCallback, ValidateEvery
from test_resume import end, equal, halves, learner
from test_resume_fuzz import callbacks, loaders, moments, opts, passes, passes_opts, settings, all_policies, sweep, with_passes
from toys import few, learner as small, slow

pytestmark = few(10_000, 2)   # of the slow cases; all with LEARNKIT_SWEEP=1

untils = 'before_batch after_pred after_loss after_backward before_step after_step'.split()

def draw_settings(seed):
    "The settings of a run, and the actions while it is paused, all drawn from `seed`"
    cfg,r = settings(seed),random.Random(f'paused/{seed}')
    # a warning tells that a stream after an incomplete epoch cannot be resumed exactly
    if cfg['data']=='position': cfg['cbs'] = [k for k in cfg['cbs'] if k!='limit']
    cfg = with_passes(cfg, seed)
    acts = [[r.choice(['step', 'step', 'two', 'preds', *untils]) for _ in range(r.choice([0, 1, 2, 3]))] for _ in cfg['ends']]
    return {**cfg, 'ends':[(r.choice(moments[:15]), n) for _,n in cfg['ends']], 'acts':acts, 'files':r.random()<.5}

def press(event, n):
    "A callback that sends Ctrl-C when `event` happens for the `n`th time"
    seen = []
    def send(self, **kwargs):
        if self.learn.mode!='fit': return
        seen.append(event)
        if len(seen)==n: signal.raise_signal(signal.SIGINT)
    cb = Callback(**{event:send})
    cb.order,cb.acts = 10_000,'nothing'
    return cb

def made(path, cfg):
    learn = learner(path, [{**callbacks, **passes}[k] for k in cfg['cbs']], every=cfg['every'], data=lambda: loaders[cfg['data']](cfg['workers']), opt={**opts, **passes_opts}[cfg['opt']])
    if not cfg['files']: learn.remove_cb(CheckpointCallback)
    learn.splitter = halves
    return learn

def act(learn, how):
    if how=='preds': learn.get_preds()
    elif how in untils: learn.resume(until=how)
    else: learn.resume(1 if how=='step' else 2)

def stopped(path, cfg):
    learn,ends = made(path, cfg),[*cfg['ends']]
    try: all_policies[cfg['policy']](learn, 3, cbs=[Pausable(), press(*ends[0])])
    except KeyboardInterrupt: pass
    for acts,then in zip(cfg['acts'], [*ends[1:], None]):
        if learn.paused is None: break
        torch.rand(3), random.random()   # inspection may draw random numbers
        for how in acts:
            if learn.paused is not None: act(learn, how)
        if learn.paused is None: break
        try: learn.resume(cbs=[press(*then)] if then else None)
        except KeyboardInterrupt: pass
    while learn.paused is not None: learn.resume()   # Ctrl-C came as late as in `after_fit`
    return learn

def differs(seed):
    "The names of what differs at the end of a paused run; None if its callbacks are incompatible"
    cfg = draw_settings(seed)
    with tempfile.TemporaryDirectory() as tmp, warnings.catch_warnings():
        warnings.simplefilter('ignore')
        try: learn = made(Path(tmp)/'a', cfg); all_policies[cfg['policy']](learn, 3)
        except ValueError: return None   # incompatible callbacks
        straight,other = end(learn),end(stopped(Path(tmp)/'b', cfg))
        for e in (straight, other):
            e['cbs'].get('save_model', {}).pop('saved', None)   # their folders differ
        return [k for k in straight if not equal(straight[k], other[k])]

@pytest.mark.skipif(os.name!='posix', reason='signals')
@pytest.mark.parametrize('seed', [3, *slow(*range(8))])
def test_paused_and_resumed(seed): assert not differs(seed), draw_settings(seed)

def paused(*cbs, **kw):
    "A Learner whose fit of two epochs is paused after its second batch"
    learn = small(3, cbs=[Pausable(), *cbs], **kw)
    with pytest.raises(KeyboardInterrupt), learn.no_bar(), learn.no_logging(): learn.fit(2, cbs=press('after_pred', 2))
    return learn

def test_state_of_a_paused_fit():
    learn = paused()
    assert 'paused in epoch 0, after 2 of its batches' in repr(learn.paused)
    assert learn.resume(until='after_loss')['train_iter']==2 and learn.xb[0].shape==(4, 4) and learn.loss_grad.requires_grad
    loss = learn.loss.item()
    assert learn.resume(until='after_pred')['loss'] is None   # it used to be 0
    assert learn.resume(1)==dict(epoch=0, iter=2, train_iter=3, loss=loss)
    assert learn.resume(1)['epoch']==1 and learn.recorder.history['epoch']==[0]
    with learn.no_bar(), learn.no_logging(): assert learn.resume() is None
    assert learn.paused is None and learn.train_iter==6

@pytest.mark.parametrize('args,words', [(dict(batches=0), 'batches'), (dict(batches=1, until='after_loss'), 'not both'), (dict(until='after_epoch'), 'within a batch'), (dict(until='nonsense'), 'within a batch')])
def test_invalid_arguments_of_resume_raise(args, words):
    learn = paused()
    with pytest.raises(ValueError, match=words): learn.resume(**args)
    assert learn.paused is not None

def test_the_next_fit_discards_a_paused_one():
    learn = paused()
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    with pytest.raises(RuntimeError, match='There is no paused fit'): learn.resume()
    with pytest.raises(ValueError, match='writes no files'): learn.fit(1, resume='auto')

def test_a_paused_fit_keeps_its_batch():
    learn = paused()
    (x,y),xb,loss = learn.batch,learn.xb[0],learn.loss.item()
    assert torch.equal(x, xb) and torch.equal(y, learn.yb[0]) and learn.pred.shape==y.shape and (learn.epoch, learn.iter)==(0, 1)
    learn.get_preds(), learn.validate()
    assert learn.xb[0] is xb and learn.loss.item()==loss
    copy.deepcopy(learn)
    moment,pred = weakref.ref(learn.paused),weakref.ref(learn.pred)
    with learn.no_bar(), learn.no_logging(): learn.resume()
    gc.collect()
    assert learn.xb==(None,) and learn.batch is None and moment() is None and pred() is None

def test_a_new_fit_does_not_pause_where_another_did():
    learn = small(3, cbs=Pausable())
    with learn.no_bar(), learn.no_logging():
        with pytest.raises(KeyboardInterrupt, match=r'paused in epoch 0, after 2 of its batches: `learn.resume\(\)` continues'): learn.fit(2, cbs=press('after_pred', 2))
        learn.resume(1)
        learn.fit(2)
    assert learn.train_iter==6 and learn.paused is None

def test_a_callback_removed_during_a_pause_stays_removed():
    more = []
    class Count(Callback):
        n,run_valid,saves = 0,False,('n',)
        def after_batch(self): self.n += 1
    class More(Count):
        def after_fit(self): more.append(self.n)
    learn = small(3, cbs=Count())
    count = learn.count
    with learn.no_bar(), learn.no_logging():
        with pytest.raises(KeyboardInterrupt): learn.fit(2, cbs=[Pausable(), press('after_pred', 2)])
        learn.remove_cb(count)
        with warnings.catch_warnings():
            warnings.simplefilter('error')   # its removal causes no warning
            learn.resume(cbs=More)
    assert count.n==2 and learn.train_iter==6 and more==[4]

def test_after_an_error_a_fit_continues_from_its_pause():
    learn,whole = paused(),small(3)
    def fails(self): 1/0
    with whole.no_bar(), whole.no_logging(): whole.fit(2)
    with learn.no_bar(), learn.no_logging():
        for n in (None, 2):
            with pytest.raises(ZeroDivisionError): learn.resume(n, cbs=Callback(after_step=fails))
        with pytest.raises(KeyboardInterrupt): learn.resume(cbs=[press('after_pred', 1), press('after_loss', 1)])   # two at once
        with pytest.raises(TypeError, match='learning rate'): learn.resume(lr='x')
        assert 'after 2 of its batches' in repr(learn.paused)
        learn.resume()
    assert equal(whole.model.state_dict(), learn.model.state_dict())

def test_an_error_shows_no_line_of_the_library(monkeypatch):
    monkeypatch.delenv('LEARNKIT_FULL_TRACEBACKS', raising=False)
    learn = paused()
    def fails(self): 1/0
    for how in (dict(), dict(batches=1)):
        with pytest.raises(ZeroDivisionError) as e: learn.resume(cbs=Callback(after_step=fails), **how)
        assert {Path(o.path).name for o in e.traceback}=={'test_paused.py'}

def test_a_fit_without_pausable_discards_a_paused_one():
    learn = small(3)
    with learn.no_bar(), learn.no_logging():
        with pytest.raises(KeyboardInterrupt): learn.fit(2, cbs=[Pausable(), press('after_pred', 2)])
        learn.fit(1)
        with pytest.raises(RuntimeError, match='There is no paused fit'): learn.resume()
        with pytest.raises(RuntimeError, match='a `fit` is running'): learn.fit(1, cbs=Callback(after_pred=lambda self: self.learn.resume()))
    learn = paused()
    learn.close()
    assert learn.paused is None

def test_a_validation_pauses_at_once():
    seen = []
    def watch(self):
        if not self.training: seen.append(self.iter)
    learn,whole = small(3, nv=5, cbs=Pausable()),small(3, nv=5)
    with whole.no_bar(), whole.no_logging(): whole.fit(2)
    with learn.no_bar(), learn.no_logging():
        with pytest.raises(KeyboardInterrupt, match='in its validation'): learn.fit(2, cbs=[Callback(after_batch=watch), press('after_loss', 5)])
        assert seen==[0, 1] and not learn.training and learn.recorder.history==[]
        learn.resume(1)
        assert learn.train_iter==4 and len(learn.recorder.history)==1
        learn.resume()
    assert equal(whole.model.state_dict(), learn.model.state_dict()) and learn.recorder.history['valid_loss']==whole.recorder.history['valid_loss']

def in_validation(n, e=None):
    "A callback that sends Ctrl-C, or raises `e`, in the `n`th batch of the validations within the fit"
    seen = []
    def look(self):
        if self.learn.mode=='fit': return
        seen.append(1)
        if len(seen)==n and e: raise e
        if len(seen)==n: signal.raise_signal(signal.SIGINT); sum(range(1000))
        assert len(seen)!=n
    cb = Callback(after_loss=look)
    cb.acts,cb.order = 'nothing',10_000
    return cb

@pytest.mark.parametrize('every', ['2ba', '2st', '8sp', '0.5dur'])
@pytest.mark.parametrize('n', [2, 7])
def test_a_validation_within_an_epoch_pauses_at_once(every, n):
    "A Ctrl-C used to wait for the end of the validation, however long that is"
    made = lambda *cbs: small(4, nv=5, opt_func=Adam, cbs=[ValidateEvery(every), *cbs])
    learn,whole = made(Pausable()),made()
    with whole.no_bar(), whole.no_logging(): whole.fit(1)
    with learn.no_bar(), learn.no_logging():
        with pytest.raises(KeyboardInterrupt, match=f'after {1+2*(n>5)} of its batches: `learn.resume'): learn.fit(1, cbs=in_validation(n))
        assert learn.mode is None and len(learn.validate_every.history)==n//6
        learn.resume()
    assert equal(whole.model.state_dict(), learn.model.state_dict()) and whole.recorder.history['valid_loss']==learn.recorder.history['valid_loss']
    assert [r['valid_loss'] for r in whole.validate_every.history]==[r['valid_loss'] for r in learn.validate_every.history]

def test_an_unannounced_validation_reports_that_it_waits(capsys):
    learn = small(4, nv=5, cbs=Pausable())
    valid = in_validation(2)
    valid.after_loss = lambda: learn.mode=='validate' and learn.iter==2 and signal.raise_signal(signal.SIGINT)
    with learn.no_bar(), learn.no_logging(), pytest.raises(KeyboardInterrupt, match='after 2 of its batches: '):
        learn.fit(1, cbs=[valid, Callback(after_step=lambda self: self.learn.train_iter==1 and self.learn.validate())])
    assert capsys.readouterr().out=='The fit pauses when this `validate` and its batch are over; another Ctrl-C ends it at once.\n'

def test_an_error_in_a_validation_pauses_the_fit_before_it(prompt):
    "An error in a validation, or in a batch with a breakpoint, lost the fit although a copy existed"
    whole = small(3, nv=5)
    with whole.no_bar(), whole.no_logging(): whole.fit(2)
    for cbs,words in (([], 'paused in epoch 0, after 3 of its batches: '), ([Watch('after_pred', [])], 'paused in epoch 1, after 1 of its batches: ')):
        learn = small(3, nv=5, cbs=[Pausable(), *cbs])
        faulty = Callback(after_loss=lambda self: (self.training if cbs else self.iter==3) and self.train_iter==3+bool(cbs) and 1/0)
        with learn.no_bar(), learn.no_logging():
            with pytest.raises(ZeroDivisionError, match=words): learn.fit(2, cbs=faulty)
            learn.paused.cbs.remove(faulty)
            learn.resume()
        assert equal(whole.model.state_dict(), learn.model.state_dict()) and whole.recorder.history['valid_loss']==learn.recorder.history['valid_loss']

def test_with_a_checkpoint_nothing_is_reported_twice(tmp_path):
    learn = small(3, path=tmp_path, cbs=CheckpointCallback('1ba'))
    learn.model.seen = set()
    learn.model.register_forward_pre_hook(lambda m, x: m.seen.add(len(m.seen)))
    with learn.no_bar(), learn.no_logging(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        with pytest.raises(KeyboardInterrupt): learn.fit(2, cbs=[Pausable(), press('after_pred', 2)])
    assert len([w for w in caught if '`model.seen` (set)' in str(w.message)])==1

def test_a_log_that_is_appended_to_continues(tmp_path):
    def text(stop):
        learn = small(3, path=tmp_path/str(stop), cbs=CSVLogger(append=True))
        with learn.no_bar(), learn.no_logging():
            if not stop: learn.fit(2)
            else:
                with pytest.raises(KeyboardInterrupt): learn.fit(2, cbs=[Pausable(), press('after_pred', 4)])
                learn.resume(1)
                learn.resume()
        return [row.rpartition(',')[0] for row in (tmp_path/str(stop)/'history.csv').read_text().splitlines()]
    assert text(True)==text(False)

@pytest.fixture
def prompt(monkeypatch): monkeypatch.setattr(sys, 'ps1', '>>> ', raising=False)

def assert_pauses(f, match):
    with pytest.raises(Pause, match=match): f()

def test_a_bar_stays_where_the_fit_stopped(capsys):
    "The bar was left at 0 % if the fit paused before its first update"
    learn = small(10, cbs=[Pausable(), ProgressCallback('terminal', every=60)])
    with pytest.raises(KeyboardInterrupt): learn.fit(1, cbs=press('after_pred', 7))
    learn.resume(2)
    learn.resume()
    lines = [l.rpartition('\r')[2] for l in capsys.readouterr().out.replace('\r\n', '\n').split('\n')]
    printed = [l for l in lines if l.strip()]
    assert '[6/10' in [l for l in printed if 'train' in l and '|' in l][0] and 'interrupted: epoch 0, batch 6' in printed, printed
    # no bar is left of the resumed part
    assert len([l for l in printed if '|' in l])==1 and len([l for l in printed if l.startswith('epoch')])==2

class Watch(Callback):
    "A callback with a breakpoint of its own in training batches"
    acts = 'nothing'
    def __init__(self, at, n): self.at,self.pauses,self.n,self.seen = at,(at,),n,[]; setattr(self, at, self.look)
    def look(self):
        if not self.learn.training or self.learn.mode!='fit': return
        self.seen.append(self.learn.train_iter)
        if self.learn.train_iter in self.n: raise Pause

@pytest.mark.parametrize('at', ['before_batch', 'after_pred', 'after_loss', 'after_backward', 'before_step', 'after_step', 'after_zero_grad'])
def test_a_callback_that_raises_Pause_pauses_the_fit_in_its_batch(prompt, at):
    learn,whole = small(3, opt_func=Adam, cbs=[Pausable(), Watch(at, [0, 4])]),small(3, opt_func=Adam)
    with whole.no_bar(), whole.no_logging(): whole.fit(2)
    with learn.no_bar(), learn.no_logging():
        assert_pauses(lambda: learn.fit(2), f'epoch 0, after 0 of its batches, in the next one at `{at}`')
        assert learn.train_iter==0 and learn.xb[0].shape==(4, 4)
        if at in ('after_loss', 'after_pred'): (learn.pred if at=='after_pred' else learn.loss_grad).sum().backward()
        learn.get_preds()
        assert learn.resume(1)['train_iter']==1
        assert_pauses(learn.resume, 'epoch 1, after 1 of its batches')
        assert_pauses(lambda: learn.resume(cbs=Watch('after_step', [4])), 'epoch 1, after 1 of its batches, in the next one at `after_step`') if at<'after_step' else None
        learn.resume()
    assert equal(whole.model.state_dict(), learn.model.state_dict()) and equal(whole.opt.state_dict(), learn.opt.state_dict())
    assert learn.recorder.history['train_loss']==whole.recorder.history['train_loss']

class Counts(torch.utils.data.Sampler):
    "A sampler that saves its position and continues from it"
    def __init__(self, n): self.n,self.i = n,0
    def __len__(self): return self.n
    def __iter__(self):
        order = torch.randperm(self.n, generator=torch.Generator().manual_seed(self.i)).tolist()
        for i in order: self.i += 1; yield i
    def state_dict(self): return dict(i=self.i)
    def load_state_dict(self, d): self.i = d['i']

def test_a_fit_with_a_stateful_sampler_pauses_in_the_first_batch(prompt):
    def fitted(*cbs):
        torch.manual_seed(0)
        x = torch.randn(24, 4, generator=torch.Generator().manual_seed(1))
        dls = DataLoaders(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x[:,:1]), 4, sampler=Counts(24)))
        learn = Learner(dls, nn.Linear(4, 1), nn.MSELoss(), lr=.1, cbs=cbs)
        with learn.no_bar(), learn.no_logging():
            if not cbs: learn.fit(2); return learn.model.weight
            assert_pauses(lambda: learn.fit(2), 'epoch 0, after 0 of its batches')
            learn.resume()
        return learn.model.weight
    assert torch.equal(fitted(), fitted(Pausable(), Watch('after_loss', [0])))

def test_a_fit_with_a_generator_pauses_in_the_first_batch(prompt):
    def fitted(*cbs):
        torch.manual_seed(0)
        x = torch.randn(24, 4, generator=torch.Generator().manual_seed(1))
        dls = DataLoaders(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x[:,:1]), 4, shuffle=True, generator=torch.Generator()))
        learn = Learner(dls, nn.Linear(4, 1), nn.MSELoss(), lr=.1, cbs=cbs)
        with learn.no_bar(), learn.no_logging():
            if not cbs: learn.fit(2); return learn.model.weight
            assert_pauses(lambda: learn.fit(2), 'epoch 0, after 0 of its batches, in the next one')
            learn.resume()
        return learn.model.weight
    assert torch.equal(fitted(), fitted(Pausable(), Watch('after_loss', [0])))

@pytest.mark.parametrize('n', [1, 2, 3])
def test_a_resumed_fit_pauses_in_its_first_batch(prompt, tmp_path, n):
    made = lambda *cbs: small(3, path=tmp_path, opt_func=Adam, cbs=[CheckpointCallback('1ba'), *cbs])
    whole,learn = small(3, opt_func=Adam),made(Pausable(), Watch('after_loss', [n]))
    with whole.no_bar(), whole.no_logging(): whole.fit(2)
    killed = made()
    with killed.no_bar(), killed.no_logging(), pytest.raises(ZeroDivisionError):
        killed.fit(2, cbs=Callback(before_pred=lambda self: self.train_iter==n and self.training and 1/0))
    with learn.no_bar(), learn.no_logging():
        assert_pauses(lambda: learn.fit(2, resume='auto'), f'epoch {n//3}, after {n%3} of its batches, in the next one at `after_loss`')
        learn.get_preds()
        learn.resume()
    assert equal(whole.model.state_dict(), learn.model.state_dict()) and equal(whole.opt.state_dict(), learn.opt.state_dict())

def tuned(*cbs):
    torch.manual_seed(1)
    x = torch.randn(12, 4)
    dl = [(b, b[:,:1]) for b in x.split(4)]
    return Learner((dl, dl), nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)), nn.MSELoss(), opt_func=Adam, splitter=halves, cbs=cbs)

def fine_tune(learn, *cbs): learn.fine_tune(2, .1, cbs=[*cbs])
def as_tuned(learn):
    "Whether `learn` ended like a Learner with an uninterrupted `fine_tune`"
    whole = tuned()
    with whole.no_bar(), whole.no_logging(): fine_tune(whole)
    return all(equal(*o) for o in zip(*[(o.model.state_dict(), o.opt.state_dict(), o.recorder.hps, o.recorder.history['train_loss'], o.opt.frozen_idx) for o in (whole, learn)]))

@pytest.mark.parametrize('at,says', [(('after_pred', 2), 'a run of 1ep, paused in epoch 0, after 2 of'), (('after_epoch', 1), 'a run of 1ep, paused in epoch 1'), (('after_pred', 8), 'a run of 2ep, paused in epoch 0, after 2 of'),
                                     (('after_fit', 1), 'a run of 2ep, paused in epoch 0, after 0 of'), (('cleanup', 1), 'a run of 2ep, paused in epoch 0, after 0 of')])
def test_both_fits_of_a_fine_tune_continue(at, says):
    "After a Ctrl-C in the first fit, the user had to start the second one"
    learn = tuned()
    with learn.no_bar(), learn.no_logging():
        with pytest.raises(KeyboardInterrupt, match=says): fine_tune(learn, press(*at), Pausable())
        learn.resume()
    assert as_tuned(learn) and learn.paused is None and learn.current_run.next_fit is None

def test_batch_by_batch_through_a_fine_tune():
    learn,seen = tuned(Pausable()),[]
    more = Callback(after_step=lambda self: seen.append(self.learn.opt.frozen_idx))
    with learn.no_bar(), learn.no_logging():
        with pytest.raises(KeyboardInterrupt): fine_tune(learn, press('after_pred', 2))
        learn.resume(1, cbs=more)
        assert learn.resume(3)==dict(epoch=0, iter=None, train_iter=0, loss=None) and 'a run of 2ep' in repr(learn.paused)   # between the two
        copy.deepcopy(learn)
        assert learn.resume(1)['train_iter']==1
        def fails(self): 1/0
        with pytest.raises(ZeroDivisionError): learn.resume(cbs=Callback(after_pred=fails))
        learn.resume()
    assert as_tuned(learn) and seen==[1]+[0]*6

def test_a_condition_is_a_breakpoint(prompt):
    learn,whole = small(3, cbs=Pausable()),small(3)
    with whole.no_bar(), whole.no_logging(): whole.fit(2)
    learn.on('after_loss', pause_if=lambda learn: learn.training and learn.train_iter==2)
    learn.on('after_loss', pause_if=lambda learn: not learn.training and learn.epoch==1)
    learn.on('after_batch', pause_if=lambda learn: learn.training and learn.train_iter==4)
    learn.on('after_epoch', pause_if=lambda learn: True)
    with learn.no_bar(), learn.no_logging():
        assert_pauses(lambda: learn.fit(2), 'epoch 0, after 2 of its batches, in the next one at `after_loss`')
        assert_pauses(learn.resume, 'epoch 1, after 0 of its batches: ')
        assert_pauses(learn.resume, 'epoch 1, after 1 of its batches: ')
        assert_pauses(learn.resume, 'epoch 1, after 3 of its batches, in the next one at `after_loss`')
        assert not learn.training and not learn.model.training
        assert_pauses(learn.resume, 'epoch 1, after 3 of its batches, in the next one at `after_loss`')   # the next batch of the validation
        assert_pauses(learn.resume, 'epoch 2, after 0 of its batches: ')
        learn.resume()
    assert equal(whole.model.state_dict(), learn.model.state_dict()) and learn.recorder.history['valid_loss']==whole.recorder.history['valid_loss']
    learn.off()
    assert [cb.name for cb in learn.cbs]==[cb.name for cb in small(3, cbs=Pausable()).cbs]

def test_without_a_terminal_breakpoints_raise(monkeypatch, prompt):
    learn = small(3, cbs=Pausable())
    learn.on('after_loss', pause_if=lambda learn: True)
    monkeypatch.delattr(sys, 'ps1')
    with learn.no_bar(), learn.no_logging(), pytest.raises(ValueError, match='only a user at a prompt'): learn.fit(1)
    with pytest.raises(TypeError, match='`pause_if`'): Learner.on('after_loss', pause_if=bool)
    with pytest.raises(Pause, match=r'if `Pausable\(\)` is among its callbacks'): small(3, cbs=Watch('after_loss', [0])).fit(1)

def test_an_unexpected_Pause_raises(prompt):
    def out_of_the_blue(self): raise Pause
    with pytest.raises(RuntimeError, match="pauses = "): small(3, cbs=Pausable()).fit(1, cbs=Callback(after_loss=out_of_the_blue))

def test_in_a_terminal_a_breakpoint_opens_a_shell_in_the_fit(monkeypatch):
    learn,whole,typed = small(3, cbs=Pausable()),small(3),[]
    def type_in(prompt=''):
        if len(typed)==2: typed.clear(); raise EOFError
        typed.append(1)
        return 'torch.rand(3); seen.append((learn.train_iter, learn.loss.item(), learn.get_preds()[0].shape))' if len(typed)==1 else 'learn.resume()'
    seen,isatty = [],type('Tty', (), dict(isatty=lambda s: True, write=lambda s, t: printed.append(t), flush=lambda s: None))
    printed = []
    monkeypatch.setattr('builtins.input', type_in)
    for k in ('stdin', 'stdout', 'stderr'): monkeypatch.setattr(sys, k, isatty())
    monkeypatch.setattr('builtins.seen', seen, raising=False); monkeypatch.setattr('builtins.torch', torch, raising=False)
    learn.on('after_loss', pause_if=lambda learn: learn.training and learn.train_iter in (1, 4))
    for o in (whole, learn):
        with o.no_bar(), o.no_logging(): o.fit(2)
    assert [n for n,*_ in seen]==[1, 4] and 'at `after_loss`, epoch 0, batch 1' in ''.join(printed) and 'when this callback returns' in ''.join(printed)
    assert not hasattr(sys, 'ps1') and equal(whole.model.state_dict(), learn.model.state_dict()) and learn.paused is None

def uninterrupted(seed):
    try: return differs(seed)
    except KeyboardInterrupt as e:
        if not e.args or 'continues' not in e.args[0]: raise
        return ['a Ctrl-C of its own was not taken']

if __name__=='__main__': sweep(uninterrupted, draw_settings, __doc__)
