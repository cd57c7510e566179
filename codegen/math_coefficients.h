#pragma once

// Written by scripts/fit_math.py: do not edit.

#include <cstdint>

namespace fluid::emit::coefficients {

/// f32 coefficients of (exp(r) - 1 - r) / r^2 as a polynomial in r for |r| <= ln(2)/2.
inline constexpr double kExp32[] = {
    0x1.0000000000000p-1, 0x1.5554dc8961859p-3,  0x1.555518f5d1200p-5,
    0x1.120be1dcb42dcp-7, 0x1.6d117cc039048p-10,
};
/// f32 coefficients of (2 atanh(s) - 2 s) / s^3 as a polynomial in s^2 for s = f/(2+f).
inline constexpr double kLog32[] = {
    0x1.5555554ba8b0ep-1,
    0x1.9999eb9d6ddfep-2,
    0x1.245c273432202p-2,
    0x1.ddd4dad98e4c4p-3,
};
/// f32 coefficients of (tanh(x) - x) / x^3 as a polynomial in x^2 for |x| <= 0.62.
inline constexpr double kTanh32[] = {
    -0x1.5555553c039c7p-2, 0x1.1110ebefb69e6p-3,  -0x1.ba09d399b51b8p-5,
    0x1.64bacfc58f2eep-6,  -0x1.11dca0a07c055p-7, 0x1.2e8f1ab9e239dp-9,
};
/// f32 coefficients of (sinh(x) - x) / x^3 as a polynomial in x^2 for |x| <= 1.
inline constexpr double kSinh32[] = {
    0x1.5555554e858c9p-3,
    0x1.11111eaff05ecp-7,
    0x1.a008ffbc060dap-13,
    0x1.78a70e32a02ebp-19,
};
/// f32 coefficients of (asin(x) - x) / x^3 as a polynomial in x^2 for |x| <= 1/2.
inline constexpr double kAsin32[] = {
    0x1.555554e435732p-3, 0x1.333430fcff28ep-4, 0x1.6d5bb95f8e653p-5,
    0x1.fd8da2554dd34p-6, 0x1.18f91e79712c6p-6, 0x1.13fed3dd245c1p-5,
};
/// f32 coefficients of (atan(x) - x) / x^3 as a polynomial in x^2 for |x| <= 1.
inline constexpr double kAtan32[] = {
    -0x1.55555529fed15p-2, 0x1.999955947a191p-3,  -0x1.2489515c587b6p-3, 0x1.c62cd9aa62ae5p-4,
    -0x1.6dd8fdf061e31p-4, 0x1.2006f71525126p-4,  -0x1.9115a3d155a2fp-5, 0x1.aefb2bdf4b25ap-6,
    -0x1.2ba6b6e0bd288p-7, 0x1.86406cc5c4982p-10,
};
/// f32 coefficients of erf(x) / x - 1 as a polynomial in x^2 for |x| <= 1.
inline constexpr double kErf32[] = {
    0x1.06eba7f673903p-3, -0x1.81273e7a02443p-2,  0x1.ce2d10ed44e09p-4,  -0x1.b7faba961c85ap-6,
    0x1.541270c79ca2cp-8, -0x1.a45087f1a200ap-11, 0x1.4a5690869d13fp-14,
};
/// f32 coefficients of erfc(x) exp(x^2) as a polynomial in x-2 for 1 <= x <= 4.
inline constexpr double kErfc32[] = {
    0x1.058690857a15dp-2, -0x1.b57365377644bp-4,  0x1.56309ea30ddcdp-5,  -0x1.fba5b1030c0a5p-7,
    0x1.6d29d32602574p-8, -0x1.a431820f63dd7p-10, 0x1.26015258af00ap-11, -0x1.97c3f2b4f93a3p-12,
};
/// f64 coefficients of (exp(r) - 1 - r) / r^2 as a polynomial in r for |r| <= ln(2)/2.
inline constexpr double kExp64[] = {
    0x1.0000000000001p-1,  0x1.5555555555556p-3,  0x1.5555555553d37p-5,  0x1.11111111109a6p-7,
    0x1.6c16c1789d1d7p-10, 0x1.a01a01a7cebcdp-13, 0x1.a019b8ca26fcfp-16, 0x1.71de0d85293b8p-19,
    0x1.2891d4ffbb0f9p-22, 0x1.af390ba7e6f47p-26,
};
/// f64 coefficients of (2 atanh(s) - 2 s) / s^3 as a polynomial in s^2 for s = f/(2+f).
inline constexpr double kLog64[] = {
    0x1.5555555555555p-1, 0x1.9999999999a39p-2, 0x1.2492492476a1ap-2, 0x1.c71c7201a55d7p-3,
    0x1.745cf8e4bba1bp-3, 0x1.3b1c3c1c81c8fp-3, 0x1.0fbde0f4ad17bp-3, 0x1.0c0aff044a970p-3,
};
/// f64 coefficients of (tanh(x) - x) / x^3 as a polynomial in x^2 for |x| <= 0.62.
inline constexpr double kTanh64[] = {
    -0x1.5555555555555p-2,  0x1.11111111110b8p-3,  -0x1.ba1ba1ba10ca5p-5,  0x1.664f487e9ec4cp-6,
    -0x1.226e348d63ab3p-7,  0x1.d6d39ffe93f8ep-9,  -0x1.7d9fc0563fb06p-10, 0x1.352a249b6f371p-11,
    -0x1.f26da105a7623p-13, 0x1.84efa9d784dc4p-14, -0x1.073f52952a9b9p-15, 0x1.b92748947c5a0p-18,
};
/// f64 coefficients of (sinh(x) - x) / x^3 as a polynomial in x^2 for |x| <= 1.
inline constexpr double kSinh64[] = {
    0x1.5555555555555p-3,  0x1.11111111110fdp-7,  0x1.a01a01a01ee70p-13, 0x1.71de3a4e14f40p-19,
    0x1.ae6460fae3728p-26, 0x1.611cb330c1fe8p-33, 0x1.b41232cf9950fp-41,
};
/// f64 coefficients of (asin(x) - x) / x^3 as a polynomial in x^2 for |x| <= 1/2.
inline constexpr double kAsin64[] = {
    0x1.5555555555555p-3,  0x1.3333333333388p-4, 0x1.6db6db6dac1e0p-5, 0x1.f1c71c7a52ba3p-6,
    0x1.6e8ba123e494cp-6,  0x1.1c4efce23019fp-6, 0x1.c990ad3d8fdcap-7, 0x1.7b027ee1dd585p-7,
    0x1.3b49de7121487p-7,  0x1.31622469ce5adp-7, 0x1.8f193743418ffp-9, 0x1.406192d124629p-6,
    -0x1.3b416bb7d9257p-6, 0x1.e529c6fce9bb4p-6,
};
/// f64 coefficients of (atan(x) - x) / x^3 as a polynomial in x^2 for |x| <= 1.
inline constexpr double kAtan64[] = {
    -0x1.5555555555555p-2,  0x1.99999999998f9p-3, -0x1.249249248c7dap-3,  0x1.c71c71c472843p-4,
    -0x1.745d16f26d0a3p-4,  0x1.3b13aaf4aba4ap-4, -0x1.1110bfea8ed5ep-4,  0x1.e1dc0d7679adcp-5,
    -0x1.af00bd568a3d2p-5,  0x1.854a7b99af61dp-5, -0x1.60ebd1489b946p-5,  0x1.3d3f26d5ea7ffp-5,
    -0x1.147b2825d82f6p-5,  0x1.c3ac54a572735p-6, -0x1.4b974a27ac39fp-6,  0x1.a1fe88baf72d4p-7,
    -0x1.aef1a8e977bf8p-8,  0x1.57cc888719aa0p-9, -0x1.8a2f3ae537bb1p-11, 0x1.1f0adb240a1fbp-13,
    -0x1.8d087295ab9f4p-17,
};
/// f64 coefficients of erf(x) / x - 1 as a polynomial in x^2 for |x| <= 1.
inline constexpr double kErf64[] = {
    0x1.06eba8214db69p-3,  -0x1.812746b0379e6p-2,  0x1.ce2f21a042b30p-4,  -0x1.b82ce31284e00p-6,
    0x1.565bcd0dbaa38p-8,  -0x1.c02db3dac435fp-11, 0x1.f9a321d5b8e1ep-14, -0x1.f4d1e3183f7aep-17,
    0x1.b9df224ca4b97p-20, -0x1.5f1ecb6f0764cp-23, 0x1.f7b4bf3b13964p-27, -0x1.389d4f2641625p-30,
    0x1.05ffd737fb32ep-34,
};
/// f64 coefficients of erfc(x) exp(x^2) as a polynomial in x-2 for 1 <= x <= 6.
inline constexpr double kErfc64[] = {
    0x1.058671b52c76ep-2,  -0x1.b57034efd414fp-4,  0x1.5672b9ea1556bp-5,  -0x1.fa9d3ac91c9fdp-7,
    0x1.6490721548684p-8,  -0x1.e028e8be44e25p-10, 0x1.369ff9f975812p-11, -0x1.83821d22ab8f0p-13,
    0x1.d37baf72508e6p-15, -0x1.115d5ddbb6b8cp-16, 0x1.36968516e5dc1p-18, -0x1.576e100e7b252p-20,
    0x1.725c2cce688f0p-22, -0x1.86632c0702b3bp-24, 0x1.905a8f25a1d51p-26, -0x1.8caba27647025p-28,
    0x1.8cc0032cab053p-30, -0x1.a9ce10d18b283p-32, 0x1.a4eab78ddc196p-34, -0x1.16328e9565395p-36,
    0x1.49ff2fa9eac0dp-40,
};
/// Coefficients for sin in f32: (sin(x) - x) / x^3 as a polynomial in x^2 for |x| <= pi/4. The
/// polynomial is evaluated in f64.
inline constexpr double kSin32[] = {
    -0x1.555555545c0f8p-3,
    0x1.11110dea5e8c0p-7,
    -0x1.a013a11619d1bp-13,
    0x1.6dbbee1f24647p-19,
};
/// Coefficients for cos in f32: (cos(x) - 1 + x^2/2) / x^4 as a polynomial in x^2 for |x| <= pi/4.
/// The polynomial is evaluated in f64.
inline constexpr double kCos32[] = {
    0x1.555555550225fp-5,
    -0x1.6c16bf51b0df9p-10,
    0x1.a015c02820885p-16,
    -0x1.2522e6d930e5bp-22,
};
/// f64 coefficients of (sin(x) - x) / x^3 as a polynomial in x^2 for |x| <= pi/4.
inline constexpr double kSin64[] = {
    -0x1.5555555555555p-3,  0x1.1111111111110p-7,  -0x1.a01a01a019926p-13, 0x1.71de3a545e700p-19,
    -0x1.ae64540f0ba18p-26, 0x1.61217c1864fa1p-33, -0x1.ab161757f0c63p-41,
};
/// f64 coefficients of (cos(x) - 1 + x^2/2) / x^4 as a polynomial in x^2 for |x| <= pi/4.
inline constexpr double kCos64[] = {
    0x1.5555555555555p-5,   -0x1.6c16c16c16960p-10, 0x1.a01a019f4d0edp-16,
    -0x1.27e4fa15bd814p-22, 0x1.1eeb66b683028p-29,  -0x1.907c0e63adbb6p-37,
};
/// f64 coefficients of (2 atanh(s) - 2 s - 2 s^3/3) / s^5 as a polynomial in s^2.
inline constexpr double kLogTail64[] = {
    0x1.999999999999ap-2, 0x1.2492492492522p-2, 0x1.c71c71c6ea5acp-3, 0x1.745d177ad436ap-3,
    0x1.3b1395b82701ep-3, 0x1.1118cd67251c5p-3, 0x1.df7ba1f4809c3p-4, 0x1.e03a7acf07f85p-4,
};

/// ln 2 as a sum of two numbers. The product of a binary exponent and the first number is exact,
/// with or without fma.
inline constexpr double kLn2High32 = 0x1.62e4000000000p-1;
inline constexpr double kLn2Low32 = 0x1.7f7d1cf79abcap-20;
inline constexpr double kLn2High64 = 0x1.62e42fee00000p-1;
inline constexpr double kLn2Low64 = 0x1.a39ef35793c76p-33;

/// 1 / ln 2 as a sum of two numbers. The first has 12 (f32) or 32 (f64) significant bits.
inline constexpr double kLog2EHigh32 = 0x1.7140000000000p+0;
inline constexpr double kLog2ELow32 = 0x1.47652b82fe177p-12;
inline constexpr double kLog2EHigh64 = 0x1.7154765200000p+0;
inline constexpr double kLog2ELow64 = 0x1.705fc2eefa200p-33;

/// pi/2 as a sum of two numbers, of which the first is an f32.
inline constexpr double kHalfPi32[] = {0x1.921fb60000000p+0, -0x1.777a5cf72cecep-25};

/// pi/2 as a sum of three doubles.
inline constexpr double kHalfPi[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54,
                                     -0x1.f1976b7ed8fbcp-110};

/// 2/3 as a sum of two doubles.
inline constexpr double kTwoThirds[] = {0x1.5555555555555p-1, 0x1.5555555555555p-55};

/// The bits of 2/pi after the binary point, preceded by a word of zeros.
inline constexpr uint64_t kTwoOverPi[] = {
    0x0,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x6492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
    0xf0cfbc209af4361d,
};

}  // namespace fluid::emit::coefficients
