"""Another library's test notebooks, cell by cell: with its own names, and with learnkit's over them.

    python tests/foreign/notebooks.py fastai.optimizer=12_optimizer.ipynb fastai.callback.schedule=14_callback.schedule.ipynb

Each notebook goes with the module that it defines; `--helpers fastai.test_utils` names modules whose functions shall use learnkit's
names too. Cells that define the module, show documentation or need a GPU are left out, and lines about nbdev. Printed is what
passes on the library alone and not here. The notebooks are not part of learnkit."""
import argparse, contextlib, importlib, io, json, re, tempfile, traceback, warnings
from pathlib import Path

LEFT_OUT = re.compile(r'^#\s*\|?\s*(exports?|default_exp|cuda|slow|skip|eval: false)\b|show_doc\(|nbdev|^!', re.M)
IMPORTS  = re.compile(r'(\s*(#.*|(from|import) .*))*\s*')

def cells(path):
    "The code cells: `(source, is it only imports?)`"
    for c in json.loads(Path(path).read_text())['cells']:
        src = ''.join(l for l in ''.join(c['source']).splitlines(True) if 'nbdev' not in l)
        if c['cell_type']!='code' or not src.strip(): continue
        if IMPORTS.fullmatch(src): yield src,True
        elif not LEFT_OUT.search(src): yield src,False

def run(path, module, helpers=(), ours=False):
    "What each cell raised, None if nothing: `[(source, error)]`"
    ns,res = {'__name__':'__main__'},[]
    before = {h:dict(vars(importlib.import_module(h))) for h in helpers}
    def put(mod, private=False):
        names = vars(mod) if private else {k:getattr(mod, k) for k in getattr(mod, '__all__', None) or vars(mod) if k[:1]!='_'}
        ns.update({k:v for k,v in names.items() if k[:2]!='__'})
    def over():
        put(importlib.import_module(module), private=not ours)
        if not ours: return
        all_ = importlib.import_module('learnkit.all')
        put(all_)
        for h in helpers: vars(importlib.import_module(h)).update({k:v for k,v in ns.items() if k[:1]!='_' and hasattr(all_, k)})
    over()
    for src,imports in cells(path):
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), warnings.catch_warnings():
                warnings.simplefilter('ignore')
                exec(compile(src, str(path), 'exec'), ns)
            error = None
        except Exception as e: error = traceback.format_exception_only(e)[0].strip()
        if imports: over()
        else: res.append((src, error))
    for h,names in before.items(): vars(importlib.import_module(h)).update(names)
    return res

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('notebooks', nargs='+', metavar='MODULE=NOTEBOOK')
    parser.add_argument('--helpers', nargs='*', default=['fastai.test_utils'])
    args = parser.parse_args()
    for o in args.notebooks:
        module,path = o.split('=')
        path = Path(path).resolve()
        with tempfile.TemporaryDirectory() as d, contextlib.chdir(d):
            alone,here = (run(path, module, args.helpers, ours) for ours in (False, True))
        both = [(a,b) for (_,a),b in zip(alone, here) if a is None]
        print(f'{path.name}: {sum(b[1] is None for _,b in both)} of {len(both)} cells')
        for _,(src,error) in both:
            if error: print(f'    {error[:200]}\n        {src.strip().splitlines()[0][:100]}')

if __name__=='__main__': main()
