"""Builds the pages as Sphinx does, and beside them what it does not know: our search, Markdown, scripts, `llms.txt`"""
import re
from html import escape
from pathlib import Path
from docutils import nodes
from sphinx.builders.html import StandaloneHTMLBuilder
import notebooks, plain, search

class Site(StandaloneHTMLBuilder):
    "Builds the site; what Sphinx's search would index is not, as ours is made of the sources"
    def index_page(self, *page): pass
    def load_indexer(self, changed): pass

    def dump_search_index(self):
        "Write what the page of the search loads, and the plain files"
        nbs,out = Path(self.srcdir),Path(self.outdir)
        idx = search.index(nbs, self.app.reference)
        (out/self.searchindex_filename).write_text(search.script(idx), encoding='utf-8')
        found = self.env.found_docs
        def source(p):
            return notebooks.read(p, Path(self.env.doc2path(p)).read_text(encoding='utf-8'), found, self.app.source)
        sources = {p:source(p) for p in sorted(found)}
        pages = {p:plain.markdown(p, text) for p,text in sources.items()}
        for p,text in pages.items(): (out/f'{p}.md').write_text(text, encoding='utf-8')
        for p,text in sources.items():
            if has_script(p): (out/f'{p}.py').write_text(plain.script(text), encoding='utf-8')
        (out/'llms.txt').write_text(plain.llms(nbs), encoding='utf-8')
        (out/'llms-full.txt').write_text(plain.in_full(pages), encoding='utf-8')

def has_script(page): return page.startswith('howto/')

def links(app, page):
    "What stands below the title of a page: its notebook, its code, its text"
    at,stem = f'{app.source}/nbs/{page}.ipynb',page.rpartition('/')[2]
    found = [('Notebook', at)] if Path(app.srcdir, f'{page}.ipynb').is_file() else []
    if has_script(page): found.append(('Script', f'{stem}.py'))
    found.append(('Markdown', f'{stem}.md'))
    return '<p class="links">' + ' '.join(f'<a href="{to}">{name}</a>' for name,to in found) + '</p>'

def breakable(body):
    "The same html; names in titles, code and tables may go on in the next line between their words, and nowhere else"
    def between(m): return re.sub(r'([_./=,(](?=[A-Za-z])|[a-z](?=[A-Z])|\w(?=\[)|=(?=\'))', r'\1<wbr>', m[0])
    return re.sub(r'(?<=<span class="pre">)[^<]+|(?<=<h1>)[^<]+|(?<=<td><p>)[^<]+', between, body)

def describe(app, page, template, context, doctree):
    "Add to a page what it is about, for those who list it, and its links"
    if doctree is None: return
    said = next((n.astext() for n in doctree.findall(nodes.paragraph)), '')
    meta = f'<meta name="description" content="{escape(" ".join(said.split())[:300])}">'
    context['metatags'] = context.get('metatags', '') + meta
    body = breakable(context['body'])
    context['body'] = body if page=='index' else body.replace('</h1>', '</h1>\n' + links(app, page), 1)
