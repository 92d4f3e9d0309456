#include "training/trained.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "host/plugin_faults.hpp"
#include "record/reader.hpp"
#include "training/checkpoint.hpp"

namespace stiefel {
namespace {

/// Calls number(name, member) for each number or choice, texts(name, member) and numbers(name, member) for each list.
void each_member(auto& trained, auto&& number, auto&& texts, auto&& numbers) {
  auto& shape = trained.shape;
  auto& form = trained.form;
  number("input", shape.input);
  number("input_size", shape.input_size);
  number("output_size", shape.output_size);
  number("readout", shape.readout);
  number("labels", shape.labels);
  number("steps", shape.steps);
  number("streams", shape.streams);
  number("training_set", shape.training_set);
  number("predicts_inputs", shape.predicts_inputs);
  number("output", form.output);
  texts("inputs", form.inputs);
  texts("outputs", form.outputs);
  texts("alphabet", trained.alphabet);
  numbers("input_mean", form.input_mean);
  numbers("input_scale", form.input_scale);
  numbers("output_mean", form.output_mean);
  numbers("output_scale", form.output_scale);
}

constexpr const char* place = "task";

}  // namespace

void write_trained(const hdf5::Group& root, const Trained& trained) {
  if (trained.shape.output_size == 0) return;
  hdf5::Group group = root.make_group(place);
  const auto list = [&](const char* name, hdf5::Type type, const auto& values) {
    if (values.empty()) return;
    hdf5::Dataset dataset = group.create_dataset(name, {type, {values.size()}, {}});
    dataset.write(0, values);
    dataset.close();
  };
  each_member(
      trained, [&](const char* name, auto value) { group.set_number(name, double(value), hdf5::Type::i8); },
      [&](const char* name, const std::vector<std::string>& values) { list(name, hdf5::Type::text, values); },
      [&](const char* name, const std::vector<double>& values) { list(name, hdf5::Type::f8, values); });
  group.close();
}

std::shared_ptr<const Trained> read_trained(const std::filesystem::path& network) {
  demand_whole(network.parent_path().parent_path(), network.filename());
  const ResultReader file(network);
  if (!file.exists(place)) return nullptr;
  const auto path_of = [](const char* name) { return fmt::format("{}/{}", place, name); };
  Trained trained;
  each_member(
      trained, [&]<class T>(const char* name, T& value) { value = T(Index(file.number_attribute(place, name))); },
      [&](const char* name, std::vector<std::string>& values) {
        if (file.exists(path_of(name))) values = file.texts(path_of(name));
      },
      [&](const char* name, std::vector<double>& values) {
        if (file.exists(path_of(name))) values = file.read(path_of(name)).values;
      });
  for (const std::string& fault : {shape_fault(trained.shape), form_fault(trained.form, trained.shape)})
    if (!fault.empty())
      throw Error(fmt::format("{}: what it says of its task is wrong: {}", network.string(), fault), Exit::damaged);
  return std::make_shared<const Trained>(std::move(trained));
}

}  // namespace stiefel
