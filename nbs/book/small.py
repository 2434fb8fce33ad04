"The small Learner that the first four chapters of the book build"
import torch

class Cancel(Exception): "Ends a part of the loop"
class CancelBatch(Cancel): "Skips the rest of this batch"
class CancelEpoch(Cancel): "Ends this epoch"
class CancelFit(Cancel): "Ends the fit"

class Callback:
    "Handles the events that it has methods for, and reads the Learner's attributes as its own"
    order,learn = 0,None

    def __getattr__(self, name):
        if self.learn is None or name.startswith('__'): raise AttributeError(name)
        return getattr(self.learn, name)

class Learner:
    "A model, its data, a loss function, an optimizer, and the loop over them"
    def __init__(self, dls, model, loss_func, opt_func=torch.optim.Adam, lr=1e-3, cbs=()):
        self.dls,self.model,self.loss_func = dls,model,loss_func
        self.opt,self.cbs = opt_func(model.parameters(), lr=lr),[]
        for cb in cbs: self.add_cb(cb)

    def add_cb(self, cb):
        cb.learn = self
        self.cbs = sorted([*self.cbs, cb], key=lambda cb: cb.order)

    def remove_cb(self, cb): self.cbs = [o for o in self.cbs if o is not cb]

    def __call__(self, name):
        for cb in self.cbs:
            handler = getattr(cb, name, None)
            if handler: handler()

    def fit(self, n_epoch):
        self.n_epoch = n_epoch
        try: self.do_fit()
        finally: self('cleanup')

    def do_fit(self):
        try:
            self('before_fit')
            for self.epoch in range(self.n_epoch): self.do_epoch()
        except CancelFit: self('after_cancel_fit')
        self('after_fit')

    def do_epoch(self):
        try:
            self('before_epoch')
            self.train()
            self.validate()
        except CancelEpoch: self('after_cancel_epoch')
        self('after_epoch')

    def train(self):
        self.training = True
        self.model.train()
        self('before_train')
        for self.iter,self.batch in enumerate(self.dls[0]): self.one_batch()
        self('after_train')

    @torch.no_grad()
    def validate(self):
        self.training = False
        self.model.eval()
        self('before_validate')
        for self.iter,self.batch in enumerate(self.dls[1]): self.one_batch()
        self('after_validate')

    def one_batch(self):
        try:
            self.xb,self.yb = tuple(self.batch[:-1]),tuple(self.batch[-1:])
            self('before_batch')
            self.pred = self.model(*self.xb)
            self('after_pred')
            self.loss = self.loss_func(self.pred, *self.yb)
            self('after_loss')
            if self.training: self.step()
        except CancelBatch: self('after_cancel_batch')
        self('after_batch')

    def step(self):
        self.loss.backward()
        self('before_step')
        self.opt.step()
        self.opt.zero_grad()

class Recorder(Callback):
    "Keeps the loss of each training batch, and for each epoch a row of averages over its samples"
    order = 50   # after callbacks that change the loss

    def __init__(self, **metrics): self.metrics,self.losses,self.rows = metrics,[],[]

    def before_epoch(self): self.row = dict(epoch=self.epoch)
    def before_train(self): self.sums,self.n = {},0
    def before_validate(self): self.sums,self.n = {},0

    def after_loss(self):
        loss,n = self.loss.detach(),len(self.pred)
        self.n += n
        if self.training: self.losses.append(loss); values = dict(train_loss=loss)
        else: values = dict(valid_loss=loss, **{k:f(self.pred, *self.yb) for k,f in self.metrics.items()})
        for k,v in values.items(): self.sums[k] = self.sums.get(k, 0) + n*v

    def after_train(self): self.average()
    def after_validate(self): self.average()
    def average(self): self.row |= {k:(s/self.n).item() for k,s in self.sums.items()}

    def after_epoch(self):
        self.rows.append(self.row)
        print('  '.join(f'{k} {v:.4f}' if isinstance(v, float) else f'{k} {v}' for k,v in self.row.items()))
