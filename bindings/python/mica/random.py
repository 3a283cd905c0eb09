"""mica.random: the state of random generators."""

from mica._random import (  # noqa: F401
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
