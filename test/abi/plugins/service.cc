// A plugin that offers a table to others, asks for one of others, or both: NAME, OFFERS and ASKS say which.
//
// Its operator NAME::ask() calls through the table that it asks for, and says what came of it. Macros make
// the table wrong in one way, or have it asked for while the plugin starts.
#include <mica/plugin.h>

#include <string>

namespace {

using mica::plugin::Extension;

// What the two sides share: a header of their own in the world outside.
struct Answers {
  MicaTable table;
  int64_t (*answer)(int64_t question);
};

#ifndef OFFERS
#define OFFERS ""
#endif
#ifndef ASKS
#define ASKS ""
#endif
#ifndef MINOR
#define MINOR 3
#endif
#ifndef SIZE
#define SIZE sizeof(Answers)
#endif
#ifndef LEAST
#define LEAST 0
#endif

int64_t Answer(int64_t question) { return question * 2; }

void Ask(const MicaCall*, const MicaValue* args, int64_t, MicaValue* results, int64_t) {
  results[0].tag = MICA_VALUE_INT;
  results[0].u.i = Extension<Answers>(ASKS, 1, LEAST)->answer(args[0].u.i);
}

void Init(const MicaHost*, const MicaRegistrar* r) {
  mica::plugin::Registrar registrar(r, "cpu");
  registrar.Define(NAME "::ask(int question) -> int");
  registrar.Boxed<&Ask>(NAME "::ask");
#ifdef ASK_AT_ONCE
  Extension<Answers>(ASKS, 1, LEAST);
#endif
  if (!std::string(OFFERS).empty()) {
    static const Answers answers = {{SIZE, 1, MINOR}, &Answer};
    registrar.Extension(OFFERS, &answers.table);
#ifdef TWICE
    registrar.Extension(OFFERS, &answers.table);
#endif
  }
#ifdef NULL_TABLE
  registrar.Extension(NAME ".none", nullptr);
#endif
#ifdef FAILS
  throw mica::plugin::Error(MICA_ERROR_RUNTIME, "the service has no port");
#endif
}

}  // namespace

MICA_PLUGIN(NAME, "Mica tests", "1.0", "", "", "operators:" NAME ",extension:" OFFERS, Init)
