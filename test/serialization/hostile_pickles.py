"""Pickles by a grammar: every opcode, every callable that files may name, and hostile arguments.

program() writes a pickle of nested values. Most are of the kind that the rule of their place asks for
(the rules themselves say which: what is added there is called here), some of any other; objects are put
into the memo, used again, used again a thousand times, given states, items and members that may not
fit. hostile_checkpoints.py packs and loads them.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from mica.serialization import _plain_reader as _unpickle
from mica.serialization._pickle import kinds, rules
from mica.serialization._pickle.kinds import Kind
from mica.serialization._zip_reader import Source

NUMBERS = [
    0,
    1,
    -1,
    2,
    3,
    255,
    2**16,
    2**26,
    2**31 - 1,
    2**31,
    2**32,
    2**62,
    2**63 - 1,
    2**63,
    -(2**63),
    2**200,
]
TEXTS = [
    "storage",
    "0",
    "cpu",
    "cuda:1",
    "meta",
    "__class__",
    "__dict__",
    "__reduce__",
    "_metadata",
    "grad",
    "items",
]
TEXTS += ["backward", "requires_grad", "conj", "neg", "torch.strided", "utf-8", "float32", "", "a" * 300]
DEEPEST = 6


def rules_of(first: bool) -> list[rules.Rule]:
    """What a file may call; `first`: with what Mica's first versions wrote."""
    found = [*rules.CALLS.values(), rules._PARAMETER]
    return [*found, *_unpickle._Strict(b"", Source("cpu", "")).rules.values()] if first else found


def name(path: str) -> bytes:
    module, _, last = path.rpartition(".")
    return f"c{module}\n{last}\n".encode()


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


class Program:
    """Writes one pickle. Each method gives the opcodes that leave one value on the stack."""

    def __init__(self, draw: random.Random, first: bool) -> None:
        self.draw, self.first = draw, first
        self.wrong = draw.choice([0, 0.02, 0.1])  # how often a value is of another kind than asked for
        self.depth = self.stored = 0
        self.calls = rules_of(first)
        self.names = [*rules.TABLE, "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer", "os.system"]
        tensors = [rule for rule in self.calls if rule.path.endswith("_tensors._rebuild_tensor")]
        number, pair = self.number, lambda: self.items(self.text)
        self.of_kind: dict[Kind, Callable[[], bytes]] = {
            kinds.ANYTHING: self.any,
            kinds.BYTES: self.bytes,
            kinds.CONTENT: self.bytes,
            kinds.COUNT: lambda: self.small() if draw.random() < 0.8 else number(),
            kinds.INDEX: self.small,
            kinds.NUMBER: number,
            kinds.DTYPE: self.dtype,
            kinds.FACTORY: lambda: name(draw.choice(["collections.OrderedDict", "builtins.set", "collections.Counter"])),
            kinds.FLAG: lambda: draw.choice([b"\x88", b"\x89", b"K\x01", b"I01\n"]),
            kinds.ITEMS: lambda: self.items(self.any),
            kinds.NAMES: pair,
            kinds.STATE: lambda: draw.choice([pair(), pair() + pair() + b"\x86", b"N" + pair() + b"\x86"]),
            kinds.SIZES: self.sizes,
            kinds.LONG_SIZE: self.sizes,
            kinds.MEMBERS: lambda: self.list_of(self.any),
            kinds.STORAGE: self.storage,
            kinds.TENSOR: lambda: self.call(tensors[0] if first else draw.choice(rules._TENSOR_RULES[:2])),
            kinds.TEXT: self.text,
            kinds.SHORT_TEXT: self.text,
            _unpickle.CLASS: lambda: name("mica.Tensor"),
            _unpickle.MEMORY: lambda: name("mica.serialization._tensors._SharedBytes") + self.bytes() + b"\x85R",
        }  # fmt: skip

    def any(self) -> bytes:
        """A value of any kind."""
        makers = [self.number, self.text, self.bytes, self.plain, self.known, self.global_, self.storage]
        if self.depth < DEEPEST:
            makers += [
                self.collection,
                self.any_call,
                self.any_call,
                self.changed,
                self.repeated,
                self.doubled,
            ]
        self.depth += 1
        made = self.draw.choice(makers)()
        self.depth -= 1
        return made + self.put() if self.draw.random() < 0.2 else made

    def argument(self, kind: Kind) -> bytes:
        return self.any() if self.draw.random() < self.wrong else self.of_kind[kind]()

    def put(self) -> bytes:
        """Puts the value into the memo."""
        self.stored += 1
        number = self.stored - 1
        return self.draw.choice([b"r" + struct.pack("<I", number), f"p{number}\n".encode()])

    def get(self, number: int) -> bytes:
        return self.draw.choice([b"j" + struct.pack("<I", number), f"g{number}\n".encode()])

    def known(self) -> bytes:
        return self.get(self.draw.randrange(self.stored)) if self.stored else b"N"

    def plain(self) -> bytes:
        return self.draw.choice(
            [b"N", b"\x88", b"\x89", b")", b"]", b"}", b"\x8f", b"G" + b"\x7f" * 8, b"F1e9\n"]
        )

    def small(self) -> bytes:
        return b"K" + bytes([self.draw.randrange(5)])

    def number(self) -> bytes:
        value = self.draw.choice([*NUMBERS, self.draw.randrange(1000)])
        size = value.bit_length() // 8 + 1
        content = value.to_bytes(size, "little", signed=True)
        ways = [b"\x8a" + bytes([size]) + content, b"\x8b" + struct.pack("<I", size) + content]
        return self.draw.choice([*ways, f"I{value}\n".encode(), f"L{value}L\n".encode()])

    def text(self) -> bytes:
        value = self.draw.choice(TEXTS)
        content = value.encode()
        ways = [text(value), f"V{value}\n".encode(), f"S'{value}'\n".encode()]
        ways += [
            b"\x8d" + struct.pack("<Q", len(content)) + content,
            b"T" + struct.pack("<I", len(content)) + content,
        ]
        if len(content) < 256:
            ways += [b"\x8c" + bytes([len(content)]) + content, b"U" + bytes([len(content)]) + content]
        return self.draw.choice(ways)

    def bytes(self) -> bytes:
        content = bytes(self.draw.choice([0, 3, 16, 64]))
        short, long = bytes([len(content)]) + content, struct.pack("<Q", len(content)) + content
        return self.draw.choice([b"C" + short, b"\x8e" + long, b"\x96" + long, b"B" + long[:4] + content])

    def sizes(self) -> bytes:
        count = self.draw.choice([0, 1, 1, 1, 2, 2, 64])
        return b"(" + b"".join(self.argument(kinds.COUNT) for _ in range(count)) + b"t"

    def dtype(self) -> bytes:
        if self.first:
            return name("mica._C._metadata_object") + text("float32") + b"\x85R"
        return name(self.draw.choice(["torch.float32", "torch.bool", "torch.complex64", "torch.uint16"]))

    def global_(self) -> bytes:
        path = self.draw.choice(self.names)
        module, _, last = path.rpartition(".")
        return self.draw.choice([name(path), text(module) + text(last) + b"\x93"])

    def storage(self) -> bytes:
        if self.first:
            return self.of_kind[_unpickle.MEMORY]()
        kind = self.draw.choice(["FloatStorage", "BoolStorage", "ComplexFloatStorage", "LongStorage"])
        place = text(self.draw.choice(["cpu"] * 8 + ["cuda:1", "meta"]))
        return (
            b"("
            + text("storage")
            + name(f"torch.{kind}")
            + text("0")
            + place
            + self.argument(kinds.COUNT)
            + b"tQ"
        )

    def list_of(self, make: Callable[[], bytes]) -> bytes:
        values = b"".join(make() for _ in range(self.draw.randrange(5)))
        ends = [b"l", b"t", b"\x91"]
        return b"(" + values + self.draw.choice(ends) if self.draw.random() < 0.5 else b"](" + values + b"e"

    def items(self, key: Callable[[], bytes]) -> bytes:
        content = b"".join(key() + self.any() for _ in range(self.draw.randrange(4)))
        return self.draw.choice([b"(" + content + b"d", b"}(" + content + b"u"])

    def collection(self) -> bytes:
        self.depth += 1
        made = [lambda: self.list_of(self.any), lambda: self.items(self.any), lambda: self.any() + b"\x85"]
        made += [
            lambda: self.any() + self.any() + b"\x86",
            lambda: b"\x8f(" + self.any() + self.any() + b"\x90",
        ]
        found = self.draw.choice(made)()
        self.depth -= 1
        return found

    def arguments(self, rule: rules.Rule) -> bytes:
        count = self.draw.randint(rule.least, len(rule.kinds))
        if rule.path.endswith("_rebuild_from_type_v2"):
            inner = self.draw.choice(rules._TENSOR_RULES)
            parts = [
                name(inner.path),
                name("torch.Tensor"),
                self.arguments(inner),
                self.argument(kinds.STATE),
            ]
        else:
            parts = [self.argument(kind) for kind in rule.kinds[:count]]
        return b"(" + b"".join(parts) + b"t"

    def call(self, rule: rules.Rule) -> bytes:
        self.depth += 1
        arguments = self.arguments(rule)
        self.depth -= 1
        ends = [b"R"] * 8 + [b"\x81", b"}\x92"]
        return name(rule.path) + arguments + self.draw.choice(ends if self.wrong else ends[:8])

    def any_call(self) -> bytes:
        return self.call(self.draw.choice(self.calls))

    def changed(self) -> bytes:
        """A value that is given items, members or a state."""
        made = self.draw.choice([self.any_call, self.any_call, self.collection, self.global_, self.known])()
        ways = [lambda: self.of_kind[kinds.STATE]() + b"b", lambda: self.any() + self.any() + b"s"]
        ways += [
            lambda: b"(" + self.any() + self.any() + b"u",
            lambda: self.any() + b"a",
            lambda: b"(" + self.any() + b"e",
        ]
        ways += [lambda: b"(" + self.any() + b"\x90"]
        return made + self.draw.choice(ways)()

    def repeated(self) -> bytes:
        """What costs little once, very often."""
        one, other = self.any() + self.put(), self.any() + self.put()
        last = self.stored - 1
        use = b"j" + struct.pack("<I", last - 1) + b"j" + struct.pack("<I", last)
        again = self.draw.choice(
            [use + b"\x85R", use + b"R", use + b"b", use + b"Ns", b"}" + use + b"s", use + b"\x86"]
        )
        return one + b"0" + other + b"0](" + again * self.draw.choice([10, 3000]) + b"e"

    def doubled(self) -> bytes:
        """A value and itself in a pair, and that in a pair, ..."""
        made = self.any()
        for _ in range(self.draw.choice([3, 60])):
            made += self.put()
            made += self.get(self.stored - 1) + b"\x86"
        return made


def program(draw: random.Random, first: bool = False) -> bytes:
    """A pickle by the grammar; some are damaged behind it."""
    made = b"\x80\x04" + Program(draw, first).any() + b"."
    if draw.random() < 0.3:
        content = bytearray(made)
        for _ in range(draw.choice([1, 1, 3])):
            at = draw.randrange(len(content) + 1)
            content[at : at + draw.randrange(3)] = draw.randbytes(draw.randrange(3))
        made = bytes(content)
    return made
