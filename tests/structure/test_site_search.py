"""The search of the site finds the right pages for fifty queries in the words of users of other libraries"""
import json, re, shutil, sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
import pytest

root = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root/'nbs'), str(root/'nbs/_site')]
if not find_spec('snowballstemmer'): pytest.skip("it needs Sphinx: pip install -e '.[docs]'", allow_module_level=True)
import search

queries = [l.split(' | ') for l in '''
run validation every n training steps | howto/train_by_steps
limit number of batches per epoch | howto/train_on_a_stream howto/train_by_steps
fix random seed same results every run | howto/make_it_reproducible
different results with num_workers | howto/make_it_reproducible
slurm requeue preempted job | howto/train_on_slurm howto/stop_on_a_signal
sigterm save checkpoint before time limit | howto/stop_on_a_signal howto/train_on_slurm
resume training from checkpoint mid epoch | howto/resume_after_a_crash
cuda oom when increasing batch size | howto/out_of_memory
gradient checkpointing | howto/out_of_memory howto/large_model speed/20b_recompute
fsdp large model | howto/large_model speed/30b_fully_shard
ddp multi gpu training | howto/several_processes
class_weight for unbalanced dataset | howto/imbalanced_data howto/write_a_loss
weighted loss in trainer | howto/write_a_loss howto/imbalanced_data howto/loss_with_inputs
multiple losses log each one | howto/write_a_loss
custom loss with extra arguments | howto/loss_with_inputs howto/write_a_loss
manual optimization | howto/two_optimizers howto/own_training_step
generator discriminator training | howto/two_optimizers examples/gan
override training_step | howto/own_training_step
order of get_preds on test set | howto/predict_new_items learner/40c_predict
inference on single image | howto/predict_new_items
save predictions to csv | howto/predict_a_folder howto/predict_new_items
load_learner on cpu | howto/save_and_load howto/predict_new_items
convert model to onnx | howto/export_a_model examples/serving
torchscript | howto/export_a_model examples/serving
restore best weights after training | howto/stop_early callbacks/65b_save_model
patience monitor val_loss | howto/stop_early callbacks/65a_early_stopping
stop training when accuracy reaches 95 | howto/stop_early howto/skip_or_stop
reduce lr on plateau | howto/schedule_the_learning_rate callbacks/65c_plateau
cosine schedule with warmup | howto/schedule_the_learning_rate optim/20b_warmup
print learning rate each step | howto/output_and_steps
disable progress bar | howto/output_and_steps
discriminative learning rates | howto/learning_rates_by_layer
unfreeze layers gradually | howto/freeze_a_backbone
fp16 loss becomes nan | howto/debug_nan howto/mixed_precision
clip_grad_norm | howto/clip_gradients
effective batch size with accumulation steps | howto/accumulate_gradients
iterabledataset has no len | howto/train_on_a_stream
model takes a dict as input | howto/several_inputs
multiple dataloaders for validation | howto/several_validation_sets
combine two train dataloaders | howto/several_training_sets
log images to tensorboard | howto/log_to_tensorboard contrib/00_tensorboard
custom logger | howto/write_a_logger
f1 score metric on epoch end | howto/write_a_metric
kfold cross validation | howto/cross_validate examples/tabular_cv contrib/30_sklearn
grid search | howto/search_hyper_parameters contrib/30_sklearn
training slow gpu utilization low | howto/find_what_is_slow
extract embeddings from layer before last | howto/features
exponential moving average of weights | howto/average_the_weights
callback on batch end | howto/write_a_callback
plot confusion matrix | howto/look_at_the_mistakes
'''.strip().splitlines()]

# Common first queries, and the page that must be among the first three results
first_words = [l.split(' | ') for l in '''
use GPU | howto/choose_the_device
cuda | howto/choose_the_device
device | howto/choose_the_device
install | howto/install
quickstart | examples/digits
getting started | examples/digits
image classification | howto/classify_images
data augmentation | howto/augment_images
train without validation set | howto/train_without_validation
ema | howto/average_the_weights
tutorial for beginners | examples/digits book/01_loop_by_hand
fine tune pretrained resnet | examples/timm_finetune howto/freeze_a_backbone
train on apple silicon mps | howto/choose_the_device
self supervised learning | examples/byol
reinforcement learning | examples/actor_critic
tabular data csv | examples/tabular_cv
images with labels in a csv | howto/train_on_csv_and_images
deploy model rest api | examples/serving
migrate from pytorch lightning | examples/coming_from
'''.strip().splitlines()]

@cache
def index(): return search.index(root/'nbs', {})

def place(query, pages):
    "The rank of the first of `pages` among the results; 99 if there is none"
    found = [url.removesuffix('.html') for url in search.rank(index(), query)]
    return next((i+1 for i,page in enumerate(found) if page in pages.split()), 99)

@pytest.mark.slow
def test_the_right_page_is_among_the_first_three():
    pages = {url.removesuffix('.html') for url,*_ in index()['pages']}
    assert {p for _,right in queries for p in right.split()} <= pages
    places = {query:place(query, right) for query,right in queries}
    assert len(places)==50 and sum(n<=3 for n in places.values())>=47 and sum(n==1 for n in places.values())>=42, places

@pytest.mark.parametrize('query,page', first_words)
def test_common_queries_find_a_page_among_the_first_three(query, page): assert place(query, page)<=3

def test_search_terms_are_hidden_on_pages():
    "They are in a Markdown comment, and are removed from the script of a page"
    import plain
    visible = [p.stem for p in (root/'nbs').rglob('*.ipynb') if re.search(r'(?<!<!-- )Also searched for as', p.read_text(encoding='utf-8'))]
    assert [name for name in visible if name!='search']==[]
    page = json.dumps(dict(cells=[dict(cell_type='markdown', source=t) for t in ('Text\n\n<!-- Also searched for as: a, b -->', '<!-- Also searched for as: c -->')]))
    assert 'searched' not in plain.script(page) and 'Text' in plain.script(page)

@pytest.mark.parametrize('query', ['', '?', 'zzzzqqq'])
def test_queries_without_results(query): assert search.rank(index(), query)==[]

@pytest.mark.parametrize('a,b', [('Fine tune', 'fine-tuning'), ('mix up', 'MixUp'), ('early stop', 'EarlyStopping'), ('MULTI GPU', 'multi-gpu')])
def test_spellings_of_a_query_share_words(a, b): assert {*search.wanted(a)} & {*search.wanted(b)}

def test_an_unfinished_word_is_found():
    assert 'howto/make_it_reproducible.html' in search.rank(index(), 'reproducibi')[:3] + search.rank(index(), 'reprod')[:3]

def test_entries_of_the_reference_are_found_by_their_names(tmp_path):
    shutil.copytree(root/'nbs/howto', tmp_path/'howto', ignore=shutil.ignore_patterns('out'))
    reference = {'reference/learnkit.x.md': '`````{py:class} CancelBatch(message)\n:module: learnkit.x\n\nEnds *this* batch\n`````\n\n'
                 '`````{py:method} Learner.fit(n)\n:module: learnkit.x\n:classmethod: \n\nTrain\n`````'}
    idx = search.index(tmp_path, reference)
    assert search.rank(idx, 'CancelBatch')[0]=='reference/learnkit.x.html#learnkit.x.CancelBatch'
    assert 'reference/learnkit.x.html#learnkit.x.Learner.fit' in search.rank(idx, 'Learner.fit')[:3]

@pytest.mark.check
def test_each_how_to_has_search_terms():
    lines = {p.stem:search.also.findall(p.read_text(encoding='utf-8').replace('"', '\n')) for p in (root/'nbs/howto').glob('*.ipynb')}
    few = [n for n,found in lines.items() if len(found)!=1 or found[0].count(',')<3]
    assert few==[], 'end each with `<!-- Also searched for as: … -->`, with four words of other libraries or more'
