"""The program of docs/concepts/distributed.md that saves and loads a checkpoint, with what it gives."""

import tempfile
import warnings

import mica
from mica import nn, optim

warnings.simplefilter("ignore")  # there is no group: save and load say that they take this process for all
folder = tempfile.TemporaryDirectory()
path = folder.name
net = nn.Linear(4, 4)
optimizer = optim.AdamW(net.parameters())

# snippet: save
from mica.distributed import checkpoint  # noqa: E402
from mica.distributed.checkpoint.state_dict import get_state_dict, set_state_dict  # noqa: E402

model_state, optimizer_state = get_state_dict(net, optimizer)
checkpoint.save({"model": model_state, "optimizer": optimizer_state, "epoch": 3}, checkpoint_id=path)

# Another program, of any number of ranks: what it has is read into.
model_state, optimizer_state = get_state_dict(net, optimizer)
state = {"model": model_state, "optimizer": optimizer_state, "epoch": 0}
checkpoint.load(state, checkpoint_id=path)
set_state_dict(net, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
# end snippet
assert state["epoch"] == 3 and mica.equal(state["model"]["weight"], net.weight)
folder.cleanup()
