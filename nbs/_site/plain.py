"""Writes what others than readers of pages take: each page as Markdown, notebooks as scripts, and `llms.txt`"""
import json, posixpath, re
from _build import Tables, md_table, md_text
from chapters import book, chapters_of, groups, howtos, title

def fenced(code, language=''):
    fence = '`'*max(3, 1+max(map(len, re.findall('`+', code)), default=0))
    return f'{fence}{language}\n{code}\n{fence}'

def output(o):
    "An output as Markdown: text and tables; a picture is not in it"
    if o['output_type']=='stream': return md_text(o['text'])
    tables = [t for t in Tables(o['data'].get('text/html', '')).tables if any(t)]
    if tables: return '\n\n'.join(map(md_table, tables))
    return '(a picture)' if 'image/png' in o['data'] else md_text(o['data'].get('text/plain', ''))

def blocks(text):
    "The parts of a page: its cells with what they show, or its text without what only Sphinx reads"
    if text.startswith('{'):
        for c in json.loads(text)['cells']:
            if c['cell_type']=='markdown': yield c['source']
            elif c['source']: yield fenced(c['source'], 'python')
            if c['cell_type']=='code': yield from map(output, c['outputs'])
        return
    text = re.sub(r'^```\{toctree\}.*?^```\n?', '', text, flags=re.M | re.S)
    text = re.sub(r'^`````\{py:(\w+)\} (.*)\n(?::.*\n)*', r'### \1 `\2`\n', text, flags=re.M)
    yield re.sub(r'^(`````|\{\.\w+\})\n?', '', text, flags=re.M)

def markdown(page, text):
    "A page as Markdown; links to other pages lead to their Markdown"
    def link(m):
        path,suffix = posixpath.splitext(m[1])
        to = m[1] if suffix in ('.png','.svg') else f"{path if suffix in ('.ipynb','.md') else m[1]}.md"
        return '](' + posixpath.relpath(to, posixpath.dirname(page) or '.')
    return re.sub(r'\]\(/([^)\s#]+)', link, '\n\n'.join(filter(None, blocks(text)))).strip() + '\n'

def script(text):
    "The code that a notebook's page shows, as a script of cells, which editors run one by one"
    cells = [c for c in json.loads(text)['cells'] if c['source'] and not c['source'].startswith('<!-- Also')]
    parts = [f"# %%\n{runs(c['source'])}" if c['cell_type']=='code' else commented(c['source']) for c in cells]
    return '\n\n'.join(parts) + '\n'

def runs(code):
    "Code without what only a notebook can do, which becomes comments: a cell with `%%`, a line with `%` or `!`"
    return re.sub(r'^' if code.startswith('%%') else r'^(?=[%!])', '# ', code, flags=re.M)

def commented(md):
    "Prose as comments, without links, which lead nowhere in a script, and without what no reader sees"
    seen = re.sub(r'<!--.*?-->', '', md, flags=re.S).strip()
    lines = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', seen).splitlines()
    return '\n'.join(['# %% [markdown]', *(f'# {l}'.rstrip() for l in lines)])

about = '''learnkit is a PyTorch training loop: a Learner that owns the loop and nothing else, events that callbacks
handle, and Cancel exceptions that leave any part of it. These pages are the documentation as Markdown.

- `from learnkit.all import *` gives everything.
- `Learner(dls, model, loss_func, metrics=…, cbs=[…])` comes first, then `learn.fit(n_epoch)`.
- `dls` is a `DataLoaders`, or a pair of any two iterables of batches. `opt_func` is any optimizer of `torch.optim`.
- What other trainers have flags for is a callback: look in the how-tos before you write one.'''

def llms(nbs):
    "What `llms.txt` says: the pages by sections, each with a line of what it is about"
    def address(p): return p.relative_to(nbs).with_suffix('.md').as_posix()
    def listed(paths): return '\n'.join(f'- [{title(p)[0]}]({address(p)}): {title(p)[1]}' for p in paths)
    def rooms(folder): return '\n'.join(f'- [{name}]({folder}/{k}.md): {about}' for k,name,about in groups[:-1])
    tasks = [nbs/'howto'/f'{n}.ipynb' for _,_,_,names in howtos for n in names.split()]
    slogan = title(nbs/'index.ipynb')[1]
    return '\n\n'.join([
        '# learnkit', f'> {slogan}', about, '## How to', listed(tasks),
        '## Examples', listed(sorted((nbs/'examples').glob('*.ipynb'))), '## Reference', rooms('reference'),
        f'## {book[1]}', listed(chapters_of(nbs, book[0])), '## Optional',
        '- [All in one file](llms-full.txt): the how-tos, the examples, the book and the reference',
        rooms('chapters')]) + '\n'

def in_full(pages):
    "What `llms-full.txt` has: the texts of `pages` that a user needs, by path; not how the source is explained"
    wanted = 'index','howto/','examples/','book/','reference/Learner','reference/learnkit'
    return '\n\n'.join(f'<!-- {p}.md -->\n\n{pages[p]}' for w in wanted for p in sorted(pages) if p.startswith(w))
