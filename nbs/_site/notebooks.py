"""Makes of a notebook what a reader of the site sees: no hidden cells and no `#|` lines, outputs without progress bars,
and links that lead to pages of the site"""
import ast, json, posixpath, re
from _build import Tables, directives, join, last_state, merge_streams, module_of

def read(page, text, pages, source):
    "The text of a page as the site shows it; `pages` are all that there are, `source` is where others read the files"
    folder = '..' if page=='changelog' else posixpath.dirname(page)   # the changelog is a copy of one beside nbs/
    def links(md): return relink(md, folder, pages, source)
    if not text.startswith('{'): return links(text)
    nb = json.loads(text)
    cells = [c for cell in nb['cells'] for c in shown(cell)]
    for c in cells:
        if c['cell_type']=='markdown': c['source'] = links(c['source'])
    module = module_of(join(c['source']) for c in nb['cells'] if c['cell_type']=='code')
    entry = f'reference/learnkit.{module}'
    if entry in pages: cells.insert(1, markdown('reference', f'Reference: [{module}](/{entry})'))
    return json.dumps(dict(nb, cells=cells))

_directive = re.compile(r'^[ \t]*#[ \t]*\|.*\n?', re.M)

draws_data = re.compile(r'imshow|show_batch|show_results|plot_top_losses|\bshow\(')   # no chart: the dark site keeps it

def shown(c):
    "A cell as it is shown; an output that is markdown is a cell of its own, so that its links are links of the site"
    if c['cell_type']!='code': return [dict(c, source=join(c['source']))]
    tags,src = directives(join(c['source'])),_directive.sub('', join(c['source'])).strip('\n')
    if 'hide' in tags: return []
    meta = dict(tags=['exported'] if any(t.startswith('export') for t in tags) else [])
    if meta['tags'] and only_imports(src): meta['tags'].append('hide-input')
    if draws_data.search(src): meta['tags'].append('data')
    if 'alt' in tags: meta['mystnb'] = dict(image=dict(alt=tags['alt']))
    if 'fold' in tags:   # an answer, or code that was read before, behind these words
        meta['tags'].append('hide-cell')
        meta['mystnb'] = dict(meta.get('mystnb', {}), code_prompt_show=tags['fold'], code_prompt_hide=tags['fold'])
    if tags.get('echo')=='false': meta['tags'].append('remove-input')
    outputs = [] if tags.get('output')=='false' else [o for o in map(shown_output, merge_streams(c['outputs'])) if o]
    texts = [o['data']['text/markdown'] for o in outputs if 'text/markdown' in o.get('data', ())]
    rest = [o for o in outputs if 'text/markdown' not in o.get('data', ())]
    res = [dict(c, source=src, outputs=rest, metadata=meta)] if rest or src and tags.get('echo')!='false' else []
    return res + [markdown(f"{c['id']}-{i}", t) for i,t in enumerate(texts)]

def markdown(id, text): return dict(cell_type='markdown', id=id, metadata={}, source=text)

def only_imports(src): return all(isinstance(n, (ast.Import,ast.ImportFrom)) for n in ast.parse(src).body)

def shown_output(o):
    "An output as it is shown; None if it was a progress bar, or the bare name of an object"
    if o['output_type']=='stream':
        text = last_state(join(o['text']))
        return dict(o, text=text) if text else None
    data = {k:join(v) for k,v in o['data'].items()}
    if   'image/png' in data: data = {'image/png':data['image/png']}
    elif 'text/html' in data: data = {'text/html':html} if (html := tables(data['text/html'])) else {}
    elif re.fullmatch(r'<[\s\S]*>', data['text/plain']) and len(data)==1: data = {}
    return dict(o, data=data) if data else None

def tables(html):
    "The tables of some html, as the site shows its own"
    found = [rows for t in Tables(html).tables if (rows := [r for r in t if r])]
    return ''.join(f'<div class="table-wrapper docutils container">{table(rows)}</div>' for rows in found)

def table(rows):
    def line(r, tag): return '<tr>' + ''.join(f'<{tag}><p>{cell(v)}</p></{tag}>' for v in r) + '</tr>'
    head,body = line(rows[0], 'th'),''.join(line(r, 'td') for r in rows[1:])
    kind = ' parameters' if rows[0][0]=='parameter' else ''   # what `doc` shows: on a phone as in the reference
    return f'<table class="docutils{kind}"><thead>{head}</thead><tbody>{body}</tbody></table>'

def cell(v): return v.replace(r'\|', '|').replace('&', '&amp;').replace('<', '&lt;')

_link = re.compile(r'(\]\()(?![a-z][a-z0-9+.-]*:|[#/])([^)\s#]+)', re.I)
def relink(md, folder, pages, source):
    "Links to modules made links to their reference, those to files that are no pages to where others read them"
    def one(m):
        to = posixpath.normpath(posixpath.join('nbs', folder, m[2]))
        entry = 'reference/' + to.removesuffix('.py').replace('/', '.')
        if entry in pages: return f'{m[1]}/{entry}'
        path,suffix = posixpath.splitext(to.removeprefix('nbs/'))
        return f'{m[1]}/{path}{suffix}' if path in pages or suffix in ('.png','.svg') else f'{m[1]}{source}/{to}'
    return _link.sub(one, md)
