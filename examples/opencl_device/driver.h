// The kit's driver over OpenCL: what compiles kernel texts and launches them.
#pragma once

#include <mica/kit/driver.h>

namespace opencl_device {

mica::kit::Driver& GetDriver();

}  // namespace opencl_device
