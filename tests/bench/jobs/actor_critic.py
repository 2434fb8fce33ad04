# ruff: noqa: F821  the training of a job, in the place of what the notebook has under "Training": all other names are its own
# Lightning
def actor_critic_loss(pred, done, values):
    scores,expected = pred
    better = values-expected
    chances = torch.distributions.Categorical(logits=scores)
    return -(chances.log_prob(done)*better.detach()/10).mean() + (better**2).mean()/100 - .01*chances.entropy().mean()
class Agent(L.LightningModule):
    def __init__(self, model):
        super().__init__()
        self.model = model
    def configure_optimizers(self): return torch.optim.Adam(self.parameters(), 5e-3)
    def training_step(self, batch, i):
        loss = actor_critic_loss(self.model(batch[0]), *batch[1:])
        self.log('loss', loss, batch_size=len(batch[0]))
        return loss
model,poles = ActorCritic(),Poles(32)
L.Trainer(max_epochs=6, gradient_clip_val=1.).fit(Agent(model), Games(model, poles))
