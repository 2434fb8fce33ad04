"""The tables of `coming_from.ipynb`: all code in a column headed `learnkit` is executed, each row with its own Learner.
Where the code creates a callback, a fit with it must work. Event names are defined as strings. This finds a row that
became wrong because a name was changed."""
import ast, json, os, re, warnings
from pathlib import Path
import pytest, torch
from matplotlib import pyplot as plt
import learnkit.all
from learnkit.all import (AdamW, Callback, Cancel, CrossEntropyLossFlat, DataLoaders, Learner, ProgressCallback, accuracy, event, nn, noop, set_seed)
from learnkit.contrib.sklearn import LearnerClassifier
from learnkit.callbacks.cycles import BatchEvents
from learnkit.processes.distributed import DistributedTrainer
from toys import few

page = Path(__file__).resolve().parents[2]/'nbs/examples/coming_from.ipynb'

def rows():
    "Yield (library, its code, learnkit's code) of each row of the tables"
    for c in json.loads(page.read_text(encoding='utf-8'))['cells']:
        if c['cell_type']!='markdown': continue
        for head,body in re.findall(r'^\| (.+) \| learnkit \|\n\|[-|]+\n((?:\|.*(?:\n|\Z))+)', ''.join(c['source']), re.M):
            for line in body.strip().splitlines():
                theirs,ours = line.strip('| ').split(' | ')
                yield head,theirs,ours

ROWS = [*rows()]

def names(folder):
    "Return {name: value}: a Learner after one epoch, and the other names that the tables use"
    set_seed(42)
    x,y = torch.randn(32,4),torch.randint(2, (32,))
    dls = DataLoaders.from_tensors(x, y, bs=8, path=folder, device='cpu')
    model = nn.Sequential(nn.Linear(4,4), nn.BatchNorm1d(4), nn.Dropout(.1), nn.Linear(4,2))
    learn = Learner(dls, model, CrossEntropyLossFlat(), AdamW, metrics=accuracy)
    learn.remove_cb(ProgressCallback).fit(1)
    return dict(vars(learnkit.all), BatchEvents=BatchEvents, LearnerClassifier=LearnerClassifier, DistributedTrainer=DistributedTrainer, **{e:e for e in event}, learn=learn, dls=dls, model=model,
                loss_func=learn.loss_func, train_dl=dls.train, valid_dl=dls.valid, test_dl=dls.valid, train_ds=dls.train_ds, valid_ds=dls.valid_ds,
                bs=8, f=noop, item=dls.train_ds[0][0], x=x, y=y)

def attempt(code, names):
    "Run a piece of code exactly as it is written in the tables"
    try:
        match ast.parse(code).body[0]:
            case ast.Expr():
                res = eval(code, names)
                if isinstance(res, Callback): names['learn'].fit(1, cbs=res)
            case ast.Assign(targets=[ast.Name(k)]): getattr(Callback, k)   # `run_valid = False` belongs in a class body
            case _: exec(code, names)
    except Cancel: pass   # `raise CancelFit`
    except ImportError as e:
        if "learnkit's extra" not in str(e): raise   # otherwise an optional package is not installed

def code_of(ours): return re.findall('`([^`]+)`', ours)

@few(25)
@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('system,theirs,ours', ROWS, ids=[f'{s}-{i}' for i,(s,*_) in enumerate(ROWS)])
def test_row(system, theirs, ours, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = names(tmp_path)
    for code in code_of(ours): attempt(code, known)
    plt.close('all')

def test_the_tables_are_there():
    assert len(ROWS)>150 and {s for s,*_ in ROWS}>={'fastai','fastNLP','Composer','pytorch-accelerated','Lightning','Trainer','Ignite','Accelerate','skorch','Keras'}

@pytest.mark.parametrize('wrong', ['learn.fti(1)', 'GradientClip(max=1.)', 'LimitBatches(train=1.5)'])
def test_wrong_code_raises(wrong, tmp_path):
    with pytest.raises(Exception): attempt(wrong, names(tmp_path))

# the left-hand columns, for libraries that are installed
def of_ignite():
    engine,metrics,handlers,tqdm = map(pytest.importorskip, ('ignite.engine','ignite.metrics','ignite.handlers','ignite.handlers.tqdm_logger'))
    from ignite.handlers.time_profilers import BasicTimeProfiler, HandlersTimeProfiler
    known = learner_names()
    trainer = engine.create_supervised_trainer(known['model'], known['opt'], known['loss_func'])
    evaluator = engine.create_supervised_evaluator(known['model'])
    return {**known, **vars(handlers), **vars(metrics), **vars(engine), 'BasicTimeProfiler':BasicTimeProfiler, 'HandlersTimeProfiler':HandlersTimeProfiler,
            'ProgressBar':tqdm.ProgressBar, 'trainer':trainer, 'evaluator':evaluator, 'score':lambda e: 0.}

def of_accelerate():
    accelerate = pytest.importorskip('accelerate')
    from accelerate.utils import find_executable_batch_size
    accelerate.state.AcceleratorState._reset_state(True)
    known = learner_names()
    scheduler = torch.optim.lr_scheduler.StepLR(known['opt'], 1)
    return {**known, **vars(accelerate), 'set_seed':accelerate.utils.set_seed, 'find_executable_batch_size':find_executable_batch_size,
            'accelerator':accelerate.Accelerator(cpu=True), 'scheduler':scheduler}

def of_skorch():
    skorch,callbacks,helper = map(pytest.importorskip, ('skorch','skorch.callbacks','skorch.helper'))
    from skorch.dataset import ValidSplit
    class Net(nn.Module):
        def __init__(self): super().__init__(); self.lin = nn.Linear(4,2)
        def forward(self, X): return self.lin(X)
    X,y = torch.randn(32,4).numpy(),torch.randint(2, (32,)).numpy()
    net = skorch.NeuralNetClassifier(Net, max_epochs=1, criterion=nn.CrossEntropyLoss, verbose=0).fit(X, y)
    return dict(vars(callbacks), nn=nn, NeuralNetClassifier=skorch.NeuralNetClassifier, ValidSplit=ValidSplit, predefined_split=helper.predefined_split,
                valid_ds=skorch.dataset.Dataset(X, y), Net=Net, net=net, X=X, y=y)

def of_keras():
    os.environ['KERAS_BACKEND'] = 'torch'
    keras = pytest.importorskip('keras')
    x,y = torch.randn(32,4).numpy(),torch.randn(32,1).numpy()
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
    model.compile('adam', 'mse')
    history = model.fit(x, y, validation_split=.25, verbose=0)
    return dict(vars(keras.callbacks), Adam=keras.optimizers.Adam, CosineDecay=keras.optimizers.schedules.CosineDecay, model=model, history=history, x=x, y=y,
                set_global_policy=keras.mixed_precision.set_global_policy, set_random_seed=keras.utils.set_random_seed)

def learner_names():
    known = names('.')
    known['model'](known['x']).sum().backward()
    return dict(known, opt=torch.optim.SGD(known['model'].parameters(), lr=.1))

NOT_CODE = re.compile(r"@|'\w+'$|on_\w+(\(.*\))?$|\w+=|accelerate launch$|Checkpoint.load_objects$")   # names of events and of arguments
NEED_MORE = {'TensorBoard','WandbLogger','MlflowLogger',"TensorBoard('out')"}   # need other packages

@pytest.mark.slow
@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('system,known', (('Ignite',of_ignite), ('Accelerate',of_accelerate), ('skorch',of_skorch), ('Keras',of_keras)))
def test_code_of_the_other_library_runs(system, known, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong = []
    for codes in [code_of(theirs) for s,theirs,_ in ROWS if s==system]:
        names = known()
        for code in codes:
            if NOT_CODE.match(code) or code in NEED_MORE: continue
            try: exec(code, names)
            except Exception as e: wrong.append((code, repr(e)[:200]))
    assert wrong==[]

# the table that compares features

def features():
    "Yield (feature, its link or None, learnkit's entry) of each row of the table that compares features"
    text = '\n'.join(''.join(c['source']) for c in json.loads(page.read_text(encoding='utf-8'))['cells'])
    table = re.search(r'^\| what \| learnkit \|.*\n\|[-|]+\n((?:\|.*\n)+)', text, re.M)[1]
    for line in table.strip().splitlines():
        what,ours,*others = line.strip('| ').split(' | ')
        link = re.search(r'\]\((.+)\)$', what)
        assert len(others)==8, line
        yield what,link and link[1],ours

def test_each_feature_has_a_page():
    for what,link,ours in features():
        assert ours in ('✓','~','–') or ours.isdigit(), what
        assert bool(link)==(ours=='✓'), what
        if link and link[0]!='#': assert (page.parent/link).exists(), link
    assert {ours for *_,ours in features()} > {'✓','–'}   # features that learnkit lacks are in the table too

def test_the_number_of_packages():
    "The table states how many packages an installation adds to PyTorch's: learnkit's requirements, and theirs"
    from importlib.metadata import PackageNotFoundError, requires
    from configparser import ConfigParser
    def name(o): return re.match(r'[\w.-]+', o)[0].lower()
    def required(package):
        try: return {name(o) for o in requires(package) or () if 'extra' not in o}
        except PackageNotFoundError: return set()
    settings = ConfigParser(interpolation=None)
    settings.read(page.parents[2]/'settings.ini')
    found,new = set(),{name(o) for o in settings['DEFAULT']['requirements'].split()}
    while new:
        found |= new
        new = {o for package in new for o in required(package)}-found
    of_torch = {'torch'}
    while more := {o for package in of_torch for o in required(package)}-of_torch: of_torch |= more
    stated, = [ours for what,_,ours in features() if what.startswith('packages')]
    assert int(stated)==len(found-of_torch), found-of_torch
