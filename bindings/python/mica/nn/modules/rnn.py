"""Recurrent networks: plain, LSTM and GRU, as networks and as single steps."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import mica
from mica._C import Tensor
from mica.nn import init
from mica.nn._operators import OPERATORS
from mica.nn._packed import PackedSequence
from mica.nn.modules.module import Module
from mica.nn.parameter import Parameter

T = TypeVar("T", bound=Module)
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _uniform(module: Module, hidden_size: int) -> None:
    bound = 1.0 / math.sqrt(hidden_size) if hidden_size > 0 else 0
    for weight in module.parameters():
        init.uniform_(weight, -bound, bound)


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """The tensor with the entries of a dimension in another order.

    Args:
        tensor (Tensor): `(*)`.
        permutation (Tensor): `(n,)`, int64: the places that the new order takes from.
        dim (int): The dimension. Default: 1.

    Returns:
        Tensor: A copy.

    Example:
        >>> from mica.nn.modules.rnn import apply_permutation
        >>> apply_permutation(mica.tensor([[1, 2, 3]]), mica.tensor([2, 0, 1]))
        tensor([[3, 1, 2]])
    """
    return tensor.index_select(dim, permutation)


class RNNBase(Module):
    """What `RNN`, `LSTM` and `GRU` share: their weights, by name, and the checks of shapes.

    As `torch.nn.RNNBase`. It has no `forward`; use one of the three, or a subclass.

    Args:
        mode (str): `LSTM`, `GRU`, `RNN_TANH` or `RNN_RELU`: how many gates the weights hold.
        input_size (int): Features of each step of the input.
        hidden_size (int): Features of the hidden state.
        num_layers (int): Layers, each running over the outputs of the one before. Default: 1.
        bias (bool): Learn biases, of the input and of the state. Default: True.
        batch_first (bool): Input and output are `(N, L, *)` instead of `(L, N, *)`; states are not. Default:
            False.
        dropout (float): Probability, in [0, 1], of zeroing an output of any layer but the last, in training.
            Default: 0.
        bidirectional (bool): Let a second set of weights run from the end to the start. Default: False.
        proj_size (int): Features of the hidden state of an `LSTM` after a learned projection, below
            `hidden_size`; 0 for no projection. Default: 0.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Raises:
        ValueError: The mode is unknown, or a size or probability is out of its range.
        TypeError: `hidden_size` or `num_layers` is no integer.

    Example:
        >>> isinstance(mica.nn.GRU(2, 3), mica.nn.RNNBase)
        True
        >>> mica.nn.RNNBase("GRU", 2, 3).weight_ih_l0.shape
        mica.Size([9, 2])
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if mode not in _GATES:
            raise ValueError(f"The mode ({mode}) is unknown; expected one of {', '.join(_GATES)}.")
        try:
            dropout = float("nan") if isinstance(dropout, bool) else float(dropout)
        except TypeError:
            dropout = float("nan")
        if not 0 <= dropout <= 1:
            raise ValueError(f"The dropout probability has to be between 0 and 1, but got {dropout}.")
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=2,
            )
        for name, size in (("hidden_size", hidden_size), ("num_layers", num_layers)):
            if not isinstance(size, int):
                raise TypeError(f"`{name}` is an integer; this one is of type ({type(size).__name__}).")
        if hidden_size <= 0 or num_layers <= 0:
            raise ValueError(
                f"Hidden size ({hidden_size}) and number of layers ({num_layers}) must be positive."
            )
        if not 0 <= proj_size < hidden_size:
            raise ValueError(
                f"proj_size ({proj_size}) must be 0 (no projection) or positive and smaller than the hidden size "
                f"({hidden_size})."
            )
        if proj_size and mode != "LSTM":
            raise ValueError(
                f"proj_size argument is only supported for LSTM, not RNN or GRU; it is ({proj_size}) for {mode}."
            )
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._flat_weights_names: list[str] = []
        self._all_weights: list[list[str]] = []  # the names, for each layer and direction
        directions = 2 if bidirectional else 1
        rows = _GATES[mode] * hidden_size
        for layer in range(num_layers):
            columns = input_size if layer == 0 else self._state_size * directions
            for suffix in ("", "_reverse")[:directions]:
                shapes: dict[str, tuple[int, ...]]
                shapes = {"weight_ih": (rows, columns), "weight_hh": (rows, self._state_size)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes |= {"weight_hr": (proj_size, hidden_size)}
                names = [f"{name}_l{layer}{suffix}" for name in shapes]
                for name, shape in zip(names, shapes.values()):
                    setattr(self, name, Parameter(mica.empty(shape, device=device, dtype=dtype)))
                self._flat_weights_names += names
                self._all_weights.append(names)
        self.reset_parameters()

    @property
    def _state_size(self) -> int:
        """The hidden state's, which a projection makes smaller than the cell state's."""
        return self.proj_size or self.hidden_size

    @property
    def _flat_weights(self) -> list[Parameter]:
        given: list[Parameter] | None = self.__dict__.get("_given_weights")
        return [getattr(self, name) for name in self._flat_weights_names] if given is None else given

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Parameter]) -> None:
        """Lets other tensors run than those under the names, until one of these is set."""
        self.__dict__["_given_weights"] = list(weights)

    def __getstate__(self) -> dict[str, Any]:
        """With the list of weights, which torch's networks keep and ask for when a file is loaded."""
        return {**self.__dict__, "_flat_weights": self._flat_weights}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Without it: here the names say which weights run."""
        super().__setstate__({name: value for name, value in state.items() if name != "_flat_weights"})

    def __setattr__(self, name: str, value: Any) -> None:
        if "_given_weights" in self.__dict__ and name in self._flat_weights_names:
            del self.__dict__["_given_weights"]
        super().__setattr__(name, value)

    def _apply(self: T, convert: Callable[[Tensor], Tensor], recurse: bool = True) -> T:
        self.__dict__.pop("_given_weights", None)
        return super()._apply(convert, recurse)

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The weights of each layer and direction, as one list of parameters each."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Does nothing: the weights need no special place here."""

    def reset_parameters(self) -> None:
        """Draws all weights and biases uniformly from `[-k, k]` with `k = 1 / sqrt(hidden_size)`."""
        _uniform(self, self.hidden_size)

    def _check_input(self, input: Tensor, dims: tuple[int, ...]) -> None:
        if input.ndim not in dims:
            raise ValueError(
                f"{type(self).__name__}: Expected input to be {' or '.join(f'{n}D' for n in dims)}, got {input.ndim}D instead."
            )
        first = self._flat_weights[0]
        if input.dtype != first.dtype and not mica.is_autocast_enabled(input.device.type):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({first.dtype}). "
                f"Convert input: input.to({first.dtype}), or convert model: model.to({input.dtype})."
            )
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}."
            )

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raises where the input does not fit.

        Args:
            input (Tensor): 2 dimensions if packed, else 2 or 3, the last of size `input_size`.
            batch_sizes (Tensor or None): Of a packed sequence; None for a plain tensor.

        Raises:
            ValueError: The input has other dimensions or another dtype than the weights.
            RuntimeError: The input has other features.
        """
        self._check_input(input, (2,) if batch_sizes is not None else (2, 3))

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of a hidden state for this input.

        Args:
            input (Tensor): A batch of 3 dimensions, or the data of a packed sequence.
            batch_sizes (Tensor or None): Of a packed sequence; None for a plain tensor.

        Returns:
            tuple of 3 int: Layers times directions, sequences, features.
        """
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.size(0 if self.batch_first else 1)
        return self.num_layers * (2 if self.bidirectional else 1), batch, self._state_size

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raises where a state has another shape than expected.

        Args:
            hx (Tensor): The state.
            expected_hidden_size (tuple of 3 int): As `get_expected_hidden_size` gives it.
            msg (str): The error's text, with two places for the expected and the found shape.

        Raises:
            RuntimeError: The shapes differ.
        """
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(tuple(expected_hidden_size), list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raises where the input or the first state does not fit.

        Args:
            input (Tensor): As for `check_input`.
            hidden (Tensor): The first state, with a batch.
            batch_sizes (Tensor or None): Of a packed sequence; None for a plain tensor.

        Raises:
            ValueError: The input has other dimensions or another dtype than the weights.
            RuntimeError: The input has other features, or the state another shape.
        """
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The state with its batch in another order.

        Args:
            hx (Tensor): `(D * num_layers, N, H)`.
            permutation (Tensor or None): `(N,)`: the places that the new order takes from; None for the same
                order.

        Returns:
            Tensor: Of the shape of `hx`.
        """
        return hx if permutation is None else apply_permutation(hx, permutation)

    def _state(self, state: Tensor | None, batch: int, like: Tensor, batched: bool, size: int) -> Tensor:
        """A first state as (layers and directions, batch, size): zeros where none is given."""
        count = self.num_layers * (2 if self.bidirectional else 1)
        if state is None:
            return mica.zeros((count, batch, size), dtype=like.dtype, device=like.device)
        return state if batched else state.unsqueeze(1)

    def _check_states(self, given: list[Tensor | None], batch: int, batched: bool, sizes: list[int]) -> None:
        """Raises where a first state has other dimensions or another shape than the input asks."""
        count = self.num_layers * (2 if self.bidirectional else 1)
        named = "hx and cx" if len(given) == 2 else "hx"
        if any(s is not None and s.ndim != (3 if batched else 2) for s in given):
            asked = "batched 3-D input" if batched else "unbatched 2-D input"
            got = ", ".join("None" if s is None else f"{s.ndim}-D" for s in given)
            got = f"({got}) tensors" if len(given) == 2 else f"{got} tensor"
            raise RuntimeError(f"For {asked}, {named} should also be {3 if batched else 2}-D but got {got}.")
        for i, (state, size) in enumerate(zip(given, sizes)):
            if state is not None:
                place = f"hidden[{i}]" if len(given) == 2 else "hidden"
                whole = state if batched else state.unsqueeze(1)
                self.check_hidden_size(whole, (count, batch, size), f"Expected {place} size {{}}, got {{}}.")

    def _run(self, input: Any, states: Any) -> tuple[Any, list[Tensor]]:
        """The output and the last states, from a tensor or a packed sequence."""
        kinds = 2 if self.mode == "LSTM" else 1
        given = list(states) if states is not None and kinds == 2 else [states] * kinds
        sizes = [self._state_size, self.hidden_size][:kinds]
        options = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        operator = OPERATORS[self.mode.lower()]
        if isinstance(input, PackedSequence):
            self._check_input(input.data, (2,))
            batch = int(input.batch_sizes[0])
            self._check_states(given, batch, True, sizes)
            first = [self._state(s, batch, input.data, True, n) for s, n in zip(given, sizes)]
            if input.sorted_indices is not None:
                first = [s.index_select(1, input.sorted_indices) for s in first]
            hx = first if kinds == 2 else first[0]
            data, *last = operator(input.data, input.batch_sizes, hx, self._flat_weights, *options)
            if input.unsorted_indices is not None:
                last = [s.index_select(1, input.unsorted_indices) for s in last]
            packed = PackedSequence(data, input.batch_sizes, input.sorted_indices, input.unsorted_indices)
            return packed, last
        self._check_input(input, (2, 3))
        batched = input.ndim == 3
        time = 1 if self.batch_first else 0
        x = input if batched else input.unsqueeze(1 - time)
        self._check_states(given, x.size(1 - time), batched, sizes)
        first = [self._state(s, x.size(1 - time), x, batched, n) for s, n in zip(given, sizes)]
        hx = first if kinds == 2 else first[0]
        output, *last = operator(x, hx, self._flat_weights, *options, self.batch_first)
        if not batched:
            output, last = output.squeeze(1 - time), [s.squeeze(1) for s in last]
        return output, last

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        for name, usual in (
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0.0),
            ("bidirectional", False),
        ):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text


class RNN(RNNBase):
    """A plain recurrent network: `h' = tanh(W_ih @ x + b_ih + W_hh @ h + b_hh)` from step to step, in layers.

    As `torch.nn.RNN`. Weights and biases start uniform in `±1/sqrt(hidden_size)`.

    Args:
        input_size (int): Features of each step of the input.
        hidden_size (int): Features of the hidden state.
        num_layers (int): Layers, each running over the outputs of the one before. Default: 1.
        nonlinearity (str): `tanh` or `relu`. Default: `tanh`.
        bias (bool): Learn biases, of the input and of the state. Default: True.
        batch_first (bool): Input and output are `(N, L, *)` instead of `(L, N, *)`; states are not. Default:
            False.
        dropout (float): Probability, in [0, 1], of zeroing an output of any layer but the last, in training.
            Default: 0.
        bidirectional (bool): Let a second set of weights run from the end to the start. Default: False.
        proj_size (int): 0; only `LSTM` has projections. Default: 0.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Attributes:
        weight_ih_l{k} (Parameter): Of layer `k` for its input, `(hidden_size, input_size)`; for `k > 0`
            `(hidden_size, D * hidden_size)`. The backward direction has `_reverse` at the end of its names.
        weight_hh_l{k} (Parameter): Of layer `k` for its state, `(hidden_size, hidden_size)`.
        bias_ih_l{k} (Parameter): `(hidden_size,)`.
        bias_hh_l{k} (Parameter): `(hidden_size,)`.

    Shape:
        With `D` 2 if bidirectional, else 1:

        - Input: `(L, N, input_size)`, `(N, L, input_size)` if `batch_first`, `(L, input_size)` without a
          batch, or a packed sequence (`mica.nn.utils.rnn.pack_padded_sequence`).
        - First state, the call's second argument `hx`: `(D * num_layers, N, hidden_size)`, without `N` where the
          input is; zeros if left out.
        - Output: a pair: the last layer's states at all steps, `(L, N, D * hidden_size)`, the directions one
          after the other (packed, where the input is); and the last state, shaped as the first.

    Raises:
        TypeError: `hidden_size` or `num_layers` is no integer.
        ValueError: `hidden_size` or `num_layers` is not positive, `dropout` is outside of [0, 1], `nonlinearity`
            is unknown, or `proj_size` is not 0; or at the call the input has other dimensions or another dtype
            than the weights.
        RuntimeError: At the call, the input has other features, or a state another shape.

    Example:
        >>> rnn = mica.nn.RNN(input_size=3, hidden_size=5, num_layers=2)
        >>> output, last = rnn(mica.ones(7, 4, 3))
        >>> output.shape, last.shape
        (mica.Size([7, 4, 5]), mica.Size([2, 4, 5]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if proj_size:
            raise ValueError(
                f"proj_size argument is only supported for LSTM, not RNN or GRU; it is ({proj_size}) for RNN."
            )
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity ({nonlinearity}); expected tanh or relu.")
        self.nonlinearity = nonlinearity
        super().__init__(
            f"RNN_{nonlinearity.upper()}",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
        )

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """Runs the layers over whole sequences.

        Args:
            input (Tensor or PackedSequence): `(L, N, input_size)`, `(N, L, input_size)` if `batch_first`, or
                `(L, input_size)`.
            hx (Tensor, optional): The first state, `(D * num_layers, N, hidden_size)`, with `D` 2 if bidirectional, else 1. Default: None, zeros.

        Returns:
            tuple: The last layer's states at all steps, and the last state.
        """
        output, last = self._run(input, hx)
        return output, last[0]


class GRU(RNNBase):
    """Gated recurrent units, in layers: `h' = (1 - z) * n + z * h` from step to step.

    As `torch.nn.GRU`. Each step computes the reset gate `r = sigmoid(W_ir @ x + b_ir + W_hr @ h + b_hr)`, the
    update gate `z` likewise, and `n = tanh(W_in @ x + b_in + r * (W_hn @ h + b_hn))`.

    Args:
        *args, **kwargs: The arguments that follow, in this order or by name.
        input_size (int): Features of each step of the input.
        hidden_size (int): Features of the hidden state.
        num_layers (int): Layers, each running over the outputs of the one before. Default: 1.
        bias (bool): Learn biases, of the input and of the state. Default: True.
        batch_first (bool): Input and output are `(N, L, *)` instead of `(L, N, *)`; states are not. Default:
            False.
        dropout (float): Probability, in [0, 1], of zeroing an output of any layer but the last, in training.
            Default: 0.
        bidirectional (bool): Let a second set of weights run from the end to the start. Default: False.
        proj_size (int): 0; only `LSTM` has projections. Default: 0.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Attributes:
        weight_ih_l{k} (Parameter): Of layer `k` for its input, `(3 * hidden_size, input_size)`; for `k > 0`
            `(3 * hidden_size, D * hidden_size)`. The backward direction has `_reverse` at the end of its
            names.
        weight_hh_l{k} (Parameter): Of layer `k` for its state, `(3 * hidden_size, hidden_size)`.
        bias_ih_l{k} (Parameter): `(3 * hidden_size,)`.
        bias_hh_l{k} (Parameter): `(3 * hidden_size,)`.

    The rows of the weights and biases are those of `r`, `z` and `n`, in this order. The values start uniform
    in `±1/sqrt(hidden_size)`.

    Shape:
        With `D` 2 if bidirectional, else 1:

        - Input: `(L, N, input_size)`, `(N, L, input_size)` if `batch_first`, `(L, input_size)` without a
          batch, or a packed sequence (`mica.nn.utils.rnn.pack_padded_sequence`).
        - First state, the call's second argument `hx`: `(D * num_layers, N, hidden_size)`, without `N` where the
          input is; zeros if left out.
        - Output: a pair: the last layer's states at all steps, `(L, N, D * hidden_size)`, the directions one
          after the other (packed, where the input is); and the last state, shaped as the first.

    Raises:
        TypeError: `hidden_size` or `num_layers` is no integer.
        ValueError: `hidden_size` or `num_layers` is not positive, `dropout` is outside of [0, 1], or `proj_size`
            is not 0; or at the call the input has other dimensions or another dtype than the weights.
        RuntimeError: At the call, the input has other features, or a state another shape.

    Example:
        >>> gru = mica.nn.GRU(3, 5, bidirectional=True, batch_first=True)
        >>> output, last = gru(mica.ones(4, 7, 3))
        >>> output.shape, last.shape
        (mica.Size([4, 7, 10]), mica.Size([2, 4, 5]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)

    forward = RNN.forward  # one state, as there


class LSTM(RNNBase):
    """Long short-term memory, in layers: `c' = f * c + i * g` and `h' = o * tanh(c')` from step to step.

    As `torch.nn.LSTM`. Each step computes the gates `i`, `f` and `o` as
    `sigmoid(W_i @ x + b_i + W_h @ h + b_h)`, each with rows of its own, and the candidate `g` likewise with
    `tanh`. With `proj_size` the hidden state is `W_hr @ h'`.

    Args:
        *args, **kwargs: The arguments that follow, in this order or by name.
        input_size (int): Features of each step of the input.
        hidden_size (int): Features of the hidden state.
        num_layers (int): Layers, each running over the outputs of the one before. Default: 1.
        bias (bool): Learn biases, of the input and of the state. Default: True.
        batch_first (bool): Input and output are `(N, L, *)` instead of `(L, N, *)`; states are not. Default:
            False.
        dropout (float): Probability, in [0, 1], of zeroing an output of any layer but the last, in training.
            Default: 0.
        bidirectional (bool): Let a second set of weights run from the end to the start. Default: False.
        proj_size (int): Features of the hidden state after a learned projection, below `hidden_size`; 0 for
            no projection. Default: 0.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Attributes:
        weight_ih_l{k} (Parameter): Of layer `k` for its input, `(4 * hidden_size, input_size)`; for `k > 0`
            `(4 * hidden_size, D * H)`. The backward direction has `_reverse` at the end of its names.
        weight_hh_l{k} (Parameter): Of layer `k` for its state, `(4 * hidden_size, H)`.
        bias_ih_l{k} (Parameter): `(4 * hidden_size,)`.
        bias_hh_l{k} (Parameter): `(4 * hidden_size,)`.
        weight_hr_l{k} (Parameter): The projection, `(proj_size, hidden_size)`; only with `proj_size`.

    The rows of the weights and biases are those of `i`, `f`, `g` and `o`, in this order. The values start
    uniform in `±1/sqrt(hidden_size)`.

    Shape:
        With `D` 2 if bidirectional, else 1, and `H` the features of the hidden state: `proj_size`, or
        `hidden_size` without a projection:

        - Input: `(L, N, input_size)`, `(N, L, input_size)` if `batch_first`, `(L, input_size)` without a
          batch, or a packed sequence (`mica.nn.utils.rnn.pack_padded_sequence`).
        - First state, the call's second argument `hx`: the pair `h` `(D * num_layers, N, H)` and `c`
          `(D * num_layers, N, hidden_size)`, without `N` where the input is; zeros if left out.
        - Output: a pair: the last layer's states at all steps, `(L, N, D * H)`, the directions one after the
          other (packed, where the input is); and the last state, shaped as the first.

    Raises:
        TypeError: `hidden_size` or `num_layers` is no integer.
        ValueError: `hidden_size` or `num_layers` is not positive, `dropout` is outside of [0, 1], or `proj_size`
            is not below `hidden_size`; or at the call the input has other dimensions or another dtype than the
            weights.
        RuntimeError: At the call, the input has other features, or a state another shape.

    Example:
        >>> lstm = mica.nn.LSTM(3, 5, num_layers=2)
        >>> output, (h, c) = lstm(mica.ones(7, 4, 3))
        >>> output.shape, h.shape, c.shape
        (mica.Size([7, 4, 5]), mica.Size([2, 4, 5]), mica.Size([2, 4, 5]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of a cell state for this input, which no projection makes smaller.

        Args:
            input (Tensor): A batch of 3 dimensions, or the data of a packed sequence.
            batch_sizes (Tensor or None): Of a packed sequence; None for a plain tensor.

        Returns:
            tuple of 3 int: Layers times directions, sequences, `hidden_size`.
        """
        return (*self.get_expected_hidden_size(input, batch_sizes)[:2], self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raises where the input, the hidden state or the cell state does not fit.

        Args:
            input (Tensor): As for `check_input`.
            hidden (tuple of 2 Tensor): Hidden and cell state, with a batch.
            batch_sizes (Tensor or None): Of a packed sequence; None for a plain tensor.

        Raises:
            ValueError: The input has other dimensions or another dtype than the weights.
            RuntimeError: The input has other features, or a state another shape.
        """
        self.check_input(input, batch_sizes)
        sizes = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden[0], sizes, "Expected hidden[0] size {}, got {}")
        sizes = self.get_expected_cell_size(input, batch_sizes)
        self.check_hidden_size(hidden[1], sizes, "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The two states with their batch in another order.

        Args:
            hx (tuple of 2 Tensor): Hidden and cell state, `(D * num_layers, N, *)`.
            permutation (Tensor or None): `(N,)`: the places that the new order takes from; None for the same
                order.

        Returns:
            tuple of 2 Tensor: Of the shapes of `hx`.
        """
        if permutation is None:
            return hx
        return apply_permutation(hx[0], permutation), apply_permutation(hx[1], permutation)

    def forward(
        self, input: Any, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Any, tuple[Tensor, Tensor]]:
        """Runs the layers over whole sequences.

        Args:
            input (Tensor or PackedSequence): `(L, N, input_size)`, `(N, L, input_size)` if `batch_first`, or
                `(L, input_size)`.
            hx (tuple of 2 Tensor, optional): The first states, hidden and cell, `(D * num_layers, N, hidden_size)` each, with `D` 2 if
                bidirectional, else 1; the hidden one has `proj_size` features where that is given. Default: None, zeros.

        Returns:
            tuple: The last layer's states at all steps, and the last states, hidden and cell.
        """
        output, last = self._run(input, hx)
        return output, (last[0], last[1])


class RNNCellBase(Module):
    """What `RNNCell`, `LSTMCell` and `GRUCell` share: their weights.

    As `torch.nn.RNNCellBase`. It has no `forward`; use one of the three, or a subclass.

    Args:
        input_size (int): Features of the input.
        hidden_size (int): Features of the state.
        bias (bool): Learn biases, of the input and of the state.
        num_chunks (int): Gates, whose weights stand below each other: 1, 3 for a GRU, 4 for an LSTM.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Attributes:
        weight_ih (Parameter): `(num_chunks * hidden_size, input_size)`.
        weight_hh (Parameter): `(num_chunks * hidden_size, hidden_size)`.
        bias_ih (Parameter or None): `(num_chunks * hidden_size,)`.
        bias_hh (Parameter or None): `(num_chunks * hidden_size,)`.

    Example:
        >>> isinstance(mica.nn.GRUCell(2, 3), mica.nn.RNNCellBase)
        True
        >>> mica.nn.RNNCellBase(2, 3, True, num_chunks=4).weight_ih.shape
        mica.Size([12, 2])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(mica.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(mica.empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            made = Parameter(mica.empty(rows, device=device, dtype=dtype)) if bias else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights and biases uniformly from `[-k, k]` with `k = 1 / sqrt(hidden_size)`."""
        _uniform(self, self.hidden_size)

    def _step(self, name: str, input: Tensor, states: list[Tensor | None]) -> Any:
        if input.ndim not in (1, 2):
            raise ValueError(f"Number of dimensions ({input.ndim}) of `input` is not 1 or 2.")
        batched = input.ndim == 2
        x = input if batched else input.unsqueeze(0)
        if x.size(1) != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {x.size(1)}, expected {self.input_size}."
            )
        full = []
        for state in states:
            if state is None:
                state = mica.zeros((x.size(0), self.hidden_size), dtype=x.dtype, device=x.device)
            elif state.ndim not in (1, 2):
                raise ValueError(f"Number of dimensions ({state.ndim}) of a state is not 1 or 2.")
            full.append(state if state.ndim == 2 else state.unsqueeze(0))
            if full[-1].shape != (x.size(0), self.hidden_size):
                raise RuntimeError(
                    f"Input batch size {x.size(0)} doesn't match hidden batch size {full[-1].size(0)}, or the state has "
                    f"inconsistent hidden_size: its shape is {tuple(full[-1].shape)}, and hidden_size "
                    f"({self.hidden_size})."
                )
        hx = full if name == "lstm_cell" else full[0]
        result = OPERATORS[name](x, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if batched:
            return result
        return tuple(r.squeeze(0) for r in result) if name == "lstm_cell" else result.squeeze(0)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(RNNCellBase):
    """One step of a plain recurrent network: `h' = tanh(W_ih @ x + b_ih + W_hh @ h + b_hh)`.

    As `torch.nn.RNNCell`; `mica.nn.RNN` runs over whole sequences in one call.

    Args:
        input_size (int): Features of the input.
        hidden_size (int): Features of the state.
        bias (bool): Learn biases, of the input and of the state. Default: True.
        nonlinearity (str): `tanh` or `relu`. Default: `tanh`.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Attributes:
        weight_ih (Parameter): `(hidden_size, input_size)`.
        weight_hh (Parameter): `(hidden_size, hidden_size)`.
        bias_ih (Parameter or None): `(hidden_size,)`.
        bias_hh (Parameter or None): `(hidden_size,)`.

    Shape:
        - Input: `(N, input_size)` or `(input_size,)`.
        - State, the call's second argument `hx`: `(N, hidden_size)` or `(hidden_size,)`; zeros if left out.
        - Output: the next state, shaped alike.

    Raises:
        ValueError: At the call, input or state has not 1 or 2 dimensions.
        RuntimeError: At the call, the input has other features, or the state another shape; or `nonlinearity`
            is unknown.

    Example:
        >>> cell, h = mica.nn.RNNCell(3, 5), None
        >>> for x in mica.ones(7, 4, 3):
        ...     h = cell(x, h)
        >>> h.shape
        mica.Size([4, 5])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def extra_repr(self) -> str:
        shown = "" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}"
        return super().extra_repr() + shown

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Takes one step.

        Args:
            input (Tensor): `(N, input_size)` or `(input_size,)`.
            hx (Tensor, optional): The state, `(N, hidden_size)` or `(hidden_size,)`. Default: None, zeros.

        Returns:
            Tensor: The next state, shaped alike.
        """
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity ({self.nonlinearity}); expected tanh or relu.")
        return self._step(f"rnn_{self.nonlinearity}_cell", input, [hx])


class GRUCell(RNNCellBase):
    """One step of gated recurrent units: `h' = (1 - z) * n + z * h`.

    As `torch.nn.GRUCell`; `mica.nn.GRU` has the formulas, and runs over whole sequences in one call.

    Args:
        input_size (int): Features of the input.
        hidden_size (int): Features of the state.
        bias (bool): Learn biases, of the input and of the state. Default: True.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Attributes:
        weight_ih (Parameter): `(3 * hidden_size, input_size)`, the rows of the reset gate, the update gate
            and the candidate, in this order.
        weight_hh (Parameter): `(3 * hidden_size, hidden_size)`.
        bias_ih (Parameter or None): `(3 * hidden_size,)`.
        bias_hh (Parameter or None): `(3 * hidden_size,)`.

    Shape:
        - Input: `(N, input_size)` or `(input_size,)`.
        - State, the call's second argument `hx`: `(N, hidden_size)` or `(hidden_size,)`; zeros if left out.
        - Output: the next state, shaped alike.

    Raises:
        ValueError: At the call, input or state has not 1 or 2 dimensions.
        RuntimeError: At the call, the input has other features, or the state another shape.

    Example:
        >>> cell, h = mica.nn.GRUCell(3, 5), None
        >>> for x in mica.ones(7, 4, 3):
        ...     h = cell(x, h)
        >>> h.shape
        mica.Size([4, 5])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Takes one step.

        Args:
            input (Tensor): `(N, input_size)` or `(input_size,)`.
            hx (Tensor, optional): The state, `(N, hidden_size)` or `(hidden_size,)`. Default: None, zeros.

        Returns:
            Tensor: The next state, shaped alike.
        """
        return self._step("gru_cell", input, [hx])


class LSTMCell(RNNCellBase):
    """One step of long short-term memory: `c' = f * c + i * g` and `h' = o * tanh(c')`.

    As `torch.nn.LSTMCell`; `mica.nn.LSTM` has the formulas, and runs over whole sequences in one call.

    Args:
        input_size (int): Features of the input.
        hidden_size (int): Features of the state.
        bias (bool): Learn biases, of the input and of the state. Default: True.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Attributes:
        weight_ih (Parameter): `(4 * hidden_size, input_size)`, the rows of `i`, `f`, `g` and `o`, in this
            order.
        weight_hh (Parameter): `(4 * hidden_size, hidden_size)`.
        bias_ih (Parameter or None): `(4 * hidden_size,)`.
        bias_hh (Parameter or None): `(4 * hidden_size,)`.

    Shape:
        - Input: `(N, input_size)` or `(input_size,)`.
        - State, the call's second argument `hx`: the pair of hidden and cell state, each `(N, hidden_size)` or
          `(hidden_size,)`; zeros if left out.
        - Output: the next state, shaped alike.

    Raises:
        ValueError: At the call, input or state has not 1 or 2 dimensions.
        RuntimeError: At the call, the input has other features, or the state another shape; or the state is
            no pair.

    Example:
        >>> cell, state = mica.nn.LSTMCell(3, 5), None
        >>> for x in mica.ones(7, 4, 3):
        ...     state = cell(x, state)
        >>> state[0].shape, state[1].shape
        (mica.Size([4, 5]), mica.Size([4, 5]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Takes one step.

        Args:
            input (Tensor): `(N, input_size)` or `(input_size,)`.
            hx (tuple of 2 Tensor, optional): The states, hidden and cell, `(N, hidden_size)` or `(hidden_size,)` each. Default: None, zeros.

        Returns:
            tuple of 2 Tensor: The next states, hidden and cell, shaped alike.
        """
        return self._step("lstm_cell", input, [None, None] if hx is None else list(hx))
