"""Each pair of the callbacks and observers of `runs.py`, by epochs and by steps, to the end or interrupted and
resumed.

Either an error comes before the first batch, or: both orders train the same weights, an observer changes nothing, and
a resumed fit is the fit that was not interrupted.

    python tests/fuzz/pairs.py                           all pairs; prints what went wrong
    python tests/fuzz/pairs.py 3/17                      every 17th pair, from number 3
    python tests/fuzz/pairs.py 'MixUp(.4)' 'Prefetch()'  this pair
"""
import io, sys, tempfile, warnings
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from itertools import combinations, count
from pathlib import Path

import runs as drawn   # learnkit has a function `runs`
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from learnkit.all import *
from toys import equal

LENGTHS = 2,'9ba'
EXCLUDED = 'GradientClip(value=.1)','SkipNaN(wait=False)',"MixedPrecision('fp16')"   # variants of others in the list

acting    = [*(cb for cb in drawn.callbacks if cb not in EXCLUDED), 'EarlyStoppingCallback(patience=1)', 'SaveModelCallback()']
observers = [*drawn.observers, 'SanityCheck(1)', "ProgressCallback('lines')"]

def all_pairs(): return [*combinations([*acting, *observers], 2)]

class Interrupt(Callback):
    "Interrupts the fit in its training batch number `at`, as Ctrl-C does; counts the batches"
    order,n,at = 1,0,None
    def before_batch(self):
        if not self.training or self.learn.mode!='fit': return
        self.n += 1
        if self.n==self.at: raise KeyboardInterrupt

class Fits:
    "Fits with the callbacks of some names, each in a folder of its own below `root`"
    def __init__(self, root): self.root,self.numbers = root,count()
    def new_folder(self): return self.root/f'{next(self.numbers)}'

    def build(self, names, folder):
        torch.manual_seed(0)
        folder.mkdir(exist_ok=True)
        x = torch.randn(20, 4)
        data = TensorDataset(x, x.sum(1, keepdim=True))
        train,valid = DataLoader(data, 4, shuffle=True),DataLoader(data, 4)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(.2), nn.Linear(8, 1))
        opt_func = partial(torch.optim.SGD, momentum=.9)
        learn = Learner(DataLoaders(train, valid), model, nn.MSELoss(), opt_func, lr=.05, path=folder)
        known = dict(globals(), folder=folder, valid=valid)
        return learn,[eval(name, known) for name in names]

    def fit(self, names, length, at=None, folder=None, every=None):
        "Return the Learner, and the error that came before the first batch, if any"
        learn,cbs = self.build(names, folder or self.new_folder())
        interrupt,settings = Interrupt(),{}
        interrupt.at = at   # no argument: a resumed run has the same arguments
        if every: cbs,settings = [*cbs, CheckpointCallback(every)],dict(resume='auto')
        with learn.no_logging(), learn.no_bar():
            try: learn.fit(length, cbs=[*cbs, interrupt], **settings)
            except KeyboardInterrupt:
                assert learn.mode is None and not any(cb in learn.cbs for cb in cbs), 'callbacks of the fit are left'
            except (ValueError, TypeError, NotImplementedError) as e:
                if interrupt.n: raise
                return learn,e
        return learn,None

def differences(one, two):
    "Return what differs between two Learners"
    a,b = one.model.state_dict(),two.model.state_dict()
    res = [k for k in a if not equal(a[k], b[k])][:2]
    if one.train_iter!=two.train_iter: res.append('batches')
    if [h['lr'] for h in one.opt.hypers]!=[h['lr'] for h in two.opt.hypers]: res.append('learning rates')
    return res

def is_sentence(e): return 20<len(str(e))<500

def find_faults(fits, pair, length):
    "Return what is wrong with a pair, as a list of sentences"
    names = [*pair]
    one,error = fits.fit(names, length)
    if error is not None: return [] if is_sentence(error) else [f'raises {error!r}']
    faults = []
    other,_ = fits.fit(names[::-1], length)
    if odd := differences(one, other): faults.append(f'in the other order differ {odd}')
    for observer in {*names} & {*observers}:
        alone,_ = fits.fit([name for name in names if name!=observer], length)
        if odd := differences(one, alone): faults.append(f'{observer} changes {odd}')
    for every,at in ('3ba', 6),('1ep', 8): faults += _find_faults_of_resume(fits, names, length, one, every, at)
    cut,_ = fits.fit(names, length, at=4)
    with cut.no_logging(), cut.no_bar(): cut.fit(1)   # it works after the interruption
    return faults

def _find_faults_of_resume(fits, names, length, whole, every, at):
    folder = fits.new_folder()
    _,error = fits.fit(names, length, at=at, folder=folder, every=every)
    if error is not None: return [] if is_sentence(error) else [f'with a checkpoint raises {error!r}']
    resumed,error = fits.fit(names, length, folder=folder, every=every)
    if error is not None: return [f'cannot be resumed: {error}']
    odd = differences(whole, resumed)
    return [f'resumed after batch {at}, checkpoints {every}: {odd} differ'] if odd else []

def attempt(pair, length):
    "Return the faults of a pair without printing anything; an exception is a fault"
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        with tempfile.TemporaryDirectory() as root:
            try: return find_faults(Fits(Path(root)), pair, length)
            except Exception as e: return [f'{type(e).__name__}: {str(e)[:300]}']

def chosen(args):
    if len(args)==2: return [tuple(args)]
    if not args: return all_pairs()
    start,step = map(int, args[0].split('/'))
    return all_pairs()[start::step]

if __name__=='__main__':
    torch.set_num_threads(1)
    pairs = chosen(sys.argv[1:])
    for pair in pairs:
        for length in LENGTHS:
            for fault in attempt(pair, length): print(pair, length, fault, sep=' | ', flush=True)
    print(len(pairs), 'pairs')
