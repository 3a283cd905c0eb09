// `class:` with its arguments, `dtype:` and `supports:`.
#include <algorithm>
#include <map>
#include <optional>

#include "codegen/expr/opcodes.h"
#include "codegen/load.h"
#include "codegen/syntax/parser.h"
#include "codegen/text.h"
#include "tensor/dtype.h"

namespace mica::codegen {
namespace {

using syntax::Node;
using syntax::NodeKind;

// Which keys a class takes in parentheses.
const std::vector<std::string>& Keys(OpClass c) {
  static const std::map<OpClass, std::vector<std::string>> keys = {
      {OpClass::kReduction, {"dims", "dim", "keepdim", "none"}},
      {OpClass::kScan, {"dim"}},
      {OpClass::kRow, {"dim", "dims"}},
      {OpClass::kWindow, {"kernel", "stride", "pad", "dilation", "output_size"}},
      {OpClass::kGather, {"dim", "dims", "index", "replace", "bounds", "fill", "none"}},
      {OpClass::kScatter, {"dim", "dims", "index", "replace", "source", "bounds"}},
      {OpClass::kView, {"dims", "dim"}},
      {OpClass::kFold, {"dim", "join"}},
  };
  static const std::vector<std::string> none;
  const auto it = keys.find(c);
  return it == keys.end() ? none : it->second;
}

std::vector<std::string> ClassNames() {
  std::vector<std::string> names;
  for (int c = 0; c < kOpClassCount; ++c) names.push_back(Name(static_cast<OpClass>(c)));
  return names;
}

// What stands in the class's parentheses, key by key.
void ReadClassArgument(const PlacedText& text, const std::string& key, const Node& value, Entry* entry) {
  const Location where = text.At(value.begin);
  const std::string class_name = Name(entry->op_class);
  const std::vector<std::string>& keys = Keys(entry->op_class);
  if (std::find(keys.begin(), keys.end(), key) == keys.end())
    throw Mistake(where, StrCat("Class ", class_name, " has no argument (", key, ")", DidYouMean(key, keys),
                                "; expected ", keys.empty() ? "none" : JoinNames(keys), "."));
  const std::string what = StrCat("`", key, "` of class ", class_name);
  if (key == "none" && entry->op_class == OpClass::kGather) {
    if (value.text != "flat")
      throw Mistake(where, StrCat("Argument `none` of class gather is (", value.text, "); expected flat."));
    entry->none_is_flat = true;
    return;
  }
  if (key == "none") {
    if (value.text != "all" && value.text != "error")
      throw Mistake(where, StrCat("Argument `none` of class ", class_name, " is (", value.text,
                                  "); expected all or error."));
    entry->none_is_all = value.text == "all";
    return;
  }
  if (key == "join") {
    static constexpr const char* kWords[] = {"along", "new", "diagonal"};  // MICA_JOIN_...
    for (int i = 0; i < 3; ++i)
      if (value.text == kWords[i]) entry->join = i;
    if (entry->join < 0)
      throw Mistake(where, StrCat("Argument `join` of class fold is (", value.text,
                                  "); expected along, new or diagonal."));
    return;
  }
  if (key == "bounds") {
    static constexpr const char* kWords[] = {"error", "fill", "runtime"};  // MICA_BOUNDS_...
    for (int i = 0; i < 3; ++i)
      if (value.text == kWords[i]) entry->bounds = i;
    if (value.text != kWords[entry->bounds])
      throw Mistake(where, StrCat("Argument `bounds` of class ", class_name, " is (", value.text,
                                  "); expected error, fill or runtime."));
    return;
  }
  if (value.kind == NodeKind::kList) {
    for (const Node& item : value.children)
      entry->view_dim_args.push_back(ArgumentNumber(*entry, item.text, text.At(item.begin), what));
    return;
  }
  if (value.kind == NodeKind::kInt) {
    if (key == "dim") entry->fixed_dim = static_cast<int>(value.i);
    return;
  }
  const int number = ArgumentNumber(*entry, value.text, where, what);
  entry->class_args[key] = number;
  if (key == "dim" || key == "dims") entry->dims_arg = number;
  if (key == "keepdim") entry->keepdim_arg = number;
  if (entry->op_class == OpClass::kView) entry->view_dim_args.push_back(number);
  if (entry->op_class == OpClass::kRow) entry->trailing_dims = key == "dims";
}

}  // namespace

int ArgumentNumber(const Entry& entry, const std::string& name, const Location& where,
                   const std::string& what) {
  const schema::FunctionSchema& schema = entry.primary().schema;
  const int number = schema.FindArgument(name);
  if (number >= 0) return number;
  std::vector<std::string> names;
  for (const schema::Argument& a : schema.arguments) names.push_back(a.name);
  throw Mistake(where, StrCat("Name (", name, ") in ", what, " is no argument of ", entry.base_name,
                              DidYouMean(name, names), "; expected one of ", JoinNames(names), "."));
}

void ReadClass(const YamlMap& map, Entry* entry) {
  if (!map.has("class"))
    throw Mistake(map.Where(), StrCat("Entry of ", entry->base_name, " has no `class`; expected one of ",
                                      JoinNames(ClassNames()), "."));
  const PlacedText text = map.Placed("class");
  const Node node = syntax::Parse(text);
  const bool is_word = node.kind == NodeKind::kName || node.kind == NodeKind::kCall;
  const std::optional<OpClass> found = is_word ? OpClassNamed(node.text) : std::nullopt;
  if (!found)
    throw Mistake(text.At(node.begin), StrCat("Class (", node.text.empty() ? text.text() : node.text,
                                              ") is unknown", DidYouMean(node.text, ClassNames()),
                                              "; expected one of ", JoinNames(ClassNames()), "."));
  entry->op_class = *found;
  const std::string class_name = Name(*found);
  entry->class_text = text.text();
  for (size_t i = 0; i < node.children.size(); ++i) {
    const Node& value = node.children[i];
    if (!node.keywords[i].empty()) {
      ReadClassArgument(text, node.keywords[i], value, entry);
    } else if (entry->op_class == OpClass::kReduction && value.text == "all") {
      entry->reduce_all = true;
    } else if (entry->op_class == OpClass::kContraction && value.kind == NodeKind::kString) {
      entry->equation = value.text;
    } else if (value.kind == NodeKind::kName && entry->op_class != OpClass::kDecompose) {
      throw Mistake(text.At(value.begin), StrCat("Class ", class_name, " gets a bare argument (", value.text,
                                                 "); expected `key=argument`."));
    }
  }
  const bool needs_dim = entry->op_class == OpClass::kScan || entry->op_class == OpClass::kRow ||
                         entry->op_class == OpClass::kReduction;
  if (needs_dim && entry->dims_arg < 0 && !entry->reduce_all)
    throw Mistake(text.At(0), StrCat("Class ", class_name, " does not say along which dimension; expected ",
                                     entry->op_class == OpClass::kReduction
                                         ? "`reduction(dims=<argument>)` or `reduction(all)`."
                                         : StrCat("`", class_name, "(dim=<argument>)`.")));
}

void ReadDType(const YamlMap& map, Entry* entry) {
  const bool is_promoting = entry->op_class == OpClass::kPointwise;
  entry->dtype_rule = is_promoting ? DTypeRule::kPromote : DTypeRule::kSame;
  const int dtype_arg = entry->primary().schema.FindArgument("dtype");
  if (entry->op_class == OpClass::kFactory && dtype_arg >= 0) {
    entry->dtype_rule = DTypeRule::kArgument;
    entry->dtype_arg = dtype_arg;
  }
  if (!map.has("dtype")) return;
  const PlacedText text = map.Placed("dtype");
  for (int i = 0; i < static_cast<int>(DTypeRule::kFixed); ++i) {  // those that are one word
    const DTypeRule rule = static_cast<DTypeRule>(i);
    if (text.text() != Name(rule)) continue;
    entry->dtype_rule = rule;
    entry->dtype_arg = rule == DTypeRule::kAccumulate ? dtype_arg : -1;
    return;
  }
  if (std::string_view(text.text()).starts_with("arg(") && text.text().ends_with(")")) {
    const std::string name(Trim(std::string_view(text.text()).substr(4, text.text().size() - 5)));
    entry->dtype_rule = DTypeRule::kArgument;
    entry->dtype_arg = ArgumentNumber(*entry, name, text.At(4), "`dtype`");
    return;
  }
  const std::optional<DType> fixed = DTypeFromName(text.text());
  if (!fixed)
    throw Mistake(text.At(0), StrCat("Dtype rule (", text.text(),
                                     ") is unknown; expected promote, float, bool, same, index, real, "
                                     "complex, accumulate, arg(<argument>) or the name of a dtype."));
  entry->dtype_rule = DTypeRule::kFixed;
  entry->fixed_dtype = static_cast<int>(*fixed);
}

void ReadSupports(const YamlMap& map, Entry* entry) {
  entry->supports = 0x1f;
  if (!map.has("supports")) return;
  entry->supports = 0;
  for (const PlacedText& kind : map.Texts("supports")) {
    if (kind.text() == "bool")
      entry->supports |= 1;
    else if (kind.text() == "int")
      entry->supports |= 6;
    else if (kind.text() == "float")
      entry->supports |= 8;
    else if (kind.text() == "complex")
      entry->supports |= 16;
    else
      throw Mistake(kind.At(0), StrCat("Dtype kind (", kind.text(),
                                       ") is unknown; expected bool, int, float or complex."));
  }
  if (entry->supports == 0)
    throw Mistake(map.WhereValue("supports"),
                  "`supports` is empty; expected at least one of bool, int, float and complex.");
}

}  // namespace mica::codegen
