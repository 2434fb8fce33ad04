"""Count the code that a reader must know to follow a run: the functions of learnkit that are entered by creating a
Learner, by its first `fit`, by a steady batch, and by `get_preds`, with their modules and lines of source.

`python tests/structure/tracer.py` prints the table; `python tests/structure/tracer.py fit` lists the functions that a
first `fit` enters, by module and largest first (`learner`, `fit`, `batch`, `get_preds`). Each is traced in its own
process, a fork of one that has done the imports. Functions that run during an import do not count, and the lines of a
nested function are counted once.
"""
import ast, contextlib, io, json, multiprocessing, os, subprocess, sys, tempfile
from collections import defaultdict
from functools import cache
from pathlib import Path

root = Path(__file__).resolve().parents[2]
runs = dict(learner='Learner(…)', fit='first fit', batch='steady batch', get_preds='get_preds')

# in the traced process

class Tracer:
    "Records the functions of package `lib` that are entered while it is on, except during imports"
    def __init__(self, lib): self.lib,self.entered,self.importing = str(lib)+os.sep,set(),0

    def __call__(self, frame, what, arg):
        code = frame.f_code
        if not code.co_filename.startswith(self.lib): return
        if code.co_name == '<module>': self.importing += {'call': 1, 'return': -1}.get(what, 0)
        elif what == 'call' and not self.importing: self.entered.add((code.co_filename, code.co_firstlineno, code.co_name))

    def __enter__(self): sys.setprofile(self)
    def __exit__(self, *_): sys.setprofile(None)

def trace(run):
    "The functions that `run` enters, as triples of a file, a line, and a name"
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    import learnkit
    from learnkit import DataLoaders, Learner
    tracer = Tracer(Path(learnkit.__file__).parent)
    class Steady(DataLoader):
        "A loader whose last batch but one is traced, from its request to the request of the next one"
        def __iter__(self):
            for i,b in enumerate(super().__iter__()):
                sys.setprofile(tracer if i==len(self)-2 else None)
                yield b
    data = TensorDataset(torch.randn(16, 3), torch.randn(16, 1))
    train = Steady(data, batch_size=2) if run=='batch' else DataLoader(data, batch_size=8)
    dls = DataLoaders(train, DataLoader(data, batch_size=8))
    make = lambda: Learner(dls, nn.Linear(3, 1), loss_func=nn.MSELoss())
    if run == 'learner':
        with tracer: make()
    elif run == 'fit':
        learn = make()
        with tracer: learn.fit(1)
    elif run == 'get_preds':
        learn = make()
        learn.fit(1)
        with tracer: learn.get_preds()
    elif run == 'batch':
        make().fit(1)
    return sorted(tracer.entered)

def trace_all():
    "The functions that each run enters, each in a fork that has only done the imports"
    import learnkit, torch
    torch.optim.SGD([torch.ones(1)])   # PyTorch imports its compiler with the first optimizer
    with multiprocessing.get_context('fork').Pool(1, maxtasksperchild=1) as pool: return dict(zip(runs, pool.map(quietly, runs, chunksize=1)))

def quietly(run):
    with contextlib.redirect_stdout(io.StringIO()): return trace(run)

# the entered functions, with their source

def functions(path):
    "The functions of a module: (first line, name) -> (qualified name, last line)"
    res = {}
    def walk(node, inside):
        for o in ast.iter_child_nodes(node):
            if isinstance(o, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                name = getattr(o, 'name', '<lambda>')
                first = min([o.lineno, *(d.lineno for d in getattr(o, 'decorator_list', []))])
                res[first,name] = inside+name, o.end_lineno
                walk(o, f'{inside}{name}.')
            else: walk(o, f'{inside}{o.name}.' if isinstance(o, ast.ClassDef) else inside)
    walk(ast.parse(path.read_text(encoding='utf-8')), '')
    return res

@cache
def traced():
    "The functions that each run enters, as `trace` returns them"
    with tempfile.TemporaryDirectory() as d:
        env = {**os.environ, 'PYTHONPATH': os.pathsep.join([str(root), os.environ.get('PYTHONPATH', '')])}
        done = subprocess.run([sys.executable, __file__, '--trace'], cwd=d, env=env, capture_output=True, text=True)
    if done.returncode: raise RuntimeError(f'The tracer could not run:\n{done.stderr}')
    return json.loads(done.stdout.splitlines()[-1])

def fresh(run):
    "The functions that `run` enters in a fresh process, by module: pairs of a qualified name and a set of lines"
    res,sources = defaultdict(list),{}
    for file,line,name in traced()[run]:
        known = sources.setdefault(file, functions(Path(file)))
        # a comprehension or class body, whose lines belong to the function around it
        if (line,name) not in known: continue
        full,last = known[line,name]
        res[module_name(file)].append((full, set(range(line, last+1))))
    return dict(res)

def module_name(file):
    parts = Path(file).with_suffix('').parts
    return '.'.join(parts[len(parts)-parts[::-1].index('learnkit'):]) or 'learnkit'

def counts(entered):
    "The numbers of entered modules, functions and lines of source"
    return dict(modules=len(entered), functions=sum(map(len, entered.values())), lines=sum(map(lines_of, entered.values())))
def lines_of(funcs): return len(set().union(*(lines for _,lines in funcs)))

def table():
    print(f'{"":14}{"modules":>10}{"functions":>12}{"lines":>8}')
    for run,title in runs.items():
        n = counts(fresh(run))
        print(f'{title:14}{n["modules"]:10}{n["functions"]:12}{n["lines"]:8}')

def listing(run):
    entered = fresh(run)
    for module,funcs in sorted(entered.items(), key=lambda kv: -lines_of(kv[1])):
        print(f'{lines_of(funcs):5}  {module}')
        for name,lines in sorted(funcs, key=lambda f: -len(f[1])): print(f'{len(lines):12}  {name}')
    print(counts(entered))

if __name__ == '__main__':
    if sys.argv[1:2] == ['--trace']: print(json.dumps(trace_all()))
    elif sys.argv[1:]: listing(sys.argv[1])
    else: table()
