"The data and the model of the book: 1,797 handwritten digits of 8 by 8 pixels, and a network that reads them"
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def get_datasets():
    "The samples for training and for validation: 64 numbers from 0 to 1 each, and the digit that they show"
    x,y = load_digits(return_X_y=True)
    x,y = torch.tensor(x/16, dtype=torch.float32),torch.tensor(y)
    train,valid = torch.randperm(len(x), generator=torch.Generator().manual_seed(0)).split([1437, 360])
    return TensorDataset(x[train], y[train]),TensorDataset(x[valid], y[valid])

def get_loaders(bs=64):
    "A loader for training, in a new order each epoch, and one for validation"
    train,valid = get_datasets()
    return DataLoader(train, bs, shuffle=True),DataLoader(valid, 2*bs)

def get_model():
    "64 pixels in, a score for each of ten digits out; a fifth of the hidden units is dropped in training"
    return nn.Sequential(nn.Linear(64, 100), nn.ReLU(), nn.Dropout(.2), nn.Linear(100, 10))
