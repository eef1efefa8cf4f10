"""Files in the dialects of Mulan, MEKA, Weka, scikit-multilearn and OpenML."""

import gzip

import numpy as np
import pytest
from scipy import sparse

from rbrl.datasets import load_file, save_file

from .examples import dense

MULAN = """\
% a comment
@relation MultiLabelExample

@attribute feature1 numeric
@attribute label3 {0, 1}
@attribute feature2 REAL
@ATTRIBUTE label1 {0,1}
@attribute	feature3	integer
@attribute label2 {0, 1} % a label

@data
2.3,1,5.6,0,1,1
% another comment

-1e-3, 0, ?, 1, +7, 0 % the end
"""
XML = """<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="label1"><label name="label2"></label></label>
<label name="label3"></label>
</labels>
"""
MEKA = """\
@relation 'Example: -C 2 -split-percentage 50'
@attribute Beach {0,1}
@attribute 'It\\'s % {odd}' {0,1}
@attribute "double \\"quoted\\"" numeric
@attribute x numeric
@data
{0 1,3 0.5}
{}
{ 1 1 , 2 -2 }
{3 4}
"""


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


@pytest.fixture
def mulan(tmp_path):
    write(tmp_path / "example.xml", XML)
    return write(tmp_path / "example.arff", MULAN)


def test_mulan_labels_have_the_order_of_the_header(mulan):
    data = load_file(mulan)
    assert data.label_names == ("label3", "label1", "label2")
    assert data.feature_names == ("feature1", "feature2", "feature3")
    np.testing.assert_array_equal(data.Y, [[1, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(data.X, [[2.3, 5.6, 1], [-1e-3, np.nan, 7]])
    assert data.name == "MultiLabelExample"


def test_labels_by_name_have_the_given_order(mulan):
    assert load_file(mulan, labels=["label2", "label3"]).label_names == ("label2", "label3")


def test_labels_by_another_xml_file(mulan, tmp_path):
    xml = write(tmp_path / "other.xml", '<labels><label name="label2"/></labels>')
    assert load_file(mulan, labels=xml).label_names == ("label2",)


def test_meka_declares_its_labels(tmp_path):
    data = load_file(write(tmp_path / "meka.arff", MEKA))
    assert data.label_names == ("Beach", "It's % {odd}")
    assert data.feature_names == ('double "quoted"', "x")
    assert sparse.issparse(data.X)
    np.testing.assert_array_equal(dense(data.X), [[0, 0.5], [0, 0], [-2, 0], [0, 4]])
    np.testing.assert_array_equal(data.Y, [[1, 0], [0, 0], [0, 1], [0, 0]])
    assert data.name == "Example"


def test_meka_labels_at_the_end(tmp_path):
    data = load_file(write(tmp_path / "meka.arff", MULAN.replace("MultiLabelExample", "'x: -C -1'")))
    assert data.label_names == ("label2",)


@pytest.mark.parametrize("count", [1, -1])
def test_scikit_multilearn_counts_labels_at_either_end(tmp_path, count):
    text = "@relation r\n@attribute a {0,1}\n@attribute b numeric\n@attribute c {0,1}\n@data\n1,5,0\n0,6,1\n"
    data = load_file(write(tmp_path / "data.arff", text), labels=count)
    assert data.label_names == ("a" if count > 0 else "c",)


def test_openml_writes_words_for_labels(tmp_path):
    text = "@RELATION r\n@ATTRIBUTE a NUMERIC\n@ATTRIBUTE b {TRUE, FALSE}\n@ATTRIBUTE c {FALSE,TRUE}\n"
    text += "@DATA\n1,TRUE,FALSE\n2,FALSE,TRUE\n"
    np.testing.assert_array_equal(load_file(write(tmp_path / "d.arff", text), labels=-2).Y, [[1, 0], [0, 1]])


def test_signed_labels(tmp_path):
    text = "@relation r\n@attribute a numeric\n@attribute b {-1,1}\n@attribute c numeric\n@data\n1,-1,1\n2,1,-1\n"
    np.testing.assert_array_equal(load_file(write(tmp_path / "d.arff", text), labels=-2).Y, [[0, 1], [1, 0]])


NOMINAL = """@relation 'r: -C 1'
@attribute y {0,1}
@attribute size {small, 'very, large', ?!}
@attribute month {1,2,10}
@attribute flag {no,yes}
@data
1,'very, large',10,yes
0,small,2,no
1,?,1,?
"""


def test_nominal_features_are_codes(tmp_path):
    data = load_file(write(tmp_path / "d.arff", NOMINAL))
    np.testing.assert_array_equal(data.X, [[1, 10, 1], [0, 2, 0], [np.nan, 1, np.nan]])
    assert data.categorical_index.tolist() == [0, 1]


def test_nominal_features_as_columns(tmp_path):
    data = load_file(write(tmp_path / "d.arff", NOMINAL), nominal="onehot")
    assert data.feature_names == (
        *("size=small", "size=very, large", "size=?!"),
        *("month=1", "month=2", "month=10", "flag"),
    )
    np.testing.assert_array_equal(data.X[:, :6], [[0, 1, 0, 0, 0, 1], [1, 0, 0, 0, 1, 0], [0, 0, 0, 1, 0, 0]])


def test_sparse_rows_omit_the_first_nominal_value(tmp_path):
    text = "@relation 'r: -C 1'\n@attribute y {1,0}\n@attribute n {3,4}\n@attribute x numeric\n"
    text += "@data\n{2 5}\n{0 0,1 4}\n{0 1}\n"
    data = load_file(write(tmp_path / "d.arff", text))
    np.testing.assert_array_equal(data.Y, [[1], [0], [1]])
    np.testing.assert_array_equal(dense(data.X), [[3, 5], [4, 0], [3, 0]])


def test_sparse_words_missing_values_and_any_order(tmp_path):
    text = "@relation 'r: -C -1'\n@attribute x numeric\n@attribute 'c d' {a,'b c'}\n@attribute y {F,T}\n"
    text += "@data\n{2 T, 0 ?}\n{1 'b c'} % end\n"
    data = load_file(write(tmp_path / "d.arff", text))
    np.testing.assert_array_equal(dense(data.X), [[np.nan, 0], [0, 1]])
    np.testing.assert_array_equal(data.Y, [[1], [0]])


def test_weka_accepts_white_space_as_separator(tmp_path):
    text = "@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute x numeric\n@data\n1 2.5\n0\t3\n"
    np.testing.assert_array_equal(load_file(write(tmp_path / "d.arff", text)).X, [[2.5], [3]])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends(tmp_path, encoding, newline):
    text = "@relation 'r: -C 1'\n@attribute Größe {0,1}\n@attribute x numeric\n@data\n1,2\n"
    data = load_file(write(tmp_path / "d.arff", text.replace("\n", newline), encoding))
    assert data.label_names == ("Größe",)


def test_encoding_by_name(tmp_path):
    path = write(
        tmp_path / "d.arff", "@relation 'r: -C 1'\n@attribute вес {0,1}\n@attribute x numeric\n@data\n1,2\n", "koi8-r"
    )
    assert load_file(path, encoding="koi8-r").label_names == ("вес",)


def test_packed_file_with_xml(tmp_path):
    write(tmp_path / "example.xml", XML)
    (tmp_path / "example.arff.gz").write_bytes(gzip.compress(MULAN.encode()))
    assert load_file(tmp_path / "example.arff.gz").n_labels == 3


def test_svmlight_counts_features_from_one_and_labels_from_zero(tmp_path):
    data = load_file(write(tmp_path / "d.svm", "# a comment\n0,2 1:0.5 4:2 # row\n\n 2:1e-3\n1\n"))
    np.testing.assert_array_equal(dense(data.X), [[0.5, 0, 0, 2], [0, 1e-3, 0, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(data.Y, [[1, 0, 1], [0, 0, 0], [0, 1, 0]])


def test_svmlight_of_the_extreme_classification_repository(tmp_path):
    data = load_file(write(tmp_path / "d.txt", "2 5 4\n1,2 1:0.5 4:2\n3 2:1\n"))
    assert (data.n_samples, data.n_features, data.n_labels) == (2, 5, 4)
    np.testing.assert_array_equal(dense(data.X), [[0, 0.5, 0, 0, 2], [0, 0, 1, 0, 0]])


def test_csv_with_words_and_semicolons(tmp_path):
    path = write(tmp_path / "e.csv", '\ufeff"a;b";colour;y\n1.5;red;0\n;blue;1\n2;green;1\n')
    data = load_file(path, labels=["y"], nominal="codes")
    assert data.feature_names == ("a;b", "colour")
    np.testing.assert_array_equal(data.X, [[1.5, 2], [np.nan, 0], [2, 1]])
    assert data.categorical_index.tolist() == [1]


def test_mat_files_of_zhang(tmp_path):
    from scipy.io import savemat

    rng = np.random.default_rng(0)
    X, T = rng.random((6, 3)), np.where(rng.random((2, 6)) < 0.5, 1, -1)
    savemat(tmp_path / "a.mat", {"data": X, "target": T})
    parts = {"train_data": X[:4], "train_target": T[:, :4], "test_data": X[4:], "test_target": T[:, 4:]}
    savemat(tmp_path / "b.mat", parts)
    one, two = load_file(tmp_path / "a.mat"), load_file(tmp_path / "b.mat")
    for data in (one, two):
        np.testing.assert_array_equal(data.X, X)
        np.testing.assert_array_equal(data.Y, (T.T > 0).astype(int))
    assert two.test_index.tolist() == [4, 5]


def test_large_sparse_file_stays_sparse(tmp_path):
    n_samples = n_features = 50_000
    path = tmp_path / "wide.arff"
    with open(path, "w") as stream:
        stream.write("@relation 'wide: -C 3'\n" + "".join(f"@attribute y{j} {{0,1}}\n" for j in range(3)))
        stream.writelines(f"@attribute x{j} numeric\n" for j in range(n_features))
        stream.write("@data\n")
        stream.writelines(f"{{{i % 3} 1,{i + 3} 0.5}}\n" for i in range(n_samples))
    data = load_file(path)
    assert data.X.shape == (n_samples, n_features)
    assert data.X.nnz == n_samples
    assert data.Y.sum() == n_samples


def test_liac_arff_quotes_values_and_writes_floats(tmp_path):
    text = "@RELATION traindata\n@ATTRIBUTE a NUMERIC\n@ATTRIBUTE y {'0', '1'}\n@DATA\n{ 0 2.0,1 1.0 }\n{ 0 1.0 }\n"
    np.testing.assert_array_equal(load_file(write(tmp_path / "d.arff", text), labels=-1).Y, [[1], [0]])


def test_numeric_attributes_may_have_a_range(tmp_path):
    text = "@relation 'r: -C 1'\n@attribute y {0,1}\n@attribute x real [0.0, 5.0]\n@data\n1,2\n"
    assert load_file(write(tmp_path / "d.arff", text)).n_features == 1


@pytest.mark.parametrize("labels", ["label1", np.int64(-1), ("label1",), [np.str_("label1")]])
def test_labels_in_any_form(mulan, labels):
    assert load_file(mulan, labels=labels).n_labels == 1


def test_xml_of_another_kind_is_not_overwritten(tmp_path):
    write(tmp_path / "data.xml", "<html></html>")
    with pytest.raises(ValueError, match="it names no labels"):
        save_file(load_file(write(tmp_path / "meka.arff", MEKA)), tmp_path / "data.arff")
    assert (tmp_path / "data.xml").read_text() == "<html></html>"
