"""A mutation fuzzer for the readers."""

import random
import time

import numpy as np
from scipy import sparse
from scipy.io import savemat

from rbrl.datasets import load_file, save_file
from rbrl.exceptions import DataFormatError

from .examples import small
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
ENDINGS = [".arff", ".csv", ".tsv", ".svm", ".npz", ".mat", ".parquet", ".arff.gz"]
TABLES = {".arff", ".csv", ".tsv", ".parquet", ".arff.gz"}
LABELS = [None, None, 2, -3, ["label1"]]
MAX_BYTES, MAX_SECONDS = 1 << 24, 20


def seeds(folder):
    """Write valid files into `folder`; return {ending: [their bytes]}."""
    found = {".arff": [text.encode() for text in (MEKA, NOMINAL)], ".svm": [b"2 5 4\n1,2 1:0.5 4:2\n3 2:1\n"]}
    for ending in ENDINGS:
        for is_sparse in (False, True):
            save_file(small(is_sparse, n_samples=6, n_features=4, n_labels=3), folder / f"seed{ending}")
            found.setdefault(ending, []).append((folder / f"seed{ending}").read_bytes())
    found[".xml"] = [XML.encode()]
    names = np.array(["a", "bc", "d"], dtype=object)
    for matrix in (np.eye(3), sparse.eye_array(3, format="csc")):
        savemat(folder / "seed.mat", {"X": matrix, "Y": np.eye(3), "label_names": names})
        found[".mat"].append((folder / "seed.mat").read_bytes())  # not packed: no checksum stops a mutation
    np.savez(folder / "seed.npz", X=np.eye(3), Y=np.eye(3), label_names=list("abc"), train_index=[0], test_index=[1])
    found[".npz"].append((folder / "seed.npz").read_bytes())
    return found


def mutate(rng, content):
    """Return `content` with one to three random changes."""
    content = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(content) + 1)
        stop = min(len(content), place + rng.choice([1, 1, 2, 8, 40]))
        change = rng.randrange(5)
        if change == 0:
            content[place:stop] = b""
        elif change == 1:
            content[place:place] = rng.choice(SCRAPS)
        elif change == 2:
            content[place:stop] = bytes(rng.randrange(256) for _ in range(stop - place))
        elif change == 3:
            content[place:place] = content[place:stop] * rng.choice([1, 2, 50])
        elif stop > place:
            content[place] ^= 1 << rng.randrange(8)
    return bytes(content)


def run(folder, n_inputs, seed):
    """Feed mutated files to the readers; each must read or raise our error with the file's name."""
    rng = random.Random(seed)
    files = seeds(folder)
    for old in folder.glob("seed*"):
        old.unlink()
    n_read = 0
    for i in range(n_inputs):
        ending = rng.choice(sorted(files))
        path = folder / f"fuzz{ending}"
        path.write_bytes(mutate(rng, rng.choice(files[ending])))
        labels = rng.choice(LABELS) if ending in TABLES else None
        options = {"labels": labels, "nominal": rng.choice(["codes", "onehot"])}
        try:
            n_read += reads(_data_file(path), **options)
        except BaseException as error:
            error.add_note(f"input {i} of seed {seed}, {ending}, {options}: {path.read_bytes()!r}")
            raise
        finally:
            (folder / "fuzz.xml").unlink(missing_ok=True)
    return n_read


def reads(path, **options):
    """Whether a file reads; if not, the error must be ours and name the file."""
    start = time.process_time()
    try:
        load_file(path, max_bytes=MAX_BYTES, **options)
    except DataFormatError as error:
        if path.stem not in str(error):
            raise AssertionError(f"the message does not name the file {path}: {error}") from error
        return False
    finally:
        assert time.process_time() - start < MAX_SECONDS
    return True


def _data_file(path):
    """Return `path`, or a good data file beside it if it is the XML that was mutated."""
    if path.suffix != ".xml":
        return path
    path.with_suffix(".arff").write_text(MULAN)
    return path.with_suffix(".arff")
