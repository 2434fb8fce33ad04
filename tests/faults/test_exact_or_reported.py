"""Every kind of data, killed and resumed: the weights of the whole run, or a warning, never neither; and no warning of a kind that is exact."""
import json
from pathlib import Path

import pytest

from kinds import KINDS, WORKERS, outcome
from toys import few

pytestmark = few(2, 2)   # all with LEARNKIT_SWEEP=1
TABLE = Path(__file__).with_name('kinds.json')   # what the page on resuming prints
CASES = [(kind, workers) for kind,make in KINDS.items() for workers in WORKERS if make.with_workers or workers=='none']

@pytest.mark.parametrize('kind,workers', CASES)
@few(1)
def test_exact_or_reported(kind, workers, tmp_path):
    "Killed in the first epoch, at its end, and at the end of the second one"
    if kind.startswith('torchdata'): pytest.importorskip('torchdata.stateful_dataloader')
    results = [outcome(KINDS[kind], WORKERS[workers], tmp_path/f'{k}', k) for k in (3, 6, 12, 15)]
    inexact = [said for equal,said in results if not equal]
    assert all(inexact), 'a resumed run is another one, and nothing is said'
    if not inexact: assert not any(said for _,said in results), 'exact, and a warning'
    expected = json.loads(TABLE.read_text(encoding='utf-8'))[kind][workers]
    assert ('said' if inexact else 'exact')==expected, (kind, workers)

def test_the_table_is_whole():
    table = json.loads(TABLE.read_text(encoding='utf-8'))
    assert {(kind, workers) for kind,row in table.items() for workers in row}=={*CASES}
