// The steps of LoadModel, in order; internal to the loader.
#pragma once

#include "codegen/model.h"
#include "codegen/yaml.h"

namespace mica::codegen {

// The keys of an entry.
const std::vector<std::string>& EntryKeys();

// load_native.cc: schema, forms, flags, names.
std::unique_ptr<Entry> ReadEntry(const YamlMap& map);
// load_native.cc: a schema, with its place in messages.
schema::FunctionSchema ReadSchema(const PlacedText& text);
// forms.cc: makes entry.functions from the functional (or in-place) schema.
void MakeForms(const YamlMap& map, schema::FunctionSchema schema, Entry* entry);
// class_spec.cc: `class:`, `dtype:`, `supports:`.
void ReadClass(const YamlMap& map, Entry* entry);
void ReadDType(const YamlMap& map, Entry* entry);
void ReadSupports(const YamlMap& map, Entry* entry);
// load_programs.cc: `compute`, `reduce`, `stages`, `map`, `index`.
void ReadPrograms(const YamlMap& map, Entry* entry);
// load_bodies.cc: an item `- def: schema`; then, with all operators known, every `body:`.
std::unique_ptr<Helper> ReadDefinition(const YamlMap& map, const Model& model);
void CheckBodies(Model* model, std::vector<std::string>* mistakes);
// view_copies.cc: the entry, as YAML, of the `_copy` operator of a view whose `copy:` is given.
std::string CopyOfView(const Entry& view, const std::string& copy);
// load_derivatives.cc
void ReadDerivatives(const std::shared_ptr<const SourceFile>& file, Model* model,
                     std::vector<std::string>* mistakes);
// load_tangents.cc: `tangent:` of a derivative (NULL where it has none), or what follows from the class.
TangentRule ReadTangentRule(const PlacedText* text, const Derivative& derivative, const Model& model);

// An argument's number; a Mistake that says what `what` is when there is none.
int ArgumentNumber(const Entry& entry, const std::string& name, const Location& where,
                   const std::string& what);

}  // namespace mica::codegen
