"""Learn to read handwritten digits: train and save; then, in a fresh process, load, predict, and show the mistakes."""
import argparse, subprocess, sys
from pathlib import Path

import torch
from learnkit import Callback, DataLoaders, Learner, accuracy, set_seed
from learnkit.measure.losses import LabelSmoothingCrossEntropy
from torch import nn
from torch.nn import functional as F

try:
    import matplotlib
    from sklearn.datasets import load_digits
except ImportError as e: sys.exit(f"This example needs {e.name}: pip install matplotlib scikit-learn")
matplotlib.use('Agg')   # pictures go to files, not to a window
from matplotlib import pyplot as plt

out = Path(__file__).resolve().parent/'out'
torch.set_num_threads(1)   # with images this small, more threads only get in each other's way

def get_dls():
    "1797 images of 8×8 pixels: 1257 to train on, 180 to validate with, 360 held out that only `predict` looks at"
    digits = load_digits()
    x,y = torch.tensor(digits.images[:,None]/16, dtype=torch.float32),torch.tensor(digits.target)
    parts = torch.randperm(len(x), generator=torch.Generator().manual_seed(42)).split([1257, 180, 360])
    return DataLoaders.from_dsets(*[torch.utils.data.TensorDataset(x[i], y[i]) for i in parts], bs=32, path=out)

def conv(ni, nf, stride=1):
    return nn.Sequential(nn.Conv2d(ni, nf, 3, stride, padding=1, bias=False), nn.BatchNorm2d(nf), nn.ReLU())

def get_learner():
    model = nn.Sequential(conv(1,32), conv(32,32), conv(32,64,2), conv(64,128,2), nn.Flatten(), nn.Linear(128*2*2, 10))
    loss_func = LabelSmoothingCrossEntropy(.1)   # asks for 91 % certainty, no more, so it ends near 0.5, not at 0
    return Learner(get_dls(), model, loss_func, torch.optim.AdamW, metrics=accuracy)

class Wobble(Callback):
    "Turns, stretches and moves each training image a little, differently each time"
    run_valid = False
    def before_batch(self):
        how = torch.eye(2, 3) + .06*torch.randn(len(self.x), 2, 3)
        grid = F.affine_grid(how.to(self.x.device), self.x.shape, align_corners=False)
        self.learn.xb = (F.grid_sample(self.x, grid, align_corners=False),)

def train(n_epoch, seed):
    set_seed(seed)
    learn = get_learner()
    learn.fit_one_cycle(n_epoch, .01, wd=.01, cbs=Wobble)
    print('\nmodel:         ', learn.save('digits'))
    learn.recorder.plot_loss(show_epochs=True)
    plt.savefig(out/'learning_curve.png', dpi=120)
    print('learning curve:', out/'learning_curve.png')

def predict():
    learn = get_learner().load('digits')
    probs,targs,preds,losses = learn.get_preds(ds_idx=2, with_decoded=True, with_loss=True, act=lambda o: o.softmax(1))
    wrong = preds!=targs
    draw(learn.dls[2].dataset.tensors[0], probs, targs, preds, order=(losses + 100*wrong).argsort(descending=True))
    print('worst mistakes:', out/'mistakes.png')
    print(f'accuracy:       {1 - wrong.float().mean():.2%} of {len(targs)} held-out digits, {wrong.sum()} mistakes')

def draw(x, probs, targs, preds, order):
    fig,axs = plt.subplots(2, 6, figsize=(11, 5.5), layout='constrained')
    for i,ax in zip(order, axs.flat):
        ax.imshow(x[i,0], cmap='gray_r')
        color = 'black' if preds[i]==targs[i] else 'red'
        ax.set_title(f'is {targs[i]}, read as {preds[i]}\n({probs[i].max():.0%} sure)', color=color)
        ax.axis('off')
    fig.suptitle(f'The mistakes among {len(targs)} held-out digits, and the right answers that were the least sure\n')
    fig.savefig(out/'mistakes.png', dpi=120)

if __name__=='__main__':
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument('step', nargs='?', choices=['train', 'predict'], help='do just this; default: both')
    args.add_argument('--epochs', type=int, default=15)
    args.add_argument('--seed', type=int, default=42)
    args = args.parse_args()
    if args.step=='predict': predict()
    else: train(args.epochs, args.seed)
    if not args.step:
        print('\nThe rest in a fresh process, as on another day:', flush=True)
        sys.exit(subprocess.run([sys.executable, __file__, 'predict']).returncode)
