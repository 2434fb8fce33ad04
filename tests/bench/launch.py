"""Launchers themselves, not the variables that they set: one script under torchrun, Open MPI's mpirun and Slurm's srun,
each with two processes on this machine; and what happens if a machine joins and leaves, a port is in use, a store is
left by an earlier attempt, a process exits or hangs. Launchers that this machine does not have are skipped. Slurm is
started with one node, which needs root and munge. On Debian: apt-get install openmpi-bin slurmctld slurmd slurm-client
munge

    python tests/bench/launch.py          all
    python tests/bench/launch.py joined   one of: launchers leaves still port stale joined
"""
import os, re, shutil, signal, socket, subprocess, sys, tempfile, time
from contextlib import contextmanager
from pathlib import Path
import torch

here   = Path(__file__).resolve().parent
root   = here.parents[1]
script = here.parent/'parts'/'processes'/'launched'/'train.py'
run    = [sys.executable, '-m', 'torch.distributed.run']
job    = '''
import os, signal, sys, time
what,rank = sys.argv[1],int(os.environ['RANK'])
if what=='leaves' and rank==1: sys.exit(0)
from learnkit.all import *
from learnkit.processes.distributed import DistributedTrainer
torch.set_num_threads(1); torch.manual_seed(0)
def pace(self):
    time.sleep(.2)
    if what=='stands still' and rank==1 and self.learn.train_iter==6: os.kill(os.getpid(), signal.SIGSTOP)
x = torch.randn(256, 4)
dls = DataLoaders.from_tensors(x, x.sum(1, keepdim=True), bs=16)
learn = Learner(dls, nn.Linear(4, 1), nn.MSELoss(), lr=.01, path='out', cbs=[DistributedTrainer(timeout=20), CheckpointCallback('5ba'), Callback(after_batch=pace)])
with learn.no_bar(): learn.fit(60 if what=='joined' else 2, resume='auto')
print('ended with', os.environ['WORLD_SIZE'], 'processes', flush=True)
'''

def environ(**kw):
    keep = {k:v for k,v in os.environ.items() if not re.match('RANK|WORLD_SIZE|LOCAL_|MASTER_|SLURM_|OMPI_|PMI|TORCHELASTIC', k)}
    return {**keep, 'PYTHONPATH':str(root), 'OMP_NUM_THREADS':'1', **kw}

def start(folder, *cmd, **env):
    "A command in a folder, and its log"
    folder.mkdir(exist_ok=True)
    log = open(folder/f'log-{len([*folder.glob("log-*")])}.txt', 'w+')
    return subprocess.Popen([*map(str, cmd)], cwd=folder, env=environ(**env), stdout=log, stderr=subprocess.STDOUT, start_new_session=True),log

def ended(started, seconds):
    "What it wrote, with its exit status first; after so many seconds it is ended"
    p,log = started
    try: p.wait(seconds)
    except subprocess.TimeoutExpired: os.killpg(p.pid, signal.SIGKILL); p.wait()
    log.seek(0)
    return f'exit {p.returncode}\n{log.read()}'

def until(started, pattern, seconds=180):
    "Wait until its log has this text, for a limited time"
    end = time.monotonic()+seconds
    while not re.search(pattern, Path(started[1].name).read_text()) and started[0].poll() is None and time.monotonic()<end: time.sleep(.2)

def lose(started):
    "As a machine is lost: torchrun's agent, and what it started, which has a session of its own"
    pids = subprocess.run(['pgrep', '-P', str(started[0].pid)], capture_output=True, text=True).stdout.split()
    for pid in (started[0].pid, *pids): os.kill(int(pid), signal.SIGKILL)

def sentence(text, pattern):
    m = re.search(pattern, text)
    return m[0] if m else 'NOTHING SAID:\n' + text[-2000:]

@contextmanager
def slurm(folder):
    "A Slurm of one node: its environment, None where it cannot be started"
    if os.getuid() or not all(map(shutil.which, ('slurmctld','slurmd','srun','munged'))): yield None; return
    if subprocess.run(['pgrep', 'munged'], capture_output=True).returncode: subprocess.run('mkdir -p /run/munge && chown munge /run/munge && su -s /bin/sh munge -c munged', shell=True, check=True)
    for d in ('state','spool'): (folder/d).mkdir(parents=True)
    name = socket.gethostname()
    (folder/'slurm.conf').write_text(f'''ClusterName=one
SlurmctldHost={name}
AuthType=auth/munge
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/d.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmctldPort=26817
SlurmdPort=26818
ReturnToService=2
NodeName={name} NodeAddr=127.0.0.1 CPUs={max(2, os.cpu_count())}
PartitionName=all Nodes=ALL Default=YES State=UP
''')
    env = dict(os.environ, SLURM_CONF=f'{folder}/slurm.conf')
    daemons = [subprocess.Popen([d, '-D'], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for d in ('slurmctld','slurmd')]
    time.sleep(5)
    try: yield dict(SLURM_CONF=env['SLURM_CONF'])
    finally:
        for d in daemons: d.terminate()

def launchers(folder):
    with slurm(folder/'slurm') as env:
        of = dict(torchrun=(run + ['--standalone', '--nproc-per-node=2'], {}))
        if shutil.which('mpirun'): of['mpirun'] = ['mpirun', '--allow-run-as-root', '--oversubscribe', '-np', 2],{}
        if env: of['srun'] = ['srun', '-n', 2],env
        first = {}
        for name,(cmd,more) in of.items():
            said = ended(start(folder/name, *cmd, *([] if name=='torchrun' else [sys.executable]), script, **more), 300)
            weights = torch.load(folder/name/'out/models/digits.pth', weights_only=True)['model']
            first = first or weights
            print(f'{name:13} {sentence(said, ".* train together .*")}; rows {len(re.findall(r"(?m)^[0-2] +[0-9]+[.]", said))}, control characters {len(re.findall("[^ -~×" + chr(10) + "]", said))}, '
                  f'weights equal {all(torch.equal(v, first[k]) for k,v in weights.items())}', flush=True)

two = [*run, '--standalone', '--nproc-per-node=2', '../job.py']

def leaves(folder):
    print('leaves       ', sentence(ended(start(folder/'leaves', *two, 'leaves'), 150), 'process 0 has waited .*'))

def still(folder):
    print('stands still ', sentence(ended(start(folder/'still', *two, 'stands still'), 300), r'ProcessFailed: .*'))

def by_hand(folder, rank, port, **env):
    return start(folder, sys.executable, '../job.py', 'by hand', RANK=str(rank), WORLD_SIZE='2', MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port), **env)

def port(folder):
    with socket.socket() as s:
        s.bind(('', 0)); s.listen()
        print('port taken   ', sentence(ended(by_hand(folder/'port', 0, s.getsockname()[1]), 120), 'RuntimeError: .*'))

def stale(folder):
    """Another process keeps the store, as torchrun's agent does. Only process 1 of a first attempt started; a second
    one was killed in training"""
    store = torch.distributed.TCPStore('127.0.0.1', 0, is_master=True, wait_for_workers=False)
    def one(rank): return by_hand(folder/'stale', rank, store.port, TORCHELASTIC_USE_AGENT_STORE='True')
    dead = [one(1)]
    time.sleep(20)
    ended(dead[0], 0)
    dead = [one(0), one(1)]
    end = time.monotonic()+120
    while not [*folder.glob('stale/out/checkpoints/*/*.json')] and time.monotonic()<end: time.sleep(.1)
    for p in dead: ended(p, 0)
    ps = [one(0), one(1)]
    print('stale store  ', [re.findall(r'.* train together .*|resuming at .*|ended with .*', ended(p, 180)) for p in ps])

def joined(folder):
    # By default PyTorch 2.13 keeps the store of the first round, in which a later machine finds no address
    elastic = [*run, '--nnodes=1:2', '--nproc-per-node=1', '--rdzv-backend=c10d', '--rdzv-endpoint=127.0.0.1:29871', '--rdzv-conf=last_call_timeout=3', '--max-restarts=5', '../job.py', 'joined']
    def agent(): return start(folder/'joined', *elastic, TORCH_DISABLE_SHARE_RDZV_TCP_STORE='1')
    one = agent()
    until(one, r'(?m)^\S*1\W')   # the row of an epoch
    other = agent()
    until(one, '2 processes train together')
    time.sleep(20)
    lose(other)
    said = ended(one, 400)
    print('joined, left ', re.findall(r'.* train together .*|resuming at .*|ended with .*', said))

cases = dict(launchers=launchers, leaves=leaves, still=still, port=port, stale=stale, joined=joined)

def main(folder, names):
    (folder/'job.py').write_text(job)
    for name in names or cases: cases[name](folder); sys.stdout.flush()

if __name__=='__main__':
    with tempfile.TemporaryDirectory() as d: main(Path(d), sys.argv[1:])
