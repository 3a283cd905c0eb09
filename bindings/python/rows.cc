// An operator over lists: one call from Python, row by row in C++. mica's `_foreach_`
// functions and the optimizers' steps are made of it.
//
// Every row goes through the dispatcher as a call of its own, so that all layers see it.
// The GIL is given up once for all rows, if together they are large.
#include <deque>
#include <optional>

#include "mica/bindings/python/arguments.h"
#include "mica/bindings/python/boxing.h"
#include "mica/dispatcher/adapters_return.h"
#include "mica/schema/default.h"

namespace mica::python {
namespace {

// A list given for an argument that is none, which keeps its tensors alive; `values` where they
// are no plain tensors.
struct Column {
  PyObject* list;
  std::vector<Tensor> tensors;
  std::vector<Value> values;
};

// The arguments of all rows; what is no list is the same for each.
struct Rows {
  struct Use {
    size_t argument;
    const Column* column;
  };
  std::vector<Value> values;  // by argument
  std::deque<Column> columns;
  std::vector<Use> uses;
  size_t count = 0;
  Work work;
  bool intercepted = g_function_modes != 0;  // somebody wants calls of Python functions

  Rows(const schema::FunctionSchema& schema, PyObject* args, PyObject* kwargs);
  void AddColumn(const schema::FunctionSchema& schema, size_t argument, PyObject* list);
  void Fill(Column& column, const schema::Argument& a, const Items& items);
};

void Rows::Fill(Column& column, const schema::Argument& a, const Items& items) {
  const bool tensors = a.type.is(schema::TypeKind::kTensor);
  for (size_t i = 0; i < count; ++i) {
    PyObject* const o = items.data[i];
    if (tensors && column.values.empty() && IsPlainTensor(o)) {
      column.tensors.push_back(Unwrap(o));
      if (columns.size() == 1) work.Add(column.tensors.back());
      continue;
    }
    for (Tensor& t : column.tensors) column.values.emplace_back(std::move(t));
    column.tensors.clear();
    intercepted = intercepted || WantsFunctions(o);
    column.values.push_back(ToValue(o, a.type, a.name));
  }
}

void Rows::AddColumn(const schema::FunctionSchema& schema, size_t argument, PyObject* list) {
  const schema::Argument& a = schema.arguments[argument];
  const Items items = ItemsOf(list);
  if (!columns.empty() && static_cast<size_t>(items.size) != count) {
    Raise(PyExc_RuntimeError, "Length (" + std::to_string(items.size) + ") of the list for `" + a.name +
                                  "` of " + schema.FullName() + " differs from that (" +
                                  std::to_string(count) + ") of the lists before it.");
  }
  count = static_cast<size_t>(items.size);
  for (const Column& c : columns) {
    if (c.list == list && c.values.empty()) return uses.push_back({argument, &c});
  }
  Column& column = columns.emplace_back(Column{list, {}, {}});
  column.tensors.reserve(count);
  Fill(column, a, items);
  uses.push_back({argument, &column});
}

// The argument by its place, by its name, or its default.
Rows::Rows(const schema::FunctionSchema& schema, PyObject* args, PyObject* kwargs) {
  const size_t n = schema.arguments.size();
  const auto given = static_cast<size_t>(PyTuple_GET_SIZE(args));
  size_t named = 0;
  values.resize(n);
  for (size_t i = 0; i < n; ++i) {
    const schema::Argument& a = schema.arguments[i];
    PyObject* o = i < given ? PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i)) : nullptr;
    if (!o && kwargs) {
      o = PyDict_GetItemString(kwargs, a.name.c_str());
      named += o != nullptr;
    }
    if (!o) {
      if (!a.default_value)
        Raise(PyExc_TypeError, "Rows of " + schema.FullName() + " lack the argument `" + a.name + "`.");
      values[i] = schema::Default(a);
    } else if (PyList_Check(o) && !a.type.unwrapped().is(schema::TypeKind::kList)) {
      AddColumn(schema, i, o);
    } else if (o != Py_None || !a.type.is_optional()) {
      intercepted = intercepted || WantsFunctions(o);
      values[i] = ToValue(o, a.type, a.name);
    }
  }
  if (given > n || (kwargs && named != static_cast<size_t>(PyDict_GET_SIZE(kwargs))))
    Raise(PyExc_TypeError, "Rows of " + schema.FullName() + " were given arguments that its schema lacks.");
}

}  // namespace

PyObject* CallRows(const Operator& op, PyObject* args, PyObject* kwargs, bool ask) {
  const schema::FunctionSchema& schema = op.schema();
  const Rows rows(schema, args, kwargs);
  if (rows.intercepted && ask) Py_RETURN_NOTIMPLEMENTED;
  std::optional<DisableSubclasses> unasked;
  if (rows.intercepted) unasked.emplace(true);
  const size_t outputs = schema.returns.size();
  const bool writes = schema.is_mutable();
  for (const schema::Return& r : schema.returns) {
    MICA_CHECK_IMPLEMENTED(writes || r.type.is(schema::TypeKind::kTensor), "Rows of ", schema.FullName(),
                           " are not supported: one of its results is no Tensor.");
  }
  std::vector<Tensor> found(writes ? 0 : rows.count * outputs);
  Run(rows.work, [&] {
    std::vector<MicaValue> borrowed, results(outputs + 1);
    for (const Value& v : rows.values) borrowed.push_back(v.Borrow());
    for (size_t row = 0; row < rows.count; ++row) {
      for (const Rows::Use& use : rows.uses) {
        MicaValue& v = borrowed[use.argument];
        if (!use.column->values.empty()) {
          v = use.column->values[row].Borrow();
          continue;
        }
        v.tag = MICA_VALUE_TENSOR;
        v.u.tensor = use.column->tensors[row].impl();
      }
      for (MicaValue& r : results) r.tag = MICA_VALUE_NONE;
      op.CallBoxed(borrowed.data(), static_cast<int64_t>(borrowed.size()), results.data());
      for (size_t i = 0; !writes && i < outputs; ++i) found[row * outputs + i] = TakeTensor(results[i]);
    }
  });
  if (writes) return NewNone();
  Ref list = Own(PyList_New(static_cast<Py_ssize_t>(rows.count)));
  for (size_t row = 0; row < rows.count; ++row) {
    if (outputs == 1) {
      PyList_SET_ITEM(list.get(), row, Wrap(std::move(found[row])));
      continue;
    }
    Ref tuple = Own(PyTuple_New(static_cast<Py_ssize_t>(outputs)));
    for (size_t i = 0; i < outputs; ++i)
      PyTuple_SET_ITEM(tuple.get(), i, Wrap(std::move(found[row * outputs + i])));
    PyList_SET_ITEM(list.get(), row, tuple.release());
  }
  return list.release();
}

PyObject* WithGradients(PyObject*, PyObject* params) {
  return Guarded([&] {
    static PyObject* const name = Check(PyUnicode_InternFromString("grad"));
    const Ref kept = Own(PyList_New(0)), grads = Own(PyList_New(0));
    bool any_complex = false;
    const Items items = ItemsOf(params);
    for (Py_ssize_t i = 0; i < items.size; ++i) {
      const Ref p = Ref::Borrow(items.data[i]);
      const Ref grad = Own(PyObject_GetAttr(p.get(), name));
      if (grad.get() == Py_None) continue;
      any_complex = any_complex || (IsTensor(p.get()) && IsComplex(Unwrap(p.get()).dtype()));
      Check(PyList_Append(kept.get(), p.get()));
      Check(PyList_Append(grads.get(), grad.get()));
    }
    return Py_BuildValue("(OOO)", kept.get(), grads.get(), any_complex ? Py_True : Py_False);
  });
}

}  // namespace mica::python
