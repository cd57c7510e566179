#include "frontend/init.h"

#include <string>

namespace fluid {
namespace {

Attr text(const char* s) { return std::string(s); }

}  // namespace

Init Init::constant(double value) { return Init({{"init", text("constant")}, {"value", value}}); }
Init Init::uniform(double low, double high) {
  return Init({{"init", text("uniform")}, {"low", low}, {"high", high}});
}
Init Init::normal(double mean, double stddev) {
  return Init({{"init", text("normal")}, {"mean", mean}, {"std", stddev}});
}
Init Init::xavier_uniform(double gain) {
  return Init({{"init", text("xavier_uniform")}, {"gain", gain}});
}
Init Init::xavier_normal(double gain) {
  return Init({{"init", text("xavier_normal")}, {"gain", gain}});
}
Init Init::kaiming_uniform(double slope) {
  return Init({{"init", text("kaiming_uniform")}, {"slope", slope}});
}
Init Init::kaiming_normal(double slope) {
  return Init({{"init", text("kaiming_normal")}, {"slope", slope}});
}

}  // namespace fluid
