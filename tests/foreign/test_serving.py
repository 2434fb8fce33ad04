"""Runs `nbs/examples/serving.ipynb` section by section: each with the sections that it builds on, if the packages that
it imports are installed. Servers run for real, on this machine. Also tests what the page does not show: requests in
many threads, fits while serving, and async endpoints."""
import json, os, shutil, subprocess, sys, threading
from importlib.util import find_spec
from pathlib import Path
from concurrent.futures import ThreadPoolExecutor

import pytest, torch
from torch import nn
from learnkit.all import Callback, CrossEntropyLossFlat, DataLoaders, Learner, Predictor

root = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root/'tests/structure'))
from test_notebooks import needed

page  = root/'nbs/examples/serving.ipynb'
cells = json.loads(page.read_text(encoding='utf-8'))['cells']
def heading(c): return next((l[3:] for l in ''.join(c['source']).splitlines() if l.startswith('## ')), None) if c['cell_type']=='markdown' else None

def sections():
    "Return {heading: its cells}; the cells before the first heading are under ''"
    res,name = {'':[]},''
    for c in cells:
        if h := heading(c): name = h; res[name] = []
        res[name].append(c)
    return res

parts = sections()
ALWAYS = '','The model','Save and load'
AFTER  = {'Batches of requests: LitServe':['A server: FastAPI'], 'ONNX':['torch.export'], 'ExecuTorch':['torch.export']}   # sections that a section builds on

def run(names, tmp_path):
    nb = tmp_path/'page.ipynb'
    # slow cells compile C++
    def source(c, n): s = ''.join(c['source']); return s.replace('#| slow\n', '') if n==names[-1] and shutil.which('c++') and os.environ.get('LEARNKIT_SWEEP') else s
    nb.write_text(json.dumps(dict(cells=[dict(c, source=source(c, n)) for n in names for c in parts[n]], metadata={}, nbformat=4, nbformat_minor=5)))
    wanted = [m for m in needed(nb) if find_spec(m) is None]
    if wanted: pytest.skip(f'it needs {" and ".join(wanted)}')
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, [str(root), os.environ.get('PYTHONPATH')])), IPYTHONDIR=str(tmp_path), OMP_NUM_THREADS='1', IN_TEST='1')
    res = subprocess.run([sys.executable, str(root/'tests/structure/test_notebooks.py'), str(nb)], env=env, capture_output=True, text=True, timeout=500)
    assert not res.returncode, (res.stdout + res.stderr)[-6000:]

@pytest.mark.slow
@pytest.mark.parametrize('name', [n for n in parts if n not in (*ALWAYS, 'Before you deploy')])
def test_a_section(name, tmp_path): run([*ALWAYS, *AFTER.get(name, []), name], tmp_path)

def test_every_section_is_run():
    assert [*parts][:3]==[*ALWAYS] and [*parts][-1]=='Before you deploy' and {*AFTER} | {o for v in AFTER.values() for o in v} <= {*parts} and len(parts)==9
    assert {*needed(page)}=={'fastapi','uvicorn','httpx','pydantic','litserve','onnx','onnxscript','onnxruntime','executorch'}

# a FastAPI server in this process
class Two(nn.Module):
    def __init__(self): super().__init__(); torch.manual_seed(0); self.net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(.5), nn.Linear(8, 3))
    def forward(self, a, b): return self.net(a) + b

def learner(**kw):
    x = torch.randn(12, 4)
    return Learner(DataLoaders([dict(a=x, b=x[:,:3], target=x.argmax(1)%3)]*3, vocab=['low','mid','high']), Two(), CrossEntropyLossFlat(), lr=.1, **kw)

@pytest.fixture
def served():
    "Yield a Learner, its Predictor, and a test client of a FastAPI app that calls the Predictor"
    pytest.importorskip('fastapi'); pytest.importorskip('httpx')
    from fastapi import FastAPI, HTTPException
    from fastapi.testclient import TestClient
    learn = learner()
    predict,app = Predictor(learn),FastAPI()
    @app.post('/predict')
    def answer(o:dict):
        try: label,i,probs = predict({k:torch.tensor(v) for k,v in o.items()})
        except Exception as e: raise HTTPException(422, str(e)) from e
        return dict(label=label, probs=probs.tolist())
    with TestClient(app) as client: yield learn,predict,client
    predict.close()

def send_request(client, a, b): return client.post('/predict', json=dict(a=a, b=b))
items = [([float(i+j) for j in range(4)], [.1*i]*3) for i in range(20)]
def wanted(learn): return [learn.predict(dict(a=torch.tensor(a), b=torch.tensor(b))) for a,b in items]
def right(res, want): return res.status_code==200 and res.json()['label']==want[0] and torch.allclose(torch.tensor(res.json()['probs']), want[2])

def test_requests_in_many_threads(served):
    "Each request gets its own response: valid ones the prediction, wrong ones an error"
    learn,predict,client = served
    want = wanted(learn)
    def one(i):
        k = i%20
        if i%5: return right(send_request(client, *items[k]), want[k])
        res = send_request(client, [1.]*3, [0.]*3)   # of the wrong length, so the model fails
        return res.status_code==422 and 'mat1 and mat2' in res.json()['detail']
    with ThreadPoolExecutor(8) as pool: assert all(pool.map(one, range(200)))

def test_a_fit_and_a_server(served):
    "A fit raises while the Predictor is open; a request during a fit waits for its end"
    learn,predict,client = served
    assert send_request(client, *items[0]).status_code==200
    with pytest.raises(RuntimeError, match='a `fit` inside a running `predict`'): learn.fit(1)
    predict.close()
    begun,res = threading.Event(),[]
    def later(): begun.wait(20); res.append(send_request(client, *items[0]))
    t = threading.Thread(target=later); t.start()
    with learn.no_bar(), learn.no_logging(): learn.fit(3, cbs=Callback(after_batch=lambda self: begun.set()))
    t.join(20)
    assert right(res[0], wanted(learn)[0])

def test_async_endpoints():
    "The Predictor is called in the thread of the event loop"
    pytest.importorskip('fastapi'); pytest.importorskip('httpx')
    from fastapi import FastAPI
    from fastapi.testclient import TestClient
    learn,app = learner(),FastAPI()
    with Predictor(learn) as predict:
        @app.post('/predict')
        async def answer(o:dict): label,_,probs = predict({k:torch.tensor(v) for k,v in o.items()}); return dict(label=label, probs=probs.tolist())
        client,want = TestClient(app),wanted(learn)
        with ThreadPoolExecutor(4) as pool: assert all(pool.map(lambda k: right(send_request(client, *items[k]), want[k]), range(20)))
