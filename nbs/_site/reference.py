"""Writes the reference: a page for each module, with an entry for each public name.

The modules are read, not imported, as for the stubs. An entry has the signature, what the docstring says, a table of
the parameters from the comments beside them, what is returned and raised, and an example from the chapters. What a
module adds to a class of another one, by `@patch`, is an entry of that class.
"""
import ast, re
import _stubs
from chapters import group_of, groups, toctree
from examples import find, read_notebooks
from functions import Function, code, source, table, text

# The pages that methods of the Learner have of their own: page, title, what they do, and how their modules begin
topics = [
    ('Learner.train', 'Learner: train', 'Fit, freeze, schedules, precision, compilation, several processes.',
     'learner.fit callbacks. processes. speed.'),
    ('Learner.predict', 'Learner: predict and evaluate', 'Predictions, validation, metrics of several data sets.',
     'learner.predict observe.evaluate observe.tta observe.interpret'),
    ('Learner.save', 'Learner: save, resume, export', 'Weights, whole runs, and files for those who predict.',
     'learner.save recovery.'),
    ('Learner.look', 'Learner: look and log', 'The loop, the model, profiles, and what loggers get.',
     'learner.summary observe.')]

def topic_of(m):
    "The page of its own that a method of the Learner is on, None if it is on that of the class"
    module = '' if isinstance(m, str) else short(m.mod.name)
    if module=='callbacks.handlers': return None
    return next((page for page,_,_,begin in topics if module.startswith(tuple(begin.split()))), None)

handler = re.compile(r'(before|after)_|cleanup$')
def short(module): return module.partition('.')[2] or module

def entry(kind, signature, mod, blocks, **options):
    "An entry of the reference, as a directive of Sphinx"
    options = ''.join(f':{k}: {v}\n' for k,v in dict(module=mod.name, **options).items())
    return f'`````{{py:{kind}}} {signature}\n{options}\n' + '\n\n'.join(b for b in blocks if b) + '\n`````'

class Reference:
    "The pages of the reference, with examples from the notebooks in `nbs`, and links to where others read the `files`"
    def __init__(self, nbs, files):
        self.modules,self.classes = _stubs.read(nbs.parent)
        self.files,self.notebooks = files,read_notebooks(nbs)
        self.chapters = {}   # of each module, which has one to three, in their order
        for nb in self.notebooks:
            if nb.module: self.chapters.setdefault(f'{_stubs.lib}.{nb.module}', []).append(nb)
        self.shown = {}   # of the page that is written: cell -> the name whose entry has it

    # -- what an entry ends with

    def example(self, name, mod):
        "The cell that shows how a name is used, or where the page has it already"
        c = find(name, short(mod.name), self.notebooks)
        if c is None: return ''
        if (at := self.shown.setdefault(c.src, name))!=name: return f'An example: see `{at}`'
        title = next(nb.title for nb in self.notebooks if nb.page==c.page)
        return f'An example, from [{title}](/{c.page}):\n\n```python\n{c.src}\n```'

    def end(self, name, n, mod):
        "An example, and where the source is"
        path = mod.path.as_posix()
        return [self.example(name, mod), f'{{.source}}\n[{path}, line {n.lineno}]({self.files}/{path}#L{n.lineno})']

    # -- the entry of each kind of name

    def function(self, name, mod):
        f = Function(mod.defs[name], mod)
        blocks = [f.doc, *f.parameters(), *f.returns(), *f.raises(), *self.end(name, f.f, mod)]
        return entry('function', f'{name}({f.arguments()})', mod, blocks)

    def method(self, cls, name, m):
        "The entry of a method or property; `m` may be the name of the method that it is another name of"
        full = f'{cls.name}.{name}'
        if isinstance(m, str): return entry('method', full, cls.mod, [f'Another name of `{cls.name}.{m}`'])
        f = Function(m.f, m.mod, m.kind or 'method', cls)
        end = self.end(full, f.f, m.mod)
        if f.is_property: return entry('property', full, cls.mod, [f.doc, *f.returns(), *end])
        options = dict(classmethod='') if f.is_class else dict(staticmethod='') if f.is_static else {}
        blocks = [f.doc, *f.parameters(), *f.returns(), *f.raises(), *end]
        return entry('method', f'{full}({f.arguments()})', cls.mod, blocks, **options)

    def klass(self, cls):
        "The entries of a class, its attributes and its methods"
        init = _stubs.constructor(cls)
        made = Function(init.f, init.mod, 'method', cls) if init else None
        bases = ', '.join(code(source(b)) for b in cls.node.bases if source(b)!='GetAttr')
        events = ', '.join(code(n) for n in cls.methods if handler.match(n))
        yield entry('class', cls.name + (f'({made.arguments()})' if made else ''), cls.mod, [
            text(ast.get_docstring(cls.node) or ''), *(made.parameters() + made.raises() if made else []),
            f'**Base** {bases}' if bases else '', f'**Handles** {events}' if events else '',
            *self.end(cls.name, cls.node, cls.mod)])
        declared = {n:a.doc for n,a in cls.attrs.items() if n[0]!='_' and a.declared and a.doc and n not in cls.methods}
        events = cls.events if cls.name=='Events' else {}
        for n,doc in {**declared, **events}.items(): yield entry('attribute', f'{cls.name}.{n}', cls.mod, [text(doc)])
        for n,m in self.methods(cls).items():
            if cls.name!='Learner' or topic_of(m) is None: yield self.method(cls, n, m)

    def methods(self, cls):
        "The public methods of a class that it documents itself: of the Learner, in the order of the chapters, all"
        found = {n:ms if isinstance(ms, str) else ms[0] for n,ms in cls.methods.items()}
        above = {n:ms[0] for c in reversed(cls.mro()[1:]) for n,ms in c.methods.items()}
        places = {name:i for i,name in enumerate(self.chapters)}
        def chapter(m): return len(places) if isinstance(m, str) else places[m.mod.name]
        if cls.name=='Learner': found = {**dict(sorted(found.items(), key=lambda o: chapter(o[1]))), **above, **found}
        def is_said(n, m): return n not in above or isinstance(m, str) or cls.name=='Learner' or ast.get_docstring(m.f)
        return {n:m for n,m in found.items() if n[0]!='_' and not handler.match(n) and is_said(n, m)}

    def constant(self, name, mod):
        "The entry of a name that a module assigns"
        assigned = [n for n in mod.stmts if isinstance(n, (ast.Assign,ast.AnnAssign))]
        n = next(n for n in assigned for k,_ in _stubs.pairs(n) if source(k)==name)
        alias,line = getattr(mod.defs[name], 'id', None),ast.unparse(n)
        said = f'Another name of `{alias}`' if alias else text(mod.comments.get(n.lineno, ''))
        shown = f'```python\n{line}\n```' if not alias and len(line)<=_stubs.width else ''
        return entry('data', name, mod, [said, shown, *self.end(name, n, mod)])

    def entries(self, mod):
        "The entries of a module, in the order of its chapter"
        for name in mod.all or ():
            if (mod.name, name) in self.classes: yield from self.klass(self.classes[mod.name, name])
            elif isinstance(mod.defs.get(name), ast.FunctionDef): yield self.function(name, mod)
            elif name in mod.defs: yield self.constant(name, mod)   # else it is another library's

    # -- pages

    def added(self, mod):
        "What a module adds to the classes of others: names of methods by class"
        def adds(c): return any(getattr(ms[0], 'mod', None) is mod for ms in c.methods.values())
        others = [c for c in self.classes.values() if c.mod is not mod and adds(c)]
        res = {c.name:[code(f'{c.name}.{n}') for n,m in self.methods(c).items()
                       if n in c.methods and getattr(m, 'mod', None) is mod] for c in others}
        return {c:names for c,names in res.items() if names}

    def page(self, mod):
        "The page of a module; nothing if it has nothing public"
        self.shown = {}
        entries = [*self.entries(mod)]
        chapters = ', '.join(f'[{nb.title}](/{nb.page})' for nb in self.chapters.get(mod.name, ()))
        added = [f'Adds to `{c}`: ' + ', '.join(names) for c,names in self.added(mod).items()]
        if not entries and not added: return ''
        explained = f'Explained in {chapters}' if chapters else ''
        more = ', '.join(f'[{t}](/reference/{p})' for p,t,*_ in topics) if 'Learner' in (mod.all or ()) else ''
        if more: explained += f'. More methods: {more}'
        about = text(ast.get_docstring(mod.tree) or '')
        return '\n\n'.join([f'# {short(mod.name)}', about, explained, *added, *entries])

    def on_topic(self, page):
        "The methods of the Learner that are on a page of their own, by name, and their class"
        cls = next(c for c in self.classes.values() if c.name=='Learner')
        return cls,{n:m for n,m in self.methods(cls).items() if topic_of(m)==page}

    def topic_page(self, page, title, about):
        "The page of a topic of the Learner"
        self.shown = {}
        cls,methods = self.on_topic(page)
        entries = [self.method(cls, *o) for o in methods.items()]
        return '\n\n'.join([f'# {title}', about, 'Methods of `Learner`', *entries])

    def topic_rows(self):
        "The rows of the topics in the table of their group"
        return [[f'[{t}]({p}.md)', about, ', '.join(code(f'Learner.{n}') for n in self.on_topic(p)[1])]
                for p,t,about,_ in topics]

    def group_page(self, title, names):
        "The page of a group: its modules, and what they give"
        def given(mod): return ', '.join([*map(code, mod.all or ()), *sum(self.added(mod).values(), [])])
        rows = [[f'[{short(n)}]({n}.md)', text(ast.get_docstring(m.tree) or ''), given(m)]
                for n in names for m in [self.modules[n]]]
        more = [p for p,*_ in topics] if title=='Learner' else []
        if more: rows = self.topic_rows() + rows
        return '\n\n'.join([f'# {title}', *table(['module', '', 'names'], rows, 'modules'), toctree(more + names)])

    def pages(self):
        "All pages: texts by path"
        found = {name:page for name,mod in self.modules.items() if (page := self.page(mod))}
        res = {f'reference/{name}.md':page for name,page in found.items()}
        res |= {f'reference/{page}.md':self.topic_page(page, *of) for page,*of,_ in topics}
        for group,title,_ in groups:
            names = [m for m,(nb,*_) in self.chapters.items() if m in found and group_of(nb.page)==group]
            if names: res[f'reference/{group}.md'] = self.group_page(title, names)
        return res
