"""Writes a page for each group of chapters, with what each chapter is about, and the navigation of the site"""
import json, re
from pathlib import Path
from _build import join
from notebooks import markdown

# Page, title, and what it is about. A notebook belongs to the group of its folder, or to that of the first digit
groups = [
    ('loop', 'The loop', 'Events, callbacks and the training loop, grown from a dozen lines to the real one. '
     'This is the whole idea; all other chapters are read as they are needed.'),
    ('parts', 'Its parts', 'What the loop works with: batches, devices, seeds, data, the optimizer, losses, metrics, '
     'the history, the Recorder and progress.'),
    ('learner', 'The Learner', 'Fitting, validation, predictions, saving and loading, and the summary of a model.'),
    ('feed', 'Data', 'Data on its way in: the order of the items, mappings, limits, prefetching.'),
    ('optim', 'Optimization', 'Schedules, the learning rate finder, accumulation, clipping, mixed precision, averaged '
     'weights, MixUp.'),
    ('control', 'Control', 'When training ends and how often something happens: intervals, early stopping, keeping '
     'the best model.'),
    ('observe', 'Observation', 'What can be seen of a training: evaluation, hooks, logging, profiling, '
     'interpretation.'),
    ('recovery', 'Recovery', 'A run that is not lost: checkpoints, resuming, NaN, running out of memory, signals; '
     'and export.'),
    ('compat', 'Compatibility', "Other libraries' callbacks and names."),
    ('speed', 'Speed and scale', 'Compiled steps, memory formats, several processes.'),
    ('package', 'The package', 'What `import learnkit` and `from learnkit.all import *` give.')]
digits = {'0':'loop', '1':'parts', '2':'learner', '9':'package'}

def group_of(name):
    "The page of the group that a notebook belongs to"
    return name[4:].partition('.')[0] if '.' in name else digits[name[0]]

def title(path):
    "The title of a notebook, and the line below it that says what it is about"
    head = join(json.loads(path.read_text(encoding='utf-8'))['cells'][0]['source'])
    return re.search(r'^# (.*)', head, re.M)[1],re.search(r'^> (.*)', head, re.M)[1]

def toctree(entries, caption='', *options):
    "A table of contents that only the navigation shows"
    lines = [f':caption: {caption}'] if caption else []
    return '\n'.join(['```{toctree}', ':hidden:', *lines, *options, '', *entries, '```'])

def chapter_page(nbs, page, name, about):
    "The page of a group: its chapters and what they are about"
    found = [p for p in sorted(nbs.glob('[0-9]*.ipynb')) if group_of(p.stem)==page]
    rows = ['| [{}](../{}) | {} |'.format(title(p)[0], p.name, title(p)[1]) for p in found]
    return '\n'.join([f'# {name}', '', about, '', '| chapter | what it is about |', '|---|---|', *rows, '',
                      toctree([f'/{p.stem}' for p in found])])

def pages(nbs):
    "The pages that are made of the chapters: texts by path"
    return {f'chapters/{page}.md':chapter_page(nbs, page, name, about) for page,name,about in groups}

def add_navigation(page, text):
    "The text of a page, with the part of the navigation that begins at it: of the home page, all sections"
    folder = Path(__file__).parents[1]
    def notebooks(d): return [f'/{d}/{p.stem}' for p in sorted((folder/d).glob('*.ipynb'))]
    above = ['/examples/digits', '/examples/toolkit', '/examples/jobs', '/examples/events',
             '/examples/coming_from', '/examples/serving', '/examples/benchmarks']
    sections = {
        'index': {'Start': above[:3], 'How to': notebooks('howto'), 'Chapters': [f'/chapters/{g[0]}' for g in groups],
                  'Reference': [above[3], *(f'/reference/{g[0]}' for g in groups if g[0]!='package')],
                  'More': [*above[4:], '/changelog']},
        'examples/jobs': {'': [p for p in notebooks('examples') if p not in above]}}
    if page not in sections: return text
    nb = json.loads(text)
    trees = [toctree(pages, caption) for caption,pages in sections[page].items()]
    nb['cells'].append(markdown('navigation', '\n\n'.join(trees)))
    return json.dumps(nb)
