"""Plugins and explanations: what is loaded and where a call goes."""

from __future__ import annotations

import os

from mica import _C

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from typing import Any


class Explanation(str):
    """A text that an interactive session shows as it prints."""

    def __repr__(self) -> str:
        return str(self)


def explain(operator: str, *arguments: Any) -> Explanation:
    """Explains which layers a call would pass, which kernel runs, and why: the first help where a call surprises.

    Args:
        operator (str): The operator, "add.Tensor"; "acme::blur" of another namespace.
        *arguments (Any): The call's arguments; tensors decide on the backend and the layers.

    Returns:
        Explanation: The text, which an interactive session shows as it prints.

    Raises:
        RuntimeError: There is no such operator.

    Example:
        >>> mica.explain("neg", mica.ones(2))
        mica::neg (class pointwise)
        ...
    """
    return Explanation(_C._explain(operator, *arguments))


def plugins() -> list[dict[str, Any]]:
    """Lists every plugin that was found.

    `python -m mica doctor` shows the same for people.

    Returns:
        list of dict: For each its "name", "state", what it "provides", its "path", the "reason" of its
        state, and more.

    Example:
        >>> found = [plugin["name"] for plugin in mica.plugins()]
    """
    plugins: list[dict[str, Any]] = _C._plugins()
    return plugins


def plugin_options() -> dict[str, int]:
    """Returns the options that plugins have declared, with their numbers.

    A plugin declares its options when it is opened (`MicaSettings` in <mica/settings.h>), and reads them as it
    computes.

    Returns:
        dict of str to int: By name, which begins with the plugin's: "acme.npu.fast_math".

    Example:
        >>> mica.plugin_options()
        {}
    """
    options: dict[str, int] = _C._plugin_options()
    return options


def set_plugin_option(name: str, value: int) -> None:
    """Sets an option that a plugin has declared. A plugin that was found and is not open yet is opened.

    What a plugin reads as it is opened is given before: MICA_PLUGIN_OPTIONS="acme.npu.fast_math=1,acme.npu.cores=4" in
    the environment.

    Args:
        name (str): The option's name, which begins with the plugin's.
        value (int): Its number; the plugin says what it means.

    Raises:
        ValueError: No plugin that is loaded declares it.

    Example:
        >>> try:
        ...     mica.set_plugin_option("acme.npu.fast_math", 1)
        ... except ValueError as error:
        ...     print(error)
        No plugin that is loaded declares the option (acme.npu.fast_math). Those that are declared: none.
    """
    _C._set_plugin_option(name, value)


def disable_plugin(name: str) -> None:
    """Takes a plugin's kernels out of the dispatcher.

    Args:
        name (str): The plugin's name.

    Raises:
        RuntimeError: No plugin has this name.

    Example:
        >>> try:
        ...     mica.disable_plugin("acme")
        ... except RuntimeError:
        ...     print("no plugin acme")
        no plugin acme
    """
    _C._enable_plugin(name, False)


def replace_plugin(path: str | os.PathLike[str]) -> None:
    """Puts another build of a loaded plugin in that one's place, in one step.

    Calls in other threads meet the one or the other, and operators that both define by a schema alone stay the same.
    Where none of its name is loaded, it is loaded. A build that was replaced can be put back in the same way. A file
    that is loaded already stays: opened libraries are never unmapped, so that a new build needs a path of its own.

    Args:
        path (str or os.PathLike): The plugin's file. Its name, in its manifest, says which plugin it replaces.

    Raises:
        RuntimeError: The file is no plugin, or what it registers cannot stand; the loaded one stays.

    Example:
        >>> try:
        ...     mica.replace_plugin("no_such_file.so")
        ... except RuntimeError:
        ...     print("nothing has changed")
        nothing has changed
    """
    _C._replace_plugin(path)


def enable_plugin(name: str) -> None:
    """Puts a disabled plugin's kernels back.

    Args:
        name (str): The plugin's name, or its path.

    Raises:
        RuntimeError: No plugin has this name.

    Example:
        >>> try:
        ...     mica.enable_plugin("acme")
        ... except RuntimeError:
        ...     print("no plugin acme")
        no plugin acme
    """
    _C._enable_plugin(name, True)
