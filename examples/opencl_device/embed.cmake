# cmake -DOUTPUT=<file.cc> -DINPUTS=<a.cl;b.cl> -P embed.cmake: OpenCL sources as C++.
#
# Writes one raw string literal a file and EmbeddedSource(), which finds it by name.
set(text "// Generated from kernels/*.cl by embed.cmake.\n#include \"programs.h\"\n\nnamespace opencl_device {\n\n")
string(APPEND text "std::string_view EmbeddedSource(std::string_view name) {\n")
foreach(input IN LISTS INPUTS)
  cmake_path(GET input FILENAME name)
  file(READ ${input} source)
  string(APPEND text "  if (name == \"${name}\") return R\"opencl(${source})opencl\";\n")
endforeach()
string(APPEND text "  return \"\";\n}\n\n}  // namespace opencl_device\n")
file(WRITE ${OUTPUT} "${text}")
