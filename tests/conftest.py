"Setup of every test: learnkit of this checkout, one thread, one seed, and a plotting backend without windows"
import faulthandler, gc, logging, os, random, signal, sys
from pathlib import Path
from types import SimpleNamespace
import hypothesis, numpy as np, pytest, torch

here = Path(__file__).resolve().parent
def is_importable(folder): return folder.is_dir() and folder.name[0] not in '_.' and folder.name!='bench'
folders = filter(is_importable, [*sorted(here.iterdir()), *sorted((here/'parts').iterdir())])
sys.path[:0] = [str(here.parent), *map(str, folders)]   # helpers of several tests are in the folder of one of them
os.environ.setdefault('MPLBACKEND', 'Agg')
# Tests and notebooks compare with hand-written loops on the CPU, so GPUs are hidden; `make device` shows them
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
# Without an accelerator `torch.manual_seed` records a traceback for CUDA, for XPU and for MTIA, in case one is
# initialized later: more than a millisecond in the deep stack of a test
if not torch.accelerator.is_available():
    for device in torch.cuda, torch.xpu, torch.mtia: device.traceback = SimpleNamespace(format_stack=list)
# A process that a shell starts in the background ignores Ctrl-C, which some tests send
if signal.getsignal(signal.SIGINT)==signal.SIG_IGN: signal.signal(signal.SIGINT, signal.default_int_handler)
torch.set_num_threads(1)
# A process that a test starts prints its stack when it crashes, in the output of the test. A forked child freezes the
# garbage that it inherits: to collect it would wait for workers of the parent's loaders, and for locks of threads that
# the child does not have
os.environ.setdefault('PYTHONFAULTHANDLER', '1')
# developers of learnkit read these failures, so tracebacks are complete
os.environ.setdefault('LEARNKIT_FULL_TRACEBACKS', '1')
def in_child():
    gc.freeze()
    faulthandler.enable(2)
if hasattr(os, 'register_at_fork'): os.register_at_fork(after_in_child=in_child)
# When the garbage collector frees a loader in a cycle, PyTorch waits this long for each worker, in vain: the queue that
# signals the worker to exit is closed first. The default of five seconds a worker adds a minute to these tests.
torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL = .2

# Hypothesis draws the same examples each time, so that no commit is blocked by an older bug. More of them would find
# nothing new either; with LEARNKIT_SWEEP=1 in the environment it draws different ones, and many (see also `toys.draws`)
is_sweep = bool(os.environ.get('LEARNKIT_SWEEP'))
n_examples = 500 if is_sweep else 25
hypothesis.settings.register_profile('learnkit', derandomize=not is_sweep, max_examples=n_examples, deadline=None)
hypothesis.settings.load_profile('learnkit')

def set_seeds():
    random.seed(42)
    np.random.seed(42)
    torch.manual_seed(42)

@pytest.fixture(autouse=True)
def seed():
    "Seed each test, so that its random numbers do not depend on the tests before it"
    set_seeds()

def pytest_collectstart(collector):
    "Seed the random data that a test module draws when it is imported"
    if isinstance(collector, pytest.Module): set_seeds()

# which tests `make test` skips and `make test-all` runs; the summary counts them
MARKS = ['check: one of the fast checks of `make check`', 'slow: only `make test-all` runs it',
         'few(n, m): `make test` runs `n` of its cases, `make test-all` `m` more, or all others']

def pytest_configure(config):
    # pytest would add a handler to each of PyTorch's loggers and remove it, six times a test. No test reads `caplog`
    config.pluginmanager.set_blocked('logging-plugin')
    logging.getLogger().addHandler(logging.NullHandler())   # as with pytest's, Python prints no record by itself
    if config.pluginmanager.has_plugin('xdist'): config.pluginmanager.register(FromWorkers())
    for m in MARKS: config.addinivalue_line('markers', m)

@pytest.hookimpl(tryfirst=True)   # before slow tests are deselected
def pytest_collection_modifyitems(items):
    cases,dropped = {},set()
    for item in items:
        if 'few' in item.keywords: cases.setdefault(item.nodeid.split('[')[0], []).append(item)
    for cases_of_test in cases.values():
        n,m = cases_of_test[0].get_closest_marker('few').args
        fast = [item for item in cases_of_test if 'slow' not in item.keywords]
        for item in spread(fast)[n:]: item.add_marker('slow')
        slow = [item for item in cases_of_test if 'slow' in item.keywords]
        if m is not None and not is_sweep: dropped.update(spread(slow)[m:])
    items[:] = [item for item in items if item not in dropped]
    items.sort(key=lambda item: 'test_site' not in item.nodeid)   # one process builds the site, and none waits for it

def spread(items):
    "`items` in an order of which every prefix is spread evenly over them, by multiples of the golden ratio"
    order = sorted(range(len(items)), key=lambda i: i*.6180339887%1)
    return [items[i] for i in order]

frozen = {'modules': 0}
def pytest_collection_finish(): freeze()
def freeze():
    "Exempt the objects of PyTorch and pytest from garbage collection: to visit them all takes half a second"
    frozen['modules'] = len(sys.modules)
    gc.collect()
    gc.freeze()

@pytest.fixture(scope='module', autouse=True)
def imported():
    "Freeze what a test module has imported too, if that is a lot, such as PyTorch's compiler"
    yield
    if len(sys.modules)>frozen['modules']+200: freeze()

left = {'tests': 0}   # the number of deselected tests, as the worker processes report it
def pytest_deselected(items): left['tests'] += sum('slow' in item.keywords for item in items)
def pytest_sessionfinish(session):
    if hasattr(session.config, 'workeroutput'): session.config.workeroutput['left'] = left['tests']
class FromWorkers:
    def pytest_testnodedown(self, node): left['tests'] = getattr(node, 'workeroutput', {}).get('left', left['tests'])

def pytest_terminal_summary(terminalreporter, config):
    if config.option.markexpr=='not slow' and left['tests']:
        terminalreporter.write_line(f"{left['tests']} slow tests were skipped: `make test-all` runs them too")
