"""One script without code for processes gives the same weights under each launcher, and prints once"""
import json, os, re, runpy, subprocess, sys
from pathlib import Path

import pytest, torch
import learnkit.all, sklearn.datasets   # the forked processes have them then
from toys import slow

here = Path(__file__).resolve().parent
script = here/'launched'/'train.py'
together = '2 processes train together ({}): 2 × cpu'

def env(**kw):
    "The environment of the processes before a launcher sets its variables"
    keep = {k:v for k,v in os.environ.items() if not re.match('RANK|WORLD_SIZE|LOCAL_|MASTER_|SLURM_|OMPI_|PMI|TORCHELASTIC', k)}
    return {**keep, 'PYTHONPATH':str(here.parents[2]), 'OMP_NUM_THREADS':'1', **{k:str(v) for k,v in kw.items()}}

# what each launcher sets: of two processes on one machine

def open_mpi(rank, **kw):
    return env(OMPI_COMM_WORLD_RANK=rank, OMPI_COMM_WORLD_SIZE=2, OMPI_COMM_WORLD_LOCAL_RANK=rank, OMPI_COMM_WORLD_LOCAL_SIZE=2, OMPI_COMM_WORLD_NODE_RANK=rank, OMPI_UNIVERSE_SIZE=2,
               OMPI_APP_CTX_NUM_PROCS=2, PMIX_RANK=rank, PMIX_NAMESPACE=f'prterun-node-{os.getpid()}@1', **kw)
def mpich(rank, **kw): return env(PMI_RANK=rank, PMI_SIZE=2, PMI_FD=6, MPI_LOCALRANKID=rank, MPI_LOCALNRANKS=2, **kw)
def slurm_batch(**kw):
    "What the script that `sbatch` runs has, once"
    return env(SLURM_JOB_ID=os.getpid(), SLURM_JOBID=os.getpid(), SLURM_JOB_NODELIST='localhost', SLURM_NODELIST='localhost', SLURM_JOB_NUM_NODES=1, SLURM_NNODES=1, SLURM_NTASKS=2, SLURM_NPROCS=2,
               SLURM_NTASKS_PER_NODE=2, SLURM_TASKS_PER_NODE=2, SLURM_PROCID=0, SLURM_LOCALID=0, SLURM_NODEID=0, SLURM_GTIDS=0, SLURM_SUBMIT_HOST='login', **kw)
def srun(rank, **kw):
    step = dict(SLURM_PROCID=rank, SLURM_LOCALID=rank, SLURM_GTIDS='0,1', SLURM_STEP_ID=0, SLURM_STEPID=0, SLURM_STEP_NODELIST='localhost', SLURM_STEP_NUM_NODES=1, SLURM_STEP_NUM_TASKS=2,
                SLURM_STEP_TASKS_PER_NODE=2, SLURM_LAUNCH_NODE_IPADDR='127.0.0.1', SLURM_SRUN_COMM_HOST='127.0.0.1')
    return {**slurm_batch(), **{k:str(v) for k,v in step.items()}, **kw}
def pmi2(rank): return srun(rank, PMI_RANK=str(rank), PMI_SIZE='2', PMI_FD='6', PMI_JOBID='1.0')   # srun --mpi=pmi2
def mpi_in_slurm(rank):
    "On another machine of the job mpirun starts its helper by srun, as a step with one task"
    return {**srun(0), 'SLURM_STEP_NUM_TASKS':'1', **{k:v for k,v in open_mpi(rank).items() if k[:4] in ('OMPI','PMIX')}}

# the runs

def _starts(rank, envs, folder, world, file):
    os.environ.clear(); os.environ.update(envs[rank])
    os.chdir(folder)
    for fd,name in (1,'stdout'),(2,'stderr'):
        f = os.open(f'{name}{rank}', os.O_WRONLY|os.O_CREAT|os.O_TRUNC)
        os.dup2(f, fd)
    sys.stdout,sys.stderr = (open(fd, 'w', buffering=1, closefd=False) for fd in (1, 2))
    runpy.run_path(str(file), run_name='__main__')
    sys.stdout.flush(); sys.stderr.flush()

def fork(folder, *envs, file=script):
    "Start the script as processes with these environments; forked, as an import of torch takes longer than the training"
    torch.multiprocessing.start_processes(_starts, (envs, folder, len(envs), file), nprocs=len(envs), start_method='fork')
    return ''.join((folder/f'stdout{r}').read_text() for r in range(len(envs))),''.join((folder/f'stderr{r}').read_text() for r in range(len(envs)))

def started(folder, *cmd, **kw):
    "Run a command there and return its output"
    res = subprocess.run([str(c) for c in cmd], cwd=folder, env=env(**kw), capture_output=True, text=True, timeout=180)
    assert not res.returncode, res.stdout + res.stderr
    return res.stdout,res.stderr

def weights(folder): return torch.load(folder/'out'/'models'/'digits.pth', weights_only=True)['model']

def check(folder, said, out, err='', same=None, world=2):
    "One table, one log, one writer of checkpoints; the line about the processes; the weights"
    lines = out.splitlines()
    assert sum('train together' in o for o in lines)==(world>1) and sum(o.startswith('epoch ') for o in lines)==1, out
    assert (together.format(said) if said else 'epoch') in out and sum(bool(re.match(r'\d +\d', o)) for o in lines)==3, out
    assert not any('Warning' in l or 'Error' in l or 'TCPStore' in l for l in err.splitlines()), err   # process 0 keeps the store until the others have left
    rows = [json.loads(o) for o in (folder/'out'/'log.jsonl').read_text().splitlines()]
    n = 13 if world==1 else 7   # of 401 samples in batches of 32
    assert [r['step'] for r in rows]==[0, n, 2*n, 3*n]
    saved = sorted(p.name for p in (folder/'out'/'checkpoints'/'fit-1').glob('*.pth'))
    assert saved==[f'step-{i:08}{"-final"*(i==3*n)}.pth' for i in (*range(5, 3*n, 5), 3*n)][-3:]
    if same is not None: assert all(torch.equal(v, same[k]) for k,v in weights(folder).items())

@pytest.fixture(scope='module')
def two(tmp_path_factory):
    "The weights of two processes that torchrun's variables describe"
    folder = tmp_path_factory.mktemp('two')
    port = 20000 + os.getpid()%10000
    both = [env(RANK=r, LOCAL_RANK=r, WORLD_SIZE=2, LOCAL_WORLD_SIZE=2, MASTER_ADDR='127.0.0.1', MASTER_PORT=port) for r in range(2)]
    check(folder, 'RANK and WORLD_SIZE, gloo', *fork(folder, *both))
    return weights(folder)

@pytest.mark.parametrize('of,said', [(srun,'srun, gloo'), *slow((open_mpi,'mpirun, gloo'), (mpich,'mpiexec, gloo'), (pmi2,'srun, gloo'), (mpi_in_slurm,'mpirun, gloo'))])
def test_variables(tmp_path, two, of, said): check(tmp_path, said, *fork(tmp_path, of(0), of(1)), two)

def test_one_of_an_elastic_launch(monkeypatch):
    """`torchrun --nnodes 1:2` starts with one process: a script with DistributedTrainer trains alone until a second
    one joins; without a launcher it raises"""
    from learnkit.all import DataLoaders, DistributedTrainer, Learner
    def fit(*cbs):
        torch.manual_seed(0)
        x = torch.randn(16, 4)
        learn = Learner(DataLoaders.from_tensors(x, x.sum(1, keepdim=True), bs=4), torch.nn.Linear(4, 1), torch.nn.MSELoss(), lr=.01, cbs=cbs)
        with learn.no_bar(), learn.no_logging(): learn.fit(2)
        return learn.model.weight
    with pytest.raises(RuntimeError, match='no process group'): fit(DistributedTrainer())
    for k,v in dict(RANK=0, LOCAL_RANK=0, WORLD_SIZE=1, MASTER_ADDR='127.0.0.1', MASTER_PORT=29500, TORCHELASTIC_RUN_ID='x').items(): monkeypatch.setenv(k, str(v))
    assert torch.equal(fit(DistributedTrainer(sync_bn=True)), fit())

@pytest.mark.slow
def test_alone(tmp_path, two):
    "In a terminal, and in the script of `sbatch` without `srun`, which has the variables of eight"
    for name,e in dict(plain=env(), batch=slurm_batch()).items():
        (tmp_path/name).mkdir()
        check(tmp_path/name, '', *fork(tmp_path/name, e), world=1)
    a,b = weights(tmp_path/'plain'),weights(tmp_path/'batch')
    assert all(torch.equal(v, b[k]) for k,v in a.items()) and not any(torch.equal(v, two[k]) for k,v in a.items() if v.ndim==2)

@pytest.mark.slow
def test_torchrun(tmp_path, two):
    out,err = started(tmp_path, sys.executable, '-m', 'torch.distributed.run', '--nproc-per-node=2', '--rdzv-backend=c10d', '--rdzv-endpoint=localhost:0', script)
    check(tmp_path, 'torchrun, gloo', out, err, two)

@pytest.mark.slow
def test_accelerate(tmp_path, two):
    "`--multi_gpu` is its word for several processes; `--cpu --num_processes=2` starts one"
    pytest.importorskip('accelerate')
    out,err = started(tmp_path, sys.executable, '-m', 'accelerate.commands.launch', '--multi_gpu', '--num_processes=2', '--main_process_port=0', '--mixed_precision=no', script)
    check(tmp_path, 'torchrun, gloo', out, '', two)

@pytest.mark.slow
def test_notebook(tmp_path, two):
    "Accelerate's `notebook_launcher` forks the notebook, so that functions of its cells are there"
    pytest.importorskip('accelerate')
    cells = f'import sys; sys.path.insert(0, {str(script.parent)!r})\nfrom accelerate import notebook_launcher\nfrom train import main\nnotebook_launcher(main, num_processes=2, use_port={21000 + os.getpid()%10000})'
    check(tmp_path, 'torchrun, gloo', *started(tmp_path, sys.executable, '-c', cells), two)

@pytest.mark.slow
def test_ray(tmp_path, two):
    """Ray makes the group itself; its workers send what they print to the driver, with their number (and log it again
    on stderr)"""
    pytest.importorskip('ray.train')
    out,err = started(tmp_path, sys.executable, script.parent/'ray_train.py', 2, tmp_path, RAY_TRAIN_V2_ENABLED=1)
    said = [re.sub(r'\(RayTrainWorker pid=\d+\) ', '', re.sub(r'\x1b\[\d+m', '', o)) for o in out.splitlines() if 'RayTrainWorker' in o]
    check(tmp_path, 'in an existing process group, gloo', '\n'.join(said), same=two)

# the files in the how-tos

howto = here.parents[2]/'nbs'/'howto'
def blocks(kind):
    "The code blocks of this kind: page and text"
    for p in sorted(howto.glob('*.ipynb')):
        text = '\n'.join(''.join(c['source']) for c in json.loads(p.read_text())['cells'] if c['cell_type']=='markdown')
        yield from ((p.stem, b) for b in re.findall(rf'^```{kind}\n(.*?)^```', text, re.M|re.S))

def test_yaml():
    "The YAML of the pages can be read, and has the right number of processes"
    yaml = pytest.importorskip('yaml')
    files = [yaml.safe_load(b) for _,b in blocks('yaml')]
    assert [f.get('kind', 'Accelerate') for f in files]==['Accelerate', 'PyTorchJob', 'PersistentVolumeClaim']
    accelerate,job,claim = files
    spec,worker = job['spec'],job['spec']['pytorchReplicaSpecs']['Worker']
    pod = worker['template']['spec']
    mounted,volumes = {m['name'] for m in pod['containers'][0]['volumeMounts']},{v['name']:v for v in pod['volumes']}
    assert mounted=={*volumes} and volumes['data']['persistentVolumeClaim']['claimName']==claim['metadata']['name']
    assert int(spec['nprocPerNode'])==pod['containers'][0]['resources']['limits']['nvidia.com/gpu']==accelerate['num_processes']
    assert worker['replicas']==spec['elasticPolicy']['minReplicas']==spec['elasticPolicy']['maxReplicas']

def test_shell():
    "bash parses the sbatch file"
    files = [b for page,b in blocks('bash') if page=='train_on_slurm']
    assert len(files)==1 and files[0].startswith('#!/bin/bash\n#SBATCH')
    subprocess.run(['bash', '-n'], input=files[0], text=True, check=True)
