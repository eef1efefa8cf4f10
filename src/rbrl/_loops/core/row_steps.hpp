// Block dual coordinate ascent with one block for each row of the data. solvers/dual_ascent.py explains the
// dual problem. reference.py defines a step in NumPy.
#pragma once

#include <algorithm>
#include <limits>

#include "hinges.hpp"

namespace rbrl {

// Add a multiple of one vector to another.
RBRL_INLINE void add_multiple(double factor, const double *RBRL_RESTRICT x, double *RBRL_RESTRICT to, Index size) {
    for (Index j = 0; j < size; ++j) to[j] += factor * x[j];
}

// A sparse symmetric matrix over the labels.
struct LabelGraph {
    Sparse<double, std::int32_t> L;

    RBRL_INLINE bool empty() const { return L.indptr[L.rows] == 0; }

    RBRL_INLINE double times_row(Index j, const double *x) const {
        double sum = 0.0;
        for (std::int32_t at = L.indptr[j]; at < L.indptr[j + 1]; ++at) sum += L.data[at] * x[L.indices[at]];
        return sum;
    }

    RBRL_INLINE double diagonal(Index j) const {
        double sum = 0.0;
        for (std::int32_t at = L.indptr[j]; at < L.indptr[j + 1]; ++at) sum += L.indices[at] == j ? L.data[at] : 0.0;
        return sum;
    }
};

// The loss of a row: squared hinges of single labels, squared hinges of pairs of a relevant and an irrelevant
// label, and a quadratic form of the scores.
struct RowLoss {
    Weights weights;
    double hinge;       // weight of the hinges of single labels
    Reals costs;        // further factor of each label if it is relevant
    double pairs;       // weight of the hinges of pairs
    double margin;      // margin of pairs
    LabelGraph graph;   // matrix L of a quadratic term f' L f / 2; without entries if there is no such term
};

// The subproblem of one row: minimise loss(z) + |z - centre|^2 / (2 q).
//
// The relevant and the irrelevant labels are two sides. The smaller side, `few`, is a list. The other side,
// `many`, keeps its positions in vectors over all labels. Signs are chosen so that the labels of `few` should
// score high: v = sign * z. A label j of `many` and a label a of `few` then have the slack
// max(v_j - (v_a - margin), 0).
class RowProblem {
public:
    explicit RowProblem(Index l)
        : l(l), padded((l + 3) / 4 * 4), few(l), v(padded), centre(padded), gradient(padded), curvature(padded), price(padded),
          hinge_price(padded), side(padded), pulls(padded), counts(padded), direction(padded), trial(padded), tail(l), tail_pull(l),
          limit(l), few_price(l), system(), residual(padded), image(padded), solution(padded) {}

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
        graph = &loss.graph;
        graph_price = 0.0;
        if (known > 0) {
            double sum = 0.0;
            for (Index j = 0; OfEntries && j < l; ++j) sum += y[j] != 0 ? w[j] : 0.0;
            graph_price = OfEntries ? sum / static_cast<double>(known) : own;
        }
    }

    // Compute the loss at v, its gradient, and the diagonal of its Hessian.
    RBRL_INLINE double evaluate(const double *RBRL_RESTRICT at, double *RBRL_RESTRICT g, double *RBRL_RESTRICT h) {
        double value = 0.0;
        const double *RBRL_RESTRICT s = side.data(), *RBRL_RESTRICT e = hinge_price.data();
        for (Index j = 0; j < padded; ++j) {
            const double slack = 1.0 - s[j] * at[j], on = one_if<double>(slack > 0) * e[j], pull = on * slack;
            value += pull * slack;
            g[j] = -pull * s[j];
            h[j] = on;
        }
        if (pair_price > 0) value += add_pairs(at, g, h);
        if (!graph->empty()) value += add_graph(at, g, h);
        return 0.5 * value;
    }

    // Minimise from `v`; return the loss at the minimiser. The minimiser is written to `v`, and the gradient of
    // the loss to `gradient`.
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
                // A value that differs only by rounding counts as a decrease.
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
    // Residual relative to the first one at which Newton's method stops. The remaining gain of a block falls
    // with the square of the residual.
    static constexpr double ACCURACY = 0.01;
    static constexpr int MOST_STEPS = 50;
    static constexpr int MOST_HALVINGS = 30;
    static constexpr double ROUNDING = 1e-13;

    Buffer price, hinge_price, side, pulls, counts, direction, trial, tail, tail_pull, limit, few_price, system, residual, image,
        solution;
    const LabelGraph *graph = nullptr;
    double pair_price = 0.0, margin = 2.0, graph_price = 0.0;
    Index n_few = 0;

    RBRL_INLINE double distance(const double *RBRL_RESTRICT at) const {
        double sum = 0.0;
        const double *RBRL_RESTRICT c = centre.data();
        for (Index j = 0; j < padded; ++j) sum += (at[j] - c[j]) * (at[j] - c[j]);
        return sum;
    }

    // Return the squared norm of the gradient of the subproblem.
    RBRL_INLINE double measure(double inverse_q) const {
        double sum = 0.0;
        const double *RBRL_RESTRICT g = gradient.data(), *RBRL_RESTRICT at = v.data(), *RBRL_RESTRICT c = centre.data();
        for (Index j = 0; j < padded; ++j) {
            const double r = g[j] + (at[j] - c[j]) * inverse_q;
            sum += r * r;
        }
        return sum;
    }

    // Add the hinges of pairs; return twice their value.
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

    // Add the quadratic form; return twice its value. The sign is the same for all labels, so that it cancels.
    RBRL_INLINE double add_graph(const double *RBRL_RESTRICT at, double *RBRL_RESTRICT g, double *RBRL_RESTRICT h) {
        double value = 0.0;
        for (Index j = 0; j < l; ++j) {
            const double pull = graph_price * graph->times_row(j, at);
            value += pull * at[j];
            g[j] += pull;
            h[j] += graph_price * graph->diagonal(j);
        }
        return value;
    }

    // Compute Newton's direction; return its slope. Without a graph, the labels of `many` are eliminated,
    // because each is coupled only with labels of `few`. With a graph, conjugate gradients find the direction.
    RBRL_INLINE double find_direction(double inverse_q) {
        double *RBRL_RESTRICT d = direction.data(), *RBRL_RESTRICT h = curvature.data();
        const double *RBRL_RESTRICT g = gradient.data(), *RBRL_RESTRICT at = v.data(), *RBRL_RESTRICT c = centre.data();
        for (Index j = 0; j < padded; ++j) {
            h[j] += inverse_q;
            d[j] = -(g[j] + (at[j] - c[j]) * inverse_q) / h[j];
        }
        if (!graph->empty()) {
            iterate();
        } else if (pair_price > 0 && n_few > 0) {
            couple();
        }
        double slope = 0.0;
        for (Index j = 0; j < padded; ++j) slope += d[j] * (g[j] + (at[j] - c[j]) * inverse_q);
        return slope;
    }

    // Improve the direction that the diagonal of the Hessian gives, by conjugate gradients with that preconditioner.
    RBRL_INLINE void iterate() {
        double *RBRL_RESTRICT x = solution.data(), *RBRL_RESTRICT r = residual.data(), *RBRL_RESTRICT p = direction.data();
        const double *RBRL_RESTRICT h = curvature.data();
        double size = 0.0;
        for (Index j = 0; j < padded; ++j) {
            r[j] = p[j] * h[j];
            x[j] = 0.0;
            size += r[j] * p[j];
        }
        // Newton's method needs an exact direction. It takes a few products, and the graph has few edges.
        const double enough = ROUNDING * ROUNDING * size;
        for (Index step = 0; step < 4 * l && size > enough; ++step) {
            multiply_hessian(p);
            double curved = 0.0;
            for (Index j = 0; j < padded; ++j) curved += p[j] * image[j];
            const double length = size / curved;
            double next = 0.0;
            for (Index j = 0; j < padded; ++j) {
                x[j] += length * p[j];
                r[j] -= length * image[j];
                next += r[j] * r[j] / h[j];
            }
            for (Index j = 0; j < padded; ++j) p[j] = r[j] / h[j] + (next / size) * p[j];
            size = next;
        }
        std::copy(solution.begin(), solution.end(), direction.begin());
    }

    // Multiply the Hessian of the subproblem, whose diagonal is in `curvature`, by x. The product is written to
    // `image`.
    RBRL_INLINE void multiply_hessian(const double *RBRL_RESTRICT x) {
        double *RBRL_RESTRICT out = image.data();
        const double *RBRL_RESTRICT h = curvature.data(), *RBRL_RESTRICT at = v.data(), *RBRL_RESTRICT u = price.data();
        for (Index j = 0; j < padded; ++j) out[j] = h[j] * x[j];
        for (Index j = 0; j < l; ++j) out[j] += graph_price * (graph->times_row(j, x) - graph->diagonal(j) * x[j]);
        for (Index a = 0; pair_price > 0 && a < n_few; ++a) {
            const double own = pair_price * few_price[a], few_x = x[few[a]];
            double pull = 0.0;
            for (Index j = 0; j < padded; ++j) {
                const double on = one_if<double>(at[j] > limit[a]) * u[j] * own;
                pull += on * x[j];
                out[j] -= on * few_x;
            }
            out[few[a]] -= pull;
        }
    }

    // Solve for the labels of `few`, then compute the direction of the other labels.
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
        // A label that is active in the pair with the higher limit is also active in the pair with the lower one.
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

// Rows of a sparse or dense matrix X: scores are X W, and a change of the dual variables of row i adds x_i times it to W.
template <class I>
struct SparseRows {
    Sparse<double, I> X;

    RBRL_INLINE void add_scores(Index i, Matrix<double> W, double *RBRL_RESTRICT f) const {
        for (I at = X.indptr[i]; at < X.indptr[i + 1]; ++at) add_multiple(X.data[at], W[X.indices[at]], f, W.columns);
    }

    RBRL_INLINE void add_change(Index i, const double *change, Matrix<double> W) const {
        for (I at = X.indptr[i]; at < X.indptr[i + 1]; ++at) add_multiple(X.data[at], change, W[X.indices[at]], W.columns);
    }
};

struct DenseRows {
    Matrix<const double> X;

    RBRL_INLINE void add_scores(Index i, Matrix<double> W, double *RBRL_RESTRICT f) const {
        for (Index k = 0; k < X.columns; ++k) add_multiple(X[i][k], W[k], f, W.columns);
    }

    RBRL_INLINE void add_change(Index i, const double *change, Matrix<double> W) const {
        for (Index k = 0; k < X.columns; ++k) add_multiple(X[i][k], change, W[k], W.columns);
    }
};

// Some rows of a kernel model, given by their kernel values with each other and by their scores before the
// first visit. W has the changes of their coefficients.
struct KernelRows {
    Matrix<const double> K;
    Matrix<const double> scores;

    RBRL_INLINE void add_scores(Index i, Matrix<double> W, double *RBRL_RESTRICT f) const {
        add_multiple(1.0, scores[i], f, W.columns);
        for (Index k = 0; k < K.columns; ++k) add_multiple(K[i][k], W[k], f, W.columns);
    }

    RBRL_INLINE void add_change(Index i, const double *change, Matrix<double> W) const {
        add_multiple(1.0, change, W[i], W.columns);
    }
};

// Visit each row in `order`; return the sum of the losses of the rows when they were visited. Z has the scores
// whose loss gradients, times -1, are the dual variables. Z and W change in place.
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
        rows.add_scores(i, W, f);
        for (Index j = 0; j < l; ++j) {
            row.v[j] = sign * f[j];
            row.centre[j] = row.v[j] + q * old[j];
        }
        // The scores of a row of zeros are 0 for any dual variables.
        visited += q > 0 ? row.minimise(1.0 / q) : row.evaluate(row.v.data(), row.gradient.data(), unused.data());
        for (Index j = 0; j < l; ++j) {
            z[j] = sign * row.v[j];
            change[j] = sign * (old[j] - row.gradient[j]) / ridge;
        }
        rows.add_change(i, change.data(), W);
    }
    return visited;
}

}  // namespace rbrl
