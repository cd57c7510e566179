#include "tests/support/small_programs.h"

#include "ops/internal_functions.h"
#include "ops/operators.h"
#include "ops/record.h"

namespace fluid::testing {
namespace {

Value parameter(ir::Graph& g, const std::string& name, Shape shape, DType dtype) {
  return record_source(g, "param", name, Type{dtype, std::move(shape), {}},
                       {{"init", std::string("kaiming_uniform")}}, {});
}

Value bias(ir::Graph& g, const std::string& name, Shape shape, DType dtype) {
  return record_source(g, "param", name, Type{dtype, std::move(shape), {}}, {}, {});
}

}  // namespace

std::unique_ptr<ir::Program> conv_net(const ConvNet& net) {
  auto program = std::make_unique<ir::Program>("conv_net");
  ir::Graph& g = program->main();
  const DType t = net.dtype;
  const Value image = record_source(g, "data", "image",
                                    Type{t, {kBatch, 1, Dim(net.size), Dim(net.size)}, {}}, {}, {});
  const Value label = record_source(g, "data", "label", Type{i64, {kBatch}, {}}, {}, {});
  const Value rng = record_source(g, "state", "rng", Type{i64, {3}, {}}, {}, {});
  auto conv = [&](Value x, const std::string& name, int64_t in, int64_t out, int64_t k) {
    const Value w = parameter(g, name + ".w", {Dim(out), Dim(in), Dim(k), Dim(k)}, t);
    const Value b = bias(g, name + ".b", {Dim(out), 1, 1}, t);
    return max_pool2d(conv2d(x, w) + b, {.kernel = 2, .stride = 2});
  };
  auto dense = [&](Value x, const std::string& name, int64_t in, int64_t out) {
    return matmul(x, parameter(g, name + ".w", {Dim(in), Dim(out)}, t)) +
           bias(g, name + ".b", {Dim(out)}, t);
  };
  Value h = conv(image, "conv0", 1, net.first, 3);
  h = conv(h, "conv1", net.first, net.second, 5);
  if (net.dropout > 0) h = internal::dropout2d(h, rng, {.p = net.dropout});
  h = reshape(adaptive_max_pool2d(h, {.output = 1}), Shape{kBatch, Dim(net.second)});
  h = relu(dense(h, "fc0", net.second, net.hidden));
  const Value loss = mean(softmax_cross_entropy(dense(h, "fc1", net.hidden, 10), label));
  g.outputs.push_back({"loss", loss});
  record(g, "train", {loss}, {{"optimizer", net.optimizer}, {"lr", 0.02}}, {});
  return program;
}

}  // namespace fluid::testing
