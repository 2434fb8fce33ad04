"""Finds for a name of the library the cell of a notebook that shows how it is used"""
import ast, json, re
from dataclasses import dataclass, field
from _build import directives, join, module_of, notebooks

longest = 14,30   # lines of an example: of a good one, and of any
goes_wrong = re.compile(r'test_fail|test_warns|ExceptionExpected|expect_fail')

@dataclass
class Cell:
    "A visible cell of code: its source, and the names and attributes in it"
    page: str; src: str; names: set; attrs: set
    def faults(self):
        "What speaks against it as an example: it is long, it shows what goes wrong"
        return len(self.src.splitlines())>longest[0],bool(goes_wrong.search(self.src))
    def uses(self, name):
        "Does it use a name of a module; or, of `Class.method`, the method?"
        *owner,last = name.split('.')
        return last in self.attrs if owner else last in self.names or last in self.attrs

@dataclass
class Notebook:
    page: str; title: str; about: str; module: str; cells: list = field(default_factory=list)

def read_notebook(path, nbs):
    "A notebook: its title, the line below it, the module that it exports, and its visible cells of code"
    cells = [(c['cell_type'], join(c['source'])) for c in json.loads(path.read_text(encoding='utf-8'))['cells']]
    head = cells[0][1]
    title,about = (re.search(p, head, re.M) for p in (r'^# (.*)', r'^> (.*)'))
    tags = [directives(s) if kind=='code' else {} for kind,s in cells]
    module = module_of(s for kind,s in cells if kind=='code')
    nb = Notebook(path.relative_to(nbs).with_suffix('').as_posix(), title[1], about[1] if about else '', module)
    for (kind,src),tag in zip(cells, tags):
        if kind!='code' or 'hide' in tag or 'default_exp' in tag or any(t.startswith('export') for t in tag): continue
        tree = [*ast.walk(ast.parse(re.sub(r'^[ \t]*[%!].*$', '', src, flags=re.M)))]
        src = re.sub(r'^#\|.*\n?', '', src, flags=re.M).strip('\n')
        if len(src.splitlines())>longest[1]: continue
        nb.cells.append(Cell(nb.page, src, {n.id for n in tree if isinstance(n, ast.Name)},
                             {n.attr for n in tree if isinstance(n, ast.Attribute)}))
    return nb

def read_notebooks(nbs):
    "The notebooks, chapters first; without the book, whose small Learner has the names of the library"
    return [read_notebook(p, nbs) for p in notebooks(nbs) if p.stem!='index' and p.parent.name!='book']

def find(name, module, notebooks):
    "The best cell that uses a name: in the chapters of its module, or, of what is no method, in one after them"
    own = [nb for nb in notebooks if nb.module==module]
    later = notebooks[notebooks.index(own[0]):] if own and '.' not in name else []
    return min((c for nb in own+later for c in nb.cells if c.uses(name)), key=Cell.faults, default=None)   # the first
