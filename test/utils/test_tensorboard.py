"""mica.utils.tensorboard without the package tensorboard; test/users/programs.py reads what it writes."""

from __future__ import annotations

import sys

import pytest


def test_the_package_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ImportError, match="pip install tensorboard"):
        from mica.utils.tensorboard import SummaryWriter  # noqa: F401
    import mica.utils.tensorboard

    with pytest.raises(AttributeError, match="Bogus"):
        mica.utils.tensorboard.Bogus  # noqa: B018
