"""Running a notebook again on an unchanged tree does not change it: `nbs/_build.py run` replaces an output only if its
content differs, and the stored outputs are those that the code prints"""
import base64, io, json, os, shutil, subprocess, sys
from pathlib import Path
import numpy as np, pytest
from toys import few

root = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root/'nbs')]
import _build

def stream(text): return dict(output_type='stream', name='stdout', text=text)
def html(text, **more): return dict(output_type='display_data', data={'text/html':text, **more})
def picture(a):
    from matplotlib.image import imsave
    f = io.BytesIO(); imsave(f, a, format='png')
    return dict(output_type='display_data', data={'image/png':base64.b64encode(f.getvalue()).decode()})

def test_varying_details_are_equal():
    # the split into streams, the last digit
    assert _build.alike([stream('a\n'), stream('loss 0.48309\n')], [stream('a\nloss 0.48310\n')])
    assert _build.alike([stream('epoch 3 00:01 1:02:03 <A at 0x7f12>')], [stream('epoch 3 00:02 1:02:04 <A at 0x8f13>')])
    assert _build.alike([html('<style>\nold\n</style><td>0.5</td><td>00:00</td>')], [html('<style>new</style><td>0.5</td><td>00:01</td>')])
    # hashes differ with the rounding of processors
    assert _build.alike([stream('weights 076db722 076db722')], [stream('weights 41aa0e1f 41aa0e1f')])
    assert _build.alike([stream('step 77 is 27 batches after 50.pth\n')], [stream('step 77 is 27 batches after 50.pth, about 00:07\n')])
    assert _build.alike([], [])

def test_a_cell_that_measures_keeps_its_numbers():
    "With `#| varies` only the words are compared"
    old,new = [stream('loader 3 calls, 66% of 0.31 s')],[stream('loader 4 calls, 15% of 0.77 s')]
    assert _build.alike(old, new, varies='') and not _build.alike(old, new)
    other = [stream('loader 3 batches, 66% of 0.31 s')]
    assert not _build.alike(old, other, varies='') and _build.alike(old, other, varies='words')

def test_text_may_come_before_or_after_a_table():
    "Text and tables come by two channels in any order, and text printed in two pieces is joined"
    table = html('<table>0.5</table>')
    assert _build.alike([stream('a\n'), table, stream('b\n')], [stream('a\nb\n'), table])
    assert not _build.alike([stream('a\n'), table, stream('b\n')], [stream('b\na\n'), table])

def test_the_html_of_a_table_is_not_compared():
    "It depends on the version of fastprogress"
    old,new = html('<div><table><tr><th>loss</th><td>0.5</td></tr></table></div>'),html('<table border="1">\n<th>loss</th> <td>0.5</td></table><p>')
    assert _build.alike([old], [new]) and not _build.alike([old], [html('<table><th>loss</th><td>0.6</td></table>')])

def test_the_position_of_a_bar_is_not_compared():
    def bar(at): return [html(f'<div><progress max="22" value="{at}"></progress> {at*100/22:.2f}% [{at}/22 00:00&lt;00:01... loss 0.5]<p>stopped</p></div>')]
    assert _build.alike(bar(13), bar(22))

@pytest.mark.parametrize('old,new', [('after_fit Recorder', 'after_fit TrainEval, Recorder'), ('loss 0.5', 'loss 0.501'), ('3 files', '4 files'), ('', 'x'), ('1.0', '1.0 2.0')])
def test_different_texts_are_not_equal(old, new): assert not _build.alike([stream(old)], [stream(new)])

def test_markdown_is_compared_too():
    def markdown(s): return dict(output_type='display_data', data={'text/markdown':s, 'text/plain':'<Markdown object>'}, metadata={})
    assert not _build.alike([markdown('self.do_fetched(b)')], [markdown('run.do_fetched(b)')])
    assert _build.alike([markdown('in 0x7f12')], [markdown('in 0x8f13')])

def test_pictures_are_compared():
    a = np.random.default_rng(0).random((40, 40, 3))
    assert _build.alike([picture(a)], [picture(np.clip(a+.001, 0, 1))]) and not _build.alike([picture(a)], [picture(a[::-1])])
    assert not _build.alike([picture(a)], []) and not _build.alike([picture(a)], [picture(a[:20])])

def test_pictures_are_stored_with_a_palette():
    "A palette takes less than half of a plot's bytes; a photograph keeps its colours. `make lib` converts pictures"
    from matplotlib.figure import Figure
    def drawn(figure):
        f = io.BytesIO(); figure.savefig(f, format='png')
        return dict(output_type='display_data', data={'image/png':base64.b64encode(f.getvalue()).decode()})
    figure = Figure(); figure.subplots().plot([1, 3, 2])
    plot,photo = drawn(figure),picture(np.random.default_rng(0).random((99, 99, 3)))
    outputs = [dict(o, data=dict(o['data'])) for o in (plot, photo)]
    outputs = _build.as_stored(outputs)
    assert len(outputs[0]['data']['image/png'])<.5*len(plot['data']['image/png']) and outputs[1]==photo
    assert _build.has_palette(outputs[0]['data']['image/png']) and not _build.has_palette(photo['data']['image/png'])
    assert _build.alike([plot], outputs[:1])
    again = [dict(outputs[0], data=dict(outputs[0]['data']))]
    assert _build.as_stored(again)==outputs[:1]

def test_one_form_of_an_output_is_stored():
    "Progress bars are not stored"
    table = html('<style>looks</style><table></table>', **{'text/plain':'t', 'text/markdown':'t'})
    bar   = [html('<style>looks</style>'), html('', **{'text/plain':'<IPython.core.display.HTML object>'})]
    found = _build.as_stored([*bar, table, stream('x'), dict(output_type='execute_result', data={'text/plain':'3'})])
    assert [o.get('data') for o in found]==[{'text/html':'<style>looks</style><table></table>'}, None, {'text/plain':'3'}]

def test_all_notebooks_are_stored_in_this_form():
    "`make lib` converts the outputs of cells that Jupyter ran"
    def cells(p): return [c for c in json.loads(p.read_text(encoding='utf-8'))['cells'] if c['cell_type']=='code']
    other = {p.name for p in _build.notebooks() for old,new in zip(cells(p), cells(p), strict=True) if _build.as_stored(new['outputs'])!=old['outputs']}
    assert other==set(), 'run `make lib`'

sources = _build.notebooks()   # those of all folders
@few(0, 2)   # each takes some seconds; test_notebooks compares all printed text
@pytest.mark.parametrize('path', sources, ids=lambda p: p.relative_to(root/'nbs').as_posix())
def test_a_rerun_changes_nothing(path, tmp_path):
    "Each stored output has the words that the code prints now"
    from importlib.util import find_spec
    if any(find_spec(m) is None for m in _build.needs(path)): pytest.skip('it needs a package that is not here')
    shutil.copytree(root/'nbs', tmp_path/'nbs', ignore=shutil.ignore_patterns('out', 'models', '.ipynb_checkpoints'))
    shutil.copy(root/'settings.ini', tmp_path)
    copy = tmp_path/path.relative_to(root)
    env  = {k:v for k,v in os.environ.items() if k not in ('IN_TEST','LEARNKIT_FULL_TRACEBACKS')}
    env['PYTHONPATH'] = str(root)
    subprocess.run([sys.executable, tmp_path/'nbs/_build.py', 'run', copy], cwd=tmp_path, env=env, check=True, capture_output=True)
    def words(c): return _build.words_of(c['outputs'], _build.directives(''.join(c['source'])).get('varies'))[0]
    def outputs(p): return {c['id']:words(c) for c in json.loads(p.read_text(encoding='utf-8'))['cells'] if c['cell_type']=='code'}
    old,new = outputs(path),outputs(copy)
    differ = {k:(old[k], new[k]) for k in new if old.get(k)!=new[k]}
    assert not differ, f'run `.venv/bin/python nbs/_build.py run {path.relative_to(root)}`: {differ}'
