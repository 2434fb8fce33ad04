"""Models of transformers without glue code: the loss is their own, metrics and predictions use the logits and the
labels that these are compared with, and the weights equal those of plain PyTorch loops. Needs `transformers`; the
models are tiny, created from a config, and nothing is downloaded."""
from functools import partial
import math, sys
import pytest, torch
from torch import nn
from torch.nn import functional as F
transformers = pytest.importorskip('transformers')
from transformers import (AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSequenceClassification, AutoModelForTokenClassification, BertConfig,
                          GPT2Config, LlamaConfig, T5Config, T5ForConditionalGeneration, BertForQuestionAnswering, get_linear_schedule_with_warmup)
from learnkit.all import (CheckpointCallback, CrossEntropyLossFlat, DataLoaders, EMACallback, GradientAccumulation, GradientClip, Interpretation, Learner, MapOutputs,
                          MixedPrecision, OnBetter, Perplexity, ProgressCallback, TorchScheduler, accuracy)
from toys import weights

pytestmark = pytest.mark.slow
transformers.logging.set_verbosity_error()
V,T = 60,9
bert  = partial(BertConfig, vocab_size=V, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, max_position_embeddings=32)
llama = partial(LlamaConfig, vocab_size=V, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, max_position_embeddings=32, pad_token_id=0, bos_token_id=1, eos_token_id=2)
gpt2  = partial(GPT2Config, vocab_size=V, n_embd=16, n_layer=2, n_head=2, n_positions=32, bos_token_id=1, eos_token_id=2, pad_token_id=0)
t5    = partial(T5Config, vocab_size=V, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, pad_token_id=0, decoder_start_token_id=0)

def set_dropout(config, p=0.):
    "Set every dropout probability of `config` to `p`; return it"
    for k in 'hidden_dropout_prob attention_probs_dropout_prob attention_dropout resid_pdrop embd_pdrop attn_pdrop dropout_rate'.split():
        if hasattr(config, k): setattr(config, k, p)
    return config

TASKS = dict(classes=(AutoModelForSequenceClassification, partial(bert, num_labels=3)), tokens=(AutoModelForTokenClassification, partial(bert, num_labels=3)),
             masked=(AutoModelForMaskedLM, bert), causal=(AutoModelForCausalLM, llama), gpt2=(AutoModelForCausalLM, gpt2))
def make(task, p=0., **kw):
    torch.manual_seed(0)
    cls,config = TASKS[task]
    return cls.from_config(set_dropout(config(**kw), p))

def items(task, n=22, seed=0):
    "Sentences of different lengths, with labels"
    g = torch.Generator().manual_seed(seed)
    res = []
    for _ in range(n):
        ids = torch.randint(3, V, (int(torch.randint(3, T+1, (), generator=g)),), generator=g)
        if task=='classes': labels = int(ids.sum())%3
        elif task=='tokens': labels = ids%3
        elif task=='masked': labels = torch.where(torch.rand(len(ids), generator=g)<.4, ids, -100)
        else: labels = ids
        res.append(dict(input_ids=ids, labels=labels))
    return res

def pad(items):
    "Collate like the padding collators of transformers"
    n,b = max(len(o['input_ids']) for o in items),{}
    def fill(t, v): return F.pad(torch.as_tensor(t), (0, n-len(t)), value=v)
    b['input_ids'] = torch.stack([fill(o['input_ids'], 0) for o in items])
    b['attention_mask'] = torch.stack([fill(torch.ones(len(o['input_ids']), dtype=torch.long), 0) for o in items])
    if 'labels' in items[0]:
        y = [torch.as_tensor(o['labels']) for o in items]
        b['labels'] = torch.stack([fill(o, -100) if o.ndim else o for o in y])
    return b

def data(task, bs=4, shuffle=False, **kw): return DataLoaders.from_dsets(items(task), items(task, 11, 1), bs=bs, collate_fn=pad, shuffle=shuffle, **kw)
def learner(task, bs=4, model=None, **kw):
    learn = Learner(data(task, bs), make(task) if model is None else model, **{'lr':1e-3, **kw})
    learn.remove_cb(ProgressCallback)
    learn.logger = lambda *_: None
    return learn

def aligned(task, model):
    "Compute the logits and labels that are compared, one sentence at a time"
    res = []
    for o in items(task, 11, 1):
        with torch.no_grad(): p = model.eval()(input_ids=o['input_ids'][None]).logits[0]
        y = torch.as_tensor(o['labels'])
        res.append((p[:-1],y[1:]) if task in ('causal','gpt2') else (p,y) if y.ndim else (p[None],y[None]))
    return res

@pytest.mark.parametrize('task', TASKS)
def test_losses_metrics_and_predictions_are_those_of_all_sentences(task):
    "Metrics used to fail on the output, to compare a causal model's tokens with themselves, and to count padding"
    learn = learner(task, metrics=[accuracy, Perplexity()])
    learn.fit(1)
    pairs = aligned(task, learn.model)
    P,Y = (torch.cat(o) for o in zip(*pairs))
    loss,acc,perp = learn.validate()
    assert loss==pytest.approx(F.cross_entropy(P, Y).item(), rel=1e-5)
    assert acc==pytest.approx((P.argmax(-1)==Y)[Y!=-100].float().mean().item(), abs=1e-6) and perp==pytest.approx(math.exp(loss))
    preds,targs,decoded,losses = learn.get_preds(with_decoded=True, with_loss=True)
    assert len(preds)==len(targs)==len(losses)==11
    for i,(p,y) in enumerate(pairs):
        got = preds[i][:len(p)] if y.ndim and task!='classes' else preds[i][None]
        torch.testing.assert_close(got, p, atol=1e-5, rtol=1e-4)
        want = F.cross_entropy(p, y) if (y!=-100).any() else torch.tensor(0.)
        assert losses[i].item()==pytest.approx(want.item(), abs=1e-4)
        assert torch.equal(torch.as_tensor(decoded[i]).reshape(-1), preds[i].argmax(-1).reshape(-1))

@pytest.mark.parametrize('task', ['classes','tokens','masked'])   # causal models of transformers 5.23 fail with tuples
def test_tuples_are_read_like_model_outputs(task):
    a,b = learner(task, metrics=accuracy),learner(task, model=make(task, return_dict=False), metrics=accuracy)
    for learn in (a,b): learn.fit(1)
    assert torch.equal(weights(a), weights(b)) and a.validate()==b.validate()
    one = dict(input_ids=items(task)[0]['input_ids'])
    assert torch.equal(a.predict(one)[2], b.predict(one)[2])

def test_predict_one_or_several_raw_samples():
    "A padding collator creates the batch; labels that it adds are not used as targets of a prediction"
    learn = learner('classes', model=make('classes', id2label={0:'a', 1:'b', 2:'c'}))
    raw = [dict(input_ids=o['input_ids']) for o in items('classes', 5, 3)]
    label,dec,pred = learn.predict(raw[0])
    with torch.no_grad(): want = learn.model.eval()(raw[0]['input_ids'][None]).logits[0]
    torch.testing.assert_close(pred, want)
    assert label=='abc'[int(dec)] and dec==want.argmax()
    many,_ = learn.get_preds(dl=learn.test_dl(raw, bs=2))
    torch.testing.assert_close(many, torch.stack([learn.predict(o)[2] for o in raw]), atol=1e-5, rtol=1e-4)
    words = learner('tokens').predict(raw[0])[0]
    assert len(words)==len(raw[0]['input_ids']) and set(words)<={'LABEL_0','LABEL_1','LABEL_2'}
    assert learner('causal').predict(dict(items('causal')[0]))[2].shape==(len(items('causal')[0]['input_ids']), V)   # includes the last token's

def tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers
    vocab = {w:i for i,w in enumerate(['[PAD]','[UNK]','[MASK]',*(f'w{i}' for i in range(V-3))])}
    tok = Tokenizer(models.WordLevel(vocab, unk_token='[UNK]'))
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tok, pad_token='[PAD]', unk_token='[UNK]', mask_token='[MASK]')

@pytest.mark.parametrize('task', ['classes','causal','masked'])
def test_the_collators_of_transformers(task):
    "With the collator for masked models, `predict` used to predict a sentence in which other words were masked"
    tok = tokenizer()
    collate = (transformers.DataCollatorWithPadding(tok) if task=='classes' else
               transformers.DataCollatorForLanguageModeling(tok, mlm=task=='masked'))
    rows = [{'input_ids':o['input_ids'].tolist(), **({'labels':o['labels']} if task=='classes' else {})} for o in items(task)]
    learn = Learner(DataLoaders.from_dsets(rows, rows[:7], bs=4, collate_fn=collate), make(task), lr=1e-3, metrics=accuracy)
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    one = dict(tok('w1 w2 [MASK] w3'))
    got = [learn.predict(one)[2] for _ in range(3)]
    with torch.no_grad(): want = learn.model.eval()(torch.tensor([one['input_ids']]), attention_mask=torch.ones(1,4)).logits[0]
    for o in got: torch.testing.assert_close(o, want)
    preds,_ = learn.get_preds(dl=learn.test_dl([dict(tok('w1 w2')), one]))
    assert len(preds)==2

def test_only_logits_are_gathered():
    "Caches, hidden states and attentions used to be part of the predictions"
    model = make('causal')
    model.config.output_hidden_states,model.config.use_cache = True,True
    learn = learner('causal', model=model)
    preds,_ = learn.get_preds()
    assert all(isinstance(o, torch.Tensor) and o.shape[-1]==V for o in preds)
    both,_ = learn.get_preds(dl=[next(iter(learn.dls.valid))], cbs=MapOutputs(lambda o: dict(logits=o.logits, last=o.hidden_states[-1])))
    assert sorted(both)==['last','logits'] and both['last'].shape[-1]==16

def test_an_interpretation_names_classes_and_has_each_loss():
    learn = learner('classes')
    interp = Interpretation.from_learner(learn, vocab=None)
    assert interp.losses.mean().item()==pytest.approx(learn.validate()[0], rel=1e-5)
    assert {r['prediction'] for r in interp.rows([0,1,2])}<={'LABEL_0','LABEL_1','LABEL_2'}

@pytest.mark.parametrize('kind', ['regression','multi_label_classification'])
def test_other_losses_of_sequences(kind):
    n = 1 if kind=='regression' else 3
    rows = [dict(input_ids=o['input_ids'], labels=torch.rand(n).round() if n>1 else torch.rand(())) for o in items('classes')]
    def collate(b): return {**pad([dict(input_ids=o['input_ids']) for o in b]), **({'labels':torch.stack([o['labels'] for o in b])} if 'labels' in b[0] else {})}
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(set_dropout(bert(num_labels=n, problem_type=kind)))
    learn = Learner(DataLoaders.from_dsets(rows, rows[:9], bs=4, collate_fn=collate, shuffle=False), model, lr=1e-3)
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    preds,targs,decoded,losses = learn.get_preds(with_decoded=True, with_loss=True)
    f = F.mse_loss if n==1 else F.binary_cross_entropy_with_logits
    assert losses.mean().item()==pytest.approx(f(preds.reshape(targs.shape), targs).item(), rel=1e-4)==pytest.approx(learn.validate()[0], rel=1e-4)
    assert torch.equal(decoded, preds if n==1 else preds>0)

def test_an_encoder_decoder_does_not_shift():
    torch.manual_seed(0)
    learn = Learner([[pad(items('causal')[i:i+4]) for i in range(0, 20, 4)]]*2, T5ForConditionalGeneration(set_dropout(t5())), lr=1e-3, metrics=accuracy)
    with learn.no_bar(), learn.no_logging(): learn.fit(1)
    preds,targs,losses = learn.get_preds(with_loss=True)
    assert [len(o) for o in preds]==[len(o) for o in targs] and learn.validate()[0]==pytest.approx(F.cross_entropy(torch.cat([*preds]), torch.cat([*targs])).item(), rel=1e-5)

def test_two_kinds_of_logits_are_a_dictionary():
    torch.manual_seed(0)
    rows = [dict(input_ids=torch.randint(3, V, (6,)), start_positions=torch.tensor(1), end_positions=torch.tensor(4)) for _ in range(8)]
    dls = DataLoaders.from_dsets(rows, rows, bs=4, n_inp=1)
    learn = Learner(dls, BertForQuestionAnswering(set_dropout(bert())), lr=1e-2)
    with learn.no_bar(), learn.no_logging(): learn.fit(2)
    preds,targs = learn.get_preds()
    assert {k:v.shape for k,v in preds.items()}==dict(start_logits=(8,6), end_logits=(8,6)) and len(targs)==2
    with pytest.raises(ValueError, match='cannot compute the loss of each sample'): learn.get_preds(with_loss=True)

def test_a_loss_function_gets_logits_where_it_compares_tensors():
    a,b = learner('classes'),learner('classes', loss_func=CrossEntropyLossFlat(), metrics=accuracy)
    for learn in (a,b): learn.fit(1)
    assert torch.equal(weights(a), weights(b)) and a.validate()[0]==b.validate()[0]
    with pytest.raises(ValueError, match='predicts the next token'): learner('causal', loss_func=CrossEntropyLossFlat()).fit(1)
    seen = []
    learner('causal', loss_func=lambda out,y: seen.append((type(out), y.shape)) or out.logits.sum()).validate()
    assert 'Output' in seen[0][0].__name__

def test_a_wrong_label_shift_raises_in_the_first_batch():
    "Metrics would otherwise compare the wrong tokens"
    model = make('causal')
    model.shifts_labels = False
    with pytest.raises(ValueError, match=r'model\.shifts_labels = True'): learner('causal', model=model).fit(1)

# features of the Learner with these models

def plain_loop(task, model, bs, epochs=1, lr=1e-3, group=1):
    "The weights after a plain loop that takes each step with the mean loss over all targets of `group` batches"
    opt,dl = torch.optim.Adam(model.parameters(), lr=lr),data(task, bs).train
    for _ in range(epochs):
        model.train()
        batches = [*dl]
        for i in range(0, len(batches), group):
            ns = [(b['labels'][:,1:]!=-100).sum() for b in batches[i:i+group]]
            for b,n in zip(batches[i:i+group], ns): (model(**b).loss*n/sum(ns)).backward()
            opt.step(); opt.zero_grad()
    return torch.cat([p.detach().flatten() for p in model.parameters()])

@pytest.mark.parametrize('task', TASKS)
def test_weights_equal_those_of_a_plain_loop(task):
    learn = learner(task)
    learn.fit(2)
    model,opt = (m := make(task)),torch.optim.Adam(m.parameters(), lr=1e-3)
    for _ in range(2):
        model.train()
        for b in data(task).train: model(**b).loss.backward(); opt.step(); opt.zero_grad()
    assert torch.equal(weights(learn), torch.cat([p.detach().flatten() for p in model.parameters()]))

def test_accumulated_tokens_count_once_each():
    "Means of means would give the tokens of short batches more weight, as HF's Trainer once did"
    learn = learner('causal', bs=2, cbs=GradientAccumulation(4), opt_func=torch.optim.Adam)
    learn.fit(1)
    torch.testing.assert_close(weights(learn), plain_loop('causal', make('causal'), 2, group=2), atol=2e-5, rtol=1e-3)

def test_gradient_checkpointing_changes_nothing():
    a,b = learner('causal', model=make('causal', use_cache=False)),learner('causal', model=make('causal', use_cache=False))
    b.model.gradient_checkpointing_enable()
    for learn in (a,b): learn.fit(1)
    assert torch.equal(weights(a), weights(b))

def test_bf16():
    learn = learner('causal', cbs=MixedPrecision('bf16'), metrics=[accuracy, Perplexity()])
    learn.fit(2)
    preds,_,losses = learn.get_preds(with_loss=True)
    assert preds[0].dtype is torch.float32 and losses.isfinite().all() and math.isfinite(learn.validate()[0])

def test_a_trained_model_generates():
    learn = learner('causal', lr=1e-2)
    learn.fit(1)
    out = learn.model.generate(torch.tensor([[5,6]]), max_new_tokens=4, do_sample=False)
    assert out.shape[1]<=6 and learn.current_run.output is None

@pytest.mark.parametrize('task', ['classes','causal'])
def test_killed_and_resumed(task, tmp_path):
    "With dropout, so that the random states must be restored too"
    def run(path, stop=None, **kw):
        torch.manual_seed(1)
        cbs = [CheckpointCallback('1ep', folder=path), EMACallback(.9), GradientAccumulation(8)]
        learn = learner(task, bs=4, model=make(task, p=.1), cbs=cbs, metrics=accuracy)
        if stop is not None:
            from learnkit.all import Callback
            def die(self):
                if self.epoch==stop and self.iter==1: raise KeyboardInterrupt
            learn.add_cb(Callback(after_step=die))
            with pytest.raises(KeyboardInterrupt): learn.fit(3, **kw)
        else: learn.fit(3, **kw)
        return learn
    whole = run(tmp_path/'a')
    run(tmp_path/'b', stop=2)
    again = run(tmp_path/'b', resume='auto')
    assert torch.equal(weights(whole), weights(again)) and whole.validate()==again.validate()

def test_the_best_epoch_is_saved_by_save_pretrained(tmp_path):
    "With averaged weights, those that were validated are saved, not those of the last batch"
    for cbs in ([],[EMACallback(.5)]):
        learn = learner('classes', lr=1e-2, cbs=[*cbs, OnBetter(lambda learn: learn.save_pretrained(tmp_path/'best', tokenizer()))])
        learn.fit(3)
        best = min(learn.recorder.history['valid_loss'])
        back = learner('classes', model=AutoModelForSequenceClassification.from_pretrained(tmp_path/'best'))
        assert back.validate()[0]==pytest.approx(best, rel=1e-6)
        assert transformers.AutoTokenizer.from_pretrained(tmp_path/'best').pad_token=='[PAD]'
