#include "frontend/files/npy.h"
#include "frontend/readers/kind.h"

namespace fluid {
namespace {

Dataset read_columns(const DataArgs& args) {
  Dataset data;
  data.source = "npy:" + args.path();
  std::string_view left = args.path();
  while (!left.empty()) {
    const std::string_view item = left.substr(0, left.find(','));
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) args.fail("write npy:COLUMN=FILE,COLUMN=FILE");
    Tensor tensor = read_npy(std::string(item.substr(equals + 1)));
    if (tensor.shape().empty()) args.fail("a column needs a first dimension that counts samples");
    data.columns.emplace_back(std::string(item.substr(0, equals)), std::move(tensor));
    left.remove_prefix(std::min(left.size(), item.size() + 1));
  }
  return data;
}

}  // namespace

DataKind npy_kind() {
  return {.name = "npy",
          .usage = "npy:COLUMN=FILE,COLUMN=FILE",
          .doc = "NumPy .npy arrays, one per column, with samples along the first dimension",
          .splits_rows = true,
          .options = {},
          .load = read_columns};
}

}  // namespace fluid
