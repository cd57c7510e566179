#pragma once

#include <string>

#include "frontend/readers/reader.h"

namespace CLI {
class App;
}

namespace fluid {

/// Options of the subcommands that read data in batches.
struct ReadingFlags {
  int workers = 0;                     ///< 0: ReaderOptions::workers chooses
  std::string on_bad_record = "stop";  ///< "stop" or "skip"
};

/// Adds --workers and --on-bad-record to the --help group "Data".
void add_reading_flags(CLI::App& command, ReadingFlags& flags);

/// Adds --on-bad-record, which sets `value` to "stop" or "skip".
void add_bad_record_flag(CLI::App& command, std::string& value, const std::string& description);

/// Treatment of bad records by data that is trained on, or that is evaluated.
BadRecords bad_records_of(const ReadingFlags& flags, bool trains);

/// Prints to stderr how many bad records of `spec` were skipped, and the error of the first one.
void report_skipped(const Reader& reader, const std::string& spec);

}  // namespace fluid
