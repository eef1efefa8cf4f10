"""cd tests; python -m judge --count 10000 --seed 0: judge many problems, and show what is wrong, by kind.

With --ranking, the problems are those of Rank-SVM, Rank-SVMz and calibrated Rank-SVM. With --factors, they are linear
models in factors, whose scores are computed in blocks of rows. With --compressed, they are linear models that are
solved in groups of labels, or compressed.
"""

import argparse
import sys
import time
from collections import Counter
from itertools import count, islice
from multiprocessing import Pool

import numpy as np
from threadpoolctl import threadpool_limits

from .problems import random_compressed_problem, random_factors_problem, random_problem
from .ranking import random_ranking_problem
from .verdict import judge


def verdicts(seeds, jobs=1, verdict_of=None):
    """Verdicts of all seeds, in order."""
    verdict_of = verdict_of or verdict_of_convex
    if jobs == 1:
        with threadpool_limits(1):
            yield from map(verdict_of, seeds)
        return
    with Pool(jobs) as pool:
        yield from pool.imap(verdict_of, seeds, chunksize=8)


def verdict_of_convex(seed):
    return judge(random_problem(seed))


def verdict_of_ranking(seed):
    return judge(random_ranking_problem(seed))


def verdict_of_factors(seed):
    return judge(random_factors_problem(seed))


def verdict_of_compressed(seed):
    return judge(random_compressed_problem(seed))


def table(found):
    """Lines by kind: problems, fits that warned, the worst true gap as a share of `gap_`, and what is wrong, by letter.

    weak: no better weights were found than those of the fit, which do not come from a search of the judge's own;
    open: rounding hides more than 1e-9 of the stored coefficients' objective, even in extended precision; excused: the
    objective is off by more than that, but by no more than rounding of kernel values to double precision explains, and the
    fit warned.
    """
    letters = " ".join(f"{letter:>5}" for letter in "abcd")
    others = f"{'weak':>5} {'open':>5} {'excused':>7}"
    yield f"{'kind':12} {'problems':>8} {'warned':>7} {'worst true gap / gap_':>22} {letters} {others}"
    kinds = dict.fromkeys(verdict.problem.kind for verdict in found)
    for kind in (*kinds, "all"):
        of_kind = [verdict for verdict in found if kind in (verdict.problem.kind, "all")]
        wrong = Counter(letter for verdict in of_kind for letter in verdict.wrong)
        warned = sum(verdict.warned for verdict in of_kind)
        weak = sum(not verdict.good_witness for verdict in of_kind)
        unsure = sum(not verdict.decided for verdict in of_kind)
        excused = sum(verdict.excused for verdict in of_kind)
        counts = " ".join(f"{wrong[letter]:5}" for letter in "abcd")
        yield f"{kind:12} {len(of_kind):8} {warned:7} {worst_share(of_kind):22.3g} {counts} {weak:5} {unsure:5} {excused:7}"


def worst_share(found):
    """Of the gaps that are not rounding alone."""
    shares = [verdict.true_gap / verdict.gap for verdict in found if verdict.gap > 0 and verdict.true_gap > 1e-12]
    return max(shares, default=np.nan)


def main():
    parser = argparse.ArgumentParser(prog="python -m judge", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first; its problem alone with --count 1")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--ranking", action="store_true", help="problems of the ranking SVMs")
    parser.add_argument("--factors", action="store_true", help="problems of linear models in factors")
    parser.add_argument("--compressed", action="store_true", help="problems of linear models in groups, or compressed")
    parser.add_argument("--entries", action="store_true", help="only problems with missing labels or weighted entries")
    options = parser.parse_args()
    started, found = time.perf_counter(), []
    seeds = (seed for seed in count(options.seed) if not options.entries or random_problem(seed).has_entries())
    kinds = {
        verdict_of_ranking: options.ranking, verdict_of_factors: options.factors, verdict_of_compressed: options.compressed
    }  # fmt: skip
    verdict_of = next((verdict_of for verdict_of, is_chosen in kinds.items() if is_chosen), None)
    for verdict in verdicts(islice(seeds, options.count), options.jobs, verdict_of):
        found.append(verdict)
        if verdict.wrong or options.count == 1:
            sys.stdout.write(f"{verdict}\n")
            sys.stdout.flush()
    sys.stdout.write("\n".join(table(found)) + f"\n{time.perf_counter() - started:.0f} s\n")
    return 1 if any(verdict.wrong for verdict in found) else 0


if __name__ == "__main__":
    sys.exit(main())
