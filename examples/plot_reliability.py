"""Reliability diagrams: do probabilities of yeast mean what they say?

Three ways to probabilities on the same split: the sigmoid of RBRL's scores, which promises too much and too little;
the same scores calibrated; and one-vs-rest logistic regression. Run it with `python examples/plot_reliability.py [FOLDER]`;
it writes reliability.png and reliability.svg.
"""

import sys
from pathlib import Path

from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from rbrl import BinaryRelevance, CalibratedMultiLabelClassifier, RBRLClassifier, datasets, evaluate
from rbrl.report import reliability_diagram
from rbrl.report.figures import save_figure

METRICS = ("expected_calibration_error", "log_loss", "brier_score")


def main(folder: Path) -> None:
    train, test = datasets.load("yeast").split(seed=0)
    calibrated = CalibratedMultiLabelClassifier(RBRLClassifier()).fit(*train)
    logistic = BinaryRelevance(LogisticRegression(max_iter=1000)).fit(*train)
    probabilities = {
        "Sigmoid of scores": expit(calibrated.estimator_.decision_function(test.X)),
        "Calibrated": calibrated.predict_proba(test.X),
        "Logistic": logistic.predict_proba(test.X),
    }
    for name, P in probabilities.items():
        values = evaluate(test.Y, metrics=METRICS, probabilities=P)
        print(f"{name:18}", "  ".join(f"{metric} {value:.3f}" for metric, value in values.items()))
    save_figure(reliability_diagram(test.Y, probabilities), folder / "reliability")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
