// Layers against PyTorch's, which tests/golden/layers.py recorded: results, gradients of inputs and
// parameters, running statistics.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "frontend/fluid.h"
#include "tests/support/all_within.h"
#include "tests/support/golden.h"

namespace fluid::layers_test {
namespace {

using Json = nlohmann::json;

constexpr int64_t kSamples = 2;
/// The streams of the script. Parameter k has stream k.
constexpr uint64_t kInput = 100, kWeights = 120;

/// Records a layer on the inputs of a case.
using Layer = std::function<Value(const Values& x)>;

/// All activations of one linear layer, in the script's order.
Value activations(Value x) {
  const Value h = linear(x, {.units = 3});
  Values all;
  for (const Act act : {Act::relu, Act::sigmoid, Act::tanh, Act::gelu, Act::relu6, Act::leaky_relu,
                        Act::elu, Act::selu, Act::celu, Act::silu, Act::mish, Act::softplus,
                        Act::softsign, Act::hard_sigmoid, Act::hard_swish, Act::log_sigmoid}) {
    all.push_back(activate(h, act));
  }
  return concat(all, {.axis = 1});
}

Value tied_embedding(Value index) {
  ir::Graph& graph = *index.op()->graph();
  const Value h = embedding(index, {.rows = 4, .units = 3, .dtype = f64});
  const auto is_table = [](const auto& op) { return op->name == "param"; };
  const Value table = (*std::ranges::find_if(graph.ops, is_table))->result();
  return matmul(h, table, {.transpose_b = true});
}

/// The decoder layer of Vaswani et al., "Attention is all you need", 2017.
Value decoder(Value x, Value memory) {
  const auto added = [](Value to, Value change) { return layer_norm(to + change); };
  const Value y = added(x, multi_head_attention(x, {.heads = 2, .causal = true}));
  const Value z = added(y, multi_head_attention(y, memory, {.heads = 2}));
  return added(z, linear(linear(z, {.units = 5, .act = Act::relu}), {.units = 4}));
}

const std::map<std::string, Layer>& layers() {
  static const std::map<std::string, Layer> all = {
      {"conv1d",
       [](const Values& x) {
         return conv1d(x[0], {.filters = 3, .kernel = 3, .stride = 2, .padding = 1});
       }},
      {"conv2d",
       [](const Values& x) {
         return conv2d(x[0], {.filters = 2,
                              .kernel = {2, 3},
                              .stride = {1, 2},
                              .padding = {1, 0},
                              .dilation = {2, 1},
                              .groups = 2});
       }},
      {"conv2d_same",
       [](const Values& x) {
         return conv2d(x[0], {.filters = 2,
                              .kernel = {2, 4},
                              .padding = Same::upper,
                              .bias = false,
                              .act = Act::relu});
       }},
      {"conv3d",
       [](const Values& x) {
         return conv3d(x[0], {.filters = 2, .kernel = {2, 2, 1}, .padding = {0, 1, 0}});
       }},
      {"conv1d_transpose",
       [](const Values& x) {
         return conv1d_transpose(x[0],
                                 {.filters = 2, .kernel = 3, .stride = 2, .output_padding = 1});
       }},
      {"conv2d_transpose",
       [](const Values& x) {
         return conv2d_transpose(
             x[0], {.filters = 2, .kernel = {3, 2}, .stride = 2, .padding = {1, 0}, .groups = 2});
       }},
      {"conv3d_transpose",
       [](const Values& x) {
         return conv3d_transpose(
             x[0], {.filters = 2, .kernel = {2, 1, 2}, .dilation = {1, 1, 2}, .bias = false});
       }},
      {"conv2d_transpose_same",
       [](const Values& x) {
         return conv2d_transpose(
             x[0], {.filters = 2, .kernel = {3, 4}, .stride = {2, 1}, .padding = Same::upper});
       }},
      {"linear", [](const Values& x) { return linear(x[0], {.units = 4}); }},
      {"activations", [](const Values& x) { return activations(x[0]); }},
      {"embedding",
       [](const Values& x) {
         return embedding(x[0], {.rows = 5, .units = 2, .dtype = f64, .padding = 1});
       }},
      {"tied_embedding", [](const Values& x) { return tied_embedding(x[0]); }},
      {"batch_norm",
       [](const Values& x) { return batch_norm(x[0], {.eps = 1e-3, .momentum = 0.3}); }},
      {"batch_norm_rows",
       [](const Values& x) { return batch_norm(x[0], {.eps = 1e-3, .momentum = 0.3}); }},
      {"layer_norm", [](const Values& x) { return layer_norm(x[0], {.axis = 1, .eps = 1e-3}); }},
      {"layer_norm_scale", [](const Values& x) { return layer_norm(x[0], {.bias = false}); }},
      {"layer_norm_plain", [](const Values& x) { return layer_norm(x[0], {.affine = false}); }},
      {"rms_norm", [](const Values& x) { return rms_norm(x[0]); }},
      {"rms_norm_axis", [](const Values& x) { return rms_norm(x[0], {.axis = 1, .eps = 0.5}); }},
      {"group_norm_scale",
       [](const Values& x) { return group_norm(x[0], {.groups = 2, .eps = 0.5, .bias = false}); }},
      {"group_norm", [](const Values& x) { return group_norm(x[0], {.groups = 2}); }},
      {"instance_norm", [](const Values& x) { return instance_norm(x[0]); }},
      {"instance_norm_affine",
       [](const Values& x) { return instance_norm(x[0], {.affine = true}); }},
      {"global_avg_pool", [](const Values& x) { return global_avg_pool(x[0]); }},
      {"global_max_pool", [](const Values& x) { return global_max_pool(x[0]); }},
      {"global_lp_pool", [](const Values& x) { return global_lp_pool(x[0], 3); }},
      {"attention", [](const Values& x) { return multi_head_attention(x[0], {.heads = 2}); }},
      {"attention_causal_without_bias",
       [](const Values& x) {
         return multi_head_attention(x[0], {.heads = 2, .causal = true, .bias = false});
       }},
      {"attention_bool_mask",
       [](const Values& x) { return multi_head_attention(x[0], {.heads = 2, .mask = x[1]}); }},
      {"attention_additive_mask",
       [](const Values& x) { return multi_head_attention(x[0], {.heads = 2, .mask = x[1]}); }},
      {"attention_alibi",
       [](const Values& x) { return multi_head_attention(x[0], {.heads = 2, .alibi = true}); }},
      {"attention_key_heads",
       [](const Values& x) {
         return multi_head_attention(x[0], {.heads = 4, .key_heads = 2, .causal = true});
       }},
      {"cross_attention",
       [](const Values& x) { return multi_head_attention(x[0], x[1], {.heads = 2}); }},
      {"cross_attention_bool_mask",
       [](const Values& x) {
         return multi_head_attention(x[0], x[1], {.heads = 2, .mask = x[2]});
       }},
      {"cross_attention_additive_mask",
       [](const Values& x) {
         return multi_head_attention(x[0], x[1], {.heads = 2, .mask = x[2], .bias = false});
       }},
      {"cross_attention_key_heads",
       [](const Values& x) {
         return multi_head_attention(x[0], x[1], {.heads = 4, .key_heads = 1, .mask = x[2]});
       }},
      {"scaled_dot_product_attention",
       [](const Values& x) {
         return scaled_dot_product_attention(x[0], x[1], x[2], x[3], {.scale = 0.25});
       }},
      {"positional_encoding", [](const Values& x) { return positional_encoding(x[0]); }},
      {"block",
       [](const Values& x) {
         return transformer_block(x[0], {.heads = 2, .hidden = 5, .causal = true});
       }},
      {"block_post_norm",
       [](const Values& x) {
         return transformer_block(x[0], {.heads = 2,
                                         .hidden = 5,
                                         .mask = x[1],
                                         .act = Act::relu,
                                         .norm_first = false,
                                         .eps = 1e-3});
       }},
      {"block_key_heads",
       [](const Values& x) {
         return transformer_block(x[0], {.heads = 4, .key_heads = 2, .hidden = 5});
       }},
      {"block_without_bias",
       [](const Values& x) {
         return transformer_block(x[0], {.heads = 2, .hidden = 5, .bias = false});
       }},
      {"decoder", [](const Values& x) { return decoder(x[0], x[1]); }},
  };
  return all;
}

/// An input of the script.
Tensor input(uint64_t i, const Json& golden) {
  const auto shape = golden.at("shape").get<std::vector<int64_t>>();
  if (!golden.contains("below")) return testing::golden_tensor(kInput + i, shape);
  Tensor t(i64, shape);
  const std::vector<double> uniform = testing::golden_uniform(kInput + i, t.numel());
  for (size_t e = 0; e < uniform.size(); ++e) {
    t.as<int64_t>()[e] = static_cast<int64_t>(golden.at("below").get<double>() * uniform[e]);
  }
  return t.cast(*parse_dtype(golden.at("dtype").get<std::string>()));
}

/// A program that trains a layer, with the outputs "y" and the gradients of the loss.
class Work {
 public:
  explicit Work(const Json& golden) {
    Values inputs, leaves;
    for (const Json& each : golden.at("inputs")) {
      inputs.push_back(feed("x" + std::to_string(inputs.size()), input(inputs.size(), each)));
      const bool differentiable = is_float(inputs.back().dtype()) && !each.contains("constant");
      if (differentiable) leaves.push_back(inputs.back());
    }
    const Value y = layers().at(golden.at("name").get<std::string>())(inputs);
    for (const auto& op : net_.ir().main().ops) {
      if (op->name == "param") parameters_.push_back(op->result());
    }
    std::vector<int64_t> shape = {kSamples};
    for (size_t d = 1; d < y.shape().size(); ++d) shape.push_back(y.shape()[d].size);
    const Value loss = sum(y * feed("weights", testing::golden_tensor(kWeights, shape)));
    net_.output("y", y);
    add_gradients("grad_inputs", loss, leaves);
    add_gradients("grad_parameters", loss, parameters_);
    if (!parameters_.empty()) minimize(loss, SGD{.lr = 1});
  }

  const Batch& batch() const { return batch_; }
  const Values& parameters() const { return parameters_; }
  Executor executor() const {
    Executor exe(net_, cpu(), {.batch = kSamples});
    for (size_t k = 0; k < parameters_.size(); ++k) {
      const std::string& name = parameters_[k].op()->symbol;
      exe.set_parameter(name, testing::golden_tensor(k, exe.parameter(name).shape()));
    }
    return exe;
  }

 private:
  /// A feed of `t`. Tensors whose first extent is the number of samples have a batch dimension.
  Value feed(const std::string& name, const Tensor& t) {
    batch_.size = kSamples;
    batch_.columns.emplace_back(name, t);
    Shape shape(t.shape().begin(), t.shape().end());
    if (t.shape()[0] == kSamples) shape[0] = kBatch;
    return net_.data(name, shape, t.dtype());
  }

  void add_gradients(const std::string& name, Value loss, const Values& xs) {
    if (xs.empty()) return;
    const Values grads = gradients(loss, xs);
    for (size_t i = 0; i < grads.size(); ++i) net_.output(name + std::to_string(i), grads[i]);
  }

  Program net_{"layer"};
  Batch batch_;
  Values parameters_;
};

TEST(Layers, ResultsAndGradientsArePyTorchs) {
  const Json json = testing::golden_json("layers.json");
  EXPECT_EQ(json.at("cases").size(), layers().size());
  for (const Json& golden : json.at("cases")) {
    SCOPED_TRACE(golden.at("name").get<std::string>());
    const Work work(golden);
    ASSERT_EQ(work.parameters().size(), golden.at("parameters").size());
    Executor exe = work.executor();
    {
      const bool trains = !work.parameters().empty();
      const OutputViews out = trains ? exe.run(work.batch()) : exe.predict(work.batch());
      testing::expect_golden(out["y"], golden.at("y"), "y");
      for (const std::string name : {"grad_inputs", "grad_parameters"}) {
        const Json& expected = golden.at(name);
        for (size_t i = 0; i < expected.size(); ++i) {
          const std::string output = name + std::to_string(i);
          testing::expect_golden(out[output], expected[i], output);
        }
      }
    }
    if (!golden.contains("eval")) continue;
    for (const std::string name : {"running_mean", "running_var"}) {
      testing::expect_golden(exe.parameter("bn0." + name), golden.at(name), name);
    }
    testing::expect_golden(exe.eval(work.batch())["y"], golden.at("eval"), "y in eval");
  }
}

}  // namespace
}  // namespace fluid::layers_test
