"""Each form of a secret that a setting can have, through each writer: log files, checkpoints, run.yaml, trackers, reprs and the messages of a resume."""
import random, re, string, warnings
from dataclasses import dataclass
from importlib.util import find_spec
from types import SimpleNamespace

import pytest, torch
from torch import nn

from learnkit.all import Callback, CheckpointCallback, CSVLogger, DataLoaders, JsonLogger, Learner, MetricsLogger, TensorBoardLogger
from learnkit.loop.secrets import hide_secrets

alphabet,hexadecimal = string.ascii_letters+string.digits,'0123456789abcdef'
def drawn(n, letters=alphabet): return ''.join(random.Random(n).choices(letters, k=n))
long = drawn(40)                     # a secret in the form of a service
S = 'hunter2'                        # a secret recognizable only by its name or place

@dataclass
class Conf: api_key:str=S; url:str='x'
class Shown:
    def __repr__(self): return f'Shown(password={S})'
class Nested:
    def __repr__(self): return f"Nested(conf={Conf()!r}, n=3)"

by_name = {name:{name:S} for name in '''api_key apiKey token auth_token pw pwd password db_password credentials passphrase pat cookie secret
    client_secret authorization access_key private_key sas sig jwt'''.split()}
by_place = dict(auth=dict(auth=('me', S)), headers=dict(a={'Authorization':f'Bearer {S}'}), pairs=dict(a=[('X-Api-Key', S)]), more_pairs=dict(a=[('Accept', 'x'), ['X-Api-Key', S]]),
    query=dict(url=f'https://h/x?page=1&token={S}'), sas_url=dict(url=f'https://x.blob.core.windows.net/c?sv=1&sig={S}'), amz=dict(url=f'https://b.s3.amazonaws.com/k?X-Amz-Signature={S}&X-Amz-Date=1'), url=dict(url=f'https://me:{S}@h/x'),
    slack=dict(url=f'https://hooks.slack.com/services/T0/B0/{S}'), discord=dict(url=f'https://discord.com/api/webhooks/1/{S}'), teams=dict(url=f'https://x.webhook.office.com/webhookb2/{S}/y'), google_chat=dict(url=f'https://chat.googleapis.com/v1/spaces/A/messages?key=k&token={S}'), telegram=dict(url=f'https://api.telegram.org/bot1:{S}/sendMessage'),
    dsn=dict(a=f'host=h user=u password={S}'), azure=dict(a=f'AccountName=n;AccountKey={S}==;EndpointSuffix=e'), odbc=dict(a=f'Driver=x;Uid=me;Pwd={S};'), redis=dict(a=f'redis://:{S}@h:6379/0'), nested=dict(a={'db':{'password':S}}), in_a_list=dict(a=[{'password':S}]), json=dict(a=f'{{"api_key": "{S}", "n": 1}}'), yaml=dict(a=f'api_key: {S}'), env=dict(a=f'HF_TOKEN={S}'),
    dataclass=dict(a=Conf()), namespace=dict(a=SimpleNamespace(api_key=S)), shown=dict(a=Shown()), within=dict(a=Nested()), in_a_tuple=dict(a=(Conf(), 1)), words=dict(a=['--token', S]), word=dict(a=f'--password={S}'), line=dict(a=f'train.py --api-key {S} --lr .1'), listed=dict(a=['--lr', '1', f'--token={S}']),
    bearer=dict(a=f'Bearer {S}'), basic=dict(a=f'Basic {S}=='), header=dict(a=f'Authorization: token {S}'), curl=dict(a=f"curl -H 'X-Api-Key: {S}' https://h"),
    curl_user=dict(a=f'curl -u me:{S} https://h'), netrc=dict(a=f'machine h login me password {S}'), xml=dict(a=f'<password>{S}</password>'), in_bytes=dict(a={'password':S.encode()}), escaped=dict(a=f'{{\\"api_key\\": \\"{S}\\"}}'),
    block=dict(a=f'password: |\n  {S}\n'), in_an_address=dict(url=f'https://h/login?next=%2Fx%3Ftoken%3D{S}'), fragment=dict(url=f'https://h/#access_token={S}'), ini=dict(a=f'aws_secret_access_key = {S}'), cookies=dict(a=f'Set-Cookie: id={S}; Path=/'),
    signed=dict(url=f'https://d.cloudfront.net/x?Signature={S}&Key-Pair-Id=K'), kaggle=dict(a=f'{{"username":"u","key":"{S}"}}'), proxy=dict(a=f'http_proxy=http://me:{S}@h:3128'), smtp=dict(a=f'smtps://me:{S}@h:465'), x_auth=dict(a=f'X-Auth-Token: {S}'))
by_form = {name:dict(a=text) for name,text in dict(github=f'ghp_{long}', github_app=f'ghs_{long}', github_pat=f'github_pat_{long}', gitlab=f'glpat-{long}', hugging_face=f'hf_{long}', openai=f'sk-{long}', openai_project=f'sk-proj-{long}',
    stripe=f'sk_live_{long}', aws='AKIA'+drawn(16, string.ascii_uppercase), google=f'AIza{long}', google_oauth=f'ya29.{long}', slack_bot=f'xoxb-1-{long}', sendgrid=f'SG.{long}.{long}', mailchimp=drawn(32, hexadecimal)+'-us5', twilio='SK'+drawn(32, hexadecimal), square=f'sq0csp-{long}',
    telegram_bot='123456789:'+drawn(35), npm=f'npm_{long}', pypi=f'pypi-{long}', databricks='dapi'+drawn(32, hexadecimal), replicate=f'r8_{long}', groq=f'gsk_{long}', web_token=f'eyJ{long}.eyJ{long}.{long}', token_url=f'https://{long}@h/x',
    nvidia=f'nvapi-{long}', xai=f'xai-{long}', docker=f'dckr_pat_{long}', linear=f'lin_api_{long}', notion=f'ntn_{long}', perplexity=f'pplx-{long}', anthropic=f'sk-ant-api03-{long}', wandb=f'wandb_v1_{long}', shopify='shpat_'+drawn(32, hexadecimal), grafana=f'glsa_{long}_0123abcd',
    vault=f'hvs.{long}', mattermost='https://chat.example.com/hooks/'+drawn(26, string.ascii_lowercase+string.digits), openssh=f'-----BEGIN OPENSSH PRIVATE KEY-----\n{long}\n-----END OPENSSH PRIVATE KEY-----',
    private_key=f'-----BEGIN RSA PRIVATE KEY-----\n{long}\n-----END RSA PRIVATE KEY-----').items()}
forms = {**by_name, **by_place, **by_form}

class Notify(Callback):
    "A callback whose settings are part of the description of the run"
    def __init__(self, a=None, url=None, api_key=None, apiKey=None, token=None, auth_token=None, auth=None, pw=None, pwd=None, password=None, db_password=None, credentials=None, passphrase=None, pat=None, cookie=None, secret=None, client_secret=None,
                 authorization=None, access_key=None, private_key=None, sas=None, sig=None, jwt=None):
        for name,v in vars().copy().items():
            if name not in ('self','__class__'): setattr(self, name, v)

class Tracker(MetricsLogger):
    "Records the hyperparameters that a service would receive"
    def write(self, metrics, step): pass
    def before_fit(self): super().before_fit(); self.sent = repr(self.learn.hparams())

def found_in(text):
    "Return the text around each secret in `text`"
    text = text.decode(errors='replace') if isinstance(text, bytes) else text
    return [text[max(0, m.start()-40):m.end()+5] for m in re.finditer('|'.join(secret_parts), text)]
drawn_parts = [part for settings in by_form.values() for v in settings.values() for part in re.findall(r'[A-Za-z0-9]{20,}', v)]
secret_parts = {S, *[part[-16:] for part in drawn_parts]}

def learner(path, values, *cbs):
    data = [(torch.ones(4, 2), torch.zeros(4, 1))]*2
    learn = Learner(DataLoaders(data), nn.Linear(2, 1), nn.MSELoss(), path=path, cbs=[*[Notify(**settings) for settings in values], CheckpointCallback('1ep'), JsonLogger(), CSVLogger(), *cbs])
    for name,settings in zip(forms, values): learn.hparams(**{f'all {name}':settings}, **{f'{name} {k}':v for k,v in settings.items()})
    learn.logger = lambda row: None
    return learn.remove_cb(learn.progress)

@pytest.mark.slow
def test_in_no_file_and_no_message(tmp_path):
    tracker,board = Tracker(),[TensorBoardLogger()]*bool(find_spec('tensorboard'))
    learn = learner(tmp_path, forms.values(), tracker, *board)
    learn.fit(1)
    files = [p for p in tmp_path.rglob('*') if p.is_file()]
    assert len(files)>=4
    for p in files: assert not found_in(p.read_bytes()), p.name
    for text in (tracker.sent, repr(learn.cbs), str(learn._identity())):
        assert '***' in text and not found_in(text)
    other = learner(tmp_path, [dict.fromkeys(settings, 'other') for settings in forms.values()])
    with warnings.catch_warnings(record=True) as caught, pytest.raises(ValueError) as e:
        warnings.simplefilter('always')
        other.fit(2, resume='auto')
    text = f'{e.value} {getattr(e.value, "__notes__", "")} {[str(w.message) for w in caught]}'
    assert '***' in text and not found_in(text)

def test_in_no_configuration_of_a_command_line():
    pytest.importorskip('yaml')
    from learnkit.contrib.cli import SaveConfig
    plain = {name:settings for name,settings in forms.items() if name not in ('dataclass','namespace','shown','within','in_a_tuple')}
    cb = SaveConfig(dict(net=plain))
    assert cb.text.count('***')>=len(plain) and not found_in(cb.text) and not found_in(repr(cb.state_dict()))

def test_found_in_finds_each_form():
    "Each form is found in settings that are not hidden"
    found = [name for name,settings in forms.items() if found_in(repr(settings))]
    assert len(found)==len(forms)

ordinary = '''monitor='valid_loss'|lr=0.001|tokens=5|max_token=512|n_keys=3|key=None|token=True|Linear(in_features=2, out_features=1, bias=True)|https://example.com:8080/a@b|a basic recipe|the bearer of this
    |s3://bucket/runs/fit-1|2024-01-02T03:04:05Z|google-bert/bert-base-uncased|tokenizer=AutoTokenizer|author=me|compass=4|sk-learn|hf_model|0.1,0.2|[0.9, 0.999]|path=/data/train.csv|PosixPath('/a/b')|('valid_loss', 'min')
    |partial(f, a=1)|5e9af2b1c0ffee5e9af2b1c0ffee5e9af2b1c0ff|task-classification-with-many-words|run_ResNet50-lr0.001-bs128-2024-11-29T10|experiments/2024/ResNet50BatchNorm2d|<bos>|<sep>x</sep>|key_value_cache|--user me|-u 3:4 --lr .1|https://example.com/hooks/readme|--lr .1 --epochs 3|desk-side-computing-cluster'''.split('|')
@pytest.mark.parametrize('text', [text.strip() for text in ordinary])
def test_ordinary_text_is_not_hidden(text): assert hide_secrets(text)==text

def test_hiding_twice_changes_nothing():
    for settings in forms.values():
        for v in settings.values():
            once = hide_secrets(repr(v))
            assert hide_secrets(once)==once, v
