"""Writes a page for each group of chapters, with what each chapter is about, and the navigation of the site"""
import json, re
from pathlib import Path
from _build import join, module_of
from notebooks import markdown

# What is read from front to back: folder, title, and what it is about
book = ('book', 'The book', 'Read it from front to back, in an evening or two: from a hand-written loop to a small '
        'Learner that you build, and from there to this one. You need to know PyTorch, and nothing of this library.')

# Page, title, and what it is about. A notebook belongs to the group of its folder, which is a room of the library
groups = [
    ('loop', 'Loop', 'Events and Cancels, callbacks, the dispatcher, the stream of batches, the training loop and its '
     'runs. This is the whole idea; read the others as you need them.'),
    ('data', 'Data', 'Nested data, batches, devices, random numbers, snapshots, loaders, seeded and stateful data, '
     'files.'),
    ('optim', 'Optim', 'Parameter groups, the optimizer, schedules as functions, and which parameters learn at which '
     'rate.'),
    ('measure', 'Measure', 'Losses, metrics, the history and the Recorder; what is not finite.'),
    ('learner', 'Learner', 'The Learner, `fit`, predictions and how they are gathered, bars, saving, the summary '
     'of a model.'),
    ('callbacks', 'Callbacks', 'What you add to the loop: intervals, stopping, keeping the best model, schedules, '
     'the learning rate finder, accumulation, mixed precision, averaged weights, MixUp, prefetching.'),
    ('observe', 'Observe', 'What you can see of a run: logs, profiles, hooks and statistics, evaluation, '
     'interpretation.'),
    ('recovery', 'Recovery', 'A run that is not lost: checkpoints, its state and identity, NaN, running out of memory, '
     'signals; and export.'),
    ('processes', 'Processes', 'Several processes that train together: launchers, synchronization, sharded data, '
     'fault tolerance.'),
    ('speed', 'Speed', 'Compiled and fused steps, virtual shards, sharded models, memory.'),
    ('contrib', 'Contrib', 'Integrations with other products: loggers, searches, bars, estimators, callbacks of other '
     'libraries, fastai\'s names.'),
    ('package', 'The package', 'What `import learnkit` and `from learnkit.all import *` give.')]

# The same of the how-tos, with their names in the order of the page; what stands in no group comes last
howtos = [
    ('data', 'Install, device, data', 'What do I need, where does it run, and what does the model get?',
     'install choose_the_device classify_images train_on_csv_and_images augment_images several_inputs imbalanced_data '
     'train_on_a_stream several_training_sets several_validation_sets train_without_validation change_batch_size '
     'train_a_graph_network'),
    ('training', 'Training', 'How long, how fast, from where, and when is it enough?',
     'train_by_steps find_a_learning_rate schedule_the_learning_rate learning_rates_by_layer freeze_a_backbone '
     'use_transformers train_a_language_model clip_gradients mixup average_the_weights stop_early two_optimizers '
     'make_it_reproducible cross_validate settings_from_the_command_line search_hyper_parameters'),
    ('saving', 'Saving, resuming, predicting', 'What a run leaves, and how to continue it.',
     'save_and_load export_a_model resume_after_a_crash stop_on_a_signal predict_new_items predict_a_folder features'),
    ('looking', 'Looking and logging', 'What the data, the run and the mistakes look like.',
     'look_at_the_mistakes pause_and_resume why_the_loss_jumped another_rate_from_a_step output_and_steps '
     'log_to_a_file '
     'log_to_tensorboard log_to_wandb log_to_mlflow write_a_logger'),
    ('own', 'Losses, metrics, callbacks', 'Parts of your own.',
     'write_a_loss loss_with_inputs write_a_metric write_a_callback own_training_step skip_or_stop test_a_callback'),
    ('scale', 'Speed, memory, faults', 'Larger models, more devices, and what goes wrong.',
     'mixed_precision accumulate_gradients out_of_memory several_processes machines_come_and_go large_model '
     'train_on_slurm train_on_kubernetes train_with_ray start_with_accelerate find_what_is_slow debug_nan')]

def group_of(page):
    "The group that the page of a chapter belongs to"
    return page.rpartition('/')[0] or 'package'

def title(path):
    "The title of a notebook, and the line below it that says what it is about"
    head = join(json.loads(path.read_text(encoding='utf-8'))['cells'][0]['source'])
    return re.search(r'^# (.*)', head, re.M)[1],re.search(r'^> (.*)', head, re.M)[1]

def toctree(entries, caption='', *options):
    "A table of contents that only the navigation shows"
    lines = [f':caption: {caption}'] if caption else []
    return '\n'.join(['```{toctree}', ':hidden:', *lines, *options, '', *entries, '```'])

def table(paths, nbs, head='how to', above=''):
    "A table of notebooks and what they are about, with links that begin with `above`"
    rows = ['| [{}]({}) | {} |'.format(title(p)[0], above+p.relative_to(nbs).as_posix(), title(p)[1]) for p in paths]
    return '\n'.join([f'| {head} | what it is about |', '|---|---|', *rows])

def module(path):
    "The name of the module that a notebook exports into, without its room"
    cells = json.loads(path.read_text(encoding='utf-8'))['cells']
    return module_of(join(c['source']) for c in cells if c['cell_type']=='code').rpartition('.')[2]

def chapter_table(paths, nbs, above=''):
    "The same of chapters, with the module before the first one of each"
    head,rule,*rows = table(paths, nbs, 'chapter', above).splitlines()
    names = [module(p) for p in paths]
    first = [f'`{n}`' if n!=before else '' for before,n in zip(['', *names], names)]
    return '\n'.join([f'| module {head}', f'|---{rule}', *(f'| {n} {row}' for n,row in zip(first, rows))])

def group_page(paths, nbs, name, about, rows, reference=None):
    "The page of a group: its notebooks in a table, which the function `rows` makes, and its page of the `reference`"
    entries = ['/'+p.relative_to(nbs).with_suffix('').as_posix() for p in paths]
    if reference is not None:
        about += f'\n\nThe [reference](/{reference}) lists the functions and classes of these modules.'
        entries.insert(0, f'Reference </{reference}>')
    mark = '{.chapters}\n' if rows is chapter_table else ''
    return '\n\n'.join([f'# {name}', about, mark + rows(paths, nbs, above='../'), toctree(entries)])

def chapters_of(nbs, page):
    "The chapters of a group"
    return sorted((nbs if page=='package' else nbs/page).glob('[0-9]*.ipynb'))

def howtos_of(nbs, page):
    "The how-tos of a group"
    named = {k:names.split() for k,_,_,names in howtos}
    grouped = [n for names in named.values() for n in names]
    rest = [p.stem for p in sorted((nbs/'howto').glob('*.ipynb')) if p.stem not in grouped]
    return [nbs/'howto'/f'{n}.ipynb' for n in named[page] + rest*(page==howtos[-1][0])]

def pages(nbs):
    "The pages that are made of the chapters and the how-tos: texts by path"
    def chapters(k, *of):
        reference = None if k=='package' else f'reference/{k}'
        return group_page(chapters_of(nbs, k), nbs, *of, chapter_table, reference)
    res = {f'chapters/{k}.md':chapters(k, *of) for k,*of in groups}
    return res | {f'chapters/howto-{k}.md':group_page(howtos_of(nbs, k), nbs, *of, table) for k,*of,_ in howtos}

def add_navigation(page, text):
    "The text of a page, with the part of the navigation that begins at it: of the home page, all sections"
    folder = Path(__file__).parents[1]
    def notebooks(d): return [f'/{d}/{p.stem}' for p in sorted((folder/d).glob('*.ipynb'))]
    above = ['/examples/digits', '/examples/toolkit', '/examples/jobs', '/examples/events',
             '/examples/coming_from', '/examples/serving', '/examples/benchmarks']
    sections = {
        'index': {book[1]: notebooks(book[0]), 'Start': above[:3],
                  'How to': [f'/chapters/howto-{h[0]}' for h in howtos],
                  'Source and reference': [above[3], '/reference/names', *(f'/chapters/{g[0]}' for g in groups)],
                  'More': [*above[4:], '/changelog']},
        'examples/jobs': {'': [p for p in notebooks('examples') if p not in above]}}
    if page not in sections: return text
    nb = json.loads(text)
    trees = [toctree(pages, caption) for caption,pages in sections[page].items()]
    nb['cells'].append(markdown('navigation', '\n\n'.join(trees)))
    return json.dumps(nb)
