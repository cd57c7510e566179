#include "frontend/files/npy.h"
#include "frontend/files/safetensors.h"
#include "ir/atomic_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/temp_dir.h"

namespace fluid::fuzz {
namespace {

Tensor random_tensor(Random& random) {
  static constexpr DType kDTypes[] = {f32, f64, f16, i64, i32, u8, boolean};
  std::vector<int64_t> shape;
  for (size_t rank = below(random, 4); rank > 0; --rank) {
    shape.push_back(static_cast<int64_t>(below(random, 5)));
  }
  return Tensor(kDTypes[below(random, std::size(kDTypes))], shape);
}

std::string safetensors_file(Random& random) {
  TempDir dir;
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (size_t n = below(random, 4); n > 0; --n) {
    tensors.emplace_back("t" + std::to_string(n), random_tensor(random));
  }
  write_safetensors(dir.file("t.safetensors"), tensors, {{"made", "here"}});
  return read_file(dir.file("t.safetensors"));
}

std::string npy_file(Random& random) {
  TempDir dir;
  write_npy(dir.file("t.npy"), random_tensor(random));
  return read_file(dir.file("t.npy"));
}

}  // namespace

std::vector<Attack> data_attacks() {
  return {
      {"safetensors",
       [](Random& random) {
         parse_safetensors(with_changed_bytes(safetensors_file(random), random), "damaged");
       },
       1},
      {"npy",
       [](Random& random) { parse_npy(with_changed_bytes(npy_file(random), random), "damaged"); },
       1},
  };
}

}  // namespace fluid::fuzz
