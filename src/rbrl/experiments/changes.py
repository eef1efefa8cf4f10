"""What a changed plan does not reuse, and why, in words."""

from collections import defaultdict

WORDS = {
    "data": "the data",
    "class": "the class",
    "code": "the code of the class",
    "params": "the parameters",
    "non_empty": "the decision rule",
    "standardise": "the preprocessing",
    "splits": "how splits are drawn",
    "convention": "the convention",
    "split": "the seed of the splits",
    "seed": "the seed",
    "grid": "the grid",
    "tuned": "the folds, or the split that is tuned on",
    "criterion": "the criterion",
}


def changes(before, runs, todo, finished, version):
    """Return sentences about runs that cannot be reused.

    Parameters
    ----------
    before : dict of (dataset, method, split) to dict
        Identities under the last plan.
    runs, todo : list of Run
        Those of this plan, and those of them that will be done.
    finished : dict
        As `Store.finished` gives it.
    version : str
        Of rbrl.
    """
    reasons: dict[tuple, list] = defaultdict(list)
    for run in todo:
        old = before.get((run.dataset, run.method, run.split))
        if old is not None and old != run.identity:
            names = sorted(set(old) | set(run.identity))
            changed = [WORDS[name] for name in names if old.get(name) != run.identity.get(name)]
            reasons[run.method, ", ".join(changed)].append(run)
        elif run.key in finished:
            reasons[run.method, _incomplete(run, finished[run.key])].append(run)
    notes = [f"{_count(found)} of {method} done anew; changed: {why}." for (method, why), found in reasons.items()]
    gone = len(set(before) - {(run.dataset, run.method, run.split) for run in runs})
    if gone:
        notes.append(f"{gone} runs of the last plan are not in this one; the store keeps them.")
    return notes + _versions(runs, todo, finished, version)


def _incomplete(run, result):
    status, metrics, _, _ = result
    if status == "failed":
        return "nothing, they had failed"
    return f"the metrics, now with {', '.join(sorted(set(run.task.metrics) - metrics))}"


def _versions(runs, todo, finished, version):
    redone = {run.key for run in todo}
    reused = [finished[run.key][3] for run in runs if run.key not in redone]
    others = sorted(set(reused) - {version})
    return [
        f"{sum(one == other for one in reused)} runs are reused from rbrl {other}; this is {version}. "
        "Use a new folder to have all from one version."
        for other in others
    ]


def _count(found):
    return "1 run" if len(found) == 1 else f"{len(found)} runs"
