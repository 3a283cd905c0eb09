"""Runs test_acme.py with the plugin and the generated module that the build has made."""

import os
import subprocess
import sys
from pathlib import Path

plugin, generated = sys.argv[1:]
environment = dict(os.environ, MICA_PLUGINS=plugin, ACME_GENERATED=generated)
sys.exit(
    subprocess.call(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            str(Path(__file__).parent / "test_acme.py"),
        ],
        env=environment,
    )
)
