"""Writes the page that has all names by what one wants to do: those that the how-tos of a task use come first, the rare
ones, which no how-to has, below. Names are those of the modules, tasks those of the how-tos; a name belongs to the task
of whose how-tos the largest share uses it."""
import ast, re
from collections import Counter
from chapters import groups, howtos
from functions import code, table, text

everywhere = 4   # a name that how-tos of so many tasks use belongs to none of them

def said(doc): return text(' '.join((doc or '').split()))

def names_of(reference):
    "The names that `learnkit.all` gives, and what a Learner has: what each is for, and its room, by how it is written"
    found = {}
    for name in reference.modules['learnkit.all'].stars:
        if (mod := reference.modules.get(name)) is None: continue   # it is another library's
        for k in mod.all or ():
            cls,node = reference.classes.get((mod.name, k)),mod.defs.get(k)
            if cls: found[k] = said(ast.get_docstring(cls.node)),room(mod)
            elif isinstance(node, ast.FunctionDef): found[k] = said(ast.get_docstring(node)),room(mod)
            elif isinstance(node, ast.Name): found[k] = f'Another name of {code(node.id)}',room(mod)
            elif k in mod.defs: found[k] = '',room(mod)
    learner = next(c for c in reference.classes.values() if c.name=='Learner')
    for k,m in reference.methods(learner).items():
        if isinstance(m, str): found[f'learn.{k}'] = f'Another name of {code(f"learn.{m}")}','learner'
        else: found[f'learn.{k}'] = said(ast.get_docstring(m.f)),room(m.mod)
    return found

def room(mod): return mod.name.split('.')[1]

def uses(nb):
    "What a notebook uses in its visible code: names, and what follows `learn.`"
    trees = [ast.walk(ast.parse(re.sub(r'^[ \t]*[%!].*$', '', c.src, flags=re.M))) for c in nb.cells]
    names = [n for tree in trees for n in tree if isinstance(n, ast.Name)]
    own   = {n.id for n in names if isinstance(n.ctx, ast.Store)}   # a variable may have the name of a function
    return {n.id for n in names} - own | {f'learn.{k}' for c in nb.cells for k in re.findall(r'\blearn\.(\w+)', c.src)}

def tasks(reference, names):
    "How many how-tos of each task use a name: a Counter by task, of each name"
    of = {f'howto/{n}':task for task,_,_,listed in howtos for n in listed.split()}
    counts = {}
    for nb in reference.notebooks:
        if nb.page not in of: continue
        for name in uses(nb) & names.keys(): counts.setdefault(name, Counter())[of[nb.page]] += 1
    return counts

def rows(names, chosen): return [[code(k), names[k][0]] for k in chosen]

def page(reference):
    "The page, as Markdown"
    names  = names_of(reference)
    counts = tasks(reference, names)
    sizes  = {key:len(listed.split()) for key,_,_,listed in howtos}
    def share(k): return lambda key: counts[k][key]/sizes[key]
    def task(k): return '' if len(counts[k])>=everywhere else max(counts[k], key=share(k))
    def often(chosen): return sorted(chosen, key=lambda k: -counts[k].total())
    n_of_learner = sum('.' in k for k in names)
    parts = ['# All names, by task', about.strip().format(n=len(names)-n_of_learner, m=n_of_learner)]
    for key,title in [('', 'Everywhere'), *((h[0], h[1]) for h in howtos)]:
        chosen = often(k for k in counts if task(k)==key)
        howto  = [f'See [the how-tos](/chapters/howto-{key})'] if key else []
        parts += [f'## {title}', *howto, *table(['name', ''], rows(names, chosen))]
    parts.append('## The rare ones, by subpackage')
    for key,title,_ in groups:
        chosen = [k for k in names if k not in counts and names[k][1]==key]
        if chosen: parts += [f'### {title}', *table(['name', ''], rows(names, chosen))]
    return '\n\n'.join(parts)

about = '''
`from learnkit.all import *` gives {n} names of learnkit, and a Learner has {m}. To train you need the first section.
Each of the next has what the how-tos of one task use, most used first. No how-to needs the rest. For events see
[the events](/examples/events), for what is in a module its page in the reference.'''
