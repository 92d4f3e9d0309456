// `stiefel schema`: the keys of an experiment as a JSON schema (draft-07), with which editors complete and check YAML.
#pragma once

#include <string>

#include "host/registry.hpp"

namespace stiefel {

STIEFEL_API std::string json_schema(const Registry& registry);

}  // namespace stiefel
