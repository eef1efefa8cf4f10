"""Multi-label classification that learns rankings and label sets jointly, with certified solvers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rbrl._common import old_names
from rbrl._version import __version__

if TYPE_CHECKING:
    from rbrl import datasets as datasets
    from rbrl import decision as decision
    from rbrl import experiments as experiments
    from rbrl import inspection as inspection
    from rbrl import metrics as metrics
    from rbrl import selection as selection
    from rbrl import solvers as solvers
    from rbrl import splits as splits
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
        compress,
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
    "RankSVM", "RankSVMz", "TunedThresholdClassifier", "__version__", "classification_report", "compress", "evaluate",
    "explain", "info", "label_map", "label_names", "load", "predict_sets", "predict_top", "save", "to_onnx",
]  # fmt: skip

# Public names of each module. A name or module is imported when it is first used, so that `import rbrl` is fast.
_NAMES = {
    "estimators": (
        "BRLClassifier", "BinaryRelevance", "CPNL", "CalibratedLabelRanking", "EnsembleOfChains", "LabelPowerset",
        "MLFE", "MLkNN", "RAkEL", "RBRLClassifier", "compress", "label_names", "predict_sets", "predict_top",
    ),
    "inspection": ("explain", "label_map"),
    "installation": ("info",),
    "interop.onnx": ("to_onnx",),
    "metrics": ("classification_report", "evaluate"),
    "persistence": ("load", "save"),
    "ranking_svm": ("CalibratedRankSVM", "RankSVM", "RankSVMz"),
    "selection": ("CalibratedMultiLabelClassifier", "RBRLClassifierCV", "TunedThresholdClassifier"),
}  # fmt: skip
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
_MODULES = ("datasets", "decision", "experiments", "inspection", "metrics", "selection", "solvers", "splits")

old_names.install()


def __getattr__(name: str) -> Any:
    if f"rbrl.{name}" in old_names.MODULES:
        return old_names.import_old_module(f"rbrl.{name}", stacklevel=2)
    if name not in _HOMES and name not in _MODULES:
        raise AttributeError(f"module 'rbrl' has no attribute {name!r}")
    module = import_module(f"rbrl.{_HOMES.get(name, name)}")
    globals()[name] = value = getattr(module, name) if name in _HOMES else module
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
