"The thread that says where a process is only looks: it keeps nothing alive of the thread that it looks at."
import threading, weakref
import torch

from learnkit.processes.watch import Watch

class Looks(Watch):
    "Looks at a thread without a group of processes"
    def __init__(self, thread): self.thread = thread

def test_what_a_function_lets_go_of_is_freed_while_it_is_watched():
    "Activations outlived their forward pass by a second: in the frames that the watch held, and in its copies of their locals"
    seen,go,done,done2 = [],*(threading.Event() for _ in range(3))
    def forward():
        act = torch.zeros(10)
        seen.append(weakref.ref(act))
        go.set(); done.wait(10)
        del act
        go.set(); done2.wait(10)
    t = threading.Thread(target=forward); t.start()
    assert go.wait(10); go.clear()
    where,waits = Looks(t.ident)._look()
    assert 'test_watch.py' in where and not waits
    done.set()
    assert go.wait(10)
    assert seen[0]() is None, 'the look keeps what the thread has let go of'
    done2.set(); t.join(10)
