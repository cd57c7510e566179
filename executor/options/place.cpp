#include "executor/options/place.h"

namespace fluid {

std::string Place::str() const {
  return kind == Kind::cpu ? "cpu" : "cuda:" + std::to_string(index);
}

}  // namespace fluid
