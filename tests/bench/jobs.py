"""The jobs of `nbs/examples` beside the library that does each best: how much there is to write.

    python tests/bench/jobs.py gan ours|peer     trains one of them, to see that it does the job; needs the other library

Data, model and result are the notebook's for both; `jobs/gan.py` and its like are what stands under "Training" there, written for
the other library. Lines are those with code, without comments and docstrings; words are Python's tokens.
"""
import io, json, os, sys, time, tokenize
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

# -- one of them

def quiet_lightning(names):
    "A Trainer on the CPU that writes no logs, and no checkpoints unless it is told to"
    import lightning as L
    class Trainer(L.Trainer):
        def __init__(self, callbacks=None, **kw):
            quiet = dict(accelerator='cpu', logger=False, enable_checkpointing=callbacks is not None, enable_model_summary=False)
            super().__init__(callbacks=callbacks, **quiet, **kw)
    names.update(L=SimpleNamespace(**{**vars(L), 'Trainer':Trainer}))

def main(job, who):
    "Train, and print the seconds that it took; the notebook's last cell asserts that the job is done"
    os.environ['MPLBACKEND'] = 'Agg'
    os.chdir(root/'nbs/examples')
    before,training,after = sections(job)
    names = {'__name__':'__main__','SimpleNamespace':SimpleNamespace}
    exec(before, names)
    if who=='peer':
        name,training,result = peer(job)
        after = result+after
        if 'Lightning' in name: quiet_lightning(names)
        for lib in 'optuna','skorch','torchmetrics':
            if f'{lib}.' in training: names[lib] = __import__(lib)
    start = time.process_time()
    exec(training, names)
    seconds = time.process_time()-start
    exec(after, names)
    print(job, who, f'{seconds:.1f} s', count(training))

if __name__=='__main__': main(*sys.argv[1:])
