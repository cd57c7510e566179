#pragma once

#include <functional>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "executor/options/sample_finder.h"
#include "executor/trainer/running_means.h"
#include "frontend/program.h"
#include "frontend/readers/reader.h"

namespace fluid {

/// Names of the program's outputs.
std::vector<std::string> output_names(const Program& program);

/// Names of the program's outputs that hold one row a sample.
std::vector<std::string> row_outputs(const Program& program);

/// Names of the columns of `data`: the feeds that predict() gets.
std::vector<std::string> column_names(const Dataset& data);

/// The batch sizes of `data` to prepare for evaluation and prediction. Leaves out 0, the last size
/// of a rank whose shard of the last batch is empty.
std::vector<int64_t> inference_sizes(const Reader& data);

/// Finds the sample that a step rejected in the data of `readers`, which must outlive it. Null
/// readers are skipped.
SampleFinder find_in(std::vector<const Reader*> readers);

/// Collective. The scalar outputs over the rest of the epoch of `data`, in inference mode. Running
/// statistics of rank 0 are used, because they are the ones saved. `outputs`: names of the
/// program's outputs.
NamedScalars evaluate(Executor& executor, Reader& data, const std::vector<std::string>& outputs);

/// Predicts the batches of the rest of the epoch of `data`, in their order, until `take` returns
/// false.
void predict(Executor& executor, Reader& data,
             const std::function<bool(const Batch&, const OutputViews&)>& take);

/// The rows of `outputs`, gathered over the rest of the epoch of `data`: a column an output.
Dataset predicted_rows(Executor& executor, Reader& data, const std::vector<std::string>& outputs);

}  // namespace fluid
