"""The device that the tests of this folder run on: the simulated one, or a real one that the environment names."""

import os

DEVICE = os.environ.get("MICA_TEST_DEVICE", "simt")
IS_SIMULATED = DEVICE == "simt"
