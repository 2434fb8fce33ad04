"""How exact a validation in several processes is: learnkit, Lightning and Accelerate on the same rows, as the
documentation of each recommends.

A model that is not trained evaluates 1 to 40 rows, in batches of 4 in each process. Compared with a single process are
the mean loss, the accuracy and the macro-averaged F1 score, which is not a mean of batches, and the predictions: which
rows come more than once, or not at all.
"""
import sys
import processes
from processes import dist, gathered, there, unseen
from tools import F, extremes, nn, show, torch

BS,CLASSES = 4,3
values = 'loss','accuracy','F1 score'

def rows(n):
    g = torch.Generator().manual_seed(n)
    x,y = torch.randn(n, 4, generator=g),torch.randint(0, CLASSES, (n,), generator=g)
    x[:,0] = torch.arange(n)   # by which a prediction tells its row
    return x,y

class Net(nn.Module):
    "Class scores, and the row that they are of"
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.lin = nn.Linear(3, CLASSES)
    def forward(self, x): return torch.cat([self.lin(x[:,1:]), x[:,:1]], 1)

def scores(out): return out[:,:CLASSES]
def loss_func(out, y): return F.cross_entropy(scores(out), y)
def f1(): from torchmetrics import F1Score; return F1Score('multiclass', num_classes=CLASSES, average='macro')
def right(): from torchmetrics import Accuracy; return Accuracy('multiclass', num_classes=CLASSES, average='micro')

def loader(n): return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*rows(n)), BS)

# who validates: each gives the three values, and the rows of its predictions, in the order in which they come

def learnkit():
    from learnkit.all import DataLoaders, Learner, TorchMetric
    def learn(n): return Learner(DataLoaders(loader(n), loader(n)), Net(), loss_func, metrics=[TorchMetric(m, activation=scores) for m in (right(), f1())])
    return lambda n: [*learn(n).validate()],lambda n: learn(n).get_preds()[0][:,-1].tolist()

def lightning():
    "`self.log` of metrics of torchmetrics, and `sync_dist` for the loss; a `BasePredictionWriter` for what each process predicts"
    import lightning
    from lightning.pytorch.callbacks import BasePredictionWriter
    from lightning.pytorch.strategies import DDPStrategy
    class Module(lightning.LightningModule):
        def __init__(self): super().__init__(); self.net,self.right,self.f1 = Net(),right(),f1()
        def validation_step(self, b, i):
            out = self.net(b[0])
            self.log('loss', loss_func(out, b[1]), on_epoch=True, sync_dist=True)
            for k,m in (('accuracy', self.right), ('F1 score', self.f1)):
                m(scores(out), b[1])
                self.log(k, m, on_epoch=True)
        def predict_step(self, b, i): return self.net(b[0])
    class Writer(BasePredictionWriter):
        def write_on_epoch_end(self, trainer, module, predictions, indices): self.found = predictions
    def trainer(*callbacks): return lightning.Trainer(accelerator='cpu', devices=dist.get_world_size(), strategy=DDPStrategy(process_group_backend='gloo'),
                                                      logger=False, enable_checkpointing=False, callbacks=[*callbacks])
    def validate(n):
        found, = trainer().validate(Module(), loader(n))
        return [found[k] for k in values]
    def predict(n):
        trainer(writer := Writer('epoch')).predict(Module(), loader(n), return_predictions=False)
        return [r for own in gathered([b[:,-1].tolist() for b in writer.found]) for b in own for r in b]
    return validate,predict

def accelerate():
    "`gather_for_metrics`; the loss too is that of all rows together"
    from accelerate import Accelerator
    def run(n):
        acc = Accelerator(cpu=True)
        model,dl = acc.prepare(Net(), loader(n))
        model.eval()
        with torch.no_grad(): return [torch.cat(o) for o in zip(*(acc.gather_for_metrics((model(x), y)) for x,y in dl))]
    return lambda n: as_one(*run(n)),lambda n: run(n)[0][:,-1].tolist()

ways = {'learnkit':learnkit, 'Lightning':lightning, 'Accelerate':accelerate}

def as_one(out, y):
    "The values in one process"
    a,f = right(),f1()
    for m in (a, f): m.sync_on_compute = False
    return [v.item() for v in (loss_func(out, y), a(scores(out), y), f(scores(out), y))]

def job_values(lengths, names):
    "For each library and length: how far each value is from that of one process"
    res = {}
    for k in names:
        validate,_ = ways[k]()
        with unseen(), torch.no_grad(): res[k] = [[abs(a-b) for a,b in zip(validate(n), as_one(Net()(rows(n)[0]), rows(n)[1]))] for n in lengths]
    return res

def job_rows(lengths, names):
    "For each library and length: how many rows are predicted more than once, and not at all"
    res = {}
    for k in names:
        _,predict = ways[k]()
        with unseen(): seen = [predict(n) for n in lengths]
        res[k] = [[len(s)-len({*s}), n-len({*s})] for n,s in zip(lengths, seen)]
    return res

# the part

def bench_exactness(rounds, worlds=(2, 3, 4), lengths=range(1, 41)):
    "Nothing is timed, so there are no rounds"
    names = [k for k in ways if there(k)]
    found,lost,failed = {k:[] for k in names},{k:[] for k in names},dict.fromkeys(names, 0)
    def run(world, job, lengths, names, to, **kw):
        for k,res in processes.launched(world, job, script=__file__, lengths=lengths, names=names, **kw).items(): to[k] += res
    for world in worlds:
        run(world, 'values', [*lengths], names, found)
        run(world, 'rows', [n for n in lengths if n>=world], names, lost)
        for n,k in ((n, k) for n in lengths if n<world for k in names):   # where one process fails, the others may wait for it
            try: run(world, 'rows', [n], [k], lost, seconds=20)
            except RuntimeError: failed[k] += 1
    span = f'{len(lengths)*len(worlds)} data sets of {lengths[0]} to {lengths[-1]} rows, in {worlds[0]} to {worlds[-1]} processes'
    def told(what, i, res, **more):
        show(f'{what}: {span}', '0', {k:extremes([o[i] for o in of_all]) for k,of_all in res.items()}, first='one process', span='least–most',
             right={k:sum(o[i]<1e-6 for o in of_all) for k,of_all in res.items()}, **more)
    for i,v in enumerate(values): told(f'How far the {v} is from that of one process', i, found)
    for i,v in enumerate(('more than once','not at all')): told(f'Rows that are predicted {v}', i, lost, failed=failed)

parts = dict(exactness=bench_exactness)

if __name__=='__main__': processes.main(*sys.argv[1:], jobs=dict(values=job_values, rows=job_rows))
