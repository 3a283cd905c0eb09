// Visitors over what a node saved.
#include "keys/autograd/inspect.h"

#include "keys/autograd/saved_values.h"

namespace mica::autograd {
namespace {

class Names final : public SavedVisitor {
 public:
  void VisitTensor(const char* name, SavedTensor&) override { names.push_back(name); }
  void VisitTensors(const char* name, SavedTensors&) override { names.push_back(name); }
  void VisitValue(const char* name, Value) override { names.push_back(name); }
  std::vector<const char*> names;
};

// What has one name; `found` stays false where nothing has.
class One final : public SavedVisitor {
 public:
  explicit One(std::string_view name) : name_(name) {}
  void VisitTensor(const char* name, SavedTensor& t) override {
    if (name_ == name) found = true, tensor = &t;
  }
  void VisitTensors(const char* name, SavedTensors& list) override {
    if (name_ == name) found = true, tensors = &list;
  }
  void VisitValue(const char* name, Value v) override {
    if (name_ == name) found = true, value = std::move(v);
  }
  bool found = false;
  SavedTensor* tensor = nullptr;
  SavedTensors* tensors = nullptr;
  Value value;

 private:
  const std::string_view name_;
};

One Find(Node& node, std::string_view name) {
  One one(name);
  node.VisitSaved(one);
  MICA_CHECK(one.found, "'", node.name(), "' object has no attribute '", std::string(name),
             "': it saves nothing of that name.");
  return one;
}

}  // namespace

std::vector<const char*> SavedNamesOf(Node& node) {
  Names names;
  node.VisitSaved(names);
  return names.names;
}

bool HasSaved(Node& node, std::string_view name) {
  One one(name);
  node.VisitSaved(one);
  return one.found;
}

Value SavedOf(Node& node, std::string_view name) {
  One one = Find(node, name);
  if (one.tensor) return one.tensor->Unpack(&node);
  if (one.tensors) return one.tensors->Unpack(&node);
  return std::move(one.value);
}

void HookSaved(Node& node, std::string_view name, int64_t index, std::shared_ptr<SavedTensorHooks> hooks) {
  const One one = Find(node, name);
  if (one.tensor) return one.tensor->Hook(std::move(hooks), &node);
  MICA_CHECK_TYPE(one.tensors, "What ", node.name(), " saves as (", std::string(name),
                  ") is no tensor and takes no hooks.");
  MICA_CHECK_INDEX(index >= 0 && index < one.tensors->size(), "Number (", index, ") is not among the (",
                   one.tensors->size(), ") tensors that ", node.name(), " saves as (", std::string(name),
                   ").");
  (*one.tensors)[index].Hook(std::move(hooks), &node);
}

}  // namespace mica::autograd
