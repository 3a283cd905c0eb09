"""Runs this folder's tests with the plugin that the build has made."""

import os
import subprocess
import sys
from pathlib import Path

(plugin,) = sys.argv[1:]
here = Path(__file__).parent
command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(here)]
path = os.pathsep.join(p for p in (str(here), os.environ.get("PYTHONPATH")) if p)
sys.exit(subprocess.call(command, env=dict(os.environ, MICA_PLUGINS=plugin, PYTHONPATH=path)))
