"python ray_train.py WORKERS FOLDER: the training script as workers of Ray Train"
import sys
from pathlib import Path
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer

here = str(Path(__file__).parent)

def train(config):
    sys.path.insert(0, here)
    from train import main
    main(config['folder'] + '/out')

if __name__=='__main__':
    workers,folder = int(sys.argv[1]),sys.argv[2]
    TorchTrainer(train, train_loop_config=dict(folder=folder), scaling_config=ScalingConfig(num_workers=workers),
                 run_config=RunConfig(storage_path=folder)).fit()
