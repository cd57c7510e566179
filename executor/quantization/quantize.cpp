#include "executor/quantization/quantize.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "executor/places/device_of.h"
#include "executor/quantization/activation_range.h"
#include "executor/quantization/int8_weight.h"
#include "executor/session/session_options.h"
#include "frontend/name_pattern.h"
#include "ir/length.h"
#include "ops/operators.h"
#include "ops/quantization/integer_product.h"
#include "ops/record.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/pass.h"
#include "passes/pass_table.h"
#include "passes/rewrite.h"
#include "passes/weight_ops.h"

namespace fluid {
namespace {

/// A convolution or product whose weight becomes i8.
struct QuantizedOp {
  ir::Op* op = nullptr;
  size_t axis = 0;   ///< axis of the weight's output channels
  std::string name;  ///< name of the weight: the first variable from which it is computed
};

bool is_float_value(const Value& v) { return v.dtype() == f32 && v.shape().is_constant(); }

/// Name of the first variable on which `v` depends.
std::string variable_of(Value v, const std::map<const ir::Op*, bool>& weights) {
  const ir::Op* op = v.op();
  while (!is_variable(*op)) {
    const auto depends = [&](const Value& operand) { return weights.at(operand.op()); };
    op = std::ranges::find_if(op->operands, depends)->op();
  }
  return op->symbol;
}

/// The name of the layer that owns a weight: "conv0" for "conv0.w".
std::string layer_of(const std::string& weight) { return weight.substr(0, weight.rfind('.')); }

/// Quantizes one program.
class Quantizer {
 public:
  Quantizer(Executor& executor, const Program& program, const QuantizeOptions& options)
      : executor_(executor), options_(options), program_(program.ir().clone()) {}

  QuantizedProgram run() {
    calibrates() ? simplify_for_inference() : remove_training();
    const std::vector<QuantizedOp> selected = selected_ops();
    evaluate_variables(selected);
    if (calibrates()) quantize_activations(selected);
    for (const QuantizedOp& q : selected) quantize_weight_of(q);
    erase_dead_ops(graph());
    name_parameters();
    return result();
  }

 private:
  ir::Graph& graph() { return program_->main(); }
  bool calibrates() const { return options_.calibration != nullptr; }

  void remove_training() {
    graph().erase_if(
        [](const ir::Op& op) { return std::holds_alternative<Directive>(*def_of(op).lower); });
  }

  /// Replaces ops by their inference forms, and folds batch norms into the weights before them.
  void simplify_for_inference() {
    const auto reject = [&](const char* what) {
      throw UserError("quantize: program '" + program_->name + "' has " + what +
                      "; only its weights can be quantized, without calibration data");
    };
    if (ir::has_length(*program_)) reject("a dimension kLength");
    if (std::ranges::any_of(graph().ops, [](const auto& op) { return is_cache(*op); }))
      reject("caches");
    Options options = session_options({}).passes;
    options.mode = Mode::eval;
    const std::unique_ptr<Device> device = device_of(cpu(), {}, nullptr);
    run_passes(
        *program_,
        {check_recorded_pass(), infer_types_pass(), derive_inference_pass(), freeze_states_pass(),
         simplify_pass(), fold_scale_axis_pass(), cse_pass(), dce_pass()},
        options, device->target());
  }

  std::vector<QuantizedOp> selected_ops() {
    const std::map<const ir::Op*, bool> weights = weight_ops(graph());
    std::vector<QuantizedOp> selected;
    std::vector<std::string> names;
    std::vector<bool> used(options_.keep.size());
    for (const auto& op : graph().ops) {
      if (op->operands.size() != 2) continue;
      const std::optional<size_t> axis = output_axis_of_weight(*op);
      const bool is_conv = axis && op->operands[1].shape().rank() == 4;
      if (!axis || (is_conv && !calibrates())) continue;
      const Value w = op->operands[1];
      const auto weight = weights.find(w.op());
      if (weight == weights.end() || !weight->second || !is_float_value(w)) continue;
      const bool is_quantized = dequantized(w).has_value();
      const bool multiplies_weights = weights.contains(op->operands[0].op());
      if (is_quantized || multiplies_weights) continue;
      const std::string name = variable_of(w, weights);
      names.push_back(name);
      if (!is_kept(name, used)) selected.push_back({op.get(), *axis, name});
    }
    for (size_t i = 0; i < used.size(); ++i) {
      if (used[i]) continue;
      throw UserError("quantize: pattern '" + options_.keep[i] + "' matches no weight" +
                      pattern_suggestion(options_.keep[i], names));
    }
    if (selected.empty())
      throw UserError("quantize: program '" + program_->name + "' has no weight to quantize");
    return selected;
  }

  /// Whether a pattern selects `name`. Sets the entries of `used` of the patterns that do.
  bool is_kept(const std::string& name, std::vector<bool>& used) const {
    bool kept = false;
    for (size_t i = 0; i < used.size(); ++i) {
      if (!NamePattern(options_.keep[i]).selects(name)) continue;
      used[i] = kept = true;
    }
    return kept;
  }

  /// Reads the variables, and computes the weights that are functions of variables.
  void evaluate_variables(const std::vector<QuantizedOp>& selected) {
    for (const std::string& name : executor_.parameters())
      variables_.emplace(name, executor_.parameter(name).copy());
    for (const auto& [name, value] : variables_) bytes_before_ += value.bytes();
    const std::unique_ptr<ir::Program> copy = program_->clone();
    ir::Graph& graph = copy->main();
    graph.outputs.clear();
    for (const auto& op : graph.ops) {
      for (const QuantizedOp& q : selected) {
        const Value w = q.op->operands[1];
        const bool is_new = std::ranges::none_of(
            graph.outputs, [&](const ir::Output& o) { return o.name == weight_key(w); });
        if (w.op()->id == op->id && !is_variable(*op) && is_new)
          graph.outputs.push_back({weight_key(w), Value(op.get(), w.index())});
      }
    }
    if (!graph.outputs.empty()) {
      erase_dead_ops(graph);
      Executor evaluating(Program(copy->clone()), cpu());
      for (const std::string& name : evaluating.parameters())
        evaluating.set_parameter(name, variables_.at(name));
      for (const OutputView& o : evaluating.predict(Batch{.size = 1}))
        computed_.emplace(o.name, o.value.copy());
    }
  }

  static std::string weight_key(const Value& w) {
    return std::to_string(w.op()->id) + "." + std::to_string(w.index());
  }

  const Tensor& value_of(const Value& w) const {
    return is_variable(*w.op()) ? variables_.at(w.op()->symbol) : computed_.at(weight_key(w));
  }

  /// Adds a parameter that no recipe trains. Its final name is set by name_parameters(), since
  /// replaced variables may have that name now.
  Value add_parameter(const std::string& name, const Tensor& value) {
    const std::string temporary = "quantized." + std::to_string(parameters_.size());
    const Type type{value.dtype(), Shape(value.shape().begin(), value.shape().end()), {}};
    const Value v = record_source(graph(), "param", temporary, type, {{"trainable", false}}, {});
    parameters_.push_back({v.op(), name, value});
    return v;
  }

  /// Calls `record` with the recording state of `from`. Moves the recorded ops to just behind
  /// `from`, or to just before it.
  template <class F>
  Value record_at(const ir::Op& from, bool behind, F record) {
    const ir::ScopedRecording as(graph(), recording_of(from));
    const size_t first = graph().ops.size();
    const Value v = record();
    const auto at = std::ranges::find(graph().ops, &from, &std::unique_ptr<ir::Op>::get);
    graph().move_tail(first, static_cast<size_t>(at - graph().ops.begin()) + (behind ? 1 : 0));
    return v;
  }

  void quantize_weight_of(const QuantizedOp& q) {
    const Value w = q.op->operands[1];
    Value& dequantized = weights_[{w, q.axis}];
    if (!dequantized) {
      const Int8Weight weight = quantize_weight(value_of(w), q.axis, q.name);
      const Value integers = add_parameter(q.name, weight.integers);
      const Value scale = add_parameter(q.name + ".scale", weight.scale);
      const DequantizeAttrs attrs{.axis = static_cast<int64_t>(q.axis)};
      dequantized =
          record_at(*q.op, false, [&] { return dequantize(integers, scale, attrs, q.op->loc); });
      move_first(*scale.op());
      move_first(*integers.op());
      names_.push_back(q.name);
    }
    q.op->operands[1] = dequantized;
  }

  /// Moves a parameter to the beginning of the graph, before all its users.
  void move_first(const ir::Op& op) {
    const auto at = std::ranges::find(graph().ops, &op, &std::unique_ptr<ir::Op>::get);
    std::rotate(graph().ops.begin(), at, at + 1);
  }

  /// Quantizes operand 0 of each selected op.
  void quantize_activations(const std::vector<QuantizedOp>& selected) {
    Values activations;
    std::map<Value, bool> padded;  // activation -> whether a padded convolution reads it
    std::map<Value, std::string> layers;
    for (const QuantizedOp& q : selected) {
      const Value x = q.op->operands[0];
      if (!padded.contains(x)) activations.push_back(x);
      padded[x] |= !reads_no_padding(*q.op);
      layers.try_emplace(x, layer_of(q.name));
    }
    const std::vector<ActivationRange> ranges = measure_ranges(
        executor_, *program_, activations, *options_.calibration, options_.calibration_batches);
    for (size_t i = 0; i < activations.size(); ++i)
      quantize_activation(activations[i], ranges[i], padded.at(activations[i]),
                          layers.at(activations[i]));
  }

  void quantize_activation(Value x, const ActivationRange& range, bool padded,
                           const std::string& layer) {
    const bool is_signed = range.low < 0 && padded;
    const double width =
        is_signed ? std::max(-range.low, range.high) / 127 : (range.high - range.low) / 255;
    const auto exact = static_cast<float>(width);
    const float scale_value = std::isnormal(exact) ? exact : 1;
    const Tensor scale_tensor = Tensor::of<float>({}, std::span(&scale_value, 1));
    const DType to = is_signed ? i8 : u8;
    const auto users = graph().uses()[x];
    const Value scale = add_parameter(layer + ".input.scale", scale_tensor);
    Value zero_point;
    if (range.low < 0 && !is_signed) {
      const auto point = static_cast<uint8_t>(
          std::clamp(std::nearbyint(-range.low / double{scale_value}), 0.0, 255.0));
      zero_point =
          add_parameter(layer + ".input.zero_point", Tensor::of<uint8_t>({}, std::span(&point, 1)));
    }
    const Value quantized = record_at(*x.op(), true, [&] {
      const QuantizeAttrs attrs{.to = Type{to, {}, {}}};
      const Value q = zero_point ? quantize(x, scale, zero_point, attrs, x.op()->loc)
                                 : quantize(x, scale, attrs, x.op()->loc);
      return zero_point ? dequantize(q, scale, zero_point, {}, x.op()->loc)
                        : dequantize(q, scale, {}, x.op()->loc);
    });
    move_first(*scale.op());
    if (zero_point) move_first(*zero_point.op());
    for (ir::Op* user : users) std::ranges::replace(user->operands, x, quantized);
  }

  /// Gives the new parameters their names. An earlier variable keeps its name if an op still reads
  /// it.
  void name_parameters() {
    std::set<std::string> taken;
    const auto is_new = [&](const ir::Op& op) {
      return std::ranges::any_of(parameters_, [&](const NewParameter& p) { return p.op == &op; });
    };
    for (const auto& op : graph().ops) {
      if (is_variable(*op) && !is_new(*op)) taken.insert(op->symbol);
    }
    for (const NewParameter& p : parameters_) {
      std::string name = p.name;
      for (int n = 1; !taken.insert(name).second; ++n) name = p.name + "." + std::to_string(n);
      p.op->symbol = name;
      variables_[name] = p.value;
    }
  }

  QuantizedProgram result() {
    QuantizedProgram quantized{.program = Program(program_->clone())};
    quantized.weights = names_;
    quantized.bytes_before = bytes_before_;
    for (const auto& op : quantized.program.ir().main().ops) {
      const auto value = is_variable(*op) ? variables_.find(op->symbol) : variables_.end();
      if (value == variables_.end()) continue;
      quantized.values.emplace_back(op->symbol, value->second);
      quantized.bytes_after += value->second.bytes();
    }
    return quantized;
  }

  struct NewParameter {
    ir::Op* op;
    std::string name;
    Tensor value;
  };

  Executor& executor_;
  const QuantizeOptions& options_;
  std::unique_ptr<ir::Program> program_;
  std::map<std::string, Tensor> variables_;  ///< name -> value of parameters and buffers
  std::map<std::string, Tensor> computed_;   ///< weight_key() -> value of a computed weight
  std::map<std::pair<Value, size_t>, Value> weights_;  ///< weight and axis -> dequantized weight
  std::vector<NewParameter> parameters_;
  std::vector<std::string> names_;
  int64_t bytes_before_ = 0;
};

}  // namespace

QuantizedProgram quantize(Executor& executor, const Program& program,
                          const QuantizeOptions& options) {
  return Quantizer(executor, program, options).run();
}

void set_parameters(Executor& executor, const QuantizedProgram& quantized) {
  for (const auto& [name, value] : quantized.values) executor.set_parameter(name, value);
}

}  // namespace fluid
