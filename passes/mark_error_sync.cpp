#include <memory>

#include "ops/group.h"
#include "ops/scan.h"
#include "passes/collective_order.h"
#include "passes/pass.h"
#include "passes/pass_table.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// Number of collectives that must run before all data can be checked. Counts up to the last
/// collective on which a data-checking op depends. 0 if there is no such collective; nullopt if no
/// op checks data. All ranks compute the same number, even a rank without samples, because the
/// number depends only on the recorded program.
std::optional<size_t> needed_collectives(const ir::Program& program, const Options& options,
                                         const Target& target) {
  const std::unique_ptr<ir::Program> expanded = program.clone();
  expand_pass().run(*expanded, options, target);
  Values checked;
  for (const auto& op : expanded->main().ops) {
    if (checks_data(*op)) checked.push_back(op->result());
  }
  if (checked.empty()) return std::nullopt;
  const std::set<const ir::Op*> before = ancestors(checked);
  size_t needed = 0, count = 0;
  for (const ir::Op* collective : collectives_in_order(expanded->main())) {
    ++count;
    if (before.contains(collective)) needed = count;
  }
  return needed;
}

bool run_mark_error_sync(ir::Program& program, const Options& options, const Target& target) {
  if (find_directive(program.main()) == nullptr || !options.uses_collectives()) return false;
  const std::optional<size_t> needed = needed_collectives(program, options, target);
  if (!needed) return false;
  const std::vector<ir::Op*> in_order = collectives_in_order(program.main());
  check(*needed < in_order.size(), "no collective follows all ops that may reject data");
  mark_as_error_sync(*in_order[*needed]);
  return true;
}

}  // namespace

Pass mark_error_sync_pass() {
  return {.name = "mark_error_sync",
          .doc = "Marks the collective before which ranks exchange their error words.",
          .needs = {"reduced"},
          .provides = {},
          .run = run_mark_error_sync};
}

}  // namespace fluid
