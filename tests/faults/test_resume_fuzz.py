"""Random data, callbacks, optimizers and schedules: runs killed at random and resumed end like uninterrupted ones.

    python tests/faults/test_resume_fuzz.py 500            that many runs; prints those that differ
    python tests/faults/test_resume_fuzz.py 1 --first 123  repeats one of them
"""
import argparse, builtins, os, random, signal, sys, tempfile, warnings
from functools import partial
from pathlib import Path

here = Path(__file__).resolve().parent
if __name__=='__main__': sys.path[:0] = [str(here.parents[1]), str(here.parent), str(here)]
import pytest, torch
from torch import nn
from torch.optim import SGD, Adagrad, AdamW, RMSprop
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, TensorDataset, WeightedRandomSampler

from learnkit.all import SAM, Adam, Callback, CancelBatch, Closure, InTurn, LimitBatches, StopAfter, StopOnSignal
from learnkit.data.seeded import SeededLoader
from test_resume import BS, N, PER, Batches, Crash, Lists, Noisy, Seen, Stream, _cbs, end, equal, halves, learner
from test_resume_more import Skip, dies
from toys import slow

class Place(IterableDataset):
    "A stream that saves its position"
    at = 0
    def __iter__(self):
        while self.at<N: self.at += 1; x = torch.tensor([self.at/N, *torch.rand(3)]); yield x,x.sum()[None]
        self.at = 0
    def state_dict(self): return dict(at=self.at)
    def load_state_dict(self, state): self.at = state['at']

class Passes(RandomSampler):
    "A sampler that goes backwards every other time, and saves its count"
    n = 0
    def __iter__(self): self.n += 1; return iter([*super().__iter__()][::-1 if self.n%2 else 1])
    def state_dict(self): return dict(n=self.n)
    def load_state_dict(self, state): self.n = state['n']

def collate(items): x,y = map(torch.stack, zip(*items)); return x+torch.rand(()),y
def tensors(): return TensorDataset(torch.arange(4.*N).view(N,4)/N, torch.ones(N,1))
loaders = dict(items=lambda w: DataLoader(Noisy(), BS, shuffle=True, num_workers=w), iterable=lambda w: DataLoader(Stream(), BS, num_workers=w), position=lambda w: DataLoader(Place(), BS),
               tensors=lambda w: DataLoader(tensors(), BS, shuffle=True), collate=lambda w: DataLoader(tensors(), BS, shuffle=True, collate_fn=collate, num_workers=w),
               list=lambda w: [(torch.full((BS,4), i/9.), torch.ones(BS,1)) for i in range(PER)], function=lambda w: Batches(),
               weighted=lambda w: DataLoader(Noisy(), batch_sampler=BatchSampler(WeightedRandomSampler(torch.arange(1., N+1), N), BS, False), num_workers=w),
               generator=lambda w: DataLoader(Noisy(), BS, shuffle=True, generator=torch.Generator()), passes=lambda w: DataLoader(Noisy(), BS, sampler=Passes(range(N)), num_workers=w),
               lists=lambda w: DataLoader(Lists(), batch_size=None, sampler=BatchSampler(RandomSampler(range(N)), BS, False), num_workers=w),
               short=lambda w: DataLoader(Noisy(), BS, shuffle=True, drop_last=True, num_workers=w))
callbacks = {**_cbs, 'seen':Seen, 'skip':Skip, 'limit':lambda: LimitBatches(5, 3), 'after':lambda: StopAfter('13ba')}
either = {'bf16','fp16'},{'micro','accumulate'},{'limit','short'}   # mutually exclusive
opts = dict(adam=Adam, sgd=partial(SGD, momentum=.9), plain=SGD, adamw=AdamW, rms=RMSprop, adagrad=Adagrad)
policies = dict(fit=lambda l,n,**kw: l.fit(n, **kw), one_cycle=lambda l,n,**kw: l.fit_one_cycle(n, .02, **kw), flat_cos=lambda l,n,**kw: l.fit_flat_cos(n, .02, **kw),
                fine_tune=lambda l,n,**kw: l.fine_tune(n-1, .02, **kw))
all_policies = dict(policies, batches=lambda l,n,**kw: l.fit('17ba', **kw))
moments = ('before_epoch before_train before_fetch after_fetch before_batch after_pred after_loss after_backward before_step after_step after_batch after_train before_validate after_validate '
           'after_epoch after_fit before_save_checkpoint after_save_checkpoint').split()

def settings(seed):
    "The settings of a run, all drawn from `seed`"
    r = random.Random(seed)
    cbs = r.sample([*callbacks], r.choice([0, 1, 2, 3, 5]))
    for names in either: cbs = [k for i,k in enumerate(cbs) if k not in names or not names & {*cbs[:i]}]
    ends = [(r.choice([*moments, 'signal']), r.choice([1, 2, 3, 5, 8, 13])) for _ in range(r.choice([1, 2, 3]))]
    return dict(data=r.choice([*loaders]), workers=r.choice([0, 0, 0, 1, 2]), cbs=cbs, opt=r.choice([*opts]), policy=r.choice([*policies]), every=r.choice(['1ba', '1ba', '2ba', '3ba', '1ep']),
                ends=ends)

def losses(): return dict(first=nn.L1Loss(), rest=nn.MSELoss())
passes = dict(sam=lambda: SAM(.05), closure=Closure, turns=lambda: InTurn(['first', ('rest','first')], **losses()))
passes_opts = dict(lbfgs=partial(torch.optim.LBFGS, max_iter=3), several={'first':(Adam, '0.*'), 'rest':partial(SGD, momentum=.9)})
def with_passes(cfg, seed):
    "`cfg`, or `cfg` with several passes over a batch, several optimizers or a number of batches"
    r = random.Random(f'passes/{seed}')
    more = r.choice([{}, {}, dict(cbs='sam'), dict(cbs='closure', opt='lbfgs'), dict(opt='several'), dict(cbs='turns', opt='several')])
    if 'cbs' in more: cfg['cbs'] = [*cfg['cbs'], more['cbs']]
    return {**cfg, 'opt':more.get('opt', cfg['opt']), 'policy':r.choice([cfg['policy']]*3+['batches'])}

def term(n):
    "Callbacks that send SIGTERM before the `n`th batch and stop on it"
    seen = []
    def send(self):
        seen.append(1)
        if len(seen)==n: os.kill(os.getpid(), signal.SIGTERM)
    return [StopOnSignal(signal.SIGTERM), Callback(before_pred=send)]

def run(path, cfg, cbs=()):
    learn = learner(path, [callbacks[k] for k in cfg['cbs']], every=cfg['every'], data=lambda: loaders[cfg['data']](cfg['workers']), opt=opts[cfg['opt']])
    learn.splitter = halves
    for cb in cbs: cb.acts = 'nothing'
    # a new process has other random numbers, but a finished fit is recognized by them
    notes = {p.stem for p in Path(path).rglob('*.json')}
    if notes and not any('final' in n for n in notes): torch.seed(), random.seed()
    policies[cfg['policy']](learn, 3, cbs=cbs, resume='auto')
    return learn

class Counts(Callback):
    "Counts the events at which a run could be killed"
    order,acts = 10_000,'nothing'
    def __init__(self):
        self.n = dict.fromkeys([*moments, 'before_pred'], 0)
        for event in self.n: setattr(self, event, partial(self.note, event))
    def note(self, event, **kwargs): self.n[event] += self.learn.mode=='fit'

    def reached(self, ends):
        "`ends`, moved so that each is reached: an attempt does at most its share of the run, `after_fit` is last"
        for event,n in sorted(ends, key=lambda end: end[0]=='after_fit'):
            if event=='signal': happens = self.n['before_pred']
            else: happens = self.n[event]
            if not happens: event,happens = 'after_batch',self.n['after_batch']
            share = max(1, happens//len(ends))
            yield event, 1+(n-1)%share

def differs(seed):
    "The names of what differs at the end of a resumed run; None if its callbacks are incompatible"
    cfg = settings(seed)
    with tempfile.TemporaryDirectory() as tmp, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        counts,missed = Counts(),[]
        try: straight = end(run(Path(tmp)/'a', cfg, [counts]))
        except ValueError: return None   # incompatible callbacks
        # a warning tells that an incomplete epoch cannot be resumed exactly
        if any('may not have the same training data' in str(w.message) for w in caught): return None
        for event,n in counts.reached(cfg['ends']):
            try:
                run(Path(tmp)/'b', cfg, term(n) if event=='signal' else [dies(event, n)])
                missed.append(f'{event} {n} was not reached')
            except (SystemError, SystemExit): pass
        resumed = end(run(Path(tmp)/'b', cfg))
        for e in (straight, resumed): e['cbs'].get('save_model', {}).pop('saved', None)   # their folders differ
        return missed+[k for k in straight if not equal(straight[k], resumed[k])]

@pytest.mark.skipif(os.name!='posix', reason='signals')
@pytest.mark.parametrize('seed', [11, *slow(*range(8))])
def test_resumed(seed): assert not differs(seed), settings(seed)

class Gaps(Callback):
    "Skips batches before they are fetched, also when the data is exhausted"
    def before_fetch(self):
        if self.training and self.iter in (3, 8, 9): raise CancelBatch

@pytest.mark.parametrize('seeded', [False, True])
def test_exhausted_data_stays_exhausted_over_two_resumes(seeded, tmp_path):
    "The second checkpoint lost that the data was exhausted, and the epoch read it once more"
    def data(): dl = DataLoader(Place(), BS); return SeededLoader(dl, 0) if seeded else dl
    def trained(name, *ns):
        for n in (*ns, None):
            learn = learner(tmp_path/name, [Gaps], every='1ba', data=data)
            try: learn.fit(2, resume='auto', cbs=Crash(n) if n else None)
            except SystemError: pass
        return end(learn)
    whole,resumed = trained('a'),trained('b', 8, 9)
    assert all(equal(whole[k], resumed[k]) for k in whole)

def sweep(differs, settings, doc):
    "The command line: make runs, print those that differ, and exit with status 1 if there are any"
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('n', type=int, nargs='?', default=100)
    p.add_argument('--first', type=int, default=0)
    args = p.parse_args()
    torch.set_num_threads(1)
    made,bad,say = 0,0,print
    builtins.print = lambda *a,**k: None
    for seed in range(args.first, args.first+args.n):
        try: odd = differs(seed)
        except Exception as e: odd = [f'{type(e).__name__}: {e}', *getattr(e, '__notes__', ())]
        made,bad = made+(odd is not None),bad+bool(odd)
        if odd: say(seed, odd, settings(seed), flush=True)
    say(f'{made} runs, {bad} of them end otherwise')
    sys.exit(bool(bad))

if __name__=='__main__': sweep(differs, settings, __doc__)
