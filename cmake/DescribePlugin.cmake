# cmake -DPLUGIN=<x.so> -DDESCRIPTION=<x.json> -P DescribePlugin.cmake
#
# Copies the manifest that stands as JSON in the plugin's ELF note into its
# description, with the plugin's file name as one more member. The loader refuses a
# plugin whose description copies another manifest than the plugin carries.
file(STRINGS ${PLUGIN} manifest REGEX "^{\"name\":\".*\"abi_major\":.*}" LIMIT_COUNT 1)
if(NOT manifest)
  message(FATAL_ERROR "The plugin (${PLUGIN}) carries no manifest; MICA_PLUGIN makes it.")
endif()
string(REGEX MATCH "^{[^}]*}" manifest "${manifest}")
cmake_path(GET PLUGIN FILENAME file)
string(REGEX REPLACE "^{" "{\"path\":\"${file}\"," manifest "${manifest}")
file(WRITE ${DESCRIPTION} "${manifest}\n")
