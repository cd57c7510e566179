// A program with a mistake, whose line the message must name.

#include "frontend/examples/example.h"
#include "frontend/program.h"
#include "ops/functions.h"
namespace fl = fluid;

int main(int argc, char** argv) {
  return run_example(argc, argv, [](const ExampleOptions& options) {
    fl::Program net("mismatch");
    auto image = net.data("image", {fl::kBatch, 8}, fl::f32);
    auto weight = net.data("weight", {9, 3}, fl::f32);
    net.output("y", fl::matmul(image, weight));
    net.save(options.save);
  });
}
