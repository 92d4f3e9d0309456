#include "sweep/published.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <set>

#include "base/number_from.hpp"
#include "base/suggestion.hpp"
#include "config/scalars.hpp"

namespace stiefel {
namespace {

namespace fs = std::filesystem;

constexpr std::array row_keys = {"row",    "file",  "set",   "seeds", "metric", "value", "kind",       "certainty",
                                 "budget", "judge", "needs", "note",  "unit",   "bench", "explanation"};
constexpr std::array item_keys = {"paper", "item", "title", "panels", "against", "rows"};
constexpr std::array published_kinds = {"best test", "test", "validation", "curve", "seconds"};

/// Reads members of a mapping into variables; errors go to the list of problems.
class Reader {
 public:
  explicit Reader(Problems& problems) : problems_(problems) {}

  template <class T> void read(const Node& map, const char* key, T& target) {
    const Member* member = map.find(key);
    if (!member) return;
    Value value = target;
    std::vector<Fault> faults;
    if (read_value(member->value, value, faults)) target = std::get<T>(value);
    for (const Fault& fault : faults) problems_.add(fault.where, fmt::format("{} {}", key, fault.sentence));
  }
  const std::vector<Node>& list(const Node& map, const char* key) {
    static const std::vector<Node> none;
    const Member* member = map.find(key);
    if (member && member->value.kind == Node::Kind::sequence) return member->value.items;
    problems_.add(member ? member->value.where : map.where, fmt::format("{} must be a list", key));
    return none;
  }
  void demand(bool good, const Location& where, const std::string& sentence) {
    if (!good) problems_.add(where, sentence);
  }
  template <class Keys> void refuse_others(const Node& map, const Keys& keys) {
    const std::vector<std::string> known(std::begin(keys), std::end(keys));
    for (const Member& member : map.members)
      demand(std::ranges::find(known, member.key) != known.end(), member.where,
             fmt::format("there is no key {}{}", member.key, suggestion(member.key, known)));
  }

 private:
  Problems& problems_;
};

/// One name, or a list of names.
std::vector<std::string> names(const Node& node, Reader& reader) {
  std::vector<std::string> all;
  if (node.kind != Node::Kind::sequence) return {node.text};
  for (const Node& item : node.items) all.push_back(item.text);
  reader.demand(!all.empty(), node.where, "name at least one row");
  return all;
}

Criterion read_criterion(const Node& node, Reader& reader) {
  Criterion criterion;
  reader.refuse_others(node, std::array{"reaches", "by", "never", "returns", "better_than", "faster_than", "to",
                                        "within", "after_runs"});
  reader.read(node, "reaches", criterion.value);
  reader.read(node, "by", criterion.by);
  reader.read(node, "never", criterion.value);
  reader.read(node, "returns", criterion.value);
  reader.read(node, "after_runs", criterion.after_runs);
  std::vector<double> bounds;
  reader.read(node, "within", bounds);
  const auto given =
      std::ranges::count_if(std::array{"reaches", "never", "returns", "better_than", "faster_than", "within"},
                            [&](const char* kind) { return node.find(kind) != nullptr; });
  reader.demand(given < 2, node.where, "judge must have only one criterion");
  if (node.find("reaches")) {
    reader.demand(criterion.by > 0, node.where, "`reaches` needs the last step that counts: {reaches: X, by: STEP}");
  } else if (node.find("never")) {
    criterion.kind = Criterion::Kind::never;
  } else if (node.find("returns")) {
    criterion.kind = Criterion::Kind::returns;
  } else if (const Member* better = node.find("better_than")) {
    criterion.kind = Criterion::Kind::better_than;
    criterion.rows = names(better->value, reader);
  } else if (const Member* faster = node.find("faster_than")) {
    criterion.kind = Criterion::Kind::faster_than;
    criterion.rows = names(faster->value, reader);
    reader.read(node, "to", criterion.value);
    reader.demand(!std::isnan(criterion.value), node.where,
                  "`faster_than` needs the value that is reached: {faster_than: ROW, to: X}");
  } else if (bounds.size() == 2 && bounds[0] < bounds[1]) {
    criterion.kind = Criterion::Kind::within;
    criterion.low = bounds[0], criterion.high = bounds[1];
  } else {
    reader.demand(false, node.where,
                  "judge must have one of reaches, never, returns, better_than, faster_than and within: [LOW, HIGH]");
  }
  return criterion;
}

/// Takes the panel and x from the parts of the name, which are separated by ", ".
void place_in_figure(const Node& item, PublishedRow& row, Reader& reader) {
  std::vector<std::string> panels, rest;
  reader.read(item, "panels", panels);
  reader.read(item, "against", row.against);
  for (std::size_t begin = 0; begin <= row.row.size();) {
    const std::size_t end = std::min(row.row.find(", ", begin), row.row.size());
    const std::string part = row.row.substr(begin, end - begin);
    begin = end + 2;
    if (std::ranges::find(panels, part.substr(0, part.find(':'))) != panels.end())
      row.panel = part;
    else if (const std::string name = row.against + " = "; !row.against.empty() && part.starts_with(name))
      row.at = number_from<double>(part.substr(name.size())).value_or(row.at);
    else
      rest.push_back(part);
  }
  row.label = fmt::format("{}", fmt::join(rest, ", "));
  reader.demand(panels.empty() || !row.panel.empty(), row.where,
                fmt::format("the row's name has none of the panels {}", fmt::join(panels, ", ")));
  reader.demand(row.against.empty() || !std::isnan(row.at), row.where,
                fmt::format("the row's name has no part \"{} = NUMBER\"", row.against));
}

PublishedRow read_row(const Node& item, const Node& node, Reader& reader) {
  PublishedRow row;
  row.where = node.where;
  for (const Node* map : {&item, &node}) {
    for (const auto& [key, target] : {std::pair{"paper", &row.paper},
                                      {"item", &row.item},
                                      {"title", &row.title},
                                      {"row", &row.row},
                                      {"file", &row.file},
                                      {"metric", &row.metric},
                                      {"kind", &row.kind},
                                      {"certainty", &row.certainty},
                                      {"budget", &row.budget},
                                      {"needs", &row.needs},
                                      {"unit", &row.unit},
                                      {"bench", &row.bench},
                                      {"explanation", &row.explanation}})
      reader.read(*map, key, *target);
    reader.read(*map, "note", map == &item ? row.item_note : row.note);
    reader.read(*map, "value", row.value);
    reader.read(*map, "seeds", row.seeds);
    reader.read(*map, "set", row.overrides);
    if (const Member* judge = map->find("judge")) row.judge = read_criterion(judge->value, reader);
  }
  reader.refuse_others(node, row_keys);
  reader.demand(!row.paper.empty() && !row.item.empty() && !row.row.empty() && !row.file.empty(), node.where,
                "a row needs paper, item, row and file");
  reader.demand(std::ranges::find(published_kinds, row.kind) != published_kinds.end(), node.where,
                fmt::format("kind must be one of {}, got \"{}\"", fmt::join(published_kinds, ", "), row.kind));
  reader.demand(row.certainty == "printed" || row.certainty == "remembered" || row.certainty == "quoted", node.where,
                "certainty must be printed, remembered or quoted");
  reader.demand(row.budget == "published" || row.own_budget(), node.where, "budget must be published or ours");
  reader.demand(row.timing() || !row.metric.empty(), node.where, "a row needs a metric");
  reader.demand((row.kind == "curve") == std::isnan(row.value), node.where,
                "a row has a value unless its kind is curve");
  reader.demand(!row.judge || row.kind == "curve", node.where, "judge is for rows of the kind curve");
  place_in_figure(item, row, reader);
  reader.demand(!row.timing() || (!row.unit.empty() && !row.bench.empty()), node.where, "a time needs unit and bench");
  return row;
}

void check_together(PublishedResults& results, Reader& reader) {
  std::map<std::string, std::string> kinds;
  for (const PublishedRow& row : results.rows) {
    reader.demand(kinds.emplace(row.item_name() + "/" + row.row, row.kind).second, row.where,
                  fmt::format("the item has two rows \"{}\"", row.row));
    reader.demand(results.papers.contains(row.paper), row.where, fmt::format("there is no paper {}", row.paper));
  }
  for (PublishedRow& row : results.rows) {
    row.measured_as = row.kind;
    if (!row.judge) continue;
    for (const std::string& name : row.judge->rows) {
      const auto other = kinds.find(row.item_name() + "/" + name);
      reader.demand(other != kinds.end(), row.where, fmt::format("the item has no row \"{}\"", name));
      if (other == kinds.end()) continue;
      reader.demand(&name == &row.judge->rows.front() || row.measured_as == other->second, row.where,
                    "the rows that a row is compared with must be of the same kind");
      reader.demand(row.judge->kind != Criterion::Kind::faster_than || other->second == "curve", row.where,
                    fmt::format("\"{}\" is not a curve, so nothing can be faster than it", name));
      row.measured_as = other->second;
    }
  }
}

}  // namespace

std::string PublishedRow::item_name() const {
  std::string name = paper + "/";
  for (const char letter : item)
    name += std::isalnum(static_cast<unsigned char>(letter)) || letter == '.' ? letter : '-';
  for (std::size_t at; (at = name.find("--")) != name.npos;) name.erase(at, 1);
  return name;
}

std::vector<const PublishedRow*> PublishedResults::choose(const std::vector<std::string>& names,
                                                          const std::string& text) const {
  std::vector<const PublishedRow*> chosen;
  std::set<std::string> known, found;
  for (const PublishedRow& row : rows) {
    const std::string file = row.file.substr(0, row.file.rfind(".yaml"));
    bool wanted = names.empty();
    for (const std::string& name : names)
      if (name == row.paper || name == row.item_name() || name == file || name == row.file) {
        wanted = true;
        found.insert(name);
      }
    if (wanted) chosen.push_back(&row);
    known.insert({row.paper, row.item_name(), file});
  }
  for (const std::string& name : names)
    if (!found.contains(name))
      throw Error(fmt::format("there are no published results '{}'{}; `stiefel reproduce list` shows all", name,
                              suggestion(name, {known.begin(), known.end()})));
  std::vector<std::string> known_rows;
  for (const PublishedRow* row : chosen) known_rows.push_back(fmt::format("'{}'", row->row));
  const bool named = std::ranges::find(chosen, text, &PublishedRow::row) != chosen.end();
  std::erase_if(
      chosen, [&](const PublishedRow* row) { return named ? row->row != text : row->row.find(text) == row->row.npos; });
  if (chosen.empty() && !text.empty())
    throw Error(fmt::format("no row has '{}' in its name; {}", text,
                            names.empty() ? "`stiefel reproduce list` shows all"
                                          : fmt::format("choose from {}", fmt::join(known_rows, ", "))));
  return chosen;
}

PublishedResults read_published(const fs::path& folder) {
  const fs::path file = folder / "papers/published.yaml";
  std::string fault;
  const std::optional<std::string> text = read_configuration(file, fault);
  if (!text) throw Error(fmt::format("{}: {}", file.string(), fault), Exit::usage);
  Problems problems;
  const std::optional<Node> root = parse_yaml(*text, file.string(), problems);
  problems.raise();
  Reader reader(problems);
  PublishedResults results;
  results.folder = folder;
  reader.refuse_others(*root, std::array{"tolerances", "papers", "items", "unlisted"});
  if (const Member* tolerances = root->find("tolerances"))
    for (const Member& metric : tolerances->value.members)
      reader.read(tolerances->value, metric.key.c_str(), results.tolerances[metric.key]);
  if (const Member* papers = root->find("papers"))
    for (const Member& member : papers->value.members) {
      PublishedPaper& paper = results.papers[member.key];
      reader.refuse_others(member.value, std::array{"authors", "title", "year", "outcome"});
      reader.read(member.value, "authors", paper.authors);
      reader.read(member.value, "title", paper.title);
      reader.read(member.value, "outcome", paper.outcome);
      reader.read(member.value, "year", paper.year);
    }
  std::vector<std::string> keys(item_keys.begin(), item_keys.end());
  keys.insert(keys.end(), row_keys.begin(), row_keys.end());
  for (const Node& item : reader.list(*root, "items")) {
    reader.refuse_others(item, keys);
    for (const Node& row : reader.list(item, "rows")) results.rows.push_back(read_row(item, row, reader));
  }
  check_together(results, reader);
  problems.raise();
  return results;
}

}  // namespace stiefel
