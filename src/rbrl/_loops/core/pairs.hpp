// The loops of the ranking SVMs over pairs of labels. The function of the same name in reference.py defines
// each of them.
#pragma once

#include <algorithm>

#include "arrays.hpp"

namespace rbrl {

// Pair e of row i, start[i] <= e < start[i + 1], has the labels winner[e] and loser[e].
struct Pairs {
    const std::int64_t *start;
    const std::int32_t *winner, *loser;
    Index rows, size;
};

// Take coordinate steps over the pairs of row i. Update its scores f, and write the change of its
// coefficients to `moved`.
RBRL_INLINE bool ascend_row(
    const Pairs &pairs, Index i, const double *margin, const double *cap, double *alpha, double *f, double curvature,
    Index inner, Buffer &moved
) {
    const Index first = pairs.start[i], last = pairs.start[i + 1];
    std::fill(moved.begin(), moved.end(), 0.0);
    if (curvature <= 0.0) {
        // The scores do not depend on the coefficients of this row, so its dual variables are at their caps.
        std::copy(cap + first, cap + last, alpha + first);
        return false;
    }
    const double length = 0.5 / curvature;
    bool any = false;
    for (Index round = 0; round < inner; ++round) {
        double change = 0.0;
        for (Index e = first; e < last; ++e) {
            const Index a = pairs.winner[e], b = pairs.loser[e];
            const double old = alpha[e], next = clip(old + (margin[e] - f[a] + f[b]) * length, 0.0, cap[e]);
            const double step = next - old;
            if (step != 0.0) {
                any = true;
                alpha[e] = next;
                f[a] += step * curvature;
                f[b] -= step * curvature;
                moved[a] += step;
                moved[b] -= step;
                change = std::max(change, std::fabs(step) / cap[e]);
            }
        }
        if (change < 1e-3) break;
    }
    return any;
}

inline RBRL_LOOP void ascend_gram(
    Matrix<const double> K, Matrix<double> scores, Pairs pairs, const double *margin, const double *cap, double *alpha,
    Vector<double> biases, double lift, Vector<const std::int64_t> order, Index inner
) {
    const Index l = scores.rows, n = scores.columns;
    Buffer moved(l), f(l);
    for (Index o = 0; o < order.size; ++o) {
        const Index i = order[o];
        if (pairs.start[i] == pairs.start[i + 1]) continue;
        for (Index j = 0; j < l; ++j) f[j] = scores[j][i] + biases[j];
        if (!ascend_row(pairs, i, margin, cap, alpha, f.data(), K[i][i] + lift, inner, moved)) continue;
        const double *RBRL_RESTRICT column = K[i];
        for (Index j = 0; j < l; ++j) {
            const double step = moved[j];
            if (step == 0.0) continue;
            biases[j] += lift * step;
            double *RBRL_RESTRICT target = scores[j];
            for (Index k = 0; k < n; ++k) target[k] += step * column[k];
        }
    }
}

template <class I>
RBRL_LOOP void ascend_rows(
    Sparse<double, I> X, Vector<const double> norms, Matrix<double> W, Pairs pairs, const double *margin, const double *cap,
    double *alpha, Vector<double> biases, double lift, Vector<const std::int64_t> order, Index inner
) {
    const Index l = W.columns;
    Buffer moves(l), scores(l);
    for (Index o = 0; o < order.size; ++o) {
        const Index i = order[o];
        if (pairs.start[i] == pairs.start[i + 1]) continue;
        double *RBRL_RESTRICT f = scores.data(), *RBRL_RESTRICT moved = moves.data();
        for (Index j = 0; j < l; ++j) f[j] = biases[j];
        for (Index e = X.indptr[i]; e < X.indptr[i + 1]; ++e) {
            const double x = X.data[e], *RBRL_RESTRICT w = W[X.indices[e]];
            for (Index j = 0; j < l; ++j) f[j] += x * w[j];
        }
        if (!ascend_row(pairs, i, margin, cap, alpha, f, norms[i] + lift, inner, moves)) continue;
        for (Index j = 0; j < l; ++j) biases[j] += lift * moved[j];
        for (Index e = X.indptr[i]; e < X.indptr[i + 1]; ++e) {
            const double x = X.data[e];
            double *RBRL_RESTRICT w = W[X.indices[e]];
            for (Index j = 0; j < l; ++j) w[j] += x * moved[j];
        }
    }
}

inline RBRL_LOOP double pair_hinge(Matrix<const double> F, Pairs pairs, const double *margin, const double *cap) {
    double value = 0.0;
    for (Index i = 0; i < F.rows; ++i) {
        const double *f = F[i];
        for (Index e = pairs.start[i]; e < pairs.start[i + 1]; ++e)
            value += cap[e] * positive_part(margin[e] - f[pairs.winner[e]] + f[pairs.loser[e]]);
    }
    return value;
}

inline RBRL_LOOP void pair_sums(Pairs pairs, const double *values, double sign, Matrix<double> R) {
    for (Index i = 0; i < R.rows; ++i) {
        double *r = R[i];
        for (Index e = pairs.start[i]; e < pairs.start[i + 1]; ++e) {
            r[pairs.winner[e]] += values[e];
            r[pairs.loser[e]] += sign * values[e];
        }
    }
}

inline RBRL_LOOP double project_pairs(
    Matrix<const double> F, const double *biases, Pairs pairs, const double *margin, const double *cap, const double *alpha,
    const double *steps, double *next, double *r, Matrix<double> H
) {
    double value = 0.0;
    for (Index i = 0; i < F.rows; ++i) {
        const double step = steps[i], *f = F[i];
        for (Index e = pairs.start[i]; e < pairs.start[i + 1]; ++e) {
            const Index a = pairs.winner[e], b = pairs.loser[e];
            const double z = alpha[e] + step * (margin[e] - f[a] - biases[a] + f[b] + biases[b]);
            const double inside = clip(z, 0.0, cap[e]);
            next[e] = inside;
            value += inside * (z - 0.5 * inside) / step;
            r[a] -= inside;
            r[b] += inside;
            if (0.0 < z && z < cap[e]) {
                H[a][a] += step;
                H[b][b] += step;
                H[a][b] -= step;
                H[b][a] -= step;
            }
        }
    }
    return value;
}

inline RBRL_LOOP void pair_slacks(Matrix<const double> F, Pairs pairs, const double *margin, double *out) {
    for (Index i = 0; i < F.rows; ++i) {
        const double *f = F[i];
        for (Index e = pairs.start[i]; e < pairs.start[i + 1]; ++e)
            out[e] = margin[e] - f[pairs.winner[e]] + f[pairs.loser[e]];
    }
}

inline RBRL_LOOP void pair_products(Matrix<const double> F, Pairs pairs, const double *curvatures, Matrix<double> R) {
    for (Index i = 0; i < F.rows; ++i) {
        const double *f = F[i];
        double *r = R[i];
        for (Index e = pairs.start[i]; e < pairs.start[i + 1]; ++e) {
            const Index a = pairs.winner[e], b = pairs.loser[e];
            const double step = curvatures[e] * (f[a] - f[b]);
            r[a] += step;
            r[b] -= step;
        }
    }
}

}  // namespace rbrl
