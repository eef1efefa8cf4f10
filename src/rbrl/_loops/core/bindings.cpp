// The Python interface of the loops: the functions of reference.py, with the same names and arguments.
// An input of another type or layout is copied. An output is never copied, because the result would be
// lost. It must have the right type and be contiguous. Otherwise TypeError is raised.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <stdexcept>
#include <string>

#include "algebra.hpp"
#include "hinges.hpp"
#include "pairs.hpp"
#include "row_steps.hpp"

namespace nb = nanobind;
using namespace rbrl;

namespace {

template <class T, int Dimensions>
using Array = nb::ndarray<T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
template <class T>
using In1 = Array<const T, 1>;
template <class T>
using In2 = Array<const T, 2>;
template <class T>
using In3 = Array<const T, 3>;
using InAny = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Released = nb::call_guard<nb::gil_scoped_release>;

Index size(const auto &array, int axis = 0) { return static_cast<Index>(array.shape(axis)); }

// The loops do not check bounds, so the bounds are checked here.
void require(bool fits, const char *what) {
    if (!fits) throw std::invalid_argument(std::string("arrays of one loop must fit each other: ") + what);
}

template <class T>
Vector<T> vector(const Array<T, 1> &array, Index length, const char *name) {
    require(size(array) == length, name);
    return {array.data(), length};
}

template <class T>
Matrix<T> matrix(const Array<T, 2> &array) {
    return {array.data(), size(array, 0), size(array, 1)};
}

template <class T>
Matrix<T> matrix(const Array<T, 2> &array, Index rows, Index columns, const char *name) {
    require(size(array, 0) == rows && size(array, 1) == columns, name);
    return matrix(array);
}

template <class T>
Stack<T> stack(const Array<T, 3> &array, Index rows, Index columns, const char *name) {
    require(size(array, 1) == rows && size(array, 2) == columns, name);
    return {array.data(), size(array, 0), rows * columns};
}

template <class T, class I>
Sparse<T, I> sparse(const In1<T> &data, const In1<I> &indices, const In1<I> &indptr, Index rows) {
    require(size(indptr) == rows + 1 && size(indices) == size(data), "indptr, indices, data");
    require(indptr.data()[rows] <= size(data), "indptr, data");
    return {data.data(), indices.data(), indptr.data(), rows};
}

Weights weights_of(const InAny &weights, Index rows, Index columns) {
    const bool of_entries = weights.ndim() == 2;
    require(of_entries || weights.ndim() == 1, "weights");
    require(size(weights) == rows && (!of_entries || size(weights, 1) == columns), "weights");
    return {weights.data(), rows, of_entries ? columns : 0};
}

// Call the version of a loop for this kind of weights, so that the loop itself has no branch for it.
#define RBRL_IF(condition, loop, ...) (condition ? loop<true>(__VA_ARGS__) : loop<false>(__VA_ARGS__))

template <class T, class U>
void bind_gradients(nb::module_ &m) {
    m.def(
        "squared_hinge",
        [](In2<std::int8_t> Y, In2<T> F, InAny weights, double scale, In1<double> costs, Array<U, 2> R) {
            const Matrix<const T> scores = matrix(F);
            const Index n = scores.rows, l = scores.columns;
            const Weights w = weights_of(weights, n, l);
            return RBRL_IF(
                !w.all_equal(), squared_hinge, matrix(Y, n, l, "Y"), scores, w, scale, vector(costs, l, "costs"), matrix(R, n, l, "R")
            );
        },
        nb::arg("Y"), nb::arg("F"), nb::arg("weights"), nb::arg("scale"), nb::arg("costs"), nb::arg("R").noconvert(),
        Released()
    );
    m.def(
        "pairwise_hinge",
        [](In2<std::int8_t> Y, In2<T> F, InAny weights, double scale, double margin, Array<U, 2> R) {
            const Matrix<const T> scores = matrix(F);
            const Index n = scores.rows, l = scores.columns;
            const Weights w = weights_of(weights, n, l);
            return RBRL_IF(
                w.of_entries(), pairwise_hinge, matrix(Y, n, l, "Y"), scores, w, scale, margin, matrix(R, n, l, "R")
            );
        },
        nb::arg("Y"), nb::arg("F"), nb::arg("weights"), nb::arg("scale"), nb::arg("margin"), nb::arg("R").noconvert(),
        Released()
    );
}

template <class T>
void bind_hinges(nb::module_ &m) {
    m.def(
        "squared_hinge_diagonal",
        [](In2<std::int8_t> Y, In2<T> F, InAny weights, double scale, In1<double> costs, Array<T, 2> H) {
            const Matrix<const T> scores = matrix(F);
            const Index n = scores.rows, l = scores.columns;
            const Weights w = weights_of(weights, n, l);
            RBRL_IF(
                !w.all_equal(), squared_hinge_diagonal, matrix(Y, n, l, "Y"), scores, w, scale, vector(costs, l, "costs"),
                matrix(H, n, l, "H")
            );
        },
        nb::arg("Y"), nb::arg("F"), nb::arg("weights"), nb::arg("scale"), nb::arg("costs"), nb::arg("H").noconvert(),
        Released()
    );
    m.def(
        "squared_hinge_labels",
        [](In2<std::int8_t> Y, In2<T> F, InAny weights, double scale, In1<double> costs, Array<double, 2> M) {
            const Matrix<const T> scores = matrix(F);
            const Index n = scores.rows, l = scores.columns;
            const Weights w = weights_of(weights, n, l);
            RBRL_IF(
                !w.all_equal(), squared_hinge_labels, matrix(Y, n, l, "Y"), scores, w, scale, vector(costs, l, "costs"),
                matrix(M, l, l, "M")
            );
        },
        nb::arg("Y"), nb::arg("F"), nb::arg("weights"), nb::arg("scale"), nb::arg("costs"), nb::arg("M").noconvert(),
        Released()
    );
    m.def(
        "squared_hinge_line",
        [](In2<std::int8_t> Y, In2<T> F, In2<T> D, In1<double> t, InAny weights, double scale, In1<double> costs,
           Array<double, 1> d1, Array<double, 1> d2) {
            const Matrix<const T> scores = matrix(F);
            const Index n = scores.rows, l = scores.columns;
            const Weights w = weights_of(weights, n, l);
            return RBRL_IF(
                !w.all_equal(), squared_hinge_line, matrix(Y, n, l, "Y"), scores, matrix(D, n, l, "D"), vector(t, l, "t"), w, scale,
                vector(costs, l, "costs"), vector(d1, l, "d1"), vector(d2, l, "d2")
            );
        },
        nb::arg("Y"), nb::arg("F"), nb::arg("D"), nb::arg("t"), nb::arg("weights"), nb::arg("scale"), nb::arg("costs"),
        nb::arg("d1").noconvert(), nb::arg("d2").noconvert(), Released()
    );
    m.def(
        "pairwise_hinge_product",
        [](In2<std::int8_t> Y, In2<T> F, In2<T> D, InAny weights, double scale, double margin, double coupling,
           Array<T, 2> P) {
            const Matrix<const T> scores = matrix(F);
            const Index n = scores.rows, l = scores.columns;
            const Weights w = weights_of(weights, n, l);
            RBRL_IF(
                w.of_entries(), pairwise_hinge_product, matrix(Y, n, l, "Y"), scores, matrix(D, n, l, "D"), w, scale, margin, coupling,
                matrix(P, n, l, "P")
            );
        },
        nb::arg("Y"), nb::arg("F"), nb::arg("D"), nb::arg("weights"), nb::arg("scale"), nb::arg("margin"),
        nb::arg("coupling"), nb::arg("P").noconvert(), Released()
    );
    m.def(
        "pairwise_hinge_labels",
        [](In2<std::int8_t> Y, In2<T> F, InAny weights, double scale, double margin, Array<double, 2> M) {
            const Matrix<const T> scores = matrix(F);
            const Index n = scores.rows, l = scores.columns;
            const Weights w = weights_of(weights, n, l);
            RBRL_IF(
                w.of_entries(), pairwise_hinge_labels, matrix(Y, n, l, "Y"), scores, w, scale, margin, matrix(M, l, l, "M")
            );
        },
        nb::arg("Y"), nb::arg("F"), nb::arg("weights"), nb::arg("scale"), nb::arg("margin"), nb::arg("M").noconvert(),
        Released()
    );
    m.def(
        "pairwise_hinge_line",
        [](In2<std::int8_t> Y, In2<T> F, In2<T> D, In1<double> t, InAny weights, double scale, double margin,
           Array<double, 1> d1, Array<double, 1> d2) {
            const Matrix<const T> scores = matrix(F);
            const Index n = scores.rows, l = scores.columns;
            const Weights w = weights_of(weights, n, l);
            return RBRL_IF(
                w.of_entries(), pairwise_hinge_line, matrix(Y, n, l, "Y"), scores, matrix(D, n, l, "D"), vector(t, l, "t"), w, scale,
                margin, vector(d1, l, "d1"), vector(d2, l, "d2")
            );
        },
        nb::arg("Y"), nb::arg("F"), nb::arg("D"), nb::arg("t"), nb::arg("weights"), nb::arg("scale"), nb::arg("margin"),
        nb::arg("d1").noconvert(), nb::arg("d2").noconvert(), Released()
    );
}

// Create a new NumPy array for the result of a loop.
template <int Dimensions>
nb::ndarray<nb::numpy, double, nb::ndim<Dimensions>> fresh(std::initializer_list<size_t> shape) {
    size_t cells = 1;
    for (size_t length : shape) cells *= length;
    double *data = new double[cells]();
    nb::capsule owner(data, [](void *p) noexcept { delete[] static_cast<double *>(p); });
    return {data, shape, owner};
}

void bind_algebra(nb::module_ &m) {
    m.def(
        "column_dots",
        [](In2<double> A, In2<double> B, bool joint) {
            const Matrix<const double> left = matrix(A), right = matrix(B, left.rows, left.columns, "A, B");
            auto out = fresh<1>({A.shape(1)});
            const Vector<double> to{out.data(), left.columns};
            nb::gil_scoped_release released;
            column_dots(left, right, joint, to);
            return out;
        },
        nb::arg("A"), nb::arg("B"), nb::arg("joint")
    );
    m.def(
        "memory_backward",
        [](Array<double, 2> q, In3<double> steps, In3<double> changes, In2<double> rho, In1<std::int64_t> order, bool joint) {
            const Matrix<double> to = matrix(q);
            const Index n = to.rows, l = to.columns, kept = size(steps);
            const auto moves = stack(steps, n, l, "steps"), bends = stack(changes, n, l, "changes");
            const auto inverses = matrix(rho, kept, l, "rho");
            auto coefficients = fresh<2>({rho.shape(0), rho.shape(1)});
            const Matrix<double> found{coefficients.data(), kept, l};
            nb::gil_scoped_release released;
            memory_backward(to, moves, bends, inverses, {order.data(), size(order)}, joint, found);
            return coefficients;
        },
        nb::arg("q").noconvert(), nb::arg("steps"), nb::arg("changes"), nb::arg("rho"), nb::arg("order"), nb::arg("joint")
    );
    m.def(
        "memory_forward",
        [](Array<double, 2> z, In3<double> steps, In3<double> changes, In2<double> rho, In1<std::int64_t> order, bool joint,
           In2<double> coefficients) {
            const Matrix<double> to = matrix(z);
            const Index n = to.rows, l = to.columns, kept = size(steps);
            memory_forward(
                to, stack(steps, n, l, "steps"), stack(changes, n, l, "changes"), matrix(rho, kept, l, "rho"),
                {order.data(), size(order)}, joint, matrix(coefficients, kept, l, "coefficients")
            );
        },
        nb::arg("z").noconvert(), nb::arg("steps"), nb::arg("changes"), nb::arg("rho"), nb::arg("order"), nb::arg("joint"),
        nb::arg("coefficients"), Released()
    );
    m.def(
        "clipped_dual_maximum",
        [](In1<double> sigma, double linear, double quadratic, double reach, double ridge, double limit) {
            return clipped_dual_maximum({sigma.data(), size(sigma)}, linear, quadratic, reach, ridge, limit);
        },
        nb::arg("sigma"), nb::arg("linear"), nb::arg("quadratic"), nb::arg("reach"), nb::arg("ridge"), nb::arg("limit")
    );
}

template <class T, class U, class I>
void bind_sparse_product(nb::module_ &m) {
    m.def(
        "sparse_product",
        [](In1<T> data, In1<I> indices, In1<I> indptr, In2<U> W, Array<double, 2> out) {
            const Matrix<double> to = matrix(out);
            require(size(W, 1) == to.columns, "W, out");
            sparse_product(sparse(data, indices, indptr, to.rows), matrix(W), to);
        },
        nb::arg("data"), nb::arg("indices"), nb::arg("indptr"), nb::arg("W"), nb::arg("out").noconvert(), Released()
    );
}

template <class T, class U, class I>
void bind_best_sparse_scores(nb::module_ &m) {
    m.def(
        "best_sparse_scores",
        [](In1<T> data, In1<I> indices, In1<I> indptr, In1<U> W_data, In1<I> W_indices, In1<I> W_indptr,
           In1<double> intercepts, Array<std::int64_t, 2> columns, Array<double, 2> best) {
            const Matrix<double> to = matrix(best);
            require(to.columns <= size(intercepts), "best, intercepts");
            best_sparse_scores(
                sparse(data, indices, indptr, to.rows), sparse(W_data, W_indices, W_indptr, size(W_indptr) - 1),
                {intercepts.data(), size(intercepts)}, matrix(columns, to.rows, to.columns, "columns, best"), to
            );
        },
        nb::arg("data"), nb::arg("indices"), nb::arg("indptr"), nb::arg("W_data"), nb::arg("W_indices"),
        nb::arg("W_indptr"), nb::arg("intercepts"), nb::arg("columns").noconvert(), nb::arg("best").noconvert(), Released()
    );
}

template <class T, class I>
void bind_sparse_products(nb::module_ &m) {
    bind_sparse_product<T, double, I>(m);
    bind_sparse_product<T, float, I>(m);
    bind_best_sparse_scores<T, double, I>(m);
    bind_best_sparse_scores<T, float, I>(m);
    m.def(
        "sparse_adjoint",
        [](In1<T> data, In1<I> indices, In1<I> indptr, In2<double> D, Array<double, 2> out) {
            const Matrix<const double> from = matrix(D);
            require(size(out, 1) == from.columns, "D, out");
            sparse_adjoint(sparse(data, indices, indptr, from.rows), from, matrix(out));
        },
        nb::arg("data"), nb::arg("indices"), nb::arg("indptr"), nb::arg("D"), nb::arg("out").noconvert(), Released()
    );
}

Pairs pairs_of(
    const In1<std::int64_t> &start, const In1<std::int32_t> &winner, const In1<std::int32_t> &loser, Index rows
) {
    require(size(start) == rows + 1 && start.data()[rows] == size(winner) && size(loser) == size(winner), "pairs");
    return {start.data(), winner.data(), loser.data(), rows, size(winner)};
}

template <class I>
void bind_sparse_pairs(nb::module_ &m) {
    m.def(
        "ascend_rows",
        [](In1<double> data, In1<I> indices, In1<I> indptr, In1<double> norms, Array<double, 2> W, In1<std::int64_t> start,
           In1<std::int32_t> winner, In1<std::int32_t> loser, In1<double> margin, In1<double> cap, Array<double, 1> alpha,
           Array<double, 1> biases, double lift, In1<std::int64_t> order, Index inner) {
            const Index n = size(norms), l = size(W, 1);
            const Pairs pairs = pairs_of(start, winner, loser, n);
            ascend_rows(
                sparse(data, indices, indptr, n), vector(norms, n, "norms"), matrix(W), pairs,
                vector(margin, pairs.size, "margin").data, vector(cap, pairs.size, "cap").data,
                vector(alpha, pairs.size, "alpha").data, vector(biases, l, "biases"), lift, {order.data(), size(order)}, inner
            );
        },
        nb::arg("data"), nb::arg("indices"), nb::arg("indptr"), nb::arg("norms"), nb::arg("W").noconvert(), nb::arg("start"),
        nb::arg("winner"), nb::arg("loser"), nb::arg("margin"), nb::arg("cap"), nb::arg("alpha").noconvert(),
        nb::arg("biases").noconvert(), nb::arg("lift"), nb::arg("order"), nb::arg("inner"), Released()
    );
    m.def(
        "gram_blocks",
        [](In1<double> data, In1<I> indices, In1<I> indptr, In2<double> H, Array<double, 3> G) {
            const Matrix<const double> curvatures = matrix(H);
            require(size(G, 0) == size(G, 1) && size(G, 2) == curvatures.columns, "H, G");
            gram_blocks(sparse(data, indices, indptr, curvatures.rows), curvatures, size(G), G.data());
        },
        nb::arg("data"), nb::arg("indices"), nb::arg("indptr"), nb::arg("H"), nb::arg("G").noconvert(), Released()
    );
}

void bind_pairs(nb::module_ &m) {
    m.def(
        "ascend_gram",
        [](In2<double> K, Array<double, 2> scores, In1<std::int64_t> start, In1<std::int32_t> winner,
           In1<std::int32_t> loser, In1<double> margin, In1<double> cap, Array<double, 1> alpha, Array<double, 1> biases,
           double lift, In1<std::int64_t> order, Index inner) {
            const Matrix<double> to = matrix(scores);
            const Index n = to.columns, l = to.rows;
            const Pairs pairs = pairs_of(start, winner, loser, n);
            ascend_gram(
                matrix(K, n, n, "K"), to, pairs, vector(margin, pairs.size, "margin").data,
                vector(cap, pairs.size, "cap").data, vector(alpha, pairs.size, "alpha").data, vector(biases, l, "biases"),
                lift, {order.data(), size(order)}, inner
            );
        },
        nb::arg("K"), nb::arg("scores").noconvert(), nb::arg("start"), nb::arg("winner"), nb::arg("loser"),
        nb::arg("margin"), nb::arg("cap"), nb::arg("alpha").noconvert(), nb::arg("biases").noconvert(), nb::arg("lift"),
        nb::arg("order"), nb::arg("inner"), Released()
    );
    m.def(
        "pair_hinge",
        [](In2<double> F, In1<std::int64_t> start, In1<std::int32_t> winner, In1<std::int32_t> loser, In1<double> margin,
           In1<double> cap) {
            const Pairs pairs = pairs_of(start, winner, loser, size(F));
            return pair_hinge(
                matrix(F), pairs, vector(margin, pairs.size, "margin").data, vector(cap, pairs.size, "cap").data
            );
        },
        nb::arg("F"), nb::arg("start"), nb::arg("winner"), nb::arg("loser"), nb::arg("margin"), nb::arg("cap"), Released()
    );
    m.def(
        "pair_sums",
        [](In1<std::int64_t> start, In1<std::int32_t> winner, In1<std::int32_t> loser, In1<double> values, double sign,
           Array<double, 2> R) {
            const Pairs pairs = pairs_of(start, winner, loser, size(R));
            pair_sums(pairs, vector(values, pairs.size, "values").data, sign, matrix(R));
        },
        nb::arg("start"), nb::arg("winner"), nb::arg("loser"), nb::arg("values"), nb::arg("sign"), nb::arg("R").noconvert(),
        Released()
    );
    m.def(
        "project_pairs",
        [](In2<double> F, In1<double> biases, In1<std::int64_t> start, In1<std::int32_t> winner, In1<std::int32_t> loser,
           In1<double> margin, In1<double> cap, In1<double> alpha, In1<double> steps, Array<double, 1> next,
           Array<double, 1> r, Array<double, 2> H) {
            const Index n = size(F), l = size(F, 1);
            const Pairs pairs = pairs_of(start, winner, loser, n);
            return project_pairs(
                matrix(F), vector(biases, l, "biases").data, pairs, vector(margin, pairs.size, "margin").data,
                vector(cap, pairs.size, "cap").data, vector(alpha, pairs.size, "alpha").data,
                vector(steps, n, "steps").data, vector(next, pairs.size, "new").data, vector(r, l, "r").data,
                matrix(H, l, l, "H")
            );
        },
        nb::arg("F"), nb::arg("biases"), nb::arg("start"), nb::arg("winner"), nb::arg("loser"), nb::arg("margin"),
        nb::arg("cap"), nb::arg("alpha"), nb::arg("steps"), nb::arg("new").noconvert(), nb::arg("r").noconvert(),
        nb::arg("H").noconvert(), Released()
    );
    m.def(
        "pair_slacks",
        [](In2<double> F, In1<std::int64_t> start, In1<std::int32_t> winner, In1<std::int32_t> loser, In1<double> margin,
           Array<double, 1> out) {
            const Pairs pairs = pairs_of(start, winner, loser, size(F));
            pair_slacks(
                matrix(F), pairs, vector(margin, pairs.size, "margin").data, vector(out, pairs.size, "out").data
            );
        },
        nb::arg("F"), nb::arg("start"), nb::arg("winner"), nb::arg("loser"), nb::arg("margin"), nb::arg("out").noconvert(),
        Released()
    );
    m.def(
        "pair_products",
        [](In2<double> F, In1<std::int64_t> start, In1<std::int32_t> winner, In1<std::int32_t> loser,
           In1<double> curvatures, Array<double, 2> R) {
            const Matrix<const double> scores = matrix(F);
            const Pairs pairs = pairs_of(start, winner, loser, scores.rows);
            pair_products(
                scores, pairs, vector(curvatures, pairs.size, "curvatures").data,
                matrix(R, scores.rows, scores.columns, "R")
            );
        },
        nb::arg("F"), nb::arg("start"), nb::arg("winner"), nb::arg("loser"), nb::arg("curvatures"),
        nb::arg("R").noconvert(), Released()
    );
}

// Check that indices into another array are inside its bounds.
void require_places(const auto &places, Index most, const char *what) {
    for (Index k = 0; k < size(places); ++k) require(places.data()[k] >= 0 && places.data()[k] < most, what);
}

template <class Rows>
double ascend(
    const Rows &rows, const In1<double> &squares, const In2<std::int8_t> &Y, const InAny &weights, double hinge,
    const In1<double> &costs, double pairs, double margin, const In1<double> &graph_data,
    const In1<std::int32_t> &graph_indices, const In1<std::int32_t> &graph_indptr, double ridge,
    const In1<std::int32_t> &order, const Array<double, 2> &W, const Array<double, 2> &Z
) {
    const Index n = size(Y, 0), l = size(Y, 1);
    require_places(graph_indices, l, "graph_indices");
    const LabelGraph graph{sparse(graph_data, graph_indices, graph_indptr, l)};
    const RowLoss loss{weights_of(weights, n, l), hinge, vector(costs, l, "costs"), pairs, margin, graph};
    require_places(order, n, "order");
    return RBRL_IF(
        loss.weights.of_entries(), dual_ascent_pass, rows, vector(squares, n, "squares"), matrix(Y), loss, ridge,
        Vector<const std::int32_t>{order.data(), size(order)}, matrix(W, size(W, 0), l, "W"), matrix(Z, n, l, "Z")
    );
}

// Arguments of every form of dual ascent that follow its rows.
#define RBRL_ASCENT_TYPES                                                                                                   \
    In1<double> squares, In2<std::int8_t> Y, InAny weights, double hinge, In1<double> costs, double pairs, double margin,   \
        In1<double> graph_data, In1<std::int32_t> graph_indices, In1<std::int32_t> graph_indptr, double ridge,              \
        In1<std::int32_t> order, Array<double, 2> W, Array<double, 2> Z
#define RBRL_ASCENT_VALUES                                                                                                  \
    squares, Y, weights, hinge, costs, pairs, margin, graph_data, graph_indices, graph_indptr, ridge, order, W, Z
#define RBRL_ASCENT_NAMES                                                                                                   \
    nb::arg("squares"), nb::arg("Y"), nb::arg("weights"), nb::arg("hinge"), nb::arg("costs"), nb::arg("pairs"),             \
        nb::arg("margin"), nb::arg("graph_data"), nb::arg("graph_indices"), nb::arg("graph_indptr"), nb::arg("ridge"),      \
        nb::arg("order"), nb::arg("W").noconvert(), nb::arg("Z").noconvert(), Released()

template <class I>
void bind_sparse_ascent(nb::module_ &m) {
    m.def(
        "dual_ascent_sparse",
        [](In1<double> data, In1<I> indices, In1<I> indptr, RBRL_ASCENT_TYPES) {
            require_places(indices, size(W, 0), "indices, W");
            return ascend(SparseRows<I>{sparse(data, indices, indptr, size(Y, 0))}, RBRL_ASCENT_VALUES);
        },
        nb::arg("data"), nb::arg("indices"), nb::arg("indptr"), RBRL_ASCENT_NAMES
    );
}

void bind_dense_ascents(nb::module_ &m) {
    m.def(
        "dual_ascent_dense",
        [](In2<double> X, RBRL_ASCENT_TYPES) {
            return ascend(DenseRows{matrix(X, size(Y, 0), size(W, 0), "X, Y, W")}, RBRL_ASCENT_VALUES);
        },
        nb::arg("X"), RBRL_ASCENT_NAMES
    );
    m.def(
        "dual_ascent_kernel",
        [](In2<double> K, In2<double> scores, RBRL_ASCENT_TYPES) {
            const Index n = size(Y, 0);
            require(size(W, 0) == n, "W, Y");
            const KernelRows rows{matrix(K, n, n, "K, Y"), matrix(scores, n, size(Y, 1), "scores, Y")};
            return ascend(rows, RBRL_ASCENT_VALUES);
        },
        nb::arg("K"), nb::arg("scores"), RBRL_ASCENT_NAMES
    );
}

}  // namespace

NB_MODULE(_core, m) {
    // The first overload that fits the arguments without conversion is used. Only if there is none, the
    // first overload that fits after conversion is used.
    bind_gradients<double, double>(m);
    bind_gradients<float, double>(m);
    bind_gradients<float, float>(m);
    bind_hinges<double>(m);
    bind_hinges<float>(m);
    bind_algebra(m);
    bind_sparse_products<double, std::int32_t>(m);
    bind_sparse_products<double, std::int64_t>(m);
    bind_sparse_products<float, std::int32_t>(m);
    bind_sparse_products<float, std::int64_t>(m);
    bind_sparse_pairs<std::int32_t>(m);
    bind_sparse_pairs<std::int64_t>(m);
    bind_pairs(m);
    bind_sparse_ascent<std::int32_t>(m);
    bind_sparse_ascent<std::int64_t>(m);
    bind_dense_ascents(m);
}
