# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Everything at once, for notebooks: `from learnkit.all import *`"""

from .events import (
    Cancel as Cancel, CancelBackward as CancelBackward, CancelBackwardException as CancelBackwardException, CancelBatch
    as CancelBatch, CancelBatchException as CancelBatchException, CancelEpoch as CancelEpoch, CancelEpochException as
    CancelEpochException, CancelFit as CancelFit, CancelFitException as CancelFitException, CancelStep as CancelStep,
    CancelStepException as CancelStepException, CancelTrain as CancelTrain, CancelTrainException as
    CancelTrainException, CancelValid as CancelValid, CancelValidException as CancelValidException, CancelZeroGrad as
    CancelZeroGrad, CancelZeroGradException as CancelZeroGradException, Events as Events, cancel_types as cancel_types,
    cancelled as cancelled, event as event, nearest as nearest)
from .stateful import Stateful as Stateful
from .interrupts import interruptibly as interruptibly, uninterrupted as uninterrupted
from .callback import Callback as Callback, taken as taken
from .dispatcher import Dispatcher as Dispatcher
from .stream import BatchStream as BatchStream, Limited as Limited, loader_len as loader_len
from .loop import Loop as Loop, LoopSteps as LoopSteps, RunState as RunState, run_attrs as run_attrs
from .run import (
    Guard as Guard, NullLogger as NullLogger, begun as begun, null_logger as null_logger, runs_elsewhere as
    runs_elsewhere, thread_of as thread_of)
from .output import Output as Output, write_out as write_out
from .nested import (
    apply as apply, detuplify as detuplify, is_item_list as is_item_list, is_listy as is_listy, item_find as item_find,
    leaves as leaves, map_container as map_container, nested_reorder as nested_reorder, to_concat as to_concat, tuplify
    as tuplify)
from .check import (
    Made as Made, check_amount as check_amount, check_args as check_args, check_choice as check_choice, check_fraction
    as check_fraction, check_path as check_path, check_whole as check_whole)
from .extras import optional_import as optional_import, pyplot as pyplot
from .batch import (
    Inputs as Inputs, OnlyInputs as OnlyInputs, find_bs as find_bs, find_device as find_device, flatten_check as
    flatten_check, shapes as shapes, split_batch as split_batch, to_float as to_float, to_half as to_half, to_np as
    to_np)
from .device import default_device as default_device, to_cpu as to_cpu, to_device as to_device
from .process import (
    alone as alone, from_first as from_first, gather_objects as gather_objects, join_turns as join_turns, largest as
    largest, maybe_gather as maybe_gather, num_distrib as num_distrib, rank0_first as rank0_first, rank_distrib as
    rank_distrib, to_detach as to_detach, undivided as undivided)
from .launch import Launch as Launch, join_group as join_group, launched as launched, leave_group as leave_group
from .modules import (
    ParameterModule as ParameterModule, flatten_model as flatten_model, get_model as get_model, has_params as
    has_params, norm_bias_params as norm_bias_params, one_param as one_param, params as params, trainable_params as
    trainable_params)
from .seed import (
    check_numpy_state as check_numpy_state, check_torch_state as check_torch_state, derived_seed as derived_seed,
    get_random_states as get_random_states, no_random as no_random, plain_state as plain_state, set_random_states as
    set_random_states, set_seed as set_seed)
from .data import DataLoaders as DataLoaders, FuncLoader as FuncLoader, as_loader as as_loader
from .arrays import tensor as tensor
from .permutation import ComputedBatches as ComputedBatches, Permutation as Permutation
from .loaders import copy_loader as copy_loader, sequential_loader as sequential_loader
from .hypers import Hypers as Hypers, even_mults as even_mults, hyper_places as hyper_places
from .optimizer import OptimWrapper as OptimWrapper, create_optimizer as create_optimizer
from .named_optimizers import Adam as Adam, AdamW as AdamW, RMSprop as RMSprop, SGD as SGD
from .ownership import (
    can_take_params as can_take_params, describe_params as describe_params, optimizers_of as optimizers_of, param_ids as
    param_ids, unheld_params as unheld_params)
from .batch_weight import (
    BatchWeight as BatchWeight, count_targets as count_targets, n_items as n_items, weight_rule as weight_rule)
from .base_loss import (
    BaseLoss as BaseLoss, NoneReduce as NoneReduce, loss_activation as loss_activation, loss_decodes as loss_decodes,
    none_reduce as none_reduce)
from .losses import (
    BCELossFlat as BCELossFlat, BCEWithLogitsLossFlat as BCEWithLogitsLossFlat, CrossEntropyLossFlat as
    CrossEntropyLossFlat, FocalLoss as FocalLoss, FocalLossFlat as FocalLossFlat, L1LossFlat as L1LossFlat,
    LabelSmoothingCrossEntropy as LabelSmoothingCrossEntropy, LabelSmoothingCrossEntropyFlat as
    LabelSmoothingCrossEntropyFlat, MSELossFlat as MSELossFlat)
from .scalars import GroupSeries as GroupSeries, ScalarBuffer as ScalarBuffer, Series as Series
from .metric import (
    AvgLoss as AvgLoss, AvgMetric as AvgMetric, LossMetric as LossMetric, MeanMetric as MeanMetric, Metric as Metric,
    ValueMetric as ValueMetric)
from .smooth_loss import AvgSmoothLoss as AvgSmoothLoss
from .accum_metric import AccumMetric as AccumMetric, ActivationType as ActivationType
from .overlap import (
    Dice as Dice, DiceLoss as DiceLoss, DiceMulti as DiceMulti, JaccardCoeff as JaccardCoeff, JaccardCoeffMulti as
    JaccardCoeffMulti, Overlap as Overlap, foreground_acc as foreground_acc)
from .metrics import (
    Perplexity as Perplexity, accuracy as accuracy, accuracy_multi as accuracy_multi, error_rate as error_rate,
    exp_rmspe as exp_rmspe, mae as mae, mse as mse, msle as msle, perplexity as perplexity, rmse as rmse, top_k_accuracy
    as top_k_accuracy)
from .sklearn_metrics import (
    F1Score as F1Score, F1ScoreMulti as F1ScoreMulti, Precision as Precision, Recall as Recall, RocAuc as RocAuc,
    RocAucBinary as RocAucBinary, skm_to_fastai as skm_to_fastai, skm_to_learnkit as skm_to_learnkit)
from .metric_adapters import (
    AvgColumns as AvgColumns, ColumnMetric as ColumnMetric, TorchMetric as TorchMetric, columns as columns, mk_metric as
    mk_metric, mk_metrics as mk_metrics)
from .finite import all_finite as all_finite, weights_finite as weights_finite
from .more_metrics import (
    APScoreBinary as APScoreBinary, APScoreMulti as APScoreMulti, BalancedAccuracy as BalancedAccuracy, CohenKappa as
    CohenKappa, ExplainedVariance as ExplainedVariance, FBeta as FBeta, FBetaMulti as FBetaMulti, HammingLoss as
    HammingLoss, HammingLossMulti as HammingLossMulti, Jaccard as Jaccard, JaccardMulti as JaccardMulti, LossMetrics as
    LossMetrics, MatthewsCorrCoef as MatthewsCorrCoef, PearsonCorrCoef as PearsonCorrCoef, PrecisionMulti as
    PrecisionMulti, R2Score as R2Score, RecallMulti as RecallMulti, RocAucMulti as RocAucMulti, SpearmanCorrCoef as
    SpearmanCorrCoef)
from .history import History as History, format_time as format_time, format_value as format_value
from .meter import Meter as Meter, MeterCallback as MeterCallback
from .recorder_plots import RecorderPlots as RecorderPlots
from .recorder import Recorder as Recorder
from .nonfinite_check import NonFiniteCheck as NonFiniteCheck, NonFiniteLoss as NonFiniteLoss
from .text_table import TextTable as TextTable
from .display import LineDisplay as LineDisplay
from .terminal_bar import TerminalBar as TerminalBar
from .notebook_bar import NotebookBar as NotebookBar, show_style as show_style, style as style
from .progress import ProgressCallback as ProgressCallback, displays as displays
from .buffer import TensorBuffer as TensorBuffer
from .gather import NestedBuffer as NestedBuffer
from .agreement import Agreement as Agreement
from .gather_preds import FetchPredsCallback as FetchPredsCallback, GatherPredsCallback as GatherPredsCallback
from .model_output import shifts_labels as shifts_labels
from .train_eval import TrainEvalCallback as TrainEvalCallback
from .steps import Steps as Steps
from .share_batches import ShareBatches as ShareBatches
from .opt_steps import OptSteps as OptSteps
from .compat.fastai import (
    CastToTensor as CastToTensor, adapt as adapt, cast_tensor as cast_tensor, default_callbacks as default_callbacks)
from .duration import Time as Time
from .limit import (
    LimitBatches as LimitBatches, ShortEpochCallback as ShortEpochCallback, check_length as check_length, limit_from_env
    as limit_from_env, n_batches as n_batches)
from .train_for import TrainFor as TrainFor, as_duration as as_duration, as_epochs as as_epochs, max_idle as max_idle
from .distributed import DistributedTrainer as DistributedTrainer, GradientExchange as GradientExchange
from .learner import Learner as Learner
from .predictor import Predictor as Predictor
from .files import AtomicFile as AtomicFile, atomic as atomic, sync_folder as sync_folder, write_atomic as write_atomic
from .weights import (
    check_format as check_format, is_safetensors as is_safetensors, read_safetensors as read_safetensors, read_state as
    read_state, write_safetensors as write_safetensors)
from .save import write_state as write_state
from .layer_info import count_params as count_params, layer_info as layer_info, layers as layers
from .trial import unchanged as unchanged
from .docs import Doc as Doc, doc as doc
from .feed.overfit import OverfitBatches as OverfitBatches
from .feed.mapping import MapInputs as MapInputs, MapOutputs as MapOutputs
from .feed.move_modules import MoveModules as MoveModules, find_modules as find_modules
from .feed.seeded_loader import SeededLoader as SeededLoader
from .feed.item_indices import ItemIndices as ItemIndices, knows_indices as knows_indices
from .feed.steps_per_epoch import OngoingLoader as OngoingLoader, StepsPerEpoch as StepsPerEpoch
from .feed.prefetch import Prefetch as Prefetch
from .optim.schedule import (
    SchedCos as SchedCos, SchedExp as SchedExp, SchedLin as SchedLin, SchedNo as SchedNo, SchedPoly as SchedPoly,
    annealer as annealer, combine_scheds as combine_scheds, combined_cos as combined_cos, plot_hypers as plot_hypers,
    plot_scheds as plot_scheds, sched_cos as sched_cos, sched_exp as sched_exp, sched_lin as sched_lin, sched_no as
    sched_no)
from .optim.warmup import (
    Warmup as Warmup, inv_sqrt as inv_sqrt, warmup_const as warmup_const, warmup_cos as warmup_cos, warmup_lin as
    warmup_lin, warmup_poly as warmup_poly, wsd as wsd)
from .optim.param_scheduler import ParamScheduler as ParamScheduler, Scheduler as Scheduler
from .optim.policies import flat_cos as flat_cos, one_cycle as one_cycle, sgdr as sgdr
from .optim.splitters import (
    body_and_head as body_and_head, by_depth as by_depth, head_params as head_params, layer_decay as layer_decay)
from .optim.torch_scheduler import TorchScheduler as TorchScheduler
from .optim.lr_suggest import (
    SuggestionMethod as SuggestionMethod, minimum as minimum, slide as slide, steep as steep, valley as valley)
from .optim.lr_find import LRCurve as LRCurve, LRFinder as LRFinder
from .optim.accumulate import GradientAccumulation as GradientAccumulation
from .optim.clip import GradientClip as GradientClip
from .optim.micro_batch import MicroBatch as MicroBatch
from .optim.weight_average import WeightAverages as WeightAverages, ema_avg_fn as ema_avg_fn
from .optim.ema import EMACallback as EMACallback
from .optim.precision import AMPMode as AMPMode, MixedPrecision as MixedPrecision
from .optim.bn_freeze import BnFreeze as BnFreeze, bn_types as bn_types, set_bn_eval as set_bn_eval
from .optim.rnn import (
    ModelResetter as ModelResetter, RNNCallback as RNNCallback, RNNRegularizer as RNNRegularizer, rnn_cbs as rnn_cbs)
from .optim.mix_handler import MixHandler as MixHandler
from .optim.mixup import CutMix as CutMix, MixUp as MixUp
from .control.every import Every as Every, parse_every as parse_every
from .control.every_callback import EveryCallback as EveryCallback
from .control.validate_every import ValidateEvery as ValidateEvery
from .control.stopwatch import Stopwatch as Stopwatch, StopwatchCallback as StopwatchCallback
from .control.clock import Clock as Clock, Timestamp as Timestamp
from .control.direction import lower_better as lower_better, mk_comp as mk_comp
from .control.monitor import Monitor as Monitor
from .control.stop_after import StopAfter as StopAfter
from .control.tracker import OnBetter as OnBetter, TrackerCallback as TrackerCallback
from .control.early_stopping import (
    EarlyStoppingCallback as EarlyStoppingCallback, TerminateOnNaNCallback as TerminateOnNaNCallback, ThresholdStopper
    as ThresholdStopper)
from .control.save_model import SaveModelCallback as SaveModelCallback
from .control.plateau import ReduceLROnPlateau as ReduceLROnPlateau
from .control.filter import Filter as Filter, FilteredMethod as FilteredMethod
from .control.handlers import (
    OnCallback as OnCallback, WaitingHandler as WaitingHandler, marked_handlers as marked_handlers)
from .control.cycle import CheckpointEvents as CheckpointEvents, Cycles as Cycles
from .control.batch_events import BatchEvents as BatchEvents
from .observe.evaluator import Evaluator as Evaluator, EvaluatorColumn as EvaluatorColumn
from .observe.sanity import SanityCheck as SanityCheck
from .observe.check_events import CheckEvents as CheckEvents
from .observe.hooks import Hook as Hook, Hooks as Hooks, hook_output as hook_output, hook_outputs as hook_outputs
from .observe.hook_callback import HookCallback as HookCallback
from .observe.activation_stats import ActivationStats as ActivationStats, activation_stats as activation_stats
from .observe.outbox import (
    LogRow as LogRow, MediaRow as MediaRow, Outbox as Outbox, as_media as as_media, media_kind as media_kind)
from .observe.observer import LRMonitor as LRMonitor, LossMonitor as LossMonitor, Observer as Observer
from .observe.speed import RuntimeEstimator as RuntimeEstimator, SpeedMonitor as SpeedMonitor
from .observe.step_lines import StepLines as StepLines
from .observe.optimizer_monitor import OptimizerMonitor as OptimizerMonitor
from .observe.system import MemoryMonitor as MemoryMonitor, SystemMetrics as SystemMetrics
from .observe.memory_snapshot import MemorySnapshot as MemorySnapshot
from .observe.log_file import LogFile as LogFile
from .observe.loggers import FileLogger as FileLogger, JsonLogger as JsonLogger, MetricsLogger as MetricsLogger
from .observe.sender import Sender as Sender
from .observe.tensorboard import TensorBoardLogger as TensorBoardLogger, event_record as event_record
from .observe.services import Service as Service, ServiceLogger as ServiceLogger
from .observe.images import ImageLogger as ImageLogger, as_columns as as_columns, pictures as pictures
from .observe.csv_logger import CSVFile as CSVFile, CSVLogger as CSVLogger, parse_csv as parse_csv
from .observe.wandb_logger import WandbFile as WandbFile, WandbLogger as WandbLogger
from .observe.mlflow_logger import MLflowLogger as MLflowLogger
from .observe.bars import RichBar as RichBar, TqdmBar as TqdmBar
from .observe.show_graph import ShowGraphCallback as ShowGraphCallback
from .observe.action_timer import ActionTimer as ActionTimer
from .observe.trace import chrome_trace as chrome_trace
from .observe.profile import Profile as Profile
from .observe.profiler import ProfileCallback as ProfileCallback
from .observe.timer import TimerCallback as TimerCallback
from .observe.interpretation import Interpretation as Interpretation, vocab_of as vocab_of
from .observe.search import OptunaPruning as OptunaPruning, RayTuneReport as RayTuneReport
from .observe.classification import ClassificationInterpretation as ClassificationInterpretation
from .observe.mc_dropout import MCDropoutCallback as MCDropoutCallback
from .observe.tta import AugmentCallback as AugmentCallback
from .recovery.checkpoint_file import (
    checkpoint_info as checkpoint_info, list_checkpoints as list_checkpoints, newest_checkpoint as newest_checkpoint,
    read_checkpoint as read_checkpoint, remove_checkpoint as remove_checkpoint, train_iter_of as train_iter_of,
    write_checkpoint as write_checkpoint)
from .recovery.checkpoint import CheckpointCallback as CheckpointCallback
from .recovery.skip_nan import SkipNaN as SkipNaN
from .recovery.roll_back import RollBackOnNaN as RollBackOnNaN
from .recovery.replay_oom import ReplayOnOOM as ReplayOnOOM
from .recovery.signals import StopOnSignal as StopOnSignal
from .recovery.export import load_learner as load_learner, read_export as read_export
from .recovery.torch_export import ExportAtEnd as ExportAtEnd, torch_export as torch_export
from .recovery.close import RefuseRuns as RefuseRuns, close_all as close_all
from .compat.names import (
    CollectDataCallback as CollectDataCallback, before_batch_cb as before_batch_cb, replacing_yield as replacing_yield,
    total_params as total_params)
from .speed.compile_settings import kept_programs as kept_programs
from .speed.fused_step import FusedStep as FusedStep
from .speed.memory_format import ChannelsLast as ChannelsLast, set_memory_format as set_memory_format
from .speed.recompute import RecomputeActivations as RecomputeActivations
from .speed.virtual_shards import VirtualShards as VirtualShards
from .speed.fully_shard import FullyShard as FullyShard
from .speed.free_outputs import FreeOutputs as FreeOutputs
from functools import partial as partial
from pathlib import Path as Path
import torch as torch
from fastcore.basics import patch as patch
from fastcore.foundation import L as L
from fastcore.imports import noop as noop
from torch import nn as nn
from torch.nn import functional as _F
F = _F
