"""Count private words, for which PyTorch, Lightning and fastai have others, by folder; CONTRIBUTING.md has the table.

`python tests/structure/glossary.py` prints the counts in Markdown and in code, with its comments and docstrings, as `12/3`;
`--list WORD` lists the lines. Code in prose, links, formulas and comments of Markdown are not counted as prose."""
import argparse, json, re
from collections import Counter
from functools import cache
from pathlib import Path

root = Path(__file__).resolve().parents[2]
for_users = 'book','howto','examples'
folders = *for_users,*'loop data optim measure learner callbacks observe recovery processes speed contrib'.split()
pages = 'README.md','CONTRIBUTING.md','CHANGELOG.md','tests/README.md','tests/structure/mutants.md','tests/faults/interrupts.md'

# A word and its pattern. The first are never allowed in a page for users; some uses of the others are
never = {
    'data set':    r'\bdata sets?\b',
    'go on':       r'\b(?:go|goes|going|went|gone) on\b',
    'leave out':   r'\b(?:leave|leaves|left|leaving) (?:it |them |some |\w+ )?out\b',
    'refuse':      r'\brefus\w+',
    'by hand':     r'\bby hand\b',
    'beside':      r'\bbeside\b',
    'hears':       r'\b(?:hears?|heard|hearing)\b',
    'nobody':      r'\b(?:nobody|somebody)\b',
    'to the bit':  r'\bto the (?:last |same )?bits?\b|\bsame bits\b',
    'make a step': r'\bmakes? (?:a|one|the) step',
    'in turn':     r'\bin turn\b',
    'a training':  r'\ba training(?= (?:is|was|of|with|that|goes|has|or|in)\b|[.,:;?!)]|$)|\btrainings\b',
    'slow line':   r'\bslow line\b',
    'short cut':   r'\bshort cuts?\b'}
sometimes = {
    'item':        r'(?<![.\w])items?\b(?!\()',
    'rate':        r'(?<!learning )(?<!learning-)\brates?\b',
    'program':     r'\bprograms?\b',
    'divide':      r'\bdivid\w+',
    'told, tells': r'\b(?:told|tells?|telling)\b',
    'answer':      r'\banswer\w*',
    'stands':      r'\b(?:stands?|stood)\b',
    'in parts':    r'\bin parts\b',
    'meet':        r'\bmeet(?:s|ing)?\b',
    'exchange':    r'\bexchang\w+',
    'alike':       r'\balike\b',
    'room':        r'\brooms?\b',
    'noted':       r'\bnoted\b'}
words = {k:re.compile(v, re.I | re.M) for k,v in {**never, **sometimes}.items()}

no_prose = re.compile(r'```.*?```|``.*?``|`[^`\n]*`|\]\([^)\n]*\)|<!--.*?-->|\$[^$\n]+\$', re.S)
def prose(text): return no_prose.sub(lambda m: '\n'*m[0].count('\n'), text)

@cache
def texts(path):
    "Return the kind, 'prose' or 'code', and the text of each part of a page, which is read once for all words"
    text = path.read_text(encoding='utf-8')
    if path.suffix=='.md':
        before_glossary = text.partition('\n## Words\n')[0]   # CONTRIBUTING.md lists the words themselves
        return [('prose', prose(before_glossary))]
    parts = []
    for cell in json.loads(text)['cells']:
        source = ''.join(cell['source'])
        if cell['cell_type']=='code': parts.append(('code', source))
        else: parts.append(('prose', prose(source)))
    return parts

def paths(folder, at=root):
    "Return the notebooks of a folder, or the page of that name, if there is one"
    if folder.endswith('.md'): return [p for p in (at/folder,) if p.is_file()]
    return sorted((at/'nbs'/folder).glob('*.ipynb'))

def found(folder, word, kinds=('prose','code'), at=root):
    "Yield each use of a word in a folder: kind, place and line"
    for path in paths(folder, at):
        for kind,text in texts(path):
            if kind not in kinds: continue
            for m in words[word].finditer(text):
                line = text[text.rfind('\n', 0, m.start())+1:].partition('\n')[0]
                yield kind,f'{path.relative_to(at).as_posix()}: {line.strip()}'

def table(at=root, listed=words):
    "Return the counts as rows: a word, then `prose/code` for each folder and page"
    rows = [['', *folders, *pages]]
    for word in listed:
        counts = [Counter(kind for kind,_ in found(folder, word, at=at)) for folder in rows[0][1:]]
        rows.append([word, *(f"{c['prose']}/{c['code']}" for c in counts)])
    return rows

if __name__=='__main__':
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--list', metavar='WORD', help='list the lines that have a word', choices=[*words])
    parser.add_argument('--at', type=Path, default=root, help='another checkout')
    args = parser.parse_args()
    if args.list:
        for folder in (*folders, *pages):
            for kind,line in found(folder, args.list, at=args.at): print(f'{kind:5} {line[:160]}')
    else:
        rows = table(args.at)
        for column in zip(*rows): print(f'{column[0][-26:]:26}', *(f'{value:>11}' for value in column[1:]))
