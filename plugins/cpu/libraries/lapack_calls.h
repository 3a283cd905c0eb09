// LAPACK's Fortran routines as overloaded C++ functions: `Potrf` of float, double and
// their complex types.
//
// Where the real and the complex routine differ (orgqr and ungqr; work of real
// numbers), one signature covers both, and the real one ignores what it has not.
// lda of each matrix is its number of rows, at least 1.
#ifndef MICA_PLUGINS_CPU_LIBRARIES_LAPACK_CALLS_H_
#define MICA_PLUGINS_CPU_LIBRARIES_LAPACK_CALLS_H_

#include <complex>

// scipy-openblas32 prefixes all symbols, and in its lapack.h those macros that pass
// the lengths of strings.
#define LAPACK_GLOBAL(lower, UPPER) scipy_##lower##_
#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <cblas.h>
#include <lapack.h>

namespace mica::cpu::lapack {

inline const int* P(const int& value) { return &value; }
inline int Lead(int rows) { return rows > 1 ? rows : 1; }

#define MICA_LAPACK_ALL(s, T)                                                                               \
  inline void Potrf(char uplo, int n, T* a, int* info) {                                                    \
    scipy_LAPACK_##s##potrf(&uplo, &n, a, P(Lead(n)), info);                                                \
  }                                                                                                         \
  inline void Getrf(int m, int n, T* a, int* pivots, int* info) {                                           \
    LAPACK_##s##getrf(&m, &n, a, P(Lead(m)), pivots, info);                                                 \
  }                                                                                                         \
  inline void Getri(int n, T* a, const int* pivots, T* work, int lwork, int* info) {                        \
    LAPACK_##s##getri(&n, a, P(Lead(n)), pivots, work, &lwork, info);                                       \
  }                                                                                                         \
  inline void Getrs(char trans, int n, int k, const T* a, const int* pivots, T* b, int* info) {             \
    scipy_LAPACK_##s##getrs(&trans, &n, &k, a, P(Lead(n)), pivots, b, P(Lead(n)), info);                    \
  }                                                                                                         \
  inline void Geqrf(int m, int n, T* a, T* tau, T* work, int lwork, int* info) {                            \
    LAPACK_##s##geqrf(&m, &n, a, P(Lead(m)), tau, work, &lwork, info);                                      \
  }                                                                                                         \
  inline void Gels(int m, int n, int k, T* a, T* b, int ldb, T* work, int lwork, int* info) {               \
    const char trans = 'N';                                                                                 \
    scipy_LAPACK_##s##gels(&trans, &m, &n, &k, a, P(Lead(m)), b, &ldb, work, &lwork, info);                 \
  }                                                                                                         \
  inline void Sytrf(int n, T* a, int* pivots, T* work, int lwork, int* info) {                              \
    const char uplo = 'L';                                                                                  \
    scipy_LAPACK_##s##sytrf(&uplo, &n, a, P(Lead(n)), pivots, work, &lwork, info);                          \
  }                                                                                                         \
  inline void Sytrs(int n, int k, const T* a, const int* pivots, T* b, int* info) {                         \
    const char uplo = 'L';                                                                                  \
    scipy_LAPACK_##s##sytrs(&uplo, &n, &k, a, P(Lead(n)), pivots, b, P(Lead(n)), info);                     \
  }                                                                                                         \
  inline void Trtrs(char side, char uplo, char trans, char diag, int m, int n, const T* a, int lda, T* b) { \
    const T one = 1;                                                                                        \
    MICA_TRSM(s)                                                                                            \
    (CblasColMajor, side == 'L' ? CblasLeft : CblasRight, uplo == 'U' ? CblasUpper : CblasLower,            \
     trans == 'N' ? CblasNoTrans : CblasConjTrans, diag == 'U' ? CblasUnit : CblasNonUnit, m, n,            \
     MICA_ONE(s)(one), a, lda, b, Lead(m));                                                                 \
  }

#define MICA_TRSM(s) scipy_cblas_##s##trsm
#define MICA_ONE(s) MICA_ONE_##s
#define MICA_ONE_s(x) x
#define MICA_ONE_d(x) x
#define MICA_ONE_c(x) &x
#define MICA_ONE_z(x) &x

#define MICA_LAPACK_REAL(s, T)                                                                               \
  inline void Orgqr(int m, int n, int k, T* a, const T* tau, T* work, int lwork, int* info) {                \
    LAPACK_##s##orgqr(&m, &n, &k, a, P(Lead(m)), tau, work, &lwork, info);                                   \
  }                                                                                                          \
  inline void Ormqr(char side, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c,     \
                    T* work, int lwork, int* info) {                                                         \
    const char real_trans = trans == 'C' ? 'T' : trans;                                                      \
    scipy_LAPACK_##s##ormqr(&side, &real_trans, &m, &n, &k, a, &lda, tau, c, P(Lead(m)), work, &lwork,       \
                            info);                                                                           \
  }                                                                                                          \
  inline void Heevd(char job, char uplo, int n, T* a, T* w, T* work, int lwork, T*, int, int* iwork,         \
                    int liwork, int* info) {                                                                 \
    scipy_LAPACK_##s##syevd(&job, &uplo, &n, a, P(Lead(n)), w, work, &lwork, iwork, &liwork, info);          \
  }                                                                                                          \
  inline void Gesdd(char job, int m, int n, T* a, T* s_, T* u, T* vt, int ldvt, T* work, int lwork, T*,      \
                    int* iwork, int* info) {                                                                 \
    scipy_LAPACK_##s##gesdd(&job, &m, &n, a, P(Lead(m)), s_, u, P(Lead(m)), vt, &ldvt, work, &lwork, iwork,  \
                            info);                                                                           \
  }                                                                                                          \
  inline void Gelsy(int m, int n, int k, T* a, T* b, int ldb, int* jpvt, T rcond, int* rank, T* work,        \
                    int lwork, T*, int* info) {                                                              \
    LAPACK_##s##gelsy(&m, &n, &k, a, P(Lead(m)), b, &ldb, jpvt, &rcond, rank, work, &lwork, info);           \
  }                                                                                                          \
  inline void Gelsd(int m, int n, int k, T* a, T* b, int ldb, T* s_, T rcond, int* rank, T* work, int lwork, \
                    T*, int* iwork, int* info) {                                                             \
    LAPACK_##s##gelsd(&m, &n, &k, a, P(Lead(m)), b, &ldb, s_, &rcond, rank, work, &lwork, iwork, info);      \
  }                                                                                                          \
  inline void Gelss(int m, int n, int k, T* a, T* b, int ldb, T* s_, T rcond, int* rank, T* work, int lwork, \
                    T*, int* info) {                                                                         \
    LAPACK_##s##gelss(&m, &n, &k, a, P(Lead(m)), b, &ldb, s_, &rcond, rank, work, &lwork, info);             \
  }                                                                                                          \
  inline void Geev(char job, int n, T* a, T* w, T* vr, T* work, int lwork, int* info) {                      \
    const char none = 'N';                                                                                   \
    scipy_LAPACK_##s##geev(&none, &job, &n, a, P(Lead(n)), w, w + n, nullptr, P(1), vr, P(Lead(n)), work,    \
                           &lwork, info);                                                                    \
  }

#define MICA_LAPACK_COMPLEX(s, T, R)                                                                         \
  inline void Orgqr(int m, int n, int k, T* a, const T* tau, T* work, int lwork, int* info) {                \
    LAPACK_##s##ungqr(&m, &n, &k, a, P(Lead(m)), tau, work, &lwork, info);                                   \
  }                                                                                                          \
  inline void Ormqr(char side, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c,     \
                    T* work, int lwork, int* info) {                                                         \
    scipy_LAPACK_##s##unmqr(&side, &trans, &m, &n, &k, a, &lda, tau, c, P(Lead(m)), work, &lwork, info);     \
  }                                                                                                          \
  inline void Heevd(char job, char uplo, int n, T* a, R* w, T* work, int lwork, R* rwork, int lrwork,        \
                    int* iwork, int liwork, int* info) {                                                     \
    scipy_LAPACK_##s##heevd(&job, &uplo, &n, a, P(Lead(n)), w, work, &lwork, rwork, &lrwork, iwork, &liwork, \
                            info);                                                                           \
  }                                                                                                          \
  inline void Gesdd(char job, int m, int n, T* a, R* s_, T* u, T* vt, int ldvt, T* work, int lwork,          \
                    R* rwork, int* iwork, int* info) {                                                       \
    scipy_LAPACK_##s##gesdd(&job, &m, &n, a, P(Lead(m)), s_, u, P(Lead(m)), vt, &ldvt, work, &lwork, rwork,  \
                            iwork, info);                                                                    \
  }                                                                                                          \
  inline void Gelsy(int m, int n, int k, T* a, T* b, int ldb, int* jpvt, R rcond, int* rank, T* work,        \
                    int lwork, R* rwork, int* info) {                                                        \
    LAPACK_##s##gelsy(&m, &n, &k, a, P(Lead(m)), b, &ldb, jpvt, &rcond, rank, work, &lwork, rwork, info);    \
  }                                                                                                          \
  inline void Gelsd(int m, int n, int k, T* a, T* b, int ldb, R* s_, R rcond, int* rank, T* work, int lwork, \
                    R* rwork, int* iwork, int* info) {                                                       \
    LAPACK_##s##gelsd(&m, &n, &k, a, P(Lead(m)), b, &ldb, s_, &rcond, rank, work, &lwork, rwork, iwork,      \
                      info);                                                                                 \
  }                                                                                                          \
  inline void Gelss(int m, int n, int k, T* a, T* b, int ldb, R* s_, R rcond, int* rank, T* work, int lwork, \
                    R* rwork, int* info) {                                                                   \
    LAPACK_##s##gelss(&m, &n, &k, a, P(Lead(m)), b, &ldb, s_, &rcond, rank, work, &lwork, rwork, info);      \
  }                                                                                                          \
  inline void Geev(char job, int n, T* a, T* w, T* vr, T* work, int lwork, R* rwork, int* info) {            \
    const char none = 'N';                                                                                   \
    scipy_LAPACK_##s##geev(&none, &job, &n, a, P(Lead(n)), w, nullptr, P(1), vr, P(Lead(n)), work, &lwork,   \
                           rwork, info);                                                                     \
  }                                                                                                          \
  inline void Hetrf(int n, T* a, int* pivots, T* work, int lwork, int* info) {                               \
    const char uplo = 'L';                                                                                   \
    scipy_LAPACK_##s##hetrf(&uplo, &n, a, P(Lead(n)), pivots, work, &lwork, info);                           \
  }                                                                                                          \
  inline void Hetrs(int n, int k, const T* a, const int* pivots, T* b, int* info) {                          \
    const char uplo = 'L';                                                                                   \
    scipy_LAPACK_##s##hetrs(&uplo, &n, &k, a, P(Lead(n)), pivots, b, P(Lead(n)), info);                      \
  }

MICA_LAPACK_ALL(s, float)
MICA_LAPACK_ALL(d, double)
MICA_LAPACK_ALL(c, std::complex<float>)
MICA_LAPACK_ALL(z, std::complex<double>)
MICA_LAPACK_REAL(s, float)
MICA_LAPACK_REAL(d, double)
MICA_LAPACK_COMPLEX(c, std::complex<float>, float)
MICA_LAPACK_COMPLEX(z, std::complex<double>, double)

}  // namespace mica::cpu::lapack

#endif  // MICA_PLUGINS_CPU_LIBRARIES_LAPACK_CALLS_H_
