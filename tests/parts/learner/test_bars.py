"Progress bars of tqdm and rich, and the live loss curve: same rows, nothing left on the screen, no device reads in a batch"
import contextlib, io, os, re, sys, threading
from math import nan
from unittest import mock

import pytest
from hypothesis import given, strategies as st

import learnkit.observe.graph as show_graph
from learnkit.learner.display import TextTable
from learnkit.contrib.bars import RichBar
from learnkit.observe.graph import ShowGraphCallback
from learnkit.loop.events import CancelBatch, CancelEpoch, CancelFit, CancelTrain, CancelValid
from learnkit.callbacks.cycles import ValidateEvery
from learnkit.learner.display import LineDisplay
from learnkit.learner.bars import ProgressCallback, displays
from learnkit.learner.bars import TerminalBar
from learnkit.data.loaders import DataLoaders
from test_calls import FIRST, N, Batches, Reads
from toys import at, batches, draws, few, learner, throw

KINDS = ('tqdm','rich')
tqdm,rich = pytest.importorskip('tqdm'),pytest.importorskip('rich')

class Screen(io.StringIO):
    encoding = 'utf-8'
    def isatty(self): return True

@contextlib.contextmanager
def screen(out=None):
    "Redirect output to a terminal stand-in; `sys.stdout` and `sys.stderr` must be restored afterwards"
    out,err = out or Screen(),Screen()
    env = {k:v for k,v in os.environ.items() if k not in ('FORCE_COLOR','NO_COLOR','TTY_COMPATIBLE','TTY_INTERACTIVE')}
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), mock.patch.dict(os.environ, {**env, 'COLUMNS':'100', 'TERM':'xterm'}, clear=True):
        yield out
        assert sys.stdout is out and sys.stderr is err
    assert not tqdm.tqdm._instances

def make(kind, *cbs, every=0, **kw):
    learn = learner(cbs=cbs, **kw)
    learn.remove_cb(ProgressCallback)
    return learn.add_cb(ProgressCallback(kind, every=every))

def lines(s):
    "The lines that remain on the screen, without colours: interprets the control codes that tqdm and rich send"
    rows,y,x = [''],0,0
    for t in re.findall(r'\x1b\[\??\d*(?:;\d+)*[A-Za-z]|\r|\n|[^\x1b\r\n]+', s):
        if   t=='\n': y,x = y+1,0
        elif t=='\r': x = 0
        elif t[0]!='\x1b': rows[y] = rows[y][:x].ljust(x) + t + rows[y][x+len(t):]; x += len(t)
        elif t[-1]=='A': y -= int(t[2:-1] or 1)
        elif t[-1]=='K': rows[y] = ''
        rows += ['']*(y+1-len(rows))
    return [r.rstrip() for r in rows if r.strip()]

def table(kind, **kw):
    with screen() as s: make(kind, **kw).fit(2)
    return [re.sub(r'\d\d:\d\d$', '', l).split() for l in lines(s.getvalue())]

# rows and bars
@pytest.mark.parametrize('kind', KINDS)
def test_the_same_rows_as_lines(kind):
    with contextlib.redirect_stdout(io.StringIO()) as s: make('lines', every=30).fit(2)
    assert table(kind)==[re.sub(r'\d\d:\d\d$', '', l).split() for l in s.getvalue().splitlines()]

@pytest.mark.parametrize('kind', KINDS)
def test_the_bar_is_seen(kind):
    with screen() as s: make(kind, n=7).fit(2)
    out = s.getvalue()
    assert all(o in out for o in ('Epoch 1/2 train', 'Epoch 2/2 valid', '4/7', '1/2')) and re.search(r'\d\.\d{4}\b', out)

@pytest.mark.parametrize('kind', KINDS)
def test_a_loader_without_length(kind):
    class Endless:
        def __iter__(self): return iter(batches(3))
    said = table(kind, dls=DataLoaders(Endless(), Endless()))
    assert ['no','`len`,'] in [l[4:6] for l in said]   # so it is asked how much is wanted, once, above the rows
    assert [l[0] for l in said if l[0] in ('epoch','0','1')]==['epoch','0','1']

@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('run', (lambda l: l.validate(), lambda l: l.get_preds(), lambda l: l.fit(0)))
def test_other_runs(kind, run):
    with screen() as s: run(make(kind))
    assert len(lines(s.getvalue()))<=1   # of `fit(0)` the head

@pytest.mark.parametrize('kind', KINDS)
def test_what_callbacks_print_is_kept(kind):
    def say(cb): print(f'batch {cb.learn.iter}'); print('to stderr', file=sys.stderr)
    with screen() as s: make(kind, at('after_batch', say, when=lambda cb: cb.learn.training), n=4).fit(1)
    assert [l for l in lines(s.getvalue()) if l.startswith('batch')]==[f'batch {i}' for i in range(4)]

def test_an_unfinished_line_is_not_drawn_over():
    def say(cb): print(f'part {cb.learn.iter}, ', end='')
    with screen() as s: make('tqdm', at('after_batch', say, when=lambda cb: cb.learn.training), n=4, valid=False).fit(1)
    assert 'part 0, part 1, part 2, part 3,' in lines(s.getvalue())

def test_a_bar_that_watches_already():
    "Each write went through its own proxy, which erased the bar, by a write"
    with screen() as s:
        bar = TerminalBar()
        bar.begin('train', 4)
        bar.wrap_streams()
        print('hello')
        bar.end()
    assert lines(s.getvalue())==['hello']

@pytest.mark.parametrize('kind', KINDS)
def test_no_thread_is_started(kind):
    before,seen = {*threading.enumerate()},[]
    with screen(): make(kind, at('after_batch', lambda cb: seen.extend({*threading.enumerate()} - before), order=100)).fit(1)
    assert not seen

@pytest.mark.parametrize('kind', KINDS)
def test_rows_in_the_middle_of_an_epoch(kind):
    with screen() as s: make(kind, ValidateEvery('2ba'), n=4).fit(1)
    assert [l.split()[0] for l in lines(s.getvalue())]==['epoch','0:2','0:4','0']

@pytest.mark.parametrize('kind', KINDS)
def test_a_fit_in_a_callback_of_another(kind):
    with screen() as s: make(kind, at('after_epoch', lambda cb: make(kind).fit(1))).fit(1)
    assert len(lines(s.getvalue()))>=4

@pytest.mark.parametrize('kind', KINDS)
def test_no_step_waits_for_the_device(kind):
    watch,train = Reads(),Batches(batches(FIRST+N+10))
    train.watch = watch
    with screen(): make(kind, every=1e9, dls=DataLoaders(train, batches(2))).fit(1)
    assert not watch.names, dict(watch.names)

def test_into_a_file_rich_writes_rows_only():
    with screen(io.StringIO()) as s: make('rich').fit(2)
    assert [l.split()[0] for l in s.getvalue().split('\n')[:-1]]==['epoch','0','1'] and not re.search('[\x1b\r]', s.getvalue())

# whatever is raised where
FIT = '''before_fit before_epoch before_train before_fetch after_fetch before_batch after_pred after_backward before_step after_batch after_train
         before_validate after_validate after_epoch after_fit cleanup'''.split()

@few(12)
@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('name', FIT)
@pytest.mark.parametrize('error,order', ((KeyboardInterrupt, 0), (ValueError, 100)))
def test_errors_leave_no_bar(kind, name, error, order):
    bomb = at(name, throw(error('boom')), order=order)
    with screen():
        learn = make(kind, bomb)
        with pytest.raises(error): learn.fit(2)
    assert learn.progress.mbar is None
    learn.remove_cb(bomb)
    with screen() as s: learn.fit(2)
    assert [l.split()[0] for l in lines(s.getvalue())]==['epoch','0','1']

@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('cancel,name', ((CancelBatch,'before_batch'), (CancelTrain,'after_batch'), (CancelValid,'before_validate'), (CancelEpoch,'after_pred'),
                                         (CancelFit,'before_fit'), (CancelFit,'before_epoch'), (CancelFit,'after_backward')))
def test_cancels_leave_no_bar(kind, cancel, name):
    with screen() as s: make(kind, at(name, throw(cancel()), when=lambda cb: cb.learn.training or 'batch' not in name)).fit(2)
    assert all(l.split()[0] in ('epoch','0','1') for l in lines(s.getvalue()))

# what is better is green
@draws(25)
@given(st.lists(st.tuples(st.sampled_from((.5, .25, 1., 2., nan)), st.sampled_from((.5, .25, 1., nan))), min_size=1, max_size=8))
def test_green_is_the_best_so_far(rows):
    bar = RichBar(len(rows))
    bar._find_new_best(['epoch','valid_loss','accuracy','odd','time'])
    for i,(loss,acc) in enumerate(rows):
        got = bar._find_new_best([str(i), f'{loss:.6f}', f'{acc:.6f}', '0.1', '00:01'])
        losses,accs = ([v for r in rows[:i] if (v := r[j])==v] for j in (0, 1))
        assert got=={i for i,better in ((1, losses and loss<min(losses)), (2, accs and acc>max(accs))) if better}

# what is imported, and when
@pytest.mark.parametrize('kind,module', (('tqdm','tqdm.auto'), ('rich','rich.progress')))
def test_a_missing_package_is_named(kind, module):
    learn = make(kind)
    with mock.patch.dict(sys.modules, {module: None}), pytest.raises(ImportError, match=rf'needs {kind}: pip install .*\b{kind}\b.*extra `progress`'): learn.fit(1)
    with screen(): learn.fit(1)

def test_an_unknown_kind_raises_with_the_known_ones():
    with pytest.raises(ValueError, match="'notebook', 'terminal', 'lines'.*learnkit.contrib.bars"): ProgressCallback('neon')

def test_a_kind_of_ones_own():
    got = []
    class Mine(LineDisplay):
        interval = 0
        def update(self, i, loss=None): got.append((self.label, i))
        def write(self, line, table=False): got.append(line[0])
    with mock.patch.dict(displays, mine=Mine): make('mine', n=2, nv=1).fit(1)
    assert got==['epoch', ('Epoch 1/1 train',1), ('Epoch 1/1 train',2), ('Epoch 1/1 valid',1), '0']

# the graph
class Shown(list):
    "Stands in for IPython's `display`"
    def __call__(self, image, display_id): self.append([image]); return mock.Mock(update=self[-1].append)

@contextlib.contextmanager
def notebook():
    with mock.patch.object(show_graph, 'find_display_kind', lambda: 'notebook'), mock.patch('IPython.display.display', Shown()) as shown: yield shown

def graphed(*cbs, **kw): return make('lines', *cbs, every=1e9, **kw)

def test_the_graph_grows():
    from matplotlib.pyplot import get_fignums
    before = get_fignums()
    with notebook() as shown: graphed(ShowGraphCallback(), n=8).fit(3)
    pngs = [i.data for i in shown[0]]
    assert len(shown)==1 and len(pngs)==3 and len({*pngs})==3 and all(p.startswith(b'\x89PNG') for p in pngs)
    assert get_fignums()==before   # none is left to be shown once more

@pytest.mark.parametrize('name', ('before_fit','before_batch','after_pred','after_epoch','cleanup'))
def test_the_graph_after_an_error(name):
    bomb = at(name, throw(ValueError('boom')))
    learn = graphed(bomb, ShowGraphCallback)
    with notebook() as shown:
        with pytest.raises(ValueError): learn.fit(2)
        learn.remove_cb(bomb)
        shown.clear()
        learn.fit(2)
    assert [len(o) for o in shown]==[2] and learn.show_graph.handle is None

def test_the_graph_is_as_long_as_the_fit():
    from matplotlib.axes import Axes
    ends,set_xlim = [],Axes.set_xlim
    def spy(ax, *lim, **kwargs):
        if len(lim)==2: ends.append(lim)
        return set_xlim(ax, *lim, **kwargs)
    with notebook(), mock.patch.object(Axes, 'set_xlim', spy):
        graphed(ShowGraphCallback, n=4).fit(3)
        graphed(ShowGraphCallback, n=4).fit(3, start_epoch=1)
    assert ends==[(0,12)]*3 + [(0,8)]*2

@pytest.mark.parametrize('kw', (dict(valid=False), dict(n=1)))
def test_the_graph_of_little(kw):
    with notebook() as shown: graphed(ShowGraphCallback, **kw).fit(2)
    assert [len(o) for o in shown]==[2]

def test_no_graph_if_nothing_was_trained():
    with notebook() as shown: graphed(ShowGraphCallback, at('before_train', throw(CancelTrain()))).fit(1)
    assert not shown

def test_in_a_script_there_is_a_note(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    learn = graphed(ShowGraphCallback)
    with pytest.warns(UserWarning, match='plot_loss') as got: learn.fit(2); learn.fit(1)
    assert len(got)==1 and not list(tmp_path.iterdir())

def test_only_a_fit_is_drawn():
    with notebook() as shown:
        learn = graphed(ShowGraphCallback)
        learn.validate(); learn.get_preds()
    assert not shown

# an interrupted fit
@pytest.mark.parametrize('kind', ('lines','terminal',*KINDS))
@pytest.mark.parametrize('error,said', ((KeyboardInterrupt,'interrupted'), (ValueError,'ValueError')))
def test_the_last_line_says_where_it_ended(kind, error, said):
    "Epoch and batch came on the last of 63 lines of traceback only, and the bar was gone"
    with screen() as s:
        learn = make(kind, at('after_batch', throw(error('boom')), lambda cb: cb.training and cb.train_iter==5, order=99), n=3)
        with pytest.raises(error): learn.fit(2)
    *_,bar,last = lines(s.getvalue())
    assert last==f'{said}: epoch 1, batch 1' + (': boom' if said=='ValueError' else '')
    if kind=='terminal': assert bar.startswith('Epoch 2/2 train') and re.search(r'2/3 .*loss \d\.\d{4}, \d\d:\d\d left', bar)
    with screen() as s, pytest.raises(error): make(kind, at('before_batch', throw(error('boom')))).validate()
    assert said not in s.getvalue()

def test_an_error_after_the_last_event_is_no_interruption():
    "The display is closed by then; in `before_fit` there is no position to tell"
    for ev in ('after_fit','before_fit'):
        with screen() as s, pytest.raises(ValueError): make('lines', at(ev, throw(ValueError('boom')), order=99)).fit(1)
        assert 'ValueError' not in s.getvalue()

@pytest.mark.parametrize('kind,words', [('lines', 'left'), ('terminal', 'left'), ('notebook', 'left in all'), ('tqdm', 'left in all'), ('rich', 'left in all')])
def test_a_bar_with_two_remaining_times_says_what_they_are_of(kind, words):
    "In a notebook there was `[9/23 00:00<00:01 loss 0.9429, 00:05 left]`: of the epoch, and of the whole fit"
    notes = []
    class Noted(displays[kind]):
        def update(self, i, note=''): notes.append(note); super().update(i, note)
    with screen(), mock.patch.dict(displays, {kind:Noted}): make(kind).fit(2)
    times = [note.split(', ')[-1] for note in notes if ' left' in note]
    assert times and all(re.fullmatch(rf'\d\d:\d\d {words}', time) for time in times), notes

def test_no_time_left_without_a_length():
    "The part that is done moves by whole epochs then, so the time left would grow while an epoch runs"
    for length in (True, False):
        data = batches(3)
        with screen() as s:
            learn = make('lines')
            if not length: learn.dls = DataLoaders(lambda: iter(data), lambda: iter(data))
            learn.fit(3)
        assert (' left' in s.getvalue())==length

@pytest.mark.parametrize('kind', ('lines','terminal'))
def test_early_messages_stand_above_the_table(kind):
    "As a resumed run says where it goes on; who sets `learn.logger` then gets the rows, and gives them on"
    rows = []
    def take(cb): old = cb.learn.logger; cb.learn.logger = lambda row: (rows.append(row), old(row))
    with screen() as s:
        make(kind, at('before_fit', lambda cb: cb.learn.say('resuming'), order=100), at('before_fit', take, order=101)).fit(2)
    said = lines(s.getvalue())
    assert said[0]=='resuming' and said[1].split()[0]=='epoch' and [r[0] for r in rows]==[0,1]

@pytest.mark.parametrize('room', (40, 60, 80))
def test_no_name_is_broken_inside_of_a_word(room):
    "`perplexit` stood above a `y`"
    names = ['epoch', 'train_loss', 'valid_loss', 'accuracy', 'perplexity', 'error_rate', 'time']
    said = ' '.join(''.join(s for _,s in l) for l in TextTable(names).write(names, room)).split()
    assert {'epoch', 'accuracy', 'perplexity', 'time'} <= {*said}

ALL = [*KINDS,'notebook','terminal','lines']

@pytest.mark.parametrize('kind', ALL)
def test_an_error_after_a_bar_has_ended_is_the_only_one(kind):
    "In a notebook, `after_exception` updated the bar that had ended, and failed"
    if kind=='notebook': pytest.importorskip('IPython')
    for ev in ('after_train','after_validate','after_epoch'):
        learn = make(kind, at(ev, throw(ValueError('mine')), order=99), every=100)
        with screen(), pytest.raises(ValueError, match='mine') as e: learn.fit(1)
        assert len(e.value.__notes__)==1

@pytest.mark.parametrize('kind', ALL)
def test_a_batch_outside_of_a_phase_has_no_bar(kind):
    "It used to raise an AttributeError"
    if kind=='notebook': pytest.importorskip('IPython')
    learn,(b,) = make(kind),batches(1)
    with screen(), learn:
        learn.one_batch(0, b)
        learn._do_epoch_validate()
        learn.one_batch(0, b)
    assert learn.mode is None
