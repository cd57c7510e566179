#pragma once

#include <string>
#include <vector>

#include "frontend/fluid.h"

/// Hyperparameters of a generative adversarial network.
struct GanConfig {
  int64_t latent = 64;
  int64_t width = 256;
};

/// A fully connected layer. All calls of operator() share its parameters.
class SharedLinear {
 public:
  SharedLinear(fluid::Program& net, const std::string& name, int64_t in_features,
               int64_t out_features, fluid::DType dtype)
      : weight_(net.parameter(name + ".w", {in_features, out_features},
                              fluid::Init::normal(0, 0.05), {.dtype = dtype})),
        bias_(net.parameter(name + ".b", {out_features}, fluid::Init::zeros(), {.dtype = dtype})) {}
  fluid::Value operator()(fluid::Value x) const { return fluid::matmul(x, weight_) + bias_; }

 private:
  fluid::Value weight_, bias_;
};

/// The losses of a generative adversarial network.
struct GanLosses {
  fluid::Value discriminator, generator;
};

/// Adds to `net` a generative adversarial network (Goodfellow et al., 2014) for images [N, 1, H, W]
/// in [0, 1], with the non-saturating loss of the generator. `noise`: [N, config.latent]. The
/// parameters of the networks are named "generator.*" and "discriminator.*". Outputs: both losses
/// and the generated images, of the shape of `image`.
inline GanLosses record_gan(fluid::Program& net, fluid::Value image, fluid::Value noise,
                            const GanConfig& config = {}) {
  const auto real = fluid::flatten(image);
  const fluid::DType dtype = image.dtype();
  const int64_t pixels = real.shape()[1].size;
  const SharedLinear g0(net, "generator.fc0", config.latent, config.width, dtype);
  const SharedLinear g1(net, "generator.fc1", config.width, pixels, dtype);
  const SharedLinear d0(net, "discriminator.fc0", pixels, config.width, dtype);
  const SharedLinear d1(net, "discriminator.fc1", config.width, 1, dtype);
  const auto generated = fluid::sigmoid(g1(fluid::relu(g0(noise))));
  const auto discriminate = [&](fluid::Value x) {
    return d1(fluid::leaky_relu(d0(x), {.negative_slope = 0.2}));
  };
  const auto on_real = discriminate(real), on_generated = discriminate(generated);
  const auto loss_against = [](fluid::Value logits, double target) {
    const auto targets =
        fluid::fill(*logits.op()->graph(), {.type = logits.type(), .value = target});
    return fluid::mean(fluid::binary_cross_entropy_with_logits(logits, targets));
  };
  const GanLosses losses = {
      .discriminator = loss_against(on_real, 1) + loss_against(on_generated, 0),
      .generator = loss_against(on_generated, 1)};
  net.output("discriminator_loss", losses.discriminator);
  net.output("generator_loss", losses.generator);
  net.output("image", fluid::reshape(generated, image.shape()));
  return losses;
}
