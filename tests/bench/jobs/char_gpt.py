# ruff: noqa: F821  the training of a job, in the place of what the notebook has under "Training": all other names are its own
# Lightning
class Writer(L.LightningModule):
    def __init__(self, model, n_step):
        super().__init__()
        self.model,self.n_step = model,n_step
    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), 3e-3, weight_decay=.1)
        sched = torch.optim.lr_scheduler.OneCycleLR(opt, 3e-3, self.n_step)
        return dict(optimizer=opt, lr_scheduler=dict(scheduler=sched, interval='step'))
    def training_step(self, batch, i):
        loss = F.cross_entropy(self.model(batch[0]).flatten(0, 1), batch[1].flatten())
        self.log('train_loss', loss, prog_bar=True)
        return loss
    def validation_step(self, batch, i):
        pred = self.model(batch[0])
        scores = dict(valid_loss=F.cross_entropy(pred.flatten(0, 1), batch[1].flatten()),
                      accuracy=(pred.argmax(-1)==batch[1]).float().mean())
        self.log_dict(scores, prog_bar=True)
learn = Writer(GPT(len(vocab)), 300)
best = L.pytorch.callbacks.ModelCheckpoint('out/char-gpt', monitor='valid_loss')
trainer = L.Trainer(max_steps=300, val_check_interval=100, check_val_every_n_epoch=None, gradient_clip_val=1., callbacks=best)
trainer.fit(learn, dls.train, dls.valid)
learn.load_state_dict(torch.load(best.best_model_path)['state_dict'])
# the result
loss = trainer.validate(learn, dls.valid)[0]['valid_loss']
learn = SimpleNamespace(model=learn.model, validate=lambda: (loss,))
