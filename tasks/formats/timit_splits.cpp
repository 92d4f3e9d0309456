// The published divisions of TIMIT, and one of a part of it.
#include "tasks/formats/timit_splits.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <string_view>

#include <stiefel/error.hpp>
#include <stiefel/numpy_random.hpp>

namespace stiefel {
namespace {

constexpr std::string_view core_speakers[] = {"mdab0", "mwbt0", "felc0", "mtas1", "mwew0", "fpas0", "mjmp0", "mlnt0",
                                              "fpkt0", "mlll0", "mtls0", "fjlm0", "mbpm0", "mklt0", "fnlp0", "mcmj0",
                                              "mjdh0", "fmgd0", "mgrt0", "mnjm0", "fdhc0", "mjln0", "mpam0", "fmld0"};
constexpr std::string_view development_speakers[] = {
    "faks0", "fdac1", "fjem0", "mgwt0", "mjar0", "mmdb1", "mmdm2", "mpdf0", "fcmh0", "fkms0", "mbdg0", "mbwm0", "mcsh0",
    "fadg0", "fdms0", "fedw0", "mgjf0", "mglb0", "mrtk0", "mtaa0", "mtdt0", "mthc0", "mwjg0", "fnmr0", "frew0", "fsem0",
    "mbns0", "mmjr0", "mdls0", "mdlf0", "mdvc0", "mers0", "fmah0", "fdrw0", "mrcs0", "mrjm4", "fcal1", "mmwh0", "fjsj0",
    "majc0", "mjsw0", "mreb0", "fgjd0", "fjmg0", "mroa0", "mteb0", "mjfc0", "mrjr0", "fmml0", "mrws1"};
static_assert(std::size(core_speakers) == 24 && std::size(development_speakers) == 50);
constexpr std::size_t train_count = 3696, core_count = 192, development_count = 400, complete_count = 1344;

template <class Names> bool among(const Names& names, const std::string& speaker) {
  return std::find(std::begin(names), std::end(names), speaker) != std::end(names);
}

template <class Fits> std::vector<std::size_t> chosen(const TimitCorpus& corpus, bool sa, Fits fits) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < corpus.utterances.size(); ++i)
    if ((sa || !corpus.utterances[i].read_by_all()) && fits(corpus.utterances[i])) places.push_back(i);
  return places;
}

struct Part {
  const char* name;
  std::size_t expected;
  bool (*fits)(const Utterance&);
};
constexpr Part training = {"training", train_count, [](const Utterance& u) { return u.part == "train"; }};
constexpr Part complete = {"test", complete_count, [](const Utterance& u) { return u.part == "test"; }};
constexpr Part core = {"core test", core_count,
                       [](const Utterance& u) { return u.part == "test" && among(core_speakers, u.speaker); }};
constexpr Part development = {"development", development_count, [](const Utterance& u) {
                                return u.part == "test" && among(development_speakers, u.speaker);
                              }};

/// What keeps the corpus from being whole, or nothing.
std::string missing(const TimitCorpus& corpus) {
  for (const Part& part : {training, complete, core, development}) {
    const std::size_t there = chosen(corpus, false, part.fits).size();
    if (there != part.expected)
      return fmt::format("{} of the {} {} utterances are in {}", there, part.expected, part.name, corpus.folder);
  }
  return "";
}

TimitSplits published(const TimitCorpus& corpus, const TimitOptions& options) {
  TimitSplits splits;
  splits.train = chosen(corpus, options.sa, training.fits);
  splits.test = chosen(corpus, options.sa, options.test == "core" ? core.fits : complete.fits);
  if (options.validation == "development") {
    splits.validation = chosen(corpus, options.sa, development.fits);
    return splits;
  }
  const auto order = NumpyRandomState(std::uint32_t(options.split_seed)).permutation(std::int64_t(splits.train.size()));
  std::vector<std::size_t> rest;
  for (std::size_t i = 0; i < order.size(); ++i)
    (Index(i) < options.held_out ? splits.validation : rest).push_back(splits.train[std::size_t(order[i])]);
  std::sort(splits.validation.begin(), splits.validation.end());
  std::sort(rest.begin(), rest.end());
  splits.train = std::move(rest);
  return splits;
}

TimitSplits by_speakers(const TimitCorpus& corpus, const TimitOptions& options) {
  std::set<std::string> women, men;
  for (const Utterance& u : corpus.utterances) (u.female() ? women : men).insert(u.speaker);
  const std::size_t test = std::size_t(options.test_speakers / 2),
                    validation = std::size_t(options.validation_speakers / 2);
  if (std::min(women.size(), men.size()) <= test + validation)
    throw Error(
        fmt::format("{} holds {} women and {} men: too few for {} test and {} validation speakers with some left for "
                    "training. Ask for "
                    "fewer with task.test_speakers and task.validation_speakers.",
                    corpus.folder, women.size(), men.size(), options.test_speakers, options.validation_speakers),
        Exit::data);
  NumpyRandomState random(std::uint32_t(options.split_seed));
  std::set<std::string> for_test, for_validation;
  for (const std::set<std::string>* sex : {&women, &men}) {
    const std::vector<std::string> names(sex->begin(), sex->end());
    const std::vector<std::int64_t> order = random.permutation(std::int64_t(names.size()));
    for (std::size_t i = 0; i < test + validation; ++i)
      (i < test ? for_test : for_validation).insert(names[std::size_t(order[i])]);
  }
  const auto of = [&](const std::set<std::string>& speakers) {
    return chosen(corpus, options.sa, [&](const Utterance& u) { return speakers.contains(u.speaker); });
  };
  return {
      chosen(corpus, options.sa,
             [&](const Utterance& u) { return !for_test.contains(u.speaker) && !for_validation.contains(u.speaker); }),
      of(for_validation), of(for_test)};
}

}  // namespace

void TimitOptions::describe(Schema& s) {
  s.field("folder", folder, "the corpus's folder in the data directory; empty: its usual place, timit or TIMIT");
  s.field("split", split,
          "published: the usual sets, from the whole corpus; speakers: divide the speakers that are present, both "
          "sexes in each set; auto: "
          "published if the folders TRAIN and TEST are present")
      .one_of({"auto", "published", "speakers"});
  s.field("test", test, "published: the core test set of 24 speakers or the complete one of 168")
      .one_of({"core", "complete"})
      .only_if(split != "speakers", "`split: published`");
  s.field("validation", validation,
          "published: the development set of 50 speakers, or utterances held out from the training set")
      .one_of({"development", "held_out"})
      .only_if(split != "speakers", "`split: published`");
  s.field("held_out", held_out, "published: number of training utterances held out for validation")
      .at_least(0)
      .less_than(double(train_count))
      .only_if(validation == "held_out", "`validation: held_out`");
  s.field("test_speakers", test_speakers, "speakers: number of test speakers, an even number")
      .at_least(2)
      .only_if(split != "published", "`split: speakers`");
  s.field("validation_speakers", validation_speakers, "speakers: number of validation speakers, an even number")
      .at_least(0)
      .only_if(split != "published", "`split: speakers`");
  s.field("split_seed", split_seed,
          "seed of the choice of speakers or of held-out utterances, the same for every seed of a run")
      .at_least(0)
      .at_most(std::numeric_limits<std::uint32_t>::max());
  s.field("sa", sa, "also use the two SA sentences, which every speaker read");
  s.check(test_speakers % 2 == 0, "test_speakers", "must be even: as many women as men");
  s.check(validation_speakers % 2 == 0, "validation_speakers", "must be even: as many women as men");
  s.check(split == "speakers" || test != "complete" || validation != "development", "validation",
          "must be held_out with `test: complete`, which contains the development set");
}

TimitSplits split_timit(const TimitCorpus& corpus, const TimitOptions& options, const std::string& data_directory) {
  if (options.split == "speakers") return by_speakers(corpus, options);
  const auto in_parts = [](const Utterance& u) { return !u.part.empty(); };
  if (options.split == "auto" && std::none_of(corpus.utterances.begin(), corpus.utterances.end(), in_parts))
    return by_speakers(corpus, options);
  const std::string reason = missing(corpus);
  if (reason.empty()) return published(corpus, options);
  throw Error(fmt::format("the published sets of TIMIT need the whole corpus, but {}. {} Or set task.split=speakers to "
                          "divide the speakers "
                          "that are present.",
                          reason, timit_mend(data_directory)),
              Exit::data);
}

}  // namespace stiefel
