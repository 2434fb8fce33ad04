"Questions about models: wrappers, parameters, layers, norms"
import torch
from torch import nn

from learnkit.data.modules import *

def test_get_model():
    m = nn.Linear(2,2)
    c = torch.compile(m)
    for w in (m, c, nn.DataParallel(m), nn.DataParallel(c), torch.compile(nn.DataParallel(m))): assert get_model(w) is m
    f = lambda x: x
    assert get_model(f) is f

def test_params():
    m = nn.Sequential(nn.Linear(2,2), nn.ReLU())
    m[0].bias.requires_grad_(False)
    assert len(params(m))==2 and len(trainable_params(m))==1 and one_param(m) is m[0].weight
    assert one_param(nn.ReLU()) is None and not has_params(nn.ReLU())

class LlamaRMSNorm(nn.Module):
    def __init__(self): super().__init__(); self.weight = nn.Parameter(torch.ones(2))

class PreNorm(nn.Module):
    def __init__(self, fn): super().__init__(); self.norm,self.fn = nn.LayerNorm(2),fn

class NormLinear(nn.Linear): pass

def test_norm_bias_params():
    tied,tied2 = nn.Linear(2,2),nn.Linear(2,2)
    tied2.bias = tied.bias
    m = nn.Sequential(nn.BatchNorm2d(2), nn.GroupNorm(1,2), nn.RMSNorm(2), LlamaRMSNorm(), PreNorm(nn.Linear(2,2)), NormLinear(2,2),
                      nn.LSTM(2,2), nn.MultiheadAttention(2,1), tied, tied2, nn.SyncBatchNorm(2), nn.InstanceNorm1d(2, affine=True))
    nms = {id(p):n for n,p in m.named_parameters()}
    norms = ['0.weight','0.bias','1.weight','1.bias','2.weight','3.weight','4.norm.weight','4.norm.bias',
             '10.weight','10.bias','11.weight','11.bias']
    biases = ['4.fn.bias','5.bias','6.bias_ih_l0','6.bias_hh_l0','7.in_proj_bias','7.out_proj.bias','8.bias']
    assert [nms[id(p)] for p in norm_bias_params(m, with_bias=False)]==norms
    both = [nms[id(p)] for p in norm_bias_params(m)]
    assert sorted(both)==sorted(norms+biases) and len(set(both))==len(both)
    assert [nms[id(p)] for p in norm_bias_params(m[0])]==['0.weight','0.bias']

def test_flatten_model():
    class M(nn.Module):
        def __init__(self): super().__init__(); self.a,self.p,self.b = nn.Linear(1,1),nn.Parameter(torch.ones(1)),nn.Sequential(nn.ReLU())
    m = M(); fs = flatten_model(nn.Sequential(m, nn.Tanh()))
    assert [type(o).__name__ for o in fs]==['Linear','ReLU','ParameterModule','Tanh']
    assert {id(p) for f in fs for p in f.parameters()}=={id(p) for p in m.parameters()}
    assert flatten_model(m.a)==[m.a]
