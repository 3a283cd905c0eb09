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
    """Returns the folder in which the hub looks for weights.

    As `torch.hub.get_dir`.

    Returns:
        str: What `set_dir()` was given; else `hub` in `$TORCH_HOME`, or `~/.cache/torch/hub`.

    Example:
        >>> folder = mica.hub.get_dir()
    """
    return _directory[-1] if _directory else os.path.join(_get_torch_home(), "hub")


def set_dir(d: Any) -> None:
    """Sets the folder in which the hub looks for weights.

    As `torch.hub.set_dir`.

    Args:
        d (str or path): The folder in which weights are.

    Example:
        >>> mica.hub.set_dir(mica.hub.get_dir())
    """
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
    r"""Lists what models a folder offers: the functions of its `hubconf.py`.

    As `torch.hub.list`, for local sources alone: Mica opens no network connection.

    Args:
        github (str or path): The folder that holds `hubconf.py`.
        force_reload (bool): Ignored. Default: False.
        skip_validation (bool): Ignored. Default: False.
        trust_repo (Any): Ignored. Default: "check".
        verbose (bool): Ignored. Default: True.
        source (str): Give "local". Default: "github", which raises.

    Returns:
        list of str: The names.

    Raises:
        RuntimeError: The source is "github", or a module that `hubconf.py` depends on is missing.
        ValueError: The source is another.
        FileNotFoundError: The folder has no `hubconf.py`.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     text = "def scaler(by):\n    return lambda x: x * by\n"
        ...     _ = pathlib.Path(folder, "hubconf.py").write_text(text)
        ...     mica.hub.list(folder, source="local")
        ['scaler']
    """
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
    r"""Reads the docstring of a model's function in a folder's `hubconf.py`.

    As `torch.hub.help`, for local sources alone.

    Args:
        github (str or path): The folder that holds `hubconf.py`.
        model (str): The function's name.
        force_reload (bool): Ignored. Default: False.
        skip_validation (bool): Ignored. Default: False.
        trust_repo (Any): Ignored. Default: "check".
        source (str): Give "local". Default: "github", which raises.

    Returns:
        str or None: The docstring.

    Raises:
        RuntimeError: The source is "github", or there is no such function.
        FileNotFoundError: The folder has no `hubconf.py`.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     text = "def scaler(by):\n    'Multiplies.'\n    return lambda x: x * by\n"
        ...     _ = pathlib.Path(folder, "hubconf.py").write_text(text)
        ...     mica.hub.help(folder, "scaler", source="local")
        'Multiplies.'
    """
    return _entry(github, model, source).__doc__


def load(repo_or_dir: Any, model: str, *args: Any, source: str = "github", **kwargs: Any) -> Any:
    r"""Makes a model by a function of a folder's `hubconf.py`.

    As `torch.hub.load`, for local sources alone: Mica opens no network connection. The file is run, so trust
    the folder.

    Args:
        repo_or_dir (str or path): The folder that holds `hubconf.py`.
        model (str): The function's name.
        *args (Any): Its arguments.
        source (str): Give "local". Default: "github", which raises.
        **kwargs (Any): Its arguments by name; `trust_repo`, `force_reload`, `verbose` and
            `skip_validation` are left out.

    Returns:
        Any: What the function returns.

    Raises:
        RuntimeError: The source is "github", or there is no such function.
        ValueError: The source is another.
        FileNotFoundError: The folder has no `hubconf.py`.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     text = "def scaler(by):\n    return lambda x: x * by\n"
        ...     _ = pathlib.Path(folder, "hubconf.py").write_text(text)
        ...     double = mica.hub.load(folder, "scaler", 2, source="local")
        >>> double(mica.ones(2))
        tensor([2., 2.])
    """
    for option in ("trust_repo", "force_reload", "verbose", "skip_validation"):
        kwargs.pop(option, None)
    return _entry(repo_or_dir, model, source)(*args, **kwargs)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Copies the file of a `file://` URL; any other is refused, since Mica opens no network connection.

    Args:
        url (str): The URL, of the scheme `file://`.
        dst (str): Where the copy goes.
        hash_prefix (str, optional): What the SHA-256 of the file must begin with, in hexadecimal.
        progress (bool): Ignored. Default: True.

    Raises:
        RuntimeError: The URL is no `file://` one, or the hash differs.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "a").write_text("content")
        ...     mica.hub.download_url_to_file(f"file://{folder}/a", f"{folder}/b")
        ...     pathlib.Path(folder, "b").read_text()
        'content'
    """
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
    """Loads the weights that a URL names from the hub's folder, where somebody has put them.

    As `torch.hub.load_state_dict_from_url`, but a URL other than `file://` is not fetched: the error says which
    file to put where.

    Args:
        url (str): The URL; its last part is the file's name.
        model_dir (str, optional): The folder. Default: `checkpoints` in `get_dir()`.
        map_location (str, device, dict or callable, optional): As of `mica.load`.
        progress (bool): Ignored. Default: True.
        check_hash (bool): Checks a file that is copied against the hash in its name, `name-<hash>.pth`.
            Default: False.
        file_name (str, optional): The file's name, where it is not the URL's.
        weights_only (bool): As of `mica.load`. Default: True.

    Returns:
        Any: What the file holds.

    Raises:
        RuntimeError: The file is not in the folder and the URL is no `file://` one.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     mica.save({"weight": mica.ones(2)}, f"{folder}/net.pth")
        ...     mica.hub.load_state_dict_from_url("https://example.org/net.pth", model_dir=folder)
        {'weight': tensor([1., 1.])}
    """
    import mica

    folder = Path(model_dir or os.path.join(get_dir(), "checkpoints"))
    folder.mkdir(parents=True, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    target = folder / name
    if not target.exists():
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, str(target), found.group(1) if found else None, progress)
    return mica.load(target, map_location=map_location, weights_only=weights_only)
