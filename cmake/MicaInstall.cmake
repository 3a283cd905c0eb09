# The install tree: the SDK, libmica with its plugins, and in a wheel the extension
# module too.
#
# `cmake --install` gives include/ (the SDK's headers alone), lib/, bin/, share/ and
# lib/cmake/Mica, with Mica::sdk exported; it has no Python package, which pip installs. A
# wheel (MICA_WHEEL, set by pyproject.toml) has the same below mica/, whose path
# `mica sdk` prints, and mica/_C.
include(CMakePackageConfigHelpers)

get_property(plugins GLOBAL PROPERTY MICA_PLUGINS)
set(libdir ${CMAKE_INSTALL_LIBDIR})
if(MICA_WHEEL)
  set(libdir lib)
endif()

install(TARGETS mica LIBRARY DESTINATION ${libdir})
install(TARGETS mica_sdk EXPORT MicaTargets)
install(TARGETS ${plugins} LIBRARY DESTINATION ${libdir}/mica/plugins)
install(DIRECTORY ${MICA_PLUGIN_DIR}/ DESTINATION ${libdir}/mica/plugins FILES_MATCHING PATTERN "*.json")

if(MICA_WHEEL)
  install(TARGETS _C LIBRARY DESTINATION .)
  install(DIRECTORY ${MICA_GENERATED_DIR}/mica/stubs/ DESTINATION . FILES_MATCHING PATTERN "*.pyi")
  # GCC's OpenMP runtime, under its own name, so that a process whose other packages bring
  # one has one: two would start threads each. cmake/wheel_backend.py brings the other libraries.
  if(OpenMP_gomp_LIBRARY)
    file(REAL_PATH ${OpenMP_gomp_LIBRARY} gomp)
    install(FILES ${gomp} DESTINATION ${libdir} RENAME libgomp.so.1)
  endif()
  # The notices of what the wheel brings along.
  foreach(package libabsl-dev libhwy-dev libsleef-dev libyaml-cpp-dev libgomp1)
    install(FILES /usr/share/doc/${package}/copyright DESTINATION licenses RENAME ${package}.txt OPTIONAL)
  endforeach()
endif()

if(NOT MICA_GENERATOR)
  install(TARGETS mica-gen DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
# What `mica-gen --base` of a vendor reads.
install(FILES ${PROJECT_SOURCE_DIR}/native_functions.yaml ${PROJECT_SOURCE_DIR}/derivatives.yaml
  DESTINATION ${CMAKE_INSTALL_DATADIR}/mica)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/operators DESTINATION ${CMAKE_INSTALL_DATADIR}/mica)
install(DIRECTORY sdk/include/ ${PROJECT_BINARY_DIR}/sdk/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(config_dir ${libdir}/cmake/Mica)
install(EXPORT MicaTargets NAMESPACE Mica:: DESTINATION ${config_dir})
configure_package_config_file(cmake/MicaConfig.cmake.in ${PROJECT_BINARY_DIR}/MicaConfig.cmake
  INSTALL_DESTINATION ${config_dir} PATH_VARS CMAKE_INSTALL_BINDIR CMAKE_INSTALL_DATADIR NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/MicaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/MicaConfig.cmake ${PROJECT_BINARY_DIR}/MicaConfigVersion.cmake
  cmake/MicaPlugin.cmake cmake/DescribePlugin.cmake cmake/plugin.map
  DESTINATION ${config_dir})
