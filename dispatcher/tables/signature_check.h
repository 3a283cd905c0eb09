// Whether a leaf kernel's C function is the one that its operator's schema asks for.
#ifndef MICA_DISPATCHER_TABLES_SIGNATURE_CHECK_H_
#define MICA_DISPATCHER_TABLES_SIGNATURE_CHECK_H_

#include <string>
#include <string_view>

namespace mica {

// What is wrong with a function whose record says `signature` (MicaKernelRecord) for a schema, as the rest of
// a sentence that begins "The kernel ..."; empty where it fits. `behind`: the parameter that comes before
// those of the schema.
std::string SignatureMismatch(std::string_view signature, std::string_view schema,
                              std::string_view behind = "its MicaCall");

}  // namespace mica

#endif  // MICA_DISPATCHER_TABLES_SIGNATURE_CHECK_H_
