"""Arguments of the wrong type, for everything public in `learnkit.all`: each parameter with a simple annotation (a
number, text, function, path or flag) gets invalid values, one at a time, and the call must raise an error that names the
parameter. Only the exceptions are listed here."""
import inspect, os, re, types, typing
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest, torch
from torch import nn

import learnkit.all as lk
from learnkit.learner.learner import Learner
from toys import batches, learner

class Odd:
    "A value that no parameter accepts"
    def __repr__(self): return '<odd>'
odd = Odd()

simple = {int, float, str, bool, Path, Callable, type(None)}
def kinds(a):
    "The simple types in an annotation; empty if it names any other type"
    args = typing.get_args(a) if isinstance(a, types.UnionType) or typing.get_origin(a) is typing.Union else (a,)
    ks = {typing.get_origin(o) or o for o in args}
    return ks if ks<=simple else set()

def wrong(ks, name):
    "Invalid values for a parameter of the types `ks`"
    yield odd
    yield [odd]
    if not ks & {str,Path}: yield 'nonsense'
    if ks & {str} and not ks & {Path} and name not in any_text: yield 'no such word'
    if int in ks and float not in ks: yield 1.5
    if not ks & {int,float,bool}: yield 3
    if float in ks: yield float('nan')
    if Callable in ks: yield nn.Softmax   # the class, where an instance was meant
    if type(None) not in ks: yield None

any_text = {'name','nm','fname','attr','monitor','metric_name','folder','project','experiment','tracking_uri','run_name','hyper'}   # which hyperparameters exist is known with the optimizer
# Called for each batch, value or file: their arguments have been checked before, or PyTorch raises
often = '''accuracy accuracy_multi error_rate top_k_accuracy foreground_acc activation_stats sched_cos sched_exp sched_lin sched_no even_mults apply split_batch item_find lower_better
    map_container to_concat to_detach to_device nested_reorder count_batches write_atomic shapes blend reduce_loss format_time is_matrix'''.split()
# Called by learnkit itself, with arguments that were checked before
inner = '''ismin_torch notmax_torch pv unsqueeze max_over_processes Word EventCalls Place RootMetric CSVFile LogFile MediaRow Sender WandbFile FuncLoader Limited FilteredMethod NestedBuffer TensorBuffer ScalarBuffer GatherPredsCallback ColumnMetric EvaluatorColumn AvgColumns Hypers LRCurve LogRow Time Timestamp PendingHandler Launch ComputedBatches Permutation
    LineDisplay NotebookBar RichBar TerminalBar TqdmBar BatchStream Events TorchMetric as_loader atomic interruptibly uninterrupted rank0_first optional_import nearest marked_handlers replacing_yield accepted_kwargs make_weight_rule
    none_reduce NoneReduce loss_decodes check_whole check_fraction check_amount check_length check_choice check_path mk_comp to_cpu sync_folder remove_checkpoint list_checkpoints newest_checkpoint train_iter_of write_checkpoint
    write_safetensors write_state parse_csv read_checkpoint checkpoint_info read_safetensors torch_export layer_info plot_hypers valley slide minimum steep AMPMode MeterCallback derive_seed
    check_keywords known_keywords log_value OtherName names_in name_hint adapter_of find_checkpoint find_in_all peek_checkpoint read_state'''.split()
later = ['resume', 'no_random', 'default_device', 'load_learner', 'save_pretrained']   # context managers check when they are entered; the others look at the machine, the file or the model first
unused = {('Learner.to_channelslast','amp_mode'), ('AdaptiveGradientClip','skip')}   # checked only with `use_amp=True`; checked when the names of the parameters are known

f = lambda *a, **k: None
given = dict(lr=.1, step=3, to='x', folder='no run', config={}, loaders=dict(a=[torch.zeros(2)]), f=f, func=f, hook_func=f, aug=f, events=f, loss_cls=nn.MSELoss, m=nn.Linear(1,1), ms=[nn.Linear(1,1)], module=nn.Linear(1,1), modules=[nn.Linear(1,1)], name='after_batch', path=Path('x'), fname='a', file='a', attr='loss',
    attrs='loss', lr_max=.1, start=.1, end=.2, middle=.15, pct=.5, power=2., n=5, s=1, beta=1., threshold=.1, seed=1, n_epoch=1, n_cycles=1, cycle_len=1, epochs=1, metrics=[], model=nn.Linear(4,1), scheds={'lr':lk.SchedCos(1, 0)}, every='1ep',
    dl=[1], item=torch.randn(4), lens=[1,2], filter=lk.Filter(every=1), preds=torch.rand(4,2), targs=torch.tensor([0,1,0,1]), decoded=torch.tensor([0,1,0,1]), losses=torch.rand(4), make=f, epoch=0, warm=.1, top=.1, items=[torch.randn(4)], then=lambda w: lk.SchedNo(1, 1))
instead = {'cli':dict(args=[]), 'MicroBatch':dict(size=2), 'LimitBatches':dict(train=2), 'Learner.tta':dict(aug=lambda x: x), 'Learner.find_batch_size':dict(most=8)}

def own(o): return getattr(o, '__module__', '').startswith('learnkit') and (inspect.isclass(o) or inspect.isfunction(o))
def public_callables():
    "name -> function or class, of everything public"
    res = {k:getattr(lk, k) for k in lk.__all__ if own(getattr(lk, k))}
    res |= {f'Learner.{k}':o for k,o in vars(Learner).items() if k[0]!='_' and inspect.isfunction(o)}
    return {k:o for k,o in res.items() if k.split('.')[-1] not in (*often, *inner, *later) and parameters(o)}

def parameters(o):
    "The parameters with a simple annotation: name -> types; flags of methods are left to truthiness"
    try: ps = inspect.signature(o).parameters.values()
    except ValueError: return {}   # a built-in class, such as that of a mapping
    flags = {bool} if any(p.name=='self' for p in ps) else set()
    return {p.name:kinds(p.annotation) for p in ps if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and kinds(p.annotation)-flags}

def caller(name, o):
    "A function that calls `o` with valid required arguments, a method on a new Learner"
    ps = [p for p in inspect.signature(o).parameters.values() if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    args = {**{p.name:given[p.name] for p in ps if p.name not in ('self','learn','dls')}, **instead.get(name, {})}
    if name=='Learner': return lambda **kw: o(lk.DataLoaders(batches(2), batches(1)), **{**args, **kw})
    if name=='DataLoaders': return lambda **kw: o(batches(2), **{**args, **kw})
    return partial(o, **args) if not name.startswith('Learner.') else lambda **kw: o(learner(), **{**args, **kw})

# Python's own error messages
PYTHONS_OWN = re.compile('not supported between|object has no attribute|expected str, bytes|unsupported operand|must be real number|is not iterable|not callable|not subscriptable|could not convert|'
                  'cannot be interpreted|invalid literal|out of range')

def faults(name, o):
    "Invalid values that are accepted, or whose error lacks the name of the parameter, is too long or is Python's own"
    call = caller(name, o)
    for k,ks in parameters(o).items():
        for v in wrong(ks, k):
            if (name,k) in unused: continue
            try: call(**{k:v})
            except (ValueError,TypeError) as e:
                if k not in str(e) or PYTHONS_OWN.search(str(e)) or len(str(e))>300: yield f'{name}({k}={v!r}) says: {e}'
            except Exception as e: yield f'{name}({k}={v!r}) raises {type(e).__name__}: {e}'
            else: yield f'{name}({k}={v!r}) is accepted'

ALL = public_callables()
methods = [k for k in ALL if k.startswith('Learner.')]

@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('name', [k for k in ALL if k not in methods])
def test_invalid_arguments_raise(name, tmp_path, monkeypatch):
    "Numbers as text, text for functions, classes for instances: many were accepted, or raised an error of Python's own"
    monkeypatch.chdir(tmp_path)
    try: caller(name, ALL[name])()   # with valid arguments
    except (ImportError, FileNotFoundError) as e: pytest.skip(str(e))
    assert not [*faults(name, ALL[name])]

@pytest.mark.slow
@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('name', methods)
def test_invalid_arguments_of_methods_raise(name, tmp_path, monkeypatch): test_invalid_arguments_raise(name, tmp_path, monkeypatch)

@pytest.mark.filterwarnings('ignore')
def test_faults_finds_unchecked_arguments():
    "`faults` reports each invalid value that a function without checks accepts, and there are many functions to check"
    def lax(n:int=1, f:Callable|None=None): return n*2
    assert len([*faults('lax', lax)])==10
    assert len(ALL)>100

