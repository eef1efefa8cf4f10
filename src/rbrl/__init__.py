"""Multi-label classification that learns rankings and label sets jointly, with certified solvers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rbrl._common import old_names
from rbrl._version import __version__

if TYPE_CHECKING:
    from rbrl import datasets, decision, experiments, inspection, metrics, selection, solvers, splits
    from rbrl.estimators import (
        CPNL,
        MLFE,
        BinaryRelevance,
        BRLClassifier,
        CalibratedLabelRanking,
        EnsembleOfChains,
        LabelPowerset,
        MLkNN,
        RAkEL,
        RBRLClassifier,
        label_names,
        predict_sets,
        predict_top,
    )
    from rbrl.inspection import explain, label_map
    from rbrl.installation import info
    from rbrl.interop.onnx import to_onnx
    from rbrl.metrics import classification_report, evaluate
    from rbrl.persistence import load, save
    from rbrl.ranking_svm import CalibratedRankSVM, RankSVM, RankSVMz
    from rbrl.selection import CalibratedMultiLabelClassifier, RBRLClassifierCV, TunedThresholdClassifier

__all__ = [
    "CPNL", "MLFE", "BRLClassifier", "BinaryRelevance", "CalibratedLabelRanking", "CalibratedMultiLabelClassifier",
    "CalibratedRankSVM", "EnsembleOfChains", "LabelPowerset", "MLkNN", "RAkEL", "RBRLClassifier", "RBRLClassifierCV",
    "RankSVM", "RankSVMz", "TunedThresholdClassifier", "__version__", "classification_report", "datasets", "decision",
    "evaluate", "experiments", "explain", "info", "inspection", "label_map", "label_names", "load", "metrics",
    "predict_sets", "predict_top", "save", "selection", "solvers", "splits", "to_onnx",
]  # fmt: skip

# Module of each public name. A name is imported when it is first used, so that `import rbrl` is fast. Names of
# __all__ that are not in this table are modules.
_HOMES = {
    **dict.fromkeys(("BRLClassifier", "BinaryRelevance", "CPNL", "CalibratedLabelRanking"), "estimators"),
    **dict.fromkeys(("EnsembleOfChains", "LabelPowerset", "MLFE", "MLkNN", "RAkEL", "RBRLClassifier"), "estimators"),
    **dict.fromkeys(("CalibratedRankSVM", "RankSVM", "RankSVMz"), "ranking_svm"),
    **dict.fromkeys(("CalibratedMultiLabelClassifier", "RBRLClassifierCV", "TunedThresholdClassifier"), "selection"),
    **dict.fromkeys(("label_names", "predict_sets", "predict_top"), "estimators"),
    **dict.fromkeys(("classification_report", "evaluate"), "metrics"),
    **dict.fromkeys(("explain", "label_map"), "inspection"),
    "info": "installation",
    "load": "persistence",
    "save": "persistence",
    "to_onnx": "interop.onnx",
}


old_names.install()


def __getattr__(name: str) -> Any:
    if f"rbrl.{name}" in old_names.MODULES:
        return old_names.import_old_module(f"rbrl.{name}", stacklevel=2)
    if name not in __all__:
        raise AttributeError(f"module 'rbrl' has no attribute {name!r}")
    module = import_module(f"rbrl.{_HOMES.get(name, name)}")
    globals()[name] = value = getattr(module, name) if name in _HOMES else module
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
