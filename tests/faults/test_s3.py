"""A run whose checkpoints are on an S3 server (moto's): killed at any request, slow, 503 SlowDown, lists that lag; needs the extra `stores` and the packages `moto`, `flask`, `flask-cors`"""
import json, os, random, warnings

import pytest, torch

from learnkit.all import CheckpointCallback, list_checkpoints, runs
from learnkit.data.files import as_path
from learnkit.loop.run import null_logger
from toys import learner, weights

pytest.importorskip('s3fs')
pytest.importorskip('moto')
pytest.importorskip('flask')
from faulty_store import FaultyStore

sweep = 'LEARNKIT_SWEEP' in os.environ

@pytest.fixture(scope='module')
def store():
    os.environ.update(AWS_ACCESS_KEY_ID='x', AWS_SECRET_ACCESS_KEY='x', AWS_DEFAULT_REGION='us-east-1', AWS_MAX_ATTEMPTS='1')
    o = FaultyStore()
    os.environ['AWS_ENDPOINT_URL'] = o.url
    import botocore.session
    botocore.session.get_session().create_client('s3').create_bucket(Bucket='bucket')
    yield o
    o.close()
    del os.environ['AWS_ENDPOINT_URL']

def train(folder, background=False, on_error='warn', **kw):
    "Train 6 batches with a checkpoint after every second; return the weights and the warnings"
    torch.set_num_threads(1)
    learn = learner(cbs=CheckpointCallback('2ba', folder=folder, keep=2, background=background, on_error=on_error))
    learn.logger = null_logger
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        learn.remove_cb(learn.progress).fit(2, **kw)
    return weights(learn).tolist(),[str(w.message) for w in caught]

def in_child(store, f, **faults):
    "Call `f` in a forked process, in which s3fs begins its thread; return what it returned, its error, or None if it was killed"
    read,write = os.pipe()
    store.reset()
    pid = os.fork()
    if not pid:
        try: answer = dict(result=f())
        except BaseException as e: answer = dict(error=f'{type(e).__name__}: {e}')
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    store.reset(pid=pid, **faults)
    os.close(write)
    with open(read, 'rb') as file: text = file.read()
    os.waitpid(pid, 0)
    return json.loads(text) if text else None

def numbers(n, k): return range(1, n+1) if sweep else random.Random(k).sample(range(1, n+1), k)   # of requests

@pytest.fixture(scope='module')
def whole(store):
    "The weights of the run without faults, and how many requests it makes"
    weights,messages = in_child(store, lambda: train('s3://bucket/whole'))['result']
    assert not messages
    return weights,store.n

@pytest.mark.parametrize('fault', ['before','after'])
@pytest.mark.parametrize('background', [False, True])
def test_killed_at_any_request(store, whole, fault, background):
    "A run killed before or after a request resumes to the same weights"
    weights,n = whole
    for i in numbers(n, 2):
        folder = f's3://bucket/killed-{fault}-{background}-{i}'
        killed = in_child(store, lambda: train(folder, background), fault=fault, at=i)
        assert killed is None or background, i   # in the background fewer requests may be made
        result,messages = in_child(store, lambda: train(folder, background, resume='auto'))['result']
        assert result==weights and not messages, (i, messages)

def test_one_rejected_request_is_a_warning(store, whole):
    "503 SlowDown, also in answer to the client's retry, costs one checkpoint, and the run continues"
    weights,n = whole
    n_warned = 0
    for i in numbers(n, 4):
        answer = in_child(store, lambda: train(f's3://bucket/busy-{i}'), fault='503', at=i)
        if 'error' in answer: assert i<12 and 'OSError' in answer['error'], (i, answer)   # before the first batch
        else:
            result,messages = answer['result']
            assert result==weights, i
            n_warned += bool(messages)
            assert all('could not be written' in text for text in messages), messages
    assert n_warned

def test_a_slow_answer_changes_nothing(store, whole):
    for i in numbers(whole[1], 2):
        result,messages = in_child(store, lambda: train(f's3://bucket/slow-{i}'), fault='slow', at=i)['result']
        assert result==whole[0] and not messages

def test_lists_that_lag(store, whole):
    "Lists a second old have deleted files and lack the newest; the run resumes from an older one to the same weights"
    for i in numbers(whole[1], 3):
        folder = f's3://bucket/lag-{i}'
        in_child(store, lambda: train(folder), fault='after', at=i, lag=1.)
        result,_ = in_child(store, lambda: train(folder, resume='auto'), lag=1.)['result']
        assert result==whole[0], i

def test_the_store_has_the_files_of_a_folder(store, whole, tmp_path):
    def look():
        train(tmp_path/'whole')
        def names(folder): return sorted(p.name for p in (folder/'fit-1').glob('*'))
        there,here = as_path('s3://bucket/whole'),tmp_path/'whole'
        assert names(there)==names(here) and len(list_checkpoints(there/'fit-1'))==2
        return [row['run'] for row in runs('s3://bucket/whole')]
    assert in_child(store, look)['result']==['s3://bucket/whole/fit-1']
