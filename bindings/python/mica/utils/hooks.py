"""Handles of hooks."""

from mica._tensor import RemovableHandle as RemovableHandle
