// kernels/*_declarations.h: the C++ declarations of the hand-written functions
// that entries name, so that a wrong signature fails where it is defined.
#include <set>

#include "codegen/emit/emitters.h"
#include "codegen/names.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

// Declarations of one kind, by namespace, in the file's order, each once.
class DeclarationFile {
 public:
  DeclarationFile(std::string_view what, std::string space)
      : banner_(GeneratedBanner(what)), space_(std::move(space)) {}
  void Include(std::string_view header) { includes_.push_back(std::string(header)); }
  void Declare(const std::string& ns, const std::string& declaration, const Entry& entry) {
    if (!seen_.insert(ns + declaration).second) return;
    if (ns != open_) Open(ns);
    const std::string_view sentence = std::string_view(entry.doc).substr(0, entry.doc.find('\n'));
    body_.Comment(StrCat(entry.primary().schema_text, ": ", sentence));
    body_.Line(declaration);
  }
  // What is not of one entry.
  void Line(const std::string& ns, const std::string& text) {
    if (!seen_.insert(ns + text).second) return;
    if (ns != open_) Open(ns);
    body_.Line(text);
  }
  void Write(OutputFolder& out, const std::string& path) {
    if (!open_.empty()) Close();
    Printer head;
    head.Line("#pragma once\n");
    for (const std::string& header : includes_) head.Print({{"header", header}}, "#include \"$header$\"");
    head.Line();
    out.Write(path, banner_ + head.text() + body_.text());
  }

 private:
  void Open(const std::string& ns) {
    if (!open_.empty()) Close();
    open_ = ns;
    body_.Print({{"ns", ns}, {"space", space_}}, "namespace $ns$::$space$ {");
    if (ns != "mica") body_.Line("using namespace ::mica;");
  }
  void Close() { body_.Print({{"ns", open_}, {"space", space_}}, "}  // namespace $ns$::$space$"); }

  std::string banner_, space_, open_;
  std::vector<std::string> includes_;
  std::set<std::string> seen_;
  Printer body_;
};

std::string MetaDeclaration(const Entry& entry) {
  if (entry.generic_meta)
    return StrCat("void ", entry.meta,
                  "(const OperatorSpec& spec, const MicaValue* args, MetaResult& result);");
  const std::string params = entry.primary().Parameters(false);
  return StrCat("void ", entry.meta, "(MetaResult& result", params.empty() ? "" : ", ", params, ");");
}

std::string PortableDeclaration(const Entry& entry) {
  const Function& f = entry.structured ? *entry.out : entry.primary();
  return StrCat(f.return_type, " ", entry.portable, "(", f.Parameters(false), ");");
}

}  // namespace

void EmitDeclarations(const Model& model, OutputFolder& out) {
  DeclarationFile meta("Meta functions of kernels/meta: sizes, strides and dtypes of results.", "meta");
  DeclarationFile portable("Portable kernels of kernels/portable: outputs are ready when they are called.",
                           "portable");
  DeclarationFile composite("Composites of kernels/composite: operators made of operators.", "composite");
  DeclarationFile view("View functions of kernels/views: sizes, strides and offset of a view.", "views");
  for (DeclarationFile* file : {&meta, &portable, &composite, &view}) file->Include("mica/ops/prelude.h");
  meta.Include("dispatcher/tables/operator_spec.h");
  view.Include("dispatcher/tables/operator_spec.h");
  for (const auto& entry : model.entries) {
    const Function& f = entry->primary();
    if (!entry->meta.empty()) {
      if (entry->generic_meta)
        meta.Line("mica", MetaDeclaration(*entry));
      else
        meta.Declare(entry->ns, MetaDeclaration(*entry), *entry);
    }
    if (!entry->portable.empty()) portable.Declare(entry->ns, PortableDeclaration(*entry), *entry);
    if (!entry->composite.empty())
      composite.Declare(entry->ns,
                        StrCat(f.return_type, " ", entry->composite, "(", f.Parameters(false), ");"), *entry);
    if (entry->op_class == OpClass::kView) {
      const char* result = f.schema.returns[0].type.is_tensor_list() ? "ViewSpecs" : "ViewSpec";
      view.Declare(entry->ns, StrCat(result, " ", entry->view, "(", f.Parameters(false), ");"), *entry);
    }
  }
  meta.Write(out, "kernels/meta_declarations.h");
  portable.Write(out, "kernels/portable_declarations.h");
  composite.Write(out, "kernels/composite_declarations.h");
  view.Write(out, "kernels/view_declarations.h");
}

}  // namespace mica::codegen
