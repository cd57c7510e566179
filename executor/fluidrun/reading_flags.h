#pragma once

#include <string>

#include "frontend/readers/reader.h"

namespace CLI {
class App;
}

namespace fluid {

class ProcessGroup;

/// Options of the subcommands that read data in batches.
struct ReadingFlags {
  int workers = 0;                     ///< ReaderOptions::workers; 0: the default
  std::string on_bad_record = "stop";  ///< "stop" or "skip"
  std::string cache_dir = {};          ///< OpenOptions::cache_dir
};

/// Adds --workers and --on-bad-record to the --help group "Data".
void add_reading_flags(CLI::App& command, ReadingFlags& flags);

/// Adds --workers, which sets `workers`.
void add_workers_flag(CLI::App& command, int& workers, const std::string& description);

/// Adds --on-bad-record, which sets `value` to "stop" or "skip".
void add_bad_record_flag(CLI::App& command, std::string& value, const std::string& description);

/// Converts the value of --on-bad-record to BadRecords. `trains`: whether the data is for training.
BadRecords bad_records_of(const ReadingFlags& flags, bool trains);

/// Prints to stderr that the FILE of option table=FILE is absent. For a learned table that is not
/// written.
void print_absent_table(const LearnedTable& learned);

/// Prints to stderr the number of skipped bad records in the data `spec`, and the first error.
void print_skipped_records(const Reader& reader, const std::string& spec);
/// Collective. Like the function above, for the batches of all ranks. Prints on rank 0.
void print_skipped_records(const Reader& reader, const std::string& spec, ProcessGroup& group);

}  // namespace fluid
