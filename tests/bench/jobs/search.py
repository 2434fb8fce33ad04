# ruff: noqa: F821  the training of a job, in the place of what the notebook has under "Training": all other names are its own
# Optuna and Lightning
class Classifier(L.LightningModule):
    def __init__(self, model, lr, wd):
        super().__init__()
        self.model,self.lr,self.wd = model,lr,wd
    def configure_optimizers(self): return torch.optim.AdamW(self.parameters(), self.lr, weight_decay=self.wd)
    def training_step(self, batch, i):
        loss = F.cross_entropy(self.model(batch[0]), batch[1])
        self.log('train_loss', loss)
        return loss
    def validation_step(self, batch, i):
        self.log('accuracy', (self.model(batch[0]).argmax(1)==batch[1]).float().mean(), prog_bar=True)
def objective(trial):
    lr,wd = trial.suggest_float('lr', 1e-4, 1e-1, log=True),trial.suggest_float('wd', 1e-3, 1e-1, log=True)
    model = net(trial.suggest_categorical('n_hidden', [16,32,64,128]), trial.suggest_float('drop', 0, .5))
    trainer = L.Trainer(max_epochs=5, callbacks=optuna_integration.PyTorchLightningPruningCallback(trial, 'accuracy'))
    trainer.fit(Classifier(model, lr, wd), dls.train, dls.valid)
    return trainer.callback_metrics['accuracy'].item()
pruner = optuna.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=0)
study = optuna.create_study(direction='maximize', sampler=optuna.samplers.RandomSampler(seed=4), pruner=pruner)
study.optimize(objective, n_trials=12)
