"""Where acme's plugin lies; its operators are mica.ops.acme, typed in acme_ops.operators."""

from pathlib import Path


def plugin_path() -> str:
    """The plugin's file, for the entry point group mica.plugins."""
    return str(Path(__file__).parent / "mica_acme.so")
