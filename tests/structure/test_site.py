"""The documentation site, as `make docs` builds it, has no warnings and no dead links, and fetches nothing from other
sites. It is built once for all tests here."""
import importlib, inspect, json, os, pkgutil, re, shutil, socket, subprocess, sys, time, zlib
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.error import URLError
from urllib.parse import quote, unquote
from urllib.request import Request, urlopen
import learnkit, pytest

root = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root/'nbs'), str(root/'nbs/_site')]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not find_spec('myst_nb'), reason="it needs Sphinx: pip install -e '.[docs]'")]

@pytest.fixture(scope='module')
def site(tmp_path_factory):
    "The folder of a freshly built site; test processes share one, as a build writes pages into nbs/"
    to = tmp_path_factory.getbasetemp().parent/f"site-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}"
    status,result = to/'status',1
    try: to.mkdir()
    except FileExistsError:
        for _ in range(900):
            if status.exists(): break
            time.sleep(1)
        assert status.read_text()=='0', 'another process could not build it'
        return to/'html'
    cmd = [sys.executable, '-m', 'sphinx', '-M', 'html', 'nbs', to, '-c', 'nbs/_site', '-q', '-j', 'auto', '--fail-on-warning', '--keep-going']
    try:
        res = subprocess.run(cmd, cwd=root, capture_output=True, encoding='utf-8', timeout=900)
        result = res.returncode
    finally: (to/'part').write_text(str(result)); (to/'part').rename(status)
    assert result==0, (res.stdout+res.stderr)[-6000:]
    return to/'html'

class Page(HTMLParser):
    "The anchors, links and fetched URLs of a page"
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
    "The links to missing pages or anchors, the missing files that pages fetch, and everything fetched from other sites"
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

def test_no_link_is_dead(site, tmp_path):
    assert dead(site) == []
    (tmp_path/'b.html').write_text('<p id="x">')
    (tmp_path/'a.html').write_text('<a href="b.html#x"></a> <a href="b.html#y"></a> <a href="c.html"></a> <a href="#z"></a> '
                                   '<a href="https://x.org/"></a> <script src="https://x.org/a.js"></script> <img src="i.png">')
    assert dead(tmp_path) == ['a.html: #z', 'a.html: b.html#y', 'a.html: c.html', 'a.html: fetches https://x.org/a.js', 'a.html: i.png']

def entries(site):
    "The entries of the reference: name -> page and anchor"
    lines = zlib.decompress((site/'objects.inv').read_bytes().split(b'\n', 4)[4]).decode().splitlines()
    rows = (re.match(r'(\S+) py:\w+ \S+ (\S+) ', l) for l in lines)
    return {m[1]:m[2].replace('$', m[1]) for m in rows if m}

def test_every_public_name_has_an_entry(site):
    from learnkit.learner.learner import Learner
    found,missing = entries(site),[]
    modules = [m.name for m in pkgutil.walk_packages(learnkit.__path__, 'learnkit.') if not m.ispkg and m.name not in ('learnkit.all','learnkit._modidx')]
    for m in modules:
        missing += [full for n in importlib.import_module(m).__all__ if (full := f'{m}.{n}') not in found]
    methods = [n for n in dir(Learner) if not re.match('_|(before|after)_|cleanup', n) and inspect.isfunction(getattr(Learner, n))]
    missing += [n for n in methods if f'learnkit.learner.learner.Learner.{n}' not in found]
    assert missing == [] and len(methods)>50

def test_an_entry_has_the_parameters_of_the_source(site):
    page,anchor = entries(site)['learnkit.learner.learner.Learner.fit'].split('#')
    html = (site/page).read_text(encoding='utf-8').replace('<wbr>', '')
    entry = re.search(rf'id="{re.escape(anchor)}"(.*?)<dt class="sig', html, re.S)[1]
    signature = inspect.signature(learnkit.Learner.fit)
    rows = [re.sub(r'<[^>]+>', ' ', r).split() for r in re.findall(r'<tr.*?</tr>', entry.split('<tbody>')[1].split('</tbody>')[0], re.S)]
    assert [r[0].lstrip('*') for r in rows]==[*signature.parameters][1:]
    assert all(len(r)>3 for r in rows), 'each has a type or default, and a meaning'

def test_names_in_prose_are_links(site):
    html = (site/'callbacks/15b_lr_find.html').read_text(encoding='utf-8').replace('<wbr>', '')
    links = re.findall(r'<a class="reference internal" href="([^"]+)"[^>]*><code[^>]*><span class="pre">(\w+)</span>', html)
    assert ('../reference/learnkit.callbacks.lr_find.html#learnkit.callbacks.lr_find.LRFinder','LRFinder') in links
    assert ('../reference/Learner.train.html#learnkit.learner.learner.Learner.lr_find','lr_find') in links

def test_every_notebook_is_a_page(site):
    nbs = [p.relative_to(root/'nbs') for p in (root/'nbs').rglob('*.ipynb') if not re.search(r'/[._]|/out/', p.as_posix().removeprefix(root.as_posix()))]
    assert [p for p in nbs if not (site/p.with_suffix('.html')).is_file()] == []

# in a browser

class Browser:
    "A headless Chromium, controlled through chromedriver: `open` a page, run a script in it with `js`"
    flags = '''--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
        --disable-component-update --disable-sync'''.split()
    def __init__(self, profile):
        with socket.socket() as s: s.bind(('127.0.0.1', 0)); port = s.getsockname()[1]
        self.proc = subprocess.Popen(['chromedriver', f'--port={port}'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.url = f'http://127.0.0.1:{port}/session'
        wanted = {'goog:chromeOptions':dict(args=[*self.flags, f'--user-data-dir={profile}'])}
        for _ in range(100):
            try: session = self.post('', capabilities=dict(alwaysMatch=wanted)); break
            except URLError: time.sleep(.1)
        self.url += '/' + session['sessionId']
    def post(self, path, **data):
        req = Request(self.url+path, json.dumps(data).encode(), {'Content-Type':'application/json'})
        with urlopen(req, timeout=60) as res: return json.load(res)['value']
    def cdp(self, cmd, **params): return self.post('/goog/cdp/execute', cmd=cmd, params=params)
    def open(self, page, width, dark):
        self.cdp('Emulation.setDeviceMetricsOverride', width=width, height=900, deviceScaleFactor=1, mobile=width<600)
        self.cdp('Emulation.setEmulatedMedia', features=[dict(name='prefers-color-scheme', value='dark' if dark else 'light')])
        self.post('/url', url=page)
    def js(self, script, *args): return self.post('/execute/sync', script=script, args=[*args])
    def close(self):
        with urlopen(Request(self.url, method='DELETE'), timeout=60): pass   # ends Chromium
        self.proc.terminate(); self.proc.wait(20)

@pytest.fixture(scope='module')
def browser(tmp_path_factory):
    if not (shutil.which('chromedriver') and shutil.which('chromium')): pytest.skip('it needs chromium and chromedriver')
    b = Browser(tmp_path_factory.mktemp('profile'))
    yield b
    b.close()

# Elements that are wider than their column (headings may exceed it by half a line), unless they scroll in their own box
too_wide = '''
    const right = document.querySelector('article').getBoundingClientRect().right + 10
    const scrolls = e => e.matches('article') ? false : getComputedStyle(e).overflowX != 'visible' || scrolls(e.parentElement)
    return [...document.querySelectorAll('article *')].filter(e => e.getBoundingClientRect().right > right && !scrolls(e.parentElement))
        .map(e => e.outerHTML.slice(0, 80))'''
# The lowest contrast between a text and its background, as defined by WCAG
contrast = '''
    const rgb = s => s.match(/[\\d.]+/g).map(Number)
    const light = c => c.slice(0, 3).map(v => (v /= 255) <= .04045 ? v/12.92 : ((v+.055)/1.055)**2.4).reduce((s, v, i) => s + v*[.2126, .7152, .0722][i], 0)
    const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > .5) return c } return [255, 255, 255] }
    const texts = [...document.querySelectorAll('article p, article td, article th, article pre, article li, article dt')]
    return Math.min(...texts.map(e => [light(rgb(getComputedStyle(e).color)), light(behind(e))].sort((a, b) => b-a)).map(([a, b]) => (a+.05)/(b+.05)))'''

# Outputs that scroll around a table with its own scrollbar; and two-column tables that do not fit
scrolls = '''return [...document.querySelectorAll('div.output:has(.table-wrapper), .table-wrapper:has(th:nth-child(2):last-child), .table-wrapper:has(.parameters)')]
    .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.outerHTML.slice(0, 200))'''

PAGES = ['index', 'learner/65_docs', 'callbacks/15b_lr_find', 'measure/05b_losses', 'reference/learnkit.learner.learner', 'reference/Learner.train',
         'reference/observe', 'reference/learnkit.contrib.pytorch_accelerated', 'howto/freeze_a_backbone', 'chapters/loop', 'examples/coming_from', 'examples/benchmarks', 'changelog']

# Words that are broken across lines, outside of code that scrolls
broken = '''
    const res = [], walk = document.createTreeWalker(document.querySelector('article'), NodeFilter.SHOW_TEXT), range = document.createRange()
    for (let n; n = walk.nextNode();) if (!n.parentElement.closest('pre, script, math, .visually-hidden')) for (const m of n.data.matchAll(/[A-Za-z]{2,}/g)) {
        range.setStart(n, m.index); range.setEnd(n, m.index + m[0].length)
        if (new Set([...range.getClientRects()].map(r => Math.round(r.top))).size > 1) res.push(m[0])
    }
    return res'''

@pytest.mark.parametrize('dark', [False, True])
@pytest.mark.parametrize('width', [1280, 390])
def test_pages_fit_the_screen_and_can_be_read(site, browser, width, dark):
    for name in PAGES:
        browser.open(f'file://{site}/{name}.html', width, dark)
        assert browser.js('return document.documentElement.scrollWidth <= innerWidth'), name
        assert browser.js(too_wide)==[], name
        assert browser.js(scrolls)==[], name
        assert browser.js(broken)==[], name
        if width==1280:
            assert browser.js("return [...document.querySelectorAll('article section > p')].every(p => p.getBoundingClientRect().width <= 44*16+1)"), name
            contents = browser.js("const c = document.querySelector('.toc-drawer:not(.no-toc)'); return c && c.getBoundingClientRect().right <= innerWidth")
            assert contents in (True, None), name
        assert browser.js(contrast)>4, name
        assert browser.js("return [...document.querySelectorAll('article img')].every(e => getComputedStyle(e).backgroundColor=='rgb(255, 255, 255)')"), name

def test_layout_faults_are_found(browser, tmp_path):
    (tmp_path/'x.html').write_text('<article style="width:200px"><p style="color:#777;background:#888">a<b style="display:block;width:2000px">b</b></p></article>')
    browser.open(f'file://{tmp_path}/x.html', 1280, False)
    (tmp_path/'y.html').write_text('<article style="width:60px;overflow-wrap:anywhere">a brokenwordisseen here</article>')
    assert browser.js(contrast)<2 and any(s.startswith('<b') for s in browser.js(too_wide))
    assert not browser.js('return document.documentElement.scrollWidth <= innerWidth')
    browser.open(f'file://{tmp_path}/y.html', 1280, False)
    assert browser.js(broken)==['brokenwordisseen']

queries = ['resume', 'CancelBatch', 'freeze', 'disable progress bar', 'k-fold Cross-validation', 'learn.fit_one_cycle', 'reproducib', 'Ünïcode', '']

def test_the_browser_searches_like_python(site, browser):
    "The search in the browser and `search.py` agree on the words and the order of results"
    import search
    text = (site/'searchindex.js').read_text(encoding='utf-8')
    idx = json.loads(text.removeprefix('Search.setIndex(').rstrip().removesuffix(')'))
    for q in queries:
        browser.open(f'file://{site}/search.html?q={quote(q)}', 390, False)
        for _ in range(100):
            if browser.js("return !!document.querySelector('input.search-query')"): break
            time.sleep(.1)
        found = browser.js("return [...document.querySelectorAll('ul.search li a')].map(a => a.getAttribute('href'))")
        assert found==search.rank(idx, q)[:30], q
        assert browser.js('return Search.wanted(arguments[0], new Set(arguments[1]))', q, idx['stop'])==search.wanted(q), q
    assert search.rank(idx, 'CancelBatch')[0].startswith('reference/learnkit.loop.events')
    assert [url for url,*_ in idx['pages'] if not (site/url.partition('#')[0]).is_file()]==[]

def test_plain_files_exist_and_link_to_each_other(site):
    "The files that `llms.txt` lists exist; each page is also Markdown, with links to Markdown"
    listed = re.findall(r'^- \[[^\]]+\]\(([^)]+)\)', (site/'llms.txt').read_text(encoding='utf-8'), re.M)
    assert len(listed)>80 and [to for to in listed if not (site/to).is_file()]==[]
    assert [p for p in site.rglob('*.html') if p.stem not in ('genindex','search') and not p.with_suffix('.md').is_file()]==[]
    for p in [*(site/'howto').glob('*.md'), *(site/'reference').glob('*.md')]:
        text = re.sub(r'^(`{3,}).*?^\1|`[^`\n]*`', '', p.read_text(encoding='utf-8'), flags=re.S | re.M)
        links = [to for to in re.findall(r'\]\(([^)\s#]+)', text) if not is_outside(to)]
        assert [to for to in links if not (p.parent/to).is_file()]==[], p.name
        if p.parent.name=='howto': compile(p.with_suffix('.py').read_text(encoding='utf-8'), p.stem, 'exec')
    assert (site/'llms-full.txt').stat().st_size>5e5
