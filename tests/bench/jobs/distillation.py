# ruff: noqa: F821  the training of a job, in the place of what the notebook has under "Training": all other names are its own
# Lightning
class Classifier(L.LightningModule):
    def __init__(self, model, n_step):
        super().__init__()
        self.model,self.n_step = model,n_step
    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), 1e-2)
        sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, self.n_step)
        return dict(optimizer=opt, lr_scheduler=dict(scheduler=sched, interval='step'))
    def loss(self, pred, x, y): return F.cross_entropy(pred, y)
    def training_step(self, batch, i):
        loss = self.loss(self.model(batch[0]), *batch)
        self.log('train_loss', loss)
        return loss
    def validation_step(self, batch, i):
        pred = self.model(batch[0])
        scores = dict(valid_loss=F.cross_entropy(pred, batch[1]), accuracy=(pred.argmax(1)==batch[1]).float().mean())
        self.log_dict(scores, prog_bar=True)
class Student(Classifier):
    def __init__(self, model, n_step, teacher, temp=2.):
        super().__init__(model, n_step)
        self.teacher,self.temp = teacher.eval().requires_grad_(False),temp
    def loss(self, pred, x, y):
        mine,theirs = ((o/self.temp).log_softmax(1) for o in (pred, self.teacher(x)))
        return F.kl_div(mine, theirs, log_target=True, reduction='batchmean')*self.temp**2
    def on_train_epoch_start(self): self.teacher.eval()
def train(dls, make, model, *args, n_epoch=8):
    learn = make(model, n_epoch*len(dls.train), *args)
    trainer = L.Trainer(max_epochs=n_epoch)
    trainer.fit(learn, dls.train, dls.valid)
    return trainer,learn
teacher = train(dls, Classifier, net(256, 256))
alone = train(dls_few, Classifier, net(16), n_epoch=25)
distilled = train(dls, Student, net(16), teacher[1].model)
# the result
def learner(trainer, learn):
    acc = trainer.validate(learn, dls.valid)[0]['accuracy']
    return SimpleNamespace(model=learn.model, validate=lambda: (None,acc))
teacher,alone,distilled = (learner(*o) for o in (teacher, alone, distilled))
