"Moving nested batches to a device"
import pytest, torch
from hypothesis import given
from torch import nn

from learnkit.data.device import *
from learnkit.data.process import to_detach
from learnkit.data.random import *
from nested_cases import Enc, fast, nested, paths, same

@fast
@given(nested)
def test_to_device(x):
    m = to_device(x, 'meta')
    assert [(p, None if t is None else (t.shape, t.dtype)) for p,t in paths(x)]==\
           [(p, None if t is None else (t.shape, t.dtype)) for p,t in paths(m)]
    assert all(t is None or t.device.type=='meta' for _,t in paths(m))
    back = to_device(x, torch.device('cpu'))
    same(back, x)
    assert all(a is b for (_,a),(_,b) in zip(paths(back), paths(x)))

def test_to_device_in_place_is_free():
    x = torch.ones(2); p = nn.Parameter(x)
    for b in (x, p, (x,x), [x,p], ()): assert to_device(b, 'cpu') is b

def test_to_device_foreign():
    e = Enc(a=torch.ones(2))
    assert to_device((e, torch.ones(1)), 'meta')[0] is e and e['a'].device.type=='meta' and e.moved==torch.device('meta')
    p = nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)])
    assert type(to_cpu(p)) is type(p)
    mail = type('Mail', (), {'to':'me'})()
    assert to_device([mail, 'a', 3, None, torch.ones(1)], 'meta')[:4]==[mail, 'a', 3, None]

def test_default_device():
    assert default_device(False)==torch.device('cpu')
    if torch.accelerator.is_available(): assert default_device()==default_device(True)!=torch.device('cpu')
    else:
        assert default_device()==torch.device('cpu')
        with pytest.raises(RuntimeError, match='No accelerator'): default_device(True)

@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a GPU')
def test_cuda():
    x = torch.ones(2, device='cuda'); b = (x,x)
    assert to_device(b, default_device()) is b and to_device((x,x.cpu()), 'cuda')[1].is_cuda and not to_detach(x).is_cuda
    set_seed(3); torch.rand(5, device='cuda')
    s = get_random_states(); a = torch.rand(3, device='cuda')
    with no_random(): torch.rand(9, device='cuda')
    b = torch.rand(3, device='cuda'); set_random_states(**s)
    assert torch.equal(torch.rand(3, device='cuda'), a) and torch.equal(torch.rand(3, device='cuda'), b)
