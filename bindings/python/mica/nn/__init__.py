"""mica.nn: modules, their parameters and their functional forms."""

from mica.nn import functional, init, utils  # noqa: F401
from mica.nn.modules.activation import (  # noqa: F401
    ELU,
    GELU,
    Hardtanh,
    LeakyReLU,
    LogSoftmax,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)
from mica.nn.modules.batchnorm import BatchNorm1d, BatchNorm2d  # noqa: F401
from mica.nn.modules.container import (  # noqa: F401
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Sequential,
)
from mica.nn.modules.conv import Conv1d, Conv2d  # noqa: F401
from mica.nn.modules.dropout import Dropout, Dropout2d  # noqa: F401
from mica.nn.modules.linear import Flatten, Identity, Linear, Unflatten  # noqa: F401
from mica.nn.modules.loss import (  # noqa: F401
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from mica.nn.modules.module import Module  # noqa: F401
from mica.nn.modules.normalization import GroupNorm, LayerNorm  # noqa: F401
from mica.nn.modules.pooling import (  # noqa: F401
    AdaptiveAvgPool2d,
    AvgPool1d,
    AvgPool2d,
    MaxPool1d,
    MaxPool2d,
)
from mica.nn.modules.sparse import Embedding  # noqa: F401
from mica.nn.parameter import Buffer, Parameter  # noqa: F401
