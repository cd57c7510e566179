// The kind of data "csv": comma-separated numbers, categories and labels.

#include "frontend/files/csv.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "frontend/readers/category_columns.h"
#include "frontend/readers/column_table_context.h"
#include "frontend/readers/csv_rows.h"
#include "frontend/readers/excerpt.h"
#include "frontend/readers/kind.h"
#include "frontend/readers/record_findings.h"
#include "frontend/readers/record_source.h"
#include "ir/error.h"
#include "ir/text.h"

namespace fluid {
namespace {

constexpr const char* kCsvKind = "csv";
constexpr int64_t kFirstRow = 1;  ///< record of the first sample, after the header

/// Returns the columns that the first record names.
std::vector<std::string> header_of(const RecordFile& file) {
  if (file.records() == 0) {
    throw UserError(file.source_name() + " is empty: no line names the columns");
  }
  CsvParser csv;
  csv.restart(file.read(0), file.source_name());
  csv.next();
  std::vector<std::string> names(csv.fields().begin(), csv.fields().end());
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (seen.insert(name).second) continue;
    throw UserError(csv.location() + ": two columns are named '" + excerpt(name) + "'");
  }
  if (file.records() == kFirstRow) {
    throw UserError(file.source_name() +
                    " has a header but no rows: its only line names the columns");
  }
  return names;
}

/// Returns the location of the value of column CsvColumns::categorical()[i] of `rows`, in the
/// record at `location`, for messages.
std::string category_location(const std::string& location, const CsvRows& rows, size_t i) {
  return location + ": column '" + excerpt(rows.names()[rows.columns().categorical()[i]]) + "'";
}

std::vector<std::string> category_names(const CsvRows& rows) {
  std::vector<std::string> names;
  for (const size_t column : rows.columns().categorical()) names.push_back(rows.names()[column]);
  return names;
}

/// Learns the table of columns from the rows of a file, and which rows are left out.
class CsvScan {
 public:
  /// `opened` is modified by run() alone.
  CsvScan(const ColumnTableContext& context, const CsvRows& rows, ScannedFile& opened)
      : context_(context),
        args_(context.args()),
        rows_(rows),
        file_(*opened.file),
        opened_(opened),
        categories_(context, category_names(rows)) {}

  /// Sets the members of ScannedFile::scan except `index`.
  void run() const {
    TextScan& scan = opened_.scan;
    const bool learns = context_.given() == nullptr;
    RecordFindings initial;
    initial.categories = categories_.no_findings();
    if (learns && needs_moments(context_, rows_)) initial.moments.resize(rows_.columns().x.size());
    RecordFindings found;
    const RecordsToExamine rows = rows_to_examine();
    const bool divides_rows =
        rows.skips_bad_records || rows.drops_rows || !rows.split_column.empty();
    if (divides_rows || !initial.categories.empty() || !initial.moments.empty()) {
      found = examine_records(rows, context_.split(), initial, examination(), scan);
    } else if (!opened_.is_in_memory) {
      // Columns that are not numbers, and the end of a file that was cut off, are found before
      // training starts. A file in memory is parsed as a whole.
      CsvRow row;
      for (const int64_t record : {kFirstRow, file_.records() - 1}) {
        rows_.parse(file_.read(record), row);
      }
    }
    scan.check_that_rows_are_left(args_, samples());
    scan.table = table_of(found, std::ssize(scan.left_out) < samples()).to_json();
  }

  /// Whether the means and deviations of the features are read.
  static bool needs_moments(const ColumnTableContext& context, const CsvRows& rows) {
    return context.args().get_flag("normalize", false) ||
           std::ranges::any_of(rows.x_names(), [&](const std::string& name) {
             return rows.missing().of(name).kind == MissingRule::kMean;
           });
  }

 private:
  int64_t samples() const { return file_.records() - kFirstRow; }
  const std::string& name_of(size_t column) const { return rows_.names()[column]; }

  RecordsToExamine rows_to_examine() const {
    const std::optional<size_t> split = rows_.columns().split;
    return {.samples = samples(),
            .chunk = file_.records_per_chunk(),
            .skips_bad_records = args_.bad_records() != BadRecords::stop,
            .drops_rows = rows_.missing().drop_rows(),
            .split_column = split ? name_of(*split) : "",
            .location = [&](int64_t sample) { return file_.location(kFirstRow + sample); }};
  }

  /// Returns a function that finds categories and moments.
  ExamineRecord examination() const {
    return [&](int64_t sample, const TrainingRows& training, RecordFindings& found,
               SetSplit set_split) {
      thread_local CsvRow row;
      if (!rows_.parse(file_.read(kFirstRow + sample), row)) return false;
      if (rows_.columns().split) set_split(row.split);
      for (size_t i = 0; i < row.categories.size(); ++i) {
        categories_.examine(i, row.categories[i], sample, found.categories, [&] {
          return category_location(file_.location(kFirstRow + sample), rows_, i);
        });
      }
      const bool learns_moments = !found.moments.empty() && training.contains(sample);
      for (size_t i = 0; learns_moments && i < row.x.size(); ++i) {
        if (!std::isnan(row.x[i])) found.moments[i].add(row.x[i]);
      }
      return true;
    };
  }

  /// Returns a copy of the given table, or one of what was found, with the columns, feeds and
  /// options of this file. `has_rows`: whether a row is read.
  ColumnTable table_of(const RecordFindings& found, bool has_rows) const {
    ColumnTable table =
        context_.initial_table({"classes", "dtype", "missing", "normalize", "unknown"});
    const CsvColumns& columns = rows_.columns();
    if (context_.given() == nullptr) table.columns = names_of(columns, rows_.names());
    for (const size_t category : columns.categories) {
      table.feeds[name_of(category)] = name_of(category);
    }
    if (columns.has_categorical_label) table.feeds["y"] = name_of(columns.labels.front());
    categories_.set_classes(found.categories, table);
    for (size_t i = 0; has_rows && i < found.moments.size(); ++i) {
      const std::string& name = name_of(columns.x[i]);
      if (found.moments[i].count() == 0) {
        args_.fail("column '" + name + "' has no value in the training rows");
      }
      table.moments[name] = found.moments[i].moments();
    }
    return table;
  }

  const ColumnTableContext& context_;
  const DataArgs& args_;
  const CsvRows& rows_;
  const RecordFile& file_;
  ScannedFile& opened_;
  CategoryColumns categories_;
};

/// The rows of a CSV file.
class CsvSource : public RecordSource {
 public:
  CsvSource(const ColumnTableContext& context, CsvRows rows, ScannedFile opened,
            const ColumnTablePtr& table)
      : RecordSource(std::move(opened.file), kFirstRow, std::move(opened.scan), table),
        rows_(std::move(rows)),
        normalizes_(context.args().get_flag("normalize", false)) {
    const CsvColumns& of = rows_.columns();
    if (!of.x.empty()) add_features(context, *table);
    for (const size_t column : of.categorical()) {
      const std::string& name = rows_.names()[column];
      const bool is_label = of.has_categorical_label && column == of.labels.front();
      ids_.push_back(context.category_ids(name, *table));
      add_column({is_label ? "y" : name, DType::i64}, ids_.back().categories());
    }
    for (const size_t column : of.integers) add_column({rows_.names()[column], DType::i64});
    if (!of.has_categorical_label && !of.labels.empty()) add_label();
    if (of.split) add_split_column(rows_.names()[*of.split]);
  }

 private:
  void add_features(const ColumnTableContext& context, const ColumnTable& table) {
    const std::vector<std::string> names = rows_.x_names();
    const bool needs_moments = CsvScan::needs_moments(context, rows_);
    for (const std::string& name : names) {
      const auto found = table.moments.find(name);
      if (needs_moments && found == table.moments.end()) context.fail_without_column(name);
      moments_.push_back(needs_moments ? found->second : ColumnTable::Moments());
      const MissingRule& rule = rows_.missing().of(name);
      fills_.push_back(rule.kind == MissingRule::kMean ? moments_.back().mean : rule.constant);
    }
    add_column({"x", rows_.float_dtype(), {std::ssize(names)}});
  }

  void add_label() {
    const auto labels = std::ssize(rows_.columns().labels);
    const bool are_classes = rows_.labels_are_classes();
    const bool is_scalar = are_classes && labels == 1;
    add_column({"y", are_classes ? DType::i64 : rows_.float_dtype(),
                is_scalar ? std::vector<int64_t>() : std::vector<int64_t>{labels}});
  }

  void parse(const TextRecord& record, std::span<std::byte* const> to) const override {
    thread_local CsvRow row;
    if (!rows_.parse(record, row)) throw InternalError("a row that is left out is read");
    size_t column = 0;
    const auto write = [&](const auto& values) {
      if (std::byte* bytes = to[column++]; bytes != nullptr) {
        std::memcpy(bytes, values.data(), values.size() * sizeof values[0]);
      }
    };
    const auto write_floats = [&](const std::vector<double>& values) {
      if (rows_.float_dtype() == DType::f64) return write(values);
      thread_local std::vector<float> rounded;
      rounded.assign(values.begin(), values.end());
      write(rounded);
    };
    if (!row.x.empty()) {
      fill_and_normalize(row.x);
      write_floats(row.x);
    }
    for (size_t i = 0; i < ids_.size(); ++i) {
      const int64_t id = ids_[i].id_of(row.categories[i], [&] {
        return category_location(ir::file_and_line(name(), record.line()), rows_, i);
      });
      write(std::span(&id, 1));
    }
    for (const int64_t& value : row.integers) write(std::span(&value, 1));
    if (!row.classes.empty()) write(row.classes);
    if (!row.y.empty()) write_floats(row.y);
  }

  void fill_and_normalize(std::vector<double>& x) const {
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) x[i] = fills_[i];
      if (normalizes_) x[i] = (x[i] - moments_[i].mean) / moments_[i].std;
    }
  }

  CsvRows rows_;
  bool normalizes_;
  std::vector<ColumnTable::Moments> moments_;  ///< of each feature
  std::vector<double> fills_;                  ///< feature -> value that replaces a missing one
  std::vector<CategoryIds> ids_;               ///< of each column of categories
};

SampleSourcePtr open_csv(const DataArgs& args) {
  const ColumnTableContext context(args, kCsvKind);
  const auto rows_of = [&](const RecordFile& file) { return CsvRows(context, header_of(file)); };
  ScannedFile opened = scan_text_file(
      args, context.given(), csv_record_syntax(),
      [&](ScannedFile& scanned) { CsvScan(context, rows_of(*scanned.file), scanned).run(); });
  const auto table =
      std::make_shared<const ColumnTable>(ColumnTable::from_json(opened.scan.table, args.path()));
  CsvRows rows = rows_of(*opened.file);
  const bool is_in_memory = opened.is_in_memory;
  SampleSourcePtr source =
      open_records(std::make_shared<CsvSource>(context, std::move(rows), std::move(opened), table),
                   is_in_memory);
  context.report_table(table);
  return source;
}

}  // namespace

DataKind csv_kind() {
  return {.name = kCsvKind,
          .usage = "csv:FILE?label=COLUMN",
          .doc =
              "comma-separated numbers with a header line: x f32[columns] holds all columns but "
              "the label, or only columns=a,b, or all but drop=c; y f32[labels] holds label=a,b, "
              "or class indices i64 with classes=1; dtype=f64: x and y are f64; categories=c,d: "
              "text columns, each a column i64 of ids; integers=e,f: each a column i64; "
              "missing=error|drop|mean|NUMBER, for column g alone missing=g:mean, several rules "
              "with commas; normalize=1 by the mean and the std of the training rows; unknown=1 "
              "allows other categories. Saved parameters keep all of this, and eval and predict "
              "read their data by it; table=FILE, a .safetensors or JSON, names another file that "
              "keeps it, table=none learns it again; memory=0|1: parse all rows when the file is "
              "opened, and hold them in memory (default: files of at most 64 MiB), else each row "
              "when it is read",
          .splits_rows = true,
          .has_table = true,
          .options = {"categories", "classes", "columns", "drop", "dtype", "integers", "label",
                      "memory", "missing", "normalize"},
          .open_source = open_csv};
}

}  // namespace fluid
