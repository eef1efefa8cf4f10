"""Find small edits of a source file that a good test detects, from its syntax tree.

Nothing of messages, documentation, types or reports on progress is changed: a test need not hold on to these.
"""

import ast
import random
import re
from dataclasses import dataclass

COMPARISONS = {
    ast.Lt: ("<", ["<=", ">="]),
    ast.LtE: ("<=", ["<", ">"]),
    ast.Gt: (">", [">=", "<="]),
    ast.GtE: (">=", [">", "<"]),
    ast.Eq: ("==", ["!="]),
    ast.NotEq: ("!=", ["=="]),
    ast.Is: ("is", ["is not"]),
    ast.IsNot: (r"is\s+not", ["is"]),
    ast.In: ("in", ["not in"]),
    ast.NotIn: (r"not\s+in", ["in"]),
}
ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
BINDS_OTHERWISE = (ast.Pow, ast.BitAnd, ast.BitOr)  # the exchanged operator has another precedence
OPPOSITES = [
    ("min", "max"),
    ("minimum", "maximum"),
    ("fmin", "fmax"),
    ("argmin", "argmax"),
    ("nanmin", "nanmax"),
    ("any", "all"),
    ("floor", "ceil"),
]
OPPOSITE = {a: b for pair in OPPOSITES for a, b in (pair, pair[::-1])}
SHOWN = ("__repr__", "__str__", "_repr_html_", "__format__")
SAYS = re.compile(r"^(print|warn|warn_explicit|debug|info|warning|error|exception|log|progress\w*|_?say\w*)$")
SILENT = re.compile(r"verbose|TYPE_CHECKING|__name__")


@dataclass(frozen=True)
class Mutant:
    """One change of one file.

    Attributes
    ----------
    file : str
        Path of the file, as it was given.
    kind : str
        Kind of the change: comparison, arithmetic, constant, ...
    start, end : int
        The bytes of the source that are replaced.
    text : str
        Text that replaces them.
    line : int
        Line where the change begins, from 1.
    first, last : int
        Lines of the statement, without the body of a compound one: a test that passes one of them may notice.
    in_function : bool
        Whether the statement runs when a function is called; otherwise it runs at import.
    original, mutated : str
        The changed lines before and after, with white space made single.
    """

    file: str
    kind: str
    start: int
    end: int
    text: str
    line: int
    first: int
    last: int
    in_function: bool
    original: str
    mutated: str

    @property
    def key(self):
        """Key that distinguishes it from the other mutants of the same source."""
        return (self.file, str(self.start), str(self.end), self.text)

    def apply(self, source):
        """Return the changed source."""
        data = source.encode()
        return (data[: self.start] + self.text.encode() + data[self.end :]).decode()


def mutants_of(source, file):
    """Return all mutants of a source text, in the order of their place.

    Parameters
    ----------
    source : str
    file : str
        Its path, for the mutants to carry.

    Returns
    -------
    list of Mutant
        Each parses, and differs from the source.
    """
    finder = _Finder(source, file)
    finder.visit(ast.parse(source))
    unique = {mutant.key: mutant for mutant in finder.found if _parses(mutant.apply(source))}
    return sorted(unique.values(), key=lambda mutant: (mutant.start, mutant.end, mutant.text))


def draw(mutants, count, seed):
    """Draw `count` mutants, from each package in proportion to its number of mutants.

    Parameters
    ----------
    mutants : dict of str to list of Mutant
        Per package.
    count : int
    seed : int
        A larger count with the same seed keeps what a smaller one drew of each package, up to rounding of the shares.

    Returns
    -------
    dict of str to list of Mutant
    """
    total = sum(map(len, mutants.values()))
    shares = {name: min(count, total) * len(found) / total for name, found in mutants.items() if found}
    sizes = {name: int(share) for name, share in shares.items()}
    by_remainder = sorted(shares, key=lambda name: (sizes[name] - shares[name], name))
    for name in by_remainder[: min(count, total) - sum(sizes.values())]:
        sizes[name] += 1
    drawn = {}
    for name, size in sizes.items():
        shuffled = list(mutants[name])
        random.Random(f"{seed} {name}").shuffle(shuffled)
        drawn[name] = shuffled[:size]
    return drawn


def one_line(text):
    """Return a text with single spaces."""
    return " ".join(text.split())


def _parses(source):
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


class _Finder(ast.NodeVisitor):
    """A visitor that collects the mutants of a tree, and skips the parts that stay unchanged."""

    def __init__(self, source, file):
        self.source, self.file, self.found = source.encode(), file, []
        self.line_starts = [0]
        for line in self.source.splitlines(keepends=True):
            self.line_starts.append(self.line_starts[-1] + len(line))
        self.statement, self.depth = None, 0

    # where

    def span(self, node):
        return (
            self.line_starts[node.lineno - 1] + node.col_offset,
            self.line_starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def text(self, start, end):
        return self.source[start:end].decode()

    def operator(self, left, right, pattern):
        """Return the bytes of the operator between two nodes, in brackets, blanks and comments."""
        start, end = self.span(left)[1], self.span(right)[0]
        gap = re.sub(rb"#[^\n]*", lambda comment: b" " * len(comment[0]), self.source[start:end])
        match = re.search(pattern.encode(), gap)
        return start + match.start(), start + match.end()

    def add(self, kind, start, end, text):
        before = self.line_starts[self.line_of(start) - 1]
        after = self.line_starts[self.line_of(max(start, end - 1))]
        first, last = _header(self.statement)
        self.found.append(
            Mutant(
                file=self.file,
                kind=kind,
                start=start,
                end=end,
                text=text,
                line=self.line_of(start),
                first=first,
                last=last,
                in_function=self.depth > 0,
                original=one_line(self.text(before, after)),
                mutated=one_line(self.text(before, start) + text + self.text(end, after)),
            )
        )

    def line_of(self, offset):
        return self.source.count(b"\n", 0, offset) + 1

    # what is visited

    def visit(self, node):
        if not isinstance(node, ast.stmt):
            super().visit(node)
            return
        around, self.statement = self.statement, node
        super().visit(node)
        self.statement = around

    def visit_FunctionDef(self, node):
        if node.name in SHOWN or any(_name(decorator) == "overload" for decorator in node.decorator_list):
            return
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(default)
        self.depth += 1
        for statement in node.body:
            self.visit(statement)
        self.depth -= 1

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node):
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(default)
        self.visit(node.body)

    def visit_ClassDef(self, node):
        for statement in node.body:
            self.visit(statement)

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node):
        if not all(isinstance(target, ast.Name) and target.id.startswith("__") for target in node.targets):
            self.generic_visit(node)

    def visit_Assert(self, node):
        self.visit(node.test)

    def leave_alone(self, node):
        """Skip messages, texts and imports."""

    visit_Raise = visit_JoinedStr = visit_Import = visit_ImportFrom = leave_alone

    # what is changed

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Constant) or (isinstance(node.value, ast.Call) and _says(node.value)):
            return
        if isinstance(node.value, ast.Call):
            self.add("statement", *self.span(node), "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node):
        self.add("statement", *self.span(node), "pass")
        symbol, other = ARITHMETIC.get(type(node.op), (None, None))
        if symbol is not None and not _is_text(node.value):
            self.add("arithmetic", *self.operator(node.target, node.value, re.escape(symbol)), other)
        self.generic_visit(node)

    def visit_Return(self, node):
        if node.value is None:
            return
        if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self.add("return", *self.span(node), "return None")
        self.visit(node.value)

    def visit_If(self, node):
        if SILENT.search(ast.unparse(node.test)):
            for statement in node.orelse:
                self.visit(statement)
            return
        self.negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node):
        self.negate(node.test)
        self.generic_visit(node)

    visit_IfExp = visit_While

    def negate(self, test):
        """Add `not` before a condition, unless a change of its only operator does the same."""
        alone = isinstance(test, ast.Compare) and len(test.ops) == 1
        if not (alone or isinstance(test, (ast.Constant, ast.NamedExpr)) or _is_not(test)):
            start, end = self.span(test)
            self.add("condition", start, end, f"not ({self.text(start, end)})")

    def visit_Compare(self, node):
        for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators):
            pattern, others = COMPARISONS[type(op)]
            place = self.operator(left, right, pattern)
            for other in others:
                self.add("comparison", *place, other)
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        start, end = self.span(node)
        parts, done = [], start
        for left, right in zip(node.values, node.values[1:]):
            a, b = self.operator(left, right, rf"\b{word}\b")
            parts.append(self.text(done, a) + other)
            done = b
        self.add("and/or", start, end, f"({''.join(parts)}{self.text(done, end)})")
        self.generic_visit(node)

    def visit_BinOp(self, node):
        symbol, other = ARITHMETIC.get(type(node.op), (None, None))
        if symbol is not None and not (_is_text(node.left) or _is_text(node.right)):
            a, b = self.operator(node.left, node.right, re.escape(symbol))
            if isinstance(node.op, BINDS_OTHERWISE):
                start, end = self.span(node)
                self.add("arithmetic", start, end, f"({self.text(start, a)}{other}{self.text(b, end)})")
            else:
                self.add("arithmetic", a, b, other)
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        word, kind = {ast.Not: ("not", "condition"), ast.USub: ("-", "sign")}.get(type(node.op), (None, None))
        if word is not None:
            start, end = self.span(node)
            self.add(kind, start, end, self.text(start, end).removeprefix(word).lstrip())
        self.generic_visit(node)

    def visit_Call(self, node):
        name = _name(node.func)
        if name in OPPOSITE:
            end = self.span(node.func)[1]
            self.add("opposite", end - len(name), end, OPPOSITE[name])
        self.generic_visit(node)

    def visit_Constant(self, node):
        value = node.value
        if isinstance(value, bool):
            others = [not value]
        elif isinstance(value, (int, float)):
            others = [type(value)(1 - value)] if value in (0, 1) else [value + 1, value - 1]
        else:
            others = []
        start, end = self.span(node)
        for other in others:
            text = f"({other!r})" if other < 0 else repr(other)
            self.add("constant", start, end, text)


def _header(statement):
    """Return the first and last line of a statement without the statements inside it."""
    inside = [child.lineno for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt)]
    last = max(statement.lineno, min(inside) - 1) if inside else statement.end_lineno
    return statement.lineno, last


def _name(node):
    """Return the last part of a dotted name, or "" for another expression."""
    return getattr(node, "attr", getattr(node, "id", ""))


def _says(call):
    """Return True if a call only shows a message."""
    return bool(SAYS.match(_name(call.func)))


def _is_not(node):
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _is_text(node):
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
