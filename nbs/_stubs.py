"""Writes the stubs: a `.pyi` beside each module of the library, and `py.typed`, which tell editors and type checkers what
they cannot see in the modules themselves.

    python nbs/_stubs.py             write them into learnkit/
    python nbs/_stubs.py FOLDER      write them into another folder, to compare

`@patch` adds a method to a class that may stand in another module, and a Learner or a callback finds some attributes by
`__getattr__`: to a type checker neither exists. In the stubs

- a patched function is a method of its class, with its signature, its docstring and the comments beside its parameters;
- no class has a `__getattr__` that accepts every name, so a typo is an error;
- `Callback` has the Learner's attributes, which it reads as its own, and a method for each event;
- `Learner` has an attribute for each callback of the library: `learn.recorder`, `learn.early_stopping`;
- `Events` has an attribute for each event;
- `from learnkit import …` and `from learnkit.all import *` name all that they give;
- what has no type is `Any` or what its value shows, so that strict type checking finds nothing unknown.

The modules are only read, never imported. `make lib` runs this.
"""
import ast, builtins, copy, io, re, sys, textwrap, tokenize
from dataclasses import dataclass, field
from pathlib import Path

root = Path(__file__).resolve().parent.parent
lib  = 'learnkit'
head = '# Made by nbs/_stubs.py from the modules: `make lib` writes it again.\n'
width = 120

# Parameters of generic types that are used without any
generics = {**dict.fromkeys('list set frozenset deque type Iterable Iterator Sequence Collection partial DataLoader Dataset '
                            'IterableDataset Sampler WeakSet AbstractContextManager'.split(), '[Any]'),
            **dict.fromkeys('dict Mapping MutableMapping defaultdict OrderedDict'.split(), '[Any, Any]'),
            'tuple':'[Any, ...]', 'Callable':'[..., Any]', 'Generator':'[Any, Any, Any]'}

# fastcore has no types: these stand for its classes in what is returned and kept
typed = dict(L='L', AttrDict='AttrDict')
typed_stub = '''
from collections.abc import Iterator
from typing import Any, Self

import fastcore.foundation

class L(fastcore.foundation.L):
    """fastcore's `L`, a list that can be indexed with a list or a mask"""
    items: list[Any]
    def __init__(self, items: Any = None, *rest: Any, use_list: bool = False, match: Any = None) -> None: ...
    def __getitem__(self, idx: Any) -> Any: ...
    def __setitem__(self, idx: Any, o: Any) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __contains__(self, b: Any) -> bool: ...
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
'''

def expr(s): return ast.parse(s, mode='eval').body
def snake(s): return re.sub('([a-z0-9])([A-Z])', r'\1_\2', re.sub('(.)([A-Z][a-z]+)', r'\1_\2', s)).lower()
def union(*ts):
    "The union of some annotations, without what is there twice"
    parts = []
    for t in ts:
        while isinstance(t, ast.BinOp): parts.append(t.right); t = t.left
        parts.append(t)
    names = list(dict.fromkeys(map(ast.unparse, reversed(parts))))
    if 'Any' in names: return expr('Any')
    if 'float' in names and 'int' in names: names.remove('int')
    return expr('|'.join(sorted(names, key='None'.__eq__)))

# -- reading modules

class Module:
    "A module: what it defines, and where the names that it uses come from"
    def __init__(self, path, at):
        parts = path.relative_to(at).with_suffix('').parts
        self.is_pkg = parts[-1]=='__init__'
        self.path,self.name = path.relative_to(at),'.'.join(parts[:-1] if self.is_pkg else parts)
        src = path.read_text(encoding='utf-8')
        self.tree,self.lines = ast.parse(src),src.splitlines()
        self.comments = {t.start[0]:t.string.lstrip('#').strip() for t in tokenize.generate_tokens(io.StringIO(src).readline)
                         if t.type==tokenize.COMMENT and not t.string.startswith('# noqa')}
        self.stmts = [*statements(self.tree.body)]
        self.imports,self.stars,self.defs,self.all = {},[],{},None
        for n in self.stmts: self.read(n)

    def absolute(self, n):
        "The module that `from … import` names"
        if not n.level: return n.module
        up = self.name.split('.')[:len(self.name.split('.'))-n.level+self.is_pkg]
        return '.'.join([*up, *([n.module] if n.module else [])])

    def read(self, n):
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
                if k.id=='__all__':
                    if isinstance(v, ast.List): self.all = ast.literal_eval(v)
                    elif self.all is not None: self.all = None   # it is computed, after nbdev's own
                else: self.defs[k.id] = v

def statements(body):
    "The statements of a module, those in `if` and `try` too"
    for n in body:
        yield n
        for k in ('body','orelse','handlers','finalbody'):
            if isinstance(n, (ast.If,ast.Try,ast.ExceptHandler)): yield from statements(getattr(n, k, ()))

def pairs(n):
    "Targets and values of an assignment, one by one; a value is None where it is not known"
    if isinstance(n, (ast.AnnAssign,ast.AugAssign)): return [(n.target, n.value)]
    def split(t, v):
        if not isinstance(t, (ast.Tuple,ast.List)): return [(t, v)]
        vs = v.elts if isinstance(v, (ast.Tuple,ast.List)) and len(v.elts)==len(t.elts) and not any(isinstance(o, ast.Starred) for o in v.elts) else [None]*len(t.elts)
        return [p for o,w in zip(t.elts, vs) for p in split(o, w)]
    return [p for t in n.targets for p in split(t, n.value)]

def decorators(f): return {ast.unparse(d.func if isinstance(d, ast.Call) else d):d for d in f.decorator_list}
def is_patched(f): return isinstance(f, ast.FunctionDef) and 'patch' in decorators(f)
def patch_kw(f):
    d = decorators(f)['patch']
    return {k.arg for k in d.keywords if ast.literal_eval(k.value)} if isinstance(d, ast.Call) else set()
def own_nodes(f):
    "The nodes of a function, without those of functions in it"
    todo = [*f.body]
    while todo:
        n = todo.pop(0)
        yield n
        if not isinstance(n, (ast.FunctionDef,ast.Lambda,ast.ClassDef)): todo = [*ast.iter_child_nodes(n), *todo]

# -- what has no annotation

def constant_type(v):
    "The type that a value shows, None if it shows none"
    if isinstance(v, ast.Constant): return expr('None' if v.value is None else type(v.value).__name__)
    if isinstance(v, ast.UnaryOp): return expr('bool') if isinstance(v.op, ast.Not) else constant_type(v.operand)
    if isinstance(v, ast.JoinedStr): return expr('str')
    if isinstance(v, ast.Compare) and all(isinstance(o, (ast.Is,ast.IsNot,ast.In,ast.NotIn)) for o in v.ops): return expr('bool')
    for kind,t in ((ast.Tuple,'tuple'), (ast.List,'list'), (ast.ListComp,'list'), (ast.Dict,'dict'), (ast.DictComp,'dict'), (ast.Set,'set'), (ast.SetComp,'set')):
        if isinstance(v, kind): return expr(t)

def value_type(v, params, mod):
    "The type of a value that is assigned in a module; `params` are annotations by name"
    if v is None: return expr('Any')
    if (t := constant_type(v)) is not None: return t
    if isinstance(v, ast.Name): return params.get(v.id, expr('Any'))
    if isinstance(v, ast.IfExp): return union(*(value_type(o, params, mod) for o in (v.body, v.orelse)))
    if isinstance(v, ast.Call) and isinstance(v.func, ast.Name):
        name = v.func.id
        if name in ('list','set','dict','tuple','float','int','str','bool','len','range','object'): return expr('int' if name=='len' else name)
        if name[:1].isupper() and (isinstance(mod.defs.get(name), ast.ClassDef) or name in ('L','Path','AttrDict') or is_class(mod, name)): return expr(name)
    return expr('Any')

def is_class(mod, name):
    home,attr = mod.imports.get(name, (None,None))
    return home in modules and isinstance(modules[home].defs.get(attr), ast.ClassDef)

def return_type(f):
    "The type that a function returns, from what its `return`s show"
    fixed = dict(__repr__='str', __str__='str', __len__='int', __bool__='bool', __contains__='bool', __eq__='bool', __lt__='bool', __hash__='int',
                 __init__='None', __init_subclass__='None', __setattr__='None', __setitem__='None', __delitem__='None', __set_name__='None')
    if f.name in fixed: return expr(fixed[f.name])
    nodes = [*own_nodes(f)]
    yields  = [n.value for n in nodes if isinstance(n, ast.Yield)]
    returns = [n.value for n in nodes if isinstance(n, ast.Return)]
    if any(isinstance(n, ast.YieldFrom) for n in nodes): return expr('Iterator[Any]')
    if yields: return ast.Subscript(expr('Iterator'), union(*(expr('None') if y is None else expr('Self') if is_self(y) else expr('Any') for y in yields)))
    if f.name=='__iter__': return expr('Iterator[Any]')
    if not any(v is not None for v in returns): return expr('None')
    if all(v is not None and is_self(v) for v in returns): return expr('Self')
    ts = [constant_type(v) if v is not None else expr('None') for v in returns]
    return union(*ts) if all(t is not None for t in ts) else expr('Any')

def is_self(v):
    "Does an expression give the object itself, or in a class method a new one?"
    if isinstance(v, ast.Call): v = v.func.value if isinstance(v.func, ast.Attribute) and v.func.attr.startswith('from_') else v.func
    else: return isinstance(v, ast.Name) and v.id=='self'
    return isinstance(v, ast.Name) and v.id=='cls'

# -- writing stubs

@dataclass
class Class:
    "A class in the making: its members by name, in order, each a list of texts"
    node: ast.ClassDef
    mod: Module
    members: dict = field(default_factory=dict)   # name -> text
    attrs: dict   = field(default_factory=dict)   # name -> (annotation, Module it was read in, docs)
    methods: dict = field(default_factory=dict)   # name -> (list of (FunctionDef, Module, kind))
    def bases(self):
        for b in self.node.bases:
            home = self.mod.imports.get(ast.unparse(b), (self.mod.name, ast.unparse(b)))
            if home in classes: yield classes[home]
    def mro(self): return [self, *(c for b in self.bases() for c in b.mro())]
    def has(self, name): return any(name in c.methods or name in c.attrs for c in self.mro())

def canonical(home, name):
    "Where a name comes from: what both `typing` and `collections.abc` have is the latter's"
    return ('collections.abc' if home=='typing' and name in ('Callable','Iterator','Iterable','Sequence','Mapping','MutableMapping','Generator') else home, name)

class Stub:
    "The stub of one module"
    def __init__(self, mod): self.mod,self.bound,self.shadow,self.body = mod,{},set(),[]

    def name(self, name, mod):
        "What `name` of module `mod` is called in this stub; it is imported where that is needed"
        if name in mod.defs: origin = (mod.name, name)
        elif name in mod.imports: origin = canonical(*mod.imports[name])
        elif name in helpers: origin = helpers[name]
        elif hasattr(builtins, name): origin = ('builtins', '')
        else: raise NameError(f'{mod.name}: no definition or import of `{name}`')
        if origin==('builtins', ''):
            if name not in self.shadow and name not in self.mod.defs: return name
            self.bound['builtins'] = origin
            return f'builtins.{name}'
        if origin[0]==self.mod.name and origin[1] in self.mod.defs and name not in self.shadow: return name
        while name in self.shadow or self.bound.get(name, origin)!=origin or (name in self.mod.defs and origin!=(self.mod.name, name)): name = '_'+name
        if origin==(self.mod.name, origin[1]) and name!=origin[1]: self.body.insert(0, f'{name} = {origin[1]}'); return name
        self.bound[name] = origin
        return name

    def type(self, t, mod, result=False):
        "An annotation, as text; a `result` is what is given, not taken"
        stub = self
        class Names(ast.NodeTransformer):
            def visit_Constant(self, n): return self.visit(expr(n.value)) if isinstance(n.value, str) else n
            def visit_Subscript(self, n):
                if ast.unparse(n.value).endswith('Literal'): return ast.Subscript(self.plain(n.value), n.slice)
                return ast.Subscript(self.plain(n.value), self.visit(n.slice))
            def plain(self, n):
                n = copy.deepcopy(n)
                base = n
                while isinstance(base, ast.Attribute): base = base.value
                if isinstance(base, ast.Name):
                    if result and base.id in typed and (mod.imports.get(base.id, ('fastcore',))[0] or '').startswith('fastcore'):
                        stub.bound[base.id] = (f'{lib}._fastcore', base.id)
                        return n
                    base.id = stub.name(base.id, mod)
                return n
            def visit_Name(self, n):
                more = generics.get(n.id) if mod.imports.get(n.id, ('typing',))[0] not in modules else None
                res = self.plain(n)
                if not more: return res
                return expr(ast.unparse(res) + more.replace('Any', stub.name('Any', no_module)))
            visit_Attribute = visit_Name_ = lambda self, n: self.plain(n)
            def visit_List(self, n): return ast.List([self.visit(o) for o in n.elts])
        return ast.unparse(ast.fix_missing_locations(Names().visit(copy.deepcopy(t)))).replace(' | ', '|')

    def default(self, v, mod):
        "The default of a parameter, as text, `...` where it is long or computed"
        if all(isinstance(n, (ast.Constant,ast.Tuple,ast.List,ast.UnaryOp,ast.unaryop,ast.Load)) for n in ast.walk(v)):
            s = ast.unparse(v)
            return s if len(s)<40 else '...'
        if isinstance(v, ast.Name): return self.name(v.id, mod)
        return '...'

    def params(self, f, mod, skip_type):
        "The parameters of a function, each as text"
        a,res = f.args,[]
        plain = [*a.posonlyargs, *a.args]
        defaults = [None]*(len(plain)-len(a.defaults)) + a.defaults
        def one(p, d=None, star='', bare=False, mod=mod):
            if bare: return p.arg
            mod = getattr(p, 'mod', mod)
            t = p.annotation
            if t is None: t = expr('Any') if d is None or not (isinstance(d, ast.Constant) and type(d.value) in (bool,str,float)) else constant_type(d)
            if isinstance(d, ast.Constant) and d.value is None: t = union(t, d)
            return f'{star}{p.arg}: {self.type(t, mod)}' + ('' if d is None else f' = {self.default(d, mod)}')
        for i,(p,d) in enumerate(zip(plain, defaults)):
            res.append(one(p, d, bare=skip_type and i==0))
            if a.posonlyargs and i==len(a.posonlyargs)-1: res.append('/')
        if a.vararg: res.append(one(a.vararg, star='*'))
        elif a.kwonlyargs: res.append('*')
        res += [one(p, d) for p,d in zip(a.kwonlyargs, a.kw_defaults)]
        if a.kwarg: res.append(one(a.kwarg, star='**'))
        return res

    def function(self, f, mod, indent='', kind='', doc=None, name=None):
        "The stub of a function or method"
        names,lines = decorators(f),[]
        method = kind!='function'
        if 'delegates' in names: f = delegated(f, mod)
        for d in names:
            if d in ('property','staticmethod','classmethod','contextmanager','total_ordering','overload') or re.search(r'\.(setter|deleter)$', d):
                lines.append('@' + (d if d not in mod.imports else self.name(d, mod)))
        kw = patch_kw(f) if is_patched(f) else set()
        if 'as_prop' in kw: lines.append('@property')
        if 'set_prop' in kw: lines.append(f'@{f.name}.setter')
        if 'cls_method' in kw or kind=='either': lines.append('@classmethod')
        if 'static_method' in kw: lines.append('@staticmethod')
        params = self.params(f, mod, method and not ({'static_method'} & kw or 'staticmethod' in names))
        own,given = return_type(f),f.returns
        if ast.unparse(own) in ('Self','Iterator[Self]') and method: given = None
        if given is not None and 'contextmanager' in names and 'Iterator' not in ast.unparse(given) and 'Generator' not in ast.unparse(given): given = None
        ret = self.type(own if given is None else given, mod, result=True)
        if not method: ret = ret.replace('Self', self.name('Any', no_module))
        sig = f"def {name or f.name}({', '.join(params)}) -> {ret}:"
        if len(indent+sig)>width: sig = f"def {name or f.name}(\n" + ''.join(f'{indent}    {p},\n' for p in params) + f"{indent}) -> {ret}:"
        lines.append(sig)
        text = describe(f, mod, doc)
        res = '\n'.join(indent+l for l in lines)
        return f'{res} ...' if not text else f'{res}\n{docstring(text, indent+"    ")}\n{indent}    ...'

    def attribute(self, name, t, mod, doc='', indent='    ', value=''):
        return f'{indent}{name}: {self.type(t, mod, result=True)}{value}' + (f'\n{docstring(doc, indent)}' if doc else '')

    def import_lines(self):
        by,plain = {},[]
        for n,(m,a) in self.bound.items():
            if a=='' or a is None: plain.append(f'import {m}' if a=='' else f'import {m} as {n}')
            else: by.setdefault(m, set()).add(a if a==n else f'{a} as {n}')
        lines = sorted(plain) + [f"from {self.relative(m)} import {', '.join(sorted(ns))}" for m,ns in sorted(by.items())]
        return [*map(wrap_import, lines)]

    def relative(self, m):
        if m.split('.')[0]!=lib: return m
        here = self.mod.name.split('.') if self.mod.is_pkg else self.mod.name.split('.')[:-1]
        there = m.split('.')
        k = 0
        while k<min(len(here), len(there)) and here[k]==there[k]: k += 1
        return '.'*(len(here)-k+1) + '.'.join(there[k:])

def wrap_import(l):
    if len(l)<=width: return l
    head,_,names = l.partition(' import ')
    return f'{head} import (\n' + textwrap.fill(names, width, initial_indent='    ', subsequent_indent='    ') + ')'

def docstring(text, indent):
    "A docstring as source"
    esc = text.replace('\\', '\\\\').replace('"""', '\\"\\"\\"')
    lines = esc.splitlines()
    if len(lines)==1: return f'{indent}"""{esc}{" " if esc.endswith(chr(34)) else ""}"""'
    return f'{indent}"""' + lines[0] + ''.join('\n'+(indent+l if l else '') for l in lines[1:]) + f'\n{indent}"""'

def describe(f, mod, doc=None):
    "The docstring of a function, with the comments beside its parameters"
    text,notes,comments = ast.get_docstring(f) or doc or '',[],{}
    a = f.args
    every = [*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs, *([a.kwarg] if a.kwarg else [])]
    ends = {}
    for p in every:
        if not hasattr(p, 'mod'): ends[p.lineno] = p   # the last parameter of a line
    for line,p in ends.items():
        if (c := mod.comments.get(line)) and line<=signature_end(f): comments[p.arg] = c
    comments.update((p.arg, p.doc) for p in every if getattr(p, 'doc', None))
    notes = [f'    {n}: {c}' for n,c in comments.items()]
    last = signature_end(f)
    returns = mod.comments.get(last) if last not in ends else None
    if notes: text = (text+'\n\n' if text else '') + 'Args:\n' + '\n'.join(notes)
    if returns: text = (text+'\n\n' if text else '') + f'Returns:\n    {returns}'
    return text

def signature_end(f):
    "The line on which the signature of a function ends"
    first = f.body[0]
    if first.lineno==f.lineno: return f.lineno
    last = max([f.lineno, *(p.end_lineno for p in ast.walk(f.args) if hasattr(p, 'end_lineno')), *([f.returns.end_lineno] if f.returns else [])])
    return last if f.returns or last==first.lineno-1 else first.lineno-1

def delegated(f, mod):
    "A function with fastcore's `@delegates(g, but=…)`: in place of `**kwargs` the parameters of `g` that have a default"
    d = decorators(f)['delegates']
    *owner,name = ast.unparse(d.args[0]).split('.')
    g,home,_ = find_class(mod, owner[0]).methods[name][0] if owner else find_function(mod, name)
    if 'delegates' in decorators(g): g = delegated(g, home)
    but = {n.strip() for k in d.keywords if k.arg=='but' for o in (k.value.elts if isinstance(k.value, (ast.List,ast.Tuple)) else [k.value])
           for n in o.value.split(',')}
    f = copy.deepcopy(f)
    a,b = f.args,g.args
    plain,had = [*b.posonlyargs, *b.args],{p.arg for p in [*a.posonlyargs, *a.args, *a.kwonlyargs]} | but
    for p,v in [*zip(plain[len(plain)-len(b.defaults):], b.defaults), *zip(b.kwonlyargs, b.kw_defaults)]:
        if v is None or p.arg in had: continue
        p = copy.deepcopy(p)
        if not hasattr(p, 'mod'): p.mod,p.doc = home,home.comments.get(p.lineno)
        a.kwonlyargs.append(p); a.kw_defaults.append(v)
    if not any(k.arg=='keep' and ast.literal_eval(k.value) for k in d.keywords): a.kwarg = None
    return f

def find_function(mod, name):
    "A function of the library: itself, its module, what kind it is"
    home,name = (mod.name, name) if name in mod.defs else mod.imports[name]
    return modules[home].defs[name],modules[home],'function'

# -- classes, as the whole library makes them

def collect_class(c):
    "What stands in the body of a class"
    for n in c.node.body:
        if isinstance(n, ast.FunctionDef): add_method(c, n, c.mod)
        elif isinstance(n, ast.AnnAssign): add_attr(c, n.target.id, n.annotation, c.mod, c.mod.comments.get(n.lineno, '') if alone(n, c.node) else '', declared=True)
        elif isinstance(n, ast.Assign):
            for k,v in pairs(n):
                if not isinstance(k, ast.Name): continue
                if isinstance(v, ast.Name) and v.id in c.methods: c.methods[k.id] = [v.id]
                else: add_attr(c, k.id, value_type(v, {}, c.mod), c.mod)

def alone(n, node): return sum(o.lineno==n.lineno for o in node.body)==1

def add_attr(c, name, t, mod, doc='', declared=False):
    if declared or name not in c.attrs: c.attrs[name] = [t, mod, doc, declared]
    elif not c.attrs[name][3]: 
        old = c.attrs[name]
        old[0] = union(old[0], t) if old[1] is mod else expr('Any')

def add_method(c, f, mod, kind=''):
    if f.name in ('__getattr__','__setattr__','__delattr__','__dir__'): return   # they accept every name
    again = any(re.search(r'\.(setter|deleter)$', d) for d in decorators(f)) or (is_patched(f) and 'set_prop' in patch_kw(f))
    c.methods.setdefault(f.name, [])
    c.methods[f.name] = c.methods[f.name] + [(f, mod, kind)] if again else [(f, mod, kind)]

def collect_attributes(c):
    "What the methods of a class assign to `self`"
    for f,mod,_ in [m for ms in c.methods.values() for m in ms if isinstance(m, tuple)]:
        if not f.args.args or 'staticmethod' in decorators(f): continue
        me,params = f.args.args[0].arg,param_types(f)
        for n in ast.walk(f):
            if isinstance(n, (ast.Assign,ast.AnnAssign,ast.AugAssign)):
                for k,v in pairs(n):
                    if is_attr(k, me): assign(c, k.attr, n.annotation if isinstance(n, ast.AnnAssign) else value_type(v, params, mod) , mod, n)
            elif isinstance(n, ast.For) and is_attr(n.target, me):
                assign(c, n.target.attr, expr('int') if ast.unparse(n.iter).startswith('range(') else expr('Any'), mod, n)
            elif isinstance(n, ast.withitem) and n.optional_vars is not None and is_attr(n.optional_vars, me): assign(c, n.optional_vars.attr, expr('Any'), mod, n)
            elif isinstance(n, ast.Call) and ast.unparse(n.func)=='store_attr' and f.name=='__init__':
                names = n.args[0].value.split(',') if n.args else [p for p in params]
                for k in names: assign(c, k.strip(), params.get(k.strip(), expr('Any')), mod, n)

def is_attr(k, me): return isinstance(k, ast.Attribute) and isinstance(k.value, ast.Name) and k.value.id==me
def assign(c, name, t, mod, n):
    if isinstance(n, ast.AugAssign): return
    if any(name in o.methods for o in c.mro()) and not any(name in o.attrs for o in c.mro()): return
    if any(name in b.attrs for b in c.mro()[1:]): return   # a base class has declared it
    add_attr(c, name, t, mod)

def param_types(f):
    a,res = f.args,{}
    plain = [*a.posonlyargs, *a.args]
    for p,d in [*zip(plain, [None]*(len(plain)-len(a.defaults)) + a.defaults), *zip(a.kwonlyargs, a.kw_defaults)][1:]:
        t = p.annotation
        if t is None: t = constant_type(d) if isinstance(d, ast.Constant) and type(d.value) in (bool,str,float) else expr('Any')
        res[p.arg] = union(t, d) if isinstance(d, ast.Constant) and d.value is None else t
    return res

def find_class(mod, name):
    home = (mod.name, name) if name in mod.defs else mod.imports.get(name)
    while home and home not in classes and home[0] in modules and home[1] in modules[home[0]].imports: home = modules[home[0]].imports[home[1]]
    return classes.get(home)

def patches(mod):
    "Functions that are methods of a class: by `@patch`, or by assignment to it"
    for n in mod.stmts:
        if is_patched(n):
            t = n.args.args[0].annotation
            while isinstance(t, ast.BinOp): yield find_class(mod, ast.unparse(t.right)),n,''; t = t.left
            name = ast.literal_eval(t) if isinstance(t, ast.Constant) else ast.unparse(t)
            yield find_class(mod, name),n,''
        elif isinstance(n, ast.Assign):
            for k,v in pairs(n):
                if not (isinstance(k, ast.Attribute) and isinstance(k.value, ast.Name) and (c := find_class(mod, k.value.id))): continue
                f = mod.defs.get(ast.unparse(v)) if v is not None else None
                if isinstance(f, ast.FunctionDef):
                    f = copy.copy(f); f.name = k.attr
                    yield c,f,'either' if 'either' in decorators(f) else ''
                elif isinstance(v, ast.Attribute) and ast.unparse(v.value)==c.node.name: c.methods.setdefault(k.attr, [v.attr])
                elif not c.has(k.attr): add_attr(c, k.attr, expr('Any') if isinstance(v, ast.Constant) and v.value is None else value_type(v, {}, mod), mod)

# -- the Learner, its callbacks, the events

def events():
    "Every event and what it is for: those of the table, and those that modules register or give another name"
    res = {}
    for mod in modules.values():
        for n in ast.walk(mod.tree):
            if isinstance(n, ast.Call) and ast.unparse(n.func)=='Events' and n.args and isinstance(n.args[0], ast.Constant):
                for line in n.args[0].value.strip('\n').splitlines():
                    name,_,doc = line.strip().partition(' ')
                    res[name] = doc.strip()
    if not res: raise ValueError(f'no module of {lib} makes `Events("""…""")`: how are the events declared now?')
    for mod in modules.values():
        for n in mod.stmts:
            if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call) and ast.unparse(n.value.func) in ('event.register','event.alias'):
                f,(name,*rest) = n.value.func.attr,[ast.literal_eval(a) for a in n.value.args]
                res.setdefault(name, f'another name of `{rest[0]}`' if f=='alias' else rest[0] if rest else '')
    return res

def callbacks():
    "The callbacks of the library by their name on a Learner"
    for c in classes.values():
        if c.node.name=='Callback' or not any(b.node.name=='Callback' for b in c.mro()): continue
        if c.node.name not in (c.mod.all or ()): continue
        own = [n for b in c.mro()[:-1] for n in b.node.body if getattr(n, 'name', None)=='name']
        if own: continue   # computed for each instance
        fixed = [v for n in c.node.body if isinstance(n, ast.Assign) for k,v in pairs(n) if ast.unparse(k)=='name']
        name = ast.literal_eval(fixed[0]) if fixed else snake(re.sub('Callback$', '', c.node.name))
        yield name,c

def public(names): return [n for n in names if not n.startswith('_')]

def complete_learner(learner, callback):
    "The attributes of the Learner and of callbacks that others assign, and those that hold callbacks"
    for mod in modules.values():
        for n in ast.walk(mod.tree):
            if not isinstance(n, ast.Assign): continue
            for k,_ in pairs(n):
                if not isinstance(k, ast.Attribute) or k.attr[0]=='_': continue
                c = {'learn':learner, 'self.learn':learner, 'cb':callback}.get(ast.unparse(k.value))
                if c is not None and not c.has(k.attr): add_attr(c, k.attr, expr('Any'), mod)
    delegated = {n:None for c in reversed(learner.mro()) for n in public(c.attrs)}
    props = {n:f[0] for c in learner.mro() for n,f in c.methods.items() if isinstance(f[0], tuple) and n[0]!='_' and
             ('property' in decorators(f[0][0]) or (is_patched(f[0][0]) and 'as_prop' in patch_kw(f[0][0])))}
    init = learner.methods['__init__'][0][0]
    default = {n.id for n in ast.walk(init) if isinstance(n, ast.Name)}
    for name,c in sorted(callbacks(), key=lambda o: o[1].node.name not in default):
        if learner.has(name): continue
        add_attr(learner, name, expr(c.node.name), c.mod, f'The `{c.node.name}`, if it is among the callbacks')
        if c.node.name in default: delegated[name] = None
    for name in [*delegated, *props]:
        if callback.has(name): continue
        t,mod,doc = learner_attr(learner, name, props)
        callback.delegated[name] = (t, mod, doc)

def learner_attr(learner, name, props):
    if name in props:
        f,mod,_ = props[name]
        return f.returns or return_type(f),mod,ast.get_docstring(f)
    t,mod,doc,_ = next(c.attrs[name] for c in learner.mro() if name in c.attrs)
    return (expr('Any') if ast.unparse(t)=='None' else t),mod,doc

# -- all together

helpers = dict(Any=('typing','Any'), Self=('typing','Self'), Iterator=('collections.abc','Iterator'))
class no_module: name,defs,imports = '',{},{}

def class_stub(stub, c):
    n,stub.shadow = c.node,set()
    bases = [b for b in n.bases if not (ast.unparse(b).split('.')[-1]=='GetAttr')]
    bs = [stub.type(b, c.mod, result=True) for b in bases] + [f'{k.arg}={stub.type(k.value, c.mod)}' for k in n.keywords]
    lines = [f'@{stub.name(ast.unparse(d.func if isinstance(d, ast.Call) else d), c.mod)}' + (f"({', '.join(map(ast.unparse, d.keywords))})" if isinstance(d, ast.Call) else '')
             for d in n.decorator_list if ast.unparse(d).startswith(('dataclass','total_ordering'))]
    lines.append(f"class {n.name}" + (f"({', '.join(bs)})" if bs else '') + ':')
    doc,inside = ast.get_docstring(n),[]
    stub.shadow = ({*c.methods} | {*c.attrs} | {*getattr(c, 'delegated', ())} | {*getattr(c, 'extra', ())})
    if getattr(c, 'extra', None) and n.name=='Events': inside += [stub.attribute(k, expr('str'), no_module, d) for k,d in c.extra.items()]
    is_enum,fields = 'Enum' in ' '.join(bs),any('dataclass' in l for l in lines) or 'NamedTuple' in bs
    values = {k.id:v for o in n.body if isinstance(o, (ast.Assign,ast.AnnAssign)) for k,v in pairs(o) if isinstance(k, ast.Name)}
    for name,(t,mod,d,_) in c.attrs.items():
        if name in c.methods or name=='_default' or name.startswith('__'): continue
        if is_enum and name in values: inside.append(f'    {name} = {stub.default(values[name], mod)}'); continue
        value = ' = ...' if fields and values.get(name) is not None else ''
        inside.append(stub.attribute(name, expr('Any') if ast.unparse(t)=='None' else t, mod, d, value=value))
    for name,(t,mod,d) in getattr(c, 'delegated', {}).items():
        inside.append(f'    @property\n    def {name}(self) -> {stub.type(t, mod, result=True)}:' + (f'\n{docstring(d, "        ")}\n        ...' if d else ' ...'))
    for name,fs in c.methods.items():
        for f in fs:
            if isinstance(f, str):
                if f in c.methods: inside.append(f'    {name} = {f}')
            else: inside.append(stub.function(f[0], f[1], '    ', f[2], doc if f[0].name=='__init__' and params_told(f[0], f[1]) else None))
    if n.name=='Callback':
        for k,d in c.extra.items():
            inside.append(f"    def {k}(self, *args: {stub.name('Any', no_module)}, **kwargs: {stub.name('Any', no_module)}) -> {stub.name('Any', no_module)}:\n"
                          + docstring(f'Event: {d}' if d else f'Event `{k}`', '        ') + '\n        ...')
    stub.shadow = set()
    if not doc and not inside: return '\n'.join(lines) + ' ...'
    return '\n'.join(lines + ([docstring(doc, '    ')] if doc else []) + inside)

def params_told(f, mod): return 'Args:' in describe(f, mod)

def module_stub(mod):
    stub,parts = Stub(mod),[]
    doc = ast.get_docstring(mod.tree)
    exports = mod.all
    if mod.stars or exports is None:   # a module that gives what others have: each name, or all of a module outside
        given = set()
        for m in mod.stars:
            if m not in modules: parts.append(f'from {m} import *'); continue
            new = sorted({*(modules[m].all or ())} - given)
            if new: parts.append(wrap_import(f'from {stub.relative(m)} import ' + ', '.join(f'{n} as {n}' for n in new)))
            given.update(new)
        for n,(m,a) in mod.imports.items():
            if n[0]=='_' or n in given: continue
            if a==n or a=='': parts.append(f'from {stub.relative(m)} import {n} as {n}' if a else f'import {m} as {n}')
            else: parts.append((f'from {stub.relative(m)} import {a} as _{n}' if a else f'import {m} as _{n}') + f'\n{n} = _{n}')
    elif exports: parts.append('__all__ = [' + textwrap.fill(', '.join(map(repr, exports)), width-12, subsequent_indent='           ') + ']')
    for n in exports or ():
        if n not in mod.defs and n in mod.imports: stub.name(n, mod)
    seen = set()
    for n in mod.stmts:
        if isinstance(n, ast.ClassDef): parts.append(class_stub(stub, classes[mod.name, n.name]))
        elif isinstance(n, ast.FunctionDef):
            if not is_patched(n): parts.append(stub.function(n, mod, kind='function'))
        elif isinstance(n, (ast.Assign,ast.AnnAssign)):
            for k,v in pairs(n):
                if not isinstance(k, ast.Name) or k.id in seen or k.id in ('__all__','_all_'): continue
                seen.add(k.id)
                if isinstance(n, ast.AnnAssign): parts.append(stub.attribute(k.id, n.annotation, mod, indent=''))
                elif isinstance(v, ast.Name) and isinstance(mod.defs.get(v.id), (ast.ClassDef,ast.FunctionDef)): parts.append(f'{k.id} = {v.id}')
                elif isinstance(v, ast.Call) and ast.unparse(v.func).split('.')[-1] in ('namedtuple','TypeVar','NewType','ParamSpec'):
                    stub.name(ast.unparse(v.func).split('.')[0], mod); parts.append(f'{k.id} = {ast.unparse(v)}')
                else: parts.append(stub.attribute(k.id, value_type(v, {}, mod), mod, indent=''))
    text = head + (f'{docstring(doc, "")}\n' if doc else '')
    return text + '\n'.join([*stub.import_lines(), '', *stub.body, *parts]).rstrip() + '\n'

def build(at=root):
    "The stubs of the library under `at`: texts by path"
    global modules,classes
    modules,classes = {},{}
    for p in sorted((at/lib).rglob('*.py')):
        if p.name!='_modidx.py': m = Module(p, at); modules[m.name] = m
    for m in modules.values():
        for n in m.stmts:
            if isinstance(n, ast.ClassDef): classes[m.name, n.name] = Class(n, m)
    for c in classes.values(): collect_class(c)
    for m in modules.values():
        for c,f,kind in patches(m):
            if c is not None: add_method(c, f, m, kind)
    done = set()
    def attributes(c):   # base classes first: what they declare is not declared again
        if id(c) in done: return
        done.add(id(c))
        for b in c.bases(): attributes(b)
        collect_attributes(c)
    for c in classes.values(): attributes(c)
    learner,callback,table = (next(c for (_,n),c in classes.items() if n==k) for k in ('Learner','Callback','Events'))
    callback.delegated,callback.extra,table.extra = {},{},events()
    name = callback.methods.pop('name')[0][0]   # as a property no subclass could assign it
    callback.attrs['name'] = [expr('str'), callback.mod, ast.get_docstring(name), True]
    callback.attrs['learn'] = [expr('Learner'), learner.mod, 'The Learner that it belongs to', True]
    complete_learner(learner, callback)
    callback.extra = {k:d for k,d in table.extra.items() if not callback.has(k)}
    res = {m.path.with_suffix('.pyi'):module_stub(m) for m in modules.values()}
    res[Path(lib)/'_fastcore.pyi'] = head + '"""The classes of fastcore that the library gives, with types"""' + typed_stub
    return {**res, Path(lib)/'py.typed':''}

def write(to=root, at=root):
    "Write the stubs under `to`; those of modules that are gone go too"
    files = build(at)
    for p in (to/lib).rglob('*.pyi'):
        if p.relative_to(to) not in files: p.unlink()
    for p,text in files.items():
        (to/p).parent.mkdir(parents=True, exist_ok=True)
        if not (to/p).is_file() or (to/p).read_text(encoding='utf-8')!=text: (to/p).write_text(text, encoding='utf-8')

if __name__=='__main__': write(Path(sys.argv[1]).resolve() if len(sys.argv)>1 else root)
