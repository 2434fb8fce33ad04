"Packages learnkit. Everything that varies stands in settings.ini, which nbdev reads too."
import subprocess, sys
if sys.version_info < (3, 11): sys.exit('learnkit needs Python 3.11 or newer, and this is %s' % sys.version.split()[0])
from configparser import ConfigParser
from pathlib import Path
from setuptools import setup, find_packages
from setuptools.command.sdist import sdist

root = Path(__file__).parent
cp   = ConfigParser(delimiters=['='])
cp.read_string((root/'settings.ini').read_text(encoding='utf-8'))
cfg  = cp['DEFAULT']

stages   = dict(zip('123456', ['Planning', 'Pre-Alpha', 'Alpha', 'Beta', 'Production/Stable', 'Mature']))
licenses = dict(apache2='Apache-2.0')
extras   = {k.removesuffix('_requirements'): v.split() for k,v in cfg.items() if k.endswith('_requirements')}

# What is made of the modules is not in the repository; a source distribution has it, and not what makes it
stubs = root/'nbs/_stubs.py'
if stubs.is_file(): subprocess.run([sys.executable, stubs], check=True)

class SourceDist(sdist):
    "A source distribution with settings.ini, which this file reads; a wheel has no need of it"
    def make_distribution(self):
        self.filelist.append('settings.ini')
        super().make_distribution()

setup(
    name=cfg['lib_name'], version=cfg['version'], description=cfg['description'], keywords=cfg['keywords'],
    author=cfg['author'], author_email=cfg['author_email'], url=cfg['git_url'], license=licenses[cfg['license']],
    long_description=(root/'README.md').read_text(encoding='utf-8'), long_description_content_type='text/markdown',
    classifiers=[f"Development Status :: {cfg['status']} - {stages[cfg['status']]}",
                 f"Intended Audience :: {cfg['audience']}", f"Natural Language :: {cfg['language']}",
                 'Programming Language :: Python :: 3'],
    python_requires=f">={cfg['min_python']}", install_requires=cfg['requirements'].split(), extras_require=extras,
    packages=find_packages(root, include=['learnkit', 'learnkit.*']), zip_safe=False,
    package_data={'': ['*.pyi', 'py.typed', '_docs.json']},   # what editors and type checkers read, and `help`
    cmdclass=dict(sdist=SourceDist))
