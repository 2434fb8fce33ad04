"""How what a run costs grows: with its steps, the rows of its data, its parameters, its metrics. Each point is a
process of its own.

    python tests/bench/growth.py           all
    python tests/bench/growth.py rows      one of: steps rows tensors columns
    python tests/bench/run.py longest      ten million steps, which take a quarter of an hour
"""
import io, json, subprocess, sys, time
from pathlib import Path
from tools import shown

longest = dict(steps=(10_000_000,))
sizes = dict(steps=(10_000, 100_000, 1_000_000), rows=(100_000, 1_000_000, 10_000_000, 100_000_000), tensors=(100, 1000, 10_000), columns=(10, 100, 1000))
units = dict(steps=('µs a step', 'bytes a step', 'bytes a step in a checkpoint'), rows=('s to the first batch', 'bytes a row'),
             tensors=('µs a tensor and step', 'µs of the loop by hand'), columns=('µs a column and batch', 'µs by hand'))

def memory(k='VmRSS'): return int(next(l.split()[1] for l in Path('/proc/self/status').read_text().splitlines() if l.startswith(k)))*1024

class Endless:
    "The same batch, `n` times"
    def __init__(self, n, b): self.n,self.b = n,b
    def __len__(self): return self.n
    def __iter__(self): return (self.b for _ in range(self.n))

def noop_learner(dls, model=None, **kw):
    import torch
    from learnkit import Learner
    model = model or torch.nn.Linear(1, 1, bias=False)
    return Learner(dls, model, lambda p, y: p.mean(), torch.optim.SGD, lr=1e-3, **kw)

def of_steps(n):
    import torch
    from learnkit.all import DataLoaders, ParamScheduler, one_cycle
    b = torch.zeros(1, 1),torch.zeros(1)
    learn = noop_learner(DataLoaders(Endless(1000, b)), cbs=ParamScheduler(one_cycle(1e-3)))
    learn.fit(2)
    before,start = memory(),time.process_time()
    learn.fit(n//1000)
    took,more,f = time.process_time()-start,memory()-before,io.BytesIO()
    torch.save(learn.recorder.state_dict(), f)
    return took/n*1e6,more/n,f.tell()/n

class Numbers:
    "`n` rows that are created on request"
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
    def __getitem__(self, i): return self.x,self.x
    def __getitems__(self, idxs): import torch; self.x = torch.zeros(len(idxs), 1); return [(self.x, self.x)]

def of_rows(n):
    import torch
    from learnkit.data.seeded import SeededLoader
    from torch.utils.data import DataLoader
    dl = SeededLoader(DataLoader(Numbers(n), 1000, shuffle=True, collate_fn=lambda b: b[0]), 0)
    before,start = memory(),time.process_time()
    next(iter(dl.seek(0)))
    return time.process_time()-start,(memory('VmHWM')-before)/n

def of_tensors(n, steps=20):
    import torch
    from torch import nn
    from learnkit import DataLoaders
    class Many(nn.Module):
        def __init__(self): super().__init__(); self.ps = nn.ParameterList([nn.Parameter(torch.zeros(1)) for _ in range(n)])
        def forward(self, x): return torch.cat([*self.ps])
    b = torch.zeros(1, 1),torch.zeros(1)
    learn = noop_learner(DataLoaders(Endless(steps, b)), Many())
    learn.fit(1)
    start = time.process_time(); learn.fit(1); ours = time.process_time()-start
    model = Many()
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    def plain_loop():
        for _ in range(steps): model(b[0]).mean().backward(); opt.step(); opt.zero_grad()
    plain_loop()
    start = time.process_time(); plain_loop(); hand = time.process_time()-start
    return ours/n/steps*1e6,hand/n/steps*1e6

def of_columns(n, batches=20):
    import torch
    from learnkit.all import AvgMetric, DataLoaders
    b = torch.zeros(8, 1),torch.zeros(8, 1)
    def metric(p, y): return (p-y).abs().mean()
    dl = Endless(batches, b)
    learn = noop_learner(DataLoaders(dl, dl), metrics=[AvgMetric(metric, f'm{i}') for i in range(n)])
    learn.validate()
    start = time.process_time(); learn.validate(); ours = time.process_time()-start
    with torch.no_grad():
        p = learn.model(b[0])
        start = time.process_time()
        totals = [0.]*n
        for _ in range(batches):
            for i in range(n): totals[i] = totals[i] + metric(p, b[1])*8
        hand = time.process_time()-start
    return ours/n/batches*1e6,hand/n/batches*1e6

def measured(what, n):
    code = f'import json, growth, torch; torch.set_num_threads(1); r = growth.of_{what}({n}); print(); print(json.dumps(r))'
    out = subprocess.run([sys.executable, '-W', 'ignore', '-c', code], capture_output=True, text=True, cwd=Path(__file__).parent)
    if out.returncode: sys.exit(out.stderr)
    return json.loads(out.stdout.splitlines()[-1])

nouns = dict(steps='training steps', rows='rows of the data set', tensors='tensors of parameters', columns='columns of metrics')

def main(parts, sizes):
    "Measure each once and print; returns the results"
    found = []
    for what in parts or sizes:
        found.append(dict(what=f'How costs grow with {nouns[what]}', first=nouns[what], base='', unit='', columns=units[what], rows={}, rounds=1))
        print(f"\n{what:>12}  " + '  '.join(f'{u:>28}' for u in units[what]))
        for n in sizes[what]:
            found[-1]['rows'][f'{n:,}'] = got = measured(what, n)
            print(f'{n:12,}  ' + '  '.join(f'{v:28.3f}' for v in got), flush=True)
    return found

def bench_growth(rounds): shown.extend(main([], sizes))
def bench_longest(rounds): shown.extend(main([], longest))

if __name__=='__main__': main(sys.argv[1:], sizes)
