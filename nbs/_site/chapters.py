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

# The same of the how-tos, with their names in the order of the page; what stands in no group comes last
howtos = [
    ('data', 'Data', 'What goes into the model, and what is it measured on?',
     'several_inputs train_on_a_stream several_validation_sets'),
    ('training', 'Training', 'How long, how fast, from where, and when is it enough?',
     'train_by_steps find_a_learning_rate schedule_the_learning_rate learning_rates_by_layer freeze_a_backbone '
     'use_transformers clip_gradients mixup average_the_weights stop_early two_optimizers make_it_reproducible '
     'search_hyper_parameters'),
    ('saving', 'Saving, resuming, predicting', 'What is left of a run, and how it goes on.',
     'save_and_load resume_after_a_crash stop_on_a_signal predict_new_items'),
    ('looking', 'Looking and logging', 'What the data, the run and the mistakes look like.',
     'look_at_the_mistakes log_to_a_file log_to_tensorboard log_to_wandb log_to_mlflow write_a_logger'),
    ('own', 'Losses, metrics, callbacks', 'Parts of your own.',
     'write_a_loss write_a_metric write_a_callback skip_or_stop test_a_callback'),
    ('scale', 'Speed, memory, faults', 'Larger models, more devices, and what goes wrong.',
     'mixed_precision accumulate_gradients out_of_memory several_processes train_on_slurm train_on_kubernetes '
     'train_with_ray start_with_accelerate find_what_is_slow debug_nan')]
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

def table(paths, nbs, head='chapter', above=''):
    "A table of notebooks and what they are about, with links that begin with `above`"
    rows = ['| [{}]({}) | {} |'.format(title(p)[0], above+p.relative_to(nbs).as_posix(), title(p)[1]) for p in paths]
    return '\n'.join([f'| {head} | what it is about |', '|---|---|', *rows])

def group_page(paths, nbs, name, about, head):
    "The page of a group: its notebooks and what they are about"
    entries = toctree(['/'+p.relative_to(nbs).with_suffix('').as_posix() for p in paths])
    return '\n\n'.join([f'# {name}', about, table(paths, nbs, head, '../'), entries])

def chapters_of(nbs, page):
    "The chapters of a group"
    return [p for p in sorted(nbs.glob('[0-9]*.ipynb')) if group_of(p.stem)==page]

def howtos_of(nbs, page):
    "The how-tos of a group"
    named = {k:names.split() for k,_,_,names in howtos}
    grouped = [n for names in named.values() for n in names]
    rest = [p.stem for p in sorted((nbs/'howto').glob('*.ipynb')) if p.stem not in grouped]
    return [nbs/'howto'/f'{n}.ipynb' for n in named[page] + rest*(page==howtos[-1][0])]

def pages(nbs):
    "The pages that are made of the chapters and the how-tos: texts by path"
    res = {f'chapters/{k}.md':group_page(chapters_of(nbs, k), nbs, *of, 'chapter') for k,*of in groups}
    return res | {f'chapters/howto-{k}.md':group_page(howtos_of(nbs, k), nbs, *of, 'how to') for k,*of,_ in howtos}

def add_navigation(page, text):
    "The text of a page, with the part of the navigation that begins at it: of the home page, all sections"
    folder = Path(__file__).parents[1]
    def notebooks(d): return [f'/{d}/{p.stem}' for p in sorted((folder/d).glob('*.ipynb'))]
    above = ['/examples/digits', '/examples/toolkit', '/examples/jobs', '/examples/events',
             '/examples/coming_from', '/examples/serving', '/examples/benchmarks']
    sections = {
        'index': {'Start': above[:3], 'How to': [f'/chapters/howto-{h[0]}' for h in howtos],
                  'Chapters': [f'/chapters/{g[0]}' for g in groups],
                  'Reference': [above[3], *(f'/reference/{g[0]}' for g in groups if g[0]!='package')],
                  'More': [*above[4:], '/changelog']},
        'examples/jobs': {'': [p for p in notebooks('examples') if p not in above]}}
    if page not in sections: return text
    nb = json.loads(text)
    trees = [toctree(pages, caption) for caption,pages in sections[page].items()]
    nb['cells'].append(markdown('navigation', '\n\n'.join(trees)))
    return json.dumps(nb)
