"""`load_parts`: a file of any size as data sets of some rows each."""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from rbrl.datasets.files import format_of, load_file
from rbrl.datasets.formats.arff import arff_parts
from rbrl.datasets.formats.csv_ import csv_parts
from rbrl.datasets.formats.errors import memory_said
from rbrl.datasets.formats.options import ReadOptions
from rbrl.datasets.formats.parquet import parquet_parts
from rbrl.datasets.formats.svmlight import MARK, scan_svmlight
from rbrl.datasets.formats.text import text_lines
from rbrl.exceptions import DataFormatError

UNLIMITED = 1 << 62


def load_parts(path, labels=None, *, rows=50_000, format=None, **options):
    """Yield the rows of a file as data sets of `rows` rows, in order; options as for :func:`load_file`.

    Text and Parquet files are read with bounded memory; NPZ and MATLAB files are read whole. Words have the codes that
    they have in the whole file, over which CSV and svmlight need a pass before the first part.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    kind = format_of(path, format)
    if kind not in _READERS:
        dataset = load_file(path, labels, format=format, **options)
        return _slices(dataset, rows)
    options = ReadOptions(labels=labels, **{"max_bytes": UNLIMITED, **options})
    return _checked(path, _READERS[kind](path, options, rows), options.columns)


def _checked(path, parts, columns):
    with memory_said(path):
        for part in parts:
            yield part if columns is None else part.matching(columns)


def _slices(dataset, rows):
    for start in range(0, dataset.n_samples, rows):
        X, Y = dataset.take(slice(start, start + rows))
        yield replace(dataset, X=X, Y=Y, splits={})


def _read_cuts(path, cuts, kind, options):
    """Read every cut as a file of its own; an error names the file that the user has."""
    with TemporaryDirectory(prefix="rbrl-") as folder:
        block = Path(folder, f"{path.name.split('.')[0]}.{kind}")
        for text in cuts:
            block.write_text(text, encoding="utf-8", newline="\n")
            try:
                yield load_file(block, format=kind, **vars(replace(options, encoding="utf-8")))
            except MemoryError as error:
                raise (error.__cause__ or error) from error
            except DataFormatError as error:
                raise DataFormatError(str(error).replace(str(block), f"{path} (in a block of its rows)")) from error


def _chunks(lines, size):
    while chunk := list(islice(lines, size)):
        yield chunk


def _svmlight(path, options, rows):
    """What counts from where is seen in all rows, before the first block is read."""
    told, skip = scan_svmlight(path, options)
    first = next(text_lines(path, options))
    head = first if first.startswith(MARK) else ""
    lines = (text for line in islice(text_lines(path, options), skip, None) if (text := line.partition("#")[0].strip()))
    cuts = (head + "\n".join([*chunk, ""]) for chunk in _chunks(lines, rows))
    return _read_cuts(path, cuts, "svmlight", replace(options, part=True, **told))


_READERS = {"csv": csv_parts, "arff": arff_parts, "svmlight": _svmlight, "parquet": parquet_parts}
