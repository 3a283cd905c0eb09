# The generated sources: one run of mica-gen over the YAML files.
#
# mica-gen rewrites only the files whose text changes, and ninja looks at their
# times again after the run (restat), so one touched entry recompiles only its
# shards. Shards have fixed names. Headers are many and named after operators:
# mica-gen lists them in headers.txt, from which ninja learns that they are outputs
# and notices a changed one in the same build. A longer list configures anew.
set(MICA_GENERATED_DIR ${PROJECT_BINARY_DIR}/generated)
set(out ${MICA_GENERATED_DIR}/mica)

# mica_shards(<variable> <name> <count>): <name>_0.cc and so on.
function(mica_shards variable name count)
  math(EXPR last "${count} - 1")
  set(files)
  foreach(i RANGE ${last})
    list(APPEND files ${MICA_GENERATED_DIR}/mica/${name}_${i}.cc)
  endforeach()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()
mica_shards(registry registry 4)
mica_shards(adapters adapters 4)
mica_shards(calls calls 4)
mica_shards(composites composites 4)
mica_shards(autograd autograd 4)
mica_shards(forward forward 4)
mica_shards(MICA_GENERATED_PYTHON python 4)
# How generated code that only calls other code is compiled. What each call passes through: -O1, as -O2 takes twice the
# time for as many instructions. The rest, which calls operators in its turn: -Og, a fifth less time than -O1.
set(MICA_PASSING_CODE $<$<NOT:$<CONFIG:Debug>>:-O1>)
set(MICA_CALLING_CODE $<$<NOT:$<CONFIG:Debug>>:-Og>)
set(MICA_GENERATED_PASSING ${adapters})
set(MICA_GENERATED_CALLING ${registry} ${composites})
set(MICA_GENERATED_AUTOGRAD ${autograd} ${forward})
set(MICA_GENERATED_KERNELS ${MICA_GENERATED_PASSING} ${MICA_GENERATED_CALLING} ${calls})

# Other files than the tree's: the guide "add an operator" builds from longer copies.
set(MICA_NATIVE_YAML native_functions.yaml CACHE STRING "The operators, from the source folder")
set(MICA_DERIVATIVES_YAML derivatives.yaml CACHE STRING "The gradient formulas, from the source folder")
get_filename_component(native ${MICA_NATIVE_YAML} ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
get_filename_component(derivatives ${MICA_DERIVATIVES_YAML} ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
# What it includes lies beside it.
cmake_path(GET native PARENT_PATH folder)
file(GLOB MICA_OPERATOR_FILES CONFIGURE_DEPENDS ${folder}/operators/*.yaml)
list(PREPEND MICA_OPERATOR_FILES ${native})
set(yaml ${MICA_OPERATOR_FILES} ${derivatives})
set(headers)
if(NOT EXISTS ${out}/headers.txt)
  file(WRITE ${out}/headers.txt "")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${out}/headers.txt)
file(STRINGS ${out}/headers.txt headers)
list(TRANSFORM headers PREPEND ${out}/)
set(generator_environment)
if(MICA_SANITIZE)  # a generator that ends need not free what it read
  set(generator_environment ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0)
endif()
add_custom_command(
  OUTPUT ${MICA_GENERATED_KERNELS} ${MICA_GENERATED_AUTOGRAD} ${MICA_GENERATED_PYTHON}
  BYPRODUCTS ${headers}
  COMMAND ${generator_environment} $<TARGET_FILE:mica-gen>
    --native ${MICA_NATIVE_YAML} --derivatives ${MICA_DERIVATIVES_YAML} --out ${out}
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
  DEPENDS mica-gen ${yaml}
  COMMENT "Generating operators"
  VERBATIM)
# Looked at in every build; written where it changed.
add_custom_target(mica_fingerprint
  COMMAND ${CMAKE_COMMAND}
    "-DFOLDERS=${PROJECT_SOURCE_DIR}/sdk/include\;${PROJECT_SOURCE_DIR}/tensor\;${PROJECT_SOURCE_DIR}/schema\;${PROJECT_SOURCE_DIR}/dispatcher"
    "-DFLAGS=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_CXX_FLAGS} ${CMAKE_BUILD_TYPE} ${MICA_SANITIZE}"
    -DOUT=${out}/fingerprint.h -P ${PROJECT_SOURCE_DIR}/cmake/Fingerprint.cmake
  BYPRODUCTS ${out}/fingerprint.h
  VERBATIM)
add_custom_target(mica_generated
  DEPENDS ${MICA_GENERATED_KERNELS} ${MICA_GENERATED_AUTOGRAD} ${MICA_GENERATED_PYTHON})
add_dependencies(mica_generated mica_fingerprint)

# A plugin in plugins/<name> with operators of its own: mica-gen makes their definitions of its operators.yaml and
# derivatives.yaml, as it does for a vendor.
function(mica_add_operator_plugin name)
  mica_sources(plugins/${name} sources)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated/plugin)
  add_custom_command(
    OUTPUT ${generated}/operators.cc ${generated}/operators.h
    COMMAND mica-gen --base ${PROJECT_SOURCE_DIR}/native_functions.yaml --native operators.yaml
      --derivatives derivatives.yaml --out ${CMAKE_CURRENT_BINARY_DIR}/generated
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    DEPENDS mica-gen ${MICA_OPERATOR_FILES} ${CMAKE_CURRENT_SOURCE_DIR}/operators.yaml
      ${CMAKE_CURRENT_SOURCE_DIR}/derivatives.yaml
    COMMENT "Generating the operators of ${name}"
    VERBATIM)
  mica_add_plugin(${name} SOURCES ${sources} ${generated}/operators.cc)
  target_include_directories(mica_${name} PRIVATE ${generated})
  # GCC warns of the order in which a braced list is filled, which the language fixes.
  set_source_files_properties(${generated}/operators.cc PROPERTIES COMPILE_OPTIONS -Wno-sequence-point)
endfunction()
