// The model card of an exported network.
#pragma once

#include <string>

#include "results/analysis/run_data.hpp"

namespace stiefel::cli {

/// What to read of the run of a card.
RunRequest card_request();
/// A Markdown page, with front matter for collections of models, about a network in the form of exported_weights().
/// `license` names that of the network; empty: the card has none.
std::string card_of(const RunData& run, const std::string& network, const std::string& license);

}  // namespace stiefel::cli
