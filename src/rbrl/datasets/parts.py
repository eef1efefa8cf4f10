"""`load_parts`: a file of any size as data sets of some rows each."""

import csv
from dataclasses import asdict, replace
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from rbrl.datasets.dataset import Dataset
from rbrl.datasets.files import format_of, load_file
from rbrl.datasets.formats.labels import xml_path
from rbrl.datasets.formats.options import ReadOptions
from rbrl.datasets.formats.parquet import parquet_parts
from rbrl.datasets.formats.svmlight import MARK, scan_svmlight
from rbrl.datasets.formats.text import text_lines
from rbrl.exceptions import DataFormatError

UNLIMITED = 1 << 62


def load_parts(path, labels=None, *, rows=50_000, format=None, **options):
    """Yield the rows of a file as data sets of `rows` rows, in order; options as for :func:`load_file`.

    Text and Parquet files are read with bounded memory; NPZ and MATLAB files are read whole. A CSV or Parquet file whose
    columns hold words is refused: their codes would depend on the block.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    kind = format_of(path, format)
    if kind not in _READERS:
        dataset = load_file(path, labels, format=format, **options)
        return _slices(dataset, rows)
    if labels is None and xml_path(path).is_file():
        labels = xml_path(path)
    return _READERS[kind](path, ReadOptions(labels=labels, **{"max_bytes": UNLIMITED, **options, "part": True}), rows)


def _slices(dataset, rows):
    names = dataset.feature_names, dataset.label_names
    for start in range(0, dataset.n_samples, rows):
        yield Dataset(*dataset.take(slice(start, start + rows)), *names, name=dataset.name)


def _read_cuts(path, cuts, kind, options):
    """Read every cut as a file of its own; an error names the file that the user has."""
    with TemporaryDirectory(prefix="rbrl-") as folder:
        block = Path(folder, f"{path.name.split('.')[0]}.{kind}")
        for text in cuts:
            block.write_text(text, encoding="utf-8", newline="\n")
            try:
                yield load_file(block, format=kind, **asdict(replace(options, encoding="utf-8")))
            except DataFormatError as error:
                raise DataFormatError(str(error).replace(str(block), f"{path} (in a block of its rows)")) from error


def _chunks(lines, size):
    while chunk := list(islice(lines, size)):
        yield chunk


def _csv(path, options, rows):
    return _read_cuts(path, _csv_cuts(path, options, rows), "csv", options)


def _csv_cuts(path, options, rows):
    """Cells in quotes may hold line ends, so rows are read and written again."""
    lines = text_lines(path, options)
    first = next(lines, "")
    reader = csv.reader(chain([first], lines), delimiter=max(",;\t", key=first.count))
    header = next(reader, [])
    for chunk in _chunks((row for row in reader if row), rows):
        yield "".join(_csv_line(row) for row in [header, *chunk])


def _csv_line(row):
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in row) + "\n"


def _arff(path, options, rows):
    return _read_cuts(path, _arff_cuts(path, options, rows), "arff", options)


def _arff_cuts(path, options, rows):
    """Each block has the same head, where nominal values are declared."""
    lines, head = text_lines(path, options), []
    for line in lines:
        head.append(line)
        if line.strip().lower().startswith("@data"):
            break
    data = (line for line in lines if line.strip() and not line.lstrip().startswith("%"))
    for chunk in _chunks(data, rows):
        yield "".join([*head, *chunk])


def _svmlight(path, options, rows):
    """What counts from where is seen in all rows, before the first block is read."""
    told, skip = scan_svmlight(path, options)
    first = next(text_lines(path, options))
    head = first if first.startswith(MARK) else ""
    lines = (text for line in islice(text_lines(path, options), skip, None) if (text := line.partition("#")[0].strip()))
    cuts = (head + "\n".join([*chunk, ""]) for chunk in _chunks(lines, rows))
    return _read_cuts(path, cuts, "svmlight", replace(options, **told))


_READERS = {"csv": _csv, "arff": _arff, "svmlight": _svmlight, "parquet": parquet_parts}
