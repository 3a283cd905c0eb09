"""mica.hub: models from a folder with a hubconf.py, and weights that lie in the hub's folder.

Only local sources: what would need the network raises RuntimeError that names the file to put there.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlparse as urlparse

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_directory: list[str] = []


def _get_torch_home() -> str:
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder in which weights and sources lie."""
    return _directory[-1] if _directory else os.path.join(_get_torch_home(), "hub")


def set_dir(d: Any) -> None:
    """Makes a folder the hub's."""
    _directory.append(os.path.expanduser(str(d)))


def _entries(repo_or_dir: Any, source: str) -> Any:
    if source not in ("local", "github"):
        raise ValueError(f"The source ({source!r}) is unknown; expected 'github' or 'local'.")
    if source != "local":
        raise RuntimeError(
            f"mica.hub opens local sources only: clone {repo_or_dir} and call with source='local' and its folder."
        )
    folder = Path(repo_or_dir)
    spec = importlib.util.spec_from_file_location("hubconf", folder / "hubconf.py")
    if spec is None or spec.loader is None or not (folder / "hubconf.py").exists():
        raise FileNotFoundError(f"The folder ({folder}) has no hubconf.py.")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    missing = [d for d in getattr(module, "dependencies", []) if importlib.util.find_spec(d) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def list(
    github: Any,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    verbose: bool = True,
    *,
    source: str = "github",
) -> Any:
    """The entry points of a folder's hubconf.py."""
    module = _entries(github, source)
    return [n for n in dir(module) if callable(getattr(module, n)) and not n.startswith("_")]


def _entry(repo_or_dir: Any, model: str, source: str) -> Any:
    function = getattr(_entries(repo_or_dir, source), model, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return function


def help(
    github: Any,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    *,
    source: str = "github",
) -> Any:
    """The doc string of an entry point."""
    return _entry(github, model, source).__doc__


def load(repo_or_dir: Any, model: str, *args: Any, source: str = "github", **kwargs: Any) -> Any:
    """What an entry point of a folder's hubconf.py makes."""
    for option in ("trust_repo", "force_reload", "verbose", "skip_validation"):
        kwargs.pop(option, None)
    return _entry(repo_or_dir, model, source)(*args, **kwargs)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Refused unless the URL is a file: Mica opens no network connection."""
    parts = urlparse(url)
    if parts.scheme != "file":
        raise RuntimeError(f"Mica downloads nothing: fetch {url} by other means and put it at {dst}.")
    import hashlib
    import shutil

    content = Path(parts.path).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if hash_prefix is not None and not digest.startswith(hash_prefix):
        raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest}")')
    shutil.copyfile(parts.path, dst)


_download_url_to_file = download_url_to_file


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """The weights of a URL, from the hub's folder if they lie there."""
    import mica

    folder = Path(model_dir or os.path.join(get_dir(), "checkpoints"))
    folder.mkdir(parents=True, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    target = folder / name
    if not target.exists():
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, str(target), found.group(1) if found else None, progress)
    return mica.load(target, map_location=map_location, weights_only=weights_only)
