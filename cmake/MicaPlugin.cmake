# mica_add_plugin(<name> SOURCES <file>... [LIBRARIES <target>...]): a plugin.
#
# Builds <plugin folder>/mica_<name>.so and its description <name>.json. Used by
# this repository's own plugins and installed with the SDK for vendors. A plugin
# sees Mica::sdk alone, exports its two entry symbols and nothing else, and links
# nothing of Mica: everything comes through the host table (rule 13 of the ABI).
# MICA_PLUGIN_DIR says where it goes (by default the current build folder).
set(MICA_PLUGIN_MAP ${CMAKE_CURRENT_LIST_DIR}/plugin.map)
set(MICA_DESCRIBE_PLUGIN ${CMAKE_CURRENT_LIST_DIR}/DescribePlugin.cmake)

function(mica_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  set(target mica_${name})
  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE Mica::sdk ${arg_LIBRARIES})
  mica_plugin_flags(${target})
  if(MICA_PLUGIN_DIR)
    set(folder ${MICA_PLUGIN_DIR})
  else()
    set(folder ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  set_target_properties(${target} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${folder})
  mica_describe_plugin(${name} ${folder})
  set_property(GLOBAL APPEND PROPERTY MICA_PLUGINS ${target})
endfunction()

# The link flags that the ABI asks for: hidden visibility, two exports, every
# symbol bound when the plugin is opened.
function(mica_plugin_flags target)
  set_target_properties(${target} PROPERTIES
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-gnu-unique>)
  endif()
  target_link_options(${target} PRIVATE
    -Wl,--version-script=${MICA_PLUGIN_MAP} -Wl,--exclude-libs,ALL -Wl,-z,now)
  # A sanitizer's run time is found in the program, so -z defs cannot hold there.
  if(NOT MICA_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${MICA_PLUGIN_MAP})
endfunction()

# Writes <folder>/<name>.json when the plugin is linked: the manifest of its ELF note
# and its path. The loader reads these and opens nothing before it is needed.
function(mica_describe_plugin name folder)
  add_custom_command(TARGET mica_${name} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -DPLUGIN=$<TARGET_FILE:mica_${name}> -DDESCRIPTION=${folder}/${name}.json
      -P ${MICA_DESCRIBE_PLUGIN}
    VERBATIM)
endfunction()
