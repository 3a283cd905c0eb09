"""mica.optim: optimisers with torch's update rules, defaults and state_dict."""

from mica.optim import lr_scheduler as lr_scheduler, swa_utils as swa_utils
from mica.optim._adadelta import Adadelta as Adadelta
from mica.optim._adafactor import Adafactor as Adafactor
from mica.optim._adagrad import Adagrad as Adagrad
from mica.optim._adam import (
    Adam as Adam,
    AdamW as AdamW,
)
from mica.optim._adamax import Adamax as Adamax
from mica.optim._asgd import ASGD as ASGD
from mica.optim._lbfgs import LBFGS as LBFGS
from mica.optim._muon import Muon as Muon
from mica.optim._nadam import NAdam as NAdam
from mica.optim._optimizer import Optimizer as Optimizer, ParamsT as ParamsT, required as required
from mica.optim._radam import RAdam as RAdam
from mica.optim._rmsprop import RMSprop as RMSprop
from mica.optim._rprop import Rprop as Rprop
from mica.optim._sgd import SGD as SGD
from mica.optim._sparse_adam import SparseAdam as SparseAdam
from mica.optim._swapping import swap_in_optimizer_params_and_state as swap_in_optimizer_params_and_state
