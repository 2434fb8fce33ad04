"""What killed.py and killed_ranks.py share: what a run ends with, whether two ends are equal, and the command line"""
import argparse, sys

def save_end(learn, path):
    "Write all that a run ends with, but for times"
    import torch
    from learnkit import all as lk
    from learnkit.data.files import to_serializable
    rec = learn.recorder
    torch.save(to_serializable(dict(model=learn.model.state_dict(), opt=learn.opt.state_dict(), history=[{k:v for k,v in r.items() if k!='time'} for r in rec.history],
                                    losses=rec.smooth_loss.raw, lrs=[*rec.lrs], rng=lk.get_random_states(),
                                    cbs={cb.key:cb.state_dict() for cb in learn.cbs if cb.name not in ('recorder','checkpoint')})), path)

def equal(a, b):
    import torch
    if isinstance(a, torch.Tensor): return torch.equal(a, b) or torch.allclose(a, b, rtol=0, atol=0, equal_nan=True)
    if isinstance(a, dict): return a.keys()==b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, (list,tuple)): return len(a)==len(b) and all(map(equal, a, b))
    return a==b or (a!=a and b!=b)

def main(doc, compare, kills):
    "Compare runs of one seed after the other, until `kills` processes were killed; `compare` gives the kills, what differs, and the settings"
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('kills', type=int, nargs='?', default=kills)
    p.add_argument('--seed', type=int, default=0)
    args = p.parse_args()
    total,bad,seed = 0,0,args.seed
    while total<args.kills:
        n,differs,cfg = compare(seed)
        total,bad,seed = total+n,bad+bool(differs),seed+1
        print(f'{total:4} kills, {bad} of {seed-args.seed} runs differ{": "+", ".join(differs) if differs else ""}   {cfg}', flush=True)
    sys.exit(bool(bad))
