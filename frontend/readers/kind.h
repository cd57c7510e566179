#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/readers/dataset.h"

namespace fluid {

/// The options that a SPEC gives to its kind of data, with typed access. Errors name the SPEC.
class DataArgs {
 public:
  DataArgs(std::string spec, std::string path, std::map<std::string, std::string> options)
      : spec_(std::move(spec)), path_(std::move(path)), options_(std::move(options)) {}

  const std::string& path() const { return path_; }  ///< the text after the colon
  const std::string* find(const std::string& name) const;
  std::string text(const std::string& name, const std::string& fallback) const;
  int64_t integer(const std::string& name, int64_t fallback, int64_t lowest) const;
  bool flag(const std::string& name, bool fallback) const;  ///< option with the value 0 or 1
  /// Returns an option that must be one of `allowed`. Otherwise throws UserError, which suggests
  /// the most similar allowed value.
  std::string choice(const std::string& name, const std::string& fallback,
                     const std::vector<std::string>& allowed) const;
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::string spec_;
  std::string path_;
  std::map<std::string, std::string> options_;
};

/// A kind of data that a SPEC can name. Each kind has its own file; spec.cpp lists them.
struct DataKind {
  std::string name;   ///< "mnist"
  std::string usage;  ///< "mnist:DIR"
  std::string doc;    ///< one sentence that names the columns
  bool needs_path = true;
  bool full_batch = false;   ///< many small samples: the default batch is all of them
  bool splits_rows = false;  ///< no split of its own: `val=0.2` holds out rows, chosen by `seed`
  std::vector<std::string> options;  ///< options besides those that every kind has
  std::function<Dataset(const DataArgs&)> load;
};

DataKind mnist_kind();
DataKind mnist_json_kind();
DataKind cifar10_kind();
DataKind digits_kind();
DataKind synthetic_linear_kind();
DataKind csv_kind();
DataKind npy_kind();

}  // namespace fluid
