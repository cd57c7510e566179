#include <algorithm>
#include <map>
#include <set>

#include "ir/print.h"
#include "ir/stopwatch.h"
#include "ir/verify.h"
#include "ops/no_amp.h"
#include "ops/source_kind.h"
#include "ops/table.h"
#include "passes/line_diff.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace fluid {
namespace {

/// Checks that each stored value has the type of its variable. Skips undeclared variables, because
/// their types are unknown.
void verify_stores(const ir::Graph& graph) {
  std::map<std::string_view, const ir::Op*> variables;
  for (const auto& op : graph.ops) {
    if (is_variable(*op)) variables[op->symbol] = op.get();
  }
  for (const auto& op : graph.ops) {
    if (!is_store(*op)) continue;
    const auto variable = variables.find(op->symbol);
    if (variable == variables.end()) continue;
    const Type &given = op->operands.at(0).type(), &wanted = variable->second->results.at(0).type;
    check(given == wanted, [&] {
      return "store: " + given.str() + " into '" + op->symbol + "', which is " + wanted.str();
    });
  }
}

void verify_after(const ir::Program& program, const std::string& pass) {
  try {
    ir::verify(program, verify_op);
    verify_stores(program.main());
  } catch (const std::exception& e) {
    throw InternalError("after pass " + pass + ": " + e.what());
  }
}

}  // namespace

std::string order_error(const std::vector<Pass>& passes) {
  std::set<std::string> facts;
  for (const Pass& pass : passes) {
    for (const std::string& need : pass.needs) {
      if (facts.contains(need)) continue;
      const auto provider = std::ranges::find_if(
          all_passes(), [&](const Pass& p) { return std::ranges::count(p.provides, need) > 0; });
      check(provider != all_passes().end(), [&] { return "no pass provides '" + need + "'"; });
      return "pass " + pass.name + " needs '" + need + "': run " + provider->name + " before it";
    }
    facts.insert(pass.provides.begin(), pass.provides.end());
  }
  return "";
}

std::vector<PassReport> run_passes(ir::Program& program, const std::vector<Pass>& passes,
                                   const Options& options, const Target& target, bool dump) {
  const NoAmp::Suspend paused;
  ir::verify(program);
  const std::string fault = order_error(passes);
  check(fault.empty(), fault);
  std::vector<PassReport> reports;
  std::string before = dump ? ir::print_by_id(program) : "";
  bool changed = false;  // whether the program has changed since the last verification
  for (const Pass& pass : passes) {
    PassReport report{.pass = pass.name};
    const Stopwatch watch;
    report.changed = pass.run(program, options, target);
    report.ms = watch.ms();
    changed = changed || report.changed;
    if (changed && (options.verify_each || &pass == &passes.back())) {
      const Stopwatch verify_watch;
      verify_after(program, pass.name);
      report.verify_ms = verify_watch.ms();
      changed = false;
    }
    if (dump && report.changed) {
      std::string after = ir::print_by_id(program);
      report.dump = line_diff(before, after);
      before = std::move(after);
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace fluid
