"""Launchers themselves, not what they set: the same script under torchrun, Open MPI's mpirun and Slurm's srun, each with two
processes on this machine, and what becomes of a machine that joins, a port that is taken, a process that leaves or stands
still. What this machine does not have is left out. Slurm is started for it, of one node, which needs root and munge.

    python tests/bench/launch.py
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
with learn.no_bar(): learn.fit(20 if what=='joined' else 2, resume='auto')
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

def main(folder):
    (folder/'job.py').write_text(job)
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
                  f'weights equal {all(torch.equal(v, first[k]) for k,v in weights.items())}')
    two = [*run, '--standalone', '--nproc-per-node=2', '../job.py']
    print('leaves       ', sentence(ended(start(folder/'leaves', *two, 'leaves'), 60), 'process 0 has waited .*'))
    print('stands still ', sentence(ended(start(folder/'still', *two, 'stands still'), 180), r'ProcessFailed: .*'))
    with socket.socket() as s:
        s.bind(('', 0)); s.listen()
        took = dict(RANK='0', WORLD_SIZE='2', MASTER_ADDR='127.0.0.1', MASTER_PORT=str(s.getsockname()[1]))
        print('port taken   ', sentence(ended(start(folder/'port', sys.executable, '../job.py', 'port', **took), 60), 'RuntimeError: .*'))
    # PyTorch 2.13 keeps the store of the first round, in which a machine that comes later finds no address, unless told not to
    elastic = [*run, '--nnodes=1:2', '--nproc-per-node=1', '--rdzv-backend=c10d', '--rdzv-endpoint=127.0.0.1:29871', '--rdzv-conf=last_call_timeout=3', '--max-restarts=5', '../job.py', 'joined']
    one = start(folder/'joined', *elastic, TORCH_DISABLE_SHARE_RDZV_TCP_STORE='1')
    time.sleep(30)
    other = start(folder/'joined', *elastic, TORCH_DISABLE_SHARE_RDZV_TCP_STORE='1')
    time.sleep(40)
    os.killpg(other[0].pid, signal.SIGKILL)
    said = ended(one, 300)
    print('joined       ', re.findall(r'.* train together .*|resuming at .*|ended with .*', said))

if __name__=='__main__':
    with tempfile.TemporaryDirectory() as d: main(Path(d))
