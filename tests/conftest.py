"What every test starts from: the learnkit of this tree, one thread, one seed, and no window for pictures"
import os, random, sys
from pathlib import Path
import numpy as np, pytest, torch

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here.parent), *(str(p) for p in sorted(here.iterdir()) if p.is_dir() and p.name[0] not in '_.' and p.name!='bench')]
os.environ.setdefault('MPLBACKEND', 'Agg')
torch.set_num_threads(1)

@pytest.fixture(autouse=True)
def seed():
    "The same random numbers for each test, whichever ran before it"
    random.seed(42); np.random.seed(42); torch.manual_seed(42)

def pytest_configure(config): config.addinivalue_line('markers', 'check: one of the fast checks of `make check`')
