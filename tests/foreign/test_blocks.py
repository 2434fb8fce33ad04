"""Runs the code of three documents on callbacks (fastNLP's tutorial, Composer's page, a guide to pytorch-accelerated)
unchanged except for the lines in `CHANGED`: imports of the other package, or of an old torchmetrics. The documents are
not part of learnkit; they are looked for in the folder LEARNKIT_SEEDS, or in `../shared/seeds`, and tests that need one
are skipped without it. The table of `coming_from` is always compared with `CHANGED`."""
import csv, inspect, json, os, re, sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace

import pytest, torch
from fastcore.test import test_eq as eq
from torch import nn
from torch.nn import functional as F

from learnkit.contrib import composer, fastnlp, pytorch_accelerated as pa
from learnkit.loop.names import names_in

root = Path(__file__).resolve().parents[2]
folder = Path(os.environ.get('LEARNKIT_SEEDS', root.parent/'shared/seeds'))

# document -> number of a block -> {the document's line: ours}
CHANGED = {
'fastNLP': {
    4:  {'from fastNLP import Callback': 'from learnkit.contrib.fastnlp import Callback'},
    5:  {'from fastNLP import Trainer': 'from learnkit.contrib.fastnlp import Trainer'},
    7:  {'from fastNLP import HasMonitorCallback': 'from learnkit.contrib.fastnlp import HasMonitorCallback'},
    8:  {'from fastNLP import Accuracy': 'from learnkit.contrib.fastnlp import Accuracy'},
    10: {'from fastNLP.core import Event': 'from learnkit.contrib.fastnlp import Event'}},
'Composer': {},   # the page has no imports
'pytorch-accelerated': {
    1: {'from torchmetrics import MetricCollection, Accuracy, Precision, Recall':
        'from torchmetrics import MetricCollection\nfrom torchmetrics.classification import '
        'MulticlassAccuracy as Accuracy, MulticlassPrecision as Precision, MulticlassRecall as Recall'}}}
RUN = {'fastNLP':(4,5,6,7,8,9,10,11,12,13,14), 'Composer':(1,2), 'pytorch-accelerated':(1,2,3,4,5)}

def document(words):
    "Return the text of the document that contains these words; skip the test without it"
    found = [t for p in sorted(folder.glob('*.txt')) if words in (t := p.read_text(encoding='utf-8'))]
    if not found: pytest.skip('the documents are not here')
    return found[0]

def apply_changes(doc, i, src):
    "Return the source of a block with our lines in place of the document's"
    for theirs,ours in CHANGED[doc].get(i, {}).items():
        assert src.count(theirs)==1, (doc, i, theirs)
        src = src.replace(theirs, ours)
    return src

def test_the_table_of_coming_from_counts_the_changed_blocks():
    page = json.loads((root/'nbs/examples/coming_from.ipynb').read_text(encoding='utf-8'))
    text = '\n'.join(''.join(c['source']) for c in page['cells']).split('| document | blocks that run')[1].split('\n\n')[0]
    rows = {d:(int(n), int(same)) for d,n,same in re.findall(r'^\| (?:\[)?([\w-]+)[^|]* \| (\d+) \| (\d+) \|', text, re.M)}
    eq({d:rows[d] for d in RUN}, {d:(len(ns), len(ns)-len(CHANGED[d])) for d,ns in RUN.items()})

# fastNLP

def cells(text):
    "Return {number: source} of the cells of a notebook that was printed as text"
    ends = r'Output\(\)|&emsp;|#{2,3} |\d+$|Reusing|Processing'
    found = re.split(r'^In \[(\d+)\]:\n', text, flags=re.M)[1:]
    return {int(i):re.split(rf'^(?:{ends})', src, flags=re.M)[0] for i,src in zip(found[::2], found[1::2])}

class CNNText(nn.Module):
    "Replaces fastNLP's model: takes entries of the batch by name, and returns the prediction and its loss"
    def __init__(self, embed, num_classes, dropout):
        super().__init__()
        self.embed,self.drop,self.out = nn.EmbeddingBag(embed[0], 8),nn.Dropout(dropout),nn.Linear(8, num_classes)
    def forward(self, words, target=None, seq_len=None):
        pred = self.out(self.drop(self.embed(words)))
        return dict(pred=pred) if target is None else dict(pred=pred, loss=F.cross_entropy(pred, target))

def words(n, bs):
    "Batches in the form that fastNLP's loaders yield"
    ids = torch.randint(0, 50, (n, 6), generator=torch.Generator().manual_seed(0))
    return [dict(words=i, target=(i[:,0]>25).long(), seq_len=torch.full((len(i),), 6)) for i in ids.split(bs)]

@pytest.fixture(scope='module')
def tutorial():
    "Run the whole tutorial once; return {number of a cell: printed lines}"
    text,out = document('Trainer.on 实现个性化的训练过程'),{}
    names = dict(CNNText=CNNText, vocab=range(50), train_dataloader=words(80, 16), val_dataloader=words(20, 4))
    torch.manual_seed(0)
    names['model'] = CNNText((50, 224), 2, .2)
    import contextlib, io
    for i,src in cells(text).items():
        if i not in RUN['fastNLP']: continue
        with contextlib.redirect_stdout(io.StringIO()) as f: exec(compile(apply_changes('fastNLP', i, src), f'In [{i}]', 'exec'), names)
        out[i] = f.getvalue().splitlines()
    return out

def test_printed_progress(tutorial):
    lines = tutorial[5]
    eq([o for o in lines if re.match('Now|Epoch|Training|End|Quit', o)][:3], ['Now start training...', 'Epoch 1/1', 'Training Batch 1/5...'])
    losses = [float(o.split()[1]) for o in lines if o.startswith('Loss:')]
    end, = [o for o in lines if o.startswith('End Epoch 1')]
    assert len(losses)==5 and abs(float(end.split()[-1])-sum(losses)/5)<1e-6 and lines[-1]=='Quit training process.'
    eq(sum(o.startswith('Batch Words:') for o in lines), 5)

def test_monitored_metric(tutorial):
    "The model is evaluated after every tenth of 40 epochs"
    lines = [o for o in tutorial[8] if o.startswith('Epoch:')]
    eq([o.split(',')[0] for o in lines], [f'Epoch: {n}/40' for n in (11,21,31,41)])
    best = -1.
    for o in lines:
        v = float(o.split()[-1])
        assert ("is better" in o)==(v>best)
        best = max(v, best)

@pytest.mark.parametrize('cell,at', [(10, range(1, 11)), (11, range(2, 11, 2)), (12, [2]), (13, range(2, 11, 2))])
def test_functions_at_events(tutorial, cell, at):
    eq([o.split(' Loss')[0] for o in tutorial[cell] if o.startswith('Total')], [f'Total Batches {i}/10' for i in at])

def test_the_order_of_events():
    "Methods are called in the order of the tutorial's sketch of a run, with the arguments of the base class"
    sketch = re.search(r'```python\n(Trainer.__init__.*?)```', document('Trainer.on 实现个性化的训练过程'), re.S)[1]
    order = re.findall(r'(on_\w+)\(([^)]*)\)', sketch)
    base = dict(re.findall(r'def (on_\w+)\(self, ([^)]*)\)', document("class _CallbackWrapper(Callback)")))
    base = {k:re.sub(r':\s*[\w\[\]]+', '', v) for k,v in base.items()}
    eq(set(base), set(names_in('fastNLP')))
    seen = []
    methods = {k:eval(f"lambda self, {args}: seen.append('{k}')", dict(seen=seen)) for k,args in base.items()}
    model = CNNText((50, 8), 2, 0.)
    trainer = fastnlp.Trainer(model, words(4, 2), torch.optim.Adam(model.parameters()), n_epochs=1, callbacks=[type('All', (fastnlp.Callback,), methods)()])
    with trainer.learn.no_bar(), trainer.learn.no_logging(): trainer.run()
    names = [k for k,_ in order if k not in ('on_sanity_check_begin','on_sanity_check_end','on_exception')]
    first,last = names.index('on_fetch_data_begin'),names.index('on_train_batch_end')
    want = [*names[:first], *names[first:last+1]*2, *names[first:first+2], *names[last+1:]]   # the third finds no batch
    eq(seen, want)

# Composer

def restore_indentation(lines):
    "Restore the lost indentation of a block: one level deeper after each line that ends with a colon"
    depth,res = 0,[]
    for line in lines:
        res.append(' '*4*depth + line.strip())
        depth += line.rstrip().endswith(':')
    return '\n'.join(res)

@pytest.mark.parametrize('i', RUN['Composer'])
def test_event_method_and_run_event(i, capsys):
    "A callback may define a method for the event, or `run_event` for all events"
    text = document('class composer.Callback(')
    examples = re.findall(r'(class MyCallback\(Callback\):.*?)construct trainer.*?\n(trainer = Trainer\(.*?\.\.\. \))trainer will.*?\n.*?(_ = trainer.engine.run_event\(\S+\))\n(Epoch: \d)', text, re.S)
    cls,make,fire,printed = examples[i-1]
    def plain(s): return re.sub(r'^\.\.\. ', '', s, flags=re.M)
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    data = [*zip(torch.randn(4, 8, 4), torch.randn(4, 8, 1))]
    names = dict(vars(composer), State=composer.ComposerState, Logger=composer.ComposerLogger, train_dataloader=data, eval_dataloader=data,
                 model=model, optimizer=torch.optim.SGD(model.parameters(), .1))
    exec(restore_indentation(plain(cls).splitlines()), names)
    exec(plain(make), names)
    exec(fire, names)
    eq(capsys.readouterr().out.strip(), printed)
    learn = names['trainer'].learn
    learn.loss_func = nn.MSELoss()
    with learn.no_bar(), learn.no_logging(): names['trainer'].fit()
    eq(capsys.readouterr().out.strip(), printed)

def test_every_method_of_the_page_is_an_event():
    methods = re.findall(r'^(\w+)\(state, logger\)\[source\]', document('class composer.Callback('), re.M)
    assert len(methods)>30 and set(methods)<=set(names_in('Composer'))
    for k in methods: eq(composer.Event[k.upper()].value, k)

# pytorch-accelerated

def code_blocks(): return re.findall(r'^```python\n(.*?)^```', document('pytorch-accelerated解析'), re.S | re.M)
def examples(): return [b for b in code_blocks() if re.search(r'^class \w+\(|^import|^from', b, re.M) and 'class pytorch_accelerated.' not in b]

class Frame:
    "Replaces the only part of pandas that the guide uses"
    def __init__(self, d): self.d = d
    from_dict = classmethod(lambda cls, d: cls(d))
    def to_csv(self, path, index):
        with open(path, 'w', newline='') as f: csv.writer(f).writerows([self.d, *zip(*self.d.values())])

def images(n, bs=4): return [(x, torch.tensor(i%3)) for i,x in enumerate(torch.randn(n, 1, 28, 28))]

def run_blocks_and_train(i, monkeypatch, cbs, trainer='Trainer'):
    "Run the blocks `i`, and train with the callbacks that they define; return the trainer and what was sent to MLflow"
    sent = SimpleNamespace(uri=None, tags=None, metrics=[])
    fake = SimpleNamespace(set_tracking_uri=lambda u: setattr(sent, 'uri', u), set_tags=lambda t: setattr(sent, 'tags', t), log_metrics=sent.metrics.append)
    frames = SimpleNamespace(DataFrame=Frame, __spec__=ModuleSpec('pandas', None))   # PyTorch reads each module's spec
    for k,m in dict(mlflow=fake, pandas=frames).items(): monkeypatch.setitem(sys.modules, k, m)
    monkeypatch.setenv('MLFLOW_TRACKING_URI', 'here')
    names = dict(vars(pa), os=os)
    for k in i: exec(apply_changes('pytorch-accelerated', k, examples()[k-1]), names)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 3))
    t = names[trainer](model, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), .1), cbs(names))
    t.learn.remove_cb(t.learn.progress)
    with t.learn.no_logging(): t.train(images(16), 2, eval_dataset=images(12), per_device_batch_size=4)
    return t,sent

def test_metrics_into_the_history(monkeypatch):
    pytest.importorskip('torchmetrics')
    t,_ = run_blocks_and_train([1], monkeypatch, lambda ns: [ns['ClassificationMetricsCallback'](3)])
    row = t.learn.recorder.history[-1]
    preds,targs = t.learn.get_preds()
    recall = torch.stack([(preds.argmax(1)[targs==c]==c).float().mean() for c in range(3)]).mean()
    assert abs(row['recall']-recall)<1e-6 and {'accuracy','precision'}<=set(row) and t.run_history.get_metric_values('recall')[-1]==row['recall']

def test_a_logger_sends_the_mean_loss(monkeypatch):
    "The training loss that a logger sends is the mean over the epoch, not the smoothed value of the table"
    losses = [],[]
    class Losses(pa.TrainerCallback):
        def on_train_step_end(self, trainer, batch_output, **kwargs): losses[trainer.run_history.current_epoch-1].append(batch_output['loss'].item())
    t,sent = run_blocks_and_train([2], monkeypatch, lambda ns: [ns['AzureMLLoggerCallback'](), Losses()])
    assert sent.uri=='here' and sent.tags['num_epochs']==2 and sent.tags['train_per_device_batch_size']==4
    assert [len(o) for o in losses]==[4, 4]
    want = [{k:v} for own,row in zip(losses, t.learn.recorder.history) for k,v in (('train_loss_epoch', sum(own)/4), ('eval_loss_epoch', row['valid_loss']))]
    eq([[*o] for o in sent.metrics], [[*o] for o in want])
    for o,w in zip(sent.metrics, want): assert o==pytest.approx(w, rel=1e-6)

def test_predictions_as_csv(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path/'outputs').mkdir()
    t,_ = run_blocks_and_train([3], monkeypatch, lambda ns: [ns['SavePredictionsCallback']()])
    with open('outputs/valid_predictions.csv') as f: head,*rows = csv.reader(f)
    preds,targs = t.learn.get_preds()
    assert head==['prediction','targets'] and [[int(v) for v in r] for r in rows[-12:]]==[[*p] for p in zip(preds.argmax(1).tolist(), targs.tolist())]

def test_custom_event(monkeypatch):
    seen = []
    def cbs(ns):
        class Counts(ns['VerifyBatchCallback']):
            def verify_train_batch(self, trainer, xb, yb): seen.append(len(xb)); super().verify_train_batch(trainer, xb, yb)
        return [Counts()]
    run_blocks_and_train([4, 5], monkeypatch, cbs, 'TrainerWithCustomCallbackEvent')
    eq(seen, [4]*8)

def test_the_classes_of_the_guide():
    "learnkit has each class, and it takes the arguments that the guide shows, with the same defaults"
    heads = [re.match(r'class pytorch_accelerated\.callbacks\.(\w+)(?:\((.*)\))?', b) for b in code_blocks()]
    heads = {m[1]:m[2] for m in heads if m and m[1]!='CallbackHandler'}
    assert len(heads)==8
    for name,args in heads.items():
        theirs = inspect.signature(eval(f'lambda {re.sub(r": (bool|int|float)", "", args or "")}: 0'))
        ours = inspect.signature(getattr(pa, name)).parameters
        eq([(k, p.default) for k,p in theirs.parameters.items()], [(k, ours[k].default) for k in theirs.parameters])
        getattr(pa, name)()
    methods = re.findall(r'^(on_\w+)\(trainer', '\n'.join(code_blocks()), re.M)
    assert len(methods)==12 and set(methods)<=set(names_in('pytorch-accelerated'))
