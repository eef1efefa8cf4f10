// Views of the caller's arrays, in rows one after the other, and what the compiler is to be told about a loop.
// A weight, a label and a score are double precision wherever they are computed with: single precision is for storage.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

// Every loop is compiled for all processors of its kind and once more for those of the last ten years; the loader picks.
// CMakeLists.txt finds out whether compiler and system can do that.
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
// A helper that is not inlined would be called in its version for all processors.
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

// A matrix in compressed rows.
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

// NaN stays NaN: a comparison with it is false.
RBRL_INLINE double positive_part(double x, double zero = 0.0) { return zero > x ? zero : x; }

// A zero that the compiler takes for any number: what follows a positive part of zero, it would otherwise jump over or mask.
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
