#include "ops/optim/schedule.h"

namespace fluid {
namespace {

struct Phase {
  double last;  ///< number of the last update of the phase
  double from, to;
};

std::vector<Phase> phases(const ScheduleCtx& c) {
  const double steps = c.updates("steps"), highest = c.lr();
  const double rise = c.number("pct_start") * steps;
  const double first = highest / c.number("div_factor");
  const double lowest = first / c.number("final_div_factor");
  if (!c.flag("three_phase")) {
    return {{rise - 1, first, highest}, {steps - 1, highest, lowest}};
  }
  return {{rise - 1, first, highest}, {2 * rise - 2, highest, first}, {steps - 1, first, lowest}};
}

Expr annealed(const ScheduleCtx& c, const Phase& phase, double begin) {
  const Expr done =
      scalar::min((c.update() - begin) / (phase.last - begin), Expr::constant(f64, 1));
  return c.flag("linear_anneal") ? done * (phase.to - phase.from) + phase.from
                                 : cosine_between(phase.from, phase.to, done);
}

void check_one_cycle(const InferCtx& c) {
  const double updates = static_cast<double>(c.attr<int64_t>("steps") - c.attr<int64_t>("warmup"));
  const double rise = c.attr<double>("pct_start") * updates;
  const bool three = c.attr<bool>("three_phase");
  c.require(rise > 1,
            "attribute 'pct_start' gives the rise no update: 'pct_start' times 'steps' "
            "must be above 1");
  c.require(three ? 2 * rise - 2 < updates - 1 : rise < updates,
            "attribute 'pct_start' leaves no update for the last phase");
}

}  // namespace

OpDef one_cycle_schedule_op() {
  return schedule_def({
      .type = "OneCycle",
      .name = "one_cycle",
      .doc = "Rises from lr / div_factor to lr in the first fraction `pct_start` of the updates, "
             "then falls "
             "to lr / (div_factor * final_div_factor) (Smith and Topin, \"Super-convergence\", "
             "2018), like PyTorch's OneCycleLR without its cycle of the momentum.",
      .settings =
          {{"steps", int64_t{2}, "number of updates; the last rate stays", true},
           {"pct_start", 0.3, "fraction of the updates in which the learning rate rises", false, 0,
            1},
           {.name = "div_factor", .fallback = 25.0, .doc = "lr / first learning rate", .low = 1},
           {.name = "final_div_factor",
            .fallback = 1e4,
            .doc = "first learning rate / last learning rate",
            .low = 1},
           {"three_phase", false,
            "falls to the first rate as fast as it rose, then to the last rate"},
           {"linear_anneal", false, "linear instead of cosine annealing"}},
      .update_settings = {"steps"},
      .check = check_one_cycle,
      .rate =
          [](const ScheduleCtx& c) {
            const std::vector<Phase> all = phases(c);
            Expr rate;
            for (size_t i = all.size(); i-- > 0;) {
              const Expr here = annealed(c, all[i], i == 0 ? 0 : all[i - 1].last);
              const Expr last = Expr::constant(f64, all[i].last);
              rate =
                  rate ? scalar::select(scalar::compare(ScalarOp::le, c.update(), last), here, rate)
                       : here;
            }
            return rate;
          },
  });
}

}  // namespace fluid
