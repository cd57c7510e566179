#include "frontend/files/npy.h"
#include "frontend/files/safetensors.h"
#include "frontend/readers/idx.h"
#include "frontend/readers/spec.h"
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

/// Up to three images of 4x4 pixels.
std::string idx_file(Random& random) {
  const size_t images = below(random, 4);
  std::string bytes = {0, 0, 8, 3, 0, 0, 0, static_cast<char>(images), 0, 0, 0, 4, 0, 0, 0, 4};
  return bytes.append(16 * images, static_cast<char>(random()));
}

/// Three splits of one image each.
std::string json_file(Random& random) {
  std::string image = "[0.5";
  for (int i = 1; i < 784; ++i) image += ",0." + std::to_string(below(random, 100));
  const std::string split = "[[" + image + "]],[" + std::to_string(below(random, 10)) + "]]";
  return "[" + split + "," + split + "," + split + "]";
}

/// Hands the damaged bytes to a reader of files.
void read_damaged(const std::string& bytes, Random& random,
                  const std::function<void(const std::string& path)>& read) {
  TempDir dir;
  write_file_atomically(dir.file("damaged"), with_changed_bytes(bytes, random));
  read(dir.file("damaged"));
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
      {"idx",
       [](Random& random) {
         read_damaged(idx_file(random), random, [](const std::string& path) { read_idx(path, 3); });
       },
       1},
      {"json",
       [](Random& random) {
         read_damaged(json_file(random), random,
                      [](const std::string& path) { open_data("mnist-json:" + path); });
       },
       1},
  };
}

}  // namespace fluid::fuzz
