// Y += W X inside the time loop, dW += dY Xᵀ once per chunk after it.
#include "engine/maps.hpp"

namespace stiefel {
namespace {

template <class S> bool dense_is_faster(const Parametrisation<S>& map, const RouteContext& context) {
  const double n = double(map.rows()), m = double(map.cols());
  const double calls = context.total_columns / double(context.columns);
  const Cost cost = map.cost(context.columns);
  const double structured =
      cost.refresh + calls * (cost.apply + cost.apply_adjoint + cost.accumulate) / cost.efficiency + cost.finish;
  const double dense = cost.refresh + cost.materialise + cost.pullback + 6 * n * m * context.total_columns;
  return dense < structured;
}

}  // namespace

template <class S> NetworkMap<S>::NetworkMap(Plugged<Parametrisation<S>> map, const RouteContext& context)
    : map_(std::move(map)) {
  const bool can_be_structured = map_->matrix().size() == 0;
  if (context.wanted == "structured" && !can_be_structured)
    throw Error(map_.name + " has no structured route, its matrix is formed explicitly; remove `route: structured`");
  if (context.wanted == "dense" && !map_->materialises())
    throw Error(map_.name + " has no dense route, its matrix is never formed; remove `route: dense`");
  dense_ = !can_be_structured || (map_->materialises() && context.wanted != "structured" &&
                                  (context.wanted == "dense" || dense_is_faster(*map_, context)));
}

template <class S> CMat<S> NetworkMap<S>::matrix() const {
  const CMat<S> own = map_->matrix();
  return own.size() ? own : CMat<S>(W_);
}

template <class S> void NetworkMap<S>::refresh(CBlocks<S> theta) {
  const bool formed = dynamic_cast<const Dense<S>*>(map_.object.get());  // then refresh() only calls materialise()
  map_.call(formed ? "materialise" : "refresh", [&] { map_->refresh(theta); });
  if (!dense_) return;
  if (map_->matrix().size() == 0) {
    W_.resize(rows(), cols());
    map_.call("materialise", [&] { map_->materialise(theta, view(W_)); });
  }
  forward_.pack(matrix());
  adjoint_.pack_transposed(matrix());
}

template <class S> Index NetworkMap<S>::scratch(Index columns) const {
  return dense_ ? 0 : map_->scratch(columns) + std::max(rows(), cols()) * columns;
}

template <class S> void NetworkMap<S>::apply(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const {
  if (dense_) return forward_.multiply(X, Y);
  const Index mark = scratch.used();
  map_.call("apply", [&] { map_->apply(X, Y, scratch); });
  scratch.release(mark);
}

template <class S> void NetworkMap<S>::add(CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const {
  if (dense_) return forward_.add(X, Y);
  const Index mark = scratch.used();
  map_.call("add", [&] { map_->add(X, Y, scratch); });
  scratch.release(mark);
}

template <class S> void NetworkMap<S>::apply_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const {
  if (dense_) return adjoint_.multiply(dY, dX);
  const Index mark = scratch.used();
  map_.call("apply_adjoint", [&] { map_->apply_adjoint(dY, dX, scratch); });
  scratch.release(mark);
}

template <class S> void NetworkMap<S>::add_adjoint(CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const {
  if (dense_) return adjoint_.add(dY, dX);
  const Index mark = scratch.used();
  map_.call("add_adjoint", [&] { map_->add_adjoint(dY, dX, scratch); });
  scratch.release(mark);
}

template <class S> void NetworkMap<S>::accumulate(CMat<S> X, CMat<S> dY, std::span<S> sum, Scratch<S>& scratch) const {
  if (dense_) return add_outer(dY, X, as_matrix(sum, rows(), cols()));
  const Index mark = scratch.used();
  map_.call("accumulate", [&] { map_->accumulate(X, dY, sum, scratch); });
  scratch.release(mark);
}

template <class S> void NetworkMap<S>::decay(double decay, std::span<S> sum) const {
  const auto factor = S(map_->complex_pairs() ? decay : 2 * decay);  // the real form has every number twice
  if (dense_) {
    as_matrix(sum, rows(), cols()) += factor * matrix();
    return;
  }
  const Matrix<S> I = Matrix<S>::Identity(cols(), cols());
  Matrix<S> W(rows(), cols());
  std::vector<S> memory(scratch(cols()));
  Scratch<S> scratch{std::span<S>(memory)};
  apply(I, view(W), scratch);
  W *= factor;
  accumulate(I, W, sum, scratch);
}

template <class S> void NetworkMap<S>::finish(CBlocks<S> theta, std::span<const S> sum, Blocks<S> dtheta) {
  if (!dense_) return map_.call("finish", [&] { map_->finish(theta, sum, dtheta); });
  map_.call("pullback", [&] { map_->pullback(theta, matrix(), as_matrix(sum, rows(), cols()), dtheta); });
}

template <class S> NetworkMaps<S>::NetworkMaps(std::vector<MapSpec> specs, std::vector<NetworkMap<S>> maps)
    : specs_(std::move(specs)), maps_(std::move(maps)) {
  for (Index first = 0; first < count();) {
    Index last = first;
    while (last + 1 < count() && specs_[last + 1].input == specs_[first].input &&
           specs_[last + 1].cols == specs_[first].cols)
      ++last;
    bool all_dense = last > first;
    for (Index i = first; i <= last; ++i) all_dense = all_dense && maps_[i].dense();
    if (all_dense) fused_.push_back({first, last - first + 1, {}, {}});
    first = last + 1;
  }
}

template <class S> Index NetworkMaps<S>::scratch(Index columns) const {
  Index most = 0;
  for (const auto& map : maps_) most = std::max(most, map.scratch(columns));
  return most;
}

template <class S> void NetworkMaps<S>::pack() {
  for (Fused& group : fused_) {
    Index rows = 0;
    for (Index i = 0; i < group.count; ++i) rows += maps_[group.first + i].rows();
    Matrix<S> stacked(rows, maps_[group.first].cols());
    for (Index i = 0, row = 0; i < group.count; row += maps_[group.first + i].rows(), ++i)
      stacked.middleRows(row, maps_[group.first + i].rows()) = maps_[group.first + i].matrix();
    group.forward.pack(stacked);
    group.adjoint.pack_transposed(stacked);
  }
}

template <class S> auto NetworkMaps<S>::fused(Index first, Index count) const -> const Fused* {
  for (const Fused& group : fused_)
    if (group.first == first && group.count == count) return &group;
  return nullptr;
}

template <class S> void NetworkMaps<S>::apply(Index map, CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const {
  maps_[map].apply(X, Y, scratch);
}

template <class S> void NetworkMaps<S>::add(Index first, Index count, CMat<S> X, Mat<S> Y, Scratch<S>& scratch) const {
  if (const Fused* group = fused(first, count)) return group->forward.add(X, Y);
  for (Index i = first, row = 0; i < first + count; row += maps_[i].rows(), ++i)
    maps_[i].add(X, rows_of(Y, row, maps_[i].rows()), scratch);
}

template <class S> void NetworkMaps<S>::apply_adjoint(Index map, CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const {
  maps_[map].apply_adjoint(dY, dX, scratch);
}

template <class S>
void NetworkMaps<S>::add_adjoint(Index first, Index count, CMat<S> dY, Mat<S> dX, Scratch<S>& scratch) const {
  if (const Fused* group = fused(first, count)) return group->adjoint.add(dY, dX);
  for (Index i = first, row = 0; i < first + count; row += maps_[i].rows(), ++i)
    maps_[i].add_adjoint(rows_of(dY, row, maps_[i].rows()), dX, scratch);
}

template class NetworkMap<float>;
template class NetworkMap<double>;
template class NetworkMaps<float>;
template class NetworkMaps<double>;

}  // namespace stiefel
