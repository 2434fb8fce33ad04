"""The steps of a newcomer, as in CONTRIBUTING.md: add an event, a callback and a metric to a copy of the tree, run
`make lib` and `make check`, and commit. Only the files that they edit and those that `make lib` writes change.
"""
import json, os, re, shutil, subprocess, sys
from pathlib import Path
import pytest
from toys import few

root = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root/'nbs')]
from _build import rooms
needs_nbdev = pytest.mark.skipif('LEARNKIT_COMPAT' in os.environ, reason='nbdev needs fastcore 1')

class Checkout:
    "A committed copy of the tree, with the Python of this process as its .venv"
    def __init__(self, at):
        self.at = at
        for f in self.git('ls-files', '-co', '--exclude-standard', at=root):
            (at/f).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root/f, at/f)
        (at/'.venv').symlink_to(sys.prefix)
        (at/'.ready').write_text(str(at))   # so that `make` does not set it up again
        self.git('init')
        (at/'.git/info/exclude').write_text('.venv\n.ready\n')
        self.git('add', '-A')
        self.git('-c', 'user.name=n', '-c', 'user.email=n@x.org', 'commit', '-m', 'as it was')

    def git(self, *args, at=None): return self.run('git', *args, at=at)[1].split('\n')[:-1]
    def run(self, *args, at=None, strict=True):
        env = {k:v for k,v in os.environ.items() if k not in ('IN_TEST','PYTEST_CURRENT_TEST','PYTEST_ADDOPTS')}
        env['PYTHONPATH'] = str(self.at)
        res = subprocess.run(args, cwd=at or self.at, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8')
        assert not (strict and res.returncode), res.stdout
        return res.returncode,res.stdout

    def make(self, target, **kwargs): return self.run('make', target, 'READY=.ready', f'PY={sys.executable}', **kwargs)
    def check(self):
        "Run `make check`; return the failed tests with their messages, and the whole output"
        output = self.make('check', strict=False)[1]
        return dict(re.findall(r'^(?:FAILED|ERROR) \S*::(\w+)\S*(.*)', output, re.M)),output
    def touched(self):
        "The files that a commit would contain now"
        return sorted(l[3:] for l in self.git('status', '--porcelain', '-uall'))

    def notebook(self, path, f):
        "Change a notebook by calling `f` on the list of its cells"
        nb = json.loads((self.at/path).read_text(encoding='utf-8'))
        f(nb['cells'])
        (self.at/path).write_text(json.dumps(nb, indent=1, ensure_ascii=False) + '\n', encoding='utf-8')
    def insert(self, path, before, line):
        "Insert `line` into an exported cell, in front of the text `before`"
        def add(cells):
            found = [c for c in cells if c['cell_type']=='code' and before in ''.join(c['source']) and '#| export' in ''.join(c['source'])]
            assert len(found)==1, (path, before)
            found[0]['source'] = ''.join(found[0]['source']).replace(before, line+before, 1).splitlines(True)
        self.notebook(path, add)

def cell(kind, source, printed=''):
    out = [dict(output_type='stream', name='stdout', text=printed.splitlines(True))] if printed else []
    extra = dict(execution_count=None, outputs=out) if kind=='code' else {}
    return dict(cell_type=kind, id=f'{abs(hash(source)):08x}'[:8], metadata={}, source=source.strip('\n').splitlines(True), **extra)

@pytest.fixture
def house(tmp_path): return Checkout(tmp_path)

# a callback: a new chapter, which is the third part of a module

noise = [cell('markdown', '# Label noise\n\n> Train with some wrong targets'),
    cell('markdown', 'How much does a wrong label harm? `LabelNoise` gives some items of each training batch the target of another one.'),
    cell('code', "print(*('cat' if i in (2,5) else 'dog' for i in range(8)))", 'dog dog cat dog dog cat dog dog\n'),
    cell('code', '#| export callbacks.mixup\nimport torch\n\nfrom learnkit.loop.callback import Callback'),
    cell('code', '#| hide\nfrom fastcore.test import *\nfrom torch import nn\nfrom learnkit.data.loaders import DataLoaders\nfrom learnkit.learner.learner import Learner'),
    cell('code', '''
#| export callbacks.mixup
class LabelNoise(Callback):
    "Gives some items of a training batch the target of another one"
    run_valid = False
    def __init__(self,
        p:float=.1 # the part of the items, from 0 to 1
    ): self.p = p

    def before_batch(self):
        y, = self.yb
        wrong = torch.rand(len(y), device=y.device)<self.p
        self.learn.yb = (torch.where(wrong, y.flip(0), y),)
'''),
    cell('markdown', 'With `p=1` all targets of a batch change places:'),
    cell('code', '''
seen = []
x,y = torch.randn(4, 2),torch.arange(4)
learn = Learner(DataLoaders([(x, y)], [(x, y)]), nn.Linear(2, 4), nn.CrossEntropyLoss(), cbs=LabelNoise(1.))
learn.fit(1, cbs=Callback(after_batch=lambda self: seen.append(self.y)))
test_eq(seen[0], y.flip(0))
''')]

# a metric: two cells in the chapter of metrics

miss_rate = [cell('markdown', 'Where a class is rare, `miss_rate` says how much of it is not found.'), cell('code', '''
#| export measure.metrics
def miss_rate(
    inp:torch.Tensor,  # scores of two classes, one row a sample
    targ:torch.Tensor  # 1 where the rare class is
) -> torch.Tensor:
    "Return the part of the samples of class 1 that are taken for class 0"
    return 1 - inp.argmax(dim=-1)[targ==1].float().mean()
'''), cell('code', "scores = torch.tensor([[.9,.1],[.2,.8],[.6,.4]])\ntest_close(miss_rate(scores, torch.tensor([0,1,1])), .5)")]

# a new module in each subpackage, and a how-to

def spare(room):
    "A chapter that exports a new module, as in CONTRIBUTING.md"
    name = f'half_of_{room}'
    return [cell('markdown', f'# Halves of {room}\n\n> A number by two'),
        cell('code', f'from learnkit.{room}.half import {name}\nprint({name}(3))', '1.5\n'),
        cell('code', f'#| default_exp {room}.half'),
        cell('markdown', 'Division by two keeps the sign.'),
        cell('code', f"""
#| export
def {name}(
    x:float # the number
) -> float:
    "Return half of a number"
    return x/2
"""),
        cell('code', f'assert {name}(-3)==-1.5')]

howto = [cell('markdown', '# Count the misses of a rare class\n\n> A metric for what is not found'),
    cell('code', """
from learnkit.all import *

x = torch.randn(80, 2)
dls = DataLoaders.from_tensors(x, (x[:,0]>1).long(), seed=0, bs=40)
learn = Learner(dls, nn.Linear(2, 2), nn.CrossEntropyLoss(), metrics=miss_rate)
learn.validate()
"""),
    cell('markdown', 'Read more: [metrics](../measure/35b_more_metrics.ipynb).\n\n<!-- Also searched for as: false negative rate, recall, rare class, fraud -->')]

# and an event: a line in the table, a line in the loop

@few(0, 0)   # takes a minute, mostly for checks that `make test` runs anyway
@needs_nbdev
def test_few_files_are_touched(house):
    """A callback changes three files, a metric two, a how-to two, an event six; a new module, here one per subpackage,
    its two files and the list in `98_all`. `make lib` writes the generated ones. `make check` fails only where an event
    needs manual changes, and lists them; callback and metric then have their documentation"""
    path,other = house.at/'nbs/callbacks/40c_label_noise.ipynb',house.at/'nbs/howto/count_misses.ipynb'
    old = json.loads((root/'nbs/callbacks/40b_mixup.ipynb').read_text(encoding='utf-8'))
    def write(to, cells): to.write_text(json.dumps(dict(old, cells=cells), indent=1, ensure_ascii=False) + '\n', encoding='utf-8')
    write(path, noise)
    write(other, howto)
    for room in rooms: write(house.at/f'nbs/{room}/94_half.ipynb', spare(room))
    def add_to_all(cells):
        imports = next(c for c in cells if 'from learnkit.callbacks.accumulate import *' in ''.join(c['source']))
        imports['source'] = [*imports['source'][:-1], imports['source'][-1].rstrip()+'\n', *(f'from learnkit.{room}.half import *\n' for room in rooms)]
    house.notebook('nbs/98_all.ipynb', add_to_all)
    chapters = house.at/'nbs/_site/chapters.py'
    chapters.write_text(chapters.read_text(encoding='utf-8').replace("'write_a_loss loss_with_inputs ", "'count_misses '\n     'write_a_loss loss_with_inputs "), encoding='utf-8')
    house.notebook('nbs/measure/35b_more_metrics.ipynb', lambda cells: cells.extend(miss_rate))
    house.insert('nbs/loop/00_events.ipynb', '      before_batch   ', '      before_transfer      `batch` is about to go to the device\n')
    house.insert('nbs/loop/30b_loop.ipynb', '        self._split(self._set_device(self.batch))\n', "        self('before_transfer')\n")
    house.make('lib')
    callback = ['learnkit/callbacks/mixup.py', 'nbs/README.md', 'nbs/callbacks/40c_label_noise.ipynb']
    metric   = ['learnkit/measure/metrics.py', 'nbs/measure/35b_more_metrics.ipynb']
    event    = ['README.md', 'learnkit/loop/events.py', 'learnkit/loop/loop.py', 'nbs/index.ipynb', 'nbs/loop/00_events.ipynb', 'nbs/loop/30b_loop.ipynb']
    task     = ['nbs/_site/chapters.py', 'nbs/howto/count_misses.ipynb']
    modules  = [f for room in rooms for f in (f'learnkit/{room}/half.py', f'nbs/{room}/94_half.ipynb')]
    listed   = ['learnkit/all.py', 'nbs/98_all.ipynb']
    assert house.touched() == sorted(callback + metric + event + task + modules + listed)
    assert "        self('before_transfer')" in (house.at/'README.md').read_text(encoding='utf-8')
    failed,output = house.check()
    assert failed.keys() == {'test_an_event_is_known_where_it_matters'}, output
    for what in ('before_transfer', 'tests/spec/oracle.py', 'nbs/learner/60a_training_loop.ipynb'): assert what in output
    oracle = house.at/'tests/spec/oracle.py'
    oracle.write_text(oracle.read_text(encoding='utf-8').replace(' after_fetch before_batch', ' after_fetch before_transfer before_batch'), encoding='utf-8')
    commands = re.findall(r'run `(\.venv/bin/python nbs/_build\.py run \S+)`', output)
    assert len({*commands})>=4
    for command in dict.fromkeys(commands): house.run(*command.split())
    house.run(sys.executable, 'nbs/_build.py', 'run', str(path), str(other))
    failed,output = house.check()
    assert failed=={}, output
    house.run(sys.executable, '-m', 'pytest', '-q', 'tests/faults/test_failures.py', '-k', 'events_of_a_skipped_batch')
    code = 'import learnkit.all as a, inspect; assert "from 0 to 1" in inspect.getdoc(a.LabelNoise) and a.miss_rate.__doc__ and a.half_of_loop(3)==1.5'
    house.run(sys.executable, '-c', code)

# two branches that both changed notebooks

@pytest.fixture
def merged(house):
    "A function that commits two changes of a notebook to two branches, and merges them with nbdev's merge driver"
    house.git('config', 'user.name', 'n'); house.git('config', 'user.email', 'n@x.org')
    house.git('config', 'merge.nbdev-merge.driver', f'{Path(sys.prefix)/"bin/nbdev_merge"} %O %A %B %P')
    main = house.git('branch', '--show-current')[0]
    def merge(path, mine, theirs):
        "Whether git merges two changes of a notebook without a conflict"
        for branch,change in (('theirs', theirs), ('mine', mine)):
            house.git('checkout', '-q', '-b', branch, main)
            house.notebook(path, change)
            house.git('commit', '-qam', branch)
        return house.run('git', 'merge', '-m', 'both', 'theirs', strict=False)[0]==0
    return merge

def cells_of(house, path): return json.loads((house.at/path).read_text(encoding='utf-8'))['cells']
def prints(cells, text):
    "Replace each stored text output, as a run on another machine would"
    for o in (o for c in cells for o in c.get('outputs', ()) if o['output_type']=='stream'): o['text'] = [text]

@few(0, 1)   # copies the tree
@needs_nbdev
def test_branches_with_other_outputs_are_merged(house, merged):
    "Two branches that ran a notebook and changed different cells of it are merged without a conflict"
    path = 'nbs/measure/35b_more_metrics.ipynb'
    def mine(cells): cells[0]['source'].append('\nMine.'); prints(cells, 'mine\n')
    def theirs(cells): cells.extend(miss_rate); prints(cells, 'theirs\n')
    assert merged(path, mine, theirs)
    sources = [''.join(c['source']) for c in cells_of(house, path)]
    assert sources[0].endswith('Mine.') and any('def miss_rate' in s for s in sources)
    assert house.touched()==[] and len(house.git('log', '-1', '--format=%P')[0].split())==2

@few(0, 1)
@needs_nbdev
def test_a_cell_that_both_branches_changed_has_both_sides(house, merged):
    "After a conflict the notebook is still valid JSON; keeping one side and deleting the marks completes the merge"
    path = 'nbs/measure/35b_more_metrics.ipynb'
    assert not merged(path, lambda cells: cells[0].update(source=['# Mine']), lambda cells: cells[0].update(source=['# Theirs']))
    def is_mark(c): return re.match('`(<<<<<<<|=======|>>>>>>>)', ''.join(c['source']))
    cells = cells_of(house, path)
    assert [''.join(c['source']) for c in cells[:5] if not is_mark(c)][:2]==['# Mine', '# Theirs'] and sum(map(bool, map(is_mark, cells)))==3
    def keep_mine(cells): cells[:] = [c for c in cells if not is_mark(c) and c['source']!=['# Theirs']]
    house.notebook(path, keep_mine)
    house.git('commit', '-qam', 'both')
    assert cells_of(house, path)[0]['source']==['# Mine'] and house.touched()==[]
    assert len(house.git('log', '-1', '--format=%P')[0].split())==2
