"""The documentation site, as `make docs` builds it: without a warning, with no link that leads nowhere, and with nothing that is
fetched from elsewhere. It is built once for all tests here."""
import os, re, subprocess, sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote
import pytest

root = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not find_spec('myst_nb'), reason="it needs Sphinx: pip install -e '.[docs]'")]

@pytest.fixture(scope='module')
def site(tmp_path_factory):
    "The folder of a freshly built site"
    to = tmp_path_factory.mktemp('docs')
    cmd = [sys.executable, '-m', 'sphinx', '-M', 'html', 'nbs', to, '-c', 'nbs/_site', '-q', '--fail-on-warning', '--keep-going']
    res = subprocess.run(cmd, cwd=root, capture_output=True, encoding='utf-8', timeout=900)
    assert res.returncode==0, (res.stdout+res.stderr)[-6000:]
    return to/'html'

class Page(HTMLParser):
    "The anchors of a page, where it links to, and what it fetches"
    def __init__(self, html):
        super().__init__()
        self.ids,self.links,self.fetched = set(),set(),set()
        self.feed(html)
    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids |= {attrs[k] for k in ('id','name') if attrs.get(k)}
        to = attrs.get('href' if tag in ('a','link') else 'src')
        if to: (self.links if tag=='a' else self.fetched).add(to)

def is_outside(url): return re.match(r'[a-z][a-z0-9+.-]*:|//', url)

def dead(site):
    "The links of a site to pages or anchors that are not there, and what its pages fetch that is not there"
    pages = {p:Page(p.read_text(encoding='utf-8')) for p in sorted(site.rglob('*.html'))}
    res = []
    for p,page in pages.items():
        for to in sorted(page.links | page.fetched):
            if is_outside(to):
                if to in page.fetched and not to.startswith('data:'): res.append(f'{p.name}: fetches {to}')
                continue
            name,_,anchor = unquote(to).partition('#')
            there = (p.parent/name.partition('?')[0]).resolve() if name else p
            if not there.is_file(): res.append(f'{p.name}: {to}')
            elif anchor and there in pages and anchor not in pages[there].ids: res.append(f'{p.name}: {to}')
    return res

def test_no_link_leads_nowhere(site, tmp_path):
    assert dead(site) == []
    (tmp_path/'b.html').write_text('<p id="x">')
    (tmp_path/'a.html').write_text('<a href="b.html#x"></a> <a href="b.html#y"></a> <a href="c.html"></a> <a href="#z"></a> '
                                   '<a href="https://x.org/"></a> <script src="https://x.org/a.js"></script> <img src="i.png">')
    assert dead(tmp_path) == ['a.html: #z', 'a.html: b.html#y', 'a.html: c.html', 'a.html: fetches https://x.org/a.js', 'a.html: i.png']

def test_every_notebook_is_a_page(site):
    nbs = [p.relative_to(root/'nbs') for d in ('nbs', 'nbs/examples') for p in (root/d).glob('*.ipynb')]
    assert [p for p in nbs if not (site/p.with_suffix('.html')).is_file()] == []
