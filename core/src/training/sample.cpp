#include "training/sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "training/checkpoint.hpp"
#include "training/session.hpp"
#include "training/trained.hpp"

namespace stiefel {
namespace {

[[noreturn]] void refuse_unknown(const char* what, std::string_view symbol, std::size_t byte) {
  throw Error(
      fmt::format("the network does not know the {} \"{}\" at byte {} of the prime, since it was not in its "
                  "training text; choose another",
                  what, symbol, byte + 1));
}

/// Splits a text into words, which blanks separate, and ends of lines.
std::vector<std::int32_t> words_of(std::string_view text, const std::vector<std::string>& alphabet) {
  std::vector<std::int32_t> symbols;
  for (std::size_t at = 0; (at = std::min(text.find_first_not_of(" \t\v\f", at), text.size())) < text.size();) {
    const bool line_ends = text[at] == '\n';
    const std::size_t end = line_ends ? at + 1 : std::min(text.find_first_of(" \t\v\f\n", at), text.size());
    const std::string word(text.substr(at, end - at));
    const auto found = std::ranges::find(alphabet, line_ends ? word : word + ' ');
    if (found == alphabet.end()) refuse_unknown("word", word, at);
    symbols.push_back(std::int32_t(found - alphabet.begin()));
    at = end;
  }
  return symbols;
}

/// Splits a text into symbols of the alphabet, always taking the longest that fits.
std::vector<std::int32_t> characters_of(std::string_view text, const std::vector<std::string>& alphabet) {
  std::vector<std::int32_t> symbols;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    std::size_t best = alphabet.size();
    for (std::size_t i = 0; i < alphabet.size(); ++i)
      if (rest.starts_with(alphabet[i]) && (best == alphabet.size() || alphabet[i].size() > alphabet[best].size()))
        best = i;
    if (best == alphabet.size()) {
      std::size_t end = 1;
      while (end < rest.size() && (rest[end] & 0xC0) == 0x80) ++end;
      refuse_unknown("character", rest.substr(0, end), at);
    }
    symbols.push_back(std::int32_t(best));
    at += alphabet[best].size();
  }
  return symbols;
}

/// Returns the symbols of the prime. Without a prime, returns a blank or, if the alphabet has none, a line break.
std::vector<std::int32_t> first_symbols(const std::optional<std::string>& prime,
                                        const std::vector<std::string>& alphabet) {
  const bool words =
      std::ranges::any_of(alphabet, [](const std::string& a) { return a.size() > 1 && a.ends_with(' '); });
  for (const char* usual : {" ", "\n"})
    if (const auto found = std::ranges::find(alphabet, usual); !prime && found != alphabet.end())
      return {std::int32_t(found - alphabet.begin())};
  const std::string text = prime.value_or("");
  const std::vector<std::int32_t> symbols = words ? words_of(text, alphabet) : characters_of(text, alphabet);
  if (symbols.empty()) throw Error("give the network some text to start from: --prime TEXT");
  return symbols;
}

template <class S> std::int32_t draw(const Vector<S>& logits, double temperature, Rng& rng) {
  Index likeliest;
  const double largest = double(logits.maxCoeff(&likeliest));
  if (temperature == 0) return std::int32_t(likeliest);
  const Eigen::ArrayXd weights = ((logits.template cast<double>().array() - largest) / temperature).exp();
  double rest = rng.uniform() * weights.sum();
  for (Index k = 0; k < weights.size(); ++k)
    if ((rest -= weights[k]) < 0) return std::int32_t(k);
  return std::int32_t(likeliest);
}

template <class S> void sample_as(const LoadedExperiment& loaded, Registry& registry, const RunOptions& run,
                                  const SampleOptions& options, const std::function<void(std::string_view)>& write) {
  Session<S> session(loaded, registry, with_trained(run, options.network), Extent::application);
  const std::vector<std::string> alphabet = session.task->alphabet();
  const TaskShape shape = session.task->shape();
  if (alphabet.empty() || shape.input != InputKind::symbols || Index(alphabet.size()) != shape.output_size)
    throw Error("the task " + loaded.experiment.task.plugin +
                " does not predict the next symbol of a text: there is nothing to sample");
  if (session.network->model().bidirectional())
    throw Error("a bidirectional network reads whole sequences and cannot continue one; sample from another network");
  read_network(options.network, *session.network);
  session.network->refresh();

  std::vector<std::int32_t> next = first_symbols(options.prime, alphabet);
  for (const std::int32_t symbol : next) write(alphabet[std::size_t(symbol)]);
  Rng rng(options.seed, "sample");
  for (Index i = 0; i < options.length; ++i) {
    Batch<S> batch;
    batch.resize(shape, 1, Index(next.size()));
    for (std::size_t t = 0; t < next.size(); ++t) batch.symbol(Index(t), 0) = next[t];
    const Matrix<S> outputs = session.network->advance(batch, session.workers);
    next = {draw<S>(outputs.rightCols(1), options.temperature, rng)};
    write(alphabet[std::size_t(next[0])]);
  }
}

}  // namespace

void sample(const LoadedExperiment& loaded, Registry& registry, const RunOptions& run, const SampleOptions& options,
            const std::function<void(std::string_view)>& write) {
  loaded.experiment.with_scalar([&]<class S>(S) { sample_as<S>(loaded, registry, run, options, write); });
}

}  // namespace stiefel
