"""Measure how much a reader of learnkit must keep in mind, in numbers that do not depend on the load of the machine.

`python tests/structure/vocabulary.py` prints them for this checkout; `--against REV` adds those of another revision,
which is checked out into a temporary folder. `--list ROW` lists the places or names that a row counts. Attributes of
objects and calls are measured in a separate process, with the learnkit of that checkout.
"""
import argparse, ast, contextlib, gc, inspect, io, json, os, subprocess, sys, tempfile, tokenize
from collections import Counter
from pathlib import Path

root  = Path(__file__).resolve().parents[2]
rooms = 'loop data optim measure learner callbacks observe recovery processes speed contrib'.split()
core  = 'loop','learner'
complex_from = 17   # functions with more than 16 paths are listed

# counts in the source

def modules(at): return [p for p in sorted((at/'learnkit').rglob('*.py')) if p.name!='_modidx.py']
def parsed(path): return ast.parse(path.read_text(encoding='utf-8'))
def room(path, at):
    inside = path.relative_to(at/'learnkit').parts
    return inside[0] if len(inside)>1 else ''
def place(path, at): return path.relative_to(at/'learnkit').as_posix()

def is_docstring(node):
    "Whether a statement is a docstring"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)

def docstring_lines(tree):
    "The line numbers of all docstrings"
    lines = set()
    for node in ast.walk(tree):
        body = getattr(node, 'body', None)
        if not isinstance(body, list) or not body or not is_docstring(body[0]): continue
        lines |= {*range(body[0].lineno, body[0].end_lineno+1)}
    return lines

counted_tokens = tokenize.NAME,tokenize.NUMBER,tokenize.STRING,tokenize.OP
def tokens_of_lines(source, without):
    "The number of tokens of each line of code, without comments and the lines in `without`"
    found = tokenize.generate_tokens(io.StringIO(source).readline)
    return Counter(t.start[0] for t in found if t.type in counted_tokens and t.start[0] not in without)

dense = ast.BoolOp,ast.IfExp,ast.comprehension,ast.NamedExpr,ast.Lambda
def density(path):
    "The lines of code of a module, its tokens, and its expressions with a decision or a loop"
    source = path.read_text(encoding='utf-8')
    tree   = ast.parse(source)
    tokens = tokens_of_lines(source, docstring_lines(tree))
    return Counter(lines=len(tokens), tokens=tokens.total(), expressions=sum(isinstance(n, dense) for n in ast.walk(tree)))

def densities(at):
    "The density of each subpackage; under 'all' that of all modules"
    found = {r:Counter() for r in ('all',*rooms)}
    for path in modules(at):
        n = density(path)
        found['all'] += n
        if room(path, at) in found: found[room(path, at)] += n
    return {r:n for r,n in found.items() if n}

branches = ast.If,ast.For,ast.While,ast.ExceptHandler,ast.IfExp,ast.Assert,ast.match_case,ast.Lambda
def ways_more(node):
    "The number of paths that `node` adds to a function"
    if isinstance(node, ast.BoolOp): return len(node.values)-1
    if isinstance(node, ast.comprehension): return 1+len(node.ifs)
    another_end = isinstance(node, (ast.For, ast.While, ast.Try)) and bool(node.orelse)
    return isinstance(node, branches) + another_end

def complexity(function):
    "McCabe's number of paths through a function, including nested functions"
    return 1+sum(map(ways_more, ast.walk(function)))

def complex_functions(at):
    "The functions with more than 16 paths, the most complex first"
    found = []
    for path in modules(at):
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.FunctionDef): continue
            n = complexity(node)
            if n>=complex_from: found.append((n, f'{place(path, at)}: {node.name}'))
    return [f'{where} ({n})' for n,where in sorted(found, key=lambda o: (-o[0], o[1]))]

def rules_of_order(at):
    "The attributes of callbacks by which the dispatcher sorts them, in `_sort_cbs` and by `_order`"
    names,path = set(),at/'learnkit/loop/dispatcher.py'
    if not path.exists(): return []   # an old revision
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef) and node.name=='_sort_cbs':
            names.update(n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute) and ast.unparse(n.value)=='cb')
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0])=='_order':
            names.update(ast.literal_eval(arg) for arg in node.value.args)
    return sorted(names)

def names_in(node):
    "The names in a literal: strings of a list or tuple, keys of a dict, keywords of `dict(…)`, words of `'…'.split()`"
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)): elements = node.elts
    elif isinstance(node, ast.Dict): elements = [k for k in node.keys if k is not None]
    elif not isinstance(node, ast.Call): return []
    elif isinstance(node.func, ast.Name) and node.func.id=='dict': return [k.arg for k in node.keywords if k.arg]
    elif isinstance(node.func, ast.Attribute) and node.func.attr=='split' and isinstance(node.func.value, ast.Constant):
        return str(node.func.value.value).split()
    else: return []
    return [e.value for e in elements if isinstance(e, ast.Constant) and isinstance(e.value, str)]

def is_made_of_annotations(node):
    "Whether a collection joins the declared names of a class of the run with others"
    if not isinstance(node, (ast.List, ast.Tuple, ast.Set)) or len(node.elts)<2: return False
    starred = ' '.join(ast.unparse(e) for e in node.elts if isinstance(e, ast.Starred))
    return 'run_attrs' in starred or any(f'{cls}.__annotations__' in starred for cls in ('Loop','Run','Progress','BatchState'))

def hand_kept_lists(at, changed):
    """Literal collections that mostly name attributes which a run changes (`changed`), and those made from the
    declarations of `Loop`: all of them must be kept consistent"""
    found = []
    for path in modules(at):
        if room(path, at) not in ('loop','learner','recovery'): continue
        for node in ast.walk(parsed(path)):
            names = names_in(node)
            hits  = [n for n in names if n in changed]
            by_name = len(names)>=5 and len(hits)>.8*len(names)
            if by_name or is_made_of_annotations(node): found.append(f'{place(path, at)}:{node.lineno}: {ast.unparse(node)[:90]}')
    return found

# attributes of objects and calls, measured in a separate process

def public_names(cls): return sorted(k for k in dir(cls) if not k.startswith('_'))
def is_method(cls, name):
    found = inspect.getattr_static(cls, name)
    return callable(found) or isinstance(found, (property, staticmethod, classmethod))

class Calls:
    "Counts calls of Python functions: all, and learnkit's own; garbage collection is off"
    def __init__(self, package): self.package,self.all,self.own = package,0,0
    def __enter__(self): gc.collect(); gc.disable(); sys.setprofile(self.see)
    def __exit__(self, *_): sys.setprofile(None); gc.enable()
    def see(self, frame, what, arg):
        if what!='call' or frame.f_code.co_filename==__file__: return
        self.all += 1
        self.own += frame.f_code.co_filename.startswith(self.package)
    def restart(self):
        self.all = self.own = 0
        self.__enter__()
    def numbers(self): return [self.own, self.all]

class Batches(list):
    "Batches whose last but one is measured, from its request to the request of the next one"
    calls = None
    def __iter__(self):
        for i,b in enumerate(super().__iter__()):
            if self.calls is not None and i==len(self)-1: self.calls.__exit__()
            if self.calls is not None and i==len(self)-2: self.calls.__enter__()
            yield b

def objects():
    "The declarations of the imported learnkit's classes, a Learner's attributes in a batch, and the calls of a run"
    import torch, learnkit
    from torch import nn
    from torch.optim import SGD
    from learnkit.all import Callback, CheckpointCallback, DataLoaders, Learner
    from learnkit.loop.loop import Loop
    torch.set_num_threads(1)
    torch.manual_seed(0)
    package = str(Path(learnkit.__file__).parent)+os.sep
    data    = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(20)]
    in_batch = []
    class Look(Callback):
        run_valid = False
        def after_batch(self): in_batch[:] = sorted(vars(self.learn))
    def learner(train, cbs=None): return Learner(DataLoaders(train, data[:2]), nn.Linear(3, 1), nn.MSELoss(), SGD, lr=.1, cbs=cbs)
    def quietly(f):
        with contextlib.redirect_stdout(io.StringIO()): return f()
    quietly(lambda: learner(data, Look).fit(1))   # a first run for imports and caches
    batch,fit,save = Calls(package),Calls(package),Calls(package)
    watched = Batches(data)
    watched.calls = batch
    quietly(lambda: learner(watched).fit(1))
    def whole_fit():
        learn = learner(data)
        with fit: learn.fit(1)
    quietly(whole_fit)
    class Saving(Callback):
        def before_save_checkpoint(self): save.restart()
        def after_save_checkpoint(self): save.__exit__()
    quietly(lambda: learner(data, [CheckpointCallback(), Saving]).fit(2))   # the last checkpoint is counted
    names = public_names(Callback)
    return dict(callback=[k for k in names if not is_method(Callback, k)], methods=[k for k in names if is_method(Callback, k)],
                loop=[*Loop.__annotations__], learner=public_names(Learner), in_batch=in_batch,
                batch=batch.numbers(), fit=fit.numbers(), checkpoint=save.numbers())

def objects_of(at):
    "The result of `objects` for the learnkit of another checkout"
    with tempfile.TemporaryDirectory() as folder:
        env  = {**os.environ, 'PYTHONPATH':str(at), 'OMP_NUM_THREADS':'1'}
        done = subprocess.run([sys.executable, __file__, '--objects'], cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode: raise RuntimeError(f'The learnkit of {at} could not be asked:\n{done.stderr}')
    return json.loads(done.stdout.splitlines()[-1])

# The names of fastai's Learner that users and callbacks use, including attributes that a run sets
fastai_names = {*'''add_cb add_cbs added_cbs all_batches create_mbar create_opt distrib_ctx dl dls epoch export fine_tune fit fit_flat_cos gather_args
    fit_one_cycle fit_sgdr freeze freeze_to get_preds iter load logger loss loss_func loss_grad loss_not_reduced lr_find metrics model n_epoch
    n_iter no_bar no_logging no_mbar one_batch opt ordered_cbs pct_train pred predict remove_cb remove_cbs removed_cbs save show_results
    show_training_loop smooth_loss summary test_dl to_bf16 to_channelslast to_contiguous to_detach to_fp16 to_fp32 train_iter training
    tta unfreeze validate x xb y yb'''.split()}

# the table

stay = {'dls','model','opt','loss_func'}   # a run does not change these
def report(at):
    "The rows by name: a number, a list of the counted things, or a text"
    measured = objects_of(at)
    changed = {*measured['loop'], *measured['in_batch']}-stay
    rows = {'Callback: attributes':measured['callback'], 'Callback: methods':measured['methods'], 'Loop: declared attributes':measured['loop'],
            'Learner: public names':measured['learner'],
            'Learner: of these not fastai\'s':[k for k in measured['learner'] if k not in fastai_names],
            'vars(learn) in a batch':measured['in_batch'], 'rules of order':rules_of_order(at),
            'lists of what a run changes':hand_kept_lists(at, changed), 'functions of complexity above 16':complex_functions(at)}
    for title,key in (('a training batch', 'batch'), ('a fit of 20 batches', 'fit'), ('a checkpoint', 'checkpoint')):
        own,all_ = measured[key]
        rows[f'calls in {title}: own'],rows[f'calls in {title}: all'] = own,all_
    found = densities(at)
    for r,n in found.items(): rows[f'expressions per 100 lines: {r}'] = f"{100*n['expressions']/n['lines']:.1f}"
    for r,n in found.items(): rows[f'tokens a line: {r}'] = f"{n['tokens']/n['lines']:.1f}"
    for r,n in found.items(): rows[f'tokens: {r}'] = n['tokens']
    return rows

def shown(value):
    if isinstance(value, list): return str(len(value))
    return f'{value:,}' if isinstance(value, int) else value

@contextlib.contextmanager
def checkout(revision):
    "Check out another revision of this repository into a temporary folder"
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)/'tree'
        git = ['git', '-C', str(root), 'worktree']
        subprocess.run([*git, 'add', '--quiet', '--detach', str(at), revision], check=True)
        try: yield at
        finally: subprocess.run([*git, 'remove', '--force', str(at)], check=True)

def table(columns):
    "Yield the lines of a table; `columns` are reports by title"
    rows  = [*dict.fromkeys(name for report in columns.values() for name in report)]
    width = max(map(len, rows))
    yield ' '*width + ''.join(f'{title:>14}' for title in columns)
    for name in rows:
        cells = [shown(report.get(name, '-')) for report in columns.values()]
        yield f'{name:{width}}' + ''.join(f'{cell:>14}' for cell in cells)

def main(args=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--against', metavar='REV', help='put the numbers of this revision beside those of the checkout')
    parser.add_argument('--list', metavar='ROW', help="list what a row counts, such as 'rules of order'")
    parser.add_argument('--objects', action='store_true', help=argparse.SUPPRESS)
    options = parser.parse_args(args)
    if options.objects: return print(json.dumps(objects()))
    now = report(root)
    if options.list:
        rows = [k for k,v in now.items() if isinstance(v, list)]
        if options.list not in rows: parser.error(f'no row {options.list!r} can be listed: there are {", ".join(rows)}')
        return print(*now[options.list], sep='\n')
    columns = {'here':now}
    if options.against:
        with checkout(options.against) as at: columns = {options.against[:12]:report(at), **columns}
    print(*table(columns), sep='\n')

if __name__=='__main__': main()
