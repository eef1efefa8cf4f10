"""Writing ARFF: one file that MEKA reads (`-C` in the relation's name), and beside it Mulan's XML."""

import numpy as np
from scipy import sparse

from rbrl.datasets.formats.arff_words import enquote
from rbrl.datasets.formats.labels import xml_path
from rbrl.datasets.formats.mulan_xml import write_labels
from rbrl.datasets.formats.text import writing_text
from rbrl.datasets.formats.values import spell
from rbrl.datasets.formats.writable import check_writable


def write_arff(dataset, path, labels_first=False):
    """Write `path` and the XML file beside it; sparse rows if X is sparse. Missing values become `?`."""
    check_writable(dataset, path, xml=True)
    Y = sparse.csr_array(dataset.Y, dtype=np.float64) if sparse.issparse(dataset.X) else _dense(dataset.Y)
    blocks = [Y, dataset.X] if labels_first else [dataset.X, Y]
    with writing_text(path) as stream:
        _write_header(stream, dataset, labels_first)
        if sparse.issparse(dataset.X):
            _write_sparse(stream, sparse.hstack(blocks, format="csr"))
        else:
            _write_dense(stream, blocks)
    write_labels(dataset.label_names, xml_path(path))


def _dense(Y):
    return Y.toarray() if sparse.issparse(Y) else Y


def _write_header(stream, dataset, labels_first):
    count = dataset.n_labels if labels_first else -dataset.n_labels
    stream.write(f"@relation {enquote(f'{dataset.name}: -C {count}')}\n\n")
    labels = [f"@attribute {enquote(name)} {{0,1}}\n" for name in dataset.label_names]
    coded = set(dataset.categorical_index.tolist())
    kinds = (_kind(dataset.X, j) if j in coded else "numeric" for j in range(dataset.n_features))
    features = [f"@attribute {enquote(name)} {kind}\n" for name, kind in zip(dataset.feature_names, kinds)]
    stream.writelines(labels + features if labels_first else features + labels)
    stream.write("\n@data\n")


def _kind(X, column):
    values = X[:, [column]]
    values = np.unique(values.data if sparse.issparse(values) else values)
    values = np.unique(values[~np.isnan(values)])
    if sparse.issparse(X):
        values = np.concatenate([[0.0], values[values != 0]])  # sparse rows leave out the first value declared
    return "{" + ",".join(spell(value) for value in values.tolist()) + "}"


def _write_dense(stream, blocks):
    for rows in zip(*blocks):
        values = (spell(value) if value == value else "?" for row in rows for value in row.tolist())
        stream.write(",".join(values) + "\n")


def _write_sparse(stream, matrix):
    matrix.eliminate_zeros()
    matrix.sort_indices()
    for start, stop in zip(matrix.indptr, matrix.indptr[1:]):
        indexes, values = matrix.indices[start:stop].tolist(), matrix.data[start:stop].tolist()
        entries = (f"{j} {spell(value) if value == value else '?'}" for j, value in zip(indexes, values))
        stream.write("{" + ",".join(entries) + "}\n")
