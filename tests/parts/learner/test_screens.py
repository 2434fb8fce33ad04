"""What is on the screen while a model trains, and after it: a script in a terminal of its own, whose bytes pyte makes a screen of. The terminal is 40,
80 or 120 columns wide, becomes narrower in the middle of a fit, and somebody presses ^C."""
import fcntl, json, os, re, select, signal, struct, subprocess, sys, termios, time
import pytest
from test_scripts import environ
from toys import few

pyte,pty = pytest.importorskip('pyte'),pytest.importorskip('pty')
pytestmark = [pytest.mark.slow, few(10_000, 3)]   # of the cases of each test; all with LEARNKIT_SWEEP=1
KINDS = ('terminal','tqdm','rich')

SCRIPT = r'''
import json, sys, time, torch
from torch import nn
from learnkit.all import *
import learnkit.contrib.bars
torch.set_num_threads(1)
x = torch.linspace(-1, 1, 24)[:,None]

class Slow(Callback):
    def after_batch(self): time.sleep(.02)
def balanced_accuracy_score_of_all(pred, y): return (pred-y).abs().mean()
def PearsonCorrelationCoefficient(pred, y): return -1234.5*(pred-y).abs().mean()

while kind := input():
    print('\x1bc', end='', flush=True)   # an empty screen
    torch.manual_seed(0)
    dls = DataLoaders.from_dsets(*[torch.utils.data.TensorDataset(x, x)]*2, bs=2)
    learn = Learner(dls, nn.Linear(1,1), nn.MSELoss(), torch.optim.SGD, cbs=Slow(), metrics=[balanced_accuracy_score_of_all, PearsonCorrelationCoefficient, mae])
    learn.remove_cb(ProgressCallback).add_cb(ProgressCallback(kind, every=.05))
    try: learn.fit(2)
    except KeyboardInterrupt: pass
    with open(sys.argv[1], 'w') as f: json.dump([list(learn.recorder.metric_names), *(list(r.values()) for r in learn.recorder.history)], f)
    print('done')
'''

class Reflowing(pyte.Screen):
    "Breaks its lines where it becomes narrower, as tmux, kitty, Alacritty and those of VTE do; the cursor stays at its character"
    def resize(self, lines=None, columns=None):
        at,rows = self.cursor.y,[l.rstrip() for l in self.display]
        broken = [[r[i:i+columns] for i in range(0, max(len(r), 1), columns)] for r in rows]
        y = sum(map(len, broken[:at])) + self.cursor.x//columns
        x = self.cursor.x%columns
        super().resize(lines, columns)
        self.reset()
        for i,l in enumerate(sum(broken, [])[:lines]): self.cursor_position(i+1, 1); self.draw(l)
        self.cursor_position(y+1, x+1)

class Terminal:
    "Runs the script, and sees what is on the screen at any time"
    rows = 40
    def __init__(self, folder):
        (folder/'script.py').write_text(SCRIPT)
        self.table,(self.master,tty) = folder/'table.json',pty.openpty()
        def own_terminal(): fcntl.ioctl(0, termios.TIOCSCTTY, 0)   # so that ^C reaches it
        self.proc = subprocess.Popen([sys.executable, folder/'script.py', self.table], stdin=tty, stdout=tty, stderr=tty, start_new_session=True,
                                     preexec_fn=own_terminal, env=environ(TERM='xterm-256color'))

    def begin(self, kind, cols, cls=pyte.Screen):
        self.screen,self.seen = cls(cols, self.rows),[]
        self.stream = pyte.ByteStream(self.screen)
        self.size(cols)
        os.write(self.master, f'{kind}\n'.encode())
        return self

    def size(self, cols):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack('HHHH', self.rows, cols, 0, 0))

    def resize(self, cols):
        "Between two drawings: what is on its way then would be broken anywhere"
        self.proc.send_signal(signal.SIGSTOP)
        while select.select([self.master], [], [], .1)[0]: self.stream.feed(os.read(self.master, 1<<16))
        self.size(cols)
        self.screen.resize(self.rows, cols)
        for s in (signal.SIGCONT, signal.SIGWINCH): self.proc.send_signal(s)
        return self

    def until(self, pattern):
        "Read on until a line of the screen matches; what was on the screen meanwhile is in `seen`"
        end = time.monotonic() + 60
        while not any(re.match(pattern, l) for l in self.lines):
            assert time.monotonic()<end and self.proc.poll() is None, '\n'.join(self.lines)
            if select.select([self.master], [], [], .1)[0]: self.stream.feed(os.read(self.master, 1<<16))
            self.seen.append(self.lines)
        return self

    @property
    def lines(self): return [l.rstrip() for l in self.screen.display if l.strip()]

    def values(self):
        "The names of the columns, and the cells of each row"
        names,*rows = json.loads(self.table.read_text())
        return names,[[f'{v:.6f}' for v in row[1:-1]] for row in rows]

@pytest.fixture(scope='module')
def term(tmp_path_factory):
    t = Terminal(tmp_path_factory.mktemp('screen'))
    yield t
    os.write(t.master, b'\n')
    assert t.proc.wait(20)==0
    os.close(t.master)

def bars(lines): return [l for l in lines if re.search(r'\d+%|\d+/\d+|\bleft\b|\[\d', l)]

def has_name(name, head):
    "Whether `head` has the name in one line, or its parts below each other"
    starts = {m.start() for l in head for m in re.finditer(r'\S+', l)}
    for x in starts:
        words = [re.match(r'\S*', l[x:])[0] if l[x-1:x] in ('',' ') else '' for l in head]
        if any(name==''.join(words[i:j]) for i in range(len(words)) for j in range(i+1, len(words)+1)): return True
    return False

def check_table(lines, names, rows, cols):
    n = next(i for i,l in enumerate(lines) if l[0]=='0')
    head,body = lines[:n],lines[n:]
    assert all(has_name(name, head) for name in names), head
    assert max(map(len, lines))<cols, 'no line is broken by the terminal'
    said = [s for s in ' '.join(body).split() if not re.fullmatch(r'\d\d:\d\d', s)]
    assert said==[s for i,row in enumerate(rows) for s in (str(i), *row)]

@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('cols', (40, 80, 120))
def test_the_table_fits_and_there_is_one_bar(term, kind, cols):
    term.begin(kind, cols).until('done')
    *table,done = term.lines
    check_table(table, *term.values(), cols)
    assert bars(table)==[]
    seen = [b for lines in term.seen if (b := bars(lines))]
    assert len(seen)>5 and max(map(len, seen))==(2 if kind=='rich' else 1)
    if not (kind=='tqdm' and cols==40): assert any(re.search(r'loss \d\.\d{4}, \d\d:\d\d left', b[-1]) for b in seen)   # tqdm has no room for it

@pytest.mark.parametrize('kind', ('terminal','tqdm'))   # rich erases as many lines as it had drawn
@pytest.mark.parametrize('cls', (pyte.Screen, Reflowing))
def test_a_terminal_made_narrower(term, kind, cls):
    term.begin(kind, 120, cls).until('Epoch 2/2 train')
    term.resize(44).until('done')
    *lines,done = term.lines
    assert bars(lines)==[]
    assert all(len(bars(l))<=1 for l in term.seen)
    names,rows = term.values()
    assert lines[-1].split()[-2]==rows[1][-1] and any(l.startswith('1 ') for l in lines)
    if cls==Reflowing: assert ' '.join(lines).count(rows[0][0])==1   # nothing of the table is lost

@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('cols', (40, 100))
def test_an_interrupt_leaves_the_bar_and_says_where(term, kind, cols):
    term.begin(kind, cols).until(r'.*(train|valid).*[ \[][2-9]/12|train +[2-9]\d%' if not (kind=='tqdm' and cols==40) else 'Epoch 1/2 train: +[2-9]')
    os.write(term.master, b'\x03')
    term.until('done')
    *_,bar,said,done = term.lines
    assert re.fullmatch(r'interrupted: epoch 0, batch \d+', said) and 'train' in bar and len(bars(term.lines))==(2 if kind=='rich' else 1)
    assert '^C' not in bar or kind=='rich'
