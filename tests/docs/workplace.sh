# Sourced by the tests of documentation: makes a fresh folder in $work, goes there and sets what pages take for granted,
# $MNIST and $CIFAR10, folders with files in the formats of these data sets. Programs run on the CPU.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/mnist" "$work/cifar10" "$work/cache" "$work/here"
export MNIST=$work/mnist CIFAR10=$work/cifar10 XDG_CACHE_HOME=$work/cache CUDA_VISIBLE_DEVICES=
unset FLUID_CACHE

# repeat BYTE COUNT, the byte in octal
repeat() { head -c "$2" /dev/zero | tr '\0' "\\$1"; }
# 500 images of one value, all of class 3
for split in train t10k; do
  { printf '\0\0\10\3\0\0\1\364\0\0\0\34\0\0\0\34'; repeat 1 $((500 * 784)); } > "$MNIST/$split-images-idx3-ubyte"
  { printf '\0\0\10\1\0\0\1\364'; repeat 3 500; } > "$MNIST/$split-labels-idx1-ubyte"
done
# Two images of one value each, of classes 1 and 2
for file in data_batch_1 test_batch; do
  for class in 1 2; do repeat $class 1; repeat 1${class}0 3072; done > "$CIFAR10/$file.bin"
done
cd "$work/here"
