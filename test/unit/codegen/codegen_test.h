// What the tests of codegen share: a model from texts.
#pragma once

#include <memory>
#include <string>

#include "codegen/model.h"
#include "test/support/mica_test.h"

namespace mica::codegen {

inline std::unique_ptr<const Model> LoadTexts(const std::string& native,
                                              const std::string& derivatives = "") {
  return LoadModel(SourceFile::FromText("native.yaml", native),
                   derivatives.empty() ? nullptr : SourceFile::FromText("derivatives.yaml", derivatives));
}

}  // namespace mica::codegen
