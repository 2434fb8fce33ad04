"""Writes the stubs: a `.pyi` beside each module of the library, and `py.typed`. They tell editors and type checkers
what these cannot see in the modules themselves. And writes `_docs.json`, with which docstrings are completed at import:
what the comments beside parameters say, and what is raised.

    python nbs/_stubs.py             write them into learnkit/
    python nbs/_stubs.py FOLDER      write them into another folder, to compare

`@patch` adds a method to a class that may stand in another module, and a Learner or a callback finds some attributes by
`__getattr__`: to a type checker neither exists. In the stubs

- a patched function is a method of its class, with its signature, its docstring and the comments beside its parameters;
  `@delegates` is written out;
- no class has a `__getattr__` that accepts every name, so a typo is an error;
- `Callback` has the Learner's attributes, which it reads as its own, and a method for each event;
- `Learner` has an attribute for each callback of the library: `learn.recorder`, `learn.early_stopping`;
- `Events` has an attribute for each event;
- `from learnkit import …` and `from learnkit.all import *` name all that they give;
- what has no type is `Any`, or what its value shows, so that strict type checking finds nothing unknown.

The modules are only read, never imported. `make lib` runs this.
"""
import ast, builtins, copy, io, json, re, sys, textwrap, tokenize
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

root  = Path(__file__).resolve().parent.parent
lib   = 'learnkit'
head  = '# Made by nbs/_stubs.py from the modules: `make lib` writes it again.\n'
width = 120

# What generic types are parameters of where a module gives none
generics = {'tuple':'[Any, ...]', 'Callable':'[..., Any]', 'Generator':'[Any, Any, Any]',
    **dict.fromkeys('list set frozenset deque type Iterable Iterator Sequence Collection partial'.split(), '[Any]'),
    **dict.fromkeys('DataLoader Dataset IterableDataset Subset Sampler RandomSampler'.split(), '[Any]'),
    **dict.fromkeys('DistributedSampler WeakSet AbstractContextManager nullcontext'.split(), '[Any]'),
    **dict.fromkeys('dict Mapping MutableMapping defaultdict OrderedDict'.split(), '[Any, Any]')}

# fastcore and scikit-learn have no types: classes of the same name stand for theirs as bases and in what is returned
typed = 'L','AttrDict','BaseEstimator','ClassifierMixin','RegressorMixin'
untyped = 'fastcore','sklearn'
typed_stub = '''
from collections.abc import Iterator, Sequence
from typing import Any, Self

class L(Sequence[Any]):
    """fastcore's `L`, a list that can be indexed with a list or a mask"""
    items: list[Any]
    def __init__(self, items: Any = None, *rest: Any, use_list: bool = False, match: Any = None) -> None: ...
    def __getitem__(self, idx: Any) -> Any: ...
    def __setitem__(self, idx: Any, o: Any) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __contains__(self, value: Any) -> bool: ...
    def __add__(self, b: Any) -> Self: ...
    def append(self, o: Any) -> None: ...
    def map(self, f: Any, *args: Any, **kwargs: Any) -> Self: ...
    def filter(self, f: Any = ..., negate: bool = False, **kwargs: Any) -> Self: ...
    def attrgot(self, k: str, default: Any = None) -> Self: ...
    def itemgot(self, *idxs: Any) -> Self: ...
    def sorted(self, key: Any = None, reverse: bool = False, **kwargs: Any) -> Self: ...

class AttrDict(dict[str, Any]):
    """fastcore's `AttrDict`, a dictionary whose items are attributes too"""
    def __getattr__(self, k: str) -> Any: ...
    def __setattr__(self, k: str, v: Any) -> None: ...

class BaseEstimator:
    """scikit-learn's base class: an estimator has its parameters by name"""
    def get_params(self, deep: bool = True) -> dict[Any, Any]: ...
    def set_params(self, **params: Any) -> Self: ...

class ClassifierMixin:
    """What classifiers of scikit-learn have"""
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

class RegressorMixin:
    """What regressors of scikit-learn have"""
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...
'''

# small parts of syntax trees

def expr(s): return ast.parse(s, mode='eval').body
def is_none(t): return ast.unparse(t)=='None'
def is_attr(k, obj): return isinstance(k, ast.Attribute) and isinstance(k.value, ast.Name) and k.value.id==obj
def source(t): return '' if t is None else ast.unparse(t).replace(' | ', '|')
def parameters(a): return [p for p in (*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg) if p is not None]
def snake(s): return re.sub('([a-z0-9])([A-Z])', r'\1_\2', re.sub('(.)([A-Z][a-z]+)', r'\1_\2', s)).lower()

def union(*ts):
    "The union of some annotations, each once, None last"
    names = []
    for t in ts:
        parts = []
        while isinstance(t, ast.BinOp): parts.append(t.right); t = t.left
        names += map(ast.unparse, [t, *reversed(parts)])
    names = list(dict.fromkeys(names))
    if 'Any' in names: return expr('Any')
    if 'float' in names and 'int' in names: names.remove('int')
    return expr('|'.join(sorted(names, key='None'.__eq__)))

def statements(body):
    "The statements of a module, those in `if`, `try` and `with` too"
    for n in body:
        yield n
        if isinstance(n, (ast.If,ast.With,ast.Try,ast.ExceptHandler)):
            for k in ('body','orelse','handlers','finalbody'): yield from statements(getattr(n, k, ()))

def pairs(n):
    "Targets and values of an assignment, one by one; a value is None where it is not known"
    def split(t, v):
        if not isinstance(t, (ast.Tuple,ast.List)): return [(t, v)]
        vs = v.elts if isinstance(v, (ast.Tuple,ast.List)) else []
        if len(vs)!=len(t.elts) or any(isinstance(o, ast.Starred) for o in vs): vs = [None]*len(t.elts)
        return [p for o,w in zip(t.elts, vs) for p in split(o, w)]
    if not isinstance(n, ast.Assign): return [(n.target, n.value)]
    return [p for t in n.targets for p in split(t, n.value)]

def with_defaults(f, skip=0):
    "The named parameters of a function from number `skip` on, each with its default or None"
    a = f.args
    plain = [*a.posonlyargs, *a.args]
    return [*zip(plain, [None]*(len(plain)-len(a.defaults)) + a.defaults), *zip(a.kwonlyargs, a.kw_defaults)][skip:]

def decorators(f): return {ast.unparse(d.func if isinstance(d, ast.Call) else d):d for d in f.decorator_list}
def is_patched(f): return isinstance(f, ast.FunctionDef) and 'patch' in decorators(f)
def patch_kw(f):
    "The flags of a function's `@patch(…)` that are set"
    d = decorators(f).get('patch')
    return {k.arg for k in d.keywords if ast.literal_eval(k.value)} if isinstance(d, ast.Call) else set()
def is_static(f): return 'static_method' in patch_kw(f) or 'staticmethod' in decorators(f)
def is_again(f): return any(re.search(r'\.(setter|deleter)$', d) for d in decorators(f)) or 'set_prop' in patch_kw(f)

def children(n):
    "The nodes right below one, without whether a name is read or assigned"
    found = []
    for v in [getattr(n, k, None) for k in n._fields if k!='ctx']:
        if isinstance(v, ast.AST): found.append(v)
        elif isinstance(v, list): found += [o for o in v if isinstance(o, ast.AST)]
    return found

@cache
def nodes(tree):
    "The nodes of a tree, from the top down; kept until other modules are read, as they are asked for again and again"
    found = [tree]
    for n in found: found += children(n)
    return found

@cache
def own_nodes(f):
    "The nodes of a function in their order, without those of functions in it"
    found,todo = [],[*reversed(f.body)]
    while todo:
        found.append(n := todo.pop())
        if not isinstance(n, (ast.FunctionDef,ast.Lambda,ast.ClassDef)): todo += reversed(children(n))
    return found

# reading modules

class Module:
    "A module: what it defines, and where the names that it uses come from"
    def __init__(self, path, at):
        parts = path.relative_to(at).with_suffix('').parts
        self.is_pkg = parts[-1]=='__init__'
        self.path,self.name = path.relative_to(at),'.'.join(parts[:-1] if self.is_pkg else parts)
        src = path.read_text(encoding='utf-8')
        self.tree = ast.parse(src)
        tokens = tokenize.generate_tokens(io.StringIO(src).readline)
        self.comments = {t.start[0]:t.string.lstrip('#').strip() for t in tokens   # by line
                         if t.type==tokenize.COMMENT and not t.string.startswith('# noqa')}
        self.stmts = [*statements(self.tree.body)]
        self.imports,self.stars,self.defs,self.all = {},[],{},None   # `all` is None where `__all__` is computed
        for n in self.stmts: self.read(n)

    def absolute(self, n):
        "The module that `from … import` names"
        if not n.level: return n.module
        up = self.name.split('.')
        up = up[:len(up)-n.level+self.is_pkg]
        return '.'.join([*up, *([n.module] if n.module else [])])

    def read(self, n):
        "Take in one statement"
        if isinstance(n, ast.Import):
            for a in n.names: self.imports[a.asname or a.name.split('.')[0]] = (a.name, None if a.asname else '')
        elif isinstance(n, ast.ImportFrom):
            for a in n.names:
                if a.name=='*': self.stars.append(self.absolute(n))
                else: self.imports[a.asname or a.name] = (self.absolute(n), a.name)
        elif isinstance(n, (ast.FunctionDef,ast.ClassDef)):
            if not is_patched(n): self.defs[n.name] = n
        elif isinstance(n, (ast.Assign,ast.AnnAssign)):
            for k,v in pairs(n):
                if not isinstance(k, ast.Name): continue
                if k.id=='__all__': self.all = ast.literal_eval(v) if isinstance(v, ast.List) else None
                else: self.defs[k.id] = v

class no_module: name,defs,imports = '',{},{}

helpers = dict(Any=('typing','Any'), Self=('typing','Self'), Iterator=('collections.abc','Iterator'))
abstract = 'Callable','Iterator','Iterable','Sequence','Mapping','MutableMapping','Generator'

def origin(name, mod):
    "Where a name in `mod` comes from: a module, and the name there ('' for a module, None for a renamed one)"
    if name in mod.defs: return mod.name,name
    if name in mod.imports:
        home,attr = mod.imports[name]
        return ('collections.abc' if home=='typing' and attr in abstract else home),attr
    if name in helpers: return helpers[name]
    if hasattr(builtins, name): return 'builtins',''
    raise NameError(f'{mod.name}: no definition or import of `{name}`')

def is_class(name, mod):
    "Is `name` in a module a class of the library?"
    home,attr = (mod.name,name) if name in mod.defs else mod.imports.get(name, (None,None))
    return home in modules and isinstance(modules[home].defs.get(attr), ast.ClassDef)

def find_class(mod, name):
    "The `Class` that is called `name` in a module, through modules that only pass it on; None if there is none"
    home = (mod.name, name) if name in mod.defs else mod.imports.get(name)
    while home and home not in classes and home[0] in modules: home = modules[home[0]].imports.get(home[1])
    return classes.get(home)

# types for what has no annotation

displays = {ast.Tuple:'tuple', ast.List:'list', ast.ListComp:'list', ast.Dict:'dict', ast.DictComp:'dict',
            ast.Set:'set', ast.SetComp:'set', ast.JoinedStr:'str'}

def shown_type(v):
    "The type that an expression shows, None if it shows none"
    if isinstance(v, ast.Constant): return expr('None' if v.value is None else type(v.value).__name__)
    if isinstance(v, ast.UnaryOp): return expr('bool') if isinstance(v.op, ast.Not) else shown_type(v.operand)
    if isinstance(v, ast.Compare) and {*map(type, v.ops)} <= {ast.Is,ast.IsNot,ast.In,ast.NotIn}: return expr('bool')
    return expr(displays[type(v)]) if type(v) in displays else None

def value_type(v, params, mod):
    "The type of a value that is assigned in a module; `params` are annotations by name"
    if v is None: return expr('Any')
    if (t := shown_type(v)) is not None: return t
    if isinstance(v, ast.Name): return params.get(v.id, expr('Any'))
    if isinstance(v, ast.IfExp): return union(*(value_type(o, params, mod) for o in (v.body, v.orelse)))
    if isinstance(v, ast.Call) and isinstance(v.func, ast.Name):
        name = v.func.id
        if name=='len': return expr('int')
        if name in ('list','set','dict','tuple','float','int','str','bool','range','object'): return expr(name)
        if name in ('L','Path','AttrDict') or is_class(name, mod): return expr(name)
    return expr('Any')

def param_type(p, default):
    "The annotation of a parameter, or what its default shows"
    has = isinstance(default, ast.Constant)
    t = p.annotation
    if t is None: t = shown_type(default) if has and type(default.value) in (bool,str,float) else expr('Any')
    return union(t, default) if has and default.value is None else t

results = {**dict.fromkeys('__bool__ __contains__ __eq__ __lt__'.split(), 'bool'), '__len__':'int', '__hash__':'int',
           '__repr__':'str', '__str__':'str', '__iter__':'Iterator[Any]',
           **dict.fromkeys('__init__ __init_subclass__ __setitem__ __delitem__ __set_name__'.split(), 'None')}

def return_type(f):
    "The type that a function returns, from what its `return` and `yield` show"
    if f.name in results: return expr(results[f.name])
    own = own_nodes(f)
    if any(isinstance(n, ast.YieldFrom) for n in own): return expr('Iterator[Any]')
    if given := [n.value for n in own if isinstance(n, ast.Yield)]:
        ts = [expr('None' if v is None else 'Self' if gives_self(v) else 'Any') for v in given]
        return ast.Subscript(expr('Iterator'), union(*ts))
    given = [n.value for n in own if isinstance(n, ast.Return)]
    if all(v is None for v in given): return expr('None')
    if all(v is not None and gives_self(v) for v in given): return expr('Self')
    ts = [expr('None') if v is None else shown_type(v) for v in given]
    return expr('Any') if None in ts else union(*ts)

def gives_self(v):
    "Does an expression give the object itself, or in a class method a new one?"
    if not isinstance(v, ast.Call): return isinstance(v, ast.Name) and v.id=='self'
    f = v.func.value if isinstance(v.func, ast.Attribute) and v.func.attr.startswith('from_') else v.func
    return isinstance(f, ast.Name) and f.id=='cls'

# classes, as the whole library makes them

@dataclass
class Class:
    "A class in the making"
    node: ast.ClassDef
    mod: Module
    attrs: dict   = field(default_factory=dict)   # name -> Attr
    methods: dict = field(default_factory=dict)   # name -> list of Method, or the name of another method
    delegated: dict = field(default_factory=dict) # of Callback: the Learner's attributes, name -> Attr
    events: dict  = field(default_factory=dict)   # of Callback and Events: name -> what it is for
    @property
    def name(self): return self.node.name
    def bases(self):
        for b in self.node.bases:
            if c := find_class(self.mod, ast.unparse(b)): yield c
    def mro(self): return [self, *(c for b in self.bases() for c in b.mro())]
    def has(self, name): return any(name in c.methods or name in c.attrs for c in self.mro())

    def add_method(self, f, mod, kind=''):
        "Add a function; a setter stands beside its property, and `@overload` beside the same name"
        if f.name in ('__getattr__','__setattr__','__delattr__','__dir__'): return   # they accept every name
        before = self.methods.get(f.name, [])
        variants = [m for m in before if isinstance(m, Method) and 'overload' in decorators(m.f)]
        if variants and 'overload' not in decorators(f): return   # a stub has them, and not what implements them
        self.methods[f.name] = [*(before if is_again(f) else variants), Method(f, mod, kind)]

    def add_attr(self, name, t, mod, doc='', declared=False):
        "Add an attribute, or another type of one that is not declared"
        old = self.attrs.get(name)
        if declared or old is None: self.attrs[name] = Attr(t, mod, doc, declared)
        elif not old.declared: old.type = union(old.type, t) if old.mod is mod else expr('Any')

@dataclass
class Attr:
    type: ast.AST; mod: Module; doc: str = ''; declared: bool = False

@dataclass
class Method:
    f: ast.FunctionDef; mod: Module; kind: str = ''
    @property
    def is_property(self): return 'property' in decorators(self.f) or 'as_prop' in patch_kw(self.f)

def read_body(c):
    "What stands in the body of a class"
    for n in c.node.body:
        if isinstance(n, ast.FunctionDef): c.add_method(n, c.mod)
        elif isinstance(n, ast.AnnAssign):
            alone = sum(o.lineno==n.lineno for o in c.node.body)==1
            doc = c.mod.comments.get(n.lineno, '') if alone else ''   # else it is about something else
            c.add_attr(n.target.id, n.annotation, c.mod, doc, declared=True)
        elif isinstance(n, ast.Assign):
            for k,v in pairs(n):
                if isinstance(v, ast.Name) and v.id in c.methods: c.methods[k.id] = v.id
                elif isinstance(k, ast.Name): c.add_attr(k.id, value_type(v, {}, c.mod), c.mod)

def read_patches(mod):
    "The functions of a module that are methods of a class: by `@patch`, or because the class is given them"
    for n in mod.stmts:
        if is_patched(n):
            t = expr(a.value) if isinstance(a := n.args.args[0].annotation, ast.Constant) else a
            names = ast.unparse(t).split(' | ')
            for name in names:
                if c := find_class(mod, name): c.add_method(n, mod)
        elif isinstance(n, ast.Assign):
            for k,v in pairs(n):
                if not (isinstance(k, ast.Attribute) and isinstance(k.value, ast.Name)): continue
                if c := find_class(mod, k.value.id): read_given(c, k.attr, v, mod)

def read_given(c, name, v, mod):
    "What `Class.name = v` makes of a class"
    f = mod.defs.get(v.id) if isinstance(v, ast.Name) else None
    if isinstance(f, ast.FunctionDef):
        f = copy.copy(f)
        f.name = name
        found = [d for k in decorators(f) if (d := find_class(mod, k))]
        on_both = any('__get__' in d.methods for d in found)   # a descriptor: for the class, and for an object
        c.add_method(f, mod, 'hybrid' if on_both else 'given')
    elif isinstance(v, ast.Attribute) and ast.unparse(v.value)==c.name: c.methods.setdefault(name, v.attr)
    elif not c.has(name): c.add_attr(name, expr('Any') if v is None or is_none(v) else value_type(v, {}, mod), mod)

def read_attributes(c):
    "What the methods of a class assign to `self`"
    above = c.mro()[1:]
    for name in [n for n,a in c.attrs.items() if not a.declared and any(n in b.attrs for b in above)]: del c.attrs[name]
    def assign(name, t, mod):
        known = name in c.methods or any(name in b.methods or name in b.attrs for b in above)
        if not known: c.add_attr(name, t, mod)
    for m in [m for ms in c.methods.values() if isinstance(ms, list) for m in ms]:
        f,mod = m.f,m.mod
        if not f.args.args or 'staticmethod' in decorators(f): continue
        me,params = f.args.args[0].arg,{p.arg:param_type(p, d) for p,d in with_defaults(f, 1)}
        for n in nodes(f):
            if isinstance(n, (ast.Assign,ast.AnnAssign)):
                for k,v in pairs(n):
                    if is_attr(k, me): assign(k.attr, getattr(n, 'annotation', None) or value_type(v, params, mod), mod)
            elif isinstance(n, ast.For) and is_attr(n.target, me):
                assign(n.target.attr, expr('int' if ast.unparse(n.iter).startswith('range(') else 'Any'), mod)
            elif isinstance(n, ast.withitem) and is_attr(n.optional_vars, me):
                assign(n.optional_vars.attr, expr('Any'), mod)
            elif isinstance(n, ast.Call) and ast.unparse(n.func)=='store_attr' and f.name=='__init__':
                names = n.args[0].value.split(',') if n.args else params
                for k in map(str.strip, names): assign(k, params.get(k, expr('Any')), mod)

def expand(f, mod):
    "A function with `@delegates(g, but=…)`: in place of `**kwargs` it has the parameters of `g` with a default"
    d = decorators(f)['delegates']
    *owner,name = ast.unparse(d.args[0]).split('.')
    if owner: m = find_class(mod, owner[0]).methods[name][0]
    else:
        home,name = (mod.name,name) if name in mod.defs else mod.imports[name]
        m = Method(modules[home].defs[name], modules[home])
    g = written_out(m.f, m.mod)
    kw = {k.arg:ast.literal_eval(k.value) for k in d.keywords}
    but = kw.get('but') or ()
    f = copy.deepcopy(f)
    had = {p.arg for p in parameters(f.args)} | {*(re.split(r'[\s,]+', but) if isinstance(but, str) else but)}
    for p,v in with_defaults(g):
        if v is None or p.arg in had: continue
        p = copy.deepcopy(p)
        if not hasattr(p, 'mod'): p.mod,p.doc = m.mod,m.mod.comments.get(p.lineno)   # for its type
        f.args.kwonlyargs.append(p)
        f.args.kw_defaults.append(v)
    if not kw.get('keep'): f.args.kwarg = None
    return f

def written_out(f, mod): return expand(f, mod) if 'delegates' in decorators(f) else f

# the Learner, its callbacks, the events

# Attributes of the Learner that are None outside of a run only: handlers are called in one, and need not ask
in_run = 'iter','batches','loss','loss_grad'

def find_events():
    "Every event and what it is for: those of the table, and those that modules register or give another name"
    res,calls = {},[n for m in modules.values() for n in nodes(m.tree) if isinstance(n, ast.Call) and n.args]
    for n in calls:
        if ast.unparse(n.func)!='Events' or not isinstance(n.args[0], ast.Constant): continue
        for line in n.args[0].value.strip('\n').splitlines():
            name,_,doc = line.strip().partition(' ')
            res[name] = doc.strip()
    if not res: raise ValueError(f'no module of {lib} makes `Events("""…""")`: how are the events declared now?')
    for n in [n.value for m in modules.values() for n in m.stmts if isinstance(n, ast.Expr)]:
        what = ast.unparse(n.func) if isinstance(n, ast.Call) else ''
        if what not in ('event.register','event.alias'): continue
        name,*rest = [ast.literal_eval(a) for a in n.args]
        res.setdefault(name, f'another name of `{rest[0]}`' if what=='event.alias' else rest[0] if rest else '')
    return res

def add_state_of_runs(mods):
    "What `Run` declares is an attribute of the Learner too; what modules register is one of `Run` alone"
    owner,run = (classes[f'{lib}.loop.current_run', name] for name in ('HasRun','Run'))
    for c in run.mro():
        for name,a in c.attrs.items():
            if a.declared: owner.add_attr(name, a.type, a.mod, a.doc, declared=True)
    for mod in mods:
        for call in [n.value for n in mod.stmts if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)]:
            if ast.unparse(call.func)!='register_state': continue
            name,_,doc = [ast.literal_eval(a) for a in call.args]
            run.add_attr(name, expr('Any'), mod, doc, declared=True)

def find_callbacks():
    "The callbacks of the library by their name on a Learner, without those whose name is computed"
    for c in classes.values():
        if c.name not in (c.mod.all or ()) or not any(b.name=='Callback' for b in c.mro()[1:]): continue
        if any(getattr(n, 'name', None)=='name' for b in c.mro() if b.name!='Callback' for n in b.node.body): continue
        fixed = [v for n in c.node.body if isinstance(n, ast.Assign) for k,v in pairs(n) if ast.unparse(k)=='name']
        yield ast.literal_eval(fixed[0]) if fixed else snake(re.sub('Callback$', '', c.name)),c

def add_assigned(learner, callback):
    "The attributes of the Learner, of callbacks and of the Recorder that others assign"
    recorder = next(c for c in classes.values() if c.name=='Recorder')
    owners = {'learn':learner, 'self.learn':learner, 'cb':callback, 'learn.recorder':recorder, 'r':recorder}
    for mod in modules.values():
        assigned = [k for n in nodes(mod.tree) if isinstance(n, ast.Assign) for k,_ in pairs(n)]
        for k in [k for k in assigned if isinstance(k, ast.Attribute) and k.attr[0]!='_']:
            c = owners.get(ast.unparse(k.value))
            if c is not None and not c.has(k.attr): c.add_attr(k.attr, expr('Any'), mod)

def add_callbacks(learner, names, default):
    "The callbacks as attributes of the Learner: those that its `__init__` has among `names`, or the others"
    for name,c in find_callbacks():
        if (c.name in names)==default and not learner.has(name):
            learner.add_attr(name, expr(c.name), c.mod, f'The `{c.name}`, if it is among the callbacks')

def add_delegated(learner, callback):
    "What a callback reads of its Learner as its own. It must not be assigned: that is to be done by `self.learn`"
    args = {p.arg for p in parameters(learner.methods['__init__'][0].f.args)}
    for c in reversed(learner.mro()):
        for n,a in c.attrs.items():
            if n[0]!='_' and not callback.has(n): callback.delegated[n] = Attr(a.type, a.mod, a.doc, n in args)
    for c in learner.mro():
        for n,ms in c.methods.items():
            m = ms[0]
            if n[0]=='_' or isinstance(m, str) or not m.is_property or callback.has(n): continue
            a = Attr(m.f.returns or return_type(m.f), m.mod, ast.get_docstring(m.f) or '', n in args)
            callback.delegated.setdefault(n, a)

def complete(learner, callback, table):
    "What neither annotations nor assignments say of the three classes that find attributes in other ways"
    name = callback.methods['name'][0].f
    for c in classes.values():   # as a property no subclass could assign it
        if callback in c.mro(): c.methods.pop('name', None)
    callback.add_attr('name', expr('str'), callback.mod, ast.get_docstring(name), declared=True)
    callback.add_attr('learn', expr('Learner'), learner.mod, 'The Learner that it belongs to', declared=True)
    for a in [a for c in learner.mro() for n,a in c.attrs.items() if n in in_run]:
        a.type = expr('|'.join(n for n in ast.unparse(a.type).split(' | ') if n!='None') or 'Any')
    add_assigned(learner, callback)
    names = {n.id for n in nodes(learner.methods['__init__'][0].f) if isinstance(n, ast.Name)}
    add_callbacks(learner, names, default=True)
    add_delegated(learner, callback)
    add_callbacks(learner, names, default=False)
    table.events = find_events()
    callback.events = {k:d for k,d in table.events.items() if not callback.has(k)}

# writing

def docstring(text, indent):
    "A docstring as source"
    esc = text.replace('\\', '\\\\').replace('"""', '\\"\\"\\"')
    first,*rest = esc.splitlines()
    if not rest: return f'{indent}"""{esc}{" " if esc.endswith(chr(34)) else ""}"""'
    return f'{indent}"""{first}' + ''.join('\n' + (indent+l if l else '') for l in rest) + f'\n{indent}"""'

def signature_end(f):
    "The line on which the signature of a function ends"
    first = f.body[0].lineno
    if first==f.lineno: return first
    parts = [*ast.walk(f.args), *([f.returns] if f.returns else [])]
    last = max([f.lineno, *(p.end_lineno for p in parts if hasattr(p, 'end_lineno'))])
    return last if f.returns or last==first-1 else first-1

def docments(f, mod):
    "The comments beside the parameters of a function by name, and the one beside what it returns"
    params,last = parameters(f.args),signature_end(f)
    by_line = {p.lineno:p for p in params if not hasattr(p, 'mod')}   # the last parameter of each line
    comments = {p.arg:mod.comments[l] for l,p in by_line.items() if l in mod.comments and l<=last}
    comments.update((p.arg, p.doc) for p in params if getattr(p, 'doc', None))
    return comments,'' if last in by_line else mod.comments.get(last, '')

def said(m, given):
    "What an error says, with `…` in place of what is computed; `given` are texts by the names of parameters"
    if isinstance(m, ast.JoinedStr): return ''.join(said(p, given) for p in m.values)
    if isinstance(m, ast.FormattedValue): return said(m.value, {} if m.conversion>0 else given)
    if isinstance(m, ast.BinOp) and isinstance(m.op, ast.Add): return said(m.left, given) + said(m.right, given)
    return str(m.value) if isinstance(m, ast.Constant) else str(given.get(getattr(m, 'id', None), '…'))

def texts_given(call, f, skip):
    "The texts and numbers that a call gives to the parameters of a function"
    named = with_defaults(f, skip)
    given = {**{p.arg:d for p,d in named}, **{p.arg:v for (p,_),v in zip(named, call.args)},
             **{k.arg:k.value for k in call.keywords}}
    return {k:v.value for k,v in given.items() if isinstance(v, ast.Constant) and isinstance(v.value, (str,int,float))}

def left_to_default(call, f, skip):
    "The parameters of a function that a call does not give"
    named = [p.arg for p,_ in with_defaults(f, skip)]
    return {*named[len(call.args):]} - {k.arg for k in call.keywords}

def is_about(message, params):
    "Does what an error says begin with one of some parameters: `start_epoch must be …`, `resume=…`?"
    m = re.match(r'`?(\w+)`?(=| must\b| is\b)', message)
    return m is not None and m[1] in params

def called(call, f, mod, cls):
    "The function of a call in `f`, if its errors are those of `f`: a private one, or `check_…`; else None"
    name = source(call.func).split('.')[-1]
    if not re.match('_[a-z]|check_', name) or name==f.name: return None
    if isinstance(call.func, ast.Attribute):
        if not (cls and is_attr(call.func, 'self')): return None
        m = next((c.methods[name][0] for c in cls.mro() if name in c.methods), None)
        return m and (m.f, m.mod, cls, 1)
    home,name = (mod.name,name) if name in mod.defs else mod.imports.get(name, ('',''))
    g = modules[home].defs.get(name) if home in modules else None
    return (g, modules[home], None, 0) if isinstance(g, ast.FunctionDef) else None

def raises(f, mod, cls=None, given=None, depth=0):
    "What a function raises, itself or in what it calls to check: pairs of an exception and what that says"
    found = []
    for n in own_nodes(f):
        if isinstance(n, ast.Raise) and isinstance(n.exc, ast.Call) and source(n.exc.func)[0].isupper():
            found.append((source(n.exc.func), said(n.exc.args[0], given or {}) if n.exc.args else ''))
        elif isinstance(n, ast.Call) and not depth and (to := called(n, f, mod, cls)):
            g,home,owner,skip = to
            inner,absent = raises(g, home, owner, texts_given(n, g, skip), depth+1),left_to_default(n, g, skip)
            found += [(e,s) for e,s in inner if not is_about(s, absent)]
    telling = {e for e,s in found if s.strip('… ')}
    return [*dict.fromkeys((e,s) for e,s in found if s.strip('… ') or e not in telling)]

def comments_above(f, cls):
    "The comments beside the parameters of a method in the first base class that has any, for those of `f`"
    above = (b.methods.get(f.name) for b in cls.mro()[1:])
    found = next(filter(None, (docments(ms[0].f, ms[0].mod)[0] for ms in above if isinstance(ms, list))), {})
    return {p.arg:found[p.arg] for p in parameters(f.args) if p.arg in found and f.name!='__init__'}

def section(head, lines): return [head + ':\n' + '\n'.join('    '+l for l in lines)] if lines else []

def shortened(s):
    "What an error says, without what was given instead"
    s = re.sub(r'[, …]*, not (an? |the )?…( \((an? |type )?…\))?$', '', ' '.join(s.split()))
    s = re.sub(r'[:;] …$', '', s)   # a remedy that is computed
    return s if len(s)<=100 else s[:100].rsplit(' ', 1)[0] + ' …'

def sections(f, mod, cls=None, args='Args'):
    "What follows the docstring of a function: `Args:` from the comments beside its parameters, `Returns:`, `Raises:`"
    comments,returned = docments(f, mod)
    if cls and f.args.args and not is_static(f): comments.pop(f.args.args[0].arg, None)   # the object
    if cls and not comments and ast.get_docstring(f): comments = comments_above(f, cls)
    errors = [f'{e}: {shortened(s)}' if s.strip('… ') else e for e,s in raises(f, mod, cls)]
    meanings = [f'{n}: {c}' for n,c in comments.items()]
    return [*section(args, meanings), *section('Returns', [returned] if returned else []), *section('Raises', errors)]

def describe(f, mod, doc='', cls=None):
    "The docstring of a function, with the sections that editors show"
    text,found = ast.get_docstring(f) or doc,sections(f, mod, cls)
    if not text: return '\n\n'.join(s for s in found if not s.startswith('Raises'))   # else it hides that of a base
    return '\n\n'.join([text, *found])

def wrap_import(l):
    if len(l)<=width: return l
    start,_,names = l.partition(' import ')
    return f'{start} import (\n' + textwrap.fill(names, width, initial_indent='    ', subsequent_indent='    ') + ')'

class Names(ast.NodeTransformer):
    "An annotation of `mod` for a stub: every name imported there, every generic type with parameters"
    def __init__(self, stub, mod, result): self.stub,self.mod,self.result = stub,mod,result
    def plain(self, n):
        "A name, or an attribute of one, without parameters"
        base = n
        while isinstance(base, ast.Attribute): base = base.value
        if not isinstance(base, ast.Name): return n
        if not self.is_typed(base): base.id = self.stub.name(base.id, self.mod)
        elif self.result: self.typed(base)
        else: return expr(f'{self.typed(base)}|{self.stub.name(base.id, self.mod)}')   # what is taken may be theirs
        return n
    def is_typed(self, n): return n.id in typed and self.mod.imports.get(n.id, untyped)[0].startswith(untyped)
    def typed(self, n): self.stub.bound[n.id] = f'{lib}._fastcore',n.id; return n.id
    def visit_Constant(self, n): return self.visit(expr(n.value)) if isinstance(n.value, str) else n
    def visit_Attribute(self, n): return self.plain(n)
    def visit_Subscript(self, n):
        is_literal = ast.unparse(n.value).endswith('Literal')
        return ast.Subscript(self.plain(n.value), n.slice if is_literal else self.visit(n.slice))
    def visit_Name(self, n):
        more = generics.get(n.id) if self.mod.imports.get(n.id, ('',))[0] not in modules else None
        res = self.plain(n)
        return res if not more else expr(ast.unparse(res) + more.replace('Any', self.stub.any))

class Stub:
    "The stub of one module: what is imported in it, and what else it says"
    def __init__(self, mod):
        self.mod,self.bound,self.body = mod,{},[]
        self.shadow = set()   # names of the class that is written, which hide others
    @property
    def any(self): return self.name('Any', no_module)

    def name(self, name, mod):
        "What `name` of module `mod` is called in this stub; it is imported where that is needed"
        home = origin(name, mod)
        mine = home==(self.mod.name, home[1]) and home[1] in self.mod.defs
        if home==('builtins', ''):
            if name not in self.shadow and name not in self.mod.defs: return name
            self.bound['builtins'] = home
            return f'builtins.{name}'
        if mine and name not in self.shadow: return name
        def is_free(k): return k not in self.shadow and self.bound.get(k, home)==home and k not in self.mod.defs
        while not is_free(name): name = '_'+name
        if not mine: self.bound[name] = home
        elif f'{name} = {home[1]}' not in self.body: self.body.append(f'{name} = {home[1]}')
        return name

    def type(self, t, mod, result=False):
        "An annotation, as text; a `result` is what is given or kept, not taken"
        t = Names(self, mod, result).visit(copy.deepcopy(t))
        return ast.unparse(ast.fix_missing_locations(t)).replace(' | ', '|')

    def default(self, v, mod):
        "The default of a parameter, as text; `...` where it is long or computed"
        if isinstance(v, ast.Name): return self.name(v.id, mod)
        kinds = ast.Constant,ast.Tuple,ast.List,ast.UnaryOp,ast.unaryop,ast.Load
        simple = all(isinstance(n, kinds) for n in ast.walk(v))
        return s if simple and len(s := ast.unparse(v))<40 else '...'

    def params(self, f, mod, bare):
        "The parameters of a function, each as text; `bare` is what the first is called if it needs no type"
        a,res = f.args,[]
        def one(p, d=None, star=''):
            home = getattr(p, 'mod', mod)
            default = '' if d is None else f' = {self.default(d, home)}'
            return f'{star}{p.arg}: {self.type(param_type(p, d), home)}{default}'
        named,n_plain = with_defaults(f),len(a.posonlyargs)+len(a.args)
        for i,(p,d) in enumerate(named[:n_plain], 1):
            res.append(bare if bare and i==1 else one(p, d))
            if i==len(a.posonlyargs): res.append('/')
        if a.vararg: res.append(one(a.vararg, star='*'))
        elif a.kwonlyargs: res.append('*')
        return res + [one(p, d) for p,d in named[n_plain:]] + ([one(a.kwarg, star='**')] if a.kwarg else [])

    def decorators(self, f, mod, kind):
        "The decorators that a type checker has to know of"
        for d in decorators(f):
            if re.fullmatch(r'property|staticmethod|classmethod|contextmanager|overload|\w+\.(setter|deleter)', d):
                yield '@' + (self.name(d, mod) if d in mod.imports else d)
        kw = patch_kw(f)
        if 'as_prop' in kw: yield '@property'
        if 'set_prop' in kw: yield f'@{f.name}.setter'
        if 'cls_method' in kw or kind=='hybrid': yield '@classmethod'
        if 'static_method' in kw: yield '@staticmethod'

    def returns(self, f, mod, is_method):
        "The type of a function's result: what it says, except where it returns the object itself"
        own,said = return_type(f),f.returns and ast.unparse(f.returns)
        if ast.unparse(own) in ('Self','Iterator[Self]') and is_method: said = None
        if 'contextmanager' in decorators(f) and not re.search('Iterator|Generator', said or ''): said = None
        res = self.type(f.returns if said else own, mod, result=True)
        return res if is_method else re.sub(r'\bSelf\b', 'Any', res)

    def function(self, f, mod, indent='', kind='', doc='', cls=None):
        "The stub of a function (`kind` is 'function') or method"
        f = written_out(f, mod)
        is_method = kind!='function'
        first = f.args.args[0].arg if is_method and not is_static(f) and f.args.args else ''
        bare = dict(hybrid='cls', given='self').get(kind, first)   # a function of a module calls it otherwise
        params,ret = self.params(f, mod, bare),self.returns(f, mod, is_method)
        sig = f"def {f.name}({', '.join(params)}) -> {ret}:"
        if len(indent+sig)>width:
            sig = f'def {f.name}(\n' + ''.join(f'{indent}    {p},\n' for p in params) + f'{indent}) -> {ret}:'
        res = '\n'.join(indent+l for l in (*self.decorators(f, mod, kind), sig))
        text = describe(f, mod, doc, cls)
        return f'{res}\n{docstring(text, indent+"    ")}\n{indent}    ...' if text else f'{res} ...'

    def kept_type(self, a): return self.type(expr('Any') if is_none(a.type) else a.type, a.mod, result=True)
    def attribute(self, name, a, indent='    ', value=''):
        "The stub of an attribute or a constant"
        return f'{indent}{name}: {self.kept_type(a)}{value}' + (f'\n{docstring(a.doc, indent)}' if a.doc else '')

    def delegated(self, name, a):
        "The stub of an attribute of the Learner in a callback, which may have arguments of the Learner as its own"
        res = f'    @property\n    def {name}(self) -> {self.kept_type(a)}:'
        res += f'\n{docstring(a.doc, "        ")}\n        ...' if a.doc else ' ...'
        return res if not a.declared else f'{res}\n    @{name}.setter\n    def {name}(self, v: {self.any}) -> None: ...'

    def handler(self, name, doc):
        "The stub of the method for an event, which every signature overrides"
        sig = f'    def {name}(self, *args: {self.any}, **kwargs: {self.any}) -> {self.any}:\n'
        return sig + docstring(f'Event: {doc}' if doc else f'Event `{name}`', '        ') + '\n        ...'

    def class_head(self, c):
        "Decorators, name and bases of a class"
        for d in c.node.decorator_list:
            name = ast.unparse(d.func if isinstance(d, ast.Call) else d)
            if name not in ('dataclass','total_ordering'): continue
            given = f"({', '.join(map(ast.unparse, d.keywords))})" if isinstance(d, ast.Call) else ''
            yield f'@{self.name(name, c.mod)}{given}'
        bases = [self.type(b, c.mod, result=True) for b in c.node.bases if ast.unparse(b)!='GetAttr']
        bases += [f'{k.arg}={self.type(k.value, c.mod)}' for k in c.node.keywords]
        yield f'class {c.name}' + (f"({', '.join(bases)})" if bases else '') + ':'

    def fields(self, c, lines):
        "The attributes of a class; of an enum with their values, of a dataclass with `...` for a default"
        is_enum,is_data = 'Enum' in lines[-1],'NamedTuple' in lines[-1] or any('dataclass' in l for l in lines)
        assigned = [n for n in c.node.body if isinstance(n, (ast.Assign,ast.AnnAssign))]
        values = {ast.unparse(k):v for n in assigned for k,v in pairs(n)}
        for name,a in c.attrs.items():
            v = values.get(name)
            if name in c.methods or name=='_default' or name.startswith('__'): continue
            elif is_enum and v is not None: yield f'    {name} = {self.default(v, c.mod)}'
            else: yield self.attribute(name, a, value=' = ...' if is_data and v is not None else '')

    def method(self, c, name, ms, doc):
        "The stubs of a method, or of a property and its setter"
        if isinstance(ms, str): return [f'    {name} = {ms}'] if ms in c.methods else []
        # Editors show the docstring of `__init__` or that of the class: the former begins with the latter
        def class_doc(m): return doc if m.f.name=='__init__' and docments(m.f, m.mod)[0] else ''
        return [self.function(m.f, m.mod, '    ', m.kind, class_doc(m), c) for m in ms]

    def klass(self, c):
        "The stub of a class"
        lines,doc = [*self.class_head(c)],ast.get_docstring(c.node) or ''
        self.shadow = {*c.methods, *c.attrs, *c.delegated, *c.events}
        body = [docstring(doc, '    ')] if doc else []
        if c.name=='Events': body += [self.attribute(k, Attr(expr('str'), no_module, d)) for k,d in c.events.items()]
        body += [*self.fields(c, lines), *(self.delegated(n, a) for n,a in c.delegated.items())]
        for name,ms in c.methods.items(): body += self.method(c, name, ms, doc)
        if c.name=='Callback': body += [self.handler(k, d) for k,d in c.events.items()]
        self.shadow = set()
        return '\n'.join([*lines, *body]) if body else '\n'.join(lines) + ' ...'

    def constant(self, n, k, v):
        "The stub of a name that a module assigns"
        what = ast.unparse(v.func) if isinstance(v, ast.Call) else ''
        if isinstance(n, ast.AnnAssign): return self.attribute(k, Attr(n.annotation, self.mod), '')
        of = self.mod.defs.get(v.id) if isinstance(v, ast.Name) else None
        if isinstance(of, (ast.ClassDef,ast.FunctionDef)): return f'{k} = {v.id}'
        if what in ('namedtuple','TypeVar','NewType'): self.name(what, self.mod); return f'{k} = {ast.unparse(v)}'
        return self.attribute(k, Attr(value_type(v, {}, self.mod), self.mod), '')

    def passed_on(self):
        "The imports of a module that gives what others have: `from x import a as a` says so"
        given = set()
        for m in self.mod.stars:
            if m not in modules: yield f'from {m} import *'; continue
            new = sorted({*(modules[m].all or ())} - given)
            given.update(new)
            if new: yield f'from {self.relative(m)} import ' + ', '.join(f'{n} as {n}' for n in new)
        for n,(m,a) in self.mod.imports.items():
            if n[0]=='_' or n in given: continue
            start = f'from {self.relative(m)} import {a}' if a else f'import {m}'
            if a in ('', n): yield f'{start} as {n}'
            else: yield f'{start} as _{n}'; yield f'{n} = _{n}'

    def exports(self):
        "`__all__`, or what is given besides"
        mod = self.mod
        if mod.stars or mod.all is None: return [*map(wrap_import, self.passed_on())]
        for n in mod.all:
            if n not in mod.defs: self.name(n, mod)
        if not mod.all: return []
        return [textwrap.fill(f"__all__ = [{', '.join(map(repr, mod.all))}]", width, subsequent_indent=' '*11)]

    def definitions(self):
        "The classes, functions and constants of the module"
        seen = {'__all__','_all_'}
        for n in self.mod.stmts:
            if isinstance(n, ast.ClassDef): yield self.klass(classes[self.mod.name, n.name])
            elif isinstance(n, ast.FunctionDef) and not is_patched(n): yield self.function(n, self.mod, kind='function')
            elif isinstance(n, (ast.Assign,ast.AnnAssign)):
                for k,v in [(k.id,v) for k,v in pairs(n) if isinstance(k, ast.Name) and k.id not in seen]:
                    seen.add(k)
                    yield self.constant(n, k, v)

    def relative(self, m):
        "A module as this one imports it"
        if m.split('.')[0]!=lib: return m
        here,there,k = self.mod.name.split('.')[:None if self.mod.is_pkg else -1],m.split('.'),0
        while k<min(len(here), len(there)) and here[k]==there[k]: k += 1
        return '.'*(len(here)-k+1) + '.'.join(there[k:])

    def import_lines(self):
        names,plain = {},[]
        for n,(m,a) in self.bound.items():
            if a: names.setdefault(m, []).append(a if a==n else f'{a} as {n}')
            else: plain.append(f'import {m}' if a=='' else f'import {m} as {n}')
        froms = [f"from {self.relative(m)} import {', '.join(sorted(ns))}" for m,ns in sorted(names.items())]
        return sorted(plain) + [*map(wrap_import, froms)]

    def text(self):
        "The whole stub"
        doc = ast.get_docstring(self.mod.tree)
        parts = [*self.exports(), *self.definitions()]   # these find what is to be imported
        start = [docstring(doc, '')] if doc else []
        return head + '\n'.join([*start, *self.import_lines(), '', *parts, *self.body]).rstrip() + '\n'

# all together

def read(at=root):
    "Read the library under `at`: its modules and classes by name, with all that becomes of them"
    global modules,classes
    for f in nodes,own_nodes: f.cache_clear()
    found = [Module(p, at) for p in sorted((at/lib).rglob('*.py')) if p.name!='_modidx.py']
    modules = {m.name:m for m in found}
    classes = {(m.name, n.name):Class(n, m) for m in found for n in m.stmts if isinstance(n, ast.ClassDef)}
    for c in classes.values(): read_body(c)
    for m in found: read_patches(m)
    add_state_of_runs(found)
    for c in sorted(classes.values(), key=lambda c: len(c.mro())): read_attributes(c)   # base classes first
    own = ('learner.learner','Learner'),('loop.callback','Callback'),('loop.events','Events')
    complete(*(classes[f'{lib}.{m}',k] for m,k in own))
    return modules,classes

def constructor(c):
    "The `__init__` of a class or of its bases, as a `Method`; None if the library has none"
    return next((b.methods['__init__'][0] for b in c.mro() if '__init__' in b.methods), None)

def completed(mod):
    "What completes the docstrings of the public functions, classes and methods that a module defines: texts by name"
    found = {}
    for k in mod.all or ():
        f,c = mod.defs.get(k),classes.get((mod.name, k))
        if isinstance(f, ast.FunctionDef): found[k] = sections(written_out(f, mod), mod)
        if not c: continue
        init = constructor(c)
        has_fields = 'dataclass' in decorators(c.node) or 'NamedTuple' in map(source, c.node.bases)
        declared = [(n, a) for b in reversed(c.mro()) for n,a in b.attrs.items() if a.declared and a.doc]
        fields = [f'{n}: {a.doc}' for n,a in declared if has_fields]
        args = f'Args of {k}'   # a class without a docstring shows that of its base, whose parameters it may not have
        found[k] = sections(written_out(init.f, init.mod), init.mod, c, args) if init else section(args, fields)
        for n,ms in c.methods.items():
            if (n[0]!='_' or n=='__call__') and not isinstance(ms, str):
                found[f'{k}.{n}'] = sections(written_out(ms[0].f, ms[0].mod), ms[0].mod, c)
    return {k:'\n\n'.join(ss) for k,ss in found.items() if ss}

def build(at=root):
    "The stubs of the library under `at`, and what completes its docstrings when it runs: texts by path"
    read(at)
    docs = json.dumps({m.name:d for m in modules.values() if (d := completed(m))}, ensure_ascii=False, indent=0)
    fastcore = head + '"""The classes of fastcore and scikit-learn that the library gives, with types"""' + typed_stub
    stubs = {m.path.with_suffix('.pyi'):Stub(m).text() for m in modules.values()}
    return {**stubs, Path(lib)/'_fastcore.pyi':fastcore, Path(lib)/'py.typed':'', Path(lib)/'_docs.json':docs+'\n'}

def write(to=root, at=root):
    "Write the stubs under `to`; those of modules that are gone go too"
    files = build(at)
    for p in (to/lib).rglob('*.pyi'):
        if p.relative_to(to) not in files: p.unlink()
    for p,text in files.items():
        (to/p).parent.mkdir(parents=True, exist_ok=True)
        if not (to/p).is_file() or (to/p).read_text(encoding='utf-8')!=text: (to/p).write_text(text, encoding='utf-8')

if __name__=='__main__': write(Path(sys.argv[1]).resolve() if len(sys.argv)>1 else root)
