"""svmlight files with several labels per row: `1,3 5:0.25 7:1 # comment`.

What columns count from, 0 or 1, is said by the file's first line, by the reader's options, or by the model that the file
is for. Else a 0 among them shows it; where none occurs they are taken to count from 1, and a warning says that this is a
guess. A first line of three integers, as in the extreme classification repository, gives the numbers of rows, features and
labels, which then count from 0. What we write begins with a comment `# rbrl: {…}` with sizes and names, which other
programs skip.
"""

import json
import re
import warnings
from dataclasses import replace

import numpy as np
from scipy import sparse

from rbrl.datasets.dataset import Dataset
from rbrl.datasets.formats.table import check_writable, json_names
from rbrl.datasets.formats.text import bad, dense_labels, line_blocks, quote, read_text, streaming_text, writing_text
from rbrl.datasets.formats.values import SVMLIGHT, number, read_pairs, repeated_row, spell
from rbrl.datasets.names import find_names
from rbrl.exceptions import DataFormatError, GuessWarning

MARK = "# rbrl: "
MAX_INDEX = 2**31 - 2
PARTS = (("", "s"), ("first_", "=0"))  # of a word that names columns, and of the option about it
FEATURE_0 = re.compile(r"(?<!\S)0+:")


def read_svmlight(path, options):
    """Read a multi-label svmlight file; see the module's text."""
    _check_options(path, options)
    return read_text(path, lambda stream: _dataset(path, stream, options), options)


def svmlight_blocks(path, options, model, size):
    """Yield X, at most `size` rows at a time. Where neither file nor model say what features count from, a pass over the
    file looks for a feature 0.
    """
    _check_options(path, options)
    with streaming_text(path, options) as stream:
        head = _head(path, stream.readline())
    _check_said(path, head, options)
    if not head:
        base = model.first_feature if options.first_feature is None else options.first_feature
        base = _seen_base(path, options) if base is None else base
        head = {"n_features": model.n_features, "said": "that there should be", "feature_base": base}
    order = _order(path, head, model)
    with streaming_text(path, options) as stream:
        for texts, numbers, first in _blocks(stream, size):
            if "n_rows" in head and first:
                texts, numbers = texts[1:], numbers[1:]
            if texts:
                rows = [_labels(path, text, line)[1] for text, line in zip(texts, numbers)]
                X = _matrix(path, numbers, "feature", *_pairs(path, rows, numbers), head)
                yield X if order is None else X[:, order]


def _seen_base(path, options):
    with streaming_text(path, options) as stream:
        if any(FEATURE_0.search(text) for texts, _, _ in _blocks(stream) for text in texts):
            return 0
    _say_guess(path, ["feature"])
    return 1


def _order(path, head, model):
    """Where the features of the model are, if the names in the first line tell."""
    if head["n_features"] != model.n_features:
        raise bad(path, f"it has {head['n_features']} features; there should be {model.n_features}")
    try:
        return find_names("feature", head.get("feature_names"), model.feature_names, "x")
    except DataFormatError as error:
        raise bad(path, str(error)) from error


def _check_options(path, options):
    if options.labels is not None:
        raise bad(path, f"a svmlight file has its labels in front; got labels={options.labels!r}")


def _check_said(path, head, options):
    """What the reader was told must not contradict what the file says."""
    for what in ("feature", "label"):
        said, told = head.get(f"{what}_base"), getattr(options, f"first_{what}")
        if None not in (said, told) and said != told:
            raise bad(path, f"by its first line, {what}s count from {said}; got first_{what}={told}", 1)


def write_svmlight(dataset, path):
    """Write a svmlight file; names go into a comment. Missing values cannot be written."""
    check_writable(dataset, path, missing=False)
    if not dataset.n_features:
        raise bad(path, f"a svmlight file needs features; got {dataset.n_features}")
    X, Y = sparse.csr_array(dataset.X, copy=True), sparse.csr_array(dataset.Y)
    X.eliminate_zeros()
    head = {"n_features": dataset.n_features, "n_labels": dataset.n_labels, **json_names(dataset)}
    with writing_text(path) as stream:
        stream.write(f"{MARK}{json.dumps(head)}\n")
        for i in range(dataset.n_samples):
            labels, row = Y.indices[Y.indptr[i] : Y.indptr[i + 1]], slice(X.indptr[i], X.indptr[i + 1])
            pairs = [f" {j + 1}:{spell(v)}" for j, v in zip(X.indices[row].tolist(), X.data[row].tolist())]
            if not len(labels) and not pairs:
                pairs = [" 1:0"]  # a blank line would not be a row
            stream.write(",".join(map(str, labels.tolist())) + "".join(pairs) + "\n")


def scan_svmlight(path, options):
    """What `ReadOptions` should tell about each part of a file, and how many lines to skip: a pass with bounded memory."""
    return read_text(path, lambda stream: _scan(path, stream, options), options)


def _scan(path, stream, options):
    head, ranges, first_block = {}, {"feature": [], "label": []}, True
    for found, rows, (indexes, _, _), _ in _parsed(path, stream):
        head = found if first_block else head
        first_block = False
        tags = [label for row in rows for label in row]
        for what, numbers in (("feature", indexes), ("label", np.array(tags, dtype=np.int64))):
            ranges[what] += [numbers.min(), numbers.max()] if len(numbers) else []
    _check_said(path, head, options)
    whole = _settled(path, head or _told(path, replace(options, part=False)), ranges)
    told = {f"first_{what}": whole[f"{what}_base"] for what in ranges}
    told |= {f"n_{what}s": whole.get(f"n_{what}s") or _size(ranges[what], whole[f"{what}_base"]) for what in ranges}
    return told, 1 if "n_rows" in head else 0


def _settled(path, head, numbers):
    """What is known of the file, with the base of its columns: known already, or as the numbers in it show."""
    unknown = [what for what in numbers if head.get(f"{what}_base") is None]
    bases = {what: 1 if len(numbers[what]) and np.min(numbers[what]) >= 1 else 0 for what in unknown}
    _say_guess(path, [what for what in unknown if bases[what]])
    return {**head, **{f"{what}_base": base for what, base in bases.items()}}


def _say_guess(path, guessed):
    if guessed:
        names, options = (" and ".join(f"{before}{what}{after}" for what in guessed) for before, after in PARTS)
        warnings.warn(
            f"{path}: its {names} are taken to count from 1, because none is 0; if they count from 0, pass {options}.",
            GuessWarning,
            stacklevel=2,
        )


def _size(numbers, base):
    return int(np.max(numbers, initial=base - 1)) + 1 - base


def _parsed(path, stream):
    """Yield blocks of (what the first line says, label sets, (indexes, values, counts), line numbers)."""
    head = {}
    for texts, numbers, first in _blocks(stream):
        head = _head(path, first) if first else head
        if "n_rows" in head and first:
            texts, numbers = texts[1:], numbers[1:]
        parts = [_labels(path, text, line) for text, line in zip(texts, numbers)]
        pairs = _pairs(path, [features for _, features in parts], numbers)
        yield head, [labels for labels, _ in parts], pairs, numbers


def _dataset(path, stream, options):
    head, rows, blocks, lines = {}, [], [], []
    for head, labels, pairs, numbers in _parsed(path, stream):  # noqa: B007
        rows += labels
        blocks.append(pairs)
        lines += numbers
    _check_said(path, head, options)
    if not rows:
        raise bad(path, f"there are no rows after its first line {quote(head)}" if head else "the file has no rows")
    head = head or _told(path, options)
    if head.get("n_rows", len(rows)) != len(rows):
        raise bad(path, f"the first line announces {head['n_rows']} rows; there are {len(rows)}", 1)
    indexes, values, counts = (np.concatenate(pieces) for pieces in zip(*blocks))
    tags = np.array([label for row in rows for label in row], dtype=np.int64)
    tag_counts = np.array([len(row) for row in rows])
    head = _settled(path, head, {"feature": indexes, "label": tags})
    X = _matrix(path, lines, "feature", indexes, values, counts, head)
    Y = _matrix(path, lines, "label", tags, np.ones(len(tags), dtype=np.int8), tag_counts, head)
    return Dataset(
        X,
        Y if options.sparse_labels else dense_labels(path, Y),
        feature_names=head.get("feature_names"),
        label_names=head.get("label_names"),
        name=path.name.split(".")[0],
        first_feature=head["feature_base"],
        first_label=head["label_base"],
    )


def _blocks(stream, size=None):
    """Yield (rows without comments, their line numbers, the first line of the file or None)."""
    n_lines = 0
    for lines in line_blocks(stream, size):
        texts, numbers = [], []
        for line_number, line in enumerate(lines, n_lines + 1):
            text = line.partition("#")[0].strip()
            if text:
                texts.append(text)
                numbers.append(line_number)
        yield texts, numbers, lines[0] if n_lines == 0 else None
        n_lines += len(lines)


def _head(path, line):
    """Return what the first line says about sizes and names, if it does."""
    sizes = line.split()
    if len(sizes) == 3 and all(size.isdecimal() and len(size) < 10 for size in sizes):
        names = ("n_rows", "n_features", "n_labels")
        return {**dict(zip(names, map(int, sizes))), "feature_base": 0, "label_base": 0}
    if not line.startswith(MARK):
        return {}
    try:
        head = json.loads(line[len(MARK) :])
    except (ValueError, RecursionError) as error:
        raise bad(path, f"the comment {quote(line.strip())} is not JSON: {error}", 1) from error
    if not isinstance(head, dict) or not _is_head(head):
        raise bad(path, f"the comment {quote(line.strip())} must give n_features and n_labels", 1)
    return {**head, "feature_base": 1, "label_base": 0}


def _told(path, options):
    """What the reader was told about a file without a head, or the model knows that the file is for."""
    names = {
        "n_features": "n_features",
        "n_labels": "n_labels",
        "feature_base": "first_feature",
        "label_base": "first_label",
    }
    told = {key: getattr(options, name) for key, name in names.items()}
    if options.columns is not None:
        told = {key: getattr(options.columns, names[key]) if told[key] is None else told[key] for key in told}
        told["said"] = "that there should be"
    if options.part and None in told.values():
        raise bad(
            path,
            "its first line does not say how many features and labels there are and what they count from, and one part "
            "of a data set does not show it: pass n_features=, n_labels=, first_feature= and first_label=, or cut one file "
            "into parts that say it with `rbrl data convert FILE FOLDER --rows-per-shard N`",
        )
    return {key: value for key, value in told.items() if value is not None}


def _is_head(head):
    sizes = all(type(head.get(key)) is int and 0 < head[key] <= MAX_INDEX for key in ("n_features", "n_labels"))
    return sizes and all(head.get(key) is None or type(head[key]) is list for key in ("feature_names", "label_names"))


def _labels(path, text, line):
    """Return (labels, the rest of the row)."""
    first, *rest = text.split(maxsplit=1)
    if ":" in first:
        return [], text
    labels = first.split(",")
    if not all(_is_index(label) for label in labels):
        raise bad(path, f"labels must be numbers from 0, with commas; got {quote(first)}", line)
    found = {int(label) for label in labels}
    if len(found) < len(labels):
        raise bad(path, f"a label occurs twice: {quote(first)}", line)
    return sorted(found), rest[0] if rest else ""


def _is_index(text):
    return text.isascii() and text.isdecimal() and len(text) < 12 and int(text) <= MAX_INDEX


def _pairs(path, rows, numbers):
    block = read_pairs(rows, SVMLIGHT, ":")
    if block is None or not np.isfinite(block[1]).all() or repeated_row(block[0], block[2]) is not None:
        pairs = [_row(path, row, line) for row, line in zip(rows, numbers)]
        indexes = np.array([j for row in pairs for j in row], dtype=np.int64)
        values = np.array([v for row in pairs for v in row.values()], dtype=np.float64)
        block = indexes, values, np.array([len(row) for row in pairs], dtype=np.int64)
    return block


def _row(path, text, line):
    row = {}
    for word in text.split():
        index, colon, value = word.partition(":")
        if not colon or not _is_index(index):
            raise bad(path, f"expected index:value; got {quote(word)}", line)
        if int(index) in row:
            raise bad(path, f"feature {index} occurs twice in a row", line)
        row[int(index)] = found = number(value)
        if found is None or found != found:
            raise bad(path, f"feature {index} must be a finite number; got {quote(value)}", line)
    return row


def _matrix(path, lines, what, indexes, values, counts, head):
    size, base = head.get(f"n_{what}s"), head[f"{what}_base"]
    if size is None:
        size = _size(indexes, base)
    if size == 0:
        raise bad(path, f"none of its {len(counts)} rows has a {what}")
    indexes = indexes - base
    outside = (indexes < 0) | (indexes >= size)
    if outside.any():
        place = int(np.argmax(outside))
        said = head.get("said", "that the first line announces")
        line = lines[int(np.searchsorted(np.cumsum(counts), place, side="right"))]
        raise bad(path, f"{what} {indexes[place] + base} is not among the {size} {said}, which count from {base}", line)
    return sparse.csr_array((values, indexes, np.concatenate([[0], np.cumsum(counts)])), shape=(len(counts), size))
