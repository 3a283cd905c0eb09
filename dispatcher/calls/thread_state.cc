#include "dispatcher/calls/thread_state.h"

namespace mica {

thread_local constinit ThreadState t_state;

}  // namespace mica
