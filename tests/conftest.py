"What every test starts from: the learnkit of this tree, one thread, one seed, and no window for pictures"
import faulthandler, gc, os, random, signal, sys
from pathlib import Path
import hypothesis, numpy as np, pytest, torch

here = Path(__file__).resolve().parent
folders = [p for p in (*sorted(here.iterdir()), *sorted((here/'parts').iterdir())) if p.is_dir() and p.name[0] not in '_.' and p.name!='bench']
sys.path[:0] = [str(here.parent), *map(str, folders)]   # what several tests use stands beside one of them
os.environ.setdefault('MPLBACKEND', 'Agg')
# Tests and notebooks compare with loops by hand on the CPU, so a GPU is hidden from them; `make device` shows it to those that need one
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
# A shell lets what it starts in the background ignore Ctrl-C, which some tests send
if signal.getsignal(signal.SIGINT)==signal.SIG_IGN: signal.signal(signal.SIGINT, signal.default_int_handler)
torch.set_num_threads(1)
# A process that a test starts says where it was when it crashes, among what the test has written. It leaves alone what it
# has of the process that forked it: the garbage there holds loaders whose workers it would wait for, and locks of threads
# that it does not have
os.environ.setdefault('PYTHONFAULTHANDLER', '1')
# what fails here is looked at by those who work on learnkit
os.environ.setdefault('LEARNKIT_FULL_TRACEBACKS', '1')
def in_child(): gc.freeze(); faulthandler.enable(2)
if hasattr(os, 'register_at_fork'): os.register_at_fork(after_in_child=in_child)
# PyTorch waits this long for each worker of a loader which the garbage collector frees with its cycle, and waits in vain:
# the queue that should tell the worker to end is closed first. Five seconds a worker are a minute of these tests.
torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL = .2

# Hypothesis draws the same examples each time, so that no commit is stopped by a fault that was there before it. More of
# them would find nothing new either; with LEARNKIT_SWEEP=1 in the environment it draws others, and many
anew = bool(os.environ.get('LEARNKIT_SWEEP'))
hypothesis.settings.register_profile('learnkit', derandomize=not anew, max_examples=500 if anew else 50, deadline=None)
hypothesis.settings.load_profile('learnkit')

def set_seeds(): random.seed(42); np.random.seed(42); torch.manual_seed(42)

@pytest.fixture(autouse=True)
def seed():
    "The same random numbers for each test, whichever ran before it"
    set_seeds()

def pytest_collectstart(collector):
    "The same random numbers for the data that a module of tests draws when it is imported"
    if isinstance(collector, pytest.Module): set_seeds()

# what `make test` leaves to `make test-all`, and says so
MARKS = ['check: one of the fast checks of `make check`', 'slow: only `make test-all` runs it',
         'few(n, m): `make test` runs `n` of its cases, `make test-all` `m` more, or all others']

def pytest_configure(config):
    if config.pluginmanager.has_plugin('xdist'): config.pluginmanager.register(FromWorkers())
    for m in MARKS: config.addinivalue_line('markers', m)

@pytest.hookimpl(tryfirst=True)   # before those that are slow are left out
def pytest_collection_modifyitems(items):
    cases,dropped = {},set()
    for item in items:
        if 'few' in item.keywords: cases.setdefault(item.nodeid.split('[')[0], []).append(item)
    for its in cases.values():
        n,m = its[0].get_closest_marker('few').args
        for item in spread([o for o in its if 'slow' not in o.keywords])[n:]: item.add_marker('slow')
        if m is not None and not os.environ.get('LEARNKIT_SWEEP'): dropped.update(spread([o for o in its if 'slow' in o.keywords])[m:])
    items[:] = [o for o in items if o not in dropped]
    items.sort(key=lambda o: 'test_site' not in o.nodeid)   # one process builds the site: the other one would wait for it

def spread(items):
    "`items` in an order whose beginnings, of any length, are spread evenly: by multiples of the golden ratio"
    return [items[i] for i in sorted(range(len(items)), key=lambda i: i*.6180339887%1)]

frozen = {'modules': 0}
def pytest_collection_finish(): freeze()
def freeze():
    "PyTorch's and pytest's objects stay to the end: a garbage collection that goes through them all takes half a second"
    frozen['modules'] = len(sys.modules)
    gc.collect(); gc.freeze()

@pytest.fixture(scope='module', autouse=True)
def imported():
    "What a module of tests has imported stays, too, if it is much, as PyTorch's compiler and other libraries are"
    yield
    if len(sys.modules)>frozen['modules']+200: freeze()

left = {'tests': 0}   # how many were left out, as the processes that collect them say
def pytest_deselected(items): left['tests'] += sum('slow' in item.keywords for item in items)
def pytest_sessionfinish(session):
    if hasattr(session.config, 'workeroutput'): session.config.workeroutput['left'] = left['tests']
class FromWorkers:
    def pytest_testnodedown(self, node): left['tests'] = getattr(node, 'workeroutput', {}).get('left', left['tests'])

def pytest_terminal_summary(terminalreporter, config):
    if config.option.markexpr=='not slow' and left['tests']:
        terminalreporter.write_line(f"{left['tests']} slow tests were left out: `make test-all` runs them too")
