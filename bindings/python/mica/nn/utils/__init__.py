"""mica.nn.utils: gradient clipping, flat parameter vectors, reparametrisation, sequences."""

from mica.nn.utils import parametrizations as parametrizations, parametrize as parametrize, rnn as rnn
from mica.nn.utils._gradients import (
    clip_grad_norm_ as clip_grad_norm_,
    clip_grad_value_ as clip_grad_value_,
    clip_grads_with_norm_ as clip_grads_with_norm_,
    get_total_norm as get_total_norm,
    parameters_to_vector as parameters_to_vector,
    vector_to_parameters as vector_to_parameters,
)
from mica.nn.utils._weight_norm import (
    remove_weight_norm as remove_weight_norm,
    weight_norm as weight_norm,
)
