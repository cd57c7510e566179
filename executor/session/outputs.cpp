#include "executor/session/outputs.h"

#include <algorithm>

#include "executor/session/steps_in_flight.h"
#include "ir/error.h"

namespace fluid {

bool OutputViews::has(std::string_view name) const { return step_->number_of(name).has_value(); }

size_t OutputViews::size() const { return step_->outputs(); }

const OutputView& OutputViews::find(std::string_view name) const {
  if (const auto found = step_->number_of(name)) {
    steps_->fetch(slot_, number_, *found);
    return arrived()[*found];
  }
  throw UserError("no output '" + std::string(name) + "'" +
                  did_you_mean(name, step_->output_names()));
}

const std::vector<OutputView>& OutputViews::arrived() const {
  return steps_->outputs(slot_, number_);
}

const std::vector<OutputView>& OutputViews::all() const {
  for (size_t i = 0; i < size(); ++i) steps_->fetch(slot_, number_, i);
  return arrived();
}

std::optional<LossScaling> OutputViews::loss_scaling() const {
  return loss_scaling_in(steps_->report(slot_, number_), steps_->reported_variables());
}

std::optional<double> OutputViews::learning_rate() const {
  return learning_rate_in(steps_->report(slot_, number_), steps_->reported_variables());
}

}  // namespace fluid
