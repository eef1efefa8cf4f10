// Views of the caller's arrays, which are stored row by row, and attributes of loops for the compiler.
// All computations are in double precision. Single precision is used for storage only.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

// Every loop is compiled twice: for all processors of a family, and for those of the last ten years.
// The loader chooses the version. CMakeLists.txt checks whether compiler and system support this.
#ifdef RBRL_CLONES
#define RBRL_LOOP __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define RBRL_LOOP
#endif

#ifdef _MSC_VER
#define RBRL_INLINE __forceinline
#define RBRL_INLINED
#define RBRL_RESTRICT __restrict
#else
// A helper function that is not inlined would run in its version for all processors.
#define RBRL_INLINE inline __attribute__((always_inline))
#define RBRL_INLINED __attribute__((always_inline))
#define RBRL_RESTRICT __restrict__
#endif

namespace rbrl {

using Index = std::ptrdiff_t;
using Buffer = std::vector<double>;

template <class T>
struct Vector {
    T *data;
    Index size;
    T &operator[](Index i) const { return data[i]; }
};

template <class T>
struct Matrix {
    T *data;
    Index rows, columns;
    T *operator[](Index i) const { return data + i * columns; }
    Index cells() const { return rows * columns; }
};

// A matrix in the CSR format.
template <class T, class I>
struct Sparse {
    const T *data;
    const I *indices, *indptr;
    Index rows;
};

RBRL_INLINE double total(const Buffer &values) {
    double sum = 0.0;
    for (double value : values) sum += value;
    return sum;
}

template <class T>
RBRL_INLINE void copy(const T *RBRL_RESTRICT from, Index length, double *RBRL_RESTRICT to) {
    for (Index k = 0; k < length; ++k) to[k] = from[k];
}

template <class T>
RBRL_INLINE T one_if(bool condition) {
    return condition ? T(1) : T(0);
}

// NaN stays NaN, because a comparison with NaN is false.
RBRL_INLINE double positive_part(double x, double zero = 0.0) { return zero > x ? zero : x; }

// A zero whose value the compiler does not know. Otherwise the compiler would add branches or masks
// for positive parts that are zero.
RBRL_INLINE double hidden_zero() {
    double zero = 0.0;
#ifndef _MSC_VER
    __asm__("" : "+m"(zero));
#endif
    return zero;
}

RBRL_INLINE double clip(double x, double low, double high) {
    const double above = low > x ? low : x;
    return high < above ? high : above;
}

}  // namespace rbrl
