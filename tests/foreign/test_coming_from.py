"""The tables of `coming_from.ipynb`, and others of the kind: each piece of code in a column headed `learnkit` is executed, each row with a Learner of its own.
Where a piece makes a callback, a fit has to work with it. An event's name stands for itself. A table of translations is wrong as soon as a name changes."""
import ast, json, re, warnings
from pathlib import Path
import pytest, torch
from matplotlib import pyplot as plt
import learnkit.all
from learnkit.all import (AdamW, Callback, Cancel, CrossEntropyLossFlat, DataLoaders, Learner, ProgressCallback, accuracy, event, nn, noop, set_seed)
from learnkit.control.batch_events import BatchEvents
from learnkit.speed.distributed import DistributedTrainer

page = Path(__file__).resolve().parents[2]/'nbs/examples/coming_from.ipynb'

def rows():
    "Of all tables: the system, what one wrote there, what one writes here"
    for c in json.loads(page.read_text(encoding='utf-8'))['cells']:
        if c['cell_type']!='markdown': continue
        for head,body in re.findall(r'^\| (.+) \| learnkit \|\n\|[-|]+\n((?:\|.*(?:\n|\Z))+)', ''.join(c['source']), re.M):
            for line in body.strip().splitlines():
                theirs,ours = line.strip('| ').split(' | ')
                yield head,theirs,ours

ROWS = [*rows()]

def names(folder):
    "A Learner that has trained for an epoch, and what the tables call by name"
    set_seed(42)
    x,y = torch.randn(32,4),torch.randint(2, (32,))
    dls = DataLoaders.from_tensors(x, y, bs=8, path=folder, device='cpu')
    model = nn.Sequential(nn.Linear(4,4), nn.BatchNorm1d(4), nn.Dropout(.1), nn.Linear(4,2))
    learn = Learner(dls, model, CrossEntropyLossFlat(), AdamW, metrics=accuracy)
    learn.remove_cb(ProgressCallback).fit(1)
    return dict(vars(learnkit.all), BatchEvents=BatchEvents, DistributedTrainer=DistributedTrainer, **{e:e for e in event}, learn=learn, dls=dls, model=model,
                loss_func=learn.loss_func, train_dl=dls.train, valid_dl=dls.valid, test_dl=dls.valid, train_ds=dls.train_ds, valid_ds=dls.valid_ds,
                bs=8, f=noop, item=dls.train_ds[0][0], x=x, y=y)

def attempt(code, names):
    "Run a piece of code as it stands in the tables"
    try:
        match ast.parse(code).body[0]:
            case ast.Expr():
                res = eval(code, names)
                if isinstance(res, Callback): names['learn'].fit(1, cbs=res)
            case ast.Assign(targets=[ast.Name(k)]): getattr(Callback, k)   # `run_valid = False` stands in a class
            case _: exec(code, names)
    except Cancel: pass   # `raise CancelFit`
    except ImportError as e:
        if 'learnkit[' not in str(e): raise   # else something optional is not installed here

def code_of(ours): return re.findall('`([^`]+)`', ours)

@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('system,theirs,ours', ROWS, ids=[f'{s}-{i}' for i,(s,*_) in enumerate(ROWS)])
def test_row(system, theirs, ours, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = names(tmp_path)
    for code in code_of(ours): attempt(code, known)
    plt.close('all')

def test_the_tables_are_there():
    assert len(ROWS)>150 and {s for s,*_ in ROWS}>={'fastai','fastNLP','Composer','pytorch-accelerated','Lightning','Trainer'}

@pytest.mark.parametrize('wrong', ['learn.fti(1)', 'GradientClip(max=1.)', 'LimitBatches(train=1.5)'])
def test_what_is_wrong_is_noticed(wrong, tmp_path):
    with pytest.raises(Exception): attempt(wrong, names(tmp_path))
