"""Sets, best labels and frames by name; what the labels are called where they have no names."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_multilabel_classification
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.metaestimators import available_if

import rbrl
from rbrl import BinaryRelevance, BRLClassifier, MLkNN, RBRLClassifier, TunedThresholdClassifier
from rbrl.datasets import Dataset, write_shards
from rbrl.estimators.named_answers import NamedAnswers, set_label_names
from rbrl.exceptions import InvalidFeaturesError, InvalidLabelsError

NAMES = ["sea", "sand", "sun", "wind"]
X, Y = make_multilabel_classification(60, 5, n_classes=4, random_state=0)
FRAME = pd.DataFrame(Y, columns=NAMES)
SETS = [[name for name, is_relevant in zip(NAMES, row) if is_relevant] for row in Y]


def test_without_names_labels_go_by_their_columns():
    model = RBRLClassifier().fit(X, Y)
    assert rbrl.label_names(model) is None
    assert model.predict_sets(X) == [np.flatnonzero(row).tolist() for row in model.predict(X)]
    labels, scores = model.predict_top(X, 4)
    np.testing.assert_array_equal(np.take_along_axis(model.decision_function(X), labels, axis=1), scores)
    model.set_output(predict="pandas")
    assert list(model.predict(X).columns) == [0, 1, 2, 3]
    assert model.set_output(predict="polars").predict(X).columns == ["0", "1", "2", "3"]


def test_signed_and_sparse_labels_have_sets_too():
    expected = RBRLClassifier().fit(X, FRAME).predict_sets(X)
    for labels in (2 * Y - 1, sparse.csr_array(Y), sparse.csr_array(2 * Y - 1), FRAME.astype(bool)):
        model = RBRLClassifier(label_names=NAMES).fit(X, labels)
        assert model.predict_sets(X) == rbrl.predict_sets(make_pipeline(model), X) == expected


def test_classes_of_a_column_are_called_by_themselves():
    y = np.array(["calm", "fair", "storm"])[np.arange(60) % 3]
    model = RBRLClassifier().fit(X, y)
    assert model.predict_sets(X) == [[label] for label in model.predict(X)]
    labels, _ = model.predict_top(X, 1)
    np.testing.assert_array_equal(labels.ravel(), model.predict(X))
    model.set_output(predict="pandas")
    assert list(model.decision_function(X).columns) == ["calm", "fair", "storm"]
    assert isinstance(model.predict(X), pd.Series)
    binary = RBRLClassifier().fit(X, y == "calm").set_output(predict="polars")
    assert isinstance(binary.decision_function(X), pl.Series)
    assert binary.predict(X).to_list() == [row[0] for row in binary.predict_sets(X)]


def test_models_of_scikit_learn_are_served():
    model = MultiOutputClassifier(LogisticRegression()).fit(X, Y)
    assert rbrl.predict_sets(model, X) == [np.flatnonzero(row).tolist() for row in model.predict(X)]
    labels, scores = rbrl.predict_top(make_pipeline(StandardScaler(), model).fit(X, Y), X, 2)
    assert labels.shape == scores.shape == (60, 2)
    with pytest.raises(ValueError, match=r"The k parameter of predict_top must be an integer >= 1. Got 0"):
        rbrl.predict_top(model, X, 0)
    tuned = TunedThresholdClassifier(LogisticRegression(), label_names=NAMES[:1])
    with pytest.raises(InvalidLabelsError, match="label_names need a label matrix"):
        tuned.fit(X, Y[:, 0])


def test_a_data_set_and_shards_bring_names_or_take_them(tmp_path):
    data = Dataset(X, Y, label_names=NAMES)
    shards = write_shards((X, Y), tmp_path, 25)
    for rows, names in ((data, None), (Dataset(X, Y), NAMES), (shards, NAMES), ([(X, Y)], NAMES)):
        model = RBRLClassifier(label_names=names).fit(rows)
        assert model.label_names_.tolist() == NAMES
        assert model.predict_sets(rows) == model.predict_sets(X)
    with pytest.raises(InvalidLabelsError, match="names of y's columns, 'sea', 'sand'"):
        RBRLClassifier(label_names=NAMES[::-1]).fit(data)
    with pytest.raises(InvalidLabelsError, match="Got 2 names for 4 columns"):
        RBRLClassifier(label_names=NAMES[:2]).fit(shards)


def test_batches_of_label_sets_have_the_labels_of_the_first():
    model = RBRLClassifier(ridge=1.0, label_names=NAMES).partial_fit(X[:5], SETS[:5]).partial_fit(X[5:], SETS[5:])
    whole = RBRLClassifier(ridge=1.0).partial_fit(X, Y)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-9, atol=1e-12)
    with pytest.raises(
        InvalidLabelsError, match=r"only the labels 'sea', 'sand', 'sun', 'wind'. Unknown labels: 'fog'"
    ):
        model.partial_fit(X[:1], [["fog"]])


def test_label_sets_train_and_score_like_the_matrix():
    of_sets, of_matrix = RBRLClassifier(label_names=NAMES).fit(X, SETS), RBRLClassifier().fit(X, FRAME)
    np.testing.assert_array_equal(of_sets.coef_, of_matrix.coef_)
    np.testing.assert_array_equal(of_sets.predict(X), of_matrix.predict(X))
    assert of_sets.score(X, SETS) == of_matrix.score(X, FRAME) == of_matrix.score(X, Y)
    with pytest.raises(InvalidLabelsError, match="names of y's columns"):
        of_matrix.score(X, FRAME[NAMES[::-1]])


@pytest.mark.parametrize("library", [pd, pl])
def test_missing_entries_of_a_frame_are_missing(library):
    known = Y.astype(float)
    known[::7, 1] = np.nan
    columns = {name: [None if np.isnan(v) else int(v) for v in column] for name, column in zip(NAMES, known.T)}
    model = RBRLClassifier().fit(X, library.DataFrame(columns))
    np.testing.assert_array_equal(model.coef_, RBRLClassifier().fit(X, known).coef_)
    assert rbrl.label_names(model) == NAMES


def test_frames_in_a_pipeline_keep_their_index():
    rows = pd.DataFrame(X, columns=list("abcde"), index=np.arange(60) + 100)
    pipeline = make_pipeline(StandardScaler(), RBRLClassifier().set_output(predict="pandas"))
    pipeline.set_output(transform="pandas")
    search = GridSearchCV(pipeline, {"rbrlclassifier__nuclear": [0.1, 1.0]}, cv=3).fit(rows, FRAME)
    scores = search.decision_function(rows)
    assert list(scores.columns) == NAMES
    assert scores.index.equals(rows.index)
    np.testing.assert_array_equal(search.predict(rows).to_numpy() > 0, scores.to_numpy() > 0)
    assert cross_val_predict(pipeline, rows, FRAME, cv=3).shape == Y.shape


def test_sparse_answers_are_frames_of_sparse_columns():
    model = BRLClassifier(label_names=NAMES).fit(X, sparse.csr_array(Y))
    expected = model.predict(X).toarray()
    frame = model.set_output(predict="pandas").predict(X)
    assert all(isinstance(dtype, pd.SparseDtype) for dtype in frame.dtypes)
    np.testing.assert_array_equal(frame.sparse.to_dense().to_numpy(), expected)
    np.testing.assert_array_equal(model.set_output(predict="polars").predict(X).to_numpy(), expected)


def test_a_model_inside_another_answers_it_in_arrays():
    inside = BRLClassifier().set_output(predict="pandas")
    model = TunedThresholdClassifier(inside).fit(X, FRAME)
    assert isinstance(model.estimator_.predict(X), pd.DataFrame)
    assert isinstance(model.predict(X), np.ndarray)
    assert list(model.set_output(predict="pandas").predict(X).columns) == NAMES


def test_a_subclass_of_ones_own_is_wrapped_once_for_the_user():
    class Chatty(MLkNN):
        def predict(self, X):
            return (self.decision_function(X) > 0.0).astype(int)

    model = Chatty().fit(X, FRAME).set_output(predict="pandas")
    assert list(model.predict(X).columns) == NAMES


def test_probabilities_that_are_there_under_a_condition_come_in_frames():
    class Votes(BinaryRelevance):
        @available_if(lambda self: self.scores == "hard")
        def predict_proba(self, X):
            return self.decision_function(X) + 0.5

    assert not hasattr(Votes().set_output(predict="pandas"), "predict_proba")
    model = Votes(scores="hard").fit(X, FRAME)
    expected = model.predict_proba(X)
    assert isinstance(expected, np.ndarray)
    frame = model.set_output(predict="pandas").predict_proba(X)
    assert list(frame.columns) == NAMES
    np.testing.assert_array_equal(frame.to_numpy(), expected)


def test_output_is_chosen_among_containers():
    with pytest.raises(ValueError, match=r"MLkNN.set_output must be one of 'default', 'pandas', 'polars'. Got 'arrow'"):
        MLkNN().set_output(predict="arrow")
    model = MLkNN().set_output(predict="pandas").set_output()
    assert isinstance(clone(model).fit(X, Y).predict(X), pd.DataFrame)


WITHOUT_POLARS = """
import sys
sys.modules["polars"] = None  # not installed
from rbrl import BRLClassifier
model = BRLClassifier().fit([[0.0], [1.0], [5.0]], [["cold"], ["cold"], ["hot"]])
print(model.predict_sets([[0.0]]))
try:
    model.set_output(predict="polars")
except ImportError as error:
    print(error)
"""


def test_polars_is_needed_by_those_who_ask_for_it():
    done = subprocess.run([sys.executable, "-c", WITHOUT_POLARS], capture_output=True, text=True, check=True)
    needed = "BRLClassifier.set_output(predict='polars') needs polars; install it, or use 'default'."
    assert done.stdout.splitlines() == ["[['cold']]", needed]


def test_names_are_handed_on_to_the_classifier_inside():
    pipeline = set_label_names(make_pipeline(StandardScaler(), TunedThresholdClassifier(BinaryRelevance())), NAMES)
    assert clone(pipeline)[-1].label_names == NAMES
    assert isinstance(pipeline[-1], NamedAnswers)
    weighted = RBRLClassifier(class_weight={"sun": 3.0})
    model = TunedThresholdClassifier(weighted, cv=2).fit(X, FRAME)
    np.testing.assert_array_equal(model.estimator_.coef_, clone(weighted).fit(X, FRAME).coef_)


REVIEWS = ["a very good thing indeed", "no"] * 30


@pytest.mark.parametrize("library", [pd, pl])
def test_text_among_the_features_is_named_with_its_encoders(library):
    rows = library.DataFrame({"size": X[:, 0], "colour": ["red", "blue"] * 30, "review": REVIEWS})
    with pytest.raises(InvalidFeaturesError) as caught:
        RBRLClassifier().fit(rows, Y)
    message = str(caught.value)
    assert "text in columns 'colour', 'review' of X, such as 'blue'; encode them first: make_pipeline(" in message
    # What the message says to do works when it is pasted.
    words = {"make_pipeline": make_pipeline, "ColumnTransformer": ColumnTransformer, "OneHotEncoder": OneHotEncoder}
    words |= {"TfidfVectorizer": TfidfVectorizer, "RBRLClassifier": RBRLClassifier}
    advice = eval(message.partition("first: ")[2].rstrip("."), words)
    assert advice.fit(rows, Y).predict(rows).shape == Y.shape


@pytest.mark.parametrize("texts", [REVIEWS, pd.Series(REVIEWS), pl.Series(REVIEWS), np.array(REVIEWS)], ids=type)
def test_rows_that_are_texts_need_a_vectoriser(texts):
    with pytest.raises(
        InvalidFeaturesError, match=r"Got a text for each row, such as 'a very good thing indeed'.*Tfidf"
    ):
        RBRLClassifier().fit(texts, Y)


def test_numbers_as_text_are_numbers_and_other_errors_stay():
    text = pd.DataFrame(X).astype(str)
    np.testing.assert_array_equal(RBRLClassifier().fit(text, Y).predict(text), RBRLClassifier().fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="Input X contains NaN"):
        RBRLClassifier().fit(text.replace(text.iloc[0, 0], "nan"), Y)
    categories = pd.DataFrame({"kind": pd.Categorical([f"u{i}" for i in range(60)])})
    with pytest.raises(InvalidFeaturesError, match=r"60 different words in 60 rows.*column 'kind' of X, such as 'u10'"):
        RBRLClassifier().fit(categories, Y)
