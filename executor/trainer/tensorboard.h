#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "executor/trainer/append_file.h"
#include "executor/trainer/fit_options.h"
#include "executor/trainer/tensorboard_event.h"
#include "frontend/program.h"

namespace fluid {

/// Creates `directory` if it does not exist. Throws UserError if it cannot be created or if no file
/// can be written there.
void check_tensorboard_directory(const std::string& directory);

/// Options of TensorBoard.
struct TensorBoardOptions {
  int64_t histograms_every = 0;     ///< number of steps between histograms; 0: no histograms
  std::string histograms_of = "*";  ///< NamePattern: parameters or layers with histograms
  int64_t images = 0;               ///< number of sample images per epoch; 0: none
};

/// Writes a training run as a TensorBoard event file. Call attach() on every rank; only rank 0
/// writes.
///
///   fl::TensorBoard board("runs/1");
///   fl::FitOptions options{.epochs = 5};
///   board.attach(options, trainer.executor());
///   trainer.fit(train, options);
///
/// Tags: `step/NAME` is a scalar output of a step. `epoch/NAME` and `epoch/val_NAME` are a scalar
/// output over the training and the validation samples of an epoch. `optimizer/learning_rate` and
/// `optimizer/loss_scale` are the learning rate and the loss scale of a step. The step of each
/// value is the number of training steps so far. A value is stored as f32.
///
/// With TensorBoardOptions::histograms_every, `parameter/NAME` is a histogram of a parameter or of
/// running statistics. `gradient/NAME` is a histogram of a gradient before clipping, recorded by
/// retain_gradients(). A skipped update writes no histograms. A step writes only the gradients of
/// its recipe. On a GPU, the values may be those of the next step, which has already started.
///
/// With TensorBoardOptions::images, `feed/NAME/I` and `output/NAME/I` are sample I of the first
/// batch of an epoch, for feeds and outputs of shape [N, channels, height, width]; see image_of().
///
/// Each fit() adds a file to the directory. If fit() resumes a checkpoint, TensorBoard drops the
/// values of later steps that the directory contains. After the first failed write, training
/// continues without the file, and fit() throws UserError at its end.
class TensorBoard {
 public:
  explicit TensorBoard(std::string directory, TensorBoardOptions options = {})
      : directory_(std::move(directory)), board_(std::move(options)) {}

  /// Makes training steps of `program` keep the gradients that have histograms; see
  /// retain_gradient(). Leaves out frozen and sparse parameters. Must be called on every rank,
  /// before the Trainer is created.
  void retain_gradients(Program& program);
  /// Extends the callbacks of `options`. The TensorBoard must outlive fit(). Throws UserError if
  /// TensorBoardOptions::histograms_of matches no parameter.
  void attach(FitOptions& options, Executor& executor);

  /// Adds text, which TensorBoard renders as Markdown. Text added before fit() is written when
  /// fit() opens the file.
  void add_text(const std::string& tag, const std::string& text, int64_t step = 0);
  /// Adds the images of a tensor [N, channels, height, width] as TAG/0, TAG/1, ...; see image_of().
  /// Throws UserError for another shape.
  void add_images(const std::string& tag, const Tensor& images, int64_t step);

 private:
  void begin(const BeginEvent& begin);
  void add(const StepEvent& step);
  void add(const EpochEvent& epoch);
  void add_histograms(const StepEvent& step, Executor& executor);
  void add_histogram(const std::string& tag, const Tensor& values, int64_t step);
  /// Adds the first TensorBoardOptions::images samples of `value`. Does nothing if `value` does
  /// not hold images.
  void add_samples(const std::string& tag, const Tensor& value, int64_t step);
  void write_images(const std::string& tag, const Tensor& images, int64_t count, int64_t step);
  void append(const std::string& event);

  std::string directory_;
  TensorBoardOptions board_;
  std::unique_ptr<AppendFile> file_;
  bool writes_ = true;                   ///< false on ranks other than 0
  std::vector<std::string> parameters_;  ///< parameters that have histograms
  /// Parameters whose gradients have histograms, each with the recipes that train it.
  std::vector<std::pair<std::string, std::set<std::string>>> gradients_;
  std::vector<std::string> pending_;  ///< events added before the file was opened
  bool epoch_begins_ = false;         ///< whether the next batch is the first one of an epoch
  std::function<void(const std::string&)> notice_;
  std::string failure_;
};

}  // namespace fluid
