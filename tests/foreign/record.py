"""Writes what the trainers of other libraries give their callbacks into tests/foreign/recorded/, for each that is installed here:
`python tests/foreign/record.py keras lightning transformers pytorch_accelerated fastnlp`. With `--compare` it compares only, and prints all that differs."""
import importlib, json, sys, warnings
from pathlib import Path
sys.path.insert(0, str(Path(__file__).parent))
import recording

def show(system, job, theirs, ours, known):
    n,new,listed = recording.compare(theirs, ours, known, job)
    print(f'{system} {job}: {len(theirs)} entries with {recording.values_in(theirs)} values, {n} hooks alike, {len(new)} differences, {len(listed)} listed')
    seen = set()
    for hook,at,*values in new:
        if (hook,str(at)) not in seen: print('   ', hook, at, *values)
        seen.add((hook,str(at)))

def main(*args):
    warnings.simplefilter('ignore')
    only = [a for a in args if not a.startswith('--')]
    for system in only:
        jobs = importlib.import_module(f'jobs_{system}')
        found = json.loads(json.dumps({job:jobs.theirs(job) for job in jobs.jobs}))
        if '--compare' not in args: recording.write(system, jobs.version(), found)
        known = importlib.import_module(f'learnkit.contrib.{system}').differences
        for job,theirs in found.items(): show(system, job, theirs, json.loads(json.dumps(jobs.ours(job))), known)

if __name__=='__main__': main(*sys.argv[1:])
