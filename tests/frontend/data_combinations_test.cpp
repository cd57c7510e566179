// Random combinations of kinds of data, options, stages and reader options. The number of ranks and
// of workers, and whether the data is in memory, change no batch. A resume with another batch size
// changes neither the samples nor their order.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "frontend/files/npy.h"
#include "frontend/files/safetensors.h"
#include "frontend/readers/reader.h"
#include "frontend/readers/spec.h"
#include "tests/support/draw.h"
#include "tests/support/full_run.h"
#include "tests/support/image_files.h"
#include "tests/support/temp_dir.h"

namespace fluid::data_combinations_test {
namespace {

using testing::Draw;

constexpr int64_t kSamples = 41;
constexpr int64_t kEpochs = 2;

/// Values of `shape` that repeat after 251 elements.
template <class T>
Tensor counting(std::vector<int64_t> shape, int64_t values) {
  Tensor tensor(dtype_of<T>(), std::move(shape));
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    tensor.as<T>()[static_cast<size_t>(i)] = static_cast<T>(i * 37 % 251 % values);
  }
  return tensor;
}

/// Files of all formats, most of them with kSamples samples.
class DataFiles {
 public:
  DataFiles() {
    write_text();
    const Tensor x = counting<float>({kSamples, 3}, 251), y = counting<int64_t>({kSamples}, 4);
    const Tensor image = counting<uint8_t>({kSamples, 3, 24, 25}, 251);
    write_npy(dir_.file("x.npy"), x);
    write_npy(dir_.file("y.npy"), y);
    write_npy(dir_.file("image.npy"), image);
    write_safetensors(dir_.file("t.safetensors"), {{"x", x}, {"y", y}});
    write_images();
  }
  std::string file(const std::string& name) const { return dir_.file(name); }

 private:
  void write_text() {
    std::string csv = "a,b,n,color,part,y\n", jsonl, text;
    for (int64_t i = 0; i < kSamples; ++i) {
      const std::string a = std::to_string(i) + ".25", y = std::to_string(i % 4);
      const std::string color = i % 3 == 0 ? "red" : i % 3 == 1 ? "green" : "\"deep, blue\"";
      const std::string part = i % 5 == 0 ? "val" : i % 7 == 0 ? "test" : "train";
      csv += a + "," + (i % 6 == 0 ? "" : std::to_string(-i)) + "," + std::to_string(i * i) + "," +
             color + "," + part + "," + y + "\n";
      jsonl += R"({"x": [)" + a + ", 0.5], \"color\": \"c" + std::to_string(i % 3) +
               R"(", "part": ")" + part + R"(", "y": )" + y + "}\n";
      text += "line " + std::to_string(i * i) + "\n";
    }
    write_plain(dir_.file("t.csv"), csv);
    write_plain(dir_.file("t.jsonl"), jsonl);
    write_plain(dir_.file("t.txt"), text);
  }

  /// Directories "images" and "some_damaged" of classes, and a tar archive.
  void write_images() {
    std::filesystem::create_directories(dir_.file("tar"));
    for (const char* folder : {"images", "some_damaged"}) {
      for (int64_t i = 0; i < kSamples; ++i) {
        const std::string name = i % 3 == 0 ? "420.jpg" : i % 3 == 1 ? "palette.png" : "gray.jpg";
        std::string bytes = golden_image_file(name);
        const std::string ending = name.substr(name.rfind('.'));
        const std::string key = std::to_string(100 + i);
        const std::string path = dir_.file(std::string(folder) + "/" + std::to_string(i % 4));
        std::filesystem::create_directories(path);
        const bool is_damaged = folder == std::string("some_damaged") && i % 9 == 4;
        write_plain(path + "/" + key + ending, is_damaged ? bytes.substr(0, 200) : bytes);
        write_plain(dir_.file("tar/" + key + ending), bytes);
        write_plain(dir_.file("tar/" + key + ".cls"), std::to_string(i % 4));
      }
    }
    const std::string pack =
        "cd " + dir_.file("tar") + " && tar --sort=name --format=ustar -cf ../t.tar *";
    EXPECT_EQ(std::system(pack.c_str()), 0);
  }

  TempDir dir_;
};

/// The data of one combination, and how its readers treat bad records.
struct Drawn {
  std::string spec;
  std::string on_disk = {};  ///< a SPEC of the same data, which is read from disk; empty: none
  std::string split = "train";
  bool is_mixed = false;  ///< by mixup or cutmix, which depend on the batch
  bool is_stream = false;
  BadRecords bad_records = BadRecords::stop;
};

/// Options of a SPEC, from "?" on.
std::string options_of(const std::vector<std::string>& options) {
  std::string text;
  for (const std::string& option : options) text += (text.empty() ? "?" : "&") + option;
  return text;
}

/// Stages of images of `channels` channels and at least 20 x 20 pixels, with their labels.
std::string stages(Draw& draw, int channels, Drawn& drawn) {
  std::string text;
  const auto maybe = [&](const std::string& stage) {
    if (draw.one_in(3)) text += "|" + stage;
  };
  if (draw.one_in(2)) text += draw.one_of<std::string>({"|resize=24x22", "|resized_crop=22"});
  maybe("pad=" + draw.one_of<std::string>({"1", "2:1,mode=reflect", "1,fill=9"}));
  maybe(draw.one_of<std::string>({"crop=20", "center_crop=19x20"}));
  maybe(draw.one_of<std::string>({"flip", "flip=0.7", "vflip"}));
  maybe("rotate=20");
  if (channels == 3) maybe("color_jitter,brightness=0.4,hue=0.1,contrast=0.2");
  maybe("erase=0.6");
  if (draw.one_in(3)) {
    text += channels == 3 ? "|normalize,mean=0.4:0.5:0.6,std=0.2:0.2:0.3"
                          : "|normalize,mean=0.5,std=0.3";
  }
  if (!draw.one_in(3)) return text;
  const std::string last = draw.one_of<std::string>({"mixup=0.4", "cutmix=1", "one_hot"});
  drawn.is_mixed = last != "one_hot";
  return text + "|" + last + ",classes=10";
}

Drawn drawn_data(Draw& draw, const DataFiles& files, uint64_t kind) {
  Drawn drawn;
  std::vector<std::string> options;
  bool splits_rows = true, has_memory_option = true;
  std::string start, after;
  switch (kind) {
    case 0:
      start = "csv:" + files.file("t.csv");
      options = {"label=y", "categories=color"};
      options.push_back("missing=" + draw.one_of<std::string>({"mean", "0.5", "drop"}));
      if (draw.one_in(2)) options.push_back("integers=n");
      if (draw.one_in(2)) options.push_back("classes=1");
      if (draw.one_in(2)) options.push_back("normalize=1");
      options.push_back(draw.one_in(2) ? "split=part" : "drop=part");
      splits_rows = options.back() == "drop=part";
      break;
    case 1:
      start = "jsonl:" + files.file("t.jsonl");
      if (draw.one_in(2)) {
        options.push_back("split=part:val");
        splits_rows = false;
      }
      break;
    case 2:
      start = "npy:x=" + files.file("x.npy") + ",y=" + files.file("y.npy");
      break;
    case 3:
      start = "npy:image=" + files.file("image.npy") + ",label=" + files.file("y.npy");
      after = stages(draw, 3, drawn);
      break;
    case 4:
      start = "safetensors:" + files.file("t.safetensors");
      break;
    case 5:
      start = "text:" + files.file("t.txt");
      options = {"length=8", "stride=5"};
      if (draw.one_in(2)) options.push_back("characters");
      has_memory_option = options.back() != "characters";
      splits_rows = false;
      break;
    case 6:
      start = "digits";
      options = {"n=" + std::to_string(kSamples), "seed=3"};
      after = stages(draw, 1, drawn);
      splits_rows = has_memory_option = false;
      break;
    case 7: {
      const bool some_damaged = draw.one_in(2);
      start = "folder:" + files.file(some_damaged ? "some_damaged" : "images");
      after = stages(draw, 3, drawn);
      has_memory_option = false;
      if (!some_damaged) break;
      drawn.bad_records = drawn.is_mixed || draw.one_in(2) ? BadRecords::skip : BadRecords::drop;
      break;
    }
    case 8:
      start = "tar:" + files.file("t.tar");
      after = stages(draw, 3, drawn);
      has_memory_option = false;
      break;
    default:
      start = "pipe:cat " + files.file("image.npy") + " " + files.file("y.npy");
      options = {"columns=image,label"};
      drawn.is_stream = draw.one_in(2);
      if (drawn.is_stream) {
        options.push_back("stream");
        drawn.split = "";
      }
      after = stages(draw, 3, drawn);
      if (drawn.is_stream && drawn.is_mixed) {
        after.resize(after.rfind('|'));
        drawn.is_mixed = false;
      }
      splits_rows = !drawn.is_stream;
      has_memory_option = !drawn.is_stream;
      break;
  }
  if (splits_rows && draw.one_in(2)) options.push_back("val=0.4");
  if (draw.one_in(4)) options.push_back("limit=" + std::to_string(10 + draw.below(8)));
  if (!drawn.is_stream && draw.one_in(4)) drawn.split = "test";
  drawn.spec = start + options_of(options) + after;
  options.push_back("memory=0");
  if (has_memory_option) drawn.on_disk = start + options_of(options) + after;
  return drawn;
}

/// The bytes of each column.
using Bytes = std::map<std::string, std::string>;

void append(const Batch& batch, Bytes& to) {
  for (const auto& [name, column] : batch.columns) {
    to[name].append(static_cast<const char*>(column.data()), static_cast<size_t>(column.bytes()));
  }
}

struct Run {
  std::vector<Bytes> batches;                  ///< of all ranks together
  std::vector<ReaderPosition> positions = {};  ///< after each batch
};

/// Reads batches of `world` ranks until kEpochs epochs are complete.
Run read(const Drawn& drawn, const std::string& spec, ReaderOptions options,
         std::optional<ReaderPosition> start = {}) {
  std::vector<Reader> readers;
  const DataSource data = open_data(spec, drawn.split.empty() ? "train" : drawn.split);
  options.bad_records = drawn.bad_records;
  for (options.rank = 0; options.rank < options.world; ++options.rank) {
    readers.push_back(drawn.is_stream ? open_data(spec).reader(options) : data.reader(options));
    if (start) readers.back().seek(*start);
  }
  Run run;
  while (readers[0].position().epoch < kEpochs) {
    Bytes whole;
    bool is_end = false;
    for (Reader& reader : readers) {
      const Batch* batch = reader.next();
      is_end = batch == nullptr;
      if (!is_end) append(*batch, whole);
      EXPECT_EQ(reader.position(), readers[0].position());
    }
    if (is_end) continue;
    run.batches.push_back(std::move(whole));
    run.positions.push_back(readers[0].position());
  }
  return run;
}

bool has_full_batch(const Drawn& drawn, int64_t size) {
  return drawn.is_stream || open_data(drawn.spec, drawn.split).source->samples() >= size;
}

Bytes joined(std::span<const Bytes> batches) {
  Bytes all;
  for (const Bytes& batch : batches) {
    for (const auto& [name, bytes] : batch) all[name] += bytes;
  }
  return all;
}

const DataFiles& files() {
  static const DataFiles written;
  return written;
}

constexpr uint64_t kKinds = 10;

void check(uint64_t seed) {
  Draw draw(seed);
  const Drawn drawn = drawn_data(draw, files(), seed % kKinds);
  constexpr int64_t kGlobalBatch = 6;
  ReaderOptions options = {.batch = kGlobalBatch, .workers = 1};
  if (draw.one_in(2)) options.shuffle_seed = 5;
  if (options.shuffle_seed && drawn.is_stream) options.shuffle_buffer = 9;
  options.drop_last = draw.one_in(3) && has_full_batch(drawn, kGlobalBatch);
  const Run one = read(drawn, drawn.spec, options);
  ASSERT_FALSE(one.batches.empty());

  ReaderOptions other = options;
  other.world = draw.one_of<int>({1, 2, 3});
  other.batch = kGlobalBatch / other.world;
  other.workers = draw.one_of<int>({1, 2, 3});
  const auto resumed_at = static_cast<size_t>(draw.below(std::ssize(one.batches)));
  SCOPED_TRACE("seed " + std::to_string(seed) + ": " + drawn.spec + ", split " + drawn.split +
               ", " + std::to_string(other.world) + " ranks, " + std::to_string(other.workers) +
               " workers, resumed after batch " + std::to_string(resumed_at));
  EXPECT_EQ(read(drawn, drawn.spec, other).batches, one.batches) << "ranks and workers";
  if (!drawn.on_disk.empty()) {
    EXPECT_EQ(read(drawn, drawn.on_disk, other).batches, one.batches) << "on disk";
  }

  const std::span<const Bytes> rest = std::span(one.batches).subspan(resumed_at + 1);
  const Run resumed = read(drawn, drawn.spec, other, one.positions[resumed_at]);
  EXPECT_EQ(resumed.batches, std::vector<Bytes>(rest.begin(), rest.end())) << "resumed";
  if (drawn.is_mixed || options.drop_last) return;
  other.batch = 1 + draw.below(7);
  EXPECT_EQ(joined(read(drawn, drawn.spec, other, one.positions[resumed_at]).batches), joined(rest))
      << "resumed with batches of " << other.batch;
}

class DataCombinations : public ::testing::TestWithParam<uint64_t> {};

TEST_P(DataCombinations, BatchesDoNotDependOnRanksWorkersOrStorage) {
  const uint64_t seeds = testing::is_full_run() ? 400 : 20;
  for (uint64_t seed = 0; seed < seeds; ++seed) check(GetParam() + kKinds * seed);
}

// Each case draws from one kind of data.
INSTANTIATE_TEST_SUITE_P(Kinds, DataCombinations, ::testing::Range(uint64_t{0}, kKinds));

}  // namespace
}  // namespace fluid::data_combinations_test
