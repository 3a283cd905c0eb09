"""Intervals in Python only: a subclass of Tensor, and a rule for each class as in interval.cc."""

import mica
from mica.utils._pytree import tree_map


def product(a, b):
    corners = mica.stack(mica.broadcast_tensors(*[x * y for x in a for y in b]))
    return corners.amin(0), corners.amax(0)


GROWING = {"ADD": mica.add, "MIN": mica.minimum, "MAX": mica.maximum, "EXP": mica.exp, "TANH": mica.tanh}
GROWING["STORE"] = lambda x: x
STEPS = {"MUL": product, "NEG": lambda a: (-a[1], -a[0]), "SUB": lambda a, b: (a[0] - b[1], a[1] - b[0])}
SUMS = {"LOAD", "ELEMENT", "STATE", "ADD", "MIN", "MAX", "STORE", "STORE_STATE"}  # of sum, amax, amin
KNOWN = {*GROWING, *STEPS, "LOAD", "CONST", "SCALAR"}


class Interval(mica.Tensor):
    def __new__(cls, lower, upper):
        self = mica.Tensor._make_wrapper_subclass(cls, lower.shape, lower.stride(), dtype=lower.dtype)
        self.lower, self.upper = lower, upper
        return self

    @classmethod
    def __mica_dispatch__(cls, func, types, args=(), kwargs=None):
        args, named = func.bind(*args, **(kwargs or {}))
        steps = {step[0] for code in (func.program.codes.values() if func.program else ()) for step in code}
        grows = func.op_class == "view" or func._opname == "clone" or (steps and steps <= SUMS)
        rule = getattr(cls, "of_" + func.op_class, None) if steps <= KNOWN else None
        if func._schema.is_mutable or not (grows or rule or func.op_class == "decompose"):
            raise NotImplementedError(f"{func.name()} has no rule for intervals: {func.op_class}, {steps}.")
        if grows:
            low, high = (tree_map(lambda t, e=e: getattr(t, e, t), args) for e in ("lower", "upper"))
            return cls(func(*low, **named), func(*high, **named))
        if func.op_class == "decompose":
            return func.decompose(*args, **named)
        if func._opname in ("addmm", "baddbmm"):
            return named["beta"] * args[0] + named["alpha"] * (args[1] @ args[2])
        args += named.values()
        return cls(*rule(func, [(a.lower, a.upper) if isinstance(a, cls) else (a, a) for a in args]))

    def of_contraction(func, ends):  # by midpoint and radius
        x, y = [((a + b) / 2, (b - a) / 2) for a, b in ends]
        middle, radius = func(x[0], y[0]), func(x[0].abs(), y[1]) + func(x[1], y[0].abs() + y[1])
        return middle - radius, middle + radius

    def of_pointwise(func, ends):
        values, program = {}, func.program
        for name, into, read, aux in program.codes["main"]:
            x = [values[r] for r in read]
            if name == "LOAD":
                values[into] = ends[program.inputs[aux]]
            elif name in ("CONST", "SCALAR"):
                number = program.constants[aux] if name == "CONST" else ends[program.scalars[aux]][0]
                values[into] = (mica.tensor(number, dtype=ends[0][0].dtype),) * 2
            else:
                values[into] = STEPS[name](*x) if name in STEPS else [GROWING[name](*e) for e in zip(*x)]
        return values[into]
