"""Settings of the documentation site, which `make docs` builds with Sphinx from nbs/: the notebooks with the outputs
stored in them, and pages that are made of them and of the library:

- `notebooks.py` makes of a notebook what a reader of the site sees;
- `chapters.py` writes a page for each group of notebooks, and the navigation;
- `reference.py` writes the entry of each public name;
- `words.py` makes links of the names that stand in prose as code.
"""
import sys
from configparser import ConfigParser
from pathlib import Path

here = Path(__file__).resolve().parent
root = here.parents[1]
sys.path[:0] = [str(here), str(here.parent)]
import chapters, notebooks
from docutils.nodes import SkipNode
from latex2mathml.converter import convert

cp = ConfigParser(delimiters=['=']); cp.read(root/'settings.ini', encoding='utf-8')
cfg = cp['DEFAULT']

project,author,copyright = cfg['title'],cfg['author'],cfg['copyright']
version = release = cfg['version']
repo_url = f"{cfg['git_url']}/blob/{cfg['branch']}"

extensions = ['myst_nb']
root_doc = 'index'
exclude_patterns = ['_*', '**/.*', '**/out', '**/*.md.new']
# Notebooks: as stored, never run
nb_execution_mode = 'off'
nb_merge_streams = True
myst_enable_extensions = ['dollarmath', 'colon_fence', 'attrs_inline']
myst_heading_anchors = 4

html_theme = 'furo'
html_title = project
html_static_path = ['site.css']
html_math_renderer = 'mathml'   # which browsers show by themselves; MathJax would have to be fetched
html_css_files = ['site.css']
html_show_sphinx = html_copy_source = False
html_theme_options = dict(navigation_with_keys=True)
pygments_style,pygments_dark_style = 'friendly','github-dark'

def formula(display):
    "A visitor that writes a formula as MathML"
    def visit(writer, node):
        writer.body.append(convert(node.astext(), display=display))
        raise SkipNode
    return visit,None

def setup(app):
    app.add_html_math_renderer('mathml', inline_renderers=formula('inline'), block_renderers=formula('block'))
    app.connect('builder-inited', lambda app: chapters.write(here.parent))
    app.connect('source-read', lambda app, page, text: notebooks.read(page, text, repo_url))
    app.connect('source-read', lambda app, page, text: chapters.add_navigation(page, text))
    return dict(parallel_read_safe=True, parallel_write_safe=True)
