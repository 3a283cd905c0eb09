"""Tensors through DLPack capsules."""

from mica._tensor.exchange import from_dlpack as from_dlpack, to_dlpack as to_dlpack
