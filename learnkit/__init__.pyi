# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""What `import learnkit` gives"""

from .train_eval import TrainEvalCallback as TrainEvalCallback
from .gather_preds import FetchPredsCallback as FetchPredsCallback, GatherPredsCallback as GatherPredsCallback
from .share_batches import ShareBatches as ShareBatches
from .callback import Callback as Callback, taken as taken
from .dispatcher import Dispatcher as Dispatcher
from .events import (
    Cancel as Cancel, CancelBackward as CancelBackward, CancelBackwardException as CancelBackwardException, CancelBatch
    as CancelBatch, CancelBatchException as CancelBatchException, CancelEpoch as CancelEpoch, CancelEpochException as
    CancelEpochException, CancelFit as CancelFit, CancelFitException as CancelFitException, CancelStep as CancelStep,
    CancelStepException as CancelStepException, CancelTrain as CancelTrain, CancelTrainException as
    CancelTrainException, CancelValid as CancelValid, CancelValidException as CancelValidException, CancelZeroGrad as
    CancelZeroGrad, CancelZeroGradException as CancelZeroGradException, Events as Events, cancel_types as cancel_types,
    cancelled as cancelled, event as event, nearest as nearest)
from .metric import (
    AvgLoss as AvgLoss, AvgMetric as AvgMetric, LossMetric as LossMetric, MeanMetric as MeanMetric, Metric as Metric,
    ValueMetric as ValueMetric)
from .metrics import (
    Perplexity as Perplexity, accuracy as accuracy, accuracy_multi as accuracy_multi, error_rate as error_rate,
    exp_rmspe as exp_rmspe, mae as mae, mse as mse, msle as msle, perplexity as perplexity, rmse as rmse, top_k_accuracy
    as top_k_accuracy)
from .sklearn_metrics import (
    F1Score as F1Score, F1ScoreMulti as F1ScoreMulti, Precision as Precision, Recall as Recall, RocAuc as RocAuc,
    RocAucBinary as RocAucBinary, skm_to_fastai as skm_to_fastai, skm_to_learnkit as skm_to_learnkit)
from .accum_metric import AccumMetric as AccumMetric
from .predictor import Predictor as Predictor
from .control.early_stopping import EarlyStoppingCallback as EarlyStoppingCallback
from .control.plateau import ReduceLROnPlateau as ReduceLROnPlateau
from .control.save_model import SaveModelCallback as SaveModelCallback
from .data import DataLoaders as DataLoaders
from .docs import doc as doc
from .learner import Learner as Learner
from .metric_adapters import TorchMetric as TorchMetric
from .metric_adapters import mk_metric as mk_metric
from .nonfinite_check import NonFiniteCheck as NonFiniteCheck
from .nonfinite_check import NonFiniteLoss as NonFiniteLoss
from .observe.csv_logger import CSVLogger as CSVLogger
from .progress import ProgressCallback as ProgressCallback
from .recorder import Recorder as Recorder
from .recovery.checkpoint import CheckpointCallback as CheckpointCallback
from .recovery.export import load_learner as load_learner
from .seed import set_seed as set_seed
from .smooth_loss import AvgSmoothLoss as AvgSmoothLoss
__version__: str
