// `fluidrun data`: describes the data of a SPEC. With --check, reads every sample.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "executor/fluidrun/command.h"
#include "executor/fluidrun/draw_image.h"
#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/fluidrun/inputs.h"
#include "executor/fluidrun/reading_flags.h"
#include "executor/launcher/print_to.h"
#include "frontend/readers/excerpt.h"
#include "frontend/readers/reader.h"
#include "frontend/readers/spec.h"
#include "ir/error.h"
#include "ir/stopwatch.h"
#include "ir/threads.h"

namespace fluid {
namespace {

/// Maximum number of samples to read without --check, evenly spread over the data.
constexpr int64_t kDescribedSamples = 1000;
/// Maximum number of classes, or of distinct values of a column, to list.
constexpr size_t kMaxListed = SkippedRecords::kMaxErrors;

struct DataFlags {
  std::string spec, split = "train";
  int64_t draw = 2, batch = kDefaultBatch;
  int workers = 0;
  bool check = false, rate = false;
  std::string on_bad_record = "stop";
  std::string cache_dir;
  bool skips() const { return on_bad_record == "skip"; }
};

/// Statistics of the values of a column.
struct ColumnSummary {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
  double sum = 0;
  int64_t values = 0, not_finite = 0;
  std::map<int64_t, int64_t> counts;  ///< value -> count, for a column of integer scalars

  void add(const Tensor& sample) {
    for (int64_t i = 0; i < sample.numel(); ++i) {
      const double value = sample.at(i);
      ++values;
      if (!std::isfinite(value)) {
        ++not_finite;
        continue;
      }
      least = std::min(least, value);
      most = std::max(most, value);
      sum += value;
    }
    if (sample.numel() == 1 && !is_float(sample.dtype())) ++counts[sample.integer(0)];
  }
  void add(const ColumnSummary& other) {
    least = std::min(least, other.least);
    most = std::max(most, other.most);
    sum += other.sum;
    values += other.values;
    not_finite += other.not_finite;
    for (const auto& [value, count] : other.counts) counts[value] += count;
  }
};

struct BadRecord {
  int64_t sample = 0;
  std::string error;
};

/// Statistics of the samples read from a source, and the records that could not be read.
struct Survey {
  std::vector<ColumnSummary> columns;
  std::vector<BadRecord> bad;  ///< sorted by sample index
  int64_t read = 0;            ///< number of samples read, including bad records
};

/// Reads single samples of a source into reused buffers.
class SampleBuffers {
 public:
  explicit SampleBuffers(const SampleSource& source)
      : source_(source), tensors_(sample_buffers(source.columns(), 1)) {}
  const std::vector<Tensor>& read(int64_t sample) {
    source_.read(sample, {}, sample_addresses(tensors_, 0));
    return tensors_;
  }

 private:
  const SampleSource& source_;
  std::vector<Tensor> tensors_;
};

/// Reads `samples` samples, evenly spread over the source, on several threads.
Survey survey(const SampleSource& source, int64_t samples, int workers) {
  Survey result{.columns = std::vector<ColumnSummary>(source.columns().size()), .read = samples};
  std::atomic<int64_t> next = 0;
  std::mutex mutex;
  const auto count = static_cast<size_t>(
      workers > 0 ? workers : std::max(1u, std::thread::hardware_concurrency()));
  run_on_threads(count, [&] {
    SampleBuffers buffers(source);
    std::vector<ColumnSummary> columns(source.columns().size());
    for (int64_t i = next++; i < samples; i = next++) {
      const int64_t sample = i * source.samples() / samples;
      try {
        const std::vector<Tensor>& values = buffers.read(sample);
        for (size_t c = 0; c < values.size(); ++c) columns[c].add(values[c]);
      } catch (const UserError& error) {
        const std::scoped_lock lock(mutex);
        result.bad.push_back({sample, error.what()});
      }
    }
    const std::scoped_lock lock(mutex);
    for (size_t c = 0; c < columns.size(); ++c) result.columns[c].add(columns[c]);
  });
  std::ranges::sort(result.bad, {}, &BadRecord::sample);
  return result;
}

/// Statistics and values of the first samples of a stream.
struct StreamSurvey {
  Survey survey;
  bool ended = false;                      ///< whether the end of the stream was reached
  std::vector<std::vector<Tensor>> shown;  ///< values of the first samples
};

/// Reads at most `samples` samples of a stream, and stores the values of the first `shown` samples.
/// Stops at a bad record.
StreamSurvey survey(SampleStream& stream, int64_t samples, int64_t shown) {
  StreamSurvey result{.survey = {.columns = std::vector<ColumnSummary>(stream.columns().size())}};
  int64_t& read = result.survey.read;
  std::vector<Tensor> values = sample_buffers(stream.columns(), 1);
  try {
    stream.open({});
    for (; read < samples && !result.ended; ++read) {
      if (!stream.next(sample_addresses(values, 0))) {
        result.ended = true;
        break;
      }
      for (size_t c = 0; c < values.size(); ++c) result.survey.columns[c].add(values[c]);
      if (read >= shown) continue;
      result.shown.emplace_back();
      for (const Tensor& value : values) result.shown.back().push_back(value.copy());
    }
  } catch (const UserError& error) {
    result.survey.bad.push_back({read++, error.what()});
  }
  return result;
}

/// Returns the range and mean of a column, and its number of non-finite values, as text.
std::string summary_text(const ColumnSummary& summary) {
  const int64_t finite = summary.values - summary.not_finite;
  std::string text = finite == 0
                         ? "no finite value"
                         : fmt::format("{:.6g} to {:.6g}, mean {:.6g}", summary.least, summary.most,
                                       summary.sum / static_cast<double>(finite));
  if (summary.not_finite > 0 && finite > 0) {
    text += fmt::format(", {} not finite", summary.not_finite);
  }
  return text;
}

/// Prints the numbers of rows in the training, validation and test splits.
void print_split(const SplitCounts& counts) {
  fmt::print("rows: {} to train, {} to validate, {} to test\n", counts.train, counts.validation,
             counts.test);
}

void print_columns(const SampleData& source, const Survey& survey) {
  size_t width = 0;
  for (const Column& column : source.columns()) width = std::max(width, column.str().size());
  for (size_t c = 0; c < survey.columns.size(); ++c) {
    fmt::print("  {:<{}}  {}\n", source.columns()[c].str(), width, summary_text(survey.columns[c]));
  }
}

/// Prints how often each value of an integer column occurs.
void print_counts(const SampleData& source, size_t column,
                  const std::map<int64_t, int64_t>& counts) {
  std::vector<std::string> texts;
  for (const auto& [value, count] : counts) texts.push_back(fmt::format("{} x {}", count, value));
  fmt::print("values of '{}': {}\n", source.columns()[column].name, fmt::join(texts, ", "));
}

void print_classes(const SampleData& source, const Survey& survey) {
  for (size_t c = 0; c < survey.columns.size(); ++c) {
    const std::vector<std::string> names = source.classes(source.columns()[c].name);
    const std::map<int64_t, int64_t>& counts = survey.columns[c].counts;
    if (names.empty()) {
      if (!counts.empty() && counts.size() <= kMaxListed) print_counts(source, c, counts);
      continue;
    }
    fmt::print("classes of '{}': {}\n", source.columns()[c].name, names.size());
    for (size_t i = 0; i < std::min(names.size(), kMaxListed); ++i) {
      const auto count = counts.find(static_cast<int64_t>(i));
      const int64_t samples = count == counts.end() ? 0 : count->second;
      fmt::print("  {} {}{}\n", i, excerpt(names[i]),
                 counts.empty() ? "" : fmt::format(": {} samples", samples));
    }
    if (names.size() > kMaxListed) fmt::print("  and {} more\n", names.size() - kMaxListed);
  }
}

/// Returns the bytes of a value as text; nullopt if they hold control characters.
std::optional<std::string> text_in(const Tensor& value) {
  if (value.dtype() != DType::u8 || value.shape().size() > 2 || value.numel() < 2) {
    return std::nullopt;
  }
  const std::string_view text(static_cast<const char*>(value.data()),
                              static_cast<size_t>(value.numel()));
  const bool readable = std::ranges::all_of(text, [](char c) {
    return static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\t' || c == '\r';
  });
  if (!readable) return std::nullopt;
  return "\"" + excerpt(text) + "\"";
}

/// Returns the first numbers of a value, and the names of the classes that they stand for.
std::string numbers_in(const Tensor& value, const std::vector<std::string>& classes) {
  constexpr int64_t kShown = 8;
  std::string text;
  const int64_t shown = std::min(value.numel(), kShown);
  for (int64_t i = 0; i < shown; ++i) {
    const std::string number = fmt::format("{:g}", value.at(i));
    text += (i > 0 ? " " : "") + number;
    const double id = value.at(i);
    if (is_float(value.dtype()) || id < 0 || id >= static_cast<double>(classes.size())) continue;
    const std::string& name = classes[static_cast<size_t>(id)];
    if (name != number) text += " '" + excerpt(name) + "'";
  }
  return value.numel() > shown ? text + " ..." : text;
}

/// Draws the images of a sample, and prints its location and its other values on one line.
void print_sample(const SampleData& data, int64_t sample, const std::vector<Tensor>& values) {
  std::string line = data.location(sample);
  for (size_t c = 0; const Tensor& value : values) {
    const std::string& name = data.columns()[c++].name;
    if (is_image(value)) {
      draw_image(value, 0);
    } else {
      const std::optional<std::string> text = text_in(value);
      line += fmt::format("  [{} {}]", name, text ? *text : numbers_in(value, data.classes(name)));
    }
  }
  fmt::print("{}\n", line);
}

void print_samples(const SampleSource& source, int64_t count) {
  SampleBuffers buffers(source);
  for (int64_t sample = 0; sample < std::min(count, source.samples()); ++sample) {
    try {
      print_sample(source, sample, buffers.read(sample));
    } catch (const UserError& error) {
      fmt::print("{}\n", error.what());
    }
  }
}

/// Reads an epoch in batches, as training does, and prints the samples per second.
void print_rate(const DataSource& data, const DataFlags& flags) {
  ReaderOptions options = {.batch = flags.batch,
                           .workers = flags.workers,
                           .bad_records = flags.skips() ? BadRecords::drop : BadRecords::stop,
                           .shuffle_buffer = data.shuffle_buffer};
  if (data.source != nullptr || data.shuffle_buffer > 0) options.shuffle_seed = 0;
  Reader reader = data.reader(options);
  int64_t samples = 0;
  const Stopwatch watch;
  for (const Batch& batch : reader) samples += batch.size;
  const double seconds = watch.ms() / 1000;
  fmt::print("{} samples in {:.3g} s: {:.0f} samples/s in batches of {}\n", samples, seconds,
             static_cast<double>(samples) / seconds, flags.batch);
  print_skipped_records(reader, flags.spec);
}

/// Returns the number of rows of `data`, which is no stream, in all splits.
int64_t rows_of_all_splits(const DataSource& data) {
  if (!data.split_counts) return data.source->samples();
  return data.split_counts->train + data.split_counts->validation + data.split_counts->test;
}

/// Prints the errors of bad records to stderr, and the number of bad records to stdout. Returns the
/// exit code: 1 if a record is bad, unless --on-bad-record is "skip". `bad`: the records that were
/// left out when the data was opened. `read`: the number of records that were read, good or bad.
int report_bad_records(const DataFlags& flags, SkippedRecords bad, int64_t read,
                       const Survey& survey) {
  if (!flags.check && bad.count == 0 && survey.bad.empty()) return 0;
  for (const BadRecord& record : survey.bad) bad.add(record.error);
  for (const std::string& error : bad.errors) print_to(stderr, "{}\n", error);
  fmt::print("{} of {} samples cannot be read\n", bad.count, read);
  return bad.count == 0 || flags.skips() ? 0 : 1;
}

int describe(const DataFlags& flags, const DataSource& data) {
  const SampleSource& source = *data.source;
  const int64_t samples = source.samples();
  const int64_t described = flags.check ? samples : std::min(samples, kDescribedSamples);
  const Survey found = survey(source, described, flags.workers);
  fmt::print("{}: {} samples{}\n", flags.spec, samples,
             described < samples ? fmt::format("; of {} of them:", described) : "");
  if (data.split_counts) print_split(*data.split_counts);
  print_columns(source, found);
  print_classes(source, found);
  print_samples(source, flags.draw);
  const SkippedRecords left_out = source.skipped();  // of the rows of all splits
  const int64_t read = left_out.count > 0 ? rows_of_all_splits(data) + left_out.count : found.read;
  return report_bad_records(flags, left_out, read, found);
}

int describe_stream(const DataFlags& flags, SampleStream& stream) {
  const int64_t most = flags.check ? std::numeric_limits<int64_t>::max() : kDescribedSamples;
  const StreamSurvey found = survey(stream, most, flags.draw);
  const int64_t good = found.survey.read - std::ssize(found.survey.bad);
  fmt::print("{}: a stream{} {} samples\n", flags.spec, found.ended ? " of" : "; its first", good);
  print_columns(stream, found.survey);
  print_classes(stream, found.survey);
  for (size_t i = 0; i < found.shown.size(); ++i) {
    print_sample(stream, static_cast<int64_t>(i), found.shown[i]);
  }
  return report_bad_records(flags, {}, found.survey.read, found.survey);
}

int run(const DataFlags& flags) {
  const bool leaves_out_bad_records = flags.check || flags.skips();
  const DataSource data =
      open_data(flags.spec, flags.split,
                {.bad_records = leaves_out_bad_records ? BadRecords::drop : BadRecords::stop,
                 .cache_dir = flags.cache_dir,
                 .on_learned_table = print_absent_table});
  // A stream cannot skip bad records: data.reader() throws UserError.
  if (data.stream != nullptr && flags.skips()) data.reader({.bad_records = BadRecords::drop});
  if (flags.check) data.data().check_files();
  if (flags.rate) {
    print_rate(data, flags);
    return 0;
  }
  return data.stream != nullptr ? describe_stream(flags, *data.stream) : describe(flags, data);
}

}  // namespace

void add_data(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("data", "Describe data: columns, ranges, classes, a few samples");
  const auto flags = std::make_shared<DataFlags>();
  begin_group(*command, kDataGroup);
  command->add_option("spec", flags->spec, "the data to describe")->type_name("")->required();
  command
      ->add_option("--split", flags->split, "which split: train, val or test, if SPEC does not say")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_flag(
      "--check", flags->check,
      "read every sample, and verify the checksums of files that have some; list the samples that "
      "cannot be read, and exit with 1 if any, unless --on-bad-record skips them");
  add_bad_record_flag(*command, flags->on_bad_record,
                      "what to do with a sample that cannot be read: stop, where the data cannot "
                      "be opened with it, and exit with 1; or skip: describe the others, and "
                      "report the number at the end");
  command->add_option("--draw", flags->draw, "print the first N samples, with their images")
      ->check(validate_nonnegative_integer)
      ->type_name("N")
      ->capture_default_str();
  CLI::Option* rate = command->add_flag(
      "--rate", flags->rate, "only read one epoch in batches, and print the samples per second");
  command->add_option("--batch", flags->batch, "samples per batch of --rate")
      ->check(validate_positive_integer)
      ->needs(rate)
      ->type_name("N")
      ->capture_default_str();
  add_workers_flag(*command, flags->workers, "threads that read samples (default: all cores)");
  begin_group(*command, kDeviceGroup);
  add_cache_flag(*command, flags->cache_dir);
  command->footer("Examples:\n  fluidrun data digits --check --draw 1\n\n" + data_help());
  command->callback([&action, flags] { action = [flags] { return run(*flags); }; });
}

}  // namespace fluid
