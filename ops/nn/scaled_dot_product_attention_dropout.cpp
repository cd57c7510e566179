#include "ops/nn/attention.h"
#include "ops/nn/scaled_dot_product_attention.h"
#include "ops/operators.h"
#include "ops/random/draw.h"

namespace fluid {
namespace {

/// Operand indices. The mask is optional.
struct DropoutOperands {
  static constexpr size_t kRng = 3, kMask = 4;
};

Value mask_of_dropout(const ir::Op& op) {
  return op.operands.size() > DropoutOperands::kMask ? op.operands[DropoutOperands::kMask]
                                                     : Value();
}

/// The random key of the attention kernels. Its last element is the random stream. The stream is
/// not an attribute of the kernels, so that repeated layers share compiled kernels.
Value random_key_of_dropout(const ir::Op& op) {
  // Philox uses only the low 32 bits of the stream.
  const int64_t stream = op.attrs.get<int64_t>("stream") & 0xffffffff;
  const Value element =
      fill(*op.graph(), {.type = Type{i64, {1}, {}}, .value = static_cast<double>(stream)});
  return concat({op.operands[DropoutOperands::kRng], element}, {.axis = 0});
}

}  // namespace

OpDef scaled_dot_product_attention_dropout_op() {
  std::vector<PortDef> inputs = attention_inputs();
  inputs.push_back({"rng", "i64[3]: seed, run counter, index of the first sample"});
  inputs.push_back(attention_mask_input());
  std::vector<AttrDef> attrs = attention_kernel_attrs();
  attrs.push_back({"stream", int64_t{-1}, "identifies the Philox random stream"});
  return OpDef{
      .name = "scaled_dot_product_attention_dropout",
      .doc =
          "scaled_dot_product_attention whose softmax weights are set to 0 with probability "
          "`dropout`, and else scaled by 1 / (1 - dropout). The kernels of the gradient draw the "
          "same random numbers again. Equals scaled_dot_product_attention in eval and predict.",
      .inputs = inputs,
      .attrs = attrs,
      .outputs = attention_outputs(),
      .infer =
          [](const InferCtx& c) {
            require_random_state(c, DropoutOperands::kRng);
            require_attention_dropout(c);
            return infer_attention(c, DropoutOperands::kMask);
          },
      .grad = GradFn([](const GradCtx& c) {
        return attention_gradients(c, mask_of_dropout(c.op()), random_key_of_dropout(c.op()));
      }),
      .effects = Random{},
      .amp = {Amp::kHalf},
      .cost =
          [](const CostCtx& c) {
            return attention_cost(c, attention_shape(c.in[0], c.in[1], c.in[2]), 1, 1);
          },
      .in_place = {},
      .lower = Expand{[](const ExpandCtx& c) {
        return expand_attention(c, mask_of_dropout(c.op()), random_key_of_dropout(c.op()));
      }},
      .kernels = {},
      .version = 1,
      .inference =
          [](const ExpandCtx& c) {
            Values operands = {c.in(0), c.in(1), c.in(2)};
            operands.push_back(mask_of_dropout(c.op()));
            return record(*c.op().graph(), "scaled_dot_product_attention", operands,
                          {{"causal", c.attr<bool>("causal")},
                           {"scale", c.attr<double>("scale")},
                           {"alibi", c.attr<bool>("alibi")}},
                          c.op().loc);
          },
      .internal = true,
  };
}

}  // namespace fluid
