"""The example script works with output to a file and on a terminal, and the output is clean in both."""
import os, re, subprocess, sys, time
from pathlib import Path
import pytest, torch
from toys import few, slow

root = Path(__file__).resolve().parents[2]
script = root/'nbs/examples/digits.py'

def environ(*paths, **env):
    "An environment of a plain terminal, whose Python imports from `paths` and then this tree"
    path = os.pathsep.join(map(str, filter(None, [*paths, root, os.environ.get('PYTHONPATH')])))
    kept = {k:v for k,v in os.environ.items() if k not in ('CI','COLUMNS','LINES')}
    return {**kept, 'PYTHONPATH':path, 'TERM':'xterm', 'NO_COLOR':'1', 'PYTHON_COLORS':'0', 'OMP_NUM_THREADS':'1',
            'PYTHONIOENCODING':'utf-8', 'MPLBACKEND':'Agg', **env}

@pytest.fixture
def copy(tmp_path):
    "A copy of the script in another folder, as a user has it"
    (tmp_path/'digits.py').write_bytes(script.read_bytes())
    return tmp_path/'digits.py'

def control_characters(text): return sorted(set(re.findall(r'[\x00-\x09\x0b-\x1f\x7f-\x9f]', text)))

# output to a file
@pytest.mark.slow
def test_the_main_job(copy, tmp_path):
    "It trains to an accuracy of at least 98.5 % on held-out digits, and writes a model and plots; the log is clean"
    log = tmp_path/'log.txt'
    with open(log, 'wb') as f:
        res = subprocess.run([sys.executable, copy], env=environ(), cwd=tmp_path, timeout=600,
                             stdout=f, stderr=subprocess.STDOUT)
    text = log.read_bytes().decode()
    assert res.returncode==0, text
    assert not control_characters(text)
    head,*rows = text.split('\n\n')[0].splitlines()
    rows = [r for r in rows if not r.startswith('Epoch ')]   # progress lines, on a slow machine
    assert head.split()==['epoch','train_loss','valid_loss','accuracy','time']
    assert [r.split()[0] for r in rows]==[str(i) for i in range(15)] and all(len(r.split())==5 for r in rows)
    assert float(re.search(r'([\d.]+)% of 360 held-out digits', text)[1])>=98.5
    files = [Path(p) for p in re.findall(r':\s+(/.*)', text)]
    assert [f.name for f in files]==['digits.pth','learning_curve.png','mistakes.png']
    assert all(f.read_bytes().startswith(b'\x89PNG') and f.stat().st_size>10_000 for f in files[1:])
    assert torch.load(files[0], weights_only=True)['model']['5.weight'].shape==(10,512)
    assert {f.name for f in tmp_path.iterdir()}=={'digits.py','log.txt','out'}, 'everything that it writes is in `out`'

@pytest.mark.parametrize('name', ['sklearn', *slow('matplotlib')])
def test_what_is_missing_is_named(copy, tmp_path, name):
    (tmp_path/'without').mkdir()
    (tmp_path/'without'/f'{name}.py').write_text(f"raise ModuleNotFoundError('No module named {name}', name='{name}')")
    res = subprocess.run([sys.executable, copy], env=environ(tmp_path/'without'), timeout=120,
                         capture_output=True, encoding='utf-8')
    assert res.returncode==1 and not res.stdout
    assert res.stderr==f"This example needs {name}: pip install matplotlib scikit-learn\n"

# output on a terminal
class Terminal:
    "Runs a command on a pseudo-terminal: `see` waits for a text, `press` types"
    def __init__(self, cmd, cols=80, **env):
        pty,fcntl,self.termios = pytest.importorskip('pty'),pytest.importorskip('fcntl'),pytest.importorskip('termios')
        import struct
        self.raw,self.end = b'',time.monotonic() + 300
        master,self.tty = pty.openpty()
        fcntl.ioctl(self.tty, self.termios.TIOCSWINSZ, struct.pack('HHHH', 24, cols, 0, 0))
        self.before = self.termios.tcgetattr(self.tty)
        def own_terminal(): fcntl.ioctl(0, self.termios.TIOCSCTTY, 0)   # so that the command receives ^C
        self.proc = subprocess.Popen(cmd, stdin=self.tty, stdout=self.tty, stderr=self.tty, env=environ(**env),
                                     start_new_session=True, preexec_fn=own_terminal)
        self.master = master

    def read(self):
        import select
        if select.select([self.master], [], [], .1)[0]: self.raw += os.read(self.master, 1<<16)
        elif self.proc.poll() is not None: return False
        assert time.monotonic()<self.end, self.raw[-2000:]
        return True

    def see(self, pattern):
        while not re.search(pattern, self.raw.decode(errors='ignore')): assert self.read(), self.raw.decode()
        return self

    def press(self, keys): os.write(self.master, keys); return self

    def wait(self):
        "Wait for the command to end; return its exit status, and check that the terminal mode is restored"
        while self.read(): pass
        assert self.termios.tcgetattr(self.tty)==self.before
        for fd in (self.master, self.tty): os.close(fd)
        return self.proc.wait()

    @property
    def text(self): return self.raw.decode()

    @property
    def screen(self):
        "The lines on the screen at the end, where text after a carriage return has overwritten its line"
        def line(s):
            res = ''
            for part in s.split('\r'): res = part + res[len(part):]
            return res.rstrip()
        return [line(s) for s in self.text.split('\n')]

def is_table(lines, n):
    "Whether `lines` are a head and `n` rows, with each value below its name"
    head,*rows = lines
    starts = [m.start() for m in re.finditer(r'\S+', head)]
    return len(rows)==n and all([m.start() for m in re.finditer(r'\S+', r)]==starts for r in rows)

@pytest.mark.slow
@few(0, 0)
@pytest.mark.parametrize('cols', [80, 40])
def test_a_bar_and_a_table(copy, cols):
    "A bar is redrawn on one line at any width and removed at the end; the rows of the table stay"
    term = Terminal([sys.executable, copy, 'train', '--epochs', '3'], cols=cols)
    assert term.wait()==0, term.text
    drawn = [s.rstrip() for s in re.findall(r'\r((?:Epoch|train|valid) [^\r\n]*)', term.text)]
    assert len(set(drawn))>=6
    if cols==80: assert {d.split()[1] for d in drawn}=={'1/3','2/3','3/3'}
    assert any('valid' in d for d in drawn) and max(map(len, drawn))<cols
    if cols==80: assert any('█' in d for d in drawn)
    assert '\x1b' not in term.text
    *table,empty,model,curve,last = term.screen
    if cols==40: assert table.pop(0).split()==['train_','valid_']   # the names of the losses are wrapped
    assert is_table(table, 3), table
    assert (empty,last)==('','') and model.startswith('model:') and curve.startswith('learning curve:')

# everything that may happen while a bar is shown
SCENES = r'''
import sys, time, warnings, torch
from torch import nn
from learnkit import *
warnings.simplefilter('always')
torch.set_num_threads(1)
torch.manual_seed(0)
x = torch.randn(48,2)

class When(Callback):
    "Takes its time, so that a bar can be drawn, and does something in one batch"
    order = 5
    def __init__(self, f=None, event='after_batch', training=True):
        self.f,self.when = f,(1,3,training)   # epoch, batch, in training or in validation
        setattr(self, event, self._do)
    def _do(self):
        time.sleep(.005)
        if self.f and (self.learn.epoch,self.learn.iter,self.learn.training)==self.when: self.f(self.learn)

def learn(*args, **kw):
    dls = DataLoaders.from_dsets(*[torch.utils.data.TensorDataset(x, x[:,:1])]*2, bs=6)
    return Learner(dls, nn.Linear(2,1), nn.MSELoss(), torch.optim.SGD, metrics=mae, default_cbs=False,
                   cbs=[TrainEvalCallback, Recorder, ProgressCallback(every=.01), When(*args, **kw)])
def throw(e):
    def f(learn): raise e
    return f
def unknown_length():
    l = learn(); batches = list(l.dls.train)
    l.dls = DataLoaders(lambda: iter(batches), lambda: iter(batches))
    l.fit(2)
def caught(f, *e):
    try: f()
    except e as exc: print('caught', type(exc).__name__)
def quiet(context):
    l = learn()
    with getattr(l, context)(): l.fit(2)
def standalone():
    l = learn(); l.validate(); print(len(l.get_preds()))
def in_parts(l): print('first', end=' '); time.sleep(.02); l.progress.after_batch(); print('second')

scenes = dict(
    plain    = lambda: learn().fit(2),
    fit      = lambda: learn(throw(CancelFit())).fit(3),
    epoch    = lambda: learn(throw(CancelEpoch())).fit(3),
    train    = lambda: learn(throw(CancelTrain())).fit(3),
    batch    = lambda: learn(throw(CancelBatch()), 'after_pred').fit(3),
    valid    = lambda: learn(throw(CancelValid()), training=False).fit(3),
    v_epoch  = lambda: learn(throw(CancelEpoch()), training=False).fit(3),
    error    = lambda: caught(lambda: learn(throw(ZeroDivisionError())).fit(3), ZeroDivisionError),
    stop     = lambda: learn(lambda l: l.stop('enough')).fit(3),
    nested   = lambda: learn(lambda l: (l.validate(), l.get_preds())).fit(2),
    alone    = standalone,
    no_len   = unknown_length,
    prints   = lambda: learn(lambda l: print('a callback prints')).fit(2),
    parts    = lambda: learn(in_parts).fit(2),
    warns    = lambda: learn(lambda l: warnings.warn('beware')).fit(2),
    no_bar   = lambda: quiet('no_bar'),
    no_log   = lambda: quiet('no_logging'),
    no_mbar  = lambda: quiet('no_mbar'),
    nothing  = lambda: learn().fit(0),
)
for name,f in scenes.items():
    out,err = sys.stdout,sys.stderr
    print(f'== {name}')
    f()
    assert (out,err)==(sys.stdout,sys.stderr), 'a stand-in was left behind'
'''
ROWS = dict(plain='01', fit='0', epoch='012', train='012', batch='012', valid='012', v_epoch='012', error='0',
            stop='01', nested='01', alone='', no_len='01', prints='01', parts='01', warns='01', no_bar='', no_log='',
            no_mbar='01', nothing='')
NO_LEN = ("The training data has no `len`, so this epoch ends with the data. For endless data specify an amount: `fit('2000ba')`, `cbs=StepsPerEpoch(500)` for "
    'epochs, `profile(n_batches=50)`.')
PRINTED = dict(error=['ZeroDivisionError: epoch 1, batch 3', 'caught ZeroDivisionError'], alone=['2'], prints=['a callback prints'], parts=['first second'], no_len=[NO_LEN])

def scenes(lines):
    "The lines of the output of each scene, by name"
    res = {}
    for l in lines:
        if l.startswith('== '): res[l[3:]] = now = []
        else: now.append(l)
    return res

def check_scenes(lines, bar=False):
    "Check the output of all scenes; with `bar`, the bar of an interrupted fit must remain"
    got = scenes(lines)
    assert list(got)==list(ROWS), lines[-30:]
    for name,ls in got.items():
        printed = [l for l in ls if not re.match(r'epoch |\d +(\d\.|  )', l)]
        rows = [l[0] for l in ls if re.match(r'\d +(\d\.|  )', l)]
        assert ''.join(rows)==ROWS[name], (name, ls)
        assert sum(l.startswith('epoch ') for l in ls)==(name not in ('alone','no_bar','no_log','nothing')), (name, ls)
        if name=='warns': assert len(printed)==2 and 'beware' in printed[0] and 'warnings.warn' in printed[1], ls
        elif name=='no_bar': assert [l[:2] for l in printed]==['[0','[1'], ls   # the Learner's own logger is `print`
        elif name=='error' and bar: assert re.match(r'Epoch 2/3 train .*\b[23]/8 .*left\]$', printed[0]) and printed[1:]==PRINTED[name], (name, ls)
        else: assert printed==PRINTED.get(name, []), (name, ls)

@pytest.mark.slow
def test_scenes_on_a_terminal(tmp_path):
    (tmp_path/'scenes.py').write_text(SCENES)
    term = Terminal([sys.executable, tmp_path/'scenes.py'])
    assert term.wait()==0, term.text[-3000:]
    assert '\x1b' not in term.text and term.screen[-1]==''
    check_scenes(term.screen[:-1], bar=True)
    bars = scenes(re.sub('\r(?!\n)', '\n', term.text.replace('\r\n', '\n')).split('\n'))
    def drawn(name, pattern=r'(Epoch|validate|predict)\b.*\['): return any(re.match(pattern, l) for l in bars[name])
    assert {n for n in bars if drawn(n)}==ROWS.keys() - {'no_bar','nothing'}
    assert drawn('alone', r'validate \|') and drawn('alone', r'predict \|')
    assert drawn('no_len', r'Epoch 1/2 train \[\d+/\? ')

@pytest.mark.slow
def test_scenes_into_a_file(tmp_path):
    (tmp_path/'scenes.py').write_text(SCENES.replace('ProgressCallback(every=.01)', 'ProgressCallback()'))
    res = subprocess.run([sys.executable, tmp_path/'scenes.py'], env=environ(), timeout=300, encoding='utf-8',
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert res.returncode==0, res.stdout[-3000:]
    assert not control_characters(res.stdout)
    check_scenes(res.stdout.splitlines())
