// The docstring of a Python function or method that is generated: what help() shows, and what
// scripts/docstrings.py checks.
#include <algorithm>

#include "codegen/emit/prose.h"
#include "codegen/emit/python.h"
#include "codegen/text.h"

namespace mica::codegen {
namespace {

using schema::Argument;

// One line of Args: an argument of several overloads, whose types and meanings are joined.
struct Line {
  std::string name, meaning;
  std::vector<std::string> types;
  bool optional = false;
  std::string standard;  // the default, "" if none
};

std::string PythonName(const Argument& a, bool method) {
  return a.name == "self" && !method ? "input" : a.name;
}

// Functions call `self` of a text `input`.
std::string Spoken(std::string text, bool method) {
  if (method) return text;
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = 0; (at = text.find("self", at)) != std::string::npos; at += 4) {
    const bool begins = at == 0 || !is_word(text[at - 1]);
    const bool ends = at + 4 == text.size() || !is_word(text[at + 4]);
    if (begins && ends) text.replace(at, 4, "input");
  }
  return text;
}

class Writer {
 public:
  Writer(const Model& model, const PythonGroup& group, bool method)
      : model_(model), group_(group), method_(method) {
    for (const PythonSignature& s : group.signatures)
      if (method ? s.as_method : s.as_function) signatures_.push_back(&s);
  }

  std::string Text() const {
    const Entry& first = *signatures_[0]->function->entry;
    std::string text = Summary(*signatures_[0]);
    if (signatures_.size() > 1) StrAppend(&text, "\n\nOverloads:", Overloads());
    const std::string lines = Arguments();
    if (!lines.empty()) StrAppend(&text, "\n\nArgs:", lines);
    StrAppend(&text, "\n\nReturns:\n    ", Returns());
    if (ShowsExample(*signatures_[0])) {
      StrAppend(&text, "\n\nExample:");
      for (const std::string_view line : Split(first.example, '\n')) StrAppend(&text, "\n    ", line);
    }
    return text;
  }

 private:
  // An entry's example calls its functional form, mostly, which is no example of the in-place one.
  bool ShowsExample(const PythonSignature& s) const {
    const std::string& example = s.function->entry->example;
    if (s.function->form != OpForm::kInplace) return !example.empty();
    return example.find(group_.name + "(") != std::string::npos;
  }

  std::string Summary(const PythonSignature& s) const {
    const Function& f = *s.function;
    const bool inplace = f.form == OpForm::kInplace && f.entry->functional;
    const std::string text = Spoken(f.entry->doc, method_);
    return inplace ? StrCat(text, " Written over `", method_ ? "self" : "input", "`.") : text;
  }

  std::string Overloads() const {
    std::string text;
    for (const PythonSignature* s : signatures_) {
      std::string summary = Summary(*s);
      std::replace(summary.begin(), summary.end(), '\n', ' ');
      StrAppend(&text, "\n    - `", group_.name, "(", Join(PythonParameters(*s, method_), ", "),
                ")`: ", summary);
    }
    return text;
  }

  void Add(const Entry& entry, const Argument& a, std::vector<Line>* lines) const {
    if (method_ && a.name == "self") return;
    const std::string name = PythonName(a, method_);
    auto at = std::find_if(lines->begin(), lines->end(), [&](const Line& l) { return l.name == name; });
    if (at == lines->end()) at = lines->insert(lines->end(), Line{name, "", {}, false, ""});
    const std::string type = TypeInWords(a.type);
    if (std::find(at->types.begin(), at->types.end(), type) == at->types.end()) at->types.push_back(type);
    at->optional |= a.default_value.has_value() || a.type.is_optional();
    if (a.default_value && at->standard.empty() && a.default_value->ToString() != "[]")
      at->standard = DefaultInWords(*a.default_value);
    if (at->meaning.empty() || entry.arguments.count(a.name))
      at->meaning = Spoken(ArgumentText(model_, entry, a), method_);
    if (a.name == "self" && KindsAreSaid(entry)) StrAppend(&at->meaning, Kinds(entry, at->meaning));
  }

  // A composite's kinds are those of its parts, and a view has all.
  static bool KindsAreSaid(const Entry& e) {
    return e.supports && e.op_class != OpClass::kDecompose && e.op_class != OpClass::kView;
  }

  // "", where the text has it already from another overload.
  static std::string Kinds(const Entry& entry, const std::string& meaning) {
    return meaning.find("Dtypes: ") == std::string::npos ? StrCat(" Dtypes: ", KindsText(entry.supports), ".")
                                                         : "";
  }

  void AddOut(const Function& f, std::vector<Line>* lines) const {
    const bool several = f.schema.returns.size() > 1;
    lines->push_back({"out",
                      several ? "Where the results are written; each is resized to its result's shape."
                              : "Where the result is written; it is resized to the result's shape.",
                      {several ? "tuple of Tensor" : "Tensor"},
                      true,
                      "None"});
  }

  std::string Arguments() const {
    std::vector<Line> lines;
    const Function* out = nullptr;
    bool grad = false;
    for (const PythonSignature* s : signatures_) {
      for (const Argument& a : s->function->schema.arguments) Add(*s->function->entry, a, &lines);
      if (s->out && !out) out = s->function;
      grad |= s->requires_grad;
    }
    if (grad)
      lines.push_back({"requires_grad",
                       model_.arguments.count("requires_grad") ? model_.arguments.at("requires_grad") : "",
                       {"bool"},
                       true,
                       "False"});
    if (out) AddOut(*out, &lines);
    std::string text;
    for (const Line& line : lines) {
      StrAppend(&text, "\n    ", line.name, " (", Join(line.types, " or "), line.optional ? ", optional" : "",
                "):");
      if (!line.meaning.empty()) StrAppend(&text, " ", line.meaning);
      if (!line.standard.empty() && line.standard != "None")
        StrAppend(&text, " Default: ", line.standard, ".");
    }
    return text;
  }

  // Overloads that return the same share a line; of others, shapes are left out.
  std::string Returns() const {
    std::vector<std::string> texts, brief;
    for (const PythonSignature* s : signatures_) {
      const std::string text = Result(*s->function), form = Results(*s->function);
      if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
      if (std::find(brief.begin(), brief.end(), form) == brief.end()) brief.push_back(form);
    }
    return texts.size() == 1 ? texts[0] : StrCat(Join(brief, ", or "), ".");
  }

  // "Tensor", or "tuple of Tensor: `values`, `indices`".
  std::string Results(const Function& f) const {
    const auto& returns = f.schema.returns;
    if (returns.empty()) return "None";
    if (f.form == OpForm::kInplace) return method_ ? "Tensor: `self`" : "Tensor: `input`";
    if (returns.size() == 1) return TypeInWords(returns[0].type);
    std::vector<std::string> names;
    for (const schema::Return& r : returns)
      if (!r.name.empty()) names.push_back(StrCat("`", r.name, "`"));
    return StrCat("tuple of Tensor: ",
                  names.empty() ? StrCat(returns.size(), " tensors") : Join(names, ", "));
  }

  // The same with what is known of its shape and dtype.
  std::string Result(const Function& f) const {
    const std::string form = Results(f);
    if (form != "Tensor") return form + ".";
    const Entry& e = *f.entry;
    std::vector<std::string> parts;
    if (!ShapeText(e).empty()) parts.push_back("Shape: " + Spoken(ShapeText(e), method_));
    const bool told = e.op_class != OpClass::kDecompose && e.op_class != OpClass::kView &&
                      e.dtype_rule != DTypeRule::kFixed;
    if (told) parts.push_back((parts.empty() ? "Dtype: " : "dtype: ") + DTypeText(e));
    return parts.empty() ? "Tensor." : StrCat("Tensor: ", Join(parts, "; "), ".");
  }

  const Model& model_;
  const PythonGroup& group_;
  const bool method_;
  std::vector<const PythonSignature*> signatures_;
};

}  // namespace

std::string PythonDocstring(const Model& model, const PythonGroup& group, bool method) {
  return Writer(model, group, method).Text();
}

}  // namespace mica::codegen
