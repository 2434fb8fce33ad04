"""The library does not read frames, bytecode or stacks of other threads, nor look up attributes by name on objects that
delegate to others.

Both lists of exceptions can only shrink. `make check` fails if a case is added; `make test` fails if a listed case no
longer exists, so that it cannot come back.
"""
import ast
from functools import cache
import pytest
from test_house import callback_classes, name_of, modules, root, room, tree_of

# frames, bytecode, other threads' stacks, /proc

plain_rooms = 'loop','data','optim','measure','learner','callbacks','recovery'
of_frames = {'f_locals','f_back','_getframe','_current_frames','currentframe'}
of_code   = {'co_code','co_consts','co_names','co_varnames','co_freevars','co_cellvars','__closure__','cell_contents','get_instructions'}

def reached(node):
    "The name that a node reads of frames, bytecode or /proc, or None"
    if isinstance(node, ast.Attribute) and node.attr in of_frames | of_code: return node.attr
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith('/proc'): return '/proc'
    if isinstance(node, ast.Import) and any(a.name=='dis' for a in node.names): return 'dis'
    if isinstance(node, ast.ImportFrom) and node.module=='dis': return 'dis'

def by_definition(tree):
    "Yield each node of a module, with the name of the outermost function or class around it"
    for top in tree.body:
        for node in ast.walk(top): yield getattr(top, 'name', ''),node

@cache
def reaches(at):
    "The reads of frames, bytecode and /proc in the core's subpackages: module, definition, and name"
    found = set()
    for path in modules(at):
        module = name_of(path, at)
        if room(module) not in plain_rooms: continue
        found |= {f'{module}.{where}: {what}' for where,node in by_definition(tree_of(path)) if (what := reached(node))}
    return found

# Lines may only be removed
still_reached = {
    'data.snapshot._get_cell_contents: cell_contents',
    'data.snapshot._is_unchanging: __closure__',
    'data.snapshot.list_function_contents: __closure__',
    'learner.checks._get_args: co_varnames', 'learner.checks._get_args: f_locals',
    'learner.checks._make_sample_hint: f_locals',
    'loop.dispatcher.find_stacklevel: _getframe', 'loop.dispatcher.find_stacklevel: f_back',
    'loop.signals._deliver: _getframe',
    'loop.signals._must_wait: f_back',
    'loop.signals.handle_pending: _getframe',
    'measure.batch_weight._get_default_ignored: co_varnames',
}

# `hasattr(cb, 'writer')` looks in the callback, its Learner and the model: look in `type(cb)` or `vars(cb)` instead

delegating = {'Callback','Learner','Loop','Dispatcher'}
def is_delegating(node, inside, of_callbacks):
    "Whether an expression is an object that delegates attributes to another: a callback or a Learner"
    if isinstance(node, ast.Attribute): return node.attr in ('learn','learner')
    if not isinstance(node, ast.Name): return False
    if node.id=='self': return inside
    return node.id in ('cb','callback','learn','learner') or node.id in of_callbacks

def callbacks_by_name(tree):
    "The loop variables that are callbacks: `for o in learn.cbs`"
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, (ast.For, ast.comprehension)): continue
        if 'cbs' in ast.unparse(node.iter): found |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
    return found

def asks_by_name(node):
    "Whether a node is `hasattr(o, 'name')` or `getattr(o, 'name', …)`"
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in ('hasattr','getattr'): return False
    literal = len(node.args)>1 and isinstance(node.args[1], ast.Constant)
    return literal and not node.args[1].value.startswith('__')   # dunder names are never delegated

def is_method_of(definition, classes):
    "Whether a definition is one of these classes, or patched into one"
    if isinstance(definition, ast.ClassDef): return definition.name in classes
    patched = isinstance(definition, ast.FunctionDef) and definition.args.args and definition.args.args[0].annotation is not None
    return patched and ast.unparse(definition.args.args[0].annotation) in classes

@cache
def asked_of_delegates(at):
    "The look-ups by name on objects that delegate, with their lines, by module"
    classes,found = {*callback_classes(at)}|delegating,{}
    for path in modules(at):
        for top in tree_of(path).body:
            inside,names = is_method_of(top, classes),callbacks_by_name(top)
            asks = [n for n in ast.walk(top) if asks_by_name(n) and is_delegating(n.args[0], inside, names)]
            if asks: found.setdefault(name_of(path, at), []).extend(f'line {n.lineno}: {ast.unparse(n)}' for n in asks)
    return found

# The number in each module: it may only go down
still_asked = {
    'callbacks.lr_find': 1,
    'callbacks.monitor': 1,
    'learner.bars': 1,
    'learner.checks': 1,
    'learner.learner': 2,
    'loop.callback': 2,
    'loop.dispatcher': 2,
    'measure.accum': 1,
    'measure.batch_weight': 2,
    'measure.metric': 1,
    'observe.speed': 1,
}

@pytest.mark.check
def test_the_core_reads_no_frames_and_no_bytecode():
    more = sorted(reaches(root)-still_reached)
    assert not more, f'This reads frames, bytecode, stacks of other threads or /proc; say it by a plain rule: {more}'

@pytest.mark.check
def test_objects_that_delegate_are_not_read_by_name():
    more = {m:asks for m,asks in asked_of_delegates(root).items() if len(asks)>still_asked.get(m, 0)}
    assert not more, f'The Learner or the model may answer here; ask `vars(o)` or `type(o)`: {more}'

def test_the_lists_have_no_outdated_exceptions():
    assert still_reached-reaches(root)==set(), 'take these off `still_reached`'
    now = {m:len(asks) for m,asks in asked_of_delegates(root).items()}
    assert {m:n for m,n in still_asked.items() if now.get(m, 0)<n}=={}, f'lower these in `still_asked`; now: {now}'

def test_violations_are_found(tmp_path):
    for path,text in {'loop/a.py':"import dis\ndef f(x): return x.f_locals, open('/proc/self/maps'), x.f_code.co_name\nclass A(Callback):\n    def g(self): return hasattr(self, 'writer')\n",
                      'speed/b.py':"from x import y\ndef f(cbs): return [getattr(o, 'a', 1) for o in cbs], [hasattr(p, 'a') for p in pairs], sys._getframe()\n@patch\ndef g(self:Learner): return getattr(self, 'b'), getattr(self, name), hasattr(type(self), 'b'), hasattr(self.learn, 'c')\n"}.items():
        (tmp_path/'learnkit'/path).parent.mkdir(parents=True)
        (tmp_path/'learnkit'/path).write_text(text)
    assert reaches(tmp_path)=={'loop.a.: dis', 'loop.a.f: f_locals', 'loop.a.f: /proc'}
    assert {m:[a.split(': ')[1] for a in asks] for m,asks in asked_of_delegates(tmp_path).items()}=={
        'loop.a':["hasattr(self, 'writer')"], 'speed.b':["getattr(o, 'a', 1)", "getattr(self, 'b')", "hasattr(self.learn, 'c')"]}
