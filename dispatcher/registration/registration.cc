// Scopes: what a plugin or library registers, collected. activation.cc puts it in place.
#include "dispatcher/registration/registration.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "dispatcher/calls/adapters.h"
#include "dispatcher/devices/devices.h"
#include "dispatcher/registration/extensions.h"
#include "dispatcher/registration/scope_impl.h"
#include "schema/schema.h"
#include "tensor/device.h"

namespace mica {
namespace {

std::string Qualified(std::string_view op) {
  const std::string name(op);
  return name.find("::") == std::string::npos ? "mica::" + name : name;
}

}  // namespace

std::shared_ptr<Scope> Scope::Create(std::string name, std::string path) {
  std::shared_ptr<Scope> s(new Scope());
  s->impl_ = std::make_unique<Impl>();
  s->impl_->name = std::move(name);
  s->impl_->path = std::move(path);
  return s;
}

std::shared_ptr<Scope> Scope::CreateInPlaceOf(std::shared_ptr<Scope> replaced, std::string name,
                                              std::string path) {
  std::shared_ptr<Scope> s = Create(std::move(name), std::move(path));
  s->impl_->replaced = std::move(replaced);
  return s;
}

Scope::~Scope() {
  if (impl_->committed) Disable();
  if (open()) impl_->ReleasePlaces();
  Dispatcher& d = Dispatcher::Get();
  std::lock_guard lock(d.mutex);
  d.notes.erase(this);
  impl_->Retire(d);
}

void Scope::Impl::Retire(Dispatcher& d) {
  for (std::shared_ptr<Definition>& def : definitions) {
    if (!def->committed || def.use_count() > 1) continue;  // not, where another scope has it, too
    std::shared_ptr<Definition> kept = std::move(def);
    if (!kept->completed) kept.swap(d.to_define_again[kept->words]);  // leaves an older one of the same words
    if (kept) d.retired.push_back(std::move(kept));
  }
  definitions.clear();
}

const std::string& Scope::name() const { return impl_->name; }
uint64_t Scope::rank() const { return impl_->rank; }
const std::string& Scope::path() const { return impl_->path; }
bool Scope::enabled() const { return impl_->enabled; }
bool Scope::open() const { return !impl_->committed && !impl_->abandoned; }

void Scope::Abandon() {
  if (impl_->committed) return;
  impl_->ReleasePlaces();
  {
    Dispatcher& d = Dispatcher::Get();
    std::lock_guard lock(d.mutex);
    impl_->Retire(d);
  }
  auto empty = std::make_unique<Impl>();
  empty->name = impl_->name;
  empty->path = impl_->path;
  empty->abandoned = true;
  impl_ = std::move(empty);
}

void Scope::AddKernel(std::string_view op, std::string_view key, MicaFunction fn, void* context,
                      SourceLocation where) {
  AddKernel(op, key, fn, context, where, 0);
}

void Scope::AddKernel(std::string_view op, std::string_view key, MicaFunction fn, void* context,
                      SourceLocation where, uint64_t schema_hash) {
  KernelEntry e;
  e.schema_hash = schema_hash;
  e.kind = KernelEntry::Kind::kLayer;
  e.fn = fn;
  e.context = context;
  e.where = where;
  impl_->kernels.push_back({Qualified(op), std::string(key), e});
}

void Scope::AddBoxedKernel(std::string_view op, std::string_view key, BoxedKernel kernel,
                           SourceLocation where) {
  KernelEntry e;
  e.kind = KernelEntry::Kind::kBoxed;
  e.boxed = kernel;
  e.where = where;
  impl_->kernels.push_back({Qualified(op), std::string(key), e});
}

void Scope::AddFallthrough(std::string_view op, std::string_view key) {
  KernelEntry e;
  e.kind = KernelEntry::Kind::kFallthrough;
  impl_->kernels.push_back({Qualified(op), std::string(key), e});
}

absl::Status Scope::AddLeaf(const MicaKernelRecord& r) {
  if (r.struct_size < MICA_KERNEL_RECORD_SIZE_1_0)
    return absl::InvalidArgumentError(absl::StrCat("A kernel record has the struct_size (", r.struct_size,
                                                   "); ABI 1.0 asks for (", MICA_KERNEL_RECORD_SIZE_1_0,
                                                   ") bytes."));
  if (!r.name || !r.backend)
    return absl::InvalidArgumentError("A kernel record has no operator or no backend name.");
  if (!r.function && !r.boxed)
    return absl::InvalidArgumentError(absl::StrCat("The kernel record of (", r.name, ") has no function."));
  for (const NamedKernel& k : impl_->kernels)
    if (k.entry.kind == KernelEntry::Kind::kLeaf && k.op == Qualified(r.name) && k.key == r.backend)
      return absl::AlreadyExistsError(absl::StrCat(
          "The operator (", r.name, ") gets two kernels for the backend (", r.backend, ") from one plugin."));
  KernelEntry e;
  e.kind = KernelEntry::Kind::kLeaf;
  e.fn = r.function;
  e.leaf_boxed = r.boxed;
  e.context = r.context;
  e.schema_hash = r.schema_hash;
  e.takes_opaque = (r.flags & MICA_KERNEL_TAKES_OPAQUE) != 0;
  if (r.function && MICA_HAS(&r, signature)) e.signature = r.signature;
  e.where = {r.file ? r.file : "", static_cast<int>(r.line)};
  impl_->kernels.push_back({Qualified(r.name), r.backend, e});
  return absl::OkStatus();
}

absl::Status Scope::AddClass(const MicaClassRecord& r) {
  if (r.struct_size < MICA_CLASS_RECORD_SIZE_1_0)
    return absl::InvalidArgumentError(absl::StrCat("A class record has the struct_size (", r.struct_size,
                                                   "); ABI 1.0 asks for (", MICA_CLASS_RECORD_SIZE_1_0,
                                                   ") bytes."));
  const std::optional<OpClass> c = r.class_name ? OpClassNamed(r.class_name) : std::nullopt;
  if (!c)
    return absl::InvalidArgumentError(
        absl::StrCat("Class (", r.class_name ? r.class_name : "", ") is unknown."));
  if (!r.backend || !r.function)
    return absl::InvalidArgumentError(
        absl::StrCat("The record of class (", r.class_name, ") has no backend or no function."));
  impl_->classes.push_back({r.backend,
                            static_cast<int>(*c),
                            {r.function,
                             MICA_HAS(&r, list_function) ? r.list_function : nullptr,
                             r.context,
                             nullptr,
                             {r.file ? r.file : "", static_cast<int>(r.line)}}});
  return absl::OkStatus();
}

absl::Status Scope::AddDevice(const char* name, const MicaDeviceTable* table) {
  if (absl::Status s = CheckDeviceTable(name, table); !s.ok()) return s;
  // The plugin may ask for its index before its table is published.
  static_cast<void>(RegisterBackendName(name));
  impl_->devices.push_back({name, KeepDeviceTable(*table)});
  AddBackend(name);
  return absl::OkStatus();
}

void Scope::AddRule(std::string_view key, LayerRule rule, void* context) {
  impl_->rules.push_back({std::string(key), {rule, context, nullptr}});
}

void Scope::AddBoxedFallback(std::string_view key, BoxedKernel kernel, SourceLocation where) {
  impl_->fallbacks.push_back({std::string(key), {kernel, nullptr, where}});
}

void Scope::DecomposeAt(std::string_view layer) { impl_->decompose.emplace_back(layer); }

void Scope::SetIsMicas() { impl_->is_micas = true; }

absl::Status Scope::AddExtension(std::string_view name, const MicaTable* table) {
  const auto is_allowed = [](char c) { return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-'; };
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_allowed))
    return absl::InvalidArgumentError(
        absl::StrCat("The name (", std::string(name),
                     ") of an extension is not made of letters, digits, dots, dashes and underscores."));
  if (name.starts_with("mica.") && !impl_->is_micas)
    return absl::InvalidArgumentError(
        absl::StrCat("The extension (", std::string(name),
                     ") has a name of Mica's; a plugin's begins with its own, as in acme.collectives."));
  if (table->struct_size < sizeof(MicaTable))
    return absl::InvalidArgumentError(absl::StrCat(
        "The table of the extension (", std::string(name), ") has the struct_size (", table->struct_size,
        "); it begins with a MicaTable of (", sizeof(MicaTable), ") bytes."));
  for (const Extension& e : impl_->extensions)
    if (e.name == name)
      return absl::AlreadyExistsError(
          absl::StrCat("The extension (", e.name, ") is offered twice by one plugin."));
  impl_->extensions.push_back({std::string(name), table});
  return absl::OkStatus();
}

void Scope::AddBackend(std::string_view name) { impl_->backends.emplace_back(name); }

const std::vector<std::string>& Scope::Backends() const { return impl_->backends; }

absl::Status Scope::Define(std::string_view text, SourceLocation where) {
  absl::StatusOr<schema::FunctionSchema> parsed = schema::Parse(text);
  if (!parsed.ok()) return parsed.status();
  if (absl::Status valid = schema::Validate(*parsed); !valid.ok()) return valid;
  if (parsed->ns.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("The schema (", std::string(text), ") has no namespace; write ns::name(...)."));
  const std::string schema = schema::ToString(*parsed);
  const std::string words = absl::StrCat(schema, " at ", where.file, ":", where.line);
  {
    Dispatcher& dispatcher = Dispatcher::Get();
    std::lock_guard lock(dispatcher.mutex);
    if (auto known = dispatcher.to_define_again.extract(words)) {
      impl_->definitions.push_back(std::move(known.mapped()));
      return absl::OkStatus();
    }
  }
  auto d = std::make_shared<Definition>();
  d->name = parsed->FullName();
  d->schema = schema;
  d->words = words;
  d->file = where.file;
  d->spec.name = d->name.c_str();
  d->spec.schema = d->schema.c_str();
  d->spec.doc = "";
  d->spec.file = d->file.c_str();
  d->spec.line = where.line;
  d->spec.op_class = OpClass::kCustom;
  d->spec.form = OpForm::kFunctional;
  d->spec.dtype_arg = d->spec.dims_arg = d->spec.keepdim_arg = -1;
  d->spec.num_args = d->spec.num_functional_args = static_cast<int16_t>(parsed->arguments.size());
  d->spec.num_outputs = static_cast<int16_t>(parsed->returns.size());
  for (size_t i = 0; i < parsed->arguments.size() && i < 64; ++i)
    if (parsed->arguments[i].is_mutable()) d->spec.written_args |= uint64_t{1} << i;
  if (std::any_of(parsed->arguments.begin(), parsed->arguments.end(),
                  [](const schema::Argument& a) { return !a.type.object_name().empty(); }))
    d->spec.flags |= kTakesObjects;
  d->op = std::make_unique<Operator>(&d->spec);
  impl_->definitions.push_back(std::move(d));
  return absl::OkStatus();
}

OperatorSpec& Scope::LastDefined() {
  impl_->definitions.back()->completed = true;
  return impl_->definitions.back()->spec;
}

}  // namespace mica
