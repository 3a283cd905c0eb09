// The CUDA driver as this process has it: its functions, its devices, and which is current on a thread.
//
// Everything of plugins/cuda that calls the driver goes through here. Devices are numbered as the driver
// numbers them (CUDA_VISIBLE_DEVICES hides some), and each is used through its primary context, which
// PyTorch and the CUDA runtime share. Nothing of this is ever undone: memory and streams may outlive
// static objects, and the driver cleans up after a process itself.
#pragma once

#include <string>

#include "plugins/cuda/api.h"

namespace cuda {

// How many devices there are, 0 where there is no driver. Throws in a child of fork, as all that throws does.
int DeviceCount();

// Why DeviceCount() is 0, as a sentence; empty where there are devices. Throws nothing.
const std::string& DriverMissing();

// What the driver supports, 13000 for CUDA 13.0; 0 without a driver. Throws nothing.
int DriverVersion();

// The driver's functions. Throws where DeviceCount() is 0.
const DriverApi& Api();

// The driver's name of a device. Throws where there is none of that number.
CUdevice DeviceHandle(int device);

// Makes the primary context of `device` current on this thread, unless it is: others in the process change
// it too, so every function asks the driver, which takes some 20 ns.
void Use(int device);

// As Use, but says "no" where the driver is shut down or this process is a child of fork: what destroys
// something has nothing to do then.
bool UseUnlessShutDown(int device);

// The context of a device, made if need be.
CUcontext ContextOf(int device);

// This thread's device in Mica's sense, first 0. Exchanging it makes the device's context current if the
// device was used before; if not, the first use does: a context costs hundreds of megabytes.
int CurrentDevice();
int ExchangeCurrentDevice(int device);

// Throws what a result other than success means: MICA_ERROR_OUT_OF_MEMORY, or MICA_ERROR_RUNTIME. The
// sentence names the function as cuda.h does, and ends with `more` (a sentence of its own) if there is one.
[[noreturn]] void Throw(CUresult result, const char* function, int device, const std::string& more = "");

inline void Check(CUresult result, const char* function, int device) {
  if (__builtin_expect(result != CUDA_SUCCESS, 0)) Throw(result, function, device);
}

// While it lives, this thread makes calls that the driver forbids while any thread records a stream,
// such as those that allocate: what they do is no part of a recording. Costs nothing while nobody records.
class OutsideOfRecordings {
 public:
  OutsideOfRecordings();
  ~OutsideOfRecordings();
  OutsideOfRecordings(const OutsideOfRecordings&) = delete;

 private:
  bool exchanged_ = false;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // then: the thread's own
};
// How many recordings there are, for it.
void CountRecordings(int more);

}  // namespace cuda
