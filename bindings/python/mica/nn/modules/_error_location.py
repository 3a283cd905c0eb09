"""Says in an error's message which module of a network it comes from: `encoder.layers.3.linear1`.

Module.__call__ hands every exception that leaves a forward() to add_path(), from the innermost module
outwards, so the path grows by one name at each module and nothing is done while all is well. The
exception stays the same object, of the same type and with the same traceback; only errors of Mica's
own operators and layers are told, never those that a program raises.
"""

from __future__ import annotations

from typing import Any

# The types that Mica's own errors have; their text is their one argument.
_KINDS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, AssertionError)


def add_path(module: Any, error: BaseException) -> None:
    """Adds `module`, out of whose forward() the exception comes, to the path in the message."""
    if type(error) not in _KINDS:
        return
    notes = error.__dict__
    place = notes.get("_mica_place")
    if place is None:
        if len(error.args) == 1 and isinstance(error.args[0], str) and _is_micas(error):
            notes["_mica_place"] = (error.args[0], [], type(module).__name__, module)
        return
    text, path, innermost, child = place
    if child is module:  # called through hooks, or by its own forward()
        return
    path.insert(0, _name_in(module, child))
    notes["_mica_place"] = (text, path, innermost, module)
    error.args = (f"{text}\n  in module {'.'.join(path)} ({innermost}) of {type(module).__name__}",)


def _name_in(module: Any, child: Any) -> str:
    for name, found in module.named_modules():
        if found is child:
            return str(name)
    return f"<{type(child).__name__}>"  # a module that this one holds without registering it


def _is_micas(error: BaseException) -> bool:
    """Whether an operator raised it (its text ends in the call) or code of this package."""
    if "\n  in " in error.args[0]:
        return True
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and str(trace.tb_frame.f_globals.get("__name__", "")).startswith("mica.")


def path_of_frame(frame: Any) -> str:
    """The path of the module that a stack frame runs in, and its class; "" outside of modules."""
    chain: list[Any] = []  # innermost first
    while frame is not None:
        if frame.f_code.co_name == "forward":
            held = frame.f_locals.get("self")
            if hasattr(type(held), "named_modules") and (not chain or chain[-1] is not held):
                chain.append(held)
        frame = frame.f_back
    names = [_name_in(outer, inner) for inner, outer in zip(chain, chain[1:])]
    if not names:
        return type(chain[0]).__name__ if chain else ""
    return f"{'.'.join(reversed(names))} ({type(chain[0]).__name__}) of {type(chain[-1]).__name__}"
