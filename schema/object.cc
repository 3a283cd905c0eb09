// See object.h.
#include "schema/object.h"

#include <atomic>

#include "absl/strings/str_cat.h"

namespace mica {
namespace {

std::atomic<uint64_t>& CountOf(MicaObject* o) {
  return reinterpret_cast<std::atomic<uint64_t>&>(o->refcount);
}

}  // namespace

bool IsWhole(const MicaObjectType* type) {
  return type && type->struct_size >= MICA_OBJECT_TYPE_SIZE_1_0 && type->name && type->destroy;
}

void RetainObject(MicaObject* object) {
  if (object) CountOf(object).fetch_add(1, std::memory_order_relaxed);
}

uint64_t ReferencesOf(const MicaObject* object) {
  return CountOf(const_cast<MicaObject*>(object)).load(std::memory_order_relaxed);
}

bool RetainLiveObject(MicaObject* object) {
  uint64_t count = CountOf(object).load(std::memory_order_relaxed);
  while (count != 0)
    if (CountOf(object).compare_exchange_weak(count, count + 1, std::memory_order_relaxed)) return true;
  return false;
}

bool ReleaseObject(MicaObject* object) {
  if (!object) return true;
  uint64_t count = CountOf(object).load(std::memory_order_relaxed);
  do {
    if (count == 0) return false;
  } while (!CountOf(object).compare_exchange_weak(count, count - 1, std::memory_order_acq_rel));
  if (count == 1 && IsWhole(object->type)) object->type->destroy(object);
  return true;
}

std::string_view TypeNameOf(const MicaObject* object) {
  return IsWhole(object->type) ? object->type->name : "unknown";
}

std::string ObjectMismatch(const MicaObject* object, std::string_view expected) {
  const std::string wanted(expected);
  if (!object) return absl::StrCat("NULL, where an object of the type (", wanted, ") is expected");
  const MicaObjectType* const type = object->type;
  if (!IsWhole(type))
    return absl::StrCat("an object without a whole MicaObjectType, where one of the type (", wanted,
                        ") is expected");
  if (ReferencesOf(object) == 0)
    return absl::StrCat("an object of the type (", type->name,
                        ") whose last reference was released: somebody released one that was not theirs");
  if (type->name == expected) return "";
  return absl::StrCat("an object of the type (", type->name, "), where one of the type (", wanted,
                      ") is expected");
}

}  // namespace mica
