"""Tables and a picture of results.json"""
import csv, io, json
from pathlib import Path

results = Path(__file__).resolve().parent/'results.json'
columns = dict(step='training step', digits='digits', preds='get_preds', memory='its peak memory', start='start of fit', imports='import')   # jobs of the peers
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
    "Libraries down, jobs across: medians, least and most in brackets"
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
    return [[e['what'], 'median (least–most)'], [e['first'], e['base']], *([k, cell(r, unit)] for k,r in e['rows'].items())]

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

def slower(
    res, # from `load`
    by=.02 # how much is called slower
) -> list: # texts
    "Where a peer was faster than learnkit, or learnkit slower than by hand, by more than `by`"
    found = []
    for e in entries(res, 'peers'):
        if 'learnkit' not in e['rows']: continue
        own,name = e['rows']['learnkit'][0],columns[e['job']]
        if not e['unit'] and own>1+by: found.append(f'{name}: by hand (learnkit takes {text(own)} times as long)')
        found += [f'{name}: {n} ({cell(r, units[e["job"]])}; learnkit {cell(e["rows"]["learnkit"], units[e["job"]])})'
                  for n,r in e['rows'].items() if n!='learnkit' and r[0]<own*(1-by)]
    return found

def plot(
    res,      # from `load`
    path=None # where to save it, if anywhere
):
    "A panel for each job, a bar for each library, its line the spread; one by hand is dashed"
    import matplotlib
    from matplotlib.figure import Figure
    jobs = {e['job']:e for e in entries(res, 'peers')}
    cols = [j for j in columns if j in jobs]
    names = list(dict.fromkeys(n for j in cols for n in jobs[j]['rows']))[::-1]
    fig = Figure(figsize=(11, 3.1*((len(cols)+2)//3)), layout='constrained')
    for i,j in enumerate(cols):
        ax = fig.add_subplot((len(cols)+2)//3, 3, i+1)
        rows,ratio = jobs[j]['rows'],not jobs[j]['unit']
        there = [(y,n) for y,n in enumerate(names) if n in rows]
        mid = [rows[n][0] for _,n in there]
        if not there: continue
        err = [[rows[n][0]-rows[n][1] for _,n in there], [rows[n][2]-rows[n][0] for _,n in there]]
        low = min(.5, *mid) if ratio else min(mid)/3
        ax.barh([y for y,_ in there], [m-low for m in mid], left=low, xerr=err, height=.66, color=['C1' if n=='learnkit' else '#9db4c8' for _,n in there], error_kw=dict(lw=1, ecolor='#444'))
        for (y,n),m in zip(there, mid): ax.text(max(m, rows[n][2])*1.05, y, text(m), va='center', size=8)
        for y,n in enumerate(names):
            if n not in rows: ax.text(low*1.1, y, 'has none', va='center', size=7, color='#888')
        ax.set_xscale('log')
        ax.set_xlim(low, 1.9*max(rows[n][2] for _,n in there))
        if ratio: ax.axvline(1, color='k', lw=.8, ls='--')
        ax.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda v,_: f'{v:g}'))
        ax.xaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
        ax.set_yticks(range(len(names)), names if i%3==0 else ['']*len(names), size=8)
        ax.tick_params(axis='x', labelsize=8)
        ax.set_title(columns[j] + (' (ratio to by hand)' if ratio else f' ({units[j].strip()})'), size=9)
        for s in ('top','right'): ax.spines[s].set_visible(False)
    if path: fig.savefig(path, dpi=110)
    return fig
