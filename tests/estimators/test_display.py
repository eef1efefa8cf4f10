"""A fit tells scikit-learn's callbacks how it goes on, and a fitted model shows its gap and its rank."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rbrl
from rbrl import BinaryRelevance, BRLClassifier, RankSVMz, RBRLClassifier, RBRLClassifierCV
from rbrl.exceptions import ConvergenceWarning
from rbrl.solvers import APG

X, Y = make_multilabel_classification(60, 8, n_classes=4, random_state=0)


class TestBoxInANotebook:
    @pytest.mark.parametrize("model", [RBRLClassifier(), BRLClassifier(kernel="rbf"), RankSVMz()], ids=repr)
    def test_shows_the_gap_once_it_is_fitted(self, model):
        assert "certified gap" not in model._repr_html_()
        model = clone(model).fit(X, Y)
        rank = f", rank {model.rank_}" if hasattr(model, "rank_") else ""
        assert f"certified gap {model.gap_:.2g}{rank}<" in model._repr_html_()

    def test_shows_it_inside_a_pipeline(self):
        pipeline = make_pipeline(StandardScaler(), RBRLClassifier()).fit(X, Y)
        assert f"certified gap {pipeline[-1].gap_:.2g}, rank {pipeline[-1].rank_}" in pipeline._repr_html_()

    def test_is_the_text_where_scikit_learn_is_told_so(self):
        with config_context(display="text"):
            assert not hasattr(RBRLClassifier().fit(X, Y), "_repr_html_")

    def test_of_a_method_without_a_certificate_says_nothing_of_it(self):
        assert "certified gap" not in BinaryRelevance().fit(X, Y)._repr_html_()


class Listener:
    """A callback that keeps what it is told, and asks to stop after some steps."""

    max_propagation_depth = None

    def __init__(self, stop_after=np.inf):
        self.told, self.gaps, self.stop_after = [], [], stop_after

    def setup(self, estimator, context):
        self.told.append("setup")

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, metadata=None, fitted_estimator=None):
        self.told.append((context.estimator_name, context.task_name, fitted_estimator is not None))
        self.gaps += [metadata["gap"]] if metadata and "gap" in metadata else []
        return len(self.gaps) >= self.stop_after


class TestCallbacks:
    @pytest.fixture(autouse=True)
    def _known_to_scikit_learn(self):
        pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from version 1.9 on")

    @pytest.mark.parametrize("kernel", ["linear", "rbf"])
    def test_hear_of_every_certified_step(self, kernel):
        listener = Listener()
        model = RBRLClassifier(kernel=kernel, tol=1e-6).set_callbacks(listener).fit(X, Y)
        steps = [told for told in listener.told if told == ("RBRLClassifier", "certified step", False)]
        assert len(steps) == len(listener.gaps) > 1
        assert listener.gaps[-1] <= model.tol < listener.gaps[0]
        assert listener.told[0] == "setup"
        assert listener.told[-2:] == [("RBRLClassifier", "fit", True), "teardown"]

    def test_hear_of_passes_over_parts(self):
        listener = Listener()
        model = RBRLClassifier().set_callbacks(listener).fit([(X[:30], Y[:30]), (X[30:], Y[30:])])
        assert listener.gaps[-1] <= model.tol
        assert listener.told[-1] == "teardown"

    def test_hear_of_every_model_of_a_search(self):
        listener = Listener()
        search = RBRLClassifierCV(ridges=[10, 1], rankings=[1], nuclears=[0.1], cv=2).set_callbacks(listener).fit(X, Y)
        assert listener.told.count(("RBRLClassifierCV", "model of a fold", False)) == 4
        assert listener.told[-2:] == [("RBRLClassifierCV", "fit", True), "teardown"]
        assert search.best_estimator_.gap_ <= 1e-4

    def test_of_a_pipeline_hear_of_its_classifier(self):
        listener = Listener()
        make_pipeline(StandardScaler(), RBRLClassifier()).set_callbacks(listener).fit(X, Y)
        assert ("RBRLClassifier", "certified step", False) in listener.told

    @pytest.mark.parametrize("solver", ["auto", APG(check_every=1)], ids=str)
    def test_may_stop_a_fit_which_says_how_far_it_came(self, solver):
        listener = Listener(stop_after=1)
        with pytest.warns(ConvergenceWarning, match="certified relative gap .* A callback asked it to stop"):
            model = RBRLClassifier(solver=solver, tol=1e-9).set_callbacks(listener).fit(X, Y)
        assert len(listener.gaps) == 1
        assert 1e-9 < model.gap_ < np.inf

    def test_change_nothing_by_listening(self):
        alone = RBRLClassifier().fit(X, Y)
        assert np.array_equal(alone.coef_, RBRLClassifier().set_callbacks(Listener()).fit(X, Y).coef_)

    def test_are_told_of_the_end_of_a_fit_that_failed(self):
        listener = Listener()
        with pytest.raises(ValueError, match="NaN"):
            RBRLClassifier().set_callbacks(listener).fit(np.full_like(X, np.nan), Y)
        assert listener.told == ["setup", "teardown"]

    def test_the_bar_of_scikit_learn_works(self, capfd):
        bar = pytest.importorskip("sklearn.callback").ProgressBar()
        RBRLClassifier().set_callbacks(bar).fit(X, Y)
        assert "RBRLClassifier - fit" in capfd.readouterr().out

    @pytest.mark.parametrize("inside", [False, True])
    def test_are_no_part_of_a_model_file(self, inside, tmp_path):
        listener = Listener()
        model = make_pipeline(StandardScaler(), RBRLClassifier()) if inside else RBRLClassifier()
        model.set_callbacks(listener).fit(X, Y)
        rbrl.save(model, tmp_path / "model")
        assert np.array_equal(rbrl.load(tmp_path / "model").predict(X), model.predict(X))
        assert model._skl_callbacks == [listener]
