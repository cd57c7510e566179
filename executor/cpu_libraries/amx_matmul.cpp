#include "executor/cpu_libraries/amx_matmul.h"

#include <algorithm>
#include <span>

#include "executor/cpu_libraries/amx_product.h"
#include "executor/cpu_libraries/divide_up.h"
#include "executor/cpu_libraries/plan_routine.h"
#include "executor/device/library_task.h"
#include "executor/host/parallel.h"
#include "passes/memory_plan.h"

namespace fluid {
namespace {

constexpr int64_t kPair = 2 * kAmxSide;  // rows or columns of two tiles
constexpr int64_t kMaxBlockRows = 256;
constexpr int64_t kMaxGroupColumns = 512;
constexpr int64_t kMaxMatmulStrip = 8 * kAmxTerms;

/// Returns the size of the parts of `n`, at most `most`, if they are equal but for a remainder.
int64_t even_part(int64_t n, int64_t most, int64_t multiple) {
  return divide_up(divide_up(n, divide_up(n, most)), multiple) * multiple;
}

/// A kernel with bound memory addresses.
class AmxMatmulCall {
 public:
  AmxMatmulCall(const AmxMatmulPlan& plan, void* const* buffers, void* workspace)
      : plan_(plan),
        left_(static_cast<const uint16_t*>(buffers[0])),
        right_(static_cast<const uint16_t*>(buffers[1])),
        bias_(plan.problem.bias ? static_cast<const uint16_t*>(buffers[2]) : nullptr),
        result_(static_cast<uint16_t*>(buffers[plan.problem.bias ? 3 : 2])),
        sums_(static_cast<float*>(workspace)),
        factors_(reinterpret_cast<uint16_t*>(sums_ + plan.workers * plan.sums_values())) {}

  void run() {
    const int64_t blocks = plan_.blocks(), tasks = blocks * plan_.groups();
    run_amx_tasks(tasks, plan_.workers, [&](int64_t task, int64_t worker) {
      compute(task % blocks, task / blocks, worker);
    });
  }

 private:
  void compute(int64_t block, int64_t group, int64_t worker) const {
    const AmxMatmulProblem& p = plan_.problem;
    const int64_t first_row = block * plan_.block_rows;
    const int64_t rows = std::min(p.rows - first_row, plan_.block_rows);
    const int64_t first_column = group * plan_.group_columns;
    const int64_t columns = std::min(p.columns - first_column, plan_.group_columns);
    float* const sums = sums_ + worker * plan_.sums_values();
    uint16_t* const left = factors_ + worker * (plan_.left_values() + plan_.right_values());
    uint16_t* const right = left + plan_.left_values();
    const int64_t sums_row = divide_up(columns, kPair) * 2 * kAmxTileValues;
    const int64_t tile = tile_values();
    for (int64_t term = 0; term < p.terms; term += plan_.strip_terms) {
      const int64_t terms = std::min(p.terms - term, plan_.strip_terms);
      pack_left(first_row, rows, term, terms, left);
      pack_right(first_column, columns, term, terms, right);
      for (int64_t row = 0; row < rows; row += kPair) {
        for (int64_t column = 0; column < columns; column += kPair) {
          add_amx_product(
              {.row_tiles = rows - row > kAmxSide || p.transposed_left ? 2 : 1,
               .column_tiles = 2,
               .steps = divide_up(terms, kAmxTerms),
               .left = left + row / kAmxSide * tile,
               .left_row_bytes = kAmxTerms * int64_t{sizeof(uint16_t)},
               .left_tile = tile,
               .left_step = kAmxFactorValues,
               .right = right + column / kAmxSide * tile,
               .right_tile = tile,
               .sums = sums + row / kAmxSide * sums_row + column / kAmxSide * kAmxTileValues,
               .sums_row = sums_row,
               .sums_column = kAmxTileValues,
               .accumulates = term > 0});
        }
      }
    }
    int64_t result_rows[kMaxBlockRows];
    for (int64_t i = 0; i < divide_up(rows, kPair) * kPair; ++i) {
      const int64_t row = p.transposed_left
                              ? i / kPair * kPair + amx_channel(i % kPair / kAmxSide, i % kAmxSide)
                              : i;
      result_rows[i] = row < rows ? first_row + row : -1;
    }
    store_amx_results({.sums = sums,
                       .sums_row = sums_row,
                       .columns = columns,
                       .interleaves_tiles = true,
                       .bias = bias_ != nullptr ? bias_ + first_column : nullptr,
                       .relu = p.relu,
                       .results = result_ + first_column,
                       .stride = p.columns,
                       .rows = {result_rows, static_cast<size_t>(divide_up(rows, kPair) * kPair)}});
  }

  void pack_left(int64_t row, int64_t rows, int64_t term, int64_t terms, uint16_t* to) const {
    const AmxMatmulProblem& p = plan_.problem;
    if (p.transposed_left) {
      pack_terms(left_ + row, rows, p.rows, term, terms, pack_amx_rows, to);
    } else {
      copy_amx_matrix({left_ + row * p.terms + term, p.terms, rows, terms}, to, tile_values());
    }
  }

  void pack_right(int64_t column, int64_t columns, int64_t term, int64_t terms,
                  uint16_t* to) const {
    const AmxMatmulProblem& p = plan_.problem;
    if (p.transposed_right) {
      transpose_amx_matrix({right_ + column * p.terms + term, p.terms, columns, terms}, to,
                           tile_values());
    } else {
      pack_terms(right_ + column, columns, p.columns, term, terms, pack_amx_columns, to);
    }
  }

  /// Packs terms [term, term + terms) of `count` rows or columns, which are side by side in rows of
  /// `stride` values.
  void pack_terms(const uint16_t* source, int64_t count, int64_t stride, int64_t term,
                  int64_t terms, void (*pack)(const AmxChannels&, uint16_t*, int64_t),
                  uint16_t* to) const {
    int64_t offsets[kMaxMatmulStrip];
    const int64_t padded = divide_up(terms, kAmxTerms) * kAmxTerms;
    for (int64_t i = 0; i < padded; ++i) offsets[i] = i < terms ? (term + i) * stride : -1;
    pack({.source = source, .offsets = {offsets, static_cast<size_t>(padded)}, .channels = count},
         to, tile_values());
  }

  int64_t tile_values() const { return kAmxSide * plan_.strip_terms; }  ///< of a strip

  const AmxMatmulPlan& plan_;
  const uint16_t* left_;
  const uint16_t* right_;
  const uint16_t* bias_;
  uint16_t* result_;
  float* sums_;
  uint16_t* factors_;
};

int64_t extent(const Type& t, size_t from_end) { return t.shape[t.shape.size() - from_end].size; }

}  // namespace

std::optional<AmxMatmulProblem> amx_matmul_problem(const ir::Op& op, const EpilogueOps& epilogue,
                                                   int64_t batch) {
  const auto task = library_task(op, epilogue, batch, 1);
  if (!task || task->result.dtype != DType::bf16) return std::nullopt;
  const Type &a = task->operands[0], &b = task->operands[1];
  const bool transpose_a = op.attrs.get<bool>("transpose_a");
  const bool transpose_b = op.attrs.get<bool>("transpose_b");
  if (a.layout || b.layout || task->result.layout || b.shape.size() != 2) return std::nullopt;
  if (transpose_a && a.shape.size() != 2) return std::nullopt;
  const int64_t terms = extent(a, transpose_a ? 2 : 1);
  return AmxMatmulProblem{.rows = a.shape.numel().size / terms,
                          .columns = extent(b, transpose_b ? 2 : 1),
                          .terms = terms,
                          .transposed_left = transpose_a,
                          .transposed_right = transpose_b,
                          .bias = task->epilogue.bias.has_value(),
                          .relu = task->epilogue.relu};
}

AmxMatmulPlan::AmxMatmulPlan(const AmxMatmulProblem& p)
    : problem(p),
      block_rows(even_part(p.rows, kMaxBlockRows, kPair)),
      group_columns(even_part(p.columns, kMaxGroupColumns, kPair)),
      strip_terms(even_part(p.terms, kMaxMatmulStrip, kAmxTerms)) {
  const auto tasks = [&] { return blocks() * groups(); };
  const int64_t enough = kAmxTasksPerWorker * thread_count(0);
  while (tasks() < enough && group_columns > 2 * kPair)
    group_columns = divide_up(group_columns / kPair, 2) * kPair;
  while (tasks() < enough && block_rows > 2 * kPair)
    block_rows = divide_up(block_rows / kPair, 2) * kPair;
  workers = std::min<int64_t>(tasks(), thread_count(0));
}

int64_t AmxMatmulPlan::blocks() const { return divide_up(problem.rows, block_rows); }

int64_t AmxMatmulPlan::groups() const { return divide_up(problem.columns, group_columns); }

int64_t AmxMatmulPlan::workspace() const {
  return align_up(workers * (sums_values() * int64_t{sizeof(float)} +
                             (left_values() + right_values()) * int64_t{sizeof(uint16_t)}));
}

// Measured on two cores with AMX (Intel, 3.7 TFLOP/s a core): products reach 0.36 of the peak.
// Copying a value of a factor takes as long as 150 FLOPs of the peak, 400 if it is transposed.
double AmxMatmulPlan::predicted_seconds(double flops_per_second, double bytes_per_second) const {
  const auto m = static_cast<double>(divide_up(problem.rows, kAmxSide) * kAmxSide);
  const auto n = static_cast<double>(divide_up(problem.columns, kPair) * kPair);
  const auto k = static_cast<double>(divide_up(problem.terms, kAmxTerms) * kAmxTerms);
  const double left = m * k * static_cast<double>(groups());
  const double right = n * k * static_cast<double>(blocks());
  const double flops = 2 / 0.36 * m * n * k + left * (problem.transposed_left ? 400 : 150) +
                       right * (problem.transposed_right ? 400 : 150);
  // A result is read into the cache before it is written.
  return kLibraryCallSeconds + flops / flops_per_second +
         (m * k + n * k + 2 * m * n) * sizeof(uint16_t) / bytes_per_second;
}

LibraryRoutine AmxMatmulPlan::routine(std::shared_ptr<const AmxMatmulPlan> plan) {
  return plan_routine<AmxMatmulCall>(std::move(plan));
}

}  // namespace fluid
