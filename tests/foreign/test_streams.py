"""Streams of Hugging Face's datasets, webdataset and mosaicml-streaming, where installed, from shards that the tests
write: a run stopped at a batch and resumed sees the samples of an uninterrupted run, and ends with its weights. Each
runs in its own process, as these libraries keep global state."""
import os, random, subprocess, sys
from pathlib import Path

import pytest, torch
from torch import nn
from torch.utils.data import DataLoader

N,BS = 40,4
rows = lambda: [([float(i), 1., 2., random.random()], [i/10]) for i in range(N)]
shards = lambda: [rows()[i:i+10] for i in range(0, N, 10)]

def hf(path):
    import datasets
    path.mkdir(exist_ok=True)
    files = [f'{path}/{i}.parquet' for i in range(4)]
    for f,rs in zip(files, shards()):
        if not os.path.exists(f): datasets.Dataset.from_dict(dict(x=[x for x,_ in rs], y=[y for _,y in rs])).to_parquet(f)
    return datasets.load_dataset('parquet', data_files=files, split='train', streaming=True, cache_dir=f'{path}/cache').with_format('torch')

def hf_pairs(items): return torch.stack([o['x'] for o in items]),torch.stack([o['y'] for o in items])
def hf_plain(path, workers=0): return DataLoader(hf(path), BS, collate_fn=hf_pairs, num_workers=workers)
def hf_torchdata(path, workers=0):
    from torchdata.stateful_dataloader import StatefulDataLoader
    return StatefulDataLoader(hf(path), BS, collate_fn=hf_pairs, num_workers=workers)
def hf_shuffled(path):
    "Shuffles only the shards, as the buffer has one sample"
    return DataLoader(hf(path).shuffle(seed=3, buffer_size=1), BS, collate_fn=hf_pairs)
def hf_buffered(path, buffer=15, torchdata=False, **kw):
    "Shuffles in a buffer, which the stream's state does not contain; the loader is PyTorch's or torchdata's"
    if torchdata: from torchdata.stateful_dataloader import StatefulDataLoader as loader
    else: loader = DataLoader
    return loader(hf(path).shuffle(seed=3, buffer_size=buffer), BS, collate_fn=hf_pairs, **kw)

def webdataset(path, workers=0, shuffle=0):
    import webdataset as wds
    path.mkdir(exist_ok=True)
    for i,rs in enumerate(shards()):
        if os.path.exists(f'{path}/{i}.tar'): continue
        with wds.TarWriter(f'{path}/{i}.tar') as w:
            for j,(x,y) in enumerate(rs): w.write({'__key__':f'{i}{j}', 'x.pth':torch.tensor(x), 'y.pth':torch.tensor(y)})
    ds = wds.WebDataset([f'{path}/{i}.tar' for i in range(4)], shardshuffle=False)
    return DataLoader((ds.shuffle(shuffle) if shuffle else ds).decode().to_tuple('x.pth','y.pth'), BS, num_workers=workers)
def webdataset_by_the_clock(path): return webdataset(path, shuffle=20)

def mosaic(path, workers=0, loader=None):
    import numpy as np, streaming
    if not path.exists():
        with streaming.MDSWriter(out=f'{path}', columns=dict(x='ndarray:float32:4', y='ndarray:float32:1'), size_limit=400) as w:
            for x,y in rows(): w.write(dict(x=np.float32(x), y=np.float32(y)))
    class Pairs(streaming.StreamingDataset):
        def __getitem__(self, i): o = super().__getitem__(i); return torch.tensor(o['x']),torch.tensor(o['y'])
    return (loader or streaming.StreamingDataLoader)(Pairs(local=f'{path}', shuffle=True, shuffle_seed=3, batch_size=BS), batch_size=BS, num_workers=workers)
def mosaic_plain(path): return mosaic(path, loader=DataLoader)

def run(make, path, stop=None, **kw):
    "Train two epochs; return the samples of each training batch, and the weights"
    import learnkit.all as lk
    lk.set_seed(0)
    seen = []
    class Watch(lk.Callback):
        acts = 'nothing'
        def after_batch(self):
            if not self.learn.training: return
            seen.append([int(i) for i in self.learn.xb[0][:,0]])
            if self.learn.train_iter==stop: raise SystemError
    learn = lk.Learner(lk.DataLoaders(make(path.parent/'data', **kw), [(torch.ones(4, 4), torch.ones(4, 1))]), nn.Linear(4, 1), nn.MSELoss(), torch.optim.SGD, lr=1e-4, path=path,
                       cbs=[lk.CheckpointCallback('3ba'), Watch()])
    with learn.no_logging(), learn.no_bar():
        try: learn.fit(2, resume='auto')
        except SystemError: pass
    return seen,learn.model.weight.detach()

def check(make, path, stops=(1, 4, 10, 11, 14), **kw):
    seen,weight = run(make, path/'whole', **kw)
    assert sorted(sum(seen[:10], []))==[*range(N)] and len(seen)==20
    for k in stops:
        run(make, path/f'{k}', k, **kw)
        again,w = run(make, path/f'{k}', **kw)
        assert again==seen[k//3*3:] and torch.equal(w, weight), (k, len(again), again[:2])

def check_alone(name, tmp_path, warned='', silent=False, **kw):
    here = Path(__file__).resolve()
    code = f'import sys; sys.path[:0] = [{str(here.parent)!r}, {str(here.parents[2])!r}]; import test_streams as t; from pathlib import Path; t.check(t.{name}, Path({str(tmp_path)!r}), **{kw})'
    res = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=300)
    if warned: assert res.returncode and warned in res.stderr, res.stderr[-2000:]
    else: assert not res.returncode, res.stderr[-2000:]
    if silent: assert 'resumed run' not in res.stderr and 'resume bit for bit' not in res.stderr, res.stderr[-2000:]

@pytest.fixture(autouse=True)
def installed(request):
    name = request.node.callspec.params['name'].split('_')[0]
    try: __import__(dict(hf='datasets', mosaic='streaming').get(name, name))
    except ImportError as e: pytest.skip(str(e))

@pytest.mark.slow
@pytest.mark.parametrize('name, workers', [(n, w) for n in ('hf_plain','hf_torchdata','webdataset','mosaic') for w in (0, 2)])
def test_a_resumed_run_sees_the_same_samples(name, workers, tmp_path): check_alone(name, tmp_path, workers=workers)

@pytest.mark.slow
@pytest.mark.parametrize('name', ['hf_shuffled'])
def test_shuffled_differently_each_epoch(name, tmp_path): check_alone(name, tmp_path)

@pytest.mark.slow
@pytest.mark.parametrize('name', ['webdataset_by_the_clock','mosaic_plain'])
def test_a_stream_that_cannot_be_repeated_is_reported(name, tmp_path): check_alone(name, tmp_path, warned='begins with another batch', stops=[14])

BUFFERED = [dict(), dict(num_workers=2), dict(num_workers=2, persistent_workers=True), dict(torchdata=True), dict(torchdata=True, num_workers=2),
            dict(buffer=1, torchdata=True, num_workers=2), dict(buffer=1, num_workers=2, persistent_workers=True)]

@pytest.mark.slow
@pytest.mark.parametrize('name', ['hf_buffered'])
@pytest.mark.parametrize('kw', BUFFERED, ids=lambda kw: '-'.join(f'{k}={v}' for k,v in kw.items()) or 'plain')
def test_a_stream_shuffled_in_a_buffer_is_exact_without_a_message(name, kw, tmp_path):
    """The state has no buffer, so the stream is read again; in workers the state of a shuffled stream cannot even be
    loaded (torchdata's loader by itself raises IndexError). Tested with datasets 5.2.0 and the pinned torchdata."""
    check_alone(name, tmp_path, silent=True, stops=(4, 14), **kw)
