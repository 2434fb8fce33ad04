"""fastai's own notebooks, run cell by cell and unchanged: on fastai, and on learnkit.

    python tests/foreign/notebooks.py FOLDER [NAME …]

FOLDER is `nbs` of fastai's repository, NAME the beginning of a notebook's name (default: all of `NOTEBOOKS`). A cell
counts if it passes on fastai and does not define the module, show documentation or require a GPU. For learnkit, all
names that these modules export are removed, and learnkit's are added; data, tensors and layers stay fastai's, and
`fastai.test_utils` and `vision_learner` create learnkit's Learners. Lines that set `defaults` are run too. Images and
pretrained weights are random, as no test depends on their content. For each cell that fails, its number in the notebook
and the error are printed."""
import argparse, contextlib, importlib, io, json, random, re, sys, tempfile, traceback, warnings
from pathlib import Path
from types import ModuleType
import numpy as np, torch

NOTEBOOKS = {'01a_losses':'losses', '12_optimizer':'optimizer', '13_callback.core':'callback.core', '13a_learner':'learner', '13b_metrics':'metrics',
    '14_callback.schedule':'callback.schedule', '14a_callback.data':'callback.data', '15_callback.hook':'callback.hook',
    '16_callback.progress':'callback.progress', '17_callback.tracker':'callback.tracker', '18_callback.fp16':'callback.fp16',
    '18a_callback.training':'callback.training', '18b_callback.preds':'callback.preds', '18c_callback.channelslast':'callback.channelslast',
    '19_callback.mixup':'callback.mixup', '20_interpret':'interpret', '34_callback.rnn':'callback.rnn'}
DEFINES  = re.compile(r'^#\s*\|?\s*(exports?|exporti|default_exp)\b', re.M)
SKIPPED = re.compile(r'^#\s*\|?\s*(cuda|eval: false)\b|(show_doc|add_docs)\(|nbdev|^!', re.M)
IMPORTS  = re.compile(r'(\s*(#.*|(from|import) .*))*\s*')
DEFAULTS = re.compile(r'^(?:if .*|elif .*|)\bdefaults\.(?:lr|callbacks)\b.*$', re.M)

def cells(path):
    "Yield `(number, kind, source)` of each code cell to run; the kind is 'imports', 'defaults' or 'test'"
    for i,c in enumerate(json.loads(path.read_text(encoding='utf-8'))['cells']):
        src = ''.join(l for l in ''.join(c['source']).splitlines(True) if 'nbdev' not in l)
        if c['cell_type']!='code' or not src.strip(): continue
        if IMPORTS.fullmatch(src): yield i,'imports',src
        elif DEFINES.search(src):
            if lines := DEFAULTS.findall(src): yield i,'defaults','\n'.join(lines)
        elif not SKIPPED.search(src): yield i,'test',src

def modules(): return [importlib.import_module(f'fastai.{m}') for m in NOTEBOOKS.values()]
def public(mod): return {k:v for k,v in vars(mod).items() if k[:1]!='_'}

def replace(names, ours, keep=False):
    "If `ours`, remove from `names` what fastai's modules export, unless `keep`, and add learnkit's names"
    if not ours: return
    theirs = {k for m in modules() for k in m.__all__}
    if not keep:
        for k in theirs & {*names}: del names[k]
    names.update(public(importlib.import_module('learnkit.all')))

@contextlib.contextmanager
def helpers(ours, folder):
    "Make fastai use random weights and, if `ours`, learnkit's names; yield a function that creates images"
    from fastcore.basics import defaults
    import fastai.basics, fastai.callback.all, fastai.data.external, fastai.interpret, fastai.test_utils, fastai.vision.all, torchvision
    from fastai.vision import learner
    mods = [fastai.test_utils, learner]
    before,callbacks = [dict(vars(m)) for m in mods],list(defaults.callbacks)
    for m in mods: replace(vars(m), ours, keep=True)
    targets = [o for o in vars(fastai.data.transforms).values() if 'loss_func' in getattr(o, '__dict__', ())]
    losses = [o.loss_func for o in targets]
    for o,f in zip(targets, losses) if ours else (): o.loss_func = getattr(importlib.import_module('learnkit.all'), f'{type(f.func).__name__}Flat')()
    weights = torchvision.models._api.WeightsEnum
    get,weights.get_state_dict = weights.get_state_dict,lambda self, *args, **kwargs: \
        getattr(torchvision.models, type(self).__name__.removesuffix('_Weights').lower())().state_dict()
    try: yield lambda url: images(folder/Path(url).stem)
    finally:
        for m,names in zip(mods, before): vars(m).clear(); vars(m).update(names)
        for o,f in zip(targets, losses): o.loss_func = f
        weights.get_state_dict,defaults.callbacks = get,callbacks

def images(folder):
    "Create random images of two classes, in the folders and with the file names of several fastai datasets"
    from PIL import Image
    for part in ('images','train/3','train/7','valid/3','valid/7'):
        (folder/part).mkdir(parents=True, exist_ok=True)
        for i in range(100 if part=='images' else 10):
            pixels = np.random.randint(0, 255, (28,28,3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder/part/f'{("Abyssinian","beagle")[i%2]}_{i}.jpg')
    return folder

def run(path, ours, folder):
    "Run the cells of a notebook; return `[(number, source, error)]`, with None as the error of a cell that passes"
    from fastcore.basics import defaults
    random.seed(0); np.random.seed(0); torch.manual_seed(0)
    module = importlib.import_module(f'fastai.{NOTEBOOKS[path.stem]}')
    notebook,res = ModuleType('notebook'),[]
    sys.modules['notebook'],names = notebook,vars(notebook)   # pickle looks up classes in this module
    with helpers(ours, folder) as untar:
        names.update(public(module) if ours else vars(module), __name__='notebook', untar_data=untar)
        names.update({k:v for k,v in vars(module).items() if k[:1]=='_' and isinstance(v, list)})   # lists of events
        replace(names, ours)
        if any(kind=='defaults' for _,kind,_ in cells(path)): del defaults.callbacks
        for i,kind,src in cells(path):
            out,error = io.StringIO(),None
            try:
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), warnings.catch_warnings():
                    warnings.simplefilter('ignore')
                    exec(compile(src, f'{path.stem}[{i}]', 'exec'), names)
            except Exception as e: error = traceback.format_exception_only(e)[0].strip()
            if kind=='imports': replace(names, ours); names['untar_data'] = untar
            if kind=='test': res.append((i, src, error))
            if kind=='defaults' and error: print(path.stem, i, error)
    return res

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', type=Path)
    parser.add_argument('names', nargs='*', default=['']) 
    args = parser.parse_args()
    import matplotlib
    matplotlib.use('agg')
    torch.set_num_threads(1)
    passed = total = 0
    for name in NOTEBOOKS:
        if not name.startswith(tuple(args.names)): continue
        path = (args.folder/f'{name}.ipynb').resolve()
        with tempfile.TemporaryDirectory() as d, contextlib.chdir(d):
            theirs,ours = (run(path, o, Path(d)) for o in (False, True))
        both = [(i,src,error) for (*_,e),(i,src,error) in zip(theirs, ours) if e is None]
        n = sum(error is None for *_,error in both)
        passed,total = passed+n,total+len(both)
        print(f'{name}: {n} of {len(both)} cells', flush=True)
        for i,_,error in both:
            if error: print(f'    [{i}] {error[:200]}')
        for i,_,error in theirs:
            if error: print(f'    [{i}] does not count, it fails on fastai: {error[:200]}')
    print(f'{passed} of {total} cells')

if __name__=='__main__': main()
