"""Untrusted folders of sharded tensors: no outside file is read, no tensor has a gap, damage raises a ValueError."""
import hashlib, os, pickle, random, warnings
from enum import Enum
from io import BytesIO
from pathlib import Path

import pytest, torch
from torch.distributed.checkpoint.filesystem import SerializationFormat

from learnkit.recovery import shard_files
from learnkit.recovery.shard_files import _fills, read_shards, split_shards, write_shards
from toys import slow

state = dict(model=dict(w=torch.arange(12.).view(3, 4), n=torch.tensor(5), e=torch.zeros(0, 2)), opt=[torch.ones(5, dtype=torch.bfloat16)], epoch=3)

def write_folder(folder):
    "Write the shards to `folder`; return the state without its tensors, and the list of files"
    rest,parts = split_shards(state, torch.is_tensor)
    return rest,write_shards(parts, folder)

def list_files(folder, files):
    "The list of the files with their current sizes and digests, as an attacker would write it"
    return {k:[(p := folder/k).stat().st_size, hashlib.sha256(p.read_bytes()).hexdigest()] for k in files}

def change_metadata(folder, change):
    "Change the metadata in a folder"
    meta = pickle.loads((folder/'.metadata').read_bytes())
    change(meta)
    (folder/'.metadata').write_bytes(pickle.dumps(meta))

def place(meta, name='model.w'): return next(v for k,v in meta.storage_data.items() if k.fqn==name)
def pieces(meta, name='model.w'): return meta.state_dict_metadata[name].chunks
def put(name, value): return lambda meta: setattr(place(meta), name, value)
def other(meta):
    from torch.distributed.checkpoint.metadata import ChunkStorageMetadata
    pieces(meta)[:] = [ChunkStorageMetadata(torch.Size([0, 0]), torch.Size([2, 4]))]
def huge(meta):
    t = meta.state_dict_metadata['model.w']
    t.size,t.chunks[0].sizes = torch.Size([3, 2**40]),torch.Size([3, 2**40])
def twice(meta): a,b = place(meta),place(meta, 'opt.0'); b.offset,b.length = a.offset,a.length
def another(meta): meta.state_dict_metadata['model.w'].size = torch.Size([3, 5])
harms = dict(out=(put('relative_path', '../../secret'), 'not a file of this checkpoint'), absolute=(put('relative_path', '/etc/passwd'), 'not a file of this checkpoint'),
             number=(put('relative_path', 3), 'not a file of this checkpoint'), unhashable=(put('relative_path', []), 'damaged'),
             before=(put('offset', -8), 'exceeds its place in'), behind=(put('length', 10**9), 'exceeds its place in'), short=(put('length', 7), 'exceeds its place in'), text=(put('offset', 'x'), 'damaged'),
             inside=(put('offset', 1), 'damaged|not a weight file'), none=(lambda m: pieces(m).clear(), 'do not fill'), part=(other, 'do not fill'), huge=(huge, 'exceeds its place in'), another=(another, 'do not fill'),
             twice=(twice, 'overlap|tensor of shape'), gone=(lambda m: m.storage_data.clear(), 'damaged'), missing=(lambda m: m.state_dict_metadata.pop('model.w'), 'another checkpoint'),
             no_dict=(lambda m: setattr(m, 'state_dict_metadata', [1]), 'damaged'), no_tensor=(lambda m: m.state_dict_metadata.update({'model.w':m.storage_meta}), 'is not described as a tensor'))

@pytest.mark.parametrize('name', harms)
def test_invalid_metadata_raises(name, tmp_path):
    folder = tmp_path/'a'/'x.shards'
    rest,files = write_folder(folder)
    (tmp_path/'secret').write_bytes((folder/'__0_0.distcp').read_bytes())
    change,words = harms[name]
    change_metadata(folder, change)
    with pytest.raises(ValueError, match=words): read_shards(rest, folder, list_files(folder, files))

class ByName(pickle._Pickler):
    "Pickles members of an `Enum` as Debian 12's Python 3.11.2 does; or `evil` in their place"
    evil = None
    def reducer_override(self, o): return (getattr, self.evil or (type(o), o.name)) if isinstance(o, Enum) else NotImplemented

@pytest.mark.parametrize('evil', [None, (torch.Size, 'numel'), (SerializationFormat, '__class__'), (SerializationFormat, 'mro'), ('x', 'join')])
def test_members_that_an_older_python_pickled(evil, tmp_path):
    rest,files = write_folder(tmp_path)
    meta,out = pickle.loads((tmp_path/'.metadata').read_bytes()),BytesIO()
    p = ByName(out); p.evil = evil; p.dump(meta)
    assert b'getattr' in out.getvalue()
    (tmp_path/'.metadata').write_bytes(out.getvalue())
    if evil is None: assert same(state, read_shards(rest, tmp_path, list_files(tmp_path, files)))
    else:
        with pytest.raises(ValueError, match='damaged'): read_shards(rest, tmp_path, list_files(tmp_path, files))

@pytest.mark.parametrize('files', [[1], {'.metadata':3}, {'../secret':[1, 'x']}, {'':[1, 'x']}, {'..':[1, 'x']}, {}, {'.metadata':[1]}], ids=str)
def test_an_invalid_list_of_files_raises(files, tmp_path):
    folder = tmp_path/'a'/'x.shards'
    rest,good = write_folder(folder)
    with pytest.raises(ValueError): read_shards(rest, folder, {**good, **files} if files and isinstance(files, dict) else files)

def test_pieces_must_fill_a_tensor():
    assert _fills([((), ())], ()) and not _fills([], ())
    grid = [((i, j), (n, m)) for i,n in ((0,2), (2,1)) for j,m in ((0,3), (3,1))]
    assert _fills(grid, (3,4)) and _fills(grid[::-1], (3,4)) and not any(_fills(grid[:i]+grid[i+1:], (3,4)) for i in range(4))
    assert not _fills([*grid, ((2,3), (1,1))], (3,4)) and not _fills(grid, (3,5)) and not _fills([((0,), (-1,)), ((-1,), (4,))], (3,))
    assert _fills([((0,), (3,)), ((3,), (0,))], (3,)) and _fills([], (0,2))   # a process without a row

def same(a, b):
    if isinstance(a, dict): return all(same(v, b[k]) for k,v in a.items())
    return all(map(same, a, b)) if isinstance(a, list) else torch.equal(a, b) if torch.is_tensor(a) else a==b

@pytest.mark.parametrize('n', [300, *slow(4000 if os.environ.get('LEARNKIT_SWEEP') else 1000)])
def test_random_damage(n, tmp_path):
    "Random changes with valid checksums raise a ValueError or give tensors of the written number, type and shape"
    folder = tmp_path/'x.shards'
    rest,files = write_folder(folder)
    good = {k:(folder/k).read_bytes() for k in files}
    r,refused = random.Random(n),0
    assert same(state, read_shards(rest, folder, files))
    def damage(d):
        i = r.randrange(len(d))
        match r.randrange(4):
            case 0: return d[:i] + bytes([r.randrange(256)]) + d[i+1:]
            case 1: return d[:i] + d[i+r.choice([1, 2, 8, 100]):]
            case 2: return d[:i] + r.randbytes(r.randint(1, 9)) + d[i:]
            case 3: return d[:i] + r.choice([b'\xff'*4, bytes(8), b'\x80\x02', b'R', b'../..', b'cos\nsystem\n']) + d[i+4:]
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for _ in range(n):
            for k,d in good.items(): (folder/k).write_bytes(d)
            k = r.choice(['.metadata', '.metadata', '__0_0.distcp'])
            for _ in range(r.choice([1, 1, 2, 4])): (folder/k).write_bytes(damage((folder/k).read_bytes()) or b'x')
            try: got = read_shards(rest, folder, list_files(folder, files))
            except ValueError: refused += 1; continue
            for a,b in zip([*state['model'].values(), *state['opt']], [*got['model'].values(), *got['opt']]): assert (a.shape,a.dtype)==(b.shape,b.dtype)
    assert refused>n//2

def test_files_are_hashed_while_they_are_written(tmp_path, monkeypatch):
    "No file is read back for its digest, except if a writer seeks back in it"
    read,digest = [],shard_files._compute_digest
    monkeypatch.setattr(shard_files, '_compute_digest', lambda file: read.append(file.name) or digest(file))
    parts = {'a':torch.randn(5000), 'b':torch.arange(3)}
    files = shard_files.write_shards(parts, tmp_path/'new')
    assert not read and len(files)==2
    for name,found in files.items(): assert found==digest(tmp_path/'new'/name)
    with shard_files._HashedFile(tmp_path/'f') as f:
        f.write(b'12345')
        assert f.digest()[0]==5
        f.seek(0)
        f.write(b'9')
        assert f.digest() is None
    file = shard_files._HashedFile(tmp_path/'g')
    file.write(b'123')
    assert file.fileno()>0 and (tmp_path/'g').read_bytes()==b'123'   # `fileno`, which a sync needs, flushes the file
    file.close()
