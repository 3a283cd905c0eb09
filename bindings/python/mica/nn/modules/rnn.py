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
    """The tensor with the entries of a dimension in another order."""
    return tensor.index_select(dim, permutation)


class RNNBase(Module):
    """What the networks share: their weights by name, and the shapes of states."""

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
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Nothing: the weights need no special place here."""

    def reset_parameters(self) -> None:
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
        """Raises where the input does not fit: 2 dimensions of a packed sequence, 3 of a batch."""
        self._check_input(input, (2,) if batch_sizes is not None else (2, 3))

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of a hidden state for this input."""
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.size(0 if self.batch_first else 1)
        return self.num_layers * (2 if self.bidirectional else 1), batch, self._state_size

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raises where a state has another shape."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(tuple(expected_hidden_size), list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raises where the input or the state does not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The state with its batch in another order."""
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
    """h = tanh (or relu) of W x + b + U h + c, in layers."""

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
            raise ValueError(f"The nonlinearity ({nonlinearity}) is unknown; expected tanh or relu.")
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
        output, last = self._run(input, hx)
        return output, last[0]


class GRU(RNNBase):
    """Gated recurrent units, in layers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        output, last = self._run(input, hx)
        return output, last[0]


class LSTM(RNNBase):
    """Long short-term memory, in layers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of a cell state for this input, which no projection makes smaller."""
        return (*self.get_expected_hidden_size(input, batch_sizes)[:2], self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raises where the input, the hidden state or the cell state does not fit."""
        self.check_input(input, batch_sizes)
        sizes = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(hidden[0], sizes, "Expected hidden[0] size {}, got {}")
        sizes = self.get_expected_cell_size(input, batch_sizes)
        self.check_hidden_size(hidden[1], sizes, "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The two states with their batch in another order."""
        if permutation is None:
            return hx
        return apply_permutation(hx[0], permutation), apply_permutation(hx[1], permutation)

    def forward(
        self, input: Any, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Any, tuple[Tensor, Tensor]]:
        output, last = self._run(input, hx)
        return output, (last[0], last[1])


class RNNCellBase(Module):
    """What single steps share: their weights and the checks of shapes."""

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
    """One step of a plain recurrent network."""

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
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"The nonlinearity ({self.nonlinearity}) is unknown; expected tanh or relu.")
        return self._step(f"rnn_{self.nonlinearity}_cell", input, [hx])


class GRUCell(RNNCellBase):
    """One step of gated recurrent units."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step("gru_cell", input, [hx])


class LSTMCell(RNNCellBase):
    """One step of long short-term memory."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        return self._step("lstm_cell", input, [None, None] if hx is None else list(hx))
