"""The answers that open the page, each sentence with its figures from the rows."""

import numpy as np

from comparison import rules
from comparison.answers import KINDS, LABELS, LEVEL, ROPE, SCORES, Findings, Judgement, names, title_of
from comparison.methods import BY_NAME

OF_KIND = {
    "dense": "**Dense features**",
    "sparse": "**Sparse features (text)**",
    "many labels": f"**More than {rules.MANY_LABELS} labels**",
}
NEAR = 0.01
RBRL = ("rbrl-linear", "rbrl-rbf")


def answers(findings: Findings) -> list[str]:
    """Which method when: the sentences of the first screen."""
    scores, labels = findings.judged(SCORES), findings.judged(LABELS)
    kinds = [of_kind(findings, one) for one in KINDS]
    said = [overall(scores, "To rank labels"), overall(labels, "To choose labels"), *kinds, untuned(findings)]
    return [
        one for one in (*said, quick(findings, scores), thresholds(findings, labels), probabilities(findings)) if one
    ]


def overall(judgement: Judgement, question: str) -> str:
    """Who is best by one metric, who is equal to it, and whom the tests cannot tell from it."""
    best, n_sets = judgement.best, len(judgement.table)
    ahead = f"**{question}**: {_title(best)} has the best average rank by {title_of(judgement.column).lower()}"
    ahead += f" ({judgement.ranks[best]:.1f} of {judgement.table.shape[1]} methods, {n_sets} data sets)"
    found = judgement.against(best)
    beaten, equal = (found.p <= LEVEL).sum(), [str(name) for name in found.index[found.equivalent > 0.5]]
    ahead += (
        f" and is significantly ahead of {beaten} of the {len(found)} others; next is {_title(str(found.index[0]))}"
    )
    ahead += f" ({judgement.ranks[found.index[0]]:.1f}, median difference {found['median'].iloc[0]:+.3f})"
    return f"{ahead}. Practically equal to it (within ±{ROPE}, more probable than not): {names(equal) or 'none'}."


def of_kind(findings: Findings, kind: str) -> str:
    """The best methods on one kind of data, by values."""
    judged = findings.judged(SCORES, of_kind=kind)
    if len(judged.table) < 2:
        return ""
    labels = findings.judged(LABELS, of_kind=kind)
    first, second, third = judged.ranks.index[:3]
    mean = judged.table.mean()
    text = (
        f"{OF_KIND[kind]} ({len(judged.table)} data sets): take {_title(first)} (average precision {mean[first]:.3f}), "
    )
    text += f"then {_title(second)} ({mean[second]:.3f}) or {_title(third)} ({mean[third]:.3f}); "
    text += f"for labels {_title(labels.best)} (micro-F1 {labels.table.mean()[labels.best]:.3f}). "
    near = mean.index[mean >= mean.max() - NEAR]
    quick = findings.seconds.loc[near, rules.TUNED].idxmin()
    took = seconds_text(findings.seconds.loc[quick, rules.TUNED])
    return text + f"The quickest within {NEAR} of the best mean is {_title(quick)} ({mean[quick]:.3f}, {took})."


def untuned(findings: Findings) -> str:
    """What to take without a search, and what a search gains."""
    default = findings.judged(SCORES, rules.DEFAULT)
    gains = (findings.values(SCORES) - findings.values(SCORES, rules.DEFAULT)).mean().sort_values()
    best = default.best
    most = list(gains.index[::-1][:2])
    said = " and ".join(f"{_title(name)} {gains[name]:+.3f}" for name in most)
    return (
        f"**No time to tune**: {_title(best)} as it comes has the best rank ({default.ranks[best]:.1f}); its search adds "
        f"{gains[best]:+.3f} to its average precision. A search matters most for {said}; the median over methods is "
        f"{gains.median():+.3f}."
    )


def quick(findings: Findings, scores: Judgement) -> str:
    """The methods on the front of rank and time."""
    seconds = findings.seconds[rules.TUNED]
    front = findings.front(scores)
    said = ", ".join(f"{_title(name)} (rank {scores.ranks[name]:.1f}, {seconds_text(seconds[name])})" for name in front)
    slowest = seconds[scores.table.columns].idxmax()
    return (
        f"**Quality against time**: nothing is both quicker and better ranked than {said}. "
        f"The slowest, {_title(slowest)}, takes {seconds_text(seconds[slowest])} for rank {scores.ranks[slowest]:.1f}."
    )


def thresholds(findings: Findings, labels: Judgement) -> str:
    """What a learned threshold is worth beside the choice of a method."""
    micro, macro = findings.threshold_gains("f1_micro", rules.ONE), findings.threshold_gains("f1_macro", rules.EACH)
    means = labels.table.mean().sort_values()
    spread = means.iloc[-1] - float(np.median(means))
    return (
        f"**Learn the threshold before you change the method**: one threshold gains {micro.median():+.3f} of micro-F1 "
        f"(median over methods; {_title(micro.idxmax())} {micro.max():+.3f}), one for each label {macro.median():+.3f} "
        f"of macro-F1, while the best method is {spread:.3f} of micro-F1 above the middle one."
    )


def probabilities(findings: Findings) -> str:
    """Whose probabilities to trust."""
    with_any = [name for name in findings.ranked if findings.values("log_loss")[name].notna().any()]
    if not with_any:
        return ""
    loss = findings.judged("log_loss", methods=with_any)
    error = findings.judged("expected_calibration_error", methods=with_any)
    return (
        f"**Probabilities**: of the {len(with_any)} methods that give them, {_title(loss.best)} has the best log loss "
        f"({loss.table.mean()[loss.best]:.3f}), {_title(error.best)} the best calibration (error "
        f"{error.table.mean()[error.best]:.3f}); worst is {_title(loss.ranks.index[-1])} "
        f"({loss.table.mean()[loss.ranks.index[-1]]:.3f})."
    )


def losses_of(findings: Findings, method: str) -> list[str]:
    """Where a method loses, and to whom: significantly, and by kind of data."""
    said = []
    for column in (SCORES, LABELS):
        judged = findings.judged(column)
        found = judged.against(method)
        beaten = found[(found.p <= LEVEL) & (found["median"] < 0)]
        n_sets = len(judged.table)
        by = ", ".join(
            f"{_title(str(name))} (on {row.losses:.0f} of {n_sets}, median {-row['median']:.3f})"
            for name, row in beaten.iterrows()
        )
        place = list(judged.ranks.index).index(method) + 1
        text = f"{title_of(column)}: place {place} of {len(judged.ranks)}, average rank {judged.ranks[method]:.1f}; "
        said.append(text + (f"beaten significantly by {by}." if by else "beaten significantly by none."))
    for kind in KINDS:
        judged = findings.judged(SCORES, of_kind=kind)
        if len(judged.table) > 1:
            means = judged.table.mean().sort_values(ascending=False)
            ahead = [name for name in means.index if means[name] > means[method] + ROPE]
            by = ", ".join(f"{_title(name)} {means[name] - means[method]:+.3f}" for name in ahead[:4])
            text = f"{OF_KIND[kind].strip('*')}: mean average precision {means[method]:.3f}; "
            said.append(
                text
                + (f"ahead of it by more than {ROPE}: {by}." if by else f"none is ahead of it by more than {ROPE}.")
            )
    return said


def seconds_text(value: float) -> str:
    """Seconds for a sentence.

    Examples
    --------
    >>> seconds_text(0.034), seconds_text(12.3)
    ('0.034 s', '12 s')
    """
    return f"{value:.0f} s" if value >= 9.5 else f"{value:.2g} s"


def _title(method: str) -> str:
    return BY_NAME[method].title
