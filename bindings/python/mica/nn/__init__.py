"""mica.nn: modules, their parameters and their functional forms."""

from mica.nn import functional, init, utils  # noqa: F401
from mica.nn.modules.activation import (  # noqa: F401
    ELU,
    GELU,
    GLU,
    SELU,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softmin,
    Softplus,
    Softsign,
    Tanh,
    Tanhshrink,
)
from mica.nn.modules.batchnorm import BatchNorm1d, BatchNorm2d  # noqa: F401
from mica.nn.modules.container import (  # noqa: F401
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Sequential,
)
from mica.nn.modules.conv import (  # noqa: F401
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
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
from mica.nn.modules.normalization import GroupNorm, LayerNorm, RMSNorm  # noqa: F401
from mica.nn.modules.pooling import (  # noqa: F401
    AdaptiveAvgPool2d,
    AvgPool1d,
    AvgPool2d,
    MaxPool1d,
    MaxPool2d,
)
from mica.nn.modules.shapes import (  # noqa: F401
    PixelShuffle,
    ReflectionPad1d,
    ReflectionPad2d,
    ReplicationPad1d,
    ReplicationPad2d,
    ZeroPad1d,
    ZeroPad2d,
)
from mica.nn.modules.sparse import Embedding  # noqa: F401
from mica.nn.parameter import Buffer, Parameter  # noqa: F401
