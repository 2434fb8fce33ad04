"Rank, world size, and tensors gathered from two processes"
import pickle, time
from dataclasses import dataclass

import pytest, torch
from torch import tensor

from learnkit.data import process
from learnkit.data.process import *

@dataclass
class Output:
    logits: torch.Tensor
    hidden: dict

def test_to_detach():
    w = torch.ones(2, requires_grad=True)
    a,b = to_detach((w*2, [w, None, 'a']))
    assert not a.requires_grad and not b[0].requires_grad and b[1:]==[None,'a']
    output = Output(w*2, {'h':[w*3]})   # a dataclass was returned as it is, with the graph of its tensors
    got = to_detach(output)
    assert type(got) is Output and not got.logits.requires_grad and not got.hidden['h'][0].requires_grad
    assert output.logits.requires_grad and output.hidden['h'][0].requires_grad

def test_alone_whatever_the_environment(monkeypatch):
    for k in 'RANK','WORLD_SIZE','LOCAL_RANK': monkeypatch.setenv(k, '3')
    assert (rank_distrib(), num_distrib())==(0,1)

def _gather(rank, path):
    torch.set_num_threads(1)
    torch.distributed.init_process_group('gloo', init_method=f'file://{path}', rank=rank, world_size=2)
    assert (rank_distrib(), num_distrib())==(rank,2)
    x = torch.arange(3+rank*2)[:,None].expand(-1,2)+10*rank           # 3 rows, 5 rows
    out = to_detach({'x':x, 'y':(x[:,0]>1, tensor(float(rank)), x[:0]), 'n':'a'})
    assert torch.equal(out['x'], torch.cat([torch.arange(3), torch.arange(5)+10])[:,None].expand(-1,2))
    assert out['y'][0].dtype==torch.bool and out['y'][0].tolist()==[False,False,True]+[True]*5
    assert out['y'][1]==0.5 and out['y'][2].shape==(0,2) and out['n']=='a'
    assert to_detach(x, gather=False).shape==x.shape
    with pytest.raises(ValueError, match='have the same shape after the first'): maybe_gather(torch.ones(2, 2+rank))
    assert maybe_gather(tensor(rank)).item()==0.5
    torch.distributed.destroy_process_group()

def test_gather_two_processes(tmp_path): \
    torch.multiprocessing.start_processes(_gather, (tmp_path/'init',), nprocs=2, start_method='fork')

def _first(rank, path):
    torch.set_num_threads(1)
    torch.distributed.init_process_group('gloo', init_method=f'file://{path}', rank=rank, world_size=2)
    done = path.parent/'done'
    def download(): found = done.exists(); time.sleep(.2*(not rank)); done.touch(); return found
    assert rank0_first(download)==(rank==1)
    def fails(): 1/0
    with pytest.raises(ZeroDivisionError): rank0_first(fails)
    torch.distributed.destroy_process_group()

def test_rank0_first(tmp_path):
    "The second process finds what the first has left, and does not wait for ever if that fails"
    torch.multiprocessing.start_processes(_first, (tmp_path/'init',), nprocs=2, start_method='fork')
    assert rank0_first(divmod, 7, 2)==(3,1)

def test_rank0_first_without_a_group():
    "A process with a rank but no group cannot wait for others: it raised an error of PyTorch"
    process.set_rank(1)
    try: assert rank0_first(divmod, 7, 2)==(3,1)
    finally: process.set_rank(0)

@pytest.mark.parametrize('kind', ['conj','negated','expanded','transposed','empty','number','with gradient','bf16','sparse','parameter','inference'])
def test_a_tensor_is_sent_as_it_is(kind):
    "… between processes, where plain ones go as arrays: an array cannot hold each of these"
    z,t = torch.tensor([1+2j, 3-4j]),torch.arange(6.).view(2, 3)
    with torch.inference_mode(): inferred = t+1
    o = {'conj':z.conj(), 'negated':z.conj().imag, 'expanded':t[:1].expand(4, 3), 'transposed':t.T, 'empty':t[:0], 'number':torch.tensor(3.),
         'with gradient':t.clone().requires_grad_(), 'bf16':t.bfloat16(), 'sparse':t.to_sparse(), 'parameter':torch.nn.Parameter(t), 'inference':inferred}[kind]
    got, = pickle.loads(process._pickle([o]))
    assert type(got) is type(o) and (got.dtype,got.shape,got.requires_grad)==(o.dtype,o.shape,o.requires_grad)
    assert torch.equal(got.to_dense(), o.to_dense())
    if kind=='negated': assert o.is_neg()
