"""Passwords, tokens and keys given to a callback, a loss or a dataset are in no file of a run and in no message."""
import functools
from importlib.util import find_spec

import pytest, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from learnkit.all import Callback, CheckpointCallback, CSVLogger, DataLoaders, JsonLogger, Learner, MSELossFlat, TensorBoardLogger
from learnkit.loop.secrets import hide_secrets
from learnkit.loop.settings import mask_secret, settings, short_repr
from learnkit.recovery.identity import describe

has_tensorboard = find_spec('tensorboard') is not None
S = 'sk-hush-12345'   # the secret
url = f'https://me:{S}@example.com/hook'

class Notify(Callback):
    "A callback whose settings are part of the description of the run"
    private = 'channel',
    def __init__(self, api_key, options, url, channel, level=2): self.api_key,self.options,self.url,self.channel,self.level = api_key,options,url,channel,level
class Own:
    def __init__(self, token): self.token = token
class Bucket(Dataset):
    def __init__(self, password): self.password,self.x = password,torch.randn(12, 2)
    def __len__(self): return 12
    def __getitem__(self, i): return self.x[i], self.x[i,:1]
class Loss(nn.Module):
    def __init__(self, auth_token, scale=2.): super().__init__(); self.auth_token,self.scale = auth_token,scale
    def forward(self, p, y): return ((p-y)**2).mean()*self.scale
def reported(token, url, pred, y): return ((pred-y)**2).mean()
def closure(secret, conn):
    def loss(pred, y): return ((pred-y)**2).mean() + 0*len(secret) + 0*len(conn['password'])
    return loss
losses = dict(module=lambda: Loss(S), partial=lambda: functools.partial(reported, S, url), named=lambda: functools.partial(lambda p, y, token, url: reported(token, url, p, y), url=url, token=S), closure=lambda: closure(S, dict(host='x', password=S)),
              mapping=lambda: functools.partial(lambda p, y, more: ((p-y)**2).mean(), more=dict(client_secret=S, url=url)))

def learner(path, loss, *cbs, level=2):
    torch.manual_seed(0)
    dl = DataLoader(Bucket(S), 4, shuffle=True)
    notify = Notify(S, dict(bearer=S, inner=dict(passwd=S)), url, f'room {S}', level=level)
    learn = Learner(DataLoaders(dl, dl), nn.Linear(2, 1), losses[loss](), path=path, cbs=[notify, *cbs])
    learn.hparams(wandb_api_key=S, site=url, nested=dict(api=dict(authToken=S)))
    learn.logger = lambda row: None
    return learn.remove_cb(learn.progress)

@pytest.mark.parametrize('loss', losses)
def test_in_no_file_and_no_message(loss, tmp_path):
    every = lambda: [CheckpointCallback('1ep'), JsonLogger(), CSVLogger(), *[TensorBoardLogger()]*has_tensorboard]
    learn = learner(tmp_path, loss, *every())
    learn.fit(2); learn.save('m'); learn.export('e')
    files = [p for p in tmp_path.rglob('*') if p.is_file()]
    assert len(files)>=8 and not [p for p in files if S.encode() in p.read_bytes()]
    texts = [repr(learn), str(learn.hparams()), *map(repr, learn.cbs), str(learn._identity())]
    assert not [t for t in texts if S in t] and 'level=2' in str(learn._identity()) and learn.hparams()['notify.level']==2
    with pytest.raises(ValueError) as e: learner(tmp_path, loss, *every(), level=3).fit(3, resume='auto')
    assert 'level=3' in str(e.value) and S not in str(e.value)

def test_a_renewed_token_is_the_same_run(tmp_path):
    global S
    old = S
    learner(tmp_path, 'module', CheckpointCallback('1ep')).fit(1)
    try:
        S = 'sk-other-678'
        learn = learner(tmp_path, 'module', CheckpointCallback('1ep'))
        learn.fit(2, resume='auto')
        assert learn.recorder.history[-1]['epoch']==1
    finally: S = old

def test_a_key_distinguishes_runs():
    "A `key` may name a column, so it distinguishes runs, but its value cannot be read"
    class Column:
        def __init__(self, key): self.key = key
    a,b = describe(Column('loss')),describe(Column('sk-1'))
    assert a!=b and a==describe(Column('loss')) and 'loss' not in a and 'sk-1' not in b

secret = 'key api_key apiKey APIKey_ token hf_token authToken auth password PASSWORD db_password passwd pwd secret client_secret credentials authorization bearer aws_secret_access_key cookie'.split()
plain = 'keys monitor tokens n_tokens tokenizer author keyboard monkey secretary authors passwords_file lr name pad every patience'.split()
def test_names_of_secrets():
    for n in secret: assert mask_secret(n, 'x')=='***' and mask_secret(n, ['x'])=='***', n
    for n in plain:  assert mask_secret(n, 'x')=='x', n
    for v in (None, True, False, print): assert mask_secret('token', v) is v and mask_secret('password', v) is v
    assert mask_secret('max_token', 512)==512 and mask_secret('key', 3)==3 and mask_secret('password', 1234)=='***'

@pytest.mark.parametrize('text,want', [(url, 'https://me:***@example.com/hook'), ('postgres://u:p%40@h:5432/db', 'postgres://u:***@h:5432/db'), ('https://example.com:8080/a@b', 'https://example.com:8080/a@b'),
    ('no address: a@b', 'no address: a@b'), ('redis://:pw@h', 'redis://:***@h'), ('https://user@h', 'https://user@h'), ('see https://a:b@c and https://d:e@f', 'see https://a:***@c and https://d:***@f')])
def test_passwords_in_addresses(text, want): assert hide_secrets(text)==want

def test_private_settings_are_hidden():
    "Names listed in `private` are written nowhere, for callbacks and functions"
    def loss(pred, y, room='x'): return ((pred-y)**2).mean()
    loss.private = 'room',
    assert 'lobby' not in describe(functools.partial(loss, room='lobby')) and 'lobby' in describe(functools.partial(loss, place='lobby'))
    class Cb(Callback):
        private = 'room',
        def __init__(self, room, n=1): self.room,self.n = room,n
    assert settings(Cb('lobby'))==dict(room='***', n=1) and short_repr(Cb('lobby', 2))=="Cb(room='***', n=2)"
