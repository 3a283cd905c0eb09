# Settings that hold for every target: language levels, warnings, sanitizers,
# linker, and where built files go.
#
# The build folder is laid out as an installation is: lib/libmica.so beside
# lib/mica/plugins/, bin/ for programs, python/mica/ for the package.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# -O2 without -g: debug information doubles the time of the link and of ccache.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")
if(MICA_SANITIZE)  # readable stacks at a tolerable speed
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
endif()

set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(MICA_PLUGIN_DIR ${PROJECT_BINARY_DIR}/lib/mica/plugins)

# -fPIC for programs too, so that they can use the libraries' precompiled headers.
# Not warned of: fields that an initializer leaves out, which C++ defines as zero, and
# two of GCC 12's guesses that are wrong about absl::InlinedVector and spans of lists.
add_compile_options(-fPIC -Wall -Wextra -Wno-missing-field-initializers
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-init-list-lifetime> $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  -fno-semantic-interposition -ffp-contract=off)

# The path of an include in quotes is the file's path from the root; generated headers are
# "mica/...", those of the SDK <mica/...>.
add_compile_options("SHELL:-iquote ${PROJECT_SOURCE_DIR}")

if(MICA_SANITIZE)
  add_compile_definitions(MICA_SHUFFLE)  # tensor/private_struct.h
  add_compile_options(-fsanitize=${MICA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MICA_SANITIZE})
endif()

find_program(MICA_CCACHE ccache)
if(MICA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(launcher ${CMAKE_CURRENT_LIST_DIR}/ccache.sh ${MICA_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()
find_program(MICA_MOLD mold)
if(MICA_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
