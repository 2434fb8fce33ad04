"""The pages on processes, each run by four: trained, killed in one process, resumed as if nothing had happened, predicted, saved and exported"""
import json, os, re, socket, sys
from pathlib import Path

import pytest, torch


from learnkit.all import Callback, CheckpointCallback, Learner, leave_group, load_learner, rank_distrib
from learnkit.data.process import whole
from toys import few

pages = Path(__file__).resolve().parents[3]/'nbs'/'howto'
n = 4

def cells(name): return [(o['cell_type'], ''.join(o['source'])) for o in json.loads((pages/f'{name}.ipynb').read_text())['cells']]
def code(name, *having):
    "The cells of code that a reader sees and that have one of these texts"
    return '\n\n'.join(s for kind,s in cells(name) if kind=='code' and not s.startswith('#|') and any(o in s for o in having))
def block(name, having):
    "The block of Python in the prose that has this text"
    found = [b for kind,s in cells(name) if kind=='markdown' for b in re.findall(r'```python\n(.*?)```', s, flags=re.S) if having in b]
    assert len(found)==1
    return found[0]

def several(): return code('several_processes', 'def main').replace("if __name__=='__main__': learn = main()", 'main()')
def several_resumed():
    "The same with the Learner of the page's second block"
    s = several()
    old = re.search(r'    learn = Learner\(.*?\n    learn\.fit\(.*?\n', s, flags=re.S)[0]
    return s.replace(old, ''.join(f'    {line}\n' for line in block('several_processes', 'StopOnSignal').splitlines()))
def diloco():
    s = several()
    return s.replace('    learn.fit(3, 1e-2)\n', f"    {block('several_processes', 'DiLoCo').replace('every=100', 'every=4')}\n")
def slurm(): return code('train_on_slurm', 'def main')+'\n\nmain()'
def kubernetes(): return code('train_on_kubernetes', 'def main')+"\n\nmain('out/kubernetes')"
def ray(): return code('train_with_ray', 'def train')
def accelerate(): return code('start_with_accelerate', 'def main')+"\n\nmain('out/notebook')"
def fully_sharded(): return 'from learnkit.all import *\n\n'+code('large_model', 'Block = nn', 'def small').replace('make(5120, 40)', 'make(128, 2)')
def mesh():
    s = block('large_model', 'parallelize_module')
    assert "'cuda', (8, 8)" in s
    return before_mesh + s.replace("'cuda', (8, 8)", "'cpu', (2, 2)")
before_mesh = '''
from learnkit.all import *
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm,self.mlp = nn.LayerNorm(8),nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(.1), nn.Linear(16, 8))
    def forward(self, x): return x + self.mlp(self.norm(x))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks,self.head = nn.ModuleList(Block() for _ in range(2)),nn.Linear(8, 3)
    def forward(self, x):
        for b in self.blocks: x = b(x)
        return self.head(x)

set_seed(1)
model,loss_func = Net(),CrossEntropyLossFlat()
dls = DataLoaders.from_tensors(torch.randn(200, 8), torch.randint(0, 3, (200,)), valid_pct=.2, seed=0, bs=8)
'''

class Dies(Callback):
    "The third process ends without a word"
    acts = 'nothing'
    def __init__(self, at): self.at = at
    def after_batch(self):
        if self.learn.training and self.learn.train_iter==self.at and rank_distrib()==2: os._exit(9)

def program(source, every, dies_at, found):
    "Run a page; `found` receives its Learner. All of them save at intervals, which a page of minutes would never do"
    fit = Learner.fit
    def fit_saving(learn, *args, cbs=(), resume=None, **kw):
        found.append(learn)
        learn.remove_cbs([cb for cb in learn.cbs if isinstance(cb, CheckpointCallback)])
        cbs = [CheckpointCallback(f'{every}ba'), *(cbs if isinstance(cbs, (list,tuple)) else [cbs])]
        if dies_at: cbs.append(Dies(dies_at))
        with learn.no_bar(), learn.no_logging(): return fit(learn, *args, cbs=cbs, resume='auto', **kw)
    with pytest.MonkeyPatch.context() as m:
        m.setattr(Learner, 'fit', fit_saving)
        exec(compile(source, 'page', 'exec'), {'__name__':'page'})

def _runs(rank, folder, port, source, every, dies_at):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(n), MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port))
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    found = []
    try: program(source, every, dies_at, found)
    except Exception:
        if dies_at: sys.exit(1)   # the third process is gone
        raise
    learn = found[-1]
    preds = learn.get_preds(ds_idx=len(learn.dls.loaders)-1)[0]
    learn.save('end')
    exported = learn.export('end.model')
    weights = {k:whole(v).clone() for k,v in learn.model.state_dict().items()}
    if rank==0: torch.save(dict(preds=preds, weights=weights, exported=str(exported), path=str(learn.path), iters=learn.train_iter), 'found')
    leave_group()

def run(folder, source, every, dies_at=0):
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    context = torch.multiprocessing.start_processes(_runs, (str(folder), port, source, every, dies_at), nprocs=n, start_method='fork', join=False)
    if not dies_at:
        while not context.join(): pass
        return torch.load(folder/'found')
    for p in context.processes: p.join()
    assert [p.exitcode for p in context.processes]==[1,1,9,1]

@few(1, 0)   # with LEARNKIT_SWEEP=1 all of them, for minutes
@pytest.mark.parametrize('page,at', [(slurm, 9), (several, 20), (several_resumed, 20), (diloco, 20), (kubernetes, 9), (ray, 9), (accelerate, 20), (fully_sharded, 1), (mesh, 5)], ids=lambda o: getattr(o, '__name__', str(o)))
def test_a_page_run_by_four_processes(tmp_path, page, at):
    pytest.importorskip('sklearn')
    import sklearn.datasets   # here, and not in each of the processes
    source,every = page(),max(1, at//2)
    unbroken = run(tmp_path/'unbroken', source, every)
    run(tmp_path/'killed', source, every, dies_at=at)
    resumed = run(tmp_path/'killed', source, every)
    assert unbroken['iters']==resumed['iters']
    for name,w in unbroken['weights'].items(): assert torch.equal(resumed['weights'][name], w), name
    assert torch.equal(unbroken['preds'], resumed['preds'])
    one = load_learner(tmp_path/'killed'/resumed['exported'], plain_model(page, source))
    state = one.model.state_dict()
    for name,w in resumed['weights'].items(): assert torch.equal(state[name], w), name

def plain_model(page, source):
    "The model of a page in one process, as `load_learner` needs it"
    made = []
    def keep(learn, dls, model=None, *args, **kw):
        made.append(model)
        raise InterruptedError
    with pytest.MonkeyPatch.context() as m:
        m.setattr(Learner, '__init__', keep)
        if page is mesh:
            exec(before_mesh, scope := {})
            return scope['model']
        try: exec(compile(source, 'page', 'exec'), {'__name__':'page'})
        except InterruptedError: pass
    return made[0]
