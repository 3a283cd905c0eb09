"""The planners that save and load use."""

from mica.distributed.checkpoint._load_planner import (
    DefaultLoadPlanner,
    _EmptyStateDictLoadPlanner,  # noqa: F401 - torch's name, which programs use
    create_default_global_load_plan,
    create_default_local_load_plan,
)
from mica.distributed.checkpoint._save_planner import (
    DefaultSavePlanner,
    create_default_global_save_plan,
    create_default_local_save_plan,
)

__all__ = [
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "create_default_global_load_plan",
    "create_default_global_save_plan",
    "create_default_local_load_plan",
    "create_default_local_save_plan",
]
