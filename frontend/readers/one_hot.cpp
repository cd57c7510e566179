#include "frontend/readers/one_hot.h"

#include <algorithm>

#include "frontend/readers/forwarded_data.h"
#include "ir/error.h"

namespace fluid {
namespace {

class OneHotSource : public ForwardedSource {
 public:
  OneHotSource(SampleSourcePtr inner, int64_t classes)
      : ForwardedSource(std::move(inner)),
        label_(label_column(*inner_, classes)),
        columns_(inner_->columns()),
        classes_(classes) {
    Column& label = columns_[label_];
    if (classes_ == 0) classes_ = static_cast<int64_t>(inner_->classes(label.name).size());
    label.dtype = DType::f32;
    label.shape = {classes_};
  }

  const std::vector<Column>& columns() const override { return columns_; }

  void read(int64_t sample, const AugmentationSeed& seed,
            std::span<std::byte* const> to) const override {
    std::vector<std::byte*> inner_to(to.begin(), to.end());
    int64_t label = -1;
    if (to[label_] != nullptr) inner_to[label_] = reinterpret_cast<std::byte*>(&label);
    inner_->read(sample, seed, inner_to);
    if (to[label_] == nullptr) return;
    if (label < 0 || label >= classes_) {
      throw UserError(inner_->location(sample) + ": label " + std::to_string(label) +
                      " is not below " + std::to_string(classes_));
    }
    auto* encoded = reinterpret_cast<float*>(to[label_]);
    std::fill(encoded, encoded + classes_, 0.f);
    encoded[label] = 1;
  }

 private:
  size_t label_;
  std::vector<Column> columns_;
  int64_t classes_;
};

}  // namespace

size_t label_column(const SampleSource& source, int64_t classes) {
  for (size_t c = 0; c < source.columns().size(); ++c) {
    const Column& column = source.columns()[c];
    const bool labels = column.dtype == DType::i64 && column.shape.empty();
    if (labels && (classes > 0 || !source.classes(column.name).empty())) return c;
  }
  throw UserError(
      "one_hot, mixup and cutmix need an i64 column of labels whose classes are known: add "
      "classes=N");
}

SampleSourcePtr one_hot(SampleSourcePtr source, int64_t classes) {
  return std::make_shared<OneHotSource>(std::move(source), classes);
}

}  // namespace fluid
