// Where NVIDIA's libraries may lie: the compiler, cuBLAS and cuDNN come with a toolkit, or as Python packages
// that no loader knows of. library.h opens what this lists.
#pragma once

#include <string>
#include <vector>

namespace cuda {

// The candidates for a library such as "libnvrtc.so", best first: for each major version of CUDA that the
// plugin can use (the one of the driver first), the folders of MICA_CUDA_LIBRARIES (separated by colons),
// what the loader knows, the toolkit, and Python packages beside what this process has mapped and beside
// its interpreter. `driver_version` is as the driver says it (13000), 0 where it is not known.
std::vector<std::string> LibraryCandidates(const std::string& name, int driver_version);

// The same for a file of that very name, "libcudnn.so.9": a library whose versions are its own.
std::vector<std::string> FileCandidates(const std::string& file);

}  // namespace cuda
