"""Runs every notebook from top to bottom in a process of its own.

What it runs and skips is what `nbdev_test` does, but it needs no nbdev, so it serves with every fastcore. To run one by
hand: `python tests/structure/test_notebooks.py nbs/100_nested.ipynb`.
"""
import json, os, re, subprocess, sys, tempfile
from configparser import ConfigParser
from pathlib import Path
import pytest

root = Path(__file__).resolve().parents[2]
nbs  = [p for d in ('nbs', 'nbs/examples') for p in sorted((root/d).glob('*.ipynb')) if p.name[0] not in '._']

def skipped(src, flags):
    "Whether a cell is tagged not to be run in a test"
    tags = dict(re.findall(r'^[ \t]*#[ \t]*\|[ \t]*([\w-]+)[ \t]*:?[ \t]*(.*?)[ \t]*$', src, re.M))
    return tags.get('eval', '').lower() == 'false' or flags & tags.keys() or 'nbdev_export'+'(' in src

def run(path, flags):
    "Run the code cells of the notebook at `path` in one namespace, up to the first that fails"
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config
    shell = InteractiveShell.instance(config=Config(HistoryManager=dict(enabled=False)), colors='NoColor')
    os.chdir(path.parent)
    for i,c in enumerate(json.loads(path.read_text(encoding='utf-8'))['cells']):
        src = ''.join(c['source'])
        if c['cell_type'] != 'code' or skipped(src, flags): continue
        if not shell.run_cell(src).success: return f"{path.name}: cell {i} ({c['id']}) failed"

def start(path):
    "Run the notebook at `path` in a new process, which sees this tree first"
    with tempfile.TemporaryDirectory() as tmp:
        env = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, [str(root), os.environ.get('PYTHONPATH')])),
                   IPYTHONDIR=tmp, MPLBACKEND='Agg', OMP_NUM_THREADS='1', IN_TEST='1', PYTHONIOENCODING='utf-8')
        return subprocess.run([sys.executable, __file__, path], env=env, timeout=600, encoding='utf-8',
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

@pytest.mark.parametrize('path', nbs, ids=lambda p: p.relative_to(root/'nbs').as_posix())
def test_notebook(path):
    res = start(path)
    assert res.returncode == 0, res.stdout[-6000:]

def test_a_failing_cell_is_seen(tmp_path):
    "Else the tests above prove nothing"
    cell = lambda s: dict(cell_type='code', id='x', metadata={}, outputs=[], execution_count=None, source=s)
    nb = tmp_path/'nb.ipynb'
    for bad,good in [('assert x == 2', 'assert x == 1'), ('1/0', '#| eval: false\n1/0'), ('x = (', '#| slow\n1/0')]:
        for src,ok in (bad, False), (good, True):
            nb.write_text(json.dumps(dict(cells=[cell('x = 1'), cell(src)], metadata={}, nbformat=4, nbformat_minor=5)))
            res = start(nb)
            assert (res.returncode == 0) == ok, (src, res.stdout)
            if not ok: assert 'cell 1 (x) failed' in res.stdout

if __name__ == '__main__':
    cp = ConfigParser(); cp.read(root/'settings.ini', encoding='utf-8')
    sys.exit(run(Path(sys.argv[1]).resolve(), set(cp['DEFAULT']['tst_flags'].split())))
