// Each core as a function of a task: which operands it has, and its calls of LAPACK.
//
// "m n A" beside a function means operand 0 is an m x n matrix; "in", "out" and "io"
// say what happens to it. LAPACK is asked for the size of its workspace first; the
// memory is a thread's own and is kept while it is small.
#include "plugins/cpu/libraries/lapack.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

#include <mica/abi.h>
#include "plugins/cpu/libraries/lapack_calls.h"
#include "plugins/cpu/libraries/lapack_small.h"

namespace mica::cpu {
namespace {

using namespace lapack;

template <class T>
struct RealOf {
  using Type = T;
};
template <class R>
struct RealOf<std::complex<R>> {
  using Type = R;
};
template <class T>
using Real = typename RealOf<T>::Type;
template <class T>
constexpr bool kComplex = !std::is_same_v<T, Real<T>>;

// A thread's memory for work, one block a place; it is kept while it is small.
template <class T, int kPlace = 0>
T* Work(int64_t count) {
  using Block = std::max_align_t;
  constexpr size_t kKept = (1 << 20) / sizeof(Block);
  thread_local std::unique_ptr<Block[]> memory;
  thread_local size_t size = 0;
  const size_t needed = static_cast<size_t>(std::max<int64_t>(count, 1)) * sizeof(T) / sizeof(Block) + 1;
  if (size < needed || (size > kKept && needed <= kKept)) {
    memory.reset();
    size = 0;
    memory.reset(new Block[needed]);
    size = needed;
  }
  return reinterpret_cast<T*>(memory.get());
}

// The workspace size that a routine wrote into the first element of its work.
template <class T>
int SizeIn(const T& value) {
  return static_cast<int>(std::real(value));
}

template <class T>
struct Cores {
  using R = Real<T>;

  template <class U = T>
  static U* Op(const CoreTask& t, int i) {
    return static_cast<U*>(t.operands[i]);
  }
  static bool IsSmall(const CoreTask& t) { return std::max(t.m, t.n) <= small::kSmall; }
  static int M(const CoreTask& t) { return static_cast<int>(t.m); }
  static int N(const CoreTask& t) { return static_cast<int>(t.n); }
  static int K(const CoreTask& t) { return static_cast<int>(t.k); }

  // n n A io
  static void Cholesky(CoreTask& t) {
    if (IsSmall(t))
      t.info = small::Cholesky(t.upper, N(t), Op(t, 0));
    else
      Potrf(t.upper ? 'U' : 'L', N(t), Op(t, 0), &t.info);
  }

  // m n A io, int32 pivots out
  static void Lu(CoreTask& t) {
    if (IsSmall(t))
      t.info = small::Lu(M(t), N(t), Op(t, 0), Op<int>(t, 1));
    else
      Getrf(M(t), N(t), Op(t, 0), Op<int>(t, 1), &t.info);
  }

  // n n A io
  static void Inverse(CoreTask& t) {
    if (IsSmall(t)) {
      t.info = small::Inverse(N(t), Op(t, 0));
      return;
    }
    int* pivots = Work<int, 1>(t.n);
    Getrf(N(t), N(t), Op(t, 0), pivots, &t.info);
    if (t.info != 0) return;
    T size = 0;
    Getri(N(t), Op(t, 0), pivots, &size, -1, &t.info);
    Getri(N(t), Op(t, 0), pivots, Work<T>(SizeIn(size)), SizeIn(size), &t.info);
  }

  // triangular A in (m m if left, n n if not), m n B io
  static void TriangularSolve(CoreTask& t) {
    if (IsSmall(t) && t.left) return small::Solve(t.upper, t.adjoint, t.unit, M(t), N(t), Op(t, 0), Op(t, 1));
    Trtrs(t.left ? 'L' : 'R', t.upper ? 'U' : 'L', t.adjoint ? 'C' : 'N', t.unit ? 'U' : 'N', M(t), N(t),
          Op(t, 0), Lead(t.left ? M(t) : N(t)), Op(t, 1));
  }

  // n n LU in, int32 pivots (between 1 and n) in, n k B io
  static void LuSolve(CoreTask& t) {
    if (IsSmall(t)) return small::LuSolve(t.adjoint, N(t), K(t), Op(t, 0), Op<int>(t, 1), Op(t, 2));
    Getrs(t.adjoint ? 'C' : 'N', N(t), K(t), Op(t, 0), Op<int>(t, 1), Op(t, 2), &t.info);
  }

  // m n A io, tau out
  static void Qr(CoreTask& t) {
    T size = 0;
    Geqrf(M(t), N(t), Op(t, 0), Op(t, 1), &size, -1, &t.info);
    Geqrf(M(t), N(t), Op(t, 0), Op(t, 1), Work<T>(SizeIn(size)), SizeIn(size), &t.info);
  }

  // m n reflectors io, k tau in
  static void HouseholderProduct(CoreTask& t) {
    T size = 0;
    Orgqr(M(t), N(t), K(t), Op(t, 0), Op(t, 1), &size, -1, &t.info);
    Orgqr(M(t), N(t), K(t), Op(t, 0), Op(t, 1), Work<T>(SizeIn(size)), SizeIn(size), &t.info);
  }

  // reflectors in (m k if left, n k if not), k tau in, m n C io
  static void MultiplyByQ(CoreTask& t) {
    T size = 0;
    const auto run = [&](T* work, int lwork) {
      Ormqr(t.left ? 'L' : 'R', t.adjoint ? 'C' : 'N', M(t), N(t), K(t), Op(t, 0), Lead(t.left ? M(t) : N(t)),
            Op(t, 1), Op(t, 2), work, lwork, &t.info);
    };
    run(&size, -1);
    run(Work<T>(SizeIn(size)), SizeIn(size));
  }

  // n n A io (eigenvectors), real eigenvalues out
  static void Eigh(CoreTask& t) {
    T size = 0;
    R real_size = 0;
    int int_size = 0;
    const auto run = [&](T* work, int lwork, R* rwork, int lrwork, int* iwork, int liwork) {
      Heevd(t.vectors ? 'V' : 'N', t.upper ? 'U' : 'L', N(t), Op(t, 0), Op<R>(t, 1), work, lwork, rwork,
            lrwork, iwork, liwork, &t.info);
    };
    run(&size, -1, &real_size, -1, &int_size, -1);
    run(Work<T>(SizeIn(size)), SizeIn(size), Work<R, 1>(SizeIn(real_size)), SizeIn(real_size),
        Work<int, 2>(int_size), int_size);
  }

  // n n A in, complex eigenvalues out, n n complex eigenvectors out
  static void Eig(CoreTask& t) {
    const int n = N(t);
    const char job = t.vectors ? 'V' : 'N';
    T size = 0;
    if constexpr (kComplex<T>) {
      R* rwork = Work<R, 1>(2 * t.n);
      Geev(job, n, Op(t, 0), Op(t, 1), Op(t, 2), &size, -1, rwork, &t.info);
      Geev(job, n, Op(t, 0), Op(t, 1), Op(t, 2), Work<T>(SizeIn(size)), SizeIn(size), rwork, &t.info);
    } else {
      T* values = Work<T, 1>(2 * t.n);
      T* vectors = Work<T, 2>(t.vectors ? t.n * t.n : 1);
      Geev(job, n, Op(t, 0), values, vectors, &size, -1, &t.info);
      Geev(job, n, Op(t, 0), values, vectors, Work<T>(SizeIn(size)), SizeIn(size), &t.info);
      auto* w = Op<std::complex<T>>(t, 1);
      auto* v = Op<std::complex<T>>(t, 2);
      for (int j = 0; j < n; ++j) w[j] = {values[j], values[n + j]};
      // A pair of conjugate eigenvalues has real and imaginary part in two columns.
      for (int j = 0; t.vectors && j < n; ++j) {
        const bool pair = values[n + j] != 0 && j + 1 < n;
        for (int i = 0; i < n; ++i) {
          const T a = vectors[j * n + i], b = pair ? vectors[(j + 1) * n + i] : T(0);
          v[j * n + i] = {a, b};
          if (pair) v[(j + 1) * n + i] = {a, -b};
        }
        j += pair;
      }
    }
  }

  // m n A in, real S out, U out (m m if full, m k if not), Vh out (n n or k n); k = min(m, n)
  static void Svd(CoreTask& t) {
    const int64_t least = std::min(t.m, t.n), most = std::max(t.m, t.n);
    const char job = !t.vectors ? 'N' : t.full ? 'A' : 'S';
    if (least == 0) {  // LAPACK leaves what is orthogonal to nothing unwritten
      const bool made = t.vectors && t.full;
      for (int64_t i = 0; made && i < t.m; ++i) Op(t, 2)[i * t.m + i] = 1;
      for (int64_t i = 0; made && i < t.n; ++i) Op(t, 3)[i * t.n + i] = 1;
      return;
    }
    T size = 0;
    R* rwork = nullptr;
    if constexpr (kComplex<T>)
      rwork =
          Work<R, 1>(std::max(5 * least * least + 7 * least, 2 * most * least + 2 * least * least + least));
    int* iwork = Work<int, 2>(8 * least);
    const auto run = [&](T* work, int lwork) {
      Gesdd(job, M(t), N(t), Op(t, 0), Op<R>(t, 1), Op(t, 2), Op(t, 3),
            Lead(static_cast<int>(t.full ? t.n : least)), work, lwork, rwork, iwork, &t.info);
    };
    run(&size, -1);
    run(Work<T>(SizeIn(size)), SizeIn(size));
  }

  // m n A in, max(m, n) k B io, int64 rank out, real S out
  static void LeastSquares(CoreTask& t) {
    const int m = M(t), n = N(t), k = K(t), ldb = std::max({m, n, 1}), least = std::min(m, n);
    T size = 0;
    int rank = least, int_size = 1;
    const R rcond = static_cast<R>(t.rcond);
    R *singular = Op<R>(t, 3), real_size = 0;
    int* pivots = Work<int, 2>(n);
    std::fill(pivots, pivots + n, 0);
    const auto run = [&](T* work, int lwork, R* rwork, int* iwork) {
      if (t.driver == 'l')
        Gels(m, n, k, Op(t, 0), Op(t, 1), ldb, work, lwork, &t.info);
      else if (t.driver == 'y')
        Gelsy(m, n, k, Op(t, 0), Op(t, 1), ldb, pivots, rcond, &rank, work, lwork, rwork, &t.info);
      else if (t.driver == 'd')
        Gelsd(m, n, k, Op(t, 0), Op(t, 1), ldb, singular, rcond, &rank, work, lwork, rwork, iwork, &t.info);
      else
        Gelss(m, n, k, Op(t, 0), Op(t, 1), ldb, singular, rcond, &rank, work, lwork, rwork, &t.info);
    };
    run(&size, -1, &real_size, &int_size);
    const int64_t real_count = t.driver == 'd' ? SizeIn(real_size) : t.driver == 'y' ? 2 * n : 5 * least;
    run(Work<T>(SizeIn(size)), SizeIn(size), Work<R, 1>(real_count), Work<int, 3>(int_size));
    *Op<int64_t>(t, 2) = t.driver == 'l' ? least : rank;
  }

  // n n A io (lower triangle), int32 pivots out
  static void Ldl(CoreTask& t) {
    T size = 0;
    const auto run = [&](T* work, int lwork) {
      if constexpr (kComplex<T>)
        if (t.hermitian) return Hetrf(N(t), Op(t, 0), Op<int>(t, 1), work, lwork, &t.info);
      Sytrf(N(t), Op(t, 0), Op<int>(t, 1), work, lwork, &t.info);
    };
    run(&size, -1);
    run(Work<T>(SizeIn(size)), SizeIn(size));
  }

  // n n LD in, int32 pivots in, n k B io
  static void LdlSolve(CoreTask& t) {
    if constexpr (kComplex<T>)
      if (t.hermitian) return Hetrs(N(t), K(t), Op(t, 0), Op<int>(t, 1), Op(t, 2), &t.info);
    Sytrs(N(t), K(t), Op(t, 0), Op<int>(t, 1), Op(t, 2), &t.info);
  }
};

// In the order of Core.
template <class T>
constexpr void (*kCores[])(CoreTask&) = {&Cores<T>::Cholesky,
                                         &Cores<T>::Lu,
                                         &Cores<T>::Inverse,
                                         &Cores<T>::TriangularSolve,
                                         &Cores<T>::LuSolve,
                                         &Cores<T>::Qr,
                                         &Cores<T>::HouseholderProduct,
                                         &Cores<T>::MultiplyByQ,
                                         &Cores<T>::Eigh,
                                         &Cores<T>::Eig,
                                         &Cores<T>::Svd,
                                         &Cores<T>::LeastSquares,
                                         &Cores<T>::Ldl,
                                         &Cores<T>::LdlSolve};

}  // namespace

bool RunLapack(CoreTask& task) {
  const auto core = static_cast<size_t>(task.core);
  task.info = 0;
  try {
    switch (task.dtype) {
      case MICA_F32:
        kCores<float>[core](task);
        return true;
      case MICA_F64:
        kCores<double>[core](task);
        return true;
      case MICA_C64:
        kCores<std::complex<float>>[core](task);
        return true;
      case MICA_C128:
        kCores<std::complex<double>>[core](task);
        return true;
      default:
        return false;
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace mica::cpu
