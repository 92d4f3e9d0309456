// CSV files: what is read, and that every damaged one is refused at file:line:column.
#include "scratch.hpp"

#include <doctest/doctest.h>

#include <stiefel/error.hpp>
#include "tasks/formats/csv_stream.hpp"

using namespace stiefel;
using namespace std::string_literals;

namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(const std::string& bytes, char separator = ',') {
  CsvReader reader(bytes, "file.csv", separator);
  Rows rows = {reader.header()};
  std::vector<CsvField> row;
  while (reader.next(row)) {
    rows.emplace_back();
    for (const CsvField& field : row) rows.back().emplace_back(field.text);
  }
  return rows;
}

/// The rows, and then the sentence of the error if there is one.
Rows streamed(const std::string& bytes, char separator = ',') {
  const scratch::Folder folder;
  const std::string file = (folder.path / "f").string();
  scratch::write(file, bytes);
  Rows rows;
  try {
    CsvStream stream(file, separator);
    rows.push_back(stream.reader().header());
    std::vector<CsvField> row;
    while (stream.next(row)) {
      rows.emplace_back();
      for (const CsvField& field : row) rows.back().emplace_back(field.text);
    }
  } catch (const Error& error) {
    rows.push_back({std::string(error.what()).substr(file.size() - 1)});
  }
  return rows;
}

/// Reads all fields of all rows as numbers.
std::string refusal(const std::string& bytes, const std::string& column = "") {
  try {
    CsvReader reader(bytes, "f", ',');
    if (!column.empty()) reader.column(column);
    std::vector<CsvField> row;
    while (reader.next(row))
      for (std::size_t i = 0; i < row.size(); ++i) reader.number(row[i], i);
  } catch (const Error& error) {
    CHECK(error.code() == Exit::data);
    return error.what();
  }
  return "accepted";
}

struct Damage {
  const char* sentence;
  std::string bytes;
};

std::vector<Damage> damaged_files() {
  const std::string number = ", expected a finite number";
  return {
      {"f:1:1: no header", ""},
      {"f:1:1: no header", "\n\n\r\n"},
      {"f:1:1: no header", "\xef\xbb\xbf"},
      {"f:1:1: column 1 of the header has no name; if it numbers the rows, write the file without it: index=False in "
       "pandas, row.names=FALSE in R",
       ",a\n"},
      {"f:1:3: column 2 of the header has no name; name it, or remove it, or the separators at the ends of lines",
       "a,\n1,\n"},
      {"f:1:3: column 2 of the header has no name", "a,,b\n"},
      {"f:1:1: column 1 of the header has no name", "\"\",b\n"},
      {"f:1:3: the header has column \"a\" twice; the first line must name the columns", "a,a\n"},
      {"f:1:5: the header has column \"a\" twice", "a,b,\"a\"\n1,2,3\n"},
      {"f:2:1: 1 fields, but the header has 2 columns", "a,b\n1\n"},
      {"f:2:1: 3 fields, but the header has 2 columns", "a,b\n1,2,3\n"},
      {"f:3:1: 3 fields, but the header has 2 columns; remove the separators at the ends of lines", "a,b\n1,2\n1,2,\n"},
      {"f:2:1: 3 fields, but the header has 2 columns; if the first field is the name of the row, write the file "
       "without "
       "row names: row.names=FALSE in R",
       "a,b\n1,2,3\n"},
      {"f:2:1: 2 fields, but the header has 1 columns; lines that begin with # are no comments here: remove them",
       "# made by a logger\na,b\n1,2\n"},
      {"f:3:1: 1 fields, but the header has 2 columns; lines that begin with #", "a,b\n1,2\n# end\n"},
      {"f:4:1: 1 fields", "a,b\n1,2\n\n1"},
      {"f:3:1: 2 fields", "a\n1\n1;2,3\n"},
      {"f:2:3: column \"b\" holds \"x\", expected a finite number", "a,b\n1,x\n"},
      {"f:2:1: column \"a\" holds \"\", expected a finite number", "a,b\n,1\n"},
      {"f:2:3: column \"b\" holds \"\"", "a,b\n1,\n"},
      {"f:2:1: column \"a\" holds \"   \"", "a\n   \n"},
      {"f:2:1: column \"a\" holds \"nan\"", "a\nnan\n"},
      {"f:2:1: column \"a\" holds \"-NaN\"", "a\n-NaN\n"},
      {"f:2:1: column \"a\" holds \"inf\"", "a\ninf\n"},
      {"f:2:1: column \"a\" holds \"-Infinity\"", "a\n-Infinity\n"},
      {"f:2:1: column \"a\" holds \"1e999\"", "a\n1e999\n"},
      {"f:2:1: column \"a\" holds \"1e\"", "a\n1e\n"},
      {"f:2:1: column \"a\" holds \"0x10\"", "a\n0x10\n"},
      {"f:2:1: column \"a\" holds \"1 2\"", "a\n1 2\n"},
      {"f:2:1: column \"a\" holds \"1.2.3\"", "a\n1.2.3\n"},
      {"f:2:1: column \"a\" holds \"+-1\"", "a\n+-1\n"},
      {"f:2:1: column \"a\" holds \"--1\"", "a\n--1\n"},
      {"f:2:1: column \"a\" holds \"++1\"", "a\n++1\n"},
      {"f:2:1: column \"a\" holds \"+\"", "a\n+\n"},
      {"f:2:1: column \"a\" holds \"1,5\", expected a finite number; write it with a decimal point and without commas",
       "a\n\"1,5\"\n"},
      {"f:2:1: column \"a\" holds \"\u0661\"", "a\n\u0661\n"},
      {"f:2:1: column \"a\" holds \"1?2\"", "a\n\"1\n2\"\n"},
      {"f:2:1: column \"a\" holds \"????????????????????????????????????????…\"",
       "a\n" + std::string(100, '\x01') + "\n"},
      {"f:2:1: column \"a\" holds \"1\"2\"", "a\n1\"2\n"},
      {"f:1:3: the header has column \"\u00e4\" twice", "\xc3\xa4,\xc3\xa4\n"},
      {"f:2:1: a quote that is never closed", "a\n\"1\n2\n3\n"},
      {"f:2:3: a quote that is never closed", "a,b\n1,\"\n"},
      {"f:2:1: a quote that is never closed", "a\n\"\"\"\n"},
      {"f:1:1: a quote that is never closed", "\"a\n1\n"},
      {"f:2:4: characters between a field's closing quote", "a\n\"1\"2\n"},
      {"f:2:4: characters between a field's closing quote", "a,b\n\"1\" ,2\n"},
      {"f:2:5: characters between a field's closing quote and the separator; a quote within quotes is written twice, "
       "not "
       "behind a backslash: qmethod=\"double\" in R",
       "a,b\n\"x\\\"y\",2\n"},
      {"f:1:4: characters between a field's closing quote", "\"a\"b\n"},
      {"f:2:4: characters between a field's closing quote", "a\n\"1\"\r"},
      {"f:2:2: a carriage return inside a line", "a\n1\r"},
      {"f:1:2: a carriage return inside a line", "a\rb\r1\r"},
      {"f:1:2: a zero byte", "a\0,b\n"s},
      {"f:2:3: a zero byte", "a\n12\0"s},
      {"f:1:1: a zero byte", "\0\0\0\0"s},
      {"f:1:3: byte f6, not valid UTF-8. Convert the file: iconv -f ENCODING",
       "Gr\xf6\xdf"
       "e,x\n1,2\n"},
      {"f:3:2: byte e9, not valid UTF-8", "a\n1\n2\xe9\n"},
      {"f:2:1: byte 80, not valid UTF-8", "a\n\x80\n"},
      {"f:1:1: begins as UTF-16 text. Convert the file: iconv -f UTF-16 -t UTF-8 FILE", "\xff\xfe" + "a\0\n\0"s},
      {"f:1:1: begins as UTF-16 text", "\xfe\xff" + "\0a\0\n"s},
      {"f:1:1: begins as UTF-32 text. Convert the file: iconv -f UTF-32 -t UTF-8 FILE", "\xff\xfe\0\0a\0\0\0"s},
      {"f:1:1: begins as UTF-16 text. Convert the file: iconv -f UTF-16LE -t UTF-8 FILE", "a\0\n\0"s},
      {"f:1:1: begins as a file compressed by gzip. Decompress it: gzip -dc FILE", "\x1f\x8b\x08\0"s},
      {"f:1:1: begins as a ZIP archive", "PK\3\4\x14\0"s},
      {"f:1:1: the line `sep=` is for Excel only", "sep=;\na;b\n"},
      {"f:1:1: the line `sep=` is for Excel only", "\xef\xbb\xbfsep=,\r\na,b\r\n"},
  };
}

}  // namespace

TEST_CASE("fields, quotes, separators and line ends") {
  CHECK(rows_of("a,b\n1,2\n3,4") == Rows{{"a", "b"}, {"1", "2"}, {"3", "4"}});
  CHECK(rows_of("\xef\xbb\xbf"
                "a;b\r\n1; 2 \r\n\r\n\n3;4\r\n",
                ';') == Rows{{"a", "b"}, {"1", " 2 "}, {"3", "4"}});
  CHECK(rows_of("\"a b\",\"c,d\"\n\"1\"\"2\"\"\",\"x\ny\"\n\"\",\n") ==
        Rows{{"a b", "c,d"}, {"1\"2\"", "x\ny"}, {"", ""}});
  CHECK(rows_of("a\tb\n\"\t\"\t2\n", '\t') == Rows{{"a", "b"}, {"\t", "2"}});
  CHECK(rows_of("a,b\n5\" pipe,\"\"\"\"\n") == Rows{{"a", "b"}, {"5\" pipe", "\""}});
  CHECK(rows_of("only") == Rows{{"only"}});
  CHECK(rows_of("sep=a,sep=\n1,2\n") == Rows{{"sep=a", "sep="}, {"1", "2"}});
}

TEST_CASE("numbers") {
  const auto number = [](const std::string& text) {
    double value = 0;
    CHECK(parse_number(text, value));
    return value;
  };
  CHECK(number("1") == 1);
  CHECK(number(" -2.5e-3\t") == -2.5e-3);
  CHECK(number("+.5") == 0.5);
  CHECK(number("5.") == 5);
  CHECK(number("0.1") == 0.1);
  CHECK(number("4.9e-324") == 4.9e-324);
  CHECK(number("-1e-400") == 0);
  CHECK(number("1.7976931348623157e308") == 1.7976931348623157e308);
}

TEST_CASE("columns by name") {
  CsvReader reader("a,b,c\n", "f", ',');
  CHECK(reader.column("c") == 2);
  CHECK(refusal("a,b\n1,2\n", "B") == "f:1:1: there is no column \"B\"; the header has \"a\", \"b\"");
  CHECK(refusal("a;b\n1;2\n", "b") ==
        "f:1:1: there is no column \"b\"; the header has \"a;b\": does the file use a separator other than ','?");
}

TEST_CASE("damaged files are refused at their place") {
  const auto all = damaged_files();
  CHECK(all.size() >= 40);
  for (const Damage& damage : all) {
    const std::string text = refusal(damage.bytes);
    CAPTURE(text);
    CAPTURE(damage.sentence);
    CHECK(text.starts_with(damage.sentence));
  }
}

TEST_CASE("every truncation of a file is read or refused") {
  const std::string good = "id,\"x\"\"1\"\r\n\"a,b\",1.5\r\n\"\xc3\xa4\n\",-2\n\n";
  for (std::size_t length = 0; length <= good.size(); ++length) {
    const std::string text = refusal(good.substr(0, length));
    CHECK((text == "accepted" || text.starts_with("f:")));
  }
}

TEST_CASE("a stream gives the rows of the whole file, wherever its pieces end") {
  const std::string header = "\xef\xbb\xbf\n\r\n\"na\nme\",\"x\"\"y\"\n";
  const std::string rows = "12\" vinyl,\"a\nb\"\r\n\n\"\",\"\"\"\n\"\"\"\n5\"\"\",\"\n,\n\"\n";
  for (std::size_t before = 0; before <= rows.size(); ++before) {
    const std::string text =
        header + std::string((1 << 16) - header.size() - 4 - before, '-') + ",\" \"\n" + rows + "end,1";
    CAPTURE(before);
    CHECK(streamed(text) == rows_of(text));
  }
  CHECK(streamed("a;b\n5\";\"c;\nd\"\n", ';') == Rows{{"a", "b"}, {"5\"", "c;\nd"}});
}

TEST_CASE("a quote inside a field does not hold back the rows behind it") {
  std::string text = "name,x\n12\" vinyl,1\n";
  while (text.size() < 300000) text += "\"two\nlines\",2\n";
  CHECK(streamed(text) == rows_of(text));
  const scratch::Folder folder;
  const std::string file = (folder.path / "f").string(), more = text.substr(text.find('\n') + 1);
  std::size_t parts = 1, count = 0;
  for (; text.size() < (std::size_t(65) << 20); ++parts) text += more;
  scratch::write(file, text);
  CsvStream stream(file, ',');
  for (std::vector<CsvField> row; stream.next(row); ++count)
    if (row.size() != 2) FAIL(count);
  CHECK(count == parts * (rows_of("name,x\n" + more).size() - 1));
}

TEST_CASE("a stream of a header alone, of nothing, and of a quote that is never closed") {
  for (const char* text : {"a,b", "a,b\n", "\"a\nb\"", "\n\n\"a\nb\",c", "a\n\n\n"})
    CHECK(streamed(text) == rows_of(text));
  for (const char* text : {"", "\n\r\n", "\xef\xbb\xbf"}) CHECK(streamed(text)[0][0].starts_with("f:1:1: no header"));
  CHECK(streamed("a\n\"" + std::string(std::size_t(65) << 20, '-')) ==
        Rows{{"a"}, {"f: a row of more than 64 MB: a quote may not be closed."}});
}

TEST_CASE("errors in a stream name the line of the file") {
  std::string text = "\"two\nlines\"\n";
  for (int i = 0; i < 100000; ++i) text += "1\n";
  const Rows rows = streamed(text + "1,2\n");
  CHECK(rows.size() == 100002);
  CHECK(rows.back()[0] == "f:100003:1: 2 fields, but the header has 1 columns");
  CHECK(streamed(text + "\xe4\n").back()[0].starts_with("f:100003:1: byte e4, not valid UTF-8"));
}
