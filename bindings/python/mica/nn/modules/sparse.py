"""Tables of embeddings, looked up by index: single rows, and bags of them."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.nn import functional as F, init
from mica.nn._operators import checked_padding
from mica.nn.modules.module import Module
from mica.nn.parameter import Parameter


def checked_table(table: Tensor, rows: int | None = None, columns: int | None = None) -> tuple[int, int]:
    """The two sizes of a given table, which are those expected."""
    if table.dim() != 2:
        raise AssertionError(f"Number of dimensions ({table.dim()}) of a table of embeddings is not 2.")
    sizes = (table.size(0), table.size(1))
    if rows is not None and sizes != (rows, columns):
        raise AssertionError(f"Shape {sizes} of the given table is not {(rows, columns)}.")
    return sizes


class Embedding(Module):
    """Rows of a learned table, looked up by index: `y = weight[input]`.

    As `torch.nn.Embedding`, except that the table's gradient is dense with `sparse=True` too.

    Args:
        num_embeddings (int): Rows of the table; indices lie in [0, num_embeddings).
        embedding_dim (int): Elements of a row.
        padding_idx (int, optional): A row that starts as zeros and gets no gradient; negative counts from the
            end.
        max_norm (float, optional): Rows that are looked up with a larger norm are scaled down to it, in the
            table itself.
        norm_type (float): Order of that norm. Default: 2.
        scale_grad_by_freq (bool): Divide a row's gradient by how often the batch looks it up. Default: False.
        sparse (bool): Kept as an attribute; the gradient is dense all the same. Default: False.
        device (device, optional): Where the table lives. Default: the default device.
        dtype (dtype, optional): Of the table. Default: the default dtype.

    Attributes:
        weight (Parameter): `(num_embeddings, embedding_dim)`, drawn from the normal distribution at first.

    Shape:
        - Input: `(*)`, int64 or int32 indices.
        - Output: `(*, embedding_dim)`.

    Raises:
        AssertionError: `padding_idx` is not a row of the table.
        IndexError: At the call, an index is not one of the table.
        RuntimeError: At the call, the indices are no integers.

    Example:
        >>> words = mica.nn.Embedding(10, 4, padding_idx=0)
        >>> words(mica.tensor([[3, 1, 0], [7, 0, 0]])).shape
        mica.Size([2, 3, 4])
        >>> words(mica.tensor([0])).detach()
        tensor([[0., 0., 0., 0.]])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        padding_idx = checked_padding(padding_idx, num_embeddings)
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if _weight is None:
            table = mica.empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(table, requires_grad=not _freeze)
            self.reset_parameters()
        else:
            checked_table(_weight, num_embeddings, embedding_dim)
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Draws the table from the normal distribution, and sets the row `padding_idx` to zeros."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with mica.no_grad():
                self.weight[self.padding_idx].fill_(0)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """An embedding over a given table, which is not copied.

        Args:
            embeddings (Tensor): The table, `(num_embeddings, embedding_dim)`.
            freeze (bool): Leave the table as it is in training: it does not require grad. Default: True.
            padding_idx (int, optional): A row that gets no gradient. It keeps the values given.
            max_norm (float, optional): As the class has it.
            norm_type (float): As the class has it. Default: 2.
            scale_grad_by_freq (bool): As the class has it. Default: False.
            sparse (bool): As the class has it. Default: False.

        Returns:
            Embedding: With the sizes of the table.

        Raises:
            AssertionError: The table has not 2 dimensions, or `padding_idx` is not a row of it.

        Example:
            >>> table = mica.tensor([[1., 2.], [3., 4.]])
            >>> mica.nn.Embedding.from_pretrained(table)(mica.tensor([1]))
            tensor([[3., 4.]])
        """
        rows, columns = checked_table(embeddings)
        return cls(
            rows,
            columns,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
            _weight=embeddings,
            _freeze=freeze,
        )

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            scale_grad_by_freq=self.scale_grad_by_freq,
            sparse=self.sparse,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return text + (", sparse=True" if self.sparse else "")


class EmbeddingBag(Module):
    """Sum, mean or maximum of the rows of a learned table that each bag of indices names.

    As `torch.nn.EmbeddingBag`, except that the table's gradient is dense with `sparse=True` too. It equals
    `Embedding` followed by the reduction.

    Args:
        num_embeddings (int): Rows of the table; indices lie in [0, num_embeddings).
        embedding_dim (int): Elements of a row.
        max_norm (float, optional): Rows that are looked up with a larger norm are scaled down to it, in the
            table itself.
        norm_type (float): Order of that norm. Default: 2.
        scale_grad_by_freq (bool): Divide a row's gradient by how often the batch looks it up; not for `max`.
            Default: False.
        mode (str): `sum`, `mean` or `max`. Default: `mean`.
        sparse (bool): Kept as an attribute; the gradient is dense all the same. Not for `max`. Default:
            False.
        include_last_offset (bool): The offsets end with the number of indices, so that there is one more than
            bags. Default: False.
        padding_idx (int, optional): An index that bags leave out, in means too; its row starts as zeros and
            gets no gradient.
        device (device, optional): Where the table lives. Default: the default device.
        dtype (dtype, optional): Of the table. Default: the default dtype.

    Attributes:
        weight (Parameter): `(num_embeddings, embedding_dim)`, drawn from the normal distribution at first.

    Shape:
        - Input: `(B, N)`, int64 or int32: `B` bags of `N` indices; or `(N,)`, bags one after another, and
          then the call's second argument, `offsets` `(B,)`, says at which index each bag starts, the first at
          0.
        - Weights of the indices (the call's third argument, `per_sample_weights`, for `sum` alone): the
          input's shape.
        - Output: `(B, embedding_dim)`; zeros for a bag without indices.

    Raises:
        AssertionError: `padding_idx` is not a row of the table.
        ValueError: At the call, the mode is unknown or has not the option asked for, `offsets` are missing
            for a vector or given for a matrix, or the weights have another shape than the input.
        NotImplementedError: At the call, weights are given for another mode than `sum`.

    Example:
        >>> bags = mica.nn.EmbeddingBag.from_pretrained(mica.tensor([[1., 1.], [2., 4.], [6., 8.]]), mode="sum")
        >>> bags(mica.tensor([[0, 1], [2, 2]]))
        tensor([[ 3.,  5.],
                [12., 16.]])
        >>> bags(mica.tensor([0, 1, 2]), mica.tensor([0, 2]))
        tensor([[3., 5.],
                [6., 8.]])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        padding_idx = checked_padding(padding_idx, num_embeddings)
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self.padding_idx = padding_idx
        if _weight is None:
            shape = (num_embeddings, embedding_dim)
            self.weight = Parameter(mica.empty(shape, device=device, dtype=dtype))
            self.reset_parameters()
        else:
            checked_table(_weight, num_embeddings, embedding_dim)
            self.weight = Parameter(_weight)

    def reset_parameters(self) -> None:
        """Draws the table from the normal distribution, and sets the row `padding_idx` to zeros."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with mica.no_grad():
                self.weight[self.padding_idx].fill_(0)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """Bags over a given table, which is not copied.

        Args:
            embeddings (Tensor): The table, `(num_embeddings, embedding_dim)`.
            freeze (bool): Leave the table as it is in training: it does not require grad. Default: True.
            max_norm (float, optional): As the class has it.
            norm_type (float): As the class has it. Default: 2.
            scale_grad_by_freq (bool): As the class has it. Default: False.
            mode (str): `sum`, `mean` or `max`. Default: `mean`.
            sparse (bool): As the class has it. Default: False.
            include_last_offset (bool): As the class has it. Default: False.
            padding_idx (int, optional): An index that bags leave out. Its row keeps the values given.

        Returns:
            EmbeddingBag: With the sizes of the table.

        Raises:
            AssertionError: The table has not 2 dimensions, or `padding_idx` is not a row of it.
        """
        rows, columns = checked_table(embeddings)
        options = (max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings)
        bags = cls(rows, columns, *options, include_last_offset, padding_idx)
        bags.weight.requires_grad = not freeze
        return bags

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        text += f", mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"
