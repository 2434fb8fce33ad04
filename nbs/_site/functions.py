"""What the reference says of a function: its arguments, a table of its parameters, what it returns and raises"""
import ast, re
import _stubs
from _stubs import source

def text(s):
    "What a docstring or a comment says, as markdown: outside of code no character has a meaning"
    parts = re.split(r'(`[^`]*`)', s)
    return ''.join(p if i%2 else re.sub(r'([\\*_<>$#~|\[\]])', r'\\\1', p) for i,p in enumerate(parts))

def code(s): return f'`{s}`' if s else ''

def table(head, rows, kind=''):
    "A table in markdown, of some class, as a list of blocks; an empty one if there are no rows"
    def line(r): return '| ' + ' | '.join(re.sub(r'(?<!\\)\|', r'\|', c.replace('\n', ' ')) for c in r) + ' |'
    lines = map(line, [head, ['---']*len(head), *rows])
    return ['\n'.join([*([f'{{.{kind}}}'] if kind else []), *lines])] if rows else []

def type_of(t): return '' if source(t)=='Any' else source(t)

class Function:
    "A function of a module, or a method (of some `kind` that the stubs tell apart)"
    def __init__(self, f, mod, kind='function', cls=None):
        self.f = _stubs.written_out(f, mod)
        self.mod,self.doc = mod,text(ast.get_docstring(f) or '')
        flags = {*_stubs.decorators(f), *_stubs.patch_kw(f), kind}
        self.is_property = bool(flags & {'property','as_prop'})
        self.is_class    = bool(flags & {'classmethod','cls_method','hybrid'})
        self.is_static   = bool(flags & {'staticmethod','static_method'})
        self.n_bound     = int(kind!='function' and not self.is_static)   # arguments that the object or class is
        self.comments,self.comment = _stubs.docments(self.f, mod)
        if cls and not self.comments: self.comments = _stubs.comments_above(self.f, cls)
        self.errors = _stubs.raises(self.f, mod, cls)
        self.defaults = {p.arg:d for p,d in _stubs.with_defaults(self.f)}

    def arguments(self):
        "The arguments as in a signature, without types"
        a = self.f.args
        def shown(ps): return [f'{p.arg}={source(d)}' if (d := self.defaults[p.arg]) is not None else p.arg for p in ps]
        star = ['*' + a.vararg.arg] if a.vararg else ['*'] if a.kwonlyargs else []
        named = [*shown([*a.posonlyargs, *a.args][self.n_bound:]), *star, *shown(a.kwonlyargs)]
        return ', '.join([*named, '**' + a.kwarg.arg] if a.kwarg else named)

    def parameters(self):
        "The table of the parameters: name, type, default, and what the comment beside them says"
        a = self.f.args
        stars = {p.arg:star for p,star in ((a.vararg, '*'), (a.kwarg, '**')) if p}
        rows = [[code(stars.get(p.arg, '')+p.arg), code(type_of(_stubs.param_type(p, d))), code(source(d)),
                 text(self.comments.get(p.arg, ''))]
                for p in _stubs.parameters(a)[self.n_bound:] for d in [self.defaults.get(p.arg)]]
        return table(['parameter', 'type', 'default', ''], rows, 'parameters')

    def returns(self):
        "What it returns"
        said = [s for s in (code(type_of(self.f.returns)), text(self.comment)) if s]
        return [] if said in ([], ['`None`']) else ['**Returns** ' + ': '.join(said)]

    def raises(self):
        "The table of what it raises, with `…` in place of what is computed in a message"
        return table(['raises', 'says'], [[code(e), text(s.replace('`', ''))] for e,s in self.errors])
