# mica_module(<path> USES <target>... [GENERATED <file>...] [EXCEPT <file>...])
#
# The target of one module: a folder of the root.
#
# The target mica_<name> is an object library of the folder's *.cc (at any depth).
# Who may include whom is checked, not built: scripts/lint.py reads the sources,
# scripts/layering.py what the compiler read, generated code included.

# The C++ sources of a folder, at any depth.
function(mica_sources path out_sources)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${path}/*.cc)
  set(${out_sources} ${sources} PARENT_SCOPE)
endfunction()

function(mica_module path)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "USES;GENERATED;EXCEPT")
  string(REPLACE "/" "_" name ${path})
  mica_sources(${path} sources)
  foreach(file IN LISTS arg_EXCEPT)
    list(REMOVE_ITEM sources ${PROJECT_SOURCE_DIR}/${path}/${file})
  endforeach()
  add_library(mica_${name} OBJECT ${sources} ${arg_GENERATED})
  # Objects are linked once, by whoever makes the library or program.
  target_link_libraries(mica_${name} PUBLIC ${arg_USES})
  if(arg_GENERATED)
    add_dependencies(mica_${name} mica_generated)
  endif()
endfunction()

# libmica: the four modules that every program shares.
function(mica_add_library)
  set(modules tensor schema dispatcher kernels)
  add_library(mica SHARED)
  if(NOT MICA_WHEEL)  # a wheel holds no links, so there the library has one name
    set_target_properties(mica PROPERTIES
      VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  endif()
  foreach(module IN LISTS modules)
    target_link_libraries(mica PRIVATE mica_${module})
  endforeach()
  target_include_directories(mica INTERFACE ${MICA_GENERATED_DIR})
  target_compile_features(mica INTERFACE cxx_std_20)
  target_link_libraries(mica PUBLIC Mica::sdk ${MICA_ABSEIL})
  # Its calls of its own functions go to them, and not through the table that an interposer could change.
  target_link_options(mica PRIVATE -Wl,-Bsymbolic-functions)
endfunction()

# What a layer, the binding and the tests link: libmica, with the generated
# headers in place before the first of their files is compiled.
function(mica_use_library target)
  target_link_libraries(${target} PRIVATE mica)
  add_dependencies(${target} mica_generated)
endfunction()

# mica_add_layer(<path> [GENERATED <file>...]): a plugin of keys/, C++ against
# libmica of the same build. Type information and exceptions pass through it.
function(mica_add_layer path)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "GENERATED")
  cmake_path(GET path FILENAME name)
  mica_sources(${path} sources)
  add_library(mica_${name} MODULE ${sources} ${arg_GENERATED})
  mica_use_library(mica_${name})
  mica_precompile_core(mica_${name})
  if(NOT MICA_SANITIZE)  # whose runtime is the program's
    target_link_options(mica_${name} PRIVATE -Wl,-z,defs)
  endif()
  set_target_properties(mica_${name} PROPERTIES
    PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${MICA_PLUGIN_DIR} INSTALL_RPATH "$ORIGIN/../..")
  mica_describe_plugin(${name} ${MICA_PLUGIN_DIR})
  set_property(GLOBAL APPEND PROPERTY MICA_PLUGINS mica_${name})
endfunction()

# mica_add_sdk_layer(<path>): a plugin of keys/ that is one as a third party's is. It sees the SDK alone
# (scripts/lint.py, CORE_LAYERS says which may see more) and links nothing of Mica.
function(mica_add_sdk_layer path)
  cmake_path(GET path FILENAME name)
  mica_sources(${path} sources)
  mica_add_plugin(${name} SOURCES ${sources})
  target_include_directories(mica_${name} PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()

# Removes what an earlier configuration built and this one does not: it would be found, loaded and installed.
function(mica_remove_stale_plugins)
  get_property(plugins GLOBAL PROPERTY MICA_PLUGINS)
  file(GLOB descriptions ${MICA_PLUGIN_DIR}/*.json)
  foreach(description IN LISTS descriptions)
    cmake_path(GET description STEM name)
    if(NOT mica_${name} IN_LIST plugins)
      file(REMOVE ${description} ${MICA_PLUGIN_DIR}/mica_${name}.so)
    endif()
  endforeach()
endfunction()
