// Holds oneDNN to a number of threads for one call: it asks OpenMP for the most.
#ifndef MICA_PLUGINS_CPU_LIBRARIES_DNNL_THREADS_H_
#define MICA_PLUGINS_CPU_LIBRARIES_DNNL_THREADS_H_

#include <omp.h>

#include <cstdint>

namespace mica::cpu {

class DnnlThreads {
 public:
  explicit DnnlThreads(int32_t threads) : before_(omp_get_max_threads()) {
    if (before_ != threads) omp_set_num_threads(threads);
    changed_ = before_ != threads;
  }
  ~DnnlThreads() {
    if (changed_) omp_set_num_threads(before_);
  }
  DnnlThreads(const DnnlThreads&) = delete;
  DnnlThreads& operator=(const DnnlThreads&) = delete;

 private:
  int before_;
  bool changed_;
};

}  // namespace mica::cpu

#endif  // MICA_PLUGINS_CPU_LIBRARIES_DNNL_THREADS_H_
