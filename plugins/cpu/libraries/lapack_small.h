// Factorisations of matrices of a few rows, for which a library's call costs more than
// its work: OpenBLAS takes 250 ns to begin. The meaning is LAPACK's, column-major and in
// place; pivots are chosen as its unblocked routines do.
#ifndef MICA_PLUGINS_CPU_LIBRARIES_LAPACK_SMALL_H_
#define MICA_PLUGINS_CPU_LIBRARIES_LAPACK_SMALL_H_

#include <cmath>
#include <complex>
#include <utility>

namespace mica::cpu::small {

constexpr int kSmall = 12;  // rows and columns up to which this is faster, measured

template <class R>
R Times(R a, R b) {
  return a * b;
}
// Without the standard's care for infinities, as LAPACK's own.
template <class R>
std::complex<R> Times(std::complex<R> a, std::complex<R> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
template <class R>
R Conj(R a) {
  return a;
}
template <class R>
std::complex<R> Conj(std::complex<R> a) {
  return {a.real(), -a.imag()};
}
template <class R>
R Size(R a) {
  return std::abs(a);
}
template <class R>
R Size(std::complex<R> a) {
  return std::abs(a.real()) + std::abs(a.imag());
}

template <class T>
int Lu(int m, int n, T* a, int* pivots) {
  int info = 0;
  for (int k = 0; k < (m < n ? m : n); ++k) {
    T* column = a + k * m;
    int best = k;
    for (int i = k + 1; i < m; ++i)
      if (Size(column[i]) > Size(column[best])) best = i;
    pivots[k] = best + 1;
    if (column[best] == T(0)) {
      if (info == 0) info = k + 1;
      continue;
    }
    if (best != k)
      for (int j = 0; j < n; ++j) std::swap(a[j * m + k], a[j * m + best]);
    const T inverse = T(1) / column[k];
    for (int i = k + 1; i < m; ++i) column[i] = Times(column[i], inverse);
    for (int j = k + 1; j < n; ++j) {
      T* other = a + j * m;
      const T factor = other[k];
      for (int i = k + 1; i < m; ++i) other[i] -= Times(column[i], factor);
    }
  }
  return info;
}

template <class T>
int Cholesky(bool upper, int n, T* a) {
  // Element (i, j) of L, which the upper triangle holds as its adjoint.
  const auto at = [&](int i, int j) -> T& { return upper ? a[i * n + j] : a[j * n + i]; };
  const auto value = [&](int i, int j) { return upper ? Conj(at(i, j)) : at(i, j); };
  for (int j = 0; j < n; ++j) {
    auto diagonal = std::real(at(j, j));
    for (int k = 0; k < j; ++k) diagonal -= std::norm(value(j, k));
    if (!(diagonal > 0)) return j + 1;
    const auto root = std::sqrt(diagonal);
    at(j, j) = root;
    for (int i = j + 1; i < n; ++i) {
      T sum = value(i, j);
      for (int k = 0; k < j; ++k) sum -= Times(value(i, k), Conj(value(j, k)));
      at(i, j) = upper ? Conj(sum / root) : sum / root;
    }
  }
  return 0;
}

// Solves a x = b, or a^H x = b, for triangular a and k right sides.
template <class T>
void Solve(bool upper, bool adjoint, bool unit, int n, int k, const T* a, T* b) {
  for (int c = 0; c < k; ++c) {
    T* x = b + c * n;
    const bool from_end = upper != adjoint;
    for (int step = 0; step < n; ++step) {
      const int i = from_end ? n - 1 - step : step;
      T sum = x[i];
      for (int j = from_end ? i + 1 : 0; j < (from_end ? n : i); ++j)
        sum -= Times(adjoint ? Conj(a[i * n + j]) : a[j * n + i], x[j]);
      x[i] = unit ? sum : sum / (adjoint ? Conj(a[i * n + i]) : a[i * n + i]);
    }
  }
}

template <class T>
void LuSolve(bool adjoint, int n, int k, const T* lu, const int* pivots, T* b) {
  const auto exchange = [&](int i) {
    const int other = pivots[i] - 1;
    for (int c = 0; other != i && c < k; ++c) std::swap(b[c * n + i], b[c * n + other]);
  };
  if (!adjoint) {
    for (int i = 0; i < n; ++i) exchange(i);
    Solve(false, false, true, n, k, lu, b);
    Solve(true, false, false, n, k, lu, b);
  } else {
    Solve(true, true, false, n, k, lu, b);
    Solve(false, true, true, n, k, lu, b);
    for (int i = n - 1; i >= 0; --i) exchange(i);
  }
}

template <class T>
int Inverse(int n, T* a) {
  int pivots[kSmall];
  if (const int info = Lu(n, n, a, pivots)) return info;
  T x[kSmall * kSmall] = {};
  for (int i = 0; i < n; ++i) x[i * n + i] = T(1);
  LuSolve(false, n, n, a, pivots, x);
  for (int i = 0; i < n * n; ++i) a[i] = x[i];
  return 0;
}

}  // namespace mica::cpu::small

#endif  // MICA_PLUGINS_CPU_LIBRARIES_LAPACK_SMALL_H_
