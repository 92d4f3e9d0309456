// safetensors: the length of the header in 8 bytes, a JSON header {name: {dtype, shape, data_offsets}}, then the
// numbers, row-major and little-endian.
#include "training/weights.hpp"

#include <bit>

#include <nlohmann/json.hpp>
#include "base/json_text.hpp"
#include "config/tree.hpp"
#include "sdk/diagnostics.hpp"
#include "training/checkpoint.hpp"
#include "training/session.hpp"
#include "training/trained.hpp"

namespace stiefel {
namespace {

using Json = nlohmann::ordered_json;
static_assert(std::endian::native == std::endian::little);

template <class S> class TensorFile {
 public:
  /// `numbers` are row-major.
  void add(const std::string& name, const std::vector<Index>& shape, std::span<const S> numbers) {
    const std::size_t begin = data_.size();
    data_.append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
    tensors_[name] = {
        {"dtype", sizeof(S) == 4 ? "F32" : "F64"}, {"shape", shape}, {"data_offsets", {begin, data_.size()}}};
  }
  template <class M> void add_matrix(const std::string& name, const M& matrix) {
    const Matrix<S> rows = matrix.transpose();
    add(name, {matrix.rows(), matrix.cols()}, {rows.data(), std::size_t(rows.size())});
  }
  void add_vector(const std::string& name, std::span<const S> numbers) { add(name, {Index(numbers.size())}, numbers); }

  std::string bytes(const Json& metadata) const {
    Json header{{"__metadata__", metadata}};
    header.update(tensors_);
    std::string text = json_text(header);
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const auto length = std::uint64_t(text.size());
    return std::string(reinterpret_cast<const char*>(&length), 8) + text + data_;
  }

 private:
  Json tensors_;
  std::string data_;
};

Json json_of(const Node& node) {
  if (node.kind == Node::Kind::sequence) {
    Json items = Json::array();
    for (const Node& item : node.items) items.push_back(json_of(item));
    return items;
  }
  if (node.kind == Node::Kind::map) {
    Json members = Json::object();
    for (const Member& member : node.members) members[member.key] = json_of(member.value);
    return members;
  }
  if (node.kind == Node::Kind::null) return nullptr;
  if (node.quoted) return node.text;
  const nlohmann::json number = parse_json_or_discard(node.text);
  return number.is_number() || number.is_boolean() ? Json(number) : Json(node.text);
}

Json json_of_yaml(const std::string& yaml) {
  Problems problems;
  return json_of(parse_yaml(yaml, "", problems).value());
}

/// Adds the matrix of a map, as [n, m] if it is real and [n, m, 2] if it is complex.
template <class S> void add_map(TensorFile<S>& file, const std::string& name, const Parametrisation<S>& map) {
  const Matrix<S> M = matrix_of(map).template cast<S>();
  if (!map.complex_pairs()) return file.add_matrix(name, M);
  const Index rows = M.rows() / 2, cols = M.cols() / 2;
  Matrix<S> pairs(2 * cols, rows);  // row i of W is column i, with Re and Im alternating
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; ++j) pairs(2 * j, i) = M(i, j), pairs(2 * j + 1, i) = M(rows + i, j);
  file.add(name, {rows, cols, 2}, {pairs.data(), std::size_t(pairs.size())});
}

template <class S> void add_parameters(TensorFile<S>& file, Network<S>& network) {
  const Model<S>& model = network.model();
  const auto block = [&](const std::string& name) {
    const Index i = model.layout.find(name);
    return i < 0 ? std::span<const S>() : std::span<const S>(network.theta()[i]);
  };
  const auto matrix = [&](const std::string& name) {
    const BlockSpec& spec = model.layout.block(model.layout.find(name));
    return as_matrix(block(name), spec.rows, spec.cols);
  };
  const auto add_block = [&](const std::string& as, Index i) {
    const BlockSpec& spec = model.layout.block(i);
    const bool is_matrix = spec.cols > 1 || spec.name.ends_with("gate.weight");  // even with one column
    if (is_matrix)
      file.add_matrix(as, matrix(spec.name));
    else
      file.add_vector(as, block(spec.name));
  };
  const auto add_recurrence = [&](const Layer<S>& layer, const Recurrence<S>& r, const std::string& as) {
    const std::string weight = r.prefix + "input.weight", embedding = r.prefix + "input.embedding";
    if (!block(embedding).empty())
      file.add_matrix(as + "input.V", Matrix<S>(matrix(weight) * matrix(embedding)));
    else if (!block(weight).empty())
      file.add_matrix(as + "input.V", matrix(weight));
    if (const auto b = block(r.prefix + "input.bias"); !b.empty()) file.add_vector(as + "input.b", b);
    for (Index i = 0; i < r.maps->count(); ++i) {
      const std::string& name = r.maps->spec(i).name;
      const auto& plugin = (*r.maps)[i].plugin();
      plugin.call("apply", [&] { add_map(file, as + "recurrent." + (name.empty() ? "" : name + ".") + "W", *plugin); });
    }
    for (Index i = r.cell_blocks.first; i < r.cell_blocks.end(); ++i)
      add_block(as + "cell." + model.layout.block(i).name.substr(r.prefix.size()), i);
    const std::vector<S> zero(std::size_t(r.cell->state_rows()), S(0));
    file.add_vector(as + "initial",
                    layer.learned_state() ? block(r.prefix + "initial_state") : std::span<const S>(zero));
  };
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer<S>& layer = model.layers[i];
    const std::string as = "layers." + std::to_string(i) + ".";
    for (const Recurrence<S>& r : layer.recurrences) add_recurrence(layer, r, as + (r.reversed ? "reverse." : ""));
    const std::string& prefix = layer.recurrences[0].prefix;
    for (const Layout::Part part : {layer.norm_blocks, layer.gate_blocks})
      for (Index b = part.first; b < part.end(); ++b)
        add_block(as + model.layout.block(b).name.substr(prefix.size()), b);
  }
  file.add_matrix("readout.Y", matrix("readout.weight"));
  if (const auto c = block("readout.bias"); !c.empty()) file.add_vector("readout.c", c);
}

Json description(const LoadedExperiment& loaded, const TaskShape& shape, const DataForm& form,
                 std::vector<std::string> alphabet) {
  constexpr const char* inputs[] = {"dense", "symbols", "none"};
  Json text{{"config_yaml", loaded.resolved_yaml},
            {"config_json", json_text(json_of_yaml(loaded.resolved_yaml))},
            {"name", loaded.experiment.name},
            {"input", inputs[int(shape.input)]},
            {"input_size", std::to_string(shape.input_size)},
            {"output_size", std::to_string(shape.output_size)},
            {"readout", shape.readout == ReadoutKind::last ? "last" : "every"},
            {"targets", shape.labels ? "classes" : "values"},
            {"output", name_of(form.output)}};
  const auto list = [&](const char* key, const std::vector<std::string>& names) {
    if (!names.empty()) text[key] = json_text(Json(names));
  };
  for (std::string& symbol : alphabet)  // the blank that joins words is not part of them
    if (symbol.size() > 1 && symbol.ends_with(' ')) symbol.pop_back();
  list("alphabet", alphabet);
  list("features", form.inputs);
  if (form.outputs != alphabet) list(shape.labels ? "classes" : "target_names", form.outputs);
  Json normalisation;
  if (!form.input_mean.empty()) normalisation["input"] = {{"mean", form.input_mean}, {"scale", form.input_scale}};
  if (!form.output_mean.empty()) normalisation["target"] = {{"mean", form.output_mean}, {"scale", form.output_scale}};
  if (!normalisation.is_null()) text["normalisation"] = json_text(normalisation);
  return text;
}

template <class S> std::string weights_as(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options,
                                          const std::filesystem::path& network,
                                          const std::map<std::string, std::string>& about) {
  Session<S> session(loaded, registry, with_trained(options, network), Extent::application);
  const Index step = read_network(network, *session.network);
  session.network->refresh();
  TensorFile<S> file;
  add_parameters(file, *session.network);
  Json metadata{{"format", "stiefel-network"}, {"format_version", "1"}};
  metadata.update(description(loaded, session.task->shape(), session.task->form(), session.task->alphabet()));
  metadata.update(Json(about));
  metadata["step"] = std::to_string(step);
  return file.bytes(metadata);
}

}  // namespace

std::string exported_weights(const LoadedExperiment& loaded, Registry& registry, const RunOptions& options,
                             const std::filesystem::path& network, const std::map<std::string, std::string>& about) {
  return loaded.experiment.with_scalar(
      [&]<class S>(S) { return weights_as<S>(loaded, registry, options, network, about); });
}

}  // namespace stiefel
