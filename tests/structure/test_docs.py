"""Each public name documents its parameters, results and errors in its docstring, and has an example.

The names are those with an entry in the reference. `python tests/structure/test_docs.py` prints the table; with the
name of a column, it lists the names that lack it.
"""
import ast, html, inspect, pydoc, re, subprocess, sys
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
import pytest

root = Path(__file__).resolve().parents[2]
lib  = 'learnkit'
sys.path[:0] = [str(root/'nbs'), str(root/'nbs/_site')]
import _stubs, examples
from learnkit.loop.words import Word

from learnkit.loop.names import adapters
# needs scikit-learn, or is imported when a callback of another library is passed, whose methods the loop calls
apart = {f'{lib}.contrib.{m}' for m in ('sklearn','foreign',*adapters.values())}

handler = re.compile(r'(before|after)_|cleanup$')   # handlers are documented by their event

@dataclass(eq=False)
class Name:
    "A public name: its module, its name there, its function (for a class `__init__`), and the module of that function"
    mod: object
    name: str
    f: object
    home: object
    cls: object = None
    def __str__(self): return f'{self.mod.name}.{self.name}'
    @cache
    def params(self):
        if self.f is None: return []
        f = _stubs.written_out(self.f, self.home)
        has_self = self.cls is not None and not _stubs.is_static(f)
        return [p.arg for p in _stubs.parameters(f.args)[int(has_self):]]
    @cache
    def errors(self): return _stubs.raises(self.f, self.home, self.cls) if self.f else []
    def returned(self):
        "The type of the result of a function; None if it has no result"
        if self.f is None or self.f.name=='__init__': return None
        return None if ast.unparse(_stubs.return_type(self.f))=='None' else ast.unparse(self.f.returns) if self.f.returns else ''
    def object(self):
        "The function, class or method itself"
        o = import_module(self.mod.name)
        for k in self.name.split('.'): o = getattr(o, k)
        return o
    def shown(self): return inspect.getdoc(self.object()) or ''

@cache
def names():
    "The public functions, classes and methods, without methods that a base class documents"
    modules,classes = _stubs.read()
    res = []
    for mod in modules.values():
        if mod.name in apart: continue
        for k in mod.all or ():
            c,f = classes.get((mod.name, k)),mod.defs.get(k)
            if isinstance(f, ast.FunctionDef): res.append(Name(mod, k, f, mod))
            if not c: continue
            made  = _stubs.constructor(c)
            # such an attribute is documented by its Word
            above = {n for b in c.mro()[1:] for n in b.methods} | {*Word.known}
            res.append(Name(mod, k, made and made.f, made and made.mod, c))
            res += [Name(mod, f'{k}.{n}', ms[0].f, ms[0].mod, c) for n,ms in c.methods.items() if not isinstance(ms, str)
                    and n[0]!='_' and not handler.match(n) and (n not in above or ast.get_docstring(ms[0].f) and n not in Word.known)]
    return res

@cache
def notebooks(): return examples.read_notebooks(root/'nbs')
def example(n): return examples.find(n.name, (n.home if '.' in n.name else n.mod).name.removeprefix(lib+'.'), notebooks())

def args(doc): return {*re.findall(r'^    (\w+): ', ''.join(re.findall(r'^Args.*:\n((?: {4}.*\n?)+)', doc, re.M)), re.M)}
columns = dict(
    docstring  = lambda n: bool(n.shown()),
    parameters = lambda n: {*n.params()} <= args(n.shown()),
    returns    = lambda n: n.returned()!='',
    raises     = lambda n: 'Raises:' in n.shown() if n.errors() else True,
    example    = lambda n: example(n) is not None)

def lacking(column): return [str(n) for n in names() if not columns[column](n)]

# the tests

@pytest.mark.check
@pytest.mark.parametrize('column', [*columns])
def test_each_public_name_has(column):
    assert len(names())>700
    assert lacking(column) == []

@pytest.mark.check
def test_errors_are_about_what_a_function_has():
    "The help of a function lists no error about a parameter (`start_epoch must be …`) that it does not have"
    everybodys = {p for n in names() for p in n.params()}
    def subject(message): return getattr(re.match(r'`?(\w+)`?(?:=| must\b)', message), 'group', lambda i: None)(1)
    def own(n): return {*n.params(), *(n.cls.attrs if n.cls else ())}
    strange = {(str(n), subject(s)) for n in names() for _,s in n.errors() if subject(s) in everybodys and subject(s) not in own(n)}
    # these two get an argument of a fit, and use the name that the user gave
    assert strange=={(f'{lib}.optim.schedule.combined_cos', 'pct_start'), (f'{lib}.learner.fit.as_duration', 'n_epoch')}

@pytest.mark.slow
def test_all_names_are_on_a_page_by_task():
    "Each name is listed once: those that how-tos use by their task, the others by subpackage"
    import learnkit.all, names as page
    from reference import Reference
    text = page.page(Reference(root/'nbs', ''))
    section = {name:part.split('\n')[0] for part in re.split(r'^##+ ', text, flags=re.M)[1:] for name in re.findall(r'^\| `([\w.]+)` \|', part, re.M)}
    listed = re.findall(r'^\| `([\w.]+)` \|', text, re.M)
    assert len(listed)==len(set(listed)) and {'Learner','learn.fit','accuracy'} <= {k for k,s in section.items() if s=='Everywhere'}
    assert (section['GradientClip'],section['learn.lr_find'],section['CheckpointCallback'],section['CohenKappa'])==('Training','Training','Saving, resuming, predicting','Measure')
    own = {k for k in learnkit.all.__all__ if str(getattr(getattr(learnkit.all, k), '__module__', '')).startswith(lib)}
    assert own - section.keys() == set()

def test_what_is_lacking_is_found(monkeypatch):
    from learnkit.learner.learner import Learner
    for doc in ('', 'Trains', 'Trains\n\nArgs:\n    n_epoch: epochs'):
        monkeypatch.setattr(Learner.fit, '__doc__', doc)
        for column in ('docstring',)*(not doc) + ('parameters','raises'): assert 'learnkit.learner.learner.Learner.fit' in lacking(column)

def inspected(**names):
    "The text that IPython shows for `name?`, and a notebook on Shift-Tab"
    InteractiveShell = pytest.importorskip('IPython.core.interactiveshell').InteractiveShell
    shell = InteractiveShell.instance()
    shell.push(names)
    shell.colors = 'nocolor'
    return [shell.object_inspect(n, 0)['docstring'] + '\n' + shell.object_inspect_text(n) for n in names]

def test_ipython_and_pydoc_show_parameters():
    from learnkit import DataLoaders, EarlyStoppingCallback, Learner
    from torch import nn
    learn = Learner(DataLoaders([], []), nn.Linear(1, 1))
    meaning = 'number of epochs, with those before `start_epoch`'
    seen = inspected(fit=learn.fit, Fit=Learner.fit, on=learn.on, made=DataLoaders.from_tensors, cb=EarlyStoppingCallback)
    wanted = meaning,meaning,"an interval of training such as '500ba'",'the fraction of the samples for validation','values without improvement'
    assert [w for w,s in zip(wanted, seen, strict=True) if w not in s] == []
    assert meaning in pydoc.render_doc(learn.fit, renderer=pydoc.plaintext)

def test_a_user_class_does_not_show_inherited_parameters_as_its_own():
    from learnkit import Callback, EarlyStoppingCallback, doc
    class Silent(EarlyStoppingCallback):
        def __init__(self, n): super().__init__(patience=n)
    class Mine(Callback):
        "Does something"
        def __init__(self, n): super().__init__()
    assert 'min_delta' not in pydoc.render_doc(Silent, renderer=pydoc.plaintext).partition('Methods inherited')[0]
    assert 'Args:' not in inspected(Silent=Silent)[0] and 'Args of EarlyStoppingCallback:' in inspected(Silent=Silent)[0]
    assert repr(doc(Silent)).startswith('Silent(n)') and 'min_delta' not in repr(doc(Silent))
    assert inspect.getdoc(Mine) == 'Does something' and inspect.getdoc(Mine.__init__) in (None, object.__init__.__doc__)

def test_doc_of_each_public_name():
    "`doc` shows each parameter with its meaning"
    from learnkit import doc
    for n in names():
        page,docstring = doc(n.object()),n.shown()
        assert docstring.splitlines()[0].split('`')[0] in html.unescape(page._repr_html_()), n
        assert not re.search('^(Args|Returns|Raises).*:$', page.text, re.M), n
        assert [p for p,*_,meaning in page.params if p.lstrip('*') in n.params() and not meaning] == [], n
        if isinstance(n.object(), type) or callable(n.object()): assert {*n.params()}-{'events'} <= {p.lstrip('*') for p,*_ in page.params}, n   # `Callback` lists its events by name

def test_completed_docs_do_not_change_objects():
    "Objects can be copied and pickled, and completing the docstrings twice adds nothing"
    import copy, pickle
    from learnkit import EarlyStoppingCallback, Learner
    from learnkit.learner.docs import complete_docs
    docs = Learner.fit.__doc__,Learner.__doc__
    complete_docs()
    assert (Learner.fit.__doc__, Learner.__doc__) == docs and docs[0].count('Args:') == 1
    for o in (Learner, Learner.fit, EarlyStoppingCallback): assert pickle.loads(pickle.dumps(o)) is o is copy.deepcopy(o)
    assert copy.deepcopy(EarlyStoppingCallback(patience=3)).patience == 3

@pytest.mark.slow
@pytest.mark.parametrize('options', [[], ['-OO']], ids=' '.join)
def test_doc_works_without_docstrings_or_the_docs_file(options, tmp_path):
    import shutil
    shutil.copytree(root/lib, tmp_path/lib, ignore=shutil.ignore_patterns('__pycache__', *([] if options else ['_docs.json'])))
    code = 'from learnkit import Learner, doc; print(Learner.fit.__doc__); print(doc(Learner.fit))'
    docstring,page = subprocess.run([sys.executable, *options, '-c', code], cwd=tmp_path, check=True, capture_output=True, encoding='utf-8').stdout.split('\n', 1)
    assert docstring.startswith('None' if options else 'Train for') and 'Args' not in docstring and page.startswith('Learner.fit(n_epoch, lr=None')

if __name__ == '__main__':
    for k in columns:
        print(f'{k:10} {len(names())-len(lacking(k))}/{len(names())}')
        if k in sys.argv[1:]: print(*(f'    {n}' for n in lacking(k)), sep='\n')
