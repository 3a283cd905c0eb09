"""Reads pickles by an explicit rule for each opcode: what stands between mica.load() and a stranger.

Note [Pickles of strangers]
A pickle is a program for a machine with a stack and a memo. This machine knows the opcodes that
build numbers, texts and containers, and asks its subclass for everything else: what a name stands
for, what a call gives, what a state does to an object. So the rules for objects lie in one table
(_pickle_rules.py), and nothing here imports, calls or sets an attribute.

Time and memory are linear in the pickle's length. Each opcode costs at most its own bytes, except
where an object of the memo is used again at more than a fixed cost: as a key, whose hash reads all
of it, or as what a call copies. Those spend from a budget that is a multiple of the length.
"""

from __future__ import annotations

import functools
import pickle
import pickletools
import struct
from collections.abc import Callable
from typing import Any, NoReturn

STEPS_PER_BYTE, FREE_STEPS = 16, 1 << 16
DEEPEST_KEY = 64  # tuples in tuples: hash() recurses in C
CROWD = 100  # keys of one hash in one container: each costs as many comparisons as came before it
LONGEST_NUMBER = 4300  # digits, as Python's own limit
WAY_OUT = (
    " Load it with weights_only=False only if you trust who made it: the file then runs code as it likes."
)

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
    """Runs one pickle, which begins at `start` of the content. Subclasses give meaning to names and calls."""

    opcodes: dict[str, Callable[[Any], None]] = {}  # a subclass's own

    def __init__(
        self, content: bytes, name: str, *, encoding: str = "utf-8", record: str = "data.pkl"
    ) -> None:
        self.content, self.at, self.encoding = content, 0, encoding
        self.name, self.record = name, record
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self._left = STEPS_PER_BYTE * len(content) + FREE_STEPS
        self._crowds: dict[int, tuple[Any, dict[str, int]]] = {}
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
        from mica._pickle_opcodes import OPCODES, unknown

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

    # ---- keys
    def check_key(self, key: Any, owner: Any) -> None:
        """Refuses what hashes or compares at a cost beyond its bytes, and what is no value."""
        kind = type(key)
        if kind is str or kind is bytes:
            self.spend(len(key) >> 6)
        elif kind not in _PLAIN_KEYS:
            if kind is int:
                if -(1 << 60) < key < 1 << 60:
                    return
                self.spend(key.bit_length() >> 6)
            else:
                self._check_parts(key)
            self._check_crowd(key, owner)

    def _check_parts(self, key: Any) -> None:
        """Walks the tree of a key that is a tuple or a set: shared parts count each time, as in hash()."""
        rest = [(key, 0)]
        while rest:
            value, depth = rest.pop()
            kind = type(value)
            self.spend(1)
            if kind in (str, bytes):
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

    def is_size(self, value: Any) -> bool:
        """Whether a value is a tuple of the library's own."""
        return False

    def is_key(self, value: Any) -> bool:
        """Whether a value that is no number, text or tuple may be a key: its hash must have a fixed cost."""
        return False

    def _check_crowd(self, key: Any, owner: Any) -> None:
        """Refuses many keys of one hash, which a file can choose for numbers, in one container."""
        _, crowd = self._crowds.setdefault(id(owner), (owner, {}))
        place = str(hash(key))  # as a text: its own hash is nobody's to choose
        crowd[place] = crowd.get(place, 0) + 1
        if crowd[place] > CROWD:
            self.refuse(f"more than ({CROWD}) keys of one container have one hash.", WAY_OUT)

    # ---- reading
    def far(self, number: int) -> NoReturn:
        """Refuses a place of the memo that no pickle of this length has."""
        self.refuse(f"the pickle numbers an object ({shown(number)}) beyond its own length.")

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

    def number(self) -> int:
        """The decimal number of a line."""
        text = self.line()
        if len(text) > LONGEST_NUMBER:
            self.refuse(f"a number has ({len(text)}) digits.")
        return int(text)

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
