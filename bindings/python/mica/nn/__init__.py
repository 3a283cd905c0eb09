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
from mica.nn.modules.attention import MultiheadAttention as MultiheadAttention
from mica.nn.modules.batchnorm import BatchNorm1d, BatchNorm2d  # noqa: F401
from mica.nn.modules.bilinear import (
    Bilinear as Bilinear,
)
from mica.nn.modules.bilinear import (
    EmbeddingBag as EmbeddingBag,
)
from mica.nn.modules.bilinear import (
    LocalResponseNorm as LocalResponseNorm,
)
from mica.nn.modules.bilinear import (
    RReLU as RReLU,
)
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
from mica.nn.modules.dropout import (
    AlphaDropout as AlphaDropout,
)
from mica.nn.modules.dropout import Dropout, Dropout2d  # noqa: F401
from mica.nn.modules.dropout import (
    Dropout1d as Dropout1d,
)
from mica.nn.modules.dropout import (
    Dropout3d as Dropout3d,
)
from mica.nn.modules.dropout import (
    FeatureAlphaDropout as FeatureAlphaDropout,
)
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
from mica.nn.modules.pooling_nd import (
    AdaptiveAvgPool1d as AdaptiveAvgPool1d,
)
from mica.nn.modules.pooling_nd import (
    AdaptiveAvgPool3d as AdaptiveAvgPool3d,
)
from mica.nn.modules.pooling_nd import (
    AdaptiveMaxPool1d as AdaptiveMaxPool1d,
)
from mica.nn.modules.pooling_nd import (
    AdaptiveMaxPool2d as AdaptiveMaxPool2d,
)
from mica.nn.modules.pooling_nd import (
    AdaptiveMaxPool3d as AdaptiveMaxPool3d,
)
from mica.nn.modules.pooling_nd import (
    AvgPool3d as AvgPool3d,
)
from mica.nn.modules.pooling_nd import (
    MaxPool3d as MaxPool3d,
)
from mica.nn.modules.rnn import (
    GRU as GRU,
)
from mica.nn.modules.rnn import (
    LSTM as LSTM,
)
from mica.nn.modules.rnn import (
    RNN as RNN,
)
from mica.nn.modules.rnn import (
    GRUCell as GRUCell,
)
from mica.nn.modules.rnn import (
    LSTMCell as LSTMCell,
)
from mica.nn.modules.rnn import (
    RNNBase as RNNBase,
)
from mica.nn.modules.rnn import (
    RNNCell as RNNCell,
)
from mica.nn.modules.rnn import (
    RNNCellBase as RNNCellBase,
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
from mica.nn.modules.transformer import (
    Transformer as Transformer,
)
from mica.nn.modules.transformer import (
    TransformerDecoder as TransformerDecoder,
)
from mica.nn.modules.transformer import (
    TransformerDecoderLayer as TransformerDecoderLayer,
)
from mica.nn.modules.transformer import (
    TransformerEncoder as TransformerEncoder,
)
from mica.nn.modules.transformer import (
    TransformerEncoderLayer as TransformerEncoderLayer,
)
from mica.nn.modules.unpooling import (
    FractionalMaxPool2d as FractionalMaxPool2d,
)
from mica.nn.modules.unpooling import (
    FractionalMaxPool3d as FractionalMaxPool3d,
)
from mica.nn.modules.unpooling import (
    LPPool1d as LPPool1d,
)
from mica.nn.modules.unpooling import (
    LPPool2d as LPPool2d,
)
from mica.nn.modules.unpooling import (
    LPPool3d as LPPool3d,
)
from mica.nn.modules.unpooling import (
    MaxUnpool1d as MaxUnpool1d,
)
from mica.nn.modules.unpooling import (
    MaxUnpool2d as MaxUnpool2d,
)
from mica.nn.modules.unpooling import (
    MaxUnpool3d as MaxUnpool3d,
)
from mica.nn.modules.upsampling import (
    ChannelShuffle as ChannelShuffle,
)
from mica.nn.modules.upsampling import (
    PixelUnshuffle as PixelUnshuffle,
)
from mica.nn.modules.upsampling import (
    Upsample as Upsample,
)
from mica.nn.modules.upsampling import (
    UpsamplingBilinear2d as UpsamplingBilinear2d,
)
from mica.nn.modules.upsampling import (
    UpsamplingNearest2d as UpsamplingNearest2d,
)
from mica.nn.parameter import Buffer, Parameter  # noqa: F401
