"""From the README, at most three clicks on relative links lead to the notebook whose exported code defines a name; the
first click is on a link whose text, or the line around it, has the word that the reader looks for.
"""
import ast, inspect, json, os, re, subprocess, sys
from pathlib import Path
import pytest
from learnkit.loop.loop import Loop

root = Path(__file__).resolve().parents[2]

def links(path):
    "The files that a page links to, each with the text of the link and its line"
    if path.suffix=='.ipynb':
        text = '\n'.join(''.join(c['source']) for c in json.loads(path.read_text(encoding='utf-8'))['cells'] if c['cell_type']=='markdown')
    elif path.suffix=='.md': text = path.read_text(encoding='utf-8')
    else: return
    for line in text.splitlines():
        for words,to in re.findall(r'\[([^\]]+)\]\(([^)\s]+)\)', line):
            if re.match(r'[a-z]+:|#', to): continue
            p = (path.parent/to.split('#')[0]).resolve()
            if p.is_file(): yield p, words+' '+line

def defined(path):
    "The names that a notebook's exported cells define, including patched methods"
    if path.suffix!='.ipynb': return set()
    cells = [''.join(c['source']) for c in json.loads(path.read_text(encoding='utf-8'))['cells'] if c['cell_type']=='code']
    code = [ast.parse(re.sub(r'^[%!].*$', '', s, flags=re.M)) for s in cells if re.match(r'#\|\s*export', s)]
    return {n.name for t in code for n in t.body if isinstance(n, (ast.FunctionDef,ast.ClassDef))}

def clicks(name, word, start=root/'README.md'):
    "The number of clicks to the code of `name`, if the first link is one that mentions `word`"
    todo,seen = [(p,1) for p,text in links(start) if word in text.lower()],set()
    while todo:
        p,n = todo.pop(0)
        if name in defined(p): return n
        if p in seen or n==3: continue
        seen.add(p)
        todo += [(q,n+1) for q,_ in links(p)]

@pytest.mark.parametrize('word,name', [('loop', 'Loop'), ('events', 'Events'), ('one cycle', 'fit_one_cycle'), ('early stopping', 'EarlyStoppingCallback'),
                                       ('checkpoint', 'CheckpointCallback'), ('mixed precision', 'MixedPrecision'), ('profiling', 'profile'), ('predictions', 'get_preds')])
def test_three_clicks_from_the_readme(word, name):
    assert (clicks(name, word) or 9)<=3, f'{name} is not found from the README by following a link about {word!r}'

@pytest.mark.slow
def test_missing_names_are_not_found():
    assert clicks('fit_two_cycles', 'loop') is None and clicks('Loop', 'coffee') is None

@pytest.mark.slow
def test_the_blocks_of_the_readme_run_in_order(tmp_path):
    "The code blocks run unchanged in a fresh process, and the loop shown is that of the source"
    source = inspect.getsource(Loop)
    assert source[source.index('    def _do_fit'):] in (root/'README.md').read_text(encoding='utf-8')
    code = subprocess.run([sys.executable, root/'nbs/_build.py', 'script'], check=True, capture_output=True, encoding='utf-8').stdout
    assert code.count('learn.fit(')>=4 and 'assert torch.equal' in code
    (tmp_path/'readme.py').write_text(code)
    env = dict(os.environ, PYTHONPATH=str(root), MPLBACKEND='Agg', OMP_NUM_THREADS='1')
    res = subprocess.run([sys.executable, 'readme.py'], cwd=tmp_path, env=env, capture_output=True, encoding='utf-8', timeout=300)
    assert not res.returncode and 'accuracy' in res.stdout, res.stderr
