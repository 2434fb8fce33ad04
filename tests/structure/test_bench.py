"""Small versions of the benchmarks run, and their arithmetic is right with a scripted clock"""
import json, os, runpy, sys, time, warnings
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest, torch

bench = Path(__file__).resolve().parents[1]/'bench'
sys.path.insert(0, str(bench))
import exactness, gpu, growth, own, peers, plot, processes, run, tools, whole
from kills import Fork
from toys import few

@pytest.fixture(autouse=True)
def shown(monkeypatch, tmp_path):
    "The results that this test shows"
    monkeypatch.chdir(tmp_path)
    tools.shown.clear()
    yield tools.shown
    tools.shown.clear()

# arithmetic
def clock(*times):
    "A function that returns each of `times` as its duration, after a first one for the warm-up"
    it = iter((1e9, *times))
    return lambda: next(it)

def test_ratios_of_alternating_runs():
    base,ratios = tools.compare(3, clock(2., 2., 4., 4., 10., 10.), a=clock(3., 4., 5.), b=clock(2., 8., 5.))
    # ratios of adjacent runs, not of medians: 3/2 4/4 5/10
    assert base==4. and ratios=={'a':(1., .75, 1.25), 'b':(1., .75, 1.5)}

def test_each_runs_next_to_the_first_and_the_order_alternates():
    seen = []
    def f(k): return lambda: seen.append(k) or float(len(seen))
    tools.compare(3, f('x'), y=f('y'), z=f('z'))
    assert ' '.join(map(''.join, zip(seen[3::2], seen[4::2])))=='xy xz yx zx xy xz' and seen[:3]==[*'xyz']

def test_rounds_end_when_the_median_is_known():
    calls = []
    def f(k, *took): it = iter((1e9, *took)); return lambda: calls.append(k) or next(it)
    base,ratios = tools.compare(30, lambda: 1., calm=f('calm', *[2.]*7), wild=f('wild', *[2., 3.]*15))
    assert calls.count('calm')==1+7 and calls.count('wild')==1+30 and ratios['calm']==(2., 2., 2.)

def test_a_machine_that_becomes_slower_changes_no_ratio():
    "Each run is 2 percent slower than the one before; without alternation the ratios would be off by 2 percent or more"
    slow = 1.
    def taking(t):
        def _f(): nonlocal slow; slow *= 1.02; return t*slow
        return _f
    _,ratios = tools.compare(6, taking(1.), **{f'{t}':taking(t) for t in (.5, 1., 1.2)})
    assert all(abs(r[0]/float(k)-1)<.001 for k,r in ratios.items())

def test_timed():
    now = iter((10., 12.5))
    def f(): print('drawn'); assert sys.stdout.isatty()
    assert tools.timed(f, clock=lambda: next(now))()==2.5

def test_timed_functions_print_nothing(capsys):
    tools.timed(lambda: (print('a'), print('b', file=sys.stderr)))()
    assert capsys.readouterr()==('','')

@pytest.mark.parametrize('spans, want', [
    ([(0,10), (10,20)], (0,0)), ([(0,5), (8,10)], (3,.3)), ([(8,10), (0,5)], (3,.3)), ([(0,10), (2,3), (12,20)], (2,.1)), ([(0,4), (3,6), (9,10)], (3,.3))])
def test_idle(spans, want): assert gpu.idle(spans)==pytest.approx(want)

def test_peak():
    if not Path('/proc/self/clear_refs').exists(): pytest.skip('Linux only')
    assert 99<tools.peak(lambda: torch.ones(25*2**20))<120   # 100 MiB

@pytest.mark.slow
def test_an_import_is_timed_without_that_of_torch():
    torch_s,more = tools.importing('import fractions; print("said"); time.sleep(.2)')()   # sleep takes no CPU time
    assert .1<torch_s<60 and 0<more<.1

# learnkit's own parts
def weights(model): return torch.cat([p.detach().flatten() for p in model.parameters()])

def test_both_do_the_same_work():
    batches = tools.steps(20)
    learn = tools.learner(batches)
    with tools.unseen(): learn.fit(1)
    assert torch.equal(weights(tools.plain_loop(batches)), weights(learn.model))
    a,b = own.predictor('plain', 600)(),own.predictor('learnkit', 600)()
    assert len(a[0])==600 and a[0].shape==b[0].shape and torch.equal(a[1], b[1])

small = dict(step=dict(n=3), callbacks=dict(n=3), toolkit=dict(n=4), optimizers=dict(n=3), digits=dict(epochs=1), checkpoint=dict(epochs=1),
             preds=dict(rows=600, memory=False), forms=dict(rows=600), short=dict(n=4), predict=dict(n=2))

@few(1, 4)
@pytest.mark.parametrize('part', small)
def test_a_part_runs(part, shown, capsys):
    own.parts[part](1, **small[part])
    assert shown and all(e['rows'] and all(0<least<=mid<=most for mid,least,most in e['rows'].values()) for e in shown)
    out = capsys.readouterr().out
    assert all(e['what'] in out and all(k in out for k in e['rows']) for e in shown)

def test_all_parts_are_tried(): assert {*small, 'import'}==own.parts.keys()

@pytest.mark.slow
def test_how_costs_grow(shown, monkeypatch):
    monkeypatch.setattr(growth, 'sizes', dict(steps=(1000,), rows=(2000,), tensors=(3,), columns=(2,)))
    monkeypatch.setattr(growth, 'measured', lambda what, n: [*getattr(growth, f'of_{what}')(n)])
    growth.bench_growth(1)
    assert [e['first'] for e in shown]==[*growth.nouns.values()] and all(len(v)==len(e['columns']) for e in shown for v in e['rows'].values())
    head,*rows = plot.growth_table(shown[0])
    assert head==['training steps', *growth.units['steps']] and rows[0][0]=='1,000' and float(rows[0][1])>0

def test_results_of_optimizers_name_differences(shown):
    own.bench_optimizers(1, n=2)
    rows = [k for e in shown for k in e['rows']]
    assert len(rows)==9 and all(k.endswith('foreach=True: the same bits') for k in rows[1::3]) and any('fused=True: differs by' in k for k in rows)

nets = {'the tiny network':(tools.tiny, partial(gpu.numbers, bs=2)), 'a small ResNet':(partial(gpu.resnet, (2,4,4)), partial(gpu.pictures, bs=2, size=8)),
        'a small transformer':(partial(gpu.transformer, d=8, layers=1), partial(gpu.texts, bs=2, length=4))}

@few(1, 1)
@pytest.mark.parametrize('part', [gpu.bench_idle, gpu.bench_throughput, gpu.bench_memory])
def test_the_parts_for_a_device_run_on_the_cpu(part, shown):
    part(1, 'cpu', n=2, nets=nets)
    assert len(shown)==len(nets)==len(gpu.nets) and all(r[0]>=0 for e in shown for r in e['rows'].values())

@pytest.mark.slow
def test_the_forms_for_a_device_run_on_the_cpu(shown):
    gpu.bench_forms(1, 'cpu', n=4, nets={'the tiny network':gpu.small['the tiny network']})
    forms = [entry['what'].removeprefix('Training the tiny network, ') for entry in shown]
    assert [form for form in forms if 'fp8' not in form]==['bf16','compiled','fused']   # fp8 needs torchao
    assert all(row[0]>0 for entry in shown for row in entry['rows'].values())

def test_the_sizes_are_those_of_the_papers():
    with torch.device('meta'): sizes = [sum(p.numel() for p in net().parameters()) for net,_ in gpu.large.values()]
    assert sizes==[25_557_032, 124_439_808]

@pytest.mark.parametrize('form', ['bf16','bf16, channels last','compiled'])
@few(1)
def test_a_form_trains_like_a_plain_loop(form, shown):
    by,own = gpu.forms('cpu')[form]
    if form=='compiled': by,own = dict(put=partial(torch.compile, backend='eager')),dict(change=lambda learn: learn.compile(backend='eager'))
    net,data = gpu.small['ResNet-50']
    batches = data(3)
    with tools.unseen(): a,b = gpu.hand_in(net, batches, 'cpu', **by),gpu.ours(net, batches, 'cpu', **{k:v() if k=='cbs' else v for k,v in own.items()})
    assert torch.equal(weights(a), weights(b))

def test_the_watched_run_writes_its_logs(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(gpu.tempfile.TemporaryDirectory, '__exit__', lambda self, *a: seen.extend(sorted(p.name for p in Path(self.name).iterdir())) or self.cleanup())
    with tools.unseen(): gpu.watched(tools.tiny, gpu.numbers(3), 'cpu')
    assert {'history.csv','log.jsonl'} <= {*seen}

def test_steady_watches_the_steps_in_the_middle():
    seen,on = [],[]
    class Watch:
        def __enter__(self): on.append(1)
        def __exit__(self, *args): on.clear()
    for b in gpu.Steady(range(9), Watch(), first=3, n=4, device='cpu'): seen += [b]*len(on)
    assert seen==[3,4,5,6]

def test_waits_are_counted(monkeypatch):
    modes = []
    monkeypatch.setattr(torch.cuda, 'set_sync_debug_mode', modes.append)
    watch = gpu.Syncs()
    def f(i):
        if i in (2,3): warnings.warn('called a synchronizing CUDA operation')
        if i==2: warnings.warn('does not yet detect all synchronizing operations')
    for i in gpu.Steady(range(8), watch, first=2, n=3, device='cpu'): f(i)
    assert watch.count==2 and modes==['warn','default']

def test_a_named_range_is_not_counted_as_work():
    from torch.profiler import ProfilerActivity, profile, record_function
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        with record_function('all of it'): torch.ones(9).sum(); time.sleep(.02); torch.ones(9).sum()
    free,part = gpu.idle(gpu.work(prof, 'cpu'))
    assert free>15e3 and part>.5

def test_counting_syncs_needs_a_device(shown, capsys):
    gpu.bench_syncs(1, 'cpu')
    assert not shown and 'CUDA device only' in capsys.readouterr().out

# others
with_peers = [pytest.param(n, marks=pytest.mark.skipif(peers.version(n) is None, reason=f'{n} is not installed')) for n in peers.libraries]

@pytest.mark.slow
@pytest.mark.parametrize('name', with_peers)
def test_a_library_computes_the_same(name):
    with peers.Child(name) as child:
        for job,kw in dict(step=dict(n=3), digits=dict(epochs=1), preds=dict(rows=600), start=dict(times=1)).items():
            if job=='preds' and peers.libraries[name].predict is None: continue
            assert child.ask(job, **kw)=={'equal':True}
            got = child.ask(job, own_first=True)
            assert got['plain']>0 and got['own']>0

@pytest.mark.parametrize('net', gpu.small)
def test_steps_on_a_device_are_those_of_a_plain_loop(net):
    "Run on the CPU here, with small networks"
    ready,kw = {},dict(n=3, device='cpu', small=True)
    assert peers.run_job(peers.Learnkit, ready, net, kw)=={'equal':True}
    got = peers.run_job(peers.Learnkit, ready, net, dict(own_first=True))
    assert got['plain']>0 and got['own']>0

@pytest.mark.slow
@pytest.mark.parametrize('name', with_peers)
def test_libraries_on_a_device(name, shown):
    if name not in ('skorch','pytorch-accelerated'): peers.bench_device(1, 'cpu', [name], n=2, small=True); assert len(shown)==3

class Wrong(peers.Learnkit):
    "Trains with another learning rate"
    @staticmethod
    def fit(model, opt, train, valid=None, epochs=1): peers.Learnkit.fit(model, partial(opt.func, lr=.1), train, valid, epochs)

def test_a_different_result_raises():
    with pytest.raises(ValueError, match='differs from that of the hand-written loop'): peers.run_job(Wrong, {}, 'step', dict(n=3))
    ready = {}
    assert peers.run_job(peers.Learnkit, ready, 'step', dict(n=3))=={'equal':True} and 'step' in ready

def test_a_job_of_several(shown, capsys):
    "A library that fails is reported, and the others still run"
    class Fake:
        def __init__(self, *replies): self.replies = iter(replies)
        def ask(self, job, **kw): return next(self.replies)
    first = dict(equal=True)
    peers.bench_job('step', {'learnkit':Fake(first, dict(plain=1., own=1.), dict(plain=2., own=4.), dict(plain=1., own=1.5)),
                             'skorch':Fake(dict(error='no such thing')), 'Ignite':Fake(first, *[dict(plain=1., own=3.)]*3),
                             'fastai':Fake(first, dict(plain=1., own=3.), dict(error='its process ended'))}, 3, dict(n=1000))
    assert shown[0]['rows']=={'learnkit':[1.5, 1.25, 1.75], 'Ignite':[3., 3., 3.]} and shown[0]['base']=='1000 µs' and shown[0]['equal']==['learnkit','Ignite']
    out = capsys.readouterr().out
    assert "skorch takes no part in 'step': no such thing" in out and "fastai takes no part in 'step': its process ended" in out

def test_pins_are_pins_and_none_of_them_is_bad():
    pins = dict(l.split('==') for l in (bench/'peers.txt').read_text().split())
    assert {lib.package for n,lib in peers.libraries.items() if n!='learnkit'} <= pins.keys()
    assert pins['lightning'] not in ('2.6.2','2.6.3')   # malicious releases

# whole jobs
def tried(job, name):
    "The weights after an epoch, in this process"
    job = whole.start(job)
    job.goal = 0.
    with tools.unseen(): assert whole.scripts[name](job)==1
    return weights(job.model)

@pytest.mark.parametrize('job', [pytest.param(j, marks=[pytest.mark.slow]*(j!='digits')) for j in whole.jobs])
def test_a_whole_job_comes_to_the_same_weights(job): assert torch.equal(tried(job, 'by hand'), tried(job, 'learnkit'))

@pytest.mark.slow
@pytest.mark.parametrize('name', [n for n in with_peers if n.values[0] in whole.scripts])
def test_a_library_does_a_whole_job(name):
    for job in ('digits','gpt'):
        if name!='HF Trainer' or job=='gpt': tried(job, name)

def test_a_script_writes_its_result(monkeypatch):
    monkeypatch.setitem(whole.scripts, 'nothing', lambda j: 2)
    whole.script('digits', 'nothing')
    end = json.loads(Path('end.json').read_text())
    assert end['epochs']==2 and 50<end['memory']<20_000 and len(end['weights'])==64

def test_a_whole_job_is_read_from_its_process(monkeypatch):
    popen = whole.subprocess.Popen
    def process(code): monkeypatch.setattr(whole.subprocess, 'Popen', lambda cmd, **kw: popen(['/bin/sh', '-c', code], **kw))
    process("""echo '{"epochs": 3}' > end.json""")
    got = whole.once('digits', 'by hand', '')
    assert got['epochs']==3 and 0<=got['cpu']<5 and got['seconds']>0
    process('echo no such thing; exit 1')
    with pytest.raises(RuntimeError, match='digits with by hand failed: no such thing'): whole.once('digits', 'by hand', '')

def test_the_scripts_of_a_whole_job_take_turns(monkeypatch, shown, capsys):
    seen,folders = [],{}
    def once(job, name, folder):
        if name=='skorch': raise RuntimeError('no such thing')
        seen.append(name); folders.setdefault(name, folder)
        return dict(cpu=float(len(seen)), seconds=2., memory=300.4, epochs=4, weights='b' if 'compile' in name else 'a')
    monkeypatch.setattr(whole, 'once', once)
    names = 'by hand','by hand, torch.compile, cold','by hand, torch.compile','learnkit','skorch'
    whole.show_job('digits', whole.alternate_scripts('digits', names, 2))
    assert seen==[*names[:4], names[0], *names[2:4]] and folders[names[1]]==folders[names[2]]!=folders['learnkit']
    e, = shown
    assert e['equal']==['learnkit'] and e['base']=='3.00 s' and e['rows']['learnkit']==[5.5, 4., 7.] and 'no such thing' in capsys.readouterr().out
    assert e['memory']['learnkit']==300 and e['clock']['learnkit']==2.
    head,*rows = plot.whole_table(dict(results=[dict(e, part='whole'), dict(e, part='whole', job='gpt', memory={'learnkit':99.})]))
    assert head==['', 'digits','memory', 'gpt','memory'] and rows[0]==['by hand', '3.00 s', '300 MiB', '–', '–']
    assert rows[-1]==['learnkit', '5.50 s (4.00–7.00)', '300 MiB', '5.50 s (4.00–7.00)', '99 MiB']

def test_a_whole_job_is_run_again_until_two_runs_agree(monkeypatch):
    seconds = {'by hand':iter((1., 1.01, 9.)), 'learnkit':iter((1., 1.03, 1.02))}
    monkeypatch.setattr(whole, 'once', lambda job, name, compiled: dict(cpu=next(seconds[name])))
    rows = whole.alternate_scripts('digits', [*seconds], 3)
    assert [[t['cpu'] for t in rows[n]] for n in seconds]==[[1., 1.01], [1., 1.03, 1.02]]

# tables
def entry(job, rows, unit='', base='1 s'): return dict(part='peers', job=job, what=job, first='by hand', base=base, unit=unit, rows=rows)

RES = dict(versions=dict(learnkit='0.1.0', A='1.2'), results=[
    entry('preds', {'learnkit':[1.1, 1., 1.2]}), entry('step', {'learnkit':[1., .9, 1.1], 'A':[2.5, 2., 12.]}, base='70 µs'),
    entry('start', {'learnkit':[4., 3.5, 5.], 'A':[2., 2., 2.]}, ' ms'),
    dict(part='step', what='S', first='by hand', base='b', unit='', rows={'x':[.5, 0., 100.]})])

def test_peer_table():
    assert plot.peer_table(RES)==[['', 'version', 'training step', 'get_preds', 'start of fit'], ['by hand', '', '70 µs', '1 s', '1 s'],
        ['learnkit', '0.1.0', '1.00× (0.90–1.10)', '1.10× (1.00–1.20)', '4.00 ms (3.50–5.00)'], ['A', '1.2', '2.50× (2.00–12.0)', '–', '2.00 ms (2.00–2.00)']]

def test_part_table(): assert plot.part_table(RES['results'][-1])==[['S', 'median (least–most)'], ['by hand', 'b'], ['x', '0.50× (0–100)']]

def test_same_job_table_pairs_each_row_with_that_of_the_same_job():
    def part(name, rows): return dict(part=name, rows={row:[ratio]*3 for row,ratio in rows.items()})
    res = dict(results=[part('forms', {'a list (1 s)':1.2, 'a loader (2 s)':1.3}), part('forms', {'a loader (3 s)':1.1, 'a list (4 s)':1.}),
        part('beside', {'nothing':1., 'Accumulation':1.3, 'Accumulation, the same job':1.15})])
    assert plot.same_job_table(res)[1:]==[
        ['`get_preds`, a list', '1.20× (1.20–1.20)', '1.00× (1.00–1.00)'], ['`get_preds`, a loader', '1.30× (1.30–1.30)', '1.10× (1.10–1.10)'],
        ['Accumulation', '1.30× (1.30–1.30)', '1.15× (1.15–1.15)']]

def test_texts():
    assert plot.markdown([['a','b|'], ['long one','c']])=='| a        | b\\| |\n| -------- | --- |\n| long one | c   |'
    assert plot.as_csv([['a','b,c'], ['1','']])=='a,"b,c"\n1,\n'

def test_what_is_slower_is_reported():
    assert plot.slower(RES)==['get_preds: a hand-written loop (learnkit takes 1.10 times as long)',
                              'start of fit: A (2.00 ms (2.00–2.00); learnkit 4.00 ms (3.50–5.00))']
    own = dict(RES['results'][-1], rows={'learnkit':[1.03, 1., 2.], 'learnkit, fused':[1.01, 1., 2.], 'by hand, otherwise':[3., 3., 3.]})
    assert plot.slower(dict(results=[own, dict(own, first='SGD'), dict(own, unit=' ms'), dict(own, part='toolkit')]))==['S: learnkit takes 1.03 times as long as a hand-written loop']

def test_plot(tmp_path):
    fig = plot.plot(RES, tmp_path/'p.png')
    assert (tmp_path/'p.png').read_bytes().startswith(b'\x89PNG') and len(fig.axes)==3
    assert [[t.get_text() for t in ax.texts] for ax in fig.axes]==[['2.50','1.00'], ['has none','1.10'], ['2.00','4.00']]

def test_plot_of_ratios():
    fig = plot.ratio_plot(dict(results=[RES['results'][-1], dict(RES['results'][-1], part='beside', rows={'x':[.5, .4, .6], 'by hand, otherwise':[3., 3., 3.]})]))
    assert [[t.get_text() for t in ax.texts] for ax in fig.axes]==[['0.50'], ['3.00','0.50']]   # from the bottom up
    assert len({ax.get_xlim() for ax in fig.axes})==1

def test_saving_replaces_repeated_measurements(tmp_path):
    p = tmp_path/'r.json'
    def e(part, what): return dict(part=part, what=what, rows={})
    tools.save(p, [e('a', 1), e('b', 2), e('b', 3)], dict(x='1', y='1'))
    tools.save(p, [e('b', 4)], dict(x='2'))
    assert json.loads(p.read_text())==dict(versions=dict(x='2', y='1'), results=[e('a', 1), e('b', 4)])

def test_the_command(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(plot, 'results', tmp_path/'r.json'); monkeypatch.setattr(run, 'here', tmp_path)
    parts = dict(a=lambda rounds: tools.show('A', '1 s', {'x':(rounds,)*3}), peers=lambda rounds: tools.shown.append(RES['results'][1].copy()),
                 toolkit=lambda rounds: pytest.fail('not in the short run'), longest=lambda rounds: pytest.fail('it was not named'))
    monkeypatch.setattr(run, 'all_parts', lambda: parts)
    monkeypatch.setattr(plot, 'load', lambda: json.loads((tmp_path/'r.json').read_text()))
    run.main(['--quick', '--save'])
    a,b = json.loads((tmp_path/'r.json').read_text())['results']
    assert (a['part'],a['rounds'],a['rows'])==('a',3,{'x':[3,3,3]}) and b['part']=='peers' and 'Python' in a['machine']
    assert a['seconds'] in range(60)
    out = capsys.readouterr().out
    assert {f.name for f in tmp_path.iterdir()}=={'r.json','table.md','table.csv','plot.png'} and '| learnkit' in out and '0 minutes: ' in out

def test_the_longest_part_runs_if_it_is_named(monkeypatch):
    ran = []
    monkeypatch.setattr(run, 'all_parts', lambda: {p:lambda rounds, p=p: ran.append(p) for p in ('a','longest','toolkit')})
    for argv in ([], ['--quick'], ['longest']): run.main(argv)
    assert ran==['a','toolkit', 'a', 'longest']
    assert run.durations(dict(a=30, b=90))=='2 minutes: b 90 s, a 30 s'

def test_parts_in_files_of_their_own_find_what_they_need():
    from run import compare, show, steps, timed, tiny
    assert {'step','digits','callbacks','toolkit','checkpoint','preds','import','optimizers','peers'} <= run.all_parts().keys()

def test_the_stored_results_are_complete():
    res = plot.load()
    assert {*run.all_parts()} - {*gpu.parts} <= {e['part'] for e in res['results']}
    assert all({'what','first','base','unit','rows','part','rounds','date','machine'} <= e.keys() for e in res['results'])
    assert {n for e in plot.entries(res, 'peers') for n in e['rows']} <= res['versions'].keys()

# several processes
def test_the_clock_runs_from_a_batch_to_the_last_one(monkeypatch):
    times = iter(range(100))
    monkeypatch.setattr(processes, 'cpu', lambda: 10*next(times))
    monkeypatch.setattr(processes.time, 'perf_counter', lambda: next(times))
    clocked = processes.Clocked(range(processes.WARM+5))
    # the clock is read twice, however many batches are in between
    assert [*clocked]==[*range(processes.WARM+5)] and clocked.spent==(20, 2)

class Forked(Fork):
    "Runs a script in a fork of this process, which has done the imports: that saves five seconds each"
    def __init__(self, cmd, env, **kwargs):
        def run():
            os.environ.update(env)
            sys.argv = cmd[1:]
            runpy.run_path(cmd[1], run_name='__main__')
        self.log = Path(f'said-{time.monotonic_ns()}').resolve()
        super().__init__(run, self.log)
    def communicate(self): self.wait(300); return None,self.log.read_text()

@pytest.fixture
def forks(monkeypatch):
    if find_spec('torchmetrics'): exactness.f1()
    torch.optim.SGD([torch.ones(1)])   # both import a lot; done once here, for all forks
    monkeypatch.setattr(processes, 'subprocess', SimpleNamespace(Popen=Forked, PIPE=None, DEVNULL=None))

@pytest.mark.slow
def test_the_parts_of_several_processes_run(shown, forks):
    processes.bench_processes(1, dict(tiny=processes.WARM+4), (2,))   # it raises if a library comes to other weights
    processes.bench_compute(1, n=20)
    processes.bench_written(1, (10,))
    assert [e['clock'] for e in shown[:2]]==['cpu','wall'] and {'learnkit'} <= shown[0]['rows'].keys()
    assert all(r[0]>0 for e in shown for r in e['rows'].values())
    with pytest.raises(RuntimeError, match='steps in 2 processes failed'): processes.launched(2, 'steps', what='none', n=1, rounds=1)

@pytest.mark.slow
def test_the_part_of_the_store_runs(shown):
    processes.bench_store(1, n=2000)
    (message,*_),(question,*_),(value,*_) = shown[0]['rows'].values()
    assert message>0 and question>value>0   # one query for all values costs less than one for each

@pytest.mark.slow
def test_results_of_several_processes_are_compared(shown, forks):
    exactness.bench_exactness(1, (2,), (1,6))
    *values,twice,never = shown
    assert len(values)==3 and all(e['right']['learnkit']==2 and e['rows']['learnkit'][2]<1e-6 for e in shown) and twice['failed']['learnkit']==0
