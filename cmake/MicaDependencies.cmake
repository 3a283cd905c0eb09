# Every dependency, found as a package and checked for its version.
#
# Debian gives Abseil, yaml-cpp, Highway, SLEEF and Catch2; pip gives oneDNN and
# OpenBLAS. The pip packages are looked for in the environment of the Python
# interpreter that runs the build (Python_EXECUTABLE), wherever pip put them:
# cmake/python_paths.py asks it.
find_package(Threads REQUIRED)
find_package(absl 20220623 REQUIRED)
# The parts of Abseil that appear in public headers.
set(MICA_ABSEIL absl::inlined_vector absl::flat_hash_map absl::status absl::statusor absl::strings
  absl::str_format absl::synchronization absl::span absl::function_ref)
find_package(yaml-cpp 0.7 REQUIRED)
if(NOT TARGET yaml-cpp::yaml-cpp)  # the spelling of 0.8
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()
if(MICA_PLUGINS)
  find_package(hwy 1.0.3 REQUIRED)
  find_package(SLEEF 3.5 REQUIRED)
  find_package(OpenMP REQUIRED COMPONENTS CXX)
endif()

set(python_components Interpreter)
if(MICA_PYTHON)
  list(APPEND python_components Development.Module)
endif()
find_package(Python 3.10 REQUIRED COMPONENTS ${python_components})
execute_process(
  COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/python_paths.py
  OUTPUT_VARIABLE python_paths OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
list(APPEND CMAKE_PREFIX_PATH ${python_paths})

if(MICA_PLUGINS)
  find_package(dnnl 3.2 REQUIRED)
  find_package(OpenBLAS 0.3.34 REQUIRED)
endif()
if(MICA_TESTS)
  find_package(Catch2 2.13 REQUIRED)
endif()
