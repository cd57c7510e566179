// Generated from the op table by fluid_opgen.
// clang-format off
#include "ops/functions.h"

#include "ops/internal_functions.h"
#include "ops/optimizers.h"
#include "ops/schedules.h"

namespace fluid {

Value abs(Value x, const Loc& loc) { return record(graph_of({x}, "abs", loc), "abs", {x}, {}, loc).at(0); }

Value accuracy(Value x, Value label, const Loc& loc) { return record(graph_of({x, label}, "accuracy", loc), "accuracy", {x, label}, {}, loc).at(0); }

Value acos(Value x, const Loc& loc) { return record(graph_of({x}, "acos", loc), "acos", {x}, {}, loc).at(0); }

Attrs recipe_of(const Adadelta& o) { return {{"lr", o.lr}, {"rho", o.rho}, {"eps", o.eps}, {"weight_decay", o.weight_decay}, {"optimizer", std::string("adadelta")}}; }

Attrs recipe_of(const Adafactor& o) { return {{"lr", o.lr}, {"decay_exponent", o.decay_exponent}, {"eps1", o.eps1}, {"eps2", o.eps2}, {"clip_threshold", o.clip_threshold}, {"weight_decay", o.weight_decay}, {"optimizer", std::string("adafactor")}}; }

Attrs recipe_of(const Adagrad& o) { return {{"lr", o.lr}, {"lr_decay", o.lr_decay}, {"initial_accumulator_value", o.initial_accumulator_value}, {"eps", o.eps}, {"weight_decay", o.weight_decay}, {"optimizer", std::string("adagrad")}}; }

Attrs recipe_of(const Adam& o) { return {{"lr", o.lr}, {"beta1", o.beta1}, {"beta2", o.beta2}, {"eps", o.eps}, {"weight_decay", o.weight_decay}, {"amsgrad", o.amsgrad}, {"optimizer", std::string("adam")}}; }

Attrs recipe_of(const Adamax& o) { return {{"lr", o.lr}, {"beta1", o.beta1}, {"beta2", o.beta2}, {"eps", o.eps}, {"weight_decay", o.weight_decay}, {"optimizer", std::string("adamax")}}; }

Attrs recipe_of(const AdamW& o) { return {{"lr", o.lr}, {"beta1", o.beta1}, {"beta2", o.beta2}, {"eps", o.eps}, {"weight_decay", o.weight_decay}, {"amsgrad", o.amsgrad}, {"optimizer", std::string("adamw")}}; }

Value adaptive_avg_pool2d(Value x, const AdaptiveAvgPool2dAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "adaptive_avg_pool2d", loc), "adaptive_avg_pool2d", {x}, {{"output", std::vector<int64_t>(*attrs.output)}}, loc).at(0); }

Value adaptive_max_pool2d(Value x, const AdaptiveMaxPool2dAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "adaptive_max_pool2d", loc), "adaptive_max_pool2d", {x}, {{"output", std::vector<int64_t>(*attrs.output)}}, loc).at(0); }

Value add(Value a, Value b, const Loc& loc) { return record(graph_of({a, b}, "add", loc), "add", {a, b}, {}, loc).at(0); }

Value alibi(ir::Graph& graph, const AlibiAttrs& attrs, const Loc& loc) { return record(graph, "alibi", {}, {{"type", *attrs.type}}, loc).at(0); }

Value all(Value x, const AllAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "all", loc), "all", {x}, {{"axes", std::vector<int64_t>(attrs.axes)}, {"keep_dims", attrs.keep_dims}}, loc).at(0); }

Value any(Value x, const AnyAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "any", loc), "any", {x}, {{"axes", std::vector<int64_t>(attrs.axes)}, {"keep_dims", attrs.keep_dims}}, loc).at(0); }

Value apply_rotary_embedding(Value x, Value cos, Value sin, const ApplyRotaryEmbeddingAttrs& attrs, const Loc& loc) { return record(graph_of({x, cos, sin}, "apply_rotary_embedding", loc), "apply_rotary_embedding", {x, cos, sin}, {{"interleaved", attrs.interleaved}}, loc).at(0); }

Value arange(ir::Graph& graph, const ArangeAttrs& attrs, const Loc& loc) { return record(graph, "arange", {}, {{"type", *attrs.type}, {"start", attrs.start}, {"step", attrs.step}}, loc).at(0); }

Value argmax(Value x, const ArgmaxAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "argmax", loc), "argmax", {x}, {{"axis", attrs.axis}, {"keep_dims", attrs.keep_dims}}, loc).at(0); }

Value argmin(Value x, const ArgminAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "argmin", loc), "argmin", {x}, {{"axis", attrs.axis}, {"keep_dims", attrs.keep_dims}}, loc).at(0); }

Value argsort(Value x, const ArgsortAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "argsort", loc), "argsort", {x}, {{"axis", attrs.axis}, {"descending", attrs.descending}}, loc).at(0); }

Value asin(Value x, const Loc& loc) { return record(graph_of({x}, "asin", loc), "asin", {x}, {}, loc).at(0); }

Value atan(Value x, const Loc& loc) { return record(graph_of({x}, "atan", loc), "atan", {x}, {}, loc).at(0); }

Value avg_pool1d(Value x, const AvgPool1dAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "avg_pool1d", loc), "avg_pool1d", {x}, {{"kernel", std::vector<int64_t>(*attrs.kernel)}, {"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"ceil_mode", attrs.ceil_mode}, {"count_include_pad", attrs.count_include_pad}, {"divisor_override", attrs.divisor_override}}, loc).at(0); }

Value avg_pool2d(Value x, const AvgPool2dAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "avg_pool2d", loc), "avg_pool2d", {x}, {{"kernel", std::vector<int64_t>(*attrs.kernel)}, {"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"ceil_mode", attrs.ceil_mode}, {"count_include_pad", attrs.count_include_pad}, {"divisor_override", attrs.divisor_override}}, loc).at(0); }

Value avg_pool3d(Value x, const AvgPool3dAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "avg_pool3d", loc), "avg_pool3d", {x}, {{"kernel", std::vector<int64_t>(*attrs.kernel)}, {"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"ceil_mode", attrs.ceil_mode}, {"count_include_pad", attrs.count_include_pad}, {"divisor_override", attrs.divisor_override}}, loc).at(0); }

Value bilinear(Value a, Value b, Value w, const Loc& loc) { return record(graph_of({a, b, w}, "bilinear", loc), "bilinear", {a, b, w}, {}, loc).at(0); }

Value bilinear(Value a, Value b, Value w, Value bias, const Loc& loc) { return record(graph_of({a, b, w}, "bilinear", loc), "bilinear", {a, b, w, bias}, {}, loc).at(0); }

Value binary_cross_entropy(Value x, Value target, const BinaryCrossEntropyAttrs& attrs, const Loc& loc) { return record(graph_of({x, target}, "binary_cross_entropy", loc), "binary_cross_entropy", {x, target}, {{"reduction", attrs.reduction}}, loc).at(0); }

Value binary_cross_entropy_with_logits(Value x, Value target, const BinaryCrossEntropyWithLogitsAttrs& attrs, const Loc& loc) { return record(graph_of({x, target}, "binary_cross_entropy_with_logits", loc), "binary_cross_entropy_with_logits", {x, target}, {{"reduction", attrs.reduction}}, loc).at(0); }

Value binary_cross_entropy_with_logits(Value x, Value target, Value pos_weight, const BinaryCrossEntropyWithLogitsAttrs& attrs, const Loc& loc) { return record(graph_of({x, target}, "binary_cross_entropy_with_logits", loc), "binary_cross_entropy_with_logits", {x, target, pos_weight}, {{"reduction", attrs.reduction}}, loc).at(0); }

Value broadcast_to(Value x, const BroadcastToAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "broadcast_to", loc), "broadcast_to", {x}, {{"to", *attrs.to}}, loc).at(0); }

Value cast(Value x, const CastAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "cast", loc), "cast", {x}, {{"to", *attrs.to}}, loc).at(0); }

Value ceil(Value x, const Loc& loc) { return record(graph_of({x}, "ceil", loc), "ceil", {x}, {}, loc).at(0); }

Value celu(Value x, const CeluAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "celu", loc), "celu", {x}, {{"alpha", attrs.alpha}}, loc).at(0); }

Value clip(Value x, const ClipAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "clip", loc), "clip", {x}, {{"min", attrs.min}, {"max", attrs.max}}, loc).at(0); }

Value concat(const Values& xs, const ConcatAttrs& attrs, const Loc& loc) { Values operands = {}; operands.insert(operands.end(), xs.begin(), xs.end()); return record(graph_of(operands, "concat", loc), "concat", operands, {{"axis", attrs.axis}}, loc).at(0); }

Attrs schedule_attrs_of(const ConstantRate& s) { return {{"schedule", std::string("constant")}, {"schedule_warmup", s.warmup}, {"schedule_warmup_start", s.warmup_start}, {"schedule_constant_warmup", s.constant_warmup}}; }

Value conv1d(Value x, Value w, const Conv1dAttrs& attrs, const Loc& loc) { return record(graph_of({x, w}, "conv1d", loc), "conv1d", {x, w}, {{"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"groups", attrs.groups}}, loc).at(0); }

Value conv1d_transpose(Value x, Value w, const Conv1dTransposeAttrs& attrs, const Loc& loc) { return record(graph_of({x, w}, "conv1d_transpose", loc), "conv1d_transpose", {x, w}, {{"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"groups", attrs.groups}, {"output_padding", std::vector<int64_t>(attrs.output_padding)}}, loc).at(0); }

Value conv2d(Value x, Value w, const Conv2dAttrs& attrs, const Loc& loc) { return record(graph_of({x, w}, "conv2d", loc), "conv2d", {x, w}, {{"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"groups", attrs.groups}}, loc).at(0); }

Value conv2d_transpose(Value x, Value w, const Conv2dTransposeAttrs& attrs, const Loc& loc) { return record(graph_of({x, w}, "conv2d_transpose", loc), "conv2d_transpose", {x, w}, {{"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"groups", attrs.groups}, {"output_padding", std::vector<int64_t>(attrs.output_padding)}}, loc).at(0); }

Value conv3d(Value x, Value w, const Conv3dAttrs& attrs, const Loc& loc) { return record(graph_of({x, w}, "conv3d", loc), "conv3d", {x, w}, {{"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"groups", attrs.groups}}, loc).at(0); }

Value conv3d_transpose(Value x, Value w, const Conv3dTransposeAttrs& attrs, const Loc& loc) { return record(graph_of({x, w}, "conv3d_transpose", loc), "conv3d_transpose", {x, w}, {{"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"groups", attrs.groups}, {"output_padding", std::vector<int64_t>(attrs.output_padding)}}, loc).at(0); }

Value cos(Value x, const Loc& loc) { return record(graph_of({x}, "cos", loc), "cos", {x}, {}, loc).at(0); }

Value cosh(Value x, const Loc& loc) { return record(graph_of({x}, "cosh", loc), "cosh", {x}, {}, loc).at(0); }

Value cosine_embedding_loss(Value a, Value b, Value target, const CosineEmbeddingLossAttrs& attrs, const Loc& loc) { return record(graph_of({a, b, target}, "cosine_embedding_loss", loc), "cosine_embedding_loss", {a, b, target}, {{"margin", attrs.margin}, {"reduction", attrs.reduction}}, loc).at(0); }

Attrs schedule_attrs_of(const CosineRestarts& s) { return {{"schedule", std::string("cosine_restarts")}, {"schedule_period", *s.period}, {"schedule_growth", s.growth}, {"schedule_end", s.end}, {"schedule_warmup", s.warmup}, {"schedule_warmup_start", s.warmup_start}, {"schedule_constant_warmup", s.constant_warmup}}; }

Attrs schedule_attrs_of(const Cosine& s) { return {{"schedule", std::string("cosine")}, {"schedule_steps", *s.steps}, {"schedule_end", s.end}, {"schedule_warmup", s.warmup}, {"schedule_warmup_start", s.warmup_start}, {"schedule_constant_warmup", s.constant_warmup}}; }

Value cumprod(Value x, const CumprodAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "cumprod", loc), "cumprod", {x}, {{"axis", attrs.axis}, {"exclusive", attrs.exclusive}, {"reverse", attrs.reverse}}, loc).at(0); }

Value cumsum(Value x, const CumsumAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "cumsum", loc), "cumsum", {x}, {{"axis", attrs.axis}, {"exclusive", attrs.exclusive}, {"reverse", attrs.reverse}}, loc).at(0); }

Value dequantize(Value x, Value scale, const DequantizeAttrs& attrs, const Loc& loc) { return record(graph_of({x, scale}, "dequantize", loc), "dequantize", {x, scale}, {{"axis", attrs.axis}}, loc).at(0); }

Value dequantize(Value x, Value scale, Value zero_point, const DequantizeAttrs& attrs, const Loc& loc) { return record(graph_of({x, scale}, "dequantize", loc), "dequantize", {x, scale, zero_point}, {{"axis", attrs.axis}}, loc).at(0); }

Value dice_loss(Value x, Value target, const DiceLossAttrs& attrs, const Loc& loc) { return record(graph_of({x, target}, "dice_loss", loc), "dice_loss", {x, target}, {{"smooth", attrs.smooth}, {"reduction", attrs.reduction}}, loc).at(0); }

Value div(Value a, Value b, const Loc& loc) { return record(graph_of({a, b}, "div", loc), "div", {a, b}, {}, loc).at(0); }

Value einsum(const Values& xs, const EinsumAttrs& attrs, const Loc& loc) { Values operands = {}; operands.insert(operands.end(), xs.begin(), xs.end()); return record(graph_of(operands, "einsum", loc), "einsum", operands, {{"equation", *attrs.equation}}, loc).at(0); }

Value elu(Value x, const EluAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "elu", loc), "elu", {x}, {{"alpha", attrs.alpha}}, loc).at(0); }

Value embedding(Value table, Value index, const EmbeddingAttrs& attrs, const Loc& loc) { return record(graph_of({table, index}, "embedding", loc), "embedding", {table, index}, {{"padding_idx", std::vector<int64_t>(attrs.padding_idx)}}, loc).at(0); }

Value embedding_bag(Value table, Value index, const EmbeddingBagAttrs& attrs, const Loc& loc) { return record(graph_of({table, index}, "embedding_bag", loc), "embedding_bag", {table, index}, {{"mode", attrs.mode}, {"padding_idx", std::vector<int64_t>(attrs.padding_idx)}}, loc).at(0); }

Value embedding_bag(Value table, Value index, Value weights, const EmbeddingBagAttrs& attrs, const Loc& loc) { return record(graph_of({table, index}, "embedding_bag", loc), "embedding_bag", {table, index, weights}, {{"mode", attrs.mode}, {"padding_idx", std::vector<int64_t>(attrs.padding_idx)}}, loc).at(0); }

Value equal(Value a, Value b, const Loc& loc) { return record(graph_of({a, b}, "equal", loc), "equal", {a, b}, {}, loc).at(0); }

Value erf(Value x, const Loc& loc) { return record(graph_of({x}, "erf", loc), "erf", {x}, {}, loc).at(0); }

Value exp(Value x, const Loc& loc) { return record(graph_of({x}, "exp", loc), "exp", {x}, {}, loc).at(0); }

Value exp2(Value x, const Loc& loc) { return record(graph_of({x}, "exp2", loc), "exp2", {x}, {}, loc).at(0); }

Value expm1(Value x, const Loc& loc) { return record(graph_of({x}, "expm1", loc), "expm1", {x}, {}, loc).at(0); }

Attrs schedule_attrs_of(const ExponentialDecay& s) { return {{"schedule", std::string("exponential")}, {"schedule_factor", *s.factor}, {"schedule_every", s.every}, {"schedule_warmup", s.warmup}, {"schedule_warmup_start", s.warmup_start}, {"schedule_constant_warmup", s.constant_warmup}}; }

Value f1_score(Value x, Value label, const F1ScoreAttrs& attrs, const Loc& loc) { return record(graph_of({x, label}, "f1_score", loc), "f1_score", {x, label}, {{"average", attrs.average}, {"threshold", attrs.threshold}}, loc).at(0); }

Value fill(ir::Graph& graph, const FillAttrs& attrs, const Loc& loc) { return record(graph, "fill", {}, {{"type", *attrs.type}, {"value", attrs.value}}, loc).at(0); }

Value flatten(Value x, const FlattenAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "flatten", loc), "flatten", {x}, {{"axis", attrs.axis}}, loc).at(0); }

Value flip(Value x, const FlipAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "flip", loc), "flip", {x}, {{"axes", std::vector<int64_t>(*attrs.axes)}}, loc).at(0); }

Value floor(Value x, const Loc& loc) { return record(graph_of({x}, "floor", loc), "floor", {x}, {}, loc).at(0); }

Value focal_loss(Value x, Value target, const FocalLossAttrs& attrs, const Loc& loc) { return record(graph_of({x, target}, "focal_loss", loc), "focal_loss", {x, target}, {{"alpha", attrs.alpha}, {"gamma", attrs.gamma}, {"reduction", attrs.reduction}}, loc).at(0); }

Value fold(Value x, const FoldAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "fold", loc), "fold", {x}, {{"output", std::vector<int64_t>(*attrs.output)}, {"kernel", std::vector<int64_t>(*attrs.kernel)}, {"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}}, loc).at(0); }

Value gather(Value x, Value index, const GatherAttrs& attrs, const Loc& loc) { return record(graph_of({x, index}, "gather", loc), "gather", {x, index}, {{"axis", attrs.axis}}, loc).at(0); }

Value gather_nd(Value x, Value index, const GatherNdAttrs& attrs, const Loc& loc) { return record(graph_of({x, index}, "gather_nd", loc), "gather_nd", {x, index}, {{"batch_dims", attrs.batch_dims}}, loc).at(0); }

Value gelu(Value x, const GeluAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "gelu", loc), "gelu", {x}, {{"approximate", attrs.approximate}}, loc).at(0); }

Values gradients(Value y, const Values& xs, const Loc& loc) { Values operands = {y}; operands.insert(operands.end(), xs.begin(), xs.end()); return record(graph_of(operands, "gradients", loc), "gradients", operands, {}, loc); }

Value greater(Value a, Value b, const Loc& loc) { return record(graph_of({a, b}, "greater", loc), "greater", {a, b}, {}, loc).at(0); }

Value greater_equal(Value a, Value b, const Loc& loc) { return record(graph_of({a, b}, "greater_equal", loc), "greater_equal", {a, b}, {}, loc).at(0); }

Value hard_sigmoid(Value x, const HardSigmoidAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "hard_sigmoid", loc), "hard_sigmoid", {x}, {{"alpha", attrs.alpha}, {"beta", attrs.beta}}, loc).at(0); }

Value hard_swish(Value x, const Loc& loc) { return record(graph_of({x}, "hard_swish", loc), "hard_swish", {x}, {}, loc).at(0); }

Value hinge_loss(Value x, Value target, const HingeLossAttrs& attrs, const Loc& loc) { return record(graph_of({x, target}, "hinge_loss", loc), "hinge_loss", {x, target}, {{"reduction", attrs.reduction}}, loc).at(0); }

Value huber_loss(Value x, Value target, const HuberLossAttrs& attrs, const Loc& loc) { return record(graph_of({x, target}, "huber_loss", loc), "huber_loss", {x, target}, {{"delta", attrs.delta}, {"reduction", attrs.reduction}}, loc).at(0); }

Value index_add(Value x, Value index, Value updates, const IndexAddAttrs& attrs, const Loc& loc) { return record(graph_of({x, index, updates}, "index_add", loc), "index_add", {x, index, updates}, {{"axis", attrs.axis}, {"alpha", attrs.alpha}}, loc).at(0); }

Attrs schedule_attrs_of(const InverseTimeDecay& s) { return {{"schedule", std::string("inverse_time")}, {"schedule_decay", *s.decay}, {"schedule_every", s.every}, {"schedule_staircase", s.staircase}, {"schedule_warmup", s.warmup}, {"schedule_warmup_start", s.warmup_start}, {"schedule_constant_warmup", s.constant_warmup}}; }

Value is_finite(Value x, const Loc& loc) { return record(graph_of({x}, "is_finite", loc), "is_finite", {x}, {}, loc).at(0); }

Value is_inf(Value x, const IsInfAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "is_inf", loc), "is_inf", {x}, {{"detect_positive", attrs.detect_positive}, {"detect_negative", attrs.detect_negative}}, loc).at(0); }

Value is_nan(Value x, const Loc& loc) { return record(graph_of({x}, "is_nan", loc), "is_nan", {x}, {}, loc).at(0); }

Value kl_div(Value x, Value target, const KlDivAttrs& attrs, const Loc& loc) { return record(graph_of({x, target}, "kl_div", loc), "kl_div", {x, target}, {{"log_target", attrs.log_target}, {"reduction", attrs.reduction}}, loc).at(0); }

Value l1_loss(Value x, Value target, const L1LossAttrs& attrs, const Loc& loc) { return record(graph_of({x, target}, "l1_loss", loc), "l1_loss", {x, target}, {{"reduction", attrs.reduction}}, loc).at(0); }

Attrs recipe_of(const LAMB& o) { return {{"lr", o.lr}, {"beta1", o.beta1}, {"beta2", o.beta2}, {"eps", o.eps}, {"weight_decay", o.weight_decay}, {"optimizer", std::string("lamb")}}; }

Attrs recipe_of(const LARS& o) { return {{"lr", o.lr}, {"momentum", o.momentum}, {"trust_coefficient", o.trust_coefficient}, {"weight_decay", o.weight_decay}, {"optimizer", std::string("lars")}}; }

Value leaky_relu(Value x, const LeakyReluAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "leaky_relu", loc), "leaky_relu", {x}, {{"negative_slope", attrs.negative_slope}}, loc).at(0); }

Value less(Value a, Value b, const Loc& loc) { return record(graph_of({a, b}, "less", loc), "less", {a, b}, {}, loc).at(0); }

Value less_equal(Value a, Value b, const Loc& loc) { return record(graph_of({a, b}, "less_equal", loc), "less_equal", {a, b}, {}, loc).at(0); }

Attrs schedule_attrs_of(const LinearDecay& s) { return {{"schedule", std::string("linear")}, {"schedule_steps", *s.steps}, {"schedule_end", s.end}, {"schedule_warmup", s.warmup}, {"schedule_warmup_start", s.warmup_start}, {"schedule_constant_warmup", s.constant_warmup}}; }

Attrs recipe_of(const Lion& o) { return {{"lr", o.lr}, {"beta1", o.beta1}, {"beta2", o.beta2}, {"weight_decay", o.weight_decay}, {"optimizer", std::string("lion")}}; }

Value log(Value x, const Loc& loc) { return record(graph_of({x}, "log", loc), "log", {x}, {}, loc).at(0); }

Value log1p(Value x, const Loc& loc) { return record(graph_of({x}, "log1p", loc), "log1p", {x}, {}, loc).at(0); }

Value log2(Value x, const Loc& loc) { return record(graph_of({x}, "log2", loc), "log2", {x}, {}, loc).at(0); }

Value log_sigmoid(Value x, const Loc& loc) { return record(graph_of({x}, "log_sigmoid", loc), "log_sigmoid", {x}, {}, loc).at(0); }

Value log_softmax(Value x, const LogSoftmaxAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "log_softmax", loc), "log_softmax", {x}, {{"axis", attrs.axis}}, loc).at(0); }

Value logical_and(Value a, Value b, const Loc& loc) { return record(graph_of({a, b}, "logical_and", loc), "logical_and", {a, b}, {}, loc).at(0); }

Value logical_not(Value x, const Loc& loc) { return record(graph_of({x}, "logical_not", loc), "logical_not", {x}, {}, loc).at(0); }

Value logical_or(Value a, Value b, const Loc& loc) { return record(graph_of({a, b}, "logical_or", loc), "logical_or", {a, b}, {}, loc).at(0); }

Value logical_xor(Value a, Value b, const Loc& loc) { return record(graph_of({a, b}, "logical_xor", loc), "logical_xor", {a, b}, {}, loc).at(0); }

Value logsumexp(Value x, const LogsumexpAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "logsumexp", loc), "logsumexp", {x}, {{"axes", std::vector<int64_t>(attrs.axes)}, {"keep_dims", attrs.keep_dims}}, loc).at(0); }

Value lp_normalize(Value x, const LpNormalizeAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "lp_normalize", loc), "lp_normalize", {x}, {{"axis", attrs.axis}, {"p", attrs.p}, {"eps", attrs.eps}}, loc).at(0); }

Value lp_pool(Value x, const LpPoolAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "lp_pool", loc), "lp_pool", {x}, {{"kernel", std::vector<int64_t>(*attrs.kernel)}, {"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"ceil_mode", attrs.ceil_mode}, {"p", attrs.p}}, loc).at(0); }

Value lrn(Value x, const LrnAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "lrn", loc), "lrn", {x}, {{"size", *attrs.size}, {"alpha", attrs.alpha}, {"beta", attrs.beta}, {"k", attrs.k}}, loc).at(0); }

Attrs schedule_attrs_of(const Manual& s) { return {{"schedule", std::string("manual")}, {"schedule_warmup", s.warmup}, {"schedule_warmup_start", s.warmup_start}, {"schedule_constant_warmup", s.constant_warmup}}; }

Value masked_fill(Value x, Value mask, const MaskedFillAttrs& attrs, const Loc& loc) { return record(graph_of({x, mask}, "masked_fill", loc), "masked_fill", {x, mask}, {{"value", *attrs.value}}, loc).at(0); }

Value matmul(Value a, Value b, const MatmulAttrs& attrs, const Loc& loc) { return record(graph_of({a, b}, "matmul", loc), "matmul", {a, b}, {{"transpose_a", attrs.transpose_a}, {"transpose_b", attrs.transpose_b}}, loc).at(0); }

Value max(Value x, const MaxAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "max", loc), "max", {x}, {{"axes", std::vector<int64_t>(attrs.axes)}, {"keep_dims", attrs.keep_dims}}, loc).at(0); }

Values max_index(Value x, const MaxIndexAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "max_index", loc), "max_index", {x}, {{"axes", std::vector<int64_t>(attrs.axes)}, {"keep_dims", attrs.keep_dims}}, loc); }

Value max_pool1d(Value x, const MaxPool1dAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "max_pool1d", loc), "max_pool1d", {x}, {{"kernel", std::vector<int64_t>(*attrs.kernel)}, {"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"ceil_mode", attrs.ceil_mode}}, loc).at(0); }

Value max_pool2d(Value x, const MaxPool2dAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "max_pool2d", loc), "max_pool2d", {x}, {{"kernel", std::vector<int64_t>(*attrs.kernel)}, {"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"ceil_mode", attrs.ceil_mode}}, loc).at(0); }

Value max_pool3d(Value x, const MaxPool3dAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "max_pool3d", loc), "max_pool3d", {x}, {{"kernel", std::vector<int64_t>(*attrs.kernel)}, {"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"ceil_mode", attrs.ceil_mode}}, loc).at(0); }

Value maximum(Value a, Value b, const Loc& loc) { return record(graph_of({a, b}, "maximum", loc), "maximum", {a, b}, {}, loc).at(0); }

Value mean(Value x, const MeanAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "mean", loc), "mean", {x}, {{"axes", std::vector<int64_t>(attrs.axes)}, {"keep_dims", attrs.keep_dims}}, loc).at(0); }

Value mean_absolute_error(Value prediction, Value target, const Loc& loc) { return record(graph_of({prediction, target}, "mean_absolute_error", loc), "mean_absolute_error", {prediction, target}, {}, loc).at(0); }

Value mean_squared_error(Value prediction, Value target, const Loc& loc) { return record(graph_of({prediction, target}, "mean_squared_error", loc), "mean_squared_error", {prediction, target}, {}, loc).at(0); }

Value metric(Value sum, Value weight, const Loc& loc) { return record(graph_of({sum, weight}, "metric", loc), "metric", {sum, weight}, {}, loc).at(0); }

Value min(Value x, const MinAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "min", loc), "min", {x}, {{"axes", std::vector<int64_t>(attrs.axes)}, {"keep_dims", attrs.keep_dims}}, loc).at(0); }

Value minimum(Value a, Value b, const Loc& loc) { return record(graph_of({a, b}, "minimum", loc), "minimum", {a, b}, {}, loc).at(0); }

Value mish(Value x, const Loc& loc) { return record(graph_of({x}, "mish", loc), "mish", {x}, {}, loc).at(0); }

Value mod(Value a, Value b, const Loc& loc) { return record(graph_of({a, b}, "mod", loc), "mod", {a, b}, {}, loc).at(0); }

Attrs recipe_of(const Momentum& o) { return {{"lr", o.lr}, {"momentum", o.momentum}, {"dampening", o.dampening}, {"nesterov", o.nesterov}, {"weight_decay", o.weight_decay}, {"optimizer", std::string("momentum")}}; }

Value mse_loss(Value x, Value target, const MseLossAttrs& attrs, const Loc& loc) { return record(graph_of({x, target}, "mse_loss", loc), "mse_loss", {x, target}, {{"reduction", attrs.reduction}}, loc).at(0); }

Value mul(Value a, Value b, const Loc& loc) { return record(graph_of({a, b}, "mul", loc), "mul", {a, b}, {}, loc).at(0); }

Attrs schedule_attrs_of(const MultistepDecay& s) { return {{"schedule", std::string("multistep")}, {"schedule_milestones", std::vector<int64_t>(*s.milestones)}, {"schedule_factor", s.factor}, {"schedule_warmup", s.warmup}, {"schedule_warmup_start", s.warmup_start}, {"schedule_constant_warmup", s.constant_warmup}}; }

Attrs recipe_of(const Muon& o) { return {{"lr", o.lr}, {"momentum", o.momentum}, {"nesterov", o.nesterov}, {"ns_a", o.ns_a}, {"ns_b", o.ns_b}, {"ns_c", o.ns_c}, {"ns_steps", o.ns_steps}, {"eps", o.eps}, {"adjust_lr", o.adjust_lr}, {"weight_decay", o.weight_decay}, {"adamw_lr_scale", o.adamw_lr_scale}, {"adamw_beta1", o.adamw_beta1}, {"adamw_beta2", o.adamw_beta2}, {"adamw_eps", o.adamw_eps}, {"optimizer", std::string("muon")}}; }

Attrs recipe_of(const NAdam& o) { return {{"lr", o.lr}, {"beta1", o.beta1}, {"beta2", o.beta2}, {"eps", o.eps}, {"momentum_decay", o.momentum_decay}, {"weight_decay", o.weight_decay}, {"decoupled_weight_decay", o.decoupled_weight_decay}, {"optimizer", std::string("nadam")}}; }

Value neg(Value x, const Loc& loc) { return record(graph_of({x}, "neg", loc), "neg", {x}, {}, loc).at(0); }

Value nll_loss(Value x, Value label, const NllLossAttrs& attrs, const Loc& loc) { return record(graph_of({x, label}, "nll_loss", loc), "nll_loss", {x, label}, {{"axis", attrs.axis}, {"ignore_index", std::vector<int64_t>(attrs.ignore_index)}, {"reduction", attrs.reduction}}, loc).at(0); }

Value nll_loss(Value x, Value label, Value weight, const NllLossAttrs& attrs, const Loc& loc) { return record(graph_of({x, label}, "nll_loss", loc), "nll_loss", {x, label, weight}, {{"axis", attrs.axis}, {"ignore_index", std::vector<int64_t>(attrs.ignore_index)}, {"reduction", attrs.reduction}}, loc).at(0); }

Attrs schedule_attrs_of(const Noam& s) { return {{"schedule", std::string("noam")}, {"schedule_d_model", *s.d_model}, {"schedule_warmup", *s.warmup}}; }

Value norm_l1(Value x, const NormL1Attrs& attrs, const Loc& loc) { return record(graph_of({x}, "norm_l1", loc), "norm_l1", {x}, {{"axes", std::vector<int64_t>(attrs.axes)}, {"keep_dims", attrs.keep_dims}}, loc).at(0); }

Value norm_l2(Value x, const NormL2Attrs& attrs, const Loc& loc) { return record(graph_of({x}, "norm_l2", loc), "norm_l2", {x}, {{"axes", std::vector<int64_t>(attrs.axes)}, {"keep_dims", attrs.keep_dims}}, loc).at(0); }

Value not_equal(Value a, Value b, const Loc& loc) { return record(graph_of({a, b}, "not_equal", loc), "not_equal", {a, b}, {}, loc).at(0); }

Attrs schedule_attrs_of(const OneCycle& s) { return {{"schedule", std::string("one_cycle")}, {"schedule_steps", *s.steps}, {"schedule_pct_start", s.pct_start}, {"schedule_div_factor", s.div_factor}, {"schedule_final_div_factor", s.final_div_factor}, {"schedule_three_phase", s.three_phase}, {"schedule_linear_anneal", s.linear_anneal}, {"schedule_warmup", s.warmup}, {"schedule_warmup_start", s.warmup_start}, {"schedule_constant_warmup", s.constant_warmup}}; }

Value one_hot(Value label, const OneHotAttrs& attrs, const Loc& loc) { return record(graph_of({label}, "one_hot", loc), "one_hot", {label}, {{"to", *attrs.to}}, loc).at(0); }

Value pad(Value x, const PadAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "pad", loc), "pad", {x}, {{"low", std::vector<int64_t>(attrs.low)}, {"high", std::vector<int64_t>(attrs.high)}, {"interior", std::vector<int64_t>(attrs.interior)}, {"value", attrs.value}, {"mode", attrs.mode}}, loc).at(0); }

Value perplexity(Value x, Value label, const PerplexityAttrs& attrs, const Loc& loc) { return record(graph_of({x, label}, "perplexity", loc), "perplexity", {x, label}, {{"ignore_index", std::vector<int64_t>(attrs.ignore_index)}}, loc).at(0); }

Attrs schedule_attrs_of(const PiecewiseConstant& s) { return {{"schedule", std::string("piecewise")}, {"schedule_boundaries", std::vector<int64_t>(*s.boundaries)}, {"schedule_values", *s.values}, {"schedule_warmup", s.warmup}, {"schedule_warmup_start", s.warmup_start}, {"schedule_constant_warmup", s.constant_warmup}}; }

Attrs schedule_attrs_of(const Plateau& s) { return {{"schedule", std::string("plateau")}, {"schedule_metric", s.metric}, {"schedule_mode", s.mode}, {"schedule_factor", s.factor}, {"schedule_patience", s.patience}, {"schedule_threshold", s.threshold}, {"schedule_threshold_mode", s.threshold_mode}, {"schedule_cooldown", s.cooldown}, {"schedule_min_lr", s.min_lr}, {"schedule_warmup", s.warmup}, {"schedule_warmup_start", s.warmup_start}, {"schedule_constant_warmup", s.constant_warmup}}; }

Attrs schedule_attrs_of(const PolynomialDecay& s) { return {{"schedule", std::string("polynomial")}, {"schedule_steps", *s.steps}, {"schedule_power", s.power}, {"schedule_end", s.end}, {"schedule_warmup", s.warmup}, {"schedule_warmup_start", s.warmup_start}, {"schedule_constant_warmup", s.constant_warmup}}; }

Value pow(Value a, Value b, const Loc& loc) { return record(graph_of({a, b}, "pow", loc), "pow", {a, b}, {}, loc).at(0); }

Value precision(Value x, Value label, const PrecisionAttrs& attrs, const Loc& loc) { return record(graph_of({x, label}, "precision", loc), "precision", {x, label}, {{"average", attrs.average}, {"threshold", attrs.threshold}}, loc).at(0); }

Value prelu(Value x, Value weight, const Loc& loc) { return record(graph_of({x, weight}, "prelu", loc), "prelu", {x, weight}, {}, loc).at(0); }

Value prod(Value x, const ProdAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "prod", loc), "prod", {x}, {{"axes", std::vector<int64_t>(attrs.axes)}, {"keep_dims", attrs.keep_dims}}, loc).at(0); }

Value quantize(Value x, Value scale, const QuantizeAttrs& attrs, const Loc& loc) { return record(graph_of({x, scale}, "quantize", loc), "quantize", {x, scale}, {{"to", *attrs.to}, {"axis", attrs.axis}}, loc).at(0); }

Value quantize(Value x, Value scale, Value zero_point, const QuantizeAttrs& attrs, const Loc& loc) { return record(graph_of({x, scale}, "quantize", loc), "quantize", {x, scale, zero_point}, {{"to", *attrs.to}, {"axis", attrs.axis}}, loc).at(0); }

Value r2_score(Value prediction, Value target, const Loc& loc) { return record(graph_of({prediction, target}, "r2_score", loc), "r2_score", {prediction, target}, {}, loc).at(0); }

Attrs recipe_of(const RAdam& o) { return {{"lr", o.lr}, {"beta1", o.beta1}, {"beta2", o.beta2}, {"eps", o.eps}, {"weight_decay", o.weight_decay}, {"decoupled_weight_decay", o.decoupled_weight_decay}, {"optimizer", std::string("radam")}}; }

Value recall(Value x, Value label, const RecallAttrs& attrs, const Loc& loc) { return record(graph_of({x, label}, "recall", loc), "recall", {x, label}, {{"average", attrs.average}, {"threshold", attrs.threshold}}, loc).at(0); }

Value reciprocal(Value x, const Loc& loc) { return record(graph_of({x}, "reciprocal", loc), "reciprocal", {x}, {}, loc).at(0); }

Value relu(Value x, const Loc& loc) { return record(graph_of({x}, "relu", loc), "relu", {x}, {}, loc).at(0); }

Value relu6(Value x, const Loc& loc) { return record(graph_of({x}, "relu6", loc), "relu6", {x}, {}, loc).at(0); }

Value reshape(Value x, const ReshapeAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "reshape", loc), "reshape", {x}, {{"to", *attrs.to}}, loc).at(0); }

Value resize2d(Value x, const Resize2dAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "resize2d", loc), "resize2d", {x}, {{"output", std::vector<int64_t>(*attrs.output)}, {"mode", attrs.mode}, {"align_corners", attrs.align_corners}}, loc).at(0); }

Attrs recipe_of(const RMSprop& o) { return {{"lr", o.lr}, {"alpha", o.alpha}, {"eps", o.eps}, {"momentum", o.momentum}, {"centered", o.centered}, {"weight_decay", o.weight_decay}, {"optimizer", std::string("rmsprop")}}; }

Value roc_auc(Value score, Value label, const RocAucAttrs& attrs, const Loc& loc) { return record(graph_of({score, label}, "roc_auc", loc), "roc_auc", {score, label}, {{"classes", attrs.classes}}, loc).at(0); }

Value roll(Value x, const RollAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "roll", loc), "roll", {x}, {{"shifts", std::vector<int64_t>(*attrs.shifts)}, {"axes", std::vector<int64_t>(*attrs.axes)}}, loc).at(0); }

Value root_mean_squared_error(Value prediction, Value target, const Loc& loc) { return record(graph_of({prediction, target}, "root_mean_squared_error", loc), "root_mean_squared_error", {prediction, target}, {}, loc).at(0); }

Value rotary_embedding(Value x, const RotaryEmbeddingAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "rotary_embedding", loc), "rotary_embedding", {x}, {{"theta", attrs.theta}, {"interleaved", attrs.interleaved}, {"dims", attrs.dims}}, loc).at(0); }

Value rotary_embedding(Value x, Value position, const RotaryEmbeddingAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "rotary_embedding", loc), "rotary_embedding", {x, position}, {{"theta", attrs.theta}, {"interleaved", attrs.interleaved}, {"dims", attrs.dims}}, loc).at(0); }

Value round(Value x, const Loc& loc) { return record(graph_of({x}, "round", loc), "round", {x}, {}, loc).at(0); }

Value rsqrt(Value x, const Loc& loc) { return record(graph_of({x}, "rsqrt", loc), "rsqrt", {x}, {}, loc).at(0); }

Value scatter(Value x, Value index, Value updates, const ScatterAttrs& attrs, const Loc& loc) { return record(graph_of({x, index, updates}, "scatter", loc), "scatter", {x, index, updates}, {{"axis", attrs.axis}, {"reduce", attrs.reduce}}, loc).at(0); }

Value scatter_nd(Value x, Value index, Value updates, const ScatterNdAttrs& attrs, const Loc& loc) { return record(graph_of({x, index, updates}, "scatter_nd", loc), "scatter_nd", {x, index, updates}, {{"batch_dims", attrs.batch_dims}, {"reduce", attrs.reduce}}, loc).at(0); }

Value segment_sum(Value x, Value ids, const SegmentSumAttrs& attrs, const Loc& loc) { return record(graph_of({x, ids}, "segment_sum", loc), "segment_sum", {x, ids}, {{"segments", *attrs.segments}}, loc).at(0); }

Value selu(Value x, const Loc& loc) { return record(graph_of({x}, "selu", loc), "selu", {x}, {}, loc).at(0); }

Attrs recipe_of(const SGD& o) { return {{"lr", o.lr}, {"weight_decay", o.weight_decay}, {"optimizer", std::string("sgd")}}; }

Value sigmoid(Value x, const Loc& loc) { return record(graph_of({x}, "sigmoid", loc), "sigmoid", {x}, {}, loc).at(0); }

Value sign(Value x, const Loc& loc) { return record(graph_of({x}, "sign", loc), "sign", {x}, {}, loc).at(0); }

Value silu(Value x, const Loc& loc) { return record(graph_of({x}, "silu", loc), "silu", {x}, {}, loc).at(0); }

Value sin(Value x, const Loc& loc) { return record(graph_of({x}, "sin", loc), "sin", {x}, {}, loc).at(0); }

Value sinh(Value x, const Loc& loc) { return record(graph_of({x}, "sinh", loc), "sinh", {x}, {}, loc).at(0); }

Value slice(Value x, const SliceAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "slice", loc), "slice", {x}, {{"starts", std::vector<int64_t>(*attrs.starts)}, {"stops", std::vector<int64_t>(*attrs.stops)}, {"steps", std::vector<int64_t>(attrs.steps)}, {"axes", std::vector<int64_t>(attrs.axes)}}, loc).at(0); }

Value smooth_l1_loss(Value x, Value target, const SmoothL1LossAttrs& attrs, const Loc& loc) { return record(graph_of({x, target}, "smooth_l1_loss", loc), "smooth_l1_loss", {x, target}, {{"beta", attrs.beta}, {"reduction", attrs.reduction}}, loc).at(0); }

Value softmax(Value x, const SoftmaxAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "softmax", loc), "softmax", {x}, {{"axis", attrs.axis}}, loc).at(0); }

Value softmax_cross_entropy(Value x, Value target, const SoftmaxCrossEntropyAttrs& attrs, const Loc& loc) { return record(graph_of({x, target}, "softmax_cross_entropy", loc), "softmax_cross_entropy", {x, target}, {{"axis", attrs.axis}, {"ignore_index", std::vector<int64_t>(attrs.ignore_index)}, {"reduction", attrs.reduction}, {"label_smoothing", attrs.label_smoothing}}, loc).at(0); }

Value softmax_cross_entropy(Value x, Value target, Value weight, const SoftmaxCrossEntropyAttrs& attrs, const Loc& loc) { return record(graph_of({x, target}, "softmax_cross_entropy", loc), "softmax_cross_entropy", {x, target, weight}, {{"axis", attrs.axis}, {"ignore_index", std::vector<int64_t>(attrs.ignore_index)}, {"reduction", attrs.reduction}, {"label_smoothing", attrs.label_smoothing}}, loc).at(0); }

Value softplus(Value x, const SoftplusAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "softplus", loc), "softplus", {x}, {{"beta", attrs.beta}, {"threshold", attrs.threshold}}, loc).at(0); }

Value softsign(Value x, const Loc& loc) { return record(graph_of({x}, "softsign", loc), "softsign", {x}, {}, loc).at(0); }

Values sort(Value x, const SortAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "sort", loc), "sort", {x}, {{"axis", attrs.axis}, {"descending", attrs.descending}}, loc); }

Values split(Value x, const SplitAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "split", loc), "split", {x}, {{"sizes", std::vector<int64_t>(*attrs.sizes)}, {"axis", attrs.axis}}, loc); }

Value sqrt(Value x, const Loc& loc) { return record(graph_of({x}, "sqrt", loc), "sqrt", {x}, {}, loc).at(0); }

Value square(Value x, const Loc& loc) { return record(graph_of({x}, "square", loc), "square", {x}, {}, loc).at(0); }

Value squeeze(Value x, const SqueezeAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "squeeze", loc), "squeeze", {x}, {{"axes", std::vector<int64_t>(attrs.axes)}}, loc).at(0); }

Value stack(const Values& xs, const StackAttrs& attrs, const Loc& loc) { Values operands = {}; operands.insert(operands.end(), xs.begin(), xs.end()); return record(graph_of(operands, "stack", loc), "stack", operands, {{"axis", attrs.axis}}, loc).at(0); }

Value std(Value x, const StdAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "std", loc), "std", {x}, {{"axes", std::vector<int64_t>(attrs.axes)}, {"keep_dims", attrs.keep_dims}, {"correction", attrs.correction}}, loc).at(0); }

Attrs schedule_attrs_of(const StepDecay& s) { return {{"schedule", std::string("step")}, {"schedule_every", *s.every}, {"schedule_factor", s.factor}, {"schedule_warmup", s.warmup}, {"schedule_warmup_start", s.warmup_start}, {"schedule_constant_warmup", s.constant_warmup}}; }

Value stop_gradient(Value x, const Loc& loc) { return record(graph_of({x}, "stop_gradient", loc), "stop_gradient", {x}, {}, loc).at(0); }

Value sub(Value a, Value b, const Loc& loc) { return record(graph_of({a, b}, "sub", loc), "sub", {a, b}, {}, loc).at(0); }

Value sum(Value x, const SumAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "sum", loc), "sum", {x}, {{"axes", std::vector<int64_t>(attrs.axes)}, {"keep_dims", attrs.keep_dims}}, loc).at(0); }

Value take_along_axis(Value x, Value index, const TakeAlongAxisAttrs& attrs, const Loc& loc) { return record(graph_of({x, index}, "take_along_axis", loc), "take_along_axis", {x, index}, {{"axis", attrs.axis}}, loc).at(0); }

Value tan(Value x, const Loc& loc) { return record(graph_of({x}, "tan", loc), "tan", {x}, {}, loc).at(0); }

Value tanh(Value x, const Loc& loc) { return record(graph_of({x}, "tanh", loc), "tanh", {x}, {}, loc).at(0); }

Value tile(Value x, const TileAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "tile", loc), "tile", {x}, {{"repeats", std::vector<int64_t>(*attrs.repeats)}}, loc).at(0); }

Value top_k_accuracy(Value x, Value label, const TopKAccuracyAttrs& attrs, const Loc& loc) { return record(graph_of({x, label}, "top_k_accuracy", loc), "top_k_accuracy", {x, label}, {{"k", attrs.k}}, loc).at(0); }

Values topk(Value x, const TopkAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "topk", loc), "topk", {x}, {{"k", *attrs.k}, {"axis", attrs.axis}, {"largest", attrs.largest}, {"sorted", attrs.sorted}}, loc); }

Value transpose(Value x, const TransposeAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "transpose", loc), "transpose", {x}, {{"perm", std::vector<int64_t>(attrs.perm)}}, loc).at(0); }

Value tril(Value x, const TrilAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "tril", loc), "tril", {x}, {{"diagonal", attrs.diagonal}}, loc).at(0); }

Value triplet_margin_loss(Value anchor, Value positive, Value negative, const TripletMarginLossAttrs& attrs, const Loc& loc) { return record(graph_of({anchor, positive, negative}, "triplet_margin_loss", loc), "triplet_margin_loss", {anchor, positive, negative}, {{"margin", attrs.margin}, {"p", attrs.p}, {"eps", attrs.eps}, {"swap", attrs.swap}, {"reduction", attrs.reduction}}, loc).at(0); }

Value triu(Value x, const TriuAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "triu", loc), "triu", {x}, {{"diagonal", attrs.diagonal}}, loc).at(0); }

Value trunc(Value x, const Loc& loc) { return record(graph_of({x}, "trunc", loc), "trunc", {x}, {}, loc).at(0); }

Value unfold(Value x, const UnfoldAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "unfold", loc), "unfold", {x}, {{"kernel", std::vector<int64_t>(*attrs.kernel)}, {"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}}, loc).at(0); }

Value unsqueeze(Value x, const UnsqueezeAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "unsqueeze", loc), "unsqueeze", {x}, {{"axes", std::vector<int64_t>(*attrs.axes)}}, loc).at(0); }

Value var(Value x, const VarAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "var", loc), "var", {x}, {{"axes", std::vector<int64_t>(attrs.axes)}, {"keep_dims", attrs.keep_dims}, {"correction", attrs.correction}}, loc).at(0); }

Value where(Value condition, Value a, Value b, const Loc& loc) { return record(graph_of({condition, a, b}, "where", loc), "where", {condition, a, b}, {}, loc).at(0); }

}  // namespace fluid

namespace fluid::internal {

Values adadelta(Value param, Value grad, Value lr, Value update, Value square_avg, Value delta_avg, const AdadeltaAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update, square_avg, delta_avg}, "adadelta", loc), "adadelta", {param, grad, lr, update, square_avg, delta_avg}, {{"rho", attrs.rho}, {"eps", attrs.eps}, {"weight_decay", attrs.weight_decay}}, loc); }

Value adafactor(Value param, Value grad, Value lr, Value update, Value step, const AdafactorAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update, step}, "adafactor", loc), "adafactor", {param, grad, lr, update, step}, {{"decay_exponent", attrs.decay_exponent}, {"eps1", attrs.eps1}, {"eps2", attrs.eps2}, {"clip_threshold", attrs.clip_threshold}, {"weight_decay", attrs.weight_decay}}, loc).at(0); }

Values adagrad(Value param, Value grad, Value lr, Value update, Value sum, const AdagradAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update, sum}, "adagrad", loc), "adagrad", {param, grad, lr, update, sum}, {{"lr_decay", attrs.lr_decay}, {"initial_accumulator_value", attrs.initial_accumulator_value}, {"eps", attrs.eps}, {"weight_decay", attrs.weight_decay}}, loc); }

Values adam(Value param, Value grad, Value lr, Value update, Value m, Value v, const AdamAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update, m, v}, "adam", loc), "adam", {param, grad, lr, update, m, v}, {{"beta1", attrs.beta1}, {"beta2", attrs.beta2}, {"eps", attrs.eps}, {"weight_decay", attrs.weight_decay}, {"amsgrad", attrs.amsgrad}}, loc); }

Values adam(Value param, Value grad, Value lr, Value update, Value m, Value v, Value max_v, const AdamAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update, m, v}, "adam", loc), "adam", {param, grad, lr, update, m, v, max_v}, {{"beta1", attrs.beta1}, {"beta2", attrs.beta2}, {"eps", attrs.eps}, {"weight_decay", attrs.weight_decay}, {"amsgrad", attrs.amsgrad}}, loc); }

Values adamax(Value param, Value grad, Value lr, Value update, Value m, Value u, const AdamaxAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update, m, u}, "adamax", loc), "adamax", {param, grad, lr, update, m, u}, {{"beta1", attrs.beta1}, {"beta2", attrs.beta2}, {"eps", attrs.eps}, {"weight_decay", attrs.weight_decay}}, loc); }

Values adamw(Value param, Value grad, Value lr, Value update, Value m, Value v, const AdamwAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update, m, v}, "adamw", loc), "adamw", {param, grad, lr, update, m, v}, {{"beta1", attrs.beta1}, {"beta2", attrs.beta2}, {"eps", attrs.eps}, {"weight_decay", attrs.weight_decay}, {"amsgrad", attrs.amsgrad}}, loc); }

Values adamw(Value param, Value grad, Value lr, Value update, Value m, Value v, Value max_v, const AdamwAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update, m, v}, "adamw", loc), "adamw", {param, grad, lr, update, m, v, max_v}, {{"beta1", attrs.beta1}, {"beta2", attrs.beta2}, {"eps", attrs.eps}, {"weight_decay", attrs.weight_decay}, {"amsgrad", attrs.amsgrad}}, loc); }

Value adaptive_avg_pool2d_grad(Value dy, const AdaptiveAvgPool2dGradAttrs& attrs, const Loc& loc) { return record(graph_of({dy}, "adaptive_avg_pool2d_grad", loc), "adaptive_avg_pool2d_grad", {dy}, {{"input", *attrs.input}}, loc).at(0); }

Value adaptive_max_pool2d_grad(Value dy, Value position, const AdaptiveMaxPool2dGradAttrs& attrs, const Loc& loc) { return record(graph_of({dy, position}, "adaptive_max_pool2d_grad", loc), "adaptive_max_pool2d_grad", {dy, position}, {{"input", *attrs.input}}, loc).at(0); }

Value attention(Value q, Value k, Value v, const AttentionAttrs& attrs, const Loc& loc) { return record(graph_of({q, k, v}, "attention", loc), "attention", {q, k, v}, {{"causal", attrs.causal}, {"scale", attrs.scale}, {"alibi", attrs.alibi}, {"dropout", attrs.dropout}}, loc).at(0); }

Value attention(Value q, Value k, Value v, Value mask, const AttentionAttrs& attrs, const Loc& loc) { return record(graph_of({q, k, v}, "attention", loc), "attention", {q, k, v, mask}, {{"causal", attrs.causal}, {"scale", attrs.scale}, {"alibi", attrs.alibi}, {"dropout", attrs.dropout}}, loc).at(0); }

Value attention(Value q, Value k, Value v, Value mask, Value random_key, const AttentionAttrs& attrs, const Loc& loc) { return record(graph_of({q, k, v}, "attention", loc), "attention", {q, k, v, mask, random_key}, {{"causal", attrs.causal}, {"scale", attrs.scale}, {"alibi", attrs.alibi}, {"dropout", attrs.dropout}}, loc).at(0); }

Values attention_grad(Value q, Value k, Value v, Value dy, Value logsumexp, Value delta, const AttentionGradAttrs& attrs, const Loc& loc) { return record(graph_of({q, k, v, dy, logsumexp, delta}, "attention_grad", loc), "attention_grad", {q, k, v, dy, logsumexp, delta}, {{"causal", attrs.causal}, {"scale", attrs.scale}, {"alibi", attrs.alibi}, {"dropout", attrs.dropout}}, loc); }

Values attention_grad(Value q, Value k, Value v, Value dy, Value logsumexp, Value delta, Value mask, const AttentionGradAttrs& attrs, const Loc& loc) { return record(graph_of({q, k, v, dy, logsumexp, delta}, "attention_grad", loc), "attention_grad", {q, k, v, dy, logsumexp, delta, mask}, {{"causal", attrs.causal}, {"scale", attrs.scale}, {"alibi", attrs.alibi}, {"dropout", attrs.dropout}}, loc); }

Values attention_grad(Value q, Value k, Value v, Value dy, Value logsumexp, Value delta, Value mask, Value random_key, const AttentionGradAttrs& attrs, const Loc& loc) { return record(graph_of({q, k, v, dy, logsumexp, delta}, "attention_grad", loc), "attention_grad", {q, k, v, dy, logsumexp, delta, mask, random_key}, {{"causal", attrs.causal}, {"scale", attrs.scale}, {"alibi", attrs.alibi}, {"dropout", attrs.dropout}}, loc); }

Values attention_grad_key_value(Value q, Value k, Value v, Value dy, Value logsumexp, Value delta, const AttentionGradKeyValueAttrs& attrs, const Loc& loc) { return record(graph_of({q, k, v, dy, logsumexp, delta}, "attention_grad_key_value", loc), "attention_grad_key_value", {q, k, v, dy, logsumexp, delta}, {{"causal", attrs.causal}, {"scale", attrs.scale}, {"alibi", attrs.alibi}, {"dropout", attrs.dropout}}, loc); }

Values attention_grad_key_value(Value q, Value k, Value v, Value dy, Value logsumexp, Value delta, Value mask, const AttentionGradKeyValueAttrs& attrs, const Loc& loc) { return record(graph_of({q, k, v, dy, logsumexp, delta}, "attention_grad_key_value", loc), "attention_grad_key_value", {q, k, v, dy, logsumexp, delta, mask}, {{"causal", attrs.causal}, {"scale", attrs.scale}, {"alibi", attrs.alibi}, {"dropout", attrs.dropout}}, loc); }

Values attention_grad_key_value(Value q, Value k, Value v, Value dy, Value logsumexp, Value delta, Value mask, Value random_key, const AttentionGradKeyValueAttrs& attrs, const Loc& loc) { return record(graph_of({q, k, v, dy, logsumexp, delta}, "attention_grad_key_value", loc), "attention_grad_key_value", {q, k, v, dy, logsumexp, delta, mask, random_key}, {{"causal", attrs.causal}, {"scale", attrs.scale}, {"alibi", attrs.alibi}, {"dropout", attrs.dropout}}, loc); }

Value attention_grad_query(Value q, Value k, Value v, Value dy, Value logsumexp, Value delta, const AttentionGradQueryAttrs& attrs, const Loc& loc) { return record(graph_of({q, k, v, dy, logsumexp, delta}, "attention_grad_query", loc), "attention_grad_query", {q, k, v, dy, logsumexp, delta}, {{"causal", attrs.causal}, {"scale", attrs.scale}, {"alibi", attrs.alibi}, {"dropout", attrs.dropout}}, loc).at(0); }

Value attention_grad_query(Value q, Value k, Value v, Value dy, Value logsumexp, Value delta, Value mask, const AttentionGradQueryAttrs& attrs, const Loc& loc) { return record(graph_of({q, k, v, dy, logsumexp, delta}, "attention_grad_query", loc), "attention_grad_query", {q, k, v, dy, logsumexp, delta, mask}, {{"causal", attrs.causal}, {"scale", attrs.scale}, {"alibi", attrs.alibi}, {"dropout", attrs.dropout}}, loc).at(0); }

Value attention_grad_query(Value q, Value k, Value v, Value dy, Value logsumexp, Value delta, Value mask, Value random_key, const AttentionGradQueryAttrs& attrs, const Loc& loc) { return record(graph_of({q, k, v, dy, logsumexp, delta}, "attention_grad_query", loc), "attention_grad_query", {q, k, v, dy, logsumexp, delta, mask, random_key}, {{"causal", attrs.causal}, {"scale", attrs.scale}, {"alibi", attrs.alibi}, {"dropout", attrs.dropout}}, loc).at(0); }

Value avg_pool1d_grad(Value dy, const AvgPool1dGradAttrs& attrs, const Loc& loc) { return record(graph_of({dy}, "avg_pool1d_grad", loc), "avg_pool1d_grad", {dy}, {{"kernel", std::vector<int64_t>(*attrs.kernel)}, {"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"ceil_mode", attrs.ceil_mode}, {"count_include_pad", attrs.count_include_pad}, {"divisor_override", attrs.divisor_override}, {"input", *attrs.input}}, loc).at(0); }

Value avg_pool2d_grad(Value dy, const AvgPool2dGradAttrs& attrs, const Loc& loc) { return record(graph_of({dy}, "avg_pool2d_grad", loc), "avg_pool2d_grad", {dy}, {{"kernel", std::vector<int64_t>(*attrs.kernel)}, {"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"ceil_mode", attrs.ceil_mode}, {"count_include_pad", attrs.count_include_pad}, {"divisor_override", attrs.divisor_override}, {"input", *attrs.input}}, loc).at(0); }

Value avg_pool3d_grad(Value dy, const AvgPool3dGradAttrs& attrs, const Loc& loc) { return record(graph_of({dy}, "avg_pool3d_grad", loc), "avg_pool3d_grad", {dy}, {{"kernel", std::vector<int64_t>(*attrs.kernel)}, {"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"ceil_mode", attrs.ceil_mode}, {"count_include_pad", attrs.count_include_pad}, {"divisor_override", attrs.divisor_override}, {"input", *attrs.input}}, loc).at(0); }

Value batch_norm(Value x, Value gamma, Value beta, Value running_mean, Value running_var, const BatchNormAttrs& attrs, const Loc& loc) { return record(graph_of({x, gamma, beta, running_mean, running_var}, "batch_norm", loc), "batch_norm", {x, gamma, beta, running_mean, running_var}, {{"eps", attrs.eps}}, loc).at(0); }

Value bernoulli(Value p, Value rng, const Loc& loc) { return record(graph_of({p, rng}, "bernoulli", loc), "bernoulli", {p, rng}, {}, loc).at(0); }

Values bn_update(Value running_mean, Value running_var, Value mean, Value var, Value count, const BnUpdateAttrs& attrs, const Loc& loc) { return record(graph_of({running_mean, running_var, mean, var, count}, "bn_update", loc), "bn_update", {running_mean, running_var, mean, var, count}, {{"momentum", attrs.momentum}}, loc); }

Value categorical(Value logits, Value rng, const Loc& loc) { return record(graph_of({logits, rng}, "categorical", loc), "categorical", {logits, rng}, {}, loc).at(0); }

Values coalesce_rows(Value index, Value updates, const CoalesceRowsAttrs& attrs, const Loc& loc) { return record(graph_of({index, updates}, "coalesce_rows", loc), "coalesce_rows", {index, updates}, {{"rows", *attrs.rows}}, loc); }

Values coalesce_rows(Value index, Value updates, Value weights, const CoalesceRowsAttrs& attrs, const Loc& loc) { return record(graph_of({index, updates}, "coalesce_rows", loc), "coalesce_rows", {index, updates, weights}, {{"rows", *attrs.rows}}, loc); }

Value constant_schedule(Value update, const ConstantScheduleAttrs& attrs, const Loc& loc) { return record(graph_of({update}, "constant_schedule", loc), "constant_schedule", {update}, {{"lr", *attrs.lr}, {"warmup", attrs.warmup}, {"warmup_start", attrs.warmup_start}, {"constant_warmup", attrs.constant_warmup}}, loc).at(0); }

Value conv2d_grad_filter(Value x, Value dy, const Conv2dGradFilterAttrs& attrs, const Loc& loc) { return record(graph_of({x, dy}, "conv2d_grad_filter", loc), "conv2d_grad_filter", {x, dy}, {{"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"groups", attrs.groups}, {"filter", *attrs.filter}}, loc).at(0); }

Value conv2d_grad_input(Value dy, Value w, const Conv2dGradInputAttrs& attrs, const Loc& loc) { return record(graph_of({dy, w}, "conv2d_grad_input", loc), "conv2d_grad_input", {dy, w}, {{"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"groups", attrs.groups}, {"input", *attrs.input}}, loc).at(0); }

Value conv2d_int8(Value x, Value w, const Conv2dInt8Attrs& attrs, const Loc& loc) { return record(graph_of({x, w}, "conv2d_int8", loc), "conv2d_int8", {x, w}, {{"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"groups", attrs.groups}}, loc).at(0); }

Value conv3d_grad_filter(Value x, Value dy, const Conv3dGradFilterAttrs& attrs, const Loc& loc) { return record(graph_of({x, dy}, "conv3d_grad_filter", loc), "conv3d_grad_filter", {x, dy}, {{"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"groups", attrs.groups}, {"filter", *attrs.filter}}, loc).at(0); }

Value conv3d_grad_input(Value dy, Value w, const Conv3dGradInputAttrs& attrs, const Loc& loc) { return record(graph_of({dy, w}, "conv3d_grad_input", loc), "conv3d_grad_input", {dy, w}, {{"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"groups", attrs.groups}, {"input", *attrs.input}}, loc).at(0); }

Value copy(Value x, const Loc& loc) { return record(graph_of({x}, "copy", loc), "copy", {x}, {}, loc).at(0); }

Value cosine_restarts_schedule(Value update, const CosineRestartsScheduleAttrs& attrs, const Loc& loc) { return record(graph_of({update}, "cosine_restarts_schedule", loc), "cosine_restarts_schedule", {update}, {{"lr", *attrs.lr}, {"period", *attrs.period}, {"growth", attrs.growth}, {"end", attrs.end}, {"warmup", attrs.warmup}, {"warmup_start", attrs.warmup_start}, {"constant_warmup", attrs.constant_warmup}}, loc).at(0); }

Value cosine_schedule(Value update, const CosineScheduleAttrs& attrs, const Loc& loc) { return record(graph_of({update}, "cosine_schedule", loc), "cosine_schedule", {update}, {{"lr", *attrs.lr}, {"steps", *attrs.steps}, {"end", attrs.end}, {"warmup", attrs.warmup}, {"warmup_start", attrs.warmup_start}, {"constant_warmup", attrs.constant_warmup}}, loc).at(0); }

Value count_nonfinite(Value x, const CountNonfiniteAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "count_nonfinite", loc), "count_nonfinite", {x}, {{"axes", std::vector<int64_t>(attrs.axes)}, {"keep_dims", attrs.keep_dims}}, loc).at(0); }

Value cumprod_grad(Value dy, Value x, const CumprodGradAttrs& attrs, const Loc& loc) { return record(graph_of({dy, x}, "cumprod_grad", loc), "cumprod_grad", {dy, x}, {{"axis", attrs.axis}, {"exclusive", attrs.exclusive}, {"reverse", attrs.reverse}}, loc).at(0); }

Value dirac(ir::Graph& graph, const DiracAttrs& attrs, const Loc& loc) { return record(graph, "dirac", {}, {{"type", *attrs.type}, {"groups", attrs.groups}}, loc).at(0); }

Value dropout(Value x, Value rng, const DropoutAttrs& attrs, const Loc& loc) { return record(graph_of({x, rng}, "dropout", loc), "dropout", {x, rng}, {{"p", attrs.p}}, loc).at(0); }

Value dropout2d(Value x, Value rng, const Dropout2dAttrs& attrs, const Loc& loc) { return record(graph_of({x, rng}, "dropout2d", loc), "dropout2d", {x, rng}, {{"p", attrs.p}}, loc).at(0); }

Value ema_update(Value average, Value param, Value update, const EmaUpdateAttrs& attrs, const Loc& loc) { return record(graph_of({average, param, update}, "ema_update", loc), "ema_update", {average, param, update}, {{"decay", *attrs.decay}}, loc).at(0); }

Value embedding_bag_grad(Value dy, Value index, const EmbeddingBagGradAttrs& attrs, const Loc& loc) { return record(graph_of({dy, index}, "embedding_bag_grad", loc), "embedding_bag_grad", {dy, index}, {{"input", *attrs.input}}, loc).at(0); }

Value embedding_bag_grad(Value dy, Value index, Value weights, const EmbeddingBagGradAttrs& attrs, const Loc& loc) { return record(graph_of({dy, index}, "embedding_bag_grad", loc), "embedding_bag_grad", {dy, index, weights}, {{"input", *attrs.input}}, loc).at(0); }

Value exponential_schedule(Value update, const ExponentialScheduleAttrs& attrs, const Loc& loc) { return record(graph_of({update}, "exponential_schedule", loc), "exponential_schedule", {update}, {{"lr", *attrs.lr}, {"factor", *attrs.factor}, {"every", attrs.every}, {"warmup", attrs.warmup}, {"warmup_start", attrs.warmup_start}, {"constant_warmup", attrs.constant_warmup}}, loc).at(0); }

Value gather_grad(Value dy, Value index, const GatherGradAttrs& attrs, const Loc& loc) { return record(graph_of({dy, index}, "gather_grad", loc), "gather_grad", {dy, index}, {{"input", *attrs.input}, {"axis", attrs.axis}}, loc).at(0); }

Value gather_rows(Value table, Value rows, const Loc& loc) { return record(graph_of({table, rows}, "gather_rows", loc), "gather_rows", {table, rows}, {}, loc).at(0); }

Value group_norm(Value x, const GroupNormAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "group_norm", loc), "group_norm", {x}, {{"groups", *attrs.groups}, {"eps", attrs.eps}}, loc).at(0); }

Value group_norm(Value x, Value scale, const GroupNormAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "group_norm", loc), "group_norm", {x, scale}, {{"groups", *attrs.groups}, {"eps", attrs.eps}}, loc).at(0); }

Value group_norm(Value x, Value scale, Value bias, const GroupNormAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "group_norm", loc), "group_norm", {x, scale, bias}, {{"groups", *attrs.groups}, {"eps", attrs.eps}}, loc).at(0); }

Value index_copy(Value x, Value index, Value source, const Loc& loc) { return record(graph_of({x, index, source}, "index_copy", loc), "index_copy", {x, index, source}, {}, loc).at(0); }

Value instance_norm(Value x, const InstanceNormAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "instance_norm", loc), "instance_norm", {x}, {{"eps", attrs.eps}}, loc).at(0); }

Value instance_norm(Value x, Value scale, const InstanceNormAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "instance_norm", loc), "instance_norm", {x, scale}, {{"eps", attrs.eps}}, loc).at(0); }

Value instance_norm(Value x, Value scale, Value bias, const InstanceNormAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "instance_norm", loc), "instance_norm", {x, scale, bias}, {{"eps", attrs.eps}}, loc).at(0); }

Value inverse_time_schedule(Value update, const InverseTimeScheduleAttrs& attrs, const Loc& loc) { return record(graph_of({update}, "inverse_time_schedule", loc), "inverse_time_schedule", {update}, {{"lr", *attrs.lr}, {"decay", *attrs.decay}, {"every", attrs.every}, {"staircase", attrs.staircase}, {"warmup", attrs.warmup}, {"warmup_start", attrs.warmup_start}, {"constant_warmup", attrs.constant_warmup}}, loc).at(0); }

Values lamb(Value param, Value grad, Value lr, Value update, Value m, Value v, Value param_norm, Value step_norm, const LambAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update, m, v, param_norm, step_norm}, "lamb", loc), "lamb", {param, grad, lr, update, m, v, param_norm, step_norm}, {{"beta1", attrs.beta1}, {"beta2", attrs.beta2}, {"eps", attrs.eps}, {"weight_decay", attrs.weight_decay}}, loc); }

Value lamb_step(Value param, Value grad, Value lr, Value update, Value m, Value v, const LambStepAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update, m, v}, "lamb_step", loc), "lamb_step", {param, grad, lr, update, m, v}, {{"beta1", attrs.beta1}, {"beta2", attrs.beta2}, {"eps", attrs.eps}, {"weight_decay", attrs.weight_decay}}, loc).at(0); }

Values lars(Value param, Value grad, Value lr, Value update, Value velocity, Value param_norm, Value grad_norm, const LarsAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update, velocity, param_norm, grad_norm}, "lars", loc), "lars", {param, grad, lr, update, velocity, param_norm, grad_norm}, {{"momentum", attrs.momentum}, {"trust_coefficient", attrs.trust_coefficient}, {"weight_decay", attrs.weight_decay}}, loc); }

Value layer_norm(Value x, const LayerNormAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "layer_norm", loc), "layer_norm", {x}, {{"axis", attrs.axis}, {"eps", attrs.eps}}, loc).at(0); }

Value layer_norm(Value x, Value scale, const LayerNormAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "layer_norm", loc), "layer_norm", {x, scale}, {{"axis", attrs.axis}, {"eps", attrs.eps}}, loc).at(0); }

Value layer_norm(Value x, Value scale, Value bias, const LayerNormAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "layer_norm", loc), "layer_norm", {x, scale, bias}, {{"axis", attrs.axis}, {"eps", attrs.eps}}, loc).at(0); }

Value linear_recurrence(Value a, Value x, const LinearRecurrenceAttrs& attrs, const Loc& loc) { return record(graph_of({a, x}, "linear_recurrence", loc), "linear_recurrence", {a, x}, {{"axis", attrs.axis}, {"reverse", attrs.reverse}}, loc).at(0); }

Value linear_schedule(Value update, const LinearScheduleAttrs& attrs, const Loc& loc) { return record(graph_of({update}, "linear_schedule", loc), "linear_schedule", {update}, {{"lr", *attrs.lr}, {"steps", *attrs.steps}, {"end", attrs.end}, {"warmup", attrs.warmup}, {"warmup_start", attrs.warmup_start}, {"constant_warmup", attrs.constant_warmup}}, loc).at(0); }

Values lion(Value param, Value grad, Value lr, Value update, Value m, const LionAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update, m}, "lion", loc), "lion", {param, grad, lr, update, m}, {{"beta1", attrs.beta1}, {"beta2", attrs.beta2}, {"weight_decay", attrs.weight_decay}}, loc); }

Values lookahead(Value slow, Value old_param, Value param, Value update, const LookaheadAttrs& attrs, const Loc& loc) { return record(graph_of({slow, old_param, param, update}, "lookahead", loc), "lookahead", {slow, old_param, param, update}, {{"every", attrs.every}, {"alpha", attrs.alpha}}, loc); }

Value manual_schedule(Value update, Value lr_factor, const ManualScheduleAttrs& attrs, const Loc& loc) { return record(graph_of({update, lr_factor}, "manual_schedule", loc), "manual_schedule", {update, lr_factor}, {{"lr", *attrs.lr}, {"warmup", attrs.warmup}, {"warmup_start", attrs.warmup_start}, {"constant_warmup", attrs.constant_warmup}}, loc).at(0); }

Value matmul_int8(Value a, Value b, const MatmulInt8Attrs& attrs, const Loc& loc) { return record(graph_of({a, b}, "matmul_int8", loc), "matmul_int8", {a, b}, {{"transpose_b", attrs.transpose_b}}, loc).at(0); }

Value max_pool1d_grad(Value dy, Value position, const MaxPool1dGradAttrs& attrs, const Loc& loc) { return record(graph_of({dy, position}, "max_pool1d_grad", loc), "max_pool1d_grad", {dy, position}, {{"kernel", std::vector<int64_t>(*attrs.kernel)}, {"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"ceil_mode", attrs.ceil_mode}, {"input", *attrs.input}}, loc).at(0); }

Value max_pool2d_grad(Value dy, Value position, const MaxPool2dGradAttrs& attrs, const Loc& loc) { return record(graph_of({dy, position}, "max_pool2d_grad", loc), "max_pool2d_grad", {dy, position}, {{"kernel", std::vector<int64_t>(*attrs.kernel)}, {"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"ceil_mode", attrs.ceil_mode}, {"input", *attrs.input}}, loc).at(0); }

Value max_pool3d_grad(Value dy, Value position, const MaxPool3dGradAttrs& attrs, const Loc& loc) { return record(graph_of({dy, position}, "max_pool3d_grad", loc), "max_pool3d_grad", {dy, position}, {{"kernel", std::vector<int64_t>(*attrs.kernel)}, {"stride", std::vector<int64_t>(attrs.stride)}, {"padding", std::vector<int64_t>(attrs.padding)}, {"dilation", std::vector<int64_t>(attrs.dilation)}, {"ceil_mode", attrs.ceil_mode}, {"input", *attrs.input}}, loc).at(0); }

Values momentum(Value param, Value grad, Value lr, Value update, Value velocity, const MomentumAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update, velocity}, "momentum", loc), "momentum", {param, grad, lr, update, velocity}, {{"momentum", attrs.momentum}, {"dampening", attrs.dampening}, {"nesterov", attrs.nesterov}, {"weight_decay", attrs.weight_decay}}, loc); }

Value multistep_schedule(Value update, const MultistepScheduleAttrs& attrs, const Loc& loc) { return record(graph_of({update}, "multistep_schedule", loc), "multistep_schedule", {update}, {{"lr", *attrs.lr}, {"milestones", std::vector<int64_t>(*attrs.milestones)}, {"factor", attrs.factor}, {"warmup", attrs.warmup}, {"warmup_start", attrs.warmup_start}, {"constant_warmup", attrs.constant_warmup}}, loc).at(0); }

Values muon(Value param, Value grad, Value lr, Value update, Value m, Value direction, const MuonAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update, m, direction}, "muon", loc), "muon", {param, grad, lr, update, m, direction}, {{"momentum", attrs.momentum}, {"nesterov", attrs.nesterov}, {"ns_a", attrs.ns_a}, {"ns_b", attrs.ns_b}, {"ns_c", attrs.ns_c}, {"ns_steps", attrs.ns_steps}, {"eps", attrs.eps}, {"adjust_lr", attrs.adjust_lr}, {"weight_decay", attrs.weight_decay}, {"adamw_lr_scale", attrs.adamw_lr_scale}, {"adamw_beta1", attrs.adamw_beta1}, {"adamw_beta2", attrs.adamw_beta2}, {"adamw_eps", attrs.adamw_eps}}, loc); }

Value muon_momentum(Value param, Value grad, Value lr, Value update, Value m, const MuonMomentumAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update, m}, "muon_momentum", loc), "muon_momentum", {param, grad, lr, update, m}, {{"momentum", attrs.momentum}, {"nesterov", attrs.nesterov}, {"ns_a", attrs.ns_a}, {"ns_b", attrs.ns_b}, {"ns_c", attrs.ns_c}, {"ns_steps", attrs.ns_steps}, {"eps", attrs.eps}, {"adjust_lr", attrs.adjust_lr}, {"weight_decay", attrs.weight_decay}, {"adamw_lr_scale", attrs.adamw_lr_scale}, {"adamw_beta1", attrs.adamw_beta1}, {"adamw_beta2", attrs.adamw_beta2}, {"adamw_eps", attrs.adamw_eps}}, loc).at(0); }

Values nadam(Value param, Value grad, Value lr, Value update, Value m, Value v, Value mu_product, const NadamAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update, m, v, mu_product}, "nadam", loc), "nadam", {param, grad, lr, update, m, v, mu_product}, {{"beta1", attrs.beta1}, {"beta2", attrs.beta2}, {"eps", attrs.eps}, {"momentum_decay", attrs.momentum_decay}, {"weight_decay", attrs.weight_decay}, {"decoupled_weight_decay", attrs.decoupled_weight_decay}}, loc); }

Value nadam_mu_product(Value mu_product, Value update, const NadamMuProductAttrs& attrs, const Loc& loc) { return record(graph_of({mu_product, update}, "nadam_mu_product", loc), "nadam_mu_product", {mu_product, update}, {{"beta1", attrs.beta1}, {"momentum_decay", attrs.momentum_decay}}, loc).at(0); }

Value noam_schedule(Value update, const NoamScheduleAttrs& attrs, const Loc& loc) { return record(graph_of({update}, "noam_schedule", loc), "noam_schedule", {update}, {{"lr", *attrs.lr}, {"d_model", *attrs.d_model}, {"warmup", *attrs.warmup}}, loc).at(0); }

Value normal(Value seed, const NormalAttrs& attrs, const Loc& loc) { return record(graph_of({seed}, "normal", loc), "normal", {seed}, {{"type", *attrs.type}, {"mean", attrs.mean}, {"std", attrs.std}}, loc).at(0); }

Value numel(ir::Graph& graph, const NumelAttrs& attrs, const Loc& loc) { return record(graph, "numel", {}, {{"of", *attrs.of}}, loc).at(0); }

Value one_cycle_schedule(Value update, const OneCycleScheduleAttrs& attrs, const Loc& loc) { return record(graph_of({update}, "one_cycle_schedule", loc), "one_cycle_schedule", {update}, {{"lr", *attrs.lr}, {"steps", *attrs.steps}, {"pct_start", attrs.pct_start}, {"div_factor", attrs.div_factor}, {"final_div_factor", attrs.final_div_factor}, {"three_phase", attrs.three_phase}, {"linear_anneal", attrs.linear_anneal}, {"warmup", attrs.warmup}, {"warmup_start", attrs.warmup_start}, {"constant_warmup", attrs.constant_warmup}}, loc).at(0); }

Values partial_sort(Value x, const PartialSortAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "partial_sort", loc), "partial_sort", {x}, {{"k", *attrs.k}, {"axis", attrs.axis}, {"descending", attrs.descending}}, loc); }

Value piecewise_schedule(Value update, const PiecewiseScheduleAttrs& attrs, const Loc& loc) { return record(graph_of({update}, "piecewise_schedule", loc), "piecewise_schedule", {update}, {{"lr", *attrs.lr}, {"boundaries", std::vector<int64_t>(*attrs.boundaries)}, {"values", *attrs.values}, {"warmup", attrs.warmup}, {"warmup_start", attrs.warmup_start}, {"constant_warmup", attrs.constant_warmup}}, loc).at(0); }

Value place_rows(Value x, Value start, const PlaceRowsAttrs& attrs, const Loc& loc) { return record(graph_of({x, start}, "place_rows", loc), "place_rows", {x, start}, {{"rows", *attrs.rows}}, loc).at(0); }

Value plateau_schedule(Value update, Value lr_factor, const PlateauScheduleAttrs& attrs, const Loc& loc) { return record(graph_of({update, lr_factor}, "plateau_schedule", loc), "plateau_schedule", {update, lr_factor}, {{"lr", *attrs.lr}, {"metric", attrs.metric}, {"mode", attrs.mode}, {"factor", attrs.factor}, {"patience", attrs.patience}, {"threshold", attrs.threshold}, {"threshold_mode", attrs.threshold_mode}, {"cooldown", attrs.cooldown}, {"min_lr", attrs.min_lr}, {"warmup", attrs.warmup}, {"warmup_start", attrs.warmup_start}, {"constant_warmup", attrs.constant_warmup}}, loc).at(0); }

Value polynomial_schedule(Value update, const PolynomialScheduleAttrs& attrs, const Loc& loc) { return record(graph_of({update}, "polynomial_schedule", loc), "polynomial_schedule", {update}, {{"lr", *attrs.lr}, {"steps", *attrs.steps}, {"power", attrs.power}, {"end", attrs.end}, {"warmup", attrs.warmup}, {"warmup_start", attrs.warmup_start}, {"constant_warmup", attrs.constant_warmup}}, loc).at(0); }

Values power_iteration(Value matrix, Value u, Value v, const PowerIterationAttrs& attrs, const Loc& loc) { return record(graph_of({matrix, u, v}, "power_iteration", loc), "power_iteration", {matrix, u, v}, {{"iterations", attrs.iterations}, {"eps", attrs.eps}}, loc); }

Values radam(Value param, Value grad, Value lr, Value update, Value m, Value v, const RadamAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update, m, v}, "radam", loc), "radam", {param, grad, lr, update, m, v}, {{"beta1", attrs.beta1}, {"beta2", attrs.beta2}, {"eps", attrs.eps}, {"weight_decay", attrs.weight_decay}, {"decoupled_weight_decay", attrs.decoupled_weight_decay}}, loc); }

Value random_normal(Value rng, const RandomNormalAttrs& attrs, const Loc& loc) { return record(graph_of({rng}, "random_normal", loc), "random_normal", {rng}, {{"type", *attrs.type}, {"mean", attrs.mean}, {"std", attrs.std}}, loc).at(0); }

Value random_uniform(Value rng, const RandomUniformAttrs& attrs, const Loc& loc) { return record(graph_of({rng}, "random_uniform", loc), "random_uniform", {rng}, {{"type", *attrs.type}, {"low", attrs.low}, {"high", attrs.high}}, loc).at(0); }

Value resize2d_grad(Value dy, const Resize2dGradAttrs& attrs, const Loc& loc) { return record(graph_of({dy}, "resize2d_grad", loc), "resize2d_grad", {dy}, {{"input", *attrs.input}, {"mode", attrs.mode}, {"align_corners", attrs.align_corners}}, loc).at(0); }

Value rms_norm(Value x, const RmsNormAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "rms_norm", loc), "rms_norm", {x}, {{"axis", attrs.axis}, {"eps", attrs.eps}}, loc).at(0); }

Value rms_norm(Value x, Value scale, const RmsNormAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "rms_norm", loc), "rms_norm", {x, scale}, {{"axis", attrs.axis}, {"eps", attrs.eps}}, loc).at(0); }

Values rmsprop(Value param, Value grad, Value lr, Value update, Value square_avg, const RmspropAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update, square_avg}, "rmsprop", loc), "rmsprop", {param, grad, lr, update, square_avg}, {{"alpha", attrs.alpha}, {"eps", attrs.eps}, {"momentum", attrs.momentum}, {"centered", attrs.centered}, {"weight_decay", attrs.weight_decay}}, loc); }

Values rmsprop(Value param, Value grad, Value lr, Value update, Value square_avg, Value grad_avg, const RmspropAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update, square_avg}, "rmsprop", loc), "rmsprop", {param, grad, lr, update, square_avg, grad_avg}, {{"alpha", attrs.alpha}, {"eps", attrs.eps}, {"momentum", attrs.momentum}, {"centered", attrs.centered}, {"weight_decay", attrs.weight_decay}}, loc); }

Values rmsprop(Value param, Value grad, Value lr, Value update, Value square_avg, Value grad_avg, Value velocity, const RmspropAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update, square_avg}, "rmsprop", loc), "rmsprop", {param, grad, lr, update, square_avg, grad_avg, velocity}, {{"alpha", attrs.alpha}, {"eps", attrs.eps}, {"momentum", attrs.momentum}, {"centered", attrs.centered}, {"weight_decay", attrs.weight_decay}}, loc); }

Value round_saturate(Value x, const RoundSaturateAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "round_saturate", loc), "round_saturate", {x}, {{"to", *attrs.to}}, loc).at(0); }

Value scaled_dot_product_attention(Value q, Value k, Value v, const ScaledDotProductAttentionAttrs& attrs, const Loc& loc) { return record(graph_of({q, k, v}, "scaled_dot_product_attention", loc), "scaled_dot_product_attention", {q, k, v}, {{"causal", attrs.causal}, {"scale", attrs.scale}, {"alibi", attrs.alibi}}, loc).at(0); }

Value scaled_dot_product_attention(Value q, Value k, Value v, Value mask, const ScaledDotProductAttentionAttrs& attrs, const Loc& loc) { return record(graph_of({q, k, v}, "scaled_dot_product_attention", loc), "scaled_dot_product_attention", {q, k, v, mask}, {{"causal", attrs.causal}, {"scale", attrs.scale}, {"alibi", attrs.alibi}}, loc).at(0); }

Value scaled_dot_product_attention_dropout(Value q, Value k, Value v, Value rng, const ScaledDotProductAttentionDropoutAttrs& attrs, const Loc& loc) { return record(graph_of({q, k, v, rng}, "scaled_dot_product_attention_dropout", loc), "scaled_dot_product_attention_dropout", {q, k, v, rng}, {{"causal", attrs.causal}, {"scale", attrs.scale}, {"alibi", attrs.alibi}, {"dropout", attrs.dropout}}, loc).at(0); }

Value scaled_dot_product_attention_dropout(Value q, Value k, Value v, Value rng, Value mask, const ScaledDotProductAttentionDropoutAttrs& attrs, const Loc& loc) { return record(graph_of({q, k, v, rng}, "scaled_dot_product_attention_dropout", loc), "scaled_dot_product_attention_dropout", {q, k, v, rng, mask}, {{"causal", attrs.causal}, {"scale", attrs.scale}, {"alibi", attrs.alibi}, {"dropout", attrs.dropout}}, loc).at(0); }

Value scatter_add(Value updates, Value index, const ScatterAddAttrs& attrs, const Loc& loc) { return record(graph_of({updates, index}, "scatter_add", loc), "scatter_add", {updates, index}, {{"to", *attrs.to}, {"axis", attrs.axis}}, loc).at(0); }

Value sgd(Value param, Value grad, Value lr, Value update, const SgdAttrs& attrs, const Loc& loc) { return record(graph_of({param, grad, lr, update}, "sgd", loc), "sgd", {param, grad, lr, update}, {{"weight_decay", attrs.weight_decay}}, loc).at(0); }

Value step_schedule(Value update, const StepScheduleAttrs& attrs, const Loc& loc) { return record(graph_of({update}, "step_schedule", loc), "step_schedule", {update}, {{"lr", *attrs.lr}, {"every", *attrs.every}, {"factor", attrs.factor}, {"warmup", attrs.warmup}, {"warmup_start", attrs.warmup_start}, {"constant_warmup", attrs.constant_warmup}}, loc).at(0); }

Value sum_squares(Value x, const SumSquaresAttrs& attrs, const Loc& loc) { return record(graph_of({x}, "sum_squares", loc), "sum_squares", {x}, {{"axes", std::vector<int64_t>(attrs.axes)}, {"keep_dims", attrs.keep_dims}}, loc).at(0); }

Value swa_update(Value average, Value param, Value update, const SwaUpdateAttrs& attrs, const Loc& loc) { return record(graph_of({average, param, update}, "swa_update", loc), "swa_update", {average, param, update}, {{"start", *attrs.start}, {"every", attrs.every}}, loc).at(0); }

Value truncated_normal(Value seed, const TruncatedNormalAttrs& attrs, const Loc& loc) { return record(graph_of({seed}, "truncated_normal", loc), "truncated_normal", {seed}, {{"type", *attrs.type}, {"mean", attrs.mean}, {"std", attrs.std}, {"low", attrs.low}, {"high", attrs.high}}, loc).at(0); }

Value uniform(Value seed, const UniformAttrs& attrs, const Loc& loc) { return record(graph_of({seed}, "uniform", loc), "uniform", {seed}, {{"type", *attrs.type}, {"low", attrs.low}, {"high", attrs.high}}, loc).at(0); }

}  // namespace fluid::internal
