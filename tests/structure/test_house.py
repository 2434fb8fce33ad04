"""The house rules of CONTRIBUTING.md: modules belong to subpackages and import from earlier ones only, each name comes
from the module that defines it, lines and cells are short, every public name documents itself and its parameters.

Each check yields the violations in the tree as pairs: where, and what. Its test requires none. To count them:
`python tests/structure/test_house.py`; with the name of a check or part of a path, it lists these.
"""
import ast, json, re, subprocess, sys
from collections import Counter
from functools import cache
from pathlib import Path
import pytest

root = Path(__file__).resolve().parents[2]
lib  = 'learnkit'

# as in CONTRIBUTING.md; lines and modules have no limit: what counts is what a reader must understand
max_width,max_defs = 120,3
# each imports only from itself and those before it
rooms = 'loop data optim measure learner callbacks observe recovery processes speed contrib'.split()
flat  = '__init__','all','_modidx'   # modules outside of subpackages: the two short imports, and the index of nbdev

def modules(at=root): return [p for p in sorted((at/lib).rglob('*.py')) if p.name not in ('_modidx.py', '__init__.py', 'all.py')]
def notebooks(at=root): return [p for p in sorted((at/'nbs').rglob('*.ipynb')) if not re.search(r'/[._]', p.relative_to(at).as_posix())]
def cells(nb, kind):
    return [(c['id'], ''.join(c['source'])) for c in json.loads(nb.read_text(encoding='utf-8'))['cells'] if c['cell_type'] == kind]
def name_of(p, at): return '.'.join(p.relative_to(at/lib).with_suffix('').parts)
@cache
def parsed(p, changed): return ast.parse(p.read_text(encoding='utf-8'))
def tree_of(p): return parsed(p, p.stat().st_mtime_ns)   # cached, as each check reads each module

def imports(p, at, nodes=ast.walk):
    "Yield each import of module `p` from the library: a module, and the imported name (None for the module itself)"
    here = p.relative_to(at).with_suffix('').parts
    for n in nodes(tree_of(p)):
        if isinstance(n, ast.Import):
            yield from ((a.name.removeprefix(f'{lib}.'), None) for a in n.names if a.name.startswith(f'{lib}.'))
        elif isinstance(n, ast.ImportFrom):
            full = '.'.join([*here[:len(here)-n.level], *([n.module] if n.module else [])]) if n.level else n.module or ''
            if full.split('.')[0] != lib: continue
            for a in n.names:
                is_module = (at/Path(*full.split('.'), a.name)).with_suffix('.py').is_file()
                yield (f'{full}.{a.name}' if is_module else full).removeprefix(lib).strip('.'),None if is_module else a.name

# imports

def room(module): return module.rpartition('.')[0]

def strays(at):
    "Modules in no subpackage, and subpackages that are not in the list"
    for p in sorted((at/lib).rglob('*.py')):
        here = p.relative_to(at/lib).parts
        if len(here)==1 and p.stem not in flat:         yield name_of(p, at),f'is in no subpackage: begin its `#| default_exp` with one of {", ".join(rooms)}'
        elif len(here)>1 and '.'.join(here[:-1]) not in rooms: yield name_of(p, at),f'is in no subpackage of the list: {", ".join(rooms)}'
    for d in sorted({p.relative_to(at/'tests/parts').parts[0] for p in (at/'tests/parts').rglob('test_*.py')} - {*rooms}): yield f'tests/parts/{d}','is no subpackage: name the folder after the one whose modules it tests'

def upward(at):
    "Modules that import from a later subpackage"
    rank = {r:i for i,r in enumerate(rooms)}
    for p in modules(at):
        me = name_of(p, at)
        yield from ((me, f'imports {m}, of a later subpackage: fire an event, or declare a word there (CONTRIBUTING.md)') for m in sorted({m for m,_ in imports(p, at)}) if rank.get(room(m), len(rooms)) > rank.get(room(me), len(rooms)))

def circles(at):
    "Modules whose imports at module level form a cycle"
    own  = {name_of(p, at):p for p in modules(at)}
    need = {me: {m for m,_ in imports(p, at, ast.iter_child_nodes)} & own.keys() for me,p in own.items()}
    while first := {me for me,ms in need.items() if not ms & need.keys()}: need = {me:ms for me,ms in need.items() if me not in first}
    # not part of a cycle, only import from one
    while last := need.keys() - set().union(*need.values()): need = {me:ms for me,ms in need.items() if me not in last}
    yield from ((me, f'imports {m}, which imports it: move what both need into an earlier module') for me,ms in sorted(need.items()) for m in sorted(ms & need.keys()))

def assigned(t): return {o.id for o in ast.walk(t) if isinstance(o, ast.Name)}
def defined(p):
    "The names that a module itself defines"
    res = set()
    for n in ast.walk(tree_of(p)):
        if isinstance(n, (ast.FunctionDef, ast.ClassDef)): res.add(n.name)
        elif isinstance(n, ast.Assign): res |= {x for t in n.targets for x in assigned(t)}
        elif isinstance(n, (ast.AnnAssign, ast.NamedExpr)): res |= assigned(n.target)
    return res

def exported(p):
    return next((ast.literal_eval(n.value) for n in tree_of(p).body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == '__all__'), [])

def borrowed(at):
    "Names that a module imports from one that does not define them, and names that it exports without defining them"
    own = {name_of(p, at): defined(p) for p in modules(at)}
    for p in modules(at):
        me = name_of(p, at)
        yield from ((me, f'imports {n} from {m}, which does not define it: import it from where it is defined') for m,n in imports(p, at) if n and m in own and n not in own[m])
        yield from ((me, f'exports {n} and does not define it: import it in a cell of its own') for n in exported(p) if n not in own[me])

# size

def shown_code(src): return re.findall(r'^```[^\n]*\n(.*?)^```', src, re.S | re.M)

def long_lines(at):
    "Lines that are too long in modules, scripts, and code cells and code blocks of notebooks"
    for p in [*sorted((at/lib).rglob('*.py')), *sorted((at/'nbs').rglob('*.py')), *notebooks(at)]:
        if p.name == '_modidx.py': continue
        if p.suffix == '.py': texts = [p.read_text(encoding='utf-8')]
        else: texts = [src for _,src in cells(p, 'code')] + [block for _,src in cells(p, 'markdown') for block in shown_code(src)]
        for l in (l for t in texts for l in t.splitlines()):
            if len(l) > max_width and not l.startswith('__all__ = '): yield p.relative_to(at).as_posix(),f'break the line, {max_width} characters are allowed: {l}'   # nbdev wraps `__all__`

def full_cells(at):
    "Exported cells with too many definitions"
    for nb in notebooks(at):
        for cid,src in cells(nb, 'code'):
            if not re.search(r'^#\|\s*export', src): continue
            n = sum(isinstance(o, (ast.FunctionDef, ast.ClassDef)) for o in ast.parse(re.sub(r'^\s*[%!].*$', 'pass', src, flags=re.M)).body)
            if n > max_defs: yield nb.name,f'cell {cid} has {n} definitions, {max_defs} are allowed: begin a new cell'

def same_ids(at):
    "Cells of a notebook with the same id, which nbformat changes each time that it reads the notebook"
    for nb in notebooks(at):
        ids = [c['id'] for c in json.loads(nb.read_text(encoding='utf-8'))['cells']]
        yield from ((nb.name, f'{ids.count(i)} cells have the id {i}: change some') for i in dict.fromkeys(ids) if ids.count(i) > 1)

# documentation

hidden = re.compile(r'_|(before|after)_|cleanup$')   # private names, and handlers, which are documented by their event

def is_patched(n): return isinstance(n, ast.FunctionDef) and any(ast.unparse(d).startswith('patch') for d in n.decorator_list)
def decorated(n, *names): return any(re.sub(r'\(.*', '', ast.unparse(d)).split('.')[-1] in names for d in n.decorator_list)
def own_methods(c): return {f.name:f for f in c.body if isinstance(f, ast.FunctionDef)}

def methods(at):
    "The classes of the library by name: their bases, and their methods by name, including patched ones"
    trees = [tree_of(p) for p in modules(at)]
    res = {n.name:([ast.unparse(b).split('.')[-1] for b in n.bases], own_methods(n)) for t in trees for n in t.body if isinstance(n, ast.ClassDef)}
    for n in (n for t in trees for n in t.body if is_patched(n)):
        if c := res.get(ast.unparse(n.args.args[0].annotation)): c[1][n.name] = n
    return res

def inherited(cls, name, known):
    "Whether a base class of `cls` has a documented method of that name"
    for b in known.get(cls, ((), {}))[0]:
        if b==cls: continue   # such as `class Module(nn.Module)`
        f = known.get(b, ((), {}))[1].get(name)
        if f is not None and ast.get_docstring(f) or inherited(b, name, known): return True
    return False

def public(at):
    "Yield public functions, classes and methods as module, name and node, unless a base class documents the method"
    known = methods(at)
    for p in modules(at):
        me = name_of(p, at)
        for n in tree_of(p).body:
            if isinstance(n, ast.ClassDef) and n.name[0] != '_':
                yield me,n.name,n
                for f in own_methods(n).values():
                    skip = decorated(f, 'setter') or hidden.match(f.name) or inherited(n.name, f.name, known)
                    if f.name == '__init__' or not skip: yield me,f'{n.name}.{f.name}',f
            elif isinstance(n, ast.FunctionDef) and not hidden.match(n.name):
                cls = ast.unparse(n.args.args[0].annotation) if is_patched(n) else ''
                if not cls or not inherited(cls, n.name, known): yield me,f'{cls}.{n.name}'.lstrip('.'),n

# A function's docstring is an imperative: *Return*, not *Returns*, and not a question
not_imperative = re.compile(r'(Is|Are|Was|Were|Has|Does|Did|Can|May|Should|Will|Must)\b|(?!Pass|Process|Address|Guess|Press|Compress|Cross)[A-Z][a-z]*s\b(?!:)')

def undocumented(at):
    "Public names whose docstring does not begin with what they do"
    for me,name,n in public(at):
        doc = ast.get_docstring(n) or ''
        if name.endswith('.__init__'): continue
        if not re.match(r'[A-Z`\d]', doc) or re.match(r'(The one|Those|Whoever|What)\b', doc): yield me,f'{name}: {doc[:40]!r} (begin its docstring with what it does)'
        elif isinstance(n, ast.FunctionDef) and not decorated(n, 'property', 'cached_property') and not_imperative.match(doc): yield me,f'{name}: {doc[:40]!r} (write the imperative: *Return*, not *Returns*)'

def undescribed(at):
    "Parameters of public functions without a type or comment, and functions without a return type"
    lines = {name_of(p, at): p.read_text(encoding='utf-8').splitlines() for p in modules(at)}
    for me,name,f in public(at):
        if not isinstance(f, ast.FunctionDef): continue
        a = f.args
        params = [*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs]
        if '.' in name and not decorated(f, 'staticmethod'): params = params[1:]
        for i,q in enumerate(params):
            if q is not a.vararg and q.annotation is None: yield me,f'{name}: {q.arg} has no type: write {q.arg}:int, or what it is'
            shared = i+1 < len(params) and params[i+1].lineno == q.lineno
            comment = re.search(r'#\s*\S', re.sub(r"'[^']*'|\"[^\"]*\"", '', lines[me][q.lineno-1]))
            if shared or not comment: yield me,f'{name}: {q.arg} has no comment: give it a line of its own, and `# meaning, unit, default` there'
        if f.returns is None and f.name != '__init__': yield me,f'{name}: its result has no type: write -> None, or what it is'

def bound(tree):
    "Yield the names that a module binds, each with an identity: the source of an import, else the line"
    for n in tree.body:
        if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and not is_patched(n): yield n.name,n.lineno
        elif isinstance(n, ast.Import):     yield from ((a.asname or a.name.split('.')[0], a.asname and a.name) for a in n.names)
        elif isinstance(n, ast.ImportFrom): yield from ((a.asname or a.name, (n.level, n.module, a.name)) for a in n.names)
        elif isinstance(n, (ast.Assign, ast.AnnAssign)):
            stored = (o for t in getattr(n, 'targets', None) or [n.target] for o in ast.walk(t) if isinstance(getattr(o, 'ctx', None), ast.Store))
            yield from ((o.id, n.lineno) for o in stored if isinstance(o, ast.Name))

definition = re.compile(r'^(?:def|class) +(\w+)', re.M)
def may_repeat(p):
    "Whether two definitions that begin a line have one name; to parse every test file would take seconds"
    counts = Counter(definition.findall(p.read_text(encoding='utf-8')))
    return any(n > 1 for n in counts.values())

def own_definitions(tree):
    "The functions and classes of a file by name and line, without patched methods"
    definitions = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    return {(n.name, n.lineno) for n in definitions if not is_patched(n)}

def twice(at):
    """Names that are defined twice in a file, where the second replaces the first: all names of a module, whose code
    comes from several notebooks; functions and classes of a test file"""
    test_files = filter(may_repeat, sorted((at/'tests').rglob('*.py')))
    names_of = {p:{*bound(tree_of(p))} for p in modules(at)} | {p:own_definitions(tree_of(p)) for p in test_files}
    for p,names in names_of.items():
        for name,n in sorted(Counter(name for name,_ in names).items()):
            if n > 1: yield p.relative_to(at).as_posix(),f'{name} is defined {n} times: rename one, the later replaces the earlier'

def pieces(at):
    "Attributes that are patched into a class, or assigned to it, in the module that defines the class"
    for p in modules(at):
        own = {n.name for n in tree_of(p).body if isinstance(n, ast.ClassDef)}
        for n in tree_of(p).body:
            if is_patched(n) and (c := ast.unparse(n.args.args[0].annotation)) in own: yield name_of(p, at),f'{c}.{n.name} is patched where {c} is defined: write it into the class'
            for t in n.targets if isinstance(n, ast.Assign) else ():
                if isinstance(t, ast.Attribute) and ast.unparse(t.value) in own: yield name_of(p, at),f'{ast.unparse(t)} is set outside of the class: write it into the class'

# callbacks know each other by declared attributes only

def callback_classes(at):
    "The callback classes except `Callback` itself, each with the modules that define one of that name"
    bases,places = {},{}
    for p in modules(at):
        for n in ast.walk(tree_of(p)):
            if not isinstance(n, ast.ClassDef): continue
            bases.setdefault(n.name, set()).update(ast.unparse(b).rpartition('.')[2] for b in n.bases)
            places.setdefault(n.name, set()).add(name_of(p, at))
    found = {'Callback'}
    while more := {n for n,bs in bases.items() if bs & found}-found: found |= more
    return {n:places[n] for n in found-{'Callback'}}

def asked_classes(tree):
    "Yield each `isinstance(x, C)`, `issubclass(x, C)`, `type(x) is C`, `type(x) in (C, D)`: the node, and the names"
    def names(n): return [o.id if isinstance(o, ast.Name) else o.attr for o in ast.walk(n) if isinstance(o, (ast.Name, ast.Attribute))]
    for n in ast.walk(tree):
        if isinstance(n, ast.Call) and getattr(n.func, 'id', '') in ('isinstance','issubclass') and len(n.args)==2: yield n,names(n.args[1])
        asks_type = isinstance(n, ast.Compare) and isinstance(n.left, ast.Call) and getattr(n.left.func, 'id', '')=='type'
        if asks_type: yield n,[k for o in n.comparators for k in names(o)]

def acquainted(at):
    "Modules that test whether an object is of a callback class of another module; their own classes are allowed"
    classes = callback_classes(at)
    for p in modules(at):
        tree = tree_of(p)
        others = {a.asname or a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and not n.level for a in n.names}   # imported from other libraries
        for n,names in asked_classes(tree):
            for k in {*names}-others:
                if k in classes and name_of(p, at) not in classes[k]: yield name_of(p, at),(
                    f'line {n.lineno} asks for the class {k} (declare a word in the module that asks: CONTRIBUTING.md says how)')

# expressions that are hard to read

def nested_conditionals(tree):
    "`a if b else c if d else e`"
    return [n for n in ast.walk(tree) if isinstance(n, ast.IfExp) and any(isinstance(o, ast.IfExp) for o in ast.iter_child_nodes(n))]

def is_condition(n):
    asks = isinstance(n, ast.Call) and ast.unparse(n.func) in ('bool','isinstance','any','all','hasattr','callable')
    return asks or isinstance(n, (ast.Compare, ast.BoolOp)) or isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Not)
def has_words(n): return any(isinstance(o, ast.Constant) and isinstance(o.value, str) and re.search(r'[^\W\d_]', o.value) for o in ast.walk(n))

def times_condition(tree):
    "`'text'*(condition)` and `[item]*bool(x)`, but not `' '*n`, a repetition"
    for n in ast.walk(tree):
        if not (isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult)): continue
        for a,b in ((n.left, n.right), (n.right, n.left)):
            is_text = isinstance(a, ast.JoinedStr) or isinstance(a, ast.Constant) and isinstance(a.value, str)
            if is_text and (has_words(a) or is_condition(b)) or isinstance(a, (ast.List, ast.Tuple)) and is_condition(b): yield n

def crowded_assignments(tree):
    "Assignments of unrelated values to four or more names, but not `self.a,self.b,self.c,self.d = a,b,c,d`"
    def name(n): return n.attr if isinstance(n, ast.Attribute) else n.id if isinstance(n, ast.Name) else ''
    for n in ast.walk(tree):
        if not (isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Tuple) and isinstance(n.value, ast.Tuple)): continue
        given = [*zip(n.targets[0].elts, n.value.elts)]
        if len(given) >= 4 and not all(name(a) and name(a) == name(b) for a,b in given): yield n

# The current number in a subpackage: it may only go down, and is removed at 0
read_twice = dict(nested_conditionals={}, times_condition={}, crowded_assignments={})
finders = dict(nested_conditionals=nested_conditionals, times_condition=times_condition, crowded_assignments=crowded_assignments)

def to_be_rewritten(at, limits=read_twice):
    "Subpackages with more such lines than their limit, with these lines"
    for kind,find in finders.items():
        found = {}
        for p in modules(at): found.setdefault(room(name_of(p, at)), []).extend(f'{p.stem}:{n.lineno} {ast.unparse(n)[:80]}' for n in find(tree_of(p)))
        for r in rooms:
            now,limit = found.get(r, []),limits[kind].get(r, 0)
            if len(now) > limit: yield r,f'{len(now)} {kind}, {limit} are allowed (write them as one reads them): {"; ".join(now)}'

# openings

# The number of chapters in a subpackage that define something before they show an output: it may only go down
defined_first = {}

def defines(src): return re.search(r'^(?:class|def|async def|@)', src, re.M)
def first_shown(cells):
    "Whether the output of an example comes before the first exported definition"
    for c in (c for c in cells if c['cell_type'] == 'code'):
        src = ''.join(c['source'])
        if re.match(r'#\|\s*export', src):
            if defines(src): return False
        elif c.get('outputs') and not re.match(r'#\|\s*hide', src): return True
    return True

def silent_openings(at, limits=defined_first):
    "Subpackages with more such chapters than their limit, with these chapters"
    for r in rooms:
        now = [nb.stem for nb in sorted((at/'nbs'/r).glob('[0-9]*.ipynb')) if not first_shown(json.loads(nb.read_text(encoding='utf-8'))['cells'])]
        if len(now) > limits.get(r, 0): yield r,(
            f'{len(now)} chapters define something before they show it at work, {limits.get(r, 0)} are allowed '
            f'(begin with an example, and run the notebook, so that its output is stored): {", ".join(now)}')

checks = dict(strays=strays, upward=upward, circles=circles, borrowed=borrowed, long_lines=long_lines, full_cells=full_cells, same_ids=same_ids, twice=twice, pieces=pieces,
              undocumented=undocumented, undescribed=undescribed, acquainted=acquainted, to_be_rewritten=to_be_rewritten, silent_openings=silent_openings)

# the tests

@pytest.mark.check
@pytest.mark.parametrize('name', checks)
def test_rules_of_the_house(name):
    found = [f'{where}: {what}' for where,what in checks[name](root)]
    assert not found, '\n'.join([f'{len(found)} faults', *found])

@pytest.mark.check
def test_contributing_names_each_limit():
    "The table of limits in CONTRIBUTING.md has the numbers that the tests use"
    import test_tracer
    section = (root/'CONTRIBUTING.md').read_text(encoding='utf-8').partition('\n## Limits\n')[2].partition('\n## ')[0]
    rows = {cells[1].strip():cells[2].strip() for l in section.splitlines() if len(cells := l.split('|'))==6}
    goal = test_tracer.goal
    named = {'characters of a line of code':max_width, 'definitions in an exported cell':max_defs, 'modules that a first `fit` enters':goal['fit'],
             'modules that creating a Learner enters; a batch; `get_preds`':f"{goal['learner']}; {goal['batch']}; {goal['get_preds']}"}
    assert {k:rows.get(k) for k in named}=={k:str(n) for k,n in named.items()}

def test_ruff_finds_no_fault(tmp_path):
    def ruff(*args): return subprocess.run([sys.executable, '-m', 'ruff', 'check', '--no-cache', '--output-format', 'concise', *args],
                                           cwd=root, capture_output=True, encoding='utf-8').stdout
    assert ruff('.').startswith('All checks passed')
    bad = tmp_path/'bad.py'
    bad.write_text('import os\ndef f(a=[]):\n    try: return g(a)\n    except: pass\n')
    found = ruff('--config', '.ruff.toml', str(bad))
    assert all(rule in found for rule in ('F401', 'F821', 'B006', 'E722'))

def test_violations_are_found(tmp_path):
    def write(path, text): (tmp_path/path).parent.mkdir(parents=True, exist_ok=True); (tmp_path/path).write_text(text)
    def cell(kind, *lines): return dict(cell_type=kind, id='c', source='\n'.join(lines))
    write(f'{lib}/loop/low.py', 'import os\n\ndef given(\n    x:int # a number\n) -> int:\n    "Double a number"\n    return 2*x\n')
    write(f'{lib}/data/bad.py', '\n'.join([
        '"""Doc"""', "__all__ = ['C', 'given', 'os']", 'from ..loop.low import given, os', 'from ..callbacks.late import x', 'from ..loop import low', '',
        'class C:', '    def first(self, a, b:int): return low', '    @property', '    def y(self) -> int:', '        "the y"', '        return 1',
        'class D(C):', '    "Does"', '    def __init__(self, n:int # how many', '    ): pass', '    def y(self) -> int: return 2', '    def _p(self, q): pass',
        '@patch', 'def second(self:C,', '    a:int, # an a', "    s:str='#', b:int=1 # two in a line", ') -> None:', '    "Those of it"', '']))
    write(f'{lib}/callbacks/late.py', 'x = 1\n' + ''.join(f'y{i} = 2\n' for i in range(400)) + '#' + 'z'*120)
    write(f'{lib}/measure/one.py', 'import os.path, os\nfrom .two import f, f\nfrom .two import g\nfrom ..loop.low import given\n'
          'g = 1\nm,(n, o) = 1,(2, 3)\nn:int = 4\nclass K: pass\nK.a = K.a = 1\n')
    write(f'{lib}/measure/two.py', 'def f():\n    from .three import h\ng = 1\nfrom .three import h\n')
    write(f'{lib}/measure/three.py', 'h = 1\nfrom .one import m\nfrom .four import v\n')
    write(f'{lib}/measure/four.py', 'v = 1\ndef later(): from .one import m\n')
    write(f'{lib}/measure/five.py', 'from .one import m\n')
    write(f'{lib}/hand.py', 'x = 1\n'); write(f'{lib}/attic/old.py', 'x = 1\n'); write(f'{lib}/all.py', '')
    write('nbs/1.ipynb', json.dumps(dict(cells=[
        cell('code', '#| export', *[f'def f{i}(): pass' for i in range(4)]), cell('code', *['def f(): pass']*9), cell('code', 'x'*121),
        cell('markdown', 'a'*200, '```python', 'b'*121, '```', '`'+'c'*130+'`')])))
    write(f'{lib}/measure/six.py', 'class P: pass\n@patch\ndef f(self:P): pass\nP.g = P.f\n@patch\ndef f(self:Q): pass\nQ.g = 1\n')
    write('tests/parts/cellar/test_x.py', '')
    write('tests/a.py', 'def f(): pass\nclass g: pass\n@mark\ndef f(): pass\n@patch\ndef h(): pass\n@patch\ndef h(): pass\na = 1\na = 2\n')
    found = {k:[f'{w}: {what}' for w,what in f(tmp_path)] for k,f in checks.items()}
    assert [s.split(':')[0] for s in found['strays']] == ['attic.old', 'hand', 'tests/parts/cellar'], found['strays']
    def expect(kind, *facts, of=''):
        "Assert that a check found these facts, in this order, each followed by what to do"
        messages = [s for s in found[kind] if s.startswith(of)]
        assert len(messages)==len(facts), messages
        for s,fact in zip(messages, facts): assert s.startswith(fact) and len(s)>len(fact)+10, s
    expect('upward', 'data.bad: imports callbacks.late')
    expect('circles', *(f'measure.{a}: imports measure.{b}' for a,b in (('one', 'two'), ('three', 'one'), ('two', 'three'))))
    expect('borrowed', *(f'data.bad: {s}' for s in ('imports os from loop.low, which does not define it', 'exports given', 'exports os')))
    expect('long_lines', f'{lib}/callbacks/late.py', 'nbs/1.ipynb', 'nbs/1.ipynb')
    expect('same_ids', '1.ipynb: 4 cells have the id c')
    expect('full_cells', '1.ipynb: cell c has 4 definitions, 3 are allowed')
    expect('twice', f'{lib}/measure/one.py: g is defined 2 times', f'{lib}/measure/one.py: n is defined 2 times', 'tests/a.py: f is defined 2 times')
    expect('pieces', 'data.bad: C.second is patched where C is defined', *['measure.one: K.a is set outside of the class']*2,
         'measure.six: P.f is patched where P is defined', 'measure.six: P.g is set outside of the class')
    expect('undocumented', *(f'data.bad: {s}' for s in ("C: ''", "C.first: ''", "C.y: 'the y'", "C.second: 'Those of it'")), of='data')
    expect('undescribed', *(f'data.bad: {s}' for s in ('C.first: a has no type', 'C.first: a has no comment', 'C.first: b has no comment',
         'C.first: its result has no type', 'C.second: s has no comment')), of='data')

def test_references_to_callback_classes_are_found(tmp_path):
    (tmp_path/lib/'speed').mkdir(parents=True)
    (tmp_path/lib/'speed/a.py').write_text('class A(Callback):\n    def f(s, cb): return isinstance(cb, (A, Callback, dict))\nclass C(A): pass\n')
    (tmp_path/lib/'speed/b.py').write_text('def f(cb): return isinstance(cb, (int, A)) or type(cb) is C or issubclass(cb, a.C) or type(cb) in (A,) or isinstance(cb, Callback)\n')
    assert [(w, s.split()[6]) for w,s in acquainted(tmp_path)] == [('speed.b', k) for k in 'ACCA']

def test_lines_that_are_hard_to_read_are_found():
    src = """a = b if c else d if e else f
g = (b if c else d) if e else f
h = (x if y else z) + (x if y else z)
't'*i + '  '*j + ' '*(k > 1) + '-'*width + 2*n
[m]*bool(n) + [0]*n
self.a,self.b,self.c,self.d = a,b,c,d
o,p,q,r = 1,None,[],x
s,t,u = 1,2,3
a,b,c,d = f()
"""
    assert [sorted(n.lineno for n in find(ast.parse(src))) for find in finders.values()] == [[1, 2], [4, 4, 5], [7]]

def test_silent_openings_are_found(tmp_path):
    def cell(src, *outputs, kind='code'): return dict(cell_type=kind, source=src, outputs=[*outputs])
    imports,define,shown,hidden = cell('#| export\nimport a'),cell('#| export\nimport a\ndef f(): pass'),cell('f()', 1),cell('#| hide\nf()', 1)
    assert [first_shown(cells) for cells in ([imports, shown, define], [cell('x = 1'), hidden, define, shown], [define], [imports, hidden])] == [True, False, False, True]
    (tmp_path/'nbs/loop').mkdir(parents=True)
    for i,cells in enumerate(([define, shown], [shown, define])): (tmp_path/f'nbs/loop/0{i}_a.ipynb').write_text(json.dumps(dict(cells=cells)))
    assert [(r, what[0]) for r,what in silent_openings(tmp_path, {})] == [('loop', '1')] and not [*silent_openings(tmp_path, dict(loop=1))]

if __name__ == '__main__':
    for k,f in checks.items():
        found = [*f(root)]
        print(f'{k}: {len(found)}')
        for where,what in found:
            if any(a == k or a in where for a in sys.argv[1:]): print(f'    {where}: {what}')
