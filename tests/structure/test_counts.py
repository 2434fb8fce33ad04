"""Counts in the documentation are true: each is computed here.

`claims` lists them: the file, a pattern with the number, and a function that computes it. A number of how-tos,
chapters, libraries … that is in a text but not in the table fails: add it, or write the text without a number.
"""
import json, re, sys
from pathlib import Path
import pytest

root = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root/'tests/bench')]

words = 'one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen'.split()
words = {w:i+1 for i,w in enumerate(words)} | {'twenty':20, 'thirty':30, 'forty':40, 'fifty':50, 'sixty':60, 'seventy':70, 'eighty':80, 'ninety':90, 'hundred':100}
number = rf'((?:\d[\d,]*|{"|".join(words)})(?:-(?:{"|".join(words)}))?)'

def value(s):
    "The value of a number in digits or words: 1,797, forty-seven"
    return sum(words[w] if w in words else int(w.replace(',', '')) for w in s.lower().split('-'))

def cells(path, kind): return [''.join(c['source']) for c in json.loads((root/path).read_text(encoding='utf-8'))['cells'] if c['cell_type']==kind]

def text(path): return ' '.join(('\n'.join(cells(path, 'markdown')) if path.endswith('.ipynb') else (root/path).read_text(encoding='utf-8')).split())

def lines(path, has):
    "The number of lines of the cell that contains `has`"
    return len(next(c for c in cells(path, 'code') if has in c).splitlines())

def peers():
    import peers
    return len(peers.libraries)-1   # without learnkit

def slow_notebooks():
    from test_notebooks import jobs, long
    return len(jobs) + len(long)

def logged(): return len(re.search(r'^class LogNorm.*(?:\n    .*)*', cells('nbs/howto/clip_gradients.ipynb', 'code')[0], re.M)[0].splitlines())

def parts(path): return sum(c.startswith('## ') for c in cells(path, 'markdown'))

jobs,opts,sets = (f'nbs/examples/{n}.ipynb' for n in ('jobs','several_optimizers','several_training_sets'))
claims = [('Makefile', f'and {number} other libraries', peers),
          ('CONTRIBUTING.md', f'the notebooks, except the {number} slowest', slow_notebooks),
          (jobs, f'What {number} whole jobs', lambda: len([*(root/'tests/bench/jobs').glob('*.py')])),
          *((f, rf'(?<!training sets: ){number} jobs compared with', lambda: parts(opts)) for f in (opts,'nbs/howto/two_optimizers.ipynb')),
          (sets, f'training sets: {number} jobs', lambda: parts(sets)),
          ('nbs/examples/transformers_classifier.ipynb', f'kept: {number} lines', lambda: lines('nbs/examples/transformers_classifier.ipynb', 'keep_best = ')),
          ('nbs/howto/clip_gradients.ipynb', f'{number} lines log it', logged)]
# Numbers of past work, of the page itself or of other libraries, which do not change; test_recorded checks some
facts = ['values in 64 jobs', 'up to three notebooks', '361 tests of six libraries were translated', 'Three jobs: a small network']

texts = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'Makefile',   # nbs/README.md is generated from the others
         *(p.relative_to(root).as_posix() for d in ('howto','examples') for p in sorted((root/'nbs'/d).glob('*.ipynb')))]
totals = re.compile(rf'\b{number} (?:\w+ )?(?:how-tos|chapters|notebooks|libraries|jobs|modules|rooms)\b', re.I)

def unchecked(path, content):
    "The counts in a text that are not computed here"
    known = [pattern for p,pattern,_ in claims if p==path]
    content = re.sub('|'.join([*known, *facts]), '', content, flags=re.I)
    return [f'{path}: {m[0]}' for m in totals.finditer(content)]

@pytest.mark.parametrize('path,pattern,count', claims, ids=lambda c: c if isinstance(c, str) and len(c)<60 else '')
def test_a_count_is_true(path, pattern, count):
    found = re.findall(pattern, text(path), re.I)
    assert len(found)==1 and value(found[0])==count()

@pytest.mark.check
def test_no_other_count_is_in_a_text():
    assert [u for p in texts for u in unchecked(p, text(p))]==[]
    assert unchecked('README.md', 'it has forty-seven how-tos, 12 small notebooks and four legs')==['README.md: forty-seven how-tos', 'README.md: 12 small notebooks']

@pytest.mark.check
def test_the_numbers_of_the_readme_were_measured():
    "The ratios in the README are those of the stored benchmark"
    results = json.loads((root/'tests/bench/results.json').read_text(encoding='utf-8'))['results']
    step = next(e for e in results if e.get('job')=='step')['rows']
    stated = dict(re.findall(r'(takes|Ignite|Lightning|fastai|HF Trainer) (\d+\.\d\d)', text('README.md').replace('Ignite it takes', 'Ignite')))
    assert len(stated)==5 and stated=={k:f"{step['learnkit' if k=='takes' else k][0]:.2f}" for k in stated}, 'run `make readme`'

def test_numbers_are_read(): assert [*map(value, ['seven', 'forty-seven', '1,797', 'thirty'])]==[7, 47, 1797, 30]
