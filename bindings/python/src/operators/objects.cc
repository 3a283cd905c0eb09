// See objects.h.
//
// A Python object travels in a box, a MicaObject that holds it; who drops the box's last reference may have
// no GIL and takes it. A box is kept in a table under its Python object, so that the same object gives the
// same box: two values are then the same object where their pointers are.
#include "bindings/python/src/operators/objects.h"

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "bindings/python/src/module/init.h"
#include "schema/object.h"
#include "schema/schema.h"

namespace mica::python {
namespace {

// ---- objects of plugins

struct ObjectObject {
  PyObject_HEAD MicaObject* object;  // a reference
};
PyTypeObject ObjectType = {PyVarObject_HEAD_INIT(nullptr, 0)};

MicaObject* ObjectOf(PyObject* o) { return reinterpret_cast<ObjectObject*>(o)->object; }

// Those that Python holds now.
std::unordered_map<MicaObject*, PyObject*>& Wrappers() {
  static auto* const wrappers = new std::unordered_map<MicaObject*, PyObject*>();
  return *wrappers;
}

void ObjectDealloc(PyObject* o) {
  MicaObject* const object = ObjectOf(o);
  Wrappers().erase(object);
  Py_TYPE(o)->tp_free(o);
  ReleaseObject(object);
}
PyObject* ObjectRepr(PyObject* o) {
  return PyUnicode_FromFormat("<%s object at %p>", ObjectOf(o)->type->name, ObjectOf(o));
}
PyObject* ObjectReduce(PyObject* o, PyObject*) {
  return Guarded([&]() -> PyObject* {
    Raise(PyExc_TypeError, std::string("An object of the type (") + ObjectOf(o)->type->name +
                               ") can be neither pickled nor copied: only the plugin that made it knows what "
                               "it holds.");
  });
}

PyMethodDef kObjectMethods[] = {{"__reduce__", ObjectReduce, METH_NOARGS, nullptr},
                                {"__reduce_ex__", ObjectReduce, METH_O, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyGetSetDef kObjectAttributes[] = {
    {"type_name", [](PyObject* o, void*) { return NewStr(ObjectOf(o)->type->name); }, nullptr,
     "The name by which schemas take it.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- objects of Python

struct Box : MicaObject {
  PyObject* object;  // a reference
};
void DestroyBox(MicaObject* o);

// A class that schemas know by a name. Never freed: boxes and programs point to it.
struct Registered {
  explicit Registered(std::string n) : name(std::move(n)), type{sizeof(type), name.c_str(), &DestroyBox} {}
  const std::string name;
  const MicaObjectType type;
  PyObject* python_class = nullptr;  // a reference
};
std::vector<std::unique_ptr<Registered>>& Classes() {
  static auto* const classes = new std::vector<std::unique_ptr<Registered>>();
  return *classes;
}
Registered* FindRegistered(std::string_view name) {
  for (const std::unique_ptr<Registered>& r : Classes())
    if (r->name == name) return r.get();
  return nullptr;
}
// May run code (__instancecheck__) that registers classes, or this one anew.
bool IsOf(PyObject* o, const Registered& r) {
  const Ref python_class(Py_NewRef(r.python_class));
  const int is = PyObject_IsInstance(o, python_class.get());
  Check(is);
  return is != 0;
}

using BoxKey = std::pair<PyObject*, const MicaObjectType*>;
std::map<BoxKey, Box*>& Boxes() {
  static auto* const boxes = new std::map<BoxKey, Box*>();
  return *boxes;
}

bool IsBox(const MicaObject* o) { return o->type->destroy == &DestroyBox; }

// On any thread. At the end of Python a thread that asks for the GIL stays there, and after it the box stays.
void DestroyBox(MicaObject* o) {
  if (!Py_IsInitialized()) return;
  const GilAcquire gil;
  Box* const box = static_cast<Box*>(o);
  const auto found = Boxes().find({box->object, box->type});
  if (found != Boxes().end() && found->second == box) Boxes().erase(found);
  PyObject* const object = box->object;
  delete box;
  Py_DECREF(object);  // last: it may run code
}

Value Boxed(PyObject* o, const Registered& r) {
  Box*& known = Boxes()[{o, &r.type}];
  // Another thread may have dropped the last reference and be on its way to destroy the box.
  if (!known || !RetainLiveObject(known)) known = new Box{{1, &r.type}, Py_NewRef(o)};
  Box* const box = known;
  Value value(static_cast<MicaObject*>(box));
  ReleaseObject(box);
  return value;
}

// Whether `python_class` is `old` written anew, as a cell of a notebook that runs again does.
bool IsSameClass(PyObject* python_class, PyObject* old) {
  if (python_class == old) return true;
  for (const char* attribute : {"__module__", "__qualname__"}) {
    const Ref a = Own(PyObject_GetAttrString(python_class, attribute));
    const Ref b = Own(PyObject_GetAttrString(old, attribute));
    const int same = PyObject_RichCompareBool(a.get(), b.get(), Py_EQ);
    Check(same);
    if (!same) return false;
  }
  return true;
}

bool IsObjectName(std::string_view text) {
  const absl::StatusOr<schema::Type> type = schema::ParseType(text);
  return type.ok() && type->is(schema::TypeKind::kClass) && type->object_name() == text && !type->alias;
}

// _register_object_type(name, class)
PyObject* Register(PyObject*, PyObject* args) {
  return Guarded([&] {
    PyObject *name, *python_class;
    if (!PyArg_ParseTuple(args, "OO:register_object_type", &name, &python_class)) throw PythonErrorIsSet();
    if (!PyUnicode_Check(name) || !PyType_Check(python_class))
      Raise(PyExc_TypeError, std::string("register_object_type() takes the name of a type and a class; it "
                                         "was given values of the types (") +
                                 TypeName(name) + ") and (" + TypeName(python_class) + ").");
    const std::string text(StrView(name));
    if (!IsObjectName(text))
      Raise(PyExc_ValueError, "The name (" + text +
                                  ") of a type of objects is not made of two or more names with dots between "
                                  "them, as in acme.Group.");
    Registered* known = FindRegistered(text);
    if (known && !IsSameClass(python_class, known->python_class)) {
      const Ref shown = Own(PyObject_Repr(known->python_class));
      Raise(PyExc_RuntimeError, "The type of objects (" + text + ") is registered already, for " +
                                    std::string(StrView(shown.get())) + "; give this class another name.");
    }
    if (!known) known = Classes().emplace_back(std::make_unique<Registered>(text)).get();
    Py_XSETREF(known->python_class, Py_NewRef(python_class));
    return NewNone();
  });
}

// _object_type_name(class) -> the name by which schemas take its objects, or None
PyObject* NameOfClass(PyObject*, PyObject* python_class) {
  return Guarded([&] {
    for (const std::unique_ptr<Registered>& r : Classes())
      if (r->python_class == python_class) return NewStr(r->name);
    return NewNone();
  });
}

PyMethodDef kFunctions[] = {{"_register_object_type", Register, METH_VARARGS, nullptr},
                            {"_object_type_name", NameOfClass, METH_O, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace

Value ToObjectValue(PyObject* o, const schema::Type& type) {
  if (Py_IS_TYPE(o, &ObjectType)) return Value(ObjectOf(o));
  const Registered* const expected = FindRegistered(type.object_name());
  if (expected && IsOf(o, *expected)) return Boxed(o, *expected);
  for (size_t i = 0; i < Classes().size(); ++i) {  // by index: IsOf may make it longer
    const Registered& r = *Classes()[i];
    if (IsOf(o, r)) return Boxed(o, r);
  }
  return Value();
}

PyObject* FromObject(MicaObject* object) {
  if (IsBox(object)) return Py_NewRef(static_cast<Box*>(object)->object);
  PyObject*& known = Wrappers()[object];
  if (known) return Py_NewRef(known);
  PyObject* const made = ObjectType.tp_alloc(&ObjectType, 0);
  if (!made) {
    Wrappers().erase(object);
    throw PythonErrorIsSet();
  }
  RetainObject(object);
  reinterpret_cast<ObjectObject*>(made)->object = object;
  return known = made;
}

void InitObjects(PyObject* module) {
  ObjectType.tp_name = "mica.library.Object";
  ObjectType.tp_doc =
      "An object of a type that a plugin knows, as operators give and take it.\n\nIt shows nothing but the "
      "name "
      "of its type; while Python holds it, the same object is the same Python object. It can be neither "
      "pickled "
      "nor copied.";
  ObjectType.tp_basicsize = sizeof(ObjectObject);
  ObjectType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  ObjectType.tp_dealloc = ObjectDealloc;
  ObjectType.tp_repr = ObjectRepr;
  ObjectType.tp_methods = kObjectMethods;
  ObjectType.tp_getset = kObjectAttributes;
  Check(PyType_Ready(&ObjectType));
  Check(PyModule_AddObjectRef(module, "Object", reinterpret_cast<PyObject*>(&ObjectType)));
  Check(PyModule_AddFunctions(module, kFunctions));
}

}  // namespace mica::python
