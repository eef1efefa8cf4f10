// Small algebra of the solvers, and products with sparse matrices. The function of the same name in
// reference.py defines each of them.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "arrays.hpp"

namespace rbrl {

template <class T>
using Stack = Matrix<T>;  // each row is a matrix

// Compute the inner products of the columns of two matrices with l columns. With `joint`, every entry
// is the sum of all of them.
RBRL_INLINE void dots(
    const double *RBRL_RESTRICT A, const double *RBRL_RESTRICT B, Index cells, Index l, bool joint, double *RBRL_RESTRICT out
) {
    if (joint) {
        double sum = 0.0;
        for (Index k = 0; k < cells; ++k) sum += A[k] * B[k];
        for (Index j = 0; j < l; ++j) out[j] = sum;
        return;
    }
    for (Index j = 0; j < l; ++j) out[j] = 0.0;
    Index k = 0;
    // Two rows are added at a time, so that every sum is read and written half as often.
    for (; k + 2 * l <= cells && l; k += 2 * l) {
        const double *RBRL_RESTRICT a = A + k, *RBRL_RESTRICT b = B + k;
        for (Index j = 0; j < l; ++j) out[j] += a[j] * b[j] + a[j + l] * b[j + l];
    }
    for (; k < cells; ++k) out[k % l] += A[k] * B[k];
}

// Add A diag(c) to `out`.
RBRL_INLINE void add_scaled(
    const double *RBRL_RESTRICT A, const double *RBRL_RESTRICT c, Index cells, Index l, bool joint, double *RBRL_RESTRICT out
) {
    if (joint) {
        const double factor = l ? c[0] : 0.0;
        for (Index k = 0; k < cells; ++k) out[k] += factor * A[k];
        return;
    }
    for (Index k = 0; k < cells; k += l) {
        const double *RBRL_RESTRICT a = A + k;
        double *RBRL_RESTRICT to = out + k;
        for (Index j = 0; j < l; ++j) to[j] += a[j] * c[j];
    }
}

inline RBRL_LOOP void column_dots(Matrix<const double> A, Matrix<const double> B, bool joint, Vector<double> out) {
    dots(A.data, B.data, A.cells(), A.columns, joint, out.data);
}

inline RBRL_LOOP void memory_backward(
    Matrix<double> q, Stack<const double> steps, Stack<const double> changes, Matrix<const double> rho,
    Vector<const std::int64_t> order, bool joint, Matrix<double> coefficients
) {
    const Index l = q.columns;
    Buffer minus(l);
    for (Index e = order.size - 1; e >= 0; --e) {
        const Index i = order[e];
        double *c = coefficients[i];
        dots(steps[i], q.data, q.cells(), l, joint, c);
        for (Index j = 0; j < l; ++j) minus[j] = -(c[j] *= rho[i][j]);
        // Entries of rho may differ even if all inner products are equal.
        add_scaled(changes[i], minus.data(), q.cells(), l, false, q.data);
    }
}

inline RBRL_LOOP void memory_forward(
    Matrix<double> z, Stack<const double> steps, Stack<const double> changes, Matrix<const double> rho,
    Vector<const std::int64_t> order, bool joint, Matrix<const double> coefficients
) {
    const Index l = z.columns;
    Buffer c(l);
    for (Index e = 0; e < order.size; ++e) {
        const Index i = order[e];
        dots(changes[i], z.data, z.cells(), l, joint, c.data());
        for (Index j = 0; j < l; ++j) c[j] = coefficients[i][j] - rho[i][j] * c[j];
        add_scaled(steps[i], c.data(), z.cells(), l, false, z.data);
    }
}

inline RBRL_LOOP std::pair<double, double> clipped_dual_maximum(
    Vector<const double> sigma, double linear, double quadratic, double reach, double ridge, double limit
) {
    double best = 0.0, at = 0.0, theta = std::min(1.0, reach);
    for (int round = 0; round < 30; ++round) {
        double over2 = 0.0, slope = linear - 2 * theta * quadratic, curvature = 2 * quadratic;
        for (Index j = 0; j < sigma.size; ++j) {
            const double s = sigma[j], over = theta * s - limit;
            if (over > 0) {
                over2 += over * over;
                slope -= s * over / ridge;
                curvature += s * s / ridge;
            }
        }
        const double value = theta * linear - theta * theta * quadratic - over2 / (2 * ridge);
        if (value > best) best = value, at = theta;
        if (curvature <= 0) break;
        const double previous = theta;
        theta = clip(theta + slope / curvature, 0.0, reach);
        if (std::fabs(theta - previous) < 1e-13 * theta) break;
    }
    return {best, at};
}

template <class T, class U, class I>
RBRL_LOOP void sparse_product(Sparse<T, I> X, Matrix<const U> W, Matrix<double> out) {
    for (Index i = 0; i < X.rows; ++i) {
        double *RBRL_RESTRICT sums = out[i];
        for (Index e = X.indptr[i]; e < X.indptr[i + 1]; ++e) {
            const double x = X.data[e];
            const U *RBRL_RESTRICT w = W[X.indices[e]];
            for (Index j = 0; j < out.columns; ++j) sums[j] += x * w[j];
        }
    }
}

// Write the k largest scores of each row, the largest first, and their columns. Of equal scores, the
// first column comes first. W is a CSR matrix whose rows are the columns of X.
template <class T, class U, class I>
RBRL_LOOP void best_sparse_scores(
    Sparse<T, I> X, Sparse<U, I> W, Vector<const double> intercepts, Matrix<std::int64_t> columns, Matrix<double> best
) {
    using Scored = std::pair<double, std::int64_t>;
    const auto is_better = [](const Scored &a, const Scored &b) {
        return a.first > b.first || (a.first == b.first && a.second < b.second);
    };
    const Index l = intercepts.size, k = best.columns;
    Buffer sums(l);
    std::vector<Scored> heap(k);  // its first entry is the worst one that is kept
    for (Index i = 0; i < X.rows; ++i) {
        copy(intercepts.data, l, sums.data());
        for (Index e = X.indptr[i]; e < X.indptr[i + 1]; ++e) {
            const double x = X.data[e];
            const I row = X.indices[e];
            for (Index f = W.indptr[row]; f < W.indptr[row + 1]; ++f) sums[W.indices[f]] += x * W.data[f];
        }
        for (Index j = 0; j < k; ++j) heap[j] = {sums[j], j};
        std::make_heap(heap.begin(), heap.end(), is_better);
        for (Index j = k; j < l; ++j) {
            // A later column replaces an earlier one only if its score is larger.
            if (!(sums[j] > heap[0].first)) continue;
            std::pop_heap(heap.begin(), heap.end(), is_better);
            heap[k - 1] = {sums[j], j};
            std::push_heap(heap.begin(), heap.end(), is_better);
        }
        std::sort_heap(heap.begin(), heap.end(), is_better);
        for (Index j = 0; j < k; ++j) {
            best[i][j] = heap[j].first;
            columns[i][j] = heap[j].second;
        }
    }
}

template <class T, class I>
RBRL_LOOP void sparse_adjoint(Sparse<T, I> X, Matrix<const double> D, Matrix<double> out) {
    for (Index i = 0; i < X.rows; ++i) {
        const double *RBRL_RESTRICT d = D[i];
        for (Index e = X.indptr[i]; e < X.indptr[i + 1]; ++e) {
            const double x = X.data[e];
            double *RBRL_RESTRICT sums = out[X.indices[e]];
            for (Index j = 0; j < out.columns; ++j) sums[j] += x * d[j];
        }
    }
}

template <class I>
RBRL_LOOP void gram_blocks(Sparse<double, I> X, Matrix<const double> H, Index m, double *G) {
    const Index l = H.columns;
    for (Index i = 0; i < X.rows; ++i) {
        const double *RBRL_RESTRICT h = H[i];
        for (Index c = X.indptr[i]; c < X.indptr[i + 1]; ++c) {
            for (Index d = X.indptr[i]; d < X.indptr[i + 1]; ++d) {
                const double x = X.data[c] * X.data[d];
                double *RBRL_RESTRICT target = G + (X.indices[c] * m + X.indices[d]) * l;
                for (Index k = 0; k < l; ++k) target[k] += x * h[k];
            }
        }
    }
}

}  // namespace rbrl
