#pragma once

#include <functional>
#include <string>
#include <vector>

#include "executor/executor.h"
#include "executor/options/sample_finder.h"
#include "executor/trainer/batch_observer.h"
#include "executor/trainer/running_means.h"
#include "frontend/program.h"
#include "frontend/readers/reader.h"

namespace fluid {

/// Returns the names of the outputs that have one row per sample.
std::vector<std::string> per_sample_outputs(const Program& program);

/// Returns the column names of `data`, which are the feeds of predict().
std::vector<std::string> column_names(const SampleData& data);

/// Returns the next batch of `data`; null at the end of an epoch. Collective if `data` is a stream:
/// throws UserError if the global batches of the ranks differ in size.
const Batch* next_batch(Reader& data, ProcessGroup& group);

/// Whether the size of `batch` is not in Reader::batch_sizes(), so that no step is prepared for the
/// batch. This happens for the last batch of a stream, and for a batch that leaves out bad records.
bool has_unprepared_size(const Reader& data, const Batch& batch);

/// Returns the batch sizes of `data` for which to prepare eval and predict steps. Omits size 0,
/// which occurs when this rank's shard of the last batch is empty. The step for the last batch of a
/// stream is prepared when the batch is read.
std::vector<int64_t> inference_batch_sizes(const Reader& data);

/// Returns the sequence length of `data` in the form of BatchSizes::lengths. Empty for a program
/// without the dimension kLength.
std::vector<int64_t> lengths_of(const Executor& executor, const SampleData& data);

/// Returns a SampleFinder that searches the data of `readers`, in order. The readers must outlive
/// the SampleFinder; null readers are skipped.
SampleFinder make_sample_finder(std::vector<const Reader*> readers);

/// Collective. Returns the mean of each scalar output over the remaining batches of the current
/// epoch of `data`, in inference mode. All ranks use rank 0's running statistics, which
/// save() also writes. `program`: the program of the executor. Passes each batch of this rank and
/// its outputs to `on_batch`, if set.
NamedScalars evaluate(Executor& executor, Reader& data, const Program& program,
                      const BatchObserver& on_batch = nullptr);

/// Runs predict() on the remaining batches of the current epoch of `data`, in order. Passes each
/// batch and its outputs to `on_batch`, and stops when `on_batch` returns false.
void predict(Executor& executor, Reader& data,
             const std::function<bool(const Batch&, const OutputViews&)>& on_batch);

/// Runs predict() on the remaining batches of the current epoch of `data`. Returns a dataset with
/// one column for each of `outputs`. A column concatenates the rows of all batches.
Dataset predict_rows(Executor& executor, Reader& data, const std::vector<std::string>& outputs);

}  // namespace fluid
