"""Shared by the killed*.py scripts: a forked run, its final state, the comparison of two of them, the command line"""
import argparse, os, signal, subprocess, sys, time, traceback

class Fork:
    "A forked process in its own group that calls `f` and exits as Python would, with `poll` and `wait` of `Popen`"
    def __init__(self, f, log):
        self.returncode,self.pid = None,os.fork()
        if self.pid: return
        status = 1
        try:
            os.setsid()
            for fd in (1,2): os.dup2(os.open(log, os.O_WRONLY|os.O_CREAT|os.O_APPEND), fd)
            f()
            status = 0
        except SystemExit as e: status = e.code
        except KeyboardInterrupt: signal.signal(signal.SIGINT, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGINT)
        except BaseException: traceback.print_exc(file=open(log, 'a'))
        finally: os._exit(status)

    def poll(self):
        if self.returncode is None:
            pid,status = os.waitpid(self.pid, os.WNOHANG)
            if pid: self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout=None):
        end = time.monotonic() + (1e9 if timeout is None else timeout)
        while self.poll() is None:
            if time.monotonic()>end: raise subprocess.TimeoutExpired('a fork', timeout)
            time.sleep(.01)

def save_end(learn, path):
    "Write the final state of a run, without times"
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
    "Call `compare(seed)`, which returns kills, differences and settings, until `kills` processes were killed"
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
