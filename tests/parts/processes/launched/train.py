"A whole training script, with nothing in it about processes"
from sklearn.datasets import load_digits
from learnkit.all import *

def main(path='out'):
    torch.set_num_threads(1)
    set_seed(1)
    x,y = load_digits(return_X_y=True)
    dls = DataLoaders.from_tensors(x[:501]/16, y[:501], valid_pct=.2, seed=0, bs=32)
    model = nn.Sequential(nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(.2), nn.Linear(32, 10))
    learn = Learner(dls, model, CrossEntropyLossFlat(), metrics=accuracy, path=path,
                    cbs=[CheckpointCallback('5ba'), JsonLogger('log.jsonl'), EMACallback(.9)])
    learn.fit_one_cycle(3, 1e-2)
    learn.save('digits')

if __name__=='__main__': main()
