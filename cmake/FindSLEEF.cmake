# Finds SLEEF, the vectorised maths functions, as SLEEF::SLEEF.
#
# Debian's package has no CMake config; the version stands in sleef.h.
find_path(SLEEF_INCLUDE_DIR sleef.h)
find_library(SLEEF_LIBRARY sleef)
if(SLEEF_INCLUDE_DIR)
  file(STRINGS ${SLEEF_INCLUDE_DIR}/sleef.h sleef_lines REGEX "define SLEEF_VERSION_(MAJOR|MINOR|PATCHLEVEL)")
  string(REGEX MATCHALL "[0-9]+" sleef_numbers "${sleef_lines}")
  string(JOIN "." SLEEF_VERSION ${sleef_numbers})
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SLEEF REQUIRED_VARS SLEEF_LIBRARY SLEEF_INCLUDE_DIR VERSION_VAR SLEEF_VERSION)
if(SLEEF_FOUND AND NOT TARGET SLEEF::SLEEF)
  add_library(SLEEF::SLEEF UNKNOWN IMPORTED)
  set_target_properties(SLEEF::SLEEF PROPERTIES
    IMPORTED_LOCATION ${SLEEF_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${SLEEF_INCLUDE_DIR})
endif()
