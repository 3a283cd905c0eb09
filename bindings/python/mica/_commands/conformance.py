"""`mica conformance`: see mica.conformance, which the command imports when it runs."""

from __future__ import annotations

import argparse

HELP = "Checks that a device does what every device of Mica must do."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from mica.conformance.command import add_arguments as add

    add(parser)


def run(arguments: argparse.Namespace) -> int:
    from mica.conformance.command import run as run_command

    return run_command(arguments)
