#include "dispatcher/layers/faces.h"

#include <cstddef>
#include <string>
#include <type_traits>

#include "dispatcher/calls/adapters.h"
#include "dispatcher/plugins/status.h"
#include "dispatcher/tables/signature_check.h"

namespace mica::layers {

#define MICA_SAME_PLACE(own, member, face, face_member)                 \
  static_assert(offsetof(own, member) == offsetof(face, face_member) && \
                sizeof(own::member) == sizeof(face::face_member))
static_assert(std::is_standard_layout_v<ThreadState> && std::is_standard_layout_v<frames::Wrapper>);
MICA_SAME_PLACE(ThreadState, include, MicaThread, include);
MICA_SAME_PLACE(ThreadState, exclude, MicaThread, exclude);
MICA_SAME_PLACE(ThreadState, frame, MicaThread, frame);
MICA_SAME_PLACE(ThreadState, grad_enabled, MicaThread, grad_enabled);
MICA_SAME_PLACE(ThreadState, inference_mode, MicaThread, inference_mode);
MICA_SAME_PLACE(frames::Wrapper, value, MicaWrapper, value);
MICA_SAME_PLACE(frames::Wrapper, tag, MicaWrapper, tag);
MICA_SAME_PLACE(frames::Wrapper, kind, MicaWrapper, kind);
MICA_SAME_PLACE(frames::Wrapper, hidden, MicaWrapper, hidden);
MICA_SAME_PLACE(frames::Wrapper, number, MicaWrapper, number);
MICA_SAME_PLACE(frames::Wrapper, second, MicaWrapper, second);
MICA_SAME_PLACE(frames::Wrapper, shared, MicaWrapper, shared);
#undef MICA_SAME_PLACE

const MicaThread* ThreadFace() { return FaceOf(CurrentThread()); }

const MicaWrapper* WrapperFace(MicaTensor* t) {
  const Tensor& tensor = Tensor::Ref(t);
  return frames::IsWrapper(tensor) ? FaceOf(frames::WrapperOf(tensor)) : nullptr;
}

MicaStatus CallOf(void* op, const char* signature, MicaFunction* call) {
  return CatchAll([&] {
    const OperatorSpec& spec = static_cast<const Operator*>(op)->spec();
    *call = nullptr;
    if (!spec.adapters) return;
    const std::string differs = SignatureMismatch(signature, spec.schema, "its operator");
    if (differs.empty()) {
      *call = spec.adapters->call;
      return;
    }
    for (int i = 0; i < spec.num_generations; ++i)
      if (SignatureMismatch(signature, spec.generations[i].schema).empty()) return;
    MICA_THROW(kType, "The call of operator ", spec.name, " by a plugin's layer ", differs);
  });
}

}  // namespace mica::layers
