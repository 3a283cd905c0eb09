/* One function for each type of the border, so that the debug information of this
 * file describes all of it. abidiff compares that with what baseline/ recorded. */
#include <mica/abi.h>
#include <mica/operators.h>
#include <mica/program.h>

/* T0 */
void probe_tensor(MicaTensor* t) { (void)t; }
void probe_scalar(MicaScalar s) { (void)s; }
void probe_spans(MicaStr a, MicaIntSpan b, MicaFloatSpan c, MicaBoolSpan d, MicaScalarSpan e,
                 MicaTensorSpan f) {
  (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
}
void probe_optionals(MicaDevice a, MicaOptInt b, MicaOptFloat c) { (void)a, (void)b, (void)c; }
void probe_value(MicaValue* v) { (void)v; }
void probe_status(MicaStatus s) { (void)s; }
MicaTensorResult probe_tensor_result(void) { return (MicaTensorResult){0, 0}; }
MicaIntResult probe_int_result(void) { return (MicaIntResult){0, 0}; }
MicaFloatResult probe_float_result(void) { return (MicaFloatResult){0, 0}; }

/* T1 */
void probe_host(const MicaHost* t) { (void)t; }
void probe_registrar(const MicaRegistrar* t) { (void)t; }
void probe_device_table(const MicaDeviceTable* t) { (void)t; }
void probe_device_properties(const MicaDeviceProperties* t) { (void)t; }
void probe_call(const MicaCall* t) { (void)t; }
void probe_kernel_record(const MicaKernelRecord* t) { (void)t; }
void probe_class_record(const MicaClassRecord* t) { (void)t; }
void probe_manifest(const MicaManifest* t) { (void)t; }
void probe_program(const MicaProgram* t) { (void)t; }
void probe_operator_record(const MicaOperatorRecord* t) { (void)t; }
void probe_operators_extension(const MicaOperatorsExtension* t) { (void)t; }
MicaStatus probe_boxed(MicaBoxedFunction f, MicaClassFunction g, MicaFunction h) {
  (void)f, (void)g, (void)h;
  return 0;
}
MicaStatus probe_entry(MicaPluginQuery q, MicaPluginInit i) {
  (void)q, (void)i;
  return 0;
}
