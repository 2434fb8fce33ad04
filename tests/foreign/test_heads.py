"""Body, head and layers of models of torchvision, timm and transformers, created without pretrained weights. The
expected head is what depends on the number of classes, the expected layers are timm's. Each library is needed for its
own tests only."""
from functools import partial
import warnings
import pytest, torch
from torch import nn
from torch.nn import functional as F
from learnkit.all import Learner, body_and_head, by_depth, head_params, layer_decay

slow = pytest.mark.slow
def meta(make, **kw):
    "Create a model on the meta device, without memory for its weights"
    with torch.device('meta'), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return make(**kw)

def sizes(model): return {n:p.shape for n,p in model.named_parameters()}
def names(model, ps): d = {id(p):n for n,p in model.named_parameters()}; return {d[id(p)] for p in ps}
def by_classes(a, b):
    "Return the names of the parameters whose sizes differ: those that depend on the number of classes"
    a,b = sizes(a),sizes(b)
    return {n for n in a if a[n]!=b[n]}

def check(model, head=None):
    "Check that each parameter is in exactly one group, and the head in the last one"
    every = sorted(id(p) for p in model.parameters())
    groups = body_and_head(model)
    assert len(groups)==2 and sorted(id(p) for g in groups for p in g)==every
    if head is not None: assert names(model, groups[-1])>=head
    deep = by_depth(model)
    assert len(deep)>2 and all(deep) and sorted(id(p) for g in deep for p in g)==every
    assert {id(p) for p in groups[-1]}<={id(p) for p in deep[-1]}
    for n in (1, 2, len(deep)):
        few = by_depth(model, n)
        assert len(few)==n and [id(p) for g in few for p in g]==[id(p) for g in deep for p in g]
    rates = layer_decay(model, 1., .5)
    assert len(rates)==len(deep) and rates[-1]==1. and rates==sorted(rates)

VISION = ('alexnet vgg11 vgg11_bn resnet18 resnet50 resnext50_32x4d wide_resnet50_2 squeezenet1_1 densenet121 googlenet inception_v3 shufflenet_v2_x0_5 mobilenet_v2 '
          'mobilenet_v3_small mnasnet0_5 efficientnet_b0 efficientnet_v2_s convnext_tiny vit_b_16 swin_t swin_v2_t maxvit_t').split()

@slow
@pytest.mark.parametrize('name', VISION)
def test_torchvision(name):
    tv = pytest.importorskip('torchvision')
    kw = dict(init_weights=False) if name in ('googlenet','inception_v3') else {}
    make = partial(meta, tv.models.get_model, name=name, weights=None, **kw)
    model = make(num_classes=7)
    other = by_classes(model, make(num_classes=11))
    check(model, other)
    assert names(model, head_params(model))==other

@slow
@pytest.mark.parametrize('name', ['fcn_resnet50','deeplabv3_resnet50','lraspp_mobilenet_v3_large','fasterrcnn_resnet50_fpn'])
def test_torchvision_models_that_are_not_classifiers(name):
    "A head is found where that is possible; otherwise a ValueError is raised instead of a guess"
    tv = pytest.importorskip('torchvision')
    make = partial(meta, tv.models.get_model, name=name, weights=None, weights_backbone=None)
    model = make(num_classes=7)
    if name.startswith('fasterrcnn') or name.startswith('lraspp'):
        try: head = names(model, head_params(model))
        except ValueError as e: assert 'splitter=lambda m' in str(e); return
    head = names(model, head_params(model))
    assert head<=by_classes(model, make(num_classes=11)) and head

TIMM = ('resnet18 resnetv2_50 efficientnet_b0 mobilenetv3_small_050 convnext_atto vit_tiny_patch16_224 deit_tiny_distilled_patch16_224 swin_tiny_patch4_window7_224 '
        'beit_base_patch16_224 regnety_002 densenet121 mixer_s32_224 levit_128s efficientformer_l1 maxvit_rmlp_pico_rw_256 eva02_tiny_patch14_224 vgg11 coatnet_0_rw_224').split()

@slow
@pytest.mark.parametrize('name', TIMM)
def test_timm(name):
    "`by_depth` and `layer_decay` agree with the layer decay of timm's own optimizers"
    timm = pytest.importorskip('timm')
    make = partial(meta, timm.create_model, model_name=name)
    model = make(num_classes=7)
    check(model, by_classes(model, make(num_classes=11)))
    head = model.get_classifier()
    head = nn.ModuleList(head if isinstance(head, (tuple,list)) else [head])
    assert names(model, head_params(model))==names(model, head.parameters())
    from timm.optim import param_groups_layer_decay
    want = {id(p):g['lr_scale'] for g in param_groups_layer_decay(model, layer_decay=.7) for p in g['params']}
    for ps,lr in zip(by_depth(model), layer_decay(model, 1., .7)):
        for p in ps: assert want[id(p)]==pytest.approx(lr, rel=1e-9)
    with pytest.raises(ValueError, match='get_classifier'): body_and_head(make(num_classes=0))

def hf(name, **kw):
    tr = pytest.importorskip('transformers')
    config = dict(bert=tr.BertConfig, vit=tr.ViTConfig, distilbert=tr.DistilBertConfig, roberta=tr.RobertaConfig, gpt2=tr.GPT2Config, llama=tr.LlamaConfig, convnext=tr.ConvNextConfig,
                  resnet=tr.ResNetConfig, swin=tr.SwinConfig, wav2vec2=tr.Wav2Vec2Config, electra=tr.ElectraConfig, albert=tr.AlbertConfig)
    return config[name](**kw)

HF = dict(bert='SequenceClassification', distilbert='SequenceClassification', roberta='SequenceClassification', electra='TokenClassification', albert='SequenceClassification',
          gpt2='SequenceClassification', llama='SequenceClassification', vit='ImageClassification', convnext='ImageClassification', resnet='ImageClassification',
          swin='ImageClassification', wav2vec2='AudioClassification')

@slow
@pytest.mark.parametrize('name', HF)
def test_transformers(name):
    tr = pytest.importorskip('transformers')
    cls = getattr(tr, f'AutoModelFor{HF[name]}')
    make = lambda n: meta(cls.from_config, config=hf(name, num_labels=n, **({} if name in ('convnext','resnet','swin','distilbert','gpt2') else dict(num_hidden_layers=4))))
    model = make(7)
    check(model)
    head = names(model, head_params(model))
    assert by_classes(model, make(11))<=head and not any(n.startswith(model.base_model_prefix+'.') for n in head)

@slow
def test_models_without_a_head_raise():
    "A head that shares the embedding's weights would be frozen with the body, and nothing would be trained"
    tr = pytest.importorskip('transformers')
    with pytest.raises(ValueError, match='shares those of the embedding'): body_and_head(meta(tr.AutoModelForCausalLM.from_config, config=hf('gpt2', n_layer=2)))
    with pytest.raises(ValueError, match='it is a base model'): body_and_head(meta(tr.AutoModel.from_config, config=hf('bert', num_hidden_layers=1)))
    model = meta(tr.AutoModelForCausalLM.from_config, config=hf('gpt2', n_layer=2))
    assert sum(map(len, by_depth(model)))==len([*model.parameters()])

@slow
def test_fine_tuning_a_model_of_timm():
    "Only the head and the norms are trained while the body is frozen; `fine_tune` then trains all layers"
    timm = pytest.importorskip('timm')
    torch.manual_seed(0)
    model,x = timm.create_model('resnet18', num_classes=2),torch.randn(8, 3, 32, 32)
    learn = Learner([[(x, torch.arange(8)%2)]]*2, model, F.cross_entropy, splitter=body_and_head)
    before = {n:p.detach().clone() for n,p in model.named_parameters()}
    with learn.no_bar(), learn.no_logging():
        learn.freeze(); learn.fit(1)
        moved = {n for n,p in model.named_parameters() if not torch.equal(p, before[n])}
        assert moved and all(n.startswith('fc') or 'bn' in n or 'downsample.1' in n for n in moved)
        learn.fine_tune(1)
    assert all(p.requires_grad for p in model.parameters()) and not torch.equal(model.conv1.weight, before['conv1.weight'])

@slow
def test_by_depth_has_only_trained_parameters():
    "Frozen parameters are in no group"
    timm = pytest.importorskip('timm')
    model = timm.create_model('vit_tiny_patch16_224', num_classes=3, depth=2)
    for n,p in model.named_parameters(): p.requires_grad_('norm' in n or 'head' in n)
    assert names(model, sum(by_depth(model), []))=={n for n,p in model.named_parameters() if p.requires_grad}

# tests that need none of these libraries

class Net(nn.Module):
    def __init__(self): super().__init__(); self.body,self.head = nn.Sequential(*(nn.Linear(4,4) for _ in range(3))),nn.Linear(4,2)
    def forward(self, x): return self.head(self.body(x))

def test_learning_rates_that_the_splitter_sets_are_preserved():
    "Over several fits, with a schedule, and after freezing"
    m,x = Net(),torch.randn(8,4)
    def split(m): return [dict(params=[*m.body.parameters()], lr=1e-4), dict(params=[*m.head.parameters()], lr=3e-2)]
    learn = Learner([[(x, torch.arange(8)%2)]]*2, m, F.cross_entropy, splitter=split)
    def rates(): return [h['lr'] for h in learn.opt.hypers]
    with learn.no_bar(), learn.no_logging():
        for _ in range(2): learn.fit(1); assert rates()==[1e-4,3e-2]
        learn.fit_one_cycle(2)
        tops = [max(c) for c in zip(*learn.recorder.group_hps['lr'])]
        assert tops==pytest.approx([1e-4,3e-2], rel=.5) and rates()==[1e-4,3e-2]
        learn.freeze(); learn.fit(1); learn.unfreeze(); learn.fit(1)
    assert rates()==[1e-4,3e-2]
