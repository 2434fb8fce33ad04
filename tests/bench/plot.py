"""Tables and plots of results.json"""
import csv, io, json
from pathlib import Path

results = Path(__file__).resolve().parent/'results.json'

# the jobs of the peers, each a column: its title and its unit
columns = dict(step='training step', digits='digits', preds='get_preds', memory='memory of get_preds',
               start='start of fit', imports='import')
units   = dict(step='×', digits='×', preds='×', memory=' MiB', start=' ms', imports=' s')

plain = 'by hand'   # the row of the hand-written loop

def load(path=results): return json.loads(Path(path).read_text())

def number(value):
    "Return a number with three digits, or as an integer"
    if not value: return '0'
    if abs(value)>=99.5: return f'{value:.0f}'
    if abs(value)>=9.95: return f'{value:.1f}'
    return f'{value:.2f}'

def text(value, unit=''): return number(value) + unit

def cell(row, unit=''):
    mid,low,high = row
    return f'{text(mid, unit)} ({text(low)}–{text(high)})'

def entries(res, part): return [entry for entry in res['results'] if entry['part']==part]

def jobs_of_peers(res):
    "Return the results of the peers by job, in the order of `columns`"
    found = {entry['job']:entry for entry in entries(res, 'peers')}
    return {job:found[job] for job in columns if job in found}

def all_names(rows_by_entry):
    "Return the names of all rows of several tables, each once, in the order in which they come"
    names = {}
    for rows in rows_by_entry: names |= dict.fromkeys(rows)
    return [*names]

def peer_table(
    res # from `load`
) -> list: # rows of texts, the first one the head
    "Return a row for each library and a column for each job: medians, and the quartiles in brackets"
    jobs = jobs_of_peers(res)
    names = all_names(entry['rows'] for entry in jobs.values())
    def cell_of(job, name):
        row = jobs[job]['rows'].get(name)
        return '–' if row is None else cell(row, units[job])
    head  = ['', 'version', *(columns[job] for job in jobs)]
    first = [plain, '', *(entry['base'] for entry in jobs.values())]
    rows  = [[name, res['versions'].get(name, ''), *(cell_of(job, name) for job in jobs)] for name in names]
    return [head, first, *rows]

def part_table(
    entry # one of the results
) -> list: # rows of texts, the first one the head
    "Return a row for each thing that was measured"
    unit  = entry['unit'] or '×'
    head  = [entry['what'], f"median ({entry.get('span', 'least–most')})"]
    first = [entry['first'], entry['base']]
    return [head, first, *([name, cell(row, unit)] for name,row in entry['rows'].items())]

def growth_table(
    entry # one of the results of growth.py
) -> list: # rows of texts, the first one the head
    "Return a row for each size and a column for each cost"
    head = [entry['first'], *entry['columns']]
    return [head, *([size, *map(text, costs)] for size,costs in entry['rows'].items())]

def whole_table(
    res # from `load`
) -> list: # rows of texts, the first one the head
    "Return a row for each script, and two columns for each whole job: CPU seconds and the peak of memory"
    jobs = entries(res, 'whole')
    names = all_names(entry['memory'] for entry in jobs)
    def cells(entry, name):
        if name not in entry['memory']: return '–','–'
        memory = f"{entry['memory'][name]:.0f} MiB"
        if name==plain: return entry['base'],memory
        return cell(entry['rows'][name], ' s'),memory
    table = [['']] + [[name] for name in names]
    for entry in jobs:
        table[0] += [entry['job'], 'memory']
        for row in table[1:]: row += cells(entry, row[0])
    return table

def markdown(rows):
    "Return `rows`, of which the first is the head, as a table in Markdown"
    rows = [[cell.replace('|', r'\|') for cell in row] for row in rows]
    widths = [max(3, *map(len, column)) for column in zip(*rows)]
    def line(row): return '| ' + ' | '.join(cell.ljust(width) for cell,width in zip(row, widths)) + ' |'
    head,*body = rows
    rule = ['-'*width for width in widths]
    return '\n'.join(map(line, [head, rule, *body]))

def as_csv(rows):
    "Return `rows` as comma-separated values"
    out = io.StringIO()
    csv.writer(out, lineterminator='\n').writerows(rows)
    return out.getvalue()

alone = 'step','digits','preds','fused','beside'   # parts that compare learnkit with a hand-written loop
others = plain,'Lightning','HF Trainer'            # other rows in them start with one of these

def ratios(
    res,  # from `load`
    parts # names of parts
) -> list:
    "Return the tables of `parts` that are ratios to the hand-written loop"
    found = []
    for part in parts: found += [entry for entry in entries(res, part) if entry['first']==plain and not entry['unit']]
    return found

def base_name(first):
    "Return, for a sentence, what the ratios are relative to"
    return 'a hand-written loop' if first==plain else first

same_job = ', the same job'   # ends the names of rows compared with a loop that does the same job

def same_job_table(
    res # from `load`
) -> list: # rows of texts, the first one the head
    "Return learnkit's ratios to the plain loop, and to a hand-written loop that does the same job"
    predicted,predicted_same = [entry['rows'] for entry in entries(res, 'forms')][:2]
    trained = entries(res, 'beside')[0]['rows']
    def form(name): return name.rpartition(' (')[0]   # without the seconds of the hand-written loop
    same = {form(name):row for name,row in predicted_same.items()}
    rows = [[f'`get_preds`, {form(name)}', cell(row, '×'), cell(same[form(name)], '×')] for name,row in predicted.items()]
    for name,row in trained.items():
        if name + same_job in trained: rows.append([name, cell(row, '×'), cell(trained[name + same_job], '×')])
    return [['', 'learnkit / the plain loop', 'learnkit / the same job'], *rows]

def slower_than_peers(res, by):
    "Return where a peer, or the hand-written loop with it, was faster than learnkit by more than `by`"
    found = []
    for entry in entries(res, 'peers'):
        if 'learnkit' not in entry['rows']: continue
        job = entry['job']
        own = entry['rows']['learnkit']
        is_ratio = not entry['unit']
        if is_ratio and own[0]>1+by:
            found.append(f'{columns[job]}: a hand-written loop (learnkit takes {text(own[0])} times as long)')
        for name,row in entry['rows'].items():
            if name=='learnkit' or row[0]>=own[0]*(1-by): continue
            found.append(f'{columns[job]}: {name} ({cell(row, units[job])}; learnkit {cell(own, units[job])})')
    return found

def slower_than_plain(res, by):
    "Return where learnkit was slower than a hand-written loop by more than `by`"
    found = []
    for entry in ratios(res, alone):
        own = {name:row for name,row in entry['rows'].items() if not name.startswith(others)}
        for name,row in own.items():
            if row[0]<=1+by: continue
            base = base_name(entry['first'])
            found.append(f"{entry['what']}: {name} takes {text(row[0])} times as long as {base}")
    return found

def slower(
    res, # from `load`
    by=.02 # how much is called slower
) -> list: # texts
    "Return where learnkit was slower than a peer, or than a hand-written loop, by more than `by`"
    return slower_than_peers(res, by) + slower_than_plain(res, by)

def is_other(entry, name):
    "Return whether a row is another library or a hand-written loop"
    if name.startswith(others): return True
    return entry['part']=='peers' and name!='learnkit'

def draw_row(ax, entry, name, y):
    "Draw a dot for the median and a line for the spread"
    color = '#46627f' if is_other(entry, name) else 'C1'
    mid,low,high = (max(value, 1e-2) for value in entry['rows'][name])   # a difference of two times may be below 0
    ax.plot([low, high], [y, y], color=color, lw=2, alpha=.5)
    ax.plot(mid, y, 'o', color=color, ms=6)
    ax.annotate(text(mid), (high, y), (6, 0), textcoords='offset points', va='center', size=8)

def draw_missing(ax, y):
    ax.text(.97, y, 'has none', transform=ax.get_yaxis_transform(), ha='right', va='center', size=7, color='#888')

def panel(ax, entry, names):
    "Draw the rows `names` of a table, from the bottom up, on a logarithmic scale"
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
    for y,name in enumerate(names):
        if name in entry['rows']: draw_row(ax, entry, name, y)
        else: draw_missing(ax, y)
    ax.set_xscale('log')
    if not entry['unit']: ax.axvline(1, color='k', lw=.8, ls='--')
    low,high = ax.get_xlim()
    ax.set_xlim(low/1.1, high*(high/low)**.15)
    ax.xaxis.set_major_locator(LogLocator(subs=(1,2,5) if high<100*low else (1,)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value,_: f'{value:g}'))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_yticks(range(len(names)), names, size=8)
    ax.set_ylim(-.6, len(names)-.4)
    ax.tick_params(axis='x', labelsize=8)
    ax.grid(axis='y', color='#eee')
    ax.set_axisbelow(True)
    for side in ('top','right'): ax.spines[side].set_visible(False)

def plot(
    res,      # from `load`
    path=None # where to save it, if anywhere
):
    "Plot a panel for each job, with a dot for each library and a line for its spread; the hand-written loop is dashed"
    from matplotlib import pyplot as plt
    jobs = jobs_of_peers(res)
    names = all_names(entry['rows'] for entry in jobs.values())[::-1]
    n_rows = (len(jobs)+2)//3
    fig = plt.figure(figsize=(11, 3.1*n_rows), layout='constrained')
    for i,(job,entry) in enumerate(jobs.items()):
        ax = fig.add_subplot(n_rows, 3, i+1)
        panel(ax, entry, names)
        unit = units[job].strip() if entry['unit'] else 'ratio to a hand-written loop'
        ax.set_title(f'{columns[job]} ({unit})', size=9)
        if i%3: ax.set_yticklabels([])
    if path:
        fig.savefig(path, dpi=110)
        plt.close(fig)
    return fig

def ratio_plot(
    res,        # from `load`
    parts=alone # names of parts
):
    "Plot a panel for each table of ratios to the hand-written loop, which is dashed; all have the same scale"
    from matplotlib import pyplot as plt
    tables = ratios(res, parts)
    n_rows = [len(entry['rows']) for entry in tables]
    height = sum(.7+.25*n for n in n_rows)
    fig,axs = plt.subplots(len(tables), figsize=(8, height), height_ratios=[1+n for n in n_rows], layout='constrained',
                           squeeze=False)
    for entry,ax in zip(tables, axs[:,0]):
        panel(ax, entry, [*entry['rows']][::-1])
        ax.set_title(entry['what'], size=9, loc='left')
    lows,highs = zip(*(ax.get_xlim() for ax in fig.axes))
    for ax in fig.axes: ax.set_xlim(min(lows), max(highs))
    return fig
