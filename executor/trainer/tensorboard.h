#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "executor/trainer/append_file.h"
#include "executor/trainer/fit_options.h"
#include "executor/trainer/tensorboard_event.h"

namespace fluid {

/// Creates `directory` if it does not exist. Throws UserError if it cannot be created or if no file
/// can be written there.
void check_tensorboard_directory(const std::string& directory);

/// Writes a training run as a TensorBoard event file. Call attach() on every rank; only rank 0
/// writes.
///
///   fl::TensorBoard board("runs/1");
///   fl::FitOptions options{.epochs = 5};
///   board.attach(options, trainer.executor());
///   trainer.fit(train, options);
///
/// Tags: `step/NAME` is a scalar output of a step, `epoch/NAME` and `epoch/val_NAME` are a scalar
/// output over the training and the validation samples of an epoch, `optimizer/learning_rate` and
/// `optimizer/loss_scale` are those of a step. The step of each value is the number of training
/// steps so far. A value is stored as f32.
///
/// Each fit() adds a file to the directory. If fit() resumes a checkpoint, TensorBoard drops the
/// values of later steps that the directory contains. After the first failed write, training
/// continues without the file, and fit() throws UserError at its end.
class TensorBoard {
 public:
  explicit TensorBoard(std::string directory) : directory_(std::move(directory)) {}

  /// Extends the callbacks of `options`. The TensorBoard must outlive fit().
  void attach(FitOptions& options, Executor& executor);

 private:
  void begin(const BeginEvent& begin);
  void add(const StepEvent& step);
  void add(const EpochEvent& epoch);
  void append(const std::string& event);

  std::string directory_;
  std::unique_ptr<AppendFile> file_;
  std::function<void(const std::string&)> notice_;
  std::string failure_;
};

}  // namespace fluid
