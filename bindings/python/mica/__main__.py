"""The command `mica <subcommand>`, also `python -m mica <subcommand>`.

A subcommand is a module of mica/_commands with HELP (a sentence), add_arguments(parser)
and run(arguments) -> exit status. Its name is the module's. Adding one touches nothing
here, and only the one that runs is imported beside those whose help is shown.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Sequence

from mica import _commands


def _parser(names: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mica", description="Tools around Mica, an operator runtime.")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in names:
        command = importlib.import_module(f"mica._commands.{name}")
        sub = subparsers.add_parser(name, help=command.HELP, description=command.HELP)
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the subcommand that the command line names and returns its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    names = sorted(module.name for module in pkgutil.iter_modules(_commands.__path__))
    chosen = [words[0]] if words and words[0] in names else names
    parsed = _parser(chosen).parse_args(words)
    status: int = parsed.run(parsed)
    return status


if __name__ == "__main__":
    sys.exit(main())
