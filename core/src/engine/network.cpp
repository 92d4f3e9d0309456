// Slices may run in any thread and rank. Whatever is summed over them is summed here, in the order of the slices.
#include "engine/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <numeric>
#include <stiefel/parallel.hpp>

#include "host/metric_values.hpp"

namespace stiefel {
namespace {

template <class S> std::vector<Index> lengths_of(const Batch<S>& batch) {
  std::vector<Index> lengths(batch.sequences());
  for (Index b = 0; b < batch.sequences(); ++b) lengths[b] = batch.length(b);
  return lengths;
}

/// Σ weights of all scored outputs, and of the last step of each sequence.
template <class S> std::pair<double, double> weights_of(const Batch<S>& batch, ReadoutKind readout) {
  double all = 0, last = 0;
  for (Index b = 0; b < batch.sequences(); ++b) {
    const Index end = batch.length(b) - 1;
    last += double(batch.weights()[batch.scored(end, b)]);
    if (readout == ReadoutKind::every)
      for (Index t = 0; t <= end; ++t) all += double(batch.weights()[batch.scored(t, b)]);
  }
  return {readout == ReadoutKind::every ? all : last, last};
}

double inverse(double weight) { return weight > 0 ? 1 / weight : 0; }

void add_to(std::vector<double>& sum, const std::vector<double>& part) {
  if (sum.size() < part.size()) sum.resize(part.size(), 0.0);
  for (std::size_t t = 0; t < part.size(); ++t) sum[t] += part[t];
}

void square_roots(std::vector<double>& squares) {
  for (double& x : squares) x = std::sqrt(x);
}

template <class S> StateItems state_of(const Plugged<Parametrisation<S>>& map) {
  MemoryArchive archive;
  map.call("serialise", [&] { map->serialise(archive); });
  return archive.items();
}

/// Combines the norms of two batches, each multiplied by a factor, into those of one batch.
void join(std::vector<double>& norms, double factor, const std::vector<double>& before, double factor_before) {
  norms.resize(std::max(norms.size(), before.size()), 0.0);
  for (std::size_t t = 0; t < norms.size(); ++t)
    norms[t] = std::hypot(factor * norms[t], t < before.size() ? factor_before * before[t] : 0.0);
}

}  // namespace

template <class S> Network<S>::Network(const Experiment& experiment, const Registry& registry, const Task<S>& task)
    : task_(task), model_(experiment, registry, task.shape()), map_decay_(model_.maps.size(), 0.0) {}

template <class S> void Network<S>::allocate() {
  theta_.resize(std::size_t(model_.layout.size()));
  gradient_.resize(theta_.size());
}

template <class S> void Network<S>::initialise(std::uint64_t seed) {
  allocate();
  model_.initialise(theta_.data(), seed);
}

template <class S> NetworkState<S> Network<S>::state() {
  NetworkState<S> state{theta_, {}};
  for (const auto& [name, map, blocks] : model_.maps)
    if (StateItems items = state_of(map.plugin()); !items.empty()) state.plugins.emplace(name, std::move(items));
  return state;
}

template <class S> bool Network<S>::keeps_state(Index map) {
  return !state_of(model_.maps[std::size_t(map)]->plugin()).empty();
}

template <class S> void Network<S>::restore(const NetworkState<S>& state) {
  theta_ = state.values;
  for (const auto& [name, map, blocks] : model_.maps) {
    const auto found = state.plugins.find(name);
    if (found == state.plugins.end()) continue;
    MemoryArchive archive(found->second);
    map.plugin().call("serialise", [&] { map.plugin()->serialise(archive); });
  }
}

template <class S> PassResult Network<S>::run(const Task<S>& task, const Batch<S>& batch, Workers& workers,
                                              const PassRequest& request, Matrix<S>* outputs) {
  if (model_.carried_state() && carried_.size() > 0 && carried_.cols() < batch.sequences())
    throw Error(fmt::format(
        "the state of {} sequences is carried into a batch of {}: with model.initial_state.kind: carried all batches "
        "must have the same number of sequences, so do not change train.batch",
        carried_.cols(), batch.sequences()));
  slices_ = deal(lengths_of(batch));
  while (passes_.size() < slices_.size()) passes_.push_back(std::make_unique<SlicePass<S>>());
  const auto [scored_weight, last_weight] = weights_of(batch, model_.task.readout);
  const double weight = request.summed && scored_weight > 0 ? double(batch.sequences()) : scored_weight;
  const bool shared = ranks_ && ranks_->count() > 1 && !outputs;       // then every rank computes all of them
  const Workers::Lent idle(slices_.size() == 1 ? &workers : nullptr);  // with one slice, the other threads are idle
  const auto pass = [&, last_weight = last_weight](int s) {
    if (shared && s % ranks_->count() != ranks_->rank()) return passes_[s]->expect(model_, task, slices_[s], request);
    passes_[s]->run(model_, task, batch, slices_[s], request, inverse(weight), inverse(last_weight), carried_, outputs);
  };
  if (shared) {
    throw_together([&] { workers.run(int(slices_.size()), pass); });
    exchange();
  } else {
    workers.run(int(slices_.size()), pass);
  }

  PassResult result;
  result.weight = weight;
  result.last_weight = last_weight;
  result.metrics.resize(request.gradient ? 0 : count_of_parts(task.metrics()));
  for (std::size_t s = 0; s < slices_.size(); ++s) {
    const PassSums& sums = passes_[s]->sums();
    result.loss += sums.loss;
    result.forward_seconds = std::max(result.forward_seconds, sums.forward_seconds);
    for (std::size_t i = 0; i < result.metrics.size(); ++i)
      result.metrics[i].sum += sums.metrics[i].sum, result.metrics[i].weight += sums.metrics[i].weight;
    add_to(result.hidden_norm, sums.hidden);
    add_to(result.gradient_norm, sums.gradient);
    add_to(result.last_gradient_norm, sums.last_gradient);
  }
  square_roots(result.hidden_norm);
  square_roots(result.gradient_norm);
  square_roots(result.last_gradient_norm);
  if (model_.carried_state()) carry(batch.sequences());
  return result;
}

/// Calls work(). If it fails in any rank, all ranks throw the error of the lowest one that failed, because the others
/// would wait for it and the first records why the run ended. An exchanged text is an exit code, as one character, and
/// the message.
template <class S> template <class F> void Network<S>::throw_together(F&& work) {
  std::string fault;
  int code = 0;
  try {
    work();
  } catch (const Error& error) {
    fault = error.what();
    code = int(error.code());
  } catch (const std::bad_alloc&) {
    fault = "out of memory";
    code = int(Exit::exhausted);
  }
  if (ranks_->largest(code) == 0) return;
  for (const std::string& text : ranks_->texts(code == 0 ? "" : char(code) + fault))
    if (!text.empty()) throw Error(text.substr(1), Exit(text[0]));
}

/// Sends this rank's results to all ranks and receives theirs.
template <class S> void Network<S>::exchange() {
  const int count = ranks_->count();
  std::vector<std::size_t> bytes_of(std::size_t(count), 0);
  for (std::size_t s = 0; s < slices_.size(); ++s)
    passes_[s]->each_result([&](std::span<std::byte> bytes) { bytes_of[s % std::size_t(count)] += bytes.size(); });
  const std::size_t total = std::accumulate(bytes_of.begin(), bytes_of.end(), std::size_t(0));
  if (total > INT_MAX)
    throw Error(
        fmt::format("the ranks would exchange {:.1f} GB in a step, and MPI sends at most 2.1: train without --mpi, or "
                    "make the batch "
                    "so small that it has fewer than {} slices",
                    1e-9 * double(total), slices_.size()));
  const std::vector<int> sizes(bytes_of.begin(), bytes_of.end());
  std::vector<std::byte> own, all(total);
  for (std::size_t s = std::size_t(ranks_->rank()); s < slices_.size(); s += std::size_t(count))
    passes_[s]->each_result([&](std::span<std::byte> bytes) { own.insert(own.end(), bytes.begin(), bytes.end()); });
  ranks_->gather(own, all, sizes);
  const std::byte* next = all.data();
  for (int rank = 0; rank < count; ++rank)
    for (std::size_t s = std::size_t(rank); s < slices_.size(); s += std::size_t(count))
      passes_[s]->each_result([&](std::span<std::byte> bytes) {
        std::copy_n(next, bytes.size(), bytes.data());
        next += bytes.size();
      });
}

template <class S> void Network<S>::carry(Index sequences) {
  carried_.resize(model_.state_rows, sequences);
  for (std::size_t s = 0; s < slices_.size(); ++s)
    for (Index c = 0; c < slices_[s].columns(); ++c)
      carried_.col(slices_[s].sequences[c]) = passes_[s]->leaving().col(c);
}

template <class S> PassResult Network<S>::train(const Batch<S>& batch, Workers& workers, const PassRequest& request) {
  PassResult result = run(task_, batch, workers, request);
  Workers::Lent idle(&workers);
  reduce(result, request.regularise);
  return result;
}

template <class S> PassResult Network<S>::train_more(const Batch<S>& batch, Workers& workers,
                                                     const PassRequest& request, const PassResult& before) {
  gradient_before_ = gradient_;
  PassResult result = train(batch, workers, request);
  const double last_weight = result.last_weight;
  result.weight += before.weight;
  result.last_weight += before.last_weight;
  const double share = 1 - before.weight * inverse(result.weight);
  const auto mean = as_vector(std::span<const S>(gradient_before_));
  as_vector(std::span<S>(gradient_)) = mean + S(share) * (as_vector(std::span<S>(gradient_)) - mean);
  result.loss = before.loss + share * (result.loss - before.loss);
  result.forward_seconds += before.forward_seconds;
  join(result.hidden_norm, 1, before.hidden_norm, 1);
  join(result.gradient_norm, share, before.gradient_norm, 1 - share);
  join(result.last_gradient_norm, last_weight * inverse(result.last_weight), before.last_gradient_norm,
       before.last_weight * inverse(result.last_weight));
  return result;
}

template <class S>
PassResult Network<S>::evaluate(const Task<S>& task, const Batch<S>& batch, Workers& workers, Matrix<S>* outputs) {
  if (outputs) outputs->setZero(model_.readout->size(), Index(batch.weights().size()));
  return run(task, batch, workers, {.gradient = false}, outputs);
}

template <class S> Matrix<S> Network<S>::advance(const Batch<S>& batch, Workers& workers) {
  Matrix<S> outputs;
  evaluate(batch, workers, &outputs);
  carry(batch.sequences());
  return outputs;
}

template <class S> std::vector<CMat<S>> Network<S>::trace(const Batch<S>& sequence, Workers& workers) {
  const Index chunk = std::exchange(model_.chunk, sequence.steps());
  Ranks* const ranks = std::exchange(ranks_, nullptr);  // each computes the whole
  evaluate(sequence, workers);
  model_.chunk = chunk;
  ranks_ = ranks;
  std::vector<CMat<S>> saved;
  for (std::size_t l = 0; l < model_.layers.size(); ++l) saved.push_back(passes_[0]->saved(Index(l)));
  return saved;
}

/// Returns the penalty of a map, and adds its gradient to that of the network.
template <class S> double Network<S>::penalty(Index map) {
  const Plugged<Parametrisation<S>>& plugin = model_.maps[std::size_t(map)].map.plugin();
  const Layout::Part blocks = model_.maps[std::size_t(map)].blocks;
  return plugin.call(
      "penalty", [&] { return plugin->penalty(model_.part(blocks), model_.layout.part(gradient_.data(), blocks)); });
}

template <class S> double Network<S>::regularise() {
  std::vector<double> penalties(model_.maps.size());
  in_parallel(Index(model_.maps.size()), [&](Index m) {
    NetworkMap<S>& map = model_.maps[std::size_t(m)].map;
    const Layout::Part blocks = model_.maps[std::size_t(m)].blocks;
    if (map.frozen()) return;
    if (map_decay_[m] != 0) {
      std::vector<S> sum(passes_[0]->map_sum(m).size());
      map.decay(map_decay_[m], sum);
      map.finish(model_.part(blocks), sum, model_.layout.part(gradient_.data(), blocks));
    }
    penalties[std::size_t(m)] = penalty(m);
  });
  return std::accumulate(penalties.begin(), penalties.end(), 0.);
}

template <class S> void Network<S>::reduce(PassResult& result, bool regularised) {
  SlicePass<S>& total = *passes_[0];
  for (std::size_t s = 1; s < slices_.size(); ++s) total.add_sums(*passes_[s]);
  std::fill(std::copy(total.gradient().begin(), total.gradient().end(), gradient_.begin()), gradient_.end(), S(0));
  Index number = 0;
  model_.each_recurrence([&](const Layer<S>&, const Recurrence<S>& r) {
    r.input->finish(model_.part(r.input_blocks), total.input_sum(number++),
                    model_.layout.part(gradient_.data(), r.input_blocks));
  });
  std::vector<double> penalties(model_.maps.size());
  in_parallel(Index(model_.maps.size()), [&](Index m) {
    NetworkMap<S>& map = model_.maps[std::size_t(m)].map;
    const Layout::Part blocks = model_.maps[std::size_t(m)].blocks;
    if (map.frozen()) return;
    const std::span<S> sum = total.map_sum(m);
    if (regularised && map_decay_[m] != 0) map.decay(map_decay_[m], sum);
    map.finish(model_.part(blocks), sum, model_.layout.part(gradient_.data(), blocks));
    if (regularised) penalties[std::size_t(m)] = penalty(m);
  });
  for (const double penalty : penalties) result.penalty += penalty;
}

template class Network<float>;
template class Network<double>;

}  // namespace stiefel
