/// Metrics of numbers and of classes that a user chooses by name.
///
///   mae                 mean of |o − y|
///   rmse                √ mean of (o − y)²
///   r2                  1 − Σ (o − y)² / Σ (y − ȳ)², with the mean ȳ of the scored targets
///   nrmse               √ Σ (o − y)² / Σ (y − ȳ)²: the rmse divided by the standard deviation of the scored targets
///   accuracy            share of the outputs whose class is right
///   macro_f1            mean over classes of 2 TP / (2 TP + FP + FN); classes that occur neither as target nor as output
///                       are left out
///   balanced_accuracy   mean over the classes of the targets of the share that is right
///   auroc               of two classes: how often a target of the second has a larger o_1 − o_0 than one of the first
///
/// `confusion`, which a task reports at the end of a run, is not measured here.
///
/// The mae of several targets is the mean over all of them; the other metrics of several targets are the mean over
/// targets of that of each. The numbers o_1 − o_0 are counted in bins that are 0.7 % wide; a pair in the same bin counts
/// half.
#pragma once

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <stiefel/task.hpp>

namespace stiefel {

/// A target that a batch does not have, in a column with others. All other targets are larger.
constexpr float absent = std::numeric_limits<float>::lowest();

namespace scores {

constexpr const char *of_numbers[] = {"mae", "rmse", "r2", "nrmse"},
                     *of_classes[] = {"accuracy", "macro_f1", "balanced_accuracy", "auroc", "confusion"};
constexpr Index bins = 4096;
constexpr std::size_t most_targets = 16;  // that have a metric each

inline std::size_t bin(double difference) {
  const double place = 0.5 * double(bins) + 137 * std::asinh(difference / 0.01);
  return std::size_t(std::clamp(place, 0.0, double(bins - 1)));
}

/// The mean over groups of `size` parts of what each gives; groups without weight are left out.
template <std::size_t size, class F> double mean_of(std::span<const Ratio> parts, F&& value) {
  double sum = 0, count = 0;
  for (; !parts.empty(); parts = parts.subspan(size))
    if (parts[0].weight > 0) sum += value(parts.first(size)), ++count;
  return sum / count;
}
inline double ratios(std::span<const Ratio> parts) {
  return mean_of<1>(parts, [](auto part) { return part[0].sum / part[0].weight; });
}
inline double rmse(std::span<const Ratio> parts) {
  return mean_of<1>(parts, [](auto part) { return std::sqrt(part[0].sum / part[0].weight); });
}
/// Σ (o − y)² / Σ (y − ȳ)² from Σ (o − y)² and the weight, and from the sums of y and y²; NaN if all y are equal.
inline double unexplained(std::span<const Ratio> parts) {
  const double spread = parts[1].weight - parts[1].sum * parts[1].sum / parts[0].weight;
  return spread > 0 ? parts[0].sum / spread : std::numeric_limits<double>::quiet_NaN();
}
inline double r2(std::span<const Ratio> parts) {
  return mean_of<2>(parts, [](auto part) { return 1 - unexplained(part); });
}
inline double nrmse(std::span<const Ratio> parts) {
  return mean_of<2>(parts, [](auto part) { return std::sqrt(unexplained(part)); });
}
/// From the weights of the second class (sum) and of the first (weight) in each bin.
inline double area(std::span<const Ratio> parts) {
  double below = 0, second = 0, pairs = 0;
  for (const Ratio& part : parts) {
    pairs += part.sum * (below + part.weight / 2);
    below += part.weight, second += part.sum;
  }
  return pairs / (below * second);
}

/// Names as parts of names of metrics: [a-z0-9_]+, and numbers where they would not differ.
inline std::vector<std::string> plain_names(const std::vector<std::string>& names, std::size_t count) {
  std::vector<std::string> plain;
  for (std::string name : names) {
    for (char& c : name)
      c = std::isalnum(static_cast<unsigned char>(c)) ? char(std::tolower(static_cast<unsigned char>(c))) : '_';
    plain.push_back(name);
  }
  if (std::set<std::string>(plain.begin(), plain.end()).size() == count) return plain;
  plain.clear();
  for (std::size_t j = 0; j < count; ++j) plain.push_back(std::to_string(j));
  return plain;
}

}  // namespace scores

/// The chosen metrics of the numbers of each of `targets`; targets that are `absent` are left out.
class NumberScores {
 public:
  /// `units`: what a number of the targets is worth in the units of the file; `mean`: of the training targets.
  NumberScores(std::vector<std::string> chosen, const std::vector<std::string>& targets, std::vector<double> units,
               std::vector<double> mean)
      : chosen_(std::move(chosen)),
        names_(scores::plain_names(targets, mean.size())),
        units_(std::move(units)),
        mean_(std::move(mean)) {
    if (mean_.size() == 1 || mean_.size() > scores::most_targets) names_.clear();
    std::size_t place = 0;
    for (const Metric& metric : metrics()) {
      if (metric.name == "mae") mae_ = place;
      place += std::size_t(metric.parts);
    }
  }

  std::vector<Metric> metrics() const {
    std::vector<Metric> all;
    for (const std::string& name : chosen_) {
      const Index parts = name == "r2" || name == "nrmse" ? 2 : 1, targets = Index(mean_.size());
      Metric metric{name, name == "r2", "1", false, name == "mae" ? 1 : parts * targets};
      metric.value = name == "r2"      ? scores::r2
                     : name == "nrmse" ? scores::nrmse
                     : name == "rmse"  ? scores::rmse
                                       : nullptr;
      all.push_back(metric);
      for (const std::string& target : names_) {
        metric.name = name + "_" + target, metric.parts = parts;
        all.push_back(metric);
      }
    }
    return all;
  }

  template <class S> void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const {
    std::vector<Errors> errors(mean_.size());
    Ratio* const mae = mae_ ? &metrics[*mae_] : nullptr;
    if (mae) mae->weight += total_weight(targets);
    for (Index c = 0; c < output.cols(); ++c) {
      if (!(targets.weights[c] > S(0))) continue;
      const auto y = targets.values.col(c);
      const double weight = double(targets.weights[c]), present = double((y.array() != S(absent)).count()),
                   of_one = weight * double(y.size()) / present;
      double sum = 0;
      for (Index j = 0; j < y.size(); ++j)
        if (y[j] != S(absent)) sum += errors[std::size_t(j)].add(output(j, c), y[j], mean_[j], units_[j], of_one);
      if (mae) mae->sum += weight * sum / present;
    }
    for (const std::string& name : chosen_) {
      const auto put = [&](double sum, double weight) {
        metrics[0].sum += sum, metrics[0].weight += weight;
        metrics = metrics.subspan(1);
      };
      const auto put_all = [&] {
        for (const Errors& e : errors)
          if (name == "mae")
            put(e.absolute, e.weight);
          else if (put(e.square, e.weight); name != "rmse")
            put(e.first, e.second);
      };
      if (name == "mae")
        metrics = metrics.subspan(1);
      else
        put_all();
      if (!names_.empty()) put_all();
    }
  }

 private:
  /// Sums over the columns of a target.
  struct Errors {
    double weight = 0, absolute = 0, square = 0, first = 0, second = 0;

    /// Returns |o − y|.
    double add(double o, double y, double mean, double unit, double of_one) {
      const double error = std::abs(o - y) * unit, shifted = (y - mean) * unit;
      weight += of_one, absolute += of_one * error, square += of_one * error * error;
      first += of_one * shifted, second += of_one * shifted * shifted;
      return error;
    }
  };

  std::vector<std::string> chosen_, names_;  // names_: of targets that have metrics of their own
  std::vector<double> units_, mean_;
  std::optional<std::size_t> mae_;  // its first part among those of all metrics
};

/// The chosen metrics of classes.
class ClassScores {
 public:
  ClassScores(std::vector<std::string> chosen, Index classes) : chosen_(std::move(chosen)), classes_(classes) {}

  std::vector<Metric> metrics() const {
    std::vector<Metric> all;
    for (const std::string& name : chosen_) {
      Metric metric{name};
      if (name == "auroc")
        metric.parts = scores::bins, metric.value = scores::area;
      else if (name != "accuracy")
        metric.parts = classes_, metric.value = scores::ratios;
      all.push_back(metric);
    }
    return all;
  }

  template <class S> void measure(CMat<S> output, const Targets<S>& targets, std::span<Ratio> metrics) const {
    for (const std::string& name : chosen_) {
      if (name == "accuracy") {
        metrics[0].weight += total_weight(targets);
        metrics[0].sum += correct(output, targets);
        metrics = metrics.subspan(1);
        continue;
      }
      for (Index c = 0; c < output.cols(); ++c) {
        const double weight = double(targets.weights[c]);
        if (!(weight > 0)) continue;
        const std::int32_t label = targets.labels[c];
        if (name == "auroc") {
          Ratio& part = metrics[scores::bin(double(output(1, c)) - double(output(0, c)))];
          (label == 1 ? part.sum : part.weight) += weight;
          continue;
        }
        Index guess = 0;
        output.col(c).maxCoeff(&guess);
        const bool f1 = name == "macro_f1";
        metrics[std::size_t(label)].weight += weight;
        if (f1) metrics[std::size_t(guess)].weight += weight;
        if (guess == label) metrics[std::size_t(label)].sum += f1 ? 2 * weight : weight;
      }
      metrics = metrics.subspan(std::size_t(name == "auroc" ? scores::bins : classes_));
    }
  }

 private:
  std::vector<std::string> chosen_;
  Index classes_;
};

}  // namespace stiefel
