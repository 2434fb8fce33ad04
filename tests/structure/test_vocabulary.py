"The numbers of `vocabulary.py` agree with the objects, and its finders find what is planted in a small tree"
import ast, json, os, re, subprocess, sys
import pytest
import vocabulary
from vocabulary import complexity, densities, hand_kept_lists, report, root, rules_of_order, table
from learnkit.all import Callback, Learner
from learnkit.loop.loop import Loop

@pytest.fixture(scope='module')
def now(): return report(root)

@pytest.mark.slow
def test_the_counts_agree_with_the_objects(now):
    public = {k for k in dir(Callback) if not k.startswith('_')}
    assert {*now['Callback: attributes'], *now['Callback: methods']}==public and {'order','run','saves','learn'} <= {*now['Callback: attributes']}
    assert not {*now['Callback: attributes']} & {*now['Callback: methods']} and 'state_dict' in now['Callback: methods']
    assert now['Loop: declared attributes']==[*Loop.__annotations__]
    assert {*now['Learner: public names']}=={k for k in dir(Learner) if not k.startswith('_')}
    assert {'model','dls','cbs'} <= {*now['vars(learn) in a batch']}

def pages_for_users():
    "The text of the pages for users: the README, the book, how-tos and examples"
    found = [*root.glob('nbs/book/*.ipynb'), *root.glob('nbs/howto/*.ipynb'), *root.glob('nbs/examples/*.ipynb'), root/'nbs/index.ipynb']
    cells = [c for path in found for c in json.loads(path.read_text(encoding='utf-8'))['cells']]
    return '\n'.join([''.join(c['source']) for c in cells] + [path.read_text(encoding='utf-8') for path in root.glob('nbs/examples/*.py')])

@pytest.mark.slow
def test_each_public_name_of_the_learner_is_for_users(now):
    "Each is in fastai or on a page for users; what only the library uses is private, or an attribute of the run"
    own,text = now["Learner: of these not fastai's"],pages_for_users()
    assert len(own)<50 and not {'rebind','on_create','start_epoch'} & {*own} and 'distributed' in own
    assert not [name for name in own if not re.search(rf'(\blearn|\bLearner|\))\.{name}\b', text)]
    assert vocabulary.fastai_names<={*now['Learner: public names']}

@pytest.mark.slow
def test_counts_of_calls_are_reproducible(now):
    again = vocabulary.objects_of(root)
    for name in ('batch','fit','checkpoint'): assert 0<again[name][0]<again[name][1]
    assert again['batch'][0]==now['calls in a training batch: own'] and again['checkpoint'][0]==now['calls in a checkpoint: own']
    assert again['fit'][0]==now['calls in a fit of 20 batches: own']>20*again['batch'][0]

@pytest.mark.slow
def test_the_table_has_each_row_once(now):
    lines = [*table({'then':{'rules of order':['order'], 'gone':1}, 'here':now})]
    assert len(lines)==len({'gone', *now})+1 and lines[0].split()==['then','here']
    assert [l.split()[-2:] for l in lines if l.startswith('rules of order')]==[['1', str(len(now['rules of order']))]]
    assert any(l.split()==['gone','1','-'] for l in lines)

@pytest.fixture
def planted(tmp_path):
    for path,text in {'loop/a.py':'''"""Words of a docstring, in five tokens"""
names = 'batch xb yb pred loss'.split()   # a comment
derived = {*run_attrs, 'x'}
others = ['red', 'green', 'blue', 'white', 'loss']
def f(cb):
    "Does it have a docstring?"
    return cb.prepares and cb.order
''', 'speed/b.py':"kept = dict(batch=1, xb=2, yb=3, pred=4, loss=5)\nx = [i for i in range(3) if i] or (1 if kept else 2)\n"}.items():
        (tmp_path/'learnkit'/path).parent.mkdir(parents=True)
        (tmp_path/'learnkit'/path).write_text(text)
    return tmp_path

def test_expressions_and_tokens_are_counted(planted):
    found = densities(planted)
    assert found['loop']==dict(lines=5, tokens=42, expressions=1) and found['speed']==dict(lines=2, tokens=46, expressions=3)
    assert found['all']==found['loop']+found['speed'] and [*found]==['all','loop','speed']

def test_lists_are_found(planted):
    found = hand_kept_lists(planted, {'batch','xb','yb','pred','loss'})
    # not that of speed/b.py, which is the state of a feature
    assert [f.split(':')[:2] for f in found]==[['loop/a.py', '2'], ['loop/a.py', '3']]

def test_callbacks_are_sorted_by_three_attributes(planted):
    "By those that `Callback` declares; another one in the dispatcher is found"
    assert rules_of_order(root)==['first_in','last_in','order'] and all(hasattr(Callback, name) for name in rules_of_order(root))
    source = (root/'learnkit/loop/dispatcher.py').read_text(encoding='utf-8')
    assert (one := 'name in cb.last_in') in source
    (planted/'learnkit/loop/dispatcher.py').write_text(source.replace(one, f'{one} or cb.prepares'))
    assert rules_of_order(planted)==['first_in','last_in','order','prepares']

def test_complexity_is_mccabes():
    def of(source): return complexity(ast.parse(source).body[0])
    assert of('def f(): pass')==1 and of('def f(x):\n    if x: return 1\n    elif y and z or w: return 2')==5
    assert of('def f(x):\n    for i in x: pass\n    else: return [j for j in x if j if k]')==6
    assert of('def f(x):\n    try: g()\n    except A: pass\n    except B: pass\n    else: assert x')==5
    assert of('def f(x):\n    def g(): return 1 if x else lambda: 2\n    return g')==3

@pytest.mark.slow
@pytest.mark.skipif(not (root/'.git').exists(), reason='no repository: nothing to compare with')
def test_another_revision_is_shown_next_to_this_one():
    out = subprocess.run([sys.executable, vocabulary.__file__, '--against', 'HEAD'], check=True, capture_output=True, text=True).stdout
    assert out.splitlines()[0].split()==['HEAD','here'] and len(out.splitlines())>40
    known = subprocess.run(['git','worktree','list'], cwd=root, check=True, capture_output=True, text=True).stdout
    assert 'tree' not in [line.split()[0].rpartition('/')[2] for line in known.splitlines()]
