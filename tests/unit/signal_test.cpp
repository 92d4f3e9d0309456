// Signal processing: short-time spectra, levels, resampling, MFCC, intelligibility and segmental signal-to-noise ratio,
// beside SciPy, NumPy and hand computation.
#include <doctest/doctest.h>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "sound_files.hpp"
#include "tasks/signal/levels.hpp"
#include "tasks/signal/mfcc.hpp"
#include "tasks/signal/resample.hpp"
#include "tasks/signal/segsnr.hpp"
#include "tasks/signal/stft.hpp"
#include "tasks/signal/stoi.hpp"

using namespace stiefel;
using namespace sound_files;
using Eigen::Index;

namespace {

const nlohmann::json& golden() {
  static const nlohmann::json all = nlohmann::json::parse(std::ifstream(STIEFEL_GOLDEN "/signal_processing.json"));
  return all;
}

std::vector<double> part(const std::vector<double>& x, std::size_t first, std::size_t last) {
  return {x.begin() + std::ptrdiff_t(first), x.begin() + std::ptrdiff_t(last)};
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

}  // namespace

TEST_CASE("the short-time Fourier transform is SciPy's") {
  const Eigen::MatrixXcd X = stft(part(speech(1000, 8000, 1), 100, 500));
  const auto& real = golden()["stft"]["real"];
  REQUIRE(X.rows() == 129);
  REQUIRE(X.cols() == Index(real.size()));
  CHECK(X.cols() == stft_frames(400));
  double most = 0;
  for (Index t = 0; t < X.cols(); ++t)
    for (Index k = 0; k < X.rows(); ++k) {
      const std::complex<double> expected(real[std::size_t(t)][std::size_t(k)],
                                          golden()["stft"]["imaginary"][std::size_t(t)][std::size_t(k)]);
      most = std::max(most, std::abs(X(k, t) - expected));
    }
  CHECK(most < 1e-12);
}

TEST_CASE("a signal comes back from its transform, whatever its length") {
  for (const std::size_t size : {1, 127, 128, 129, 1000, 2560}) {
    CAPTURE(size);
    const std::vector<double> x = noise(size, 5);
    const Eigen::MatrixXcd X = stft(x);
    CHECK(X.cols() == Index(size + 127) / 128 + 3);
    CHECK(largest_difference(inverse_stft(X, Index(size)), x) < 1e-14);
  }
  CHECK(stft({}).cwiseAbs().maxCoeff() == 0);
}

TEST_CASE("levels") {
  Eigen::MatrixXcd X(2, 2);
  X << 0, 1, std::complex<double>(3, 4), 100;
  const Eigen::MatrixXd L = levels(X);
  CHECK(L(0, 0) == doctest::Approx(-50));
  CHECK(L(0, 1) == doctest::Approx(10 * std::log10(1.00001)));
  CHECK(L(1, 0) == doctest::Approx(10 * std::log10(25.00001)));
  CHECK(L(1, 1) == doctest::Approx(40));
}

TEST_CASE("sound comes back from its true levels and phases, but for the floor of the levels") {
  const std::vector<double> x = speech(3000, 8000, 3);
  const Eigen::MatrixXcd X = stft(x);
  const Eigen::MatrixXd L = levels(X);
  const std::vector<double> y = sound_of_levels(L.rightCols(L.cols() - 1), X, 3000);
  CHECK(segmental_snr(x, y, 8000) > 20);
  double error = 0, energy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) error += (x[i] - y[i]) * (x[i] - y[i]), energy += x[i] * x[i];
  CHECK(10 * std::log10(energy / error) > 50);
  // 6.02 dB more is twice the amplitude, but for the first frame, which is silent here and not predicted
  const Eigen::MatrixXd louder = L.rightCols(L.cols() - 1).array() + 20 * std::log10(2.);
  const std::vector<double> twice = sound_of_levels(louder, X, 3000);
  double most = 0;
  for (std::size_t i = 0; i < y.size(); ++i) most = std::max(most, std::abs(twice[i] - 2 * y[i]));
  CHECK(most < 1e-12);
}

TEST_CASE("resampling is SciPy's resample_poly with a Kaiser window of β = 5") {
  const std::vector<double> x = speech(1000, 8000, 1);
  CHECK(largest_difference(resample(part(x, 0, 301), 1, 2), golden()["halved"]) < 1e-14);
  CHECK(largest_difference(resample(part(x, 0, 200), 5, 4), golden()["five_fourths"]) < 1e-14);
  CHECK(resample(part(x, 0, 200), 3, 3) == part(x, 0, 200));
  CHECK(resample(part(x, 0, 200), 10, 8) == resample(part(x, 0, 200), 5, 4));
  CHECK(resample({}, 1, 2).empty());
  CHECK(resample(std::vector<double>{1}, 1, 2).size() == 1);
}

TEST_CASE("resampling keeps low tones and removes those above the new half rate") {
  const auto tone = [](double frequency) {
    std::vector<double> x(1600);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(2 * std::numbers::pi * frequency * double(i) / 16000);
    return x;
  };
  const std::vector<double> low = resample(tone(500), 1, 2), high = resample(tone(6000), 1, 2);
  for (std::size_t i = 100; i < 700; ++i) {
    CHECK(low[i] == doctest::Approx(std::sin(2 * std::numbers::pi * 500 * double(i) / 8000)).epsilon(1e-3));
    CHECK(std::abs(high[i]) < 1e-3);
  }
}

TEST_CASE("mel-frequency cepstral coefficients are those of NumPy") {
  const Eigen::MatrixXd features = mfcc(speech(2000, 16000, 2), 16000);
  const auto& expected = golden()["mfcc"];
  REQUIRE(features.rows() == 26);
  REQUIRE(features.cols() == Index(expected.size()));
  double most = 0;
  for (Index t = 0; t < features.cols(); ++t)
    for (Index i = 0; i < 26; ++i)
      most = std::max(most, std::abs(features(i, t) - expected[std::size_t(t)][std::size_t(i)].get<double>()));
  CHECK(most < 1e-9);
}

TEST_CASE("windows of the mel-frequency cepstral coefficients") {
  CHECK(mfcc_frames(399, 16000) == 0);
  CHECK(mfcc_frames(400, 16000) == 1);
  CHECK(mfcc_frames(559, 16000) == 1);
  CHECK(mfcc_frames(560, 16000) == 2);
  CHECK(mfcc_centre(0, 16000) == 200);
  CHECK(mfcc_centre(3, 16000) == 680);
  CHECK(mfcc(std::vector<double>(100), 16000).cols() == 0);
  const Eigen::MatrixXd silent = mfcc(std::vector<double>(800), 16000);
  CHECK(silent.cols() == 3);
  CHECK(silent.cwiseAbs().maxCoeff() == 0);
}

TEST_CASE("intelligibility of ten pairs is that of a second implementation") {
  const auto& pairs = golden()["stoi"];
  REQUIRE(pairs.size() == 10);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    CAPTURE(i);
    const int rate = pairs[i]["rate"];
    const double strength = pairs[i]["strength"];
    const std::string kind = pairs[i]["kind"];
    const std::size_t size = std::size_t(2 * rate);
    const std::vector<double> x = speech(size, rate, pairs[i]["seed"]);
    const std::vector<double> added =
        kind == "other" ? speech(size, rate, std::uint32_t(50 + i)) : noise(size, std::uint32_t(100 + i));
    std::vector<double> y = x;
    for (std::size_t n = 0; n < size; ++n) {
      if (kind == "clipped") y[n] = std::clamp(x[n], -strength, strength);
      if (kind == "noise" || kind == "other") y[n] += strength * added[n];
      if (kind != "smoothed") continue;
      y[n] = 0;
      for (std::size_t k = 0; k < std::min<std::size_t>(8, n + 1); ++k) y[n] += x[n - k] / 8;
    }
    CHECK(stoi(x, y, rate) == doctest::Approx(pairs[i]["stoi"].get<double>()).epsilon(1e-8));
  }
}

TEST_CASE("intelligibility of sound with itself is 1, of what is too short unknown") {
  const std::vector<double> x = speech(8000, 8000, 4);
  CHECK(stoi(x, x, 8000) == doctest::Approx(1));
  std::vector<double> scaled = x;
  for (double& value : scaled) value *= 0.01;
  CHECK(stoi(x, scaled, 8000) == doctest::Approx(1));
  CHECK(std::isnan(stoi(part(x, 0, 1000), part(x, 0, 1000), 8000)));
  CHECK(std::isnan(stoi({}, {}, 8000)));
  CHECK(stoi(x, std::vector<double>(8000), 8000) == doctest::Approx(0));
}

TEST_CASE("segmental signal-to-noise ratio") {
  // segments of ten samples: at 20 dB, without error, silent with an error, at −20 dB, and a rest that does not count
  std::vector<double> x(47, 1.), y = x;
  for (std::size_t i = 0; i < 10; ++i) {
    y[i] = i % 2 ? 1.1 : 0.9;
    x[20 + i] = 0;
    y[20 + i] = 0.5;
    y[30 + i] = 11;
  }
  y[45] = 100;
  CHECK(segmental_snr(x, y, 1000) == doctest::Approx((20 + 35 - 10 - 10) / 4.));
  CHECK(segmental_snr(part(x, 0, 10), y, 1000) == doctest::Approx(20));
  CHECK(segmental_snr(x, x, 1000) == 35);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1, y[i] = 1.0001;
  CHECK(segmental_snr(x, y, 1000) == 35);
  CHECK(std::isnan(segmental_snr(part(x, 0, 9), y, 1000)));
  // half a segment loud, half of it soft: energies are summed before the ratio is formed
  const std::vector<double> s = {3, 3, 3, 3, 3, 1, 1, 1, 1, 1}, e = {2, 2, 2, 2, 2, 0, 0, 0, 0, 0};
  CHECK(segmental_snr(s, e, 1000) == doctest::Approx(10 * std::log10(50. / 10)));
}
