"""What learnkit costs: beside the loop that one would write by hand, and beside what others make of the same job. All in one run, in turn, medians.

    make bench                           in an environment of its own, with all that is compared; the results are kept
    python tests/bench/run.py            what is installed here
    python tests/bench/run.py --quick    fewer rounds, not all parts
    python tests/bench/run.py step       one part: {parts}. `{alone}` runs only if it is named

Counted is the processor's time, which a busy machine disturbs less than the clock's (on a device: the clock's). Each ratio is of two runs,
one right after the other, again and again until the median is known to about 2 percent, 30 times at most; look at the quartiles beside it
all the same. With `--save` the results go to results.json, table.md, table.csv and plot.png in tests/bench.
"""
import argparse, datetime, importlib.util, sys, time
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here))
import exactness, gpu, own, peers, plot, processes, start, tools
from tools import by_hand, in_turn, learner, show, shown, steps, timed, tiny, torch   # for parts in files of their own

LONG = 'forms','device_forms','toolkit','beside','growth','whole','checkpoint','processes','neighbours','messages','exactness'   # what takes its time, and changes little

ALONE = 'longest',   # what is measured only if it is named: it takes a quarter of the time of all others, for one number

on_device = {**gpu.parts, 'device_peers':peers.bench_device}   # `make bench-gpu`

def all_parts():
    "Name → function of the number of rounds, in the order of the run"
    res = dict(own.parts)
    for n in ('fused','shards','beside','growth','whole'):
        if importlib.util.find_spec(n): res[n] = getattr(importlib.import_module(n), f'bench_{n}')
    if 'growth' in res: res['longest'] = importlib.import_module('growth').bench_longest
    return {**res, 'peers':peers.bench_peers, **processes.parts, 'start':start.bench_start, **exactness.parts, **(on_device if torch.cuda.is_available() else {})}

def main(argv=None):
    parts = all_parts()
    ask = argparse.ArgumentParser(description=__doc__.replace('{parts}', ', '.join(parts | on_device)).replace('{alone}', ', '.join(ALONE)), formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument('part', nargs='*', choices=[[], *(parts | on_device)], help='what to measure; everything if not given')
    ask.add_argument('--quick', action='store_true', help=f"3 rounds at most instead of 30, and without {' and '.join(LONG)}")
    ask.add_argument('--rounds', type=int, help='so many rounds at most')
    ask.add_argument('--save', action='store_true', help='keep the results')
    args = ask.parse_args(argv)
    if missing := [p for p in args.part if p not in parts]: ask.error(f"PyTorch finds no CUDA device here, which {', '.join(missing)} are measured on")
    rounds = args.rounds or (3 if args.quick else 30)
    print(tools.machine())
    left_out,took = {*ALONE, *(LONG if args.quick else ())},{}
    for p in args.part or [p for p in parts if p not in left_out]:
        start,n = time.time(),len(shown)
        parts[p](rounds)
        took[p] = round(time.time()-start)
        about = dict(part=p, rounds=rounds, date=f'{datetime.date.today()}', machine=tools.machine(), seconds=took[p])   # of the whole part
        for e in shown[n:]: e.update(about | e)   # some take fewer rounds
        print(f'  ({p}: {took[p]} s)', flush=True)
        if args.save: keep(shown[n:])
    print('\n' + durations(took))
    if args.save: draw()

def durations(took):
    "Seconds by part in one line, the longest first"
    longest = sorted(took.items(), key=lambda o: -o[1])
    return f"{sum(took.values())/60:.0f} minutes: {', '.join(f'{p} {s} s' for p,s in longest)}"

def keep(entries): tools.save(plot.results, entries, {n:v for n in peers.libraries if (v := peers.version(n))})

def draw():
    "The table and the picture of all that was ever kept"
    res = plot.load()
    rows = plot.peer_table(res)
    (here/'table.md').write_text(plot.markdown(rows) + '\n')
    (here/'table.csv').write_text(plot.as_csv(rows))
    plot.plot(res, here/'plot.png')
    print(f'\n{plot.markdown(rows)}')

if __name__=='__main__': main()
