// The shortest whole program: record, save, train, save.

#include <fluid/fluid.h>

#include <cstdio>
namespace fl = fluid;

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  fl::Program net("mnist");
  auto image = net.data("image", {fl::kBatch, 1, 28, 28}, fl::f32);
  auto label = net.data("label", {fl::kBatch}, fl::i64);
  auto h = fl::conv2d(image, {.filters = 20, .kernel = 5, .padding = 2, .act = fl::Act::relu});
  h = fl::max_pool2d(h, {.kernel = 2, .stride = 2});
  h = fl::conv2d(h, {.filters = 20, .kernel = 5, .padding = 2, .act = fl::Act::relu});
  h = fl::max_pool2d(h, {.kernel = 2, .stride = 2});
  auto logits = fl::linear(fl::flatten(h), {.units = 10});
  auto loss = fl::mean(fl::softmax_cross_entropy(logits, label));
  net.output("loss", loss);
  net.output("accuracy", fl::accuracy(logits, label));
  net.output("prob", fl::softmax(logits));
  fl::minimize(loss, fl::SGD{.lr = 0.01f});
  net.save("mnist.fluid");

  fl::Executor exe(net, fl::cpu(), {.batch = 100});
  for (auto& batch : fl::Mnist(argv[1], {.batch = 100, .shuffle_seed = 1}))
    std::printf("loss %.4f\n", exe.run(batch)["loss"].item());
  exe.save("mnist.safetensors");
}
