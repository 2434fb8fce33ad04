"What each test starts from, beside its own imports."
import gc, multiprocessing, os, random, signal, subprocess, sys, weakref

import numpy as np, pytest, torch

drawn = random.random(),np.random.rand(),torch.rand(()).item()   # while this module is imported

def test_what_a_module_draws_is_the_same_in_each_process():
    "A module drew other data in each run, of which one in 400 made a test fail"
    assert drawn==(random.random(), np.random.rand(), torch.rand(()).item())   # the seeds of a test are those of a module

posix = pytest.mark.skipif(not hasattr(os, 'fork'), reason='needs fork')

def crash():
    import ctypes
    ctypes.string_at(0)

@posix
def test_a_forked_process_that_crashes_says_where(capfd):
    "One ended with SIGSEGV, once, and nobody knew in which line"
    p = multiprocessing.get_context('fork').Process(target=crash)
    p.start(); p.join()
    assert p.exitcode==-signal.SIGSEGV
    said = capfd.readouterr().err
    assert 'Fatal Python error: Segmentation fault' in said and 'in crash' in said

def test_a_started_process_that_crashes_says_where():
    p = subprocess.run([sys.executable, '-c', 'import ctypes; ctypes.string_at(0)'], capture_output=True, text=True)
    assert p.returncode and 'Fatal Python error' in p.stderr and 'ctypes' in p.stderr

class Cycle:
    def __init__(self): self.me = self
    def __del__(self): os.write(2, b'collected')

@posix
def test_a_forked_process_leaves_the_garbage_to_its_parent(capfd):
    "It closed the loaders of the process that forked it: `can only test a child process`, `semaphore or lock released too many times`"
    gc.disable()
    try:
        Cycle()
        p = multiprocessing.get_context('fork').Process(target=gc.collect)
        p.start(); p.join()
        assert p.exitcode==0 and 'collected' not in capfd.readouterr().err
    finally: gc.enable()
    gc.collect()
    assert 'collected' in capfd.readouterr().err
