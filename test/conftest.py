"""What holds for every test in Python, before any of them imports Mica."""

import os

# Memory that nobody wrote is NaN, -1 or a wild index: see tensor/poison.h.
os.environ.setdefault("MICA_POISON_MEMORY", "255")
