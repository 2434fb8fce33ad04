# ruff: noqa: F821  the training of a job, in the place of what the notebook has under "Training": all other names are its own
# Lightning
def far_apart(pred, targ): return 2 - 2*F.cosine_similarity(pred, targ).mean()
class BYOL(L.LightningModule):
    def __init__(self, model, decay=.98):
        super().__init__()
        self.model = model
        self.teacher = AveragedModel(model[:2], multi_avg_fn=get_ema_multi_avg_fn(decay)).requires_grad_(False)
    def configure_optimizers(self): return torch.optim.Adam(self.model.parameters(), 2e-3)
    def training_step(self, batch, i):
        a,b = wobble(batch[0]),wobble(batch[0])
        with torch.no_grad(): targ = self.teacher(torch.cat([b, a]))
        loss = far_apart(self.model(torch.cat([a, b])), targ)
        self.log('loss', loss)
        return loss
    def on_before_zero_grad(self, opt): self.teacher.update_parameters(self.model[:2])

L.Trainer(max_epochs=12).fit(BYOL(model.train()), dls.train)
