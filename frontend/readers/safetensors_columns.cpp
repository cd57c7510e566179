// The kind of data "safetensors": tensors whose first dimension counts the samples.

#include "frontend/files/safetensors.h"
#include "frontend/readers/array_source.h"
#include "frontend/readers/kind.h"
#include "ir/error.h"

namespace fluid {
namespace {

SampleSourcePtr open_safetensors(const DataArgs& args) {
  const auto file = std::make_shared<FileBytes>(args.path());
  std::vector<ArrayColumn> columns;
  for (const TensorEntry& e : parse_safetensors_header(*file, args.path()).entries) {
    const std::string where = args.path() + ": tensor '" + e.name + "'";
    if (e.shape.empty()) {
      throw UserError(where + ": a column needs a first dimension that counts samples");
    }
    columns.push_back({.type = {e.name, e.dtype, {e.shape.begin() + 1, e.shape.end()}},
                       .samples = e.shape[0],
                       .file = file,
                       .offset = e.begin,
                       .file_name = where});
  }
  if (columns.empty()) throw UserError("'" + args.path() + "' holds no tensor");
  return make_array_source(std::move(columns), args, "safetensors:" + args.path());
}

}  // namespace

DataKind safetensors_kind() {
  return {.name = "safetensors",
          .usage = "safetensors:FILE",
          .doc = "the tensors of a safetensors file, one a column, like npy",
          .splits_rows = true,
          .options = {"memory"},
          .open_source = open_safetensors};
}

}  // namespace fluid
