/// What a plugin offers: its methods by role and name, in the table that it exports.
#pragma once

#include <cstdint>
#include <string>

#include <stiefel/export.hpp>

namespace stiefel {

class Schema;
struct Trained;

enum class Role : std::uint32_t { parametrisation, cell, task, optimizer };
STIEFEL_API const char* name_of(Role role);

/// One named method. Objects come from `create_*` as the role's base class and are deleted through its virtual
/// destructor.
struct Entry {
  Role role;
  const char* name;  ///< [a-z][a-z0-9_]*
  const char* meaning;
  void* (*make_options)(Schema&);  ///< a new Options, described to the schema; freed by free_options
  void (*free_options)(void*);
  bool (*complex_pairs)(const void* options);
  void* (*create_float)(const void* options, const void* context);
  void* (*create_double)(const void* options, const void* context);
  /// Of a task: the new SequenceReader of a file, or null. Null for other methods.
  void* (*open_float)(const void* options, const Trained& trained, const std::string& file) = nullptr;
  void* (*open_double)(const void* options, const Trained& trained, const std::string& file) = nullptr;
};

struct PluginTable {
  std::uint32_t table_size, entry_size;  ///< sizeof(PluginTable), sizeof(Entry) where the plugin was compiled
  const char* version;
  const Entry* entries;
  std::uint32_t count;
  const char* tag;  ///< keeps the tag in the file
};

}  // namespace stiefel
