// The loops of the losses: one pass over the scores, or over the pairs of labels of each row.
// Each loop adds to its output arrays. The function of the same name in reference.py defines it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "arrays.hpp"

namespace rbrl {

using Labels = Matrix<const std::int8_t>;
using Reals = Vector<const double>;

// Weights of rows or of single labels.
struct Weights {
    const double *data;
    Index rows, columns;  // 0 columns mean weights of rows

    bool of_entries() const { return columns > 0; }
    const double *row(Index i) const { return data + i * columns; }
    bool all_equal() const {
        Index others = 0;
        for (Index i = 0; i < rows; ++i) others += data[i] != data[0];
        return others == 0 && !of_entries();
    }
};

using Sums = std::pair<double, double>;

// Number of entries in a chunk. A matrix is read as one long row, so that short rows fill whole vectors.
constexpr Index CHUNK = 64;

// Call body(at, label, count) for each chunk, with the position and the label of its first entry.
template <class T, class Body>
RBRL_INLINE void for_chunks(const Matrix<T> &F, Body body) {
    const Index l = F.columns, cells = F.cells(), turn = l ? CHUNK % l : 0;
    Index at = 0, label = 0;
    for (; at + CHUNK <= cells; at += CHUNK) {
        body(at, label, std::integral_constant<Index, CHUNK>());
        label += turn;
        if (label >= l) label -= l;
    }
    if (at < cells) body(at, label, cells - at);
}

// Values of the labels, repeated so that a chunk can begin at any label, and sums over the rows for each
// label.
class Periodic {
public:
    Periodic(const double *values, Index l) : l(l), repeated(l + CHUNK) {
        for (Index j = 0; values && j < l; ++j) repeated[j] = values[j];
        for (Index j = l; values && l && j < l + CHUNK; ++j) repeated[j] = repeated[j - l];
    }
    double *from(Index label) { return repeated.data() + label; }

    Buffer sums() const {
        Buffer out(repeated);
        for (Index j = l + CHUNK - 1; l && j >= l; --j) out[j - l] += out[j];
        out.resize(l);
        return out;
    }

private:
    Index l;
    Buffer repeated;
};

// The labels of a chunk as double. The narrowest type of a loop determines the length of its vectors.
// With labels of one byte, a loop would need 32 entries at a time, and has not enough registers for them.
template <class T, class Count>
RBRL_INLINE void widen(Labels Y, Index at, Count count, T *RBRL_RESTRICT y) {
    const std::int8_t *RBRL_RESTRICT labels = Y.data + at;
    for (Index k = 0; k < count; ++k) y[k] = labels[k];
}

// Costs of the entries of a chunk: their weights or the weight of their row, times the cost of a relevant
// label.
template <bool Vary>
class Costs {
public:
    Costs(Labels Y, Weights weights, double scale, Reals prices)
        : weights(weights), scale(scale), l(Y.columns), prices(prices.data, Y.columns) {}

    struct OfChunk {
        const double *RBRL_RESTRICT w, *RBRL_RESTRICT price;
        double scale;
        // The cost is computed as a maximum. For a conditional expression on the label, the compiler would
        // create masked loads, which are slower. A missing label has no slack, so its cost has no effect.
        RBRL_INLINE double operator()(Index k, double y) const {
            const double relevant = y * price[k], irrelevant = -y;
            return (Vary ? scale * w[k] : scale) * (relevant > irrelevant ? relevant : irrelevant);
        }
    };

    RBRL_INLINE OfChunk of(Index at, Index label, Index count) {
        if (!Vary) return {nullptr, prices.from(label), scale * weights.data[0]};
        return {weights.of_entries() ? weights.data + at : of_rows(at, count), prices.from(label), scale};
    }

private:
    Weights weights;
    double scale;
    Index l;
    Periodic prices;
    double repeated[CHUNK];

    // Write the weight of its row for every entry of a chunk.
    RBRL_INLINE const double *of_rows(Index at, Index count) {
        Index k = 0;
        for (Index i = at / l; k < count; ++i) {
            const Index end = std::min(count, (i + 1) * l - at);
            for (; k < end; ++k) repeated[k] = weights.data[i];
        }
        return repeated;
    }
};

template <bool Vary, class T, class U>
RBRL_LOOP Sums squared_hinge(Labels Y, Matrix<const T> F, Weights weights, double scale, Reals prices, Matrix<U> R) {
    Costs<Vary> costs(Y, weights, scale, prices);
    double value = 0.0, linear = 0.0;
    for_chunks(F, [&](Index at, Index label, auto count) RBRL_INLINED {
        double y[CHUNK], squares = 0.0, slacks = 0.0;
        widen(Y, at, count, y);
        const auto cost = costs.of(at, label, count);
        const T *RBRL_RESTRICT f = F.data + at;
        U *RBRL_RESTRICT r = R.data + at;
        for (Index k = 0; k < count; ++k) {
            const double slack = positive_part(std::fabs(y[k]) - y[k] * f[k]), pull = cost(k, y[k]) * slack;
            squares += pull * slack;
            slacks += pull;
            r[k] = static_cast<U>(r[k] - pull * y[k]);
        }
        value += squares;
        linear += slacks;
    });
    return {0.5 * value, linear};
}

template <bool Vary, class T>
RBRL_LOOP void squared_hinge_diagonal(Labels Y, Matrix<const T> F, Weights weights, double scale, Reals prices, Matrix<T> H) {
    Costs<Vary> costs(Y, weights, scale, prices);
    for_chunks(F, [&](Index at, Index label, auto count) RBRL_INLINED {
        T y[CHUNK];
        widen(Y, at, count, y);
        const auto cost = costs.of(at, label, count);
        const T *RBRL_RESTRICT f = F.data + at;
        T *RBRL_RESTRICT h = H.data + at;
        for (Index k = 0; k < count; ++k) h[k] += static_cast<T>(cost(k, y[k])) * one_if<T>(y[k] * f[k] < std::fabs(y[k]));
    });
}

template <bool Vary, class T>
RBRL_LOOP void squared_hinge_labels(
    Labels Y, Matrix<const T> F, Weights weights, double scale, Reals prices, Matrix<double> M
) {
    Costs<Vary> costs(Y, weights, scale, prices);
    Periodic counts(nullptr, F.columns);
    for_chunks(F, [&](Index at, Index label, auto count) RBRL_INLINED {
        double y[CHUNK];
        widen(Y, at, count, y);
        const auto cost = costs.of(at, label, count);
        const T *RBRL_RESTRICT f = F.data + at;
        double *RBRL_RESTRICT sum = counts.from(label);
        for (Index k = 0; k < count; ++k) sum[k] += cost(k, y[k]) * one_if<double>(y[k] * f[k] < std::fabs(y[k]));
    });
    const Buffer sums = counts.sums();
    for (Index j = 0; j < F.columns; ++j) M[j][j] += sums[j];
}

template <bool Vary, class T>
RBRL_LOOP Sums squared_hinge_line(
    Labels Y, Matrix<const T> F, Matrix<const T> D, Reals t, Weights weights, double scale, Reals prices, Vector<double> d1,
    Vector<double> d2
) {
    const Index l = F.columns;
    Costs<Vary> costs(Y, weights, scale, prices);
    Periodic steps(t.data, l), slopes(nullptr, l), seconds(nullptr, l);
    double value = 0.0;
    for_chunks(F, [&](Index at, Index label, auto count) RBRL_INLINED {
        double y[CHUNK], squares = 0.0;
        widen(Y, at, count, y);
        const auto cost = costs.of(at, label, count);
        const T *RBRL_RESTRICT f = F.data + at, *RBRL_RESTRICT along = D.data + at;
        const double *RBRL_RESTRICT step = steps.from(label);
        double *RBRL_RESTRICT slope = slopes.from(label), *RBRL_RESTRICT second = seconds.from(label);
        for (Index k = 0; k < count; ++k) {
            const double d = along[k], gap = std::fabs(y[k]) - y[k] * (f[k] + step[k] * d), slack = positive_part(gap);
            const double price = cost(k, y[k]), pull = price * slack;
            squares += pull * slack;
            slope[k] += pull * y[k] * d;
            second[k] += price * one_if<double>(gap > 0) * d * d;
        }
        value += squares;
    });
    const Buffer first_sums = slopes.sums(), second_sums = seconds.sums();
    for (Index j = 0; j < l; ++j) {
        d1[j] -= first_sums[j];
        d2[j] += second_sums[j];
    }
    return {0.5 * value, total(second_sums)};
}

// The labels of a row, in two groups. The relevant labels are few and are listed. The irrelevant labels
// keep their positions, and `rest` has minus infinity as the score of all other labels. So a loop over
// the pairs of a relevant label runs over all labels, without an index and in whole vectors.
class Sides {
public:
    std::vector<std::int32_t> pos;
    Buffer f_pos, w_pos, rest, w_rest;
    Index p = 0, q = 0, padded;
    double price = 0.0;  // weight of a pair beside the weights of its two entries

    explicit Sides(Index l)
        : pos(l), f_pos(l), w_pos(l), rest(round_up(l), FAR), w_rest(round_up(l), 0.0), padded(round_up(l)) {}

    static Index round_up(Index l) { return (l + 3) / 4 * 4; }

    // Split row i, whose scores are in `rest`; return whether it has a pair.
    template <bool OfEntries>
    RBRL_INLINE bool split(Labels Y, Index i, const Weights &weights, double scale) {
        const std::int8_t *y = Y[i];
        const Index l = Y.columns;
        find(y, l, (Y.rows - i) * l);
        if (p == 0 || q == 0) return false;
        for (Index a = 0; a < p; ++a) {
            const Index j = pos[a];
            f_pos[a] = rest[j];
            rest[j] = FAR;
        }
        if (p + q < l) {
            for (Index j = 0; j < l; ++j) {
                if (y[j] == 0) rest[j] = FAR;
            }
        }
        price = OfEntries ? scale * weigh(y, weights.row(i), l) : scale * weights.data[i] / static_cast<double>(p * q);
        return true;
    }

    template <bool OfEntries>
    double pair_price(Index a) const {
        return OfEntries ? price * w_pos[a] : price;
    }

    // Call body(a, count) with two relevant labels at a time. Values of the other labels are then read once
    // for both, and the two sums do not wait for each other.
    template <class Body>
    RBRL_INLINE void for_relevant(Body body) const {
        Index a = 0;
        for (; a + 2 <= p; a += 2) body(a, std::integral_constant<Index, 2>());
        if (a < p) body(a, std::integral_constant<Index, 1>());
    }

private:
    static constexpr double FAR = -std::numeric_limits<double>::infinity();

    // Compute the weights of both groups, and the weight of a pair beside them. Weights of labels that are not
    // irrelevant have no effect, because their scores are minus infinity.
    RBRL_INLINE double weigh(const std::int8_t *RBRL_RESTRICT y, const double *RBRL_RESTRICT w, Index l) {
        double of_pos = 0.0, of_neg = 0.0;
        copy(w, l, w_rest.data());
        for (Index a = 0; a < p; ++a) of_pos += w_pos[a] = w[pos[a]];
        for (Index j = 0; j < l; ++j) of_neg += w[j] * (y[j] < 0);
        return (of_pos + of_neg) / (static_cast<double>(p + q) * of_pos * of_neg);
    }

    // List the relevant labels and count the irrelevant ones, eight bytes at a time if there are as many. Of
    // 1, 0 and -1, the lowest bit shows that a label is not missing, and the highest that it is irrelevant.
    RBRL_INLINE void find(const std::int8_t *y, Index l, Index readable) {
        constexpr std::uint64_t LOWEST = 0x0101010101010101;
        p = q = 0;
        Index j = 0;
        for (; std::endian::native == std::endian::little && j < l && j + 8 <= readable; j += 8) {
            std::uint64_t word;
            std::memcpy(&word, y + j, 8);
            if (l - j < 8) word &= (std::uint64_t{1} << 8 * (l - j)) - 1;  // the remaining bytes belong to the next row
            const std::uint64_t irrelevant = word >> 7 & LOWEST;
            q += static_cast<Index>(irrelevant * LOWEST >> 56);
            for (std::uint64_t left = word & ~irrelevant & LOWEST; left; left &= left - 1)
                pos[p++] = static_cast<std::int32_t>(j + std::countr_zero(left) / 8);
        }
        for (; j < l; ++j) {
            if (y[j] > 0) pos[p++] = static_cast<std::int32_t>(j);
            q += y[j] < 0;
        }
    }
};

template <bool OfEntries, class T, class U>
RBRL_LOOP Sums pairwise_hinge(Labels Y, Matrix<const T> F, Weights weights, double scale, double margin, Matrix<U> R) {
    const Index l = F.columns;
    Sides sides(l);
    const Index padded = sides.padded;
    Buffer pushes(padded), pulls(l);
    const double none = hidden_zero();
    double *RBRL_RESTRICT rest = sides.rest.data(), *RBRL_RESTRICT push = pushes.data();
    const double *RBRL_RESTRICT w_rest = sides.w_rest.data();
    double value = 0.0, linear = 0.0;
    for (Index i = 0; i < F.rows; ++i) {
        copy(F[i], l, rest);
        if (!sides.split<OfEntries>(Y, i, weights, scale)) continue;
        for (Index k = 0; k < padded; ++k) push[k] = 0.0;
        double squares = 0.0, total = 0.0;
        sides.for_relevant([&](Index a, auto count) RBRL_INLINED {
            double shift[count], w[count], pull[count], square[count];
            for (Index c = 0; c < count; ++c) {
                shift[c] = margin - sides.f_pos[a + c];
                w[c] = OfEntries ? sides.w_pos[a + c] : 1.0;
                pull[c] = square[c] = 0.0;
            }
            for (Index k = 0; k < padded; ++k) {
                double pushed = push[k];
                for (Index c = 0; c < count; ++c) {
                    const double slack = positive_part(shift[c] + rest[k], none);
                    const double weighted = OfEntries ? w_rest[k] * slack : slack;
                    square[c] += weighted * slack;
                    pull[c] += weighted;
                    pushed += OfEntries ? w[c] * weighted : weighted;
                }
                push[k] = pushed;
            }
            for (Index c = 0; c < count; ++c) {
                squares += w[c] * square[c];
                total += pulls[a + c] = w[c] * pull[c];
            }
        });
        value += sides.price * squares;
        linear += sides.price * total;
        U *RBRL_RESTRICT r = R[i];
        for (Index k = 0; k < l; ++k) r[k] = static_cast<U>(r[k] + sides.price * push[k]);
        for (Index a = 0; a < sides.p; ++a) r[sides.pos[a]] = static_cast<U>(r[sides.pos[a]] - sides.price * pulls[a]);
    }
    return {0.5 * value, margin * linear};
}

template <bool OfEntries, class T>
RBRL_LOOP void pairwise_hinge_product(
    Labels Y, Matrix<const T> F, Matrix<const T> D, Weights weights, double scale, double margin, double coupling, Matrix<T> P
) {
    const Index l = F.columns;
    Sides sides(l);
    const Index padded = sides.padded;
    Buffer along(padded, 0.0), moves(padded);
    double *RBRL_RESTRICT rest = sides.rest.data(), *RBRL_RESTRICT moved = moves.data();
    double *RBRL_RESTRICT d_rest = along.data();
    const double *RBRL_RESTRICT w_rest = sides.w_rest.data();
    for (Index i = 0; i < F.rows; ++i) {
        copy(F[i], l, rest);
        if (!sides.split<OfEntries>(Y, i, weights, scale)) continue;
        copy(D[i], l, d_rest);
        T *RBRL_RESTRICT to = P[i];
        for (Index k = 0; k < padded; ++k) moved[k] = 0.0;
        for (Index a = 0; a < sides.p; ++a) {
            const double shift = margin - sides.f_pos[a], d = d_rest[sides.pos[a]], w = sides.pair_price<OfEntries>(a);
            double own = 0.0;
            for (Index k = 0; k < padded; ++k) {
                const double active = shift + rest[k] > 0 ? (OfEntries ? w * w_rest[k] : w) : 0.0;
                own += active * (d - coupling * d_rest[k]);
                moved[k] += active * (d_rest[k] - coupling * d);
            }
            to[sides.pos[a]] = static_cast<T>(to[sides.pos[a]] + own);
        }
        for (Index k = 0; k < l; ++k) to[k] = static_cast<T>(to[k] + moved[k]);
    }
}

template <bool OfEntries, class T>
RBRL_LOOP void pairwise_hinge_labels(
    Labels Y, Matrix<const T> F, Weights weights, double scale, double margin, Matrix<double> M
) {
    const Index l = F.columns;
    Sides sides(l);
    const Index padded = sides.padded;
    Buffer halves(l * padded, 0.0), diagonal(l, 0.0);  // weights of the active pairs of a relevant and another label
    double *RBRL_RESTRICT rest = sides.rest.data();
    const double *RBRL_RESTRICT w_rest = sides.w_rest.data();
    for (Index i = 0; i < F.rows; ++i) {
        copy(F[i], l, rest);
        if (!sides.split<OfEntries>(Y, i, weights, scale)) continue;
        for (Index a = 0; a < sides.p; ++a) {
            const double shift = margin - sides.f_pos[a], w = sides.pair_price<OfEntries>(a);
            double *RBRL_RESTRICT half = halves.data() + sides.pos[a] * padded;
            for (Index k = 0; k < padded; ++k) half[k] += shift + rest[k] > 0 ? (OfEntries ? w * w_rest[k] : w) : 0.0;
        }
    }
    for (Index j = 0; j < l; ++j) {
        for (Index k = 0; k < l; ++k) {
            const double one = halves[j * padded + k];
            diagonal[j] += one;
            diagonal[k] += one;
            M[j][k] -= one + halves[k * padded + j];
        }
    }
    for (Index j = 0; j < l; ++j) M[j][j] += diagonal[j];
}

template <bool OfEntries, class T>
RBRL_LOOP Sums pairwise_hinge_line(
    Labels Y, Matrix<const T> F, Matrix<const T> D, Reals t, Weights weights, double scale, double margin, Vector<double> d1,
    Vector<double> d2
) {
    const Index l = F.columns;
    Sides sides(l);
    const Index padded = sides.padded;
    Buffer along(padded, 0.0), pushes(padded), actives(padded);
    double *RBRL_RESTRICT rest = sides.rest.data(), *RBRL_RESTRICT d_rest = along.data();
    double *RBRL_RESTRICT push = pushes.data(), *RBRL_RESTRICT active = actives.data();
    const double *RBRL_RESTRICT w_rest = sides.w_rest.data(), *RBRL_RESTRICT step = t.data;
    double value = 0.0, joint = 0.0;
    for (Index i = 0; i < F.rows; ++i) {
        const T *RBRL_RESTRICT f = F[i];
        copy(D[i], l, d_rest);
        for (Index k = 0; k < l; ++k) rest[k] = f[k] + step[k] * d_rest[k];
        if (!sides.split<OfEntries>(Y, i, weights, scale)) continue;
        for (Index k = 0; k < padded; ++k) push[k] = active[k] = 0.0;
        for (Index a = 0; a < sides.p; ++a) {
            const Index j = sides.pos[a];
            const double shift = margin - sides.f_pos[a], d = d_rest[j], w = sides.pair_price<OfEntries>(a);
            double pull = 0.0, count = 0.0, square = 0.0, curved = 0.0;
            for (Index k = 0; k < padded; ++k) {
                const double slack = positive_part(shift + rest[k]), weight = OfEntries ? w * w_rest[k] : w;
                const double weighted = weight * slack, one = slack > 0 ? weight : 0.0, apart = d - d_rest[k];
                square += weighted * slack;
                curved += one * apart * apart;
                pull += weighted;
                count += one;
                push[k] += weighted;
                active[k] += one;
            }
            value += square;
            joint += curved;
            d1[j] -= pull * d;
            d2[j] += count * d * d;
        }
        double *RBRL_RESTRICT slope = d1.data, *RBRL_RESTRICT second = d2.data;
        for (Index k = 0; k < l; ++k) {
            slope[k] += push[k] * d_rest[k];
            second[k] += active[k] * d_rest[k] * d_rest[k];
        }
    }
    return {0.5 * value, joint};
}

}  // namespace rbrl
