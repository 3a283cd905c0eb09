// The small immutable Python objects that describe tensors: mica.dtype,
// mica.device, mica.layout, mica.memory_format, mica.Size, mica.Generator.
//
// Dtypes, layouts and memory formats are singletons, compared by identity. The
// From* functions return owned references; the As* functions need an object that
// the Is* function accepts.
#pragma once

#include "bindings/python/src/module/object.h"
#include "tensor/tensor.h"

namespace mica {
class Generator;
}

namespace mica::python {

extern PyTypeObject DTypeType, DeviceType, LayoutType, MemoryFormatType, SizeType, GeneratorType;

PyObject* FromDType(DType d);
PyObject* FromDevice(Device d);
PyObject* FromLayout(Layout layout);
PyObject* FromMemoryFormat(MemoryFormat f);
PyObject* FromSizes(IntSpan sizes);     // mica.Size
PyObject* FromInts(IntSpan ints);       // tuple
PyObject* FromGenerator(Generator* g);  // the caller keeps its own reference

inline bool IsDType(PyObject* o) { return Py_TYPE(o) == &DTypeType; }
inline bool IsDevice(PyObject* o) { return Py_TYPE(o) == &DeviceType; }
inline bool IsLayout(PyObject* o) { return Py_TYPE(o) == &LayoutType; }
inline bool IsMemoryFormat(PyObject* o) { return Py_TYPE(o) == &MemoryFormatType; }
inline bool IsGenerator(PyObject* o) { return Py_TYPE(o) == &GeneratorType; }
DType AsDType(PyObject* o);
Device AsDevice(PyObject* o);
MemoryFormat AsMemoryFormat(PyObject* o);
Generator* AsGenerator(PyObject* o);

// The default device of this thread's factories: a mica.device, which follows the current device of its
// backend where it has no number.
void MakeDefault(PyObject* device);
// The device that its backend's name alone means on this thread.
void MakeCurrent(Device device);

void InitMetadataObjects(PyObject* module);
void InitGenerator(PyObject* module);

}  // namespace mica::python
