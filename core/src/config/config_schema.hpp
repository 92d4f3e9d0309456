// The runtime's Schema: its own kind of sections, and what only the runtime knows: plugins, lists of them, free names.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/declaration.hpp"
#include "config/experiment.hpp"

namespace stiefel {

class STIEFEL_API ConfigSchema final : public Schema {
 public:
  /// The section at `path`, read from `node` (null: absent; `where` is then the place nearest to it).
  ConfigSchema(Reading& reading, std::string path, const Node* node, Location where);
  ~ConfigSchema() override;

  using Keys = std::function<void(ConfigSchema&)>;

  /// A section whose describe() takes a ConfigSchema.
  template <class Options> void mapping(std::string_view key, Options& options, std::string_view meaning) {
    ConfigSchema& inner = enter_section(key, meaning);
    options.describe(inner);
    inner.finish();
  }

  /// `key: {plugin: name, …}`; `beside` declares the keys next to it that are not the plugin's. `example` is shown by
  /// describe. One that may be absent then has no entry.
  void plugin(std::string_view key, PluginChoice& choice, Role role, std::string_view meaning, const char* example,
              const Keys& beside = {}, bool required = true);
  /// The value that the file has at `key`, which need not be declared; null: none.
  const Node* given(std::string_view key) const;
  /// The fault that there is no plugin at `key`.
  void require_plugin(std::string_view key, Role role);
  /// One group or a list of groups.
  void groups(std::string_view key, std::vector<OptimizerGroup>& groups, std::string_view meaning);
  /// A list of sections.
  void list(std::string_view key, std::string_view meaning, const Keys& keys);
  /// Plugin nodes under arbitrary names.
  void maps(std::string_view key, std::vector<RecurrentMap>& maps, std::string_view meaning);
  /// Periods under arbitrary names.
  void periods(std::string_view key, std::vector<std::pair<std::string, Index>>& periods, std::string_view meaning);

  /// The keys of a plugin node in this section.
  void describe_plugin(PluginChoice& choice, Role role, const char* example, const Keys& beside);
  /// The keys of one group of blocks with its optimizer, or of a frozen one.
  void group(OptimizerGroup& group, const char* example);
  /// The options of `entry`, read from this section.
  void describe_options(PluginChoice& choice, const Entry& entry);

  /// No bit of a result depends on the key that was declared last, nor on those below it.
  void no_effect_on_results() { section_->declarations.back()->affects_results = false; }

  /// Checks the rest: constraints and unknown keys. Call it once all keys are declared.
  void finish();
  /// A fault of the value at `key`.
  void fault(std::string_view key, std::string sentence, Exit code = Exit::usage);
  /// The same for a value that is allowed.
  void remark(std::string_view key, const std::string& sentence) const;

  bool reads() const { return section_->reading->problems != nullptr; }
  detail::Section& own_section() { return *section_; }
  const detail::Section& own_section() const { return *section_; }
  const Registry* registry() const { return section_->reading->registry; }

 private:
  friend class Schema;
  ConfigSchema& enter_section(std::string_view key, std::string_view meaning);
  Declaration& declare_node(std::string_view key, std::string_view meaning, Declaration::Kind kind);
  ConfigSchema& add_inner(Declaration& declaration, std::string path, const Node* node);
  void describe_alternatives(Declaration& declaration, Role role, const Keys& beside);
  void collect_paths(std::vector<std::string>& paths) const;
  void refuse_unknown_keys(const std::vector<std::string>& paths);
};

}  // namespace stiefel
