"The code that the chapters of the book build is the code that they import, and all chapters have the same form"
import ast, json, re
from pathlib import Path
import pytest

root = Path(__file__).resolve().parents[2]
book = root/'nbs/book'

def cells(path, kind):
    return [''.join(c['source']) for c in json.loads(path.read_text(encoding='utf-8'))['cells'] if c['cell_type']==kind]
def chapters(at): return sorted(at.glob('[0-9]*.ipynb'))

def unbuilt(at, files=('small.py','digits.py')):
    "Yield the definitions in the files next to the chapters that no chapter contains word for word"
    shown = '\n'.join(src for p in chapters(at) for src in cells(p, 'code'))
    for f in files:
        src = (at/f).read_text(encoding='utf-8')
        yield from (f'{f}: {n.name}' for n in ast.parse(src).body if hasattr(n, 'name') and ast.get_source_segment(src, n) not in shown)

def faults(at):
    "Yield violations of the form of a chapter: short introduction, exercises with answers, a section on the source"
    for p in chapters(at):
        md,code = cells(p, 'markdown'),cells(p, 'code')
        heads = re.findall(r'^## (.*)', '\n'.join(md), re.M)
        if heads[-3:] != ['Exercises', 'Answers', 'In the source']: yield f'{p.name}: ends with {heads[-3:]}'
        n = len(re.findall(r'^\d+\. ', next((s for s in md if '## Exercises' in s), '').partition('## Exercises')[2], re.M))
        answers = re.findall(r'^#\| fold: Answer to (\d+)', '\n'.join(code), re.M)
        if not 2<=n<=4 or answers != [str(i+1) for i in range(n)]: yield f'{p.name}: {n} exercises, answers to {answers}'
        if not re.match(r'# .+\n\n> .+', md[0]): yield f'{p.name}: no title with a line of what it is about'
        if sum(map(len, md[:2])) > 1200: yield f'{p.name}: much is said before something is seen'

@pytest.mark.check
def test_the_chapters_build_what_they_import(tmp_path):
    assert [*unbuilt(book)] == []
    (tmp_path/'small.py').write_text('class A: pass\ndef f(): return 1\n')
    (tmp_path/'digits.py').write_text('')
    (tmp_path/'01_a.ipynb').write_text(json.dumps(dict(cells=[dict(cell_type='code', source='class A: pass\ndef f(): return 2')])))
    assert [*unbuilt(tmp_path)] == ['small.py: f']

@pytest.mark.check
def test_chapters_have_their_form(tmp_path):
    assert [*faults(book)] == []
    def cell(kind, s): return dict(cell_type=kind, source=s)
    (tmp_path/'01_a.ipynb').write_text(json.dumps(dict(cells=[cell('markdown', '# A'), cell('markdown', '## Exercises\n\n1. a\n2. b'),
        cell('code', '#| fold: Answer to 1'), cell('markdown', '## Answers')])))
    assert len([*faults(tmp_path)]) == 3
