"""A model knows the columns it was fitted on, and takes rows wherever they are."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rbrl
from rbrl import BinaryRelevance, BRLClassifier, MLkNN, RBRLClassifier
from rbrl.datasets import Columns, Dataset, open_shards, write_shards
from rbrl.estimators.validation import get_columns, store_columns
from rbrl.exceptions import DataFormatError, InvalidLabelsError
from rbrl.registry import REGISTRY

X, Y = make_multilabel_classification(60, 5, n_classes=4, random_state=0)
DATA = Dataset(X, Y, list("abcde"), ["sea", "sand", "sun", "wind"])
ORDER = [4, 2, 0, 1, 3]
SHUFFLED = Dataset(X[:, ORDER], Y[:, ::-1], [DATA.feature_names[j] for j in ORDER], DATA.label_names[::-1])


@pytest.mark.parametrize("name", REGISTRY)
def test_every_method_learns_from_a_data_set_and_matches_others_by_name(name):
    model = REGISTRY[name]()
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    model.fit(DATA)
    assert list(model.feature_names_in_) == list("abcde")
    assert list(model.label_names_) == list(DATA.label_names)
    np.testing.assert_array_equal(model.predict(SHUFFLED), model.predict(DATA))
    np.testing.assert_array_equal(model.decision_function(SHUFFLED), model.decision_function(DATA))


def test_what_does_not_match_is_refused():
    model = BRLClassifier().fit(DATA)
    with pytest.raises(
        DataFormatError, match="it has no feature 'e', which the model was fitted on; it has 'a', 'b', 'c', …"
    ):
        model.predict(Dataset(X[:, :4], Y, list("abcd")))
    with pytest.raises(DataFormatError, match="its feature 'f' is not one that the model was fitted on"):
        model.predict(Dataset(np.hstack([X, X[:, :1]]), Y, list("abcdef")))
    with pytest.raises(DataFormatError, match="it has 4 features; the model was fitted on 5"):
        model.predict(Dataset(X[:, :4], Y))
    with pytest.raises(ValueError, match="Got y of type ndarray"):
        model.fit(DATA, Y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pd.DataFrame(X, columns=list("abcdx")))


def test_names_of_an_earlier_fit_are_forgotten():
    model = BRLClassifier().fit(DATA).fit(X, Y)
    assert get_columns(model) == Columns(5, 4)
    frames = pd.DataFrame(X, columns=list("vwxyz")), pd.DataFrame(Y, columns=list("ABCD"))
    assert get_columns(model.fit(*frames)) == Columns(5, 4, tuple("vwxyz"), tuple("ABCD"))
    assert get_columns(model.fit([(X, Y)])) == Columns(5, 4)


@pytest.mark.parametrize("model", [BRLClassifier(), make_pipeline(StandardScaler(), BRLClassifier())], ids=str)
def test_columns_survive_in_a_model_file(model, tmp_path):
    columns = Columns(5, 4, tuple("abcde"), DATA.label_names, 0, 1)
    model.fit(X, Y)
    store_columns(model, columns)
    rbrl.save(model, tmp_path / "model")
    assert get_columns(rbrl.load(tmp_path / "model")) == columns


def test_columns_match_where_categories_are():
    coded = Dataset(X, Y, list("abcde"), DATA.label_names, categorical_index=[1, 4])
    matched = coded.matching(SHUFFLED.columns)
    assert [matched.feature_names[j] for j in matched.categorical_index] == ["e", "b"]
    assert matched.label_names == SHUFFLED.label_names
    np.testing.assert_array_equal(matched.Y, SHUFFLED.Y)


@pytest.mark.parametrize("labels", [Y, sparse.csr_array(Y)], ids=["dense", "sparse"])
def test_rows_in_blocks_are_predicted_block_by_block(tmp_path, labels):
    model = RBRLClassifier().fit(X, labels)
    shards, parts = write_shards((X, Y), tmp_path, 25), [(X[:25], Y[:25]), (X[25:], Y[25:])]
    for rows in (shards, open_shards(tmp_path), parts):
        found, expected = model.predict(rows), model.predict(X)
        assert type(found) is type(expected)
        np.testing.assert_array_equal(*(a.toarray() if sparse.issparse(a) else a for a in (found, expected)))
        np.testing.assert_allclose(model.decision_function(rows), model.decision_function(X), rtol=1e-12)
        for one, other in zip(model.predict_top(rows, 2), model.predict_top(X, 2)):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def test_shards_are_matched_by_name(tmp_path):
    shards = write_shards(SHUFFLED, tmp_path, 25)
    model = BRLClassifier().fit(DATA)
    np.testing.assert_array_equal(model.predict(shards), model.predict(DATA))
    learned = RBRLClassifier().fit(shards)
    assert get_columns(learned) == SHUFFLED.columns
    np.testing.assert_array_equal(learned.predict(DATA), learned.predict(shards))


@pytest.mark.parametrize("model", [BinaryRelevance(), MLkNN()], ids=str)
def test_methods_that_need_all_rows_say_so_of_shards(tmp_path, model):
    with pytest.raises(ValueError, match=r"learns from rows in memory. Got Shards\(3 files.*such as RBRLClassifier"):
        model.fit(write_shards(DATA, tmp_path, 25))


def test_a_stream_keeps_to_the_labels_of_its_first_batch():
    frame = pd.DataFrame(Y, columns=DATA.label_names)
    model = RBRLClassifier(ridge=1.0).partial_fit(X, frame)
    assert list(model.label_names_) == list(DATA.label_names)
    with pytest.raises(
        InvalidLabelsError, match=r"first batch: sea, sand.*Got wind, sun.*put the columns in that order"
    ):
        model.partial_fit(X, frame[frame.columns[::-1]])
    with pytest.raises(
        InvalidLabelsError, match=r"Got a batch of 5 columns.*start a new model, and give each batch a column"
    ):
        model.partial_fit(X, np.hstack([Y, Y[:, :1]]))
    classes = RBRLClassifier(ridge=1.0).partial_fit(X, Y[:, 0], classes=[0, 1])
    with pytest.raises(InvalidLabelsError, match=r"Got \[2 3\] in this batch.*classes= in its first call"):
        classes.partial_fit(X, 2 + Y[:, 0])
