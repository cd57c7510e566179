#include "executor/session/outputs.h"

#include <algorithm>

#include "executor/session/steps_in_flight.h"
#include "ir/error.h"

namespace fluid {

bool OutputViews::contains(std::string_view name) const {
  return step_->index_of_output(name).has_value();
}

size_t OutputViews::size() const { return step_->num_outputs(); }

const OutputView& OutputViews::find(std::string_view name) const {
  if (const auto found = step_->index_of_output(name)) {
    steps_->fetch_output(slot_, step_number_, *found);
    return completed_outputs()[*found];
  }
  throw step_->no_output_error(name);
}

const std::vector<OutputView>& OutputViews::completed_outputs() const {
  return steps_->outputs(slot_, step_number_);
}

const std::vector<OutputView>& OutputViews::fetched_outputs() const {
  for (size_t i = 0; i < size(); ++i) steps_->fetch_output(slot_, step_number_, i);
  return completed_outputs();
}

std::optional<LossScaling> OutputViews::loss_scaling() const {
  return loss_scaling_in(steps_->step_report(slot_, step_number_), step_->reported_variables());
}

std::optional<double> OutputViews::learning_rate() const {
  return learning_rate_in(steps_->step_report(slot_, step_number_), step_->reported_variables());
}

}  // namespace fluid
