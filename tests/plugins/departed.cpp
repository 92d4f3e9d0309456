// The library that the fixture no_dependency needs and does not find.
extern "C" __attribute__((visibility("default"))) void stiefel_fixture_departed() {}
