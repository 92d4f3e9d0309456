// Pickles: data of all protocols as Python writes them, and that damaged and hostile ones are refused with a sentence.
#include "idx_files.hpp"
#include "music_files.hpp"

#include <fmt/format.h>

#include "tasks/formats/pickle.hpp"

using namespace stiefel;
using namespace music_files;

namespace {

Pickle read(const Bytes& bytes) { return read_pickle(bytes, named); }

/// A value as Python's repr would write it, to a bounded depth.
std::string text_of(const Pickle& pickle, std::uint32_t number, int depth = 0) {
  const PickleValue& value = pickle[number];
  const auto items = [&](const char* open, const char* close) {
    std::string text = open;
    if (depth > 5) return text + "…" + close;
    for (const std::uint32_t item : pickle.items_of(value)) text += text_of(pickle, item, depth + 1) + " ";
    return text + close;
  };
  switch (value.kind) {
    case PickleKind::none:
      return "None";
    case PickleKind::truth:
      return value.number ? "True" : "False";
    case PickleKind::integer:
      return std::to_string(value.number);
    case PickleKind::real:
      return fmt::format("{}", value.real());
    case PickleKind::text:
      return "'" + std::string(value.text) + "'";
    case PickleKind::list:
      return items("[", "]");
    case PickleKind::tuple:
      return items("(", ")");
    case PickleKind::dictionary:
      return items("{", "}");
    default:
      return "?";
  }
}
std::string data_of(const Bytes& bytes) {
  const Pickle pickle = read(bytes);
  return text_of(pickle, pickle.root);
}

const Bytes dtype = "cnumpy\ndtype\nU\x02i8K" + Bytes(1, '\0') + "K\x01\x87R";               // numpy.dtype("i8", 0, 1)
const Bytes state = "(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK" + zeros(1) + "tb";  // its byte order
const Bytes scalar = "cnumpy.core.multiarray\nscalar\n";
const Bytes seven = scalar + dtype + state + "U\x08\x07" + zeros(7) + "\x86R";
const Bytes good = "\x80\x02}q\x01(U\x05trainq\x02]q\x03(](K<" + seven + "q\x04\x86)ee" + "U\x04testh\x03u.";

std::vector<Damage> hostile() {
  return {
      {"asks for the Python object os.system, which is not data; nothing of it was executed", "cos\nsystem\n(S'true'\ntR."},
      {"asks for the Python object posix.system",
       "\x80\x02"
       "cposix\nsystem\nU\x04true\x85R."},
      {"asks for the Python object builtins.eval",
       "\x80\x04\x8c\x08"
       "builtins\x94\x8c\x04"
       "eval\x94\x93\x94."},
      {"asks for the Python object __builtin__.getattr", "c__builtin__\ngetattr\n."},
      {"asks for the Python object numpy.load", "cnumpy\nload\n."},
      {"asks for the Python object numpy.core.multiarray._reconstruct", "cnumpy.core.multiarray\n_reconstruct\n."},
      {"asks for the Python object os.scalar", "cos\nscalar\n."},
      {"asks for the Python object _codecs.encode", "c_codecs\nencode\n."},
      {"asks for the Python object ?[31m.?", "c\x1b[31m\n\x07\n."},
      {"asks for the Python object aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbb",
       "c" + Bytes(100000, 'a') + "\n" + Bytes(100000, 'b') + "\n."},
      {"asks for an object (INST), which is not data", "(ios\nsystem\n."},
      {"asks for an object (OBJ)", "(cnumpy\ndtype\no."},
      {"asks for an object (NEWOBJ)",
       "\x80\x02"
       "cnumpy\ndtype\n)\x81."},
      {"asks for an object (NEWOBJ_EX)",
       "\x80\x04"
       "cnumpy\ndtype\n)}\x92."},
      {"asks for an object of the extension registry (EXT1)", "\x80\x02\x82\x01."},
      {"asks for an object of the extension registry (EXT2)", "\x83\x01\x01."},
      {"asks for an object of the extension registry (EXT4)", "\x84\x01\x01\x01\x01."},
      {"asks for an object kept elsewhere (PERSID)", "Pfile\n."},
      {"asks for an object kept elsewhere (BINPERSID)", "K\x01Q."},
      {"asks for a set (EMPTY_SET)", "\x80\x04\x8f."},
      {"asks for a set (ADDITEMS)", "\x80\x04(\x90."},
      {"asks for a set (FROZENSET)", "\x80\x04(\x91."},
      {"asks for a buffer kept elsewhere (NEXT_BUFFER)", "\x80\x05\x97."},
      {"asks for a buffer kept elsewhere (READONLY_BUFFER)", "\x80\x05\x98."},
      {"asks for the opcode 0x99, which no pickle has", "\x99."},
      {"asks for the opcode 0x00", Bytes("\0.", 2)},
      {"asks for the opcode 0x3c", "<!DOCTYPE html>"},
      {"calls something that is not one of NumPy's numbers", "K\x01)R."},
      {"calls something that is not one of NumPy's numbers", "cnumpy\ndtype\n]R."},
      {"gives a state to something that is no NumPy type", "}}b."},
      {"gives a state to something that is no NumPy type", "cnumpy\ndtype\n)b."},
      {"holds a NumPy type and no data", dtype + "."},
      {"holds a NumPy type and no data", scalar + "."},
  };
}

std::vector<Damage> damages() {
  const auto typed = [](const Bytes& name) { return Bytes("cnumpy\ndtype\nU") + char(name.size()) + name + "\x85R."; };
  return {
      {"ends too early, at byte 0", ""},
      {"ends too early", "\x80"},
      {"is a pickle of protocol 6, expected 0 to 5", "\x80\x06N."},
      {"takes a value from an empty stack", "."},
      {"takes a value from an empty stack", "(."},
      {"takes a value from an empty stack", "K\x01\x86."},
      {"takes a value from an empty stack", "K\x01(\x85."},
      {"takes a value from an empty stack",
       "(0"
       "0."},
      {"takes a value from an empty stack", "2."},
      {"takes a value from an empty stack", "q\x01."},
      {"leaves more than one value", "NN."},
      {"leaves more than one value", "N(N."},
      {"goes on after its end", "N.N."},
      {"looks for a mark that is not there", "t."},
      {"looks for a mark that is not there", "]e."},
      {"looks for a mark that is not there", "1."},
      {"adds to something that is no list",
       "NK\x01"
       "a."},
      {"adds to something that is no list",
       ")K\x01"
       "a."},
      {"adds to something that is no list",
       "}(K\x01"
       "e."},
      {"adds to something that is no dictionary", "]K\x01K\x01s."},
      {"has a key without a value", "}(K\x01u."},
      {"has a key without a value",
       "(K\x01"
       "d."},
      {"recalls a value that it has not stored", "h\x01."},
      {"recalls a value that it has not stored", "g12\n."},
      {"recalls a value that it has not stored", "Nr\x01\x01\x01\x01j\x02\x01\x01\x01."},
      {"has a number that cannot be read", "I12x\n."},
      {"has a number that cannot be read", "I\n."},
      {"has a number that cannot be read", "I99999999999999999999\n."},
      {"has a number that cannot be read", "Np-1\n."},
      {"has a number that cannot be read", "F1.5.\n."},
      {"has an integer of more than 64 bits", "\x8a\x09" + Bytes(9, '\x01') + "."},
      {"ends too early", "\x8b\xff\xff\xff\xff\x01."},
      {"ends too early",
       "T\xff\xff\xff\x7f"
       "abc."},
      {"ends too early", "\x8e" + Bytes(8, '\xff') + "abc."},
      {"ends too early, inside a line", "I12"},
      {"ends too early, inside a frame", "\x80\x04\x95\xff" + zeros(7) + "N."},
      {"has a string without quotation marks", "Sabc\n."},
      {"has a string without quotation marks", "S'\n."},
      {"has a string without quotation marks", "S'abc\"\n."},
      {"has a string with an escape that cannot be read", "S'\\q'\n."},
      {"has a string with an escape that cannot be read", "S'\\x4'\n."},
      {"has a string with an escape that cannot be read", "S'\\xg0'\n."},
      {"has a string with an escape that cannot be read", "S'abc\\'\n."},
      {"has something that is no text where a module is expected", "NN\x93."},
      {"makes a NumPy type out of nothing", "cnumpy\ndtype\n)R."},
      {"has something that is no text where the name of a NumPy type is expected", "cnumpy\ndtype\nN\x85R."},
      {"has the NumPy type O8, expected one of", typed("O8")},
      {"has the NumPy type i9, expected one of", typed("i9")},
      {"has the NumPy type V100", typed("V100")},
      {"has the NumPy type , expected", typed(">")},
      {"has the NumPy type , expected", typed("")},
      {"gives a NumPy type a state that is none", dtype + "Nb."},
      {"gives a NumPy type a state that is none", dtype + "K\x03\x85"
                                                          "b."},
      {"gives a NumPy type a byte order that is none", dtype + "K\x03U\x01!\x86"
                                                               "b."},
      {"makes a NumPy number without a type and bytes", scalar + ")R."},
      {"makes a NumPy number without a type and bytes", scalar + "NN\x86R."},
      {"has something that is no text where the bytes of a NumPy number", scalar + dtype + "N\x86R."},
      {"has 7 bytes for a NumPy number of 8", scalar + dtype + "U\x07" + zeros(7) + "\x86R."},
      {"has an integer of more than 64 bits", scalar + "cnumpy\ndtype\nU\x02u8\x85RU\x08" + Bytes(8, '\xff') + "\x86R."},
  };
}

}  // namespace

TEST_CASE("values of all kinds") {
  const Bytes ff = "\xff";
  CHECK(data_of("N.") == "None");
  CHECK(data_of("(I01\nI00\n\x88\x89I-7\nL12345678901L\nK\xffM\xff" + ff + "J\xfe\xff\xff" + ff + "\x8a\x01\xff\x8a" + zeros(1) +
                "\x8b\x02" + zeros(4) + "\x01t.") == "(True False True False -7 12345678901 255 65535 -2 -1 0 256 )");
  CHECK(data_of("(F1.5\nG?\xf8" + zeros(6) + "t.") == "(1.5 1.5 )");
  CHECK(data_of("(S'a\\x41\\n\\\\\\''\nS\"b\"\nVc\nU\x01"
                "dT\x01" +
                zeros(3) + "eX\x01" + zeros(3) + "fC\x01gB\x01" + zeros(3) + "h\x8c\x01i\x8d\x01" + zeros(7) + "j\x8e\x01" + zeros(7) +
                "k\x96\x01" + zeros(7) + "lt.") == "('aA\n\\'' 'b' 'c' 'd' 'e' 'f' 'g' 'h' 'i' 'j' 'k' 'l' )");
  CHECK(data_of("(lp0\nI1\na(I2\nI3\neg0\n0.") == "[1 2 3 ]");
  CHECK(data_of("(N\x85NN\x86NNN\x87)(NNl(K\x01K\x02"
                "d}K\x03K\x04s}(K\x05K\x06ut.") == "((None ) (None None ) (None None None ) () [None None ] {1 2 } {3 4 } {5 6 } )");
  CHECK(data_of("(N21NN(NN10.") == "None");
  CHECK(data_of("\x80\x05\x95\x03" + zeros(7) + "]\x94.") == "[]");
  CHECK(data_of(good) == "{'train' [[(60 7 ) () ] ] 'test' [[(60 7 ) () ] ] }");
}

TEST_CASE("values may hold themselves") {
  CHECK(data_of("]q\x01h\x01"
                "a.") == "[[[[[[[…] ] ] ] ] ] ]");
  const Pickle pickle = read("}q\x01K\x01h\x01s.");
  CHECK(pickle.items_of(pickle[pickle.root])[1] == pickle.root);
}

TEST_CASE("damaged and hostile pickles are refused") {
  std::vector<Damage> all = hostile();
  const std::vector<Damage> more = damages();
  all.insert(all.end(), more.begin(), more.end());
  check_damages(all, good, [](const Bytes& bytes) { read(bytes); });
}

TEST_CASE("what Python writes, in all protocols, and nothing that it would execute") {
  const idx_files::Folder folder;
  const auto script = folder.path / "write.py";
  idx_files::write(script, R"(
import os, pickle, sys
import numpy
os.chdir(sys.argv[1])
data = {"train": [[(60, 64), [], (72,)]], "valid": [], "test": [[[-1, 255, 256, 70000, 2**40, -2**40]]], "x": [None, True, False, 1.5, "a'b\n"]}
numbers = [numpy.int64(7), numpy.uint8(200), numpy.int16(-3), numpy.dtype(">i4").type(5), numpy.float64(2.5), numpy.float32(0.5), numpy.bool_(True)]
class Attack:
    def __reduce__(self):
        return os.system, ("touch executed",)
for protocol in range(6):
    for name, value in ("data", data), ("numbers", numbers), ("attack", {"train": [Attack()]}):
        with open(f"{name}.{protocol}", "wb") as file:
            pickle.dump(value, file, protocol)
)");
  REQUIRE(std::system(("/usr/bin/python3 " + script.string() + " " + folder.path.string()).c_str()) == 0);
  for (int protocol = 0; protocol < 6; ++protocol) {
    CAPTURE(protocol);
    const auto file = [&](const char* name) { return idx_files::read(folder.path / (std::string(name) + "." + std::to_string(protocol))); };
    const std::string text = data_of(file("data"));
    CHECK(
        text.starts_with("{'train' [[(60 64 ) [] (72 ) ] ] 'valid' [] 'test' [[[-1 255 256 70000 1099511627776 -1099511627776 ] ] ] "
                         "'x' [None True False 1.5 "));
    const auto numbers = [&] { return data_of(file("numbers")); };
    if (protocol < 3)  // Python 3 writes bytes there as a call of _codecs.encode
      CHECK(refusal(numbers).starts_with("asks for the Python object _codecs.encode"));
    else
      CHECK(numbers() == "[7 200 -3 5 2.5 0.5 1 ]");
    CHECK(refusal([&] { read(file("attack")); }).starts_with("asks for the Python object posix.system, which is not data"));
  }
  CHECK(!std::filesystem::exists(folder.path / "executed"));
  CHECK(!std::filesystem::exists("executed"));
}
