// An operator over lists: one call from Python, row by row in C++. mica's `_foreach_`
// functions and the optimizers' steps are made of it.
//
// Rows on a device that takes lists go there in one launch (dispatcher/calls/list_call.h). Every other row
// goes through the dispatcher as a call of its own, so that all layers see it; all are looked at before one
// is written, see Note [Rows that would fail]. The GIL is given up once for all rows, if together they are
// large.
#include <algorithm>
#include <deque>
#include <optional>

#include "bindings/python/src/operators/arguments.h"
#include "bindings/python/src/operators/boxing.h"
#include "dispatcher/calls/adapters_return.h"
#include "dispatcher/calls/list_call.h"
#include "dispatcher/calls/placement.h"
#include "dispatcher/calls/thread_state.h"
#include "schema/default.h"

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
  // The arguments that are the same for each row, and those of one row in their places among them.
  std::vector<MicaValue> Common() const;
  void PutRow(size_t row, std::vector<MicaValue>& args) const;
  // Those that the device takes in one launch, which are then done; none elsewhere.
  std::vector<bool> CallTogether(const Operator& op, std::vector<Tensor>& results) const;
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

std::vector<MicaValue> Rows::Common() const {
  std::vector<MicaValue> args;
  for (const Value& v : values) args.push_back(v.Borrow());
  return args;
}

void Rows::PutRow(size_t row, std::vector<MicaValue>& args) const {
  for (const Use& use : uses) {
    MicaValue& v = args[use.argument];
    if (!use.column->values.empty()) {
      v = use.column->values[row].Borrow();
      continue;
    }
    v.tag = MICA_VALUE_TENSOR;
    v.u.tensor = use.column->tensors[row].impl();
  }
}

std::vector<bool> Rows::CallTogether(const Operator& op, std::vector<Tensor>& results) const {
  if (count < 2 || columns.empty() || columns.front().tensors.empty() ||
      !OnPluginDevice(columns.front().tensors[0].keys()))
    return std::vector<bool>(count, false);
  ListOfCalls calls{op, {}, count};
  std::vector<MicaValue> args = Common();
  for (size_t row = 0; row < count; ++row) {
    PutRow(row, args);
    calls.args.insert(calls.args.end(), args.begin(), args.end());
  }
  return CallList(calls, results);
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

// Whether what takes the one value takes the other: floats differ in nothing that is checked.
bool AreAlike(const MicaValue& a, const MicaValue& b) {
  if (a.tag != b.tag || a.tag == MICA_VALUE_TENSOR) return false;
  if (a.tag == MICA_VALUE_SCALAR && a.u.scalar.tag != b.u.scalar.tag) return false;
  if (a.tag == MICA_VALUE_FLOAT) return true;
  if (a.tag == MICA_VALUE_SCALAR)
    return a.u.scalar.tag == MICA_SCALAR_FLOAT || a.u.scalar.u.i == b.u.scalar.u.i;
  return a.u.i == b.u.i;
}

// Note [Rows that would fail]
// A call writes row after row, and one that fails in the middle should leave no row written. The
// first row fails, if it does, before it writes, and so would those that are like it: of its dtypes,
// devices and flags, and with equal shapes where it has equal shapes. Another row is tried without
// memory first. If that fails, or cannot tell, the row goes before all others and raises for itself.
class RowCheck {
 public:
  RowCheck(const Operator& op, const Rows& rows)
      : op_(op), rows_(rows), first_(rows.columns.front().tensors) {}

  // The rows that go before all others.
  std::vector<size_t> Failing() const {
    const ThreadState& thread = CurrentThread();
    std::vector<size_t> rows;
    if (first_.empty() || thread.frame || !thread.include.empty()) return rows;
    for (const Rows::Use& use : rows_.uses) AddUnlike(*use.column, rows);
    for (const Value& v : rows_.values) {
      if (!v.is_tensor() || !v.Borrow().u.tensor || Tensor::Ref(v.Borrow().u.tensor).ndim() == 0) continue;
      for (size_t row = 1; row < rows_.count; ++row) rows.push_back(row);
    }
    if (rows.empty()) return rows;
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    std::erase_if(rows, [&](size_t row) { return !WouldFail(row); });
    return rows;
  }

 private:
  // Adds the rows that are not like the first in a column.
  void AddUnlike(const Column& column, std::vector<size_t>& rows) const {
    for (size_t row = 1; !column.values.empty() && row < rows_.count; ++row)
      if (!AreAlike(column.values[0].Borrow(), column.values[row].Borrow())) rows.push_back(row);
    if (!column.values.empty()) return;
    const TensorImpl& a = *column.tensors[0].impl();
    const bool is_first = &column.tensors == &first_;
    const bool fits = is_first || a.ndim() == 0 || a.sizes() == first_[0].sizes();
    for (size_t row = 1; row < rows_.count; ++row) {
      const TensorImpl& b = *column.tensors[row].impl();
      const bool alike = fits && a.flags == b.flags && a.dl.device.device_id == b.dl.device.device_id &&
                         (is_first || b.ndim() == 0 || b.sizes() == first_[row].sizes());
      if (!alike || IsRecorded(column.tensors[row])) rows.push_back(row);
    }
  }

  // What a row without memory leaves out: other devices and leaves in a graph may make it fail; what
  // computes for itself cannot be tried.
  struct Unknown {
    bool may_fail = false, own = false;
  };
  Tensor Twin(const Tensor& t, Device device, Unknown& unknown) const {
    unknown.may_fail |= (t.ndim() > 0 && t.device() != device) || IsRecorded(t);
    unknown.own |= t.keys().has(keys::kNoData) || t.keys().has(keys::kPythonSubclass);
    return EmptyStrided(t.sizes(), t.strides(), t.dtype(), Device{keys::kMeta, 0});
  }
  bool WouldFail(size_t row) const {
    std::vector<MicaValue> values = rows_.Common();
    rows_.PutRow(row, values);
    std::vector<Tensor> twins;
    const Device device = first_[row].device();
    Unknown unknown;
    for (MicaValue& v : values) {
      if (v.tag != MICA_VALUE_TENSOR || !v.u.tensor) continue;
      twins.push_back(Twin(Tensor::Ref(v.u.tensor), device, unknown));
      v.u.tensor = twins.back().impl();
    }
    if (unknown.own || unknown.may_fail) return !unknown.own;
    const ExcludeGuard no_layers(keys::kAboveBackends);
    std::vector<MicaValue> results(op_.schema().returns.size() + 1);
    for (MicaValue& r : results) r.tag = MICA_VALUE_NONE;
    try {
      op_.CallBoxed(values.data(), static_cast<int64_t>(values.size()), results.data());
    } catch (const std::exception&) {
      return true;
    }
    for (size_t i = 0; i + 1 < results.size(); ++i) TakeTensor(results[i]);
    return false;
  }

  const Operator& op_;
  const Rows& rows_;
  const std::vector<Tensor>& first_;
};

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
    std::vector<MicaValue> borrowed = rows.Common(), results(outputs + 1);
    const auto call = [&](size_t row) {
      rows.PutRow(row, borrowed);
      for (MicaValue& r : results) r.tag = MICA_VALUE_NONE;
      op.CallBoxed(borrowed.data(), static_cast<int64_t>(borrowed.size()), results.data());
      for (size_t i = 0; !writes && i < outputs; ++i) found[row * outputs + i] = TakeTensor(results[i]);
    };
    std::vector<size_t> before;
    if (writes && rows.count > 1 && !rows.columns.empty()) before = RowCheck(op, rows).Failing();
    for (const size_t row : before) call(row);
    std::vector<bool> done(rows.count, false);
    if (before.empty()) done = rows.CallTogether(op, found);
    for (const size_t row : before) done[row] = true;
    for (size_t row = 0; row < rows.count; ++row)
      if (!done[row]) call(row);
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
