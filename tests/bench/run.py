"""Measure learnkit, hand-written loops and other libraries on the same jobs in one run, and show medians.

    make bench                           in an environment of its own, with all libraries; the results are saved
    python tests/bench/run.py            what is installed here
    python tests/bench/run.py --quick    fewer rounds, not all parts
    python tests/bench/run.py step       one part: {parts}. `{alone}` runs only if it is named

Measured is CPU time, which a busy machine disturbs less than wall-clock time (on a device: wall-clock time). Each
ratio is of two runs, one right after the other, repeated until the median is known to about 2 percent, at most 30
times. Look at the quartiles next to it all the same. `--save` writes results.json, table.md, table.csv and plot.png in
tests/bench.
"""
import argparse, datetime, importlib.util, sys, time
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here))
import exactness, gpu, own, peers, plot, processes, start, tools
from tools import compare, learner, plain_loop, show, shown, steps, timed, tiny, torch   # for parts in separate files

# These parts take long, and their results change little: `--quick` skips them
long_parts = ('forms', 'device_forms', 'toolkit', 'beside', 'growth', 'whole', 'checkpoint', 'processes', 'neighbours',
              'messages', 'exactness')

# It takes a quarter of the time of all others, for one number: it runs only if it is named
alone = ('longest',)

on_device = {**gpu.parts, 'device_peers':peers.bench_device}   # `make bench-gpu`

def all_parts():
    "Return by name, in the order of the run, a function of the number of rounds"
    parts = dict(own.parts)
    for name in ('fused','shards','beside','growth','whole'):
        if importlib.util.find_spec(name):
            module = importlib.import_module(name)
            parts[name] = getattr(module, f'bench_{name}')
    if 'growth' in parts: parts['longest'] = importlib.import_module('growth').bench_longest
    parts |= {'peers':peers.bench_peers, **processes.parts, 'start':start.bench_start, **exactness.parts}
    if torch.cuda.is_available(): parts |= on_device
    return parts

def make_parser(parts):
    text = __doc__.replace('{parts}', ', '.join(parts)).replace('{alone}', ', '.join(alone))
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('part', nargs='*', choices=[[], *parts], help='what to measure; everything if not given')
    without = ' and '.join(long_parts)
    parser.add_argument('--quick', action='store_true', help=f'at most 3 rounds instead of 30, and without {without}')
    parser.add_argument('--rounds', type=int, help='the maximum number of rounds')
    parser.add_argument('--save', action='store_true', help='save the results')
    return parser

def main(argv=None):
    parts = all_parts()
    parser = make_parser(parts | on_device)
    args = parser.parse_args(argv)
    missing = [name for name in args.part if name not in parts]
    if missing: parser.error(f"PyTorch finds no CUDA device here, which {', '.join(missing)} are measured on")
    skipped = {*alone}
    if args.quick: skipped |= {*long_parts}
    rounds = args.rounds or (3 if args.quick else 30)
    print(tools.machine())
    seconds = {}
    for name in args.part or [name for name in parts if name not in skipped]:
        entries,seconds[name] = measure(name, parts[name], rounds)
        print(f'  ({name}: {seconds[name]} s)', flush=True)
        if args.save: save(entries)
    print('\n' + durations(seconds))
    if args.save: draw()

def measure(name, part, rounds):
    "Run a part. Return what it has shown, with the date and the machine, and the seconds of the whole part"
    start = time.time()
    n = len(shown)
    part(rounds)
    seconds = round(time.time()-start)
    about = dict(part=name, rounds=rounds, date=f'{datetime.date.today()}', machine=tools.machine(), seconds=seconds)
    for entry in shown[n:]: entry.update(about | entry)   # some parts take fewer rounds
    return shown[n:],seconds

def durations(seconds):
    "Return the seconds of the parts in one line, the longest first"
    longest = sorted(seconds.items(), key=lambda item: -item[1])
    return f"{sum(seconds.values())/60:.0f} minutes: {', '.join(f'{name} {s} s' for name,s in longest)}"

def save(entries):
    versions = {name:peers.version(name) for name in peers.libraries}
    installed = {name:version for name,version in versions.items() if version}
    tools.save(plot.results, entries, installed)

def draw():
    "Write the table and the plot of all saved results"
    results = plot.load()
    rows = plot.peer_table(results)
    (here/'table.md').write_text(plot.markdown(rows) + '\n')
    (here/'table.csv').write_text(plot.as_csv(rows))
    plot.plot(results, here/'plot.png')
    print(f'\n{plot.markdown(rows)}')

if __name__=='__main__': main()
