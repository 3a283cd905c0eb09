// The compile-time check of a kernel's function against its schema, a row a case.
#include <mica/plugin.h>
#include "schema/schema.h"
#include "test/support/mica_test.h"

namespace mica::plugin {
namespace {

void OutOfOne(const MicaCall*, MicaTensor*, MicaTensor*) {}
void Sum(const MicaCall*, MicaTensor*, MicaIntSpan, int32_t, int32_t, MicaTensor*) {}
MicaTensor* Fresh(const MicaCall*, MicaTensor*) { return nullptr; }
void Many(const MicaCall*, MicaTensor*, int32_t, int32_t, MicaValue*) {}
void TwoOuts(const MicaCall*, MicaTensor*, int64_t, MicaOptInt, MicaTensor*, MicaTensor*) {}
int64_t Count(const MicaCall*, MicaTensor*, MicaStr, MicaScalar) { return 0; }
double Number(const MicaCall*, MicaTensor*) { return 0; }
void Every(const MicaCall*, MicaTensorSpan, MicaFloatSpan, MicaBoolSpan, MicaDevice, MicaGenerator*,
           MicaOptFloat, double, MicaScalarSpan) {}
void Foreign(const MicaCall*, float*) {}
void Objects(const MicaCall*, MicaTensor*, MicaObject*, MicaObject*, MicaValue*) {}

constexpr const char* kNeg = "mica::neg.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)";

struct Row {
  int found;
  int expected;
  const char* why;
};

TEST_CASE("a function that fits its schema is taken, any other is told where it differs", "[sdk]") {
  const Row rows[] = {
      {MismatchOf(kNeg, &OutOfOne), -1, "an out form"},
      {MismatchOf("x::f(Tensor self, int d, *, Tensor(a!) out) -> Tensor(a!)", &OutOfOne), 1, "an int"},
      {MismatchOf("x::f(Tensor self) -> Tensor", &OutOfOne), 1, "one argument too many"},
      {MismatchOf("x::f(Tensor self) -> Tensor", &Fresh), -1, "a functional form"},
      {MismatchOf("x::f(Tensor self) -> int", &Fresh), 1, "a tensor for an int"},
      {MismatchOf("x::f(Tensor self) -> float", &Number), -1, "a float"},
      {MismatchOf("x::sum.out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, "
                  "Tensor(a!) out) -> Tensor(a!)",
                  &Sum),
       -1, "a reduction"},
      {MismatchOf("x::f(Tensor self, bool a=True, bool b=False) -> (Tensor, Tensor)", &Many), -1, "a tuple"},
      {MismatchOf("x::f(Tensor self, bool a=True, bool b=False) -> Tensor[]", &Many), -1, "a list"},
      {MismatchOf("x::f(Tensor self, bool a=True) -> Tensor[]", &Many), 2, "an argument too few"},
      {MismatchOf("x::f(Tensor self, bool a, bool b, *, Tensor(a!) v, Tensor(b!) i) -> (Tensor(a!) v, "
                  "Tensor(b!) i)",
                  &Many),
       3, "results where outs are"},
      {MismatchOf("x::f(Tensor self, int d, bool? k=None, *, Tensor(a!) v, Tensor(b!) i) -> (Tensor(a!) v, "
                  "Tensor(b!) i)",
                  &TwoOuts),
       -1, "two outs"},
      {MismatchOf("x::f(Tensor self, str s=\"a, b\", Scalar v=1) -> bool", &Count), -1, "a comma in quotes"},
      {MismatchOf("x::f(Tensor self, str s, Scalar v=1) -> float", &Count), 3, "an int for a float"},
      {MismatchOf("x::f(Tensor?[] a, float[]? b, bool[3] c, Device? d, Generator? g, float? e, float f, "
                  "Scalar[] s) -> ()",
                  &Every),
       -1, "every other type"},
      {MismatchOf("x::f(Tensor self) -> ()", &Foreign), 0, "a type that does not cross"},
      {MismatchOf("x::f(Tensor t, acme.Thing a, __torch__.torch.classes.acme.Thing? b=None) -> acme.Thing",
                  &Objects),
       -1, "objects, of which one is the result"},
      {MismatchOf("x::f(Tensor t, acme.Thing[] a, acme.Thing b) -> acme.Thing", &Objects), 1,
       "a list of objects"},
      {MismatchOf("x::f(Tensor t, acme.Thing a, Generator? b) -> acme.Thing", &Objects), 2,
       "an object for a generator"},
  };
  for (const Row& row : rows) {
    INFO(row.why);
    CHECK(row.found == row.expected);
  }
}

TEST_CASE("the hash is that of the schema module", "[sdk]") {
  static_assert(SchemaHash(kNeg) == schema::HashText(kNeg));
  CHECK(SchemaHash(kNeg) == schema::Hash(*schema::Parse(kNeg)));
  static_assert(NameOf(kNeg) == "mica::neg.out");
}

MicaKernelRecord g_record;
MicaStatus KeepRecord(void*, const MicaKernelRecord* r) {
  g_record = *r;
  return nullptr;
}

TEST_CASE("MICA_KERNEL registers under the schema's hash", "[sdk]") {
  MicaRegistrar table{};
  table.register_kernel = &KeepRecord;
  Registrar registrar(&table, "cpu");
  MICA_KERNEL(registrar, &OutOfOne, "mica::neg.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)");
  CHECK(g_record.schema_hash == schema::HashText(kNeg));
  CHECK(g_record.function != nullptr);
  CHECK(g_record.line > 0);
}

}  // namespace
}  // namespace mica::plugin
