// Objects of a plugin's own types that travel through schemas, in C++17.
//
//   struct Group {
//     static constexpr const char* kTypeName = "acme.Group";  // as schemas write it
//     int size;
//   };
//   Object<Group>::Make(Group{4}).Give(&results[0]);   // acme::group(int size) -> acme.Group
//   Object<Group>::In(args[1]).size                    // acme::sum(Tensor x, acme.Group group) -> Tensor
//
// A T with `void Reorder(MicaTensor* to)` can be the payload of opaque tensors (MicaHost.tensor_opaque):
//   Object<Blocks>::Make(...).Opaque(sizes, ndim, MICA_F32, device)   // the tensor
//   Object<Blocks>::PayloadOf(x)   // empty where x is in memory, or another's
//
// For a kernel that makes an object of T or reads one; a kernel that only passes objects on has the
// MicaObject*. T's destructor runs on the thread that drops the last reference and must not throw.
#pragma once

#include <string>
#include <utility>

#include <mica/plugin.h>

namespace mica {
namespace plugin {

// One counted reference to an object that holds a T.
template <class T>
class Object {
 public:
  Object() = default;
  Object(const Object& o) : held_(o.held_) {
    if (held_) Host()->object_retain(held_);
  }
  Object(Object&& o) noexcept : held_(std::exchange(o.held_, nullptr)) {}
  Object& operator=(Object o) noexcept {
    std::swap(held_, o.held_);
    return *this;
  }
  ~Object() {
    if (held_) Host()->object_release(held_);
  }

  // A new object. Throws NOT_IMPLEMENTED under a host that knows none.
  template <class... A>
  static Object Make(A&&... a) {
    if (!MICA_HAS(Host(), object_release))
      throw Error(MICA_ERROR_NOT_IMPLEMENTED,
                  std::string("This Mica knows no objects (") + T::kTypeName + "); a later one is needed.");
    return Object(new Held(std::forward<A>(a)...));
  }
  // What a boxed argument holds; empty for None. Throws a TYPE error where another maker's object has the
  // name of the type: nobody else knows what lies in it.
  static Object Of(const MicaValue& v) {
    if (v.tag == MICA_VALUE_NONE) return Object();
    Held* const held = Read(v.u.object);
    Host()->object_retain(held);
    return Object(held);
  }
  // The same without a reference, for arguments that the schema says are never None.
  static T& In(const MicaValue& v) { return Read(v.u.object)->value; }

  // An opaque tensor whose elements the object holds.
  OwnedTensor Opaque(const int64_t* sizes, int64_t ndim, int32_t dtype, MicaDevice device) const {
    const MicaTensorResult made = Host()->tensor_opaque(MicaIntSpan{sizes, ndim}, dtype, device, held_);
    Check(made.status);
    return OwnedTensor(made.value);
  }
  // What lies behind an opaque tensor. Empty where that is in memory, or of another maker, which puts it into
  // memory: its face is to be read after this.
  static Object PayloadOf(MicaTensor* t) {
    MicaObject* found = nullptr;
    Check(Host()->tensor_payload(t, &Type(), &found));
    return Object(static_cast<Held*>(found));
  }

  explicit operator bool() const { return held_ != nullptr; }
  T* operator->() const { return &held_->value; }
  T& operator*() const { return held_->value; }
  MicaObject* get() const { return held_; }
  // Becomes a result of a boxed kernel, whose receiver owns it; None where empty.
  void Give(MicaValue* result) && {
    result->tag = held_ ? MICA_VALUE_OBJECT : MICA_VALUE_NONE;
    result->reserved = 0;
    result->u.object = std::exchange(held_, nullptr);
  }

 private:
  struct Held : MicaObject {
    template <class... A>
    explicit Held(A&&... a) : MicaObject{1, &Type()}, value{std::forward<A>(a)...} {}
    T value;
  };
  explicit Object(Held* owned) : held_(owned) {}

  static void Destroy(MicaObject* o) { delete static_cast<Held*>(o); }
  static MicaStatus Reorder(MicaObject* o, MicaTensor* to) {
    return CatchAll([&] { static_cast<Held*>(o)->value.Reorder(to); });
  }
  using ReorderFunction = MicaStatus (*)(MicaObject*, MicaTensor*);
  template <class U>
  static constexpr auto ReorderOf(int) -> decltype(std::declval<U&>().Reorder(nullptr), ReorderFunction()) {
    return &Reorder;
  }
  template <class U>
  static constexpr ReorderFunction ReorderOf(...) {
    return nullptr;
  }
  static const MicaObjectType& Type() {
    static constexpr MicaObjectType type = {sizeof(MicaObjectType), T::kTypeName, &Destroy, ReorderOf<T>(0)};
    return type;
  }
  static Held* Read(MicaObject* o) {
    if (o->type != &Type())
      throw Error(MICA_ERROR_TYPE,
                  std::string("The object of the type (") + o->type->name +
                      ") was not made by the plugin that reads it here, which knows the memory of its own "
                      "objects alone.");
    return static_cast<Held*>(o);
  }

  Held* held_ = nullptr;
};

}  // namespace plugin
}  // namespace mica
