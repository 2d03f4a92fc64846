# SPDX-License-Identifier: BSD-3-Clause
"""Finds what can be broken in a C source and rewrites it so that each break can be switched on at
run time (mutant.h). No C parser: it leans on the project's own formatting and on its plain style.
Lines keep their numbers."""
import re

TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|^[ \t]*\#(?:\\\n|[^\n])*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'
                       |[A-Za-z_]\w*|\.?\d[\w.]*|->|\+\+|--|<<=|>>=|&&|\|\||[<>=!+\-*/%&|^]=|<<|>>
                       |\s+|.""", re.S | re.M | re.X)
OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
ASSIGN = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
COMPARE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
HINTS = {"likely", "unlikely"}
# Statements that are no part of what the code does: checks on ourselves, counts, hints, and what
# is given back to the heap at the end (the sanitizers' work).
SKIPPED = re.compile(r"^(ASSERT|MACHINE_STEP|_Static_assert|static_assert|static|LOG\w*|"
                     r"log_\w+|count|count_n|call_note|sem_note|note_call|v2p_count_error|\w*prefetch\w*|rte_free|free|"
                     r"__atomic_thread_fence|_mm_sfence|va_\w+)$")


class Point:
    """A place, and what it can be broken to: (what, the mutant's number, the answers that a test
    must have seen there for it to notice: bits of what mutant.h records)."""

    def __init__(self, number, file, line, function, text):
        self.number, self.file, self.line = number, file, line
        self.function, self.text, self.breaks = function, text, []

    def is_at(self, place):
        """`place`: the end of a path, with :LINE or without."""
        return f"{self.file}:{self.line}".endswith(place) or self.file.endswith(place)


class Source:
    def __init__(self, name, text, first, stores=False):
        self.name, self.points, self.first, self.stores = name, [], first, stores
        self.tokens = []  # [text, line]
        line = 1
        for t in TOKEN.findall(text):
            self.tokens.append([t, line])
            line += t.count("\n")
        # Indices of tokens that count: no blanks, comments, preprocessor lines.
        self.code = [i for i, (t, _) in enumerate(self.tokens)
                     if not (t.isspace() or t.startswith(("/*", "//")) or t.lstrip().startswith("#"))]
        self.function = ""
        self.rewrites = {}  # index of token: [before, after]

    def text(self, k):
        return self.tokens[self.code[k]][0]

    def plain(self, a, b):
        raw = "".join(" " if t.startswith(("/*", "//")) else t
                      for t, _ in self.tokens[self.code[a]:self.code[b - 1] + 1])
        return " ".join(raw.split())

    def match(self, k):
        depth = 0
        while True:
            t = self.text(k)
            depth += t in OPEN
            depth -= t in CLOSE
            if depth == 0:
                return k
            k += 1

    def around(self, a, b, before, after):
        self.rewrites.setdefault(self.code[a], [[], []])[0].append(before)
        self.rewrites.setdefault(self.code[b - 1], [[], []])[1].insert(0, after)

    def point(self, a, b):
        p = Point(self.first + len(self.points), self.name, self.tokens[self.code[a]][1],
                  self.function, self.plain(a, b))
        self.points.append(p)
        return p

    # Expressions: [a, b) of self.code.

    def top(self, a, b):
        """The tokens between a and b that are in no inner brackets."""
        k = a
        while k < b:
            yield k
            k = self.match(k) + 1 if self.text(k) in OPEN else k + 1

    def split(self, a, b, at):
        parts, start = [], a
        for k in self.top(a, b):
            if self.text(k) in at:
                parts.append((start, k))
                start = k + 1
        return parts + [(start, b)]

    def strip(self, a, b):
        """Without the brackets, or the hint, around all of it."""
        while a < b:
            if self.text(a) == "(" and self.match(a) == b - 1:
                a, b = a + 1, b - 1
            elif self.text(a) in HINTS and self.match(a + 1) == b - 1:
                a, b = a + 2, b - 1
            else:
                break
        return a, b

    def force(self, a, b, answers=(0, 1)):
        p = self.point(a, b)
        for answer in answers:
            p.breaks.append(("forced true" if answer else "forced false", 2 * p.number + answer,
                             1 if answer else 2))
        self.around(a, b, f"MUTANT_IF({p.number}, ", ")")

    def boundary(self, a, b):
        found = [k for k in self.top(a, b) if self.text(k) in COMPARE]
        if len(found) != 1 or any(self.text(k) in ("==", "!=") for k in self.top(a, b)):
            return
        k = found[0]
        op, other = self.text(k), COMPARE[self.text(k)]
        p = self.point(a, b)
        p.breaks.append((f"{op} to {other}", 2 * p.number, 1))
        self.around(a, b, f"MUTANT_COMPARE({p.number}, ", ")")
        self.tokens[self.code[k]][0] = f", {op}, "
        self.rewrites.setdefault(self.code[b - 1], [[], []])[1].insert(0, f", {other}")

    def constant(self, a, b):
        return b - a == 1 and (self.text(a) in ("true", "false", "NULL") or self.text(a)[0].isdigit())

    def expression(self, a, b, condition):
        """`condition`: whether its being true or false is all that matters."""
        a, b = self.strip(a, b)
        if a >= b:
            return
        question = next((k for k in self.top(a, b) if self.text(k) == "?"), None)
        if question is not None:
            colon, depth = question + 1, 0
            for k in self.top(question + 1, b):
                depth += self.text(k) == "?"
                if self.text(k) == ":":
                    if depth == 0:
                        colon = k
                        break
                    depth -= 1
            self.expression(a, question, True)
            self.expression(question + 1, colon, condition)
            self.expression(colon + 1, b, condition)
            return
        for op, answer in (("||", 0), ("&&", 1)):
            parts = self.split(a, b, {op})
            if len(parts) > 1:
                self.force(a, b)
                for x, y in parts:
                    self.operand(x, y, answer)
                return
        if not condition and any(self.text(k) in ("==", "!=", *COMPARE) for k in self.top(a, b)):
            condition = True
        if condition and not self.constant(a, b):
            self.force(a, b)
        if condition:
            self.boundary(a, b)
        self.inner(a, b)

    def operand(self, x, y, answer):
        """One side of && (answer 1) or ||: the answer that takes it out; the other one is the same
        as forcing the whole."""
        a, b = self.strip(x, y)
        self.force(a, b, (answer,))
        for op, inner in (("||", 0), ("&&", 1)):
            parts = self.split(a, b, {op})
            if len(parts) > 1:
                for p in parts:
                    self.operand(*p, inner)
                return
        self.boundary(a, b)
        self.inner(a, b)

    def inner(self, a, b):
        for k in self.top(a, b):
            if self.text(k) in ("(", "["):
                for x, y in self.split(k + 1, self.match(k), {","} | ASSIGN):
                    self.expression(x, y, False)

    # Statements.

    def statement(self, a, b):
        """A simple one, without its semicolon at b."""
        while a < b and (self.text(a) in ("case", "default") or
                         (a + 1 < b and self.text(a + 1) == ":")):
            a = next((k for k in range(a, b) if self.text(k) == ":"), b) + 1
        if a >= b or SKIPPED.match(self.text(a)):
            return
        if self.text(a) == "return":
            truth = self.is_bool and not any(self.text(k) == "{" for k in range(a, b))
            return self.expression(a + 1, b, truth)
        call = a + 3 if self.text(a) == "(" and self.text(a + 1) == "void" else a
        if (call + 1 < b and re.match(r"[A-Za-z_]\w*$", self.text(call)) and
                self.text(call + 1) == "(" and self.match(call + 1) == b - 1 and
                not SKIPPED.match(self.text(call))):
            p = self.point(a, b)
            p.breaks.append(("not called", 2 * p.number, 1))
            self.inner(call + 1, b)
            return self.around(a, b + 1, f"{{ if (mutant_call({p.number})) ", " }")
        for x, y in self.split(a, b, {","} | ASSIGN):
            if x < y:
                self.part(x, y)
        if self.stores and self.is_store(a, b):
            p = self.point(a, b)
            p.breaks.append(("not stored", 2 * p.number, 1))
            self.around(a, b + 1, f"{{ if (mutant_call({p.number})) ", " }")

    def is_store(self, a, b):
        """Assigns to what is there already: no declaration."""
        first = next((k for k in self.top(a, b) if self.text(k) in ASSIGN | {"++", "--"}), None)
        return first is not None and self.text(a) != "_Alignas" and (
            self.text(a) == "*" or a + 1 >= first or self.text(a + 1) in ("->", ".", "[", "("))

    def part(self, a, b):
        """A side of an assignment: initialisers in braces are looked into."""
        braces = [k for k in self.top(a, b) if self.text(k) == "{"]
        if not braces:
            if any(self.text(k) in ("&&", "||", "?", "==", "!=", *COMPARE)
                   for k in self.top(a, b)):
                return self.expression(a, b, False)
            return self.inner(a, b)
        for k in braces:
            for x, y in self.split(k + 1, self.match(k), {","} | ASSIGN):
                if x < y:
                    self.part(x, y)

    def body(self, k, end):
        """The statements from k to the closing brace at end."""
        while k < end:
            t = self.text(k)
            if t in ("if", "while", "switch"):
                close = self.match(k + 1)
                if not self.constant(*self.strip(k + 2, close)):
                    self.expression(k + 2, close, t != "switch")
                k = close + 1
            elif t == "for":
                close = self.match(k + 1)
                parts = self.split(k + 2, close, {";"})
                if len(parts) == 3 and parts[1][0] < parts[1][1]:
                    self.expression(*parts[1], True)
                k = close + 1
            elif "FOREACH" in t or "FOR_EACH" in t:
                k = self.match(k + 1) + 1
            elif t in ("{", "}", ";", "else", "do"):
                k += 1
            else:
                stop = next(j for j in self.top(k, end + 1) if self.text(j) in (";", "}"))
                # "case X: {" has no semicolon of its own.
                label = next((j for j in self.top(k, stop) if self.text(j) == "{"), None)
                if label is not None and self.text(label - 1) == ":":
                    k = label + 1
                    continue
                # "case X:" before an if, while and the like.
                if t in ("case", "default") or self.text(k + 1) == ":":
                    k = next(j for j in range(k, stop) if self.text(j) == ":") + 1
                    continue
                self.statement(k, stop)
                k = stop + 1

    def mutate(self):
        """Finds all points; returns the source with them in."""
        k = 0
        while k < len(self.code):
            if self.text(k) == "{":
                end = self.match(k)
                if self.text(k - 1) == ")":
                    start = k - 1
                    while self.text(start) != "(" or self.match(start) != k - 1:
                        start -= 1
                    self.function = self.text(start - 1)
                    self.is_bool = self.text(start - 2) == "bool"
                    self.body(k + 1, end)
                k = end
            k += 1
        out = []
        for i, (t, _) in enumerate(self.tokens):
            before, after = self.rewrites.get(i, ((), ()))
            out += [*before, t, *after]
        return "".join(out)
