"""Ranks the pages of the site for what a reader types.

The index is a table: for each word the pages that have it, and how much they are about it (BM25 over weighted fields).
All judgement is made here, when the site is built. What `searchtools.js` does in the browser is what `wanted` and
`rank` do here: it takes a query apart, and adds up.
"""
import json, math, re
from collections import Counter, defaultdict
from functools import cache
import snowballstemmer
from _build import directives, join, notebooks

# The line of a page that has the words of others for it: a comment of Markdown, which no reader sees
also = re.compile(r'^<!-- Also searched for as: (.*) -->$', re.M)
fields = dict(title=8, also=7, about=3, heading=2, text=1)   # how much a word counts by where it stands
kinds = dict(howto=('How to', 1.5), book=('The book', .9), examples=('Example', 1.), reference=('Reference', .6),
             chapter=('Source', .8))   # what a page is called in the results, and how much it counts
most = 80   # pages of a word that are kept
stop = set('''a about am an and any are as at be been but by can could do does for from get had has have he her
    his how i if in into is it its like me my no not of on or our please set should so some than
    that the their them then there these they this to use using want was we were what when where
    which who why will with without would you your'''.split())
stems = snowballstemmer.stemmer('english')

@cache
def stem(word): return stems.stemWord(word)

@cache
def parts(chain):
    "The words in one that may be joined by `-` or `.`: each as it is and, of a name, its parts; and the whole"
    words,res = re.findall(r'\w+', chain, re.A),[]
    for w in words:
        found = re.findall(r'[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+', w)
        res += dict.fromkeys([w.lower(), *(p.lower() for p in found)])
    if len(words)>1: res.append(''.join(words).lower())
    return [stem(w) for w in res if w not in stop]

def terms(text): return [t for chain in re.findall(r'\w+(?:[-.]\w+)*', text, re.A) for t in parts(chain)]

def exactly(text): return '=' + re.sub(r'[\W_]', '', text, flags=re.A).lower()

def wanted(query):
    "Return the words of a query; each pair of neighbours as one word (mix up, fine tune); the query as a title"
    typed = [w for w in re.findall(r'\w+', query.lower(), re.A) if w not in stop]
    return [*dict.fromkeys([*terms(query), *(stem(a+b) for a,b in zip(typed, typed[1:])), exactly(query)])]

def fields_of(path):
    "What a notebook says, by fields"
    cells = json.loads(path.read_text(encoding='utf-8'))['cells']
    prose = '\n\n'.join(join(c['source']) for c in cells if c['cell_type']=='markdown')
    code = [join(c['source']) for c in cells if c['cell_type']=='code' and 'hide' not in directives(join(c['source']))]
    def found(pattern): return re.findall(pattern, prose, re.M)
    text = re.sub(r'\]\([^)]*\)', ']', also.sub('', prose))
    return dict(title=found(r'^# (.*)')[0], about=(found(r'^> (.*)') or [''])[0], also=' '.join(also.findall(prose)),
                heading='\n'.join(found(r'^##+ (.*)')), text='\n'.join([text, *code]))

entry = re.compile(r'^`````\{py:\w+\} ([\w.]+).*\n:module: (\S+)\n(?::.*\n)*\n+(?!An example|\{\.)(.*)', re.M)

def documents(nbs, reference):
    "What can be found: address, kind and fields of each notebook and of each entry on the pages of the `reference`"
    for p in notebooks(nbs):
        page,room = p.relative_to(nbs).with_suffix('').as_posix(),p.parent.name
        if page!='index': yield f'{page}.html',room if room in kinds else 'chapter',fields_of(p)
    for page,text in reference.items():
        for name,mod,doc in entry.findall(text):
            url = f'{page.removesuffix(".md")}.html#{mod}.{name}'
            yield url,'reference',dict(title=name, about=doc.replace('\\', ''), also='', heading='', text='')

def index(nbs, reference):
    "What the browser gets: pages as address, kind, title and about; for each word page, weight, page, weight …"
    docs = [(url, kind, fs, {k:Counter(terms(v)) for k,v in fs.items()}) for url,kind,fs in documents(nbs, reference)]
    read = [counts for _,kind,_,counts in docs if kind!='reference']
    in_pages = Counter(w for counts in read for w in set().union(*counts.values()))
    length = sum(c['text'].total() for c in read)/len(read)
    found = defaultdict(list)
    for i,(_,kind,_,counts) in enumerate(docs):
        shorter = 1/(.4+.6*counts['text'].total()/length)   # a word counts less in a long text
        for w in set().union(*counts.values()):
            n = sum(weight*counts[k][w]*(shorter if k=='text' else 1) for k,weight in fields.items())
            rare = math.log(1+len(read)/(in_pages[w]+.5))
            found[w].append((i, round(100*kinds[kind][1]*rare*n/(n+3))))
    for i,(_,_,fs,_) in enumerate(docs): found[exactly(fs['title'])].append((i, 2000))
    def best(pages): return sum(sorted(pages, key=lambda p: -p[1])[:most], ())
    return dict(kinds={k:v[0] for k,v in kinds.items()}, stop=sorted(stop),
                pages=[[url, kind, fs['title'], fs['about']] for url,kind,fs,_ in docs],
                words={w:best(pages) for w,pages in sorted(found.items())})

def rank(idx, query):
    "The addresses of the pages that a query finds, best first"
    score,known = Counter(),idx['words']
    for w in wanted(query):
        near = [w] if w in known else [k for k in known if len(w)>3 and k.startswith(w)]   # it is not finished
        for k in near:
            for page,weight in zip(known[k][::2], known[k][1::2]): score[page] += weight/len(near)
    return [idx['pages'][i][0] for i,_ in sorted(score.items(), key=lambda o: (-o[1], o[0]))]

def script(idx):
    "What the page of the search loads"
    return f"Search.setIndex({json.dumps(idx, ensure_ascii=False, separators=(',', ':'))})\n"
