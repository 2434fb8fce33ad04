"""Trains with processes that are killed, frozen and started at random moments, and compares it with an undisturbed run.

    pip install --no-deps torchft && pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http
    python tests/bench/soak.py --minutes 15             a line for each kill, start and pause; at the end the losses
    python tests/bench/soak.py --minutes 15 --seed 3    different moments
    python tests/bench/soak.py --minutes 5 --every 4    something happens every 2 seconds, instead of every 12

One machine simulates several: a lighthouse of torchft, and one to four processes that train, each with `FaultTolerant`.
Batches are slowed down so that the run lasts as long as requested. The undisturbed run is one process. Both must end with
the same loss to 1 in 10,000, with each epoch once in the log, and all processes that are alive at the end must have the
same weights, bit for bit. The end of each process is printed. If there is no batch for --stall seconds, it prints what
the lighthouse waits for and where each process is, and fails.
"""
import argparse, csv, faulthandler, hashlib, multiprocessing, os, random, re, signal, sys, tempfile, time, traceback, urllib.request, warnings
from pathlib import Path

root = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root))
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from learnkit.all import (Callback, CheckpointCallback, CSVLogger, DataLoaders, EMACallback, FaultTolerant, GradientAccumulation, GradientClip, Learner,
    SaveModelCallback, ValidateEvery)

torch.set_num_threads(1)
mp = multiprocessing.get_context('fork')   # a start then costs what is not imported yet
MOST,EPOCHS,BATCHES = 4,12,40

class Slow(Callback):
    "Makes a batch last, and counts the batches"
    acts = 'nothing'
    def __init__(self, seconds, done): self.seconds,self.done = seconds,done
    def before_batch(self):
        if self.training: time.sleep(self.seconds)
    def after_batch(self):
        if self.training: self.done.value = self.learn.train_iter

def train(folder, seconds, done):
    "The run; returns its last losses, and a hash of its weights"
    warnings.simplefilter('ignore')
    torch.manual_seed(0)
    x = torch.randn(16*BATCHES, 8)
    y = x[:,:1]*x[:,1:2]+x.sum(1, keepdim=True)
    dls = DataLoaders(DataLoader(TensorDataset(x, y), 16, shuffle=True), DataLoader(TensorDataset(x[:64], y[:64]), 16))
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.LayerNorm(16), nn.Linear(16, 1))
    cbs = [FaultTolerant(timeout=20), Slow(seconds, done), GradientAccumulation(32), GradientClip(1.), EMACallback(.9), ValidateEvery('25ba'),
           CheckpointCallback('20ba'), CSVLogger(), SaveModelCallback()]
    learn = Learner(dls, model, nn.MSELoss(), torch.optim.AdamW, path=folder)
    with learn.no_bar(): learn.fit_one_cycle(EPOCHS, .01, cbs=cbs, resume='auto')   # if all are lost at once
    weights = b''.join(p.detach().numpy().tobytes() for p in learn.model.parameters())
    return learn.train_iter,learn.train_steps,learn.recorder.history[-1]['train_loss'],learn.recorder.history[-1]['valid_loss'],hashlib.md5(weights).hexdigest()[:8]

def child(number, address, log, queue, *args):
    os.environ['TORCHFT_LIGHTHOUSE'] = address
    f = open(log, 'a', buffering=1)
    os.dup2(f.fileno(), 1); os.dup2(f.fileno(), 2)
    faulthandler.register(signal.SIGUSR1)   # prints the stack of each thread
    try: res = train(*args)
    except BaseException as e: traceback.print_exc(); res = f'{type(e).__name__}: {e}'
    queue.put((number, res))

def lighthouse(pipe):
    os.environ['RUST_LOG'] = 'error'
    from torchft.coordination import LighthouseServer
    server = LighthouseServer(bind='127.0.0.1:0', min_replicas=1, join_timeout_ms=30_000, heartbeat_timeout_ms=1500)
    pipe.send(server.address())
    signal.pause()

class Soak:
    "A lighthouse, and processes that train"
    def __init__(self, folder):
        here,there = mp.Pipe()
        self.house = mp.Process(target=lighthouse, args=(there,), daemon=True)
        self.house.start()
        self.folder,self.address,self.queue,self.begin = folder,here.recv(),mp.SimpleQueue(),time.time()
        self.live,self.gone,self.res,self.n = {},[],{},0
    def start(self, seconds):
        self.n += 1
        done = mp.Value('i', 0, lock=False)   # who is killed would keep the lock
        p = mp.Process(target=child, args=(self.n, self.address, self.folder/f'{self.n}.log', self.queue, self.folder/'run', seconds, done), daemon=True)
        p.start()
        self.live[self.n] = p,done
        self.say(f'start {self.n}')
    def at(self): return max((d.value for _,d in self.live.values()), default=0)
    def say(self, what): print(f'{time.time()-self.begin:6.1f} s, batch {self.at()}: {what}', flush=True)
    def alive(self):
        "Return the numbers of the processes that are alive; print once how each other one ended"
        while not self.queue.empty(): n,r = self.queue.get(); self.res[n] = r
        alive = [n for n,(p,_) in self.live.items() if p.is_alive()]
        for n in {*self.live}-{*alive,*self.gone}:
            self.gone.append(n)
            code = self.live[n][0].exitcode
            self.say(f'{n} has ended: {"killed" if code==-signal.SIGKILL else f"exit code {code}"}; {self.res.get(n)}')
        return alive
    def ready(self): return [n for n in self.alive() if self.live[n][1].value and n not in self.res]
    def wait(self, most):
        "How long until another batch is done"
        t,n = time.time(),self.at()
        while self.at()<=n and self.alive():
            if time.time()-t>most: self.stalled(most)
            time.sleep(.01)
        return time.time()-t
    def stalled(self, most):
        alive = self.alive()
        for n in alive: os.kill(self.live[n][0].pid, signal.SIGUSR1)
        time.sleep(1)
        for n in alive: print(f'--- process {n}, batch {self.live[n][1].value}', (self.folder/f'{n}.log').read_text()[-6000:], sep='\n')
        try: page = urllib.request.urlopen(f'{self.address}/status', timeout=5).read().decode()
        except OSError as e: page = repr(e)
        print('--- lighthouse', re.sub(r'\s*\n\s*', '\n', re.sub('<[^>]*>', '', page)), flush=True)
        raise RuntimeError(f'nobody made a batch for {most:.0f} s')
    def results(self, most):
        "What those return who are alive"
        while self.alive():
            t,n = time.time(),self.at()
            while self.alive() and self.at()==n:
                if time.time()-t>most: self.stalled(most)
                time.sleep(.05)
        return self.res

def soak(minutes, seed, every, stall, folder):
    r = random.Random(seed)
    quiet = Soak(folder/'quiet'); (folder/'quiet').mkdir()
    quiet.start(0)
    [expected] = quiet.results(stall).values()
    quiet.house.kill()
    print(f'quiet: {expected}', flush=True)
    s = Soak(folder/'loud'); (folder/'loud').mkdir()
    seconds,longest,kills,freezes,blinks = 60*minutes/(EPOCHS*BATCHES)*.8,0.,0,0,0
    for _ in range(2): s.start(seconds)
    while s.at()<EPOCHS*BATCHES-15:
        time.sleep(r.uniform(.2, every))
        ready,alive = s.ready(),s.alive()
        if len(alive)<2: s.start(seconds); continue
        what = r.choice(['kill','kill','start','start','freeze','blink'])
        if what=='kill' and len(ready)>1+(s.at()>EPOCHS*BATCHES-80):   # in the end two are compared
            n = r.choice(ready); s.live[n][0].kill(); s.live[n][0].join(); kills += 1
            s.gone.append(n)
            took = s.wait(stall); longest = max(took, longest); s.say(f'killed {n} of {ready}, the next batch after {took:.1f} s')
        elif what=='freeze' and ready:
            n,long = r.choice(ready),r.uniform(.5, 6)
            os.kill(s.live[n][0].pid, signal.SIGSTOP); time.sleep(long); os.kill(s.live[n][0].pid, signal.SIGCONT)
            freezes += 1
            s.say(f'froze {n} for {long:.1f} s, the next batch after {s.wait(stall):.1f} s')
        elif what=='blink':
            long = r.uniform(.5, 4)
            os.kill(s.house.pid, signal.SIGSTOP); time.sleep(long); os.kill(s.house.pid, signal.SIGCONT)
            blinks += 1
            s.say(f'froze the lighthouse for {long:.1f} s, the next batch after {s.wait(stall):.1f} s')
        elif len(alive)<MOST and s.at()<EPOCHS*BATCHES-80: s.start(seconds)
    found = s.results(stall)
    s.house.kill()
    print(f'{kills} kills, {freezes} freezes, {blinks} of the lighthouse, {s.n} starts, at most {longest:.1f} s from a kill to the next batch; what the others returned:', *found.items(), sep='\n')
    ended = {v for v in found.values() if not isinstance(v, str)}
    rows = [row['epoch'] for row in csv.DictReader(open(folder/'loud/run/history.csv')) if not row['train_iter']]
    assert len(ended)==1, 'those who are there at the end differ'
    [(n,steps,loss,valid,_)] = ended
    print(f'loss {loss:.7f} ({loss/expected[2]-1:+.1e} of the quiet run), valid loss {valid:.7f} ({valid/expected[3]-1:+.1e}), '
          f'{n} batches and {steps} steps ({expected[0]} and {expected[1]})', flush=True)
    assert (n,steps)==expected[:2] and abs(loss/expected[2]-1)<1e-4 and abs(valid/expected[3]-1)<1e-4
    assert rows==[*map(str, range(EPOCHS))],f'the log has the epochs {rows}'

if __name__=='__main__':
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--minutes', type=float, default=15)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--every', type=float, default=25, help='seconds between two events, at most')
    p.add_argument('--stall', type=float, default=120)
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try: soak(args.minutes, args.seed, args.every, args.stall, Path(folder))
        finally:
            for p in multiprocessing.active_children(): p.kill()
