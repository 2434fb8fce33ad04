"""Runs the notebooks, makes README.md of one of them, and nbs/README.md, which lists them all.

    python nbs/_build.py run [notebook …]   run them in place (default: all), each in a fresh kernel, and clean them
    python nbs/_build.py build              write both, from the loop and what else index.ipynb has stored
    python nbs/_build.py readme             both of these, for index.ipynb
    python nbs/_build.py script             print the code of README.md, as one script

A cell with `#| varies` prints measured times: a run keeps its output while the words are the same. With
`#| varies: words` these depend on the times too, and the output is kept in any case.
In index.ipynb, `#| hide` keeps a cell out of the README, `#| echo: false` its source, `#| output: false` its outputs;
`#| alt: what the picture shows` says so to those who cannot see it.
"""
import base64, json, os, posixpath, re, sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

nbs   = Path(__file__).resolve().parent
index = nbs/'index.ipynb'
rooms = 'loop data optim measure learner callbacks observe recovery processes speed contrib'.split()   # imports go back
note  = '<!-- Made from nbs/index.ipynb by `make readme`: change it there. -->'

def join(s): return s if isinstance(s, str) else ''.join(s)

_directive = re.compile(r'^[ \t]*#[ \t]*\|[ \t]*([\w-]+)[ \t]*:?[ \t]*(.*?)[ \t]*$', re.M)
def directives(src):
    "The `#| name: value` lines of a cell, as a dict"
    return {k: v.lower() if v.lower() in ('true', 'false') else v for k,v in _directive.findall(src)}

# running

def run(paths):
    "Run the notebooks at `paths` in place, skipping cells tagged `#| eval: false`, and clean them"
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError
    from nbdev.clean import nbdev_clean
    class Client(NotebookClient):
        async def async_execute_cell(self, cell, *args, **kwargs):
            if directives(cell.source).get('eval') == 'false': return cell
            return await super().async_execute_cell(cell, *args, **kwargs)
    os.environ['PYTHONPATH'] = os.pathsep.join(filter(None, [str(nbs.parent), os.environ.get('PYTHONPATH')]))
    os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')   # they show what the CPU computes, on every machine
    for p in paths:
        if missing := [name for name in needs(p) if find_spec(name) is None]:
            print('skipping', p.relative_to(nbs.parent), 'without', *missing, flush=True)
            continue
        print('running', p.relative_to(nbs.parent), flush=True)
        nb = nbformat.read(p, as_version=4)
        before = {c.id:c.outputs for c in nb.cells if c.cell_type=='code'}
        client = Client(nb, kernel_name='python3', timeout=900, coalesce_streams=True,
                        resources=dict(metadata=dict(path=str(p.parent))),
                        extra_arguments=['--log-level=ERROR'])  # it warns of its open port, each time
        try: client.execute()
        except CellExecutionError as e:
            lacks = e.ename in ('ImportError','ModuleNotFoundError') and 'learnkit' in e.evalue
            if lacks: e.add_note('Run `make lib` first: a notebook imports learnkit as it was exported last.')
            raise
        for c in (c for c in nb.cells if c.cell_type=='code'):
            c.outputs = as_stored(c.outputs)
            if alike(before[c.id], c.outputs, directives(c.source).get('varies')): c.outputs = before[c.id]
        nbformat.write(nb, p)
        nbdev_clean(fname=str(p))

def needs(path):
    "The packages that a notebook names in its line `#| needs: …`, without which it is not run"
    return ' '.join(re.findall(r'#[|] needs: ([\w ]+)', path.read_text(encoding='utf-8'))).split()

# What a run may change without a change of the code is not stored again: a diff then shows what somebody changed

def as_stored(outputs):
    "Outputs as they are stored: each in one form, pictures with a palette, and nothing of a bar that is gone"
    for o in outputs:
        data = o.get('data', {})
        if 'text/html' in data: one_form(data)
        if 'image/png' in data: data['image/png'] = with_palette(join(data['image/png']))
    return [o for o in outputs if not was_bar(o)]

def one_form(data):
    "Keep one form of an output: a table is stored as HTML, and not as text and Markdown beside that"
    for kind in ('text/plain','text/markdown'): data.pop(kind, None)

_style = re.compile(r'<style>.*?</style>', re.S)
def was_bar(o):
    "Is an output what a progress bar leaves in a notebook: an empty one, and a style?"
    data = o.get('data', {})
    return [*data]==['text/html'] and not _style.sub('', join(data['text/html'])).strip()

def with_palette(png):
    "A picture with 256 colours, if it looks the same with them, as plots do; a photograph stays as it is"
    import io
    from PIL import Image
    if has_palette(png): return png
    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert('RGBA')
    if picture.getextrema()[3]!=(255, 255): return png   # it is transparent somewhere
    plain,file = picture.convert('RGB'),io.BytesIO()
    plain.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(file, 'png', optimize=True)
    small = base64.b64encode(file.getvalue()).decode()
    return small if len(small)<len(png) and same_picture(png, small) else png

def has_palette(png): return base64.b64decode(png[:48])[25]==3   # the type of colour in the head of a PNG file

def tidy():
    "Bring the outputs of all notebooks into the form that `run` stores, also where Jupyter ran them"
    for p in notebooks():
        text = p.read_text(encoding='utf-8')
        nb   = json.loads(text)
        for c in nb['cells']:
            if c['cell_type']=='code': c['outputs'] = as_stored(c['outputs'])
        new = json.dumps(nb, indent=1, ensure_ascii=False) + '\n'
        if new!=text: p.write_text(new, encoding='utf-8')

# addresses, checksums, times, the looks of a table, a bar with its text
_varies = re.compile(r'0x[0-9a-f]+|\b[0-9a-f]{8}\b|(?:, about )?(?<![\w:])\d+:\d\d(?::\d\d)?(?![\w:])|'
                     r'<style>.*?</style>|<progress.*?</progress>[^<]*', re.S)
_tag    = re.compile('<[^>]*>')   # how a table looks depends on the version of fastprogress
_number = re.compile(r'[-+]?\d+\.\d+(?:e[-+]?\d+)?')
def words_of(outputs, varies=None):
    "The text of outputs without what differs from run to run, and the numbers with a point in it; `varies`: see above"
    if varies=='words': return '',[]
    def form(o):
        data  = o.get('data', {})
        forms = [o.get('text'), *map(data.get, ('text/html','text/markdown','text/plain'))]
        text  = join(next(filter(None, forms), ''))   # of a Markdown object the plain form has only the address
        return _tag.sub(' ', _varies.sub('', text)) if 'text/html' in data else _varies.sub('', text)
    in_order = sorted(outputs, key=lambda o: o['output_type']=='stream')   # what is printed may come sooner or later
    text = '\n'.join(map(form, in_order))
    if varies is not None: return re.findall('[A-Za-z_]+', text),[]
    return ' '.join(_number.sub('#', text).split()),[float(n) for n in _number.findall(text)]

def pictures_of(outputs): return [join(o['data']['image/png']) for o in outputs if 'image/png' in o.get('data', {})]

def same_picture(a, b):
    "Do two pictures differ by no more than how a font is drawn?"
    import io, numpy as np
    from matplotlib.image import imread
    a,b = (imread(io.BytesIO(base64.b64decode(p)))[...,:3] for p in (a, b))
    return a.shape==b.shape and np.abs(a-b).mean() < .002

def alike(old, new, varies=None):
    "Do outputs say the same, but for times, addresses, and the fourth digit of a number; if they vary, in words alone?"
    (was,before),(now,after) = words_of(old, varies),words_of(new, varies)
    if was!=now or len(pictures_of(old))!=len(pictures_of(new)): return False
    if varies is not None: return True
    if not all(abs(a-b) <= 1e-4*max(abs(a), abs(b), 1e-3) for a,b in zip(before, after, strict=True)): return False
    return all(map(same_picture, pictures_of(old), pictures_of(new)))

def notebooks(at=nbs):
    "All notebooks: chapters by rooms in the order of their numbers, then package, index, book, how-tos and examples"
    folders = *rooms,'','book','howto','examples'
    return [p for d in folders for p in sorted((at/d).glob('*.ipynb')) if p.name[0] not in '._']

def module_of(sources):
    "The module that cells are exported to: the first part of a module has it in `default_exp`, the others in `export`"
    named = ((k, v) for s in sources for k,v in directives(s).items() if v)
    return next((v for k,v in named if k in ('default_exp','export','exporti','exports')), '')

# the README

class Tables(HTMLParser):
    "Collects the rows of the tables in a piece of html"
    def __init__(self, html):
        super().__init__()
        self.tables,self.cell = [],None
        self.feed(html)
    def handle_starttag(self, tag, attrs):
        if   tag == 'table':        self.tables.append([])
        elif tag == 'tr':           self.tables[-1].append([])
        elif tag in ('td', 'th'):   self.cell = ''
    def handle_endtag(self, tag):
        if tag in ('td', 'th'):
            self.tables[-1][-1].append(' '.join(self.cell.split()).replace('|', r'\|'))
            self.cell = None
    def handle_data(self, data):
        if self.cell is not None: self.cell += data

def md_table(rows):
    "A markdown table whose columns line up, the first row its head"
    rows  = [r for r in rows if r]
    n     = max(map(len, rows))
    rows  = [r + ['']*(n-len(r)) for r in rows]
    width = [max(3, *(len(r[i]) for r in rows)) for i in range(n)]
    line  = lambda r: '| ' + ' | '.join(c.ljust(w) for c,w in zip(r, width)) + ' |'
    return '\n'.join([line(rows[0]), line(['-'*w for w in width]), *map(line, rows[1:])])

def last_state(s):
    "Text as a terminal would show it at the end: no colours, and of a line written over (by a bar) only the last state"
    s = re.sub(r'\x1b\[[0-9;]*[A-Za-z]', '', s)
    return '\n'.join(l.rstrip('\r').rpartition('\r')[2].rstrip() for l in s.split('\n')).strip('\n')

def md_text(s):
    "Text as a block of markdown"
    s = last_state(s)
    return s and f'```text\n{s}\n```'

def md_output(o, picture, where):
    "One output as markdown; html other than tables and the bare names of objects are left out"
    if o['output_type'] == 'error': raise ValueError(
        f"{where} ends in {o['ename']}: {o['evalue']}. Repair the cell and run the notebook again.")
    if o['output_type'] == 'stream': return md_text(join(o['text']))
    data = {k: join(v) for k,v in o['data'].items() if k.startswith(('text', 'image'))}
    if 'image/png' in data: return picture(base64.b64decode(data['image/png']))
    tables = [t for t in Tables(data.get('text/html', '')).tables if any(t)]
    if tables: return '\n\n'.join(map(md_table, tables))
    md,plain = data.get('text/markdown', ''), data.get('text/plain', '')
    if md and not md.startswith('```html'): return relink(md.strip())
    return '' if re.fullmatch(r'<[\s\S]*>', plain) else md_text(plain)

_link = re.compile(r'(\]\(|\bsrc="|\bhref=")(?![a-z][a-z0-9+.-]*:|#|/)([^)"\s]+)', re.I)
def relink(md):
    "Links that hold in nbs/ made to hold in the folder above it"
    return _link.sub(lambda m: m[1] + posixpath.normpath(posixpath.join('nbs', m[2])), md)

def build(path=index):
    "The README made of the notebook at `path`: its text, and its pictures as a dict of file name to bytes"
    parts,pngs = [note],{}
    for i,c in enumerate(json.loads(Path(path).read_text(encoding='utf-8'))['cells']):
        src  = join(c['source']).strip('\n')
        tags = directives(src) if c['cell_type'] == 'code' else {}
        if c['cell_type'] == 'markdown': parts.append(relink(src))
        if c['cell_type'] != 'code' or 'hide' in tags: continue
        def picture(png, alt=tags.get('alt', '')):
            name = f'{Path(path).stem}-{len(pngs)+1}.png'
            pngs[name] = png
            return f"![{alt}](nbs/images/{name})"
        code = _directive.sub('', src).strip('\n')
        if code and tags.get('echo') != 'false': parts.append(f'```python\n{code}\n```')
        if tags.get('output') != 'false':
            streams = merge_streams(c['outputs'])
            parts += [md_output(o, picture, f'{Path(path).name}, cell {i}') for o in streams]
    return '\n\n'.join(filter(None, parts)) + '\n', pngs

def script(readme=nbs.parent/'README.md'):
    "The code of the README in its order, without the loop; two tensors that it compares must be equal"
    blocks = re.findall(r'^```python\n(.*?)^```', readme.read_text(encoding='utf-8'), re.S | re.M)
    text = ''.join(b for b in blocks if not b.startswith('class Loop('))
    return re.sub(r'^(?=torch\.equal\()', 'assert ', text, flags=re.M)

def merge_streams(outputs):
    "Text that was printed in several pieces in one piece"
    res = []
    for o in outputs:
        if res and o['output_type'] == res[-1]['output_type'] == 'stream' and o['name'] == res[-1]['name']:
            res[-1] = dict(o, text=join(res[-1]['text']) + join(o['text']))
        else: res.append(o)
    return res

def loop_source(at=nbs.parent):
    "The training loop as the source has it, from its first method on"
    src = (at/'learnkit/loop/loop.py').read_text(encoding='utf-8')
    methods = re.search(r'^    def _do_fit.*?(?=\n+\S|\Z)', src, re.S | re.M)[0]
    return f'class Loop(Dispatcher):\n{methods.rstrip()}\n'

def folded_loop(source):
    "What index.ipynb shows of the loop: what happens in a batch, and all of it to be unfolded"
    heart = source[source.index('    def _do_one_batch'):]
    return (f'```python\nclass Loop(Dispatcher):\n    ...\n{heart}```\n\n<details><summary>The whole loop</summary>\n\n'
            f'```python\n{source}```\n\n</details>')

def with_loop(at=nbs.parent):
    "The text of index.ipynb, in which the output that shows the loop, and the number of its lines, are of the source"
    source,nb = loop_source(at),json.loads((at/'nbs'/index.name).read_text(encoding='utf-8'))
    shows = next(c for c in nb['cells'] if '<summary>The whole loop' in join(c['source']))
    shows['outputs'][0]['data']['text/markdown'] = folded_loop(source).splitlines(keepends=True)
    n_lines = len([l for l in source.splitlines() if l]) - 1   # without that of the class
    text = json.dumps(nb, indent=1, ensure_ascii=False)
    return re.sub(r'\d+ lines of Python', f'{n_lines} lines of Python', text) + '\n'

def contents():
    "The list of all chapters, which GitHub shows below the folder nbs/"
    sys.path[:0] = [str(nbs), str(nbs/'_site')]
    from chapters import book, chapter_table, chapters_of, groups, howtos, howtos_of, table
    parts = [f'## {name}\n\n{about}\n\n{chapter_table(chapters_of(nbs, k), nbs)}' for k,name,about in groups]
    tasks = [f'## {name}\n\n{about}\n\n{table(howtos_of(nbs, k), nbs)}' for k,name,about,_ in howtos]
    first = [f'## {book[1]}', book[2], table(chapters_of(nbs, book[0]), nbs, 'chapter')]
    source = ['# The source, annotated', about_chapters, *parts]
    return '\n\n'.join([list_note, '# The chapters', *first, *source, '# How to', *tasks]) + '\n'

list_note = '<!-- Made by `make lib` of the first lines of the notebooks. -->'
about_chapters = """The source is these notebooks. Each explains one idea, exports its code, and tests it where it is
explained. Up to three notebooks make one module. Their folders are the subpackages of `learnkit/`, and those of
`tests/parts/`: `nbs/loop/15a_stateful.ipynb`, `15b` and `15c` are `learnkit/loop/callback.py`. A subpackage imports
only from those before it, and a notebook only from lower numbers. The first subpackage is the whole idea; read the
others as you need them. [Examples](examples) are whole jobs."""

def write():
    "Tidy the notebooks, print the loop, write both READMEs and their pictures, and delete pictures no longer shown"
    tidy()
    index.write_text(with_loop(), encoding='utf-8')
    (nbs/'README.md').write_text(contents(), encoding='utf-8')
    text,pngs = build()
    (nbs/'images').mkdir(exist_ok=True)
    for p in (nbs/'images').glob(f'{index.stem}-*.png'):
        if p.name not in pngs: p.unlink()
    for name,png in pngs.items(): (nbs/'images'/name).write_bytes(png)
    (nbs.parent/'README.md').write_text(text, encoding='utf-8')
    print('wrote README.md nbs/README.md', *(f'nbs/images/{n}' for n in pngs))

if __name__ == '__main__':
    todo,*args = sys.argv[1:] or ['']
    if todo not in ('run', 'build', 'readme', 'script') or args and todo != 'run': sys.exit(__doc__)
    if todo == 'run':    run([Path(a).resolve() for a in args] or notebooks())
    if todo == 'script': print(script())
    if todo == 'readme': run([index])
    if todo in ('build', 'readme'): write()
