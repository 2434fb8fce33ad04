"""Tables and a picture of results.json"""
import csv, io, json
from pathlib import Path

results = Path(__file__).resolve().parent/'results.json'
columns = dict(step='training step', digits='digits', preds='get_preds', memory='memory of get_preds', start='start of fit', imports='import')   # jobs of the peers
units   = dict(step='×', digits='×', preds='×', memory=' MiB', start=' ms', imports=' s')

def load(path=results): return json.loads(Path(path).read_text())

def text(v, unit=''):
    "A number with as many digits as it is worth"
    return ('0' if not v else f'{v:.0f}' if abs(v)>=99.5 else f'{v:.1f}' if abs(v)>=9.95 else f'{v:.2f}') + unit

def cell(r, unit=''): return f'{text(r[0], unit)} ({text(r[1])}–{text(r[2])})'

def entries(res, part): return [e for e in res['results'] if e['part']==part]

def peer_table(
    res # from `load`
) -> list: # rows of texts, the first one the head
    "Libraries down, jobs across: medians, and in brackets the quartiles"
    jobs = {e['job']:e for e in entries(res, 'peers')}
    cols = [j for j in columns if j in jobs]
    names = list(dict.fromkeys(n for j in cols for n in jobs[j]['rows']))
    def of(j, n): r = jobs[j]['rows'].get(n); return '–' if r is None else cell(r, units[j])
    return [['', 'version', *(columns[j] for j in cols)], ['by hand', '', *(jobs[j]['base'] for j in cols)],
            *([n, res['versions'].get(n, ''), *(of(j, n) for j in cols)] for n in names)]

def part_table(
    e # one of the results
) -> list: # rows of texts, the first one the head
    "What was measured, down"
    unit = e['unit'] or '×'
    return [[e['what'], f"median ({e.get('span', 'least–most')})"], [e['first'], e['base']], *([k, cell(r, unit)] for k,r in e['rows'].items())]

def growth_table(
    e # one of the results of growth.py
) -> list: # rows of texts, the first one the head
    "Sizes down, costs across"
    return [[e['first'], *e['columns']], *([n, *map(text, vs)] for n,vs in e['rows'].items())]

def whole_table(
    res # from `load`
) -> list: # rows of texts, the first one the head
    "Scripts down; across, for each whole job, the seconds of the processor and the peak of memory"
    es = entries(res, 'whole')
    names = list(dict.fromkeys(n for e in es for n in e['memory']))
    def of(e, n):
        if n not in e['memory']: return '–','–'
        return e['base'] if n=='by hand' else cell(e['rows'][n], ' s'),f"{e['memory'][n]:.0f} MiB"
    return [['', *(h for e in es for h in (e['job'], 'memory'))], *([n, *(c for e in es for c in of(e, n))] for n in names)]

def markdown(rows):
    "`rows`, the first one the head, as a table in markdown"
    rows = [[c.replace('|', r'\|') for c in r] for r in rows]
    widths = [max(3, *(len(r[i]) for r in rows)) for i in range(len(rows[0]))]
    def line(r): return '| ' + ' | '.join(c.ljust(w) for c,w in zip(r, widths)) + ' |'
    return '\n'.join([line(rows[0]), line(['-'*w for w in widths]), *map(line, rows[1:])])

def as_csv(rows):
    "`rows` as comma-separated values"
    out = io.StringIO()
    csv.writer(out, lineterminator='\n').writerows(rows)
    return out.getvalue()

alone = 'step','digits','preds','fused','beside'   # parts beside the loop by hand
others = 'by hand','Lightning','HF Trainer'         # who else is in them, in several forms

def ratios(
    res,  # from `load`
    parts # names of parts
) -> list:
    "The tables of `parts` that are ratios to the loop by hand"
    return [e for p in parts for e in entries(res, p) if e['first']=='by hand' and not e['unit']]

def base_name(first):
    "The name in a sentence of what the ratios are relative to"
    return 'a hand-written loop' if first=='by hand' else first

def slower(
    res, # from `load`
    by=.02 # how much is called slower
) -> list: # texts
    "Where a peer was faster than learnkit by more than `by`, or learnkit slower than a hand-written loop"
    found = []
    for e in entries(res, 'peers'):
        if 'learnkit' not in e['rows']: continue
        own,name = e['rows']['learnkit'][0],columns[e['job']]
        if not e['unit'] and own>1+by: found.append(f'{name}: a hand-written loop (learnkit takes {text(own)} times as long)')
        found += [f'{name}: {n} ({cell(r, units[e["job"]])}; learnkit {cell(e["rows"]["learnkit"], units[e["job"]])})'
                  for n,r in e['rows'].items() if n!='learnkit' and r[0]<own*(1-by)]
    found += [f"{e['what']}: {n} takes {text(r[0])} times as long as {base_name(e['first'])}" for e in ratios(res, alone)
              for n,r in e['rows'].items() if r[0]>1+by and not n.startswith(others)]
    return found

def panel(ax, e, names):
    "The libraries `names`, from below, in one of the results, on axes whose scale is that of ratios"
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
    for y,n in enumerate(names):
        other = e['part']=='peers' and n!='learnkit' or n.startswith(others)
        color = '#46627f' if other else 'C1'
        if n not in e['rows']: ax.text(.97, y, 'has none', transform=ax.get_yaxis_transform(), ha='right', va='center', size=7, color='#888'); continue
        mid,low,high = (max(v, 1e-2) for v in e['rows'][n])   # a difference of two times may come out below 0
        ax.plot([low, high], [y, y], color=color, lw=2, alpha=.5)
        ax.plot(mid, y, 'o', color=color, ms=6)
        ax.annotate(text(mid), (high, y), (6, 0), textcoords='offset points', va='center', size=8)
    ax.set_xscale('log')
    if not e['unit']: ax.axvline(1, color='k', lw=.8, ls='--')
    low,high = ax.get_xlim()
    ax.set_xlim(low/1.1, high*(high/low)**.15)
    ax.xaxis.set_major_locator(LogLocator(subs=(1,2,5) if high<100*low else (1,)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v,_: f'{v:g}'))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_yticks(range(len(names)), names, size=8)
    ax.set_ylim(-.6, len(names)-.4)
    ax.tick_params(axis='x', labelsize=8)
    ax.grid(axis='y', color='#eee')
    ax.set_axisbelow(True)
    for s in ('top','right'): ax.spines[s].set_visible(False)

def plot(
    res,      # from `load`
    path=None # where to save it, if anywhere
):
    "A panel for each job, a dot for each library, its line the spread; the loop by hand is dashed"
    from matplotlib import pyplot as plt
    jobs = {e['job']:e for e in entries(res, 'peers')}
    cols = [j for j in columns if j in jobs]
    names = list(dict.fromkeys(n for j in cols for n in jobs[j]['rows']))[::-1]
    fig = plt.figure(figsize=(11, 3.1*((len(cols)+2)//3)), layout='constrained')
    for i,j in enumerate(cols):
        ax = fig.add_subplot((len(cols)+2)//3, 3, i+1)
        panel(ax, jobs[j], names)
        ax.set_title(columns[j] + (f' ({units[j].strip()})' if jobs[j]['unit'] else ' (ratio to by hand)'), size=9)
        if i%3: ax.set_yticklabels([])
    if path: fig.savefig(path, dpi=110); plt.close(fig)
    return fig

def ratio_plot(
    res,        # from `load`
    parts=alone # names of parts
):
    "A panel for each table of ratios to the loop by hand, which is dashed"
    from matplotlib import pyplot as plt
    es = ratios(res, parts)
    fig,axs = plt.subplots(len(es), figsize=(8, sum(.7+.25*len(e['rows']) for e in es)), height_ratios=[1+len(e['rows']) for e in es],
                           layout='constrained', squeeze=False)
    for e,ax in zip(es, axs[:,0]):
        panel(ax, e, [*e['rows']][::-1])
        ax.set_title(e['what'], size=9, loc='left')
    ends = [ax.get_xlim() for ax in fig.axes]
    for ax in fig.axes: ax.set_xlim(min(a for a,_ in ends), max(b for _,b in ends))
    return fig
