"""The parts of the project agree: the package is what the notebooks export, the notebooks are clean and in import
order, a module uses no undefined name, the README is current, and no file has a path of one machine.

Each check is a function that lists the faults of a tree. Its test requires none in this tree, and that faults planted
in a copy are found.
"""
import ast, builtins, dis, importlib, inspect, json, os, re, shutil, subprocess, sys, types
from collections import defaultdict
from configparser import ConfigParser
from functools import cache
from fnmatch import fnmatch
from pathlib import Path
import pytest

root = Path(__file__).resolve().parents[2]
cp   = ConfigParser(delimiters=['=']); cp.read(root/'settings.ini', encoding='utf-8')
cfg  = cp['DEFAULT']
lib  = cfg['lib_name']
needs_nbdev = pytest.mark.skipif('LEARNKIT_COMPAT' in os.environ, reason='nbdev needs fastcore 1')

def notebooks(at=root): return [p for p in sorted((at/'nbs').rglob('*.ipynb')) if not re.search(r'/[._]', p.relative_to(at).as_posix())]
def modules(at=root):   return sorted(p for p in (at/lib).rglob('*') if p.is_file() and '__pycache__' not in p.parts and p.name != '_modidx.py')
def cells(nb, kind='code'):
    return [''.join(c['source']) for c in json.loads(nb.read_text(encoding='utf-8'))['cells'] if c['cell_type'] == kind]

@pytest.fixture
def planted(tmp_path):
    "A copy of the tree, to plant faults in"
    for d in ('nbs', lib): shutil.copytree(root/d, tmp_path/d, ignore=shutil.ignore_patterns('__pycache__', '.*', 'out', 'models'))
    for f in {'settings.ini', 'README.md'} & set(os.listdir(root)): shutil.copy(root/f, tmp_path/f)
    return tmp_path

# learnkit/ and nbs/ are as `make lib` writes them

@pytest.fixture(scope='module')
def fresh(tmp_path_factory):
    "A folder with only the notebooks and settings, after cleaning and exporting"
    tmp = tmp_path_factory.mktemp('fresh')
    shutil.copy(root/'settings.ini', tmp)
    for nb in notebooks():
        to = tmp/nb.relative_to(root)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(nb, to)
    (tmp/'nbs').mkdir(exist_ok=True)
    shutil.copy(root/'nbs/_stubs.py', tmp/'nbs')
    make_lib = 'from nbdev.clean import nbdev_clean; from nbdev.doclinks import nbdev_export; nbdev_clean(); nbdev_export()'
    env = {k:v for k,v in os.environ.items() if k != 'IN_TEST'}
    subprocess.run([sys.executable, '-c', make_lib], cwd=tmp, env=env, check=True)
    shutil.copytree(tmp/lib, tmp/'alone'/lib)   # as `nbdev_export` alone writes it
    subprocess.run([sys.executable, 'nbs/_stubs.py'], cwd=tmp, env=env, check=True)
    return tmp

def differences(at, fresh, files):
    "The files of the tree `at` that differ from those in `fresh`"
    mine,theirs = ({p.relative_to(t).as_posix(): p.read_bytes() for p in files(t)} for t in (at, fresh))
    return ([f'{f}: no notebook exports it'           for f in sorted(mine.keys() - theirs.keys())] +
            [f'{f}: missing'                          for f in sorted(theirs.keys() - mine.keys())] +
            [f'{f}: not what `make lib` would write'  for f in sorted(mine.keys() & theirs.keys()) if mine[f] != theirs[f]])

@pytest.mark.check
@needs_nbdev
def test_package_is_what_the_notebooks_export(fresh, planted):
    assert modules(fresh), 'the notebooks export nothing'
    assert differences(root, fresh, modules) == []
    one,*_,last = (p for p in modules(planted) if p.suffix == '.py' and p.name[0] != '_')
    one.write_text(one.read_text() + '\n# by hand\n')
    last.unlink()
    (planted/lib/'orphan.py').write_text('x = 1\n')
    faults = '\n'.join(differences(planted, fresh, modules))
    assert all(s in faults for s in (f'{one.name}: not what', f'{last.name}: missing', 'orphan.py: no notebook'))
    assert len(faults.splitlines()) == 3

@pytest.mark.check
@needs_nbdev
def test_nbdev_export_alone_leaves_no_difference(fresh, planted):
    def code(at): return [p for p in modules(at) if p.suffix=='.py']
    alone = fresh/'alone'
    assert code(alone) and differences(root, alone, code)==[]
    one = code(planted)[0]
    one.write_text(one.read_text() + '\n')
    assert differences(planted, alone, code)==[f'{one.relative_to(planted).as_posix()}: not what `make lib` would write']

@pytest.mark.check
@needs_nbdev
def test_notebooks_are_clean(fresh, planted):
    assert differences(root, fresh, notebooks) == []
    nb = notebooks(planted)[0]
    d  = json.loads(nb.read_text(encoding='utf-8'))
    d['cells'][0]['metadata'] = dict(collapsed=True)
    nb.write_text(json.dumps(d, indent=1, ensure_ascii=False) + '\n', encoding='utf-8')
    assert differences(planted, fresh, notebooks) == [f'nbs/{nb.name}: not what `make lib` would write']

def orphans(at):
    "Modules without their notebook, and stubs without their module"
    res = []
    for p in modules(at):
        if p.name in ('py.typed', '_fastcore.pyi', '_docs.json'): continue
        if p.suffix == '.pyi':
            if not p.with_suffix('.py').is_file(): res.append(p.relative_to(at).as_posix())
            continue
        src = p.read_text(encoding='utf-8')
        nb  = re.search(r'^# AUTOGENERATED! DO NOT EDIT! File to edit: (.*)\.$', src, re.M)
        bare = p.name == '__init__.py' and not re.sub(r'__version__ = .*', '', src).strip()
        if not bare and not (nb and (p.parent/nb[1]).is_file()): res.append(p.relative_to(at).as_posix())
    return res

@pytest.mark.check
def test_every_module_has_its_notebook(planted):
    assert orphans(root) == []
    (planted/lib/'hand.py').write_text('x = 1\n')
    (planted/lib/'gone.py').write_text('# AUTOGENERATED! DO NOT EDIT! File to edit: ../nbs/99_gone.ipynb.\n')
    (planted/lib/'left.pyi').write_text('x: int\n')
    assert orphans(planted) == [f'{lib}/gone.py', f'{lib}/hand.py', f'{lib}/left.pyi']

# private methods of subclasses do not clash with those of a base class

def clashes(classes):
    "Private methods that override a method of a base class but cannot take its arguments"
    found = []
    for c in classes:
        for name,f in vars(c).items():
            base = next((vars(b)[name] for b in c.__mro__[1:] if name in vars(b)), None)
            is_private = name[0]=='_' and name[1:2]!='_'
            if not is_private or not inspect.isfunction(f) or not inspect.isfunction(base): continue
            own,theirs = (inspect.signature(o).parameters.values() for o in (f, base))
            takes = sum(p.kind is not p.KEYWORD_ONLY for p in own)
            needs = sum(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in own)
            given = sum(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in theirs)
            if not needs<=given<=takes: found.append(f'{c.__name__}.{name}')
    return found

def classes_of_the_library():
    "All classes that modules of the library define"
    import pkgutil, learnkit
    names = [m.name for m in pkgutil.walk_packages(learnkit.__path__, f'{lib}.') if '._' not in m.name]
    found = {c for n in names for c in vars(importlib.import_module(n)).values() if inspect.isclass(c) and c.__module__==n}
    assert len(found) > 300
    return sorted(found, key=lambda c: c.__qualname__)

def test_private_methods_take_the_arguments_of_the_base_class():
    assert clashes(classes_of_the_library()) == []
    class Base:
        def _files(self): pass
        def _read(self, path, n=1): pass
    class Clashing(Base):
        def _files(self, id): pass
        def _read(self): pass
    class Refined(Base):
        def _files(self, id=None): pass
        def _read(self, path, n=1, more=()): pass
    assert clashes([Base, Clashing, Refined]) == ['Clashing._files', 'Clashing._read']

# subpackages, and the numbers in them, give the import order

def default_exp(nb): return next((m[1] for c in cells(nb) if (m := re.match(r'#\|\s*default_exp\s+(\S+)', c))), None)

def imported(src, known):
    "Yield the modules of the library that `src` imports at any level; `known` are the names of modules"
    if lib not in src: return
    for n in ast.walk(ast.parse(re.sub(r'^\s*[%!].*$', 'pass', src, flags=re.M))):
        if isinstance(n, ast.Import): names = [a.name for a in n.names]
        elif isinstance(n, ast.ImportFrom):
            inside = [f'{n.module}.{a.name}' for a in n.names]
            names  = [n.module, *(known & set(inside))] if n.module in known else inside
        else: continue
        yield from (m for m in names if re.match(rf'{lib}\b', m))

def exports(nb): return builder().module_of(cells(nb))
def chapters(at):
    "The chapters in import order, by subpackage and then those in none, each with its module"
    nbs = [p for p in builder().notebooks(at/'nbs') if p.parent.name not in ('book','howto','examples') and p.name != 'index.ipynb']
    return {p.relative_to(at/'nbs').as_posix(): exports(p) for p in nbs}

def disorder(at):
    """Notebooks that have no unique number, export a module of another subpackage, or import a module that no earlier
    one exports"""
    nbs,res = chapters(at),[]
    homeless = {p.relative_to(at/'nbs').as_posix() for p in notebooks(at)} - {*nbs}
    res += [f'{nb}: in no room' for nb in homeless if not re.match(r'(book|howto|examples)/|index\.ipynb', nb)]
    number = {nb: (m[1], m[2], m[3]) if (m := re.match(r'(?:(\w+)/)?(\d\d)([a-c]?)_', nb)) else None for nb in nbs}
    fourth = [nb for nb in nbs if re.match(r'\w+/\d\d[d-z]_', nb)]
    res += [f'{nb}: a module has the chapters a, b and c; begin another module, with a number that is free' for nb in fourth]
    res += [f'{nb}: no two-digit number' for nb in nbs if not number[nb] and nb not in fourth]
    res += [f'{nb}: its number is taken' for nb in nbs if number[nb] and [*number.values()].count(number[nb]) > 1]
    first = {}   # module -> the position of the notebook that begins it
    for i,(nb,mod) in enumerate(nbs.items()):
        room,n,part = number[nb] or ('','','')
        begins = any(default_exp(p) for p in [at/'nbs'/nb])
        if begins and mod in first: res.append(f'{nb}: begins {mod}, as another does')
        if begins: first.setdefault(mod, i)
        if begins and room and not mod.startswith(f'{room}.'): res.append(f'{nb}: exports {mod}, which is not of its room')
        if mod and begins != (part in ('','a')): res.append(f'{nb}: the first part has `default_exp`, others `export room.module`')
    home = {lib if mod == '__init__' else f'{lib}.{mod}': first[mod] for mod in first}
    for i,(nb,mod) in enumerate(nbs.items()):
        for c in cells(at/'nbs'/nb):
            exported = re.match(r'#\|\s*export', c)   # an example may use later modules, such as the Learner
            for m in imported(c, home.keys()):
                itself = mod == '__init__' and m == lib   # this module can only be shown by importing it
                if m not in home and not itself: res.append(f'{nb}: imports {m}, which no notebook exports')
                elif exported and not itself and home[m] >= i: res.append(f'{nb}: imports {m}, which no earlier one exports')
    return sorted({*res})

@pytest.mark.check
def test_notebooks_stand_in_import_order(planted):
    assert disorder(root) == []
    def add(nb, *srcs):
        cell = lambda s: dict(cell_type='code', id='x', metadata={}, outputs=[], execution_count=None, source=s)
        (planted/'nbs'/nb).parent.mkdir(exist_ok=True)
        (planted/'nbs'/nb).write_text(json.dumps(dict(cells=[cell(s) for s in srcs], metadata={}, nbformat=4, nbformat_minor=5)))
    add('loop/00_twin.ipynb',  '#| default_exp loop.twin')
    add('loop/97_early.ipynb', '#| default_exp loop.early', f'#| export\ndef f():\n    from {lib}.data.late import x', f'%time\nfrom {lib}.data.late import x')
    add('data/97a_late.ipynb', '#| default_exp data.late', f'#| exporti\nfrom {lib}.data.late import x', f'import {lib}.nowhere', f'from {lib}.loop.early import *')
    add('data/97b_later.ipynb', '#| export data.late\nx = 1', f'from {lib}.data.late import x')
    add('data/98_other.ipynb', '#| default_exp loop.other')
    add('data/99b_part.ipynb', '#| default_exp data.part')
    add('loop/unnumbered.ipynb')
    add('loop/96d_fourth.ipynb')
    add('cellar/00_x.ipynb')
    faults = disorder(planted)
    for s in ('loop/unnumbered.ipynb: no two-digit', 'loop/96d_fourth.ipynb: a module has the chapters a, b and c', 'loop/00_twin.ipynb: its number is taken', f'loop/97_early.ipynb: imports {lib}.data.late,',
              f'data/97a_late.ipynb: imports {lib}.data.late,', f'data/97a_late.ipynb: imports {lib}.nowhere,', 'data/98_other.ipynb: exports loop.other',
              'data/99b_part.ipynb: the first part', 'cellar/00_x.ipynb: in no room'):
        assert any(f.startswith(s) for f in faults), (s, faults)
    assert len(faults) == 10, faults   # the tenth is the notebook whose number the twin has

# an event is a line in the table and a line in the loop; this check lists the other places that are not generated

def fired(p):
    "The events that a module fires, as pairs of line and event"
    lines = p.read_text(encoding='utf-8').splitlines()
    return [(i, e) for i,l in enumerate(lines, 1) for e in re.findall(r"\b(?:self|learn)\('(\w+)'\)", l)]

def events_of_a_batch():
    "The events of a training batch, in the order in which they fire"
    from toys import learner
    from learnkit.loop.callback import Callback
    class EventLog(Callback):
        def __init__(self): self.events = []
        def __call__(self, name, **kwargs): self.events.append(name)
    log = EventLog()
    learner(1, 0, cbs=log).fit(1)
    return log.events[log.events.index('before_fetch'):log.events.index('after_batch')+1]

def shown_events(nb):
    "Yield each output of a notebook that lists events: the id of the cell, and the words of the output"
    src = nb.read_text(encoding='utf-8')
    for c in json.loads(src)['cells'] if 'before_pred' in src else ():
        text = json.dumps([[o.get('text'), {k:v for k,v in o.get('data', {}).items() if k.startswith('text/')}] for o in c.get('outputs', ())])
        if 'before_pred' in text: yield c['id'],{*re.findall(r'\w+', text.replace('\\n', ' '))}

def unknown_events(at, table, batch_events):
    "Yield instructions for each place that lacks an event of the table or of a batch"
    import oracle
    drawn = [e for e in table if table.index(e) < table.index('cleanup') and e != 'after_create']
    in_batch = [e for e in drawn[drawn.index('before_fetch'):drawn.index('after_batch')+1] if 'cancel' not in e]
    for e in [e for e in batch_events if e not in in_batch and e in table]: yield f'`{e}` is fired in a batch, and stands in the table elsewhere: move its line in nbs/loop/00_events.ipynb'
    for e in [e for e in in_batch if e not in batch_events]: yield f"`{e}` stands in the table, and no batch fires it: write `self('{e}')` into nbs/loop/30b_loop.ipynb"
    known = [e for e in batch_events if e in in_batch]
    for a,b in zip(known, [e for e in in_batch if e in known]):
        if a != b: yield f'the loop fires `{a}` where the table has `{b}`: give their lines in nbs/loop/00_events.ipynb the order of the loop'; break
    for e in [e for e in drawn if e not in oracle.FIRED]: yield f'`{e}` is unknown to the specification that the tests have: write it into `BATCH` (or `FIT`) in tests/spec/oracle.py'
    for p in (p for p in modules(at) if p.suffix == '.py' and p.relative_to(at/lib).as_posix() != 'loop/loop.py'):
        for line,e in fired(p):
            if e in in_batch:
                yield f"{p.relative_to(at).as_posix()}:{line} fires `{e}` itself, and would go without an event that is added to a batch: call the loop's part (`learn.do_fetched()`)"
    for nb in notebooks(at):
        for cid,words in shown_events(nb):
            lacks = [e for e in in_batch if e not in words]
            if lacks and len(lacks) <= 3: yield f'{nb.relative_to(at).as_posix()} (cell {cid}) shows the events of a batch without {", ".join(lacks)}: run `.venv/bin/python nbs/_build.py run {nb.relative_to(at).as_posix()}`'

@pytest.mark.check
def test_an_event_is_known_where_it_matters(planted):
    from learnkit.loop.events import event
    table,batch_events = [*event.declared],events_of_a_batch()
    found = [*unknown_events(root, table, batch_events)]
    assert found == [], '\n'.join(found)
    i,j = table.index('before_batch'),batch_events.index('before_batch')
    found = '\n'.join(unknown_events(root, [*table[:i], 'before_planted', *table[i:]], batch_events))
    assert "write `self('before_planted')` into" in found and 'tests/spec/oracle.py' in found and 'nbs/learner/60a_training_loop.ipynb (cell' in found
    swapped = [*table[:i], 'before_pred', 'before_batch', *table[i+2:]]
    assert 'fires `before_batch` where the table has `before_pred`' in '\n'.join(unknown_events(root, swapped, batch_events))
    (planted/lib/'loop/copy.py').write_text("def f(learn):\n    learn('before_pred')\n    learn('before_sanity')\n")
    found = [*unknown_events(planted, table, [*batch_events[:j], 'before_planted', *batch_events[j:]])]
    assert len(found) == 1 and found[0].startswith('learnkit/loop/copy.py:2 fires `before_pred` itself')

# modules use no undefined names

def unknown_names(code, known):
    "The global names that `code`, or a function or class in it, uses and that are neither stored in it nor in `known`"
    ins    = list(dis.get_instructions(code))
    stored = {i.argval for i in ins if i.opname == 'STORE_NAME'} | {'__annotations__' for i in ins if i.opname == 'SETUP_ANNOTATIONS'}
    looked = {i.argval for i in ins if i.opname in ('LOAD_GLOBAL', 'LOAD_NAME', 'LOAD_FROM_DICT_OR_GLOBALS')}
    res = {f'{code.co_name}: {n}' for n in looked - stored - known}
    for c in code.co_consts:
        if isinstance(c, types.CodeType): res |= unknown_names(c, known)
    return res

def module_name(p): return '.'.join(p.relative_to(root).with_suffix('').parts).removesuffix('.__init__')
py_modules = [p for p in modules() if p.suffix == '.py']

@pytest.mark.parametrize('path', py_modules, ids=module_name)
def test_module_has_every_name_it_uses(path):
    mod = importlib.import_module(module_name(path))
    assert Path(mod.__file__) == path, 'another copy of the library was imported'
    assert unknown_names(compile(path.read_text(encoding='utf-8'), path, 'exec'), vars(mod).keys() | vars(builtins)) == set()

def test_unknown_names_are_found():
    src = 'import os\ndef f(a):\n    def g(): return a + os.sep + plt.x\n    return [len(z) for y in a]\nclass C:\n    b = 1\n    def h(self, n=b): return D\n'
    ns = {}
    exec(src, ns)
    found = unknown_names(compile(src, 'm', 'exec'), ns.keys() | vars(builtins))
    assert {'g: plt', 'h: D'} < found and {f.split()[1] for f in found} == {'plt', 'D', 'z'}

# a notebook defines or imports what its exported cells use, even where several notebooks make a module

def is_exported(src): return re.match(r'#\|\s*export[is]?\b', src)   # `exporti` does not add to `__all__`

def compiled_cell(src):
    "The code of a cell without its magics, compiled as a module"
    code = re.sub(r'^(\s*)[%!].*$', r'\1pass', src, flags=re.M)
    return compile(code, 'cell', 'exec', ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

def bound_names(code):
    "The names that a cell defines or imports, without those of a star import, which are known at run time only"
    return {i.argval for i in dis.get_instructions(code) if i.opname == 'STORE_NAME'}

def borrowing_cells(at):
    "Yield the names that an exported cell uses but its notebook neither defines nor imports"
    for nb in notebooks(at):
        sources = cells(nb)
        if not any(map(is_exported, sources)): continue
        codes = [(src, compiled_cell(src)) for src in sources if not re.match(r'%%', src)]
        known = {'__name__', '__file__', *vars(builtins)}
        for _,code in codes: known |= bound_names(code)
        for src,code in codes:
            if not is_exported(src): continue
            yield from (f'{nb.relative_to(at).as_posix()}: {name}' for name in sorted(unknown_names(code, known)))

def names_used(tree): return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
def names_imported(tree):
    "The names that a module imports at top level, without dotted imports such as `import a.b`"
    return {a.asname or a.name for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names if a.asname or '.' not in a.name}

def lent_imports(at):
    "Yield exported imports that are used only by another notebook of the same module"
    parts_of = defaultdict(list)   # module -> its notebooks, each with its exported cells
    for nb in notebooks(at):
        sources,by_module = cells(nb),defaultdict(list)
        own = next((m[1] for src in sources if (m := re.match(r'#\|\s*default_exp\s+(\S+)', src))), None)
        for src in filter(is_exported, sources): by_module[re.match(r'#\|\s*\w+[ \t]*(\S*)', src)[1] or own].append(src)
        for mod,exported in by_module.items(): parts_of[mod].append((nb, exported))
    for parts in parts_of.values():
        if len(parts)==1: continue
        trees = {nb: ast.parse('\n'.join(exported)) for nb,exported in parts}
        used  = {nb: names_used(tree) for nb,tree in trees.items()}
        for nb,tree in trees.items():
            others = set().union(*(names for other,names in used.items() if other!=nb))
            yield from (f'{nb.relative_to(at).as_posix()}: {name}' for name in sorted(names_imported(tree) & others - used[nb]))

@pytest.mark.check
def test_exported_cells_use_names_of_their_own_notebook(tmp_path):
    found = [*borrowing_cells(root)]
    assert found == [], 'import these names in the notebook that uses them:\n' + '\n'.join(found)
    original = next(nb for nb in notebooks() if any(map(is_exported, cells(nb))))
    (tmp_path/'nbs').mkdir()
    nb = tmp_path/'nbs'/original.name
    d  = json.loads(original.read_text(encoding='utf-8'))
    def add(*sources): d['cells'] += [dict(cell_type='code', id=f'x{i}', metadata={}, outputs=[], source=[s]) for i,s in enumerate(sources)]
    add(*(f'#| {directive}\ndef borrow(x): return own(x, lent)' for directive in ('export', 'exporti', 'exports')), 'def own(x, y): return x')
    nb.write_text(json.dumps(d, indent=1, ensure_ascii=False) + '\n', encoding='utf-8')
    assert [*borrowing_cells(tmp_path)] == [f'nbs/{nb.name}: borrow: lent']*3

@pytest.mark.check
def test_imports_are_exported_where_they_are_used(tmp_path):
    found = [*lent_imports(root)]
    assert found == [], 'export these imports in the notebook that uses them:\n' + '\n'.join(found)
    def write(name, *sources):
        made = [dict(cell_type='code', source=[s]) for s in sources]
        (tmp_path/'nbs').mkdir(exist_ok=True)
        (tmp_path/'nbs'/name).write_text(json.dumps(dict(cells=made)), encoding='utf-8')
    write('00a.ipynb', '#| default_exp m', '#| export\nimport lent, own, x.y as aliased, x.unused\nfrom x import both', '#| exporti\nown(both)')
    write('00b.ipynb', '#| exporti m\ndef f(): return lent(both, aliased)', 'own')
    assert [*lent_imports(tmp_path)] == ['nbs/00a.ipynb: aliased', 'nbs/00a.ipynb: lent']

# imports are explicit

def star_imports(src):
    "The line numbers of star imports"
    return [n.lineno for n in ast.walk(ast.parse(src)) if isinstance(n, ast.ImportFrom) and n.names[0].name == '*']

def test_imports_are_explicit():
    found = {module_name(p): l for p in py_modules if (l := star_imports(p.read_text(encoding='utf-8')))}
    assert found.keys() <= {f'{lib}.all', lib}
    assert star_imports('from x import *\nimport y\ndef f(): from z import a') == [1]

# the README

@cache
def builder():
    spec = importlib.util.spec_from_file_location('_build', root/'nbs'/'_build.py')
    mod  = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mod)
    return mod

def stale_readme(at):
    "The files that `make lib` would change: the READMEs, their pictures, and the loop that index.ipynb shows"
    text,pngs = builder().build(at/'nbs'/'index.ipynb')
    have = {p.name: p.read_bytes() for p in (at/'nbs'/'images').glob('index-*.png')}
    texts = {'README.md': text, 'nbs/README.md': builder().contents(), 'nbs/index.ipynb': builder().with_loop(at)}
    return [n for n,t in texts.items() if (at/n).read_text(encoding='utf-8') != t] + \
           sorted(n for n in have.keys() | pngs if have.get(n) != pngs.get(n))

@pytest.mark.check
def test_readme_is_current(planted):
    assert stale_readme(root) == [], 'run `make lib`'
    (planted/'nbs/images').mkdir(exist_ok=True)
    (planted/'nbs/images/index-99.png').write_bytes(b'old')
    for n in ('README.md', 'nbs/README.md'):
        with (planted/n).open('a') as f: f.write('by hand\n')
    loop = planted/lib/'loop/loop.py'
    loop.write_text(loop.read_text().replace("        self('before_pred')\n", "        self('before_pred')\n        self('before_more')\n"))
    assert stale_readme(planted) == ['README.md', 'nbs/README.md', 'nbs/index.ipynb', 'index-99.png']

def prose(p):
    "The text of a page without code; for a notebook, of its markdown cells"
    text = '\n\n'.join(cells(p, 'markdown')) if p.suffix == '.ipynb' else p.read_text(encoding='utf-8')
    return re.sub(r'^```.*?^```|`[^`\n]*`', '', text, flags=re.S | re.M)

def anchors(p):
    "The anchors of the headings of a page, in a form that is equal for notebooks and GitHub"
    return {re.sub(r'\W', '', h.lower()) for h in re.findall(r'^#+ +(.*?) *$', prose(p) if p.suffix == '.ipynb' else p.read_text(encoding='utf-8'), re.M)}

def dead_links(at):
    "The links to missing files or headings in the top-level pages and the notebooks"
    res = []
    for p in [*sorted(at.glob('*.md')), at/'nbs/README.md', *notebooks(at)]:
        links = {a or b for a,b in re.findall(r'\]\(([^)\s]+)|\b(?:src|href)="([^"]+)', prose(p))}
        for l in sorted(l for l in links if not re.match(r'[a-z][a-z0-9+.-]*:', l)):
            to,_,heading = l.partition('#')
            there = p.parent/to if to else p
            found = there.exists() and (not heading or there.suffix not in ('.ipynb', '.md') or re.sub(r'\W', '', heading.lower()) in anchors(there))
            if not found: res.append(f'{p.relative_to(at).as_posix()}: {l}')
    return res

@pytest.mark.check
def test_no_link_is_dead_in_pages(planted):
    assert dead_links(root) == []
    before = dead_links(planted)
    (planted/'README.md').write_text('# A b\n[a](nbs/999_no.ipynb) [b](nbs#x) [c](https://x.org/y) <img src="no.png"> [d](#A-b) [e](#c) `[f](g)`')
    (planted/'nbs/examples/x.ipynb').write_text(json.dumps(dict(cells=[dict(cell_type='markdown', source='[i](../index.ipynb) [j](index.ipynb)')])))
    new = ['README.md: #c', 'README.md: nbs/999_no.ipynb', 'README.md: no.png', 'nbs/examples/x.ipynb: index.ipynb']
    assert [l for l in dead_links(planted) if l not in before] == new

# A README has source, text, tables and pictures, but no hidden cells, hidden outputs, bars or colours.
def test_readme_builder(tmp_path):
    code = lambda src, *outs: dict(cell_type='code', source=src, outputs=list(outs))
    data = lambda **d: dict(output_type='display_data', data={k.replace('_', '/'): v for k,v in d.items()})
    text = lambda s: dict(output_type='stream', name='stdout', text=s)
    nb   = tmp_path/'index.ipynb'
    def built(*cells):
        nb.write_text(json.dumps(dict(cells=cells)))
        return builder().build(nb)
    md,pngs = built(
        dict(cell_type='markdown', source='# T\n[a](data/00_nested.ipynb) [b](../LICENSE) [c](https://x.org/) [d](#e) ![](images/f.png)'),
        code('#| hide\nimport x', text('secret')),
        code('#| echo: false\nplot()', data(text_plain='<Figure>', image_png='AAEC')),
        code(['#| alt: Two Lines\n', 'f(1)'], text('a\x1b[1mb\x1b[0m\n 10%\r 20%\r'), text('done  \n')),
        code('#| output: false\ng()', text('noise')),
        code('h()', data(text_html='<style>p</style><table><tr><th>a|b</th></tr><tr><td>1</td><td>23</td></tr></table>', text_plain='<H>'),
                    data(text_html='<progress value=3>', text_markdown='```html\n<progress>\n```', text_plain='<HTML object>'),
                    data(text_markdown=['**m** [n](x.ipynb)'], text_plain='<Markdown object>'), data(text_plain='[1, 2]')))
    assert pngs == {'index-1.png': bytes([0, 1, 2])}
    assert md.split('\n\n')[1:] == [
        '# T\n[a](nbs/data/00_nested.ipynb) [b](LICENSE) [c](https://x.org/) [d](#e) ![](nbs/images/f.png)',
        '![](nbs/images/index-1.png)', '```python\nf(1)\n```', '```text\nab\ndone\n```', '```python\ng()\n```',
        '```python\nh()\n```', '| a\\|b |     |\n| ---- | --- |\n| 1    | 23  |', '**m** [n](nbs/x.ipynb)', '```text\n[1, 2]\n```\n']
    with pytest.raises(ValueError, match='cell 0 ends in KeyError: 3'):
        built(code('d[3]', dict(output_type='error', ename='KeyError', evalue='3')))

# no paths of one machine; pins

def project_files():
    "The files that git tracks or would add; without git, those not in .gitignore or a hidden folder"
    if (root/'.git').exists():
        git = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', '-z'], cwd=root, capture_output=True, encoding='utf-8')
        if git.returncode == 0: return [p for f in git.stdout.split('\0') if f and (p := root/f).is_file()]
    ignored = [l.rstrip('/') for l in (root/'.gitignore').read_text().split()]
    def ok(rel):
        ups = [rel, *rel.parents][:-1]
        return not any(fnmatch(s, i) for u in ups for s in (u.name, u.as_posix()) for i in ignored) \
            and not any(s.startswith('.') for s in rel.parts[:-1])
    return [p for p in root.rglob('*') if p.is_file() and ok(p.relative_to(root))]

def text_of(p):
    "The text of a file: of a notebook all but its pictures, of a binary file nothing"
    try: s = p.read_text(encoding='utf-8')
    except UnicodeDecodeError: return ''
    if p.suffix != '.ipynb': return s
    def strings(o):
        if isinstance(o, str): return [o]
        if isinstance(o, list): return [''.join(o)] if all(isinstance(x, str) for x in o) else sum(map(strings, o), [])
        if isinstance(o, dict): return sum((strings(v) for k,v in o.items() if not k.startswith('image/')), [])
        return []
    return '\n'.join(strings(json.loads(s)))

_place = re.compile(r'(?<![\w.~$/:-])(/(?:work|root|home|Users|opt|srv|mnt|tmp|private)/[\w.][^\s\'"]*|[A-Z]:\\+Users\\[^\s\'"]*)')
def places(s):
    "The absolute paths of a particular machine in a text"
    return _place.findall(s)

def test_nothing_belongs_to_one_machine():
    assert {p.relative_to(root).as_posix(): f for p in project_files() if (f := places(text_of(p)))} == {}
    assert [places(s) for s in ('File "/ho''me/me/x.py"', 'C:\\Us''ers\\me', '/path/to/python', 'https://a.b/home/x', './tmp/x')] == \
           [['/ho''me/me/x.py'], ['C:\\Us''ers\\me'], [], [], []]

@pytest.mark.check
def test_top_level_has_only_the_agreed_files():
    fixed = {'settings.ini', 'setup.py', 'nbs', lib, 'tests', 'README.md', 'LICENSE', 'Makefile', 'CHANGELOG.md',
             'CONTRIBUTING.md', 'CITATION.cff'}
    assert {s for p in project_files() if not (s := p.relative_to(root).parts[0]).startswith('.')} == fixed

@pytest.mark.check
def test_pins_are_pins():
    lines = (root/'tests/constraints.txt').read_text().splitlines()
    assert [l for l in lines if not re.fullmatch(r'[A-Za-z0-9._-]+==[0-9][0-9a-z.]*', l)] == []
    assert lines == sorted(lines, key=str.lower), 'run `make lock`'
    names = [re.sub(r'[-_.]+', '-', l.partition('==')[0].lower()) for l in lines]
    assert len(set(names)) == len(names)
    wanted = {re.match(r'[\w-]+', r)[0].lower() for k,v in cfg.items() if k.endswith('requirements') for r in v.split()}
    assert wanted - {lib} <= set(names)

def test_pins_support_the_oldest_python():
    "Each pinned package supports the least Python version; one needed 3.11.5, but Debian 12 has 3.11.2"
    from importlib.metadata import distributions
    from packaging.specifiers import SpecifierSet
    pins = dict(l.lower().split('==') for l in (root/'tests/constraints.txt').read_text().splitlines())
    required = {(d.metadata['Name'].lower(), d.version.partition('+')[0]): d.metadata.get('Requires-Python') or '' for d in distributions()}
    least = cfg['min_python'] + '.0'
    assert len(pins.items() & required.keys()) > 75   # with the oldest PyTorch some have other versions
    assert [f'{n} {v}: Python {required[n, v]}' for n,v in pins.items() & required.keys() if not SpecifierSet(required[n, v]).contains(least)] == []

# importing is cheap

# contrib.sklearn needs scikit-learn at import, and so is only imported by name
eager = [p for p in py_modules if p.relative_to(root/lib).as_posix() != 'contrib/sklearn.py']

def test_import_is_light_and_changes_nothing():
    "It loads no heavy package, and keeps bars and signal handlers as they are, even when StopOnSignal is created"
    heavy = 'matplotlib pandas fastprogress fasthtml IPython sklearn torchmetrics tqdm.auto rich wandb mlflow tensorboard fastcore.docments statistics'.split()   # torch imports tqdm
    state = 'find_display_kind(), ProgressCallback().kind, *map(signal.getsignal, signal.valid_signals())'
    def loaded(*mods):
        code = f"""import gc, signal, sys, torch
gc.callbacks.append(lambda *args: looks.append(args)); looks = []
from learnkit.learner.bars import ProgressCallback, find_display_kind
assert looks==[] and gc.isenabled(), 'garbage was looked for among what the import has made'
gc.callbacks.pop(); gc.freeze(); sys.modules.pop('learnkit'); import learnkit
assert gc.get_freeze_count(), 'what others have frozen is not frozen any more'
gc.unfreeze()
from learnkit.recovery.signals import StopOnSignal
before = [{state}]
import {', '.join(mods)}
StopOnSignal()
assert before==[{state}]
print(*({set(heavy)} & sys.modules.keys()))
import matplotlib
print(*({set(heavy)} & sys.modules.keys()))"""
        printed = subprocess.run([sys.executable, '-c', code], cwd=root, check=True, capture_output=True, encoding='utf-8').stdout
        return [line.split() for line in printed.splitlines()]
    assert loaded(*map(module_name, eager)) == [[], ['matplotlib']]

@pytest.mark.check
def test_no_two_files_of_tests_share_a_name():
    "pytest imports test files by name alone, and stops at a second one of the same name"
    names = [p.name for p in (root/'tests').rglob('test_*.py')]
    assert sorted({n for n in names if names.count(n)>1})==[]

def test_extras_named_in_errors_exist():
    extras = {k.removesuffix('_requirements') for k in cfg if k.endswith('_requirements')}
    named  = {e for p in py_modules for s in re.findall(rf'\b{lib}\[([\w,]+)\]', p.read_text(encoding='utf-8')) for e in s.split(',')}
    assert named <= extras

# the two short imports

# `learnkit.all` excludes contrib.sklearn and the adapters, which are imported when a foreign callback is passed
def unlisted(at):
    "Yield modules with public names that `learnkit.all` does not import"
    from learnkit.loop.names import adapters
    listed = {*re.findall(r'^from \.(\S+) import \*', (at/lib/'all.py').read_text(encoding='utf-8'), re.M)}
    apart  = {f'contrib.{m}' for m in ('sklearn','foreign',*adapters.values())}
    for p in sorted((at/lib).rglob('*.py')):
        name = '.'.join(p.relative_to(at/lib).with_suffix('').parts)
        if p.stem in ('__init__','_modidx') or name in {*listed, *apart, 'all'}: continue
        if re.search(r'^__all__ = \[[^]]', p.read_text(encoding='utf-8'), re.M):
            yield f'learnkit.all has no name of {name}: write `from {lib}.{name} import *` into nbs/98_all.ipynb'

@pytest.mark.check
def test_all_imports_all_modules(planted):
    assert [*unlisted(root)] == []
    (planted/lib/'data/more.py').write_text("__all__ = ['f']\ndef f(): pass\n")
    (planted/lib/'data/none.py').write_text("__all__ = []\n")
    assert [f for f in unlisted(planted)] == ['learnkit.all has no name of data.more: write `from learnkit.data.more import *` into nbs/98_all.ipynb']

def test_all_exports_all_public_names():
    from learnkit.loop.names import adapters
    ns = {}
    exec(f'from {lib}.all import *', ns)
    public = {n: getattr(m, n) for p in eager if p.stem not in ('all', '__init__', '_modidx', 'foreign', *adapters.values()) for m in [importlib.import_module(module_name(p))] for n in m.__all__}
    assert 'Learner' in public
    assert [n for n,v in public.items() if ns.get(n) is not v] == []
    fastcore = {}
    for m in 'basics foundation imports meta xtras'.split(): exec(f'from fastcore.{m} import *', fastcore)
    named = {a.asname or a.name.partition('.')[0] for n in ast.parse((root/lib/'all.py').read_text(encoding='utf-8')).body
             if isinstance(n, (ast.Import,ast.ImportFrom)) for a in n.names} - {'*'}
    assert {'L','patch','delegates','ifnone'} <= fastcore.keys() and {'nn','Tensor','math','Optional','partial'} <= named
    assert ns.keys() - public.keys() - {'__builtins__'} == (fastcore.keys() | named) - public.keys() - {'test_sig','__builtins__'}
    assert not {'copy','datetime'} & named, 'a notebook may have imported the modules of these names'
    assert [n for n,o in ns.items() if n.startswith('test') and getattr(o, '__test__', True)] == [], 'pytest would collect it'

def test_package_introduces_itself():
    ns = {}
    exec(f'import {lib}; from {lib} import Learner, Callback, CancelFit', ns)
    assert ns[lib].__version__ == cfg['version'] and ns[lib].__doc__
    citation = (root/'CITATION.cff').read_text(encoding='utf-8')
    assert f"\nversion: {cfg['version']}\n" in citation and f"\nrepository-code: {cfg['git_url']}\n" in citation
