"Processes of a machine share values in memory: none reads half a message or waits for a process that has ended."
import os, random, time
from datetime import timedelta

import pytest, torch
from torch import distributed as dist

from learnkit.processes import board as module
from learnkit.processes.agreement import _GroupChannel, _open_channel
from learnkit.processes.board import SharedMemory, Mismatch, open_shared_memory

def _inside(rank, world, path, f):
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'file://{path}', rank=rank, world_size=world, timeout=timedelta(seconds=30))
    f(rank, world)

@pytest.fixture
def processes(tmp_path):
    def run(world, f): torch.multiprocessing.start_processes(_inside, (world, tmp_path/'store', f), nprocs=world, start_method='fork')
    return run

def _all_read_the_largest(rank, world):
    board,rng = open_shared_memory(),random.Random(0)
    for i in range(300):
        sent = [[rng.choice([rng.randrange(-2**63, 2**63), 0, -1]) for _ in range(i%25)] for _ in range(world)]
        data = [rng.randbytes(rng.choice([0, 1, 300, board.max_bytes]) if rng.random()<.1 else i%7) for _ in range(world)] if i%3 else [None]*world
        if rng.randrange(50)==rank: time.sleep(.003)
        message = board.begin(sent[rank], data[rank])
        message.wait(timedelta(seconds=20))
        assert message.tolist()==[*map(max, *sent)] and [*map(message.data.get, range(world))]==data, i
    message = board.begin([rank], b'' if rank else None)
    with pytest.raises(Mismatch): message.wait(timedelta(seconds=20))

def test_all_read_the_largest(processes): processes(3, _all_read_the_largest)

def _broken_off(rank, world):
    "A process that does not wait for a message, as a Ctrl-C came, sends the next one; it does not disturb those that are behind"
    board = open_shared_memory()
    board.begin([1]).wait(timedelta(seconds=20))
    first = board.begin([rank])
    if rank==0: second = board.begin([5])   # without the others' first one
    else:
        dist.barrier(); first.wait(timedelta(seconds=20)); assert first.tolist()==[1]
        second = board.begin([4])
    if rank==0: dist.barrier()
    second.wait(timedelta(seconds=20))
    assert second.tolist()==[5]
    board.begin([0])
    if rank==0:
        with pytest.raises(RuntimeError, match='have not written'): board.begin([0]).wait(timedelta(seconds=.05))

def test_a_message_that_is_broken_off(processes): processes(2, _broken_off)

def _one_ends(rank, world):
    board = open_shared_memory()
    last = board.begin([rank])
    if rank==1: os._exit(0)   # with its last words written
    last.wait(timedelta(seconds=20))
    assert last.tolist()==[2]
    start = time.monotonic()
    message = board.begin([0])
    with pytest.raises(RuntimeError, match='has ended'): message.wait(timedelta(seconds=20))
    assert time.monotonic()-start<10 and board.find_ended()==[1] and message.is_completed()
    time.sleep(2)   # the other one looks, too
    os._exit(0)

def test_waiting_for_a_process_that_ends_raises(processes): processes(3, _one_ends)

def test_half_a_message_is_none(tmp_path):
    with open(tmp_path/'memory', 'w+b') as f:
        board = SharedMemory(f, 0, 2)
        assert board.read(0, 0) is None
        board.begin([7, 8], b'data')
        whole = board.memory[:]
        assert board.read(0, 1)[0][:2]==[7, 8] and board.read(0, 1)[1]==b'data' and board.read(0, 2) is None and board.read(1, 1) is None
        at = board._find_offset(0, 1)
        for i in (at, at+9, at+16, at+19, at+25, at+27*8-1, at+27*8+3):   # the checksum, its number, the length twice, the text
            board.memory[:] = whole
            board.memory[i] ^= 1
            assert board.read(0, 1) is None, i
        board.memory[:] = whole
        for _ in range(4): board.begin([9])
        with pytest.raises(RuntimeError, match='continued without'): board.read(0, 1)

def test_other_files_are_no_boards(tmp_path):
    with open(tmp_path/'x', 'w+b') as f: assert module._open_memory_file(os.getpid(), f.fileno(), 'x') is None
    assert module._open_memory_file(os.getpid(), 10**6, 'x') is None

def _without(rank, world):
    "On several machines"
    if rank==1: module._open_memory_file = lambda *args: None
    assert open_shared_memory() is None
    messages = _open_channel(30)
    assert isinstance(messages, _GroupChannel) and messages is _open_channel(30)
    message = messages.begin([rank, -rank])
    message.wait(timedelta(seconds=20))
    assert message.tolist()==[1, 0] and message.is_completed()

def test_without_shared_memory_they_go_by_gloo(processes): processes(2, _without)
