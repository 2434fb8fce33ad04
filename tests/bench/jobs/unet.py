# ruff: noqa: F821  the training of a job, in the place of what the notebook has under "Training": all other names are its own
# Lightning
class Segmenter(L.LightningModule):
    def __init__(self, model, n_step):
        super().__init__()
        self.model,self.n_step,self.dice = model,n_step,torchmetrics.classification.BinaryF1Score()
    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), 1e-2)
        sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, self.n_step)
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
trainer,learn = L.Trainer(max_epochs=5),Segmenter(UNet(), 5*len(dls.train))
trainer.fit(learn, dls.train, dls.valid)
# the result
def get_preds(with_decoded, learn=learn):
    probs,targs = map(torch.cat, zip(*trainer.predict(learn, dls.valid)))
    return probs,targs,probs.argmax(1)
dice = trainer.callback_metrics['dice'].item()
learn = SimpleNamespace(get_preds=get_preds, recorder=SimpleNamespace(history=dict(dice=[dice])))
