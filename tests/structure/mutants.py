"""Mutation testing: find small changes of the code that no test detects.

    pip install cosmic-ray                               # makes the changes, with its own dependencies
    python tests/structure/mutants.py loop.loop data.batch   # these modules; by default those of `loop`. --list shows the changes

Each mutant is a module with one change: an operator, a constant, a negated condition, a removed statement. A forked
process imports it in place of the original, and runs the notebooks that export it, its tests in `tests/parts` and those
of `about_all`, until one fails. A mutant that survives them all is printed with its line: either a test is missing, or
the change makes no difference. The unchanged module must survive first, else every mutant would seem to be found."""
import argparse, ast, contextlib, importlib.abc, importlib.util, json, os, random, re, signal, sys, time
from pathlib import Path

top = Path(__file__).resolve().parents[2]
core = [f'loop.{m}' for m in 'events callback dispatcher stream loop run'.split()]
about_all = ['tests/spec/test_contract.py', 'tests/spec/test_spec.py', 'tests/spec/test_raw_loop.py', 'tests/foreign/test_documents.py',
             'tests/parts/data/test_nested.py', 'tests/faults/test_bad_input.py', 'tests/foreign/test_foreign.py', 'tests/spec/test_event_order.py']

# make mutants
def left_out(src):
    "Yield mutants with a removed statement: each that is not a definition, import or docstring becomes `pass`"
    for node in ast.walk(ast.parse(src)):
        for body in (getattr(node, k, None) for k in ('body','orelse','finalbody')):
            for o in body if isinstance(body, list) else ():
                what = isinstance(o, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Pass, ast.AnnAssign))
                if what or isinstance(o, ast.Expr) and isinstance(o.value, ast.Constant) or isinstance(node, ast.Module): continue
                lines = src.splitlines()
                first,last = lines[o.lineno-1],lines[o.end_lineno-1]
                lines[o.lineno-1:o.end_lineno] = [(first.encode()[:o.col_offset] + b'pass' + last.encode()[o.end_col_offset:]).decode()]
                yield o.lineno,'left out','\n'.join(lines)

def operated(src):
    "Yield the mutants of cosmic-ray's operators, without those of comparisons that cannot differ"
    from cosmic_ray import plugins
    import parso
    from cosmic_ray.mutating import mutate_code
    skip = ('_Is_', '_IsNot_', 'RemoveDecorator', 'VariableReplacer', 'VariableInserter', 'ReplaceBinaryOperator_BitOr')
    for name in plugins.operator_names():
        if any(s in name for s in skip) and not name.endswith(('_Is_IsNot', '_IsNot_Is')): continue
        op = plugins.get_operator(name)()
        places = [p for node in walk(parso.parse(src)) for p in op.mutation_positions(node)]
        for i,(start,_) in enumerate(p[:2] for p in places):
            if (new := mutate_code(src, op, i)) is not None: yield start[0],name.removeprefix('core/'),new

def walk(node):
    yield node
    for child in getattr(node, 'children', ()): yield from walk(child)

def path_of(module): return top.joinpath('learnkit', *module.split('.')).with_suffix('.py')

def mutants(module):
    "Yield `(line, what, source)` of each mutant of a module that compiles and differs from the others"
    src = path_of(module).read_text()
    normal = lambda s: ast.dump(ast.parse(s))
    seen = {normal(src)}
    for line,what,new in [*left_out(src), *operated(src)]:
        try: key = normal(new)
        except SyntaxError: continue
        if key not in seen: seen.add(key); yield line,what,new

# test them
class Finder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    "Imports one module from the source of a mutant"
    def __init__(self, module, src): self.name,self.src = f'learnkit.{module}',src
    def find_spec(self, name, path, target=None):
        if name!=self.name: return
        spec = importlib.util.spec_from_loader(name, self, origin=str(path_of(name.removeprefix('learnkit.'))))
        spec.has_location = True   # else `inspect` treats its classes as built-in
        return spec
    def get_source(self, name): return self.src

def notebooks(module):
    "The notebooks that export a module, which nbdev names in each exported cell"
    return sorted({*re.findall(r'^# %% \S*/(nbs/\S+\.ipynb)', path_of(module).read_text(), re.M)})

def examples(nb):
    "Run the code of a notebook, but import what it exports from the module: an exported cell would replace the mutant"
    ns = {'__name__':'__main__'}
    for c in json.loads(nb.read_text())['cells']:
        src = ''.join(c['source'])
        if c['cell_type']!='code' or src.startswith(('%', '!')): continue
        if src.startswith('#| default_exp'): module = importlib.import_module(f'learnkit.{src.split()[2]}')
        elif m := re.match(r'#\| export[is]? ([a-z_.]+)', src): ns.update(public(importlib.import_module(f'learnkit.{m[1]}')))
        elif src.startswith('#| export'): ns.update(public(module))
        else: exec(compile(src, nb.name, 'exec'), ns)

def public(module): return {k:v for k,v in vars(module).items() if k[:2]!='__'}

def survives(module, src, files):
    "Whether all tests pass with the mutant; to be run in a forked process"
    import pytest
    sys.meta_path.insert(0, Finder(module, src))
    for nb in notebooks(module): examples(top/nb)
    room,name = module.split('.')
    own = map(str, (top/'tests'/'parts'/room).glob(f'test_{name}*.py'))
    return pytest.main(['-x', '-q', '-p', 'no:cacheprovider', '-p', 'no:randomly', '-m', 'not slow', *own, *files])==0

def fork(module, src, files, limit):
    pid = os.fork()
    if pid: return pid,time.monotonic()+limit
    ok = False
    with open(os.devnull, 'w') as null, contextlib.redirect_stdout(null), contextlib.redirect_stderr(null):
        os.dup2(null.fileno(), 1); os.dup2(null.fileno(), 2); os.setsid()
        try: ok = survives(module, src, files)
        finally: os._exit(7 if ok else 0)   # an error of any kind kills the mutant

def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('modules', nargs='*', default=core)
    p.add_argument('--list', action='store_true')
    p.add_argument('--sample', type=int, help='try so many, drawn at random')
    p.add_argument('--jobs', type=int, default=os.cpu_count())
    p.add_argument('--limit', type=float, default=300, help='seconds for one mutant; one that takes longer is killed')
    p.add_argument('--tests', nargs='*', default=about_all)
    args = p.parse_args()
    os.chdir(top); sys.path[:0] = [str(top), str(top/'tests')]
    todo = [(m,*o) for m in args.modules for o in mutants(m)]
    if args.sample: todo = random.Random(0).sample(todo, min(args.sample, len(todo)))
    if args.list: return print(*(f'{m}:{line} {what}' for m,line,what,_ in todo), len(todo), sep='\n')
    import fastcore.all, hypothesis, numpy, pytest, torch.utils.data   # imported once for all forks
    torch.set_num_threads(1)
    if signal.getsignal(signal.SIGINT)==signal.SIG_IGN: signal.signal(signal.SIGINT, signal.default_int_handler)   # as in conftest.py
    for m in args.modules:
        pid,_ = fork(m, path_of(m).read_text(), args.tests, args.limit)
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])!=7: sys.exit(f'the examples or tests fail without any change of {m}')
    n,running,left = len(todo),{},[]
    while todo or running:
        while todo and len(running)<args.jobs:
            m,line,what,src = todo.pop()
            pid,end = fork(m, src, args.tests, args.limit)
            running[pid] = m,line,what,src,end
        time.sleep(.02)
        for pid,(m,line,what,src,end) in [*running.items()]:
            done,status = os.waitpid(pid, os.WNOHANG)
            if not done and time.monotonic()>end: os.killpg(pid, signal.SIGKILL); os.waitpid(pid, 0); done,status = pid,0
            if not done: continue
            del running[pid]
            if os.waitstatus_to_exitcode(status)==7:
                left.append((m,line)); print(f'survived: {path_of(m).relative_to(top)}:{line} {what}: {src.splitlines()[line-1].strip()}', flush=True)
    print(f'{n} mutants of {", ".join(args.modules)}: {n-len(left)} killed, {len(left)} survived')

if __name__=='__main__': main()
