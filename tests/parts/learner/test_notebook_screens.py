"""What a fit looks like in a notebook: its output, from a real kernel, in pages that have the colours of JupyterLab, VS Code and Colab.
A browser says whether each text can be read."""
import json
import nbformat, pytest, test_site

browser = test_site.browser   # the fixture
pytest.importorskip('ipykernel')
nbclient = pytest.importorskip('nbclient')
pytestmark = pytest.mark.slow

SETUP = '''
import torch
from torch import nn
from learnkit.all import *
from learnkit.learner.bars import NotebookBar
x = torch.linspace(-1, 1, 24)[:,None]
dls = DataLoaders.from_dsets(*[torch.utils.data.TensorDataset(x, x)]*2, bs=2)
def fit(*cbs): Learner(dls, nn.Linear(1,1), nn.MSELoss(), torch.optim.SGD, metrics=mae, cbs=cbs).fit(3)
class Interrupt(Callback):
    run_valid = False
    def after_batch(self):
        if self.train_iter==20: raise KeyboardInterrupt
'''
CELLS = dict(after='fit()', again='fit()', running='''
bar = NotebookBar(3)
for row in (['epoch','train_loss','time'], ['0','0.693147','00:01'], ['1','0.643147','00:01']): bar.write(row, table=True)
bar.epoch(2); bar.begin('Epoch 3/3 train', 8); bar.update(3, 'loss 0.6091, 00:02 left')''', interrupted='''
try: fit(Interrupt)
except KeyboardInterrupt: pass''', doc='doc(Learner.fit)')
SHOWS = dict(after='mae', again='mae', running='loss 0.6091, 00:02 left', interrupted='interrupted: epoch 1, batch 7', doc='parameter')

PAGES = {   # the rules of the front ends that touch a table or a text in an output, and their colours in light and dark
    'jupyterlab': ('''body { background: var(--page); color: var(--text); font: 13px system-ui }
        .out { color: var(--text); background: var(--page) } .out table { border-collapse: collapse; font-size: 12px; color: var(--text) }
        .out thead { border-bottom: 1px solid var(--line) } .out td, .out th, .out tr { text-align: right; padding: .5em; border: none }
        .out tbody tr:nth-child(odd) { background: var(--page) } .out tbody tr:nth-child(even) { background: var(--row) }
        .out progress { width: auto }''',
        dict(page='#fff', text='rgba(0,0,0,.87)', row='#f5f5f5', line='#bdbdbd'), dict(page='#111', text='rgba(255,255,255,.87)', row='#212121', line='#424242')),
    'vscode': ('''body { background: var(--page); color: var(--text); font: 13px system-ui } .out { background: var(--cell); padding: 8px }
        .out table { border-collapse: collapse; border-spacing: 0 } .out thead { border-bottom: 1px solid var(--line) }
        .out table th, .out table td, .out table tr { text-align: right; vertical-align: middle; padding: .5em; border: none; max-width: none }
        .out tbody tr:nth-child(even) { background-color: var(--row) }
        .out code { color: var(--code) }''',
        dict(page='#fff', cell='#f8f8f8', text='#3b3b3b', row='rgba(0,0,0,.04)', line='#d7d7d7', code='#3b3b3b'),
        dict(page='#1f1f1f', cell='#181818', text='#ccc', row='rgba(128,128,128,.1)', line='#555', code='#d0d0d0')),
    'colab': ('''body { background: var(--page); color: var(--text); font: 14px Roboto, sans-serif } .out table { border-collapse: collapse }
        .out td, .out th { padding: 4px 8px }''',
        dict(page='#fff', text='#212121'), dict(page='#383838', text='#d5d5d5'))}

# The least contrast of a text with what is behind it, with all that can be looked through laid upon each other
contrast = '''
    const rgba = s => { const c = s.match(/[\\d.]+/g).map(Number); return c.length < 4 ? [...c, 1] : c }
    const over = (a, b) => [0, 1, 2].map(i => a[i]*a[3] + b[i]*(1-a[3])).concat(1)
    const behind = e => e ? over(rgba(getComputedStyle(e).backgroundColor), behind(e.parentElement)) : [255, 255, 255, 1]
    const light = c => c.slice(0, 3).map(v => (v /= 255) <= .04045 ? v/12.92 : ((v+.055)/1.055)**2.4).reduce((s, v, i) => s + v*[.2126, .7152, .0722][i], 0)
    const texts = [...document.querySelectorAll('.out *')].filter(e => [...e.childNodes].some(n => n.nodeType==3 && n.data.trim()) && e.tagName!='STYLE')
    return Math.min(...texts.map(e => { const b = behind(e), a = over(rgba(getComputedStyle(e).color), b)
        const [x, y] = [light(a), light(b)].sort((p, q) => q-p); return (x+.05)/(y+.05) }))'''

@pytest.fixture(scope='module')
def outputs():
    "The HTML of each cell's output, as it is stored"
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(s) for s in (SETUP, *CELLS.values())])
    nbclient.NotebookClient(nb, timeout=120, kernel_name='python3').execute()
    def html(cell): return ''.join(o['data'].get('text/html', '') for o in cell.outputs if 'data' in o)
    return {k:html(c) for k,c in zip(CELLS, nb.cells[1:])}

def page(front, dark, html):
    css,*colours = PAGES[front]
    colours = ';'.join(f'--{k}:{v}' for k,v in colours[dark].items())
    return f'<!doctype html><meta charset=utf-8><style>:root {{ {colours} }} {css}</style><body><div class=out>{html}</div>'

@pytest.mark.parametrize('dark', (False, True))
@pytest.mark.parametrize('front', PAGES)
def test_all_can_be_read(browser, outputs, tmp_path, front, dark):
    for state,html in outputs.items():
        (tmp_path/f'{state}.html').write_text(page(front, dark, html), encoding='utf-8')
        browser.open(f'file://{tmp_path}/{state}.html', 800, dark)
        assert SHOWS[state] in browser.js("return document.querySelector('.out').innerText"), state
        assert browser.js(contrast)>=4.5, (state, browser.js(contrast))
        assert browser.js("return [...document.querySelectorAll('progress')].every(e => e.getBoundingClientRect().width > 100)"), state

def test_bars_while_it_runs_and_where_it_was_interrupted(browser, outputs, tmp_path):
    n = {}
    for state,html in outputs.items():
        (tmp_path/'x.html').write_text(page('colab', False, html), encoding='utf-8')
        browser.open(f'file://{tmp_path}/x.html', 800, False)
        n[state] = browser.js("return [document.querySelectorAll('progress').length, document.querySelectorAll('table').length]")
    assert n==dict(after=[0,1], again=[0,1], running=[2,1], interrupted=[2,1], doc=[0,2])

def test_what_cannot_be_read_is_seen(browser, tmp_path):
    (tmp_path/'x.html').write_text(page('vscode', True, '<table><tr style="background:#f8f9fa"><td>a</td></tr></table>'))
    browser.open(f'file://{tmp_path}/x.html', 800, True)
    assert browser.js(contrast)<2
