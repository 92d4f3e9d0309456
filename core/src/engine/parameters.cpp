// Block names are unique within a network; they are what YAML, checkpoints and results call a parameter.
#include "engine/parameters.hpp"

#include <fnmatch.h>

#include "host/plugin_faults.hpp"

namespace stiefel {

Layout::Part Layout::add(const std::string& prefix, const std::vector<BlockSpec>& blocks) {
  const Index first = count();
  for (BlockSpec block : blocks) {
    if (const std::string fault = block_fault(block); !fault.empty())
      throw Error(fault + "; correct blocks() of the plugin", Exit::plugin);
    block.name = prefix + block.name;
    if (block.rows == 0) block.rows = block.size, block.cols = 1;
    if (find(block.name) >= 0)
      throw Error("two parameter blocks are named " + block.name + "; rename one in blocks() of the plugin",
                  Exit::plugin);
    offsets_.push_back(offsets_.back() + block.size);
    blocks_.push_back(std::move(block));
  }
  return {first, count() - first};
}

Index Layout::find(const std::string& name) const {
  for (Index i = 0; i < count(); ++i)
    if (blocks_[i].name == name) return i;
  return -1;
}

std::string Layout::names() const {
  std::string names;
  for (const BlockSpec& block : blocks_) names += (names.empty() ? "" : ", ") + block.name;
  return names;
}

bool matches_block(const std::string& pattern, const std::string& name) {
  const auto is = [&](const std::string& text) { return fnmatch(pattern.c_str(), text.c_str(), 0) == 0; };
  const std::size_t layer = name.starts_with("layers.") ? name.find('.', 7) + 1 : 0;  // end of the layer's prefix
  const std::string place = name.substr(0, layer), block = name.substr(layer);
  const std::string forward = block.starts_with("reverse.") ? block.substr(8) : block;
  return is(name) || is(block) || is(place + forward) || is(forward);
}

}  // namespace stiefel
