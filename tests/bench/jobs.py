"""The jobs of `nbs/examples` compared with the library that does each best: how much there is to write, and how it runs.

    python tests/bench/jobs.py gan ours|peer     trains one of them, to check that it does the job; needs the peer:
                                                 lightning, skorch, torchmetrics, optuna and optuna-integration
    python tests/bench/jobs.py                   trains all, kills and resumes all, and writes `jobs/results.json`

Data, model and result are the notebook's for both; `jobs/gan.py` and the others are the section "Training" of a
notebook, written for the other library. Lines are those with code, without comments and docstrings; words are Python's
tokens.

Seconds are CPU time of the training, the best of two processes; both alternate. The process is killed after five eighths
of the training batches. The scripts are not adapted to this: each fit here has a `CheckpointCallback('19ba')` and
`resume='auto'`, each Trainer of Lightning a `ModelCheckpoint(every_n_train_steps=19)` and its file as `ckpt_path`, each
net of skorch a `Checkpoint` after each epoch and `LoadInitState`. Compared bit for bit is all that the script has named
in the end: weights, scores, texts.
"""
import io, json, os, re, subprocess, sys, tempfile, time, tokenize
from pathlib import Path
from types import SimpleNamespace

root = Path(__file__).resolve().parents[2]
peers = Path(__file__).resolve().parent/'jobs'

def sections(job):
    "The code of the notebook: before `Training`, in it, and behind it"
    res,at = [[],[],[]],0
    for c in json.loads((root/f'nbs/examples/{job}.ipynb').read_text(encoding='utf-8'))['cells']:
        src = ''.join(c['source'])
        if c['cell_type']=='code': res[at].append(src)
        elif src.startswith('## Training'): at = 1
        elif src.startswith('## ') and at==1: at = 2
    return ['\n\n'.join(o) for o in res]

def peer(job):
    "Who the other one is, its code, and what brings its result into the form of the notebook's"
    code,_,result = (peers/f'{job}.py').read_text(encoding='utf-8').partition('# the result\n')
    return code.splitlines()[1].lstrip('# '),code,result

def count(src):
    "Lines with code, and words"
    lines,n,before = set(),0,tokenize.NEWLINE
    skip = tokenize.COMMENT,tokenize.NL,tokenize.NEWLINE,tokenize.INDENT,tokenize.DEDENT,tokenize.ENCODING,tokenize.ENDMARKER
    for t in tokenize.generate_tokens(io.StringIO(src).readline):
        doc = t.type==tokenize.STRING and before in (tokenize.NEWLINE,tokenize.INDENT,tokenize.DEDENT)
        if t.type not in skip and not doc:
            lines.update(range(t.start[0], t.end[0]+1))
            n += 1
        if t.type not in (tokenize.COMMENT,tokenize.NL): before = t.type
    return len(lines),n

# one of them

def lightning(names, folder=None):
    """A Trainer on the CPU without logs, and without checkpoints unless they are requested; in a `folder` it resumes a
    killed run"""
    import lightning as L
    class Watch(L.Callback):
        def on_train_batch_end(self, *args): names['_Watch'].after_batch(None)
    class Trainer(L.Trainer):
        n = 0
        def __init__(self, callbacks=(), **kw):
            cbs = [*callbacks] if isinstance(callbacks, (list,tuple)) else [callbacks]
            Trainer.n += 1
            self.kept = folder and folder/f'{Trainer.n}'
            if folder: cbs += [Watch(), L.pytorch.callbacks.ModelCheckpoint(self.kept, every_n_train_steps=19, save_last=True)]
            saves = any(isinstance(cb, L.pytorch.callbacks.ModelCheckpoint) for cb in cbs)
            quiet = dict(accelerator='cpu', logger=False, enable_checkpointing=saves, enable_model_summary=False)
            super().__init__(callbacks=cbs, **{**quiet, **kw})
        def fit(self, *args):
            last = self.kept and self.kept/'last.ckpt'
            super().fit(*args, ckpt_path=last if last and last.exists() else None)
    names.update(L=SimpleNamespace(**{**vars(L), 'Trainer':Trainer}))

def skorch_net(names, folder):
    "A net of skorch that resumes in `folder` what was killed"
    import skorch
    from skorch.callbacks import Callback, Checkpoint, LoadInitState
    class Watch(Callback):
        def on_batch_end(self, net, training, **kw):
            if training: names['_Watch'].after_batch(None)
    class Net(skorch.NeuralNetClassifier):
        n = 0
        def fit(self, X, y=None, **kw):
            Net.n += 1
            kept = Checkpoint(monitor=None, dirname=str(folder/f'{Net.n}'))
            self.callbacks = [*(self.callbacks or []), Watch(), kept, LoadInitState(kept)]
            return super().fit(X, y, **kw)
    names.update(skorch=SimpleNamespace(**{**vars(skorch), 'NeuralNetClassifier':Net}))

def main(job, who, folder=None, kill_at=0):
    "Train, and print the seconds that it took; the notebook's last cell asserts that the job is done. With a `folder`: resume there"
    os.environ['MPLBACKEND'] = 'Agg'
    os.chdir(root/'nbs/examples')
    before,training,after = sections(job)
    names = {'__name__':'__main__','SimpleNamespace':SimpleNamespace,'Path':Path}
    if folder:
        sys.path[:0] = [str(root/'tests/faults'), str(root/'tests/structure')]
        from test_jobs import BEFORE, AFTER
        os.chdir(folder)
        exec(BEFORE.format(folder=folder, kill_at=kill_at), names)
        after += AFTER.format(folder=folder)
    exec(before, names)
    if who=='peer':
        name,training,result = peer(job)
        after = result+after
        for lib in 'optuna','optuna_integration','skorch','torchmetrics':
            if f'{lib}.' in training: names[lib] = __import__(lib)
        if 'Lightning' in name: lightning(names, folder and Path(folder))
        if folder and name=='skorch': skorch_net(names, Path(folder))
    start = time.process_time()
    exec(training, names)
    seconds = time.process_time()-start
    exec(after, names)
    print(job, who, f'{seconds:.2f} s', count(training))

# all of them

def run(*args):
    "One of them in a process of its own: the exit status and the output"
    res = subprocess.run([sys.executable, __file__, *map(str, args)], capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS='1'))
    return res.returncode,res.stdout+res.stderr

def same_bits(job, who):
    "Return whether a killed and resumed run ends with the same result, bit for bit, and what differs"
    with tempfile.TemporaryDirectory() as f:
        def go(name, kill_at=0):
            (folder := Path(f)/name).mkdir(exist_ok=True)
            status,output = run(job, who, folder, kill_at)
            if status!=(-9 if kill_at else 0): return print(output[-2000:])
            return {} if kill_at else json.loads((folder/'end.json').read_text())
        if not (whole := go('whole')): raise RuntimeError(f'{job} of {who} does not run')
        kill_at = whole['n']*5//8+3
        if go('cut', kill_at) is None or not (again := go('cut')): return False,['it does not resume']
        odd = [k for k,v in whole['end'].items() if k not in ('rng','begun') and again['end'].get(k)!=v]
        return not odd and again['n']<kill_at,[*odd, f"{again['n']} of {whole['n']} batches"]

def everything():
    names = sorted(p.stem for p in peers.glob('*.py'))
    res = {job:dict(seconds=dict(ours=[], peer=[]), same={}) for job in names}
    def note(*what):
        print(*what, flush=True)
        (peers/'results.json').write_text(json.dumps(res, indent=1)+'\n')
    for job in names:
        for who in ['ours','peer']*2:
            status,output = run(job, who)
            if status: raise RuntimeError(f'{job} of {who} does not run: {output[-2000:]}')
            res[job]['seconds'][who].append(float(re.search(r'([\d.]+) s \(', output)[1]))
        note(job, res[job]['seconds'])
    for job in names:
        for who in 'peer','ours': res[job]['same'][who],odd = same_bits(job, who); note(job, who, odd)

if __name__=='__main__': main(*sys.argv[1:4], *map(int, sys.argv[4:])) if sys.argv[1:] else everything()
