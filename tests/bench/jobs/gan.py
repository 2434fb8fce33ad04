# ruff: noqa: F821  the training of a job, in the place of what the notebook has under "Training": all other names are its own
# Lightning
class GAN(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.generator,self.judge,self.automatic_optimization = Generator(),discriminator(),False
    def configure_optimizers(self):
        return [torch.optim.Adam(m.parameters(), lr=1e-3, betas=(.5,.99)) for m in (self.judge, self.generator)]
    def training_step(self, batch, i):
        opt_judge,opt_generator = self.optimizers()
        drawn = self.generator(batch[0])
        judged = F.softplus(-self.judge(batch[0])).mean() + F.softplus(self.judge(drawn.detach())).mean()
        opt_judge.zero_grad()
        self.manual_backward(judged)
        opt_judge.step()
        loss = F.softplus(-self.judge(drawn)).mean()
        opt_generator.zero_grad()
        self.manual_backward(loss)
        opt_generator.step()
        self.log_dict(dict(generator_loss=loss, judge_loss=judged), on_step=False, on_epoch=True)
gan,log = GAN(),L.pytorch.loggers.CSVLogger('out')
L.Trainer(max_epochs=12, logger=log).fit(gan, dls.train)
# the result
names,*rows = (l.split(',') for l in Path(log.log_dir, 'metrics.csv').read_text().splitlines())
history = {k:[float(r[names.index(k)]) for r in rows] for k in ('generator_loss','judge_loss')}
learn = SimpleNamespace(model=gan, recorder=SimpleNamespace(history=history))
