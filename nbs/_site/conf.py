"""Settings of the documentation site, which `make docs` builds with Sphinx from nbs/: the notebooks with the outputs
stored in them, and pages that are made of them and of the library:

- `notebooks.py` makes of a notebook what a reader of the site sees;
- `chapters.py` writes a page for each group of notebooks, and the navigation;
- `reference.py` writes the entry of each public name: `functions.py` has what it says of a function, `examples.py`
  finds a cell that shows how it is used;
- `names.py` lists all names by task, from the how-tos that use them;
- `words.py` makes links of the names that stand in prose as code;
- `search.py` ranks the pages for what a reader types, `searchtools.js` shows what is found;
- `plain.py` writes pages as Markdown, their code as scripts, and `llms.txt`; `builder.py` has Sphinx do so.
"""
import sys
from configparser import ConfigParser
from pathlib import Path

here = Path(__file__).resolve().parent
nbs  = here.parent
sys.path[:0] = [str(here), str(nbs)]
import builder, chapters, names, notebooks, words
from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from reference import Reference

cp = ConfigParser(delimiters=['=']); cp.read(nbs.parent/'settings.ini', encoding='utf-8')
cfg = cp['DEFAULT']
source = f"{cfg['git_url']}/blob/{cfg['branch']}"   # where others read the files

project,author,copyright = cfg['title'],cfg['author'],cfg['copyright']
version = release = cfg['version']

extensions = ['myst_nb']
root_doc,smartquotes = 'index',False
exclude_patterns = ['_*', 'README.md', '**/.*', '**/out']
add_module_names = False
python_maximum_signature_line_length = 88
nb_execution_mode = 'off'   # the outputs are those that are stored
nb_code_prompt_show = nb_code_prompt_hide = 'Imports'   # of a module stand first in its chapter, folded
myst_enable_extensions = ['dollarmath', 'attrs_inline', 'attrs_block']
myst_heading_anchors = 4

html_theme = 'furo'
html_title = project
html_static_path = ['site.css', 'site.js', 'searchtools.js']
html_css_files,html_favicon = ['site.css'],'favicon.svg'
html_js_files = [('site.js', dict(defer='defer'))]
html_math_renderer = 'mathml'   # which browsers show by themselves; MathJax would have to be fetched
html_show_sphinx = html_copy_source = html_show_copyright = False
pygments_style,pygments_dark_style = 'friendly','github-dark'

def write_pages(app):
    "Write the pages that are made into nbs/, where they have changed, and delete those of what is gone"
    reference = Reference(nbs, source)
    app.source,app.reference = source,reference.pages()
    pages = {**chapters.pages(nbs), **app.reference, 'reference/names.md':names.page(reference),
             'changelog.md':(nbs.parent/'CHANGELOG.md').read_text(encoding='utf-8')}
    for p in (p for d in ('chapters', 'reference') for p in (nbs/d).glob('*.md')):
        if p.relative_to(nbs).as_posix() not in pages: p.unlink()
    for name,text in pages.items():
        p = nbs/name
        p.parent.mkdir(exist_ok=True)
        if not p.is_file() or p.read_text(encoding='utf-8')!=text: p.write_text(text, encoding='utf-8')

def read_page(app, page, text):
    "What Sphinx takes for the text of a page, in place of that in its file"
    text[0] = notebooks.read(page, text[0], app.env.found_docs, source)
    text[0] = chapters.add_navigation(page, text[0])

def own_branch(app, page, template, context, doctree):
    "The navigation of a page shows what is beside it: all that there is would be most of the page, and of the build"
    if (toctree := context.get('toctree')): context['toctree'] = lambda **kw: toctree(**{**kw, 'collapse':True})

def formula(display):
    "A visitor that writes a formula as MathML"
    def visit(writer, node):
        writer.body.append(convert(node.astext(), display=display))
        raise SkipNode
    return visit,None

def setup(app):
    app.add_builder(builder.Site, override=True)
    app.connect('builder-inited', write_pages)
    app.connect('source-read', read_page)
    app.connect('html-page-context', own_branch, priority=400)   # before the theme asks for it
    app.connect('html-page-context', builder.describe)
    app.connect('env-updated', lambda app, env: words.look_up(env))
    app.connect('doctree-resolved', words.link)
    app.add_html_math_renderer('mathml', inline_renderers=formula('inline'), block_renderers=formula('block'))
    return dict(parallel_read_safe=True, parallel_write_safe=True)
