# ruff: noqa: F821  the training of a job, in the place of what the notebook has under "Training": all other names are its own
# Lightning
class Segmenter(L.LightningModule):
    def __init__(self, model, n_step):
        super().__init__()
        self.model,self.n_step,self.dice = model,n_step,torchmetrics.classification.BinaryF1Score()
    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), 5e-3)
        sched = torch.optim.lr_scheduler.OneCycleLR(opt, 5e-3, self.n_step)
        return dict(optimizer=opt, lr_scheduler=dict(scheduler=sched, interval='step'))
    def training_step(self, batch, i):
        loss = F.cross_entropy(self.model(batch[0]), batch[1])
        self.log('train_loss', loss)
        return loss
    def validation_step(self, batch, i):
        pred = self.model(batch[0])
        self.dice(pred.argmax(1), batch[1])
        self.log_dict(dict(valid_loss=F.cross_entropy(pred, batch[1]), dice=self.dice), prog_bar=True)
    def predict_step(self, batch, i): return self.model(batch[0]).softmax(1),batch[1]
trainer,learn = L.Trainer(max_epochs=8),Segmenter(UNet(), 8*len(dls.train))
trainer.fit(learn, dls.train, dls.valid)
# the result
dice = trainer.callback_metrics['dice'].item()
probs,targs = map(torch.cat, zip(*trainer.predict(learn, dls.valid)))
learn = SimpleNamespace(show_results=lambda **kw: probs.argmax(1), recorder=SimpleNamespace(history=dict(dice=[dice])))
