"""The pages of the site as Markdown, as scripts, and for AI assistants, made from the notebooks without Sphinx"""
import ast, builtins, json, re, sys
from pathlib import Path
import pytest

root = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root/'nbs'), str(root/'nbs/_site')]
import notebooks, plain

tasks = [p for d in ('howto','examples') for p in sorted((root/'nbs'/d).glob('*.ipynb'))]
def shown(p): return notebooks.read(p.relative_to(root/'nbs').with_suffix('').as_posix(), p.read_text(encoding='utf-8'), {'howto/stop_early'}, 'https://x.org')

def unknown(code):
    "The names that a script uses but does not define or import"
    import learnkit.all
    nodes = [*ast.walk(ast.parse(code))]
    made = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)} | {n.arg for n in nodes if isinstance(n, ast.arg)}
    made |= {n.name for n in nodes if isinstance(n, (ast.FunctionDef,ast.ClassDef,ast.ExceptHandler))}
    made |= {(a.asname or a.name).partition('.')[0] for n in nodes if isinstance(n, (ast.Import,ast.ImportFrom)) for a in n.names}
    stars = {n.module for n in nodes if isinstance(n, ast.ImportFrom) and n.names[0].name=='*'}
    for m in stars: made |= {*dir(__import__(m, fromlist=['*']))}
    return sorted({n.id for n in nodes if isinstance(n, ast.Name)} - made - {*dir(builtins)} - {'display','get_ipython'})

def test_scripts_of_how_tos_define_what_they_use():
    found = {p.stem:names for p in tasks if p.parent.name=='howto' and (names := unknown(plain.script(shown(p))))}
    assert found=={}
    assert unknown('import a.b as c, d.e\nfrom learnkit.all import *\ndef f(x): return x, c, d, Learner, y\nfor i in f(1): z = i') == ['y']

def test_a_page_as_markdown():
    cell = lambda src, *outs: dict(cell_type='code', id='i', metadata={}, source=src, outputs=[*outs])
    stream,html = dict(output_type='stream', name='stdout', text='a\n 1%\r100%\n'),dict(output_type='display_data', data={'text/html':'<table><tr><th>a</th></tr><tr><td>1</td></tr></table>', 'text/plain':'x'})
    nb = json.dumps(dict(cells=[dict(cell_type='markdown', id='m', source='# T\n[e](stop_early.ipynb#a) [f](../x.py) [g](https://y.org)'), cell('1+1', stream, html), cell('#| hide\nno')]))
    text = notebooks.read('howto/t', nb, {'howto/stop_early'}, 'https://x.org')
    assert plain.markdown('howto/t', text)=='''# T
[e](stop_early.md#a) [f](https://x.org/nbs/x.py) [g](https://y.org)

```python
1+1
```

```text
a
100%
```

| a   |
| --- |
| 1   |
'''
    assert plain.script(text)=='# %% [markdown]\n# # T\n# e f g\n\n# %%\n1+1\n'
    entry = '# m\n\n`````{py:class} A(b)\n:module: m\n\nSays [c](/howto/c.ipynb)\n\n{.source}\nhere\n`````\n\n```{toctree}\n:hidden:\n\nx\n```'
    assert plain.markdown('reference/m', entry)=='# m\n\n### class `A(b)`\n\nSays [c](../howto/c.md)\n\nhere\n'

def test_each_how_to_is_listed_for_assistants():
    text = plain.llms(root/'nbs')
    listed = re.findall(r'^- \[.+\]\((.+)\.md\): ', text, re.M)
    assert {p.relative_to(root/'nbs').with_suffix('').as_posix() for p in tasks} <= {*listed} and text.startswith('# learnkit\n\n> The PyTorch')
    assert len(listed)==len({*listed})
    pages = {'index':'I', 'howto/a':'A', 'loop/x':'X', 'reference/learnkit.a':'R', 'reference/loop':'G'}
    assert [*re.findall(r'<!-- (.+)\.md', plain.in_full(pages))]==['index','howto/a','reference/learnkit.a']
