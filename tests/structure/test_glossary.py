"The pages for users use PyTorch's words"
import json
import pytest
from glossary import found, for_users, never, pages, prose, table

@pytest.mark.check
@pytest.mark.parametrize('folder', [*for_users, *pages])
def test_no_private_word_is_in_the_prose_for_users(folder):
    assert [line for word in never for _,line in found(folder, word, kinds=('prose',))]==[]

def test_what_is_counted(tmp_path):
    assert prose('a `data set` b [data set](data set.md) <!-- data set -->')=='a  b [data set '
    (tmp_path/'nbs/book').mkdir(parents=True)
    cells = [dict(cell_type='markdown', source='The data set goes on.'), dict(cell_type='code', source='items = d.items()   # by hand')]
    (tmp_path/'nbs/book/01_a.ipynb').write_text(json.dumps(dict(cells=cells)))
    assert [*found('book', 'data set', at=tmp_path)]==[('prose', 'nbs/book/01_a.ipynb: The data set goes on.')]
    assert len([*found('book', 'item', at=tmp_path)])==1 and len([*found('book', 'by hand', kinds=('prose',), at=tmp_path)])==0

@pytest.mark.check
def test_the_table_has_every_folder():
    head,*rows = table(listed=('item','rate'))
    assert {*for_users} < {*head} and [row[0] for row in rows]==['item','rate']
    assert all(len(row)==len(head) for row in rows)
