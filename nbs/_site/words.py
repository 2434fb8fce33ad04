"""Makes links of the names that stand in prose as code, such as `Learner.fit`, `learn.lr_find()` and `before_batch`.
Nothing marks them in the source: they are looked up among the entries of the reference."""
import re
from docutils import nodes
from sphinx.util.nodes import make_refnode
from _stubs import snake

known = {}   # what may stand in prose -> full name

def spellings(full):
    "How an entry is called in prose: what means it for certain, and what does if it means nothing else"
    *module,name = full.split('.')
    owner,bare = module[-1],[name] if '_' in name else []
    if owner=='Learner':     return [f'Learner.{name}', f'learn.{name}'],[f'{name}()', *bare]
    if owner=='Events':      return [f'event.{name}'],[name]
    if owner[0].isupper():   return [f'{o}.{name}' for o in (owner, attribute(owner), f'learn.{attribute(owner)}')],[]
    return [name],[f'learn.{attribute(name)}'] if name[0].isupper() else []

def look_up(env):
    "Note what may stand in prose for each entry, after the pages are read; what may stand for several is left out"
    certain,other = {},{}
    for full in env.domains['py'].objects:
        means,may_mean = spellings(full)
        for s in (full, full.partition('.')[2], *means): certain.setdefault(s, []).append(full)
        for s in may_mean: other.setdefault(s, []).append(full)
    known.clear()
    known.update({s:fulls[0] for s,fulls in {**other, **certain}.items() if len(fulls)==1})

def attribute(name):
    "What a callback is called on a Learner"
    return snake(re.sub('Callback$', '', name))

def meaning(code):
    "The entry that some code in prose is about, None if there is none"
    m = re.fullmatch(r'(?:@|raise |self\.(?=learn\.))?([A-Za-z_][\w.]*)(\([^()]*(?:\([^()]*\)[^()]*)*\))?', code)
    return m and (known.get(m[1]) or (known.get(f'{m[1]}()') if m[2] else None))

def link(app, doctree, page):
    "Make links of the names on a page"
    domain = app.env.domains['py']
    for node in [*doctree.findall(nodes.literal)]:
        if not (full := meaning(node.astext())) or not is_prose(node): continue
        to = domain.objects[full]
        node.replace_self(make_refnode(app.builder, page, to.docname, to.node_id, [node.deepcopy()], full))

def is_prose(node):
    "Is a node in a text that may have links? Not in a heading, a link, or where a parameter is named"
    if node.parent is None: return True
    if isinstance(node.parent, (nodes.reference,nodes.title)) or is_name(node): return False
    return is_prose(node.parent)

def is_name(node):
    "Is it the cell of a table of parameters in which the name stands?"
    row = node.parent
    return isinstance(row, nodes.row) and node is row[0] and 'parameters' in row.parent.parent.parent['classes']
