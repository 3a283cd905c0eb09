"""mica.autograd.graph: looking at the backward graph, hooks on its nodes, and hooks on what
they save."""

from mica._C import Node as Node
from mica.autograd._graph_draw import (
    Drawing as Drawing,
    draw as draw,
)
from mica.autograd._graph_hooks import (
    GradientEdge as GradientEdge,
    InputMetadata as InputMetadata,
    get_gradient_edge as get_gradient_edge,
    increment_version as increment_version,
    register_hook as register_hook,
    register_multi_grad_hook as register_multi_grad_hook,
    register_prehook as register_prehook,
)
from mica.autograd._saved_hooks import (
    SavedTensor as SavedTensor,
    _raw_saved as _raw_saved,
    allow_mutation_on_saved_tensors as allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks as disable_saved_tensors_hooks,
    save_on_cpu as save_on_cpu,
    saved_tensors_hooks as saved_tensors_hooks,
)
