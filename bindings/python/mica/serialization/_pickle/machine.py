"""Reads pickles by an explicit rule for each opcode: what stands between mica.load() and a stranger.

Note [Pickles of strangers]
A pickle is a program for a machine with a stack and a memo. This machine knows the opcodes that
build numbers, texts and containers, and asks its subclass for everything else: what a name stands
for, what a call gives, what a state does to an object. So the rules for objects lie in one table
(serialization/_pickle/rules.py), and nothing here imports, calls or sets an attribute.

Time and memory are linear in the pickle's length. Each opcode costs at most its own bytes, except
where an object of the memo is used again at more than a fixed cost: as a key, whose hash reads all
of it, or as what a call copies; and where keys collide (serialization/_pickle/slots.py). Those spend from a budget
that is a multiple of the length.
"""

from __future__ import annotations

import functools
import pickle
import pickletools
import struct
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NoReturn

from mica.serialization._pickle.slots import TEXTS, Slots

STEPS_PER_BYTE, FREE_STEPS = 16, 1 << 16
DEEPEST_KEY = 64  # tuples in tuples: hash() recurses in C
FREE_KEYS = 1024  # of one container: that many cost little, however they collide
DEEPEST_DEFAULTS = 500  # default dictionaries right in one another: CPython frees them by recursion in C
LONGEST_NUMBER = 4300  # digits, as Python's own limit
WAY_OUT = (
    " Load it with weights_only=False only if you trust who made it: the file then runs code as it likes."
)

ABSENT = object()  # what the memo has where nothing was put
_PLAIN_KEYS = frozenset([type(None), bool, float])
_DAMAGE = (IndexError, KeyError, TypeError, ValueError, OverflowError, RecursionError, struct.error)


_CODES = {op.name: op.code for op in pickletools.opcodes}


class Refused(pickle.UnpicklingError):
    """The file is damaged, or asks for what is not allowed; the text says which."""


class Cut(Refused):
    """The pickle goes on behind the bytes that are there."""


class Foreign(Exception):
    """Carries an error of the user's own function through the machine."""


def shown(value: Any) -> str:
    """A value of a file in some words, at a fixed cost: repr() of shared tuples takes for ever."""
    kind = type(value)
    if kind in (str, bytes):
        return repr(value[:60]) + ("..." if len(value) > 60 else "")
    if kind is int and value.bit_length() > 64:
        return f"an integer of {value.bit_length()} bits"
    if kind in (int, float, bool, type(None)):
        return repr(value)
    if isinstance(value, type):
        return f"the class ({value.__name__:.60})"
    if kind in (tuple, list) and len(value) <= 6 and all(type(v) in (int, str, bool) for v in value):
        return f"{kind.__name__} of {', '.join(map(shown, value)) or 'nothing'}"
    return f"an object of type ({kind.__name__})"


class Machine:
    """Runs one pickle, with which the content begins. Subclasses give meaning to names and calls."""

    opcodes: dict[str, Callable[[Any], None]] = {}  # a subclass's own

    def __init__(
        self, content: bytes, name: str, *, encoding: str = "utf-8", record: str = "data.pkl"
    ) -> None:
        self.content, self.at, self.encoding = content, 0, encoding
        self.name, self.record = name, record
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: list[Any] = []  # a list: a file could choose numbers that collide in a dictionary
        self.holes = 0  # places of the memo where nothing was put
        self._left = STEPS_PER_BYTE * len(content) + FREE_STEPS
        self._slots: dict[int, tuple[Any, Slots]] = {}
        self._defaults: dict[int, list[Any]] = {}
        self._begin = 0  # of the opcode

    # ---- what subclasses say
    def find_global(self, path: str) -> Any:
        """What a name stands for."""
        self.refuse("a name stands where plain data is expected.")

    def call(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """What REDUCE makes."""
        self.refuse("a call stands where plain data is expected.")

    def new(self, cls: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """What NEWOBJ and NEWOBJ_EX make."""
        self.refuse("a new object stands where plain data is expected.")

    def build(self, made: Any, state: Any) -> None:
        """What BUILD does to an object."""
        self.refuse("a state stands where plain data is expected.")

    def persistent(self, pid: Any) -> Any:
        """What a persistent id stands for."""
        self.refuse("a storage stands where plain data is expected.")

    def container(self, made: Any, kinds: tuple[type, ...]) -> bool:
        """Whether items may be put into an object."""
        return type(made) in kinds

    @classmethod
    @functools.cache
    def rules_of_bytes(cls) -> list[Callable[[Any], None]]:
        """The rule of each byte; those in `opcodes` of a subclass come before those of all."""
        from mica.serialization._pickle.opcodes import OPCODES, unknown

        rules: list[Callable[[Any], None]] = [unknown] * 256
        for name, rule in {**OPCODES, **cls.opcodes}.items():
            rules[ord(_CODES[name])] = rule
        return rules

    # ---- running
    def load(self) -> Any:
        """The object that the pickle makes; `at` then stands behind it."""
        content, steps = self.content, self.rules_of_bytes()
        try:
            while True:
                self._begin = at = self.at
                code = content[at]
                self.at = at + 1
                if code == 0x2E:  # STOP
                    return self.stack.pop()
                steps[code](self)
        except Foreign as error:
            raise error.args[0] from None
        except Refused:
            raise
        except _DAMAGE as error:
            self._damaged(error)

    def _damaged(self, error: Exception) -> NoReturn:
        if isinstance(error, struct.error) or (
            isinstance(error, IndexError) and self.at >= len(self.content)
        ):
            self.cut()
        said = {IndexError: "the stack has too few objects", KeyError: "the memo has no such object"}
        raise Refused(
            self._told(said.get(type(error), f"{type(error).__name__}: {str(error)[:200]}"))
        ) from error

    def refuse(self, sentence: str, way_out: str = "") -> NoReturn:
        """Raises, with the place in the file."""
        raise Refused(self._told(sentence) + way_out)

    def _told(self, sentence: str) -> str:
        place = f"at byte ({self._begin}) of ({self.record})"
        opcode = ""
        if self._begin < len(self.content):
            known = pickletools.code2op.get(chr(self.content[self._begin]))
            opcode = (
                f", opcode {known.name}"
                if known
                else f", byte {self.content[self._begin]:#04x} for an opcode"
            )
        end = "" if sentence.endswith((".", "!", "?")) else "."
        if self._begin == 0:
            end += " It is none that mica.save() or torch.save() wrote."
        return f"Weights only load failed: the file ({self.name}) is damaged or hostile {place}{opcode}: {sentence}{end}"

    def cut(self) -> NoReturn:
        """Refuses a pickle that goes on behind its bytes."""
        raise Cut(self._told("the pickle ends within it, so the file was cut short."))

    def spend(self, steps: int) -> None:
        """Counts work beyond what the opcode's own bytes pay for."""
        self._left -= steps
        if self._left < 0:
            self.refuse(
                f"building the object takes more than the ({STEPS_PER_BYTE * len(self.content) + FREE_STEPS}) steps that "
                f"a pickle of ({len(self.content)}) bytes has; it uses large objects again and again.",
                WAY_OUT,
            )

    # ---- what containers hold
    def put(self, made: Any, key: Any, value: Any) -> None:
        """Puts a key and its value into a dictionary."""
        if type(key) is not str or len(key) > 64:
            self.check_key(key, made)
        if type(value) is defaultdict and type(made) is defaultdict:
            self._check_depth(made, value)
        made[key] = value

    def members(self, items: Any) -> set[Any]:
        """A set of what may be members."""
        made: set[Any] = set()
        for item in items:
            self.check_key(item, made)
            made.add(item)
        return made

    def check_key(self, key: Any, owner: Any) -> None:
        """Pays for a key that is about to be put into a dictionary or set, and refuses what is no value."""
        kind = type(key)
        if kind in TEXTS:
            self.spend(len(key) >> 6)
            return
        cost = 1
        if kind is int:
            cost += key.bit_length() >> 6
            self.spend(cost - 1)
        elif kind not in _PLAIN_KEYS:
            cost = self._check_parts(key)
        if cost * len(owner) > FREE_KEYS:
            _, slots = self._slots.get(id(owner)) or self._slots.setdefault(
                id(owner), (owner, Slots(owner, self.spend))
            )
            slots.put(key, cost)

    def _check_parts(self, key: Any) -> int:
        """Walks the tree of a key that is a tuple or a set: shared parts count each time, as in hash()."""
        before = self._left
        rest = [(key, 0)]
        while rest:
            value, depth = rest.pop()
            kind = type(value)
            self.spend(1)
            if kind in TEXTS:
                self.spend(len(value) >> 6)
            elif kind is int:
                self.spend(value.bit_length() >> 6)
            elif kind in (tuple, frozenset) or self.is_size(value):
                if depth == DEEPEST_KEY:
                    self.refuse(f"a key has tuples within tuples, more than ({DEEPEST_KEY}) deep.", WAY_OUT)
                self.spend(len(value))
                rest += [(part, depth + 1) for part in value]
            elif kind not in _PLAIN_KEYS and kind is not complex and not self.is_key(value):
                self.refuse(f"a key or a member of a set is {shown(value)}.", WAY_OUT)
        return before - self._left

    def is_size(self, value: Any) -> bool:
        """Whether a value is a tuple of the library's own."""
        return False

    def is_key(self, value: Any) -> bool:
        """Whether a value that is no number, text or tuple may be a key: its hash must have a fixed cost."""
        return False

    def _check_depth(self, made: Any, value: Any) -> None:
        """Refuses default dictionaries right in one another without end. They are filled before they are
        put into others, as pickle does it, so that their depth is known by then."""
        outer = self._defaults.setdefault(id(made), [made, 0, False])
        inner = self._defaults.setdefault(id(value), [value, 0, False])
        outer[1], inner[2] = max(outer[1], inner[1] + 1), True
        if outer[2] or outer[1] > DEEPEST_DEFAULTS:
            self.refuse(
                f"a defaultdict holds itself, or others within others more than ({DEEPEST_DEFAULTS}) deep.",
                WAY_OUT,
            )

    # ---- reading
    def remember(self, number: int) -> None:
        """Puts the object on top of the stack into the memo."""
        memo = self.memo
        if not 0 <= number <= len(self.content):
            self.refuse(f"the pickle numbers an object ({shown(number)}) beyond its own length.")
        if number >= len(memo):
            self.holes += number + 1 - len(memo)
            memo.extend([ABSENT] * (number + 1 - len(memo)))
        value = self.stack[-1]
        self.holes -= memo[number] is ABSENT
        memo[number] = value

    def recalled(self, number: int) -> Any:
        """An object of the memo."""
        if not 0 <= number < len(self.memo) or self.memo[number] is ABSENT:
            raise KeyError(number)
        return self.memo[number]

    def take(self, count: int) -> bytes:
        """The next bytes."""
        at = self.at
        end = at + count
        if end > len(self.content):
            self.cut()
        self.at = end
        return self.content[at:end]

    def line(self) -> bytes:
        """The rest of the line."""
        at = self.at
        end = self.content.find(b"\n", at)
        if end < 0:
            self.at = len(self.content)
            self.cut()
        self.at = end + 1
        return self.content[at:end]

    def digits(self, suffix: bytes = b"") -> bytes:
        """A line that is to be read as a number, without the suffix."""
        text = self.line().removesuffix(suffix)
        if len(text) > LONGEST_NUMBER:
            self.refuse(f"a number has ({len(text)}) digits.")
        return text

    def number(self) -> int:
        """The decimal number of a line."""
        return int(self.digits())

    def counted(self, width: int) -> bytes:
        """The bytes whose number comes first, in `width` bytes."""
        return self.take(int.from_bytes(self.take(width), "little"))

    def marked(self) -> list[Any]:
        """What lies above the last mark."""
        items = self.stack
        self.stack = self.below.pop()
        return items

    def text(self, content: bytes) -> Any:
        """A text of Python 2, which does not tell its encoding."""
        return content if self.encoding == "bytes" else content.decode(self.encoding)
