// Block dual coordinate ascent: one block per row of the data. solvers/dual_ascent.py says what is maximised.
// What a step computes is said by its twin in reference.py.
#pragma once

#include <algorithm>
#include <limits>

#include "hinges.hpp"

namespace rbrl {

// The loss of a row: squared hinges of single labels, and of pairs of a relevant and an irrelevant label.
struct RowLoss {
    Weights weights;
    double hinge;       // weight of the hinges of single labels
    Reals costs;        // what a relevant entry of each label costs beside that
    double pairs;       // weight of the hinges of pairs
    double margin;      // of pairs
};

// The subproblem of one row: minimise loss(z) + |z - centre|^2 / (2 q).
//
// Labels are on two sides, of which the smaller one, `few`, is listed, and the other, `many`, stays in place in vectors over
// all labels. Signs are turned so that few labels should score high: v = sign * z. Then a label j of the many side and a
// label a of the few side make a pair with slack v_j - (v_a - margin), where that is positive.
class RowProblem {
public:
    explicit RowProblem(Index l)
        : l(l), padded((l + 3) / 4 * 4), few(l), v(padded), centre(padded), gradient(padded), curvature(padded), price(padded),
          hinge_price(padded), side(padded), pulls(padded), counts(padded), direction(padded), trial(padded), tail(l), tail_pull(l),
          limit(l), few_price(l), system() {}

    // Read the labels and the weights of row i.
    template <bool OfEntries>
    RBRL_INLINE void read(Labels Y, Index i, const RowLoss &loss) {
        const std::int8_t *y = Y[i];
        Index relevant = 0, known = 0;
        for (Index j = 0; j < l; ++j) {
            relevant += y[j] > 0;
            known += y[j] != 0;
        }
        sign = relevant <= known - relevant ? 1.0 : -1.0;
        const double *w = OfEntries ? loss.weights.row(i) : nullptr;
        const double own = OfEntries ? 1.0 : loss.weights.data[i];
        double sum_few = 0.0, sum_many = 0.0;
        n_few = 0;
        for (Index j = 0; j < padded; ++j) {
            const double label = j < l ? sign * y[j] : 0.0, weight = label == 0.0 ? 0.0 : (OfEntries ? w[j] : own);
            const double cost = j < l && y[j] > 0 ? loss.costs[j] : 1.0;
            side[j] = label;
            hinge_price[j] = loss.hinge * weight * cost;
            price[j] = label < 0 ? (OfEntries ? weight : 1.0) : 0.0;
            sum_many += price[j];
            if (label > 0) {
                few[n_few] = j;
                few_price[n_few] = OfEntries ? weight : 1.0;
                sum_few += few_price[n_few++];
            }
        }
        pair_price = 0.0;
        if (sum_few > 0 && sum_many > 0) {
            const double of_row = OfEntries ? (sum_few + sum_many) / static_cast<double>(known) : own;
            pair_price = loss.pairs * of_row / (sum_few * sum_many);
        }
        margin = loss.margin;
    }

    // Loss at v; its gradient, and the diagonal of its Hessian.
    RBRL_INLINE double evaluate(const double *RBRL_RESTRICT at, double *RBRL_RESTRICT g, double *RBRL_RESTRICT h) {
        double value = 0.0;
        const double *RBRL_RESTRICT s = side.data(), *RBRL_RESTRICT e = hinge_price.data();
        for (Index j = 0; j < padded; ++j) {
            const double slack = 1.0 - s[j] * at[j], on = one_if<double>(slack > 0) * e[j], pull = on * slack;
            value += pull * slack;
            g[j] = -pull * s[j];
            h[j] = on;
        }
        return 0.5 * (value + (pair_price > 0 ? add_pairs(at, g, h) : 0.0));
    }

    // Minimise, from `v`; return the loss there. The minimiser is left in `v`, and the gradient of its loss in `gradient`.
    RBRL_INLINE double minimise(double inverse_q) {
        const double first = evaluate(v.data(), gradient.data(), curvature.data());
        double residual = measure(inverse_q), value = first + 0.5 * inverse_q * distance(v.data());
        const double enough = ACCURACY * ACCURACY * residual;
        for (int steps = 0; steps < MOST_STEPS && residual > enough; ++steps) {
            const double slope = find_direction(inverse_q);
            double length = 1.0, there = 0.0;
            for (int halvings = 0;; ++halvings) {
                for (Index j = 0; j < padded; ++j) trial[j] = v[j] + length * direction[j];
                there = evaluate(trial.data(), gradient.data(), curvature.data());
                there += 0.5 * inverse_q * distance(trial.data());
                // Equal to rounding is as good as less.
                if (there <= value + 1e-4 * length * slope + 1e-14 * std::fabs(value) || halvings == MOST_HALVINGS) break;
                length *= 0.5;
            }
            std::swap(v, trial);
            value = there;
            residual = measure(inverse_q);
        }
        return first;
    }

    Index l, padded;
    double sign = 1.0;
    std::vector<Index> few;
    Buffer v, centre, gradient, curvature;

private:
    // What a block could still gain falls with the square of the residual: this share of the first one leaves 1e-4 of it.
    static constexpr double ACCURACY = 0.01;
    static constexpr int MOST_STEPS = 50;
    static constexpr int MOST_HALVINGS = 30;

    Buffer price, hinge_price, side, pulls, counts, direction, trial, tail, tail_pull, limit, few_price, system;
    double pair_price = 0.0, margin = 2.0;
    Index n_few = 0;

    RBRL_INLINE double distance(const double *RBRL_RESTRICT at) const {
        double sum = 0.0;
        const double *RBRL_RESTRICT c = centre.data();
        for (Index j = 0; j < padded; ++j) sum += (at[j] - c[j]) * (at[j] - c[j]);
        return sum;
    }

    // Square of the norm of the subproblem's gradient.
    RBRL_INLINE double measure(double inverse_q) const {
        double sum = 0.0;
        const double *RBRL_RESTRICT g = gradient.data(), *RBRL_RESTRICT at = v.data(), *RBRL_RESTRICT c = centre.data();
        for (Index j = 0; j < padded; ++j) {
            const double r = g[j] + (at[j] - c[j]) * inverse_q;
            sum += r * r;
        }
        return sum;
    }

    // Add the hinges of pairs: twice their value is returned.
    RBRL_INLINE double add_pairs(const double *RBRL_RESTRICT at, double *RBRL_RESTRICT g, double *RBRL_RESTRICT h) {
        double value = 0.0;
        double *RBRL_RESTRICT pull = pulls.data(), *RBRL_RESTRICT count = counts.data();
        const double *RBRL_RESTRICT u = price.data();
        std::fill(pulls.begin(), pulls.end(), 0.0);
        std::fill(counts.begin(), counts.end(), 0.0);
        for (Index a = 0; a < n_few; ++a) {
            const double bound = limit[a] = at[few[a]] - margin, own = few_price[a];
            double slacks = 0.0, squares = 0.0, active = 0.0;
            for (Index j = 0; j < padded; ++j) {
                const double slack = at[j] - bound, on = one_if<double>(slack > 0) * u[j], weighted = on * slack;
                slacks += weighted;
                squares += weighted * slack;
                active += on;
                pull[j] += own * weighted;
                count[j] += own * on;
            }
            value += own * squares;
            g[few[a]] -= pair_price * own * slacks;
            h[few[a]] += pair_price * own * active;
        }
        for (Index j = 0; j < padded; ++j) {
            g[j] += pair_price * pull[j];
            h[j] += pair_price * count[j];
        }
        return pair_price * value;
    }

    // Newton's direction; return its slope. Labels of the many side are eliminated: each is coupled with the few only.
    RBRL_INLINE double find_direction(double inverse_q) {
        double *RBRL_RESTRICT d = direction.data(), *RBRL_RESTRICT h = curvature.data();
        const double *RBRL_RESTRICT g = gradient.data(), *RBRL_RESTRICT at = v.data(), *RBRL_RESTRICT c = centre.data();
        for (Index j = 0; j < padded; ++j) {
            h[j] += inverse_q;
            d[j] = -(g[j] + (at[j] - c[j]) * inverse_q) / h[j];
        }
        if (pair_price > 0 && n_few > 0) couple();
        double slope = 0.0;
        for (Index j = 0; j < padded; ++j) slope += d[j] * (g[j] + (at[j] - c[j]) * inverse_q);
        return slope;
    }

    // Solve for the few labels, and move the others accordingly.
    RBRL_INLINE void couple() {
        double *RBRL_RESTRICT d = direction.data();
        const double *RBRL_RESTRICT h = curvature.data(), *RBRL_RESTRICT at = v.data(), *RBRL_RESTRICT u = price.data();
        for (Index a = 0; a < n_few; ++a) {
            double coupling = 0.0, pull = 0.0;
            for (Index j = 0; j < padded; ++j) {
                const double on = one_if<double>(at[j] > limit[a]) * u[j];
                coupling += on * u[j] / h[j];
                pull += on * d[j];
            }
            tail[a] = coupling;
            tail_pull[a] = pull;
        }
        // Labels that a pair with the higher of two limits makes active are active for the lower one, too.
        system.resize(n_few * n_few);
        for (Index a = 0; a < n_few; ++a) {
            const double own = pair_price * few_price[a];
            for (Index b = 0; b <= a; ++b) {
                const double both = limit[a] > limit[b] ? tail[a] : tail[b];
                system[a * n_few + b] = (a == b ? h[few[a]] : 0.0) - own * pair_price * few_price[b] * both;
            }
            tail_pull[a] = h[few[a]] * d[few[a]] + own * tail_pull[a];
        }
        solve_positive(system.data(), tail_pull.data(), n_few);
        std::fill(pulls.begin(), pulls.end(), 0.0);
        double *RBRL_RESTRICT moved = pulls.data();
        for (Index a = 0; a < n_few; ++a) {
            const double bound = limit[a], push = pair_price * few_price[a] * tail_pull[a];
            for (Index j = 0; j < padded; ++j) moved[j] += one_if<double>(at[j] > bound) * push;
        }
        for (Index j = 0; j < padded; ++j) d[j] += u[j] * moved[j] / h[j];
        for (Index a = 0; a < n_few; ++a) d[few[a]] = tail_pull[a];
    }

    // Solve a positive definite system, given by the lower half of its matrix, by Cholesky's method.
    static RBRL_INLINE void solve_positive(double *M, double *x, Index size) {
        for (Index a = 0; a < size; ++a) {
            for (Index b = 0; b <= a; ++b) {
                double sum = M[a * size + b];
                for (Index k = 0; k < b; ++k) sum -= M[a * size + k] * M[b * size + k];
                M[a * size + b] = a == b ? std::sqrt(std::max(sum, std::numeric_limits<double>::min())) : sum / M[b * size + b];
            }
        }
        for (Index a = 0; a < size; ++a) {
            for (Index k = 0; k < a; ++k) x[a] -= M[a * size + k] * x[k];
            x[a] /= M[a * size + a];
        }
        for (Index a = size - 1; a >= 0; --a) {
            for (Index k = a + 1; k < size; ++k) x[a] -= M[k * size + a] * x[k];
            x[a] /= M[a * size + a];
        }
    }
};

// Rows of a matrix that is sparse or dense, as lists of entries.
template <class I>
struct SparseRows {
    Sparse<double, I> X;
    template <class Body>
    RBRL_INLINE void for_entries(Index i, Body body) const {
        for (I at = X.indptr[i]; at < X.indptr[i + 1]; ++at) body(static_cast<Index>(X.indices[at]), X.data[at]);
    }
};

struct DenseRows {
    Matrix<const double> X;
    template <class Body>
    RBRL_INLINE void for_entries(Index i, Body body) const {
        const double *x = X[i];
        for (Index k = 0; k < X.columns; ++k) body(k, x[k]);
    }
};

// One visit of each row in `order`; return the sum of the rows' losses when they were visited. Z has the scores whose loss
// gradients, times -1, are the dual variables; W belongs to them, and changes with them.
template <bool OfEntries, class Rows>
RBRL_LOOP double dual_ascent_pass(
    Rows rows, Reals squares, Labels Y, RowLoss loss, double ridge, Vector<const std::int32_t> order, Matrix<double> W,
    Matrix<double> Z
) {
    const Index l = Z.columns;
    RowProblem row(l);
    Buffer scores(l), old(row.padded), unused(row.padded), change(l);
    double visited = 0.0;
    for (Index t = 0; t < order.size; ++t) {
        const Index i = order[t];
        const double q = squares[i] / ridge;
        row.template read<OfEntries>(Y, i, loss);
        const double sign = row.sign;
        double *RBRL_RESTRICT z = Z[i], *RBRL_RESTRICT f = scores.data();
        for (Index j = 0; j < l; ++j) row.v[j] = sign * z[j];
        row.evaluate(row.v.data(), old.data(), unused.data());
        std::fill(scores.begin(), scores.end(), 0.0);
        rows.for_entries(i, [&](Index k, double x) RBRL_INLINED {
            const double *RBRL_RESTRICT w = W[k];
            for (Index j = 0; j < l; ++j) f[j] += x * w[j];
        });
        for (Index j = 0; j < l; ++j) {
            row.v[j] = sign * f[j];
            row.centre[j] = row.v[j] + q * old[j];
        }
        // The scores of a row of zeros are 0, whatever its dual variables.
        visited += q > 0 ? row.minimise(1.0 / q) : row.evaluate(row.v.data(), row.gradient.data(), unused.data());
        for (Index j = 0; j < l; ++j) {
            z[j] = sign * row.v[j];
            change[j] = sign * (old[j] - row.gradient[j]) / ridge;
        }
        rows.for_entries(i, [&](Index k, double x) RBRL_INLINED {
            double *RBRL_RESTRICT w = W[k];
            for (Index j = 0; j < l; ++j) w[j] += x * change[j];
        });
    }
    return visited;
}

}  // namespace rbrl
