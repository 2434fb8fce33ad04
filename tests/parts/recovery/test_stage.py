"Copies for checkpoints in the background: complete when they are written, from any device"
import pytest, torch

import learnkit.recovery.checkpoint as m
from learnkit.recovery.checkpoint import Stage

class Copy:
    "A copy on the CPU, which notes how it was made"
    def __init__(self, seen): self.seen = seen
    def copy_(self, t, non_blocking):
        self.seen.append((t.device, non_blocking))
        return self

class OnDevice:
    "A tensor on a device that this machine lacks"
    layout,is_nested,dtype,shape = torch.strided,False,torch.float32,torch.Size([2])
    def __init__(self, device, seen): self.device,self.is_cuda,self.seen = device,device.startswith('cuda'),seen
    def stride(self): return (1,)
    def to(self, device, copy): return Copy(self.seen)

@pytest.mark.parametrize('devices', [['mps'], ['cuda:0','cuda:1'], ['cuda:1','xpu','cuda:0']])
def test_copies_are_complete_when_they_are_written(devices, monkeypatch):
    "`wait` waits for each GPU, not only the last; copies from other devices, which have no events, are not asynchronous"
    seen,waited = [],[]
    class Stream:
        def __init__(self, device): self.device = device
        def record_event(self): return self
        def synchronize(self): waited.append(self.device)
    monkeypatch.setattr(torch.cuda, 'current_stream', Stream)
    monkeypatch.setattr(m, '_create_pinned_like', lambda t: Copy(t.seen))
    stage,tensors = Stage(),[OnDevice(device, seen) for device in devices]
    for _ in range(2):
        stage.begin()
        for t in tensors: stage(t)
    stage.wait()
    assert {*waited}=={d for d in devices if 'cuda' in d}
    assert all(non_blocking==device.startswith('cuda') for device,non_blocking in seen) and {d for d,_ in seen}=={*devices}
    stage.clear()
    assert not stage.copy_events
