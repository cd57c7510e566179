#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "executor/trainer/fit_options.h"

namespace fluid {

class Executor;

/// Writes the epochs of a training run as a CSV file: a header, then a line for each epoch. The
/// first columns are the fields epoch, steps, complete, best, ms_per_step and seconds of
/// EpochEvent. Column lr contains the learning rate of the epoch's last step, column lr_RECIPE that
/// of the last step of a recipe with a name. Column NAME contains a scalar output over the training
/// samples, and column val_NAME over the validation samples. If another column is called NAME, the
/// column over the training samples is train_NAME. A missing value is empty. Call attach() on every
/// rank; rank 0 writes.
///
///   fl::HistoryCsv csv("history.csv");
///   fl::FitOptions options{.epochs = 5};
///   csv.attach(options, trainer.executor());
///   trainer.fit(train, options);
///
/// The file is replaced, atomically, after each epoch. If fit() resumes a checkpoint, the file
/// keeps the completed epochs of the checkpoint. After the first failed write, training continues,
/// and fit() throws UserError at its end.
class HistoryCsv {
 public:
  explicit HistoryCsv(std::string path) : path_(std::move(path)) {}

  /// Extends the callbacks of `options`. The HistoryCsv must outlive fit(). Throws UserError if the
  /// file cannot be written.
  void attach(FitOptions& options, Executor& executor);

 private:
  using Row = std::vector<std::pair<std::string, std::string>>;  // (column, value)

  void begin(const BeginEvent& begin);
  void add(const StepEvent& step);
  void add(const EpochEvent& epoch);
  void write();

  std::string path_;
  std::vector<Row> rows_;
  std::map<std::string, double> rates_;  ///< recipe -> learning rate of its last step in the epoch
  std::string failure_;
};

}  // namespace fluid
