"What every test starts from: the learnkit of this tree, one thread, one seed, and no window for pictures"
import os, random, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import numpy as np, pytest, torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault('MPLBACKEND', 'Agg')
torch.set_num_threads(1)

@pytest.fixture(autouse=True)
def seed():
    "The same random numbers for each test, whichever ran before it"
    random.seed(42); np.random.seed(42); torch.manual_seed(42)

@pytest.fixture(scope='session', autouse=True)
def runs(request):
    "A future for each notebook that this session tests: they run from its beginning on, beside the other tests"
    want = [i.callspec.params['path'] for i in request.session.items if i.name.startswith('test_notebook[')]
    if not want: yield {}; return
    from test_notebooks import start
    with ThreadPoolExecutor(max(1, os.cpu_count()-1)) as pool:
        yield {p: pool.submit(start, p) for p in want}
        pool.shutdown(cancel_futures=True)
