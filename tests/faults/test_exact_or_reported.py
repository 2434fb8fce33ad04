"""For every kind of data, a run that is killed and resumed ends with the weights of the whole run, or warns. Kinds that
are exact do not warn."""
import json
from pathlib import Path

import pytest

from kinds import KINDS, WORKERS, outcome
from toys import few

pytestmark = few(2, 2)   # of the cases; all with LEARNKIT_SWEEP=1
TABLE = Path(__file__).with_name('kinds.json')   # which the page on resuming prints
CASES = [(kind, workers) for kind,make in KINDS.items() for workers in WORKERS if make.with_workers or workers=='none']

@pytest.mark.parametrize('kind,workers', CASES)
@few(1, 3)
def test_exact_or_reported(kind, workers, tmp_path):
    "The result is exact or a warning, as the table says: killed in the first or third epoch, or between two epochs"
    if kind.startswith('torchdata'): pytest.importorskip('torchdata.stateful_dataloader')
    results = [outcome(KINDS[kind], WORKERS[workers], tmp_path/f'{k}', k) for k in (3, 6, 12, 15)]
    inexact = [message for equal,message in results if not equal]
    assert all(inexact), 'a resumed run differs, without a warning'
    if not inexact: assert not any(message for _,message in results), 'exact, with a warning'
    expected = json.loads(TABLE.read_text(encoding='utf-8'))[kind][workers]
    assert ('said' if inexact else 'exact')==expected, (kind, workers)

def test_the_table_has_all_cases():
    table = json.loads(TABLE.read_text(encoding='utf-8'))
    assert {(kind, workers) for kind,row in table.items() for workers in row}=={*CASES}
