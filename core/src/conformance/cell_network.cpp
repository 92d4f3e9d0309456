// The little network: forward and backward over chunks and slices, watching that the cell keeps to its memory.
#include "conformance/cell_network.hpp"

#include <fmt/format.h>

#include <stiefel/linear_algebra.hpp>

#include "host/plugin_faults.hpp"
#include "sdk/require.hpp"

namespace stiefel::conformance {

namespace {

constexpr Index input_size = 2;

template <class S> class Sums final : public GradientSink<S> {
 public:
  Sums(const std::vector<MapSpec>& maps, const Parameters& p, bool want_blocks, long (*allocations)())
      : dtheta_(p.layout),
        blocks_(want_blocks ? dtheta_.part(p.cell_first, p.cell_count) : Blocks<S>()),
        allocations_(allocations) {
    for (const MapSpec& m : maps) dW_.push_back(Matrix<S>::Zero(m.rows, m.cols));
  }
  void map(Index first, Index count, CMat<S> X, CMat<S> dY) override {
    const long before = allocations_ ? allocations_() : 0;
    require(first >= 0 && count > 0 && first + count <= Index(dW_.size()),
            "sink.map is given the maps {} to {}, but maps() lists {}", first, first + count - 1, dW_.size());
    require(X.cols() == dY.cols(), "sink.map is given {} columns of operands and {} of gradients", X.cols(), dY.cols());
    Index row = 0;
    for (Index k = first; k < first + count; ++k) {
      Matrix<S>& dW = dW_[std::size_t(k)];
      require(row + dW.rows() <= dY.rows() && X.rows() == dW.cols(),
              "sink.map is given operands of {} rows and gradients of {} for a map of {} × {}", X.rows(), dY.rows(),
              dW.rows(), dW.cols());
      add_product<S>(dY.middleRows(row, dW.rows()), transposed(X), dW);
      row += dW.rows();
    }
    require(row == dY.rows(), "sink.map is given gradients of {} rows for maps of {}", dY.rows(), row);
    if (allocations_) own_allocations_ += allocations_() - before;
  }
  Blocks<S> blocks() override { return blocks_; }
  const Matrix<S>& matrix(Index map) const { return dW_[std::size_t(map)]; }
  const GuardedBlocks<S>& numbers() const { return dtheta_; }
  long own_allocations() const { return own_allocations_; }

 private:
  std::vector<Matrix<S>> dW_;
  GuardedBlocks<S> dtheta_;
  Blocks<S> blocks_;
  long (*allocations_)();
  long own_allocations_ = 0;
};

}  // namespace

template <class S>
CellNetwork<S>::CellNetwork(const Subject& subject, CheckReport& report, CellContext context, std::uint64_t seed)
    : subject_(subject),
      report_(report),
      cell_(subject.create<Cell<S>>(context)),
      maps_(subject.call("maps", [&] { return cell_->maps(); })) {
  const auto demand_none = [&](const char* check, const std::string& fault) {
    report.demand(check, fault.empty(), fault);
  };
  demand_none("shape", subject_.call("saved_rows", [&] { return rows_fault(*cell_); }));
  demand_none("maps", maps_fault(maps_));
  subject_.call("initialise", [&] { make_parameters(seed); });
}

template <class S> void CellNetwork<S>::make_parameters(std::uint64_t seed) {
  Parameters& p = parameters_;
  const Index rows = cell_->input_rows();
  p.layout.add("input.", {{"weight", rows * input_size, rows, input_size}, {"bias", rows}});
  p.map_first = p.layout.count();
  for (const MapSpec& m : maps_)
    p.layout.add(m.name.empty() ? "recurrent." : "recurrent." + m.name + ".", {{"W", m.rows * m.cols, m.rows, m.cols}});
  p.cell_first = p.layout.count();
  const std::vector<BlockSpec> own = cell_->blocks();
  p.layout.add("", own);
  p.cell_count = Index(own.size());
  p.state = p.layout.count();
  p.layout.add("", {{"initial_state", cell_->state_rows()}});
  p.numbers.resize(std::size_t(p.layout.size()));

  Rng rng(seed, "cell");
  const Blocks<double> theta = p.layout.all(p.numbers.data());
  const auto normal = [&](Index block, double scale) {
    for (double& x : theta[block]) x = std::round(4096 * scale * rng.normal()) / 4096;
  };
  normal(0, 0.7);
  normal(1, 0.3);
  for (Index k = p.map_first; k < p.cell_first; ++k)
    normal(k, 1 / std::sqrt(double(std::max<Index>(1, p.layout.block(k).cols))));
  normal(p.state, 0.5);
  // What the cell writes itself, a little away from it so that no gradient vanishes.
  GuardedBlocks<S> values(p.layout);
  Rng initialise(seed, "initialise");
  cell_->initialise(values.part(p.cell_first, p.cell_count), initialise);
  GuardedBlocks<S> chosen(p.layout);
  const bool as_chosen = subject_.call(
      "test_point", [&] { return cell_->test_point(chosen.part(p.cell_first, p.cell_count), initialise); });
  Guarded<S> bias(rows), onto(rows, S(1));
  subject_.call("initialise_bias", [&] {
    cell_->initialise_bias(bias.span());
    cell_->initialise_bias(onto.span());
    try {
      cell_->initialise_bias({});
    } catch (const Error&) {  // it may refuse `input.bias: false`
    }
  });
  report_.require("memory", values.intact() && bias.intact() && chosen.intact(),
                  "initialise, initialise_bias or test_point wrote outside its blocks");
  for (Index i = 0; i < rows; ++i) {
    report_.require(
        "initialise_bias", std::abs(double(onto.data()[i]) - double(bias.data()[i]) - 1) < 1e-5,
        fmt::format("row {} of the bias is {} where it was 0, and {} where it was 1: initialise_bias() must "
                    "add to the bias that `input.bias_init` chose",
                    i, double(bias.data()[i]), double(onto.data()[i])));
    theta[1][std::size_t(i)] += double(bias.data()[i]);
  }
  p.chosen = as_chosen;
  for (Index b = p.cell_first; b < p.state; ++b)
    for (std::size_t i = 0; i < theta[b].size(); ++i)
      theta[b][i] =
          as_chosen ? double(chosen.all()[b][i]) : double(values.all()[b][i]) + std::round(512 * rng.normal()) / 4096;
}

template <class S> std::vector<double> CellNetwork<S>::own_start(std::uint64_t seed) const {
  const Parameters& p = parameters_;
  GuardedBlocks<S> values(p.layout);
  Rng rng(seed, "initialise");
  subject_.call("initialise", [&] { cell_->initialise(values.part(p.cell_first, p.cell_count), rng); });
  std::vector<double> numbers;
  for (Index b = p.cell_first; b < p.cell_first + p.cell_count; ++b)
    numbers.insert(numbers.end(), values.all()[b].begin(), values.all()[b].end());
  return numbers;
}

template <class S> std::vector<double> CellNetwork<S>::after_step() const {
  GuardedBlocks<S> theta(parameters_.layout, parameters_.numbers);
  subject_.call("after_step", [&] { cell_->after_step(theta.part(parameters_.cell_first, parameters_.cell_count)); });
  report_.demand("memory", theta.intact(), "after_step wrote outside the cell's blocks");
  return theta.numbers();
}

template <class S> Problem CellNetwork<S>::problem(std::uint64_t seed, std::vector<Index> lengths) const {
  Problem p;
  Rng rng(seed, "problem");
  p.lengths = std::move(lengths);
  p.steps = p.lengths[0];
  for (Index t = 0; t < p.steps; ++t) {
    p.inputs.push_back(random_matrix(rng, input_size, Index(p.lengths.size())));
    p.readout.push_back(random_matrix(rng, cell_->output_rows(), Index(p.lengths.size())));
  }
  return p;
}

/// One slice: its chunks' memory, forward and backward. Without a backward pass it has no gradients, as in training.
template <class S> struct CellNetwork<S>::SliceRun {
  struct Piece {
    Index first, steps;
    std::vector<Index> active;
    Panel<S> saved, delta, doutput, dhidden;
  };
  const CellNetwork& network;
  const Subject& subject;
  CheckReport& report;
  const Problem& problem;
  const std::vector<Index>& sequences;
  const PlainMaps<S>& maps;
  const GuardedBlocks<S>& theta;
  Index columns;
  bool gradient;
  std::vector<Piece> pieces;
  Panel<S> dstate;
  Guarded<S> memory;

  SliceRun(Pass& pass, const std::vector<Index>& sequences, const std::vector<Index>& chunks)
      : network(pass.network_),
        subject(pass.subject_),
        report(pass.report_),
        problem(pass.problem),
        sequences(sequences),
        maps(pass.maps_),
        theta(pass.theta),
        columns(Index(sequences.size())),
        gradient(pass.backward_),
        dstate(network.cell().state_rows(), gradient ? columns : 0),
        memory(subject.call("scratch", [&] { return network.cell().scratch(columns); })) {
    const Cell<S>& cell = network.cell();
    Index first = 0;
    for (const Index steps : chunks) {
      const Index here = std::min(steps, problem.lengths[std::size_t(sequences[0])] - first);
      if (here <= 0) break;
      const Index all = gradient ? here * columns : 0;
      const bool read = std::any_of(problem.readout.begin() + first, problem.readout.begin() + first + here,
                                    [](const Real& C) { return C.cols() > 0; });
      pieces.push_back({first,
                        here,
                        {},
                        Panel<S>(cell.saved_rows(), (here + 1) * columns),
                        Panel<S>(cell.delta_rows(), all),
                        Panel<S>(cell.output_rows(), read ? all : 0),
                        Panel<S>(cell.output_rows(), problem.want_dhidden ? all : 0, S(guard_value))});
      for (Index t = first; t < first + here; ++t)
        pieces.back().active.push_back(std::count_if(sequences.begin(), sequences.end(),
                                                     [&](Index b) { return problem.lengths[std::size_t(b)] > t; }));
      first += here;
    }
  }

  Chunk<S> chunk(Piece& piece) {
    const Cell<S>& cell = network.cell();
    return {.first = piece.first,
            .steps = piece.steps,
            .columns = columns,
            .active = piece.active.data(),
            .saved = piece.saved.whole(),
            .delta = piece.delta.whole(),
            .dstate = dstate.whole(),
            .dhidden = piece.dhidden.whole(),
            .output_in_state = cell.output_in_state(),
            .message_clip = S(problem.message_clip)};
  }
  CBlocks<S> cell_theta() const { return theta.part(network.parameters().cell_first, network.parameters().cell_count); }
  CBlocks<S> all_theta() const { return theta.all(); }

  void enter(std::size_t number) {
    const Cell<S>& cell = network.cell();
    Chunk<S> c = chunk(pieces[number]);
    Mat<S> state = rows_of(c.saved, cell.state_row(), cell.state_rows()).leftCols(c.active[0]);
    if (number == 0) {
      state.colwise() = as_vector(all_theta()[network.parameters().state]);
    } else {
      Chunk<S> last = chunk(pieces[number - 1]);
      const Mat<S> leaving = last.at(last.steps - 1);
      state = rows_of(leaving, cell.state_row(), cell.state_rows()).leftCols(state.cols());
      if (problem.perturbed_step == c.first - 1) perturb(state);
    }
    const CMat<S> V = as_matrix(all_theta()[0], cell.input_rows(), input_size);
    for (Index t = 0; t < c.steps; ++t) {
      Mat<S> z = rows_of(c.at(t), 0, cell.input_rows());
      for (Index j = 0; j < z.cols(); ++j)
        z.col(j) =
            V.lazyProduct(problem.inputs[std::size_t(c.first + t)].col(sequences[std::size_t(j)]).template cast<S>()) +
            as_vector(all_theta()[1]);
    }
  }
  // The perturbed output within the entering state, where it is part of it.
  void perturb(Mat<S> state) {
    const Index row = network.cell().output_row() + problem.perturbed_row - network.cell().state_row();
    for (Index j = 0; j < state.cols(); ++j)
      if (sequences[std::size_t(j)] == problem.perturbed_column && row >= 0 && row < state.rows())
        state(row, j) += S(problem.perturbation);
  }

  void forward(PassResult& outcome) {
    const Cell<S>& cell = network.cell();
    for (std::size_t number = 0; number < pieces.size(); ++number) {
      Piece& piece = pieces[number];
      piece.saved.whole().setConstant(S(guard_value));
      enter(number);
      Chunk<S> c = chunk(piece);
      outcome.forward_allocations +=
          call("forward", [&](Scratch<S>& scratch) { cell.forward(c, maps, cell_theta(), scratch); });
      check_untouched(piece, "forward");
      for (Index t = 0; t < c.steps; ++t) check_written(c, t);
      for (Index t = 0; t < c.steps; ++t) read(c, t, outcome);
    }
    if (gradient) expect(theta.intact(), "forward", " wrote outside θ");
  }
  void read(Chunk<S>& c, Index t, PassResult& outcome) {
    const Mat<S> h = rows_of(c.at(t), network.cell().output_row(), network.cell().output_rows());
    const std::size_t step = std::size_t(c.first + t);
    for (Index j = 0; j < h.cols(); ++j) {
      const Index b = sequences[std::size_t(j)];
      auto value = outcome.outputs[step].col(b);
      value = h.col(j).template cast<double>();
      if (problem.perturbed_step == c.first + t && problem.perturbed_column == b)
        value(problem.perturbed_row) += problem.perturbation;
      if (problem.readout[step].cols() == 0) continue;
      outcome.loss += value.dot(problem.readout[step].col(b));
      outcome.terms += value.cwiseAbs().dot(problem.readout[step].col(b).cwiseAbs());
    }
  }

  void backward(Sums<S>& sums, PassResult& outcome) {
    const Cell<S>& cell = network.cell();
    for (std::size_t number = pieces.size(); number-- > 0;) {
      Piece& piece = pieces[number];
      Chunk<S> c = chunk(piece);
      for (Index t = 0; t < c.steps && piece.doutput.read().cols() > 0; ++t) {
        const Real& C = problem.readout[std::size_t(c.first + t)];
        for (Index j = 0; j < piece.active[std::size_t(t)] && C.cols() > 0; ++j)
          piece.doutput.columns(t * columns + j, 1) = C.col(sequences[std::size_t(j)]).template cast<S>();
      }
      for (Index t = 0; t < c.steps; ++t)
        piece.delta.columns(t * columns, piece.active[std::size_t(t)]).setConstant(std::numeric_limits<S>::quiet_NaN());
      const Panel<S> kept = piece.saved;
      outcome.backward_allocations += call("backward", [&](Scratch<S>& scratch) {
        cell.backward(c, piece.doutput.read(), maps, cell_theta(), sums, scratch);
      });
      check_untouched(piece, "backward");
      expect(kept.same_bits(piece.saved), "backward", " changed the saved numbers");
      collect(piece, outcome);
    }
    const Blocks<double> gradient = network.parameters().layout.all(outcome.gradient.data());
    for (Index j = 0; j < columns; ++j)
      as_vector(gradient[network.parameters().state]) += dstate.read().col(j).template cast<double>();
    outcome.backward_allocations -= sums.own_allocations();
    expect(dstate.intact(), "backward", " wrote outside dstate");
    expect(theta.intact(), "backward", " wrote outside θ");
  }
  // The gradients of V, b and h_t of a chunk.
  void collect(Piece& piece, PassResult& outcome) {
    const Cell<S>& cell = network.cell();
    const Blocks<double> gradient = network.parameters().layout.all(outcome.gradient.data());
    Mat<double> dV = as_matrix(gradient[0], cell.input_rows(), input_size);
    for (Index t = 0; t < piece.steps; ++t)
      for (Index j = 0; j < piece.active[std::size_t(t)]; ++j) {
        const Index b = sequences[std::size_t(j)];
        const Eigen::VectorXd d =
            piece.delta.read().col(t * columns + j).head(cell.input_rows()).template cast<double>();
        if (!d.allFinite())
          report.demand("finite", false,
                        fmt::format("backward leaves NaN, Inf or nothing in the first {} rows of chunk.delta, where "
                                    "the gradient of V x + b belongs; is input_rows() right?",
                                    cell.input_rows()));
        outcome.largest_delta = std::max(outcome.largest_delta, d.template lpNorm<Eigen::Infinity>());
        dV += d * problem.inputs[std::size_t(piece.first + t)].col(b).transpose();
        as_vector(gradient[1]) += d;
        if (!problem.want_dhidden) continue;
        outcome.dhidden[std::size_t(piece.first + t)].col(b) =
            piece.dhidden.read().col(t * columns + j).template cast<double>();
      }
  }

  /// Returns the number of allocations, which is 0 where they are not counted.
  template <class F> long call(const char* verb, F&& f) {
    const auto allocations = [this] { return subject.counts_allocations() ? subject.settings.allocations() : 0; };
    long before = 0, after = 0;
    std::ranges::fill(memory.span(), std::numeric_limits<S>::quiet_NaN());
    Scratch<S> scratch(memory.span());
    subject.call(verb, [&] {
      before = allocations();
      f(scratch);
      after = allocations();
    });
    expect(memory.intact(), verb, " wrote outside its scratch");
    return after - before;
  }
  void expect(bool holds, const char* verb, const char* fault) {
    if (!holds) report.demand("memory", false, std::string(verb) + fault);
  }
  void check_written(const Chunk<S>& c, Index t) {
    const Cell<S>& cell = network.cell();
    const CMat<S> saved = c.at(t);
    const auto written = [&](Index first, Index rows) {
      return (saved.middleRows(first, rows).array() != S(guard_value)).all();
    };
    expect(written(cell.output_row(), cell.output_rows()), "forward",
           " does not write all of the output rows, output_row() and output_rows()");
    expect(written(cell.state_row(), cell.state_rows()), "forward",
           " does not write all of the state rows, state_row() and state_rows()");
    if (gradient && !saved.middleRows(cell.output_row(), cell.output_rows()).allFinite())
      report.demand("finite", false,
                    "forward leaves NaN or Inf in the output rows, output_row() and output_rows(): does it write all "
                    "of them?");
  }
  // Columns of sequences that have ended, and the rows between the columns.
  void check_untouched(Piece& piece, const char* verb) {
    bool kept = piece.saved.intact() && piece.delta.intact() && piece.doutput.intact() && piece.dhidden.intact();
    for (Index t = 0; t < piece.steps; ++t) {
      const Index active = piece.active[std::size_t(t)], ended = columns - active;
      kept = kept && (piece.saved.read((t + 1) * columns + active, ended).array() == S(guard_value)).all();
      if (!gradient) continue;
      kept = kept && (piece.delta.read(t * columns + active, ended).array() == S(0)).all();
      if (!problem.want_dhidden) continue;
      kept = kept && (piece.dhidden.read(t * columns + active, ended).array() == S(guard_value)).all();
    }
    expect(kept, verb, " wrote to columns of sequences that have ended, or outside its panels");
  }
};

template <class S> CellNetwork<S>::Pass::Pass(const CellNetwork& network, const Problem& problem, const Cut& cut,
                                              bool backward, const Subject& subject, CheckReport& report)
    : problem(problem),
      theta(network.parameters_.layout, network.parameters_.numbers),
      network_(network),
      subject_(subject),
      report_(report),
      backward_(backward),
      maps_(network.matrices(theta)) {
  outcome_.outputs.assign(std::size_t(problem.steps),
                          Real::Zero(network.cell().output_rows(), Index(problem.lengths.size())));
  if (backward) {
    outcome_.dhidden = outcome_.outputs;
    outcome_.gradient.assign(network.parameters_.numbers.size(), 0);
  }
  for (const std::vector<Index>& sequences : cut.slices)
    slices_.push_back(std::make_unique<SliceRun>(*this, sequences, cut.chunks));
}

template <class S> CellNetwork<S>::Pass::~Pass() = default;

template <class S> const PassResult& CellNetwork<S>::Pass::run() {
  outcome_.loss = outcome_.terms = 0;
  const Parameters& p = network_.parameters_;
  for (const auto& slice : slices_) {
    slice->forward(outcome_);
    outcome_.forward_transposes = outcome_.forward_transposes || maps_.take_largest() > 0;
    if (!backward_) continue;
    Sums<S> sums(network_.maps_, p, problem.want_blocks, subject_.settings.allocations);
    slice->backward(sums, outcome_);
    outcome_.largest_message = std::max(outcome_.largest_message, maps_.take_largest());
    report_.demand("memory", sums.numbers().intact(), "backward wrote outside the gradients of the cell's blocks");
    const Blocks<double> gradient = p.layout.all(outcome_.gradient.data());
    for (Index k = p.map_first; k < p.cell_first; ++k)
      as_matrix(gradient[k], p.layout.block(k).rows, p.layout.block(k).cols) +=
          sums.matrix(k - p.map_first).template cast<double>();
    for (Index b = p.cell_first; b < p.state; ++b)
      for (std::size_t i = 0; i < gradient[b].size(); ++i) gradient[b][i] += double(sums.numbers().all()[b][i]);
  }
  return outcome_;
}

template <class S> void CellNetwork<S>::Pass::end() const {
  report_.demand("memory", theta.intact(), "forward wrote outside θ");
}

template <class S> std::vector<CMat<S>> CellNetwork<S>::matrices(const GuardedBlocks<S>& theta) const {
  std::vector<CMat<S>> matrices;
  for (std::size_t k = 0; k < maps_.size(); ++k)
    matrices.emplace_back(as_matrix(theta.all()[parameters_.map_first + Index(k)], maps_[k].rows, maps_[k].cols));
  return matrices;
}

template class CellNetwork<float>;
template class CellNetwork<double>;

}  // namespace stiefel::conformance
