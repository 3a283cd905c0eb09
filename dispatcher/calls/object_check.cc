// See object_check.h.
#include "dispatcher/calls/object_check.h"

#include "schema/object.h"
#include "schema/value.h"
#include "tensor/error.h"

namespace mica {

void CheckObjects(const Operator& op, const MicaValue* args, int64_t num_args) {
  const std::vector<schema::Argument>& arguments = op.schema().arguments;
  for (size_t i = 0; i < arguments.size() && i < static_cast<size_t>(num_args); ++i) {
    const schema::Argument& a = arguments[i];
    const std::string_view expected = a.type.object_name();
    if (expected.empty() || (args[i].tag == MICA_VALUE_NONE && a.type.is_optional())) continue;
    MICA_CHECK_TYPE(args[i].tag == MICA_VALUE_OBJECT, "The argument `", a.name, "` of ", op.spec().name,
                    " is (", ToString(args[i]), "), where an object of the type (", std::string(expected),
                    ") is expected.");
    const std::string mismatch = ObjectMismatch(args[i].u.object, expected);
    MICA_CHECK_TYPE(mismatch.empty(), "The argument `", a.name, "` of ", op.spec().name, " is ", mismatch,
                    ".");
  }
}

}  // namespace mica
