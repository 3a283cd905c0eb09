"""mica.optim: optimisers with torch's update rules, defaults and state_dict."""

from mica.optim import lr_scheduler  # noqa: F401
from mica.optim._adam import Adam, AdamW  # noqa: F401
from mica.optim._optimizer import Optimizer  # noqa: F401
from mica.optim._rmsprop import RMSprop  # noqa: F401
from mica.optim._sgd import SGD  # noqa: F401
