"""Records in tests/foreign/recorded/ what the trainers of other libraries, which must be installed, pass to callbacks:
`python tests/foreign/record.py keras lightning transformers pytorch_accelerated fastnlp`. It also prints what differs
with a Learner; with `--compare` it only does that and writes nothing. `python tests/foreign/record.py --table` prints
the table of `coming_from` from the records, and needs none of these libraries."""
import importlib, json, sys, warnings
from pathlib import Path
sys.path.insert(0, str(Path(__file__).parent))
import recording

def show(system, job, theirs, ours, known):
    n,new,listed = recording.compare(theirs, ours, known, job)
    print(f'{system} {job}: {len(theirs)} entries with {recording.count_values(theirs)} values, {n} hooks alike, {len(new)} differences, {len(listed)} listed')
    seen = set()
    for hook,at,*values in new:
        if (hook,str(at)) not in seen: print('   ', hook, at, *values)
        seen.add((hook,str(at)))

def table():
    "Yield the rows of the table in `coming_from`: how much was compared, by library and job"
    for path in sorted(recording.folder.glob('*.json')):
        system = path.stem
        jobs,known = importlib.import_module(f'jobs_{system}'),importlib.import_module(f'learnkit.contrib.{system}').differences
        for job,theirs in recording.read(system)['jobs'].items():
            ours = json.loads(json.dumps(jobs.ours(job)))
            yield recording.table_row(system, job, recording.count(theirs, ours, known, job))

def main(*args):
    warnings.simplefilter('ignore')
    if '--table' in args: print('\n'.join([*table()]))
    only = [a for a in args if not a.startswith('--')]
    for system in only:
        jobs = importlib.import_module(f'jobs_{system}')
        found = json.loads(json.dumps({job:jobs.theirs(job) for job in jobs.jobs}))
        if '--compare' not in args: recording.write(system, jobs.version(), found)
        known = importlib.import_module(f'learnkit.contrib.{system}').differences
        for job,theirs in found.items(): show(system, job, theirs, json.loads(json.dumps(jobs.ours(job))), known)

if __name__=='__main__': main(*sys.argv[1:])
