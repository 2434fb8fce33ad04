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
        loss = F.softplus(-self.judge(batch[0])).mean() + F.softplus(self.judge(drawn.detach())).mean()
        opt_judge.zero_grad()
        self.manual_backward(loss)
        opt_judge.step()
        loss = F.softplus(-self.judge(drawn)).mean()
        opt_generator.zero_grad()
        self.manual_backward(loss)
        opt_generator.step()
        self.log('loss', loss)
gan = GAN()
L.Trainer(max_epochs=12).fit(gan, dls.train)
# the result
learn = SimpleNamespace(model=gan.generator)
