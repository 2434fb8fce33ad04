"Installation is described on one page, extras that pages and messages name exist, and an old Python gets a clear error"
import ast, re, subprocess, sys
from configparser import ConfigParser
from importlib.metadata import requires
from pathlib import Path
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

root = Path(__file__).resolve().parents[2]
cp = ConfigParser(delimiters=['=']); cp.read(root/'settings.ini', encoding='utf-8')
extras = {k.removesuffix('_requirements') for k in cp['DEFAULT'] if k.endswith('_requirements')}
sources = [*(root/'nbs').rglob('*.ipynb'), *(root/'learnkit').rglob('*.py'), *(root/'nbs/examples').glob('*.py')]
pages = [*sorted(p for p in sources if '/.' not in p.relative_to(root).as_posix()), *(root/f for f in ('README.md','CONTRIBUTING.md','CHANGELOG.md'))]
one_place = 'nbs/howto/install.ipynb'

def named(text):
    "The extras of learnkit that a text names: `learnkit[plot]`, `.[plot]`, the extra `plot`"
    lists  = re.findall(r"(?:learnkit|['\" ]\.)\[([a-z,]+)\]", text)
    lists += re.findall(r"\[?\bextras?\]?(?:\(\S*\))?(?::|,)? `([a-z]+)`", text)
    return {extra for names in lists for extra in names.split(',')}

@pytest.mark.check
def test_extras_that_pages_name_exist():
    found = {f'{p.relative_to(root)}: {e}' for p in pages for e in named(p.read_text(encoding='utf-8'))-extras}
    assert found==set(), f'settings.ini has no such extra: {found}'
    text = "pip install 'learnkit[plot,gone]' '.[a]' the [extra](../howto/install.ipynb) `b`, an [extra](install.ipynb): `c`, extra `d`"
    assert named(text)=={'plot','gone','a','b','c','d'}

@pytest.mark.slow
def test_extras_that_messages_name_exist():
    required = set()
    for p in (root/'learnkit').rglob('*.py'):
        calls = [n for n in ast.walk(ast.parse(p.read_text(encoding='utf-8'))) if isinstance(n, ast.Call) and getattr(n.func, 'id', '')=='optional_import']
        required |= {n.args[2].value for n in calls}
    assert required<=extras and len(required)>5

@pytest.mark.check
def test_one_page_says_how_to_install():
    typed = [p.relative_to(root).as_posix() for p in pages if re.search(r'pip install .?learnkit\b(?!-)', p.read_text(encoding='utf-8'))]
    assert [t for t in typed if t!=one_place]==[], f'learnkit is on no index yet: link to {one_place}'

def test_an_old_python_prints_which_one_is_needed():
    code = f"import sys; sys.version_info,sys.version = (3, 10, 13),'3.10.13 (main)'; exec(open({str(root/'setup.py')!r}).read())"
    res = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert res.returncode==1 and res.stderr.strip()=='learnkit needs Python 3.11 or newer, and this is 3.10.13'

def needed(name):
    "The packages that `pip install` of this one installs, itself included, by the metadata of the installed packages"
    found,due = set(),[name]
    while due:
        package = canonicalize_name(due.pop())
        if package in found: continue
        found.add(package)
        required = [Requirement(r) for r in requires(package) or ()]
        due += [r.name for r in required if r.marker is None or r.marker.evaluate({'extra':''})]
    return found

@pytest.mark.check
def test_the_readme_names_each_package_that_comes_with_learnkit():
    packages = needed('learnkit')-needed('torch')-{'learnkit'}
    text = ' '.join((root/'README.md').read_text(encoding='utf-8').split())
    assert packages=={'fastcore','fastprogress'} and 'Besides PyTorch, this installs two packages, fastcore and fastprogress.' in text
