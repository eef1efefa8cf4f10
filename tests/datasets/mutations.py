"""Inputs of the fuzzer: files of every format, valid, odd, or damaged where the format has its sizes, types and offsets."""

import io
import json
import struct
import zipfile
import zlib

import numpy as np
from scipy import sparse
from scipy.io import savemat

from .test_dialects import MEKA, MULAN, NOMINAL, XML

SCRAPS = [b"{", b"}", b",", b"'", b'"', b"\\", b"%", b"?", b"@data\n", b"@attribute ", b"-C 9", b"nan", b"1e999", b"-1"]
SCRAPS += [
    b"\n",
    b"\r",
    b"\x00",
    b"\xff",
    b" ",
    b"\t",
    b"#",
    b"0",
    b":",
    b"99999999999",
    b"<!DOCTYPE x>",
    b"_",
    b"\\u12",
]
SCRAPS += [
    b"|",
    b";",
    b"N/A",
    b"null",
    b"None",
    b"inf",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b'encoding="gbk"',
    b"\x1a",
    b"1,5",
]
NUMBERS = ["0", "1", "-1", "1.0", "2.50", "1e3", "-3E-2", ".5", "5.", "+7", "1e-320", "1.7976931348623157e308", "-0.0"]
NUMBERS += ["0.1", "123456789012345678", "3.14159265358979311600", "007", "1e22", "9007199254740993", "4.35", "2e-308"]
MISSING = ["", "?", "NA", "N/A", "null", "None", "nan", "NaN", "#N/A", "-", "<NA>"]
WORDS = [
    "red",
    "blue",
    "true",
    "False",
    "yes",
    "no",
    "1_0",
    "inf",
    "-Infinity",
    "1e999",
    "1,5",
    "12%",
    "0x1",
    "a b",
    "٣",
    "ß",
]
WORDS += [
    "重",
    "it's",
    'say "hi"',
    "a;b",
    "a|b",
    "$5",
    "1.2.3",
    "2020-01-01",
    " 1 ",
    "\t2",
    "1 000",
    "1d5",
    "nan ",
    "--1",
]
EDGES = [0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 127, 128, 255, 256, 65535, 2**31 - 1, 2**31, 2**32 - 1]
HUGE = [-1, 0, 1, 2, 3, 10**6, 2**31, 2**32, 2**62, 2**63, 2**64, 10**30]


def mutate(rng, content):
    """Return `content` with one to three random changes."""
    content = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(content) + 1)
        stop = min(len(content), place + rng.choice([1, 1, 2, 8, 40]))
        change = rng.randrange(6)
        if change == 0:
            content[place:stop] = b""
        elif change == 1:
            content[place:place] = rng.choice(SCRAPS)
        elif change == 2:
            content[place:stop] = rng.randbytes(stop - place)
        elif change == 3:
            content[place:place] = content[place:stop] * rng.choice([1, 2, 50])
        elif change == 4:
            del content[place if rng.random() < 0.2 else len(content) :]
        elif stop > place:
            content[place] ^= 1 << rng.randrange(8)
    return bytes(content)


def mutate_sometimes(rng, content):
    """Return `content` as it is, or damaged: half and half."""
    return content if rng.random() < 0.5 else mutate(rng, content)


def encode(rng, text):
    """Return a text as bytes, with the line ends and in the encoding of some program."""
    newline = rng.choice(["\n", "\n", "\n", "\r\n", "\r"])
    text = text.replace("\n", newline)
    encoding = rng.choice(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"])
    return text.encode(encoding, "replace")


def csv_file(rng):
    """Columns of numbers, numbers with missing values, words, and mixtures, in any separator."""
    mark = rng.choice([",", ",", ";", "\t", "|"])
    n_columns, n_rows = rng.randint(1, 4), rng.choice([0, 1, 2, 3, 3, 4, 5, 6])
    pools = [
        rng.choices([NUMBERS, NUMBERS + MISSING, WORDS[:6], WORDS + NUMBERS + MISSING], [8, 3, 2, 1])[0]
        for _ in range(n_columns)
    ]
    rows = [[rng.choice(["a", "b", "Größe", "a;b", "y", "x, cm", "", "1"]) for _ in pools] + ["l1", "l2"]]
    rows += [[rng.choice(pool) for pool in pools] + [rng.choice("01"), rng.choice("01")] for _ in range(n_rows)]
    lines = [mark.join(_csv_cell(rng, cell, mark) for cell in row) for row in rows]
    return mutate_sometimes(rng, encode(rng, "\n".join(lines) + rng.choice(["\n", "", "\n\n"])))


def _csv_cell(rng, cell, mark):
    if any(letter in cell for letter in (mark, '"', "\n")) or rng.random() < 0.1:
        return '"' + cell.replace('"', '""') + '"'
    return cell


def arff_file(rng):
    """A header of numeric and nominal attributes, and dense or sparse rows."""
    if rng.random() < 0.2:
        return mutate(rng, rng.choice([MULAN, MEKA, NOMINAL]).encode())
    kinds = [
        rng.choice(["numeric", "REAL", "integer", "{0,1}", "{a,'b c',?}", "{1, 2,10}"])
        for _ in range(rng.randint(1, 5))
    ]
    kinds += ["{0,1}", "{0,1}"]
    names = [rng.choice([f"x{j}", f"'x {j}'", f'"q{j}"', "same"]) for j in range(len(kinds))]
    head = [f"@relation {rng.choice(['r', chr(39) + 'r: -C -2' + chr(39)])}"]
    head += [f"@attribute {name} {kind}" for name, kind in zip(names, kinds)] + [
        rng.choice(["@data", "@DATA", "@Data "])
    ]
    is_sparse = rng.random() < 0.4
    rows = [_arff_row(rng, kinds, is_sparse) for _ in range(rng.randint(0, 6))]
    return mutate_sometimes(rng, encode(rng, "\n".join(head + rows) + "\n"))


def _arff_row(rng, kinds, is_sparse):
    values = [_arff_value(rng, kind) for kind in kinds]
    if not is_sparse:
        return rng.choice([",", ", ", ","]).join(values) + rng.choice(["", "", "", " % end"])
    taken = sorted(rng.sample(range(len(kinds)), rng.randint(0, len(kinds))))
    return "{" + ",".join(f"{j} {values[j]}" for j in taken) + "}"


def _arff_value(rng, kind):
    if rng.random() < 0.02:
        return rng.choice(MISSING + WORDS)
    values = {"{0,1}": "01", "{a,'b c',?}": ["a", "'b c'", "?"], "{1, 2,10}": ["1", "2", "10", "1.0"]}
    return rng.choice(values.get(kind, NUMBERS))


def svmlight_file(rng):
    """Labels and index:value pairs, with and without a head, comments, and indexes in and out of order."""
    n_features, n_labels, rows = rng.randint(1, 9), rng.randint(1, 4), []
    for _ in range(rng.randint(0, 6)):
        labels = ",".join(str(label) for label in sorted(rng.sample(range(n_labels), rng.randint(0, n_labels))))
        indexes = rng.sample(range(rng.choice([0, 1]), n_features + 1), rng.randint(0, n_features))
        indexes = indexes if rng.random() < 0.1 else sorted(indexes)
        pairs = [f"{j}:{rng.choice(NUMBERS if rng.random() < 0.98 else WORDS + MISSING)}" for j in indexes]
        rows.append(" ".join([labels, *pairs]) + rng.choice(["", "", "", " # end"]))
    head = rng.choice(["", "", "# comment", f"{len(rows)} {n_features} {n_labels}", "# rbrl: "])
    if head == "# rbrl: ":
        head += json.dumps({"n_features": rng.choice([n_features, *HUGE]), "n_labels": n_labels, "feature_names": None})
    return mutate_sometimes(rng, encode(rng, "\n".join([head, *rows] if head else rows) + "\n"))


def repository_file(rng):
    """A line of sizes, mostly right, and rows with and without labels and features."""
    n_features, n_labels, rows = rng.randint(1, 9), rng.randint(1, 4), []
    for _ in range(rng.randint(1, 6)):
        labels = ",".join(str(label) for label in sorted(rng.sample(range(n_labels), rng.randint(0, n_labels))))
        indexes = sorted(rng.sample(range(n_features), rng.randint(0, n_features)))
        pairs = [f"{j}:{rng.choice(NUMBERS if rng.random() < 0.98 else WORDS + MISSING)}" for j in indexes]
        rows.append(" ".join([labels, *pairs]) or " ")
    sizes = [len(rows), n_features, n_labels]
    if rng.random() < 0.1:
        sizes[rng.randrange(3)] = rng.choice(HUGE)
    return mutate_sometimes(rng, encode(rng, "\n".join([" ".join(map(str, sizes)), *rows]) + "\n"))


def npz_pair_file(rng):
    """A file of a sparse matrix of 0 and 1, in any format of SciPy; it is read as X and as Y."""
    shape = rng.randint(1, 4), rng.randint(1, 4)
    matrix = sparse.csr_array(np.array([[rng.choice([0, 0, 1]) for _ in range(shape[1])] for _ in range(shape[0])]))
    matrix = matrix.astype(rng.choice(["f8", "f4", "i1", "?", "u2"]))
    target = io.BytesIO()
    sparse.save_npz(target, matrix.asformat(rng.choice(["csr"] * 8 + ["csc", "coo", "dia"])))
    content = target.getvalue()
    change = rng.random()
    if change < 0.15:
        return mutate(rng, content)
    return _change_field(rng, content, [b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"]) if change < 0.35 else content


def xml_file(rng):
    """Mulan's file of label names, of the labels of `MULAN`, in any encoding."""
    encoding = rng.choice(
        ["utf-8", "utf-8", "gbk", "shift_jis", "big5", "euc-kr", "utf-16", "utf-32", "cp1251", "utf-7", "hz"]
    )
    declared = rng.choice([encoding, encoding, "gbk", "iso-8859-1", "punycode", "zlib", "nonsense", "idna"])
    text = XML.replace("utf-8", declared)
    if rng.random() < 0.5:
        text = text.replace("label3", rng.choice(["label3", "重さ", "ß", "&amp;", "&#65;", "&x;", "&#0;"]))
    return mutate_sometimes(rng, text.encode(encoding, "replace"))


def npz_file(rng):
    """An archive whose arrays have odd types, shapes, orders and lengths, in an archive with odd entries."""
    n_rows, n_features, n_labels = rng.randint(1, 4), rng.randint(1, 4), rng.randint(1, 3)
    arrays = _npz_side(rng, "X", n_rows, n_features) | _npz_side(rng, "Y", n_rows, n_labels)
    extra = {
        "feature_names": np.array([f"f{j}" for j in range(n_features)]),
        "label_names": np.array([f"l{j}" for j in range(n_labels)]),
        "train_index": np.arange(1),
        "test_index": np.arange(1, n_rows),
        "categorical_index": np.arange(1),
        "other": np.arange(3),
    }
    arrays |= {key: extra[key] for key in rng.sample(sorted(extra), rng.randint(0, 3))}
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for key, array in arrays.items():
            packing = rng.choice(
                [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED] * 12
                + [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
            )
            archive.writestr(
                rng.choice([f"{key}.npy"] * 60 + [key, f"a/{key}.npy", "X.npy"]), npy_bytes(rng, array), packing
            )
        if rng.random() < 0.001:
            archive.writestr("bomb.npy", b"\x00" * (20 << 20), zipfile.ZIP_DEFLATED)
    content = target.getvalue()
    change = rng.random()
    if change < 0.15:
        return mutate(rng, content)
    return _change_field(rng, content, [b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"]) if change < 0.35 else content


def _npz_side(rng, key, n_rows, n_columns):
    kind = rng.choice(
        ["f8", "f8", "f4", "i8", "i4", "u1", "?", "f2", ">f8", ">i4", "u8"] if key == "X" else ["i1", "f8", "?", "u1"]
    )
    dense = np.array([[rng.choice([0, 0, 1]) for _ in range(n_columns)] for _ in range(n_rows)]).astype(kind)
    if key == "X" and dense.dtype.kind == "f" and rng.random() < 0.5:
        dense = dense * rng.choice([0.1, -2.5, 1e-310, np.nan, np.inf, 1e300, 3e7])
    if rng.random() < 0.5:
        return {key: np.asfortranarray(dense) if rng.random() < 0.3 else dense}
    if dense.dtype.kind == "f":
        dense = dense.astype(np.float64)  # SciPy's CSR has no half precision and no foreign byte order
    matrix = sparse.csr_array(dense.astype(dense.dtype.newbyteorder("=")))
    pieces = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": np.array(matrix.shape)}
    if rng.random() < 0.2:
        part = rng.choice(sorted(pieces))
        odd = pieces[part].astype(rng.choice(["i8", "f8", "u4", "i8", "U4"]))
        if len(odd) and odd.dtype.kind != "U":
            odd[rng.randrange(len(odd))] = rng.choice([0, 1, 2, 5, 2**31 - 1])
        pieces[part] = rng.choice([odd, odd[:-1], odd[::-1].copy(), odd.reshape(1, -1)])
    if rng.random() < 0.03:
        del pieces[rng.choice(sorted(pieces))]
    return {f"{key}_{part}": array for part, array in pieces.items()}


def npy_bytes(rng, array):
    """Return an array as an NPY file, one time in four with a header or a length of another one."""
    target = io.BytesIO()
    np.lib.format.write_array(target, array, version=rng.choice([(1, 0), (1, 0), (2, 0), (3, 0)]))
    content = target.getvalue()
    if rng.random() < 0.93:
        return content
    fields = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}
    odd = {
        "descr": rng.choice(
            ["|O", "<c16", "<M8[s]", "|V8", "|S3", "<U3", "<f8", ">f4", "f", "<f99", "", None, 7, [("a", "<f8")], "<i8"]
        ),
        "fortran_order": rng.choice([True, 1, None, "yes"]),
        "shape": rng.choice(
            [
                (),
                (1,),
                (rng.choice(HUGE), 2),
                (rng.choice(HUGE), rng.choice(HUGE)),
                (1, 1, 1),
                "no",
                [1, 2],
                (1.5, 2),
                (True, 2),
            ]
        ),
    }
    key = rng.choice(sorted(odd))
    fields = {**fields, key: odd[key]}
    if rng.random() < 0.1:
        del fields[rng.choice(sorted(fields))]
    head = (
        repr(fields).encode("latin-1", "replace")
        if rng.random() < 0.9
        else rng.choice([b"{", b"1" * 70, b"__import__('os')", b"(" * 200])
    )
    length = len(head) + 1 if rng.random() < 0.9 else rng.choice(EDGES[:15])
    body = array.tobytes()
    body = rng.choice([body, body, body[:-1], body * 2, b"", body + b"\x00" * 64])
    magic = rng.choice(
        [b"\x93NUMPY\x01\x00"] * 8 + [b"\x93NUMPY\x09\x00", b"\x93NUMPY\x00\x01", b"\x93NUMPX\x01\x00", b""]
    )
    return magic + struct.pack("<H", length) + head + b"\n" + body


def _change_field(rng, content, marks):
    """Put an odd number into one of the words that follow a mark: sizes, offsets, flags, methods, checksums."""
    content = bytearray(content)
    places = [place for mark in marks for place in _find_all(bytes(content), mark)]
    if places:
        place, size = rng.choice(places) + rng.randrange(4, 46), rng.choice([1, 2, 4])
        word = (rng.choice(EDGES) & (256**size - 1)).to_bytes(size, "little")
        content[place : place + size] = word if rng.random() < 0.8 else rng.randbytes(size)
    return bytes(content)


def _find_all(content, mark):
    place = content.find(mark)
    while place >= 0:
        yield place
        place = content.find(mark, place + 1)


def mat_file(rng):
    """A file of SciPy with odd words in tags, sizes and flags, its variables then packed or not."""
    target = io.BytesIO()
    savemat(target, _mat_variables(rng), oned_as=rng.choice(["row", "column"]))
    content = bytearray(target.getvalue())
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        places = list(_mat_fields(content, 128, len(content)))
        if places:
            place = rng.choice(places)
            old = int.from_bytes(content[place : place + 4], "little")
            new = (
                rng.choice([rng.choice(EDGES), old + 1, max(old - 1, 0), old ^ (1 << rng.randrange(32)), old * 2])
                % 2**32
            )
            content[place : place + 4] = new.to_bytes(4, "little")
    content = bytes(content)
    if rng.random() < 0.1:
        content = mutate(rng, content)
    return _compress_mat_variables(rng, content) if rng.random() < 0.4 else content


def _mat_variables(rng):
    n_rows, n_features, n_labels = rng.randint(1, 4), rng.randint(1, 4), rng.randint(1, 3)
    kind = rng.choice(["f8", "f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"])
    X = np.array([[rng.choice([0, 0, 1, 2, 100]) for _ in range(n_features)] for _ in range(n_rows)]).astype(kind)
    if X.dtype.kind == "f":
        X = X * rng.choice([1, 0.1, -2.5, np.nan, np.inf, 1e300])
    Y = np.array([[rng.choice([0, 1]) for _ in range(n_labels)] for _ in range(n_rows)]).astype(
        rng.choice(["f8", "u1", "i1", "?"])
    )
    X = sparse.csc_array(X.astype("f8")) if rng.random() < 0.4 else X
    Y = sparse.csc_array(Y.astype("f8")) if rng.random() < 0.3 else Y
    variables = {"X": X, "Y": Y} if rng.random() < 0.8 else {"data": X, "target": Y.T}
    extra = {
        "label_names": np.array([f"ß{j}" for j in range(n_labels)], dtype=object),
        "feature_names": np.array([f"f{j}" for j in range(n_features)]),
        "train_index": np.array([1]),
        "test_index": np.arange(2, n_rows + 1),
        "other": {"a": 1, "b": [1, "c"]},
        "z": np.array([1 + 2j]),
        "cube": np.zeros((2, 2, 2)),
    }
    return variables | {key: extra[key] for key in rng.sample(sorted(extra), rng.randint(0, 3))}


def _mat_fields(content, start, stop):
    """The places of the words that say what follows: tags, and what flags and sizes hold."""
    while start + 8 <= stop:
        kind, size = struct.unpack_from("<II", content, start)
        yield start
        short = bool(kind >> 16)
        if not short:
            yield start + 4
        inner, end = (start + 4, start + 8) if short else (start + 8, start + 8 + -(-size // 8) * 8)
        if end > stop:
            return
        if kind == 14:
            yield from _mat_fields(content, inner, end)
        else:
            yield from range(inner, min(end, inner + 16), 4)
        start = end


def _compress_mat_variables(rng, content):
    """Each variable as a packed element, its tag or its stream sometimes damaged."""
    parts, place = [content[:128]], 128
    while place + 8 <= len(content):
        size = min(struct.unpack_from("<I", content, place + 4)[0], len(content) - place - 8)
        packed = zlib.compress(
            content[place : place + 8 + size] + (b"\x00" * (20 << 20) if rng.random() < 0.002 else b"")
        )
        packed = mutate(rng, packed) if rng.random() < 0.1 else packed
        claimed = len(packed) if rng.random() < 0.95 else rng.choice(EDGES)
        parts.append(struct.pack("<II", 15, claimed) + packed)
        place += 8 + size
    return b"".join(parts)


def parquet_file(rng):
    """A file of pyarrow, of any types and layout, damaged in its footer, a page's head, its data, or nowhere."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n_rows = rng.choice([0, 1, 2, 3, 5, 5, 5, 40])
    columns = {f"c{j}": _parquet_column(rng, pa, n_rows) for j in range(rng.randint(1, 4))}
    columns |= {
        f"l{j}": pa.array(
            [rng.choice([0, 1]) for _ in range(n_rows)], rng.choice([pa.int8(), pa.float64(), pa.int64()])
        )
        for j in range(2)
    }
    head = rng.choice(
        [{"labels": -2}] * 12 + [{"labels": 2}, {"labels": "x"}, {}, [], {"labels": -2, "categorical_index": [0]}]
    )
    head = json.dumps(head).encode() if rng.random() < 0.95 else b"{"
    table = pa.table(columns).replace_schema_metadata({b"rbrl": head})
    target = io.BytesIO()
    pq.write_table(
        table,
        target,
        compression=rng.choice(["none", "none", "snappy", "gzip", "zstd", "brotli", "lz4"]),
        use_dictionary=rng.random() < 0.5,
        data_page_version=rng.choice(["1.0", "2.0"]),
        row_group_size=rng.choice([1, 2, 1000]),
        write_statistics=rng.random() < 0.7,
        write_page_checksum=rng.random() < 0.1,
    )
    content = target.getvalue()
    change = rng.random()
    footer = int.from_bytes(content[-8:-4], "little")
    if change < 0.3:
        return content
    if change < 0.6:
        return content[: -8 - footer] + _damage(rng, content[-8 - footer : -8]) + content[-8:]
    if change < 0.65:
        return (
            content[:-8] + rng.choice([rng.choice(EDGES), footer + 1, footer - 1]).to_bytes(4, "little") + content[-4:]
        )
    if change < 0.9:
        return _damage(rng, content[: -8 - footer]) + content[-8 - footer :]
    return mutate(rng, content)


def _parquet_column(rng, pa, n_rows):
    kind = rng.choice(
        ["float64"] * 30
        + ["int8", "int64", "bool", "string"] * 2
        + [
            "float32",
            "float16",
            "int8",
            "uint8",
            "int64",
            "uint64",
            "bool",
            "string",
            "string",
            "large_string",
            "dictionary",
            "decimal",
            "timestamp",
            "list",
            "binary",
            "null",
        ]
    )
    none = 0.3 if rng.random() < 0.3 else 0.0
    maybe = lambda value: None if rng.random() < none else value  # noqa: E731
    if kind in ("string", "large_string", "dictionary"):
        pool = rng.choice([WORDS, NUMBERS, NUMBERS + MISSING + WORDS])
        array = pa.array(
            [maybe(rng.choice(pool)) for _ in range(n_rows)],
            pa.large_string() if kind == "large_string" else pa.string(),
        )
        return array.dictionary_encode() if kind == "dictionary" else array
    if kind == "bool":
        return pa.array([maybe(rng.random() < 0.5) for _ in range(n_rows)], pa.bool_())
    if kind == "list":
        return pa.array([[1.0]] * n_rows, pa.list_(pa.float64()))
    if kind in ("binary", "null", "timestamp", "decimal"):
        types = {
            "binary": pa.binary(),
            "null": pa.null(),
            "timestamp": pa.timestamp("s"),
            "decimal": pa.decimal128(5, 2),
        }
        return pa.nulls(n_rows, types[kind])
    if kind.startswith("float"):
        values = [
            rng.choice([0.0, 1.0, -2.5, 0.1, 1e-3, 1e300, float("nan"), float("inf"), 3e7]) for _ in range(n_rows)
        ]
        values = (
            np.array(values).astype(kind, casting="unsafe")
            if kind == "float64"
            else np.clip(np.nan_to_num(values), -6e4, 6e4).astype(kind)
        )
        return pa.array([maybe(value) for value in values.tolist()], getattr(pa, kind)())
    top = min(np.iinfo(kind).max, 2**53 + 1 if rng.random() < 0.1 else 1000)
    return pa.array([maybe(rng.randint(0, int(top))) for _ in range(n_rows)], getattr(pa, kind)())


def _damage(rng, content):
    """Change one to three bytes, a varint of Thrift being mostly one byte, so that length is kept."""
    content = bytearray(content)
    for _ in range(rng.randint(1, 3) if content else 0):
        place = rng.randrange(len(content))
        content[place] = rng.choice(
            [0, 1, 0x7F, 0x80, 0xFF, content[place] ^ (1 << rng.randrange(8)), (content[place] + 2) % 256]
        )
    return bytes(content)


KINDS = {
    "csv": (".csv", csv_file),
    "arff": (".arff", arff_file),
    "svmlight": (".svm", svmlight_file),
    "repository": (".xmc", repository_file),
    "xml": (".xml", xml_file),
    "npz": (".npz", npz_file),
    "npz-pair": (".X.npz", npz_pair_file),
    "mat": (".mat", mat_file),
    "parquet": (".parquet", parquet_file),
}
TEXT = ("csv", "csv", "csv", "arff", "arff", "svmlight", "svmlight", "repository", "xml")
