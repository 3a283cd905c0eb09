// The functions of <mica/layers.h> by which a frame kind rearranges what stands behind its wrappers, and goes
// through what its kernels got: views, memory, errors, lists. layers_extension.cc puts them into the table.
#pragma once

#include <mica/layers.h>

namespace mica::layers {

MicaStatus ViewsOf(void* op, const MicaValue* args, int64_t n, MicaViewReceiver receive, void* context);
void RaiseVersion(MicaTensor* t, uint64_t to);
int32_t FrameOf(MicaTensor* wrapper, MicaFrame* out);
MicaStatus MoveWrapper(MicaTensor* wrapper, const MicaFrame* frame, MicaTensor* value, int64_t hidden);
MicaStatus SetValue(MicaTensor* t, const MicaFrame* frame, MicaTensor* value);
MicaStatus ShowDevice(MicaTensor* t, MicaDevice device);
MicaStatus Settle(MicaTensor* t);
MicaStatus CheckReadable(MicaTensor* t, const char* what);
int64_t Describe(MicaTensor* t, char* text, int64_t room);
int32_t HasOwnClass(MicaStatus status);
void WarnOnceOf(MicaStr key, MicaStr message);
void TakeList(MicaValue* result, MicaTensor** out);

}  // namespace mica::layers
