# ruff: noqa: F821  the training of a job, in the place of what the notebook has under "Training": all other names are its own
# Optuna and Lightning
class Classifier(L.LightningModule):
    def __init__(self, model, lr, wd, trial):
        super().__init__()
        self.model,self.lr,self.wd,self.trial,self.scores = model,lr,wd,trial,[]
    def configure_optimizers(self): return torch.optim.AdamW(self.parameters(), self.lr, weight_decay=self.wd)
    def training_step(self, batch, i):
        loss = F.cross_entropy(self.model(batch[0]), batch[1])
        self.log('train_loss', loss)
        return loss
    def validation_step(self, batch, i):
        self.log('accuracy', (self.model(batch[0]).argmax(1)==batch[1]).float().mean(), prog_bar=True)
    def on_validation_epoch_end(self):
        self.scores.append(self.trainer.callback_metrics['accuracy'].item())
        self.trial.report(self.scores[-1], len(self.scores))
        if self.trial.should_prune(): self.trainer.should_stop = True
def objective(t):
    hypers = dict(lr=t.suggest_float('lr', 1e-4, 1e-1, log=True), n_hidden=t.suggest_categorical('n_hidden', [16,32,64,128]),
                  drop=t.suggest_float('drop', 0, .5), wd=t.suggest_float('wd', 1e-3, 1e-1, log=True))
    learn = Classifier(net(hypers['n_hidden'], hypers['drop']), hypers['lr'], hypers['wd'], t)
    L.Trainer(max_epochs=5, num_sanity_val_steps=0).fit(learn, dls.train, dls.valid)
    trials.append(dict(hypers, accuracy=learn.scores))
    return learn.scores[-1]
trials = []
pruner = optuna.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=0)
study = optuna.create_study(direction='maximize', sampler=optuna.samplers.RandomSampler(seed=1), pruner=pruner)
study.optimize(objective, n_trials=12)
