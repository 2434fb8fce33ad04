"""Runs every notebook from top to bottom in a process of its own.

It runs and skips the same cells as `nbdev_test`, but without nbdev, so that it works with every fastcore. To run a
single notebook: `python tests/structure/test_notebooks.py nbs/data/00_nested.ipynb`. The tests start one server, which
imports PyTorch, IPython and learnkit, and fork it for each notebook: that saves three seconds a notebook.

A cell whose stored output is plain text must print the same words again. Numbers may differ from machine to machine.
"""
import atexit, gc, json, os, random, re, select, signal, subprocess, sys, threading, traceback
from configparser import ConfigParser
from contextlib import redirect_stdout
from difflib import unified_diff
from importlib.util import find_spec
from pathlib import Path
import pytest

root = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root/'nbs')]
import _build

# faults/test_jobs.py runs and kills these
jobs = 'gan actor_critic distillation byol tabular_cv unet search char_gpt'.split()
# These start processes that import PyTorch again, or compile
long = '''30b_fully_shard 35a_signals 20c_several_processes 25c_virtual_shards 15a_fused_step 15b_profile_fused 10c_step_compiler 00a_functional_optim
    20b_recompute 02_watch augment_images toolkit several_training_sets'''.split()
nbs  = [p for p in sorted((root/'nbs').rglob('*.ipynb')) if not re.search(r'/[._]', p.relative_to(root).as_posix()) and p.stem not in jobs]

def skipped(src, flags):
    "Whether a cell is tagged not to be run in a test"
    tags = dict(re.findall(r'^[ \t]*#[ \t]*\|[ \t]*([\w-]+)[ \t]*:?[ \t]*(.*?)[ \t]*$', src, re.M))
    return tags.get('eval', '').lower() == 'false' or flags & tags.keys() or 'nbdev_export'+'(' in src

class Tee:
    "A stream that also keeps a copy of what is written to it"
    def __init__(self, stream): self.stream,self.text = stream,''
    def write(self, text): self.text += text; return self.stream.write(text)
    def __getattr__(self, name): return getattr(self.stream, name)

def outdated(cell, printed):
    "Whether a cell whose stored output is only printed text has printed other words"
    stored = cell['outputs']
    if not stored or any(o.get('name')!='stdout' for o in stored): return False
    varies = _build.directives(''.join(cell['source'])).get('varies') or ''   # '': compare words, not numbers
    now = [dict(output_type='stream', name='stdout', text=printed)]
    return _build.words_of(stored, varies)!=_build.words_of(now, varies)

def difference(cell, printed):
    "The diff between the stored and the printed lines"
    stored = ''.join(_build.join(o['text']) for o in cell['outputs'])
    lines  = unified_diff(stored.splitlines(), printed.splitlines(), n=0, lineterm='')
    return '\n'.join(line for line in lines if not line.startswith(('---','+++','@@')))

def seed_all():
    "Seed the generators of Python, NumPy and PyTorch with `LEARNKIT_SEED`, by default 0"
    import numpy as np, torch
    seed = int(os.environ.get('LEARNKIT_SEED', 0))
    random.seed(seed); np.random.seed(seed); torch.manual_seed(seed)

def make_shell():
    "Return IPython's shell, without history"
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config
    return InteractiveShell.instance(config=Config(HistoryManager=dict(enabled=False)), colors='NoColor')

def run(path, flags):
    "Run the code cells of a notebook up to the first that fails; return whether one failed or is outdated"
    shell = make_shell()
    os.chdir(path.parent)
    sys.path.insert(0, str(path.parent))   # as Jupyter does
    sys.argv[0] = 'ipykernel_launcher.py'
    seed_all()
    stale = []
    for i,c in enumerate(json.loads(path.read_text(encoding='utf-8'))['cells']):
        src = ''.join(c['source'])
        if c['cell_type'] != 'code' or skipped(src, flags): continue
        with redirect_stdout(Tee(sys.stdout)) as printed: success = shell.run_cell(src, store_history=True).success
        if not success:
            print(f"{path.name}: cell {i} ({c['id']}) failed", flush=True)
            return True
        if outdated(c, printed.text): stale.append(f"cell {i} ({c['id']}) prints other words than it has stored:\n{difference(c, printed.text)}")
    for line in stale: print(f'{path.name}: {line}\nrun `.venv/bin/python nbs/_build.py run {path}`', flush=True)
    return bool(stale)

def needed(path):
    "The optional packages that a notebook needs: those of its line `#| needs: …`"
    return [m for line in re.findall(r'#[|] needs: ([\w ]+)', path.read_text(encoding='utf-8')) for m in line.split()]

def flags():
    "The tags of cells that tests skip"
    cp = ConfigParser(); cp.read(root/'settings.ini', encoding='utf-8')
    return set(cp['DEFAULT']['tst_flags'].split())

def end(status):
    "Exit this process, but skip the half second in which Python clears all modules"
    threading._shutdown()
    atexit._run_exitfuncs()
    for f in sys.stdout,sys.stderr: f.flush()
    os._exit(status)

def serve():
    "Read pairs of a notebook and a log file; run each notebook in a fork that writes to its log; print the exit status"
    # slow to import
    import IPython.core.interactiveshell, fastcore.test, matplotlib.pyplot, sklearn.datasets, torch.utils.data
    import learnkit.all
    torch.optim.SGD([torch.ones(1)])   # imports the compiler, which takes a second
    make_shell().run_cell('pass')   # each fork has its own unmodified copy of the shell, and of learnkit
    torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL = 1   # as in conftest.py
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        path,log = json.loads(line)
        if not (pid := os.fork()):
            for fd,name,how in (0, os.devnull, os.O_RDONLY), (1, log, os.O_WRONLY): os.dup2(os.open(name, how), fd)
            os.dup2(1, 2)
            status = 1
            try: status = int(run(Path(path), flags()))
            except BaseException: traceback.print_exc()
            end(status)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)

class Server:
    "Runs notebooks in processes that import learnkit from this tree"
    def __init__(self, tmp):
        self.log,self.forks = tmp/'log.txt',sys.platform=='linux'   # on other systems some libraries fail after a fork
        self.env = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, [str(root), os.environ.get('PYTHONPATH')])),
                        IPYTHONDIR=str(tmp), MPLBACKEND='Agg', OMP_NUM_THREADS='1', IN_TEST='1', PYTHONIOENCODING='utf-8')
        if self.forks: self.proc = self.popen('--serve', stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def popen(self, *args, **kw):
        return subprocess.Popen([sys.executable, __file__, *args], env=self.env, start_new_session=True, **kw)

    def __call__(self, path, timeout=600):
        "Run the notebook at `path`; return its exit status and its output"
        self.log.write_bytes(b'')
        if self.forks:
            self.proc.stdin.write(json.dumps([str(path), str(self.log)]).encode() + b'\n'); self.proc.stdin.flush()
            if not select.select([self.proc.stdout], [], [], timeout)[0]: self.close(); raise TimeoutError(path)
            status = int(self.proc.stdout.readline())
        else:
            with open(self.log, 'wb') as f: status = self.popen(path, stdout=f, stderr=f).wait(timeout)
        return status,self.log.read_text('utf-8', 'replace')

    def close(self):
        if not self.forks: return
        os.killpg(self.proc.pid, signal.SIGKILL)
        self.proc.communicate()

@pytest.fixture(scope='module')
def start(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp('notebooks'))
    yield server
    server.close()

@pytest.mark.parametrize('path', [pytest.param(p, marks=[pytest.mark.slow]*(p.stem in long)) for p in nbs], ids=lambda p: p.relative_to(root/'nbs').as_posix())
def test_notebook(start, path):
    if missing := [m for m in needed(path) if find_spec(m) is None]: pytest.skip(f'it needs {" and ".join(missing)}')
    status,output = start(path)
    assert status == 0, output[-6000:]

def test_each_room_is_run():
    rooms = {p.parent.relative_to(root/'nbs').as_posix() for p in nbs}
    assert {'.', 'howto', 'examples', *(p.name for p in (root/'learnkit').iterdir() if p.is_dir() and p.name[0]!='_')} <= rooms
    assert {*long} <= {p.stem for p in nbs}

def test_a_failing_cell_is_reported(start, tmp_path):
    "A failing cell gives an exit status other than 0, unless a tag skips it"
    cell = lambda s: dict(cell_type='code', id='x', metadata={}, outputs=[], execution_count=None, source=s)
    nb = tmp_path/'nb.ipynb'
    for bad,good in [('assert x == 2', 'assert x == 1'), ('1/0', '#| eval: false\n1/0'), ('x = (', '#| slow\n1/0')]:
        for src,ok in (bad, False), (good, True):
            nb.write_text(json.dumps(dict(cells=[cell('x = 1'), cell(src)], metadata={}, nbformat=4, nbformat_minor=5)))
            status,output = start(nb)
            assert (status == 0) == ok, (src, output)
            if not ok: assert 'cell 1 (x) failed' in output

@pytest.mark.parametrize('source,stored,ok', [("print('now 1.5')", 'now 2.5\n', True), ("print('now')", 'then\n', False), ('pass', 'then\n', False),
    ("#| varies: words\nprint('now')", 'then\n', True), ("print('now'); 3;", 'now\n', True), ("print('at 0:01')", 'at 1:02:03\n', True)])
def test_a_cell_that_prints_other_words_is_reported(start, tmp_path, source, stored, ok):
    output = dict(output_type='stream', name='stdout', text=stored)
    cell = dict(cell_type='code', id='x', metadata={}, outputs=[output], execution_count=None, source=source)
    nb = tmp_path/'nb.ipynb'
    nb.write_text(json.dumps(dict(cells=[cell], metadata={}, nbformat=4, nbformat_minor=5)))
    status,printed = start(nb)
    assert (status==0)==ok, printed
    if not ok: assert 'nb.ipynb: cell 0 (x) prints other words than it has stored:\n-then' in printed and '_build.py run' in printed

if __name__ == '__main__': sys.exit(serve() if sys.argv[1]=='--serve' else run(Path(sys.argv[1]).resolve(), flags()))
