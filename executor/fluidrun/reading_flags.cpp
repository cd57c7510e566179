#include "executor/fluidrun/reading_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <set>

#include "executor/comm/process_group.h"
#include "executor/fluidrun/flags.h"
#include "executor/fluidrun/help.h"
#include "executor/launcher/print_to.h"
#include "ir/number.h"

namespace fluid {

void add_reading_flags(CLI::App& command, ReadingFlags& flags) {
  begin_group(command, kDataGroup);
  add_workers_flag(
      command, flags.workers,
      "threads that read, decode and augment samples (default: 1 for data in memory, else the "
      "cores, at most 4); the batches do not depend on it");
  add_bad_record_flag(
      command, flags.on_bad_record,
      "what to do with a sample that cannot be read: stop, or skip: train on the next one instead, "
      "evaluate and predict without it, and report the number at the end");
}

void add_workers_flag(CLI::App& command, int& workers, const std::string& description) {
  command.add_option("--workers", workers, description)
      ->check([](const std::string& text) {
        const std::string error = validate_positive_integer(text);
        const bool is_too_large = error.empty() && *parse_number<int64_t>(text) > kMaxWorkers;
        return is_too_large ? fmt::format("must be {} at most, not {}", kMaxWorkers, text) : error;
      })
      ->type_name("N");
}

void add_bad_record_flag(CLI::App& command, std::string& value, const std::string& description) {
  command.add_option("--on-bad-record", value, description)
      ->check([](const std::string& text) {
        const bool known = text == "stop" || text == "skip";
        return known ? "" : "must be stop or skip, not " + text;
      })
      ->type_name("stop|skip")
      ->capture_default_str();
}

BadRecords bad_records_of(const ReadingFlags& flags, bool trains) {
  if (flags.on_bad_record == "stop") return BadRecords::stop;
  return trains ? BadRecords::skip : BadRecords::drop;
}

void print_absent_table(const LearnedTable& learned) {
  print_to(stderr, "there is no table {}: the columns of this data are learned\n", learned.file);
}

namespace {

void print_skipped_count(int64_t count, const std::string& first_error, const std::string& spec) {
  print_to(stderr, "data '{}': skipped {} bad record{}; the first: {}\n", spec, count,
           count == 1 ? "" : "s", first_error);
}

}  // namespace

void print_skipped_records(const Reader& reader, const std::string& spec) {
  const SkippedRecords skipped = reader.skipped();
  if (skipped.count > 0) print_skipped_count(skipped.count, skipped.errors.front(), spec);
}

void print_skipped_records(const Reader& reader, const std::string& spec, ProcessGroup& group) {
  // first, because the threads of the reader go on: skipped() counts at least these
  const std::set<int64_t> bad_samples = reader.bad_samples();
  const SkippedRecords skipped = reader.skipped();
  // Index of a bad record, in digits that sort like the number -> the error, of the first only.
  std::map<std::string, std::string> own;
  for (const int64_t sample : bad_samples) {
    own.emplace(fmt::format("{:020}", sample), own.empty() ? skipped.errors.front() : "");
  }
  const std::map<std::string, std::string> all = group.merge_by_lowest_rank(own);
  // All ranks count the same records that were left out when the data was opened.
  const int64_t count = skipped.count + std::ssize(all) - std::ssize(own);
  if (group.world().rank != 0 || count == 0) return;
  print_skipped_count(count, all.empty() ? skipped.errors.front() : all.begin()->second, spec);
}

}  // namespace fluid
