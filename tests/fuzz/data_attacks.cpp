#include "executor/cpu/cpu_target.h"
#include "frontend/files/npy.h"
#include "frontend/files/safetensors.h"
#include "frontend/images/decode.h"
#include "frontend/readers/idx.h"
#include "frontend/readers/spec.h"
#include "ir/atomic_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/file_bytes.h"
#include "tests/support/image_files.h"
#include "tests/support/temp_dir.h"

namespace fluid::fuzz {
namespace {

Tensor random_tensor(Random& random) {
  static constexpr DType kDTypes[] = {f32, f64, f16, i64, i32, u8, i8, boolean};
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

/// Three splits of one image each.
std::string json_file(Random& random) {
  std::string image = "[0.5";
  for (int i = 1; i < 784; ++i) image += ",0." + std::to_string(below(random, 100));
  const std::string split = "[[" + image + "]],[" + std::to_string(below(random, 10)) + "]]";
  return "[" + split + "," + split + "," + split + "]";
}

std::string csv_file(Random& random) {
  std::string text = "a,b,\"label\"\n";
  for (size_t rows = below(random, 6); rows > 0; --rows) {
    for (int column = 0; column < 2; ++column) {
      text += std::to_string(static_cast<int64_t>(random()) >> below(random, 64)) + "e-3, ";
    }
    text += std::to_string(below(random, 10)) + (below(random, 2) == 0 ? "\n" : "\r\n");
  }
  return text;
}

/// Opens the data and reads an epoch of it, as training does.
void read_data(const std::string& spec) {
  Reader reader(open_data(spec).source, {.batch = 2, .shuffle_seed = 1});
  while (reader.next() != nullptr) continue;
}

/// Opens a file of damaged bytes by the SPEC `kind` + its path + `options`.
void read_damaged(const std::string& kind, const std::string& bytes, Random& random,
                  const std::string& options = "") {
  TempDir dir;
  write_plain(dir.file("damaged"), with_changed_bytes(bytes, random));
  read_data(kind + dir.file("damaged") + options);
}

void read_damaged_idx(Random& random) {
  TempDir dir;
  const std::string images = idx_images(static_cast<uint32_t>(below(random, 4)), 4);
  write_plain(dir.file("damaged"), with_changed_bytes(images, random));
  read_idx(dir.file("damaged"), 3);
}

/// Reads damaged gzipped MNIST files. The reader detects gzip by the content, not by the name.
void read_damaged_gz(Random& random) {
  TempDir dir;
  const std::string labels(below(random, 5), '\3');
  for (const auto& [name, bytes] :
       {std::pair("train-images-idx3-ubyte", idx_images(static_cast<uint32_t>(labels.size()))),
        std::pair("train-labels-idx1-ubyte", idx_labels(labels))}) {
    const std::string path = dir.file(name) + std::string(below(random, 2) == 0 ? ".gz" : "");
    write_gz(path, bytes);
    write_plain(path, with_changed_bytes(read_file(path), random));
  }
  read_data("mnist:" + dir.path());
}

/// Records of one label each, as they are or gzipped.
void read_damaged_cifar10(Random& random) {
  TempDir dir;
  std::string bytes;
  for (size_t n = below(random, 4); n > 0; --n) bytes += cifar10_record(char(below(random, 10)));
  const std::string path = dir.file("data_batch_1.bin");
  if (below(random, 2) == 0) {
    write_gz(path, bytes);
    bytes = read_file(path);
  }
  write_plain(path, with_changed_bytes(bytes, random));
  read_data("cifar10:" + dir.path());
}

void decode_damaged_image(Random& random) {
  const auto& files = image_goldens()["files"];
  const auto name = files[below(random, files.size())]["name"].get<std::string>();
  decode_image(with_changed_bytes(golden_image_file(name), random), "damaged");
}

void read_damaged_npz(Random& random) {
  const char* const name = below(random, 2) == 0 ? "savez" : "savez_compressed";
  const std::string memory = below(random, 2) == 0 ? "?memory=0" : "";
  read_damaged("npz:", bytes_of_hex(image_goldens()[name].get<std::string>()), random, memory);
}

/// A file in a tar archive.
std::string tar_member(const std::string& name, const std::string& bytes) {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  char size[32];
  std::snprintf(size, sizeof size, "%011zo", bytes.size());
  header.replace(124, 11, size);
  header[156] = '0';
  header.replace(257, 5, "ustar");
  header.replace(148, 8, 8, ' ');
  int sum = 0;
  for (const char c : header) sum += static_cast<uint8_t>(c);
  char checksum[16];
  std::snprintf(checksum, sizeof checksum, "%06o", sum);
  header.replace(148, 7, std::string(checksum, 7));
  return header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}

void read_damaged_tar(Random& random) {
  const std::string archive = tar_member("a.png", golden_image_file("rgb.png")) +
                              tar_member("a.cls", std::to_string(below(random, 30))) +
                              std::string(1024, '\0');
  read_damaged("tar:", archive, random);
}

/// Lines of objects, some of which have other keys.
void read_damaged_jsonl(Random& random) {
  std::string text;
  for (size_t lines = below(random, 5); lines > 0; --lines) {
    text += "{\"a\": [" + std::to_string(below(random, 100)) + ", 1.5e3], \"b\": \"c\"}\n";
  }
  std::string options = below(random, 2) == 0 ? "?memory=0" : "?memory=1";
  if (below(random, 3) == 0) options += "&missing=mean";
  read_damaged("jsonl:", text, random, options);
}

}  // namespace

std::vector<Attack> data_attacks() {
  return {
      {"safetensors",
       [](Random& random) {
         parse_safetensors(with_changed_bytes(safetensors_file(random), random), "damaged");
       }},
      {"npy", [](Random& random) { read_damaged("npy:x=", npy_file(random), random); }},
      {"idx", read_damaged_idx},
      {"gz", read_damaged_gz},
      {"cifar10", read_damaged_cifar10},
      {"json", [](Random& random) { read_damaged("mnist-json:", json_file(random), random); }},
      {"csv",
       [](Random& random) {
         std::string options = "?label=label";
         if (below(random, 2) == 0) options += "&classes=1";
         if (below(random, 2) == 0) options += "&memory=0";
         if (below(random, 3) == 0) options += "&normalize=1&missing=mean,b:drop";
         read_damaged("csv:", csv_file(random), random, options);
       }},
      {"image", decode_damaged_image},
      {"npz", read_damaged_npz},
      {"tar", read_damaged_tar},
      {"jsonl", read_damaged_jsonl},
      {"target",
       [](Random& random) {
         const std::string text = to_json(TargetDescription());
         target_from_json(with_changed_bytes(text, random), "damaged");
       }},
  };
}

}  // namespace fluid::fuzz
