#include "executor/trainer/inference.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "executor/comm/process_group.h"

namespace fluid {

std::vector<int64_t> inference_batch_sizes(const Reader& data) {
  std::vector<int64_t> sizes = data.batch_sizes();
  std::erase(sizes, 0);
  return sizes;
}

std::vector<int64_t> lengths_of(const Executor& executor, const SampleData& data) {
  return executor.lengths_of(data.sample_types());
}

std::vector<std::string> per_sample_outputs(const Program& program) {
  std::vector<std::string> names;
  for (const ir::Output& o : program.ir().main().outputs) {
    const Shape& shape = o.value.shape();
    if (!shape.empty() && shape[0] == kBatch) names.push_back(o.name);
  }
  return names;
}

std::vector<std::string> column_names(const SampleData& data) {
  std::vector<std::string> names;
  for (const Column& column : data.columns()) names.push_back(column.name);
  return names;
}

const Batch* next_batch(Reader& data, ProcessGroup& group) {
  const Batch* batch = data.next();
  if (data.samples() || group.is_single_process()) return batch;
  const int64_t samples = batch == nullptr ? 0 : batch->global_size();
  group.check_equal("number of samples in the batch", std::to_string(samples));
  return batch;
}

bool has_unprepared_size(const Reader& data, const Batch& batch) {
  if (data.samples() && data.options().bad_records != BadRecords::drop) return false;
  const std::vector<int64_t> sizes = data.batch_sizes();
  return std::ranges::find(sizes, batch.size) == sizes.end();
}

SampleFinder make_sample_finder(std::vector<const Reader*> readers) {
  return [readers = std::move(readers)](const std::string& feed, int64_t value) {
    for (const Reader* reader : readers) {
      std::string location = reader != nullptr ? reader->source().find_location(feed, value) : "";
      if (!location.empty()) return location;
    }
    return std::string();
  };
}

NamedScalars evaluate(Executor& executor, Reader& data, const Program& program,
                      const BatchObserver& on_batch) {
  executor.broadcast(VariableSet::buffers);
  RunningMeans means(program.ir());
  while (const Batch* batch = next_batch(data, executor.process_group())) {
    if (batch->size == 0) continue;
    if (has_unprepared_size(data, *batch)) {
      means.flush();
      executor.prepare({.eval = {batch->size}, .lengths = executor.lengths_of(*batch)});
    }
    const OutputViews outputs = executor.eval(*batch);
    if (on_batch) on_batch(*batch, outputs);
    means.add_deferred(outputs, batch->size);
  }
  means.flush();
  if (executor.process_group().world().size > 1) means.all_reduce(executor.process_group());
  return means.values();
}

void predict(Executor& executor, Reader& data,
             const std::function<bool(const Batch&, const OutputViews&)>& on_batch) {
  for (const Batch& batch : data) {
    if (batch.size == 0) continue;
    if (has_unprepared_size(data, batch)) {
      executor.prepare({.predict = {batch.size},
                        .predict_feeds = column_names(data.source()),
                        .lengths = executor.lengths_of(batch)});
    }
    if (!on_batch(batch, executor.predict(batch))) return;
  }
}

Dataset predict_rows(Executor& executor, Reader& data, const std::vector<std::string>& outputs) {
  std::vector<std::string> bytes(outputs.size());
  std::vector<std::pair<DType, std::vector<int64_t>>> types(outputs.size());
  int64_t rows = 0;
  predict(executor, data, [&](const Batch& batch, const OutputViews& computed) {
    rows += batch.size;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Tensor& value = computed[outputs[i]];
      types[i] = {value.dtype(), value.shape()};
      bytes[i].append(reinterpret_cast<const char*>(value.data()),
                      static_cast<size_t>(value.bytes()));
    }
    return true;
  });
  Dataset predicted;
  for (size_t i = 0; i < outputs.size() && rows > 0; ++i) {
    auto [dtype, shape] = types[i];
    shape[0] = rows;
    Tensor column(dtype, shape);
    std::memcpy(column.data(), bytes[i].data(), bytes[i].size());
    predicted.columns.emplace_back(outputs[i], std::move(column));
  }
  return predicted;
}

}  // namespace fluid
