// References to objects: values of types that Mica does not know (MicaObject in abi_types.h).
//
// Used by Value, by the host's table and by the binding. An object says by itself what it is and how it ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <mica/abi.h>

namespace mica {

// NULL is passed over by both.
void RetainObject(MicaObject* object);
// False, and nothing is done, where the object had no reference left. One without a whole type stays.
bool ReleaseObject(MicaObject* object);
// Retains it unless its last reference is gone already, on its way to be destroyed.
bool RetainLiveObject(MicaObject* object);
// Whether the type has what every type must have: a name and a way to end. A plugin's may lack them.
bool IsWhole(const MicaObjectType* type);
// How many references there are; other threads may change that.
uint64_t ReferencesOf(const MicaObject* object);

// What the object says that it is, for messages; "unknown" where a plugin made it without a whole type.
std::string_view TypeNameOf(const MicaObject* object);

// What keeps an object from being one of the type `expected`, as the rest of a sentence that begins "... is";
// empty where nothing does. "an object of the type (acme.Other), where ... expected".
std::string ObjectMismatch(const MicaObject* object, std::string_view expected);

}  // namespace mica
