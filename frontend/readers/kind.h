#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/readers/column_table.h"
#include "frontend/readers/sample_source.h"
#include "frontend/readers/sample_stream.h"

namespace fluid {

/// Options of open_data().
struct OpenOptions {
  /// Whether open_data() throws for a record that cannot be read, such as a malformed line, or
  /// skips the record. See SampleData::skipped().
  BadRecords bad_records = BadRecords::stop;
  /// Table of the training data: SampleData::table(), or ColumnTable::read() of a parameter file.
  /// Data is read with the columns, categories, means and standard deviations of the table. Options
  /// in the SPEC override those of the table. The kinds csv, jsonl, folder and text use a table of
  /// the same kind, unless the SPEC has the option table=none or table=FILE; if FILE is absent,
  /// training rows are read by the table. Other kinds ignore the table. Null: no table.
  ColumnTablePtr training_table = nullptr;
  /// For data that is produced while it is read, such as pipe: open_data() starts this pass to
  /// learn the columns. `rank` and `world` must be those of this process.
  StreamPass first_pass = {};
  /// Directory in which the kinds csv and jsonl keep what they found when they scanned a file that
  /// is not read into memory, so that it is not scanned again. Empty: no cache.
  std::string cache_dir = {};
  /// File to which the caller will write `training_table`. With option table=FILE, data is read by
  /// `training_table` if FILE is this file and is absent. Empty: none.
  std::string training_table_file = {};
  /// Receives the table that is used because the FILE of option table=FILE is absent, after the
  /// data was opened. The callee may write it. Null: open_data() writes a table of training rows to
  /// FILE.
  std::function<void(const LearnedTable&)> on_learned_table = {};
  /// When a stop is requested, a command of kind pipe is ended, and reading its output throws
  /// UserError.
  std::stop_token stop = {};
};

/// Typed access to the path and options of a data SPEC (see open_data()). Errors name the SPEC.
class DataArgs {
 public:
  DataArgs(std::string spec, std::string path, std::map<std::string, std::string> options,
           std::string default_split, OpenOptions opening)
      : spec_(std::move(spec)),
        path_(std::move(path)),
        options_(std::move(options)),
        default_split_(std::move(default_split)),
        opening_(std::move(opening)) {}

  /// Returns a copy whose option split is `split`.
  DataArgs with_split(const std::string& split) const;
  /// Returns a copy whose missing options are set from `defaults`.
  DataArgs with_defaults(const std::map<std::string, std::string>& defaults) const;
  const std::string& spec() const { return spec_; }  ///< the whole SPEC
  const std::string& path() const { return path_; }  ///< the PATH in a SPEC "KIND:PATH?options"
  /// Returns the split to open: the value of option split, or default_split().
  std::string split() const { return get_string("split", default_split_); }
  /// Returns the split for a SPEC without option split.
  const std::string& default_split() const { return default_split_; }
  BadRecords bad_records() const { return opening_.bad_records; }
  const std::string& cache_dir() const { return opening_.cache_dir; }
  const StreamPass& first_pass() const { return opening_.first_pass; }
  const std::stop_token& stop() const { return opening_.stop; }
  const ColumnTablePtr& training_table() const { return opening_.training_table; }
  const std::string& training_table_file() const { return opening_.training_table_file; }
  /// Passes `table` to open_data(), which calls OpenOptions::on_learned_table.
  void report_learned_table(const LearnedTable& table) const { opening_.on_learned_table(table); }
  const std::string* find(const std::string& name) const;  ///< value of an option; null: absent
  std::string get_string(const std::string& name, const std::string& fallback) const;
  int64_t get_integer(const std::string& name, int64_t fallback, int64_t lowest) const;
  bool get_flag(const std::string& name, bool fallback) const;  ///< value must be 0 or 1
  /// Returns the value of an option. If the value is not in `allowed`, throws UserError that
  /// suggests the most similar allowed value.
  std::string get_choice(const std::string& name, const std::string& fallback,
                         const std::vector<std::string>& allowed) const;
  /// Returns the maximum size in bytes of data held in memory: unlimited with the option memory=1,
  /// 0 with memory=0, kMaxLoadedBytes without the option.
  int64_t memory_limit() const;
  /// Throws a UserError that names the SPEC.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  std::string spec_;
  std::string path_;
  std::map<std::string, std::string> options_;
  std::string default_split_;
  OpenOptions opening_;
};

/// A data format or source that a data SPEC can name, such as "mnist" or "csv". data_kinds() lists
/// all kinds.
struct DataKind {
  std::string name;   ///< name in a SPEC: "mnist"
  std::string usage;  ///< form of a SPEC, for messages: "mnist:DIR"
  std::string doc;    ///< help text, which names the columns of the dataset
  bool needs_path = true;
  bool full_batch = false;  ///< the default batch is the whole dataset
  /// Option `val` sets the fraction of rows to hold out for validation, and option `seed` selects
  /// them. If the format has splits (option `split`), the rows are held out of its training split.
  bool splits_rows = false;
  bool has_table = false;                 ///< sources of this kind have a SampleData::table()
  std::vector<std::string> options = {};  ///< options besides those common to all kinds
  /// Opens the data for reading by index.
  std::function<SampleSourcePtr(const DataArgs&)> open_source;
  /// Opens the data as a stream, if option `stream` is set; null: the kind has no such option.
  std::function<SampleStreamPtr(const DataArgs&)> open_stream = nullptr;
};

/// Returns a DataKind::open_source that reads or generates a whole dataset.
inline std::function<SampleSourcePtr(const DataArgs&)> in_memory(
    std::function<Dataset(const DataArgs&)> load) {
  return [load = std::move(load)](const DataArgs& args) { return make_source(load(args)); };
}

DataKind mnist_kind();
DataKind mnist_json_kind();
DataKind cifar10_kind();
DataKind digits_kind();
DataKind synthetic_linear_kind();
DataKind csv_kind();
DataKind npy_kind();
DataKind text_kind();
DataKind folder_kind();
DataKind npz_kind();
DataKind tar_kind();
DataKind jsonl_kind();
DataKind safetensors_kind();
DataKind pipe_kind();

}  // namespace fluid
