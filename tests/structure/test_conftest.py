"The state that conftest.py sets up for each test."
import gc, multiprocessing, os, random, signal, subprocess, sys, weakref

import numpy as np, pytest, torch

drawn = random.random(),np.random.rand(),torch.rand(()).item()   # drawn while this module is imported

def test_random_numbers_at_import_are_the_same_in_each_process():
    "The data that a module drew at import used to differ from run to run, and one run in 400 failed"
    assert drawn==(random.random(), np.random.rand(), torch.rand(()).item())   # tests and modules have the same seeds

posix = pytest.mark.skipif(not hasattr(os, 'fork'), reason='needs fork')

def crash():
    import ctypes
    ctypes.string_at(0)

@posix
def test_a_crash_in_a_forked_process_prints_its_line(capfd):
    "A forked process once ended with SIGSEGV without a traceback"
    p = multiprocessing.get_context('fork').Process(target=crash)
    p.start(); p.join()
    assert p.exitcode==-signal.SIGSEGV
    err = capfd.readouterr().err
    assert 'Fatal Python error: Segmentation fault' in err and 'in crash' in err

def test_a_crash_in_a_started_process_prints_its_line():
    p = subprocess.run([sys.executable, '-c', 'import ctypes; ctypes.string_at(0)'], capture_output=True, text=True)
    assert p.returncode and 'Fatal Python error' in p.stderr and 'ctypes' in p.stderr

class Cycle:
    def __init__(self): self.me = self
    def __del__(self): os.write(2, b'collected')

@posix
def test_a_forked_process_does_not_collect_the_garbage_of_its_parent(capfd):
    "It closed loaders of its parent: `can only test a child process`, `semaphore or lock released too many times`"
    gc.disable()
    try:
        Cycle()
        p = multiprocessing.get_context('fork').Process(target=gc.collect)
        p.start(); p.join()
        assert p.exitcode==0 and 'collected' not in capfd.readouterr().err
    finally: gc.enable()
    gc.collect()
    assert 'collected' in capfd.readouterr().err
