#pragma once

#include "frontend/fluid.h"

/// Hyperparameters of a variational autoencoder.
struct VaeConfig {
  int64_t width = 500;
  int64_t latent = 20;
};

/// Mean and log-variance of the latent variables of an image, each [N, latent].
struct VaeLatent {
  fluid::Value mean, log_var;
};

/// Encodes pixels [N, M] by a multilayer perceptron with one hidden layer.
inline VaeLatent vae_encode(fluid::Value pixels, const VaeConfig& config) {
  const auto h =
      fluid::linear(pixels, {.units = config.width, .act = fluid::Act::tanh, .name = "encoder"});
  return {fluid::linear(h, {.units = config.latent, .name = "mean"}),
          fluid::linear(h, {.units = config.latent, .name = "log_var"})};
}

/// Decodes latent variables [N, latent] to the logits of `pixels` Bernoulli variables.
inline fluid::Value vae_decode(fluid::Value latent, int64_t pixels, const VaeConfig& config) {
  const auto h =
      fluid::linear(latent, {.units = config.width, .act = fluid::Act::tanh, .name = "decoder"});
  return fluid::linear(h, {.units = pixels, .name = "pixels"});
}

/// Adds to `net` the outputs of a variational autoencoder (Kingma and Welling, "Auto-encoding
/// variational Bayes", ICLR 2014) of images [N, 1, H, W] in [0, 1]. noise(x) returns the standard
/// normal noise of the reparameterisation trick, in the shape of x. Returns the loss: the negative
/// evidence lower bound in nats per image.
template <class Noise>
fluid::Value record_vae(fluid::Program& net, fluid::Value image, const Noise& noise,
                        const VaeConfig& config = {}) {
  const auto pixels = fluid::flatten(image);
  const auto [mean, log_var] = vae_encode(pixels, config);
  const auto latent = mean + fluid::exp(0.5 * log_var) * noise(mean);
  const auto logits = vae_decode(latent, pixels.shape()[1].size, config);
  const auto per_image = [](fluid::Value x) { return fluid::mean(fluid::sum(x, {.axes = {1}})); };
  const auto reconstruction = per_image(fluid::binary_cross_entropy_with_logits(logits, pixels));
  const auto divergence = -0.5 * per_image(1 + log_var - fluid::square(mean) - fluid::exp(log_var));
  const auto loss = reconstruction + divergence;
  net.output("loss", loss);
  net.output("reconstruction", reconstruction);
  net.output("divergence", divergence);
  net.output("image", fluid::sigmoid(logits));
  return loss;
}
